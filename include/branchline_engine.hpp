// branchline_engine.hpp - part of branchline.hpp: worker threads, models and keys.

#ifndef BRANCHLINE_ENGINE_HPP
#define BRANCHLINE_ENGINE_HPP

#include "branchline_session.hpp"
#include "branchline_toolbox.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace branchline {

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

} // namespace branchline

#endif // BRANCHLINE_ENGINE_HPP
