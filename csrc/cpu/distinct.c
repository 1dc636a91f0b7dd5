/* distinct.c: the primitive distinct on the CPU.
 *
 * Elements are compared by keys (lines.h), longer items lexicographically by the keys of their elements. What is found
 * is a list of groups: where each begins in some order of the items, and for every item its group. */
#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/host.h"
#include "cpu/lines.h"
#include "core/memory.h"

#include <string.h>

#define KEYS_PER_LOOK (1 << 20)

/* n items of `width` keys each. `order` is a permutation of them. */
typedef struct {
    const uint64_t *keys;
    int64_t n, width;
    bool nan_apart; /* no NaN equals another */
} items;

static int compare_items(const items *it, int64_t a, int64_t b) {
    const uint64_t *x = it->keys + a * it->width, *y = it->keys + b * it->width;
    for (int64_t i = 0; i < it->width; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}
static bool same_item(const items *it, int64_t a, int64_t b) {
    const uint64_t *x = it->keys + a * it->width, *y = it->keys + b * it->width;
    for (int64_t i = 0; i < it->width; i++)
        if (x[i] != y[i] || (it->nan_apart && x[i] == TP_NAN_KEY)) return false;
    return true;
}
/* A merge sort of the indices: stable. */
static int sort_items(const items *it, int64_t *order, int64_t *spare, int64_t n) {
    if (n < 2) return 0;
    int64_t half = n / 2, i = 0, j = half, k = 0;
    if (sort_items(it, order, spare, half) < 0 || sort_items(it, order + half, spare, n - half) < 0) return -1;
    if (n >= 1 << 14 && tp_host_look() < 0) return -1;
    while (i < half && j < n) spare[k++] = compare_items(it, order[j], order[i]) < 0 ? order[j++] : order[i++];
    while (i < half) spare[k++] = order[i++];
    while (j < n) spare[k++] = order[j++];
    memcpy(order, spare, (size_t)n * sizeof *order);
    return 0;
}

/* Groups of neighbours in `order`: the first item of each, their sizes, and each item's group. Returns their number, -1
 * when interrupted. */
static int64_t group(const items *it, const int64_t *order, int64_t *first, int64_t *count, int64_t *inverse) {
    int64_t groups = 0;
    for (int64_t i = 0; i < it->n; i++) {
        if (tp_ends_at(i)) return -1;
        if (i == 0 || !same_item(it, order[i], order[i - 1])) first[groups] = order[i], count[groups++] = 0;
        count[groups - 1]++;
        inverse[order[i]] = groups - 1;
    }
    return groups;
}

/* Single elements by radix: neighbours among the sorted entries are compared as they are passed. */
static int64_t group_elements(const tp_tensor *t, int64_t *first, int64_t *count, int64_t *inverse) {
    int64_t n = t->numel, groups = 0;
    size_t bytes = (size_t)n * 2 * sizeof(tp_entry);
    bool nan_apart = tp_is_floating(t);
    tp_entry *e = tp_alloc(bytes);
    if (!e) return tp_fail_memory((int64_t)bytes);
    tp_make_entries(e, t, 0, n, false);
    if (tp_sort_entries(e, e + n, n) < 0) return tp_free(e, bytes), -1;
    for (int64_t i = 0; i < n; i++) {
        if (tp_ends_at(i)) return tp_free(e, bytes), -1;
        bool same = i > 0 && e[i].key == e[i - 1].key && !(nan_apart && e[i].key == TP_NAN_KEY);
        if (!same) first[groups] = e[i].index, count[groups++] = 0;
        count[groups - 1]++;
        inverse[e[i].index] = groups - 1;
    }
    tp_free(e, bytes);
    return groups;
}

/* Single bytes are counted. */
static int64_t group_bytes(const tp_tensor *t, int64_t *first, int64_t *count, int64_t *inverse) {
    const uint8_t *x = tp_data(t), sign = t->dtype == TP_INT8 ? 0x80 : 0;
    int64_t seen[256] = {0}, where[256], number[256], n = t->numel, groups = 0;
    for (int64_t i = 0; i < n; i++) {
        if (tp_ends_at(i)) return -1;
        if (!seen[x[i] ^ sign]++) where[x[i] ^ sign] = i;
    }
    for (int b = 0; b < 256; b++) {
        if (!seen[b]) continue;
        first[groups] = where[b], count[groups] = seen[b];
        number[b] = groups++;
    }
    for (int64_t i = 0; i < n; i++) inverse[i] = number[x[i] ^ sign];
    return groups;
}

/* Items of several elements, or neighbours. */
static int64_t group_items(const tp_tensor *t, bool sorted, int64_t *first, int64_t *count, int64_t *inverse) {
    int64_t n = t->sizes[0];
    tp_autoref *keys = tp_new_empty(TP_INTS(t->numel), TP_INT64, TP_CPU),
               *order = keys ? tp_new_empty(TP_INTS(n, 2), TP_INT64, TP_CPU) : NULL;
    if (!order) return -1;
    for (int64_t i = 0, m; i < t->numel; i += m) {
        m = t->numel - i < KEYS_PER_LOOK ? t->numel - i : KEYS_PER_LOOK;
        tp_make_keys((uint64_t *)tp_data(keys) + i, t, i, m, false);
        if (tp_host_look() < 0) return -1;
    }
    items it = {tp_data(keys), n, t->numel / n, tp_is_floating(t)};
    int64_t *o = tp_data(order);
    for (int64_t i = 0; i < n; i++) {
        if (tp_ends_at(i)) return -1;
        o[i] = i;
    }
    if (sorted && sort_items(&it, o, o + n, n) < 0) return -1;
    return group(&it, o, first, count, inverse);
}

/* The first n of a line of int64: of its memory where that is little more, else new. */
static tp_tensor *head(tp_tensor *line, int64_t n) {
    if (2 * n > line->numel) return tp_new_alias(line, TP_INTS(n), TP_INTS(1), line->byte_offset);
    tp_tensor *made = tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU);
    if (made && n) memcpy(tp_data(made), tp_data(line), (size_t)n * sizeof(int64_t));
    return made;
}

tp_tensor3 distinct_cpu(tp_tensor *items_, bool sorted) {
    const tp_tensor3 failed = {{NULL, NULL, NULL}};
    int64_t n = items_->sizes[0];
    tp_autoref *firsts = tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU),
               *counts = firsts ? tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU) : NULL,
               *inverse = counts ? tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU) : NULL;
    if (!inverse) return failed;
    bool single = items_->numel == n;
    int64_t *first = tp_data(firsts), *count = tp_data(counts), *all = tp_data(inverse);
    int64_t groups = !single || !sorted                          ? group_items(items_, sorted, first, count, all)
                     : tp_itemsize((tp_dtype)items_->dtype) == 1 ? group_bytes(items_, first, count, all)
                                                                 : group_elements(items_, first, count, all);
    if (groups < 0) return failed;
    tp_autoref *places = head(firsts, groups), *sizes = places ? head(counts, groups) : NULL;
    return sizes ? (tp_tensor3){{tp_take(places), tp_take(sizes), tp_take(inverse)}} : failed;
}
