/* grouped.c: products of matrices by group, and products of 8-bit floats with scales that a recipe describes.
 *
 * A group is a run of rows, of columns or of what is summed over, and ends where an element of `offs` says: below the
 * layers, where the numbers may be read. A product is written into its place of the result; what belongs to no group is
 * 0. Products with scales are products of the widened matrices in float32, rounded once (scaled_mm.c). */
#include "NativeFunctions.h"
#include "Functions.h"
#include "core/error.h"
#include "native/common/checks.h"
#include "native/common/host_ints.h"
#include "prim/table.h"

/* ---- what is asked of the arguments ---- */

static int check_operand(const char *name, const tp_tensor *t) {
    const tp_dtype d = (tp_dtype)t->dtype;
    if (d != TP_FLOAT32 && d != TP_FLOAT64 && !tp_is_reduced_dtype(d))
        return tp_fail(TP_RuntimeError, "Expected %s to be Float32, BFloat16 or Float16 matrix, got %s", name,
                       tp_scalar_type_name(d));
    if (t->ndim != 2 && t->ndim != 3) return tp_fail(TP_RuntimeError, "%s has to be 2 or 3d", name);
    return 0;
}

static int check_offsets(const tp_tensor *a, const tp_tensor *b, const tp_tensor *offs) {
    if ((offs != NULL) != (a->ndim == 2 || b->ndim == 2))
        return tp_fail(TP_RuntimeError,
                       "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
    if (!offs) return 0;
    if (offs->ndim != 1) return tp_fail(TP_RuntimeError, "offs has to be 1D");
    if (offs->dtype != TP_INT32) return tp_fail(TP_RuntimeError, "Offsets have to be int32");
    return 0;
}

static int check_groups(const tp_tensor *a, const tp_tensor *b, const tp_tensor *offs) {
    if (a->sizes[a->ndim - 1] != b->sizes[b->ndim - 2])
        return tp_fail(TP_RuntimeError, "contraction dimension of mat_a and mat_b must match");
    if (check_offsets(a, b, offs) < 0) return -1;
    int64_t of_a = a->ndim == 3 ? a->sizes[0] : -1, of_b = b->ndim == 3 ? b->sizes[0] : -1,
            of_offs = offs ? offs->sizes[0] : -1;
    bool same = (of_a < 0 || of_b < 0 || of_a == of_b) && (of_a < 0 || of_offs < 0 || of_a == of_offs) &&
                (of_b < 0 || of_offs < 0 || of_b == of_offs);
    return same ? 0 : tp_fail(TP_RuntimeError, "matrix batch sizes have to match");
}

static int check_product(const tp_tensor *a, const tp_tensor *b, const tp_tensor *offs, const tp_tensor *bias,
                         tp_dtype out_dtype) {
    if (check_operand("mat_a", a) < 0 || check_operand("mat_b", b) < 0) return -1;
    if (a->dtype != b->dtype)
        return tp_fail(TP_RuntimeError, "expected m1 and m2 to have the same dtype, but got: %s != %s",
                       tp_scalar_type_name((tp_dtype)a->dtype), tp_scalar_type_name((tp_dtype)b->dtype));
    if (check_groups(a, b, offs) < 0) return -1;
    if (bias) return tp_fail(TP_RuntimeError, "Bias not supported yet");
    if (out_dtype != TP_NO_DTYPE && out_dtype != (tp_dtype)a->dtype)
        return tp_fail(TP_RuntimeError, "Grouped gemm output dtype must match `mat_a` dtype");
    return 0;
}

/* ---- the products ---- */

/* The dimension of self that groups divide is 0, that of mat2 1, unless the sum is divided. */
static int64_t divided_size(const tp_tensor *a, const tp_tensor *b) {
    return a->ndim == 3 ? b->sizes[1] : b->ndim == 3 ? a->sizes[0] : a->sizes[1];
}

/* A group's part of an operand or of the result: one of the batch, or a run of `dim`. */
static tp_tensor *part_of(tp_tensor *t, int64_t group, int64_t dim, int64_t begin, int64_t end) {
    return t->ndim == 3 ? tp_select_int(t, 0, group) : tp_narrow(t, dim, begin, end - begin);
}

static int multiply_group(tp_tensor *a, tp_tensor *b, tp_tensor *out, int64_t group, int64_t begin, int64_t end) {
    bool over_sum = a->ndim == 2 && b->ndim == 2;
    tp_autoref *left = part_of(a, group, over_sum ? 1 : 0, begin, end),
               *right = left ? part_of(b, group, over_sum ? 0 : 1, begin, end) : NULL,
               *into = right ? part_of(out, group, a->ndim == 2 ? 0 : 1, begin, end) : NULL;
    return into ? tp_mm_out(left, right, into) : -1;
}

static int multiply_groups(tp_tensor *a, tp_tensor *b, tp_tensor *offs, tp_tensor *out) {
    tp_autoref *ends = tp_host_ints(offs);
    if (!ends) return -1;
    const int64_t *end = tp_table_values(ends), whole = divided_size(a, b);
    int64_t begin = 0;
    if (!end && offs->numel) return -1;
    for (int64_t i = 0; i < offs->numel; begin = end[i++]) {
        if (end[i] < begin || end[i] > whole)
            return tp_fail(TP_RuntimeError,
                           "_grouped_mm: offs does not say the ends of groups of %lld: group %lld is from %lld to %lld",
                           (long long)whole, (long long)i, (long long)begin, (long long)end[i]);
        if (multiply_group(a, b, out, i, begin, end[i]) < 0) return -1;
    }
    return 0;
}

/* _grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor */
tp_tensor *_grouped_mm_composite(tp_tensor *self, tp_tensor *mat2, tp_tensor *offs, tp_tensor *bias,
                                 tp_dtype out_dtype) {
    if (check_product(self, mat2, offs, bias, out_dtype) < 0) return NULL;
    if (!offs) return tp_bmm(self, mat2);
    int64_t rows = self->sizes[self->ndim - 2], columns = mat2->sizes[mat2->ndim - 1];
    bool by_group = self->ndim == 2 && mat2->ndim == 2;
    const int64_t sizes[] = {offs->sizes[0], rows, columns};
    tp_autoref *out = tp_zeros(by_group ? (tp_ints){sizes, 3} : (tp_ints){sizes + 1, 2}, (tp_dtype)self->dtype,
                               TP_NO_LAYOUT, self->device, -1);
    if (!out || (tp_has_values(self) && multiply_groups(self, mat2, offs, out) < 0)) return NULL;
    return tp_take(out);
}

/* ---- 8-bit floats: a scale for each row of the first matrix and each column of the second ---- */

static int check_scale(const char *name, const tp_tensor *scale, const tp_tensor *t, int64_t lines, int64_t times) {
    const bool batch = t->ndim == 3;
    if (scale->dtype != TP_FLOAT32)
        return tp_fail(TP_RuntimeError,
                       "For FP8 scales must both be float32: the scales of rows and columns are numbers, not %s",
                       tp_scalar_type_name((tp_dtype)scale->dtype));
    if (scale->ndim != (batch ? 2 : 1))
        return tp_fail(TP_RuntimeError, "Expected %s to be %dD tensor, but got %dD tensor.", name, batch ? 2 : 1,
                       scale->ndim);
    if (batch && scale->sizes[0] != t->sizes[0])
        return tp_fail(TP_RuntimeError, "Expected %s batch dimension to be %lld, got %lld.", name,
                       (long long)t->sizes[0], (long long)scale->sizes[0]);
    if (scale->sizes[scale->ndim - 1] == lines * times) return 0;
    return tp_fail(TP_RuntimeError, "Expected %s to have %lld elements, got %lld elements.", name,
                   (long long)(lines * times), (long long)scale->sizes[scale->ndim - 1]);
}

static int check_scaled(const tp_tensor *a, const tp_tensor *b, const tp_tensor *scale_a, const tp_tensor *scale_b,
                        const tp_tensor *offs) {
    if (!tp_is_float8_dtype((tp_dtype)a->dtype) || !tp_is_float8_dtype((tp_dtype)b->dtype))
        return tp_fail(TP_RuntimeError, "Expected inputs of E4M3 FP8 type but got mat_a of %s and mat_b of %s",
                       tp_scalar_type_name((tp_dtype)a->dtype), tp_scalar_type_name((tp_dtype)b->dtype));
    if ((a->ndim != 2 && a->ndim != 3) || (b->ndim != 2 && b->ndim != 3))
        return tp_fail(TP_RuntimeError, "Multiplicands must be 2D or 3D but got mat_a.dim()=%d and mat_b.dim()=%d",
                       a->ndim, b->ndim);
    if (check_groups(a, b, offs) < 0) return -1;
    const int64_t times = a->ndim == 2 && b->ndim == 2 ? offs->sizes[0] : 1;
    if (check_scale("scale_a", scale_a, a, a->sizes[a->ndim - 2], times) < 0) return -1;
    return check_scale("scale_b", scale_b, b, b->sizes[b->ndim - 1], times);
}

/* A float32 copy of an operand; its lines, which lie along dimension `dim`, are multiplied by their scales. */
static tp_tensor *widened(tp_tensor *t, tp_tensor *scale, int64_t dim) {
    tp_autoref *wide = tp_to_dtype(t, TP_FLOAT32, false, false, TP_NO_FORMAT);
    tp_autoref *lines = wide && scale ? tp_unsqueeze(scale, dim) : NULL;
    return scale ? (lines ? tp_mul_Tensor(wide, lines) : NULL) : tp_take(wide);
}

/* Products for each group, whose lines have scales of their own in every group. */
static tp_tensor *scaled_groups(tp_tensor *product, tp_tensor *scale_a, tp_tensor *scale_b) {
    tp_autoref *rows = tp_reshape(scale_a, TP_INTS(product->sizes[0], product->sizes[1], 1)),
               *columns = rows ? tp_reshape(scale_b, TP_INTS(product->sizes[0], 1, product->sizes[2])) : NULL;
    tp_autoref *both = columns ? tp_mul_Tensor(rows, columns) : NULL;
    return both ? tp_mul_Tensor(product, both) : NULL;
}

static tp_tensor *scaled_product(tp_tensor *a, tp_tensor *b, tp_tensor *scale_a, tp_tensor *scale_b, tp_tensor *offs) {
    const bool scaled_last = (a->ndim == 2) == (b->ndim == 2); /* a matrix for each group */
    tp_autoref *left = widened(a, scaled_last ? NULL : scale_a, -1),
               *right = left ? widened(b, scaled_last ? NULL : scale_b, -2) : NULL;
    tp_autoref *product = right ? tp__grouped_mm(left, right, offs, NULL, TP_NO_DTYPE) : NULL;
    return product && scaled_last ? scaled_groups(product, scale_a, scale_b) : tp_take(product);
}

/* _scaled_grouped_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? offs=None, Tensor? bias=None,
 * Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor */
tp_tensor *_scaled_grouped_mm_composite(tp_tensor *self, tp_tensor *mat2, tp_tensor *scale_a, tp_tensor *scale_b,
                                        tp_tensor *offs, tp_tensor *bias, tp_tensor *scale_result, tp_dtype out_dtype,
                                        bool use_fast_accum TP_UNUSED) {
    if (check_scaled(self, mat2, scale_a, scale_b, offs) < 0) return NULL;
    if (bias) return tp_fail_null(TP_RuntimeError, "Bias not supported yet");
    if (scale_result)
        return tp_fail_null(TP_RuntimeError, "Scale result tensor provided, but it is not supported yet.");
    if (out_dtype != TP_NO_DTYPE && out_dtype != TP_BFLOAT16)
        return tp_fail_null(TP_RuntimeError, "Only bf16 high precision output types are supported for grouped gemm");
    tp_autoref *wide = scaled_product(self, mat2, scale_a, scale_b, offs);
    return wide ? tp_to_dtype(wide, TP_BFLOAT16, false, false, TP_NO_FORMAT) : NULL;
}

/* ---- recipes ---- */

/* nn.functional.ScalingType: a scale for the whole matrix, or for each of its lines. */
enum { OF_THE_WHOLE, OF_LINES };

static bool is_recipe(tp_ints recipe, tp_tensors scales, tp_ints swizzle, int64_t wanted) {
    const bool plain = swizzle.size <= 0 || (swizzle.size == 1 && swizzle.data[0] == 0);
    return recipe.size == 1 && recipe.data[0] == wanted && scales.size == 1 && plain;
}

static int check_contraction(const tp_tensor *a, const tp_tensor *b, tp_ints dims) {
    if (dims.size <= 0) return 0;
    if (dims.size != 2) return tp_fail(TP_ValueError, "contraction_dim must have exactly 2 elements");
    const int64_t of_a = tp_wrap_dim(dims.data[0], a->ndim), of_b = of_a < 0 ? -1 : tp_wrap_dim(dims.data[1], b->ndim);
    if (of_b < 0) return -1;
    if (a->sizes[of_a] == b->sizes[of_b]) return 0;
    return tp_fail(TP_ValueError,
                   "mat_a and mat_b shapes cannot be multiplied (%lldx%lld and %lldx%lld): dimension %lld of mat_a and "
                   "%lld of mat_b are not of one size",
                   (long long)a->sizes[0], (long long)a->sizes[1], (long long)b->sizes[0], (long long)b->sizes[1],
                   (long long)of_a, (long long)of_b);
}

static int fail_recipe(const char *of_lines) {
    return tp_fail(TP_ValueError,
                   "Invalid scaling configuration. There is one scale of float32 for each matrix, by the recipe "
                   "RowWise%s on both sides, without a swizzle",
                   of_lines);
}

/* _scaled_grouped_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b,
 * int[] recipe_b, int[] swizzle_b, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None, int[]
 * contraction_dim=[], bool use_fast_accum=False) -> Tensor */
tp_tensor *_scaled_grouped_mm_v2_composite(tp_tensor *self, tp_tensor *mat2, tp_tensors scale_a, tp_ints recipe_a,
                                           tp_ints swizzle_a, tp_tensors scale_b, tp_ints recipe_b, tp_ints swizzle_b,
                                           tp_tensor *offs, tp_tensor *bias, tp_dtype out_dtype,
                                           tp_ints contraction_dim, bool use_fast_accum) {
    const bool lines =
        is_recipe(recipe_a, scale_a, swizzle_a, OF_LINES) && is_recipe(recipe_b, scale_b, swizzle_b, OF_LINES);
    if (!lines) return fail_recipe(""), NULL;
    if (check_contraction(self, mat2, contraction_dim) < 0) return NULL;
    return tp__scaled_grouped_mm(self, mat2, scale_a.data[0], scale_b.data[0], offs, bias, NULL, out_dtype,
                                 use_fast_accum);
}

/* Arguments of _scaled_mm_v2 that do not fit a recipe are refused. */
static int check_recipes(const tp_tensor *a, const tp_tensor *b, tp_tensors scale_a, tp_ints recipe_a,
                         tp_ints swizzle_a, tp_tensors scale_b, tp_ints recipe_b, tp_ints swizzle_b,
                         tp_ints contraction_dim) {
    const bool whole = is_recipe(recipe_a, scale_a, swizzle_a, OF_THE_WHOLE) &&
                       is_recipe(recipe_b, scale_b, swizzle_b, OF_THE_WHOLE) && scale_a.data[0]->numel == 1 &&
                       scale_b.data[0]->numel == 1;
    const bool lines =
        is_recipe(recipe_a, scale_a, swizzle_a, OF_LINES) && is_recipe(recipe_b, scale_b, swizzle_b, OF_LINES);
    return whole || lines ? check_contraction(a, b, contraction_dim) : fail_recipe(" or TensorWise");
}

/* _scaled_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, int[]
 * recipe_b, int[] swizzle_b, Tensor? bias, ScalarType? out_dtype, int[] contraction_dim=[], bool use_fast_accum=False)
 * -> Tensor */
tp_tensor *_scaled_mm_v2_composite(tp_tensor *self, tp_tensor *mat2, tp_tensors scale_a, tp_ints recipe_a,
                                   tp_ints swizzle_a, tp_tensors scale_b, tp_ints recipe_b, tp_ints swizzle_b,
                                   tp_tensor *bias, tp_dtype out_dtype, tp_ints contraction_dim, bool use_fast_accum) {
    if (check_recipes(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, contraction_dim) < 0)
        return NULL;
    return tp__scaled_mm(self, mat2, scale_a.data[0], scale_b.data[0], bias, NULL, out_dtype, use_fast_accum);
}

int _scaled_mm_v2_out_composite(tp_tensor *self, tp_tensor *mat2, tp_tensors scale_a, tp_ints recipe_a,
                                tp_ints swizzle_a, tp_tensors scale_b, tp_ints recipe_b, tp_ints swizzle_b,
                                tp_tensor *bias, tp_dtype out_dtype, tp_ints contraction_dim, bool use_fast_accum,
                                tp_tensor *out) {
    if (check_recipes(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, contraction_dim) < 0)
        return -1;
    return tp__scaled_mm_out(self, mat2, scale_a.data[0], scale_b.data[0], bias, NULL, out_dtype, use_fast_accum, out);
}
