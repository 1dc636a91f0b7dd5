/* autocast.c: state, eligibility and the cast cache. A thread owns its state, which goes when the thread ends. */
#include "autocast/autocast.h"

#include "Functions.h"
#include "autograd/node.h"

#include <stdlib.h>

typedef struct cached {
    tp_tensor *leaf; /* owned, so that its address is not used again */
    tp_tensor *cast; /* owned */
    uint32_t version;
    bool recorded; /* made while gradients were recorded */
    struct cached *next;
} cached;

typedef struct tp_autocast_state {
    tp_dtype dtype[TP_NUM_DEVICES];
    bool cache_disabled;
    int depth;
    cached *cache;
} tp_autocast_state;

static tp_autocast_state *state(void) {
    if (tp_tls.autocast) return tp_tls.autocast;
    tp_autocast_state *s = tp_thread_register() ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        tp_fail_memory(sizeof *s);
        return NULL;
    }
    for (int i = 0; i < TP_NUM_DEVICES; i++) s->dtype[i] = i == TP_DEVICE_CPU ? TP_BFLOAT16 : TP_FLOAT16;
    return tp_tls.autocast = s;
}

bool tp_autocast_enabled(int device_type) { return !(tp_excluded_keys() >> tp_autocast_key(device_type) & 1); }

void tp_autocast_set_enabled(int device_type, bool enabled) {
    tp_keyset bit = (tp_keyset)1 << tp_autocast_key(device_type);
    tp_keyset excluded = enabled ? tp_excluded_keys() & ~bit : tp_excluded_keys() | bit;
    tp_tls.exclude = excluded ^ TP_DEFAULT_EXCLUDED;
}

tp_dtype tp_autocast_dtype(int device_type) {
    if (!tp_tls.autocast) return device_type == TP_DEVICE_CPU ? TP_BFLOAT16 : TP_FLOAT16;
    return tp_tls.autocast->dtype[device_type];
}

int tp_autocast_set_dtype(int device_type, tp_dtype dtype) {
    if (!tp_is_half_dtype(dtype) && dtype != TP_FLOAT32)
        return tp_fail(TP_RuntimeError, "autocast: the dtype must be bfloat16, float16 or float32, not %s",
                       tp_dtype_names[dtype]);
    if (!state()) return -1;
    tp_tls.autocast->dtype[device_type] = dtype;
    return 0;
}

bool tp_autocast_cache_enabled(void) { return !tp_tls.autocast || !tp_tls.autocast->cache_disabled; }
void tp_autocast_set_cache_enabled(bool enabled) {
    if (state()) tp_tls.autocast->cache_disabled = !enabled;
}

int tp_autocast_enter(void) { return state() ? ++tp_tls.autocast->depth : -1; }

int tp_autocast_leave(void) {
    if (!tp_tls.autocast) return 0;
    if (--tp_tls.autocast->depth == 0) tp_autocast_clear_cache();
    return tp_tls.autocast->depth;
}

bool tp_autocast_remembers(void) {
    return tp_tls.autocast && tp_tls.autocast->depth > 0 && !tp_tls.autocast->cache_disabled;
}

static void free_cached(cached *c) {
    tp_release(c->leaf);
    tp_release(c->cast);
    free(c);
}

void tp_autocast_clear_cache(void) {
    if (!tp_tls.autocast) return;
    cached *c = tp_take(tp_tls.autocast->cache);
    while (c) {
        cached *next = c->next;
        free_cached(c);
        c = next;
    }
}

static void end_of_thread(void) {
    tp_autocast_clear_cache();
    free(tp_take(tp_tls.autocast));
}
__attribute__((constructor)) static void install(void) { tp_thread_at_end(end_of_thread); }

/* ---- casts ---- */

int tp_autocast_device(tp_keyset ks) { return (int)tp_highest_key(ks & TP_AUTOCAST_KEYS) - TP_KEY_AutocastCPU; }

bool tp_autocast_takes(const tp_tensor *t, int device_type) {
    return (t->keys >> tp_autocast_key(device_type) & 1) && tp_is_floating(t) && t->dtype != TP_FLOAT64;
}

static bool is_cacheable(const tp_tensor *t, tp_dtype to) {
    return tp_is_half_dtype(to) && t->dtype == TP_FLOAT32 && tp_requires_grad(t) && tp_is_leaf(t) && !t->base &&
           tp_autocast_remembers();
}

/* The kept cast of a leaf, if it still stands; a stale one is taken out. */
static tp_tensor *find_cast(const tp_tensor *t, tp_dtype to) {
    for (cached **at = &tp_tls.autocast->cache; *at; at = &(*at)->next) {
        cached *c = *at;
        if (c->leaf != t || (tp_dtype)c->cast->dtype != to) continue;
        if (c->version == tp_version(t) && c->recorded == tp_grad_enabled()) return tp_retain(c->cast);
        *at = c->next;
        free_cached(c);
        return NULL;
    }
    return NULL;
}

static void keep_cast(tp_tensor *t, tp_tensor *cast) {
    cached *c = malloc(sizeof *c);
    if (!c) return; /* a cache may forget */
    *c = (cached){tp_retain(t), tp_retain(cast), tp_version(t), tp_grad_enabled(), tp_tls.autocast->cache};
    tp_tls.autocast->cache = c;
}

tp_tensor *tp_cached_cast(tp_tensor *t, tp_dtype to, int device_type) {
    if (!t || !tp_autocast_takes(t, device_type) || (tp_dtype)t->dtype == to) return tp_retain(t);
    bool cacheable = is_cacheable(t, to);
    tp_tensor *cast = cacheable ? find_cast(t, to) : NULL;
    if (cast) return cast;
    cast = tp_to_dtype(t, to, false, false, TP_NO_FORMAT);
    if (cast && cacheable) keep_cast(t, cast);
    return cast;
}

tp_tensor_seq *tp_cached_cast_list(tp_tensors list, tp_dtype to, int device_type) {
    tp_autoseq *seq = tp_tensor_seq_new(list.size > 0 ? list.size : 0);
    for (int64_t i = 0; seq && i < list.size; i++) {
        seq->items[i] = tp_cached_cast(list.data[i], to, device_type);
        if (!seq->items[i] && list.data[i]) return NULL;
    }
    return tp_take(seq);
}

tp_dtype tp_autocast_promote(tp_dtype to, const tp_tensor *t, int device_type) {
    if (!t || !tp_is_floating(t)) return to;
    if (t->dtype == TP_FLOAT64) return TP_FLOAT64;
    return tp_autocast_takes(t, device_type) && t->dtype == TP_FLOAT32 && to != TP_FLOAT64 ? TP_FLOAT32 : to;
}

tp_dtype tp_autocast_promote_list(tp_dtype to, tp_tensors list, int device_type) {
    for (int64_t i = 0; i < list.size; i++) to = tp_autocast_promote(to, list.data[i], device_type);
    return to;
}
