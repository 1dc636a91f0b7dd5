/* kernels.h: the hand-written CPU kernels that are compiled once per capability: one table per family.
 *
 * `tp_cpu.<family>` is the table in use, chosen when the library is loaded. A family's file ends with
 *     const tp_<family>_kernels TP_CAP(tp_<family>) = {...};
 * and has a line in TP_FORALL_CPU_FAMILIES. */
#pragma once

#include "cpu/capability.h"
#include "iter/iter.h"
#include "iter/reduce.h"

#define TP_FORALL_CPU_FAMILIES(X) X(cast) X(reduce) X(extreme) X(fold)

typedef struct {
    const tp_loop_fn *loops[TP_NUM_DTYPES];      /* [to][from] */
    tp_loop_fn float_from_half, half_from_float; /* in place of the loops between float16 and float32 */
} tp_cast_kernels;

typedef struct {
    tp_reduction sum[TP_NUM_DTYPES];  /* by the dtype of the accumulator; bool: any */
    tp_reduction mean[TP_NUM_DTYPES]; /* floating and complex ones */
} tp_reduce_kernels;

/* By the input's dtype, the 16-bit floats and complex ones absent; `_at` gives places, as int64. */
typedef struct {
    tp_reduction largest[TP_NUM_DTYPES], smallest[TP_NUM_DTYPES];
    tp_reduction largest_at[TP_NUM_DTYPES], smallest_at[TP_NUM_DTYPES];
} tp_extreme_kernels;

typedef struct {
    tp_reduction prod[TP_NUM_DTYPES];   /* by the dtype of the accumulator: int64, floating and complex ones */
    tp_reduction nansum[TP_NUM_DTYPES]; /* float32 and float64 */
    tp_reduction any[TP_NUM_DTYPES], all[TP_NUM_DTYPES], nonzero[TP_NUM_DTYPES]; /* by the input's dtype */
} tp_fold_kernels;

typedef struct {
#define TP_FAMILY_MEMBER(family) const tp_##family##_kernels *family;
    TP_FORALL_CPU_FAMILIES(TP_FAMILY_MEMBER)
#undef TP_FAMILY_MEMBER
} tp_cpu_kernels;
extern tp_cpu_kernels tp_cpu;

/* Points tp_cpu at the kernels of a capability: at load, and by tests. */
void tp_cpu_select(tp_capability capability);
