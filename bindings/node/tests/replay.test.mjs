// Recorded sessions that answer again.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import test from 'node:test'
import { Engine, Replay, Tool, Toolbox, tool } from '../index.mjs'
import { directory, hosted } from './support.mjs'

/** A recorded session: a question, a call of `clock`, an answer, another question. Gives its path. */
async function recording(t) {
  const dir = directory(t)
  const clock = tool({
    name: 'clock',
    description: 'Tells the time.',
    parameters: { type: 'object', properties: { zone: { type: 'string' } } },
    execute: ({ zone }) => `noon in ${zone}`,
  })
  const answers = [{ type: 'toolcall', name: 'clock', id: 'c1', arguments: { zone: 'Kyiv' } }, 'It is noon.', 'Nothing else.']
  const s = await hosted(t, () => answers.shift(), { dir, tools: [clock] })
  assert.equal((await s.run('What time is it?')).text, 'It is noon.')
  assert.equal((await s.run('And now?')).text, 'Nothing else.')
  await s.close()
  return { dir, path: s.path }
}

function engine(t) {
  const made = new Engine({ workerThreads: 2 })
  t.after(() => made.shutdown())
  return made
}

const results = (run) => run.messages.filter(({ role }) => role === 'toolResult').map(({ content }) => content[0].text)

test('a recorded session answers again, with its recorded tools', async (t) => {
  const { path } = await recording(t)
  const own = engine(t)
  const replay = await own.addReplay(path, { name: 'cassette' })
  assert.ok(replay instanceof Replay)
  assert.deepEqual(replay.models.map((model) => [model.name, model.api]), [['cassette/chat', 'replay']])
  assert.ok(own.models().some((model) => model.name === 'cassette/chat'))
  assert.deepEqual(replay.tools.map((made) => [made.name, made.description]), [['clock', 'Tells the time.']])
  assert.ok(replay.tools[0] instanceof Tool)
  const s = await own.createSession({ inMemory: true, permissions: 'allow', model: replay.models[0].name, tools: [...replay.tools] })
  assert.deepEqual(s.state.tools, ['clock'])
  const run = await s.run('What time is it?')
  assert.deepEqual([run.text, results(run)], ['It is noon.', ['noon in Kyiv']])
  assert.equal(replay.divergence, null)
  // Another way, from the same place on.
  await s.navigate(s.tree.branch(s.leaf)[0])
})

test('where a conversation leaves the recording both sides are told', async (t) => {
  const { path } = await recording(t)
  const own = engine(t)
  const replay = await own.addReplay(path)
  const s = await own.createSession({ inMemory: true, permissions: 'allow', model: 'replay/chat', tools: replay.tools })
  await s.run('What time is it?')
  const { stopReason, errorMessage } = await s.run('What day is it?')
  assert.equal(stopReason, 'error')
  assert.match(errorMessage, /left the recording at message 4.*And now\?.*What day is it\?/)
  const { at, recorded, actual } = replay.divergence
  assert.equal(at, 4)
  assert.match(JSON.stringify(recorded.map(({ message }) => message.content)), /And now\?/)
  assert.equal(typeof recorded[0].entryId, 'string')
  assert.match(JSON.stringify(actual.content), /What day is it\?/)
})

test('live tools may say something else only when that is allowed', async (t) => {
  const { path } = await recording(t)
  const clock = tool({ name: 'clock', execute: () => 'midnight' })
  const ask = async (options) => {
    const own = engine(t)
    const replay = await own.addReplay(path, options)
    const s = await own.createSession({ inMemory: true, permissions: 'allow', model: 'replay/chat', tools: [clock] })
    return [await s.run('What time is it?'), replay.divergence]
  }
  const [strict, divergence] = await ask()
  assert.equal(strict.stopReason, 'error')
  assert.match(JSON.stringify(divergence.actual), /midnight/)
  const [lenient, none] = await ask({ compareToolResults: false })
  assert.deepEqual([lenient.text, none], ['It is noon.', null])
})

test('recorded tools belong to sessions, engines and toolboxes, and outlive what they came from', async (t) => {
  const { path, dir } = await recording(t)
  const own = engine(t)
  const [clock] = (await own.addReplay(path)).tools
  assert.throws(() => clock.execute({}, {}), { code: 'invalid_argument', message: /recorded tool/ })
  const toolbox = new Toolbox({ cwd: dir, engine: own, tools: [clock] })
  await assert.rejects(toolbox.call('clock', { zone: 'Kyiv' }), { code: 'tool_failed', message: /no result/ })
  own.addTool(clock)
  const s = await own.createSession({ inMemory: true, permissions: 'allow', model: 'replay/chat', tools: ['clock'] })
  assert.deepEqual(results(await s.run('What time is it?')), ['noon in Kyiv'])
})

test('bad recordings and options are typed', async (t) => {
  const own = engine(t)
  const { path, dir } = await recording(t)
  await assert.rejects(own.addReplay(join(dir, 'missing.jsonl')), (error) => error.name === 'BranchlineError' && error.path === join(dir, 'missing.jsonl'))
  await assert.rejects(own.addReplay(path, { compareResults: false }), { code: 'invalid_argument', message: /compareResults/ })
  for (const name of ['', 'a/b', 'a b']) await assert.rejects(own.addReplay(path, { name }), { code: 'invalid_argument', message: /name/ })
  await assert.rejects(own.addReplay(path, { name: 5 }), { code: 'invalid_argument' })
  assert.throws(() => new Replay(), TypeError)
})
