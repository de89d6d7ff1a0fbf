/* What comes in: struct sizes, NULL, lengths, texts that are not UTF-8 or hold NUL. */
#include "check.h"

static void struct_sizes(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session *session = NULL;
  char *json = NULL;
  /* A host that was compiled when the struct ended behind `cwd`: the memory behind is not the library's to read. */
  struct {
    size_t struct_size;
    const char *cwd;
    char beyond[sizeof(branchline_session_options)];
  } old;
  /* A host of a later version: two more fields. */
  struct {
    branchline_session_options known;
    size_t later[2];
  } newer;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;

  memset(&old, 0xAA, sizeof old);
  old.struct_size = 2 * sizeof(size_t);
  old.cwd = "/tmp";
  CHECK_OK(branchline_session_create(engine, (const branchline_session_options *)(void *)&old, &session, &error));
  CHECK_OK(branchline_session_cwd(session, &json, &error));
  CHECK(strcmp(json, "/tmp") == 0);
  branchline_string_free(json);
  branchline_session_free(session);

  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  newer.known.in_memory = 1;
  CHECK_OK(branchline_session_create(engine, &newer.known, &session, &error));
  branchline_session_free(session);
  newer.later[1] = 1;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &newer.known, &session, &error));

  options.in_memory = 1;
  options.struct_size = 0;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  options.struct_size = sizeof options - 1;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  options.struct_size = ~(size_t)0;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  options.struct_size = sizeof options;
  options.durability = 77;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  options.durability = BRANCHLINE_DURABILITY_ENTRY;
  options.reserved = 1;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  options.reserved = 0;
  options.tool_count = 1;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  options.tool_count = 0;
  options.model = "\xff";
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  {
    char deep[400];
    size_t n;
    branchline_prompt_options prompt = BRANCHLINE_PROMPT_OPTIONS_INIT;
    options.model = NULL;
    options.in_memory = 1;
    CHECK_OK(branchline_session_create(engine, &options, &session, &error));
    /* What would not be stored whole is refused. */
    for (n = 0; n < 150; n++) deep[n] = '[', deep[300 - n] = ']';
    deep[150] = '1';
    deep[301] = 0;
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_append_custom(session, "x", deep, &json, &error));
    prompt.images_json = "[{\"type\":\"image\",\"data\":\"AAAA\"}]";
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_prompt(session, "x", &prompt, &error));
    branchline_session_free(session);
  }
  options.model = "no/such";
  CHECK_STATUS(BRANCHLINE_STATUS_UNKNOWN_MODEL, branchline_session_create(engine, &options, &session, &error));
}

/* A layout that moves breaks every program that was compiled before. 64-bit numbers. */
static void layouts(void)
{
#define AT(type, member, offset) CHECK(offsetof(type, member) == (offset))
  if (sizeof(void *) != 8) {
    return;
  }
  CHECK(sizeof(branchline_engine_options) == 40);
  AT(branchline_engine_options, worker_threads, 8);
  AT(branchline_engine_options, agent_dir, 16);
  AT(branchline_engine_options, default_model, 24);
  AT(branchline_engine_options, config_json, 32);
  CHECK(sizeof(branchline_session_options) == 176);
  AT(branchline_session_options, cwd, 8);
  AT(branchline_session_options, session_dir, 16);
  AT(branchline_session_options, id, 24);
  AT(branchline_session_options, name, 32);
  AT(branchline_session_options, parent_session, 40);
  AT(branchline_session_options, model, 48);
  AT(branchline_session_options, thinking_level, 56);
  AT(branchline_session_options, tools, 64);
  AT(branchline_session_options, tool_count, 72);
  AT(branchline_session_options, system_prompt, 80);
  AT(branchline_session_options, durability, 88);
  AT(branchline_session_options, in_memory, 92);
  AT(branchline_session_options, read_only, 96);
  AT(branchline_session_options, reserved, 100);
  AT(branchline_session_options, custom_tools, 104);
  AT(branchline_session_options, custom_tool_count, 112);
  AT(branchline_session_options, permissions, 120);
  AT(branchline_session_options, permission_policy, 128);
  AT(branchline_session_options, budgets, 136);
  AT(branchline_session_options, budget_count, 144);
  AT(branchline_session_options, tool_hooks, 152);
  AT(branchline_session_options, tool_hook_count, 160);
  AT(branchline_session_options, resources_json, 168);
  CHECK(sizeof(branchline_toolbox_options) == 16);
  AT(branchline_toolbox_options, cwd, 8);
  CHECK(sizeof(branchline_tool_callbacks) == 40);
  AT(branchline_tool_callbacks, user_data, 8);
  AT(branchline_tool_callbacks, on_call, 16);
  AT(branchline_tool_callbacks, on_cancel, 24);
  AT(branchline_tool_callbacks, destroy, 32);
  CHECK(sizeof(branchline_call_callbacks) == 40);
  AT(branchline_call_callbacks, user_data, 8);
  AT(branchline_call_callbacks, on_progress, 16);
  AT(branchline_call_callbacks, on_done, 24);
  AT(branchline_call_callbacks, destroy, 32);
  CHECK(sizeof(branchline_prompt_options) == 32);
  AT(branchline_prompt_options, images_json, 8);
  AT(branchline_prompt_options, when_running, 16);
  AT(branchline_prompt_options, literal, 20);
  AT(branchline_prompt_options, forced_prompt, 24);
  CHECK(sizeof(branchline_events_options) == 16);
  AT(branchline_events_options, capacity, 8);
  CHECK(sizeof(branchline_navigate_options) == 32);
  AT(branchline_navigate_options, label, 8);
  AT(branchline_navigate_options, instructions, 16);
  AT(branchline_navigate_options, summarize, 24);
  AT(branchline_navigate_options, replace_instructions, 28);
  CHECK(sizeof(branchline_list_options) == 32);
  AT(branchline_list_options, cwd, 8);
  AT(branchline_list_options, session_dir, 16);
  AT(branchline_list_options, include_text, 24);
  CHECK(sizeof(branchline_callbacks) == 40);
  AT(branchline_callbacks, user_data, 8);
  AT(branchline_callbacks, on_event, 16);
  AT(branchline_callbacks, destroy, 24);
  AT(branchline_callbacks, capacity, 32);
#undef AT
}

static void texts(branchline_session *session)
{
  static const char with_nul[] = "one\0two";
  branchline_error *error = NULL;
  char *json = NULL;
  char *id = NULL;
  size_t length = 0;
  branchline_prompt_options options = BRANCHLINE_PROMPT_OPTIONS_INIT;

  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_prompt(session, NULL, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_prompt(session, "a\xc3(", NULL, &error));
  CHECK(branchline_session_prompt(session, "ab\xff", NULL, &error) == BRANCHLINE_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(branchline_error_message(error), "offset 2") != NULL);
  branchline_error_free(error);
  error = NULL;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_prompt_n(session, NULL, 3, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_prompt_n(session, "x", ~(size_t)0, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_steer(session, "\x80", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_set_name(session, NULL, &error));
  options.images_json = "{}";
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_prompt(session, "x", &options, &error));
  options.images_json = NULL;
  options.forced_prompt = "a\xc3(";
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_prompt(session, "x", &options, &error));
  options.forced_prompt = NULL;
  options.when_running = 9;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_prompt(session, "x", &options, &error));

  /* A NUL travels: in with a length, out escaped. */
  CHECK_OK(branchline_session_prompt_n(session, with_nul, sizeof with_nul - 1, NULL, &error));
  CHECK_OK(branchline_session_wait_idle(session, LONG, &error));
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "one\\u0000two") != NULL);
  branchline_string_free(json);

  /* Host data keeps its numbers and the order of its keys. */
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_append_custom(session, "t", "{", NULL, &error));
  CHECK_OK(branchline_session_append_custom(session, "t", "{\"z\":9007199254740993,\"a\":[1.5,null]}", &id, &error));
  CHECK_OK(branchline_session_entry(session, id, &json, &length, &error));
  CHECK(strstr(json, "{\"z\":9007199254740993,\"a\":[1.5,null]}") != NULL);
  CHECK(length == strlen(json));
  branchline_string_free(json);
  branchline_string_free(id);
  id = NULL;
  CHECK_OK(branchline_session_append_custom_n(session, "t", "[1]garbage", 3, &id, &error));
  CHECK_OK(branchline_session_entry(session, id, &json, NULL, &error));
  CHECK(strstr(json, "\"data\":[1]") != NULL);
  branchline_string_free(json);
  branchline_string_free(id);
}

void test_input(void)
{
  branchline_engine *engine = new_engine();
  branchline_session *session = new_session(engine, NULL);
  layouts();
  struct_sizes(engine);
  texts(session);
  branchline_session_free(session);
  branchline_engine_free(engine);
}
