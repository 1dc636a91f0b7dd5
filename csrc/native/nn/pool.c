/* pool.c: pooling as operators: shapes and checks.
 *
 * Inputs are (C, ...) or (N, C, ...): only the number of planes differs. One to three dimensions are pooled; one is two
 * of which the first is of size one. The primitives see contiguous planes in their compute dtype. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "prim/transfer.h"
#include "prim/pieces.h"
#include "prim/plain.h"
#include "prim/fault.h"
#include "prim/pool.h"
#include "iter/iter.h"
#include "native/common/variants.h"
#include "native/nn/pool.h"

#include <string.h>

static int64_t at(tp_ints v, int64_t i) { return v.size == 1 ? v.data[0] : v.data[i]; }

/* ---- checks and shapes ---- */

/* What is pooled over, and what the operator is called in errors. */
typedef struct {
    const char *name;
    int dims;
    bool average;
    bool volume; /* what one volume gives has the format of a batch of one, as in PyTorch: max_pool3d */
} kind;

static int check_list(const kind *k, const char *name, tp_ints v, bool may_be_empty, int64_t low) {
    static const char *words[] = {"no", "one", "two", "three"};
    if (v.size != 1 && v.size != k->dims && !(may_be_empty && v.size == 0))
        return tp_fail(TP_RuntimeError, "%s: %s must be %sa single int, or a tuple of %s ints", k->name, name,
                       may_be_empty ? "omitted, " : "", words[k->dims]);
    for (int64_t i = 0; i < v.size; i++)
        if (v.data[i] < low && low)
            return tp_fail(TP_RuntimeError, "%s() %s must be greater than zero, but got %lld: %s should not be zero",
                           k->name, name, (long long)v.data[i], name);
        else if (v.data[i] < low)
            return tp_fail(TP_RuntimeError, "%s: pad must be non-negative, but got pad: %lld", k->name,
                           (long long)v.data[i]);
    for (int64_t i = 0; i < v.size; i++)
        if (v.data[i] > INT32_MAX)
            return tp_fail(TP_RuntimeError, "%s: %s of %lld is too large", k->name, name, (long long)v.data[i]);
    return 0;
}

int tp_check_no_empty(const char *op, const tp_tensor *self, int first) {
    for (int i = first; i < self->ndim; i++) {
        if (self->sizes[i]) continue;
        tp_autotext text = {0};
        tp_text_ints(&text, tp_sizes(self));
        return tp_fail(TP_RuntimeError,
                       "%s(): Expected input to have non-zero size for non-batch dimensions, but input has sizes %s "
                       "with dimension %d being empty",
                       op, text.text, i);
    }
    return 0;
}

static int fail_input(const kind *k, const tp_tensor *self) {
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(self));
    int least = k->dims + 1, most = k->dims + 2;
    if (self->ndim != least && self->ndim != most)
        return tp_fail(TP_RuntimeError,
                       "%s(): Expected %dD or %dD tensor, non-empty %dD or %dD (batch mode) tensor expected for input, "
                       "but got: %s",
                       k->name, least, most, least, most, text.text);
    if (k->dims == 3)
        return tp_fail(TP_RuntimeError,
                       "%s(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
                       "%s",
                       k->name, text.text);
    return tp_fail(TP_RuntimeError,
                   "%s: Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for input, but got: %s",
                   k->name, least, most, text.text);
}

static int check_input(const kind *k, const tp_tensor *self) {
    int n = self->ndim;
    bool fits = n == k->dims + 1 || n == k->dims + 2;
    for (int i = n - k->dims - 1; fits && i < n; i++) fits = self->sizes[i] > 0 && self->sizes[i] <= INT32_MAX;
    if (!fits) return fail_input(k, self);
    if (self->dtype == TP_BOOL || tp_is_complex(self))
        return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", k->name,
                       tp_scalar_type_name((tp_dtype)self->dtype));
    return 0;
}

static int64_t pooled(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
    int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    int64_t n = (room < 0 ? room - stride + 1 : room) / stride + 1;
    if (ceil_mode && (n - 1) * stride >= size + padding) n--; /* the last window has to start inside */
    return n;
}

static int fail_small(const kind *k, const tp_pool_plan *p) {
    tp_autotext in = {0}, out = {0};
    tp_text_ints(&in, (tp_ints){p->in + 3 - k->dims, k->dims});
    tp_text_ints(&out, (tp_ints){p->out + 3 - k->dims, k->dims});
    return tp_fail(TP_RuntimeError,
                   "%s: Given input size: %s. Calculated output size: %s. Output size is too small: "
                   "Invalid computed output size: %lld",
                   k->name, in.text, out.text, (long long)p->out[2]);
}

static int make_plan(tp_pool_plan *p, const kind *k, const tp_tensor *self, tp_ints kernel, tp_ints stride,
                     tp_ints padding, tp_ints dilation, bool ceil_mode) {
    if (check_list(k, "kernel_size", kernel, false, 1) < 0 || check_list(k, "stride", stride, true, 1) < 0 ||
        check_list(k, "padding", padding, false, 0) < 0 || check_list(k, "dilation", dilation, false, 1) < 0)
        return -1;
    *p = (tp_pool_plan){.dims = k->dims, .count_include_pad = true};
    int missing = 3 - k->dims;
    bool small = false;
    for (int d = 0; d < 3; d++) {
        int i = d - missing;
        bool there = i >= 0;
        p->kernel[d] = there ? at(kernel, i) : 1;
        p->stride[d] = there && stride.size ? at(stride, i) : p->kernel[d];
        p->padding[d] = there ? at(padding, i) : 0;
        p->dilation[d] = there ? at(dilation, i) : 1;
        if (p->padding[d] > ((p->kernel[d] - 1) * p->dilation[d] + 1) / 2)
            return tp_fail(TP_RuntimeError,
                           "%s: pad should be at most half of effective kernel size, but got pad=%lld, "
                           "kernel_size=%lld and dilation=%lld",
                           k->name, (long long)p->padding[d], (long long)p->kernel[d], (long long)p->dilation[d]);
    }
    if (check_input(k, self) < 0) return -1;
    for (int d = 0; d < 3; d++) {
        p->in[d] = d >= missing ? self->sizes[self->ndim - k->dims + d - missing] : 1;
        p->out[d] = pooled(p->in[d], p->kernel[d], p->stride[d], p->padding[d], p->dilation[d], ceil_mode);
        small |= p->out[d] < 1;
    }
    return small ? fail_small(k, p) : 0;
}

/* The sizes of a pooled self. */
static tp_ints sizes_of(const kind *k, const tp_tensor *self, const tp_pool_plan *p, int64_t sizes[5]) {
    memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
    memcpy(sizes + self->ndim - k->dims, p->out + 3 - k->dims, (size_t)k->dims * sizeof *sizes);
    return (tp_ints){sizes, self->ndim};
}

static int declare(tp_meta *m, int i, const tp_tensor *like, tp_ints sizes, tp_dtype dtype) {
    int64_t strides[TP_MAX_DIMS];
    if (tp_strides_for_format(sizes, tp_suggest_memory_format(like), strides) < 0) return -1;
    return tp_meta_output(m, i, sizes, (tp_ints){strides, sizes.size}, dtype, like->device);
}

static int check_gradient(const kind *k, const tp_tensor *grad, const tp_tensor *self, const tp_pool_plan *p) {
    int64_t sizes[5];
    tp_ints wanted = sizes_of(k, self, p, sizes);
    bool fits = grad->ndim == wanted.size && grad->dtype == self->dtype;
    for (int64_t i = 0; fits && i < wanted.size; i++) fits = grad->sizes[i] == sizes[i];
    if (fits) return 0;
    tp_autotext g = {0}, s = {0};
    tp_text_tensor(&g, grad);
    tp_text_tensor(&s, self);
    return tp_fail(TP_RuntimeError, "%s_backward: grad_output %s does not fit an input %s", k->name, g.text, s.text);
}

static int check_indices(const kind *k, const tp_tensor *indices, const tp_tensor *grad) {
    if (indices->dtype == TP_INT64 && tp_same_sizes(indices, grad)) return 0;
    return tp_fail(TP_RuntimeError, "%s_backward: indices must be int64 and of grad_output's sizes", k->name);
}

/* ---- over the planes ---- */

typedef enum { MAX, MAX_BACKWARD, AVERAGE, AVERAGE_BACKWARD } pooling;

static tp_dtype loop_dtype(tp_dtype d) { return tp_is_integral_dtype(d) ? TP_INT64 : tp_compute_dtype(d); }

/* The plan's lists as the primitives take them: a number for each dimension. */
#define LIST(p, name) ((tp_ints){(p)->name + 3 - (p)->dims, (p)->dims})

static int run(const tp_pool_plan *p, pooling what, tp_tensor *from, tp_tensor *to, tp_tensor *index) {
    tp_ints kernel = p->adaptive ? TP_EMPTY_INTS : LIST(p, kernel);
    switch (what) {
    case MAX: return tp_prim_pool_max(from, kernel, LIST(p, stride), LIST(p, padding), LIST(p, dilation), to, index);
    case MAX_BACKWARD:
        return tp_prim_pool_max_backward(from, index, kernel, LIST(p, stride), LIST(p, padding), LIST(p, dilation),
                                         TP_INDEX_FAULT(TP_RuntimeError, "max_pool_with_indices_backward"), to);
    case AVERAGE:
        return tp_prim_pool_average(from, kernel, LIST(p, stride), LIST(p, padding), p->count_include_pad, p->divisor,
                                    to);
    default:
        return tp_prim_pool_average_backward(from, kernel, LIST(p, stride), LIST(p, padding), p->count_include_pad,
                                             p->divisor, to);
    }
}

/* A window that lies in the padding has the least number of the loop's dtype: of integers, that of the narrower one. */
static int clamp_to(tp_tensor *maxima, tp_dtype dtype) {
    if (dtype >= TP_FLOAT16 || maxima->dtype != TP_INT64) return 0;
    bool is_signed = tp_dtype_categories[dtype] == TP_SIGNED;
    return tp_clamp_min_(maxima, TP_SCALAR_I(is_signed ? -(INT64_C(1) << (8 * tp_itemsize(dtype) - 1)) : 0));
}

typedef struct {
    const tp_pool_plan *plan;
    pooling what;
} planes;

/* parts: target (of the operator's dtype), source, index. */
static int run_planes(tp_tensor *const *parts, const void *context) {
    const planes *j = context;
    tp_tensor *target = parts[0], *index = parts[2];
    tp_dtype dtype = loop_dtype((tp_dtype)target->dtype);
    tp_autoref *from = tp_plain(parts[1], dtype);
    tp_autoref *to = tp_target(target, dtype);
    bool places = !index || tp_is_contiguous(index);
    tp_autoref *at = places ? tp_retain(index) : tp_new_empty(tp_sizes(index), TP_INT64, index->device);
    if (!from || !to || (index && !at)) return -1;
    if (run(j->plan, j->what, from, to, at) < 0 ||
        (j->what == MAX && to != target && clamp_to(to, (tp_dtype)target->dtype) < 0))
        return -1;
    if (!places && tp_copy_data(index, at) < 0) return -1;
    return tp_finish(to, target);
}

/* Computes into `target` through the loop's dtype. The places of maxima in `index` are written beside, or read: then
 * they are plain. */
static int convert_and_run(const tp_pool_plan *p, pooling what, tp_tensor *source, tp_tensor *target,
                           tp_tensor *index) {
    if (target->numel == 0) return 0;
    if (source->numel == 0) return tp_fill_data(target, TP_SCALAR_I(0)); /* a gradient that nothing flows into */
    tp_tensor *const all[] = {target, source, index};
    bool converts = loop_dtype((tp_dtype)target->dtype) != (tp_dtype)target->dtype;
    uint64_t whole = converts ? tp_last_dims(target, p->dims) : TP_WHOLE;
    return tp_by_pieces(all, TP_COUNTOF(all), whole, run_planes, &(planes){p, what});
}

/* ---- the maximum ---- */

/* As declare(), of a maximum or its gradient. */
static int declare_of_max(tp_meta *m, int i, const kind *k, tp_tensor *self, tp_ints sizes, tp_dtype dtype) {
    if (!k->volume || self->ndim != 4 || tp_is_contiguous(self)) return declare(m, i, self, sizes, dtype);
    int64_t batch[5] = {1}, strides[5];
    memcpy(batch + 1, sizes.data, 4 * sizeof *batch);
    tp_autoref *one = tp_unsqueeze(self, 0);
    if (!one) return -1;
    bool last = tp_is_contiguous_in(one, TP_CHANNELS_LAST_3D);
    if (tp_strides_for_format((tp_ints){batch, 5}, last ? TP_CHANNELS_LAST_3D : TP_CONTIGUOUS_FORMAT, strides) < 0)
        return -1;
    return tp_meta_output(m, i, sizes, (tp_ints){strides + 1, 4}, dtype, self->device);
}

static int declare_max(tp_meta *m, const kind *k, tp_tensor *self, const tp_pool_plan *p) {
    int64_t sizes[5];
    tp_ints out = sizes_of(k, self, p, sizes);
    if (declare_of_max(m, 0, k, self, out, (tp_dtype)self->dtype) < 0) return -1;
    return declare_of_max(m, 1, k, self, out, TP_INT64);
}

static int declare_max_backward(tp_meta *m, const kind *k, tp_tensor *grad, tp_tensor *self, const tp_pool_plan *p,
                                tp_tensor *indices) {
    if (check_gradient(k, grad, self, p) < 0 || check_indices(k, indices, grad) < 0) return -1;
    return declare_of_max(m, 0, k, self, tp_sizes(self), (tp_dtype)self->dtype);
}

static int max_backward(const tp_pool_plan *p, tp_tensor *grad, tp_tensor *indices, tp_tensor *grad_input) {
    tp_autoref *index = tp_plain(indices, TP_INT64);
    if (!index) return -1;
    return convert_and_run(p, MAX_BACKWARD, grad, grad_input, index);
}

/* max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool
 * ceil_mode=False) -> (Tensor, Tensor), and the same in three dimensions. */
#define MAX_POOL(n)                                                                                                   \
    static const kind max_pool##n##d = {"max_pool" #n "d", n, false, n == 3};                                         \
    int max_pool##n##d_with_indices_meta(tp_meta *m, tp_tensor *self, tp_ints kernel_size, tp_ints stride,            \
                                         tp_ints padding, tp_ints dilation, bool ceil_mode) {                         \
        tp_pool_plan p;                                                                                               \
        int status = make_plan(&p, &max_pool##n##d, self, kernel_size, stride, padding, dilation, ceil_mode);         \
        return status < 0 ? -1 : declare_max(m, &max_pool##n##d, self, &p);                                           \
    }                                                                                                                 \
    int max_pool##n##d_with_indices_dense(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding,      \
                                          tp_ints dilation, bool ceil_mode, tp_tensor *out, tp_tensor *indices) {     \
        tp_pool_plan p;                                                                                               \
        int status = make_plan(&p, &max_pool##n##d, self, kernel_size, stride, padding, dilation, ceil_mode);         \
        return status < 0 ? -1 : convert_and_run(&p, MAX, self, out, indices);                                        \
    }                                                                                                                 \
    int max_pool##n##d_with_indices_backward_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *self,                \
                                                  tp_ints kernel_size, tp_ints stride, tp_ints padding,               \
                                                  tp_ints dilation, bool ceil_mode, tp_tensor *indices) {             \
        tp_pool_plan p;                                                                                               \
        int status = make_plan(&p, &max_pool##n##d, self, kernel_size, stride, padding, dilation, ceil_mode);         \
        return status < 0 ? -1 : declare_max_backward(m, &max_pool##n##d, grad_output, self, &p, indices);            \
    }                                                                                                                 \
    int max_pool##n##d_with_indices_backward_dense(tp_tensor *grad_output, tp_tensor *self, tp_ints kernel_size,      \
                                                   tp_ints stride, tp_ints padding, tp_ints dilation, bool ceil_mode, \
                                                   tp_tensor *indices, tp_tensor *grad_input) {                       \
        tp_pool_plan p;                                                                                               \
        int status = make_plan(&p, &max_pool##n##d, self, kernel_size, stride, padding, dilation, ceil_mode);         \
        return status < 0 ? -1 : max_backward(&p, grad_output, indices, grad_input);                                  \
    }
MAX_POOL(2)
MAX_POOL(3)

/* _planes_at(Tensor self, Tensor indices, int dims=2) -> Tensor: of each plane the elements that a pooling's indices
 * name. */
tp_tensor *_planes_at_composite(tp_tensor *self, tp_tensor *indices, int64_t dims) {
    if (dims < 1 || self->ndim < dims || indices->ndim != self->ndim)
        return tp_fail_null(TP_RuntimeError, "_planes_at: planes and indices of as many dimensions are needed");
    int64_t sizes[TP_MAX_DIMS], n = indices->ndim, plane = 1;
    if (self->numel == 0) return tp_zeros(tp_sizes(indices), (tp_dtype)self->dtype, TP_NO_LAYOUT, self->device, -1);
    for (int64_t i = 0; i < n; i++) sizes[i] = i < n - dims ? indices->sizes[i] : 1;
    for (int64_t i = self->ndim - dims; i < self->ndim; i++) plane *= self->sizes[i];
    tp_autoref *numbers = tp_arange_start_step(TP_SCALAR_I(0), TP_SCALAR_I(self->numel), TP_SCALAR_I(plane), TP_INT64,
                                               TP_NO_LAYOUT, self->device, -1);
    tp_autoref *starts = numbers ? tp_view(numbers, (tp_ints){sizes, n}) : NULL;
    tp_autoref *at_all = starts ? tp_add_Tensor(indices, starts, TP_SCALAR_I(1)) : NULL;
    tp_autoref *flat = at_all ? tp_reshape(self, TP_INTS(-1)) : NULL;
    return flat ? tp_index_Tensor(flat, (tp_tensors){(tp_tensor *const[]){at_all}, 1}) : NULL;
}

/* ---- the average ---- */

static int average_plan(tp_pool_plan *p, const kind *k, const tp_tensor *self, tp_ints kernel_size, tp_ints stride,
                        tp_ints padding, bool ceil_mode, bool count_include_pad, tp_opt_int divisor_override) {
    if (divisor_override.has && divisor_override.value == 0)
        return tp_fail(TP_RuntimeError, "%s: divisor must be not zero", k->name);
    if (make_plan(p, k, self, kernel_size, stride, padding, TP_INTS(1), ceil_mode) < 0) return -1;
    if (self->dtype != TP_INT64 && !tp_is_floating(self))
        return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", k->name,
                       tp_scalar_type_name((tp_dtype)self->dtype));
    p->count_include_pad = count_include_pad;
    p->divisor = divisor_override.has ? divisor_override.value : 0;
    return 0;
}

static int declare_average(tp_meta *m, const kind *k, const tp_tensor *self, const tp_pool_plan *p) {
    int64_t sizes[5];
    return declare(m, 0, self, sizes_of(k, self, p, sizes), (tp_dtype)self->dtype);
}

static int declare_average_backward(tp_meta *m, const kind *k, tp_tensor *grad, tp_tensor *self,
                                    const tp_pool_plan *p) {
    if (check_gradient(k, grad, self, p) < 0) return -1;
    return declare(m, 0, self, tp_sizes(self), (tp_dtype)self->dtype);
}

/* avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool
 * count_include_pad=True, int? divisor_override=None) -> Tensor, and the same in three dimensions. */
#define AVG_POOL(n)                                                                                                   \
    static const kind avg_pool##n##d = {"avg_pool" #n "d", n, true, false};                                           \
    int avg_pool##n##d_meta(tp_meta *m, tp_tensor *self, tp_ints kernel, tp_ints stride, tp_ints padding, bool ceil,  \
                            bool count, tp_opt_int divisor) {                                                         \
        tp_pool_plan p;                                                                                               \
        int status = average_plan(&p, &avg_pool##n##d, self, kernel, stride, padding, ceil, count, divisor);          \
        return status < 0 ? -1 : declare_average(m, &avg_pool##n##d, self, &p);                                       \
    }                                                                                                                 \
    int avg_pool##n##d_dense(tp_tensor *self, tp_ints kernel, tp_ints stride, tp_ints padding, bool ceil, bool count, \
                             tp_opt_int divisor, tp_tensor *out) {                                                    \
        tp_pool_plan p;                                                                                               \
        int status = average_plan(&p, &avg_pool##n##d, self, kernel, stride, padding, ceil, count, divisor);          \
        return status < 0 ? -1 : convert_and_run(&p, AVERAGE, self, out, NULL);                                       \
    }                                                                                                                 \
    int avg_pool##n##d_backward_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *self, tp_ints kernel,             \
                                     tp_ints stride, tp_ints padding, bool ceil, bool count, tp_opt_int divisor) {    \
        tp_pool_plan p;                                                                                               \
        int status = average_plan(&p, &avg_pool##n##d, self, kernel, stride, padding, ceil, count, divisor);          \
        return status < 0 ? -1 : declare_average_backward(m, &avg_pool##n##d, grad_output, self, &p);                 \
    }                                                                                                                 \
    int avg_pool##n##d_backward_dense(tp_tensor *grad_output, tp_tensor *self, tp_ints kernel, tp_ints stride,        \
                                      tp_ints padding, bool ceil, bool count, tp_opt_int divisor,                     \
                                      tp_tensor *grad_input) {                                                        \
        tp_pool_plan p;                                                                                               \
        int status = average_plan(&p, &avg_pool##n##d, self, kernel, stride, padding, ceil, count, divisor);          \
        return status < 0 ? -1 : convert_and_run(&p, AVERAGE_BACKWARD, grad_output, grad_input, NULL);                \
    }
AVG_POOL(2)
AVG_POOL(3)

/* ---- to a given size ---- */

/* Batches may be empty; so may channels where the mean is of each plane alone. */
static int check_adaptive_input(const kind *k, const tp_tensor *self) {
    int least = k->dims + 1, most = k->dims + 2, n = self->ndim;
    tp_autotext text = {0};
    if (n != least && n != most) {
        tp_text_ints(&text, tp_sizes(self));
        return tp_fail(TP_RuntimeError, "%s(): Expected %dD or %dD tensor, but got%s %s", k->name, least, most,
                       k->average ? "" : ":", text.text);
    }
    for (int i = n - k->dims - 1; i < n; i++)
        if (self->sizes[i] > INT32_MAX) return fail_input(k, self);
    return tp_check_no_empty(k->name, self, k->average && k->dims == 2 ? n - 2 : 1);
}

static int adaptive_plan(tp_pool_plan *p, const kind *k, const tp_tensor *self, tp_ints output_size) {
    if (output_size.size != k->dims)
        return tp_fail(TP_RuntimeError,
                       k->average ? "%s: output_size must be %d"
                                  : "%s(): internal error: output_size.size() must be %d",
                       k->name, k->dims);
    if (check_adaptive_input(k, self) < 0) return -1;
    if (!tp_is_floating(self))
        return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", k->name,
                       tp_scalar_type_name((tp_dtype)self->dtype));
    *p = (tp_pool_plan){.dims = k->dims, .adaptive = true, .in = {1, 1, 1}, .out = {1, 1, 1}};
    for (int i = 0; i < k->dims; i++) {
        int d = 3 - k->dims + i;
        p->in[d] = self->sizes[self->ndim - k->dims + i];
        p->out[d] = at(output_size, i);
        if (p->out[d] < 0)
            return tp_fail(TP_RuntimeError, "%s: elements of output_size must be greater than or equal to 0%s", k->name,
                           k->average ? "" : ": Trying to create tensor with negative dimension");
    }
    return 0;
}

/* The plan of a gradient: the sizes at its end are the output's. An output without elements has no gradient. */
static int adaptive_plan_of(tp_pool_plan *p, const kind *k, const tp_tensor *grad, const tp_tensor *self) {
    for (int i = 1; i < grad->ndim; i++) {
        if (grad->sizes[i] > 0) continue;
        tp_autotext found = {0};
        tp_text_ints(&found, tp_sizes(grad));
        return tp_fail(TP_RuntimeError,
                       "%s_backward(): Expected grad_output to have non-zero size for non-batch dimensions, but "
                       "grad_output has sizes %s with dimension %d being empty",
                       k->name, found.text, i);
    }
    if (grad->ndim != self->ndim || grad->ndim < k->dims + 1)
        return tp_fail(TP_RuntimeError, "%s_backward: grad_output must have %d or %d dimensions, as the input", k->name,
                       k->dims + 1, k->dims + 2);
    if (adaptive_plan(p, k, self, (tp_ints){grad->sizes + grad->ndim - k->dims, k->dims}) < 0) return -1;
    return check_gradient(k, grad, self, p);
}

static const kind adaptive_avg[] = {[2] = {"adaptive_avg_pool2d", 2, true, false},
                                    [3] = {"adaptive_avg_pool3d", 3, true, false}};
static const kind adaptive_max[] = {[2] = {"adaptive_max_pool2d", 2, false, false},
                                    [3] = {"adaptive_max_pool3d", 3, false, false}};

/* One window, which is all of a plane: a reduction is faster. */
static int average_planes(int dims, tp_tensor *self, tp_tensor *out) {
    static const int64_t last[] = {-1, -2, -3};
    return tp_mean_out(self, (tp_ints){last, dims}, true, TP_NO_DTYPE, out);
}

static tp_tensor *adaptive_average(int dims, tp_tensor *self, tp_ints output_size) {
    tp_pool_plan p;
    int64_t sizes[5];
    const kind *k = adaptive_avg + dims;
    if (adaptive_plan(&p, k, self, output_size) < 0) return NULL;
    tp_autoref *out = tp_new_empty_format(sizes_of(k, self, &p, sizes), (tp_dtype)self->dtype, self->device,
                                          tp_suggest_memory_format(self));
    if (!out) return NULL;
    int status = 0;
    bool one = p.out[0] == 1 && p.out[1] == 1 && p.out[2] == 1;
    if (one && self->numel) status = average_planes(dims, self, out);
    else status = convert_and_run(&p, AVERAGE, self, out, NULL);
    return status == 0 ? tp_take(out) : NULL;
}

static tp_tensor *adaptive_average_backward(int dims, tp_tensor *grad, tp_tensor *self) {
    tp_pool_plan p;
    if (adaptive_plan_of(&p, adaptive_avg + dims, grad, self) < 0) return NULL;
    tp_autoref *out =
        tp_new_empty_format(tp_sizes(self), (tp_dtype)self->dtype, self->device, tp_suggest_memory_format(self));
    if (!out || convert_and_run(&p, AVERAGE_BACKWARD, grad, out, NULL) < 0) return NULL;
    return tp_take(out);
}

/* _adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor, and in three dimensions. */
#define ADAPTIVE_AVG(n)                                                                           \
    tp_tensor *_adaptive_avg_pool##n##d_dense(tp_tensor *self, tp_ints output_size) {             \
        return adaptive_average(n, self, output_size);                                            \
    }                                                                                             \
    tp_tensor *_adaptive_avg_pool##n##d_backward_dense(tp_tensor *grad_output, tp_tensor *self) { \
        return adaptive_average_backward(n, grad_output, self);                                   \
    }                                                                                             \
    tp_tensor *adaptive_avg_pool##n##d_composite(tp_tensor *self, tp_ints output_size) {          \
        return tp__adaptive_avg_pool##n##d(self, output_size);                                    \
    }
ADAPTIVE_AVG(2)
ADAPTIVE_AVG(3)

/* adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor), and in three dimensions. */
#define ADAPTIVE_MAX(n)                                                                                           \
    int adaptive_max_pool##n##d_meta(tp_meta *m, tp_tensor *self, tp_ints output_size) {                          \
        tp_pool_plan p;                                                                                           \
        return adaptive_plan(&p, adaptive_max + n, self, output_size) < 0                                         \
                   ? -1                                                                                           \
                   : declare_max(m, adaptive_max + n, self, &p);                                                  \
    }                                                                                                             \
    int adaptive_max_pool##n##d_dense(tp_tensor *self, tp_ints output_size, tp_tensor *out, tp_tensor *indices) { \
        tp_pool_plan p;                                                                                           \
        return adaptive_plan(&p, adaptive_max + n, self, output_size) < 0                                         \
                   ? -1                                                                                           \
                   : convert_and_run(&p, MAX, self, out, indices);                                                \
    }                                                                                                             \
    int adaptive_max_pool##n##d_backward_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *self,                \
                                              tp_tensor *indices) {                                               \
        tp_pool_plan p;                                                                                           \
        int status = adaptive_plan_of(&p, adaptive_max + n, grad_output, self);                                   \
        return status < 0 ? -1 : declare_max_backward(m, adaptive_max + n, grad_output, self, &p, indices);       \
    }                                                                                                             \
    int adaptive_max_pool##n##d_backward_dense(tp_tensor *grad_output, tp_tensor *self, tp_tensor *indices,       \
                                               tp_tensor *grad_input) {                                           \
        tp_pool_plan p;                                                                                           \
        int status = adaptive_plan_of(&p, adaptive_max + n, grad_output, self);                                   \
        return status < 0 ? -1 : max_backward(&p, grad_output, indices, grad_input);                              \
    }
ADAPTIVE_MAX(2)
ADAPTIVE_MAX(3)

/* adaptive_avg_pool3d_backward.grad_input(Tensor grad_output, Tensor self, *, Tensor(a!) grad_input) -> Tensor(a!) */
int adaptive_avg_pool3d_backward_into(tp_tensor *grad_output, tp_tensor *self, tp_tensor *grad_input) {
    tp_autoref *made = tp__adaptive_avg_pool3d_backward(grad_output, self);
    return made ? tp_copy_into_out(grad_input, made) : -1;
}
