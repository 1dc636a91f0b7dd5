/* reduce.c: see reduce.h. */
#include "prim/reduce.h"

#include "core/lock.h"

#include <string.h>

static const tp_reduction_op *added[256]; /* from outside: written under the lock Operators, then for ever the same */
static int64_t nadded;

const tp_reduction_op *tp_reduction_of(int64_t number) {
    if (number >= 0 && number < tp_reduction_count) return tp_reduction_table[number];
    int64_t i = number - tp_reduction_count;
    return i >= 0 && i < __atomic_load_n(&nadded, __ATOMIC_ACQUIRE) ? added[i] : NULL;
}

int tp_add_reduction(tp_reduction_op *r) {
    tp_lock(TP_LOCK_Operators);
    bool there = tp_reduction_of(r->number) == r, full = nadded == TP_COUNTOF(added);
    if (!there && !full) {
        r->number = (uint16_t)(tp_reduction_count + nadded);
        added[nadded] = r;
        __atomic_store_n(&nadded, nadded + 1, __ATOMIC_RELEASE);
    }
    tp_unlock(TP_LOCK_Operators);
    if (there || !full) return 0;
    return tp_fail(TP_RuntimeError, "%s: there are %d reductions from outside already", r->name,
                   (int)TP_COUNTOF(added));
}

const tp_reduction_op *tp_reduction_at(int64_t program, tp_dtype compute) {
    const tp_reduction_op *r = tp_reduction_of(program);
    if (r && compute >= 0 && compute < TP_NUM_DTYPES && r->dtypes >> compute & 1) return r;
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
