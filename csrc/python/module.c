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
