/* norm.h: the walk of a normalisation: the words of the argument `rows` of its primitives. */
#pragma once

#include "core/list.h"

#include <string.h>

/* A row is `runs` runs of `length` neighbours, `next` elements apart; row r begins at r * first. */
typedef struct {
    int64_t rows, runs, length, first, next;
    int64_t groups, per_row, per_run; /* run k of row r has weight and bias r % groups * per_row + k * per_run, */
    int64_t each;                     /* or, if not 0, element i of a row has those of i */
} tp_norm_rows;

#define TP_NORM_WORDS ((int64_t)(sizeof(tp_norm_rows) / sizeof(int64_t)))

TP_INLINE tp_ints tp_norm_words(const tp_norm_rows *r) { return (tp_ints){(const int64_t *)r, TP_NORM_WORDS}; }

TP_INLINE tp_norm_rows tp_norm_rows_of(tp_ints words) {
    tp_norm_rows r = {0};
    memcpy(&r, words.data, (size_t)(words.size < TP_NORM_WORDS ? words.size : TP_NORM_WORDS) * sizeof(int64_t));
    return r;
}
