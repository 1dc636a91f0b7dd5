/* norm.c: normalisations over the last dimensions; those over channels are in norm_channels.c, the loops in cpu/norm.c.
 *
 * Statistics run in double over float32 and float64; 16-bit floats go through float32. */
#include "cpu/norm.h"

#include "NativeFunctions.h"
#include "core/parallel.h"
#include "cpu/copy.h"
#include "cpu/kernels.h"
#include "native/device_kernels.h"
#include "iter/plain.h"

#include <math.h>
#include <string.h>

/* ---- layer_norm ---- */

/* complex_op: the operator that takes complex numbers too, or NULL. */
static int check_layer(const char *complex_op, const tp_tensor *input, tp_ints shape, const tp_tensor *weight,
                       const tp_tensor *bias, int64_t *rows, int64_t *n) {
    bool fits = shape.size >= 1 && input->ndim >= shape.size;
    *rows = *n = 1;
    for (int64_t i = 0; fits && i < shape.size; i++) fits = input->sizes[input->ndim - shape.size + i] == shape.data[i];
    if (!fits) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, shape);
        tp_text_ints(&b, tp_sizes(input));
        return tp_fail(TP_RuntimeError,
                       "Given normalized_shape=%s, expected input with shape [*, those], but got input of size %s",
                       a.text, b.text);
    }
    for (int i = 0; i < input->ndim; i++) *(i < input->ndim - shape.size ? rows : n) *= input->sizes[i];
    const tp_tensor *both[] = {weight, bias};
    for (int k = 0; k < 2; k++) {
        bool same = !both[k] || both[k]->ndim == shape.size;
        for (int64_t i = 0; same && both[k] && i < shape.size; i++) same = both[k]->sizes[i] == shape.data[i];
        if (!same)
            return tp_fail(TP_RuntimeError, "Expected %s to be of same shape as normalized_shape",
                           k ? "bias" : "weight");
    }
    if (!tp_is_floating(input) && !(complex_op && tp_is_complex(input)))
        return tp_fail(TP_NotImplementedError, "\"LayerNormKernelImpl\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)input->dtype));
    return 0;
}

static tp_tensor *statistics(const tp_tensor *input, int64_t reduced, tp_dtype dtype) {
    int64_t sizes[TP_MAX_DIMS];
    for (int i = 0; i < input->ndim; i++) sizes[i] = i < input->ndim - reduced ? input->sizes[i] : 1;
    return tp_new_empty((tp_ints){sizes, input->ndim}, dtype, input->device);
}

static const tp_norm_loops *loops_of(tp_dtype dtype) {
    return dtype == TP_FLOAT32 ? &tp_cpu.norm->f32 : &tp_cpu.norm->f64;
}

typedef struct {
    const tp_norm_loops *loops;
    const char *input, *grad, *weight, *bias;
    char *out, *to_weight, *to_bias; /* the last two: PARTS sums each */
    void *mean, *rstd;
    int64_t rows, n, bytes; /* of a row */
    double eps;
} job;

static void forward_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t r = begin; r < end; r++) {
        const char *x = j->input + r * j->bytes;
        double mean = j->loops->sum(x, j->n, 1, 0) / (double)j->n;
        double rstd = 1 / sqrt(j->loops->squares(x, j->n, 1, 0, mean) / (double)j->n + j->eps);
        j->loops->elements(x, j->out + r * j->bytes, j->n, mean, rstd, j->weight, j->bias);
        j->loops->put(j->mean, r, mean);
        j->loops->put(j->rstd, r, rstd);
    }
}

static void backward_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t r = begin; r < end; r++) {
        const char *x = j->input + r * j->bytes, *g = j->grad + r * j->bytes;
        double mean = j->loops->get(j->mean, r), rstd = j->loops->get(j->rstd, r), sums[2] = {0};
        j->loops->products(g, x, j->weight, j->n, 1, 0, mean, sums);
        double shift = rstd * sums[0] / (double)j->n, slope = rstd * rstd * rstd * sums[1] / (double)j->n;
        j->loops->spread(g, x, j->weight, j->out + r * j->bytes, j->n, mean, rstd, shift, slope);
    }
}

/* Part i sums rows i * rows / parts on: the split depends on the rows only. */
#define PARTS 8
static int64_t parts_of(int64_t rows) { return rows >= 2 * PARTS ? PARTS : 1; }

static void weight_parts(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    int64_t parts = parts_of(j->rows);
    for (int64_t i = begin; i < end; i++)
        for (int64_t r = i * j->rows / parts; r < (i + 1) * j->rows / parts; r++)
            j->loops->accumulate(j->grad + r * j->bytes, j->input + r * j->bytes, j->n, j->loops->get(j->mean, r),
                                 j->loops->get(j->rstd, r), j->to_weight ? j->to_weight + i * j->bytes : NULL,
                                 j->to_bias ? j->to_bias + i * j->bytes : NULL);
}

static void release_all(tp_tensor3 *r) {
    for (int i = 0; i < 3; i++) {
        tp_release(r->v[i]);
        r->v[i] = NULL;
    }
}

/* ---- on another device ---- */

static int run_elsewhere(tp_norm_what what, tp_norm_job *d, const job *j) {
    const tp_device_kernels *k = tp_device_kernels_of(d->input->device);
    d->rows = j->rows, d->runs = 1, d->length = d->first = j->n, d->each = true, d->per_run = 1, d->eps = j->eps;
    return k ? k->norm(what, d) : -1;
}

/* native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 native_layer_norm_meta(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias,
                                  double eps TP_UNUSED) {
    int64_t rows, n;
    tp_tensor3 r = {{NULL}};
    tp_dtype dtype = (tp_dtype)input->dtype;
    if (check_layer(NULL, input, normalized_shape, weight, bias, &rows, &n) < 0) return r;
    r.v[0] = tp_new_empty(tp_sizes(input), dtype, input->device);
    r.v[1] = statistics(input, normalized_shape.size, dtype);
    r.v[2] = statistics(input, normalized_shape.size, dtype);
    if (!r.v[0] || !r.v[1] || !r.v[2]) release_all(&r);
    return r;
}

tp_tensor3 native_layer_norm_cpu(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias,
                                 double eps) {
    int64_t rows, n;
    tp_tensor3 r = {{NULL}};
    if (check_layer(NULL, input, normalized_shape, weight, bias, &rows, &n) < 0) return r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    tp_autoref *x = tp_plain(input, dtype), *w = tp_plain(weight, dtype), *b = tp_plain(bias, dtype);
    if (!x || (weight && !w) || (bias && !b)) return r;
    r.v[0] = tp_new_empty(tp_sizes(input), dtype, input->device);
    r.v[1] = statistics(input, normalized_shape.size, dtype);
    r.v[2] = statistics(input, normalized_shape.size, dtype);
    if (!r.v[0] || !r.v[1] || !r.v[2]) return release_all(&r), r;
    job j = {.loops = loops_of(dtype),
             .input = tp_data(x),
             .weight = w ? tp_data(w) : NULL,
             .bias = b ? tp_data(b) : NULL,
             .out = tp_data(r.v[0]),
             .mean = tp_data(r.v[1]),
             .rstd = tp_data(r.v[2]),
             .rows = rows,
             .n = n,
             .bytes = n * tp_itemsize(dtype),
             .eps = eps};
    tp_norm_job d = {.input = x, .weight = w, .bias = b, .mean = r.v[1], .rstd = r.v[2], .out = r.v[0]};
    int status = !rows || !n           ? 0
                 : tp_elsewhere(input) ? run_elsewhere(TP_NORM_FORWARD, &d, &j)
                                       : tp_parallel_for(rows, 1 + TP_GRAIN / 2 / n, forward_rows, &j);
    if (status < 0) return release_all(&r), r;
    for (int i = 0; i < 3; i++) r.v[i] = tp_narrow_steal(r.v[i], (tp_dtype)input->dtype);
    if (!r.v[0] || !r.v[1] || !r.v[2]) release_all(&r);
    return r;
}

/* Sums over the rows for the weight (wanted[1]) and the bias (wanted[2]). */
static int weight_gradients(job *j, tp_norm_job *d, tp_dtype dtype, tp_ints shape, tp_tensor *const like[3],
                            const bool wanted[3], tp_tensor3 *r) {
    int64_t parts = parts_of(j->rows);
    tp_tensor *sums[3] = {NULL};
    int status = 0;
    for (int i = 1; i < 3; i++)
        if (wanted[i] && status == 0) {
            sums[i] = tp_new_empty(TP_INTS(parts, j->n), dtype, like[0]->device);
            status = sums[i] ? tp_fill_data(sums[i], TP_SCALAR_I(0)) : -1;
        }
    if (status == 0) {
        j->to_weight = sums[1] ? tp_data(sums[1]) : NULL;
        j->to_bias = sums[2] ? tp_data(sums[2]) : NULL;
        d->to_weight = sums[1], d->to_bias = sums[2], d->parts = parts;
        if (j->rows && j->n && tp_elsewhere(like[0])) status = run_elsewhere(TP_NORM_COLUMNS, d, j);
        else if (j->rows && j->n)
            status = tp_parallel_for(parts, 1 + TP_GRAIN / 2 * parts / (j->rows * j->n + 1), weight_parts, j);
    }
    for (int i = 1; i < 3; i++) {
        if (wanted[i] && status == 0) {
            tp_autoref *sum = tp_sum_dim_IntList(sums[i], TP_INTS(0), false, TP_NO_DTYPE);
            r->v[i] = sum ? tp_narrow_steal(tp_reshape(sum, shape), (tp_dtype)like[i]->dtype) : NULL;
            if (!r->v[i]) status = -1;
        }
        tp_release(sums[i]);
    }
    return status;
}

/* native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd,
 * Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_layer_norm_backward_cpu(tp_tensor *grad_out, tp_tensor *input, tp_ints normalized_shape,
                                          tp_tensor *mean, tp_tensor *rstd, tp_tensor *weight, tp_tensor *bias,
                                          tp_bools output_mask) {
    int64_t rows, n;
    tp_tensor3 r = {{NULL}};
    if (check_layer(NULL, input, normalized_shape, weight, bias, &rows, &n) < 0) return r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    tp_autoref *x = tp_plain(input, dtype), *g = tp_plain(grad_out, dtype), *w = tp_plain(weight, dtype),
               *m = tp_plain(mean, dtype), *s = tp_plain(rstd, dtype);
    if (!x || !g || !m || !s || (weight && !w)) return r;
    tp_tensor *like[] = {input, weight, bias};
    const bool wanted[] = {output_mask.data[0], output_mask.data[1] && weight, output_mask.data[2] && bias};
    job j = {.loops = loops_of(dtype),
             .input = tp_data(x),
             .grad = tp_data(g),
             .weight = w ? tp_data(w) : NULL,
             .mean = tp_data(m),
             .rstd = tp_data(s),
             .rows = rows,
             .n = n,
             .bytes = n * tp_itemsize(dtype)};
    tp_norm_job d = {.input = x, .grad = g, .weight = w, .mean = m, .rstd = s};
    if (wanted[0]) {
        if (!(r.v[0] = tp_new_empty(tp_sizes(input), dtype, input->device))) return r;
        j.out = tp_data(r.v[0]), d.out = r.v[0];
        int status = !rows || !n           ? 0
                     : tp_elsewhere(input) ? run_elsewhere(TP_NORM_BACKWARD, &d, &j)
                                           : tp_parallel_for(rows, 1 + TP_GRAIN / 4 / n, backward_rows, &j);
        if (status < 0) return release_all(&r), r;
        if (!(r.v[0] = tp_narrow_steal(r.v[0], (tp_dtype)input->dtype))) return r;
    }
    if ((wanted[1] || wanted[2]) && weight_gradients(&j, &d, dtype, normalized_shape, like, wanted, &r) < 0)
        release_all(&r);
    return r;
}

tp_tensor3 native_layer_norm_backward_meta(tp_tensor *grad_out TP_UNUSED, tp_tensor *input,
                                           tp_ints normalized_shape TP_UNUSED, tp_tensor *mean TP_UNUSED,
                                           tp_tensor *rstd TP_UNUSED, tp_tensor *weight, tp_tensor *bias,
                                           tp_bools output_mask) {
    tp_tensor3 r = {{NULL}};
    tp_tensor *like[] = {input, weight, bias};
    for (int i = 0; i < 3; i++)
        if (output_mask.data[i] && like[i] &&
            !(r.v[i] = tp_new_empty(tp_sizes(like[i]), (tp_dtype)like[i]->dtype, input->device)))
            return release_all(&r), r;
    return r;
}

/* layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool
 * cudnn_enable=True) -> Tensor */
tp_tensor *layer_norm_composite(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias,
                                double eps, bool cudnn_enable TP_UNUSED) {
    tp_tensor3 r = tp_native_layer_norm(input, normalized_shape, weight, bias, eps);
    tp_release(r.v[1]);
    tp_release(r.v[2]);
    return r.v[0];
}

/* rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor */
tp_tensor *rms_norm_composite(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_opt_float eps) {
    int64_t rows, n, dims[TP_MAX_DIMS];
    if (check_layer("rms_norm", input, normalized_shape, weight, NULL, &rows, &n) < 0) return NULL;
    for (int64_t i = 0; i < normalized_shape.size; i++) dims[i] = input->ndim - normalized_shape.size + i;
    bool is_double = input->dtype == TP_FLOAT64 || input->dtype == TP_COMPLEX128;
    double e = eps.has ? eps.value : is_double ? 0x1p-52 : 0x1p-23;
    tp_autoref *x = tp_to_dtype(input, tp_compute_dtype((tp_dtype)input->dtype), false, false, TP_NO_FORMAT);
    tp_autoref *square = x ? tp_mul_Tensor(x, x) : NULL;
    tp_autoref *sum =
        square ? tp_sum_dim_IntList(square, (tp_ints){dims, normalized_shape.size}, true, TP_NO_DTYPE) : NULL;
    tp_autoref *mean = sum ? tp_div_Scalar(sum, TP_SCALAR_F((double)n)) : NULL;
    tp_autoref *safe = mean ? tp_add_Scalar(mean, TP_SCALAR_F(e), TP_SCALAR_I(1)) : NULL,
               *root = safe ? tp_sqrt(safe) : NULL;
    tp_autoref *normed = root ? tp_div_Tensor(x, root) : NULL;
    tp_autoref *scaled = normed && weight ? tp_mul_Tensor(normed, weight) : tp_retain(normed);
    return scaled ? tp_to_dtype(scaled, (tp_dtype)input->dtype, false, false, TP_NO_FORMAT) : NULL;
}
