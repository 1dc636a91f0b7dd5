/* interop_dlpack.c: DLPack both ways, version 1 capsules ("dltensor_versioned") and the older ones ("dltensor").
 *
 * The structs are DLPack's ABI (dmlc/dlpack, dlpack/dlpack.h). An exported capsule owns the tensor's storage;
 * an imported one is renamed "used_..." and its deleter runs when the last tensor over the memory goes. */
#include "python/arguments.h"
#include "conjugate/conjugate.h"
#include "python/interop.h"
#include "python/overrides.h"
#include "python/python_key.h"

#include "Functions.h"
#include "autograd/node.h"
#include "batched/batched.h"
#include "core/memory.h"

#include <string.h>

typedef struct {
    uint32_t major, minor;
} dl_version;
typedef struct {
    int32_t type, id;
} dl_device;
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;
typedef struct {
    void *data;
    dl_device device;
    int32_t ndim;
    dl_dtype dtype;
    int64_t *shape, *strides; /* strides NULL: contiguous */
    uint64_t byte_offset;
} dl_tensor;
typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
} dl_managed;
typedef struct dl_managed_versioned {
    dl_version version;
    void *context;
    void (*deleter)(struct dl_managed_versioned *);
    uint64_t flags;
    dl_tensor tensor;
} dl_managed_versioned;

enum { DL_CPU = 1, DL_OPENCL = 4 };          /* device types */
enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 }; /* flags */
enum {
    DL_INT,
    DL_UINT,
    DL_FLOAT,
    DL_BFLOAT = 4,
    DL_COMPLEX,
    DL_BOOL,
    DL_E4M3FN = 10,
    DL_E4M3FNUZ,
    DL_E5M2,
    DL_E5M2FNUZ,
    DL_E8M0FNU
};

static dl_dtype to_dl_dtype(tp_dtype d) {
    static const uint8_t codes[] = {[TP_BOOLEAN] = DL_BOOL,
                                    [TP_UNSIGNED] = DL_UINT,
                                    [TP_SIGNED] = DL_INT,
                                    [TP_FLOATING] = DL_FLOAT,
                                    [TP_COMPLEX] = DL_COMPLEX};
    static const uint8_t own[TP_NUM_DTYPES] = {[TP_BFLOAT16] = DL_BFLOAT,          [TP_FLOAT8_E4M3FN] = DL_E4M3FN,
                                               [TP_FLOAT8_E5M2] = DL_E5M2,         [TP_FLOAT8_E4M3FNUZ] = DL_E4M3FNUZ,
                                               [TP_FLOAT8_E5M2FNUZ] = DL_E5M2FNUZ, [TP_FLOAT8_E8M0FNU] = DL_E8M0FNU};
    return (dl_dtype){own[d] ? own[d] : codes[tp_dtype_categories[d]], (uint8_t)(8 * tp_itemsize(d)), 1};
}

static tp_dtype from_dl_dtype(dl_dtype wanted) {
    for (int d = 0; d < TP_NUM_DTYPES; d++) {
        dl_dtype have = to_dl_dtype((tp_dtype)d);
        if (have.code == wanted.code && have.bits == wanted.bits && wanted.lanes == 1) return (tp_dtype)d;
    }
    return TP_NO_DTYPE;
}

/* ---- out ---- */

/* What a capsule points to: one block, either struct first. */
typedef struct {
    union {
        dl_managed plain;
        dl_managed_versioned versioned;
    };
    tp_storage *storage; /* owned */
    int64_t geometry[];
} shipment;

static void free_shipment(shipment *s) {
    tp_storage_release(s->storage);
    PyMem_RawFree(s);
}
static void delete_plain(dl_managed *m) { free_shipment((shipment *)m); }
static void delete_versioned(dl_managed_versioned *m) { free_shipment((shipment *)m); }

/* Nobody took the capsule's content. */
static void capsule_destructor(PyObject *capsule) {
    bool versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
    if (!versioned && !PyCapsule_IsValid(capsule, "dltensor")) return;
    free_shipment(PyCapsule_GetPointer(capsule, versioned ? "dltensor_versioned" : "dltensor"));
}

static PyObject *ship(tp_tensor *t, bool versioned, bool copied) {
    if (tp_check_unbatched(t, "DLPack") < 0) return tp_py_raise();
    shipment *s = PyMem_RawCalloc(1, sizeof *s + 2 * (size_t)t->ndim * sizeof(int64_t));
    if (!s) return PyErr_NoMemory();
    for (int i = 0; i < t->ndim; i++) {
        s->geometry[i] = t->sizes[i];
        s->geometry[t->ndim + i] = t->strides[i];
    }
    s->storage = tp_storage_lend(t->storage);
    if (!s->storage) {
        PyMem_RawFree(s);
        return tp_py_raise();
    }
    dl_tensor tensor = {.data = tp_data(t),
                        .device = {DL_CPU, 0},
                        .ndim = t->ndim,
                        .dtype = to_dl_dtype((tp_dtype)t->dtype),
                        .shape = s->geometry,
                        .strides = s->geometry + t->ndim};
    if (versioned)
        s->versioned = (dl_managed_versioned){.version = {1, 0},
                                              .deleter = delete_versioned,
                                              .flags = (copied ? DL_IS_COPIED : 0) |
                                                       (t->storage->writes == TP_WRITES_FAIL ? DL_READ_ONLY : 0),
                                              .tensor = tensor};
    else s->plain = (dl_managed){.tensor = tensor, .deleter = delete_plain};
    PyObject *capsule = PyCapsule_New(s, versioned ? "dltensor_versioned" : "dltensor", capsule_destructor);
    if (!capsule) free_shipment(s);
    return capsule;
}

/* Whether the consumer asks for the CPU by dl_device. */
static int asks_for_cpu(const tp_tensor *t, PyObject *device) {
    int type, id;
    if (!device || device == Py_None) return 0;
    if (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii", &type, &id)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "dl_device must be a tuple of DLPack's device type and index");
        return -1;
    }
    if (type == DL_CPU) return 1;
    PyErr_Format(PyExc_BufferError, "Unsupported device_type: %d: a tensor on %s is exported to the CPU alone", type,
                 t->device.type == TP_DEVICE_CPU ? "the CPU" : tp_device_type_name(t->device.type));
    return -1;
}

static int check_export(const tp_tensor *t) {
    if (tp_py_refuse_wrapper(t, "__dlpack__()") < 0) return -1;
    if (tp_is_pending(t))
        PyErr_Format(PyExc_BufferError, "Can't export tensors with the %s bit set",
                     t->keys & TP_BIT(Conjugate) ? "conjugate" : "negative");
    else if (tp_requires_grad(t))
        PyErr_SetString(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    else return 0;
    return -1;
}

/* The memory that is exported: t's own, or a copy where one is asked for or the consumer asks for a device's on the
 * CPU. *copied: whether it is one. */
static tp_tensor *memory_of(tp_tensor *t, bool for_cpu, bool may_copy, bool *copied) {
    tp_tensor *made;
    if (t->device.type != TP_DEVICE_CPU) {
        if (!for_cpu || !may_copy || !tp_has_values(t)) {
            PyErr_Format(PyExc_BufferError, "Cannot pack tensors on %s%s", tp_device_type_name(t->device.type),
                         !tp_has_values(t) ? ""
                         : for_cpu         ? ": copy=False forbids a copy on the CPU"
                                           : "; dl_device=(1, 0) asks for a copy on the CPU");
            return NULL;
        }
        *copied = true;
        made = tp_to_device(t, TP_CPU, (tp_dtype)t->dtype, false, false, TP_NO_FORMAT);
    } else {
        made = *copied ? tp_clone(t, TP_NO_FORMAT) : tp_retain(t);
    }
    if (!made) tp_py_raise();
    return made;
}

PyObject *tp_py_dlpack_export(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (tp_py_asks(self)) return tp_py_ask_method("__dlpack__", self, args, nargs, kwnames);
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    static const tp_py_arguments arguments = {"__dlpack__", names, 1, 0};
    PyObject *v[4];
    bool copy = false;
    int major = 0, minor = 0;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0) return NULL;
    if (v[3] && v[3] != Py_None && tp_py_take_bool(v[3], &copy) < 0) return NULL;
    if (v[1] && v[1] != Py_None) {
        if (!PyTuple_Check(v[1]))
            return PyErr_Format(PyExc_TypeError, "__dlpack__(): max_version must be a tuple of two ints");
        if (!PyArg_ParseTuple(v[1], "ii", &major, &minor)) return NULL;
    }
    tp_tensor *t = tp_py_tensor_borrow(self);
    if (tp_py_refuse_traced(self, "__dlpack__()") < 0 || check_export(t) < 0) return NULL;
    int for_cpu = asks_for_cpu(t, v[2]);
    if (for_cpu < 0) return NULL;
    int overflow = 0;
    if (v[0] && v[0] != Py_None && !PyLong_Check(v[0]))
        return PyErr_Format(PyExc_TypeError, "stream must be ``int`` or ``none``, not %s", Py_TYPE(v[0])->tp_name);
    if (v[0] && v[0] != Py_None && !(PyLong_AsLongAndOverflow(v[0], &overflow) == -1 && !overflow))
        return PyErr_Format(PyExc_AssertionError, "stream should be None on cpu.");
    tp_autoref *memory = memory_of(t, for_cpu, copy || !v[3] || v[3] == Py_None, &copy);
    if (!memory) return NULL;
    if (!copy && t->storage->writes == TP_WRITES_FAIL && major < 1)
        return PyErr_Format(PyExc_BufferError,
                            "__dlpack__(): read-only memory needs a consumer of DLPack 1.0 or later, or copy=True");
    return ship(memory, major >= 1, copy);
}

PyObject *tp_py_dlpack_device(PyObject *self, PyObject *unused) {
    if (tp_py_asks(self)) return tp_py_ask_method("__dlpack_device__", self, NULL, 0, NULL);
    (void)unused;
    tp_tensor *t = tp_py_tensor_borrow(self);
    if (t->device.type == TP_DEVICE_CPU) return Py_BuildValue("(ii)", DL_CPU, 0);
    if (t->device.type == TP_DEVICE_OPENCL) return Py_BuildValue("(ii)", DL_OPENCL, t->device.index);
    return PyErr_Format(PyExc_ValueError, "Unknown device type %s for Dlpack", tp_device_type_name(t->device.type));
}

/* ---- in ---- */

typedef struct {
    void *managed;
    bool versioned;
} import;

static void delete_import(const import *i) {
    if (i->versioned) {
        dl_managed_versioned *m = i->managed;
        if (m->deleter) m->deleter(m);
    } else {
        dl_managed *m = i->managed;
        if (m->deleter) m->deleter(m);
    }
}

/* A deleter may belong to Python code, so it gets the interpreter lock. */
static void release_import(void *context, void *data) {
    (void)data;
    if (!Py_IsInitialized()) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    delete_import(context);
    PyMem_RawFree(context);
    PyGILState_Release(gil);
}

static int check_import(const dl_tensor *d, tp_dtype dtype) {
    if (d->device.type != DL_CPU)
        PyErr_Format(PyExc_BufferError, "from_dlpack: DLPack device type %d is not supported", (int)d->device.type);
    else if (dtype == TP_NO_DTYPE)
        PyErr_Format(PyExc_BufferError,
                     "from_dlpack: there is no dtype for DLPack type code %d with %d bits and %d lanes",
                     (int)d->dtype.code, (int)d->dtype.bits, (int)d->dtype.lanes);
    else if (d->ndim < 0 || d->ndim > TP_MAX_DIMS)
        PyErr_Format(PyExc_BufferError, "from_dlpack: %d dimensions are not within 0 and %d", (int)d->ndim,
                     TP_MAX_DIMS);
    else if (d->ndim && !d->shape) PyErr_SetString(PyExc_BufferError, "from_dlpack: there are dimensions but no shape");
    else return 0;
    return -1;
}

/* The bytes that the elements lie in. */
typedef struct {
    char *start;
    size_t nbytes;
    int64_t offset; /* of the first element's, from there; at least 0 */
} extent;

/* A producer may say anything; what cannot be memory of a process is refused. */
static int find_extent(const dl_tensor *d, tp_ints sizes, tp_ints strides, tp_dtype dtype, extent *out) {
    int64_t numel = tp_checked_numel(sizes), itemsize = tp_itemsize(dtype), low, high, last, nbytes;
    uintptr_t first, end, unit = (uintptr_t)(tp_is_complex_dtype(dtype) ? itemsize / 2 : itemsize);
    *out = (extent){0};
    if (numel < 0 || tp_strided_extent(sizes, strides, &low, &high) < 0) return tp_py_raise(), -1;
    if (numel == 0) return 0;
    bool wraps = __builtin_add_overflow((uintptr_t)d->data, d->byte_offset, &first);
    wraps |= __builtin_mul_overflow(low, itemsize, &low);
    wraps |= __builtin_add_overflow(high, 1, &high);
    wraps |= __builtin_mul_overflow(high, itemsize, &last);
    wraps |= __builtin_sub_overflow(last, low, &nbytes);
    wraps |= __builtin_add_overflow(first, (uintptr_t)last, &end);
    wraps |= first < 0 - (uintptr_t)low;
    if (!d->data || wraps) {
        PyErr_SetString(PyExc_BufferError, d->data ? "from_dlpack: the elements lie beyond the end of all memory"
                                                   : "from_dlpack: there are elements but no memory");
        return -1;
    }
    if (first % unit) {
        PyErr_SetString(PyExc_BufferError, "from_dlpack: the memory is not aligned to its element size");
        return -1;
    }
    *out = (extent){(char *)first + low, (size_t)nbytes, -low};
    return 0;
}

/* A tensor over the memory that takes over `managed`; on failure the caller still has it. */
static tp_tensor *adopt(const dl_tensor *d, void *managed, bool versioned) {
    tp_dtype dtype = from_dl_dtype(d->dtype);
    int64_t stride_data[TP_MAX_DIMS];
    extent e;
    if (check_import(d, dtype) < 0) return NULL;
    tp_ints sizes = {d->shape, d->ndim}, strides = {stride_data, d->ndim};
    if (d->strides && d->ndim) memcpy(stride_data, d->strides, (size_t)d->ndim * sizeof *stride_data);
    else tp_contiguous_strides(sizes, stride_data);
    if (find_extent(d, sizes, strides, dtype, &e) < 0) return NULL;
    import *owner = PyMem_RawMalloc(sizeof *owner);
    if (!owner) return (void)PyErr_NoMemory(), NULL;
    *owner = (import){managed, versioned};
    tp_storage *storage = tp_storage_from_blob(TP_CPU, e.start, e.nbytes, release_import, owner);
    tp_tensor *t = storage ? tp_new_on_storage(storage, sizes, strides, e.offset, dtype) : NULL;
    if (!t) {
        if (storage) storage->deleter = tp_storage_keep_blob;
        PyMem_RawFree(owner);
        tp_py_raise();
    }
    tp_storage_release(storage);
    return t;
}

static tp_tensor *unpack_versioned(PyObject *capsule, bool may_copy) {
    dl_managed_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (m->version.major > 1) {
        PyErr_Format(PyExc_BufferError, "from_dlpack: DLPack version %u.%u is newer than 1", m->version.major,
                     m->version.minor);
        return NULL;
    }
    tp_autoref *t = adopt(&m->tensor, m, true);
    if (!t) return NULL;
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
    if (!(m->flags & DL_READ_ONLY)) return tp_take(t);
    /* A tensor can be written to, so it gets memory of its own. */
    tp_tensor *copy = may_copy ? tp_clone(t, TP_NO_FORMAT) : NULL;
    if (may_copy && !copy) tp_py_raise();
    if (!may_copy)
        PyErr_SetString(PyExc_BufferError, "from_dlpack: the memory is read-only and copy=False forbids a copy of it");
    return copy;
}

static tp_tensor *unpack(PyObject *capsule, bool may_copy) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) return unpack_versioned(capsule, may_copy);
    if (!PyCapsule_IsValid(capsule, "dltensor")) {
        PyErr_SetString(PyExc_RuntimeError,
                        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
                        "once, so you might have already constructed a tensor from it once.");
        return NULL;
    }
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    tp_tensor *t = adopt(&m->tensor, m, false);
    if (t) PyCapsule_SetName(capsule, "used_dltensor");
    return t;
}

/* o.__dlpack__(max_version=(1, 0), ...), or without arguments for a producer of before version 1. */
static PyObject *ask_for_capsule(PyObject *o, PyObject *device, PyObject *copy) {
    PyObject *method = PyObject_GetAttrString(o, "__dlpack__");
    PyObject *none = method ? PyTuple_New(0) : NULL,
             *kwargs = none ? Py_BuildValue("{s:(ii)}", "max_version", 1, 0) : NULL;
    PyObject *capsule = NULL;
    if (kwargs && (device == Py_None || PyDict_SetItemString(kwargs, "dl_device", device) == 0) &&
        (copy == Py_None || PyDict_SetItemString(kwargs, "copy", copy) == 0))
        capsule = PyObject_Call(method, none, kwargs);
    if (!capsule && kwargs && copy == Py_None && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(kwargs);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

tp_tensor *tp_py_from_dlpack(PyObject *o, PyObject *device, PyObject *copy) {
    bool may_copy = copy != Py_False;
    if (PyCapsule_CheckExact(o)) return unpack(o, may_copy);
    PyObject *capsule = ask_for_capsule(o, device, copy);
    tp_tensor *t = !capsule ? NULL : unpack(capsule, may_copy);
    Py_XDECREF(capsule);
    return t;
}

PyObject *tp_py_dlpack_import(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"ext_tensor", "device", "copy", NULL};
    static const tp_py_arguments arguments = {"from_dlpack", names, 1, 1};
    (void)module;
    PyObject *v[3], *dl_device_tuple = Py_NewRef(Py_None);
    tp_device device = TP_CPU;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0 ||
        tp_py_take_device("from_dlpack", v[1], &device) < 0)
        return NULL;
    if (device.type != TP_DEVICE_CPU)
        return PyErr_Format(PyExc_BufferError, "from_dlpack: cannot make a tensor on %s",
                            tp_device_type_name(device.type));
    if (v[1] && v[1] != Py_None && !(dl_device_tuple = Py_BuildValue("(ii)", DL_CPU, 0))) return NULL;
    if (!PyCapsule_CheckExact(v[0]) && !PyObject_HasAttrString(v[0], "__dlpack__")) {
        Py_DECREF(dl_device_tuple);
        return PyErr_Format(PyExc_RuntimeError, "from_dlpack(): %s has no __dlpack__", Py_TYPE(v[0])->tp_name);
    }
    tp_tensor *t = tp_py_from_dlpack(v[0], dl_device_tuple, v[2] ? v[2] : Py_None);
    Py_DECREF(dl_device_tuple);
    return t ? tp_py_wrap_steal(t) : NULL;
}
