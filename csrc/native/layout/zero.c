/* zero.c: tensors of zeros without memory (Note [Zero tensors] in conjugate/conjugate.h), and the operators whose
 * results are known without elements. */
#include "NativeFunctions.h"
#include "core/scalar.h"
#include "core/scalar_math.h"
#include "dispatch/key.h"
#include "iter/iter.h"
#include "native/layout/layout.h"

/* _efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, ...) */
tp_tensor *_efficientzerotensor_explicit(tp_ints size, tp_dtype dtype, tp_layout layout, tp_device device,
                                         tp_opt_bool pin_memory TP_UNUSED) {
    if (layout >= 0 && layout != TP_STRIDED)
        return tp_fail_null(TP_RuntimeError, "_efficientzerotensor: a tensor of zeros is strided");
    if (device.type < 0) device = tp_default_device();
    if (dtype < 0) dtype = tp_default_dtype();
    int64_t numel = tp_checked_numel(size), strides[TP_MAX_DIMS], step = 1;
    if (numel < 0 || tp_device_resolve(device, &device) < 0) return NULL;
    if (size.size > TP_MAX_DIMS || numel > INT64_MAX / 16)
        return tp_fail_null(TP_RuntimeError, "_efficientzerotensor: sizes that no tensor has");
    for (int64_t d = size.size - 1; d >= 0; d--) strides[d] = step, step *= size.data[d] > 1 ? size.data[d] : 1;
    tp_storage *storage = tp_storage_from_blob(device, NULL, (size_t)numel * (size_t)tp_itemsize(dtype), NULL, NULL);
    tp_tensor *t = storage ? tp_new_on_storage(storage, size, (tp_ints){strides, size.size}, 0, dtype) : NULL;
    tp_storage_release(storage);
    if (t) t->keys = (t->keys & ~TP_BACKEND_KEYS) | TP_BIT(ZeroTensor);
    return t;
}

/* _is_zerotensor(Tensor self) -> bool */
int _is_zerotensor_composite(tp_tensor *self, bool *result) {
    *result = self->keys & TP_BIT(ZeroTensor);
    return 0;
}

static bool is_zero(const tp_tensor *t) { return t->keys & TP_BIT(ZeroTensor); }

/* What a pointwise operator of two tensors gives. */
typedef struct {
    int64_t shape[TP_MAX_DIMS];
    tp_ints sizes;
    tp_dtype dtype;
    tp_device device;
} outcome;

static int outcome_of(tp_tensor *a, tp_tensor *b, tp_promotion promotion, outcome *o) {
    const tp_operand operands[] = {{a, NULL}, {b, NULL}};
    int ndim = tp_iter_broadcast(operands, 2, o->shape);
    tp_dtype common = ndim < 0 ? TP_NO_DTYPE : tp_result_type(operands, 2);
    if (common == TP_NO_DTYPE) return -1;
    o->dtype = tp_promotion_compute(promotion, common);
    o->sizes = (tp_ints){o->shape, ndim};
    o->device = a->ndim ? a->device : b->device;
    return 0;
}

static tp_tensor *zeros_of(const outcome *o) {
    return _efficientzerotensor_explicit(o->sizes, o->dtype, TP_STRIDED, o->device, -1);
}

static tp_tensor *copy_as(tp_tensor *t, const outcome *o, const tp_scalar *factor) {
    tp_autoref *wide = tp_expand(t, o->sizes, false);
    tp_autoref *copy =
        wide ? tp__to_copy(wide, o->dtype, TP_NO_LAYOUT, o->device, -1, false, TP_CONTIGUOUS_FORMAT) : NULL;
    return !copy || tp_scalar_equals_int(factor, 1) ? tp_take(copy) : tp_mul_Scalar(copy, factor);
}

/* add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor */
tp_tensor *add_zerotensor(tp_tensor *self, tp_tensor *other, const tp_scalar *alpha) {
    outcome o;
    if (outcome_of(self, other, TP_PROMOTE_DEFAULT, &o) < 0) return NULL;
    if (!is_zero(self)) return copy_as(self, &o, TP_SCALAR_I(1));
    return is_zero(other) ? zeros_of(&o) : copy_as(other, &o, alpha);
}

/* sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor */
tp_tensor *sub_zerotensor(tp_tensor *self, tp_tensor *other, const tp_scalar *alpha) {
    tp_scalar minus = tp_scalar_neg(alpha);
    return add_zerotensor(self, other, &minus);
}

/* mul.Tensor(Tensor self, Tensor other) -> Tensor: nothing is looked at, infinities neither. */
tp_tensor *mul_zerotensor(tp_tensor *self, tp_tensor *other) {
    outcome o;
    return outcome_of(self, other, TP_PROMOTE_DEFAULT, &o) < 0 ? NULL : zeros_of(&o);
}

/* div.Tensor(Tensor self, Tensor other) -> Tensor */
tp_tensor *div_zerotensor(tp_tensor *self, tp_tensor *other) {
    outcome o;
    if (outcome_of(self, other, TP_PROMOTE_INT_TO_FLOAT, &o) < 0) return NULL;
    if (!is_zero(other)) return zeros_of(&o);
    tp_autoref *zero = tp_zeros((tp_ints){NULL, 0}, (tp_dtype)other->dtype, TP_STRIDED, other->device, -1);
    tp_autoref *by = zero ? tp_expand(zero, tp_sizes(other), false) : NULL;
    tp_autoref *number = !by             ? NULL
                         : is_zero(self) ? tp_zeros(tp_sizes(self), (tp_dtype)self->dtype, TP_STRIDED, self->device, -1)
                                         : tp_retain(self);
    return number ? tp_div_Tensor(number, by) : NULL;
}

/* mul.Scalar(Tensor self, Scalar other) -> Tensor, and div.Scalar */
static tp_tensor *scaled(tp_tensor *self, const tp_scalar *number, tp_promotion promotion) {
    tp_dtype common = tp_result_type((tp_operand[]){{self, NULL}, {NULL, number}}, 2);
    if (common == TP_NO_DTYPE) return NULL;
    return _efficientzerotensor_explicit(tp_sizes(self), tp_promotion_compute(promotion, common), TP_STRIDED,
                                         self->device, -1);
}
tp_tensor *mul_Scalar_zerotensor(tp_tensor *self, const tp_scalar *other) {
    return scaled(self, other, TP_PROMOTE_DEFAULT);
}
tp_tensor *div_Scalar_zerotensor(tp_tensor *self, const tp_scalar *other) {
    return scaled(self, other, TP_PROMOTE_INT_TO_FLOAT);
}

/* dot(Tensor self, Tensor tensor) -> Tensor */
tp_tensor *dot_zerotensor(tp_tensor *self, tp_tensor *other) {
    if (self->ndim != 1 || !tp_same_sizes(self, other) || self->dtype != other->dtype)
        return tp_fail_null(TP_RuntimeError, "dot: expected two vectors of one size and dtype");
    return _efficientzerotensor_explicit((tp_ints){NULL, 0}, (tp_dtype)self->dtype, TP_STRIDED, self->device, -1);
}

/* clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor: elements of its own. */
tp_tensor *clone_zerotensor(tp_tensor *self, tp_memory_format memory_format) {
    bool kept = (memory_format == TP_NO_FORMAT || memory_format == TP_PRESERVE_FORMAT) && tp_is_dense(self);
    tp_autoref *own =
        kept ? tp_empty_strided(tp_sizes(self), tp_strides(self), (tp_dtype)self->dtype, TP_STRIDED, self->device, -1)
             : tp_empty_memory_format(tp_sizes(self), (tp_dtype)self->dtype, TP_STRIDED, self->device, -1,
                                      kept ? TP_NO_FORMAT : memory_format);
    return own && tp_zero_(own) == 0 ? tp_take(own) : NULL;
}

/* copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!) */
int copy__zerotensor(tp_tensor *self, tp_tensor *src TP_UNUSED, bool non_blocking TP_UNUSED) {
    int64_t shape[TP_MAX_DIMS];
    if (is_zero(self))
        return tp_fail(TP_RuntimeError, "ZeroTensors are immutable. Please materialize the tensor using `.clone()`, if "
                                        "you want a mutable zero tensor.");
    int ndim = tp_broadcast_sizes(tp_sizes(self), tp_sizes(src), shape);
    if (ndim < 0) return -1;
    if (ndim != self->ndim) return tp_fail(TP_RuntimeError, "copy_: the source has more dimensions");
    for (int d = 0; d < ndim; d++)
        if (shape[d] != self->sizes[d])
            return tp_fail(TP_RuntimeError,
                           "copy_: the source's sizes do not broadcast to those of the tensor written");
    return tp_zero_(self);
}
