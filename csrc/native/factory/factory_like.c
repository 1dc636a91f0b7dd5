/* factory_like.c: tensors in the dtype and on the device of another, and tensors from numbers and parts. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "native/common/variants.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "prim/transfer.h"

#include <string.h>

#define OPTIONS tp_dtype dtype, tp_layout layout, tp_device device, tp_opt_bool pin_memory
#define INHERIT                                              \
    if (dtype == TP_NO_DTYPE) dtype = (tp_dtype)self->dtype; \
    if (device.type < 0) device = self->device

/* new_empty(Tensor self, SymInt[] size, *, ...) -> Tensor, and its kin */
tp_tensor *new_empty_composite(tp_tensor *self, tp_ints size, OPTIONS) {
    INHERIT;
    return tp_empty_memory_format(size, dtype, layout, device, pin_memory, TP_NO_FORMAT);
}
tp_tensor *new_zeros_composite(tp_tensor *self, tp_ints size, OPTIONS) {
    INHERIT;
    return tp_zeros(size, dtype, layout, device, pin_memory);
}
tp_tensor *new_ones_composite(tp_tensor *self, tp_ints size, OPTIONS) {
    INHERIT;
    return tp_ones(size, dtype, layout, device, pin_memory);
}
tp_tensor *new_full_composite(tp_tensor *self, tp_ints size, const tp_scalar *fill_value, OPTIONS) {
    INHERIT;
    return tp_full(size, fill_value, dtype, layout, device, pin_memory);
}
tp_tensor *new_empty_strided_composite(tp_tensor *self, tp_ints size, tp_ints stride, OPTIONS) {
    INHERIT;
    return tp_empty_strided(size, stride, dtype, layout, device, pin_memory);
}

/* scalar_tensor(Scalar s, *, ...) -> Tensor */
tp_tensor *scalar_tensor_composite(const tp_scalar *s, OPTIONS) {
    if (dtype == TP_NO_DTYPE) dtype = tp_default_dtype();
    return tp_full(TP_EMPTY_INTS, s, dtype, layout, device, pin_memory);
}

/* empty_permuted(SymInt[] size, int[] physical_layout, *, ...) -> Tensor */
tp_tensor *empty_permuted_composite(tp_ints size, tp_ints physical_layout, OPTIONS) {
    int64_t strides[TP_MAX_DIMS], step = 1;
    bool seen[TP_MAX_DIMS] = {0};
    if (size.size != physical_layout.size)
        return tp_fail_null(TP_RuntimeError,
                            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
                            "len(size) = %lld is not equal to len(physical_layout) = %lld",
                            (long long)size.size, (long long)physical_layout.size);
    if (tp_checked_numel(size) < 0) return NULL;
    for (int64_t i = size.size - 1; i >= 0; i--) {
        int64_t d = physical_layout.data[i];
        if (d < 0 || d >= size.size)
            return tp_fail_null(
                TP_RuntimeError,
                "Dimension out of range (expected to be between 0 and %lld, but got %lld at index %lld).",
                (long long)size.size - 1, (long long)d, (long long)i);
        if (seen[d]) return tp_fail_null(TP_RuntimeError, "Duplicate dim not allowed");
        seen[d] = true;
        strides[d] = step;
        step *= size.data[d] > 1 ? size.data[d] : 1;
    }
    return tp_empty_strided(size, (tp_ints){strides, size.size}, dtype, layout, device, pin_memory);
}

/* ---- eye ---- */

/* eye.m(SymInt n, SymInt m, *, ...) -> Tensor */
tp_tensor *eye_m_composite(int64_t n, int64_t m, OPTIONS) {
    if (n < 0) return tp_fail_null(TP_RuntimeError, "n must be greater or equal to 0, got %lld", (long long)n);
    if (m < 0) return tp_fail_null(TP_RuntimeError, "m must be greater or equal to 0, got %lld", (long long)m);
    tp_autoref *t = tp_zeros(TP_INTS(n, m), dtype, layout, device, pin_memory);
    tp_autoref *diagonal = t ? tp_diagonal(t, 0, 0, 1) : NULL;
    return diagonal && tp_fill__Scalar(diagonal, TP_SCALAR_I(1)) == 0 ? tp_take(t) : NULL;
}
tp_tensor *eye_composite(int64_t n, OPTIONS) { return eye_m_composite(n, n, dtype, layout, device, pin_memory); }

/* ---- triangles ---- */

static tp_tensor *triangle(const char *op, tp_tensor *given, int64_t diagonal, bool lower) {
    tp_autoref *self = tp_still(given);
    if (!self) return NULL;
    if (self->ndim < 2) return tp_fail_null(TP_RuntimeError, "%s: input tensor must have at least 2 dimensions", op);
    tp_autoref *from = tp_contiguous(self, TP_CONTIGUOUS_FORMAT);
    tp_autoref *out = from ? tp_new_empty(tp_sizes(self), (tp_dtype)self->dtype, self->device) : NULL;
    if (!out || out->numel == 0) return tp_take(out);
    int status = (lower ? tp_prim_triangle_lower : tp_prim_triangle_upper)(from, diagonal, out);
    return status == 0 ? tp_take(out) : NULL;
}
tp_tensor *tril_dense(tp_tensor *self, int64_t diagonal) { return triangle("tril", self, diagonal, true); }
tp_tensor *triu_dense(tp_tensor *self, int64_t diagonal) { return triangle("triu", self, diagonal, false); }

/* Elements of the lower triangle up to the diagonal `offset`, which is at most a step outside the matrix. */
static __int128 lower_count(int64_t row, int64_t col, __int128 offset) {
    __int128 first = offset < 0 ? -offset : 0; /* the first row with an element, and the first that is full */
    __int128 full = col - offset - 1;
    if (first >= row || col == 0) return 0;
    full = full < first ? first : full > row ? row : full;
    return (full - first) * (first + full + 2 * offset + 1) / 2 + (row - full) * col;
}

static tp_tensor *triangle_indices(int64_t row, int64_t col, int64_t offset, bool lower, OPTIONS) {
    if (row < 0) return tp_fail_null(TP_RuntimeError, "row must be non-negative, got %lld", (long long)row);
    if (col < 0) return tp_fail_null(TP_RuntimeError, "col must be non-negative, got %lld", (long long)col);
    if (dtype == TP_NO_DTYPE) dtype = TP_INT64;
    if (dtype != TP_INT64 && dtype != TP_INT32)
        return tp_fail_null(TP_NotImplementedError, "\"%s\" not implemented for '%s'",
                            lower ? "tril_indices" : "triu_indices", tp_scalar_type_name(dtype));
    offset = tp_max_int(-row, tp_min_int(col, offset));
    __int128 count = lower ? lower_count(row, col, offset) : (__int128)row * col - lower_count(row, col, offset - 1);
    if (count > INT64_MAX / 16)
        return tp_fail_null(TP_RuntimeError, "%s: the sizes overflow", lower ? "tril_indices" : "triu_indices");
    /* A matrix too large for a kernel's counting has few indices all the same, which are made on the host. */
    bool countable = (__int128)row * col < INT64_MAX / 8;
    tp_autoref *made = tp_empty_memory_format(TP_INTS(2, (int64_t)count), TP_INT64, layout, countable ? device : TP_CPU,
                                              pin_memory, TP_NO_FORMAT);
    if (!made) return NULL;
    if (count && (lower ? tp_prim_triangle_indices_lower : tp_prim_triangle_indices_upper)(row, col, offset, made) < 0)
        return NULL;
    return tp_to_device(made, device.type < 0 ? tp_default_device() : device, dtype, false, false, TP_NO_FORMAT);
}
tp_tensor *tril_indices(int64_t row, int64_t col, int64_t offset, OPTIONS) {
    return triangle_indices(row, col, offset, true, dtype, layout, device, pin_memory);
}
tp_tensor *triu_indices(int64_t row, int64_t col, int64_t offset, OPTIONS) {
    return triangle_indices(row, col, offset, false, dtype, layout, device, pin_memory);
}

/* ---- complex numbers ---- */

/* complex(Tensor real, Tensor imag) -> Tensor */
tp_tensor *complex_dense(tp_tensor *given_real, tp_tensor *given_imag) {
    tp_autoref *real = tp_still(given_real);
    tp_autoref *imag = real ? tp_still(given_imag) : NULL;
    if (!imag) return NULL;
    int64_t sizes[TP_MAX_DIMS];
    bool takes_both = tp_is_floating(real) && tp_is_floating(imag);
    if (!takes_both || real->dtype == TP_BFLOAT16 || tp_is_float8_dtype((tp_dtype)real->dtype))
        return tp_fail_null(TP_RuntimeError,
                            "Expected both inputs to be Half, Float or Double tensors but got %s and %s",
                            tp_scalar_type_name((tp_dtype)real->dtype), tp_scalar_type_name((tp_dtype)imag->dtype));
    if (real->dtype != imag->dtype)
        return tp_fail_null(TP_RuntimeError,
                            "Expected object of scalar type %s but got scalar type %s for second argument",
                            tp_scalar_type_name((tp_dtype)real->dtype), tp_scalar_type_name((tp_dtype)imag->dtype));
    int ndim = tp_broadcast_sizes(tp_sizes(real), tp_sizes(imag), sizes);
    if (ndim < 0) return NULL;
    tp_autoref *out = tp_new_empty((tp_ints){sizes, ndim}, tp_to_complex_dtype((tp_dtype)real->dtype), real->device);
    tp_autoref *parts = out ? tp_view_as_real(out) : NULL;
    tp_autoref *re = parts ? tp_select_int(parts, -1, 0) : NULL, *im = parts ? tp_select_int(parts, -1, 1) : NULL;
    return re && im && tp_copy_data(re, real) == 0 && tp_copy_data(im, imag) == 0 ? tp_take(out) : NULL;
}
/* complex.out(Tensor real, Tensor imag, *, Tensor(a!) out) -> Tensor(a!) */
int complex_out_composite(tp_tensor *real, tp_tensor *imag, tp_tensor *out) {
    tp_autoref *made = tp_complex(real, imag);
    return made ? tp_copy_into_out(out, made) : -1;
}
/* polar(Tensor abs, Tensor angle) -> Tensor */
tp_tensor *polar_composite(tp_tensor *abs, tp_tensor *angle) {
    bool takes_both = tp_is_floating(abs) && tp_is_floating(angle);
    if (!takes_both || tp_is_reduced_dtype((tp_dtype)abs->dtype) || tp_is_reduced_dtype((tp_dtype)angle->dtype))
        return tp_fail_null(TP_RuntimeError,
                            "Expected both inputs to be Half, Float or Double tensors but got %s and %s",
                            tp_scalar_type_name((tp_dtype)abs->dtype), tp_scalar_type_name((tp_dtype)angle->dtype));
    if (abs->dtype != angle->dtype)
        return tp_fail_null(TP_RuntimeError,
                            "Expected object of scalar type %s but got scalar type %s for second argument",
                            tp_scalar_type_name((tp_dtype)abs->dtype), tp_scalar_type_name((tp_dtype)angle->dtype));
    tp_autoref *c = tp_cos(angle), *s = tp_sin(angle);
    tp_autoref *re = c ? tp_mul_Tensor(abs, c) : NULL, *im = s ? tp_mul_Tensor(abs, s) : NULL;
    return re && im ? tp_complex(re, im) : NULL;
}
/* polar.out(Tensor abs, Tensor angle, *, Tensor(a!) out) -> Tensor(a!) */
int polar_out_composite(tp_tensor *abs, tp_tensor *angle, tp_tensor *out) {
    tp_autoref *made = tp_polar(abs, angle);
    return made ? tp_copy_into_out(out, made) : -1;
}

/* vander(Tensor x, int? N=None, bool increasing=False) -> Tensor */
tp_tensor *vander_composite(tp_tensor *x, tp_opt_int N, bool increasing) {
    if (x->ndim != 1) return tp_fail_null(TP_RuntimeError, "x must be a one-dimensional tensor.");
    int64_t n = N.has ? N.value : x->numel;
    if (n < 0) return tp_fail_null(TP_RuntimeError, "N must be non-negative.");
    tp_dtype dtype = tp_promote_dtypes((tp_dtype)x->dtype, TP_INT64);
    if (n == 0) return tp_new_zeros(x, TP_INTS(x->numel, 0), dtype, TP_NO_LAYOUT, TP_NO_DEVICE, -1);
    tp_autoref *wide = tp_to_dtype(x, dtype, false, false, TP_NO_FORMAT), *column = wide ? tp_unsqueeze(wide, 1) : NULL,
               *powers = !column ? NULL
                         : n > 1 ? tp_linalg_vander(wide, TP_SOME_INT(n))
                                 : tp_ones_like(column, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    return !powers || increasing ? tp_take(powers) : tp_flip(powers, TP_INTS(1));
}
