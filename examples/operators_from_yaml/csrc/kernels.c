/* kernels.c: what the YAML leaves to C; declared in the generated header. The CPU's take float32 and float64. */
#include "signals_kernels.h"

TENSORPY_HANDLE(tp_tensor *, times, "aten::mul.Scalar", (tp_tensor *, self), (const tp_scalar *, other))
TENSORPY_HANDLE(tp_tensor *, contiguous, "aten::contiguous", (tp_tensor *, self), (tp_memory_format, format))

static int refuse_dtype(const char *op, tp_dtype dtype) {
    return tp_fail(TP_TypeError, "%s takes float32 and float64, not %s", op, tp_dtype_name(dtype));
}

/* ---- frames ---- */

int frames_meta(tp_meta *m, tp_tensor *self, int64_t size, int64_t step) {
    tp_view v = tp_view_of(self);
    int64_t sizes[TP_MAX_DIMS], length = v.ndim ? v.sizes[v.ndim - 1] : 0;
    if (size < 1 || step < 1 || length < size || v.ndim == TP_MAX_DIMS)
        return tp_fail(TP_ValueError, "frames of %lld, a step of %lld, of a signal of %lld", (long long)size,
                       (long long)step, (long long)length);
    for (int i = 0; i < v.ndim - 1; i++) sizes[i] = v.sizes[i];
    sizes[v.ndim - 1] = (length - size) / step + 1;
    sizes[v.ndim] = size;
    return tp_meta_output(m, 0, (tp_ints){sizes, v.ndim + 1}, TP_NO_INTS, v.dtype, v.device);
}

int frames_cpu(tp_tensor *self, int64_t size, int64_t step, tp_tensor *out) {
    tp_autoref *dense = contiguous(self, TP_CONTIGUOUS_FORMAT);
    if (!dense) return -1;
    tp_view in = tp_view_of(dense), made = tp_view_of(out);
    if (!tp_is_floating_dtype(in.dtype)) return refuse_dtype("frames", in.dtype);
    int64_t item = tp_itemsize(in.dtype), length = in.sizes[in.ndim - 1], n = (length - size) / step + 1;
    const char *from = (const char *)in.data;
    char *to = (char *)made.data;
    for (int64_t row = 0; row < in.numel / length; row++)
        for (int64_t i = 0; i < n; i++, to += size * item)
            memcpy(to, from + (row * length + i * step) * item, (size_t)(size * item));
    return 0;
}

static tp_tensor *signal_of(tp_tensor *grad, int64_t length, int64_t step) {
    tp_view v = tp_view_of(grad);
    int64_t sizes[TP_MAX_DIMS];
    int ndim = v.ndim;
    if (ndim < 2 || step < 1 || (length - v.sizes[ndim - 1]) / step + 1 != v.sizes[ndim - 2])
        return tp_fail_null(TP_ValueError, "frames_backward: frames that are no pieces of a signal of %lld",
                            (long long)length);
    for (int i = 0; i < ndim - 2; i++) sizes[i] = v.sizes[i];
    sizes[ndim - 2] = length;
    return tp_new_empty((tp_ints){sizes, ndim - 1}, v.dtype, v.device);
}

#define ADD_FRAMES(type)                                                                               \
    static void add_frames_##type(type *to, const type *from, int64_t n, int64_t size, int64_t step) { \
        for (int64_t i = 0; i < n; i++)                                                                \
            for (int64_t k = 0; k < size; k++) to[i * step + k] += from[i * size + k];                 \
    }
ADD_FRAMES(float)
ADD_FRAMES(double)

tp_tensor *frames_backward_cpu(tp_tensor *grad, int64_t length, int64_t step) {
    tp_autoref *dense = contiguous(grad, TP_CONTIGUOUS_FORMAT);
    tp_autoref *out = dense ? signal_of(dense, length, step) : NULL;
    if (!out) return NULL;
    tp_view in = tp_view_of(dense), made = tp_view_of(out);
    if (in.dtype != TP_FLOAT32 && in.dtype != TP_FLOAT64) return refuse_dtype("frames_backward", in.dtype), NULL;
    int64_t size = in.sizes[in.ndim - 1], n = in.sizes[in.ndim - 2], rows = made.numel / (length ? length : 1);
    memset(made.data, 0, (size_t)(made.numel * tp_itemsize(made.dtype)));
    for (int64_t r = 0; r < rows; r++) {
        int64_t to = r * length, from = r * n * size;
        if (in.dtype == TP_FLOAT32) add_frames_float((float *)made.data + to, (float *)in.data + from, n, size, step);
        else add_frames_double((double *)made.data + to, (double *)in.data + from, n, size, step);
    }
    return tp_take(out);
}
tp_tensor *frames_backward_meta(tp_tensor *grad, int64_t length, int64_t step) { return signal_of(grad, length, step); }

/* ---- rms ---- */

int rms_cpu(tp_tensor *self, double *result) {
    tp_autoref *energy = signals_energy(self, TP_FLOAT64);
    if (!energy) return -1;
    *result = sqrt(*(double *)tp_view_of(energy).data / (double)tp_numel_of(self));
    return 0;
}

/* ---- mix ---- */

static int check_mix(tp_tensors signals, tp_floats gains) {
    if (signals.size == 0 || signals.size != gains.size)
        return tp_fail(TP_ValueError, "mix: %lld signals and %lld gains", (long long)signals.size,
                       (long long)gains.size);
    tp_view first = tp_view_of(signals.data[0]);
    for (int64_t i = 1; i < signals.size; i++)
        if (!tp_ints_equal(tp_sizes(signals.data[i]), (tp_ints){first.sizes, first.ndim}) ||
            tp_dtype_of(signals.data[i]) != first.dtype)
            return tp_fail(TP_ValueError, "mix: signals of several shapes or dtypes");
    return 0;
}

tp_tensor *mix_meta(tp_tensors signals, tp_floats gains) {
    return check_mix(signals, gains) < 0
               ? NULL
               : tp_new_empty(tp_sizes(signals.data[0]), tp_dtype_of(signals.data[0]), tp_device_of(signals.data[0]));
}

#define ADD_SIGNAL(type)                                                                          \
    static void add_signal_##type(type *to, const type *from, int64_t n, type gain, bool first) { \
        for (int64_t i = 0; i < n; i++) to[i] = (first ? 0 : to[i]) + gain * from[i];             \
    }
ADD_SIGNAL(float)
ADD_SIGNAL(double)

tp_tensor *mix_cpu(tp_tensors signals, tp_floats gains) {
    tp_autoref *out = mix_meta(signals, gains);
    if (!out) return NULL;
    tp_view made = tp_view_of(out);
    if (made.dtype != TP_FLOAT32 && made.dtype != TP_FLOAT64) return refuse_dtype("mix", made.dtype), NULL;
    for (int64_t i = 0; i < signals.size; i++) {
        tp_autoref *dense = contiguous(signals.data[i], TP_CONTIGUOUS_FORMAT);
        if (!dense) return NULL;
        void *from = tp_view_of(dense).data;
        double gain = gains.data[i];
        if (made.dtype == TP_FLOAT32) add_signal_float(made.data, from, made.numel, (float)gain, i == 0);
        else add_signal_double(made.data, from, made.numel, gain, i == 0);
    }
    return tp_take(out);
}

tp_tensor_seq *mix_backward_composite(tp_tensor *grad, tp_floats gains) {
    tp_autoseq *out = tp_seq_new(gains.size);
    for (int64_t i = 0; out && i < gains.size; i++) {
        tp_tensor *part = times(grad, TP_SCALAR_F(gains.data[i]));
        if (!part) return NULL;
        tp_seq_put_steal(out, i, part);
    }
    return tp_take(out);
}
