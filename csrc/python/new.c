/* new.c: tensors from Python data: tensor(), as_tensor(), asarray().
 *
 * What another library holds is shared or copied as a whole (interop.h); all else is read element by element
 * (sequence.h). */
#include "python/arguments.h"
#include "python/interop.h"
#include "python/methods.h"
#include "python/overrides.h"
#include "python/python_key.h"
#include "python/returns.h"
#include "python/sequence.h"
#include "python/storage.h"

#include "Functions.h"
#include "autograd/node.h"
#include "functionalize/functionalize.h"
#include "iter/iter.h"

/* ---- whole tensors ---- */

static tp_tensor *raise_null(tp_tensor *t) {
    if (!t) tp_py_raise();
    return t;
}

/* `t` (stolen; NULL: an exception is set) with a dtype and on a device; another tensor where `copy`. */
static tp_tensor *convert_steal(tp_tensor *t, tp_dtype dtype, tp_device device, bool copy) {
    tp_autoref *owned = t;
    if (!owned) return NULL;
    if (dtype == TP_NO_DTYPE) dtype = (tp_dtype)t->dtype;
    if (device.type < 0) device = t->device;
    return raise_null(tp_to_device(owned, device, dtype, false, copy, TP_NO_FORMAT));
}

static bool has_attribute(PyObject *o, const char *name) {
    return PyObject_HasAttrString((PyObject *)Py_TYPE(o), name);
}

/* An object of another library that shares its memory, as a tensor over it; NULL without an exception if it cannot. */
static tp_tensor *shared_memory(PyObject *o) {
    if (tp_py_is_ndarray(o)) return tp_py_lift_steal(tp_py_alias_ndarray(o, true));
    if (has_attribute(o, "__dlpack__")) return tp_py_lift_steal(tp_py_from_dlpack(o, Py_None, Py_None));
    return NULL;
}

/* What is made of a program's data is a constant of a graph that is being recorded; the program goes on with a copy,
 * which it may write to. In a function that is functionalised it is a tensor of that function. */
static tp_tensor *copied_if_traced_steal(tp_tensor *t) {
    bool inside = tp_tls.functional != NULL;
    if (!t || tp_likely(!inside && !(tp_tls.include & TP_BIT(Tracer)))) return t;
    tp_autoref *constant = t;
    if (tp_py_is_recording()) return raise_null(tp_lift_fresh_copy(constant));
    return inside ? raise_null(tp_functional_wrap(constant)) : tp_take(constant);
}

/* A storage's bytes are elements of the dtype. */
static tp_tensor *elements_of(tp_storage *bytes, tp_dtype dtype) {
    if (dtype == TP_NO_DTYPE) dtype = tp_default_dtype();
    const int64_t n = (int64_t)bytes->nbytes / tp_itemsize(dtype);
    return raise_null(tp_new_on_storage(bytes, TP_INTS(n), TP_INTS(1), 0, dtype));
}

/* tensorpy.storage.TypedStorage: what it holds are elements of its own dtype, and of no other. */
static bool is_typed_storage(PyObject *data) {
    return !PyTuple_CheckExact(data) && !PyList_CheckExact(data) && tp_py_is_sequence(data) &&
           has_attribute(data, "_typed_storage");
}
static tp_tensor *elements_of_typed(PyObject *data, tp_dtype dtype) {
    PyObject *own_dtype = PyObject_GetAttrString(data, "dtype");
    PyObject *untyped = own_dtype ? PyObject_GetAttrString(data, "_untyped_storage") : NULL;
    tp_storage *bytes = untyped ? tp_py_storages.borrow(untyped) : NULL;
    tp_dtype own;
    tp_tensor *t = NULL;
    if (!bytes || tp_py_to_dtype(own_dtype, &own) <= 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "tensor(): the storage has no memory, or no dtype");
    } else if (dtype != TP_NO_DTYPE && dtype != own) {
        PyErr_Format(PyExc_RuntimeError,
                     "Expected a Storage of type %s or an UntypedStorage, but got type %s for argument 1 'storage'",
                     tp_scalar_type_name(dtype), tp_scalar_type_name(own));
    } else {
        t = elements_of(bytes, own);
    }
    Py_XDECREF(untyped);
    Py_XDECREF(own_dtype);
    return t;
}

static tp_tensor *made_of_data(PyObject *data, tp_dtype dtype, tp_device device) {
    if (device.type < 0) device = tp_default_device();
    if (tp_py_is_tensor(data))
        return convert_steal(raise_null(tp_detached_alias(tp_py_tensor_borrow(data))), dtype, device, true);
    if (tp_py_is_ndarray(data))
        return copied_if_traced_steal(convert_steal(tp_py_alias_ndarray(data, false), dtype, device, true));
    tp_storage *bytes = PyList_CheckExact(data) ? NULL : tp_py_storages.borrow(data);
    if (bytes) return convert_steal(elements_of(bytes, dtype), dtype, device, true);
    if (is_typed_storage(data)) return convert_steal(elements_of_typed(data, dtype), dtype, device, true);
    if (!tp_py_is_plain_number(data) && !tp_py_is_sequence(data) && !tp_py_is_text(data) &&
        !tp_py_is_numpy_scalar(data) && has_attribute(data, "__dlpack__"))
        return convert_steal(tp_py_from_dlpack(data, Py_None, Py_None), dtype, device, true);
    tp_tensor *t = tp_py_from_sequence(data, dtype);
    return copied_if_traced_steal(t && device.type != TP_DEVICE_CPU ? convert_steal(t, dtype, device, false) : t);
}

static tp_tensor *untold(PyObject *data, tp_dtype dtype, tp_device device) {
    tp_exclude_guard guard = tp_exclude(TP_BIT(Tracer));
    return made_of_data(data, dtype, device);
}

/* A mode sees one step: what is made of the data. */
tp_tensor *tp_py_tensor_from_data(PyObject *data, tp_dtype dtype, tp_device device) {
    if (tp_likely(!tp_py_has_dispatch_mode()) || tp_py_is_tensor(data)) return made_of_data(data, dtype, device);
    bool recording = tp_py_is_recording();
    tp_tls.dispatch_off = true;
    tp_autoref *t = untold(data, dtype, device);
    tp_tls.dispatch_off = false;
    return t && recording ? raise_null(tp_lift_fresh_copy(t)) : tp_py_lift_steal(tp_take(t));
}

/* ---- functions ---- */

static PyObject *with_requires_grad_steal(tp_tensor *t, PyObject *wanted) {
    bool requires_grad = false;
    if (!t) return NULL;
    int status = tp_py_take_bool(wanted, &requires_grad);
    if (status == 0 && requires_grad && !tp_is_floating(t) && !tp_is_complex(t))
        status = (PyErr_Format(PyExc_RuntimeError,
                               "Only Tensors of floating point and complex dtype can require gradients, not %s",
                               tp_dtype_names[t->dtype]),
                  -1);
    if (status == 0 && requires_grad) status = tp_py_check(tp_set_requires_grad(t, true));
    if (status == 0) return tp_py_wrap_steal(t);
    tp_release(t);
    return NULL;
}

/* The tensor, or a pinned copy of it. */
static tp_tensor *pinned_steal(tp_tensor *t, bool pin) {
    tp_autoref *made = t;
    if (!t || !pin) return tp_take(made);
    return tp_pin_memory(made, TP_NO_DEVICE);
}

static PyObject *py_tensor(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (tp_unlikely(tp_tls.asked)) return tp_py_ask_function("tensor", args, nargs, kwnames);
    static const char *const names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", NULL};
    static const tp_py_arguments arguments = {"tensor", names, 1, 1};
    (void)self;
    PyObject *v[5];
    tp_dtype dtype = TP_NO_DTYPE;
    tp_device device = TP_NO_DEVICE;
    bool pin = false;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0) return NULL;
    if (tp_py_take_dtype("tensor", v[1], &dtype) < 0 || tp_py_take_device("tensor", v[2], &device) < 0) return NULL;
    if (tp_py_take_bool(v[4], &pin) < 0) return NULL;
    if (tp_py_is_tensor(v[0])) {
        if (PyErr_WarnEx(
                PyExc_UserWarning,
                "To copy construct from a tensor, it is recommended to use "
                "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), rather than "
                "tensorpy.tensor(sourceTensor).",
                1) < 0)
            return NULL;
        if (device.type < 0) device = tp_py_tensor_borrow(v[0])->device;
    }
    return with_requires_grad_steal(pinned_steal(tp_py_tensor_from_data(v[0], dtype, device), pin), v[3]);
}

static PyObject *py_as_tensor(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (tp_unlikely(tp_tls.asked)) return tp_py_ask_function("as_tensor", args, nargs, kwnames);
    static const char *const names[] = {"data", "dtype", "device", NULL};
    static const tp_py_arguments arguments = {"as_tensor", names, 3, 1};
    (void)self;
    PyObject *v[3];
    tp_dtype dtype = TP_NO_DTYPE;
    tp_device device = TP_NO_DEVICE;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0) return NULL;
    if (tp_py_take_dtype("as_tensor", v[1], &dtype) < 0 || tp_py_take_device("as_tensor", v[2], &device) < 0)
        return NULL;
    if (tp_py_is_tensor(v[0]))
        return tp_py_wrap_steal(convert_steal(tp_retain(tp_py_tensor_borrow(v[0])), dtype, device, false));
    tp_tensor *t =
        tp_py_is_plain_number(v[0]) || PyList_Check(v[0]) || PyTuple_Check(v[0]) ? NULL : shared_memory(v[0]);
    if (!t && PyErr_Occurred()) return NULL;
    t = t ? convert_steal(t, dtype, device.type < 0 ? tp_default_device() : device, false)
          : tp_py_tensor_from_data(v[0], dtype, device);
    return t ? tp_py_wrap_steal(t) : NULL;
}

/* ---- asarray ---- */

static int refuse_alias(const char *format, const char *from, const char *to) {
    PyErr_Format(PyExc_ValueError, format, from, to);
    return -1;
}

/* copy=False has to be possible. */
static int check_alias(const tp_tensor *t, tp_dtype dtype, tp_device device) {
    if (dtype != TP_NO_DTYPE && dtype != (tp_dtype)t->dtype)
        return refuse_alias("can't alias tensor with dtype '%s' into dtype '%s'.",
                            tp_scalar_type_name((tp_dtype)t->dtype), tp_scalar_type_name(dtype));
    if (device.type >= 0 && device.type != t->device.type)
        return refuse_alias("can't alias tensor from device '%s' to '%s'.", tp_device_type_name(t->device.type),
                            tp_device_type_name(device.type));
    return 0;
}

/* What asarray shares memory with: tensors, arrays, DLPack, buffers (as a row of the dtype). NULL: none of these, or an
 * exception. */
static tp_tensor *shareable(PyObject *o, tp_dtype dtype) {
    if (tp_py_is_tensor(o)) return tp_retain(tp_py_tensor_borrow(o));
    if (PyCapsule_CheckExact(o)) return tp_py_from_dlpack(o, Py_None, Py_None);
    tp_tensor *t = shared_memory(o);
    if (t || PyErr_Occurred() || !PyObject_CheckBuffer(o) || tp_py_is_numpy_scalar(o)) return t;
    tp_autoref *flat = tp_py_alias_buffer(o, true);
    if (!flat || !(PyBytes_Check(o) || PyByteArray_Check(o))) return tp_take(flat);
    if (dtype == TP_NO_DTYPE) dtype = tp_default_dtype(); /* raw bytes are elements of the dtype */
    if (flat->numel % tp_itemsize(dtype)) {
        PyErr_Format(PyExc_ValueError,
                     "buffer length (%lld bytes) after offset (0 bytes) must be a multiple of element size (%lld)",
                     (long long)flat->numel, (long long)tp_itemsize(dtype));
        return NULL;
    }
    return raise_null(
        tp_new_on_storage(flat->storage, TP_INTS(flat->numel / tp_itemsize(dtype)), TP_INTS(1), 0, dtype));
}

static tp_tensor *asarray(PyObject *o, tp_dtype dtype, tp_device device, PyObject *copy) {
    bool forced = copy && copy != Py_None, wanted = false;
    if (forced && tp_py_take_bool(copy, &wanted) < 0) return NULL;
    bool number = tp_py_is_plain_number(o) || PyList_Check(o) || PyTuple_Check(o) || PyUnicode_Check(o);
    tp_tensor *t = number ? NULL : shareable(o, dtype);
    if (!t && PyErr_Occurred()) return NULL;
    if (!t && forced && !wanted) {
        PyErr_SetString(PyExc_ValueError, "can't alias arbitrary sequence into a tensor.");
        return NULL;
    }
    if (!t) return tp_py_tensor_from_data(o, dtype, device);
    if (forced && !wanted && check_alias(t, dtype, device) < 0) {
        tp_release(t);
        return NULL;
    }
    return convert_steal(t, dtype, device, wanted);
}

static PyObject *py_asarray(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (tp_unlikely(tp_tls.asked)) return tp_py_ask_function("asarray", args, nargs, kwnames);
    static const char *const names[] = {"obj", "dtype", "device", "copy", "requires_grad", NULL};
    static const tp_py_arguments arguments = {"asarray", names, 1, 1};
    (void)self;
    PyObject *v[5];
    tp_dtype dtype = TP_NO_DTYPE;
    tp_device device = TP_NO_DEVICE;
    bool requires_grad = false;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0 || tp_py_take_bool(v[4], &requires_grad) < 0)
        return NULL;
    if (tp_py_take_dtype("asarray", v[1], &dtype) < 0 || tp_py_take_device("asarray", v[2], &device) < 0) return NULL;
    tp_autoref *t = asarray(v[0], dtype, device, v[3]);
    if (!t) return NULL;
    if (v[4] && !requires_grad && tp_requires_grad(t)) return tp_py_wrap_steal(tp_detached_alias(t));
    if (requires_grad && !tp_requires_grad(t) && tp_py_is_tensor(v[0]) && t == tp_py_tensor_borrow(v[0])) {
        tp_tensor *alias = tp_detached_alias(t); /* the caller's tensor is not changed */
        tp_release(t);
        if (!(t = alias)) return tp_py_raise();
    }
    return with_requires_grad_steal(tp_take(t), requires_grad && !tp_requires_grad(t) ? Py_True : NULL);
}

static PyMethodDef functions[] = {
    {"tensor", TP_PY_FASTCALL(py_tensor), NULL},
    {"as_tensor", TP_PY_FASTCALL(py_as_tensor), NULL},
    {"asarray", TP_PY_FASTCALL(py_asarray), NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_new(PyObject *m) { return tp_py_add_functions(m, NULL, (PyMethodDef *const[]){functions, NULL}); }
