/* call.c: what runs at ForwardAD for every operator: the call below, and then the tangents of what it gave, one level
 * after the other, by the operator's rule (rule.h). See Note [Tangents]. */
#include "Functions.h"
#include "autograd/node.h"
#include "core/alloc.h"
#include "forward/internal.h"
#include "forward/forward.h"

#include <stdlib.h>
#include <string.h>

/* ---- the tangents of the arguments ---- */

static void free_list(tp_tangent_list *l) {
    int n = l->all ? l->first[TP_FORWARD_ARGUMENTS] : 0;
    for (int i = 0; i < n; i++) tp_release(l->all[i]);
    free(tp_take(l->all));
}
#define tp_autotangents TP_CLEANUP(free_list) tp_tangent_list

static int take_tangents(tp_tangent_list *l, tp_tensors list, int at) {
    for (int64_t k = 0; k < list.size; k++) {
        tp_tangent_of found = {0};
        if (list.data[k] && tp_find_tangent(list.data[k], l->number, &found) < 0) return -1;
        l->all[at + k] = found.tangent;
        l->known |= found.known;
        l->any |= found.tangent != NULL;
    }
    return 0;
}

/* What an operator writes first, and its other arguments: an out= as well. */
static int gather(tp_tangent_list *l, const tp_op *op, const tp_value *args, uint32_t number) {
    *l = (tp_tangent_list){.number = number};
    for (int i = 0; i < TP_FORWARD_ARGUMENTS; i++)
        l->first[i + 1] = l->first[i] + (i < op->info->nargs ? (int)tp_count_tensors(&args[i], 1) : 0);
    int n = l->first[TP_FORWARD_ARGUMENTS];
    if (!(l->all = calloc((size_t)n + 1, sizeof *l->all))) return tp_fail_memory(n * (int64_t)sizeof *l->all);
    for (int i = 0; i < op->info->nargs; i++)
        if (take_tangents(l, tp_tensors_in(&args[i]), l->first[i]) < 0) return -1;
    return 0;
}

/* ---- errors ---- */

static int fail_out(const tp_op *op) {
    char name[128];
    return tp_fail(TP_NotImplementedError,
                   "Trying to use forward AD with %s, that does not support it because it is an out= function",
                   tp_op_name(op, name));
}

/* ---- the rule ---- */

static const tp_forward_rule *rule_of(const tp_op *op) { return op->info->forward; }

/* An argument that an operator has no gradient by. */
static int check_refused(const tp_op *op, const tp_tangent_list *l) {
    for (int i = 0; rule_of(op) && i < op->info->nargs; i++)
        if (rule_of(op)->roles[i] == 'x' && tp_has_tangent(l, i))
            return tp_fail(TP_RuntimeError,
                           "the function '%s' is not differentiable with respect to argument '%s', which has a "
                           "tangent: detach() it",
                           op->info->name, op->info->args[i].name);
    return 0;
}

static int apply(const tp_forward_call *c, const tp_forward_rule *rule, tp_tensor **out) {
    switch (rule ? rule->kind : TP_FORWARD_TWICE) {
    case TP_FORWARD_NONE: return 0;
    case TP_FORWARD_LINEAR: return tp_forward_linear(c, out);
    case TP_FORWARD_MULTILINEAR: return tp_forward_multilinear(c, out);
    case TP_FORWARD_TERMS: return tp_forward_terms(c, out);
    case TP_FORWARD_TWICE: return tp_forward_twice(c, out);
    default: return tp_fail_no_forward(c->op);
    }
}

static bool is_smooth(const tp_tensor *t) { return t && (tp_is_floating(t) || tp_is_complex(t)); }

/* Memory that the formula passed through, a tangent's or an argument's, is not the result's own. */
static bool is_shared(const tp_forward_call *c, const tp_tensor *tangent) {
    const tp_storage *memory = tp_physical_storage(tangent);
    for (int i = 0; i < c->tangents->first[TP_FORWARD_ARGUMENTS]; i++)
        if (c->tangents->all[i] && tp_physical_storage(c->tangents->all[i]) == memory) return true;
    for (int i = 0; i < c->op->info->nargs; i++) {
        tp_tensors list = tp_tensors_in(&c->args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && tp_physical_storage(list.data[k]) == memory) return true;
    }
    return false;
}

/* ---- results ---- */

/* Gives a result its tangent, where the operator gives something new or a view; `tangent` may be NULL. */
static int settle_result(const tp_forward_call *c, tp_tensor *t, tp_tensor *tangent) {
    if (!is_smooth(t)) return 0;
    if (!tangent) return t->base ? tp_put_tangent(t, c->tangents->number, NULL) : 0;
    tp_autoref *fit = tp_fit_tangent(t, tangent);
    if (fit && !t->base && is_shared(c, fit)) {
        tp_autoref *passed_on = fit;
        fit = tp_clone(passed_on, TP_NO_FORMAT);
    }
    return fit ? tp_put_tangent(t, c->tangents->number, fit) : -1;
}

static int settle_results(const tp_forward_call *c, const tp_value *results, tp_tensor *const *tangents) {
    for (int i = 0; i < c->op->info->nreturns; i++) {
        tp_tensors list = tp_tensors_in(&results[i]);
        for (int64_t k = 0; k < list.size; k++, tangents++)
            if (settle_result(c, list.data[k], *tangents) < 0) return -1;
    }
    return 0;
}

static int settle_written(const tp_forward_call *c, tp_tensor *self, tp_tensor *tangent) {
    if (!is_smooth(self)) return 0;
    tp_autoref *fit = tangent ? tp_fit_tangent(self, tangent) : NULL;
    return tangent && !fit ? -1 : tp_write_tangent(self, c->tangents->number, fit);
}

/* ---- a level ---- */

typedef struct {
    const tp_op *op;
    tp_keyset ks;
    tp_value *args;
    tp_value old[TP_FORWARD_ARGUMENTS];     /* args, with what is written as it was */
    tp_tensor *saved[TP_FORWARD_ARGUMENTS]; /* copies in `old`; owned */
    bool kept;
    int64_t offset; /* of self's elements in its storage, before the call */
    int visible;
} call;

static int differentiate_new(call *c, tp_tangent_list *l, const tp_value *results) {
    tp_forward_call f = {c->op, c->args, results, l};
    int n = (int)tp_count_tensors(results, c->op->info->nreturns);
    bool smooth = false;
    for (int i = 0; i < c->op->info->nreturns; i++) {
        tp_tensors list = tp_tensors_in(&results[i]);
        for (int64_t k = 0; k < list.size; k++) smooth |= is_smooth(list.data[k]);
    }
    if (!smooth) return 0;
    tp_tensor **tangents = calloc((size_t)n, sizeof *tangents);
    if (!tangents) return tp_fail_memory(n * (int64_t)sizeof *tangents);
    int status = l->any ? apply(&f, rule_of(c->op), tangents) : 0;
    if (status == 0) status = settle_results(&f, results, tangents);
    for (int i = 0; i < n; i++) tp_release(tangents[i]);
    free(tangents);
    return status;
}

/* An operator that changes self's geometry gives the tangent the same. */
static int differentiate_geometry(call *c, tp_tangent_list *l) {
    if (!l->all[0]) return 0;
    tp_value args[TP_FORWARD_ARGUMENTS], none[1] = {{0}};
    tp_autoref *alias = tp_alias(l->all[0]);
    memcpy(args, c->args, sizeof(tp_value) * c->op->info->nargs);
    args[0].tensor = alias;
    int last = c->op->info->nargs - 1; /* where as_strided_ begins is counted from the storage's beginning */
    if (alias && args[last].tag == TP_INT && strcmp(c->op->info->args[last].name, "storage_offset") == 0)
        args[last].i += tp_storage_offset(alias) - c->offset;
    if (!alias || tp_call_boxed(c->op, args, none) < 0) return -1;
    return tp_put_tangent(c->args[0].tensor, l->number, alias);
}

/* The tangent of what is written is overwritten, too: where reverse mode may save it, the rule gets a copy. */
static int keep_tangent(const call *c, tp_tangent_list *l) {
    if (!l->all[0] || !tp_grad_enabled()) return 0;
    bool recorded = tp_wants_grad_list((tp_tensors){l->all, l->first[TP_FORWARD_ARGUMENTS]});
    for (int i = 0; i < c->op->info->nargs; i++) recorded |= tp_wants_grad_list(tp_tensors_in(&c->args[i]));
    if (!recorded) return 0;
    tp_autoref *overwritten = l->all[0];
    return (l->all[0] = tp_clone(overwritten, TP_NO_FORMAT)) ? 0 : -1;
}

static int differentiate_written(call *c, tp_tangent_list *l) {
    const tp_forward_rule *rule = rule_of(c->op);
    if (rule && rule->kind == TP_FORWARD_GEOMETRY) return differentiate_geometry(c, l);
    if (!rule || c->args[0].tag != TP_TENSOR || !c->op->info->args[0].is_write) return tp_fail_no_forward(c->op);
    bool variant = rule->kind == TP_FORWARD_INPLACE;
    if (rule->kind == TP_FORWARD_TWICE) return tp_fail_no_forward(c->op); /* self would be a leaf */
    const tp_op *op = variant ? rule->other : c->op;
    tp_value now[1] = {{.tag = TP_TENSOR, .tensor = c->args[0].tensor}};
    tp_forward_call f = {op, c->old, now, l};
    tp_tensor *tangent = NULL;
    if (keep_tangent(c, l) < 0) return -1;
    int status = l->any ? apply(&f, variant ? rule_of(op) : rule, &tangent) : 0;
    if (status == 0) status = settle_written(&f, c->args[0].tensor, tangent);
    tp_release(tangent);
    return status;
}

static bool writes(const tp_op *op) {
    for (int i = 0; i < op->info->nargs; i++)
        if (op->info->args[i].is_write) return true;
    return false;
}

static bool is_out(const tp_op *op) { return op->info->nargs > 0 && op->info->args[op->info->nargs - 1].is_out; }

/* What is written, and what shares its memory, is kept as it was, tangents and all. */
static int keep_old(call *c) {
    if (c->kept || !writes(c->op) || c->args[0].tag != TP_TENSOR) return 0;
    const tp_forward_rule *rule = rule_of(c->op);
    const tp_tensor *self = c->args[0].tensor;
    if (tp_check_not_captured(self, c->op->info->name) < 0) return -1;
    memcpy(c->old, c->args, sizeof(tp_value) * c->op->info->nargs);
    c->kept = true;
    c->offset = tp_storage_offset(self);
    if (!rule || rule->kind == TP_FORWARD_GEOMETRY) return 0;
    for (int i = 0; i < c->op->info->nargs; i++) {
        if (c->args[i].tag != TP_TENSOR || c->args[i].tensor->storage != self->storage) continue;
        c->old[i].tensor = c->saved[i] = tp_clone(c->args[i].tensor, TP_NO_FORMAT);
        if (!c->saved[i]) return -1;
    }
    return 0;
}

/* The innermost level below `below` that an argument is noted down at; -1: none, -2: failed. */
static int find_level(call *c, int below, tp_tangent_list *l) {
    for (int at = below - 1; at >= 0; at--) {
        tp_forward_show(at);
        if (gather(l, c->op, c->args, tp_forward_number(at)) < 0) return -2;
        if (l->known) return at;
        free_list(l);
    }
    return -1;
}

static int run(call *c, int below, tp_value *results) {
    tp_autotangents l = {0};
    int at = find_level(c, below, &l);
    tp_forward_show(c->visible);
    if (at == -2) return -1;
    if (at < 0) return tp_redispatch_boxed(c->op, c->ks & TP_BELOW(ForwardAD), c->args, results);
    if (l.any && is_out(c->op)) return fail_out(c->op);
    if (l.any && (check_refused(c->op, &l) < 0 || keep_old(c) < 0)) return -1;
    if (run(c, at, results) < 0) return -1;
    tp_forward_show(at);
    int status = 0;
    {
        tp_exclude_guard guard = tp_exclude(TP_AUTOCAST_KEYS);
        if (!writes(c->op)) status = differentiate_new(c, &l, results);
        else if (l.any) status = differentiate_written(c, &l);
    }
    tp_forward_show(c->visible);
    if (status < 0) tp_release_values(results, c->op->info->nreturns);
    return status;
}

/* Whether the operator is made of others on the parts of a layout's tensor (Note [Layouts] in core/layout.h), which
 * come back to this key: they have tangents. */
static bool is_made_of_parts(const tp_op *op, tp_keyset ks) {
    if (tp_likely(!(ks & (TP_BIT(Layout) | TP_BIT(LayoutNested)))) || writes(op)) return false;
    ks &= __atomic_load_n(&op->live, __ATOMIC_ACQUIRE);
    return ks & TP_BIT(Layout) || (ks & TP_BIT(LayoutNested) && !tp_has_kernel(op, TP_KEY_NestedTensor));
}

static int fall_back(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context TP_UNUSED) {
    if (tp_tls.inference_mode || op->info->nargs > TP_FORWARD_ARGUMENTS || is_made_of_parts(op, ks))
        return tp_redispatch_boxed(op, ks & TP_BELOW(ForwardAD), args, results);
    int visible = tp_forward_show(0);
    call c = {.op = op, .ks = ks, .args = args, .visible = visible};
    int status = run(&c, visible, results);
    tp_forward_show(visible);
    for (int i = 0; c.kept && i < op->info->nargs; i++) tp_release(c.saved[i]);
    return status;
}

int tp_forward_load(void) {
    return tp_register_fallback(TP_KEY_ForwardAD, fall_back, NULL, NULL, "forward/call.c") < 0 ? -1 : 0;
}
