/* Permissions with questions to the host, and budgets. */
#include "check.h"

#include <pthread.h>

#define CALLS_BASH \
  "{\"atEnd\":\"repeatLast\",\"replies\":[{\"content\":[{\"type\":\"toolCall\",\"id\":\"c1\",\"name\":\"bash\"," \
  "\"arguments\":{\"command\":\"echo ran\"}}]},{\"content\":[{\"type\":\"text\",\"text\":\"Done.\"}]}]}"

typedef struct {
  const char *answer; /* NULL: free without one */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int asked, destroyed;
  int right; /* questions that were as they should be */
} judge;

static void setup(judge *self, const char *answer)
{
  memset(self, 0, sizeof *self);
  self->answer = answer;
  pthread_mutex_init(&self->lock, NULL);
  pthread_cond_init(&self->changed, NULL);
}

static void on_question(void *user_data, branchline_request *request)
{
  judge *self = user_data;
  const char *question = branchline_request_arguments(request);
  int right = branchline_request_type(request) == BRANCHLINE_REQUEST_PERMISSION &&
              strcmp(branchline_request_name(request), "bash") == 0 && strstr(question, "\"command\":\"echo ran\"") &&
              strstr(question, "\"effect\":\"execute\"");
  if (self->answer) branchline_request_complete(request, self->answer, NULL);
  branchline_request_free(request);
  pthread_mutex_lock(&self->lock);
  self->asked++;
  self->right += right;
  pthread_mutex_unlock(&self->lock);
}

static void on_destroy(void *user_data)
{
  judge *self = user_data;
  pthread_mutex_lock(&self->lock);
  self->destroyed++;
  pthread_cond_signal(&self->changed);
  pthread_mutex_unlock(&self->lock);
}

static void wait_destroyed(judge *self)
{
  pthread_mutex_lock(&self->lock);
  while (!self->destroyed) pthread_cond_wait(&self->changed, &self->lock);
  pthread_mutex_unlock(&self->lock);
  CHECK(self->destroyed == 1);
}

/* What the model sees after a run with one command under a policy; free it with branchline_string_free. */
static char *run_with(branchline_engine *engine, branchline_permissions *policy, const branchline_session_options *base)
{
  branchline_error *error = NULL;
  branchline_session *session = NULL;
  branchline_session_options options = *base;
  char *json = NULL;
  CHECK_OK(branchline_engine_add_scripted_model(engine, "command", CALLS_BASH, &error));
  options.in_memory = 1;
  options.model = "scripted/command";
  options.permission_policy = policy;
  CHECK_OK(branchline_session_create(engine, &options, &session, &error));
  prompt(session, "run it");
  CHECK_OK(branchline_session_context(session, &json, &error));
  branchline_session_free(session);
  return json;
}

static void test_questions(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  branchline_tool_callbacks callbacks = BRANCHLINE_TOOL_CALLBACKS_INIT;
  branchline_permissions *policy = NULL, *none = NULL;
  branchline_toolbox *toolbox = NULL;
  branchline_requests *requests = NULL;
  char *json;
  judge self;

  callbacks.user_data = &self;
  callbacks.on_call = on_question;
  callbacks.destroy = on_destroy;

  setup(&self, "\"allow\"");
  CHECK_OK(branchline_permissions_new(engine, "\"ask\"", &callbacks, &policy, &error));
  json = run_with(engine, policy, &options);
  CHECK(strstr(json, "ran\\n") != NULL && self.asked == 1 && self.right == 1);
  branchline_string_free(json);
  branchline_permissions_free(policy);
  wait_destroyed(&self);

  setup(&self, "{\"decision\":\"deny\",\"reason\":\"not on a Monday\"}");
  CHECK_OK(branchline_permissions_new(engine, "{\"preset\":\"ask\"}", &callbacks, &policy, &error));
  json = run_with(engine, policy, &options);
  CHECK(strstr(json, "not on a Monday") != NULL && strstr(json, "ran\\n") == NULL && self.right == 1);
  branchline_string_free(json);
  branchline_permissions_free(policy);
  wait_destroyed(&self);

  /* No answer is a denial, and so is no one to ask. */
  setup(&self, NULL);
  CHECK_OK(branchline_permissions_new(engine, "\"ask\"", &callbacks, &policy, &error));
  json = run_with(engine, policy, &options);
  CHECK(strstr(json, "ran\\n") == NULL && self.asked == 1);
  branchline_string_free(json);
  branchline_permissions_free(policy);
  wait_destroyed(&self);
  CHECK_OK(branchline_permissions_new(engine, "\"workspace\"", NULL, &policy, &error));
  json = run_with(engine, policy, &options);
  CHECK(strstr(json, "ran\\n") == NULL);
  branchline_string_free(json);

  /* A toolbox may do everything until it is told otherwise. */
  CHECK_OK(branchline_toolbox_new(engine, NULL, &toolbox, &error));
  CHECK_OK(branchline_toolbox_call(toolbox, "bash", "{\"command\":\"echo ran\"}", NULL, NULL, &json, &error));
  CHECK(strstr(json, "ran\\n") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_toolbox_set_permissions(toolbox, policy, &error));
  CHECK_OK(branchline_toolbox_call(toolbox, "bash", "{\"command\":\"echo ran\"}", NULL, NULL, &json, &error));
  CHECK(strstr(json, "ran\\n") == NULL && strstr(json, "\"isError\":true") != NULL);
  branchline_string_free(json);
  branchline_toolbox_free(toolbox);
  branchline_permissions_free(policy);

  /* Without a queue there is nobody to ask. */
  CHECK_OK(branchline_requests_new(&requests, &error));
  CHECK_OK(branchline_requests_permissions(requests, "\"ask\"", &policy, &error));
  branchline_requests_free(requests);
  json = run_with(engine, policy, &options);
  CHECK(strstr(json, "ran\\n") == NULL);
  branchline_string_free(json);
  branchline_permissions_free(policy);
  branchline_permissions_free(NULL);

  setup(&self, NULL);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_permissions_new(engine, "ask", &callbacks, &none, &error));
  CHECK(self.destroyed == 1);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_permissions_new(engine, "{\"root\":1}", NULL, &none, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_permissions_new(engine, NULL, NULL, &none, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_permissions_new(engine, "\"ask\"", NULL, NULL, &error));
  CHECK(none == NULL);
}

static void on_hook(void *user_data, branchline_request *request)
{
  judge *self = user_data;
  const char *told = branchline_request_arguments(request);
  branchline_request_kind kind = branchline_request_type(request);
  if (kind == BRANCHLINE_REQUEST_BEFORE_TOOL) {
    self->right += strstr(told, "\"command\":\"echo ran\"") != NULL;
    branchline_request_complete(request, "{\"arguments\":{\"command\":\"echo instead\"}}", NULL);
  } else if (kind == BRANCHLINE_REQUEST_AFTER_TOOL) {
    self->right += strstr(told, "instead\\n") != NULL;
    branchline_request_complete(request, self->answer, NULL);
  }
  branchline_request_free(request);
}

static void test_hooks(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  branchline_tool_callbacks callbacks = BRANCHLINE_TOOL_CALLBACKS_INIT;
  branchline_permissions *allow = NULL;
  branchline_tool_hook *hook = NULL, *none = NULL;
  char *json;
  judge self;

  callbacks.user_data = &self;
  callbacks.on_call = on_hook;
  callbacks.destroy = on_destroy;
  CHECK_OK(branchline_permissions_new(engine, "\"allow\"", NULL, &allow, &error));
  setup(&self, "{\"content\":\"seen by the host\"}");
  CHECK_OK(branchline_tool_hook_new(engine, BRANCHLINE_HOOK_BEFORE_TOOL | BRANCHLINE_HOOK_AFTER_TOOL, &callbacks, &hook, &error));
  options.tool_hooks = &hook;
  options.tool_hook_count = 1;
  json = run_with(engine, allow, &options);
  CHECK(strstr(json, "seen by the host") != NULL && strstr(json, "ran\\n") == NULL && self.right == 2);
  branchline_string_free(json);
  branchline_tool_hook_free(hook);
  wait_destroyed(&self);
  setup(&self, NULL);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_hook_new(engine, 4, &callbacks, &none, &error));
  CHECK(self.destroyed == 1);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_hook_new(engine, 1, NULL, &none, &error));
  branchline_tool_hook_free(NULL);
  branchline_permissions_free(allow);
}

static void test_budget(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  branchline_budget *budget = NULL;
  branchline_permissions *allow = NULL;
  char *json = NULL;

  CHECK_OK(branchline_permissions_new(engine, "\"allow\"", NULL, &allow, &error));
  CHECK_OK(branchline_budget_new("{\"requests\":1}", &budget, &error));
  options.budgets = &budget;
  options.budget_count = 1;
  json = run_with(engine, allow, &options); /* the second request is not sent */
  CHECK(strstr(json, "ran\\n") != NULL && strstr(json, "Done.") == NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_budget_used(budget, &json, &error));
  CHECK(strstr(json, "\"requests\":1,") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_budget_set_limits(budget, "{\"requests\":9}", &error));
  CHECK_OK(branchline_budget_limits(budget, &json, &error));
  CHECK(strstr(json, "\"requests\":9,") != NULL && strstr(json, "\"cost\":null") != NULL);
  branchline_string_free(json);
  json = run_with(engine, allow, &options);
  CHECK(strstr(json, "Done.") != NULL);
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_budget_set_limits(budget, "{\"request\":9}", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_budget_new("{\"cost\":-1}", &budget, &error));
  branchline_permissions_free(allow);
  branchline_budget_free(budget);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE, branchline_budget_used(budget, &json, &error));
  branchline_budget_free(NULL);
}

void test_policy(void)
{
  branchline_engine *engine = new_engine();
  test_questions(engine);
  test_hooks(engine);
  test_budget(engine);
  branchline_engine_free(engine);
}
