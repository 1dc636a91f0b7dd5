/* functionalize.c: the levels of func.functionalize, for tensorpy/func/functionalize.py. */
#include "functionalize/functionalize.h"
#include "python/common.h"

#include "python/returns.h"

/* open(copies_views, number=0): the level's number; the levels are closed in the opposite order. */
static PyObject *open_level(PyObject *self TP_UNUSED, PyObject *args) {
    int copies;
    unsigned int number = 0;
    if (!PyArg_ParseTuple(args, "p|I", &copies, &number)) return NULL;
    number = tp_functional_open(copies, number);
    return number ? PyLong_FromUnsignedLong(number) : tp_py_raise();
}

static PyObject *close_level(PyObject *self TP_UNUSED, PyObject *number) {
    unsigned long n = PyLong_AsUnsignedLong(number);
    if (PyErr_Occurred() || tp_py_check(tp_functional_close((uint32_t)n)) < 0) return NULL;
    Py_RETURN_NONE;
}

static tp_tensor *take_tensor(PyObject *o, bool stand_in, const char *function) {
    tp_tensor *t = tp_py_is_tensor(o) ? tp_py_tensor_borrow(o) : NULL;
    if (t && (!stand_in || tp_is_functional(t))) return t;
    PyErr_Format(PyExc_TypeError, "%s() takes %s", function, stand_in ? "a stand-in" : "a Tensor");
    return NULL;
}

/* wrap(tensor): a stand-in of the innermost level, with a memory of its own. */
static PyObject *wrap(PyObject *self TP_UNUSED, PyObject *o) {
    tp_tensor *t = take_tensor(o, false, "wrap");
    return t ? tp_py_wrap_steal(tp_functional_wrap(t)) : NULL;
}

/* mark(stand-in): it stands for an argument. */
static PyObject *mark(PyObject *self TP_UNUSED, PyObject *o) {
    tp_tensor *t = take_tensor(o, true, "mark");
    if (!t) return NULL;
    tp_functional_mark(t);
    Py_RETURN_NONE;
}

/* value(stand-in) */
static PyObject *value(PyObject *self TP_UNUSED, PyObject *o) {
    tp_tensor *t = take_tensor(o, true, "value");
    return t ? tp_py_wrap_steal(tp_functional_value(t)) : NULL;
}

/* is_of(object, number): whether it is a stand-in of the level; of any, if the number is 0. */
static PyObject *is_of(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *o;
    unsigned long number;
    if (!PyArg_ParseTuple(args, "Ok", &o, &number)) return NULL;
    const tp_tensor *t = tp_py_is_tensor(o) ? tp_py_tensor_borrow(o) : NULL;
    return PyBool_FromLong(t && (number ? tp_functional_is_of(t, (uint32_t)number) : tp_is_functional(t)));
}

/* write_back(argument, its stand-in) */
static PyObject *write_back(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *argument, *stand_in;
    tp_tensor *a, *t;
    if (!PyArg_ParseTuple(args, "OO", &argument, &stand_in) || !(a = take_tensor(argument, false, "write_back")) ||
        !(t = take_tensor(stand_in, true, "write_back")))
        return NULL;
    if (tp_py_check(tp_functional_write_back(a, t)) < 0) return NULL;
    Py_RETURN_NONE;
}

/* as_view(argument, its stand-in, result): the view of the argument that the result stands for, or None. */
static PyObject *as_view(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *argument, *stand_in, *result;
    tp_tensor *a, *t, *r;
    if (!PyArg_ParseTuple(args, "OOO", &argument, &stand_in, &result) ||
        !(a = take_tensor(argument, false, "as_view")) || !(t = take_tensor(stand_in, true, "as_view")) ||
        !(r = take_tensor(result, true, "as_view")))
        return NULL;
    tp_tensor *view = tp_functional_as_view(a, t, r);
    if (!view && tp_error_pending() == TP_NoError) Py_RETURN_NONE;
    return tp_py_wrap_steal(view);
}

static PyMethodDef functions[] = {
    {"open", open_level, METH_VARARGS, NULL},
    {"close", close_level, METH_O, NULL},
    {"wrap", wrap, METH_O, NULL},
    {"mark", mark, METH_O, NULL},
    {"value", value, METH_O, NULL},
    {"is_of", is_of, METH_VARARGS, NULL},
    {"write_back", write_back, METH_VARARGS, NULL},
    {"as_view", as_view, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_functionalize(PyObject *m) { return tp_py_add_submodule(m, "_functionalize", functions); }
