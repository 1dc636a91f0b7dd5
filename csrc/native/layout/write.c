/* write.c: what in-place and out= variants do to tensors of layouts: their parts become those of a result. */
#include "NativeFunctions.h"
#include "core/tls.h"
#include "iter/iter.h"
#include "native/layout/layout.h"
#include "native/layout/quantized.h"

int tp_write_quantized(tp_tensor *t, tp_tensor *made, const char *op) {
    if (!tp_is_quantized(made) || t->dtype != made->dtype)
        return tp_fail(TP_RuntimeError, "%s: a tensor of %s is not written with one of %s", op,
                       tp_dtype_names[t->dtype], tp_dtype_names[made->dtype]);
    if (!tp_same_sizes(t, made))
        return tp_fail(TP_RuntimeError, "%s: a quantized tensor keeps its size where it is written", op);
    tp_autoparts *own = tp_parts_of(t), *others = tp_parts_of(made);
    if (!own || !others || tp_check_writable(t, op) < 0) return -1;
    if (own->layout != others->layout)
        return tp_fail(TP_RuntimeError, "%s: tensors that are quantized per tensor and per channel", op);
    if (tp_copy_(own->part[0], others->part[0], false) < 0) return -1;
    tp_tensor *parts[TP_MAX_PARTS] = {own->part[0], others->part[1], others->part[2]};
    tp_parts *read = tp_parts_new(own->layout, parts, others->fact);
    if (!read || tp_put_parts_steal(t, read) < 0) return -1;
    tp_bump_version(t);
    return 0;
}

static bool same_memory(const tp_tensor *a, const tp_tensor *b) {
    return a->storage == b->storage && a->byte_offset == b->byte_offset && tp_same_sizes(a, b);
}

/* Whether parts in lines keep their pattern: then the values are written where they lie, which views of them see. */
static bool keep_pattern(const tp_parts *own, const tp_parts *others) {
    return same_memory(own->part[0], others->part[0]) && same_memory(own->part[1], others->part[1]) &&
           tp_same_sizes(own->part[2], others->part[2]);
}

static int put(tp_tensor *t, tp_tensor *made) {
    tp_autoref *cast =
        made->dtype == t->dtype ? tp_retain(made) : tp_to_dtype(made, (tp_dtype)t->dtype, false, false, TP_NO_FORMAT);
    tp_autoparts *own = tp_parts_of(t);
    tp_parts *parts = cast && own ? tp_parts_of(cast) : NULL;
    if (!parts) return -1;
    if (t->keys & TP_BIT(SparseCsr) && tp_same_sizes(t, made) && keep_pattern(own, parts)) {
        int status = tp_copy_(own->part[2], parts->part[2], false);
        tp_parts_release(parts);
        return status;
    }
    if (tp_put_parts_steal(t, parts) < 0) return -1;
    if (tp_same_sizes(t, made)) return 0;
    int64_t none[TP_MAX_DIMS] = {0};
    return tp_tensor_set_geometry(t, tp_sizes(made), (tp_ints){none, made->ndim});
}

static int refuse_recorded(const tp_tensor *t, const tp_tensor *made, const char *op) {
    if (tp_tls.grad_disabled || !((t->flags | made->flags) & TP_FLAG_REQUIRES_GRAD)) return 0;
    return tp_fail(TP_RuntimeError,
                   "%s: a sparse tensor that requires grad is not changed in place; under no_grad it is", op);
}

int tp_copy_lines(tp_tensor *t, tp_tensor *from, const char *op, bool *done) {
    tp_autoparts *own = tp_parts_of(t), *others = tp_parts_of(from);
    if (!own || !others) return -1;
    *done = t->keys & TP_BIT(SparseCsr) && own->layout == others->layout && tp_same_sizes(t, from);
    for (int i = 0; i < 3; i++) *done = *done && tp_same_sizes(own->part[i], others->part[i]);
    if (!*done) return 0;
    if (refuse_recorded(t, from, op) < 0 || tp_check_writable(t, op) < 0) return -1;
    for (int i = 0; i < 3; i++)
        if (tp_copy_(own->part[i], others->part[i], false) < 0) return -1;
    tp_bump_version(t);
    return 0;
}

int tp_refuse_unmerged(tp_tensor *t, const char *op) {
    bool merged = true;
    if (tp_layout_of(t) != TP_SPARSE_COO) return 0;
    if (tp_is_coalesced(t, &merged) < 0) return -1;
    return merged ? 0 : tp_fail(TP_RuntimeError, "%s requires coalesced input", op);
}

int tp_replace_layout(tp_tensor *t, tp_tensor *made, const char *op) {
    if (refuse_recorded(t, made, op) < 0 || tp_check_writable(t, op) < 0 || tp_tensor_assign(t, made) < 0) return -1;
    tp_bump_version(t);
    return 0;
}

int tp_write_layout(tp_tensor *t, tp_tensor *made, const char *op) {
    if (tp_is_quantized(t)) return tp_write_quantized(t, made, op);
    if (tp_check_castable((tp_dtype)made->dtype, (tp_dtype)t->dtype) < 0) return -1;
    if (tp_layout_of(t) == TP_STRIDED && tp_layout_of(made) == TP_STRIDED) {
        if (!tp_same_sizes(t, made) && tp_resize_(t, tp_sizes(made), TP_NO_FORMAT) < 0) return -1;
        return tp_copy_(t, made, false);
    }
    if (tp_layout_of(t) != tp_layout_of(made))
        return tp_fail(TP_RuntimeError, "%s: a tensor of the layout %s is not written with one of the layout %s", op,
                       tp_layouts[tp_layout_of(t)].name, tp_layouts[tp_layout_of(made)].name);
    if (refuse_recorded(t, made, op) < 0 || tp_check_writable(t, op) < 0 || put(t, made) < 0) return -1;
    tp_bump_version(t);
    return 0;
}
