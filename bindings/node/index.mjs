import branchline from './index.cjs'

export const { BranchlineError, Engine, EventStream, Run, Session, Tree, listSessions, version } = branchline
