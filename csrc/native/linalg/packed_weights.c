/* packed_weights.c: products with matrices of weights that are kept in 8 or 4 bits, as language models have them.
 *
 * Some rows of the weights are widened at a time, as many as stay in the cache, and multiplied in float32, so the wide
 * matrix is never in memory. A result is rounded once. */
#include "NativeFunctions.h"
#include "Functions.h"
#include "core/error.h"
#include "core/parallel.h"
#include "native/common/checks.h"

#define BLOCK_NUMBERS (INT64_C(1) << 17) /* of weights that are wide at a time, for each thread */

typedef struct {
    const char *name;
    tp_tensor *weights; /* [features, bytes] */
    tp_tensor *scales;  /* [features]; of 4 bits scales and zeros [groups, features, 2] */
    int64_t group;      /* of 4 bits: how many numbers of a row have a scale */
} packed;

static tp_tensor *rows(tp_tensor *t, int64_t dim, int64_t begin, int64_t n) {
    return tp_slice_Tensor(t, dim, (tp_opt_int){true, begin}, (tp_opt_int){true, begin + n}, 1);
}

static tp_tensor *as_float(tp_tensor *t) { return tp_to_dtype(t, TP_FLOAT32, false, false, TP_NO_FORMAT); }

/* Rows [begin, begin + n) of the weights in float32, without the scales of 8 bits, which the sums are multiplied by. */
static tp_tensor *widened(const packed *p, int64_t begin, int64_t n) {
    tp_autoref *some = rows(p->weights, 0, begin, n);
    if (!some || !p->group) return some ? as_float(some) : NULL;
    tp_autoref *numbers = rows(p->scales, 1, begin, n);
    return numbers ? tp__int4_rows(some, numbers, p->group) : NULL;
}

/* [features, rows of self], in float32. */
static tp_tensor *sums_of(const packed *p, tp_tensor *self) {
    int64_t features = p->weights->sizes[0], k = self->sizes[1], count = self->sizes[0];
    tp_autoref *wide = as_float(self), *across = wide ? tp_t(wide) : NULL;
    tp_autoref *sums = across ? tp_new_empty(TP_INTS(features, count), TP_FLOAT32, self->device) : NULL;
    int64_t most = BLOCK_NUMBERS * tp_get_num_threads() / (k ? k : 1);
    if (most < 16) most = 16;
    for (int64_t begin = 0; sums && begin < features; begin += most) {
        int64_t n = features - begin < most ? features - begin : most;
        tp_autoref *weights = widened(p, begin, n), *out = weights ? rows(sums, 0, begin, n) : NULL;
        if (!out || tp_mm_out(weights, across, out) < 0) return NULL;
    }
    return tp_take(sums);
}

static tp_tensor *in_lines(tp_tensor *t, tp_dtype dtype) {
    tp_autoref *made = tp_to_dtype(t, dtype, false, false, TP_NO_FORMAT);
    return made ? tp_contiguous(made, TP_CONTIGUOUS_FORMAT) : NULL;
}

static int check(const packed *p, const tp_tensor *self, tp_dtype stored, int64_t per_byte) {
    if (self->dtype != TP_FLOAT32 && self->dtype != TP_FLOAT16 && self->dtype != TP_BFLOAT16)
        return tp_fail(TP_RuntimeError, "%s : expect A to be either 32-bit or 16-bit float tensor.", p->name);
    if (self->ndim != 2) return tp_fail(TP_RuntimeError, "%s : expect A to be 2D tensor.", p->name);
    if (p->weights->dtype != stored)
        return tp_fail(TP_RuntimeError, "%s : expect B to be %s tensor.", p->name, tp_dtype_names[stored]);
    if (p->weights->ndim != 2 || p->weights->sizes[1] * per_byte != self->sizes[1])
        return tp_fail(TP_RuntimeError, "%s : expect B to be a matrix of size(1) %lld", p->name,
                       (long long)(self->sizes[1] / per_byte));
    if (p->scales->dtype != self->dtype)
        return tp_fail(TP_RuntimeError, "expected scalar type %s but found %s",
                       tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)p->scales->dtype));
    return 0;
}

/* _weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor */
tp_tensor *_weight_int8pack_mm_explicit(tp_tensor *self, tp_tensor *mat2, tp_tensor *scales) {
    const packed p = {"_weight_int8pack_mm", mat2, scales, 0};
    if (check(&p, self, TP_INT8, 1) < 0) return NULL;
    if (scales->ndim != 1 || scales->sizes[0] != mat2->sizes[0])
        return tp_fail_null(TP_RuntimeError, "%s : expect scales to be 1d tensor with size %lld", p.name,
                            (long long)mat2->sizes[0]);
    tp_autoref *sums = sums_of(&p, self), *across = sums ? tp_t(sums) : NULL;
    tp_autoref *factors = across ? as_float(scales) : NULL;
    tp_autoref *scaled = factors ? tp_mul_Tensor(across, factors) : NULL;
    return scaled ? in_lines(scaled, (tp_dtype)self->dtype) : NULL;
}

/* _weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor */
tp_tensor *_weight_int4pack_mm_for_cpu_explicit(tp_tensor *self, tp_tensor *mat2, int64_t group, tp_tensor *numbers) {
    const packed p = {"_weight_int4pack_mm_for_cpu", mat2, numbers, group};
    if (check(&p, self, TP_UINT8, 2) < 0) return NULL;
    if (group != 32 && group != 64 && group != 128 && group != 256)
        return tp_fail_null(TP_RuntimeError, "%s: expect qGroupSize to be 32, 64, 128 or 256, got %lld", p.name,
                            (long long)group);
    if (numbers->ndim != 3 || numbers->sizes[0] * group != self->sizes[1] || numbers->sizes[1] != mat2->sizes[0] ||
        numbers->sizes[2] != 2)
        return tp_fail_null(TP_RuntimeError, "%s: expect qScaleAndZeros to be 3d tensor with sizes [%lld, %lld, 2]",
                            p.name, (long long)(self->sizes[1] / group), (long long)mat2->sizes[0]);
    tp_autoref *sums = sums_of(&p, self), *across = sums ? tp_t(sums) : NULL;
    return across ? in_lines(across, (tp_dtype)self->dtype) : NULL;
}
