/* sparse_masked.c: reductions of tensorpy.masked over sparse tensors: a mask selects places, and what it selects and
 * has no value is 0; places that it does not select are not there, and do not count. */
#include "native/layout/layout.h"

#include "NativeFunctions.h"

#include <string.h>

typedef struct {
    const char *name;    /* as operators of masked call it */
    const char *scatter; /* as scatter_reduce does */
} reduction;

static const reduction SUM = {"sum", "sum"}, PROD = {"prod", "prod"}, AMAX = {"amax", "amax"}, AMIN = {"amin", "amin"},
                       MEAN = {"sum", "mean"};

static tp_tensor *cast_steal(tp_tensor *t, tp_dtype dtype) {
    tp_autoref *own = t;
    return own ? tp_to_dtype(own, dtype, false, false, TP_NO_FORMAT) : NULL;
}

/* The mask by coordinates, of the input's sizes and dense dimensions, in bool. */
static tp_tensor *mask_like(tp_tensor *input, tp_tensor *mask) {
    int64_t dense = 0, own = 0;
    if (tp_dense_dim(input, &dense) < 0 || tp_dense_dim(mask, &own) < 0) return NULL;
    if (mask->ndim > input->ndim)
        return tp_fail_null(TP_IndexError,
                            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
                            "input): %d > %d",
                            mask->ndim, input->ndim);
    if (tp_is_sparse(mask) && tp_same_sizes(mask, input) && own == dense) {
        tp_autoref *whole = tp__as_coo(mask), *merged = whole ? tp__coalesce(whole) : NULL;
        return merged ? cast_steal(tp_retain(merged), TP_BOOL) : NULL;
    }
    tp_autoref *plain = tp_to_dense(mask, TP_NO_DTYPE, -1),
               *wide = plain ? tp_expand(plain, tp_sizes(input), false) : NULL;
    tp_autoref *bools = wide ? cast_steal(tp_retain(wide), TP_BOOL) : NULL;
    return bools ? tp_to_sparse(bools, TP_SPARSE_COO, TP_NO_INTS, (tp_opt_int){true, dense}) : NULL;
}

/* The places that the mask selects with the input's values; numbers of a value that it leaves out are the identity. */
static tp_tensor *selected(tp_tensor *input, tp_tensor *mask, const reduction *r) {
    tp_autoref *same = mask_like(input, mask);
    tp_autocoo m = {0};
    if (!same || tp_coo_of(same, &m) < 0) return NULL;
    tp_autoref *lines = m.values->ndim > 1 ? tp_flatten_using_ints(m.values, 1, -1) : tp_retain(m.values);
    tp_autoref *some = !lines || lines->ndim == 1 ? tp_retain(lines) : tp_any_dim(lines, -1, false);
    tp_autoref *places = some ? tp_where_true(some) : NULL;
    tp_autoref *indices = places ? tp_index_select(m.indices, 1, places) : NULL,
               *there = indices ? tp_index_select(m.values, 0, places) : NULL;
    tp_autoref *pattern = there ? tp__coo(indices, there, tp_sizes(input), true) : NULL,
               *values = pattern ? tp__layout_at(input, pattern) : NULL;
    if (!values || values->ndim == 1) return values ? tp__layout_like(pattern, values) : NULL;
    tp_autoref *identity = tp__masked_identity(values, r->name, (tp_opt_float){0}),
               *filled = identity ? tp_where_self(there, values, identity) : NULL;
    return filled ? tp__layout_like(pattern, filled) : NULL;
}

/* ---- reducing ---- */

/* Which dimensions of a tensor go, and what is left. */
typedef struct {
    bool out[TP_MAX_DIMS];
    int64_t dense[TP_MAX_DIMS], sparse[TP_MAX_DIMS]; /* dense ones that go, among the values'; sparse ones that stay */
    int64_t ndense, nsparse, taken;                  /* and how many sparse ones go */
} choice;

static int choose(const tp_tensor *t, int64_t sparse_dim, tp_ints dim, choice *c) {
    *c = (choice){.taken = 0};
    for (int64_t i = 0; i < dim.size; i++) {
        int64_t d = tp_wrap_dim(dim.data[i], t->ndim);
        if (d < 0) return -1;
        if (c->out[d])
            return tp_fail(TP_RuntimeError, "dim=%lld appears multiple times in the list of dims", (long long)d);
        c->out[d] = true;
    }
    for (int64_t d = 0; d < t->ndim; d++) {
        c->out[d] |= dim.size <= 0;
        if (d >= sparse_dim && c->out[d]) c->dense[c->ndense++] = d - sparse_dim + 1;
        if (d < sparse_dim && !c->out[d]) c->sparse[c->nsparse++] = d;
        c->taken += d < sparse_dim && c->out[d];
    }
    return 0;
}

static tp_tensor *over_dense(tp_tensor *values, tp_ints dims, const reduction *r) {
    if (dims.size == 0) return tp_retain(values);
    if (r == &SUM) return tp_sum_dim_IntList(values, dims, false, (tp_dtype)values->dtype);
    if (r == &AMAX) return tp_amax(values, dims, false);
    if (r == &AMIN) return tp_amin(values, dims, false);
    if (r == &PROD) return tp_masked_prod(values, dims, false, (tp_dtype)values->dtype, NULL);
    return tp_fail_null(TP_NotImplementedError, "masked.mean: dense dimensions of a sparse tensor");
}

/* The values of each group reduced to one; the identity of a group without any. */
static tp_tensor *over_groups(tp_tensor *values, tp_tensor *group, int64_t count, const reduction *r) {
    int64_t shape[TP_MAX_DIMS + 1], ones[TP_MAX_DIMS + 1];
    for (int d = 0; d < values->ndim; d++) shape[d] = values->sizes[d], ones[d] = d == 0 ? -1 : 1;
    shape[0] = count, ones[0] = group->numel;
    tp_autoref *column = tp_reshape(group, (tp_ints){ones, values->ndim}),
               *places = column ? tp_expand(column, tp_sizes(values), false) : NULL;
    tp_autoref *identity = places ? tp__masked_identity(values, r->name, (tp_opt_float){0}) : NULL,
               *wide = identity ? tp_expand(identity, (tp_ints){shape, values->ndim}, false) : NULL,
               *none = wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
    return none ? tp_scatter_reduce_two(none, 0, places, values, r->scatter, false) : NULL;
}

/* All sparse dimensions gone: one value, as a sparse tensor; a matrix in lines stores what its values come to. */
static tp_tensor *whole(tp_tensor *values, const tp_coo *c, bool keepdim, bool lines, const reduction *r) {
    tp_autoref *group = tp_zeros(TP_INTS(values->sizes[0]), TP_INT64, TP_STRIDED, values->device, -1);
    tp_autoref *one = group ? over_groups(values, group, 1, r) : NULL;
    if (one && lines && keepdim && group->numel)
        return tp_make_coo_steal(tp_zeros(TP_INTS(2, 1), TP_INT64, TP_STRIDED, values->device, -1), tp_retain(one),
                                 TP_INTS(1, 1), true);
    tp_autoref *made = one ? tp_select_int(one, 0, 0) : NULL;
    for (int64_t d = 0; made && keepdim && d < c->sparse_dim; d++) {
        tp_tensor *next = tp_unsqueeze(made, 0);
        tp_release(made);
        made = next;
    }
    return made ? tp_to_sparse(made, TP_SPARSE_COO, TP_NO_INTS, TP_NO_INT) : NULL;
}

/* Some sparse dimensions left: one value for each of their places that has some. */
static tp_tensor *by_place(const tp_tensor *t, tp_tensor *values, const tp_coo *c, const choice *of,
                           const reduction *r) {
    int64_t kept[TP_MAX_DIMS], size[TP_MAX_DIMS], n = 0;
    for (int64_t i = 0; i < of->nsparse; i++) kept[i] = t->sizes[of->sparse[i]];
    for (int64_t d = 0; d < t->ndim; d++)
        if (!of->out[d]) size[n++] = t->sizes[d];
    if (of->taken == 0) return tp__coo(c->indices, values, (tp_ints){size, n}, c->coalesced);
    tp_autoref *rows = tp_rows_of(c->indices, (tp_ints){of->sparse, of->nsparse}),
               *keys = rows ? tp__coo_keys(rows, (tp_ints){kept, of->nsparse}) : NULL;
    tp_tensor3 found = keys ? tp__unique2(keys, true, true, false) : (tp_tensor3){{NULL}};
    tp_autoref *once = found.v[0], *group = found.v[1], *counts = found.v[2];
    (void)counts;
    if (!once) return NULL;
    return tp_make_coo_steal(tp__coo_columns(once, (tp_ints){kept, of->nsparse}),
                             over_groups(values, group, once->numel, r), (tp_ints){size, n}, true);
}

static tp_tensor *reduced(tp_tensor *t, tp_ints dim, bool keepdim, tp_dtype dtype, bool lines, const reduction *r) {
    tp_autocoo c = {0};
    choice of;
    if (tp_coo_of(t, &c) < 0 || choose(t, c.sparse_dim, dim, &of) < 0) return NULL;
    tp_autoref *cast = tp_to_dtype(c.values, dtype, false, false, TP_NO_FORMAT),
               *values = cast ? over_dense(cast, (tp_ints){of.dense, of.ndense}, r) : NULL;
    if (!values) return NULL;
    tp_autoref *made = of.nsparse == 0 ? whole(values, &c, keepdim, lines, r) : by_place(t, values, &c, &of, r);
    for (int64_t d = 0; made && keepdim && d < t->ndim; d++) {
        if (!of.out[d] || (of.nsparse == 0 && d < c.sparse_dim)) continue;
        tp_tensor *next = tp_unsqueeze(made, d);
        tp_release(made);
        made = next;
    }
    return tp_take(made);
}

/* ---- operators ---- */

/* What the composites take as it is: a dense tensor and mask. NULL of a call that is computed here. */
static bool is_dense_call(tp_tensor *input, tp_tensor *mask, const reduction *r) {
    bool known = tp_layout_of(input) == TP_SPARSE_COO || tp_layout_of(input) == TP_SPARSE_CSR;
    return !known || (!mask && r != &SUM);
}

static tp_tensor *masked(tp_tensor *input, tp_tensor *mask, tp_ints dim, tp_opt_bool keepdim, tp_dtype dtype,
                         const reduction *r) {
    const bool lines = tp_layout_of(input) == TP_SPARSE_CSR && input->ndim == 2;
    tp_autoref *coo = tp__as_coo(input), *merged = coo ? tp__coalesce(coo) : NULL;
    tp_autoref *chosen = !merged || !mask ? tp_retain(merged) : selected(merged, mask, r);
    tp_autoref *made = chosen ? reduced(chosen, dim, keepdim == 1, dtype, lines, r) : NULL;
    return made ? tp_as_layout_steal(input, tp_take(made)) : NULL;
}

static tp_dtype sum_dtype(const tp_tensor *t, tp_dtype dtype) {
    return dtype >= 0                                                        ? dtype
           : tp_is_integral_dtype((tp_dtype)t->dtype) || t->dtype == TP_BOOL ? TP_INT64
                                                                             : (tp_dtype)t->dtype;
}

#define MASKED(op, KIND, DTYPE)                                                                                     \
    tp_tensor *op##_layout(tp_tensor *input, tp_ints dim, tp_opt_bool keepdim, tp_dtype dtype, tp_tensor *mask) {   \
        if (!is_dense_call(input, mask, &KIND)) return masked(input, mask, dim, keepdim, DTYPE, &KIND);             \
        tp_autoref *x = tp_to_dense(input, TP_NO_DTYPE, -1), *m = mask ? tp_to_dense(mask, TP_NO_DTYPE, -1) : NULL; \
        return x && (m || !mask) ? tp_##op(x, dim, keepdim, dtype, m) : NULL;                                       \
    }
/* masked_sum(Tensor input, int[1]? dim=None, *, bool? keepdim=False, ScalarType? dtype=None, Tensor? mask=None) ->
 * Tensor, and its kin */
MASKED(masked_sum, SUM, sum_dtype(input, dtype))
MASKED(masked_prod, PROD, sum_dtype(input, dtype))
MASKED(masked_amax, AMAX, dtype >= 0 ? dtype : (tp_dtype)input->dtype)
MASKED(masked_amin, AMIN, dtype >= 0 ? dtype : (tp_dtype)input->dtype)
MASKED(masked_mean, MEAN, dtype >= 0 ? dtype : (tp_dtype)input->dtype)
