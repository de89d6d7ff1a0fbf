'use strict'
const { call, flush } = require('./native.cjs')

/**
 * An async iterator over a native queue of events. Events come in batches, one native call for all that wait, and are
 * handed out one by one. The queue is bounded: a consumer that stops reading without ending the loop slows its session.
 */
class EventStream {
  #feed // a promise of the native queue
  #waits
  #signal
  #stop = async () => {
    const feed = await this.#feed.catch(() => undefined)
    feed?.discard()
    if (this.#waiting > 0) await flush()
  }
  #events = []
  #at = 0
  #ended = false
  #turn = Promise.resolve()
  #waiting = 0

  /**
   * With `waits`, a set that belongs to the session, a wait for events does not keep the process alive, and keeps itself
   * alive only through that set: consumer and session are garbage together when nobody else knows the session.
   * `signal` ends the stream with its reason.
   */
  constructor(feed, { waits, signal } = {}) {
    this.#feed = feed
    this.#waits = waits
    this.#signal = signal
    if (signal?.aborted) this.#stop()
    else signal?.addEventListener('abort', this.#stop, { once: true })
  }

  [Symbol.asyncIterator]() {
    return this
  }

  async next() {
    if (this.#waiting === 0 && this.#at < this.#events.length && !this.#signal?.aborted) return this.#take()
    // Calls that have to wait are served in their order.
    this.#waiting++
    const turn = this.#turn.then(() => this.#pull())
    const served = () => {
      this.#waiting--
    }
    this.#turn = turn.then(served, served)
    return turn
  }

  /** Ends the subscription; a `next` that waits is answered `done`. The loop's `break`, `return` and `throw` do this. */
  async return(value) {
    this.#end()
    await this.#stop()
    return { value, done: true }
  }

  async throw(error) {
    await this.return()
    throw error
  }

  async [Symbol.asyncDispose]() {
    await this.return()
  }

  #take() {
    const event = this.#events[this.#at++]
    if (this.#at === this.#events.length) this.#drop()
    return { value: event, done: false }
  }

  async #pull() {
    if (this.#ended) return { value: undefined, done: true }
    if (this.#at === this.#events.length && !this.#signal?.aborted) await this.#fetch()
    if (this.#signal?.aborted && !this.#ended) {
      this.#end()
      throw this.#signal.reason
    }
    if (this.#at < this.#events.length) return this.#take()
    this.#end()
    return { value: undefined, done: true }
  }

  async #fetch() {
    const feed = await this.#feed
    // What is there already is worth staying alive for.
    const wait = this.#waits && !feed.ready() ? {} : undefined
    if (wait) this.#waits.add(wait)
    try {
      const batch = JSON.parse(await call((ticket) => feed.next(ticket), wait))
      // Empty at the end; and who left while we waited wants none of it.
      if (!this.#ended) this.#events = batch
    } finally {
      if (wait) this.#waits.delete(wait)
    }
  }

  #drop() {
    this.#events = []
    this.#at = 0
  }

  #end() {
    this.#ended = true
    this.#drop()
    this.#signal?.removeEventListener('abort', this.#stop)
  }
}

module.exports = { EventStream }
