import branchline from './index.cjs'

export const { BranchlineError, Budget, Engine, EventStream, Exploration, Replay, Run, Session, Tool, Toolbox, Tree, listSessions, readSession, tool, version } = branchline
