'use strict'
const { BranchlineError } = require('./lib/errors.cjs')
const { sanitizeForDisplay } = require('./lib/display.cjs')
const { Engine, listSessions, readSession } = require('./lib/engine.cjs')
const { EventStream } = require('./lib/events.cjs')
const { Exploration } = require('./lib/exploration.cjs')
const { Budget } = require('./lib/permissions.cjs')
const { Replay } = require('./lib/replay.cjs')
const { Run } = require('./lib/run.cjs')
const { Session } = require('./lib/session.cjs')
const { Toolbox } = require('./lib/toolbox.cjs')
const { Tool, tool } = require('./lib/tools.cjs')
const { Tree } = require('./lib/tree.cjs')
const { version } = require('./package.json')

module.exports = { BranchlineError, Budget, Engine, EventStream, Exploration, Replay, Run, Session, Tool, Toolbox, Tree, listSessions, readSession, sanitizeForDisplay, tool, version }
