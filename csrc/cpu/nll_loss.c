/* nll_loss.c: the negative log-likelihood of class indices on the CPU as a whole, where its parts would be many passes.
 * Sums run in double, in the order of the rows. */
#include "PrimitiveKernels.h"
#include "prim/plain.h"
#include "core/memory.h"

enum { NONE, MEAN, SUM };

static int64_t classes_of(const tp_tensor *self) { return self->sizes[self->ndim - 1]; }

/* The element of a row's class, in any floating dtype and layout. */
static char *element(const tp_tensor *t, int64_t row, int64_t class) {
    int64_t from_row = t->ndim == 2 ? row * t->strides[0] : 0, at = from_row + class * t->strides[t->ndim - 1];
    return (char *)tp_data(t) + at * tp_itemsize((tp_dtype)t->dtype);
}
/* Element i of a plain float32 or float64 tensor. */
static double get(const tp_tensor *t, int64_t i) {
    return t->dtype == TP_FLOAT64 ? ((double *)tp_data(t))[i] : (double)((float *)tp_data(t))[i];
}
static void put(tp_tensor *t, int64_t i, double v) {
    if (t->dtype == TP_FLOAT64) ((double *)tp_data(t))[i] = v;
    else ((float *)tp_data(t))[i] = (float)v;
}

static int check_class(int64_t c, int64_t classes) {
    if (c >= 0 && c < classes) return 0;
    return tp_fail(TP_IndexError, "Target %lld is out of bounds.", (long long)c);
}

/* nll_loss.forward(Tensor x, Tensor target, Tensor? weight, int reduction, int ignore_index, int fault, *,
 *                  Tensor(a!) out, Tensor(b!) total_weight) -> () */
int nll_loss_forward_cpu(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction, int64_t ignore_index,
                         int64_t fault TP_UNUSED, tp_tensor *output, tp_tensor *total_weight) {
    tp_dtype dtype = tp_compute_dtype((tp_dtype)self->dtype);
    tp_autoref *t = tp_plain(target, TP_INT64), *w = tp_plain(weight, dtype);
    tp_autoref *rows = tp_new_empty(TP_INTS(t ? t->numel : 0), dtype, self->device);
    if (!t || !rows || (weight && !w)) return -1;
    int64_t n = t->numel, classes = classes_of(self);
    const int64_t *classes_at = tp_data(t);
    double sum = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t c = classes_at[i];
        if (c == ignore_index) {
            put(rows, i, 0);
            continue;
        }
        if (check_class(c, classes) < 0) return -1;
        tp_scalar x = tp_scalar_load(element(self, i, c), (tp_dtype)self->dtype);
        double factor = w ? get(w, c) : 1, loss = -factor * tp_scalar_double(&x);
        sum += loss, total += factor;
        put(rows, i, loss);
    }
    double result = reduction == MEAN ? sum / total : sum; /* an empty mean is NaN */
    if (tp_fill_data(total_weight, TP_SCALAR_F(reduction == NONE ? 0 : total)) < 0) return -1;
    if (reduction != NONE) return tp_fill_data(output, TP_SCALAR_F(result));
    tp_autoref *shaped = tp_new_alias(rows, tp_sizes(output), (tp_ints){rows->strides, output->ndim}, 0);
    return shaped ? tp_copy_data(output, shaped) : -1;
}

/* nll_loss.backward(Tensor grad, Tensor x, Tensor target, Tensor? weight, int reduction, int ignore_index,
 *                   Tensor total_weight, int fault, *, Tensor(a!) out) -> () */
int nll_loss_backward_cpu(tp_tensor *grad_output, tp_tensor *self, tp_tensor *target, tp_tensor *weight,
                          int64_t reduction, int64_t ignore_index, tp_tensor *total_weight, int64_t fault TP_UNUSED,
                          tp_tensor *grad_input) {
    tp_dtype dtype = tp_compute_dtype((tp_dtype)self->dtype);
    tp_autoref *g = tp_plain(grad_output, dtype), *t = tp_plain(target, TP_INT64), *w = tp_plain(weight, dtype),
               *total = tp_plain(total_weight, dtype);
    if (!g || !t || !total || (weight && !w) || tp_fill_data(grad_input, TP_SCALAR_I(0)) < 0) return -1;
    int64_t classes = classes_of(self);
    for (int64_t i = 0; i < t->numel; i++) {
        int64_t c = ((const int64_t *)tp_data(t))[i];
        if (c == ignore_index) continue;
        if (check_class(c, classes) < 0) return -1;
        double v = -(w ? get(w, c) : 1) * get(g, reduction == NONE ? i : 0);
        tp_scalar_store(TP_SCALAR_F(reduction == MEAN ? v / get(total, 0) : v), (tp_dtype)grad_input->dtype,
                        element(grad_input, i, c));
    }
    return 0;
}
