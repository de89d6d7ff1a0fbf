'use strict'
const { bridge, ask } = require('./native.cjs')
const { json, options } = require('./errors.cjs')
const { bindFunction, invalid } = require('./tools.cjs')

/** A policy as the native half takes it, and what must be kept as long as it is used. */
function policyOf(given) {
  if (typeof given === 'string') return { policy: { policy: given }, keep: [] }
  if (typeof given === 'function') return policyOf({ handler: given })
  if (given === null || typeof given !== 'object' || Array.isArray(given)) {
    throw invalid('permissions must be the name of a preset, a function that is asked, or an object with rules')
  }
  const { handler, root, ...rest } = given
  const roots = root === undefined ? {} : { roots: Array.isArray(root) ? root : [root] }
  const policy = { ...rest, ...roots }
  if (handler === undefined) return { policy: { policy }, keep: [] }
  if (typeof handler !== 'function') throw invalid('a permission handler must be a function')
  const binding = bindFunction(({ arguments: args, ...question }, { signal, callId, sessionId, cwd }) =>
    handler({ ...question, arguments: args, callId, sessionId, cwd, signal }),
  )
  return { policy: { policy, target: binding.number }, keep: [binding] }
}

/** A hook as the native half takes it, and its binding. */
function hookOf(given) {
  const { before, after, ...unknown } = given ?? {}
  for (const name of Object.keys(unknown)) throw invalid(`a hook has no ${JSON.stringify(name)}`)
  for (const part of [before, after]) {
    if (part !== undefined && typeof part !== 'function') throw invalid('before and after of a hook must be functions')
  }
  if (!before && !after) throw invalid('a hook has a function before, after, or both')
  const binding = bindFunction(({ arguments: args, result }, { name, callId, sessionId, signal }, kind) => {
    const called = { name, callId, sessionId, arguments: args, signal }
    return kind === 'before_tool' ? before?.(called) : after?.(called, result)
  })
  return { hook: { target: binding.number, before: Boolean(before), after: Boolean(after) }, binding }
}

/** Hard limits for what sessions may spend, and what they spent. Several sessions may share one. */
class Budget {
  #native

  constructor(limits = {}) {
    const given = options(limits)
    this.#native = ask(() => bridge.budget(given))
  }

  get used() {
    return JSON.parse(this.#native.used)
  }

  get limits() {
    return JSON.parse(this.#native.limits)
  }

  set limits(limits) {
    const given = options(limits)
    ask(() => this.#native.setLimits(given))
  }

  static numberOf(budget) {
    if (!(budget instanceof Budget)) throw invalid('budget must be a Budget, or a list of them')
    return budget.#native.number
  }
}
const numberOf = Budget.numberOf
delete Budget.numberOf

/** The numbers of one budget, several, or none. */
function numbersOf(budget) {
  return budget === undefined ? [] : (Array.isArray(budget) ? budget : [budget]).map(numberOf)
}

/** What a session may do and spend, as the native half takes it, and what must be kept with it. */
function bound({ permissions, toolHooks, budget }) {
  const bounds = {}
  const keep = []
  if (permissions !== undefined && permissions !== null) {
    const made = policyOf(permissions)
    bounds.permissions = made.policy
    keep.push(...made.keep)
  }
  if (toolHooks !== undefined) {
    if (!Array.isArray(toolHooks)) throw invalid('toolHooks must be a list of hooks')
    const hooks = toolHooks.map(hookOf)
    bounds.toolHooks = hooks.map(({ hook }) => hook)
    keep.push(...hooks.map(({ binding }) => binding))
  }
  bounds.budgets = numbersOf(budget)
  return { bounds, keep }
}

/** JSON of a policy, and what must be kept with it. */
function policyJson(permissions) {
  const { policy, keep } = policyOf(permissions)
  return { text: json(policy, 'permissions'), keep }
}

module.exports = { Budget, bound, numbersOf, policyOf, policyJson }
