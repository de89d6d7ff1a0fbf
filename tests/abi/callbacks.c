/* Push: callbacks are called one at a time on library threads, and destroy runs exactly once on every path. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <time.h>

typedef struct {
  pthread_mutex_t lock;
  int events, destroyed, after_destroy, inside, overlapped, on_caller;
  size_t text;
  pthread_t caller;
  int *inside_of_session; /* shared by the subscriptions of one session */
} listener;

static listener *new_listener(int *inside)
{
  listener *self = calloc(1, sizeof *self);
  pthread_mutex_init(&self->lock, NULL);
  self->caller = pthread_self();
  self->inside_of_session = inside;
  return self;
}

static pthread_mutex_t inside_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_event(void *user_data, const branchline_event *event)
{
  listener *self = user_data;
  int inside;
  pthread_mutex_lock(&inside_lock);
  inside = ++*self->inside_of_session;
  pthread_mutex_unlock(&inside_lock);
  pthread_mutex_lock(&self->lock);
  self->events++;
  self->after_destroy += self->destroyed;
  self->overlapped += inside != 1;
  self->on_caller += pthread_equal(self->caller, pthread_self()) ? 1 : 0;
  self->text += branchline_event_text_length(event);
  pthread_mutex_unlock(&self->lock);
  pthread_mutex_lock(&inside_lock);
  --*self->inside_of_session;
  pthread_mutex_unlock(&inside_lock);
}

static void destroy(void *user_data)
{
  listener *self = user_data;
  pthread_mutex_lock(&self->lock);
  self->destroyed++;
  pthread_mutex_unlock(&self->lock);
}

static int get(listener *self, const int *field)
{
  int value;
  pthread_mutex_lock(&self->lock);
  value = *field;
  pthread_mutex_unlock(&self->lock);
  return value;
}

/* Waits until destroy has run. */
static void wait_destroyed(listener *self)
{
  const struct timespec moment = { 0, 1000000 };
  int rounds;
  for (rounds = 0; get(self, &self->destroyed) == 0 && rounds < LONG; rounds++) {
    nanosleep(&moment, NULL);
  }
  CHECK(get(self, &self->destroyed) == 1);
}

static void free_listener(listener *self)
{
  CHECK(self->destroyed == 1);
  CHECK(self->after_destroy == 0 && self->overlapped == 0 && self->on_caller == 0);
  pthread_mutex_destroy(&self->lock);
  free(self);
}

static void subscribe(branchline_session *session, listener *self, branchline_subscription **out)
{
  branchline_error *error = NULL;
  branchline_callbacks callbacks = BRANCHLINE_CALLBACKS_INIT;
  callbacks.user_data = self;
  callbacks.on_event = on_event;
  callbacks.destroy = destroy;
  CHECK_OK(branchline_session_subscribe(session, &callbacks, out, &error));
}

/* destroy runs before a failing call returns. */
static void failures(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session *session = new_session(engine, NULL);
  branchline_subscription *out = NULL;
  branchline_callbacks callbacks = BRANCHLINE_CALLBACKS_INIT;
  int inside = 0;
  listener *self = new_listener(&inside);
  callbacks.user_data = self;
  callbacks.destroy = destroy;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_subscribe(session, &callbacks, &out, &error));
  CHECK(self->destroyed == 1);
  callbacks.on_event = on_event;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_subscribe(NULL, &callbacks, &out, &error));
  CHECK(self->destroyed == 2);
  branchline_session_free(session);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE, branchline_session_subscribe(session, &callbacks, &out, &error));
  CHECK(self->destroyed == 3);
  /* What cannot be read cannot be destroyed either. */
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_subscribe(session, NULL, &out, &error));
  callbacks.struct_size = 3;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_session_subscribe(session, &callbacks, &out, &error));
  CHECK(self->destroyed == 3 && out == NULL);
  self->destroyed = 1;
  free_listener(self);

  /* On a closed session all that comes is destroy; and it may be missing. */
  session = new_session(engine, NULL);
  CHECK_OK(branchline_session_close(session, &error));
  self = new_listener(&inside);
  subscribe(session, self, NULL);
  wait_destroyed(self);
  CHECK(self->events == 0);
  free_listener(self);
  {
    branchline_callbacks bare = BRANCHLINE_CALLBACKS_INIT;
    int counter = 0;
    self = new_listener(&counter);
    bare.user_data = self;
    bare.on_event = on_event;
    CHECK_OK(branchline_session_subscribe(session, &bare, NULL, &error));
    self->destroyed = 1;
    branchline_session_free(session);
    free_listener(self);
  }
}

static void free_session(void *user_data, const branchline_event *event)
{
  branchline_session **session = user_data;
  if (branchline_event_type(event) == BRANCHLINE_EVENT_TEXT_DELTA) branchline_session_free(*session);
}

/* Freed inside a callback the session closes, too: who waits for it is told. */
static void freed_inside(branchline_engine *engine)
{
  branchline_error *error = NULL;
  branchline_session *session = new_session(engine, NULL);
  branchline_callbacks callbacks = BRANCHLINE_CALLBACKS_INIT;
  branchline_status status;
  CHECK_OK(branchline_engine_add_scripted_model(
      engine, "late", "[{\"content\":[{\"type\":\"text\",\"text\":\"half\"}],\"chunk\":2,\"chunkDelayMs\":50,\"hang\":true}]",
      &error));
  CHECK_OK(branchline_session_set_model(session, "scripted/late", &error));
  callbacks.on_event = free_session;
  callbacks.user_data = &session;
  CHECK_OK(branchline_session_subscribe(session, &callbacks, NULL, &error));
  CHECK_OK(branchline_session_prompt(session, "go", NULL, &error));
  status = branchline_session_wait_idle(session, 60000, &error);
  CHECK(status == BRANCHLINE_STATUS_OK || status == BRANCHLINE_STATUS_CLOSED || status == BRANCHLINE_STATUS_INVALID_HANDLE);
  branchline_error_free(error);
}

void test_callbacks(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_session *session = new_session(engine, NULL);
  branchline_subscription *first = NULL, *second = NULL;
  int inside = 0, seen;
  listener *a = new_listener(&inside), *b = new_listener(&inside), *c = new_listener(&inside);

  /* When wait_idle returns every callback has returned. */
  subscribe(session, a, &first);
  subscribe(session, b, &second);
  prompt(session, "hello");
  CHECK(get(a, &a->events) > 8 && get(a, &a->events) == get(b, &b->events));
  CHECK(a->text == strlen("Hello from the script."));

  /* Unsubscribing ends one and leaves the other. */
  CHECK(branchline_subscription_free(first) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_subscription_free(first) == BRANCHLINE_STATUS_INVALID_HANDLE);
  seen = get(a, &a->events);
  wait_destroyed(a);
  prompt(session, "and now?");
  CHECK(get(a, &a->events) == seen && get(b, &b->events) > seen);
  free_listener(a);

  /* Freeing the session ends the rest; the subscription's handle may go later. */
  CHECK(branchline_session_free(session) == BRANCHLINE_STATUS_OK);
  wait_destroyed(b);
  CHECK(branchline_subscription_free(second) == BRANCHLINE_STATUS_OK);
  free_listener(b);

  /* Closing the session, in the middle of a run. */
  session = new_session(engine, NULL);
  CHECK_OK(branchline_engine_add_scripted_model(engine, "hanging", HANGING, &error));
  CHECK_OK(branchline_session_set_model(session, "scripted/hanging", &error));
  subscribe(session, c, NULL);
  CHECK_OK(branchline_session_prompt(session, "go", NULL, &error));
  CHECK_OK(branchline_session_close(session, &error));
  wait_destroyed(c);
  free_listener(c);
  branchline_session_free(session);

  failures(engine);
  freed_inside(engine);

  /* The engine's end, with one session running and one idle: when it returns, destroy has run. */
  a = new_listener(&inside);
  session = new_session(engine, NULL);
  CHECK_OK(branchline_session_set_model(session, "scripted/hanging", &error));
  subscribe(session, a, NULL);
  CHECK_OK(branchline_session_prompt(session, "go", NULL, &error));
  {
    int other = 0;
    branchline_session *idle = new_session(engine, NULL);
    b = new_listener(&other);
    subscribe(idle, b, NULL);
    CHECK(branchline_engine_free(engine) == BRANCHLINE_STATUS_OK);
    CHECK(a->destroyed == 1 && b->destroyed == 1);
    free_listener(b);
    branchline_session_free(idle);
  }
  free_listener(a);
  branchline_session_free(session);
}
