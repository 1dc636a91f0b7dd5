/* region.c: see region.h. */
#include "autograd/region.h"

#include "Functions.h"
#include "autograd/internal.h"
#include "autograd/parts.h"

static int save_geometry(const tp_tensor *t, bool as_real, tp_ints *sizes, tp_ints *strides) {
    int64_t room[2][TP_MAX_DIMS + 1];
    int n = t->ndim;
    for (int i = 0; i < n; i++) {
        room[0][i] = t->sizes[i];
        room[1][i] = as_real ? 2 * t->strides[i] : t->strides[i];
    }
    if (as_real) room[0][n] = 2, room[1][n++] = 1;
    *sizes = tp_save_ints((tp_ints){room[0], n});
    *strides = tp_save_ints((tp_ints){room[1], n});
    return n > 0 && (!sizes->data || !strides->data) ? -1 : 0;
}

int tp_region_save(tp_region *r, const tp_tensor *base, const tp_tensor *view) {
    bool mixed = base->dtype != view->dtype;
    r->complex_base = mixed && tp_is_complex(base);
    r->complex_view = mixed && tp_is_complex(view);
    if (mixed && (r->complex_base == r->complex_view))
        return tp_fail(TP_RuntimeError, "a view of another dtype (%s of %s) that was written in place has no gradient",
                       tp_dtype_names[view->dtype], tp_dtype_names[base->dtype]);
    r->conjugated = (base->keys ^ view->keys) & TP_BIT(Conjugate);
    r->negated = (base->keys ^ view->keys) & TP_BIT(Negative);
    int64_t itemsize = tp_itemsize((tp_dtype)(r->complex_view ? base->dtype : view->dtype));
    r->offset = (view->byte_offset - base->byte_offset) / itemsize;
    return save_geometry(base, r->complex_base, &r->base_sizes, &r->base_strides) < 0 ||
                   save_geometry(view, r->complex_view, &r->sizes, &r->strides) < 0
               ? -1
               : 0;
}

void tp_region_free(tp_region *r) {
    tp_saved_ints_free(&r->base_sizes);
    tp_saved_ints_free(&r->base_strides);
    tp_saved_ints_free(&r->sizes);
    tp_saved_ints_free(&r->strides);
}

tp_tensor *tp_read_as_view(const tp_region *r, tp_tensor *t) {
    tp_autoref *c = t && r->conjugated && tp_is_complex(t) ? tp__conj(t) : tp_retain(t);
    return c && r->negated ? tp__neg_view(c) : tp_take(c);
}

tp_tensor *tp_region_of(const tp_region *r, tp_tensor *base) {
    tp_autoref *slice = tp_as_strided(base, r->sizes, r->strides, TP_SOME_INT(tp_storage_offset(base) + r->offset));
    tp_autoref *of_dtype = slice && r->complex_view ? tp_view_as_complex(slice) : tp_retain(slice);
    return tp_read_as_view(r, of_dtype);
}

tp_tensor *tp_same_view(const tp_tensor *view, tp_tensor *whole) {
    TP_CLEANUP(tp_region_free) tp_region r = {0};
    tp_autoref *from = tp_strided_part(view->base), *to = tp_strided_part(view);
    if (!from || !to || tp_region_save(&r, from, to) < 0) return NULL;
    tp_autoref *flat = tp_is_in_parts(view->base) ? tp__layout_at(whole, view->base) : tp_retain(whole);
    tp_autoref *plain = flat && r.complex_base ? tp_view_as_real(flat) : tp_retain(flat);
    tp_autoref *part = plain ? tp_region_of(&r, plain) : NULL;
    if (!part || !tp_is_in_parts(view)) return tp_take(part);
    tp_autoref *pattern = tp_pattern_of(view);
    return pattern ? tp__layout_like(pattern, part) : NULL;
}
