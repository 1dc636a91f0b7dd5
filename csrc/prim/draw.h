/* draw.h: what the kernels of draws make at once. */
#pragma once

#include "core/generator.h"

/* What a draw is of. The element type of what a kind makes is in tp_random_made. */
typedef enum {
    TP_DRAW_UNIFORM_FLOAT, /* a + (b - a) * u, u a multiple of 2**-bits in [0, 1) */
    TP_DRAW_UNIFORM_DOUBLE,
    TP_DRAW_NORMAL_FLOAT, /* mean a, deviation b */
    TP_DRAW_NORMAL_DOUBLE,
    TP_DRAW_EXPONENTIAL_FLOAT, /* rate a */
    TP_DRAW_EXPONENTIAL_DOUBLE,
    TP_DRAW_INTEGERS,  /* int64 from base on, `range` of them; 0 stands for 2**64 */
    TP_DRAW_BERNOULLI, /* bool, true with probability a */
    TP_DRAW_CAUCHY,    /* double, median a, scale b; this and the next in one step on other devices only */
    TP_DRAW_GEOMETRIC, /* double: trials until the first success, a the logarithm of a failure's probability */
    TP_NUM_DRAWS
} tp_draw_kind;

typedef struct {
    tp_philox_state state;
    double a, b;
    int bits;
    uint64_t range;
    int64_t base;
} tp_draw;
