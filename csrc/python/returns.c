/* returns.c: Python objects of C results, and the struct sequences of results with names. */
#include "python/returns.h"

#include "autograd/node.h"
#include "python/parse.h"

PyObject *tp_py_wrap_factory_steal(tp_tensor *t, bool requires_grad) {
    if (t && requires_grad && !tp_is_floating(t) && !tp_is_complex(t)) {
        tp_fail(TP_RuntimeError, "Only Tensors of floating point and complex dtype can require gradients, not %s",
                tp_dtype_names[t->dtype]);
        tp_release(t);
        t = NULL;
    }
    if (t && requires_grad && tp_set_requires_grad(t, true) < 0) {
        tp_release(t);
        t = NULL;
    }
    return tp_py_wrap_steal(t);
}

int tp_py_out_of_factory(int status, tp_tensor *out, bool requires_grad) {
    return status == 0 && requires_grad ? tp_set_requires_grad(out, true) : status;
}

int tp_py_check_out_count(const tp_value *v, int n) {
    if (v->tensors.size == n) return 0;
    PyErr_Format(PyExc_TypeError, "out= takes a tuple of %d tensors, not of %zd", n, (Py_ssize_t)v->tensors.size);
    return -1;
}

PyObject *tp_py_return_outs(int status, int n, tp_tensor *const *outs, PyTypeObject *type) {
    if (status < 0) return tp_py_raise();
    if (n == 1) return tp_py_wrap(outs[0]);
    tp_tensor *owned[TP_PY_MAX_PARAMS];
    for (int i = 0; i < n; i++) owned[i] = tp_retain(outs[i]);
    return tp_py_wrap_tuple_steal(owned, n, type);
}

/* "tensorpy.return_types.max(\nvalues=tensor([2]),\nindices=tensor([0]))", with the package's name of the moment */
static PyObject *return_type_repr(PyObject *o) {
    PyObject *names = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__match_args__");
    PyObject *text = names ? PyUnicode_FromFormat("%s%s(", tp_py_package, strchr(Py_TYPE(o)->tp_name, '.')) : NULL;
    for (Py_ssize_t i = 0; text && i < PyTuple_GET_SIZE(o); i++) {
        const char *separator = i + 1 < PyTuple_GET_SIZE(o) ? "," : ")";
        PyObject *part =
            PyUnicode_FromFormat("\n%U=%R%s", PyTuple_GET_ITEM(names, i), PyTuple_GET_ITEM(o, i), separator);
        PyUnicode_AppendAndDel(&text, part);
    }
    Py_XDECREF(names);
    return text;
}

/* The type of the package's name of the moment, which import under another name changes for those that are there. */
static int name_module(PyObject *type) {
    PyObject *module = PyUnicode_FromFormat("%s.return_types", tp_py_package);
    int status = module ? PyObject_SetAttrString(type, "__module__", module) : -1;
    Py_XDECREF(module);
    return status;
}

PyTypeObject *tp_py_new_return_type(PyStructSequence_Desc *desc) {
    PyTypeObject *type = PyStructSequence_NewType(desc);
    if (type) type->tp_repr = return_type_repr;
    if (type && name_module((PyObject *)type) < 0) Py_CLEAR(type);
    return type;
}

/* ---- the module return_types ---- */

static PyObject *names_of_types(void) {
    PyObject *names = PyList_New(0);
    for (const tp_py_named_type *t = tp_py_return_types; names && t->name; t++) {
        PyObject *name = PyUnicode_FromString(t->name);
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

/* Module.__dir__(), and its __all__. */
static PyObject *list_types(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return names_of_types();
}

/* Module.__getattr__(name), which is asked once for each: the type is the module's from then on. */
static PyObject *find_type(PyObject *self, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    if (strcmp(text, "__all__") == 0) return names_of_types();
    for (const tp_py_named_type *t = tp_py_return_types; t->name; t++)
        if (strcmp(t->name, text) == 0) {
            PyObject *type = (PyObject *)t->type();
            return type && PyObject_SetAttr(self, name, type) == 0 ? Py_NewRef(type) : NULL;
        }
    return PyErr_Format(PyExc_AttributeError, "module 'tensorpy.return_types' has no attribute '%U'", name);
}

int tp_py_init_return_types(PyObject *m) {
    static PyMethodDef functions[] = {
        {"__getattr__", find_type, METH_O, NULL},
        {"__dir__", list_types, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    return tp_py_add_submodule(m, "return_types", functions);
}
