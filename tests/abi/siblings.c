/* Sibling sessions, explorations, and sessions in the place of others. */
#include "check.h"

static void test_branch(branchline_engine *engine)
{
  branchline_error *error = NULL;
  char *directory = fresh_directory();
  branchline_session *session = new_session(engine, directory), *sibling = NULL, *start = NULL, *none = NULL;
  branchline_session *stranger;
  bool related = false;
  char *first, *leaf = NULL, *text = NULL, *options;
  uint32_t number = 9;

  prompt(session, "question one");
  prompt(session, "question two");
  first = entry_of(session, "assistant", 0);
  CHECK_OK(branchline_session_leaf(session, &leaf, &error));

  options = malloc(strlen(first) + 32);
  sprintf(options, "{\"at\":\"%s\"}", first);
  CHECK_OK(branchline_session_branch(session, options, &sibling, &error));
  CHECK_OK(branchline_session_sibling(session, &number, &error));
  CHECK(number == 0);
  CHECK_OK(branchline_session_sibling(sibling, &number, &error));
  CHECK(number == 1);
  CHECK_OK(branchline_session_is_sibling_of(session, sibling, &related, &error));
  CHECK(related);
  stranger = new_session(engine, NULL);
  CHECK_OK(branchline_session_is_sibling_of(session, stranger, &related, &error));
  CHECK(!related);
  branchline_session_free(stranger);
  CHECK_OK(branchline_session_branch(session, "{\"at\":null}", &start, &error));
  CHECK_OK(branchline_session_leaf(start, &text, &error));
  CHECK(text == NULL);

  /* One file, two leaves: what the sibling says does not move the session. */
  prompt(sibling, "another question");
  CHECK_OK(branchline_session_leaf(session, &text, &error));
  CHECK(strcmp(text, leaf) == 0);
  branchline_string_free(text);
  CHECK_OK(branchline_session_adopt(session, sibling, NULL, &text, &error));
  CHECK(strstr(text, "\"cancelled\":false") != NULL);
  branchline_string_free(text);
  branchline_string_free(leaf);
  CHECK_OK(branchline_session_leaf(session, &text, &error));
  CHECK_OK(branchline_session_leaf(sibling, &leaf, &error));
  CHECK(strcmp(text, leaf) == 0);
  branchline_string_free(text);

  CHECK_STATUS(BRANCHLINE_STATUS_ENTRY_NOT_FOUND, branchline_session_branch(session, "{\"at\":\"no\"}", &none, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_UNKNOWN_MODEL, branchline_session_branch(session, "{\"model\":\"no/no\"}", &none, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_branch(session, "{\"modell\":1}", &none, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_branch(session, "[]", &none, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_branch(session, "{", &none, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_branch(session, NULL, NULL, &error));
  CHECK(none == NULL);

  /* The first one may go first; the sibling can still write. */
  branchline_session_free(session);
  prompt(sibling, "still there?");
  branchline_session_free(start);
  branchline_session_free(sibling);
  branchline_string_free(leaf);
  free(options);
  free(first);
  free(directory);
}

static void test_explore(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session *session = new_session(engine, NULL), *winner = NULL;
  branchline_exploration *exploration = NULL, *none = NULL;
  branchline_events *events = NULL;
  const branchline_event *event = NULL;
  branchline_status status;
  char *json = NULL;
  size_t count = 0;
  int texts[4] = { 0, 0, 0, 0 };

  prompt(session, "the task");
  CHECK_OK(branchline_session_explore(session, "[\"one way\",{\"text\":\"another\"}]", "{\"limit\":1}", &exploration, &error));
  CHECK_OK(branchline_exploration_count(exploration, &count, &error));
  CHECK(count == 2);
  CHECK_OK(branchline_exploration_events(exploration, &events, &error));
  while ((status = branchline_events_next(events, LONG, &event, &error)) == BRANCHLINE_STATUS_OK)
    if (branchline_event_type(event) == BRANCHLINE_EVENT_TEXT_DELTA && branchline_event_sibling(event) < 4)
      texts[branchline_event_sibling(event)]++;
  CHECK(status == BRANCHLINE_STATUS_END);
  CHECK(texts[0] == 0 && texts[1] > 0 && texts[2] > 0);
  CHECK_OK(branchline_exploration_results(exploration, LONG, &json, &error));
  CHECK(count_of(json, "\"text\":\"Hello from the script.\"") >= 2 && count_of(json, "\"stopReason\":\"stop\"") >= 2);
  branchline_string_free(json);
  CHECK_OK(branchline_exploration_session(exploration, 1, &winner, &error));
  CHECK_OK(branchline_session_adopt(session, winner, NULL, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_exploration_session(exploration, 2, &winner, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_exploration_abort_one(exploration, 2, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_explore(session, "[]", NULL, &none, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_explore(session, "{}", NULL, &none, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_explore(session, NULL, NULL, &none, &error));
  branchline_exploration_free(exploration);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE, branchline_exploration_count(exploration, &count, &error));
  branchline_events_free(events);
  branchline_session_free(winner);
  branchline_session_free(session);
}

/* Aborting all, and freeing while it runs. */
static void test_explore_abort(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session *session = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  branchline_exploration *exploration = NULL;
  char *json = NULL;

  CHECK_OK(branchline_engine_add_scripted_model(engine, "scripted/hanging", HANGING, &error));
  options.in_memory = 1;
  options.model = "scripted/hanging";
  CHECK_OK(branchline_session_create(engine, &options, &session, &error));
  CHECK_OK(branchline_session_explore(session, "[\"a\",\"b\",\"c\"]", "{\"limit\":2}", &exploration, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_TIMEOUT, branchline_exploration_results(exploration, 20, &json, &error));
  CHECK_OK(branchline_exploration_abort_one(exploration, 0, &error));
  CHECK_OK(branchline_exploration_abort(exploration, &error));
  CHECK_OK(branchline_exploration_results(exploration, LONG, &json, &error));
  CHECK(count_of(json, "\"aborted\":true") == 3);
  branchline_string_free(json);
  branchline_exploration_free(exploration);
  CHECK_OK(branchline_session_explore(session, "[\"a\"]", NULL, &exploration, &error));
  branchline_exploration_free(exploration);
  branchline_exploration_free(NULL);
  branchline_session_free(session);
}

static void test_replace(branchline_engine *engine)
{
  branchline_error *error = NULL;
  char *directory = fresh_directory();
  branchline_session *session = new_session(engine, directory), *next = NULL, *other = NULL, *memory = NULL;
  char *path = NULL, *state = NULL;

  CHECK_STATUS(BRANCHLINE_STATUS_NOT_SAVED,
               branchline_session_new_session(session, "{\"recordParent\":true}", &next, &error));
  prompt(session, "question");
  CHECK_OK(branchline_session_path(session, &path, &error));
  CHECK_OK(branchline_session_new_session(session, "{\"recordParent\":true,\"name\":\"the next\"}", &next, &error));
  prompt(next, "question");
  CHECK_STATUS(BRANCHLINE_STATUS_SESSION_LOCKED, branchline_session_switch(next, path, NULL, &other, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_switch(next, NULL, NULL, &other, &error));
  branchline_session_free(session);
  CHECK_OK(branchline_session_switch(next, path, NULL, &other, &error));
  CHECK_OK(branchline_session_state(next, &state, &error));
  CHECK(strstr(state, "\"phase\":\"closed\"") != NULL);
  branchline_string_free(state);
  branchline_session_free(next);
  memory = new_session(engine, NULL);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_import_session(memory, path, NULL, &next, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_STORAGE_FAILED, branchline_session_import(engine, "/no/such/file", NULL, &next, &error));
  branchline_session_free(memory);
  branchline_session_free(other);
  branchline_string_free(path);
  free(directory);
}

void test_siblings(void)
{
  branchline_engine *engine = new_engine();
  test_branch(engine);
  test_explore(engine);
  test_explore_abort(engine);
  test_replace(engine);
  branchline_engine_free(engine);
}
