/* A service on loopback that speaks anthropic-messages, and says the same every time. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "service.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER \
  "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\",\"usage\":{}}}\n\n" \
  "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\"," \
  "\"text\":\"Hello over the wire.\"}}\n\n" \
  "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" \
  "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{}}\n\n" \
  "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

/* Reads one request: it stays in `head` and `body`. 0 when the connection is over. */
static int read_request(service *self, int connection)
{
  size_t length = 0, wanted = 0, have;
  char *end = NULL, *field;
  while (end == NULL && length < sizeof self->head - 1) {
    ssize_t got = recv(connection, self->head + length, sizeof self->head - 1 - length, 0);
    if (got <= 0) return 0;
    length += (size_t)got;
    self->head[length] = '\0';
    end = strstr(self->head, "\r\n\r\n");
  }
  if (end == NULL) return 0;
  field = strstr(self->head, "content-length: ");
  if (field) wanted = strtoul(field + 16, NULL, 10);
  if (wanted >= sizeof self->body) return 0;
  have = length - (size_t)(end + 4 - self->head);
  memcpy(self->body, end + 4, have);
  while (have < wanted) {
    ssize_t got = recv(connection, self->body + have, wanted - have, 0);
    if (got <= 0) return 0;
    have += (size_t)got;
  }
  self->body[have] = '\0';
  *end = '\0';
  self->requests++;
  return 1;
}

static void *serve(void *user_data)
{
  service *self = user_data;
  char answer[4096];
  int connection;
  snprintf(answer, sizeof answer,
           "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %zu\r\nconnection: close\r\n\r\n%s",
           strlen(ANSWER), ANSWER);
  while ((connection = accept(self->listener, NULL, NULL)) >= 0) {
    if (read_request(self, connection)) {
      ssize_t sent = send(connection, answer, strlen(answer), 0);
      CHECK(sent == (ssize_t)strlen(answer));
    }
    close(connection);
  }
  return NULL;
}

unsigned service_start(service *self)
{
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  memset(self, 0, sizeof *self);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  self->listener = socket(AF_INET, SOCK_STREAM, 0);
  if (self->listener < 0 || bind(self->listener, (struct sockaddr *)&address, length) || listen(self->listener, 8) ||
      getsockname(self->listener, (struct sockaddr *)&address, &length)) {
    perror("listen");
    exit(2);
  }
  pthread_create(&self->thread, NULL, serve, self);
  return ntohs(address.sin_port);
}

void service_stop(service *self)
{
  shutdown(self->listener, SHUT_RDWR);
  close(self->listener);
  pthread_join(self->thread, NULL);
}

branchline_engine_options options_for(unsigned port, const char *directory, const char *more, char *config, size_t size)
{
  branchline_engine_options options = BRANCHLINE_ENGINE_OPTIONS_INIT;
  snprintf(config, size,
           "{%s,\"builtinModels\":false,\"environment\":false,\"models\":{\"providers\":{\"mine\":{\"baseUrl\":"
           "\"http://127.0.0.1:%u\",\"api\":\"anthropic-messages\",\"models\":[{\"id\":\"m\"}]}}}}",
           more, port);
  options.agent_dir = directory;
  options.worker_threads = 2;
  options.config_json = config;
  return options;
}
