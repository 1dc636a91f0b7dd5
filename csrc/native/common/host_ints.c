/* host_ints.c: see host_ints.h. */
#include "native/common/host_ints.h"

#include "Functions.h"
#include "dispatch/key.h"
#include "prim/table.h"
#include "prim/transfer.h"

static tp_tensor *asked_one_by_one(tp_tensor *t) {
    int64_t *values;
    tp_autoref *table = tp_table_int64(tp_sizes(t), &values), *row = table ? tp_reshape(t, TP_INTS(t->numel)) : NULL;
    for (int64_t i = 0; row && i < t->numel; i++) {
        tp_scalar value;
        tp_autoref *one = tp_select_int(row, 0, i);
        if (!one || tp_item(one, &value) < 0) return NULL;
        values[i] = tp_scalar_int(&value);
    }
    return row ? tp_take(table) : NULL;
}

tp_tensor *tp_host_ints(tp_tensor *t) {
    if (tp_unlikely(tp_read_is_seen(t))) return asked_one_by_one(t);
    /* What a kernel needs is nothing that the program sees; a replay would need it too. */
    int status = tp_tls.region ? tp_pending_hooks.settle_unseen(t->storage) : tp_settle(t->storage);
    if (status < 0) return NULL;
    tp_autoref *here = tp_to_device(t, TP_CPU, TP_INT64, false, false, TP_NO_FORMAT);
    return here ? tp_contiguous(here, TP_CONTIGUOUS_FORMAT) : NULL;
}
