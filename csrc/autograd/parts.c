/* parts.c: tensors that have a layout's parts, as views of memory (Note [Views and layouts] in view.c). */
#include "autograd/parts.h"

#include "core/layout.h"

tp_tensor *tp_strided_part(const tp_tensor *t) {
    if (!tp_is_in_parts(t)) return tp_retain((tp_tensor *)t);
    tp_autoparts *p = tp_parts_of(t);
    return p ? tp_retain(p->part[tp_layouts[p->layout].values]) : NULL;
}

tp_tensor *tp_pattern_of(const tp_tensor *t) {
    tp_parts *p = tp_parts_of(t);
    tp_tensor *pattern = p ? tp_new_of_parts_steal(p, tp_sizes(t)) : NULL;
    if (pattern) pattern->flags |= TP_FLAG_UNVERSIONED;
    return pattern;
}

uint32_t tp_version_of_part(const tp_tensor *t) {
    tp_autoref *values = tp_strided_part(t);
    return tp_version(values);
}

bool tp_views_base(const tp_tensor *view) {
    if (tp_likely(!tp_is_in_parts(view) && !tp_is_in_parts(view->base))) return true;
    tp_autoref *mine = tp_strided_part(view), *its = tp_strided_part(view->base);
    return mine->storage == its->storage;
}

uint32_t tp_contents_version(const tp_tensor *t) {
    if (tp_likely(!tp_is_in_parts(t)) || t->flags & TP_FLAG_UNVERSIONED) return tp_version(t);
    uint32_t of_values = tp_version_of_part(t);
    return tp_is_nested(t) ? of_values : of_values + tp_version(t);
}
