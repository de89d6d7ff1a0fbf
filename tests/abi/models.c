/* Models: the catalogue, models that the host serves, replays of session files. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <time.h>

#define IDE "{\"name\":\"ide\",\"models\":[\"chat\",{\"id\":\"large\",\"contextWindow\":200000,\"thinkingLevels\":[\"off\",\"high\"]}]}"

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  void (*act)(void *self, branchline_request *request);
  branchline_request *request; /* the last one */
  branchline_session *session;
  int calls, cancelled, destroyed;
} host;

static void bump(host *self, int *what)
{
  pthread_mutex_lock(&self->lock);
  ++*what;
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
}

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

static void on_call(void *user_data, branchline_request *request)
{
  host *self = user_data;
  CHECK(branchline_request_type(request) == BRANCHLINE_REQUEST_MODEL);
  CHECK(strcmp(branchline_request_name(request), "ide/chat") == 0);
  CHECK(*branchline_request_session_id(request) != '\0' && *branchline_request_call_id(request) == '\0');
  self->request = request;
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

static branchline_tool_callbacks callbacks_of(host *self, void (*act)(void *, branchline_request *))
{
  branchline_tool_callbacks callbacks = BRANCHLINE_TOOL_CALLBACKS_INIT;
  memset(self, 0, sizeof *self);
  pthread_mutex_init(&self->lock, NULL);
  pthread_cond_init(&self->changed, NULL);
  self->act = act;
  callbacks.user_data = self;
  callbacks.on_call = on_call;
  callbacks.on_cancel = on_cancel;
  callbacks.destroy = destroy;
  return callbacks;
}

/* An id that nobody described, and patterns. */
static void choosing(branchline_engine *engine)
{
  static const char *const patterns[] = { "mine/*:high", "nobody/*" };
  branchline_error *error = NULL;
  char *json = NULL;
  CHECK_OK(branchline_engine_find_model_or_custom(engine, "small", &json, &error));
  CHECK(strstr(json, "mine/small") && !strstr(json, "warning"));
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_UNKNOWN_MODEL, branchline_engine_find_model(engine, "mine/large", &json, &error));
  CHECK_OK(branchline_engine_find_model_or_custom(engine, "mine/large", &json, &error));
  CHECK(strstr(json, "\"name\":\"mine/large\"") && strstr(json, "\"warning\":\"nothing is known of the model mine/large"));
  branchline_string_free(json);
  CHECK_OK(branchline_engine_find_model(engine, "mine/large", &json, &error));
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_UNKNOWN_MODEL,
               branchline_engine_find_model_or_custom(engine, "nobody/none", &json, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_find_model_or_custom(engine, NULL, &json, &error));

  CHECK_OK(branchline_engine_set_key(engine, "mine", "sk-d", false, &error));
  CHECK_OK(branchline_engine_models_in_scope(engine, patterns, 2, &json, &error));
  CHECK(strstr(json, "{\"models\":[{\"model\":{\"name\":\"mine/") && strstr(json, "\"warnings\":[\"") &&
        strstr(json, "nobody/*"));
  branchline_string_free(json);
  CHECK_OK(branchline_engine_models_in_scope(engine, NULL, 0, &json, &error));
  CHECK(strcmp(json, "{\"models\":[],\"warnings\":[]}") == 0);
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_models_in_scope(engine, NULL, 2, &json, &error));
  CHECK_OK(branchline_engine_set_key(engine, "mine", NULL, false, &error));
}

static void catalogue(void)
{
  static const char config[] =
    "{\"builtinModels\":false,\"environment\":false,\"keys\":{\"other\":\"sk-c\"},\"models\":{\"providers\":{\"mine\":"
    "{\"baseUrl\":\"https://models.example\",\"api\":\"openai-completions\",\"models\":[{\"id\":\"small\"}]}}}}";
  branchline_error *error = NULL;
  branchline_engine *engine = NULL;
  branchline_engine_options options = BRANCHLINE_ENGINE_OPTIONS_INIT;
  char *json = NULL;

  options.config_json = config;
  CHECK_OK(branchline_engine_new(&options, &engine, &error));
  CHECK_OK(branchline_engine_models(engine, &json, &error));
  CHECK(strstr(json, "\"name\":\"mine/small\"") && strstr(json, "\"name\":\"scripted/demo\""));
  CHECK(!strstr(json, "anthropic/") && !strstr(json, "sk-c"));
  branchline_string_free(json);
  CHECK_OK(branchline_engine_available_models(engine, &json, &error));
  CHECK(!strstr(json, "mine/small"));
  branchline_string_free(json);
  CHECK_OK(branchline_engine_set_key(engine, "mine", "sk-d", true, &error));
  CHECK_OK(branchline_engine_available_models(engine, &json, &error));
  CHECK(strstr(json, "mine/small") && !strstr(json, "sk-d"));
  branchline_string_free(json);
  CHECK_OK(branchline_engine_set_key(engine, "mine", NULL, false, &error));
  CHECK_OK(branchline_engine_available_models(engine, &json, &error));
  CHECK(!strstr(json, "mine/small"));
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_set_key(engine, "mine", "", false, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_set_key(engine, NULL, "sk", false, &error));

  CHECK_OK(branchline_engine_configure_models(
    engine, "{\"providers\":{\"mine\":{\"modelOverrides\":{\"small\":{\"contextWindow\":4096}}}}}", &error));
  CHECK_OK(branchline_engine_find_model(engine, "small", &json, &error));
  CHECK(strstr(json, "{\"model\":{\"name\":\"mine/small\"") && strstr(json, "\"contextWindow\":4096") &&
        strstr(json, "\"thinkingLevel\":null"));
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_UNKNOWN_MODEL, branchline_engine_find_model(engine, "nobody/none", &json, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT,
               branchline_engine_configure_models(engine, "{\"providers\":{\"mine\":{\"baseUrl\":1}}}", &error));
  choosing(engine);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_models(engine, NULL, &error));
  CHECK_OK(branchline_engine_model_problems(engine, &json, &error));
  CHECK(strcmp(json, "[]") == 0);
  branchline_string_free(json);
  branchline_engine_free(engine);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE, branchline_engine_models(engine, &json, &error));

  engine = NULL;
  options.config_json = "{\"keys\":{\"mine\":[\"sk-secret\"]}}";
  CHECK(branchline_engine_new(&options, &engine, &error) == BRANCHLINE_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(branchline_error_message(error), "keys.mine") && !strstr(branchline_error_message(error), "sk-secret"));
  branchline_error_free(error);
  error = NULL;
  options.config_json = "{\"modelFile\":\"x\"}";
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_new(&options, &engine, &error));
  options.config_json = "{";
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_new(&options, &engine, &error));
  CHECK(engine == NULL);
}

/* Thinking, text and a call in pieces; the session runs the call and asks again. */
static void stream(void *user_data, branchline_request *request)
{
  branchline_error *error = NULL;
  static const char call[] = "{\"type\":\"toolcall\",\"name\":\"bash\",\"arguments\":{\"command\":\"echo ran\"}}, and more";
  const char *asked = branchline_request_arguments(request);
  (void)user_data;
  CHECK(strstr(asked, "\"systemPrompt\":\"Be a host.") && strstr(asked, "\"purpose\":\"turn\""));
  if (strstr(asked, "\"role\":\"toolResult\"")) {
    CHECK(strstr(asked, "ran\\n") != NULL);
    CHECK_OK(branchline_request_push(request, "{\"type\":\"usage\",\"usage\":{\"input\":5,\"output\":2}}", &error));
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_complete(request, "{\"type\":\"x\"}", &error));
    CHECK_OK(branchline_request_complete(request, "[\"It \", {\"type\":\"text_delta\",\"delta\":\"ran.\"}]", &error));
  } else {
    CHECK_OK(branchline_request_push(request, "{\"type\":\"thinking\",\"text\":\"hm\"}", &error));
    CHECK_OK(branchline_request_push(request, "\"I call\"", &error));
    CHECK_OK(branchline_request_push_n(request, call, strlen(call) - strlen(", and more"), &error));
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_push(request, "{}", &error));
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_push(request, "nonsense", &error));
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_push(request, NULL, &error));
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_progress(request, "\"half\"", &error));
    CHECK_OK(branchline_request_complete(request, "null", &error));
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_push(request, "\"late\"", &error));
  }
  CHECK(branchline_request_free(request) == BRANCHLINE_STATUS_OK);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE, branchline_request_push(request, "\"later\"", &error));
}

static void fail(void *user_data, branchline_request *request)
{
  host *self = user_data;
  branchline_error *error = NULL;
  if (self->session) {
    CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_session_wait_idle(self->session, LONG, &error));
  }
  CHECK_OK(branchline_request_push(request, "\"half an\"", &error));
  CHECK_OK(branchline_request_fail(request, "the model is asleep", &error));
  branchline_request_free(request);
}

static void forget(void *user_data, branchline_request *request)
{
  (void)user_data;
  branchline_request_free(request);
}

static void keep(void *user_data, branchline_request *request)
{
  branchline_error *error = NULL;
  (void)user_data;
  CHECK_OK(branchline_request_push(request, "\"begun\"", &error));
}

static void host_models(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_session *session;
  branchline_events *events = NULL;
  const branchline_event *event;
  char *json = NULL;
  host self, other;
  branchline_tool_callbacks callbacks = callbacks_of(&self, stream);

  CHECK_OK(branchline_engine_add_host_provider(engine, IDE, &callbacks, &error));
  CHECK_OK(branchline_engine_find_model(engine, "large:high", &json, &error));
  CHECK(strstr(json, "\"name\":\"ide/large\"") && strstr(json, "\"thinkingLevel\":\"high\""));
  branchline_string_free(json);
  session = session_of(engine, "ide/chat", NULL);
  prompt(session, "Call it.");
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "I call") && strstr(json, "It ran.") && strstr(json, "\"thinking\":\"hm\""));
  branchline_string_free(json);
  wait_count(&self, &self.calls, 2);

  self.act = fail;
  self.session = session;
  prompt(session, "Fail.");
  CHECK(leaf_has(session, "\"errorMessage\":\"the model is asleep\"") && leaf_has(session, "half an"));
  self.act = forget;
  prompt(session, "Forget.");
  CHECK(leaf_has(session, "stopped without finishing"));

  /* An abort while it writes: the host hears of it, and what was written stays. */
  self.act = keep;
  CHECK_OK(branchline_session_events(session, NULL, &events, &error));
  CHECK_OK(branchline_session_prompt(session, "Begin.", NULL, &error));
  do {
    CHECK_OK(branchline_events_next(events, LONG, &event, &error));
  } while (branchline_event_type(event) != BRANCHLINE_EVENT_TEXT_DELTA);
  branchline_events_free(events);
  CHECK_OK(branchline_session_abort(session, &error));
  wait_count(&self, &self.cancelled, 1);
  CHECK(branchline_request_is_cancelled(self.request));
  CHECK_STATUS(BRANCHLINE_STATUS_CANCELLED, branchline_request_push(self.request, "\"more\"", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_CANCELLED, branchline_request_complete(self.request, "null", &error));
  branchline_request_free(self.request);
  CHECK(leaf_has(session, "begun") && leaf_has(session, "\"stopReason\":\"aborted\""));

  /* Another of the same name takes its place. */
  CHECK(self.destroyed == 0);
  callbacks = callbacks_of(&other, fail);
  CHECK_OK(branchline_engine_add_host_provider(engine, IDE, &callbacks, &error));
  wait_count(&self, &self.destroyed, 1);
  prompt(session, "Again.");
  wait_count(&other, &other.calls, 1);

  /* The engine ends in the middle of an answer. */
  other.act = keep;
  CHECK_OK(branchline_session_prompt(session, "Begin.", NULL, &error));
  wait_count(&other, &other.calls, 2);
  branchline_engine_free(engine);
  CHECK(other.destroyed == 1 && branchline_request_is_cancelled(other.request));
  branchline_request_free(other.request);
  branchline_session_free(session);

  engine = new_engine();
  callbacks = callbacks_of(&self, fail);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT,
               branchline_engine_add_host_provider(engine, "{\"name\":\"a/b\",\"models\":[\"m\"]}", &callbacks, &error));
  CHECK(self.destroyed == 1);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_add_host_provider(engine, IDE, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_add_host_provider(engine, NULL, &callbacks, &error));
  CHECK(self.destroyed == 2);
  branchline_engine_free(engine);
}

/* Two sessions ask at once, and a thread of the host's answers, the second first. */
static void a_queue_of_requests(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_requests *requests = NULL;
  branchline_request *asked[2] = { NULL, NULL };
  branchline_session *sessions[2];
  int n;

  CHECK_OK(branchline_requests_new(&requests, &error));
  CHECK_OK(branchline_requests_host_provider(requests, engine, IDE, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_requests_host_provider(requests, engine, "[]", &error));
  for (n = 0; n < 2; n++) {
    sessions[n] = session_of(engine, "ide/chat", NULL);
    CHECK_OK(branchline_session_prompt(sessions[n], n ? "second" : "first", NULL, &error));
    CHECK_OK(branchline_requests_next(requests, LONG, &asked[n], &error));
    CHECK(strstr(branchline_request_arguments(asked[n]), n ? "second" : "first") != NULL);
  }
  for (n = 1; n >= 0; n--) {
    CHECK_OK(branchline_request_complete(asked[n], n ? "\"to the second\"" : "\"to the first\"", &error));
    branchline_request_free(asked[n]);
    CHECK_OK(branchline_session_wait_idle(sessions[n], LONG, &error));
    CHECK(leaf_has(sessions[n], n ? "to the second" : "to the first"));
  }
  branchline_requests_free(requests);
  prompt(sessions[0], "Anybody?");
  CHECK(leaf_has(sessions[0], "takes no more requests"));
  branchline_session_free(sessions[0]);
  branchline_session_free(sessions[1]);
  branchline_engine_free(engine);
}

#define RECORDED \
  "[{\"content\":[{\"type\":\"toolCall\",\"id\":\"c1\",\"name\":\"bash\",\"arguments\":{\"command\":\"date +%s%N\"}}]}," \
  "{\"content\":[{\"type\":\"text\",\"text\":\"Now you know.\"}]}]"

static void replays(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_session *session;
  char *directory = fresh_directory();
  char *path = NULL, *json = NULL;

  CHECK_OK(branchline_engine_add_scripted_model(engine, "clock", RECORDED, &error));
  session = session_of(engine, "scripted/clock", directory);
  prompt(session, "What time is it?");
  CHECK_OK(branchline_session_path(session, &path, &error));
  branchline_session_free(session);

  CHECK_OK(branchline_engine_add_replay(engine, "tape", path, "{\"tools\":true}", &error));
  session = session_of(engine, "tape/clock", NULL);
  prompt(session, "What time is it?");
  CHECK(leaf_has(session, "Now you know."));
  CHECK_OK(branchline_engine_replay_divergence(engine, "tape", &json, &error));
  CHECK(strcmp(json, "null") == 0);
  branchline_string_free(json);
  prompt(session, "And the date?");
  CHECK(leaf_has(session, "left the recording"));
  CHECK_OK(branchline_engine_replay_divergence(engine, "tape", &json, &error));
  CHECK(strstr(json, "\"at\":4") && strstr(json, "\"recorded\":[]") && strstr(json, "And the date?"));
  branchline_string_free(json);
  branchline_session_free(session);

  /* Both sides, where the recording goes on otherwise. */
  CHECK_OK(branchline_engine_add_replay(engine, "tape", path, NULL, &error));
  session = session_of(engine, "tape/clock", NULL);
  prompt(session, "Who are you?");
  CHECK_OK(branchline_engine_replay_divergence(engine, "tape", &json, &error));
  CHECK(strstr(json, "\"at\":0") && strstr(json, "What time is it?") && strstr(json, "Who are you?"));
  branchline_string_free(json);
  branchline_session_free(session);

  json = NULL;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_replay_divergence(engine, "none", &json, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_add_replay(engine, "a/b", path, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_add_replay(engine, "t", path, "{\"tool\":true}", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_add_replay(engine, "t", path, "[]", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_add_replay(engine, "t", NULL, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_SESSION_FILE, branchline_engine_add_replay(engine, "t", "/no/such", NULL, &error));
  CHECK(json == NULL);
  branchline_string_free(path);
  free(directory);
  branchline_engine_free(engine);
}

void test_models(void)
{
  catalogue();
  host_models();
  a_queue_of_requests();
  replays();
}
