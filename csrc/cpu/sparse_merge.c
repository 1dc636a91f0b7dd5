/* sparse_merge.c: numbers of places in order, and each once: prim sparse.merge on the CPU.
 *
 * Keys and the places that they stand at share a word of 64 bits, which is sorted by radix from the key's lowest digit
 * on; a pass keeps words of one digit in their order, so equal keys stay in theirs. What a key has above the word is
 * sorted by afterwards. The words are cut in parts, which threads share: a part's digits are counted, and it knows
 * where each of its words goes. */
#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/host.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "prim/fault.h"

#include <string.h>

#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)
#define PARTS 8
#define PART_OF(n, i) ((n) / PARTS * (i) + ((n) % PARTS < (i) ? (n) % PARTS : (i))) /* where part i begins */

typedef struct {
    const int64_t *keys;
    int64_t n, bound;
    int place_bits, shift;
    bool wide; /* keys have more bits than a word has room for */
    uint64_t *from, *to;
    int64_t counts[PARTS][DIGITS];
    int64_t groups[PARTS + 1]; /* how many keys first stand in each part; then in those before it */
    _Atomic int64_t bad;       /* the place of a key out of range, or -1 */
    int64_t *once, *begins, *order;
} merging;

static void pack(int64_t begin, int64_t end, void *context) {
    merging *m = context;
    for (int64_t part = begin; part < end; part++)
        for (int64_t i = PART_OF(m->n, part); i < PART_OF(m->n, part + 1); i++) {
            if ((uint64_t)m->keys[i] >= (uint64_t)m->bound) m->bad = i;
            m->from[i] = (uint64_t)m->keys[i] << m->place_bits | (uint64_t)i;
        }
}

#define PLACE(m, i) ((m)->from[i] & ((UINT64_C(1) << (m)->place_bits) - 1))

/* What a key has above the word stands in the key's room. */
static void pack_above(int64_t begin, int64_t end, void *context) {
    merging *m = context;
    for (int64_t part = begin; part < end; part++)
        for (int64_t i = PART_OF(m->n, part); i < PART_OF(m->n, part + 1); i++) {
            uint64_t place = PLACE(m, i);
            m->from[i] = (uint64_t)m->keys[place] >> (64 - m->place_bits) << m->place_bits | place;
        }
}

static void count(int64_t begin, int64_t end, void *context) {
    merging *m = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t *counts = m->counts[part];
        memset(counts, 0, sizeof m->counts[part]);
        for (int64_t i = PART_OF(m->n, part); i < PART_OF(m->n, part + 1); i++)
            counts[m->from[i] >> m->shift & (DIGITS - 1)]++;
    }
}

static void spread(int64_t begin, int64_t end, void *context) {
    merging *m = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t *at = m->counts[part];
        for (int64_t i = PART_OF(m->n, part); i < PART_OF(m->n, part + 1); i++)
            m->to[at[m->from[i] >> m->shift & (DIGITS - 1)]++] = m->from[i];
    }
}

/* Counts become places; false if all words have one digit. */
static bool place_digits(merging *m) {
    int64_t sum = 0;
    for (int d = 0; d < DIGITS; d++) {
        int64_t before = sum;
        for (int part = 0; part < PARTS; part++) {
            int64_t here = m->counts[part][d];
            m->counts[part][d] = sum;
            sum += here;
        }
        if (sum - before == m->n) return false;
    }
    return true;
}

static int each_part(merging *m, tp_range_fn fn) {
    if (tp_host_look() < 0) return -1;
    return tp_parallel_unlocked(m->n > TP_GRAIN, PARTS, m->n > TP_GRAIN ? 1 : PARTS, fn, m);
}

static int sort(merging *m, int key_bits) {
    for (m->shift = m->place_bits; m->shift < m->place_bits + key_bits; m->shift += DIGIT_BITS) {
        if (each_part(m, count) < 0) return -1;
        if (!place_digits(m)) continue;
        if (each_part(m, spread) < 0) return -1;
        uint64_t *other = m->from;
        m->from = m->to, m->to = other;
    }
    return 0;
}

#define KEY(m, i) ((m)->wide ? (uint64_t)(m)->keys[PLACE(m, i)] : (m)->from[i] >> (m)->place_bits)
#define IS_FIRST(m, i) ((i) == 0 || KEY(m, i) != KEY(m, (i) - 1))

static void count_groups(int64_t begin, int64_t end, void *context) {
    merging *m = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t found = 0;
        for (int64_t i = PART_OF(m->n, part); i < PART_OF(m->n, part + 1); i++) found += IS_FIRST(m, i);
        m->groups[part + 1] = found;
    }
}

static void write_groups(int64_t begin, int64_t end, void *context) {
    merging *m = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t at = m->groups[part];
        for (int64_t i = PART_OF(m->n, part); i < PART_OF(m->n, part + 1); i++) {
            m->order[i] = (int64_t)PLACE(m, i);
            if (IS_FIRST(m, i)) m->once[at] = (int64_t)KEY(m, i), m->begins[at++] = i;
        }
    }
}

static int bits_of(int64_t numbers) { return numbers > 1 ? 64 - __builtin_clzll((uint64_t)numbers - 1) : 0; }

static int merge(merging *m, int key_bits, int64_t fault) {
    if (each_part(m, pack) < 0) return -1;
    if (m->bad >= 0) return tp_raise_fault((int)fault, m->keys[m->bad], 0, m->bound, "");
    const int room = 64 - m->place_bits;
    m->wide = key_bits > room;
    if (sort(m, m->wide ? room : key_bits) < 0) return -1;
    if (m->wide && (each_part(m, pack_above) < 0 || sort(m, key_bits - room) < 0)) return -1;
    if (each_part(m, count_groups) < 0) return -1;
    for (int part = 0; part < PARTS; part++) m->groups[part + 1] += m->groups[part];
    return 0;
}

static tp_tensor3 results(merging *m) {
    const tp_tensor3 failed = {{NULL, NULL, NULL}};
    int64_t groups = m->groups[PARTS];
    tp_autoref *once = tp_new_empty(TP_INTS(groups), TP_INT64, TP_CPU),
               *begins = once ? tp_new_empty(TP_INTS(groups + 1), TP_INT64, TP_CPU) : NULL,
               *order = begins ? tp_new_empty(TP_INTS(m->n), TP_INT64, TP_CPU) : NULL;
    if (!order) return failed;
    m->once = tp_data(once), m->begins = tp_data(begins), m->order = tp_data(order);
    if (each_part(m, write_groups) < 0) return failed;
    m->begins[groups] = m->n;
    return (tp_tensor3){{tp_take(once), tp_take(begins), tp_take(order)}};
}

/* sparse.merge(Tensor keys, int bound, int fault) -> (Tensor once, Tensor begins, Tensor order) */
tp_tensor3 sparse_merge_cpu(tp_tensor *keys, int64_t bound, int64_t fault) {
    tp_tensor3 made = {{NULL, NULL, NULL}};
    const int64_t n = keys->numel;
    size_t bytes = (size_t)n * 2 * sizeof(uint64_t);
    uint64_t *words = tp_alloc(bytes);
    merging *m = words ? tp_alloc(sizeof *m) : NULL;
    if (m) {
        *m = (merging){.keys = tp_data(keys), .n = n, .bound = bound, .place_bits = bits_of(n), .bad = -1};
        m->from = words, m->to = words + n;
        if (merge(m, bits_of(bound), fault) == 0) made = results(m);
    } else tp_fail_memory((int64_t)bytes);
    tp_free(m, sizeof *m);
    tp_free(words, bytes);
    return made;
}
