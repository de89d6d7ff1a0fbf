import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { constants } from 'node:buffer'
import { writeFileSync } from 'node:fs'
import test from 'node:test'
import { BranchlineError, Engine, Session, Toolbox } from '../index.mjs'
import { directory, engine, session } from './support.mjs'

const require = createRequire(import.meta.url)
const { bridge, call, ask } = require('../lib/native.cjs')

test('errors are typed, name the code and the path, and show who called', async (t) => {
  const path = join(directory(t), 'letter.txt')
  writeFileSync(path, 'Dear reader,\n')
  async function caller() {
    await Session.open(path, { engine: engine(t) })
  }
  const error = await caller().catch((error) => error)
  assert.ok(error instanceof BranchlineError)
  assert.ok(error instanceof Error)
  assert.equal(error.name, 'BranchlineError')
  assert.equal(error.code, 'invalid_session_file')
  assert.equal(error.path, path)
  assert.ok(error.message.includes(path))
  assert.match(error.stack, /caller/)
})

test('each refusal has its code', async (t) => {
  const dir = directory(t)
  const s = await session(t, { dir })
  const codes = async (promise) => (await promise.then(() => 'none', (error) => error.code))
  assert.equal(await codes(s.fork('unknown')), 'entry_not_found')
  assert.equal(await codes(s.navigate('unknown')), 'entry_not_found')
  assert.equal(await codes(s.setLabel('unknown', 'x')), 'entry_not_found')
  assert.equal(await codes(s.setModel('nobody/nothing')), 'unknown_model')
  assert.equal(await codes(s.setTools(['hammer'])), 'unknown_tool')
  assert.equal(await codes(s.setThinkingLevel('enormous')), 'invalid_argument')
  assert.equal(await codes(s.clone()), 'not_saved')
  assert.equal(await codes(Session.create({ engine: s.engine, cwd: dir, id: 'no spaces!' })), 'invalid_session_id')
  await s.run('Hi')
  assert.equal(await codes(s.fork(s.leaf)), 'invalid_fork_target')
  assert.equal(await codes(Session.open(s.path, { engine: s.engine })), 'session_locked')
  const reader = await Session.open(s.path, { engine: s.engine, readOnly: true })
  assert.equal(await codes(reader.setName('x')), 'read_only')
  const modelless = await Session.create({ engine: new Engine(), inMemory: true })
  assert.equal(await codes(modelless.run('Hi')), 'no_model')
  assert.throws(() => s.tree.entries({ after: 'unknown' }), { code: 'entry_not_found' })
})

test('wrong arguments are refused by name', async (t) => {
  const s = await session(t)
  const bad = { name: 'BranchlineError', code: 'invalid_argument' }
  assert.throws(() => s.prompt(5), bad)
  await assert.rejects(s.run('x', { wait: true }), { ...bad, message: /unknown field `wait`/ })
  await assert.rejects(Session.create({ directory: '.' }), { ...bad, message: /unknown field `directory`/ })
  await assert.rejects(Session.create({ durability: 'always' }), bad)
  await assert.rejects(Session.create({ permissions: 'yolo' }), { ...bad, message: /read-only, ask, workspace, allow/ })
  await assert.rejects(s.steer(), bad)
  await assert.rejects(s.navigate(null), bad)
  await assert.rejects(s.setTools('read'), bad)
  await assert.rejects(s.appendCustom('x', 1n), bad)
  await assert.rejects(s.appendCustom('x', () => 1), bad)
  assert.throws(() => s.entry(undefined), bad)
  assert.throws(() => s.tree.children(3), bad)
  assert.throws(() => new Engine({ workerThreads: 'many' }), bad)
  assert.throws(() => s.engine.addScriptedModel('x', [{ contents: [] }]), bad)
  assert.throws(() => new Session(), TypeError)
})

test('after close every call says so, and the tree can still be read', async (t) => {
  const s = await session(t, { dir: directory(t) })
  await s.run('Hi')
  await s.close()
  await s.close()
  const closed = { name: 'BranchlineError', code: 'closed' }
  await assert.rejects(s.run('x'), closed)
  await assert.rejects(s.steer('x'), closed)
  await assert.rejects(s.navigate(s.tree.lastId), closed)
  await assert.rejects(s.setName('x'), closed)
  await assert.rejects(s.waitIdle(), closed)
  assert.equal((await s.events().next()).done, true)
  assert.equal(s.entry(s.tree.lastId).message.role, 'assistant')
  await s.engine.shutdown()
  await s.engine.shutdown()
  await assert.rejects(s.engine.createSession({ inMemory: true }), closed)
  await assert.rejects(s.engine.listSessions(), closed)
})

test('a text over the string limit is an error; bytes and everything else still work', async (t) => {
  const s = await session(t)
  const big = await s.appendCustom('big', 'x'.repeat(100_000))
  const bigMessage = await s.appendCustomMessage('big', 'x'.repeat(100_000))
  t.after(() => bridge.setLimit(constants.MAX_STRING_LENGTH))
  bridge.setLimit(50_000)
  const tooLarge = { name: 'BranchlineError', code: 'too_large', message: /\d{6} bytes/ }
  assert.throws(() => s.entry(big), tooLarge)
  assert.throws(() => [...s.tree], tooLarge)
  await assert.rejects(s.context(), tooLarge)
  assert.equal(JSON.parse(s.tree.raw(big)).data.length, 100_000)
  assert.ok(s.tree.raw(bigMessage).length > 100_000)
  assert.equal([...s.tree.walk()].length, s.tree.size)

  // An event: the pull that meets it fails, what follows comes.
  const run = s.prompt('y'.repeat(60_000))
  const seen = []
  let failures = 0
  for (;;) {
    try {
      const step = await run.next()
      if (step.done) break
      seen.push(step.value.type)
    } catch (error) {
      assert.equal(error.code, 'too_large')
      failures++
    }
  }
  assert.ok(failures > 0)
  await s.waitIdle()
  await s.setName('still here')
  assert.equal(s.name, 'still here')
})

test('multi-byte texts count by what a string would hold', async (t) => {
  const s = await session(t)
  const id = await s.appendCustom('big', 'ü'.repeat(1000))
  t.after(() => bridge.setLimit(constants.MAX_STRING_LENGTH))
  bridge.setLimit(1500)
  assert.equal(s.entry(id).data.length, 1000)
})

test('a fault inside the library is a typed error and the process lives', async (t) => {
  assert.throws(() => ask(() => bridge.panic()), { name: 'BranchlineError', code: 'internal', message: /asked for/ })
  await assert.rejects(call((ticket) => bridge.panicLater(ticket)), { code: 'internal', message: /asked for/ })
  assert.equal((await (await session(t)).run('Hi')).text, 'Hello.')
})

test('misspelt options are refused where they are few, too', async (t) => {
  const s = await session(t)
  const names = (name) => ({ name: 'BranchlineError', code: 'invalid_argument', message: new RegExp(`no option "${name}"`) })
  const message = { customType: 'x', content: 'c' }
  const size = s.tree.size
  assert.throws(() => s.events({ capcity: 5 }), names('capcity'))
  await assert.rejects(s.sendCustomMessage(message, { delivry: 'steer' }), names('delivry'))
  await assert.rejects(s.appendCustomMessage('x', 'c', { dispaly: false }), names('dispaly'))
  assert.throws(() => s.tree.entries({ aftr: 'x' }), names('aftr'))
  await assert.rejects(new Toolbox({ engine: s.engine }).call('ls', {}, { chek: false }), names('chek'))
  assert.equal(s.tree.size, size)
  for (const capacity of [-1, 1.5, 2 ** 32, NaN, '5']) {
    assert.throws(() => s.events({ capacity }), { code: 'invalid_argument', message: /capacity must be a whole number/ })
  }
  await s.events({ capacity: 1 }).return()
})

test('arguments of the wrong type are refused in words of the host', async (t) => {
  const s = await session(t)
  const tb = new Toolbox({ engine: s.engine })
  const signal = {}
  const size = s.tree.size
  const wrong = [
    [() => s.run('x', null), /options must be an object/],
    [() => s.prompt('x', null), /options must be an object/],
    [() => s.promptCustom({ customType: 'x', content: 'c' }, null), /options must be an object/],
    [() => s.events(null), /options must be an object/],
    [() => s.branch(undefined, null), /options must be an object/],
    [() => s.explore(['x'], null), /options must be an object/],
    [() => s.sendCustomMessage({ customType: 'x', content: 'c' }, null), /options must be an object/],
    [() => s.appendCustomMessage('x', 'c', null), /options must be an object/],
    [() => s.tree.entries(null), /options must be an object/],
    [() => tb.call('ls', {}, null), /options must be an object/],
    [() => new Toolbox(null), /options must be an object/],
    [() => Session.create(null), /options must be an object/],
    [() => Session.create({ engine: 5 }), /engine must be an Engine/],
    [() => s.run('x', { signal }), /signal must be an AbortSignal/],
    [() => s.events({ signal }), /signal must be an AbortSignal/],
    [() => s.explore(['x'], { signal }), /signal must be an AbortSignal/],
    [() => tb.call('ls', {}, { signal }), /signal must be an AbortSignal/],
    [() => tb.call('ls', {}, { onProgress: 5 }), /onProgress must be a function/],
    [() => s.setTools('read'), /list of names and tools/],
    [() => s.setTools([5]), /name of a tool must be a string, not number/],
    [() => s.compact(5), /instructions must be a string, not number/],
    [() => s.setLabel('x', 5), /label must be a string, not number/],
    [() => s.appendCustomMessage('x', 'c', { display: 'no' }), /display must be true or false/],
    [() => s.tree.children(5), /id must be a string, not number/],
    [() => s.tree.branch(5), /leaf must be a string, not number/],
    [() => s.tree.entries({ after: 5 }), /after must be a string, not number/],
    [() => s.context(5), /leaf must be a string, not number/],
    [() => s.engine.model.openGate(5), /gate must be a string, not number/],
  ]
  for (const [call, message] of wrong) {
    await assert.rejects(async () => call(), { name: 'BranchlineError', code: 'invalid_argument', message }, String(call))
  }
  assert.equal(s.tree.size, size)
})

test('lone surrogates and NUL in texts do not break anything', async (t) => {
  const s = await session(t)
  const id = await s.appendCustom('host', 'a\u0000b')
  assert.equal(s.entry(id).data, 'a\u0000b')
  assert.equal((await s.run('\ud800 half')).stopReason, 'stop')
})

test('a list is no options object, at any depth', async (t) => {
  const engine = new Engine({ workerThreads: 1 })
  t.after(() => engine.shutdown())
  const s = await engine.createSession({ inMemory: true, model: 'scripted/demo' })
  const wrong = [
    () => new Engine([]),
    () => new Engine({ network: [] }),
    () => engine.createSession([]),
    () => engine.createSession({ inMemory: true, resources: [] }),
    () => engine.createSession({ inMemory: true, resources: { sections: [[]] } }),
    () => engine.openSession('x.jsonl', []),
    () => engine.addReplay('x.jsonl', []),
    () => s.setResources([]),
    () => s.runBash('true', []),
    () => s.newSession([]),
  ]
  for (const call of wrong) {
    await assert.rejects(async () => call(), (error) => {
      assert.equal(error.code, 'invalid_argument', String(call))
      assert.match(error.message, /must be an object|a list, expected an object/)
      return true
    }, String(call))
  }
})
