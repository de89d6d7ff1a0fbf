/* What the model sees: compactions, edits, shell runs, messages of the host, queues, statistics. */
#include "check.h"

void test_context(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_session *session = new_session(engine, NULL);
  char *first, *json = NULL, *id = NULL;

  CHECK_STATUS(BRANCHLINE_STATUS_NOTHING_TO_COMPACT, branchline_session_compact(session, NULL, NULL, &error));
  prompt(session, "question one");
  first = entry_of(session, "user", 0);
  CHECK_OK(branchline_session_fork_messages(session, &json, &error));
  CHECK(strstr(json, "\"text\":\"question one\"") != NULL && strstr(json, first) != NULL);
  branchline_string_free(json);

  CHECK_OK(branchline_session_edit_context(session, first, "{\"content\":\"asked differently\"}", &id, &error));
  branchline_string_free(id);
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "asked differently") != NULL && strstr(json, "question one") == NULL);
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_REPLACEMENT,
               branchline_session_edit_context(session, first, "{\"text\":1}", NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_edit_context(session, first, "{", NULL, &error));

  id = NULL;
  CHECK_OK(branchline_session_record_bash(session, "{\"command\":\"ls\",\"output\":\"a.txt\",\"exitCode\":0}", &id, &error));
  CHECK(id != NULL);
  branchline_string_free(id);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_record_bash(session, "{\"output\":\"\"}", NULL, &error));

  id = NULL;
  CHECK_OK(branchline_session_send_custom_message(session, "{\"customType\":\"note\",\"content\":\"from the host\"}",
                                                  BRANCHLINE_DELIVERY_STORE, &id, &error));
  CHECK(id != NULL);
  branchline_string_free(id);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT,
               branchline_session_send_custom_message(session, "{\"customType\":\"n\",\"content\":\"\"}", 9, NULL, &error));
  CHECK_OK(branchline_session_prompt_custom(session, "{\"customType\":\"note\",\"content\":\"go on\"}", NULL, &error));
  CHECK_OK(branchline_session_wait_idle(session, LONG, &error));
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "a.txt") != NULL && strstr(json, "from the host") != NULL && strstr(json, "go on") != NULL);
  branchline_string_free(json);

  CHECK_OK(branchline_session_run_bash(session, "echo typed; exit 3", "{\"id\":\"mine\"}", &json, &error));
  CHECK(strstr(json, "\"output\":\"typed\\n\"") != NULL && strstr(json, "\"exitCode\":3") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "echo typed") != NULL);
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_run_bash(session, NULL, NULL, NULL, &error));
  CHECK_OK(branchline_session_abort_bash(session, &error));

  CHECK_OK(branchline_session_stats(session, &json, &error));
  CHECK(strstr(json, "\"userMessages\":1") != NULL && strstr(json, "\"assistantMessages\":2") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_session_context_usage(session, &json, &error));
  CHECK(strstr(json, "\"tokens\":") != NULL);
  branchline_string_free(json);

  CHECK_OK(branchline_session_set_queue_modes(session, BRANCHLINE_QUEUE_MODE_ALL, BRANCHLINE_QUEUE_MODE_KEEP, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_set_queue_modes(session, 7, 0, &error));
  CHECK_OK(branchline_session_steer(session, "for later", &error));
  CHECK_OK(branchline_session_follow_up(session, "for the end", &error));
  CHECK_OK(branchline_session_clear_queues(session, &json, &error));
  CHECK(strcmp(json, "{\"steering\":[\"for later\"],\"followUp\":[\"for the end\"]}") == 0);
  branchline_string_free(json);
  CHECK_OK(branchline_session_abort_retry(session, &error));
  CHECK_OK(branchline_session_abort_summary(session, &error));

  free(first);
  branchline_session_free(session);
  branchline_engine_free(engine);
}
