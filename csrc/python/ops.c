/* ops.c: OpOverload: one operator as a callable object, at the cost of the plain function.
 *
 * tensorpy/ops.py gives them their places: tensorpy.ops.aten.add.Tensor. */
#include "python/ops.h"

#include <stddef.h>
#include <string.h>

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    const tp_py_function *function;
    const tp_op *op;
} py_overload;

static PyObject *overload_call(PyObject *o, PyObject *const *args, size_t nargs, PyObject *kwnames) {
    return tp_py_call(((py_overload *)o)->function, NULL, args, (Py_ssize_t)nargs, kwnames);
}

static PyObject *overload_repr(PyObject *o) {
    const tp_op_info *info = ((py_overload *)o)->op->info;
    return PyUnicode_FromFormat("<OpOverload(op='aten.%s', overload='%s')>", info->name,
                                info->overload[0] ? info->overload : "default");
}

#define OVERLOAD_GETTER(name, expression)                         \
    static PyObject *overload_##name(PyObject *o, void *unused) { \
        (void)unused;                                             \
        const tp_op_info *info = ((py_overload *)o)->op->info;    \
        return expression;                                        \
    }
OVERLOAD_GETTER(schema, PyUnicode_FromString(info->schema))
OVERLOAD_GETTER(name, PyUnicode_FromFormat(info->overload[0] ? "%s.%s" : "%s", info->name, info->overload))
OVERLOAD_GETTER(overload, PyUnicode_FromString(info->overload[0] ? info->overload : "default"))

static PyObject *overload_tags(PyObject *o, void *unused) {
    (void)unused;
    PyObject *list = PyList_New(0);
    for (const char *const *tag = ((py_overload *)o)->op->info->tags; list && *tag; tag++) {
        PyObject *text = PyUnicode_FromString(*tag);
        if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyGetSetDef getset[] = {
    {"_schema", overload_schema, NULL, "The operator's schema.", NULL},
    {"__name__", overload_name, NULL, "\"add.Tensor\".", NULL},
    {"_overloadname", overload_overload, NULL, "The overload's name, or \"default\".", NULL},
    {"tags", overload_tags, NULL, "The operator's tags.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject overload_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.OpOverload",
    .tp_basicsize = sizeof(py_overload),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "One operator with one signature.",
    .tp_vectorcall_offset = offsetof(py_overload, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = overload_repr,
    .tp_getset = getset,
};

/* _op_overload(name): the object of "add.Tensor". */
static PyObject *op_overload(PyObject *self, PyObject *arg) {
    (void)self;
    const char *name = PyUnicode_AsUTF8(arg);
    for (int64_t i = 0; name && i < tp_py_overload_count; i++) {
        if (strcmp(tp_py_overloads[i].name, name) != 0) continue;
        py_overload *o = PyObject_New(py_overload, &overload_type);
        if (!o) return NULL;
        *o = (py_overload){o->ob_base, overload_call, &tp_py_overloads[i], tp_find_op_qualified(name)};
        return (PyObject *)o;
    }
    return name ? PyErr_Format(PyExc_AttributeError, "there is no operator '%s'", name) : NULL;
}

static PyMethodDef functions[] = {{"_op_overload", op_overload, METH_O, NULL}, {NULL, NULL, 0, NULL}};

int tp_py_init_ops(PyObject *m) {
    if (PyModule_AddType(m, &overload_type) < 0) return -1;
    return PyModule_AddFunctions(m, functions);
}
