/* tags.c: what the tags of an operator do before or after its kernel. */
#include "native/common/tags.h"

#include "Functions.h"
#include "core/determinism.h"

int tp_check_determinism(const char *op) {
    switch (tp_determinism()) {
    case TP_DETERMINISM_OFF: return 0;
    case TP_DETERMINISM_WARN:
        return tp_warn("%s does not have a deterministic implementation, but you set "
                       "'use_deterministic_algorithms(True, warn_only=True)': its last bits may differ from run to run",
                       op);
    default:
        return tp_fail(TP_RuntimeError,
                       "%s does not have a deterministic implementation, but you set "
                       "'torch.use_deterministic_algorithms(True)'.\n"
                       "  next step: switch it off around this call, or pass warn_only=True",
                       op);
    }
}

int tp_warn_first(bool *warned, const char *text) { return tp_warns_here(warned) ? tp_warn("%s", text) : 0; }

int tp_refuse_meta(const tp_tensor *t, const char *op, const char *tag) {
    if (!t || tp_has_values(t)) return 0;
    return tp_fail(TP_NotImplementedError,
                   "%s: not possible on Meta tensors, which have no values: the operator is tagged %s", op, tag);
}

tp_tensor *tp_copy_of_view_steal(tp_tensor *view) {
    tp_autoref *owned = view;
    return owned ? tp_clone(owned, TP_CONTIGUOUS_FORMAT) : NULL;
}

tp_tensor_seq *tp_copies_of_views_steal(tp_tensor_seq *views) {
    if (!views) return NULL;
    for (int64_t i = 0; i < views->size; i++) {
        tp_tensor *copy = tp_copy_of_view_steal(views->items[i]);
        views->items[i] = copy;
        if (!copy) return tp_tensor_seq_free(views), NULL;
    }
    return views;
}
