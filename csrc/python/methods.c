/* methods.c: the methods of Tensor that no operator stands behind: sizes, conversions, printing. */
#include "python/methods.h"
#include "prim/transfer.h"

#include "conjugate/conjugate.h"
#include "core/layout.h"
#include "core/determinism.h"

#include "Functions.h"
#include "autograd/node.h"
#include "batched/batched.h"
#include "functionalize/functionalize.h"
#include "iter/iter.h"
#include "python/arguments.h"
#include "python/overrides.h"
#include "python/python_key.h"
#include "core/memory.h"
#include "plan/plan.h"

#include <string.h>

#define TENSOR(o) tp_py_tensor_borrow(o)
#define METHOD(name) TP_PY_METHOD(py_##name, #name)
#define FAST_METHOD(name) TP_PY_FAST_METHOD(py_##name, #name)

/* ---- sizes and the like ---- */

METHOD(dim) { return PyLong_FromLong(TENSOR(self)->ndim); }
METHOD(numel) {
    int64_t n = TENSOR(self)->numel;
    if (tp_unlikely(tp_is_nested(TENSOR(self))) && tp_numel(TENSOR(self), &n) < 0) return tp_py_raise();
    return PyLong_FromLongLong(n);
}
METHOD(element_size) { return PyLong_FromLongLong(tp_itemsize((tp_dtype)TENSOR(self)->dtype)); }
METHOD(storage_offset) {
    tp_autoref *t = tp_memory_of(TENSOR(self));
    return t ? PyLong_FromLongLong(tp_storage_offset(t)) : tp_py_raise();
}
METHOD(is_floating_point) { return PyBool_FromLong(tp_is_floating(TENSOR(self))); }
METHOD(is_complex) { return PyBool_FromLong(tp_is_complex(TENSOR(self))); }
METHOD(is_signed) { return PyBool_FromLong(tp_is_signed_dtype((tp_dtype)TENSOR(self)->dtype)); }
METHOD(data_ptr) {
    if (tp_py_refuse_traced(self, "data_ptr()") < 0) return NULL;
    tp_autoref *t = tp_memory_of(TENSOR(self));
    if (!t) return tp_py_raise();
    if (tp_check_unbatched(t, "data_ptr()") < 0 || tp_check_address(t->storage, "data_ptr()") < 0) return tp_py_raise();
    if (tp_layout_of(t) != TP_STRIDED)
        return PyErr_Format(PyExc_RuntimeError,
                            "Cannot access data pointer of Tensor that doesn't have storage: its layout is %s",
                            tp_layouts[tp_layout_of(t)].name);
    return PyLong_FromUnsignedLongLong(t->storage->data && t->numel ? (uintptr_t)tp_data(t) : 0);
}
METHOD(get_device) { return PyLong_FromLong(TENSOR(self)->device.index); }
METHOD(is_inference) { return PyBool_FromLong(TENSOR(self)->flags & TP_FLAG_INFERENCE); }

static PyObject *nested_geometry_steal(const char *function, PyObject *self, PyObject *dim) {
    PyObject *module = PyImport_ImportModule("tensorpy._tensor.nested");
    PyObject *made = module ? PyObject_CallMethod(module, function, dim ? "OO" : "O", self, dim) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(dim);
    return made;
}

/* The sizes of a nested tensor, or one; a `dim` that is stolen, or NULL for all. */
PyObject *tp_py_nested_size_steal(PyObject *self, PyObject *dim) { return nested_geometry_steal("size_of", self, dim); }

/* size(dim=None) and stride(dim=None): all as a tuple, or one. */
static PyObject *geometry(const tp_py_arguments *arguments, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames, bool strides) {
    PyObject *v[1];
    const tp_tensor *t = TENSOR(self);
    int64_t dim;
    if (tp_py_take_arguments(arguments, args, nargs, kwnames, v) < 0) return NULL;
    if (strides && tp_layout_of(t) == TP_JAGGED) {
        Py_XINCREF(v[0]);
        return nested_geometry_steal("stride_of", self, v[0]);
    }
    if (strides && !tp_is_quantized(t) && tp_layout_of(t) != TP_STRIDED)
        return PyErr_Format(PyExc_RuntimeError, "stride(): tensors of the layout %s do not have strides",
                            tp_layouts[tp_layout_of(t)].name);
    bool all = !v[0] || v[0] == Py_None;
    if (all && tp_unlikely(tp_is_nested(t))) return tp_py_nested_size_steal(self, NULL);
    if (all) return strides ? tp_py_ints_tuple(tp_strides(t)) : tp_py_size(tp_sizes(t));
    if (PyBool_Check(v[0]))
        return PyErr_Format(PyExc_TypeError, "%s(): argument 'dim' (position 1) must be int, not bool",
                            arguments->function);
    if (tp_py_take_int(arguments->function, "dim", v[0], &dim) < 0) return NULL;
    if (t->ndim == 0)
        return PyErr_Format(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions",
                            (long long)dim);
    dim = tp_wrap_dim(dim, t->ndim);
    if (dim >= 0 && tp_unlikely(tp_is_nested(t))) return tp_py_nested_size_steal(self, PyLong_FromLongLong(dim));
    return dim < 0 ? tp_py_raise() : PyLong_FromLongLong(strides ? t->strides[dim] : t->sizes[dim]);
}
static const char *const dim_names[] = {"dim", NULL};
FAST_METHOD(size) {
    static const tp_py_arguments arguments = {"size", dim_names, 1, 0};
    return geometry(&arguments, self, args, nargs, kwnames, false);
}
FAST_METHOD(stride) {
    static const tp_py_arguments arguments = {"stride", dim_names, 1, 0};
    return geometry(&arguments, self, args, nargs, kwnames, true);
}

static int take_memory_format(const char *function, PyObject *o, tp_memory_format *out) {
    if (!o || o == Py_None) return 0;
    if (!Py_IS_TYPE(o, &tp_py_memory_format_type)) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'memory_format' must be tensorpy.memory_format, not %s", function,
                     Py_TYPE(o)->tp_name);
        return -1;
    }
    *out = (tp_memory_format)((tp_py_enum *)o)->value;
    return 0;
}

static const char *const format_names[] = {"memory_format", NULL};
FAST_METHOD(is_contiguous) {
    static const tp_py_arguments arguments = {"is_contiguous", format_names, 0, 0};
    PyObject *v[1];
    tp_memory_format format = TP_CONTIGUOUS_FORMAT;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0 ||
        take_memory_format("is_contiguous", v[0], &format) < 0)
        return NULL;
    if (format == TP_PRESERVE_FORMAT) format = TP_CONTIGUOUS_FORMAT;
    bool answer = tp_is_contiguous_in(TENSOR(self), format);
    if (tp_unlikely(tp_is_nested(TENSOR(self))) && tp_sym_is_contiguous(TENSOR(self), format, &answer) < 0)
        return tp_py_raise();
    return PyBool_FromLong(answer);
}

/* ---- other dtypes and devices ---- */

static PyObject *convert(PyObject *self, const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                         tp_dtype dtype) {
    const tp_py_arguments arguments = {name, format_names, 1, 0};
    PyObject *v[1];
    tp_memory_format format = TP_NO_FORMAT;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0 || take_memory_format(name, v[0], &format) < 0)
        return NULL;
    return tp_py_like_steal(self, tp_py_wrap_steal(tp_to_dtype(TENSOR(self), dtype, false, false, format)));
}
#define CONVERSION(name, dtype) \
    TP_PY_FAST_METHOD(py_to_##name, #name) { return convert(self, #name, args, nargs, kwnames, dtype); }
CONVERSION(float, TP_FLOAT32)
CONVERSION(double, TP_FLOAT64)
CONVERSION(half, TP_FLOAT16)
CONVERSION(bfloat16, TP_BFLOAT16)
CONVERSION(int, TP_INT32)
CONVERSION(long, TP_INT64)
CONVERSION(short, TP_INT16)
CONVERSION(char, TP_INT8)
CONVERSION(byte, TP_UINT8)
CONVERSION(bool, TP_BOOL)
CONVERSION(cfloat, TP_COMPLEX64)
CONVERSION(cdouble, TP_COMPLEX128)

FAST_METHOD(cpu) {
    static const tp_py_arguments arguments = {"cpu", format_names, 1, 0};
    PyObject *v[1];
    tp_memory_format format = TP_NO_FORMAT;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0 || take_memory_format("cpu", v[0], &format) < 0)
        return NULL;
    tp_tensor *t = TENSOR(self);
    return tp_py_like_steal(self, tp_py_wrap_steal(tp_to_device(t, TP_CPU, (tp_dtype)t->dtype, false, false, format)));
}

/* "tensorpy.DoubleTensor"; whatever stands before the last dot is not looked at. */
static int parse_type_name(PyObject *o, tp_dtype *out) {
    const char *text = PyUnicode_AsUTF8(o), *dot = text ? strrchr(text, '.') : NULL, *name = dot ? dot + 1 : text;
    if (!text) return -1;
    for (int d = 0; d < TP_NUM_DTYPES; d++) {
        const char *type = tp_scalar_type_name((tp_dtype)d);
        size_t n = strlen(type);
        if (strncmp(name, type, n) == 0 && strcmp(name + n, "Tensor") == 0) return *out = (tp_dtype)d, 0;
    }
    PyErr_Format(PyExc_ValueError, "invalid type: '%s'", text);
    return -1;
}

FAST_METHOD(type) {
    static const char *const names[] = {"dtype", "non_blocking", NULL};
    static const tp_py_arguments arguments = {"type", names, 2, 0};
    PyObject *v[2];
    tp_tensor *t = TENSOR(self);
    tp_dtype dtype = (tp_dtype)t->dtype;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0) return NULL;
    if (!v[0] || v[0] == Py_None) return PyUnicode_FromFormat("%s.%sTensor", tp_py_package, tp_scalar_type_name(dtype));
    int status = PyUnicode_Check(v[0]) ? parse_type_name(v[0], &dtype) : tp_py_take_dtype("type", v[0], &dtype);
    return status < 0 ? NULL : tp_py_wrap_steal(tp_to_dtype(t, dtype, false, false, TP_NO_FORMAT));
}

/* ---- elements as Python objects ---- */

#define FROM_BOOLEAN(v) PyBool_FromLong(v)
#define FROM_SIGNED(v) PyLong_FromLongLong(v)
#define FROM_UNSIGNED(v) PyLong_FromUnsignedLongLong(v)
#define FROM_FLOATING(v) PyFloat_FromDouble((double)WIDE(v))
#define FROM_COMPLEX(v) PyComplex_FromDoubles((double)creal(v), (double)cimag(v))
TP_INLINE double as_double(double v) { return v; }
#define WIDE(v) _Generic((v), tp_half: tp_half_to_float, tp_bfloat: tp_bfloat_to_float, default: as_double)(v)
/* Objects take longer than numbers: a look for signals every so many. */
static bool interrupted_at(int64_t i) { return tp_unlikely(i && !(i & 0x3fff)) && PyErr_CheckSignals() < 0; }
#define LIST_ROW(id, name, type, category)                                            \
    static bool row_##id(PyObject *list, const char *data, int64_t n, int64_t step) { \
        for (int64_t i = 0; i < n; i++) {                                             \
            if (interrupted_at(i)) return false;                                      \
            PyObject *item = FROM_##category(*(const type *)(data + i * step));       \
            if (tp_unlikely(!item)) return false;                                     \
            PyList_SET_ITEM(list, i, item);                                           \
        }                                                                             \
        return true;                                                                  \
    }
TP_FORALL_COMPUTED_DTYPES(LIST_ROW)
#define STORED_ROW(id, name, type, category)                                          \
    static bool row_##id(PyObject *list, const char *data, int64_t n, int64_t step) { \
        return stored_row(TP_##id, list, data, n, step);                              \
    }
static bool stored_row(tp_dtype d, PyObject *list, const char *data, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; i++) {
        if (interrupted_at(i)) return false;
        tp_scalar s = tp_scalar_load(data + i * step, d);
        PyObject *item = tp_py_from_scalar(&s);
        if (tp_unlikely(!item)) return false;
        PyList_SET_ITEM(list, i, item);
    }
    return true;
}
TP_FORALL_STORED_DTYPES(STORED_ROW)
#define LIST_ENTRY(id, name, ctype, category) [TP_##id] = row_##id,
static bool (*const list_rows[TP_NUM_DTYPES])(PyObject *, const char *, int64_t,
                                              int64_t) = {TP_FORALL_DTYPES(LIST_ENTRY)};

static PyObject *to_list(const tp_tensor *t, int dim, const char *data) {
    int64_t n = t->sizes[dim], step = t->strides[dim] * tp_itemsize((tp_dtype)t->dtype);
    PyObject *list = PyList_New(n);
    if (!list) return NULL;
    if (dim == t->ndim - 1) {
        if (!list_rows[t->dtype](list, data, n, step)) Py_CLEAR(list);
        return list;
    }
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *item = interrupted_at(i) ? NULL : to_list(t, dim + 1, t->numel ? data + i * step : data);
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *item_of(tp_tensor *t) {
    tp_scalar s;
    return tp_item(t, &s) < 0 ? tp_py_raise() : tp_py_from_scalar(&s);
}

/* A stand-in of func.functionalize answers with what it stands for, whoever's it is. */
static PyObject *list_of_value(const tp_tensor *t) {
    PyObject *value = tp_py_wrap_steal(tp_functional_value(t));
    PyObject *list = value ? PyObject_CallMethod(value, "tolist", NULL) : NULL;
    Py_XDECREF(value);
    return list;
}

METHOD(tolist) {
    tp_tensor *t = TENSOR(self);
    if (tp_check_unbatched(t, "tolist()") < 0) return tp_py_raise();
    if (tp_py_refuse_traced(self, "tolist()") < 0) return NULL;
    if (t->device.type == TP_DEVICE_META)
        return PyErr_Format(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    if (t->ndim == 0) return item_of(t);
    if (tp_is_functional(t)) return list_of_value(t);
    if (tp_py_refuse_wrapper(t, "tolist()") < 0) return NULL;
    tp_autoref *solved = tp_is_pending(t) ? tp_resolved(t) : tp_retain(t);
    if (!solved) return tp_py_raise();
    t = solved;
    if (tp_py_check(tp_settle_to_read(t->storage)) < 0) return NULL;
    if (t->device.type == TP_DEVICE_CPU) return to_list(t, 0, tp_data(t));
    tp_autoref *plain = tp_detached_alias(t);
    tp_autoref *host = plain ? tp_to_device(plain, TP_CPU, (tp_dtype)t->dtype, false, false, TP_NO_FORMAT) : NULL;
    return host ? to_list(host, 0, tp_data(host)) : tp_py_raise();
}

/* ---- as an object of a subclass ---- */

static bool check_subclass(const char *function, PyObject *cls) {
    if (PyType_Check(cls) && PyType_IsSubtype((PyTypeObject *)cls, &tp_py_tensor_type)) return true;
    PyErr_Format(PyExc_TypeError, "%s(): argument 'cls' must be a subclass of Tensor, not %R", function, cls);
    return false;
}

static PyObject *py_as_subclass(PyObject *self, PyObject *cls) {
    if (!check_subclass("as_subclass", cls)) return NULL;
    if (tp_py_tell_recorder("a tensor becomes one of another class") < 0) return NULL;
    return tp_py_wrap_as_steal((PyTypeObject *)cls, tp_alias(TENSOR(self)));
}

static PyObject *py_make_subclass(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    (void)self;
    static const char *const names[] = {"cls", "data", "require_grad", "device_for_backend_keys", NULL};
    static const tp_py_arguments arguments = {"_make_subclass", names, 3, 2};
    PyObject *v[4];
    tp_device device = TP_NO_DEVICE;
    bool requires_grad = false;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0 || tp_py_take_bool(v[2], &requires_grad) < 0 ||
        !check_subclass("_make_subclass", v[0]))
        return NULL;
    if (!tp_py_is_tensor(v[1]))
        return PyErr_Format(PyExc_TypeError, "_make_subclass(): argument 'data' must be Tensor, not %s",
                            Py_TYPE(v[1])->tp_name);
    tp_autoref *t = tp_detached_data(TENSOR(v[1]));
    if (t) t->flags &= (uint16_t)~TP_FLAG_UNVERSIONED; /* a parameter's writes are seen by what saved it */
    if (!t || (requires_grad && tp_set_requires_grad(t, true) < 0)) return tp_py_raise();
    if (v[3] && v[3] != Py_None) { /* autocast treats it as a tensor of that device */
        if (tp_py_take_device("_make_subclass", v[3], &device) < 0) return NULL;
        t->keys = (t->keys & ~TP_AUTOCAST_KEYS) | (tp_keyset)1 << tp_autocast_key(device.type);
    }
    return tp_py_wrap_as_steal((PyTypeObject *)v[0], tp_take(t));
}

/* ---- one number ---- */

static int bool_asked(PyObject *o) {
    PyObject *result = tp_py_ask_method("__bool__", o, NULL, 0, NULL);
    int truth = result ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    return truth;
}

int tp_py_tensor_bool(PyObject *o) {
    if (tp_py_asks(o)) return bool_asked(o);
    bool truth;
    return tp_py_check(tp_is_nonzero(TENSOR(o), &truth)) < 0 ? -1 : truth;
}

/* int(t), float(t) and complex(t) raise another class than t.item(). */
static int check_single(const tp_tensor *t) {
    if (t->numel == 1) return 0;
    PyErr_Format(PyExc_ValueError, "only one element tensors can be converted to Python scalars, this one has %lld",
                 (long long)t->numel);
    return -1;
}

/* A number knows no gradient. */
static int warn_of_gradient(const tp_tensor *t) {
    if (tp_likely(!tp_requires_grad(t))) return 0;
    return tp_py_check(
        tp_warn_once("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                     "Consider using tensor.detach() first."));
}

PyObject *tp_py_tensor_int(PyObject *o) {
    if (tp_py_asks(o)) return tp_py_ask_method("__int__", o, NULL, 0, NULL);
    if (check_single(TENSOR(o)) < 0 || warn_of_gradient(TENSOR(o)) < 0) return NULL;
    PyObject *value = item_of(TENSOR(o)), *result = NULL;
    if (value && PyComplex_Check(value)) {
        if (PyComplex_ImagAsDouble(value) == 0) result = PyLong_FromDouble(PyComplex_RealAsDouble(value));
        else PyErr_SetString(PyExc_RuntimeError, "value cannot be converted to type int64_t without overflow");
    } else if (value) result = PyNumber_Long(value);
    Py_XDECREF(value);
    return result;
}

PyObject *tp_py_tensor_float(PyObject *o) {
    if (tp_py_asks(o)) return tp_py_ask_method("__float__", o, NULL, 0, NULL);
    tp_scalar s;
    if (check_single(TENSOR(o)) < 0 || warn_of_gradient(TENSOR(o)) < 0) return NULL;
    if (tp_item(TENSOR(o), &s) < 0) return tp_py_raise();
    if (s.kind == TP_SCALAR_COMPLEX && cimag(s.c) != 0)
        return PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type double without overflow");
    return PyFloat_FromDouble(tp_scalar_double(&s));
}

PyObject *tp_py_tensor_index(PyObject *o) {
    if (tp_py_asks(o)) return tp_py_ask_method("__index__", o, NULL, 0, NULL);
    const tp_tensor *t = TENSOR(o);
    if (t->numel != 1 || tp_dtype_categories[t->dtype] > TP_SIGNED)
        return PyErr_Format(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return tp_py_tensor_int(o);
}

TP_PY_METHOD(py_complex, "__complex__") {
    tp_scalar s;
    if (check_single(TENSOR(self)) < 0) return NULL;
    if (tp_item(TENSOR(self), &s) < 0) return tp_py_raise();
    tp_complex128 c = tp_scalar_complex(&s);
    return PyComplex_FromDoubles(creal(c), cimag(c));
}

/* ---- printing and iteration ---- */

static PyObject *call_printer(PyObject *o, const char *function) {
    if (tp_py_tell_recorder("a tensor is printed") < 0) return NULL;
    tp_exclude_guard guard = tp_exclude(TP_BIT(Tracer)); /* what is printed is no part of a graph */
    PyObject *module = PyImport_ImportModule("tensorpy._tensor_str");
    PyObject *text = module ? PyObject_CallMethod(module, function, "O", o) : NULL;
    Py_XDECREF(module);
    return text;
}
/* __repr__(self, *, tensor_contents=None): a class of tensors says what stands for the elements. */
static PyObject *py_repr(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *const names[] = {"tensor_contents", NULL};
    PyObject *contents = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O:__repr__", (char **)names, &contents)) return NULL;
    if (contents == Py_None) return tp_py_tensor_repr(self);
    tp_exclude_guard guard = tp_exclude(TP_BIT(Tracer));
    PyObject *module = PyImport_ImportModule("tensorpy._tensor_str");
    PyObject *text = module ? PyObject_CallMethod(module, "tensor_repr", "OO", self, contents) : NULL;
    Py_XDECREF(module);
    return text;
}

PyObject *tp_py_tensor_repr(PyObject *o) {
    if (tp_py_asks(o)) return tp_py_ask_method("__repr__", o, NULL, 0, NULL);
    return call_printer(o, "tensor_repr");
}

/* A number's format for a tensor without dimensions. */
TP_PY_METHOD_O(py_format, "__format__") {
    PyObject *spec = arg;
    const tp_tensor *t = TENSOR(self);
    if (!PyUnicode_Check(spec))
        return PyErr_Format(PyExc_TypeError, "__format__() takes a str, not %s", Py_TYPE(spec)->tp_name);
    if (t->ndim == 0 && t->device.type != TP_DEVICE_META) {
        PyObject *value = item_of(TENSOR(self)), *text = value ? PyObject_Format(value, spec) : NULL;
        Py_XDECREF(value);
        return text;
    }
    return PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__format__", "OO", self, spec);
}

/* As PyTorch: dim and unbind are asked for, and the iteration itself is not. */
static PyObject *iter_asked(PyObject *o) {
    PyObject *ndim = PyObject_CallMethod(o, "dim", NULL);
    bool none = ndim && PyLong_Check(ndim) && PyLong_AsLong(ndim) == 0;
    Py_XDECREF(ndim);
    if (none) return PyErr_Format(PyExc_TypeError, "iteration over a 0-d tensor");
    PyObject *parts = ndim ? PyObject_CallMethod(o, "unbind", "i", 0) : NULL;
    PyObject *iterator = parts ? PyObject_GetIter(parts) : NULL;
    Py_XDECREF(parts);
    return iterator;
}

PyObject *tp_py_tensor_iter(PyObject *o) {
    if (tp_py_asks(o)) return iter_asked(o);
    tp_tensor *t = TENSOR(o);
    if (t->ndim == 0) return PyErr_Format(PyExc_TypeError, "iteration over a 0-d tensor");
    PyObject *parts = tp_py_like_steal(o, tp_py_wrap_seq_steal(tp_unbind_int(t, 0))),
             *iterator = parts ? PyObject_GetIter(parts) : NULL;
    Py_XDECREF(parts);
    return iterator;
}
static PyObject *py_iter(PyObject *self, PyObject *unused TP_UNUSED) { return tp_py_tensor_iter(self); }

TP_PY_METHOD(py_reversed, "__reversed__") {
    tp_tensor *t = TENSOR(self);
    if (t->ndim == 0) return Py_NewRef(self);
    tp_autoref *last = tp_arange_start_step(TP_SCALAR_I(t->sizes[0] - 1), TP_SCALAR_I(-1), TP_SCALAR_I(-1), TP_INT64,
                                            TP_NO_LAYOUT, t->device, -1);
    return last ? tp_py_wrap_steal(tp_index_Tensor(t, (tp_tensors){(tp_tensor *const[]){last}, 1})) : tp_py_raise();
}

/* ---- the table ---- */

#define TO(name) {#name, TP_PY_FASTCALL(py_to_##name), NULL}
PyMethodDef tp_py_tensor_methods[] = {
    {"size", TP_PY_FASTCALL(py_size), NULL},
    {"stride", TP_PY_FASTCALL(py_stride), NULL},
    {"dim", py_dim, METH_NOARGS, NULL},
    {"ndimension", py_dim, METH_NOARGS, NULL},
    {"numel", py_numel, METH_NOARGS, NULL},
    {"nelement", py_numel, METH_NOARGS, NULL},
    {"element_size", py_element_size, METH_NOARGS, NULL},
    {"storage_offset", py_storage_offset, METH_NOARGS, NULL},
    {"data_ptr", py_data_ptr, METH_NOARGS, NULL},
    {"is_contiguous", TP_PY_FASTCALL(py_is_contiguous), NULL},
    {"is_floating_point", py_is_floating_point, METH_NOARGS, NULL},
    {"is_complex", py_is_complex, METH_NOARGS, NULL},
    {"is_signed", py_is_signed, METH_NOARGS, NULL},
    {"is_inference", py_is_inference, METH_NOARGS, NULL},
    {"get_device", py_get_device, METH_NOARGS, NULL},
    {"tolist", py_tolist, METH_NOARGS, NULL},
    {"type", TP_PY_FASTCALL(py_type),
     "type($self, dtype=None, non_blocking=False)\n--\n\nThe name of the type; with a dtype, a conversion."},
    TO(float),
    TO(double),
    TO(half),
    TO(bfloat16),
    TO(int),
    TO(long),
    TO(short),
    TO(char),
    TO(byte),
    TO(bool),
    TO(cfloat),
    TO(cdouble),
    {"cpu", TP_PY_FASTCALL(py_cpu), NULL},
    {"as_subclass", py_as_subclass, METH_O, NULL},
    {"_make_wrapper_subclass", (PyCFunction)(void (*)(void))tp_py_make_wrapper,
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     "_make_wrapper_subclass(cls, size, strides=None, *, storage_offset=None, memory_format=None, dtype=None, "
     "layout=None, device=None, pin_memory=False, requires_grad=False, dispatch_sizes_strides_policy=None, "
     "dispatch_device=False, dispatch_layout=False)\n--\n\nAn object of a subclass that answers for itself "
     "(__torch_dispatch__): sizes, dtype and device without elements."},
    {"_make_subclass", (PyCFunction)(void (*)(void))py_make_subclass, METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, require_grad=False)\n--\n\nAn object of a subclass, without history, on the same "
     "memory."},
    {"untyped_storage", tp_py_tensor_storage, METH_NOARGS, NULL},
    {"__complex__", py_complex, METH_NOARGS, NULL},
    {"__format__", py_format, METH_O, NULL},
    {"__repr__", (PyCFunction)(void (*)(void))py_repr, METH_VARARGS | METH_KEYWORDS | METH_COEXIST, NULL},
    {"__iter__", py_iter, METH_NOARGS, NULL},
    {"__reversed__", py_reversed, METH_NOARGS, NULL},
    {"__deepcopy__", tp_py_tensor_deepcopy, METH_O, NULL},
    {"__reduce_ex__", tp_py_tensor_reduce_ex, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
