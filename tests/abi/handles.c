/* Tokens: freed, foreign and mistaken handles are errors; parents may go before children; engines are independent. */
#include "check.h"

void test_handles(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_engine *other = new_engine();
  branchline_session *session = new_session(engine, NULL);
  branchline_session *theirs = new_session(other, NULL);
  branchline_session *made = NULL;
  branchline_events *events = NULL;
  const branchline_event *event = NULL;
  branchline_session *stale;
  char *text = NULL;
  int on_stack = 0;
  int i;

  /* Of another type. */
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE,
              branchline_session_id((const branchline_session *)(void *)engine, &text, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE,
              branchline_session_create((branchline_engine *)(void *)session, NULL, &made, &error));
  CHECK(branchline_engine_free((branchline_engine *)(void *)session) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK(branchline_events_free((branchline_events *)(void *)session) == BRANCHLINE_STATUS_INVALID_HANDLE);
  /* Never ours. */
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE,
              branchline_session_id((const branchline_session *)(void *)&on_stack, &text, &error));
  CHECK(branchline_session_free((branchline_session *)(void *)&on_stack) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK(branchline_session_free((branchline_session *)1) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK(branchline_session_free((branchline_session *)~(size_t)0) == BRANCHLINE_STATUS_INVALID_HANDLE);
  /* NULL is its own mistake. */
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_id(NULL, &text, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_abort(NULL, &error));
  CHECK(text == NULL && made == NULL);

  /* Freed, also when the slot was used again since. */
  stale = new_session(engine, NULL);
  CHECK(branchline_session_free(stale) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_session_free(stale) == BRANCHLINE_STATUS_INVALID_HANDLE);
  for (i = 0; i < 3; i++) {
    made = new_session(engine, NULL);
    CHECK(made != stale);
    CHECK(branchline_session_free(stale) == BRANCHLINE_STATUS_INVALID_HANDLE);
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE, branchline_session_prompt(stale, "x", NULL, &error));
    CHECK(branchline_session_free(made) == BRANCHLINE_STATUS_OK);
  }

  /* An event belongs to its queue, lives until the next call, and a stale one is no crash. */
  CHECK_OK(branchline_session_events(session, NULL, &events, &error));
  CHECK_OK(branchline_session_set_name(session, "one", &error));
  CHECK_OK(branchline_session_set_name(session, "two", &error));
  CHECK_OK(branchline_events_next(events, LONG, &event, &error));
  CHECK(branchline_event_type(event) == BRANCHLINE_EVENT_SESSION_INFO_CHANGED);
  CHECK(branchline_event_free((branchline_event *)event) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK(branchline_event_type(event) == BRANCHLINE_EVENT_SESSION_INFO_CHANGED);
  {
    const branchline_event *before = event;
    CHECK_OK(branchline_events_next(events, LONG, &event, &error));
    CHECK(branchline_event_type(before) == BRANCHLINE_EVENT_NONE);
    CHECK(branchline_event_json(before) == NULL);
    CHECK(branchline_event_sequence(before) == 0);
  }

  /* Parents first. The engine's end closes its session; what it stored can be read; its queue ends. */
  prompt(session, "before the end");
  CHECK(branchline_engine_free(engine) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_engine_free(engine) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK_STATUS(BRANCHLINE_STATUS_CLOSED, branchline_session_prompt(session, "x", NULL, &error));
  CHECK_OK(branchline_session_context(session, &text, &error));
  CHECK(strstr(text, "before the end") != NULL);
  branchline_string_free(text);
  CHECK(branchline_session_free(session) == BRANCHLINE_STATUS_OK);
  for (i = 0; i < 1000; i++) {
    branchline_status status = branchline_events_next(events, LONG, &event, &error);
    if (status == BRANCHLINE_STATUS_END) {
      break;
    }
    if (status != BRANCHLINE_STATUS_OK) {
      CHECK(!"an event or the end");
      break;
    }
  }
  CHECK(i > 5 && i < 1000);
  CHECK(branchline_events_free(events) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_events_free(events) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK(branchline_event_type(event) == BRANCHLINE_EVENT_NONE);

  /* The other engine did not notice. */
  prompt(theirs, "and you?");
  CHECK(branchline_session_free(theirs) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_engine_free(other) == BRANCHLINE_STATUS_OK);
}
