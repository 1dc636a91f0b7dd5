/* random.h: what draws of all kinds check and reserve (native/random.c). */
#pragma once

#include "core/generator.h"
#include "core/tensor.h"

/* A generator belongs to a device; NULL, the device's own, fits. */
int tp_check_generator(const tp_generator *g, const tp_tensor *self);

/* The seed and offset of one draw; without a generator the one of the tensor's device is taken. */
int tp_reserve_draw(tp_generator *g, const tp_tensor *self, tp_philox_state *state);
