/* interop.c: NumPy and the buffer protocol, both ways, without copies.
 *
 * NumPy arrays are read through the buffer protocol too, so neither the build nor the import needs NumPy. A tensor over
 * foreign memory owns the Py_buffer, which keeps the exporter alive and its memory in place; an exported view owns the
 * tensor's storage, which is not resized from then on. So any side may be deleted first. */
#include "python/interop.h"
#include "conjugate/conjugate.h"

#include "Functions.h"
#include "autograd/node.h"
#include "batched/batched.h"
#include "python/arguments.h"
#include "python/overrides.h"
#include "python/python_key.h"
#include "python/returns.h"
#include "core/memory.h"

#include <limits.h>
#include <string.h>

/* ---- NumPy's types, found without importing it ---- */

static PyTypeObject *ndarray_type; /* once seen; never let go */

static bool is_named(PyTypeObject *type, const char *name) {
    for (; type; type = type->tp_base)
        if (strcmp(type->tp_name, name) == 0) return true;
    return false;
}

bool tp_py_is_ndarray(PyObject *o) {
    if (ndarray_type) return PyObject_TypeCheck(o, ndarray_type);
    if (!is_named(Py_TYPE(o), "numpy.ndarray")) return false;
    PyTypeObject *type = Py_TYPE(o);
    while (strcmp(type->tp_name, "numpy.ndarray") != 0) type = type->tp_base;
    ndarray_type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    return true;
}

bool tp_py_is_numpy_scalar(PyObject *o) {
    if (strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) != 0) return false;
    if (!tp_py_is_ndarray(o)) return is_named(Py_TYPE(o), "numpy.generic") && !PyUnicode_Check(o) && !PyBytes_Check(o);
    bool flat = PyObject_Size(o) < 0;
    PyErr_Clear();
    return flat;
}

/* ---- element types ---- */

/* NumPy has two types of 64 bits where `long` has so many: its int64 is that of `long` there. */
#if LONG_MAX > INT32_MAX
#define WIDE(of_long, of_long_long) of_long
#else
#define WIDE(of_long, of_long_long) of_long_long
#endif
static const char formats[TP_NUM_DTYPES][3] = {
    [TP_BOOL] = "?",
    [TP_UINT8] = "B",
    [TP_UINT16] = "H",
    [TP_UINT32] = "I",
    [TP_UINT64] = WIDE("L", "Q"),
    [TP_INT8] = "b",
    [TP_INT16] = "h",
    [TP_INT32] = "i",
    [TP_INT64] = WIDE("l", "q"),
    [TP_FLOAT16] = "e",
    [TP_FLOAT32] = "f",
    [TP_FLOAT64] = "d",
    [TP_COMPLEX64] = "Zf",
    [TP_COMPLEX128] = "Zd",
};
#define NUMPY_TYPES                                                                                                    \
    "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and " \
    "bool"

typedef enum { FORMAT_OK, FORMAT_UNKNOWN, FORMAT_SWAPPED } format_status;

static tp_dtype integer_dtype(bool is_signed, Py_ssize_t itemsize) {
    switch (itemsize) {
    case 1: return is_signed ? TP_INT8 : TP_UINT8;
    case 2: return is_signed ? TP_INT16 : TP_UINT16;
    case 4: return is_signed ? TP_INT32 : TP_UINT32;
    case 8: return is_signed ? TP_INT64 : TP_UINT64;
    default: return TP_NO_DTYPE;
    }
}

/* The struct module's notation; 'l' is as wide as the item says. */
static format_status parse_format(const char *format, Py_ssize_t itemsize, tp_dtype *out) {
    if (!format) format = "B";
    const uint16_t one = 1;
    bool little = *(const uint8_t *)&one, swapped = false;
    if (*format && strchr("@=<>!", *format)) {
        swapped = (*format == '<' && !little) || ((*format == '>' || *format == '!') && little);
        format++;
    }
    tp_dtype d = TP_NO_DTYPE;
    if (*format && !format[1] && strchr("bhilqn", *format)) d = integer_dtype(true, itemsize);
    else if (*format && !format[1] && strchr("BHILQNc", *format)) d = integer_dtype(false, itemsize);
    else
        for (int i = 0; i < TP_NUM_DTYPES && d == TP_NO_DTYPE; i++)
            if (formats[i][0] && strcmp(formats[i], format) == 0) d = (tp_dtype)i;
    if (d == TP_NO_DTYPE || tp_itemsize(d) != itemsize) return FORMAT_UNKNOWN;
    *out = d;
    return swapped && itemsize > 1 ? FORMAT_SWAPPED : FORMAT_OK;
}

/* NumPy's scalar types keep the number inside the object; where, the buffer of the first one tells. */
const tp_py_scalar_type *tp_py_scalar_type_of(PyObject *o) {
    static tp_py_scalar_type known[32];
    static int n;
    for (int i = 0; i < n; i++)
        if (known[i].type == Py_TYPE(o)) return &known[i];
    Py_buffer view;
    if (n == TP_COUNTOF(known) || tp_py_is_ndarray(o) || !tp_py_is_numpy_scalar(o)) return NULL;
    if (PyObject_GetBuffer(o, &view, PyBUF_FULL_RO) < 0) return PyErr_Clear(), NULL;
    tp_py_scalar_type t = {.type = Py_TYPE(o), .offset = (char *)view.buf - (char *)o};
    bool fits = parse_format(view.format, view.itemsize, &t.dtype) == FORMAT_OK && view.len == view.itemsize &&
                t.offset >= (Py_ssize_t)sizeof(PyObject) && t.offset + view.itemsize <= t.type->tp_basicsize;
    PyBuffer_Release(&view);
    if (!fits) return NULL;
    Py_INCREF(t.type); /* for good: the table knows it by its address */
    known[n] = t;
    return &known[n++];
}

bool tp_py_numpy_scalar(PyObject *o, tp_dtype *dtype, tp_scalar *value) {
    const tp_py_scalar_type *t = tp_py_scalar_type_of(o);
    if (t) {
        *dtype = t->dtype;
        *value = tp_scalar_load((char *)o + t->offset, t->dtype);
        return true;
    }
    Py_buffer view; /* an array without dimensions */
    if (PyObject_GetBuffer(o, &view, PyBUF_FULL_RO) < 0) {
        PyErr_Clear();
        return false;
    }
    bool ok = parse_format(view.format, view.itemsize, dtype) == FORMAT_OK && view.len == view.itemsize;
    if (ok) *value = tp_scalar_load(view.buf, *dtype);
    PyBuffer_Release(&view);
    return ok;
}

/* ---- foreign memory as a tensor ---- */

int tp_py_warn_readonly(const char *what) {
    char text[256];
    snprintf(
        text, sizeof text,
        "The given %s is not writable, and the tensor over it shows non-writable memory: operators that write to it "
        "are refused. Copy it first to change it.",
        what);
    return PyErr_WarnEx(PyExc_UserWarning, text, 1);
}

static void release_buffer(void *context, void *data) {
    (void)data;
    if (!Py_IsInitialized()) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyBuffer_Release(context);
    PyMem_RawFree(context);
    PyGILState_Release(gil);
}

/* Strides in elements, and where the lowest element lies before the first (<= 0, bytes). */
static int element_strides(const Py_buffer *view, int64_t *sizes, int64_t *strides, int64_t *low, int64_t *high) {
    *low = *high = 0;
    bool empty = view->len == 0;
    for (int i = 0; i < view->ndim; i++) {
        sizes[i] = view->shape[i];
        if (view->strides[i] % view->itemsize && sizes[i] > 1 && !empty) {
            PyErr_SetString(PyExc_ValueError,
                            "given numpy array strides not a multiple of the element byte size. Copy the "
                            "numpy array to reallocate the memory.");
            return -1;
        }
        strides[i] = view->strides[i] / view->itemsize;
        if (empty || sizes[i] < 2) continue;
        int64_t reach = (sizes[i] - 1) * view->strides[i];
        if (reach < 0) *low += reach;
        else *high += reach;
    }
    *high += empty ? 0 : view->itemsize;
    return 0;
}

/* A tensor over nbytes at `start` that takes over the buffer; on failure the caller still has it. */
static tp_tensor *on_blob(char *start, int64_t nbytes, Py_buffer *view, tp_ints sizes, tp_ints strides, int64_t offset,
                          tp_dtype dtype) {
    tp_storage *storage = tp_storage_from_blob(TP_CPU, start, (size_t)nbytes, release_buffer, view);
    if (storage && view->readonly) storage->writes = TP_WRITES_FAIL;
    tp_tensor *t = storage ? tp_new_on_storage(storage, sizes, strides, offset, dtype) : NULL;
    if (!t) {
        if (storage) storage->deleter = tp_storage_keep_blob;
        tp_py_raise();
    }
    tp_storage_release(storage);
    return t;
}

/* A tensor that takes over the buffer; on failure the caller still has it. */
static tp_tensor *adopt_buffer(Py_buffer *view, tp_dtype dtype) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS], low, high;
    if (view->ndim > TP_MAX_DIMS || element_strides(view, sizes, strides, &low, &high) < 0) return NULL;
    if ((uintptr_t)view->buf % (uintptr_t)(tp_is_complex_dtype(dtype) ? view->itemsize / 2 : view->itemsize) &&
        view->len) {
        PyErr_SetString(PyExc_ValueError,
                        "the memory is not aligned to its element size. Copy the array to reallocate it.");
        return NULL;
    }
    return on_blob((char *)view->buf + low, high - low, view, (tp_ints){sizes, view->ndim},
                   (tp_ints){strides, view->ndim}, -low, dtype);
}

static int refuse_format(PyObject *o, format_status status, const char *format) {
    if (status == FORMAT_SWAPPED)
        PyErr_SetString(PyExc_ValueError,
                        "given numpy array has byte order different from the native byte order. Conversion "
                        "between byte orders is currently not supported.");
    else if (!tp_py_is_ndarray(o))
        PyErr_Format(PyExc_TypeError, "a buffer of %s with elements of format '%s' cannot be a tensor",
                     Py_TYPE(o)->tp_name, format ? format : "B");
    else {
        PyErr_Clear();
        PyObject *dtype = PyObject_GetAttrString(o, "dtype"),
                 *type = dtype ? PyObject_GetAttrString(dtype, "type") : NULL;
        const char *name = type && PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "unknown";
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "can't convert np.ndarray of type %s. The only supported types are: " NUMPY_TYPES ".", name);
        Py_XDECREF(type);
        Py_XDECREF(dtype);
    }
    return -1;
}

int tp_py_read_ndarray(PyObject *o, Py_buffer *view, tp_dtype *dtype) {
    if (PyObject_GetBuffer(o, view, PyBUF_FULL_RO) < 0) {
        if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_BufferError))
            refuse_format(o, FORMAT_UNKNOWN, "?");
        return -1;
    }
    format_status status = parse_format(view->format, view->itemsize, dtype);
    if (status == FORMAT_OK && view->suboffsets) status = FORMAT_UNKNOWN;
    if (status == FORMAT_OK) return 0;
    refuse_format(o, status, view->format);
    PyBuffer_Release(view);
    return -1;
}

static tp_tensor *alias(PyObject *o, bool warn_readonly, const char *what) {
    Py_buffer *view = PyMem_RawMalloc(sizeof *view);
    tp_dtype dtype;
    if (!view) return (void)PyErr_NoMemory(), NULL;
    if (tp_py_read_ndarray(o, view, &dtype) < 0) {
        PyMem_RawFree(view);
        return NULL;
    }
    bool refused = warn_readonly && view->readonly && tp_py_warn_readonly(what) < 0;
    tp_tensor *t = refused ? NULL : adopt_buffer(view, dtype);
    if (!t) {
        PyBuffer_Release(view);
        PyMem_RawFree(view);
    }
    return t;
}

tp_tensor *tp_py_alias_ndarray(PyObject *array, bool warn_readonly) {
    return alias(array, warn_readonly, "NumPy array");
}
tp_tensor *tp_py_alias_buffer(PyObject *o, bool warn_readonly) { return alias(o, warn_readonly, "buffer"); }

static PyObject *py_from_numpy(PyObject *module, PyObject *array) {
    (void)module;
    if (!tp_py_is_ndarray(array))
        return PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(array)->tp_name);
    tp_tensor *t = tp_py_lift_steal(tp_py_alias_ndarray(array, true));
    return t ? tp_py_wrap_steal(t) : NULL;
}

/* ---- frombuffer ---- */

/* The elements that offset and count leave of `bytes`; -1 with a ValueError. */
static int64_t count_elements(int64_t bytes, int64_t count, int64_t offset, int64_t itemsize) {
    long long n = count, at = offset, size = itemsize, all = bytes;
    if (bytes <= 0 || count == 0)
        PyErr_Format(PyExc_ValueError, "both buffer length (%lld) and count (%lld) must not be 0", all, n);
    else if (offset < 0 || offset >= bytes)
        PyErr_Format(PyExc_ValueError,
                     "offset (%lld bytes) must be non-negative and no greater than buffer length (%lld bytes) minus 1",
                     at, all);
    else if (count < 0 && (bytes - offset) % itemsize)
        PyErr_Format(PyExc_ValueError,
                     "buffer length (%lld bytes) after offset (%lld bytes) must be a multiple of element size (%lld)",
                     all - at, at, size);
    else if (count > 0 && count > (bytes - offset) / itemsize)
        PyErr_Format(PyExc_ValueError,
                     "requested buffer length (%lld * %lld bytes) after offset (%lld bytes) must not be greater than "
                     "actual buffer length (%lld bytes)",
                     n, size, at, all);
    else return count < 0 ? (bytes - offset) / itemsize : count;
    return -1;
}

/* The part of a plain buffer that offset and count leave, as a row of the dtype; the caller keeps `view` on failure. */
static tp_tensor *adopt_row(Py_buffer *view, tp_dtype dtype, int64_t count, int64_t offset) {
    int64_t itemsize = tp_itemsize(dtype), n = count_elements(view->len, count, offset, itemsize);
    char *start = (char *)view->buf + offset;
    if (n < 0 || (view->readonly && tp_py_warn_readonly("buffer") < 0)) return NULL;
    if ((uintptr_t)start % (uintptr_t)(tp_is_complex_dtype(dtype) ? itemsize / 2 : itemsize))
        return (void)PyErr_Format(PyExc_ValueError, "offset (%lld bytes) is not aligned to the element size (%lld)",
                                  (long long)offset, (long long)itemsize),
               NULL;
    return on_blob(start, n * itemsize, view, TP_INTS(n), TP_INTS(1), 0, dtype);
}

static tp_tensor *frombuffer(PyObject *o, tp_dtype dtype, int64_t count, int64_t offset) {
    Py_buffer *view = PyMem_RawMalloc(sizeof *view);
    if (!view) return (void)PyErr_NoMemory(), NULL;
    if (PyObject_GetBuffer(o, view, PyBUF_SIMPLE) < 0) {
        PyMem_RawFree(view);
        return NULL;
    }
    tp_tensor *t = adopt_row(view, dtype, count, offset);
    if (!t) {
        PyBuffer_Release(view);
        PyMem_RawFree(view);
    }
    return t;
}

static PyObject *py_frombuffer(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"buffer", "dtype", "count", "offset", "requires_grad", NULL};
    static const tp_py_arguments arguments = {"frombuffer", names, 1, 2};
    (void)module;
    PyObject *v[5];
    tp_dtype dtype = TP_NO_DTYPE;
    int64_t count = -1, offset = 0;
    bool requires_grad = false;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0 ||
        tp_py_take_dtype("frombuffer", v[1], &dtype) < 0 || tp_py_take_int("frombuffer", "count", v[2], &count) < 0 ||
        tp_py_take_int("frombuffer", "offset", v[3], &offset) < 0 || tp_py_take_bool(v[4], &requires_grad) < 0)
        return NULL;
    if (dtype == TP_NO_DTYPE)
        return PyErr_Format(PyExc_TypeError, "frombuffer(): argument 'dtype' must be a tensorpy.dtype, not None");
    if (!PyObject_CheckBuffer(v[0]))
        return PyErr_Format(PyExc_ValueError, "object does not implement Python buffer protocol.");
    tp_tensor *t = frombuffer(v[0], dtype, count, offset);
    if (t && requires_grad && tp_py_check(tp_set_requires_grad(t, true)) < 0) {
        tp_release(t);
        t = NULL;
    }
    return t ? tp_py_wrap_steal(t) : NULL;
}

/* ---- a tensor's memory for others ---- */

static int refuse_export(const tp_tensor *t, PyObject *cls) {
    if (tp_check_unbatched(t, "an array") < 0) return tp_py_check(-1);
    if (tp_py_refuse_wrapper(t, "numpy()") < 0) return -1;
    if (tp_is_pending(t))
        PyErr_Format(PyExc_RuntimeError,
                     "Can't call numpy() on Tensor that has %s bit set. Use tensor.resolve_%s().numpy() instead.",
                     t->keys & TP_BIT(Conjugate) ? "conjugate" : "negative",
                     t->keys & TP_BIT(Conjugate) ? "conj" : "neg");
    else if (tp_requires_grad(t) && tp_grad_enabled())
        PyErr_SetString(cls, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    else if (t->device.type != TP_DEVICE_CPU)
        PyErr_Format(PyExc_TypeError,
                     "can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                     "memory first.",
                     tp_device_type_name(t->device.type));
    else if (!formats[t->dtype][0])
        PyErr_Format(PyExc_TypeError, "Got unsupported ScalarType %s", tp_scalar_type_name(t->dtype));
    else return 0;
    return -1;
}

typedef struct {
    tp_storage *storage;   /* owned */
    Py_ssize_t geometry[]; /* sizes, then strides in bytes */
} exported;

static int check_layout(const tp_tensor *t, int flags) {
    bool row_major = tp_is_contiguous(t), column_major = true;
    int64_t step = 1;
    for (int i = 0; i < t->ndim; step *= t->sizes[i++])
        if (t->sizes[i] > 1 && t->strides[i] != step) column_major = false;
    column_major |= t->numel == 0;
    bool ok = true;
    if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS) ok = row_major;
    else if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS) ok = column_major;
    else if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS) ok = row_major || column_major;
    else if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) ok = row_major;
    if (!ok) PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous in the order that the consumer needs");
    else if (flags & PyBUF_WRITABLE && t->storage->writes == TP_WRITES_FAIL) {
        PyErr_SetString(PyExc_BufferError, "the tensor's memory is read-only");
        ok = false;
    }
    return ok ? 0 : -1;
}

static int get_buffer(PyObject *o, Py_buffer *view, int flags) {
    static char nothing[16]; /* an address for tensors without elements */
    tp_tensor *t = tp_py_tensor_borrow(o);
    view->obj = NULL;
    if (tp_py_refuse_traced(o, "its buffer") < 0) return -1;
    if (refuse_export(t, PyExc_BufferError) < 0 || check_layout(t, flags) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_BufferError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_BufferError, "a %s tensor on %s has no buffer", tp_dtype_names[t->dtype],
                         tp_device_type_name(t->device.type));
        }
        return -1;
    }
    exported *e = PyMem_Malloc(sizeof *e + 2 * (size_t)t->ndim * sizeof(Py_ssize_t));
    if (!e) return PyErr_NoMemory(), -1;
    Py_ssize_t itemsize = tp_itemsize((tp_dtype)t->dtype);
    for (int i = 0; i < t->ndim; i++) {
        e->geometry[i] = t->sizes[i];
        e->geometry[t->ndim + i] = t->strides[i] * itemsize;
    }
    e->storage = tp_storage_lend(t->storage);
    if (!e->storage) {
        PyMem_Free(e);
        return tp_py_raise(), -1;
    }
    bool shaped = (flags & PyBUF_ND) == PyBUF_ND, strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    *view = (Py_buffer){
        .buf = t->numel ? tp_data(t) : nothing,
        .obj = Py_NewRef(o),
        .len = t->numel * itemsize,
        .itemsize = itemsize,
        .readonly = t->storage->writes == TP_WRITES_FAIL,
        .ndim = shaped ? t->ndim : 1,
        .format = flags & PyBUF_FORMAT ? (char *)formats[t->dtype] : NULL,
        .shape = shaped ? e->geometry : NULL,
        .strides = strided ? e->geometry + t->ndim : NULL,
        .internal = e,
    };
    return 0;
}

static void release_export(PyObject *o, Py_buffer *view) {
    (void)o;
    exported *e = view->internal;
    tp_storage_release(e->storage);
    PyMem_Free(e);
}
PyBufferProcs tp_py_tensor_buffer = {.bf_getbuffer = get_buffer, .bf_releasebuffer = release_export};

/* ---- numpy() and the array protocols ---- */

static PyObject *import_numpy(const char *name) {
    PyObject *numpy = PyImport_ImportModule("numpy"), *function = numpy ? PyObject_GetAttrString(numpy, name) : NULL;
    Py_XDECREF(numpy);
    return function;
}

/* numpy.asarray of the tensor's memory. */
static PyObject *to_ndarray(PyObject *o) {
    if (refuse_export(tp_py_tensor_borrow(o), PyExc_RuntimeError) < 0) return NULL;
    PyObject *view = PyMemoryView_FromObject(o), *asarray = view ? import_numpy("asarray") : NULL;
    PyObject *array = asarray ? PyObject_CallOneArg(asarray, view) : NULL;
    Py_XDECREF(asarray);
    Py_XDECREF(view);
    return array;
}

/* force=True: without history, on the host. */
static PyObject *forced_ndarray(PyObject *o) {
    tp_autoref *detached = tp_detached_alias(tp_py_tensor_borrow(o));
    tp_autoref *solved = detached && tp_is_pending(detached) ? tp_resolved(detached) : tp_retain(detached);
    tp_tensor *host = solved ? tp_to_device(solved, TP_CPU, (tp_dtype)solved->dtype, false, false, TP_NO_FORMAT) : NULL;
    PyObject *wrapped = tp_py_wrap_steal(host);
    PyObject *array = wrapped ? to_ndarray(wrapped) : NULL;
    Py_XDECREF(wrapped);
    return array;
}

TP_PY_FAST_METHOD(py_numpy, "numpy") {
    static const char *const names[] = {"force", NULL};
    static const tp_py_arguments arguments = {"numpy", names, 0, 0};
    PyObject *v[1];
    bool force = false;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0 || tp_py_take_bool(v[0], &force) < 0) return NULL;
    if (tp_py_refuse_traced(self, "numpy()") < 0) return NULL;
    return force ? forced_ndarray(self) : to_ndarray(self);
}

/* array.astype(dtype, copy=copy) */
static PyObject *astype_steal(PyObject *array, PyObject *dtype, bool copy) {
    PyObject *astype = array ? PyObject_GetAttrString(array, "astype") : NULL;
    PyObject *args = astype ? PyTuple_Pack(1, dtype) : NULL,
             *kwargs = args ? Py_BuildValue("{s:O}", "copy", copy ? Py_True : Py_False) : NULL;
    PyObject *result = kwargs ? PyObject_Call(astype, args, kwargs) : NULL;
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    Py_XDECREF(astype);
    Py_XDECREF(array);
    return result;
}

TP_PY_FAST_METHOD(py_array, "__array__") {
    static const char *const names[] = {"dtype", "copy", NULL};
    static const tp_py_arguments arguments = {"__array__", names, 1, 0};
    PyObject *v[2];
    bool copy = false;
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0) return NULL;
    if (v[1] && v[1] != Py_None && tp_py_take_bool(v[1], &copy) < 0) return NULL;
    PyObject *array = to_ndarray(self);
    if (!array || ((!v[0] || v[0] == Py_None) && !copy)) return array;
    if (v[0] && v[0] != Py_None) return astype_steal(array, v[0], copy);
    PyObject *copied = PyObject_CallMethod(array, "copy", NULL);
    Py_DECREF(array);
    return copied;
}

/* The result of a NumPy function on tensors comes back as a tensor; where the package stands for torch, one of booleans
 * as torch's do: as bytes. */
static PyObject *py_array_wrap(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *array, *context = NULL, *return_scalar = NULL;
    if (!PyArg_ParseTuple(args, "O|OO:__array_wrap__", &array, &context, &return_scalar)) return NULL;
    if (!tp_py_is_ndarray(array)) return Py_NewRef(array);
    tp_autoref *t = tp_py_alias_ndarray(array, false);
    if (!t) return NULL;
    if (t->dtype != TP_BOOL || strcmp(tp_py_package, "tensorpy") == 0) return tp_py_wrap_steal(tp_take(t));
    tp_tensor *bytes = tp_view_dtype(t, TP_UINT8);
    return bytes ? tp_py_wrap_steal(bytes) : tp_py_raise();
}

/* ---- attributes ---- */

static PyObject *get_array_priority(PyObject *o, void *unused) {
    (void)o, (void)unused;
    return PyLong_FromLong(1000);
}

static PyObject *type_string(tp_dtype d) {
    static const char kinds[] = {
        [TP_BOOLEAN] = 'b', [TP_UNSIGNED] = 'u', [TP_SIGNED] = 'i', [TP_FLOATING] = 'f', [TP_COMPLEX] = 'c'};
    const uint16_t one = 1;
    char order = tp_itemsize(d) == 1 ? '|' : *(const uint8_t *)&one ? '<' : '>';
    return PyUnicode_FromFormat("%c%c%d", order, kinds[tp_dtype_categories[d]], (int)tp_itemsize(d));
}

static PyObject *get_array_interface(PyObject *o, void *unused) {
    (void)unused;
    tp_tensor *t = tp_py_tensor_borrow(o);
    if (strcmp(tp_py_package, "tensorpy") != 0) /* libraries tell NumPy's arrays from torch's by it */
        return PyErr_Format(PyExc_AttributeError, "'Tensor' object has no attribute '__array_interface__'");
    if (refuse_export(t, PyExc_AttributeError) < 0) {
        PyErr_Clear();
        return PyErr_Format(PyExc_AttributeError,
                            "this tensor has no __array_interface__: only tensors in host memory that do not "
                            "require grad, of a dtype that NumPy has, do");
    }
    int64_t strides[TP_MAX_DIMS], itemsize = tp_itemsize((tp_dtype)t->dtype);
    for (int i = 0; i < t->ndim; i++) strides[i] = t->strides[i] * itemsize;
    tp_storage *lent = tp_storage_lend(t->storage);
    if (!lent) return tp_py_raise();
    tp_storage_release(lent); /* the array keeps the tensor */
    return Py_BuildValue("{s:N,s:N,s:N,s:(KO),s:i}", "typestr", type_string((tp_dtype)t->dtype), "shape",
                         tp_py_ints_tuple(tp_sizes(t)), "strides", tp_py_ints_tuple((tp_ints){strides, t->ndim}),
                         "data", (unsigned long long)(uintptr_t)tp_data(t),
                         t->storage->writes == TP_WRITES_FAIL ? Py_True : Py_False, "version", 3);
}

static PyGetSetDef attributes[] = {
    {"__array_priority__", get_array_priority, NULL, "NumPy leaves operators between arrays and tensors to the tensor.",
     NULL},
    {"__array_interface__", get_array_interface, NULL, "NumPy's description of the memory.", NULL},
};

PyMethodDef tp_py_interop_methods[] = {
    {"numpy", TP_PY_FASTCALL(py_numpy), NULL},
    {"__array__", TP_PY_FASTCALL(py_array),
     "__array__($self, dtype=None, *, copy=None)\n--\n\nThe tensor as a NumPy array."},
    {"__array_wrap__", py_array_wrap, METH_VARARGS, NULL},
    {"__dlpack__", TP_PY_FASTCALL(tp_py_dlpack_export),
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nA DLPack capsule of the "
     "memory."},
    {"__dlpack_device__", tp_py_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nDLPack's device type and index."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef functions[] = {
    {"from_numpy", py_from_numpy, METH_O, NULL},
    {"frombuffer", TP_PY_FASTCALL(py_frombuffer), NULL},
    {"from_dlpack", TP_PY_FASTCALL(tp_py_dlpack_import), NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_interop(PyObject *m) {
    for (int i = 0; i < TP_COUNTOF(attributes); i++) {
        PyObject *descriptor = PyDescr_NewGetSet(&tp_py_tensor_type, &attributes[i]);
        if (!descriptor || PyDict_SetItemString(tp_py_tensor_type.tp_dict, attributes[i].name, descriptor) < 0)
            return -1;
        Py_DECREF(descriptor);
    }
    PyType_Modified(&tp_py_tensor_type);
    return tp_py_add_functions(m, NULL, (PyMethodDef *const[]){functions, NULL});
}
