/*
 * The tour of branchline in C: open a session file, prompt, watch the tools work, go back and try something else, fork,
 * and print the tree.
 *
 *   sh examples/c/run.sh                                                        builds the library and runs it
 *   cc examples/c/demo.c $(pkg-config --cflags --libs branchline) -o demo      with an installed one (ffi/install.sh), and then
 *   ./demo examples/session.jsonl SOME_DIRECTORY
 *
 * The model is scripted/demo, which is part of the library: no network, no key. Nothing else here is special to it.
 */
#include <branchline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every call reports through the same two things: a status, and an error with a sentence in it. */
static branchline_error *error = NULL;

static void must(branchline_status status)
{
  if (status != BRANCHLINE_STATUS_OK) {
    fprintf(stderr, "demo: %s: %s\n", branchline_status_name(status), branchline_error_message(error));
    branchline_error_free(error);
    exit(1);
  }
}

/* Called on a thread of the library for everything that happens in the session. */
static void on_event(void *user_data, const branchline_event *event)
{
  (void)user_data;
  switch (branchline_event_type(event)) {
    case BRANCHLINE_EVENT_TEXT_DELTA:
      fwrite(branchline_event_text(event), 1, branchline_event_text_length(event), stdout);
      break;
    case BRANCHLINE_EVENT_TOOL_EXECUTION_START:
      printf("\n  [%s started]", branchline_event_tool_name(event));
      break;
    case BRANCHLINE_EVENT_TOOL_EXECUTION_END:
      printf("\n  [%s %s]", branchline_event_tool_name(event), branchline_event_is_error(event) ? "failed" : "done");
      break;
    case BRANCHLINE_EVENT_TURN_END:
      printf("\n");
      break;
    default: /* new kinds may come: ignore what you do not know */
      break;
  }
  fflush(stdout);
}

static void ask(branchline_session *session, const char *question)
{
  printf("\n> %s\n", question);
  must(branchline_session_prompt(session, question, NULL, &error));                /* returns once accepted */
  must(branchline_session_wait_idle(session, BRANCHLINE_WAIT_FOREVER, &error));    /* all events were shown */
}

/* What the demo reads of the tree's JSON. It is flat and its order is that of a walk, so a host with a JSON library
 * needs no recursion; this one has none and looks for the fields it wants. */
typedef struct {
  char id[64], parent[64], what[64];
  int children, indent;
} node;

static void copy_field(const char *object, const char *end, const char *key, char out[64])
{
  const char *at = strstr(object, key);
  size_t length;
  out[0] = '\0';
  if (at != NULL && at < end) {
    at += strlen(key);
    length = strcspn(at, "\"");
    snprintf(out, 64, "%.*s", (int)(length < 63 ? length : 63), at);
  }
}

static size_t read_tree(branchline_session *session, node *nodes, size_t room, char leaf[64])
{
  char *json = NULL;
  const char *at;
  size_t count = 0, i;
  must(branchline_session_tree(session, &json, &error)); /* {"leaf":...,"entries":[{"id","type","role","parentId"}...]} */
  copy_field(json, strstr(json, "\"entries\""), "\"leaf\":\"", leaf);
  for (at = strstr(json, "{\"id\":\""); at != NULL && count < room; at = strstr(at + 1, "{\"id\":\"")) {
    const char *end = strchr(at, '}');
    node *it = &nodes[count++];
    memset(it, 0, sizeof *it);
    copy_field(at, end, "\"id\":\"", it->id);
    copy_field(at, end, "\"parentId\":\"", it->parent);
    copy_field(at, end, "\"role\":\"", it->what); /* messages have a role, other entries only a type */
    if (it->what[0] == '\0') {
      copy_field(at, end, "\"type\":\"", it->what);
    }
    for (i = 0; i + 1 < count; i++) {
      nodes[i].children += strcmp(nodes[i].id, it->parent) == 0;
    }
  }
  branchline_string_free(json);
  return count;
}

/* Prints the tree; only where it branches is it indented, so that a conversation reads straight down. */
static void show_tree(branchline_session *session)
{
  static node nodes[1000];
  char leaf[64];
  size_t count = read_tree(session, nodes, 1000, leaf), i, parent;
  for (i = 0; i < count; i++) {
    int branches = 0;
    for (parent = 0; parent < i; parent++) {
      if (strcmp(nodes[parent].id, nodes[i].parent) == 0) {
        branches = nodes[parent].children > 1;
        nodes[i].indent = nodes[parent].indent + branches;
      }
    }
    printf("  %*s%s%s %s%s\n", 3 * (nodes[i].indent - branches), "", branches ? "+- " : "", nodes[i].id, nodes[i].what,
           strcmp(nodes[i].id, leaf) == 0 ? "   <-- leaf" : "");
  }
}

/* The last user message in the file. */
static void last_question(branchline_session *session, char id[64])
{
  static node nodes[1000];
  char leaf[64];
  size_t count = read_tree(session, nodes, 1000, leaf), i;
  for (i = 0; i < count; i++) {
    if (strcmp(nodes[i].what, "user") == 0) {
      memcpy(id, nodes[i].id, 64);
    }
  }
}

static void copy_file(const char *from, const char *to)
{
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  int byte;
  if (in == NULL || out == NULL) {
    fprintf(stderr, "demo: cannot copy %s to %s\n", from, to);
    exit(1);
  }
  while ((byte = getc(in)) != EOF) {
    putc(byte, out);
  }
  fclose(in);
  fclose(out);
}

int main(int argc, char **argv)
{
  branchline_engine *engine = NULL;
  branchline_session *session = NULL, *fork = NULL;
  branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT; /* sets struct_size; the rest is default */
  branchline_callbacks callbacks = BRANCHLINE_CALLBACKS_INIT;
  branchline_toolbox *toolbox = NULL;
  branchline_toolbox_options toolbox_options = BRANCHLINE_TOOLBOX_OPTIONS_INIT;
  char file[4096], question[64] = "", *text = NULL;

  if (argc != 3) {
    fprintf(stderr, "usage: demo SESSION_FILE DIRECTORY\nWorks on a copy of SESSION_FILE in DIRECTORY.\n");
    return 2;
  }
  snprintf(file, sizeof file, "%s/session.jsonl", argv[2]);
  copy_file(argv[1], file);

  /* An engine, and the session of the file. */
  toolbox_options.cwd = argv[2];
  must(branchline_engine_new(NULL, &engine, &error));
  options.cwd = argv[2]; /* where the tools work */
  options.model = "scripted/demo";
  options.permissions = "allow"; /* run them without asking; the demo model only looks around */
  must(branchline_session_open(engine, file, &options, &session, &error));
  printf("branchline %s opened %s\n", branchline_version(), file);
  show_tree(session);

  /* Everything that happens from now on comes to on_event. */
  callbacks.on_event = on_event;
  must(branchline_session_subscribe(session, &callbacks, NULL, &error));
  ask(session, "What is in this folder?");

  /* The tools as functions, without a model. */
  must(branchline_toolbox_new(engine, &toolbox_options, &toolbox, &error));
  must(branchline_toolbox_call(toolbox, "ls", "{\"limit\":3}", NULL, NULL, &text, &error));
  printf("\nls: %s\n", text);
  branchline_string_free(text);
  branchline_toolbox_free(toolbox);

  /* Back to before that question, and another one instead: a second branch in the same file. */
  last_question(session, question);
  must(branchline_session_navigate(session, question, NULL, &text, &error));
  printf("\nback to before the question: %s\n", text); /* {"leaf":...,"editorText":"What is in this folder?"} */
  branchline_string_free(text);
  ask(session, "Which file would you read first?");

  /* The path to the first answer's question, in a file of its own. This session stays where it is. */
  must(branchline_session_fork(session, question, BRANCHLINE_FORK_AT, &fork, NULL, &error));
  must(branchline_session_path(fork, &text, &error));

  printf("\nthe tree of %s\n", file);
  show_tree(session);
  printf("\nthe fork, %s\n", text);
  show_tree(fork);

  branchline_string_free(text);
  branchline_session_free(fork);
  branchline_session_free(session);
  branchline_engine_free(engine);
  return 0;
}
