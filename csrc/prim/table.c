/* table.c: see table.h. */
#include "prim/table.h"

#include "core/memory.h"
#include "core/tls.h"

/* The host writes a table by hand, at once: Note [Pending memory] in core/storage.h. */
static tp_tensor *new_table(tp_ints sizes, tp_dtype dtype) {
    tp_at_once_guard guard = tp_at_once();
    return tp_new_empty(sizes, dtype, TP_CPU);
}

tp_tensor *tp_table_int64(tp_ints sizes, int64_t **values) {
    tp_tensor *table = new_table(sizes, TP_INT64);
    *values = table ? tp_data(table) : NULL;
    return table;
}

tp_tensor *tp_table_float64(tp_ints sizes, double **values) {
    tp_tensor *table = new_table(sizes, TP_FLOAT64);
    *values = table ? tp_data(table) : NULL;
    return table;
}

const int64_t *tp_table_values(const tp_tensor *table) {
    static const int64_t nothing;
    if (table->numel == 0) return &nothing;
    if (tp_settle(table->storage) < 0) return NULL;
    if (table->storage->data) return tp_data(table);
    return tp_fail_null(TP_RuntimeError, "the values of a tensor are needed that has none of its own, as inside vmap");
}
