/* transfer.c: see transfer.h. */
#include "prim/transfer.h"

#include "Primitives.h"
#include "core/memory.h"
#include "core/tls.h"

#include <string.h>

bool tp_has_primitive(int primitive, tp_device d) {
    return tp_has_kernel(&tp_prims[primitive], tp_backend_key((tp_device_type)d.type));
}

static int64_t nbytes_of(const tp_tensor *t) { return t->numel * tp_itemsize((tp_dtype)t->dtype); }

/* What a tensor spans of its storage, in bytes from the storage's start. */
static int span_of(const tp_tensor *t, int64_t *begin, int64_t *nbytes) {
    int64_t low, high, itemsize = tp_itemsize((tp_dtype)t->dtype);
    if (tp_strided_extent(tp_sizes(t), tp_strides(t), &low, &high) < 0) return -1;
    *begin = t->byte_offset + low * itemsize;
    *nbytes = (high - low + 1) * itemsize;
    return 0;
}

/* A host tensor of t's geometry over a copy of the bytes that t spans. */
static tp_tensor *mirror_on_host(const tp_tensor *t) {
    int64_t begin, nbytes;
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)t->device.type);
    if (!ops || span_of(t, &begin, &nbytes) < 0) return NULL;
    tp_storage *s = tp_storage_new(TP_CPU, (size_t)nbytes);
    if (!s) return NULL;
    tp_tensor *mirror = NULL;
    if (ops->copy_to_host(t->device, s->data, (const char *)t->storage->data + begin, (size_t)nbytes) == 0)
        mirror = tp_new_on_storage(s, tp_sizes(t), tp_strides(t), t->byte_offset - begin, (tp_dtype)t->dtype);
    tp_storage_release(s);
    return mirror;
}

static int send_bytes(tp_tensor *dst, const void *from) {
    int64_t begin, nbytes;
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)dst->device.type);
    if (!ops || span_of(dst, &begin, &nbytes) < 0) return -1;
    return ops->copy_from_host(dst->device, (char *)dst->storage->data + begin, from, (size_t)nbytes);
}

/* `aided` in what follows: by the device's primitives, if it has them. */

/* The tensor's elements without gaps, gathered by the device itself, so that no others travel; itself where it has
 * none, or where the device cannot. */
static tp_tensor *compact(tp_tensor *t, bool aided) {
    if (tp_is_dense(t) || !aided || !tp_has_primitive(TP_PRIM_copy, t->device)) return tp_retain(t);
    tp_autoref *made = tp_new_empty(tp_sizes(t), (tp_dtype)t->dtype, t->device);
    return made && tp_prim_copy(t, made) == 0 ? tp_take(made) : NULL;
}

/* The bytes go to a tensor without gaps on the device, which puts them where they belong. */
static int spread_on_device(tp_tensor *dst, tp_tensor *src) {
    tp_autoref *sent = tp_new_empty(tp_sizes(src), (tp_dtype)src->dtype, dst->device);
    return sent && tp_copy_data(sent, src) == 0 ? tp_prim_copy(sent, dst) : -1;
}

static int copy_from_host(tp_tensor *dst, tp_tensor *src, bool aided) {
    if (tp_laid_out_alike(dst, src)) return send_bytes(dst, tp_data(src));
    if (!tp_is_dense(dst) && aided && tp_has_primitive(TP_PRIM_copy, dst->device)) return spread_on_device(dst, src);
    tp_autoref *mirror = tp_is_dense(dst)
                             ? tp_new_empty_strided(tp_sizes(dst), tp_strides(dst), (tp_dtype)dst->dtype, TP_CPU)
                             : mirror_on_host(dst);
    if (!mirror || tp_prim_copy(src, mirror) < 0) return -1;
    return send_bytes(dst, mirror->storage->data);
}

static int copy_to_host(tp_tensor *dst, tp_tensor *src, bool aided) {
    tp_autoref *whole = compact(src, aided);
    if (!whole) return -1;
    if (tp_laid_out_alike(dst, whole)) {
        const tp_device_ops *ops = tp_device_get_ops((tp_device_type)src->device.type);
        return ops ? ops->copy_to_host(src->device, tp_data(dst), tp_data(whole), (size_t)nbytes_of(src)) : -1;
    }
    tp_autoref *mirror = mirror_on_host(whole);
    return mirror ? tp_prim_copy(mirror, dst) : -1;
}

static int copy_bytes_inside(tp_tensor *dst, const tp_tensor *src) {
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)dst->device.type);
    return ops ? ops->copy_inside(dst->device, tp_data(dst), tp_data(src), (size_t)nbytes_of(dst)) : -1;
}

/* Between tensors of which none is on the host. */
static int copy_between_devices(tp_tensor *dst, tp_tensor *src, bool aided) {
    if (tp_device_equal(dst->device, src->device) && tp_laid_out_alike(dst, src)) return copy_bytes_inside(dst, src);
    tp_autoref *whole = compact(src, aided), *mirror = whole ? mirror_on_host(whole) : NULL;
    return mirror ? copy_from_host(dst, mirror, aided) : -1;
}

/* A primitive that this thread calls by itself, outside of compiled functions, is noted nowhere: what another thread's
 * function has noted of its tensors runs first. */
static int settle_for_primitive(tp_tensor *t) { return tp_likely(!tp_tls.region) ? tp_settle(t->storage) : 0; }

static int copy(tp_tensor *dst, tp_tensor *src, bool aided) {
    bool to_host = dst->device.type == TP_DEVICE_CPU, from_host = src->device.type == TP_DEVICE_CPU;
    if (dst->device.type == TP_DEVICE_META) return 0;
    if (src->device.type == TP_DEVICE_META)
        return tp_fail(TP_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    if (dst->numel == 0) return 0;
    if (settle_for_primitive(dst) < 0 || settle_for_primitive(src) < 0) return -1;
    if (tp_likely(to_host && from_host)) return tp_prim_copy(src, dst);
    if (aided && tp_device_equal(dst->device, src->device) && tp_has_primitive(TP_PRIM_copy, dst->device))
        return tp_prim_copy(src, dst);
    if (tp_settle(dst->storage) < 0 || tp_settle(src->storage) < 0) return -1; /* bytes travel now */
    tp_at_once_guard guard = tp_at_once();
    if (from_host) return copy_from_host(dst, src, aided);
    return to_host ? copy_to_host(dst, src, aided) : copy_between_devices(dst, src, aided);
}

int tp_copy_data(tp_tensor *dst, const tp_tensor *src) { return copy(dst, (tp_tensor *)src, true); }
int tp_copy_through_host(tp_tensor *dst, const tp_tensor *src) { return copy(dst, (tp_tensor *)src, false); }

int tp_read_number(const tp_tensor *t, tp_scalar *number) {
    tp_complex128 element[1];
    if (t->numel != 1)
        return tp_fail(TP_RuntimeError, "a Tensor with %lld elements cannot be converted to Scalar",
                       (long long)t->numel);
    if (tp_settle_to_read(t->storage) < 0) return -1;
    const void *at = tp_data(t);
    if (t->device.type != TP_DEVICE_CPU) {
        const tp_device_ops *ops = tp_device_get_ops((tp_device_type)t->device.type);
        if (!ops || ops->copy_to_host(t->device, element, at, (size_t)tp_itemsize((tp_dtype)t->dtype)) < 0) return -1;
        at = element;
    }
    *number = tp_scalar_load(at, (tp_dtype)t->dtype);
    return 0;
}

int tp_fill_data(tp_tensor *t, const tp_scalar *value) {
    if (t->numel == 0) return 0;
    if (settle_for_primitive(t) < 0) return -1;
    if (tp_has_primitive(TP_PRIM_fill, t->device)) return tp_prim_fill(value, t);
    tp_autoref *one = tp_new_empty(TP_EMPTY_INTS, (tp_dtype)t->dtype, TP_CPU);
    return one && tp_prim_fill(value, one) == 0 ? tp_copy_data(t, one) : -1;
}
