import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { BranchlineError, Engine, Session, Tree, listSessions, readSession } from '../index.mjs'
import { directory, engine, says, session } from './support.mjs'

test('a new session runs a prompt and tells what it came to', async (t) => {
  const s = await session(t, { script: [{ ...says('Hello.'), usage: { input: 7, output: 3 } }] })
  assert.equal(s.path, null)
  assert.equal(s.state.phase, 'idle')
  const result = await s.run('Hi')
  assert.equal(result.text, 'Hello.')
  assert.equal(result.stopReason, 'stop')
  assert.equal(result.usage.totalTokens, 10)
  assert.equal(result.aborted, false)
  assert.equal(result.leaf, s.leaf)
  assert.deepEqual(result.messages.map((message) => message.role), ['system', 'user', 'assistant'])
})

test('a session is written to its file and opened again', async (t) => {
  const dir = directory(t)
  const s = await session(t, { dir, name: 'First' })
  await s.run('Hi')
  const { path, id, leaf } = s
  await s.close()
  assert.equal(JSON.parse(readFileSync(path, 'utf8').split('\n')[0]).type, 'session')

  const again = await Session.open(path, { engine: s.engine })
  assert.equal(again.id, id)
  assert.equal(again.leaf, leaf)
  assert.equal(again.name, 'First')
  assert.equal(again.cwd, dir)
  await again.close()

  const recent = await Session.continueRecent({ engine: s.engine, cwd: dir, sessionDir: dir })
  assert.equal(recent.id, id)
  await recent.close()
})

test('navigating moves the leaf; a user message is given back for editing', async (t) => {
  const s = await session(t)
  await s.run('one')
  const { leaf } = s
  await s.run('two')
  const question = s.tree.branch(s.leaf).find((id) => s.entry(id).message?.content[0]?.text === 'two')
  const arrived = await s.navigate(question)
  assert.deepEqual(arrived, { leaf, editorText: 'two', cancelled: false, summaryEntry: null })
  assert.equal(s.leaf, leaf)
  await s.run('three')
  assert.equal(s.tree.children(leaf).length, 2)
  assert.ok(!s.tree.branch(s.leaf).includes(question))
})

test('a fork and a clone are sessions of their own', async (t) => {
  const s = await session(t, { dir: directory(t) })
  await s.run('one')
  await s.run('two')
  const before = s.tree.size
  const question = s.tree.branch(s.leaf).findLast((id) => s.entry(id).message?.role === 'user')
  const { session: fork, editorText } = await s.fork(question)
  assert.equal(editorText, 'two')
  assert.notEqual(fork.path, s.path)
  assert.ok(!fork.tree.has(question))
  const at = await s.fork(s.leaf, { position: 'at' })
  assert.equal(at.editorText, null)
  assert.ok(at.session.tree.has(question))
  const clone = await s.clone()
  assert.deepEqual(clone.tree.branch(clone.leaf).slice(0, before), s.tree.branch(s.leaf))
  await clone.run('three')
  assert.equal(s.tree.size, before)
  await Promise.all([fork.close(), at.session.close(), clone.close()])
})

test('labels and names', async (t) => {
  const s = await session(t)
  await s.run('one')
  const target = s.leaf
  assert.equal(s.label(target), undefined)
  assert.equal(await s.setLabel(target, 'checkpoint'), s.leaf)
  assert.equal(s.label(target), 'checkpoint')
  assert.equal(s.tree.labels().get(target).text, 'checkpoint')
  assert.ok(Date.parse(s.tree.label(target).timestamp) > 0)
  assert.equal([...s.tree.walk()].find((node) => node.id === target).label, 'checkpoint')
  await s.setLabel(target, null)
  assert.equal(s.label(target), undefined)
  await s.setName('A name')
  assert.equal(s.name, 'A name')
  assert.equal(s.tree.name, 'A name')
})

test('model, thinking level and tools are chosen', async (t) => {
  const s = await session(t)
  await s.setModel('scripted/demo')
  await s.setThinkingLevel('low')
  await s.setTools(['read'])
  const { model, thinkingLevel, tools } = s.state
  assert.deepEqual({ model, thinkingLevel, tools }, { model: 'scripted/demo', thinkingLevel: 'low', tools: ['read'] })
  assert.ok(s.engine.models().some((known) => known.name === 'scripted/test' && known.contextWindow > 0))
})

test('the tree answers from the file, entry by entry', async (t) => {
  const s = await session(t)
  await s.run('one')
  const { tree } = s
  assert.ok(tree instanceof Tree)
  assert.equal(s.tree, tree)
  const path = tree.branch(s.leaf)
  assert.equal(path.length, tree.size)
  assert.equal(tree.lastId, s.leaf)
  assert.equal(tree.header.type, 'session')
  assert.deepEqual(tree.children(null), path.slice(0, 1))
  assert.equal(tree.parent(path[0]), null)
  assert.equal(tree.parent(path[1]), path[0])
  assert.deepEqual([...tree].map((entry) => entry.id), path)
  assert.deepEqual([...tree.entries({ after: path[0] })].map((entry) => entry.id), path.slice(1))
  assert.deepEqual([...tree.walk()].map((node) => node.depth), path.map((_, depth) => depth))
  assert.equal(tree.raw(s.leaf).toString(), JSON.stringify(tree.entry(s.leaf)))
  assert.equal(tree.entry('unknown'), undefined)
  assert.equal(tree.raw('unknown'), undefined)
  assert.deepEqual(tree.branch(null), [])
  assert.deepEqual(tree.diagnostics(), [])
  const size = tree.size
  await s.run('two')
  assert.ok(tree.size > size, 'the view sees new entries')
})

test('an id that no entry has is refused, not taken for another', async (t) => {
  const s = await session(t)
  await s.run('one')
  const { tree } = s
  const refused = (error) => error instanceof BranchlineError && error.code === 'entry_not_found' && error.message.includes('"nope"')
  assert.throws(() => tree.branch('nope'), refused)
  assert.throws(() => tree.children('nope'), refused)
  await assert.rejects(tree.context('nope'), refused)
  await assert.rejects(s.context('nope'), refused)
  await assert.rejects(tree.exportBranch('nope'), refused)
  assert.deepEqual(tree.children(s.leaf), [])
  assert.deepEqual([tree.branch(null), tree.branch(undefined)], [[], []])
})

test('a parent that the file has lost still has its children', async (t) => {
  const path = join(directory(t), 'orphans.jsonl')
  const entry = (id, parentId) => ({ type: 'custom', customType: 'x', id, parentId, timestamp: '2026-01-01T00:00:00.000Z' })
  const header = { type: 'session', version: 3, id: 'orphans', timestamp: '2026-01-01T00:00:00.000Z', cwd: '/' }
  const lines = [header, entry('aaaaaaaa', null), entry('bbbbbbbb', 'lost')]
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const tree = await readSession(path, { engine: engine(t) })
  assert.deepEqual(tree.children('lost'), ['bbbbbbbb'])
  assert.throws(() => tree.children('nope'), { code: 'entry_not_found' })
  assert.throws(() => tree.branch('lost'), { code: 'entry_not_found' })
})

test('the context is what the model sees', async (t) => {
  const s = await session(t)
  await s.run('one')
  const first = s.leaf
  await s.run('two')
  const context = await s.context()
  assert.deepEqual(context.messages.map((message) => message.role), ['system', 'user', 'assistant', 'user', 'assistant'])
  assert.equal(context.entryIds.length, 5)
  assert.equal(context.entryIds[2], first)
  assert.deepEqual(context.model, { provider: 'scripted', modelId: 'test' })
  assert.equal((await s.context(first)).messages.length, 3)
  assert.equal((await s.context(null)).messages.length, 0)
})

test('custom entries and messages keep their data', async (t) => {
  const s = await session(t)
  const data = { z: 1, a: [true, null, 'ü\u0000'], nested: { k: 2 ** 53 - 1 } }
  const id = await s.appendCustom('host', data)
  assert.deepEqual(s.entry(id).data, data)
  assert.deepEqual(Object.keys(s.entry(id).data), ['z', 'a', 'nested'])
  assert.equal('data' in s.entry(await s.appendCustom('bare')), false)
  const message = await s.appendCustomMessage('note', 'Mind the gap', { display: false, details: { page: 3 } })
  const { content, display, details } = s.entry(message)
  assert.deepEqual({ content, display, details }, { content: 'Mind the gap', display: false, details: { page: 3 } })
})

test('sessions of a directory are listed', async (t) => {
  const dir = directory(t)
  const s = await session(t, { dir })
  await s.run('What is this?')
  const [info, ...more] = await listSessions({ engine: s.engine, cwd: dir, sessionDir: dir })
  assert.equal(more.length, 0)
  assert.equal(info.path, s.path)
  assert.equal(info.firstMessage, 'What is this?')
  assert.equal(info.messageCount, 3)
  assert.equal(info.allMessagesText, null)
  const [full] = await s.engine.listSessions({ sessionDir: dir, text: true })
  assert.match(full.allMessagesText, /What is this/)
})

test('`await using` closes, and two engines share nothing', async (t) => {
  const dir = directory(t)
  const s = await session(t, { dir })
  await s.run('Hi')
  await s[Symbol.asyncDispose]()
  assert.equal(s.state.phase, 'closed')
  const other = new Engine()
  const opened = await other.openSession(s.path)
  assert.throws(() => other.addScriptedModel('', []), { code: 'invalid_argument' })
  await assert.rejects(opened.setModel('scripted/test'), { code: 'unknown_model' })
  await other[Symbol.asyncDispose]()
  assert.equal(opened.state.phase, 'closed')
  await assert.rejects(engine(t).openSession(dir), (error) => error.code !== 'closed')
})

test('a file is read without a session, and a path of it exported', async (t) => {
  const dir = directory(t)
  const s = await session(t, { dir })
  await s.run('Hi')
  const tree = await readSession(s.path, { engine: s.engine }) // while the session has it, and its lock
  assert.deepEqual([...tree], [...s.tree])
  assert.equal(tree.lastId, s.leaf)
  assert.deepEqual((await tree.context(tree.lastId)).messages, (await s.context()).messages)
  const lines = String(await tree.exportBranch(s.leaf)).trimEnd().split('\n').map((line) => JSON.parse(line))
  assert.deepEqual(lines.map((line) => line.type), ['session', ...[...tree].map((entry) => entry.type)])
  const missing = join(dir, 'none.jsonl')
  await assert.rejects(s.engine.readSession(missing), { code: 'storage_failed', path: missing })
  await assert.rejects(readSession(s.path, { readOnly: true, engine: s.engine }), { code: 'invalid_argument' })
})

test('data that would not be kept whole is refused', async (t) => {
  const nested = (depth) => (depth === 0 ? 'leaf' : [nested(depth - 1)])
  const s = await session(t)
  for (const depth of [110, 150]) {
    await assert.rejects(s.appendCustom('x', nested(depth)), { code: 'invalid_argument', message: /nested deeper than 100 levels/ })
  }
  assert.deepEqual(s.entry(await s.appendCustom('x', nested(99))).data, nested(99))
})
