/* table_beside.c: see table_beside.h. */
#include "native/common/table_beside.h"

#include "Functions.h"
#include "dispatch/key.h"
#include "prim/table.h"

/* A layer that sees reads may record the call (FakeTensorMode, make_fx): its program runs later, on what has values. */
static bool is_filled(const tp_tensor *like) { return tp_has_values(like) || tp_read_is_seen(like); }

tp_tensor *tp_table_int64_beside(const tp_tensor *like, tp_ints sizes, int64_t **values) {
    *values = NULL;
    return is_filled(like) ? tp_table_int64(sizes, values) : tp_new_empty(sizes, TP_INT64, like->device);
}

tp_tensor *tp_table_float64_beside(const tp_tensor *like, tp_ints sizes, double **values) {
    *values = NULL;
    return is_filled(like) ? tp_table_float64(sizes, values) : tp_new_empty(sizes, TP_FLOAT64, like->device);
}

tp_tensor *tp_table_moved_steal(tp_tensor *table, const tp_tensor *like, tp_dtype dtype) {
    tp_autoref *own = table;
    if (!own || (tp_device_equal(own->device, like->device) && (tp_dtype)own->dtype == dtype)) return tp_take(own);
    return tp_to_device(own, like->device, dtype, false, false, TP_NO_FORMAT);
}
