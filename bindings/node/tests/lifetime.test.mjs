// What keeps the process alive and what does not, garbage, worker threads. Programs run in processes of their own.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { Worker } from 'node:worker_threads'
import { directory, node, packageDir } from './support.mjs'

const library = JSON.stringify(join(packageDir, 'index.mjs'))
const prelude = `
  import { Engine, Session } from ${library}
  const engine = new Engine({ workerThreads: 1 })
  const hello = { content: [{ type: 'text', text: 'Hello.' }] }
  const model = engine.addScriptedModel('test', { replies: [hello], atEnd: 'loop' })
  engine.addScriptedModel('hang', [{ ...hello, hang: true }])
  engine.addScriptedModel('slow', { replies: [{ content: [{ type: 'text', text: 'x'.repeat(50) }] }], chunk: 1, chunkDelayMs: 10 })
  const make = (model = 'test', options) =>
    Session.create({ engine, cwd: process.cwd(), inMemory: true, tools: [], permissions: 'allow', model: 'scripted/' + model, ...options })
`

/** Runs a program that must end by itself, with nothing on stderr. */
async function ends(program, { code = 0, ...options } = {}) {
  const result = await node(prelude + program, options)
  assert.equal(result.hung, false, 'the process hangs')
  assert.deepEqual({ code: result.code, stderr: result.stderr }, { code, stderr: '' })
  return result.stdout
}

test('an idle session with a listener does not keep the process alive', async () => {
  const out = await ends(`
    const session = await make()
    let events = 0
    void (async () => { for await (const event of session.events()) events++ })()
    await session.run('Hi')
    process.on('exit', () => console.log('exit', events > 5))
  `)
  assert.equal(out, 'exit true\n')
})

test('a run that is read keeps the process alive to its end', async () => {
  const out = await ends(`
    const session = await make('slow')
    session.run('Hi').then((result) => console.log(result.text.length))
  `)
  assert.equal(out, '50\n')
})

test('a run that nobody reads keeps the process alive to its end', async () => {
  const out = await ends(`
    const session = await make('slow')
    session.prompt('Hi')
    process.on('exit', () => console.log(session.entry(session.leaf).message.stopReason))
  `)
  assert.equal(out, 'stop\n')
})

test('process.exit() in the middle of a run ends at once, and the running tool with it', async (t) => {
  const dir = directory(t)
  const out = await ends(`
    const call = { type: 'toolCall', id: 'c', name: 'bash', arguments: { command: 'echo $$ > pid; sleep 300' } }
    engine.addScriptedModel('sleeper', [{ content: [call] }])
    import { existsSync, readFileSync } from 'node:fs'
    const session = await make('sleeper', { tools: ['bash'], cwd: ${JSON.stringify(dir)} })
    session.prompt('Hi')
    const wait = setInterval(() => {
      if (!existsSync(${JSON.stringify(join(dir, 'pid'))})) return
      if (!readFileSync(${JSON.stringify(join(dir, 'pid'))}, 'utf8').endsWith('\\n')) return
      clearInterval(wait)
      console.log('leaving')
      process.exit(0)
    }, 5)
  `)
  assert.equal(out, 'leaving\n')
  const pid = Number(readFileSync(join(dir, 'pid'), 'utf8'))
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' }, 'the tool still runs')
})

test('an error thrown in the loop reaches the host as usual', async () => {
  const result = await node(prelude + `
    const session = await make('hang')
    for await (const event of session.prompt('Hi')) throw new Error('mine')
  `)
  assert.equal(result.code, 1)
  assert.match(result.stderr, /Error: mine/)
})

test('a session that is garbage closes itself and frees its file', async (t) => {
  const dir = directory(t)
  const out = await ends(
    `
    const dir = ${JSON.stringify(dir)}
    async function leave() {
      const session = await make('test', { inMemory: false, cwd: dir, sessionDir: dir })
      await session.run('Hi')
      return session.path
    }
    const path = await leave()
    let opened
    for (let round = 0; round < 500 && !opened; round++) {
      gc()
      await new Promise((resolve) => setTimeout(resolve, 2))
      opened = await Session.open(path, { engine }).catch((error) => {
        if (error.code !== 'session_locked') throw error
      })
    }
    console.log(opened ? 'free' : 'still locked')
    `,
    { args: ['--expose-gc'] },
  )
  assert.equal(out, 'free\n')
})

test('memory stays flat over a thousand sessions that nobody closes, listeners and all', async () => {
  const out = await ends(
    `
    const collector = new FinalizationRegistry(() => alive--)
    let alive = 0
    async function round() {
      for (let count = 0; count < 250; count++) {
        const session = await make()
        alive++
        collector.register(session)
        void (async () => { for await (const event of session.events()) if (session.leaf === '') return })()
        await session.run('Hi ' + 'x'.repeat(10_000))
      }
      // Closing takes the engine a moment.
      for (let count = 0; count < 3; count++) {
        gc()
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    await round()
    await round()
    const before = process.memoryUsage().rss
    for (let count = 0; count < 4; count++) await round()
    console.log(alive, Math.round((process.memoryUsage().rss - before) / 2 ** 20))
    `,
    { args: ['--expose-gc'] },
  )
  const [alive, grown] = out.split(' ').map(Number)
  assert.ok(alive < 10, `${alive} sessions were never collected`)
  assert.ok(grown < 40, `grew by ${grown} MiB`) // 69 MiB when listeners kept their sessions
})

test('a listener hears its session to the end of a run that nobody else holds', async () => {
  const out = await ends(
    `
    const seen = []
    async function start() {
      const session = await make('slow')
      const events = session.events()
      void (async () => { for await (const event of events) seen.push(event.type) })()
      session.prompt('Hi')
    }
    await start()
    const collecting = setInterval(gc, 5)
    collecting.unref()
    process.on('exit', () => console.log(seen.at(-1)))
    `,
    { args: ['--expose-gc'] },
  )
  assert.equal(out, 'agent_settled\n')
})

test('many waits on many sessions settle', async () => {
  const out = await ends(`
    const sessions = await Promise.all(Array.from({ length: 100 }, () => make()))
    const results = await Promise.all(sessions.flatMap((session) => [session.run('Hi'), session.waitIdle()]))
    console.log(results.filter(Boolean).length)
  `)
  assert.equal(out, '100\n')
})

test('listeners hear the end before the process ends', async () => {
  const out = await ends(`
    const said = []
    async function listen(name, events) {
      try {
        for await (const event of events) if (!event) return
        said.push(name)
      } catch (error) {
        said.push(name + ' ' + error.name)
      }
    }
    const [closed, shut, left, named] = [await make(), await make(), await make(), await make()]
    const controller = new AbortController()
    const stream = left.events()
    void listen('close', closed.events())
    void listen('abort', left.events({ signal: controller.signal }))
    void listen('return', stream)
    void listen('shutdown', shut.events())
    await closed.close()
    controller.abort()
    await stream.return()
    const events = named.events()
    void events.next().then(({ value }) => said.push(value.type))
    await named.setName('A name')
    await engine.shutdown()
    const { done } = await named.events().next()
    process.on('exit', () => console.log(done, said.join(', ')))
  `)
  assert.equal(out, 'true close, abort AbortError, return, session_info_changed, shutdown\n')
})

/** A worker that is in the middle of several runs when it says so. */
const busy = `
  const { parentPort } = require('node:worker_threads')
  const { Engine, Session } = require(${JSON.stringify(join(packageDir, 'index.cjs'))})
  const engine = new Engine({ workerThreads: 2 })
  const text = { content: [{ type: 'text', text: 'x'.repeat(100_000) }] }
  engine.addScriptedModel('long', { replies: [text], chunk: 1, atEnd: 'loop' })
  async function main(number) {
    const session = await Session.create({ engine, inMemory: true, tools: [], model: 'scripted/long' })
    let count = 0
    for await (const event of session.prompt('Hi')) {
      if (++count === 20) parentPort.postMessage(number)
      if (count % 7 === 0) session.context().catch(() => {})
    }
  }
  for (let number = 0; number < 4; number++) main(number)
`

function terminated(program, after) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(program, { eval: true })
    let messages = 0
    worker.on('message', () => {
      if (++messages === after) resolve(worker.terminate())
    })
    worker.on('error', reject)
  })
}

test('a worker terminated in the middle of runs takes nothing down, twenty times', async () => {
  for (let round = 0; round < 20; round++) assert.equal(await terminated(busy, 1 + (round % 4)), 1)
})

test('the library works in the main thread and several workers at once', async (t) => {
  const { Session } = await import('../index.mjs')
  const program = `
    const { parentPort } = require('node:worker_threads')
    const { Session } = require(${JSON.stringify(join(packageDir, 'index.cjs'))})
    Session.create({ inMemory: true, tools: [], model: 'scripted/demo' })
      .then((session) => session.run('Hi'))
      .then((result) => parentPort.postMessage(result.stopReason))
  `
  const worker = () =>
    new Promise((resolve, reject) => {
      const worker = new Worker(program, { eval: true })
      let said
      worker.on('message', (message) => (said = message))
      worker.on('error', reject)
      worker.on('exit', (code) => resolve([code, said]))
    })
  const session = await Session.create({ inMemory: true, tools: [], model: 'scripted/demo' })
  t.after(() => session.close())
  const [main, ...workers] = await Promise.all([session.run('Hi'), worker(), worker(), worker()])
  assert.equal(main.stopReason, 'stop')
  assert.deepEqual(workers, [[0, 'stop'], [0, 'stop'], [0, 'stop']])
})

test('a terminated worker frees the files it had open', async (t) => {
  const { Session } = await import('../index.mjs')
  const dir = directory(t)
  const program = `
    const { parentPort } = require('node:worker_threads')
    const { Session } = require(${JSON.stringify(join(packageDir, 'index.cjs'))})
    const dir = ${JSON.stringify(dir)}
    Session.create({ cwd: dir, sessionDir: dir, tools: [], model: 'scripted/demo' })
      .then(async (session) => { await session.run('Hi'); parentPort.postMessage(session.path); setInterval(() => session, 1000) })
  `
  const worker = new Worker(program, { eval: true })
  const path = await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject))
  await assert.rejects(Session.open(path), { code: 'session_locked' })
  await worker.terminate()
  assert.ok(existsSync(path))
  const session = await Session.open(path)
  await session.close()
})
