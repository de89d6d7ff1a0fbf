import assert from 'node:assert/strict'
import test from 'node:test'
import { BranchlineError, EventStream, Run } from '../index.mjs'
import { collect, directory, engine, says, session } from './support.mjs'

test('a prompt gives its events in order, in pi\'s form with a sequence number', async (t) => {
  const s = await session(t, { script: { replies: [says('Hello there, reader.')], chunk: 5 } })
  const run = s.prompt('Hi')
  assert.ok(run instanceof Run)
  const events = await collect(run)
  const types = events.map((event) => event.type)
  assert.deepEqual(types.slice(0, 2), ['agent_start', 'turn_start'])
  assert.deepEqual(types.slice(-3), ['turn_end', 'agent_end', 'agent_settled'])
  const numbers = events.map((event) => event.sequence)
  assert.deepEqual(numbers, numbers.toSorted((a, b) => a - b))
  assert.equal(new Set(numbers).size, numbers.length)
  const deltas = events.filter((event) => event.assistantMessageEvent?.type === 'text_delta')
  assert.equal(deltas.map((event) => event.assistantMessageEvent.delta).join(''), 'Hello there, reader.')
  const ends = events.filter((event) => event.type === 'message_end')
  for (const { entryId, message } of ends) assert.deepEqual(s.entry(entryId).message, message)
  assert.equal((await run.result()).text, 'Hello there, reader.')
})

test('many events arrive completely, over many batches', async (t) => {
  const text = 'ab'.repeat(3000)
  const s = await session(t, { script: { replies: [says(text)], chunk: 1 } })
  let got = ''
  for await (const event of s.prompt('Hi')) got += event.assistantMessageEvent?.delta ?? ''
  assert.equal(got, text)
})

test('calls of next() that overlap are answered in order', async (t) => {
  const s = await session(t)
  const run = s.prompt('Hi')
  const steps = await Promise.all(Array.from({ length: 40 }, () => run.next()))
  const numbers = steps.filter((step) => !step.done).map((step) => step.value.sequence)
  assert.ok(numbers.length > 5)
  assert.deepEqual(numbers, numbers.toSorted((a, b) => a - b))
  assert.equal(steps.at(-1).done, true)
})

test('result() beside a reader waits for it and takes nothing away', async (t) => {
  const s = await session(t)
  const run = s.prompt('Hi')
  const [events, result] = await Promise.all([collect(run), run.result()])
  assert.equal(events.at(-1).type, 'agent_settled')
  assert.equal(result.text, 'Hello.')
})

test('leaving the loop early aborts the run and waits for the session', async (t) => {
  const s = await session(t, { script: { replies: [{ ...says('Half'), hang: true }], atEnd: 'loop' } })
  const run = s.prompt('Hi')
  await assert.rejects(
    async () => {
      for await (const event of run) if (event.type === 'turn_start') throw new Error('mine')
    },
    { message: 'mine' },
  )
  assert.deepEqual(await run.next(), { value: undefined, done: true })
  assert.equal(s.state.phase, 'idle')
  assert.equal((await run.result()).aborted, true)
  for await (const event of s.prompt('Again')) if (event.assistantMessageEvent?.type === 'text_delta') break
  assert.equal(s.state.phase, 'idle')
  assert.equal(s.tree.entry(s.leaf).message.stopReason, 'aborted')
})

test('a run that was read to its end is not aborted by leaving', async (t) => {
  const s = await session(t)
  const run = s.prompt('Hi')
  for await (const event of run) if (event.type === 'agent_settled') break
  const result = await run.result()
  assert.deepEqual([result.text, result.aborted], ['Hello.', false])
})

test('leaving a run that was refused, or never sent, leaves the one that runs alone', async (t) => {
  const s = await session(t, { script: [{ ...says('First.'), waitGate: 'go' }] })
  const run = s.prompt('Hi')
  await run.accepted
  const refused = s.prompt('Me too')
  await assert.rejects(refused.accepted, { code: 'running' })
  await refused.return()
  await s.prompt('Nor me').return()
  await s.prompt('Nor me', { signal: AbortSignal.abort(), whenRunning: 'followUp' }).return()
  s.engine.model.openGate('go')
  const { text, aborted } = await run.result()
  assert.deepEqual([text, aborted], ['First.', false])
})

test('leaving a run that is over leaves the next one alone', async (t) => {
  const leave = {
    async unread(run, next) {
      const events = run.session.events()
      for await (const event of events) if (event.type === 'agent_settled') break
      const second = next()
      await second.accepted
      await run.return()
      return second
    },
    async known(run, next) {
      await run.result()
      const second = next()
      await run.return()
      return second
    },
    async read(run, next) {
      let second
      for await (const event of run) {
        if (event.type !== 'agent_settled') continue
        second = next()
        await second.accepted
        break
      }
      return second
    },
  }
  // Often, as what leaving must not rely on, the session being idle in between, may be seen or not.
  const ways = Array.from({ length: 10 }, () => Object.entries(leave)).flat()
  for (const [name, way] of ways) {
    const s = await session(t, { script: [says('First.'), { ...says('Second.'), waitGate: 'go' }] })
    const second = await way(Object.assign(s.prompt('one'), { session: s }), () => s.prompt('two'))
    s.engine.model.openGate('go')
    const { text, aborted } = await second.result()
    assert.deepEqual([name, text, aborted], [name, 'Second.', false])
  }
})

test('a prompt that joined a run is part of it: leaving its loop aborts the run', async (t) => {
  const s = await session(t, { script: [{ ...says('Half'), hang: true }] })
  const run = s.prompt('Hi')
  await run.accepted
  const joined = s.prompt('Then me', { whenRunning: 'followUp' })
  await joined.accepted
  await joined.return()
  assert.equal((await run.result()).aborted, true)
})

test('a queue that was left does not slow its session', async (t) => {
  const s = await session(t, { script: { replies: [says('word '.repeat(200))], chunk: 1, atEnd: 'loop' } })
  for await (const event of s.prompt('Hi', { capacity: 1 })) if (event) break
  await s.waitIdle()
  const events = s.events({ capacity: 1 })
  await events.return()
  assert.equal((await s.run('Hi')).stopReason, 'stop')
})

test('a signal aborts a run: the call rejects with its reason and the session is idle', async (t) => {
  const s = await session(t, { script: { replies: [{ ...says('Half an answer'), hang: true }, says('Whole.')] } })
  const controller = new AbortController()
  const events = s.events()
  const started = (async () => {
    for await (const event of events) if (event.assistantMessageEvent?.type === 'text_delta') return
  })()
  const run = s.run('Hi', { signal: controller.signal })
  await started
  controller.abort()
  await assert.rejects(run, { name: 'AbortError' })
  assert.equal(s.state.phase, 'idle')
  const stored = s.entry(s.leaf).message
  assert.equal(stored.stopReason, 'aborted')
  assert.equal((await s.run('Go on')).text, 'Whole.')
})

test('an aborted iterator delivers the end of the run, then throws the reason once', async (t) => {
  const s = await session(t, { script: [{ ...says('Half'), hang: true }] })
  const controller = new AbortController()
  const reason = new Error('enough')
  const run = s.prompt('Hi', { signal: controller.signal })
  const seen = []
  await assert.rejects(async () => {
    for await (const event of run) {
      seen.push(event.type)
      if (event.type === 'message_update') controller.abort(reason)
    }
  }, reason)
  assert.equal(seen.at(-1), 'agent_settled')
  assert.deepEqual(await run.next(), { value: undefined, done: true })
})

test('a signal that is already aborted sends nothing', async (t) => {
  const s = await session(t)
  const size = s.tree.size
  await assert.rejects(s.run('Hi', { signal: AbortSignal.abort() }), { name: 'AbortError' })
  assert.equal(s.tree.size, size)
  const stream = s.events({ signal: AbortSignal.abort() })
  await assert.rejects(stream.next(), { name: 'AbortError' })
  assert.equal((await stream.next()).done, true)
})

test('abort() ends a run, which is then a result', async (t) => {
  const s = await session(t, { script: [{ ...says('Half'), hang: true }] })
  const run = s.run('Hi')
  const events = s.events()
  for await (const event of events) if (event.type === 'message_update') break
  await s.abort()
  const result = await run
  assert.equal(result.aborted, true)
  assert.equal(result.stopReason, 'aborted')
  await s.abort()
})

test('steering and following up', async (t) => {
  const gated = { ...says('First.'), waitGate: 'go' }
  const s = await session(t, { script: [gated, says('Steered.'), says('Followed.')] })
  const run = s.prompt('Hi')
  await run.accepted
  await s.followUp('and then')
  await s.steer('no, this way')
  const { steering, followUp } = s.state
  assert.deepEqual({ steering, followUp }, { steering: ['no, this way'], followUp: ['and then'] })
  s.engine.model.openGate('go')
  const texts = (await run.result()).messages.filter(({ role }) => role === 'assistant')
  assert.deepEqual(texts.map((message) => message.content[0].text), ['First.', 'Steered.', 'Followed.'])
  await s.steer('later')
  assert.deepEqual(await s.clearQueues(), { steering: ['later'], followUp: [] })
})

test('a prompt is refused while a run is active, unless told to queue', async (t) => {
  const s = await session(t, { script: [{ ...says('First.'), waitGate: 'go' }, says('Second.')] })
  const run = s.prompt('Hi')
  await run.accepted
  const refused = s.prompt('Me too')
  await assert.rejects(refused.next(), { code: 'running' })
  await assert.rejects(refused.result(), { code: 'running' })
  const queued = s.prompt('Then me', { whenRunning: 'followUp' })
  await queued.accepted
  s.engine.model.openGate('go')
  assert.equal((await run.result()).text, 'Second.')
  await queued.result()
})

test('a failed request is a result', async (t) => {
  const s = await session(t, { script: [{ immediateError: 'the model is on fire' }] })
  const result = await s.run('Hi')
  assert.equal(result.stopReason, 'error')
  assert.match(result.errorMessage, /on fire/)
})

test('a tool runs in the working directory', async (t) => {
  const call = { type: 'toolCall', id: 'c1', name: 'bash', arguments: { command: 'pwd' } }
  const dir = directory(t)
  const s = await session(t, { dir, tools: ['bash'], script: [{ content: [call] }, says('Done.')] })
  const events = await collect(s.prompt('Where?'))
  const end = events.find((event) => event.type === 'tool_execution_end')
  assert.equal(end.isError, false)
  assert.equal(end.result.content[0].text.trim(), dir)
})

test('a subscription sees every run, ends with the session, and can be left', async (t) => {
  const s = await session(t)
  const stream = s.events()
  assert.ok(stream instanceof EventStream)
  const left = s.events()
  const waiting = left.next()
  await left.return()
  assert.equal((await waiting).done, true)
  const all = collect(stream)
  await s.run('one')
  await s.run('two')
  await s.close()
  assert.equal((await all).filter((event) => event.type === 'agent_settled').length, 2)
})

test('a signal ends a subscription with its reason', async (t) => {
  const s = await session(t)
  const controller = new AbortController()
  const waiting = s.events({ signal: controller.signal }).next()
  controller.abort()
  await assert.rejects(waiting, { name: 'AbortError' })
})

test('a slow reader loses nothing', async (t) => {
  const s = await session(t, { script: { replies: [says('word '.repeat(200))], chunk: 1 } })
  const run = s.prompt('Hi', { capacity: 4 })
  let text = ''
  for await (const event of run) {
    await new Promise((resolve) => setImmediate(resolve))
    text += event.assistantMessageEvent?.delta ?? ''
  }
  assert.equal(text, 'word '.repeat(200))
})

test('closing during a run settles what waits', async (t) => {
  const s = await session(t, { script: [{ ...says('Half'), hang: true }] })
  const run = s.prompt('Hi')
  await run.accepted
  const events = collect(run)
  await s.close()
  await events
  await run.result().then(
    (result) => assert.equal(result.aborted, true),
    (error) => assert.ok(error instanceof BranchlineError && error.code === 'closed'),
  )
  await engine(t).shutdown()
})
