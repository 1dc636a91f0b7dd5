/* random.h: what draws of all kinds check and reserve (native/random/random.c). */
#pragma once

#include "core/generator.h"
#include "core/tensor.h"
#include "prim/serial.h"

/* A generator belongs to a device; NULL, the device's own, fits. */
int tp_check_generator(const tp_generator *g, const tp_tensor *self);

/* The seed and offset of one draw; without a generator the one of the tensor's device is taken. */
int tp_reserve_draw(tp_generator *g, const tp_tensor *self, tp_philox_state *state);

/* A draw from a serial generator (prim/serial.h) in the order of a tensor's memory; `state`: tp_generator_serial. */
int tp_draw_serial(tp_tensor *state, tp_serial_kind kind, double a, double b, tp_tensor *self);
/* `all`: the whole numbers from 0 on that the dtype has. */
int tp_draw_serial_integers(tp_tensor *state, int64_t base, uint64_t range, bool all, tp_tensor *self);
