'use strict'
const { bridge, call, flush, ask } = require('./native.cjs')
const { text, json, options } = require('./errors.cjs')
const { Session, wrap } = require('./session.cjs')

/** Worker threads, models and defaults. Two engines share nothing. */
class Engine {
  #native

  constructor(given = {}) {
    const settings = options(given)
    this.#native = ask(() => bridge.engine(settings))
  }

  async createSession(given = {}) {
    const settings = options({ cwd: process.cwd(), ...given })
    return wrap(await call((ticket) => this.#native.create(ticket, settings)))
  }

  async openSession(path, given = {}) {
    text(path, 'path')
    return wrap(await call((ticket) => this.#native.open(ticket, path, options(given))))
  }

  async continueRecent(given = {}) {
    const settings = options({ cwd: process.cwd(), ...given })
    return wrap(await call((ticket) => this.#native.continueRecent(ticket, settings)))
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

module.exports = { Engine, listSessions }
