// What the model sees: compaction, statistics, messages of the host, shell runs, edits, queues.
import assert from 'node:assert/strict'
import test from 'node:test'
import { BranchlineError } from '../index.mjs'
import { says, session } from './support.mjs'

const script = (...replies) => ({ replies, atEnd: 'repeatLast' })
const code = (code) => (error) => error instanceof BranchlineError && error.code === code
const roles = async (session) => (await session.context()).messages.map((message) => message.role)
const long = (letter) => says(letter.repeat(90_000))

test('compaction', async (t) => {
  const talk = await session(t, { script: script(long('x'), long('y'), says('What was said.')) })
  await talk.run('a')
  await talk.run('b')
  const result = await talk.compact('Keep the letters.')
  assert.match(result.summary, /What was said\./)
  assert.equal(talk.entry(result.entryId).type, 'compaction')
  assert.deepEqual(Object.keys(result.details).sort(), ['modifiedFiles', 'readFiles'])
  assert.ok(talk.tree.has(result.firstKeptEntryId) && result.tokensBefore > 0)
  assert.ok((await roles(talk)).includes('compactionSummary'))
  await assert.rejects(talk.compact(), code('already_compacted'))
  await assert.rejects((await session(t)).compact(), code('nothing_to_compact'))
})

test('a compaction can be aborted by itself', async (t) => {
  const talk = await session(t, { script: script(long('x'), long('y'), { ...says('half'), hang: true }) })
  await talk.run('a')
  await talk.run('b')
  const events = talk.events()
  const refused = assert.rejects(talk.compact(), code('cancelled'))
  for await (const event of events) {
    if (event.type === 'compaction_start') talk.abortSummary()
    if (event.type === 'compaction_end') break
  }
  await refused
  assert.equal(talk.state.phase, 'idle')
})

test('statistics', async (t) => {
  const reply = (text, input, output) => ({ ...says(text), usage: { input, output } })
  const talk = await session(t, { script: script(reply('one', 5, 2), reply('two', 7, 3)), dir: undefined })
  const { leaf } = await talk.run('a')
  await talk.run('b')
  await talk.navigate(leaf)
  const stats = await talk.stats()
  assert.deepEqual([stats.userMessages, stats.assistantMessages, stats.toolCalls], [2, 2, 0])
  assert.deepEqual(stats.tokens, { input: 12, output: 5, cacheRead: 0, cacheWrite: 0, cost: 0 })
  assert.deepEqual(stats.costs, [{ model: 'scripted/test', tokens: stats.tokens }])
  assert.ok((await talk.contextUsage()).tokens > 0)
  assert.deepEqual((await talk.forkMessages()).map((message) => message.text), ['a', 'b'])
})

test('messages of the host', async (t) => {
  const talk = await session(t, { script: script(says('one'), says('two')) })
  const run = talk.promptCustom({ customType: 'note', content: 'The tests are red.', display: false, details: { run: 7 } })
  assert.equal((await run.result()).text, 'one')
  const stored = [...talk.tree].find((entry) => entry.type === 'custom_message')
  assert.deepEqual([stored.customType, stored.display, stored.details], ['note', false, { run: 7 }])
  const id = await talk.sendCustomMessage({ customType: 'note', content: 'stored' })
  assert.equal(talk.entry(id).content, 'stored')
  assert.equal(await talk.sendCustomMessage({ customType: 'note', content: 'later' }, { delivery: 'nextTurn' }), null)
  await talk.run('b')
  assert.equal((await roles(talk)).filter((role) => role === 'custom').length, 3)
  await assert.rejects(talk.sendCustomMessage({ customType: 'x', content: 'y' }, { delivery: 'never' }), code('invalid_argument'))
  await assert.rejects(talk.sendCustomMessage({ content: 'y' }), code('invalid_argument'))
})

test('shell runs of the user', async (t) => {
  const talk = await session(t, { script: script({ ...says('half'), waitGate: 'go' }, says('two')) })
  const run = talk.prompt('a')
  await run.accepted
  assert.equal(await talk.recordBash({ command: 'ls', output: 'notes.txt', exitCode: 0 }), null)
  assert.equal(talk.state.pendingBash, 1)
  talk.engine.model.openGate('go')
  await run.result()
  const id = await talk.recordBash({ command: 'env', excludeFromContext: true })
  assert.equal(talk.entry(id).message.excludeFromContext, true)
  const [first] = (await talk.context()).messages.filter((message) => message.role === 'bashExecution')
  assert.deepEqual([first.command, first.output, first.exitCode], ['ls', 'notes.txt', 0])
  await assert.rejects(talk.recordBash({ output: 'x' }), code('invalid_argument'))
})

test('editing what the model sees', async (t) => {
  const talk = await session(t)
  await talk.run('my key is 1234')
  const [{ entryId }] = await talk.forkMessages()
  const edit = await talk.editContext(entryId, { content: 'my key is hidden' })
  assert.equal(talk.entry(edit).type, 'context_edit')
  assert.ok(JSON.stringify((await talk.context()).messages).includes('hidden'))
  await talk.editContext(entryId, null)
  assert.ok(!(await roles(talk)).includes('user'))
  await assert.rejects(talk.editContext(entryId, { text: 'x' }), code('invalid_replacement'))
})

test('queues delivered at once', async (t) => {
  const talk = await session(t, { script: script({ ...says('half'), waitGate: 'go' }, says('two'), says('three')) })
  await talk.setQueueModes({ followUpAll: true })
  const run = talk.prompt('a')
  await run.accepted
  await talk.followUp('b')
  await talk.followUp('c')
  talk.engine.model.openGate('go')
  await run.result()
  assert.deepEqual((await roles(talk)).filter((role) => role !== 'system'), ['user', 'assistant', 'user', 'user', 'assistant'])
})

test('the wait before a retry can be ended', async (t) => {
  const talk = await session(t, { script: script({ content: [], stop: 'error', error: '503 service unavailable' }) })
  const run = talk.prompt('a')
  for await (const event of run) {
    if (event.type === 'auto_retry_start') {
      assert.equal(talk.state.phase, 'retrying')
      talk.abortRetry()
    }
  }
  assert.equal((await run.result()).stopReason, 'error')
})
