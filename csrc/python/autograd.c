/* autograd.c: backward(), grad_fn objects and hooks.
 *
 * A Node object owns its node; the node knows the object weakly, so that `t.grad_fn is t.grad_fn`. Hooks are Python
 * dicts that hang on the node (for a leaf: on its autograd state). */
#include "python/autograd.h"
#include "python/help.h"
#include "python/replay.h"
#include "python/overrides.h"
#include "python/returns.h"
#include "python/values.h"

#include "autograd/engine.h"
#include "plan/plan.h"

#include <stddef.h>
#include <string.h>

#define WALK_ROOM 128    /* nodes that wait, in a walk for the collector */
#define WALK_STEPS 65536 /* and nodes in it, so that a collection does not take long */

/* ---- Node objects ---- */

typedef struct {
    PyObject_HEAD tp_node *node;
    PyObject *weakrefs;
} py_node;
static PyTypeObject node_type;
static void node_dealloc(PyObject *o);
#define NODE(o) (((py_node *)(o))->node)

/* The class of a node's objects (borrowed): a subclass of Node for each name, made when it is first asked for. */
static PyTypeObject *class_of(const tp_node *n) {
    static PyObject *classes; /* name -> class */
    if (!classes && !(classes = PyDict_New())) return NULL;
    PyObject *name = PyUnicode_FromString(n->type->name);
    PyObject *found = name ? PyDict_GetItemWithError(classes, name) : NULL;
    if (name && !found && !PyErr_Occurred()) {
        char full[256];
        snprintf(full, sizeof full, "tensorpy.autograd.%s", n->type->name);
        PyType_Slot slots[] = {{Py_tp_dealloc, node_dealloc}, {0, NULL}};
        PyType_Spec spec = {full, sizeof(py_node), 0, Py_TPFLAGS_DEFAULT, slots};
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
    PyTypeObject *class = class_of(n);
    py_node *o = class ? PyObject_New(py_node, class) : NULL;
    if (!o) return NULL;
    o->node = tp_node_retain(n);
    o->weakrefs = NULL;
    n->pyobj = o;
    return (PyObject *)o;
}

PyObject *tp_py_grad_fn(tp_tensor *t) {
    tp_error_clear();
    tp_node *n = tp_grad_fn_borrow(t);
    return !n && tp_error_pending() ? tp_py_raise() : tp_py_node(n);
}

static void node_dealloc(PyObject *o) {
    if (((py_node *)o)->weakrefs) PyObject_ClearWeakRefs(o);
    NODE(o)->pyobj = NULL;
    tp_node_release(NODE(o));
    PyTypeObject *class = Py_TYPE(o);
    PyObject_Free(o);
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

/* y.grad_fn._raw_saved_self: what stands for a saved value and takes hooks for it (tensorpy/autograd/graph.py). */
static PyObject *raw_saved(PyObject *node, int place) {
    const tp_node *n = NODE(node);
    int64_t count = -1;
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
    tp_tls.saved_hooks = hooks;
    int status = tp_saved_hook(s, n);
    tp_tls.saved_hooks = before;
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
    int place = is_saved ? saved_place(NODE(o)->type->saved, saved) : -1;
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

/* ---- hooks ---- */

static tp_py_hooks *hooks_ensure(tp_py_hooks **slot) {
    if (!*slot) *slot = PyMem_Calloc(1, sizeof **slot);
    if (!*slot) PyErr_NoMemory();
    return *slot;
}

static PyObject *dict_ensure(PyObject **slot) {
    if (!*slot) *slot = PyDict_New();
    return *slot;
}

/* _tensor_hooks(t): the dict of hooks on t's gradient. */
static PyObject *tensor_hooks(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg)) return PyErr_Format(PyExc_TypeError, "_tensor_hooks() takes a Tensor");
    tp_tensor *t = tp_py_tensor_borrow(arg);
    tp_node *fn = tp_grad_fn_borrow(t);
    tp_autograd_meta *m = tp_autograd_meta_ensure(t);
    tp_py_hooks *hooks = m ? hooks_ensure(fn ? &fn->hooks : &m->hooks) : NULL;
    PyObject *all = hooks ? dict_ensure(&hooks->tensor) : NULL;
    if (!fn && !PyObject_GC_IsTracked(arg)) PyObject_GC_Track(arg); /* a hook may refer to its tensor */
    PyObject *number = all ? PyLong_FromLong(fn ? (long)m->output_nr : 0) : NULL;
    PyObject *dict = number ? PyDict_GetItemWithError(all, number) : NULL;
    if (number && !dict && !PyErr_Occurred()) {
        PyObject *fresh = PyDict_New();
        if (fresh && PyDict_SetItem(all, number, fresh) == 0) dict = fresh;
        Py_XDECREF(fresh);
    }
    Py_XDECREF(number);
    return Py_XNewRef(dict);
}

/* _accumulate_hooks(t): the dict of hooks that run when t's .grad has been added to. */
static PyObject *accumulate_hooks(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg)) return PyErr_Format(PyExc_TypeError, "_accumulate_hooks() takes a Tensor");
    tp_autograd_meta *m = tp_autograd_meta_ensure(tp_py_tensor_borrow(arg));
    tp_py_hooks *hooks = m ? hooks_ensure(&m->hooks) : NULL;
    if (hooks && !PyObject_GC_IsTracked(arg)) PyObject_GC_Track(arg);
    return hooks ? Py_XNewRef(dict_ensure(&hooks->accumulated)) : NULL;
}

static PyObject *node_hooks(PyObject *o, bool before) {
    tp_py_hooks *hooks = hooks_ensure(&NODE(o)->hooks);
    return hooks ? Py_XNewRef(dict_ensure(before ? &hooks->before : &hooks->after)) : NULL;
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
    tp_py_hooks *hooks = hooks_ensure(&NODE(o)->hooks);
    return hooks ? Py_XNewRef(dict_ensure(&hooks->metadata)) : NULL;
}

static PyObject *grads_tuple(tp_tensor *const *grads, int n) {
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *item = grads[i] ? tp_py_wrap(grads[i]) : Py_NewRef(Py_None);
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static const char *kind_of(const tp_tensor *t, tp_text *text) {
    char device[40];
    tp_text_add(text, "%s on %s of sizes ", tp_dtype_names[t->dtype], tp_device_print(t->device, device));
    tp_text_ints(text, tp_sizes(t));
    return text->text ? text->text : "";
}

/* What a hook puts in a gradient's place has its sizes, dtype and device. */
static int check_hooked(PyObject *hook, const tp_tensor *grad, PyObject *result) {
    if (!tp_py_is_tensor(result)) {
        PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%s': a hook returns a Tensor or None",
                     Py_TYPE(result)->tp_name);
        return -1;
    }
    const tp_tensor *t = tp_py_tensor_borrow(result);
    if (!grad || (tp_same_sizes(grad, t) && grad->dtype == t->dtype && tp_device_equal(grad->device, t->device)))
        return 0;
    tp_autotext was = {0}, is = {0};
    PyObject *name = PyObject_GetAttrString(hook, "__name__");
    if (!name) {
        PyErr_Clear();
        name = PyObject_Repr(hook);
    }
    PyErr_Format(PyExc_RuntimeError, "hook '%S' has changed the %s of value: from %s to %s", name,
                 tp_same_sizes(grad, t) ? "type" : "size", kind_of(grad, &was), kind_of(t, &is));
    Py_XDECREF(name);
    return -1;
}

/* Puts what a hook returned into a slot. */
static int replace_grad(PyObject *hook, tp_tensor **slot, PyObject *value) {
    if (value != Py_None && check_hooked(hook, *slot, value) < 0) return -1;
    tp_tensor *old = *slot;
    *slot = value == Py_None ? NULL : tp_retain(tp_py_tensor_borrow(value));
    tp_release(old);
    return 0;
}

/* None for all changes nothing; None for one takes that gradient away. */
static int replace_grads(PyObject *hook, tp_tensor **slots, int n, PyObject *value) {
    if (value == Py_None) return 0;
    PyObject *all = PyTuple_Check(value) ? Py_NewRef(value) : PyTuple_Pack(1, value);
    int status = all && PyTuple_GET_SIZE(all) == n ? 0 : -1;
    if (all && status < 0)
        PyErr_Format(PyExc_RuntimeError,
                     "hook %R has returned an incorrect number of values (got %zd, but expected %d)", hook,
                     PyTuple_GET_SIZE(all), n);
    for (int i = 0; status == 0 && i < n; i++) status = replace_grad(hook, &slots[i], PyTuple_GET_ITEM(all, i));
    Py_XDECREF(all);
    return status;
}

/* The callables of a dict, as they are now: a hook may remove itself. */
static PyObject *callables(PyObject *dict) { return dict ? PyDict_Values(dict) : PyList_New(0); }

static int run_tensor_hooks(PyObject *all, tp_tensor **grads, int count) {
    PyObject *items = all ? PyDict_Items(all) : PyList_New(0); /* a hook may add others */
    if (!items) return -1;
    if (PyList_GET_SIZE(items)) tp_region_spoil("a hook of a tensor runs");
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(items); k++) {
        long nr = PyLong_AsLong(PyTuple_GET_ITEM(PyList_GET_ITEM(items, k), 0));
        PyObject *list = callables(PyTuple_GET_ITEM(PyList_GET_ITEM(items, k), 1));
        for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
            if (nr >= count || !grads[nr]) continue;
            PyObject *grad = tp_py_wrap(grads[nr]), *hook = PyList_GET_ITEM(list, i);
            PyObject *result = grad ? PyObject_CallOneArg(hook, grad) : NULL;
            if (!result || (result != Py_None && replace_grad(hook, &grads[nr], result) < 0)) Py_CLEAR(list);
            Py_XDECREF(grad);
            Py_XDECREF(result);
        }
        if (!list) {
            Py_DECREF(items);
            return -1;
        }
        Py_DECREF(list);
    }
    Py_DECREF(items);
    return 0;
}

static int hooks_before(tp_py_hooks *hooks, tp_tensor **grads, int count, bool runs) {
    PyGILState_STATE gil = PyGILState_Ensure();
    int status = run_tensor_hooks(hooks->tensor, grads, count);
    PyObject *list = status == 0 ? callables(runs ? hooks->before : NULL) : NULL;
    if (list && PyList_GET_SIZE(list)) tp_region_spoil("a hook of a node runs");
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *tuple = grads_tuple(grads, count), *hook = PyList_GET_ITEM(list, i);
        PyObject *result = tuple ? PyObject_CallOneArg(hook, tuple) : NULL;
        Py_XDECREF(tuple);
        if (!result || replace_grads(hook, grads, count, result) < 0) Py_CLEAR(list);
        Py_XDECREF(result);
    }
    if (!list) tp_py_error_to_core();
    status = list ? 0 : -1;
    Py_XDECREF(list);
    PyGILState_Release(gil);
    return status;
}

static int hooks_after(tp_py_hooks *hooks, tp_tensor **out, int nout, tp_tensor **grads, int ngrads) {
    if (!hooks->after) return 0;
    tp_region_spoil("a hook of a node runs");
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *list = callables(hooks->after);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *inputs = grads_tuple(out, nout), *outputs = grads_tuple(grads, ngrads);
        PyObject *hook = PyList_GET_ITEM(list, i),
                 *result = inputs && outputs ? PyObject_CallFunctionObjArgs(hook, inputs, outputs, NULL) : NULL;
        Py_XDECREF(inputs);
        Py_XDECREF(outputs);
        if (!result || replace_grads(hook, out, nout, result) < 0) Py_CLEAR(list);
        Py_XDECREF(result);
    }
    if (!list) tp_py_error_to_core();
    int status = list ? 0 : -1;
    Py_XDECREF(list);
    PyGILState_Release(gil);
    return status;
}

static int hooks_accumulated(tp_py_hooks *hooks, tp_tensor *leaf) {
    if (!hooks->accumulated) return 0;
    tp_region_spoil("a hook of a gradient runs");
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *list = callables(hooks->accumulated), *object = list ? tp_py_wrap(leaf) : NULL;
    for (Py_ssize_t i = 0; object && list && i < PyList_GET_SIZE(list); i++) {
        PyObject *result = PyObject_CallOneArg(PyList_GET_ITEM(list, i), object);
        if (result && result != Py_None)
            PyErr_Format(tp_py_is_tensor(result) ? PyExc_RuntimeError : PyExc_TypeError,
                         "a hook after the accumulation of a gradient must return None, not %s",
                         Py_TYPE(result)->tp_name);
        if (!result || result != Py_None) Py_CLEAR(object);
        Py_XDECREF(result);
    }
    int status = object ? 0 : tp_py_error_to_core();
    Py_XDECREF(object);
    Py_XDECREF(list);
    PyGILState_Release(gil);
    return status;
}

static void free_hooks(tp_py_hooks *hooks) {
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_XDECREF(hooks->tensor);
    Py_XDECREF(hooks->before);
    Py_XDECREF(hooks->after);
    Py_XDECREF(hooks->accumulated);
    Py_XDECREF(hooks->metadata);
    PyMem_Free(hooks);
    PyGILState_Release(gil);
}

static void forget_node(void *pyobj) { (void)pyobj; /* cannot happen: the object owns the node */ }

/* ---- for the garbage collector ---- */

PyObject *tp_py_kept_object(const tp_tensor *t) {
    return t && atomic_load(&t->refcount) == (TP_KEEPS_PYOBJ | 2) ? t->pyobj : NULL;
}

static int traverse_hooks(const tp_py_hooks *hooks, visitproc visit, void *arg) {
    if (!hooks) return 0;
    Py_VISIT(hooks->tensor);
    Py_VISIT(hooks->before);
    Py_VISIT(hooks->after);
    Py_VISIT(hooks->accumulated);
    Py_VISIT(hooks->metadata);
    return 0;
}

/* A walk over the part of the graph that lives only as long as its first node does: a node or a saved tensor belongs to
 * it when all of its references have been met. Every object in it is visited once for each reference, as the collector
 * counts them. What is held from elsewhere, or lies beyond the room, counts as in use, which is on the safe side. */
typedef struct {
    const tp_node *ready[WALK_ROOM];
    struct {
        const void *thing;
        int32_t met;
    } partly[WALK_ROOM];
    int nready, npartly;
    visitproc visit;
    void *arg;
} graph_walk;

/* Whether that was the last of its references. */
static bool met_all(graph_walk *w, const void *thing, int32_t references) {
    int at = 0;
    if (references < 2) return references == 1;
    while (at < w->npartly && w->partly[at].thing != thing) at++;
    if (at == WALK_ROOM) return false;
    if (at == w->npartly) w->partly[w->npartly++].thing = thing, w->partly[at].met = 0;
    if (++w->partly[at].met < references) return false;
    w->partly[at] = w->partly[--w->npartly];
    return true;
}

static void meet_node(graph_walk *w, const tp_node *n) {
    if (n && met_all(w, n, atomic_load(&n->refcount)) && w->nready < WALK_ROOM) w->ready[w->nready++] = n;
}

/* A tensor that only the graph holds: with an object that it keeps, or else what holds the node that it came from. */
static int meet_tensor(graph_walk *w, const tp_tensor *t) {
    int32_t count = t ? atomic_load(&t->refcount) : 0;
    bool keeps = count & TP_KEEPS_PYOBJ;
    if (keeps) count = (count & ~TP_KEEPS_PYOBJ) - 1; /* the object's own is not C's */
    if (!t || !met_all(w, t, count)) return 0;
    if (keeps) return w->visit(t->pyobj, w->arg);
    if (!t->pyobj && t->autograd) meet_node(w, t->autograd->grad_fn);
    return 0;
}

static int meet_saved(graph_walk *w, const tp_saved *saved, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int status = meet_tensor(w, saved[i].tensor);
        if (status == 0 && saved[i].packed) status = w->visit(saved[i].packed, w->arg);
        if (status) return status;
    }
    return 0;
}

static int meet_list(graph_walk *w, const tp_saved_list *list) {
    return list ? meet_saved(w, list->items, list->size) : 0;
}

/* What a node of an operator keeps: tp_node_type says where. */
static int meet_kept(graph_walk *w, const tp_node *n) {
    const tp_saved *saved = (const tp_saved *)(n + 1);
    tp_saved_list *const *lists = (tp_saved_list *const *)(saved + n->type->nsaved);
    int status = meet_saved(w, saved, n->type->nsaved);
    for (int i = 0; status == 0 && i < n->type->nlists; i++) status = meet_list(w, lists[i]);
    return status;
}

static int traverse_graph(const tp_node *first, visitproc visit, void *arg) {
    graph_walk w;
    w.nready = w.npartly = 0;
    w.visit = visit;
    w.arg = arg;
    meet_node(&w, first);
    for (int64_t steps = 0; w.nready && steps < WALK_STEPS; steps++) {
        const tp_node *n = w.ready[--w.nready];
        int status = traverse_hooks(n->hooks, visit, arg);
        if (status == 0) status = tp_py_traverse_function(n, visit, arg);
        if (status == 0) status = meet_list(&w, tp_py_function_saved_borrow(n));
        if (status == 0) status = meet_kept(&w, n);
        if (status == 0) status = meet_tensor(&w, tp_accumulator_variable_borrow(n));
        if (status) return status;
        for (uint32_t i = 0; i < n->nedges; i++) meet_node(&w, n->edges[i].node);
    }
    return 0;
}

int tp_py_traverse_autograd(tp_autograd_meta *m, visitproc visit, void *arg) {
    int status = traverse_hooks(m->hooks, visit, arg);
    if (status) return status;
    Py_VISIT(tp_py_kept_object(m->grad));
    return m->grad_fn ? traverse_graph(m->grad_fn, visit, arg) : 0;
}
void tp_py_clear_autograd(tp_autograd_meta *m) {
    if (!m->hooks) return;
    Py_CLEAR(m->hooks->tensor);
    Py_CLEAR(m->hooks->accumulated);
    Py_CLEAR(m->hooks->metadata);
}

/* ---- anomaly mode ---- */

/* The Python stack as text, malloc'd: where the forward call is. */
static char *where(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("traceback");
    PyObject *list = module ? PyObject_CallMethod(module, "format_stack", NULL) : NULL;
    PyObject *empty = PyUnicode_FromString("");
    PyObject *text = list && empty ? PyUnicode_Join(empty, list) : NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    char *copy = utf8 ? strdup(utf8) : NULL;
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(list);
    Py_XDECREF(empty);
    Py_XDECREF(text);
    PyGILState_Release(gil);
    return copy;
}

static int show_anomaly(const tp_node *n) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_WarnFormat(PyExc_UserWarning, 1, "Error detected in %s. Traceback of forward call that caused the error:\n%s",
                     n->type->name, n->trace);
    if (PyErr_Occurred()) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
    return 0;
}

/* ---- saved-tensor hooks ---- */

/* A tensor that stands packed in a node: a pair (unpack hook, what pack made). The hooks of a thread are a pair, too.
 */
static void *pack_saved(tp_tensor *t) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *hooks = Py_NewRef((PyObject *)tp_tls.saved_hooks), *object = tp_py_wrap(t), *pair = NULL;
    tp_tls.saved_hooks = NULL; /* what a hook computes is not packed again */
    PyObject *packed = object ? PyObject_CallOneArg(PyTuple_GET_ITEM(hooks, 0), object) : NULL;
    tp_tls.saved_hooks = hooks;
    if (packed) pair = PyTuple_Pack(2, PyTuple_GET_ITEM(hooks, 1), packed);
    Py_XDECREF(packed);
    Py_XDECREF(object);
    Py_DECREF(hooks);
    if (!pair) tp_py_error_to_core();
    PyGILState_Release(gil);
    return pair;
}

static tp_tensor *unpack_saved(void *packed) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *pair = Py_NewRef((PyObject *)packed); /* another thread's backward may let it go meanwhile */
    PyObject *object = PyObject_CallOneArg(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
    Py_DECREF(pair);
    if (object && !tp_py_is_tensor(object)) {
        PyErr_Format(PyExc_TypeError, "unpack_hook must return a Tensor, not %s", Py_TYPE(object)->tp_name);
        Py_CLEAR(object);
    }
    tp_tensor *t = object ? tp_retain(tp_py_tensor_borrow(object)) : NULL;
    Py_XDECREF(object);
    if (!t) tp_py_error_to_core();
    PyGILState_Release(gil);
    return t;
}

static void free_packed(void *packed) {
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)packed);
    PyGILState_Release(gil);
}

/* _set_saved_hooks((pack, unpack) or None) -> the previous ones. The caller keeps the pair alive while it is set. */
static PyObject *set_saved_hooks(PyObject *self, PyObject *arg) {
    (void)self;
    if (arg != Py_None && !(PyTuple_Check(arg) && PyTuple_GET_SIZE(arg) == 2))
        return PyErr_Format(PyExc_TypeError, "_set_saved_hooks() takes a pair or None");
    PyObject *previous = tp_tls.saved_hooks ? (PyObject *)tp_tls.saved_hooks : Py_None;
    tp_tls.saved_hooks = arg == Py_None ? NULL : arg;
    return Py_NewRef(previous);
}

static PyObject *set_anomaly(PyObject *self, PyObject *args) {
    (void)self;
    int enabled, check_nan;
    if (!PyArg_ParseTuple(args, "pp", &enabled, &check_nan)) return NULL;
    tp_tls.new_nodes &= (uint8_t)~TP_NODES_TRACED;
    if (enabled) tp_tls.new_nodes |= TP_NODES_TRACED;
    tp_tls.anomaly_check_nan = check_nan;
    Py_RETURN_NONE;
}
static PyObject *get_anomaly(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return Py_BuildValue("NN", PyBool_FromLong(tp_tls.new_nodes & TP_NODES_TRACED),
                         PyBool_FromLong(tp_tls.anomaly_check_nan));
}

/* ---- backward ---- */

/* A Python sequence of tensors (None allowed if `optional`) into an array of PyMem that owns them; size -1 for None
 * itself. */
static int tensor_list(PyObject *o, bool optional, const char *what, tp_tensors *out) {
    *out = (tp_tensors){NULL, -1};
    if (o == Py_None) return 0;
    PyObject *fast = PySequence_Fast(o, what);
    if (!fast) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    tp_tensor **data = PyMem_Calloc((size_t)n + 1, sizeof *data);
    int status = data ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
        if (tp_py_is_tensor(item)) data[i] = tp_retain(tp_py_tensor_borrow(item));
        else if (optional && item == Py_None) data[i] = NULL;
        else
            status = (PyErr_Format(PyExc_TypeError, "%s: element %zd is a %s, not a Tensor", what, i,
                                   Py_TYPE(item)->tp_name),
                      -1);
    }
    Py_DECREF(fast);
    *out = (tp_tensors){data, data ? n : -1};
    return status;
}

static void free_tensor_list(tp_tensors list) {
    for (int64_t i = 0; i < list.size; i++) tp_release(list.data[i]);
    PyMem_Free((void *)list.data);
}

/* What is called when the innermost backward pass of the thread is done: a list, NULL outside of passes. */
static _Thread_local PyObject *final_calls;

/* Calls may add calls. */
static int call_finals(PyObject *calls) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); i++) {
        PyObject *call = Py_NewRef(PyList_GET_ITEM(calls, i)), *result = PyObject_CallNoArgs(call);
        Py_DECREF(call);
        Py_XDECREF(result);
        if (!result) return -1;
    }
    return 0;
}

static int backward_and_finals(tp_tensors roots, tp_tensors grads, bool retain, bool create, tp_tensors inputs,
                               tp_tensor **out) {
    PyObject *outer = final_calls;
    if (!(final_calls = PyList_New(0))) return final_calls = outer, -1;
    int status = tp_backward(roots, grads, retain, create, inputs, out);
    if (status < 0) tp_py_raise();
    else status = call_finals(final_calls);
    Py_DECREF(final_calls);
    final_calls = outer;
    return status;
}

static PyObject *queue_callback(PyObject *self, PyObject *call) {
    (void)self;
    if (!final_calls)
        return PyErr_Format(PyExc_RuntimeError, "Final callbacks can only be installed during backward pass.");
    if (PyList_Append(final_calls, call) < 0) return NULL;
    Py_RETURN_NONE;
}

/* _run_backward(tensors, grad_tensors, retain_graph, create_graph, inputs, accumulate) -> tuple of gradients or None */
static PyObject *run_backward(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *roots_object, *grads_object, *inputs_object, *result = NULL;
    int retain_graph, create_graph, accumulate;
    tp_tensors roots = {NULL, -1}, grads = {NULL, -1}, inputs = {NULL, -1};
    tp_tensor **out = NULL;
    if (!PyArg_ParseTuple(args, "OOppOp", &roots_object, &grads_object, &retain_graph, &create_graph, &inputs_object,
                          &accumulate))
        return NULL;
    if (tensor_list(roots_object, false, "tensors must be a sequence of tensors", &roots) < 0 ||
        tensor_list(grads_object, true, "grad_tensors must be a sequence of tensors", &grads) < 0 ||
        tensor_list(inputs_object, false, "inputs must be a sequence of tensors", &inputs) < 0)
        goto done;
    if (inputs.size >= 0 && !accumulate && !(out = PyMem_Calloc((size_t)inputs.size + 1, sizeof *out))) {
        PyErr_NoMemory();
        goto done;
    }
    int status = backward_and_finals(roots, grads, retain_graph, create_graph, inputs, out);
    if (status == 0) result = out ? grads_tuple(out, (int)inputs.size) : Py_NewRef(Py_None);
    if (out) {
        for (int64_t i = 0; i < inputs.size; i++) tp_release(out[i]);
    }
done:
    free_tensor_list(roots);
    free_tensor_list(grads);
    free_tensor_list(inputs);
    PyMem_Free(out);
    return result;
}

/* _tensor_of_edge(node, output_nr) -> tensor */
static PyObject *tensor_of_edge(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *node;
    unsigned int nr;
    if (!PyArg_ParseTuple(args, "O!I", &node_type, &node, &nr)) return NULL;
    tp_tensor *t = tp_tensor_of_edge(NODE(node), nr);
    return t ? tp_py_wrap_steal(t) : tp_py_raise();
}

static PyObject *bump_version(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg))
        return PyErr_Format(PyExc_TypeError, "increment_version() takes tensors, not %s", Py_TYPE(arg)->tp_name);
    tp_note_write(tp_py_tensor_borrow(arg), "increment_version");
    Py_RETURN_NONE;
}

/* How many transforms of functions (grad, vjp, jvp, vmap) the thread is inside of: what such a function writes on a
 * tensor about its gradient would be lost, or mean another one's. */
static _Thread_local int transforms;

static int refuse_in_transform(const char *call) {
    if (tp_likely(!transforms)) return 0;
    PyErr_Format(
        PyExc_RuntimeError,
        "You are attempting to call Tensor.%s() (or perhaps using torch.autograd.functional.* APIs) inside of a "
        "function being transformed by a functorch transform: vmap, or one that differentiates. Call it outside, "
        "or nest the transforms",
        call);
    return -1;
}

/* How many of them differentiate: what is made inside of these has the number in its flags. */
static _Thread_local int depth;
static void go_deeper(int by) {
    depth += by;
    int shown = depth < TP_FLAG_DEPTH >> TP_DEPTH_SHIFT ? depth : TP_FLAG_DEPTH >> TP_DEPTH_SHIFT;
    tp_tls.new_flags = (uint16_t)((tp_tls.new_flags & ~TP_FLAG_DEPTH) | shown << TP_DEPTH_SHIFT);
}

/* _transform(change, differentiates=False) -> how many there are */
static PyObject *transform(PyObject *self TP_UNUSED, PyObject *args) {
    int by, differentiates = 0;
    if (!PyArg_ParseTuple(args, "i|p:_transform", &by, &differentiates)) return NULL;
    if (by < -1 || by > 1 || transforms + by < 0 || transforms + by == INT_MAX)
        return PyErr_Format(PyExc_ValueError, "_transform() takes 1 for a transform that begins, -1 for one that ends");
    transforms += by;
    if (differentiates) go_deeper(by);
    return PyLong_FromLong(transforms);
}

/* _want_gradient(tensor, wanted) -> tensor: as requires_grad_, for what works on the transforms' own tensors. */
static PyObject *want_gradient(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *tensor;
    int wanted = 1;
    if (!PyArg_ParseTuple(args, "O|p", &tensor, &wanted)) return NULL;
    if (!tp_py_is_tensor(tensor)) return PyErr_Format(PyExc_TypeError, "_want_gradient() takes a tensor");
    return tp_py_check(tp_set_requires_grad(tp_py_tensor_borrow(tensor), wanted)) < 0 ? NULL : Py_NewRef(tensor);
}

TP_PY_METHOD(retain_grad, "retain_grad") {
    if (refuse_in_transform("retain_grad") < 0) return NULL;
    return tp_py_check(tp_retain_grad(tp_py_tensor_borrow(self))) < 0 ? NULL : Py_NewRef(Py_None);
}
TP_PY_FAST_METHOD(requires_grad_, "requires_grad_") {
    Py_ssize_t total = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    int value = total ? PyObject_IsTrue(args[0]) : 1;
    if (total > 1) return PyErr_Format(PyExc_TypeError, "requires_grad_() takes one argument, requires_grad=True");
    if (total && !PyBool_Check(args[0]))
        return PyErr_Format(PyExc_TypeError,
                            "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not %s",
                            Py_TYPE(args[0])->tp_name);
    if (value < 0 || refuse_in_transform("requires_grad_") < 0) return NULL;
    tp_py_parameter_changes(self);
    return tp_py_check(tp_set_requires_grad(tp_py_tensor_borrow(self), value)) < 0 ? NULL : Py_NewRef(self);
}

TP_PY_METHOD(detach_, "detach_") {
    return tp_py_check(tp_detach_in_place(tp_py_tensor_borrow(self))) < 0 ? NULL : Py_NewRef(self);
}

PyMethodDef tp_py_autograd_methods[] = {
    {"detach_", detach_, METH_NOARGS, NULL},
    {"retain_grad", retain_grad, METH_NOARGS, NULL},
    {"requires_grad_", (PyCFunction)(void (*)(void))requires_grad_, METH_FASTCALL | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *call_node(tp_node *node, tp_tensors grads) {
    tp_tensor **out = PyMem_Calloc(node->nedges + 1, sizeof *out);
    if (!out) return PyErr_NoMemory();
    PyObject *result = NULL;
    if (tp_apply_node(node, grads, out) < 0) tp_py_raise();
    else result = grads_tuple(out, (int)node->nedges);
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
        return PyErr_Format(PyExc_TypeError, "%s takes %u gradients, got %zd", node->type->name, node->ninputs,
                            PyTuple_GET_SIZE(args));
    tp_tensors grads;
    PyObject *result = NULL;
    if (tensor_list(args, true, "a node takes tensors", &grads) == 0) result = call_node(node, grads);
    free_tensor_list(grads);
    return result;
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name($self, /)\n--\n\nThe node's name."},
    {"_pre_hooks", node_pre_hooks, METH_NOARGS, NULL},
    {"_post_hooks", node_post_hooks, METH_NOARGS, NULL},
    {"_sequence_nr", node_sequence, METH_NOARGS, NULL},
    {"__dir__", node_dir, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef node_getset[] = {
    {"next_functions", node_next_functions, NULL,
     "(node, output number) of each argument; None where no gradient goes.", NULL},
    {"variable", node_variable, NULL, "The leaf of an AccumulateGrad.", NULL},
    {"metadata", node_metadata, NULL, "A dict that lives as long as the node.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject node_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.autograd.Node",
    .tp_basicsize = sizeof(py_node),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_dealloc = node_dealloc,
    .tp_repr = node_repr,
    .tp_call = node_call,
    .tp_getattro = node_getattro,
    .tp_methods = node_methods,
    .tp_getset = node_getset,
    .tp_weaklistoffset = offsetof(py_node, weakrefs),
};

static PyObject *current_task(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLongLong(tp_current_backward());
}
static PyObject *will_reach(PyObject *self, PyObject *node) {
    (void)self;
    if (!PyObject_TypeCheck(node, &node_type))
        return PyErr_Format(PyExc_TypeError, "expected a node of the autograd graph, got %s", Py_TYPE(node)->tp_name);
    if (tp_current_backward() < 0) {
        PyErr_SetString(PyExc_RuntimeError, "_will_engine_execute_node is asked while a backward runs");
        return NULL;
    }
    return PyBool_FromLong(tp_backward_will_reach(NODE(node)));
}

static PyMethodDef functions[] = {
    {"_current_graph_task_id", current_task, METH_NOARGS, NULL},
    {"_will_engine_execute_node", will_reach, METH_O, NULL},
    {"_run_backward", run_backward, METH_VARARGS, NULL},
    {"_tensor_of_edge", tensor_of_edge, METH_VARARGS, NULL},
    {"_hook_saved", hook_saved, METH_VARARGS, NULL},
    {"_queue_callback", queue_callback, METH_O, NULL},
    {"_tensor_hooks", tensor_hooks, METH_O, NULL},
    {"_accumulate_hooks", accumulate_hooks, METH_O, NULL},
    {"_set_saved_hooks", set_saved_hooks, METH_O, NULL},
    {"_bump_version", bump_version, METH_O, NULL},
    {"_transform", transform, METH_VARARGS, NULL},
    {"_want_gradient", want_gradient, METH_VARARGS, NULL},
    {"_set_anomaly", set_anomaly, METH_VARARGS, NULL},
    {"_get_anomaly", get_anomaly, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_autograd(PyObject *m) {
    tp_autograd_host = (tp_autograd_host_hooks){
        .before = hooks_before,
        .after = hooks_after,
        .accumulated = hooks_accumulated,
        .free_hooks = free_hooks,
        .forget_node = forget_node,
        .where = where,
        .pack = pack_saved,
        .unpack = unpack_saved,
        .free_packed = free_packed,
        .anomaly = show_anomaly,
    };
    tp_py_help_type(&node_type);
    if (PyModule_AddType(m, &node_type) < 0 || tp_py_init_function(m) < 0) return -1;
    return tp_py_add_functions(m, NULL, (PyMethodDef *const[]){functions, NULL});
}
