/* generated_api.h: the table of functions that files of the generator call (generated.h), a part of tensorpy/api.h's.
 */
#ifndef TENSORPY_GENERATED_API_H
#define TENSORPY_GENERATED_API_H

#include "tensorpy/api.h"
#include "tensorpy/batching.h"
#include "tensorpy/expressions.h"
#include "tensorpy/tangents.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The outputs of a structured kernel, while its meta function and its kernel run. */
typedef struct tp_meta tp_meta;
typedef int (*tensorpy_structured)(tp_meta *m, tp_value *args); /* either, from boxed arguments */

/* Which dtypes an out= may have; UNSAID: as before 1.3, any for a structured kernel. */
typedef enum { TENSORPY_OUT_UNSAID, TENSORPY_OUT_SAME, TENSORPY_OUT_CASTABLE } tensorpy_out_dtype;

/* What the YAML says of an operator of a library beside its schema and its kernels. Since 1.2; grows at its end. */
typedef struct tensorpy_entry_info {
    size_t size;               /* of the struct, where the library was built */
    const char *const *tags;   /* NULL-terminated; NULL: none */
    const char *batching_with; /* the operator that the kind calls, of the library's namespace: "energy.dim"; or NULL */
    const char *roles;         /* see batching.h; NULL: it is never asked for, as of a composite */
    int32_t batching;          /* tp_batch_kind */
    int32_t random;            /* whether it draws numbers */
    int32_t is_method;         /* of Tensor, while the library is loaded */
    /* ---- since 1.3 ---- */
    int32_t out_dtype;                 /* tensorpy_out_dtype, of an operator with out= */
    const char *const *prims;          /* the primitives that its kernel for Dense calls, "scan.sum"; NULL-terminated */
    const tensorpy_tangents *tangents; /* NULL: the gradient of its gradient */
    /* ---- since 1.6 ---- */
    int32_t out_apart;  /* whether an out= that shares memory with an input is refused */
    int32_t empty_list; /* the class of the error where a list has no tensors (tp_error_class); 0: as most say it */
    /* ---- since 1.13 ---- */
    const char *warns; /* the warning of its first call in a process, where no C function gives it; NULL: none */
    const char *registered_by; /* the module whose import registers its kernels; NULL: they are the library's */
} tensorpy_entry_info;

/* What generated files call (generated.h); it too only grows at its end. */
typedef struct tensorpy_generated {
    size_t size;                            /* of the table in the tensorpy that runs */
    tp_keyset autograd_keys, autocast_keys; /* all of them */

    /* ---- numbers: as in core/scalar_math.h; total, the wider kind of the two ---- */
    tp_scalar (*scalar_add)(const tp_scalar *a, const tp_scalar *b);
    tp_scalar (*scalar_sub)(const tp_scalar *a, const tp_scalar *b);
    tp_scalar (*scalar_mul)(const tp_scalar *a, const tp_scalar *b);
    tp_scalar (*scalar_div)(const tp_scalar *a, const tp_scalar *b);
    tp_scalar (*scalar_pow)(const tp_scalar *a, const tp_scalar *b);
    tp_scalar (*scalar_neg)(const tp_scalar *a);
    tp_scalar (*scalar_conj)(const tp_scalar *a);
    tp_scalar (*scalar_exp)(const tp_scalar *a);
    tp_scalar (*scalar_log)(const tp_scalar *a);
    tp_scalar (*scalar_sqrt)(const tp_scalar *a);
    bool (*scalar_equal)(const tp_scalar *a, const tp_scalar *b);
    bool (*scalar_less)(const tp_scalar *a, const tp_scalar *b);
    bool (*scalar_less_equal)(const tp_scalar *a, const tp_scalar *b);
    bool (*scalar_bool)(const tp_scalar *s);
    uint64_t (*scalar_uint)(const tp_scalar *s);

    /* ---- lists and tensors ---- */
    int64_t (*list_index)(int64_t size, int64_t i); /* counted from the end if negative; -1 and an IndexError outside */
    tp_ints (*ints_slice)(tp_ints v, int64_t low, int64_t high); /* as in Python; shares v's memory */
    tp_ints (*ints_join)(int64_t *room, tp_ints a, tp_ints b);   /* in room for 64; size -1 and an error beyond */
    int64_t (*wrap_dim)(int64_t dim, int64_t ndim);              /* -1 and an IndexError outside */
    int64_t (*storage_offset)(const tp_tensor *t);               /* in elements */
    bool (*requires_grad)(const tp_tensor *t);
    bool (*grad_enabled)(void);
    tp_tensors (*seq_borrow)(const tp_tensor_seq *s);
    tp_tensor_seq *(*seq_of)(tp_tensors list); /* new; with references of its own */

    /* ---- kernels: of the part's key, for an operator of its namespace ---- */
    tp_capability (*capability)(void); /* whose loops to take */
    /* p->number is given here; the struct and all that it points to stay. */
    int (*pointwise)(tp_library *library, const char *op, tp_pointwise *p);
    int (*reduction)(tp_library *library, const char *op, tp_reduction_op *r);
    /* kernel NULL: the outputs alone, for Meta. */
    int (*structured)(tp_library *library, const char *op, tensorpy_structured meta, tensorpy_structured kernel);
    /* Declares output i, in a meta function; strides {NULL, -1}: contiguous for a new one, any for a given one. */
    int (*meta_output)(tp_meta *m, int i, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device);
    tp_tensor *(*meta_out)(tp_meta *m, int i); /* what the kernel writes; borrowed */
    /* op calls the variant `of`, in place or not, and copies; and as a kernel for Autograd, or ForwardAD: of an
     * in-place operator, which is recorded as that, or of one with out=, which refuses to be recorded. */
    int (*variant)(tp_library *library, const char *op, const char *of);
    int (*record_variant)(tp_library *library, const char *op, const char *of);

    /* ---- backward ---- */
    tp_tensor *(*zeros_for_output)(const tp_record *r, int output);                   /* new */
    tp_tensor_seq *(*gradients_of_list)(const tp_record *r, tp_tensor *const *grads); /* new; zeros for those missing */

    /* ---- since 1.2 ---- */

    /* Says it of an operator that the library has declared; what `info` points to stays. */
    int (*describe)(tp_library *library, const char *op, const tensorpy_entry_info *info);
    /* Autocast: whether a tensor is cast there; the rest as for one tensor (api.h), of lists. */
    bool (*autocast_takes)(const tp_tensor *t, int device_type);
    tp_dtype (*autocast_promote_list)(tp_dtype to, tp_tensors list, int device_type);
    tp_tensor_seq *(*cached_cast_list)(tp_tensors list, tp_dtype to, int device_type);
    /* 16-bit tensors become float32 on the way in, and results are rounded once (native/common/rounding.h). */
    bool (*has_reduced)(tp_tensors list);
    tp_dtype (*rounded_dtype)(tp_tensor *const *tensors, int n, const tp_tensors *lists, int nlists);
    tp_tensor *(*widened)(tp_tensor *t);
    tp_tensor *(*widened_steal)(tp_tensor *t);
    tp_tensor_seq *(*widened_list)(tp_tensors list);
    int (*widen_list)(tp_tensor_seq *list);
    tp_tensor *(*rounded_steal)(tp_tensor *t, tp_dtype to);
    tp_tensor_seq *(*rounded_list_steal)(tp_tensor_seq *list, tp_dtype to);
    int (*round_all)(tp_tensor **made, int n, tp_dtype to);
    int (*round_into)(tp_tensor *self, tp_tensor *wide);
    /* What a tag adds to a kernel (native/common/tags.h). */
    int (*check_determinism)(const char *op);
    int (*refuse_meta)(const tp_tensor *t, const char *op, const char *tag);
    tp_tensor *(*contiguous)(tp_tensor *t, tp_memory_format format); /* new */

    /* ---- since 1.3 ---- */

    /* RuntimeError that names every argument's device, unless they are all on one (prim/devices.h). */
    int (*check_devices)(const char *op, const tp_device_argument *given, int64_t n);
    /* Calls the operator of that name for each place of the lists among its arguments (autograd/each.h). */
    tp_tensor_seq *(*each_new)(const char *called, const tp_value *args, int nargs);
    int (*each_into)(const char *called, const tp_value *args, int nargs);
    bool (*is_differentiated)(void); /* is_grad_enabled() of a formula: a gradient or a tangent is recorded */
    /* v as "[2, 3]" for a message; written into `room` of `size` bytes, cut where that is too little. */
    const char *(*ints_text)(char *room, size_t size, tp_ints v);

    /* ---- since 1.5 ---- */

    /* The key `warns` of an entry: a warning, unless *warned is true already (native/common/tags.h). */
    int (*warn_first)(bool *warned, const char *text);

    /* ---- since 1.6 ---- */

    /* As pointwise, with what is checked before each call. */
    int (*pointwise_checked)(tp_library *library, const char *op, tp_pointwise *p, tp_pointwise_check check);
    /* The tag view_copy (native/common/tags.h): copies in the place of a view, of each of several; NULL passes. */
    tp_tensor *(*copy_of_view_steal)(tp_tensor *view);
    tp_tensor_seq *(*copies_of_views_steal)(tp_tensor_seq *views);

    /* ---- since 1.13 ---- */

    /* float(s), int(s) of a formula: -1 and an error for a number with an imaginary part; a dtype for a message. */
    int (*scalar_check_fits)(const tp_scalar *s, tp_dtype d);
    const char *(*scalar_type_name)(tp_dtype d); /* "Float" */

    /* For a layout's key: the tensor that op writes becomes what `of` gives. merged: it has one value for each place;
     * made: `of` makes it in the layout that is written. */
    int (*layout_variant)(tp_library *library, const char *op, const char *of, int merged, int made);
    int (*refuse_layout)(const char *op, const tp_tensor *t); /* -1 and NotImplementedError */
} tensorpy_generated;

#ifdef __cplusplus
}
#endif
#endif
