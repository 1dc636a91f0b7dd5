/* fallback.c: see fallback.h.
 *
 * Invariant: a tensor that is given twice has one copy on the host, so that what is written through one argument is
 * seen through the other; what was written is copied back only after the kernel succeeded. */
#include "opencl/fallback.h"

#include "core/determinism.h"
#include "core/generator.h"
#include "dispatch/key.h"
#include "iter/iter.h"
#include "native/devices.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 32

static tp_cl_fallback_mode mode = TP_CL_FALLBACK_WARN;

void tp_cl_set_fallback(tp_cl_fallback_mode m) { mode = m; }
tp_cl_fallback_mode tp_cl_fallback(void) { return mode; }

/* ---- counting ---- */

typedef struct counter {
    const tp_op *op;
    int64_t count;
    struct counter *next;
} counter;

static counter *counters[1024];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static counter **bucket_of(const tp_op *op) { return &counters[((uintptr_t)op / sizeof *op) % 1024]; }

/* Counts one more; returns how many there were, 0 the first time. */
static int64_t count_one(const tp_op *op) {
    int64_t before = 0;
    pthread_mutex_lock(&lock);
    counter *c = *bucket_of(op);
    while (c && c->op != op) c = c->next;
    if (!c && (c = calloc(1, sizeof *c))) {
        c->op = op;
        c->next = *bucket_of(op);
        *bucket_of(op) = c;
    }
    if (c) before = c->count++;
    pthread_mutex_unlock(&lock);
    return before;
}

int64_t tp_cl_fallback_count(const tp_op *op) {
    pthread_mutex_lock(&lock);
    const counter *c = *bucket_of(op);
    while (c && c->op != op) c = c->next;
    int64_t count = c ? c->count : 0;
    pthread_mutex_unlock(&lock);
    return count;
}

/* ---- copies on the host ---- */

typedef struct {
    int64_t n, capacity;
    tp_tensor **given; /* borrowed, on the device */
    tp_tensor **host;  /* owned */
    bool *written;
    tp_device device;
    tp_generator *generator, *host_generator; /* the device's, borrowed, and one in its state; or NULL */
} mirrors;

static tp_tensor *copy_to(const tp_tensor *t, tp_device device) {
    int64_t strides[TP_MAX_DIMS];
    memcpy(strides, t->strides, sizeof(int64_t) * t->ndim);
    if (!tp_is_dense(t)) tp_dense_strides(tp_sizes(t), tp_strides(t), strides);
    tp_autoref *made = tp_new_empty_strided(tp_sizes(t), (tp_ints){strides, t->ndim}, (tp_dtype)t->dtype, device);
    if (!made || tp_copy_data(made, t) < 0) return NULL;
    made->flags |= t->flags & TP_FLAG_WRAPPED_NUMBER;
    return tp_take(made);
}

/* The host's copy of a tensor, borrowed; the tensor itself where it is on the host already. */
static tp_tensor *mirror(mirrors *m, tp_tensor *t, bool written) {
    if (!t || t->device.type != TP_DEVICE_OPENCL) return t;
    m->device = t->device;
    for (int64_t i = 0; i < m->n; i++)
        if (m->given[i] == t) {
            m->written[i] |= written;
            return m->host[i];
        }
    tp_tensor *host = copy_to(t, TP_CPU);
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
        if (tp_copy_data(t, host) < 0) return -1;
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
    if (g->device.type != TP_DEVICE_OPENCL) return 0;
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
            if (args[i].device.type == TP_DEVICE_OPENCL) host[i].device = TP_CPU;
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
    return copy_to(t, m->device);
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

/* ---- the fallback ---- */

static int check_devices(const tp_op *op, const tp_value *args) {
    tp_device_argument given[MAX_ARGUMENTS];
    char name[128];
    int64_t n = 0;
    for (int i = 0; i < op->info->nargs && n < MAX_ARGUMENTS; i++) {
        bool number = args[i].tag == TP_TENSOR && args[i].tensor && args[i].tensor->ndim == 0;
        if (args[i].tag == TP_TENSOR && !number)
            given[n++] = (tp_device_argument){op->info->args[i].name, args[i].tensor, {NULL, 0}};
    }
    return tp_check_devices(tp_op_name(op, name), given, n);
}

static int announce(const tp_op *op) {
    char name[128], message[400];
    if (mode == TP_CL_FALLBACK_ERROR)
        return tp_fail(
            TP_NotImplementedError,
            "Could not run '%s' on opencl: it has no OpenCL kernel, and tensorpy.opencl.fallback is \"error\"\n"
            "  next step: move the tensors to the CPU, or set tensorpy.opencl.fallback to \"warn\" or "
            "\"allow\" to have that done for each call",
            tp_op_name(op, name));
    if (count_one(op) > 0 || mode != TP_CL_FALLBACK_WARN) return 0;
    snprintf(message, sizeof message,
             "%s has no OpenCL kernel: the CPU computes it, with copies there and back (tensorpy.opencl.fallback = "
             "\"allow\" silences this)",
             tp_op_name(op, name));
    return tp_warn("%s", message);
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
static tp_device device_of(const tp_op *op, const tp_value *args) {
    tp_device d = {TP_DEVICE_OPENCL, -1};
    for (int i = 0; i < op->info->nargs; i++) {
        if (args[i].tag == TP_TENSOR && args[i].tensor && args[i].tensor->device.type == TP_DEVICE_OPENCL)
            return args[i].tensor->device;
        if (args[i].tag == TP_DEVICE && args[i].device.type == TP_DEVICE_OPENCL) d = args[i].device;
    }
    return tp_device_resolve(d, &d) < 0 ? TP_NO_DEVICE : d;
}

static int fall_back(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    int64_t n = count_tensors(op, args);
    if (!op->table[TP_KEY_CPU] || op->info->nargs > MAX_ARGUMENTS) return tp_missing_kernel(op, ks, args);
    if (check_devices(op, args) < 0 || announce(op) < 0) return -1;
    mirrors m = {.device = device_of(op, args)};
    if (m.device.type < 0) return -1;
    tp_tensor **lists = malloc((size_t)(n + 1) * sizeof *lists);
    int status = lists ? start_mirrors(&m, n) : tp_fail_memory(n * (int64_t)sizeof *lists);
    if (status == 0) status = call_on_host(&m, op, ks, args, results, lists);
    free_mirrors(&m);
    free(lists);
    return status;
}

int tp_cl_register_fallback(void) {
    return tp_register_fallback(TP_KEY_OpenCL, fall_back, NULL, NULL, "opencl/fallback.c: on the CPU") < 0 ? -1 : 0;
}
