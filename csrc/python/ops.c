/* ops.c: OpOverload: one operator as a callable object, whose signature is made of the operator's schema.
 *
 * tensorpy/ops.py gives them their places: tensorpy.ops.aten.add.Tensor. */
#include "python/ops.h"

#include "dispatch/schema.h"
#include "outside/backend.h"
#include "python/arguments.h"
#include "python/overrides.h"
#include "python/values.h"

#include <stddef.h>
#include <string.h>

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    const tp_py_function *function;
    const tp_op *op;
    bool gives_list;              /* its one result is a list of tensors */
    const tp_py_function *scalar; /* of mul.Tensor that of mul.Scalar, which takes a number in its place; or NULL */
} py_overload;

static bool is_number(PyObject *o) { return PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o); }

static PyObject *overload_call(PyObject *o, PyObject *const *args, size_t nargs, PyObject *kwnames) {
    const py_overload *p = (const py_overload *)o;
    bool by_number = p->scalar && PyVectorcall_NARGS(nargs) > 1 && is_number(args[1]);
    PyObject *result = tp_py_call(by_number ? p->scalar : p->function, NULL, args, (Py_ssize_t)nargs, kwnames);
    return p->gives_list ? tp_py_list_steal(result) : result;
}

/* ---- an operator's signature, made of its schema ---- */

typedef struct described {
    struct described *next;
    tp_py_function function;
    tp_py_signature signature;
    char name[128];
    tp_py_param params[]; /* and then their defaults */
} described;
static described *all_described; /* under the host lock; they stay */

/* How the parser takes a single number for a list (tp_py_param). */
static uint8_t size_of(const tp_argument *a) {
    int n = tp_list_size_of(a->type);
    if (a->tag == TP_TENSORS) return strstr(a->type, "?[") != NULL;
    return n == 1 ? 255 : (uint8_t)n;
}

static PyObject *call_described(tp_py_args *a, const tp_py_signature *s);

static described *describe(const tp_op *op) {
    const tp_op_info *info = op->info;
    described *d = PyMem_Calloc(1, sizeof *d + info->nargs * (sizeof(tp_py_param) + sizeof(tp_value)));
    if (!d) return PyErr_NoMemory(), NULL;
    tp_value *defaults = (tp_value *)(d->params + info->nargs);
    for (int i = 0; i < info->nargs; i++) {
        const tp_argument *a = &info->args[i];
        int flags = (a->optional ? TP_PARAM_OPTIONAL : 0) | (a->default_value ? TP_PARAM_DEFAULT : 0) |
                    (a->kwarg_only ? TP_PARAM_KEYWORD : 0);
        if (a->default_value && !tp_read_default(a, &defaults[i])) return PyErr_NoMemory(), PyMem_Free(d), NULL;
        d->params[i] =
            (tp_py_param){a->name, a->type, a->tag, (uint8_t)flags, size_of(a), a->default_value ? &defaults[i] : NULL};
        d->signature.npositional += !a->kwarg_only;
    }
    tp_op_name(op, d->name);
    d->signature.call = call_described;
    d->signature.params = d->params;
    d->signature.nparams = (uint8_t)info->nargs;
    d->signature.op = d->name;
    d->function = (tp_py_function){d->name, &d->signature, 1, NULL, op};
    d->next = all_described;
    return all_described = d;
}

const tp_py_function *tp_py_overload(const tp_op *op) {
    char name[128];
    if (op->info->is_primitive)
        return PyErr_Format(PyExc_AttributeError, "'%s' cannot be called from Python", tp_op_name(op, name)), NULL;
    described *d = all_described;
    while (d && d->function.op != op) d = d->next;
    if (!d) d = describe(op);
    return d ? &d->function : NULL;
}

/* A written argument as a result: a tensor, or a list of them. */
static int give_back(const tp_value *v, tp_value *result) {
    if (v->tag == TP_TENSOR) *result = (tp_value){.tag = TP_TENSOR, .tensor = tp_retain(v->tensor)};
    if (v->tag == TP_TENSORS) {
        tp_tensor_seq *seq = tp_tensor_seq_of(v->tensors);
        if (!seq) return -1;
        *result = (tp_value){.tag = TP_TENSOR_SEQ, .seq = seq};
    }
    return 0;
}

/* A result that is an argument which was written is left out by kernels (op.h): it is filled in, in the order of the
 * arguments that are written. */
static int fill_in_written(const tp_op_info *info, const tp_value *args, tp_value *results) {
    int at = 0;
    for (int i = 0; i < info->nreturns; i++) {
        if (!info->returns[i].is_write) continue;
        while (at < info->nargs && !tp_py_is_given_back(info, at)) at++;
        if (at < info->nargs && results[i].tag == TP_NONE && give_back(&args[at], &results[i]) < 0) return -1;
        at++;
    }
    return 0;
}

/* The boxed call of what was parsed: of a kernel that is held, below the layers that `ks` leaves out, or from the top.
 */
static PyObject *call_boxed(const tp_op *op, const tp_held_kernel *held, const tp_keyset *ks, const tp_py_args *a) {
    tp_value results[TP_MAX_RESULTS];
    for (int i = 0; i < op->info->nreturns; i++) results[i] = (tp_value){.tag = TP_NONE};
    int status = held ? tp_call_held(op, held, *ks, a->values, results)
                 : ks ? tp_redispatch_boxed(op, *ks, a->values, results)
                      : tp_call_boxed(op, a->values, results);
    if (status == 0) status = fill_in_written(op->info, a->values, results);
    return status < 0 ? tp_py_raise() : tp_py_from_results_steal(op, results);
}

static PyObject *call_described(tp_py_args *a, const tp_py_signature *s) {
    const described *d = (const described *)((const char *)s - offsetof(described, signature));
    return call_boxed(d->function.op, NULL, NULL, a);
}

/* (keys, *args, **kwargs) */
static PyObject *call_with_keys(const tp_py_function *f, const tp_held_kernel *held, PyObject *const *args,
                                Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs == 0) return PyErr_Format(PyExc_TypeError, "a call of a kernel takes a key set and the arguments");
    const tp_keyset ks = PyLong_AsUnsignedLongLong(args[0]);
    if (PyErr_Occurred()) return NULL;
    tp_py_args a;
    if (!tp_py_select(f, &a, NULL, args + 1, nargs - 1, kwnames)) return NULL;
    PyObject *result = call_boxed(f->op, held, &ks, &a);
    if (a.kind) result = tp_py_of_kind_steal(a.kind, result);
    tp_py_args_free(&a);
    return result;
}

static PyObject *redispatch(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return call_with_keys(((py_overload *)o)->function, NULL, args, nargs, kwnames);
}

static PyObject *overload_reduce(PyObject *o, PyObject *unused) {
    (void)unused;
    char name[128];
    PyObject *ops = PyImport_ImportModule("tensorpy.ops");
    PyObject *find = ops ? PyObject_GetAttrString(ops, "_find") : NULL;
    Py_XDECREF(ops);
    return find ? Py_BuildValue("N(s)", find, tp_op_name(((py_overload *)o)->op, name)) : NULL;
}

/* "myops" and "scale" of "myops::scale"; "aten" of the YAML's. */
static const char *split_name(const tp_op_info *info, char *space) {
    const char *colons = strstr(info->name, "::");
    size_t n = colons ? (size_t)(colons - info->name) : 4;
    memcpy(space, colons ? info->name : "aten", n);
    space[n] = 0;
    return colons ? colons + 2 : info->name;
}

/* "aten::add.Tensor" */
static PyObject *overload_full_name(PyObject *o, PyObject *unused TP_UNUSED) {
    const tp_op_info *info = ((py_overload *)o)->op->info;
    char space[128];
    const char *name = split_name(info, space);
    return PyUnicode_FromFormat(info->overload[0] ? "%s::%s.%s" : "%s::%s", space, name, info->overload);
}

/* Whether a kernel was registered for a key, or for all dense backends where the key is one of these. */
static PyObject *overload_has_kernel(PyObject *o, PyObject *arg) {
    const char *key = PyUnicode_AsUTF8(arg);
    if (!key) return NULL;
    for (int k = 0; k < TP_NUM_KEYS; k++) {
        tp_origin r;
        if (!tp_find_origin(((py_overload *)o)->op, (tp_key)k, &r) || r.is_fallback) continue;
        const char *slot = tp_slot_name(r.key);
        if (strcmp(slot, key) == 0) Py_RETURN_TRUE;
        if (strcmp(slot, "Dense") == 0 && strcmp(tp_key_name((tp_key)k), key) == 0) Py_RETURN_TRUE;
    }
    Py_RETURN_FALSE;
}

static PyMethodDef methods[] = {
    {"has_kernel_for_dispatch_key", overload_has_kernel, METH_O, "Whether a kernel was registered for a key."},
    {"name", overload_full_name, METH_NOARGS, "\"aten::add.Tensor\"."},
    {"redispatch", TP_PY_FASTCALL(redispatch), "Calls the kernel that a key set leads to: redispatch(keys, *args)."},
    {"__reduce__", overload_reduce, METH_NOARGS, "Operators pickle by their names."},
    {NULL, NULL, 0, NULL},
};

/* ---- the object ---- */

static PyObject *overload_repr(PyObject *o) {
    const tp_op_info *info = ((py_overload *)o)->op->info;
    char space[128];
    const char *name = split_name(info, space);
    return PyUnicode_FromFormat("<OpOverload(op='%s.%s', overload='%s')>", space, name,
                                info->overload[0] ? info->overload : "default");
}

#define OVERLOAD_GETTER(name, expression)                         \
    static PyObject *overload_##name(PyObject *o, void *unused) { \
        (void)unused;                                             \
        const tp_op_info *info = ((py_overload *)o)->op->info;    \
        return expression;                                        \
    }
OVERLOAD_GETTER(own_name, PyUnicode_FromFormat(info->overload[0] ? "%s.%s" : "%s", info->name, info->overload))
OVERLOAD_GETTER(opname, PyUnicode_FromString(info->name))
OVERLOAD_GETTER(overload, PyUnicode_FromString(info->overload[0] ? info->overload : "default"))

/* A text whose parts are attributes (tensorpy/_library/function_schema.py). */
static PyObject *overload_schema(PyObject *o, void *unused TP_UNUSED) {
    PyObject *module = PyImport_ImportModule("tensorpy._library.function_schema");
    const char *text = ((py_overload *)o)->op->info->schema;
    PyObject *made = module ? PyObject_CallMethod(module, "parse_schema", "s", text) : NULL;
    Py_XDECREF(module);
    return made;
}

/* "tensorpy._ops.aten": tools compare and print it, as they do a function's. */
static PyObject *overload_module(PyObject *o, void *unused TP_UNUSED) {
    char space[128];
    split_name(((py_overload *)o)->op->info, space);
    return PyUnicode_FromFormat("%s._ops.%s", tp_py_package, space);
}

/* "aten" of aten.add.Tensor. */
static PyObject *overload_namespace(PyObject *o, void *unused TP_UNUSED) {
    char space[128];
    split_name(((py_overload *)o)->op->info, space);
    return PyUnicode_FromString(space);
}

static PyObject *overload_packet(PyObject *o, void *unused TP_UNUSED) {
    char space[128];
    const char *name = split_name(((py_overload *)o)->op->info, space);
    PyObject *ops = PyImport_ImportModule("tensorpy.ops"), *part = ops ? PyObject_GetAttrString(ops, space) : NULL;
    PyObject *packet = part ? PyObject_GetAttrString(part, name) : NULL;
    Py_XDECREF(part);
    Py_XDECREF(ops);
    return packet;
}

/* "add.Tensor", "sin.default": as torch's graphs and logs write it. */
static PyObject *overload_name(PyObject *o, void *unused TP_UNUSED) {
    const tp_op_info *info = ((py_overload *)o)->op->info;
    char space[128];
    return PyUnicode_FromFormat("%s.%s", split_name(info, space), info->overload[0] ? info->overload : "default");
}

static PyObject *overload_qualified(PyObject *o, void *unused TP_UNUSED) { return overload_full_name(o, NULL); }

static PyObject *overload_in_python(PyObject *o, void *unused TP_UNUSED) {
    return PyBool_FromLong(tp_is_definition(((py_overload *)o)->op));
}

/* "aten.add.Tensor" */
static PyObject *overload_str(PyObject *o) {
    const tp_op_info *info = ((py_overload *)o)->op->info;
    char space[128];
    const char *name = split_name(info, space);
    return PyUnicode_FromFormat("%s.%s.%s", space, name, info->overload[0] ? info->overload : "default");
}

static PyObject *overload_is_view(PyObject *o, void *unused TP_UNUSED) {
    return PyBool_FromLong(tp_viewed_argument(((py_overload *)o)->op) >= 0);
}

/* Members of tensorpy.Tag (tensorpy/_library/tags.py). */
static PyObject *overload_tags(PyObject *o, void *unused TP_UNUSED) {
    PyObject *module = PyImport_ImportModule("tensorpy._library.tags"), *list = module ? PyList_New(0) : NULL;
    for (const char *const *tag = ((py_overload *)o)->op->info->tags; list && *tag; tag++) {
        PyObject *member = PyObject_CallMethod(module, "Tag", "s", *tag);
        if (!member || PyList_Append(list, member) < 0) Py_CLEAR(list);
        Py_XDECREF(member);
    }
    if (list && !tp_is_definition(((py_overload *)o)->op)) { /* those of the tree all are */
        PyObject *member = PyObject_CallMethod(module, "Tag", "s", "pt2_compliant_tag");
        if (!member || PyList_Append(list, member) < 0) Py_CLEAR(list);
        Py_XDECREF(member);
    }
    Py_XDECREF(module);
    return list;
}

static PyGetSetDef getset[] = {
    {"_schema", overload_schema, NULL, "The operator's schema.", NULL},
    {"__name__", overload_name, NULL, "\"add.Tensor\"; \"sin.default\" where the overload has no name.", NULL},
    {"_name", overload_qualified, NULL, "\"aten::add.Tensor\".", NULL},
    {"_own_name", overload_own_name, NULL, "\"add.Tensor\", with its namespace where that is not aten.", NULL},
    {"_defined_in_python", overload_in_python, NULL, "Whether it was declared at run time.", NULL},
    {"_overloadpacket", overload_packet, NULL, "The packet of overloads that it belongs to.", NULL},
    {"_opname", overload_opname, NULL, "\"add\", with its namespace where that is not aten.", NULL},
    {"__module__", overload_module, NULL, "\"torch._ops.aten\".", NULL},
    {"namespace", overload_namespace, NULL, "\"aten\".", NULL},
    {"overloadpacket", overload_packet, NULL, "All overloads of the operator.", NULL},
    {"_overloadname", overload_overload, NULL, "The overload's name, or \"default\".", NULL},
    {"is_view", overload_is_view, NULL, "Whether results share an argument's memory, and none is written.", NULL},
    {"tags", overload_tags, NULL, "The operator's tags.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject overload_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy.OpOverload",
    .tp_basicsize = sizeof(py_overload),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "One operator with one signature.",
    .tp_vectorcall_offset = offsetof(py_overload, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = overload_repr,
    .tp_str = overload_str,
    .tp_methods = methods,
    .tp_getset = getset,
};

static PyObject *new_overload(const tp_op *op) {
    const tp_py_function *function = tp_py_overload(op);
    py_overload *o = function ? PyObject_New(py_overload, &overload_type) : NULL;
    if (!o) return NULL;
    char name[128];
    const tp_op *scalar = NULL;
    if ((!op->info->overload[0] || strcmp(op->info->overload, "Tensor") == 0) && !tp_is_definition(op) &&
        op->info->nargs > 1 && op->info->args[1].tag == TP_TENSOR &&
        snprintf(name, sizeof name, "%s.Scalar", op->info->name) < (int)sizeof name)
        scalar = tp_find_op_qualified(name);
    bool gives_list = op->info->nreturns == 1 && strncmp(op->info->returns[0].type, "Tensor[", 7) == 0;
    *o = (py_overload){o->ob_base, overload_call, function, op, gives_list, scalar ? tp_py_overload(scalar) : NULL};
    return (PyObject *)o;
}

/* ---- all overloads of a name ---- */

/* OpOverloadPacket's base: a call goes to the single overload, or to the method `_resolve`. Whoever is asked first
 * (overrides.h) gets the packet, as the program wrote it. */
typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *single; /* NULL: there are several */
} py_packet;

static PyObject *packet_call(PyObject *o, PyObject *const *args, size_t nargs, PyObject *kwnames) {
    const py_packet *p = (const py_packet *)o;
    Py_ssize_t n = PyVectorcall_NARGS(nargs);
    if (tp_unlikely(tp_py_asks_any(NULL, args, n, kwnames)))
        return tp_py_ask_steal(Py_NewRef(o), NULL, args, n, kwnames);
    if (tp_likely(p->single && Py_TYPE(p->single) == &overload_type))
        return ((py_overload *)p->single)->vectorcall(p->single, args, nargs, kwnames);
    PyObject *resolve = PyObject_GetAttrString(o, "_resolve");
    PyObject *result = resolve ? PyObject_Vectorcall(resolve, args, nargs, kwnames) : NULL;
    Py_XDECREF(resolve);
    return result;
}

static PyObject *packet_new(PyTypeObject *type, PyObject *args TP_UNUSED, PyObject *kwargs TP_UNUSED) {
    /* A class of Python's does not inherit this from its base; it has no __call__ of its own. */
    if (type->tp_call == PyVectorcall_Call) type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    py_packet *p = (py_packet *)type->tp_alloc(type, 0);
    if (p) p->vectorcall = packet_call;
    return (PyObject *)p;
}
static PyObject *packet_set_single(PyObject *o, PyObject *overload) {
    Py_XSETREF(((py_packet *)o)->single, Py_NewRef(overload));
    Py_RETURN_NONE;
}
static void packet_dealloc(PyObject *o) {
    Py_XDECREF(((py_packet *)o)->single);
    Py_TYPE(o)->tp_free(o);
}

static PyMethodDef packet_methods[] = {{"_set_single", packet_set_single, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyTypeObject packet_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy._C._OpPacket",
    .tp_basicsize = sizeof(py_packet),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(py_packet, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = packet_new,
    .tp_dealloc = packet_dealloc,
    .tp_methods = packet_methods,
};

/* One object for each operator, made at first use: `func is tensorpy.ops.aten.add.Tensor`. */
PyObject *tp_py_overload_object(const tp_op *op) {
    static PyObject *made; /* by the operator's address */
    if (!made && !(made = PyDict_New())) return NULL;
    PyObject *key = PyLong_FromVoidPtr((void *)(uintptr_t)op);
    PyObject *found = key ? Py_XNewRef(PyDict_GetItemWithError(made, key)) : NULL;
    if (key && !found && !PyErr_Occurred()) {
        found = new_overload(op);
        if (found && PyDict_SetItem(made, key, found) < 0) Py_CLEAR(found);
    }
    Py_XDECREF(key);
    return found;
}

const tp_py_function *tp_py_function_of(PyObject *overload) { return ((py_overload *)overload)->function; }

/* _op_overload(name): the object of "add.Tensor", "myops::scale". */
static PyObject *op_overload(PyObject *self, PyObject *arg) {
    (void)self;
    const char *name = PyUnicode_AsUTF8(arg);
    if (!name) return NULL;
    const tp_op *op = tp_find_op_qualified(name);
    if (!op) return PyErr_Format(PyExc_AttributeError, "there is no operator '%s'", name);
    return tp_py_overload_object(op);
}

/* ---- kernels that are held ---- */

typedef struct {
    PyObject_HEAD const tp_py_function *function;
    tp_held_kernel held;
} py_held;

static PyObject *held_call(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return call_with_keys(((py_held *)o)->function, &((py_held *)o)->held, args, nargs, kwnames);
}
static void held_dealloc(PyObject *o) {
    tp_let_go(&((py_held *)o)->held);
    Py_TYPE(o)->tp_free(o);
}
static PyMethodDef held_methods[] = {
    {"call", TP_PY_FASTCALL(held_call), "Calls the kernel: call(keys, *args)."},
    {NULL, NULL, 0, NULL},
};
static PyTypeObject held_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy._C._HeldKernel",
    .tp_basicsize = sizeof(py_held),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = held_dealloc,
    .tp_methods = held_methods,
};

/* _hold_kernel(overload, key): the kernel that stands at a runtime key now; None: there is none. */
static PyObject *hold_kernel(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *overload;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!s", &overload_type, &overload, &name)) return NULL;
    tp_key key = tp_find_slot(name);
    const tp_op *op = ((py_overload *)overload)->op;
    tp_held_kernel held;
    if (key >= TP_NUM_KEYS || !tp_hold_kernel(op, key, &held)) Py_RETURN_NONE;
    py_held *made = PyObject_New(py_held, &held_type);
    if (!made) return tp_let_go(&held), NULL;
    made->function = ((py_overload *)overload)->function;
    made->held = held;
    return (PyObject *)made;
}

static PyMethodDef functions[] = {
    {"_op_overload", op_overload, METH_O, NULL},
    {"_hold_kernel", hold_kernel, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_ops(PyObject *m) {
    tp_py_object_of_overload = tp_py_overload_object;
    if (PyType_Ready(&held_type) < 0 || PyModule_AddType(m, &overload_type) < 0 ||
        PyModule_AddType(m, &packet_type) < 0)
        return -1;
    return PyModule_AddFunctions(m, functions);
}
