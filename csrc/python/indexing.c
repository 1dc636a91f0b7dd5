/* indexing.c: t[...], t[...] = value, len, in.
 *
 * A single int or slice goes straight to select or slice; a tuple of ints, slices, None and Ellipsis that nothing
 * records gradients for is one as_strided. Any other index becomes a list of items: their basic part gives the chain of
 * views that PyTorch makes, and what is left (masks, index tensors) goes to index and index_put_. */
#include "python/common.h"
#include "python/overrides.h"
#include "python/interop.h"

#include "Functions.h"
#include "autograd/node.h"
#include "batched/batched.h"
#include "core/layout.h"
#include "iter/iter.h"

#include <math.h>

#define MAX_ITEMS (2 * TP_MAX_DIMS + 1)

typedef enum { ITEM_INT, ITEM_SLICE, ITEM_NEW_AXIS, ITEM_ELLIPSIS, ITEM_BOOL, ITEM_TENSOR } item_kind;

typedef struct {
    item_kind kind;
    bool truth;
    int64_t start, stop, step; /* start is the int of ITEM_INT */
    tp_tensor *index;          /* owned */
} item;

typedef struct {
    int nitems, consumed; /* consumed: dimensions that the items speak of */
    bool advanced;
    item items[MAX_ITEMS];
} key_items;

static void free_items(key_items *k) {
    for (int i = 0; i < k->nitems; i++) tp_release(k->items[i].index);
}
#define auto_items TP_CLEANUP(free_items) key_items

/* ---- reading an index ---- */

static tp_tensor *raise_null(tp_tensor *t) {
    if (!t) tp_py_raise();
    return t;
}

static int64_t slice_length(const item *s, int64_t size, int64_t *from) {
    int64_t start = s->start < 0 ? s->start + size : s->start, stop = s->stop < 0 ? s->stop + size : s->stop;
    start = start < 0 ? 0 : start > size ? size : start;
    stop = stop < start ? start : stop > size ? size : stop;
    *from = start;
    int64_t n = stop - start;
    return s->step == 1 ? n : n / s->step + (n % s->step != 0);
}

/* A slice of sizes that are expressions, as operators get them; takes nothing over. */
static PyObject *passed_slice(PyObject *o) {
    PySliceObject *slice = (PySliceObject *)o;
    PyObject *const ends[3] = {slice->start, slice->stop, slice->step};
    PyObject *passed[3] = {NULL, NULL, NULL}, *made = NULL;
    int n = 0;
    for (; n < 3; n++) {
        passed[n] = tp_py_is_symbolic(ends[n]) ? tp_py_symbolic_passed(ends[n]) : Py_NewRef(ends[n]);
        if (!passed[n]) break;
    }
    if (n == 3) made = PySlice_New(passed[0], passed[1], passed[2]);
    for (int i = 0; i < 3; i++) Py_XDECREF(passed[i]);
    return made;
}

static int read_slice(PyObject *o, item *out) {
    PySliceObject *slice = (PySliceObject *)o;
    if (tp_py_is_symbolic(slice->start) || tp_py_is_symbolic(slice->stop) || tp_py_is_symbolic(slice->step)) {
        PyObject *passed = passed_slice(o);
        int status = passed ? read_slice(passed, out) : -1;
        Py_XDECREF(passed);
        return status;
    }
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(o, &start, &stop, &step) < 0) return -1;
    if (step < 0) return PyErr_SetString(PyExc_ValueError, "step must be greater than zero"), -1;
    *out = (item){.kind = ITEM_SLICE, .start = start, .stop = stop, .step = step};
    return 0;
}

static int read_int(PyObject *o, item *out) {
    int overflow;
    *out = (item){.kind = ITEM_INT, .start = PyLong_AsLongLongAndOverflow(o, &overflow)};
    if (overflow) PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
    return overflow ? -1 : 0;
}

/* Takes over `index`; NULL: an exception is set. */
static int use_tensor_steal(tp_tensor *index, item *out) {
    if (!index) return -1;
    tp_dtype d = (tp_dtype)index->dtype;
    *out = (item){.kind = ITEM_TENSOR, .index = index};
    bool number = index->ndim == 0 && tp_is_integral_dtype(d); /* stands for itself, of whatever width */
    if (d != TP_BOOL && d != TP_UINT8 && d != TP_INT32 && d != TP_INT64 && !number)
        return PyErr_SetString(PyExc_IndexError, "tensors used as indices must be long, int, byte or bool tensors"), -1;
    if (index->ndim > 0 || tp_is_batched(index)) return 0;
    tp_scalar value;
    if (tp_item(index, &value) < 0) return tp_py_check(-1);
    out->kind = d == TP_BOOL || d == TP_UINT8 ? ITEM_BOOL : ITEM_INT;
    out->truth = tp_scalar_bool(&value);
    out->start = tp_scalar_int(&value);
    tp_release(tp_take(out->index));
    return 0;
}

static tp_tensor *sequence_tensor(PyObject *o, tp_device device) {
    tp_autoref *t = tp_py_tensor_from_data(o, TP_NO_DTYPE, TP_CPU);
    if (!t) return NULL;
    bool integer = tp_is_integral_dtype((tp_dtype)t->dtype);
    tp_dtype dtype = t->numel == 0 && tp_is_floating(t) ? TP_INT64
                     : integer && t->dtype != TP_UINT8  ? TP_INT64
                                                        : (tp_dtype)t->dtype;
    tp_tensor *index =
        tp_to_device(t, device.type == TP_DEVICE_META ? TP_CPU : device, dtype, false, false, TP_NO_FORMAT);
    if (!index) tp_py_raise();
    return index;
}

static int read_item(PyObject *o, const tp_tensor *self, item *out) {
    if (PyBool_Check(o)) *out = (item){.kind = ITEM_BOOL, .truth = o == Py_True};
    else if (PyLong_Check(o)) return read_int(o, out);
    else if (PySlice_Check(o)) return read_slice(o, out);
    else if (o == Py_None) *out = (item){.kind = ITEM_NEW_AXIS};
    else if (o == Py_Ellipsis) *out = (item){.kind = ITEM_ELLIPSIS};
    else if (tp_py_is_tensor(o)) return use_tensor_steal(tp_retain(tp_py_tensor_borrow(o)), out);
    else if (!tp_py_is_numpy_scalar(o) && PySequence_Check(o))
        return use_tensor_steal(sequence_tensor(o, self->device), out);
    else if (PyIndex_Check(o)) {
        PyObject *index = tp_py_is_symbolic(o) ? tp_py_symbolic_passed(o) : PyNumber_Index(o);
        int status = index ? read_int(index, out) : -1;
        Py_XDECREF(index);
        return status;
    } else if (tp_py_is_numpy_scalar(o) || tp_py_is_ndarray(o)) {
        tp_dtype d;
        tp_scalar value;
        if (tp_py_numpy_scalar(o, &d, &value) && d == TP_BOOL) {
            *out = (item){.kind = ITEM_BOOL, .truth = value.b};
            return 0;
        }
        return PyErr_Format(PyExc_IndexError,
                            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
                            "valid indices (got %s)",
                            Py_TYPE(o)->tp_name),
               -1;
    } else
        return PyErr_Format(PyExc_IndexError,
                            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
                            "valid indices (got %s)",
                            Py_TYPE(o)->tp_name),
               -1;
    return 0;
}

static int too_many_indices(const tp_tensor *self) {
    PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %d", self->ndim);
    return -1;
}

static int add_item(key_items *k, PyObject *o, const tp_tensor *self) {
    if (k->nitems == MAX_ITEMS) return too_many_indices(self);
    item *it = &k->items[k->nitems];
    it->index = NULL;
    int status = read_item(o, self, it);
    k->nitems++; /* also after an error: it may own a tensor */
    if (status < 0) return -1;
    switch (it->kind) {
    case ITEM_INT:
    case ITEM_SLICE: k->consumed++; break;
    case ITEM_TENSOR:
        k->consumed += it->index->dtype == TP_BOOL || it->index->dtype == TP_UINT8 ? it->index->ndim : 1;
        k->advanced = true;
        break;
    case ITEM_BOOL: k->advanced = true; break;
    default: break;
    }
    return 0;
}

/* Whether a sequence stands for a tuple, as in PyTorch: it is short and one of its items is more than a number. */
static int is_like_tuple(PyObject *key) {
    if (tp_py_is_tensor(key) || PyUnicode_Check(key) || !PyList_Check(key) || PyList_GET_SIZE(key) >= 32) return 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); i++) {
        PyObject *o = PyList_GET_ITEM(key, i);
        if (!tp_py_is_tensor(o) && !PySequence_Check(o) && !PySlice_Check(o) && o != Py_Ellipsis && o != Py_None)
            continue;
        return PyErr_WarnEx(PyExc_UserWarning,
                            "Using a non-tuple sequence for multidimensional indexing is deprecated: write "
                            "x[tuple(seq)] for what this does, or x[tensorpy.tensor(seq)] for what NumPy does",
                            1) < 0
                   ? -1
                   : 1;
    }
    return 0;
}

static int read_tuple(key_items *k, PyObject *tuple, const tp_tensor *self) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (add_item(k, PyTuple_GET_ITEM(tuple, i), self) < 0) return -1;
    return 0;
}

static int read_key(key_items *k, PyObject *key, const tp_tensor *self) {
    k->nitems = k->consumed = 0;
    k->advanced = false;
    int like = PyTuple_Check(key) ? 1 : is_like_tuple(key);
    if (like < 0) return -1;
    PyObject *tuple = like ? PySequence_Tuple(key) : NULL;
    if (like && !tuple) return -1;
    int status = like ? read_tuple(k, tuple, self) : add_item(k, key, self);
    Py_XDECREF(tuple);
    if (status < 0) return -1;
    return k->consumed > self->ndim ? too_many_indices(self) : 0;
}

/* ---- the view that the basic items give ---- */

/* How the items walk: `at` is a dimension of the view so far, `from` the one of self after it. */
typedef struct {
    int at, from;
    bool ellipsis;
    int nlist;
    tp_tensor *list[TP_MAX_DIMS]; /* what index() gets; NULL: all of a dimension; owned */
} walk;

static void free_walk(walk *w) {
    for (int i = 0; i < w->nlist; i++) tp_release(w->list[i]);
}
#define auto_walk TP_CLEANUP(free_walk) walk

static int skip_dims(walk *w, int n, tp_tensor *index_steal) {
    if (w->nlist + (n ? n : 1) > TP_MAX_DIMS) {
        tp_release(index_steal);
        return PyErr_SetString(PyExc_IndexError, "too many indices: a tensor has at most 64 dimensions"), -1;
    }
    if (index_steal) w->list[w->nlist++] = index_steal;
    else
        for (int i = 0; i < n; i++) w->list[w->nlist++] = NULL;
    w->at += n;
    return 0;
}

/* True selects the one place of a new dimension, False none. */
static tp_tensor *bool_index(bool truth, tp_device device) {
    tp_autoref *t = tp_zeros(TP_INTS(truth), TP_INT64, TP_NO_LAYOUT, device, -1);
    if (!t) tp_py_raise();
    return tp_take(t);
}

static int check_int(const tp_tensor *self, int dim, int64_t i) {
    int64_t size = self->sizes[dim];
    if (i >= -size && i < size) return 0;
    PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for dimension %d with size %lld", (long long)i, dim,
                 (long long)size);
    return -1;
}

/* Moves past an item that takes no part in the view: an index tensor, an Ellipsis. */
static int walk_past(const key_items *k, const item *it, const tp_tensor *self, walk *w) {
    if (it->kind == ITEM_ELLIPSIS) {
        int n = w->ellipsis ? 0 : self->ndim - k->consumed;
        w->ellipsis = true;
        w->from += n;
        return n ? skip_dims(w, n, NULL) : 0;
    }
    int n = it->index->dtype == TP_BOOL || it->index->dtype == TP_UINT8 ? it->index->ndim : 1;
    w->from += n;
    return skip_dims(w, n, tp_retain(it->index));
}

static bool is_whole(const item *it, int64_t size) {
    int64_t from;
    return it->step == 1 && slice_length(it, size, &from) == size;
}

/* View by view. `*view` starts as a reference to self. */
static int chain_item(const item *it, const tp_tensor *self, walk *w, tp_tensor **view) {
    tp_tensor *next;
    if (it->kind == ITEM_INT) next = tp_select_int(*view, w->at, it->start);
    else if (it->kind == ITEM_SLICE) {
        if (is_whole(it, self->sizes[w->from])) return w->from++, skip_dims(w, 1, NULL);
        next = tp_slice_Tensor(*view, w->at, TP_SOME_INT(it->start), TP_SOME_INT(it->stop), it->step);
    } else next = tp_unsqueeze(*view, w->at);
    tp_release(*view);
    *view = next;
    if (!next) return tp_py_check(-1);
    w->from += it->kind == ITEM_INT || it->kind == ITEM_SLICE;
    if (it->kind == ITEM_INT) return 0;
    if (it->kind != ITEM_BOOL) return skip_dims(w, 1, NULL);
    tp_tensor *index = bool_index(it->truth, self->device);
    return index ? skip_dims(w, 1, index) : -1;
}

static int walk_chain(const key_items *k, tp_tensor *self, walk *w, tp_tensor **view) {
    for (int i = 0; i < k->nitems; i++) {
        const item *it = &k->items[i];
        if (it->kind == ITEM_INT && check_int(self, w->from, it->start) < 0) return -1;
        bool past = it->kind == ITEM_ELLIPSIS || it->kind == ITEM_TENSOR;
        if ((past ? walk_past(k, it, self, w) : chain_item(it, self, w, view)) < 0) return -1;
    }
    return 0;
}

/* Whether one as_strided may stand for the chain: no layer would see the difference. */
static bool may_restride(const tp_tensor *self) {
    return !tp_tls.include && tp_has_memory(self) && !(tp_grad_enabled() && tp_requires_grad(self));
}

/* as_strided takes no strides that lead back. NULL: it has to be the chain, or an exception is set. */
static tp_tensor *restrided(tp_tensor *self, const int64_t *sizes, const int64_t *strides, int64_t n, int64_t offset) {
    for (int64_t i = 0; i < n; i++)
        if (strides[i] < 0) return NULL;
    return raise_null(tp_as_strided(self, (tp_ints){sizes, n}, (tp_ints){strides, n}, TP_SOME_INT(offset)));
}

/* The basic part: self itself (a new reference) where nothing changes. */
static tp_tensor *basic_view(const key_items *k, tp_tensor *self, walk *w) {
    tp_autoref *view = tp_retain(self);
    return walk_chain(k, self, w, &view) < 0 ? NULL : tp_take(view);
}

/* ---- reading ---- */

/* How many dimensions a tuple of ints, slices, None and one Ellipsis speaks of; -1 if anything else is in it. */
static int count_basic(PyObject *key) {
    int consumed = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
        PyObject *o = PyTuple_GET_ITEM(key, i);
        if (PyLong_CheckExact(o) || PySlice_Check(o)) consumed++;
        else if (o == Py_Ellipsis) ellipses++;
        else if (o != Py_None) return -1;
    }
    return ellipses > 1 ? -1 : consumed;
}

/* The sizes, strides and offset (elements) that a basic tuple gives; `rest` dimensions go to the Ellipsis or the end.
 * Returns the number of dimensions, or -1. */
static int tuple_geometry(PyObject *key, const tp_tensor *self, int rest, int64_t *sizes, int64_t *strides,
                          int64_t *offset) {
    int from = 0, n = 0;
    item it;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
        PyObject *o = PyTuple_GET_ITEM(key, i);
        int64_t skipped;
        if (PyLong_CheckExact(o)) {
            if (read_int(o, &it) < 0 || check_int(self, from, it.start) < 0) return -1;
            *offset += (it.start < 0 ? it.start + self->sizes[from] : it.start) * self->strides[from];
            from++;
        } else if (PySlice_Check(o)) {
            if (read_slice(o, &it) < 0) return -1;
            sizes[n] = slice_length(&it, self->sizes[from], &skipped);
            if (__builtin_mul_overflow(self->strides[from], it.step, &strides[n])) strides[n] = 0; /* of size 0 or 1 */
            *offset += skipped * self->strides[from++];
            n++;
        } else if (o == Py_None) {
            sizes[n] = 1;
            strides[n++] = from < self->ndim ? self->sizes[from] * self->strides[from] : 1;
        } else
            for (; rest > 0; rest--, n++, from++) sizes[n] = self->sizes[from], strides[n] = self->strides[from];
    }
    for (; rest > 0; rest--, n++, from++) sizes[n] = self->sizes[from], strides[n] = self->strides[from];
    return n;
}

/* tp_storage_offset without its division; an itemsize is a power of two. */
static int64_t first_element(const tp_tensor *t) {
    return t->byte_offset >> __builtin_ctzll((uint64_t)tp_itemsize((tp_dtype)t->dtype));
}

/* The offset that a tuple of plain ints gives; false if an item is anything else or out of range: the general way knows
 * what to do, or say. */
static bool ints_geometry(PyObject *key, const tp_tensor *self, int64_t *offset) {
    Py_ssize_t n = PyTuple_GET_SIZE(key);
    if (n > self->ndim) return false;
    for (Py_ssize_t d = 0; d < n; d++) {
        PyObject *o = PyTuple_GET_ITEM(key, d);
        int overflow;
        if (!PyLong_CheckExact(o)) return false;
        int64_t i = PyLong_AsLongLongAndOverflow(o, &overflow), size = self->sizes[d];
        if (i < 0) i += size;
        if (tp_unlikely(overflow || i < 0 || i >= size)) return false;
        *offset += i * self->strides[d];
    }
    return true;
}

/* One view for a basic tuple of several items that no gradient is recorded for. NULL without an exception: not of this
 * form. */
static tp_tensor *restrided_by_tuple(tp_tensor *self, PyObject *key) {
    Py_ssize_t nitems = PyTuple_GET_SIZE(key);
    if (nitems < 2 || !may_restride(self)) return NULL;
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS], first = first_element(self), offset = first;
    if (ints_geometry(key, self, &offset))
        return restrided(self, self->sizes + nitems, self->strides + nitems, self->ndim - nitems, offset);
    int consumed = nitems + self->ndim > TP_MAX_DIMS ? -1 : count_basic(key);
    if (consumed < 0 || consumed > self->ndim) return NULL;
    offset = first;
    int n = tuple_geometry(key, self, self->ndim - consumed, sizes, strides, &offset);
    return n < 0 ? NULL : restrided(self, sizes, strides, n, offset);
}

static PyObject *subscript_general(tp_tensor *self, PyObject *key) {
    auto_items k;
    auto_walk w = {0};
    if (read_key(&k, key, self) < 0) return NULL;
    tp_autoref *view = basic_view(&k, self, &w);
    if (!view) return NULL;
    if (k.advanced) return tp_py_wrap_steal(tp_index_Tensor(view, (tp_tensors){w.list, w.nlist}));
    return tp_py_wrap_steal(view == self ? tp_alias(self) : tp_take(view));
}

static int zero_dim_error(void) {
    PyErr_SetString(PyExc_IndexError,
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                    "convert a 0-dim tensor to a number");
    return -1;
}

static tp_tensor *select_first(tp_tensor *t, PyObject *key) {
    item it;
    if (read_int(key, &it) < 0) return NULL;
    if (tp_unlikely(t->ndim == 0)) return (void)zero_dim_error(), NULL;
    if (tp_unlikely(check_int(t, 0, it.start) < 0)) return NULL;
    tp_tensor *view = tp_select_int(t, 0, it.start);
    if (tp_unlikely(!view)) tp_py_raise();
    return view;
}

static PyObject *plain_subscript(PyObject *o, PyObject *key) {
    tp_tensor *t = tp_py_tensor_borrow(o);
    if (PyLong_CheckExact(key)) {
        tp_tensor *view = select_first(t, key);
        return view ? tp_py_wrap_steal(view) : NULL;
    }
    if (PySlice_Check(key)) {
        item it;
        if (read_slice(key, &it) < 0) return NULL;
        if (t->ndim == 0)
            return PyErr_SetString(PyExc_IndexError, "slice() cannot be applied to a 0-dim tensor."), NULL;
        return tp_py_wrap_steal(tp_slice_Tensor(t, 0, TP_SOME_INT(it.start), TP_SOME_INT(it.stop), it.step));
    }
    tp_tensor *view = PyTuple_CheckExact(key) ? restrided_by_tuple(t, key) : NULL;
    if (view) return tp_py_wrap_steal(view);
    return tp_unlikely(PyErr_Occurred() != NULL) ? NULL : subscript_general(t, key);
}

/* The key is no index; it, or an item of it, may have a __torch_function__ that answers. */
TP_COLD static PyObject *subscript_of_stand_in(PyObject *o, PyObject *key) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool asked = tp_py_asks_any(NULL, &key, 1, NULL);
    if (!asked) return PyErr_Restore(type, value, traceback), NULL;
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
    return tp_py_ask_method("__getitem__", o, &key, 1, NULL);
}

static PyObject *subscript(PyObject *o, PyObject *key) {
    if (tp_likely(Py_TYPE(o) == &tp_py_tensor_type && !tp_tls.asked)) {
        PyObject *result = plain_subscript(o, key);
        return tp_likely(result != NULL) ? result : subscript_of_stand_in(o, key);
    }
    if (tp_py_asks_object(o)) return tp_py_ask_method("__getitem__", o, &key, 1, NULL);
    PyObject *result = plain_subscript(o, key);
    return result ? tp_py_like_steal(o, result) : subscript_of_stand_in(o, key);
}

/* ---- writing ---- */

static int cannot_assign(PyObject *value, const tp_tensor *to) {
    PyErr_Format(PyExc_TypeError, "can't assign a %s to a torch.%sTensor", Py_TYPE(value)->tp_name,
                 tp_scalar_type_name((tp_dtype)to->dtype));
    return -1;
}

/* A number that is assigned: 1 and in *s, 0: none. What is too large for a 16-bit float is an infinity, as in PyTorch.
 */
static int assigned_number(PyObject *value, const tp_tensor *to, tp_scalar *s) {
    int ok = tp_py_to_scalar(value, s);
    if (ok > 0) *s = tp_scalar_narrow(s, (tp_dtype)to->dtype);
    return ok;
}

/* The value as a tensor (new); a tensor as it is. A number or a sequence gets the dtype of what it goes to. */
static tp_tensor *value_tensor(PyObject *value, const tp_tensor *to) {
    tp_scalar s;
    if (tp_py_is_tensor(value)) return tp_retain(tp_py_tensor_borrow(value));
    int ok = assigned_number(value, to, &s);
    tp_dtype dtype = tp_is_quantized(to) ? TP_FLOAT32 : (tp_dtype)to->dtype; /* which the write quantizes */
    if (ok < 0) return NULL;
    if (ok > 0) return raise_null(tp_full(TP_EMPTY_INTS, &s, dtype, TP_NO_LAYOUT, to->device, -1));
    if (!PySequence_Check(value) || PyUnicode_Check(value) || PyBytes_Check(value))
        return cannot_assign(value, to), NULL;
    return tp_py_tensor_from_data(value, dtype, to->device);
}

/* Leading dimensions of size one that the target does not have. */
static tp_tensor *without_leading_ones(tp_tensor *value, int64_t ndim) {
    int lead = 0;
    while (lead < value->ndim - ndim && value->sizes[lead] == 1) lead++;
    return lead ? raise_null(tp_view(value, (tp_ints){value->sizes + lead, value->ndim - lead})) : tp_retain(value);
}

/* A value to be copied; new. One that is broadcast may lie in the memory that it is written to, as in t[:] = t[0]. */
static tp_tensor *apart(tp_tensor *value, const tp_tensor *view) {
    bool broadcast = !tp_same_sizes(value, view);
    if (!broadcast || tp_overlap_of(view, value) == TP_OVERLAP_NONE) return tp_retain(value);
    return tp_clone(value, TP_NO_FORMAT);
}

static int assign_view(tp_tensor *view, PyObject *value) {
    tp_scalar s;
    if (!tp_py_is_tensor(value)) {
        int ok = assigned_number(value, view, &s);
        if (ok < 0) return -1;
        /* As in PyTorch, a number is not written where several elements have one place in memory. */
        if (ok > 0) return tp_py_check(tp_check_internal_overlap(view) < 0 ? -1 : tp_fill__Scalar(view, &s));
    }
    tp_autoref *whole = value_tensor(value, view), *fitted = whole ? without_leading_ones(whole, view->ndim) : NULL;
    if (!fitted) return -1;
    /* One element fills, and may be one of those that it replaces. */
    bool fills = fitted->ndim == 0 && view->ndim > 0 && fitted->device.type == TP_DEVICE_CPU;
    if (fills) return tp_py_check(tp_fill__Tensor(view, fitted));
    tp_autoref *from = apart(fitted, view);
    return tp_py_check(from ? tp_copy_(view, from, false) : -1);
}

static int category_of(const tp_scalar *s) {
    static const int categories[] = {[TP_SCALAR_BOOL] = TP_BOOLEAN,
                                     [TP_SCALAR_INT] = TP_SIGNED,
                                     [TP_SCALAR_UINT] = TP_SIGNED,
                                     [TP_SCALAR_FLOAT] = TP_FLOATING,
                                     [TP_SCALAR_COMPLEX] = TP_COMPLEX};
    return categories[s->kind];
}

/* t[mask] = number, by masked_fill_: 1 done, 0 not of this form, -1 raised. */
static int assign_masked(tp_tensor *view, const walk *w, PyObject *value) {
    tp_scalar s;
    tp_tensor *mask = w->nlist == 1 ? w->list[0] : NULL;
    if (!mask || mask->dtype != TP_BOOL || mask->ndim > view->ndim || tp_py_is_tensor(value)) return 0;
    if (tp_overlaps_itself(view)) return 0;
    for (int i = 0; i < mask->ndim; i++)
        if (mask->sizes[i] != view->sizes[i]) return 0;
    int ok = assigned_number(value, view, &s), category = tp_dtype_categories[view->dtype];
    if (ok <= 0) return ok;
    if (category_of(&s) > (category == TP_UNSIGNED ? TP_SIGNED : category)) return 0;
    int64_t sizes[TP_MAX_DIMS];
    for (int i = 0; i < view->ndim; i++) sizes[i] = i < mask->ndim ? mask->sizes[i] : 1;
    tp_autoref *aligned = mask->ndim == view->ndim ? tp_retain(mask) : tp_reshape(mask, (tp_ints){sizes, view->ndim});
    return !aligned || tp_masked_fill__Scalar(view, aligned, &s) < 0 ? tp_py_check(-1) : 1;
}

/* How many dimensions index() gives for a list of indices, masks included. */
static int indexed_ndim(const tp_tensor *view, const walk *w) {
    int taken = 0, broadcast = 0;
    for (int i = 0; i < w->nlist; i++) {
        const tp_tensor *index = w->list[i];
        if (!index) continue;
        bool mask = index->dtype == TP_BOOL || index->dtype == TP_UINT8;
        int ndim = mask ? 1 : index->ndim;
        taken += mask ? index->ndim : 1;
        if (ndim > broadcast) broadcast = ndim;
    }
    return view->ndim - taken + broadcast;
}

static int assign_general(tp_tensor *self, PyObject *key, PyObject *value) {
    auto_items k;
    auto_walk w = {0};
    if (read_key(&k, key, self) < 0) return -1;
    tp_autoref *view = basic_view(&k, self, &w);
    if (!view) return -1;
    if (!k.advanced) return assign_view(view, value);
    int done = assign_masked(view, &w, value);
    if (done) return done < 0 ? -1 : 0;
    tp_autoref *whole = value_tensor(value, view),
               *fitted = whole ? without_leading_ones(whole, indexed_ndim(view, &w)) : NULL;
    return fitted ? tp_py_check(tp_index_put_(view, (tp_tensors){w.list, w.nlist}, fitted, false)) : -1;
}

static int assign_asked(PyObject *o, PyObject *key, PyObject *value) {
    PyObject *result = tp_py_ask_method("__setitem__", o, (PyObject *const[]){key, value}, 2, NULL);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* Elements of a nested tensor that tensors of indices name, or a nested mask. */
static int assign_by_tensors(tp_tensor *t, PyObject *key, PyObject *value) {
    tp_tensor *list[TP_MAX_DIMS];
    PyObject *one[] = {key};
    bool tuple = PyTuple_Check(key);
    PyObject *const *items = tuple ? PySequence_Fast_ITEMS(key) : one;
    Py_ssize_t count = tuple ? PyTuple_GET_SIZE(key) : 1;
    bool tensors = count <= TP_MAX_DIMS;
    for (Py_ssize_t i = 0; tensors && i < count; i++)
        if ((tensors = tp_py_is_tensor(items[i]))) list[i] = tp_py_tensor_borrow(items[i]);
    if (!tensors)
        return PyErr_SetString(PyExc_NotImplementedError, "elements of a nested tensor are set by an index that begins "
                                                          "with a piece's number, or is made of tensors"),
               -1;
    tp_autoref *whole = value_tensor(value, t);
    return whole ? tp_py_check(tp_index_put_(t, (tp_tensors){list, count}, whole, false)) : -1;
}

/* Elements of one piece of a nested tensor: the key begins with its number. */
static int assign_piece(tp_tensor *t, PyObject *key, PyObject *value) {
    PyObject *first = PyTuple_Check(key) && PyTuple_GET_SIZE(key) ? PyTuple_GET_ITEM(key, 0) : key;
    if (!PyLong_CheckExact(first)) return assign_by_tensors(t, key, value);
    if (!tp_tls.grad_disabled && t->flags & TP_FLAG_REQUIRES_GRAD)
        return PyErr_SetString(PyExc_RuntimeError,
                               "a nested tensor that requires grad is not changed in place; under no_grad it is"),
               -1;
    tp_autoref *piece = select_first(t, first);
    if (!piece || first == key) return piece ? assign_view(piece, value) : -1;
    PyObject *rest = PyTuple_GetSlice(key, 1, PyTuple_GET_SIZE(key));
    int status = rest ? assign_general(piece, rest, value) : -1;
    Py_XDECREF(rest);
    return status;
}

static int ass_subscript(PyObject *o, PyObject *key, PyObject *value) {
    if (value && (tp_py_asks(o) || tp_py_has_function(value))) return assign_asked(o, key, value);
    tp_tensor *t = tp_py_tensor_borrow(o);
    if (!value) return PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items"), -1;
    if (tp_unlikely(tp_is_nested(t))) return assign_piece(t, key, value);
    if (tp_unlikely(t->keys & TP_LAYOUT_KEYS & ~(TP_BIT(ZeroTensor) | TP_BIT(Quantized))))
        return PyErr_SetString(PyExc_NotImplementedError,
                               "elements of a tensor that is not strided memory are not set by index; to_dense() gives "
                               "one whose are"),
               -1;
    if (key == Py_False) return 0;
    if (key == Py_True) {
        tp_autoref *whole = raise_null(tp_unsqueeze(t, 0));
        return whole ? assign_view(whole, value) : -1;
    }
    if (!PyLong_CheckExact(key)) return assign_general(t, key, value);
    tp_autoref *view = select_first(t, key);
    return view ? assign_view(view, value) : -1;
}

/* ---- len and in ---- */

static Py_ssize_t length(PyObject *o) {
    if (tp_py_asks(o)) {
        PyObject *result = tp_py_ask_method("__len__", o, NULL, 0, NULL);
        Py_ssize_t n = result ? PyNumber_AsSsize_t(result, PyExc_OverflowError) : -1;
        Py_XDECREF(result);
        return n;
    }
    const tp_tensor *t = tp_py_tensor_borrow(o);
    if (t->ndim) return t->sizes[0];
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
}

/* Whether any element equals the value. */
static int contains(PyObject *o, PyObject *value) {
    if (tp_py_asks(o)) {
        PyObject *result = tp_py_ask_method("__contains__", o, &value, 1, NULL);
        int truth = result ? PyObject_IsTrue(result) : -1;
        Py_XDECREF(result);
        return truth;
    }
    tp_tensor *t = tp_py_tensor_borrow(o);
    tp_scalar s;
    bool truth = false;
    tp_autoref *equal = NULL;
    if (tp_py_is_tensor(value)) equal = tp_eq_Tensor(t, tp_py_tensor_borrow(value));
    else {
        int ok = tp_py_to_scalar(value, &s);
        if (ok < 0) return -1;
        if (ok == 0)
            return PyErr_Format(PyExc_RuntimeError,
                                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %R.",
                                (PyObject *)Py_TYPE(value)),
                   -1;
        equal = tp_eq_Scalar(t, &s);
    }
    tp_autoref *any = equal ? tp_any(equal) : NULL;
    if (!any || tp_is_nonzero(any, &truth) < 0) return tp_py_check(-1);
    return truth;
}

PyMappingMethods tp_py_tensor_mapping = {
    .mp_length = length, .mp_subscript = subscript, .mp_ass_subscript = ass_subscript};
PySequenceMethods tp_py_tensor_sequence = {.sq_length = length, .sq_contains = contains};
