/* trace.c: the fallback under the key Trace, which sees each layer of each call (Note [Trace bit] in key.h). */
#include "dispatch/op.h"

#include <time.h>

static __thread tp_tracer *current;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Records the next layer and jumps to it, with the trace bit kept so that its redispatch comes back here. */
static int trace_layer(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    tp_keyset rest = ks & ~TP_BIT(Trace);
    tp_key key = tp_highest_key(rest & op->live);
    tp_tracer *tracer = current;
    if (!tracer || !op->table[key]) return tp_redispatch_boxed(op, rest, args, results);
    tracer->enter(tracer, op, key, args);
    double begin = now();
    int status;
    if (op->boxed_keys >> key & 1) {
        const tp_registration *r = tp_resolve(op, key, NULL);
        status = r->boxed(op, ks, args, results, r->context);
    } else {
        status = op->info->signature->call(op->table[key], ks, args, results);
    }
    tracer->leave(tracer, op, key, now() - begin, status);
    return status;
}

tp_tracer *tp_set_tracer(tp_tracer *t) {
    static int64_t handle;
    if (t && handle == 0) {
        handle = tp_register_fallback(TP_KEY_Trace, trace_layer, NULL, NULL, "dispatch/trace.c");
        if (handle < 0) {
            handle = 0;
            return NULL;
        }
    }
    tp_tracer *old = current;
    current = t;
    tp_tls.observe = t && t->primitives;
    tp_tls.include = t ? tp_tls.include | TP_BIT(Trace) : tp_tls.include & ~TP_BIT(Trace);
    return old;
}
