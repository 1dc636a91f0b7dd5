/* reduce.c: see reduce.h. */
#include "prim/reduce.h"

const tp_reduction_op *tp_reduction_at(int64_t program, tp_dtype compute) {
    bool known = program >= 0 && program < tp_reduction_count && compute >= 0 && compute < TP_NUM_DTYPES;
    if (known && tp_reduction_table[program]->dtypes >> compute & 1) return tp_reduction_table[program];
    return tp_fail_null(TP_RuntimeError, "prim::reduce.program: there is no such program for this dtype");
}
