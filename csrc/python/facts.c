/* facts.c: noting what a call is known by, and comparing (facts.h). */
#include "python/facts.h"

#include "autograd/node.h"
#include "dispatch/key.h"

#include <string.h>

void tp_py_facts_clear(tp_py_facts *f) {
    for (Py_ssize_t i = 0; i < f->count; i++) {
        Py_XDECREF(f->items[i].object);
        PyMem_Free(f->items[i].geometry);
    }
    PyMem_Free(f->items);
    *f = (tp_py_facts){0};
}

tp_py_fact *tp_py_facts_add(tp_py_facts *f, tp_py_fact_kind kind, PyObject *object) {
    if (f->count == f->room) {
        Py_ssize_t room = f->room ? 2 * f->room : 8;
        tp_py_fact *items = PyMem_Realloc(f->items, (size_t)room * sizeof *items);
        if (!items) return (void)PyErr_NoMemory(), NULL;
        f->items = items;
        f->room = room;
    }
    tp_py_fact *made = &f->items[f->count++];
    *made = (tp_py_fact){.kind = kind, .object = Py_NewRef(object)};
    return made;
}

bool tp_py_is_constant(PyObject *o) {
    return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o);
}

bool tp_py_same_constant(PyObject *a, PyObject *b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (PyFloat_CheckExact(a)) return memcmp(&((PyFloatObject *)a)->ob_fval, &((PyFloatObject *)b)->ob_fval, 8) == 0;
    int same = tp_py_is_constant(a) ? PyObject_RichCompareBool(a, b, Py_EQ) : 0;
    if (same < 0) PyErr_Clear();
    return same > 0;
}

#define FACT_KEYS (TP_BACKEND_KEYS | TP_NO_MEMORY | TP_PENDING_MATH)

static int note_tensor(tp_py_facts *f, PyObject *o) {
    const tp_tensor *t = tp_py_tensor_borrow(o);
    tp_py_fact *made = tp_py_facts_add(f, TP_FACT_TENSOR, (PyObject *)Py_TYPE(o));
    if (!made) return -1;
    made->dtype = t->dtype;
    made->ndim = t->ndim;
    made->keys = t->keys & FACT_KEYS;
    made->requires_grad = tp_requires_grad(t);
    made->geometry = PyMem_Malloc(2 * sizeof(int64_t) * t->ndim + 1);
    if (!made->geometry) return (void)PyErr_NoMemory(), -1;
    memcpy(made->geometry, t->sizes, sizeof(int64_t) * t->ndim);
    memcpy(made->geometry + t->ndim, t->strides, sizeof(int64_t) * t->ndim);
    return 0;
}

/* The geometry that was noted, of as many dimensions. */
static inline bool same_geometry(const tp_py_fact *f, const tp_tensor *t) {
    const int64_t *sizes = f->geometry, *strides = sizes + t->ndim;
    for (int d = 0; d < t->ndim; d++)
        if (sizes[d] != t->sizes[d] || strides[d] != t->strides[d]) return false;
    return true;
}

static bool fits_tensor(const tp_py_fact *f, PyObject *o) {
    if (f->object != (PyObject *)Py_TYPE(o)) return false;
    const tp_tensor *t = tp_py_tensor_borrow(o);
    return f->dtype == t->dtype && f->ndim == t->ndim && f->keys == (t->keys & FACT_KEYS) &&
           f->requires_grad == tp_requires_grad(t) && same_geometry(f, t);
}

void tp_py_tensors_begin(tp_py_tensors *t) {
    t->items = t->few;
    t->objects = t->few_objects;
    t->count = 0;
    t->room = TP_FEW_TENSORS;
}

void tp_py_tensors_empty(tp_py_tensors *t) {
    while (t->count) Py_DECREF(t->objects[--t->count]);
}

void tp_py_tensors_clear(tp_py_tensors *t) {
    tp_py_tensors_empty(t);
    if (t->items != t->few) PyMem_Free(t->items);
    if (t->objects != t->few_objects) PyMem_Free(t->objects);
    tp_py_tensors_begin(t);
}

static void *grown(void *items, const void *few, Py_ssize_t count, Py_ssize_t room, size_t size) {
    void *more = PyMem_Realloc(items == few ? NULL : items, (size_t)room * size);
    if (more && items == few) memcpy(more, few, (size_t)count * size);
    return more;
}

static int add_tensor(tp_py_tensors *t, PyObject *o) {
    if (t->count == t->room) {
        Py_ssize_t room = 2 * t->room;
        void *items = grown(t->items, t->few, t->count, room, sizeof *t->items);
        if (items) t->items = items;
        void *objects = items ? grown(t->objects, t->few_objects, t->count, room, sizeof *t->objects) : NULL;
        if (!objects) return (void)PyErr_NoMemory(), -1;
        t->objects = objects;
        t->room = room;
    }
    t->items[t->count] = tp_py_tensor_borrow(o);
    t->objects[t->count++] = Py_NewRef(o);
    return 0;
}

bool tp_py_is_container(PyObject *o) { return PyTuple_CheckExact(o) || PyList_CheckExact(o) || PyDict_CheckExact(o); }

int tp_py_facts_note(tp_py_facts *f, tp_py_tensors *t, PyObject *o) {
    if (tp_py_is_tensor(o)) return note_tensor(f, o) < 0 ? -1 : add_tensor(t, o);
    if (!tp_py_is_container(o))
        return tp_py_facts_add(f, tp_py_is_constant(o) ? TP_FACT_CONSTANT : TP_FACT_OBJECT, o) ? 0 : -1;
    tp_py_fact *made = tp_py_facts_add(f, TP_FACT_CONTAINER, (PyObject *)Py_TYPE(o));
    if (!made) return -1;
    made->size = PyObject_Size(o);
    if (Py_EnterRecursiveCall(" in an argument of a compiled function")) return -1;
    int status = 0;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (PyDict_CheckExact(o))
        while (status == 0 && PyDict_Next(o, &at, &key, &value))
            status = tp_py_facts_note(f, t, key) < 0 ? -1 : tp_py_facts_note(f, t, value);
    else
        for (Py_ssize_t i = 0; status == 0 && i < PySequence_Fast_GET_SIZE(o); i++)
            status = tp_py_facts_note(f, t, PySequence_Fast_GET_ITEM(o, i));
    Py_LeaveRecursiveCall();
    return status;
}

/* Whether the argument is as noted; 1, 0, or -1 raised. */
int tp_py_facts_fit(const tp_py_facts *f, Py_ssize_t *at, tp_py_tensors *t, PyObject *o) {
    if (*at == f->count) return 0;
    const tp_py_fact *known = &f->items[(*at)++];
    if (tp_py_is_tensor(o)) {
        if (known->kind != TP_FACT_TENSOR || !fits_tensor(known, o)) return 0;
        return add_tensor(t, o) < 0 ? -1 : 1;
    }
    if (!tp_py_is_container(o))
        return tp_py_is_constant(o) ? known->kind == TP_FACT_CONSTANT && tp_py_same_constant(known->object, o)
                                    : known->kind == TP_FACT_OBJECT && known->object == o;
    if (known->kind != TP_FACT_CONTAINER || known->object != (PyObject *)Py_TYPE(o) || known->size != PyObject_Size(o))
        return 0;
    int fits = 1;
    PyObject *key, *value;
    Py_ssize_t i = 0;
    if (PyDict_CheckExact(o))
        while (fits > 0 && PyDict_Next(o, &i, &key, &value)) {
            fits = tp_py_facts_fit(f, at, t, key);
            if (fits > 0) fits = tp_py_facts_fit(f, at, t, value);
        }
    else
        for (; fits > 0 && i < PySequence_Fast_GET_SIZE(o); i++)
            fits = tp_py_facts_fit(f, at, t, PySequence_Fast_GET_ITEM(o, i));
    return fits;
}

bool tp_py_facts_same(const tp_py_facts *a, const tp_py_facts *b) {
    if (a->count != b->count) return false;
    for (Py_ssize_t i = 0; i < a->count; i++) {
        const tp_py_fact *x = &a->items[i], *y = &b->items[i];
        if (x->kind != y->kind || x->size != y->size) return false;
        if (x->kind == TP_FACT_CONSTANT ? !tp_py_same_constant(x->object, y->object)
                                        : x->kind == TP_FACT_CONTAINER && x->object != y->object)
            return false;
    }
    return true;
}
