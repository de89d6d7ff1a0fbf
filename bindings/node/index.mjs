import branchline from './index.cjs'

export const { BranchlineError, Budget, Engine, EventStream, Exploration, Replay, Run, Session, Tool, Toolbox, Tree, listSessions, readSession, sanitizeForDisplay, tool, version } = branchline
