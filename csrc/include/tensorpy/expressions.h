/* expressions.h: pointwise operators and reductions as the YAML gives them: their expressions as programs (program.h),
 * and the compiled loops that the CPU runs in their place; and the table of functions that generated files call.
 *
 * The generator writes these structs (python -m tensorpy.codegen), for tensorpy and for libraries from outside. */
#ifndef TENSORPY_EXPRESSIONS_H
#define TENSORPY_EXPRESSIONS_H

#include "tensorpy/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the CPU's capabilities ---- */

/* Loops are compiled once per capability, with -DTP_CAPABILITY=<name> and the matching -m flags, and what they export
 * is named TP_CAP(stem); which ones run is chosen at load. */
typedef enum { TP_CAPABILITY_BASELINE, TP_CAPABILITY_AVX2, TP_CAPABILITY_AVX512, TP_NUM_CAPABILITIES } tp_capability;

#if defined(__x86_64__)
#define TP_HAVE_X86_CAPABILITIES 1 /* the avx2 and avx512 objects are part of the build */
#endif

#ifdef TP_CAPABILITY
#define TP_CAP_PASTE(stem, capability) stem##_##capability
#define TP_CAP_EXPAND(stem, capability) TP_CAP_PASTE(stem, capability)
#define TP_CAP(stem) TP_CAP_EXPAND(stem, TP_CAPABILITY)
#endif

/* The classes of dtypes, for each of which an operator may have a program of its own. */
typedef enum { TP_CLASS_BOOL, TP_CLASS_UINT, TP_CLASS_SINT, TP_CLASS_FLOAT, TP_CLASS_COMPLEX, TP_NUM_CLASSES } tp_class;

/* ---- pointwise operators ---- */

/* The kinds of type promotion, as PyTorch names them. */
typedef enum {
    TP_PROMOTE_DEFAULT,      /* the common dtype */
    TP_PROMOTE_NO_OPMATH,    /* the same; the loop moves values without arithmetic (16-bit floats stay as they are) */
    TP_PROMOTE_INT_TO_FLOAT, /* integers and bool become the default float */
    TP_PROMOTE_ALWAYS_BOOL,  /* computes in the common dtype, gives bool */
    TP_PROMOTE_COMPLEX_TO_FLOAT, /* computes in the common dtype, a complex one gives its real type */
    TP_PROMOTE_BOOL_TO_LONG,     /* bool becomes int64 */
} tp_promotion;

/* An inner loop: n elements; data[i] is operand i's first element and strides[i] its step in bytes. `params` are the
 * operator's other arguments, in schema order. */
typedef void (*tp_loop_fn)(char *const *data, const int64_t *strides, int64_t n, const void *params);

#define TP_MAP_INPUTS TP_PROGRAM_INPUTS
#define TP_MAP_PARAMS TP_PROGRAM_PARAMS

typedef struct {
    uint8_t tag; /* TP_SCALAR, TP_FLOAT, TP_INT, TP_BOOL_ or TP_STR */
    bool optional;
    const char *const *words; /* of a str: those that the expressions know, NULL-terminated */
} tp_pointwise_param;

struct tp_pointwise_case;
typedef struct tp_pointwise {
    const char *name;                  /* "add.Tensor", for messages */
    const char *inputs[TP_MAP_INPUTS]; /* the inputs' names */
    uint16_t number;                   /* its place among all pointwise operators */
    uint8_t ninputs, nparams;
    uint8_t promotion;                 /* tp_promotion */
    int8_t input_dtype[TP_MAP_INPUTS]; /* a dtype that input i is converted to, outside promotion; TP_NO_DTYPE: takes
                                          part */
    uint16_t loop_mask;                /* bit d: dtype d is taken (16-bit floats compute in float32, */
    bool moves_halves;                 /* but where the values are only moved) */
    uint16_t grain_shift;              /* cost: the CPU's grain is TP_GRAIN >> grain_shift */
    uint16_t nchoices;                 /* how many programs it has; 1: its parameters are numbers that are there */
    const tp_pointwise_param *params;
    const tp_program *programs; /* by class */
    const tp_loop_fn *loops;    /* the CPU's, by dtype; chosen at load */
    int64_t ncases;             /* operators that take its place for some numbers: x ** 2 */
    const struct tp_pointwise_case *cases;
} tp_pointwise;

typedef struct tp_pointwise_case {
    const tp_pointwise *op;
    double value;
    int input; /* which is this number */
} tp_pointwise_case;

/* ---- reductions ---- */

/* How the CPU folds: the functions that tensorpy/reduction_of.inc makes for one reduction and dtype. */
typedef struct tp_reduction {
    tp_dtype in, out;  /* what fold reads and finish writes; others are converted */
    int64_t size;      /* bytes of an accumulator, at most 64; alignment up to 16 */
    int64_t leaf;      /* the most elements that fold_runs takes into one accumulator: 0 is TP_REDUCE_LEAF */
    int64_t leaf_rows; /* the most rows that fold_rows takes into one accumulator: 0 is TP_REDUCE_LEAF */
    bool indexed;      /* `index` matters: only for one reduced dimension, or a contiguous tensor as a whole */
    void (*init)(void *acc, int64_t n);
    /* In both folds `stride` leads, in bytes, from what belongs to one accumulator to what belongs to the next, and
     * run_stride or row_stride to the next element of the same. index: the first element's number in the reduced space.
     */
    /* Folds n runs of `length` elements into n accumulators: all elements of the i-th run into the i-th. */
    void (*fold_runs)(void *acc, int64_t n, const char *in, int64_t stride, int64_t run_stride, int64_t length,
                      int64_t index);
    /* Folds rows of n elements into n accumulators: the i-th element of each row into the i-th. */
    void (*fold_rows)(void *acc, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                      int64_t index);
    /* Puts n accumulators each into another that came earlier. */
    void (*combine)(void *into, const void *from, int64_t n);
    /* Optional: whether no further element can change any of n accumulators. */
    bool (*settled)(const void *acc, int64_t n);
    /* Writes n contiguous results. count: how many elements each is of. `params` is the operator's own. */
    void (*finish)(void *out, const void *acc, int64_t n, int64_t count, const void *params);
} tp_reduction;

/* A row of a table of kernels: the functions that tensorpy/reduction_of.inc makes under a name. */
#define TP_REDUCTION_ROW(name, in_, out_, size_) \
    {.in = in_,                                  \
     .out = out_,                                \
     .size = size_,                              \
     .init = name##_init,                        \
     .fold_runs = name##_fold_runs,              \
     .fold_rows = name##_fold_rows,              \
     .combine = name##_combine,                  \
     .finish = name##_finish}

typedef enum {
    TP_REDUCE_DEFAULT,    /* the result has the input's dtype */
    TP_REDUCE_SUM,        /* the same, but int64 for integers and bool */
    TP_REDUCE_ALWAYS_BOOL /* the input's dtype computes, the result is bool */
} tp_reduce_promotion;

/* A reduction that the YAML gives as expressions. */
typedef struct tp_reduction_op {
    const char *name; /* "norm1", for messages */
    uint16_t number;  /* its program */
    uint8_t promotion;
    uint32_t dtypes;                                  /* bit d: an input of dtype d is taken */
    const tp_program (*programs)[TP_REDUCTION_PARTS]; /* by class */
    const tp_reduction *kernels;                      /* the CPU's, by the accumulator's dtype; chosen at load */
} tp_reduction_op;

/* ---- the table of what generated files call ---- */

/* The outputs of a structured kernel, while its meta function and its kernel run. */
typedef struct tp_meta tp_meta;
typedef int (*tensorpy_structured)(tp_meta *m, tp_value *args); /* either, from boxed arguments */

/* What generated files call (generated.h); it too only grows at its end. */
typedef struct tensorpy_generated {
    size_t size; /* of the table in the tensorpy that runs */

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
    /* op calls the variant `of`, in place or not, and copies; and as an Autograd kernel: of an in-place operator, which
     * is recorded as that, or of one with out=, which refuses to be recorded. */
    int (*variant)(tp_library *library, const char *op, const char *of);
    int (*record_variant)(tp_library *library, const char *op, const char *of);

    /* ---- backward ---- */
    tp_tensor *(*zeros_for_output)(const tp_record *r, int output);                   /* new */
    tp_tensor_seq *(*gradients_of_list)(const tp_record *r, tp_tensor *const *grads); /* new; zeros for those missing */
} tensorpy_generated;

#ifdef __cplusplus
}
#endif
#endif
