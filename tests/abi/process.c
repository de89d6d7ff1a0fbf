/* What the library does to the process it lives in: nothing. And fork(). */
#define _XOPEN_SOURCE 700
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Everything once, with real tools, errors and a panic. */
static void work(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_session *session = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
  char *directory = fresh_directory();
  char *json = NULL;
  options.cwd = directory;
  options.model = "scripted/demo";
  options.permissions = "allow";
  CHECK_OK(branchline_session_create(engine, &options, &session, &error));
  prompt(session, "Look around.");
  CHECK_OK(branchline_session_context(session, &json, &error));
  CHECK(strstr(json, "\"toolName\":\"bash\"") != NULL);
  branchline_string_free(json);
  CHECK_STATUS(BRANCHLINE_STATUS_PANIC, branchline_test_panic(&error));
  branchline_session_free(session);
  branchline_engine_free(engine);
  free(directory);
}

static void leaves_no_trace(void)
{
  static const int signals[] = { SIGINT, SIGTERM, SIGCHLD, SIGPIPE, SIGHUP, SIGSEGV, SIGABRT, SIGUSR1 };
  struct sigaction before[8], after;
  char cwd_before[4096], cwd_after[4096], silence[1024];
  char **environment = environ;
  char *first = environ[0];
  struct stat written;
  mode_t mask = umask(022);
  int out = dup(1), err = dup(2), file, n, same = 1;
  char *directory = fresh_directory();
  umask(mask);
  snprintf(silence, sizeof silence, "%s/output", directory);
  file = open(silence, O_RDWR | O_CREAT, 0600);
  CHECK(getcwd(cwd_before, sizeof cwd_before) != NULL);
  for (n = 0; n < 8; n++) {
    sigaction(signals[n], NULL, &before[n]);
  }

  fflush(NULL);
  dup2(file, 1);
  dup2(file, 2);
  work();
  fflush(NULL);
  dup2(out, 1);
  dup2(err, 2);

  CHECK(fstat(file, &written) == 0 && written.st_size == 0);
  for (n = 0; n < 8; n++) {
    sigaction(signals[n], NULL, &after);
    same = same && after.sa_handler == before[n].sa_handler && after.sa_flags == before[n].sa_flags;
  }
  CHECK(same);
  CHECK(getcwd(cwd_after, sizeof cwd_after) != NULL && strcmp(cwd_before, cwd_after) == 0);
  CHECK(umask(mask) == mask);
  CHECK(environ == environment && environ[0] == first);
  CHECK(waitpid(-1, NULL, WNOHANG) == -1);
  close(file);
  close(out);
  close(err);
  free(directory);
}

static int destroyed;

static void ignore_event(void *user_data, const branchline_event *event)
{
  (void)user_data;
  (void)event;
}

static void count_destroy(void *user_data)
{
  (void)user_data;
  destroyed++;
}

/* In the child: a number for the first thing that is wrong, 0 if nothing is. */
static int in_child(branchline_engine *engine, branchline_session *session, branchline_events *events, char *string)
{
  branchline_error *error = NULL;
  branchline_engine *new_one = NULL;
  const branchline_event *event = NULL;
  branchline_callbacks callbacks = BRANCHLINE_CALLBACKS_INIT;
  char *text = NULL;
  callbacks.on_event = ignore_event;
  callbacks.destroy = count_destroy;
  destroyed = 0;
  alarm(LONG / 1000);
  if (branchline_session_prompt(session, "x", NULL, &error) != BRANCHLINE_STATUS_FORKED) return 1;
  if (branchline_session_wait_idle(session, BRANCHLINE_WAIT_FOREVER, &error) != BRANCHLINE_STATUS_FORKED) return 2;
  if (branchline_session_tree(session, &text, &error) != BRANCHLINE_STATUS_FORKED || text != NULL) return 3;
  if (branchline_events_next(events, BRANCHLINE_WAIT_FOREVER, &event, &error) != BRANCHLINE_STATUS_FORKED) return 4;
  if (branchline_engine_new(NULL, &new_one, &error) != BRANCHLINE_STATUS_FORKED || new_one != NULL) return 5;
  if (branchline_session_subscribe(session, &callbacks, NULL, &error) != BRANCHLINE_STATUS_FORKED) return 6;
  if (destroyed != 1) return 7;
  if (branchline_test_panic(&error) != BRANCHLINE_STATUS_FORKED) return 8;
  if (branchline_events_free(events) != BRANCHLINE_STATUS_FORKED) return 9;
  if (branchline_session_free(session) != BRANCHLINE_STATUS_FORKED) return 10;
  if (branchline_engine_free(engine) != BRANCHLINE_STATUS_FORKED) return 11;
  if (branchline_string_free(string) != BRANCHLINE_STATUS_FORKED) return 12;
  if (error != NULL || *branchline_error_message(error) != '\0') return 13;
  if (strcmp(branchline_version(), BRANCHLINE_VERSION) != 0) return 14;
  if (strcmp(branchline_status_name(BRANCHLINE_STATUS_FORKED), "forked") != 0) return 15;
  if (branchline_event_type(event) != BRANCHLINE_EVENT_NONE) return 16;
  return 0;
}

/* A child forked in the middle of a run hears at once; the parent goes on as if nothing had happened. */
static void forks(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = new_engine();
  branchline_session *session = new_session(engine, NULL);
  branchline_events *events = NULL;
  char *id = NULL;
  pid_t child;
  int report[2], status = -1;
  CHECK_OK(branchline_engine_add_scripted_model(engine, "hanging", HANGING, &error));
  CHECK_OK(branchline_session_set_model(session, "scripted/hanging", &error));
  CHECK_OK(branchline_session_events(session, NULL, &events, &error));
  CHECK_OK(branchline_session_id(session, &id, &error));
  CHECK_OK(branchline_session_prompt(session, "go", NULL, &error));
  CHECK(pipe(report) == 0);
  fflush(NULL);
  child = fork();
  if (child == 0) {
    /* Killed when it has reported: the copies of the parent's objects are no leak of the child's. */
    status = in_child(engine, session, events, id);
    if (write(report[1], &status, sizeof status) == (ssize_t)sizeof status) {
      raise(SIGKILL);
    }
    _exit(1);
  }
  close(report[1]);
  CHECK(child > 0 && read(report[0], &status, sizeof status) == (ssize_t)sizeof status);
  CHECK(status == 0);
  if (status != 0) {
    fprintf(stderr, "check %d failed in the child\n", status);
  }
  close(report[0]);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_OK(branchline_session_abort(session, &error));
  CHECK_OK(branchline_session_set_model(session, "scripted/abi", &error));
  prompt(session, "still here");
  branchline_string_free(id);
  branchline_events_free(events);
  branchline_session_free(session);
  branchline_engine_free(engine);
}

void test_process(void)
{
  leaves_no_trace();
  forks();
}
