/* lines.c: see lines.h. Entries are sorted by insertion or by radix; a complemented key turns an order round, so equal
 * elements keep their order there too. */
#include "cpu/lines.h"

#include "core/host.h"
#include "cpu/kernels.h"
#include "core/memory.h"

#include <string.h>

void tp_make_keys(uint64_t *keys, const tp_tensor *t, int64_t first, int64_t n, bool descending) {
    const char *from = (const char *)tp_data(t) + first * tp_itemsize((tp_dtype)t->dtype);
    tp_cpu.order->keys[t->dtype](from, n, descending ? UINT64_MAX : 0, keys);
}
void tp_make_entries(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, bool descending) {
    uint64_t keys[256];
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        tp_make_keys(keys, t, first + i, m, descending);
        for (int64_t k = 0; k < m; k++) e[i + k] = (tp_entry){keys[k], i + k};
    }
}

#define FEW 32
static bool before(tp_entry a, tp_entry b) { return a.key < b.key || (a.key == b.key && a.index < b.index); }
/* By insertion; of equal keys the one with the lower index, which comes first in a line, is before the other. */
static void sort_few(tp_entry *e, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        tp_entry x = e[i];
        int64_t k = i;
        for (; k > 0 && before(x, e[k - 1]); k--) e[k] = e[k - 1];
        e[k] = x;
    }
}

/* Both halves of a pass over the entries, some at a time so that a signal is heard. */
#define PER_LOOK ((int64_t)1 << 20)
static int count_bytes(const tp_entry *from, int64_t n, int shift, int64_t *count) {
    for (int64_t begin = 0; begin < n; begin += PER_LOOK) {
        int64_t end = n - begin < PER_LOOK ? n : begin + PER_LOOK;
        for (int64_t i = begin; i < end; i++) count[(from[i].key >> shift & 255) + 1]++;
        if (end < n && tp_host_look() < 0) return -1;
    }
    return 0;
}
static int spread_entries(tp_entry *to, const tp_entry *from, int64_t n, int shift, int64_t *count) {
    for (int64_t begin = 0; begin < n; begin += PER_LOOK) {
        int64_t end = n - begin < PER_LOOK ? n : begin + PER_LOOK;
        for (int64_t i = begin; i < end; i++) to[count[from[i].key >> shift & 255]++] = from[i];
        if (end < n && tp_host_look() < 0) return -1;
    }
    return 0;
}

int tp_sort_entries(tp_entry *e, tp_entry *spare, int64_t n) {
    if (n <= FEW) return sort_few(e, n), 0;
    tp_entry *from = e, *to = spare;
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t count[257] = {0};
        if (count_bytes(from, n, shift, count) < 0) return -1;
        if (count[(from[0].key >> shift & 255) + 1] == n) continue;
        for (int k = 0; k < 256; k++) count[k + 1] += count[k];
        if (spread_entries(to, from, n, shift, count) < 0) return -1;
        tp_entry *t = from;
        from = to;
        to = t;
    }
    if (from != e) memcpy(e, from, (size_t)n * sizeof *e);
    return 0;
}

/* ---- selection ---- */

static void swap(tp_entry *a, tp_entry *b) {
    tp_entry t = *a;
    *a = *b;
    *b = t;
}
/* Quickselect with the median of three as the pivot; what is left, few or after many rounds, is sorted by insertion or
 * by heap. */
static void sift(tp_entry *e, int64_t n, int64_t i) {
    for (int64_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && before(e[c], e[c + 1])) c++;
        if (!before(e[i], e[c])) return;
        swap(&e[i], &e[c]);
    }
}
static void sort_in_place(tp_entry *e, int64_t n) {
    if (n <= FEW) {
        sort_few(e, n);
        return;
    }
    for (int64_t i = n / 2 - 1; i >= 0; i--) sift(e, n, i);
    for (int64_t end = n - 1; end > 0; end--) {
        swap(&e[0], &e[end]);
        sift(e, end, 0);
    }
}
tp_entry tp_select_entry(tp_entry *e, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    for (int rounds = 0; high - low >= FEW / 2 && rounds < 64; rounds++) {
        int64_t middle = low + (high - low) / 2;
        if (before(e[middle], e[low])) swap(&e[middle], &e[low]);
        if (before(e[high], e[low])) swap(&e[high], &e[low]);
        if (before(e[high], e[middle])) swap(&e[high], &e[middle]);
        tp_entry pivot = e[middle];
        int64_t i = low, j = high;
        while (i <= j) {
            while (before(e[i], pivot)) i++;
            while (before(pivot, e[j])) j--;
            if (i <= j) swap(&e[i++], &e[j--]);
        }
        if (k <= j) high = j;
        else if (k >= i) low = i;
        else return e[k];
        if (tp_unlikely(high - low > 1 << 20) && tp_host_look() < 0) return e[k]; /* the caller's loop fails */
    }
    sort_in_place(e + low, high - low + 1);
    return e[k];
}

void tp_first_entries(tp_entry *e, int64_t n, int64_t k) {
    if (k < n) tp_select_entry(e, n, k - 1);
    sort_in_place(e, k);
}
