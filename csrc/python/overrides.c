/* overrides.c: __torch_function__; see overrides.h.
 *
 * tp_tls.asked says that the thread has modes (modes.h). */
#include "python/overrides.h"

#include "python/modes.h"
#include "python/parse.h"
#include "python/returns.h"

#include <stddef.h>

enum { ALL_ON, SUBCLASSES_OFF, ALL_OFF }; /* tp_tls.functions_off */

static PyObject *torch_function; /* interned: "__torch_function__" */

/* ---- who has one ---- */

/* What the type's method cache finds is compared: the default of Tensor, and the one that means "not me". */
bool tp_py_has_function(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || tp_tls.functions_off) return false;
    PyObject *found = _PyType_Lookup(type, torch_function);
    if (!found || found == Py_None) return false;
    return found != _PyType_Lookup(&tp_py_tensor_type, torch_function) && !tp_py_gives_plain(type);
}

bool tp_py_asks_object(PyObject *o) { return tp_tls.asked || tp_py_has_function(o); }

static bool is_list(PyObject *o) { return PyTuple_CheckExact(o) || PyList_CheckExact(o); }

static bool asks_argument(PyObject *o) {
    if (!is_list(o)) return tp_py_has_function(o);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
        if (tp_py_has_function(PySequence_Fast_GET_ITEM(o, i))) return true;
    return false;
}

bool tp_py_asks_any(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (tp_tls.asked || (self && tp_py_has_function(self))) return true;
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    for (Py_ssize_t i = 0; i < n; i++)
        if (Py_TYPE(args[i]) != &tp_py_tensor_type && asks_argument(args[i])) return true;
    return false;
}

/* ---- whom a call asks ---- */

/* A subclass of Tensor counts here with Tensor's own function as well: where it meets one that is not related, that
 * function refuses. */
static bool overloads(PyObject *o) { return tp_py_has_function(o) || (tp_py_is_tensor(o) && !tp_py_is_plain(o)); }

/* One object per type, in the order of the arguments, but a subclass before what it derives from. */
int tp_py_add_overload(PyObject *list, PyObject *o) {
    Py_ssize_t n = PyList_GET_SIZE(list), at = n;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTypeObject *there = Py_TYPE(PyList_GET_ITEM(list, i));
        if (there == Py_TYPE(o)) return 0;
        if (at == n && PyType_IsSubtype(Py_TYPE(o), there)) at = i;
    }
    return PyList_Insert(list, at, o);
}

static int add_argument(PyObject *list, PyObject *o) {
    if (!is_list(o)) return overloads(o) ? tp_py_add_overload(list, o) : 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(o, i);
        if (overloads(item) && tp_py_add_overload(list, item) < 0) return -1;
    }
    return 0;
}

static PyObject *overloaded_of(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *list = PyList_New(0);
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (list && self && add_argument(list, self) < 0) Py_CLEAR(list);
    for (Py_ssize_t i = 0; list && i < n; i++)
        if (add_argument(list, args[i]) < 0) Py_CLEAR(list);
    return list;
}

static bool is_unrelated(PyTypeObject *kind, PyObject *o) {
    return tp_py_is_tensor(o) && !tp_py_is_plain(o) && !PyType_IsSubtype(kind, Py_TYPE(o));
}

static bool has_unrelated(PyTypeObject *kind, PyObject *o) {
    bool any = is_unrelated(kind, o);
    for (Py_ssize_t i = 0; is_list(o) && !any && i < PySequence_Fast_GET_SIZE(o); i++)
        any = is_unrelated(kind, PySequence_Fast_GET_ITEM(o, i));
    return any;
}

bool tp_py_asks_call(PyTypeObject *kind, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (tp_py_asks_any(self, args, nargs, kwnames)) return true;
    bool any = self && has_unrelated(kind, self);
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    for (Py_ssize_t i = 0; !any && i < n; i++) any = has_unrelated(kind, args[i]);
    return any;
}

/* ---- the modes of this thread ---- */

static PyObject *modes_of_thread(void) { return tp_py_modes("tensorpy.function_modes"); }

static void update_asked(PyObject *modes) {
    bool on = PyList_GET_SIZE(modes) > 0 && tp_tls.functions_off != ALL_OFF;
    tp_tls.asked = on ? &PyBaseObject_Type : NULL;
}

static PyObject *push_mode(PyObject *module TP_UNUSED, PyObject *mode) {
    PyObject *method = _PyType_Lookup(Py_TYPE(mode), torch_function);
    if (!method)
        return PyErr_Format(PyExc_TypeError, "a mode has a __torch_function__, %s has none", Py_TYPE(mode)->tp_name);
    if (Py_IS_TYPE(method, &PyClassMethod_Type))
        return PyErr_Format(PyExc_RuntimeError,
                            "%s: the __torch_function__ of a mode is a plain method, a classmethod is not supported",
                            Py_TYPE(mode)->tp_name);
    PyObject *modes = modes_of_thread();
    if (!modes || PyList_Append(modes, mode) < 0) return NULL;
    update_asked(modes);
    Py_RETURN_NONE;
}

static PyObject *pop_mode(PyObject *module TP_UNUSED, PyObject *unused TP_UNUSED) {
    PyObject *modes = modes_of_thread();
    if (!modes) return NULL;
    PyObject *mode = tp_py_modes_pop(modes, "TorchFunctionMode");
    update_asked(modes);
    return mode;
}

static PyObject *function_modes(PyObject *module TP_UNUSED, PyObject *unused TP_UNUSED) {
    PyObject *modes = modes_of_thread();
    return modes ? PyList_AsTuple(modes) : NULL;
}

/* _set_functions_off(0, 1 or 2): what is asked no longer: nobody, subclasses, modes too; gives what it was. */
static PyObject *set_functions_off(PyObject *module TP_UNUSED, PyObject *arg) {
    long wanted = PyLong_AsLong(arg), before = tp_tls.functions_off;
    if (wanted == -1 && PyErr_Occurred()) return NULL;
    if (wanted < ALL_ON || wanted > ALL_OFF) return PyErr_Format(PyExc_ValueError, "it is 0, 1 or 2");
    PyObject *modes = modes_of_thread();
    if (!modes) return NULL;
    tp_tls.functions_off = (uint8_t)wanted;
    update_asked(modes);
    return PyLong_FromLong(before);
}

/* ---- asking ---- */

static PyObject *ask_one(PyObject *o, PyObject *function, PyObject *types, PyObject *args, PyObject *kwargs) {
    PyObject *method = PyObject_GetAttr(o, torch_function);
    PyObject *result = method ? PyObject_CallFunctionObjArgs(method, function, types, args, kwargs, NULL) : NULL;
    Py_XDECREF(method);
    return result;
}

static PyObject *ask_mode(PyObject *function, PyObject *types, PyObject *args, PyObject *kwargs) {
    PyObject *mode = pop_mode(NULL, NULL);
    if (!mode) return NULL;
    PyObject *result = ask_one(mode, function, types, args, kwargs);
    PyObject *kind, *value, *where;
    PyErr_Fetch(&kind, &value, &where);
    PyObject *done = push_mode(NULL, mode);
    Py_DECREF(mode);
    if (!done) Py_CLEAR(result);
    Py_XDECREF(done);
    if (kind) PyErr_Restore(kind, value, where);
    return result;
}

/* tensorpy.overrides knows how a function is called. */
static PyObject *refused_by_all(PyObject *function, PyObject *types) {
    PyObject *module = PyImport_ImportModule("tensorpy.overrides");
    PyObject *name = module ? PyObject_CallMethod(module, "_name_of", "O", function) : NULL;
    PyObject *list = name ? PySequence_List(types) : NULL;
    if (list)
        PyErr_Format(PyExc_TypeError,
                     "Multiple dispatch failed for '%U'; all __torch_function__ handlers returned NotImplemented: no "
                     "implementation found for '%U' on types that implement __torch_function__: %R",
                     name, name, list);
    Py_XDECREF(list);
    Py_XDECREF(name);
    Py_XDECREF(module);
    return NULL;
}

/* What this thread asks classes about at present. Another library's __torch_function__ may run the function on the same
 * objects again, with a switch of its own set, which does not keep us from asking: it has no answer then. */
typedef struct question {
    PyObject *function, *first; /* borrowed: the object that is asked first, or NULL */
    const struct question *outer;
} question;
static __thread const question *asking;

static bool is_asked_again(PyObject *function, PyObject *first) {
    return asking && first && asking->first == first && PyObject_RichCompareBool(asking->function, function, Py_EQ) > 0;
}

static PyObject *ask_all(PyObject *function, PyObject *overloaded, PyObject *args, PyObject *kwargs) {
    PyObject *types = tp_py_types_of(overloaded), *result = types ? Py_NewRef(Py_NotImplemented) : NULL;
    question q = {function, PyList_GET_SIZE(overloaded) ? PyList_GET_ITEM(overloaded, 0) : NULL, asking};
    if (result && is_asked_again(function, q.first)) {
        Py_SETREF(result, refused_by_all(function, types));
        Py_DECREF(types);
        return result;
    }
    if (result && tp_tls.asked) Py_SETREF(result, ask_mode(function, types, args, kwargs));
    asking = &q;
    for (Py_ssize_t i = 0; result == Py_NotImplemented && i < PyList_GET_SIZE(overloaded); i++)
        Py_SETREF(result, ask_one(PyList_GET_ITEM(overloaded, i), function, types, args, kwargs));
    asking = q.outer;
    if (result == Py_NotImplemented) Py_SETREF(result, refused_by_all(function, types));
    Py_XDECREF(types);
    return result;
}

static PyObject *all_arguments(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Py_ssize_t shift = self != NULL;
    PyObject *tuple = PyTuple_New(nargs + shift);
    if (tuple && self) PyTuple_SET_ITEM(tuple, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; tuple && i < nargs; i++) PyTuple_SET_ITEM(tuple, i + shift, Py_NewRef(args[i]));
    return tuple;
}

static PyObject *keywords(PyObject *const *values, PyObject *kwnames) {
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict && kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(kwnames, i), values[i]) < 0) Py_CLEAR(dict);
    return dict;
}

PyObject *tp_py_ask_steal(PyObject *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames) {
    if (!function) return NULL;
    PyObject *overloaded = overloaded_of(self, args, nargs, kwnames);
    PyObject *tuple = overloaded ? all_arguments(self, args, nargs) : NULL;
    PyObject *dict = tuple ? keywords(args + nargs, kwnames) : NULL;
    PyObject *result = dict ? ask_all(function, overloaded, tuple, dict) : NULL;
    Py_XDECREF(dict);
    Py_XDECREF(tuple);
    Py_XDECREF(overloaded);
    Py_DECREF(function);
    return result;
}

/* ---- what is asked about ---- */

static PyObject *attribute_of_tensor(const char *name) {
    PyObject *key = PyUnicode_InternFromString(name);
    PyObject *found = key ? Py_XNewRef(_PyType_Lookup(&tp_py_tensor_type, key)) : NULL;
    if (key && !found) PyErr_Format(PyExc_AttributeError, "Tensor has no '%s'", name);
    Py_XDECREF(key);
    return found;
}

PyObject *tp_py_ask_method(const char *name, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames) {
    return tp_py_ask_steal(attribute_of_tensor(name), self, args, nargs, kwnames);
}

static PyObject *accessor(const char *name, const char *which) {
    PyObject *attribute = attribute_of_tensor(name);
    PyObject *function = attribute ? PyObject_GetAttrString(attribute, which) : NULL;
    Py_XDECREF(attribute);
    return function;
}

PyObject *tp_py_ask_get(const char *name, PyObject *self) {
    return tp_py_ask_steal(accessor(name, "__get__"), self, NULL, 0, NULL);
}

int tp_py_ask_set(const char *name, PyObject *self, PyObject *value) {
    PyObject *result = value ? tp_py_ask_steal(accessor(name, "__set__"), self, &value, 1, NULL)
                             : tp_py_ask_steal(accessor(name, "__delete__"), self, NULL, 0, NULL);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static PyObject *module_c; /* borrowed: it stays */

PyObject *tp_py_function_object(const char *module, const char *name, bool method) {
    if (method) return attribute_of_tensor(name);
    if (!module) return PyObject_GetAttrString(module_c, name);
    PyObject *part = PyObject_GetAttrString(module_c, module);
    PyObject *function = part ? PyObject_GetAttrString(part, name) : NULL;
    Py_XDECREF(part);
    return function;
}

PyObject *tp_py_ask_function(const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return tp_py_ask_steal(PyObject_GetAttrString(module_c, name), NULL, args, nargs, kwnames);
}

/* ---- functions in Python ---- */

/* A function or method of Python that is asked for first: calls go on to the function where nobody is. It shows itself
 * as the function in all but its type. */
typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *weakrefs;
} overridable;
#define FUNCTION(o) (((overridable *)(o))->function)

static PyObject *overridable_call(PyObject *o, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (tp_unlikely(tp_py_asks_any(NULL, args, PyVectorcall_NARGS(nargsf), kwnames)))
        return tp_py_ask_steal(Py_NewRef(o), NULL, args, PyVectorcall_NARGS(nargsf), kwnames);
    return PyObject_Vectorcall(FUNCTION(o), args, nargsf, kwnames);
}

static PyObject *overridable_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *function;
    if (kwargs && PyDict_GET_SIZE(kwargs)) return PyErr_Format(PyExc_TypeError, "overridable() takes a function");
    if (!PyArg_ParseTuple(args, "O", &function)) return NULL;
    overridable *o = (overridable *)type->tp_alloc(type, 0);
    if (!o) return NULL;
    o->vectorcall = overridable_call;
    o->function = Py_NewRef(function);
    return (PyObject *)o;
}

static int overridable_traverse(PyObject *o, visitproc visit, void *arg) {
    Py_VISIT(FUNCTION(o));
    return 0;
}
static int overridable_clear(PyObject *o) {
    Py_CLEAR(FUNCTION(o));
    return 0;
}
static void overridable_dealloc(PyObject *o) {
    PyObject_GC_UnTrack(o);
    if (((overridable *)o)->weakrefs) PyObject_ClearWeakRefs(o);
    overridable_clear(o);
    Py_TYPE(o)->tp_free(o);
}

static PyObject *overridable_bind(PyObject *o, PyObject *self, PyObject *type TP_UNUSED) {
    return self && self != Py_None ? PyMethod_New(o, self) : Py_NewRef(o);
}
static PyObject *overridable_getattr(PyObject *o, PyObject *name) {
    PyObject *own = _PyType_Lookup(Py_TYPE(o), name);
    bool ours = own && (Py_TYPE(own)->tp_descr_set || Py_TYPE(own) == &PyMethodDescr_Type);
    if (ours || PyUnicode_CompareWithASCIIString(name, "__class__") == 0) return PyObject_GenericGetAttr(o, name);
    return PyObject_GetAttr(FUNCTION(o), name);
}
static int overridable_setattr(PyObject *o, PyObject *name, PyObject *value) {
    return PyObject_SetAttr(FUNCTION(o), name, value);
}
static PyObject *overridable_repr(PyObject *o) { return PyObject_Repr(FUNCTION(o)); }
static PyObject *get_wrapped(PyObject *o, void *unused TP_UNUSED) { return Py_NewRef(FUNCTION(o)); }

static PyObject *signature_steal(PyObject *function, PyObject *options) {
    PyObject *inspect = options ? PyImport_ImportModule("inspect") : NULL, *found = NULL;
    PyObject *ask = inspect ? PyObject_GetAttrString(inspect, "signature") : NULL;
    PyObject *args = ask ? PyTuple_Pack(1, function) : NULL;
    if (args) found = PyObject_Call(ask, args, options);
    Py_XDECREF(inspect), Py_XDECREF(ask), Py_XDECREF(args), Py_XDECREF(options);
    return found;
}

/* inspect.signature() shows types, as programs look for them; words where another type than Tensor is known to type
 * checkers only. */
static PyObject *get_signature(PyObject *o, void *unused TP_UNUSED) {
    PyObject *types = Py_BuildValue("{s:O,s:{s:O}}", "eval_str", Py_True, "locals", "Tensor", &tp_py_tensor_type);
    PyObject *found = signature_steal(FUNCTION(o), types);
    if (found || !PyErr_ExceptionMatches(PyExc_NameError)) return found;
    PyErr_Clear();
    return signature_steal(FUNCTION(o), PyDict_New());
}

/* help() reads it past overridable_getattr, as object.__getattribute__ does. */
static PyObject *get_doc(PyObject *o, void *unused TP_UNUSED) { return PyObject_GetAttrString(FUNCTION(o), "__doc__"); }
static int set_doc(PyObject *o, PyObject *text, void *unused TP_UNUSED) {
    return PyObject_SetAttrString(FUNCTION(o), "__doc__", text);
}
static PyObject *overridable_reduce(PyObject *o, PyObject *unused TP_UNUSED) {
    return PyObject_GetAttrString(FUNCTION(o), "__qualname__");
}
static PyObject *overridable_same(PyObject *o, PyObject *memo TP_UNUSED) { return Py_NewRef(o); }

static PyGetSetDef overridable_getset[] = {
    {"__wrapped__", get_wrapped, NULL, "The function itself.", NULL},
    {"__doc__", get_doc, set_doc, NULL, NULL},
    {"__signature__", get_signature, NULL, "What the function takes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef overridable_methods[] = {
    {"__reduce__", overridable_reduce, METH_NOARGS, "Functions pickle by their names."},
    {"__reduce_ex__", overridable_reduce, METH_O, NULL},
    {"__copy__", overridable_same, METH_NOARGS, NULL},
    {"__deepcopy__", overridable_same, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyTypeObject overridable_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorpy._C._overridable",
    .tp_basicsize = sizeof(overridable),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = overridable_new,
    .tp_dealloc = overridable_dealloc,
    .tp_traverse = overridable_traverse,
    .tp_clear = overridable_clear,
    .tp_vectorcall_offset = offsetof(overridable, vectorcall),
    .tp_weaklistoffset = offsetof(overridable, weakrefs),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = overridable_bind,
    .tp_getattro = overridable_getattr,
    .tp_setattro = overridable_setattr,
    .tp_repr = overridable_repr,
    .tp_getset = overridable_getset,
    .tp_methods = overridable_methods,
};

/* ---- for tensorpy.overrides ---- */

static PyObject *has_torch_function(PyObject *module TP_UNUSED, PyObject *arg) {
    PyObject *row = PySequence_Fast(arg, "has_torch_function() takes a sequence of arguments");
    if (!row) return NULL;
    bool any = tp_tls.asked != NULL;
    for (Py_ssize_t i = 0; !any && i < PySequence_Fast_GET_SIZE(row); i++)
        any = overloads(PySequence_Fast_GET_ITEM(row, i));
    Py_DECREF(row);
    return PyBool_FromLong(any);
}

static PyObject *has_torch_function_variadic(PyObject *module TP_UNUSED, PyObject *const *args, Py_ssize_t n) {
    bool any = tp_tls.asked != NULL;
    for (Py_ssize_t i = 0; !any && i < n; i++) any = overloads(args[i]);
    return PyBool_FromLong(any);
}

static PyObject *has_torch_function_unary(PyObject *module TP_UNUSED, PyObject *arg) {
    return PyBool_FromLong(tp_tls.asked || overloads(arg));
}

/* _handle_torch_function(function, relevant arguments, args, kwargs) */
static PyObject *handle(PyObject *module TP_UNUSED, PyObject *call) {
    PyObject *function, *relevant, *args, *kwargs;
    if (!PyArg_ParseTuple(call, "OOO!O!", &function, &relevant, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
        return NULL;
    PyObject *row = PySequence_Tuple(relevant);
    PyObject *overloaded = row ? overloaded_of(NULL, &PyTuple_GET_ITEM(row, 0), PyTuple_GET_SIZE(row), NULL) : NULL;
    PyObject *result = overloaded ? ask_all(function, overloaded, args, kwargs) : NULL;
    Py_XDECREF(overloaded);
    Py_XDECREF(row);
    return result;
}

/* _parsed_functions(): the functions of all modules that the generator writes. */
static PyObject *parsed_functions(PyObject *module TP_UNUSED, PyObject *unused TP_UNUSED) {
    PyObject *list = PyList_New(0);
    for (const tp_py_function *const *f = tp_py_functions; list && *f; f++) {
        PyObject *function = tp_py_function_object((*f)->module, (*f)->name, false);
        if (!function || PyList_Append(list, function) < 0) Py_CLEAR(list);
        Py_XDECREF(function);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"_parsed_functions", parsed_functions, METH_NOARGS, NULL},
    {"_push_function_mode", push_mode, METH_O, NULL},
    {"_pop_function_mode", pop_mode, METH_NOARGS, NULL},
    {"_function_modes", function_modes, METH_NOARGS, NULL},
    {"_set_functions_off", set_functions_off, METH_O, NULL},
    {"_has_torch_function", has_torch_function, METH_O, NULL},
    {"_has_torch_function_unary", has_torch_function_unary, METH_O, NULL},
    {"_has_torch_function_variadic", (PyCFunction)(void (*)(void))has_torch_function_variadic, METH_FASTCALL, NULL},
    {"_handle_torch_function", handle, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_overrides(PyObject *m) {
    if (!torch_function && !(torch_function = PyUnicode_InternFromString("__torch_function__"))) return -1;
    module_c = m;
    if (PyType_Ready(&overridable_type) < 0 ||
        tp_py_add_functions(m, NULL, (PyMethodDef *const[]){functions, NULL}) < 0)
        return -1;
    return PyModule_AddObjectRef(m, "_overridable", (PyObject *)&overridable_type);
}
