/* counting.c: a layer in C: counts the calls of all operators that reach it, and passes them on.
 *
 * It stands at the key Tracer, which is in no tensor's key set: a call gets there while a thread includes the key. */
#include "tensorpy/library.h"

static int64_t calls; /* of all threads */

static int count(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    return tp_redispatch(op, ks & TP_BELOW(Tracer), args, results);
}

TENSORPY_LIBRARY_IMPL(_, Tracer, m) { return tp_fallback(m, count, NULL, NULL); }

/* How many there were since it was asked last. */
TENSORPY_KERNEL(int, taken, (bool, clear), (int64_t *, result)) {
    *result = clear ? __atomic_exchange_n(&calls, 0, __ATOMIC_RELAXED) : __atomic_load_n(&calls, __ATOMIC_RELAXED);
    return 0;
}

TENSORPY_LIBRARY(counting, m) { return tp_def(m, "taken(bool clear=True) -> int"); }
TENSORPY_LIBRARY_IMPL(counting, CompositeImplicitAutograd, m) { return tp_impl(m, "taken", taken); }
/* To ask is not counted: it passes the layer by. */
TENSORPY_LIBRARY_IMPL(counting, Tracer, m) { return tp_impl_fallthrough(m, "taken"); }
