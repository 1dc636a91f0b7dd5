/* pmi.h: what an MPI library asks of whoever started its process, answered in this process.
 *
 * The library speaks PMI-1, lines of words, over a descriptor (PMI_FD). Here that leads to a thread of this process,
 * which answers what it knows, and hands on to the server (server.h) what goes between processes: words under keys, and
 * the wait for all. The library says good-bye when its process ends, and not before, so the thread lives as long: no
 * other process has to. Another world of this process goes over the same descriptor. */
#pragma once

#include "distributed/engine.h"

/* Opens the way, or takes the one that is there for another world; the library's descriptor, or -1. `mapping` says
 * which ranks share a machine, in PMI's words. `forward` hands a line on, in the thread of PMI. */
int tp_pmi_open(int size, const char *token, const char *mapping, void (*forward)(const char *line));
/* The answer to a line that was handed on. */
void tp_pmi_reply(const char *line);
/* What is handed on, now and later, has no answer: a process has ended, or there is no server. */
void tp_pmi_fail(bool fails);
/* Lines that came, of which some were handed on. */
int64_t tp_pmi_lines(void);
