/* reducer.c: see reducer.h. */
#include "distributed/reducer.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    tp_tensor *flat; /* owned */
    tp_work *work;   /* under way, or NULL */
    int parts, missing;
} bucket;

struct tp_reducer {
    int *bucket_of;
    bool *there;
    bucket *buckets;
    int parts, count, next;
};

tp_reducer *tp_reducer_new(int parts) {
    tp_reducer *r = calloc(1, sizeof *r);
    if (!r) return tp_fail_memory(sizeof *r), NULL;
    r->parts = parts;
    r->bucket_of = calloc((size_t)parts + 1, sizeof *r->bucket_of);
    r->there = calloc((size_t)parts + 1, sizeof *r->there);
    if (r->bucket_of && r->there) return r;
    tp_reducer_free(r);
    return tp_fail_memory(parts), NULL;
}

static void free_buckets(tp_reducer *r) {
    for (int b = 0; b < r->count; b++) {
        if (r->buckets[b].work) tp_work_free(r->buckets[b].work);
        tp_release(r->buckets[b].flat);
    }
    free(r->buckets);
    r->buckets = NULL;
    r->count = 0;
}

void tp_reducer_free(tp_reducer *r) {
    free_buckets(r);
    free(r->bucket_of);
    free(r->there);
    free(r);
}

int tp_reducer_lay_out(tp_reducer *r, const int *bucket_of, tp_tensor *const *flat, int buckets) {
    bucket *made = calloc((size_t)buckets + 1, sizeof *made);
    if (!made) return tp_fail_memory(buckets);
    free_buckets(r);
    r->buckets = made;
    r->count = buckets;
    for (int b = 0; b < buckets; b++) made[b].flat = tp_retain(flat[b]);
    memcpy(r->bucket_of, bucket_of, sizeof *bucket_of * (size_t)r->parts);
    for (int i = 0; i < r->parts; i++) made[bucket_of[i]].parts++;
    tp_reducer_begin(r);
    return 0;
}

/* A message of a round that was given up goes on by itself. */
void tp_reducer_begin(tp_reducer *r) {
    memset(r->there, 0, (size_t)r->parts * sizeof *r->there);
    r->next = 0;
    for (int b = 0; b < r->count; b++) {
        r->buckets[b].missing = r->buckets[b].parts;
        if (r->buckets[b].work) tp_work_free(tp_take(r->buckets[b].work));
    }
}

bool tp_reducer_add(tp_reducer *r, int part) {
    if (r->there[part]) return false;
    r->there[part] = true;
    r->buckets[r->bucket_of[part]].missing--;
    return true;
}

bool tp_reducer_has(const tp_reducer *r, int part) { return r->there[part]; }

int tp_reducer_next(tp_reducer *r) { return r->next < r->count && r->buckets[r->next].missing == 0 ? r->next++ : -1; }

bool tp_reducer_all_begun(const tp_reducer *r) { return r->next == r->count; }

int tp_reducer_send(tp_reducer *r, int number, int group) {
    bucket *b = &r->buckets[number];
    tp_sweep();
    tp_message m = {.kind = TP_MSG_all_reduce,
                    .recv = tp_data(b->flat),
                    .count = b->flat->numel,
                    .dtype = tp_dtype_of(b->flat),
                    .op = TP_OP_SUM};
    b->work = tp_work_begin(group, "all_reduce", &m, NULL, b->flat->storage, false);
    return b->work ? 0 : -1;
}

int tp_reducer_wait(tp_reducer *r, int number, double seconds) {
    tp_work *w = tp_take(r->buckets[number].work);
    if (!w) return 0;
    int status = tp_work_wait(w, seconds);
    tp_work_free(w);
    return status;
}
