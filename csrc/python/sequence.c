/* sequence.c: nested Python sequences as tensors.
 *
 * They are read twice. `discover` follows the first elements down to get the sizes, then walks everything once for the
 * dtype and checks the lengths; `fill` writes the numbers. Rows of exact floats, ints and bools are read without any
 * call into Python. Python code can run in between (an __index__, an own sequence), so a row is measured again after
 * each such call, and what changed under our hands is an error, never a bad read. */
#include "python/sequence.h"

#include "Functions.h"
#include "core/determinism.h"
#include "iter/iter.h"
#include "python/interop.h"
#include "python/python_key.h"
#include "prim/transfer.h"
#include "core/memory.h"

#include <string.h>

typedef struct {
    int ndim;
    int64_t sizes[TP_MAX_DIMS];
    tp_dtype dtype;   /* so far; TP_NO_DTYPE: no element seen */
    bool wants_dtype; /* infer it */
} layout;

/* ---- what an object is ---- */

bool tp_py_is_text(PyObject *o) { return PyUnicode_Check(o) || PyBytes_Check(o); }
bool tp_py_is_plain_number(PyObject *o) {
    return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyComplex_CheckExact(o);
}
/* Tensors of one element count as numbers inside a list, as in PyTorch. */
static bool is_array(PyObject *o) {
    return tp_py_is_tensor(o) ? tp_py_tensor_borrow(o)->numel != 1 : tp_py_is_ndarray(o) && !tp_py_is_numpy_scalar(o);
}
bool tp_py_is_sequence(PyObject *o) {
    if (PyList_Check(o) || PyTuple_Check(o)) return true;
    if (tp_py_is_plain_number(o) || tp_py_is_text(o) || tp_py_is_tensor(o) || PyDict_Check(o)) return false;
    return PySequence_Check(o) && !tp_py_is_numpy_scalar(o);
}

/* What the walks need of an array or tensor: sizes and dtype. The buffer is held for an array. */
typedef struct {
    int ndim;
    tp_dtype dtype;
    bool has_buffer, row_major;
    Py_buffer view;
} array_info;

static int open_array(array_info *a, PyObject *o) {
    a->has_buffer = !tp_py_is_tensor(o);
    if (!a->has_buffer) {
        const tp_tensor *t = tp_py_tensor_borrow(o);
        *a = (array_info){.ndim = t->ndim, .dtype = (tp_dtype)t->dtype};
        return 0;
    }
    if (tp_py_read_ndarray(o, &a->view, &a->dtype) < 0) return a->has_buffer = false, -1;
    a->ndim = a->view.ndim;
    int64_t step = a->view.itemsize;
    a->row_major = true;
    for (int i = a->ndim - 1; i >= 0; step *= a->view.shape[i--]) a->row_major &= a->view.strides[i] == step;
    return 0;
}
static void close_array(array_info *a) {
    if (a->has_buffer) PyBuffer_Release(&a->view);
}
#define auto_array TP_CLEANUP(close_array) array_info

static int64_t array_size(const array_info *a, PyObject *o, int dim) {
    return a->has_buffer ? a->view.shape[dim] : tp_py_tensor_borrow(o)->sizes[dim];
}

/* A list or tuple with the sequence's elements (new). */
static PyObject *as_row(PyObject *o) {
    PyObject *row = PySequence_Fast(o, "not a sequence");
    if (!row && !PyErr_ExceptionMatches(PyExc_MemoryError) && !PyErr_ExceptionMatches(PyExc_RecursionError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "could not determine the shape of object type '%s'", Py_TYPE(o)->tp_name);
    }
    return row;
}

static int too_deep(PyObject *o) {
    PyErr_Format(PyExc_ValueError, "too many dimensions '%s'", Py_TYPE(o)->tp_name);
    return -1;
}

/* ---- sizes ---- */

static int append_array_sizes(layout *l, PyObject *o) {
    auto_array a;
    if (open_array(&a, o) < 0) return -1;
    if (l->ndim + a.ndim > TP_MAX_DIMS) return too_deep(o);
    for (int i = 0; i < a.ndim; i++) l->sizes[l->ndim++] = array_size(&a, o, i);
    return 0;
}

/* Follows the first elements. */
static int discover_sizes(layout *l, PyObject *data) {
    PyObject *o = Py_NewRef(data);
    int status = 0;
    while (status == 0 && !is_array(o) && tp_py_is_sequence(o)) {
        PyObject *row = l->ndim == TP_MAX_DIMS ? (too_deep(o), NULL) : as_row(o);
        Py_DECREF(o);
        if (!row) return -1;
        Py_ssize_t n = l->sizes[l->ndim++] = PySequence_Fast_GET_SIZE(row);
        o = n ? Py_NewRef(PySequence_Fast_GET_ITEM(row, 0)) : NULL;
        Py_DECREF(row);
        if (!o) return 0;
    }
    if (is_array(o)) status = append_array_sizes(l, o);
    Py_DECREF(o);
    return status;
}

/* ---- dtypes ---- */

static int join_dtype(layout *l, tp_dtype d) {
    if (l->dtype == d) return 0;
    l->dtype = l->dtype == TP_NO_DTYPE ? d : tp_promote_dtypes(l->dtype, d);
    if (l->dtype != TP_NO_DTYPE) return 0;
    tp_py_raise();
    return -1;
}

static int cannot_infer(const layout *l, PyObject *o) {
    if (tp_py_is_text(o) && l->dtype == TP_NO_DTYPE) return too_deep(o);
    if (tp_py_is_text(o))
        return PyErr_Format(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(o)->tp_name), -1;
    PyErr_Format(PyExc_RuntimeError, "Could not infer dtype of %s", Py_TYPE(o)->tp_name);
    return -1;
}

static int element_dtype(const layout *l, PyObject *o, tp_dtype *out) {
    tp_scalar value;
    if (tp_py_is_tensor(o)) {
        *out = (tp_dtype)tp_py_tensor_borrow(o)->dtype;
        return 0;
    }
    if (tp_py_is_numpy_scalar(o)) return tp_py_numpy_scalar(o, out, &value) ? 0 : cannot_infer(l, o);
    if (PyBool_Check(o)) *out = TP_BOOL;
    else if (PyFloat_Check(o)) *out = tp_default_dtype();
    else if (PyLong_Check(o)) *out = TP_INT64;
    else if (PyComplex_Check(o)) *out = tp_to_complex_dtype(tp_default_dtype());
    else return cannot_infer(l, o);
    return 0;
}

/* How many elements from `i` on are of exactly this type; they share a dtype. */
static Py_ssize_t run_of_type(PyObject *const *items, Py_ssize_t i, Py_ssize_t n, PyTypeObject *type) {
    Py_ssize_t start = i;
    while (i < n && Py_IS_TYPE(items[i], type)) i++;
    return i - start;
}

static int row_changed(void) {
    PyErr_SetString(PyExc_RuntimeError, "tensor(): the data changed size while it was read");
    return -1;
}

static int row_dtype(layout *l, PyObject *row) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(row);
    for (Py_ssize_t i = 0; i < n;) {
        PyObject *o = PySequence_Fast_GET_ITEM(row, i);
        tp_dtype d;
        if (tp_py_is_sequence(o)) { /* where the first element was a number */
            const char *wanted = l->dtype != TP_NO_DTYPE && tp_is_floating_dtype(l->dtype)
                                     ? "must be real number, not %s"
                                     : "'%s' object cannot be interpreted as an integer";
            PyErr_Format(PyExc_TypeError, wanted, Py_TYPE(o)->tp_name);
            return -1;
        }
        bool of_type = tp_py_is_plain_number(o) || tp_py_scalar_type_of(o);
        Py_ssize_t same = of_type ? run_of_type(PySequence_Fast_ITEMS(row), i, n, Py_TYPE(o)) : 1;
        Py_INCREF(o);
        int status = l->wants_dtype && (element_dtype(l, o, &d) < 0 || join_dtype(l, d) < 0) ? -1 : 0;
        Py_DECREF(o);
        if (status < 0 || (!(i & 0x3fff) && PyErr_CheckSignals() < 0)) return -1;
        if (PySequence_Fast_GET_SIZE(row) != n) return row_changed();
        i += same;
    }
    return 0;
}

static int ragged(const layout *l, int depth, Py_ssize_t got) {
    PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %zd)", (long long)l->sizes[depth],
                 depth, got);
    return -1;
}

static int warn_of_arrays(void) {
    return tp_py_check(tp_warn_once(
        "Creating a tensor from a list of numpy.ndarrays is extremely slow: they are read number by number, "
        "where numpy.array() of the list is copied whole"));
}

static int walk_array(layout *l, PyObject *o, int depth) {
    auto_array a;
    if (open_array(&a, o) < 0) return -1;
    if (a.has_buffer && warn_of_arrays() < 0) return -1;
    for (int i = 0; i < a.ndim && depth + i < l->ndim; i++)
        if (array_size(&a, o, i) != l->sizes[depth + i]) return ragged(l, depth + i, array_size(&a, o, i));
    if (a.ndim != l->ndim - depth) {
        PyErr_Format(PyExc_ValueError, "expected %d dimensions at dim %d (got %d)", l->ndim - depth, depth, a.ndim);
        return -1;
    }
    return l->wants_dtype ? join_dtype(l, a.dtype) : 0;
}

static int walk(layout *l, PyObject *o, int depth) {
    if (is_array(o)) return walk_array(l, o, depth);
    if (!tp_py_is_sequence(o)) {
        PyErr_SetString(PyExc_TypeError, "not a sequence");
        return -1;
    }
    PyObject *row = as_row(o);
    if (!row) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(row);
    int status = n == l->sizes[depth] ? 0 : ragged(l, depth, n);
    if (status == 0 && depth == l->ndim - 1) status = row_dtype(l, row);
    for (Py_ssize_t i = 0; status == 0 && depth < l->ndim - 1 && i < n; i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(row, i));
        status = walk(l, item, depth + 1);
        Py_DECREF(item);
        if (status == 0 && PySequence_Fast_GET_SIZE(row) != n) status = row_changed();
    }
    Py_DECREF(row);
    return status;
}

static int discover(layout *l, PyObject *data) {
    if (tp_py_is_text(data)) {
        PyErr_Format(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(data)->tp_name);
        return -1;
    }
    if (discover_sizes(l, data) < 0) return -1;
    if (l->ndim > 0) return walk(l, data, 0);
    tp_dtype d;
    return !l->wants_dtype ? 0 : element_dtype(l, data, &d) < 0 ? -1 : join_dtype(l, d);
}

/* ---- elements ---- */

static int overflow_error(PyObject *o) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "Overflow when unpacking long long: %.60R", o);
    return -1;
}

static int integer_to_scalar(PyObject *o, tp_dtype d, tp_scalar *s) {
    if (d == TP_UINT64) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow > 0 || (overflow == 0 && value >= 0)) {
            *s = (tp_scalar){.kind = TP_SCALAR_UINT, .u = PyLong_AsUnsignedLongLong(o)};
            return PyErr_Occurred() ? -1 : 0;
        }
    }
    if (d >= TP_FLOAT16) *s = (tp_scalar){.kind = TP_SCALAR_FLOAT, .f = PyLong_AsDouble(o)};
    else if (d == TP_BOOL) *s = (tp_scalar){.kind = TP_SCALAR_BOOL, .b = PyObject_IsTrue(o) > 0};
    else *s = (tp_scalar){.kind = TP_SCALAR_INT, .i = PyLong_AsLongLong(o)};
    return PyErr_Occurred() ? overflow_error(o) : 0;
}

/* An object that is no number itself: one that converts to one, with the dtype given. */
static int converted_to_scalar(PyObject *o, tp_dtype d, tp_scalar *s) {
    if (d >= TP_FLOAT16) {
        *s = (tp_scalar){.kind = TP_SCALAR_FLOAT, .f = PyFloat_AsDouble(o)};
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *index = PyNumber_Index(o);
    int status = index ? integer_to_scalar(index, d, s) : -1;
    Py_XDECREF(index);
    return status;
}

static int tensor_to_scalar(PyObject *o, tp_scalar *s) {
    tp_tensor *t = tp_py_tensor_borrow(o);
    if (t->numel == 1) return tp_py_check(tp_item(t, s));
    PyErr_SetString(PyExc_TypeError, "only tensors of a single element can be converted to a number");
    return -1;
}

static int to_scalar(PyObject *o, tp_dtype d, tp_scalar *s) {
    tp_dtype own;
    if (PyBool_Check(o)) *s = (tp_scalar){.kind = TP_SCALAR_BOOL, .b = o == Py_True};
    else if (PyFloat_Check(o)) *s = (tp_scalar){.kind = TP_SCALAR_FLOAT, .f = PyFloat_AS_DOUBLE(o)};
    else if (PyLong_Check(o)) return integer_to_scalar(o, d, s);
    else if (PyComplex_Check(o)) {
        Py_complex c = PyComplex_AsCComplex(o);
        *s = (tp_scalar){.kind = TP_SCALAR_COMPLEX, .c = CMPLX(c.real, c.imag)};
    } else if (tp_py_is_tensor(o)) return tensor_to_scalar(o, s);
    else if (Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_index) return converted_to_scalar(o, d, s);
    else if (tp_py_is_numpy_scalar(o) && tp_py_numpy_scalar(o, &own, s)) return 0;
    else if (tp_py_is_text(o)) return too_deep(o);
    else return converted_to_scalar(o, d, s);
    return 0;
}

static int store(PyObject *o, tp_dtype d, char *to) {
    tp_scalar s;
    if (to_scalar(o, d, &s) < 0) return -1;
    if (s.kind == TP_SCALAR_COMPLEX && !tp_is_complex_dtype(d) && d != TP_BOOL) {
        PyErr_Format(PyExc_TypeError,
                     d < TP_FLOAT16 ? "'%s' object cannot be interpreted as an integer" : "must be real number, not %s",
                     Py_TYPE(o)->tp_name);
        return -1;
    }
    if (!tp_is_floating_dtype(d) && !tp_is_complex_dtype(d) && tp_py_check(tp_scalar_check_fits(&s, d)) < 0) return -1;
    tp_scalar_store(&s, d, to);
    return 0;
}

/* Exact floats or ints into their own dtypes, as far as they go: how many were written. */
#define FILL_RUN(name, type, test, value)                                                  \
    static Py_ssize_t name(PyObject *const *items, Py_ssize_t i, Py_ssize_t n, char *to) { \
        type *out = (type *)to;                                                            \
        for (; i < n && test(items[i]); i++) out[i] = (type)value(items[i]);               \
        return i;                                                                          \
    }
FILL_RUN(fill_float32, float, PyFloat_CheckExact, PyFloat_AS_DOUBLE)
FILL_RUN(fill_float64, double, PyFloat_CheckExact, PyFloat_AS_DOUBLE)
#define IS_TRUE(o) ((o) == Py_True)
FILL_RUN(fill_bool, bool, PyBool_Check, IS_TRUE)

static Py_ssize_t fill_int64(PyObject *const *items, Py_ssize_t i, Py_ssize_t n, char *to) {
    int64_t *out = (int64_t *)to;
    for (; i < n && PyLong_CheckExact(items[i]); i++) {
        int overflow;
        out[i] = PyLong_AsLongLongAndOverflow(items[i], &overflow);
        if (tp_unlikely(overflow)) break;
    }
    return i;
}

static Py_ssize_t fill_run(PyObject *const *items, Py_ssize_t i, Py_ssize_t n, tp_dtype d, char *to) {
    switch (d) {
    case TP_FLOAT32: return fill_float32(items, i, n, to);
    case TP_FLOAT64: return fill_float64(items, i, n, to);
    case TP_INT64: return fill_int64(items, i, n, to);
    case TP_BOOL: return fill_bool(items, i, n, to);
    default: return i;
    }
}

/* The same for NumPy scalars of the dtype. */
static Py_ssize_t fill_numpy(PyObject *const *items, Py_ssize_t i, Py_ssize_t n, tp_dtype d, char *to) {
    const tp_py_scalar_type *t = i < n ? tp_py_scalar_type_of(items[i]) : NULL;
    if (!t || t->dtype != d) return i;
    size_t size = (size_t)tp_itemsize(d);
    for (; i < n && Py_IS_TYPE(items[i], t->type); i++)
        memcpy(to + (size_t)i * size, (const char *)items[i] + t->offset, size);
    return i;
}

static int fill_row(PyObject *row, tp_dtype d, char *to) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(row);
    int64_t itemsize = tp_itemsize(d);
    for (Py_ssize_t i = 0;; i++) {
        PyObject *const *items = PySequence_Fast_ITEMS(row);
        i = fill_numpy(items, fill_run(items, i, n, d, to), n, d, to);
        if (i == n) return 0;
        PyObject *o = Py_NewRef(PySequence_Fast_GET_ITEM(row, i));
        int status = store(o, d, to + i * itemsize);
        Py_DECREF(o);
        if (status < 0) return -1;
        if (PySequence_Fast_GET_SIZE(row) != n) return row_changed();
    }
}

/* An array of the result's dtype without gaps: its bytes. 1 done, 0 not of this form, -1 raised. */
static int fill_bytes(const tp_tensor *result, tp_ints sizes, PyObject *o, char *to) {
    auto_array a;
    if (open_array(&a, o) < 0) return -1;
    if (!a.has_buffer || !a.row_major || (int)a.dtype != result->dtype || a.ndim != sizes.size) return 0;
    for (int i = 0; i < a.ndim; i++)
        if (a.view.shape[i] != sizes.data[i]) return 0;
    memcpy(to, a.view.buf, (size_t)a.view.len);
    return 1;
}

static int fill_array(tp_tensor *result, int depth, PyObject *o, char *to) {
    tp_ints sizes = {result->sizes + depth, result->ndim - depth}, strides = {result->strides + depth, sizes.size};
    int done = tp_py_is_tensor(o) ? 0 : fill_bytes(result, sizes, o, to);
    if (done) return done < 0 ? -1 : 0;
    tp_autoref *from = tp_py_is_tensor(o) ? tp_retain(tp_py_tensor_borrow(o)) : tp_py_alias_ndarray(o, false);
    if (!from) return -1;
    if (from->ndim != sizes.size) return row_changed();
    for (int i = 0; i < from->ndim; i++)
        if (from->sizes[i] != sizes.data[i]) return row_changed();
    tp_autoref *part = tp_new_alias(result, sizes, strides, to - (char *)result->storage->data);
    if (!part) return tp_py_check(-1);
    if (from->device.type == TP_DEVICE_CPU && tp_has_memory(from)) return tp_py_check(tp_copy_data(part, from));
    return tp_py_check(tp_copy_(part, from, false));
}

static int fill(tp_tensor *result, int depth, PyObject *o, char *to) {
    if (is_array(o)) return fill_array(result, depth, o, to);
    PyObject *row = as_row(o);
    if (!row) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(row);
    int status = n == result->sizes[depth] ? 0 : row_changed();
    int64_t step = result->strides[depth] * tp_itemsize((tp_dtype)result->dtype);
    if (status == 0 && depth == result->ndim - 1) status = fill_row(row, (tp_dtype)result->dtype, to);
    else
        for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
            PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(row, i));
            status = is_array(item) || tp_py_is_sequence(item) ? fill(result, depth + 1, item, to + i * step)
                                                               : row_changed();
            Py_DECREF(item);
            if (status == 0 && PySequence_Fast_GET_SIZE(row) != n) status = row_changed();
        }
    Py_DECREF(row);
    return status;
}

/* ---- the tensor ---- */

tp_tensor *tp_py_from_sequence(PyObject *data, tp_dtype dtype) {
    layout l = {.dtype = dtype, .wants_dtype = dtype == TP_NO_DTYPE};
    if (discover(&l, data) < 0) return NULL;
    if (l.dtype == TP_NO_DTYPE) l.dtype = tp_default_dtype();
    tp_autoref *t = tp_new_empty((tp_ints){l.sizes, l.ndim}, l.dtype, TP_CPU);
    if (!t) {
        tp_py_raise();
        return NULL;
    }
    int status = l.ndim == 0 ? store(data, l.dtype, tp_data(t)) : fill(t, 0, data, tp_data(t));
    return status < 0 ? NULL : tp_take(t);
}
