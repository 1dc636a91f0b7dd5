/* grid_loops.c: images sampled at the places of a grid, compiled once per capability. The loops are in grid_taps.h,
 * once for every dtype. */
#if defined(__AVX2__) && !defined(__clang__) && defined(__GNUC__)
#pragma GCC target( \
    "tune=skylake-avx512") /* gcc uses the instructions that gather only where it knows them to be fast */
#endif

#include "cpu/grid.h"

#include "cpu/kernels.h"
#include "cpu/loop.h"

#include <math.h>

#define B TP_GRID_BLOCK

/* How many elements a place reads along one dimension. */
TP_INLINE int taps_along(const tp_grid_plan *p) {
    return p->mode == TP_GRID_NEAREST ? 1 : p->mode == TP_GRID_LINEAR ? 2 : 4;
}
TP_INLINE int taps_of(const tp_grid_plan *p) {
    int n = taps_along(p);
    return p->dims == 2 ? n * n : n * n * n;
}

#define T float
#define OF(name) name##_f32
#define FLOOR __builtin_floorf
#define ROUND __builtin_rintf
#define ABS __builtin_fabsf
#include "cpu/grid_taps.h"
#undef T
#undef OF
#undef FLOOR
#undef ROUND
#undef ABS

#define T double
#define OF(name) name##_f64
#define FLOOR __builtin_floor
#define ROUND __builtin_rint
#define ABS __builtin_fabs
#include "cpu/grid_taps.h"
#undef T
#undef OF

#define LOOPS(s) {forward_##s, to_grid_##s, to_input_##s}

const tp_grid_kernels TP_CAP(tp_grid) = {.f32 = LOOPS(f32), .f64 = LOOPS(f64)};
