/* norm_loops.c: the loops of normalisations over runs of neighbours, compiled once per capability.
 *
 * Sums run in double (sums.h). The loops are in norm_runs.h, once for every dtype. */
#include "cpu/norm.h"

#include "cpu/kernels.h"
#include "cpu/sums.h"

#define T float
#define OF(name) name##_f32
#include "cpu/norm_runs.h"
#undef T
#undef OF

#define T double
#define OF(name) name##_f64
#include "cpu/norm_runs.h"
#undef T
#undef OF

#define LOOPS(s) \
    {sum_##s, squares_##s, elements_##s, run_##s, products_##s, spread_##s, accumulate_##s, get_##s, put_##s}

const tp_norm_kernels TP_CAP(tp_norm) = {.f32 = LOOPS(f32), .f64 = LOOPS(f64)};
