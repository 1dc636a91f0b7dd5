/* watch.c: see watch.h. */
#include "distributed/watch.h"

#include "core/error.h"
#include "distributed/lines.h"
#include "distributed/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    pthread_t thread;
    bool running;
    _Atomic bool ending;
    int wake[2];
    tp_lines lines;
    const tp_watch_events *events;
} watch = {.lines.fd = -1};

static void hear_line(char *line) {
    const tp_watch_events *events = watch.events;
    char who[300], said[420];
    int rank, group;
    if (!strncmp(line, "pmi ", 4)) {
        events->pmi(line + 4);
    } else if (sscanf(line, "ended %d %299[^\n]", &rank, who) == 2) {
        events->gone(rank, who, false);
    } else if (sscanf(line, "left %d %299[^\n]", &rank, who) == 2) {
        events->gone(rank, who, true);
    } else if (sscanf(line, "where %d %d", &rank, &group) == 2) {
        events->where(group, said, sizeof said);
        tp_lines_say(&watch.lines, "at %d %d %s", rank, group, said);
    } else if (sscanf(line, "at %d %d %419[^\n]", &rank, &group, said) == 3) {
        events->at(rank, group, said);
    } else if (!strcmp(line, "finish") || !strcmp(line, "stay")) {
        events->leave(line[0] == 'f');
    }
}

static void *look(void *unused TP_UNUSED) {
    int64_t beat = tp_now_ms(), heard = beat, before = beat;
    while (!atomic_load(&watch.ending)) {
        struct pollfd fds[2] = {{watch.wake[0], POLLIN, 0}, {watch.lines.fd, POLLIN, 0}};
        poll(fds, 2, TP_WATCH_BEAT / 5);
        int64_t now = tp_now_ms();
        if (now - before > 2 * TP_WATCH_BEAT) heard = now; /* it was this process that stood still */
        before = now;
        if (fds[1].revents) {
            if (tp_lines_fill(&watch.lines) < 0) {
                if (!atomic_load(&watch.ending)) watch.events->lost("has ended");
                break;
            }
            heard = now;
            for (char *line; (line = tp_lines_next(&watch.lines));) hear_line(line);
        }
        if (now - beat >= TP_WATCH_BEAT) {
            beat = now;
            tp_lines_say(&watch.lines, "alive");
        }
        if (now - heard > TP_WATCH_SILENCE) {
            watch.events->lost("does not answer");
            break;
        }
    }
    return NULL;
}

/* A child's copy of the socket would keep the connection open when its parent has ended. */
static void forget_in_child(void) {
    if (!watch.running) return;
    tp_lines_close(&watch.lines);
    watch.running = false;
}

static int connect_to(const char *address, int port) {
    char service[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(address, service, &hints, &found)) return tp_fail(TP_ValueError, "%s is no address", address);
    int fd = socket(found->ai_family, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) < 0) {
        int why = errno;
        close(fd);
        fd = -1;
        errno = why;
    }
    freeaddrinfo(found);
    if (fd < 0)
        tp_fail(TP_RuntimeError, "rank 0's server at %s:%d cannot be reached: %s", address, port, strerror(errno));
    return fd;
}

int tp_watch_start(const char *address, int port, const char *token, int rank, const char *host,
                   const tp_watch_events *events) {
    static bool watching_forks;
    int fd = connect_to(address, port);
    if (fd < 0) return -1;
    if (pipe(watch.wake) < 0) return close(fd), tp_fail(TP_RuntimeError, "no pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) fcntl(watch.wake[i], F_SETFD, FD_CLOEXEC);
    tp_lines_open(&watch.lines, fd);
    watch.events = events;
    atomic_store(&watch.ending, false);
    tp_lines_say(&watch.lines, "watch %s %d %s %d", token, rank, host, (int)getpid());
    if (!watching_forks) watching_forks = pthread_atfork(NULL, NULL, forget_in_child) == 0;
    if (pthread_create(&watch.thread, NULL, look, NULL)) {
        tp_lines_close(&watch.lines);
        return tp_fail(TP_RuntimeError, "no thread for the watch");
    }
    watch.running = true;
    return 0;
}

/* Short lines go out whole, so threads may say them beside each other. */
void tp_watch_ask(int group) {
    if (watch.running) tp_lines_say(&watch.lines, "where %d", group);
}

void tp_watch_say(const char *said) {
    if (watch.running) tp_lines_say(&watch.lines, "%s", said);
}

void tp_watch_stop(void) {
    if (!watch.running) return;
    watch.running = false;
    atomic_store(&watch.ending, true);
    (void)!write(watch.wake[1], "", 1);
    pthread_join(watch.thread, NULL);
    tp_lines_close(&watch.lines);
    for (int i = 0; i < 2; i++) close(watch.wake[i]);
}
