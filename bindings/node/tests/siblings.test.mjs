// Siblings, explorations, and what leads from one session to the next.
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import test from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { BranchlineError, Budget, Exploration } from '../index.mjs'
import { collect, directory, node, says, session } from './support.mjs'

const hangs = { ...says('half'), hang: true }
const script = (...replies) => ({ replies, atEnd: 'repeatLast' })
const code = (code) => (error) => error instanceof BranchlineError && error.code === code

/** Waits until a session runs. */
async function running(session) {
  while (!session.state.running) await setTimeout(5)
}

test('a branch is another session over the same file', async (t) => {
  const dir = directory(t)
  const first = await session(t, { script: script(says('one'), says('two')), dir })
  const { leaf } = await first.run('a')
  const sibling = await first.branch(leaf)
  assert.deepEqual([first.sibling, sibling.sibling, sibling.leaf, sibling.path], [0, 1, leaf, first.path])
  assert.ok(sibling.isSiblingOf(first))
  const events = await collect(sibling.prompt('b'))
  assert.deepEqual([...new Set(events.map((event) => event.sibling))], [1])
  assert.equal(first.leaf, leaf)
  await first.close()
  assert.equal((await sibling.run('c')).text, 'two')
  await sibling.close()
})

test('a branch may begin anew, with choices of its own', async (t) => {
  const first = await session(t, { script: script(says('one')) })
  first.engine.addScriptedModel('other', [says('other')])
  await first.run('a')
  const root = await first.branch(null, { model: 'scripted/other', tools: ['read'] })
  assert.deepEqual([root.leaf, root.state.model, root.state.tools], [null, 'scripted/other', ['read']])
  assert.equal((await root.run('b')).text, 'other')
  assert.equal(first.tree.children(null).length, 2)
  await assert.rejects(first.branch('nothing'), code('entry_not_found'))
  await assert.rejects(first.branch(undefined, { modell: 'x' }), code('invalid_argument'))
})

test('explore and adopt', async (t) => {
  const replies = [says('begin'), { ...says('recursion'), usage: { input: 3, output: 1 } }, says('iteration'), says('on')]
  const first = await session(t, { script: script(...replies) })
  const { leaf } = await first.run('a')
  const exploration = first.explore(['use recursion', { text: 'use iteration', tools: ['read'] }], { at: leaf, limit: 1 })
  assert.ok(exploration instanceof Exploration)
  const results = await exploration.results()
  assert.deepEqual(results.map((result) => result.text), ['recursion', 'iteration'])
  assert.deepEqual(results.map((result) => [result.sibling, result.isComplete, result.error]), [[1, true, null], [2, true, null]])
  assert.deepEqual([results[0].usage.input, results[0].stopReason, results[0].messages.at(-1).role], [3, 'stop', 'assistant'])
  assert.deepEqual(results[1].session.state.tools, ['read'])
  assert.equal(first.leaf, leaf)
  const arrived = await first.adopt(results[0])
  assert.equal(first.leaf, results[0].leaf)
  assert.equal(arrived.leaf, first.leaf)
  assert.equal((await first.run('b')).text, 'on')
  await assert.rejects(first.adopt({}), code('invalid_argument'))
})

test('adopt can say what the others found', async (t) => {
  const first = await session(t, { script: script(says('begin'), says('one'), says('two'), says('Both found nothing.')) })
  await first.run('a')
  const [winner] = await first.explore(['x', 'y'], { limit: 1 }).results()
  const { summaryEntry } = await first.adopt(winner.session, { summarizeOthers: true })
  assert.match(first.entry(summaryEntry).summary, /Both found nothing\./)
})

test('events of an exploration are told apart', async (t) => {
  const first = await session(t, { script: script(says('x')) })
  const exploration = first.explore(['a', 'b', 'c'], { limit: 2, capacity: 4 })
  assert.deepEqual((await exploration.siblings()).map((sibling) => sibling.sibling), [1, 2, 3])
  const events = await collect(exploration)
  for (const number of [1, 2, 3]) {
    const own = events.filter((event) => event.sibling === number)
    assert.deepEqual([own[0].type, own.at(-1).type], ['agent_start', 'agent_settled'])
  }
  assert.equal((await exploration.results()).length, 3)
})

test('what fails is a result, what is refused is an error', async (t) => {
  const first = await session(t, { script: script({ content: [], stop: 'error', error: 'no luck' }, says('fine')) })
  const [failed, fine] = await first.explore(['a', 'b'], { limit: 1 }).results()
  assert.deepEqual([failed.stopReason, failed.errorMessage, failed.isComplete], ['error', 'no luck', false])
  assert.ok(fine.isComplete)
  await assert.rejects(first.explore([]).accepted, code('invalid_argument'))
  await assert.rejects(first.explore(['a'], { limits: 1 }).results(), code('invalid_argument'))
  await assert.rejects(first.explore([{ txt: 'a' }]).next(), code('invalid_argument'))
  assert.throws(() => first.explore('a'), code('invalid_argument'))
})

test('aborting one, or everything', async (t) => {
  const first = await session(t, { script: script(says('x'), hangs, says('y')) })
  await first.run('a')
  const exploration = first.explore(['b', 'c'], { limit: 1 })
  await running((await exploration.siblings())[0])
  await exploration.abortOne(0)
  await assert.rejects(exploration.abortOne(9), code('invalid_argument'))
  const [one, two] = await exploration.results()
  assert.deepEqual([one.aborted, two.text], [true, 'y'])

  const other = await session(t, { script: script(hangs) })
  const all = other.explore(['b', 'c'], { limit: 1 })
  const [sibling] = await all.siblings()
  await running(sibling)
  await all.abort()
  const [begun, never] = await all.results()
  assert.ok(begun.aborted)
  assert.equal(never.error.code, 'cancelled')
})

test('a signal aborts an exploration', async (t) => {
  const first = await session(t, { script: script(hangs) })
  const controller = new AbortController()
  const exploration = first.explore(['a'], { signal: controller.signal })
  const [sibling] = await exploration.siblings()
  await running(sibling)
  controller.abort(new Error('enough'))
  await assert.rejects(exploration.results(), /enough/)
  assert.equal(sibling.state.phase, 'idle')
  await assert.rejects(first.explore(['b'], { signal: controller.signal }).results(), /enough/)
})

test('leaving the loop early aborts all', async (t) => {
  const first = await session(t, { script: script(hangs) })
  const exploration = first.explore(['a', 'b'])
  const siblings = await exploration.siblings()
  for await (const event of exploration) if (event.type === 'message_update') break
  assert.deepEqual(siblings.map((sibling) => sibling.state.phase), ['idle', 'idle'])
})

test('an exploration keeps the process alive until all are done', async () => {
  const program = `
    import { Engine, Session } from './index.mjs'
    const engine = new Engine()
    engine.addScriptedModel('slow', { replies: [{ content: [{ type: 'text', text: 'x' }], delayMs: 200 }], atEnd: 'loop' })
    const session = await Session.create({ engine, model: 'scripted/slow', inMemory: true })
    session.explore(['a', 'b'], { limit: 1 }).results().then((results) => console.log(results.map((result) => result.text).join()))`
  const { stdout, code, hung } = await node(program)
  assert.deepEqual([stdout, code, hung], ['x,x\n', 0, false])
})

test('from one session to the next', async (t) => {
  const dir = directory(t)
  const first = await session(t, { script: script(says('one'), says('two')), dir })
  await first.run('a')
  const next = await first.newSession({ recordParent: true, name: 'second' })
  assert.deepEqual([next.name, next.state.model], ['second', first.state.model])
  await next.run('b')
  const { path, leaf } = next
  assert.equal(JSON.parse(readFileSync(path, 'utf8').split('\n')[0]).parentSession, first.path)
  await next.close()
  const there = await first.switch(path)
  assert.deepEqual([there.path, there.leaf, first.state.phase], [path, leaf, 'closed'])

  const elsewhere = join(directory(t), 'elsewhere.jsonl')
  copyFileSync(path, elsewhere)
  const copy = await there.importSession(elsewhere)
  assert.deepEqual([dirname(copy.path), basename(copy.path), copy.leaf], [dirname(path), 'elsewhere.jsonl', leaf])
  await copy.close()
  const again = await first.engine.importSession(elsewhere, { sessionDir: dir })
  assert.equal(basename(again.path), 'elsewhere-1.jsonl')
  await assert.rejects(first.engine.importSession('missing.jsonl'), code('storage_failed'))
})

test('a budget for all of an exploration', async (t) => {
  const first = await session(t, { script: script(says('x')) })
  const budget = new Budget({ requests: 1 })
  const [one, two] = await first.explore(['a', 'b'], { limit: 1, budget }).results()
  assert.deepEqual([one.isComplete, one.budgetExceeded], [true, null])
  assert.deepEqual([two.budgetExceeded.limit, two.budgetExceeded.max, budget.used.requests], ['requests', 1, 1])
  const branch = await first.branch(undefined, { budget: [budget] })
  assert.equal((await branch.run('c')).budgetExceeded.limit, 'requests')
  assert.equal((await first.run('d')).budgetExceeded, null)
  await assert.rejects(first.branch(undefined, { budget: 1 }), code('invalid_argument'))
})
