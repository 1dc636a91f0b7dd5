/* plan.c: see plan.h. */
#include "opencl/runtime/plan.h"

#include <string.h>

#define SETS 1024
#define WAYS 4 /* places for a plan */
#define WORDS (TP_CL_VARIANT / sizeof(uint64_t))

typedef struct {
    const tp_cl_device *device;
    const tp_cl_family *family;
    const char *kernel;
    uint64_t variant[WORDS]; /* with zeros after it */
} plan_key;

typedef struct {
    uint64_t hash;
    plan_key key;
    tp_cl_built *kernel;
    int64_t used; /* when: the number of the call */
} plan;

static plan sets[SETS][WAYS];
static tp_cl_plan_stats stats;

tp_cl_plan_stats tp_cl_plans(void) {
    tp_lock(TP_LOCK_ClPlans);
    tp_cl_plan_stats now = stats;
    tp_unlock(TP_LOCK_ClPlans);
    return now;
}

static uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static uint64_t hash_key(const plan_key *k) {
    uint64_t h = mix(mix((uintptr_t)k->device, (uintptr_t)k->family), (uintptr_t)k->kernel);
    for (size_t i = 0; i < (k->family->size + 7) / 8; i++) h = mix(h, k->variant[i]);
    return h;
}

static tp_cl_built *build(tp_cl_device *d, const tp_cl_family *family, const char *kernel, const void *variant) {
    if (family->make) return family->make(d, kernel, variant);
    tp_autotext s = {0};
    tp_text_add(&s, "%s", ""); /* what defines nothing is a text, too */
    family->define(&s, d, variant);
    if (!s.text) return tp_fail_memory(1), NULL;
    return tp_cl_file_kernel(d, family->file, kernel, s.text);
}

static plan *find(plan *set, uint64_t hash, const plan_key *key) {
    for (plan *p = set; p < set + WAYS; p++)
        if (p->hash == hash && memcmp(&p->key, key, sizeof *key) == 0) return p;
    return NULL;
}

static plan *oldest(plan *set) {
    plan *found = set;
    for (plan *p = set; p < set + WAYS; p++)
        if (p->used < found->used) found = p;
    return found;
}

/* Another thread may have kept the same plan meanwhile. */
static void keep(uint64_t hash, const plan_key *key, tp_cl_built *built) {
    tp_lock(TP_LOCK_ClPlans);
    plan *set = sets[hash % SETS];
    if (!find(set, hash, key)) *oldest(set) = (plan){hash, *key, built, stats.hits + stats.misses};
    tp_unlock(TP_LOCK_ClPlans);
}

tp_cl_built *tp_cl_plan(tp_cl_device *d, const tp_cl_family *family, const char *kernel, const void *variant) {
    plan_key key = {d, family, kernel, {0}};
    memcpy(key.variant, variant, family->size);
    uint64_t hash = hash_key(&key);
    tp_lock(TP_LOCK_ClPlans);
    plan *p = find(sets[hash % SETS], hash, &key);
    tp_cl_built *built = p ? p->kernel : NULL;
    p ? stats.hits++ : stats.misses++;
    if (p) p->used = stats.hits + stats.misses;
    tp_unlock(TP_LOCK_ClPlans);
    if (built || !(built = build(d, family, kernel, variant))) return built;
    keep(hash, &key, built);
    return built;
}
