/* variants.c: out= and in-place variants that copy a functional variant's result.
 *
 * They run below autograd: the layers above have recorded the variant itself, so the copy must not be seen by them. */
#include "native/common/variants.h"

#include "Functions.h"
#include "core/determinism.h"
#include "dispatch/key.h"
#include "iter/iter.h"
#include "native/common/out.h"

#define LAYERS (TP_AUTOCAST_KEYS | TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView))

static int copy_below_layers(tp_tensor *self, tp_tensor *made) {
    tp_exclude_guard guard = tp_exclude(LAYERS);
    return tp_copy_(self, made, false);
}

static int TP_COLD fail_no_gradient(void) {
    return tp_fail(TP_RuntimeError, "functions with out=... arguments don't support automatic differentiation, but one "
                                    "of the arguments requires grad.");
}

/* The copy is not recorded: a result with a history would lose it, an `out` that wants a gradient get none. */
static int check_out(const tp_tensor *out, const tp_tensor *made, tp_variant variant) {
    if (tp_unlikely((out->flags | made->flags) & TP_FLAG_REQUIRES_GRAD) && !tp_tls.grad_disabled)
        return fail_no_gradient();
    return tp_check_given(out, variant, (tp_dtype)made->dtype, made->device);
}

static int resize_out(tp_tensor *out, const tp_tensor *made) {
    return tp_same_sizes(out, made) ? 0 : tp_resize_out(out, tp_sizes(made), TP_NO_INTS);
}
int tp_fit_out(tp_tensor *out, const tp_tensor *made) {
    return tp_check_internal_overlap(out) < 0 ? -1 : resize_out(out, made);
}

static int into_out(tp_tensor *out, tp_tensor *made, tp_variant variant) {
    if (check_out(out, made, variant) < 0) return -1;
    return resize_out(out, made) < 0 ? -1 : copy_below_layers(out, made);
}

int tp_copy_into_out(tp_tensor *out, tp_tensor *made) { return into_out(out, made, TP_VARIANT_OUT); }
int tp_cast_into_out(tp_tensor *out, tp_tensor *made) { return into_out(out, made, TP_VARIANT_OUT_CAST); }

int tp_made_into_out(tp_tensor *out, tp_tensor *made) {
    if (check_out(out, made, TP_VARIANT_OUT) < 0) return -1;
    if (!tp_same_sizes(out, made) && tp_tensor_resize(out, tp_sizes(made), TP_NO_INTS) < 0) return -1;
    return copy_below_layers(out, made);
}
int tp_range_into_out(tp_tensor *out, tp_tensor *made) {
    tp_autoref *shaped = out->numel == made->numel ? tp_view(made, tp_sizes(out)) : tp_retain(made);
    return shaped ? tp_made_into_out(out, shaped) : -1;
}

static int warn_of_count(const tp_tensor *out, int64_t count) {
    tp_autotext had = {0};
    tp_text_ints(&had, tp_sizes(out));
    return tp_warn(
        "The number of elements in the out tensor of shape %s is %lld which does not match the computed number "
        "of elements %lld: the out tensor will be resized to (%lld,). Rounding can be what the difference comes from.",
        had.text ? had.text : "", (long long)out->numel, (long long)count, (long long)count);
}

int tp_counted_into_out(tp_tensor *out, tp_tensor *made) {
    bool fits = !out->numel || out->numel == made->numel;
    return fits || warn_of_count(out, made->numel) == 0 ? tp_range_into_out(out, made) : -1;
}

int tp_check_out_whole(const tp_tensor *out, tp_tensor *const *read, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (read[i] && tp_overlap_of(out, read[i]) == TP_OVERLAP_PARTIAL) return tp_check_no_overlap(out, read[i]);
    return 0;
}
int tp_check_out_apart(const tp_tensor *out, const tp_tensor *read) {
    return tp_check_internal_overlap(out) < 0 ? -1 : tp_check_no_overlap(out, read);
}
int tp_check_out_apart_of(const tp_tensor *out, tp_tensors read) {
    for (int64_t i = 0; i < read.size; i++)
        if (tp_check_out_apart(out, read.data[i]) < 0) return -1;
    return 0;
}

static int check_fits_self(const tp_tensor *self, const tp_tensor *made) {
    if (tp_check_given_dtype(self, TP_VARIANT_INPLACE, (tp_dtype)made->dtype) < 0) return -1;
    if (tp_same_sizes(self, made)) return 0;
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(self));
    tp_text_add(&text, " doesn't match the broadcast shape ");
    tp_text_ints(&text, tp_sizes(made));
    return tp_fail(TP_RuntimeError, "output with shape %s", text.text ? text.text : "");
}

int tp_copy_into_self(tp_tensor *self, tp_tensor *made) {
    return check_fits_self(self, made) < 0 ? -1 : copy_below_layers(self, made);
}

int tp_copy_into_self_recorded(tp_tensor *self, tp_tensor *made) {
    return check_fits_self(self, made) < 0 ? -1 : tp_copy_(self, made, false);
}

tp_tensor *tp_unwritten(tp_tensor *self, tp_tensor *const *read, int n) {
    bool recorded = false;
    for (int i = 0; i < n && !recorded; i++)
        recorded = read[i] && (read[i]->flags | (read[i]->base ? read[i]->base->flags : 0)) & TP_FLAG_REQUIRES_GRAD;
    return recorded && !tp_tls.grad_disabled ? tp_clone(self, TP_NO_FORMAT) : tp_retain(self);
}

static int into_out_list(tp_tensors outs, const tp_tensor_seq *made, tp_variant variant) {
    if (outs.size != made->size)
        return tp_fail(TP_RuntimeError, "expected an out= list of %lld tensors, got %lld", (long long)made->size,
                       (long long)outs.size);
    for (int64_t i = 0; i < made->size; i++)
        if (check_out(outs.data[i], made->items[i], variant) < 0) return -1; /* before the first is written */
    for (int64_t i = 0; i < made->size; i++)
        if (into_out(outs.data[i], made->items[i], variant) < 0) return -1;
    return 0;
}

int tp_copy_into_out_list(tp_tensors outs, const tp_tensor_seq *made) {
    return into_out_list(outs, made, TP_VARIANT_OUT);
}
int tp_cast_into_out_list(tp_tensors outs, const tp_tensor_seq *made) {
    return into_out_list(outs, made, TP_VARIANT_OUT_CAST);
}

int tp_no_result(void) {
    if (tp_error_pending() != TP_NoError) return -1;
    return tp_fail(TP_RuntimeError, "out=: these arguments have no result that could be written into it");
}

static int into_outs_steal(tp_tensor *const *outs, tp_tensor *const *made, int n, tp_variant variant) {
    int status = 0;
    for (int i = 0; i < n && status == 0; i++)
        status = made[i] ? check_out(outs[i], made[i], variant) : 0; /* before the first is written */
    for (int i = 0; i < n; i++) {
        if (made[i] && status == 0) status = into_out(outs[i], made[i], variant);
        tp_release(made[i]);
    }
    return status;
}

int tp_copy_into_outs_steal(tp_tensor *const *outs, tp_tensor *const *made, int n) {
    return into_outs_steal(outs, made, n, TP_VARIANT_OUT);
}
int tp_cast_into_outs_steal(tp_tensor *const *outs, tp_tensor *const *made, int n) {
    return into_outs_steal(outs, made, n, TP_VARIANT_OUT_CAST);
}

tp_tensor_seq *tp_clone_list(tp_tensors list) {
    tp_autoseq *made = tp_tensor_seq_new(list.size);
    for (int64_t i = 0; made && i < list.size; i++)
        if (!(made->items[i] = tp_clone(list.data[i], TP_NO_FORMAT))) return NULL;
    return tp_take(made);
}

int tp_copy_list(tp_tensors outs, tp_tensors from) {
    if (outs.size != from.size)
        return tp_fail(TP_RuntimeError, "out: %lld tensors for %lld results", (long long)outs.size,
                       (long long)from.size);
    for (int64_t i = 0; i < outs.size; i++)
        if (tp_copy_into_out(outs.data[i], from.data[i]) < 0) return -1;
    return 0;
}
