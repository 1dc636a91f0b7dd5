/* copy.c: copies and fills as operators: checks and the layout of what they make. The work is tp_copy_data's, which
 * knows every device. */
#include "prim/transfer.h"

#include "NativeFunctions.h"
#include "core/stream.h"
#include "core/determinism.h"
#include "dispatch/key.h"
#include "iter/iter.h"
#include "native/common/pin.h"

#include <string.h>

/* ---- copy_ ---- */

static int fail_copy_shape(const tp_tensor *self, tp_ints shape) {
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(self));
    tp_text_add(&text, " doesn't match the broadcast shape ");
    tp_text_ints(&text, shape);
    return tp_fail(TP_RuntimeError, "output with shape %s", text.text ? text.text : "");
}

static int check_broadcast(const tp_tensor *self, const tp_tensor *src) {
    int64_t shape[TP_MAX_DIMS];
    if (tp_same_sizes(self, src)) return 0;
    int ndim = tp_broadcast_sizes(tp_sizes(self), tp_sizes(src), shape);
    if (ndim < 0) return -1;
    if (ndim == self->ndim && memcmp(shape, self->sizes, sizeof(int64_t) * (size_t)ndim) == 0) return 0;
    return fail_copy_shape(self, (tp_ints){shape, ndim});
}

/* 1: enqueued; 0: it has to be copied the ordinary way. */
static int copy_async(tp_tensor *self, tp_tensor *src) {
    const tp_tensor *there = self->device.type == TP_DEVICE_CPU ? src : self, *here = there == src ? self : src;
    if (here->device.type != TP_DEVICE_CPU || there->device.type == TP_DEVICE_CPU || self->numel == 0) return 0;
    if (self->dtype != src->dtype || !tp_is_contiguous(self) || !tp_is_contiguous(src)) return 0;
    if (!tp_same_sizes(self, src)) return 0;
    const tp_device_ops *ops = tp_device_find_ops((tp_device_type)there->device.type);
    if (!ops || !ops->copy_async) return 0;
    if (tp_settle(self->storage) < 0 || tp_settle(src->storage) < 0) return -1; /* bytes travel now */
    return ops->copy_async(self, src);
}

/* copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!) */
int copy__dense(tp_tensor *self, tp_tensor *src, bool non_blocking) {
    if (self == src) return 0;
    tp_tensor *const tensors[] = {self, src};
    if (tp_iter_check_overlap(tensors, 1, 2) < 0 || check_broadcast(self, src) < 0) return -1;
    if (tp_unlikely(tp_is_complex(src)) && !tp_is_complex(self) &&
        tp_warn_once("Casting complex values to real discards the imaginary part") < 0)
        return -1;
    int enqueued = non_blocking ? copy_async(self, src) : 0;
    if (tp_unlikely(enqueued)) return enqueued < 0 ? -1 : 0;
    if (tp_likely(tp_overlap_of(self, src) != TP_OVERLAP_UNKNOWN)) return tp_copy_data(self, src);
    tp_autoref *separate = tp_new_empty_like(src, (tp_dtype)src->dtype);
    return separate && tp_copy_data(separate, src) == 0 ? tp_copy_data(self, separate) : -1;
}

/* ---- fill_, zero_ ---- */

/* An element that is there more than once gets the value more than once, as in PyTorch.
 * fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!) */
int fill__Scalar_dense(tp_tensor *self, const tp_scalar *value) {
    /* What is too large for 16 bits is an infinity as the only element, and an error as one of several, as in PyTorch.
     */
    tp_scalar number = self->numel == 1 ? tp_scalar_narrow(value, (tp_dtype)self->dtype) : *value;
    return tp_scalar_check_fits(&number, (tp_dtype)self->dtype) < 0 ? -1 : tp_fill_data(self, &number);
}

static int check_fill_value(const tp_tensor *value) {
    if (value->ndim == 0) return 0;
    return tp_fail(TP_RuntimeError, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
                   value->ndim);
}

/* fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!) */
int fill__Tensor_dense(tp_tensor *self, tp_tensor *value) {
    tp_scalar number;
    if (check_fill_value(value) < 0) return -1;
    if (tp_device_equal(self->device, value->device)) {
        bool apart = tp_overlap_of(self, value) == TP_OVERLAP_NONE;
        tp_autoref *own = apart ? tp_retain(value) : tp_clone(value, TP_NO_FORMAT);
        return own ? copy__dense(self, own, false) : -1;
    }
    if (!tp_has_values(self)) return 0;
    return tp_read_number(value, &number) < 0 ? -1 : fill__Scalar_dense(self, &number);
}

/* zero_(Tensor(a!) self) -> Tensor(a!) */
int zero__dense(tp_tensor *self) { return tp_fill_data(self, TP_SCALAR_I(0)); }

/* ---- new tensors ---- */

static tp_tensor *new_in_format(const tp_tensor *self, tp_dtype dtype, tp_device device, tp_memory_format format) {
    if (format != TP_NO_FORMAT && format != TP_PRESERVE_FORMAT)
        return tp_new_empty_format(tp_sizes(self), dtype, device, format);
    if (tp_is_contiguous(self)) return tp_new_empty_strided(tp_sizes(self), tp_strides(self), dtype, device);
    int64_t strides[TP_MAX_DIMS];
    tp_preserved_strides(self, strides);
    return tp_new_empty_strided(tp_sizes(self), (tp_ints){strides, self->ndim}, dtype, device);
}

/* clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor */
tp_tensor *clone_dense(tp_tensor *self, tp_memory_format memory_format) {
    tp_autoref *made = new_in_format(self, (tp_dtype)self->dtype, self->device, memory_format);
    return made && tp_copy_data(made, self) == 0 ? tp_take(made) : NULL;
}

/* lift_fresh_copy(Tensor self) -> Tensor */
tp_tensor *lift_fresh_copy_composite(tp_tensor *self) { return tp_clone(self, TP_NO_FORMAT); }

/* _lazy_clone(Tensor self) -> Tensor */
tp_tensor *_lazy_clone_composite(tp_tensor *self) {
    if (tp_is_pending(self) || !tp_storage_can_share(self->storage)) return tp_clone(self, TP_NO_FORMAT);
    tp_storage *storage = tp_storage_share(self->storage);
    tp_tensor *made =
        storage ? tp_new_on_storage(storage, tp_sizes(self), tp_strides(self), self->byte_offset, (tp_dtype)self->dtype)
                : NULL;
    tp_storage_release(storage);
    return made;
}

static int check_layout(tp_layout layout) {
    if (layout == TP_NO_LAYOUT || layout == TP_STRIDED) return 0;
    return tp_fail(TP_RuntimeError, "to(options) doesn't support converting to a different layout");
}

/* Where a copy to the host may be only enqueued, what it makes is pinned, as PyTorch has it: whoever asks for that
 * synchronizes before reading it. */
static tp_tensor *new_pinned_like(const tp_tensor *self, tp_dtype dtype, tp_memory_format format) {
    tp_autoref *plan = new_in_format(self, dtype, TP_META, format);
    return plan ? tp_new_pinned("to", tp_sizes(plan), tp_strides(plan), dtype, TP_CPU) : NULL;
}

static bool can_pin(tp_device d) {
    const tp_device_ops *ops = tp_device_find_ops((tp_device_type)d.type);
    return ops && ops->pin;
}

/* Through the dispatcher, since a device may have a copy_ of its own; the layers have seen _to_copy itself. */
static int copy_below_layers(tp_tensor *self, tp_tensor *src, bool non_blocking) {
    tp_exclude_guard guard = tp_exclude(TP_AUTOCAST_KEYS | TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView));
    return tp_copy_(self, src, non_blocking);
}

/* _to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None,
 *     bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor */
tp_tensor *_to_copy_composite(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device,
                              tp_opt_bool pin_memory, bool non_blocking, tp_memory_format memory_format) {
    if (check_layout(layout) < 0) return NULL;
    if (dtype == TP_NO_DTYPE) dtype = (tp_dtype)self->dtype;
    if (tp_unlikely(tp_is_quantized_dtype(dtype)))
        return tp_fail_null(TP_RuntimeError,
                            "a tensor of %s becomes one of %s by quantize_per_tensor and its kin alone",
                            tp_dtype_names[self->dtype], tp_dtype_names[dtype]);
    if (device.type < 0) device = self->device;
    bool pin = pin_memory == 1 || (non_blocking && device.type == TP_DEVICE_CPU && can_pin(self->device));
    tp_autoref *made =
        pin ? new_pinned_like(self, dtype, memory_format) : new_in_format(self, dtype, device, memory_format);
    return made && copy_below_layers(made, self, non_blocking) == 0 ? tp_take(made) : NULL;
}

/* _to_cpu(Tensor[] tensors) -> Tensor[] */
tp_tensor_seq *_to_cpu_composite(tp_tensors tensors) {
    tp_autoseq *made = tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; made && i < tensors.size; i++) {
        tp_tensor *t = tensors.data[i];
        if (!(made->items[i] = tp_to_device(t, TP_CPU, (tp_dtype)t->dtype, false, false, TP_NO_FORMAT))) return NULL;
    }
    return tp_take(made);
}

/* ---- what autocast does to one tensor, where it is enabled for the tensor's device ---- */

/* _autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled, ScalarType cuda_dtype, ScalarType
 * cpu_dtype) -> Tensor(a) */
tp_tensor *_autocast_to_reduced_precision_composite(tp_tensor *self, bool cuda_enabled, bool cpu_enabled,
                                                    tp_dtype cuda_dtype, tp_dtype cpu_dtype) {
    bool host = self->device.type == TP_DEVICE_CPU;
    if (self->dtype != TP_FLOAT32 || !(host ? cpu_enabled : cuda_enabled)) return tp_retain(self);
    return tp_to_dtype(self, host ? cpu_dtype : cuda_dtype, false, false, TP_NO_FORMAT);
}
/* _autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled) -> Tensor(a) */
tp_tensor *_autocast_to_full_precision_composite(tp_tensor *self, bool cuda_enabled, bool cpu_enabled) {
    bool host = self->device.type == TP_DEVICE_CPU;
    if (!tp_is_reduced_dtype((tp_dtype)self->dtype) || !(host ? cpu_enabled : cuda_enabled)) return tp_retain(self);
    return tp_to_dtype(self, TP_FLOAT32, false, false, TP_NO_FORMAT);
}

/* ---- streams ---- */

/* record_stream(Tensor(a!) self, Stream s) -> () */
int record_stream_composite(tp_tensor *self, tp_stream s) {
    char name[40];
    tp_device d;
    if (tp_device_resolve(s.device, &d) < 0) return -1;
    if (!tp_device_equal(self->device, d))
        return tp_fail(TP_RuntimeError, "record_stream: expected a tensor on %s", tp_device_print(d, name));
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)d.type);
    if (!ops) return -1;
    if (!ops->streams)
        return tp_fail(TP_NotImplementedError, "the device %s has no streams",
                       tp_device_type_name((tp_device_type)d.type));
    return tp_settle(self->storage) < 0 ? -1 : ops->streams->use(self, s.id);
}
