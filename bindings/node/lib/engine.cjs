'use strict'
const { bridge, call, flush, ask } = require('./native.cjs')
const { text, json, object, options } = require('./errors.cjs')
const { bindKeys, bindLogins, bindModels, bindPayloads, formOf } = require('./models.cjs')
const { bound, policyOf } = require('./permissions.cjs')
const { replayOf } = require('./replay.cjs')
const { Session, wrap } = require('./session.cjs')
const { Tree } = require('./tree.cjs')
const { bind, invalid, refuseToWaitFor, split: splitTools } = require('./tools.cjs')

/** The native toolbox of an engine, and what must be kept with it. Not for hosts. */
let toolboxOf

/** Worker threads, models and defaults. Two engines share nothing. */
class Engine {
  #native
  #lock = {} // stands for that of its file with keys, which is held while a login is made anew
  #kept = [] // bindings, which its sessions and toolboxes keep too, also those to come

  constructor(given = {}) {
    options(given)
    const { permissions, keySource, loginSource, payloadHook, ...rest } = given
    const policy = permissions === undefined ? undefined : policyOf(permissions)
    const keys = keySource === undefined || keySource === null ? undefined : bindKeys(keySource)
    const logins = loginSource === undefined || loginSource === null ? undefined : bindLogins(loginSource, this.#lock)
    const payloads = payloadHook === undefined || payloadHook === null ? undefined : bindPayloads(payloadHook)
    this.#kept.push(...(policy?.keep ?? []), ...[keys, logins, payloads].filter(Boolean))
    const asked = { keySource: keys?.number, loginSource: logins?.number, payloadHook: payloads?.number }
    const settings = options({ form: formOf(rest), permissions: policy?.policy, ...asked })
    this.#native = ask(() => bridge.engine(settings))
  }

  async createSession(given = {}) {
    object(given, 'options')
    const { settings, keep } = this.#session({ cwd: process.cwd(), ...given })
    return wrap(await call((ticket) => this.#native.create(ticket, settings)), keep)
  }

  async openSession(path, given = {}) {
    text(path, 'path')
    const { settings, keep } = this.#session(given)
    return wrap(await call((ticket) => this.#native.open(ticket, path, settings)), keep)
  }

  async continueRecent(given = {}) {
    object(given, 'options')
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
    object(given, 'options')
    const { tools, customTools, bounds: none, permissions, toolHooks, budget, ...rest } = given
    if (customTools !== undefined) throw invalid('tools of your own belong into tools')
    if (none !== undefined) throw invalid('permissions, toolHooks and budget are options of their own')
    const { bounds, keep } = bound({ permissions, toolHooks, budget })
    const { names, own } = tools === undefined || tools === null ? { own: [] } : splitTools(tools)
    const settings = options({ ...rest, bounds, tools: names, customTools: own.map((binding) => binding.custom) })
    return { settings, keep: [this.#kept, ...own, ...keep] }
  }

  addTool(tool) {
    const binding = bind(tool)
    const custom = json(binding.custom, 'the tool')
    ask(() => this.#native.addTool(custom))
    this.#kept.push(binding)
  }

  static {
    toolboxOf = (engine, cwd) => ({ native: ask(() => engine.#native.toolbox(cwd)), keep: [engine.#kept] })
  }

  async listSessions(given = {}) {
    return (await call((ticket) => this.#native.list(ticket, options(given)))).map((info) => JSON.parse(info))
  }

  async readSession(path) {
    text(path, 'path')
    return new Tree(await call((ticket) => this.#native.read(ticket, path)))
  }

  models() {
    return JSON.parse(ask(() => this.#native.models()))
  }

  availableModels() {
    return JSON.parse(ask(() => this.#native.availableModels()))
  }

  findModel(name) {
    return JSON.parse(ask(() => this.#native.findModel(text(name, 'the model'))))
  }

  findModelOrCustom(name) {
    return JSON.parse(ask(() => this.#native.findModelOrCustom(text(name, 'the model'))))
  }

  modelsInScope(patterns) {
    const given = typeof patterns === 'string' ? [patterns] : patterns
    if (!Array.isArray(given)) throw invalid('patterns must be a list of texts')
    return JSON.parse(ask(() => this.#native.modelsInScope(given.map((pattern) => text(pattern, 'a pattern')))))
  }

  configureModels(models) {
    const given = typeof models === 'string' ? models : options(models)
    ask(() => this.#native.configureModels(given))
  }

  modelProblems() {
    return JSON.parse(ask(() => this.#native.modelProblems()))
  }

  setKey(provider, key) {
    text(provider, 'provider')
    const given = json(key, 'the key')
    ask(() => this.#native.setKey(provider, given))
  }

  setKeySource(source) {
    const keys = source === null ? undefined : bindKeys(source)
    ask(() => this.#native.setKeySource(keys?.number))
    if (keys) this.#kept.push(keys)
  }

  async storeKey(provider, key, given = {}) {
    text(provider, 'provider')
    options(given)
    if (key !== null) text(key, 'the key')
    const stored = json({ ...given, key }, 'the key')
    refuseToWaitFor(this.#lock)
    await call((ticket) => this.#native.storeKey(ticket, provider, stored))
  }

  async storeLogin(provider, login) {
    text(provider, 'provider')
    const stored = json(login, 'the login')
    refuseToWaitFor(this.#lock)
    await call((ticket) => this.#native.storeLogin(ticket, provider, stored))
  }

  async forgetStored(provider) {
    text(provider, 'provider')
    refuseToWaitFor(this.#lock)
    return JSON.parse(await call((ticket) => this.#native.forgetStored(ticket, provider)))
  }

  async storedKeys() {
    refuseToWaitFor(this.#lock)
    return JSON.parse(await call((ticket) => this.#native.storedKeys(ticket)))
  }

  setLoginSource(source) {
    const logins = source === null ? undefined : bindLogins(source, this.#lock)
    ask(() => this.#native.setLoginSource(logins?.number))
    if (logins) this.#kept.push(logins)
  }

  setPayloadHook(hook) {
    const payloads = hook === null ? undefined : bindPayloads(hook)
    ask(() => this.#native.setPayloadHook(payloads?.number))
    if (payloads) this.#kept.push(payloads)
  }

  addHostProvider(name, models, answer) {
    const { definition, binding } = bindModels(name, models, answer)
    ask(() => this.#native.addHostProvider(binding.number, definition))
    this.#kept.push(binding)
  }

  async addReplay(path, replayOptions = {}) {
    text(path, 'path')
    const { name = 'replay', ...given } = object(replayOptions, 'options')
    text(name, 'name')
    return replayOf(await call((ticket) => this.#native.addReplay(ticket, path, name, options(given))))
  }

  addScriptedModel(name, script) {
    text(name, 'name')
    const given = json(script, 'script')
    const hand = ask(() => this.#native.addScriptedModel(name, given))
    return { openGate: (gate) => ask(() => hand.openGate(text(gate, 'gate'))) }
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
function split(given = {}) {
  const { engine = defaultEngine(), ...rest } = object(given, 'options')
  if (!(engine instanceof Engine)) throw invalid('engine must be an Engine')
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

async function readSession(path, given) {
  const [engine, rest] = split(given)
  for (const name of Object.keys(rest)) throw invalid(`readSession has no option ${name}`)
  return engine.readSession(path)
}

module.exports = { Engine, listSessions, readSession, defaultEngine, toolboxOf }
