/* expressions.h: pointwise operators and reductions as the YAML gives them: their expressions as programs (program.h),
 * and the compiled loops that the CPU runs in their place.
 *
 * The generator writes these structs (python -m tensorpy.codegen), for tensorpy and for libraries from outside. */
#ifndef TENSORPY_EXPRESSIONS_H
#define TENSORPY_EXPRESSIONS_H

#include "tensorpy/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the CPU's capabilities ---- */

/* Loops are compiled once per capability, with -DTP_CAPABILITY=<name> and the matching -m flags, and what they export
 * is named TP_CAP(stem); which ones run is chosen at load. */
typedef enum { TP_CAPABILITY_BASELINE, TP_CAPABILITY_AVX2, TP_CAPABILITY_AVX512, TP_NUM_CAPABILITIES } tp_capability;

#if defined(__x86_64__)
#define TP_HAVE_X86_CAPABILITIES 1 /* objects of AVX2 or AVX-512 are part of the build */
#endif

/* What CPUs with AVX-512, with AVX2 and without it run. A build that stays on its machine leaves out the objects that
 * this CPU does not need, and names those beside them. */
#ifdef TP_WITHOUT_AVX512
#define TP_AVX512(stem) stem##_avx2
#else
#define TP_AVX512(stem) stem##_avx512
#endif
#ifdef TP_WITHOUT_AVX2
#define TP_AVX2(stem) stem##_avx512
#else
#define TP_AVX2(stem) stem##_avx2
#endif
#ifdef TP_WITHOUT_BASELINE
#define TP_BASELINE(stem) TP_AVX2(stem)
#else
#define TP_BASELINE(stem) stem##_baseline
#endif

#ifdef TP_CAPABILITY
#define TP_CAP_PASTE(stem, capability) stem##_##capability
#define TP_CAP_EXPAND(stem, capability) TP_CAP_PASTE(stem, capability)
#define TP_CAP(stem) TP_CAP_EXPAND(stem, TP_CAPABILITY)
#endif

/* The classes of dtypes, for each of which an operator may have a program of its own. */
typedef enum { TP_CLASS_BOOL, TP_CLASS_UINT, TP_CLASS_SINT, TP_CLASS_FLOAT, TP_CLASS_COMPLEX, TP_NUM_CLASSES } tp_class;

/* ---- pointwise operators ---- */

/* An operand: a tensor, or a number that takes part in promotion as a 0-dimensional wrapped number would. */
typedef struct {
    tp_tensor *tensor;       /* borrowed; NULL if a number */
    const tp_scalar *number; /* NULL if a tensor */
} tp_operand;

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

/* What `check:` of an entry names: 0, or -1 and the error set. `params` are the operator's other arguments. */
typedef int (*tp_pointwise_check)(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);

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

#ifdef __cplusplus
}
#endif
#endif
