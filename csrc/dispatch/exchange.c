/* exchange.c: see exchange.h. */
#include "dispatch/exchange.h"

int64_t tp_count_tensors(const tp_value *values, int n) {
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        tp_tensors list = tp_tensors_in(&values[i]);
        count += list.size > 0 ? list.size : 0;
    }
    return count;
}

int tp_exchange_tensors(const tp_op *op, const tp_value *args, tp_value *given, tp_tensor **owned, int64_t *n,
                        tp_exchange_fn exchange, void *context) {
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&args[i]);
        tp_tensor **first = &owned[*n];
        for (int64_t k = 0; k < list.size; k++) {
            tp_tensor *t = list.data[k] ? exchange(context, list.data[k]) : NULL;
            if (list.data[k] && !t) return -1;
            owned[(*n)++] = t;
        }
        if (args[i].tag == TP_TENSOR) given[i].tensor = *first;
        else if (args[i].tag == TP_TENSORS && list.size > 0) given[i].tensors.data = first;
    }
    return 0;
}

void tp_release_values(tp_value *values, int n) {
    for (int i = 0; i < n; i++) {
        tp_value_release(&values[i]);
        values[i].tag = TP_NONE;
    }
}
