/* reduce.c: sums, means and questions of zero as operators: dtypes and shapes; see reduce.h too. */
#include "native/reduction/reduce.h"

#include "NativeFunctions.h"
#include "Primitives.h"
#include "iter/iter.h"

/* ---- dimensions ---- */

int tp_reduce_mask(tp_ints dim, int64_t ndim, uint64_t *mask) {
    *mask = dim.size <= 0 ? TP_ALL_DIMS : 0;
    for (int64_t i = 0; i < dim.size; i++) {
        int64_t d = tp_wrap_dim(dim.data[i], ndim);
        if (d < 0) return -1;
        if (*mask >> d & 1)
            return tp_fail(TP_RuntimeError, "dim %lld appears multiple times in the list of dims", (long long)d);
        *mask |= UINT64_C(1) << d;
    }
    return 0;
}

int tp_reduce_sizes(const tp_tensor *self, uint64_t mask, bool keepdim, int64_t *sizes) {
    int n = 0;
    for (int d = 0; d < self->ndim; d++) {
        if (!(mask >> d & 1)) sizes[n++] = self->sizes[d];
        else if (keepdim) sizes[n++] = 1;
    }
    return n;
}

tp_ints tp_reduce_dims(const tp_tensor *self, uint64_t mask, int64_t *room) {
    int64_t n = 0;
    for (int d = 0; d < self->ndim; d++)
        if (mask >> d & 1) room[n++] = d;
    return (tp_ints){room, n};
}

int tp_reduce_by(tp_reduce_prim prim, tp_tensor *self, uint64_t mask, tp_tensor *out) {
    int64_t room[TP_MAX_DIMS];
    return out->numel ? prim(self, tp_reduce_dims(self, mask, room), out) : 0;
}

/* ---- dtypes ---- */

/* Integers and bool add and multiply to int64, unless the caller says otherwise. */
static tp_dtype result_dtype(const tp_tensor *self, tp_dtype dtype) {
    if (dtype != TP_NO_DTYPE) return dtype;
    return self->dtype < TP_FLOAT16 ? TP_INT64 : (tp_dtype)self->dtype;
}

/* The same for a meta function: what out= has decides where the caller is silent. */
static tp_dtype asked_dtype(const tp_meta *m, tp_dtype dtype) {
    return dtype == TP_NO_DTYPE && m->given[0] ? (tp_dtype)m->given[0]->dtype : dtype;
}

static int declare(tp_meta *m, const tp_tensor *self, uint64_t mask, bool keepdim, tp_dtype dtype) {
    int64_t sizes[TP_MAX_DIMS];
    int n = tp_reduce_sizes(self, mask, keepdim, sizes);
    return tp_meta_output(m, 0, (tp_ints){sizes, n}, TP_NO_INTS, dtype, self->device);
}

/* All dimensions into a new tensor of `dtype`. */
static tp_tensor *reduce_whole(tp_reduce_prim prim, tp_tensor *self, tp_dtype dtype) {
    tp_autoref *out = tp_new_empty(TP_EMPTY_INTS, dtype, self->device);
    return out && tp_reduce_by(prim, self, TP_ALL_DIMS, out) == 0 ? tp_take(out) : NULL;
}

static int reduce_dims(tp_reduce_prim prim, tp_tensor *self, tp_ints dim, tp_tensor *out) {
    uint64_t mask;
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    return tp_reduce_by(prim, self, mask, out);
}

/* ---- sum ---- */

/* sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
int sum_dim_IntList_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    uint64_t mask;
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    return declare(m, self, mask, keepdim, result_dtype(self, asked_dtype(m, dtype)));
}

int sum_dim_IntList_dense(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_dtype dtype TP_UNUSED,
                          tp_tensor *out) {
    return reduce_dims(tp_prim_reduce_sum, self, dim, out);
}

/* sum(Tensor self, *, ScalarType? dtype=None) -> Tensor */
tp_tensor *sum_dense(tp_tensor *self, tp_dtype dtype) {
    return reduce_whole(tp_prim_reduce_sum, self, result_dtype(self, dtype));
}

/* ---- nansum, nanmean ---- */

/* Integers have no NaN. */
static tp_reduce_prim nansum_to(const tp_tensor *out) {
    return tp_is_floating(out) ? tp_prim_reduce_nansum : tp_prim_reduce_sum;
}

/* nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
int nansum_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    if (tp_is_complex(self)) return tp_fail(TP_RuntimeError, "nansum on CPU does not support complex inputs");
    return sum_dim_IntList_meta(m, self, dim, keepdim, dtype);
}

/* A NaN must be left out before it becomes an integer. */
int nansum_dense(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_dtype dtype TP_UNUSED, tp_tensor *out) {
    if (!tp_is_floating(self) || tp_is_floating(out)) return reduce_dims(nansum_to(out), self, dim, out);
    tp_autoref *numbers =
        tp_nan_to_num(self, TP_SOME_FLOAT(0), TP_SOME_FLOAT(__builtin_inf()), TP_SOME_FLOAT(-__builtin_inf()));
    return numbers ? reduce_dims(tp_prim_reduce_sum, numbers, dim, out) : -1;
}

/* nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
tp_tensor *nanmean_composite(tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    if (!tp_is_floating(self) && !tp_is_complex(self))
        return tp_fail_null(TP_RuntimeError,
                            "nanmean(): expected input to have floating point or complex dtype but got %s",
                            tp_scalar_type_name((tp_dtype)self->dtype));
    if (dtype != TP_NO_DTYPE && !tp_is_floating_dtype(dtype) && !tp_is_complex_dtype(dtype))
        return tp_fail_null(
            TP_RuntimeError,
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or "
            "complex dtype. Got: %s",
            tp_scalar_type_name(dtype));
    tp_autoref *missing = tp_isnan(self), *there = missing ? tp_logical_not(missing) : NULL;
    tp_autoref *count = there ? tp_sum_dim_IntList(there, dim, keepdim, TP_NO_DTYPE) : NULL;
    tp_autoref *sum = count ? tp_nansum(self, dim, keepdim, dtype) : NULL;
    return sum ? tp_div_Tensor(sum, count) : NULL;
}

/* ---- mean ---- */

/* TP_NO_DTYPE and an error for what has no mean of its own dtype. */
static tp_dtype mean_dtype(const tp_tensor *self, tp_dtype dtype) {
    tp_dtype result = dtype != TP_NO_DTYPE ? dtype : (tp_dtype)self->dtype;
    if (tp_is_floating_dtype(result) || tp_is_complex_dtype(result)) return result;
    tp_fail(TP_RuntimeError,
            "mean(): could not infer output dtype. %s dtype must be either a floating point or complex dtype. "
            "Got: %s",
            dtype != TP_NO_DTYPE ? "Optional" : "Input", tp_scalar_type_name(result));
    return TP_NO_DTYPE;
}

/* mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
int mean_dim_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    uint64_t mask;
    tp_dtype result = mean_dtype(self, asked_dtype(m, dtype));
    if (result == TP_NO_DTYPE || tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    return declare(m, self, mask, keepdim, result);
}

int mean_dim_dense(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_dtype dtype TP_UNUSED, tp_tensor *out) {
    return reduce_dims(tp_prim_reduce_mean, self, dim, out);
}

/* mean(Tensor self, *, ScalarType? dtype=None) -> Tensor */
tp_tensor *mean_dense(tp_tensor *self, tp_dtype dtype) {
    tp_dtype result = mean_dtype(self, dtype);
    return result == TP_NO_DTYPE ? NULL : reduce_whole(tp_prim_reduce_mean, self, result);
}

/* ---- any, all ---- */

/* The answer is a bool; that of uint8 stays uint8, as it was before there was bool. */
static int any_meta_of(tp_meta *m, const char *op, tp_tensor *self, uint64_t mask, bool keepdim) {
    tp_dtype dtype = self->dtype == TP_UINT8 ? TP_UINT8 : TP_BOOL;
    if (m->given[0] && m->given[0]->dtype != TP_BOOL && m->given[0]->dtype != TP_UINT8)
        return tp_fail(TP_RuntimeError, "%s only supports bool tensor for result, got: %s", op,
                       tp_scalar_type_name((tp_dtype)m->given[0]->dtype));
    return declare(m, self, mask, keepdim, m->given[0] ? (tp_dtype)m->given[0]->dtype : dtype);
}

/* The dimensions of a list; None is all of them, an empty one none. */
static int mask_of_some(tp_ints dim, int64_t ndim, uint64_t *mask) {
    if (tp_reduce_mask(dim, ndim, mask) < 0) return -1;
    if (dim.size == 0) *mask = 0;
    return 0;
}

#define ANY(op)                                                                                          \
    int op##_meta(tp_meta *m, tp_tensor *self) { return any_meta_of(m, #op, self, TP_ALL_DIMS, false); } \
    int op##_dense(tp_tensor *self, tp_tensor *out) {                                                    \
        return tp_reduce_by(tp_prim_reduce_##op, self, TP_ALL_DIMS, out);                                \
    }                                                                                                    \
    int op##_dims_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim) {                         \
        uint64_t mask;                                                                                   \
        return mask_of_some(dim, self->ndim, &mask) < 0 ? -1 : any_meta_of(m, #op, self, mask, keepdim); \
    }                                                                                                    \
    int op##_dims_dense(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_tensor *out) {          \
        uint64_t mask;                                                                                   \
        if (mask_of_some(dim, self->ndim, &mask) < 0) return -1;                                         \
        return tp_reduce_by(tp_prim_reduce_##op, self, mask, out);                                       \
    }                                                                                                    \
    int op##_dim_meta(tp_meta *m, tp_tensor *self, int64_t dim, bool keepdim) {                          \
        return op##_dims_meta(m, self, TP_INTS(dim), keepdim);                                           \
    }                                                                                                    \
    int op##_dim_dense(tp_tensor *self, int64_t dim, bool keepdim, tp_tensor *out) {                     \
        return op##_dims_dense(self, TP_INTS(dim), keepdim, out);                                        \
    }

/* any(Tensor self), any.dims(Tensor self, int[]? dim=None, bool keepdim=False), any.dim(Tensor self, int dim, ...) */
ANY(any)
/* all(Tensor self), all.dims(Tensor self, int[]? dim=None, bool keepdim=False), all.dim(Tensor self, int dim, ...) */
ANY(all)

/* ---- count_nonzero ---- */

/* count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor */
tp_tensor *count_nonzero_dim_IntList_dense(tp_tensor *self, tp_ints dim) {
    uint64_t mask;
    int64_t sizes[TP_MAX_DIMS];
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return NULL;
    int n = tp_reduce_sizes(self, mask, false, sizes);
    tp_autoref *out = tp_new_empty((tp_ints){sizes, n}, TP_INT64, self->device);
    return out && tp_reduce_by(tp_prim_reduce_count, self, mask, out) == 0 ? tp_take(out) : NULL;
}

/* count_nonzero(Tensor self, int? dim=None) -> Tensor */
tp_tensor *count_nonzero_composite(tp_tensor *self, tp_opt_int dim) {
    return tp_count_nonzero_dim_IntList(self, dim.has ? TP_INTS(dim.value) : TP_EMPTY_INTS);
}

/* ---- hash_tensor ---- */

/* hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor */
tp_tensor *hash_tensor_composite(tp_tensor *self, tp_ints dim, bool keepdim, int64_t mode) {
    if (mode != 0) return tp_fail_null(TP_RuntimeError, "Unknown hash_tensor mode: %lld", (long long)mode);
    int category = tp_dtype_categories[self->dtype];
    if (category > TP_FLOATING)
        return tp_fail_null(TP_NotImplementedError, "\"xor_sum_cpu\" not implemented for '%s'",
                            tp_scalar_type_name((tp_dtype)self->dtype));
    uint64_t mask;
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return NULL;
    if (dim.size == 0 && self->numel == 0)
        return tp_fail_null(TP_RuntimeError,
                            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the "
                            "reduction dim with the 'dim' argument.");
    for (int d = 0; d < self->ndim; d++)
        if (mask >> d & 1 && self->sizes[d] == 0)
            return tp_fail_null(TP_IndexError, "hash_tensor: Expected reduction dim %d to have non-zero size.", d);
    bool floating = category == TP_FLOATING, words = floating || self->dtype == TP_UINT64;
    tp_autoref *read = tp_resolve_neg(self),    /* whose memory is what it says */
        *plain = read ? tp_detach(read) : NULL, /* a view in integers has no tangent */
            *wide = plain && floating ? tp_to_dtype(plain, TP_FLOAT64, false, false, TP_NO_FORMAT) : tp_retain(plain),
               *bits = !wide   ? NULL
                       : words ? tp_view_dtype(wide, TP_INT64)
                               : tp_to_dtype(self, TP_INT64, false, false, TP_NO_FORMAT),
               *sum = bits ? tp__xor_sum(bits, dim, keepdim) : NULL;
    return sum ? tp_view_dtype(sum, TP_UINT64) : NULL;
}
