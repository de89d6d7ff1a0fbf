'use strict'

/** The one error type of the package; `code` is for programs, `message` says what to do next. */
class BranchlineError extends Error {
  constructor(message, { code = 'internal', path, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.path = path
  }

  /** Reads the form in which the native half reports errors. */
  static parse(json) {
    const { code, message, path } = JSON.parse(json)
    return new BranchlineError(message, { code, path: path ?? undefined })
  }
}
// On the prototype, as with the built-in errors, so that it does not show up when one is printed.
Object.defineProperty(BranchlineError.prototype, 'name', { value: 'BranchlineError', writable: true, configurable: true })

/** Turns whatever the native half threw into a BranchlineError: its own reports, and refused argument types. */
function fromNative(error) {
  if (error instanceof BranchlineError || !(error instanceof Error)) return error
  if (error.message.startsWith('{"code":')) return BranchlineError.parse(error.message)
  return new BranchlineError(error.message, { code: 'invalid_argument', cause: error })
}

function invalid(message) {
  return new BranchlineError(message, { code: 'invalid_argument' })
}

/** The argument, if it is a string. */
function text(value, name) {
  if (typeof value !== 'string') throw invalid(`${name} must be a string, not ${value === null ? 'null' : typeof value}`)
  return value
}

/** JSON of a value that a host gave. */
function json(value, name) {
  let out
  try {
    out = JSON.stringify(value)
  } catch (error) {
    throw new BranchlineError(`${name} cannot be written as JSON: ${error.message}`, { code: 'invalid_argument', cause: error })
  }
  if (out === undefined) throw invalid(`${name} cannot be written as JSON`)
  return out
}

/** The argument, if it is an object; a list is none. */
function object(value, name) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw invalid(`${name} must be an object`)
  return value
}

/** The argument, if it is a string, or nothing. */
function optionalText(value, name) {
  return value === undefined || value === null ? value : text(value, name)
}

/** The options, if they are an object with no other names than these. */
function only(value, names) {
  for (const name of Object.keys(object(value, 'options'))) {
    if (!names.includes(name)) throw invalid(`there is no option ${JSON.stringify(name)} here; there is ${names.join(', ')}`)
  }
  return value
}

/** The signal, if it is one, or nothing. By its shape: another realm's is no instance of ours. */
function signalOf(signal) {
  if (signal === undefined || signal === null) return undefined
  if (typeof signal.addEventListener !== 'function' || typeof signal.throwIfAborted !== 'function') {
    throw invalid('signal must be an AbortSignal')
  }
  return signal
}

/** The length of a queue of events, if it is one, or nothing. */
function capacityOf(capacity) {
  if (capacity === undefined || capacity === null) return undefined
  if (!Number.isInteger(capacity) || capacity < 0 || capacity > 0xffffffff) {
    throw invalid(`capacity must be a whole number from 0 to ${0xffffffff}, not ${typeof capacity === 'number' ? capacity : typeof capacity}`)
  }
  return capacity
}

/** JSON of an options object. */
function options(value) {
  return json(object(value, 'options'), 'options')
}

module.exports = { BranchlineError, fromNative, text, optionalText, json, object, options, only, signalOf, capacityOf }
