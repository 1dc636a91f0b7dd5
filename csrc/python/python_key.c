/* python_key.c: the keys Python and PythonMode; see python_key.h.
 *
 * One boxed fallback serves both. At Python, below autograd, the thread's modes are asked, then the classes of the
 * arguments; at PythonMode, above all other layers, only modes that asked for that (modes.h). The fallbacks are
 * registered when the first class or mode appears. */
#include "python/python_key.h"

#include "autograd/node.h"
#include "core/layout.h"
#include "core/scalar_math.h"
#include "dispatch/schema.h"
#include "python/arguments.h"
#include "python/modes.h"
#include "python/ops.h"
#include "python/overrides.h"
#include "python/values.h"

#include <stdio.h>
#include <string.h>

static PyObject *torch_dispatch; /* interned: "__torch_dispatch__" */
static PyObject *rules;          /* (operator, class) -> function: register_torch_dispatch */

/* The stacks of modes: below autograd, where classes are asked too; above all. */
enum { BELOW_AUTOGRAD, ABOVE_ALL, NUM_STACKS };
static const tp_key keys[NUM_STACKS] = {TP_KEY_Python, TP_KEY_PythonMode};
static const char *const stack_names[NUM_STACKS] = {"tensorpy.dispatch_modes", "tensorpy.outer_dispatch_modes"};

/* ---- who has one ---- */

static PyObject *disabled(PyObject *self, PyObject *call);

bool tp_py_has_dispatch(PyTypeObject *type) {
    PyObject *found = type == &tp_py_tensor_type ? NULL : _PyType_Lookup(type, torch_dispatch);
    return found && !(PyCFunction_Check(found) && PyCFunction_GET_FUNCTION(found) == disabled);
}

static int python_layer(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context);

static int ensure_registered(void) {
    static bool registered; /* under the host lock */
    if (registered) return 0;
    for (int i = 0; i < NUM_STACKS; i++)
        if (tp_register_fallback(keys[i], python_layer, (void *)&keys[i], NULL, "python/python_key.c") < 0)
            return tp_py_check(-1);
    registered = true;
    return 0;
}

/* A tensor has become an object of the class: it gets the key Python if that has a __torch_dispatch__; a wrapper keeps
 * the key. */
static int remark(PyTypeObject *type, tp_tensor *t) {
    if (!tp_is_wrapper(t)) t->keys &= ~TP_BIT(Python);
    if (!tp_py_has_dispatch(type)) return 0;
    t->keys |= TP_BIT(Python);
    return ensure_registered();
}

int tp_py_refuse_wrapper(const tp_tensor *t, const char *what) {
    if (tp_likely(tp_has_memory(t))) return 0;
    if (!tp_is_wrapper(t)) {
        if (t->keys & TP_BIT(ZeroTensor)) {
            PyErr_Format(PyExc_RuntimeError,
                         "%s: Cannot convert a ZeroTensor, which has no memory. clone() gives one with zeros", what);
            return -1;
        }
        if (strcmp(what, "__dlpack__()") == 0) {
            PyErr_Format(PyExc_BufferError,
                         tp_is_quantized(t)
                             ? "Quantized types are not supported by dlpack"
                             : "Can't export tensors with layout other than torch.strided: this one's is %s",
                         tp_layouts[tp_layout_of(t)].name);
            return -1;
        }
        bool array = strcmp(what, "numpy()") == 0;
        PyErr_Format(array ? PyExc_TypeError : PyExc_RuntimeError,
                     "%s: can't convert a tensor of the layout %s. Use Tensor.%s() first.", what,
                     tp_layouts[tp_layout_of(t)].name, tp_is_quantized(t) ? "dequantize" : "to_dense");
        return -1;
    }
    PyErr_Format(PyExc_RuntimeError,
                 "%s: this tensor has no elements of its own, its class answers for it (__torch_dispatch__)", what);
    return -1;
}

/* ---- the modes of this thread ---- */

/* The list (borrowed), made at first use; NULL raises. */
static PyObject *modes_of_thread(int stack) {
    if (stack < 0 || stack >= NUM_STACKS) return PyErr_Format(PyExc_ValueError, "there is no such stack of modes");
    return tp_py_modes(stack_names[stack]);
}

static void update_include(PyObject *modes, int stack) {
    tp_keyset bit = (tp_keyset)1 << keys[stack];
    tp_tls.include = PyList_GET_SIZE(modes) ? tp_tls.include | bit : tp_tls.include & ~bit;
}

static int push(PyObject *mode, int stack) {
    PyObject *method = _PyType_Lookup(Py_TYPE(mode), torch_dispatch);
    if (!method)
        return PyErr_Format(PyExc_TypeError, "a mode has a __torch_dispatch__, %s has none", Py_TYPE(mode)->tp_name),
               -1;
    if (Py_IS_TYPE(method, &PyClassMethod_Type))
        return PyErr_Format(PyExc_RuntimeError,
                            "%s: the __torch_dispatch__ of a mode is a plain method, a classmethod is not supported",
                            Py_TYPE(mode)->tp_name),
               -1;
    PyObject *modes = modes_of_thread(stack);
    if (!modes || ensure_registered() < 0 || PyList_Append(modes, mode) < 0) return -1;
    update_include(modes, stack);
    return 0;
}

/* The innermost mode, new; NULL raises. */
static PyObject *pop(int stack) {
    PyObject *modes = modes_of_thread(stack);
    if (!modes) return NULL;
    PyObject *mode = tp_py_modes_pop(modes, "TorchDispatchMode");
    update_include(modes, stack);
    return mode;
}

/* ---- arguments as Python sees them ---- */

static bool same_value(const tp_value *a, const tp_value *b) {
    if (a->tag != b->tag) return false;
    switch (a->tag) {
    case TP_NONE: return true;
    case TP_SCALAR: return tp_scalar_equal(a->scalar, b->scalar);
    case TP_FLOAT: return a->f == b->f;
    case TP_BOOL_: return a->b == b->b;
    case TP_STR: return strcmp(a->str, b->str) == 0;
    case TP_DEVICE: return tp_device_equal(a->device, b->device);
    case TP_STORAGE: return a->storage == b->storage;
    case TP_STREAM: return tp_device_equal(a->stream.device, b->stream.device) && a->stream.id == b->stream.id;
    case TP_INTS_:
        return a->ints.size == b->ints.size &&
               (a->ints.size <= 0 || memcmp(a->ints.data, b->ints.data, (size_t)a->ints.size * sizeof(int64_t)) == 0);
    case TP_INT:
    case TP_DTYPE:
    case TP_LAYOUT:
    case TP_MEMORY_FORMAT: return a->i == b->i;
    default: return false;
    }
}

typedef struct {
    PyObject *function, *args, *kwargs; /* the overload; what differs from the defaults */
    PyObject *overloaded, *types;       /* an object per class that has a __torch_dispatch__, and the classes */
} python_call;

static void free_call(python_call *c) {
    Py_XDECREF(c->function);
    Py_XDECREF(c->args);
    Py_XDECREF(c->kwargs);
    Py_XDECREF(c->overloaded);
    Py_XDECREF(c->types);
}
#define auto_call TP_CLEANUP(free_call) python_call

static int add_classes(PyObject *overloaded, PyObject *o) {
    if (tp_py_is_tensor(o)) return tp_py_has_dispatch(Py_TYPE(o)) ? tp_py_add_overload(overloaded, o) : 0;
    for (Py_ssize_t i = 0; PyList_CheckExact(o) && i < PyList_GET_SIZE(o); i++)
        if (add_classes(overloaded, PyList_GET_ITEM(o, i)) < 0) return -1;
    return 0;
}

/* x * 2 is mul.Scalar, for which kernels have a shorter way: who is asked sees mul.Tensor(x, 2), as PyTorch's do. */
const tp_op *tp_py_asked_operator(const tp_op *op) {
    char name[128];
    const char *overload = op->info->asked_as;
    if (!overload) return op;
    bool is_default = strcmp(overload, "default") == 0;
    int n = snprintf(name, sizeof name, is_default ? "%s" : "%s.%s", op->info->name, overload);
    const tp_op *other = n < (int)sizeof name ? tp_find_op_qualified(name) : NULL;
    return other ? other : op;
}

/* Positional arguments up to the last that is not its default, and keyword ones that are not theirs. */
static int collect(python_call *c, const tp_op *op, const tp_value *args) {
    op = tp_py_asked_operator(op);
    if (!(c->function = tp_py_overload_object(op))) return -1;
    const tp_py_param *params = tp_py_function_of(c->function)->signatures[0].params;
    int n = op->info->nargs, positional = 0;
    for (int i = 0; i < n; i++)
        if (!op->info->args[i].kwarg_only && !(params[i].value && same_value(&args[i], params[i].value)))
            positional = i + 1;
    c->args = PyTuple_New(positional);
    c->kwargs = PyDict_New();
    c->overloaded = PyList_New(0);
    if (!c->args || !c->kwargs || !c->overloaded) return -1;
    for (int i = 0; i < n; i++) {
        bool keyword = op->info->args[i].kwarg_only;
        if (keyword ? params[i].value && same_value(&args[i], params[i].value) : i >= positional) continue;
        PyObject *o = tp_py_from_argument(&args[i]);
        int status = !o                                  ? -1
                     : add_classes(c->overloaded, o) < 0 ? -1
                     : keyword                           ? PyDict_SetItemString(c->kwargs, op->info->args[i].name, o)
                                                         : 0;
        if (status == 0 && !keyword) PyTuple_SET_ITEM(c->args, i, Py_NewRef(o));
        Py_XDECREF(o);
        if (status < 0) return -1;
    }
    return 0;
}

/* ---- asking ---- */

/* A rule that was registered for the operator and the class goes before the class's own function. */
static PyObject *ask(const python_call *c, PyObject *o, bool is_mode) {
    PyObject *class = (PyObject *)Py_TYPE(o), *rule = NULL;
    if (PyDict_GET_SIZE(rules)) {
        PyObject *key = PyTuple_Pack(2, c->function, class);
        rule = key ? PyDict_GetItemWithError(rules, key) : NULL;
        Py_XDECREF(key);
        if (!rule && PyErr_Occurred()) return NULL;
    }
    if (rule)
        return PyObject_CallFunctionObjArgs(rule, is_mode ? o : class, c->function, c->types, c->args, c->kwargs, NULL);
    PyObject *method = PyObject_GetAttr(o, torch_dispatch);
    PyObject *result =
        method ? PyObject_CallFunctionObjArgs(method, c->function, c->types, c->args, c->kwargs, NULL) : NULL;
    Py_XDECREF(method);
    return result;
}

static PyObject *ask_mode(const python_call *c, int stack) {
    PyObject *mode = pop(stack);
    if (!mode) return NULL;
    PyObject *result = ask(c, mode, true);
    PyObject *kind, *value, *where;
    PyErr_Fetch(&kind, &value, &where);
    if (push(mode, stack) < 0) Py_CLEAR(result);
    Py_DECREF(mode);
    if (kind) PyErr_Restore(kind, value, where);
    return result;
}

static PyObject *ask_all(const python_call *c, bool with_mode, int stack) {
    PyObject *result = with_mode ? ask_mode(c, stack) : Py_NewRef(Py_NotImplemented);
    for (Py_ssize_t i = 0; result == Py_NotImplemented && i < PyList_GET_SIZE(c->overloaded); i++)
        Py_SETREF(result, ask(c, PyList_GET_ITEM(c->overloaded, i), false));
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    return PyErr_Format(PyExc_TypeError,
                        "no implementation found for '%S': every __torch_dispatch__ returned NotImplemented; the "
                        "classes are %R",
                        c->function, c->types);
}

/* ---- results ---- */

/* A wrapper that is a view shares the storage of what it views, and so its version. */
static void share_storage(const tp_tensor *from, tp_tensor *view) {
    if (!view || view == from || !tp_is_wrapper(view) || !tp_is_wrapper(from) || view->storage == from->storage) return;
    tp_storage *old = view->storage;
    view->storage = tp_storage_retain(from->storage);
    tp_storage_release(old);
}

static void share_with_viewed(const tp_op *op, const tp_value *args, tp_value *results) {
    int at = tp_viewed_argument(op);
    if (at < 0 || args[at].tag != TP_TENSOR) return;
    if (results[0].tag == TP_TENSOR) share_storage(args[at].tensor, results[0].tensor);
    for (int64_t i = 0; results[0].tag == TP_TENSOR_SEQ && i < results[0].seq->size; i++)
        share_storage(args[at].tensor, results[0].seq->items[i]);
}

/* In-place and out= operators of the tree give their arguments, whatever is returned. */
static bool gives_arguments(const tp_op *op) {
    bool all = !tp_is_definition(op);
    for (int i = 0; i < op->info->nreturns; i++) all &= op->info->returns[i].is_write;
    return all;
}

/* ---- the layer ---- */

static int refuse_wrappers(const tp_op *op, const tp_value *args) {
    char name[128];
    for (int i = 0; i < op->info->nargs; i++) {
        bool list = args[i].tag == TP_TENSORS;
        int64_t n = list ? args[i].tensors.size : args[i].tag == TP_TENSOR;
        for (int64_t k = 0; k < n; k++) {
            const tp_tensor *t = list ? args[i].tensors.data[k] : args[i].tensor;
            if (t && tp_is_wrapper(t))
                return tp_fail(TP_RuntimeError,
                               "%s: argument '%s' has no elements of its own, and no __torch_dispatch__ answers for it",
                               tp_op_name(op, name), op->info->args[i].name);
        }
    }
    return 0;
}

/* Whether a kernel looks at no more than a wrapper has: a view's, or a composite's, whose parts are asked again. */
static bool needs_geometry(const tp_op *op, const tp_tensor *wrapper) {
    tp_origin o;
    return tp_gives_views(op) || (tp_find_origin(op, tp_backend_key(wrapper->device.type), &o) &&
                                  o.key == TP_ALIAS_KEY(CompositeExplicitAutograd));
}

static int go_below(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, int stack) {
    tp_keyset below = (((tp_keyset)1 << keys[stack]) - 1) | TP_BIT(Trace);
    if (stack == BELOW_AUTOGRAD && op->info->nargs && args[0].tag == TP_TENSOR && tp_is_wrapper(args[0].tensor) &&
        needs_geometry(op, args[0].tensor))
        ks |= (tp_keyset)1 << tp_backend_key(args[0].tensor->device.type);
    else if (stack == BELOW_AUTOGRAD && refuse_wrappers(op, args) < 0) return -1;
    return tp_redispatch_boxed(op, ks & below, args, results);
}

/* 1: answered; 0: nobody is there; -1 raised. */
static int answer(const tp_op *op, const tp_value *args, tp_value *results, int stack) {
    PyObject *modes = modes_of_thread(stack);
    bool with_mode = modes && PyList_GET_SIZE(modes) > 0;
    auto_call c = {0};
    if (!modes || collect(&c, op, args) < 0) return -1;
    if (stack != BELOW_AUTOGRAD && PyList_SetSlice(c.overloaded, 0, PyList_GET_SIZE(c.overloaded), NULL) < 0) return -1;
    if (!(c.types = tp_py_types_of(c.overloaded))) return -1;
    if (!with_mode && PyTuple_GET_SIZE(c.types) == 0) return 0;
    PyObject *returned = ask_all(&c, with_mode, stack);
    if (!returned) return -1;
    int status = gives_arguments(op) ? 0 : tp_py_to_results(op, returned, "a __torch_dispatch__", results);
    Py_DECREF(returned);
    if (status < 0) return tp_py_check(-1);
    share_with_viewed(op, args, results);
    return 1;
}

static int python_layer(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    int stack = (int)((const tp_key *)context - keys);
    if (tp_tls.dispatch_off) return go_below(op, ks, args, results, stack);
    PyGILState_STATE gil = PyGILState_Ensure();
    int status = answer(op, args, results, stack);
    if (status < 0) tp_py_error_to_core();
    PyGILState_Release(gil);
    return status == 0 ? go_below(op, ks, args, results, stack) : status < 0 ? -1 : 0;
}

/* ---- data of a program ---- */

bool tp_py_has_dispatch_mode(void) { return (tp_tls.include & TP_BIT(Python)) && !tp_tls.dispatch_off; }

/* No layer but this one has anything to do for a tensor that nobody has seen. */
tp_tensor *tp_py_lift_steal(tp_tensor *t) {
    tp_autoref *fresh = t;
    if (!t || tp_likely(!tp_py_has_dispatch_mode())) return tp_take(fresh);
    tp_value arg = {.tag = TP_TENSOR, .tensor = fresh}, result = {0};
    int status = answer(tp_find_op_qualified("lift_fresh"), &arg, &result, BELOW_AUTOGRAD);
    if (status < 0) return NULL;
    return status ? result.tensor : tp_take(fresh);
}

/* ---- wrappers ---- */

static int read_sizes(const char *name, PyObject *o, int64_t *out) {
    PyObject *row = PySequence_Fast(o, "_make_wrapper_subclass() takes sizes as a sequence of ints");
    Py_ssize_t n = row ? PySequence_Fast_GET_SIZE(row) : -1;
    if (n > TP_MAX_DIMS) PyErr_Format(PyExc_ValueError, "_make_wrapper_subclass(): too many dimensions"), n = -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (tp_py_take_int("_make_wrapper_subclass", name, PySequence_Fast_GET_ITEM(row, i), &out[i]) < 0) n = -1;
    Py_XDECREF(row);
    return (int)n;
}

static tp_tensor *new_wrapper(tp_ints sizes, tp_ints strides, int64_t offset, tp_dtype dtype, tp_device device) {
    int64_t low = 0, high = 0, itemsize = tp_itemsize(dtype);
    if (tp_checked_numel(sizes) < 0 || tp_strided_extent(sizes, strides, &low, &high) < 0 ||
        tp_device_resolve(device, &device) < 0)
        return NULL;
    tp_storage *storage = tp_storage_from_blob(device, NULL, (size_t)((offset + high + 1) * itemsize), NULL, NULL);
    if (!storage) return NULL;
    tp_tensor *t = tp_new_on_storage(storage, sizes, strides, offset * itemsize, dtype);
    tp_storage_release(storage);
    if (t) t->keys = (t->keys & ~TP_BACKEND_KEYS) | TP_BIT(Python);
    return t;
}

/* _mark_pending(tensor, conj, neg): it, or what a wrapper stands for, is to be read so (Note [Pending math]); None
 * leaves one as it is. */
static PyObject *mark_pending(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *o, *conj, *neg;
    if (!PyArg_ParseTuple(args, "O!OO:_mark_pending", &tp_py_tensor_type, &o, &conj, &neg)) return NULL;
    tp_tensor *t = tp_py_tensor_borrow(o);
    bool conjugate = conj == Py_None ? tp_reads_conj(t) : conj == Py_True;
    bool negative = neg == Py_None ? tp_reads_neg(t) : neg == Py_True;
    if (tp_is_wrapper(t)) {
        t->flags &= (uint16_t)~(TP_FLAG_AS_CONJ | TP_FLAG_AS_NEG);
        t->flags |= (uint16_t)((conjugate ? TP_FLAG_AS_CONJ : 0) | (negative ? TP_FLAG_AS_NEG : 0));
    } else {
        t->keys &= ~TP_PENDING_MATH;
        t->keys |= (conjugate ? TP_BIT(Conjugate) : 0) | (negative ? TP_BIT(Negative) : 0);
    }
    Py_RETURN_NONE;
}

PyObject *tp_py_make_wrapper(PyObject *self TP_UNUSED, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"cls",
                                        "size",
                                        "strides",
                                        "storage_offset",
                                        "memory_format",
                                        "dtype",
                                        "layout",
                                        "device",
                                        "pin_memory",
                                        "requires_grad",
                                        "dispatch_sizes_strides_policy",
                                        "dispatch_device",
                                        "dispatch_layout",
                                        NULL};
    static const tp_py_arguments arguments = {"_make_wrapper_subclass", names, 3, 2};
    PyObject *v[13];
    if (tp_py_take_arguments(&arguments, args, nargs, kwnames, v) < 0) return NULL;
    if (!PyType_Check(v[0]) || !PyType_IsSubtype((PyTypeObject *)v[0], &tp_py_tensor_type))
        return PyErr_Format(PyExc_TypeError,
                            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
                            "possible. Make sure your class inherits from Tensor. Got %R",
                            v[0]);
    if (!tp_py_has_dispatch((PyTypeObject *)v[0]))
        return PyErr_Format(PyExc_TypeError, "%s must define __torch_dispatch__", ((PyTypeObject *)v[0])->tp_name);
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS], offset = 0;
    int ndim = read_sizes("size", v[1], sizes);
    if (ndim < 0) return NULL;
    tp_contiguous_strides((tp_ints){sizes, ndim}, strides);
    if (v[4] && v[4] != Py_None) {
        if (!Py_IS_TYPE(v[4], &tp_py_memory_format_type))
            return PyErr_Format(PyExc_TypeError, "_make_wrapper_subclass(): memory_format must be a memory_format");
        tp_memory_format format = (tp_memory_format)((tp_py_enum *)v[4])->value;
        if (tp_strides_for_format((tp_ints){sizes, ndim}, format, strides) < 0) return tp_py_raise();
    }
    if (v[2] && v[2] != Py_None && read_sizes("strides", v[2], strides) != ndim)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "_make_wrapper_subclass(): a stride per size");
    if (v[3] && v[3] != Py_None && tp_py_take_int("_make_wrapper_subclass", "storage_offset", v[3], &offset) < 0)
        return NULL;
    tp_dtype dtype = tp_default_dtype();
    tp_device device = tp_default_device();
    bool requires_grad = false;
    if (tp_py_take_dtype("_make_wrapper_subclass", v[5], &dtype) < 0 ||
        tp_py_take_device("_make_wrapper_subclass", v[7], &device) < 0 || tp_py_take_bool(v[9], &requires_grad) < 0)
        return NULL;
    if (offset < 0) return PyErr_Format(PyExc_ValueError, "_make_wrapper_subclass(): a storage_offset below 0");
    tp_autoref *t = new_wrapper((tp_ints){sizes, ndim}, (tp_ints){strides, ndim}, offset, dtype, device);
    if (!t || (requires_grad && tp_set_requires_grad(t, true) < 0)) return tp_py_raise();
    return tp_py_wrap_as_steal((PyTypeObject *)v[0], tp_take(t));
}

/* ---- functions ---- */

/* __torch_dispatch__ of Tensor: the operator itself, with nobody asked. */
static PyObject *disabled(PyObject *self TP_UNUSED, PyObject *call) {
    PyObject *function, *types, *args = NULL, *kwargs = NULL;
    if (!PyArg_ParseTuple(call, "OO|OO", &function, &types, &args, &kwargs)) return NULL;
    PyObject *given = args ? PySequence_Tuple(args) : PyTuple_New(0);
    uint8_t before = tp_tls.dispatch_off;
    tp_tls.dispatch_off = true;
    PyObject *result = given ? PyObject_Call(function, given, kwargs == Py_None ? NULL : kwargs) : NULL;
    tp_tls.dispatch_off = before;
    Py_XDECREF(given);
    return result;
}

static PyObject *set_dispatch_off(PyObject *module TP_UNUSED, PyObject *arg) {
    int wanted = PyObject_IsTrue(arg), before = tp_tls.dispatch_off;
    if (wanted < 0) return NULL;
    tp_tls.dispatch_off = (uint8_t)wanted;
    return PyBool_FromLong(before);
}

static PyObject *push_dispatch_mode(PyObject *module TP_UNUSED, PyObject *args) {
    PyObject *mode;
    int stack = 0;
    if (!PyArg_ParseTuple(args, "O|i", &mode, &stack) || push(mode, stack) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *pop_dispatch_mode(PyObject *module TP_UNUSED, PyObject *args) {
    int stack = 0;
    return PyArg_ParseTuple(args, "|i", &stack) ? pop(stack) : NULL;
}

static PyObject *dispatch_modes(PyObject *module TP_UNUSED, PyObject *args) {
    int stack = 0;
    PyObject *modes = PyArg_ParseTuple(args, "|i", &stack) ? modes_of_thread(stack) : NULL;
    return modes ? PyList_AsTuple(modes) : NULL;
}

static PyObject *is_wrapper(PyObject *module TP_UNUSED, PyObject *o) {
    return PyBool_FromLong(tp_py_is_tensor(o) && tp_is_wrapper(tp_py_tensor_borrow(o)));
}

static PyObject *is_wrapped_number(PyObject *module TP_UNUSED, PyObject *o) {
    return PyBool_FromLong(tp_py_is_tensor(o) && (tp_py_tensor_borrow(o)->flags & TP_FLAG_WRAPPED_NUMBER));
}

static PyObject *share(PyObject *module TP_UNUSED, PyObject *args) {
    PyObject *from, *view;
    if (!PyArg_ParseTuple(args, "O!O!", &tp_py_tensor_type, &from, &tp_py_tensor_type, &view)) return NULL;
    share_storage(tp_py_tensor_borrow(from), tp_py_tensor_borrow(view));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_mark_pending", mark_pending, METH_VARARGS, NULL},
    {"_push_dispatch_mode", push_dispatch_mode, METH_VARARGS, NULL},
    {"_pop_dispatch_mode", pop_dispatch_mode, METH_VARARGS, NULL},
    {"_dispatch_modes", dispatch_modes, METH_VARARGS, NULL},
    {"_set_dispatch_off", set_dispatch_off, METH_O, NULL},
    {"_is_wrapper", is_wrapper, METH_O, NULL},
    {"_is_wrapped_number", is_wrapped_number, METH_O, NULL},
    {"_share_storage", share, METH_VARARGS, NULL},
    {"_disabled_torch_dispatch_impl", disabled, METH_VARARGS,
     "_disabled_torch_dispatch_impl(func, types, args=(), kwargs=None, /)\n--\n\nAs __torch_dispatch__ of a class: it "
     "has none."},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_python_key(PyObject *m) {
    tp_py_remark = remark;
    if (!torch_dispatch && !(torch_dispatch = PyUnicode_InternFromString("__torch_dispatch__"))) return -1;
    if (!rules && !(rules = PyDict_New())) return -1;
    if (PyModule_AddObjectRef(m, "_dispatch_rules", rules) < 0 || PyModule_AddFunctions(m, functions) < 0) return -1;
    PyObject *own = PyObject_GetAttrString(m, "_disabled_torch_dispatch_impl");
    int status = own ? PyDict_SetItem(tp_py_tensor_type.tp_dict, torch_dispatch, own) : -1;
    Py_XDECREF(own);
    PyType_Modified(&tp_py_tensor_type);
    return status;
}
