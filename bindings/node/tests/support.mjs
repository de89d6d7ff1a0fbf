import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Engine, Session } from '../index.mjs'

export const packageDir = fileURLToPath(new URL('..', import.meta.url))

/** A directory that goes with the test. */
export function directory(test) {
  const path = mkdtempSync(join(tmpdir(), 'branchline-node-'))
  test.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

export const says = (text) => ({ content: [{ type: 'text', text }] })

/** An engine of its own with the model `scripted/test`. */
export function engine(test, script = { replies: [says('Hello.')], atEnd: 'loop' }) {
  const made = new Engine({ workerThreads: 2 })
  const model = made.addScriptedModel('test', script)
  test.after(() => made.shutdown())
  return Object.assign(made, { model })
}

/** A session whose model answers from a script. Without a directory it lives in memory. */
export async function session(test, { script, dir, ...options } = {}) {
  const place = dir ? { cwd: dir, sessionDir: dir } : { cwd: tmpdir(), inMemory: true }
  const made = engine(test, script)
  const session = await Session.create({ engine: made, model: 'scripted/test', tools: [], permissions: 'allow', ...place, ...options })
  return Object.assign(session, { engine: made })
}

/** Runs a program in a Node process of its own; a hang is ended after a minute and reported as such. */
export function node(program, { args = [], cwd = packageDir } = {}) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...args, '--input-type=module', '-e', program], { cwd })
    let stdout = ''
    let stderr = ''
    let hung = false
    child.stdout.on('data', (data) => (stdout += data))
    child.stderr.on('data', (data) => (stderr += data))
    const guard = setTimeout(() => {
      hung = true
      child.kill('SIGKILL')
    }, 60_000)
    child.on('close', (code, signal) => {
      clearTimeout(guard)
      resolve({ code, signal, stdout, stderr, hung })
    })
  })
}

export async function collect(events) {
  const all = []
  for await (const event of events) all.push(event)
  return all
}

/** An engine whose model `ide/chat` is answered by a function, and a session with it. */
export async function hosted(test, answer, { models = ['chat'], dir, engine: settings, ...options } = {}) {
  const made = new Engine({ workerThreads: 2, ...settings })
  test.after(() => made.shutdown())
  made.addHostProvider('ide', models, answer)
  const place = dir ? { cwd: dir, sessionDir: dir } : { cwd: tmpdir(), inMemory: true }
  const session = await made.createSession({ model: 'ide/chat', tools: [], permissions: 'allow', ...place, ...options })
  return Object.assign(session, { engine: made })
}

/** A service on loopback that speaks `openai-completions` and says "Hello." What it was sent is in `requests`. */
export async function service(test, { status = 200, body } = {}) {
  const requests = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece) => (text += piece))
    request.on('end', () => {
      requests.push({ path: request.url, headers: request.headers, body: JSON.parse(text) })
      if (status !== 200) return response.writeHead(status, { 'content-type': 'application/json' }).end(body)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const chunk = (choice, more) => `data: ${JSON.stringify({ id: 'r1', model: 'm', choices: [choice], ...more })}\n\n`
      response.write(chunk({ index: 0, delta: { role: 'assistant', content: 'Hello.' } }))
      response.write(chunk({ index: 0, delta: {}, finish_reason: 'stop' }, { usage: { prompt_tokens: 3, completion_tokens: 2 } }))
      response.end('data: [DONE]\n\n')
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.after(() => server.close())
  return { requests, url: `http://127.0.0.1:${server.address().port}/v1` }
}
