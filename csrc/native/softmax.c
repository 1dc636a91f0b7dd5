/* softmax.c: softmax and log_softmax as operators; the loops are in cpu/softmax.c. */
#include "cpu/softmax.h"

#include "NativeFunctions.h"
#include "core/host.h"
#include "core/parallel.h"
#include "cpu/copy.h"
#include "cpu/kernels.h"
#include "native/device_kernels.h"
#include "native/plain.h"

#include <math.h>
#include <string.h>

static int declare(tp_meta *m, const tp_tensor *self, tp_dtype dtype) {
    int64_t strides[TP_MAX_DIMS];
    tp_contiguous_strides(tp_sizes(self), strides);
    return tp_meta_output(m, 0, tp_sizes(self), (tp_ints){strides, self->ndim}, dtype, self->device);
}

static int forward_meta(tp_meta *m, const char *op, tp_tensor *self, int64_t dim, bool half_to_float) {
    if (half_to_float) return tp_fail(TP_RuntimeError, "%s with half to float conversion is not supported on CPU", op);
    if (!tp_is_floating(self))
        return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                       tp_scalar_type_name((tp_dtype)self->dtype));
    return tp_wrap_dim(dim, self->ndim) < 0 ? -1 : declare(m, self, (tp_dtype)self->dtype);
}

typedef struct {
    const void *in, *other;
    void *out;
    int64_t n, inner;
    bool log, backward;
    const tp_softmax_loops *loops;
} job;

static void run_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    if (j->backward) j->loops->backward(j->in, j->other, j->out, j->n, j->inner, begin, end, j->log);
    else j->loops->forward(j->in, j->out, j->n, j->inner, begin, end, j->log);
}

/* in: self, or the gradient with `output` the forward's result. */
static int run(tp_tensor *in, tp_tensor *output, int64_t dim, tp_tensor *out, bool log) {
    if (out->numel == 0) return 0;
    if (tp_elsewhere(out)) {
        const tp_device_kernels *k = tp_device_kernels_of(out->device);
        return k ? k->softmax(in, output, tp_wrap_dim(dim, in->ndim), out, log) : -1;
    }
    tp_dtype dtype = tp_compute_dtype((tp_dtype)in->dtype);
    tp_autoref *a = tp_plain(in, dtype), *b = tp_plain(output, dtype);
    bool direct = (tp_dtype)out->dtype == dtype && tp_is_contiguous(out);
    tp_autoref *target = direct ? tp_retain(out) : tp_new_empty(tp_sizes(out), dtype, out->device);
    if (!a || !target || (output && !b)) return -1;
    job j = {tp_data(a),
             b ? tp_data(b) : NULL,
             tp_data(target),
             1,
             1,
             log,
             b != NULL,
             dtype == TP_FLOAT32 ? &tp_cpu.softmax->f32 : &tp_cpu.softmax->f64};
    int64_t d = tp_wrap_dim(dim, in->ndim);
    if (in->ndim) j.n = in->sizes[d];
    for (int64_t i = d + 1; i < in->ndim; i++) j.inner *= in->sizes[i];
    void *host = in->numel > 100000 ? tp_host_lock_release() : NULL;
    int status = tp_parallel_for(in->numel / j.n, 1 + TP_GRAIN / 4 / j.n, run_rows, &j);
    if (in->numel > 100000) tp_host_lock_acquire(host);
    return status < 0 || direct ? status : tp_copy_data(out, target);
}

/* _softmax(Tensor self, int dim, bool half_to_float) -> Tensor */
int _softmax_meta(tp_meta *m, tp_tensor *self, int64_t dim, bool half_to_float) {
    return forward_meta(m, "softmax", self, dim, half_to_float);
}
int _softmax_cpu(tp_tensor *self, int64_t dim, bool half_to_float TP_UNUSED, tp_tensor *out) {
    return run(self, NULL, dim, out, false);
}
int _log_softmax_meta(tp_meta *m, tp_tensor *self, int64_t dim, bool half_to_float) {
    return forward_meta(m, "log_softmax", self, dim, half_to_float);
}
int _log_softmax_cpu(tp_tensor *self, int64_t dim, bool half_to_float TP_UNUSED, tp_tensor *out) {
    return run(self, NULL, dim, out, true);
}

/* ---- gradients ---- */

static int backward_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *output, int64_t dim, tp_dtype input_dtype) {
    if (!tp_same_sizes(grad_output, output))
        return tp_fail(TP_RuntimeError, "softmax_backward: grad_output and output differ in size");
    if (!tp_is_floating(grad_output) || !tp_is_floating(output))
        return tp_fail(TP_RuntimeError, "softmax_backward: expected floating tensors");
    return tp_wrap_dim(dim, output->ndim) < 0
               ? -1
               : declare(m, output, input_dtype == TP_NO_DTYPE ? (tp_dtype)grad_output->dtype : input_dtype);
}
int _softmax_backward_data_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *output, int64_t dim,
                                tp_dtype input_dtype) {
    return backward_meta(m, grad_output, output, dim, input_dtype);
}
int _softmax_backward_data_cpu(tp_tensor *grad_output, tp_tensor *output, int64_t dim, tp_dtype input_dtype TP_UNUSED,
                               tp_tensor *grad_input) {
    return run(grad_output, output, dim, grad_input, false);
}
int _log_softmax_backward_data_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *output, int64_t dim,
                                    tp_dtype input_dtype) {
    return backward_meta(m, grad_output, output, dim, input_dtype);
}
int _log_softmax_backward_data_cpu(tp_tensor *grad_output, tp_tensor *output, int64_t dim,
                                   tp_dtype input_dtype TP_UNUSED, tp_tensor *out) {
    return run(grad_output, output, dim, out, true);
}

/* ---- the user's forms ---- */

static tp_tensor *in_dtype(tp_tensor *self, tp_dtype dtype) {
    return dtype == TP_NO_DTYPE ? tp_retain(self) : tp_to_dtype(self, dtype, false, false, TP_NO_FORMAT);
}

/* softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor */
tp_tensor *softmax_int_composite(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    tp_autoref *t = in_dtype(self, dtype);
    return t ? tp__softmax(t, dim, false) : NULL;
}

/* log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor */
tp_tensor *log_softmax_int_composite(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    tp_autoref *t = in_dtype(self, dtype);
    return t ? tp__log_softmax(t, dim, false) : NULL;
}

/* _safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor: zeros where all of a row is -inf. */
tp_tensor *_safe_softmax_composite(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    tp_autoref *out = tp_softmax_int(self, dim, dtype);
    tp_autoref *hidden = out ? tp_eq_Scalar(self, TP_SCALAR_F(-INFINITY)) : NULL,
               *rows = hidden ? tp_all_dim(hidden, dim, true) : NULL;
    return rows ? tp_masked_fill_Scalar(out, rows, TP_SCALAR_I(0)) : NULL;
}
