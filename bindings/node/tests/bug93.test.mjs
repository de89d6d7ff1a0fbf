// Bug 93: what a host leaves lying around, a listener, a tool, a toolbox, must not keep its process alive, and what it
// throws in a callback must not end it.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import test from 'node:test'
import { Worker } from 'node:worker_threads'
import { node, packageDir } from './support.mjs'

const library = JSON.stringify(join(packageDir, 'index.mjs'))
const prelude = `
  import { Engine, Session, Toolbox, tool } from ${library}
  const engine = new Engine({ workerThreads: 1 })
  const says = (text) => ({ content: [{ type: 'text', text }] })
  const calls = (how) => ({ content: [{ type: 'toolCall', id: 'c', name: 'work', arguments: { how } }] })
  const replies = ['', 'throw', 'reject', ''].flatMap((how) => [calls(how), says('done')])
  engine.addScriptedModel('test', { replies, atEnd: 'repeatLast' })
  engine.addScriptedModel('hang', [calls('hang'), says('done')])
  const work = tool({
    name: 'work',
    parameters: { type: 'object', properties: { how: { type: 'string' } } },
    async execute({ how }) {
      if (how === 'throw') throw new Error('thrown')
      if (how === 'reject') return Promise.reject(new Error('rejected'))
      if (how === 'hang') await new Promise(() => {})
      return 'worked'
    },
  })
  const make = (model = 'test') => Session.create({ engine, inMemory: true, permissions: 'allow', tools: [work], model: 'scripted/' + model })
  const texts = (run) => run.messages.filter((m) => m.role === 'toolResult').map((m) => m.content[0].text).join()
`

async function ends(program, options) {
  const result = await node(prelude + program, options)
  assert.equal(result.hung, false, 'the process hangs')
  assert.deepEqual({ code: result.code, stderr: result.stderr }, { code: 0, stderr: '' })
  return result.stdout
}

test('bug 93: a script with a listener and a tool exits by itself', async () => {
  const out = await ends(`
    const session = await make()
    void (async () => { for await (const event of session.events()) if (event.type === 'nothing') return })()
    const run = await session.run('x')
    const toolbox = new Toolbox({ engine, tools: [work] })
    console.log(texts(run), (await toolbox.call('work')).text)
  `)
  assert.equal(out, 'worked worked\n')
})

test('bug 93: tools that were only defined, and toolboxes that were only made, hold nothing', async () => {
  assert.equal(await ends(`new Toolbox({ engine, tools: [work] }); engine.addTool(work); console.log('end')`), 'end\n')
})

test('bug 93: callbacks that throw or reject are told to the caller and end nothing', async () => {
  const out = await ends(`
    const session = await make()
    const said = []
    for (let n = 0; n < 4; n++) said.push(texts(await session.run('x')))
    const toolbox = new Toolbox({ engine, tools: [work] })
    for (const how of ['throw', 'reject']) said.push(await toolbox.call('work', { how }).catch((error) => error.code))
    const loud = tool({ name: 'loud', execute: (_, { progress }) => { progress('x'); return 'y' } })
    toolbox.add(loud)
    const onProgress = () => { throw new Error('listener') }
    said.push(await toolbox.call('loud', {}, { onProgress }).catch((error) => error.message))
    console.log(said.join('|'))
  `)
  assert.equal(out, 'worked|Error: thrown|Error: rejected|worked|tool_failed|tool_failed|listener\n')
})

test('bug 93: dropped without close, closed twice, used after close', async () => {
  const out = await ends(`
    await (await make()).run('x')
    const session = await make()
    await session.close()
    await session.close()
    await engine.shutdown()
    await engine.shutdown()
    console.log(await session.run('x').catch((error) => error.code))
  `)
  assert.equal(out, 'closed\n')
})

test('bug 93: a run whose tool never ends keeps the process; its abort lets it go', async () => {
  const out = await ends(`
    const session = await make('hang')
    const run = session.run('x')
    setTimeout(() => session.abort(), 100)
    console.log((await run).aborted)
  `)
  assert.equal(out, 'true\n')
})

test('bug 93: process.exit() while a tool runs', async () => {
  const out = await ends(`
    const session = await make('hang')
    session.prompt('x')
    setTimeout(() => { console.log('leaving'); process.exit(0) }, 200)
  `)
  assert.equal(out, 'leaving\n')
})

test('bug 93: sessions with tools are garbage when nobody knows them, also those a tool knows', async () => {
  const out = await ends(
    `
    let alive = 0
    const collector = new FinalizationRegistry(() => alive--)
    async function leave() {
      let session
      const own = tool({ name: 'work', execute: () => session.id })
      session = await Session.create({ engine, inMemory: true, permissions: 'allow', tools: [own], model: 'scripted/test' })
      alive++
      collector.register(session)
      await session.run('x')
    }
    for (let n = 0; n < 50; n++) await leave()
    for (let round = 0; round < 200 && alive > 1; round++) {
      gc()
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    console.log(alive <= 1)
    `,
    { args: ['--expose-gc'] },
  )
  assert.equal(out, 'true\n')
})

/** A worker in the middle of tool calls, in a session and in a toolbox. */
const busy = `
  const { parentPort } = require('node:worker_threads')
  const { Engine, Session, Toolbox, tool } = require(${JSON.stringify(join(packageDir, 'index.cjs'))})
  const engine = new Engine({ workerThreads: 1 })
  const call = { type: 'toolCall', id: 'c', name: 'work', arguments: {} }
  engine.addScriptedModel('test', { replies: [{ content: [call] }], atEnd: 'loop' })
  let count = 0
  const work = tool({
    name: 'work',
    async execute(_, { progress }) {
      progress('x')
      await new Promise((resolve) => setTimeout(resolve, 1))
      if (++count === 10) parentPort.postMessage('busy')
      return 'worked'
    },
  })
  Session.create({ engine, inMemory: true, permissions: 'allow', tools: [work], model: 'scripted/test' }).then((session) => session.run('x'))
  const toolbox = new Toolbox({ engine, tools: [work] })
  const forever = async () => { for (;;) await toolbox.call('work', {}, { onProgress() {} }) }
  forever()
`

test('bug 93: workers terminated in the middle of tool calls take nothing down', async () => {
  for (let round = 0; round < 8; round++) {
    const worker = new Worker(busy, { eval: true })
    await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject))
    assert.equal(await worker.terminate(), 1)
  }
})
