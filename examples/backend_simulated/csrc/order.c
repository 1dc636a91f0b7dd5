/* order.c: sort and its kin, search, distinct: places of a line in order, by a stable merge sort. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

/* What is compared: elements of a contiguous tensor, or items of `width` elements each. */
typedef struct {
    const char *data;
    tp_dtype dtype;
    int64_t item, width;
    int sign; /* -1: descending */
} items;

static int compare(const items *it, int64_t a, int64_t b) {
    for (int64_t k = 0; k < it->width; k++) {
        number x = number_at(it->data + (a * it->width + k) * it->item, it->dtype);
        number y = number_at(it->data + (b * it->width + k) * it->item, it->dtype);
        int order = compared(x, y, it->dtype);
        if (order) return order * it->sign;
    }
    return 0;
}

static void merge_sort(const items *it, int64_t *order, int64_t *spare, int64_t n) {
    int64_t half = n / 2, i = 0, j = half, k = 0;
    if (n < 2) return;
    merge_sort(it, order, spare, half);
    merge_sort(it, order + half, spare, n - half);
    while (i < half && j < n) spare[k++] = compare(it, order[j], order[i]) < 0 ? order[j++] : order[i++];
    while (i < half) spare[k++] = order[i++];
    memcpy(order, spare, (size_t)k * sizeof *order);
}

static void sort_places(const items *it, int64_t *order, int64_t *spare, int64_t n) {
    for (int64_t i = 0; i < n; i++) order[i] = i;
    merge_sort(it, order, spare, n);
}

static int64_t length_of(const view *lines) { return lines->ndim ? lines->sizes[lines->ndim - 1] : 1; }
static items line_at(const view *lines, int64_t line, bool descending) {
    return (items){lines->data + line * length_of(lines) * lines->item, lines->dtype, lines->item, 1,
                   descending ? -1 : 1};
}
static bool is_nan_at(const items *it, int64_t i) {
    return is_nan(number_at(it->data + i * it->item, it->dtype), it->dtype);
}

/* ---- places of each line in order ---- */

typedef void (*choice)(const items *it, const int64_t *order, int64_t n, int64_t line, const argument *a);

static void each_line(const argument *a, bool descending, choice choose) {
    const view *lines = a[0].tensors;
    int64_t n = length_of(lines), *order = malloc((size_t)n * 2 * sizeof *order);
    for (int64_t line = 0; order && line < lines->numel / n; line++) {
        items it = line_at(lines, line, descending);
        sort_places(&it, order, order + n, n);
        choose(&it, order, n, line, a);
    }
    free(order);
}

/* sort(Tensor lines, bool descending, *, Tensor(a!)? values, Tensor(b!)? order) -> () */
static void put_sorted(const items *it, const int64_t *order, int64_t n, int64_t line, const argument *a) {
    for (int64_t i = 0; i < n; i++) {
        if (a[2].n) memcpy(at(a[2].tensors, line * n + i), it->data + order[i] * it->item, (size_t)it->item);
        if (a[3].n) put(a[3].tensors, line * n + i, (number){.i = order[i]});
    }
}
static void sort(const argument *a) { each_line(a, a[1].b, put_sorted); }

/* topk(Tensor lines, int k, bool largest, *, Tensor(a!) out) -> () */
static void put_first(const items *it, const int64_t *order, int64_t n, int64_t line, const argument *a) {
    (void)it, (void)n;
    for (int64_t i = 0; i < a[1].i; i++) put(a[3].tensors, line * a[1].i + i, (number){.i = order[i]});
}
static void topk(const argument *a) { each_line(a, a[2].b, put_first); }

/* kth(Tensor lines, int k, *, Tensor(a!) out) -> () */
static void put_kth(const items *it, const int64_t *order, int64_t n, int64_t line, const argument *a) {
    (void)it, (void)n;
    put(a[2].tensors, line, (number){.i = order[a[1].i]});
}
static void kth(const argument *a) { each_line(a, false, put_kth); }

/* median(Tensor lines, bool skip_nan, *, Tensor(a!) out) -> () */
static void put_median(const items *it, const int64_t *order, int64_t n, int64_t line, const argument *a) {
    int64_t numbers = n;
    while (numbers && is_nan_at(it, order[numbers - 1])) numbers--;
    bool nan = numbers < n && (!a[1].b || !numbers);
    put(a[2].tensors, line, (number){.i = order[nan ? numbers : (numbers - 1) / 2]});
}
static void median(const argument *a) { each_line(a, false, put_median); }

/* mode(Tensor lines, *, Tensor(a!) out) -> () */
static void put_mode(const items *it, const int64_t *order, int64_t n, int64_t line, const argument *a) {
    int64_t most = 0, found = 0;
    for (int64_t i = 0, start = 0; i < n; i++) {
        if (compare(it, order[i], order[start]) != 0 || is_nan_at(it, order[i])) start = i;
        if (i - start + 1 > most) most = i - start + 1, found = order[i];
    }
    put(a[1].tensors, line, (number){.i = found});
}
static void mode(const argument *a) { each_line(a, false, put_mode); }

/* ---- search ---- */

/* search.left(Tensor sequence, Tensor values, *, Tensor(a!) out) -> () */
static void search(const argument *a, bool right) {
    const view *sequence = a[0].tensors, *values = a[1].tensors;
    int64_t n = length_of(sequence), m = sequence->ndim == 1 ? 0 : length_of(values);
    for (int64_t i = 0; i < values->numel; i++) {
        const char *line = sequence->data + (m ? i / m * n * sequence->item : 0);
        number x = get(values, i);
        int64_t low = 0, high = n;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            int order = compared(number_at(line + middle * sequence->item, values->dtype), x, values->dtype);
            if (order < 0 || (right && order == 0)) low = middle + 1;
            else high = middle;
        }
        put(a[2].tensors, i, (number){.i = low});
    }
}
static void search_left(const argument *a) { search(a, false); }
static void search_right(const argument *a) { search(a, true); }

/* ---- distinct ---- */

static bool is_same(const items *it, int64_t a, int64_t b) {
    for (int64_t k = 0; k < it->width; k++)
        if (is_nan_at(it, a * it->width + k)) return false;
    return compare(it, a, b) == 0;
}

/* Groups of neighbours in order: the first item of each, its size, each item's group; how many groups. */
static int64_t group(const items *it, const int64_t *order, int64_t n, int64_t *firsts, int64_t *counts,
                     int64_t *inverse) {
    int64_t groups = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || !is_same(it, order[i], order[i - 1])) firsts[groups] = order[i], counts[groups++] = 0;
        counts[groups - 1]++;
        inverse[order[i]] = groups - 1;
    }
    return groups;
}

static tp_tensor *new_places(const int64_t *from, int64_t n, tp_device device) {
    tp_tensor *made = tp_new_empty((tp_ints){&n, 1}, TP_INT64, device);
    if (made && n) memcpy(view_of(made).data, from, (size_t)n * sizeof *from);
    return made;
}

/* Its results' sizes depend on the elements: the host waits for them. */
TENSORPY_KERNEL(tp_tensor3, distinct, (tp_tensor *, given), (bool, sorted)) {
    tp_tensor3 made = {{NULL}};
    tp_device device = tp_view_of(given).device;
    if (wait_here(device.index) < 0) return made;
    view v = view_of(given);
    int64_t n = v.sizes[0], *room = malloc((size_t)n * 5 * sizeof *room);
    if (!room) return tp_fail(TP_MemoryError, "distinct: no memory for %lld places", (long long)n), made;
    int64_t *order = room, *firsts = room + 2 * n, *counts = firsts + n, *inverse = counts + n;
    items it = {v.data, v.dtype, v.item, v.numel / n, 1};
    if (sorted) sort_places(&it, order, room + n, n);
    else
        for (int64_t i = 0; i < n; i++) order[i] = i;
    int64_t groups = group(&it, order, n, firsts, counts, inverse);
    made = (tp_tensor3){
        {new_places(firsts, groups, device), new_places(counts, groups, device), new_places(inverse, n, device)}};
    free(room);
    return made;
}

IMPLEMENT(prim, DEVICE, m) { return tp_impl(m, "distinct", distinct); }
PRIMITIVES({"sort", sort}, {"topk", topk}, {"kth", kth}, {"median", median}, {"mode", mode},
           {"search.left", search_left}, {"search.right", search_right})
