/* Making, opening, listing and ending sessions; running them. */
#include "check.h"

static void life(branchline_engine *engine)
{
  branchline_error *error = NULL;
  char *directory = fresh_directory();
  branchline_session *session = new_session(engine, directory);
  branchline_session *again = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  branchline_list_options list = BRANCHLINE_LIST_OPTIONS_INIT;
  char *path = NULL, *text = NULL, *id = NULL;

  CHECK_OK(branchline_session_set_name(session, "first \xc3\xa9", &error));
  CHECK_OK(branchline_session_name(session, &text, &error));
  CHECK(strcmp(text, "first \xc3\xa9") == 0);
  branchline_string_free(text);
  prompt(session, "remember this");
  CHECK_OK(branchline_session_path(session, &path, &error));
  CHECK_OK(branchline_session_id(session, &id, &error));
  CHECK(path != NULL && strstr(path, id) != NULL);
  CHECK_OK(branchline_session_state(session, &text, &error));
  CHECK(strstr(text, "\"phase\":\"idle\"") != NULL && strstr(text, "\"model\":\"scripted/abi\"") != NULL);
  CHECK(strstr(text, id) != NULL);
  branchline_string_free(text);

  /* One writer; any number of readers. */
  CHECK_STATUS(BRANCHLINE_STATUS_SESSION_LOCKED, branchline_session_open(engine, path, NULL, &again, &error));
  options.read_only = 1;
  CHECK_OK(branchline_session_open(engine, path, &options, &again, &error));
  CHECK_OK(branchline_session_context(again, &text, &error));
  CHECK(strstr(text, "remember this") != NULL);
  branchline_string_free(text);
  CHECK_STATUS(BRANCHLINE_STATUS_READ_ONLY, branchline_session_set_name(again, "x", &error));
  CHECK(branchline_session_free(again) == BRANCHLINE_STATUS_OK);

  /* A closed one can be read, and opened again at once; so can a freed one. */
  CHECK_OK(branchline_session_close(session, &error));
  CHECK_OK(branchline_session_close(session, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_CLOSED, branchline_session_set_name(session, "x", &error));
  CHECK_OK(branchline_session_open(engine, path, NULL, &again, &error));
  branchline_session_free(session);
  branchline_session_free(again);
  CHECK_OK(branchline_session_open(engine, path, NULL, &again, &error));
  CHECK_OK(branchline_session_state(again, &text, &error));
  CHECK(strstr(text, "\"model\":\"scripted/abi\"") != NULL);
  branchline_string_free(text);
  branchline_session_free(again);

  /* The most recent one of the directory, and the list. */
  options.read_only = 0;
  options.cwd = directory;
  CHECK_OK(branchline_session_continue_recent(engine, &options, &again, &error));
  CHECK_OK(branchline_session_id(again, &text, &error));
  CHECK(strcmp(text, id) == 0);
  branchline_string_free(text);
  branchline_session_free(again);
  list.cwd = directory;
  list.include_text = 1;
  CHECK_OK(branchline_engine_list_sessions(engine, &list, &text, &error));
  CHECK(count_of(text, "\"path\"") == 1 && strstr(text, "\"firstMessage\":\"remember this\"") != NULL);
  CHECK(strstr(text, "Hello from the script.") != NULL);
  branchline_string_free(text);

  /* A copy in another directory, which is opened in the place of what it was made of. */
  options.cwd = directory;
  options.session_dir = directory;
  options.in_memory = 0;
  CHECK_OK(branchline_session_import(engine, path, &options, &session, &error));
  CHECK_OK(branchline_session_path(session, &text, &error));
  CHECK(strncmp(text, directory, strlen(directory)) == 0 && strcmp(text, path) != 0);
  branchline_string_free(text);
  branchline_session_free(session);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_import(engine, NULL, &options, &session, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_SESSION_FILE, branchline_session_import(engine, "/no/such", &options, &session, &error));

  /* In memory there is no path, and an empty session has no leaf worth a name. */
  session = new_session(engine, NULL);
  text = (char *)1;
  CHECK_OK(branchline_session_path(session, &text, &error));
  CHECK(text == NULL);
  CHECK_OK(branchline_session_name(session, &text, &error));
  CHECK(text == NULL);
  branchline_session_free(session);

  branchline_string_free(path);
  branchline_string_free(id);
  free(directory);
}

static void running(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session *session = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  branchline_prompt_options queue = BRANCHLINE_PROMPT_OPTIONS_INIT;
  const char *tools[] = { "read", "bash" };
  char *text = NULL;

  CHECK_OK(branchline_engine_add_scripted_model_n(engine, "hanging", HANGING "behind", strlen(HANGING), &error));
  options.in_memory = 1;
  options.model = "scripted/hanging";
  options.tools = tools;
  options.tool_count = 1;
  options.system_prompt = "You are a test.";
  options.permissions = "workspace";
  options.thinking_level = "low";
  CHECK_OK(branchline_session_create(engine, &options, &session, &error));
  CHECK_OK(branchline_session_state(session, &text, &error));
  CHECK(strstr(text, "\"tools\":[\"read\"]") != NULL && strstr(text, "\"thinkingLevel\":\"low\"") != NULL);
  branchline_string_free(text);

  CHECK_OK(branchline_session_wait_idle(session, 0, &error));
  CHECK_OK(branchline_session_prompt(session, "go", NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_RUNNING, branchline_session_prompt(session, "again", NULL, &error));
  CHECK_OK(branchline_session_steer(session, "left", &error));
  CHECK_OK(branchline_session_steer_n(session, "right!", 5, &error));
  CHECK_OK(branchline_session_follow_up(session, "then", &error));
  CHECK_OK(branchline_session_follow_up_n(session, "later", 5, &error));
  queue.when_running = BRANCHLINE_WHEN_RUNNING_STEER;
  CHECK_OK(branchline_session_prompt(session, "queued", &queue, &error));
  CHECK_OK(branchline_session_state(session, &text, &error));
  CHECK(strstr(text, "\"steering\":[\"left\",\"right\",\"queued\"]") != NULL);
  CHECK(strstr(text, "\"followUp\":[\"then\",\"later\"]") != NULL);
  branchline_string_free(text);
  CHECK_STATUS(BRANCHLINE_STATUS_TIMEOUT, branchline_session_wait_idle(session, 20, &error));
  CHECK_OK(branchline_session_abort(session, &error));
  CHECK_OK(branchline_session_abort(session, &error));
  CHECK_OK(branchline_session_wait_idle(session, LONG, &error));
  CHECK_OK(branchline_session_context(session, &text, &error));
  CHECK(strstr(text, "\"stopReason\":\"aborted\"") != NULL && strstr(text, "You are a test.") != NULL);
  branchline_string_free(text);

  CHECK_OK(branchline_session_set_model(session, "scripted/abi", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_UNKNOWN_MODEL, branchline_session_set_model(session, "a/b", &error));
  CHECK_OK(branchline_session_set_thinking_level(session, "high", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_set_thinking_level(session, "very", &error));
  CHECK_OK(branchline_session_set_tools(session, tools, 2, &error));
  CHECK_OK(branchline_session_state(session, &text, &error));
  CHECK(strstr(text, "\"tools\":[\"read\",\"bash\"]") != NULL && strstr(text, "\"thinkingLevel\":\"high\"") != NULL);
  CHECK(strstr(text, "\"model\":\"scripted/abi\"") != NULL);
  branchline_string_free(text);
  tools[1] = "hammer";
  CHECK_STATUS(BRANCHLINE_STATUS_UNKNOWN_TOOL, branchline_session_set_tools(session, tools, 2, &error));
  tools[1] = NULL;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_set_tools(session, tools, 2, &error));
  CHECK_OK(branchline_session_set_tools(session, NULL, 0, &error));

  /* Freed in the middle of a run. */
  CHECK_OK(branchline_session_set_model(session, "scripted/hanging", &error));
  CHECK_OK(branchline_session_prompt(session, "go on", NULL, &error));
  CHECK(branchline_session_free(session) == BRANCHLINE_STATUS_OK);
}

void test_sessions(void)
{
  branchline_error *error = NULL;
  branchline_session *session = NULL;
  branchline_engine *engine = new_engine();
  life(engine);
  running(engine);
  branchline_engine_free(engine);

  /* With neither an engine's default nor a choice there is no model; the error says so. */
  CHECK_OK(branchline_engine_new(NULL, &engine, &error));
  {
    branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
    options.in_memory = 1;
    CHECK_OK(branchline_session_create(engine, &options, &session, &error));
  }
  CHECK_STATUS(BRANCHLINE_STATUS_NO_MODEL, branchline_session_prompt(session, "x", NULL, &error));
  branchline_session_free(session);
  branchline_engine_free(engine);
}
