/// <reference types="node" />
/// <reference lib="esnext.disposable" />

import type {
  CompactionResult,
  ContentBlock,
  Entry,
  ImageContent,
  Message,
  SessionEvent,
  StopReason,
  TextContent,
  ThinkingLevel,
  ToolResult,
  Usage,
} from './data.js'

export * from './data.js'

/** Version of the package. */
export declare const version: string

/**
 * The text without what a terminal would obey and what changes the order in which it is read: escape sequences with their
 * content (colours, titles, links), other control characters but LF and TAB, and the controls of bidirectional text. CR LF
 * becomes LF, and so does a CR by itself. A sequence that does not end in its line loses only its beginning, so that it hides
 * nothing. The library stores and tells text as it came: use this for what is shown. For HTML escape what comes out.
 */
export declare function sanitizeForDisplay(text: string): string

/** Stable names of what can go wrong. New ones may come. */
export type ErrorCode =
  | 'invalid_argument'
  | 'internal'
  | 'too_large'
  | 'invalid_session_file'
  | 'entry_not_found'
  | 'invalid_session_id'
  | 'invalid_replacement'
  | 'not_on_active_branch'
  | 'not_editable'
  | 'fork_source_invalid'
  | 'file_exists'
  | 'session_locked'
  | 'read_only'
  | 'storage_failed'
  | 'storage_changed'
  | 'working_directory_missing'
  | 'not_saved'
  | 'invalid_fork_target'
  | 'running'
  | 'compacting'
  | 'cancelled'
  | 'closed'
  | 'timeout'
  | 'would_deadlock'
  | 'unknown_model'
  | 'no_model'
  | 'provider_failed'
  | 'no_credentials'
  | 'budget_exceeded'
  | 'unknown_tool'
  | 'tool_failed'
  | 'nothing_to_compact'
  | 'already_compacted'
  | 'summary_failed'

/**
 * Every error of this package. The one exception: a call that was given an `AbortSignal` rejects with the signal's
 * own reason when the signal ended it.
 */
export declare class BranchlineError extends Error {
  readonly name: 'BranchlineError'
  /** For programs. */
  readonly code: ErrorCode | (string & {})
  /** The file it is about, when there is one. */
  readonly path?: string
  /** Of `tool_failed`: all of the result. */
  readonly result?: ToolCallResult
}

// ---------------------------------------------------------------------------------------------------------------------
// Engine and session

/** When stored entries are on the disk: whenever the system likes, when a turn ends, or before the call returns. */
export type Durability = 'none' | 'turn' | 'entry'

/** Policies by name, strictest first. */
export type PermissionsPreset = 'read-only' | 'ask' | 'workspace' | 'allow'

/** What happens to a call: it runs, the handler decides, or it does not run. */
export type PermissionAction = 'allow' | 'ask' | 'deny'

/** What calls of a tool do, at most. */
export type Effect = 'read' | 'write' | 'execute'

/** A policy with rules. A call is judged by the first that says anything: root, tool, effect, preset. */
export interface PermissionsOptions {
  /** `ask` by default. */
  preset?: PermissionsPreset
  /** What happens to the calls of one tool, by its name. */
  tools?: Record<string, PermissionAction>
  effects?: Partial<Record<Effect, PermissionAction>>
  /** Directories outside of which every path is refused. */
  root?: string | string[]
  /** Who is asked. Without one, when it throws, or when it takes too long the call is denied. */
  handler?: PermissionHandler
  /** How long the handler may take; ten minutes by default. */
  timeoutMs?: number
}

export type Permissions = PermissionsPreset | PermissionHandler | PermissionsOptions

/** A call that asks for permission. */
export interface PermissionRequest {
  tool: string
  effect: Effect
  /** The arguments the tool will get. */
  arguments: Record<string, any>
  /** The exact text of a command. */
  command?: string
  /** The paths the call names: as written, absolute, with links followed (what will be opened), below the root or not. */
  paths: { given: string; path: string; real: string; inside: boolean }[]
  /** The rule that asks. */
  rule: string
  /** As events carry it; empty in a toolbox. */
  callId: string
  /** Empty in a toolbox. */
  sessionId: string
  cwd: string
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal
}

/**
 * This call runs, or not; the model reads the reason. `allowAlways`: so do others of the session without a question, the
 * same tool with the same command and paths, all calls of the tool, or all whose paths lead below a directory.
 */
export type PermissionAnswer =
  | boolean
  | 'allow'
  | 'deny'
  | 'allowAlways'
  | { decision: 'allow' }
  | { decision: 'deny'; reason?: string }
  | { decision: 'allowAlways'; scope?: 'same' | 'tool' | { below: string } }

export type PermissionHandler = (request: PermissionRequest) => PermissionAnswer | Promise<PermissionAnswer>

/** A tool call as hooks see it. */
export interface HookedCall {
  name: string
  callId: string
  sessionId: string
  /** The arguments the tool will get, or got. */
  arguments: Record<string, any>
  /** Aborts with the run. */
  signal: AbortSignal
}

/** What a hook says before a call: nothing or true (it runs), false or a text (it does not; the model reads the text), or more. */
export type BeforeAnswer =
  | void
  | null
  | boolean
  | string
  | {
      /** The call does not run; the model reads the text. */
      block?: string | boolean
      /** When every call of the batch says so, the run ends after them. */
      terminate?: boolean
      /** The arguments the tool gets; the stored call keeps the model's own. */
      arguments?: Record<string, unknown>
    }

/** The parts of a result to replace. */
export interface ResultChange {
  content?: string | (TextContent | ImageContent)[]
  details?: unknown
  structuredContent?: unknown
  usage?: Usage
  isError?: boolean
  terminate?: boolean
}

/** Is asked before and after every tool call. What it throws, or rejects with, is the call's error. */
export interface ToolHook {
  before?(call: HookedCall): BeforeAnswer | Promise<BeforeAnswer>
  after?(call: HookedCall, result: ToolResult & { isError: boolean }): void | null | ResultChange | Promise<void | null | ResultChange>
}

/** Limits; what is absent has none. */
export interface BudgetLimits {
  /** Requests to models: turns, summaries, and every repetition of a failed one. */
  requests?: number | null
  /** Requests for the next message of a conversation. */
  turns?: number | null
  /** In and out, cached ones included. */
  tokens?: number | null
  /** US dollars. */
  cost?: number | null
  /** Time during which at least one of the sessions runs. */
  wallTimeMs?: number | null
  /** With a limit of cost: count requests whose price nobody knows as free, instead of refusing them. */
  ignoreUnknownPrices?: boolean
}

export interface BudgetUse {
  requests: number
  turns: number
  tokens: number
  /** US dollars, of requests whose price is known. */
  cost: number
  /** Requests whose price nobody knows. */
  unpricedRequests: number
  wallTimeMs: number
}

/**
 * Hard limits for what sessions may spend, and what they spent. Several sessions may share one. A request that would break
 * a limit is not sent: the run ends with an event `budget_exceeded`, and the session goes on when the limits allow it again.
 */
export declare class Budget {
  constructor(limits?: BudgetLimits)
  /** What was spent so far. */
  readonly used: BudgetUse
  /** May be assigned at any time, also while sessions run. */
  limits: BudgetLimits
}

export interface EngineOptions {
  /** Worker threads; one for each processor, at most 4, by default. */
  workerThreads?: number
  /** Where sessions and settings live; `$PI_CODING_AGENT_DIR` or `~/.pi/agent` by default. */
  agentDir?: string
  /** `provider/model` for sessions that choose none. */
  defaultModel?: string
  /** What tool calls may do in sessions that do not say; `ask` by default. */
  permissions?: Permissions
  /** Reads `models.json` and `auth.json` of the agent directory, or of this one: what a person set up for pi. */
  agentFiles?: boolean | string
  /** A `models.json` to read. */
  modelsFile?: string
  /** An `auth.json` to read. */
  authFile?: string
  /** `false` leaves out the built-in models. */
  builtinModels?: boolean
  /** Providers and models, in the shape of `models.json`. */
  models?: ModelsConfig
  /** Keys by provider. They win over all others. */
  keys?: Record<string, Key>
  /** Asked for a key before each request, when `keys` has none. */
  keySource?: KeySource
  /** Makes stored logins anew; without one they are of no use. */
  loginSource?: LoginSource
  /** May replace the body of each request to a service before it is sent. */
  payloadHook?: PayloadHook
  /** `false`: environment variables do not count, neither keys nor `PI_CACHE_RETENTION`. */
  environment?: boolean
  /** Values of `auth.json` and `models.json` that begin with `!` are run as commands; no by default. */
  commands?: boolean
  network?: NetworkOptions
  /** Short for `network.proxy`. */
  proxy?: NetworkOptions['proxy']
  /** A file to which the traffic with services is written, keys removed, until the engine is shut down. */
  record?: string
  /** How sessions behave where options say nothing, in the shape of `settings.json`; see docs/settings.md. */
  settings?: { [key: string]: unknown }
}

/** How services are reached, by all sessions of an engine. */
export interface NetworkOptions {
  /** What the environment says (the default), none, or `http://[user:password@]host:port`. */
  proxy?: 'environment' | 'direct' | (string & {})
  /** A PEM file with certificates that are trusted beside those of the system. */
  caFile?: string
  /** 30 seconds by default. */
  connectTimeoutMs?: number
  /** The longest silence of a service; 5 minutes by default, `null` for no limit. */
  idleTimeoutMs?: number | null
  /** Requests to one service at a time; 32 by default. */
  maxRequestsPerOrigin?: number
  /** Sent with every request. Not for secrets. */
  headers?: Record<string, string>
}

/** A key, or a token that is always sent as `Authorization: Bearer`. */
export type Key = string | { key: string; bearer?: boolean }

/** What a key is for. */
export interface KeyRequest {
  provider: string
  /** The model's id. */
  model: string
  baseUrl: string
}

/**
 * Hands out keys, for example tokens that live shortly; nothing or `null` means "look elsewhere". What it throws, or rejects
 * with, is the failure of the request. `signal` aborts when nobody waits any more.
 */
export type KeySource = (
  request: KeyRequest,
  context: { signal: AbortSignal },
) => Key | null | undefined | void | Promise<Key | null | undefined | void>

/** A login as it is stored in `auth.json`. Whatever else is in it stays in it. */
export interface Login {
  /** The access token. It is sent as `Authorization: Bearer`. */
  access: string
  refresh?: string
  /** When the token ends, in milliseconds since 1970. */
  expires: number
  [key: string]: unknown
}

/**
 * Makes a login anew, when fewer than five minutes of it remain and by one program at a time: gives the one that takes its
 * place, within 15 seconds. It is stored, also when the request that needed it is aborted. What it throws, or rejects with, is
 * the failure of the request, unless the login is good for a moment yet. `signal` aborts when it takes too long. The
 * file is locked meanwhile: in it `storeLogin` and its neighbours reject with `would_deadlock`, elsewhere they wait for it.
 */
export type LoginSource = (
  request: { provider: string; login: Login },
  context: { signal: AbortSignal },
) => Login | Promise<Login>

/** A request that is about to be sent to a service. */
export interface PayloadRequest {
  provider: string
  /** The model's id. */
  model: string
  /** The wire protocol, for example `anthropic-messages`: it says what the body means. */
  api: string
  /** The JSON body. */
  body: { [key: string]: unknown }
}

/**
 * Gives the body that takes the place of a request's, or nothing or `null` to send it as it was, whatever became of `body`.
 * Asked once for each body, not again when the same one is sent again. What it throws, or rejects with, is the failure of the
 * request, and nothing is sent. `signal` aborts when nobody waits any more. Keys are no part of a body. Models of the host's
 * own, scripted ones and replays have none.
 */
export type PayloadHook = (
  request: PayloadRequest,
  context: { signal: AbortSignal },
) => object | null | undefined | void | Promise<object | null | undefined | void>

/** What is stored for one provider, without the secret. */
export interface StoredEntry {
  provider: string
  /** Or what another program wrote. */
  type: 'api_key' | 'oauth' | (string & {})
}

/** US dollars per million tokens. */
export interface Rates {
  input?: number
  output?: number
  cacheRead?: number
  cacheWrite?: number
}

/** Rates for prompts of more than so many tokens. */
export interface PriceTier extends Rates {
  inputTokensAbove: number
}

/** The shape of `models.json`; see docs/models.md. */
export interface ModelsConfig {
  providers: Record<
    string,
    {
      baseUrl?: string
      api?: string
      apiKey?: string
      headers?: Record<string, string | null>
      models?: { id: string; name?: string; contextWindow?: number; maxTokens?: number; [key: string]: unknown }[]
      modelOverrides?: Record<string, { [key: string]: unknown }>
      [key: string]: unknown
    }
  >
}

export interface SessionOptions {
  /** Working directory; the process's by default. When a file is opened its own by default. */
  cwd?: string
  /** Directory of the session files; the usual one for `cwd` by default. */
  sessionDir?: string
  /** Keep the session in memory only. */
  inMemory?: boolean
  /** Id of a new session. */
  id?: string
  /** Name of the session. */
  name?: string
  /** Path to record in a new session as the one it came from. */
  parentSession?: string
  /** `provider/model`; the file's own choice, else the engine's default. */
  model?: string
  /** Clamped to what the model can. */
  thinkingLevel?: ThinkingLevel
  /**
   * The active tools: names of known ones, and tools of your own. The file's own choice, else `read`, `bash`, `edit`, `write` and
   * what was added to the engine.
   */
  tools?: (string | ToolOptions<any>)[]
  /**
   * What tool calls may do: a preset, a function that is asked, or rules. `ask` by default: reading below the working
   * directory is allowed, everything else asks, and is denied when there is nobody to ask. `allow`: everything.
   */
  permissions?: Permissions
  /** Asked about every tool call, in this order, in front of the permissions. */
  toolHooks?: ToolHook[]
  /** Limits of what it may spend; all of them hold. Sessions may share one. */
  budget?: Budget | Budget[]
  /** Replaces the built-in system prompt. */
  systemPrompt?: string
  /** What the session reads of its project and tells the model; nothing by default. */
  resources?: ResourceOptions
  durability?: Durability
  /** Open without the right to write, and without taking the lock. */
  readOnly?: boolean
}

/** What a session tells the model besides its tools. Relative paths are relative to the session's working directory. */
export interface ResourceOptions {
  /** Read `AGENTS.md` and its relatives. */
  contextFiles?: boolean
  /** Texts of your own, behind those that were read. */
  extraContext?: { path: string; content: string }[]
  /** Directories with skills, or single skill files. */
  skills?: string[]
  /** Directories with prompt templates, or single files. */
  promptTemplates?: string[]
  /** Which of the usual places are searched as well. `project` only where the person trusts the project. */
  discover?: 'nothing' | 'user' | 'project'
  /** Text behind the system prompt. */
  appendSystemPrompt?: string
  /** Where the documentation of your program is. */
  documentation?: string
  /** Further rules, one line each. */
  guidelines?: string[]
  /** Further sections. The name of one that is there replaces that one. */
  sections?: { name: string; text: string }[]
}

/** What a session knows of its project. */
export interface Resources {
  /** The last one is the nearest. */
  contextFiles: { path: string; content: string }[]
  skills: Skill[]
  promptTemplates: PromptTemplate[]
  systemPrompt: string | null
  appendSystemPrompt: string | null
  documentation: string | null
  guidelines: string[]
  sections: { name: string; text: string }[]
  /** What was wrong. */
  diagnostics: { fault: 'warning' | 'collision'; path: string; message: string; winner?: string }[]
  /** `/skill:name` calls a skill. */
  skillCommands: boolean
}

export interface Skill {
  /** What stands behind `/skill:`. */
  name: string
  description: string
  path: string
  /** The model is not told of it. */
  disableModelInvocation: boolean
}

export interface PromptTemplate {
  /** What stands behind the `/`. */
  name: string
  description: string
  argumentHint?: string
  content: string
  path?: string
}

/** Options of the calls that use the default engine unless told otherwise. */
export interface WithEngine {
  engine?: Engine
}

/** Worker threads, models and defaults. Two engines share nothing. Most hosts need none: there is a default one. */
export declare class Engine {
  constructor(options?: EngineOptions)
  /** Makes a new session; its file appears with the first message. */
  createSession(options?: SessionOptions): Promise<Session>
  /**
   * Opens a session file. A path where there is none is a new session, whose file appears there with the first message; with
   * `readOnly` it is `storage_failed`. Errors: `session_locked` while another writer has it, `invalid_session_file`.
   */
  openSession(path: string, options?: SessionOptions): Promise<Session>
  /** Opens the most recent session of the working directory, or makes one. */
  continueRecent(options?: SessionOptions): Promise<Session>
  /** Copies a session file into the session directory and opens the copy. Errors: `storage_failed` when there is no such file, and those of `openSession`. */
  importSession(path: string, options?: SessionOptions): Promise<Session>
  listSessions(options?: ListOptions): Promise<SessionInfo[]>
  /**
   * The tree of a session file, to read: without the lock or the right to write, so also while a session has it. It holds what
   * was in the file when it was opened. Errors: `storage_failed` when there is no such file, `invalid_session_file`.
   */
  readSession(path: string): Promise<Tree>
  /** Adds a tool for the sessions and toolboxes made from now on. */
  addTool(tool: ToolOptions<any>): void
  /** Every model known: built in, configured and added. */
  models(): Model[]
  /** The models that can be used: those whose provider has a key, and those that need none. */
  availableModels(): Model[]
  /**
   * The model that a person's text means: `provider/id`, an id, or a part of an id or name, with `:level` behind it for the
   * thinking level. Errors: `unknown_model`, naming what is near.
   */
  findModel(text: string): ModelChoice
  /**
   * As `findModel`, but an unknown id of a known provider, `provider/id`, is a model as well, with the facts of the provider's
   * default model and a `warning` that says so. The engine knows it by its name from then on. Errors: as `findModel`.
   */
  findModelOrCustom(text: string): ModelChoice
  /**
   * The available models that patterns mean: `google/*`, `*haiku*:low`, or texts as of `findModel`. `:level` behind a pattern
   * chooses the thinking level.
   */
  modelsInScope(patterns: string | readonly string[]): ModelScope
  /** Adds providers and models, as an object or as text with comments. Errors: `invalid_argument`; then nothing changes. */
  configureModels(models: ModelsConfig | string): void
  /** What is wrong with `models.json`; the rest of it is in use. */
  modelProblems(): ModelProblem[]
  /** Sets or, with `null`, forgets the key of a provider, from the next request on. */
  setKey(provider: string, key: Key | null): void
  /** Sets or, with `null`, forgets who is asked for keys, from the next request on. */
  setKeySource(source: KeySource | null): void
  /**
   * Stores a key for a provider in the file that `authFile` or `agentFiles` names, in the place of what was stored for it.
   * `null` for the key stores only `variables`, which only this provider sees. With `configured` the key is in the form of
   * configured values: `$NAME` is a variable, one that begins with `!` is a command. Errors: `invalid_argument`, also for an
   * engine without such a file, and `storage_failed`; then the file is what it was.
   */
  storeKey(provider: string, key: string | null, options?: { configured?: boolean; variables?: Record<string, string> }): Promise<void>
  /** The same for a login, which a `LoginSource` makes anew. */
  storeLogin(provider: string, login: Login): Promise<void>
  /** Removes what is stored for a provider, and tells whether something was. Errors: as `storeKey`. */
  forgetStored(provider: string): Promise<boolean>
  /** What is stored, in the order of the file, without the secrets. Errors: as `storeKey`. */
  storedKeys(): Promise<StoredEntry[]>
  /** Sets or, with `null`, forgets who makes stored logins anew, from the next request on. */
  setLoginSource(source: LoginSource | null): void
  /** Sets or, with `null`, takes away who may replace the bodies of requests, from the next request on. */
  setPayloadHook(hook: PayloadHook | null): void
  /** Adds models that a function answers for: `NAME/ID`, for each of the models. Replaces a provider of the same name. */
  addHostProvider(name: string, models: (string | HostModel)[], answer: HostAnswer): void
  /** Adds the models that answered in a session file, as `NAME/ID`; they answer again. `name` is `replay` by default. */
  addReplay(path: string, options?: ReplayOptions & { name?: string }): Promise<Replay>
  /** Adds the model `scripted/NAME`, which answers from a script: for tests and demonstrations. */
  addScriptedModel(name: string, script: Script | ScriptReply[]): ScriptedModel
  /** Aborts and closes every session and waits until their files are free. */
  shutdown(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface Model {
  /** `provider/id`. */
  name: string
  provider: string
  id: string
  /** For people. */
  displayName: string
  /** The wire protocol. */
  api: string
  /** Empty for models that need no network. */
  baseUrl: string
  reasoning: boolean
  thinkingLevels: ThinkingLevel[]
  images: boolean
  /** Tokens; 0 when unknown. */
  contextWindow: number
  /** Tokens; 0 when unknown. */
  maxTokens: number
  /** All 0 when unknown. */
  cost: Required<Rates> & { tiers?: PriceTier[] }
}

/** What a person's text means. */
export interface ModelChoice {
  model: Model
  /** The level written behind it. */
  thinkingLevel: ThinkingLevel | null
  /** What is doubtful about the choice, in a sentence. */
  warning?: string
}

/** What patterns mean among the models that can be used. */
export interface ModelScope {
  /** In the order of the patterns; each once, with the thinking level of the pattern that named it first. */
  models: ModelChoice[]
  /** What was wrong with patterns, a sentence each. */
  warnings: string[]
}

/** What is wrong in a configuration of models. */
export interface ModelProblem {
  path?: string
  provider?: string
  message: string
}

/** A model that the host serves. */
export interface HostModel {
  id: string
  /** For people. */
  name?: string
  /** Tokens. */
  contextWindow?: number
  /** Tokens. */
  maxTokens?: number
  input?: ('text' | 'image')[]
  reasoning?: boolean
  thinkingLevels?: ThinkingLevel[]
  cost?: Rates & { tiers?: PriceTier[] }
  /** `host` by default. */
  api?: string
}

/** What a model of the host's is asked. */
export interface HostRequest {
  provider: string
  /** The model's id. */
  model: string
  api: string
  systemPrompt: string
  /** The conversation without system messages: every tool call with its result, no images if the model takes none. */
  messages: Message[]
  tools: { name: string; description: string; parameters: { [key: string]: unknown } }[]
  thinkingLevel: ThinkingLevel
  sessionId: string
  /** The next message of a conversation, or a summary. */
  purpose: 'turn' | 'summary'
  maxTokens?: number
  temperature?: number
}

/** A piece of an answer: text, or an event. `text`, `thinking` and `toolcall` are whole blocks. */
export type HostEvent =
  | string
  | null
  | undefined
  | { type: 'start' | 'text_start' | 'thinking_start' | 'toolcall_end' }
  | { type: 'text_delta' | 'thinking_delta' | 'toolcall_delta'; delta: string }
  | { type: 'text_end' | 'thinking_end'; signature?: string }
  | { type: 'toolcall_start'; toolName: string; id?: string }
  | { type: 'text' | 'thinking'; text: string; signature?: string }
  | { type: 'toolcall'; name: string; arguments: { [key: string]: unknown }; id?: string }
  | { type: 'usage'; usage: { input: number; output: number; cacheRead?: number; cacheWrite?: number; [key: string]: unknown } }
  | { type: 'done'; reason?: 'stop' | 'length' | 'toolUse'; message?: { [key: string]: unknown } }
  | { type: 'error'; error: string; retryAfterMs?: number }

/**
 * Answers for models of the host: a generator, async or not, that yields pieces, or a function that returns a text, an event,
 * a list of them or a stream. The answer is finished when there are no more. What it throws is the failure of the response.
 * After an abort `signal` fires, and the generator's `return()` is called.
 */
export type HostAnswer = (
  request: HostRequest,
  context: { signal: AbortSignal },
) => HostAnswered | Promise<HostAnswered>

export type HostAnswered = HostEvent | void | Iterable<HostEvent> | AsyncIterable<HostEvent>

export interface ReplayOptions {
  /** `false`: tools that run live may say something else than they did. */
  compareToolResults?: boolean
}

/** A recorded session whose answers are given again to the same conversation. */
export declare class Replay {
  private constructor()
  /** Those that answered in the recording. */
  readonly models: Model[]
  /** The first place where a conversation left the recording. */
  readonly divergence: Divergence | null
  /** The tools of the recording, for `tools` of a session: a call gives the recorded result. */
  readonly tools: Tool[]
}

/** Where a conversation left a recording. */
export interface Divergence {
  /** Which message it is, system messages not counted, from 0. */
  at: number
  /** What follows there in the recording, on each of its branches. */
  recorded: { entryId: string; message: Message }[]
  /** What there was instead; `null`: the request for an answer that was not recorded. */
  actual: Message | null
}

export interface Script {
  replies: ScriptReply[]
  /** Characters per delta; 0 sends each block in one. */
  chunk?: number
  delayMs?: number
  chunkDelayMs?: number
  /** What follows the last reply. */
  atEnd?: 'fail' | 'repeatLast' | 'loop'
}

export interface ScriptReply {
  content?: ContentBlock[]
  usage?: { input?: number; output?: number; cacheRead?: number; cacheWrite?: number }
  stop?: string
  error?: string
  immediateError?: string
  /** After the content, wait for an abort. */
  hang?: boolean
  /** After the content, wait for this gate. */
  waitGate?: string
  throw?: string
  delayMs?: number
  chunkDelayMs?: number
  chunk?: number
  times?: number
}

export interface ScriptedModel {
  /** Lets replies pass that wait for this gate. */
  openGate(name: string): void
}

export interface ListOptions {
  /** Only sessions of this working directory; all by default. */
  cwd?: string
  sessionDir?: string
  agentDir?: string
  /** Also collect all text of each session, for searching. */
  text?: boolean
}

export interface SessionInfo {
  path: string
  id: string | null
  cwd: string
  name: string | null
  parentSessionPath: string | null
  /** Milliseconds since the Unix epoch. */
  created: number | null
  /** Milliseconds since the Unix epoch. */
  modified: number
  messageCount: number
  firstMessage: string
  allMessagesText: string | null
}

/** Lists session files, most recent first. */
export declare function listSessions(options?: ListOptions & WithEngine): Promise<SessionInfo[]>

/** The tree of a session file, to read, without a session. Errors: as `Engine.readSession`. */
export declare function readSession(path: string, options?: WithEngine): Promise<Tree>

export interface PromptOptions {
  /**
   * Aborts the run. `run` and `result` then reject with the signal's reason once the session is idle; an iterator
   * delivers the events up to `agent_settled` first.
   */
  signal?: AbortSignal
  images?: ImageContent[]
  /** When a run is active: refuse (the default; error `running`), steer it, or follow it. */
  whenRunning?: 'refuse' | 'steer' | 'followUp'
  /** `false`: `/skill:name` and `/name` at the start of the text stay as they are. */
  expand?: boolean
  /**
   * A system prompt for this run alone, in the place of the session's; one text, stored nowhere. Only for a prompt that
   * begins a run (else `invalid_argument`).
   */
  forcedPrompt?: string
  /** Events held for the reader before the session waits for it; 1024 by default. */
  capacity?: number
}

export interface RunResult {
  /** Text of the last assistant message. */
  text: string
  /** Tokens and cost of all responses of the run. */
  usage: Usage
  /** Why the last response ended. A failed request is a result (`error`), not an exception. */
  stopReason: StopReason | null
  /** What the last response says about its failure. */
  errorMessage: string | null
  /** The entry the session stood on when the run had settled. */
  leaf: string | null
  /** `session.abort()` or a signal ended it. */
  aborted: boolean
  /** The limit of a budget that stopped it: a number, tokens, US dollars, or seconds. */
  budgetExceeded: { limit: 'requests' | 'turns' | 'tokens' | 'cost' | 'wall_time'; used: number; max: number; priceUnknown: boolean } | null
  /** The messages of the run. */
  messages: Message[]
}

/**
 * Events, one by one. Leaving the loop by `break`, `return` or an exception ends the subscription. A reader that stops
 * reading without leaving slows its session once the queue is full.
 */
export declare class EventStream implements AsyncIterableIterator<SessionEvent> {
  private constructor()
  next(): Promise<IteratorResult<SessionEvent, undefined>>
  return(value?: any): Promise<IteratorResult<SessionEvent, any>>
  throw(error?: any): Promise<IteratorResult<SessionEvent, any>>
  [Symbol.asyncIterator](): this
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * What a prompt started: its events up to `agent_settled`, and a result. A run keeps the process alive until it has
 * settled. Leaving the loop early (`break`, `return`, an exception) aborts the run and waits until the session is idle; to
 * look at a run without owning it, use `session.events()`. Leaving a run that was refused or is over aborts nothing.
 *
 * Read it or call `result()`: the queue of a run that nobody reads holds its session up when it is full. In a tool, and
 * whatever else the run waits for, `next()` and `result()` reject with `would_deadlock`.
 */
export declare class Run implements AsyncIterableIterator<SessionEvent> {
  private constructor()
  /** Settles when the prompt was accepted; rejects when it was refused. */
  readonly accepted: Promise<void>
  /** Waits for the end. Events that nobody began to read are discarded; otherwise it waits for the reader. */
  result(): Promise<RunResult>
  next(): Promise<IteratorResult<SessionEvent, undefined>>
  return(value?: any): Promise<IteratorResult<SessionEvent, any>>
  throw(error?: any): Promise<IteratorResult<SessionEvent, any>>
  [Symbol.asyncIterator](): this
  [Symbol.asyncDispose](): Promise<void>
}

export interface SessionState {
  phase: 'idle' | 'running' | 'retrying' | 'compacting' | 'closed'
  /** A run is active, whatever it is doing just now: a prompt must be queued. */
  running: boolean
  /** Which of the sessions over its file it is; 0 for the one that opened it. */
  sibling: number
  leaf: string | null
  model: string | null
  /** Why it is another model than the file says, if it is: that one is not known or has no key. */
  modelNotice?: string
  thinkingLevel: ThinkingLevel
  tools: string[]
  /** Texts waiting to steer the run. */
  steering: string[]
  /** Texts waiting for its end. */
  followUp: string[]
  /** Shell runs that wait for the end of what runs. */
  pendingBash: number
  contextMessages: number
}

export interface NavigateOptions {
  /** Label for the summary entry, or the target when there is none. */
  label?: string
  /** Store a summary of what is left behind. */
  summarize?: boolean
  /** What the summary should pay attention to. */
  instructions?: string
  replaceInstructions?: boolean
}

export interface NavigateResult {
  leaf: string | null
  /** Text of the user message that was chosen, to be edited and sent again. */
  editorText: string | null
  /** Nothing was changed, because the summary was aborted. */
  cancelled: boolean
  summaryEntry: string | null
}

export interface ForkOptions {
  /** Everything before a user message (the default), or up to and including any entry. */
  position?: 'before' | 'at'
}

export interface Fork {
  /** The new session, with a file of its own. */
  session: Session
  /** Text of the user message it was forked before. */
  editorText: string | null
}

/** Where siblings begin: an entry, `null` before the first one, `undefined` where the session stands. */
export type BranchPoint = string | null | undefined

export interface BranchOptions {
  /** `provider/model`; what the path to the entry says by default, else the session's own. */
  model?: string
  /** What the path says by default, else the session's own. */
  thinkingLevel?: ThinkingLevel
  /** The active tools; what the path says by default, else the session's own. */
  tools?: (string | Tool)[]
  /** Limits besides those of the session; of an exploration, what all siblings together may spend. */
  budget?: Budget | Budget[]
}

/** One prompt of an exploration, with choices for its sibling. */
export interface ExplorePrompt extends Omit<BranchOptions, 'budget'> {
  text: string
  images?: ImageContent[]
}

export interface ExploreOptions extends BranchOptions {
  /** Where all begin. */
  at?: BranchPoint
  /** How many run at a time; 4 by default. */
  limit?: number
  /** Events held for the reader before the siblings wait for it; 1024 by default. */
  capacity?: number
  /** Aborts everything. `results` then rejects with the signal's reason once all are idle. */
  signal?: AbortSignal
}

export interface ExploreResult extends RunResult {
  /** The sibling that ran it. It can be asked further, and adopted. */
  session: Session
  /** Its number, as in its events. */
  sibling: number
  /** There was no run, or it could not be stored: `cancelled` when it was aborted before its turn. */
  error: BranchlineError | null
  /** It came to its end by itself, without an error. */
  isComplete: boolean
}

/**
 * Several siblings at work: their events in one stream, told apart by `event.sibling`, and then their results. It keeps
 * the process alive until all are done. Leaving the loop early aborts everything and waits until all are idle.
 */
export declare class Exploration implements AsyncIterableIterator<SessionEvent> {
  private constructor()
  /** Settles when all siblings are made; rejects when the exploration was refused. */
  readonly accepted: Promise<void>
  /** The siblings, in the order of their prompts. */
  siblings(): Promise<Session[]>
  /** The results, in the order of the prompts. What failed is a result, too. Events nobody began to read are discarded. */
  results(): Promise<ExploreResult[]>
  /** Aborts everything and waits until all are idle; who waited for a turn gets none. */
  abort(): Promise<void>
  /** Aborts one, by the position of its prompt. */
  abortOne(prompt: number): Promise<void>
  next(): Promise<IteratorResult<SessionEvent, undefined>>
  return(value?: any): Promise<IteratorResult<SessionEvent, any>>
  throw(error?: any): Promise<IteratorResult<SessionEvent, any>>
  [Symbol.asyncIterator](): this
  [Symbol.asyncDispose](): Promise<void>
}

export interface AdoptOptions {
  /** Store one summary of what the others did, at the new leaf. */
  summarizeOthers?: boolean
  /** The leaves of the others; the other siblings of the winner's exploration by default. */
  others?: string[]
  /** What the summary should pay attention to. */
  instructions?: string
  replaceInstructions?: boolean
}

export interface NewSessionOptions {
  /** Record this session's file as the one the new one came from. */
  recordParent?: boolean
  name?: string
}

export interface SwitchOptions {
  /** Working directory, for a file whose own does not exist. */
  cwd?: string
}

/** What a compaction that was asked for came to. */
export interface ManualCompactionResult extends CompactionResult {
  /** The compaction's entry. */
  entryId: string
}

export interface ContextUsage {
  /** Estimated; unknown right after a compaction, until a response reports usage again. */
  tokens: number | null
  /** The model's context window, when known. */
  window: number | null
  percent: number | null
}

export interface TokenTotals {
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  /** US dollars. */
  cost: number
}

/** Counts and sums over all entries, all branches. */
export interface SessionStats {
  userMessages: number
  assistantMessages: number
  toolResults: number
  messages: number
  toolCalls: number
  tokens: TokenTotals
  /** By model, highest first; `null` for everything that names no model (tools, summaries). */
  costs: { model: string | null; tokens: TokenTotals }[]
}

/** A user message that `fork` can go before. */
export interface ForkMessage {
  entryId: string
  text: string
}

/** A message of the host that the model sees. */
export interface HostMessage {
  customType: string
  content: string | (TextContent | ImageContent)[]
  /** Whether people should see it; true by default. */
  display?: boolean
  /** Data the model does not see. */
  details?: unknown
}

export interface RunBashOptions {
  /** The host's name for it, in its events. */
  id?: string
  /** The model never sees it. */
  excludeFromContext?: boolean
}

/** What a shell run of the user came to. */
export interface UserCommand {
  /** The end of what it printed, without control sequences. */
  output: string
  exitCode: number | null
  cancelled: boolean
  /** `output` is not all. */
  truncated: boolean
  /** Where all of it is. */
  fullOutputPath: string | null
}

/** A shell run of the user that is over. */
export interface BashExecution {
  command: string
  output?: string
  exitCode?: number
  cancelled?: boolean
  /** `output` is only the end of it. */
  truncated?: boolean
  fullOutputPath?: string
  /** Milliseconds since the Unix epoch; now by default. */
  timestamp?: number
  excludeFromContext?: boolean
}

/**
 * A live session: one position in a session tree, with its model, tools and queues.
 *
 * Every call after `close` fails with `closed`; the tree can still be read. A session whose last reference is garbage
 * is closed too, at a time of the collector's choosing. An idle session does not keep the process alive.
 */
export declare class Session {
  private constructor()
  /** Makes a new session; its file appears with the first message. */
  static create(options?: SessionOptions & WithEngine): Promise<Session>
  /**
   * Opens a session file. A path where there is none is a new session, whose file appears there with the first message; with
   * `readOnly` it is `storage_failed`. Errors: `session_locked` while another writer has it, `invalid_session_file`.
   */
  static open(path: string, options?: SessionOptions & WithEngine): Promise<Session>
  /** Opens the most recent session of the working directory, or makes one. */
  static continueRecent(options?: SessionOptions & WithEngine): Promise<Session>

  readonly id: string
  /** The session's file, which may not exist yet; `null` in memory. */
  readonly path: string | null
  readonly cwd: string
  /** The entry the session stands on. */
  readonly leaf: string | null
  readonly name: string | null
  /** Which of the sessions over its file it is: 0 for the one that opened or made it. */
  readonly sibling: number
  /** A snapshot. */
  readonly state: SessionState
  /** The whole tree, to read. */
  readonly tree: Tree
  /** What it knows of its project: context files, skills, prompt templates, and what was wrong with them. */
  readonly resources: Resources

  /** Sends a prompt at once and gives its events. Errors: `running`, `compacting`, `no_model`, `read_only`. */
  prompt(text: string, options?: PromptOptions): Run
  /** Starts a run with a message of the host instead of a user's; its text is sent as it is. Errors: as `prompt`. */
  promptCustom(message: HostMessage, options?: Omit<PromptOptions, 'images' | 'expand'>): Run
  /** Sends a prompt and waits for its end. Errors: as `prompt`. */
  run(text: string, options?: PromptOptions): Promise<RunResult>
  /** All events of the session from now on. Waiting for them does not keep the process alive. */
  events(options?: { capacity?: number; signal?: AbortSignal }): EventStream
  /** Queues a text for the current run: it is delivered before the next request. */
  steer(text: string): Promise<void>
  /** Queues a text for when the current run would end. */
  followUp(text: string): Promise<void>
  /** Empties both queues and returns their texts. */
  clearQueues(): Promise<{ steering: string[]; followUp: string[] }>
  /** Whether a queue is delivered all at once instead of one text at a time. */
  setQueueModes(modes: { steerAll?: boolean; followUpAll?: boolean }): Promise<void>
  /** Cancels the wait before a failed request is repeated, and with it the repetition; nothing else. */
  abortRetry(): void
  /** Cancels a compaction, or the summary of a branch that is left; nothing else. */
  abortSummary(): void
  /** Aborts what runs and waits until the session is idle. Does nothing on an idle session. */
  abort(): Promise<void>
  waitIdle(): Promise<void>

  /** Moves to another entry of the same tree. Errors: `running`, `entry_not_found`, `summary_failed`. */
  navigate(entryId: string, options?: NavigateOptions): Promise<NavigateResult>
  /** Copies the path to an entry into a new file. Errors: `invalid_fork_target`, `not_saved`, `entry_not_found`. */
  fork(entryId: string, options?: ForkOptions): Promise<Fork>
  /** Copies the path to the leaf into a new file. */
  clone(): Promise<Session>

  /** Opens another live session over the same tree and file, a sibling. Errors: `entry_not_found`, `unknown_model`. */
  branch(at?: BranchPoint, options?: BranchOptions): Promise<Session>
  /** Whether both are sessions over one tree. */
  isSiblingOf(other: Session): boolean
  /** Tries several prompts at once, each in a sibling that begins at the same entry. Errors: `invalid_argument`, as `branch`. */
  explore(prompts: (string | ExplorePrompt)[], options?: ExploreOptions): Exploration
  /** Moves to where a sibling stands, to go on from there. Errors: `running`, `invalid_argument`, `summary_failed`. */
  adopt(winner: Session | ExploreResult, options?: AdoptOptions): Promise<NavigateResult>
  /** Makes a new, empty session in the same directory, as this one is set up. This one stays open. */
  newSession(options?: NewSessionOptions): Promise<Session>
  /** Opens another file in place of this session, which is closed when that is done. */
  switch(path: string, options?: SwitchOptions): Promise<Session>
  /** Copies a file into this session's directory and opens the copy in place of this session. Errors: as `Engine.importSession`. */
  importSession(path: string, options?: SwitchOptions): Promise<Session>

  /** Replaces the older part of the context by a summary. Errors: `nothing_to_compact`, `cancelled` after an abort. */
  compact(instructions?: string): Promise<ManualCompactionResult>
  /** How full the model's context is. */
  contextUsage(): Promise<ContextUsage>
  /** Reads every entry. */
  stats(): Promise<SessionStats>
  /** The user messages that `fork` can go before, in the order of the file. */
  forkMessages(): Promise<ForkMessage[]>
  /** Changes what the model sees of an entry; `null` leaves it out. Returns the id of the edit's entry. */
  editContext(entryId: string, replacement: { content: string | ContentBlock[] } | null): Promise<string>
  /** Stores a shell run of the user. Returns the entry's id; `null` when it is stored after what runs. */
  recordBash(execution: BashExecution): Promise<string | null>
  /** Runs a command of the user, with `bash_execution_update` events, and stores what came of it. No permission is asked. */
  runBash(command: string, options?: RunBashOptions): Promise<UserCommand>
  /** Ends all commands of `runBash` with everything they started. */
  abortBash(): void
  /**
   * Gives a message to the model without starting a run: after the current turn, before the next request, when the run
   * would end, or behind the next prompt. Returns the entry's id when it was stored at once.
   */
  sendCustomMessage(
    message: HostMessage,
    options?: { delivery?: 'store' | 'steer' | 'followUp' | 'nextTurn' },
  ): Promise<string | null>

  /** The label of an entry. */
  label(entryId: string): string | undefined
  /** Sets a label or, with `null`, clears it. Returns the id of the entry that says so. */
  setLabel(entryId: string, label: string | null): Promise<string>
  /** An empty name clears it. */
  setName(name: string): Promise<void>
  /** `provider/model`, from the next request on. Errors: `unknown_model`. */
  setModel(model: string): Promise<void>
  setThinkingLevel(level: ThinkingLevel): Promise<void>
  /** Reads the files of its resources again. What changed is told to the model before its next request. */
  reloadResources(): Promise<Resources>
  /** Chooses anew what it reads and tells the model. Errors: `invalid_argument`. */
  setResources(resources: ResourceOptions): Promise<Resources>
  /** The active tools, in this order, of those the session knows. Errors: `unknown_tool`. */
  setTools(names: (string | Tool)[]): Promise<void>
  /** Stores data the model never sees. Returns the entry's id. Whole numbers beyond 2^53 need `tree.raw` to be read. */
  appendCustom(customType: string, data?: unknown): Promise<string>
  /** Stores a message the model sees. Returns the entry's id; `null` when it waits for the end of the current turn. */
  appendCustomMessage(
    customType: string,
    content: string | (TextContent | ImageContent)[],
    options?: { display?: boolean; details?: unknown },
  ): Promise<string | null>

  /** An entry by its id. */
  entry(id: string): Entry | undefined
  /** What the model sees, at the leaf or at another entry. Errors: `entry_not_found`. */
  context(leaf?: string | null): Promise<Context>
  /** Aborts what runs, ends the session and frees its file. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

// ---------------------------------------------------------------------------------------------------------------------
// Tools

/** What a tool may return besides a text: a list of blocks, a result in full, or plain data, which the model gets as JSON. */
export type ToolAnswer =
  | string
  | (TextContent | ImageContent)[]
  | (Partial<ToolResult> & { content: string | (TextContent | ImageContent)[]; isError?: boolean })
  | { [key: string]: unknown }
  | unknown[]
  | number
  | boolean
  | null
  | undefined
  | void

/** One call of a tool, for the tool. */
export interface ToolContext {
  /** Aborts when the call is cancelled: its answer goes nowhere, and the tool should stop. */
  signal: AbortSignal
  /** Tells how far the work is. Each update replaces the ones before it. False when it was left out. */
  progress(update: ToolAnswer): boolean
  name: string
  /** As the model gave it and events carry it; empty in a toolbox. */
  callId: string
  /** Empty in a toolbox. */
  sessionId: string
  /** Which of the sessions over its tree calls: they share one id; see `Session.sibling`. */
  sibling: number
  cwd: string
}

export interface ToolOptions<Args = any> {
  /** 1 to 64 letters, digits, `_` and `-`. */
  name: string
  /** For the model. */
  description?: string
  /** JSON schema of an object; none by default. Arguments are converted and checked before `execute` sees them. */
  parameters?: { [key: string]: unknown }
  /** `sequential`: a model's calls run one after the other when this tool is among them. */
  executionMode?: 'parallel' | 'sequential'
  /** One line for the list of tools in the system prompt. */
  snippet?: string
  /** Lines for the rules of the system prompt. */
  guidelines?: string[]
  constrainedSampling?: unknown
  /** What calls do, at most; what permissions go by. `execute`, the default, is anything. */
  effect?: 'read' | 'write' | 'execute'
  /** Names of arguments that are paths: permissions look at where they lead. */
  pathArguments?: string[]
  /** Runs a call. What it throws, or rejects with, is a failed call with that message. */
  execute(args: Args, context: ToolContext): ToolAnswer | Promise<ToolAnswer>
}

/** A function that a model, and `Toolbox.call`, may call. */
export declare class Tool<Args = any> implements ToolOptions<Args> {
  constructor(options: ToolOptions<Args>)
  readonly name: string
  readonly description?: string
  readonly parameters?: { [key: string]: unknown }
  readonly executionMode?: 'parallel' | 'sequential'
  readonly snippet?: string
  readonly guidelines?: string[]
  readonly constrainedSampling?: unknown
  readonly effect?: 'read' | 'write' | 'execute'
  readonly pathArguments?: string[]
  readonly execute: (args: Args, context: ToolContext) => ToolAnswer | Promise<ToolAnswer>
}

/** Makes a tool, for `tools` of a session or toolbox. */
export declare function tool<Args = any>(options: ToolOptions<Args>): Tool<Args>

/** What a tool call came to. */
export interface ToolCallResult extends ToolResult {
  isError: boolean
  /** The text of the content. */
  readonly text: string
}

/** How a tool is called. */
export interface ToolCallOptions {
  /** Ends the tool; the call then rejects with the signal's reason. */
  signal?: AbortSignal
  /** Called with partial results, each of which replaces the ones before it. What it throws ends the call. */
  onProgress?: (partial: ToolCallResult) => unknown
  /** `false`: a tool that fails is a result with `isError` instead of an error with code `tool_failed`. */
  check?: boolean
}

export interface ToolboxOptions extends WithEngine {
  /** Where the tools work; the process's working directory by default. */
  cwd?: string
  /** Tools of your own, besides the built-in ones and the engine's. */
  tools?: ToolOptions<any>[]
  /** What calls may do; everything by default, as who calls a tool as a function has decided. */
  permissions?: Permissions
}

/** The tools in a directory, as functions, without a session. Errors: `tool_failed`, with the `result`; `closed`. */
export declare class Toolbox {
  constructor(options?: ToolboxOptions)
  /** What can be called, by name. */
  readonly definitions: { name: string; description: string; parameters: { [key: string]: unknown } }[]
  /** Adds a tool, replacing one of the same name. */
  add(tool: ToolOptions<any>): void
  /** Sets what calls may do from now on. Answers given for always are forgotten. */
  setPermissions(permissions: Permissions): void
  /** Calls any tool. */
  call(tool: string | Tool, args?: { [key: string]: unknown }, options?: ToolCallOptions): Promise<ToolCallResult>
  /** Reads a text file, from line `offset` (from 1), at most `limit` lines; or an image. */
  read(path: string, options?: ToolCallOptions & { offset?: number; limit?: number }): Promise<ToolCallResult>
  /** Writes a whole file, and the directories it needs. */
  write(path: string, content: string, options?: ToolCallOptions): Promise<ToolCallResult>
  /** Replaces pieces of a file, each of which must be in it once. All or none. */
  edit(
    path: string,
    edits: ([oldText: string, newText: string] | { oldText: string; newText: string })[],
    options?: ToolCallOptions,
  ): Promise<ToolCallResult>
  /** Runs a command in a shell, at most `timeout` seconds. A code other than 0 is a failure. */
  bash(command: string, options?: ToolCallOptions & { timeout?: number }): Promise<ToolCallResult>
  /** Lists a directory. */
  ls(path?: string, options?: ToolCallOptions & { limit?: number }): Promise<ToolCallResult>
  /** Finds files by a glob. */
  find(pattern: string, options?: ToolCallOptions & { path?: string; limit?: number }): Promise<ToolCallResult>
  /** Searches files for a regular expression, or with `literal` for a text. */
  grep(
    pattern: string,
    options?: ToolCallOptions & {
      path?: string
      glob?: string
      ignoreCase?: boolean
      literal?: boolean
      context?: number
      limit?: number
    },
  ): Promise<ToolCallResult>
}

// ---------------------------------------------------------------------------------------------------------------------
// Tree

export interface Label {
  text: string
  timestamp: string
}

export interface TreeNode {
  id: string
  parentId: string | null
  type: Entry['type'] | 'unknown'
  /** 0 for roots. */
  depth: number
  /** Of a message. */
  role?: string
  label?: string
}

export interface Diagnostic {
  line: number
  offset: number
  kind: string
  message: string
}

export interface Context {
  thinkingLevel: ThinkingLevel
  model: { provider: string; modelId: string } | null
  messages: Message[]
  /** For each message the entry it comes from. */
  entryIds: string[]
}

/** A session's tree: a view, not a copy. It sees new entries as they come, and can be read after `close`. */
export declare class Tree implements Iterable<Entry> {
  private constructor()
  /** Number of entries. */
  readonly size: number
  /** The last entry of the file. */
  readonly lastId: string | null
  readonly name: string | null
  /** The first line of the file. */
  readonly header: Record<string, unknown>
  has(id: string): boolean
  parent(id: string): string | null
  /** Ids of the children of an entry, or of `null`. The entry may be missing, if others name it. Errors: `entry_not_found`. */
  children(id: string | null): string[]
  /** Ids of the path from the root to an entry. Empty for `null`. Errors: `entry_not_found`. */
  branch(leaf: string | null): string[]
  entry(id: string): Entry | undefined
  /** The entry's line, byte for byte: for what JavaScript's strings and numbers cannot hold. */
  raw(id: string): Buffer | undefined
  /** Entries in file order, read as you go. Errors: `entry_not_found`. */
  entries(options?: { after?: string }): IterableIterator<Entry>
  [Symbol.iterator](): IterableIterator<Entry>
  /** The shape of the tree, parents before their children, without bodies. */
  walk(): IterableIterator<TreeNode>
  label(id: string): Label | undefined
  labels(): Map<string, Label>
  /** What is wrong with the file; the first thousand faults. */
  diagnostics(): Diagnostic[]
  /** What the model sees at an entry. Errors: `entry_not_found`. */
  context(leaf: string | null): Promise<Context>
  /** The path to an entry as the bytes of a session file of its own. Errors: `entry_not_found`. */
  exportBranch(leaf: string | null): Promise<Buffer>
}
