/*
 * page.c: a CGI program that does what probe.h says. `spawn=GATE` leaves a program behind that ends when the gate opens.
 */
#include "probe.h"

static void leave_behind(const probe *p) {
  if (fork() != 0) return;
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  probe behind = *p;
  snprintf(behind.id, sizeof behind.id, "behind-%.50s", p->id);
  probe_log(&behind, "start");
  probe_wait(p->folder, p->spawn);
  probe_log(&behind, "stop");
  _exit(0);
}

int main(void) {
  const char *folder = getenv("PROBE_HOME"), *query = getenv("QUERY_STRING");
  if (!folder) return 1;
  probe p;
  probe_read(&p, folder, query ? query : "", (int)getppid());
  if (*p.spawn) leave_behind(&p);
  probe_run(&p);
  if (*p.location) return printf("Location: %s\n\n", p.location) < 0;
  printf("Content-Type: text/plain\n\n");
  for (long i = 0; i < p.body; i++) putchar('x');
  printf("done %s\n", p.id);
  return 0;
}
