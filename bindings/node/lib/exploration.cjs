'use strict'
const { call, flush, ask } = require('./native.cjs')
const { BranchlineError } = require('./errors.cjs')
const { EventStream } = require('./events.cjs')
const { invalid } = require('./tools.cjs')

/** What came of one prompt, with the session that ran it. */
function result(session, facts) {
  const { error, messages, ...rest } = JSON.parse(facts)
  const { code, message, path } = error ?? {}
  const failed = [null, 'error', 'aborted'].includes(rest.stopReason)
  return {
    session,
    ...rest,
    error: error === null ? null : new BranchlineError(message, { code, path: path ?? undefined }),
    isComplete: error === null && !rest.aborted && !failed,
    messages,
  }
}

/**
 * Several siblings at work: an async iterator over the events of all, and their results. Until all are done it keeps
 * the process alive.
 */
class Exploration {
  #session // what waits at the session must not be collected meanwhile
  #native
  #events
  #wrap
  #signal
  #iterated = false
  #over // settles when the iterator has nothing more to give
  #end

  constructor(session, begin, wrap, signal) {
    this.#session = session
    this.#wrap = wrap
    this.#signal = signal
    this.#over = new Promise((end) => (this.#end = end))
    this.#native = this.#start(begin)
    const feed = this.#native.then((native) => native.feed())
    // A refusal is thrown to whoever iterates or asks for results; until then it is nobody's unhandled rejection.
    feed.catch(() => {})
    this.#events = new EventStream(feed)
  }

  async #start(begin) {
    this.#signal?.throwIfAborted()
    const native = await call(begin)
    this.#watch(native)
    return native
  }

  /** Keeps the process alive until all are done, and passes an abort of the signal on. */
  async #watch(native) {
    const signal = this.#signal
    const abort = () => {
      call((ticket) => native.abort(ticket)).catch(() => {})
    }
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
    await call((ticket) => native.done(ticket)).catch(() => {})
    await flush()
    signal?.removeEventListener('abort', abort)
    this.#session = undefined
  }

  /** Settles when all siblings are made; rejects when the exploration was refused. */
  get accepted() {
    return this.#native.then(() => undefined)
  }

  [Symbol.asyncIterator]() {
    return this
  }

  async next() {
    this.#iterated = true
    try {
      const step = await this.#events.next()
      if (step.done) this.#end()
      return step
    } catch (error) {
      this.#end()
      throw error
    }
  }

  /** Leaving the loop early aborts everything. */
  async return(value) {
    this.#end()
    const step = await this.#events.return(value)
    if (this.#session !== undefined) await this.abort()
    return step
  }

  async throw(error) {
    await this.return()
    throw error
  }

  async [Symbol.asyncDispose]() {
    await this.return()
  }

  /** The siblings, in the order of their prompts. */
  async siblings() {
    const native = await this.#native
    const rows = await call((ticket) => native.siblings(ticket))
    return rows.map(({ session }) => this.#wrap(session))
  }

  /**
   * The results, in the order of the prompts. Events that nobody has begun to read are discarded; while they are read
   * this waits for the reader. Rejects with the signal's reason when the signal aborted something.
   */
  async results() {
    const native = await this.#native
    if (this.#iterated) await this.#over
    const rows = await call((ticket) => native.results(ticket))
    const results = rows.map(({ session, facts }) => result(this.#wrap(session), facts))
    if (results.some((result) => result.aborted)) this.#signal?.throwIfAborted()
    return results
  }

  /** Aborts everything and waits until all are idle; who waited for a turn gets none. */
  async abort() {
    const native = await this.#native.catch(() => undefined)
    if (native) await call((ticket) => native.abort(ticket))
  }

  /** Aborts one sibling, by the position of its prompt, and nothing else. */
  async abortOne(prompt) {
    if (!Number.isInteger(prompt)) throw invalid('abortOne takes the position of a prompt')
    const native = await this.#native
    ask(() => native.abortOne(prompt))
  }
}

module.exports = { Exploration }
