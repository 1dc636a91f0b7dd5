/* generator.c: the state of random number generators, and the default generator of each device.
 *
 * Invariants: a default generator, once made, is never replaced or freed, so it may be borrowed for good; one lock,
 * Generators, guards the state of all of them, since it is held for two words. */
#include "core/generator.h"

#include "core/alloc.h"
#include "core/error.h"
#include "core/lock.h"
#include "core/memory.h"
#include "core/mersenne.h"
#include "core/tensor.h"
#include "core/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_INDEX 128 /* a device index is an int8_t */

static struct {
    bool seeded; /* by tp_manual_seed */
    uint64_t seed;
    tp_generator *made[TP_NUM_DEVICES][MAX_INDEX];
    tp_generator store[TP_NUM_DEVICES]; /* the generators of index 0, so that these need no allocation */
} defaults;

static _Atomic bool serial;

static uint64_t mix(uint64_t x) { /* splitmix64 */
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Without /dev/urandom (a bare chroot) the clock and the process have to do. */
static uint64_t seed_from_os(void) {
    uint64_t seed = 0;
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n;
        do n = read(fd, &seed, sizeof seed);
        while (n < 0 && errno == EINTR);
        close(fd);
        if (n == (ssize_t)sizeof seed) return seed;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return mix((uint64_t)now.tv_nsec ^ mix((uint64_t)now.tv_sec ^ mix((uint64_t)getpid())));
}

static void init_generator(tp_generator *g, tp_device device, uint64_t seed) {
    atomic_init(&g->refcount, 1);
    g->device = device;
    g->seed = seed;
    g->offset = 0;
    g->serial = NULL;
}

tp_generator *tp_generator_new(tp_device device) {
    if (tp_device_resolve(device, &device) < 0) return NULL;
    tp_generator *g = tp_alloc(sizeof *g);
    if (g) init_generator(g, device, TP_DEFAULT_SEED);
    return g;
}

static tp_philox_state state_of(tp_generator *g) {
    tp_lock(TP_LOCK_Generators);
    tp_philox_state state = {g->seed, g->offset};
    tp_unlock(TP_LOCK_Generators);
    return state;
}

/* Draws that are noted come before what is done to the state by hand. Where one fails, its tensors say so. */
static void finish_draws(tp_generator *g) {
    if (g && g->serial && tp_settle_unseen(g->serial->storage) < 0) tp_error_clear();
}

static void set_state_locked(tp_generator *g, tp_philox_state state) {
    g->seed = state.seed;
    g->offset = state.offset;
    if (g->serial) tp_mersenne_seed(tp_data(g->serial), g->seed);
}
static void set_state(tp_generator *g, tp_philox_state state) {
    finish_draws(g);
    tp_lock(TP_LOCK_Generators);
    set_state_locked(g, state);
    tp_unlock(TP_LOCK_Generators);
}

tp_generator *tp_generator_clone(tp_generator *g) {
    tp_generator *clone = tp_generator_new(g->device);
    tp_tensor *from = NULL, *to = NULL;
    if (!clone) return NULL;
    set_state(clone, state_of(g));
    if (tp_generator_serial(g, g->device, &from) < 0 || tp_generator_serial(clone, g->device, &to) < 0) {
        tp_generator_release(clone);
        return NULL;
    }
    if (from) memcpy(tp_data(to), tp_data(from), sizeof(tp_mersenne));
    return clone;
}

void tp_generator_free(tp_generator *g) {
    tp_release(g->serial);
    tp_free(g, sizeof *g);
}

/* ---- serial generators ---- */

void tp_generators_be_serial(bool on) { atomic_store(&serial, on); }

int tp_generator_serial(tp_generator *g, tp_device device, tp_tensor **state) {
    *state = NULL;
    if (!atomic_load_explicit(&serial, memory_order_relaxed) || device.type != TP_DEVICE_CPU) return 0;
    if (!g && !(g = tp_default_generator_borrow(device))) return -1;
    if (!g->serial) {
        tp_at_once_guard guard = tp_at_once(); /* the state has its memory, whoever draws first */
        tp_tensor *made = tp_new_empty(TP_INTS(sizeof(tp_mersenne)), TP_UINT8, TP_CPU);
        if (!made) return -1;
        tp_mersenne_seed(tp_data(made), state_of(g).seed);
        g->serial = made;
    }
    *state = g->serial;
    return tp_tls.later ? 0 : tp_settle_unseen(g->serial->storage); /* a draw that waits comes after those that do */
}

/* ---- default generators ---- */

static tp_generator *make_default(tp_device device, int slot) {
    tp_generator *g = slot == 0 ? &defaults.store[device.type] : tp_alloc(sizeof *g);
    if (g) init_generator(g, device, defaults.seeded ? defaults.seed : seed_from_os());
    return g;
}

tp_generator *tp_default_generator_borrow(tp_device device) {
    if (tp_device_resolve(device, &device) < 0) return NULL;
    int slot = device.index > 0 ? device.index : 0;
    tp_lock(TP_LOCK_Generators);
    tp_generator **made = &defaults.made[device.type][slot];
    if (!*made) *made = make_default(device, slot);
    tp_generator *g = *made;
    tp_unlock(TP_LOCK_Generators);
    return g;
}

void tp_manual_seed(uint64_t seed) {
    finish_draws(defaults.made[TP_DEVICE_CPU][0]);
    tp_lock(TP_LOCK_Generators);
    defaults.seeded = true;
    defaults.seed = seed;
    for (int type = 0; type < TP_NUM_DEVICES; type++)
        for (int slot = 0; slot < MAX_INDEX; slot++)
            if (defaults.made[type][slot]) set_state_locked(defaults.made[type][slot], (tp_philox_state){seed, 0});
    tp_unlock(TP_LOCK_Generators);
}

/* ---- state ---- */

void tp_generator_manual_seed(tp_generator *g, uint64_t seed) { set_state(g, (tp_philox_state){seed, 0}); }

uint64_t tp_generator_seed(tp_generator *g) {
    uint64_t seed = seed_from_os();
    tp_generator_manual_seed(g, seed);
    return seed;
}

uint64_t tp_generator_initial_seed(tp_generator *g) { return state_of(g).seed; }

int tp_generator_reserve(tp_generator *g, uint64_t n, tp_philox_state *out) {
    if (!g) g = tp_default_generator_borrow(TP_CPU);
    if (!g) return -1;
    tp_lock(TP_LOCK_Generators);
    *out = (tp_philox_state){g->seed, g->offset};
    g->offset += n;
    tp_unlock(TP_LOCK_Generators);
    return 0;
}

static void put_u64(uint8_t *bytes, uint64_t v) {
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(v >> (8 * i));
}
static uint64_t get_u64(const uint8_t *bytes) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v |= (uint64_t)bytes[i] << (8 * i);
    return v;
}

void tp_generator_get_state(tp_generator *g, uint8_t bytes[TP_GENERATOR_STATE_BYTES]) {
    tp_philox_state state = state_of(g);
    put_u64(bytes, state.seed);
    put_u64(bytes + 8, state.offset);
}

static int set_serial_state(tp_generator *g, const uint8_t *bytes) {
    tp_mersenne given;
    tp_tensor *state;
    memcpy(&given, bytes, sizeof given);
    if (!tp_mersenne_is_sound(&given)) return tp_fail(TP_RuntimeError, "RNG state is invalid");
    if (tp_generator_serial(g, g->device, &state) < 0) return -1;
    set_state(g, (tp_philox_state){given.seed, 0});
    memcpy(tp_data(state), &given, sizeof given);
    return 0;
}

int tp_generator_set_state(tp_generator *g, const uint8_t *bytes, size_t size) {
    if (size == sizeof(tp_mersenne) && atomic_load(&serial) && g->device.type == TP_DEVICE_CPU)
        return set_serial_state(g, bytes);
    if (size != TP_GENERATOR_STATE_BYTES)
        return tp_fail(TP_RuntimeError, "RNG state is wrong size: expected %d bytes, got %zu", TP_GENERATOR_STATE_BYTES,
                       size);
    set_state(g, (tp_philox_state){get_u64(bytes), get_u64(bytes + 8)});
    return 0;
}
