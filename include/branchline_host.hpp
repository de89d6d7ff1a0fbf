// branchline_host.hpp - part of branchline.hpp: what the host provides, and what it allows. Requests, tools, permissions,
// budgets, hooks.

#ifndef BRANCHLINE_HOST_HPP
#define BRANCHLINE_HOST_HPP

#include "branchline_detail.hpp"

#include <cstdint>
#include <functional>
#include <utility>

namespace branchline {

/// A question to the host: run this tool, answer as this model. It is answered once, when and from where the host likes;
/// one that goes without an answer is a failure of what it is about.
class Request {
public:
  explicit Request(branchline_request *handle) noexcept : handle_(handle) {}
  branchline_request_kind type() const noexcept { return branchline_request_type(get()); }
  /// Of the tool, of the model, or of the provider whose key is wanted.
  std::string name() const { return detail::text_or_empty(branchline_request_name(get())); }
  /// JSON: of a tool an object that fits its schema.
  std::string arguments() const { return detail::text_or_empty(branchline_request_arguments(get())); }
  std::string call_id() const { return detail::text_or_empty(branchline_request_call_id(get())); }
  std::string session_id() const { return detail::text_or_empty(branchline_request_session_id(get())); }
  std::uint32_t sibling() const noexcept { return branchline_request_sibling(get()); }
  std::string cwd() const { return detail::text_or_empty(branchline_request_cwd(get())); }
  /// Whether the answer is not wanted any more.
  bool is_cancelled() const noexcept { return branchline_request_is_cancelled(get()); }
  /// Answers with JSON, see branchline_request_complete. False when nobody waits any more.
  bool complete(const std::string &result_json) {
    detail::Call call;
    return wanted(branchline_request_complete_n(get(), result_json.data(), result_json.size(), call.out()), call);
  }
  /// Answers that it failed; the model reads the message. False when nobody waits any more.
  bool fail(const std::string &message) {
    detail::Call call;
    return wanted(branchline_request_fail_n(get(), message.data(), message.size(), call.out()), call);
  }
  void progress(const std::string &partial_json) {
    detail::Call call;
    call.check(branchline_request_progress_n(get(), partial_json.data(), partial_json.size(), call.out()));
  }
  /// Writes a piece of a model's answer, see branchline_request_push. False when nobody waits any more.
  bool push(const std::string &event_json) {
    detail::Call call;
    return wanted(branchline_request_push_n(get(), event_json.data(), event_json.size(), call.out()), call);
  }
  branchline_request *get() const noexcept { return handle_.get(); }

private:
  static bool wanted(branchline_status status, const detail::Call &call) {
    if (status == BRANCHLINE_STATUS_CANCELLED) return false;
    call.check(status);
    return true;
  }
  detail::Handle<branchline_request, branchline_request_free> handle_;
};

/// What the host does for each question: a call of its tool, a request to its model; see branchline_tool_callbacks.
using Answer = std::function<void(Request)>;

namespace detail {

/// A table whose function is `answer`, which it owns: the library destroys it, also when the call that gets it fails.
inline branchline_tool_callbacks table(Answer answer) {
  branchline_tool_callbacks callbacks = BRANCHLINE_TOOL_CALLBACKS_INIT;
  callbacks.user_data = new Answer(std::move(answer));
  callbacks.on_call = [](void *own, branchline_request *request) noexcept {
    (*static_cast<Answer *>(own))(Request(request));
  };
  callbacks.destroy = [](void *own) noexcept { delete static_cast<Answer *>(own); };
  return callbacks;
}

} // namespace detail

/// A tool of the host's; see Engine::tool.
class Tool {
public:
  explicit Tool(branchline_tool *handle) noexcept : handle_(handle) {}
  branchline_tool *get() const noexcept { return handle_.get(); }

private:
  detail::Handle<branchline_tool, branchline_tool_free> handle_;
};

/// A queue of requests, for programs that take them on a thread of their own; see Engine::tool for the other way.
class Requests {
public:
  Requests() {
    detail::Call call;
    branchline_requests *out = nullptr;
    call.check(branchline_requests_new(&out, call.out()));
    handle_.reset(out);
  }
  /// A tool whose calls come here.
  Tool tool(const std::string &definition_json) {
    detail::Call call;
    branchline_tool *out = nullptr;
    call.check(
        branchline_requests_tool_n(get(), definition_json.data(), definition_json.size(), &out, call.out()));
    return Tool(out);
  }
  /// Calls `use` with the next request. False when none came in time.
  bool next(std::uint32_t timeout_ms, const std::function<void(Request)> &use) {
    detail::Call call;
    branchline_request *out = nullptr;
    branchline_status status = branchline_requests_next(get(), timeout_ms, &out, call.out());
    if (status == BRANCHLINE_STATUS_TIMEOUT || status == BRANCHLINE_STATUS_END) return false;
    call.check(status);
    use(Request(out));
    return true;
  }
  /// Readable while something is in the queue: for a main loop, which then calls next(0, …) until that is false.
  int fd() const {
    detail::Call call;
    int fd = -1;
    call.check(branchline_requests_fd(get(), &fd, call.out()));
    return fd;
  }
  branchline_requests *get() const noexcept { return handle_.get(); }

private:
  detail::Handle<branchline_requests, branchline_requests_free> handle_;
};

/// What tool calls may do, and who is asked; see Engine::permissions.
class Permissions {
public:
  explicit Permissions(branchline_permissions *handle) noexcept : handle_(handle) {}
  /// A policy whose questions come to a queue; see branchline_permissions_new for the JSON.
  Permissions(Requests &requests, const std::string &policy_json) {
    detail::Call call;
    branchline_permissions *out = nullptr;
    call.check(branchline_requests_permissions(requests.get(), policy_json.c_str(), &out, call.out()));
    handle_.reset(out);
  }
  branchline_permissions *get() const noexcept { return handle_.get(); }

private:
  detail::Handle<branchline_permissions, branchline_permissions_free> handle_;
};

/// Hard limits for what sessions may spend; several may share one.
class Budget {
public:
  /// `limits_json` as for branchline_budget_new.
  explicit Budget(const std::string &limits_json) {
    detail::Call call;
    branchline_budget *out = nullptr;
    call.check(branchline_budget_new(limits_json.c_str(), &out, call.out()));
    handle_.reset(out);
  }
  void set_limits(const std::string &limits_json) {
    detail::Call call;
    call.check(branchline_budget_set_limits(get(), limits_json.c_str(), call.out()));
  }
  std::string limits() const { return ask(branchline_budget_limits); }
  std::string used() const { return ask(branchline_budget_used); }
  branchline_budget *get() const noexcept { return handle_.get(); }

private:
  std::string ask(branchline_status (*question)(const branchline_budget *, char **, branchline_error **)) const {
    detail::Call call;
    char *out = nullptr;
    call.check(question(get(), &out, call.out()));
    return detail::take(out);
  }
  detail::Handle<branchline_budget, branchline_budget_free> handle_;
};

/// A hook around tool calls; see Engine::tool_hook.
class ToolHook {
public:
  explicit ToolHook(branchline_tool_hook *handle) noexcept : handle_(handle) {}
  branchline_tool_hook *get() const noexcept { return handle_.get(); }

private:
  detail::Handle<branchline_tool_hook, branchline_tool_hook_free> handle_;
};

} // namespace branchline

#endif // BRANCHLINE_HOST_HPP
