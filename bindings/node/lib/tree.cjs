'use strict'
const { call, ask } = require('./native.cjs')
const { text } = require('./errors.cjs')

/** Items fetched with one native call. */
const PAGE = 512

function* pages(reader) {
  for (;;) {
    const page = ask(() => reader.next(PAGE))
    if (page === null) return
    yield* JSON.parse(page)
  }
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
    return JSON.parse(ask(() => this.#native.children(id)))
  }

  branch(leaf) {
    return JSON.parse(ask(() => this.#native.branch(leaf)))
  }

  entry(id) {
    return parsed(ask(() => this.#native.entry(text(id, 'id'))))
  }

  raw(id) {
    return ask(() => this.#native.raw(text(id, 'id'))) ?? undefined
  }

  entries({ after } = {}) {
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

  exportBranch(leaf) {
    return call((ticket) => this.#native.exportBranch(ticket, leaf))
  }

  async context(leaf) {
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
