/* generator.c: the Generator object and the process's default generator. */
#include "python/generator.h"
#include "python/help.h"

#include "python/python_key.h"
#include "core/memory.h"
#include "plan/plan.h"

static PyObject *wrap_generator_steal(tp_generator *g) {
    if (!g) return tp_py_raise();
    tp_py_generator *o = PyObject_New(tp_py_generator, &tp_py_generator_type);
    if (!o) tp_generator_release(g);
    else o->generator = g;
    return (PyObject *)o;
}
PyObject *tp_py_generator_object(tp_generator *g) { return wrap_generator_steal(tp_generator_retain(g)); }
#define GENERATOR(o) (((tp_py_generator *)(o))->generator)

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"device", NULL};
    (void)type;
    PyObject *where = NULL;
    tp_device device = TP_CPU;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", names, &where)) return NULL;
    int ok = where && where != Py_None ? tp_py_to_device(where, &device) : 1;
    if (ok == 0) PyErr_Format(PyExc_TypeError, "Generator() takes a device, not %s", Py_TYPE(where)->tp_name);
    return ok > 0 ? wrap_generator_steal(tp_generator_new(device)) : NULL;
}
static void generator_dealloc(PyObject *o) {
    tp_generator_release(GENERATOR(o));
    PyObject_Free(o);
}

static int seeds(void) {
    tp_region_spoil("a generator is seeded");
    return tp_py_tell_recorder("a generator is seeded");
}

/* Any int: reduced modulo 2**64, as PyTorch maps negative seeds. */
static PyObject *generator_manual_seed(PyObject *o, PyObject *seed) {
    PyObject *index = PyNumber_Index(seed);
    if (!index) return NULL;
    int overflow;
    unsigned long long value = (unsigned long long)PyLong_AsLongLongAndOverflow(index, &overflow);
    if (overflow > 0) value = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (overflow < 0 || PyErr_Occurred())
        return PyErr_Format(PyExc_ValueError,
                            "Overflow when unpacking long long: the seed %.60R is not within -2**63 and 2**64 - 1",
                            seed);
    if (seeds() < 0) return NULL;
    tp_generator_manual_seed(GENERATOR(o), value);
    return Py_NewRef(o);
}
static PyObject *generator_seed(PyObject *o, PyObject *unused) {
    (void)unused;
    if (seeds() < 0) return NULL;
    return PyLong_FromUnsignedLongLong(tp_generator_seed(GENERATOR(o)));
}
static PyObject *generator_initial_seed(PyObject *o, PyObject *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(tp_generator_initial_seed(GENERATOR(o)));
}
static PyObject *generator_get_state(PyObject *o, PyObject *unused) {
    (void)unused;
    tp_tensor *serial;
    if (tp_generator_serial(GENERATOR(o), GENERATOR(o)->device, &serial) < 0) return tp_py_raise();
    tp_tensor *t = tp_new_empty(TP_INTS(serial ? serial->numel : TP_GENERATOR_STATE_BYTES), TP_UINT8, TP_CPU);
    if (t && serial) memcpy(tp_data(t), tp_data(serial), (size_t)serial->numel);
    else if (t) tp_generator_get_state(GENERATOR(o), tp_data(t));
    return tp_py_wrap_steal(t);
}
static PyObject *generator_set_state(PyObject *o, PyObject *state) {
    tp_tensor *t = tp_py_is_tensor(state) ? tp_py_tensor_borrow(state) : NULL;
    tp_tensor *serial;
    if (tp_generator_serial(GENERATOR(o), GENERATOR(o)->device, &serial) < 0) return tp_py_raise();
    const int64_t size = serial ? serial->numel : TP_GENERATOR_STATE_BYTES;
    if (!t || t->device.type != TP_DEVICE_CPU || t->dtype != TP_UINT8 || !tp_is_contiguous(t) || !tp_has_memory(t))
        return PyErr_Format(
            PyExc_TypeError,
            "RNG state must be a torch.ByteTensor, as get_state() gives it: %lld contiguous uint8 on the CPU",
            (long long)size);
    if (t->numel != size)
        return PyErr_Format(PyExc_RuntimeError, "RNG state is wrong size: expected %lld bytes, got %lld",
                            (long long)size, (long long)t->numel);
    if (tp_py_check(tp_settle(t->storage)) < 0) return NULL;
    if (seeds() < 0) return NULL;
    return tp_py_check(tp_generator_set_state(GENERATOR(o), tp_data(t), (size_t)size)) < 0 ? NULL : Py_NewRef(o);
}
static PyObject *generator_clone(PyObject *o, PyObject *unused) {
    (void)unused;
    return wrap_generator_steal(tp_generator_clone(GENERATOR(o)));
}
/* For pickle and copy: made again for its device, then set to its state. */
static PyObject *generator_reduce(PyObject *o, PyObject *unused) {
    PyObject *device = tp_py_device_object(GENERATOR(o)->device), *state = generator_get_state(o, unused);
    if (device && state) return Py_BuildValue("O(N)N", Py_TYPE(o), device, state);
    Py_XDECREF(device);
    Py_XDECREF(state);
    return NULL;
}
static PyObject *generator_device(PyObject *o, void *unused) {
    (void)unused;
    return tp_py_device_object(GENERATOR(o)->device);
}

static PyMethodDef methods[] = {
    {"manual_seed", generator_manual_seed, METH_O,
     "manual_seed($self, seed, /)\n--\n\nStarts the sequence that belongs to the seed.\n\nReturns: the generator."},
    {"seed", generator_seed, METH_NOARGS,
     "seed($self, /)\n--\n\nStarts from a seed that the system gives, and returns it.\n\nReturns: int."},
    {"initial_seed", generator_initial_seed, METH_NOARGS,
     "initial_seed($self, /)\n--\n\nThe seed in use.\n\nReturns: int."},
    {"get_state", generator_get_state, METH_NOARGS,
     "get_state($self, /)\n--\n\nSeed and position, as bytes.\n\nReturns: a tensor of uint8, (16,)."},
    {"set_state", generator_set_state, METH_O,
     "set_state($self, state, /)\n--\n\nGoes back to a state.\n\nReturns: the generator."},
    {"clone_state", generator_clone, METH_NOARGS,
     "clone_state($self, /)\n--\n\nA generator of its own in the same state.\n\nReturns: a Generator."},
    {"__reduce__", generator_reduce, METH_NOARGS, NULL},
    {"__setstate__", generator_set_state, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {{"device", generator_device, NULL, "The device that it draws for.", NULL},
                               {NULL, NULL, NULL, NULL, NULL}};
PyTypeObject tp_py_generator_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.Generator",
    .tp_basicsize = sizeof(tp_py_generator),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = generator_new,
    .tp_dealloc = generator_dealloc,
    .tp_methods = methods,
    .tp_getset = getset,
};

static PyObject *seed_all(PyObject *self, PyObject *seed) {
    (void)self;
    unsigned long long value = PyLong_AsUnsignedLongLong(seed);
    if (PyErr_Occurred()) return NULL;
    if (seeds() < 0) return NULL;
    tp_manual_seed(value);
    Py_RETURN_NONE;
}

/* _default_generator(device): the one that a device draws from when it is given none. */
static PyObject *default_generator(PyObject *self, PyObject *where) {
    (void)self;
    tp_device device;
    int ok = tp_py_to_device(where, &device);
    if (ok == 0) PyErr_Format(PyExc_TypeError, "_default_generator() takes a device");
    if (ok <= 0) return NULL;
    tp_generator *g = tp_default_generator_borrow(device);
    return g ? wrap_generator_steal(tp_generator_retain(g)) : tp_py_raise();
}

static PyObject *be_serial(PyObject *self, PyObject *on) {
    (void)self;
    int yes = PyObject_IsTrue(on);
    if (yes < 0) return NULL;
    tp_generators_be_serial(yes);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_draw_serially", be_serial, METH_O, NULL}, /* the CPU's generators: PyTorch's numbers */
    {"_default_generator", default_generator, METH_O, NULL},
    {"_seed_all", seed_all, METH_O, NULL}, /* the default generators of all devices, those to come included */
    {NULL, NULL, 0, NULL},
};

int tp_py_init_generator(PyObject *m) {
    if (PyModule_AddFunctions(m, functions) < 0) return -1;
    tp_py_help_type(&tp_py_generator_type);
    if (PyModule_AddType(m, &tp_py_generator_type) < 0) return -1;
    PyObject *standard = wrap_generator_steal(tp_generator_retain(tp_default_generator_borrow(TP_CPU)));
    return standard ? PyModule_AddObject(m, "default_generator", standard) : -1;
}
