'use strict'
const { AsyncLocalStorage } = require('node:async_hooks')
const { bridge, call, ask } = require('./native.cjs')
const { BranchlineError, text, json } = require('./errors.cjs')

const KEYS = ['name', 'description', 'parameters', 'executionMode', 'snippet', 'guidelines', 'constrainedSampling', 'effect', 'pathArguments', 'execute']

function invalid(message) {
  return new BranchlineError(message, { code: 'invalid_argument' })
}

/** A function that a model, and `Toolbox.call`, may call. */
class Tool {
  constructor(given) {
    if (given === null || typeof given !== 'object') throw invalid('a tool is an object with name, parameters and execute')
    for (const key of Object.keys(given)) if (!KEYS.includes(key)) throw invalid(`a tool has no ${JSON.stringify(key)}`)
    text(given.name, 'the name of a tool')
    if (typeof given.execute !== 'function') throw invalid(`tool ${given.name}: execute must be a function`)
    Object.assign(this, given)
    Object.freeze(this)
  }
}

/** Checks a tool's definition and gives it back as a `Tool`. */
function tool(given) {
  return given instanceof Tool ? given : new Tool(given)
}

/** Tools that are native: how each is named to the native half, and what must be kept with it. */
const native = new WeakMap()

/** A tool that gives recorded results, in sessions and toolboxes. */
function recorded(definition, custom, keep) {
  const execute = () => {
    throw invalid(`the recorded tool ${definition.name} is called by sessions and toolboxes only`)
  }
  const made = tool({ ...definition, execute })
  native.set(made, { custom, keep })
  return made
}

/*
 * The functions in use, by number. What uses them (session, toolbox, engine) holds the binding; here it is held weakly, so
 * that a tool which refers to its own session keeps nothing alive.
 */
const bindings = new Map()
const gone = new FinalizationRegistry((number) => bindings.delete(number))
const running = new Map() // AbortControllers, by request
const served = new AsyncLocalStorage() // what waits for the function that is running, until it has ended
const anchor = {} // of the wait for requests, which does not keep the process alive
let desk
let last = 0

/** Makes a tool callable. The result must be kept as long as it is. */
function bind(given) {
  if (native.has(given)) return native.get(given)
  const { execute, ...definition } = tool(given)
  const binding = bindFunction(execute)
  binding.custom = { target: binding.number, definition }
  return binding
}

/**
 * Has requests with the binding's number answered by a function, as long as the binding is kept. `write` writes what it
 * gives piece by piece, where an answer has pieces. `waits` is what waits for it, unless that is the session of a request.
 */
function bindFunction(execute, { write, waits } = {}) {
  const binding = { execute, write, waits, number: ++last }
  bindings.set(last, new WeakRef(binding))
  gone.register(binding, last)
  if (desk === undefined) {
    desk = bridge.desk()
    serve()
  }
  return binding
}

/** Names, and the bindings of those tools that are no names. */
function split(tools) {
  if (!Array.isArray(tools)) throw invalid('tools must be a list of names and tools')
  const own = tools.filter((tool) => typeof tool !== 'string').map(bind)
  return { names: tools.map((tool) => (typeof tool === 'string' ? tool : tool.name)), own }
}

async function serve() {
  for (;;) {
    const notices = await call((ticket) => desk.next(ticket), anchor).catch(() => [])
    if (notices.length === 0) return // the environment ends
    for (const notice of notices) take(JSON.parse(notice))
  }
}

function take(notice) {
  if (notice.cancelled !== undefined) {
    running.get(notice.cancelled)?.abort()
    running.delete(notice.cancelled)
    return
  }
  const binding = bindings.get(notice.target)?.deref()
  if (binding) void run(notice, binding)
  else fail(notice.id, 'the function does not exist any more')
}

async function run({ id, kind, name, callId, sessionId, sibling, cwd, arguments: args }, { execute, write, waits }) {
  const controller = new AbortController()
  running.set(id, controller)
  const progress = (update) => {
    const partial = json(update, 'an update')
    return ask(() => desk.progress(id, partial))
  }
  const context = { signal: controller.signal, progress, name, callId, sessionId, sibling, cwd }
  const push = (piece) => {
    const event = json(piece, 'a piece of the answer')
    if (ask(() => desk.push(id, event))) return true
    controller.abort() // known here before the notice of it comes
    return false
  }
  const waiting = waits === undefined ? { for: sessionId, sibling } : { for: waits }
  try {
    const value = await served.run(waiting, async () => {
      const given = await execute(args, context, kind)
      return write ? write(given, push, controller.signal) : given
    })
    const result = json(value ?? null, kind === 'tool' ? 'the result of the tool' : 'the answer')
    ask(() => desk.complete(id, result))
  } catch (error) {
    fail(id, PLAIN.has(kind) ? reason(error) : failure(error))
  } finally {
    running.delete(id)
    waiting.for = undefined // what it started may go on, and wait
  }
}

/** Says that a request failed, whatever state its answer is in. */
function fail(id, message) {
  try {
    desk.fail(id, message)
  } catch {
    desk.drop(id) // its answer was finished before
  }
}

/** Kinds of requests whose failure is told in the words of whoever failed, without the name of an error. */
const PLAIN = new Set(['model', 'key', 'login', 'payload'])

function reason(error) {
  return (error instanceof Error && error.message) || failure(error)
}

/** What a model reads of whatever was thrown. */
function failure(error) {
  try {
    if (error instanceof BranchlineError || !(error instanceof Error)) return String(error?.message ?? error)
    return error.message ? `${error.name}: ${error.message}` : error.name
  } catch {
    return 'the tool failed'
  }
}

function wouldDeadlock() {
  return new BranchlineError('waiting here would wait for this function; return from it and wait elsewhere', { code: 'would_deadlock' })
}

/** Fails inside a function that this waits for, which was given to `bindFunction`. */
function refuseToWaitFor(waiting) {
  if (served.getStore()?.for === waiting) throw wouldDeadlock()
}

/** Fails inside a function that a native session waits for. Its siblings, which have the same id, may be waited for. */
function refuseToWaitForSession(native) {
  const waiting = served.getStore()
  if (waiting?.for && waiting.for === native.id && waiting.sibling === native.sibling) throw wouldDeadlock()
}

/** Whether this is called inside a function that something waits for. */
const isServing = () => Boolean(served.getStore()?.for)

/** Whether a function is running, which may be waiting for its signal. */
const serving = () => running.size > 0

module.exports = {
  Tool,
  tool,
  bind,
  bindFunction,
  recorded,
  split,
  refuseToWaitFor,
  refuseToWaitForSession,
  isServing,
  serving,
  invalid,
}
