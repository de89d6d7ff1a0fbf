/* Pull: order, time limits, descriptors, batches, clones, back pressure, the end. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <poll.h>
#include <pthread.h>

/* A thread that reads a queue to its end. */
static void *drain(void *argument)
{
  branchline_error *error = NULL;
  const branchline_event *event = NULL;
  branchline_status status;
  while ((status = branchline_events_next(argument, BRANCHLINE_WAIT_FOREVER, &event, &error)) == BRANCHLINE_STATUS_OK) {
  }
  return error == NULL && status == BRANCHLINE_STATUS_END ? argument : NULL;
}

static void ends(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session *session = new_session(engine, NULL);
  branchline_events *by_free = NULL, *by_close = NULL;
  const branchline_event *event = NULL;
  pthread_t one, two;
  void *result = NULL;
  CHECK_OK(branchline_session_events(session, NULL, &by_free, &error));
  CHECK_OK(branchline_session_events(session, NULL, &by_close, &error));
  CHECK(pthread_create(&one, NULL, drain, by_free) == 0);
  CHECK(pthread_create(&two, NULL, drain, by_close) == 0);
  CHECK_OK(branchline_session_set_name(session, "x", &error));
  /* Freed under a waiting thread, which may find the handle gone or its queue at the end. */
  branchline_events_free(by_free);
  pthread_join(one, &result);
  branchline_session_free(session);
  pthread_join(two, &result);
  CHECK(result == by_close);
  CHECK_STATUS(BRANCHLINE_STATUS_END, branchline_events_next(by_close, 0, &event, &error));
  branchline_events_free(by_close);
}

void test_events(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_session *session = new_session(engine, NULL);
  branchline_events *events = NULL, *small = NULL;
  branchline_events_options options = BRANCHLINE_EVENTS_OPTIONS_INIT;
  const branchline_event *event = NULL;
  const branchline_event *batch[64];
  branchline_event *kept = NULL;
  char text[128] = "", *id = NULL;
  size_t count = 0, used = 0;
  uint64_t last = 0;
  int settled = 0, ordered = 1, fd = -1, rounds;
  struct pollfd poller;

  CHECK_OK(branchline_session_events(session, NULL, &events, &error));
  CHECK_OK(branchline_events_fd(events, &fd, &error));
  CHECK(fd >= 0);
  poller.fd = fd;
  poller.events = POLLIN;
  CHECK(poll(&poller, 1, 0) == 0);
  CHECK_STATUS(BRANCHLINE_STATUS_TIMEOUT, branchline_events_next(events, 0, &event, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_TIMEOUT, branchline_events_next(events, 5, &event, &error));
  CHECK(event == NULL);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_events_next(events, 0, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_events_next_batch(events, 0, batch, 0, &count, &error));

  /* The loop of a host with a main loop: poll, then read until there is no more. */
  CHECK_OK(branchline_session_id(session, &id, &error));
  CHECK_OK(branchline_session_prompt(session, "hello", NULL, &error));
  for (rounds = 0; !settled && rounds < 10000; rounds++) {
    if (poll(&poller, 1, LONG) != 1) {
      CHECK(!"readable in time");
      break;
    }
    while (branchline_events_next(events, 0, &event, &error) == BRANCHLINE_STATUS_OK) {
      ordered = ordered && branchline_event_sequence(event) > last;
      ordered = ordered && strcmp(branchline_event_session_id(event), id) == 0;
      last = branchline_event_sequence(event);
      if (branchline_event_type(event) == BRANCHLINE_EVENT_TEXT_DELTA) {
        size_t length = branchline_event_text_length(event);
        ordered = ordered && strlen(branchline_event_text(event)) == length;
        ordered = ordered && strstr(branchline_event_json(event), "\"type\":\"message_update\"") != NULL;
        memcpy(text + used, branchline_event_text(event), length);
        used += length;
      } else {
        ordered = ordered && branchline_event_text(event) == NULL && branchline_event_text_length(event) == 0;
      }
      if (branchline_event_type(event) == BRANCHLINE_EVENT_MESSAGE_END) {
        ordered = ordered && branchline_event_entry_id(event) != NULL;
        if (kept == NULL) {
          CHECK_OK(branchline_event_clone(event, &kept, &error));
        }
      }
      settled = settled || branchline_event_type(event) == BRANCHLINE_EVENT_AGENT_SETTLED;
    }
    ordered = ordered && error == NULL;
  }
  CHECK(settled && ordered);
  CHECK(strcmp(text, "Hello from the script.") == 0);
  CHECK(poll(&poller, 1, 0) == 0);

  /* A clone is the host's own. */
  CHECK(branchline_event_type(kept) == BRANCHLINE_EVENT_MESSAGE_END);
  CHECK(strstr(branchline_event_json(kept), "\"type\":\"message_end\"") != NULL);
  CHECK(branchline_event_tool_name(kept) == NULL && !branchline_event_is_error(kept));
  CHECK(branchline_event_free(kept) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_event_free(kept) == BRANCHLINE_STATUS_INVALID_HANDLE);

  /* Batches; and a queue of two, which slows the run down to its reader and loses nothing. */
  options.capacity = 2;
  CHECK_OK(branchline_session_events(session, &options, &small, &error));
  CHECK_OK(branchline_session_prompt(session, "again", NULL, &error));
  for (settled = 0, used = 0, rounds = 0; !settled && rounds < 10000; rounds++) {
    size_t n;
    if (branchline_events_next_batch(small, LONG, batch, 64, &count, &error) != BRANCHLINE_STATUS_OK) {
      CHECK(!"a batch in time");
      break;
    }
    for (n = 0; n < count; n++) {
      if (branchline_event_type(batch[n]) == BRANCHLINE_EVENT_TEXT_DELTA) {
        memcpy(text + used, branchline_event_text(batch[n]), branchline_event_text_length(batch[n]));
        used += branchline_event_text_length(batch[n]);
      }
      settled = settled || branchline_event_type(batch[n]) == BRANCHLINE_EVENT_AGENT_SETTLED;
    }
  }
  text[used] = '\0';
  CHECK(count >= 1 && count <= 64);
  CHECK(settled && strcmp(text, "Hello from the script.") == 0);
  CHECK(branchline_events_free(small) == BRANCHLINE_STATUS_OK);
  CHECK_OK(branchline_events_next_batch(events, LONG, batch, 3, &count, &error));
  CHECK(count == 3);

  branchline_string_free(id);
  branchline_events_free(events);
  branchline_session_free(session);
  ends(engine);
  branchline_engine_free(engine);
}
