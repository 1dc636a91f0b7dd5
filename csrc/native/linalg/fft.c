/* fft.c: discrete Fourier transforms: how lengths, dimensions and norms are read, and transforms of several dimensions
 * as one after the other. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "iter/iter.h"
#include "native/common/checks.h"
#include "prim/transfer.h"

#include <math.h>
#include <string.h>

/* What a transform of n elements is divided by. */
enum { BY_NOTHING, BY_ROOT, BY_ALL };

static double scale_of(int64_t normalization, double n) {
    return normalization == BY_ROOT ? 1 / sqrt(n) : normalization == BY_ALL ? 1 / n : 1;
}
static int64_t normalization_of(const char *norm, bool forward) {
    if (!norm || strcmp(norm, "backward") == 0) return forward ? BY_NOTHING : BY_ALL;
    if (strcmp(norm, "forward") == 0) return forward ? BY_ALL : BY_NOTHING;
    if (strcmp(norm, "ortho") == 0) return BY_ROOT;
    return tp_fail(TP_RuntimeError, "Invalid normalization mode: \"%s\"", norm);
}
static double count_along(const tp_tensor *t, tp_ints dim) {
    double n = 1;
    for (int64_t i = 0; i < dim.size; i++) n *= (double)t->sizes[dim.data[i]];
    return n;
}
static int wrap_dims(const tp_tensor *t, tp_ints dim, int64_t *out) {
    uint64_t seen = 0;
    for (int64_t i = 0; i < dim.size; i++) {
        if ((out[i] = tp_wrap_own_dim(dim.data[i], t)) < 0) return -1;
        if (seen >> out[i] & 1) return tp_fail(TP_RuntimeError, "FFT dims must be unique");
        seen |= (uint64_t)1 << out[i];
    }
    return 0;
}
static int check_precision(const char *op, const tp_tensor *t, bool complex_wanted) {
    if (tp_is_reduced_dtype((tp_dtype)t->dtype) || tp_is_complex(t) != complex_wanted ||
        (!tp_is_complex(t) && !tp_is_floating(t)))
        return tp_fail(TP_RuntimeError, "%s: not implemented for %s", op, tp_dtype_names[t->dtype]);
    return 0;
}

/* ---- the transforms that the primitives do ---- */

/* _fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor */
tp_tensor *_fft_c2c_dense(tp_tensor *self, tp_ints dim, int64_t normalization, bool forward) {
    int64_t dims[TP_MAX_DIMS];
    if (check_precision("_fft_c2c", self, true) < 0 || wrap_dims(self, dim, dims) < 0) return NULL;
    tp_autoref *now = tp_contiguous(self, TP_CONTIGUOUS_FORMAT);
    if (now && (dim.size == 0 || now->numel == 0)) return tp_clone(now, TP_NO_FORMAT);
    double scale = scale_of(normalization, count_along(self, (tp_ints){dims, dim.size}));
    for (int64_t i = dim.size - 1; now && i >= 0; i--) {
        tp_autoref *out = tp_new_empty(tp_sizes(self), (tp_dtype)self->dtype, self->device);
        if (!out || tp_prim_fft_complex(now, dims[i], !forward, i ? 1 : scale, out) < 0) return NULL;
        tp_release(now);
        now = tp_take(out);
    }
    return tp_take(now);
}
/* _fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor */
tp_tensor *_fft_r2c_dense(tp_tensor *self, tp_ints dim, int64_t normalization, bool onesided) {
    int64_t dims[TP_MAX_DIMS], sizes[TP_MAX_DIMS];
    if (check_precision("_fft_r2c", self, false) < 0 || wrap_dims(self, dim, dims) < 0) return NULL;
    tp_dtype dtype = tp_to_complex_dtype((tp_dtype)self->dtype);
    if (!onesided || dim.size == 0) {
        tp_autoref *wide = tp_to_dtype(self, dtype, false, false, TP_NO_FORMAT);
        return wide ? _fft_c2c_dense(wide, dim, normalization, true) : NULL;
    }
    int64_t last = dims[dim.size - 1];
    memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
    sizes[last] = sizes[last] / 2 + 1;
    tp_autoref *in = tp_contiguous(self, TP_CONTIGUOUS_FORMAT),
               *out = in ? tp_new_empty((tp_ints){sizes, self->ndim}, dtype, self->device) : NULL;
    if (!out || out->numel == 0 || in->numel == 0) return tp_take(out);
    double scale = scale_of(normalization, count_along(self, (tp_ints){dims, dim.size}));
    if (tp_prim_fft_real(in, last, scale, out) < 0) return NULL;
    return dim.size == 1 ? tp_take(out) : _fft_c2c_dense(out, (tp_ints){dims, dim.size - 1}, BY_NOTHING, true);
}
/* _fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor */
tp_tensor *_fft_c2r_dense(tp_tensor *self, tp_ints dim, int64_t normalization, int64_t n) {
    int64_t dims[TP_MAX_DIMS], sizes[TP_MAX_DIMS];
    if (check_precision("_fft_c2r", self, true) < 0 || wrap_dims(self, dim, dims) < 0) return NULL;
    if (dim.size == 0) return tp_fail_null(TP_RuntimeError, "_fft_c2r: no dimension to transform");
    int64_t last = dims[dim.size - 1];
    if (n < 1 || self->sizes[last] != n / 2 + 1)
        return tp_fail_null(TP_RuntimeError, "_fft_c2r: %lld numbers are not the first half of a transform of %lld",
                            (long long)self->sizes[last], (long long)n);
    memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
    sizes[last] = n;
    tp_autoref *in = dim.size == 1 ? tp_contiguous(self, TP_CONTIGUOUS_FORMAT)
                                   : _fft_c2c_dense(self, (tp_ints){dims, dim.size - 1}, BY_NOTHING, false);
    tp_autoref *out =
        in ? tp_new_empty((tp_ints){sizes, self->ndim}, tp_to_real_dtype((tp_dtype)self->dtype), self->device) : NULL;
    if (!out || out->numel == 0) return tp_take(out);
    double scale = scale_of(normalization, count_along(out, (tp_ints){dims, dim.size}));
    return tp_prim_fft_hermitian(in, last, scale, out) == 0 ? tp_take(out) : NULL;
}

/* ---- what is given becomes what they take ---- */

static tp_tensor *promoted(const char *op, tp_tensor *self, bool to_complex) {
    tp_dtype dtype = tp_is_floating(self) || tp_is_complex(self) ? (tp_dtype)self->dtype : tp_default_dtype();
    if (tp_is_reduced_dtype(dtype) || tp_is_float8_dtype(dtype))
        return tp_fail_null(TP_RuntimeError, "%s: Unsupported dtype %s", op, tp_dtype_names[dtype]);
    return tp_to_dtype(self, to_complex ? tp_to_complex_dtype(dtype) : dtype, false, false, TP_NO_FORMAT);
}
/* Cut, or with zeros after, to n along a dimension. */
static tp_tensor *resized(tp_tensor *t, int64_t dim, int64_t n) {
    int64_t pad[2 * TP_MAX_DIMS] = {0}, size = t->sizes[dim];
    if (size >= n) return size == n ? tp_retain(t) : tp_narrow(t, dim, 0, n);
    pad[2 * (t->ndim - 1 - dim) + 1] = n - size;
    return tp_constant_pad_nd(t, (tp_ints){pad, 2 * (t->ndim - dim)}, TP_SCALAR_I(0));
}
static int check_points(int64_t n) {
    return n >= 1 ? 0 : tp_fail(TP_RuntimeError, "Invalid number of data points (%lld) specified", (long long)n);
}
/* The dimensions and lengths of a transform of several; returns how many, or -1. */
static int64_t shape_of(const tp_tensor *t, tp_ints s, tp_ints dim, int64_t *dims, int64_t *lengths) {
    int64_t count = dim.size >= 0 ? dim.size : s.size >= 0 ? s.size : t->ndim;
    if (dim.size >= 0 && s.size >= 0 && dim.size != s.size)
        return tp_fail(TP_RuntimeError, "When given, dim and shape arguments must have the same length");
    if (t->ndim == 0 && dim.size > 0)
        return tp_fail(TP_IndexError, "Dimension specified as %lld but tensor has no dimensions",
                       (long long)dim.data[0]);
    if (count > t->ndim && (dim.size < 0 || count > TP_MAX_DIMS))
        return tp_fail(TP_RuntimeError, "Got shape with %lld values but input tensor only has %d dimensions.",
                       (long long)count, t->ndim);
    int64_t given[TP_MAX_DIMS];
    for (int64_t i = 0; i < count; i++) given[i] = dim.size >= 0 ? dim.data[i] : t->ndim - count + i;
    if (wrap_dims(t, (tp_ints){given, count}, dims) < 0) return -1;
    for (int64_t i = 0; i < count; i++) {
        lengths[i] = s.size >= 0 && s.data[i] != -1 ? s.data[i] : t->sizes[dims[i]];
        if (check_points(lengths[i]) < 0) return -1;
    }
    return count;
}
static tp_tensor *all_resized(tp_tensor *t, const int64_t *dims, const int64_t *lengths, int64_t count) {
    tp_tensor *now = tp_retain(t);
    for (int64_t i = 0; now && i < count; i++) {
        tp_tensor *next = resized(now, dims[i], lengths[i]);
        tp_release(now);
        now = next;
    }
    return now;
}

typedef enum { C2C, R2C, C2R } kind;

/* Transforms several dimensions. `conj`: of the conjugate (C2R), or the conjugate of it (R2C), as hfft and ihfft do.
 * `real` is what a real transform says of complex numbers. */
static tp_tensor *transform(const char *op, const char *real, kind what, tp_tensor *self, tp_ints s, tp_ints dim,
                            const char *norm, bool forward, bool conj) {
    int64_t dims[TP_MAX_DIMS], lengths[TP_MAX_DIMS], normalization = normalization_of(norm, forward);
    if (normalization < 0) return NULL;
    if (what == R2C && tp_is_complex(self))
        return tp_fail_null(TP_RuntimeError, "%s %s", real, tp_scalar_type_name((tp_dtype)self->dtype));
    tp_autoref *in = promoted(op, self, what != R2C);
    int64_t count = in ? shape_of(in, s, dim, dims, lengths) : -1;
    if (count < 0) return NULL;
    if (count == 0) {
        if (what == C2C) return tp_clone(in, TP_NO_FORMAT);
        return tp_fail_null(TP_RuntimeError, "%s must transform at least one axis", op);
    }
    int64_t last = lengths[count - 1];
    if (what == C2R) {
        if (s.size < 0 || s.data[count - 1] == -1) last = 2 * (last - 1);
        if (check_points(last) < 0) return NULL;
        lengths[count - 1] = last / 2 + 1;
    }
    tp_autoref *sized = all_resized(in, dims, lengths, count);
    tp_ints all = {dims, count}, end = {dims + count - 1, 1}, rest = {dims, count - 1};
    if (!sized) return NULL;
    if (what == C2C) return tp__fft_c2c(sized, all, normalization, forward);
    if (!conj)
        return what == R2C ? tp__fft_r2c(sized, all, normalization, true)
                           : tp__fft_c2r(sized, all, normalization, last);
    if (what == C2R) {
        tp_autoref *turned = count > 1 ? tp__fft_c2c(sized, rest, normalization, true) : tp_retain(sized);
        tp_autoref *flipped = turned ? tp_conj_physical(turned) : NULL;
        return flipped ? tp__fft_c2r(flipped, end, normalization, last) : NULL;
    }
    tp_autoref *half = tp__fft_r2c(sized, end, normalization, true), *flipped = half ? tp_conj_physical(half) : NULL;
    if (count == 1) return tp_take(flipped);
    return flipped ? tp__fft_c2c(flipped, rest, normalization, false) : NULL;
}

/* fft_<name>(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor, and its kin of 2 and of n dimensions;
 * what one dimension and what several say of complex numbers. */
#define TRANSFORM(name, what, forward, conj, one, several)                                                \
    tp_tensor *fft_##name##_composite(tp_tensor *self, tp_opt_int n, int64_t dim, const char *norm) {     \
        tp_ints length = n.has ? (tp_ints){&n.value, 1} : TP_NO_INTS;                                     \
        if (n.has && check_points(n.value) < 0) return NULL;                                              \
        return transform("fft_" #name, one, what, self, length, (tp_ints){&dim, 1}, norm, forward, conj); \
    }                                                                                                     \
    tp_tensor *fft_##name##2_composite(tp_tensor * self, tp_ints s, tp_ints dim, const char *norm) {      \
        return transform("fft_" #name "2", several, what, self, s, dim, norm, forward, conj);             \
    }                                                                                                     \
    tp_tensor *fft_##name##n_composite(tp_tensor *self, tp_ints s, tp_ints dim, const char *norm) {       \
        return transform("fft_" #name "n", several, what, self, s, dim, norm, forward, conj);             \
    }
TRANSFORM(fft, C2C, true, false, NULL, NULL)
TRANSFORM(ifft, C2C, false, false, NULL, NULL)
TRANSFORM(rfft, R2C, true, false, "rfft expects a real input tensor, but got",
          "rfftn expects a real-valued input tensor, but got")
TRANSFORM(irfft, C2R, false, false, NULL, NULL)
TRANSFORM(hfft, C2R, true, true, NULL, NULL)
TRANSFORM(ihfft, R2C, false, true, "ihfft expects a real input tensor, but got",
          "Only supports floating-point dtypes, but found:")

/* ---- places of frequencies ---- */

static tp_tensor *shifted(tp_tensor *self, tp_ints dim, bool back) {
    int64_t dims[TP_MAX_DIMS], by[TP_MAX_DIMS], count = dim.size >= 0 ? dim.size : self->ndim;
    if (count > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "fft_%s: more than %d dimensions", back ? "ifftshift" : "fftshift",
                            TP_MAX_DIMS);
    for (int64_t i = 0; i < count; i++) {
        dims[i] = dim.size >= 0 ? tp_wrap_dim(dim.data[i], self->ndim) : i;
        if (dims[i] < 0) return NULL;
        int64_t n = self->ndim ? self->sizes[dims[i]] : 1;
        by[i] = back ? n / 2 + n % 2 : n / 2;
    }
    return tp_roll(self, (tp_ints){by, count}, (tp_ints){dims, count});
}
/* fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor */
tp_tensor *fft_fftshift_composite(tp_tensor *self, tp_ints dim) { return shifted(self, dim, false); }
tp_tensor *fft_ifftshift_composite(tp_tensor *self, tp_ints dim) { return shifted(self, dim, true); }

static tp_tensor *frequencies(int64_t n, double d, bool half, tp_dtype dtype, tp_device device) {
    if (dtype == TP_NO_DTYPE) dtype = tp_default_dtype();
    if (!tp_is_floating_dtype(dtype) && !tp_is_complex_dtype(dtype))
        return tp_fail_null(TP_RuntimeError, "%s requires a floating point or complex dtype",
                            half ? "rfftfreq" : "fftfreq");
    int64_t positive = half ? n / 2 + 1 : n / 2 + n % 2;
    tp_autoref *first = tp_arange(&(tp_scalar){.kind = TP_SCALAR_INT, .i = positive}, dtype, TP_STRIDED, device, -1);
    tp_autoref *second =
        first && !half ? tp_arange_start(TP_SCALAR_I(-(n / 2)), TP_SCALAR_I(0), dtype, TP_STRIDED, device, -1) : NULL;
    tp_tensor *both[] = {first, second};
    tp_autoref *all = half ? tp_retain(first) : second ? tp_cat((tp_tensors){both, 2}, 0) : NULL;
    return all ? tp_mul_Scalar(all, TP_SCALAR_F(1 / ((double)n * d))) : NULL;
}
/* fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *   bool? pin_memory=None) -> Tensor */
tp_tensor *fft_fftfreq_composite(int64_t n, double d, tp_dtype dtype, tp_layout layout, tp_device device,
                                 tp_opt_bool pin) {
    return frequencies(n, d, false, dtype, device);
}
tp_tensor *fft_rfftfreq_composite(int64_t n, double d, tp_dtype dtype, tp_layout layout, tp_device device,
                                  tp_opt_bool pin) {
    return frequencies(n, d, true, dtype, device);
}
