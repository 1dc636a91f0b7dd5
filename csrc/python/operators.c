/* operators.c: Python's operators on tensors.
 *
 * One operand is a tensor; the other is a tensor or a number, anything else gets NotImplemented so that Python tries
 * the other side. The common pairs call the C operator directly, without the argument parser. */
#include "python/common.h"

#include "Functions.h"
#include "python/interop.h"
#include "python/methods.h"
#include "python/overrides.h"
#include "python/parse.h"

typedef tp_tensor *(*tensor_tensor_fn)(tp_tensor *, tp_tensor *);
typedef tp_tensor *(*tensor_scalar_fn)(tp_tensor *, const tp_scalar *);
typedef tp_tensor *(*scalar_tensor_fn)(const tp_scalar *, tp_tensor *);

/* What a binary operator needs: both tensors, tensor on the left, tensor on the right; the methods that it is for who
 * is asked first (Note [Asked first]), also with the operands swapped. */
typedef struct {
    tensor_tensor_fn tensors;
    tensor_scalar_fn with_number;
    scalar_tensor_fn from_number;
    const char *name, *swapped;
} binary_operator;

/* An operand that is no tensor and no number: somebody's who wants to be asked, or Python tries the other side. */
static PyObject *ask_other(PyObject *self, PyObject *other, const char *name) {
    if (!tp_py_has_function(other)) Py_RETURN_NOTIMPLEMENTED;
    return tp_py_ask_method(name, self, &other, 1, NULL);
}

TP_COLD static PyObject *ask_binary(PyObject *a, PyObject *b, bool left, const binary_operator *op) {
    tp_scalar s;
    PyObject *self = left ? a : b, *other = left ? b : a;
    const char *name = left ? op->name : op->swapped;
    int ok = tp_py_is_tensor(other) ? 1 : op->tensors == tp_matmul ? 0 : tp_py_to_scalar(other, &s);
    if (ok <= 0) return ok < 0 ? NULL : ask_other(self, other, name);
    return tp_py_ask_method(name, self, &other, 1, NULL);
}

/* Subclasses: the result is of the more derived; of two that are not related Tensor's __torch_function__ refuses. */
TP_COLD static PyObject *of_subclasses(PyObject *a, PyObject *b, const binary_operator *op) {
    bool plain = tp_py_is_plain(a), other = plain || PyType_IsSubtype(Py_TYPE(b), Py_TYPE(a));
    if (!plain && !tp_py_is_plain(b) && !other && !PyType_IsSubtype(Py_TYPE(a), Py_TYPE(b)))
        return tp_py_ask_method(op->name, a, &b, 1, NULL);
    PyObject *kind = other && !tp_py_is_plain(b) ? b : a;
    return tp_py_like_steal(kind, tp_py_wrap_steal(op->tensors(tp_py_tensor_borrow(a), tp_py_tensor_borrow(b))));
}

/* With an operand that is no tensor; new, of the tensor's class or plain. */
TP_INLINE PyObject *with_number(PyObject *self, PyObject *other, bool left, const binary_operator *op) {
    tp_scalar s;
    int ok = op->with_number ? tp_py_to_scalar(other, &s) : 0;
    if (ok < 0) return NULL;
    if (ok == 0) return ask_other(self, other, left ? op->name : op->swapped);
    tp_tensor *t = tp_py_tensor_borrow(self);
    return tp_py_wrap_steal(left ? op->with_number(t, &s) : op->from_number(&s, t));
}

TP_INLINE bool is_plain_number(PyObject *o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o); }

/* Anything but plain tensors, and numbers on the right of them. */
static PyObject *binary_general(PyObject *a, PyObject *b, const binary_operator *op) {
    bool left = tp_py_is_tensor(a), right = tp_py_is_tensor(b);
    if ((left && tp_py_asks(a)) || (right && tp_py_asks(b))) return ask_binary(a, b, left, op);
    if (left && right) return of_subclasses(a, b, op);
    PyObject *self = left ? a : b, *result = with_number(self, left ? b : a, left, op);
    return result == Py_NotImplemented ? result : tp_py_like_steal(self, result);
}

static PyObject *binary(PyObject *a, PyObject *b, const binary_operator *op) {
    if (tp_unlikely(Py_TYPE(a) != &tp_py_tensor_type || tp_tls.asked)) return binary_general(a, b, op);
    if (tp_likely(Py_TYPE(b) == &tp_py_tensor_type))
        return tp_py_wrap_steal(op->tensors(tp_py_tensor_borrow(a), tp_py_tensor_borrow(b)));
    return is_plain_number(b) ? with_number(a, b, true, op) : binary_general(a, b, op);
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
BINARY(nb_add, add_tt, add_ts, add_st, "add", "add")
BINARY(nb_subtract, sub_tt, sub_ts, sub_st, "sub", "__rsub__")
BINARY(nb_multiply, tp_mul_Tensor, tp_mul_Scalar, mul_st, "mul", "mul")
BINARY(divide, tp_div_Tensor, tp_div_Scalar, div_st, "div", "__rtruediv__")
/* An array of NumPy's leaves the quotient to the tensor, and multiplies by its reciprocal itself, as in PyTorch. */
static PyObject *nb_true_divide(PyObject *a, PyObject *b) {
    PyObject *made = divide(a, b);
    if (tp_likely(made != Py_NotImplemented) || tp_py_is_tensor(a) || !PyObject_HasAttrString(a, "__array__"))
        return made;
    Py_DECREF(made);
    PyObject *share = tp_py_like_steal(b, tp_py_wrap_steal(tp_reciprocal(tp_py_tensor_borrow(b))));
    made = share ? PyNumber_Multiply(share, a) : NULL;
    Py_XDECREF(share);
    return made;
}
BINARY(nb_floor_divide, tp_floor_divide, tp_floor_divide_Scalar, floor_divide_st, "__floordiv__", "__rfloordiv__")
BINARY(nb_remainder, tp_remainder_Tensor, tp_remainder_Scalar, tp_remainder_Scalar_Tensor, "remainder", "__rmod__")
BINARY(nb_and, tp_bitwise_and_Tensor, tp_bitwise_and_Scalar, and_st, "__and__", "bitwise_and")
BINARY(nb_or, tp_bitwise_or_Tensor, tp_bitwise_or_Scalar, or_st, "__or__", "bitwise_or")
BINARY(nb_xor, tp_bitwise_xor_Tensor, tp_bitwise_xor_Scalar, xor_st, "__xor__", "bitwise_xor")
BINARY(nb_lshift, tp_bitwise_left_shift_Tensor, tp_bitwise_left_shift_Tensor_Scalar,
       tp_bitwise_left_shift_Scalar_Tensor, "__lshift__", "__rlshift__")
BINARY(nb_rshift, tp_bitwise_right_shift_Tensor, tp_bitwise_right_shift_Tensor_Scalar,
       tp_bitwise_right_shift_Scalar_Tensor, "__rshift__", "__rrshift__")

static PyObject *nb_power(PyObject *a, PyObject *b, PyObject *modulus) {
    static const binary_operator op = {tp_pow_Tensor_Tensor, tp_pow_Tensor_Scalar, tp_pow_Scalar, "__pow__",
                                       "__rpow__"};
    if (modulus != Py_None) return PyErr_Format(PyExc_TypeError, "pow() with a modulus is not supported for tensors");
    return binary(a, b, &op);
}

static PyObject *nb_matrix_multiply(PyObject *a, PyObject *b) {
    static const binary_operator op = {tp_matmul, NULL, NULL, "matmul", "__rmatmul__"};
    return binary(a, b, &op);
}

/* ---- in place ---- */

typedef struct {
    int (*tensors)(tp_tensor *, tp_tensor *);
    int (*with_number)(tp_tensor *, const tp_scalar *);
    const char *name;
} inplace_operator;

static PyObject *inplace(PyObject *a, PyObject *b, const inplace_operator *op) {
    tp_scalar s;
    if (!tp_py_is_tensor(a)) Py_RETURN_NOTIMPLEMENTED;
    if (tp_py_asks(a) || (tp_py_is_tensor(b) && tp_py_asks(b))) {
        const binary_operator asked = {.name = op->name};
        return ask_binary(a, b, true, &asked);
    }
    if (tp_py_is_tensor(b)) return tp_py_return_object(op->tensors(tp_py_tensor_borrow(a), tp_py_tensor_borrow(b)), a);
    int ok = tp_py_to_scalar(b, &s);
    if (ok <= 0) return ok < 0 ? NULL : ask_other(a, b, op->name);
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
INPLACE(nb_inplace_add, iadd_tt, iadd_ts, "add_")
INPLACE(nb_inplace_subtract, isub_tt, isub_ts, "sub_")
INPLACE(nb_inplace_multiply, tp_mul__Tensor, tp_mul__Scalar, "mul_")
INPLACE(nb_inplace_true_divide, tp_div__Tensor, tp_div__Scalar, "div_")
INPLACE(nb_inplace_floor_divide, tp_floor_divide__Tensor, tp_floor_divide__Scalar, "floor_divide_")
INPLACE(nb_inplace_remainder, tp_remainder__Tensor, tp_remainder__Scalar, "remainder_")
INPLACE(nb_inplace_and, tp_bitwise_and__Tensor, tp_bitwise_and__Scalar, "__iand__")
INPLACE(nb_inplace_or, tp_bitwise_or__Tensor, tp_bitwise_or__Scalar, "__ior__")
INPLACE(nb_inplace_xor, tp_bitwise_xor__Tensor, tp_bitwise_xor__Scalar, "__ixor__")
INPLACE(nb_inplace_lshift, tp_bitwise_left_shift__Tensor, tp_bitwise_left_shift__Tensor_Scalar, "__ilshift__")
INPLACE(nb_inplace_rshift, tp_bitwise_right_shift__Tensor, tp_bitwise_right_shift__Tensor_Scalar, "__irshift__")

static PyObject *nb_inplace_power(PyObject *a, PyObject *b, PyObject *modulus) {
    static const inplace_operator op = {tp_pow__Tensor, tp_pow__Scalar, "__ipow__"};
    if (modulus != Py_None) return PyErr_Format(PyExc_TypeError, "pow() with a modulus is not supported for tensors");
    return inplace(a, b, &op);
}

/* ---- unary ---- */

static PyObject *nb_negative(PyObject *a) {
    if (tp_py_asks(a)) return tp_py_ask_method("neg", a, NULL, 0, NULL);
    return tp_py_like_steal(a, tp_py_wrap_steal(tp_neg(tp_py_tensor_borrow(a))));
}
static PyObject *nb_positive(PyObject *a) {
    if (tp_py_asks(a)) return tp_py_ask_method("positive", a, NULL, 0, NULL);
    if (tp_py_tensor_borrow(a)->dtype == TP_BOOL)
        return PyErr_Format(PyExc_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
    return Py_NewRef(a);
}
static PyObject *nb_absolute(PyObject *a) {
    if (tp_py_asks(a)) return tp_py_ask_method("abs", a, NULL, 0, NULL);
    return tp_py_like_steal(a, tp_py_wrap_steal(tp_abs(tp_py_tensor_borrow(a))));
}
static PyObject *nb_invert(PyObject *a) {
    if (tp_py_asks(a)) return tp_py_ask_method("__invert__", a, NULL, 0, NULL);
    const tp_tensor *t = tp_py_tensor_borrow(a);
    if (tp_is_floating(t) || tp_is_complex(t))
        return PyErr_Format(PyExc_TypeError,
                            "~ (operator.invert) is only implemented on integer and Boolean-type tensors, not on %s",
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
        [Py_LT] = {tp_lt_Tensor, tp_lt_Scalar, NULL, "lt", "lt"},
        [Py_LE] = {tp_le_Tensor, tp_le_Scalar, NULL, "le", "le"},
        [Py_EQ] = {tp_eq_Tensor, tp_eq_Scalar, NULL, "__eq__", "__eq__"},
        [Py_NE] = {tp_ne_Tensor, tp_ne_Scalar, NULL, "ne", "ne"},
        [Py_GT] = {tp_gt_Tensor, tp_gt_Scalar, NULL, "gt", "gt"},
        [Py_GE] = {tp_ge_Tensor, tp_ge_Scalar, NULL, "ge", "ge"},
    };
    if (!tp_py_is_ndarray(b)) return binary(a, b, &table[op]);
    /* With two arrays each side would leave the comparison to the other, and Python compare identities. */
    tp_autoref *array = tp_py_tensor_from_data(b, TP_NO_DTYPE, TP_CPU);
    return array ? tp_py_wrap_steal(table[op].tensors(tp_py_tensor_borrow(a), array)) : NULL;
}
