/* generator.h: random number generators: a seed and a position, from which philox.h makes the numbers; or, where a
 * process runs PyTorch's programs, for the CPU the serial generator whose numbers are PyTorch's (core/mersenne.h).
 *
 * A draw reserves one offset and numbers its elements from 0; kernels then compute element i from (seed, offset, i), in
 * any order and on any device. Seed and offset change together under a lock; a kernel works on the pair that
 * tp_generator_reserve gave it. */
#pragma once

#include "core/device.h"

#include <stdatomic.h>

#define TP_DEFAULT_SEED UINT64_C(67280421310721) /* PyTorch's, of a generator that nobody has seeded */
#define TP_GENERATOR_STATE_BYTES 16

struct tp_generator {
    _Atomic int32_t refcount;
    tp_device device;
    uint64_t seed;
    uint64_t offset;          /* the next draw's */
    struct tp_tensor *serial; /* a tp_mersenne's bytes, owned; NULL: not drawn from yet, or never */
};

typedef struct {
    uint64_t seed, offset;
} tp_philox_state;

/* A new generator with TP_DEFAULT_SEED. Random numbers do not depend on the device; it is there for checks. */
tp_generator *tp_generator_new(tp_device device);
tp_generator *tp_generator_clone(tp_generator *g); /* with the same state */
void tp_generator_free(tp_generator *g);
TP_INLINE tp_generator *tp_generator_retain(tp_generator *g) {
    atomic_fetch_add_explicit(&g->refcount, 1, memory_order_relaxed);
    return g;
}
TP_INLINE void tp_generator_release(tp_generator *g) {
    if (g && atomic_fetch_sub_explicit(&g->refcount, 1, memory_order_acq_rel) == 1) tp_generator_free(g);
}

/* The device's own generator, borrowed: it lives as long as the process. Made at first use, with the seed of the last
 * tp_manual_seed or else one from the OS. NULL and the error set for a device that is not there. */
tp_generator *tp_default_generator_borrow(tp_device device);
/* Seeds the default generators of all devices, those that do not exist yet included. */
void tp_manual_seed(uint64_t seed);

void tp_generator_manual_seed(tp_generator *g, uint64_t seed); /* and the offset is 0 again */
/* Seeds from the OS; returns the new seed. */
uint64_t tp_generator_seed(tp_generator *g);
uint64_t tp_generator_initial_seed(tp_generator *g);

/* Reserves n offsets (one per draw; more for a kernel that wants several blocks of words per element). Gives the seed
 * and the first of them. g may be NULL: the CPU's default generator. */
int tp_generator_reserve(tp_generator *g, uint64_t n, tp_philox_state *out);

/* Whether the CPU's generators are serial from now on; those that there are begin with their seeds. */
void tp_generators_be_serial(bool on);
/* The state of a generator that is serial, borrowed: uint8 on the CPU, which draws change under the host lock. *state
 * is NULL if it is none. Draws that are noted (Note [Pending memory]) run first, unless the caller's are to wait as
 * well. g may be NULL: the device's default generator. */
int tp_generator_serial(tp_generator *g, tp_device device, struct tp_tensor **state);

/* The state as bytes: seed and offset, little-endian. */
void tp_generator_get_state(tp_generator *g, uint8_t bytes[TP_GENERATOR_STATE_BYTES]);
int tp_generator_set_state(tp_generator *g, const uint8_t *bytes, size_t size); /* RuntimeError for another size */
