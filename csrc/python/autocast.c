/* autocast.c: the state of autocast for tensorpy/amp. */
#include "autocast/autocast.h"

#include "python/common.h"
#include "python/returns.h"

static int device_type_of(PyObject *o, int *out) {
    tp_device d;
    int ok = tp_py_to_any_device(o, &d);
    if (ok == 0) PyErr_Format(PyExc_TypeError, "autocast: device_type must be a str, not %s", Py_TYPE(o)->tp_name);
    *out = d.type;
    return ok > 0 ? 0 : -1;
}

/* _autocast_get(device_type) -> (enabled, dtype, cache_enabled); of a device that is a name only: off, and stays so */
static PyObject *autocast_get(PyObject *self, PyObject *arg) {
    (void)self;
    int type;
    if (device_type_of(arg, &type) < 0) return NULL;
    if (type >= TP_NUM_DEVICES) return Py_BuildValue("ONO", Py_False, tp_py_dtype_object(TP_FLOAT16), Py_True);
    return Py_BuildValue("NNN", PyBool_FromLong(tp_autocast_enabled(type)), tp_py_dtype_object(tp_autocast_dtype(type)),
                         PyBool_FromLong(tp_autocast_cache_enabled()));
}

/* _autocast_available(device_type): whether it has an autocast layer; a device that is a name only has none. */
static PyObject *autocast_available(PyObject *self TP_UNUSED, PyObject *arg) {
    int type;
    return device_type_of(arg, &type) < 0 ? NULL : PyBool_FromLong(type < TP_NUM_DEVICES);
}

/* _autocast_set(device_type, enabled, dtype, cache_enabled) */
static PyObject *autocast_set(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *where, *dtype_object;
    int enabled, cache, type;
    tp_dtype dtype;
    if (!PyArg_ParseTuple(args, "OpOp", &where, &enabled, &dtype_object, &cache)) return NULL;
    if (device_type_of(where, &type) < 0) return NULL;
    if (tp_py_to_dtype(dtype_object, &dtype) <= 0)
        return PyErr_Format(PyExc_TypeError, "autocast: dtype must be a tensorpy.dtype");
    if (type >= TP_NUM_DEVICES) Py_RETURN_NONE;
    if (tp_py_check(tp_autocast_set_dtype(type, dtype)) < 0) return NULL;
    tp_autocast_set_enabled(type, enabled);
    tp_autocast_set_cache_enabled(cache);
    Py_RETURN_NONE;
}

static PyObject *autocast_enter(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLong(tp_autocast_enter());
}
static PyObject *autocast_leave(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLong(tp_autocast_leave());
}
static PyObject *clear_autocast_cache(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    tp_autocast_clear_cache();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_autocast_get", autocast_get, METH_O, NULL},
    {"_autocast_available", autocast_available, METH_O, NULL},
    {"_autocast_set", autocast_set, METH_VARARGS, NULL},
    {"_autocast_enter", autocast_enter, METH_NOARGS, NULL},
    {"_autocast_leave", autocast_leave, METH_NOARGS, NULL},
    {"clear_autocast_cache", clear_autocast_cache, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_autocast(PyObject *m) { return tp_py_add_functions(m, NULL, (PyMethodDef *const[]){functions, NULL}); }
