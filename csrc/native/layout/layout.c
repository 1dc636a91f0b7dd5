/* layout.c: tensors of layouts: their parts, and their values for autograd. */
#include "native/layout/layout.h"

#include "NativeFunctions.h"
#include "iter/iter.h"

#include <string.h>

/* _layout_part(Tensor self, int number) -> Tensor: as it is, without history. */
tp_tensor *layout_part_of(tp_tensor *self, int64_t number) {
    tp_autoparts *parts = tp_parts_of(self);
    if (!parts) return NULL;
    const tp_layout_info *info = &tp_layouts[parts->layout];
    if (number < 0 || number >= info->count)
        return tp_fail_null(TP_IndexError, "a tensor of the layout %s has no part %lld", info->name, (long long)number);
    if (!parts->part[number])
        return tp_fail_null(TP_RuntimeError, "this tensor of the layout %s has no %s", info->name, info->parts[number]);
    return tp_retain(parts->part[number]);
}

/* _layout_fact(Tensor self, int number) -> int */
int layout_fact_of(tp_tensor *self, int64_t number, int64_t *result) {
    tp_autoparts *parts = tp_parts_of(self);
    if (!parts || number < 0 || number >= TP_MAX_FACTS) return parts ? tp_fail(TP_IndexError, "no such fact") : -1;
    *result = parts->fact[number];
    return 0;
}

void tp_block_sizes(const tp_parts *p, int64_t blocks[2]) {
    const bool in_blocks = p->layout == TP_SPARSE_BSR || p->layout == TP_SPARSE_BSC;
    const int first = p->part[1]->ndim;
    for (int i = 0; i < 2; i++) blocks[i] = in_blocks ? p->part[2]->sizes[first + i] : 1;
}

static tp_tensor *unmarked(const tp_tensor *values) {
    return tp_new_alias(values, tp_sizes(values), tp_strides(values), values->byte_offset);
}

tp_tensor *tp_of_parts(tp_layout layout, tp_tensor *const *parts, const int64_t *facts, tp_ints sizes) {
    int count = tp_layouts[layout].count, place = tp_layouts[layout].values;
    tp_tensor *all[TP_MAX_PARTS];
    tp_autoref *own = unmarked(parts[place]);
    for (int i = 0; i < count; i++) all[i] = i == place ? own : parts[i];
    tp_parts *made = own ? tp_parts_new(layout, all, facts) : NULL;
    return made ? tp_new_of_parts_steal(made, sizes) : NULL;
}

/* _layout_values(Tensor(a) self) -> Tensor(a): the same memory in a tensor of its own, which autograd may mark. */
tp_tensor *layout_values_of(tp_tensor *self) {
    tp_autoparts *parts = tp_parts_of(self);
    if (!parts) return NULL;
    return unmarked(parts->part[tp_layouts[parts->layout].values]);
}

/* alias(Tensor(a) self) -> Tensor(a), detach(Tensor(a) self) -> Tensor(a): another tensor on the same storage. */
tp_tensor *alias_of_layout(tp_tensor *self) { return tp_new_alias(self, tp_sizes(self), tp_strides(self), 0); }

/* _layout_like(Tensor self, Tensor(a) values) -> Tensor(a): self's pattern, and other values. */
tp_tensor *layout_like_of(tp_tensor *self, tp_tensor *values) {
    tp_autoparts *parts = tp_parts_of(self);
    if (!parts) return NULL;
    int place = tp_layouts[parts->layout].values;
    tp_tensor *all[TP_MAX_PARTS];
    if (!tp_same_sizes(parts->part[place], values))
        return tp_fail_null(TP_RuntimeError, "_layout_like: values of other sizes than the pattern's");
    memcpy(all, parts->part, sizeof all);
    all[place] = values;
    return tp_of_parts(parts->layout, all, parts->fact, tp_sizes(self));
}

/* _same_pattern(Tensor self, Tensor other) -> bool: whether values of the one are values of the other. */
int _same_pattern_composite(tp_tensor *self, tp_tensor *other, bool *result) {
    *result = false;
    if (tp_layout_of(self) != tp_layout_of(other) || !tp_same_sizes(self, other)) return 0;
    tp_autoparts *a = tp_parts_of(self), *b = tp_parts_of(other);
    if (!a || !b) return -1;
    const tp_layout_info *info = &tp_layouts[a->layout];
    if (!tp_same_sizes(a->part[info->values], b->part[info->values])) return 0;
    *result = true;
    for (int i = 0; *result && i < info->count; i++)
        if (i != info->values && a->part[i] != b->part[i]) {
            *result = a->part[i] && b->part[i];
            if (*result && tp_equal(a->part[i], b->part[i], result) < 0) return -1;
        }
    return 0;
}
