/* iter.h: the tensor iterator: one plan for walking over several tensors at once.
 *
 * From operands it makes: the common dtype, the broadcast shape, outputs (allocated with the inputs' layout, or checked
 * and resized), an order of dimensions in which memory is walked forward, merged dimensions, and a split over threads.
 * Pointwise operators use it through pointwise.h, reductions through reduce.h; an OpenCL launch reads the same plan.
 *
 * In a plan dimension 0 is the fastest. Strides are in bytes. Operands are numbered outputs first. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_dispatch)
#error "the core and the dispatcher do not know the iterator"
#endif

#include "core/tensor.h"
#include "tensorpy/expressions.h"

#define TP_MAX_OPERANDS 8

/* PyTorch's result type of operands: dimensioned tensors before 0-dimensional tensors before numbers, in each category.
 * TP_NO_DTYPE and the error set where there is none. */
tp_dtype tp_result_type(const tp_operand *operands, int n);
/* A 0-dimensional CPU tensor of a number, in the dtype that an operator of t and the number has. */
tp_tensor *tp_number_beside(const tp_scalar *number, const tp_tensor *t);
/* What an operator computes in, given the operands' result type, and the dtype of what it gives. */
tp_dtype tp_promotion_compute(tp_promotion promotion, tp_dtype common);
TP_INLINE tp_dtype tp_promotion_result(tp_promotion promotion, tp_dtype compute) {
    if (promotion == TP_PROMOTE_ALWAYS_BOOL) return TP_BOOL;
    return promotion == TP_PROMOTE_COMPLEX_TO_FLOAT ? tp_to_real_dtype(compute) : compute;
}
/* The error of a result that a tensor of another dtype is to hold and may not (tp_can_cast). */
int tp_check_castable(tp_dtype from, tp_dtype to);

typedef struct {
    int noperands, noutputs;
    int ndim;
    int64_t numel;
    int64_t shape[TP_MAX_DIMS];                    /* merged, fastest first */
    int64_t strides[TP_MAX_OPERANDS][TP_MAX_DIMS]; /* bytes */
    char *data[TP_MAX_OPERANDS];                   /* on the operands' device */
    tp_dtype dtype[TP_MAX_OPERANDS];               /* as stored */
    tp_dtype loop_dtype[TP_MAX_OPERANDS]; /* as the loop wants it; converted through blocks where they differ */
} tp_iter;

/* Broadcasts: the shape of all operands in natural order into `shape` (slowest first); returns ndim or -1. */
int tp_iter_broadcast(const tp_operand *operands, int n, int64_t *shape);
/* Strides (elements) for a new output of `shape`: the dimension order of the inputs is kept, as in PyTorch.
 * Whether they are the contiguous ones. */
bool tp_iter_output_strides(const tp_operand *inputs, int n, tp_ints shape, int64_t *strides);
/* Fills in a plan for walking `tensors` (outputs first, all broadcastable to `shape`): reorders and merges. A NULL
 * tensor stands for a number whose value lies at data[i], which the caller sets afterwards. */
int tp_iter_plan(tp_iter *it, tp_tensor *const *tensors, int noutputs, int n, tp_ints shape);
/* The plan of one dimension; data, strides and dtypes are the caller's to set. */
void tp_iter_flat(tp_iter *it, int noutputs, int n, int64_t numel);
/* How two tensors share memory: element for element, in part, or in a way that the strides do not settle. */
typedef enum { TP_OVERLAP_NONE, TP_OVERLAP_EXACT, TP_OVERLAP_PARTIAL, TP_OVERLAP_UNKNOWN } tp_overlap;
tp_overlap tp_overlap_of(const tp_tensor *a, const tp_tensor *b);
/* Fails where several elements of an output lie at one address. */
int tp_check_internal_overlap(const tp_tensor *output);
bool tp_overlaps_itself(const tp_tensor *output); /* what the check refuses */
/* Fails where what is read lies in the memory that is written, as far as the strides settle it. */
int tp_check_no_overlap(const tp_tensor *written, const tp_tensor *read);
/* Fails where an output overlaps itself, or overlaps an input in part. TP_OVERLAP_UNKNOWN passes: whoever must be right
 * asks tp_overlap_of and copies. A NULL input is skipped. */
int tp_iter_check_overlap(tp_tensor *const *tensors, int noutputs, int n);
