/* layout.h: how the operands of an elementwise kernel lie, as far as its text depends on it: the head of the kernel,
 * and where element `i` of each operand is.
 *
 * A layout is `flat` (every operand is contiguous or one element), or has a number of dimensions; sizes and strides are
 * arguments. On a CPU device a work-item walks along a piece of a row, on a GPU it has one element. */
#pragma once

#include "opencl/runtime/launch.h"

#define TP_CL_PLAN_DIMS 12

/* ONE: one element for all, or, where a work-item walks along rows, for a row; NEXT: neighbours in a row, which loops
 * over vectors want to know. */
typedef enum { TP_CL_ELEMENTS, TP_CL_ONE, TP_CL_NUMBER, TP_CL_NEXT } tp_cl_operand_class;

typedef struct {
    int n, noutputs, ndim;         /* operands, outputs first; ndim 0: flat */
    bool small, rows;              /* positions fit 32 bits; a work-item walks along a row */
    const uint8_t *stored, *class; /* by operand: its dtype in memory, and its tp_cl_operand_class */
} tp_cl_layout;

/* The types `index` and `geometry`. */
void tp_cl_add_types(tp_text *s, const tp_cl_layout *l);
/* An operand in memory as parameters m<i> and o<i>; after all of them the geometry, and how long a piece is. */
void tp_cl_add_memory(tp_text *s, int i);
void tp_cl_add_geometry(tp_text *s, const tp_cl_layout *l);
/* What comes first in the kernel: a GPU's `i`, or a CPU's elements [first, last) of a row. */
void tp_cl_add_head(tp_text *s, const tp_cl_layout *l);
/* The same of functions: of a GPU's, which is given `i`, and of a CPU's, which is given elements [begin, stop), one
 * after the other: they pass in turns of a row, [first, last) of which `start` is the first, with `begin` behind them.
 * The turn's loop is left open. */
void tp_cl_add_element(tp_text *s, const tp_cl_layout *l);
void tp_cl_add_turns(tp_text *s, const tp_cl_layout *l);
/* A loop over elements of a row, `how` the compiler shall make it, up to the element's place `i`, which is `at`. */
void tp_cl_add_loop(tp_text *s, const tp_cl_layout *l, const char *how, const char *loop, const char *at);
/* The element `i` of an operand, as it is stored. */
void tp_cl_add_place(tp_text *s, const tp_cl_layout *l, int i);

/* The arguments: the number of elements; after all operands the geometry and the piece. `strides`: by operand and
 * dimension, in bytes; a number's are not looked at. */
void tp_cl_pass_index(tp_cl_call *c, const tp_cl_layout *l, int64_t value);
void tp_cl_pass_geometry(tp_cl_call *c, const tp_cl_layout *l, const int64_t *const *strides, const int64_t *shape);
/* The launch of a kernel that has all of its arguments. */
int tp_cl_run_elements(tp_cl_call *c, const tp_cl_layout *l, int64_t numel, const int64_t *const *strides,
                       const int64_t *shape);
