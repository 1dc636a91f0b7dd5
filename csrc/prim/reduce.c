/* reduce.c: see reduce.h. */
#include "prim/reduce.h"

#include <string.h>

const tp_reduction_op *tp_reduction_at(int64_t program, tp_dtype compute) {
    bool known = program >= 0 && program < tp_reduction_count && compute >= 0 && compute < TP_NUM_DTYPES;
    if (known && tp_reduction_table[program]->dtypes >> compute & 1) return tp_reduction_table[program];
    return tp_fail_null(TP_RuntimeError, "prim::reduce.program: there is no such program for this dtype");
}

int tp_reduce_program_of(int64_t program, tp_dtype compute, tp_reduce_program *out) {
    const tp_reduction_op *op = tp_reduction_at(program, compute);
    if (!op) return -1;
    tp_reduce_program found = {.size = out->size, .name = op->name, .parts = op->programs[tp_class_of(compute)]};
    found.result = op->promotion == TP_REDUCE_ALWAYS_BOOL ? TP_BOOL : compute;
    memcpy(out, &found, out->size < sizeof found ? out->size : sizeof found);
    return 0;
}
