/* call.h: one call at the key Batched, as the files of this folder share it. */
#pragma once

#include "batched/batched.h"
#include "batched/rule.h"
#include "dispatch/exchange.h"

#define TP_BATCH_ARGUMENTS 64 /* of any operator */
#define TP_BATCH_INT_LISTS 4  /* that have roles, of one operator */

typedef struct {
    const tp_op *op;
    const tp_batch_rule *rule;
    const tp_value *args;
    tp_batch_scope scope;
    tp_value given[TP_BATCH_ARGUMENTS]; /* what the physical call is given */
    tp_tensor **owned;                  /* its tensors */
    int64_t nowned;
    int64_t ints[TP_BATCH_INT_LISTS][TP_MAX_DIMS + 1];
    int nints;
    int ndim;          /* of a sample, as dimensions are counted in it */
    bool line;         /* a sample without dimensions counts as a line of one element */
    int whole_keepdim; /* dimensions of size 1 to put back where a whole sample was reduced; -1: none was */
} tp_batch_call;

int tp_batch_lines(tp_batch_call *c, tp_value *results);
int tp_batch_samples(tp_batch_call *c, tp_value *results);
int tp_batch_whole(tp_batch_call *c, tp_value *results);
/* Sample by sample. `repeat`: every sample draws the same random numbers. */
int tp_batch_loop(tp_batch_call *c, tp_value *results, bool repeat);

/* What is physical becomes batched; releases all results after an error. */
int tp_batch_wrap_results(const tp_batch_call *c, tp_value *results);
