// Models that the host serves.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Budget, Engine, tool } from '../index.mjs'
import { collect, directory, hosted, node, packageDir } from './support.mjs'

const usage = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 }
const lookUp = tool({
  name: 'look_up',
  description: 'Looks a word up.',
  parameters: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] },
  execute: ({ word }) => `${word}: a thing`,
})

/** What an assistant message says and calls. */
const shown = ({ content }) => content.map((block) => block.text ?? block.thinking ?? `${block.name} ${JSON.stringify(block.arguments)}`)

test('a generator streams text and a tool call, which the loop runs and it answers', async (t) => {
  const asked = []
  const s = await hosted(
    t,
    async function* (request, { signal }) {
      asked.push(request)
      assert.ok(signal instanceof AbortSignal && !signal.aborted)
      const last = request.messages.at(-1)
      if (last.role === 'toolResult') {
        yield 'It is '
        await sleep(1)
        yield `"${last.content[0].text}".`
        yield { type: 'usage', usage }
        return
      }
      yield { type: 'thinking_delta', delta: 'A word.' }
      yield { type: 'text_delta', delta: 'Let me ' }
      yield 'see.'
      yield { type: 'toolcall_start', toolName: 'look_up', id: 'call1' }
      yield { type: 'toolcall_delta', delta: '{"word":' }
      yield { type: 'toolcall_delta', delta: '"tree"}' }
      yield { type: 'toolcall_end' }
    },
    { tools: [lookUp], systemPrompt: 'Be brief.', models: [{ id: 'chat', contextWindow: 9000, cost: { input: 1, output: 2 }, thinkingLevels: ['off', 'low'], reasoning: true }] },
  )
  const run = s.prompt('What is a tree?')
  const events = await collect(run)
  const result = await run.result()
  assert.equal(result.text, 'It is "tree: a thing".')
  const answers = result.messages.filter((message) => message.role === 'assistant')
  assert.deepEqual(answers.map(shown), [['A word.', 'Let me see.', 'look_up {"word":"tree"}'], ['It is "tree: a thing".']])
  assert.deepEqual(answers.map((message) => [message.provider, message.model, message.stopReason]), [['ide', 'chat', 'toolUse'], ['ide', 'chat', 'stop']])
  const deltas = events.filter((event) => event.assistantMessageEvent?.type === 'text_delta')
  assert.ok(deltas.length >= 4, 'the text came in pieces')
  assert.equal(result.usage.totalTokens, 15)
  assert.ok(Math.abs(result.usage.cost.total - 20e-6) < 1e-9)

  const [first, second] = asked
  assert.deepEqual([first.provider, first.model, first.purpose, first.sessionId], ['ide', 'chat', 'turn', s.id])
  assert.match(first.systemPrompt, /Be brief\./)
  assert.deepEqual(first.tools.map((declared) => declared.name), ['look_up'])
  assert.deepEqual(first.messages.map((message) => message.role), ['user'])
  assert.deepEqual(second.messages.map((message) => message.role), ['user', 'assistant', 'toolResult'])
  const [model] = s.engine.models().filter((model) => model.provider === 'ide')
  assert.deepEqual([model.name, model.contextWindow, model.thinkingLevels, model.cost.output], ['ide/chat', 9000, ['off', 'low'], 2])
})

test('what a function may give instead of a generator', async (t) => {
  const call = { type: 'toolcall', name: 'look_up', arguments: { word: 'x' } }
  const done = { type: 'done', message: { content: [{ type: 'text', text: 'whole' }] } }
  const stream = (...pieces) => ReadableStream.from(pieces)
  const forms = [
    [() => 'plain', ['plain'], 'stop'],
    [async () => 'later', ['later'], 'stop'],
    [() => ['a', 'b'], ['ab'], 'stop'],
    [() => [Promise.resolve('a'), undefined, null, 'b'], ['ab'], 'stop'],
    [async () => [{ type: 'thinking', text: 'hm' }, 'so'], ['hm', 'so'], 'stop'],
    [() => call, ['look_up {"word":"x"}'], 'toolUse'],
    [() => done, ['whole'], 'stop'],
    [async () => stream('str', 'eam'), ['stream'], 'stop'],
    [() => new Set(['set']), ['set'], 'stop'],
    [function* () { yield 'sync'; return ' end' }, ['sync end'], 'stop'],
    [function* () { yield 'cut'; yield { type: 'done', reason: 'length' }; yield 'never' }, ['cut'], 'length'],
  ]
  for (const [answer, content, reason] of forms) {
    const once = (request, context) => (request.messages.at(-1).role === 'user' ? answer(request, context) : 'over')
    const s = await hosted(t, once)
    const message = (await s.run('Hi')).messages.filter(({ role }) => role === 'assistant')[0]
    assert.deepEqual([shown(message), message.stopReason], [content, reason], String(answer))
  }
})

test('what fails is a failed response, of which what was written stays', async (t) => {
  const failures = [
    [async function* () { yield 'Half'; throw new Error('the model is gone') }, 'the model is gone', ['Half']],
    [() => { throw new TypeError('no such model here') }, 'no such model here', []],
    [() => Promise.reject('plain words'), 'plain words', []],
    [async function* () { yield 'Half'; yield { type: 'error', error: 'quota exhausted here' } }, 'quota exhausted here', ['Half']],
    [() => ({ type: 'nonsense' }), '"nonsense" is no event of an answer', []],
    [async function* () { yield { type: 'toolcall_delta', delta: '{' } }, /need a tool call/, []],
    [() => 5, /no event of an answer/, []],
    [() => [1n], /cannot be written as JSON/, []],
  ]
  for (const [answer, error, content] of failures) {
    const s = await hosted(t, answer)
    const result = await s.run('Hi')
    assert.equal(result.stopReason, 'error', String(answer))
    if (typeof error === 'string') assert.equal(result.errorMessage, error)
    else assert.match(result.errorMessage, error)
    assert.ok(!result.errorMessage.includes('.cjs'), 'no trace')
    assert.deepEqual(shown(s.entry(s.leaf).message), content)
  }
})

test('a bad event ends the generator', async (t) => {
  let ended = false
  const s = await hosted(t, async function* () {
    try {
      yield { type: 'text_delta' }
      assert.fail('it went on')
    } finally {
      ended = true
    }
  })
  assert.match((await s.run('Hi')).errorMessage, /"delta"/)
  await sleep(1)
  assert.equal(ended, true)
})

test('an abort while it streams: the signal fires, return() is called, the generator ends', async (t) => {
  const seen = []
  let ended
  const over = new Promise((resolve) => (ended = resolve))
  const s = await hosted(t, async function* (_, { signal }) {
    signal.addEventListener('abort', () => seen.push('signal'))
    try {
      for (let count = 0; ; count++) {
        yield `${count} `
        await sleep(1)
      }
    } finally {
      seen.push('finally')
      ended()
    }
  })
  for await (const event of s.prompt('Hi')) if (event.assistantMessageEvent?.type === 'text_delta') break
  await over
  assert.deepEqual(seen, ['signal', 'finally'])
  const { stopReason, content } = s.entry(s.leaf).message
  assert.equal(stopReason, 'aborted')
  assert.match(content[0].text, /^0 /)
})

test('the signal is heard before the generator ends, also when it ends at a yield', async (t) => {
  for (let round = 0; round < 20; round++) {
    const seen = []
    let ended
    const over = new Promise((resolve) => (ended = resolve))
    const s = await hosted(t, function* (_, { signal }) {
      signal.addEventListener('abort', () => seen.push('signal'))
      try {
        for (;;) yield 'x'
      } finally {
        seen.push('finally')
        ended()
      }
    })
    for await (const event of s.prompt('Hi')) if (event.type === 'message_update') break
    await over
    assert.deepEqual(seen, ['signal', 'finally'])
  }
})

test('an abort reaches a generator that waits, and one that is no generator at once', async (t) => {
  const waits = await hosted(t, async function* (_, { signal }) {
    yield 'Half'
    await sleep(600_000, undefined, { signal })
  })
  const run = waits.prompt('Hi')
  for await (const event of run) if (event.assistantMessageEvent?.type === 'text_delta') break
  assert.equal((await run.result()).aborted, true)

  let returned = 0
  const own = await hosted(t, () => ({
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: async () => void returned++,
    }),
  }))
  const started = own.prompt('Hi')
  await started.accepted
  await sleep(20)
  await own.abort()
  assert.equal(returned, 1)
})

test('a generator that never waits is aborted all the same', async (t) => {
  let ended = false
  const s = await hosted(t, async function* () {
    try {
      for (;;) yield 'x'
    } finally {
      ended = true
    }
  })
  const controller = new AbortController()
  setTimeout(() => controller.abort(), 30)
  await assert.rejects(s.run('Hi', { signal: controller.signal }), { name: 'AbortError' })
  assert.equal(ended, true)
})

test('the end of a session ends its generator', async (t) => {
  let ended
  const over = new Promise((resolve) => (ended = resolve))
  const s = await hosted(t, async function* (_, { signal }) {
    yield 'Half'
    await new Promise((resolve) => signal.addEventListener('abort', resolve)).then(ended)
  })
  const run = s.prompt('Hi')
  await run.accepted
  await sleep(10)
  await s.close()
  await over
  await run.result().catch(() => {})
})

test('the end of an engine ends its generators, and a provider may be replaced while it answers', async (t) => {
  const seen = []
  let open
  const gate = new Promise((resolve) => (open = resolve))
  const s = await hosted(t, () => gate.then(() => 'old'))
  const run = s.prompt('Hi')
  await run.accepted
  await sleep(10)
  s.engine.addHostProvider('ide', ['chat'], async function* (_, { signal }) {
    signal.addEventListener('abort', () => seen.push('signal'))
    try {
      yield 'new'
      if (seen.push('asked') === 1) return
      for (;;) yield await sleep(1, ' more')
    } finally {
      seen.push('finally')
    }
  })
  open()
  assert.equal((await run.result()).text, 'old')
  assert.equal((await s.run('Hi')).text, 'new')
  const last = s.prompt('Hi')
  for await (const event of s.events()) if (event.assistantMessageEvent?.delta === ' more') break
  await s.engine.shutdown()
  assert.deepEqual(seen.slice(0, 4), ['asked', 'finally', 'asked', 'signal'])
  while (seen.length < 5) await sleep(1) // it waited for a moment
  await last.result().catch(() => {})
})

test('two sessions at once', async (t) => {
  let arrived = 0
  let open
  const both = new Promise((resolve) => (open = resolve))
  const answer = async function* ({ messages, sessionId }) {
    if (++arrived === 2) open()
    await both
    for (const word of messages.at(-1).content[0].text.split(' ')) {
      yield `${word} `
      await sleep(1)
    }
    yield sessionId
  }
  const one = await hosted(t, answer)
  const two = await one.engine.createSession({ inMemory: true, tools: [], model: 'ide/chat' })
  const results = await Promise.all([one.run('a b c d'), two.run('w x y z')])
  assert.deepEqual(results.map((result) => result.text), [`a b c d ${one.id}`, `w x y z ${two.id}`])
})

test('a long answer arrives whole, whatever the reader does', async (t) => {
  const s = await hosted(t, function* () {
    for (let count = 0; count < 20_000; count++) yield `${count},`
  })
  const run = s.prompt('Hi', { capacity: 4 })
  let text = ''
  for await (const event of run) text += event.assistantMessageEvent?.type === 'text_delta' ? event.assistantMessageEvent.delta : ''
  assert.equal(text, Array.from({ length: 20_000 }, (_, count) => `${count},`).join(''))
})

test('its session may be used in it, not waited for', async (t) => {
  const s = await hosted(t, async () => {
    await s.setName('named inside')
    await assert.rejects(s.waitIdle(), { code: 'would_deadlock' })
    return 'done'
  })
  assert.equal((await s.run('Hi')).text, 'done')
  assert.equal(s.name, 'named inside')
})

test('summaries, budgets and errors that pass are as with any model', async (t) => {
  const purposes = []
  let failed = false
  const budget = new Budget()
  const s = await hosted(
    t,
    ({ purpose }) => {
      purposes.push(purpose)
      if (!failed) {
        failed = true
        return { type: 'error', error: '429 too many requests', retryAfterMs: 1 }
      }
      return purpose === 'summary' ? 'a summary' : 'x'.repeat(90_000)
    },
    { budget },
  )
  assert.equal((await s.run('Hi')).stopReason, 'stop')
  await s.run('More')
  const { summary } = await s.compact()
  assert.equal(summary.includes('a summary'), true)
  assert.deepEqual(purposes.slice(0, 4), ['turn', 'turn', 'turn', 'summary'])
  assert.equal(budget.used.requests, purposes.length)
  budget.limits = { requests: purposes.length }
  assert.equal((await s.run('Too much')).budgetExceeded.limit, 'requests')
})

test('wrong definitions are refused', async (t) => {
  const engine = new Engine({ workerThreads: 1 })
  t.after(() => engine.shutdown())
  const bad = { name: 'BranchlineError', code: 'invalid_argument' }
  const answer = () => 'x'
  assert.throws(() => engine.addHostProvider('', ['a'], answer), bad)
  assert.throws(() => engine.addHostProvider('ide', [], answer), bad)
  assert.throws(() => engine.addHostProvider('ide', 'a', answer), { ...bad, message: /list/ })
  assert.throws(() => engine.addHostProvider('ide', ['a']), { ...bad, message: /function/ })
  assert.throws(() => engine.addHostProvider('ide', [{ id: 'a', contextwindow: 1 }], answer), { ...bad, message: /contextwindow/ })
  assert.throws(() => engine.addHostProvider('ide', [{ name: 'a' }], answer), { ...bad, message: /id/ })
  await assert.rejects(engine.createSession({ inMemory: true, model: 'ide/a' }), { code: 'unknown_model' })
})

// ---------------------------------------------------------------------------------------------------------------------
// What keeps the process alive. Programs run in processes of their own.

const prelude = `
  import { Engine, Session } from ${JSON.stringify(join(packageDir, 'index.mjs'))}
  const engine = new Engine({ workerThreads: 1 })
  const add = (answer) => engine.addHostProvider('ide', ['chat'], answer)
  const make = () => Session.create({ engine, cwd: process.cwd(), inMemory: true, tools: [], model: 'ide/chat' })
`

async function ends(program, { code = 0, ...options } = {}) {
  const result = await node(prelude + program, options)
  assert.equal(result.hung, false, 'the process hangs')
  assert.deepEqual({ code: result.code, stderr: result.stderr }, { code, stderr: '' })
  return result.stdout
}

test('a run keeps the process until its model has answered', async () => {
  const out = await ends(`
    add(async function* () { yield 'a'; await new Promise((resolve) => setTimeout(resolve, 30)); yield 'b' })
    const session = await make()
    session.run('Hi').then(({ text }) => console.log(text))
  `)
  assert.equal(out, 'ab\n')
})

test('a model under way does not keep the process when the session is over', async () => {
  const out = await ends(`
    add(async function* () { yield 'a'; await new Promise(() => {}) })
    const session = await make()
    const run = session.prompt('Hi')
    for await (const event of run) if (event.type === 'message_update') break
    await session.close()
    process.on('exit', () => console.log('exit'))
  `)
  assert.equal(out, 'exit\n')
})

test('process.exit() while a model answers, and an exception that ends the process', async () => {
  const out = await ends(`
    add(async function* () {
      for (let count = 0; ; count++) {
        if (count === 20) process.exit(3)
        yield 'piece '
        await new Promise((resolve) => setImmediate(resolve))
      }
    })
    const session = await make()
    const other = await make()
    session.prompt('Hi')
    other.prompt('Hi')
  `, { code: 3 })
  assert.equal(out, '')
  const thrown = await node(prelude + `
    add(async function* () { for (;;) { yield 'piece '; await new Promise((resolve) => setImmediate(resolve)) } })
    const session = await make()
    for await (const event of session.prompt('Hi')) if (event.type === 'message_update') throw new Error('mine')
  `)
  assert.deepEqual([thrown.code, thrown.hung], [1, false])
  assert.match(thrown.stderr, /Error: mine/)
})

test('a model serves as long as the engine or a session is there, and is garbage after it', async () => {
  const out = await ends(
    `
    let collected = 0
    const registry = new FinalizationRegistry(() => collected++)
    async function begin() {
      const own = new Engine({ workerThreads: 1 })
      const big = { text: 'still here' }
      registry.register(big)
      // Added after the session, which keeps it all the same.
      own.addHostProvider('other', ['b'], () => 'b')
      const session = await own.createSession({ inMemory: true, tools: [], model: 'other/b' })
      own.addHostProvider('ide', ['chat'], () => big.text)
      return session
    }
    async function use() {
      const session = await begin()
      for (let round = 0; round < 5; round++) {
        gc()
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      await session.setModel('ide/chat')
      console.log((await session.run('Hi')).text)
    }
    await use()
    for (let round = 0; round < 200 && collected === 0; round++) {
      gc()
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    console.log(collected)
    `,
    { args: ['--expose-gc'] },
  )
  assert.equal(out, 'still here\n1\n')
})

test('a key that never comes does not keep the process when the session is over; a recording is whole at the exit', async (t) => {
  const dir = directory(t)
  const out = await ends(
    `
    import { createServer } from 'node:http'
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' })
        response.write('data: {"choices":[{"index":0,"delta":{"content":"Hello."}}]}\\n\\n')
        response.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n')
      })
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    server.unref()
    const baseUrl = 'http://127.0.0.1:' + server.address().port + '/v1'
    const models = { providers: { house: { baseUrl, api: 'openai-completions', models: [{ id: 'm' }] } } }
    let asked
    const begun = new Promise((resolve) => (asked = resolve))
    const own = new Engine({ workerThreads: 1, proxy: 'direct', models, record: ${JSON.stringify(join(dir, 'wire.jsonl'))} })
    const session = await own.createSession({ inMemory: true, tools: [], model: 'house/m' })
    console.log((await session.run('Hi')).text)
    own.setKeySource(() => (asked(), new Promise(() => {})))
    session.prompt('Again')
    await begun
    await session.close()
    process.on('exit', () => console.log('exit'))
    `,
  )
  assert.equal(out, 'Hello.\nexit\n')
  const kinds = readFileSync(join(dir, 'wire.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line).kind)
  assert.equal(kinds.at(-1), 'end')
})

test('workers terminated while models answer take nothing down', async () => {
  const { Worker } = await import('node:worker_threads')
  const program = `
    const { parentPort } = require('node:worker_threads')
    const { Engine } = require(${JSON.stringify(join(packageDir, 'index.cjs'))})
    const engine = new Engine({ workerThreads: 2 })
    engine.addHostProvider('ide', ['chat'], async function* () {
      for (let count = 0; ; count++) {
        if (count === 10) parentPort.postMessage(count)
        yield 'piece '
        await new Promise((resolve) => setImmediate(resolve))
      }
    })
    async function main() {
      const session = await engine.createSession({ inMemory: true, tools: [], model: 'ide/chat' })
      for await (const event of session.prompt('Hi')) event.type
    }
    for (let number = 0; number < 4; number++) main()
  `
  for (let round = 0; round < 10; round++) {
    const worker = new Worker(program, { eval: true })
    let messages = 0
    const code = await new Promise((resolve, reject) => {
      worker.on('message', () => {
        if (++messages === 1 + (round % 4)) resolve(worker.terminate())
      })
      worker.on('error', reject)
    })
    assert.equal(code, 1)
  }
})
