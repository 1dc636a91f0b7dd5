/* rounding.c: float32 copies of 16-bit tensors, and results that are rounded once. */
#include "native/common/rounding.h"

#include "Functions.h"
#include "prim/transfer.h"

static bool is_reduced(const tp_tensor *t) { return t && tp_is_reduced_dtype((tp_dtype)t->dtype); }

bool tp_has_reduced(tp_tensors list) {
    for (int64_t i = 0; i < list.size; i++)
        if (is_reduced(list.data[i])) return true;
    return false;
}

/* False: a floating tensor of another dtype. */
static bool agrees(const tp_tensor *t, tp_dtype *found) {
    if (!t || !(tp_is_floating(t) || tp_is_complex(t))) return true;
    if (*found == TP_NO_DTYPE) *found = (tp_dtype)t->dtype;
    return (tp_dtype)t->dtype == *found;
}

tp_dtype tp_rounded_dtype(tp_tensor *const *tensors, int n, const tp_tensors *lists, int nlists) {
    tp_dtype found = TP_NO_DTYPE;
    for (int i = 0; i < n; i++)
        if (!agrees(tensors[i], &found)) return TP_NO_DTYPE;
    for (int l = 0; l < nlists; l++)
        for (int64_t i = 0; i < lists[l].size; i++)
            if (!agrees(lists[l].data[i], &found)) return TP_NO_DTYPE;
    return found != TP_NO_DTYPE && tp_is_reduced_dtype(found) ? found : TP_NO_DTYPE;
}

tp_tensor *tp_widened(tp_tensor *t) {
    return is_reduced(t) ? tp_to_dtype(t, tp_compute_dtype((tp_dtype)t->dtype), false, false, TP_NO_FORMAT)
                         : tp_retain(t);
}

tp_tensor *tp_widened_steal(tp_tensor *t) {
    if (!is_reduced(t)) return t;
    tp_autoref *given = t;
    return tp_widened(given);
}

tp_tensor_seq *tp_widened_list(tp_tensors list) {
    tp_autoseq *wide = tp_tensor_seq_of(list);
    return wide && tp_widen_list(wide) == 0 ? tp_take(wide) : NULL;
}

int tp_widen_list(tp_tensor_seq *list) {
    for (int64_t i = 0; i < list->size; i++) {
        bool given = list->items[i] != NULL;
        list->items[i] = tp_widened_steal(list->items[i]);
        if (given && !list->items[i]) return -1;
    }
    return 0;
}

tp_tensor *tp_rounded_steal(tp_tensor *t, tp_dtype to) {
    if (to == TP_COMPLEX32 && t && t->dtype == TP_FLOAT32) to = TP_FLOAT16; /* a part, or a length */
    if (!t || t->dtype != tp_compute_dtype(to)) return t;
    tp_autoref *wide = t;
    return tp_to_dtype(wide, to, false, false, TP_NO_FORMAT);
}

int tp_round_all(tp_tensor **made, int n, tp_dtype to) {
    bool whole = made[0] != NULL;
    for (int i = 0; whole && i < n; i++) {
        bool given = made[i] != NULL;
        made[i] = tp_rounded_steal(made[i], to);
        whole = !given || made[i];
    }
    for (int i = 0; !whole && i < n; i++) {
        tp_release(made[i]);
        made[i] = NULL;
    }
    return whole ? 0 : -1;
}

tp_tensor_seq *tp_rounded_list_steal(tp_tensor_seq *list, tp_dtype to) {
    tp_autoseq *all = list;
    for (int64_t i = 0; all && i < all->size; i++) {
        bool given = all->items[i] != NULL;
        all->items[i] = tp_rounded_steal(all->items[i], to);
        if (given && !all->items[i]) return NULL;
    }
    return tp_take(all);
}

int tp_round_into(tp_tensor *self, tp_tensor *wide) { return wide == self ? 0 : tp_copy_data(self, wide); }
