/* object.c: the Python object of a tensor: its life, its identity, and the results of calls as objects.
 *
 * Note [Identity] in common.h says who owns whom. Objects of the base type come from a free list. The garbage collector
 * tracks those that own something that may lead back to them: an attribute dictionary, hooks, a graph. */
#include "python/common.h"
#include "python/python_key.h"

#include "autograd/node.h"

#include <structmember.h>

/* ---- life ---- */

#define MAX_FREE_OBJECTS 256
static tp_py_tensor *free_objects[MAX_FREE_OBJECTS];
static int free_count;

static tp_py_tensor *new_object(PyTypeObject *type) {
    tp_py_tensor *self;
    if (type != &tp_py_tensor_type) {
        self = (tp_py_tensor *)type->tp_alloc(type, 0);
    } else if (free_count > 0) {
        self = free_objects[--free_count];
        PyObject_Init((PyObject *)self, type);
    } else {
        self = PyObject_GC_New(tp_py_tensor, type);
    }
    if (self) self->dict = self->weakrefs = NULL;
    return self;
}

int (*tp_py_remark)(PyTypeObject *type, tp_tensor *t);

/* A tensor becomes an object of a class. */
static int TP_COLD mark(PyTypeObject *type, tp_tensor *t) {
    if (t->pyobj) {
        PyErr_Format(PyExc_RuntimeError,
                     "Creating a new Tensor subclass %s but the raw Tensor object is already associated to a python "
                     "object of type %s; is this what a __torch_dispatch__ returned?",
                     type->tp_name, Py_TYPE((PyObject *)t->pyobj)->tp_name);
        return -1;
    }
    return tp_py_remark(type, t);
}

PyObject *tp_py_wrap_as_steal(PyTypeObject *type, tp_tensor *t) {
    if (!t) return tp_py_raise();
    if (tp_unlikely(type != &tp_py_tensor_type) && mark(type, t) < 0) return tp_release(t), NULL;
    tp_py_tensor *self = new_object(type);
    if (!self) {
        tp_release(t);
        return NULL;
    }
    self->tensor = t;
    t->pyobj = self;
    if (tp_unlikely(t->autograd && t->autograd->grad_fn) && type == &tp_py_tensor_type) PyObject_GC_Track(self);
    return (PyObject *)self;
}

/* Python marks an object once its finaliser has run, in the lowest bit of the second word of its header (CPython 3.8 to
 * 3.14), and then runs it no more; a kept object that Python has again may be dropped again. */
static void forget_finalized(PyObject *self) { ((uintptr_t *)self)[-1] &= ~(uintptr_t)1; }

static void stop_keeping(tp_tensor *t) {
    atomic_fetch_and_explicit(&t->refcount, ~TP_KEEPS_PYOBJ, memory_order_acq_rel);
    forget_finalized(t->pyobj);
}

PyObject *tp_py_wrap_steal(tp_tensor *t) {
    if (tp_unlikely(!t)) return tp_py_raise();
    if (tp_likely(!t->pyobj)) return tp_py_wrap_as_steal(&tp_py_tensor_type, t);
    PyObject *self = t->pyobj;
    if (atomic_load_explicit(&t->refcount, memory_order_relaxed) & TP_KEEPS_PYOBJ)
        stop_keeping(t); /* the tensor's reference to the object is the caller's now */
    else Py_INCREF(self);
    tp_release(t); /* not the last: the object has one */
    return self;
}

PyObject *tp_py_wrap(tp_tensor *t) { return tp_py_wrap_steal(tp_retain(t)); }

/* Whether anything could tell the object from a new one for the same tensor. */
static bool has_identity(const tp_py_tensor *self) {
    return self->dict || self->weakrefs || Py_TYPE(self) != &tp_py_tensor_type;
}

/* The last Python reference is gone: the object is kept if C still holds the tensor. */
static bool keep_for_c(tp_py_tensor *self) {
    if (!self->tensor || !has_identity(self)) return false;
    _Atomic int32_t *refcount = &self->tensor->refcount;
    int32_t count = atomic_load_explicit(refcount, memory_order_acquire);
    do {
        if (count == 1 || count & TP_KEEPS_PYOBJ) return false;
    } while (!atomic_compare_exchange_weak_explicit(refcount, &count, count | TP_KEEPS_PYOBJ, memory_order_acq_rel,
                                                    memory_order_acquire));
    return true;
}

/* The only reference from C to a tensor that keeps its object goes: called by the core from any thread. Python may have
 * the object again by a weak reference, and then it lives on with the tensor that is its own. While this thread waited
 * for the host lock another may have taken a reference or the object. */
static void release_kept(tp_tensor *t) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *self = t->pyobj;
    int32_t count = TP_KEEPS_PYOBJ | 2;
    if (atomic_compare_exchange_strong_explicit(&t->refcount, &count, 1, memory_order_acq_rel, memory_order_acquire)) {
        forget_finalized(self);
        Py_DECREF(self);
    } else {
        tp_release(t);
    }
    PyGILState_Release(gil);
}

static void tensor_finalize(PyObject *o) {
    if (Py_TYPE(o) != &tp_py_tensor_type && keep_for_c((tp_py_tensor *)o)) Py_INCREF(o);
}

static void let_go(tp_py_tensor *self) {
    tp_tensor *t = self->tensor;
    self->tensor = NULL;
    if (!t) return;
    t->pyobj = NULL;
    tp_release(t);
}

static void tensor_dealloc(PyObject *o) {
    tp_py_tensor *self = (tp_py_tensor *)o;
    PyTypeObject *type = Py_TYPE(o);
    if (type == &tp_py_tensor_type && (self->dict || self->weakrefs) && keep_for_c(self)) {
        Py_SET_REFCNT(o, 1);
        return;
    }
    if (PyObject_GC_IsTracked(o)) PyObject_GC_UnTrack(o);
    if (self->weakrefs) PyObject_ClearWeakRefs(o);
    Py_CLEAR(self->dict);
    let_go(self);
    if (type != &tp_py_tensor_type) type->tp_free(o);
    else if (free_count < MAX_FREE_OBJECTS) free_objects[free_count++] = self;
    else PyObject_GC_Del(o);
}

/* ---- results ---- */

PyObject *tp_py_wrap_tuple_steal(tp_tensor *const *v, int n, PyTypeObject *type) {
    if (!v[0] && tp_error_pending() != TP_NoError) return tp_py_raise(); /* else v[0] is left out */
    PyObject *tuple = type ? PyStructSequence_New(type) : PyTuple_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *item = tuple ? (v[i] ? tp_py_wrap_steal(v[i]) : Py_NewRef(Py_None)) : NULL;
        if (!item) {
            if (!tuple) tp_release(v[i]);
            Py_CLEAR(tuple);
        } else if (type) {
            PyStructSequence_SetItem(tuple, i, item);
        } else {
            PyTuple_SET_ITEM(tuple, i, item);
        }
    }
    return tuple;
}

static PyObject *disabled_torch_function(PyObject *self, PyObject *call) {
    (void)self;
    PyObject *function, *types, *args = NULL, *kwargs = NULL;
    if (!PyArg_ParseTuple(call, "OO|O!O", &function, &types, &PyTuple_Type, &args, &kwargs)) return NULL;
    PyObject *none = args ? NULL : PyTuple_New(0);
    PyObject *result =
        args || none ? PyObject_Call(function, args ? args : none, kwargs == Py_None ? NULL : kwargs) : NULL;
    Py_XDECREF(none);
    return result;
}

/* The method itself is compared, not its object: the type's own method cache makes this one look-up. */
bool tp_py_gives_plain(PyTypeObject *type) {
    if (tp_tls.functions_off) return true;
    static PyObject *name = NULL;
    if (!name && !(name = PyUnicode_InternFromString("__torch_function__"))) PyErr_Clear();
    PyObject *found = name ? _PyType_Lookup(type, name) : NULL; /* borrowed */
    if (!found) return false;
    if (found == _PyType_Lookup(&tp_py_tensor_type, name)) return tp_py_has_dispatch(type);
    return PyCFunction_Check(found) && PyCFunction_GET_FUNCTION(found) == disabled_torch_function;
}

/* A new tensor's object is let go and made again; one that somebody else holds (self, out=) stays. */
static PyObject *one_of_kind_steal(PyTypeObject *kind, PyObject *o) {
    if (!o || Py_TYPE(o) != &tp_py_tensor_type || Py_REFCNT(o) != 1 || has_identity((tp_py_tensor *)o)) return o;
    tp_tensor *t = tp_retain(tp_py_tensor_borrow(o));
    Py_DECREF(o);
    return tp_py_wrap_as_steal(kind, t);
}

PyObject *tp_py_of_kind_steal(PyTypeObject *kind, PyObject *result) {
    if (!result || !PyTuple_Check(result)) return one_of_kind_steal(kind, result);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); i++) {
        PyObject *item = one_of_kind_steal(kind, PyTuple_GET_ITEM(result, i));
        PyTuple_SET_ITEM(result, i, item ? item : Py_NewRef(Py_None));
        if (!item) Py_CLEAR(result);
        if (!item) break;
    }
    return result;
}

PyObject *tp_py_wrap_seq_steal(tp_tensor_seq *seq) {
    if (!seq) return tp_py_raise();
    PyObject *tuple = PyTuple_New(seq->size);
    for (int64_t i = 0; tuple && i < seq->size; i++) {
        PyObject *item = seq->items[i] ? tp_py_wrap_steal(tp_take(seq->items[i])) : Py_NewRef(Py_None);
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    tp_tensor_seq_free(seq);
    return tuple;
}

PyObject *tp_py_from_scalar(const tp_scalar *s) {
    switch (s->kind) {
    case TP_SCALAR_BOOL: return PyBool_FromLong(s->b);
    case TP_SCALAR_INT: return PyLong_FromLongLong(s->i);
    case TP_SCALAR_UINT: return PyLong_FromUnsignedLongLong(s->u);
    case TP_SCALAR_FLOAT: return PyFloat_FromDouble(s->f);
    default: return PyComplex_FromDoubles(creal(s->c), cimag(s->c));
    }
}

/* ---- the type ---- */

/* By identity; the lowest bits of an address are always zero. */
static Py_hash_t tensor_hash(PyObject *o) { return (Py_hash_t)((uintptr_t)o >> 4); }

/* tensor.c adds attributes, methods and what the operators of Python do. */
PyTypeObject tp_py_tensor_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.Tensor",
    .tp_basicsize = sizeof(tp_py_tensor),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = tensor_dealloc,
    .tp_finalize = tensor_finalize,
    .tp_free = PyObject_GC_Del,
    .tp_hash = tensor_hash,
    .tp_dictoffset = offsetof(tp_py_tensor, dict),
    .tp_weaklistoffset = offsetof(tp_py_tensor, weakrefs),
};

static PyMethodDef functions[] = {
    {"_disabled_torch_function_impl", disabled_torch_function, METH_VARARGS,
     "_disabled_torch_function_impl(func, types, args=(), kwargs=None, /)\n--\n\nAs __torch_function__ of a subclass: "
     "what a call gives on it is a Tensor."},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_object(PyObject *m) {
    tp_core_hooks.release_kept = release_kept;
    return PyModule_AddFunctions(m, functions);
}
