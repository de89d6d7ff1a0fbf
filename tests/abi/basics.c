/* Version, statuses, errors, strings. */
#include "check.h"

static void display(void)
{
  static const char text[] = "\x1b[31mred\x1b[0m\0 user\xe2\x80\xaetxt\r\n";
  branchline_error *error = NULL;
  char *shown = NULL;
  CHECK_OK(branchline_sanitize_for_display(text, sizeof text - 1, &shown, &error));
  CHECK(strcmp(shown, "red usertxt\n") == 0);
  branchline_string_free(shown);
  CHECK_OK(branchline_sanitize_for_display(NULL, 0, &shown, &error));
  CHECK(strcmp(shown, "") == 0);
  branchline_string_free(shown);
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_sanitize_for_display("\xff", 1, &shown, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_sanitize_for_display(NULL, 1, &shown, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_sanitize_for_display(text, 1, NULL, &error));
}

void test_basics(void)
{
  branchline_error *error = NULL;
  branchline_engine *engine = NULL;
  branchline_session *session = NULL;
  char *json = NULL;
  char number[32], path[512];
  char *directory;
  FILE *file;

  CHECK(strcmp(branchline_version(), BRANCHLINE_VERSION) == 0);
  CHECK(branchline_version_number() == BRANCHLINE_VERSION_NUMBER);
  display();
  snprintf(number, sizeof number, "%d.%d.%d", BRANCHLINE_VERSION_MAJOR, BRANCHLINE_VERSION_MINOR,
           BRANCHLINE_VERSION_PATCH);
  CHECK(strcmp(number, BRANCHLINE_VERSION) == 0);

  CHECK(BRANCHLINE_STATUS_OK == 0);
  CHECK(sizeof(branchline_status) == 4);
  CHECK(strcmp(branchline_status_name(BRANCHLINE_STATUS_OK), "ok") == 0);
  CHECK(strcmp(branchline_status_name(BRANCHLINE_STATUS_SESSION_LOCKED), "session_locked") == 0);
  CHECK(strcmp(branchline_status_name(BRANCHLINE_STATUS_INVALID_HANDLE), "invalid_handle") == 0);
  CHECK(strcmp(branchline_status_name(99999), "unknown") == 0);

  /* Errors say what happened; where nobody wants the object, there is none. */
  engine = new_engine();
  directory = fresh_directory();
  snprintf(path, sizeof path, "%s/notes.txt", directory);
  file = fopen(path, "w");
  CHECK(file != NULL && fputs("no session\n", file) >= 0 && fclose(file) == 0);
  CHECK(branchline_session_open(engine, path, NULL, &session, NULL) == BRANCHLINE_STATUS_INVALID_SESSION_FILE);
  CHECK(session == NULL);
  CHECK(branchline_session_open(engine, path, NULL, &session, &error) == BRANCHLINE_STATUS_INVALID_SESSION_FILE);
  CHECK(branchline_error_status(error) == BRANCHLINE_STATUS_INVALID_SESSION_FILE);
  CHECK(branchline_error_path(error) != NULL && strcmp(branchline_error_path(error), path) == 0);
  CHECK(branchline_error_free(error) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_error_free(error) == BRANCHLINE_STATUS_INVALID_HANDLE);
  CHECK(strcmp(branchline_error_message(error), "") == 0);
  CHECK(branchline_error_status(NULL) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_error_path(NULL) == NULL);
  error = NULL;

  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT, branchline_engine_new(NULL, NULL, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_INVALID_ARGUMENT,
              branchline_engine_add_scripted_model(engine, "broken", "{not json", &error));

  /* Every free takes NULL. */
  CHECK(branchline_string_free(NULL) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_error_free(NULL) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_event_free(NULL) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_events_free(NULL) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_subscription_free(NULL) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_session_free(NULL) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_engine_free(NULL) == BRANCHLINE_STATUS_OK);

  CHECK_OK(branchline_engine_list_sessions(engine, NULL, &json, &error));
  CHECK(strcmp(json, "[]") == 0);
  branchline_string_free(json);

  /* The panic comes back as an error that names it, again and again, and the library works on. */
  CHECK_STATUS(BRANCHLINE_STATUS_PANIC, branchline_test_panic(&error));
  CHECK(branchline_test_panic(&error) == BRANCHLINE_STATUS_PANIC);
  CHECK(strstr(branchline_error_message(error), "a panic on request") != NULL);
  branchline_error_free(error);
  error = NULL;
  CHECK(branchline_test_panic(NULL) == BRANCHLINE_STATUS_PANIC);
  session = new_session(engine, NULL);
  prompt(session, "still there?");

  CHECK_OK(branchline_engine_shutdown(engine, LONG, &error));
  CHECK_OK(branchline_engine_shutdown(engine, LONG, &error));
  CHECK_STATUS(BRANCHLINE_STATUS_CLOSED, branchline_session_prompt(session, "x", NULL, &error));
  CHECK(branchline_session_free(session) == BRANCHLINE_STATUS_OK);
  CHECK(branchline_engine_free(engine) == BRANCHLINE_STATUS_OK);
  free(directory);
}
