/* pool_loops.c: the loops of pooling over contiguous planes, compiled once per capability.
 *
 * A plane is one channel of one image. A window is clipped to the plane; what lies outside counts for an average only
 * as the operator says. The loops are in pool_windows.h, once for every dtype. */
#include "cpu/pool.h"

#include "core/host.h"
#include "cpu/kernels.h"
#include "cpu/loop.h"

#include <math.h>
#include <string.h>

#define BAND 1024    /* elements of the rows that are taken at once */
#define SHORT_ROW 16 /* windows of a row that is taken by fours */
typedef int64_t four_places __attribute__((vector_size(32)));

/* What a row of windows reads, and whether the loop over a plane is to end before it. */
TP_INLINE int64_t tp_pool_row_work(const tp_pool_plan *p) {
    int64_t work = p->out[2];
    for (int d = 0; d < 3; d++) work *= p->adaptive ? 1 + p->in[d] / p->out[d] : p->kernel[d];
    return work;
}
TP_INLINE bool tp_pool_ends(int64_t *done, int64_t work) {
    if (tp_likely((*done += work) < 1 << 20)) return false;
    *done = 0;
    return tp_host_look() < 0;
}

#define T float
#define SIDE int32_t
#define OF(name) name##_f32
#define LOWEST (-INFINITY)
#define IS_NAN(v) ((v) != (v))
#include "cpu/pool_windows.h"
#undef T
#undef SIDE
#undef OF

#define T double
#define SIDE int64_t
#define OF(name) name##_f64
#include "cpu/pool_windows.h"
#undef T
#undef SIDE
#undef OF
#undef LOWEST
#undef IS_NAN

#define T int64_t
#define SIDE int64_t
#define OF(name) name##_i64
#define LOWEST INT64_MIN
#define IS_NAN(v) false
#include "cpu/pool_windows.h"

const tp_pool_kernels TP_CAP(tp_pool) = {
    .max = {max_f32, max_f64, max_i64},
    .max22 = {max22_f32, max22_f64, max22_i64},
    .max_backward = {max_backward_f32, max_backward_f64, max_backward_i64},
    .average = {average_f32, average_f64, average_i64},
    .average_backward = {average_backward_f32, average_backward_f64, average_backward_i64},
};
