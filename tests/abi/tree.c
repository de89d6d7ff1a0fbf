/* The tree: labels, entries of the host, navigation, forks, clones. */
#include "check.h"

void test_tree(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  char *directory = fresh_directory();
  branchline_session *session = new_session(engine, directory);
  branchline_session *fork = NULL, *clone = NULL;
  branchline_navigate_options options = BRANCHLINE_NAVIGATE_OPTIONS_INIT;
  char *first, *second, *answer, *json = NULL, *text = NULL, *id = NULL;
  size_t length = 0;

  CHECK_STATUS(BRANCHLINE_STATUS_ENTRY_NOT_FOUND,
              branchline_session_fork(session, "nothing", BRANCHLINE_FORK_AT, &fork, NULL, &error));
  prompt(session, "question one");
  prompt(session, "question two");
  first = entry_of(session, "user", 0);
  second = entry_of(session, "user", 1);
  answer = entry_of(session, "assistant", 0);

  /* Entries of the host. */
  CHECK_OK(branchline_session_set_label(session, first, "start", &id, &error));
  CHECK_OK(branchline_session_leaf(session, &text, &error));
  CHECK(strcmp(text, id) == 0);
  branchline_string_free(text);
  branchline_string_free(id);
  CHECK_OK(branchline_session_tree(session, &json, &error));
  CHECK(strstr(json, "\"label\":\"start\"") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_session_set_label(session, first, NULL, NULL, &error));
  CHECK_OK(branchline_session_tree(session, &json, &error));
  CHECK(strstr(json, "\"label\":\"start\"") == NULL);
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_ENTRY_NOT_FOUND, branchline_session_set_label(session, "no", "x", NULL, &error));
  CHECK_OK(branchline_session_append_custom(session, "bookmark", NULL, NULL, &error));
  id = NULL;
  CHECK_OK(branchline_session_append_custom_message(session, "note", "\"from the host\"", true, "{\"k\":1}", &id, &error));
  CHECK(id != NULL);
  CHECK_OK(branchline_session_entry(session, id, &json, &length, &error));
  CHECK(length == strlen(json) && strstr(json, "\"type\":\"custom_message\"") != NULL);
  branchline_string_free(json);
  branchline_string_free(id);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT,
              branchline_session_append_custom_message(session, "note", "{}", true, NULL, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_ENTRY_NOT_FOUND, branchline_session_entry(session, "no", &json, NULL, &error));
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "from the host") != NULL && strstr(json, "\"modelId\":\"abi\"") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_session_diagnostics(session, &json, &error));
  CHECK(strcmp(json, "[]") == 0);
  branchline_string_free(json);

  /* To before the second question, and another second question. */
  options.label = "second try";
  CHECK_OK(branchline_session_navigate(session, second, &options, &json, &error));
  CHECK(strstr(json, "\"editorText\":\"question two\"") != NULL && strstr(json, "\"cancelled\":false") != NULL);
  branchline_string_free(json);
  prompt(session, "question two, differently");
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "question one") != NULL && strstr(json, "differently") != NULL);
  CHECK(strstr(json, "\"question two\"") == NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_session_tree_branch(session, second, &json, &error));
  CHECK(strstr(json, first) != NULL && strstr(json, second) != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_session_tree_branch(session, NULL, &json, &error));
  CHECK(strstr(json, first) != NULL && strstr(json, second) == NULL);
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_ENTRY_NOT_FOUND, branchline_session_tree_branch(session, "no", &json, &error));
  CHECK_OK(branchline_session_export_branch(session, NULL, &text, &length, &error));
  CHECK(length == strlen(text) && strncmp(text, "{\"type\":\"session\"", 17) == 0 && text[length - 1] == '\n');
  CHECK(strstr(text, first) != NULL && strstr(text, "question two, differently") != NULL);
  branchline_string_free(text);
  CHECK_OK(branchline_session_export_branch(session, second, &text, NULL, &error));
  CHECK(strstr(text, "\"question two\"") != NULL && strstr(text, "differently") == NULL);
  branchline_string_free(text);
  CHECK_STATUS(BRANCHLINE_STATUS_ENTRY_NOT_FOUND, branchline_session_export_branch(session, "no", &text, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_ENTRY_NOT_FOUND, branchline_session_navigate(session, "no", NULL, NULL, &error));
  CHECK_OK(branchline_session_navigate(session, answer, NULL, NULL, &error));
  CHECK_OK(branchline_session_leaf(session, &text, &error));
  CHECK(strcmp(text, answer) == 0);
  branchline_string_free(text);

  /* Forks: before a question, and at any entry; the original stays. */
  CHECK_OK(branchline_session_fork(session, second, BRANCHLINE_FORK_BEFORE, &fork, &text, &error));
  CHECK(text != NULL && strcmp(text, "question two") == 0);
  branchline_string_free(text);
  CHECK_OK(branchline_session_path(fork, &text, &error));
  CHECK_OK(branchline_session_path(session, &id, &error));
  CHECK(text != NULL && strcmp(text, id) != 0);
  branchline_string_free(text);
  branchline_string_free(id);
  prompt(fork, "only in the fork");
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "only in the fork") == NULL);
  branchline_string_free(json);
  CHECK(branchline_session_free(fork) == BRANCHLINE_STATUS_OK);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_FORK_TARGET,
              branchline_session_fork(session, answer, BRANCHLINE_FORK_BEFORE, &fork, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_fork(session, answer, 7, &fork, NULL, &error));
  text = (char *)1;
  CHECK_OK(branchline_session_fork(session, answer, BRANCHLINE_FORK_AT, &fork, &text, &error));
  CHECK(text == NULL);
  CHECK(branchline_session_free(fork) == BRANCHLINE_STATUS_OK);

  CHECK_OK(branchline_session_clone(session, &clone, &error));
  CHECK_OK(branchline_session_tree_branch(clone, NULL, &json, &error));
  CHECK_OK(branchline_session_tree_branch(session, NULL, &text, &error));
  CHECK(strcmp(json, text) == 0);
  branchline_string_free(json);
  branchline_string_free(text);

  /* The original goes first. */
  branchline_session_free(session);
  prompt(clone, "alone");
  branchline_session_free(clone);
  branchline_engine_free(engine);
  free(first);
  free(second);
  free(answer);
  free(directory);
}
