/* Runs all topics, or those named on the command line. The last line is the result. */
#include "check.h"

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*run)(void);
  } topics[] = {
    { "basics", test_basics },       { "handles", test_handles }, { "input", test_input },
    { "sessions", test_sessions },   { "tree", test_tree }, { "siblings", test_siblings }, { "context", test_context }, { "policy", test_policy },       { "events", test_events },
    { "callbacks", test_callbacks }, { "reentry", test_reentry }, { "process", test_process },
    { "toolbox", test_toolbox },     { "tools", test_tools },
    { "models", test_models },       { "keys", test_keys },         { "payload", test_payload }, { "resources", test_resources },
  };
  size_t n;
  int i;
  for (n = 0; n < sizeof topics / sizeof *topics; n++) {
    int wanted = argc == 1;
    for (i = 1; i < argc; i++) {
      wanted = wanted || strcmp(argv[i], topics[n].name) == 0;
    }
    if (wanted) {
      printf("%s\n", topics[n].name);
      fflush(stdout);
      topics[n].run();
    }
  }
  printf("%d passed, %d failed\n", checks_passed, checks_failed);
  return checks_failed == 0 ? 0 : 1;
}
