// branchline_toolbox.hpp - part of branchline.hpp: tools without a session.

#ifndef BRANCHLINE_TOOLBOX_HPP
#define BRANCHLINE_TOOLBOX_HPP

#include "branchline_host.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace branchline {

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

} // namespace branchline

#endif // BRANCHLINE_TOOLBOX_HPP
