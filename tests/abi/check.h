/* The checks of the ABI tests, and what the tests share. Each topic is one file with one function. */
#ifndef CHECK_H
#define CHECK_H

#include <branchline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int checks_passed;
extern int checks_failed;

/* Counts a check, and says where one failed. */
void check(int ok, const char *file, int line, const char *what);

#define CHECK(condition) check((condition) ? 1 : 0, __FILE__, __LINE__, #condition)
/* A call that must succeed. `error` is a branchline_error * in scope, NULL before and after. */
#define CHECK_OK(call) check_status((call), BRANCHLINE_STATUS_OK, &error, __FILE__, __LINE__, #call)
/* A call that must give a status. If that is a failure, with an error object that says the same and has a message. */
#define CHECK_STATUS(status, call) check_status((call), (status), &error, __FILE__, __LINE__, #call)

void check_status(branchline_status got, branchline_status wanted, branchline_error **error, const char *file, int line,
                  const char *what);

/* Hang guard: no wait in these tests is longer in a working library. Milliseconds. */
#define LONG 60000

/* A fresh directory of this run, kept until the end. Free the result. */
char *fresh_directory(void);

/* An engine with the model scripted/abi, which says "Hello from the script." every time. Its sessions go to a fresh
 * directory. */
branchline_engine *new_engine(void);

/* A session of that model without tools. `cwd` NULL keeps it in memory. */
branchline_session *new_session(branchline_engine *engine, const char *cwd);

/* A session of any model, in which every tool may run. `cwd` NULL keeps it in memory. */
branchline_session *session_of(branchline_engine *engine, const char *model, const char *cwd);

/* Prompts and waits until idle. */
void prompt(branchline_session *session, const char *text);

/* The id in the n-th entry (from 0) of a role on the path to the leaf; free it with free(). */
char *entry_of(branchline_session *session, const char *role, int n);

/* Whether a text is in the line of the leaf; says so if it is not. */
int leaf_has(branchline_session *session, const char *part);

/* The text of a JSON string or null field, first occurrence; free it with free(). NULL for null or none. */
char *field(const char *json, const char *key);

int count_of(const char *text, const char *part);

/* A model whose response never ends by itself. */
#define HANGING "[{\"content\":[{\"type\":\"text\",\"text\":\"waiting\"}],\"hang\":true,\"times\":100}]"

void test_basics(void);
void test_handles(void);
void test_input(void);
void test_sessions(void);
void test_tree(void);
void test_siblings(void);
void test_context(void);
void test_policy(void);
void test_events(void);
void test_callbacks(void);
void test_reentry(void);
void test_toolbox(void);
void test_tools(void);
void test_process(void);
void test_models(void);
void test_keys(void);
void test_payload(void);
void test_resources(void);

#endif
