/* reduce.h: what the primitives reduce.* compute in, and the programs of reduce.program. */
#pragma once

#include "core/tensor.h"
#include "prim/program.h"

/* What sums into an output are accumulated in: float32 for the 16-bit floats, int64 for all integers. */
TP_INLINE tp_dtype tp_sum_dtype(tp_dtype out) { return tp_is_integral_dtype(out) ? TP_INT64 : tp_compute_dtype(out); }
/* What reduce.length computes in. */
TP_INLINE tp_dtype tp_length_dtype(const tp_tensor *x, tp_dtype out) {
    return tp_compute_dtype(tp_is_complex(x) ? tp_to_complex_dtype(out) : out);
}

/* How many elements are folded into one accumulator, before accumulators are put together. */
#define TP_REDUCE_LEAF 4096

/* The folds of reduce.*, for fused.reduce: of max and min the values alone. */
typedef enum {
    TP_FOLD_SUM,
    TP_FOLD_MEAN,
    TP_FOLD_NANSUM,
    TP_FOLD_ANY,
    TP_FOLD_ALL,
    TP_FOLD_COUNT,
    TP_FOLD_MAX,
    TP_FOLD_MIN,
    TP_FOLD_LENGTH,
    TP_FOLD_PROGRAM,
} tp_fold;

/* Generated (ReductionTable.c), by number. */
extern const tp_reduction_op *const tp_reduction_table[];
extern const int64_t tp_reduction_count;
/* By number, those from outside too, whose numbers come after; NULL for none. */
const tp_reduction_op *tp_reduction_of(int64_t number);
/* Gives a reduction from outside, which stays, its number, unless it has one. */
int tp_add_reduction(tp_reduction_op *r);

/* The reduction of a program; NULL and the error set for a number that is none's, or a dtype it does not compute in. */
const tp_reduction_op *tp_reduction_at(int64_t program, tp_dtype compute);
/* The same described for a device from outside. */
int tp_reduce_program_of(int64_t program, tp_dtype compute, tp_reduce_program *out);
