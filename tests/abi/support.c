#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <unistd.h>

int checks_passed;
int checks_failed;

void check(int ok, const char *file, int line, const char *what)
{
  if (ok) {
    checks_passed++;
  } else {
    checks_failed++;
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
  }
}

void check_status(branchline_status got, branchline_status wanted, branchline_error **error, const char *file, int line,
                  const char *what)
{
  int silent = wanted == BRANCHLINE_STATUS_OK || wanted == BRANCHLINE_STATUS_TIMEOUT || wanted == BRANCHLINE_STATUS_END;
  int ok = got == wanted;
  if (silent) {
    ok = ok && *error == NULL;
  } else {
    ok = ok && *error != NULL && branchline_error_status(*error) == wanted && *branchline_error_message(*error) != '\0';
  }
  if (!ok) {
    fprintf(stderr, "%s:%d: got %s (%s), wanted %s\n", file, line, branchline_status_name(got),
            branchline_error_message(*error), branchline_status_name(wanted));
  }
  check(ok, file, line, what);
  branchline_error_free(*error);
  *error = NULL;
}

char *fresh_directory(void)
{
  const char *root = getenv("ABI_TEST_DIR");
  size_t size = strlen(root ? root : "/tmp") + 32;
  char *path = malloc(size);
  snprintf(path, size, "%s/abi-XXXXXX", root ? root : "/tmp");
  if (mkdtemp(path) == NULL) {
    perror("mkdtemp");
    exit(2);
  }
  return path;
}

branchline_engine *new_engine(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = NULL;
  branchline_engine_options options = BRANCHLINE_ENGINE_OPTIONS_INIT;
  char *directory = fresh_directory();
  options.agent_dir = directory;
  options.worker_threads = 2;
  CHECK_OK(branchline_engine_new(&options, &engine, &error));
  CHECK_OK(branchline_engine_add_scripted_model(
      engine, "scripted/abi",
      "{\"atEnd\":\"repeatLast\",\"chunk\":4,\"replies\":[{\"content\":[{\"type\":\"text\",\"text\":\"Hello from the "
      "script.\"}]}]}",
      &error));
  free(directory);
  return engine;
}

branchline_session *new_session(branchline_engine *engine, const char *cwd)
{
  branchline_error *error = NULL;
  branchline_session *session = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  const char *no_tools = NULL;
  options.cwd = cwd;
  options.in_memory = cwd == NULL;
  options.model = "scripted/abi";
  options.tools = &no_tools;
  options.tool_count = 0;
  CHECK_OK(branchline_session_create(engine, &options, &session, &error));
  return session;
}

branchline_session *session_of(branchline_engine *engine, const char *model, const char *cwd)
{
  branchline_error *error = NULL;
  branchline_session *session = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  options.cwd = cwd;
  options.in_memory = cwd == NULL;
  options.model = model;
  options.permissions = "allow";
  options.system_prompt = "Be a host.";
  CHECK_OK(branchline_session_create(engine, &options, &session, &error));
  return session;
}

void prompt(branchline_session *session, const char *text)
{
  branchline_error *error = NULL;
  CHECK_OK(branchline_session_prompt(session, text, NULL, &error));
  CHECK_OK(branchline_session_wait_idle(session, LONG, &error));
}

char *entry_of(branchline_session *session, const char *role, int n)
{
  branchline_error *error = NULL;
  char *tree = NULL;
  char wanted[64];
  char *found = NULL;
  char *at;
  CHECK_OK(branchline_session_tree(session, &tree, &error));
  snprintf(wanted, sizeof wanted, "\"role\":\"%s\"", role);
  for (at = strstr(tree, "{\"id\""); at != NULL && found == NULL; at = strstr(at + 1, "{\"id\"")) {
    char *end = strchr(at, '}');
    char *hit = strstr(at, wanted);
    if (hit != NULL && hit < end && n-- == 0) {
      found = field(at, "id");
    }
  }
  branchline_string_free(tree);
  CHECK(found != NULL);
  return found;
}

int leaf_has(branchline_session *session, const char *part)
{
  branchline_error *error = NULL;
  char *leaf = NULL, *json = NULL;
  int found;
  CHECK_OK(branchline_session_leaf(session, &leaf, &error));
  CHECK_OK(branchline_session_entry(session, leaf, &json, NULL, &error));
  found = strstr(json, part) != NULL;
  if (!found) fprintf(stderr, "no %s in %s\n", part, json);
  branchline_string_free(json);
  branchline_string_free(leaf);
  return found;
}

char *field(const char *json, const char *key)
{
  char wanted[64];
  const char *at, *end;
  char *text;
  snprintf(wanted, sizeof wanted, "\"%s\":\"", key);
  at = strstr(json, wanted);
  if (at == NULL) {
    return NULL;
  }
  at += strlen(wanted);
  end = strchr(at, '"');
  text = malloc((size_t)(end - at) + 1);
  memcpy(text, at, (size_t)(end - at));
  text[end - at] = '\0';
  return text;
}

int count_of(const char *text, const char *part)
{
  int count = 0;
  for (text = strstr(text, part); text != NULL; text = strstr(text + 1, part)) {
    count++;
  }
  return count;
}
