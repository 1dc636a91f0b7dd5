/* embedding_bag.c: bags of rows of a table on the CPU. Threads share the bags, and in the gradient the rows of the
 * table, so that one thread adds up each element, in the order of the indices. The loops, once for each dtype, are in
 * embedding_bag_rows.h. */
#include "PrimitiveKernels.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "prim/transfer.h"

#include <stdlib.h>
#include <string.h>

enum { SUM, MEAN, MAX };

typedef struct {
    const void *table, *each; /* each: NULL, or what an index's row is multiplied with */
    const int64_t *places, *begins, *counts;
    int64_t *bag, *size, *at;
    void *out;
    int64_t bags, n, columns, rows, padding, mode;
    bool ends; /* the last of begins is where the last bag ends */
} bags;

static int64_t end_of(const bags *b, int64_t i) { return i + 1 < b->bags || b->ends ? b->begins[i + 1] : b->n; }

#define T float
#define OF(name) name##_f32
#include "cpu/embedding_bag_rows.h"
#undef T
#undef OF
#define T double
#define OF(name) name##_f64
#include "cpu/embedding_bag_rows.h"

static int check_places(const bags *b) {
    for (int64_t i = 0; i < b->n; i++)
        if ((uint64_t)b->places[i] >= (uint64_t)b->rows)
            return tp_fail(TP_RuntimeError,
                           "Index %lld of input takes value %lld which is not in the valid range [0, %lld): "
                           "Expected idx >= 0 && idx < num_embeddings",
                           (long long)i, (long long)b->places[i], (long long)b->rows);
    return 0;
}

/* What a call of its own may have given for the gradient: the bags of places (-1: none), and the rows of maxima. */
static int check_within(const int64_t *values, int64_t n, int64_t least, int64_t bound, const char *what) {
    for (int64_t i = 0; i < n; i++)
        if (values[i] < least || values[i] >= bound)
            return tp_fail(TP_RuntimeError, "embedding_bag: %s %lld is not in the valid range [%lld, %lld)", what,
                           (long long)values[i], (long long)least, (long long)bound);
    return 0;
}

static int check_begins(const bags *b) {
    int64_t last = 0, count = b->bags + b->ends;
    if (b->begins[0] != 0)
        return tp_fail(
            TP_RuntimeError,
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            "However, got %lld",
            (long long)b->begins[0]);
    if (b->begins[count - 1] > b->n)
        return tp_fail(TP_RuntimeError,
                       "offsets[-1] can not be greater than input's length %lld but got offsets[-1] of %lld",
                       (long long)b->n, (long long)b->begins[count - 1]);
    for (int64_t i = 0; i < count; last = b->begins[i++])
        if (b->begins[i] < last)
            return tp_fail(TP_RuntimeError,
                           "embedding_bag: offsets must not descend, but offsets[%lld] is %lld after %lld",
                           (long long)i, (long long)b->begins[i], (long long)last);
    return 0;
}

static int run(const bags *b, int64_t units, int64_t work, tp_range_fn fn) {
    int64_t each = work / (units ? units : 1) + 1;
    return tp_parallel_unlocked(work > TP_GRAIN, units, 1 + TP_GRAIN / 4 / each, fn, (void *)b);
}

int bag_forward_cpu(tp_tensor *table, tp_tensor *places, tp_tensor *begins, tp_tensor *each, int64_t mode, bool ends,
                    int64_t padding, tp_tensor *out, tp_tensor *bag, tp_tensor *size, tp_tensor *at) {
    bags b = {.table = tp_data(table),
              .each = each ? tp_data(each) : NULL,
              .places = tp_data(places),
              .begins = tp_data(begins),
              .bag = tp_data(bag),
              .size = tp_data(size),
              .at = mode == MAX ? tp_data(at) : NULL,
              .out = tp_data(out),
              .bags = out->sizes[0],
              .n = places->numel,
              .columns = table->sizes[1],
              .rows = table->sizes[0],
              .padding = padding,
              .mode = mode,
              .ends = ends};
    if (check_begins(&b) < 0 || check_places(&b) < 0) return -1;
    return run(&b, b.bags, b.n * b.columns, table->dtype == TP_FLOAT32 ? forward_f32 : forward_f64);
}

int bag_backward_cpu(tp_tensor *grad, tp_tensor *places, tp_tensor *bag, tp_tensor *size, tp_tensor *at,
                     tp_tensor *each, int64_t mode, bool by_frequency, int64_t padding, tp_tensor *out) {
    bags b = {.table = tp_data(grad),
              .each = each ? tp_data(each) : NULL,
              .places = tp_data(places),
              .bag = tp_data(bag),
              .size = tp_data(size),
              .at = mode == MAX ? tp_data(at) : NULL,
              .out = tp_data(out),
              .bags = grad->sizes[0],
              .n = places->numel,
              .columns = grad->sizes[1],
              .rows = out->sizes[0],
              .padding = padding,
              .mode = mode};
    bool narrow = grad->dtype == TP_FLOAT32;
    if (check_places(&b) < 0 || check_within(b.bag, b.n, -1, b.bags, "bag") < 0) return -1;
    if (mode == MAX) {
        if (check_within(b.at, b.bags * b.columns, 0, b.rows, "row") < 0) return -1;
        if (narrow) backward_of_maxima_f32(&b);
        else backward_of_maxima_f64(&b);
        return 0;
    }
    tp_autoref *counts = by_frequency ? tp_new_empty(TP_INTS(b.rows), TP_INT64, TP_CPU) : NULL;
    if (by_frequency) {
        if (!counts) return -1;
        int64_t *c = tp_data(counts);
        memset(c, 0, (size_t)b.rows * sizeof *c);
        for (int64_t i = 0; i < b.n; i++) c[b.places[i]]++;
        b.counts = c;
    }
    /* Each thread reads all indices: few parts, that the work of a row outweighs it. */
    int64_t work = b.n * b.columns;
    return run(&b, b.rows, work > TP_GRAIN ? work : 0, narrow ? backward_f32 : backward_f64);
}

int bag_weights_cpu(tp_tensor *grad, tp_tensor *table, tp_tensor *places, tp_tensor *bag, int64_t padding,
                    tp_tensor *out) {
    bags b = {.table = tp_data(table),
              .each = tp_data(grad),
              .places = tp_data(places),
              .bag = tp_data(bag),
              .out = tp_data(out),
              .bags = grad->sizes[0],
              .n = places->numel,
              .columns = table->sizes[1],
              .rows = table->sizes[0],
              .padding = padding};
    if (check_places(&b) < 0 || check_within(b.bag, b.n, -1, b.bags, "bag") < 0) return -1;
    return run(&b, b.n, b.n * b.columns, table->dtype == TP_FLOAT32 ? weights_f32 : weights_f64);
}
