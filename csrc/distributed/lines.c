/* lines.c: see lines.h. */
#include "distributed/lines.h"

#include "core/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

void tp_lines_open(tp_lines *l, int fd) {
    int on = 1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    l->fd = fd;
    l->used = l->begun = 0;
}

void tp_lines_close(tp_lines *l) {
    if (l->fd >= 0) close(l->fd);
    l->fd = -1;
}

int tp_lines_fill(tp_lines *l) {
    memmove(l->room, l->room + l->begun, (size_t)(l->used - l->begun));
    l->used -= l->begun;
    l->begun = 0;
    if (l->used == TP_LINE_MAX) return -1;
    ssize_t n = recv(l->fd, l->room + l->used, (size_t)(TP_LINE_MAX - l->used), 0);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
    if (n == 0) return -1;
    l->used += (int)n;
    return 0;
}

char *tp_lines_next(tp_lines *l) {
    char *line = l->room + l->begun, *end = memchr(line, '\n', (size_t)(l->used - l->begun));
    if (!end) return NULL;
    *end = 0;
    l->begun = (int)(end + 1 - l->room);
    return line;
}

int tp_lines_say(tp_lines *l, const char *format, ...) {
    char line[TP_LINE_MAX];
    va_list args;
    if (l->fd < 0) return -1;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof line - 1) return -1;
    line[n++] = '\n';
    ssize_t sent;
    do sent = send(l->fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == n ? 0 : -1;
}

int64_t tp_now_ms(void) { return tp_clock_ns() / 1000000; }
