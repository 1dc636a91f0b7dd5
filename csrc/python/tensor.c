/* tensor.c: the Tensor type: its life, identity and attributes.
 *
 * Note [Identity] in common.h says who owns whom. Objects of the base type come from a free list. The garbage collector
 * tracks those that own something that may lead back to them: an attribute dictionary, hooks, a graph. */
#include "python/common.h"

#include "Functions.h"
#include "autograd/node.h"
#include "python/autograd.h"
#include "python/methods.h"
#include "python/overrides.h"
#include "python/parse.h"
#include "python/python_key.h"

#include <string.h>
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

PyObject *tp_py_wrap_as_steal(PyTypeObject *type, tp_tensor *t) {
    if (!t) return tp_py_raise();
    if (tp_unlikely(type != &tp_py_tensor_type) && tp_py_mark(type, t) < 0) return tp_release(t), NULL;
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

/* What only the object keeps alive through its tensor can be part of a cycle; a tensor that keeps the object has one
 * holder, which the collector came from. */
static bool leads_on(const tp_tensor *t) {
    if (!t || !t->autograd) return false;
    int32_t count = atomic_load(&t->refcount);
    return count == 1 || count == (TP_KEEPS_PYOBJ | 2);
}

static int tensor_traverse(PyObject *o, visitproc visit, void *arg) {
    tp_py_tensor *self = (tp_py_tensor *)o;
    Py_VISIT(self->dict);
    if (leads_on(self->tensor)) return tp_py_traverse_autograd(self->tensor->autograd, visit, arg);
    return 0;
}

static int tensor_clear(PyObject *o) {
    tp_py_tensor *self = (tp_py_tensor *)o;
    Py_CLEAR(self->dict);
    if (leads_on(self->tensor)) tp_py_clear_autograd(self->tensor->autograd);
    return 0;
}

/* Tensor(data) and subclasses: float32 from data, as torch.Tensor; Tensor(tensor) is an alias. */
static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (n == 1 && tp_py_is_tensor(PyTuple_GET_ITEM(args, 0)))
        return tp_py_wrap_as_steal(type, tp_alias(tp_py_tensor_borrow(PyTuple_GET_ITEM(args, 0))));
    if (n == 1 && !PyLong_Check(PyTuple_GET_ITEM(args, 0))) {
        tp_tensor *t = tp_py_tensor_from_data(PyTuple_GET_ITEM(args, 0), tp_default_dtype(), TP_CPU);
        return t ? tp_py_wrap_as_steal(type, t) : NULL;
    }
    int64_t sizes[TP_MAX_DIMS];
    if (n > TP_MAX_DIMS) return PyErr_Format(PyExc_ValueError, "Tensor() takes at most %d sizes", TP_MAX_DIMS);
    for (Py_ssize_t i = 0; i < n; i++) {
        int ok = tp_py_to_int(PyTuple_GET_ITEM(args, i), &sizes[i]);
        if (ok < 0) return NULL;
        if (ok == 0)
            return PyErr_Format(PyExc_TypeError, "Tensor() takes data or sizes, not %s",
                                Py_TYPE(PyTuple_GET_ITEM(args, i))->tp_name);
    }
    if (n == 0) sizes[n++] = 0;
    return tp_py_wrap_as_steal(type, tp_new_empty((tp_ints){sizes, n}, tp_default_dtype(), TP_CPU));
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
    return found && PyCFunction_Check(found) && PyCFunction_GET_FUNCTION(found) == disabled_torch_function;
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
        PyObject *item = tp_py_wrap_steal(tp_take(seq->items[i]));
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

/* ---- attributes ---- */

#define TENSOR(o) tp_py_tensor_borrow(o)
/* An attribute is asked for first (Note [Asked first]); its name in Python where that is not `name`. */
#define NAMED_GETTER(name, text)                             \
    static PyObject *get_##name##_itself(PyObject *o);       \
    static PyObject *get_##name(PyObject *o, void *unused) { \
        (void)unused;                                        \
        if (tp_py_asks(o)) return tp_py_ask_get(text, o);    \
        return get_##name##_itself(o);                       \
    }                                                        \
    static PyObject *get_##name##_itself(PyObject *o TP_UNUSED)
#define GETTER(name, expression) NAMED_GETTER_OF(name, #name, expression)
#define NAMED_GETTER_OF(name, text, expression) \
    NAMED_GETTER(name, text) {                  \
        tp_tensor *t TP_UNUSED = TENSOR(o);     \
        return expression;                      \
    }
#define SETTER(name)                                                    \
    static int set_##name##_itself(PyObject *o, PyObject *value);       \
    static int set_##name(PyObject *o, PyObject *value, void *unused) { \
        (void)unused;                                                   \
        if (tp_py_asks(o)) return tp_py_ask_set(#name, o, value);       \
        return set_##name##_itself(o, value);                           \
    }                                                                   \
    static int set_##name##_itself(PyObject *o, PyObject *value)

GETTER(shape, tp_py_size(tp_sizes(t)))
GETTER(dtype, tp_py_dtype_object((tp_dtype)t->dtype))
GETTER(device, tp_py_device_object(t->device))
GETTER(ndim, PyLong_FromLong(t->ndim))
GETTER(itemsize, PyLong_FromLongLong(tp_itemsize((tp_dtype)t->dtype)))
GETTER(nbytes, PyLong_FromLongLong(t->numel *tp_itemsize((tp_dtype)t->dtype)))
GETTER(requires_grad, PyBool_FromLong(tp_requires_grad(t)))
GETTER(is_leaf, PyBool_FromLong(tp_is_leaf(t)))
NAMED_GETTER_OF(base, "_base", t->base ? tp_py_wrap(t->base) : Py_NewRef(Py_None))
NAMED_GETTER_OF(version, "_version",
                t->flags &TP_FLAG_INFERENCE
                    ? PyErr_Format(PyExc_RuntimeError, "Inference tensors do not track version counter.")
                    : PyLong_FromUnsignedLong(tp_version(t)))
GETTER(output_nr, PyLong_FromLong(t->autograd ? (long)t->autograd->output_nr : 0))
GETTER(retains_grad, PyBool_FromLong(t->flags &TP_FLAG_RETAINS_GRAD))
GETTER(T, tp_py_like_steal(o, tp_py_wrap_steal(tp_numpy_T(t))))
GETTER(mT, tp_py_like_steal(o, tp_py_wrap_steal(tp_mT(t))))
GETTER(H, tp_py_like_steal(o, tp_py_wrap_steal(tp_matrix_H(t))))
GETTER(mH, tp_py_like_steal(o, tp_py_wrap_steal(tp_mH(t))))
GETTER(real, tp_py_like_steal(o, tp_py_wrap_steal(tp_real(t))))
GETTER(imag, tp_py_like_steal(o, tp_py_wrap_steal(tp_imag(t))))
GETTER(is_meta, PyBool_FromLong(t->device.type == TP_DEVICE_META))
GETTER(is_cpu, PyBool_FromLong(t->device.type == TP_DEVICE_CPU))
GETTER(data, tp_py_like_steal(o, tp_py_wrap_steal(tp_detached_data(t))))

NAMED_GETTER(grad, "grad") {
    tp_tensor *grad = tp_grad(TENSOR(o));
    if (grad && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o); /* attributes of the gradient may lead back */
    if (grad) return tp_py_wrap_steal(grad);
    const tp_tensor *t = TENSOR(o);
    if (tp_requires_grad(t) && !tp_is_leaf(t) && !(t->flags & TP_FLAG_RETAINS_GRAD) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. It stays None: "
                     "backward() adds to leaves, and to results whose retain_grad() was called.",
                     1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

GETTER(layout, tp_py_layout_object(TP_STRIDED))
/* Whether the tensor's device is called as the closure says: "is_cuda". */
static PyObject *get_is_on(PyObject *o, void *name) {
    if (tp_py_asks(o)) return tp_py_ask_get(name, o);
    return PyBool_FromLong(strcmp(tp_device_type_name(TENSOR(o)->device.type), (const char *)name + 3) == 0);
}

/* What no tensor is; the closure is the attribute's name. */
static PyObject *get_false(PyObject *o, void *name) {
    if (tp_py_asks(o)) return tp_py_ask_get(name, o);
    Py_RETURN_FALSE;
}
NAMED_GETTER(grad_fn, "grad_fn") { return tp_py_grad_fn(TENSOR(o)); }

SETTER(requires_grad) {
    if (!value) return PyErr_SetString(PyExc_RuntimeError, "requires_grad cannot be deleted"), -1;
    if (!PyBool_Check(value))
        return PyErr_Format(PyExc_RuntimeError, "requires_grad must be a bool, not %s", Py_TYPE(value)->tp_name), -1;
    return tp_py_check(tp_set_requires_grad(TENSOR(o), value == Py_True));
}

SETTER(grad) {
    tp_tensor *t = TENSOR(o);
    if (!value || value == Py_None) {
        if (t->autograd) tp_put_grad_steal(t, NULL);
        return 0;
    }
    if (!tp_py_is_tensor(value))
        return PyErr_Format(PyExc_TypeError, "grad must be a Tensor or None, not %s", Py_TYPE(value)->tp_name), -1;
    if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o); /* the gradient's attributes may lead back */
    return tp_py_check(tp_set_grad(t, TENSOR(value)));
}

SETTER(data) {
    if (!value) return PyErr_SetString(PyExc_RuntimeError, "data cannot be deleted; delete the tensor"), -1;
    if (!tp_py_is_tensor(value)) return PyErr_SetString(PyExc_TypeError, "data must be a Tensor"), -1;
    const tp_tensor *from = TENSOR(value);
    if (tp_requires_grad(TENSOR(o)) && !tp_is_floating(from) && !tp_is_complex(from))
        return PyErr_Format(PyExc_RuntimeError,
                            "data of a tensor that requires gradients must be floating point or "
                            "complex, not %s",
                            tp_dtype_names[from->dtype]),
               -1;
    return tp_py_check(tp_tensor_assign(TENSOR(o), TENSOR(value)));
}

#define SETTER_VIEW(name, view)                                       \
    SETTER(name) {                                                    \
        PyObject *part = value ? get_##name(o, NULL) : NULL;          \
        if (!part) return -1;                                         \
        PyObject *done = PyObject_CallMethod(part, view, "O", value); \
        Py_DECREF(part);                                              \
        Py_XDECREF(done);                                             \
        return done ? 0 : -1;                                         \
    }
SETTER_VIEW(real, "copy_")
SETTER_VIEW(imag, "copy_")

static PyObject *get_dict(PyObject *o, void *unused) {
    (void)unused;
    tp_py_tensor *self = (tp_py_tensor *)o;
    if (!self->dict) {
        self->dict = PyDict_New();
        if (self->dict && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
    }
    return Py_XNewRef(self->dict);
}

/* Setting an attribute makes the dictionary, and from then on the collector has to know the object; it knows every
 * object of a subclass, which `t.__class__ = Sub` makes of one that it may not know. */
static int tensor_setattro(PyObject *o, PyObject *name, PyObject *value) {
    PyTypeObject *before = Py_TYPE(o);
    int status = PyObject_GenericSetAttr(o, name, value);
    if (tp_unlikely(Py_TYPE(o) != before) && tp_py_remark(Py_TYPE(o), TENSOR(o)) < 0) return -1;
    if ((((tp_py_tensor *)o)->dict || Py_TYPE(o) != &tp_py_tensor_type) && !PyObject_GC_IsTracked(o))
        PyObject_GC_Track(o);
    return status;
}

NAMED_GETTER(names, "names") {
    PyObject *names = PyTuple_New(TENSOR(o)->ndim);
    for (int i = 0; names && i < TENSOR(o)->ndim; i++) PyTuple_SET_ITEM(names, i, Py_NewRef(Py_None));
    return names;
}

PyGetSetDef tp_py_tensor_getset[] = {
    {"shape", get_shape, NULL, "The sizes, as a tensorpy.Size.", NULL},
    {"dtype", get_dtype, NULL, "The element type.", NULL},
    {"device", get_device, NULL, "Where the elements are.", NULL},
    {"layout", get_layout, NULL, "tensorpy.strided.", NULL},
    {"ndim", get_ndim, NULL, "The number of dimensions.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether a gradient is wanted.", NULL},
    {"grad", get_grad, set_grad, "The gradient that backward() has added up, or None.", NULL},
    {"_grad", get_grad, set_grad, "The same as grad.", NULL},
    {"grad_fn", get_grad_fn, NULL, "The node of the graph that made this tensor, or None.", NULL},
    {"_grad_fn", get_grad_fn, NULL, NULL, NULL},
    {"is_leaf", get_is_leaf, NULL, "Whether the tensor is an input of the graph, not a result.", NULL},
    {"retains_grad", get_retains_grad, NULL, "Whether a result keeps its gradient.", NULL},
    {"data", get_data, set_data, "The same memory without history; writes to it are not tracked.", NULL},
    {"_base", get_base, NULL, "The tensor that this one views, or None.", NULL},
    {"_version", get_version, NULL, "How often the memory was written in place.", NULL},
    {"output_nr", get_output_nr, NULL, "Which result of grad_fn this is.", NULL},
    {"T", get_T, NULL, "All dimensions reversed.", NULL},
    {"mT", get_mT, NULL, "The last two dimensions swapped.", NULL},
    {"H", get_H, NULL, "The conjugate transpose of a matrix.", NULL},
    {"mH", get_mH, NULL, "The last two dimensions swapped and conjugated.", NULL},
    {"real", get_real, set_real, "The real part, a view.", NULL},
    {"imag", get_imag, set_imag, "The imaginary part, a view.", NULL},
    {"is_meta", get_is_meta, NULL, "Whether the tensor is on the meta device.", NULL},
    {"is_cpu", get_is_cpu, NULL, "Whether the tensor is in host memory.", NULL},
    {"is_sparse", get_false, NULL, NULL, "is_sparse"},
    {"is_sparse_csr", get_false, NULL, NULL, "is_sparse_csr"},
    {"is_quantized", get_false, NULL, NULL, "is_quantized"},
    {"is_nested", get_false, NULL, NULL, "is_nested"},
    {"is_mkldnn", get_false, NULL, NULL, "is_mkldnn"},
    /* Devices of torch's: a tensor is on one where OpenCL's devices are called so. */
    {"is_cuda", get_is_on, NULL, NULL, "is_cuda"},
    {"is_ipu", get_is_on, NULL, NULL, "is_ipu"},
    {"is_maia", get_is_on, NULL, NULL, "is_maia"},
    {"is_mps", get_is_on, NULL, NULL, "is_mps"},
    {"is_mtia", get_is_on, NULL, NULL, "is_mtia"},
    {"is_vulkan", get_is_on, NULL, NULL, "is_vulkan"},
    {"is_xla", get_is_on, NULL, NULL, "is_xla"},
    {"is_xpu", get_is_on, NULL, NULL, "is_xpu"},
    {"names", get_names, NULL, "A None for each dimension.", NULL},
    {"__dict__", get_dict, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- the type ---- */

/* By identity; the lowest bits of an address are always zero. */
static Py_hash_t tensor_hash(PyObject *o) { return (Py_hash_t)((uintptr_t)o >> 4); }

PyTypeObject tp_py_tensor_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.Tensor",
    .tp_doc = "A strided array of one dtype on one device, with a gradient if it wants one.",
    .tp_basicsize = sizeof(tp_py_tensor),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = tensor_new,
    .tp_dealloc = tensor_dealloc,
    .tp_finalize = tensor_finalize,
    .tp_traverse = tensor_traverse,
    .tp_clear = tensor_clear,
    .tp_free = PyObject_GC_Del,
    .tp_setattro = tensor_setattro,
    .tp_getset = tp_py_tensor_getset,
    .tp_dictoffset = offsetof(tp_py_tensor, dict),
    .tp_weaklistoffset = offsetof(tp_py_tensor, weakrefs),
    .tp_repr = tp_py_tensor_repr,
    .tp_iter = tp_py_tensor_iter,
    .tp_hash = tensor_hash,
    .tp_richcompare = tp_py_tensor_richcompare,
    .tp_as_number = &tp_py_tensor_number,
    .tp_as_mapping = &tp_py_tensor_mapping,
    .tp_as_sequence = &tp_py_tensor_sequence,
    .tp_as_buffer = &tp_py_tensor_buffer,
};

static bool is_attribute(const char *name) {
    for (const PyGetSetDef *g = tp_py_tensor_getset; g->name; g++)
        if (strcmp(g->name, name) == 0) return true;
    return false;
}

/* All tables in one. An operator that is an attribute in Python (t.mT) is no method as well: the type would take the
 * method. */
static int count_methods(PyMethodDef *const *tables) {
    int total = 0;
    for (; *tables; tables++)
        for (const PyMethodDef *m = *tables; m->ml_name; m++) total++;
    return total;
}

static PyMethodDef *append_methods(PyMethodDef *end, PyMethodDef *const *tables) {
    for (; *tables; tables++)
        for (const PyMethodDef *m = *tables; m->ml_name; m++)
            if (!is_attribute(m->ml_name)) *end++ = *m;
    return end;
}

static PyMethodDef *all_methods(void) {
    PyMethodDef *const own[] = {tp_py_tensor_methods, tp_py_interop_methods, tp_py_autograd_methods, NULL};
    size_t total = (size_t)count_methods(own) + (size_t)count_methods(tp_py_generated_methods);
    PyMethodDef *all = PyMem_Calloc(total + 1, sizeof *all);
    if (all) append_methods(append_methods(all, own), tp_py_generated_methods);
    return all;
}

static PyMethodDef functions[] = {
    {"_disabled_torch_function_impl", disabled_torch_function, METH_VARARGS,
     "_disabled_torch_function_impl(func, types, args=(), kwargs=None, /)\n--\n\nAs __torch_function__ of a subclass: "
     "what a call gives on it is a Tensor."},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_tensor(PyObject *m) {
    tp_core_hooks.release_kept = release_kept;
    tp_py_tensor_type.tp_methods = all_methods();
    if (!tp_py_tensor_type.tp_methods || PyType_Ready(&tp_py_tensor_type) < 0) return -1;
    /* Programs give Tensor methods of their own and make tensors objects of their subclasses, as they can of a class
     * that is written in Python. */
    tp_py_tensor_type.tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
    if (PyModule_AddFunctions(m, functions) < 0) return -1;
    return PyModule_AddObjectRef(m, "Tensor", (PyObject *)&tp_py_tensor_type);
}
