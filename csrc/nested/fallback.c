/* fallback.c: operators of nested tensors whose entries say nothing: called on all values, or on each piece. */
#include "Functions.h"
#include "autograd/node.h"
#include "batched/rule.h"
#include "core/tls.h"
#include "dispatch/exchange.h"
#include "dispatch/op.h"
#include "native/layout/nested.h"
#include "nested/nested.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 32

/* A call, and what it is given instead of its arguments. */
typedef struct {
    const tp_op *op;
    const tp_value *args;
    tp_value given[MAX_ARGUMENTS];
    int64_t dims[MAX_ARGUMENTS][TP_MAX_DIMS]; /* lists of dimensions, of pieces */
    tp_tensor *like;                          /* the first nested tensor; borrowed */
    tp_nested n;                              /* it, taken apart */
    tp_tensor **owned;                        /* tensors given, and their lists */
    int64_t nowned;
    int64_t piece; /* that the operator is called on, where it is called on each */
} call;

static void end_call(call *c) {
    for (int64_t i = 0; i < c->nowned; i++) tp_release(c->owned[i]);
    free(c->owned);
    tp_nested_release(&c->n);
}

static bool has_tag(const tp_op *op, const char *wanted) {
    for (const char *const *tag = op->info->tags; *tag; tag++)
        if (strcmp(*tag, wanted) == 0) return true;
    return false;
}

static bool gives_tensors(const tp_op *op) {
    const char *results = strstr(op->info->schema, ") -> ");
    return results && strstr(results, "Tensor");
}

static int refuse(const call *c, const char *why) {
    char name[128];
    return tp_fail(TP_NotImplementedError,
                   "%s of a nested tensor: %s. unbind() gives its tensors, to_padded_tensor() a "
                   "dense one",
                   tp_op_name(c->op, name), why);
}

static void let_go(call *c) {
    for (int64_t i = 0; i < c->nowned; i++) tp_release(tp_take(c->owned[i]));
    c->nowned = 0;
}

/* Gives each tensor of the arguments what `stand_in` makes of it. */
static int give(call *c, tp_exchange_fn stand_in) {
    let_go(c);
    return tp_exchange_tensors(c->op, c->args, c->given, c->owned, &c->nowned, stand_in, c);
}

static int begin(call *c, const tp_op *op, const tp_value *args, tp_tensor *like) {
    int64_t count = tp_count_tensors(args, op->info->nargs);
    c->op = op;
    c->args = args;
    c->like = like;
    if (op->info->nargs > MAX_ARGUMENTS) return refuse(c, "it has too many arguments");
    memcpy(c->given, args, (size_t)op->info->nargs * sizeof *args);
    c->owned = calloc((size_t)count + 1, sizeof *c->owned);
    return c->owned ? tp_nested_of(like, &c->n) : tp_fail_memory(count * (int64_t)sizeof *c->owned);
}

/* ---- on all values ---- */

static tp_tensor *values_beside(void *context, tp_tensor *t) {
    call *c = context;
    return t == c->like ? tp_retain(c->n.values) : tp_beside(&c->n, t, false);
}

/* Results that are values become nested; `ragged`: their differing dimension. */
static int wrap_values(const call *c, tp_value *results, int64_t ragged) {
    for (int i = 0; i < c->op->info->nreturns; i++) {
        if (results[i].tag != TP_TENSOR || !results[i].tensor) continue;
        results[i].tensor = tp_nested_with_steal(&c->n, results[i].tensor, ragged);
        if (!results[i].tensor) return results[i].tag = TP_NONE, tp_release_values(results, c->op->info->nreturns), -1;
    }
    return 0;
}

/* What is written are the values where they are; where it is recorded, autograd sees a write to them, and a nested
 * tensor made of them whose history becomes that of the one that was written. */
static int write_values(call *c, tp_value *results) {
    bool records = false;
    for (int i = 0; i < c->op->info->nargs; i++) {
        tp_tensor *t = c->args[i].tag == TP_TENSOR ? c->args[i].tensor : NULL;
        bool written = c->op->info->args[i].is_write;
        if (written && t != c->like) return refuse(c, "only its first nested tensor is written");
        tp_tensors all = tp_value_tensors(&c->args[i]);
        for (int64_t k = 0; k < all.size; k++) records |= tp_requires_grad(all.data[k]);
    }
    records &= tp_grad_enabled();
    if (tp_nested_check_inplace(c->like, c->op->info->name, records) < 0) return -1;
    tp_nested_own_values(&c->n);
    if (give(c, values_beside) < 0 || tp_call_boxed(c->op, c->given, results) < 0) return -1;
    tp_release_values(results, c->op->info->nreturns);
    return records ? tp_nested_written(c->like, &c->n) : (tp_bump_version(c->like), 0);
}

static int on_values(call *c, tp_value *results) {
    if (give(c, values_beside) < 0 || tp_call_boxed(c->op, c->given, results) < 0) return -1;
    return wrap_values(c, results, c->n.ragged);
}

/* ---- dimensions ---- */

/* What dimensions a call is about. */
typedef struct {
    bool some;       /* it names dimensions */
    bool batch;      /* the one that counts the tensors is among them */
    bool all;        /* it reduces all, since it names none */
    bool keeps;      /* reduced ones are kept with the size 1 */
    bool reduces;    /* it reduces those that it names */
    uint64_t ragged; /* the differing one is among them */
    int64_t before;  /* how many before the differing one are reduced */
} about;

static bool has_one_tensor(const call *c) {
    int64_t count = 0;
    for (int i = 0; i < c->op->info->nargs; i++)
        count += c->args[i].tag == TP_TENSORS ? 2 : c->args[i].tag == TP_TENSOR && c->args[i].tensor;
    return count == 1;
}

/* Whether an argument counts dimensions as unsqueeze does, of a tensor with one more. */
static bool is_new(const tp_op *op, int argument) {
    const tp_batch_rule *rule = op->info->batching;
    return rule && rule->roles && memchr(rule->roles, 'e', strlen(rule->roles)) && rule->roles[argument] == 'e';
}

static int shift(call *c, int64_t *dim, bool new, about *a) {
    int64_t at = tp_wrap_dim(*dim, c->like->ndim + new);
    if (at < 0) return -1;
    if (at == 0)
        return tp_fail(TP_RuntimeError, "%s(): not supported for NestedTensor on dim=0, which counts its tensors",
                       c->op->info->name);
    a->some = true;
    a->ragged |= at == c->n.ragged || (c->n.shapes != NULL);
    a->before += at < c->n.ragged;
    *dim = at - 1;
    return 0;
}

static bool is_among(const char *name, const char *const *names) {
    while (*names && strcmp(name, *names) != 0) names++;
    return *names;
}

/* Names of arguments that are dimensions: also those that begin so. */
static bool names_dims(const char *name) {
    static const char *const others[] = {"start_dim", "end_dim", "source", "destination", NULL};
    return strncmp(name, "dim", 3) == 0 || strncmp(name, "axis", 4) == 0 || is_among(name, others);
}

/* Lists of sizes: of a shape, or `SymInt[]` in the place of dimensions. */
static bool names_sizes(const tp_op *op, const char *name) {
    static const char *const sizes[] = {"size", "shape", "sizes", "repeats", NULL};
    char typed[64];
    snprintf(typed, sizeof typed, "SymInt[] %s", name);
    return is_among(name, sizes) || (names_dims(name) && strstr(op->info->schema, typed));
}

/* A list may name the dimension 0 beside others. */
static int shift_list(call *c, int argument, about *a) {
    tp_value *v = &c->given[argument];
    int64_t kept = 0;
    if (v->ints.size > TP_MAX_DIMS) return refuse(c, "too many dimensions");
    for (int64_t k = 0; k < v->ints.size; k++) {
        int64_t dim = v->ints.data[k];
        if (v->ints.size > 1 && (dim == 0 || dim == -c->like->ndim)) {
            if (a->batch) return tp_fail(TP_RuntimeError, "%s(): dimension 0 is named twice", c->op->info->name);
            a->batch = true;
            continue;
        }
        c->dims[argument][kept] = dim;
        if (shift(c, &c->dims[argument][kept++], false, a) < 0) return -1;
    }
    v->ints = (tp_ints){c->dims[argument], kept};
    return 0;
}

static int shift_dims(call *c, about *a) {
    for (int i = 0; i < c->op->info->nargs; i++) {
        const char *name = c->op->info->args[i].name;
        tp_value *v = &c->given[i];
        if (strcmp(name, "keepdim") == 0) {
            a->reduces = true;
            a->keeps = v->tag == TP_BOOL_ && v->b;
        }
        if (v->tag == TP_INTS_ && names_sizes(c->op, name)) return refuse(c, "sizes are not those of one piece");
        if (!names_dims(name)) continue;
        if (v->tag == TP_INT && shift(c, &v->i, is_new(c->op, i), a) < 0) return -1;
        if (v->tag == TP_INTS_ && v->ints.size >= 0 && shift_list(c, i, a) < 0) return -1;
    }
    a->all = a->reduces && !a->some;
    if (a->batch && !(a->reduces && a->ragged && !c->n.shapes && has_one_tensor(c)))
        return tp_fail(TP_RuntimeError,
                       "%s(): not supported for NestedTensor on dim=0 without the dimension whose sizes differ",
                       c->op->info->name);
    return 0;
}

static tp_tensor *packed_of(void *context, tp_tensor *t) {
    const call *c = context;
    return t == c->like ? tp_nested_packed(&c->n) : tp_retain(t);
}

/* A reduction over the tensors and the dimension that differs: of all values. */
static int over_batch(call *c, bool keeps, tp_value *results) {
    int n = c->op->info->nreturns;
    if (give(c, packed_of) < 0 || tp_call_boxed(c->op, c->given, results) < 0) return -1;
    for (int i = 0; keeps && i < n; i++) {
        if (results[i].tag != TP_TENSOR || !results[i].tensor) continue;
        tp_autoref *inner = results[i].tensor;
        if (!(results[i].tensor = tp_unsqueeze(inner, 0)))
            return results[i].tag = TP_NONE, tp_release_values(results, n), -1;
    }
    return 0;
}

static tp_tensor *flat_of(void *context, tp_tensor *t) {
    call *c = context;
    if (t == c->like) return tp_nested_flat_of(&c->n);
    return tp_is_nested(t) ? (refuse(c, "of several"), NULL) : tp_retain(t);
}

/* ---- on each piece ---- */

static tp_tensor *piece_of(void *context, tp_tensor *t) {
    const call *c = context;
    if (tp_is_nested(t)) return tp_select_int(t, 0, c->piece);
    if (t->ndim != c->like->ndim || t->ndim == 0 || (t->sizes[0] != 1 && t->sizes[0] != c->n.count))
        return tp_retain(t);
    return tp_select_int(t, 0, t->sizes[0] == 1 ? 0 : c->piece);
}

static tp_tensor *joined(const call *c, tp_tensor *const *parts, bool stack) {
    for (int64_t i = 0; i < c->n.count; i++)
        if (!parts[i]) return tp_fail_null(TP_RuntimeError, "%s gives no tensor for some pieces", c->op->info->name);
    tp_tensors list = {parts, c->n.count};
    return stack ? tp_stack(list, 0) : tp_nested_of_results(&c->n, list);
}

static int join_list(const call *c, const tp_value *all, int i, tp_tensor **parts, tp_value *result) {
    int n = c->op->info->nreturns;
    for (int64_t b = 0; b < c->n.count; b++)
        if (all[b * n + i].seq->size != all[i].seq->size) return refuse(c, "its pieces give lists of several lengths");
    tp_autoseq *made = tp_tensor_seq_new(all[i].seq->size);
    for (int64_t k = 0; made && k < made->size; k++) {
        for (int64_t b = 0; b < c->n.count; b++) parts[b] = all[b * n + i].seq->items[k];
        if (!(made->items[k] = joined(c, parts, false))) return -1;
    }
    *result = (tp_value){.tag = TP_TENSOR_SEQ, .seq = made};
    return tp_take(made) ? 0 : -1;
}

static int join(const call *c, const tp_value *all, tp_tensor **parts, bool stack, bool reduces, tp_value *results) {
    int n = c->op->info->nreturns, status = 0;
    for (int i = 0; i < n && status == 0; i++) {
        if (all[i].tag == TP_TENSOR_SEQ) status = join_list(c, all, i, parts, &results[i]);
        else if (all[i].tag == TP_TENSOR) {
            if (!all[i].tensor) {
                results[i] = all[i];
                continue;
            }
            for (int64_t b = 0; b < c->n.count; b++) parts[b] = all[b * n + i].tensor;
            bool lost = !stack && !reduces && parts[0] && parts[0]->ndim == 0 && c->like->ndim > 1;
            if (lost) return refuse(c, "it gives a number of each piece");
            results[i] = (tp_value){.tag = TP_TENSOR, .tensor = joined(c, parts, stack)};
            status = results[i].tensor ? 0 : -1;
        } else status = refuse(c, "it gives no tensors");
        if (status < 0) results[i].tag = TP_NONE;
    }
    if (status < 0) tp_release_values(results, c->op->info->nreturns);
    return status;
}

static int on_pieces(call *c, bool stack, bool reduces, tp_value *results) {
    int n = c->op->info->nreturns;
    if (c->n.count == 0) return refuse(c, "it has no pieces");
    bool cuts = c->op->info->nreturns && c->op->info->returns[0].tag == TP_TENSOR_SEQ;
    if (cuts && tp_nested_check_no_holes(&c->n, TP_ValueError, c->op->info->name) < 0) return -1;
    tp_value *all = calloc((size_t)(c->n.count * n) + 1, sizeof *all);
    tp_tensor **parts = calloc((size_t)c->n.count, sizeof *parts);
    int status = all && parts ? 0 : tp_fail_memory(c->n.count * (int64_t)sizeof *all);
    for (int64_t b = 0; status == 0 && b < c->n.count; b++) {
        c->piece = b;
        status = give(c, piece_of);
        if (status == 0) status = tp_call_boxed(c->op, c->given, all + b * n);
    }
    if (status == 0) status = join(c, all, parts, stack, reduces, results);
    for (int64_t i = 0; all && i < c->n.count * n; i++) tp_value_release(&all[i]);
    free(all);
    free(parts);
    return status;
}

/* What is written, where it is the first argument. */
static const tp_tensor *like_written(const call *c) { return c->op->info->args[0].is_write ? c->like : NULL; }

static int choose(call *c, tp_value *results) {
    bool writes = false;
    about a = {0};
    for (int i = 0; i < c->op->info->nargs; i++) writes |= c->op->info->args[i].is_write;
    if (has_tag(c->op, "pointwise")) return writes ? write_values(c, results) : on_values(c, results);
    bool draws = writes && c->args[0].tag == TP_TENSOR && c->args[0].tensor == like_written(c);
    if (draws && has_tag(c->op, "nondeterministic_seeded")) return write_values(c, results);
    if (writes) return refuse(c, "it is not written by this operator");
    if (shift_dims(c, &a) < 0) return -1;
    if (a.all && a.keeps) return refuse(c, "a reduction of all dimensions keeps none");
    if (a.all) return give(c, flat_of) < 0 ? -1 : tp_call_boxed(c->op, c->given, results);
    if (a.ragged && a.reduces && tp_nested_check_no_holes(&c->n, TP_RuntimeError, c->op->info->name) < 0) return -1;
    if (a.batch) return over_batch(c, a.keeps, results);
    if (a.reduces && !a.ragged && has_one_tensor(c)) {
        if (give(c, values_beside) < 0 || tp_call_boxed(c->op, c->given, results) < 0) return -1;
        return wrap_values(c, results, c->n.ragged - (a.keeps ? 0 : a.before));
    }
    return on_pieces(c, a.reduces && a.ragged && c->n.jagged, a.reduces, results);
}

/* NULL: none, where somebody includes the key for a scope. */
static tp_tensor *first_nested(const tp_op *op, const tp_value *args) {
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && tp_is_nested(list.data[k])) return list.data[k];
    }
    return NULL;
}

static int fall_back(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context TP_UNUSED) {
    tp_tensor *like = first_nested(op, args);
    if (!like || !gives_tensors(op) || tp_has_kernel(op, TP_KEY_NestedTensor))
        return tp_redispatch_boxed(op, ks & TP_BELOW(LayoutNested), args, results);
    call c = {0};
    int status = begin(&c, op, args, like) < 0 ? -1 : choose(&c, results);
    end_call(&c);
    return status;
}

static int check_inplace(tp_tensor *self, const char *op, bool records) { return tp_check_inplace(self, op, records); }

/* The version of the values has moved, by which a view knows that its base has another history. */
static int written(tp_tensor *self, const tp_nested *n) {
    if (n->values->base) return 0;
    tp_autoref *made =
        tp__nested_make(n->values, n->offsets, n->lengths, n->shapes, n->ragged, n->jagged, n->least, n->most);
    return made ? tp_take_history(self, made) : -1;
}

int tp_nested_load(void) {
    tp_nested_check_inplace = check_inplace;
    tp_nested_written = written;
    return tp_register_fallback(TP_KEY_LayoutNested, fall_back, NULL, NULL, "nested/fallback.c") > 0 ? 0 : -1;
}
