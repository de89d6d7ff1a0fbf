import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'
import * as esm from '../index.mjs'
import { packageDir } from './support.mjs'

const require = createRequire(import.meta.url)
const cjs = require('../index.cjs')
const read = (name) => readFileSync(join(packageDir, name), 'utf8')

test('ESM and CommonJS export the same things', () => {
  assert.deepEqual(Object.keys(esm).sort(), Object.keys(cjs).sort())
  for (const [name, value] of Object.entries(cjs)) assert.equal(esm[name], value, name)
})

test('the package resolves by its name, both ways', async () => {
  assert.equal(require('branchline'), cjs)
  assert.equal((await import('branchline')).Session, cjs.Session)
})

test('the version is the one of the workspace', () => {
  const workspace = read('../../Cargo.toml').match(/^version = "(.*)"$/m)[1]
  assert.equal(cjs.version, workspace)
})

/** Members of a class in the declarations. */
function declared(name) {
  const body = read('index.d.ts').match(new RegExp(`declare class ${name} [^]*?\\n}\\n`))[0]
  const members = body.matchAll(/^  (?:static |readonly )?(\[Symbol\.\w+\]|\w+)(?=[(:?])/gm)
  return new Set([...members].map((match) => match[1]).filter((member) => member !== 'constructor'))
}

/** Members of a class as they are. */
function actual(type) {
  const names = [...Reflect.ownKeys(type.prototype), ...Object.keys(type)].filter((key) => key !== 'constructor')
  return new Set(names.map((key) => (typeof key === 'symbol' ? `[${key.description.replace('nodejs.', 'Symbol.')}]` : key)))
}

for (const name of ['Budget', 'Engine', 'Session', 'Run', 'EventStream', 'Exploration', 'Replay', 'Toolbox', 'Tree']) {
  test(`the declarations of ${name} are what is there`, () => {
    const [there, said] = [actual(cjs[name]), declared(name)]
    assert.deepEqual([...said].sort(), [...there].sort())
  })
}

test('every error code of the core is declared', () => {
  const codes = [...read('../../core/src/error.rs').matchAll(/ = \d+, "(\w+)";/g)].map((match) => match[1])
  const union = read('index.d.ts').match(/type ErrorCode =([^]*?)\n\n/)[1]
  assert.ok(codes.length > 20)
  assert.deepEqual([...union.matchAll(/'(\w+)'/g)].map((match) => match[1]).sort(), codes.sort())
})

test('every event of the core is declared', () => {
  const source = read('../../core/src/session/event.rs')
  const names = [...source.matchAll(/EventKind::\w+(?: \{ \.\. \})? => "(\w+)"/g)].map((match) => match[1])
  const union = read('data.d.ts').match(/type SessionEvent =[^]*/)[0]
  assert.ok(names.length > 10)
  for (const name of names) assert.ok(union.includes(`type: '${name}'`), name)
})

test('a host written in TypeScript compiles, and wrong ones do not', { timeout: 300_000 }, async (t) => {
  const compiler = join(packageDir, 'node_modules/typescript/bin/tsc')
  const run = promisify(execFile)(process.execPath, [compiler, '-p', 'tests/types'], { cwd: packageDir })
  await run.catch((error) => assert.fail(error.stdout || error.message))
})
