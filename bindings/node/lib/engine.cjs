'use strict'
const { bridge, call, flush, ask } = require('./native.cjs')
const { text, json, options } = require('./errors.cjs')
const { bound, policyOf } = require('./permissions.cjs')
const { Session, wrap } = require('./session.cjs')
const { bind, invalid, split: splitTools } = require('./tools.cjs')

/** The native toolbox of an engine, and what must be kept with it. Not for hosts. */
let toolboxOf

/** Worker threads, models and defaults. Two engines share nothing. */
class Engine {
  #native
  #tools = [] // bindings, which its sessions and toolboxes keep too

  constructor(given = {}) {
    options(given)
    const { permissions, ...rest } = given
    const policy = permissions === undefined ? undefined : policyOf(permissions)
    this.#tools.push(...(policy?.keep ?? []))
    const settings = options({ ...rest, permissions: policy?.policy })
    this.#native = ask(() => bridge.engine(settings))
  }

  async createSession(given = {}) {
    const { settings, keep } = this.#session({ cwd: process.cwd(), ...given })
    return wrap(await call((ticket) => this.#native.create(ticket, settings)), keep)
  }

  async openSession(path, given = {}) {
    text(path, 'path')
    const { settings, keep } = this.#session(given)
    return wrap(await call((ticket) => this.#native.open(ticket, path, settings)), keep)
  }

  async continueRecent(given = {}) {
    const { settings, keep } = this.#session({ cwd: process.cwd(), ...given })
    return wrap(await call((ticket) => this.#native.continueRecent(ticket, settings)), keep)
  }

  async importSession(path, given = {}) {
    text(path, 'path')
    const { settings, keep } = this.#session(given)
    return wrap(await call((ticket) => this.#native.importSession(ticket, path, settings)), keep)
  }

  /** The options of a session, and the bindings of its tools, which it must keep. */
  #session(given) {
    const { tools, customTools, bounds: none, permissions, toolHooks, budget, ...rest } = given
    if (customTools !== undefined) throw invalid('tools of your own belong into tools')
    if (none !== undefined) throw invalid('permissions, toolHooks and budget are options of their own')
    const { bounds, keep } = bound({ permissions, toolHooks, budget })
    const { names, own } = tools === undefined || tools === null ? { own: [] } : splitTools(tools)
    const settings = options({ ...rest, bounds, tools: names, customTools: own.map((binding) => binding.custom) })
    return { settings, keep: [...this.#tools, ...own, ...keep] }
  }

  addTool(tool) {
    const binding = bind(tool)
    const custom = json(binding.custom, 'the tool')
    ask(() => this.#native.addTool(custom))
    this.#tools.push(binding)
  }

  static {
    toolboxOf = (engine, cwd) => ({ native: ask(() => engine.#native.toolbox(cwd)), keep: engine.#tools })
  }

  async listSessions(given = {}) {
    return (await call((ticket) => this.#native.list(ticket, options(given)))).map((info) => JSON.parse(info))
  }

  models() {
    return JSON.parse(ask(() => this.#native.models()))
  }

  addScriptedModel(name, script) {
    text(name, 'name')
    const given = json(script, 'script')
    const hand = ask(() => this.#native.addScriptedModel(name, given))
    return { openGate: (gate) => ask(() => hand.openGate(gate)) }
  }

  async shutdown() {
    await call((ticket) => this.#native.shutdown(ticket))
    await flush() // listeners hear that it is over
  }

  async [Symbol.asyncDispose]() {
    await this.shutdown()
  }
}

let shared
/** The engine of calls that name none, made when first needed. */
const defaultEngine = () => (shared ??= new Engine())

/** Splits the engine from the other options. */
function split({ engine = defaultEngine(), ...rest } = {}) {
  return [engine, rest]
}

Session.create = async function create(given) {
  const [engine, rest] = split(given)
  return engine.createSession(rest)
}

Session.open = async function open(path, given) {
  const [engine, rest] = split(given)
  return engine.openSession(path, rest)
}

Session.continueRecent = async function continueRecent(given) {
  const [engine, rest] = split(given)
  return engine.continueRecent(rest)
}

async function listSessions(given) {
  const [engine, rest] = split(given)
  return engine.listSessions(rest)
}

module.exports = { Engine, listSessions, defaultEngine, toolboxOf }
