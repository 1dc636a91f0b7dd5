/* formula.c: see formula.h. Copies of lists belong to nodes and are as short as an argument list. */
#include "autograd/formula.h"

#include <stdlib.h>
#include <string.h>

static void *copy_of(const void *data, int64_t n, size_t itemsize) {
    void *copy = n > 0 ? malloc((size_t)n * itemsize) : NULL;
    if (copy) return memcpy(copy, data, (size_t)n * itemsize);
    if (n > 0) tp_fail_memory(n * (int64_t)itemsize);
    return NULL;
}

tp_floats tp_save_floats(tp_floats v) { return (tp_floats){copy_of(v.data, v.size, sizeof *v.data), v.size}; }
tp_bools tp_save_bools(tp_bools v) { return (tp_bools){copy_of(v.data, v.size, sizeof *v.data), v.size}; }

void tp_saved_floats_free(tp_floats *v) {
    free((void *)v->data);
    *v = (tp_floats){NULL, -1};
}

void tp_saved_bools_free(tp_bools *v) {
    free((void *)v->data);
    *v = (tp_bools){NULL, -1};
}

void tp_saved_str_free(char **s) {
    free(*s);
    *s = NULL;
}

tp_ints tp_save_sizes_along(tp_tensors list, int64_t dim) {
    int64_t *sizes = list.size > 0 ? malloc((size_t)list.size * sizeof *sizes) : NULL;
    if (!sizes && list.size > 0) return tp_fail_memory(list.size * (int64_t)sizeof *sizes), TP_NO_INTS;
    for (int64_t i = 0; i < list.size; i++) {
        const tp_tensor *t = list.data[i];
        if (t->ndim == 1 && t->numel == 0) {
            sizes[i] = 0;
            continue;
        }
        int64_t d = tp_wrap_dim(dim, t->ndim);
        if (d < 0) return free(sizes), TP_NO_INTS;
        sizes[i] = t->ndim ? t->sizes[d] : 1;
    }
    return (tp_ints){sizes, list.size};
}

int tp_put_gradients(tp_tensor **out, int count, tp_tensors gradients) {
    if (gradients.size != count)
        return tp_fail(TP_RuntimeError, "a formula gave %lld gradients for a list of %d tensors",
                       (long long)gradients.size, count);
    for (int i = 0; i < count; i++) out[i] = tp_retain(gradients.data[i]);
    return 0;
}

bool tp_any_gradient(tp_tensor *const *grads, int count) {
    for (int i = 0; i < count; i++)
        if (grads[i]) return true;
    return false;
}

tp_tensor_seq *tp_gradients_of_list(tp_node *n, tp_tensor *const *grads) {
    tp_autoseq *all = tp_tensor_seq_new(n->ninputs);
    if (!all) return NULL;
    for (uint32_t i = 0; i < n->ninputs; i++) {
        all->items[i] = grads[i] ? tp_retain(grads[i]) : tp_zeros_for_input(n, (int)i);
        if (!all->items[i]) return NULL;
    }
    return tp_take(all);
}
