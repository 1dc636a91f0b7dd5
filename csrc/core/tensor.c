/* tensor.c: making tensors, changing their geometry, and their end.
 *
 * Invariants: `sizes` and `strides` lie in inline_geometry up to TP_INLINE_DIMS dimensions and else in one block of
 * 2 * ndim integers; numel and TP_FLAG_CONTIGUOUS follow from them. The device is the storage's. A tensor whose making
 * fails half-way has no storage yet. */
#include "core/tensor.h"

#include "core/alloc.h"
#include "core/host.h"
#include "core/tls.h"
#include "core/memory.h"

#include <string.h>

struct tp_core_hooks tp_core_hooks;

static size_t geometry_bytes(int64_t ndim) { return sizeof(int64_t) * 2 * (size_t)ndim; }

static int fail_dims(int64_t ndim) {
    return tp_fail(TP_RuntimeError, "only tensors with up to %d dims are supported, got %lld", TP_MAX_DIMS,
                   (long long)ndim);
}

static int fail_lengths(tp_ints sizes, tp_ints strides) {
    return tp_fail(TP_RuntimeError, "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)",
                   (long long)sizes.size, (long long)strides.size);
}

/* Points t at room for ndim sizes and strides, which are unset. */
static inline int reserve_geometry(tp_tensor *t, int64_t ndim) {
    t->sizes = t->inline_geometry;
    t->strides = t->inline_geometry + TP_INLINE_DIMS;
    t->ndim = (uint8_t)ndim;
    if (tp_likely(ndim <= TP_INLINE_DIMS)) return 0;
    t->ndim = 0;
    if (ndim > TP_MAX_DIMS) return fail_dims(ndim);
    int64_t *block = tp_alloc(geometry_bytes(ndim));
    if (!block) return -1;
    t->sizes = block;
    t->strides = block + ndim;
    t->ndim = (uint8_t)ndim;
    return 0;
}

static inline void free_geometry(int64_t *sizes, int64_t ndim) {
    if (tp_unlikely(ndim > TP_INLINE_DIMS)) tp_free(sizes, geometry_bytes(ndim));
}

void tp_set_inference_mode(bool on) {
    tp_tls.inference_mode = on;
    tp_tls.new_flags = (uint16_t)(on ? tp_tls.new_flags | TP_FLAG_INFERENCE : tp_tls.new_flags & ~TP_FLAG_INFERENCE);
}

/* A tensor of 0 dimensions without storage, device and keys. */
static inline tp_tensor *new_struct(tp_dtype dtype) {
    tp_tensor *t = tp_alloc_inline(sizeof *t);
    if (tp_unlikely(!t)) return NULL;
    atomic_init(&t->refcount, 1);
    t->dtype = (uint8_t)dtype;
    t->flags = TP_FLAG_CONTIGUOUS | tp_tls.new_flags;
    t->numel = 1;
    t->byte_offset = 0;
    t->storage = NULL;
    t->base = NULL;
    t->autograd = NULL;
    t->pyobj = NULL;
    t->view_version = 0;
    t->ndim = 0;
    return t;
}

static tp_tensor *TP_COLD discard(tp_tensor *t) {
    free_geometry(t->sizes, t->ndim);
    tp_free(t, sizeof *t);
    return NULL;
}

static inline tp_tensor *new_with_room(tp_dtype dtype, int64_t ndim) {
    tp_tensor *t = new_struct(dtype);
    if (tp_unlikely(!t)) return NULL;
    return tp_likely(reserve_geometry(t, ndim) == 0) ? t : discard(t);
}

static inline void attach_storage_steal(tp_tensor *t, tp_storage *storage) {
    t->storage = storage;
    t->device = storage->device;
    t->keys = tp_device_keys[storage->device.type];
}

static int TP_COLD fail_bytes(tp_ints sizes) {
    tp_autotext text = {0};
    tp_text_ints(&text, sizes);
    return tp_fail(TP_RuntimeError, "Storage size calculation overflowed with sizes=%s", text.text ? text.text : "");
}

static tp_tensor *TP_COLD fail_sizes(tp_tensor *t, tp_ints sizes) {
    if (tp_checked_numel(sizes) >= 0) fail_bytes(sizes); /* too many bytes, not too many elements */
    return discard(t);
}

/* Sizes, contiguous strides and the product in one pass; tp_checked_numel finds the words for what went wrong. */
tp_tensor *tp_new_empty(tp_ints sizes, tp_dtype dtype, tp_device device) {
    tp_tensor *t = new_with_room(dtype, sizes.size);
    if (tp_unlikely(!t)) return NULL;
    int64_t stride = 1, nbytes;
    bool bad = false, empty = false;
    for (int64_t i = sizes.size - 1; i >= 0; i--) {
        int64_t n = sizes.data[i];
        t->sizes[i] = n;
        t->strides[i] = stride;
        bad |= n < 0;
        empty |= n == 0;
        bad |= __builtin_mul_overflow(stride, n + (n == 0), &stride);
    }
    t->numel = empty ? 0 : stride;
    bad |= __builtin_mul_overflow(t->numel, tp_itemsize(dtype), &nbytes);
    if (tp_unlikely(bad)) return fail_sizes(t, sizes);
    tp_storage *storage = tp_storage_new(device, (size_t)nbytes);
    if (tp_unlikely(!storage)) return discard(t);
    attach_storage_steal(t, storage);
    return t;
}

/* Copies the geometry in and derives numel and the contiguity flag, in one pass. False if the sizes have no product:
 * tp_checked_numel finds the words for why. */
static inline bool write_geometry(tp_tensor *t, tp_ints sizes, tp_ints strides) {
    int64_t numel = 1;
    bool bad = false, empty = false, contiguous = true;
    for (int64_t i = sizes.size - 1; i >= 0; i--) {
        int64_t n = sizes.data[i];
        t->sizes[i] = n;
        t->strides[i] = strides.data[i];
        contiguous &= n == 1 || t->strides[i] == numel;
        bad |= n < 0;
        empty |= n == 0;
        bad |= __builtin_mul_overflow(numel, n + (n == 0), &numel);
    }
    t->numel = empty ? 0 : numel;
    if (contiguous || empty) t->flags |= TP_FLAG_CONTIGUOUS;
    else t->flags &= (uint16_t)~TP_FLAG_CONTIGUOUS;
    return !bad;
}

static int check_geometry(tp_ints sizes, tp_ints strides) {
    if (sizes.size != strides.size) return fail_lengths(sizes, strides);
    if (sizes.size > TP_MAX_DIMS) return fail_dims(sizes.size);
    return tp_checked_numel(sizes) < 0 ? -1 : 0;
}

/* The bytes that the geometry spans, and how far in front of its first element they begin. */
static int span_bytes(tp_ints sizes, tp_ints strides, tp_dtype dtype, int64_t *before, int64_t *nbytes) {
    int64_t low, high, count, itemsize = tp_itemsize(dtype);
    if (tp_strided_extent(sizes, strides, &low, &high) < 0) return -1;
    bool overflow = __builtin_sub_overflow(high, low, &count);
    overflow |= __builtin_add_overflow(count, 1, &count);
    overflow |= __builtin_mul_overflow(count, itemsize, nbytes);
    if (overflow) return fail_bytes(sizes);
    *before = -low * itemsize;
    for (int64_t i = 0; i < sizes.size; i++)
        if (sizes.data[i] == 0) *nbytes = 0;
    return 0;
}

/* Note [Opaque tensors]: t's geometry over such a storage, which is all of it. */
static int check_whole(const tp_tensor *t, const tp_storage *s) {
    bool whole = t->byte_offset == 0 && t->flags & TP_FLAG_CONTIGUOUS &&
                 (size_t)(t->numel * tp_itemsize((tp_dtype)t->dtype)) == s->nbytes;
    if (tp_likely(whole)) return 0;
    return tp_fail(TP_RuntimeError,
                   "a tensor on %s has no views: the device shows no memory. Make a copy of the part or shape that is "
                   "wanted (select_copy, view_copy, ...), or call .cpu() first",
                   tp_device_type_name((tp_device_type)s->device.type));
}

tp_tensor *tp_new_empty_strided(tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device) {
    int64_t before = 0, nbytes = 0;
    if (sizes.size != strides.size) return fail_lengths(sizes, strides), NULL;
    if (tp_unlikely(tp_is_opaque_device(device))) return tp_new_empty(sizes, dtype, device);
    tp_tensor *t = new_with_room(dtype, sizes.size);
    if (!t) return NULL;
    if (tp_unlikely(!write_geometry(t, sizes, strides))) return fail_sizes(t, sizes);
    if (span_bytes(sizes, strides, dtype, &before, &nbytes) < 0) return discard(t);
    tp_storage *storage = tp_storage_new(device, (size_t)nbytes);
    if (!storage) return discard(t);
    attach_storage_steal(t, storage);
    t->byte_offset = before;
    return t;
}

tp_tensor *tp_new_empty_format(tp_ints sizes, tp_dtype dtype, tp_device device, tp_memory_format format) {
    if (format != TP_CHANNELS_LAST && format != TP_CHANNELS_LAST_3D) return tp_new_empty(sizes, dtype, device);
    int64_t strides[TP_MAX_DIMS];
    if (tp_checked_numel(sizes) < 0 || tp_strides_for_format(sizes, format, strides) < 0) return NULL;
    return tp_new_empty_strided(sizes, (tp_ints){strides, sizes.size}, dtype, device);
}

/* A dense tensor's geometry is copied as it is, strides of dimensions of size 1 included. */
tp_tensor *tp_new_empty_like(const tp_tensor *like, tp_dtype dtype) {
    tp_ints sizes = tp_sizes(like);
    if (!tp_is_dense(like)) {
        int64_t strides[TP_MAX_DIMS];
        tp_dense_strides(sizes, tp_strides(like), strides);
        return tp_new_empty_strided(sizes, (tp_ints){strides, sizes.size}, dtype, like->device);
    }
    tp_tensor *t = new_with_room(dtype, sizes.size);
    if (tp_unlikely(!t)) return NULL;
    for (int64_t i = 0; i < sizes.size; i++) {
        t->sizes[i] = like->sizes[i];
        t->strides[i] = like->strides[i];
    }
    int64_t nbytes;
    t->numel = like->numel;
    if (!tp_is_contiguous(like)) t->flags &= (uint16_t)~TP_FLAG_CONTIGUOUS;
    if (tp_unlikely(__builtin_mul_overflow(t->numel, tp_itemsize(dtype), &nbytes))) return fail_sizes(t, sizes);
    tp_storage *storage = tp_storage_new(like->device, (size_t)nbytes);
    if (tp_unlikely(!storage)) return discard(t);
    attach_storage_steal(t, storage);
    return t;
}

tp_tensor *tp_new_wrapped_number(const tp_scalar *s) {
    /* An element holds all of the number: beside a float64 tensor it is not rounded to the default dtype first. */
    tp_dtype dtype = s->kind == TP_SCALAR_FLOAT     ? TP_FLOAT64
                     : s->kind == TP_SCALAR_COMPLEX ? TP_COMPLEX128
                                                    : tp_scalar_dtype(s);
    tp_tensor *t = tp_new_empty(TP_EMPTY_INTS, dtype, TP_CPU);
    if (!t) return NULL;
    t->flags |= TP_FLAG_WRAPPED_NUMBER;
    tp_scalar_store(s, (tp_dtype)t->dtype, tp_data(t));
    return t;
}

TP_INLINE tp_tensor *on_storage(tp_storage *storage, tp_ints sizes, tp_ints strides, int64_t byte_offset,
                                tp_dtype dtype) {
    if (tp_unlikely(sizes.size != strides.size)) return fail_lengths(sizes, strides), NULL;
    tp_tensor *t = new_with_room(dtype, sizes.size);
    if (tp_unlikely(!t)) return NULL;
    if (tp_unlikely(!write_geometry(t, sizes, strides))) return fail_sizes(t, sizes);
    attach_storage_steal(t, tp_storage_retain(storage));
    t->byte_offset = byte_offset;
    if (tp_unlikely(tp_is_opaque(storage)) && check_whole(t, storage) < 0) {
        tp_release(t);
        return NULL;
    }
    return t;
}

tp_tensor *tp_new_on_storage(tp_storage *storage, tp_ints sizes, tp_ints strides, int64_t byte_offset, tp_dtype dtype) {
    tp_tensor *t = on_storage(storage, sizes, strides, byte_offset, dtype);
    if (t && tp_unlikely(storage->later)) t->keys |= TP_BIT(Deferred);
    return t;
}

tp_tensor *tp_new_alias(const tp_tensor *t, tp_ints sizes, tp_ints strides, int64_t byte_offset) {
    tp_tensor *alias = on_storage(t->storage, sizes, strides, byte_offset, (tp_dtype)t->dtype);
    if (tp_unlikely(!alias)) return NULL;
    alias->keys = t->keys;
    alias->flags =
        (uint16_t)((alias->flags & ~TP_FLAG_INFERENCE) | (t->flags & (TP_FLAG_UNVERSIONED | TP_FLAG_INFERENCE)));
    return alias;
}

/* ---- changing ---- */

/* Sizes of as many elements may change, as those of a result do that nobody else has seen. */
static int check_still_whole(const tp_tensor *t, tp_ints sizes, tp_ints strides) {
    tp_tensor other = {.dtype = t->dtype, .numel = tp_checked_numel(sizes), .byte_offset = t->byte_offset};
    int64_t contiguous[TP_MAX_DIMS];
    bool same = true;
    tp_contiguous_strides(sizes, contiguous);
    for (int64_t i = 0; i < sizes.size; i++) same &= sizes.data[i] == 1 || strides.data[i] == contiguous[i];
    if (same || other.numel == 0) other.flags = TP_FLAG_CONTIGUOUS;
    return check_whole(&other, t->storage);
}

static int set_geometry(tp_tensor *t, tp_ints sizes, tp_ints strides) {
    if (check_geometry(sizes, strides) < 0) return -1;
    int64_t copy[2 * TP_MAX_DIMS], n = sizes.size; /* the arguments may lie in what is overwritten or freed */
    if (n) {
        memcpy(copy, sizes.data, sizeof(int64_t) * (size_t)n);
        memcpy(copy + n, strides.data, sizeof(int64_t) * (size_t)n);
    }
    if (n != t->ndim) {
        int64_t *old_sizes = t->sizes, *old_strides = t->strides;
        uint8_t old_ndim = t->ndim;
        if (reserve_geometry(t, n) < 0) {
            t->sizes = old_sizes;
            t->strides = old_strides;
            t->ndim = old_ndim;
            return -1;
        }
        if (tp_unlikely(old_ndim > TP_INLINE_DIMS)) tp_host_park(tp_free, old_sizes, geometry_bytes(old_ndim));
    }
    write_geometry(t, (tp_ints){copy, n}, (tp_ints){copy + n, n});
    return 0;
}

int tp_tensor_set_geometry(tp_tensor *t, tp_ints sizes, tp_ints strides) {
    if (tp_unlikely(tp_tls.region && t->pyobj)) tp_pending_hooks.reshaped(t->storage, "a tensor gets another size");
    if (tp_unlikely(tp_is_opaque(t->storage))) {
        if (check_geometry(sizes, strides) < 0 || check_still_whole(t, sizes, strides) < 0) return -1;
    }
    return set_geometry(t, sizes, strides);
}

int tp_tensor_resize(tp_tensor *t, tp_ints sizes, tp_ints strides_or_none) {
    int64_t contiguous[TP_MAX_DIMS], before = 0, nbytes = 0, end;
    if (sizes.size > TP_MAX_DIMS) return fail_dims(sizes.size);
    if (strides_or_none.size < 0) {
        tp_contiguous_strides(sizes, contiguous);
        strides_or_none = (tp_ints){contiguous, sizes.size};
    }
    if (check_geometry(sizes, strides_or_none) < 0) return -1;
    if (span_bytes(sizes, strides_or_none, (tp_dtype)t->dtype, &before, &nbytes) < 0) return -1;
    if (before > t->byte_offset)
        return tp_check_in_storage(sizes, strides_or_none, t->byte_offset, (tp_dtype)t->dtype, t->storage->nbytes);
    if (__builtin_add_overflow(t->byte_offset - before, nbytes, &end)) return fail_bytes(sizes);
    if (nbytes > 0 && tp_storage_resize(t->storage, (size_t)end) < 0) return -1;
    return tp_tensor_set_geometry(t, sizes, strides_or_none);
}

static void release_storage(void *storage, size_t unused TP_UNUSED) { tp_storage_release(storage); }

int tp_tensor_check_set(const tp_tensor *t, const tp_tensor *source) {
    char own[40], other[40];
    if (!tp_device_equal(t->device, source->device))
        return tp_fail(TP_RuntimeError, "set_: a tensor on %s cannot take the storage of a tensor on %s",
                       tp_device_print(t->device, own), tp_device_print(source->device, other));
    if (t->dtype == source->dtype) return 0;
    return tp_fail(TP_RuntimeError, "set_: Could not set tensor of type %s to a tensor of type %s",
                   tp_dtype_names[t->dtype], tp_dtype_names[source->dtype]);
}

int tp_tensor_assign(tp_tensor *t, const tp_tensor *src) {
    if (t == src) return 0;
    if (tp_unlikely(tp_tls.region && t->pyobj)) {
        tp_pending_hooks.reshaped(t->storage, "a tensor gets other memory");
        tp_pending_hooks.reshaped(src->storage, "a tensor gets other memory");
    }
    if (set_geometry(t, tp_sizes(src), tp_strides(src)) < 0) return -1;
    tp_storage *old = t->storage;
    t->storage = tp_storage_retain(src->storage);
    t->byte_offset = src->byte_offset;
    t->dtype = src->dtype;
    t->device = src->device;
    t->keys = src->keys | (t->keys & TP_BIT(Python)); /* who is asked about it is its object's class */
    tp_host_park(release_storage, old, 0);
    return 0;
}

/* ---- the end ---- */

void tp_release_far(tp_tensor *t) { tp_release(t); }

void tp_release_contended(tp_tensor *t) {
    int32_t count = atomic_load_explicit(&t->refcount, memory_order_acquire);
    do {
        if (count == 1) {
            tp_tensor_free(t);
            return;
        }
        if (count == (TP_KEEPS_PYOBJ | 2)) {
            tp_core_hooks.release_kept(t);
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(&t->refcount, &count, count - 1, memory_order_acq_rel,
                                                    memory_order_acquire));
}

void tp_tensor_free(tp_tensor *t) {
    if (tp_unlikely(t->autograd != NULL)) tp_core_hooks.free_autograd(t);
    tp_storage_release(t->storage);
    if (tp_unlikely(t->base != NULL)) tp_release(t->base); /* not a view itself, so this goes one level deep */
    free_geometry(t->sizes, t->ndim);
    tp_free_inline(t, sizeof *t);
}

static size_t seq_bytes(int64_t size) { return sizeof(tp_tensor_seq) + sizeof(tp_tensor *) * (size_t)size; }

tp_tensor_seq *tp_tensor_seq_new(int64_t size) {
    if (size > INT32_MAX) return tp_fail_memory(INT64_MAX), NULL;
    tp_tensor_seq *s = tp_alloc(seq_bytes(size));
    if (!s) return NULL;
    s->size = size;
    if (size) memset(s->items, 0, sizeof(tp_tensor *) * (size_t)size);
    return s;
}

void tp_tensor_seq_free(tp_tensor_seq *s) {
    if (!s) return;
    for (int64_t i = 0; i < s->size; i++) tp_release(s->items[i]);
    tp_free(s, seq_bytes(s->size));
}

int tp_make_writable(const tp_tensor *t, const char *op) {
    if (t->storage->writes == TP_WRITES_COPY) return tp_storage_own(t->storage);
    tp_autotext text = {0};
    tp_text_tensor(&text, t);
    return tp_fail(TP_RuntimeError,
                   "%s: %s is over memory that is read-only: an array, a buffer or a file that may not be written. "
                   "Write to a clone() of it",
                   op, text.text ? text.text : "the tensor");
}
