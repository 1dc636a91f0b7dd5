/* types.c: dtype, device, memory_format, layout and Size objects, and conversions of Python values. */
#include "python/common.h"
#include "prim/transfer.h"
#include "python/help.h"
#include "batched/batched.h"
#include "core/layout.h"
#include "core/memory.h"
#include "Functions.h"
#include "python/python_key.h"

#include <math.h>
#include <string.h>

/* ---- dtype ---- */

static tp_py_dtype *dtype_objects[TP_NUM_DTYPES];

PyObject *tp_py_dtype_object(tp_dtype d) { return Py_NewRef((PyObject *)dtype_objects[d]); }

const char *tp_py_package = "tensorpy";

static PyObject *dtype_repr(PyObject *o) {
    return PyUnicode_FromFormat("%s.%s", tp_py_package, tp_dtype_names[((tp_py_dtype *)o)->dtype]);
}
static PyObject *dtype_reduce(PyObject *o, PyObject *unused) {
    (void)unused;
    return PyUnicode_FromString(tp_dtype_names[((tp_py_dtype *)o)->dtype]);
}

#define DTYPE_GETTER(name, expression)                         \
    static PyObject *dtype_##name(PyObject *o, void *unused) { \
        (void)unused;                                          \
        tp_dtype d = ((tp_py_dtype *)o)->dtype;                \
        return expression;                                     \
    }
DTYPE_GETTER(is_floating_point, PyBool_FromLong(tp_is_floating_dtype(d)))
DTYPE_GETTER(is_complex, PyBool_FromLong(tp_is_complex_dtype(d)))
DTYPE_GETTER(is_signed, tp_is_quantized_dtype(d)
                            ? PyErr_Format(PyExc_RuntimeError, "is_signed is not supported for quantized dtypes")
                            : PyBool_FromLong(tp_is_signed_dtype(d)))
DTYPE_GETTER(itemsize, PyLong_FromLongLong(tp_itemsize(d)))
DTYPE_GETTER(name, PyUnicode_FromString(tp_dtype_names[d]))

static PyObject *dtype_to_real(PyObject *o, PyObject *unused) {
    (void)unused;
    return tp_py_dtype_object(tp_to_real_dtype(((tp_py_dtype *)o)->dtype));
}
static PyObject *dtype_to_complex(PyObject *o, PyObject *unused) {
    (void)unused;
    tp_dtype d = ((tp_py_dtype *)o)->dtype;
    if (tp_is_float8_dtype(d) || !(tp_is_floating_dtype(d) || tp_is_complex_dtype(d)))
        return PyErr_Format(PyExc_RuntimeError, "Unknown Complex ScalarType for %s", tp_scalar_type_name(d));
    return tp_py_dtype_object(tp_to_complex_dtype(d));
}

static PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating_point, NULL, NULL, NULL},
    {"is_complex", dtype_is_complex, NULL, NULL, NULL},
    {"is_signed", dtype_is_signed, NULL, NULL, NULL},
    {"itemsize", dtype_itemsize, NULL, NULL, NULL},
    {"name", dtype_name, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {"to_real", dtype_to_real, METH_NOARGS, "The dtype of the parts of a complex number.\n\nReturns: a dtype."},
    {"to_complex", dtype_to_complex, METH_NOARGS,
     "The complex dtype whose parts have this dtype.\n\nReturns: a dtype."},
    {NULL, NULL, 0, NULL},
};
PyTypeObject tp_py_dtype_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.dtype",
    .tp_basicsize = sizeof(tp_py_dtype),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_repr = dtype_repr,
    .tp_getset = dtype_getset,
    .tp_methods = dtype_methods,
};

int tp_py_to_dtype(PyObject *o, tp_dtype *out) {
    int found = tp_py_to_any_dtype(o, out);
    if (tp_unlikely(found > 0 && tp_is_quantized_dtype(*out))) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s is a dtype of quantized tensors, which quantize_per_tensor and its kin make; it is not taken "
                     "here",
                     tp_dtype_names[*out]);
        return -1;
    }
    return found;
}

int tp_py_to_any_dtype(PyObject *o, tp_dtype *out) {
    if (Py_IS_TYPE(o, &tp_py_dtype_type)) *out = ((tp_py_dtype *)o)->dtype;
    else if (o == (PyObject *)&PyFloat_Type) *out = TP_FLOAT64;
    else if (o == (PyObject *)&PyLong_Type) *out = TP_INT64;
    else if (o == (PyObject *)&PyBool_Type) *out = TP_BOOL;
    else if (o == (PyObject *)&PyComplex_Type) *out = TP_COMPLEX128;
    else return 0;
    return 1;
}

/* ---- device ---- */

PyObject *tp_py_device_object(tp_device d) {
    tp_py_device *o = PyObject_New(tp_py_device, &tp_py_device_type);
    if (o) o->device = d;
    return (PyObject *)o;
}

/* A number is an index of the accelerator, whichever device that is. 1, or -1 with an error. */
static int accelerator_at(PyObject *index, tp_device *out) {
    long i = PyLong_AsLong(index);
    if (i < 0 || i > INT8_MAX) {
        if (i < 0 && !PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "Device index must not be negative");
        else PyErr_Format(PyExc_RuntimeError, "device index %R is out of range", index);
        return -1;
    }
    PyObject *module = PyImport_ImportModule("tensorpy.accelerator.devices");
    PyObject *found = module ? PyObject_CallMethod(module, "resolve", "O", index) : NULL;
    int ok = found ? tp_py_to_any_device(found, out) : -1;
    Py_XDECREF(found);
    Py_XDECREF(module);
    return ok;
}

int tp_py_to_any_device(PyObject *o, tp_device *out) {
    if (Py_IS_TYPE(o, &tp_py_device_type)) {
        *out = ((tp_py_device *)o)->device;
        return 1;
    }
    if (PyLong_CheckExact(o)) return accelerator_at(o, out);
    if (!PyUnicode_Check(o)) return 0;
    const char *text = PyUnicode_AsUTF8(o);
    return text && tp_py_check(tp_device_parse(text, out)) == 0 ? 1 : -1;
}

int tp_py_to_device(PyObject *o, tp_device *out) {
    int ok = tp_py_to_any_device(o, out);
    if (tp_likely(ok <= 0 || out->type < TP_NUM_DEVICES)) return ok;
    tp_device_get_ops((tp_device_type)out->type); /* sets the error */
    tp_py_raise();
    return -1;
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"type", "index", NULL};
    PyObject *what, *index = Py_None;
    tp_device d;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", names, &what, &index)) return NULL;
    (void)type;
    int ok = tp_py_to_any_device(what, &d);
    if (ok == 0) PyErr_Format(PyExc_TypeError, "device() takes a name or a device, not %s", Py_TYPE(what)->tp_name);
    if (ok <= 0) return NULL;
    if (index != Py_None) {
        if (d.index >= 0)
            return PyErr_Format(PyExc_RuntimeError, "the device name holds an index already; leave out index=");
        long i = PyLong_AsLong(index);
        if (i == -1 && PyErr_Occurred()) return NULL;
        if (i < 0) return PyErr_Format(PyExc_RuntimeError, "Device index must not be negative");
        if (i > 127) return PyErr_Format(PyExc_RuntimeError, "device index %ld is out of range", i);
        d.index = (int8_t)i;
    }
    return tp_py_device_object(d);
}

static PyObject *device_str(PyObject *o) {
    char text[40];
    return PyUnicode_FromString(tp_device_print(((tp_py_device *)o)->device, text));
}
static PyObject *device_repr(PyObject *o) {
    tp_device d = ((tp_py_device *)o)->device;
    return d.index < 0 ? PyUnicode_FromFormat("device(type='%s')", tp_device_type_name(d.type))
                       : PyUnicode_FromFormat("device(type='%s', index=%d)", tp_device_type_name(d.type), d.index);
}
static Py_hash_t device_hash(PyObject *o) {
    tp_device d = ((tp_py_device *)o)->device;
    return (Py_hash_t)d.type * 1000 + d.index + 2;
}
static PyObject *device_compare(PyObject *a, PyObject *b, int op) {
    if (!Py_IS_TYPE(b, &tp_py_device_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    bool equal = tp_device_equal(((tp_py_device *)a)->device, ((tp_py_device *)b)->device);
    return PyBool_FromLong(equal == (op == Py_EQ));
}
static PyObject *device_type(PyObject *o, void *unused) {
    (void)unused;
    return PyUnicode_FromString(tp_device_type_name(((tp_py_device *)o)->device.type));
}
static PyObject *device_index(PyObject *o, void *unused) {
    (void)unused;
    int index = ((tp_py_device *)o)->device.index;
    return index < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(index);
}
static PyObject *device_reduce(PyObject *o, PyObject *unused) {
    (void)unused;
    PyObject *text = device_str(o);
    return text ? Py_BuildValue("O(N)", &tp_py_device_type, text) : NULL;
}
/* `with device("mirror:1"):` makes it this thread's default; what was before waits on a stack of the thread. */
#define DEEPEST 64
static __thread tp_device outer_devices[DEEPEST];
static __thread int device_depth;

static PyObject *device_enter(PyObject *o, PyObject *unused TP_UNUSED) {
    tp_device d;
    if (tp_py_check(tp_device_resolve(((tp_py_device *)o)->device, &d)) < 0) return NULL;
    if (device_depth == DEEPEST)
        return PyErr_Format(PyExc_RuntimeError, "more than %d `with device(...)` inside each other", DEEPEST);
    outer_devices[device_depth++] = tp_swap_scoped_device(((tp_py_device *)o)->device);
    return Py_NewRef(o);
}
static PyObject *device_exit(PyObject *o TP_UNUSED, PyObject *unused TP_UNUSED) {
    if (device_depth == 0) return PyErr_Format(PyExc_RuntimeError, "this thread is inside no `with device(...)`");
    tp_swap_scoped_device(outer_devices[--device_depth]);
    Py_RETURN_NONE;
}

static PyGetSetDef device_getset[] = {
    {"type", device_type, NULL, "\"cpu\", \"meta\", ...", NULL},
    {"index", device_index, NULL, "The number among devices of the type, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
    {"__enter__", device_enter, METH_NOARGS, NULL},
    {"__exit__", device_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
PyTypeObject tp_py_device_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.device",
    .tp_basicsize = sizeof(tp_py_device),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = device_new,
    .tp_repr = device_repr,
    .tp_str = device_str,
    .tp_hash = device_hash,
    .tp_richcompare = device_compare,
    .tp_getset = device_getset,
    .tp_methods = device_methods,
};

/* ---- memory formats and layouts ---- */

static PyObject *enum_repr(PyObject *o) {
    return PyUnicode_FromFormat("%s.%s", tp_py_package, ((tp_py_enum *)o)->name);
}
static PyObject *enum_reduce(PyObject *o, PyObject *unused) {
    (void)unused;
    return PyUnicode_FromString(((tp_py_enum *)o)->name);
}
static PyMethodDef enum_methods[] = {{"__reduce__", enum_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

#define ENUM_TYPE(variable, type_name)                                  \
    PyTypeObject variable = {                                           \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy." type_name, \
        .tp_basicsize = sizeof(tp_py_enum),                             \
        .tp_flags = Py_TPFLAGS_DEFAULT,                                 \
        .tp_repr = enum_repr,                                           \
        .tp_methods = enum_methods,                                     \
    }
ENUM_TYPE(tp_py_memory_format_type, "memory_format");
ENUM_TYPE(tp_py_layout_type, "layout");

static const char *const memory_format_names[] = {"contiguous_format", "preserve_format", "channels_last",
                                                  "channels_last_3d"};
static tp_py_enum *memory_formats[4], *layouts[TP_NUM_LAYOUTS];

PyObject *tp_py_memory_format_object(tp_memory_format f) { return Py_NewRef((PyObject *)memory_formats[f]); }
PyObject *tp_py_layout_object(tp_layout l) { return Py_NewRef((PyObject *)layouts[l]); }

static int add_enum(PyObject *m, PyTypeObject *type, int value, const char *name, tp_py_enum **slot) {
    *slot = PyObject_New(tp_py_enum, type);
    if (!*slot) return -1;
    (*slot)->value = value;
    (*slot)->name = name;
    return PyModule_AddObjectRef(m, name, (PyObject *)*slot);
}

/* ---- Size ---- */

static PyObject *size_repr(PyObject *o) {
    PyObject *list = PySequence_List(o);
    PyObject *text = list ? PyUnicode_FromFormat("%s.Size(%R)", tp_py_package, list) : NULL;
    Py_XDECREF(list);
    return text;
}

/* A tuple's result as a Size. */
static PyObject *as_size(PyObject *tuple) {
    if (!tuple || !PyTuple_Check(tuple)) return tuple;
    PyObject *args = PyTuple_Pack(1, tuple);
    Py_DECREF(tuple);
    PyObject *size = args ? PyTuple_Type.tp_new(&tp_py_size_type, args, NULL) : NULL;
    Py_XDECREF(args);
    return size;
}
static PyObject *size_concat(PyObject *a, PyObject *b) { return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b)); }
/* A Size and a tuple on either side; the number's slot is asked before the sequence's, on the right as well. */
static PyObject *size_add(PyObject *a, PyObject *b) {
    if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
    return size_concat(a, b);
}
static PyObject *size_repeat(PyObject *a, Py_ssize_t n) {
    return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}
static PyObject *size_subscript(PyObject *a, PyObject *key) {
    PyObject *item = PyTuple_Type.tp_as_mapping->mp_subscript(a, key);
    return PySlice_Check(key) ? as_size(item) : item;
}
static PyObject *size_numel(PyObject *o, PyObject *unused) {
    (void)unused;
    PyObject *n = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; n && i < PyTuple_GET_SIZE(o); i++)
        Py_SETREF(n, PyNumber_Multiply(n, PyTuple_GET_ITEM(o, i)));
    return n;
}
static PyObject *size_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *size = PyTuple_Type.tp_new(type, args, kwargs);
    for (Py_ssize_t i = 0; size && i < PyTuple_GET_SIZE(size); i++) {
        PyObject *item = PyTuple_GET_ITEM(size, i);
        PyObject *whole = PyLong_CheckExact(item) || tp_py_is_symbolic(item) ? Py_NewRef(item) : NULL;
        if (!whole && PyIndex_Check(item)) whole = PyNumber_Index(item);
        if (!whole && !PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "tensorpy.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                         Py_TYPE(item)->tp_name);
        if (!whole) Py_CLEAR(size);
        else PyTuple_SET_ITEM(size, i, whole), Py_DECREF(item);
    }
    return size;
}
static PyNumberMethods size_number = {.nb_add = size_add};
static PySequenceMethods size_sequence = {.sq_concat = size_concat, .sq_repeat = size_repeat};
static PyMappingMethods size_mapping = {.mp_subscript = size_subscript};
static PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The product of the sizes.\n\nReturns: int."},
                                     {NULL, NULL, 0, NULL}};
PyTypeObject tp_py_size_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.Size",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_TUPLE_SUBCLASS,
    .tp_new = size_new,
    .tp_repr = size_repr,
    .tp_as_number = &size_number,
    .tp_as_sequence = &size_sequence,
    .tp_as_mapping = &size_mapping,
    .tp_methods = size_methods,
};

static PyObject *fill_tuple(PyObject *tuple, tp_ints v) {
    for (int64_t i = 0; tuple && i < v.size; i++) {
        PyObject *item = PyLong_FromLongLong(v.data[i]);
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}
PyObject *tp_py_ints_tuple(tp_ints v) { return fill_tuple(PyTuple_New(v.size), v); }
PyObject *tp_py_size(tp_ints v) { return fill_tuple(tp_py_size_type.tp_alloc(&tp_py_size_type, v.size), v); }

/* ---- numbers ---- */

static PyObject *symbolic; /* the class of numbers that are expressions of sizes, of tensorpy/_package/symbols.py */

PyObject *tp_py_set_symbolic(PyObject *self TP_UNUSED, PyObject *type) {
    if (!PyType_Check(type) || !PyObject_HasAttrString(type, "_passed"))
        return PyErr_Format(PyExc_TypeError, "a class with a method _passed is expected");
    Py_XSETREF(symbolic, Py_NewRef(type));
    Py_RETURN_NONE;
}

bool tp_py_is_symbolic(PyObject *o) { return symbolic && PyObject_TypeCheck(o, (PyTypeObject *)symbolic); }

PyObject *tp_py_symbolic_passed(PyObject *o) { return PyObject_CallMethod(o, "_passed", NULL); }

static int too_large(PyObject *o) {
    PyErr_Clear();
    PyErr_Format(PyExc_OverflowError, "int %.60R is too large for 64 bits", o);
    return -1;
}

static int long_to_scalar(PyObject *o, tp_scalar *out) {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (value == -1 && PyErr_Occurred()) return -1;
    *out = (tp_scalar){.kind = TP_SCALAR_INT, .i = value};
    if (overflow < 0) return too_large(o);
    if (overflow > 0) {
        *out = (tp_scalar){.kind = TP_SCALAR_UINT, .u = PyLong_AsUnsignedLongLong(o)};
        if (PyErr_Occurred()) return too_large(o);
    }
    return 1;
}

static int tensor_to_scalar(tp_tensor *t, tp_scalar *out) {
    if (t->ndim != 0 || t->numel != 1 || t->device.type != TP_DEVICE_CPU) return 0;
    if (tp_check_unbatched(t, "a number") < 0) return tp_py_check(-1);
    if (tp_unlikely(tp_read_is_seen(t))) return tp_py_check(tp_item(t, out)) < 0 ? -1 : 1;
    if (tp_settle_to_read(t->storage) < 0) return tp_py_check(-1);
    *out = tp_scalar_load(tp_data(t), (tp_dtype)t->dtype);
    return 1;
}

int tp_py_to_scalar(PyObject *o, tp_scalar *out) {
    if (PyFloat_Check(o)) {
        *out = (tp_scalar){.kind = TP_SCALAR_FLOAT, .f = PyFloat_AS_DOUBLE(o)};
        return 1;
    }
    if (PyBool_Check(o)) {
        *out = (tp_scalar){.kind = TP_SCALAR_BOOL, .b = o == Py_True};
        return 1;
    }
    if (PyLong_Check(o)) return long_to_scalar(o, out);
    if (PyComplex_Check(o)) {
        Py_complex c = PyComplex_AsCComplex(o);
        *out = (tp_scalar){.kind = TP_SCALAR_COMPLEX, .c = CMPLX(c.real, c.imag)};
        return 1;
    }
    if (tp_py_is_tensor(o)) return tensor_to_scalar(tp_py_tensor_borrow(o), out);
    if (tp_py_is_symbolic(o)) {
        PyObject *passed = tp_py_symbolic_passed(o);
        int ok = passed ? tp_py_to_scalar(passed, out) : -1;
        Py_XDECREF(passed);
        return ok;
    }
    if (strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) != 0 || PySequence_Check(o)) return 0;
    PyObject *item = PyObject_CallMethod(o, "item", NULL); /* a NumPy scalar */
    int ok = item && (PyFloat_Check(item) || PyLong_Check(item) || PyComplex_Check(item)) ? tp_py_to_scalar(item, out)
                                                                                          : (item ? 0 : -1);
    Py_XDECREF(item);
    return ok;
}

int tp_py_to_int(PyObject *o, int64_t *out) {
    if (PyLong_Check(o)) {
        int overflow;
        *out = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (!overflow) return 1;
        PyErr_Format(PyExc_ValueError, "Overflow: the int %.60R does not fit 64 bits", o);
        return -1;
    }
    if (tp_py_is_tensor(o)) {
        tp_tensor *t = tp_py_tensor_borrow(o);
        if (t->numel != 1 || tp_dtype_categories[t->dtype] > TP_SIGNED || t->device.type != TP_DEVICE_CPU) return 0;
        if (tp_check_unbatched(t, "an int") < 0) return tp_py_check(-1);
        tp_scalar s;
        if (tp_settle_to_read(t->storage) < 0) return tp_py_check(-1);
        if (tp_likely(!tp_read_is_seen(t))) s = tp_scalar_load(tp_data(t), (tp_dtype)t->dtype);
        else if (tp_item(t, &s) < 0) return tp_py_check(-1);
        *out = tp_scalar_int(&s);
        return 1;
    }
    if (!PyIndex_Check(o) || PyFloat_Check(o)) return 0;
    PyObject *index = tp_py_is_symbolic(o) ? tp_py_symbolic_passed(o) : PyNumber_Index(o);
    if (!index) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
        PyErr_Clear();
        return 0;
    }
    int ok = tp_py_to_int(index, out);
    Py_DECREF(index);
    return ok;
}

/* ---- init ---- */

static const char *const dtype_aliases[][2] = {
    {"half", "float16"}, {"float", "float32"},   {"double", "float64"},   {"short", "int16"},        {"int", "int32"},
    {"long", "int64"},   {"chalf", "complex32"}, {"cfloat", "complex64"}, {"cdouble", "complex128"},
};

int tp_py_init_types(PyObject *m) {
    tp_py_size_type.tp_base = &PyTuple_Type;
    PyTypeObject *types[] = {&tp_py_dtype_type, &tp_py_device_type, &tp_py_memory_format_type, &tp_py_layout_type,
                             &tp_py_size_type};
    for (int i = 0; i < TP_COUNTOF(types); i++) {
        tp_py_help_type(types[i]);
        if (PyModule_AddType(m, types[i]) < 0) return -1;
    }
    for (int d = 0; d < TP_NUM_DTYPES; d++) {
        dtype_objects[d] = PyObject_New(tp_py_dtype, &tp_py_dtype_type);
        if (!dtype_objects[d]) return -1;
        dtype_objects[d]->dtype = (tp_dtype)d;
        if (PyModule_AddObjectRef(m, tp_dtype_names[d], (PyObject *)dtype_objects[d]) < 0) return -1;
    }
    for (int i = 0; i < TP_COUNTOF(dtype_aliases); i++) {
        PyObject *o = PyObject_GetAttrString(m, dtype_aliases[i][1]);
        if (!o || PyModule_AddObject(m, dtype_aliases[i][0], o) < 0) return -1;
    }
    for (int i = 0; i < 4; i++)
        if (add_enum(m, &tp_py_memory_format_type, i, memory_format_names[i], &memory_formats[i]) < 0) return -1;
    for (int i = 0; i < TP_NUM_LAYOUTS; i++)
        if (tp_layouts[i].quantized || i == TP_NESTED) layouts[i] = layouts[TP_STRIDED];
        else if (add_enum(m, &tp_py_layout_type, i, tp_layouts[i].name, &layouts[i]) < 0) return -1;
    return 0;
}
