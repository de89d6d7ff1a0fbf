// branchline_detail.hpp - part of branchline.hpp: errors, and the owners of handles and strings.

#ifndef BRANCHLINE_DETAIL_HPP
#define BRANCHLINE_DETAIL_HPP

#include "branchline.h"

#include <memory>
#include <stdexcept>
#include <string>

namespace branchline {

/// A failed call: a stable code, and a sentence that says what to do.
class Error : public std::runtime_error {
public:
  Error(branchline_status code, const std::string &message, const std::string &path)
      : std::runtime_error(message), code_(code), path_(path) {}
  branchline_status code() const noexcept { return code_; }
  /// The code's stable name, for example "session_locked".
  const char *name() const noexcept { return branchline_status_name(code_); }
  /// The file it is about, or empty.
  const std::string &path() const noexcept { return path_; }

private:
  branchline_status code_;
  std::string path_;
};

namespace detail {

/// Receives the error of one call and throws it.
class Call {
public:
  Call() = default;
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
  ~Call() { branchline_error_free(error_); }
  branchline_error **out() noexcept { return &error_; }
  void check(branchline_status status) const {
    if (status == BRANCHLINE_STATUS_OK) return;
    std::string message = branchline_error_message(error_);
    const char *path = branchline_error_path(error_);
    throw Error(status, message.empty() ? branchline_status_name(status) : message, path ? path : "");
  }

private:
  branchline_error *error_ = nullptr;
};

/// A handle with an owner.
template <typename T, branchline_status (*Free)(T *)> class Handle {
public:
  explicit Handle(T *handle = nullptr) noexcept : handle_(handle) {}
  Handle(Handle &&other) noexcept : handle_(other.release()) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { reset(nullptr); }
  T *get() const noexcept { return handle_; }
  T *release() noexcept {
    T *handle = handle_;
    handle_ = nullptr;
    return handle;
  }
  void reset(T *handle) noexcept {
    Free(handle_);
    handle_ = handle;
  }

private:
  T *handle_;
};

/// Takes a string of the library over; `*found` tells NULL from empty.
inline std::string take(char *text, bool *found = nullptr) {
  std::unique_ptr<char, branchline_status (*)(char *)> owner(text, branchline_string_free);
  if (found) *found = text != nullptr;
  return text ? std::string(text) : std::string();
}

inline std::string text_or_empty(const char *text) { return text ? text : ""; }

} // namespace detail

} // namespace branchline

#endif // BRANCHLINE_DETAIL_HPP
