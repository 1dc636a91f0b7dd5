/* trace.c: the fallback under the key Trace, which sees each layer of each call (Note [Trace bit] in key.h). */
#include "dispatch/op.h"

#include "core/clock.h"
#include "core/turn.h"

static __thread tp_tracer *current;

/* Records the next layer and jumps to it, with the trace bit kept so that its redispatch comes back here. */
static int trace_layer(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    tp_keyset rest = ks & ~TP_BIT(Trace);
    tp_key key = tp_live_key(op, rest);
    tp_tracer *tracer = current;
    if (!tracer || !tp_kernel_at(op, key)) return tp_redispatch_boxed(op, rest, args, results);
    tracer->enter(tracer, op, key, args);
    int64_t begin = tp_clock_ns();
    int status = tp_call_kernel_at(op, key, ks, args, results);
    tracer->leave(tracer, op, key, 1e-9 * (double)(tp_clock_ns() - begin), status);
    return status;
}

tp_tracer *tp_set_tracer(tp_tracer *t) {
    static tp_turn registering;
    static bool registered;
    if (t) {
        if (tp_turn_take(&registering) < 0) return NULL;
        if (!registered)
            registered = tp_register_fallback(TP_KEY_Trace, trace_layer, NULL, NULL, "dispatch/trace.c") > 0;
        tp_turn_pass(&registering);
        if (!registered) return NULL;
    }
    tp_tracer *old = current;
    current = t;
    bool primitives = t && t->primitives;
    tp_tls.observe = primitives ? tp_tls.observe | TP_BIT(Trace) : tp_tls.observe & ~TP_BIT(Trace);
    tp_tls.include = t ? tp_tls.include | TP_BIT(Trace) : tp_tls.include & ~TP_BIT(Trace);
    return old;
}
