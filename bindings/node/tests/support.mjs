import { spawn } from 'node:child_process'
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
