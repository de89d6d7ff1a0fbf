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
#include "branchline_engine.hpp"
#include "branchline_events.hpp"
#include "branchline_host.hpp"
#include "branchline_options.hpp"
#include "branchline_session.hpp"
#include "branchline_toolbox.hpp"

#include <string>

namespace branchline {

/// Text as it may be shown on a terminal, see branchline_sanitize_for_display.
inline std::string sanitize_for_display(const std::string &text) {
  detail::Call call;
  char *out = nullptr;
  call.check(branchline_sanitize_for_display(text.data(), text.size(), &out, call.out()));
  return detail::take(out);
}

} // namespace branchline

#endif // BRANCHLINE_HPP
