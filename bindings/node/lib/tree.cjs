'use strict'
const { call, ask } = require('./native.cjs')
const { BranchlineError, text, optionalText, only } = require('./errors.cjs')

/** Items fetched with one native call. */
const PAGE = 512

function* pages(reader) {
  for (;;) {
    const page = ask(() => reader.next(PAGE))
    if (page === null) return
    yield* JSON.parse(page)
  }
}

function unknown(id) {
  const message = `no entry of this session has the id ${JSON.stringify(id)}; use the id of an entry of its tree`
  return new BranchlineError(message, { code: 'entry_not_found' })
}

const parsed = (json) => (json === null ? undefined : JSON.parse(json))

/** The session's tree, to read: a view that sees new entries as they come. Nothing is copied until asked for. */
class Tree {
  #native

  constructor(native) {
    this.#native = native
  }

  get size() {
    return this.#native.size
  }

  get lastId() {
    return this.#native.lastId
  }

  get name() {
    return this.#native.name
  }

  get header() {
    return JSON.parse(ask(() => this.#native.header))
  }

  has(id) {
    return ask(() => this.#native.has(text(id, 'id')))
  }

  parent(id) {
    return ask(() => this.#native.parent(text(id, 'id')))
  }

  children(id) {
    optionalText(id, 'id')
    const children = JSON.parse(ask(() => this.#native.children(id)))
    // Without children: an entry that the file has lost may still be named as parent.
    if (children.length === 0) this.#known(id, 'id')
    return children
  }

  branch(leaf) {
    this.#known(leaf, 'leaf')
    return JSON.parse(ask(() => this.#native.branch(leaf)))
  }

  /** Fails unless it is the id of an entry, or nothing. */
  #known(id, name) {
    if (typeof optionalText(id, name) === 'string' && !this.has(id)) throw unknown(id)
  }

  entry(id) {
    return parsed(ask(() => this.#native.entry(text(id, 'id'))))
  }

  raw(id) {
    return ask(() => this.#native.raw(text(id, 'id'))) ?? undefined
  }

  entries(given = {}) {
    const { after } = only(given, ['after'])
    optionalText(after, 'after')
    return pages(ask(() => this.#native.entries(after)))
  }

  walk() {
    return pages(ask(() => this.#native.walk()))
  }

  [Symbol.iterator]() {
    return this.entries()
  }

  label(id) {
    return parsed(ask(() => this.#native.label(text(id, 'id'))))
  }

  labels() {
    return new Map(JSON.parse(ask(() => this.#native.labels())))
  }

  diagnostics() {
    return JSON.parse(ask(() => this.#native.diagnostics()))
  }

  async exportBranch(leaf) {
    this.#known(leaf, 'leaf')
    return call((ticket) => this.#native.exportBranch(ticket, leaf))
  }

  async context(leaf) {
    this.#known(leaf, 'leaf')
    const [facts, ...lists] = await call((ticket) => this.#native.context(ticket, leaf))
    const context = { ...JSON.parse(facts), entryIds: [], messages: [] }
    for (const list of lists) {
      for (const [id, message] of JSON.parse(list)) {
        context.entryIds.push(id)
        context.messages.push(message)
      }
    }
    return context
  }
}

module.exports = { Tree }
