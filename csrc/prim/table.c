/* table.c: see table.h. */
#include "prim/table.h"

#include "core/memory.h"

tp_tensor *tp_table_int64(tp_ints sizes, int64_t **values) {
    tp_tensor *table = tp_new_empty(sizes, TP_INT64, TP_CPU);
    *values = table ? tp_data(table) : NULL;
    return table;
}

tp_tensor *tp_table_float64(tp_ints sizes, double **values) {
    tp_tensor *table = tp_new_empty(sizes, TP_FLOAT64, TP_CPU);
    *values = table ? tp_data(table) : NULL;
    return table;
}

const int64_t *tp_table_values(const tp_tensor *table) {
    static const int64_t nothing;
    if (table->numel == 0) return &nothing;
    if (table->storage->data) return tp_data(table);
    return tp_fail_null(TP_RuntimeError, "the values of a tensor are needed that has none of its own, as inside vmap");
}
