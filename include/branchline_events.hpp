// branchline_events.hpp - part of branchline.hpp: events, and the two ways to get them.

#ifndef BRANCHLINE_EVENTS_HPP
#define BRANCHLINE_EVENTS_HPP

#include "branchline_detail.hpp"

#include <cstdint>
#include <functional>
#include <string>
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
  /// Calls `use` with the next event. False when none came in time or none will come: see `ended`.
  bool next(std::uint32_t timeout_ms, const Listener &use) {
    detail::Call call;
    const branchline_event *event = nullptr;
    branchline_status status = branchline_events_next(handle_.get(), timeout_ms, &event, call.out());
    if (nothing(status)) return false;
    call.check(status);
    use(Event(event));
    return true;
  }
  /// Calls `use` with the next events, at most `most`. False when none came in time or none will come: see `ended`.
  /// What `use` throws comes out of here, and the rest of the batch is gone.
  bool next_batch(std::size_t most, std::uint32_t timeout_ms, const Listener &use) {
    detail::Call call;
    std::vector<const branchline_event *> events(most);
    std::size_t count = 0;
    branchline_status status =
        branchline_events_next_batch(handle_.get(), timeout_ms, events.data(), most, &count, call.out());
    if (nothing(status)) return false;
    call.check(status);
    for (std::size_t n = 0; n < count; n++) use(Event(events[n]));
    return true;
  }
  /// Whether `next` or `next_batch` found that everything was read and nothing follows.
  bool ended() const noexcept { return ended_; }
  /// Readable while events are queued and after the end.
  int fd() const {
    detail::Call call;
    int fd = -1;
    call.check(branchline_events_fd(handle_.get(), &fd, call.out()));
    return fd;
  }

private:
  bool nothing(branchline_status status) noexcept {
    ended_ = ended_ || status == BRANCHLINE_STATUS_END;
    return status == BRANCHLINE_STATUS_END || status == BRANCHLINE_STATUS_TIMEOUT;
  }
  detail::Handle<branchline_events, branchline_events_free> handle_;
  bool ended_ = false;
};

} // namespace branchline

#endif // BRANCHLINE_EVENTS_HPP
