/* returns.h: how generated calls turn C results into Python objects. */
#pragma once

#include "python/common.h"
#include "return_types.h"

/* Generated: the struct sequences by name, in order; each is made when it is first asked for. */
typedef struct {
    const char *name; /* NULL: the end */
    PyTypeObject *(*type)(void);
} tp_py_named_type;
extern const tp_py_named_type tp_py_return_types[];
int tp_py_init_return_types(PyObject *m);
int tp_py_add_submodule(PyObject *m, const char *name, PyMethodDef *functions);
/* The functions of all tables into a submodule, or, name NULL, into m itself. */
int tp_py_add_functions(PyObject *m, const char *name, PyMethodDef *const *tables);

/* A factory's result, with requires_grad set. */
PyObject *tp_py_wrap_factory_steal(tp_tensor *t, bool requires_grad);
/* The status of a factory that wrote into `out`, which wants a gradient from then on if it is asked to. */
int tp_py_out_of_factory(int status, tp_tensor *out, bool requires_grad);
/* out= with several tensors: TypeError unless there are n. */
int tp_py_check_out_count(const tp_value *v, int n);
/* The out= tensors of a call: one, or a tuple (or the struct sequence `type`). */
PyObject *tp_py_return_outs(int status, int n, tp_tensor *const *outs, PyTypeObject *type);
/* A call's results of several types, taken over, as a tuple. */
PyObject *tp_py_return_values(int status, tp_value *results, int n);
/* A struct sequence that prints a result's parts on lines of their own. */
PyTypeObject *tp_py_new_return_type(PyStructSequence_Desc *desc);

#define TP_PY_RETURN_VALUE(ctype, call, convert) \
    do {                                         \
        ctype result;                            \
        if ((call) < 0) return tp_py_raise();    \
        return convert;                          \
    } while (0)
#define TP_PY_RETURN_VALUE_B(call) TP_PY_RETURN_VALUE(bool, call, PyBool_FromLong(result))
#define TP_PY_RETURN_VALUE_J(call) TP_PY_RETURN_VALUE(int64_t, call, PyLong_FromLongLong(result))
#define TP_PY_RETURN_VALUE_F(call) TP_PY_RETURN_VALUE(double, call, PyFloat_FromDouble(result))
#define TP_PY_RETURN_VALUE_S(call) TP_PY_RETURN_VALUE(tp_scalar, call, tp_py_from_scalar(&result))
#define TP_PY_RETURN_VALUE_D(call) TP_PY_RETURN_VALUE(tp_dtype, call, tp_py_dtype_object(result))
