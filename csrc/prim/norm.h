/* norm.h: the walk of a normalisation: the words of the argument `rows` of its primitives, tp_norm_rows. */
#pragma once

#include "core/list.h"
#include "tensorpy/program.h"

#include <string.h>

#define TP_NORM_WORDS ((int64_t)(sizeof(tp_norm_rows) / sizeof(int64_t)))

TP_INLINE tp_ints tp_norm_words(const tp_norm_rows *r) { return (tp_ints){(const int64_t *)r, TP_NORM_WORDS}; }

TP_INLINE tp_norm_rows tp_norm_rows_of(tp_ints words) {
    tp_norm_rows r = {0};
    memcpy(&r, words.data, (size_t)(words.size < TP_NORM_WORDS ? words.size : TP_NORM_WORDS) * sizeof(int64_t));
    return r;
}
