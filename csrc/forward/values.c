/* values.c: questions about the values of a call that all rules ask (internal.h). */
#include "batched/batched.h"
#include "core/error.h"
#include "forward/internal.h"

const tp_storage *tp_physical_storage(const tp_tensor *t) { return tp_batch_innermost_borrow(t)->storage; }

bool tp_has_tangent(const tp_tangent_list *l, int i) {
    for (int k = l->first[i]; k < l->first[i + 1]; k++)
        if (l->all[k]) return true;
    return false;
}

int tp_fail_no_forward(const tp_op *op) {
    char name[128];
    return tp_fail(
        TP_NotImplementedError,
        "Trying to use forward AD with %s that does not support it: no forward formula is derived from its schema, "
        "and no gradient of it is registered that could be differentiated",
        tp_op_name(op, name));
}
