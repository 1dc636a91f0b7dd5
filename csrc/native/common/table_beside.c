/* table_beside.c: see table_beside.h. */
#include "native/common/table_beside.h"

#include "Functions.h"
#include "prim/table.h"

/* Layers that make tensors of their own, as FakeTensorMode does, see it. */
static tp_tensor *without_values(const tp_tensor *like, tp_ints sizes, tp_dtype dtype) {
    return tp_empty_memory_format(sizes, dtype, TP_NO_LAYOUT, like->device, -1, TP_NO_FORMAT);
}

tp_tensor *tp_table_int64_beside(const tp_tensor *like, tp_ints sizes, int64_t **values) {
    *values = NULL;
    return tp_has_values(like) ? tp_table_int64(sizes, values) : without_values(like, sizes, TP_INT64);
}

tp_tensor *tp_table_float64_beside(const tp_tensor *like, tp_ints sizes, double **values) {
    *values = NULL;
    return tp_has_values(like) ? tp_table_float64(sizes, values) : without_values(like, sizes, TP_FLOAT64);
}

tp_tensor *tp_table_moved_steal(tp_tensor *table, const tp_tensor *like, tp_dtype dtype) {
    tp_autoref *own = table;
    if (!own || (tp_device_equal(own->device, like->device) && (tp_dtype)own->dtype == dtype)) return tp_take(own);
    return tp_to_device(own, like->device, dtype, false, false, TP_NO_FORMAT);
}
