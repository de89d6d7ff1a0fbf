/* The tools as functions: calls that block, calls that run by themselves, progress, cancellation, the end of the engine. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <time.h>

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  branchline_call *call;
  int progress, done, destroyed, after_destroy, deadlock;
  char *result;
} caller;

static void setup(caller *self)
{
  memset(self, 0, sizeof *self);
  pthread_mutex_init(&self->lock, NULL);
  pthread_cond_init(&self->changed, NULL);
}

static void on_progress(void *user_data, const char *partial_json)
{
  caller *self = user_data;
  pthread_mutex_lock(&self->lock);
  CHECK(strstr(partial_json, "\"content\":[") != NULL);
  self->progress++;
  self->after_destroy += self->destroyed;
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
}

static void on_done(void *user_data, const char *result_json)
{
  caller *self = user_data;
  pthread_mutex_lock(&self->lock);
  self->done++;
  self->after_destroy += self->destroyed;
  self->result = malloc(strlen(result_json) + 1);
  strcpy(self->result, result_json);
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
}

static void destroy(void *user_data)
{
  caller *self = user_data;
  pthread_mutex_lock(&self->lock);
  self->destroyed++;
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
}

static void wait_for(caller *self, const int *what)
{
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += LONG / 1000;
  pthread_mutex_lock(&self->lock);
  while (!*what && pthread_cond_timedwait(&self->changed, &self->lock, &end) == 0) {
  }
  CHECK(*what == 1 || what == &self->progress);
  pthread_mutex_unlock(&self->lock);
}

static branchline_call_callbacks table(caller *self)
{
  branchline_call_callbacks callbacks = BRANCHLINE_CALL_CALLBACKS_INIT;
  callbacks.user_data = self;
  callbacks.on_progress = on_progress;
  callbacks.on_done = on_done;
  callbacks.destroy = destroy;
  return callbacks;
}

static void blocking(branchline_toolbox *toolbox, const char *directory)
{
  static const char wide[] = "{\"path\":\"a.txt\"}garbage";
  branchline_error *error = NULL;
  char path[512], *json = NULL;
  FILE *file;
  caller self;

  CHECK_OK(branchline_toolbox_definitions(toolbox, &json, &error));
  CHECK(strstr(json, "\"name\":\"grep\"") != NULL && strstr(json, "\"parameters\":{") != NULL);
  branchline_string_free(json);

  CHECK_OK(branchline_toolbox_call(toolbox, "write", "{\"path\":\"a.txt\",\"content\":\"one\\u0000\\ntwo\\n\"}", NULL, NULL,
                                   &json, &error));
  CHECK(strstr(json, "\"isError\":false") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_toolbox_call_n(toolbox, "read", wide, strlen(wide) - 7, NULL, NULL, &json, &error));
  CHECK(strstr(json, "one\\u0000\\ntwo") != NULL);
  branchline_string_free(json);

  /* A name that is no UTF-8, as far as the file system has such. */
  snprintf(path, sizeof path, "%s/bad\377name", directory);
  file = fopen(path, "w");
  if (file != NULL) {
    fclose(file);
    CHECK_OK(branchline_toolbox_call(toolbox, "ls", NULL, NULL, NULL, &json, &error));
    CHECK(strstr(json, "bad\357\277\275name") != NULL);
    branchline_string_free(json);
  }

  /* What fails in a tool is a result. */
  CHECK_OK(branchline_toolbox_call(toolbox, "read", "{\"path\":\"missing\"}", NULL, NULL, &json, &error));
  CHECK(strstr(json, "\"isError\":true") != NULL && strstr(json, "ENOENT") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_toolbox_call(toolbox, "read", NULL, NULL, NULL, &json, &error));
  CHECK(strstr(json, "Validation failed") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_toolbox_call(toolbox, "hammer", "{}", NULL, NULL, &json, &error));
  CHECK(strstr(json, "Tool hammer not found") != NULL);
  branchline_string_free(json);

  /* What is wrong with the call itself is not. */
  json = NULL;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_call(toolbox, "ls", "{", NULL, NULL, &json, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_call(toolbox, NULL, "{}", NULL, NULL, &json, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_call(toolbox, "ls", "{}", NULL, NULL, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_call(NULL, "ls", "{}", NULL, NULL, &json, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_call(toolbox, "ls\xff", "{}", NULL, NULL, &json, &error));
  CHECK(json == NULL);

  setup(&self);
  CHECK_OK(branchline_toolbox_call(toolbox, "bash", "{\"command\":\"echo begun; sleep 0.3; echo over\"}", on_progress, &self,
                                   &json, &error));
  CHECK(self.progress > 0 && strstr(json, "over") != NULL && strstr(json, "\"exit_code\":0") != NULL);
  branchline_string_free(json);
}

static void by_itself(branchline_toolbox *toolbox)
{
  branchline_error *error = NULL;
  branchline_call *call = NULL;
  char *json = NULL;
  caller self;
  branchline_call_callbacks callbacks;

  /* Asked for. */
  CHECK_OK(branchline_toolbox_start(toolbox, "ls", NULL, NULL, &call, &error));
  CHECK_OK(branchline_call_wait(call, LONG, NULL, &error));
  CHECK_OK(branchline_call_wait(call, 0, &json, &error));
  CHECK(strstr(json, "a.txt") != NULL);
  branchline_string_free(json);
  CHECK_OK(branchline_call_cancel(call, &error));
  CHECK(branchline_call_free(call) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_call_free(call) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE, branchline_call_wait(call, 0, NULL, &error));

  /* Told, without a handle. */
  setup(&self);
  callbacks = table(&self);
  CHECK_OK(branchline_toolbox_start_n(toolbox, "ls", "{}", 2, &callbacks, NULL, &error));
  wait_for(&self, &self.destroyed);
  CHECK(self.done == 1 && self.after_destroy == 0 && strstr(self.result, "a.txt") != NULL);
  free(self.result);

  /* Cancelled from another thread than it runs on, once it has begun. */
  setup(&self);
  callbacks = table(&self);
  CHECK_OK(branchline_toolbox_start(toolbox, "bash", "{\"command\":\"echo begun; sleep 100\"}", &callbacks, &call, &error));
  wait_for(&self, &self.progress);
  CHECK_STATUS(BRANCHLINE_STATUS_TIMEOUT, branchline_call_wait(call, 0, &json, &error));
  CHECK_OK(branchline_call_cancel(call, &error));
  CHECK_OK(branchline_call_cancel(call, &error));
  CHECK_OK(branchline_call_wait(call, LONG, &json, &error));
  CHECK(strstr(json, "\"isError\":true") != NULL);
  branchline_string_free(json);
  wait_for(&self, &self.destroyed);
  CHECK(self.done == 1);
  free(self.result);
  branchline_call_free(call);

  /* Freed while it runs. */
  setup(&self);
  callbacks = table(&self);
  CHECK_OK(branchline_toolbox_start(toolbox, "bash", "{\"command\":\"sleep 100\"}", &callbacks, &call, &error));
  CHECK(branchline_call_free(call) == BRANCHLINE_STATUS_OK);
  wait_for(&self, &self.destroyed);
  CHECK(self.done == 1 && strstr(self.result, "\"isError\":true") != NULL);
  free(self.result);

  /* destroy runs before a failing call returns. */
  setup(&self);
  callbacks = table(&self);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_start(toolbox, "ls", "[", &callbacks, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_start(toolbox, NULL, "{}", &callbacks, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_start(NULL, "ls", "{}", &callbacks, NULL, &error));
  CHECK(self.destroyed == 3 && self.done == 0);
  callbacks.struct_size = 5;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_start(toolbox, "ls", "{}", &callbacks, NULL, &error));
  CHECK(self.destroyed == 3);
}

/* Asks for its own result, in on_progress and in on_done. */
static void wait_inside(void *user_data, const char *json)
{
  caller *self = user_data;
  branchline_error *error = NULL;
  char *result = NULL;
  branchline_call *call;
  pthread_mutex_lock(&self->lock);
  while (self->call == NULL) {
    pthread_cond_wait(&self->changed, &self->lock);
  }
  call = self->call;
  pthread_mutex_unlock(&self->lock);
  if (strstr(json, "\"isError\":false") != NULL && branchline_call_wait(call, 0, &result, &error) == BRANCHLINE_STATUS_OK) {
    CHECK_OK(branchline_call_wait(call, BRANCHLINE_WAIT_FOREVER, NULL, &error));
    CHECK(strcmp(result, json) == 0);
    branchline_string_free(result);
  } else {
    CHECK_STATUS(BRANCHLINE_STATUS_WOULD_DEADLOCK, branchline_call_wait(call, BRANCHLINE_WAIT_FOREVER, NULL, &error));
    self->deadlock++;
  }
}

static void inside(branchline_toolbox *toolbox)
{
  branchline_error *error = NULL;
  branchline_call *call = NULL;
  caller self;
  branchline_call_callbacks callbacks;
  setup(&self);
  callbacks = table(&self);
  callbacks.on_progress = wait_inside;
  callbacks.on_done = wait_inside;
  CHECK_OK(branchline_toolbox_start(toolbox, "bash", "{\"command\":\"echo begun; sleep 0.3\"}", &callbacks, &call, &error));
  pthread_mutex_lock(&self.lock);
  self.call = call;
  pthread_cond_broadcast(&self.changed);
  pthread_mutex_unlock(&self.lock);
  wait_for(&self, &self.destroyed);
  CHECK(self.deadlock > 0);
  branchline_call_free(call);
}

void test_toolbox(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_toolbox *toolbox = NULL, *other = NULL;
  branchline_toolbox_options options = BRANCHLINE_TOOLBOX_OPTIONS_INIT;
  branchline_call *call = NULL;
  branchline_call_callbacks callbacks;
  char *directory = fresh_directory(), *json = NULL;
  caller self;

  options.cwd = directory;
  CHECK_OK(branchline_toolbox_new(engine, &options, &toolbox, &error));
  CHECK_OK(branchline_toolbox_new(engine, NULL, &other, &error));
  CHECK(branchline_toolbox_free(other) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_toolbox_free(other) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK(branchline_toolbox_free(NULL) == BRANCHLINE_STATUS_OK);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_new(NULL, NULL, &other, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_HANDLE,
               branchline_toolbox_new((branchline_engine *)toolbox, NULL, &other, &error));
  options.struct_size = 1;
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_toolbox_new(engine, &options, &other, &error));

  blocking(toolbox, directory);
  by_itself(toolbox);
  inside(toolbox);

  /* The end of the engine ends the calls; when it returns, destroy has run. */
  setup(&self);
  callbacks = table(&self);
  CHECK_OK(branchline_toolbox_start(toolbox, "bash", "{\"command\":\"sleep 100\"}", &callbacks, &call, &error));
  CHECK(branchline_engine_free(engine) == BRANCHLINE_STATUS_OK);
  CHECK(self.destroyed == 1 && self.done == 1);
  free(self.result);
  CHECK_OK(branchline_call_wait(call, LONG, &json, &error));
  CHECK(strstr(json, "\"isError\":true") != NULL);
  branchline_string_free(json);
  json = NULL;
  branchline_call_free(call);
  CHECK_STATUS(BRANCHLINE_STATUS_CLOSED, branchline_toolbox_call(toolbox, "ls", "{}", NULL, NULL, &json, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_CLOSED, branchline_toolbox_start(toolbox, "ls", "{}", NULL, &call, &error));
  CHECK(branchline_toolbox_free(toolbox) == BRANCHLINE_STATUS_OK);
  free(directory);
}
