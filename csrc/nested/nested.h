/* nested.h: what runs at the key LayoutNested where an operator's entry says nothing (Note [Nested kernels] in
 * native/layout/nested.h). */
#pragma once

/* Registers the fallback. */
int tp_nested_load(void);
