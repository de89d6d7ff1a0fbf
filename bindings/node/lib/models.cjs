'use strict'
const { setImmediate: breath } = require('node:timers/promises')
const { text, json } = require('./errors.cjs')
const { bindFunction, invalid } = require('./tools.cjs')

/** How long pieces that are there at once are written before others have their turn, in milliseconds. */
const STRETCH = 8

/** What gives the pieces of an answer one by one, if anything does. */
function iteratorOf(value) {
  if (value === null || typeof value !== 'object') return undefined
  return value[Symbol.asyncIterator]?.() ?? value[Symbol.iterator]?.()
}

/** Lets go of an iterator: a generator runs its `finally`. What it throws by then is of no interest. */
function leave(iterator) {
  try {
    void Promise.resolve(iterator.return?.()).catch(() => {})
  } catch {
    // as above
  }
}

const nothing = (piece) => piece === undefined || piece === null
const ends = (piece) => piece?.type === 'done' || piece?.type === 'error'

/** Writes what a host's model gave, a value or many. `push` says whether anybody still reads. */
async function write(value, push, signal) {
  const iterator = iteratorOf(value)
  if (iterator === undefined) {
    if (!nothing(value)) push(value)
    return
  }
  // Behind the listeners of the signal, and while the iterator may be waiting.
  const abort = () => queueMicrotask(() => leave(iterator))
  if (signal.aborted) return abort()
  signal.addEventListener('abort', abort, { once: true })
  let done = false
  let since = performance.now()
  try {
    while (!done) {
      const step = await iterator.next()
      done = step.done === true
      const piece = await step.value
      if (signal.aborted) return
      if (!nothing(piece) && (!push(piece) || ends(piece))) return
      if (performance.now() - since > STRETCH) {
        await breath() // an abort comes through the event loop
        since = performance.now()
      }
    }
  } finally {
    signal.removeEventListener('abort', abort)
    if (!done && !signal.aborted) leave(iterator)
  }
}

/** The binding of a function that answers requests for models, and their provider as the native half takes it. */
function bindModels(name, models, answer) {
  text(name, 'name')
  if (!Array.isArray(models)) throw invalid('models must be a list of ids and models')
  if (typeof answer !== 'function') throw invalid('the models of a host need a function that answers')
  const definition = json({ name, models }, 'the models')
  return { definition, binding: bindFunction((request, { signal }) => answer(request, { signal }), { write }) }
}

/** The binding of a function that hands out keys. */
function bindKeys(source) {
  if (typeof source !== 'function') throw invalid('a key source must be a function')
  return bindFunction((request, { signal }) => source(request, { signal }))
}

/** The binding of a function that makes logins anew, under the lock of an engine's file with keys. */
function bindLogins(source, lock) {
  if (typeof source !== 'function') throw invalid('a login source must be a function')
  return bindFunction((request, { signal }) => source(request, { signal }), { waits: lock })
}

/** The binding of a function that may replace the bodies of requests. */
function bindPayloads(hook) {
  if (typeof hook !== 'function') throw invalid('a payload hook must be a function')
  return bindFunction((request, { signal }) => hook(request, { signal }))
}

/** Engine options as the native half takes them; what is no data is given beside them. */
function formOf({ proxy, ...form }) {
  if (proxy === undefined) return form
  if (form.network?.proxy !== undefined) throw invalid('proxy and network.proxy are the same option; give one')
  return { ...form, network: { ...form.network, proxy } }
}

module.exports = { bindKeys, bindLogins, bindModels, bindPayloads, formOf, write }
