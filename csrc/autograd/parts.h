/* parts.h: tensors that have a layout's parts, as views of memory (Note [Views and layouts] in view.c). */
#pragma once

#include "autograd/node.h"
#include "dispatch/key.h"

/* Whether t has a layout's parts instead of memory, and may have a gradient. */
TP_INLINE bool tp_is_in_parts(const tp_tensor *t) { return t->keys & (TP_BIT(Layout) | TP_BIT(LayoutNested)); }
/* The memory that has t's elements: t, or the values of one in parts. New. */
tp_tensor *tp_strided_part(const tp_tensor *t);
/* A tensor of t's parts that has a version of its own. New. */
tp_tensor *tp_pattern_of(const tp_tensor *t);
/* The version of that memory. */
uint32_t tp_version_of_part(const tp_tensor *t);
TP_INLINE uint32_t tp_version_seen(const tp_tensor *t) {
    return tp_likely(!tp_is_in_parts(t)) ? tp_version(t) : tp_version_of_part(t);
}
/* Whether a view still has its base's memory: one in parts may have been given others. */
bool tp_views_base(const tp_tensor *view);
