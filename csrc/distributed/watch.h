/* watch.h: what a process knows of the others, from the server (server.h), in a thread of its own. */
#pragma once

#include "distributed/engine.h"

/* What the watch tells; called in its thread, without any lock. */
typedef struct {
    /* A process has ended; or left, as it said before. `who` is "host pid". */
    void (*gone)(int rank, const char *who, bool left);
    /* The server has gone, or says nothing any more. */
    void (*lost)(const char *why);
    /* Another process asks for the last message of this one in a group: "number name". */
    void (*where)(int group, char *out, size_t room);
    /* The answer of another process. */
    void (*at)(int rank, int group, const char *said);
    /* The server's answer to what was said with "pmi " before it. */
    void (*pmi)(const char *line);
    /* All are leaving, or somebody has gone before. */
    void (*leave)(bool all);
} tp_watch_events;

/* Joins the server; -1 with the error set. */
int tp_watch_start(const char *address, int port, const char *token, int rank, const char *host,
                   const tp_watch_events *events);
/* Asks the others, or says "leaving" or "left". What cannot be said is lost: the watch ends anyway. */
void tp_watch_ask(int group);
void tp_watch_say(const char *word);
void tp_watch_stop(void);
