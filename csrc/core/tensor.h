/* tensor.h: the tensor: a strided view of a storage.
 *
 * Sizes and strides (in elements) sit inside the struct up to TP_INLINE_DIMS dimensions. `keys` is the tensor's
 * dispatch key set (dispatch/key.h). Change sizes and strides only through tp_tensor_set_geometry, which keeps numel
 * and the contiguity flag true.
 *
 * Note [Shared fields]
 * Two threads may hold one tensor, and kernels read it without the host lock. These fields may change under them, each
 * by its own rule:
 *   - refcount of tensor and storage, version: atomic;
 *   - storage, its data, sizes and strides of more than TP_INLINE_DIMS dimensions: swapped with the host lock held
 *     (set_, .data, resize_); what was there is parked (host.h) until all kernels that run now are back. Who swaps
 *     while another thread computes gets old or new values, never freed memory;
 *   - sizes, strides, numel, byte_offset, flags, keys: written with the host lock held. A kernel reads what it needs of
 *     them before it gives the lock up, into its plan; what comes of several kernels goes by tp_still;
 *   - autograd: made once and published with release order, freed with the tensor;
 *   - its `grad`, and `accumulator`: under the leaf lock Autograd, through tp_grad and tp_put_grad_steal; who computes
 *     with a gradient retains it;
 *   - grad_fn, base, hooks, pyobj, and a node's `keepers`: with the host lock held; who goes on to call an operator
 *     retains what he read.
 * A program without a host lock gives its tensors to one thread at a time. */
#pragma once

#include "core/dtype.h"
#include "core/error.h"
#include "core/list.h"
#include "core/storage.h"

/* Flags of a tensor. */
enum {
    TP_FLAG_CONTIGUOUS = 1 << 0,     /* row-major dense */
    TP_FLAG_REQUIRES_GRAD = 1 << 1,  /* a leaf that wants a gradient, or a tensor with a grad_fn */
    TP_FLAG_WRAPPED_NUMBER = 1 << 2, /* made from a Python number: yields in type promotion */
    TP_FLAG_UNVERSIONED = 1 << 3,    /* `.data`: writes through it do not raise the version */
    TP_FLAG_INFERENCE = 1 << 4,      /* made in inference mode: no versions, no autograd */
    TP_FLAG_VIEW_NO_GRAD = 1 << 5,   /* a view made under no_grad: may not be changed in place where grad is wanted */
    TP_FLAG_VIEW_MULTI = 1 << 6,     /* one of several outputs of a view operator (split, unbind) */
    TP_FLAG_VIEW_CUSTOM = 1 << 7,    /* a view made inside a Python autograd.Function */
    TP_FLAG_RETAINS_GRAD = 1 << 8,
    TP_FLAG_SETTLED = 1 << 9,         /* a leaf that func made, whose function is done: no other gradient is by it */
    TP_FLAG_AS_CONJ = 1 << 10,        /* of a wrapper: what it stands for is to be read as its conjugate, */
    TP_FLAG_AS_NEG = 1 << 11,         /* or as its negative (Note [Pending math] in conjugate/conjugate.h) */
    TP_FLAG_VIEW_INFERENCE = 1 << 12, /* with VIEW_NO_GRAD: made in inference mode, of a tensor that was not */
    TP_FLAG_DEPTH = 7 << 13, /* inside of how many transforms that differentiate it was made; 7 stands for more, too */
};
#define TP_DEPTH_SHIFT 13

/* Inference mode of this thread, which its new tensors show. */
void tp_set_inference_mode(bool on);

/* A bit of a tensor's `refcount`: the tensor keeps its Python object alive as well (Note [Identity]). It is part of the
 * count so that who lets a reference go sees the bit and the count in one read. */
#define TP_KEEPS_PYOBJ (INT32_C(1) << 30)

struct tp_autograd_meta;

struct tp_tensor {
    _Atomic int32_t refcount;
    uint8_t dtype; /* tp_dtype */
    uint8_t ndim;
    uint16_t flags;
    tp_keyset keys;
    int64_t numel;
    int64_t byte_offset; /* of the first element in the storage */
    int64_t *sizes, *strides;
    tp_storage *storage;
    struct tp_tensor *base;            /* the tensor that this one views; owned; never itself a view */
    struct tp_autograd_meta *autograd; /* autograd/node.h; NULL until something needs it */
    void *pyobj;                       /* the Python object, or NULL; see python/tensor.c */
    uint32_t view_version;             /* storage version at which a view's grad_fn was made; see autograd/view.c */
    tp_device device;                  /* the storage's */
    int64_t inline_geometry[2 * TP_INLINE_DIMS];
};

/* What the layers above add to the end of a tensor, called while it is still whole; NULL until a layer is loaded. */
struct tp_core_hooks {
    void (*free_autograd)(struct tp_tensor *t); /* frees t->autograd */
    /* Lets go of the last reference from C to a tensor that keeps its object, whose own reference is the other one. */
    void (*release_kept)(struct tp_tensor *t);
};
extern struct tp_core_hooks tp_core_hooks;

void tp_tensor_free(tp_tensor *t);               /* called at the last release only */
void tp_release_contended(tp_tensor *t) TP_COLD; /* tp_release where one exchange is not enough */
void tp_release_far(tp_tensor *t);               /* tp_release, as a call */

TP_INLINE tp_tensor *tp_retain(tp_tensor *t) {
    if (t) atomic_fetch_add_explicit(&t->refcount, 1, memory_order_relaxed);
    return t;
}
TP_INLINE void tp_release(tp_tensor *t) {
    if (!t) return;
    int32_t count = atomic_load_explicit(&t->refcount, memory_order_acquire);
    if (count == 1) tp_tensor_free(t);
    else if (tp_unlikely(count & TP_KEEPS_PYOBJ) ||
             tp_unlikely(!atomic_compare_exchange_strong_explicit(&t->refcount, &count, count - 1, memory_order_acq_rel,
                                                                  memory_order_acquire)))
        tp_release_contended(t);
}
#ifdef TP_FOLDER_ops /* generated glue has thousands of scopes: a call each is a tenth of its size and compiling */
TP_INLINE void tp_release_scope(tp_tensor **t) {
    if (*t) tp_release_far(*t);
}
#else
TP_INLINE void tp_release_scope(tp_tensor **t) { tp_release(*t); }
#endif
#define tp_autoref TP_CLEANUP(tp_release_scope) tp_tensor

/* A result of type Tensor[]: owned, released with tp_tensor_seq_free. */
struct tp_tensor_seq {
    int64_t size;
    tp_tensor *items[];
};
tp_tensor_seq *tp_tensor_seq_new(int64_t size); /* items NULL */
void tp_tensor_seq_free(tp_tensor_seq *s);
TP_INLINE void tp_tensor_seq_free_scope(tp_tensor_seq **s) { tp_tensor_seq_free(*s); }
#define tp_autoseq TP_CLEANUP(tp_tensor_seq_free_scope) tp_tensor_seq
/* With references of its own to the tensors of a list (NULL among them too). */
TP_INLINE tp_tensor_seq *tp_tensor_seq_of(tp_tensors list) {
    tp_tensor_seq *s = tp_tensor_seq_new(list.size < 0 ? 0 : list.size);
    for (int64_t i = 0; s && i < list.size; i++) s->items[i] = tp_retain(list.data[i]);
    return s;
}
TP_INLINE tp_tensors tp_tensor_seq_borrow(const tp_tensor_seq *s) { return (tp_tensors){s->items, s->size}; }

/* ---- reading ---- */
TP_INLINE tp_ints tp_sizes(const tp_tensor *t) { return (tp_ints){t->sizes, t->ndim}; }
TP_INLINE tp_ints tp_strides(const tp_tensor *t) { return (tp_ints){t->strides, t->ndim}; }
TP_INLINE tp_dtype tp_dtype_of(const tp_tensor *t) { return (tp_dtype)t->dtype; }
TP_INLINE tp_device tp_device_of(const tp_tensor *t) { return t->device; }
TP_INLINE int64_t tp_numel_of(const tp_tensor *t) { return t->numel; }
TP_INLINE int64_t tp_ndim_of(const tp_tensor *t) { return t->ndim; }
/* A matrix whose transpose is contiguous. */
TP_INLINE bool tp_by_columns(const tp_tensor *t) {
    return t->ndim == 2 && t->strides[0] == 1 && t->strides[1] == t->sizes[0];
}
TP_INLINE bool tp_is_contiguous(const tp_tensor *t) { return t->flags & TP_FLAG_CONTIGUOUS; }
TP_INLINE bool tp_is_complex(const tp_tensor *t) { return tp_is_complex_dtype((tp_dtype)t->dtype); }
TP_INLINE bool tp_is_floating(const tp_tensor *t) { return tp_is_floating_dtype((tp_dtype)t->dtype); }
TP_INLINE int64_t tp_storage_offset(const tp_tensor *t) { return t->byte_offset / tp_itemsize((tp_dtype)t->dtype); }
TP_INLINE uint32_t tp_version(const tp_tensor *t) {
    return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}
TP_INLINE void tp_bump_version(tp_tensor *t) {
    if (!(t->flags & (TP_FLAG_UNVERSIONED | TP_FLAG_INFERENCE)))
        atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed);
}
/* Every operator that writes to a tensor it is given asks this before anything is computed: memory from outside may be
 * mapped without the right to write, where a store ends the process, and a late copy has to be made (Note [Late
 * copies]). */
int tp_make_writable(const tp_tensor *t, const char *op) TP_COLD;
TP_INLINE int tp_check_writable(const tp_tensor *t, const char *op) {
    return tp_unlikely(t->storage->writes != TP_WRITES_GO) ? tp_make_writable(t, op) : 0;
}
bool tp_is_contiguous_in(const tp_tensor *t, tp_memory_format format);
/* Every element has an address of its own and none is skipped (any order of dimensions, but strides are positive), so
 * numel elements from tp_data on are the tensor. */
bool tp_is_dense(const tp_tensor *t);
/* One dtype and sizes, no gaps, and element i of the memory is the same element of both. */
bool tp_laid_out_alike(const tp_tensor *a, const tp_tensor *b);
bool tp_same_sizes(const tp_tensor *a, const tp_tensor *b);
/* contiguous_format or channels_last(_3d), what `preserve_format` keeps; dense tensors keep their strides besides. */
tp_memory_format tp_suggest_memory_format(const tp_tensor *t);

/* ---- making ---- */
/* An uninitialised tensor; contiguous, or with the strides given (negative ones too). Fails with a RuntimeError on
 * negative sizes, on sizes that overflow, and with a MemoryError when memory is out. */
tp_tensor *tp_new_empty(tp_ints sizes, tp_dtype dtype, tp_device device);
tp_tensor *tp_new_empty_strided(tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device);
tp_tensor *tp_new_empty_format(tp_ints sizes, tp_dtype dtype, tp_device device, tp_memory_format format);
/* As `like` in sizes and device (preserve_format): with its strides if it is dense, else without gaps in its order of
 * dimensions. */
tp_tensor *tp_new_empty_like(const tp_tensor *like, tp_dtype dtype);
/* A 0-dimensional CPU tensor that holds a number, flagged as a wrapped number. */
tp_tensor *tp_new_wrapped_number(const tp_scalar *s);
/* A new tensor on the same storage, without any autograd state or view relation. The geometry is checked against the
 * storage's bounds by the caller. byte_offset is from the start of the storage. */
tp_tensor *tp_new_alias(const tp_tensor *t, tp_ints sizes, tp_ints strides, int64_t byte_offset);
/* The same memory through a geometry that no other thread changes: for who reads a tensor in several steps and gives
 * the host lock up between them (Note [Shared fields]). */
TP_INLINE tp_tensor *tp_still(const tp_tensor *t) {
    return tp_new_alias(t, tp_sizes(t), tp_strides(t), t->byte_offset);
}
tp_tensor *tp_new_on_storage(tp_storage *storage, tp_ints sizes, tp_ints strides, int64_t byte_offset, tp_dtype dtype);

/* ---- changing ---- */
/* Fails as making a tensor does; t is untouched then. The arguments may be t's own. */
int tp_tensor_set_geometry(tp_tensor *t, tp_ints sizes, tp_ints strides);
/* Gives t the sizes (contiguous, or with the strides) from its byte_offset on, and a storage large enough; used by
 * out=. */
int tp_tensor_resize(tp_tensor *t, tp_ints sizes, tp_ints strides_or_none);
/* Makes t another tensor in place (storage, geometry, dtype, device and keys of src); set_ and in-place autograd use
 * it. */
int tp_tensor_assign(tp_tensor *t, const tp_tensor *src);
/* Refuses a set_ that would change t's dtype or device. */
int tp_tensor_check_set(const tp_tensor *t, const tp_tensor *source);

/* ---- questions ---- */
/* Meta tensors have none: what is checked of values is not asked of them. */
TP_INLINE bool tp_has_values(const tp_tensor *t) { return t->device.type != TP_DEVICE_META; }
/* A tensor of shape (0,), which cat takes beside tensors of any shape and leaves out, as in PyTorch. */
TP_INLINE bool tp_joins_any(const tp_tensor *t) { return t->ndim == 1 && t->sizes[0] == 0; }

/* ---- helpers on sizes (geometry.c) ---- */
/* Product of sizes; -1 and the error set when negative or too large. Where a size is 0 the others have to have a
 * product too, so that contiguous strides exist. */
int64_t tp_checked_numel(tp_ints sizes);
/* The lowest and highest offset, in elements, that the geometry reaches from its first element (both 0 without
 * elements); a RuntimeError when they overflow. */
int tp_strided_extent(tp_ints sizes, tp_ints strides, int64_t *low, int64_t *high);
/* Whether the geometry stays inside a storage of nbytes; a RuntimeError if not. Without elements only the offset is
 * checked for its sign. */
int tp_check_in_storage(tp_ints sizes, tp_ints strides, int64_t byte_offset, tp_dtype dtype, size_t nbytes);
/* The same for a geometry with elements that leads forward, without words; false: tp_check_in_storage looks closer. */
bool tp_lies_in_storage(tp_ints sizes, tp_ints strides, int64_t byte_offset, tp_dtype dtype, size_t nbytes);
void tp_contiguous_strides(tp_ints sizes, int64_t *strides);
int tp_strides_for_format(tp_ints sizes, tp_memory_format format, int64_t *strides);
/* Strides without gaps in the order of dimensions that the given ones have, as PyTorch infers them. */
void tp_dense_strides(tp_ints sizes, tp_ints strides, int64_t *out);
/* What preserve_format keeps of t: the strides of a dense tensor, of another one its order of dimensions. */
void tp_preserved_strides(const tp_tensor *t, int64_t *out);
/* Wraps a dimension into [0, ndim); -1 and an IndexError outside. A 0-dimensional tensor accepts -1 and 0. */
int64_t tp_wrap_dim(int64_t dim, int64_t ndim);
/* Broadcast shape of two into `out`, which has room for the longer (and may be either's data if that is the longer);
 * returns the number of dimensions, or -1 with the error set. */
int tp_broadcast_sizes(tp_ints a, tp_ints b, int64_t *out);
/* "[2, 3]" appended to a text. */
void tp_text_ints(tp_text *text, tp_ints v);
/* The same in `room` of `size` bytes, cut where that is too little; gives room. */
const char *tp_ints_text(char *room, size_t size, tp_ints v);
/* "float32[2, 3] on cpu", for messages. */
void tp_text_tensor(tp_text *text, const tp_tensor *t);
