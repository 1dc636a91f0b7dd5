/* libmvec.h: glibc's vector functions, those that came with 2.35.
 *
 * The vectoriser calls them by name (Note [Vector libm] in tensorpy/math.h), and a module that left these names to the
 * linker would load on no older system. So they are functions of cpu/libmvec_calls.c, once per capability: each jumps
 * to where its slot points, which is a stand-in until tp_libmvec_find has found the library's function. A jump through
 * memory is what a call of a shared library's function is anyway. */
#pragma once

#include "tensorpy/expressions.h"

typedef struct {
    const char *name;
    void **at;
} tp_libmvec_slot;

/* Lets the slots of every capability point to the library's functions, as far as it has them and the environment's
 * TENSORPY_LIBMVEC is not 0. */
void tp_libmvec_find(void);
