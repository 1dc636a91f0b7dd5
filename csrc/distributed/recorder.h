/* recorder.h: the last messages of this process, finished or not, for who asks why a world stands still.
 *
 * A ring of 2,000, or of as many as TORCH_FR_BUFFER_SIZE or TORCH_NCCL_TRACE_BUFFER_SIZE says when the first is begun;
 * 0: none is kept. It outlives the world. */
#pragma once

#include "distributed/work.h"

typedef struct {
    const char *name;
    int64_t id, number;        /* from 0 on; the group's messages of two have numbers of their own */
    int64_t count, came;       /* as in tp_message; of all_to_all the bytes for all and from all */
    int64_t begun_at, done_at; /* in us of a clock that only goes on; done_at is 0 until then */
    int group, peer;           /* a rank in the group */
    tp_message_kind kind;
    tp_dtype dtype;
} tp_record;

/* A copy of them, the oldest first, and how many; -1 without memory. The caller frees it. */
int64_t tp_records(tp_record **copy);

/* The rest is work.c's, which holds the world's lock: a message begins (and knows its record by a number), or is done.
 */
void tp_recorder_begin(tp_work *w, const tp_message *m);
void tp_recorder_end(const tp_work *w);
/* Appends the few that were begun before a message, the last first. */
void tp_recorder_tell(const tp_work *w, char *out, size_t room_of_out);
