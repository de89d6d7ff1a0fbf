/* Tools of the host's: requests answered inside the callback, from other threads, never, or too late. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

#define WEATHER \
  "{\"name\":\"weather\",\"description\":\"Current weather.\",\"parameters\":{\"type\":\"object\"," \
  "\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}}"

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  void (*act)(void *self, branchline_request *request);
  branchline_session *session;
  branchline_engine *engine;
  branchline_request *request; /* kept, or the one that was cancelled */
  int calls, cancelled, destroyed, after_destroy;
} host;

static void setup(host *self, void (*act)(void *, branchline_request *))
{
  memset(self, 0, sizeof *self);
  pthread_mutex_init(&self->lock, NULL);
  pthread_cond_init(&self->changed, NULL);
  self->act = act;
}

static void bump(host *self, int *what)
{
  pthread_mutex_lock(&self->lock);
  ++*what;
  self->after_destroy += what != &self->destroyed && self->destroyed;
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
}

/* Waits until a counter has reached a number. */
static void wait_count(host *self, const int *what, int count)
{
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += LONG / 1000;
  pthread_mutex_lock(&self->lock);
  while (*what < count && pthread_cond_timedwait(&self->changed, &self->lock, &end) == 0) {
  }
  CHECK(*what == count);
  pthread_mutex_unlock(&self->lock);
}

static void wait_for(host *self, const int *what)
{
  wait_count(self, what, 1);
}

static void on_call(void *user_data, branchline_request *request)
{
  host *self = user_data;
  self->act(self, request);
  bump(self, &self->calls);
}

static void on_cancel(void *user_data, branchline_request *request)
{
  host *self = user_data;
  CHECK(branchline_request_is_cancelled(request) && self->request == request);
  bump(self, &self->cancelled);
}

static void destroy(void *user_data)
{
  host *self = user_data;
  bump(self, &self->destroyed);
}

static branchline_tool *new_tool(branchline_engine *engine, host *self)
{
  branchline_error *error = NULL;
  branchline_tool *tool = NULL;
  branchline_tool_callbacks callbacks = BRANCHLINE_TOOL_CALLBACKS_INIT;
  callbacks.user_data = self;
  callbacks.on_call = on_call;
  callbacks.on_cancel = on_cancel;
  callbacks.destroy = destroy;
  CHECK_OK(branchline_tool_new(engine, WEATHER, &callbacks, &tool, &error));
  return tool;
}

/* Calls the tool and gives the result. */
static char *ask(branchline_toolbox *toolbox)
{
  branchline_error *error = NULL;
  char *json = NULL;
  CHECK_OK(branchline_toolbox_call(toolbox, "weather", "{\"city\":\"Kyiv\"}", NULL, NULL, &json, &error));
  return json;
}

static void answer_inside(void *user_data, branchline_request *request)
{
  branchline_error *error = NULL;
  static const char text[] = "\"\"";
  (void)user_data;
  CHECK(branchline_request_type(request) == BRANCHLINE_REQUEST_TOOL);
  CHECK(strcmp(branchline_request_name(request), "weather") == 0);
  CHECK(strcmp(branchline_request_arguments(request), "{\"city\":\"Kyiv\"}") == 0);
  CHECK(*branchline_request_session_id(request) == '\0' && *branchline_request_call_id(request) == '\0');
  CHECK(*branchline_request_cwd(request) == '/');
  CHECK(!branchline_request_is_cancelled(request));
  CHECK_OK(branchline_request_progress(request, "\"looking\"", &error));
  CHECK_OK(branchline_request_progress_n(request, text, 2, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_progress(request, "{\"content\":1}", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_complete(request, "nonsense", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_complete(request, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_complete(request, "{\"content\":1}", &error));
  /* Numbers beyond 2^53 and NUL travel. */
  CHECK_OK(branchline_request_complete(
      request, "{\"content\":\"sun\\u0000ny\",\"structuredContent\":{\"z\":9007199254740993,\"a\":1}}", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_complete(request, "\"again\"", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_fail(request, "again", &error));
  CHECK(branchline_request_free(request) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_request_free(request) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK(branchline_request_name(request) == NULL && branchline_request_type(request) == BRANCHLINE_REQUEST_NONE);
}

static void fail_inside(void *user_data, branchline_request *request)
{
  branchline_error *error = NULL;
  (void)user_data;
  CHECK_OK(branchline_request_fail_n(request, "no su\0ch city", 13, &error));
  branchline_request_free(request);
}

static void forget(void *user_data, branchline_request *request)
{
  (void)user_data;
  CHECK(branchline_request_free(request) == BRANCHLINE_STATUS_OK);
}

static void keep(void *user_data, branchline_request *request)
{
  host *self = user_data;
  pthread_mutex_lock(&self->lock);
  self->request = request;
  pthread_mutex_unlock(&self->lock);
}

/* Everything from inside a tool that a session calls; waiting for that session is refused. */
static void call_back(void *user_data, branchline_request *request)
{
  host *self = user_data;
  branchline_error *error = NULL;
  char *json = NULL;
  CHECK(strcmp(branchline_request_call_id(request), "c1") == 0);
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_session_wait_idle(self->session, LONG, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_engine_shutdown(self->engine, LONG, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_RUNNING, branchline_session_prompt(self->session, "more", NULL, &error));
  CHECK_OK(branchline_session_set_name(self->session, "named by a tool", &error));
  CHECK_OK(branchline_session_append_custom(self->session, "inside", "1", NULL, &error));
  CHECK_OK(branchline_session_state(self->session, &json, &error));
  branchline_string_free(json);
  CHECK_OK(branchline_request_complete_n(request, "[1,2]garbage", 5, &error));
  branchline_request_free(request);
}

static void abort_inside(void *user_data, branchline_request *request)
{
  host *self = user_data;
  branchline_error *error = NULL;
  CHECK_OK(branchline_session_abort(self->session, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_CANCELLED, branchline_request_complete(request, "\"too late\"", &error));
  branchline_request_free(request);
}

static void free_engine_inside(void *user_data, branchline_request *request)
{
  host *self = user_data;
  CHECK(branchline_engine_free(self->engine) == BRANCHLINE_STATUS_OK);
  branchline_request_free(request);
}

static void *answer_later(void *user_data)
{
  host *self = user_data;
  branchline_error *error = NULL;
  wait_for(self, &self->calls);
  CHECK_OK(branchline_request_complete(self->request, "{\"temperature\":21}", &error));
  branchline_request_free(self->request);
  return NULL;
}

static void in_a_toolbox(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_toolbox *toolbox = NULL;
  branchline_tool *tool;
  branchline_call *call = NULL;
  pthread_t thread;
  char *json = NULL;
  host self;

  CHECK_OK(branchline_toolbox_new(engine, NULL, &toolbox, &error));
  setup(&self, answer_inside);
  tool = new_tool(engine, &self);
  CHECK_OK(branchline_toolbox_add_tool(toolbox, tool, &error));
  CHECK(branchline_tool_free(tool) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_tool_free(tool) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE, branchline_toolbox_add_tool(toolbox, tool, &error));
  json = ask(toolbox);
  CHECK(strstr(json, "sun\\u0000ny") != NULL && strstr(json, "{\"z\":9007199254740993,\"a\":1}") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_toolbox_call(toolbox, "weather", "{}", NULL, NULL, &json, &error));
  CHECK(strstr(json, "Validation failed") != NULL);
  wait_for(&self, &self.calls);
  branchline_string_free(json);

  self.act = fail_inside;
  json = ask(toolbox);
  CHECK(strstr(json, "no su\\u0000ch city") != NULL && strstr(json, "\"isError\":true") != NULL);
  branchline_string_free(json);
  self.act = forget;
  json = ask(toolbox);
  CHECK(strstr(json, "gave no answer") != NULL && strstr(json, "\"isError\":true") != NULL);
  branchline_string_free(json);

  wait_count(&self, &self.calls, 3); /* a call may be over before its callback is */
  self.act = keep;
  self.calls = 0;
  pthread_create(&thread, NULL, answer_later, &self);
  json = ask(toolbox);
  CHECK(strstr(json, "\"structuredContent\":{\"temperature\":21}") != NULL);
  branchline_string_free(json);
  pthread_join(thread, NULL);

  /* A call that is cancelled is over at once, and the host is told. */
  self.calls = 0;
  self.request = NULL;
  CHECK_OK(branchline_toolbox_start(toolbox, "weather", "{\"city\":\"Kyiv\"}", NULL, &call, &error));
  wait_for(&self, &self.calls);
  CHECK_OK(branchline_call_cancel(call, &error));
  CHECK_OK(branchline_call_wait(call, LONG, &json, &error));
  CHECK(strstr(json, "Operation aborted") != NULL);
  branchline_string_free(json);
  branchline_call_free(call);
  wait_for(&self, &self.cancelled);
  CHECK_STATUS(BRANCHLINE_STATUS_CANCELLED, branchline_request_complete(self.request, "1", &error));
  branchline_request_free(self.request);

  /* The last that uses it goes. */
  CHECK(self.destroyed == 0);
  branchline_toolbox_free(toolbox);
  wait_for(&self, &self.destroyed);
  CHECK(self.after_destroy == 0);
}

#define CALLS_WEATHER \
  "{\"atEnd\":\"repeatLast\",\"replies\":[{\"content\":[{\"type\":\"toolCall\",\"id\":\"c1\",\"name\":\"weather\"," \
  "\"arguments\":{\"city\":\"Kyiv\"}}]},{\"content\":[{\"type\":\"text\",\"text\":\"Thanks.\"}]}]}"

static branchline_session *session_with(branchline_engine *engine, branchline_tool *tool)
{
  branchline_error *error = NULL;
  branchline_session *session = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  const char *names = "weather";
  CHECK_OK(branchline_engine_add_scripted_model(engine, "weather", CALLS_WEATHER, &error));
  options.in_memory = 1;
  options.model = "scripted/weather";
  options.tools = &names;
  options.tool_count = 1;
  options.custom_tools = &tool;
  options.custom_tool_count = tool != NULL;
  options.permissions = "allow";
  CHECK_OK(branchline_session_create(engine, &options, &session, &error));
  return session;
}

static void in_a_session(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_session *copy = NULL;
  branchline_tool *tool;
  char *json = NULL;
  host self;

  setup(&self, call_back);
  self.engine = engine;
  tool = new_tool(engine, &self);
  self.session = session_with(engine, tool);
  branchline_tool_free(tool);
  prompt(self.session, "Weather?");
  wait_for(&self, &self.calls);
  CHECK_OK(branchline_session_context(self.session, &json, &error));
  CHECK(strstr(json, "\"text\":\"[1,2]\"") != NULL && strstr(json, "Thanks.") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_session_name(self.session, &json, &error));
  CHECK(strcmp(json, "named by a tool") == 0);
  branchline_string_free(json);

  /* A fork has the tool too; both gone let it go. */
  CHECK_OK(branchline_session_clone(self.session, &copy, &error));
  branchline_session_free(self.session);
  self.session = copy;
  prompt(copy, "Again?");
  CHECK(self.destroyed == 0);
  branchline_session_free(copy);
  wait_for(&self, &self.destroyed);

  /* As a tool of the engine, and an abort from inside. */
  setup(&self, abort_inside);
  tool = new_tool(engine, &self);
  CHECK_OK(branchline_engine_add_tool(engine, tool, &error));
  branchline_tool_free(tool);
  self.session = session_with(engine, NULL);
  prompt(self.session, "Weather?");
  wait_for(&self, &self.calls);
  CHECK_OK(branchline_session_context(self.session, &json, &error));
  CHECK(strstr(json, "Operation aborted") != NULL && self.cancelled <= 1);
  branchline_string_free(json);
  /* The engine's end: destroy has run, though a session of it is not freed yet. */
  CHECK(branchline_engine_free(engine) == BRANCHLINE_STATUS_OK);
  CHECK(self.destroyed == 1 && self.after_destroy == 0);
  branchline_session_free(self.session);

  /* Freeing the engine inside the tool of a run. */
  engine = new_engine();
  setup(&self, free_engine_inside);
  self.engine = engine;
  tool = new_tool(engine, &self);
  self.session = session_with(engine, tool);
  CHECK_OK(branchline_session_prompt(self.session, "Weather?", NULL, &error));
  wait_for(&self, &self.destroyed);
  branchline_tool_free(tool);
  branchline_session_free(self.session);

  /* A request that is kept while everything else goes. */
  engine = new_engine();
  setup(&self, keep);
  tool = new_tool(engine, &self);
  self.session = session_with(engine, tool);
  CHECK_OK(branchline_session_prompt(self.session, "Weather?", NULL, &error));
  wait_for(&self, &self.calls);
  CHECK(branchline_engine_free(engine) == BRANCHLINE_STATUS_OK);
  CHECK(self.destroyed == 1);
  CHECK(branchline_request_is_cancelled(self.request));
  CHECK(strcmp(branchline_request_name(self.request), "weather") == 0);
  branchline_request_free(self.request);
  branchline_tool_free(tool);
  branchline_session_free(self.session);
}

static void failures(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session *session = NULL;
  branchline_tool *tool = NULL;
  branchline_tool_callbacks callbacks = BRANCHLINE_TOOL_CALLBACKS_INIT;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  host self;
  setup(&self, forget);
  callbacks.user_data = &self;
  callbacks.destroy = destroy;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_new(engine, WEATHER, &callbacks, &tool, &error));
  CHECK(self.destroyed == 1);
  callbacks.on_call = on_call;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_new(NULL, WEATHER, &callbacks, &tool, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_new(engine, "{}", &callbacks, &tool, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_new(engine, NULL, &callbacks, &tool, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_new(engine, WEATHER, &callbacks, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_new_n(engine, WEATHER, 5, &callbacks, &tool, &error));
  CHECK(self.destroyed == 6 && tool == NULL);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_new(engine, WEATHER, NULL, &tool, &error));
  callbacks.struct_size = 3;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_tool_new(engine, WEATHER, &callbacks, &tool, &error));
  CHECK(self.destroyed == 6);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_add_tool(engine, NULL, &error));
  options.in_memory = 1;
  options.custom_tool_count = 1;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  options.custom_tools = &tool;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_create(engine, &options, &session, &error));
  CHECK(branchline_tool_free(NULL) == BRANCHLINE_STATUS_OK && branchline_request_free(NULL) == BRANCHLINE_STATUS_OK);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_complete(NULL, "1", &error));
}

static void *wait_for_end(void *requests)
{
  branchline_error *error = NULL;
  branchline_request *request = NULL;
  branchline_status status = branchline_requests_next(requests, LONG, &request, &error);
  /* The other, if this thread came late. */
  CHECK(status == BRANCHLINE_STATUS_END || status == BRANCHLINE_STATUS_INVALID_HANDLE);
  branchline_error_free(error);
  return NULL;
}

static int is_readable(int fd, int time_ms)
{
  struct pollfd poller;
  poller.fd = fd;
  poller.events = POLLIN;
  return poll(&poller, 1, time_ms);
}

/* Pull: the host takes requests on its own thread, or in a main loop. */
static void pulled(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_requests *requests = NULL;
  branchline_request *request = NULL;
  branchline_tool *tool = NULL;
  branchline_toolbox *toolbox = NULL;
  branchline_call *call = NULL;
  pthread_t thread;
  char *json = NULL;
  int fd = -1;

  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_requests_new(NULL, &error));
  CHECK_OK(branchline_requests_new(&requests, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_requests_tool(requests, "{}", &tool, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_requests_tool_n(requests, WEATHER, 9, &tool, &error));
  CHECK_OK(branchline_requests_tool(requests, WEATHER, &tool, &error));
  CHECK_OK(branchline_toolbox_new(engine, NULL, &toolbox, &error));
  CHECK_OK(branchline_toolbox_add_tool(toolbox, tool, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_TIMEOUT, branchline_requests_next(requests, 0, &request, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_requests_fd(requests, NULL, &error));
  CHECK_OK(branchline_requests_fd(requests, &fd, &error));
  CHECK(fd >= 0 && is_readable(fd, 0) == 0);

  CHECK_OK(branchline_toolbox_start(toolbox, "weather", "{\"city\":\"Kyiv\"}", NULL, &call, &error));
  CHECK(is_readable(fd, LONG) == 1);
  CHECK_OK(branchline_requests_next(requests, 0, &request, &error));
  CHECK(is_readable(fd, 0) == 0);
  CHECK(strcmp(branchline_request_arguments(request), "{\"city\":\"Kyiv\"}") == 0);
  CHECK_OK(branchline_request_complete(request, "\"sunny\"", &error));
  CHECK(branchline_request_free(request) == BRANCHLINE_STATUS_OK);
  CHECK_OK(branchline_call_wait(call, LONG, &json, &error));
  CHECK(strstr(json, "sunny") != NULL);
  branchline_string_free(json);
  branchline_call_free(call);

  /* One that was cancelled in the queue is not handed out; one that was taken says so. */
  CHECK_OK(branchline_toolbox_start(toolbox, "weather", "{\"city\":\"a\"}", NULL, &call, &error));
  CHECK_OK(branchline_requests_next(requests, LONG, &request, &error));
  CHECK_OK(branchline_call_cancel(call, &error));
  CHECK_OK(branchline_call_wait(call, LONG, NULL, &error));
  branchline_call_free(call);
  CHECK(branchline_request_is_cancelled(request));
  branchline_request_free(request);
  CHECK_STATUS(BRANCHLINE_STATUS_TIMEOUT, branchline_requests_next(requests, 10, &request, &error));
  CHECK(is_readable(fd, 0) == 0);

  /* The queue goes, with somebody who waits. */
  pthread_create(&thread, NULL, wait_for_end, requests);
  {
    const struct timespec moment = { 0, 50000000 };
    nanosleep(&moment, NULL);
  }
  CHECK(branchline_requests_free(requests) == BRANCHLINE_STATUS_OK);
  pthread_join(thread, NULL);
  CHECK(branchline_requests_free(requests) == BRANCHLINE_STATUS_INVALID_HANDLE);
  json = ask(toolbox);
  CHECK(strstr(json, "takes no more calls") != NULL);
  branchline_string_free(json);
  branchline_tool_free(tool);
  branchline_toolbox_free(toolbox);
}

void test_tools(void)
{
  branchline_engine *engine = new_engine();
  failures(engine);
  in_a_toolbox(engine);
  pulled(engine);
  branchline_engine_free(engine);
  in_a_session();
}
