/* pin.c: host memory that a device's driver has pinned, from which copies run while the host goes on. */
#include "native/common/pin.h"

#include "NativeFunctions.h"
#include "iter/iter.h"
#include "prim/transfer.h"

/* The operations of the device that a caller names, else of the first type with a device that pins, those from outside
 * before the others, as tensorpy.accelerator takes them. */
static const tp_device_ops *pinning_ops(const char *op, tp_device *d) {
    for (int k = 0; k < TP_NUM_DEVICES; k++) {
        int type = (TP_DEVICE_PRIVATEUSE1 + k) % TP_NUM_DEVICES;
        if (d->type >= 0 ? type != d->type : type == TP_DEVICE_CPU || type == TP_DEVICE_META) continue;
        const tp_device_ops *ops = tp_device_find_ops((tp_device_type)type);
        if (!ops || !ops->pin || ops->device_count() <= 0) continue;
        tp_device wanted = {(int8_t)type, d->type >= 0 ? d->index : -1};
        return tp_device_resolve(wanted, d) == 0 ? ops : NULL;
    }
    if (tp_error_pending()) return NULL; /* why a device's driver cannot be had */
    return tp_fail_null(TP_RuntimeError, "%s: pinned memory needs a device whose driver pins it, and there is none",
                        op);
}

tp_storage *tp_pinned_storage(const char *op, tp_device d, size_t nbytes) {
    const tp_device_ops *ops = pinning_ops(op, &d);
    return ops ? ops->pin(d, nbytes) : NULL;
}

tp_tensor *tp_new_pinned(const char *op, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device) {
    int64_t low, high, count = tp_checked_numel(sizes);
    if (device.type > TP_DEVICE_CPU)
        return tp_fail_null(TP_RuntimeError, "%s: Only dense CPU tensors can be pinned", op);
    if (count < 0 || tp_strided_extent(sizes, strides, &low, &high) < 0) return NULL;
    int64_t nbytes = count ? (high + 1) * tp_itemsize(dtype) : 0;
    tp_storage *s = tp_pinned_storage(op, TP_NO_DEVICE, (size_t)nbytes);
    tp_tensor *t = s ? tp_new_on_storage(s, sizes, strides, 0, dtype) : NULL;
    tp_storage_release(s);
    return t;
}

static bool is_pinned_by(const tp_tensor *self, int type) {
    const tp_device_ops *ops = tp_device_find_ops((tp_device_type)type);
    return ops && ops->is_pinned && ops->is_pinned(self->storage);
}

/* is_pinned(Tensor self, Device? device=None) -> bool */
int is_pinned_composite(tp_tensor *self, tp_device device, bool *result) {
    *result = false;
    if (self->device.type != TP_DEVICE_CPU) return 0;
    for (int type = 0; type < TP_NUM_DEVICES && !*result; type++)
        if (device.type < 0 || device.type == type) *result = is_pinned_by(self, type);
    return 0;
}

/* _pin_memory(Tensor self, Device? device=None) -> Tensor */
tp_tensor *_pin_memory_composite(tp_tensor *self, tp_device device) {
    int64_t strides[TP_MAX_DIMS];
    if (self->device.type != TP_DEVICE_CPU)
        return tp_fail_null(TP_RuntimeError, "cannot pin a tensor on %s: Only dense CPU tensors can be pinned",
                            tp_device_type_name((tp_device_type)self->device.type));
    tp_dense_strides(tp_sizes(self), tp_strides(self), strides);
    tp_storage *s = tp_pinned_storage("pin_memory", device, (size_t)(self->numel * tp_itemsize((tp_dtype)self->dtype)));
    tp_autoref *made =
        s ? tp_new_on_storage(s, tp_sizes(self), (tp_ints){strides, self->ndim}, 0, (tp_dtype)self->dtype) : NULL;
    tp_storage_release(s);
    return made && tp_copy_data(made, self) == 0 ? tp_take(made) : NULL;
}

/* pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a) */
tp_tensor *pin_memory_composite(tp_tensor *self, tp_device device) {
    bool pinned;
    if (is_pinned_composite(self, device, &pinned) < 0) return NULL;
    return pinned ? tp_retain(self) : tp__pin_memory(self, device);
}
