/* overrides.h: __torch_function__: classes and modes that are asked before a function of tensorpy runs.
 *
 * Note [Asked first]
 * A class with a __torch_function__ of its own (a subclass of Tensor or any other), and each TorchFunctionMode that the
 * thread has entered, is asked before a call: it gets the function, the types, the arguments, and what it returns is
 * the result. The parser notices a subclass anyway (tp_py_args.kind); a mode is noticed by the same word, which starts
 * as tp_tls.asked: NULL but where a mode is on. What has no parser (attributes, operators, methods by hand) asks
 * tp_py_asks. Subclasses that leave __torch_function__ as Tensor has it are not asked: csrc/python/tensor.c gives
 * results of their class, which is what Tensor's would do. */
#pragma once

#include "python/common.h"

#include "core/tls.h"

bool tp_py_asks_object(PyObject *o) TP_COLD;
/* Whether a call on this object is somebody else's first. */
TP_INLINE bool tp_py_asks(PyObject *o) {
    return tp_unlikely(Py_TYPE(o) != &tp_py_tensor_type || tp_tls.asked) && tp_py_asks_object(o);
}
/* The same of any object, and without a look at the modes. */
bool tp_py_has_function(PyObject *o);
/* Whether any of the arguments, or an item of a list of them, has a function, or a mode is on. */
bool tp_py_asks_any(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* The same, or a subclass that `kind`, the most derived among them, does not derive from. */
bool tp_py_asks_call(PyTypeObject *kind, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *kwnames) TP_COLD;

/* Adds an object whose class is asked to a list that has one per class, in the order in which they are asked. */
int tp_py_add_overload(PyObject *list, PyObject *o);

/* Asks: the modes, then the types. `function` is taken over (NULL: an exception is set); `self` may be NULL. */
PyObject *tp_py_ask_steal(PyObject *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames) TP_COLD;
/* ... with a method, an attribute ("shape") or its setter (0 or -1) of Tensor, a function of the module. */
PyObject *tp_py_ask_method(const char *name, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames) TP_COLD;
PyObject *tp_py_ask_get(const char *name, PyObject *self) TP_COLD;
int tp_py_ask_set(const char *name, PyObject *self, PyObject *value) TP_COLD;
/* What users call: Tensor's method, or a function of _C or one of its modules. New. */
PyObject *tp_py_function_object(const char *module, const char *name, bool method);
PyObject *tp_py_ask_function(const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) TP_COLD;

/* The body of a method that is asked for first, under its name in Python. */
#define TP_PY_METHOD(name, text)                                                  \
    static PyObject *name##_itself(PyObject *self, PyObject *unused);             \
    static PyObject *name(PyObject *self, PyObject *unused) {                     \
        if (tp_py_asks(self)) return tp_py_ask_method(text, self, NULL, 0, NULL); \
        return name##_itself(self, unused);                                       \
    }                                                                             \
    static PyObject *name##_itself(PyObject *self, PyObject *unused TP_UNUSED)
#define TP_PY_METHOD_O(name, text)                                                \
    static PyObject *name##_itself(PyObject *self, PyObject *arg);                \
    static PyObject *name(PyObject *self, PyObject *arg) {                        \
        if (tp_py_asks(self)) return tp_py_ask_method(text, self, &arg, 1, NULL); \
        return name##_itself(self, arg);                                          \
    }                                                                             \
    static PyObject *name##_itself(PyObject *self, PyObject *arg)
#define TP_PY_FAST_METHOD(name, text)                                                                           \
    static PyObject *name##_itself(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames); \
    static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {         \
        if (tp_py_asks(self)) return tp_py_ask_method(text, self, args, nargs, kwnames);                        \
        return name##_itself(self, args, nargs, kwnames);                                                       \
    }                                                                                                           \
    static PyObject *name##_itself(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)

int tp_py_init_overrides(PyObject *m);
