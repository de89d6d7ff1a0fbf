import branchline from './index.cjs'

export const { BranchlineError, Engine, EventStream, Run, Session, Tool, Toolbox, Tree, listSessions, tool, version } = branchline
