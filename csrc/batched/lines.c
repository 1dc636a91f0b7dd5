/* lines.c: operators for which a batch is one dimension more: in front (lines), or as a part of dimension 0 (samples).
 *
 * Each argument is made physical by its role (rule.h), the operator is called, and what it gives is batched. */
#include "Functions.h"
#include "batched/call.h"
#include "core/layout.h"
#include "iter/iter.h"

#include <string.h>

/* ---- tensors ---- */

static tp_tensor *own_steal(tp_batch_call *c, tp_tensor *t) {
    if (t) c->owned[c->nowned++] = t;
    return t;
}

/* The batch stays in front; dimensions of size 1 come after it until there are `ndim` more. */
static tp_tensor *pad_steal(tp_tensor *t, int ndim) {
    while (t && t->ndim < ndim + 1) {
        tp_tensor *wider = tp_unsqueeze(t, 1);
        tp_release(t);
        t = wider;
    }
    return t;
}

/* The dtype that a batched tensor without dimensions of its own takes beside samples that have some: with the batch it
 * has one, and would no longer yield to theirs. TP_NO_DTYPE: it keeps its own. */
static tp_dtype yields_to(const tp_batch_call *c, const tp_tensor *t) {
    tp_operand operands[TP_BATCH_ARGUMENTS];
    int n = 0;
    if (t->ndim > 0 || c->ndim == 0 || t->dtype == TP_BOOL) return TP_NO_DTYPE;
    for (int i = 0; i < c->op->info->nargs; i++)
        if (c->rule->roles[i] == 'A' && c->args[i].tag == TP_TENSOR && c->args[i].tensor->dtype != TP_BOOL)
            operands[n++] = (tp_operand){.tensor = c->args[i].tensor};
    tp_dtype common = tp_result_type(operands, n);
    if (common == TP_NO_DTYPE) tp_error_clear();
    return common == (tp_dtype)t->dtype ? TP_NO_DTYPE : common;
}

/* Role A. A tensor that has no dimensions and no batch beside samples that have none either is of their kind. */
static tp_tensor *aligned(const tp_batch_call *c, tp_tensor *t) {
    if (c->rule->random) return pad_steal(tp_batch_all(&c->scope, t), c->ndim); /* each sample draws its own */
    if (!tp_batch_has(&c->scope, t)) {
        bool equal = t->ndim == 0 && c->ndim == 0 && !(t->flags & TP_FLAG_WRAPPED_NUMBER);
        return equal ? tp_unsqueeze(t, 0) : tp_retain(t);
    }
    tp_tensor *inner = tp_retain(tp_batch_inner_borrow(t));
    tp_dtype dtype = yields_to(c, t);
    if (dtype != TP_NO_DTYPE) {
        tp_tensor *cast = tp_to_dtype(inner, dtype, false, false, TP_NO_FORMAT);
        tp_release(inner);
        inner = cast;
    }
    return pad_steal(inner, c->ndim);
}

static tp_tensor *in_front(const tp_batch_call *c, tp_tensor *t) {
    tp_tensor *all = tp_batch_all(&c->scope, t);
    return c->line && t->ndim == 0 ? pad_steal(all, 1) : all;
}

/* A whole sample as one line. */
static tp_tensor *flattened(const tp_batch_call *c, tp_tensor *t) {
    tp_autoref *all = tp_batch_all(&c->scope, t);
    return all ? tp_reshape(all, TP_INTS(c->scope.size, t->numel)) : NULL;
}

/* The batch and dimension 0 as one. */
static tp_tensor *merged(const tp_batch_call *c, tp_tensor *t) {
    tp_autoref *all = tp_batch_all(&c->scope, t);
    return all ? tp_flatten_using_ints(all, 0, 1) : NULL;
}

typedef tp_tensor *(*make)(const tp_batch_call *c, tp_tensor *t);

/* An argument's tensors made physical. */
static int make_tensors(tp_batch_call *c, int i, make how) {
    tp_tensors list = tp_value_tensors(&c->args[i]);
    tp_tensor *const *first = c->owned + c->nowned;
    for (int64_t k = 0; k < list.size; k++) {
        if (!list.data[k]) c->owned[c->nowned++] = NULL;
        else if (!own_steal(c, how(c, list.data[k]))) return -1;
    }
    if (c->args[i].tag == TP_TENSORS) c->given[i].tensors = (tp_tensors){first, list.size};
    else if (c->args[i].tag == TP_TENSOR) c->given[i].tensor = *first;
    return 0;
}

/* ---- dimensions and sizes ---- */

static int give_ints(tp_batch_call *c, int i, int64_t n) {
    c->given[i] = (tp_value){.tag = TP_INTS_, .ints = {c->ints[c->nints++], n}};
    return 0;
}

static int shift_dims(tp_batch_call *c, int i, int ndim) {
    const tp_value *v = &c->args[i];
    if (v->tag == TP_INT) {
        int64_t d = tp_wrap_dim(v->i, ndim);
        c->given[i].i = d + 1;
        return d < 0 ? -1 : 0;
    }
    if (v->tag != TP_INTS_) return 0;
    int64_t *room = c->ints[c->nints];
    if (v->ints.size > TP_MAX_DIMS) return tp_fail(TP_RuntimeError, "vmap: too many dimensions are named");
    for (int64_t k = 0; k < v->ints.size; k++) {
        int64_t d = tp_wrap_dim(v->ints.data[k], ndim);
        if (d < 0) return -1;
        room[k] = d + 1;
    }
    return give_ints(c, i, v->ints.size);
}

/* A new order of all dimensions: the batch stays in front. */
static int shift_order(tp_batch_call *c, int i) {
    if (shift_dims(c, i, c->ndim) < 0) return -1;
    int64_t *room = c->ints[c->nints - 1], n = c->given[i].ints.size;
    memmove(room + 1, room, sizeof *room * (size_t)n);
    room[0] = 0;
    c->given[i].ints.size = n + 1;
    return 0;
}

/* None are all. */
static int shift_all(tp_batch_call *c, int i) {
    const tp_value *v = &c->args[i];
    if (v->tag == TP_INTS_ && v->ints.size > 0) return shift_dims(c, i, c->ndim);
    int n = c->line ? 1 : c->ndim;
    for (int d = 0; d < n; d++) c->ints[c->nints][d] = d + 1;
    return give_ints(c, i, n);
}

static int prefix(tp_batch_call *c, int i, int64_t first) {
    tp_ints v = c->args[i].ints;
    if (c->args[i].tag != TP_INTS_) return 0;
    if (v.size >= TP_MAX_DIMS)
        return tp_fail(TP_RuntimeError, "vmap: a batched tensor has at most %d dimensions", TP_MAX_DIMS - 1);
    int64_t *room = c->ints[c->nints];
    room[0] = first;
    if (v.size) memcpy(room + 1, v.data, sizeof(int64_t) * (size_t)v.size);
    return give_ints(c, i, v.size + 1);
}

static int times_batch(tp_batch_call *c, int i) {
    const tp_value *v = &c->args[i];
    if (v->tag == TP_INT) return c->given[i].i = v->i * c->scope.size, 0;
    if (v->tag != TP_INTS_ || v->ints.size == 0) return 0;
    if (v->ints.size) memcpy(c->ints[c->nints], v->ints.data, sizeof(int64_t) * (size_t)v->ints.size);
    c->ints[c->nints][0] *= c->scope.size;
    return give_ints(c, i, v->ints.size);
}

static void keep_format(tp_batch_call *c, int i) {
    if (c->args[i].tag == TP_MEMORY_FORMAT && c->args[i].i >= TP_CHANNELS_LAST)
        c->given[i] = (tp_value){.tag = TP_MEMORY_FORMAT, .i = TP_PRESERVE_FORMAT};
}

/* ---- a call ---- */

/* How many dimensions the roles speak of. */
static int count_dims(const tp_batch_call *c) {
    int most = 0, first = -1;
    for (int i = 0; i < c->op->info->nargs; i++) {
        char role = c->rule->roles[i];
        if (strchr("sxr", role) && c->args[i].tag == TP_INTS_) return (int)c->args[i].ints.size;
        tp_tensors list = tp_value_tensors(&c->args[i]);
        for (int64_t k = 0; strchr("TA", role) && k < list.size; k++) {
            if (!list.data[k]) continue;
            if (first < 0) first = list.data[k]->ndim;
            if (list.data[k]->ndim > most) most = list.data[k]->ndim;
        }
    }
    return strchr(c->rule->roles, 'A') ? most : first < 0 ? 0 : first;
}

static bool reduces_whole(const tp_batch_call *c) {
    const char *w = strchr(c->rule->roles, 'w');
    return w && c->args[w - c->rule->roles].tag == TP_NONE;
}

/* Along the one line that a sample is; what `keepdim` keeps is put back later. */
static void reduce_line(tp_batch_call *c, int i) {
    c->given[i] = (tp_value){.tag = TP_INT, .i = 1};
    int keepdim = tp_argument_named(c->op, "keepdim");
    c->whole_keepdim = keepdim >= 0 && c->args[keepdim].b ? c->ndim : 0;
    if (keepdim >= 0) c->given[keepdim].b = false;
}

static int make_argument(tp_batch_call *c, int i, bool whole) {
    switch (c->rule->roles[i]) {
    case 'T': return make_tensors(c, i, whole ? flattened : in_front);
    case 'A': return make_tensors(c, i, aligned);
    case 'd': return shift_dims(c, i, c->ndim);
    case 'p': return shift_order(c, i);
    case 'e': return shift_dims(c, i, c->ndim + 1);
    case 'a': return shift_all(c, i);
    case 'w': return whole ? (reduce_line(c, i), 0) : shift_dims(c, i, c->ndim);
    case 's':
    case 'x': return prefix(c, i, c->scope.size);
    case 'r': return prefix(c, i, 1);
    case 'm': return times_batch(c, i);
    case 'f': return keep_format(c, i), 0;
    default: return 0;
    }
}

static int call(tp_batch_call *c, const tp_op *op, const tp_value *given, tp_value *results) {
    return tp_call_boxed(op, given, results) < 0 ? -1 : tp_batch_wrap_results(c, results);
}

/* The fewest and the most dimensions of the tensors of role T. */
typedef struct {
    int least, most;
} span;

static span dims_of_samples(const tp_batch_call *c) {
    span s = {TP_MAX_DIMS, 0};
    for (int i = 0; i < c->op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&c->args[i]);
        for (int64_t k = 0; c->rule->roles[i] == 'T' && k < list.size; k++) {
            if (!list.data[k]) continue;
            s.least = list.data[k]->ndim < s.least ? list.data[k]->ndim : s.least;
            s.most = list.data[k]->ndim > s.most ? list.data[k]->ndim : s.most;
        }
    }
    return s;
}

/* A line beside a number, which counts as a line there: whose shape a result has is not said. */
static bool mixes_lines(const tp_batch_call *c) {
    span s = dims_of_samples(c);
    return s.least == 0 && s.most > 0 && strpbrk(c->rule->roles, "daw");
}

int tp_batch_lines(tp_batch_call *c, tp_value *results) {
    if (mixes_lines(c)) return tp_batch_loop(c, results, false);
    memcpy(c->given, c->args, sizeof(tp_value) * c->op->info->nargs);
    bool whole = reduces_whole(c);
    c->ndim = count_dims(c);
    c->line = c->ndim == 0 && strpbrk(c->rule->roles, "daw");
    for (int i = 0; i < c->op->info->nargs; i++)
        if (make_argument(c, i, whole) < 0) return -1;
    return call(c, c->op, c->given, results);
}

/* ---- the batch as a part of dimension 0 ---- */

static int split_results(const tp_batch_call *c, tp_value *results) {
    for (int i = 0; i < c->op->info->nreturns; i++) {
        tp_tensor *t = results[i].tag == TP_TENSOR ? results[i].tensor : NULL;
        if (!t) continue;
        int64_t sizes[TP_MAX_DIMS + 1] = {c->scope.size, t->sizes[0] / c->scope.size};
        memcpy(sizes + 2, t->sizes + 1, sizeof(int64_t) * (size_t)(t->ndim - 1));
        results[i].tensor = tp_reshape(t, (tp_ints){sizes, t->ndim + 1});
        tp_release(t);
        if (!results[i].tensor) return results[i].tag = TP_NONE, tp_release_values(results, c->op->info->nreturns), -1;
    }
    return tp_batch_wrap_results(c, results);
}

int tp_batch_samples(tp_batch_call *c, tp_value *results) {
    int least = dims_of_samples(c).least;
    if (least == 1) return tp_batch_lines(c, results); /* a sample is a line, and the batch is dimension 0 */
    if (least == 0 || c->scope.size == 0) return tp_batch_loop(c, results, false);
    memcpy(c->given, c->args, sizeof(tp_value) * c->op->info->nargs);
    for (int i = 0; i < c->op->info->nargs; i++) {
        bool tensor = c->rule->roles[i] == 'T';
        if ((tensor ? make_tensors(c, i, merged) : make_argument(c, i, false)) < 0) return -1;
    }
    return tp_call_boxed(c->op, c->given, results) < 0 ? -1 : split_results(c, results);
}

/* ---- whole samples ---- */

/* A sample whose dimensions are `dims` from 1 on: one line, or, in parts, which no view makes one line of, as it is. */
static tp_tensor *whole_sample(const tp_batch_call *c, tp_tensor *t, bool several, int *dims) {
    tp_autoref *all = tp_batch_all(&c->scope, t);
    *dims = t->ndim > 0 ? t->ndim : 1;
    if (all && several && tp_layout_of(all) != TP_STRIDED)
        return t->ndim > 0 ? tp_take(all) : pad_steal(tp_take(all), 1);
    return *dims = 1, all ? tp_reshape(all, TP_INTS(c->scope.size, t->numel)) : NULL;
}

int tp_batch_whole(tp_batch_call *c, tp_value *results) {
    const tp_op *other = c->rule->other;
    tp_value args[TP_BATCH_ARGUMENTS] = {{0}}, made[4] = {{0}};
    int64_t room[TP_MAX_DIMS];
    int dims = 1, dim = tp_argument_named(other, "dim");
    const bool several = dim >= 0 && other->info->args[dim].tag != TP_INT;
    for (int d = 0; d < TP_MAX_DIMS; d++) room[d] = d + 1;
    for (int i = 0; i < other->info->nargs; i++) {
        const tp_argument *a = &other->info->args[i];
        int from = tp_argument_named(c->op, a->name);
        if (from >= 0) args[i] = c->args[from];
        else if (strcmp(a->name, "dim") == 0 && a->tag == TP_INT) args[i] = (tp_value){.tag = TP_INT, .i = 1};
        else if (i == dim) args[i] = (tp_value){.tag = TP_INTS_, .ints = {room, dims}};
        else if (a->tag == TP_BOOL_) args[i] = (tp_value){.tag = TP_BOOL_, .b = false};
        if (args[i].tag == TP_TENSOR &&
            !(args[i].tensor = own_steal(c, whole_sample(c, args[i].tensor, several, &dims))))
            return -1;
    }
    if (tp_call_boxed(other, args, made) < 0) return -1;
    for (int i = 0; i < other->info->nreturns; i++)
        if (i < c->op->info->nreturns) results[i] = made[i];
        else tp_value_release(&made[i]);
    return tp_batch_wrap_results(c, results);
}

/* ---- results ---- */

/* A result that is the same for all samples and has no batch ("no vectors were asked for": a tensor of size 0). */
static tp_tensor *with_batch_steal(const tp_batch_call *c, tp_tensor *t) {
    if (tp_likely(t->ndim > 0 && t->sizes[0] == c->scope.size)) return t;
    int64_t sizes[TP_MAX_DIMS + 1] = {c->scope.size};
    if (t->ndim) memcpy(sizes + 1, t->sizes, sizeof(int64_t) * t->ndim);
    tp_tensor *all = tp_expand(t, (tp_ints){sizes, t->ndim + 1}, false);
    tp_release(t);
    return all;
}

static tp_tensor *wrapped_steal(const tp_batch_call *c, tp_tensor *t) {
    if (t) t = with_batch_steal(c, t);
    if (t && c->line && t->ndim > 1) {
        tp_tensor *number = tp_squeeze_dim(t, 1);
        tp_release(t);
        t = number;
    }
    if (t && c->whole_keepdim > 0) t = pad_steal(t, c->whole_keepdim);
    return tp_batch_wrap_steal(t, c->scope.number);
}

static int wrap_one(const tp_batch_call *c, tp_tensor **t) {
    if (!*t) return 0; /* one that a mask leaves out */
    return (*t = wrapped_steal(c, *t)) ? 0 : -1;
}

int tp_batch_wrap_results(const tp_batch_call *c, tp_value *results) {
    int status = 0;
    for (int i = 0; i < c->op->info->nreturns; i++) {
        if (results[i].tag == TP_TENSOR && status == 0) status = wrap_one(c, &results[i].tensor);
        for (int64_t k = 0; results[i].tag == TP_TENSOR_SEQ && status == 0 && k < results[i].seq->size; k++)
            status = wrap_one(c, &results[i].seq->items[k]);
    }
    if (status < 0) tp_release_values(results, c->op->info->nreturns);
    return status;
}
