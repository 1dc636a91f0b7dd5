/* index.c: batched indexing: index, index_put_, index_select, embedding.
 *
 * The dimensions that are indexed come first, after the batch; so do those of the indices in the result, and each goes
 * back to its place afterwards. Where an index is batched, one more runs over the samples. */
#include "NativeFunctions.h"
#include "batched/batched.h"

#include <string.h>

#define PLACES (TP_MAX_DIMS + 1)

typedef struct {
    tp_batch_scope *scope;
    tp_tensor *of[PLACES];        /* new: by dimension of a sample, and after the batch in the end; NULL: not indexed */
    int nof;                      /* dimensions that the list speaks of */
    int dims[TP_MAX_DIMS], ndims; /* those that are indexed */
    int wide;                     /* dimensions of the indices together */
    bool batched;                 /* some index is */
} places;

static void free_places(places *p) {
    for (int i = 0; i < PLACES; i++) tp_release(p->of[i]);
}
#define auto_places TP_CLEANUP(free_places) places

/* ---- reading the indices ---- */

/* A mask stands for as many indices as it has dimensions. */
static int add_mask(places *p, tp_tensor *mask) {
    if (tp_is_batched(mask)) return tp_batch_refuse(mask, "indexing with a mask");
    tp_autoref *where = tp_nonzero(mask);
    if (!where || p->nof + mask->ndim > TP_MAX_DIMS) return -1;
    for (int d = 0; d < mask->ndim; d++)
        if (!(p->of[p->nof++] = tp_select_int(where, 1, d))) return -1;
    return 0;
}

static int add_index(places *p, tp_tensor *index) {
    if (p->nof == TP_MAX_DIMS) return tp_fail(TP_IndexError, "too many indices for a tensor");
    if (index && (index->dtype == TP_BOOL || index->dtype == TP_UINT8)) return add_mask(p, index);
    p->of[p->nof++] = tp_retain(index);
    return 0;
}

static int read_places(places *p, tp_tensors indices, const tp_tensor *self) {
    for (int64_t i = 0; i < indices.size; i++)
        if (add_index(p, indices.data[i]) < 0) return -1;
    if (p->nof > self->ndim)
        return tp_fail(TP_IndexError, "too many indices for tensor of dimension %d (got %d)", self->ndim, p->nof);
    for (int d = 0; d < p->nof; d++) {
        if (!p->of[d]) continue;
        p->dims[p->ndims++] = d;
        p->batched |= tp_batch_has(p->scope, p->of[d]);
        if (p->of[d]->ndim > p->wide) p->wide = p->of[d]->ndim;
    }
    return 0;
}

/* An index as the physical call takes it: [B, ...] with as many dimensions as all of them. */
static tp_tensor *physical(const places *p, tp_tensor *index) {
    if (!tp_batch_has(p->scope, index)) return tp_retain(index);
    int64_t sizes[TP_MAX_DIMS + 1];
    tp_tensor *inner = tp_batch_inner_borrow(index);
    int more = p->wide - index->ndim;
    for (int d = 0; d < more; d++) sizes[d + 1] = 1;
    sizes[0] = p->scope->size;
    if (index->ndim) memcpy(sizes + 1 + more, index->sizes, sizeof(int64_t) * index->ndim);
    return tp_reshape(inner, (tp_ints){sizes, p->wide + 1});
}

/* 0, 1, ... over the samples, in the shape of an index. */
static tp_tensor *samples(const places *p, tp_device device) {
    int64_t sizes[TP_MAX_DIMS + 1] = {p->scope->size};
    for (int d = 0; d < p->wide; d++) sizes[d + 1] = 1;
    tp_autoref *count = tp_arange(TP_SCALAR_I(p->scope->size), TP_INT64, TP_NO_LAYOUT, device, -1);
    return count ? tp_reshape(count, (tp_ints){sizes, p->wide + 1}) : NULL;
}

/* The list of the physical call, in `of`: the batch's place, then those of the indexed dimensions. */
static int make_physical(places *p, tp_device device, tp_tensors *out) {
    tp_tensor *made[PLACES] = {NULL};
    int status = p->batched && !(made[0] = samples(p, device)) ? -1 : 0;
    for (int i = 0; i < p->ndims && status == 0; i++)
        if (!(made[i + 1] = physical(p, p->of[p->dims[i]]))) status = -1;
    free_places(p);
    memcpy(p->of, made, sizeof made);
    *out = (tp_tensors){p->of, p->ndims + 1};
    return status;
}

/* ---- orders of dimensions ---- */

/* [B, sample] with the indexed dimensions after the batch. */
static tp_tensor *indexed_first(const places *p, tp_tensor *all) {
    int64_t order[TP_MAX_DIMS] = {0}, n = 1;
    bool is_indexed[TP_MAX_DIMS] = {false};
    for (int i = 0; i < p->ndims; i++) {
        order[n++] = p->dims[i] + 1;
        is_indexed[p->dims[i]] = true;
    }
    for (int d = 0; d < all->ndim - 1; d++)
        if (!is_indexed[d]) order[n++] = d + 1;
    return tp_permute(all, (tp_ints){order, n});
}

/* How many of the other dimensions stand before those of the indices in a result: they take the place of the indexed
 * ones where these are neighbours, and else come first. */
static int dims_before(const places *p) {
    for (int i = 1; i < p->ndims; i++)
        if (p->dims[i] != p->dims[i - 1] + 1) return 0;
    return p->ndims ? p->dims[0] : 0;
}

/* [B, indices, before, after] to [B, before, indices, after], or the other way. */
static tp_tensor *reordered(const places *p, tp_tensor *t, bool to_result) {
    int before = dims_before(p), first = to_result ? p->wide : before, second = to_result ? before : p->wide;
    int64_t order[TP_MAX_DIMS] = {0}, n = 1;
    for (int d = 0; d < second; d++) order[n++] = 1 + first + d;
    for (int d = 0; d < first; d++) order[n++] = 1 + d;
    while (n < t->ndim) order[n] = n, n++;
    return tp_permute(t, (tp_ints){order, n});
}

/* ---- index and index_put_ ---- */

static int enter(tp_batch_scope *s, tp_tensor *self, tp_tensors indices, tp_tensor *values) {
    tp_tensor *highest = values && tp_batch_number(values) > tp_batch_number(self) ? values : self;
    for (int64_t i = 0; i < indices.size; i++)
        if (indices.data[i] && tp_batch_number(indices.data[i]) > tp_batch_number(highest)) highest = indices.data[i];
    return tp_batch_enter(s, (tp_tensors){&highest, 1});
}

/* index.Tensor(Tensor self, Tensor?[] indices) -> Tensor */
tp_tensor *index_Tensor_batched(tp_tensor *self, tp_tensors indices) {
    tp_autobatch s;
    tp_tensors physical_list;
    if (enter(&s, self, indices, NULL) < 0) return NULL;
    auto_places p = {.scope = &s};
    if (read_places(&p, indices, self) < 0) return NULL;
    tp_autoref *all = tp_batch_all(&s, self);
    tp_autoref *x = all ? indexed_first(&p, all) : NULL;
    if (!x || make_physical(&p, self->device, &physical_list) < 0) return NULL;
    tp_autoref *found = tp_index_Tensor(x, physical_list);
    return found ? tp_batch_wrap_steal(reordered(&p, found, true), s.number) : NULL;
}

/* Values for [B, indices, others] from what broadcasts to a result, `ndim` of whose dimensions are a sample's. */
static tp_tensor *arranged_values(const places *p, tp_tensor *values, int ndim) {
    tp_autoref *one = tp_batch_one(p->scope, values);
    int64_t sizes[TP_MAX_DIMS + 1];
    if (!one) return NULL;
    int more = ndim - values->ndim;
    if (more < 0)
        return tp_fail_null(TP_IndexError, "index_put_: the values have more dimensions than what they go to");
    sizes[0] = one->sizes[0];
    for (int d = 0; d < more; d++) sizes[d + 1] = 1;
    if (values->ndim) memcpy(sizes + 1 + more, values->sizes, sizeof(int64_t) * values->ndim);
    tp_autoref *padded = tp_reshape(one, (tp_ints){sizes, ndim + 1});
    return padded ? reordered(p, padded, false) : NULL;
}

/* index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!) */
int index_put__batched(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    tp_autobatch s;
    tp_tensors physical_list;
    if (enter(&s, self, indices, values) < 0) return -1;
    if (!tp_batch_has(&s, self))
        return tp_fail(TP_RuntimeError,
                       "vmap: index_put_ writes to 'self', which is not batched, what is different for "
                       "each sample. Use index_put, or write to new_zeros() of a batched tensor");
    auto_places p = {.scope = &s};
    if (read_places(&p, indices, self) < 0) return -1;
    tp_autoref *x = indexed_first(&p, tp_batch_inner_borrow(self));
    tp_autoref *v = x ? arranged_values(&p, values, self->ndim - p.ndims + p.wide) : NULL;
    if (!v || make_physical(&p, self->device, &physical_list) < 0) return -1;
    return tp_index_put_(x, physical_list, v, accumulate);
}

/* index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor */
tp_tensor *index_put_batched(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    tp_autobatch s;
    if (enter(&s, self, indices, values) < 0) return NULL;
    tp_autoref *all = tp_batch_all(&s, self);
    tp_autoref *copy = all ? tp_batch_wrap_steal(tp_clone(all, TP_CONTIGUOUS_FORMAT), s.number) : NULL;
    tp_batch_leave(&s);
    s.visible = -1;
    return copy && tp_index_put_(copy, indices, values, accumulate) == 0 ? tp_take(copy) : NULL;
}

/* ---- along one dimension ---- */

/* index_select(Tensor self, int dim, Tensor index) -> Tensor */
tp_tensor *index_select_batched(tp_tensor *self, int64_t dim, tp_tensor *index) {
    tp_autoref *line = self->ndim ? tp_retain(self) : tp_unsqueeze(self, 0);
    tp_tensor *list[TP_MAX_DIMS] = {NULL};
    int64_t d = line ? tp_wrap_dim(dim, line->ndim) : -1;
    if (d < 0) return NULL;
    tp_autoref *flat = tp_reshape(index, TP_INTS(-1));
    list[d] = flat;
    tp_autoref *found = flat ? tp_index_Tensor(line, (tp_tensors){list, d + 1}) : NULL;
    return found ? tp_reshape(found, self->ndim ? tp_sizes(found) : TP_EMPTY_INTS) : NULL;
}

/* ---- embedding ---- */

/* embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) ->
 * Tensor */
tp_tensor *embedding_batched(tp_tensor *weight, tp_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq,
                             bool sparse) {
    tp_autobatch s;
    tp_tensor *given[] = {weight, indices};
    if (tp_batch_enter(&s, (tp_tensors){given, 2}) < 0) return NULL;
    if (!tp_batch_has(&s, weight))
        return tp_batch_wrap_steal(
            tp_embedding(weight, tp_batch_inner_borrow(indices), padding_idx, scale_grad_by_freq, sparse), s.number);
    int64_t sizes[TP_MAX_DIMS + 2] = {s.size};
    if (indices->ndim) memcpy(sizes + 1, indices->sizes, sizeof(int64_t) * indices->ndim);
    sizes[indices->ndim + 1] = weight->ndim > 1 ? weight->sizes[1] : 0;
    tp_autoref *all = tp_batch_all(&s, indices), *lines = all ? tp_reshape(all, TP_INTS(s.size, indices->numel)) : NULL;
    tp_autoref *rows =
        !lines ? NULL : tp__embedding_of_each(tp_batch_inner_borrow(weight), lines, padding_idx, scale_grad_by_freq);
    return rows ? tp_batch_wrap_steal(tp_reshape(rows, (tp_ints){sizes, indices->ndim + 2}), s.number) : NULL;
}
