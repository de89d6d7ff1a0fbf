'use strict'
const { call, flush, ask } = require('./native.cjs')
const { text, optionalText, json, object, options, only, signalOf, capacityOf } = require('./errors.cjs')
const { EventStream } = require('./events.cjs')
const { Exploration } = require('./exploration.cjs')
const { numbersOf } = require('./permissions.cjs')
const { Run } = require('./run.cjs')
const { Tool, invalid, refuseToWaitForSession, serving } = require('./tools.cjs')
const { Tree } = require('./tree.cjs')

const secret = Symbol('branchline.session')

/** A live session. When the last reference is garbage, or after `close`, its file is free for others. */
class Session {
  #native
  #tree
  #waits = new Set() // of event streams
  #tools // the bindings of its tools, which live as long as it

  constructor(key, native, tools) {
    if (key !== secret) throw new TypeError('use Session.create, Session.open or Session.continueRecent')
    this.#native = native
    this.#tools = tools
  }

  get id() {
    return this.#native.id
  }

  get path() {
    return this.#native.path
  }

  get cwd() {
    return this.#native.cwd
  }

  get leaf() {
    return this.#native.leaf
  }

  get name() {
    return this.#native.name
  }

  get sibling() {
    return this.#native.sibling
  }

  get state() {
    return JSON.parse(ask(() => this.#native.state))
  }

  get tree() {
    return (this.#tree ??= new Tree(this.#native.tree()))
  }

  get resources() {
    return JSON.parse(ask(() => this.#native.resources))
  }

  async reloadResources() {
    return JSON.parse(await this.#call((ticket) => this.#native.reloadResources(ticket)))
  }

  async setResources(resources) {
    const given = options(resources)
    return JSON.parse(await this.#call((ticket) => this.#native.setResources(ticket, given)))
  }

  prompt(prompt, how = {}) {
    text(prompt, 'prompt')
    const { signal, ...rest } = object(how, 'options')
    const given = options(rest)
    return this.#start((ticket) => this.#native.prompt(ticket, prompt, given), signal)
  }

  promptCustom(message, how = {}) {
    const { signal, ...rest } = object(how, 'options')
    const custom = json(message, 'message')
    const given = options(rest)
    return this.#start((ticket) => this.#native.promptCustom(ticket, custom, given), signal)
  }

  #start(begin, signal) {
    signalOf(signal)
    return new Run(this, this.#native, begin, signal)
  }

  async run(prompt, given) {
    // Else the text would be queued all the same.
    if (given?.whenRunning === 'steer' || given?.whenRunning === 'followUp') refuseToWaitForSession(this.#native)
    return this.prompt(prompt, given).result()
  }

  events(given = {}) {
    const { capacity, signal } = only(given, ['capacity', 'signal'])
    signalOf(signal)
    const size = capacityOf(capacity)
    const feed = ask(() => this.#native.events(size))
    return new EventStream(Promise.resolve(feed), { waits: this.#waits, signal })
  }

  async steer(message) {
    await this.#call((ticket) => this.#native.steer(ticket, text(message, 'text')))
  }

  async followUp(message) {
    await this.#call((ticket) => this.#native.followUp(ticket, text(message, 'text')))
  }

  async clearQueues() {
    return JSON.parse(await this.#call((ticket) => this.#native.clearQueues(ticket)))
  }

  async setQueueModes(modes) {
    await this.#call((ticket) => this.#native.setQueueModes(ticket, options(modes)))
  }

  abortRetry() {
    ask(() => this.#native.abortRetry())
  }

  abortSummary() {
    ask(() => this.#native.abortSummary())
  }

  async abort() {
    await this.#call((ticket) => this.#native.abort(ticket))
  }

  async waitIdle() {
    refuseToWaitForSession(this.#native)
    await this.#call((ticket) => this.#native.waitIdle(ticket))
  }

  async navigate(entryId, given = {}) {
    text(entryId, 'entryId')
    return JSON.parse(await this.#call((ticket) => this.#native.navigate(ticket, entryId, options(given))))
  }

  async fork(entryId, given = {}) {
    text(entryId, 'entryId')
    const { session, editorText } = await this.#call((ticket) => this.#native.fork(ticket, entryId, options(given)))
    return { session: wrap(session, this.#tools), editorText }
  }

  async clone() {
    return wrap(await this.#call((ticket) => this.#native.cloneSession(ticket)), this.#tools)
  }

  async branch(at, how = {}) {
    const { budget, ...given } = object(how, 'options')
    const where = at === undefined ? {} : { at }
    const [settings, budgets] = [options(named({ ...where, ...given })), numbersOf(budget)]
    return wrap(await this.#call((ticket) => this.#native.branch(ticket, settings, budgets)), this.#tools)
  }

  isSiblingOf(other) {
    if (!(other instanceof Session)) throw invalid('isSiblingOf takes a session')
    return this.#native.isSiblingOf(other.#native)
  }

  explore(prompts, how = {}) {
    const { signal, budget, ...rest } = object(how, 'options')
    signalOf(signal)
    if (!Array.isArray(prompts)) throw invalid('prompts must be a list of prompts')
    const all = json(prompts.map((prompt) => (typeof prompt === 'string' ? prompt : named(prompt))), 'prompts')
    const [settings, budgets] = [options(named(rest)), numbersOf(budget)]
    const begin = (ticket) => this.#native.explore(ticket, all, settings, budgets)
    return new Exploration(this, begin, (native) => wrap(native, this.#tools), signal)
  }

  async adopt(winner, given = {}) {
    const session = winner instanceof Session ? winner : winner?.session
    if (!(session instanceof Session)) throw invalid('adopt takes a session or the result of an exploration')
    const settings = options(given)
    return JSON.parse(await this.#call((ticket) => this.#native.adopt(ticket, session.#native, settings)))
  }

  async newSession(given = {}) {
    const settings = options(given)
    return wrap(await this.#call((ticket) => this.#native.newSession(ticket, settings)), this.#tools)
  }

  async switch(path, given = {}) {
    text(path, 'path')
    return wrap(await this.#call((ticket) => this.#native.switch(ticket, path, options(given))), this.#tools)
  }

  async importSession(path, given = {}) {
    text(path, 'path')
    return wrap(await this.#call((ticket) => this.#native.importSession(ticket, path, options(given))), this.#tools)
  }

  async compact(instructions) {
    optionalText(instructions, 'instructions')
    return JSON.parse(await this.#call((ticket) => this.#native.compact(ticket, instructions)))
  }

  async stats() {
    return JSON.parse(await this.#call((ticket) => this.#native.stats(ticket)))
  }

  async contextUsage() {
    return JSON.parse(await this.#call((ticket) => this.#native.contextUsage(ticket)))
  }

  async forkMessages() {
    return (await this.#call((ticket) => this.#native.forkMessages(ticket))).map((message) => JSON.parse(message))
  }

  async editContext(entryId, replacement) {
    text(entryId, 'entryId')
    const given = json(replacement, 'replacement')
    return this.#call((ticket) => this.#native.editContext(ticket, entryId, given))
  }

  async recordBash(execution) {
    const given = options(execution)
    return this.#call((ticket) => this.#native.recordBash(ticket, given))
  }

  async runBash(command, given = {}) {
    text(command, 'command')
    return JSON.parse(await this.#call((ticket) => this.#native.runBash(ticket, command, options(given))))
  }

  abortBash() {
    ask(() => this.#native.abortBash())
  }

  async sendCustomMessage(message, how = {}) {
    const { delivery = 'store' } = only(how, ['delivery'])
    const [given, when] = [json(message, 'message'), json(delivery, 'delivery')]
    return this.#call((ticket) => this.#native.sendCustomMessage(ticket, given, when))
  }

  label(entryId) {
    return this.tree.label(entryId)?.text
  }

  async setLabel(entryId, label) {
    text(entryId, 'entryId')
    optionalText(label, 'label')
    return this.#call((ticket) => this.#native.setLabel(ticket, entryId, label))
  }

  async setName(name) {
    await this.#call((ticket) => this.#native.setName(ticket, text(name, 'name')))
  }

  async setModel(model) {
    await this.#call((ticket) => this.#native.setModel(ticket, text(model, 'model')))
  }

  async setThinkingLevel(level) {
    await this.#call((ticket) => this.#native.setThinkingLevel(ticket, text(level, 'level')))
  }

  async setTools(names) {
    if (!Array.isArray(names)) throw invalid('setTools takes a list of names and tools')
    const { tools } = named({ tools: names })
    for (const tool of tools) text(tool, 'the name of a tool')
    await this.#call((ticket) => this.#native.setTools(ticket, tools))
  }

  async appendCustom(customType, data) {
    text(customType, 'customType')
    const given = data === undefined ? undefined : json(data, 'data')
    return this.#call((ticket) => this.#native.appendCustom(ticket, customType, given))
  }

  async appendCustomMessage(customType, content, how = {}) {
    text(customType, 'customType')
    const { display = true, details } = only(how, ['display', 'details'])
    if (typeof display !== 'boolean') throw invalid('display must be true or false')
    const given = details === undefined ? undefined : json(details, 'details')
    const body = json(content, 'content')
    return this.#call((ticket) => this.#native.appendCustomMessage(ticket, customType, body, display, given))
  }

  entry(id) {
    return this.tree.entry(id)
  }

  async context(leaf = this.leaf) {
    return this.tree.context(leaf)
  }

  async close() {
    await this.#call((ticket) => this.#native.close(ticket))
  }

  async [Symbol.asyncDispose]() {
    await this.close()
  }

  /** When a call is done, listeners have heard what it caused, and so have the signals of tools. */
  async #call(begin) {
    const value = await call(begin)
    if (this.#waits.size > 0 || serving()) await flush()
    return value
  }
}

/** Options in which tools may be named by themselves. */
function named(given) {
  if (given === null || typeof given !== 'object') throw invalid('options must be an object')
  if (!Array.isArray(given.tools)) return given
  return { ...given, tools: given.tools.map((tool) => (tool instanceof Tool ? tool.name : tool)) }
}

function wrap(native, tools) {
  return new Session(secret, native, tools)
}

module.exports = { Session, wrap }
