/* range.c: the checks of linspace and logspace, and what fills a tensor with a sequence. */
#include "native/factory/range.h"

#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/determinism.h"
#include "iter/iter.h"
#include "prim/transfer.h"

#include <math.h>

int tp_fill_range(tp_tensor *t, const tp_sequence *r) {
    if (t->numel == 0) return 0;
    if (r->whole) return tp_prim_range_int(r->first, r->step, t);
    return tp_prim_range_float(r->a, r->b, r->last, r->base, r->half, r->single, t);
}

/* ---- linspace, logspace ---- */

#define OPTIONS tp_dtype dtype, tp_layout layout, tp_device device, tp_opt_bool pin_memory
#define PASS_OPTIONS dtype, layout, device, pin_memory

static tp_tensor *space_empty(const char *op, const tp_scalar *start, const tp_scalar *end, int64_t steps, OPTIONS) {
    if (steps < 0) return tp_fail_null(TP_RuntimeError, "%s: number of steps must be non-negative", op);
    bool complex_ends = start->kind == TP_SCALAR_COMPLEX || end->kind == TP_SCALAR_COMPLEX;
    if (dtype == TP_NO_DTYPE) dtype = complex_ends ? tp_to_complex_dtype(tp_default_dtype()) : tp_default_dtype();
    if (dtype == TP_BOOL) return tp_fail_null(TP_NotImplementedError, "\"%s_cpu\" not implemented for 'Bool'", op);
    if (complex_ends && !tp_is_complex_dtype(dtype))
        return tp_fail_null(TP_RuntimeError,
                            "torch.%s(): inferred dtype of complex ends can't be safely cast to passed dtype %s", op,
                            tp_dtype_names[dtype]);
    return tp_empty_memory_format(TP_INTS(steps), dtype, layout, device, pin_memory, TP_NO_FORMAT);
}
static int fill_space(tp_tensor *t, tp_complex128 start, tp_complex128 end, double base) {
    int64_t n = t->numel;
    tp_sequence r = {.a = creal(start), .last = creal(end), .base = base, .half = n < 2 ? n : n / 2};
    if (tp_is_integral_dtype((tp_dtype)t->dtype)) {
        r.a = trunc(r.a);
        r.last = trunc(r.last);
        r.single = base != 0;
    }
    r.b = n < 2 ? 0 : (r.last - r.a) / (double)(n - 1);
    if (t->dtype == TP_FLOAT32 && base == 0) { /* ends and step are float32, as PyTorch has them: the same bits */
        r.a = (float)r.a, r.last = (float)r.last;
        r.b = n < 2 ? 0 : (float)((float)r.last - (float)r.a) / (float)(n - 1);
    }
    return tp_fill_range(t, &r);
}
/* The parts of a complex range are ranges. */
static int fill_complex(tp_tensor *t, tp_complex128 start, tp_complex128 end) {
    tp_dtype part = tp_to_real_dtype((tp_dtype)t->dtype);
    tp_autoref *re = tp_new_empty(tp_sizes(t), part, TP_CPU), *im = re ? tp_new_empty(tp_sizes(t), part, TP_CPU) : NULL;
    if (!im || fill_space(re, start, end, 0) < 0 || fill_space(im, cimag(start), cimag(end), 0) < 0) return -1;
    tp_autoref *both = tp_complex(re, im);
    return both ? tp_copy_data(t, both) : -1;
}
/* The ends are elements; without any, or with one, an end is none. */
static int check_ends(const tp_tensor *t, const tp_scalar *start, const tp_scalar *end) {
    tp_dtype dtype = (tp_dtype)t->dtype;
    bool fit = (t->numel < 1 || tp_scalar_check_fits(start, dtype) == 0) &&
               (t->numel < 2 || tp_scalar_check_fits(end, dtype) == 0);
    return fit ? 0 : tp_error_prefix("linspace: ");
}
/* linspace(Scalar start, Scalar end, int steps, *, ...) -> Tensor */
tp_tensor *linspace_dense(const tp_scalar *start, const tp_scalar *end, int64_t steps, OPTIONS) {
    tp_autoref *t = space_empty("linspace", start, end, steps, PASS_OPTIONS);
    if (!t || check_ends(t, start, end) < 0) return NULL;
    tp_complex128 a = tp_scalar_complex(start), b = tp_scalar_complex(end);
    int status = tp_is_complex(t) && (cimag(a) != 0 || cimag(b) != 0) ? fill_complex(t, a, b) : fill_space(t, a, b, 0);
    return status == 0 ? tp_take(t) : NULL;
}
/* logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ...) -> Tensor */
tp_tensor *logspace_dense(const tp_scalar *start, const tp_scalar *end, int64_t steps, double base, OPTIONS) {
    tp_autoref *t = space_empty("logspace", start, end, steps, PASS_OPTIONS);
    if (!t) return NULL;
    tp_complex128 a = tp_scalar_complex(start), b = tp_scalar_complex(end);
    if (cimag(a) != 0 || cimag(b) != 0 ||
        base <= 0) { /* the exponents as a tensor: complex, or powers that may be NaN */
        tp_autoref *exponents =
            tp_linspace(start, end, steps, tp_is_complex(t) ? TP_COMPLEX128 : TP_FLOAT64, TP_STRIDED, TP_CPU, -1);
        tp_autoref *powers = exponents ? tp_pow_Scalar(TP_SCALAR_F(base), exponents) : NULL;
        return powers && tp_copy_data(t, powers) == 0 ? tp_take(t) : NULL;
    }
    return fill_space(t, a, b, base) == 0 ? tp_take(t) : NULL;
}

/* ---- ends given as tensors ---- */

/* On Meta, where there is no value, any will do; the result follows the end there. */
static int end_of(const char *op, tp_tensor *t, tp_scalar *value, tp_device *device) {
    if (t->ndim == 0 && !tp_has_values(t)) {
        if (device->type < 0) *device = t->device;
        *value = *TP_SCALAR_F(0);
        return 0;
    }
    if (t->ndim == 0) return tp_item(t, value);
    return tp_fail(TP_RuntimeError,
                   "%s only supports 0-dimensional start and end tensors, but got start with %d dimension(s)", op,
                   t->ndim);
}
#define SPACES(op, params, pass)                                                                                     \
    tp_tensor *op##_Tensor_Tensor_composite(tp_tensor *start, tp_tensor *end, int64_t steps params, OPTIONS) {       \
        tp_scalar a, b;                                                                                              \
        if (end_of(#op, start, &a, &device) < 0 || end_of(#op, end, &b, &device) < 0) return NULL;                   \
        return tp_##op(&a, &b, steps pass, PASS_OPTIONS);                                                            \
    }                                                                                                                \
    tp_tensor *op##_Tensor_Scalar_composite(tp_tensor *start, const tp_scalar *end, int64_t steps params, OPTIONS) { \
        tp_scalar a;                                                                                                 \
        return end_of(#op, start, &a, &device) < 0 ? NULL : tp_##op(&a, end, steps pass, PASS_OPTIONS);              \
    }                                                                                                                \
    tp_tensor *op##_Scalar_Tensor_composite(const tp_scalar *start, tp_tensor *end, int64_t steps params, OPTIONS) { \
        tp_scalar b;                                                                                                 \
        return end_of(#op, end, &b, &device) < 0 ? NULL : tp_##op(start, &b, steps pass, PASS_OPTIONS);              \
    }
#define NOTHING
#define BASE_PARAM , double base
#define BASE_PASS , base
SPACES(linspace, NOTHING, NOTHING)
SPACES(logspace, BASE_PARAM, BASE_PASS)
