/* pool.c: 2-dimensional pooling as operators: shapes and checks; the loops over one plane are in cpu/pool.c.
 *
 * Inputs are (C, H, W) or (N, C, H, W): only the number of planes differs. Kernels see contiguous planes in their
 * compute dtype. */
#include "cpu/pool.h"

#include "NativeFunctions.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "native/plain.h"

#include <string.h>

static int64_t at(tp_ints v, int64_t i) { return v.size == 1 ? v.data[0] : v.data[i]; }

/* ---- checks and shapes ---- */

static int check_pair(const char *op, const char *name, tp_ints v, bool may_be_empty, int64_t low) {
    if (v.size != 1 && v.size != 2 && !(may_be_empty && v.size == 0))
        return tp_fail(TP_RuntimeError, "%s: %s must be %sa single int, or a tuple of two ints", op, name,
                       may_be_empty ? "omitted, " : "");
    for (int64_t i = 0; i < v.size; i++)
        if (v.data[i] < low)
            return tp_fail(TP_RuntimeError, "%s: %s should be %s, but got %lld", op, name,
                           low ? "greater than zero" : "non-negative", (long long)v.data[i]);
    for (int64_t i = 0; i < v.size; i++)
        if (v.data[i] > INT32_MAX)
            return tp_fail(TP_RuntimeError, "%s: %s of %lld is too large", op, name, (long long)v.data[i]);
    return 0;
}

static int fail_input(const char *op, const tp_tensor *self) {
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(self));
    return tp_fail(TP_RuntimeError,
                   "%s: Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got: %s",
                   op, text.text);
}

static int check_input(const char *op, const tp_tensor *self) {
    int n = self->ndim;
    if (n != 3 && n != 4) return fail_input(op, self);
    for (int i = n - 3; i < n; i++)
        if (self->sizes[i] == 0 || self->sizes[i] > INT32_MAX) return fail_input(op, self);
    if (self->dtype == TP_BOOL || tp_is_complex(self))
        return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                       tp_scalar_type_name((tp_dtype)self->dtype));
    return 0;
}

static int64_t pooled(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
    int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    int64_t n = (room < 0 ? room - stride + 1 : room) / stride + 1;
    if (ceil_mode && (n - 1) * stride >= size + padding) n--; /* the last window has to start inside */
    return n;
}

static int make_plan(tp_pool_plan *p, const char *op, const tp_tensor *self, tp_ints kernel, tp_ints stride,
                     tp_ints padding, tp_ints dilation, bool ceil_mode) {
    if (check_pair(op, "kernel_size", kernel, false, 1) < 0 || check_pair(op, "stride", stride, true, 1) < 0 ||
        check_pair(op, "padding", padding, false, 0) < 0 || check_pair(op, "dilation", dilation, false, 1) < 0 ||
        check_input(op, self) < 0)
        return -1;
    *p = (tp_pool_plan){.count_include_pad = true};
    for (int d = 0; d < 2; d++) {
        p->in[d] = self->sizes[self->ndim - 2 + d];
        p->kernel[d] = at(kernel, d);
        p->stride[d] = stride.size ? at(stride, d) : p->kernel[d];
        p->padding[d] = at(padding, d);
        p->dilation[d] = at(dilation, d);
        if (p->padding[d] > p->kernel[d] / 2)
            return tp_fail(TP_RuntimeError,
                           "%s: pad should be at most half of effective kernel size, but got pad=%lld, "
                           "kernel_size=%lld and dilation=%lld",
                           op, (long long)p->padding[d], (long long)p->kernel[d], (long long)p->dilation[d]);
        p->out[d] = pooled(p->in[d], p->kernel[d], p->stride[d], p->padding[d], p->dilation[d], ceil_mode);
    }
    if (p->out[0] < 1 || p->out[1] < 1)
        return tp_fail(
            TP_RuntimeError,
            "%s: Given input size: (%lldx%lld). Calculated output size: (%lldx%lld). Output size is too small", op,
            (long long)p->in[0], (long long)p->in[1], (long long)p->out[0], (long long)p->out[1]);
    return 0;
}

static int declare(tp_meta *m, int i, const tp_tensor *self, const tp_pool_plan *p, tp_dtype dtype) {
    int64_t sizes[4], strides[4];
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    sizes[self->ndim - 2] = p->out[0], sizes[self->ndim - 1] = p->out[1];
    tp_contiguous_strides((tp_ints){sizes, self->ndim}, strides);
    return tp_meta_output(m, i, (tp_ints){sizes, self->ndim}, (tp_ints){strides, self->ndim}, dtype, self->device);
}

static int declare_like(tp_meta *m, const tp_tensor *self) {
    int64_t strides[TP_MAX_DIMS];
    tp_contiguous_strides(tp_sizes(self), strides);
    return tp_meta_output(m, 0, tp_sizes(self), (tp_ints){strides, self->ndim}, (tp_dtype)self->dtype, self->device);
}

static int check_gradient(const char *op, const tp_tensor *grad, const tp_tensor *self, const tp_pool_plan *p) {
    int n = self->ndim;
    bool fits = grad->ndim == n && grad->sizes[n - 1] == p->out[1] && grad->sizes[n - 2] == p->out[0];
    for (int i = 0; fits && i < n - 2; i++) fits = grad->sizes[i] == self->sizes[i];
    if (fits && grad->dtype == self->dtype) return 0;
    tp_autotext g = {0}, s = {0};
    tp_text_tensor(&g, grad);
    tp_text_tensor(&s, self);
    return tp_fail(TP_RuntimeError, "%s: grad_output %s does not fit an input %s", op, g.text, s.text);
}

/* ---- over the planes ---- */

typedef struct {
    const tp_pool_plan *plan;
    char *in, *out;
    int64_t *index;
    int64_t item;
    int type;
    enum { MAX, MAX_22, MAX_BACKWARD, AVERAGE, AVERAGE_BACKWARD } what;
} job;

static void run_planes(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const tp_pool_plan *p = j->plan;
    const tp_pool_kernels *k = tp_cpu.pool;
    int64_t n_in = p->in[0] * p->in[1], n_out = p->out[0] * p->out[1];
    for (int64_t i = begin; i < end; i++) {
        char *in = j->in + i * n_in * j->item, *out = j->out + i * n_out * j->item;
        int64_t *index = j->index ? j->index + i * n_out : NULL;
        switch (j->what) {
        case MAX: k->max[j->type](p, in, out, index); break;
        case MAX_22: k->max22[j->type](p, in, out, index); break;
        case MAX_BACKWARD: k->max_backward[j->type](p, out, index, in); break;
        default: k->average[j->type](p, in, out, j->what == AVERAGE_BACKWARD); break;
        }
    }
}

static tp_dtype loop_dtype(tp_dtype d) { return tp_is_integral_dtype(d) ? TP_INT64 : tp_compute_dtype(d); }

static int run(const tp_pool_plan *p, int what, tp_tensor *in, tp_tensor *out, tp_tensor *index) {
    int type = in->dtype == TP_FLOAT32 ? TP_POOL_F32 : in->dtype == TP_FLOAT64 ? TP_POOL_F64 : TP_POOL_I64;
    job j = {p, tp_data(in), tp_data(out), index ? tp_data(index) : NULL, tp_itemsize((tp_dtype)in->dtype), type, what};
    int64_t planes = in->numel / (p->in[0] * p->in[1]);
    int64_t window = p->adaptive ? 1 : p->kernel[0] * p->kernel[1];
    int64_t work = p->out[0] * p->out[1] * window + p->in[0] * p->in[1];
    return tp_parallel_for(planes, 1 + TP_GRAIN / work, run_planes, &j);
}

/* Computes into `target` (the operator's dtype) through the loop's dtype. `source` is read, `index` already plain. */
static int convert_and_run(const tp_pool_plan *p, int what, tp_tensor *source, tp_tensor *target, tp_tensor *index,
                           bool source_is_in) {
    if (target->numel == 0) return 0;
    tp_dtype dtype = loop_dtype((tp_dtype)target->dtype);
    tp_autoref *from = tp_plain(source, dtype);
    bool direct = (tp_dtype)target->dtype == dtype && tp_is_contiguous(target);
    tp_autoref *to = direct ? tp_retain(target) : tp_new_empty(tp_sizes(target), dtype, target->device);
    if (!from || !to) return -1;
    if (run(p, what, source_is_in ? from : to, source_is_in ? to : from, index) < 0) return -1;
    return direct ? 0 : tp_copy_data(target, to);
}

/* ---- the maximum ---- */

/* max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool
 * ceil_mode=False) -> (Tensor, Tensor) */
int max_pool2d_with_indices_meta(tp_meta *m, tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding,
                                 tp_ints dilation, bool ceil_mode) {
    tp_pool_plan p;
    if (make_plan(&p, "max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode) < 0) return -1;
    return declare(m, 0, self, &p, (tp_dtype)self->dtype) < 0 ? -1 : declare(m, 1, self, &p, TP_INT64);
}

int max_pool2d_with_indices_cpu(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding, tp_ints dilation,
                                bool ceil_mode, tp_tensor *out, tp_tensor *indices) {
    tp_pool_plan p;
    if (make_plan(&p, "max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode) < 0) return -1;
    bool plain = true;
    for (int d = 0; d < 2; d++)
        plain = plain && p.kernel[d] == 2 && p.stride[d] == 2 && p.dilation[d] == 1 && !p.padding[d] &&
                2 * p.out[d] <= p.in[d];
    return convert_and_run(&p, plain ? MAX_22 : MAX, self, out, indices, true);
}

int max_pool2d_with_indices_backward_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *self, tp_ints kernel_size,
                                          tp_ints stride, tp_ints padding, tp_ints dilation, bool ceil_mode,
                                          tp_tensor *indices) {
    tp_pool_plan p;
    if (make_plan(&p, "max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode) < 0) return -1;
    if (check_gradient("max_pool2d_with_indices_backward", grad_output, self, &p) < 0) return -1;
    if (indices->dtype != TP_INT64 || !tp_same_sizes(indices, grad_output))
        return tp_fail(TP_RuntimeError,
                       "max_pool2d_with_indices_backward: indices must be int64 and of grad_output's sizes");
    return declare_like(m, self);
}

int max_pool2d_with_indices_backward_cpu(tp_tensor *grad_output, tp_tensor *self, tp_ints kernel_size, tp_ints stride,
                                         tp_ints padding, tp_ints dilation, bool ceil_mode, tp_tensor *indices,
                                         tp_tensor *grad_input) {
    tp_pool_plan p;
    if (make_plan(&p, "max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode) < 0) return -1;
    tp_autoref *index = tp_plain(indices, TP_INT64);
    const int64_t *v = index ? tp_data(index) : NULL, plane = p.in[0] * p.in[1];
    for (int64_t i = 0; index && i < index->numel; i++)
        if (v[i] < 0 || v[i] >= plane)
            return tp_fail(TP_RuntimeError, "max_pool2d_with_indices_backward: index %lld is outside a plane of %lld",
                           (long long)v[i], (long long)plane);
    return index ? convert_and_run(&p, MAX_BACKWARD, grad_output, grad_input, index, false) : -1;
}

/* _planes_at(Tensor self, Tensor indices) -> Tensor: of each plane the elements that a pooling's indices name. */
tp_tensor *_planes_at_composite(tp_tensor *self, tp_tensor *indices) {
    if (self->ndim < 2 || indices->ndim != self->ndim)
        return tp_fail_null(TP_RuntimeError, "_planes_at: planes and indices of as many dimensions are needed");
    int64_t sizes[TP_MAX_DIMS], n = indices->ndim, plane = self->sizes[self->ndim - 1] * self->sizes[self->ndim - 2];
    if (self->numel == 0) return tp_zeros(tp_sizes(indices), (tp_dtype)self->dtype, TP_NO_LAYOUT, self->device, -1);
    for (int64_t i = 0; i < n; i++) sizes[i] = i < n - 2 ? indices->sizes[i] : 1;
    tp_autoref *numbers = tp_arange_start_step(TP_SCALAR_I(0), TP_SCALAR_I(self->numel), TP_SCALAR_I(plane), TP_INT64,
                                               TP_NO_LAYOUT, self->device, -1);
    tp_autoref *starts = numbers ? tp_view(numbers, (tp_ints){sizes, n}) : NULL;
    tp_autoref *at_all = starts ? tp_add_Tensor(indices, starts, TP_SCALAR_I(1)) : NULL;
    tp_autoref *flat = at_all ? tp_reshape(self, TP_INTS(-1)) : NULL;
    return flat ? tp_index_Tensor(flat, (tp_tensors){(tp_tensor *const[]){at_all}, 1}) : NULL;
}

/* ---- the average ---- */

static int average_plan(tp_pool_plan *p, const tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding,
                        bool ceil_mode, bool count_include_pad, tp_opt_int divisor_override) {
    if (divisor_override.has && divisor_override.value == 0)
        return tp_fail(TP_RuntimeError, "avg_pool2d: divisor must be not zero");
    if (make_plan(p, "avg_pool2d", self, kernel_size, stride, padding, TP_INTS(1, 1), ceil_mode) < 0) return -1;
    p->count_include_pad = count_include_pad;
    p->divisor = divisor_override.has ? divisor_override.value : 0;
    return 0;
}

/* avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool
 * count_include_pad=True, int? divisor_override=None) -> Tensor */
int avg_pool2d_meta(tp_meta *m, tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding, bool ceil_mode,
                    bool count_include_pad, tp_opt_int divisor_override) {
    tp_pool_plan p;
    if (average_plan(&p, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) < 0)
        return -1;
    return declare(m, 0, self, &p, (tp_dtype)self->dtype);
}

int avg_pool2d_cpu(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding, bool ceil_mode,
                   bool count_include_pad, tp_opt_int divisor_override, tp_tensor *out) {
    tp_pool_plan p;
    if (average_plan(&p, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) < 0)
        return -1;
    return convert_and_run(&p, AVERAGE, self, out, NULL, true);
}

int avg_pool2d_backward_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *self, tp_ints kernel_size, tp_ints stride,
                             tp_ints padding, bool ceil_mode, bool count_include_pad, tp_opt_int divisor_override) {
    tp_pool_plan p;
    if (average_plan(&p, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) < 0)
        return -1;
    return check_gradient("avg_pool2d_backward", grad_output, self, &p) < 0 ? -1 : declare_like(m, self);
}

int avg_pool2d_backward_cpu(tp_tensor *grad_output, tp_tensor *self, tp_ints kernel_size, tp_ints stride,
                            tp_ints padding, bool ceil_mode, bool count_include_pad, tp_opt_int divisor_override,
                            tp_tensor *grad_input) {
    tp_pool_plan p;
    if (average_plan(&p, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) < 0)
        return -1;
    return convert_and_run(&p, AVERAGE_BACKWARD, grad_output, grad_input, NULL, false);
}

/* ---- to a given size ---- */

static int adaptive_plan(tp_pool_plan *p, const tp_tensor *self, tp_ints output_size) {
    if (output_size.size != 2 && output_size.size != 1)
        return tp_fail(TP_RuntimeError, "adaptive_avg_pool2d: output_size must be 2");
    if (check_input("adaptive_avg_pool2d", self) < 0) return -1;
    *p = (tp_pool_plan){.adaptive = true};
    for (int d = 0; d < 2; d++) {
        p->in[d] = self->sizes[self->ndim - 2 + d];
        p->out[d] = at(output_size, d);
        if (p->out[d] < 0)
            return tp_fail(TP_RuntimeError,
                           "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0");
    }
    return 0;
}

tp_tensor *_adaptive_avg_pool2d_meta(tp_tensor *self, tp_ints output_size) {
    tp_pool_plan p;
    if (adaptive_plan(&p, self, output_size) < 0) return NULL;
    int64_t sizes[4];
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    sizes[self->ndim - 2] = p.out[0], sizes[self->ndim - 1] = p.out[1];
    return tp_new_empty((tp_ints){sizes, self->ndim}, (tp_dtype)self->dtype, self->device);
}

/* _adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor */
tp_tensor *_adaptive_avg_pool2d_cpu(tp_tensor *self, tp_ints output_size) {
    tp_pool_plan p;
    tp_autoref *out = _adaptive_avg_pool2d_meta(self, output_size);
    if (!out || adaptive_plan(&p, self, output_size) < 0) return NULL;
    return convert_and_run(&p, AVERAGE, self, out, NULL, true) == 0 ? tp_take(out) : NULL;
}

tp_tensor *_adaptive_avg_pool2d_backward_meta(tp_tensor *grad_output, tp_tensor *self) {
    tp_pool_plan p;
    if (grad_output->ndim < 2)
        return tp_fail_null(TP_RuntimeError, "adaptive_avg_pool2d_backward: grad_output must have 3 or 4 dimensions");
    if (adaptive_plan(&p, self, (tp_ints){grad_output->sizes + grad_output->ndim - 2, 2}) < 0) return NULL;
    if (check_gradient("adaptive_avg_pool2d_backward", grad_output, self, &p) < 0) return NULL;
    return tp_new_empty(tp_sizes(self), (tp_dtype)self->dtype, self->device);
}

tp_tensor *_adaptive_avg_pool2d_backward_cpu(tp_tensor *grad_output, tp_tensor *self) {
    tp_pool_plan p;
    tp_autoref *out = _adaptive_avg_pool2d_backward_meta(grad_output, self);
    if (!out || adaptive_plan(&p, self, (tp_ints){grad_output->sizes + grad_output->ndim - 2, 2}) < 0) return NULL;
    return convert_and_run(&p, AVERAGE_BACKWARD, grad_output, out, NULL, false) == 0 ? tp_take(out) : NULL;
}

/* adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor */
tp_tensor *adaptive_avg_pool2d_composite(tp_tensor *self, tp_ints output_size) {
    return tp__adaptive_avg_pool2d(self, output_size);
}
