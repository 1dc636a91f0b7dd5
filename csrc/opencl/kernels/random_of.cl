/* random_of.cl: draws with a parameter for each element, and how a beta draw moves, as the CPU makes them; in double where
 * the device has it.
 *
 * Defined in front: DRAW, one of the draws of prim/draw_of.inc. */
#include "tensorpy/math.h"
#include "tensorpy/philox.h"

#define TP_UNUSED
#define REAL WIDEST
#ifdef TP_HAVE_F64
#define UNIFORM(low, high) ((double)(tp_random_u64(low, high) >> 11) * 0x1p-53)
#define LGAMMA tp_lgamma_f64
#define DIGAMMA tp_digamma_f64
#define FRACTION_END 4e-16
#else
#define UNIFORM(low, high) tp_uniform_float(high)
#define LGAMMA tp_lgamma_f32
#define DIGAMMA tp_digamma_f32
#define FRACTION_END 2e-7f
#endif
#include "prim/draw_of.inc"

#ifdef DRAW
__kernel void draws(__global const REAL *a, long ao, __global const REAL *b, long bo, __global REAL *out, long oo, long n,
                    ulong seed, ulong offset, int refuses, volatile __global int *fault, int kind) {
    const long i = get_global_id(0);
    if (i >= n) return;
    tries t = {.seed = seed, .offset = offset, .index = i};
    const REAL value = DRAW(a[ao + i], b[bo + i], &t);
    out[oo + i] = value;
    if (refuses && isnan(value)) report(fault, kind, 0, 0, 0);
}
#else
__kernel void slopes(__global const REAL *x, long xo, __global const REAL *alpha, long ao, __global const REAL *total,
                     long to, __global REAL *out, long oo, long n) {
    const long i = get_global_id(0);
    if (i < n) out[oo + i] = beta_slope(x[xo + i], alpha[ao + i], total[to + i] - alpha[ao + i]);
}
#endif
