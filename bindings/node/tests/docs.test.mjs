// The JavaScript of README.md and docs/*.md runs, block by block, in a directory of its own and without the network.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import test from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import ts from 'typescript'
import { directory, packageDir } from './support.mjs'

const root = join(packageDir, '../..')
const pages = [join(root, 'README.md'), ...readdirSync(join(root, 'docs')).map((name) => join(root, 'docs', name))]

function* blocksOf(page) {
  const text = readFileSync(page, 'utf8')
  for (const block of text.matchAll(/^```js\n([^]*?)^```$/gm)) {
    yield [`${basename(page)}:${text.slice(0, block.index).split('\n').length}`, block[1]]
  }
}
const blocks = pages.filter((page) => page.endsWith('.md')).flatMap((page) => [...blocksOf(page)])

/** What the blocks use without making it. */
const context = `
const console = { log() {}, warn() {} }
const process = { stdout: { write() {} } }
const engine = new Engine()
const session = await Session.create({ engine, model: 'scripted/demo', permissions: 'allow' })
await session.run('Hello.')
const entryId = [...session.tree].find((entry) => entry.message?.role === 'user').id
const path = session.path
const { signal } = new AbortController()
const tb = new Toolbox({ cwd: '.' })
const key = 'a key'
const keySource = () => key
const fetchToken = async (provider) => 'a key of ' + provider
const confirm = async () => false
const handler = () => false
const onProgress = () => {}
const show = () => {}
const lookUp = async (city) => '21 degrees in ' + city
async function* myModel() { yield 'Hello '; yield 'there.' }
`

/** A program of a block: what it imports comes first, the rest stands in a scope of its own. */
function program(block) {
  const body = block.replace(/^import .* from 'branchline'\n/gm, '').replaceAll("'/some/project'", "'.'")
  const names = 'BranchlineError, Budget, Engine, Session, Toolbox, listSessions, tool'
  const text = `import { ${names} } from '${pathToFileURL(join(packageDir, 'index.mjs'))}'\n${context}\nawait (async () => {\n${body}})()\nawait engine.shutdown()`
  // Node 20 has no \`await using\`.
  return ts.transpileModule(text, { compilerOptions: { target: 'ES2022', module: 'ESNext' } }).outputText
}

test('blocks are found', () => assert.ok(blocks.length > 8))

for (const [name, block] of blocks) {
  test(name, { timeout: 120_000 }, async (t) => {
    const cwd = directory(t)
    copyFileSync(join(root, 'examples/session.jsonl'), join(cwd, 'recorded.jsonl'))
    mkdirSync(join(cwd, 'src'))
    writeFileSync(join(cwd, 'a.txt'), 'old\n')
    writeFileSync(join(cwd, 'program.mjs'), program(block))
    // Nothing of the person's: neither sessions nor keys.
    const env = { PATH: process.env.PATH, HOME: cwd, PI_CODING_AGENT_DIR: join(cwd, 'agent') }
    await promisify(execFile)(process.execPath, ['program.mjs'], { cwd, env, timeout: 60_000 }).catch((error) =>
      assert.fail(error.stderr || error.message),
    )
  })
}
