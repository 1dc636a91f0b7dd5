/* stream.c: streams, events and figures of memory of any device that has them (core/stream.h), as Python sees them:
 * tensorpy._C._streams, on which tensorpy.Stream and tensorpy.accelerator are written. */
#include "python/stream.h"

#include "core/stream.h"

#include "core/generator.h"
#include "plan/plan.h"
#include "python/generator.h"
#include "python/returns.h"

#define FUNCTION(name) static PyObject *name(PyObject *self TP_UNUSED, PyObject *arg TP_UNUSED)

/* A device with its index, and what it can do; NULL with the exception set. */
static const tp_device_ops *ops_of(PyObject *o, tp_device *d) {
    tp_device given;
    int ok = tp_py_to_device(o, &given);
    if (ok == 0) PyErr_Format(PyExc_TypeError, "this takes a device, not %s", Py_TYPE(o)->tp_name);
    if (ok <= 0 || tp_py_check(tp_device_resolve(given, d)) < 0) return NULL;
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)d->type);
    if (!ops) tp_py_raise();
    return ops;
}

static PyObject *lacks(tp_device d, const char *what) {
    return PyErr_Format(PyExc_NotImplementedError, "the device %s %s", tp_device_type_name((tp_device_type)d.type),
                        what);
}
static const tp_stream_ops *streams_of(PyObject *o, tp_device *d) {
    const tp_device_ops *ops = ops_of(o, d);
    if (ops && !ops->streams) lacks(*d, "has no streams");
    return ops ? ops->streams : NULL;
}
static const tp_memory_ops *memory_of(PyObject *o, tp_device *d) {
    const tp_device_ops *ops = ops_of(o, d);
    if (ops && !ops->memory) lacks(*d, "does not say how much memory it uses");
    return ops ? ops->memory : NULL;
}

FUNCTION(has_streams) {
    tp_device d;
    const tp_device_ops *ops = ops_of(arg, &d);
    return ops ? PyBool_FromLong(ops->streams != NULL) : NULL;
}

/* ---- streams ---- */

static PyObject *number_or_raise(int64_t stream) { return stream < 0 ? tp_py_raise() : PyLong_FromLongLong(stream); }

static PyObject *stream_new(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *device;
    int priority;
    tp_device d;
    if (!PyArg_ParseTuple(args, "Oi", &device, &priority)) return NULL;
    const tp_stream_ops *s = streams_of(device, &d);
    return s ? number_or_raise(s->make(d, priority)) : NULL;
}

FUNCTION(stream_current) {
    tp_device d;
    const tp_stream_ops *s = streams_of(arg, &d);
    return s ? number_or_raise(s->current(d)) : NULL;
}

/* (device, stream): a negative one is the current one. What a compiled function has noted comes before what happens to
 * streams. */
static const tp_stream_ops *stream_of(PyObject *args, tp_device *d, int64_t *stream) {
    PyObject *device;
    long long number;
    if (!PyArg_ParseTuple(args, "OL", &device, &number)) return NULL;
    const tp_stream_ops *s = streams_of(device, d);
    if (s && tp_region_break("a stream is named") < 0) return tp_py_raise(), NULL;
    *stream = s && number < 0 ? s->current(*d) : number;
    return s && *stream < 0 ? (tp_py_raise(), NULL) : s;
}

static PyObject *stream_set(PyObject *self TP_UNUSED, PyObject *args) {
    tp_device d;
    int64_t stream;
    const tp_stream_ops *s = stream_of(args, &d, &stream);
    if (!s || tp_py_check(s->set(d, stream)) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *stream_query(PyObject *self TP_UNUSED, PyObject *args) {
    tp_device d;
    int64_t stream;
    const tp_stream_ops *s = stream_of(args, &d, &stream);
    int done = s ? s->query(d, stream) : -1;
    return !s ? NULL : done < 0 ? tp_py_raise() : PyBool_FromLong(done);
}

static PyObject *stream_synchronize(PyObject *self TP_UNUSED, PyObject *args) {
    tp_device d;
    int64_t stream;
    const tp_stream_ops *s = stream_of(args, &d, &stream);
    if (!s || tp_py_check(s->synchronize(d, stream)) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- tensorpy.Stream ---- */

/* The attribute, or NULL without an exception where there is none. */
static PyObject *attribute(PyObject *o, const char *name) {
    PyObject *value = PyObject_GetAttrString(o, name);
    if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return value;
}

int tp_py_to_stream(PyObject *o, tp_stream *out) {
    PyObject *number = attribute(o, "stream_id"), *device = number ? attribute(o, "device") : NULL;
    int ok = device ? tp_py_to_device(device, &out->device) : PyErr_Occurred() ? -1 : 0;
    if (ok > 0) ok = tp_py_to_int(number, &out->id);
    Py_XDECREF(number);
    Py_XDECREF(device);
    return ok;
}

PyObject *tp_py_stream_object(tp_stream s) {
    if (s.device.type < 0) Py_RETURN_NONE;
    PyObject *module = PyImport_ImportModule("tensorpy.accelerator.streams");
    PyObject *type = module ? PyObject_GetAttrString(module, "Stream") : NULL;
    PyObject *device = type ? tp_py_device_object(s.device) : NULL;
    PyObject *o = device ? PyObject_CallMethod(type, "_of", "OL", device, (long long)s.id) : NULL;
    Py_XDECREF(device);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return o;
}

/* ---- events: capsules ---- */

#define EVENT "tensorpy.event"

typedef struct {
    const tp_stream_ops *ops;
    tp_device device;
    void *event;
} mark;

static void free_event(PyObject *capsule) {
    mark *m = PyCapsule_GetPointer(capsule, EVENT);
    m->ops->event_free(m->event);
    PyMem_Free(m);
}

static PyObject *event_new(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *device, *place;
    int timing;
    tp_device d;
    int64_t stream;
    if (!PyArg_ParseTuple(args, "O!p", &PyTuple_Type, &place, &timing)) return NULL;
    const tp_stream_ops *s = stream_of(place, &d, &stream);
    mark *m = s ? PyMem_Malloc(sizeof *m) : NULL;
    if (!m) return s ? PyErr_NoMemory() : NULL;
    *m = (mark){s, d, s->record(d, stream, timing)};
    if (!m->event) return PyMem_Free(m), tp_py_raise();
    device = PyCapsule_New(m, EVENT, free_event);
    if (!device) s->event_free(m->event), PyMem_Free(m);
    return device;
}

FUNCTION(event_query) {
    const mark *m = PyCapsule_GetPointer(arg, EVENT);
    int done = m ? m->ops->event_query(m->event) : -1;
    return !m ? NULL : done < 0 ? tp_py_raise() : PyBool_FromLong(done);
}

FUNCTION(event_synchronize) {
    const mark *m = PyCapsule_GetPointer(arg, EVENT);
    if (!m || tp_py_check(m->ops->event_synchronize(m->event)) < 0) return NULL;
    Py_RETURN_NONE;
}

/* A stream of another type of device is waited for by the host. */
static PyObject *event_hold(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *capsule, *place;
    tp_device d;
    int64_t stream;
    if (!PyArg_ParseTuple(args, "OO!", &capsule, &PyTuple_Type, &place)) return NULL;
    const mark *m = PyCapsule_GetPointer(capsule, EVENT);
    const tp_stream_ops *s = m ? stream_of(place, &d, &stream) : NULL;
    if (!s) return NULL;
    int status = d.type == m->device.type ? s->event_hold(m->event, d, stream) : m->ops->event_synchronize(m->event);
    if (tp_py_check(status) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *event_elapsed(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *a, *b;
    double milliseconds = 0;
    if (!PyArg_ParseTuple(args, "OO", &a, &b)) return NULL;
    const mark *from = PyCapsule_GetPointer(a, EVENT), *to = from ? PyCapsule_GetPointer(b, EVENT) : NULL;
    if (!to) return NULL;
    if (from->device.type != to->device.type)
        return PyErr_Format(PyExc_RuntimeError, "both events must be of one type of device");
    if (tp_py_check(from->ops->event_elapsed(from->event, to->event, &milliseconds)) < 0) return NULL;
    return PyFloat_FromDouble(milliseconds);
}

/* ---- figures ---- */

FUNCTION(memory_stats) {
    tp_device d;
    tensorpy_memory_stats s = {.size = sizeof s};
    const tp_memory_ops *m = memory_of(arg, &d);
    if (!m || tp_py_check(m->stats(d, &s)) < 0) return NULL;
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L}", "allocated_bytes.all.current", (long long)s.allocated,
                         "allocated_bytes.all.peak", (long long)s.peak_allocated, "reserved_bytes.all.current",
                         (long long)s.reserved, "reserved_bytes.all.peak", (long long)s.peak_reserved,
                         "allocation.all.current", (long long)s.blocks);
}

FUNCTION(reset_peaks) {
    tp_device d;
    const tp_memory_ops *m = memory_of(arg, &d);
    if (!m || tp_py_check(m->reset_peaks(d)) < 0) return NULL;
    Py_RETURN_NONE;
}

FUNCTION(empty_cache) {
    tp_device d;
    const tp_device_ops *ops = ops_of(arg, &d);
    if (!ops || (ops->memory && tp_py_check(ops->memory->empty_cache(d)) < 0)) return NULL;
    Py_RETURN_NONE;
}

FUNCTION(properties) {
    tp_device d;
    const tp_device_ops *ops = ops_of(arg, &d);
    tensorpy_device_properties p = {.size = sizeof p};
    if (!ops) return NULL;
    p.name = tp_device_type_name((tp_device_type)d.type);
    if (ops->properties && tp_py_check(ops->properties(d, &p)) < 0) return NULL;
    return Py_BuildValue("{s:s,s:L,s:L}", "name", p.name, "total_memory", (long long)p.total_memory,
                         "multi_processor_count", (long long)p.multi_processor_count);
}

/* A device's own generator. */
FUNCTION(generator) {
    tp_device d;
    if (!ops_of(arg, &d)) return NULL;
    tp_generator *g = tp_default_generator_borrow(d);
    return g ? tp_py_generator_object(g) : tp_py_raise();
}

static PyMethodDef functions[] = {
    {"has_streams", has_streams, METH_O, NULL},
    {"stream_new", stream_new, METH_VARARGS, NULL},
    {"stream_current", stream_current, METH_O, NULL},
    {"stream_set", stream_set, METH_VARARGS, NULL},
    {"stream_query", stream_query, METH_VARARGS, NULL},
    {"stream_synchronize", stream_synchronize, METH_VARARGS, NULL},
    {"event_new", event_new, METH_VARARGS, NULL},
    {"event_query", event_query, METH_O, NULL},
    {"event_synchronize", event_synchronize, METH_O, NULL},
    {"event_hold", event_hold, METH_VARARGS, NULL},
    {"event_elapsed", event_elapsed, METH_VARARGS, NULL},
    {"memory_stats", memory_stats, METH_O, NULL},
    {"reset_peaks", reset_peaks, METH_O, NULL},
    {"empty_cache", empty_cache, METH_O, NULL},
    {"properties", properties, METH_O, NULL},
    {"generator", generator, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_stream(PyObject *m) { return tp_py_add_submodule(m, "_streams", functions); }
