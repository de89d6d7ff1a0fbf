// Permissions with handlers and rules, hooks around tool calls, budgets, shell runs.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { BranchlineError, Budget, Engine, Toolbox } from '../index.mjs'
import { collect, directory, node, says, session } from './support.mjs'

const calls = (name, args) => ({ content: [{ type: 'toolCall', id: 'c1', name, arguments: args }] })
const WRITE = calls('write', { path: 'new.txt', content: 'hello' })
const SHELL = calls('bash', { command: 'echo hello' })
const script = (...replies) => ({ replies: [...replies, says('ok')], atEnd: 'repeatLast' })
const code = (code) => (error) => error instanceof BranchlineError && error.code === code

/** A session in a directory of its own. */
async function guarded(test, replies, options) {
  const cwd = directory(test)
  const made = await session(test, { script: script(...replies), cwd, tools: undefined, ...options })
  return Object.assign(made, { dir: cwd })
}

/** What was decided in a run, and what its tools said. */
async function outcome(session) {
  const run = session.prompt('x')
  const events = await collect(run)
  const decided = events.filter((event) => event.type === 'permission_decision')
  const { messages } = await run.result()
  const said = messages.filter((message) => message.role === 'toolResult').map((message) => message.content[0].text)
  return { decided: decided.map((event) => [event.toolName, event.decision, event.by]), said, events }
}

test('a handler is asked', async (t) => {
  const asked = []
  const s = await guarded(t, [WRITE, SHELL], {
    async permissions(request) {
      asked.push(request)
      return request.tool === 'write' ? true : { decision: 'deny', reason: 'no shell today' }
    },
  })
  const { decided, said } = await outcome(s)
  assert.equal(readFileSync(join(s.dir, 'new.txt'), 'utf8'), 'hello')
  assert.deepEqual(decided, [['write', 'allow', 'handler'], ['bash', 'deny', 'handler']])
  assert.match(said[1], /no shell today/)
  const [write, shell] = asked
  assert.deepEqual([write.effect, write.arguments.path, write.sessionId, write.callId], ['write', 'new.txt', s.id, 'c1'])
  assert.deepEqual([write.paths[0].given, write.paths[0].inside], ['new.txt', true])
  assert.deepEqual([shell.effect, shell.command, shell.paths, shell.cwd], ['execute', 'echo hello', [], s.cwd])
  assert.ok(shell.signal instanceof AbortSignal)
})

test('what is no answer denies', async (t) => {
  const fail = () => {
    throw new Error('the dialog is broken')
  }
  for (const [handler, by] of [[fail, 'handler_failed'], [() => undefined, 'handler_failed'], [undefined, 'no_handler']]) {
    const { decided, said } = await outcome(await guarded(t, [SHELL], { permissions: { preset: 'ask', handler } }))
    assert.deepEqual(decided, [['bash', 'deny', by]])
    assert.doesNotMatch(said[0], /^hello/)
  }
  let aborted
  const handler = ({ signal }) =>
    new Promise((answer) => {
      signal.addEventListener('abort', () => answer((aborted = true)))
    })
  const { decided } = await outcome(await guarded(t, [SHELL], { permissions: { handler, timeoutMs: 50 } }))
  assert.deepEqual([decided, aborted], [[['bash', 'deny', 'timeout']], true])
})

test('rules and roots', async (t) => {
  const cwd = directory(t)
  mkdirSync(join(cwd, 'src'))
  const permissions = { preset: 'allow', tools: { bash: 'deny' }, effects: { write: 'allow' }, root: join(cwd, 'src') }
  const inside = calls('write', { path: 'src/a.txt', content: 'a' })
  const { decided } = await outcome(await guarded(t, [WRITE, inside, SHELL], { cwd, permissions }))
  assert.deepEqual(decided.map(([, decision]) => decision), ['deny', 'allow', 'deny'])
  assert.ok(existsSync(join(cwd, 'src/a.txt')) && !existsSync(join(cwd, 'new.txt')))
  for (const permissions of ['yolo', 7, { tools: { bash: 'never' } }, { effects: { fly: 'deny' } }, { handler: 1 }, { rot: 'x' }]) {
    await assert.rejects(guarded(t, [], { permissions }), code('invalid_argument'))
  }
})

test('an answer for all of the session', async (t) => {
  let asked = 0
  const permissions = () => {
    asked++
    return { decision: 'allowAlways', scope: 'tool' }
  }
  const { decided } = await outcome(await guarded(t, [SHELL, SHELL], { permissions }))
  assert.deepEqual([decided.map(([, , by]) => by), asked], [['handler', 'earlier'], 1])
})

test('a question does not hold up an abort, and its session cannot be waited for', async (t) => {
  let ask
  const asked = new Promise((resolve) => (ask = resolve))
  const s = await guarded(t, [SHELL], {
    async permissions({ signal }) {
      await assert.rejects(s.waitIdle(), code('would_deadlock'))
      ask(signal)
      return new Promise(() => {})
    },
  })
  const run = s.prompt('x')
  const signal = await asked
  await s.abort()
  assert.ok((await run.result()).aborted)
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
})

test('permissions of an engine and of a toolbox', async (t) => {
  let asked = 0
  const engine = new Engine({ permissions: () => ++asked < 0 })
  t.after(() => engine.shutdown())
  engine.addScriptedModel('e', [SHELL, says('ok')])
  const s = await engine.createSession({ inMemory: true, model: 'scripted/e', cwd: directory(t) })
  await s.run('x')
  assert.equal(asked, 1)
  const tools = new Toolbox({ engine })
  assert.equal((await tools.bash('echo hello')).text, 'hello\n')
  tools.setPermissions('read-only')
  await assert.rejects(tools.bash('echo hello'), code('tool_failed'))
  await assert.rejects(new Toolbox({ engine, permissions: () => false }).bash('echo hello'), code('tool_failed'))
})

test('siblings ask the same handler', async (t) => {
  let asked = 0
  const s = await guarded(t, [says('begin'), SHELL], { permissions: () => ++asked > 0 })
  await s.run('x')
  const sibling = await s.branch()
  await s.close()
  assert.equal((await sibling.run('y')).text, 'ok')
  assert.equal(asked, 1)
})

test('hooks before and after a call', async (t) => {
  const seen = []
  const hook = {
    before({ name, callId, arguments: args }) {
      seen.push([name, callId, args])
      return { arguments: { command: 'echo changed' } }
    },
    async after({ arguments: args }, result) {
      seen.push([args.command, result.content[0].text, result.isError])
      return { content: 'redacted' }
    },
  }
  const { said } = await outcome(await guarded(t, [SHELL], { toolHooks: [hook], permissions: 'allow' }))
  assert.deepEqual(said, ['redacted'])
  assert.deepEqual(seen, [['bash', 'c1', { command: 'echo hello' }], ['echo changed', 'changed\n', false]])
})

test('hooks that stop a call', async (t) => {
  const broken = () => {
    throw new Error('broken hook')
  }
  const cases = [[async () => ({ block: 'not this one' }), /not this one/], [() => 'no', /^no$/], [broken, /broken hook/]]
  for (const [before, expected] of cases) {
    const { said } = await outcome(await guarded(t, [SHELL], { toolHooks: [{ before }], permissions: 'allow' }))
    assert.match(said[0], expected)
  }
  for (const toolHooks of [[{}], [{ befor() {} }], [{ before: 1 }], {}]) {
    await assert.rejects(guarded(t, [], { toolHooks }), code('invalid_argument'))
  }
})

test('budgets', async (t) => {
  const budget = new Budget({ requests: 2, wallTimeMs: 600_000 })
  const one = await session(t, { script: script({ ...says('one'), usage: { input: 5, output: 2 } }), budget })
  const two = await session(t, { budget: [budget] })
  await one.run('a')
  await two.run('a')
  assert.deepEqual([budget.used.requests, budget.used.turns], [2, 2])
  assert.ok(budget.used.tokens >= 7)
  const events = await collect(one.prompt('b'))
  const { limit, used, max } = events.find((event) => event.type === 'budget_exceeded')
  assert.deepEqual([limit, used, max], ['requests', 3, 2])
  assert.equal(one.state.phase, 'idle')
  budget.limits = { ...budget.limits, requests: 3 }
  assert.deepEqual([budget.limits.requests, budget.limits.wallTimeMs], [3, 600_000])
  assert.equal((await one.run('c')).text, 'ok')
  assert.throws(() => new Budget({ cost: -1 }), code('invalid_argument'))
  assert.throws(() => new Budget({ request: 1 }), code('invalid_argument'))
  await assert.rejects(session(t, { budget: {} }), code('invalid_argument'))
})

test('shell runs', async (t) => {
  const s = await guarded(t, [], { permissions: 'read-only' })
  const events = collect(s.events())
  const ended = await s.runBash('echo one; echo two', { id: 'mine' })
  assert.deepEqual([ended.output.trim(), ended.exitCode, ended.cancelled], ['one\ntwo', 0, false])
  const long = s.runBash('echo begun; sleep 600')
  for await (const event of s.events()) if (event.type === 'bash_execution_update') break
  s.abortBash()
  assert.ok((await long).cancelled)
  await s.close()
  const told = (await events).filter((event) => event.type === 'bash_execution_update' && event.id === 'mine')
  assert.equal(told.map((event) => event.delta).join('').trim(), 'one\ntwo')
})

test('handlers keep neither the process nor their session alive', async () => {
  const program = `
    import { Engine, Session } from './index.mjs'
    const engine = new Engine()
    engine.addScriptedModel('m', [{ content: [{ type: 'text', text: 'ok' }] }])
    const registry = new FinalizationRegistry(() => {
      console.log('collected')
      clearInterval(timer)
    })
    await (async () => {
      let session
      session = await Session.create({ engine, model: 'scripted/m', inMemory: true, permissions: () => session.id === '' })
      registry.register(session)
      await session.run('x')
    })()
    const timer = setInterval(() => gc(), 20)`
  const { stdout, code, hung } = await node(program, { args: ['--expose-gc'] })
  assert.deepEqual([stdout, code, hung], ['collected\n', 0, false])
})
