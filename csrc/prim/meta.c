/* meta.c: see meta.h. */
#include "prim/meta.h"

int tp_primitive_on_meta(const tp_op *op, tp_keyset ks TP_UNUSED, tp_value *args TP_UNUSED, tp_value *results TP_UNUSED,
                         void *context TP_UNUSED) {
    char name[128];
    if (op->info->nreturns == 0) return 0;
    return tp_fail(TP_NotImplementedError, "%s: Meta tensors have no values", tp_op_name(op, name));
}
