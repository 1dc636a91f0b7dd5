/* masked_reduce.c: what stands in for elements that a mask leaves out. The operators of tensorpy.masked, which are
 * formulas in the YAML, compute with a value that their result does not depend on. */
#include "NativeFunctions.h"
#include "core/scalar.h"

#include <math.h>
#include <string.h>

typedef enum { NUMBER, LOWEST, HIGHEST } stand_in;

/* What a reduction needs in the place of an element that does not count. */
static const struct {
    const char *reduction;
    stand_in kind;
    double number;
} stand_ins[] = {
    {"sum", NUMBER, 0},       {"cumsum", NUMBER, 0},    {"prod", NUMBER, 1},  {"cumprod", NUMBER, 1},
    {"norm", NUMBER, 0},      {"median", NUMBER, NAN},  {"amax", LOWEST, 0},  {"argmax", LOWEST, 0},
    {"logaddexp", LOWEST, 0}, {"logsumexp", LOWEST, 0}, {"amin", HIGHEST, 0}, {"argmin", HIGHEST, 0},
};

static tp_scalar extreme_int(tp_dtype dtype, bool highest) {
    bool is_unsigned = tp_dtype_categories[dtype] == TP_UNSIGNED;
    if (is_unsigned && !highest) return *TP_SCALAR_I(0);
    uint64_t all = UINT64_MAX >> (64 - 8 * tp_itemsize(dtype)); /* every bit of the dtype */
    if (is_unsigned) return *TP_SCALAR_I((int64_t)all);
    return *TP_SCALAR_I(highest ? (int64_t)(all >> 1) : -(int64_t)(all >> 1) - 1);
}

static int identity_of(const char *reduction, tp_dtype dtype, tp_opt_float ord, tp_scalar *value) {
    size_t i = 0, n = TP_COUNTOF(stand_ins);
    while (i < n && strcmp(stand_ins[i].reduction, reduction) != 0) i++;
    bool highest = i < n && stand_ins[i].kind == HIGHEST;
    if (i < n && stand_ins[i].kind == NUMBER) {
        bool least_norm = strcmp(reduction, "norm") == 0 && ord.has && ord.value == -INFINITY;
        *value = *TP_SCALAR_F(least_norm ? INFINITY : stand_ins[i].number);
    } else if (i < n && (tp_is_floating_dtype(dtype) || (tp_is_complex_dtype(dtype) && reduction[0] == 'l')))
        *value = *TP_SCALAR_F(highest ? INFINITY : -INFINITY);
    else if (i < n && tp_is_integral_dtype(dtype)) *value = extreme_int(dtype, highest);
    else return tp_fail(TP_NotImplementedError, "identity of %s on torch.%s input", reduction, tp_dtype_names[dtype]);
    return 0;
}

/* _masked_identity(Tensor input, str reduction, float? ord=None) -> Tensor: without dimensions. */
tp_tensor *_masked_identity_composite(tp_tensor *input, const char *reduction, tp_opt_float ord) {
    tp_scalar value;
    if (identity_of(reduction, (tp_dtype)input->dtype, ord, &value) < 0) return NULL;
    return tp_full(TP_EMPTY_INTS, &value, (tp_dtype)input->dtype, TP_STRIDED, input->device, -1);
}

/* masked_prod(Tensor input, int[1]? dim=None, *, bool? keepdim=False, ScalarType? dtype=None, Tensor? mask=None) ->
 * Tensor: one dimension after another, the last first. */
tp_tensor *masked_prod_composite(tp_tensor *input, tp_ints dim, tp_opt_bool keepdim, tp_dtype dtype, tp_tensor *mask) {
    bool out[TP_MAX_DIMS] = {0};
    for (int64_t i = 0; i < dim.size; i++) {
        int64_t d = tp_wrap_dim(dim.data[i], input->ndim);
        if (d < 0) return NULL;
        if (out[d])
            return tp_fail_null(TP_RuntimeError, "dim %lld appears multiple times in the list of dims", (long long)d);
        out[d] = true;
    }
    bool narrow = input->dtype == TP_BOOL || (tp_is_integral_dtype((tp_dtype)input->dtype) && input->dtype != TP_INT64);
    tp_dtype wide = dtype >= 0 ? dtype : narrow ? TP_INT64 : (tp_dtype)input->dtype;
    tp_autoref *made = tp__masked_input(input, mask, "prod", (tp_opt_float){0});
    for (int64_t d = input->ndim - 1; made && d >= 0; d--) {
        if (dim.size > 0 && !out[d]) continue;
        tp_tensor *next = tp_prod_dim_int(made, d, keepdim == 1, wide);
        tp_release(made);
        made = next;
    }
    return made ? tp_to_dtype(made, wide, false, false, TP_NO_FORMAT) : NULL;
}

/* masked_median(Tensor input, int dim=-1, *, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) -> Tensor:
 * NaN of a line without elements; where the dtype has no NaN, a ValueError. */
tp_tensor *masked_median_composite(tp_tensor *input, int64_t dim, bool keepdim, tp_dtype dtype, tp_tensor *mask) {
    bool smooth = tp_is_floating(input);
    tp_autoref *wide = smooth ? tp_retain(input) : tp_to_dtype(input, TP_FLOAT32, false, false, TP_NO_FORMAT);
    tp_autoref *filled = wide ? tp__masked_input(wide, mask, "median", (tp_opt_float){0}) : NULL;
    tp_tensor2 both = filled ? tp_nanmedian_dim(filled, dim, keepdim) : (tp_tensor2){{NULL, NULL}};
    tp_autoref *found = both.v[0], *places = both.v[1];
    (void)places;
    if (!found || smooth) return tp_take(found);
    tp_autoref *missing = tp_isnan(found), *some = missing ? tp_any(missing) : NULL;
    tp_scalar answer;
    if (!some || tp__local_scalar_dense(some, &answer) < 0) return NULL;
    if (answer.b)
        return tp_fail_null(TP_ValueError,
                            "masked median expects no fully masked out rows if dtype is not floating point");
    return tp_to_dtype(found, dtype >= 0 ? dtype : (tp_dtype)input->dtype, false, false, TP_NO_FORMAT);
}
