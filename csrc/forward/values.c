/* values.c: questions about the values of a call that all rules ask (internal.h). */
#include "core/error.h"
#include "forward/internal.h"

int tp_count_tensors(const tp_value *values, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        tp_tensors list = tp_tensors_in(&values[i]);
        count += list.size > 0 ? (int)list.size : 0;
    }
    return count;
}

void tp_release_values(tp_value *values, int n) {
    for (int i = 0; i < n; i++) tp_value_release(&values[i]);
}

bool tp_has_tangent(const tp_tangent_list *l, int i) {
    for (int k = l->first[i]; k < l->first[i + 1]; k++)
        if (l->all[k]) return true;
    return false;
}

int tp_fail_no_forward(const tp_op *op) {
    char name[128];
    return tp_fail(TP_NotImplementedError,
                   "Trying to use forward AD with %s, which has no forward formula: none is derived from its schema, "
                   "and no gradient of it is registered that could be differentiated",
                   tp_op_name(op, name));
}
