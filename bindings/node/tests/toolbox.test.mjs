// The tools as functions, and tools that are JavaScript functions.

import assert from 'node:assert/strict'
import { constants } from 'node:buffer'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BranchlineError, Engine, Session, Tool, Toolbox, tool } from '../index.mjs'
import { directory, engine, says } from './support.mjs'

const require = createRequire(import.meta.url)
const { bridge } = require('../lib/native.cjs')

const weather = tool({
  name: 'weather',
  description: 'Current weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: ({ city }) => `sunny in ${city}`,
})
const calls = (name, args, id = 'c1') => ({ content: [{ type: 'toolCall', id, name, arguments: args }] })
const texts = (run) => run.messages.filter((message) => message.role === 'toolResult').map((message) => message.content[0].text)

function toolbox(test, options) {
  const dir = directory(test)
  writeFileSync(join(dir, 'notes.txt'), 'first\nsecond TODO\n')
  return Object.assign(new Toolbox({ cwd: dir, engine: engine(test), ...options }), { dir })
}

/** A session that calls a tool once and then says something. */
async function session(test, own, ...replies) {
  const made = engine(test, { replies: [...replies, says('done')], atEnd: 'repeatLast' })
  const session = await Session.create({ engine: made, inMemory: true, permissions: 'allow', model: 'scripted/test', tools: own })
  return Object.assign(session, { engine: made })
}

test('every built-in tool is a method', async (t) => {
  const tb = toolbox(t)
  const names = tb.definitions.map((definition) => definition.name)
  for (const name of names.filter((name) => name !== 'powershell')) assert.equal(typeof tb[name], 'function', name)
  assert.equal((await tb.read('notes.txt', { offset: 2, limit: 1 })).text.split('\n')[0], 'second TODO')
  await tb.write('sub/a.js', 'one = 1\ntwo = 2\n')
  const edited = await tb.edit('sub/a.js', [['one = 1', 'one = 11'], { oldText: 'two = 2', newText: 'two = 22' }])
  assert.equal(readFileSync(join(tb.dir, 'sub/a.js'), 'utf8'), 'one = 11\ntwo = 22\n')
  assert.match(edited.details.diff, /one = 11/)
  assert.equal((await tb.ls()).text, 'notes.txt\nsub/')
  assert.equal((await tb.ls('sub', { limit: 5 })).text, 'a.js')
  assert.equal((await tb.find('*.js')).text, 'sub/a.js')
  assert.equal((await tb.grep('todo', { ignoreCase: true, glob: '*.txt', limit: 20 })).text, 'notes.txt:2: second TODO')
  const result = await tb.bash('printf out', { timeout: 20 })
  assert.deepEqual([result.text, String(result), result.structuredContent.exit_code, result.isError], ['out', 'out', 0, false])
})

test('a tool that fails rejects, unless it is looked at', async (t) => {
  const tb = toolbox(t)
  const error = await tb.read('missing').catch((error) => error)
  assert.ok(error instanceof BranchlineError)
  assert.deepEqual([error.code, error.result.isError], ['tool_failed', true])
  assert.match(error.message, /ENOENT/)
  const failed = await tb.bash('echo out; exit 3', { check: false })
  assert.deepEqual([failed.isError, failed.structuredContent.exit_code], [true, 3])
  await assert.rejects(tb.call('hammer'), { code: 'tool_failed', message: 'Tool hammer not found' })
  await assert.rejects(tb.call('read', { path: [], offset: 'x' }), { code: 'tool_failed', message: /Validation failed/ })
})

test('wrong calls are refused by name', async (t) => {
  const tb = toolbox(t)
  const bad = { name: 'BranchlineError', code: 'invalid_argument' }
  await assert.rejects(tb.grep('x', { directory: '.' }), { ...bad, message: /grep has no option "directory"/ })
  await assert.rejects(tb.read(), bad)
  await assert.rejects(tb.read('x', null), bad)
  await assert.rejects(tb.edit('x', 'y'), bad)
  await assert.rejects(tb.call(5), bad)
  await assert.rejects(tb.call('read', { path: 1n }), bad)
  assert.throws(() => new Toolbox({ directory: '.' }), bad)
  assert.throws(() => new Toolbox({ tools: ['read'] }), bad)
  assert.throws(() => tool({ name: 'x' }), bad)
  assert.throws(() => tool({ name: 'x', execute() {}, colour: 1 }), bad)
  assert.throws(() => tool(null), bad)
  assert.throws(() => tb.add(tool({ name: 'two words', execute() {} })), { ...bad, message: /a name is/ })
  assert.throws(() => tb.add(tool({ name: 'x', parameters: { type: 'string' }, execute() {} })), bad)
  await assert.rejects(Session.create({ tools: [{}] }), bad)
  await assert.rejects(Session.create({ customTools: [] }), bad)
})

test('progress, and a listener that throws', async (t) => {
  const tb = toolbox(t, {
    tools: [
      tool({
        name: 'steps',
        execute(_, { progress, name, callId, sessionId, cwd }) {
          for (let n = 0; n < 3; n++) assert.equal(progress(`step ${n}`), true)
          assert.throws(() => progress({ content: 1 }), { code: 'invalid_argument' })
          return { name, callId, sessionId, here: cwd === tb.dir }
        },
      }),
    ],
  })
  const seen = []
  const result = await tb.call('steps', {}, { onProgress: (partial) => seen.push(partial.text) })
  assert.deepEqual(seen, ['step 0', 'step 1', 'step 2'])
  assert.deepEqual(result.structuredContent, { name: 'steps', callId: '', sessionId: '', here: true })
  await assert.rejects(
    tb.call('steps', {}, { onProgress: async () => { throw new RangeError('mine') } }),
    RangeError,
  )
})

test('a signal ends the tool and its processes', async (t) => {
  const tb = toolbox(t)
  const controller = new AbortController()
  const pid = join(tb.dir, 'pid')
  const running = tb.bash('echo $$ > pid; exec sleep 600', { signal: controller.signal })
  while (!existsSync(pid) || !readFileSync(pid, 'utf8').endsWith('\n')) await sleep(5)
  controller.abort(new Error('enough'))
  await assert.rejects(running, { message: 'enough' })
  const number = Number(readFileSync(pid, 'utf8'))
  for (let round = 0; round < 2000; round++) {
    try {
      process.kill(number, 0)
    } catch (error) {
      assert.equal(error.code, 'ESRCH')
      break
    }
    assert.ok(round < 1999, 'the process lives')
    await sleep(5)
  }
  await assert.rejects(tb.ls('.', { signal: controller.signal }), { message: 'enough' })
})

test('what a tool returns', async (t) => {
  const forms = [
    ['text', 'text', undefined],
    [undefined, '(no output)', undefined],
    [{ a: 1 }, '{"a":1}', { a: 1 }],
    [[1, null], '[1,null]', [1, null]],
    [5, '5', 5],
    [[{ type: 'text', text: 'block' }], 'block', undefined],
    [{ content: 'full', structuredContent: [1] }, 'full', [1]],
    ['a\u0000b \ud83d\ude00', 'a\u0000b \ud83d\ude00', undefined],
  ]
  const tb = toolbox(t)
  for (const [value, text, structured] of forms) {
    tb.add({ name: 'give', execute: async () => value })
    const result = await tb.call('give')
    assert.deepEqual([result.text, result.structuredContent], [text, structured])
  }
})

test('what a tool throws or rejects with is a failure with its message', async (t) => {
  const tb = toolbox(t)
  const failures = [
    [() => { throw new TypeError('boom') }, 'TypeError: boom'],
    [() => Promise.reject(new Error('later')), 'Error: later'],
    [() => Promise.reject('a text'), 'a text'],
    [() => Promise.reject(undefined), 'undefined'],
    [() => Promise.reject(Object.create(null)), 'the tool failed'],
    [() => 1n, 'the result of the tool cannot be written as JSON: Do not know how to serialize a BigInt'],
    [() => ({ content: 1 }), 'the content of a result is a text or a list of blocks'],
    [() => ({ content: 'no', isError: true }), 'no'],
  ]
  for (const [execute, message] of failures) {
    tb.add({ name: 'fail', execute })
    await assert.rejects(tb.call('fail'), { code: 'tool_failed', message })
  }
})

test('tools of a session', async (t) => {
  const s = await session(t, ['read', weather], calls('weather', { city: 'Kyiv' }), says('ok'), calls('weather', { city: ['x'] }))
  assert.deepEqual(s.state.tools, ['read', 'weather'])
  assert.deepEqual(texts(await s.run('Weather?')), ['sunny in Kyiv'])
  assert.match(texts(await s.run('Again?'))[0], /Validation failed/)
  await s.setTools([weather])
  assert.deepEqual(s.state.tools, ['weather'])
  assert.deepEqual((await s.clone()).state.tools, ['weather'])
  assert.ok(weather instanceof Tool && Object.isFrozen(weather))
})

test('tools of an engine', async (t) => {
  const made = engine(t, { replies: [calls('weather', { city: 'Oslo' }), says('ok')] })
  made.addTool(weather)
  assert.equal((await new Toolbox({ engine: made }).call(weather, { city: 'Kyiv' })).text, 'sunny in Kyiv')
  const s = await made.createSession({ inMemory: true, permissions: 'allow', model: 'scripted/test' })
  assert.deepEqual(texts(await s.run('x')), ['sunny in Oslo'])
})

test('calls of one batch run beside each other', async (t) => {
  let arrived = 0
  let open
  const all = new Promise((resolve) => (open = resolve))
  const meet = tool({
    name: 'meet',
    async execute() {
      if (++arrived === 3) open()
      await all
    },
  })
  const batch = { content: ['a', 'b', 'c'].map((id) => calls('meet', {}, id).content[0]) }
  const s = await session(t, [meet], batch)
  assert.equal(texts(await s.run('x')).length, 3)
})

test('a tool works with its own session, and is refused to wait for it', async (t) => {
  const s = await session(
    t,
    [
      tool({
        name: 'inside',
        async execute(_, { sessionId, callId }) {
          assert.deepEqual([sessionId, callId], [s.id, 'c1'])
          await s.setName('named inside')
          await s.appendCustom('tool', { big: 1 })
          await assert.rejects(s.waitIdle(), { code: 'would_deadlock' })
          await assert.rejects(s.run('more'), { code: 'running' })
          return 'worked'
        },
      }),
    ],
    calls('inside', {}),
  )
  assert.deepEqual(texts(await s.run('x')), ['worked'])
  assert.equal(s.name, 'named inside')
  await s.waitIdle()
})

test('a tool is refused to wait for the run that waits for it, in any way', async (t) => {
  const refused = { code: 'would_deadlock' }
  let s
  let own
  const inside = tool({
    name: 'inside',
    async execute() {
      await assert.rejects(own.result(), refused)
      await assert.rejects(own.next(), refused)
      await assert.rejects(async () => {
        for await (const event of own) assert.fail(event.type)
      }, refused)
      await assert.rejects(s.run('more', { whenRunning: 'steer' }), refused)
      assert.deepEqual(s.state.steering, [])
      const joined = s.prompt('then this', { whenRunning: 'followUp' })
      await assert.rejects(joined.result(), refused)
      await assert.rejects(joined.next(), refused)
      return 'worked'
    },
  })
  s = await session(t, [inside], calls('inside', {}), says('after'), says('followed'))
  own = s.prompt('x')
  const types = []
  for await (const event of own) types.push(event.type) // what was refused took nothing away
  const result = await own.result()
  assert.deepEqual([texts(result), result.text, result.aborted], [['worked'], 'followed', false])
  assert.deepEqual([types[0], types.at(-1)], ['agent_start', 'agent_settled'])
})

test('a tool may wait for a run that is over, and for other sessions, siblings among them', async (t) => {
  let s
  let before
  const inside = tool({
    name: 'inside',
    async execute() {
      const answers = [(await before.result()).text]
      const other = await s.engine.createSession({ inMemory: true, model: 'scripted/test', tools: [] })
      answers.push((await other.run('x')).text)
      const sibling = await s.branch(null)
      await sibling.waitIdle()
      answers.push((await sibling.run('x')).text)
      const run = sibling.prompt('y')
      await sibling.waitIdle()
      for await (const event of run) if (event.type === 'agent_settled') answers.push(event.sibling)
      answers.push((await sibling.run('z')).text)
      await assert.rejects(s.waitIdle(), { code: 'would_deadlock' })
      return answers.join()
    },
  })
  s = await session(t, [inside], says('before'), calls('inside', {}), says('other'), says('one'), says('two'), says('three'))
  before = s.prompt('x')
  await before.result()
  assert.deepEqual(texts(await s.run('x')), ['before,other,one,1,three'])
})

test('a tool may wait for a sibling that has been busy all along', async (t) => {
  let busy
  const s = await session(t, [
    tool({
      name: 'inside',
      async execute(_, { sibling }) {
        hand.openGate('go')
        return [sibling, busy.run.session.sibling, (await busy.run.result()).text].join()
      },
    }),
  ], calls('inside', {}), says('done'))
  const hand = s.engine.addScriptedModel('slow', [{ ...says('slow'), waitGate: 'go' }])
  const sibling = await s.branch(null)
  await sibling.setModel('scripted/slow')
  busy = { run: Object.assign(sibling.prompt('x'), { session: sibling }) }
  await busy.run.accepted
  assert.deepEqual(texts(await s.run('x')), ['0,1,slow'])
})

test('an abort reaches the tool, also one that the tool asks for', async (t) => {
  let reason
  const stop = tool({
    name: 'stop',
    async execute(_, { signal, progress }) {
      await s.abort()
      reason = signal.aborted
      assert.equal(progress('too late'), false)
    },
  })
  const s = await session(t, [stop], calls('stop', {}))
  const run = await s.run('x')
  assert.equal(run.aborted, true)
  while (reason === undefined) await sleep(1)
  assert.equal(reason, true)
})

test('the end of an engine ends the calls of its toolboxes', async (t) => {
  const tb = toolbox(t)
  const own = new Engine({ workerThreads: 1 })
  const other = new Toolbox({ cwd: tb.dir, engine: own })
  const running = other.bash('sleep 600', { check: false })
  await sleep(50)
  await own.shutdown()
  assert.equal((await running).isError, true)
  await assert.rejects(other.ls(), { code: 'closed' })
})

test('bug 95: texts over the string limit are typed errors, both ways, and the toolbox goes on', async (t) => {
  const tb = toolbox(t)
  writeFileSync(join(tb.dir, 'big.txt'), 'x'.repeat(40_000))
  tb.add({ name: 'echo', parameters: { type: 'object', properties: { text: { type: 'string' } } }, execute: ({ text }) => text })
  const s = await session(t, [{ name: 'big', execute: () => 'y'.repeat(30_000) }], calls('big', {}))
  t.after(() => bridge.setLimit(constants.MAX_STRING_LENGTH))
  bridge.setLimit(10_000)
  const tooLarge = { name: 'BranchlineError', code: 'too_large', message: /\d{5} bytes/ }
  await assert.rejects(tb.read('big.txt'), tooLarge)
  await assert.rejects(tb.bash('head -c 30000 big.txt'), tooLarge)
  // Arguments that the function could not be given.
  await assert.rejects(tb.call('echo', { text: 'z'.repeat(20_000) }), { code: 'tool_failed', message: /longer than/ })
  assert.equal((await tb.call('echo', { text: 'short' })).text, 'short')
  // What a tool gave is stored, though its event cannot be told.
  await assert.rejects(s.run('x'), tooLarge)
  await s.waitIdle()
  bridge.setLimit(constants.MAX_STRING_LENGTH)
  assert.equal((await s.context()).messages.find((message) => message.role === 'toolResult').content[0].text.length, 30_000)
})

test('bug 95: numbers beyond 2^53 keep their digits in the bytes', async (t) => {
  const s = await session(t, [])
  const id = await s.appendCustom('data', JSON.parse('{"z":1,"a":9007199254740991}'))
  assert.match(String(s.tree.raw(id)), /"data":\{"z":1,"a":9007199254740991\}/)
  const tb = toolbox(t)
  writeFileSync(join(tb.dir, 'n.json'), '{"n":9007199254740993}')
  assert.equal((await tb.read('n.json')).text, '{"n":9007199254740993}')
})
