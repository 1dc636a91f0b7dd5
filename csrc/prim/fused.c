/* fused.c: see fused.h. */
#include "prim/fused.h"

#include "core/lock.h"
#include "iter/dims.h"

#include <stdlib.h>
#include <string.h>

tp_fusion_settings tp_fusion;
__thread tp_fused_times *tp_fused_timed;

/* ---- programs ---- */

typedef struct kept {
    struct kept *next; /* of the same hash */
    int64_t number;
    uint64_t hash;
    tp_fused program; /* with room for its own calls only */
} kept;

#define BUCKETS 1024
#define PER_SEGMENT 1024
#define SEGMENTS 1024
static kept *buckets[BUCKETS];    /* written under the lock Operators, */
static kept **segments[SEGMENTS]; /* this and its segments too, and read without: by number */
static int64_t count;

static size_t bytes_of(const tp_fused *f) { return offsetof(tp_fused, calls) + f->ncalls * sizeof *f->calls; }

static uint64_t hash_of(const tp_fused *f) {
    const unsigned char *p = (const unsigned char *)f;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0, n = bytes_of(f); i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, p + i, n - i < 8 ? n - i : 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

static kept *find(const tp_fused *f, uint64_t hash) {
    kept *k = __atomic_load_n(&buckets[hash % BUCKETS], __ATOMIC_ACQUIRE);
    while (k && (k->hash != hash || memcmp(&k->program, f, bytes_of(f)) != 0)) k = k->next;
    return k;
}

static int64_t keep(const tp_fused *f, uint64_t hash) {
    if (count == (int64_t)PER_SEGMENT * SEGMENTS) return tp_fail(TP_RuntimeError, "prim::fused.map: too many programs");
    kept **segment = segments[count / PER_SEGMENT];
    if (!segment) segment = calloc(PER_SEGMENT, sizeof *segment);
    kept *k = segment ? malloc(offsetof(kept, program) + bytes_of(f)) : NULL;
    if (segment) __atomic_store_n(&segments[count / PER_SEGMENT], segment, __ATOMIC_RELEASE);
    if (!k) return tp_fail_memory((int64_t)bytes_of(f));
    k->next = buckets[hash % BUCKETS];
    k->number = count;
    k->hash = hash;
    memcpy(&k->program, f, bytes_of(f));
    segment[count % PER_SEGMENT] = k;
    __atomic_store_n(&buckets[hash % BUCKETS], k, __ATOMIC_RELEASE);
    __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
    return k->number;
}

int64_t tp_fused_intern(const tp_fused *f) {
    uint64_t hash = hash_of(f);
    const kept *k = find(f, hash);
    if (k) return k->number;
    tp_lock(TP_LOCK_Operators);
    k = find(f, hash);
    int64_t number = k ? k->number : keep(f, hash);
    tp_unlock(TP_LOCK_Operators);
    return number;
}

const tp_fused *tp_fused_at(int64_t number) {
    if (number < 0 || number >= __atomic_load_n(&count, __ATOMIC_ACQUIRE)) return NULL;
    return &segments[number / PER_SEGMENT][number % PER_SEGMENT]->program;
}

/* ---- walks ---- */

static bool lies_alike(const tp_tensor *a, const tp_tensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] != b->sizes[i] || (a->sizes[i] > 1 && a->strides[i] != b->strides[i])) return false;
    return tp_is_dense(a);
}

bool tp_fused_walk_of(const tp_tensor *input, const tp_tensor *out, tp_fused_walk *walk) {
    *walk = (tp_fused_walk){1, out->numel};
    if (lies_alike(input, out)) return true;
    if (!tp_is_contiguous(input) || input->ndim > out->ndim) return false;
    *walk = (tp_fused_walk){1, input->numel};
    if (input->numel == 1) return true;
    if (!tp_is_contiguous(out)) return false;
    /* From the last dimension on: those that the input lacks, those that it has, and again those that it lacks. */
    int i = input->ndim - 1, shift = out->ndim - input->ndim;
    for (; i >= 0 && input->sizes[i] == 1; i--) walk->run *= out->sizes[i + shift];
    for (; i >= 0 && input->sizes[i] == out->sizes[i + shift]; i--) {
    }
    for (; i >= 0; i--)
        if (input->sizes[i] != 1) return false;
    return true;
}

bool tp_fused_lines_of(const tp_tensor *input, const tp_tensor *out, tp_fused_lines *lines) {
    tp_dims d;
    int shift = out->ndim - input->ndim;
    if (shift < 0 || !tp_is_contiguous(out)) return false;
    d.n = 0;
    for (int i = out->ndim - 1; i >= 0; i--) {
        int64_t size = out->sizes[i], own = i < shift ? 1 : input->sizes[i - shift];
        if (own != size && own != 1) return false;
        if (size != 1) tp_dims_add(&d, size, out->strides[i], own == 1 ? 0 : input->strides[i - shift]);
    }
    tp_dims_merge(&d);
    if (d.n > TP_FUSED_DIMS || d.size[0] < TP_FUSED_SHORTEST || (d.out[0] != 0 && d.out[0] != 1)) return false;
    lines->ndim = d.n;
    memcpy(lines->sizes, d.size, sizeof *d.size * (size_t)d.n);
    memcpy(lines->strides, d.out, sizeof *d.out * (size_t)d.n);
    return true;
}
