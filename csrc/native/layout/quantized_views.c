/* quantized_views.c: views and copies of quantized tensors, and writes to them (Note [Quantized kernels]). Views that
 * know no channels are `quantized: moves` of their entries. */
#include "native/layout/quantized.h"

#include "NativeFunctions.h"
#include "core/host.h"
#include "core/scalar.h"
#include "dispatch/key.h"
#include "iter/iter.h"

/* ---- views that keep channels apart ---- */

static tp_tensor *with_axis(const tp_quantized *q, tp_tensor *integers, int64_t axis) {
    return integers ? tp__quantized_channels(integers, q->dtype, q->scales, q->zero_points, axis) : NULL;
}

/* view(Tensor(a) self, SymInt[] size) -> Tensor(a) */
tp_tensor *view_quantized(tp_tensor *self, tp_ints size) {
    tp_autoref *integers = tp_memory_of(self), *view = integers ? tp_view(integers, size) : NULL;
    return view ? tp__quantized_same(self, view) : NULL;
}

/* What is left of channels when one is taken has one scale. */
static tp_tensor *one_channel(const tp_quantized *q, tp_tensor *integers, tp_tensor *scale, tp_tensor *zero_point) {
    tp_scalar by, at;
    if (!scale || !zero_point || tp__local_scalar_dense(scale, &by) < 0 || tp__local_scalar_dense(zero_point, &at) < 0)
        return NULL;
    if (at.kind == TP_SCALAR_FLOAT)
        return tp_fail_null(TP_RuntimeError,
                            "one channel of a tensor with float zero points is no quantized tensor: dequantize()");
    return tp__quantized(integers, q->dtype, by.f, at.i);
}

/* slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a) */
tp_tensor *slice_quantized(tp_tensor *self, int64_t dim, tp_opt_int start, tp_opt_int end, int64_t step) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    tp_autoref *view = tp_slice_Tensor(q.integers, dim, start, end, step);
    if (!view) return NULL;
    if (!q.channels || tp_wrap_dim(dim, self->ndim) != q.axis) return tp__quantized_same(self, view);
    tp_autoref *scales = tp_slice_Tensor(q.scales, 0, start, end, step),
               *zero_points = tp_slice_Tensor(q.zero_points, 0, start, end, step);
    if (!scales || !zero_points) return NULL;
    return scales->numel == 1 && !tp_is_floating(zero_points)
               ? one_channel(&q, view, scales, zero_points)
               : tp__quantized_channels(view, q.dtype, scales, zero_points, q.axis);
}

/* select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a) */
tp_tensor *select_quantized(tp_tensor *self, int64_t dim, int64_t index) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    tp_autoref *view = tp_select_int(q.integers, dim, index);
    if (!view) return NULL;
    if (!q.channels) return tp__quantized_like(self, view);
    int64_t at = tp_wrap_dim(dim, self->ndim);
    if (at != q.axis) return with_axis(&q, view, q.axis - (at < q.axis));
    tp_autoref *scale = tp_select_int(q.scales, 0, index), *zero_point = tp_select_int(q.zero_points, 0, index);
    return one_channel(&q, view, scale, zero_point);
}

/* unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *unbind_quantized(tp_tensor *self, int64_t dim) {
    if (self->ndim == 0) return tp_fail(TP_RuntimeError, "unbind: a tensor without dimensions"), NULL;
    int64_t at = tp_wrap_dim(dim, self->ndim);
    tp_autoseq *made = at < 0 ? NULL : tp_tensor_seq_new(self->sizes[at]);
    for (int64_t i = 0; made && i < made->size; i++)
        if (!(made->items[i] = tp_select_int(self, at, i))) return NULL;
    tp_tensor_seq *result = made;
    made = NULL;
    return result;
}

/* unsqueeze(Tensor(a) self, int dim) -> Tensor(a) */
tp_tensor *unsqueeze_quantized(tp_tensor *self, int64_t dim) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    tp_autoref *view = tp_unsqueeze(q.integers, dim);
    if (!view) return NULL;
    if (!q.channels) return tp__quantized_like(self, view);
    return with_axis(&q, view, q.axis + (tp_wrap_dim(dim, self->ndim + 1) <= q.axis));
}

/* Dimensions of size 1 among those asked for (all for NULL) are gone. */
static tp_tensor *squeezed(tp_tensor *self, const tp_quantized *q, tp_tensor *view, const tp_ints *dims) {
    if (!view || !q->channels) return view ? tp__quantized_like(self, view) : NULL;
    uint64_t asked = dims ? 0 : ~UINT64_C(0);
    for (int64_t i = 0; dims && i < dims->size; i++) asked |= UINT64_C(1) << tp_wrap_dim(dims->data[i], self->ndim);
    int64_t axis = q->axis;
    for (int64_t d = 0; d <= q->axis; d++) {
        if (!(asked >> d & 1) || self->sizes[d] != 1) continue;
        if (d == q->axis)
            return tp_fail_null(TP_RuntimeError,
                                "Squeeze is only possible on non-axis dimension for Per-Channel Quantized Tensors.");
        axis--;
    }
    return with_axis(q, view, axis);
}

/* squeeze(Tensor(a) self) -> Tensor(a) */
tp_tensor *squeeze_quantized(tp_tensor *self) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    tp_autoref *view = tp_squeeze(q.integers);
    return squeezed(self, &q, view, NULL);
}

/* squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a) */
tp_tensor *squeeze_dims_quantized(tp_tensor *self, tp_ints dim) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    tp_autoref *view = tp_squeeze_dims(q.integers, dim);
    return squeezed(self, &q, view, &dim);
}

/* squeeze.dim(Tensor(a) self, int dim) -> Tensor(a) */
tp_tensor *squeeze_dim_quantized(tp_tensor *self, int64_t dim) { return squeeze_dims_quantized(self, TP_INTS(dim)); }

/* ---- copies ---- */

/* clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor */
tp_tensor *clone_quantized(tp_tensor *self, tp_memory_format memory_format) {
    tp_autoref *integers = tp_memory_of(self), *own = integers ? tp_clone(integers, memory_format) : NULL;
    return own ? tp__quantized_same(self, own) : NULL;
}

static int check_same_dtype(const tp_tensor *self, tp_dtype dtype) {
    if (dtype < 0 || dtype == self->dtype) return 0;
    return tp_fail(TP_RuntimeError,
                   "a tensor of %s has no other dtype: dequantize() gives float32, int_repr() integers",
                   tp_dtype_names[self->dtype]);
}

/* empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, ...) -> Tensor */
tp_tensor *empty_like_quantized(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device,
                                tp_opt_bool pin_memory, tp_memory_format memory_format) {
    if (check_same_dtype(self, dtype) < 0) return NULL;
    tp_autoref *integers = tp_memory_of(self);
    tp_autoref *own = integers ? tp_empty_like(integers, TP_NO_DTYPE, layout, device, pin_memory, memory_format) : NULL;
    return own ? tp__quantized_same(self, own) : NULL;
}

/* _to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, ...) -> Tensor */
tp_tensor *_to_copy_quantized(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device,
                              tp_opt_bool pin_memory, bool non_blocking, tp_memory_format memory_format) {
    tp_autoquantized q = {0};
    if (check_same_dtype(self, dtype) < 0 || tp_quantized_of(self, &q) < 0) return NULL;
    tp_autoref *own = tp__to_copy(q.integers, TP_NO_DTYPE, layout, device, pin_memory, non_blocking, memory_format);
    if (!own || !q.channels) return own ? tp__quantized(own, q.dtype, q.scale, q.zero_point) : NULL;
    tp_autoref *scales = tp_to_device(q.scales, own->device, TP_FLOAT64, false, false, TP_NO_FORMAT);
    tp_autoref *zero_points =
        tp_to_device(q.zero_points, own->device, (tp_dtype)q.zero_points->dtype, false, false, TP_NO_FORMAT);
    if (scales && scales->dtype != q.scales->dtype) return NULL;
    return scales && zero_points ? tp__quantized_channels(own, q.dtype, scales, zero_points, q.axis) : NULL;
}

/* ---- comparing ---- */

static int read_equally(const tp_quantized *a, const tp_quantized *b, bool *result) {
    *result = a->dtype == b->dtype && a->channels == b->channels;
    if (!*result) return 0;
    if (!a->channels) {
        *result = a->scale == b->scale && a->zero_point == b->zero_point;
        return 0;
    }
    *result = a->axis == b->axis && a->scales->dtype == b->scales->dtype;
    if (*result && tp_equal(a->scales, b->scales, result) < 0) return -1;
    return *result ? tp_equal(a->zero_points, b->zero_points, result) : 0;
}

/* equal(Tensor self, Tensor other) -> bool: integers, and how they are read. */
int equal_quantized(tp_tensor *self, tp_tensor *other, bool *result) {
    *result = false;
    if (!tp_is_quantized(self) || !tp_is_quantized(other)) return 0;
    tp_autoquantized a = {0}, b = {0};
    if (tp_quantized_of(self, &a) < 0 || tp_quantized_of(other, &b) < 0 || read_equally(&a, &b, result) < 0) return -1;
    return *result ? tp_equal(a.integers, b.integers, result) : 0;
}

/* ---- writing ---- */

/* copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!) */
int copy__quantized(tp_tensor *self, tp_tensor *src, bool non_blocking TP_UNUSED) {
    if (!tp_is_quantized(self))
        return tp_fail(TP_RuntimeError, "Copying from quantized Tensor to non-quantized Tensor is not allowed, please "
                                        "use dequantize to get a float Tensor from a quantized Tensor");
    if (tp_is_quantized(src)) {
        tp_autoref *whole = tp_same_sizes(self, src) ? tp_retain(src) : tp_expand(src, tp_sizes(self), false);
        return whole ? tp_write_quantized(self, whole, "copy_") : -1;
    }
    tp_autoref *numbers = tp_expand(src, tp_sizes(self), false);
    tp_autoref *made = numbers ? tp__requantized(self, numbers) : NULL;
    return made ? tp_write_quantized(self, made, "copy_") : -1;
}

/* resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!): the memory of the
 * integers is that of the aliases, which keep their sizes. */
int resize__quantized(tp_tensor *self, tp_ints size, tp_memory_format memory_format) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return -1;
    if (q.channels) return tp_fail(TP_RuntimeError, "Can only resize quantized tensors with per-tensor schemes!");
    if (memory_format != TP_NO_FORMAT && memory_format != TP_CONTIGUOUS_FORMAT)
        return tp_fail(TP_RuntimeError, "resize_: Unsupported memory format for quantized tensor resize");
    tp_autoref *integers = tp_still(q.integers);
    tp_autoref *made =
        integers && tp_resize_(integers, size, TP_NO_FORMAT) == 0 ? tp__quantized_like(self, integers) : NULL;
    return made ? tp_replace_layout(self, made, "resize_") : -1;
}

/* resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!) */
int resize_as__quantized(tp_tensor *self, tp_tensor *the_template, tp_memory_format memory_format) {
    return tp_resize_(self, tp_sizes(the_template), memory_format);
}

/* fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!) */
int fill__quantized(tp_tensor *self, const tp_scalar *value) {
    tp_autoref *number = tp_scalar_tensor(value, TP_FLOAT32, TP_STRIDED, self->device, -1);
    return number ? copy__quantized(self, number, false) : -1;
}
