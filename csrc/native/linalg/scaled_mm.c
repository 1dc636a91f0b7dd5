/* scaled_mm.c: products of matrices of 8-bit floats, whose numbers are multiples of scales, and of 8-bit integers.
 *
 * The matrices are widened, which is exact, and multiplied in float32; scales, bias and what comes out are applied to
 * that, so a result is rounded once. A scale is one number, or one for each row of the first matrix and each column of
 * the second. */
#include "NativeFunctions.h"
#include "Functions.h"
#include "core/error.h"
#include "native/common/checks.h"
#include "native/common/variants.h"

typedef struct {
    tp_tensor *a, *b, *scale_a, *scale_b, *bias, *scale_result;
} scaled_product;

static bool is_number(const tp_tensor *scale) { return scale->dtype == TP_FLOAT32 && scale->numel == 1; }
static bool is_line(const tp_tensor *scale, int64_t rows, int64_t columns) {
    return scale->dtype == TP_FLOAT32 && scale->ndim == 2 && scale->sizes[0] == rows && scale->sizes[1] == columns &&
           tp_is_contiguous(scale);
}

static int check_shapes(const scaled_product *p) {
    if (p->a->ndim != 2) return tp_fail(TP_RuntimeError, "mat1 must be a matrix");
    if (p->b->ndim != 2) return tp_fail(TP_RuntimeError, "mat2 must be a matrix");
    if (p->a->sizes[1] != p->b->sizes[0])
        return tp_fail(TP_RuntimeError, "mat_a and mat_b shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                       (long long)p->a->sizes[0], (long long)p->a->sizes[1], (long long)p->b->sizes[0],
                       (long long)p->b->sizes[1]);
    return 0;
}

static int check_scales(const scaled_product *p) {
    bool small = tp_is_float8_dtype((tp_dtype)p->a->dtype) && tp_is_float8_dtype((tp_dtype)p->b->dtype);
    bool numbers = is_number(p->scale_a) && is_number(p->scale_b);
    bool lines = is_line(p->scale_a, p->a->sizes[0], 1) && is_line(p->scale_b, 1, p->b->sizes[1]);
    if (small && (numbers || lines)) return 0;
    return tp_fail(TP_ValueError,
                   "Invalid scaling configuration. Both matrices are of 8-bit floats, and the scales of float32: one "
                   "number each, or contiguous ones of the shapes (%lld, 1) and (1, %lld). Got matrices of %s and %s, "
                   "and scales of %s and %s with %lld and %lld elements",
                   (long long)p->a->sizes[0], (long long)p->b->sizes[1], tp_scalar_type_name((tp_dtype)p->a->dtype),
                   tp_scalar_type_name((tp_dtype)p->b->dtype), tp_scalar_type_name((tp_dtype)p->scale_a->dtype),
                   tp_scalar_type_name((tp_dtype)p->scale_b->dtype), (long long)p->scale_a->numel,
                   (long long)p->scale_b->numel);
}

static int check(const scaled_product *p) {
    if (check_shapes(p) < 0 || check_scales(p) < 0) return -1;
    if (p->bias && p->bias->numel != p->b->sizes[1])
        return tp_fail(TP_RuntimeError, "Bias must be size %lld but got %lld", (long long)p->b->sizes[1],
                       (long long)p->bias->numel);
    if (p->scale_result && !is_number(p->scale_result))
        return tp_fail(TP_RuntimeError, "scale_result must be a float scalar");
    return 0;
}

static tp_tensor *as_float(tp_tensor *t) { return tp_to_dtype(t, TP_FLOAT32, false, false, TP_NO_FORMAT); }

/* A number as a tensor without dimensions, which broadcasts to every shape. */
static tp_tensor *scale_of(tp_tensor *t) { return t->numel == 1 ? tp_reshape(t, TP_EMPTY_INTS) : tp_retain(t); }

static tp_tensor *scaled(tp_tensor *product, tp_tensor *scale_a, tp_tensor *scale_b) {
    tp_autoref *a = scale_of(scale_a), *b = scale_of(scale_b);
    tp_autoref *both = a && b ? tp_mul_Tensor(a, b) : NULL;
    return both ? tp_mul_Tensor(product, both) : NULL;
}

static tp_tensor *with_bias(tp_tensor *product, tp_tensor *bias) {
    if (!bias) return tp_retain(product);
    tp_autoref *wide = as_float(bias);
    tp_autoref *line = wide ? tp_reshape(wide, TP_INTS(-1)) : NULL;
    return line ? tp_add_Tensor(product, line, TP_SCALAR_I(1)) : NULL;
}

/* In float32. The result's scale is that of a result of 8 bits that is asked for; others are not scaled. */
static tp_tensor *compute(const scaled_product *p, tp_dtype asked) {
    if (check(p) < 0) return NULL;
    tp_autoref *a = as_float(p->a), *b = as_float(p->b);
    tp_autoref *product = a && b ? tp_mm(a, b) : NULL;
    tp_autoref *whole = product ? scaled(product, p->scale_a, p->scale_b) : NULL;
    tp_autoref *sum = whole ? with_bias(whole, p->bias) : NULL;
    if (!sum || !p->scale_result || asked == TP_NO_DTYPE || !tp_is_float8_dtype(asked)) return tp_take(sum);
    tp_autoref *scale = scale_of(p->scale_result);
    return scale ? tp_div_Tensor(sum, scale) : NULL;
}

/* _scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None,
 * ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor */
tp_tensor *_scaled_mm_composite(tp_tensor *self, tp_tensor *mat2, tp_tensor *scale_a, tp_tensor *scale_b,
                                tp_tensor *bias, tp_tensor *scale_result, tp_dtype out_dtype,
                                bool use_fast_accum TP_UNUSED) {
    const scaled_product p = {self, mat2, scale_a, scale_b, bias, scale_result};
    tp_autoref *wide = compute(&p, out_dtype);
    tp_dtype given = out_dtype == TP_NO_DTYPE ? (tp_dtype)self->dtype : out_dtype;
    return wide ? tp_to_dtype(wide, given, false, false, TP_NO_FORMAT) : NULL;
}

int _scaled_mm_out_composite(tp_tensor *self, tp_tensor *mat2, tp_tensor *scale_a, tp_tensor *scale_b, tp_tensor *bias,
                             tp_tensor *scale_result, tp_dtype out_dtype, bool use_fast_accum TP_UNUSED,
                             tp_tensor *out) {
    if (out_dtype != TP_NO_DTYPE && out_dtype != (tp_dtype)out->dtype)
        return tp_fail(TP_ValueError, "out_dtype must match output matrix type");
    const scaled_product p = {self, mat2, scale_a, scale_b, bias, scale_result};
    tp_autoref *wide = compute(&p, out_dtype);
    tp_autoref *made = wide ? tp_to_dtype(wide, (tp_dtype)out->dtype, false, false, TP_NO_FORMAT) : NULL;
    return made ? tp_copy_into_out(out, made) : -1;
}

/* ---- integers ---- */

int _int_mm_out_composite(tp_tensor *self, tp_tensor *mat2, tp_tensor *out) {
    tp_autoref *made = tp__int_mm(self, mat2);
    if (!made) return -1;
    if (out->dtype != TP_INT32)
        return tp_fail(TP_RuntimeError, "_int_mm: Expected result dtype to be of type kInt but got %s",
                       tp_dtype_names[out->dtype]);
    for (int d = 0; d < 2 && d < out->ndim; d++)
        if (out->sizes[d] != made->sizes[d])
            return tp_fail(TP_RuntimeError, "_int_mm: Expected result.size(%d) to be %lld but got %lld", d,
                           (long long)made->sizes[d], (long long)out->sizes[d]);
    if (out->ndim != 2)
        return tp_fail(TP_RuntimeError, "_int_mm: Expected result to be of dimension 2 but got %d", (int)out->ndim);
    return tp_copy_into_out(out, made);
}
