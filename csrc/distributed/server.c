/* server.c: see server.h.
 *
 * One thread, one poll over all connections; nothing in it waits for one of them. Invariant: a rank has at most one
 * connection, and its end is told once. */
#include "distributed/server.h"

#include "core/error.h"
#include "distributed/lines.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_KEYS 64       /* of a process */
#define STOP_PATIENCE 1000 /* ms that the server goes on for those who have not left yet */

typedef enum { UNKNOWN, MEMBER, GONE } standing;

typedef struct {
    tp_lines lines;
    standing is;
    int rank;
    int64_t heard; /* when a line came last */
} connection;

typedef struct {
    int at;       /* of connections; -1: none */
    bool leaving; /* has no more to do, and waits for the others to say so */
    bool over;    /* has ended or left, and the others know */
    int keys;
    char who[300]; /* "host pid" */
} member;

typedef struct entry {
    struct entry *next;
    char *key, *value;
} entry;

static struct {
    pthread_t thread;
    bool running;
    int listener, wake[2];
    int size, waiting, count, room;
    int64_t stops; /* ms; 0: not yet */
    member *members;
    connection **connections;
    entry *entries;
    char token[128];
} server;

/* ---- what is told ---- */

static connection *of_rank(int rank) {
    int at = server.members[rank].at;
    return at < 0 ? NULL : server.connections[at];
}

static void tell_all(int but, const char *line) {
    for (int r = 0; r < server.size; r++)
        if (r != but && of_rank(r)) tp_lines_say(&of_rank(r)->lines, "%s", line);
}

/* Who is about to leave hears whether all are, and so may end MPI together, or whether somebody has gone before. */
static void tell_leavers(void) {
    int leaving = 0, missing = 0;
    for (int r = 0; r < server.size; r++) {
        leaving += server.members[r].leaving;
        missing += server.members[r].over && !server.members[r].leaving;
    }
    if (leaving < server.size && !missing) return;
    for (int r = 0; r < server.size; r++)
        if (server.members[r].leaving && of_rank(r)) tp_lines_say(&of_rank(r)->lines, missing ? "stay" : "finish");
}

static void ended(int rank, const char *how) {
    char line[400];
    member *m = &server.members[rank];
    if (m->over) return;
    m->over = true;
    snprintf(line, sizeof line, "%s %d %s", how, rank, m->who[0] ? m->who : "? 0");
    tell_all(rank, line);
    tell_leavers();
}

/* ---- what MPI libraries put and ask while they start (PMI-1) ---- */

/* The word behind `name=` in a line of such pairs; false where there is none, or it does not fit. */
static bool word(const char *line, const char *name, char *out, size_t room) {
    size_t length = strlen(name);
    for (const char *at = line; (at = strstr(at, name)); at += length)
        if (at[length] == '=' && (at == line || at[-1] == ' ')) {
            const char *begin = at + length + 1;
            size_t n = strcspn(begin, " ");
            if (n >= room) return false;
            memcpy(out, begin, n);
            out[n] = 0;
            return true;
        }
    return false;
}

static bool put(connection *c, const char *key, const char *value) {
    if (++server.members[c->rank].keys > MOST_KEYS) return false;
    entry *e = malloc(sizeof *e);
    if (!e) return false;
    *e = (entry){server.entries, strdup(key), strdup(value)};
    if (!e->key || !e->value) return free(e->key), free(e->value), free(e), false;
    server.entries = e;
    return true;
}

static const char *look_up(const char *key) {
    for (entry *e = server.entries; e; e = e->next)
        if (!strcmp(e->key, key)) return e->value;
    return NULL;
}

static void enter_barrier(void) {
    if (++server.waiting < server.size) return;
    server.waiting = 0;
    for (int r = 0; r < server.size; r++)
        if (of_rank(r)) tp_lines_say(&of_rank(r)->lines, "pmi cmd=barrier_out");
}

static void pmi_says(connection *c, const char *line) {
    char command[32] = "", key[TP_PMI_KEY], value[TP_PMI_VALUE];
    tp_lines *to = &c->lines;
    word(line, "cmd", command, sizeof command);
    if (!strcmp(command, "put")) {
        bool done =
            word(line, "key", key, sizeof key) && word(line, "value", value, sizeof value) && put(c, key, value);
        tp_lines_say(to, "pmi cmd=put_result rc=%d msg=%s", done ? 0 : -1, done ? "success" : "refused");
    } else if (!strcmp(command, "get")) {
        const char *found = word(line, "key", key, sizeof key) ? look_up(key) : NULL;
        if (found) tp_lines_say(to, "pmi cmd=get_result rc=0 msg=success value=%s", found);
        else tp_lines_say(to, "pmi cmd=get_result rc=-1 msg=key_not_found value=unknown");
    } else if (!strcmp(command, "barrier_in")) {
        enter_barrier();
    }
}

/* ---- connections ---- */

static void member_says(connection *c, const char *line) {
    int asker, group;
    char rest[512];
    if (!strcmp(line, "alive")) {
        tp_lines_say(&c->lines, "alive");
    } else if (!strncmp(line, "pmi ", 4)) {
        pmi_says(c, line + 4);
    } else if (!strcmp(line, "left")) {
        ended(c->rank, "left");
    } else if (!strcmp(line, "leaving")) {
        server.members[c->rank].leaving = true;
        tell_leavers();
    } else if (sscanf(line, "where %d", &group) == 1) {
        snprintf(rest, sizeof rest, "where %d %d", c->rank, group);
        tell_all(c->rank, rest);
    } else if (sscanf(line, "at %d %d %400[^\n]", &asker, &group, rest) == 3) {
        if (asker >= 0 && asker < server.size && of_rank(asker))
            tp_lines_say(&of_rank(asker)->lines, "at %d %d %s", c->rank, group, rest);
    }
}

/* watch TOKEN RANK HOST PID */
static bool join(int at, const char *line) {
    connection *c = server.connections[at];
    char token[128], host[256];
    int rank, pid;
    if (sscanf(line, "watch %127s %d %255s %d", token, &rank, host, &pid) != 4) return false;
    if (strcmp(token, server.token) || rank < 0 || rank >= server.size || server.members[rank].at >= 0) return false;
    c->is = MEMBER;
    c->rank = rank;
    server.members[rank].at = at;
    snprintf(server.members[rank].who, sizeof server.members[rank].who, "%s %d", host, pid);
    tp_lines_say(&c->lines, "alive");
    for (int r = 0; r < server.size; r++) /* who came late hears who has gone */
        if (server.members[r].over) tp_lines_say(&c->lines, "ended %d %s", r, server.members[r].who);
    return true;
}

static void let_go(int at) {
    connection *c = server.connections[at];
    tp_lines_close(&c->lines);
    standing was = c->is;
    c->is = GONE;
    if (was != MEMBER) return;
    server.members[c->rank].at = -1;
    ended(c->rank, "ended");
}

static void hear(int at) {
    connection *c = server.connections[at];
    if (tp_lines_fill(&c->lines) < 0) {
        let_go(at);
        return;
    }
    for (char *line; c->is != GONE && (line = tp_lines_next(&c->lines));) {
        c->heard = tp_now_ms();
        if (c->is == MEMBER) member_says(c, line);
        else if (!join(at, line)) let_go(at);
    }
}

static void welcome(void) {
    int fd = accept(server.listener, NULL, NULL);
    if (fd < 0) return;
    int at = 0;
    while (at < server.count && server.connections[at]->is != GONE) at++;
    if (at == server.room) { /* more than the world can have: a stranger, or many */
        close(fd);
        return;
    }
    if (at == server.count) {
        if (!(server.connections[at] = malloc(sizeof(connection)))) {
            close(fd);
            return;
        }
        server.count++;
    }
    *server.connections[at] = (connection){.is = UNKNOWN, .rank = -1, .heard = tp_now_ms()};
    tp_lines_open(&server.connections[at]->lines, fd);
}

static void look_for_silence(int64_t now, int64_t slept) {
    for (int i = 0; i < server.count; i++) {
        connection *c = server.connections[i];
        if (c->is == GONE) continue;
        if (slept > 2 * TP_WATCH_BEAT) c->heard = now; /* it was this process that stood still */
        else if (now - c->heard > TP_WATCH_SILENCE) let_go(i);
    }
}

/* Who is still there may ask something of MPI's end. */
static bool all_have_gone(void) {
    for (int r = 0; r < server.size; r++)
        if (server.members[r].at >= 0 && !server.members[r].over) return false;
    return true;
}

static void *serve(void *unused TP_UNUSED) {
    struct pollfd *fds = malloc(sizeof(struct pollfd) * (size_t)(server.room + 2));
    for (int64_t before = tp_now_ms(); fds;) {
        fds[0] = (struct pollfd){server.wake[0], POLLIN, 0};
        fds[1] = (struct pollfd){server.listener, POLLIN, 0};
        int n = server.count;
        for (int i = 0; i < n; i++) fds[i + 2] = (struct pollfd){server.connections[i]->lines.fd, POLLIN, 0};
        poll(fds, (nfds_t)n + 2, server.stops ? 20 : 1000);
        int64_t now = tp_now_ms();
        if (fds[0].revents) {
            char word;
            if (read(server.wake[0], &word, 1) == 1) server.stops = now + STOP_PATIENCE;
        }
        for (int i = 0; i < n; i++)
            if (fds[i + 2].revents && server.connections[i]->lines.fd >= 0) hear(i);
        look_for_silence(now, now - before);
        if (fds[1].revents) welcome();
        if (server.stops && (now >= server.stops || all_have_gone())) break;
        before = now;
    }
    free(fds);
    return NULL;
}

/* ---- the start and the end ---- */

static void close_all(void) {
    if (server.listener >= 0) close(server.listener);
    for (int i = 0; i < 2; i++)
        if (server.wake[i] >= 0) close(server.wake[i]);
    for (int i = 0; i < server.count; i++) tp_lines_close(&server.connections[i]->lines);
}

static void free_all(void) {
    close_all();
    for (int i = 0; i < server.count; i++) free(server.connections[i]);
    for (entry *e = server.entries, *next; e; e = next) {
        next = e->next;
        free(e->key);
        free(e->value);
        free(e);
    }
    free(server.members);
    free(server.connections);
    memset(&server, 0, sizeof server);
    server.listener = server.wake[0] = server.wake[1] = -1;
}

/* A child has no server: its copies of the sockets would keep the connections open. */
static void forget_in_child(void) {
    if (!server.running) return;
    close_all();
    server.running = false;
    server.count = 0;
}

static int listen_at(const char *address) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST}, *found;
    int on = 1, port = -1;
    if (getaddrinfo(address, "0", &hints, &found)) return tp_fail(TP_ValueError, "%s is no address", address);
    server.listener = socket(found->ai_family, SOCK_STREAM, 0);
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    if (server.listener >= 0 && setsockopt(server.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(server.listener, found->ai_addr, found->ai_addrlen) == 0 && listen(server.listener, 1024) == 0 &&
        getsockname(server.listener, (struct sockaddr *)&bound, &length) == 0)
        port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                 : ((struct sockaddr_in *)&bound)->sin_port);
    freeaddrinfo(found);
    if (port < 0) return tp_fail(TP_RuntimeError, "cannot listen at %s: %s", address, strerror(errno));
    fcntl(server.listener, F_SETFD, FD_CLOEXEC);
    fcntl(server.listener, F_SETFL, O_NONBLOCK);
    return port;
}

int tp_server_start(const char *address, int size, const char *token) {
    static bool watching_forks;
    if (server.running) return tp_fail(TP_RuntimeError, "the server of this process is running already");
    memset(&server, 0, sizeof server);
    server.listener = server.wake[0] = server.wake[1] = -1;
    if (size < 1 || strlen(token) >= sizeof server.token)
        return tp_fail(TP_ValueError, "no world of %d processes with the name %s", size, token);
    server.size = size;
    server.room = size + 64; /* strangers have some room, too */
    server.members = calloc((size_t)size, sizeof *server.members);
    server.connections = calloc((size_t)server.room, sizeof *server.connections);
    if (!server.members || !server.connections) return free_all(), tp_fail_memory(server.room);
    for (int r = 0; r < size; r++) server.members[r].at = -1;
    snprintf(server.token, sizeof server.token, "%s", token);
    int port = listen_at(address);
    if (port < 0 || pipe(server.wake) < 0) {
        if (port >= 0) tp_fail(TP_RuntimeError, "no pipe: %s", strerror(errno));
        free_all();
        return -1;
    }
    for (int i = 0; i < 2; i++) fcntl(server.wake[i], F_SETFD, FD_CLOEXEC);
    if (!watching_forks) watching_forks = pthread_atfork(NULL, NULL, forget_in_child) == 0;
    if (pthread_create(&server.thread, NULL, serve, NULL))
        return free_all(), tp_fail(TP_RuntimeError, "no thread for the server of the world");
    server.running = true;
    return port;
}

void tp_server_stop(void) {
    if (!server.running) return;
    server.running = false;
    (void)!write(server.wake[1], "", 1);
    pthread_join(server.thread, NULL);
    free_all();
}
