/* product_int8.h: products of bytes whose sums are exact, in int32. */
#pragma once

#include "core/base.h"

#define TP_INT8_COLUMNS 16 /* of a panel */
#define TP_INT8_ROWS 12    /* at most, that a panel is multiplied with at once */

typedef struct {
    int64_t rows; /* that `multiply` is quickest with */
    /* Integers less a zero point, one after another; a last one without a second gets 0. Gives their sum. */
    int32_t (*widen)(const void *from, bool is_signed, int64_t n, int32_t zero_point, int16_t *to);
    /* sums[rows][TP_INT8_COLUMNS] of rows of pairs, lda apart, with a panel [pairs][TP_INT8_COLUMNS][2]. */
    void (*multiply)(const int16_t *a, int64_t lda, int64_t rows, int64_t pairs, const int8_t *panel, int32_t *sums);
    /* (sums + shift) * factor as the nearest integers, from low to high after `zero_point` is added: for each column.
     */
    void (*to_bytes)(const int32_t *sums, const float *shift, const float *factor, int32_t zero_point, int32_t low,
                     int32_t high, int64_t n, uint8_t *out);
    /* sums * factor + shift, rounded once, nothing below `least`. */
    void (*to_floats)(const int32_t *sums, const float *shift, const float *factor, float least, int64_t n, float *out);
} tp_product_int8_kernels;
