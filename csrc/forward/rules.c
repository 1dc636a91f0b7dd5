/* rules.c: the kinds of rule that call operators: linear, multilinear, sums of terms; see rule.h. */
#include "Functions.h"
#include "batched/batched.h"
#include "forward/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- calls with tangents in the arguments' place ---- */

/* The arguments of such a call. */
typedef struct {
    tp_value args[TP_FORWARD_ARGUMENTS];
    tp_tensor **owned; /* where a list was made, its tensors lie here */
    int n;
} given;

static void free_given(given *g) {
    for (int i = 0; i < g->n; i++) tp_release(g->owned[i]);
    free(g->owned);
}
#define tp_autogiven TP_CLEANUP(free_given) given

static int begin(given *g, const tp_forward_call *c) {
    int n = (int)tp_count_tensors(c->args, c->op->info->nargs);
    memcpy(g->args, c->args, sizeof(tp_value) * c->op->info->nargs);
    g->owned = calloc((size_t)n + 1, sizeof *g->owned);
    return g->owned ? 0 : tp_fail_memory(n * (int64_t)sizeof *g->owned);
}

static tp_tensor *zeros_of(tp_tensor *t) {
    return tp_zeros_like(t, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
}

/* Zeros that tangents are written to: batched if these are (Note [Batched tangents] in batched/batched.h). */
static tp_tensor *zeros_to_write(const tp_forward_call *c, tp_tensor *t) {
    for (int i = 0; i < c->tangents->first[TP_FORWARD_ARGUMENTS]; i++) {
        tp_tensor *kind = c->tangents->all[i];
        if (kind && tp_is_batched(kind) && !tp_is_batched(t)) return tp_zeros_for_tangent(t, kind);
    }
    return zeros_of(t);
}

static tp_tensor *tangent_or_zeros(tp_tensor *t, tp_tensor *tangent) {
    if (tangent || !t) return tp_retain(tangent);
    if (t->keys & TP_NO_MEMORY || !tp_has_memory(t)) return zeros_of(t);
    return tp__efficientzerotensor(tp_sizes(t), (tp_dtype)t->dtype, TP_STRIDED, t->device, -1);
}

/* Tangents in the place of argument i; of an argument that is written, a copy of it. */
static int give_tangents(given *g, const tp_forward_call *c, int i) {
    tp_tensors list = tp_tensors_in(&c->args[i]);
    tp_tensor *const *tangents = tp_tangents_in(c->tangents, i);
    tp_tensor *const *first = g->owned + g->n;
    bool written = c->op->info->args[i].is_write;
    for (int64_t k = 0; k < list.size; k++) {
        bool copied = written && tangents[k];
        tp_tensor *t = copied                    ? tp_clone(tangents[k], TP_NO_FORMAT)
                       : written && list.data[k] ? zeros_to_write(c, list.data[k])
                                                 : tangent_or_zeros(list.data[k], tangents[k]);
        if (list.data[k] && !t) return -1;
        g->owned[g->n++] = t;
    }
    if (c->args[i].tag == TP_TENSORS) g->args[i].tensors = (tp_tensors){first, list.size};
    else if (c->args[i].tag == TP_TENSOR) g->args[i].tensor = *first;
    return 0;
}

/* What is written and has no tangent in the result's is written into zeros. */
static int give_zeros(given *g, const tp_forward_call *c, int i) {
    tp_tensor *zeros = zeros_to_write(c, c->args[i].tensor);
    g->args[i].tensor = g->owned[g->n++] = zeros;
    return zeros ? 0 : -1;
}

static int count_results(const tp_op *op) { return op->info->nreturns ? op->info->nreturns : 1; }

/* The tensors of the results, one after the other, as out's own. */
static void take_results(const tp_op *op, const given *g, tp_value *results, tp_tensor **out) {
    if (op->info->nargs && op->info->args[0].is_write) {
        *out = tp_retain(g->args[0].tensor);
        return;
    }
    for (int i = 0; i < op->info->nreturns; i++) {
        tp_tensors list = tp_tensors_in(&results[i]);
        for (int64_t k = 0; k < list.size; k++) *out++ = tp_retain(list.data[k]);
    }
    tp_release_values(results, op->info->nreturns);
}

int tp_forward_linear(const tp_forward_call *c, tp_tensor **out) {
    tp_autogiven g = {0};
    const char *roles = c->op->info->forward->roles;
    if (begin(&g, c) < 0) return -1;
    for (int i = 0; i < c->op->info->nargs; i++) {
        if (roles[i] == 't' && give_tangents(&g, c, i) < 0) return -1;
        if (roles[i] != 't' && c->op->info->args[i].is_write && give_zeros(&g, c, i) < 0) return -1;
    }
    tp_value results[count_results(c->op)];
    memset(results, 0, sizeof results);
    if (tp_call_boxed(c->op, g.args, results) < 0) return -1;
    take_results(c->op, &g, results, out);
    return 0;
}

/* ---- sums ---- */

/* Adds (stolen) to what is there; nothing, without an error, is no part. */
static int add_steal(tp_tensor **sum, tp_tensor *t) {
    tp_autoref *part = t;
    if (!part) return tp_error_pending() ? -1 : 0;
    if (!*sum) return *sum = tp_take(part), 0;
    tp_autoref *before = *sum;
    return (*sum = tp_add_Tensor(before, part, TP_SCALAR_I(1))) ? 0 : -1;
}

static int add_with(const tp_forward_call *c, int i, tp_tensor **out) {
    tp_autogiven g = {0};
    tp_value results[1] = {{0}};
    if (begin(&g, c) < 0 || give_tangents(&g, c, i) < 0 || tp_call_boxed(c->op, g.args, results) < 0) return -1;
    return add_steal(out, results[0].tensor);
}

int tp_forward_multilinear(const tp_forward_call *c, tp_tensor **out) {
    const char *roles = c->op->info->forward->roles;
    for (int i = 0; i < c->op->info->nargs; i++)
        if (roles[i] == 't' && tp_has_tangent(c->tangents, i) && add_with(c, i, out) < 0) return -1;
    return 0;
}

/* ---- terms ---- */

/* The conjugate of a complex one; of the result's sizes, as a gradient is. */
static tp_tensor *as_gradient(const tp_forward_call *c, const tp_forward_term *term, tp_tensor *tangent) {
    const tp_tensor *result = tp_tensors_in(&c->results[0]).data[term->output];
    bool fits = tp_same_sizes(tangent, result);
    tp_autoref *spread = fits ? tp_retain(tangent) : tp_expand(tangent, tp_sizes(result), false);
    return spread && tp_is_complex(spread) ? tp_conj_physical(spread) : tp_take(spread);
}

static tp_tensor *pointwise(const tp_forward_call *c, const tp_forward_term *term) {
    int i = __builtin_ctzll(term->uses);
    tp_tensor *tangents[TP_FORWARD_ARGUMENTS] = {0};
    tp_autoref *grad = tangents[i] = as_gradient(c, term, *tp_tangents_in(c->tangents, i));
    tp_autoref *back = grad ? term->compute(c->args, c->results, tangents) : NULL;
    return back && tp_is_complex(back) ? tp_conj_physical(back) : tp_take(back);
}

static tp_tensor *other_term(const tp_forward_call *c, const tp_forward_term *term) {
    tp_tensor *tangents[TP_FORWARD_ARGUMENTS] = {0};
    bool failed = false;
    for (int i = 0; i < c->op->info->nargs; i++)
        if (term->uses >> i & 1 && c->args[i].tag == TP_TENSOR) {
            tangents[i] = tangent_or_zeros(c->args[i].tensor, *tp_tangents_in(c->tangents, i));
            failed |= !tangents[i];
        }
    tp_tensor *t = failed ? NULL : term->compute(c->args, c->results, tangents);
    for (int i = 0; i < c->op->info->nargs; i++) tp_release(tangents[i]);
    return t;
}

/* Whether the result is there, and depends on a tangent that is. */
static bool has_part(const tp_forward_call *c, const tp_forward_term *term) {
    if (c->results[term->output].tag == TP_TENSOR && !c->results[term->output].tensor) return false;
    for (int i = 0; i < c->op->info->nargs; i++)
        if (term->uses >> i & 1 && tp_has_tangent(c->tangents, i)) return true;
    return false;
}

int tp_forward_terms(const tp_forward_call *c, tp_tensor **out) {
    const tp_forward_rule *rule = c->op->info->forward;
    for (int i = 0; i < rule->nterms; i++) {
        const tp_forward_term *term = &rule->terms[i];
        if (!has_part(c, term)) continue;
        tp_tensor *t = term->pointwise ? pointwise(c, term) : other_term(c, term);
        if (add_steal(&out[term->output], t) < 0) return -1;
    }
    return 0;
}
