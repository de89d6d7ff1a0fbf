'use strict'
const { call, ask } = require('./native.cjs')
const { BranchlineError, text, json, object, only, signalOf } = require('./errors.cjs')
const { defaultEngine, toolboxOf } = require('./engine.cjs')
const { policyJson } = require('./permissions.cjs')
const { bind, invalid } = require('./tools.cjs')

/** What a tool call came to. */
class ToolCallResult {
  constructor(value) {
    Object.assign(this, value)
  }

  get text() {
    return this.content.filter((block) => block.type === 'text').map((block) => block.text).join('\n')
  }

  toString() {
    return this.text
  }
}

/** The arguments among the options of a call, and the options of the call itself. */
function sort(tool, given, names) {
  if (given === null || typeof given !== 'object') throw invalid(`options of ${tool} must be an object`)
  const { signal, onProgress, check, ...args } = given
  for (const name of Object.keys(args)) {
    if (!names.includes(name)) throw invalid(`${tool} has no option ${JSON.stringify(name)}; it has ${names.join(', ')}`)
  }
  return [args, { signal, onProgress, check }]
}

/** The tools in a directory, as functions. */
class Toolbox {
  #native
  #keep = []

  constructor(given = {}) {
    const { cwd = process.cwd(), tools = [], permissions, engine, ...unknown } = object(given, 'options')
    for (const name of Object.keys(unknown)) throw invalid(`a toolbox has no option ${JSON.stringify(name)}`)
    text(cwd, 'cwd')
    if (!Array.isArray(tools)) throw invalid('tools must be a list of tools')
    const made = toolboxOf(engine ?? defaultEngine(), cwd)
    this.#native = made.native
    this.#keep.push(...made.keep)
    tools.forEach((tool) => this.add(tool))
    if (permissions !== undefined) this.setPermissions(permissions)
  }

  get definitions() {
    return JSON.parse(ask(() => this.#native.definitions()))
  }

  setPermissions(permissions) {
    const { text, keep } = policyJson(permissions)
    ask(() => this.#native.setPermissions(text))
    this.#keep.push(...keep)
  }

  add(tool) {
    const binding = bind(tool)
    const custom = json(binding.custom, 'the tool')
    ask(() => this.#native.add(custom))
    this.#keep.push(binding)
  }

  async call(tool, args = {}, how = {}) {
    const { signal, onProgress, check = true } = only(how, ['signal', 'onProgress', 'check'])
    signalOf(signal)
    if (onProgress !== undefined && typeof onProgress !== 'function') throw invalid('onProgress must be a function')
    const name = text(typeof tool === 'string' ? tool : tool?.name, 'name')
    const given = json(args, 'arguments')
    signal?.throwIfAborted()
    const running = ask(() => this.#native.start(name, given))
    const abort = () => running.cancel()
    signal?.addEventListener('abort', abort, { once: true })
    try {
      for (;;) {
        const step = JSON.parse(await call((ticket) => running.next(ticket, onProgress !== undefined)))
        if (step.update) {
          await onProgress(new ToolCallResult(step.update))
          continue
        }
        signal?.throwIfAborted()
        const result = new ToolCallResult(step.result)
        if (!check || !result.isError) return result
        throw Object.assign(new BranchlineError(result.text, { code: 'tool_failed' }), { result })
      }
    } finally {
      signal?.removeEventListener('abort', abort)
      running.cancel()
    }
  }

  async read(path, options = {}) {
    const [args, how] = sort('read', options, ['offset', 'limit'])
    return this.call('read', { path: text(path, 'path'), ...args }, how)
  }

  async write(path, content, options = {}) {
    const [args, how] = sort('write', options, [])
    return this.call('write', { path: text(path, 'path'), content: text(content, 'content'), ...args }, how)
  }

  async edit(path, edits, options = {}) {
    const [args, how] = sort('edit', options, [])
    if (!Array.isArray(edits)) throw invalid('edits must be a list of [old, new]')
    const pairs = edits.map((edit) => (Array.isArray(edit) ? { oldText: edit[0], newText: edit[1] } : edit))
    return this.call('edit', { path: text(path, 'path'), edits: pairs, ...args }, how)
  }

  async bash(command, options = {}) {
    const [args, how] = sort('bash', options, ['timeout'])
    return this.call('bash', { command: text(command, 'command'), ...args }, how)
  }

  async ls(path, options = {}) {
    const [args, how] = sort('ls', options, ['limit'])
    return this.call('ls', path === undefined ? args : { path: text(path, 'path'), ...args }, how)
  }

  async find(pattern, options = {}) {
    const [args, how] = sort('find', options, ['path', 'limit'])
    return this.call('find', { pattern: text(pattern, 'pattern'), ...args }, how)
  }

  async grep(pattern, options = {}) {
    const [args, how] = sort('grep', options, ['path', 'glob', 'ignoreCase', 'literal', 'context', 'limit'])
    return this.call('grep', { pattern: text(pattern, 'pattern'), ...args }, how)
  }
}

module.exports = { Toolbox }
