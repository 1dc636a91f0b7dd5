/* values.c: boxed values to Python objects and back; see values.h. */
#include "python/values.h"
#include "python/returns.h"

#include "python/generator.h"
#include "python/storage.h"
#include "python/stream.h"

/* ---- arguments ---- */

#define LIST_OF(name, list_type, expression)                      \
    static PyObject *list_of_##name(list_type v) {                \
        PyObject *list = PyList_New((Py_ssize_t)v.size);          \
        for (int64_t i = 0; list && i < v.size; i++) {            \
            PyObject *item = expression;                          \
            if (item) PyList_SET_ITEM(list, (Py_ssize_t)i, item); \
            else Py_CLEAR(list);                                  \
        }                                                         \
        return list;                                              \
    }
LIST_OF(tensors, tp_tensors, v.data[i] ? tp_py_wrap(v.data[i]) : Py_NewRef(Py_None))
LIST_OF(ints, tp_ints, PyLong_FromLongLong(v.data[i]))
LIST_OF(floats, tp_floats, PyFloat_FromDouble(v.data[i]))
LIST_OF(bools, tp_bools, PyBool_FromLong(v.data[i]))
LIST_OF(scalars, tp_scalars, tp_py_from_scalar(&v.data[i]))

PyObject *tp_py_from_argument(const tp_value *v) {
    switch (v->tag) {
    case TP_TENSOR: return v->tensor ? tp_py_wrap(v->tensor) : Py_NewRef(Py_None);
    case TP_TENSORS: return list_of_tensors(v->tensors);
    case TP_SCALAR: return v->scalar ? tp_py_from_scalar(v->scalar) : Py_NewRef(Py_None);
    case TP_INT: return PyLong_FromLongLong(v->i);
    case TP_FLOAT: return PyFloat_FromDouble(v->f);
    case TP_BOOL_: return PyBool_FromLong(v->b);
    case TP_STR: return v->str ? PyUnicode_FromString(v->str) : Py_NewRef(Py_None);
    case TP_INTS_: return list_of_ints(v->ints);
    case TP_FLOATS: return list_of_floats(v->floats);
    case TP_BOOLS: return list_of_bools(v->bools);
    case TP_SCALARS: return list_of_scalars(v->scalars);
    case TP_DTYPE: return v->i < 0 ? Py_NewRef(Py_None) : tp_py_dtype_object((tp_dtype)v->i);
    case TP_LAYOUT: return v->i < 0 ? Py_NewRef(Py_None) : tp_py_layout_object((tp_layout)v->i);
    case TP_MEMORY_FORMAT: return v->i < 0 ? Py_NewRef(Py_None) : tp_py_memory_format_object((tp_memory_format)v->i);
    case TP_DEVICE: return v->device.type < 0 ? Py_NewRef(Py_None) : tp_py_device_object(v->device);
    case TP_GENERATOR: return v->generator ? tp_py_generator_object(v->generator) : Py_NewRef(Py_None);
    case TP_STORAGE: return v->storage ? tp_py_storages.object(v->storage) : Py_NewRef(Py_None);
    case TP_STREAM: return tp_py_stream_object(v->stream);
    case TP_NONE: Py_RETURN_NONE;
    default: return PyErr_Format(PyExc_NotImplementedError, "an argument of this type cannot be passed to Python");
    }
}

/* ---- results that are arguments ---- */

static bool gives_arguments(const tp_op *op) {
    for (int i = 0; i < op->info->nreturns; i++)
        if (!op->info->returns[i].is_write) return false;
    return true;
}

bool tp_py_is_given_back(const tp_op_info *info, int k) {
    if (!info->args[k].is_write || info->args[k].is_out) return info->args[k].is_write;
    for (int i = 0; i < info->nargs; i++)
        if (info->args[i].is_out) return false;
    return true;
}

const tp_value *tp_py_written_argument(const tp_op *op, const tp_value *args, int i) {
    if (!gives_arguments(op)) return NULL;
    for (int k = 0; k < op->info->nargs; k++)
        if (tp_py_is_given_back(op->info, k) && i-- == 0) return &args[k];
    return NULL;
}

/* ---- results to Python ---- */

static PyObject *from_result_steal(tp_value *v) {
    switch (v->tag) {
    case TP_TENSOR: return v->tensor ? tp_py_wrap_steal(v->tensor) : Py_NewRef(Py_None);
    case TP_TENSOR_SEQ: return tp_py_wrap_seq_steal(v->seq);
    case TP_NUMBER: return tp_py_from_scalar(&v->number);
    default: return tp_py_from_argument(v);
    }
}

static bool is_one_tuple(const tp_argument *result) { return *result->type == '('; }

PyObject *tp_py_from_results_steal(const tp_op *op, tp_value *results) {
    int n = op->info->nreturns;
    if (n == 0) Py_RETURN_NONE;
    if (n == 1 && !is_one_tuple(op->info->returns)) return tp_py_list_steal(from_result_steal(&results[0]));
    PyObject *tuple = tp_py_return_values(0, results, n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *item = tp_py_list_steal(PyTuple_GET_ITEM(tuple, i));
        PyTuple_SET_ITEM(tuple, i, item ? item : Py_NewRef(Py_None));
        if (!item) Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *tp_py_list_steal(PyObject *result) {
    if (!result || !PyTuple_CheckExact(result)) return result;
    PyObject *list = PySequence_List(result);
    Py_DECREF(result);
    return list;
}

PyObject *tp_py_return_values(int status, tp_value *results, int n) {
    if (status < 0) return tp_py_raise();
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *item = tuple ? from_result_steal(&results[i]) : NULL;
        if (item) PyTuple_SET_ITEM(tuple, i, item);
        else if (tuple) Py_CLEAR(tuple);
        else tp_value_release(&results[i]);
    }
    return tuple;
}

/* ---- results from Python ---- */

static int fail_result(const tp_op *op, int i, PyObject *o, const char *where) {
    char name[128];
    return tp_fail(TP_RuntimeError, "%s: its kernel from %s returned %s as result %d, where the schema says %s: %s",
                   tp_op_name(op, name), where, Py_TYPE(o)->tp_name, i, op->info->returns[i].type, op->info->schema);
}

static int to_seq(PyObject *o, tp_value *v) {
    if (!PyList_Check(o) && !PyTuple_Check(o)) return 0;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    tp_tensor_seq *seq = tp_tensor_seq_new(n);
    if (!seq) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(o, i);
        if (!tp_py_is_tensor(item)) return tp_tensor_seq_free(seq), 0;
        seq->items[i] = tp_retain(tp_py_tensor_borrow(item));
    }
    *v = (tp_value){.tag = TP_TENSOR_SEQ, .seq = seq};
    return 1;
}

/* 1 done, 0 another type, -1 an error is set. */
static int to_result(const tp_argument *a, PyObject *o, tp_value *v) {
    *v = (tp_value){.tag = TP_NONE};
    if (o == Py_None && a->optional) return 1;
    switch (a->tag) {
    case TP_TENSOR:
        if (!tp_py_is_tensor(o)) return 0;
        *v = (tp_value){.tag = TP_TENSOR, .tensor = tp_retain(tp_py_tensor_borrow(o))};
        return 1;
    case TP_TENSORS: /* as the YAML's operators say it */
    case TP_TENSOR_SEQ: return to_seq(o, v);
    case TP_SCALAR:
    case TP_NUMBER: v->tag = TP_NUMBER; return tp_py_to_scalar(o, &v->number);
    case TP_INT: v->tag = TP_INT; return tp_py_to_int(o, &v->i);
    case TP_BOOL_: *v = (tp_value){.tag = TP_BOOL_, .b = o == Py_True}; return PyBool_Check(o);
    case TP_DTYPE: {
        tp_dtype d;
        int ok = tp_py_to_dtype(o, &d);
        if (ok > 0) *v = (tp_value){.tag = TP_DTYPE, .i = d};
        return ok;
    }
    case TP_FLOAT:
        if (!PyFloat_Check(o) && !PyLong_Check(o)) return 0;
        *v = (tp_value){.tag = TP_FLOAT, .f = PyFloat_AsDouble(o)};
        return PyErr_Occurred() ? -1 : 1;
    default: return 0;
    }
}

static int one_result(const tp_op *op, int i, PyObject *o, const char *where, tp_value *v) {
    int status = to_result(&op->info->returns[i], o, v);
    if (status > 0) return 0;
    v->tag = TP_NONE;
    if (status < 0 && PyErr_Occurred()) return tp_py_error_to_core();
    return status < 0 ? -1 : fail_result(op, i, o, where);
}

int tp_py_to_results(const tp_op *op, PyObject *returned, const char *where, tp_value *results) {
    int n = op->info->nreturns;
    char name[128];
    if (n == 0 && returned != Py_None)
        return tp_fail(TP_RuntimeError, "%s: its kernel from %s returned %s, where the schema says nothing: %s",
                       tp_op_name(op, name), where, Py_TYPE(returned)->tp_name, op->info->schema);
    if (n > 0 && gives_arguments(op)) return 0; /* whatever it returned: the caller has them */
    if (n == 0) return 0;
    if (n == 1 && !is_one_tuple(op->info->returns)) return one_result(op, 0, returned, where, &results[0]);
    bool is_list = PyTuple_Check(returned) || PyList_Check(returned);
    if (!is_list || PySequence_Fast_GET_SIZE(returned) != n)
        return tp_fail(TP_RuntimeError, "%s: its kernel from %s has to return %d result%s, as a tuple: %s",
                       tp_op_name(op, name), where, n, n == 1 ? "" : "s", op->info->schema);
    for (int i = 0; i < n; i++) {
        if (one_result(op, i, PySequence_Fast_GET_ITEM(returned, i), where, &results[i]) == 0) continue;
        while (i-- > 0) tp_value_release(&results[i]);
        return -1;
    }
    return 0;
}
