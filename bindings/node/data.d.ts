// Data, as it stands in session files. Other programs write them too: expect unknown fields.

export type ThinkingLevel = 'off' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

export interface Usage {
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  cacheWrite1h?: number
  reasoning?: number
  totalTokens: number
  /** US dollars. */
  cost: {
    input: number
    output: number
    cacheRead: number
    cacheWrite: number
    total: number
    totalFromProvider?: boolean
  }
}

export type StopReason = 'stop' | 'length' | 'toolUse' | 'error' | 'aborted' | 'deferred' | 'pending' | 'other'

export interface TextContent {
  type: 'text'
  text: string
  textSignature?: string
}
export interface ImageContent {
  type: 'image'
  /** Base64. */
  data: string
  mimeType: string
}
export interface ThinkingContent {
  type: 'thinking'
  thinking: string
  thinkingSignature?: string
  redacted?: boolean
}
export interface ToolCall {
  type: 'toolCall'
  id: string
  name: string
  arguments: Record<string, unknown>
  thoughtSignature?: string
  namespace?: string
  argumentsError?: string
}
export type ContentBlock = TextContent | ImageContent | ThinkingContent | ToolCall

export interface UserMessage {
  role: 'user'
  content: string | (TextContent | ImageContent)[]
  timestamp: number
}
export interface AssistantMessage {
  role: 'assistant'
  content: (TextContent | ThinkingContent | ToolCall)[]
  api: string
  provider: string
  model: string
  usage: Usage
  stopReason: StopReason
  timestamp: number
  errorMessage?: string
  responseId?: string
  responseModel?: string
  /** Why it ended, in the service's own word. */
  rawStopReason?: string
  durationMs?: number
  thinkingLevel?: ThinkingLevel
  /** The level as the service was told it. */
  providerThinkingLevel?: string
}
export interface ToolResultMessage {
  role: 'toolResult'
  toolCallId: string
  toolName: string
  content: (TextContent | ImageContent)[]
  details?: unknown
  usage?: Usage
  isError: boolean
  durationMs?: number
  timestamp: number
  /** The calls that the tool made of other tools. `complete`: all of them ended, and none is left out. */
  nestedCalls?: { calls: NestedCall[]; complete: boolean }
}
/** A call that a tool made of another one. */
export interface NestedCall {
  id: string
  name: string
  arguments?: unknown
  /** In the place of arguments that are too long to be recorded. */
  argumentsBytes?: number
  status: 'ok' | 'error' | 'aborted'
  durationMs?: number
  error?: string
}
export interface SystemMessage {
  role: 'system'
  content: string | TextContent[]
  sections?: Record<string, string | null>
  timestamp: number
  toolsAdded?: { name: string; description: string; parameters: unknown }[]
  toolsRemoved?: { name: string }[]
}
export interface BashExecutionMessage {
  role: 'bashExecution'
  command: string
  output: string
  exitCode?: number
  cancelled: boolean
  truncated: boolean
  fullOutputPath?: string
  timestamp: number
  excludeFromContext?: boolean
}
export interface CustomMessage {
  role: 'custom'
  customType: string
  content: string | (TextContent | ImageContent)[]
  display: boolean
  details?: unknown
  timestamp: number | null
}
export interface BranchSummaryMessage {
  role: 'branchSummary'
  summary: string
  fromId: string
  timestamp: number | null
}
export interface CompactionSummaryMessage {
  role: 'compactionSummary'
  summary: string
  tokensBefore: number
  timestamp: number | null
}
export type Message =
  | UserMessage
  | AssistantMessage
  | ToolResultMessage
  | SystemMessage
  | BashExecutionMessage
  | CustomMessage
  | BranchSummaryMessage
  | CompactionSummaryMessage

export interface EntryBase {
  id: string
  parentId: string | null
  timestamp: string
}
/** One line of a session file. */
export type Entry = EntryBase &
  (
    | { type: 'message'; message: Message }
    | { type: 'thinking_level_change'; thinkingLevel: ThinkingLevel }
    | { type: 'model_change'; provider: string; modelId: string }
    | { type: 'usage'; kind: string; provider: string; model: string; usage: Usage; note?: string }
    | {
        type: 'compaction'
        summary: string
        firstKeptEntryId: string
        tokensBefore: number
        details?: unknown
        usage?: Usage
        fromHook?: boolean
        systemMessage?: SystemMessage
      }
    | {
        type: 'branch_summary'
        fromId: string
        summary: string
        details?: unknown
        usage?: Usage
        fromHook?: boolean
      }
    | { type: 'custom'; customType: string; data?: unknown }
    | {
        type: 'custom_message'
        customType: string
        content: string | (TextContent | ImageContent)[]
        display: boolean
        details?: unknown
      }
    | { type: 'context_edit'; targetId: string; replacement: { content: string | ContentBlock[] } | null }
    | { type: 'label'; targetId: string; label?: string }
    | { type: 'session_info'; name?: string }
  )

// ---------------------------------------------------------------------------------------------------------------------
// Events, in pi's JSON form

/** How a response grew. */
export type AssistantMessageEvent =
  | { type: 'text_start'; contentIndex: number }
  | { type: 'text_delta'; contentIndex: number; delta: string }
  | { type: 'text_end'; contentIndex: number; content: string }
  | { type: 'thinking_start'; contentIndex: number }
  | { type: 'thinking_delta'; contentIndex: number; delta: string }
  | { type: 'thinking_end'; contentIndex: number; content: string }
  | { type: 'toolcall_start'; contentIndex: number; id: string; toolName: string }
  | { type: 'toolcall_delta'; contentIndex: number; delta: string }
  | { type: 'toolcall_end'; contentIndex: number; toolCall: ToolCall }

export interface ToolResult {
  content: (TextContent | ImageContent)[]
  details?: unknown
  structuredContent?: unknown
  usage?: Usage
  /** The tool gave its result as that of a failure. Absent for errors that were thrown. */
  isError?: boolean
  terminate?: true
}

export interface EventBase {
  /** Counts the events of the session from 1. Merged deltas carry the number of the last one, so numbers may jump. */
  sequence: number
  /** Which of the sessions over one file it comes from; 0 for the one that opened it. */
  sibling: number
}

/** What a session tells its host. New types may come: ignore what you do not know. */
export type SessionEvent = EventBase &
  (
    | { type: 'agent_start' }
    | { type: 'turn_start' }
    | { type: 'message_start'; message: Message }
    | { type: 'message_update'; usage: Usage; assistantMessageEvent: AssistantMessageEvent }
    /** `entryId`: the entry that holds the message. */
    | { type: 'message_end'; message: Message; entryId?: string }
    | { type: 'tool_execution_start'; toolCallId: string; toolName: string; args: unknown; parentToolCallId?: string }
    | {
        type: 'tool_execution_update'
        toolCallId: string
        toolName: string
        args: unknown
        partialResult: ToolResult
        parentToolCallId?: string
      }
    | {
        type: 'tool_execution_end'
        toolCallId: string
        toolName: string
        result: ToolResult
        isError: boolean
        durationMs?: number
        parentToolCallId?: string
      }
    /** Whether a call runs; never sent where everything is allowed. */
    | {
        type: 'permission_decision'
        toolCallId: string
        toolName: string
        effect: 'read' | 'write' | 'execute'
        decision: 'allow' | 'deny'
        rule: string
        by: 'policy' | 'handler' | 'earlier' | 'no_handler' | 'handler_failed' | 'timeout'
        reason?: string
      }
    | { type: 'turn_end'; message: AssistantMessage; toolResults: ToolResultMessage[] }
    | { type: 'agent_end'; messages: Message[]; willRetry: boolean }
    | { type: 'agent_settled'; aborted: boolean }
    | { type: 'queue_update'; steering: string[]; followUp: string[] }
    | { type: 'entry_appended'; entry: Entry }
    | { type: 'session_info_changed'; name?: string }
    | { type: 'thinking_level_changed'; level: ThinkingLevel }
    | { type: 'compaction_start'; reason: CompactionReason }
    | {
        type: 'compaction_end'
        reason: CompactionReason
        result?: CompactionResult
        aborted: boolean
        willRetry: boolean
        errorMessage?: string
      }
    | ({ type: 'auto_retry_start' } & RetryWait)
    | { type: 'auto_retry_end'; success: boolean; attempt: number; finalError?: string }
    | ({ type: 'summarization_retry_scheduled' } & RetryWait)
    | { type: 'summarization_retry_attempt_start'; source: 'compaction' | 'branchSummary'; reason?: CompactionReason }
    | { type: 'summarization_retry_finished' }
    /** A limit of a budget was reached; the run ends. A number, tokens, US dollars, or seconds. */
    | {
        type: 'budget_exceeded'
        limit: 'requests' | 'turns' | 'tokens' | 'cost' | 'wall_time'
        used: number
        max: number
        priceUnknown?: true
      }
    /** Output of a shell run of the user. */
    | { type: 'bash_execution_update'; id?: string; delta: string }
  )

/** Why a compaction runs. */
export type CompactionReason = 'manual' | 'threshold' | 'overflow'

/** What a compaction came to. Token counts are estimates. */
export interface CompactionResult {
  summary: string
  firstKeptEntryId: string
  tokensBefore: number
  estimatedTokensAfter: number
  usage?: Usage
  details: unknown
}

/** A wait before another try. */
export interface RetryWait {
  attempt: number
  maxAttempts: number
  delayMs: number
  errorMessage: string
}
