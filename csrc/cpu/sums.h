/* sums.h: sums of neighbours and of their squared distances from a mean, in double: in LANES sums side by side that
 * stay in registers and are added up in a fixed order, whatever the vectors' width, so every capability gives the same.
 */
#pragma once

#include "core/base.h"

#include <string.h>

#define FOURS 4
#define LANES (4 * FOURS)
typedef double four __attribute__((vector_size(32))); /* passed by address: not every CPU has registers of it */

TP_INLINE double total(const four lanes[FOURS]) {
    four v = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
    return (v[0] + v[2]) + (v[1] + v[3]);
}

#define T float
#define OF(name) name##_f32
#include "cpu/sums_of.h"
#undef T
#undef OF

#define T double
#define OF(name) name##_f64
#include "cpu/sums_of.h"
#undef T
#undef OF
