/* embedding.c: rows of a table by index, and what flows back into the table. */
#include "NativeFunctions.h"
#include "prim/transfer.h"
#include "prim/plain.h"
#include "iter/iter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int check(const tp_tensor *weight, const tp_tensor *indices) {
    if (weight->ndim != 2) return tp_fail(TP_RuntimeError, "'weight' must be 2-D");
    if (indices->dtype != TP_INT64 && indices->dtype != TP_INT32)
        return tp_fail(
            TP_RuntimeError,
            "Expected tensor for argument 'indices' to have one of the following scalar types: Long, Int; but got %s",
            tp_scalar_type_name((tp_dtype)indices->dtype));
    return indices->ndim < TP_MAX_DIMS ? 0 : tp_fail(TP_RuntimeError, "embedding: too many dimensions");
}

/* embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) ->
 * Tensor */
tp_tensor *embedding_meta(tp_tensor *weight, tp_tensor *indices, int64_t padding_idx TP_UNUSED,
                          bool scale_grad_by_freq TP_UNUSED, bool sparse TP_UNUSED) {
    int64_t sizes[TP_MAX_DIMS];
    if (check(weight, indices) < 0) return NULL;
    memcpy(sizes, indices->sizes, indices->ndim * sizeof *sizes);
    sizes[indices->ndim] = weight->sizes[1];
    return tp_new_empty((tp_ints){sizes, indices->ndim + 1}, (tp_dtype)weight->dtype, weight->device);
}

static int check_index(int64_t i, int64_t n) {
    return i >= 0 && i < n ? 0
                           : tp_fail(TP_IndexError, "index out of range in self: %lld is not in [0, %lld)",
                                     (long long)i, (long long)n);
}

tp_tensor *embedding_cpu(tp_tensor *weight, tp_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq,
                         bool sparse) {
    tp_autoref *out = embedding_meta(weight, indices, padding_idx, scale_grad_by_freq, sparse);
    tp_autoref *at = out ? tp_plain(indices, TP_INT64) : NULL,
               *w = at ? tp_plain(weight, (tp_dtype)weight->dtype) : NULL;
    if (!w) return NULL;
    size_t bytes = (size_t)(weight->sizes[1] * tp_itemsize((tp_dtype)weight->dtype));
    for (int64_t i = 0; i < at->numel; i++) {
        int64_t row = ((const int64_t *)tp_data(at))[i];
        if (check_index(row, weight->sizes[0]) < 0) return NULL;
        if (bytes)
            memcpy((char *)tp_data(out) + (size_t)i * bytes, (const char *)tp_data(w) + (size_t)row * bytes, bytes);
    }
    return tp_take(out);
}

tp_tensor *embedding_dense_backward_meta(tp_tensor *grad_output, tp_tensor *indices TP_UNUSED, int64_t num_weights,
                                         int64_t padding_idx TP_UNUSED, bool scale_grad_by_freq TP_UNUSED) {
    if (grad_output->ndim < 1)
        return tp_fail_null(TP_RuntimeError, "embedding_dense_backward: grad_output must have a dimension");
    return tp_new_empty(TP_INTS(num_weights, grad_output->sizes[grad_output->ndim - 1]), (tp_dtype)grad_output->dtype,
                        grad_output->device);
}

#define ADD_ROW(T) \
    for (int64_t k = 0; k < n; k++) ((T *)to)[k] += ((const T *)from)[k] * (T)scale

/* embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool
 * scale_grad_by_freq) -> Tensor */
tp_tensor *embedding_dense_backward_cpu(tp_tensor *grad_output, tp_tensor *indices, int64_t num_weights,
                                        int64_t padding_idx, bool scale_grad_by_freq) {
    tp_dtype given = (tp_dtype)grad_output->dtype, dtype = tp_compute_dtype(given);
    if (!tp_is_floating_dtype(dtype))
        return tp_fail_null(TP_NotImplementedError, "embedding_dense_backward is not implemented for %s",
                            tp_dtype_names[given]);
    if (grad_output->ndim < 1)
        return tp_fail_null(TP_RuntimeError, "embedding_dense_backward: grad_output must have a dimension");
    int64_t n = grad_output->sizes[grad_output->ndim - 1];
    tp_autoref *g = tp_plain(grad_output, dtype), *at = g ? tp_plain(indices, TP_INT64) : NULL;
    tp_autoref *out = at ? tp_new_empty(TP_INTS(num_weights, n), dtype, grad_output->device) : NULL;
    tp_autoref *counts = out ? tp_new_empty(TP_INTS(num_weights), TP_INT64, grad_output->device) : NULL;
    if (!counts || tp_fill_data(out, TP_SCALAR_I(0)) < 0 || tp_fill_data(counts, TP_SCALAR_I(0)) < 0) return NULL;
    const int64_t *rows = tp_data(at);
    int64_t *count = tp_data(counts);
    if (at->numel * n != g->numel)
        return tp_fail_null(TP_RuntimeError, "embedding_dense_backward: grad_output does not fit the indices");
    for (int64_t i = 0; i < at->numel; i++) {
        if (check_index(rows[i], num_weights) < 0) return NULL;
        count[rows[i]]++;
    }
    for (int64_t i = 0; i < at->numel; i++) {
        if (rows[i] == padding_idx) continue;
        double scale = scale_grad_by_freq ? 1.0 / (double)count[rows[i]] : 1;
        char *to = (char *)tp_data(out) + rows[i] * n * tp_itemsize(dtype);
        const char *from = (const char *)tp_data(g) + i * n * tp_itemsize(dtype);
        if (dtype == TP_FLOAT32) ADD_ROW(float);
        else ADD_ROW(double);
    }
    return tp_narrow_steal(tp_take(out), given);
}

/* ---- rows kept short ---- */

static double row_norm(const tp_tensor *t, int64_t row, double p) {
    int64_t n = t->sizes[1];
    double sum = 0;
    for (int64_t i = row * n; i < (row + 1) * n; i++) {
        double v = fabs(t->dtype == TP_FLOAT64 ? ((double *)tp_data(t))[i] : (double)((float *)tp_data(t))[i]);
        sum = isinf(p) ? fmax(sum, v) : sum + (p == 2 ? v * v : pow(v, p));
    }
    return isinf(p) ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

static void scale_row(const tp_tensor *t, int64_t row, double factor) {
    int64_t n = t->sizes[1];
    for (int64_t i = row * n; i < (row + 1) * n; i++)
        if (t->dtype == TP_FLOAT64) ((double *)tp_data(t))[i] *= factor;
        else ((float *)tp_data(t))[i] *= (float)factor;
}

static int check_renorm(const tp_tensor *self, const tp_tensor *indices) {
    if (check(self, indices) < 0) return -1;
    if (tp_is_floating(self)) return 0;
    return tp_fail(TP_NotImplementedError, "embedding_renorm_: expected a floating point table, but got %s",
                   tp_dtype_names[self->dtype]);
}

/* embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!). A row that is
 * named twice is as short after the first time as it gets. */
int embedding_renorm__cpu(tp_tensor *self, tp_tensor *indices, double max_norm, double norm_type) {
    if (check_renorm(self, indices) < 0) return -1;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)self->dtype);
    tp_autoref *table = tp_plain(self, dtype), *at = table ? tp_plain(indices, TP_INT64) : NULL;
    if (!at) return -1;
    const int64_t *rows = tp_data(at);
    for (int64_t i = 0; i < at->numel; i++)
        if (check_index(rows[i], self->sizes[0]) < 0) return -1;
    for (int64_t i = 0; i < at->numel; i++) {
        double norm = row_norm(table, rows[i], norm_type);
        if (norm > max_norm) scale_row(table, rows[i], max_norm / (norm + 1e-7));
    }
    return table == self ? 0 : tp_copy_data(self, table);
}

int embedding_renorm__meta(tp_tensor *self, tp_tensor *indices, double max_norm TP_UNUSED, double norm_type TP_UNUSED) {
    return check_renorm(self, indices);
}
