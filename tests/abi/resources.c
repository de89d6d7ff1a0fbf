/* What a session knows of its project: context files, skills, templates, and who is told of them. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <stddef.h>
#include <sys/stat.h>

/* Writes `text` to a file below `directory`. */
static void put(const char *directory, const char *name, const char *text)
{
  char path[1024];
  FILE *file;
  snprintf(path, sizeof path, "%s/%s", directory, name);
  file = fopen(path, "wb");
  CHECK(file != NULL && fputs(text, file) >= 0);
  if (file) fclose(file);
}

/* What the host's model is asked when a run begins. */
static char *question(branchline_requests *requests, branchline_session *session)
{
  branchline_error *error = NULL;
  branchline_request *request = NULL;
  const char *arguments;
  char *copy;
  CHECK_OK(branchline_requests_next(requests, LONG, &request, &error));
  arguments = branchline_request_arguments(request);
  copy = malloc(strlen(arguments) + 1);
  strcpy(copy, arguments);
  CHECK_OK(branchline_request_complete(request, "\"fine\"", &error));
  branchline_request_free(request);
  CHECK_OK(branchline_session_wait_idle(session, LONG, &error));
  return copy;
}

static char *asked_with(branchline_requests *requests, branchline_session *session, const char *text,
                        const branchline_prompt_options *options)
{
  branchline_error *error = NULL;
  CHECK_OK(branchline_session_prompt(session, text, options, &error));
  return question(requests, session);
}

static char *asked(branchline_requests *requests, branchline_session *session, const char *text, int literal)
{
  branchline_prompt_options options = BRANCHLINE_PROMPT_OPTIONS_INIT;
  options.literal = (uint32_t)literal;
  return asked_with(requests, session, text, &options);
}

/* S305, P777: a forced prompt is the whole system prompt of its run; the next run has the session's own again. */
static void forced_prompt(branchline_requests *requests, branchline_session *session)
{
  branchline_prompt_options options = BRANCHLINE_PROMPT_OPTIONS_INIT;
  branchline_error *error = NULL;
  char *json;

  options.forced_prompt = "Speak like a pirate.";
  json = asked_with(requests, session, "Well?", &options);
  CHECK(strstr(json, "Speak like a pirate.") && !strstr(json, "Rules of the house."));
  free(json);
  CHECK_OK(branchline_session_prompt_custom(session, "{\"customType\":\"note\",\"content\":\"Go on\"}", &options, &error));
  json = question(requests, session);
  CHECK(strstr(json, "Speak like a pirate.") && strstr(json, "Go on") && !strstr(json, "Rules of the house."));
  free(json);
  /* A host that was built before the field was there has none, whatever lies behind its struct. */
  options.struct_size = offsetof(branchline_prompt_options, forced_prompt);
  json = asked_with(requests, session, "And now?", &options);
  CHECK(!strstr(json, "Speak like a pirate.") && strstr(json, "Rules of the house."));
  free(json);
}

void test_resources(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_requests *requests = NULL;
  branchline_session *session = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  char *directory = fresh_directory();
  char path[1024];
  char *json = NULL;

  CHECK_OK(branchline_requests_new(&requests, &error));
  CHECK_OK(branchline_requests_host_provider(requests, engine, "{\"name\":\"ide\",\"models\":[\"chat\"]}", &error));
  put(directory, "AGENTS.md", "Tabs, never spaces.");
  put(directory, "greet.md", "Say hello to $1.");
  snprintf(path, sizeof path, "%s/brewing", directory);
  mkdir(path, 0777);
  put(path, "SKILL.md", "---\nname: brewing\ndescription: How tea is made here.\n---\nBoil water.");

  options.cwd = directory;
  options.in_memory = 1;
  options.model = "ide/chat";
  options.resources_json = "{\"contextFiles\":true,\"promptTemplates\":[\"greet.md\"],\"skills\":[\"brewing\"],"
                           "\"sections\":[{\"name\":\"house\",\"text\":\"Rules of the house.\"}]}";
  CHECK_OK(branchline_session_create(engine, &options, &session, &error));
  CHECK_OK(branchline_session_resources(session, &json, &error));
  CHECK(strstr(json, "\"content\":\"Tabs, never spaces.\"") && strstr(json, "\"name\":\"greet\"") &&
        strstr(json, "\"description\":\"How tea is made here.\"") && strstr(json, "\"diagnostics\":[]"));
  branchline_string_free(json);

  json = asked(requests, session, "/greet Ada", 0);
  CHECK(strstr(json, "Tabs, never spaces.") && strstr(json, "How tea is made here.") && strstr(json, "Rules of the house."));
  CHECK(strstr(json, "Say hello to Ada.") && !strstr(json, "/greet"));
  free(json);
  json = asked(requests, session, "/greet Bob", 1);
  CHECK(strstr(json, "/greet Bob") && !strstr(json, "hello to Bob"));
  free(json);
  json = asked(requests, session, "/skill:brewing now", 0);
  CHECK(strstr(json, "Boil water.") != NULL);
  free(json);
  forced_prompt(requests, session);

  /* What changed is told; nothing is read before the host says so. */
  put(directory, "AGENTS.md", "Spaces, never tabs.");
  CHECK_OK(branchline_session_resources(session, &json, &error));
  CHECK(strstr(json, "Tabs, never spaces.") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_session_reload_resources(session, &json, &error));
  CHECK(strstr(json, "Spaces, never tabs.") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_session_reload_resources(session, NULL, &error));
  json = asked(requests, session, "Well?", 0);
  CHECK(strstr(json, "Spaces, never tabs.") && !strstr(json, "Tabs, never spaces."));
  free(json);
  CHECK_OK(branchline_session_set_resources(session, "{\"guidelines\":[\"Be brief.\"]}", &json, &error));
  CHECK(strstr(json, "\"contextFiles\":[]") && strstr(json, "Be brief."));
  branchline_string_free(json);
  json = asked(requests, session, "/greet Ada", 0);
  CHECK(strstr(json, "Be brief.") && !strstr(json, "Spaces, never tabs.") && strstr(json, "/greet Ada"));
  free(json);
  CHECK_OK(branchline_session_set_resources(session, NULL, NULL, &error));

  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT,
               branchline_session_set_resources(session, "{\"contextFile\":true}", &json, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT,
               branchline_session_set_resources(session, "{\"sections\":[{\"name\":\"A b\",\"text\":\"\"}]}", &json, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_resources(session, NULL, &error));
  branchline_session_free(session);
  options.resources_json = "{\"discover\":\"everything\"}";
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  branchline_requests_free(requests);
  branchline_engine_free(engine);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE, branchline_session_reload_resources(session, NULL, &error));
  free(directory);
}
