'use strict'
const { call, flush } = require('./native.cjs')
const { EventStream } = require('./events.cjs')
const { isServing, refuseToWaitForSession } = require('./tools.cjs')

/**
 * What an accepted prompt started: an async iterator over its events up to `agent_settled`, and a result. Until it has
 * settled it keeps the process alive.
 */
class Run {
  #session // listeners live as long as the session, so it must outlive the run
  #native
  #feed
  #events
  #signal
  #over = false // it is known that the run was refused or has settled, whatever its session does now
  #aborted = false // the settled run says that it was aborted
  #iterated = false
  #read // settles when the iterator has nothing more to give
  #end

  constructor(session, native, begin, signal) {
    this.#session = session
    this.#native = native
    this.#signal = signal
    this.#read = new Promise((end) => (this.#end = end))
    this.#feed = this.#start(begin)
    // A refusal is thrown to whoever iterates or asks for the result; until then it is nobody's unhandled rejection.
    this.#feed.catch(() => {
      this.#over = true
      this.#session = undefined
    })
    this.#events = new EventStream(this.#feed)
  }

  async #start(begin) {
    this.#signal?.throwIfAborted()
    const feed = await call(begin)
    this.#watch()
    return feed
  }

  /** Keeps the process and the session alive until the session is idle, and passes an abort of the signal on. */
  async #watch() {
    const native = this.#native
    const signal = this.#signal
    const abort = () => {
      if (!this.#over) call((ticket) => native.abort(ticket)).catch(() => {})
    }
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
    await call((ticket) => native.waitIdle(ticket)).catch(() => {})
    // Listeners that wait have their last event by now, but maybe only on its way.
    await flush()
    signal?.removeEventListener('abort', abort)
    this.#over = true
    this.#session = undefined
  }

  /** Whether it was accepted and has not settled. Discards what is unread. */
  async #running() {
    const feed = await this.#feed.catch(() => undefined)
    if (feed === undefined || this.#over) return false
    const settle = () => (this.#over = true)
    call((ticket) => feed.result(ticket)).then(settle, settle)
    await flush() // by then a result that was there is here
    return !this.#over
  }

  /** Fails in a function that this run waits for. A refusal of the prompt is told first. */
  async #refuse() {
    await this.#feed
    if (!this.#over) refuseToWaitForSession(this.#native)
  }

  /** Settles when the prompt was accepted; rejects when it was refused. */
  get accepted() {
    return this.#feed.then(() => undefined)
  }

  [Symbol.asyncIterator]() {
    return this
  }

  async next() {
    if (isServing()) await this.#refuse()
    this.#iterated = true
    let step
    try {
      step = await this.#events.next()
    } catch (error) {
      this.#end()
      throw error
    }
    if (!step.done) {
      if (step.value.type === 'agent_settled') {
        this.#over = true
        this.#aborted = step.value.aborted
      }
      return step
    }
    this.#end()
    if (this.#aborted && this.#signal?.aborted) {
      this.#aborted = false // thrown once; then the iterator is over like any other
      throw this.#signal.reason
    }
    return step
  }

  /** Leaving the loop early aborts the run: nobody watches it any more, and it may be running tools. */
  async return(value) {
    this.#end()
    this.#aborted = false
    const step = await this.#events.return(value)
    if (await this.#running()) await call((ticket) => this.#native.abort(ticket)).catch(() => {})
    return step
  }

  async throw(error) {
    await this.return()
    throw error
  }

  async [Symbol.asyncDispose]() {
    await this.return()
  }

  /**
   * What the run came to. Events that nobody has begun to read are discarded; while they are read this waits for the
   * reader. Rejects with the signal's reason when the signal aborted the run.
   */
  async result() {
    const feed = await this.#feed
    await this.#refuse()
    if (this.#iterated) await this.#read
    const result = JSON.parse(await call((ticket) => feed.result(ticket)))
    this.#over = true
    if (result.aborted) this.#signal?.throwIfAborted()
    return result
  }
}

module.exports = { Run }
