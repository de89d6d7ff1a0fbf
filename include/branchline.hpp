// branchline.hpp - branchline for C++11 and later, in headers over branchline.h. This is the one to include.
//
//   branchline::Engine engine;
//   branchline::SessionOptions options;
//   options.cwd(".").model("scripted/demo");
//   branchline::Session session = engine.create_session(options);
//   session.on_event([](const branchline::Event &event) { if (event.is_text_delta()) std::cout << event.text(); });
//   session.run("List the files.");
//
// Objects own their handles, can be moved but not copied, and free them in any order. Failures are branchline::Error.
// Every method may be called from any thread; listeners run on threads of the library, one at a time for each session.

#ifndef BRANCHLINE_HPP
#define BRANCHLINE_HPP

#include "branchline_detail.hpp"
#include "branchline_host.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace branchline {

/// One event, borrowed from a queue or during a listener.
class Event {
public:
  explicit Event(const branchline_event *event) noexcept : event_(event) {}
  branchline_event_kind type() const noexcept { return branchline_event_type(event_); }
  std::uint64_t sequence() const noexcept { return branchline_event_sequence(event_); }
  /// Whose it is among the sessions over one tree.
  std::uint32_t sibling() const noexcept { return branchline_event_sibling(event_); }
  bool is_text_delta() const noexcept { return type() == BRANCHLINE_EVENT_TEXT_DELTA; }
  /// The new text of a text or thinking delta, else empty.
  std::string text() const {
    const char *text = branchline_event_text(event_);
    return text ? std::string(text, branchline_event_text_length(event_)) : std::string();
  }
  std::string session_id() const { return detail::text_or_empty(branchline_event_session_id(event_)); }
  std::string tool_name() const { return detail::text_or_empty(branchline_event_tool_name(event_)); }
  std::string tool_call_id() const { return detail::text_or_empty(branchline_event_tool_call_id(event_)); }
  std::string entry_id() const { return detail::text_or_empty(branchline_event_entry_id(event_)); }
  bool is_error() const noexcept { return branchline_event_is_error(event_); }
  std::string json() const { return detail::text_or_empty(branchline_event_json(event_)); }
  const branchline_event *handle() const noexcept { return event_; }

private:
  const branchline_event *event_;
};

using Listener = std::function<void(const Event &)>;

/// A listener's registration: it ends with this object.
class Subscription {
public:
  explicit Subscription(branchline_subscription *handle = nullptr) noexcept : handle_(handle) {}

private:
  detail::Handle<branchline_subscription, branchline_subscription_free> handle_;
};

/// A queue of events that the host drains.
class Events {
public:
  explicit Events(branchline_events *handle) noexcept : handle_(handle) {}
  /// Calls `use` with the next event. False when none came in time or none will come.
  bool next(std::uint32_t timeout_ms, const Listener &use) {
    detail::Call call;
    const branchline_event *event = nullptr;
    branchline_status status = branchline_events_next(handle_.get(), timeout_ms, &event, call.out());
    if (status == BRANCHLINE_STATUS_TIMEOUT || status == BRANCHLINE_STATUS_END) return false;
    call.check(status);
    use(Event(event));
    return true;
  }
  /// Readable while events are queued and after the end.
  int fd() const {
    detail::Call call;
    int fd = -1;
    call.check(branchline_events_fd(handle_.get(), &fd, call.out()));
    return fd;
  }

private:
  detail::Handle<branchline_events, branchline_events_free> handle_;
};

class Exploration;

/// How a session is made or opened; each setter returns the object.
class SessionOptions {
public:
  SessionOptions &cwd(std::string value) { return set(cwd_, std::move(value)); }
  SessionOptions &session_dir(std::string value) { return set(session_dir_, std::move(value)); }
  SessionOptions &id(std::string value) { return set(id_, std::move(value)); }
  SessionOptions &name(std::string value) { return set(name_, std::move(value)); }
  SessionOptions &parent_session(std::string value) { return set(parent_session_, std::move(value)); }
  SessionOptions &model(std::string value) { return set(model_, std::move(value)); }
  SessionOptions &thinking_level(std::string value) { return set(thinking_level_, std::move(value)); }
  /// "read-only", "ask" (the default), "workspace" or "allow".
  SessionOptions &permissions(std::string value) { return set(permissions_, std::move(value)); }
  /// Must live until the session is made.
  SessionOptions &permissions(const Permissions &policy) {
    policy_ = policy.get();
    return *this;
  }
  /// Must live until the session is made. May be called for several hooks.
  SessionOptions &tool_hook(const ToolHook &hook) {
    hooks_.push_back(hook.get());
    return *this;
  }
  /// Must live until the session is made. May be called for several budgets.
  SessionOptions &budget(const Budget &budget) {
    budgets_.push_back(budget.get());
    return *this;
  }
  /// What the session reads of its project and tells the model, as JSON; see branchline_session_options.
  SessionOptions &resources(std::string json) { return set(resources_, std::move(json)); }
  SessionOptions &system_prompt(std::string value) { return set(system_prompt_, std::move(value)); }
  SessionOptions &tools(std::vector<std::string> names) {
    tools_ = std::move(names);
    choose_tools_ = true;
    return *this;
  }
  /// A tool of this session alone, which must live until the session is made. Besides `tools`, if those are chosen.
  SessionOptions &custom_tool(const Tool &tool) {
    custom_tools_.push_back(tool.get());
    return *this;
  }
  SessionOptions &durability(branchline_durability value) {
    durability_ = value;
    return *this;
  }
  SessionOptions &in_memory(bool value = true) {
    in_memory_ = value;
    return *this;
  }
  SessionOptions &read_only(bool value = true) {
    read_only_ = value;
    return *this;
  }

  /// Calls `use` with the C struct, whose pointers live that long.
  template <typename Use> void with(Use use) const {
    branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
    std::vector<const char *> names;
    for (const std::string &name : tools_) names.push_back(name.c_str());
    options.tool_count = names.size();
    names.push_back(nullptr);
    options.tools = choose_tools_ ? names.data() : nullptr;
    options.custom_tools = custom_tools_.data();
    options.custom_tool_count = custom_tools_.size();
    options.cwd = pointer(cwd_);
    options.session_dir = pointer(session_dir_);
    options.id = pointer(id_);
    options.name = pointer(name_);
    options.parent_session = pointer(parent_session_);
    options.model = pointer(model_);
    options.thinking_level = pointer(thinking_level_);
    options.system_prompt = pointer(system_prompt_);
    options.durability = durability_;
    options.in_memory = in_memory_;
    options.read_only = read_only_;
    options.permissions = pointer(permissions_);
    options.permission_policy = policy_;
    options.budgets = budgets_.data();
    options.budget_count = budgets_.size();
    options.tool_hooks = hooks_.data();
    options.tool_hook_count = hooks_.size();
    options.resources_json = pointer(resources_);
    use(&options);
  }

private:
  /// A string that may be missing.
  using Text = std::pair<bool, std::string>;
  static const char *pointer(const Text &text) { return text.first ? text.second.c_str() : nullptr; }
  SessionOptions &set(Text &text, std::string value) {
    text = Text(true, std::move(value));
    return *this;
  }

  Text cwd_, session_dir_, id_, name_, parent_session_, model_, thinking_level_, system_prompt_, permissions_, resources_;
  const branchline_permissions *policy_ = nullptr;
  std::vector<branchline_budget *> budgets_;
  std::vector<branchline_tool_hook *> hooks_;
  std::vector<std::string> tools_;
  std::vector<branchline_tool *> custom_tools_;
  bool choose_tools_ = false, in_memory_ = false, read_only_ = false;
  branchline_durability durability_ = BRANCHLINE_DURABILITY_NONE;
};

/// A live session. Methods that return JSON return it as text, in the forms branchline.h describes.
class Session {
public:
  explicit Session(branchline_session *handle = nullptr) noexcept : handle_(handle) {}

  std::string id() const { return ask(branchline_session_id); }
  /// Empty in memory.
  std::string path() const { return ask(branchline_session_path); }
  std::string cwd() const { return ask(branchline_session_cwd); }
  /// Empty before the first entry.
  std::string leaf() const { return ask(branchline_session_leaf); }
  std::string name() const { return ask(branchline_session_name); }
  std::string state() const { return ask(branchline_session_state); }
  std::string tree() const { return ask(branchline_session_tree); }
  std::string context() const { return ask(branchline_session_context); }
  std::string diagnostics() const { return ask(branchline_session_diagnostics); }

  /// Sends a prompt and returns once it is accepted. Unless it is `literal`, a skill or template it calls is put in.
  /// `forced_prompt`, unless NULL, is the system prompt of this run alone.
  void prompt(const std::string &text, branchline_when_running when_running = BRANCHLINE_WHEN_RUNNING_REFUSE,
              bool literal = false, const char *forced_prompt = nullptr) {
    detail::Call call;
    branchline_prompt_options options = BRANCHLINE_PROMPT_OPTIONS_INIT;
    options.when_running = when_running;
    options.literal = literal;
    options.forced_prompt = forced_prompt;
    call.check(branchline_session_prompt_n(get(), text.data(), text.size(), &options, call.out()));
  }
  /// Sends a prompt and waits until the session is idle and its listeners have seen everything.
  void run(const std::string &text) {
    prompt(text);
    wait_idle();
  }
  void steer(const std::string &text) {
    detail::Call call;
    call.check(branchline_session_steer_n(get(), text.data(), text.size(), call.out()));
  }
  void follow_up(const std::string &text) {
    detail::Call call;
    call.check(branchline_session_follow_up_n(get(), text.data(), text.size(), call.out()));
  }
  void abort() { act(branchline_session_abort); }
  /// False when the time ran out.
  bool wait_idle(std::uint32_t timeout_ms = BRANCHLINE_WAIT_FOREVER) {
    detail::Call call;
    branchline_status status = branchline_session_wait_idle(get(), timeout_ms, call.out());
    if (status == BRANCHLINE_STATUS_TIMEOUT) return false;
    call.check(status);
    return true;
  }
  void close() { act(branchline_session_close); }

  /// Calls `listener` for each event until the session ends. It must not throw: what it throws ends the program.
  void on_event(Listener listener) { listen(std::move(listener), nullptr); }
  /// The same, until the returned object ends.
  Subscription subscribe(Listener listener) {
    branchline_subscription *out = nullptr;
    listen(std::move(listener), &out);
    return Subscription(out);
  }
  Events events(std::size_t capacity = 0) {
    detail::Call call;
    branchline_events_options options = BRANCHLINE_EVENTS_OPTIONS_INIT;
    options.capacity = capacity;
    branchline_events *out = nullptr;
    call.check(branchline_session_events(get(), &options, &out, call.out()));
    return Events(out);
  }

  /// The path to the leaf, or to an entry, as a JSON list of ids.
  std::string tree_branch() const { return branch_to(nullptr); }
  std::string tree_branch(const std::string &entry_id) const { return branch_to(entry_id.c_str()); }
  /// The path to the leaf, or to an entry, as the text of a session file of its own.
  std::string export_branch(const std::string &entry_id = std::string()) const {
    detail::Call call;
    char *out = nullptr;
    std::size_t length = 0;
    call.check(branchline_session_export_branch(get(), entry_id.empty() ? nullptr : entry_id.c_str(), &out, &length,
                                                call.out()));
    return detail::take(out);
  }
  /// One entry as its line in the file.
  std::string entry(const std::string &entry_id) const {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_entry(get(), entry_id.c_str(), &out, nullptr, call.out()));
    return detail::take(out);
  }
  /// Moves to another entry; the result is JSON with "leaf" and "editorText".
  std::string navigate(const std::string &entry_id, bool summarize = false, const std::string &label = std::string()) {
    detail::Call call;
    branchline_navigate_options options = BRANCHLINE_NAVIGATE_OPTIONS_INIT;
    options.summarize = summarize;
    options.label = label.empty() ? nullptr : label.c_str();
    char *out = nullptr;
    call.check(branchline_session_navigate(get(), entry_id.c_str(), &options, &out, call.out()));
    return detail::take(out);
  }
  /// A new file with the path to before a user message, or to any entry; `editor_text` gets that message's text.
  Session fork(const std::string &entry_id, branchline_fork_position position = BRANCHLINE_FORK_BEFORE,
               std::string *editor_text = nullptr) {
    detail::Call call;
    branchline_session *out = nullptr;
    char *text = nullptr;
    call.check(branchline_session_fork(get(), entry_id.c_str(), position, &out, &text, call.out()));
    Session session(out);
    std::string taken = detail::take(text);
    if (editor_text) *editor_text = std::move(taken);
    return session;
  }
  Session clone() {
    detail::Call call;
    branchline_session *out = nullptr;
    call.check(branchline_session_clone(get(), &out, call.out()));
    return Session(out);
  }

  /// Another live session over the same tree. Options are JSON; empty ones are the usual (begin at the leaf).
  Session branch(const std::string &options_json = std::string()) {
    return derive(branchline_session_branch, options_json);
  }
  /// 0 for the session that opened or made the file, 1, 2 and so on for its siblings.
  std::uint32_t sibling() const {
    detail::Call call;
    std::uint32_t out = 0;
    call.check(branchline_session_sibling(get(), &out, call.out()));
    return out;
  }
  bool is_sibling_of(const Session &other) const {
    detail::Call call;
    bool out = false;
    call.check(branchline_session_is_sibling_of(get(), other.get(), &out, call.out()));
    return out;
  }
  /// One prompt each for several siblings, as a JSON list.
  Exploration explore(const std::string &prompts_json, const std::string &options_json = std::string());
  /// Moves to where `winner` stands; the result is JSON as of navigate().
  std::string adopt(const Session &winner, const std::string &options_json = std::string()) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_adopt(get(), winner.get(), or_null(options_json), &out, call.out()));
    return detail::take(out);
  }
  Session new_session(const std::string &options_json = std::string()) {
    return derive(branchline_session_new_session, options_json);
  }
  /// Opens another file in place of this session, which is closed. (`switch` is a word of the language.)
  Session switch_to(const std::string &path, const std::string &options_json = std::string()) {
    return replace(branchline_session_switch, path, options_json);
  }
  /// Copies a file into this session's directory and opens the copy in place of this session.
  Session import_session(const std::string &path, const std::string &options_json = std::string()) {
    return replace(branchline_session_import_session, path, options_json);
  }

  /// Replaces the older part of the context by a summary; the result is JSON.
  std::string compact(const std::string &instructions = std::string()) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_compact(get(), or_null(instructions), &out, call.out()));
    return detail::take(out);
  }
  /// `replacement_json`: `null` leaves the entry out of the context, `{"content":...}` replaces its content.
  std::string edit_context(const std::string &entry_id, const std::string &replacement_json) {
    detail::Call call;
    char *out = nullptr;
    call.check(
        branchline_session_edit_context(get(), entry_id.c_str(), replacement_json.c_str(), &out, call.out()));
    return detail::take(out);
  }
  /// Runs a command of the user and stores what came of it; the result is JSON.
  std::string run_bash(const std::string &command, const std::string &options_json = std::string()) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_run_bash(get(), command.c_str(), or_null(options_json), &out, call.out()));
    return detail::take(out);
  }
  void abort_bash() { act(branchline_session_abort_bash); }
  /// Stores a shell run of the user; empty when something runs, as it is stored after that then.
  std::string record_bash(const std::string &execution_json) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_record_bash(get(), execution_json.c_str(), &out, call.out()));
    return detail::take(out);
  }
  /// Starts a run with a message of the host instead of a user's. `forced_prompt` as in prompt().
  void prompt_custom(const std::string &message_json,
                     branchline_when_running when_running = BRANCHLINE_WHEN_RUNNING_REFUSE,
                     const char *forced_prompt = nullptr) {
    detail::Call call;
    branchline_prompt_options options = BRANCHLINE_PROMPT_OPTIONS_INIT;
    options.when_running = when_running;
    options.forced_prompt = forced_prompt;
    call.check(branchline_session_prompt_custom(get(), message_json.c_str(), &options, call.out()));
  }
  std::string send_custom_message(const std::string &message_json,
                                  branchline_delivery delivery = BRANCHLINE_DELIVERY_STORE) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_send_custom_message(get(), message_json.c_str(), delivery, &out, call.out()));
    return detail::take(out);
  }
  std::string stats() const { return ask(branchline_session_stats); }
  std::string context_usage() const { return ask(branchline_session_context_usage); }
  std::string fork_messages() const { return ask(branchline_session_fork_messages); }
  /// The texts that waited, as JSON.
  std::string clear_queues() {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_clear_queues(get(), &out, call.out()));
    return detail::take(out);
  }
  void set_queue_modes(branchline_queue_mode steering, branchline_queue_mode follow_up) {
    detail::Call call;
    call.check(branchline_session_set_queue_modes(get(), steering, follow_up, call.out()));
  }
  void abort_retry() { act(branchline_session_abort_retry); }
  void abort_summary() { act(branchline_session_abort_summary); }

  /// Context files, skills, templates, and what was wrong with them.
  std::string resources() const { return ask(branchline_session_resources); }
  /// Reads them again; JSON as of resources().
  std::string reload_resources() {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_reload_resources(get(), &out, call.out()));
    return detail::take(out);
  }
  /// Chooses anew what is read and told; empty is nothing. JSON as of resources().
  std::string set_resources(const std::string &resources_json) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_set_resources(get(), or_null(resources_json), &out, call.out()));
    return detail::take(out);
  }

  /// Sets a label, or clears it with an empty one.
  void set_label(const std::string &entry_id, const std::string &label) {
    detail::Call call;
    const char *text = label.empty() ? nullptr : label.c_str();
    call.check(branchline_session_set_label(get(), entry_id.c_str(), text, nullptr, call.out()));
  }
  void set_name(const std::string &name) { act(branchline_session_set_name, name); }
  void set_model(const std::string &model) { act(branchline_session_set_model, model); }
  void set_thinking_level(const std::string &level) { act(branchline_session_set_thinking_level, level); }
  /// Chooses the active tools by name, in this order.
  void set_tools(const std::vector<std::string> &tools) {
    detail::Call call;
    std::vector<const char *> names;
    for (const std::string &name : tools) names.push_back(name.c_str());
    call.check(branchline_session_set_tools(get(), names.data(), names.size(), call.out()));
  }
  /// Stores data the model never sees; returns the entry's id.
  std::string append_custom(const std::string &type, const std::string &json) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_append_custom_n(get(), type.c_str(), json.data(), json.size(), &out, call.out()));
    return detail::take(out);
  }
  /// Stores a message the model sees; returns the entry's id, or nothing while a run is active.
  std::string append_custom_message(const std::string &type, const std::string &content_json, bool display = true) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_append_custom_message(get(), type.c_str(), content_json.c_str(), display, nullptr,
                                                        &out, call.out()));
    return detail::take(out);
  }

  branchline_session *get() const noexcept { return handle_.get(); }

private:
  std::string ask(branchline_status (*question)(const branchline_session *, char **, branchline_error **)) const {
    detail::Call call;
    char *out = nullptr;
    call.check(question(get(), &out, call.out()));
    return detail::take(out);
  }
  void act(branchline_status (*action)(branchline_session *, branchline_error **)) {
    detail::Call call;
    call.check(action(get(), call.out()));
  }
  void act(branchline_status (*action)(branchline_session *, const char *, branchline_error **),
           const std::string &text) {
    detail::Call call;
    call.check(action(get(), text.c_str(), call.out()));
  }
  std::string branch_to(const char *entry_id) const {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_session_tree_branch(get(), entry_id, &out, call.out()));
    return detail::take(out);
  }
  static const char *or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }
  Session derive(branchline_status (*how)(branchline_session *, const char *, branchline_session **,
                                          branchline_error **),
                 const std::string &options_json) {
    detail::Call call;
    branchline_session *out = nullptr;
    call.check(how(get(), or_null(options_json), &out, call.out()));
    return Session(out);
  }
  Session replace(branchline_status (*how)(branchline_session *, const char *, const char *, branchline_session **,
                                           branchline_error **),
                  const std::string &path, const std::string &options_json) {
    detail::Call call;
    branchline_session *out = nullptr;
    call.check(how(get(), path.c_str(), or_null(options_json), &out, call.out()));
    return Session(out);
  }
  void listen(Listener listener, branchline_subscription **out) {
    detail::Call call;
    branchline_callbacks callbacks = BRANCHLINE_CALLBACKS_INIT;
    callbacks.user_data = new Listener(std::move(listener));
    callbacks.on_event = on_event_c;
    callbacks.destroy = destroy_c; // also when subscribing fails
    call.check(branchline_session_subscribe(get(), &callbacks, out, call.out()));
  }
  static void on_event_c(void *listener, const branchline_event *event) noexcept {
    (*static_cast<Listener *>(listener))(Event(event));
  }
  static void destroy_c(void *listener) noexcept { delete static_cast<Listener *>(listener); }

  detail::Handle<branchline_session, branchline_session_free> handle_;
};

/// A tool call that runs by itself; it ends with this object.
class ToolCall {
public:
  explicit ToolCall(branchline_call *handle) noexcept : handle_(handle) {}
  /// The result as JSON.
  std::string wait() {
    std::string result;
    wait(BRANCHLINE_WAIT_FOREVER, &result);
    return result;
  }
  /// False when the time ran out; `result` (may be NULL) gets the result.
  bool wait(std::uint32_t timeout_ms, std::string *result) {
    detail::Call call;
    char *out = nullptr;
    branchline_status status = branchline_call_wait(handle_.get(), timeout_ms, &out, call.out());
    if (status == BRANCHLINE_STATUS_TIMEOUT) return false;
    call.check(status);
    std::string taken = detail::take(out);
    if (result) *result = std::move(taken);
    return true;
  }
  void cancel() {
    detail::Call call;
    call.check(branchline_call_cancel(handle_.get(), call.out()));
  }

private:
  detail::Handle<branchline_call, branchline_call_free> handle_;
};

/// The tools in a directory as functions: JSON in, JSON out. A tool that fails is a result with "isError":true.
class Toolbox {
public:
  using Progress = std::function<void(const std::string &)>;
  explicit Toolbox(branchline_toolbox *handle) noexcept : handle_(handle) {}
  /// A JSON list.
  std::string definitions() const {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_toolbox_definitions(get(), &out, call.out()));
    return detail::take(out);
  }
  /// Calls a tool and waits for its result. `progress` must not throw: what it throws ends the program.
  std::string call(const std::string &name, const std::string &arguments_json = "{}", Progress progress = Progress()) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_toolbox_call_n(get(), name.c_str(), arguments_json.data(), arguments_json.size(),
                                         progress ? on_progress : nullptr, &progress, &out, call.out()));
    return detail::take(out);
  }
  /// Starts a call that runs by itself.
  ToolCall start(const std::string &name, const std::string &arguments_json = "{}") {
    detail::Call call;
    branchline_call *out = nullptr;
    call.check(branchline_toolbox_start_n(get(), name.c_str(), arguments_json.data(), arguments_json.size(), nullptr,
                                          &out, call.out()));
    return ToolCall(out);
  }
  void add(const Tool &tool) {
    detail::Call call;
    call.check(branchline_toolbox_add_tool(get(), tool.get(), call.out()));
  }
  /// What calls may do from now on.
  void set_permissions(const Permissions &permissions) {
    detail::Call call;
    call.check(branchline_toolbox_set_permissions(get(), permissions.get(), call.out()));
  }
  branchline_toolbox *get() const noexcept { return handle_.get(); }

private:
  static void on_progress(void *progress, const char *json) noexcept { (*static_cast<Progress *>(progress))(json); }
  detail::Handle<branchline_toolbox, branchline_toolbox_free> handle_;
};

/// Several prompts that are being tried at once. What still runs is aborted at its end.
class Exploration {
public:
  explicit Exploration(branchline_exploration *handle = nullptr) noexcept : handle_(handle) {}
  std::size_t count() const {
    detail::Call call;
    std::size_t out = 0;
    call.check(branchline_exploration_count(get(), &out, call.out()));
    return out;
  }
  /// The events of all siblings.
  Events events() {
    detail::Call call;
    branchline_events *out = nullptr;
    call.check(branchline_exploration_events(get(), &out, call.out()));
    return Events(out);
  }
  Session session(std::size_t index) const {
    detail::Call call;
    branchline_session *out = nullptr;
    call.check(branchline_exploration_session(get(), index, &out, call.out()));
    return Session(out);
  }
  /// Waits until all are done; JSON, in the order of the prompts.
  std::string results() const {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_exploration_results(get(), BRANCHLINE_WAIT_FOREVER, &out, call.out()));
    return detail::take(out);
  }
  void abort() {
    detail::Call call;
    call.check(branchline_exploration_abort(get(), call.out()));
  }
  void abort_one(std::size_t index) {
    detail::Call call;
    call.check(branchline_exploration_abort_one(get(), index, call.out()));
  }
  branchline_exploration *get() const noexcept { return handle_.get(); }

private:
  detail::Handle<branchline_exploration, branchline_exploration_free> handle_;
};

inline Exploration Session::explore(const std::string &prompts_json, const std::string &options_json) {
  detail::Call call;
  branchline_exploration *out = nullptr;
  call.check(branchline_session_explore(get(), prompts_json.c_str(), or_null(options_json), &out, call.out()));
  return Exploration(out);
}

/// Worker threads and models: what a host creates first.
class Engine {
public:
  /// `config_json` has models, keys, network and recording; see branchline_engine_options.
  explicit Engine(const std::string &agent_dir = std::string(), const std::string &default_model = std::string(),
                  std::size_t worker_threads = 0, const std::string &config_json = std::string()) {
    detail::Call call;
    branchline_engine_options options = BRANCHLINE_ENGINE_OPTIONS_INIT;
    options.agent_dir = agent_dir.empty() ? nullptr : agent_dir.c_str();
    options.default_model = default_model.empty() ? nullptr : default_model.c_str();
    options.worker_threads = worker_threads;
    options.config_json = config_json.empty() ? nullptr : config_json.c_str();
    branchline_engine *out = nullptr;
    call.check(branchline_engine_new(&options, &out, call.out()));
    handle_.reset(out);
  }
  void add_scripted_model(const std::string &name, const std::string &json) {
    detail::Call call;
    call.check(branchline_engine_add_scripted_model_n(get(), name.c_str(), json.data(), json.size(), call.out()));
  }
  /// Every model known, as a JSON list.
  std::string models() const { return ask(branchline_engine_models); }
  /// Those that have a key or need none.
  std::string available_models() const { return ask(branchline_engine_available_models); }
  /// What a person's text means: JSON with "model" and "thinkingLevel".
  std::string find_model(const std::string &text) const { return ask(branchline_engine_find_model, text); }
  /// The same, and an unknown id of a known provider is a model as well: JSON also with "warning".
  std::string find_model_or_custom(const std::string &text) {
    detail::Call call;
    char *out = nullptr;
    call.check(branchline_engine_find_model_or_custom(get(), text.c_str(), &out, call.out()));
    return detail::take(out);
  }
  /// What patterns such as "google/" with a star mean: JSON with "models" and "warnings".
  std::string models_in_scope(const std::vector<std::string> &patterns) const {
    detail::Call call;
    std::vector<const char *> texts;
    for (const std::string &pattern : patterns) texts.push_back(pattern.c_str());
    char *out = nullptr;
    call.check(branchline_engine_models_in_scope(get(), texts.data(), texts.size(), &out, call.out()));
    return detail::take(out);
  }
  /// What is wrong with files that were read.
  std::string model_problems() const { return ask(branchline_engine_model_problems); }
  /// Adds providers and models in the shape of models.json.
  void configure_models(const std::string &models_json) {
    detail::Call call;
    call.check(branchline_engine_configure_models(get(), models_json.c_str(), call.out()));
  }
  void set_key(const std::string &provider, const std::string &key, bool bearer = false) {
    detail::Call call;
    call.check(branchline_engine_set_key(get(), provider.c_str(), key.c_str(), bearer, call.out()));
  }
  void forget_key(const std::string &provider) {
    detail::Call call;
    call.check(branchline_engine_set_key(get(), provider.c_str(), nullptr, false, call.out()));
  }
  /// Asks a function for keys, see branchline_engine_set_key_source. It must not throw.
  void set_key_source(Answer answer) {
    detail::Call call;
    branchline_tool_callbacks callbacks = detail::table(std::move(answer));
    call.check(branchline_engine_set_key_source(get(), &callbacks, call.out()));
  }
  /// Asks whoever takes requests from a queue.
  void set_key_source(const Requests &requests) {
    detail::Call call;
    call.check(branchline_requests_key_source(requests.get(), get(), call.out()));
  }
  void clear_key_source() {
    detail::Call call;
    call.check(branchline_engine_set_key_source(get(), nullptr, call.out()));
  }
  /// Has a function look at the body of each request to a service, see branchline_engine_set_payload_hook. It must not throw.
  void set_payload_hook(Answer answer) {
    detail::Call call;
    branchline_tool_callbacks callbacks = detail::table(std::move(answer));
    call.check(branchline_engine_set_payload_hook(get(), &callbacks, call.out()));
  }
  /// The same for whoever takes requests from a queue.
  void set_payload_hook(const Requests &requests) {
    detail::Call call;
    call.check(branchline_requests_payload_hook(requests.get(), get(), call.out()));
  }
  void clear_payload_hook() {
    detail::Call call;
    call.check(branchline_engine_set_payload_hook(get(), nullptr, call.out()));
  }
  /// Stores a key in the engine's file with keys; options are JSON, see branchline_engine_store_key.
  void store_key(const std::string &provider, const std::string &key, const std::string &options_json = std::string()) {
    detail::Call call;
    const char *options = options_json.empty() ? nullptr : options_json.c_str();
    const char *given = key.empty() ? nullptr : key.c_str();
    call.check(branchline_engine_store_key(get(), provider.c_str(), given, options, call.out()));
  }
  void store_login(const std::string &provider, const std::string &login_json) {
    detail::Call call;
    call.check(branchline_engine_store_login(get(), provider.c_str(), login_json.c_str(), call.out()));
  }
  /// Whether something was stored for the provider.
  bool forget_stored(const std::string &provider) {
    detail::Call call;
    bool removed = false;
    call.check(branchline_engine_forget_stored(get(), provider.c_str(), &removed, call.out()));
    return removed;
  }
  /// What is stored, as a JSON list, without the secrets.
  std::string stored_keys() const { return ask(branchline_engine_stored_keys); }
  /// Has a function make stored logins anew, see branchline_engine_set_login_source. It must not throw.
  void set_login_source(Answer answer) {
    detail::Call call;
    branchline_tool_callbacks callbacks = detail::table(std::move(answer));
    call.check(branchline_engine_set_login_source(get(), &callbacks, call.out()));
  }
  /// The same for whoever takes requests from a queue.
  void set_login_source(const Requests &requests) {
    detail::Call call;
    call.check(branchline_requests_login_source(requests.get(), get(), call.out()));
  }
  void clear_login_source() {
    detail::Call call;
    call.check(branchline_engine_set_login_source(get(), nullptr, call.out()));
  }
  /// Models that a function answers, see branchline_engine_add_host_provider: it writes with Request::push and ends with
  /// Request::complete, at once or later. It must not throw.
  void add_host_provider(const std::string &definition_json, Answer answer) {
    detail::Call call;
    branchline_tool_callbacks callbacks = detail::table(std::move(answer));
    call.check(branchline_engine_add_host_provider(get(), definition_json.c_str(), &callbacks, call.out()));
  }
  /// Models that are answered by whoever takes requests from a queue.
  void add_host_provider(const std::string &definition_json, const Requests &requests) {
    detail::Call call;
    call.check(branchline_requests_host_provider(requests.get(), get(), definition_json.c_str(), call.out()));
  }
  /// A recorded session as a provider; options are JSON, see branchline_engine_add_replay.
  void add_replay(const std::string &name, const std::string &path, const std::string &options_json = std::string()) {
    detail::Call call;
    const char *options = options_json.empty() ? nullptr : options_json.c_str();
    call.check(branchline_engine_add_replay(get(), name.c_str(), path.c_str(), options, call.out()));
  }
  /// JSON: "null" as long as nothing has left the recording.
  std::string replay_divergence(const std::string &name) const { return ask(branchline_engine_replay_divergence, name); }
  /// A tool of the host's. `answer` must not throw: what it throws ends the program.
  Tool tool(const std::string &definition_json, Answer answer) {
    detail::Call call;
    branchline_tool_callbacks callbacks = detail::table(std::move(answer));
    branchline_tool *out = nullptr;
    call.check(
        branchline_tool_new_n(get(), definition_json.data(), definition_json.size(), &callbacks, &out, call.out()));
    return Tool(out);
  }
  /// For the sessions and toolboxes made from now on.
  void add_tool(const Tool &tool) {
    detail::Call call;
    call.check(branchline_engine_add_tool(get(), tool.get(), call.out()));
  }
  /// A hook around tool calls; `points` as for branchline_tool_hook_new. `answer` must not throw.
  ToolHook tool_hook(branchline_hook_point points, Answer answer) {
    detail::Call call;
    branchline_tool_callbacks callbacks = detail::table(std::move(answer));
    branchline_tool_hook *out = nullptr;
    call.check(branchline_tool_hook_new(get(), points, &callbacks, &out, call.out()));
    return ToolHook(out);
  }
  /// A policy that nobody is asked for: what asks is denied. See branchline_permissions_new for the JSON.
  Permissions permissions(const std::string &policy_json) {
    detail::Call call;
    branchline_permissions *out = nullptr;
    call.check(branchline_permissions_new(get(), policy_json.c_str(), nullptr, &out, call.out()));
    return Permissions(out);
  }
  /// A policy whose questions go to a function, which must not throw: what it throws ends the program.
  Permissions permissions(const std::string &policy_json, Answer answer) {
    detail::Call call;
    branchline_tool_callbacks callbacks = detail::table(std::move(answer));
    branchline_permissions *out = nullptr;
    call.check(branchline_permissions_new(get(), policy_json.c_str(), &callbacks, &out, call.out()));
    return Permissions(out);
  }
  /// The tools in a directory as functions.
  Toolbox toolbox(const std::string &cwd = std::string()) {
    detail::Call call;
    branchline_toolbox_options options = BRANCHLINE_TOOLBOX_OPTIONS_INIT;
    options.cwd = cwd.empty() ? nullptr : cwd.c_str();
    branchline_toolbox *out = nullptr;
    call.check(branchline_toolbox_new(get(), &options, &out, call.out()));
    return Toolbox(out);
  }
  Session create_session(const SessionOptions &options = SessionOptions()) {
    return make(options, branchline_session_create);
  }
  Session continue_recent(const SessionOptions &options = SessionOptions()) {
    return make(options, branchline_session_continue_recent);
  }
  Session open_session(const std::string &path, const SessionOptions &options = SessionOptions()) {
    return make(path, options, branchline_session_open);
  }
  /// Copies a file into the session directory of the options, and opens the copy.
  Session import_session(const std::string &path, const SessionOptions &options = SessionOptions()) {
    return make(path, options, branchline_session_import);
  }
  /// JSON; an empty `cwd` lists the sessions of all directories.
  std::string list_sessions(const std::string &cwd = std::string()) {
    detail::Call call;
    branchline_list_options options = BRANCHLINE_LIST_OPTIONS_INIT;
    options.cwd = cwd.empty() ? nullptr : cwd.c_str();
    char *out = nullptr;
    call.check(branchline_engine_list_sessions(get(), &options, &out, call.out()));
    return detail::take(out);
  }
  /// Ends its sessions and waits for them, their listeners and all threads, with a limit of your own; the end of the object
  /// waits 5 seconds. False when the time ran out.
  bool shutdown(std::uint32_t timeout_ms = BRANCHLINE_WAIT_FOREVER) {
    detail::Call call;
    branchline_status status = branchline_engine_shutdown(get(), timeout_ms, call.out());
    if (status == BRANCHLINE_STATUS_TIMEOUT) return false;
    call.check(status);
    return true;
  }
  branchline_engine *get() const noexcept { return handle_.get(); }

private:
  std::string ask(branchline_status (*question)(const branchline_engine *, char **, branchline_error **)) const {
    detail::Call call;
    char *out = nullptr;
    call.check(question(get(), &out, call.out()));
    return detail::take(out);
  }
  std::string ask(branchline_status (*question)(const branchline_engine *, const char *, char **, branchline_error **),
                  const std::string &about) const {
    detail::Call call;
    char *out = nullptr;
    call.check(question(get(), about.c_str(), &out, call.out()));
    return detail::take(out);
  }
  Session make(const SessionOptions &options,
               branchline_status (*how)(branchline_engine *, const branchline_session_options *, branchline_session **,
                                        branchline_error **)) {
    detail::Call call;
    branchline_session *out = nullptr;
    options.with([&](const branchline_session_options *c) { call.check(how(get(), c, &out, call.out())); });
    return Session(out);
  }
  Session make(const std::string &path, const SessionOptions &options,
               branchline_status (*how)(branchline_engine *, const char *, const branchline_session_options *,
                                        branchline_session **, branchline_error **)) {
    detail::Call call;
    branchline_session *out = nullptr;
    options.with(
        [&](const branchline_session_options *c) { call.check(how(get(), path.c_str(), c, &out, call.out())); });
    return Session(out);
  }

  detail::Handle<branchline_engine, branchline_engine_free> handle_;
};

/// Text as it may be shown on a terminal, see branchline_sanitize_for_display.
inline std::string sanitize_for_display(const std::string &text) {
  detail::Call call;
  char *out = nullptr;
  call.check(branchline_sanitize_for_display(text.data(), text.size(), &out, call.out()));
  return detail::take(out);
}

} // namespace branchline

#endif // BRANCHLINE_HPP
