/* complain.c: see complain.h. */
#include "python/complain.h"

#include "python/values.h"

#include <string.h>

/* ---- elements ---- */

static bool fits(const tp_py_param *p, PyObject *item) {
    tp_scalar number;
    int64_t whole;
    int ok;
    switch ((tp_tag)p->tag) {
    case TP_TENSORS: return tp_py_is_tensor(item) || (p->size == 1 && item == Py_None);
    case TP_INTS_: ok = tp_py_to_int(item, &whole); break;
    case TP_BOOLS: return PyBool_Check(item);
    default: ok = tp_py_to_scalar(item, &number); break;
    }
    if (ok < 0) PyErr_Clear(); /* a number that is too large is said to be so where it is met first */
    return ok != 0;
}

static bool is_list(const tp_py_param *p) {
    return p->tag == TP_TENSORS || p->tag == TP_INTS_ || p->tag == TP_FLOATS || p->tag == TP_BOOLS ||
           p->tag == TP_SCALARS;
}

/* Whether it found the one that does not fit. Looking may run Python code that changes a list. */
static void add_argument(tp_text *why, const tp_py_param *p, Py_ssize_t position) {
    tp_text_add(why, "argument '%s' ", p->name);
    if (position) tp_text_add(why, "(position %zd) ", position);
}

static void add_element(tp_text *why, const tp_py_param *p, Py_ssize_t position, Py_ssize_t at, PyObject *item) {
    const char *type = Py_TYPE(item)->tp_name;
    if (p->tag == TP_TENSORS) {
        tp_text_add(why, "expected Tensor as element %zd in argument %zd, but got %s", at, position ? position - 1 : 0,
                    type);
        return;
    }
    add_argument(why, p, position);
    tp_text_add(why, "must be %s, but found element of type %s at pos %zd", p->type, type, at);
}

static bool complain_element(tp_text *why, const tp_py_param *p, Py_ssize_t position, PyObject *o) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(o, i));
        bool found = !fits(p, item);
        if (found) add_element(why, p, position, i, item);
        Py_DECREF(item);
        if (found) return true;
    }
    return false;
}

void tp_py_complain_type(tp_text *why, const tp_py_param *p, Py_ssize_t position, PyObject *o) {
    if (!why || (is_list(p) && (PyList_Check(o) || PyTuple_Check(o)) && complain_element(why, p, position, o))) return;
    const char *found = Py_TYPE(o)->tp_name, *dot = strrchr(found, '.');
    if (dot && strcmp(dot, ".Tensor") == 0) found = dot + 1; /* as types in schemas are named */
    add_argument(why, p, position);
    tp_text_add(why, "must be %s, not %s", p->type, found);
}

void tp_py_complain_spread(tp_text *why, const tp_py_param *p, Py_ssize_t position, PyObject *const *items,
                           Py_ssize_t n) {
    for (Py_ssize_t i = 0; why && i < n; i++) {
        if (!PyBool_Check(items[i]) && fits(p, items[i])) continue;
        add_element(why, p, position, i, items[i]);
        return;
    }
}

/* ---- signatures ---- */

static void add_default(tp_text *text, const tp_value *value) {
    PyObject *o = tp_py_from_argument(value), *printed = o ? PyObject_Repr(o) : NULL;
    const char *chars = printed ? PyUnicode_AsUTF8(printed) : NULL;
    tp_text_add(text, "=%s", chars ? chars : "...");
    if (!chars) PyErr_Clear();
    Py_XDECREF(printed);
    Py_XDECREF(o);
}

void tp_py_describe_signature(tp_text *text, const tp_py_signature *s) {
    bool starred = false;
    tp_text_add(text, "(");
    for (int i = 0; i < s->nparams; i++) {
        const tp_py_param *p = &s->params[i];
        bool star = !starred && p->flags & TP_PARAM_KEYWORD;
        tp_text_add(text, "%s%s%s %s", i ? ", " : "", star ? "*, " : "", p->type, p->name);
        if (p->flags & TP_PARAM_DEFAULT) add_default(text, p->value);
        starred |= star;
    }
    tp_text_add(text, ")");
}

/* ---- keywords ---- */

#define MAX_NAME 48

/* Letters to add, drop, change or swap with the next. */
static size_t edit_distance(const char *a, const char *b) {
    size_t rows[3][MAX_NAME + 1], la = strlen(a), lb = strlen(b);
    if (la > MAX_NAME || lb > MAX_NAME) return SIZE_MAX;
    for (size_t j = 0; j <= lb; j++) rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *higher = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && higher[j - 2] + 1 < best) best = higher[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[la % 3][lb];
}

const char *tp_py_meant(const char *text, const char *const *names, int n) {
    size_t best = strlen(text) / 4 + 2; /* one slip, and one more for each four letters */
    const char *nearest = NULL;
    for (int i = 0; i < n; i++) {
        size_t d = names[i] ? edit_distance(text, names[i]) : best;
        if (d < best) best = d, nearest = names[i];
    }
    return nearest;
}

PyObject *tp_py_unexpected(const char *function, PyObject *keyword, const char *const *names, int n) {
    const char *text = PyUnicode_AsUTF8(keyword), *meant = text ? tp_py_meant(text, names, n) : NULL;
    if (!text) return NULL;
    if (!meant) return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%s'", function, text);
    return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%s'. Did you mean '%s'?", function,
                        text, meant);
}
