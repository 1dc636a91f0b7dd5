/* api.h: the table of functions that a library from outside is given: the whole of what it may call.
 *
 * Nobody calls through it by hand: tensorpy/library.h has an inline function of each name (tp_fail, tp_new_empty, ...),
 * and what is said of a member here is said of that function. The table only grows at its end. A library remembers how
 * much of it it was built with, and is refused, by name of both versions, by a tensorpy that has less.
 *
 * Ownership and errors: an argument is borrowed, a returned pointer is new; a function that fails returns NULL or -1
 * and has set the thread's error, which the caller passes on by returning NULL or -1 itself. A pointer may be NULL only
 * where that is said. All may be called from any thread that holds the host lock, as kernels do, if nothing else is
 * said. What names no version has been there since the first, 1.0. */
#ifndef TENSORPY_API_H
#define TENSORPY_API_H

#include "tensorpy/backend.h"
#include "tensorpy/iterator.h"
#include "tensorpy/program.h"
#include "tensorpy/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the binary interface: raised when libraries have to be built again, which a library of another version
 * hears when it is loaded. */
#define TENSORPY_API_VERSION 1
/* How often something was added since; what is new names version and minor. */
#define TENSORPY_API_MINOR 13

/* What a tensor is, read at once; the pointers live as long as the tensor is not changed. */
typedef struct {
    void *data; /* of the first element, on the device; an opaque device's handle; NULL for Meta and OpenCL, and where
                   the call of a compiled function that should have computed the elements has failed */
    const int64_t *sizes, *strides; /* `ndim` each; strides in elements, of either sign */
    int64_t numel;                  /* the product of the sizes: 1 without dimensions */
    tp_keyset keys;                 /* its backend's and those of its layers */
    tp_dtype dtype;                 /* of its elements */
    tp_device device;               /* never an index of -1 */
    int32_t ndim;                   /* 0 to 64 */
    bool is_contiguous;             /* its elements follow each other in the order of rows */
    bool requires_grad;             /* of a leaf or of what was computed from one */
} tp_view;

/* A kernel as TENSORPY_KERNEL describes it. */
typedef struct {
    tp_boxed_fn boxed; /* takes the arguments apart and calls the function */
    const char *codes; /* a letter for what it returns and one per parameter (library.h has the list) */
    const char *name;  /* the C function's, for messages and tables */
    const char *file;  /* where it is written */
    int line;          /* and on which line */
} tp_kernel;

/* A library while its parts run: what the macros of library.h call `m`. */
typedef struct tensorpy_library tp_library;
/* A recorded call, for its backward. */
typedef struct tp_node tp_record;
/* The gradients of a record's inputs: `grads` has one entry per output (borrowed; NULL: none arrived), `out` one per
 * input, all NULL at first (new, or left NULL). A gradient has the sizes of its input, or broadcasts to them. 0, or -1
 * with the error set; what `out` has then is released. */
typedef int (*tp_backward)(tp_record *record, tp_tensor *const *grads, tp_tensor **out);

/* The table. */
typedef struct tensorpy_api {
    size_t size;          /* of the table in the tensorpy that runs */
    uint32_t version;     /* its TENSORPY_API_VERSION */
    const char *tensorpy; /* its release, "0.1.0" */

    /* ---- dispatch keys ---- */

    int64_t nkeys;          /* how many there are in this tensorpy, by TENSORPY_KEY_... */
    const tp_keyset *bits;  /* the set of each */
    const tp_keyset *below; /* and of all that come after it in a call: what a layer passes on */

    /* ---- errors ---- */

    /* Sets the thread's error, in the place of one that is there; `format` and what follows are printf's. Always -1. */
    int (*fail)(tp_error_class cls, const char *format, ...);
    /* The class of the thread's error; TP_NoError if there is none. */
    tp_error_class (*error_pending)(void);
    /* The error's text, good until the error changes; "" without one. */
    const char *(*error_message)(void);
    /* Forgets the error: for who has dealt with it. */
    void (*error_clear)(void);

    /* ---- dtypes and numbers ---- */

    /* Bytes of an element; `dtype` is one of the list, not TP_NO_DTYPE. */
    int64_t (*itemsize)(tp_dtype dtype);
    /* "float32"; "none" for TP_NO_DTYPE. Stays. */
    const char *(*dtype_name)(tp_dtype dtype);
    /* The dtype that two dtypes are computed in, as PyTorch has it; TP_NO_DTYPE and an error where there is none. */
    tp_dtype (*promote_types)(tp_dtype a, tp_dtype b);
    /* The number as a double: the real part of a complex one. Cannot fail. */
    double (*scalar_double)(const tp_scalar *s);
    /* The number as an integer: a float is cut towards zero and saturates, NaN gives 0; a UINT wraps. Cannot fail. */
    int64_t (*scalar_int)(const tp_scalar *s);
    /* The number as a complex one. Cannot fail. */
    tp_complex128 (*scalar_complex)(const tp_scalar *s);

    /* ---- tensors ---- */

    /* `t` itself, with one reference more; NULL gives NULL. */
    tp_tensor *(*retain)(tp_tensor *t);
    /* Gives a reference back; NULL does nothing. */
    void (*release)(tp_tensor *t);
    /* Writes what `t` is to `out`, whose pointers are into `t`; what a compiled function has noted of its contents runs
     * before: `data` is NULL where that fails. Cannot fail. */
    void (*view)(const tp_tensor *t, tp_view *out);
    /* A contiguous tensor whose elements nobody has written. RuntimeError for sizes below 0 or too many elements,
     * MemoryError where memory is out. */
    tp_tensor *(*new_empty)(tp_ints sizes, tp_dtype dtype, tp_device device);
    /* The same with these strides, as many as sizes, in elements. */
    tp_tensor *(*new_empty_strided)(tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device);
    /* With the sizes and the device of `like`; with its strides where it is dense, else in their order, without gaps.
     */
    tp_tensor *(*new_empty_like)(const tp_tensor *like, tp_dtype dtype);
    /* Over memory from outside, on the device that `device` names; strides in elements, none below 0. `release_memory`
     * (NULL: nothing) runs when the last tensor on it goes, on any thread. After a failure the memory is still the
     * caller's. ValueError for strides of another number than sizes. */
    tp_tensor *(*from_memory)(void *data, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device,
                              void (*release_memory)(void *context, void *data), void *context);
    /* Another geometry over t's storage, without history; `offset` in elements from the storage's start. RuntimeError
     * or ValueError if it leaves the storage's bounds. */
    tp_tensor *(*as_strided)(tp_tensor *t, tp_ints sizes, tp_ints strides, int64_t offset);
    /* Gives `t` these sizes, contiguous, and a storage that is large enough; for what an out= argument becomes.
     * Pointers that were read from it before are stale. */
    int (*resize)(tp_tensor *t, tp_ints sizes);
    /* A list of `size` NULLs, for a result of type Tensor[]. */
    tp_tensor_seq *(*seq_new)(int64_t size);
    /* Puts `t`, whose reference it takes, at place `i`, which has to be one of the list's. Cannot fail. */
    void (*seq_put_steal)(tp_tensor_seq *seq, int64_t i, tp_tensor *t);
    /* Releases the list and what is in it; NULL does nothing. */
    void (*seq_free)(tp_tensor_seq *seq);

    /* ---- operators ---- */

    /* The operator of that name, "aten::add.Tensor" or "add.Tensor" of tensorpy's own, borrowed: it stays. RuntimeError
     * if there is none. */
    const tp_op *(*find_op)(const char *name);
    /* Whether a C function of these codes fits the operator: 0, or -1 and a TypeError that begins with `where` and
     * names the argument. */
    int (*check_codes)(const tp_op *op, const char *codes, const char *where);
    /* "add.Tensor" into a buffer of 128 bytes, which is what comes back. */
    const char *(*op_name)(const tp_op *op, char *buffer);
    /* The operator's schema, "add.Tensor(Tensor self, ...) -> Tensor". Stays. */
    const char *(*op_schema)(const tp_op *op);
    /* How many arguments it has; a boxed kernel gets so many values. */
    int (*op_arguments)(const tp_op *op);
    /* How many results it has. */
    int (*op_results)(const tp_op *op);
    /* Calls the operator from the top, through all layers. `args` has a value for every argument, borrowed; `results`
     * has room for every result and is NONE at first; they are new after 0, and NONE after -1. Results that are
     * arguments (in-place, out=) stay NONE. */
    int (*call)(const tp_op *op, const tp_value *args, tp_value *results);
    /* The same from the highest key of `ks` on: for a layer, which passes on what is below it (TP_BELOW). */
    int (*redispatch)(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results);
    /* Has the CPU's kernel compute the call, on copies of what is on the device that `ks` names, and copies back what
     * it gives and what it wrote. Results that are there already are released first. */
    int (*call_on_host)(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results);
    /* Releases what a result value holds, and makes it NONE. */
    void (*value_release)(tp_value *v);
    /* This thread's calls leave out the layers of `ks` until `restore`, which is to be given what this returns. */
    tp_keyset (*exclude)(tp_keyset ks);
    /* The end of an `exclude`; in the opposite order where there are several. */
    void (*restore)(tp_keyset before);

    /* ---- a library's parts ---- */

    /* Declares an operator in the namespace of the part at hand, which has to be no IMPL. ValueError for a schema that
     * does not parse; RuntimeError for one that is declared already, with the place. */
    int (*define)(tp_library *library, const char *schema);
    /* Registers a kernel for an operator and the key of the part at hand, an IMPL; `kernel` is static. TypeError if its
     * types are not the schema's; RuntimeError if there is no such operator or key, or a kernel from elsewhere, with
     * both places. */
    int (*implement)(tp_library *library, const char *op, const tp_kernel *kernel);
    /* The same of a boxed kernel; NULL for `boxed` passes the key by; an empty `op` is every operator that has none of
     * its own at the key, in the namespace _. `context` comes back at every call and goes to `free_context` (NULL:
     * nobody) when the last call has left a kernel that was taken out; after a failure it is still the caller's. */
    int (*implement_boxed)(tp_library *library, const char *op, tp_boxed_fn boxed, void *context,
                           void (*free_context)(void *), const char *name);

    /* ---- autograd ---- */

    /* A record of a call of these inputs (NULLs among them too): NULL without an error if none of them wants a
     * gradient. `name` ("ScaleBackward") is what grad_fn shows; `nbytes` of `data` are copied and live as long as the
     * record. */
    tp_record *(*record_new)(const char *name, tp_backward backward, tp_tensors inputs, const void *data,
                             size_t nbytes);
    /* Keeps a tensor for backward, an input or anything else (NULL too); in order, for `saved`. */
    int (*record_save)(tp_record *r, tp_tensor *t);
    /* Keeps result number `output` of the call, which would keep itself alive otherwise; after `record_output`. */
    int (*record_save_output)(tp_record *r, tp_tensor *t, int output);
    /* Makes the record a result's grad_fn; for every result in order, NULL for one that is absent. A dtype that has no
     * gradient is left alone. */
    int (*record_output)(tp_record *r, tp_tensor *t);
    /* Gives the caller's reference back; NULL does nothing. */
    void (*record_release)(tp_record *r);
    /* The copy of `data`, borrowed; NULL if it had no bytes. */
    void *(*record_data)(tp_record *r);
    /* The value saved as number `i`, new; NULL without an error if that was NULL. RuntimeError if it was changed in
     * place since or freed by an earlier backward, IndexError if there is no such number. */
    tp_tensor *(*saved)(tp_record *r, int i);
    /* Whether a gradient of that input is asked for. Cannot fail. */
    bool (*wants)(const tp_record *r, int input);
    /* Marks `view_steal`, new and over base's storage, as a view of `base`, and returns it; for ADInplaceOrView. NULL
     * gives NULL. */
    tp_tensor *(*as_view)(tp_tensor *base, tp_tensor *view_steal);
    /* Before a write: RuntimeError if `t` may not be written, being read-only or a leaf that requires grad. `op` names
     * the operator in the message. */
    int (*check_write)(tp_tensor *t, const char *op);
    /* After a write: counts t's version. `op` stays. Cannot fail. */
    void (*note_write)(tp_tensor *t, const char *op);

    /* ---- autocast ---- */

    /* What autocast casts to on that device type; TP_NO_DTYPE where it is off. */
    tp_dtype (*autocast_dtype)(int device_type);
    /* `t` as `to`, kept for the next call if it is a leaf that wants a gradient; t itself where it is no floating
     * tensor of that device type, or a float64. New; NULL for NULL. */
    tp_tensor *(*cached_cast)(tp_tensor *t, tp_dtype to, int device_type);
    /* The wider of `to` and t's dtype, where autocast is about `t`; NULL leaves `to`. */
    tp_dtype (*autocast_promote)(tp_dtype to, const tp_tensor *t, int device_type);

    /* ---- threads and signals ---- */

    /* [0, n) in pieces of at least `grain`, on several threads, none of which may call Python; `fn` reports an error
     * with `fail`, and the others still run: then -1, with the error of the lowest piece. */
    int (*parallel_for)(int64_t n, int64_t grain, void (*fn)(int64_t begin, int64_t end, void *context), void *context);
    /* How many threads that is, at most. */
    int (*num_threads)(void);
    /* Gives the host lock up, for work that is long or waits; what `host_lock_acquire` is to be given. In between no
     * function of the table is called but `fail`, `look_for_signals` and `parallel_for`. */
    void *(*host_lock_release)(void);
    /* Takes the host lock again; NULL takes nothing. */
    void (*host_lock_acquire)(void *state);
    /* -1 and the error set if a signal has come (Ctrl-C) and the work is to end: every loop of more than some
     * milliseconds asks now and then. With or without the host lock. */
    int (*look_for_signals)(void);

    /* ---- OpenCL ---- */

    /* Runs the kernel `name` of a source over `items` (one to three dimensions) on the device of `on`, in groups of
     * `group` ({NULL, -1}: as the device likes). Groups are whole, so there may be more work-items than `items`: a
     * kernel compares its number with how many there are to be. Programs are kept in memory and on disk. A tensor is
     * passed as its buffer and, after it, the offset of its first element as a long; an int as a long, a float as a
     * float, a bool as an int. It is enqueued after all that the thread has enqueued before, and after what a compiled
     * function has noted of its tensors. RuntimeError with the compiler's log. */
    int (*opencl_run)(const char *name, const char *source, tp_tensor *on, tp_ints items, tp_ints group,
                      const tp_value *args, int nargs);

    /* ---- primitives: for kernels of a device; but for raise_fault, any thread may call these ---- */
    /* Describes the program of a call of prim::map; `out->size` is filled in. */
    int (*map_program)(int64_t program, tp_dtype compute, tp_map_program *out);
    /* The same of prim::reduce.program. */
    int (*reduce_program)(int64_t program, tp_dtype compute, tp_reduce_program *out);
    const char *(*step_name)(int op); /* of a step ("add", "sigmoid"); NULL for a number that is none's */
    /* The dtype of a kind where `compute` is computed in. */
    tp_dtype (*kind_dtype)(int kind, tp_dtype compute);
    /* The dtype of what a program gives there. */
    tp_dtype (*program_result)(const tp_program *program, tp_dtype compute);
    /* A program as the body of a function in C and OpenCL C, on tensorpy/math.h: inputs are x0, x1, ..., parameter k is
     * p<k>, whether it is None n<k>, whether it is its word j w<k>_<j>. As snprintf: the text's length, of which as
     * much as there is room for is written; -1 without memory. */
    int64_t (*print_program)(const tp_program *program, tp_dtype compute, char *text, int64_t room);
    /* Sets the error that the argument `fault` of a primitive stands for: -1. `where` ends the message ("": in the
     * call; else where it was found). */
    int (*raise_fault)(int64_t fault, int64_t value, int64_t dim, int64_t size, const char *where);

    /* ---- streams ---- */
    /* The number of this thread's current stream of a device from outside: where its work is enqueued. */
    int64_t (*current_stream)(const char *backend, int device);

    /* ---- for files that the generator writes (generated.h) ---- */
    const struct tensorpy_generated *generated; /* the part that generated files call: generated.h */

    /* ---- since 1.6: declining ---- */

    /* Says that a kernel does not take this call, before it has done anything: always -1, which the kernel returns. The
     * kernel that would stand in the table without it takes the call. Since 1.6. */
    int (*decline)(void);

    /* ---- since 1.6: the iterator (iterator.h) ---- */

    /* PyTorch's result type: tensors with dimensions before those without before numbers, in each category. TP_NO_DTYPE
     * and the error set where there is none. Since 1.6. */
    tp_dtype (*result_type)(const tp_operand *operands, int n);
    /* A tensor of the operands' broadcast shape, laid out as PyTorch's pointwise operators lay out theirs, on the
     * device of the first tensor. Nobody has written its elements. RuntimeError where they do not broadcast. Since 1.6.
     */
    tp_tensor *(*new_output)(const tp_operand *inputs, int n, tp_dtype dtype);
    /* Fills in the plan for 1 to 8 tensors of one device, of which the first `noutputs` are written and have the
     * broadcast shape of all. RuntimeError where they do not, or where what is written overlaps itself or, in part,
     * what is read. Since 1.6. */
    int (*plan_of)(tp_tensor *const *tensors, int noutputs, int n, tp_plan *out);
    /* Runs a loop over a plan of tensors on the CPU: in pieces of at least `grain` elements over threads (0: a light
     * loop's), without the host lock where it takes long. Operands whose loop_dtype differs from their dtype are
     * converted in blocks. Since 1.6. */
    int (*walk)(const tp_plan *plan, tp_loop_fn loop, const void *params, int64_t grain);

    /* ---- since 1.12 ---- */

    /* As view, but for the contents: `data` is NULL. What a compiled function has noted of `t` goes on waiting. Cannot
     * fail. Since 1.12. */
    void (*geometry)(const tp_tensor *t, tp_view *out);
} tensorpy_api;

/* ---- what a library consists of ---- */

/* What a part does, in the order in which they run. */
typedef enum {
    TENSORPY_PART_DEF,      /* opens a namespace and declares operators */
    TENSORPY_PART_FRAGMENT, /* declares more of them */
    TENSORPY_PART_BACKEND,  /* brings a device */
    TENSORPY_PART_IMPL      /* registers kernels */
} tensorpy_part_kind;

/* A part of a library: what one of the macros of library.h makes. Static. */
typedef struct tensorpy_part {
    struct tensorpy_part *next;       /* the one before it in the file, or of another file */
    tensorpy_part_kind kind;          /* which of the members below it has */
    const char *ns, *key;             /* the namespace, or the backend's name; the dispatch key of an IMPL */
    int (*fill)(tp_library *library); /* declares or registers: all but BACKEND */
    void (*fill_backend)(tensorpy_backend *backend); /* BACKEND: fills in the device's functions */
    const char *file;                                /* where it is written */
    int line;                                        /* and on which line */
} tensorpy_part;

/* What a library answers when it is opened. */
typedef struct {
    size_t size;          /* of this struct */
    size_t api_size;      /* of the table that the library was built with */
    uint32_t version;     /* its TENSORPY_API_VERSION */
    tensorpy_part *parts; /* the last of them; the others by `next` */
} tensorpy_module;

/* The one symbol that a library exports (library.h defines it). */
#define TENSORPY_ENTRY tensorpy_library_entry
/* The type of a library's entry: `api` stays, and so does what comes back. */
typedef const tensorpy_module *(*tensorpy_entry)(const tensorpy_api *api);

#ifdef __cplusplus
}
#endif
#endif
