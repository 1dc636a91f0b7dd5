/* nested.h: what the operators of nested tensors share.
 *
 * Note [Nested kernels]
 * A nested tensor's operators stand at the key LayoutNested, above autograd, which records what they are made of: dense
 * operators on all values at once, or on each piece. An entry says of an operator what it is (`nested:`); all others
 * are called by the fallback of the key (nested/fallback.c): pointwise ones on the values, reductions along dimensions
 * that all pieces share on the values too, and what is left on one piece after the other, without padding. Offsets are
 * read anew by each operator and checked against the values before anything is read with them. */
#pragma once

#include "native/layout/layout.h"

/* Facts of a nested tensor. Optional: 1 for lengths, and 2 for shapes. The last two are one more than the least and the
 * largest length of its pieces, as whoever made it said; 0: nobody did. */
enum { TP_FACT_RAGGED, TP_FACT_NUMEL, TP_FACT_OPTIONAL, TP_FACT_LEAST, TP_FACT_MOST };

typedef struct {
    tp_tensor *values;                     /* owned; known to autograd */
    tp_tensor *offsets, *lengths, *shapes; /* owned; the last two may be NULL */
    int64_t ragged;                        /* the dimension of the nested tensor whose sizes differ */
    int64_t count;                         /* of pieces */
    int64_t *from, *length;                /* owned: where each piece lies along the values, checked */
    int64_t *sizes;                        /* owned: the rows of `shapes`, checked; NULL without */
    int64_t columns;                       /* of them */
    int64_t least, most;                   /* lengths that somebody said; -1: nobody did */
    bool whole;                            /* the pieces are the values, one after the other */
    bool jagged;
} tp_nested;

int tp_nested_of(tp_tensor *t, tp_nested *n);
void tp_nested_release(tp_nested *n);
#define tp_autonested TP_CLEANUP(tp_nested_release) tp_nested

/* Writing to a nested tensor, as autograd knows of it (nested/fallback.c): whether it may be written by something that
 * is recorded or not, and that n's values, which are its own, have been written by something recorded. */
extern int (*tp_nested_check_inplace)(tp_tensor *t, const char *op, bool records);
extern int (*tp_nested_written)(tp_tensor *t, const tp_nested *n);

/* Values that are about to be written: of a tensor that is no view they have, as it does, a history of their own. */
void tp_nested_own_values(tp_nested *n);

/* Pieces whose lengths are said may leave holes among the values. What joins, pads or cuts them along the dimension
 * that differs is refused of those, as PyTorch does, by an error of this class. */
int tp_nested_check_no_holes(const tp_nested *n, tp_error_class cls, const char *op);

/* How many dimensions a piece has. */
int64_t tp_piece_dims(const tp_nested *n);
/* The sizes of a piece, in room for TP_MAX_DIMS. */
tp_ints tp_piece_sizes(const tp_nested *n, int64_t i, int64_t *room);
/* The pieces: views of the values. */
tp_tensor_seq *tp_pieces(const tp_nested *n);
/* The beginning of t, of the sizes; RuntimeError where it is smaller. New. */
tp_tensor *tp_corner(tp_tensor *t, tp_ints sizes);
/* The values of a tensor in n's pattern, of one that is given piece by piece. Where pieces share values the last is
 * kept, or with `sum` they add up. */
tp_tensor *tp_values_of_pieces(const tp_nested *n, tp_tensors pieces, bool sum);
/* n's pattern with other values, which may have other sizes where the pieces agree; `values` is taken over. */
tp_tensor *tp_nested_with_steal(const tp_nested *n, tp_tensor *values, int64_t ragged);
/* A nested tensor of results of n's pieces, with its offsets where they are as long. */
tp_tensor *tp_nested_of_results(const tp_nested *n, tp_tensors pieces);
/* What stands for an operand next to n's values: a nested tensor's values, a dense tensor broadcast. */
tp_tensor *tp_beside(const tp_nested *n, tp_tensor *t, bool sum);
/* A nested tensor without pieces, of n's kind. */
tp_tensor *tp_nested_none(const tp_nested *n);
/* The values of all pieces, one after the other. */
tp_tensor *tp_nested_packed(const tp_nested *n);
/* All elements in one dimension. */
tp_tensor *tp_nested_flat_of(const tp_nested *n);
