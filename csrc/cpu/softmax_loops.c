/* softmax_loops.c: softmax, log_softmax and their gradients, compiled once per capability.
 *
 * A row's largest element is subtracted first, so nothing overflows. Rows along memory are taken one by one, in lanes;
 * rows across memory, COLUMNS neighbours at a time; short rows along memory are turned, TURNED at a time. Sums run in a
 * fixed order, whatever the capability. The loops are in softmax_rows.h, once for every dtype. */
#include "cpu/softmax.h"

#include "core/error.h"
#include "core/host.h"
#include "cpu/kernels.h"
#include "cpu/loop.h"

#include <string.h>

#define LANES 32
#define ROWS 16
#define LONG 512 /* elements of a row, of which ROWS would leave the L1 cache */
#define COLUMNS 64
#define TURNED 32 /* short rows that are taken at once */

/* Where row i of n elements starts, `inner` rows lying side by side. */
TP_INLINE int64_t start_of(int64_t i, int64_t n, int64_t inner) {
    return inner == 1 ? i * n : i / inner * n * inner + i % inner;
}

/* How many rows from row i on are neighbours, below `last`. */
TP_INLINE int64_t columns_from(int64_t i, int64_t inner, int64_t last) {
    int64_t m = inner == 1 ? 1 : inner - i % inner;
    m = m > COLUMNS ? COLUMNS : m;
    return m > last - i ? last - i : m;
}

/* Rows of this length look for signals (tp_ends_at). */
TP_INLINE bool was_interrupted(int64_t n) { return n > 1 << 20 && tp_error_pending() != TP_NoError; }

/* How many of so many rows are taken at once; few of them cost less one by one. */
TP_INLINE int turned_of(int64_t n, int64_t count) {
    return n > 2 * LANES || count < 6 ? 0 : (int)(count < TURNED ? count : TURNED);
}

#define T float
#define OF(name) name##_f32
#include "cpu/softmax_rows.h"
#undef T
#undef OF

#define T double
#define OF(name) name##_f64
#include "cpu/softmax_rows.h"
#undef T
#undef OF

const tp_softmax_kernels TP_CAP(tp_softmax) = {.f32 = {forward_f32, backward_f32}, .f64 = {forward_f64, backward_f64}};
