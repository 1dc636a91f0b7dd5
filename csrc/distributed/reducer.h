/* reducer.h: sums over the processes of a group of many parts in few messages, which begin while parts are still
 * missing.
 *
 * Parts lie in buckets, which are flat tensors. A bucket is full when all of its parts are there; full buckets begin in
 * their order, as a message may only begin where all processes begin the same. Who has the parts writes them into the
 * buckets: this says which bucket is next, sends it, and waits for it. */
#pragma once

#include "distributed/work.h"

typedef struct tp_reducer tp_reducer;

tp_reducer *tp_reducer_new(int parts);
void tp_reducer_free(tp_reducer *r);
/* Each part's bucket, and the buckets' tensors (retained; NULL: somebody else carries this one). No round may be under
 * way. */
int tp_reducer_lay_out(tp_reducer *r, const int *bucket_of, tp_tensor *const *flat, int buckets);
/* A round begins: no part is there. */
void tp_reducer_begin(tp_reducer *r);
/* A part is there; false: it was before. */
bool tp_reducer_add(tp_reducer *r, int part);
bool tp_reducer_has(const tp_reducer *r, int part);
/* The full bucket whose turn it is, which counts as begun from now on; -1: none. */
int tp_reducer_next(tp_reducer *r);
/* Whether every bucket has begun. */
bool tp_reducer_all_begun(const tp_reducer *r);
/* Begins the sum of a bucket over a group; -1 with the error set. */
int tp_reducer_send(tp_reducer *r, int bucket, int group);
/* Waits for a bucket that was sent; nothing to wait for is no error. */
int tp_reducer_wait(tp_reducer *r, int bucket, double seconds);
