/* pmi.c: see pmi.h. */
#include "distributed/pmi.h"

#include "core/error.h"
#include "distributed/lines.h"

#include <errno.h>
#include <fcntl.h>
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
    _Atomic bool fails, asked; /* asked: a line was handed on, and has no answer yet */
    tp_lines lines;
    int size, library; /* the library's descriptor */
    char token[128], mapping[TP_LINE_MAX / 2];
    void (*forward)(const char *line);
} pmi = {.lines.fd = -1};
static _Atomic int64_t count;

int64_t tp_pmi_lines(void) { return atomic_load(&count); }

static void refuse(void) {
    if (atomic_exchange(&pmi.asked, false)) tp_lines_say(&pmi.lines, "cmd=barrier_out rc=-1 msg=a_process_ended");
}

void tp_pmi_fail(bool fails) {
    atomic_store(&pmi.fails, fails);
    if (fails && pmi.running) refuse();
}

void tp_pmi_reply(const char *line) {
    if (pmi.running && atomic_exchange(&pmi.asked, false)) tp_lines_say(&pmi.lines, "%s", line);
}

static bool is(const char *line, const char *command) {
    size_t n = strlen(command);
    return !strncmp(line, "cmd=", 4) && !strncmp(line + 4, command, n) && (line[4 + n] == ' ' || !line[4 + n]);
}

static void answer(char *line) {
    tp_lines *to = &pmi.lines;
    atomic_fetch_add(&count, 1);
    if (is(line, "init")) {
        tp_lines_say(to, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    } else if (is(line, "get_maxes")) {
        tp_lines_say(to, "cmd=maxes kvsname_max=128 keylen_max=%d vallen_max=%d rc=0", TP_PMI_KEY, TP_PMI_VALUE);
    } else if (is(line, "get_appnum")) {
        tp_lines_say(to, "cmd=appnum appnum=0 rc=0");
    } else if (is(line, "get_universe_size")) {
        tp_lines_say(to, "cmd=universe_size size=%d rc=0", pmi.size);
    } else if (is(line, "get_my_kvsname")) {
        tp_lines_say(to, "cmd=my_kvsname kvsname=%s rc=0", pmi.token);
    } else if (is(line, "finalize")) {
        tp_lines_say(to, "cmd=finalize_ack rc=0");
    } else if (is(line, "get") && strstr(line, "key=PMI_process_mapping")) {
        tp_lines_say(to, "cmd=get_result rc=0 msg=success value=%s", pmi.mapping);
    } else if (is(line, "get") && strstr(line, "key=PMI_")) { /* what a launcher might say beside */
        tp_lines_say(to, "cmd=get_result rc=-1 msg=key_not_found value=unknown");
    } else if (is(line, "put") || is(line, "get") || is(line, "barrier_in")) {
        atomic_store(&pmi.asked, true);
        if (atomic_load(&pmi.fails)) refuse();
        else pmi.forward(line);
    } else {
        tp_lines_say(to, "cmd=unknown rc=-1 msg=unknown_command");
    }
}

static void *speak(void *unused TP_UNUSED) {
    for (;;) {
        struct pollfd fd = {pmi.lines.fd, POLLIN, 0};
        if (poll(&fd, 1, -1) < 0 && errno != EINTR) break;
        if (tp_lines_fill(&pmi.lines) < 0) break;
        for (char *line; (line = tp_lines_next(&pmi.lines));) answer(line);
    }
    return NULL;
}

int tp_pmi_open(int size, const char *token, const char *mapping, void (*forward)(const char *line)) {
    int ends[2];
    if (strlen(token) >= sizeof pmi.token || strlen(mapping) >= sizeof pmi.mapping)
        return tp_fail(TP_ValueError, "no world of %d processes with the map %s", size, mapping);
    pmi.size = size;
    snprintf(pmi.token, sizeof pmi.token, "%s", token);
    snprintf(pmi.mapping, sizeof pmi.mapping, "%s", mapping);
    if (pmi.running) return pmi.library;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        return tp_fail(TP_RuntimeError, "no pair of sockets: %s", strerror(errno));
    tp_lines_open(&pmi.lines, ends[0]);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    pmi.library = ends[1];
    pmi.forward = forward;
    if (pthread_create(&pmi.thread, NULL, speak, NULL)) return tp_fail(TP_RuntimeError, "no thread for PMI");
    pmi.running = true;
    return ends[1];
}
