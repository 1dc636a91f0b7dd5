/* forward.c: levels and tangents for tensorpy/autograd/forward_ad.py and tensorpy/func/. Tensors are physical here. */
#include "python/common.h"

#include "Functions.h"
#include "autograd/tangent.h"
#include "forward/forward.h"

/* _forward_open(): the level's number; the levels are closed in the opposite order. */
static PyObject *forward_open(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    uint32_t number = tp_forward_open();
    return number ? PyLong_FromUnsignedLong(number) : tp_py_raise();
}

static PyObject *forward_close(PyObject *self TP_UNUSED, PyObject *number) {
    unsigned long n = PyLong_AsUnsignedLong(number);
    if (PyErr_Occurred() || tp_py_check(tp_forward_close((uint32_t)n)) < 0) return NULL;
    Py_RETURN_NONE;
}

/* _forward_levels(): the numbers of those that are open, the outermost first. */
static PyObject *forward_levels(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    int n = tp_forward_count();
    PyObject *levels = PyTuple_New(n);
    for (int i = 0; levels && i < n; i++) {
        PyObject *number = PyLong_FromUnsignedLong(tp_forward_number(i));
        if (number) PyTuple_SET_ITEM(levels, i, number);
        else Py_CLEAR(levels);
    }
    return levels;
}

/* _forward_show(n): the outermost n levels are in sight; how many there were. */
static PyObject *forward_show(PyObject *self TP_UNUSED, PyObject *arg) {
    long n = PyLong_AsLong(arg);
    if (PyErr_Occurred()) return NULL;
    if (n < 0 || n > tp_forward_count()) return PyErr_Format(PyExc_ValueError, "there are no %ld levels", n);
    return PyLong_FromLong(tp_forward_show((int)n));
}

/* _forward_enable(on): whether tangents are computed in this thread; what was said before. */
static PyObject *forward_enable(PyObject *self TP_UNUSED, PyObject *arg) {
    int on = PyObject_IsTrue(arg);
    return on < 0 ? NULL : PyBool_FromLong(tp_forward_enable(on));
}

static PyObject *forward_enabled(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    return PyBool_FromLong(!tp_tls.forward_disabled);
}

static int take_tensor(PyObject *o, const char *function, tp_tensor **out) {
    if (!tp_py_is_tensor(o)) return PyErr_Format(PyExc_TypeError, "%s() takes a Tensor", function), -1;
    *out = tp_py_tensor_borrow(o);
    return 0;
}

static int place_of(unsigned long number) {
    for (int i = 0; i < tp_forward_count(); i++)
        if (tp_forward_number(i) == number) return i;
    PyErr_Format(PyExc_RuntimeError, "forward mode: the level %lu has ended, or is another thread's", number);
    return -1;
}

/* ---- dual tensors ---- */

/* _make_dual(primal, tangent, number) */
static PyObject *py_make_dual(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *a, *b;
    tp_tensor *primal, *tangent;
    unsigned long number;
    if (!PyArg_ParseTuple(args, "OOk", &a, &b, &number) || take_tensor(a, "_make_dual", &primal) < 0 ||
        take_tensor(b, "_make_dual", &tangent) < 0)
        return NULL;
    int place = place_of(number);
    if (place < 0) return NULL;
    int before = tp_forward_show(place);
    tp_tensor *dual = tp_make_dual(primal, tangent, (uint32_t)number);
    tp_forward_show(before);
    return tp_py_wrap_steal(dual);
}

static int parse_tensor_and_number(PyObject *args, const char *function, tp_tensor **t, unsigned long *number,
                                   int *place) {
    PyObject *o;
    if (!PyArg_ParseTuple(args, "Ok", &o, number) || take_tensor(o, function, t) < 0) return -1;
    return (*place = place_of(*number)) < 0 ? -1 : 0;
}

/* _tangent(tensor, number): None for a constant. */
static PyObject *py_tangent(PyObject *self TP_UNUSED, PyObject *args) {
    tp_tensor *t;
    unsigned long number;
    int place;
    if (parse_tensor_and_number(args, "_tangent", &t, &number, &place) < 0) return NULL;
    tp_tangent_of found;
    int before = tp_forward_show(place);
    int status = tp_find_tangent(t, (uint32_t)number, &found);
    tp_forward_show(before);
    if (status < 0) return tp_py_raise();
    if (!found.tangent) Py_RETURN_NONE;
    return tp_py_wrap_steal(found.tangent);
}

/* _primal(tensor, number): a view that is a constant at the level. */
static PyObject *py_primal(PyObject *self TP_UNUSED, PyObject *args) {
    tp_tensor *t;
    unsigned long number;
    int place;
    if (parse_tensor_and_number(args, "_primal", &t, &number, &place) < 0) return NULL;
    int before = tp_forward_show(place);
    tp_tensor *primal = tp_primal(t, (uint32_t)number);
    tp_forward_show(before);
    return tp_py_wrap_steal(primal);
}

/* _set_tangent(tensor, tangent, number, written): of an output of a Function. */
static PyObject *py_set_tangent(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *a, *b;
    tp_tensor *t, *tangent = NULL;
    unsigned long number;
    int written;
    if (!PyArg_ParseTuple(args, "OOkp", &a, &b, &number, &written) || take_tensor(a, "_set_tangent", &t) < 0 ||
        (b != Py_None && take_tensor(b, "_set_tangent", &tangent) < 0))
        return NULL;
    int place = place_of(number);
    if (place < 0) return NULL;
    int before = tp_forward_show(place);
    tp_autoref *fit = tangent ? tp_fit_tangent(t, tangent) : NULL;
    int status = tangent && !fit ? -1
                 : written       ? tp_write_tangent(t, (uint32_t)number, fit)
                                 : tp_put_tangent(t, (uint32_t)number, fit);
    tp_forward_show(before);
    if (tp_py_check(status) < 0) return NULL;
    Py_RETURN_NONE;
}

/* _detached_dual(tensor): without history, and with its tangents. */
static PyObject *py_detached_dual(PyObject *self TP_UNUSED, PyObject *o) {
    tp_tensor *t;
    return take_tensor(o, "_detached_dual", &t) < 0 ? NULL : tp_py_wrap_steal(tp_detached_dual(t));
}

static PyMethodDef functions[] = {
    {"_forward_open", forward_open, METH_NOARGS, NULL},
    {"_forward_close", forward_close, METH_O, NULL},
    {"_forward_levels", forward_levels, METH_NOARGS, NULL},
    {"_forward_show", forward_show, METH_O, NULL},
    {"_forward_enable", forward_enable, METH_O, NULL},
    {"_forward_enabled", forward_enabled, METH_NOARGS, NULL},
    {"_make_dual", py_make_dual, METH_VARARGS, NULL},
    {"_tangent", py_tangent, METH_VARARGS, NULL},
    {"_primal", py_primal, METH_VARARGS, NULL},
    {"_set_tangent", py_set_tangent, METH_VARARGS, NULL},
    {"_detached_dual", py_detached_dual, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_forward(PyObject *m) { return PyModule_AddFunctions(m, functions); }
