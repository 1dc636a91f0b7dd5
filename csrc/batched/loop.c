/* loop.c: calls an operator once for each sample, where no rule serves it. */
#include "Functions.h"
#include "batched/call.h"
#include "core/generator.h"

#include <stdlib.h>
#include <string.h>

/* ---- one sample ---- */

/* How often the operator is called: of no samples one of zeros says what shape their results would have. */
static int64_t count_calls(const tp_batch_call *c) { return c->scope.size ? c->scope.size : 1; }

typedef struct {
    const tp_batch_call *call;
    int64_t b;
} one_sample;

static tp_tensor *sample(void *context, tp_tensor *t) {
    const one_sample *s = context;
    const tp_batch_call *c = s->call;
    if (!tp_batch_has(&c->scope, t)) return tp_retain(t);
    if (c->scope.size == 0) return tp_zeros(tp_sizes(t), (tp_dtype)t->dtype, TP_NO_LAYOUT, t->device, -1);
    return tp_select_int(tp_batch_inner_borrow(t), 0, s->b);
}

static void let_go(tp_batch_call *c) {
    for (int64_t i = 0; i < c->nowned; i++) tp_release(tp_take(c->owned[i]));
    c->nowned = 0;
}

static int give_sample(tp_batch_call *c, int64_t b) {
    memcpy(c->given, c->args, sizeof(tp_value) * c->op->info->nargs);
    return tp_exchange_tensors(c->op, c->args, c->given, c->owned, &c->nowned, sample, &(one_sample){c, b});
}

/* ---- together again ---- */

/* A view of a sample would be copied here, and a write through it reach nobody. */
static int check_no_view(const tp_batch_call *c, const tp_tensor *part) {
    int viewed = tp_viewed_argument(c->op);
    const tp_tensor *of = viewed < 0 ? NULL : c->args[viewed].tensor;
    char name[128];
    if (!of || !part || !tp_batch_has(&c->scope, of) || !part->storage) return 0;
    if (part->storage != tp_batch_inner_borrow(of)->storage) return 0;
    return tp_fail(TP_RuntimeError,
                   "vmap: %s gives a view and has no batching rule: a loop over the samples would give copies. Say its "
                   "rule (`batching`, register_vmap), or make it of views that have one",
                   tp_op_name(c->op, name));
}

/* One tensor for each sample, stacked. */
static tp_tensor *stacked(const tp_batch_call *c, tp_tensor *const *parts) {
    if (check_no_view(c, parts[0]) < 0) return NULL;
    tp_autoref *all = tp_stack((tp_tensors){parts, count_calls(c)}, 0);
    return all ? tp_batch_wrap_steal(tp_narrow(all, 0, 0, c->scope.size), c->scope.number) : NULL;
}

static int gather_tensor(const tp_batch_call *c, const tp_value *all, int i, tp_tensor **parts, tp_value *result) {
    int n = c->op->info->nreturns;
    if (!all[i].tensor) return *result = all[i], 0;
    for (int64_t b = 0; b < count_calls(c); b++) parts[b] = all[b * n + i].tensor;
    *result = (tp_value){.tag = TP_TENSOR, .tensor = stacked(c, parts)};
    return result->tensor ? 0 : -1;
}

static int gather_list(const tp_batch_call *c, const tp_value *all, int i, tp_tensor **parts, tp_value *result) {
    int n = c->op->info->nreturns;
    tp_autoseq *made = tp_tensor_seq_new(all[i].seq->size);
    for (int64_t k = 0; made && k < made->size; k++) {
        for (int64_t b = 0; b < count_calls(c); b++) parts[b] = all[b * n + i].seq->items[k];
        if (!(made->items[k] = stacked(c, parts))) return -1;
    }
    *result = (tp_value){.tag = TP_TENSOR_SEQ, .seq = made};
    return tp_take(made) ? 0 : -1;
}

static int gather(const tp_batch_call *c, const tp_value *all, tp_tensor **parts, tp_value *results) {
    int status = 0;
    for (int i = 0; i < c->op->info->nreturns && status == 0; i++) {
        if (all[i].tag == TP_TENSOR) status = gather_tensor(c, all, i, parts, &results[i]);
        else if (all[i].tag == TP_TENSOR_SEQ) status = gather_list(c, all, i, parts, &results[i]);
        else if (all[i].tag != TP_NONE) status = tp_fail(TP_RuntimeError, "vmap: %s gives a number", c->op->info->name);
        if (status < 0) results[i].tag = TP_NONE;
    }
    if (status < 0) tp_release_values(results, c->op->info->nreturns);
    return status;
}

/* ---- the loop ---- */

static tp_generator *generator_of(const tp_batch_call *c) {
    tp_device device = TP_CPU;
    for (int i = 0; i < c->op->info->nargs; i++) {
        if (c->args[i].tag == TP_GENERATOR) return c->args[i].generator;
        tp_tensors list = tp_value_tensors(&c->args[i]);
        if (list.size > 0 && list.data[0]) device = list.data[0]->device;
    }
    return tp_default_generator_borrow(device);
}

static int run_samples(tp_batch_call *c, tp_value *all, bool repeat) {
    uint8_t state[TP_GENERATOR_STATE_BYTES];
    tp_generator *generator = repeat ? generator_of(c) : NULL;
    if (repeat && !generator) return -1;
    if (generator) tp_generator_get_state(generator, state);
    for (int64_t b = 0; b < count_calls(c); b++) {
        if (generator && tp_generator_set_state(generator, state, sizeof state) < 0) return -1;
        if (give_sample(c, b) < 0 || tp_call_boxed(c->op, c->given, all + b * c->op->info->nreturns) < 0) return -1;
        let_go(c);
    }
    return 0;
}

int tp_batch_loop(tp_batch_call *c, tp_value *results, bool repeat) {
    int64_t n = count_calls(c) * c->op->info->nreturns;
    let_go(c);
    tp_value *all = calloc((size_t)n + 1, sizeof *all);
    tp_tensor **parts = calloc((size_t)count_calls(c), sizeof *parts);
    int status = all && parts ? run_samples(c, all, repeat) : tp_fail_memory(n * (int64_t)sizeof *all);
    if (status == 0) status = gather(c, all, parts, results);
    for (int64_t i = 0; all && i < n; i++) tp_value_release(&all[i]);
    free(all);
    free(parts);
    return status;
}
