/* context.c: the switches of a thread and of the process: grad mode, dispatch sets, default dtype and device, threads.
 */
#include "python/common.h"

#include "core/alloc.h"
#include "core/determinism.h"
#include "core/host.h"
#include "core/parallel.h"
#include "cpu/blas.h"
#include "cpu/capability.h"
#include "dispatch/key.h"
#include "python/arguments.h"
#include "python/overrides.h"
#include "python/returns.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FUNCTION(name) static PyObject *name(PyObject *self, PyObject *arg)

FUNCTION(is_grad_enabled) {
    (void)self, (void)arg;
    return PyBool_FromLong(!tp_tls.grad_disabled);
}
FUNCTION(set_grad_enabled) {
    (void)self;
    int truth = PyObject_IsTrue(arg);
    if (truth < 0) return NULL;
    tp_tls.grad_disabled = !truth;
    Py_RETURN_NONE;
}
FUNCTION(is_inference_mode_enabled) {
    (void)self, (void)arg;
    return PyBool_FromLong(tp_tls.inference_mode);
}
FUNCTION(set_inference_mode) {
    (void)self;
    int truth = PyObject_IsTrue(arg);
    if (truth < 0) return NULL;
    tp_set_inference_mode(truth);
    Py_RETURN_NONE;
}
FUNCTION(get_default_dtype) {
    (void)self, (void)arg;
    return tp_py_dtype_object(tp_default_dtype());
}
FUNCTION(set_default_dtype) {
    (void)self;
    tp_dtype d;
    int ok = tp_py_to_dtype(arg, &d);
    if (ok < 0) return NULL;
    if (ok == 0 || !tp_is_floating_dtype(d) || tp_is_stored_dtype(d))
        return PyErr_Format(PyExc_TypeError, "only floating-point types are supported as the default type");
    tp_set_default_dtype(d);
    Py_RETURN_NONE;
}
/* ---- any device type ---- */

static const tp_device_ops *ops_of(PyObject *device, tp_device *d) {
    int ok = tp_py_to_device(device, d);
    if (ok == 0) PyErr_Format(PyExc_TypeError, "this takes a device, not %s", Py_TYPE(device)->tp_name);
    if (ok <= 0) return NULL;
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)d->type);
    if (!ops) tp_py_raise();
    return ops;
}
FUNCTION(device_count) {
    (void)self;
    tp_device d;
    const tp_device_ops *ops = ops_of(arg, &d);
    int n = ops ? ops->device_count() : -1;
    return n >= 0 ? PyLong_FromLong(n) : ops ? tp_py_raise() : NULL;
}
FUNCTION(current_device) {
    (void)self;
    tp_device d;
    const tp_device_ops *ops = ops_of(arg, &d);
    int index = ops ? ops->current_device() : -1;
    return index >= 0 ? PyLong_FromLong(index) : ops ? tp_py_raise() : NULL;
}
FUNCTION(set_device) {
    (void)self;
    tp_device d;
    const tp_device_ops *ops = ops_of(arg, &d);
    if (!ops || tp_py_check(d.index < 0 ? 0 : ops->set_device(d.index)) < 0) return NULL;
    Py_RETURN_NONE;
}
FUNCTION(synchronize) {
    (void)self;
    tp_device d, resolved;
    const tp_device_ops *ops = ops_of(arg, &d);
    if (!ops || tp_py_check(tp_device_resolve(d, &resolved)) < 0 || tp_py_check(ops->synchronize(resolved)) < 0)
        return NULL;
    Py_RETURN_NONE;
}
/* _outside_devices(): the names of the device types that libraries brought. */
FUNCTION(outside_devices) {
    (void)self, (void)arg;
    PyObject *names = PyList_New(0);
    for (int type = TP_DEVICE_PRIVATEUSE1; names && type <= TP_DEVICE_PRIVATEUSE3; type++) {
        if (!tp_device_find_ops((tp_device_type)type)) continue;
        PyObject *name = PyUnicode_FromString(tp_device_type_name((tp_device_type)type));
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

/* tensorpy.backends looks among the packages that are installed for one with a device of that name. */
static int find_device_type(const char *name) {
    PyObject *module = PyImport_ImportModule("tensorpy.backends._entry_points");
    PyObject *found = module ? PyObject_CallMethod(module, "find", "s", name) : NULL;
    int there = found ? PyObject_IsTrue(found) : -1;
    Py_XDECREF(found);
    Py_XDECREF(module);
    return there < 0 ? tp_py_error_to_core() : there;
}
FUNCTION(set_installed_devices) {
    (void)self;
    const char *names = PyUnicode_AsUTF8(arg);
    if (!names) return NULL;
    tp_set_installed_devices(names);
    Py_RETURN_NONE;
}

FUNCTION(get_default_device) {
    (void)self, (void)arg;
    return tp_py_device_object(tp_default_device());
}
FUNCTION(set_default_device) {
    (void)self;
    tp_device d = TP_CPU;
    int ok = arg == Py_None ? 1 : tp_py_to_device(arg, &d);
    if (ok < 0) return NULL;
    if (ok == 0)
        return PyErr_Format(PyExc_TypeError, "set_default_device() takes a device, not %s", Py_TYPE(arg)->tp_name);
    tp_set_default_device(d);
    Py_RETURN_NONE;
}
/* Has a static type say that it is of tp_py_package. Its name is read while the process lives: it is not freed. */
static int call_type(PyTypeObject *type) {
    const char *dot = strchr(type->tp_name, '.');
    size_t package = strlen(tp_py_package), size = package + strlen(dot) + 1;
    char *name = PyMem_RawMalloc(size);
    if (!name) return PyErr_NoMemory(), -1;
    memcpy(name, tp_py_package, package);
    memcpy(name + package, dot, size - package);
    type->tp_name = name;
    return 0;
}

/* Says of a tensor's methods and attributes whose they are: TensorBase's in PyTorch, of which Tensor is a subclass. */
static int call_members(const char *owner) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(tp_py_tensor_type.tp_dict, &at, &key, &value);) {
        if (!Py_IS_TYPE(value, &PyGetSetDescr_Type) && !Py_IS_TYPE(value, &PyMethodDescr_Type)) continue;
        PyObject *name = PyUnicode_FromFormat("%s.%U", owner, key);
        if (!name) return -1;
        Py_XSETREF(((PyDescrObject *)value)->d_qualname, name);
    }
    return 0;
}

/* _call_package("torch" or "tensorpy"): what dtypes and sizes are printed as parts of, and where types say they are
 * from: programs tell arrays of different libraries apart by the modules of their types. */
FUNCTION(call_package) {
    if (!PyUnicode_Check(arg)) return PyErr_Format(PyExc_TypeError, "_call_package() takes a str");
    const char *before = tp_py_package;
    tp_py_package = PyUnicode_CompareWithASCIIString(arg, "torch") == 0 ? "torch" : "tensorpy";
    if (tp_py_package == before) Py_RETURN_NONE;
    PyObject *key, *value, *names = PyModule_GetDict(self);
    size_t package = strlen(before);
    for (Py_ssize_t at = 0; PyDict_Next(names, &at, &key, &value);) {
        if (!PyType_Check(value) || PyType_HasFeature((PyTypeObject *)value, Py_TPFLAGS_HEAPTYPE)) continue;
        const char *name = ((PyTypeObject *)value)->tp_name;
        if (strncmp(name, before, package) == 0 && name[package] == '.' && call_type((PyTypeObject *)value) < 0)
            return NULL;
    }
    if (call_members(strcmp(tp_py_package, "torch") == 0 ? "TensorBase" : "Tensor") < 0) return NULL;
    Py_RETURN_NONE;
}
/* _package(): "torch" or "tensorpy", as what the names of things begin. */
FUNCTION(package) {
    (void)self, (void)arg;
    return PyUnicode_FromString(tp_py_package);
}
FUNCTION(get_num_threads) {
    (void)self, (void)arg;
    return PyLong_FromLong(tp_get_num_threads());
}
FUNCTION(set_num_threads) {
    (void)self;
    long n = PyLong_AsLong(arg);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (tp_py_check(tp_set_num_threads(n > INT32_MAX ? INT32_MAX : (int)n)) < 0) return NULL;
    Py_RETURN_NONE;
}
FUNCTION(cpu_capability) {
    (void)self, (void)arg;
    return PyUnicode_FromString(tp_capability_name(tp_cpu_capability()));
}
FUNCTION(memory_stats) {
    (void)self, (void)arg;
    tp_memory_stats s = tp_alloc_stats();
    return Py_BuildValue("{s:L,s:L,s:L,s:L}", "live_blocks", (long long)s.live_blocks, "live_bytes",
                         (long long)s.live_bytes, "peak_bytes", (long long)s.peak_bytes, "cached_bytes",
                         (long long)s.cached_bytes);
}
FUNCTION(reset_peak_memory) {
    (void)self, (void)arg;
    tp_alloc_reset_peak();
    Py_RETURN_NONE;
}
FUNCTION(empty_cache) {
    (void)self, (void)arg;
    tp_alloc_empty_cache();
    Py_RETURN_NONE;
}
FUNCTION(fail_allocation_after) {
    (void)self;
    long long n = PyLong_AsLongLong(arg);
    if (n == -1 && PyErr_Occurred()) return NULL;
    bool waits = atomic_load(&tp_alloc_countdown) >= 0; /* the failure ordered before has not happened */
    tp_alloc_fail_after(n);
    return PyBool_FromLong(waits);
}

FUNCTION(determinism) {
    (void)self, (void)arg;
    return PyLong_FromLong(tp_determinism());
}
FUNCTION(set_determinism) {
    (void)self;
    long mode = PyLong_AsLong(arg);
    if (mode == -1 && PyErr_Occurred()) return NULL;
    tp_set_determinism((tp_determinism_mode)mode);
    Py_RETURN_NONE;
}
/* _set_warn_always(wanted): warnings that come once come at each call. */
FUNCTION(set_warn_always) {
    (void)self;
    int wanted = PyObject_IsTrue(arg);
    if (wanted < 0) return NULL;
    tp_want_all_warnings(wanted);
    Py_RETURN_NONE;
}
FUNCTION(get_fill_unset) {
    (void)self, (void)arg;
    return PyBool_FromLong(tp_fill_unset_wanted());
}
FUNCTION(set_fill_unset) {
    (void)self;
    int wanted = PyObject_IsTrue(arg);
    if (wanted < 0) return NULL;
    tp_want_fill_unset(wanted);
    Py_RETURN_NONE;
}

/* ---- promotion ---- */

static int two_dtypes(const tp_py_arguments *arguments, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                      tp_dtype dtypes[2]) {
    PyObject *v[2];
    if (tp_py_take_arguments(arguments, args, n, kwnames, v) < 0) return -1;
    for (int i = 0; i < 2; i++)
        if (tp_py_to_any_dtype(v[i], &dtypes[i]) <= 0)
            return PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be a dtype, not %s", arguments->function,
                                arguments->names[i], Py_TYPE(v[i])->tp_name),
                   -1;
    return 0;
}
static PyObject *promote_types(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    if (tp_unlikely(tp_tls.asked)) return tp_py_ask_function("promote_types", args, n, kwnames);
    (void)self;
    static const char *const names[] = {"type1", "type2", NULL};
    static const tp_py_arguments arguments = {"promote_types", names, 2, 2};
    tp_dtype dtypes[2];
    if (two_dtypes(&arguments, args, n, kwnames, dtypes) < 0) return NULL;
    tp_dtype d = tp_promote_dtypes(dtypes[0], dtypes[1]);
    return d == TP_NO_DTYPE ? tp_py_raise() : tp_py_dtype_object(d);
}
static PyObject *can_cast(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    if (tp_unlikely(tp_tls.asked)) return tp_py_ask_function("can_cast", args, n, kwnames);
    (void)self;
    static const char *const names[] = {"from_", "to", NULL};
    static const tp_py_arguments arguments = {"can_cast", names, 2, 2};
    tp_dtype dtypes[2];
    if (two_dtypes(&arguments, args, n, kwnames, dtypes) < 0) return NULL;
    return PyBool_FromLong(tp_can_cast(dtypes[0], dtypes[1]));
}

/* ---- the thread's dispatch sets: (include, exclude) as words ---- */

FUNCTION(get_dispatch_sets) {
    (void)self, (void)arg;
    return Py_BuildValue("KK", (unsigned long long)tp_tls.include, (unsigned long long)tp_excluded_keys());
}
static PyObject *set_dispatch_sets(PyObject *self, PyObject *args) {
    (void)self;
    unsigned long long include, exclude;
    if (!PyArg_ParseTuple(args, "KK", &include, &exclude)) return NULL;
    if (include & (TP_BACKEND_KEYS | TP_LAYOUT_KEYS | TP_BIT(Undefined)))
        return PyErr_Format(PyExc_ValueError, "a backend cannot be included: it is chosen by where the tensors are");
    if ((include >> (TP_NUM_KEYS - 1)) > 1)
        return PyErr_Format(PyExc_ValueError, "%llu has bits that are no dispatch keys", include);
    if (exclude & TP_BIT(Python))
        return PyErr_Format(PyExc_ValueError, "the key Python cannot be left out: below it no kernel is a wrapper's");
    if (tp_tls.new_flags & TP_FLAG_DEPTH) exclude &= ~TP_AUTOGRAD_KEYS; /* a transform differentiates what is called */
    tp_tls.include = include;
    tp_tls.exclude = exclude ^ TP_DEFAULT_EXCLUDED;
    Py_RETURN_NONE;
}

/* Methods that are written in Python are put on the C types once, at import. */
static PyObject *set_type_attribute(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *type, *name, *value;
    if (!PyArg_ParseTuple(args, "O!UO", &PyType_Type, &type, &name, &value)) return NULL;
    if (PyDict_SetItem(((PyTypeObject *)type)->tp_dict, name, value) < 0) return NULL;
    PyType_Modified((PyTypeObject *)type);
    Py_RETURN_NONE;
}

static PyObject *set_print_dispatcher(PyObject *self, PyObject *arg) {
    int truth = PyObject_IsTrue(arg);
    (void)self;
    return truth < 0 ? NULL : tp_py_set_trace(truth ? Py_True : Py_None, false, 0);
}

static PyMethodDef functions[] = {
    {"_set_type_attribute", set_type_attribute, METH_VARARGS, NULL},
    {"_set_print_dispatcher", set_print_dispatcher, METH_O, NULL},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, NULL},
    {"_set_grad_enabled", set_grad_enabled, METH_O, NULL},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS, NULL},
    {"_set_inference_mode", set_inference_mode, METH_O, NULL},
    {"get_default_dtype", get_default_dtype, METH_NOARGS, NULL},
    {"set_default_dtype", set_default_dtype, METH_O,
     "set_default_dtype(d, /)\n--\n\nSets the dtype that Python floats become to d."},
    {"_device_count", device_count, METH_O, NULL},
    {"_current_device", current_device, METH_O, NULL},
    {"_set_device", set_device, METH_O, NULL},
    {"_synchronize", synchronize, METH_O, NULL},
    {"_outside_devices", outside_devices, METH_NOARGS, NULL},
    {"_set_installed_devices", set_installed_devices, METH_O, NULL},
    {"get_default_device", get_default_device, METH_NOARGS, NULL},
    {"set_default_device", set_default_device, METH_O, NULL},
    {"_package", package, METH_NOARGS, NULL},
    {"_call_package", call_package, METH_O, NULL},
    {"get_num_threads", get_num_threads, METH_NOARGS, NULL},
    {"_set_symbolic_number", tp_py_set_symbolic, METH_O, NULL},
    {"set_num_threads", set_num_threads, METH_O, NULL},
    {"promote_types", TP_PY_FASTCALL(promote_types), NULL},
    {"can_cast", TP_PY_FASTCALL(can_cast), NULL},
    {"_cpu_capability", cpu_capability, METH_NOARGS, NULL},
    {"_memory_stats", memory_stats, METH_NOARGS, NULL},
    {"_reset_peak_memory", reset_peak_memory, METH_NOARGS, NULL},
    {"_empty_cache", empty_cache, METH_NOARGS, NULL},
    {"_fail_allocation_after", fail_allocation_after, METH_O, NULL},
    {"_determinism", determinism, METH_NOARGS, NULL},
    {"_set_determinism", set_determinism, METH_O, NULL},
    {"_set_warn_always", set_warn_always, METH_O, NULL},
    {"_get_deterministic_fill_uninitialized_memory", get_fill_unset, METH_NOARGS, NULL},
    {"_set_deterministic_fill_uninitialized_memory", set_fill_unset, METH_O, NULL},
    {"_get_dispatch_sets", get_dispatch_sets, METH_NOARGS, NULL},
    {"_set_dispatch_sets", set_dispatch_sets, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- the interpreter lock, for kernels ---- */

static void *release_gil(void) { return PyEval_SaveThread(); }
static void acquire_gil(void *state) { PyEval_RestoreThread(state); }

static bool holds_gil(void) { return PyGILState_Check(); }

/* Handlers run in the process's first thread only; another one does not ask for the lock in vain. */
static bool gets_signals(void) {
#ifdef __linux__
    return getpid() == (pid_t)syscall(SYS_gettid);
#else
    return true;
#endif
}
static int interrupted(void) {
    if (!gets_signals()) return 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    int status = tp_py_run_handlers();
    PyGILState_Release(gil);
    return status;
}

static int warn(const char *message) {
    PyGILState_STATE gil = PyGILState_Ensure();
    int status = PyErr_WarnEx(PyExc_UserWarning, message, 1);
    PyGILState_Release(gil);
    return status < 0 ? tp_fail(TP_PythonError, "a warning became an error") : 0;
}

/* Where the Python package finds a BLAS library; malloc'd, or NULL where it finds none. */
static int locate_blas(char **out) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("tensorpy.backends._blas");
    PyObject *path = module ? PyObject_CallMethod(module, "locate", NULL) : NULL;
    PyObject *bytes = path && PyUnicode_Check(path) ? PyUnicode_EncodeFSDefault(path) : NULL;
    *out = bytes ? strdup(PyBytes_AS_STRING(bytes)) : NULL;
    int status = PyErr_Occurred() ? tp_py_error_to_core() : 0;
    Py_XDECREF(bytes);
    Py_XDECREF(path);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    return status;
}

/* The names of the keys that stand for several. */
static PyObject *alias_keys(void) {
    PyObject *names = PyTuple_New(TP_NUM_ALIAS);
    for (int a = 0; names && a < TP_NUM_ALIAS; a++) {
        PyObject *name = PyUnicode_FromString(tp_slot_name((tp_key)(TP_NUM_KEYS + a)));
        if (name) PyTuple_SET_ITEM(names, a, name);
        else Py_CLEAR(names);
    }
    return names;
}

int tp_py_init_context(PyObject *m) {
    tp_find_device_type = find_device_type;
    tp_blas_set_locator(locate_blas);
    tp_set_warning_sink(warn);
    tp_host_forget = tp_py_forget_error;
    tp_set_host_lock((tp_host_lock){release_gil, acquire_gil, holds_gil, interrupted});
    for (int k = 1; k < TP_NUM_KEYS; k++) { /* _KEYS: name -> bit, for the Python guards */
        PyObject *keys = PyObject_GetAttrString(m, "_KEYS");
        if (!keys) {
            PyErr_Clear();
            keys = PyDict_New();
            if (!keys || PyModule_AddObjectRef(m, "_KEYS", keys) < 0) return -1;
        }
        PyObject *bit = PyLong_FromUnsignedLongLong((tp_keyset)1 << k);
        int status = bit ? PyDict_SetItemString(keys, tp_key_name((tp_key)k), bit) : -1;
        Py_XDECREF(bit);
        Py_DECREF(keys);
        if (status < 0) return -1;
    }
    PyObject *aliases = alias_keys();
    int status = aliases ? PyModule_AddObjectRef(m, "_ALIAS_KEYS", aliases) : -1;
    Py_XDECREF(aliases);
    if (status < 0) return -1;
    return tp_py_add_functions(m, NULL, (PyMethodDef *const[]){functions, NULL});
}
