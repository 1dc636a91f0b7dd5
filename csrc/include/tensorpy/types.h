/* types.h: the values that tensorpy's tree and libraries from outside pass to each other: dtypes, devices, dispatch
 * keys, numbers, lists, and the boxed value that holds any of them.
 *
 * The one home of these types: the tree includes this file as a library does. Layouts and enumerators are part of the
 * binary interface, so lists only grow at their ends. */
#ifndef TENSORPY_TYPES_H
#define TENSORPY_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- dtypes ---- */

/* Two floats, the real part first; C's own type, in C++ too. */
__extension__ typedef float _Complex tp_complex64;
/* Two doubles likewise. */
__extension__ typedef double _Complex tp_complex128;

/* The dtypes that there are loops for, and the 16-bit floats: X(enumerator, name, C type, category). The order inside a
 * category is the order of width. The C type is that of memory: a bool is read as its byte, which a view of other
 * memory may have set to anything, and is true when it is not 0. `ScalarType` in a schema and `tensorpy.<name>` in
 * Python use the names. Since 1.4. */
#define TP_FORALL_COMPUTED_DTYPES(X)               \
    X(BOOL, bool, uint8_t, BOOLEAN)                \
    X(UINT8, uint8, uint8_t, UNSIGNED)             \
    X(UINT16, uint16, uint16_t, UNSIGNED)          \
    X(UINT32, uint32, uint32_t, UNSIGNED)          \
    X(UINT64, uint64, uint64_t, UNSIGNED)          \
    X(INT8, int8, int8_t, SIGNED)                  \
    X(INT16, int16, int16_t, SIGNED)               \
    X(INT32, int32, int32_t, SIGNED)               \
    X(INT64, int64, int64_t, SIGNED)               \
    X(FLOAT16, float16, tp_half, FLOATING)         \
    X(BFLOAT16, bfloat16, tp_bfloat, FLOATING)     \
    X(FLOAT32, float32, float, FLOATING)           \
    X(FLOAT64, float64, double, FLOATING)          \
    X(COMPLEX64, complex64, tp_complex64, COMPLEX) \
    X(COMPLEX128, complex128, tp_complex128, COMPLEX)

/* The dtypes that are formats of memory only (tensorpy/float8.h): their elements are moved as bytes of their size, and
 * converted to complex64 or float32 where something is computed. Since 1.4. */
#define TP_FORALL_STORED_DTYPES(X)                             \
    X(COMPLEX32, complex32, tp_complex32, COMPLEX)             \
    X(FLOAT8_E4M3FN, float8_e4m3fn, tp_e4m3fn, FLOATING)       \
    X(FLOAT8_E5M2, float8_e5m2, tp_e5m2, FLOATING)             \
    X(FLOAT8_E4M3FNUZ, float8_e4m3fnuz, tp_e4m3fnuz, FLOATING) \
    X(FLOAT8_E5M2FNUZ, float8_e5m2fnuz, tp_e5m2fnuz, FLOATING) \
    X(FLOAT8_E8M0FNU, float8_e8m0fnu, tp_e8m0fnu, FLOATING)

/* The dtypes of quantized tensors only, whose integers are a tensor of the C type (core/layout.h): no memory has them,
 * so no kernel is reached with them. Since 1.8; quint2x4 since 1.11. */
#define TP_FORALL_QUANTIZED_DTYPES(X)        \
    X(QUINT8, quint8, uint8_t, UNSIGNED)     \
    X(QINT8, qint8, int8_t, SIGNED)          \
    X(QINT32, qint32, int32_t, SIGNED)       \
    X(QUINT4X2, quint4x2, uint8_t, UNSIGNED) \
    X(QUINT2X4, quint2x4, uint8_t, UNSIGNED)

/* The only list of dtypes that memory has. */
#define TP_FORALL_DTYPES(X)      \
    TP_FORALL_COMPUTED_DTYPES(X) \
    TP_FORALL_STORED_DTYPES(X)

/* TP_FLOAT32 and its kin, in the order of the list. */
typedef enum {
#define TP_DTYPE_ENUM(id, name, ctype, category) TP_##id,
    TP_FORALL_DTYPES(TP_DTYPE_ENUM) TP_FORALL_QUANTIZED_DTYPES(TP_DTYPE_ENUM)
#undef TP_DTYPE_ENUM
        TP_NUM_DTYPES,
    TP_NO_DTYPE = -1 /* None of a `ScalarType?` */
} tp_dtype;

/* The kinds of dtypes, in the order of promotion. */
typedef enum { TP_BOOLEAN, TP_UNSIGNED, TP_SIGNED, TP_FLOATING, TP_COMPLEX } tp_category;

/* How a new tensor's dimensions lie in memory; TP_NO_FORMAT is None of a `MemoryFormat?`. */
typedef enum {
    TP_CONTIGUOUS_FORMAT,
    TP_PRESERVE_FORMAT,
    TP_CHANNELS_LAST,
    TP_CHANNELS_LAST_3D,
    TP_NO_FORMAT = -1
} tp_memory_format;

/* What a tensor's elements are kept as; TP_NO_LAYOUT is None of a `Layout?`. */
typedef enum {
    TP_STRIDED,
    TP_SPARSE_COO,
    TP_SPARSE_CSR,
    TP_SPARSE_CSC,
    TP_SPARSE_BSR,
    TP_SPARSE_BSC,
    TP_QUANTIZED,          /* one scale for all elements; `strided` to Python, as the next. Since 1.8 */
    TP_QUANTIZED_CHANNELS, /* a scale for each place along a dimension */
    TP_NESTED,             /* tensors of several sizes one after the other; `strided` to Python. Since 1.10 */
    TP_JAGGED,             /* the same, as `layout=tensorpy.jagged` shows it */
    TP_NUM_LAYOUTS,
    TP_NO_LAYOUT = -1
} tp_layout;

/* ---- devices ---- */

/* The only list of device types: X(enumerator, name, dispatch key). A device from outside takes a PrivateUse type, and
 * gives it its name. */
#define TP_FORALL_DEVICES(X)                   \
    X(CPU, cpu, CPU)                           \
    X(META, meta, Meta)                        \
    X(OPENCL, opencl, OpenCL)                  \
    X(PRIVATEUSE1, privateuseone, PrivateUse1) \
    X(PRIVATEUSE2, privateusetwo, PrivateUse2) \
    X(PRIVATEUSE3, privateusethree, PrivateUse3)

/* TP_DEVICE_CPU and its kin, in the order of the list. */
typedef enum {
#define TP_DEVICE_ENUM(id, name, key) TP_DEVICE_##id,
    TP_FORALL_DEVICES(TP_DEVICE_ENUM)
#undef TP_DEVICE_ENUM
        TP_NUM_DEVICES
} tp_device_type;

/* A device, as "mirror:1" names it. */
typedef struct {
    int8_t type;  /* tp_device_type; -1 is None of a `Device?` */
    int8_t index; /* -1: the current device of that type */
} tp_device;

/* ---- dispatch keys ---- */

/* X(name): the numbers by which libraries know dispatch keys. They are no priorities, which are tensorpy's own and may
 * change; new keys come at the end, as Conjugate, Negative, Layout, Deferred and LayoutNested did. */
#define TENSORPY_FORALL_KEYS(X) \
    X(CPU)                      \
    X(Meta)                     \
    X(OpenCL)                   \
    X(PrivateUse1)              \
    X(PrivateUse2)              \
    X(PrivateUse3)              \
    X(Mkldnn)                   \
    X(Sparse)                   \
    X(SparseCsr)                \
    X(Quantized)                \
    X(NestedTensor)             \
    X(ZeroTensor)               \
    X(Python)                   \
    X(BackendSelect)            \
    X(Functionalize)            \
    X(ADInplaceOrView)          \
    X(AutogradOther)            \
    X(AutogradCPU)              \
    X(AutogradMeta)             \
    X(AutogradOpenCL)           \
    X(AutogradPrivateUse1)      \
    X(AutogradPrivateUse2)      \
    X(AutogradPrivateUse3)      \
    X(Profiler)                 \
    X(Tracer)                   \
    X(ForwardAD)                \
    X(AutocastCPU)              \
    X(AutocastMeta)             \
    X(AutocastOpenCL)           \
    X(AutocastPrivateUse1)      \
    X(AutocastPrivateUse2)      \
    X(AutocastPrivateUse3)      \
    X(Batched)                  \
    X(PythonMode)               \
    X(Trace)                    \
    X(Conjugate)                \
    X(Negative)                 \
    X(Layout)                   \
    X(Deferred)                 \
    X(LayoutNested)

/* TENSORPY_KEY_CPU and its kin. */
typedef enum {
#define TENSORPY_KEY_ENUM(name) TENSORPY_KEY_##name,
    TENSORPY_FORALL_KEYS(TENSORPY_KEY_ENUM)
#undef TENSORPY_KEY_ENUM
        TENSORPY_NUM_KEYS
} tensorpy_key;

/* A set of dispatch keys. What its bits are only the tensorpy that runs can say: TP_BIT and TP_BELOW of library.h. */
typedef uint64_t tp_keyset;

/* ---- errors ---- */

/* The only list of errors: X(name), which is that of Python's exception. */
#define TP_FORALL_ERRORS(X)                                             \
    X(RuntimeError)                                                     \
    X(TypeError)                                                        \
    X(ValueError)                                                       \
    X(IndexError)                                                       \
    X(NotImplementedError)                                              \
    X(MemoryError)                                                      \
    X(OverflowError)                                                    \
    X(AssertionError)                                                   \
    X(BufferError)                                                      \
    X(PythonError) /* the interpreter's own exception is already set */ \
    X(LinAlgError) /* a matrix without the factorization or solution asked for; a RuntimeError; since 1.1 */

/* TP_RuntimeError and its kin: what `tp_fail` takes. */
typedef enum {
    TP_NoError,
#define TP_ERROR_ENUM(name) TP_##name,
    TP_FORALL_ERRORS(TP_ERROR_ENUM)
#undef TP_ERROR_ENUM
} tp_error_class;

/* ---- numbers and lists ---- */

/* Which member of a tp_scalar holds the number. */
typedef enum { TP_SCALAR_BOOL, TP_SCALAR_INT, TP_SCALAR_UINT, TP_SCALAR_FLOAT, TP_SCALAR_COMPLEX } tp_scalar_kind;

/* A Python number as it travels through the dispatcher (schema type `Scalar`), passed by const pointer; NULL is None of
 * a `Scalar?`. An int stays an exact 64-bit integer; a Python int between 2**63 and 2**64-1 is UINT. */
typedef struct {
    tp_scalar_kind kind; /* BOOL: b, INT: i, UINT: u, FLOAT: f, COMPLEX: c */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double f;
        tp_complex128 c;
    };
} tp_scalar;

/* A view of a storage, with sizes, strides and a dtype; counted (tp_retain, tp_release). */
typedef struct tp_tensor tp_tensor;
/* A block of memory on a device, which tensors share. */
typedef struct tp_storage tp_storage;
/* A generator of random numbers. */
typedef struct tp_generator tp_generator;
/* A result of type Tensor[] (tp_seq_new). */
typedef struct tp_tensor_seq tp_tensor_seq;
/* An operator, or one of its overloads: one object, which stays. */
typedef struct tp_op tp_op;

/* Lists are passed by value and borrowed; `size < 0` is None of an optional one. int[], SymInt[], int[2], int[]?: */
typedef struct {
    const int64_t *data; /* may be NULL where size is 0 or less */
    int64_t size;        /* how many */
} tp_ints;
/* float[], float[]?: */
typedef struct {
    const double *data; /* may be NULL where size is 0 or less */
    int64_t size;       /* how many */
} tp_floats;
/* bool[3]: */
typedef struct {
    const bool *data; /* may be NULL where size is 0 or less */
    int64_t size;     /* how many */
} tp_bools;
/* Scalar[]: */
typedef struct {
    const tp_scalar *data; /* may be NULL where size is 0 or less */
    int64_t size;          /* how many */
} tp_scalars;
/* Tensor[], Tensor?[]: */
typedef struct {
    tp_tensor *const *data; /* an element of a Tensor?[] may be NULL */
    int64_t size;           /* how many */
} tp_tensors;

/* int?, SymInt?: */
typedef struct {
    bool has;      /* false: None */
    int64_t value; /* meaningless for None */
} tp_opt_int;
/* float?: */
typedef struct {
    bool has;     /* false: None */
    double value; /* meaningless for None */
} tp_opt_float;
/* bool?: 0, 1, and -1 for None. */
typedef int8_t tp_opt_bool;

/* Stream: a queue of a device. Since 1.5. */
typedef struct {
    tp_device device; /* type < 0: None */
    int64_t id;       /* its number; 0 is the device's default stream */
} tp_stream;

/* What an operator with two results returns; all are NULL after an error. */
typedef struct {
    tp_tensor *v[2]; /* new */
} tp_tensor2;
/* With three results. */
typedef struct {
    tp_tensor *v[3]; /* new */
} tp_tensor3;
/* With four results. */
typedef struct {
    tp_tensor *v[4]; /* new */
} tp_tensor4;
/* With five results. */
typedef struct {
    tp_tensor *v[5]; /* new */
} tp_tensor5;

/* ---- the boxed value ---- */

/* Which member of a tp_value holds the argument or result, by the schema's type. */
typedef enum {
    TP_NONE,       /* none: None, or a result that is not there */
    TP_TENSOR,     /* .tensor; also an optional one, then NONE stands for absent */
    TP_TENSORS,    /* .tensors (argument) */
    TP_TENSOR_SEQ, /* .seq (result) */
    TP_SCALAR,     /* .scalar (argument) */
    TP_NUMBER,     /* .number (result: the number itself) */
    TP_INT,        /* .i */
    TP_FLOAT,      /* .f */
    TP_BOOL_,      /* .b */
    TP_STR,        /* .str */
    TP_INTS_,      /* .ints */
    TP_FLOATS,     /* .floats */
    TP_BOOLS,      /* .bools */
    TP_SCALARS,    /* .scalars */
    TP_DTYPE,      /* .i, a tp_dtype; likewise the next three */
    TP_LAYOUT,
    TP_MEMORY_FORMAT,
    TP_DEVICE,    /* .device */
    TP_GENERATOR, /* .generator */
    TP_STORAGE,   /* .storage */
    TP_STREAM,    /* .stream; since 1.5 */
} tp_tag;

/* Any argument or result of any operator, with its type. Inside an argument array it is borrowed; a result is new. */
typedef struct tp_value {
    tp_tag tag; /* says which of the others is meant */
    union {
        tp_tensor *tensor;
        tp_tensors tensors;
        tp_tensor_seq *seq;
        const tp_scalar *scalar;
        tp_scalar number;
        int64_t i;
        tp_dtype dtype; /* while a result is being written; read as `i` */
        double f;
        bool b;
        const char *str;
        tp_ints ints;
        tp_floats floats;
        tp_bools bools;
        tp_scalars scalars;
        tp_device device;
        tp_generator *generator;
        tp_storage *storage;
        tp_stream stream;
    };
} tp_value;

/* A kernel in the boxed convention. args: one value per schema argument, borrowed. results: one per schema return, new.
 * `ks` is the set of keys that led here; a layer passes `ks & TP_BELOW_...` on. Returns 0, or -1 with the error set and
 * no results. An operator whose returns are all aliases of arguments (in-place, out=) leaves results NONE. */
typedef int (*tp_boxed_fn)(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context);

/* An argument of a call whose tensors are to be on one device. Since 1.3. */
typedef struct {
    const char *name;        /* as in the schema */
    const tp_tensor *tensor; /* NULL: none, or a list */
    tp_tensors list;         /* of none, where it is one tensor */
} tp_device_argument;

#ifdef __cplusplus
}
#endif
#endif
