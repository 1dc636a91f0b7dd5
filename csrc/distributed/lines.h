/* lines.h: lines of text over a socket, for the server (server.c) and the watch (watch.c).
 *
 * A line that is longer than the room for it is an error, and so is a peer that does not read: nothing here waits. */
#pragma once

#include "distributed/engine.h"

#define TP_LINE_MAX 4096
#define TP_PMI_KEY 256 /* the longest words that PMI puts, with the byte behind them */
#define TP_PMI_VALUE 1024

typedef struct {
    int fd; /* -1: closed */
    int used, begun;
    char room[TP_LINE_MAX];
} tp_lines;

/* A socket that is neither inherited by programs that are started nor waited for. */
void tp_lines_open(tp_lines *l, int fd);
void tp_lines_close(tp_lines *l);
/* Reads what has come; -1: the peer has gone, or a line is too long. */
int tp_lines_fill(tp_lines *l);
/* The next whole line, without its end, valid until the next fill; NULL: none yet. */
char *tp_lines_next(tp_lines *l);
/* Sends a line, whose end is added. -1: the peer has gone, or does not read. */
int tp_lines_say(tp_lines *l, const char *format, ...) TP_PRINTF(2, 3);

int64_t tp_now_ms(void); /* of a clock that only goes on */
