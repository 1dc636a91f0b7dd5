/* program.c: the scalar programs of pointwise operators and reductions (prim/program.h), as Python sees them. */
#include "prim/program.h"

#include "prim/pointwise.h"
#include "prim/reduce.h"
#include "python/common.h"

#include <string.h>

/* (operation, kind, named, a, b, c) of a step. */
static PyObject *step_of(const tp_step *s) {
    return Py_BuildValue("siOiii", tp_step_name(s->op), s->kind & ~TP_STEP_NAMED,
                         s->kind & TP_STEP_NAMED ? Py_True : Py_False, s->a, s->b, s->c);
}

/* A constant as the step that reads it means it. */
static PyObject *constant_of(const tp_program *p, const tp_step *s) {
    const tp_step_constant *c = &p->constants[s->a];
    if (strcmp(tp_step_name(s->op), "constant") == 0) return PyFloat_FromDouble(c->f);
    return s->b ? PyLong_FromLongLong(c->i) : PyLong_FromUnsignedLongLong(c->bits);
}

static int add_steps(const tp_program *p, PyObject *steps, PyObject *constants) {
    for (int i = 0; i < p->nsteps; i++) {
        const char *name = tp_step_name(p->steps[i].op);
        PyObject *step = step_of(&p->steps[i]);
        if (!step || PyList_SetItem(steps, i, step) < 0) return -1;
        if (strcmp(name, "constant") != 0 && strcmp(name, "integer") != 0) continue;
        PyObject *at = PyLong_FromLong(p->steps[i].a), *value = at ? constant_of(p, &p->steps[i]) : NULL;
        int status = value ? PyDict_SetItem(constants, at, value) : -1;
        Py_XDECREF(at);
        Py_XDECREF(value);
        if (status < 0) return -1;
    }
    return 0;
}

/* (steps, constants by place, the dtype of the result, the text of a function's body). */
static PyObject *program_of(const tp_program *p, tp_dtype d) {
    tp_autotext text = {0};
    PyObject *steps = PyList_New(p->nsteps), *constants = steps ? PyDict_New() : NULL;
    tp_program_print(&text, p, d, false);
    if (constants && add_steps(p, steps, constants) == 0)
        return Py_BuildValue("NNNs", steps, constants, tp_py_dtype_object(tp_program_result(p, d)),
                             text.text ? text.text : "");
    Py_XDECREF(steps);
    Py_XDECREF(constants);
    return NULL;
}

static PyObject *fail_dtype(const char *name, tp_dtype d) {
    return PyErr_Format(PyExc_NotImplementedError, "%s does not compute in %s", name, tp_dtype_names[d]);
}

static PyObject *pointwise_program(const tp_pointwise *op, tp_dtype d) {
    const tp_program *p = &op->programs[tp_class_of(d)];
    if (!(op->loop_mask >> d & 1) || tp_compute_dtype(d) != d) return fail_dtype(op->name, d);
    return Py_BuildValue("[N]", program_of(p, d));
}

static PyObject *reduction_program(const tp_reduction_op *op, tp_dtype d) {
    const tp_program *p = op->programs[tp_class_of(d)];
    if (!p[0].nsteps || tp_compute_dtype(d) != d) return fail_dtype(op->name, d);
    return Py_BuildValue("[NNNN]", program_of(&p[0], d), program_of(&p[1], d), program_of(&p[2], d),
                         program_of(&p[3], d));
}

/* _program(name, dtype): a list of one program, or of a reduction's four. */
static PyObject *program(PyObject *self TP_UNUSED, PyObject *args) {
    const char *name;
    PyObject *dtype;
    tp_dtype d;
    if (!PyArg_ParseTuple(args, "sO", &name, &dtype)) return NULL;
    int found = tp_py_to_dtype(dtype, &d);
    if (found == 0) PyErr_Format(PyExc_TypeError, "_program() takes a dtype, not %s", Py_TYPE(dtype)->tp_name);
    if (found <= 0) return NULL;
    const tp_pointwise *p;
    const tp_reduction_op *r;
    for (int64_t i = 0; (p = tp_pointwise_at(i)); i++)
        if (strcmp(p->name, name) == 0) return pointwise_program(p, d);
    for (int64_t i = 0; (r = tp_reduction_of(i)); i++)
        if (strcmp(r->name, name) == 0) return reduction_program(r, d);
    return PyErr_Format(PyExc_ValueError, "%s is not given as a scalar expression", name);
}

static void add_name(PyObject **names, const char *text) {
    PyObject *name = PyUnicode_FromString(text);
    if (!name || PySet_Add(*names, name) < 0) Py_CLEAR(*names);
    Py_XDECREF(name);
}

/* _programs(): the names of operators that have one. */
static PyObject *programs(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    PyObject *names = PySet_New(NULL);
    const tp_pointwise *p;
    const tp_reduction_op *r;
    for (int64_t i = 0; names && (p = tp_pointwise_at(i)); i++) add_name(&names, p->name);
    for (int64_t i = 0; names && (r = tp_reduction_of(i)); i++) add_name(&names, r->name);
    return names;
}

static PyMethodDef functions[] = {
    {"_program", program, METH_VARARGS, NULL},
    {"_programs", programs, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_program(PyObject *m) { return PyModule_AddFunctions(m, functions); }
