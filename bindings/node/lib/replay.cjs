'use strict'
const { ask } = require('./native.cjs')
const { recorded } = require('./tools.cjs')

const secret = Symbol('branchline.replay')

/** A recorded session that answers again. */
class Replay {
  #native
  #tools

  constructor(key, native) {
    if (key !== secret) throw new TypeError('use engine.addReplay')
    this.#native = native
  }

  get models() {
    return JSON.parse(ask(() => this.#native.models))
  }

  get divergence() {
    return JSON.parse(ask(() => this.#native.divergence))
  }

  get tools() {
    const native = this.#native
    const make = (definition) => recorded(definition, { replay: native.number, name: definition.name }, native)
    return [...(this.#tools ??= JSON.parse(ask(() => native.tools)).map(make))]
  }
}

const replayOf = (native) => new Replay(secret, native)

module.exports = { Replay, replayOf }
