/* gather_variants.c: the functional forms of what native/index/gather.c writes in place: a copy, and the in-place
 * operator.
 */
#include "NativeFunctions.h"
#include "iter/iter.h"
#include "native/index/gather.h"
#include "native/pointwise/pointwise_checks.h"

#define WITH_COPY(call)                             \
    tp_autoref *out = tp_clone(self, TP_NO_FORMAT); \
    return out && (call) == 0 ? tp_take(out) : NULL

tp_tensor *scatter_src_composite(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src) {
    WITH_COPY(tp_scatter__src(out, dim, index, src));
}
tp_tensor *scatter_value_composite(tp_tensor *self, int64_t dim, tp_tensor *index, const tp_scalar *value) {
    WITH_COPY(tp_scatter__value(out, dim, index, value));
}
tp_tensor *scatter_reduce_composite(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src,
                                    const char *reduce) {
    WITH_COPY(tp_scatter__reduce(out, dim, index, src, reduce));
}
tp_tensor *scatter_value_reduce_composite(tp_tensor *self, int64_t dim, tp_tensor *index, const tp_scalar *value,
                                          const char *reduce) {
    WITH_COPY(tp_scatter__value_reduce(out, dim, index, value, reduce));
}
tp_tensor *scatter_add_composite(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src) {
    WITH_COPY(tp_scatter_add_(out, dim, index, src));
}
tp_tensor *scatter_reduce_two_composite(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src,
                                        const char *reduce, bool include_self) {
    WITH_COPY(tp_scatter_reduce__two(out, dim, index, src, reduce, include_self));
}
tp_tensor *index_add_composite(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source,
                               const tp_scalar *alpha) {
    WITH_COPY(tp_index_add_(out, dim, index, source, alpha));
}
tp_tensor *index_copy_composite(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source) {
    WITH_COPY(tp_index_copy_(out, dim, index, source));
}
tp_tensor *index_fill_int_Scalar_composite(tp_tensor *self, int64_t dim, tp_tensor *index, const tp_scalar *value) {
    WITH_COPY(tp_index_fill__int_Scalar(out, dim, index, value));
}
tp_tensor *index_fill_int_Tensor_composite(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *value) {
    WITH_COPY(tp_index_fill__int_Tensor(out, dim, index, value));
}

/* masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor */
tp_tensor *masked_fill_Tensor_composite(tp_tensor *self, tp_tensor *mask, tp_tensor *value) {
    if (value->ndim != 0)
        return tp_fail_null(
            TP_RuntimeError,
            "masked_fill only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
            value->ndim);
    tp_scalar number;
    if (tp_is_complex(value) && !tp_is_complex(self) && tp_has_values(value) &&
        (tp_item(value, &number) < 0 || tp_scalar_check_fits(&number, (tp_dtype)self->dtype) < 0))
        return NULL;
    tp_autoref *cast = tp_to_dtype(value, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT);
    return cast ? tp_where_self(mask, cast, self) : NULL;
}
/* One element of self for each place of its memory, and whether the mask is true for one of those that share it. */
static tp_tensor2 fold_expanded(tp_tensor *self, tp_tensor *mask) {
    int64_t dims[TP_MAX_DIMS];
    int n = 0;
    tp_autoref *places = tp_retain(self);
    for (int d = 0; places && d < self->ndim; d++) {
        if (self->sizes[d] < 2 || self->strides[d]) continue;
        tp_autoref *wide = tp_take(places);
        places = tp_narrow(wide, d, 0, 1);
        dims[n++] = d;
    }
    tp_autoref *whole = places ? tp_expand(mask, tp_sizes(self), false) : NULL;
    tp_autoref *folded = whole ? tp_any_dims(whole, (tp_ints){dims, n}, true) : NULL;
    if (!folded || tp_warn_of_expanded("masked_fill_", self) < 0) return (tp_tensor2){{NULL, NULL}};
    return (tp_tensor2){{tp_take(places), tp_take(folded)}};
}
int tp_expanded_fill(tp_tensor *self, tp_tensor *mask, const tp_scalar *value) {
    tp_tensor2 both = fold_expanded(self, mask);
    tp_autoref *places = both.v[0], *folded = both.v[1];
    return places ? tp_masked_fill__Scalar(places, folded, value) : -1;
}
/* masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!) */
int masked_fill__Tensor_composite(tp_tensor *self, tp_tensor *mask, tp_tensor *value) {
    bool shared = tp_overlaps_itself(self);
    tp_tensor2 both = shared ? fold_expanded(self, mask) : (tp_tensor2){{tp_retain(self), tp_retain(mask)}};
    tp_autoref *places = both.v[0], *folded = both.v[1];
    tp_autoref *made = places ? tp_masked_fill_Tensor(places, folded, value) : NULL;
    return made ? tp_copy_(places, made, false) : -1;
}
