/* From inside a callback everything may be called; what would wait for the callback itself is refused. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <time.h>

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  branchline_engine *engine;
  branchline_session *session;
  branchline_subscription *subscription;
  void (*act)(void *self, const branchline_event *event);
  int acted, destroyed, after;
} host;

static void on_event(void *user_data, const branchline_event *event)
{
  host *self = user_data;
  if (self->acted) {
    self->after++;
    return;
  }
  self->act(self, event);
}

static void destroy(void *user_data)
{
  host *self = user_data;
  pthread_mutex_lock(&self->lock);
  self->destroyed++;
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
}

/* Every function that works on a session or engine, once the answer is complete. */
static void call_everything(void *user_data, const branchline_event *event)
{
  host *self = user_data;
  branchline_error *error = NULL;
  branchline_session *made = NULL;
  branchline_events *events = NULL;
  branchline_event *kept = NULL;
  const branchline_event *next = NULL;
  char *json = NULL, *entry;
  if (branchline_event_type(event) != BRANCHLINE_EVENT_TURN_END) {
    return;
  }
  self->acted = 1;
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_session_wait_idle(self->session, LONG, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_session_wait_idle(self->session, 0, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_engine_shutdown(self->engine, LONG, &error));
  CHECK_OK(branchline_session_events(self->session, NULL, &events, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK,
               branchline_events_next(events, BRANCHLINE_WAIT_FOREVER, &next, &error));
  CHECK_OK(branchline_session_set_name(self->session, "named inside", &error));
  CHECK_OK(branchline_events_next(events, LONG, &next, &error));
  CHECK(branchline_events_free(events) == BRANCHLINE_STATUS_OK);
  CHECK_OK(branchline_event_clone(event, &kept, &error));
  CHECK(branchline_event_free(kept) == BRANCHLINE_STATUS_OK);
  entry = entry_of(self->session, "user", 0);
  CHECK_OK(branchline_session_set_label(self->session, entry, "inside", NULL, &error));
  CHECK_OK(branchline_session_append_custom(self->session, "inside", "1", NULL, &error));
  CHECK_OK(branchline_session_steer(self->session, "more", &error));
  CHECK_OK(branchline_session_fork(self->session, entry, BRANCHLINE_FORK_AT, &made, NULL, &error));
  CHECK(branchline_session_free(made) == BRANCHLINE_STATUS_OK);
  CHECK_OK(branchline_session_clone(self->session, &made, &error));
  /* Another session may be waited for. */
  prompt(made, "in between");
  CHECK(branchline_session_free(made) == BRANCHLINE_STATUS_OK);
  CHECK_OK(branchline_session_state(self->session, &json, &error));
  CHECK(branchline_string_free(json) == BRANCHLINE_STATUS_OK);
  CHECK_OK(branchline_engine_list_sessions(self->engine, NULL, &json, &error));
  CHECK(branchline_string_free(json) == BRANCHLINE_STATUS_OK);
  CHECK_OK(branchline_session_abort(self->session, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_PANIC, branchline_test_panic(&error));
  free(entry);
}

static void prompt_again(void *user_data, const branchline_event *event)
{
  host *self = user_data;
  branchline_error *error = NULL;
  if (branchline_event_type(event) == BRANCHLINE_EVENT_AGENT_SETTLED) {
    self->acted = 1;
    CHECK_OK(branchline_session_prompt(self->session, "from inside", NULL, &error));
  }
}

static void close_session(void *user_data, const branchline_event *event)
{
  host *self = user_data;
  branchline_error *error = NULL;
  (void)event;
  self->acted = 1;
  CHECK_OK(branchline_session_close(self->session, &error));
}

static void unsubscribe(void *user_data, const branchline_event *event)
{
  host *self = user_data;
  (void)event;
  self->acted = 1;
  CHECK(branchline_subscription_free(self->subscription) == BRANCHLINE_STATUS_OK);
}

static void free_session(void *user_data, const branchline_event *event)
{
  host *self = user_data;
  self->acted = 1;
  CHECK(branchline_session_free(self->session) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_session_free(self->session) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK(branchline_event_type(event) != BRANCHLINE_EVENT_NONE);
}

static void free_everything(void *user_data, const branchline_event *event)
{
  host *self = user_data;
  (void)event;
  self->acted = 1;
  CHECK(branchline_engine_free(self->engine) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_session_free(self->session) == BRANCHLINE_STATUS_OK);
}

/* Subscribes, prompts, and waits until the callbacks were destroyed if `until_destroyed`, else until idle. */
static void run(host *self, branchline_engine *engine, const char *cwd,
                void (*act)(void *, const branchline_event *), int until_destroyed)
{
  branchline_error *error = NULL;
  branchline_callbacks callbacks = BRANCHLINE_CALLBACKS_INIT;
  memset(self, 0, sizeof *self);
  pthread_mutex_init(&self->lock, NULL);
  pthread_cond_init(&self->changed, NULL);
  self->engine = engine;
  self->session = new_session(engine, cwd);
  self->act = act;
  callbacks.user_data = self;
  callbacks.on_event = on_event;
  callbacks.destroy = destroy;
  CHECK_OK(branchline_session_subscribe(self->session, &callbacks, &self->subscription, &error));
  CHECK_OK(branchline_session_prompt(self->session, "hello", NULL, &error));
  if (until_destroyed) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LONG / 1000;
    pthread_mutex_lock(&self->lock);
    while (!self->destroyed && pthread_cond_timedwait(&self->changed, &self->lock, &end) == 0) {
    }
    pthread_mutex_unlock(&self->lock);
    CHECK(self->destroyed == 1);
  } else {
    CHECK_OK(branchline_session_wait_idle(self->session, LONG, &error));
  }
  CHECK(self->acted);
}

void test_reentry(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  char *directory = fresh_directory();
  char *json = NULL;
  host self;

  run(&self, engine, directory, call_everything, 0);
  CHECK_OK(branchline_session_name(self.session, &json, &error));
  CHECK(strcmp(json, "named inside") == 0);
  branchline_string_free(json);
  branchline_session_free(self.session);
  branchline_subscription_free(self.subscription);
  branchline_engine_free(engine);
  CHECK(self.destroyed == 1);

  engine = new_engine();
  run(&self, engine, NULL, prompt_again, 0);
  CHECK_OK(branchline_session_wait_idle(self.session, LONG, &error));
  CHECK_OK(branchline_session_context(self.session, &json, &error));
  CHECK(strstr(json, "from inside") != NULL && count_of(json, "Hello from the script.") == 2);
  branchline_string_free(json);
  branchline_session_free(self.session);
  branchline_subscription_free(self.subscription);
  branchline_engine_free(engine);

  engine = new_engine();
  run(&self, engine, NULL, close_session, 1);
  branchline_session_free(self.session);
  branchline_subscription_free(self.subscription);

  run(&self, engine, NULL, unsubscribe, 1);
  CHECK(self.after == 0);
  CHECK_OK(branchline_session_wait_idle(self.session, LONG, &error));
  branchline_session_free(self.session);

  run(&self, engine, NULL, free_session, 1);
  CHECK(self.after == 0);
  CHECK(branchline_session_free(self.session) == BRANCHLINE_STATUS_INVALID_HANDLE);
  branchline_subscription_free(self.subscription);
  branchline_engine_free(engine);

  engine = new_engine();
  run(&self, engine, NULL, free_everything, 1);
  CHECK(self.after == 0);
  CHECK(branchline_engine_free(engine) == BRANCHLINE_STATUS_INVALID_HANDLE);
  branchline_subscription_free(self.subscription);
  free(directory);
}
