/* operators.c: Python's operators on tensors.
 *
 * One operand is a tensor; the other is a tensor or a number, anything else gets NotImplemented so that Python tries
 * the other side. The common pairs call the C operator directly, without the argument parser. */
#include "python/common.h"

#include "Functions.h"
#include "python/interop.h"
#include "python/methods.h"
#include "python/parse.h"

typedef tp_tensor *(*tensor_tensor_fn)(tp_tensor *, tp_tensor *);
typedef tp_tensor *(*tensor_scalar_fn)(tp_tensor *, const tp_scalar *);
typedef tp_tensor *(*scalar_tensor_fn)(const tp_scalar *, tp_tensor *);

/* What a binary operator needs: both tensors, tensor on the left, tensor on the right. */
typedef struct {
    tensor_tensor_fn tensors;
    tensor_scalar_fn with_number;
    scalar_tensor_fn from_number;
} binary_operator;

static PyObject *tensors(PyObject *a, PyObject *b, tensor_tensor_fn fn) {
    PyObject *result = tp_py_wrap_steal(fn(tp_py_tensor_borrow(a), tp_py_tensor_borrow(b)));
    if (tp_likely(tp_py_is_plain(a) && tp_py_is_plain(b))) return result;
    bool other = tp_py_is_plain(a) || (!tp_py_is_plain(b) && PyType_IsSubtype(Py_TYPE(b), Py_TYPE(a)));
    return tp_py_like_steal(other ? b : a, result);
}

static PyObject *binary(PyObject *a, PyObject *b, const binary_operator *op) {
    tp_scalar s;
    bool left = tp_py_is_tensor(a), right = tp_py_is_tensor(b);
    if (left && right) return tensors(a, b, op->tensors);
    int ok = tp_py_to_scalar(left ? b : a, &s);
    if (ok < 0) return NULL;
    if (ok == 0) Py_RETURN_NOTIMPLEMENTED;
    tp_tensor *result =
        left ? op->with_number(tp_py_tensor_borrow(a), &s) : op->from_number(&s, tp_py_tensor_borrow(b));
    return tp_py_like_steal(left ? a : b, tp_py_wrap_steal(result));
}

/* A number on the left of an operator that has only tensor operands there. */
static tp_tensor *with_wrapped(const tp_scalar *s, tp_tensor *t, tensor_tensor_fn fn) {
    tp_autoref *number = tp_new_wrapped_number(s);
    return number ? fn(number, t) : NULL;
}

/* ---- the operators ---- */

static tp_tensor *add_tt(tp_tensor *a, tp_tensor *b) { return tp_add_Tensor(a, b, TP_SCALAR_I(1)); }
static tp_tensor *add_ts(tp_tensor *a, const tp_scalar *b) { return tp_add_Scalar(a, b, TP_SCALAR_I(1)); }
static tp_tensor *add_st(const tp_scalar *a, tp_tensor *b) { return tp_add_Scalar(b, a, TP_SCALAR_I(1)); }
static tp_tensor *sub_tt(tp_tensor *a, tp_tensor *b) { return tp_sub_Tensor(a, b, TP_SCALAR_I(1)); }
static tp_tensor *sub_ts(tp_tensor *a, const tp_scalar *b) { return tp_sub_Scalar(a, b, TP_SCALAR_I(1)); }
static tp_tensor *sub_st(const tp_scalar *a, tp_tensor *b) { return tp_rsub_Scalar(b, a, TP_SCALAR_I(1)); }
static tp_tensor *mul_st(const tp_scalar *a, tp_tensor *b) { return tp_mul_Scalar(b, a); }
static tp_tensor *div_st(const tp_scalar *a, tp_tensor *b) { return with_wrapped(a, b, tp_div_Tensor); }
static tp_tensor *floor_divide_st(const tp_scalar *a, tp_tensor *b) { return with_wrapped(a, b, tp_floor_divide); }
static tp_tensor *and_st(const tp_scalar *a, tp_tensor *b) { return tp_bitwise_and_Scalar(b, a); }
static tp_tensor *or_st(const tp_scalar *a, tp_tensor *b) { return tp_bitwise_or_Scalar(b, a); }
static tp_tensor *xor_st(const tp_scalar *a, tp_tensor *b) { return tp_bitwise_xor_Scalar(b, a); }

#define BINARY(slot, ...)                                \
    static PyObject *slot(PyObject *a, PyObject *b) {    \
        static const binary_operator op = {__VA_ARGS__}; \
        return binary(a, b, &op);                        \
    }
BINARY(nb_add, add_tt, add_ts, add_st)
BINARY(nb_subtract, sub_tt, sub_ts, sub_st)
BINARY(nb_multiply, tp_mul_Tensor, tp_mul_Scalar, mul_st)
BINARY(nb_true_divide, tp_div_Tensor, tp_div_Scalar, div_st)
BINARY(nb_floor_divide, tp_floor_divide, tp_floor_divide_Scalar, floor_divide_st)
BINARY(nb_remainder, tp_remainder_Tensor, tp_remainder_Scalar, tp_remainder_Scalar_Tensor)
BINARY(nb_and, tp_bitwise_and_Tensor, tp_bitwise_and_Scalar, and_st)
BINARY(nb_or, tp_bitwise_or_Tensor, tp_bitwise_or_Scalar, or_st)
BINARY(nb_xor, tp_bitwise_xor_Tensor, tp_bitwise_xor_Scalar, xor_st)
BINARY(nb_lshift, tp_bitwise_left_shift_Tensor, tp_bitwise_left_shift_Tensor_Scalar,
       tp_bitwise_left_shift_Scalar_Tensor)
BINARY(nb_rshift, tp_bitwise_right_shift_Tensor, tp_bitwise_right_shift_Tensor_Scalar,
       tp_bitwise_right_shift_Scalar_Tensor)

static PyObject *nb_power(PyObject *a, PyObject *b, PyObject *modulus) {
    static const binary_operator op = {tp_pow_Tensor_Tensor, tp_pow_Tensor_Scalar, tp_pow_Scalar};
    if (modulus != Py_None) return PyErr_Format(PyExc_TypeError, "pow() with a modulus is not supported for tensors");
    return binary(a, b, &op);
}

static PyObject *nb_matrix_multiply(PyObject *a, PyObject *b) {
    if (!tp_py_is_tensor(a) || !tp_py_is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
    return tensors(a, b, tp_matmul);
}

/* ---- in place ---- */

typedef struct {
    int (*tensors)(tp_tensor *, tp_tensor *);
    int (*with_number)(tp_tensor *, const tp_scalar *);
} inplace_operator;

static PyObject *inplace(PyObject *a, PyObject *b, const inplace_operator *op) {
    tp_scalar s;
    if (!tp_py_is_tensor(a)) Py_RETURN_NOTIMPLEMENTED;
    if (tp_py_is_tensor(b)) return tp_py_return_object(op->tensors(tp_py_tensor_borrow(a), tp_py_tensor_borrow(b)), a);
    int ok = tp_py_to_scalar(b, &s);
    if (ok < 0) return NULL;
    if (ok == 0) Py_RETURN_NOTIMPLEMENTED;
    return tp_py_return_object(op->with_number(tp_py_tensor_borrow(a), &s), a);
}

static int iadd_tt(tp_tensor *a, tp_tensor *b) { return tp_add__Tensor(a, b, TP_SCALAR_I(1)); }
static int iadd_ts(tp_tensor *a, const tp_scalar *b) { return tp_add__Scalar(a, b, TP_SCALAR_I(1)); }
static int isub_tt(tp_tensor *a, tp_tensor *b) { return tp_sub__Tensor(a, b, TP_SCALAR_I(1)); }
static int isub_ts(tp_tensor *a, const tp_scalar *b) { return tp_sub__Scalar(a, b, TP_SCALAR_I(1)); }

#define INPLACE(slot, ...)                                \
    static PyObject *slot(PyObject *a, PyObject *b) {     \
        static const inplace_operator op = {__VA_ARGS__}; \
        return inplace(a, b, &op);                        \
    }
INPLACE(nb_inplace_add, iadd_tt, iadd_ts)
INPLACE(nb_inplace_subtract, isub_tt, isub_ts)
INPLACE(nb_inplace_multiply, tp_mul__Tensor, tp_mul__Scalar)
INPLACE(nb_inplace_true_divide, tp_div__Tensor, tp_div__Scalar)
INPLACE(nb_inplace_floor_divide, tp_floor_divide__Tensor, tp_floor_divide__Scalar)
INPLACE(nb_inplace_remainder, tp_remainder__Tensor, tp_remainder__Scalar)
INPLACE(nb_inplace_and, tp_bitwise_and__Tensor, tp_bitwise_and__Scalar)
INPLACE(nb_inplace_or, tp_bitwise_or__Tensor, tp_bitwise_or__Scalar)
INPLACE(nb_inplace_xor, tp_bitwise_xor__Tensor, tp_bitwise_xor__Scalar)
INPLACE(nb_inplace_lshift, tp_bitwise_left_shift__Tensor, tp_bitwise_left_shift__Tensor_Scalar)
INPLACE(nb_inplace_rshift, tp_bitwise_right_shift__Tensor, tp_bitwise_right_shift__Tensor_Scalar)

static PyObject *nb_inplace_power(PyObject *a, PyObject *b, PyObject *modulus) {
    static const inplace_operator op = {tp_pow__Tensor, tp_pow__Scalar};
    if (modulus != Py_None) return PyErr_Format(PyExc_TypeError, "pow() with a modulus is not supported for tensors");
    return inplace(a, b, &op);
}

/* ---- unary ---- */

static PyObject *nb_negative(PyObject *a) {
    return tp_py_like_steal(a, tp_py_wrap_steal(tp_neg(tp_py_tensor_borrow(a))));
}
static PyObject *nb_positive(PyObject *a) {
    if (tp_py_tensor_borrow(a)->dtype == TP_BOOL)
        return PyErr_Format(PyExc_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
    return Py_NewRef(a);
}
static PyObject *nb_absolute(PyObject *a) {
    return tp_py_like_steal(a, tp_py_wrap_steal(tp_abs(tp_py_tensor_borrow(a))));
}
static PyObject *nb_invert(PyObject *a) {
    const tp_tensor *t = tp_py_tensor_borrow(a);
    if (tp_is_floating(t) || tp_is_complex(t))
        return PyErr_Format(PyExc_TypeError, "~: only integer and Boolean-type tensors have it, not %s",
                            tp_dtype_names[t->dtype]);
    return tp_py_like_steal(a, tp_py_wrap_steal(tp_bitwise_not(tp_py_tensor_borrow(a))));
}

PyNumberMethods tp_py_tensor_number = {
    .nb_add = nb_add,
    .nb_subtract = nb_subtract,
    .nb_multiply = nb_multiply,
    .nb_true_divide = nb_true_divide,
    .nb_floor_divide = nb_floor_divide,
    .nb_remainder = nb_remainder,
    .nb_power = nb_power,
    .nb_matrix_multiply = nb_matrix_multiply,
    .nb_and = nb_and,
    .nb_or = nb_or,
    .nb_xor = nb_xor,
    .nb_lshift = nb_lshift,
    .nb_rshift = nb_rshift,
    .nb_negative = nb_negative,
    .nb_positive = nb_positive,
    .nb_absolute = nb_absolute,
    .nb_invert = nb_invert,
    .nb_inplace_add = nb_inplace_add,
    .nb_inplace_subtract = nb_inplace_subtract,
    .nb_inplace_multiply = nb_inplace_multiply,
    .nb_inplace_true_divide = nb_inplace_true_divide,
    .nb_inplace_floor_divide = nb_inplace_floor_divide,
    .nb_inplace_remainder = nb_inplace_remainder,
    .nb_inplace_power = nb_inplace_power,
    .nb_inplace_and = nb_inplace_and,
    .nb_inplace_or = nb_inplace_or,
    .nb_inplace_xor = nb_inplace_xor,
    .nb_inplace_lshift = nb_inplace_lshift,
    .nb_inplace_rshift = nb_inplace_rshift,
    .nb_bool = tp_py_tensor_bool,
    .nb_int = tp_py_tensor_int,
    .nb_float = tp_py_tensor_float,
    .nb_index = tp_py_tensor_index,
};

/* ---- comparisons ---- */

PyObject *tp_py_tensor_richcompare(PyObject *a, PyObject *b, int op) {
    /* The from_number half is never used: Python swaps the operands itself. */
    static const binary_operator table[] = {
        [Py_LT] = {tp_lt_Tensor, tp_lt_Scalar, NULL}, [Py_LE] = {tp_le_Tensor, tp_le_Scalar, NULL},
        [Py_EQ] = {tp_eq_Tensor, tp_eq_Scalar, NULL}, [Py_NE] = {tp_ne_Tensor, tp_ne_Scalar, NULL},
        [Py_GT] = {tp_gt_Tensor, tp_gt_Scalar, NULL}, [Py_GE] = {tp_ge_Tensor, tp_ge_Scalar, NULL},
    };
    if (!tp_py_is_ndarray(b)) return binary(a, b, &table[op]);
    /* Of two arrays each side would leave the comparison to the other, and Python compare identities. */
    tp_autoref *array = tp_py_tensor_from_data(b, TP_NO_DTYPE, TP_CPU);
    return array ? tp_py_wrap_steal(table[op].tensors(tp_py_tensor_borrow(a), array)) : NULL;
}
