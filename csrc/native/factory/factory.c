/* factory.c: tensors made from sizes, or from ends and a step: empty, zeros, ones, full and their *_like forms; arange
 * and range. */
#include "NativeFunctions.h"
#include "iter/iter.h"
#include "native/common/pin.h"
#include "native/factory/range.h"
#include "native/layout/layout.h"
#include "native/common/unset.h"

#include <math.h>
#include <string.h>

static tp_dtype or_default(tp_dtype dtype) { return dtype == TP_NO_DTYPE ? tp_default_dtype() : dtype; }
static tp_device device_or_default(tp_device d) { return d.type < 0 ? tp_default_device() : d; }

static int check_layout(const char *op, tp_layout layout) {
    if (layout == TP_NO_LAYOUT || layout == TP_STRIDED) return 0;
    return tp_fail(TP_RuntimeError, "%s: only the strided layout is supported", op);
}

static tp_tensor *pinned_in_format(const char *op, tp_ints size, tp_dtype dtype, tp_device device,
                                   tp_memory_format format) {
    int64_t strides[TP_MAX_DIMS];
    if (tp_checked_numel(size) < 0) return NULL;
    if (format == TP_NO_FORMAT) format = TP_CONTIGUOUS_FORMAT;
    if (tp_strides_for_format(size, format, strides) < 0) return NULL;
    return tp_new_pinned(op, size, (tp_ints){strides, size.size}, dtype, device);
}

tp_tensor *empty_memory_format(tp_ints size, tp_dtype dtype, tp_layout layout, tp_device device, tp_opt_bool pin_memory,
                               tp_memory_format memory_format) {
    if (layout >= TP_SPARSE_COO) return tp_empty_of_layout(size, layout, or_default(dtype), device_or_default(device));
    if (memory_format == TP_PRESERVE_FORMAT)
        return tp_fail_null(TP_RuntimeError, "empty: memory_format preserve_format needs a tensor to preserve it from");
    if (tp_unlikely(pin_memory == 1))
        return tp_unset_steal(
            pinned_in_format("empty", size, or_default(dtype), device_or_default(device), memory_format));
    if (memory_format == TP_NO_FORMAT)
        return tp_unset_steal(tp_new_empty(size, or_default(dtype), device_or_default(device)));
    return tp_unset_steal(tp_new_empty_format(size, or_default(dtype), device_or_default(device), memory_format));
}

tp_tensor *empty_strided(tp_ints size, tp_ints stride, tp_dtype dtype, tp_layout layout, tp_device device,
                         tp_opt_bool pin_memory) {
    if (check_layout("empty_strided", layout) < 0) return NULL;
    if (size.size != stride.size)
        return tp_fail_null(TP_RuntimeError,
                            "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)",
                            (long long)size.size, (long long)stride.size);
    for (int64_t i = 0; i < stride.size; i++)
        if (stride.data[i] < 0)
            return tp_fail_null(TP_RuntimeError, "empty_strided: stride %lld is negative", (long long)stride.data[i]);
    if (tp_unlikely(pin_memory == 1))
        return tp_unset_steal(
            tp_new_pinned("empty_strided", size, stride, or_default(dtype), device_or_default(device)));
    return tp_unset_steal(tp_new_empty_strided(size, stride, or_default(dtype), device_or_default(device)));
}

tp_tensor *full_composite(tp_ints size, const tp_scalar *fill_value, tp_dtype dtype, tp_layout layout, tp_device device,
                          tp_opt_bool pin_memory) {
    if (dtype == TP_NO_DTYPE) dtype = tp_scalar_dtype(fill_value);
    tp_autoref *t = tp_empty_memory_format(size, dtype, layout, device, pin_memory, TP_NO_FORMAT);
    return t && tp_fill__Scalar(t, fill_value) == 0 ? tp_take(t) : NULL;
}

tp_tensor *zeros_composite(tp_ints size, tp_dtype dtype, tp_layout layout, tp_device device, tp_opt_bool pin_memory) {
    tp_autoref *t = tp_empty_memory_format(size, or_default(dtype), layout, device, pin_memory, TP_NO_FORMAT);
    return t && tp_zero_(t) == 0 ? tp_take(t) : NULL;
}

tp_tensor *ones_composite(tp_ints size, tp_dtype dtype, tp_layout layout, tp_device device, tp_opt_bool pin_memory) {
    return full_composite(size, TP_SCALAR_I(1), or_default(dtype), layout, device, pin_memory);
}

/* ---- like another tensor ---- */

tp_tensor *empty_like_composite(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device,
                                tp_opt_bool pin_memory, tp_memory_format memory_format) {
    if (dtype == TP_NO_DTYPE) dtype = (tp_dtype)self->dtype;
    if (device.type < 0) device = self->device;
    if (memory_format != TP_NO_FORMAT && memory_format != TP_PRESERVE_FORMAT)
        return tp_empty_memory_format(tp_sizes(self), dtype, layout, device, pin_memory, memory_format);
    int64_t strides[TP_MAX_DIMS];
    tp_contiguous_strides(tp_sizes(self), strides);
    if (layout >= TP_SPARSE_COO || memcmp(strides, self->strides, sizeof(int64_t) * self->ndim) == 0)
        return tp_empty_memory_format(tp_sizes(self), dtype, layout, device, pin_memory, TP_NO_FORMAT);
    tp_preserved_strides(self, strides);
    return tp_empty_strided(tp_sizes(self), (tp_ints){strides, self->ndim}, dtype, layout, device, pin_memory);
}

tp_tensor *full_like_composite(tp_tensor *self, const tp_scalar *fill_value, tp_dtype dtype, tp_layout layout,
                               tp_device device, tp_opt_bool pin_memory, tp_memory_format memory_format) {
    tp_autoref *t = empty_like_composite(self, dtype, layout, device, pin_memory, memory_format);
    return t && tp_fill__Scalar(t, fill_value) == 0 ? tp_take(t) : NULL;
}

tp_tensor *zeros_like_composite(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device,
                                tp_opt_bool pin_memory, tp_memory_format memory_format) {
    tp_autoref *t = empty_like_composite(self, dtype, layout, device, pin_memory, memory_format);
    return t && tp_zero_(t) == 0 ? tp_take(t) : NULL;
}

tp_tensor *ones_like_composite(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device,
                               tp_opt_bool pin_memory, tp_memory_format memory_format) {
    return full_like_composite(self, TP_SCALAR_I(1), dtype, layout, device, pin_memory, memory_format);
}

/* ---- numbers a step apart: arange and range ---- */

static bool is_whole(const tp_scalar *s) {
    return s->kind == TP_SCALAR_INT || s->kind == TP_SCALAR_BOOL || s->kind == TP_SCALAR_UINT;
}

static __int128 whole_of(const tp_scalar *s) {
    return s->kind == TP_SCALAR_UINT ? (__int128)tp_scalar_uint(s) : tp_scalar_int(s);
}

typedef struct {
    const char *op;
    const tp_scalar *start, *end, *step;
    bool with_end; /* range has its end among the numbers, where a step reaches it */
} steps;

static bool all_are_whole(const steps *s) { return is_whole(s->start) && is_whole(s->end) && is_whole(s->step); }

/* In PyTorch's order, and of the numbers as they were given: those of an integer dtype are cut off later. */
static int check_steps(const steps *s) {
    double from = tp_scalar_double(s->start), to = tp_scalar_double(s->end), by = tp_scalar_double(s->step);
    if (by == 0 || isnan(by)) return tp_fail(TP_RuntimeError, "step must be nonzero");
    if (!isfinite(from) || !isfinite(to)) return tp_fail(TP_RuntimeError, "unsupported range: %g -> %g", from, to);
    if (by > 0 ? to < from : to > from)
        return tp_fail(TP_RuntimeError, "upper bound and lower bound inconsistent with step sign");
    return 0;
}

static int check_all_fit(const steps *s, tp_dtype ends, tp_dtype step) {
    bool fit = tp_scalar_check_fits(s->start, ends) == 0 && tp_scalar_check_fits(s->end, ends) == 0;
    return fit ? tp_scalar_check_fits(s->step, step) : -1;
}

/* How many numbers there are; -1 with the error set. */
static int64_t count_whole(const steps *s) {
    __int128 span = whole_of(s->end) - whole_of(s->start), by = tp_scalar_int(s->step);
    if (by == 0) return tp_fail(TP_ValueError, "step must be nonzero"); /* one between -1 and 1; PyTorch's class */
    __int128 n = s->with_end ? span / by + 1 : (span + by - (by > 0 ? 1 : -1)) / by;
    if (n >= 0 && n <= INT64_MAX) return (int64_t)n;
    return tp_fail(TP_RuntimeError, "invalid size, possible overflow? %s: %g numbers", s->op, (double)n);
}

static int64_t count_real(const steps *s) {
    double span = tp_scalar_double(s->end) - tp_scalar_double(s->start), by = tp_scalar_double(s->step);
    double n = s->with_end ? floor(span / by) + 1 : ceil(span / by);
    if (n < 9e18) return (int64_t)n;
    return tp_fail(TP_RuntimeError, "invalid size, possible overflow? %s: %g numbers", s->op, n);
}

static tp_tensor *fill_steps(const steps *s, int64_t n, tp_dtype dtype, tp_device device, tp_opt_bool pin_memory) {
    device = device_or_default(device);
    tp_autoref *t = pin_memory == 1 ? tp_new_pinned(s->op, TP_INTS(n), TP_INTS(1), dtype, device)
                                    : tp_new_empty(TP_INTS(n), dtype, device);
    if (!t) return NULL;
    bool whole = (is_whole(s->start) && is_whole(s->step)) || tp_is_integral_dtype(dtype);
    tp_sequence r = {.whole = whole, .half = n};
    if (whole) r.first = tp_scalar_int(s->start), r.step = tp_scalar_int(s->step);
    else r.a = tp_scalar_double(s->start), r.b = tp_scalar_double(s->step);
    return tp_fill_range(t, &r) == 0 ? tp_take(t) : NULL;
}

static int check_ordered(const char *op, tp_dtype dtype, tp_layout layout) {
    if (check_layout(op, layout) < 0) return -1;
    if (dtype != TP_BOOL && (dtype == TP_NO_DTYPE || !tp_is_complex_dtype(dtype))) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s_cpu\" not implemented for '%s'", op, tp_scalar_type_name(dtype));
}

static int64_t arange_count(const steps *s, tp_dtype dtype) {
    if (check_steps(s) < 0) return -1;
    const tp_dtype held = dtype == TP_UINT64 ? TP_UINT64 : TP_INT64;
    if (all_are_whole(s) || dtype == TP_INT64) return check_all_fit(s, held, TP_INT64) < 0 ? -1 : count_whole(s);
    int64_t n = count_real(s);
    if (n < 0 || dtype == TP_NO_DTYPE || !tp_is_integral_dtype(dtype)) return n;
    return check_all_fit(s, held, TP_INT64) < 0 ? -1 : n;
}

tp_tensor *arange_start_step_dense(const tp_scalar *start, const tp_scalar *end, const tp_scalar *step, tp_dtype dtype,
                                   tp_layout layout, tp_device device, tp_opt_bool pin_memory) {
    const steps s = {"arange", start, end, step, false};
    if (start->kind == TP_SCALAR_COMPLEX || end->kind == TP_SCALAR_COMPLEX || step->kind == TP_SCALAR_COMPLEX)
        return tp_fail_null(TP_RuntimeError, "arange: complex numbers have no order");
    int64_t n = check_ordered("arange", dtype, layout) < 0 ? -1 : arange_count(&s, dtype);
    if (n < 0) return NULL;
    if (dtype == TP_NO_DTYPE) dtype = all_are_whole(&s) ? TP_INT64 : tp_default_dtype();
    return fill_steps(&s, n, dtype, device, pin_memory);
}

tp_tensor *arange_composite(const tp_scalar *end, tp_dtype dtype, tp_layout layout, tp_device device,
                            tp_opt_bool pin_memory) {
    return tp_arange_start_step(TP_SCALAR_I(0), end, TP_SCALAR_I(1), dtype, layout, device, pin_memory);
}

tp_tensor *arange_start_composite(const tp_scalar *start, const tp_scalar *end, tp_dtype dtype, tp_layout layout,
                                  tp_device device, tp_opt_bool pin_memory) {
    return tp_arange_start_step(start, end, TP_SCALAR_I(1), dtype, layout, device, pin_memory);
}

static int64_t range_count(const steps *s, tp_dtype dtype) {
    bool whole = tp_is_integral_dtype(dtype);
    if (check_all_fit(s, whole ? TP_INT64 : TP_FLOAT64, whole ? TP_INT64 : TP_FLOAT64) < 0 || check_steps(s) < 0)
        return -1;
    return whole ? count_whole(s) : count_real(s);
}

/* range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device?
 * device=None, bool? pin_memory=None) -> Tensor */
tp_tensor *range_step_dense(const tp_scalar *start, const tp_scalar *end, const tp_scalar *step, tp_dtype dtype,
                            tp_layout layout, tp_device device, tp_opt_bool pin_memory) {
    if (tp_warn("torch.range is deprecated and will be removed in a future release because its behavior is "
                "inconsistent with Python's range builtin: arange leaves its end out, as that does") < 0)
        return NULL;
    const steps s = {"range", start, end, step, true};
    dtype = or_default(dtype);
    int64_t n = check_ordered("range", dtype, layout) < 0 ? -1 : range_count(&s, dtype);
    return n < 0 ? NULL : fill_steps(&s, n, dtype, device, pin_memory);
}

tp_tensor *range_composite(const tp_scalar *start, const tp_scalar *end, tp_dtype dtype, tp_layout layout,
                           tp_device device, tp_opt_bool pin_memory) {
    return tp_range_step(start, end, TP_SCALAR_I(1), dtype, layout, device, pin_memory);
}
