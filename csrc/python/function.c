/* function.c: autograd.Function: nodes whose backward is written in Python.
 *
 * A call of apply() makes a context object (FunctionCtx) and, where a gradient is wanted, a node. The node owns the
 * context and the saved tensors; the context knows its node weakly, so it may outlive it. A node has one edge per
 * argument of apply(), so that a gradient's place is its argument's; it has one input per output of forward(). */
#include "python/autograd.h"

#include "Functions.h"
#include "autograd/internal.h"
#include "autograd/level.h"
#include "python/overrides.h"

#include <stddef.h>
#include <string.h>

/* ---- the node ---- */

typedef struct {
    tp_node base;
    tp_saved_list *saved; /* where tp_node_type looks for it */
    PyObject *ctx;        /* owned */
    tp_node_type type;    /* its own, since each class has its name */
    char name[];
} function_node;

typedef struct {
    PyObject_HEAD tp_node *node; /* weak; NULL without a graph, or when the node is gone */
    PyObject *saved, *saved_for_forward, *dirty, *non_differentiable, *needs_input_grad;
    bool materialize_grads, materialize_non_diff_grads;
    PyObject *dict, *weakrefs;
} function_ctx;
static PyTypeObject ctx_type;

#define CTX(o) ((function_ctx *)(o))
#define NODE(n) ((function_node *)(n))

static const char *short_name(PyObject *type) {
    const char *name = ((PyTypeObject *)type)->tp_name, *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* ---- backward ---- */

/* The gradients as Python objects: None where none arrived, or zeros if they are to be made. */
static PyObject *materialized(tp_node *n, tp_tensor *const *grads) {
    bool zeros = CTX(NODE(n)->ctx)->materialize_grads;
    PyObject *args = PyTuple_New(n->ninputs + 1);
    if (!args) return NULL;
    PyTuple_SET_ITEM(args, 0, Py_NewRef(NODE(n)->ctx));
    for (uint32_t i = 0; i < n->ninputs; i++) {
        PyObject *item;
        if (grads[i]) item = tp_py_wrap(grads[i]);
        else if (zeros && n->inputs[i].defined) item = tp_py_wrap_steal(tp_zeros_for_input(n, (int)i));
        else item = Py_NewRef(Py_None);
        if (!item) {
            Py_DECREF(args);
            return NULL;
        }
        PyTuple_SET_ITEM(args, (Py_ssize_t)i + 1, item);
    }
    return args;
}

static int take_gradient(tp_node *n, uint32_t i, PyObject *value, tp_tensor **out) {
    PyObject *wanted = PyTuple_GET_ITEM(CTX(NODE(n)->ctx)->needs_input_grad, i);
    if (value == Py_None) return 0;
    if (!tp_py_is_tensor(value))
        return PyErr_Format(PyExc_RuntimeError,
                            "expected Variable or None (got %s) from backward() of %s for argument %u",
                            Py_TYPE(value)->tp_name, n->type->name, i),
               -1;
    if (wanted == Py_None)
        return PyErr_Format(
                   PyExc_RuntimeError,
                   "function %s returned a gradient different than None at position %u, but the corresponding forward "
                   "input was not a Variable",
                   n->type->name, i + 1),
               -1;
    const tp_edge *edge = &n->edges[i];
    if (!edge->node) return 0;
    const tp_tensor *grad = tp_py_tensor_borrow(value);
    const tp_input_meta *input = &edge->node->inputs[edge->input_nr];
    if (input->defined && tp_is_complex(grad) && !tp_is_complex_dtype((tp_dtype)input->dtype))
        return PyErr_Format(PyExc_RuntimeError, "function %s returned a gradient of %s at position %u for a %s tensor",
                            n->type->name, tp_dtype_names[grad->dtype], i + 1, tp_dtype_names[input->dtype]),
               -1;
    *out = tp_retain(tp_py_tensor_borrow(value));
    return 0;
}

/* More values than arguments are fine as long as the surplus is None. */
static int take_gradients(tp_node *n, PyObject *result, tp_tensor **out) {
    PyObject *tuple = PyTuple_Check(result)  ? Py_NewRef(result)
                      : PyList_Check(result) ? PyList_AsTuple(result)
                                             : PyTuple_Pack(1, result);
    if (!tuple) return -1;
    Py_ssize_t given = PyTuple_GET_SIZE(tuple), surplus = given;
    while (surplus > (Py_ssize_t)n->nedges && PyTuple_GET_ITEM(tuple, surplus - 1) == Py_None) surplus--;
    int status = 0;
    if (surplus != (Py_ssize_t)n->nedges) {
        PyErr_Format(PyExc_RuntimeError, "function %s returned an incorrect number of gradients (expected %u, got %zd)",
                     n->type->name, (unsigned)n->nedges, given);
        status = -1;
    }
    for (uint32_t i = 0; status == 0 && i < n->nedges; i++)
        status = take_gradient(n, i, PyTuple_GET_ITEM(tuple, i), &out[i]);
    Py_DECREF(tuple);
    return status;
}

static int function_apply(tp_node *n, tp_tensor *const *grads, tp_tensor **out) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *args = materialized(n, grads);
    PyObject *cls = args ? PyObject_GetAttrString((PyObject *)Py_TYPE(NODE(n)->ctx), "_forward_cls") : NULL;
    PyObject *backward = cls ? PyObject_GetAttrString(cls, "backward") : NULL;
    PyObject *result = backward ? PyObject_CallObject(backward, args) : NULL;
    int status = result ? take_gradients(n, result, out) : -1;
    if (status < 0)
        for (uint32_t i = 0; i < n->nedges; i++) tp_release(tp_take(out[i]));
    Py_XDECREF(result);
    Py_XDECREF(backward);
    Py_XDECREF(cls);
    Py_XDECREF(args);
    if (status < 0) tp_py_error_to_core();
    PyGILState_Release(gil);
    return status;
}

static void function_release(tp_node *n) { tp_saved_list_free(&NODE(n)->saved); }

static void function_end(tp_node *n) {
    PyObject *ctx = tp_take(NODE(n)->ctx);
    if (!ctx) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    CTX(ctx)->node = NULL;
    Py_DECREF(ctx);
    PyGILState_Release(gil);
}

PyObject *tp_py_function_ctx_borrow(const tp_node *n) {
    return n->type->apply == function_apply ? ((const function_node *)n)->ctx : NULL;
}

int tp_py_traverse_function(const tp_node *n, visitproc visit, void *arg) {
    if (n->type->apply != function_apply) return 0;
    const function_node *fn = (const function_node *)n;
    Py_VISIT(fn->ctx);
    return 0;
}

static function_node *new_node(PyObject *ctx, int nedges) {
    const char *name = short_name((PyObject *)Py_TYPE(ctx));
    size_t length = strlen(name) + 1;
    tp_node_type blank = {
        .name = name,
        .op = name,
        .size = sizeof(function_node) + length,
        .apply = function_apply,
        .release = function_release,
        .free_copies = function_end,
        .nlists = 1,
    };
    function_node *fn = (function_node *)tp_node_new(&blank, nedges);
    if (!fn) return NULL;
    memcpy(fn->name, name, length);
    fn->type = blank;
    fn->type.name = fn->type.op = fn->name;
    fn->base.type = &fn->type;
    fn->ctx = Py_NewRef(ctx);
    CTX(ctx)->node = &fn->base;
    return fn;
}

/* ---- the call ---- */

/* For each argument None (no tensor), False or True; `any` says whether there is a True. */
static PyObject *which_need_grad(PyObject *const *args, Py_ssize_t n, bool *any) {
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        bool tensor = tp_py_is_tensor(args[i]), needs = tensor && tp_requires_grad(tp_py_tensor_borrow(args[i]));
        *any |= needs;
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(needs ? Py_True : tensor ? Py_False : Py_None));
    }
    return tuple;
}

static bool holds(PyObject *tuple, PyObject *item) {
    for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); i++)
        if (PyTuple_GET_ITEM(tuple, i) == item) return true;
    return false;
}

static bool is_argument(PyObject *const *args, Py_ssize_t n, PyObject *item) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (args[i] == item) return true;
    return false;
}

/* An argument that comes out unchanged gets a view of its own, so that the argument's own history stays. The view is of
 * the argument's class, or what its __torch_function__ makes of view_as(). */
static PyObject *fresh_view(PyObject *o) {
    tp_tensor *t = tp_py_tensor_borrow(o);
    if (!tp_py_has_function(o)) return tp_py_like_steal(o, tp_py_wrap_steal(tp_as_view(t, tp_detached_alias(t))));
    PyObject *view = tp_py_ask_method("view_as", o, &o, 1, NULL);
    if (!view || tp_py_is_tensor(view)) return view;
    Py_DECREF(view);
    return PyErr_Format(PyExc_TypeError, "view_as() of %s, which a Function returns as it is, gives no tensor",
                        Py_TYPE(o)->tp_name);
}

static PyObject *finish_dirty(function_node *fn, PyObject *o, bool only_output) {
    tp_tensor *t = tp_py_tensor_borrow(o);
    if (!fn) return Py_NewRef(o);
    if (t->base && !only_output)
        return PyErr_Format(PyExc_RuntimeError,
                            "%s changes a view in place and returns more than one output: the gradient of a "
                            "view that was changed takes a single output",
                            fn->name);
    if (tp_requires_grad(t) && tp_is_leaf(t))
        return PyErr_Format(PyExc_RuntimeError,
                            "a leaf Variable that requires grad has been used in an in-place operation.");
    if (tp_check_inplace(t, fn->name, true) < 0 || tp_rebase_history(t, &fn->base) < 0) return tp_py_raise();
    if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o); /* as every result with a history */
    return Py_NewRef(o);
}

/* What forward() has said of its arguments and outputs: tuples or NULL. The last two are what
 * setup_context() has saved, and NULL where there is none: it names outputs by the objects that forward() gave. */
typedef struct {
    PyObject *dirty, *non_differentiable, *saved, *saved_for_forward;
} marked;

static int check_dirty_returned(const marked *m, PyObject *result) {
    for (Py_ssize_t i = 0; m->dirty && i < PyTuple_GET_SIZE(m->dirty); i++) {
        PyObject *o = PyTuple_GET_ITEM(m->dirty, i);
        if (o == result || (PyTuple_Check(result) && holds(result, o))) continue;
        PyErr_SetString(PyExc_RuntimeError,
                        "Some elements marked as dirty during the forward method were not returned as output. "
                        "The inputs that are modified inplace must all be outputs of the Function.");
        return -1;
    }
    return 0;
}

/* One output of forward(): gets its history; new reference. */
static PyObject *finish_output(const marked *m, function_node *fn, PyObject *const *args, Py_ssize_t nargs, PyObject *o,
                               bool only_output) {
    if (!tp_py_is_tensor(o)) return fn && tp_node_skip_output(&fn->base) < 0 ? tp_py_raise() : Py_NewRef(o);
    if (holds(m->dirty, o)) return finish_dirty(fn, o, only_output);
    bool given = is_argument(args, nargs, o), without = holds(m->non_differentiable, o);
    if (given && (holds(m->saved, o) || holds(m->saved_for_forward, o)))
        return PyErr_Format(PyExc_RuntimeError,
                            "An input that has been returned as-is as output is being saved for backward: where "
                            "setup_context() saves, give back and save x.view_as(x), or save in forward()");
    PyObject *out = given ? fresh_view(o) : Py_NewRef(o);
    if (!out || !fn) return out;
    tp_tensor *t = tp_py_tensor_borrow(out);
    int status;
    if (without && !CTX(fn->ctx)->materialize_non_diff_grads) {
        status = tp_node_skip_output(&fn->base);
    } else if (without || !(tp_is_floating(t) || tp_is_complex(t))) {
        status = tp_node_add_input(&fn->base, t) < 0 ? -1 : 0; /* described, so that zeros can stand for its gradient */
    } else {
        if (t->base) t->flags |= TP_FLAG_VIEW_CUSTOM;
        status = tp_node_set_output(&fn->base, t);
    }
    if (!PyObject_GC_IsTracked(out)) PyObject_GC_Track(out); /* as every result with a history */
    if (status == 0) return out;
    Py_DECREF(out);
    return tp_py_raise();
}

static PyObject *finish_outputs(const marked *m, function_node *fn, PyObject *const *args, Py_ssize_t n,
                                PyObject *result) {
    if (check_dirty_returned(m, result) < 0) return NULL;
    if (!PyTuple_Check(result)) return finish_output(m, fn, args, n, result, true);
    Py_ssize_t count = PyTuple_GET_SIZE(result);
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *out = finish_output(m, fn, args, n, PyTuple_GET_ITEM(result, i), count == 1);
        if (!out) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, out);
    }
    return tuple;
}

/* An input that forward() returned as it is, is saved as the input that it is. */
static int save_tensors(function_ctx *ctx, function_node *fn) {
    PyObject *list = tp_take(ctx->saved);
    Py_ssize_t n = list ? PyTuple_GET_SIZE(list) : 0;
    fn->saved = tp_saved_list_new(n);
    int status = fn->saved ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        PyObject *o = PyTuple_GET_ITEM(list, i);
        tp_tensor *t = o == Py_None ? NULL : tp_py_tensor_borrow(o);
        bool output = t && t->autograd && t->autograd->grad_fn == &fn->base;
        status = output ? tp_save_output(&fn->saved->items[i], t, (int)t->autograd->output_nr)
                        : tp_save(&fn->saved->items[i], t);
    }
    Py_XDECREF(list);
    return tp_py_check(status);
}

static PyObject *call_forward(PyObject *cls, PyObject *ctx, bool with_setup, PyObject *const *args, Py_ssize_t n) {
    PyObject *forward = PyObject_GetAttrString(cls, "forward");
    if (!forward) return NULL;
    PyObject **all = PyMem_Malloc(((size_t)n + 1) * sizeof *all);
    PyObject *result = NULL;
    if (all) {
        all[0] = ctx;
        memcpy(all + 1, args, (size_t)n * sizeof *all);
        result = with_setup ? PyObject_Vectorcall(forward, all + 1, (size_t)n, NULL)
                            : PyObject_Vectorcall(forward, all, (size_t)n + 1, NULL);
        PyMem_Free(all);
    } else {
        PyErr_NoMemory();
    }
    Py_DECREF(forward);
    if (!result || !with_setup) return result;
    PyObject *inputs = PyTuple_New(n);
    for (Py_ssize_t i = 0; inputs && i < n; i++) PyTuple_SET_ITEM(inputs, i, Py_NewRef(args[i]));
    PyObject *done = inputs ? PyObject_CallMethod(cls, "setup_context", "OOO", ctx, inputs, result) : NULL;
    Py_XDECREF(inputs);
    if (!done) Py_CLEAR(result);
    Py_XDECREF(done);
    return result;
}

/* _apply_function(cls, ctx_cls, with_setup, *args): what Function.apply does. */
static PyObject *apply_function(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    (void)self;
    if (nargs < 3)
        return PyErr_Format(PyExc_TypeError,
                            "_apply_function() takes a class, its context class, a bool and arguments");
    PyObject *cls = args[0], *ctx_object = PyObject_CallNoArgs(args[1]);
    bool with_setup = args[2] == Py_True, needed = false;
    if (!ctx_object) return NULL;
    if (!PyObject_TypeCheck(ctx_object, &ctx_type)) {
        PyErr_Format(PyExc_TypeError, "_apply_function() takes a context class, not %R", args[1]);
        Py_DECREF(ctx_object);
        return NULL;
    }
    args += 3;
    nargs -= 3;
    function_ctx *ctx = CTX(ctx_object);
    function_node *fn = NULL;
    PyObject *result = NULL, *outputs = NULL;
    ctx->needs_input_grad = which_need_grad(args, nargs, &needed);
    if (!ctx->needs_input_grad) goto done;
    if (needed && tp_py_tell_recorder_of_function(tp_grad_enabled()) < 0) goto done;
    if (needed && tp_grad_enabled()) {
        if (!(fn = new_node(ctx_object, (int)nargs))) {
            tp_py_raise();
            goto done;
        }
        for (Py_ssize_t i = 0; i < nargs; i++)
            if (tp_py_is_tensor(args[i]) &&
                tp_py_check(tp_node_set_edge(&fn->base, (int)i, tp_py_tensor_borrow(args[i]))) < 0)
                goto done;
    }
    bool was_disabled = tp_tls.grad_disabled, had_tangents = tp_forward_enable(false);
    tp_tls.grad_disabled = true;
    result = call_forward(cls, ctx_object, with_setup, args, nargs);
    tp_tls.grad_disabled = was_disabled;
    tp_forward_enable(had_tangents);
    marked m = {tp_take(ctx->dirty), tp_take(ctx->non_differentiable), /* forward() has handed ctx on, maybe */
                with_setup ? Py_XNewRef(ctx->saved) : NULL, with_setup ? Py_XNewRef(ctx->saved_for_forward) : NULL};
    if (result) outputs = finish_outputs(&m, fn, args, nargs, result);
    if (outputs && fn && save_tensors(ctx, fn) < 0) Py_CLEAR(outputs);
    Py_XDECREF(m.dirty);
    Py_XDECREF(m.non_differentiable);
    Py_XDECREF(m.saved);
    Py_XDECREF(m.saved_for_forward);
    if (PyType_Check(cls)) Py_CLEAR(ctx->saved_for_forward);
    else if (!ctx->saved_for_forward) ctx->saved_for_forward = PyTuple_New(0); /* jvp() comes next, and has none */
done:
    if (fn) tp_node_release(&fn->base);
    Py_XDECREF(result);
    Py_DECREF(ctx_object);
    return outputs;
}

/* ---- the context ---- */

static PyObject *ctx_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args, (void)kwargs;
    function_ctx *self = CTX(type->tp_alloc(type, 0));
    if (self) self->materialize_grads = self->materialize_non_diff_grads = true;
    return (PyObject *)self;
}

static int ctx_traverse(PyObject *o, visitproc visit, void *arg) {
    function_ctx *self = CTX(o);
    Py_VISIT(self->saved);
    Py_VISIT(self->saved_for_forward);
    Py_VISIT(self->dirty);
    Py_VISIT(self->non_differentiable);
    Py_VISIT(self->needs_input_grad);
    Py_VISIT(self->dict);
    return 0;
}
static int ctx_clear(PyObject *o) {
    function_ctx *self = CTX(o);
    Py_CLEAR(self->saved);
    Py_CLEAR(self->saved_for_forward);
    Py_CLEAR(self->dirty);
    Py_CLEAR(self->non_differentiable);
    Py_CLEAR(self->dict);
    return 0;
}
static void ctx_dealloc(PyObject *o) {
    PyObject_GC_UnTrack(o);
    if (CTX(o)->weakrefs) PyObject_ClearWeakRefs(o);
    ctx_clear(o);
    Py_CLEAR(CTX(o)->needs_input_grad);
    PyTypeObject *type = Py_TYPE(o);
    type->tp_free(o);
}

static PyObject *keep_tuple(PyObject **slot, PyObject *args, bool none_allowed, const char *what) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *item = PyTuple_GET_ITEM(args, i);
        if (!tp_py_is_tensor(item) && !(none_allowed && item == Py_None))
            return PyErr_Format(PyExc_TypeError, "%s can only save variables, but argument %zd is of type %s", what, i,
                                Py_TYPE(item)->tp_name);
    }
    PyObject *old = *slot;
    *slot = Py_NewRef(args);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}
static PyObject *save_for_backward(PyObject *o, PyObject *args) {
    return keep_tuple(&CTX(o)->saved, args, true, "save_for_backward");
}
static PyObject *save_for_forward(PyObject *o, PyObject *args) {
    return keep_tuple(&CTX(o)->saved_for_forward, args, true, "save_for_forward");
}
static PyObject *mark_dirty(PyObject *o, PyObject *args) {
    return keep_tuple(&CTX(o)->dirty, args, false, "mark_dirty");
}
static PyObject *mark_non_differentiable(PyObject *o, PyObject *args) {
    return keep_tuple(&CTX(o)->non_differentiable, args, false, "mark_non_differentiable");
}
static PyObject *set_materialize_grads(PyObject *o, PyObject *value) {
    int truth = PyObject_IsTrue(value);
    if (truth < 0) return NULL;
    CTX(o)->materialize_grads = truth;
    Py_RETURN_NONE;
}

static PyObject *get_non_diff(PyObject *o, void *unused TP_UNUSED) {
    return PyBool_FromLong(CTX(o)->materialize_non_diff_grads);
}
static int set_non_diff(PyObject *o, PyObject *value, void *unused TP_UNUSED) {
    int truth = value ? PyObject_IsTrue(value) : -1;
    if (!value) PyErr_SetString(PyExc_AttributeError, "_materialize_non_diff_grads cannot be deleted");
    if (truth >= 0) CTX(o)->materialize_non_diff_grads = truth;
    return truth < 0 ? -1 : 0;
}

/* One saved value; a hook that unpacks it may run a backward, which lets go of all of them. */
static PyObject *get_saved(tp_node *n, int64_t i) {
    tp_saved_list *list = NODE(n)->saved;
    tp_saved gone = {0};
    tp_error_clear();
    tp_tensor *t = tp_saved_get_whole(list && i < list->size ? &list->items[i] : &gone, n);
    return t ? tp_py_wrap_steal(t) : tp_error_pending() ? tp_py_raise() : Py_NewRef(Py_None);
}

static PyObject *get_saved_tensors(PyObject *o, void *unused) {
    (void)unused;
    if (CTX(o)->saved_for_forward) return Py_NewRef(CTX(o)->saved_for_forward); /* jvp() runs */
    tp_node *n = CTX(o)->node;
    if (!n || (!NODE(n)->saved && !n->released)) return CTX(o)->saved ? Py_NewRef(CTX(o)->saved) : PyTuple_New(0);
    if (n->released) return get_saved(n, 0);
    tp_autonode *held = tp_node_retain(n);
    int64_t count = NODE(n)->saved->size;
    PyObject *tuple = PyTuple_New(count);
    for (int64_t i = 0; tuple && i < count; i++) {
        PyObject *item = get_saved(held, i);
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

/* Where no tensor was given there is nothing to need: False to the user. */
static PyObject *get_needs_input_grad(PyObject *o, void *unused) {
    (void)unused;
    PyObject *marks = CTX(o)->needs_input_grad;
    Py_ssize_t n = marks ? PyTuple_GET_SIZE(marks) : 0;
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++)
        PyTuple_SET_ITEM(tuple, i, PyBool_FromLong(PyTuple_GET_ITEM(marks, i) == Py_True));
    return tuple;
}

static PyMethodDef ctx_methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS,
     "save_for_backward($self, /, *tensors)\n--\n\nKeeps tensors for backward(), where they are ctx.saved_tensors; "
     "changes to them are noticed."},
    {"save_for_forward", save_for_forward, METH_VARARGS,
     "save_for_forward($self, /, *tensors)\n--\n\nKeeps tensors for jvp(), where they are ctx.saved_tensors."},
    {"mark_dirty", mark_dirty, METH_VARARGS,
     "mark_dirty($self, /, *args)\n--\n\nSays which arguments forward() has changed in place."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS,
     "mark_non_differentiable($self, /, *args)\n--\n\nSays which outputs have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "set_materialize_grads($self, value, /)\n--\n\nWhether backward() gets zeros (True) or None where no gradient "
     "arrived."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef ctx_getset[] = {
    {"saved_tensors", get_saved_tensors, NULL, "What save_for_backward() was given.", NULL},
    {"needs_input_grad", get_needs_input_grad, NULL, "For each argument of apply() whether its gradient is wanted.",
     NULL},
    {"_materialize_non_diff_grads", get_non_diff, set_non_diff, NULL, NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject ctx_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy._C.FunctionCtx",
    .tp_basicsize = sizeof(function_ctx),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What forward() of a Function hands on to backward().",
    .tp_new = ctx_new,
    .tp_dealloc = ctx_dealloc,
    .tp_traverse = ctx_traverse,
    .tp_clear = ctx_clear,
    .tp_methods = ctx_methods,
    .tp_getset = ctx_getset,
    .tp_dictoffset = offsetof(function_ctx, dict),
    .tp_weaklistoffset = offsetof(function_ctx, weakrefs),
};

/* _forward_done(ctx): jvp() has run. */
static PyObject *forward_done(PyObject *self TP_UNUSED, PyObject *o) {
    if (!PyObject_TypeCheck(o, &ctx_type)) return PyErr_Format(PyExc_TypeError, "_forward_done() takes a context");
    Py_CLEAR(CTX(o)->saved_for_forward);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_forward_done", forward_done, METH_O, NULL},
    {"_apply_function", (PyCFunction)(void (*)(void))apply_function, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_function(PyObject *m) {
    if (PyModule_AddType(m, &ctx_type) < 0) return -1;
    return PyModule_AddFunctions(m, functions);
}
