/* tensor.c: the Tensor type: its attributes, how it is made and walked, and the tables of its methods. */
#include "python/replay.h"
#include "python/common.h"

#include "Functions.h"
#include "autograd/node.h"
#include "batched/batched.h"
#include "core/layout.h"
#include "python/arguments.h"
#include "python/autograd.h"
#include "python/help.h"
#include "python/methods.h"
#include "python/overrides.h"
#include "python/parse.h"

#include <string.h>

/* What only the object keeps alive through its tensor can be part of a cycle; a tensor that keeps the object has one
 * holder, which the collector came from. */
static bool leads_on(const tp_tensor *t) {
    if (!t || !t->autograd) return false;
    int32_t count = atomic_load(&t->refcount);
    return count == 1 || count == (TP_KEEPS_PYOBJ | 2);
}

/* Whether C holds a tensor whose object only Python holds: who asks C for the tensor is given this object, with all
 * that hangs on it. */
static bool may_be_asked_for(const tp_tensor *t) {
    int32_t count = t ? atomic_load(&t->refcount) : 1;
    return count != 1 && !(count & TP_KEEPS_PYOBJ);
}

static int tensor_traverse(PyObject *o, visitproc visit, void *arg) {
    tp_py_tensor *self = (tp_py_tensor *)o;
    if (may_be_asked_for(self->tensor)) return 0;
    Py_VISIT(self->dict);
    if (leads_on(self->tensor)) return tp_py_traverse_autograd(self->tensor->autograd, visit, arg);
    return 0;
}

static int tensor_clear(PyObject *o) {
    tp_py_tensor *self = (tp_py_tensor *)o;
    if (may_be_asked_for(self->tensor)) return 0; /* what is about to be taken apart holds it; it is kept */
    Py_CLEAR(self->dict);
    if (leads_on(self->tensor)) tp_py_clear_hooks(self->tensor->autograd->hooks);
    return 0;
}

/* Whether Tensor(..., device=) names the CPU, or nothing. What else a subclass is called with is its own. */
static int check_device_of_new(const PyTypeObject *type, PyObject *kwargs) {
    PyObject *named = type == &tp_py_tensor_type && kwargs ? PyDict_GetItemString(kwargs, "device") : NULL;
    tp_device device = TP_CPU;
    if (!named || named == Py_None) return 0;
    const char *word = PyUnicode_Check(named) ? PyUnicode_AsUTF8(named) : "";
    if (word && strncmp(word, "cuda", 4) == 0)
        return PyErr_SetString(PyExc_RuntimeError,
                               "legacy constructor expects device type: cpu but device type: cuda was passed"),
               -1;
    if (tp_py_take_device("Tensor", named, &device) < 0) return -1;
    if (device.type == TP_DEVICE_CPU) return 0;
    char text[40];
    PyErr_Format(PyExc_RuntimeError,
                 "legacy constructor expects device type: cpu but device type: %s was passed; tensor() takes any",
                 tp_device_print(device, text));
    return -1;
}

/* Tensor(data) and subclasses: float32 from data, as torch.Tensor; Tensor(tensor) is an alias. */
static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    if (check_device_of_new(type, kwargs) < 0) return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *only = n == 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (only && PyFloat_Check(only))
        return PyErr_Format(PyExc_TypeError, "new(): data must be a sequence (got %s)", Py_TYPE(only)->tp_name);
    bool sized = only && PyObject_TypeCheck(only, &tp_py_size_type);
    if (sized) {
        args = only;
        n = PyTuple_GET_SIZE(args);
        only = NULL;
    }
    if (only && tp_py_is_tensor(only)) return tp_py_wrap_as_steal(type, tp_alias(tp_py_tensor_borrow(only)));
    if (only && !PyLong_Check(only)) {
        tp_tensor *t = tp_py_tensor_from_data(only, tp_default_dtype(), TP_CPU);
        if (!t || tp_likely(!t->pyobj)) return t ? tp_py_wrap_as_steal(type, t) : NULL;
        tp_autoref *answered = t; /* a mode's answer is an object already */
        return type == &tp_py_tensor_type ? tp_py_wrap(answered) : tp_py_wrap_as_steal(type, tp_alias(answered));
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
    if (n == 0 && !sized) sizes[n++] = 0;
    return tp_py_wrap_as_steal(type, tp_new_empty((tp_ints){sizes, n}, tp_default_dtype(), TP_CPU));
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

GETTER(shape, tp_unlikely(tp_is_nested(t)) ? tp_py_nested_size_steal(o, NULL) : tp_py_size(tp_sizes(t)))
GETTER(dtype, tp_py_dtype_object((tp_dtype)t->dtype))
GETTER(device, tp_py_device_object(t->device))
GETTER(ndim, PyLong_FromLong(t->ndim))
GETTER(itemsize, PyLong_FromLongLong(tp_itemsize((tp_dtype)t->dtype)))
static PyObject *bytes_of(tp_tensor *t) {
    int64_t n = t->numel;
    if (tp_unlikely(tp_is_nested(t)) && tp_numel(t, &n) < 0) return tp_py_raise();
    return PyLong_FromLongLong(n * tp_itemsize((tp_dtype)t->dtype));
}
GETTER(nbytes, bytes_of(t))
GETTER(requires_grad, PyBool_FromLong(tp_is_batched(t) ? tp_batch_requires_grad(t) : tp_requires_grad(t)))
GETTER(is_leaf, PyBool_FromLong(tp_is_leaf(t)))
NAMED_GETTER_OF(base, "_base", tp_shown_base(t) ? tp_py_wrap(tp_shown_base(t)) : Py_NewRef(Py_None))
NAMED_GETTER_OF(version, "_version",
                t->flags &TP_FLAG_INFERENCE
                    ? PyErr_Format(PyExc_RuntimeError, "Inference tensors do not track version counter.")
                    : PyLong_FromUnsignedLong(tp_contents_version(t)))
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

GETTER(layout, tp_py_layout_object(tp_layout_of(t)))
GETTER(is_sparse, PyBool_FromLong(tp_layout_of(t) == TP_SPARSE_COO))
GETTER(is_nested, PyBool_FromLong(tp_is_nested(t)))
GETTER(is_quantized, PyBool_FromLong(tp_is_quantized(t)))
GETTER(is_sparse_csr, PyBool_FromLong(tp_layout_of(t) == TP_SPARSE_CSR))
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
    if (!value) return PyErr_SetString(PyExc_RuntimeError, "requires_grad must be a bool: it cannot be deleted"), -1;
    if (!PyBool_Check(value))
        return PyErr_Format(PyExc_RuntimeError, "requires_grad must be a bool, not %s", Py_TYPE(value)->tp_name), -1;
    if (!tp_is_leaf(TENSOR(o))) /* True as well, which requires_grad_() lets pass */
        return PyErr_SetString(PyExc_RuntimeError,
                               "you can only change requires_grad flags of leaf variables: detach() gives one"),
               -1;
    if (tp_py_tell_recorder("requires_grad is set") < 0) return -1;
    tp_py_parameter_changes(o);
    return tp_py_check(tp_set_requires_grad(TENSOR(o), value == Py_True));
}

SETTER(_grad_fn) {
    if (!value)
        return PyErr_SetString(PyExc_RuntimeError, "Deletion of _grad_fn not allowed. Detach tensor instead!"), -1;
    if (value != Py_None) return PyErr_SetString(PyExc_RuntimeError, "_grad_fn can be only set to None"), -1;
    PyObject *itself = PyObject_CallMethod(o, "detach_", NULL);
    Py_XDECREF(itself);
    return itself ? 0 : -1;
}

SETTER(grad) {
    tp_tensor *t = TENSOR(o);
    if (!value || value == Py_None) {
        if (t->autograd) tp_py_grad_is_set(t), tp_put_grad_steal(t, NULL);
        return 0;
    }
    if (!tp_py_is_tensor(value))
        return PyErr_Format(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s",
                            Py_TYPE(value)->tp_name),
               -1;
    if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o); /* the gradient's attributes may lead back */
    tp_py_grad_is_set(t);
    return tp_py_check(tp_set_grad(t, TENSOR(value)));
}

SETTER(data) {
    tp_py_memory_changes();
    if (!value)
        return PyErr_SetString(PyExc_RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!"), -1;
    if (!tp_py_is_tensor(value))
        return PyErr_Format(PyExc_TypeError, "Variable data has to be a tensor, but got %s", Py_TYPE(value)->tp_name),
               -1;
    return tp_py_check(tp_put_data(TENSOR(o), TENSOR(value)));
}

static int cannot_delete(const char *name) {
    PyErr_Format(PyExc_RuntimeError, "Tensor.%s cannot be deleted", name);
    return -1;
}

#define SETTER_VIEW(name, view)                                       \
    SETTER(name) {                                                    \
        if (!value) return cannot_delete(#name);                      \
        PyObject *part = get_##name(o, NULL);                         \
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

static int set_dict(PyObject *o, PyObject *value, void *unused) {
    (void)unused;
    if (!value || !PyDict_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "__dict__ must be set to a dictionary");
        return -1;
    }
    Py_INCREF(value);
    Py_XSETREF(((tp_py_tensor *)o)->dict, value);
    if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
    return 0;
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
    {"layout", get_layout, NULL, "What the elements are kept as: tensorpy.strided, ...", NULL},
    {"ndim", get_ndim, NULL, "The number of dimensions.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether a gradient is wanted.", NULL},
    {"grad", get_grad, set_grad, "The gradient that backward() has added up, or None.", NULL},
    {"_grad", get_grad, set_grad, "The same as grad.", NULL},
    {"grad_fn", get_grad_fn, NULL, "The node of the graph that made this tensor, or None.", NULL},
    {"_grad_fn", get_grad_fn, set__grad_fn, NULL, NULL},
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
    {"is_sparse", get_is_sparse, NULL, "Whether the layout is sparse_coo.", NULL},
    {"is_sparse_csr", get_is_sparse_csr, NULL, "Whether the layout is sparse_csr.", NULL},
    {"is_quantized", get_is_quantized, NULL, "Whether the elements are integers with a scale and a zero point.", NULL},
    {"is_nested", get_is_nested, NULL, "Whether these are tensors of several sizes.", NULL},
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
    {"__dict__", get_dict, set_dict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
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
    tp_py_help_tables("Tensor.", own);
    size_t total = (size_t)count_methods(own) + (size_t)count_methods(tp_py_generated_methods);
    PyMethodDef *all = PyMem_Calloc(total + 1, sizeof *all);
    if (all) append_methods(append_methods(all, own), tp_py_generated_methods);
    return all;
}

static void fill_type(PyTypeObject *t) {
    t->tp_new = tensor_new;
    t->tp_traverse = tensor_traverse;
    t->tp_clear = tensor_clear;
    t->tp_setattro = tensor_setattro;
    t->tp_getset = tp_py_tensor_getset;
    t->tp_repr = tp_py_tensor_repr;
    t->tp_iter = tp_py_tensor_iter;
    t->tp_richcompare = tp_py_tensor_richcompare;
    t->tp_as_number = &tp_py_tensor_number;
    t->tp_as_mapping = &tp_py_tensor_mapping;
    t->tp_as_sequence = &tp_py_tensor_sequence;
    t->tp_as_buffer = &tp_py_tensor_buffer;
    t->tp_methods = all_methods();
}

int tp_py_init_tensor(PyObject *m) {
    fill_type(&tp_py_tensor_type);
    tp_py_help_type(&tp_py_tensor_type);
    if (!tp_py_tensor_type.tp_methods || PyType_Ready(&tp_py_tensor_type) < 0) return -1;
    /* Programs give Tensor methods of their own and make tensors objects of their subclasses, as they can of a class
     * that is written in Python. */
    tp_py_tensor_type.tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
    return PyModule_AddObjectRef(m, "Tensor", (PyObject *)&tp_py_tensor_type);
}
