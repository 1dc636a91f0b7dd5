/* optimizer_loops.c: the loops of optimizers' steps, compiled once per capability.
 *
 * They are in optimizer_of.h, once for every dtype. */
#include "cpu/optimizer.h"

#include "cpu/kernels.h"

#include <math.h>

#define T float
#define ROOT sqrtf
#define OF(name) name##_f32
#include "cpu/optimizer_of.h"
#undef T
#undef ROOT
#undef OF

#define T double
#define ROOT sqrt
#define OF(name) name##_f64
#include "cpu/optimizer_of.h"
#undef T
#undef ROOT
#undef OF

const tp_optimizer_kernels TP_CAP(tp_optimizer) = {.f32 = {sgd_f32, adam_f32, adagrad_f32},
                                                   .f64 = {sgd_f64, adam_f64, adagrad_f64}};
