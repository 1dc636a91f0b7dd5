/* fallback.c: what runs at Batched for every operator without a kernel of its own there: the rule's kind decides. */
#include "Functions.h"
#include "batched/call.h"
#include "batched/lift.h"
#include "core/determinism.h"

#include <stdlib.h>
#include <string.h>

static const tp_tensor *first_tensor(const tp_op *op, const tp_value *args) {
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&args[i]);
        if (list.size > 0 && list.data[0]) return list.data[0];
    }
    return NULL;
}

/* ---- refusals ---- */

static int refuse(const tp_op *op, const char *why) {
    char name[128];
    return tp_fail(TP_RuntimeError, "vmap: %s cannot be called on a batched tensor: %s", tp_op_name(op, name), why);
}

static int refuse_values(const tp_op *op, const tp_value *args) {
    if (tp_reads_number(op))
        return tp_batch_refuse(first_tensor(op, args),
                               "It looks like you're calling .item() on a Tensor, or using one in "
                               "some data-dependent control flow: it");
    for (int i = 0; i < op->info->nreturns; i++)
        if (op->info->returns[i].tag != TP_TENSOR && op->info->returns[i].tag != TP_TENSOR_SEQ)
            return refuse(op, "it gives one number, where each sample has its own. Choose between values with where(), "
                              "and take numbers out after vmap");
    char name[128];
    return tp_fail(
        TP_RuntimeError,
        "vmap: We do not support batching operators that can output dynamic shape. The size of what %s gives "
        "depends on the values of a sample, and all samples are computed together. Use where() or a mask of "
        "fixed size",
        tp_op_name(op, name));
}

static int refuse_write(const tp_op *op, const tp_argument *a) {
    char name[128];
    return tp_fail(
        TP_RuntimeError,
        "vmap: inplace arithmetic(self, *extra_args) is not possible because %s writes to '%s', which is not "
        "batched, what is different for each sample. Write to a copy that is batched (%s.expand() and clone() "
        "inside of vmap do not make one; new_zeros() of a batched tensor does), or use the operator that is "
        "not in-place",
        tp_op_name(op, name), a->name, a->name);
}

static int refuse_random(const tp_op *op) {
    char name[128];
    return tp_fail(TP_RuntimeError,
                   "vmap: called random operation while in randomness error mode: %s draws random numbers, and vmap "
                   "was not told how: randomness='different' for each sample, or "
                   "'same' for all",
                   tp_op_name(op, name));
}

/* What is written has to be batched where anything else is, or where each sample draws its own numbers. */
static int check_writes(const tp_batch_call *c) {
    for (int i = 0; i < c->op->info->nargs; i++) {
        if (!c->op->info->args[i].is_write) continue;
        tp_tensors list = tp_value_tensors(&c->args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && !tp_batch_has(&c->scope, list.data[k]))
                return refuse_write(c->op, &c->op->info->args[i]);
    }
    return 0;
}

/* ---- kinds that call what is there already ---- */

static int through_parts(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results) {
    const tp_tensor *t = first_tensor(op, args);
    return tp_call_kernel_at(op, tp_backend_key(t ? t->device.type : TP_DEVICE_CPU), ks & TP_BELOW(Batched), args,
                             results);
}

static int through_functional(const tp_batch_rule *rule, const tp_value *args, bool geometry) {
    tp_value made[1] = {{0}};
    if (tp_call_boxed(rule->other, args, made) < 0) return -1;
    tp_autoref *t = made[0].tensor;
    if (!geometry) return tp_copy_(args[0].tensor, t, false);
    return tp_batch_assign(args[0].tensor, tp_batch_inner_borrow(t));
}

/* ---- a call ---- */

/* Whether any argument that has to be shared by all samples is batched. */
static bool asks_too_much(const tp_op *op, const tp_value *args) {
    for (int i = 0; i < op->info->nargs; i++)
        if (op->info->batching->roles[i] == 'U' && tp_keys_of_values(&args[i], 1) & TP_BIT(Batched)) return true;
    return false;
}

static int warn_of_loop(const tp_op *op) {
    char name[128];
    if (__atomic_exchange_n(&((tp_op *)op)->told_of_loop, true, __ATOMIC_RELAXED)) return 0;
    return tp_warn("vmap: there is no batching rule for %s: it is called for each sample in turn",
                   tp_op_name(op, name));
}

static int loop(tp_batch_call *c, tp_value *results, bool repeat) {
    if (!c->rule || !c->rule->random)
        if (warn_of_loop(c->op) < 0) return -1;
    return tp_batch_loop(c, results, repeat);
}

static int run(tp_batch_call *c, tp_value *results) {
    if (!c->rule || asks_too_much(c->op, c->args)) return loop(c, results, false);
    switch (c->rule->kind) {
    case TP_BATCH_LINES: return tp_batch_lines(c, results);
    case TP_BATCH_SAMPLES: return tp_batch_samples(c, results);
    case TP_BATCH_WHOLE: return tp_batch_whole(c, results);
    default: return loop(c, results, false);
    }
}

static bool any_batched(const tp_op *op, const tp_value *args) {
    return tp_keys_of_values(args, op->info->nargs) & TP_BIT(Batched);
}

/* The scope of the highest level among the arguments. */
static int enter(tp_batch_scope *s, const tp_op *op, const tp_value *args) {
    tp_tensor *highest = NULL;
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && (!highest || tp_batch_number(list.data[k]) > tp_batch_number(highest)))
                highest = list.data[k];
    }
    return tp_batch_enter(s, (tp_tensors){&highest, highest ? 1 : 0});
}

static void free_call(tp_batch_call *c) {
    for (int64_t i = 0; i < c->nowned; i++) tp_release(c->owned[i]);
    free(c->owned);
    tp_batch_leave(&c->scope);
}

static int run_random(tp_batch_call *c, tp_value *results, bool batched) {
    if (c->scope.randomness == TP_RANDOM_ERROR) return refuse_random(c->op);
    if (c->scope.randomness == TP_RANDOM_SAME)
        return batched ? loop(c, results, true) : tp_call_boxed(c->op, c->args, results);
    return check_writes(c) < 0 ? -1 : run(c, results);
}

static int with_scope(const tp_op *op, const tp_value *args, tp_value *results, bool batched) {
    TP_CLEANUP(free_call)
    tp_batch_call c = {.op = op, .rule = op->info->batching, .args = args, .scope.visible = -1, .whole_keepdim = -1};
    if (enter(&c.scope, op, args) < 0) return -1;
    int64_t n = tp_count_tensors(args, op->info->nargs);
    if (!(c.owned = calloc((size_t)n + 1, sizeof *c.owned))) return tp_fail_memory(n * (int64_t)sizeof *c.owned);
    if (c.rule && c.rule->random) return run_random(&c, results, batched);
    return check_writes(&c) < 0 ? -1 : run(&c, results);
}

/* With the arguments that have batched tangents lifted. What is written stays as it is. */
static int with_tangents(const tp_op *op, const tp_value *args, tp_value *results, bool batched) {
    int64_t n = tp_count_tensors(args, op->info->nargs), at = 0;
    tp_tensor *tensors[n + 1];
    tp_value given[TP_BATCH_ARGUMENTS];
    tp_autolifted lifted = {0};
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&args[i]);
        for (int64_t k = 0; k < list.size; k++) tensors[at++] = list.data[k];
    }
    if (tp_batch_lift(&lifted, tensors, at) < 0) return -1;
    if (!lifted.n) return with_scope(op, args, results, batched);
    memcpy(given, args, sizeof(tp_value) * op->info->nargs);
    at = 0;
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&args[i]);
        bool kept = op->info->args[i].is_write;
        if (!kept && args[i].tag == TP_TENSOR && list.size) given[i].tensor = tensors[at];
        if (!kept && args[i].tag == TP_TENSORS) given[i].tensors = (tp_tensors){tensors + at, list.size};
        at += list.size > 0 ? list.size : 0;
    }
    return with_scope(op, given, results, true);
}

static int fall_back(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context TP_UNUSED) {
    const tp_batch_rule *rule = op->info->batching;
    bool batched = any_batched(op, args);
    if (!batched && !(rule && rule->random)) return tp_redispatch_boxed(op, ks & TP_BELOW(Batched), args, results);
    switch (rule ? rule->kind : TP_BATCH_LOOP) {
    case TP_BATCH_PARTS:
        if (asks_too_much(op, args)) return with_scope(op, args, results, batched);
        return through_parts(op, ks, args, results);
    case TP_BATCH_INPLACE: return through_functional(rule, args, false);
    case TP_BATCH_GEOMETRY: return through_functional(rule, args, true);
    case TP_BATCH_VALUES: return refuse_values(op, args);
    case TP_BATCH_OUT: return refuse(op, "it has an out=, which is one tensor. Leave it out, and use what is returned");
    default:
        return tp_likely(!tp_tls.forward) ? with_scope(op, args, results, batched)
                                          : with_tangents(op, args, results, batched);
    }
}

int tp_batch_load(void) {
    return tp_register_fallback(TP_KEY_Batched, fall_back, NULL, NULL, "batched/fallback.c") < 0 ? -1 : 0;
}
