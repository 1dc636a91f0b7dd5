/* compile.c: the type of compiled functions: a call opens a region (plan/plan.h), calls the function, closes the
 * region.
 *
 * Everything of the interface but the call is Python (tensorpy/_compile.py), which also gives the object the name and
 * the documentation of its function. A region is not opened where somebody above wants to see or replace each call: a
 * mode, a recorder, a trace. */
#include "python/common.h"

#include "core/tls.h"
#include "dispatch/key.h"
#include "plan/plan.h"
#include "prim/fused.h"
#include "python/region.h"
#include "python/replay.h"
#include "python/saved.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *function, *dict, *weak;
    PyObject *told; /* the list that gets what becomes of the calls; NULL: nobody asks */
    tp_region_options options;
    tp_region_report report; /* of the last call that opened a region */
    int64_t largest;         /* argument of the last call, in bytes, */
    int pause, skip;         /* how many calls then open no region, and how many of these are left */
    bool at_once;            /* disable(): inside of a region the function's calls are not noted */
    bool plain;              /* backend="eager": no region is opened, */
    bool shown;              /* but with fullgraph=True for the first call, until one has run as a whole */
    tp_py_replays *replays;  /* mode="reduce-overhead"; NULL: every call is followed */
} compiled;

#define MOST_SKIPPED 255

/* Whether this thread runs the code of a compiled function, and that of the outermost one is to run as a whole. */
typedef struct {
    bool now, whole;
} standing;
static __thread standing compiled_code __attribute__((tls_model("initial-exec")));

#define COMPILED(o) ((compiled *)(o))

/* ---- what is told ---- */

static PyObject *line_of_program(void) {
    PyObject *place = tp_py_place_of_program(), *said = place ? tp_py_said_place(place) : NULL;
    Py_XDECREF(place);
    return said;
}

static char *line_to_keep(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *said = line_of_program();
    const char *text = said && said != Py_None ? PyUnicode_AsUTF8(said) : NULL;
    char *line = text ? strdup(text) : NULL;
    Py_XDECREF(said);
    PyErr_Restore(type, value, traceback);
    return line;
}

static PyObject *names_of(const tp_plan_event *e) {
    char name[128];
    PyObject *names = PyTuple_New(e->count);
    for (int64_t i = 0; names && i < e->count; i++) {
        PyObject *item = PyUnicode_FromString(tp_op_name(e->operators[i], name));
        if (item) PyTuple_SET_ITEM(names, i, item);
        else Py_CLEAR(names);
    }
    return names;
}

static PyObject *sizes_of(const tp_tensor *t) {
    PyObject *sizes = t ? PyTuple_New(t->ndim) : Py_NewRef(Py_None);
    for (int d = 0; t && sizes && d < t->ndim; d++) {
        PyObject *item = PyLong_FromLongLong(t->sizes[d]);
        if (item) PyTuple_SET_ITEM(sizes, d, item);
        else Py_CLEAR(sizes);
    }
    return sizes;
}

/* Appends (kind, operators, sizes, dtype, moved, alone, unstored, peak, again, why, line) to the list. An event for
 * which there is no memory goes untold. */
static void tell(void *list, const tp_plan_event *e) {
    static const char *const kinds[] = {"call", "group", "tiles", "at once", "flush"};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool has_line = e->kind == TP_PLAN_AT_ONCE || (e->kind == TP_PLAN_FLUSH && e->why);
    PyObject *row = Py_BuildValue("(sNNNLLLLLzN)", kinds[e->kind], names_of(e), sizes_of(e->like),
                                  e->like ? tp_py_dtype_object((tp_dtype)e->like->dtype) : Py_NewRef(Py_None),
                                  (long long)e->moved, (long long)e->alone, (long long)e->unstored, (long long)e->peak,
                                  (long long)e->again, e->why, has_line ? line_of_program() : Py_NewRef(Py_None));
    if (!row || PyList_Append(list, row) < 0) PyErr_Clear();
    Py_XDECREF(row);
    PyErr_Restore(type, value, traceback);
}

/* The bytes of the largest tensor among the arguments. */
static int64_t largest(PyObject *const *args, size_t n, PyObject *names) {
    int64_t most = 0;
    Py_ssize_t count = PyVectorcall_NARGS(n) + (names ? PyTuple_GET_SIZE(names) : 0);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!tp_py_is_tensor(args[i])) continue;
        const tp_tensor *t = tp_py_tensor_borrow(args[i]);
        int64_t bytes = t->numel * tp_itemsize((tp_dtype)t->dtype);
        if (bytes > most) most = bytes;
    }
    return most;
}

/* A region in which nothing was worth waiting is opened less and less often while the arguments are as large: the
 * function computes the same without one. */
static bool is_quiet(compiled *c, PyObject *const *args, size_t n, PyObject *names) {
    int64_t most = largest(args, n, names);
    if (most != c->largest) c->pause = c->skip = 0;
    c->largest = most;
    return c->skip && c->skip--;
}
static void note_whether_quiet(compiled *c) {
    c->pause = c->report.calls ? 0 : c->pause < MOST_SKIPPED ? 2 * c->pause + 1 : MOST_SKIPPED;
    c->skip = c->pause;
}

/* What this thread's region was last refused for: a program may take the error for one of its own, as NumPy does where
 * it asks in several ways for an array. */
static __thread PyObject *refused __attribute__((tls_model("initial-exec")));

static PyObject *unsupported(void) {
    PyObject *module = PyImport_ImportModule("tensorpy._dynamo.exc");
    PyObject *kind = module ? PyObject_GetAttrString(module, "Unsupported") : NULL;
    Py_XDECREF(module);
    return kind;
}

static int refuse(const char *message) {
    PyObject *kind = unsupported(), *line = kind ? line_of_program() : NULL;
    PyObject *said = !line             ? NULL
                     : line == Py_None ? PyUnicode_FromString(message)
                                       : PyUnicode_FromFormat("%s (%U)", message, line);
    if (said) PyErr_SetObject(kind, said);
    Py_XSETREF(refused, said);
    Py_XDECREF(line);
    Py_XDECREF(kind);
    return tp_py_error_to_core();
}

/* What disable() keeps out is called by the program itself: a graph, and a function that runs as a whole, have no such
 * call. */
static int check_kept_out(const compiled *c) {
    if (!c->options.whole) return 0;
    if (compiled_code.whole)
        return tp_py_check(refuse("compile(fullgraph=True): the function does not run as a whole: it calls "
                                  "a function that is not compiled"));
    return tp_py_tell_recorder("a function is called that disable() keeps out");
}

static PyObject *call_at_once(compiled *c, PyObject *const *args, size_t n, PyObject *names) {
    if (check_kept_out(c) < 0) return NULL;
    if (tp_region_break("a function that is not compiled") < 0) return tp_py_raise();
    tp_at_once_guard guard = tp_at_once();
    standing before = compiled_code;
    compiled_code = (standing){false, false};
    PyObject *result = PyObject_Vectorcall(c->function, args, n, names);
    compiled_code = before;
    return result;
}

/* The error that the program took, instead of its result. */
static PyObject *refuse_again_steal(PyObject *result) {
    PyObject *said = refused, *kind = result ? unsupported() : NULL;
    refused = NULL;
    if (kind) PyErr_SetObject(kind, said);
    Py_XDECREF(kind);
    Py_XDECREF(said);
    Py_XDECREF(result);
    return NULL;
}

static PyObject *follow(compiled *c, tp_region_options *options, PyObject *const *args, size_t n, PyObject *names) {
    if (tp_region_enter(options) < 0) return tp_py_raise();
    Py_CLEAR(refused);
    PyObject *result = tp_py_close_region(&c->report, PyObject_Vectorcall(c->function, args, n, names));
    if (tp_unlikely(options->whole && refused)) result = refuse_again_steal(result);
    note_whether_quiet(c);
    return result;
}

static PyObject *follow_written(compiled *c, PyObject *const *args, size_t n, PyObject *names) {
    tp_region_options options = c->options;
    options.tape = tp_py_replay_begin(c->replays, args, n, names);
    PyObject *result = follow(c, &options, args, n, names);
    return options.tape ? tp_py_replay_end(c->replays, options.tape, args, n, names, result) : result;
}

static PyObject *follow_told(compiled *c, tp_region_options options, PyObject *const *args, size_t n, PyObject *names) {
    PyObject *told = Py_XNewRef(c->told);
    if (tp_unlikely(told != NULL)) options.tell = tell, options.context = told;
    PyObject *result = follow(c, &options, args, n, names);
    Py_XDECREF(told);
    return result;
}

/* With fullgraph=True every call of an operator waits in the first call, however small: what would be an error for
 * large tensors is one for small ones. */
static PyObject *show_whole(compiled *c, PyObject *const *args, size_t n, PyObject *names) {
    tp_region_options options = c->options;
    options.smallest = 0;
    PyObject *result = follow_told(c, options, args, n, names);
    c->shown |= result != NULL;
    return result;
}

static PyObject *call_compiled(compiled *c, PyObject *const *args, size_t n, PyObject *names) {
    /* Inside of another compiled function's region the calls are noted there. */
    if (tp_regions_off || tp_tls.region || tp_tls.include & TP_PLAN_WATCHERS)
        return PyObject_Vectorcall(c->function, args, n, names);
    bool replays = c->replays && !c->told;
    PyObject *result;
    if (tp_unlikely(c->options.whole && !c->shown && !c->replays)) {
        Py_INCREF(c);
        result = show_whole(c, args, n, names);
        Py_DECREF(c);
        return result;
    }
    if (c->plain) return PyObject_Vectorcall(c->function, args, n, names);
    if (replays && tp_py_replay(c->replays, args, n, names, &result)) return result;
    if (!replays && !c->told && is_quiet(c, args, n, names)) return PyObject_Vectorcall(c->function, args, n, names);
    Py_INCREF(c);
    result = replays ? follow_written(c, args, n, names) : follow_told(c, c->options, args, n, names);
    Py_DECREF(c);
    return result;
}

static PyObject *call(PyObject *o, PyObject *const *args, size_t n, PyObject *names) {
    compiled *c = COMPILED(o);
    if (c->at_once) return call_at_once(c, args, n, names);
    if (tp_regions_off || compiled_code.now) return call_compiled(c, args, n, names);
    compiled_code = (standing){true, c->options.whole};
    PyObject *result = call_compiled(c, args, n, names);
    compiled_code = (standing){false, false};
    return result;
}

/* _Compiled(function, fuses, whole, smallest, tile, at_once, replays=False, recomputes=False, plain=False) */
static PyObject *new_compiled(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *function;
    int fuses, whole, at_once, replays = 0, recomputes = 0, plain = 0;
    long long smallest, tile;
    if (kwargs && PyDict_GET_SIZE(kwargs)) return PyErr_Format(PyExc_TypeError, "_Compiled() takes no keywords");
    if (!PyArg_ParseTuple(args, "OppLLp|ppp", &function, &fuses, &whole, &smallest, &tile, &at_once, &replays,
                          &recomputes, &plain))
        return NULL;
    compiled *c = COMPILED(type->tp_alloc(type, 0));
    if (!c) return NULL;
    c->vectorcall = call;
    c->function = Py_NewRef(function);
    c->options = (tp_region_options){.fuses = fuses,
                                     .whole = whole,
                                     .refuse = refuse,
                                     .line = line_to_keep,
                                     .smallest = smallest,
                                     .tile = tile,
                                     .recomputes = recomputes};
    c->at_once = at_once;
    c->plain = plain;
    if (replays && !(c->replays = tp_py_replays_new())) Py_CLEAR(c);
    return (PyObject *)c;
}

static int traverse(PyObject *o, visitproc visit, void *arg) {
    Py_VISIT(COMPILED(o)->function);
    Py_VISIT(COMPILED(o)->dict);
    Py_VISIT(COMPILED(o)->told);
    return tp_py_replays_traverse(COMPILED(o)->replays, visit, arg);
}
static int clear(PyObject *o) {
    Py_CLEAR(COMPILED(o)->function);
    Py_CLEAR(COMPILED(o)->dict);
    Py_CLEAR(COMPILED(o)->told);
    tp_py_replays *replays = COMPILED(o)->replays;
    COMPILED(o)->replays = NULL;
    tp_py_replays_free(replays);
    return 0;
}
static void dealloc(PyObject *o) {
    PyObject_GC_UnTrack(o);
    if (COMPILED(o)->weak) PyObject_ClearWeakRefs(o);
    clear(o);
    Py_TYPE(o)->tp_free(o);
}

/* A compiled function in a class is a method. */
static PyObject *bind(PyObject *o, PyObject *self, PyObject *type) {
    (void)type;
    return self && self != Py_None ? PyMethod_New(o, self) : Py_NewRef(o);
}

static PyObject *repr(PyObject *o) { return PyUnicode_FromFormat("<compiled %R>", COMPILED(o)->function); }

/* _report(): of the last call that was not inside of another compiled function's. */
static PyObject *report(PyObject *o, PyObject *unused) {
    (void)unused;
    const tp_region_report *r = &COMPILED(o)->report;
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:z,s:s}", "calls", (long long)r->calls, "groups", (long long)r->groups,
                         "fused", (long long)r->fused, "flushes", (long long)r->flushes, "why", r->why, "operator",
                         r->operator);
}

/* _replays(): {"replayed", "written": calls, "why": what was last against it}; None without the mode */
static PyObject *replays(PyObject *o, PyObject *unused TP_UNUSED) {
    return COMPILED(o)->replays ? tp_py_replays_report(COMPILED(o)->replays) : Py_NewRef(Py_None);
}

/* _tell(list or None): where calls are told of from now on. */
static PyObject *tell_to(PyObject *o, PyObject *list) {
    if (list != Py_None && !PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "_tell() takes a list or None");
    Py_XSETREF(COMPILED(o)->told, list == Py_None ? NULL : Py_NewRef(list));
    Py_RETURN_NONE;
}

/* plans() -> those of the calls that compiler.explain was asked about */
static PyObject *plans(PyObject *o, PyObject *unused TP_UNUSED) {
    PyObject *kept = COMPILED(o)->dict ? PyDict_GetItemString(COMPILED(o)->dict, "_plans") : NULL;
    return kept ? PySequence_List(kept) : PyList_New(0);
}

/* A copy is the function itself, and a pickle its name, as of other functions. */
static PyObject *reduce(PyObject *o, PyObject *unused TP_UNUSED) { return PyObject_GetAttrString(o, "__qualname__"); }

static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {"_tell", tell_to, METH_O, NULL},
    {"plans", plans, METH_NOARGS, PyDoc_STR("The plans of the calls that compiler.explain was asked about.")},
    {"_report", report, METH_NOARGS, NULL},
    {"_replays", replays, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef members[] = {
    {"_torchdynamo_orig_callable", T_OBJECT, offsetof(compiled, function), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject compiled_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy._C._Compiled",
    .tp_basicsize = sizeof(compiled),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(compiled, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "A function whose tensor operations are noted and run together.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_weaklistoffset = offsetof(compiled, weak),
    .tp_methods = methods,
    .tp_members = members,
    .tp_getset = properties,
    .tp_descr_get = bind,
    .tp_dictoffset = offsetof(compiled, dict),
    .tp_new = new_compiled,
};

/* _set_compiling(on) -> what was before */
static PyObject *set_compiling(PyObject *self, PyObject *on) {
    (void)self;
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0) return NULL;
    bool before = !tp_regions_off;
    tp_regions_off = !wanted;
    return PyBool_FromLong(before);
}

/* _set_fusion(block, without) -> what was before: elements of a block (0: the backend's own), names of rules that are
 * left out */
static PyObject *set_fusion(PyObject *self TP_UNUSED, PyObject *args) {
    static const char *const names[] = {
#define TP_FUSION_RULE(name, text) text,
        TP_FUSION_RULES(TP_FUSION_RULE)
#undef TP_FUSION_RULE
    };
    long long block;
    PyObject *without;
    tp_fusion_settings now = {0};
    if (!PyArg_ParseTuple(args, "LO!", &block, &PyTuple_Type, &without)) return NULL;
    if (block < 0) return PyErr_Format(PyExc_ValueError, "_set_fusion(): a block has some elements, not %lld", block);
    now.block = block;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(without); i++) {
        PyObject *given = PyTuple_GET_ITEM(without, i);
        const char *name = PyUnicode_Check(given) ? PyUnicode_AsUTF8(given) : NULL;
        int rule = 0;
        while (name && rule < TP_NUM_FUSION_RULES && strcmp(names[rule], name) != 0) rule++;
        if (!name || rule == TP_NUM_FUSION_RULES) return PyErr_Format(PyExc_ValueError, "no such rule: %R", given);
        now.left_out |= UINT32_C(1) << rule;
    }
    PyObject *before = PyList_New(0), *result = NULL;
    for (int rule = 0; before && rule < TP_NUM_FUSION_RULES; rule++) {
        PyObject *name = tp_fusion_has(rule) ? NULL : PyUnicode_FromString(names[rule]);
        if (!tp_fusion_has(rule) && (!name || PyList_Append(before, name) < 0)) Py_CLEAR(before);
        Py_XDECREF(name);
    }
    if (before) result = Py_BuildValue("(LN)", (long long)tp_fusion.block, PyList_AsTuple(before));
    Py_XDECREF(before);
    if (result) tp_fusion = now;
    return result;
}

/* _is_watched() -> whether compiled functions are called as they are written: switched off, or somebody above sees each
 * call */
static PyObject *is_watched(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    return PyBool_FromLong(tp_regions_off || tp_tls.include & TP_PLAN_WATCHERS);
}

/* _code_is_compiled() -> whether the code that calls it is a compiled function's; _code_is_whole() -> with fullgraph */
static PyObject *code_is_compiled(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    return PyBool_FromLong(compiled_code.now);
}
static PyObject *code_is_whole(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    return PyBool_FromLong(compiled_code.whole);
}

/* _set_code_is_compiled(is) -> what was before */
static PyObject *set_code_is_compiled(PyObject *self TP_UNUSED, PyObject *is) {
    bool before = compiled_code.now;
    compiled_code.now = is == Py_True;
    return PyBool_FromLong(before);
}

/* _of_graphs(function, backend, ...) -> a GraphFunction of these; its module is loaded with the first one */
static PyObject *of_graphs(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *module = PyImport_ImportModule("tensorpy._dynamo.graphs");
    PyObject *type = module ? PyObject_GetAttrString(module, "GraphFunction") : NULL;
    PyObject *made = type ? PyObject_CallObject(type, args) : NULL;
    Py_XDECREF(type);
    Py_XDECREF(module);
    return made;
}

static PyMethodDef functions[] = {
    {"_of_graphs", of_graphs, METH_VARARGS, NULL},        {"_code_is_compiled", code_is_compiled, METH_NOARGS, NULL},
    {"_code_is_whole", code_is_whole, METH_NOARGS, NULL}, {"_set_code_is_compiled", set_code_is_compiled, METH_O, NULL},
    {"_is_watched", is_watched, METH_NOARGS, NULL},       {"_set_compiling", set_compiling, METH_O, NULL},
    {"_set_fusion", set_fusion, METH_VARARGS, NULL},      {NULL, NULL, 0, NULL},
};

int tp_py_init_compile(PyObject *m) {
    if (PyType_Ready(&compiled_type) < 0 || PyModule_AddFunctions(m, functions) < 0 || tp_py_init_replay(m) < 0 ||
        tp_py_init_saved(m) < 0)
        return -1;
    return PyModule_AddObjectRef(m, "_Compiled", (PyObject *)&compiled_type);
}
