/* call.c: calls of primitives as jobs: the arguments are copied, tensors as views, into one piece of memory after the
 * job, so that it does not matter what becomes of them until the kernel runs. */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    job base;
    kernel run;
    argument arguments[16];
} call;

static void run_call(job *j) { ((call *)j)->run(((call *)j)->arguments); }

/* Room after a call, handed out piece by piece; without `base` it is only counted. */
typedef struct {
    char *base;
    size_t used;
} room;

static void *take(room *r, size_t nbytes) {
    void *piece = r->base ? r->base + r->used : NULL;
    r->used += (nbytes + 15) / 16 * 16;
    return piece;
}
static void *copied(room *r, const void *from, size_t nbytes) {
    void *to = take(r, nbytes);
    if (to && nbytes) memcpy(to, from, nbytes);
    return to;
}

static void copy_argument(argument *a, const tp_value *v, room *r) {
    *a = (argument){0};
    tp_tensors list = {&v->tensor, 1};
    switch (v->tag) {
    case TP_TENSORS: list = v->tensors; /* fall through */
    case TP_TENSOR:
        a->n = list.size;
        a->tensors = take(r, (size_t)list.size * sizeof(view));
        for (int64_t i = 0; a->tensors && i < list.size; i++)
            a->tensors[i] = list.data[i] ? view_of(list.data[i]) : (view){.ndim = -1};
        return;
    case TP_INTS_: a->n = v->ints.size, a->ints = copied(r, v->ints.data, (size_t)a->n * sizeof(int64_t)); return;
    case TP_SCALARS:
        a->n = v->scalars.size, a->scalars = copied(r, v->scalars.data, (size_t)a->n * sizeof(tp_scalar));
        return;
    case TP_SCALAR: a->n = 1, a->scalars = copied(r, v->scalar, sizeof(tp_scalar)); return;
    case TP_FLOAT: a->f = v->f; return;
    case TP_BOOL_: a->b = v->b; return;
    case TP_NONE: return;
    default: a->i = v->i; return;
    }
}

static int device_of_call(const tp_value *args, int n) {
    for (int i = 0; i < n; i++) {
        if (args[i].tag == TP_TENSOR && args[i].tensor) return tp_view_of(args[i].tensor).device.index;
    }
    return 0;
}

int enqueue_call(kernel run, const char *name, const tp_value *args, int n) {
    argument counted;
    room r = {0};
    for (int i = 0; i < n; i++) copy_argument(&counted, &args[i], &r);
    call *c = calloc(1, sizeof *c + r.used);
    if (!c) return tp_fail(TP_MemoryError, "%s: a call of %s cannot be kept", DEVICE_NAME, name);
    r = (room){(char *)(c + 1), 0};
    for (int i = 0; i < n; i++) copy_argument(&c->arguments[i], &args[i], &r);
    c->base.run = run_call, c->run = run;
    return enqueue_job(device_of_call(args, n), &c->base);
}

static int enqueue(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const primitive *p = context;
    (void)ks, (void)results;
    return enqueue_call(p->run, p->name, args, tp_op_arguments(op));
}

int register_primitives(tp_library *m, const primitive *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (tp_impl_boxed(m, list[i].name, enqueue, (void *)&list[i], NULL) < 0) return -1;
    return 0;
}
