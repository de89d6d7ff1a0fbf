'use strict'
/*
 * The connection to the native half: tickets, errors, and what keeps the process alive.
 *
 * Each asynchronous native call gets a ticket; its outcome comes back through one callback. Tickets are `strong` (a
 * pending call keeps the process alive, like any promise of work) or weak (waiting for events that may never come does
 * not). Both are counted here, so that the native side holds no reference to the event loop of its own.
 */

const { constants } = require('node:buffer')
const native = require('../branchline.node')
const { BranchlineError, fromNative } = require('./errors.cjs')

/**
 * Who waits, by ticket. A weak wait is held by its session only (see EventStream): held here, a listener that nobody
 * stops would keep its session from ever being garbage.
 * @type {Map<number, {settle: Function} | WeakRef<{settle: Function}>>}
 */
const open = new Map()
let strong = 0
let last = 0

const bridge = new native.Bridge((ticket, failure, value) => {
  release(ticket)?.settle({ failure, value })
}, constants.MAX_STRING_LENGTH)

// Sees out what runs when the process ends by itself or by process.exit(); a terminated worker has a native hook.
process.once('exit', () => bridge.end())

function release(ticket) {
  const waiting = open.get(ticket)
  open.delete(ticket)
  if (waiting instanceof WeakRef) return waiting.deref()
  if (waiting && --strong === 0) bridge.unref()
  return waiting
}

/**
 * Calls `begin(ticket)` and waits for its outcome. With `weak`, an object that the caller keeps, the wait neither keeps
 * the process alive nor itself. The error is made here, in an async function, so that its stack shows who called.
 */
async function call(begin, weak) {
  const outcome = new Promise((settle) => {
    do last = (last + 1) >>> 0
    while (open.has(last))
    if (weak) {
      weak.settle = settle
      open.set(last, new WeakRef(weak))
    } else {
      open.set(last, { settle })
      if (strong++ === 0) bridge.ref()
    }
  })
  const ticket = last
  try {
    begin(ticket)
  } catch (error) {
    release(ticket)
    throw fromNative(error)
  }
  const { failure, value } = await outcome
  if (failure !== null && failure !== undefined) throw BranchlineError.parse(failure)
  return value
}

/**
 * Keeps the process alive until every wait that could be answered by now is answered: weak waits end with what they
 * wait for, and whoever ended it wants the waiter to know before the process may go.
 */
function flush() {
  return call((ticket) => bridge.flush(ticket))
}

/** Calls a synchronous native function. */
function ask(work) {
  try {
    return work()
  } catch (error) {
    throw fromNative(error)
  }
}

module.exports = { bridge, call, flush, ask }
