/* sort_lines.c: the primitive sort.
 *
 * Values alone are sorted as words of their own width. With the places too, elements of up to 32 bits share words of 64
 * with them: the order is that of keys (lines.h), in which zeros are equal, so the values are fetched by place. Wider
 * keys do so as far as they fit; those that are cut to equal words are put in order afterwards, and where these are
 * many, the line's elements become entries. Threads share the lines. */
#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/host.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "cpu/lines.h"
#include "core/memory.h"

#define PIECE 256 /* elements whose keys are made at once */

typedef struct {
    const tp_tensor *lines;
    int64_t n, itemsize;
    bool descending;
    char *values;   /* or NULL */
    int64_t *order; /* or NULL */
    _Atomic bool failed;
} sort_run;

static const void *line_at(const sort_run *r, int64_t line) {
    return (const char *)tp_data(r->lines) + line * r->n * r->itemsize;
}

/* ---- values alone ---- */

static void sort_values(const sort_run *r, int64_t line, int64_t count, void *words, void *spare) {
    tp_cpu.sort->to_words[r->lines->dtype](line_at(r, line), r->n * count, r->descending, words);
    int status = r->itemsize <= 4 ? tp_cpu.sort->lines_32(words, spare, r->n, count, 0)
                                  : tp_cpu.sort->lines_64(words, spare, r->n, count, 0);
    if (status < 0) return;
    void *to = r->values + line * r->n * r->itemsize;
    tp_cpu.sort->from_words[r->lines->dtype](words, r->n * count, r->descending, to);
}

/* ---- places ---- */

/* Keys of 32 bits above the places, so that no two words are equal, and any way to sort them is stable. */
static int make_words(const sort_run *r, int64_t line, int64_t *words) {
    uint64_t keys[PIECE];
    for (int64_t i = 0; i < r->n; i += PIECE) {
        if (tp_ends_at(i)) return -1;
        int64_t m = r->n - i < PIECE ? r->n - i : PIECE;
        tp_make_keys(keys, r->lines, line * r->n + i, m, r->descending);
        for (int64_t k = 0; k < m; k++)
            words[i + k] = (int64_t)((keys[k] << 32 | (uint64_t)(i + k)) ^ UINT64_C(1) << 63);
    }
    return 0;
}

static int sort_words(const sort_run *r, int64_t line, int64_t count, int64_t *words, void *spare, int64_t *order) {
    for (int64_t k = 0; k < count; k++)
        if (make_words(r, line + k, words + k * r->n) < 0) return -1;
    if (tp_cpu.sort->lines_64(words, spare, r->n, count, 32) < 0) return -1;
    for (int64_t i = 0; i < count * r->n; i++) order[i] = words[i] & UINT32_MAX;
    return 0;
}

/* ---- places of wide keys ---- */

#define FEW 32 /* words of equal keys, as far as they fit, that are put in order one by one */

static int bits_of(uint64_t x) { return x ? 64 - __builtin_clzll(x) : 0; }

/* Keys from the smallest on, without the `cut` lowest bits, above the places. */
static void pack(const uint64_t *keys, int64_t n, int place_bits, int64_t *words, int *cut) {
    uint64_t low = UINT64_MAX, high = 0;
    for (int64_t i = 0; i < n; i++) {
        low = keys[i] < low ? keys[i] : low;
        high = keys[i] > high ? keys[i] : high;
    }
    int over = bits_of(high - low) + place_bits - 64;
    *cut = over > 0 ? over : 0;
    for (int64_t i = 0; i < n; i++)
        words[i] = (int64_t)(((keys[i] - low) >> *cut << place_bits | (uint64_t)i) ^ UINT64_C(1) << 63);
}

/* Puts places in order whose words differ in the place alone; false: there are too many. */
static bool order_equal(const uint64_t *keys, const int64_t *words, int64_t n, int place_bits, int64_t *order) {
    for (int64_t start = 0, i = 1; i < n; i++) {
        if (words[i] >> place_bits != words[start] >> place_bits) {
            start = i;
            continue;
        }
        if (i - start >= FEW) return false;
        const int64_t place = order[i];
        int64_t at = i;
        for (; at > start && keys[order[at - 1]] > keys[place]; at--) order[at] = order[at - 1];
        order[at] = place;
    }
    return true;
}

static int sort_entries(const sort_run *r, int64_t line, tp_entry *e, int64_t *order) {
    tp_make_entries(e, r->lines, line * r->n, r->n, r->descending);
    if (tp_sort_entries(e, e + r->n, r->n) < 0) return -1;
    for (int64_t i = 0; i < r->n; i++) order[i] = e[i].index;
    return 0;
}

static int sort_wide(const sort_run *r, int64_t line, int64_t count, void *room, int64_t *order) {
    const int64_t n = r->n;
    const int place_bits = bits_of((uint64_t)n - 1);
    uint64_t *keys = room;
    int64_t *words = (int64_t *)(keys + n * count), *spare = words + n * count;
    int cut[TP_SORT_ROW];
    for (int64_t k = 0; k < count; k++) {
        for (int64_t i = 0; i < n; i += PIECE) {
            if (tp_ends_at(i)) return -1;
            tp_make_keys(keys + k * n + i, r->lines, (line + k) * n + i, n - i < PIECE ? n - i : PIECE, r->descending);
        }
        pack(keys + k * n, n, place_bits, words + k * n, &cut[k]);
    }
    if (tp_cpu.sort->lines_64(words, spare, n, count, place_bits) < 0) return -1;
    for (int64_t i = 0; i < count * n; i++) order[i] = words[i] & (((int64_t)1 << place_bits) - 1);
    bool many = false;
    for (int64_t k = 0; k < count; k++)
        many |= cut[k] && !order_equal(keys + k * n, words + k * n, n, place_bits, order + k * n);
    for (int64_t k = 0; many && k < count; k++)
        if (sort_entries(r, line + k, room, order + k * n) < 0) return -1;
    return 0;
}

#define FETCH(bytes, T)                                                                \
    case bytes:                                                                        \
        for (int64_t i = 0; i < r->n; i++) ((T *)to)[i] = ((const T *)from)[order[i]]; \
        return;
static void fetch_values(const sort_run *r, int64_t line, const int64_t *order) {
    const void *from = line_at(r, line);
    void *to = r->values + line * r->n * r->itemsize;
    switch (r->itemsize) {
        FETCH(1, uint8_t)
        FETCH(2, uint16_t)
        FETCH(4, uint32_t)
        FETCH(8, uint64_t)
    }
}

/* After an interrupt the places are not there, and nothing is fetched by them. */
static void sort_places(const sort_run *r, int64_t line, int64_t count, void *words, void *spare) {
    int64_t *order = r->order + line * r->n;
    int status = 0;
    if (r->itemsize <= 4 && r->n <= UINT32_MAX) status = sort_words(r, line, count, words, spare, order);
    else status = sort_wide(r, line, count, words, order);
    for (int64_t k = 0; status == 0 && r->values && k < count; k++) fetch_values(r, line + k, order + k * r->n);
}

/* ---- all lines ---- */

static void sort_some(int64_t begin, int64_t end, void *context) {
    sort_run *r = context;
    size_t word = r->order ? 8 : r->itemsize <= 4 ? 4 : 8;
    int64_t together = r->n <= TP_SORT_SHORT ? TP_SORT_ROW / (int64_t)word : 1;
    size_t half =
        (size_t)(r->n * together) * (r->order && (together == 1 || r->itemsize > 4) ? sizeof(tp_entry) : word);
    char *room = tp_alloc(2 * half);
    if (!room) r->failed = true;
    for (int64_t line = begin; room && line < end; line += together) {
        int64_t count = end - line < together ? end - line : together;
        if (r->order) sort_places(r, line, count, room, room + half);
        else sort_values(r, line, count, room, room + half);
    }
    tp_free(room, 2 * half);
}

/* sort(Tensor lines, bool descending, *, Tensor(a!)? values, Tensor(b!)? order) -> () */
int sort_cpu(tp_tensor *lines, bool descending, tp_tensor *values, tp_tensor *order) {
    int64_t n = lines->ndim ? lines->sizes[lines->ndim - 1] : 1;
    sort_run r = {.lines = lines, .n = n, .itemsize = tp_itemsize((tp_dtype)lines->dtype), .descending = descending};
    if (values) r.values = tp_data(values);
    if (order) r.order = tp_data(order);
    int64_t grain = TP_GRAIN / 16 / n + 1;
    int status = tp_parallel_unlocked(lines->numel >= TP_GRAIN, lines->numel / n,
                                      grain < TP_SORT_ROW / 4 ? TP_SORT_ROW / 4 : grain, sort_some, &r);
    if (status < 0) return -1;
    return r.failed ? tp_fail_memory(n * 2 * (int64_t)sizeof(tp_entry)) : 0;
}
