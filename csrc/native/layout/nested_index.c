/* nested_index.c: elements of nested tensors that tensors of indices name (Note [Nested kernels]). What names the
 * dimension whose sizes differ is computed on all values; what names whole pieces, on the padded tensor. */
#include "native/layout/nested.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "core/tls.h"
#include "native/common/checks.h"
#include "prim/table.h"

#include <string.h>

#define PUT "index_put of a nested tensor"

/* A number of each piece where the values are, taken by `which`. */
static tp_tensor *of_pieces(const tp_nested *n, const int64_t *numbers, tp_tensor *which) {
    int64_t *room;
    tp_autoref *table = tp_table_int64(TP_INTS(n->count), &room);
    if (!table) return NULL;
    if (n->count) memcpy(room, numbers, (size_t)n->count * sizeof *room);
    tp_autoref *there = tp_to_device(table, n->values->device, TP_INT64, false, false, TP_NO_FORMAT);
    return there ? tp_index_Tensor(there, (tp_tensors){(tp_tensor *[]){which}, 1}) : NULL;
}

/* Where elements of pieces lie along the values; from their ends where a number is negative. */
static tp_tensor *places_within(const tp_nested *n, tp_tensor *which, tp_tensor *at) {
    bool outside = false;
    tp_autoref *from = of_pieces(n, n->from, which), *length = from ? of_pieces(n, n->length, which) : NULL;
    tp_autoref *negative = length ? tp_lt_Scalar(at, TP_SCALAR_I(0)) : NULL;
    tp_autoref *added = negative ? tp_add_Tensor(at, length, TP_SCALAR_I(1)) : NULL;
    tp_autoref *wrapped = added ? tp_where_self(negative, added, at) : NULL;
    tp_autoref *before = wrapped ? tp_lt_Scalar(wrapped, TP_SCALAR_I(0)) : NULL;
    tp_autoref *behind = before ? tp_ge_Tensor(wrapped, length) : NULL;
    tp_autoref *wrong = behind ? tp_logical_or(before, behind) : NULL, *any = wrong ? tp_any(wrong) : NULL;
    if (!any || tp_holds(any, &outside) < 0) return NULL;
    if (outside) return tp_fail_null(TP_RuntimeError, PUT ": an index leads out of a piece");
    return tp_add_Tensor(wrapped, from, TP_SCALAR_I(1));
}

static int check_numbers(tp_tensors indices, int64_t upto) {
    for (int64_t i = 0; i < upto; i++) {
        const tp_tensor *t = indices.data[i];
        if (t && (tp_is_nested(t) || t->dtype == TP_BOOL))
            return tp_fail(TP_NotImplementedError, PUT ": masks beside other indices");
    }
    return 0;
}

/* New values of a tensor whose dimension that differs is named; NULL and no error where it is not. */
static tp_tensor *along_values(const tp_nested *n, tp_tensors indices, tp_tensor *values, bool accumulate) {
    tp_tensor *list[TP_MAX_DIMS];
    if (indices.size == 1 && indices.data[0] && tp_is_nested(indices.data[0])) {
        if (indices.data[0]->dtype != TP_BOOL)
            return tp_fail_null(TP_ValueError, PUT ": a nested tensor is an index as a mask of bool");
        tp_autoref *mask = tp_beside(n, indices.data[0], false);
        return mask ? tp_index_put(n->values, (tp_tensors){(tp_tensor *[]){mask}, 1}, values, accumulate) : NULL;
    }
    if (indices.size <= n->ragged || n->shapes || !indices.data[0] || !indices.data[n->ragged]) return NULL;
    if (indices.size > n->values->ndim + 1)
        return tp_fail_null(TP_IndexError, "too many indices for tensor of dimension %d", n->values->ndim + 1);
    if (check_numbers(indices, indices.size) < 0) return NULL;
    tp_autoref *place = places_within(n, indices.data[0], indices.data[n->ragged]);
    if (!place) return NULL;
    for (int64_t i = 1; i < indices.size; i++) list[i - 1] = i == n->ragged ? place : indices.data[i];
    return tp_index_put(n->values, (tp_tensors){list, indices.size - 1}, values, accumulate);
}

/* The pieces of a tensor whose padded one is written. */
static tp_tensor *along_pieces(tp_tensor *self, const tp_nested *n, tp_tensors indices, tp_tensor *values,
                               bool accumulate) {
    int64_t room[TP_MAX_DIMS];
    for (int64_t i = 0; i < indices.size; i++)
        if (indices.data[i] && (i >= n->ragged || n->shapes) && i > 0)
            return tp_fail_null(TP_NotImplementedError,
                                PUT ": the dimension whose sizes differ is named together with the batch");
    if (n->count == 0) return tp_retain(n->values);
    tp_autoref *packed = tp_contiguous(self, TP_NO_FORMAT);
    tp_autoref *padded = packed ? tp_to_padded_tensor(packed, 0, TP_NO_INTS) : NULL;
    tp_autoref *written = padded ? tp_index_put(padded, indices, values, accumulate) : NULL;
    tp_autoseq *pieces = written ? tp_unbind_int(written, 0) : NULL;
    for (int64_t i = 0; pieces && i < n->count; i++) {
        tp_tensor *part = tp_corner(pieces->items[i], tp_piece_sizes(n, i, room));
        tp_release(pieces->items[i]);
        if (!(pieces->items[i] = part)) return NULL;
    }
    return pieces ? tp_values_of_pieces(n, tp_tensor_seq_borrow(pieces), false) : NULL;
}

static tp_tensor *put(tp_tensor *self, tp_nested *n, tp_tensors indices, tp_tensor *values, bool accumulate) {
    if (!tp_is_nested(self) || tp_is_nested(values))
        return tp_fail_null(TP_ValueError, PUT ": the tensor is nested, its values are dense");
    if (tp_nested_of(self, n) < 0) return NULL;
    tp_tensor *made = along_values(n, indices, values, accumulate);
    return made || tp_error_pending() ? made : along_pieces(self, n, indices, values, accumulate);
}

/* index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor */
tp_tensor *index_put_nested(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    tp_autonested n = {0};
    tp_autoref *made = put(self, &n, indices, values, accumulate);
    return made ? tp_nested_with_steal(&n, tp_take(made), n.ragged) : NULL;
}

/* index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!): what lies between
 * the pieces stays. */
int index_put__nested(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    tp_autonested n = {0};
    if (!tp_tls.grad_disabled && tp_is_nested(self) && self->flags & TP_FLAG_REQUIRES_GRAD)
        return tp_fail(TP_RuntimeError,
                       "index_put_: a nested tensor that requires grad is not changed in place; under no_grad it is");
    tp_autoref *made = put(self, &n, indices, values, accumulate);
    if (!made || n.whole) return made ? tp_copy_(n.values, made, false) : -1;
    tp_autoref *nested = tp_nested_with_steal(&n, tp_take(made), n.ragged);
    tp_autoseq *to = nested ? tp_pieces(&n) : NULL, *from = to ? tp_unbind_int(nested, 0) : NULL;
    for (int64_t i = 0; from && i < n.count; i++)
        if (tp_copy_(to->items[i], from->items[i], false) < 0) return -1;
    return from ? 0 : -1;
}
