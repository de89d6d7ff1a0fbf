/* A service on loopback that speaks anthropic-messages. */
#ifndef SERVICE_H
#define SERVICE_H

#include <branchline.h>

#include <pthread.h>

typedef struct {
  int listener;
  pthread_t thread;
  int requests;     /* whole ones so far */
  char head[8192];  /* of the last one */
  char body[65536];
} service;

/* Starts it and gives its port. Between requests `head` and `body` may be read. */
unsigned service_start(service *self);
void service_stop(service *self);

/* Options of an engine whose provider "mine" is the service, with the model "m"; `more` are some more of them. `config` must
 * live as long. */
branchline_engine_options options_for(unsigned port, const char *directory, const char *more, char *config, size_t size);

#endif
