/* autograd.c: backward(), transforms of functions, and what of autograd is a tensor's method. */
#include "python/autograd.h"
#include "python/overrides.h"
#include "python/replay.h"
#include "python/returns.h"
#include "python/values.h"

#include "autograd/engine.h"

/* ---- backward ---- */

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
    PyObject *hooks = Py_XNewRef((PyObject *)tp_tls.saved_hooks);
    int status = tp_backward(roots, grads, retain, create, inputs, out);
    if (status < 0) tp_py_raise();
    else status = call_finals(final_calls);
    Py_DECREF(final_calls);
    final_calls = outer;
    PyObject *left = tp_tls.saved_hooks; /* a hook that enters a context and does not leave it does so for the pass */
    tp_set_saved_hooks(hooks);
    Py_XDECREF(left);
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
    if (tp_py_take_tensors(roots_object, false, "tensors must be a sequence of tensors", &roots) < 0 ||
        tp_py_take_tensors(grads_object, true, "grad_tensors must be a sequence of tensors", &grads) < 0 ||
        tp_py_take_tensors(inputs_object, false, "inputs must be a sequence of tensors", &inputs) < 0)
        goto done;
    if (inputs.size >= 0 && !accumulate && !(out = PyMem_Calloc((size_t)inputs.size + 1, sizeof *out))) {
        PyErr_NoMemory();
        goto done;
    }
    int status = backward_and_finals(roots, grads, retain_graph, create_graph, inputs, out);
    if (status == 0) result = out ? tp_py_gradients(out, (int)inputs.size) : Py_NewRef(Py_None);
    if (out) {
        for (int64_t i = 0; i < inputs.size; i++) tp_release(out[i]);
    }
done:
    tp_py_free_tensors(roots);
    tp_py_free_tensors(grads);
    tp_py_free_tensors(inputs);
    PyMem_Free(out);
    return result;
}

static PyObject *task_keeps_graph(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    return PyBool_FromLong(tp_backward_keeps_graph());
}

static PyObject *current_task(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLongLong(tp_current_backward());
}
/* ---- transforms, and methods ---- */

static PyObject *bump_version(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg))
        return PyErr_Format(PyExc_TypeError, "increment_version() takes tensors, not %s", Py_TYPE(arg)->tp_name);
    tp_note_write(tp_py_tensor_borrow(arg), "increment_version");
    Py_RETURN_NONE;
}

/* _unsafe_set_version_counter(tensor, version) */
static PyObject *set_version(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *tensor;
    long long version;
    if (!PyArg_ParseTuple(args, "OL", &tensor, &version)) return NULL;
    if (!tp_py_is_tensor(tensor))
        return PyErr_Format(PyExc_TypeError, "a version is a tensor's, not a %s's", Py_TYPE(tensor)->tp_name);
    if (version < 0 || version > UINT32_MAX)
        return PyErr_Format(PyExc_RuntimeError, "Cannot set a version_counter to a value below 0: %lld", version);
    atomic_store_explicit(&tp_py_tensor_borrow(tensor)->storage->version, (uint32_t)version, memory_order_relaxed);
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
    if (refuse_in_transform("retain_grad") < 0 || tp_py_tell_recorder("a gradient is kept") < 0) return NULL;
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
    if (tp_py_tell_recorder("requires_grad is set") < 0) return NULL;
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

static PyMethodDef functions[] = {
    {"_current_graph_task_id", current_task, METH_NOARGS, NULL},
    {"_get_current_graph_task_keep_graph", task_keeps_graph, METH_NOARGS, NULL},
    {"_run_backward", run_backward, METH_VARARGS, NULL},
    {"_queue_callback", queue_callback, METH_O, NULL},
    {"_bump_version", bump_version, METH_O, NULL},
    {"_unsafe_set_version_counter", set_version, METH_VARARGS, NULL},
    {"_transform", transform, METH_VARARGS, NULL},
    {"_want_gradient", want_gradient, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_autograd(PyObject *m) {
    if (tp_py_init_hooks(m) < 0 || tp_py_init_node(m) < 0 || tp_py_init_function(m) < 0) return -1;
    return tp_py_add_functions(m, NULL, (PyMethodDef *const[]){functions, NULL});
}
