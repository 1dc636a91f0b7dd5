/* nested.c: nested tensors: making them, taking them apart, and what stands beside their values (Note [Nested
 * kernels]). */
#include "native/layout/nested.h"

#include "NativeFunctions.h"
#include "core/alloc.h"
#include "core/scalar.h"
#include "dispatch/key.h"
#include "native/common/host_ints.h"
#include "prim/table.h"

#include <string.h>

/* ---- taking apart ---- */

static size_t bytes_of(int64_t n) { return (size_t)(n > 0 ? n : 1) * sizeof(int64_t); }

void tp_nested_release(tp_nested *n) {
    tp_release(n->values);
    tp_release(n->offsets);
    tp_release(n->lengths);
    if (n->sizes) tp_free(n->sizes, bytes_of(n->count * n->columns));
    tp_release(n->shapes);
    if (n->from) tp_free(n->from, bytes_of(n->count));
    if (n->length) tp_free(n->length, bytes_of(n->count));
}

static int fail_pattern(void) {
    return tp_fail(TP_RuntimeError, "the offsets of a nested tensor lead out of its values, or do not fit its lengths");
}

static int read_ints(tp_tensor *t, int64_t count, int64_t *into) {
    tp_autoref *held = tp_host_ints(t);
    const int64_t *numbers = held ? tp_table_values(held) : NULL;
    if (!numbers) return -1;
    if (held->numel != count) return fail_pattern();
    if (count) memcpy(into, numbers, (size_t)count * sizeof *into);
    return 0;
}

static int read_places(tp_nested *n) {
    int64_t *ends = tp_alloc(bytes_of(n->count + 1));
    int status = ends ? read_ints(n->offsets, n->count + 1, ends) : -1;
    for (int64_t i = 0; status == 0 && i < n->count; i++) {
        n->from[i] = ends[i];
        n->length[i] = (int64_t)((uint64_t)ends[i + 1] - (uint64_t)ends[i]);
    }
    if (ends) tp_free(ends, bytes_of(n->count + 1));
    return status == 0 && n->lengths ? read_ints(n->lengths, n->count, n->length) : status;
}

static int check_places(tp_nested *n) {
    int64_t total = n->values->sizes[n->ragged - 1], next = 0;
    n->whole = true;
    for (int64_t i = 0; i < n->count; i++) {
        if (n->from[i] < 0 || n->from[i] > total || n->length[i] < 0 || n->length[i] > total - n->from[i])
            return fail_pattern();
        n->whole &= n->from[i] == next;
        next = n->from[i] + n->length[i];
    }
    n->whole &= next == total;
    return 0;
}

static int read_shapes(tp_nested *n) {
    if (!n->shapes) return 0;
    int64_t columns = n->columns = n->shapes->sizes[1];
    if (columns < 0 || columns >= TP_MAX_DIMS) return n->columns = 0, fail_pattern();
    if (!(n->sizes = tp_alloc(bytes_of(n->count * columns)))) return -1;
    if (read_ints(n->shapes, n->count * columns, n->sizes) < 0) return -1;
    for (int64_t i = 0; i < n->count; i++)
        if (tp_checked_numel((tp_ints){n->sizes + i * columns, columns}) != n->length[i])
            return tp_error_pending() ? -1 : fail_pattern();
    return 0;
}

/* The parts are there; what they say is read and checked. */
static int read_pattern(tp_nested *n) {
    if (n->offsets->ndim != 1 || n->offsets->numel < 1 || n->ragged < 1 || n->ragged > n->values->ndim ||
        n->count < 0 || (n->shapes && (n->shapes->ndim != 2 || n->values->ndim != 1)))
        return fail_pattern();
    n->from = tp_alloc(bytes_of(n->count));
    n->length = n->from ? tp_alloc(bytes_of(n->count)) : NULL;
    return n->length && read_places(n) == 0 && check_places(n) == 0 ? read_shapes(n) : -1;
}

int tp_nested_of(tp_tensor *t, tp_nested *n) {
    *n = (tp_nested){0};
    if (!tp_is_nested(t)) return tp_fail(TP_RuntimeError, "expected a nested tensor, but got a dense one");
    tp_autoparts *parts = tp_parts_of(t);
    if (!parts || !(n->values = tp__layout_values(t))) return -1;
    n->offsets = tp_retain(parts->part[1]);
    n->lengths = tp_retain(parts->part[2]);
    n->shapes = tp_retain(parts->part[3]);
    n->ragged = parts->fact[TP_FACT_RAGGED];
    n->jagged = parts->layout == TP_JAGGED;
    n->least = parts->fact[TP_FACT_LEAST] - 1;
    n->most = parts->fact[TP_FACT_MOST] - 1;
    n->count = t->sizes[0];
    if (read_pattern(n) < 0) return -1;
    return tp_piece_dims(n) + 1 == t->ndim ? 0 : fail_pattern();
}

int tp_nested_check_no_holes(const tp_nested *n, tp_error_class cls, const char *op) {
    if (!n->lengths) return 0;
    return tp_fail(
        cls,
        "%s(): not supported for a nested tensor with lengths, whose pieces may leave holes; contiguous() gives one "
        "without",
        op);
}

void tp_nested_own_values(tp_nested *n) {
    tp_tensor *base = n->values->base;
    if (!base || !tp_is_nested(base)) return;
    n->values->base = NULL;
    tp_release(base);
}

int64_t tp_piece_dims(const tp_nested *n) { return n->shapes ? n->columns : n->values->ndim; }

tp_ints tp_piece_sizes(const tp_nested *n, int64_t i, int64_t *room) {
    int64_t dims = tp_piece_dims(n);
    memcpy(room, n->shapes ? n->sizes + i * dims : n->values->sizes, (size_t)dims * sizeof *room);
    if (!n->shapes) room[n->ragged - 1] = n->length[i];
    return (tp_ints){room, dims};
}

static tp_tensor *in_shape(const tp_nested *n, int64_t i, tp_tensor *piece) {
    int64_t room[TP_MAX_DIMS];
    return n->shapes ? tp_view(piece, tp_piece_sizes(n, i, room)) : tp_retain(piece);
}

tp_tensor_seq *tp_pieces(const tp_nested *n) {
    int64_t along = n->ragged - 1;
    tp_autoseq *made = tp_tensor_seq_new(n->count);
    tp_autoseq *split =
        made && n->whole && n->count ? tp_split_with_sizes(n->values, (tp_ints){n->length, n->count}, along) : NULL;
    if (!made || (!split && tp_error_pending())) return NULL;
    for (int64_t i = 0; i < n->count; i++) {
        tp_autoref *piece = split ? tp_retain(split->items[i]) : tp_narrow(n->values, along, n->from[i], n->length[i]);
        if (!piece || !(made->items[i] = in_shape(n, i, piece))) return NULL;
    }
    return tp_take(made);
}

/* ---- making ---- */

static void largest_sizes(const tp_nested *n, int64_t *sizes) {
    int64_t dims = tp_piece_dims(n), room[TP_MAX_DIMS];
    sizes[0] = n->count;
    for (int64_t d = 0; d < dims; d++) sizes[d + 1] = n->shapes || d == n->ragged - 1 ? 0 : n->values->sizes[d];
    for (int64_t i = 0; i < n->count; i++) {
        tp_piece_sizes(n, i, room);
        for (int64_t d = 0; d < dims; d++)
            if (room[d] > sizes[d + 1]) sizes[d + 1] = room[d];
    }
}

/* _nested_make(Tensor(a) values, Tensor offsets, Tensor? lengths, Tensor? shapes, int ragged, bool jagged,
 * int least=-1, int most=-1) -> Tensor(a) */
tp_tensor *_nested_make_composite(tp_tensor *values, tp_tensor *offsets, tp_tensor *lengths, tp_tensor *shapes,
                                  int64_t ragged, bool jagged, int64_t least, int64_t most) {
    int64_t sizes[TP_MAX_DIMS + 1], numel = 0;
    if (least < -1 || most < -1 || least == INT64_MAX || most == INT64_MAX)
        return tp_fail_null(TP_RuntimeError, "a nested tensor's least and largest length must not be negative");
    if (!tp_has_memory(values) || !tp_has_memory(offsets))
        return tp_fail_null(TP_RuntimeError, "a nested tensor is made of strided tensors");
    if (offsets->ndim != 1 || offsets->numel < 1)
        return tp_fail_null(TP_RuntimeError, "offsets must be 1D, with one number more than there are pieces");
    if (values->ndim + 1 > TP_MAX_DIMS || (shapes && (shapes->ndim != 2 || shapes->sizes[1] + 1 > TP_MAX_DIMS)))
        return tp_fail_null(TP_RuntimeError, "a nested tensor of too many dimensions");
    tp_autonested n = {.values = tp_retain(values),
                       .offsets = tp_retain(offsets),
                       .lengths = tp_retain(lengths),
                       .shapes = tp_retain(shapes),
                       .ragged = ragged,
                       .count = offsets->numel - 1};
    if (read_pattern(&n) < 0) return NULL;
    largest_sizes(&n, sizes);
    for (int64_t i = 0; i < n.count; i++) numel += n.length[i];
    for (int64_t d = 0; d < values->ndim; d++)
        if (d != ragged - 1) numel *= values->sizes[d];
    return tp_of_parts(jagged ? TP_JAGGED : TP_NESTED, (tp_tensor *[]){values, offsets, lengths, shapes},
                       (int64_t[TP_MAX_FACTS]){[TP_FACT_RAGGED] = ragged,
                                               [TP_FACT_NUMEL] = numel,
                                               [TP_FACT_OPTIONAL] = (lengths ? 1 : 0) | (shapes ? 2 : 0),
                                               [TP_FACT_LEAST] = least + 1,
                                               [TP_FACT_MOST] = most + 1},
                       (tp_ints){sizes, tp_piece_dims(&n) + 1});
}

tp_tensor *tp_nested_with_steal(const tp_nested *n, tp_tensor *values, int64_t ragged) {
    tp_autoref *own = values;
    return own ? tp__nested_make(own, n->offsets, n->lengths, n->shapes, ragged, n->jagged, n->least, n->most) : NULL;
}

/* Whether the pieces agree in all dimensions but one. */
static bool agree_but(tp_tensors pieces, int64_t along) {
    const tp_tensor *first = pieces.data[0];
    for (int64_t i = 0; i < pieces.size; i++)
        for (int64_t d = 0; d < first->ndim; d++)
            if (d != along && pieces.data[i]->sizes[d] != first->sizes[d]) return false;
    return true;
}

static int check_alike(tp_tensors pieces) {
    const tp_tensor *first = pieces.data[0];
    for (int64_t i = 0; i < pieces.size; i++) {
        const tp_tensor *t = pieces.data[i];
        if (!t || tp_is_nested(t)) return tp_fail(TP_RuntimeError, "a nested tensor is made of dense tensors");
        if (t->ndim != first->ndim)
            return tp_fail(TP_RuntimeError,
                           "All Tensors given to nested_tensor must have the same dimension. Found dimension %d for "
                           "Tensor at index %lld and dimension %d for Tensor at index 0.",
                           t->ndim, (long long)i, first->ndim);
        if (t->dtype != first->dtype)
            return tp_fail(TP_RuntimeError,
                           "All Tensors given to nested_tensor must have the same dtype. Found dtype %s for Tensor at "
                           "index %lld and dtype %s for Tensor at index 0.",
                           tp_dtype_names[t->dtype], (long long)i, tp_dtype_names[first->dtype]);
    }
    return 0;
}

/* `lengths` and a zero before them, added up. */
static tp_tensor *offsets_of(const int64_t *lengths, int64_t count, tp_device device) {
    int64_t *values;
    tp_autoref *table = tp_table_int64(TP_INTS(count + 1), &values);
    if (!table) return NULL;
    values[0] = 0;
    for (int64_t i = 0; i < count; i++) values[i + 1] = values[i] + lengths[i];
    return tp_to_device(table, device, TP_INT64, false, false, TP_NO_FORMAT);
}

static tp_tensor *one_after_the_other(tp_tensors pieces, int64_t along, tp_tensor *offsets, bool jagged, int64_t least,
                                      int64_t most) {
    tp_autoref *values = offsets ? tp_cat(pieces, along) : NULL;
    return values ? tp__nested_make(values, offsets, NULL, NULL, along + 1, jagged, least, most) : NULL;
}

static tp_tensor *along_one(tp_tensors pieces, int64_t along, bool jagged) {
    int64_t *lengths = tp_alloc(bytes_of(pieces.size));
    int64_t least = -1, most = -1;
    for (int64_t i = 0; lengths && i < pieces.size; i++) {
        lengths[i] = pieces.data[i]->sizes[along];
        if (i == 0 || lengths[i] < least) least = lengths[i];
        if (lengths[i] > most) most = lengths[i];
    }
    tp_autoref *offsets = lengths ? offsets_of(lengths, pieces.size, pieces.data[0]->device) : NULL;
    if (lengths) tp_free(lengths, bytes_of(pieces.size));
    return one_after_the_other(pieces, along, offsets, jagged, least, most);
}

/* Pieces of any sizes: their elements, and a table of sizes. */
static tp_tensor *flat_pieces(tp_tensors pieces) {
    int64_t *sizes, dims = pieces.data[0]->ndim;
    tp_autoref *shapes = tp_table_int64(TP_INTS(pieces.size, dims), &sizes);
    tp_autoseq *flat = shapes ? tp_tensor_seq_new(pieces.size) : NULL;
    int64_t *lengths = flat ? tp_alloc(bytes_of(pieces.size)) : NULL;
    bool failed = !lengths;
    for (int64_t i = 0; !failed && i < pieces.size; i++) {
        tp_tensor *t = pieces.data[i];
        lengths[i] = t->numel;
        if (dims) memcpy(sizes + i * dims, t->sizes, (size_t)dims * sizeof *sizes);
        failed = !(flat->items[i] = tp_reshape(t, TP_INTS(t->numel)));
    }
    tp_autoref *offsets = failed ? NULL : offsets_of(lengths, pieces.size, pieces.data[0]->device);
    if (lengths) tp_free(lengths, bytes_of(pieces.size));
    tp_autoref *values = offsets ? tp_cat(tp_tensor_seq_borrow(flat), 0) : NULL;
    return values ? tp__nested_make(values, offsets, NULL, shapes, 1, false, -1, -1) : NULL;
}

/* _nested_from_list(Tensor[] list, bool jagged) -> Tensor */
tp_tensor *_nested_from_list_composite(tp_tensors list, bool jagged) {
    if (list.size < 1) return tp_fail_null(TP_RuntimeError, "a nested tensor of no tensors");
    if (check_alike(list) < 0) return NULL;
    for (int64_t d = 0; d < (jagged ? list.data[0]->ndim : list.data[0]->ndim > 0); d++)
        if (agree_but(list, d)) return along_one(list, d, jagged);
    if (!jagged) return flat_pieces(list);
    return tp_fail_null(TP_RuntimeError,
                        "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the "
                        "jagged layout only allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., "
                        "D_N), with ragged * dim.");
}

/* The dimension of the pieces that is as long as n's differing one; -1: none. */
static int64_t kept_along(const tp_nested *n, tp_tensors pieces) {
    int64_t dims = pieces.data[0]->ndim;
    for (int64_t k = 0; k < dims; k++) {
        int64_t along = (n->ragged - 1 + k) % dims;
        bool same = agree_but(pieces, along);
        for (int64_t i = 0; same && i < n->count; i++) same = pieces.data[i]->sizes[along] == n->length[i];
        if (same) return along;
    }
    return -1;
}

tp_tensor *tp_nested_of_results(const tp_nested *n, tp_tensors pieces) {
    if (pieces.size == 0) return tp_nested_with_steal(n, tp_retain(n->values), n->ragged);
    if (pieces.data[0]->ndim == 0 || n->shapes) return tp__nested_from_list(pieces, n->jagged);
    if (check_alike(pieces) < 0) return NULL;
    int64_t along = kept_along(n, pieces);
    if (along >= 0 && n->whole) return one_after_the_other(pieces, along, n->offsets, n->jagged, n->least, n->most);
    for (int64_t d = 0; along < 0 && d < pieces.data[0]->ndim; d++)
        if (agree_but(pieces, d)) along = d;
    return along >= 0 ? along_one(pieces, along, n->jagged) : tp__nested_from_list(pieces, n->jagged);
}

/* ---- in the pattern of another ---- */

static tp_tensor *places_of(const tp_nested *n, tp_device device) {
    int64_t *values, total = 0;
    for (int64_t i = 0; i < n->count; i++) total += n->length[i];
    tp_autoref *table = tp_table_int64(TP_INTS(total), &values);
    for (int64_t i = 0; table && i < n->count; i++)
        for (int64_t k = 0; k < n->length[i]; k++) *values++ = n->from[i] + k;
    return table ? tp_to_device(table, device, TP_INT64, false, false, TP_NO_FORMAT) : NULL;
}

tp_tensor *tp_values_of_pieces(const tp_nested *n, tp_tensors pieces, bool sum) {
    int64_t along = n->ragged - 1;
    if (n->count == 0) return tp_zeros_like(n->values, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    tp_autoseq *flat = n->shapes ? tp_tensor_seq_new(pieces.size) : NULL;
    for (int64_t i = 0; flat && i < pieces.size; i++)
        if (!(flat->items[i] = tp_reshape(pieces.data[i], TP_INTS(pieces.data[i]->numel)))) return NULL;
    if (n->shapes && !flat) return NULL;
    tp_autoref *all = tp_cat(flat ? tp_tensor_seq_borrow(flat) : pieces, along);
    if (!all || n->whole) return tp_take(all);
    tp_autoref *places = places_of(n, all->device);
    int64_t room[TP_MAX_DIMS];
    memcpy(room, all->sizes, (size_t)all->ndim * sizeof *room);
    room[along] = n->values->sizes[along];
    tp_autoref *zeros =
        places ? tp_zeros((tp_ints){room, all->ndim}, (tp_dtype)all->dtype, TP_STRIDED, all->device, -1) : NULL;
    if (!zeros) return NULL;
    return sum ? tp_index_add(zeros, along, places, all, TP_SCALAR_I(1)) : tp_index_copy(zeros, along, places, all);
}

/* Pieces of another operand, each broadcast with n's. */
static tp_tensor *broadcast_pieces(const tp_nested *n, tp_tensors pieces, bool sum) {
    tp_autoseq *wide = tp_tensor_seq_new(n->count);
    for (int64_t i = 0; wide && i < n->count; i++) {
        int64_t own[TP_MAX_DIMS], shape[TP_MAX_DIMS];
        int ndim = tp_broadcast_sizes(tp_piece_sizes(n, i, own), tp_sizes(pieces.data[i]), shape);
        if (ndim < 0 || !(wide->items[i] = tp_expand(pieces.data[i], (tp_ints){shape, ndim}, false))) return NULL;
    }
    return wide ? tp_values_of_pieces(n, tp_tensor_seq_borrow(wide), sum) : NULL;
}

static bool same_places(const tp_nested *a, const tp_nested *b) {
    size_t bytes = (size_t)a->count * sizeof *a->from;
    int64_t along = a->ragged - 1;
    if (a->count != b->count || a->ragged != b->ragged || !a->shapes != !b->shapes ||
        a->values->sizes[along] != b->values->sizes[along])
        return false;
    if (memcmp(a->from, b->from, bytes) != 0 || memcmp(a->length, b->length, bytes) != 0) return false;
    return !a->shapes || (a->columns == b->columns && memcmp(a->sizes, b->sizes, bytes * (size_t)a->columns) == 0);
}

/* Pieces are not broadcast along the dimension that differs. */
static int check_lengths(const tp_nested *a, const tp_nested *b) {
    for (int64_t i = 0; i < a->count; i++)
        if (a->length[i] != b->length[i])
            return tp_fail(
                TP_RuntimeError,
                "nested tensors of different offsets: at index %lld one has a piece of length %lld, the other "
                "one of %lld",
                (long long)i, (long long)a->length[i], (long long)b->length[i]);
    return 0;
}

static tp_tensor *nested_beside(const tp_nested *n, tp_tensor *t, bool sum) {
    tp_autonested other = {0};
    if (tp_nested_of(t, &other) < 0) return NULL;
    if (same_places(n, &other)) return tp_retain(other.values);
    if (n->count != other.count)
        return tp_fail_null(TP_RuntimeError, "nested tensors of %lld and of %lld pieces", (long long)n->count,
                            (long long)other.count);
    if (!sum && n->ragged == other.ragged && !n->shapes && !other.shapes && check_lengths(n, &other) < 0) return NULL;
    tp_autoseq *pieces = tp_pieces(&other);
    return pieces ? broadcast_pieces(n, tp_tensor_seq_borrow(pieces), sum) : NULL;
}

tp_tensor *tp_beside(const tp_nested *n, tp_tensor *t, bool sum) {
    if (tp_is_nested(t)) return nested_beside(n, t, sum);
    int64_t dims = tp_piece_dims(n) + 1, full[TP_MAX_DIMS + 1];
    if (t->ndim == 0) return tp_retain(t);
    if (t->ndim > dims)
        return tp_fail_null(TP_RuntimeError, "a tensor of %d dimensions beside a nested one of %lld", t->ndim,
                            (long long)dims);
    for (int64_t d = 0; d < dims; d++) full[d] = d < dims - t->ndim ? 1 : t->sizes[d - (dims - t->ndim)];
    if (full[0] == 1 && !n->shapes && full[n->ragged] == 1) return tp_reshape(t, (tp_ints){full + 1, dims - 1});
    if (full[0] != 1 && full[0] != n->count)
        return tp_fail_null(TP_RuntimeError, "a batch of %lld beside a nested tensor of %lld pieces",
                            (long long)full[0], (long long)n->count);
    tp_autoref *whole = tp_reshape(t, (tp_ints){full, dims});
    tp_autoseq *pieces = whole ? tp_tensor_seq_new(n->count) : NULL;
    for (int64_t i = 0; pieces && i < n->count; i++)
        if (!(pieces->items[i] = tp_select_int(whole, 0, full[0] == 1 ? 0 : i))) return NULL;
    return pieces ? broadcast_pieces(n, tp_tensor_seq_borrow(pieces), sum) : NULL;
}

tp_tensor *tp_nested_none(const tp_nested *n) {
    tp_autoref *values = tp_narrow(n->values, n->ragged - 1, 0, 0);
    tp_autoref *offsets = values ? offsets_of(NULL, 0, values->device) : NULL;
    return offsets ? tp__nested_make(values, offsets, NULL, NULL, n->ragged, n->jagged, -1, -1) : NULL;
}

tp_tensor *tp_nested_packed(const tp_nested *n) {
    if (n->whole) return tp_retain(n->values);
    tp_autoref *places = places_of(n, n->values->device);
    return places ? tp_index_select(n->values, n->ragged - 1, places) : NULL;
}

tp_tensor *tp_nested_flat_of(const tp_nested *n) {
    tp_autoref *found = tp_nested_packed(n);
    return found ? tp_reshape(found, TP_INTS(found->numel)) : NULL;
}

/* _nested_flat(Tensor self) -> Tensor */
tp_tensor *_nested_flat_composite(tp_tensor *self) {
    tp_autonested n = {0};
    return tp_nested_of(self, &n) < 0 ? NULL : tp_nested_flat_of(&n);
}

/* _nested_beside(Tensor pattern, Tensor other) -> Tensor: the gradient of values in the pattern */
tp_tensor *_nested_beside_composite(tp_tensor *pattern, tp_tensor *other) {
    tp_autonested n = {0};
    return tp_nested_of(pattern, &n) < 0 ? NULL : tp_beside(&n, other, true);
}

/* _nested_like(Tensor self, Tensor values) -> Tensor */
tp_tensor *_nested_like_composite(tp_tensor *self, tp_tensor *values) {
    tp_autonested n = {0};
    return tp_nested_of(self, &n) < 0 ? NULL : tp_nested_with_steal(&n, tp_retain(values), n.ragged);
}

/* _nested_tensor_size(Tensor self) -> Tensor, _nested_tensor_strides, _nested_tensor_storage_offsets: of each piece */
tp_tensor *_nested_table_composite(tp_tensor *self, int64_t which) {
    tp_autonested n = {0};
    if (tp_nested_of(self, &n) < 0) return NULL;
    int64_t dims = tp_piece_dims(&n), room[TP_MAX_DIMS], *out;
    tp_autoref *table = tp_table_int64(which == 2 ? (tp_ints){&n.count, 1} : TP_INTS(n.count, dims), &out);
    int64_t step = n.values->strides[n.ragged - 1];
    for (int64_t i = 0; table && i < n.count; i++) {
        tp_ints sizes = tp_piece_sizes(&n, i, room);
        if (which == 2) *out++ = tp_storage_offset(n.values) + n.from[i] * step;
        else if (which == 0) memcpy(out + i * dims, room, (size_t)dims * sizeof *out);
        else if (!n.shapes) memcpy(out + i * dims, n.values->strides, (size_t)dims * sizeof *out);
        else tp_contiguous_strides(sizes, out + i * dims);
    }
    return tp_take(table);
}

/* _nested_view_from_buffer(Tensor(a) self, Tensor nested_size, Tensor nested_strides, Tensor offsets) -> Tensor(a) */
tp_tensor *_nested_view_from_buffer_composite(tp_tensor *self, tp_tensor *nested_size, tp_tensor *nested_strides,
                                              tp_tensor *offsets) {
    if (self->ndim != 1 || nested_size->ndim != 2 || !tp_same_sizes(nested_size, nested_strides) ||
        offsets->ndim != 1 || offsets->numel != nested_size->sizes[0])
        return tp_fail_null(TP_RuntimeError, "a buffer of one dimension, tables of sizes and strides, and offsets");
    tp_autoref *sizes = tp_host_ints(nested_size), *strides = tp_host_ints(nested_strides),
               *from = tp_host_ints(offsets);
    const int64_t *size = sizes ? tp_table_values(sizes) : NULL, *stride = strides ? tp_table_values(strides) : NULL,
                  *at = from ? tp_table_values(from) : NULL;
    if (!size || !stride || !at) return NULL;
    int64_t count = offsets->numel, dims = nested_size->sizes[1];
    tp_autoseq *pieces = dims < TP_MAX_DIMS ? tp_tensor_seq_new(count) : NULL;
    for (int64_t i = 0; pieces && i < count; i++)
        if (!(pieces->items[i] = tp_as_strided(self, (tp_ints){size + i * dims, dims},
                                               (tp_ints){stride + i * dims, dims}, TP_SOME_INT(at[i]))))
            return NULL;
    return pieces ? tp__nested_from_list(tp_tensor_seq_borrow(pieces), false)
                  : tp_fail_null(TP_RuntimeError, "a nested tensor of too many dimensions");
}
