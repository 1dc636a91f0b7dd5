/* module.c: the extension module tensorpy._C: loads the operators, then adds each part's names. */
#include "python/common.h"

#include "PointwiseTable.h"
#include "ReductionTable.h"
#include "batched/batched.h"
#include "conjugate/conjugate.h"
#include "cpu/capability.h"
#include "dispatch/generated.h"
#include "forward/forward.h"
#include "functionalize/functionalize.h"
#include "nested/nested.h"
#include "opencl/runtime/backend.h"
#include "plan/plan.h"
#include "python/autograd.h"
#include "python/help.h"
#include "python/methods.h"
#include "python/ops.h"
#include "python/overrides.h"
#include "python/python_key.h"
#include "python/returns.h"

PyObject *tp_py_wrap_factory_steal(tp_tensor *t, bool requires_grad) {
    if (t && requires_grad && !tp_is_floating(t) && !tp_is_complex(t)) {
        tp_fail(TP_RuntimeError, "Only Tensors of floating point and complex dtype can require gradients, not %s",
                tp_dtype_names[t->dtype]);
        tp_release(t);
        t = NULL;
    }
    if (t && requires_grad && tp_set_requires_grad(t, true) < 0) {
        tp_release(t);
        t = NULL;
    }
    return tp_py_wrap_steal(t);
}

int tp_py_out_of_factory(int status, tp_tensor *out, bool requires_grad) {
    return status == 0 && requires_grad ? tp_set_requires_grad(out, true) : status;
}

int tp_py_check_out_count(const tp_value *v, int n) {
    if (v->tensors.size == n) return 0;
    PyErr_Format(PyExc_TypeError, "out= takes a tuple of %d tensors, not of %zd", n, (Py_ssize_t)v->tensors.size);
    return -1;
}

PyObject *tp_py_return_outs(int status, int n, tp_tensor *const *outs, PyTypeObject *type) {
    if (status < 0) return tp_py_raise();
    if (n == 1) return tp_py_wrap(outs[0]);
    tp_tensor *owned[TP_PY_MAX_PARAMS];
    for (int i = 0; i < n; i++) owned[i] = tp_retain(outs[i]);
    return tp_py_wrap_tuple_steal(owned, n, type);
}

/* "tensorpy.return_types.max(\nvalues=tensor([2]),\nindices=tensor([0]))", with the package's name of the moment */
static PyObject *return_type_repr(PyObject *o) {
    PyObject *names = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__match_args__");
    PyObject *text = names ? PyUnicode_FromFormat("%s%s(", tp_py_package, strchr(Py_TYPE(o)->tp_name, '.')) : NULL;
    for (Py_ssize_t i = 0; text && i < PyTuple_GET_SIZE(o); i++) {
        const char *separator = i + 1 < PyTuple_GET_SIZE(o) ? "," : ")";
        PyObject *part =
            PyUnicode_FromFormat("\n%U=%R%s", PyTuple_GET_ITEM(names, i), PyTuple_GET_ITEM(o, i), separator);
        PyUnicode_AppendAndDel(&text, part);
    }
    Py_XDECREF(names);
    return text;
}

PyTypeObject *tp_py_new_return_type(PyStructSequence_Desc *desc) {
    PyTypeObject *type = PyStructSequence_NewType(desc);
    if (type) type->tp_repr = return_type_repr;
    return type;
}

/* One lock guards objects, tensors and the graph (Note [Host lock]), and a tensor knows one Python object. */
#ifdef Py_GIL_DISABLED
#error "tensorpy needs CPython's interpreter lock: free-threaded builds are not supported"
#endif

static int refuse_subinterpreters(void) {
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
    PyErr_SetString(PyExc_ImportError,
                    "tensorpy cannot be imported in a subinterpreter: its tensors belong to the main interpreter. Use "
                    "threads, or processes of their own");
    return -1;
}

static int load_operators(void) {
    tp_pointwise_select(tp_cpu_capability());
    tp_reduction_select(tp_cpu_capability());
    if (tp_register_generated() < 0) return -1;
    if (tp_cl_load() < 0 || tp_batch_load() < 0 || tp_conjugate_load() < 0 || tp_nested_load() < 0 ||
        tp_forward_load() < 0 || tp_functionalize_load() < 0 || tp_plan_load() < 0)
        return -1;
    tp_compute_all_tables();
    return 0;
}

static int look_at_the_cpu(void) {
    const char *refusal = tp_capability_refusal(), *text = tp_capability_warning();
    if (refusal) return PyErr_SetString(PyExc_ImportError, refusal), -1;
    return text ? PyErr_WarnEx(PyExc_UserWarning, text, 1) : 0;
}

/* A size of 0 has Python call PyInit__C in every interpreter, and so lets it refuse. */
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tensorpy._C",
    .m_doc = "The C half of tensorpy.",
    .m_size = 0,
};

PyMODINIT_FUNC PyInit__C(void);
__attribute__((visibility("default"))) PyMODINIT_FUNC PyInit__C(void) {
    static int (*const parts[])(PyObject *) = {
        tp_py_init_errors,     tp_py_init_types,       tp_py_init_generator, tp_py_init_object,
        tp_py_init_tensor,     tp_py_init_context,     tp_py_init_functions, tp_py_init_return_types,
        tp_py_init_new,        tp_py_init_interop,     tp_py_init_autograd,  tp_py_init_autocast,
        tp_py_init_dispatch,   tp_py_init_library,     tp_py_init_program,   tp_py_init_pickle,
        tp_py_init_ops,        tp_py_init_opencl,      tp_py_init_resolve,   tp_py_init_overrides,
        tp_py_init_python_key, tp_py_init_profiler,    tp_py_init_tracer,    tp_py_init_batched,
        tp_py_init_stream,     tp_py_init_tables,      tp_py_init_forward,   tp_py_init_functionalize,
        tp_py_init_nn_module,  tp_py_init_distributed, tp_py_init_compile,
    };
    static PyObject *loaded; /* operators and types are made once; a second import gets the same module */
    if (refuse_subinterpreters() < 0) return NULL;
    if (loaded) return Py_NewRef(loaded);
    if (look_at_the_cpu() < 0) return NULL;
    if (load_operators() < 0) return tp_py_raise();
    tp_py_help_open();
    bool collected = PyGC_Disable(); /* what is made here stays: rounds of the collector are a tenth of the import */
    PyObject *m = PyModule_Create(&definition);
    for (int i = 0; m && i < TP_COUNTOF(parts); i++)
        if (parts[i](m) < 0) Py_CLEAR(m);
    if (collected) PyGC_Enable();
    return loaded = Py_XNewRef(m), m;
}
