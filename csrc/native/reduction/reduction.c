/* reduction.c: dtypes, shapes and outputs of the reductions that the YAML gives as expressions. */
#include "native/reduction/reduction.h"

#include "Functions.h"
#include "Primitives.h"
#include "native/reduction/reduce.h"
#include "native/common/variants.h"

static tp_dtype result_dtype(const tp_reduction_op *r, const tp_tensor *self, tp_dtype dtype) {
    if (r->promotion == TP_REDUCE_ALWAYS_BOOL) return TP_BOOL;
    if (dtype != TP_NO_DTYPE) return dtype;
    return r->promotion == TP_REDUCE_SUM && self->dtype < TP_FLOAT16 ? TP_INT64 : (tp_dtype)self->dtype;
}

static int check_dtype(const tp_reduction_op *r, const tp_tensor *self, tp_dtype dtype) {
    tp_dtype taken = dtype == TP_NO_DTYPE ? (tp_dtype)self->dtype : dtype;
    if (r->dtypes >> taken & 1) return 0;
    return tp_fail(TP_NotImplementedError, "%s: not implemented for dtype %s", r->name, tp_dtype_names[taken]);
}

/* What computes a result, from elements of self or converted to `dtype`. */
static tp_dtype compute_dtype(const tp_reduction_op *r, const tp_tensor *self, tp_dtype dtype, tp_dtype result) {
    bool own = r->promotion == TP_REDUCE_ALWAYS_BOOL && dtype == TP_NO_DTYPE;
    if (r->promotion == TP_REDUCE_SUM && result < TP_FLOAT16) return TP_INT64;
    return tp_compute_dtype(own ? (tp_dtype)self->dtype : r->promotion == TP_REDUCE_ALWAYS_BOOL ? dtype : result);
}

tp_tensor *tp_reduction_new(const tp_reduction_op *r, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    uint64_t mask;
    int64_t sizes[TP_MAX_DIMS], room[TP_MAX_DIMS];
    if (dtype == TP_BOOL && self->dtype != TP_BOOL) { /* before integers of which it would be one wrap */
        tp_autoref *truth = tp_to_dtype(self, TP_BOOL, false, false, TP_NO_FORMAT);
        return truth ? tp_reduction_new(r, truth, dim, keepdim, dtype) : NULL;
    }
    if (check_dtype(r, self, dtype) < 0 || tp_reduce_mask(dim, self->ndim, &mask) < 0) return NULL;
    tp_dtype result = result_dtype(r, self, dtype);
    int n = tp_reduce_sizes(self, mask, keepdim, sizes);
    tp_autoref *out = tp_new_empty((tp_ints){sizes, n}, result, self->device);
    if (!out || out->numel == 0) return tp_take(out);
    tp_dtype compute = compute_dtype(r, self, dtype, result);
    int status = tp_prim_reduce_program(r->number, self, tp_reduce_dims(self, mask, room), compute, out);
    return status == 0 ? tp_take(out) : NULL;
}

int tp_reduction_into(const tp_reduction_op *r, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype,
                      tp_tensor *out) {
    /* Along dimensions out's dtype is what is asked for; over all of them the result has its own, as in PyTorch. */
    bool chosen = dtype == TP_NO_DTYPE && dim.size >= 0 && r->promotion == TP_REDUCE_SUM;
    if (tp_check_out_whole(out, &self, 1) < 0) return -1;
    tp_autoref *made = tp_reduction_new(r, self, dim, keepdim, chosen ? (tp_dtype)out->dtype : dtype);
    return made ? tp_copy_into_out(out, made) : -1;
}
