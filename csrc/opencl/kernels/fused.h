/* fused.h: kernels of several calls of map, and of a reduction of what the last gives: what fused_text.c writes and
 * fused.c runs. */
#pragma once

#include "opencl/kernels/expression.h"
#include "opencl/kernels/layout.h"
#include "opencl/kernels/reduce.h"
#include "opencl/runtime/later.h"
#include "prim/fused.h"

#define TP_CL_BLOCK 64 /* elements, as in pointwise.c: which ones share a block tells in the bits */
#define TP_CL_OPERANDS (2 * TP_FUSED_TENSORS)

/* All that a kernel's text depends on. */
typedef struct {
    int64_t program;
    uint16_t ones, next;              /* a bit for each input that is one element for all or a row, or neighbours */
    uint8_t ndim, small, rows;        /* as tp_cl_layout's */
    uint8_t blocks;                   /* rows, and stretches that are folded, are whole blocks */
    uint8_t stored[TP_FUSED_TENSORS]; /* inputs' dtypes */
    tp_cl_fold_variant fold;          /* of the last value; zeros: none */
} tp_cl_fused_variant;
_Static_assert(sizeof(tp_cl_fused_variant) == 32 + sizeof(tp_cl_fold_variant), "variants are compared as bytes");

/* A kernel that was wanted; kept for good. */
typedef struct tp_cl_fused_unit {
    tp_cl_later later;             /* comes first */
    struct tp_cl_fused_unit *next; /* in its bucket */
    tp_cl_device *device;
    tp_cl_fused_variant variant;
    uint8_t lanes[TP_FUSED_CALLS]; /* that its built-in function is trusted with */
    int wanted;
} tp_cl_fused_unit;

/* How a call is computed. */
typedef enum { TP_CL_PLAIN, TP_CL_IN_VECTORS, TP_CL_IN_QUICK_FORM } tp_cl_manner;
tp_cl_manner tp_cl_manner_of(const tp_cl_expression *e, bool rows, uint8_t lanes);

tp_cl_expression tp_cl_expression_of_call(const tp_fused_call *call);
/* What a call converts an input to, and what its function gives. */
tp_dtype tp_cl_wanted_of(const tp_fused_call *call, int input);
tp_dtype tp_cl_result_of(const tp_fused_call *call);
/* Outputs come first among the operands. */
void tp_cl_fused_layout(const tp_fused *f, const tp_cl_fused_variant *k, tp_cl_layout *l, uint8_t *stored,
                        uint8_t *class);

/* Builds a unit's kernel. */
tp_cl_built *tp_cl_build_fused(tp_cl_later *unit);
