/* parse.c: the one argument parser of all generated functions. */
#include "python/parse.h"

#include "autograd/node.h"
#include "core/generator.h"
#include "python/complain.h"
#include "python/generator.h"
#include "python/overrides.h"
#include "python/storage.h"
#include "python/stream.h"

#include <string.h>

/* ---- scratch ---- */

typedef struct block {
    struct block *next;
    max_align_t data[];
} block;

/* Objects that the arguments own; in scratch memory. */
typedef struct tp_py_held {
    struct tp_py_held *next;
    Py_ssize_t n;
    PyObject *items[];
} held_items;

void tp_py_args_init(tp_py_args *a) {
    a->self = a->out = NULL;
    a->kind = tp_tls.asked;
    a->numbers = a->stand_ins = a->by_full_name = false;
    a->nmade = a->nints = a->nscalars = 0;
    a->blocks = NULL;
    a->held = NULL;
}

void tp_py_args_free(tp_py_args *a) {
    for (held_items *h = a->held; h; h = h->next)
        for (Py_ssize_t i = 0; i < h->n; i++) Py_DECREF(h->items[i]);
    for (block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        PyMem_Free(b);
    }
    for (int i = 0; i < a->nmade; i++) tp_release(a->made[i]);
}

void *tp_py_scratch(tp_py_args *a, size_t size) {
    block *b = PyMem_Malloc(sizeof *b + size);
    if (!b) return PyErr_NoMemory();
    b->next = a->blocks;
    a->blocks = b;
    return b->data;
}

static int64_t *scratch_ints(tp_py_args *a, Py_ssize_t n) {
    if (a->nints + n > TP_PY_SCRATCH_INTS) return tp_py_scratch(a, (size_t)n * sizeof(int64_t));
    int64_t *p = a->ints + a->nints;
    a->nints += (int)n;
    return p;
}

/* The items of a list or tuple for as long as the arguments live, and room for `words` words for each. A list may
 * change at any time (Note [Host lock]), so its items get owned; a tuple keeps its own. */
static PyObject *const *hold_items(tp_py_args *a, PyObject *o, Py_ssize_t words, Py_ssize_t *n, void **room) {
    *n = PySequence_Fast_GET_SIZE(o);
    if (!PyList_Check(o)) return (*room = scratch_ints(a, *n * words)) ? PySequence_Fast_ITEMS(o) : NULL;
    Py_ssize_t head = (Py_ssize_t)(sizeof(held_items) / sizeof(int64_t)) + *n;
    held_items *h = (held_items *)scratch_ints(a, head + *n * words);
    if (!h) return NULL;
    for (Py_ssize_t i = 0; i < *n; i++) h->items[i] = Py_NewRef(PyList_GET_ITEM(o, i));
    h->n = *n;
    h->next = a->held;
    a->held = h;
    *room = (int64_t *)h + head;
    return h->items;
}

static tp_scalar *scratch_scalar(tp_py_args *a) {
    if (a->nscalars == TP_PY_SCRATCH_SCALARS) return tp_py_scratch(a, sizeof(tp_scalar));
    return &a->scalars[a->nscalars++];
}

/* ---- one argument ---- */

/* Item i of a list or tuple as an int. Its __index__ may do anything, to the list as well. */
static int item_to_int(PyObject *sequence, Py_ssize_t i, int64_t *out) {
    if (i >= PySequence_Fast_GET_SIZE(sequence))
        return PyErr_SetString(PyExc_RuntimeError, "a list of ints changed its size while it was read"), -1;
    PyObject *item = PySequence_Fast_GET_ITEM(sequence, i);
    if (tp_likely(PyLong_CheckExact(item))) return tp_py_to_int(item, out);
    Py_INCREF(item);
    int ok = tp_py_to_int(item, out);
    Py_DECREF(item);
    return ok;
}

static int fail_item(const tp_py_param *p, Py_ssize_t i, PyObject *o) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "argument '%s': the int at position %zd does not fit 64 bits: %.60R", p->name, i, o);
    return -1;
}

static int convert_ints(tp_py_args *a, const tp_py_param *p, PyObject *o, tp_value *out);

/* A set or a range as a list of ints. */
TP_COLD static int convert_iterable(tp_py_args *a, const tp_py_param *p, PyObject *o, tp_value *out) {
    PyObject *list = PySequence_List(o);
    int ok = list ? convert_ints(a, p, list, out) : -1;
    Py_XDECREF(list);
    return ok;
}

/* A number stands for a list of a fixed size with that number everywhere; a list of one stays one. A list that begins
 * with a boolean is none of ints, as in PyTorch, unless an overload is called by its full name. */
static int convert_ints(tp_py_args *a, const tp_py_param *p, PyObject *o, tp_value *out) {
    if (PyBool_Check(o) && !a->by_full_name) return 0;
    if (a->by_full_name && (PyAnySet_Check(o) || PyRange_Check(o))) return convert_iterable(a, p, o, out);
    if (!PyTuple_Check(o) && !PyList_Check(o)) {
        int64_t single;
        int ok = p->size ? tp_py_to_int(o, &single) : 0;
        if (ok <= 0) return ok < 0 && PyLong_Check(o) ? fail_item(p, 0, o) : ok;
        Py_ssize_t n = p->size == 255 ? 1 : p->size;
        int64_t *data = scratch_ints(a, n);
        if (!data) return -1;
        for (Py_ssize_t i = 0; i < n; i++) data[i] = single;
        *out = (tp_value){.tag = TP_INTS_, .ints = {data, n}};
        return 1;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    if (n && PyBool_Check(PySequence_Fast_GET_ITEM(o, 0)) && !a->by_full_name) return 0;
    int64_t *data = scratch_ints(a, n ? n : 1);
    if (!data) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        int ok = item_to_int(o, i, &data[i]);
        if (ok < 0) return fail_item(p, i, o);
        if (ok == 0) return 0;
    }
    *out = (tp_value){.tag = TP_INTS_, .ints = {data, n}};
    return 1;
}

/* A tensor object's tensor, borrowed; a subclass is noted. */
TP_INLINE tp_tensor *take_tensor(tp_py_args *a, PyObject *o) {
    if (tp_unlikely(!tp_py_is_plain(o)) && (!a->kind || PyType_IsSubtype(Py_TYPE(o), a->kind))) a->kind = Py_TYPE(o);
    return tp_py_tensor_borrow(o);
}

static int convert_tensors(tp_py_args *a, PyObject *o, bool optional_elements, tp_value *out) {
    Py_ssize_t n;
    void *room;
    if (!PyTuple_Check(o) && !PyList_Check(o)) return 0;
    PyObject *const *items = hold_items(a, o, 1, &n, &room);
    if (!items) return -1;
    tp_tensor **data = room;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (tp_py_is_tensor(items[i])) data[i] = take_tensor(a, items[i]);
        else if (optional_elements && items[i] == Py_None) data[i] = NULL;
        else return 0;
    }
    *out = (tp_value){.tag = TP_TENSORS, .tensors = {data, n}};
    return 1;
}

/* A number, or what has __index__. A tensor that requires grad is none: its gradient would be lost without a word. */
static int to_number(PyObject *o, tp_scalar *out) {
    if (tp_py_is_tensor(o) && tp_requires_grad(tp_py_tensor_borrow(o))) return 0;
    int ok = tp_py_to_scalar(o, out);
    if (ok != 0 || tp_py_is_tensor(o) || PySequence_Check(o)) return ok;
    *out = (tp_scalar){.kind = TP_SCALAR_INT};
    return tp_py_to_int(o, &out->i);
}

/* An int of any size that a double can hold. */
static int to_double(PyObject *o, double *out) {
    if (PyLong_CheckExact(o)) {
        *out = PyLong_AsDouble(o);
        return *out == -1.0 && PyErr_Occurred() ? -1 : 1;
    }
    tp_scalar s;
    int ok = to_number(o, &s);
    if (ok <= 0 || s.kind == TP_SCALAR_COMPLEX) return ok < 0 ? -1 : 0;
    *out = tp_scalar_double(&s);
    return 1;
}

static int convert_scalars(tp_py_args *a, PyObject *o, tp_value *out) {
    Py_ssize_t n;
    void *room;
    if (!PyTuple_Check(o) && !PyList_Check(o)) return 0;
    PyObject *const *items = hold_items(a, o, sizeof(tp_scalar) / sizeof(int64_t), &n, &room);
    if (!items) return -1;
    tp_scalar *data = room;
    for (Py_ssize_t i = 0; i < n; i++) {
        int ok = to_number(items[i], &data[i]);
        if (ok <= 0) return ok;
    }
    *out = (tp_value){.tag = TP_SCALARS, .scalars = {data, n}};
    return 1;
}

static int convert_floats(tp_py_args *a, PyObject *o, tp_value *out) {
    Py_ssize_t n;
    void *room;
    if (!PyTuple_Check(o) && !PyList_Check(o)) return 0;
    PyObject *const *items = hold_items(a, o, 1, &n, &room);
    if (!items) return -1;
    double *data = room;
    for (Py_ssize_t i = 0; i < n; i++) {
        int ok = to_double(items[i], &data[i]); /* an __index__ may run */
        if (ok <= 0) return ok;
    }
    *out = (tp_value){.tag = TP_FLOATS, .floats = {data, n}};
    return 1;
}

static int convert_bool(PyObject *o, tp_value *out) {
    if (PyBool_Check(o)) {
        *out = (tp_value){.tag = TP_BOOL_, .b = o == Py_True};
        return 1;
    }
    if (strcmp(Py_TYPE(o)->tp_name, "numpy.bool") != 0 && strcmp(Py_TYPE(o)->tp_name, "numpy.bool_") != 0) return 0;
    int truth = PyObject_IsTrue(o);
    *out = (tp_value){.tag = TP_BOOL_, .b = truth > 0};
    return truth < 0 ? -1 : 1;
}

/* A list of a fixed size has that size. */
static int convert_bools(tp_py_args *a, const tp_py_param *p, PyObject *o, tp_value *out) {
    if (!PyTuple_Check(o) && !PyList_Check(o)) return 0;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o), wanted = p->size == 255 ? 1 : p->size;
    if (wanted && n != wanted) {
        PyErr_Format(PyExc_RuntimeError,
                     "argument '%s': Tried to convert a List with %zd elements to a fixed-size array of size %zd",
                     p->name, n, wanted);
        return -1;
    }
    bool *data = tp_py_scratch(a, (size_t)(n ? n : 1));
    if (!data) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        tp_value item;
        if (convert_bool(PySequence_Fast_GET_ITEM(o, i), &item) <= 0) return PyErr_Occurred() ? -1 : 0;
        data[i] = item.b;
    }
    *out = (tp_value){.tag = TP_BOOLS, .bools = {data, n}};
    return 1;
}

static int convert_scalar(tp_py_args *a, PyObject *o, tp_value *out) {
    tp_scalar *s = scratch_scalar(a);
    if (!s) return -1;
    int ok = to_number(o, s);
    if (ok > 0) *out = (tp_value){.tag = TP_SCALAR, .scalar = s};
    return ok;
}

static int convert_float(PyObject *o, tp_value *out) {
    double number;
    int ok = to_double(o, &number);
    if (ok > 0) *out = (tp_value){.tag = TP_FLOAT, .f = number};
    return ok;
}

static int convert_enum(PyObject *o, PyTypeObject *type, tp_tag tag, tp_value *out) {
    if (!Py_IS_TYPE(o, type)) return 0;
    *out = (tp_value){.tag = tag, .i = ((tp_py_enum *)o)->value};
    return 1;
}

/* mul(2, t), add(t, 2, out=o): a number becomes a tensor of no dimensions. */
static int convert_number(tp_py_args *a, PyObject *o, tp_value *out) {
    tp_scalar s;
    int ok = a->nmade == TP_COUNTOF(a->made) ? 0 : tp_py_to_scalar(o, &s);
    if (ok <= 0) return ok;
    tp_tensor *number = tp_new_wrapped_number(&s);
    if (!number) return tp_py_raise(), -1;
    a->made[a->nmade++] = number;
    *out = (tp_value){.tag = TP_TENSOR, .tensor = number};
    return 1;
}

int tp_py_convert(tp_py_args *a, const tp_py_param *p, PyObject *o, tp_value *out) {
    if (p->tag == TP_TENSOR && tp_py_is_tensor(o)) {
        *out = (tp_value){.tag = TP_TENSOR, .tensor = take_tensor(a, o)};
        return 1;
    }
    if (o == Py_None) {
        bool stands_for_none = p->tag == TP_INTS_ && p->value && p->value->ints.size == 0; /* int[2] stride=[] */
        if (!(p->flags & TP_PARAM_OPTIONAL) && !stands_for_none) return 0;
        *out = stands_for_none && !(p->flags & TP_PARAM_OPTIONAL) ? *p->value : (tp_value){.tag = TP_NONE};
        return 1;
    }
    int ok;
    if (tp_unlikely(a->stand_ins) && tp_py_asks_any(NULL, &o, 1, NULL)) {
        *out = (tp_value){.tag = TP_NONE};
        return 1;
    }
    switch ((tp_tag)p->tag) {
    case TP_TENSOR: return a->numbers && !(p->flags & TP_PARAM_OUT) ? convert_number(a, o, out) : 0;
    case TP_TENSORS: return convert_tensors(a, o, p->size == 1, out);
    case TP_SCALAR: return convert_scalar(a, o, out);
    case TP_INT:
        ok = PyBool_Check(o) && !a->by_full_name ? 0 : tp_py_to_int(o, &out->i);
        if (ok > 0) out->tag = TP_INT;
        return ok;
    case TP_FLOAT: return convert_float(o, out);
    case TP_BOOL_:
        if (a->by_full_name && (PyLong_Check(o) || PyFloat_Check(o))) o = PyObject_IsTrue(o) ? Py_True : Py_False;
        return convert_bool(o, out);
    case TP_STR:
        if (!PyUnicode_Check(o)) return 0;
        *out = (tp_value){.tag = TP_STR, .str = PyUnicode_AsUTF8(o)};
        return out->str ? 1 : -1;
    case TP_INTS_: return convert_ints(a, p, o, out);
    case TP_FLOATS: return convert_floats(a, o, out);
    case TP_BOOLS: return convert_bools(a, p, o, out);
    case TP_SCALARS: return convert_scalars(a, o, out);
    case TP_DTYPE: {
        tp_dtype d;
        ok = p->size ? tp_py_to_any_dtype(o, &d) : tp_py_to_dtype(o, &d);
        if (ok > 0) *out = (tp_value){.tag = TP_DTYPE, .i = d};
        return ok;
    }
    case TP_DEVICE:
        ok = tp_py_to_device(o, &out->device);
        if (ok > 0) out->tag = TP_DEVICE;
        return ok;
    case TP_LAYOUT: return convert_enum(o, &tp_py_layout_type, TP_LAYOUT, out);
    case TP_MEMORY_FORMAT: return convert_enum(o, &tp_py_memory_format_type, TP_MEMORY_FORMAT, out);
    case TP_GENERATOR:
        if (!Py_IS_TYPE(o, &tp_py_generator_type)) return 0;
        *out = (tp_value){.tag = TP_GENERATOR, .generator = ((tp_py_generator *)o)->generator};
        return 1;
    case TP_STORAGE:
        *out = (tp_value){.tag = TP_STORAGE, .storage = tp_py_storages.borrow(o)};
        return out->storage != NULL;
    case TP_STREAM:
        ok = tp_py_to_stream(o, &out->stream);
        if (ok > 0) out->tag = TP_STREAM;
        return ok;
    default: return 0;
    }
}

/* ---- one signature ---- */

/* Other names for the same parameters, as PyTorch takes them: NumPy's, and what its Python functions say. */
static const char *const other_names[][2] = {{"dim", "axis"},
                                             {"keepdim", "keepdims"},
                                             {"input", "x"},
                                             {"other", "x2"},
                                             {"input", "self"},
                                             {"self", "input"},
                                             {"split_size", "split_size_or_sections"},
                                             {"from", "from_"}};

static bool keyword_matches(PyObject *keyword, const char *name) {
    if (PyUnicode_CompareWithASCIIString(keyword, name) == 0) return true;
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strcmp(other_names[i][0], name) == 0 && PyUnicode_CompareWithASCIIString(keyword, other_names[i][1]) == 0)
            return true;
    return false;
}

static int find_keyword(const tp_py_signature *s, PyObject *kwnames, int param) {
    Py_ssize_t n = PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t k = 0; k < n; k++)
        if (keyword_matches(PyTuple_GET_ITEM(kwnames, k), s->params[param].name)) return (int)k;
    return -1;
}

/* view(2, 3): the positional arguments from `first` on are one list of ints. */
static int convert_spread(tp_py_args *a, const tp_py_param *p, PyObject *const *args, Py_ssize_t n, tp_value *out) {
    int64_t *data = scratch_ints(a, n ? n : 1);
    if (!data) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        int ok = PyBool_Check(args[i]) ? 0 : tp_py_to_int(args[i], &data[i]);
        if (ok < 0) return fail_item(p, i, args[i]);
        if (ok == 0 && !(a->stand_ins && tp_py_has_function(args[i]))) return 0;
    }
    *out = (tp_value){.tag = TP_INTS_, .ints = {data, n}};
    return 1;
}

/* Whatever has __index__ counts as an int. */
static bool is_whole(PyObject *o) {
    return PyLong_CheckExact(o) || (PyIndex_Check(o) && !PyBool_Check(o) && !PyFloat_Check(o));
}

static bool spreads(const tp_py_signature *s, int param, PyObject *const *args, Py_ssize_t nargs, Py_ssize_t at) {
    return s->varargs && s->params[param].tag == TP_INTS_ && at < nargs && !PyTuple_Check(args[at]) &&
           !PyList_Check(args[at]) && (nargs - at > 1 || (s->params[param].size == 0 && is_whole(args[at])));
}

/* The keyword that is left over: of no parameter, or of one that has been given already. */
static void complain_keyword(tp_text *why, const tp_py_signature *s, PyObject *kwnames) {
    for (Py_ssize_t k = 0; why && k < PyTuple_GET_SIZE(kwnames); k++) {
        const char *text = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k));
        int i = 0;
        while (i < s->nparams && !keyword_matches(PyTuple_GET_ITEM(kwnames, k), s->params[i].name)) i++;
        if (i < s->nparams) continue;
        tp_text_add(why, "it has no argument '%s'", text ? text : "?");
        return;
    }
    if (why) tp_text_add(why, "an argument is given twice");
}

/* The parameters from the i-th on that have no default and were not given. */
static void complain_missing(tp_text *why, const tp_py_signature *s, int i, PyObject *kwnames) {
    tp_autotext names = {0};
    int n = 0;
    for (; why && i < s->nparams; i++) {
        if (s->params[i].flags & TP_PARAM_DEFAULT || (kwnames && find_keyword(s, kwnames, i) >= 0)) continue;
        tp_text_add(&names, "%s\"%s\"", n++ ? ", " : "", s->params[i].name);
    }
    if (why) tp_text_add(why, "missing %d required positional arguments: %s", n, names.text ? names.text : "");
}

TP_INLINE bool take_plain(const tp_py_param *p, PyObject *o, tp_value *out) {
    int overflow = 0;
    if (p->tag == TP_TENSOR && tp_py_is_tensor(o) && tp_py_is_plain(o)) {
        out->tensor = tp_py_tensor_borrow(o);
    } else if (p->tag == TP_INT && PyLong_CheckExact(o)) {
        out->i = PyLong_AsLongLongAndOverflow(o, &overflow);
    } else {
        return false;
    }
    out->tag = p->tag;
    return !overflow;
}

/* The commonest calls by far: plain tensors (parameters among them) and ints by position, and defaults after them.
 * `false`: it is another one. */
TP_INLINE bool match_plain(const tp_py_signature *s, tp_py_args *a, PyObject *self, PyObject *const *args,
                           Py_ssize_t nargs) {
    int i = 0;
    if (self && (s->self_at || !take_plain(&s->params[i++], self, &a->values[0]))) return false;
    if (i + nargs > s->npositional) return false;
    for (Py_ssize_t k = 0; k < nargs; k++, i++)
        if (!take_plain(&s->params[i], args[k], &a->values[i])) return false;
    for (; i < s->nparams; i++) {
        if (!(s->params[i].flags & TP_PARAM_DEFAULT)) return false;
        a->values[i] = *s->params[i].value;
    }
    a->self = self ? self : nargs ? args[0] : NULL;
    return true;
}

/* A factory's out= has the dtype that the call names: 1, or -1 with an exception set. */
static int check_out_of_factory(const tp_py_signature *s, const tp_py_args *a, PyObject *kwnames) {
    tp_dtype named = TP_NO_DTYPE;
    bool factory = false;
    for (int i = 0; i < s->nparams; i++) {
        factory |= s->params[i].tag == TP_LAYOUT;
        bool given = s->params[i].tag == TP_DTYPE && kwnames && find_keyword(s, kwnames, i) >= 0;
        if (given && a->values[i].tag == TP_DTYPE) named = (tp_dtype)a->values[i].i;
    }
    if (!factory || named == TP_NO_DTYPE || !tp_py_is_tensor(a->out)) return 1;
    tp_dtype found = (tp_dtype)tp_py_tensor_borrow(a->out)->dtype;
    if (found == named) return 1;
    PyErr_Format(PyExc_RuntimeError, "dtype %s does not match dtype of out parameter (%s)", tp_scalar_type_name(named),
                 tp_scalar_type_name(found));
    return -1;
}

/* 1: it fits and a->values is filled in; 0: it does not fit (why, if given, says so); -1: an exception is set. */
static int match(const tp_py_signature *s, tp_py_args *a, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                 PyObject *kwnames, tp_text *why) {
    Py_ssize_t used = 0, nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0, used_kw = 0;
    for (int i = 0; i < s->nparams; i++) {
        const tp_py_param *p = &s->params[i];
        PyObject *o = NULL;
        Py_ssize_t position = 0;
        if (i == s->self_at && self) {
            o = self;
        } else if (!(p->flags & TP_PARAM_KEYWORD) && used < nargs) {
            if (spreads(s, i, args, nargs, used)) {
                int ok = convert_spread(a, p, args + used, nargs - used, &a->values[i]);
                if (ok < 0) return -1;
                if (ok == 0) return tp_py_complain_spread(why, p, used + 1, args + used, nargs - used), 0;
                used = nargs;
                continue;
            }
            o = args[used++];
            position = used;
        } else if (nkw) {
            int k = find_keyword(s, kwnames, i);
            if (k >= 0) {
                o = args[nargs + k];
                used_kw++;
            }
        }
        if (!o) {
            if (!(p->flags & TP_PARAM_DEFAULT)) {
                complain_missing(why, s, i, kwnames);
                return 0;
            }
            a->values[i] = *p->value;
            continue;
        }
        if (i == (self ? s->self_at : 0)) a->self = o;
        if (p->flags & TP_PARAM_OUT && o != Py_None) a->out = o;
        int ok = tp_py_convert(a, p, o, &a->values[i]);
        if (ok < 0) return -1;
        if (ok == 0) return tp_py_complain_type(why, p, position, o), 0;
    }
    if (used < nargs) {
        if (why)
            tp_text_add(why, "takes %d positional argument%s but %zd %s given", s->npositional,
                        s->npositional == 1 ? "" : "s", nargs + (self != NULL),
                        nargs + (self != NULL) == 1 ? "was" : "were");
        return 0;
    }
    if (used_kw < nkw) return complain_keyword(why, s, kwnames), 0;
    return tp_likely(!a->out) ? 1 : check_out_of_factory(s, a, kwnames);
}

/* ---- errors ---- */

/* A keyword that no signature knows, with a TypeError that names what may have been meant; false: all are known. */
static bool unknown_keyword(const tp_py_function *f, PyObject *kwnames) {
    const char *names[TP_PY_MAX_SIGNATURES * TP_PY_MAX_PARAMS];
    int n = 0;
    for (int s = 0; s < f->nsignatures && s < TP_PY_MAX_SIGNATURES; s++)
        for (int i = 0; i < f->signatures[s].nparams; i++) names[n++] = f->signatures[s].params[i].name;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *keyword = PyTuple_GET_ITEM(kwnames, k);
        int i = 0;
        while (i < n && !keyword_matches(keyword, names[i])) i++;
        if (i == n) return tp_py_unexpected(f->name, keyword, names, n), true;
    }
    return false;
}

/* The types of a call's arguments: "Tensor, int, dim=float". */
static void describe_arguments(tp_text *text, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    for (Py_ssize_t i = 0; i < nargs; i++) tp_text_add(text, "%s%s", i ? ", " : "", Py_TYPE(args[i])->tp_name);
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k));
        tp_text_add(text, "%s%s=%s", nargs || k ? ", " : "", name ? name : "?", Py_TYPE(args[nargs + k])->tp_name);
    }
}

/* What is wrong by the one signature that there is, or that was meant. */
static PyObject *fail_only(const char *function, const char *why) {
    bool says_what = strncmp(why, "argument ", 9) == 0 || strncmp(why, "it ", 3) == 0;
    if (strncmp(why, "expected Tensor", 15) == 0) return PyErr_Format(PyExc_TypeError, "%s", why);
    return PyErr_Format(PyExc_TypeError, says_what ? "%s(): %s" : "%s() %s", function, why);
}

/* Whether as many arguments were given as the signature takes: others were hardly meant. */
static bool may_be_meant(const tp_py_signature *s, PyObject *self, Py_ssize_t given) {
    int least = 0, most = s->nparams;
    for (int i = 0; i < s->nparams; i++)
        if (!(s->params[i].flags & TP_PARAM_DEFAULT)) least++;
    given += self != NULL;
    return given >= least && given <= most;
}

static PyObject *no_match(const tp_py_function *f, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames) {
    if (unknown_keyword(f, kwnames)) return NULL;
    tp_autotext text = {0};
    Py_ssize_t given_args = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    int meant = 0;
    for (int s = 0; s < f->nsignatures; s++) meant += may_be_meant(&f->signatures[s], self, given_args);
    for (int s = 0; s < f->nsignatures; s++) {
        tp_py_args a;
        tp_py_args_init(&a);
        a.by_full_name = f->op != NULL;
        tp_autotext why = {0};
        int ok = match(&f->signatures[s], &a, self, args, nargs, kwnames, &why);
        tp_py_args_free(&a);
        if (ok < 0) return NULL;
        if (f->nsignatures == 1 || (meant == 1 && may_be_meant(&f->signatures[s], self, given_args)))
            return fail_only(f->name, why.text ? why.text : "");
        tp_text_add(&text, "\n * ");
        tp_py_describe_signature(&text, &f->signatures[s]);
        tp_text_add(&text, ": %s", why.text ? why.text : "");
    }
    tp_autotext given = {0};
    describe_arguments(&given, args, nargs, kwnames);
    return PyErr_Format(PyExc_TypeError,
                        "%s() received an invalid combination of arguments - got (%s), but expected one of:%s", f->name,
                        given.text ? given.text : "", text.text ? text.text : "");
}

/* The first signature that fits; numbers are tensors at the second attempt only. NULL: none, or an exception is set. */
TP_INLINE const tp_py_signature *first_match(const tp_py_function *f, tp_py_args *a, PyObject *self,
                                             PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, bool numbers) {
    for (int s = 0; s < f->nsignatures; s++) {
        if (numbers && !f->signatures[s].numbers) continue;
        tp_py_args_init(a);
        a->numbers = numbers;
        a->by_full_name = f->op != NULL;
        if (!kwnames && match_plain(&f->signatures[s], a, self, args, nargs)) return &f->signatures[s];
        int ok = match(&f->signatures[s], a, self, args, nargs, kwnames, NULL);
        if (tp_likely(ok > 0)) return &f->signatures[s];
        tp_py_args_free(a);
        if (ok < 0) return NULL;
    }
    return NULL;
}

/* Arguments that do not fit an overload called by its full name are a RuntimeError, as in PyTorch, with a mark by which
 * a packet knows that the next overload may fit. */
TP_COLD static void mark_of_overload(void) {
    PyObject *type, *value, *where;
    PyErr_Fetch(&type, &value, &where);
    bool of_values =
        PyErr_GivenExceptionMatches(type, PyExc_TypeError) || PyErr_GivenExceptionMatches(type, PyExc_ValueError);
    PyObject *text = of_values && value ? PyObject_Str(value) : NULL;
    PyObject *error = text ? PyObject_CallOneArg(PyExc_RuntimeError, text) : NULL;
    Py_XDECREF(text);
    if (!error || PyObject_SetAttrString(error, "_fits_no_overload", Py_True) < 0) {
        Py_XDECREF(error);
        PyErr_Clear();
        return PyErr_Restore(type, value, where);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(where);
    PyErr_SetObject(PyExc_RuntimeError, error);
    Py_DECREF(error);
}

/* The second attempt, or why there is no match: NULL and the exception set. */
TP_COLD static const tp_py_signature *second_match(const tp_py_function *f, tp_py_args *a, PyObject *self,
                                                   PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const tp_py_signature *s = PyErr_Occurred() ? NULL : first_match(f, a, self, args, nargs, kwnames, true);
    if (!s && !PyErr_Occurred()) no_match(f, self, args, nargs, kwnames);
    if (!s && f->op) mark_of_overload();
    return s;
}

TP_INLINE const tp_py_signature *choose(const tp_py_function *f, tp_py_args *a, PyObject *self, PyObject *const *args,
                                        Py_ssize_t nargs, PyObject *kwnames) {
    const tp_py_signature *s = first_match(f, a, self, args, nargs, kwnames, false);
    return tp_likely(s != NULL) ? s : second_match(f, a, self, args, nargs, kwnames);
}

const tp_py_signature *tp_py_select(const tp_py_function *f, tp_py_args *a, PyObject *self, PyObject *const *args,
                                    Py_ssize_t nargs, PyObject *kwnames) {
    return choose(f, a, self, args, nargs, kwnames);
}

/* ---- who is asked first: Note [Asked first] ---- */

PyObject *(*tp_py_object_of_overload)(const tp_op *op);

static PyObject *function_object(const tp_py_function *f, PyObject *self) {
    if (f->op) return tp_py_object_of_overload(f->op);
    return tp_py_function_object(f->module, f->name, self != NULL);
}

/* Subclasses, or modes that are on. */
TP_COLD static PyObject *call_of_kind(const tp_py_function *f, const tp_py_signature *s, tp_py_args *a, PyObject *self,
                                      PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *result = tp_py_asks_call(a->kind, self, args, nargs, kwnames)
                           ? tp_py_ask_steal(function_object(f, self), self, args, nargs, kwnames)
                           : tp_py_of_kind_steal(a->kind, s->call(a, s));
    tp_py_args_free(a);
    return result;
}

/* No signature fits: a number before tensors may be of an old order of arguments (tensorpy/_package/deprecated.py),
 * whose call this makes. NULL without an exception: it is not. */
TP_COLD static PyObject *call_of_old_form(const tp_py_function *f, PyObject *self, PyObject *const *args,
                                          Py_ssize_t nargs, PyObject *kwnames) {
    bool number_first = false;
    for (Py_ssize_t i = 0; i < 2 && i < nargs; i++)
        number_first |= PyFloat_Check(args[i]) || PyLong_Check(args[i]) || PyComplex_Check(args[i]);
    if (!number_first) return NULL;
    PyObject *module = PyImport_ImportModule("tensorpy._package.deprecated"),
             *all = PyTuple_New(nargs + (self != NULL)), *named = PyDict_New(), *result = NULL;
    if (all && self) PyTuple_SET_ITEM(all, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; all && i < nargs; i++) PyTuple_SET_ITEM(all, i + (self != NULL), Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; named && kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0) Py_CLEAR(named);
    PyObject *function = function_object(f, self);
    if (module && all && named && function)
        result = PyObject_CallMethod(module, "call", "sOOO", f->name, function, all, named);
    Py_XDECREF(function);
    Py_XDECREF(module);
    Py_XDECREF(all);
    Py_XDECREF(named);
    if (result == Py_NotImplemented) Py_CLEAR(result);
    return result;
}

/* No signature fits. Objects that are no tensors and have a __torch_function__ may stand for some, or for numbers. */
TP_COLD static PyObject *call_of_stand_ins(const tp_py_function *f, PyObject *self, PyObject *const *args,
                                           Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *kind, *value, *where;
    PyErr_Fetch(&kind, &value, &where);
    bool fits = false;
    for (int s = 0; !fits && tp_py_asks_any(self, args, nargs, kwnames) && s < f->nsignatures; s++) {
        tp_py_args a;
        tp_py_args_init(&a);
        a.stand_ins = true;
        a.by_full_name = f->op != NULL;
        a.numbers = f->signatures[s].numbers;
        fits = match(&f->signatures[s], &a, self, args, nargs, kwnames, NULL) > 0;
        tp_py_args_free(&a);
        PyErr_Clear();
    }
    if (!fits) {
        PyObject *result = call_of_old_form(f, self, args, nargs, kwnames);
        if (!result && !PyErr_Occurred()) return PyErr_Restore(kind, value, where), NULL;
        Py_XDECREF(kind);
        Py_XDECREF(value);
        Py_XDECREF(where);
        return result;
    }
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(where);
    return tp_py_ask_steal(function_object(f, self), self, args, nargs, kwnames);
}

/* Who is told of operators (recorders, modes, the layer that functionalizes) sees a factory of Python's with the device
 * that it means, and unpinned.
 */
TP_COLD static void say_factory(const tp_py_signature *s, tp_py_args *a) {
    bool of_tensor = s->nparams && s->params[0].tag == TP_TENSOR;
    for (int i = 0; i < s->nparams; i++) {
        if (strcmp(s->params[i].name, "pin_memory") != 0) continue;
        if (a->values[i].tag == TP_NONE) a->values[i] = (tp_value){.tag = TP_BOOL_, .b = false};
        for (int k = 0; !of_tensor && k < i; k++)
            if (s->params[k].tag == TP_DEVICE && a->values[k].tag == TP_NONE)
                a->values[k] = (tp_value){.tag = TP_DEVICE, .device = tp_default_device()};
    }
}

#define TOLD (TP_BIT(Tracer) | TP_BIT(Python) | TP_BIT(PythonMode) | TP_BIT(Functionalize))

PyObject *tp_py_call(const tp_py_function *f, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *kwnames) {
    tp_py_args a;
    const tp_py_signature *s = choose(f, &a, self, args, PyVectorcall_NARGS(nargs), kwnames);
    if (tp_unlikely(!s)) return call_of_stand_ins(f, self, args, PyVectorcall_NARGS(nargs), kwnames);
    if (tp_unlikely(a.kind != NULL)) return call_of_kind(f, s, &a, self, args, PyVectorcall_NARGS(nargs), kwnames);
    if (tp_unlikely((tp_tls.include & TOLD) && !f->op)) say_factory(s, &a);
    PyObject *result = s->call(&a, s);
    if (tp_unlikely(a.blocks || a.held || a.nmade)) tp_py_args_free(&a);
    return result;
}
