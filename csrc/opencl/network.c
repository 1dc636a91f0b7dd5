/* network.c: operators of networks whose kernels on OpenCL devices are other operators' kernels. */
#include "NativeFunctions.h"
#include "cpu/copy.h"
#include "native/gather.h"
#include "opencl/index.h"

#include <string.h>

/* ---- embedding ---- */

/* embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)
 *   -> Tensor */
tp_tensor *embedding_opencl(tp_tensor *weight, tp_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq,
                            bool sparse) {
    tp_autoref *out = embedding_meta(weight, indices, padding_idx, scale_grad_by_freq, sparse);
    tp_autoref *flat = out ? tp_reshape(indices, TP_INTS(-1)) : NULL;
    tp_autoref *rows = flat ? tp_index_take("embedding", weight, 0, flat, false) : NULL;
    return rows ? tp_reshape(rows, tp_sizes(out)) : NULL;
}

/* How often each index occurs, at each of its places, as a column. */
static tp_tensor *frequencies(tp_tensor *flat, int64_t n, tp_dtype dtype) {
    tp_autoref *ones = tp_ones(tp_sizes(flat), dtype, TP_STRIDED, flat->device, -1);
    tp_autoref *none = ones ? tp_zeros(TP_INTS(n), dtype, TP_STRIDED, flat->device, -1) : NULL;
    if (!none || tp_index_add_(none, 0, flat, ones, TP_SCALAR_I(1)) < 0) return NULL;
    tp_autoref *counts = tp_index_select(none, 0, flat);
    return counts ? tp_unsqueeze(counts, 1) : NULL;
}

/* embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx,
 *   bool scale_grad_by_freq) -> Tensor */
tp_tensor *embedding_dense_backward_opencl(tp_tensor *grad_output, tp_tensor *indices, int64_t num_weights,
                                           int64_t padding_idx, bool scale_grad_by_freq) {
    tp_autoref *out = embedding_dense_backward_meta(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq);
    if (!out || tp_fill_data(out, TP_SCALAR_I(0)) < 0) return NULL;
    if (grad_output->numel == 0) return tp_take(out);
    tp_autoref *flat = tp_reshape(indices, TP_INTS(-1)), *rows = tp_reshape(grad_output, TP_INTS(-1, out->sizes[1]));
    tp_autoref *column = flat && rows ? tp_unsqueeze(flat, 1) : NULL;
    tp_autoref *padding = column ? tp_eq_Scalar(column, TP_SCALAR_I(padding_idx)) : NULL;
    tp_autoref *kept = padding ? tp_masked_fill_Scalar(rows, padding, TP_SCALAR_I(0)) : NULL;
    if (kept && scale_grad_by_freq) {
        tp_autoref *counts = frequencies(flat, num_weights, (tp_dtype)kept->dtype);
        tp_tensor *shared = counts ? tp_div_Tensor(kept, counts) : NULL;
        tp_release(kept);
        kept = shared;
    }
    return kept && tp_index_add_(out, 0, flat, kept, TP_SCALAR_I(1)) == 0 ? tp_take(out) : NULL;
}

/* ---- the negative log-likelihood ---- */

enum { NONE, MEAN, SUM };

/* What a target chooses, each as a column: classes (0 where the row does not count), the rows' weights, and which rows
 * do not count. */
typedef struct {
    tp_tensor *classes, *weights, *ignored;
} choice;

static void free_choice(choice *c) {
    tp_release(c->classes);
    tp_release(c->weights);
    tp_release(c->ignored);
}

static int check_classes(tp_tensor *classes, int64_t count) {
    return tp_cl_check_index("nll_loss", TP_IndexError, classes, 1, count, false, NULL, true);
}

static int choose(choice *c, tp_tensor *target, tp_tensor *weight, int64_t count, int64_t ignored, tp_dtype dtype) {
    tp_autoref *wide = tp_to_dtype(target, TP_INT64, false, false, TP_NO_FORMAT);
    tp_autoref *column = wide ? tp_reshape(wide, TP_INTS(-1, 1)) : NULL;
    c->ignored = column ? tp_eq_Scalar(column, TP_SCALAR_I(ignored)) : NULL;
    c->classes = c->ignored ? tp_masked_fill_Scalar(column, c->ignored, TP_SCALAR_I(0)) : NULL;
    if (!c->classes || check_classes(c->classes, count) < 0) return -1;
    tp_autoref *flat = weight ? tp_reshape(c->classes, TP_INTS(-1)) : NULL;
    tp_autoref *picked = flat ? tp_index_select(weight, 0, flat) : NULL;
    tp_autoref *all = weight ? (picked ? tp_reshape(picked, TP_INTS(-1, 1)) : NULL)
                             : tp_ones(tp_sizes(column), dtype, TP_STRIDED, target->device, -1);
    tp_autoref *typed = all ? tp_to_dtype(all, dtype, false, false, TP_NO_FORMAT) : NULL;
    c->weights = typed ? tp_masked_fill_Scalar(typed, c->ignored, TP_SCALAR_I(0)) : NULL;
    return c->weights ? 0 : -1;
}

static tp_tensor *rows_of(tp_tensor *self) { return self->ndim == 1 ? tp_unsqueeze(self, 0) : tp_retain(self); }

static int reduce_losses(const choice *c, tp_tensor *losses, int64_t reduction, tp_tensor *output, tp_tensor *total) {
    if (reduction == NONE) {
        tp_autoref *shaped = tp_reshape(losses, tp_sizes(output));
        return shaped && tp_copy_(output, shaped, false) == 0 ? tp_fill_data(total, TP_SCALAR_I(0)) : -1;
    }
    tp_autoref *weight = tp_sum(c->weights, TP_NO_DTYPE), *sum = weight ? tp_sum(losses, TP_NO_DTYPE) : NULL;
    tp_autoref *result = sum ? (reduction == MEAN ? tp_div_Tensor(sum, weight) : tp_retain(sum)) : NULL;
    return result && tp_copy_(output, result, false) == 0 ? tp_copy_(total, weight, false) : -1;
}

/* nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output,
 * Tensor total_weight) */
int nll_loss_forward_opencl(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                            int64_t ignore_index, tp_tensor *output, tp_tensor *total_weight) {
    tp_dtype dtype = tp_compute_dtype((tp_dtype)self->dtype);
    TP_CLEANUP(free_choice) choice c = {NULL, NULL, NULL};
    tp_autoref *x = rows_of(self);
    if (!x || choose(&c, target, weight, x->sizes[1], ignore_index, dtype) < 0) return -1;
    tp_autoref *picked = tp_gather(x, 1, c.classes, false);
    tp_autoref *typed = picked ? tp_to_dtype(picked, dtype, false, false, TP_NO_FORMAT) : NULL;
    /* What does not count is left out, since it may be infinite. */
    tp_autoref *kept = typed ? tp_masked_fill_Scalar(typed, c.ignored, TP_SCALAR_I(0)) : NULL;
    tp_autoref *scaled = kept ? tp_mul_Tensor(kept, c.weights) : NULL, *losses = scaled ? tp_neg(scaled) : NULL;
    return losses ? reduce_losses(&c, losses, reduction, output, total_weight) : -1;
}

/* nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index,
 *   Tensor total_weight) -> Tensor */
int nll_loss_backward_opencl(tp_tensor *grad_output, tp_tensor *self, tp_tensor *target, tp_tensor *weight,
                             int64_t reduction, int64_t ignore_index, tp_tensor *total_weight TP_UNUSED,
                             tp_tensor *grad_input) {
    tp_dtype dtype = tp_compute_dtype((tp_dtype)self->dtype);
    TP_CLEANUP(free_choice) choice c = {NULL, NULL, NULL};
    tp_autoref *x = rows_of(self), *into = x ? rows_of(grad_input) : NULL;
    if (!into || choose(&c, target, weight, x->sizes[1], ignore_index, dtype) < 0) return -1;
    tp_autoref *wide = tp_to_dtype(grad_output, dtype, false, false, TP_NO_FORMAT);
    tp_autoref *grad = wide && reduction == NONE ? tp_reshape(wide, TP_INTS(-1, 1)) : tp_retain(wide);
    tp_autoref *slope = grad ? tp_mul_Tensor(c.weights, grad) : NULL, *value = slope ? tp_neg(slope) : NULL;
    tp_autoref *total = value && reduction == MEAN ? tp_sum(c.weights, TP_NO_DTYPE) : NULL;
    if (value && reduction == MEAN) {
        tp_tensor *shared = total ? tp_div_Tensor(value, total) : NULL;
        tp_release(value);
        value = shared;
    }
    tp_autoref *typed = value ? tp_to_dtype(value, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT) : NULL;
    if (!typed || tp_fill_data(grad_input, TP_SCALAR_I(0)) < 0) return -1;
    return tp_scatter__src(into, 1, c.classes, typed);
}

/* ---- layer_norm ---- */

/* The last `n` dimensions. */
static tp_ints last_dims(int64_t n, int64_t *dims) {
    for (int64_t i = 0; i < n; i++) dims[i] = i - n;
    return (tp_ints){dims, n};
}

static tp_tensor *in_dtype(tp_tensor *t, tp_dtype dtype) {
    return t ? tp_to_dtype(t, dtype, false, false, TP_NO_FORMAT) : NULL;
}

/* native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps)
 *   -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_layer_norm_opencl(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias,
                                    double eps) {
    int64_t room[TP_MAX_DIMS];
    tp_ints dims = last_dims(normalized_shape.size, room);
    tp_tensor3 made = native_layer_norm_meta(input, normalized_shape, weight, bias, eps), none = {{NULL}};
    tp_autoref *out = made.v[0], *mean_out = made.v[1], *rstd_out = made.v[2];
    if (!out || input->numel == 0)
        return out ? (tp_tensor3){{tp_take(out), tp_take(mean_out), tp_take(rstd_out)}} : none;
    tp_dtype compute = tp_compute_dtype((tp_dtype)input->dtype);
    tp_autoref *x = in_dtype(input, compute), *w = in_dtype(weight, compute), *b = in_dtype(bias, compute);
    tp_autoref *mean = x ? tp_mean_dim(x, dims, true, TP_NO_DTYPE) : NULL;
    tp_autoref *var = mean ? tp_var_correction(x, dims, TP_SCALAR_I(0), true) : NULL;
    tp_autoref *spread = var ? tp_add_Scalar(var, TP_SCALAR_F(eps), TP_SCALAR_I(1)) : NULL;
    tp_autoref *rstd = spread ? tp_rsqrt(spread) : NULL, *gap = rstd ? tp_sub_Tensor(x, mean, TP_SCALAR_I(1)) : NULL;
    tp_autoref *normal = gap ? tp_mul_Tensor(gap, rstd) : NULL;
    tp_autoref *scaled = normal && w ? tp_mul_Tensor(normal, w) : tp_retain(normal);
    tp_autoref *shifted = scaled && b ? tp_add_Tensor(scaled, b, TP_SCALAR_I(1)) : tp_retain(scaled);
    if (!shifted || tp_copy_(out, shifted, false) < 0 || tp_copy_(mean_out, mean, false) < 0) return none;
    if (tp_copy_(rstd_out, rstd, false) < 0) return none;
    return (tp_tensor3){{tp_take(out), tp_take(mean_out), tp_take(rstd_out)}};
}
