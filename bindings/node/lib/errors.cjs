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

/** JSON of an options object. */
function options(value) {
  return json(object(value, 'options'), 'options')
}

module.exports = { BranchlineError, fromNative, text, json, object, options }
