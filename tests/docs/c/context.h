/* What the C and C++ blocks of the pages take for granted: objects by the names the pages use, and functions of the
 * reader's own. `main` makes them, runs the block, and ends with 1 if an error is left behind. */
#ifndef CONTEXT_H
#define CONTEXT_H

#include <branchline.h>

#ifdef __cplusplus
#include <string>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static branchline_error *error = NULL;
static branchline_engine *engine = NULL;
static branchline_session *session = NULL, *forked = NULL;
static branchline_toolbox *toolbox = NULL;
static branchline_tool *tool = NULL;
static branchline_call *call = NULL;
static branchline_request *request = NULL;
static char *json = NULL;
static const char *key = "a key";

/* A block has come to its end. */
static void finished(branchline_error *fault)
{
  if (fault != NULL) {
    fprintf(stderr, "%s: %s\n", PLACE, branchline_error_message(fault));
    exit(1);
  }
}

static void print_text(void *user_data, const branchline_event *event)
{
  (void)user_data;
  if (branchline_event_type(event) == BRANCHLINE_EVENT_TEXT_DELTA) {
    fwrite(branchline_event_text(event), 1, branchline_event_text_length(event), stdout);
  }
}

static void on_done(void *user_data, const char *result_json)
{
  (void)user_data;
  (void)result_json;
}

/* A queue of the reader's. */
static void put_into_my_queue(void *user_data, branchline_request *taken)
{
  (void)user_data;
  branchline_request_free(taken);
}

/* The first user message of a session. */
static const char *question(branchline_session *of)
{
  static char id[64];
  char *tree = NULL, *at;
  finished((branchline_session_tree(of, &tree, &error), error));
  for (at = strstr(tree, "{\"id\":\""); at != NULL; at = strstr(at + 1, "{\"id\":\"")) {
    const char *end = strchr(at, '}'), *role = strstr(at, "\"role\":\"user\"");
    if (role != NULL && role < end) {
      snprintf(id, sizeof id, "%.*s", (int)strcspn(at + 7, "\""), at + 7);
      break;
    }
  }
  branchline_string_free(tree);
  return id;
}
#define entry_id question(session)

static void block(void);

int main(void)
{
  branchline_requests *requests = NULL;
  branchline_tool *asking = NULL;
  branchline_call *asked = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  branchline_engine_new(NULL, &engine, &error);
  finished(error);
  options.model = "scripted/demo";
  options.permissions = "allow";
  branchline_session_create(engine, &options, &session, &error);
  finished(error);
  branchline_session_prompt(session, "Hello.", NULL, &error);
  finished(error);
  branchline_session_wait_idle(session, BRANCHLINE_WAIT_FOREVER, &error);
  finished(error);
  /* A call that waits for its answer. */
  branchline_requests_new(&requests, &error);
  finished(error);
  branchline_requests_tool(requests, "{\"name\":\"ask\",\"description\":\"Asks.\"}", &asking, &error);
  finished(error);
  branchline_toolbox_new(engine, NULL, &toolbox, &error);
  finished(error);
  branchline_toolbox_add_tool(toolbox, asking, &error);
  finished(error);
  branchline_toolbox_start(toolbox, "ask", "{}", NULL, &asked, &error);
  finished(error);
  branchline_requests_next(requests, BRANCHLINE_WAIT_FOREVER, &request, &error);
  finished(error);
  /* A block may put others in their place. */
  branchline_engine *first = engine;
  block();
  if (engine != first) {
    branchline_engine_free(engine);
  }
  branchline_engine_free(first);
  return 0;
}

#endif
