/* host.c: see host.h.
 *
 * Invariant: a tensor that is given twice has one copy on the host, so that what is written through one argument is
 * seen through the other; what was written is copied back only after the kernel succeeded. */
#include "prim/host.h"

#include "core/lock.h"

#include "core/generator.h"
#include "dispatch/key.h"
#include "iter/iter.h"
#include "prim/devices.h"
#include "prim/transfer.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 32

/* ---- copies on the host ---- */

typedef struct {
    int64_t n, capacity;
    tp_tensor **given; /* borrowed, on the device */
    tp_tensor **host;  /* owned */
    bool *written;
    tp_device device;
    tp_generator *generator, *host_generator;          /* the device's, borrowed, and one in its state; or NULL */
    int (*copy)(tp_tensor *dst, const tp_tensor *src); /* of primitives: one that needs none of the device's */
} mirrors;

static tp_tensor *copy_to(const mirrors *m, const tp_tensor *t, tp_device device) {
    int64_t strides[TP_MAX_DIMS];
    tp_preserved_strides(t, strides);
    tp_autoref *made = tp_new_empty_strided(tp_sizes(t), (tp_ints){strides, t->ndim}, (tp_dtype)t->dtype, device);
    if (!made || m->copy(made, t) < 0) return NULL;
    made->flags |= t->flags & TP_FLAG_WRAPPED_NUMBER;
    return tp_take(made);
}

/* The host's copy of a tensor, borrowed; the tensor itself where it is on the host already. */
static tp_tensor *mirror(mirrors *m, tp_tensor *t, bool written) {
    if (!t || t->device.type != m->device.type) return t;
    m->device = t->device;
    for (int64_t i = 0; i < m->n; i++)
        if (m->given[i] == t) {
            m->written[i] |= written;
            return m->host[i];
        }
    tp_tensor *host = tp_settle(t->storage) < 0 ? NULL : copy_to(m, t, TP_CPU); /* who calls may be above the notes */
    if (!host) return NULL;
    m->given[m->n] = t;
    m->host[m->n] = host;
    m->written[m->n++] = written;
    return host;
}

static int64_t count_tensors(const tp_op *op, const tp_value *args) {
    int64_t n = 0;
    for (int i = 0; i < op->info->nargs; i++)
        n += args[i].tag == TP_TENSOR ? 1 : args[i].tag == TP_TENSORS ? args[i].tensors.size : 0;
    return n;
}

static int write_back(mirrors *m) {
    uint8_t state[TP_GENERATOR_STATE_BYTES];
    if (m->host_generator) {
        tp_generator_get_state(m->host_generator, state);
        if (tp_generator_set_state(m->generator, state, sizeof state) < 0) return -1;
    }
    for (int64_t i = 0; i < m->n; i++) {
        tp_tensor *t = m->given[i], *host = m->host[i];
        if (!m->written[i]) continue;
        if (!tp_same_sizes(t, host) && tp_tensor_resize(t, tp_sizes(host), tp_strides(host)) < 0) return -1;
        if (m->copy(t, host) < 0) return -1;
    }
    return 0;
}

static void free_mirrors(mirrors *m) {
    for (int64_t i = 0; i < m->n; i++) tp_release(m->host[i]);
    tp_generator_release(m->host_generator);
    free(m->given);
}

static int start_mirrors(mirrors *m, int64_t n) {
    size_t bytes = (size_t)(n + 1) * (2 * sizeof(tp_tensor *) + sizeof(bool));
    m->given = malloc(bytes);
    if (!m->given) return tp_fail_memory((int64_t)bytes);
    m->host = m->given + n + 1;
    m->written = (bool *)(m->host + n + 1);
    return 0;
}

/* ---- arguments and results ---- */

/* Draws are the same on every device, so the host's kernel gets a generator of its own in the state of the device's. */
static int mirror_generator(mirrors *m, tp_value *v) {
    uint8_t state[TP_GENERATOR_STATE_BYTES];
    tp_generator *g = v->tag == TP_NONE ? tp_default_generator_borrow(m->device) : v->generator;
    if (!g) return -1;
    if (g->device.type != m->device.type) return 0;
    m->generator = g;
    m->host_generator = tp_generator_new(TP_CPU);
    if (!m->host_generator) return -1;
    tp_generator_get_state(g, state);
    *v = (tp_value){.tag = TP_GENERATOR, .generator = m->host_generator};
    return tp_generator_set_state(m->host_generator, state, sizeof state);
}

/* host: the arguments as the CPU's kernel takes them; lists: room for the tensors of lists. */
static int mirror_arguments(mirrors *m, const tp_op *op, const tp_value *args, tp_value *host, tp_tensor **lists) {
    for (int i = 0; i < op->info->nargs; i++) {
        const tp_argument *a = &op->info->args[i];
        host[i] = args[i];
        if (args[i].tag == TP_TENSOR) {
            host[i].tensor = mirror(m, args[i].tensor, a->is_write);
            if (args[i].tensor && !host[i].tensor) return -1;
        } else if (args[i].tag == TP_TENSORS) {
            for (int64_t k = 0; k < args[i].tensors.size; k++) {
                lists[k] = mirror(m, args[i].tensors.data[k], a->is_write);
                if (args[i].tensors.data[k] && !lists[k]) return -1;
            }
            host[i].tensors.data = lists;
            lists += args[i].tensors.size > 0 ? args[i].tensors.size : 0;
        } else if (args[i].tag == TP_DEVICE) {
            if (args[i].device.type == m->device.type) host[i].device = TP_CPU;
        } else if (a->tag == TP_GENERATOR) {
            if (mirror_generator(m, &host[i]) < 0) return -1;
        }
    }
    return 0;
}

/* A result of the host's kernel, stolen, as one on the device: an argument itself where it is its copy. */
static tp_tensor *bring_back_steal(const mirrors *m, tp_tensor *t) {
    tp_autoref *host = t;
    if (!t) return NULL;
    for (int64_t i = 0; i < m->n; i++)
        if (m->host[i] == t) return tp_retain(m->given[i]);
    return copy_to(m, t, m->device);
}

static int bring_results(const mirrors *m, const tp_op *op, tp_value *results) {
    int status = 0;
    for (int i = 0; i < op->info->nreturns; i++) {
        if (results[i].tag == TP_TENSOR && results[i].tensor) {
            results[i].tensor = bring_back_steal(m, results[i].tensor);
            if (!results[i].tensor) status = -1;
        } else if (results[i].tag == TP_TENSOR_SEQ) {
            tp_tensor_seq *s = results[i].seq;
            for (int64_t k = 0; k < s->size; k++)
                if (s->items[k] && !(s->items[k] = bring_back_steal(m, s->items[k]))) status = -1;
        }
    }
    for (int i = 0; status < 0 && i < op->info->nreturns; i++) tp_value_release(&results[i]);
    return status;
}

/* ---- the call ---- */

static int check_devices(const tp_op *op, const tp_value *args) {
    tp_device_argument given[MAX_ARGUMENTS];
    char name[128];
    int64_t n = 0;
    for (int i = 0; i < op->info->nargs && n < MAX_ARGUMENTS; i++) {
        const tp_argument *a = &op->info->args[i];
        bool number = args[i].tag == TP_TENSOR && args[i].tensor && args[i].tensor->ndim == 0;
        if (args[i].tag == TP_TENSOR && !number) given[n++] = (tp_device_argument){a->name, args[i].tensor, {NULL, 0}};
        else if (args[i].tag == TP_TENSORS && strncmp(a->type, "Tensor?", 7) != 0) /* indices may be on the host */
            given[n++] = (tp_device_argument){a->name, NULL, args[i].tensors};
    }
    return tp_check_devices(tp_op_name(op, name), given, n);
}

static int check_part(const tp_tensor *out, tp_tensor *const *read, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (read[i] && tp_overlap_of(out, read[i]) == TP_OVERLAP_PARTIAL) return tp_check_no_overlap(out, read[i]);
    return 0;
}

int tp_check_outs(const tp_op *op, const tp_value *args) {
    int status = 0;
    for (int o = 0; o < op->info->nargs && status == 0; o++) {
        if (!op->info->args[o].is_out || args[o].tag != TP_TENSOR || !args[o].tensor) continue;
        for (int i = 0; i < op->info->nargs && status == 0; i++) {
            const tp_value *v = &args[i];
            if (op->info->args[i].is_write) continue;
            if (v->tag == TP_TENSOR) status = check_part(args[o].tensor, &v->tensor, 1);
            if (v->tag == TP_TENSORS) status = check_part(args[o].tensor, v->tensors.data, v->tensors.size);
        }
    }
    return status;
}

static int call_on_host(mirrors *m, const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results,
                        tp_tensor **lists) {
    tp_value host[MAX_ARGUMENTS];
    if (mirror_arguments(m, op, args, host, lists) < 0) return -1;
    if (tp_redispatch_boxed(op, (ks & ~TP_BACKEND_KEYS) | TP_BIT(CPU), host, results) < 0) return -1;
    if (bring_results(m, op, results) < 0) return -1;
    if (write_back(m) == 0) return 0;
    for (int i = 0; i < op->info->nreturns; i++) tp_value_release(&results[i]);
    return -1;
}

/* Where results go: to the device of the first tensor there, or to the one that a factory is told. */
static tp_device device_of(const tp_op *op, const tp_value *args, tp_device_type type) {
    tp_device d = {(int8_t)type, -1};
    for (int i = 0; i < op->info->nargs; i++) {
        if (args[i].tag == TP_TENSOR && args[i].tensor && args[i].tensor->device.type == d.type)
            return args[i].tensor->device;
        if (args[i].tag == TP_DEVICE && args[i].device.type == d.type) d = args[i].device;
    }
    return tp_device_resolve(d, &d) < 0 ? TP_NO_DEVICE : d;
}

int tp_call_on_host(tp_device_type type, const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results) {
    int64_t n = count_tensors(op, args);
    if (!tp_kernel_at(op, TP_KEY_CPU) || op->info->nargs > MAX_ARGUMENTS) return tp_missing_kernel(op, ks, args);
    if (check_devices(op, args) < 0 || (!op->info->is_primitive && tp_check_outs(op, args) < 0)) return -1;
    mirrors m = {.device = device_of(op, args, type),
                 .copy = op->info->is_primitive ? tp_copy_through_host : tp_copy_data};
    if (m.device.type < 0) return -1;
    tp_tensor **lists = malloc((size_t)(n + 1) * sizeof *lists);
    int status = lists ? start_mirrors(&m, n) : tp_fail_memory(n * (int64_t)sizeof *lists);
    if (status == 0) status = call_on_host(&m, op, ks, args, results, lists);
    free_mirrors(&m);
    free(lists);
    return status;
}

/* ---- counting ---- */

typedef struct counter {
    const tp_op *op;
    tp_device_type type;
    int64_t count;
    struct counter *next;
} counter;

static counter *counters[1024]; /* under the lock HostCalls; they stay */

static counter *find_counter(tp_device_type type, const tp_op *op, bool makes) {
    counter **bucket = &counters[((uintptr_t)op / sizeof *op + (size_t)type) % TP_COUNTOF(counters)], *c = *bucket;
    while (c && (c->op != op || c->type != type)) c = c->next;
    if (c || !makes || !(c = malloc(sizeof *c))) return c;
    *c = (counter){op, type, 0, *bucket};
    return *bucket = c;
}

int64_t tp_count_host_call(tp_device_type type, const tp_op *op) {
    tp_lock(TP_LOCK_HostCalls);
    counter *c = find_counter(type, op, true);
    int64_t before = c ? c->count++ : 0;
    tp_unlock(TP_LOCK_HostCalls);
    return before;
}

int64_t tp_host_calls(tp_device_type type, const tp_op *op) {
    tp_lock(TP_LOCK_HostCalls);
    const counter *c = find_counter(type, op, false);
    int64_t count = c ? c->count : 0;
    tp_unlock(TP_LOCK_HostCalls);
    return count;
}
