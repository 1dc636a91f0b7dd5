/* kernels.h: the hand-written CPU kernels that are compiled once per capability: one table per family.
 *
 * `tp_cpu.<family>` is the table in use; before tp_cpu_select it is the baseline's. A family's file ends with
 *     const tp_<family>_kernels TP_CAP(tp_<family>) = {...};
 * and has a line in TP_FORALL_CPU_FAMILIES. */
#pragma once

#include "cpu/capability.h"
#include "cpu/convolution.h"
#include "cpu/pool.h"
#include "cpu/softmax.h"
#include "iter/iter.h"
#include "iter/reduce.h"

#define TP_FORALL_CPU_FAMILIES(X) X(cast) X(reduce) X(convolution) X(pool) X(softmax)

typedef struct {
    const tp_loop_fn *loops[TP_NUM_DTYPES];      /* [to][from] */
    tp_loop_fn float_from_half, half_from_float; /* in place of the loops between float16 and float32 */
} tp_cast_kernels;

typedef struct {
    tp_reduction sum[TP_NUM_DTYPES]; /* by the dtype of the accumulator; bool: any */
} tp_reduce_kernels;

typedef struct {
#define TP_FAMILY_MEMBER(family) const tp_##family##_kernels *family;
    TP_FORALL_CPU_FAMILIES(TP_FAMILY_MEMBER)
#undef TP_FAMILY_MEMBER
} tp_cpu_kernels;
extern tp_cpu_kernels tp_cpu;

/* Points tp_cpu at the kernels of a capability; called once at load. */
void tp_cpu_select(tp_capability capability);
