/* recurrent_loops.c: the gates of recurrent cells, compiled once per capability. The loops are in recurrent_rows.h,
 * once for every dtype. */
#include "cpu/recurrent.h"

#include "cpu/kernels.h"
#include "cpu/loop.h"

#define T float
#define OF(name) name##_f32
#include "cpu/recurrent_rows.h"
#undef T
#undef OF

#define T double
#define OF(name) name##_f64
#include "cpu/recurrent_rows.h"
#undef T
#undef OF

#define LOOPS(s) {lstm_##s, lstm_backward_##s, gru_##s, gru_backward_##s}

const tp_recurrent_kernels TP_CAP(tp_recurrent) = {.f32 = LOOPS(f32), .f64 = LOOPS(f64)};
