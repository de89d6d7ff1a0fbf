/*
 * branchline.h - the C interface of branchline, an embeddable coding-agent library.
 *
 * Generated from ffi/src by tools/header; do not edit. docs/c-abi.md is the contract in prose. In short:
 *
 *   - Functions that can fail return a branchline_status; BRANCHLINE_STATUS_OK is 0. Their last parameter, which may be
 *     NULL, receives an error object on failure: free it with branchline_error_free. Outputs (out_...) are written on
 *     success only.
 *   - Handles are tokens: one that was freed, or is of another type, gives BRANCHLINE_STATUS_INVALID_HANDLE. Freeing NULL
 *     is fine, and so is freeing a parent before its children.
 *   - Strings in are UTF-8 (paths: bytes) and only borrowed. A char ** result is yours: free it with
 *     branchline_string_free. A const char * belongs to what it was asked of.
 *   - Structs begin with struct_size: start from their _INIT macro. Zero always means the default.
 *   - Every function may be called from any thread.
 */

#ifndef BRANCHLINE_H
#define BRANCHLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The version this header belongs to; compare with branchline_version(). */
#define BRANCHLINE_VERSION "0.1.0"
#define BRANCHLINE_VERSION_MAJOR 0
#define BRANCHLINE_VERSION_MINOR 1
#define BRANCHLINE_VERSION_PATCH 0
/** The same as one number; compare with branchline_version_number(). */
#define BRANCHLINE_VERSION_NUMBER 1000

/// A timeout that means none. Milliseconds.
#define BRANCHLINE_WAIT_FOREVER 4294967295

/// What a call came to. OK is 0; every other number has one meaning for ever, and new ones are only added: treat a
/// number you do not know as a failure.
///
/// 1 to 99 are the library's error codes, the same in all languages; 100 to 199 are faults that only C can make;
/// END, from 200, is an answer and no fault. END and TIMEOUT come without an error object.
enum branchline_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /// It worked.
  BRANCHLINE_STATUS_OK = 0,
  /// An argument is missing, malformed or out of range.
  BRANCHLINE_STATUS_INVALID_ARGUMENT = 1,
  /// A fault inside the library; please report it.
  BRANCHLINE_STATUS_INTERNAL = 2,
  /// A text is longer than a string of the host's language can be.
  BRANCHLINE_STATUS_TOO_LARGE = 3,
  /// The file is not a session; its bytes were left alone.
  BRANCHLINE_STATUS_INVALID_SESSION_FILE = 10,
  /// No entry has the given id.
  BRANCHLINE_STATUS_ENTRY_NOT_FOUND = 11,
  /// A session id has characters that are not allowed.
  BRANCHLINE_STATUS_INVALID_SESSION_ID = 12,
  /// A context edit's replacement is neither null nor an object with content.
  BRANCHLINE_STATUS_INVALID_REPLACEMENT = 13,
  /// The target of a context edit is not on the active branch.
  BRANCHLINE_STATUS_NOT_ON_ACTIVE_BRANCH = 14,
  /// The target of a context edit is of a kind that cannot be edited.
  BRANCHLINE_STATUS_NOT_EDITABLE = 15,
  /// The source of a fork has no entries or no header.
  BRANCHLINE_STATUS_FORK_SOURCE_INVALID = 16,
  /// The file that should be created exists.
  BRANCHLINE_STATUS_FILE_EXISTS = 17,
  /// Another writer has the session file open.
  BRANCHLINE_STATUS_SESSION_LOCKED = 18,
  /// The session was opened read-only.
  BRANCHLINE_STATUS_READ_ONLY = 19,
  /// The operating system refused a file operation.
  BRANCHLINE_STATUS_STORAGE_FAILED = 20,
  /// The session file was replaced or shortened by someone else while it was open.
  BRANCHLINE_STATUS_STORAGE_CHANGED = 21,
  /// The session's working directory does not exist.
  BRANCHLINE_STATUS_WORKING_DIRECTORY_MISSING = 22,
  /// The session has no file yet, so it cannot be forked from disk.
  BRANCHLINE_STATUS_NOT_SAVED = 23,
  /// Forking before something that is not a user message.
  BRANCHLINE_STATUS_INVALID_FORK_TARGET = 24,
  /// A run is active and the call needs an idle session.
  BRANCHLINE_STATUS_RUNNING = 30,
  /// A compaction, branch summary or navigation is active.
  BRANCHLINE_STATUS_COMPACTING = 31,
  /// The operation was cancelled by its caller.
  BRANCHLINE_STATUS_CANCELLED = 32,
  /// The session or engine was closed.
  BRANCHLINE_STATUS_CLOSED = 33,
  /// The time allowed for a wait ran out. Comes without an error object.
  BRANCHLINE_STATUS_TIMEOUT = 34,
  /// Waiting here would wait for the caller itself.
  BRANCHLINE_STATUS_WOULD_DEADLOCK = 35,
  /// No model with that name is known.
  BRANCHLINE_STATUS_UNKNOWN_MODEL = 40,
  /// No model was chosen, and none is the default.
  BRANCHLINE_STATUS_NO_MODEL = 41,
  /// The model's service refused or broke off a request.
  BRANCHLINE_STATUS_PROVIDER_FAILED = 42,
  /// There is no key for the model's provider, or none that may be used.
  BRANCHLINE_STATUS_NO_CREDENTIALS = 43,
  /// A request would break a limit of the session's budget; raise it to go on.
  BRANCHLINE_STATUS_BUDGET_EXCEEDED = 44,
  /// No tool with that name is known.
  BRANCHLINE_STATUS_UNKNOWN_TOOL = 50,
  /// A tool failed; the message is what it said.
  BRANCHLINE_STATUS_TOOL_FAILED = 51,
  /// There is nothing to compact.
  BRANCHLINE_STATUS_NOTHING_TO_COMPACT = 60,
  /// The path already ends with a compaction.
  BRANCHLINE_STATUS_ALREADY_COMPACTED = 61,
  /// The request for a summary failed.
  BRANCHLINE_STATUS_SUMMARY_FAILED = 62,
  /// A handle was freed before, is of another type, or never came from this library.
  BRANCHLINE_STATUS_INVALID_HANDLE = 100,
  /// The library hit a bug and caught it. The process is fine; please report the message.
  BRANCHLINE_STATUS_PANIC = 101,
  /// This process is a child made by fork() of the one that uses the library.
  BRANCHLINE_STATUS_FORKED = 102,
  /// No event will come any more. Comes without an error object.
  BRANCHLINE_STATUS_END = 200,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum branchline_status branchline_status;
#else
typedef uint32_t branchline_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/// What happened. New numbers are added: ignore what you do not know.
enum branchline_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /// Not a live event.
  BRANCHLINE_EVENT_NONE = 0,
  /// A pass of the run begins: it has one, and further ones for what follows by itself.
  BRANCHLINE_EVENT_AGENT_START = 1,
  /// A turn began: its messages, one response, and the calls it asks for follow.
  BRANCHLINE_EVENT_TURN_START = 2,
  /// A message begins.
  BRANCHLINE_EVENT_MESSAGE_START = 3,
  /// The response grew by something that is neither text nor thinking; see the JSON.
  BRANCHLINE_EVENT_MESSAGE_UPDATE = 4,
  /// The response grew by text: see branchline_event_text.
  BRANCHLINE_EVENT_TEXT_DELTA = 5,
  /// The model thought on: see branchline_event_text.
  BRANCHLINE_EVENT_THINKING_DELTA = 6,
  /// A message is complete and stored: see branchline_event_entry_id.
  BRANCHLINE_EVENT_MESSAGE_END = 7,
  /// A tool call is about to run.
  BRANCHLINE_EVENT_TOOL_EXECUTION_START = 8,
  /// A running tool reports progress.
  BRANCHLINE_EVENT_TOOL_EXECUTION_UPDATE = 9,
  /// A tool call is over.
  BRANCHLINE_EVENT_TOOL_EXECUTION_END = 10,
  /// A turn is over.
  BRANCHLINE_EVENT_TURN_END = 11,
  /// A pass is over.
  BRANCHLINE_EVENT_AGENT_END = 12,
  /// The run is over: nothing follows by itself any more, the session is idle.
  BRANCHLINE_EVENT_AGENT_SETTLED = 13,
  /// The queues of waiting texts changed.
  BRANCHLINE_EVENT_QUEUE_UPDATE = 14,
  /// An entry was stored that no other event speaks of.
  BRANCHLINE_EVENT_ENTRY_APPENDED = 15,
  /// The session's name changed.
  BRANCHLINE_EVENT_SESSION_INFO_CHANGED = 16,
  /// The effective thinking level changed.
  BRANCHLINE_EVENT_THINKING_LEVEL_CHANGED = 17,
  /// Something this header has no number for; see the JSON.
  BRANCHLINE_EVENT_OTHER = 1000,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum branchline_event_kind branchline_event_kind;
#else
typedef uint32_t branchline_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/// What a question is about. New numbers are added: answer what you do not know with branchline_request_fail.
enum branchline_request_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /// Not a live request.
  BRANCHLINE_REQUEST_NONE = 0,
  /// Run a tool. The answer is its result.
  BRANCHLINE_REQUEST_TOOL = 1,
  /// May this call of a tool run? See branchline_permissions_new.
  BRANCHLINE_REQUEST_PERMISSION = 2,
  /// A tool is about to be called. See branchline_tool_hook_new.
  BRANCHLINE_REQUEST_BEFORE_TOOL = 3,
  /// A tool has been called. See branchline_tool_hook_new.
  BRANCHLINE_REQUEST_AFTER_TOOL = 4,
  /// Answer as a model of the host's. See branchline_engine_add_host_provider.
  BRANCHLINE_REQUEST_MODEL = 5,
  /// Which key is it? See branchline_engine_set_key_source.
  BRANCHLINE_REQUEST_KEY = 6,
  /// Make a login anew. See branchline_engine_set_login_source.
  BRANCHLINE_REQUEST_LOGIN = 7,
  /// What shall be sent to a service? See branchline_engine_set_payload_hook.
  BRANCHLINE_REQUEST_PAYLOAD = 8,
  /// Something this header has no number for.
  BRANCHLINE_REQUEST_OTHER = 1000,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum branchline_request_kind branchline_request_kind;
#else
typedef uint32_t branchline_request_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/// Limits, and what was spent of them. Several sessions may share one.
typedef struct branchline_budget branchline_budget;

/// A tool call under way, or over.
typedef struct branchline_call branchline_call;

/// What a host creates first: worker threads, models and tools. Two engines can live in one process.
typedef struct branchline_engine branchline_engine;

/// What went wrong: a status, a sentence that says what to do next, and the file it is about.
typedef struct branchline_error branchline_error;

/// One event. The accessors below never fail: for what is no live event, or does not have what was asked for, they give
/// 0, false or NULL.
typedef struct branchline_event branchline_event;

/// A bounded queue of a session's events that the host drains. A session whose queue is full waits: read it or free it.
typedef struct branchline_events branchline_events;

/// Several prompts that are being tried at once. Freeing it aborts what still runs.
typedef struct branchline_exploration branchline_exploration;

/// A policy for the tool calls of sessions and toolboxes.
typedef struct branchline_permissions branchline_permissions;

/// A question to the host: run this tool, answer as this model. It is answered once, from any thread, inside the callback that brought it or
/// any time later, and freed once. Freed without an answer, what it is about fails. The accessors never fail: for what is
/// no live request they give 0, false or NULL.
typedef struct branchline_request branchline_request;

/// A queue of questions to the host, for any number of tools and policies.
typedef struct branchline_requests branchline_requests;

/// A live session: one cursor over one session tree, with its model, tools, queues and agent loop.
typedef struct branchline_session branchline_session;

/// Callbacks that are being told of a session's events.
typedef struct branchline_subscription branchline_subscription;

/// A tool of the host's. It may be used in any number of sessions and toolboxes of its engine.
typedef struct branchline_tool branchline_tool;

/// A hook around the tool calls of sessions.
typedef struct branchline_tool_hook branchline_tool_hook;

/// The tools of an engine in a directory, to be called by the host.
typedef struct branchline_toolbox branchline_toolbox;

/// Settings of an engine. Start from `BRANCHLINE_ENGINE_OPTIONS_INIT`; all strings are copied.
typedef struct {
  /// `sizeof(branchline_engine_options)`.
  size_t struct_size;
  /// Worker threads; 0 is one for each processor, at most 4.
  size_t worker_threads;
  /// Where sessions live; NULL is `$PI_CODING_AGENT_DIR` or `~/.pi/agent`.
  const char *agent_dir;
  /// "provider/model" for sessions that choose none; NULL is none.
  const char *default_model;
  /// Models, keys, network, recording and settings, as JSON, or NULL: `{"agentFiles"?:true or DIRECTORY,"modelsFile"?,"authFile"?,
  /// "builtinModels"?,"models"?:{...},"keys"?:{PROVIDER:KEY or {"key","bearer"?}},"environment"?,"commands"?,
  /// "network"?:{"proxy"?:"environment", "direct" or an address,"caFile"?,"connectTimeoutMs"?,"idleTimeoutMs"?,
  /// "maxRequestsPerOrigin"?,"headers"?},"record"?:PATH,"settings"?:{...}}`; also the fields above as "workerThreads",
  /// "agentDir" and "defaultModel". See docs/models.md and docs/settings.md.
  const char *config_json;
} branchline_engine_options;

/// Which sessions to list. Start from `BRANCHLINE_LIST_OPTIONS_INIT`; all strings are copied.
typedef struct {
  /// `sizeof(branchline_list_options)`.
  size_t struct_size;
  /// The working directory whose sessions are listed; NULL lists those of all.
  const char *cwd;
  /// The directory to look in; NULL is the default one.
  const char *session_dir;
  /// Not 0: also collect all text of each session, for searching.
  uint32_t include_text;
  /// 0.
  uint32_t reserved;
} branchline_list_options;

/// When an appended entry is on the disk and not only with the operating system.
typedef uint32_t branchline_durability;

/// How a session is made or opened. Start from `BRANCHLINE_SESSION_OPTIONS_INIT`; all strings are copied.
typedef struct {
  /// `sizeof(branchline_session_options)`.
  size_t struct_size;
  /// Working directory: tools run here and a new file is filed under it. NULL is "." for a new session and the
  /// file's own when opening.
  const char *cwd;
  /// Where session files are; NULL is the default directory for `cwd`.
  const char *session_dir;
  /// Id of a new session; NULL draws one.
  const char *id;
  /// Name of the session, or NULL.
  const char *name;
  /// Path to record in a new session's header as the one it came from, or NULL.
  const char *parent_session;
  /// "provider/model"; NULL is the file's own choice, else the engine's default.
  const char *model;
  /// "off", "minimal", "low", "medium", "high", "xhigh" or "max"; NULL is the file's own choice, else "medium".
  const char *thinking_level;
  /// Names of the active tools; NULL is the file's own choice, else read, bash, edit, write and the host's own. Not NULL with
  /// a count of 0 is none.
  const char *const *tools;
  /// How many names there are.
  size_t tool_count;
  /// Replaces the built-in system prompt; NULL does not.
  const char *system_prompt;
  /// When entries are forced to disk.
  branchline_durability durability;
  /// Not 0: keep the session in memory only.
  uint32_t in_memory;
  /// Not 0: open without the right to write.
  uint32_t read_only;
  /// 0.
  uint32_t reserved;
  /// Tools of this session alone, besides those of its engine, or NULL. They are borrowed; the session keeps what it
  /// needs. To make them active where `tools` is not NULL, name them there.
  branchline_tool *const *custom_tools;
  /// How many there are.
  size_t custom_tool_count;
  /// What tool calls may do: "read-only", "ask", "workspace" or "allow". NULL is "ask": reading below the working
  /// directory is allowed, and everything else is denied as long as nobody answers questions.
  const char *permissions;
  /// A policy with rules and questions, in the place of `permissions`, or NULL. It is borrowed; the session keeps what
  /// it needs.
  const branchline_permissions *permission_policy;
  /// Limits for what the session may spend, or NULL. They are borrowed; the session keeps to all of them.
  branchline_budget *const *budgets;
  /// How many there are.
  size_t budget_count;
  /// Hooks around the session's tool calls, asked in this order, or NULL. They are borrowed; the session keeps what it
  /// needs.
  branchline_tool_hook *const *tool_hooks;
  /// How many there are.
  size_t tool_hook_count;
  /// What the session reads of its project and tells the model, as JSON, or NULL for nothing: `{"contextFiles"?,
  /// "extraContext"?:[{"path","content"}],"discover"?:"nothing", "user" or "project","skills"?:[PATH],
  /// "promptTemplates"?:[PATH],"appendSystemPrompt"?,"documentation"?,"guidelines"?:[TEXT],
  /// "sections"?:[{"name","text"}]}`. See docs/prompts.md.
  const char *resources_json;
} branchline_session_options;

/// The functions of a host for one subscription. Start from `BRANCHLINE_CALLBACKS_INIT`.
///
/// Callbacks run on threads of the library, one at a time for each session. From inside them every function of the
/// library may be called, freeing their own session included; only waiting for their own session to be idle is
/// refused. They must return normally: no exception, no longjmp.
typedef struct {
  /// `sizeof(branchline_callbacks)`.
  size_t struct_size;
  /// Passed to the functions below; the library does not look at it.
  void *user_data;
  /// Called for each event. The event lives until the function returns.
  void (*on_event)(void *user_data, const branchline_event *event);
  /// Called exactly once when the library will not use this table any more, also when subscribing failed; may be NULL.
  void (*destroy)(void *user_data);
  /// Events held before the session waits for these callbacks; 0 is 1024.
  size_t capacity;
} branchline_callbacks;

/// What a prompt does when a run is active.
typedef uint32_t branchline_when_running;

/// Details of a prompt. Start from `BRANCHLINE_PROMPT_OPTIONS_INIT`; all strings are copied.
typedef struct {
  /// `sizeof(branchline_prompt_options)`.
  size_t struct_size;
  /// JSON list of image blocks `{"type":"image","data":...,"mimeType":...}` (base64), or NULL.
  const char *images_json;
  /// What happens when a run is active.
  branchline_when_running when_running;
  /// Not 0: the text is sent as it is, also when it begins with the "/name" of a skill or prompt template.
  uint32_t literal;
  /// A system prompt for this run alone, in the place of the session's; one text, stored nowhere. Only for a prompt that
  /// begins a run, else INVALID_ARGUMENT. NULL is none.
  const char *forced_prompt;
} branchline_prompt_options;

/// Details of a subscription. Start from `BRANCHLINE_EVENTS_OPTIONS_INIT`.
typedef struct {
  /// `sizeof(branchline_events_options)`.
  size_t struct_size;
  /// Events held before the session waits for the reader; 0 is 1024.
  size_t capacity;
} branchline_events_options;

/// Details of a navigation. Start from `BRANCHLINE_NAVIGATE_OPTIONS_INIT`; all strings are copied.
typedef struct {
  /// `sizeof(branchline_navigate_options)`.
  size_t struct_size;
  /// Label for the summary entry, or for the target when there is none; NULL is none.
  const char *label;
  /// What the summary should pay attention to, or NULL.
  const char *instructions;
  /// Not 0: store a summary of what is left behind.
  uint32_t summarize;
  /// Not 0: `instructions` replace the usual ones instead of adding to them.
  uint32_t replace_instructions;
} branchline_navigate_options;

/// Which side of an entry a fork takes.
typedef uint32_t branchline_fork_position;

/// When a message of the host reaches the model.
typedef uint32_t branchline_delivery;

/// How a queue is delivered.
typedef uint32_t branchline_queue_mode;

/// The functions of a host for one tool, or for the questions of one policy. Start from `BRANCHLINE_TOOL_CALLBACKS_INIT`.
///
/// They are called on a thread of the library, one at a time for each tool, so a call that takes long holds up the next
/// call of the same tool: to have them side by side, keep the request, return, and answer from elsewhere. Everything may
/// be called from inside, but waiting for the session that made the call is refused. They must return normally: no
/// exception, no longjmp.
typedef struct {
  /// `sizeof(branchline_tool_callbacks)`.
  size_t struct_size;
  /// Passed to the functions below; the library does not look at it.
  void *user_data;
  /// Called for each call of the tool, or each question. The request is the host's: it must be answered and freed, here or later.
  void (*on_call)(void *user_data, branchline_request *request);
  /// Called when the answer to a request that was not freed yet is not wanted any more; may be NULL. The request still
  /// has to be freed.
  void (*on_cancel)(void *user_data, branchline_request *request);
  /// Called exactly once when the library will not use this table any more, also when branchline_tool_new failed; may
  /// be NULL.
  void (*destroy)(void *user_data);
} branchline_tool_callbacks;

/// How a toolbox is made. Start from `BRANCHLINE_TOOLBOX_OPTIONS_INIT`; all strings are copied.
typedef struct {
  /// `sizeof(branchline_toolbox_options)`.
  size_t struct_size;
  /// Working directory: tools run here; NULL is ".".
  const char *cwd;
} branchline_toolbox_options;

/// The functions of a host for one tool call. Start from `BRANCHLINE_CALL_CALLBACKS_INIT`; each may be NULL.
///
/// They are called on a thread of the library, one at a time. Everything may be called from inside. They must return
/// normally: no exception, no longjmp.
typedef struct {
  /// `sizeof(branchline_call_callbacks)`.
  size_t struct_size;
  /// Passed to the functions below; the library does not look at it.
  void *user_data;
  /// Called with partial results, each of which replaces the ones before it. The string lives until it returns.
  void (*on_progress)(void *user_data, const char *partial_json);
  /// Called once with the result. The string lives until it returns.
  void (*on_done)(void *user_data, const char *result_json);
  /// Called exactly once when the library will not use this table any more, also when the call could not be started.
  void (*destroy)(void *user_data);
} branchline_call_callbacks;

/// Which questions a hook wants; several are added.
typedef uint32_t branchline_hook_point;

/// Whenever the operating system likes. The default.
#define BRANCHLINE_DURABILITY_NONE 0

/// When a turn ends.
#define BRANCHLINE_DURABILITY_TURN 1

/// Before the append returns.
#define BRANCHLINE_DURABILITY_ENTRY 2

/// It is refused with RUNNING. The default.
#define BRANCHLINE_WHEN_RUNNING_REFUSE 0

/// It is delivered before the next request of the run.
#define BRANCHLINE_WHEN_RUNNING_STEER 1

/// It is delivered when the run would end.
#define BRANCHLINE_WHEN_RUNNING_FOLLOW_UP 2

/// Everything before a user message; its text is given for editing.
#define BRANCHLINE_FORK_BEFORE 0

/// Everything up to and including any entry.
#define BRANCHLINE_FORK_AT 1

/// It is stored: at once on an idle session, after the current turn during a run.
#define BRANCHLINE_DELIVERY_STORE 0

/// During a run it is delivered before the next request; on an idle session it is stored at once.
#define BRANCHLINE_DELIVERY_STEER 1

/// During a run it is delivered when the run would end; on an idle session it is stored at once.
#define BRANCHLINE_DELIVERY_FOLLOW_UP 2

/// It follows the message of the next prompt. It is lost when none comes.
#define BRANCHLINE_DELIVERY_NEXT_TURN 3

/// As it is.
#define BRANCHLINE_QUEUE_MODE_KEEP 0

/// One text at a time.
#define BRANCHLINE_QUEUE_MODE_ONE_AT_A_TIME 1

/// Everything that waits.
#define BRANCHLINE_QUEUE_MODE_ALL 2

/// Before a call.
#define BRANCHLINE_HOOK_BEFORE_TOOL 1

/// After a call.
#define BRANCHLINE_HOOK_AFTER_TOOL 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// The version of the library that is loaded: "0.1.0". Compare with `BRANCHLINE_VERSION`.
///
/// Ownership: the string is static; do not free it.
/// Threads: any, also after fork().
/// Errors: none.
const char *branchline_version(void);

/// The version of the library that is loaded as one number: major * 1000000 + minor * 1000 + patch. Compare with
/// `BRANCHLINE_VERSION_NUMBER`.
///
/// Ownership: takes nothing.
/// Threads: any, also after fork().
/// Errors: none.
uint32_t branchline_version_number(void);

/// The stable name of a status, the same as the error code in other languages: "session_locked". "unknown" for a number
/// that is no status.
///
/// Ownership: the string is static; do not free it.
/// Threads: any, also after fork().
/// Errors: none.
const char *branchline_status_name(uint32_t status);

/// The status the failed call returned. OK for NULL or what is no error.
///
/// Ownership: borrows `error`.
/// Threads: any.
/// Errors: none.
branchline_status branchline_error_status(const branchline_error *error);

/// One sentence for people: what was wrong and what to do. UTF-8, never NULL; empty for NULL or what is no error.
///
/// Ownership: the string belongs to `error` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_error_message(const branchline_error *error);

/// The file the error is about, or NULL.
///
/// Ownership: the string belongs to `error` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_error_path(const branchline_error *error);

/// Frees an error. NULL is fine.
///
/// Ownership: takes `error`.
/// Threads: any.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_error_free(branchline_error *error);

/// Frees a string that the library handed out through a `char **`. NULL is fine.
///
/// Ownership: takes `string`; it must have come from this library and not be freed yet. Strings that are `const char *`
/// belong to someone else: do not free them.
/// Threads: any.
/// Errors: FORKED.
branchline_status branchline_string_free(char *string);

/// Takes out of a text what a terminal would obey and what changes the order in which it is read: escape sequences with their
/// content (colours, titles, links), other control characters but LF and TAB, and the controls of bidirectional text. CR LF
/// becomes LF, and so does a CR by itself. A sequence that does not end in its line loses only its beginning, so that it hides
/// nothing. The library stores and tells text as it came: use this for what is shown. For HTML escape what comes out.
///
/// Ownership: borrows `text`; `out_text` is yours: free it with branchline_string_free. It holds no NUL.
/// Threads: any.
/// Errors: INVALID_ARGUMENT when the text is no UTF-8, FORKED.
branchline_status branchline_sanitize_for_display(const char *text,
                                                  size_t length,
                                                  char **out_text,
                                                  branchline_error **error);

/// Starts an engine. `options` may be NULL.
///
/// Ownership: `out_engine` is yours: free it with branchline_engine_free.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, FORKED, INTERNAL when threads cannot be started; FILE_EXISTS and STORAGE_FAILED of a file to
/// record to.
branchline_status branchline_engine_new(const branchline_engine_options *options,
                                        branchline_engine **out_engine,
                                        branchline_error **error);

/// Aborts and closes every session of the engine and waits, at most `timeout_ms` milliseconds, until their files are
/// released, every callback has returned, every `destroy` has run and all threads have ended. Calls to its sessions fail
/// with CLOSED from then on; what is stored can still be read.
///
/// Ownership: borrows `engine`, which still has to be freed.
/// Threads: any that may block, but hold no lock that one of your callbacks takes.
/// Errors: TIMEOUT (what was begun goes on), INVALID_ARGUMENT, INVALID_HANDLE, FORKED, WOULD_DEADLOCK from inside a
/// callback.
branchline_status branchline_engine_shutdown(branchline_engine *engine,
                                             uint32_t timeout_ms,
                                             branchline_error **error);

/// Frees an engine: what branchline_engine_shutdown does, for at most 5 seconds; from inside a callback without waiting.
/// Handles of its sessions stay valid until they are freed too, in any order. NULL is fine.
///
/// Ownership: takes `engine`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_engine_free(branchline_engine *engine);

/// Adds the model "scripted/NAME", which answers from a script: for tests, demos and offline work. `script_json` is a
/// list of replies, each `{"content":[...]}` with text, thinking and toolCall blocks, or an object with these as `replies`.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_add_scripted_model(branchline_engine *engine,
                                                       const char *name,
                                                       const char *script_json,
                                                       branchline_error **error);

/// branchline_engine_add_scripted_model for a text that is not NUL-terminated.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_add_scripted_model_n(branchline_engine *engine,
                                                         const char *name,
                                                         const char *script_json,
                                                         size_t script_length,
                                                         branchline_error **error);

/// Lists session files, most recent first, as a JSON list of `{"path","id","cwd","name","parentSessionPath","created",
/// "modified","messageCount","firstMessage","allMessagesText"}`, times in milliseconds since 1970, missing values null. `options` may be NULL.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED.
branchline_status branchline_engine_list_sessions(branchline_engine *engine,
                                                  const branchline_list_options *options,
                                                  char **out_json,
                                                  branchline_error **error);

/// Makes a budget of which nothing is spent. `limits_json` may be NULL, which is no limit: `{"requests"?,"turns"?,
/// "tokens"?,"cost"?,"wallTimeMs"?,"ignoreUnknownPrices"?}`, the cost in US dollars. A request that would go over a limit
/// is not sent, and one whose price nobody knows is not sent where the cost is limited, unless that is to be ignored.
///
/// Ownership: borrows `limits_json`; `out_budget` is yours: free it with branchline_budget_free.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, FORKED.
branchline_status branchline_budget_new(const char *limits_json,
                                        branchline_budget **out_budget,
                                        branchline_error **error);

/// Replaces the limits, also while sessions run. What was spent stays spent; a session that was stopped goes on with its
/// next prompt.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_budget_set_limits(branchline_budget *budget,
                                               const char *limits_json,
                                               branchline_error **error);

/// The limits now, as JSON: every key of branchline_budget_new, null for what is not limited.
///
/// Ownership: borrows `budget`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_budget_limits(const branchline_budget *budget, char **out_json, branchline_error **error);

/// What was spent so far, as JSON: `{"requests","turns","tokens","cost","unpricedRequests","wallTimeMs"}`.
///
/// Ownership: borrows `budget`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_budget_used(const branchline_budget *budget, char **out_json, branchline_error **error);

/// Lets go of a budget. Sessions that have it keep to it. NULL is fine.
///
/// Ownership: takes `budget`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_budget_free(branchline_budget *budget);

/// Makes a new session. Its file appears with the first message. `options` may be NULL.
///
/// Ownership: borrows `engine` and `options`; `out_session` is yours: free it with branchline_session_free. It may
/// outlive the engine, whose end closes it.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, UNKNOWN_MODEL, UNKNOWN_TOOL, INVALID_SESSION_ID, FILE_EXISTS,
/// STORAGE_FAILED, CLOSED, FORKED.
branchline_status branchline_session_create(branchline_engine *engine,
                                            const branchline_session_options *options,
                                            branchline_session **out_session,
                                            branchline_error **error);

/// Opens a session file, also one that pi made. A path where there is none is a new session, whose file appears there with
/// the first message; read-only it is STORAGE_FAILED. Unless it is opened read-only, nobody else can open it for writing
/// until the session is closed. `options` may be NULL.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks. Blocks while the file is read.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, INVALID_SESSION_FILE, SESSION_LOCKED, STORAGE_FAILED, UNKNOWN_MODEL,
/// UNKNOWN_TOOL, CLOSED, FORKED.
branchline_status branchline_session_open(branchline_engine *engine,
                                          const char *path,
                                          const branchline_session_options *options,
                                          branchline_session **out_session,
                                          branchline_error **error);

/// Opens the most recent session of a working directory, or makes one. `options` may be NULL.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: as branchline_session_open.
branchline_status branchline_session_continue_recent(branchline_engine *engine,
                                                     const branchline_session_options *options,
                                                     branchline_session **out_session,
                                                     branchline_error **error);

/// Copies a session file into the session directory of `options`, under its own name or, when that is taken, with "-1",
/// "-2" and so on before the extension, and opens the copy. A file that is there already is opened itself. `options` may be
/// NULL. See branchline_session_import_session for the same in place of a session.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: as branchline_session_open; STORAGE_FAILED also when there is no such file, INVALID_ARGUMENT also for options that
/// write no file.
branchline_status branchline_session_import(branchline_engine *engine,
                                            const char *path,
                                            const branchline_session_options *options,
                                            branchline_session **out_session,
                                            branchline_error **error);

/// The session's id.
///
/// Ownership: borrows `session`; `out_id` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_id(const branchline_session *session, char **out_id, branchline_error **error);

/// The session's file, which may not exist yet; NULL in memory. Bytes as the operating system has them.
///
/// Ownership: borrows `session`; `out_path` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_path(const branchline_session *session, char **out_path, branchline_error **error);

/// The working directory. Bytes as the operating system has them.
///
/// Ownership: borrows `session`; `out_cwd` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_cwd(const branchline_session *session, char **out_cwd, branchline_error **error);

/// The id of the entry the session stands on; NULL before the first entry.
///
/// Ownership: borrows `session`; `out_id` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_leaf(const branchline_session *session, char **out_id, branchline_error **error);

/// The session's name; NULL if it has none.
///
/// Ownership: borrows `session`; `out_name` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_name(const branchline_session *session, char **out_name, branchline_error **error);

/// What the session is doing, as JSON: `{"id","path","cwd","name","phase","running","sibling","leaf","model",
/// "modelNotice"?,"thinkingLevel","tools","steering","followUp","pendingBash","contextMessages"}`; `phase` is "idle",
/// "running", "retrying" (a run that waits before it makes a failed request again), "compacting" (also in the middle of a
/// run) or "closed"; `running` says whether a run is active; `modelNotice` says why the model is another one than the
/// file's, if it is.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_state(const branchline_session *session,
                                           char **out_json,
                                           branchline_error **error);

/// Has functions called for each event from now on, until the session ends or is freed or the subscription is freed.
/// On a closed session `destroy` is all that is called.
///
/// Ownership: borrows `session`; copies `callbacks`, of which `destroy` runs exactly once, on failure before this
/// returns (unless the table could not be read: NULL, or a wrong struct_size). `out_subscription` may be NULL; otherwise
/// it is yours: free it with branchline_subscription_free.
/// Threads: any, also from inside callbacks. The functions are called on threads of the library, one at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when no thread can be started.
branchline_status branchline_session_subscribe(branchline_session *session,
                                               const branchline_callbacks *callbacks,
                                               branchline_subscription **out_subscription,
                                               branchline_error **error);

/// Aborts what runs, ends the session and waits until its file is released. Calls to it fail with CLOSED from then on;
/// what is stored can still be read. Closing twice is fine.
///
/// Ownership: borrows `session`, which still has to be freed.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_close(branchline_session *session, branchline_error **error);

/// Frees a session: closes it, waiting at most 5 seconds, and from inside a callback not at all. No callback of it
/// starts any more; one that is running on another thread runs on. NULL is fine.
///
/// Ownership: takes `session`. Queues and subscriptions of it stay valid until they are freed too, in any order.
/// Threads: any, also from inside its own callbacks.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_session_free(branchline_session *session);

/// Ends a subscription. Once this has returned no callback of it starts any more; one that is running on another thread
/// runs on, and `destroy` tells when the library is done with the table. NULL is fine.
///
/// Ownership: takes `subscription`.
/// Threads: any, also from inside its own callback. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_subscription_free(branchline_subscription *subscription);

/// Sends a prompt and returns once it is accepted; what comes of it are events. `options` may be NULL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: RUNNING when a run is active and `options` do not say to queue it, COMPACTING, NO_MODEL, UNKNOWN_MODEL,
/// READ_ONLY, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_prompt(branchline_session *session,
                                            const char *text,
                                            const branchline_prompt_options *options,
                                            branchline_error **error);

/// branchline_session_prompt for a text that is not NUL-terminated or holds NUL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_prompt.
branchline_status branchline_session_prompt_n(branchline_session *session,
                                              const char *text,
                                              size_t length,
                                              const branchline_prompt_options *options,
                                              branchline_error **error);

/// Queues a text for the current run: it is delivered before the run's next request. On an idle session it waits for the
/// next prompt.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED.
branchline_status branchline_session_steer(branchline_session *session,
                                           const char *text,
                                           branchline_error **error);

/// branchline_session_steer for a text that is not NUL-terminated or holds NUL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_steer.
branchline_status branchline_session_steer_n(branchline_session *session,
                                             const char *text,
                                             size_t length,
                                             branchline_error **error);

/// Queues a text for when the current run would end. On an idle session it waits for the next prompt.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED.
branchline_status branchline_session_follow_up(branchline_session *session, const char *text, branchline_error **error);

/// branchline_session_follow_up for a text that is not NUL-terminated or holds NUL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_follow_up.
branchline_status branchline_session_follow_up_n(branchline_session *session,
                                                 const char *text,
                                                 size_t length,
                                                 branchline_error **error);

/// Aborts what runs and waits until the session is idle; processes that tools started are gone then. Does nothing on an
/// idle session. Queued texts stay queued for the next prompt.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED.
branchline_status branchline_session_abort(branchline_session *session, branchline_error **error);

/// Waits until the session is idle and its callbacks have returned from every event there was by then, at most
/// `timeout_ms` milliseconds; BRANCHLINE_WAIT_FOREVER has no limit. Queues made with branchline_session_events must be
/// read meanwhile by another thread, as a full one stops the run.
///
/// Ownership: borrows `session`.
/// Threads: any, but hold no lock that one of your callbacks takes.
/// Errors: TIMEOUT (without an error object), INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED, WOULD_DEADLOCK from
/// inside a callback of the same session.
branchline_status branchline_session_wait_idle(branchline_session *session,
                                               uint32_t timeout_ms,
                                               branchline_error **error);

/// Chooses the model, "provider/model", from the next request on.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: UNKNOWN_MODEL, READ_ONLY, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_set_model(branchline_session *session,
                                               const char *model,
                                               branchline_error **error);

/// Chooses the thinking level: "off", "minimal", "low", "medium", "high", "xhigh" or "max". It is clamped to what the
/// model can do.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_set_thinking_level(branchline_session *session,
                                                        const char *level,
                                                        branchline_error **error);

/// Chooses the active tools by name, in this order. `tools` has `tool_count` names; a count of 0 is none.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: UNKNOWN_TOOL (nothing is changed then), CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_set_tools(branchline_session *session,
                                               const char *const *tools,
                                               size_t tool_count,
                                               branchline_error **error);

/// Subscribes to a session's events from now on. `options` may be NULL. On a closed session the queue has ended.
///
/// Ownership: borrows `session`; `out_events` is yours: free it with branchline_events_free. It may outlive the session,
/// whose end ends the queue behind what is in it.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_events(branchline_session *session,
                                            const branchline_events_options *options,
                                            branchline_events **out_events,
                                            branchline_error **error);

/// Waits for the next event, at most `timeout_ms` milliseconds; 0 does not wait, BRANCHLINE_WAIT_FOREVER has no limit.
///
/// Ownership: borrows `events`. The event belongs to `events`: it lives until the next call of this function or
/// branchline_events_next_batch for the same `events`, or until that is freed. branchline_event_clone keeps it longer.
/// Threads: any, but one at a time for each `events`, as one thread's call ends the other's event.
/// Errors: TIMEOUT when nothing came in time, END when nothing will (neither comes with an error object);
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED, WOULD_DEADLOCK for waiting without a limit in a callback of the session.
branchline_status branchline_events_next(branchline_events *events,
                                         uint32_t timeout_ms,
                                         const branchline_event **out_event,
                                         branchline_error **error);

/// Like branchline_events_next for many events at once: at least one, and whatever else is queued, at most `capacity`.
/// `out_events` has room for `capacity` pointers; `out_count` tells how many were stored.
///
/// Ownership: borrows `events`. The events belong to `events` and live as for branchline_events_next.
/// Threads: any, but one at a time for each `events`.
/// Errors: as branchline_events_next.
branchline_status branchline_events_next_batch(branchline_events *events,
                                               uint32_t timeout_ms,
                                               const branchline_event **out_events,
                                               size_t capacity,
                                               size_t *out_count,
                                               branchline_error **error);

/// A file descriptor to poll in a loop: readable while events are queued, and after the end. Then call
/// branchline_events_next with a timeout of 0 until it gives TIMEOUT or END.
///
/// Ownership: the descriptor belongs to `events` and is closed when that is freed: do not read, write or close it.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, STORAGE_FAILED when the process has no descriptor left.
branchline_status branchline_events_fd(const branchline_events *events, int *out_fd, branchline_error **error);

/// Ends a subscription. A thread that waits in branchline_events_next gets END. NULL is fine.
///
/// Ownership: takes `events` and with it its events and descriptor.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_events_free(branchline_events *events);

/// What happened.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
branchline_event_kind branchline_event_type(const branchline_event *event);

/// Counts the events of the session from 1. Merged deltas carry the number of the last one, so numbers may jump.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
uint64_t branchline_event_sequence(const branchline_event *event);

/// Which of the sessions over one tree it comes from: 0 for the one that opened or made the file, 1, 2 and so on for siblings.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
uint32_t branchline_event_sibling(const branchline_event *event);

/// The id of the session it comes from.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_event_session_id(const branchline_event *event);

/// The new text of a TEXT_DELTA or THINKING_DELTA, UTF-8 with a NUL behind it. The text itself may hold NUL: go by
/// branchline_event_text_length.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_event_text(const branchline_event *event);

/// Bytes of branchline_event_text, without the NUL behind it.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
size_t branchline_event_text_length(const branchline_event *event);

/// The tool of a TOOL_EXECUTION event.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_event_tool_name(const branchline_event *event);

/// The id of the tool call of a TOOL_EXECUTION event.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_event_tool_call_id(const branchline_event *event);

/// Whether a TOOL_EXECUTION_END tells of a failed call.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
bool branchline_event_is_error(const branchline_event *event);

/// The entry that holds the message of a MESSAGE_END.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_event_entry_id(const branchline_event *event);

/// The whole event as one line of JSON, in the form of pi's event stream. Made when first asked for.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_event_json(const branchline_event *event);

/// Gives a handle of your own to the same event, to keep it or to pass it to another thread. Copies nothing.
///
/// Ownership: borrows `event`; `out_event` is yours: free it with branchline_event_free.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_event_clone(const branchline_event *event,
                                         branchline_event **out_event,
                                         branchline_error **error);

/// Frees an event made by branchline_event_clone. NULL is fine. Events from a queue or in a callback are not yours: for
/// them this gives INVALID_HANDLE and does nothing.
///
/// Ownership: takes `event`.
/// Threads: any.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_event_free(branchline_event *event);

/// The whole tree as JSON: `{"leaf":ID|null,"entries":[{"id","type","role"?,"parentId","label"?,"labelTimestamp"?}]}`,
/// every entry once, parents before their children, siblings oldest first.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_tree(const branchline_session *session, char **out_json, branchline_error **error);

/// The path from the root to an entry, as a JSON list of ids. NULL for `entry_id` is the path to the leaf.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: ENTRY_NOT_FOUND, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_tree_branch(const branchline_session *session,
                                                 const char *entry_id,
                                                 char **out_json,
                                                 branchline_error **error);

/// One entry as its line stands in the file, byte for byte (so where another program wrote it, it may not be UTF-8), with
/// a NUL behind it. `out_length`, which may be NULL, gets the number of bytes without that.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Reads the file.
/// Errors: ENTRY_NOT_FOUND, STORAGE_FAILED, STORAGE_CHANGED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_entry(const branchline_session *session,
                                           const char *entry_id,
                                           char **out_json,
                                           size_t *out_length,
                                           branchline_error **error);

/// The path to an entry as the text of a session file of its own: the same session id, the path's first entry as root. NULL
/// for `entry_id` is the path to the leaf. Lines are as in the file, byte for byte, with a NUL behind the last; `out_length`,
/// which may be NULL, gets the number of bytes without that.
///
/// Ownership: borrows everything; `out_text` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Reads the file.
/// Errors: ENTRY_NOT_FOUND, STORAGE_FAILED, STORAGE_CHANGED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_export_branch(const branchline_session *session,
                                                   const char *entry_id,
                                                   char **out_text,
                                                   size_t *out_length,
                                                   branchline_error **error);

/// What the model sees at the leaf, as JSON: `{"messages":[...],"thinkingLevel","model":{"provider","modelId"}|null}`.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Reads the file.
/// Errors: STORAGE_FAILED, STORAGE_CHANGED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_context(const branchline_session *session,
                                             char **out_json,
                                             branchline_error **error);

/// What was found wrong with the session file, as a JSON list of `{"line","offset","kind","message"}`. Damage never
/// keeps a file from being opened; everything readable stays readable.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_diagnostics(const branchline_session *session,
                                                 char **out_json,
                                                 branchline_error **error);

/// Moves the session to another entry of its tree. Choosing a user message moves to just before it and gives its text
/// for editing. `options` may be NULL. The result is JSON: `{"leaf":ID|null,"editorText":TEXT|null,"cancelled",
/// "summaryEntry":ID|null}`.
///
/// Ownership: borrows everything; `out_json` may be NULL, otherwise it is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. With `summarize` it blocks until the model has answered.
/// Errors: RUNNING, COMPACTING, ENTRY_NOT_FOUND, NO_MODEL, SUMMARY_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE,
/// FORKED.
branchline_status branchline_session_navigate(branchline_session *session,
                                              const char *entry_id,
                                              const branchline_navigate_options *options,
                                              char **out_json,
                                              branchline_error **error);

/// Copies the path to an entry into a new file and opens that as a session of its own. This session stays as it is, also
/// while it runs. `out_editor_text`, which may be NULL, gets the text of the user message forked before, else NULL.
///
/// Ownership: borrows `session`; `out_session` is yours: free it with branchline_session_free; `out_editor_text` is
/// yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: ENTRY_NOT_FOUND, INVALID_FORK_TARGET, NOT_SAVED when the session has no file yet, STORAGE_FAILED, CLOSED,
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_fork(branchline_session *session,
                                          const char *entry_id,
                                          branchline_fork_position position,
                                          branchline_session **out_session,
                                          char **out_editor_text,
                                          branchline_error **error);

/// Copies the path to the leaf into a new file and opens that as a session of its own.
///
/// Ownership: borrows `session`; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks.
/// Errors: ENTRY_NOT_FOUND when the session is empty, NOT_SAVED when it has no file yet, STORAGE_FAILED, CLOSED,
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_clone(branchline_session *session,
                                           branchline_session **out_session,
                                           branchline_error **error);

/// Opens another live session over the same tree and file: a sibling, with its own leaf, queues, model, tools, events and
/// run. Nothing it does moves this session. `options_json` may be NULL: `{"at"?,"model"?,"thinkingLevel"?,"tools"?}`.
/// Without "at" it begins at the leaf, with an id at that entry, with null before the first entry. What is left out of
/// the rest is what the path to that entry says, else as in this session.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free, in any order with this
/// one. The file stays open for writing until the last of them is closed.
/// Threads: any, also from inside callbacks and while this session runs.
/// Errors: ENTRY_NOT_FOUND, UNKNOWN_MODEL, UNKNOWN_TOOL, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_branch(branchline_session *session,
                                            const char *options_json,
                                            branchline_session **out_session,
                                            branchline_error **error);

/// Which of the sessions over its file this is: 0 for the one that opened or made the file, 1, 2 and so on for its siblings in
/// the order of branching. branchline_event_sibling tells whose an event is.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_sibling(const branchline_session *session,
                                             uint32_t *out_sibling,
                                             branchline_error **error);

/// Whether both are sessions over one tree.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_is_sibling_of(const branchline_session *session,
                                                   const branchline_session *other,
                                                   bool *out_answer,
                                                   branchline_error **error);

/// Moves the session to where a sibling stands, which is how an exploration is decided. `options_json` may be NULL:
/// `{"summarizeOthers"?,"others"?,"instructions"?,"replaceInstructions"?}`. With "summarizeOthers" the model writes one
/// summary of what the other siblings of the winner's exploration (or the entries listed in "others") found, which is
/// stored there. The result is JSON as of branchline_session_navigate.
///
/// Ownership: borrows everything, `winner` as well; `out_json` may be NULL, otherwise it is yours: free it with
/// branchline_string_free.
/// Threads: any, also from inside callbacks. With "summarizeOthers" it blocks until the model has answered.
/// Errors: RUNNING, COMPACTING, NO_MODEL, SUMMARY_FAILED, ENTRY_NOT_FOUND, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT (also
/// for a winner over another tree), INVALID_HANDLE, FORKED.
branchline_status branchline_session_adopt(branchline_session *session,
                                           const branchline_session *winner,
                                           const char *options_json,
                                           char **out_json,
                                           branchline_error **error);

/// Makes a new, empty session beside this one: in the same directory, with the same model, tools and settings.
/// `options_json` may be NULL: `{"recordParent"?,"name"?}`; with "recordParent" its header names this session's file. This
/// session stays as it is.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks.
/// Errors: NOT_SAVED when this session should be recorded and has no file yet, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT,
/// INVALID_HANDLE, FORKED.
branchline_status branchline_session_new_session(branchline_session *session,
                                                 const char *options_json,
                                                 branchline_session **out_session,
                                                 branchline_error **error);

/// Opens another session file in place of this session: when it is open, what runs here is aborted and stored and this
/// session is closed. On any error this session is as it was. `options_json` may be NULL: `{"cwd"?}`, a working directory
/// for when the file's own is gone.
///
/// Ownership: borrows everything, `session` still has to be freed; `out_session` is yours: free it with
/// branchline_session_free.
/// Threads: any, also from inside callbacks. Blocks while the file is read.
/// Errors: INVALID_SESSION_FILE, SESSION_LOCKED, WORKING_DIRECTORY_MISSING, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT,
/// INVALID_HANDLE, FORKED.
branchline_status branchline_session_switch(branchline_session *session,
                                            const char *path,
                                            const char *options_json,
                                            branchline_session **out_session,
                                            branchline_error **error);

/// Copies a session file into this session's directory and opens the copy in place of this session, as
/// branchline_session_switch does.
///
/// Ownership: as branchline_session_switch.
/// Threads: as branchline_session_switch.
/// Errors: as branchline_session_switch; STORAGE_FAILED also when there is no such file, INVALID_ARGUMENT also for a session
/// in memory, which has no directory.
branchline_status branchline_session_import_session(branchline_session *session,
                                                    const char *path,
                                                    const char *options_json,
                                                    branchline_session **out_session,
                                                    branchline_error **error);

/// Tries several prompts at once: each gets a sibling that begins at the same entry, and runs there. One that fails does
/// not disturb the others; this session stays where it is. `prompts_json` is a list, each item a text or
/// `{"text","images"?,"model"?,"thinkingLevel"?,"tools"?}`. `options_json` may be NULL:
/// `{"at"?,"limit"?,"model"?,"thinkingLevel"?,"tools"?,"capacity"?}`: "at" as for branchline_session_branch, "limit" how
/// many run at a time (4), "capacity" how many events are held (1024).
///
/// Ownership: borrows everything; `out_exploration` is yours: free it with branchline_exploration_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, also without a prompt; ENTRY_NOT_FOUND, UNKNOWN_MODEL, UNKNOWN_TOOL, STORAGE_FAILED, CLOSED,
/// INVALID_HANDLE, FORKED. Nothing is run then.
branchline_status branchline_session_explore(branchline_session *session,
                                             const char *prompts_json,
                                             const char *options_json,
                                             branchline_exploration **out_exploration,
                                             branchline_error **error);

/// How many prompts it has.
///
/// Ownership: borrows `exploration`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_exploration_count(const branchline_exploration *exploration,
                                               size_t *out_count,
                                               branchline_error **error);

/// The events of all its siblings in one queue, each sibling's in its own order; branchline_event_sibling tells whose one
/// is. It ends when all are done. There is one queue: what several handles read is divided among them. Until it is read
/// or freed, or branchline_exploration_results is called, the siblings wait when it is full.
///
/// Ownership: borrows `exploration`; `out_events` is yours: free it with branchline_events_free, in any order.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_exploration_events(branchline_exploration *exploration,
                                                branchline_events **out_events,
                                                branchline_error **error);

/// The sibling that runs the prompt at `index`, counted from 0.
///
/// Ownership: borrows `exploration`; `out_session` is yours: free it with branchline_session_free, which closes the
/// sibling.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, also when there is no such prompt; INVALID_HANDLE, FORKED.
branchline_status branchline_exploration_session(const branchline_exploration *exploration,
                                                 size_t index,
                                                 branchline_session **out_session,
                                                 branchline_error **error);

/// Waits until all are done, at most `timeout_ms` milliseconds, and gives a JSON list in the order of the prompts:
/// `{"sibling","text","usage","stopReason","errorMessage","leaf","aborted","error":{"code","message","path"}|null,
/// "messages"}`. What failed or was aborted is a result. Events not read by then are discarded.
///
/// Ownership: borrows `exploration`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, but hold no lock that one of your callbacks takes.
/// Errors: TIMEOUT (without an error object), CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED, WOULD_DEADLOCK for
/// waiting without a limit inside a callback.
branchline_status branchline_exploration_results(const branchline_exploration *exploration,
                                                 uint32_t timeout_ms,
                                                 char **out_json,
                                                 branchline_error **error);

/// Aborts all siblings of an exploration and waits until they are idle. Their results say so.
///
/// Ownership: borrows `exploration`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_exploration_abort(branchline_exploration *exploration, branchline_error **error);

/// Signals one sibling to abort, by the position of its prompt, and does not wait.
///
/// Ownership: borrows `exploration`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, also when there is no such prompt; INVALID_HANDLE, FORKED.
branchline_status branchline_exploration_abort_one(branchline_exploration *exploration,
                                                   size_t index,
                                                   branchline_error **error);

/// Frees an exploration and aborts what of it still runs, without waiting. NULL is fine.
///
/// Ownership: takes `exploration`. Sessions and queues of it stay valid until they are freed too, in any order.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_exploration_free(branchline_exploration *exploration);

/// Replaces the older part of the context by a summary; the history itself stays in the tree. A run is aborted first and
/// not taken up again. `instructions`, which may be NULL, say what the summary should pay attention to. The result is
/// JSON: `{"entryId","summary","firstKeptEntryId","tokensBefore","estimatedTokensAfter","usage"?,"details"}`.
///
/// Ownership: borrows everything; `out_json` may be NULL, otherwise it is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Blocks until the model has answered.
/// Errors: NOTHING_TO_COMPACT, ALREADY_COMPACTED, CANCELLED, SUMMARY_FAILED, NO_MODEL, COMPACTING, RUNNING, READ_ONLY,
/// STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_compact(branchline_session *session,
                                             const char *instructions,
                                             char **out_json,
                                             branchline_error **error);

/// Changes what the model sees of an entry on the path from the next request on. `replacement_json` is `null`, which
/// leaves it out, or `{"content":...}`. What is stored stays.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise the id of the edit's entry is yours: free it with
/// branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_REPLACEMENT, ENTRY_NOT_FOUND, NOT_ON_ACTIVE_BRANCH, NOT_EDITABLE, READ_ONLY, STORAGE_FAILED, CLOSED,
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_edit_context(branchline_session *session,
                                                  const char *entry_id,
                                                  const char *replacement_json,
                                                  char **out_id,
                                                  branchline_error **error);

/// Stores a shell run of the user that is over, so that the model sees it unless it is excluded. `execution_json`:
/// `{"command","output"?,"exitCode"?,"cancelled"?,"truncated"?,"fullOutputPath"?,"timestamp"?,"excludeFromContext"?}`.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise it gets the entry's id, or NULL when something runs, as
/// it is stored after that then. It is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_record_bash(branchline_session *session,
                                                 const char *execution_json,
                                                 char **out_id,
                                                 branchline_error **error);

/// Runs a command of the user in the session's working directory and stores what came of it, so that the model sees it.
/// `options_json` may be NULL: `{"id"?,"excludeFromContext"?}`, "id" being your name for it in its events, which are
/// bash_execution_update. Permissions are not asked: a person typed it. The result is JSON: `{"output","exitCode",
/// "cancelled","truncated","fullOutputPath"}`.
///
/// Ownership: borrows everything; `out_json` may be NULL, otherwise it is yours: free it with branchline_string_free.
/// Threads: any, also several at once; hold no lock that one of your callbacks takes. Blocks until the command has ended;
/// branchline_session_abort_bash ends it.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, also when it cannot be started; INVALID_HANDLE, FORKED.
branchline_status branchline_session_run_bash(branchline_session *session,
                                              const char *command,
                                              const char *options_json,
                                              char **out_json,
                                              branchline_error **error);

/// Ends all commands of branchline_session_run_bash with everything they started. Does not wait.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_abort_bash(branchline_session *session, branchline_error **error);

/// Starts a run with a message of the host instead of a user's. `message_json`: `{"customType","content","display"?,
/// "details"?}`. `options` may be NULL; `images_json` and `literal` in them are not used: the message has its images in
/// its content, and its text is sent as it is.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_prompt.
branchline_status branchline_session_prompt_custom(branchline_session *session,
                                                   const char *message_json,
                                                   const branchline_prompt_options *options,
                                                   branchline_error **error);

/// Gives a message of the host to the model without starting a run. `message_json` as for
/// branchline_session_prompt_custom.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise it gets the entry's id, or NULL when the message was
/// not stored at once. It is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_send_custom_message(branchline_session *session,
                                                         const char *message_json,
                                                         branchline_delivery delivery,
                                                         char **out_id,
                                                         branchline_error **error);

/// Counts and costs of the whole session, all branches, as JSON: `{"userMessages","assistantMessages","toolResults",
/// "messages","toolCalls","tokens":{"input","output","cacheRead","cacheWrite","cost"},"costs":[{"model","tokens"},...]}`.
/// Reads every entry.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_stats(const branchline_session *session,
                                           char **out_json,
                                           branchline_error **error);

/// How full the model's context is, as JSON: `{"tokens":N|null,...}`; tokens are unknown right after a compaction. Reads
/// the context, so it is not for every event.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_context_usage(const branchline_session *session,
                                                   char **out_json,
                                                   branchline_error **error);

/// The user messages that branchline_session_fork can go before, of all branches in file order, as a JSON list of
/// `{"entryId","text"}`.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_fork_messages(const branchline_session *session,
                                                   char **out_json,
                                                   branchline_error **error);

/// Empties both queues of waiting texts and gives them as JSON: `{"steering":[...],"followUp":[...]}`.
///
/// Ownership: borrows `session`; `out_json` may be NULL, otherwise it is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_clear_queues(branchline_session *session,
                                                  char **out_json,
                                                  branchline_error **error);

/// Chooses how the queues of branchline_session_steer and branchline_session_follow_up are delivered.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_set_queue_modes(branchline_session *session,
                                                     branchline_queue_mode steering,
                                                     branchline_queue_mode follow_up,
                                                     branchline_error **error);

/// Cancels the wait before a failed request is repeated, and with it the repetition; nothing else. Does not wait.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_abort_retry(branchline_session *session, branchline_error **error);

/// Cancels a compaction, or the summary of a branch that is left; nothing else. Does not wait.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_abort_summary(branchline_session *session, branchline_error **error);

/// Sets the label of an entry, or clears it when `label` is NULL. The label entry becomes the leaf.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise the new entry's id is yours: free it with
/// branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: ENTRY_NOT_FOUND, READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_set_label(branchline_session *session,
                                               const char *entry_id,
                                               const char *label,
                                               char **out_id,
                                               branchline_error **error);

/// Sets the session's name; an empty one clears it.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_set_name(branchline_session *session, const char *name, branchline_error **error);

/// Stores data of the host that the model never sees. `data_json` is any JSON, or NULL for none.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise the new entry's id is yours: free it with
/// branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_append_custom(branchline_session *session,
                                                   const char *custom_type,
                                                   const char *data_json,
                                                   char **out_id,
                                                   branchline_error **error);

/// branchline_session_append_custom for a text that is not NUL-terminated.
///
/// Ownership: as branchline_session_append_custom.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_append_custom.
branchline_status branchline_session_append_custom_n(branchline_session *session,
                                                     const char *custom_type,
                                                     const char *data_json,
                                                     size_t length,
                                                     char **out_id,
                                                     branchline_error **error);

/// Stores a message of the host that the model sees. `content_json` is a JSON string or a list of text and image blocks;
/// `display` tells whether it is meant to be shown to people; `details_json` is any JSON for the host, or NULL.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise it gets the new entry's id, or NULL when a run is
/// active, as the message is stored after the current turn then. It is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_append_custom_message(branchline_session *session,
                                                           const char *custom_type,
                                                           const char *content_json,
                                                           bool display,
                                                           const char *details_json,
                                                           char **out_id,
                                                           branchline_error **error);

/// Makes a tool of the host's. `definition_json` is `{"name","description","parameters"?,"executionMode"?,"snippet"?,
/// "guidelines"?,"effect"?,"pathArguments"?}`: `parameters` is the JSON schema of an object; `executionMode` is "parallel" (the default) or
/// "sequential", which makes a model's calls run one after the other when this tool is among them; `snippet` and
/// `guidelines` go to the system prompt. Permissions go by `effect`, "read", "write" or "execute" (anything, the
/// default), and look at where the arguments named in `pathArguments` lead.
///
/// Ownership: borrows `engine`, `definition_json` and `callbacks`, whose content is copied; `user_data` is the library's
/// until `destroy`. `out_tool` is yours: free it with branchline_tool_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
branchline_status branchline_tool_new(branchline_engine *engine,
                                      const char *definition_json,
                                      const branchline_tool_callbacks *callbacks,
                                      branchline_tool **out_tool,
                                      branchline_error **error);

/// branchline_tool_new for a definition that is not NUL-terminated.
///
/// Ownership: as branchline_tool_new.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_tool_new.
branchline_status branchline_tool_new_n(branchline_engine *engine,
                                        const char *definition_json,
                                        size_t length,
                                        const branchline_tool_callbacks *callbacks,
                                        branchline_tool **out_tool,
                                        branchline_error **error);

/// Adds a tool for the sessions and toolboxes made from now on, replacing one of the same name, also a built-in one.
///
/// Ownership: borrows everything; the engine keeps what it needs of `tool`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_add_tool(branchline_engine *engine,
                                             branchline_tool *tool,
                                             branchline_error **error);

/// Lets go of a tool. What uses it goes on using it; `destroy` runs when nothing does any more, at the latest at the end
/// of its engine. NULL is fine.
///
/// Ownership: takes `tool`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_tool_free(branchline_tool *tool);

/// What it is about.
///
/// Ownership: borrows `request`.
/// Threads: any.
/// Errors: none.
branchline_request_kind branchline_request_type(const branchline_request *request);

/// The name of the tool, of the model that is to answer or that a payload is for, or of the provider whose key or login is
/// wanted.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_request_name(const branchline_request *request);

/// What is asked, as JSON. Of a tool call its arguments: an object that fits the tool's schema.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_request_arguments(const branchline_request *request);

/// The id of the tool call, as the model gave it and events carry it; empty when no model calls.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_request_call_id(const branchline_request *request);

/// The id of the session that asks; empty for a toolbox and for a key.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_request_session_id(const branchline_request *request);

/// Which of the sessions over its tree asks: they share one id, see branchline_event_sibling. 0 for a toolbox and for a key.
///
/// Ownership: none.
/// Threads: any.
/// Errors: none.
uint32_t branchline_request_sibling(const branchline_request *request);

/// The working directory of the session or toolbox that calls a tool, an absolute path as the operating system takes it;
/// empty for other questions.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
const char *branchline_request_cwd(const branchline_request *request);

/// Whether the answer is not wanted any more: the call was aborted or its session closed. Stop the work and free the
/// request; an answer would go nowhere.
///
/// Ownership: borrows `request`.
/// Threads: any.
/// Errors: none.
bool branchline_request_is_cancelled(const branchline_request *request);

/// Answers. The result of a tool is JSON: a string; a list of content blocks `{"type":"text","text":...}` or
/// `{"type":"image","data":...,"mimeType":...}`; `{"content":..., "details"?, "structuredContent"?, "isError"?,
/// "terminate"?}`; or any other value, which the model gets as JSON text. Answers to other questions are described where
/// those come from.
///
/// Ownership: borrows everything; `request` still has to be freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_ARGUMENT when it is no result (the request stays open) or was answered before; CANCELLED when nobody
/// waits any more; INVALID_HANDLE, FORKED.
branchline_status branchline_request_complete(branchline_request *request,
                                              const char *result_json,
                                              branchline_error **error);

/// branchline_request_complete for a text that is not NUL-terminated.
///
/// Ownership: borrows everything; `request` still has to be freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: as branchline_request_complete.
branchline_status branchline_request_complete_n(branchline_request *request,
                                                const char *result_json,
                                                size_t length,
                                                branchline_error **error);

/// Answers that it failed. The model reads the message of a tool.
///
/// Ownership: borrows everything; `request` still has to be freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_ARGUMENT when it was answered before; CANCELLED when nobody waits any more; INVALID_HANDLE, FORKED.
branchline_status branchline_request_fail(branchline_request *request, const char *message, branchline_error **error);

/// branchline_request_fail for a text that is not NUL-terminated or holds NUL.
///
/// Ownership: borrows everything; `request` still has to be freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: as branchline_request_fail.
branchline_status branchline_request_fail_n(branchline_request *request,
                                            const char *message,
                                            size_t length,
                                            branchline_error **error);

/// Tells how far a tool is, in the form of a result. Each update replaces the ones before it; one is left out when the
/// reader is behind or the request is over. Does not wait.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_request_progress(branchline_request *request,
                                              const char *partial_json,
                                              branchline_error **error);

/// branchline_request_progress for a text that is not NUL-terminated.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: as branchline_request_progress.
branchline_status branchline_request_progress_n(branchline_request *request,
                                                const char *partial_json,
                                                size_t length,
                                                branchline_error **error);

/// Frees a request. If it was not answered, what it is about fails. NULL is fine.
///
/// Ownership: takes `request` and with it its strings.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_request_free(branchline_request *request);

/// Makes an empty queue.
///
/// Ownership: `out_requests` is yours: free it with branchline_requests_free.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, FORKED.
branchline_status branchline_requests_new(branchline_requests **out_requests, branchline_error **error);

/// Makes a tool of the host's whose calls come to this queue: tell them apart by branchline_request_name. The definition
/// is as for branchline_tool_new. When the queue is freed, calls fail.
///
/// Ownership: borrows everything; `out_tool` is yours: free it with branchline_tool_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_requests_tool(branchline_requests *requests,
                                           const char *definition_json,
                                           branchline_tool **out_tool,
                                           branchline_error **error);

/// branchline_requests_tool for a definition that is not NUL-terminated.
///
/// Ownership: borrows everything; `out_tool` is yours: free it with branchline_tool_free.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_requests_tool.
branchline_status branchline_requests_tool_n(branchline_requests *requests,
                                             const char *definition_json,
                                             size_t length,
                                             branchline_tool **out_tool,
                                             branchline_error **error);

/// Waits for the next request, at most `timeout_ms` milliseconds; 0 does not wait, BRANCHLINE_WAIT_FOREVER has no limit.
/// Whether one that was taken is still wanted tells branchline_request_is_cancelled.
///
/// Ownership: borrows `requests`; `out_request` is yours: answer it, and free it with branchline_request_free.
/// Threads: any that may block, also several at once.
/// Errors: TIMEOUT when none came in time, END when the queue was freed meanwhile (neither comes with an error object);
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_requests_next(branchline_requests *requests,
                                           uint32_t timeout_ms,
                                           branchline_request **out_request,
                                           branchline_error **error);

/// A file descriptor to poll in a loop: readable while something is in the queue. Then call branchline_requests_next with a timeout
/// of 0 until it gives TIMEOUT.
///
/// Ownership: the descriptor belongs to `requests` and is closed when that is freed and nothing asks any more: do not read,
/// write or close it.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, STORAGE_FAILED when the process has no descriptor left.
branchline_status branchline_requests_fd(const branchline_requests *requests,
                                         int *out_fd,
                                         branchline_error **error);

/// Frees a queue. What is in it, and calls to come, fail; requests that were taken can be answered. A thread that waits in
/// branchline_requests_next gets END. NULL is fine.
///
/// Ownership: takes `requests`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_requests_free(branchline_requests *requests);

/// Makes a toolbox with the tools of an engine: the built-in ones and those it was given. `options` may be NULL.
///
/// Ownership: borrows `engine` and `options`; `out_toolbox` is yours: free it with branchline_toolbox_free. It may outlive
/// the engine, whose end ends its calls.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_toolbox_new(branchline_engine *engine,
                                         const branchline_toolbox_options *options,
                                         branchline_toolbox **out_toolbox,
                                         branchline_error **error);

/// Frees a toolbox. Calls under way go on. NULL is fine.
///
/// Ownership: takes `toolbox`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_toolbox_free(branchline_toolbox *toolbox);

/// Adds a tool of the host's to a toolbox, replacing one of the same name.
///
/// Ownership: borrows everything; the toolbox keeps what it needs of `tool`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_toolbox_add_tool(branchline_toolbox *toolbox,
                                              branchline_tool *tool,
                                              branchline_error **error);

/// What can be called, by name: a JSON list of `{"name","description","parameters",...}`, as branchline_tool_new takes
/// them.
///
/// Ownership: borrows `toolbox`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_toolbox_definitions(const branchline_toolbox *toolbox,
                                                 char **out_json,
                                                 branchline_error **error);

/// Calls a tool and waits for its result, however long that takes: `{"content":[...],"details"?,"structuredContent"?,
/// "usage"?,"terminate"?,"isError"}`. `arguments_json` is an object; NULL is an empty one. A call that could be cancelled,
/// or that others should not wait for, is branchline_toolbox_start.
///
/// `on_progress` (may be NULL) is called with partial results on the calling thread, each replacing the ones before it;
/// the string lives until it returns. It must return normally.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any that may block, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED. An unknown tool, arguments that do not fit and a tool that
/// fails are results with `"isError":true`, and OK.
branchline_status branchline_toolbox_call(branchline_toolbox *toolbox,
                                          const char *name,
                                          const char *arguments_json,
                                          void (*on_progress)(void *user_data, const char *partial_json),
                                          void *user_data,
                                          char **out_json,
                                          branchline_error **error);

/// branchline_toolbox_call for arguments that are not NUL-terminated.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any that may block, also from inside callbacks.
/// Errors: as branchline_toolbox_call.
branchline_status branchline_toolbox_call_n(branchline_toolbox *toolbox,
                                            const char *name,
                                            const char *arguments_json,
                                            size_t arguments_length,
                                            void (*on_progress)(void *user_data, const char *partial_json),
                                            void *user_data,
                                            char **out_json,
                                            branchline_error **error);

/// Starts a call that runs by itself. `callbacks` (may be NULL) are told of progress and of the result; or ask with
/// branchline_call_wait. `arguments_json` is an object; NULL is an empty one.
///
/// Ownership: borrows everything; `callbacks` are copied, `user_data` is the library's until `destroy`. `out_call` (may be
/// NULL) is yours: free it with branchline_call_free, which ends the call.
/// Threads: any, also from inside callbacks. Does not wait. Callbacks may be called before it returns.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED, INTERNAL when a thread cannot be started. `destroy` has run
/// then, unless the table itself cannot be read.
branchline_status branchline_toolbox_start(branchline_toolbox *toolbox,
                                           const char *name,
                                           const char *arguments_json,
                                           const branchline_call_callbacks *callbacks,
                                           branchline_call **out_call,
                                           branchline_error **error);

/// branchline_toolbox_start for arguments that are not NUL-terminated.
///
/// Ownership: as branchline_toolbox_start.
/// Threads: any, also from inside callbacks. Does not wait. Callbacks may be called before it returns.
/// Errors: as branchline_toolbox_start.
branchline_status branchline_toolbox_start_n(branchline_toolbox *toolbox,
                                             const char *name,
                                             const char *arguments_json,
                                             size_t arguments_length,
                                             const branchline_call_callbacks *callbacks,
                                             branchline_call **out_call,
                                             branchline_error **error);

/// Makes a policy. `policy_json` is a preset as a JSON text ("read-only", "ask", "workspace", "allow", with its quotes) or
/// `{"preset"?,"tools"?:{NAME:ACTION},"effects"?:{EFFECT:ACTION},"roots"?:[DIRECTORY],"timeoutMs"?}`, where an action is
/// "allow", "ask" or "deny" and an effect "read", "write" or "execute". Paths outside of the roots are refused whatever
/// else is said. `callbacks` may be NULL: then nobody is asked, and what asks is denied. Otherwise `on_call` gets each
/// question as a request of type BRANCHLINE_REQUEST_PERMISSION; its arguments are `{"tool","effect","arguments",
/// "command"?,"paths":[{"given","path","real","inside"}],"rule"}`. Answer with branchline_request_complete and `"allow"`,
/// `"deny"`, `"allowAlways"` or `{"decision","reason"?,"scope"?}`, the scope being "same", "tool" or `{"below":DIRECTORY}`.
/// A request that fails, is freed without an answer, or is answered too late is a denial.
///
/// Ownership: borrows `engine`, `policy_json` and `callbacks`, whose content is copied; `user_data` is the library's until
/// `destroy`. `out_permissions` is yours: free it with branchline_permissions_free.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
branchline_status branchline_permissions_new(branchline_engine *engine,
                                             const char *policy_json,
                                             const branchline_tool_callbacks *callbacks,
                                             branchline_permissions **out_permissions,
                                             branchline_error **error);

/// Makes a policy whose questions come to a queue of requests. `policy_json` and the answers are as for
/// branchline_permissions_new. When the queue is freed, what asks is denied.
///
/// Ownership: borrows everything; `out_permissions` is yours: free it with branchline_permissions_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_requests_permissions(branchline_requests *requests,
                                                  const char *policy_json,
                                                  branchline_permissions **out_permissions,
                                                  branchline_error **error);

/// Sets what the calls of a toolbox may do from now on; without it they may do everything. Answers that hold for longer
/// than a call are forgotten.
///
/// Ownership: borrows everything; the toolbox keeps what it needs of `permissions`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_toolbox_set_permissions(branchline_toolbox *toolbox,
                                                     const branchline_permissions *permissions,
                                                     branchline_error **error);

/// Lets go of a policy. What uses it goes on using it; `destroy` runs when nothing does any more, at the latest at the
/// end of its engine. NULL is fine.
///
/// Ownership: takes `permissions`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_permissions_free(branchline_permissions *permissions);

/// Makes a hook. `on_call` gets each question as a request: before a call of type BRANCHLINE_REQUEST_BEFORE_TOOL, whose
/// arguments are `{"arguments"}`; the answer is `null` or `true` (it runs), `false` or a text (it does not; the model reads
/// the text), or `{"block"?:REASON or true,"terminate"?,"arguments"?}`. After it of type BRANCHLINE_REQUEST_AFTER_TOOL with
/// `{"arguments","result"}`; the answer is `null` or the parts of the result to replace: `{"content"?,"details"?,
/// "structuredContent"?,"usage"?,"isError"?,"terminate"?}`. A request that fails or is freed without an answer becomes the
/// error result of its call. `points` is a sum of BRANCHLINE_HOOK_BEFORE_TOOL and BRANCHLINE_HOOK_AFTER_TOOL.
///
/// Ownership: borrows `engine` and `callbacks`, whose content is copied; `user_data` is the library's until `destroy`.
/// `out_hook` is yours: free it with branchline_tool_hook_free.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
branchline_status branchline_tool_hook_new(branchline_engine *engine,
                                           branchline_hook_point points,
                                           const branchline_tool_callbacks *callbacks,
                                           branchline_tool_hook **out_hook,
                                           branchline_error **error);

/// Lets go of a hook. Sessions that have it keep it; `destroy` runs when none does any more, at the latest at the end of
/// its engine. NULL is fine.
///
/// Ownership: takes `hook`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_tool_hook_free(branchline_tool_hook *hook);

/// Every model known, as a JSON list of `{"name","provider","id","displayName","api","baseUrl","reasoning",
/// "thinkingLevels","images","contextWindow","maxTokens","cost":{"input","output","cacheRead","cacheWrite","tiers"?}}`. The
/// name is "provider/id"; 0 is unknown; prices are US dollars per million tokens.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read a file the first time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_models(const branchline_engine *engine,
                                           char **out_json,
                                           branchline_error **error);

/// The models that can be used: those whose provider has a key, and those that need none. Nobody is asked for a key and
/// no command is run to find out. The form is that of branchline_engine_models.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read small files.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_available_models(const branchline_engine *engine,
                                                     char **out_json,
                                                     branchline_error **error);

/// The model that a text of a person means: "provider/id", an id, or a part of an id or name, with ":LEVEL" behind it for a
/// thinking level. As JSON: `{"model":{...},"thinkingLevel"}`, the latter null if the text names none.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read small files.
/// Errors: UNKNOWN_MODEL, naming what is near or between what to choose; INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_find_model(const branchline_engine *engine,
                                               const char *text,
                                               char **out_json,
                                               branchline_error **error);

/// As branchline_engine_find_model, but an unknown id of a known provider, "provider/id", is a model as well: one that came
/// out yesterday, or that only this person has. It has the facts of the provider's default model, `"warning"` in the JSON
/// says so in a sentence, and the engine knows it by its name from then on.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read small files.
/// Errors: as branchline_engine_find_model.
branchline_status branchline_engine_find_model_or_custom(branchline_engine *engine,
                                                         const char *text,
                                                         char **out_json,
                                                         branchline_error **error);

/// The available models that patterns mean: "google/*", "*haiku*:low", or texts as of branchline_engine_find_model; ":LEVEL"
/// behind a pattern chooses the thinking level. As JSON: `{"models":[...],"warnings":[...]}`, the models each as of
/// branchline_engine_find_model, in the order of the patterns, and what was wrong with patterns, a sentence each.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read small files.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_models_in_scope(const branchline_engine *engine,
                                                    const char *const *patterns,
                                                    size_t pattern_count,
                                                    char **out_json,
                                                    branchline_error **error);

/// What is wrong with the configuration of models that was read from a file, as a JSON list of `{"path"?,"provider"?,
/// "message"}`. The rest of it is in use.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read a file the first time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_model_problems(const branchline_engine *engine,
                                                   char **out_json,
                                                   branchline_error **error);

/// Adds providers and models in the shape of models.json, above what is known: `{"providers":{NAME:{"baseUrl"?,"api"?,
/// "apiKey"?,"headers"?,"models"?:[...], ...}}}`, see docs/models.md. Sessions that are open go on with the models they have.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks. May read a file the first time.
/// Errors: INVALID_ARGUMENT, naming the places that are wrong, and then nothing changes; INVALID_HANDLE, FORKED.
branchline_status branchline_engine_configure_models(branchline_engine *engine,
                                                     const char *models_json,
                                                     branchline_error **error);

/// Sets the key of a provider from the next request on, or forgets it with NULL. It wins over every other. `bearer` sends
/// it as "Authorization: Bearer" also where the protocol has a header of its own for keys.
///
/// Ownership: borrows everything. The key is copied to memory that is wiped.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_set_key(branchline_engine *engine,
                                            const char *provider,
                                            const char *key,
                                            bool bearer,
                                            branchline_error **error);

/// Adds a provider whose models the host answers, replacing one of the same name. `definition_json` is `{"name","models":[ID
/// or {"id","name"?,"contextWindow"?,"maxTokens"?,"input"?:["text","image"],"reasoning"?,"thinkingLevels"?:[...],
/// "cost"?:{...},"api"?}]}`; sessions choose "NAME/ID". `on_call` gets each request of a session as a request of type
/// BRANCHLINE_REQUEST_MODEL: its name is the model's, its arguments are `{"provider","model","api","systemPrompt",
/// "messages","tools","thinkingLevel","sessionId","purpose","maxTokens"?,"temperature"?}`. Write the answer with
/// branchline_request_push as it comes, and end it with branchline_request_complete: `null` ends it, a text or an event, or
/// a list of them, is written first. One that fails, or is freed before its answer was ended, is a failed response.
///
/// Ownership: borrows `engine`, `definition_json` and `callbacks`, whose content is copied; `user_data` is the library's
/// until `destroy`, which runs when the provider was replaced and answers nothing any more, or with the engine.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one request at a time: keep the
/// request and return to answer several at once. `on_cancel` tells of aborts.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
branchline_status branchline_engine_add_host_provider(branchline_engine *engine,
                                                      const char *definition_json,
                                                      const branchline_tool_callbacks *callbacks,
                                                      branchline_error **error);

/// Adds a provider whose models are answered by whoever takes requests from a queue. The definition, the requests and the
/// answers are as for branchline_engine_add_host_provider. When the queue is freed, responses fail.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_requests_host_provider(branchline_requests *requests,
                                                    branchline_engine *engine,
                                                    const char *definition_json,
                                                    branchline_error **error);

/// Asks the host for keys from the next request to a service on, after those of branchline_engine_set_key and before all
/// others; with NULL it is not asked any more. `on_call` gets each question as a request of type BRANCHLINE_REQUEST_KEY: its
/// name is the provider's, its arguments are `{"provider","model","baseUrl"}`. Answer with branchline_request_complete and the
/// key as a JSON text, `{"key","bearer"?}`, or `null` for "look elsewhere". A question that fails, or is freed without an
/// answer, fails the request to the service. Keys are in no error, event, recording or session file.
///
/// Ownership: borrows `engine` and `callbacks`, whose content is copied; `user_data` is the library's until `destroy`, which
/// runs when another source took its place, or with the engine.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
branchline_status branchline_engine_set_key_source(branchline_engine *engine,
                                                   const branchline_tool_callbacks *callbacks,
                                                   branchline_error **error);

/// The same for whoever takes requests from a queue. When the queue is freed, requests to services fail until there is
/// another source, or none: branchline_engine_set_key_source with NULL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_requests_key_source(branchline_requests *requests,
                                                 branchline_engine *engine,
                                                 branchline_error **error);

/// Has the host look at the JSON body of every request to a service, from the next one on, before it is sent; with NULL it is not
/// asked any more. `on_call` gets each as a request of type BRANCHLINE_REQUEST_PAYLOAD: its name is the model's, its arguments are
/// `{"provider","model","api","body"}`. Answer with branchline_request_complete and the body that takes its place, an object, or
/// `null` for "send it as it is". It is asked once for each body, not again when the same one is sent again. A question that
/// fails, or is freed without an answer, fails the request to the service, and nothing is sent. Keys are no part of a body. The
/// host's own models, scripted ones and replays have none.
///
/// Ownership: borrows `engine` and `callbacks`, whose content is copied; `user_data` is the library's until `destroy`, which
/// runs when another hook took its place, or with the engine.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// `on_cancel` tells of aborts.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
branchline_status branchline_engine_set_payload_hook(branchline_engine *engine,
                                                     const branchline_tool_callbacks *callbacks,
                                                     branchline_error **error);

/// The same for whoever takes requests from a queue. When the queue is freed, requests to services fail until there is
/// another hook, or none: branchline_engine_set_payload_hook with NULL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_requests_payload_hook(branchline_requests *requests,
                                                   branchline_engine *engine,
                                                   branchline_error **error);

/// Writes a piece of a model's answer: a JSON text is text of it; an event is `{"type":"text_delta","delta"}`,
/// `{"type":"thinking_delta","delta"}`, `{"type":"toolcall","id"?,"name","arguments"}`, `{"type":"usage","usage"}`,
/// `{"type":"done","reason"?}`, `{"type":"error","error","retryAfterMs"?}` or another in the table of docs/models.md. Never
/// waits: what a slow reader has not taken is joined.
///
/// Ownership: borrows everything; `request` still has to be completed and freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_ARGUMENT when it is no event, for a request of another kind, and after the end of the answer; CANCELLED
/// when nobody waits any more: stop the model; TOO_LARGE when the answer does not end, which fails it; INVALID_HANDLE, FORKED.
branchline_status branchline_request_push(branchline_request *request,
                                          const char *event_json,
                                          branchline_error **error);

/// branchline_request_push for a text that is not NUL-terminated.
///
/// Ownership: as branchline_request_push.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: as branchline_request_push.
branchline_status branchline_request_push_n(branchline_request *request,
                                            const char *event_json,
                                            size_t length,
                                            branchline_error **error);

/// Stores a key for a provider in the engine's file with keys ("authFile" or "agentFiles" of its options), in the place of
/// what was stored for it. Other entries stay; the file and its directory are made if they are not there, readable by their
/// owner only. It is the file of pi, and is changed under pi's lock. From the next request on the key is used. `key` may be
/// NULL, to store only variables. `options_json` may be NULL: `{"configured"?,"variables"?:{NAME:TEXT}}`. With "configured"
/// true the key is in the form of configured values: "$NAME" is a variable, one that begins with "!" is a command.
///
/// Ownership: borrows everything.
/// Threads: any, but not to be waited for where a login is made anew: that holds the lock. Blocks while files are written
/// and other programs have the lock, 30 seconds at most.
/// Errors: INVALID_ARGUMENT, also for an engine without such a file; STORAGE_FAILED, and then the file is what it was;
/// WOULD_DEADLOCK inside the `on_call` of a login source; CLOSED, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_store_key(branchline_engine *engine,
                                              const char *provider,
                                              const char *key,
                                              const char *options_json,
                                              branchline_error **error);

/// The same for a login: `{"access","refresh"?,"expires", ...}`, an access token and when it ends, in milliseconds since
/// 1970. Whatever else is in it stays in it. It is used by an engine with a login source, see
/// branchline_engine_set_login_source.
///
/// Ownership: borrows everything.
/// Threads: as branchline_engine_store_key.
/// Errors: as branchline_engine_store_key.
branchline_status branchline_engine_store_login(branchline_engine *engine,
                                                const char *provider,
                                                const char *login_json,
                                                branchline_error **error);

/// Removes what is stored for a provider. `out_removed`, which may be NULL, tells whether something was.
///
/// Ownership: borrows everything.
/// Threads: as branchline_engine_store_key.
/// Errors: as branchline_engine_store_key.
branchline_status branchline_engine_forget_stored(branchline_engine *engine,
                                                  const char *provider,
                                                  bool *out_removed,
                                                  branchline_error **error);

/// What is stored, in the order of the file, as a JSON list of `{"provider","type"}`: "api_key", "oauth", or what another
/// program wrote. Secrets are not told.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: as branchline_engine_store_key.
/// Errors: as branchline_engine_store_key.
branchline_status branchline_engine_stored_keys(const branchline_engine *engine,
                                                char **out_json,
                                                branchline_error **error);

/// Has the host make stored logins anew, from the next request to a service on; with NULL nobody does, and they are of no
/// use. `on_call` gets each question as a request of type BRANCHLINE_REQUEST_LOGIN, when fewer than five minutes of a login
/// remain and by one program at a time: its name is the provider's, its arguments are `{"provider","login"}`, the entry of
/// the file with its secrets. Answer within 15 seconds with branchline_request_complete and the entry that takes its place,
/// an object with a new "access" and "expires" (milliseconds since 1970): it is stored, and "access" is sent as a bearer
/// token. A question that fails, or is freed without an answer, fails the request to the service, unless the login is good
/// for a moment yet. An abort of that request does not cancel the question: what comes of it is stored.
///
/// Ownership: borrows `engine` and `callbacks`, whose content is copied; `user_data` is the library's until `destroy`, which
/// runs when another source took its place, or with the engine.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
branchline_status branchline_engine_set_login_source(branchline_engine *engine,
                                                     const branchline_tool_callbacks *callbacks,
                                                     branchline_error **error);

/// The same for whoever takes requests from a queue. When the queue is freed, logins cannot be made anew until there is
/// another source.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_requests_login_source(branchline_requests *requests,
                                                   branchline_engine *engine,
                                                   branchline_error **error);

/// Adds a recorded session as the provider `name`, replacing one of that name: to the same conversation it gives the
/// recorded answers again. Its models are those that answered in the file, see branchline_engine_models. `options_json` may
/// be NULL: `{"compareToolResults"?,"tools"?}`. Tool results have to be the recorded ones unless "compareToolResults" is
/// false; with "tools" true the recorded tools are added to the engine, as branchline_engine_add_tool does, and give their
/// recorded results.
///
/// Ownership: borrows everything. The file is read at once and not kept open for writing.
/// Threads: any, also from inside callbacks. Blocks while the file is read.
/// Errors: INVALID_SESSION_FILE, STORAGE_FAILED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_engine_add_replay(branchline_engine *engine,
                                               const char *name,
                                               const char *path,
                                               const char *options_json,
                                               branchline_error **error);

/// The first place where a conversation left the recording of this name, as JSON: null as long as it has not, else
/// `{"at","recorded":[{"entryId","message"}],"actual"}`. `at` counts the messages of the conversation from 0, `recorded` is
/// what follows there in the file, on all branches, and `actual` what the session had instead, null if it asked for an answer
/// that was not recorded.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, also when there is no such replay; INVALID_HANDLE, FORKED.
branchline_status branchline_engine_replay_divergence(const branchline_engine *engine,
                                                      const char *name,
                                                      char **out_json,
                                                      branchline_error **error);

/// What the session knows, as JSON: `{"contextFiles":[{"path","content"}],"skills":[{"name","description","path",
/// "disableModelInvocation"}],"promptTemplates":[{"name","description","argumentHint"?,"content","path"?}],"systemPrompt",
/// "appendSystemPrompt","documentation","guidelines","sections","diagnostics":[{"fault","path","message","winner"?}],
/// "skillCommands"}`. What was wrong with a file is in "diagnostics".
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_resources(const branchline_session *session,
                                               char **out_json,
                                               branchline_error **error);

/// Reads the files again that the session was allowed to read. What changed is told to the model before its next request.
///
/// Ownership: borrows `session`; `out_json` may be NULL, otherwise it gets what branchline_session_resources gives, and is
/// yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_reload_resources(branchline_session *session,
                                                      char **out_json,
                                                      branchline_error **error);

/// Chooses anew what the session reads and tells the model, and reads it. `resources_json` as in
/// branchline_session_options; NULL is nothing.
///
/// Ownership: borrows everything; `out_json` as for branchline_session_reload_resources.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
branchline_status branchline_session_set_resources(branchline_session *session,
                                                   const char *resources_json,
                                                   char **out_json,
                                                   branchline_error **error);

/// Waits for the result of a call, at most `timeout_ms` milliseconds; 0 asks whether it is there. It may be asked for
/// again.
///
/// Ownership: borrows `call`; `out_json` (may be NULL) is yours: free it with branchline_string_free.
/// Threads: any that may block, also from inside `on_done` of the same call.
/// Errors: TIMEOUT without an error object; INTERNAL, INVALID_HANDLE, INVALID_ARGUMENT, FORKED, WOULD_DEADLOCK for waiting
/// inside `on_progress` of the same call. A tool that failed is a result with `"isError":true`, and OK.
branchline_status branchline_call_wait(const branchline_call *call,
                                       uint32_t timeout_ms,
                                       char **out_json,
                                       branchline_error **error);

/// Tells a call to end. It then has an error result, soon. More than once is fine, and so is a call that is over.
///
/// Ownership: borrows `call`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, INVALID_ARGUMENT, FORKED.
branchline_status branchline_call_cancel(branchline_call *call, branchline_error **error);

/// Frees a call. One that is not over is told to end; its callbacks are called for what happens until then. NULL is fine.
///
/// Ownership: takes `call`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
branchline_status branchline_call_free(branchline_call *call);

/// Panics, to test what happens then: a typed error, and the process lives. For tests only; part of the ABI so that
/// every host language can prove it.
///
/// Ownership: takes nothing.
/// Threads: any.
/// Errors: always PANIC.
branchline_status branchline_test_panic(branchline_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BRANCHLINE_H */

/** Starting values; the rest of the fields have their defaults. */
#define BRANCHLINE_ENGINE_OPTIONS_INIT { sizeof(branchline_engine_options), 0, NULL, NULL, NULL }
#define BRANCHLINE_SESSION_OPTIONS_INIT \
  { sizeof(branchline_session_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, NULL, 0, NULL, NULL, NULL, 0, \
    NULL, 0, NULL }
#define BRANCHLINE_PROMPT_OPTIONS_INIT { sizeof(branchline_prompt_options), NULL, 0, 0, NULL }
#define BRANCHLINE_EVENTS_OPTIONS_INIT { sizeof(branchline_events_options), 0 }
#define BRANCHLINE_NAVIGATE_OPTIONS_INIT { sizeof(branchline_navigate_options), NULL, NULL, 0, 0 }
#define BRANCHLINE_LIST_OPTIONS_INIT { sizeof(branchline_list_options), NULL, NULL, 0, 0 }
#define BRANCHLINE_CALLBACKS_INIT { sizeof(branchline_callbacks), NULL, NULL, NULL, 0 }
#define BRANCHLINE_TOOLBOX_OPTIONS_INIT { sizeof(branchline_toolbox_options), NULL }
#define BRANCHLINE_TOOL_CALLBACKS_INIT { sizeof(branchline_tool_callbacks), NULL, NULL, NULL, NULL }
#define BRANCHLINE_CALL_CALLBACKS_INIT { sizeof(branchline_call_callbacks), NULL, NULL, NULL, NULL }
