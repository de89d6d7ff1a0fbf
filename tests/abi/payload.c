/* The host's say in what is sent to a service on loopback. */
#include "check.h"
#include "service.h"

typedef struct {
  branchline_session *session;
  const char *answer; /* NULL: fail */
  int asked, destroyed;
} editor;

static void on_payload(void *user_data, branchline_request *request)
{
  branchline_error *error = NULL;
  editor *self = user_data;
  const char *arguments = branchline_request_arguments(request);
  CHECK(branchline_request_type(request) == BRANCHLINE_REQUEST_PAYLOAD);
  CHECK(strcmp(branchline_request_name(request), "mine/m") == 0 && *branchline_request_session_id(request) == '\0');
  CHECK(strstr(arguments, "{\"provider\":\"mine\",\"model\":\"m\",\"api\":\"anthropic-messages\",\"body\":{") == arguments);
  CHECK(strstr(arguments, "sk-of-the-host") == NULL);
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_session_wait_idle(self->session, LONG, &error));
  self->asked++;
  if (self->answer) {
    CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_request_complete(request, "[]", &error));
    CHECK_OK(branchline_request_complete(request, self->answer, &error));
  } else {
    CHECK_OK(branchline_request_fail(request, "no such tenant", &error));
  }
  branchline_request_free(request);
}

static void destroyed(void *user_data)
{
  ((editor *)user_data)->destroyed++;
}

void test_payload(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = NULL;
  branchline_engine_options options;
  branchline_session *session;
  branchline_requests *requests = NULL;
  branchline_request *request = NULL;
  branchline_tool_callbacks callbacks = BRANCHLINE_TOOL_CALLBACKS_INIT;
  char *directory = fresh_directory();
  char config[1024];
  editor self;
  service service;
  unsigned port = service_start(&service);

  memset(&self, 0, sizeof self);
  callbacks.user_data = &self;
  callbacks.on_call = on_payload;
  callbacks.destroy = destroyed;
  options = options_for(port, directory, "\"network\":{\"proxy\":\"direct\"}", config, sizeof config);
  CHECK_OK(branchline_engine_new(&options, &engine, &error));
  CHECK_OK(branchline_engine_set_key(engine, "mine", "sk-of-the-host", false, &error));
  self.session = session = session_of(engine, "mine/m", NULL);
  CHECK_OK(branchline_engine_set_payload_hook(engine, &callbacks, &error));

  self.answer = "{\"tenant\":\"seven\"}";
  prompt(session, "Another body?");
  CHECK(self.asked == 1 && strcmp(service.body, self.answer) == 0 && leaf_has(session, "Hello over the wire."));
  self.answer = "null";
  prompt(session, "As it is?");
  CHECK(self.asked == 2 && service.requests == 2 && strstr(service.body, "As it is?") && !strstr(service.body, "tenant"));
  self.answer = NULL;
  prompt(session, "No?");
  CHECK(self.asked == 3 && service.requests == 2 && leaf_has(session, "no such tenant"));

  /* From a queue instead, and then nobody. */
  CHECK_OK(branchline_requests_new(&requests, &error));
  CHECK_OK(branchline_requests_payload_hook(requests, engine, &error));
  CHECK_OK(branchline_session_prompt(session, "From a queue?", NULL, &error));
  CHECK_OK(branchline_requests_next(requests, LONG, &request, &error));
  CHECK(branchline_request_type(request) == BRANCHLINE_REQUEST_PAYLOAD);
  CHECK_OK(branchline_request_complete(request, "{\"tenant\":\"eight\"}", &error));
  branchline_request_free(request);
  CHECK_OK(branchline_session_wait_idle(session, LONG, &error));
  CHECK(self.asked == 3 && strcmp(service.body, "{\"tenant\":\"eight\"}") == 0);
  branchline_requests_free(requests);
  prompt(session, "Gone?");
  CHECK(service.requests == 3 && leaf_has(session, "takes no more questions"));
  CHECK_OK(branchline_engine_set_payload_hook(engine, NULL, &error));
  prompt(session, "Nobody?");
  CHECK(self.asked == 3 && strstr(service.body, "Nobody?") != NULL);
  callbacks.on_call = NULL;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_set_payload_hook(engine, &callbacks, &error));

  branchline_session_free(session);
  branchline_engine_free(engine);
  CHECK(self.destroyed == 2);
  service_stop(&service);
  free(directory);
}
