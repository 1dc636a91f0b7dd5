/* layout.h: what the operators of layouts share (Note [Layouts] in core/layout.h).
 *
 * Note [Sparse kernels]
 * A sparse tensor is a pattern, which says where elements are, and a dense tensor of the values there. Its operators
 * take it apart by two operators that autograd knows, `_layout_values` and `_coo`, and compute with dense operators on
 * indices and values; so they run on every device, a gradient with respect to a sparse tensor is sparse and has the
 * same pattern, and each of its values is that of one value. */
#pragma once

#include "core/layout.h"

/* Facts of a tensor of the layout sparse_coo. */
enum { TP_FACT_COALESCED }; /* indices are in order, and each once */

/* A new tensor of the layout, of the parts; its values are another tensor on the same memory, without history. */
tp_tensor *tp_of_parts(tp_layout layout, tp_tensor *const *parts, const int64_t *facts, tp_ints sizes);

/* What an operator that writes does: t becomes `made`, in its own dtype. Other layouts than t's are refused; a dense t
 * is written as dense tensors are. */
int tp_write_layout(tp_tensor *t, tp_tensor *made, const char *op);
/* The parts of `from` are written where those of t lie, indices too, and done is set, if both are in lines of one
 * layout and have parts of the same sizes. */
int tp_copy_lines(tp_tensor *t, tp_tensor *from, const char *op, bool *done);
/* The same where sizes change: t alone becomes `made`, and aliases of it stay what they are. */
int tp_replace_layout(tp_tensor *t, tp_tensor *made, const char *op);
/* An operator on values, one for each place, merges what it is given: it is refused in place of a tensor with several.
 */
int tp_refuse_unmerged(tp_tensor *t, const char *op);

/* A sparse tensor by coordinates. `indices` is sparse_dim x nnz, in int64; `values` is known to autograd. */
typedef struct {
    tp_tensor *indices, *values; /* owned */
    int64_t sparse_dim;
    bool coalesced;
} tp_coo;

/* Takes apart a tensor of any sparse layout; -1 after a failure. */
int tp_coo_of(tp_tensor *t, tp_coo *coo);
void tp_coo_release(tp_coo *coo);
#define tp_autocoo TP_CLEANUP(tp_coo_release) tp_coo

/* A tensor of coordinates; `indices` and `values` are taken over, NULL after a failure before. */
tp_tensor *tp_make_coo_steal(tp_tensor *indices, tp_tensor *values, tp_ints size, bool coalesced);
/* `made` in the layout of `like`, where that is compressed and `made` has rows and columns; `made` is taken over. */
tp_tensor *tp_as_layout_steal(const tp_tensor *like, tp_tensor *made);
/* A tensor without values, of zeros; NULL and the error set of a layout in blocks, whose size nobody said. */
tp_tensor *tp_empty_of_layout(tp_ints size, tp_layout layout, tp_dtype dtype, tp_device device);
/* How many dimensions the values of a compressed tensor have. */
TP_INLINE int tp_dense_dims_of_lines(const tp_parts *p) {
    bool in_blocks = p->layout == TP_SPARSE_BSR || p->layout == TP_SPARSE_BSC;
    return p->part[2]->ndim - p->part[1]->ndim - (in_blocks ? 2 : 0);
}
/* The sizes of a block of a compressed tensor; of numbers ones. */
void tp_block_sizes(const tp_parts *p, int64_t blocks[2]);
/* A compressed tensor with two dimensions exchanged, which has the same lines; NULL where they are not the matrices'.
 */
int tp_turned_lines(tp_tensor *t, int64_t a, int64_t b, tp_tensor **made);
/* Whether t is sparse. */
TP_INLINE bool tp_is_sparse(const tp_tensor *t) { return t->keys & (TP_BIT(Sparse) | TP_BIT(SparseCsr)); }

/* One number for each value: its place in a dense tensor of t's sparse sizes. New. */
tp_tensor *tp_keys_of(const tp_tensor *t, const tp_coo *c);
/* `rows` and t's dense sizes, in `room` for TP_MAX_DIMS + 1. */
tp_ints tp_rows_and_dense(const tp_tensor *t, const tp_coo *c, int64_t rows, int64_t *room);

/* Small steps that several families take. Each gives a new tensor. */
tp_tensor *tp_row_of(tp_tensor *indices, int64_t row);      /* one row of indices */
tp_tensor *tp_rows_of(tp_tensor *indices, tp_ints rows);    /* some rows, in the order given */
tp_tensor *tp_where_true(tp_tensor *mask);                  /* the places of True, in one dimension */
tp_tensor *tp_stacked(tp_tensor *first, tp_tensor *second); /* two rows as indices of a matrix */
/* For each range of counts[i] numbers from first[i] on: i, and the number. */
tp_tensor2 tp_ranges(tp_tensor *first, tp_tensor *counts);
