/* Keys that the host hands out, over a real connection to a service on loopback: they arrive, and are told to nobody. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "service.h"

typedef struct {
  const char *answer; /* NULL: fail */
  branchline_engine *engine;
  branchline_session *session;
  int asked, destroyed;
} vault;

static void on_key(void *user_data, branchline_request *request)
{
  branchline_error *error = NULL;
  vault *self = user_data;
  CHECK(branchline_request_type(request) == BRANCHLINE_REQUEST_KEY);
  CHECK(strcmp(branchline_request_name(request), "mine") == 0 && *branchline_request_session_id(request) == '\0');
  CHECK(strstr(branchline_request_arguments(request), "{\"provider\":\"mine\",\"model\":\"m\",\"baseUrl\":\"http://127.0.0.1:"));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_session_wait_idle(self->session, LONG, &error));
  self->asked++;
  if (self->answer) {
    CHECK(branchline_request_complete(request, "{\"token\":\"sk-wrong\"}", &error) == BRANCHLINE_STATUS_INVALID_ARGUMENT);
    CHECK(strstr(branchline_error_message(error), "sk-wrong") == NULL);
    branchline_error_free(error);
    error = NULL;
    CHECK_OK(branchline_request_complete(request, self->answer, &error));
  } else {
    CHECK_OK(branchline_request_fail(request, "the vault is locked", &error));
  }
  branchline_request_free(request);
}

static void destroyed(void *user_data)
{
  ((vault *)user_data)->destroyed++;
}

/* The table of a new vault. */
static branchline_tool_callbacks callbacks_of(vault *self, void (*on_call)(void *, branchline_request *))
{
  branchline_tool_callbacks callbacks = BRANCHLINE_TOOL_CALLBACKS_INIT;
  memset(self, 0, sizeof *self);
  callbacks.user_data = self;
  callbacks.on_call = on_call;
  callbacks.destroy = destroyed;
  return callbacks;
}

static void on_event(void *user_data, const branchline_event *event)
{
  CHECK(strstr(branchline_event_json(event), "sk-of-the-host") == NULL);
  ++*(int *)user_data;
}

static char *contents(const char *path)
{
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 1 << 20);
  CHECK(file != NULL);
  if (file) {
    CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
  }
  return text;
}

#define AGED "{\"access\":\"sk-old\",\"refresh\":\"sk-refresh\",\"expires\":1,\"mine\":[1]}"
#define FOREVER "{\"access\":\"sk-of-the-login-%d\",\"refresh\":\"sk-refresh\",\"expires\":4102444800000}"

static void on_login(void *user_data, branchline_request *request)
{
  branchline_error *error = NULL;
  char *json = NULL;
  vault *self = user_data;
  CHECK(branchline_request_type(request) == BRANCHLINE_REQUEST_LOGIN);
  CHECK(strcmp(branchline_request_name(request), "mine") == 0);
  CHECK(strstr(branchline_request_arguments(request), "{\"provider\":\"mine\",\"login\":{") &&
        strstr(branchline_request_arguments(request), "\"refresh\":\"sk-refresh\""));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_session_wait_idle(self->session, LONG, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_engine_store_login(self->engine, "mine", AGED, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_engine_store_key(self->engine, "other", "sk", NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_engine_forget_stored(self->engine, "other", NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_engine_stored_keys(self->engine, &json, &error));
  self->asked++;
  if (self->answer) {
    CHECK(branchline_request_complete(request, "{\"access\":\"sk-wrong\"}", &error) == BRANCHLINE_STATUS_INVALID_ARGUMENT);
    CHECK(strstr(branchline_error_message(error), "sk-wrong") == NULL);
    branchline_error_free(error);
    error = NULL;
    CHECK_OK(branchline_request_complete(request, self->answer, &error));
  } else {
    CHECK_OK(branchline_request_fail(request, "the door is shut", &error));
  }
  branchline_request_free(request);
}

/* Keys and logins in a file, and logins made anew by the host. */
static void stored(service *service, unsigned port)
{
  branchline_error *error = NULL;
  branchline_engine *engine = NULL;
  branchline_engine_options options;
  branchline_session *session;
  branchline_requests *requests = NULL;
  branchline_request *request = NULL;
  char *directory = fresh_directory();
  char file[512], more[640], config[1024], answer[256];
  char *json = NULL, *text;
  bool removed = false;
  vault self;
  branchline_tool_callbacks callbacks = callbacks_of(&self, on_login);

  snprintf(file, sizeof file, "%s/new/auth.json", directory);
  snprintf(more, sizeof more, "\"authFile\":\"%s\",\"network\":{\"proxy\":\"direct\"}", file);
  options = options_for(port, directory, more, config, sizeof config);
  CHECK_OK(branchline_engine_new(&options, &engine, &error));
  CHECK_OK(branchline_engine_stored_keys(engine, &json, &error));
  CHECK(strcmp(json, "[]") == 0);
  branchline_string_free(json);
  CHECK_OK(branchline_engine_store_key(engine, "mine", "sk-$tored", NULL, &error));
  session = session_of(engine, "mine/m", NULL);
  prompt(session, "A key?");
  CHECK(strstr(service->head, "x-api-key: sk-$tored") != NULL);
  CHECK_OK(branchline_engine_store_key(engine, "mine", "$K", "{\"configured\":true,\"variables\":{\"K\":\"sk-of-k\"}}", &error));
  prompt(session, "A variable?");
  CHECK(strstr(service->head, "x-api-key: sk-of-k") != NULL);
  CHECK_OK(branchline_engine_store_key(engine, "other", NULL, "{\"variables\":{\"K\":\"v\"}}", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_store_key(engine, "mine", "", NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_store_key(engine, " ", "sk", NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_store_key(engine, NULL, "sk", NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_store_key(engine, "mine", "sk", "[]", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT,
               branchline_engine_store_key(engine, "mine", "sk", "{\"variable\":{}}", &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT,
               branchline_engine_store_key(engine, "mine", "sk", "{\"key\":\"other\"}", &error));

  /* Without a source a login is of no use; with one it is made anew when it is too old, once. */
  CHECK_OK(branchline_engine_store_login(engine, "mine", AGED, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_store_login(engine, "mine", "[]", &error));
  CHECK_OK(branchline_engine_stored_keys(engine, &json, &error));
  CHECK(strcmp(json, "[{\"provider\":\"mine\",\"type\":\"oauth\"},{\"provider\":\"other\",\"type\":\"api_key\"}]") == 0);
  branchline_string_free(json);
  prompt(session, "No source?");
  CHECK(leaf_has(session, "no source of logins"));
  self.engine = engine;
  self.session = session;
  CHECK_OK(branchline_engine_set_login_source(engine, &callbacks, &error));
  prompt(session, "Shut?");
  CHECK(self.asked == 1 && leaf_has(session, "the door is shut"));
  snprintf(answer, sizeof answer, FOREVER, 1);
  self.answer = answer;
  prompt(session, "Anew?");
  CHECK(self.asked == 2 && strstr(service->head, "authorization: Bearer sk-of-the-login-1"));
  prompt(session, "Again?");
  CHECK(self.asked == 2 && strstr(service->head, "authorization: Bearer sk-of-the-login-1"));
  text = contents(file);
  CHECK(strstr(text, "sk-of-the-login-1") && strstr(text, "\"oauth\"") && !strstr(text, "sk-old"));
  free(text);

  /* From a queue. */
  CHECK_OK(branchline_requests_new(&requests, &error));
  CHECK_OK(branchline_requests_login_source(requests, engine, &error));
  CHECK_OK(branchline_engine_store_login(engine, "mine", AGED, &error));
  CHECK_OK(branchline_session_prompt(session, "From a queue?", NULL, &error));
  CHECK_OK(branchline_requests_next(requests, LONG, &request, &error));
  CHECK(branchline_request_type(request) == BRANCHLINE_REQUEST_LOGIN);
  snprintf(answer, sizeof answer, FOREVER, 2);
  CHECK_OK(branchline_request_complete(request, answer, &error));
  branchline_request_free(request);
  CHECK_OK(branchline_session_wait_idle(session, LONG, &error));
  CHECK(strstr(service->head, "authorization: Bearer sk-of-the-login-2") != NULL);
  branchline_requests_free(requests);
  CHECK_OK(branchline_engine_set_login_source(engine, NULL, &error));

  CHECK_OK(branchline_engine_forget_stored(engine, "mine", &removed, &error));
  CHECK(removed);
  CHECK_OK(branchline_engine_forget_stored(engine, "mine", &removed, &error));
  CHECK(!removed);
  CHECK_OK(branchline_engine_forget_stored(engine, "other", NULL, &error));
  callbacks.on_call = NULL;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_set_login_source(engine, &callbacks, &error));
  branchline_session_free(session);
  branchline_engine_free(engine);
  CHECK(self.destroyed == 2);

  /* An engine without such a file. */
  engine = new_engine();
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_store_key(engine, "mine", "sk", NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_stored_keys(engine, &json, &error));
  branchline_engine_free(engine);
  free(directory);
}

void test_keys(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = NULL;
  branchline_engine_options options;
  branchline_session *session;
  branchline_callbacks listener = BRANCHLINE_CALLBACKS_INIT;
  branchline_requests *requests = NULL;
  branchline_request *request = NULL;
  char *directory = fresh_directory();
  char wire[512], more[640], config[1024];
  char *json = NULL, *path = NULL, *text;
  vault self;
  branchline_tool_callbacks callbacks = callbacks_of(&self, on_key);
  service service;
  int events = 0;
  unsigned port = service_start(&service);

  snprintf(wire, sizeof wire, "%s/wire.jsonl", directory);
  snprintf(more, sizeof more, "\"record\":\"%s\",\"network\":{\"proxy\":\"direct\",\"headers\":{\"x-from\":\"c\"}}", wire);
  options = options_for(port, directory, more, config, sizeof config);
  CHECK_OK(branchline_engine_new(&options, &engine, &error));
  self.answer = "\"sk-of-the-host-1\"";
  CHECK_OK(branchline_engine_set_key_source(engine, &callbacks, &error));
  session = session_of(engine, "mine/m", directory);
  self.session = session;
  listener.user_data = &events;
  listener.on_event = on_event;
  CHECK_OK(branchline_session_subscribe(session, &listener, NULL, &error));

  prompt(session, "Hello?");
  CHECK(self.asked == 1 && strstr(service.head, "x-api-key: sk-of-the-host-1") && strstr(service.head, "x-from: c"));
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "Hello over the wire.") != NULL);
  branchline_string_free(json);
  self.answer = "{\"key\":\"sk-of-the-host-2\",\"bearer\":true}";
  prompt(session, "Again?");
  CHECK(self.asked == 2 && strstr(service.head, "authorization: Bearer sk-of-the-host-2"));
  self.answer = NULL;
  prompt(session, "And now?");
  CHECK(self.asked == 3 && leaf_has(session, "the vault is locked"));

  /* From a queue instead, and then from nowhere. */
  CHECK_OK(branchline_requests_new(&requests, &error));
  CHECK_OK(branchline_requests_key_source(requests, engine, &error));
  CHECK_OK(branchline_session_prompt(session, "From a queue?", NULL, &error));
  CHECK_OK(branchline_requests_next(requests, LONG, &request, &error));
  CHECK(branchline_request_type(request) == BRANCHLINE_REQUEST_KEY);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_push(request, "\"text\"", &error));
  CHECK_OK(branchline_request_complete(request, "\"sk-of-the-host-3\"", &error));
  branchline_request_free(request);
  CHECK_OK(branchline_session_wait_idle(session, LONG, &error));
  CHECK(self.asked == 3 && strstr(service.head, "x-api-key: sk-of-the-host-3"));
  branchline_requests_free(requests);
  CHECK_OK(branchline_engine_set_key_source(engine, NULL, &error));
  CHECK_OK(branchline_session_path(session, &path, &error));
  callbacks.on_call = NULL;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_set_key_source(engine, &callbacks, &error));

  branchline_session_free(session);
  branchline_engine_free(engine);
  CHECK(self.destroyed == 2 && events > 20);
  stored(&service, port);
  service_stop(&service);

  /* The recording is whole when the engine is gone, and holds everything but the keys; so does the session's file. */
  text = contents(wire);
  CHECK(strstr(text, "message_stop") && strstr(text, "Again?") && count_of(text, "\"kind\":\"end\"") == 3);
  CHECK(strstr(text, "sk-of-the-host") == NULL);
  free(text);
  text = contents(path);
  CHECK(strstr(text, "Hello over the wire.") && !strstr(text, "sk-of-the-host"));
  free(text);
  branchline_string_free(path);
  CHECK_STATUS(BRANCHLINE_STATUS_FILE_EXISTS, branchline_engine_new(&options, &engine, &error));
  free(directory);
}
