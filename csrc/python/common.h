/* common.h: what the files of csrc/python share: the object types and the way errors cross.
 *
 * Note [Identity]
 * A tensor and its Python object know each other. The object owns one reference to the tensor as long as it lives, so
 * who has the object has a whole tensor. When the last Python reference goes while C still holds the tensor (saved for
 * backward, a `.grad`), the object is kept if anything could tell it from a new one: attributes, weak references, a
 * subclass. The tensor then owns a reference to the object as well (TP_KEEPS_PYOBJ), until Python asks C for the object
 * or C lets the tensor go; a weak reference may give the object to Python meanwhile. An object that nothing could tell
 * from a new one is dropped, and a later trip to Python makes another. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_dispatch) || defined(TP_FOLDER_iter) || defined(TP_FOLDER_native) || \
    defined(TP_FOLDER_cpu) || defined(TP_FOLDER_autograd) || defined(TP_FOLDER_autocast)
#error "only csrc/python knows Python"
#endif

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/error.h"
#include "core/tensor.h"
#include "dispatch/op.h"

typedef struct {
    PyObject_HEAD tp_tensor *tensor;
    PyObject *dict;
    PyObject *weakrefs;
} tp_py_tensor;

extern PyTypeObject tp_py_tensor_type;

TP_INLINE bool tp_py_is_tensor(PyObject *o) {
    return Py_TYPE(o) == &tp_py_tensor_type || PyType_IsSubtype(Py_TYPE(o), &tp_py_tensor_type);
}
TP_INLINE tp_tensor *tp_py_tensor_borrow(PyObject *o) { return ((tp_py_tensor *)o)->tensor; }

/* A new reference to the Python object of t. `steal` takes over the caller's reference to t; a NULL t raises the
 * pending error. */
PyObject *tp_py_wrap_steal(tp_tensor *t);
PyObject *tp_py_wrap(tp_tensor *t);
/* An object of a given Tensor type for a tensor that has none. */
PyObject *tp_py_wrap_as_steal(PyTypeObject *type, tp_tensor *t);
/* What follows when a tensor becomes an object of another class than Tensor, also by `t.__class__ = Sub`: python_key.c
 * sets it. -1 raised. */
extern int (*tp_py_remark)(PyTypeObject *type, tp_tensor *t);
/* What a call gives on a subclass of Tensor is of that subclass, as in PyTorch; and as there a class whose
 * __torch_function__ is _C._disabled_torch_function_impl keeps to itself: what a call gives on it is a Tensor. One that
 * has a __torch_dispatch__, and Tensor's __torch_function__, is such a class too: it says itself what it gives. */
bool tp_py_gives_plain(PyTypeObject *type);
TP_INLINE bool tp_py_is_plain(PyObject *o) {
    return tp_likely(Py_TYPE(o) == &tp_py_tensor_type) || tp_py_gives_plain(Py_TYPE(o));
}
/* A result (stolen, NULL passes), or a tuple of them, with its new tensors made objects of `kind`. */
PyObject *tp_py_of_kind_steal(PyTypeObject *kind, PyObject *result) TP_COLD;
TP_INLINE PyObject *tp_py_like_steal(PyObject *o, PyObject *result) {
    return tp_likely(tp_py_is_plain(o)) ? result : tp_py_of_kind_steal(Py_TYPE(o), result);
}
/* Results of a call: a tuple (or the struct sequence `type`) of n tensors, stolen; v[0] NULL raises. */
PyObject *tp_py_wrap_tuple_steal(tp_tensor *const *v, int n, PyTypeObject *type);
PyObject *tp_py_wrap_seq_steal(tp_tensor_seq *seq); /* a list, or raises */
PyObject *tp_py_from_scalar(const tp_scalar *s);

/* ---- errors ---- */
/* Raises the pending core error as a Python exception; returns NULL. */
PyObject *tp_py_raise(void);
/* The same where a RuntimeError is the failure of an engine, a process or a wait: a DistBackendError. */
PyObject *tp_py_raise_backend(void);
/* For status functions: 0 stays 0; -1 raises and stays -1. */
int tp_py_check(int status);
/* The current Python exception becomes the core's pending error (TP_PythonError), so that C callers see a failure. */
int tp_py_error_to_core(void);
/* Runs the handlers of signals that have come, with the lock: -1 and the core's error set if one raises. */
int tp_py_run_handlers(void);
/* The current Python exception is dropped with the core's error; one of a handler comes again. Takes the lock. */
void tp_py_forget_error(void);

/* ---- small objects (types.c) ---- */
typedef struct {
    PyObject_HEAD tp_dtype dtype;
} tp_py_dtype;
typedef struct {
    PyObject_HEAD tp_device device;
} tp_py_device;
typedef struct {
    PyObject_HEAD int value; /* tp_memory_format or tp_layout */
    const char *name;
} tp_py_enum;

extern PyTypeObject tp_py_dtype_type, tp_py_device_type, tp_py_memory_format_type, tp_py_layout_type, tp_py_size_type;

PyObject *tp_py_dtype_object(tp_dtype d); /* new */
PyObject *tp_py_device_object(tp_device d);
PyObject *tp_py_memory_format_object(tp_memory_format f);
PyObject *tp_py_layout_object(tp_layout l);
PyObject *tp_py_size(tp_ints v); /* a tensorpy.Size */
PyObject *tp_py_ints_tuple(tp_ints v);
/* What dtypes, sizes and types of tensors are printed as parts of: "tensorpy", or "torch" where that is its name. */
extern const char *tp_py_package;
/* A dtype, a device, ... from an object that a user gave: 1 converted, 0 of another type, -1 raised. */
int tp_py_to_dtype(PyObject *o, tp_dtype *out);       /* one that memory has; those of quantized tensors raise */
int tp_py_to_any_dtype(PyObject *o, tp_dtype *out);   /* these too */
int tp_py_to_device(PyObject *o, tp_device *out);     /* one that tensorpy drives */
int tp_py_to_any_device(PyObject *o, tp_device *out); /* PyTorch's too: device.h */
int tp_py_to_scalar(PyObject *o, tp_scalar *out);
int tp_py_to_int(PyObject *o, int64_t *out);
/* A SymInt or SymFloat; what operators get in its stead. */
bool tp_py_is_symbolic(PyObject *o);
PyObject *tp_py_symbolic_passed(PyObject *o);
PyObject *tp_py_set_symbolic(PyObject *self, PyObject *type);

/* ---- parts of the module, each adds its names to `m` ---- */
int tp_py_init_errors(PyObject *m);
int tp_py_init_types(PyObject *m);
int tp_py_init_object(PyObject *m);
int tp_py_init_tensor(PyObject *m);
int tp_py_init_new(PyObject *m);
int tp_py_init_interop(PyObject *m);
int tp_py_init_autograd(PyObject *m);
int tp_py_init_autocast(PyObject *m);
int tp_py_init_batched(PyObject *m);
int tp_py_init_forward(PyObject *m);
int tp_py_init_functionalize(PyObject *m);
int tp_py_init_dispatch(PyObject *m);
int tp_py_init_library(PyObject *m);
int tp_py_init_program(PyObject *m);
int tp_py_init_profiler(PyObject *m);
int tp_py_init_tracer(PyObject *m);
int tp_py_init_generator(PyObject *m);
int tp_py_init_context(PyObject *m);
int tp_py_init_opencl(PyObject *m);
int tp_py_init_stream(PyObject *m);
int tp_py_init_tables(PyObject *m);
int tp_py_init_nn_module(PyObject *m);
int tp_py_init_compile(PyObject *m);
int tp_py_init_distributed(PyObject *m);
int tp_py_init_functions(PyObject *m); /* generated */
/* Methods and attributes that Tensor has beside the generated ones. */
extern PyMethodDef tp_py_tensor_methods[], tp_py_interop_methods[], tp_py_autograd_methods[];
extern PyMethodDef *const tp_py_generated_methods[]; /* generated: a table per family, NULL-terminated */
extern PyGetSetDef tp_py_tensor_getset[];
extern PyMappingMethods tp_py_tensor_mapping;
extern PySequenceMethods tp_py_tensor_sequence;
extern PyNumberMethods tp_py_tensor_number;
extern PyBufferProcs tp_py_tensor_buffer;
PyObject *tp_py_tensor_richcompare(PyObject *a, PyObject *b, int op);

/* Traces the thread's calls into a list, to the standard output (True), or no longer (None), as so many layers deep;
 * gives the three of before, new. */
PyObject *tp_py_set_trace(PyObject *sink, bool primitives, int depth);

/* Whether this thread's calls become a graph (tracer.c). */
bool tp_py_is_recording(void);
/* Before a tensor's values go where no operator is called: -1 and the exception set if a graph is being recorded that
 * would depend on them. */
int tp_py_refuse_traced(PyObject *tensor, const char *what);
/* Something happens that no operator shows: a recording whose graph is called in the program's place ends. -1 and the
 * exception set on failure. */
int tp_py_tell_recorder(const char *what);
/* The same of a Function of the program; `has_gradient`: its backward is recorded. */
int tp_py_tell_recorder_of_function(bool has_gradient);

/* tensorpy.tensor(data): any nesting of sequences, numbers, arrays and tensors; new, NULL with the exception set. */
tp_tensor *tp_py_tensor_from_data(PyObject *data, tp_dtype dtype, tp_device device);
