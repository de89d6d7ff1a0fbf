// branchline_session.hpp - part of branchline.hpp: sessions, and several of them that try prompts at once.

#ifndef BRANCHLINE_SESSION_HPP
#define BRANCHLINE_SESSION_HPP

#include "branchline_events.hpp"
#include "branchline_options.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace branchline {

class Exploration;

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

} // namespace branchline

#endif // BRANCHLINE_SESSION_HPP
