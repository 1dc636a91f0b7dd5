/* unique.c: distinct elements and slices: _unique2, unique_dim, the consecutive forms, isin.
 *
 * Elements are compared by keys (native/order.h), slices lexicographically by the keys of their elements. What is found
 * is a list of groups: where each begins in some order of the items, and for every item its group. */
#include "NativeFunctions.h"
#include "core/alloc.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "cpu/copy.h"
#include "cpu/kernels.h"
#include "iter/iter.h"
#include "native/meta.h"
#include "native/order.h"

#include <string.h>

static const tp_tensor3 failed = {{NULL, NULL, NULL}};

/* n items of `width` keys each. `order` is a permutation of them. */
typedef struct {
    const uint64_t *keys;
    int64_t n, width;
    bool nan_apart; /* no NaN equals another */
} items;

static int compare_items(const items *it, int64_t a, int64_t b) {
    const uint64_t *x = it->keys + a * it->width, *y = it->keys + b * it->width;
    for (int64_t i = 0; i < it->width; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}
static bool same_item(const items *it, int64_t a, int64_t b) {
    const uint64_t *x = it->keys + a * it->width, *y = it->keys + b * it->width;
    for (int64_t i = 0; i < it->width; i++)
        if (x[i] != y[i] || (it->nan_apart && x[i] == TP_NAN_KEY)) return false;
    return true;
}
/* A merge sort of the indices: stable. */
static void sort_items(const items *it, int64_t *order, int64_t *spare, int64_t n) {
    if (n < 2) return;
    int64_t half = n / 2, i = 0, j = half, k = 0;
    sort_items(it, order, spare, half);
    sort_items(it, order + half, spare, n - half);
    while (i < half && j < n) spare[k++] = compare_items(it, order[j], order[i]) < 0 ? order[j++] : order[i++];
    while (i < half) spare[k++] = order[i++];
    while (j < n) spare[k++] = order[j++];
    memcpy(order, spare, (size_t)n * sizeof *order);
}

/* The keys of all elements of `plain` (contiguous), new; its data are uint64. */
static tp_tensor *keys_of(const char *op, tp_tensor *plain) {
    tp_autoref *flat = tp_reshape(plain, TP_INTS(-1)), *wide = flat ? tp_comparable(op, flat, 0) : NULL;
    tp_autoref *keys = wide ? tp_new_empty(TP_INTS(plain->numel), TP_INT64, TP_CPU) : NULL;
    uint64_t *k = keys ? tp_data(keys) : NULL;
    if (k) tp_make_keys(k, wide, 0, plain->numel, false);
    return tp_take(keys);
}

/* Groups of neighbours in `order`: the first item of each, their sizes, and each item's group. Returns their number. */
static int64_t group(const items *it, const int64_t *order, int64_t *first, int64_t *count, int64_t *inverse) {
    int64_t groups = 0;
    for (int64_t i = 0; i < it->n; i++) {
        if (i == 0 || !same_item(it, order[i], order[i - 1])) first[groups] = order[i], count[groups++] = 0;
        count[groups - 1]++;
        inverse[order[i]] = groups - 1;
    }
    return groups;
}

static tp_tensor *head(tp_tensor *t, int64_t n) {
    tp_autoref *part = tp_slice_Tensor(t, 0, TP_SOME_INT(0), TP_SOME_INT(n), 1);
    return part ? tp_clone(part, TP_CONTIGUOUS_FORMAT) : NULL;
}
/* distinct on another device. */
static tp_tensor3 distinct_elsewhere(const char *op, tp_tensor *from, bool sorted, bool return_inverse,
                                     bool return_counts, tp_ints inverse_shape, tp_tensor **chosen) {
    const tp_device_kernels *k = tp_device_kernels_of(from->device);
    tp_distinct found = {NULL, NULL, NULL};
    tp_autoref *flat = k ? tp_reshape(from, TP_INTS(-1)) : NULL, *wide = flat ? tp_comparable(op, flat, 0) : NULL,
               *rows = wide ? tp_reshape(wide, tp_sizes(from)) : NULL;
    if (!rows || k->distinct(rows, sorted, &found) < 0) return failed;
    tp_autoref *firsts = found.firsts, *counts = found.counts, *inverse = found.inverse;
    tp_autoref *values = tp_index_select(from, 0, firsts);
    tp_autoref *shaped = !values          ? NULL
                         : return_inverse ? tp_reshape(inverse, inverse_shape)
                                          : tp_new_empty(TP_INTS(0), TP_INT64, from->device);
    tp_autoref *sizes = !shaped         ? NULL
                        : return_counts ? tp_retain(counts)
                                        : tp_new_empty(TP_INTS(0), TP_INT64, from->device);
    if (!sizes) return failed;
    if (chosen) *chosen = tp_retain(firsts);
    return (tp_tensor3){{tp_take(values), tp_take(shaped), tp_take(sizes)}};
}
/* The distinct items of `from` along dimension 0, whose shape the inverse has unless another is given. */
static tp_tensor3 distinct(const char *op, tp_tensor *from, bool sorted, bool return_inverse, bool return_counts,
                           tp_ints inverse_shape, tp_tensor **chosen) {
    int64_t n = from->sizes[0];
    if (tp_elsewhere(from))
        return distinct_elsewhere(op, from, sorted, return_inverse, return_counts, inverse_shape, chosen);
    tp_autoref *plain = tp_contiguous(from, TP_CONTIGUOUS_FORMAT), *keys = plain ? keys_of(op, plain) : NULL;
    tp_autoref *order = keys ? tp_new_empty(TP_INTS(n, 2), TP_INT64, TP_CPU) : NULL,
               *firsts = order ? tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU) : NULL,
               *counts = firsts ? tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU) : NULL,
               *inverse = counts ? tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU) : NULL;
    if (!inverse) return failed;
    items it = {tp_data(keys), n, n ? from->numel / n : 0, tp_is_floating(from)};
    int64_t *o = tp_data(order);
    for (int64_t i = 0; i < n; i++) o[i] = i;
    if (sorted) sort_items(&it, o, o + n, n);
    int64_t groups = group(&it, o, tp_data(firsts), tp_data(counts), tp_data(inverse));
    tp_autoref *places = head(firsts, groups), *sizes = places ? head(counts, return_counts ? groups : 0) : NULL;
    tp_autoref *values = sizes ? tp_index_select(plain, 0, places) : NULL,
               *shaped = !values          ? NULL
                         : return_inverse ? tp_reshape(inverse, inverse_shape)
                                          : tp_new_empty(TP_INTS(0), TP_INT64, TP_CPU);
    tp_autoref *own = shaped ? tp_clone(shaped, TP_CONTIGUOUS_FORMAT) : NULL;
    if (chosen) *chosen = own ? tp_retain(places) : NULL;
    return own ? (tp_tensor3){{tp_take(values), tp_take(own), tp_take(sizes)}} : failed;
}

static int refuse_complex(const char *op, const tp_tensor *self) {
    if (!tp_is_complex(self)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                   tp_scalar_type_name((tp_dtype)self->dtype));
}

/* ---- elements ---- */

/* _unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor,
 * Tensor) */
tp_tensor3 _unique2_cpu(tp_tensor *self, bool sorted, bool return_inverse, bool return_counts) {
    (void)sorted;
    if (refuse_complex("unique", self) < 0) return failed;
    tp_autoref *flat = tp_reshape(self, TP_INTS(-1)), *line = flat ? tp_contiguous(flat, TP_CONTIGUOUS_FORMAT) : NULL;
    if (line && tp_elsewhere(line))
        return distinct("unique", line, true, return_inverse, return_counts, tp_sizes(self), NULL);
    tp_autoref *keys = line ? tp_comparable("unique", line, 0) : NULL;
    int64_t n = self->numel, groups = 0;
    tp_autoref *inverse = keys ? tp_new_empty(return_inverse ? tp_sizes(self) : TP_INTS(0), TP_INT64, TP_CPU) : NULL;
    tp_autoref *firsts = inverse ? tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU) : NULL,
               *counts = firsts ? tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU) : NULL;
    size_t bytes = (size_t)n * 2 * sizeof(tp_entry) + 1;
    tp_entry *e = counts ? tp_alloc(bytes) : NULL;
    if (!e) return failed;
    tp_make_entries(e, keys, 0, n, false);
    if (tp_sort_entries(e, e + n, n) < 0) return tp_free(e, bytes), failed;
    int64_t *first = tp_data(firsts), *count = tp_data(counts), *place = tp_data(inverse);
    for (int64_t i = 0; i < n; i++) {
        bool same = i > 0 && e[i].key == e[i - 1].key && !(tp_is_floating(self) && e[i].key == TP_NAN_KEY);
        if (!same) first[groups] = e[i].index, count[groups++] = 0;
        count[groups - 1]++;
        if (return_inverse) place[e[i].index] = groups - 1;
    }
    tp_free(e, bytes);
    tp_autoref *chosen = head(firsts, groups), *values = chosen ? tp_index_select(line, 0, chosen) : NULL;
    tp_autoref *own = values ? head(counts, return_counts ? groups : 0) : NULL;
    return own ? (tp_tensor3){{tp_take(values), tp_take(inverse), tp_take(own)}} : failed;
}
/* _unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor) */
tp_tensor2 _unique_cpu(tp_tensor *self, bool sorted, bool return_inverse) {
    tp_tensor3 all = _unique2_cpu(self, sorted, return_inverse, false);
    tp_release(all.v[2]);
    return (tp_tensor2){{all.v[0], all.v[1]}};
}

/* ---- slices ---- */

static tp_tensor3 distinct_slices(const char *op, tp_tensor *self, int64_t dim, bool sorted, bool return_inverse,
                                  bool return_counts) {
    int64_t d = refuse_complex(op, self) < 0 ? -1 : tp_wrap_dim(dim, self->ndim);
    if (d < 0) return failed;
    if (self->ndim && self->numel == 0) {
        int zeros = 0;
        for (int i = 0; i < self->ndim; i++) zeros += self->sizes[i] == 0;
        if (self->sizes[d] != 0 || zeros != 1) {
            tp_fail(TP_RuntimeError,
                    "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
            return failed;
        }
        tp_autoref *none = tp_new_empty(TP_INTS(0), TP_INT64, self->device),
                   *nothing = none ? tp_new_empty(TP_INTS(0), TP_INT64, self->device) : NULL,
                   *same = nothing ? tp_new_empty(tp_sizes(self), (tp_dtype)self->dtype, self->device) : NULL;
        return same ? (tp_tensor3){{tp_take(same), tp_take(none), tp_take(nothing)}} : failed;
    }
    tp_autoref *whole = self->ndim ? tp_retain(self) : tp_reshape(self, TP_INTS(1)),
               *moved = whole ? tp_movedim_int(whole, d, 0) : NULL;
    tp_tensor *places = NULL;
    tp_tensor3 out = moved ? distinct(op, moved, sorted, return_inverse, return_counts,
                                      TP_INTS(tp_size_at(tp_sizes(whole), d)), &places)
                           : failed;
    tp_autoref *chosen = places, *firsts = out.v[0], *inverse = out.v[1], *counts = out.v[2];
    if (!firsts) return failed;
    tp_autoref *values = tp_index_select(whole, d, chosen);
    return values ? (tp_tensor3){{tp_take(values), tp_take(inverse), tp_take(counts)}} : failed;
}
/* unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 unique_dim_cpu(tp_tensor *self, int64_t dim, bool sorted, bool return_inverse, bool return_counts) {
    (void)sorted;
    return distinct_slices("unique_dim", self, dim, true, return_inverse, return_counts);
}
/* unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor,
 * Tensor) */
tp_tensor3 unique_dim_consecutive_cpu(tp_tensor *self, int64_t dim, bool return_inverse, bool return_counts) {
    return distinct_slices("unique_dim", self, dim, false, return_inverse, return_counts);
}
/* unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 unique_consecutive_cpu(tp_tensor *self, bool return_inverse, bool return_counts, tp_opt_int dim) {
    if (dim.has) return unique_dim_consecutive_cpu(self, dim.value, return_inverse, return_counts);
    if (refuse_complex("unique", self) < 0) return failed;
    tp_autoref *flat = tp_reshape(self, TP_INTS(-1));
    return flat ? distinct("unique", flat, false, return_inverse, return_counts, tp_sizes(self), NULL) : failed;
}

/* ---- isin ---- */

/* Membership by binary search among the sorted keys of the test elements. A NaN is in nothing. */
typedef struct {
    const uint64_t *keys, *tests;
    int64_t n;
    bool nan_apart, invert, *out;
} membership;
static void find_members(int64_t begin, int64_t end, void *context) {
    const membership *m = context;
    int64_t places[256];
    for (int64_t i = begin; i < end; i += 256) {
        int64_t n = end - i < 256 ? end - i : 256;
        tp_cpu.order->left[TP_UINT64](m->tests, m->n, m->keys + i, n, places);
        for (int64_t j = 0; j < n; j++) {
            uint64_t key = m->keys[i + j];
            bool found = places[j] < m->n && m->tests[places[j]] == key && !(m->nan_apart && key == TP_NAN_KEY);
            m->out[i + j] = found != m->invert;
        }
    }
}
static int check_isin(tp_dtype d) {
    if (d != TP_BOOL && d != TP_BFLOAT16 && !tp_is_complex_dtype(d)) return 0;
    return tp_fail(TP_RuntimeError, "Unsupported input type encountered for isin(): %s", tp_scalar_type_name(d));
}
/* On another device: the test elements in order, and each element's place among them. */
static int isin_elsewhere(tp_tensor *elements, tp_tensor *tests, bool invert, tp_tensor *out) {
    if (tests->numel == 0) return tp_fill_data(out, TP_SCALAR_I(invert));
    tp_autoref *x = tp_to_device(elements, out->device, TP_NO_DTYPE, false, false, TP_NO_FORMAT);
    tp_autoref *y = x ? tp_to_device(tests, out->device, TP_NO_DTYPE, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *line = y ? tp_reshape(y, TP_INTS(-1)) : NULL;
    tp_tensor2 both = line ? tp_sort(line, 0, false) : (tp_tensor2){{NULL, NULL}};
    tp_autoref *sorted = both.v[0], *order = both.v[1];
    tp_autoref *places = order ? tp_searchsorted_Tensor(sorted, x, false, false, NULL, NULL) : NULL;
    tp_autoref *inside = places ? tp_clamp_max(places, TP_SCALAR_I(line->numel - 1)) : NULL;
    tp_autoref *flat = inside ? tp_reshape(inside, TP_INTS(-1)) : NULL;
    tp_autoref *found = flat ? tp_index_select(sorted, 0, flat) : NULL;
    tp_autoref *there = found ? tp_reshape(found, tp_sizes(x)) : NULL;
    tp_autoref *made = !there ? NULL : invert ? tp_ne_Tensor(there, x) : tp_eq_Tensor(there, x);
    return made ? tp_copy_data(out, made) : -1;
}
static int isin(tp_tensor *elements, tp_tensor *tests, bool invert, tp_tensor *out) {
    tp_dtype common = tp_result_type((tp_operand[]){{elements, NULL}, {tests, NULL}}, 2);
    if (common == TP_NO_DTYPE) return -1;
    if (common == TP_FLOAT16) common = TP_FLOAT32;
    tp_autoref *a = tp_to_dtype(elements, common, false, false, TP_NO_FORMAT),
               *b = a ? tp_to_dtype(tests, common, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *x = b ? tp_contiguous(a, TP_CONTIGUOUS_FORMAT) : NULL,
               *y = x ? tp_contiguous(b, TP_CONTIGUOUS_FORMAT) : NULL;
    if (y && tp_elsewhere(out)) return isin_elsewhere(x, y, invert, out);
    tp_autoref *keys = y ? keys_of("isin", x) : NULL, *wide = keys ? tp_reshape(y, TP_INTS(-1)) : NULL;
    tp_autoref *comparable = wide ? tp_comparable("isin", wide, 0) : NULL,
               *sorted = comparable ? tp_new_empty(TP_INTS(wide->numel), TP_INT64, TP_CPU) : NULL,
               *made = sorted ? tp_new_empty(tp_sizes(out), TP_BOOL, TP_CPU) : NULL;
    if (!made) return -1;
    int64_t n = wide->numel;
    size_t bytes = (size_t)n * 2 * sizeof(tp_entry) + 1;
    tp_entry *e = tp_alloc(bytes);
    if (!e) return -1;
    tp_make_entries(e, comparable, 0, n, false);
    if (tp_sort_entries(e, e + n, n) < 0) return tp_free(e, bytes), -1;
    uint64_t *tests_sorted = tp_data(sorted);
    for (int64_t i = 0; i < n; i++) tests_sorted[i] = e[i].key;
    tp_free(e, bytes);
    membership m = {tp_data(keys), tests_sorted, n, tp_is_floating(x), invert, tp_data(made)};
    if (tp_parallel_for(x->numel, TP_GRAIN / 16, find_members, &m) < 0) return -1;
    return tp_copy_data(out, made);
}
static int isin_output(tp_meta *m, const tp_tensor *elements, tp_dtype a, tp_dtype b, tp_device device) {
    if (check_isin(a) < 0 || check_isin(b) < 0) return -1;
    return tp_meta_output(m, 0, elements ? tp_sizes(elements) : TP_EMPTY_INTS, TP_NO_INTS, TP_BOOL, device);
}
/* isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
 */
int isin_Tensor_Tensor_meta(tp_meta *m, tp_tensor *elements, tp_tensor *test_elements, bool assume_unique,
                            bool invert) {
    (void)assume_unique, (void)invert;
    return isin_output(m, elements, (tp_dtype)elements->dtype, (tp_dtype)test_elements->dtype, elements->device);
}
int isin_Tensor_Tensor_cpu(tp_tensor *elements, tp_tensor *test_elements, bool assume_unique, bool invert,
                           tp_tensor *out) {
    (void)assume_unique;
    return isin(elements, test_elements, invert, out);
}
/* isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor */
int isin_Tensor_Scalar_meta(tp_meta *m, tp_tensor *elements, const tp_scalar *test_element, bool assume_unique,
                            bool invert) {
    (void)assume_unique, (void)invert;
    return isin_output(m, elements, (tp_dtype)elements->dtype, tp_scalar_dtype(test_element), elements->device);
}
int isin_Tensor_Scalar_cpu(tp_tensor *elements, const tp_scalar *test_element, bool assume_unique, bool invert,
                           tp_tensor *out) {
    (void)assume_unique;
    tp_autoref *number = tp_new_wrapped_number(test_element);
    return number ? isin(elements, number, invert, out) : -1;
}
/* isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor */
int isin_Scalar_Tensor_meta(tp_meta *m, const tp_scalar *element, tp_tensor *test_elements, bool assume_unique,
                            bool invert) {
    (void)assume_unique, (void)invert;
    return isin_output(m, NULL, tp_scalar_dtype(element), (tp_dtype)test_elements->dtype, test_elements->device);
}
int isin_Scalar_Tensor_cpu(const tp_scalar *element, tp_tensor *test_elements, bool assume_unique, bool invert,
                           tp_tensor *out) {
    (void)assume_unique;
    tp_autoref *number = tp_new_wrapped_number(element);
    return number ? isin(number, test_elements, invert, out) : -1;
}
