#include "python/methods.h"
#include "Functions.h"
#define W __attribute__((weak))
W int tp_py_init_new(PyObject *m){return 0;}
W int tp_py_init_interop(PyObject *m){return 0;}
W PyMethodDef tp_py_tensor_methods[1]={{0}}; W PyMethodDef tp_py_interop_methods[1]={{0}};
W PyMappingMethods tp_py_tensor_mapping; W PySequenceMethods tp_py_tensor_sequence; W PyBufferProcs tp_py_tensor_buffer;
W int tp_py_tensor_bool(PyObject *o){bool b; return tp_py_check(tp_is_nonzero(tp_py_tensor_borrow(o),&b))<0?-1:b;}
W PyObject*tp_py_tensor_float(PyObject*o){tp_scalar s; if(tp_item(tp_py_tensor_borrow(o),&s)<0)return tp_py_raise(); return PyFloat_FromDouble(tp_scalar_double(&s));}
W PyObject*tp_py_tensor_int(PyObject*o){tp_scalar s; if(tp_item(tp_py_tensor_borrow(o),&s)<0)return tp_py_raise(); return PyLong_FromLongLong(tp_scalar_int(&s));}
W PyObject*tp_py_tensor_index(PyObject*o){return tp_py_tensor_int(o);}
W tp_tensor *tp_py_tensor_from_data(PyObject *data, tp_dtype dtype, tp_device device){return NULL;}
#include "NativeFunctions.h"
W tp_tensor *sum_cpu(tp_tensor *self, tp_dtype dtype){return tp_fail_null(TP_RuntimeError,"stub");}
W tp_tensor *sum_meta(tp_tensor *self, tp_dtype dtype){return tp_fail_null(TP_RuntimeError,"stub");}
W int sum_dim_IntList_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype){return tp_fail(TP_RuntimeError,"stub");}
W int sum_dim_IntList_cpu(tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype, tp_tensor *out){return tp_fail(TP_RuntimeError,"stub");}
