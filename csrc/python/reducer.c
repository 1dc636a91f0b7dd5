/* reducer.c: _C._distributed.Reducer: the gradients of a module's parameters on their way through buckets.
 *
 * A hook behind each parameter's accumulator says that its gradient is there. The gradient is written into its place in
 * a bucket, already divided; distributed/reducer.h says which bucket begins. The class that Python derives
 * (tensorpy/distributed/reducer.py) makes the buckets, carries those that are no plain sum of the host's memory, and
 * has the results written back when the pass is over.
 *
 * A hook knows its reducer weakly: the graph keeps hooks, and must not keep a module. */
#include "python/autograd.h"

#include "Functions.h"
#include "autograd/engine.h"
#include "core/memory.h"
#include "distributed/reducer.h"
#include "python/distributed.h"

#include <time.h>
#include <stddef.h>
#include <string.h>

typedef struct {
    tp_tensor *variable,
        *place;           /* owned; the place is a view of the bucket, NULL where Python carries the bucket's parts */
    tp_node *accumulator; /* owned, so that its hook stays */
    int fired, left;      /* how often the hook comes in a pass, and has still to come in this one */
    bool used, unused;    /* it had a gradient since the last sum; none will come in this pass */
} parameter;

typedef struct reducer reducer;
/* What the hooks of a reducer share; `to` is NULL when it has gone. */
typedef struct {
    reducer *to;
    int references;
} tie;

struct reducer {
    PyObject_HEAD PyObject *weakrefs;
    tp_reducer *rounds;
    parameter *all;
    int *order; /* in which the hooks came */
    int count, arrived, buckets, group;
    int64_t first_gradient, first_bucket; /* when they came and went, in ns since 1970; 0: not yet */
    double factor;
    tie *hooks;
    bool expects;       /* hooks count: a pass that sums is under way */
    bool started;       /* the first has come */
    bool watches;       /* a first pass of a static graph: hooks are counted, and nothing begins */
    bool is_static;     /* a later one: the counts are known */
    bool keeps_views;   /* gradients become their places in the buckets */
    bool carries;       /* Python begins the buckets */
    bool needs_buckets; /* false: one process, and nothing to do */
    bool tells;         /* Python hears of buckets that begin: a profile records */
};

#define REDUCER(o) ((reducer *)(o))

/* ---- a gradient into its bucket ---- */

static bool is_in_place(const tp_tensor *grad, const tp_tensor *place) {
    return grad->storage == place->storage && grad->byte_offset == place->byte_offset;
}

static int write_place(const reducer *r, tp_tensor *place, tp_tensor *grad) {
    if (!grad) return tp_zero_(place);
    if (grad->dtype != place->dtype || grad->numel != place->numel)
        return tp_fail(TP_RuntimeError, "a gradient of %s with %lld elements for a parameter of %s with %lld",
                       tp_dtype_names[grad->dtype], (long long)grad->numel, tp_dtype_names[place->dtype],
                       (long long)place->numel);
    if (is_in_place(grad, place)) return r->factor == 1 ? 0 : tp_mul__Scalar(place, TP_SCALAR_F(r->factor));
    return r->factor == 1 ? tp_copy_(place, grad, false) : tp_mul_Scalar_out(grad, TP_SCALAR_F(r->factor), place);
}

static int put_into_bucket(const reducer *r, const parameter *p) {
    if (!p->place || !r->needs_buckets) return 0;
    tp_exclude_guard guard = tp_exclude(TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView));
    tp_autoref *grad = tp_grad(p->variable), *place = tp_retain(p->place);
    int status = write_place(r, place, grad);
    if (status == 0 && r->keeps_views && grad && !is_in_place(grad, place))
        tp_put_grad_steal(p->variable, tp_retain(place));
    return status < 0 ? tp_py_raise(), -1 : 0;
}

static int call(reducer *r, const char *method, int number) {
    PyObject *result = number < 0 ? PyObject_CallMethod((PyObject *)r, method, NULL)
                                  : PyObject_CallMethod((PyObject *)r, method, "i", number);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int begin_bucket(reducer *r, int b) {
    if (!r->first_bucket) r->first_bucket = now_ns();
    if (r->carries) return call(r, "_carry", b);
    if (r->tells && r->needs_buckets && r->group >= 0 && call(r, "_tell", b) < 0) return -1;
    if (!r->needs_buckets || r->group < 0 || tp_reducer_send(r->rounds, b, r->group) == 0) return 0;
    tp_py_raise_backend();
    return -1;
}

static void note_order(reducer *r, int i) {
    if (r->arrived < r->count) r->order[r->arrived++] = i;
}

static int take(reducer *r, int i) {
    r->started = true;
    if (!r->first_gradient) r->first_gradient = now_ns();
    if (!r->watches) note_order(r, i);
    if (!tp_reducer_add(r->rounds, i)) return call(r, "_refuse_twice", i);
    if (put_into_bucket(r, &r->all[i]) < 0) return -1;
    for (int b; (b = tp_reducer_next(r->rounds)) >= 0;)
        if (begin_bucket(r, b) < 0) return -1;
    return tp_reducer_all_begun(r->rounds) ? call(r, "_all_begun", -1) : 0;
}

static int take_unused(reducer *r) {
    int status = 0;
    for (int i = 0; status == 0 && i < r->count; i++)
        if (r->all[i].unused) status = take(r, i);
    return status;
}

static int on_gradient(reducer *r, int i) {
    parameter *p = &r->all[i];
    tp_autoref *grad = tp_grad(p->variable);
    p->used |= grad != NULL; /* also of a pass that sums nothing: the next sum has what it left */
    if (!r->expects) return 0;
    if (r->watches) {
        if (!p->fired++) note_order(r, i);
        return 0;
    }
    if (!r->started && take_unused(r) < 0) return -1;
    if (!r->is_static) return take(r, i);
    if (p->left == 0) return call(r, "_refuse_change", i);
    return --p->left ? 0 : take(r, i);
}

/* ---- hooks ---- */

#define HOOK "tensorpy.hook"

typedef struct {
    tie *shared;
    int index;
} hook;

static void drop_tie(tie *l) {
    if (--l->references == 0) PyMem_Free(l);
}

static void end_hook(PyObject *capsule) {
    hook *h = PyCapsule_GetPointer(capsule, HOOK);
    drop_tie(h->shared);
    PyMem_Free(h);
}

static PyObject *run_hook(PyObject *capsule, PyObject *args TP_UNUSED) {
    const hook *h = PyCapsule_GetPointer(capsule, HOOK);
    if (!h) return NULL;
    reducer *r = h->shared->to;
    int index = h->index;
    if (!r) Py_RETURN_NONE;
    Py_INCREF(r);
    int status = on_gradient(r, index);
    Py_DECREF(r);
    if (status < 0) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef hook_function = {"reducer_hook", run_hook, METH_VARARGS, NULL};

static int take_index(const reducer *r, PyObject *number, Py_ssize_t below) {
    Py_ssize_t i = PyNumber_AsSsize_t(number, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return -1;
    if (i < 0 || i >= below || !r->rounds) return PyErr_Format(PyExc_IndexError, "there is no number %zd", i), -1;
    return (int)i;
}

/* node(i) -> (the accumulator of parameter i, the hook that stands behind it) */
static PyObject *reducer_node(PyObject *o, PyObject *number) {
    reducer *r = REDUCER(o);
    int i = take_index(r, number, r->count);
    hook *h = i < 0 ? NULL : PyMem_Malloc(sizeof *h);
    if (!h) return i < 0 ? NULL : PyErr_NoMemory();
    *h = (hook){r->hooks, i};
    PyObject *capsule = PyCapsule_New(h, HOOK, end_hook);
    if (!capsule) return PyMem_Free(h), NULL;
    r->hooks->references++;
    PyObject *function = PyCFunction_New(&hook_function, capsule), *node = tp_py_node(r->all[i].accumulator);
    Py_DECREF(capsule);
    if (function && node) return Py_BuildValue("NN", node, function);
    Py_XDECREF(function);
    Py_XDECREF(node);
    return NULL;
}

/* ---- the object ---- */

static int take_parameter(parameter *p, PyObject *o) {
    if (!tp_py_is_tensor(o)) return PyErr_Format(PyExc_TypeError, "Reducer: parameters are tensors"), -1;
    tp_tensor *t = tp_py_tensor_borrow(o);
    if (!tp_requires_grad(t) || tp_grad_fn_borrow(t))
        return PyErr_Format(PyExc_ValueError, "Reducer: a parameter is a leaf that requires a gradient"), -1;
    if (!(p->accumulator = tp_accumulator(t))) return tp_py_raise(), -1;
    p->variable = tp_retain(t);
    return 0;
}

/* Reducer(parameters: tuple, group: int, keeps_views: bool) */
static PyObject *reducer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs TP_UNUSED) {
    PyObject *parameters;
    int group, keeps_views;
    if (!PyArg_ParseTuple(args, "O!ip", &PyTuple_Type, &parameters, &group, &keeps_views)) return NULL;
    reducer *r = REDUCER(type->tp_alloc(type, 0));
    if (!r) return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(parameters);
    r->group = group;
    r->keeps_views = keeps_views;
    r->factor = 1;
    r->needs_buckets = true;
    r->all = PyMem_Calloc((size_t)n + 1, sizeof *r->all);
    r->order = PyMem_Calloc((size_t)n + 1, sizeof *r->order);
    r->hooks = PyMem_Calloc(1, sizeof *r->hooks);
    int status = r->all && r->order && r->hooks ? 0 : (PyErr_NoMemory(), -1);
    if (status == 0) *r->hooks = (tie){r, 1};
    if (status == 0 && !(r->rounds = tp_reducer_new((int)n))) status = (tp_py_raise(), -1);
    for (; status == 0 && r->count < n; r->count++)
        status = take_parameter(&r->all[r->count], PyTuple_GET_ITEM(parameters, r->count));
    if (status < 0) Py_CLEAR(r);
    return (PyObject *)r;
}

static void reducer_dealloc(PyObject *o) {
    reducer *r = REDUCER(o);
    if (r->weakrefs) PyObject_ClearWeakRefs(o);
    if (r->hooks) {
        r->hooks->to = NULL;
        drop_tie(r->hooks);
    }
    if (r->rounds) tp_reducer_free(r->rounds);
    for (int i = 0; i < r->count; i++) {
        tp_release(r->all[i].place);
        tp_release(r->all[i].variable);
        tp_node_release(r->all[i].accumulator);
    }
    PyMem_Free(r->all);
    PyMem_Free(r->order);
    Py_TYPE(o)->tp_free(o);
}

/* ---- buckets ---- */

/* One bucket: (tensor or None, numbers of its parameters, their places or None). */
static int take_bucket(reducer *r, PyObject *given, int b, int *bucket_of, tp_tensor **flat, tp_tensor **places) {
    PyObject *whole, *numbers, *views;
    if (!PyArg_ParseTuple(given, "OO!O!", &whole, &PyTuple_Type, &numbers, &PyTuple_Type, &views)) return -1;
    if (PyTuple_GET_SIZE(numbers) != PyTuple_GET_SIZE(views))
        return PyErr_Format(PyExc_ValueError, "lay_out: a bucket has a place for each of its parameters"), -1;
    if (whole != Py_None) {
        flat[b] = tp_py_is_tensor(whole) ? tp_py_tensor_borrow(whole) : NULL;
        if (!flat[b] || !tp_is_contiguous(flat[b]))
            return PyErr_Format(PyExc_ValueError, "lay_out: a bucket is a contiguous tensor"), -1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(numbers); k++) {
        PyObject *view = PyTuple_GET_ITEM(views, k);
        int i = take_index(r, PyTuple_GET_ITEM(numbers, k), r->count);
        if (i < 0) return -1;
        if (bucket_of[i] >= 0) return PyErr_Format(PyExc_ValueError, "lay_out: parameter %d is in two buckets", i), -1;
        bucket_of[i] = b;
        if (view == Py_None) continue;
        places[i] = tp_py_is_tensor(view) ? tp_py_tensor_borrow(view) : NULL;
        if (!places[i] || !flat[b] || places[i]->storage != flat[b]->storage)
            return PyErr_Format(PyExc_ValueError, "lay_out: a place is a part of its bucket"), -1;
    }
    return 0;
}

static int lay_out_all(reducer *r, PyObject *given, int *bucket_of, tp_tensor **flat, tp_tensor **places) {
    int n = (int)PyTuple_GET_SIZE(given);
    for (int i = 0; i < r->count; i++) bucket_of[i] = -1;
    for (int b = 0; b < n; b++)
        if (take_bucket(r, PyTuple_GET_ITEM(given, b), b, bucket_of, flat, places) < 0) return -1;
    for (int i = 0; i < r->count; i++)
        if (bucket_of[i] < 0) return PyErr_Format(PyExc_ValueError, "lay_out: parameter %d is in no bucket", i), -1;
    if (tp_reducer_lay_out(r->rounds, bucket_of, flat, n) < 0) return tp_py_raise(), -1;
    for (int i = 0; i < r->count; i++) {
        tp_release(r->all[i].place);
        r->all[i].place = places[i] ? tp_retain(places[i]) : NULL;
    }
    r->buckets = n;
    return 0;
}

/* lay_out((bucket, ...)) */
static PyObject *reducer_lay_out(PyObject *o, PyObject *given) {
    reducer *r = REDUCER(o);
    if (!PyTuple_Check(given)) return PyErr_Format(PyExc_TypeError, "lay_out: a tuple of buckets");
    int *bucket_of = PyMem_Calloc((size_t)r->count + 1, sizeof *bucket_of);
    tp_tensor **flat = PyMem_Calloc((size_t)PyTuple_GET_SIZE(given) + 1, sizeof *flat);
    tp_tensor **places = PyMem_Calloc((size_t)r->count + 1, sizeof *places);
    int status = bucket_of && flat && places ? lay_out_all(r, given, bucket_of, flat, places) : (PyErr_NoMemory(), -1);
    PyMem_Free(bucket_of);
    PyMem_Free((void *)flat);
    PyMem_Free((void *)places);
    if (status < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- rounds ---- */

static int find_unused(reducer *r, PyObject *outputs) {
    Py_ssize_t n = PyTuple_GET_SIZE(outputs);
    tp_tensor **roots = PyMem_Calloc((size_t)n + 1, sizeof *roots);
    tp_node **nodes = PyMem_Calloc((size_t)r->count + 1, sizeof *nodes);
    bool *reached = PyMem_Calloc((size_t)r->count + 1, sizeof *reached);
    int status = roots && nodes && reached ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        PyObject *output = PyTuple_GET_ITEM(outputs, i);
        if (!tp_py_is_tensor(output)) status = (PyErr_Format(PyExc_TypeError, "begin: outputs are tensors"), -1);
        else roots[i] = tp_py_tensor_borrow(output);
    }
    for (int i = 0; status == 0 && i < r->count; i++) nodes[i] = r->all[i].accumulator;
    if (status == 0 && tp_find_reached((tp_tensors){roots, n}, nodes, r->count, reached) < 0)
        status = (tp_py_raise(), -1);
    for (int i = 0; status == 0 && i < r->count; i++) r->all[i].unused = !reached[i];
    PyMem_Free((void *)roots);
    PyMem_Free((void *)nodes);
    PyMem_Free(reached);
    return status;
}

/* begin(outputs or None): the next backward pass sums. With outputs, who is not reached from them goes without a
 * gradient. */
static PyObject *reducer_begin(PyObject *o, PyObject *outputs) {
    reducer *r = REDUCER(o);
    tp_reducer_begin(r->rounds);
    r->started = false;
    r->first_gradient = r->first_bucket = 0;
    r->arrived = 0;
    for (int i = 0; i < r->count; i++) {
        parameter *p = &r->all[i];
        p->unused = false;
        p->left = p->fired;
        if (r->watches) p->fired = 0;
        else if (r->is_static) p->unused = p->fired == 0;
    }
    if (outputs != Py_None && (!PyTuple_Check(outputs) || find_unused(r, outputs) < 0))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "begin: a tuple of tensors");
    r->expects = true;
    Py_RETURN_NONE;
}

/* forget(): the round is over, and no parameter was used since. */
static PyObject *reducer_forget(PyObject *o, PyObject *unused TP_UNUSED) {
    for (int i = 0; i < REDUCER(o)->count; i++) REDUCER(o)->all[i].used = false;
    Py_RETURN_NONE;
}

/* take(i): parameter i's gradient is as it is, though no hook came. */
static PyObject *reducer_take(PyObject *o, PyObject *number) {
    int i = take_index(REDUCER(o), number, REDUCER(o)->count);
    if (i < 0 || take(REDUCER(o), i) < 0) return NULL;
    Py_RETURN_NONE;
}

/* wait(bucket, seconds) */
static PyObject *reducer_wait(PyObject *o, PyObject *args) {
    PyObject *number;
    double seconds;
    if (!PyArg_ParseTuple(args, "Od", &number, &seconds)) return NULL;
    int b = take_index(REDUCER(o), number, REDUCER(o)->buckets);
    if (b < 0) return NULL;
    if (tp_reducer_wait(REDUCER(o)->rounds, b, seconds) < 0) return tp_py_raise_backend();
    Py_RETURN_NONE;
}

/* A gradient that no process had stays as it was. */
static int write_back(const reducer *r, const parameter *p) {
    tp_autoref *grad = tp_grad(p->variable), *place = tp_retain(p->place);
    if (r->keeps_views) {
        if (grad && is_in_place(grad, place)) return 0;
        if (grad)
            return tp_fail(TP_RuntimeError, "a gradient is no longer the part of its bucket that it was: with "
                                            "gradient_as_bucket_view nobody may put another one into .grad between "
                                            "backward's hooks and its end");
        tp_put_grad_steal(p->variable, tp_take(place));
        return 0;
    }
    if (grad) return tp_copy_(grad, place, false);
    tp_autoref *own = tp_new_empty_like(p->variable, (tp_dtype)place->dtype);
    if (!own || tp_copy_(own, place, false) < 0) return -1;
    tp_put_grad_steal(p->variable, tp_take(own));
    return 0;
}

/* settle((parameter, ...)): their gradients are what is in the buckets now. */
static PyObject *reducer_settle(PyObject *o, PyObject *numbers) {
    reducer *r = REDUCER(o);
    if (!PyTuple_Check(numbers)) return PyErr_Format(PyExc_TypeError, "settle: a tuple of numbers");
    tp_exclude_guard guard = tp_exclude(TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView));
    for (Py_ssize_t k = 0; r->needs_buckets && k < PyTuple_GET_SIZE(numbers); k++) {
        int i = take_index(r, PyTuple_GET_ITEM(numbers, k), r->count);
        if (i < 0) return NULL;
        if (r->all[i].place && write_back(r, &r->all[i]) < 0) return tp_py_raise();
    }
    Py_RETURN_NONE;
}

/* ---- what Python asks ---- */

typedef bool (*asks)(const reducer *r, int i);
static bool was_used(const reducer *r, int i) { return r->all[i].used; }
static bool is_there(const reducer *r, int i) { return tp_reducer_has(r->rounds, i); }
static bool never_fired(const reducer *r, int i) { return r->all[i].fired == 0; }
static bool is_unused(const reducer *r, int i) { return r->all[i].unused; }

/* A tuple of bools, one for each parameter. */
static PyObject *each(reducer *r, asks ask) {
    PyObject *tuple = PyTuple_New(r->count);
    for (int i = 0; tuple && i < r->count; i++) PyTuple_SET_ITEM(tuple, i, PyBool_FromLong(ask(r, i)));
    return tuple;
}

#define ASK(name) \
    static PyObject *ask_##name(PyObject *o, void *unused TP_UNUSED) { return each(REDUCER(o), name); }
ASK(was_used)
ASK(is_there)
ASK(never_fired)
ASK(is_unused)

static PyObject *get_order(PyObject *o, void *unused TP_UNUSED) {
    reducer *r = REDUCER(o);
    PyObject *tuple = PyTuple_New(r->arrived);
    for (int i = 0; tuple && i < r->arrived; i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromLong(r->order[i]));
    return tuple;
}

#define FLAG(name)                                                                                                 \
    static PyObject *get_##name(PyObject *o, void *unused TP_UNUSED) { return PyBool_FromLong(REDUCER(o)->name); } \
    static int set_##name(PyObject *o, PyObject *value, void *unused TP_UNUSED) {                                  \
        int yes = value ? PyObject_IsTrue(value) : -1;                                                             \
        if (yes >= 0) REDUCER(o)->name = yes;                                                                      \
        else if (!value) PyErr_SetString(PyExc_TypeError, #name " stays");                                         \
        return yes < 0 ? -1 : 0;                                                                                   \
    }
FLAG(expects)
FLAG(started)
FLAG(watches)
FLAG(is_static)
FLAG(carries)
FLAG(needs_buckets)
FLAG(tells)

static PyObject *get_first_times(PyObject *o, void *unused TP_UNUSED) {
    return Py_BuildValue("LL", (long long)REDUCER(o)->first_gradient, (long long)REDUCER(o)->first_bucket);
}

static PyObject *get_factor(PyObject *o, void *unused TP_UNUSED) { return PyFloat_FromDouble(REDUCER(o)->factor); }
static int set_factor(PyObject *o, PyObject *value, void *unused TP_UNUSED) {
    double factor = value ? PyFloat_AsDouble(value) : -1;
    if (PyErr_Occurred()) return -1;
    REDUCER(o)->factor = factor;
    return 0;
}

#define DEFINED(name) {#name, get_##name, set_##name, NULL, NULL}
#define ASKED(name) {#name, ask_##name, NULL, NULL, NULL}
static PyGetSetDef getset[] = {
    DEFINED(expects),
    DEFINED(started),
    DEFINED(watches),
    DEFINED(is_static),
    DEFINED(carries),
    DEFINED(needs_buckets),
    DEFINED(tells),
    DEFINED(factor),
    ASKED(was_used),
    ASKED(is_there),
    ASKED(never_fired),
    ASKED(is_unused),
    {"first_times", get_first_times, NULL, NULL, NULL},
    {"order", get_order, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"node", reducer_node, METH_O, NULL},          {"lay_out", reducer_lay_out, METH_O, NULL},
    {"begin", reducer_begin, METH_O, NULL},        {"take", reducer_take, METH_O, NULL},
    {"forget", reducer_forget, METH_NOARGS, NULL}, {"wait", reducer_wait, METH_VARARGS, NULL},
    {"settle", reducer_settle, METH_O, NULL},      {NULL, NULL, 0, NULL},
};

static PyTypeObject reducer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy._C._distributed.Reducer",
    .tp_basicsize = sizeof(reducer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = reducer_new,
    .tp_dealloc = reducer_dealloc,
    .tp_weaklistoffset = offsetof(reducer, weakrefs),
    .tp_methods = methods,
    .tp_getset = getset,
};

int tp_py_init_reducer(PyObject *module) { return PyModule_AddType(module, &reducer_type); }
