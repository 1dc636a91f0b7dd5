/* node.c: grad_fn objects: their class, what they saved, calling one.
 *
 * A Node object owns its node; the node knows the object weakly, so that `t.grad_fn is t.grad_fn`. */
#include "python/autograd.h"
#include "python/help.h"
#include "python/returns.h"
#include "python/values.h"

#include "autograd/engine.h"

#include <stddef.h>
#include <string.h>

typedef struct {
    PyObject_HEAD tp_node *node;
    PyObject *weakrefs;
} py_node;
static PyTypeObject node_type;
static void node_dealloc(PyObject *o);
static int node_traverse(PyObject *o, visitproc visit, void *arg);
static int node_clear(PyObject *o);
#define NODE(o) (((py_node *)(o))->node)

/* The class of the objects of nodes of a name (borrowed): a subclass of Node, made when it is first asked for. */
static PyTypeObject *class_named(const char *short_name) {
    static PyObject *classes; /* name -> class */
    if (!classes && !(classes = PyDict_New())) return NULL;
    PyObject *name = PyUnicode_FromString(short_name);
    PyObject *found = name ? PyDict_GetItemWithError(classes, name) : NULL;
    if (name && !found && !PyErr_Occurred()) {
        char full[256];
        snprintf(full, sizeof full, "tensorpy.autograd.%s", short_name);
        PyType_Slot slots[] = {
            {Py_tp_dealloc, node_dealloc}, {Py_tp_traverse, node_traverse}, {Py_tp_clear, node_clear}, {0, NULL}};
        PyType_Spec spec = {full, sizeof(py_node), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
        PyObject *made = PyType_FromSpecWithBases(&spec, (PyObject *)&node_type);
        if (made && PyDict_SetItem(classes, name, made) == 0) found = made;
        Py_XDECREF(made);
    }
    Py_XDECREF(name);
    return (PyTypeObject *)found;
}

PyObject *tp_py_node(tp_node *n) {
    if (!n) Py_RETURN_NONE;
    if (n->pyobj) return Py_NewRef((PyObject *)n->pyobj);
    PyTypeObject *class = class_named(n->type->name);
    py_node *o = class ? PyObject_GC_New(py_node, class) : NULL;
    if (!o) return NULL;
    o->node = tp_node_retain(n);
    o->weakrefs = NULL;
    n->pyobj = o;
    PyObject_GC_Track(o);
    return (PyObject *)o;
}

PyObject *tp_py_grad_fn(tp_tensor *t) {
    tp_error_clear();
    tp_node *n = tp_grad_fn_borrow(t);
    return !n && tp_error_pending() ? tp_py_raise() : tp_py_node(n);
}

/* A hook of a node may refer to its object. A node that others hold, too, is in use with its hooks. */
static int node_traverse(PyObject *o, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(o));
    return tp_py_traverse_graph(NODE(o), visit, arg);
}
static int node_clear(PyObject *o) {
    if (atomic_load(&NODE(o)->refcount) == 1) tp_py_clear_hooks(NODE(o)->hooks);
    return 0;
}

static void node_dealloc(PyObject *o) {
    PyObject_GC_UnTrack(o);
    if (((py_node *)o)->weakrefs) PyObject_ClearWeakRefs(o);
    NODE(o)->pyobj = NULL;
    tp_node_release(NODE(o));
    PyTypeObject *class = Py_TYPE(o);
    PyObject_GC_Del(o);
    Py_DECREF(class);
}

static PyObject *node_name(PyObject *o, PyObject *unused) {
    (void)unused;
    const tp_node_type *type = NODE(o)->type;
    return PyUnicode_FromFormat("%s%s", type->of_engine ? "torch::autograd::" : "", type->name);
}
static PyObject *node_repr(PyObject *o) { return PyUnicode_FromFormat("<%s object at %p>", NODE(o)->type->name, o); }

static PyObject *node_next_functions(PyObject *o, void *unused) {
    (void)unused;
    tp_node *n = NODE(o);
    PyObject *tuple = PyTuple_New(n->nedges);
    for (uint32_t i = 0; tuple && i < n->nedges; i++) {
        PyObject *next = tp_py_node(n->edges[i].node);
        PyObject *pair = next ? Py_BuildValue("NI", next, n->edges[i].input_nr) : NULL;
        if (!pair) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, pair);
    }
    return tuple;
}
static PyObject *node_variable(PyObject *o, void *unused) {
    (void)unused;
    tp_tensor *t = tp_accumulator_variable_borrow(NODE(o));
    if (t) return tp_py_wrap(t);
    return PyErr_Format(PyExc_AttributeError, "only AccumulateGrad has a variable, not %s", NODE(o)->type->name);
}

/* ---- saved values: y.grad_fn._saved_self ---- */

static const char prefix[] = "_saved_";

/* Which of the names with spaces between one is, or -1. */
static int saved_place(const char *names, const char *name) {
    size_t length = strlen(name);
    const char *at = names ? names : "";
    for (int i = 0; *at; i++) {
        size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, name, length) == 0) return i;
        at += word + (at[word] == ' ');
    }
    return -1;
}

static PyObject *saved_value(tp_node *n, int place) {
    const tp_saved *saved = (const tp_saved *)(n + 1);
    if (place < n->type->nsaved) {
        tp_tensor *t = tp_saved_get_whole(&saved[place], n);
        if (t) return tp_py_wrap_steal(t);
        return tp_error_pending() ? tp_py_raise() : Py_NewRef(Py_None);
    }
    tp_saved_list *const *lists = (tp_saved_list *const *)(saved + n->type->nsaved);
    tp_tensor_seq *all = NULL;
    if (tp_saved_list_get(lists[place - n->type->nsaved], n, &all) < 0) return tp_py_raise();
    return tp_py_wrap_seq_steal(all);
}

/* For each output of the call what its gradient has to look like. */
static PyObject *node_input_metadata(PyObject *o, void *unused TP_UNUSED) {
    const tp_node *n = NODE(o);
    PyObject *list = PyList_New(0), *module = PyImport_ImportModule("tensorpy.autograd.graph");
    for (uint32_t i = 0; list && module && i < n->ninputs; i++) {
        const tp_input_meta *m = &n->inputs[i];
        PyObject *item = Py_NewRef(Py_None);
        if (m->defined) {
            PyObject *sizes = tp_py_size((tp_ints){m->sizes, m->ndim}), *device = tp_py_device_object(m->device);
            PyObject *dtype = tp_py_dtype_object((tp_dtype)m->dtype);
            Py_SETREF(item, PyObject_CallMethod(module, "_InputMetadata", "NNN", sizes, dtype, device));
        }
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (!module) Py_CLEAR(list);
    Py_XDECREF(module);
    return list;
}

/* y.grad_fn._raw_saved_self: what stands for a saved value and takes hooks for it (tensorpy/autograd/graph.py). */
static PyObject *raw_saved(PyObject *node, int place) {
    tp_node *n = NODE(node);
    int64_t count = -1;
    if (n->released && tp_py_function_ctx_borrow(n)) {
        tp_saved gone = {0};
        return tp_saved_get(&gone, n), tp_py_raise();
    }
    if (place >= n->type->nsaved) {
        tp_saved_list *const *lists = (tp_saved_list *const *)((const tp_saved *)(n + 1) + n->type->nsaved);
        const tp_saved_list *list = lists[place - n->type->nsaved];
        count = list ? list->size : 0;
    }
    PyObject *module = PyImport_ImportModule("tensorpy.autograd.graph");
    PyObject *made = module ? PyObject_CallMethod(module, "_raw_saved", "OiL", node, place, (long long)count) : NULL;
    Py_XDECREF(module);
    return made;
}

/* _hook_saved(node, place, index, pack, unpack) */
static PyObject *hook_saved(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *node, *hooks, *before = (PyObject *)tp_tls.saved_hooks;
    int place;
    long long index;
    if (!PyArg_ParseTuple(args, "O!iLO!", &node_type, &node, &place, &index, &PyTuple_Type, &hooks)) return NULL;
    tp_node *n = NODE(node);
    if (place < 0 || place >= n->type->nsaved + n->type->nlists || index < 0)
        return PyErr_Format(PyExc_IndexError, "there is no such saved value");
    tp_saved *saved = (tp_saved *)(n + 1), *s = &saved[place];
    if (place >= n->type->nsaved) {
        tp_saved_list *list = ((tp_saved_list **)(saved + n->type->nsaved))[place - n->type->nsaved];
        if (!list || index >= list->size) return PyErr_Format(PyExc_IndexError, "there is no such saved value");
        s = &list->items[index];
    }
    tp_set_saved_hooks(hooks);
    int status = tp_saved_hook(s, n);
    tp_set_saved_hooks(before);
    if (status < 0) return tp_py_raise();
    Py_RETURN_NONE;
}

static int append_names(PyObject *all, const char *names) {
    const char *at = names ? names : "";
    while (*at) {
        size_t word = strcspn(at, " ");
        PyObject *saved = PyUnicode_FromStringAndSize(at, (Py_ssize_t)word);
        PyObject *name = saved ? PyUnicode_FromFormat("%s%U", prefix, saved) : NULL;
        int status = name ? PyList_Append(all, name) : -1;
        Py_XDECREF(name);
        Py_XDECREF(saved);
        if (status < 0) return -1;
        at += word + (at[word] == ' ');
    }
    return 0;
}

/* dir(node): with the names of what it saved. */
static PyObject *node_dir(PyObject *o, PyObject *unused) {
    (void)unused;
    const tp_node_type *type = NODE(o)->type;
    PyObject *names = PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__dir__", "O", o);
    if (names && (append_names(names, type->saved) < 0 || append_names(names, type->numbers) < 0)) Py_CLEAR(names);
    return names;
}

/* y.grad_fn._saved_dim: a number, as PyTorch's getters give it. An integer is read as unsigned there (dim=-1 is
 * 2**64 - 1), and a list is a tuple. */
static PyObject *saved_number(const tp_node *n, int place) {
    tp_value v = n->type->number(n, place);
    if (v.tag == TP_INT) return PyLong_FromUnsignedLongLong((unsigned long long)v.i);
    if (v.tag == TP_INTS_) {
        PyObject *tuple = PyTuple_New((Py_ssize_t)v.ints.size);
        for (int64_t i = 0; tuple && i < v.ints.size; i++) {
            PyObject *item = PyLong_FromUnsignedLongLong((unsigned long long)v.ints.data[i]);
            if (item) PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, item);
            else Py_CLEAR(tuple);
        }
        return tuple;
    }
    PyObject *value = tp_py_from_argument(&v);
    if (!value || !PyList_Check(value)) return value;
    PyObject *tuple = PyList_AsTuple(value);
    Py_DECREF(value);
    return tuple;
}

/* grad_fn of a Function stands for its context, too: y.grad_fn.saved_tensors. */
static PyObject *node_getattro(PyObject *o, PyObject *name) {
    PyObject *value = PyObject_GenericGetAttr(o, name), *ctx = tp_py_function_ctx_borrow(NODE(o));
    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
    const char *text = PyUnicode_AsUTF8(name);
    bool is_raw = text && strncmp(text, "_raw", 4) == 0;
    text = is_raw ? text + 4 : text;
    bool is_saved = text && strncmp(text, prefix, sizeof prefix - 1) == 0;
    const char *saved = is_saved ? text + sizeof prefix - 1 : NULL;
    int place = is_saved ? saved_place(ctx ? "tensors" : NODE(o)->type->saved, saved) : -1;
    if (ctx && !is_raw) place = -1; /* only its _raw_saved_tensors: the values are saved_tensors */
    int number = is_saved && !is_raw ? saved_place(NODE(o)->type->numbers, saved) : -1;
    if (place < 0 && number < 0 && !ctx) return NULL;
    PyErr_Clear();
    if (number >= 0) return saved_number(NODE(o), number);
    if (place >= 0 && is_raw) return raw_saved(o, place);
    return place >= 0 ? saved_value(NODE(o), place) : PyObject_GetAttr(ctx, name);
}
static PyObject *node_sequence(PyObject *o, PyObject *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(NODE(o)->sequence);
}
static PyObject *node_set_sequence(PyObject *o, PyObject *number) {
    uint64_t sequence = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) return NULL;
    NODE(o)->sequence = sequence;
    Py_RETURN_NONE;
}

/* ---- hooks of a node ---- */

static PyObject *node_hooks(PyObject *o, bool before) {
    tp_py_hooks *hooks = tp_py_hooks_ensure(&NODE(o)->hooks);
    return hooks ? Py_XNewRef(tp_py_dict_ensure(before ? &hooks->before : &hooks->after)) : NULL;
}
static PyObject *node_pre_hooks(PyObject *o, PyObject *unused) {
    (void)unused;
    return node_hooks(o, true);
}
static PyObject *node_post_hooks(PyObject *o, PyObject *unused) {
    (void)unused;
    return node_hooks(o, false);
}

static PyObject *node_metadata(PyObject *o, void *unused) {
    (void)unused;
    tp_py_hooks *hooks = tp_py_hooks_ensure(&NODE(o)->hooks);
    return hooks ? Py_XNewRef(tp_py_dict_ensure(&hooks->metadata)) : NULL;
}

/* ---- calling one ---- */

static PyObject *call_node(tp_node *node, tp_tensors grads) {
    tp_tensor **out = PyMem_Calloc(node->nedges + 1, sizeof *out);
    if (!out) return PyErr_NoMemory();
    PyObject *result = NULL;
    if (tp_apply_node(node, grads, out) < 0) tp_py_raise();
    else result = tp_py_gradients(out, (int)node->nedges);
    for (uint32_t i = 0; i < node->nedges; i++) tp_release(out[i]);
    PyMem_Free(out);
    if (!result || node->nedges != 1) return result;
    PyObject *only = Py_NewRef(PyTuple_GET_ITEM(result, 0));
    Py_DECREF(result);
    return only;
}

/* node(*gradients): those of its arguments, one gradient for one argument. */
static PyObject *node_call(PyObject *o, PyObject *args, PyObject *kwargs) {
    tp_node *node = ((py_node *)o)->node;
    if (kwargs && PyDict_GET_SIZE(kwargs)) return PyErr_Format(PyExc_TypeError, "a node takes no keyword arguments");
    if (PyTuple_GET_SIZE(args) != (Py_ssize_t)node->ninputs)
        return PyErr_Format(PyExc_TypeError, "%s expected %u arguments, got %zd instead", node->type->name,
                            node->ninputs, PyTuple_GET_SIZE(args));
    tp_tensors grads;
    PyObject *result = NULL;
    if (tp_py_take_tensors(args, true, "a node takes tensors", &grads) == 0) result = call_node(node, grads);
    tp_py_free_tensors(grads);
    return result;
}

/* ---- the class ---- */

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name($self, /)\n--\n\nThe node's name.\n\nReturns: str."},
    {"_pre_hooks", node_pre_hooks, METH_NOARGS, NULL},
    {"_post_hooks", node_post_hooks, METH_NOARGS, NULL},
    {"_sequence_nr", node_sequence, METH_NOARGS, NULL},
    {"_set_sequence_nr", node_set_sequence, METH_O, NULL},
    {"__dir__", node_dir, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
/* A Function's node is an instance of the class of its contexts. */
static PyObject *shown_class(PyObject *o, void *unused) {
    (void)unused;
    PyObject *ctx = tp_py_function_ctx_borrow(NODE(o));
    return Py_NewRef((PyObject *)(ctx ? Py_TYPE(ctx) : Py_TYPE(o)));
}

static PyGetSetDef node_getset[] = {
    {"__class__", shown_class, NULL, NULL, NULL},
    {"next_functions", node_next_functions, NULL,
     "(node, output number) of each argument; None where no gradient goes.", NULL},
    {"variable", node_variable, NULL, "The leaf of an AccumulateGrad.", NULL},
    {"metadata", node_metadata, NULL, "A dict that lives as long as the node.", NULL},
    {"_input_metadata", node_input_metadata, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject node_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.autograd.Node",
    .tp_basicsize = sizeof(py_node),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = node_dealloc,
    .tp_traverse = node_traverse,
    .tp_clear = node_clear,
    .tp_repr = node_repr,
    .tp_call = node_call,
    .tp_getattro = node_getattro,
    .tp_methods = node_methods,
    .tp_getset = node_getset,
    .tp_weaklistoffset = offsetof(py_node, weakrefs),
};

/* _tensor_of_edge(node, output_nr) -> tensor */
static PyObject *tensor_of_edge(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *node;
    unsigned int nr;
    if (!PyArg_ParseTuple(args, "O!I", &node_type, &node, &nr)) return NULL;
    tp_tensor *t = tp_tensor_of_edge(NODE(node), nr);
    return t ? tp_py_wrap_steal(t) : tp_py_raise();
}

static PyObject *will_reach(PyObject *self, PyObject *node) {
    (void)self;
    if (!PyObject_TypeCheck(node, &node_type))
        return PyErr_Format(PyExc_RuntimeError, "_will_engine_execute_node expects an grad_fn, but got %s",
                            Py_TYPE(node)->tp_name);
    if (tp_current_backward() < 0) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "_get_graph_exec_info() should only be called during the backward pass: no node is reached now");
        return NULL;
    }
    if (tp_backward_captures_leaf(NODE(node)))
        return PyErr_Format(PyExc_RuntimeError,
                            "A leaf node was passed to _will_engine_execute_node but we are currently running "
                            "autograd.grad(). This is currently not supported: its gradient is not accumulated");
    return PyBool_FromLong(tp_backward_will_reach(NODE(node)));
}

/* _node_class(name): what nodes of a name are instances of. */
static PyObject *node_class(PyObject *self TP_UNUSED, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    return text ? Py_XNewRef((PyObject *)class_named(text)) : NULL;
}

/* _current_autograd_node(): the node that runs, None outside of a backward. */
static PyObject *current_node(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    return tp_py_node(tp_running_node_borrow());
}

static PyMethodDef functions[] = {
    {"_will_engine_execute_node", will_reach, METH_O, NULL},
    {"_node_class", node_class, METH_O, NULL},
    {"_current_autograd_node", current_node, METH_NOARGS, NULL},
    {"_tensor_of_edge", tensor_of_edge, METH_VARARGS, NULL},
    {"_hook_saved", hook_saved, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_node(PyObject *m) {
    tp_py_help_type(&node_type);
    if (PyModule_AddType(m, &node_type) < 0) return -1;
    return tp_py_add_functions(m, NULL, (PyMethodDef *const[]){functions, NULL});
}
