/* api.h: the table of functions that a library from outside is given: the whole of what it may call.
 *
 * Nobody calls through it by hand: tensorpy/library.h has an inline function of each name (tp_fail, tp_new_empty, ...).
 * The table only grows at its end. A library remembers how much of it it was built with, and is refused, by name of
 * both versions, by a tensorpy that has less.
 *
 * Ownership and errors: an argument is borrowed, a returned pointer is new; a function that fails returns NULL or -1
 * and has set the thread's error, which the caller passes on by returning NULL or -1 itself. All may be called from any
 * thread that holds the host lock, as kernels do, if nothing else is said. */
#ifndef TENSORPY_API_H
#define TENSORPY_API_H

#include "tensorpy/backend.h"
#include "tensorpy/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TENSORPY_API_VERSION 0 /* 0: may still change with every release */

/* What a tensor is, read at once; the pointers live as long as the tensor is not changed. */
typedef struct {
    void *data; /* of the first element, on the device; NULL for Meta, and where a device's memory is no address */
    const int64_t *sizes, *strides; /* `ndim` each; strides in elements */
    int64_t numel;
    tp_keyset keys;
    tp_dtype dtype;
    tp_device device;
    int32_t ndim;
    bool is_contiguous, requires_grad;
} tp_view;

/* A kernel as TENSORPY_KERNEL describes it. `codes`: a letter for what it returns and one per parameter (library.h). */
typedef struct {
    tp_boxed_fn boxed;
    const char *codes, *name, *file;
    int line;
} tp_kernel;

typedef struct tensorpy_library tp_library; /* a library while its parts run */
typedef struct tp_node tp_record;           /* a recorded call, for its backward */
/* The gradients of a record's inputs: `grads` has one entry per output (borrowed; NULL: none arrived), `out` one per
 * input (new, or NULL). */
typedef int (*tp_backward)(tp_record *record, tp_tensor *const *grads, tp_tensor **out);

typedef struct tensorpy_api {
    size_t size; /* of the table in the tensorpy that runs */
    uint32_t version;
    const char *tensorpy; /* "0.1.0" */

    /* ---- errors ---- */
    int (*fail)(tp_error_class cls, const char *format, ...); /* sets the error; always -1 */
    tp_error_class (*error_pending)(void);
    const char *(*error_message)(void);
    void (*error_clear)(void);

    /* ---- dtypes and numbers ---- */
    int64_t (*itemsize)(tp_dtype dtype);
    const char *(*dtype_name)(tp_dtype dtype);
    tp_dtype (*promote_types)(tp_dtype a, tp_dtype b); /* TP_NO_DTYPE and an error where there is no common one */
    double (*scalar_double)(const tp_scalar *s);
    int64_t (*scalar_int)(const tp_scalar *s);
    tp_complex128 (*scalar_complex)(const tp_scalar *s);

    /* ---- tensors ---- */
    tp_tensor *(*retain)(tp_tensor *t); /* t itself, with one reference more; NULL gives NULL */
    void (*release)(tp_tensor *t);
    void (*view)(const tp_tensor *t, tp_view *out);
    tp_tensor *(*new_empty)(tp_ints sizes, tp_dtype dtype, tp_device device);
    tp_tensor *(*new_empty_strided)(tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device);
    tp_tensor *(*new_empty_like)(const tp_tensor *like, tp_dtype dtype); /* its sizes, strides and device */
    /* Over memory from outside; `release_memory` runs when the last tensor on it goes. After a failure the memory is
     * still the caller's. */
    tp_tensor *(*from_memory)(void *data, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device,
                              void (*release_memory)(void *context, void *data), void *context);
    /* Another geometry over t's storage, checked against its bounds; `offset` in elements from the storage's start. */
    tp_tensor *(*as_strided)(tp_tensor *t, tp_ints sizes, tp_ints strides, int64_t offset);
    int (*resize)(tp_tensor *t, tp_ints sizes); /* contiguous; for out= */
    tp_tensor_seq *(*seq_new)(int64_t size);    /* filled with NULL */
    void (*seq_put_steal)(tp_tensor_seq *seq, int64_t i, tp_tensor *t);
    void (*seq_free)(tp_tensor_seq *seq);

    /* ---- operators ---- */
    const tp_op *(*find_op)(const char *name); /* "aten::add.Tensor"; NULL and an error if there is none */
    /* Whether a C function of these codes fits the operator: 0, or -1 and an error that says where not. */
    int (*check_codes)(const tp_op *op, const char *codes, const char *where);
    const char *(*op_name)(const tp_op *op, char *buffer); /* "add.Tensor" into 128 bytes; the buffer */
    const char *(*op_schema)(const tp_op *op);
    int (*op_arguments)(const tp_op *op); /* how many; a boxed kernel gets so many values */
    int (*op_results)(const tp_op *op);
    int (*call)(const tp_op *op, const tp_value *args, tp_value *results); /* from the top */
    int (*redispatch)(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results);
    /* Has the CPU's kernel compute the call, on copies of what is on other devices. */
    int (*call_on_host)(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results);
    void (*value_release)(tp_value *v);
    tp_keyset (*exclude)(tp_keyset ks); /* for this thread, until `restore`; what that is to be given */
    void (*restore)(tp_keyset before);

    /* ---- a library's parts ---- */
    int (*define)(tp_library *library, const char *schema);
    int (*implement)(tp_library *library, const char *op, const tp_kernel *kernel);
    /* A boxed kernel; an empty name: for every operator that has none of its own at the key. */
    int (*implement_boxed)(tp_library *library, const char *op, tp_boxed_fn boxed, void *context,
                           void (*free_context)(void *), const char *name);

    /* ---- autograd ---- */
    /* A record of a call of these inputs (NULLs among them too): NULL without an error if none of them wants a
     * gradient. `name` ("ScaleBackward") stays; `data` is copied and lives as long as the record. */
    tp_record *(*record_new)(const char *name, tp_backward backward, tp_tensors inputs, const void *data,
                             size_t nbytes);
    int (*record_save)(tp_record *r, tp_tensor *t); /* an input or anything else; in order, for `saved` */
    int (*record_save_output)(tp_record *r, tp_tensor *t, int output);
    int (*record_output)(tp_record *r, tp_tensor *t); /* a result of the call; in order; NULL: an absent one */
    void (*record_release)(tp_record *r);
    void *(*record_data)(tp_record *r);
    tp_tensor *(*saved)(tp_record *r, int i);     /* new; fails if it was changed in place since */
    bool (*wants)(const tp_record *r, int input); /* whether a gradient of that input is asked for */
    /* `view` is a view of `base`, for ADInplaceOrView; and t was written. */
    tp_tensor *(*as_view)(tp_tensor *base, tp_tensor *view_steal);
    int (*check_write)(tp_tensor *t, const char *op); /* before: whether t may be written */
    void (*note_write)(tp_tensor *t, const char *op); /* after; `op` stays */

    /* ---- autocast ---- */
    tp_dtype (*autocast_dtype)(int device_type);
    tp_tensor *(*cached_cast)(tp_tensor *t, tp_dtype to, int device_type); /* t itself where it does not apply; new */
    tp_dtype (*autocast_promote)(tp_dtype to, const tp_tensor *t, int device_type);

    /* ---- threads and signals ---- */
    /* [0, n) in pieces of at least `grain`, on several threads; fn reports an error with `fail`. */
    int (*parallel_for)(int64_t n, int64_t grain, void (*fn)(int64_t begin, int64_t end, void *context), void *context);
    int (*num_threads)(void);
    void *(*host_lock_release)(void); /* for work that is long or waits; what `acquire` is to be given */
    void (*host_lock_acquire)(void *state);
    int (*look_for_signals)(
        void); /* -1 if a signal has come: every loop of more than some milliseconds asks now and then */

    /* ---- OpenCL ---- */
    /* Runs the kernel `name` of a source over `items` (one to three dimensions) on the device of `on`, in groups of
     * `group` ({NULL, -1}: as the device likes). Programs are kept in memory and on disk. A tensor is passed as its
     * buffer and, behind it, the offset of its first element as a long; an int as a long, a float as a float, a bool as
     * an int. It is enqueued behind all that the thread has enqueued before. */
    int (*opencl_run)(const char *name, const char *source, tp_tensor *on, tp_ints items, tp_ints group,
                      const tp_value *args, int nargs);
} tensorpy_api;

/* ---- what a library consists of ---- */

typedef enum {
    TENSORPY_PART_DEF,
    TENSORPY_PART_FRAGMENT,
    TENSORPY_PART_BACKEND,
    TENSORPY_PART_IMPL
} tensorpy_part_kind;

typedef struct tensorpy_part {
    struct tensorpy_part *next;
    tensorpy_part_kind kind;
    const char *ns, *key;             /* the namespace, or the backend's name; the dispatch key of an IMPL */
    int (*fill)(tp_library *library); /* all but BACKEND */
    void (*fill_backend)(tensorpy_backend *backend); /* BACKEND */
    const char *file;
    int line;
} tensorpy_part;

typedef struct {
    size_t size;     /* of this struct */
    size_t api_size; /* of the table that the library was built with */
    uint32_t version;
    tensorpy_part *parts;
} tensorpy_module;

/* The one symbol that a library exports (library.h defines it). */
#define TENSORPY_ENTRY tensorpy_library_entry
typedef const tensorpy_module *(*tensorpy_entry)(const tensorpy_api *api);

#ifdef __cplusplus
}
#endif
#endif
