/* search.c: the primitive search on the CPU: threads share the values; the loops are in order_loops.c. */
#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "core/memory.h"

typedef struct {
    void (*find)(const void *sequence, int64_t n, const void *values, int64_t count, int64_t *out);
    const char *sequence, *values;
    int64_t *out, n, m, itemsize; /* n elements to a sequence, m values each; m is 0 where one sequence serves all */
} search;
static void search_part(int64_t begin, int64_t end, void *context) {
    const search *s = context;
    for (int64_t i = begin, stop; i < end; i = stop) {
        stop = s->m && (i / s->m + 1) * s->m < end ? (i / s->m + 1) * s->m : end;
        const char *sequence = s->sequence + (s->m ? i / s->m * s->n * s->itemsize : 0);
        s->find(sequence, s->n, s->values + i * s->itemsize, stop - i, s->out + i);
    }
}

static int run(const tp_tensor *sequence, const tp_tensor *values, bool right, tp_tensor *out) {
    search s = {.find = (right ? tp_cpu.order->right : tp_cpu.order->left)[values->dtype],
                .sequence = tp_data(sequence),
                .values = tp_data(values),
                .out = tp_data(out),
                .n = sequence->sizes[sequence->ndim - 1],
                .m = sequence->ndim == 1 ? 0 : values->sizes[values->ndim - 1],
                .itemsize = tp_itemsize((tp_dtype)values->dtype)};
    return tp_parallel_for(values->numel, TP_GRAIN / 32, search_part, &s);
}
int search_left_cpu(tp_tensor *sequence, tp_tensor *values, tp_tensor *out) {
    return run(sequence, values, false, out);
}
int search_right_cpu(tp_tensor *sequence, tp_tensor *values, tp_tensor *out) {
    return run(sequence, values, true, out);
}
