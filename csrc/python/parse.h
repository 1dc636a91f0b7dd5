/* parse.h: arguments of a Python call into boxed values: signature tables and one parser.
 *
 * The generator writes a tp_py_function per Python name: its signatures in the order in which they are tried, each with
 * its parameters, the operator's C function, and the function that calls it with parsed values. The parser fills in
 * `args->values` in the order of the parameters; lists and numbers live in the scratch space of tp_py_args, which
 * tp_py_args_free lets go. */
#pragma once

#include "python/common.h"

#define TP_PY_MAX_PARAMS 24
#define TP_PY_MAX_SIGNATURES 16
#define TP_PY_SCRATCH_INTS 32
#define TP_PY_SCRATCH_SCALARS 6

enum {
    TP_PARAM_OPTIONAL = 1, /* takes None */
    TP_PARAM_DEFAULT = 2,  /* may be left out */
    TP_PARAM_KEYWORD = 4,  /* keyword-only */
    TP_PARAM_OUT = 8,
};

typedef struct {
    const char *name;
    const char *type; /* as in messages: "Tensor", "tuple of ints" */
    uint8_t tag;      /* tp_tag to convert to */
    uint8_t flags;
    uint8_t size; /* int[2]: a single int is repeated; 0: any length, a single int is refused; 255: any length, int
                     taken as [int]. A dtype: whether it may be one of quantized tensors */
    const tp_value *value; /* the default, or NULL */
} tp_py_param;

typedef struct tp_py_args tp_py_args;
typedef struct tp_py_signature tp_py_signature;

struct tp_py_signature {
    PyObject *(*call)(tp_py_args *args, const tp_py_signature *signature); /* shared by signatures of its shape */
    tp_fn fn, out_fn; /* what it calls: tp_add_Tensor, and with out= tp_add_out; NULL */
    const tp_py_param *params;
    uint8_t nparams, npositional;
    uint8_t self_at;      /* the parameter that a method's object fills: not the first of where and polygamma */
    bool numbers;         /* numbers are taken as tensors, at the second attempt: mul(2, t), add(t, 2, out=o) */
    bool varargs;         /* the first parameter after self is a list of ints that may be spread: view(2, 3) */
    const char *op, *out; /* the overload, and its out= variant or NULL: "add.Tensor", "add.out" */
};

typedef struct {
    const char *name;
    const tp_py_signature *signatures;
    int nsignatures;
    const char *module; /* of _C: "_nn"; NULL: itself, or a method */
    const tp_op *op;    /* the overload that is called by its full name; NULL: a function or a method */
} tp_py_function;

struct tp_py_args {
    tp_value values[TP_PY_MAX_PARAMS];
    PyObject *self;     /* params[0]'s object (borrowed): what an in-place method returns */
    PyObject *out;      /* the object given as out= (borrowed), or NULL */
    PyTypeObject *kind; /* the most derived subclass of Tensor among the arguments; else tp_tls.asked: mostly NULL */
    bool numbers;       /* see tp_py_signature */
    bool stand_ins;     /* what has a __torch_function__ passes as anything: nothing is called */
    bool by_full_name;  /* of an overload: booleans are ints, numbers are booleans, and a set is a list of ints */
    tp_tensor *made[2]; /* from numbers; owned */
    int nmade, nints, nscalars;
    void *blocks;            /* heap scratch, a linked list */
    struct tp_py_held *held; /* items of lists, owned: they live in scratch memory */
    int64_t ints[TP_PY_SCRATCH_INTS];
    tp_scalar scalars[TP_PY_SCRATCH_SCALARS];
};

/* Generated: the functions of all modules, and the methods of Tensor; NULL-terminated. */
extern const tp_py_function *const tp_py_functions[], *const tp_py_methods[];

/* The signature that the arguments choose, with `a` filled in, which the caller frees; NULL and the exception set where
 * they fit none. */
const tp_py_signature *tp_py_select(const tp_py_function *f, tp_py_args *a, PyObject *self, PyObject *const *args,
                                    Py_ssize_t nargs, PyObject *kwnames);
/* Parses and calls. `self` is the object of a method call, NULL for a function. */
PyObject *tp_py_call(const tp_py_function *f, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *kwnames);
/* One object into a value of a parameter's type: 1 done, 0 another type, -1 raised. */
int tp_py_convert(tp_py_args *a, const tp_py_param *p, PyObject *o, tp_value *out);
void tp_py_args_init(tp_py_args *a);
void tp_py_args_free(tp_py_args *a);
/* Scratch memory that lives as long as the arguments; NULL and MemoryError raised. */
void *tp_py_scratch(tp_py_args *a, size_t size);

/* What generated calls return: self or out=, unless the status is an error. */
TP_INLINE PyObject *tp_py_return_object(int status, PyObject *o) { return status < 0 ? tp_py_raise() : Py_NewRef(o); }

/* The object of tensorpy.ops for an overload, new: ops.c, which stands above, sets it. */
extern PyObject *(*tp_py_object_of_overload)(const tp_op *op);
