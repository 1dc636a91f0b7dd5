/* generated.c: what files of the generator call in a library from outside (tensorpy/generated.h): kernels from
 * programs, structured kernels, variants, all boxed. */
#include "outside/library.h"

#include "Functions.h"
#include "Primitives.h"
#include "autocast/autocast.h"
#include "autograd/each.h"
#include "autograd/formula.h"
#include "autograd/node.h"
#include "autograd/undifferentiated.h"
#include "batched/rule.h"
#include "core/error.h"
#include "core/scalar_math.h"
#include "cpu/capability.h"
#include "dispatch/schema.h"
#include "forward/rule.h"
#include "prim/devices.h"
#include "prim/host.h"
#include "native/common/meta.h"
#include "native/pointwise/pointwise.h"
#include "native/reduction/reduction.h"
#include "native/common/rounding.h"
#include "native/common/tags.h"
#include "native/common/variants.h"
#include "native/layout/layout.h"
#include "tensorpy/generated_api.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first argument that is written: self of an in-place operator, out; -1 for a functional one. */
static int target_of(const tp_op *op) {
    for (int i = 0; i < op->info->nargs; i++)
        if (op->info->args[i].is_write) return i;
    return -1;
}
static tp_variant variant_of(const tp_op *op) {
    int target = target_of(op);
    if (target < 0) return TP_VARIANT_NEW;
    if (!op->info->args[target].is_out) return TP_VARIANT_INPLACE;
    return tp_out_dtype_of(op) == TENSORPY_OUT_SAME ? TP_VARIANT_OUT : TP_VARIANT_OUT_CAST;
}

static int check_targets(const tp_op *op, const tp_value *args) {
    char name[128];
    for (int i = 0; i < op->info->nargs; i++)
        if (op->info->args[i].is_write && args[i].tag == TP_TENSOR &&
            tp_check_writable(args[i].tensor, tp_op_name(op, name)) < 0)
            return -1;
    return 0;
}

static int give(tp_tensor *t, tp_value *results) {
    if (!t) return -1;
    results[0] = (tp_value){.tag = TP_TENSOR, .tensor = t};
    return 0;
}

/* Registers a kernel of the part's key that finds `context` again. */
static int add(tp_library *l, const char *op, tp_boxed_fn boxed, const void *context, size_t size, const char *name) {
    void *kept = malloc(size);
    if (!kept) return tp_fail_memory((int64_t)size);
    memcpy(kept, context, size);
    int status = tp_library_implement_boxed(l, op, boxed, kept, free, name);
    if (status < 0) free(kept);
    return status;
}

/* What an entry asks for before its kernel runs: by its tags, and its `warns`. */
static int begin(const tp_op *op, const tp_value *args) {
    char name[128];
    bool *warned;
    const char *text = tp_warning_of(op, &warned);
    if (op->info->tag_bits & TP_TAG_NONDETERMINISTIC_BITWISE && tp_check_determinism(tp_op_name(op, name)) < 0)
        return -1;
    if (text && tp_warn_first(warned, text) < 0) return -1;
    return check_targets(op, args);
}

/* ---- pointwise ---- */

typedef struct {
    const tp_pointwise *p;
    int8_t inputs[TP_MAP_INPUTS], params[TP_MAP_PARAMS], target;
    tp_variant variant;
    tp_pointwise_check check; /* NULL: nothing is to be checked */
} pointwise_kernel;

static int run_pointwise(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const pointwise_kernel *k = context;
    tp_operand inputs[TP_MAP_INPUTS];
    tp_value params[TP_MAP_PARAMS];
    if (begin(op, args) < 0) return -1;
    for (int i = 0; i < k->p->ninputs; i++) {
        const tp_value *v = &args[k->inputs[i]];
        inputs[i] = v->tag == TP_TENSOR ? (tp_operand){v->tensor, NULL} : (tp_operand){NULL, v->scalar};
    }
    for (int i = 0; i < k->p->nparams; i++) params[i] = args[k->params[i]];
    if (k->check && k->check(k->p, inputs, params) < 0) return -1;
    const tp_pointwise *p = tp_pointwise_case_of(k->p, inputs);
    if (k->target < 0) return give(tp_pointwise_new(p, inputs, params), results);
    return tp_pointwise_into(p, inputs, params, args[k->target].tensor, k->variant);
}

static tp_op *own_operator(tp_library *l, const char *op) {
    tp_op *found = tp_library_find(l, op);
    if (found && !tp_is_definition(found))
        return tp_fail_null(TP_RuntimeError, "%s is tensorpy's own operator: a program is for one of yours", op);
    return found;
}

static int add_pointwise_checked(tp_library *l, const char *name, tp_pointwise *p, tp_pointwise_check check) {
    tp_op *op = own_operator(l, name);
    if (!op || tp_add_pointwise(p) < 0) return -1;
    for (int64_t i = 0; i < p->ncases; i++)
        if (tp_add_pointwise((tp_pointwise *)p->cases[i].op) < 0) return -1;
    pointwise_kernel k = {.p = p, .target = (int8_t)target_of(op), .variant = variant_of(op), .check = check};
    for (int i = 0; i < p->ninputs; i++)
        if ((k.inputs[i] = (int8_t)tp_argument_named(op, p->inputs[i])) < 0)
            return tp_fail(TP_RuntimeError, "%s has no argument '%s': %s", name, p->inputs[i], op->info->schema);
    int n = 0;
    for (int i = 0; i < op->info->nargs && n < p->nparams; i++)
        if (op->info->args[i].tag != TP_TENSOR && memchr(k.inputs, i, p->ninputs) == NULL) k.params[n++] = (int8_t)i;
    if (n < p->nparams) return tp_fail(TP_RuntimeError, "%s has too few numbers: %s", name, op->info->schema);
    static tp_op *const prims[] = {&tp_prims[TP_PRIM_map], NULL};
    tp_describe_prims(op, prims);
    return add(l, name, run_pointwise, &k, sizeof k, p->name);
}

static int add_pointwise(tp_library *l, const char *name, tp_pointwise *p) {
    return add_pointwise_checked(l, name, p, NULL);
}

/* ---- reductions ---- */

typedef struct {
    const tp_reduction_op *r;
    int8_t self, dim, keepdim, dtype, target; /* -1: it has none */
} reduction_kernel;

static tp_ints dims_of(const tp_value *v) {
    if (v->tag == TP_INT) return (tp_ints){&v->i, 1};
    return v->tag == TP_INTS_ ? v->ints : TP_NO_INTS;
}

static int run_reduction(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const reduction_kernel *k = context;
    tp_tensor *self = args[k->self].tensor;
    tp_ints dim = k->dim < 0 ? TP_NO_INTS : dims_of(&args[k->dim]);
    bool keepdim = k->keepdim >= 0 && args[k->keepdim].b;
    tp_dtype dtype = k->dtype < 0 || args[k->dtype].tag == TP_NONE ? TP_NO_DTYPE : (tp_dtype)args[k->dtype].i;
    if (begin(op, args) < 0) return -1;
    if (k->target < 0) return give(tp_reduction_new(k->r, self, dim, keepdim, dtype), results);
    return tp_reduction_into(k->r, self, dim, keepdim, dtype, args[k->target].tensor);
}

static int add_reduction(tp_library *l, const char *name, tp_reduction_op *r) {
    tp_op *op = own_operator(l, name);
    if (!op || tp_add_reduction(r) < 0) return -1;
    reduction_kernel k = {r,
                          (int8_t)tp_argument_named(op, "self"),
                          (int8_t)tp_argument_named(op, "dim"),
                          (int8_t)tp_argument_named(op, "keepdim"),
                          (int8_t)tp_argument_named(op, "dtype"),
                          (int8_t)target_of(op)};
    if (k.self < 0) return tp_fail(TP_RuntimeError, "%s has no argument 'self': %s", name, op->info->schema);
    static tp_op *const prims[] = {&tp_prims[TP_PRIM_reduce_program], NULL};
    tp_describe_prims(op, prims);
    return add(l, name, run_reduction, &k, sizeof k, r->name);
}

/* ---- structured kernels ---- */

typedef struct {
    tensorpy_structured meta, kernel;
} structured_kernel;

static int give_outputs(const tp_op *op, tp_meta *m, tp_value *results) {
    if (m->variant != TP_VARIANT_NEW) return tp_meta_commit(m);
    for (int i = 0; i < op->info->nreturns; i++) results[i] = (tp_value){.tag = TP_TENSOR, .tensor = m->out[i]};
    return 0;
}

/* The tensors that are only read as dense ones, in `dense` and args, where a tag asks for them. */
static int make_dense(const tp_op *op, tp_value *args, tp_tensor **dense) {
    if (!(op->info->tag_bits & TP_TAG_NEEDS_CONTIGUOUS_STRIDES)) return 0;
    for (int i = 0; i < op->info->nargs; i++) {
        if (args[i].tag != TP_TENSOR || !args[i].tensor || op->info->args[i].is_write) continue;
        if (!(dense[i] = tp_contiguous(args[i].tensor, TP_CONTIGUOUS_FORMAT))) return -1;
        args[i].tensor = dense[i];
    }
    return 0;
}

static int compute_structured(const tp_op *op, tp_value *args, tp_value *results, const structured_kernel *k) {
    tp_meta m = {.op = op, .variant = variant_of(op), .noutputs = op->info->nreturns};
    tp_tensor *inputs[TP_MAX_ARGUMENTS];
    int n = 0, given = 0;
    for (int i = 0; i < op->info->nargs; i++) {
        if (args[i].tag != TP_TENSOR) continue;
        if (op->info->args[i].is_write) m.given[given++] = args[i].tensor;
        if (!op->info->args[i].is_out) inputs[n++] = args[i].tensor;
    }
    if (m.variant != TP_VARIANT_NEW) tp_meta_set_inputs(&m, inputs, n);
    int status = begin(op, args) < 0 ? -1 : k->meta(&m, args);
    for (int i = 0; status == 0 && i < m.noutputs; i++)
        if (!m.out[i])
            status = tp_fail(TP_RuntimeError, "%s: its meta function declares no output %d", op->info->name, i);
    if (status == 0 && k->kernel) status = k->kernel(&m, args);
    if (status == 0) return give_outputs(op, &m, results);
    tp_meta_discard(&m);
    return -1;
}

static int run_structured(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    tp_tensor *dense[TP_MAX_ARGUMENTS] = {NULL};
    tp_value given[TP_MAX_ARGUMENTS];
    memcpy(given, args, op->info->nargs * sizeof *given);
    int status = make_dense(op, given, dense) < 0 ? -1 : compute_structured(op, given, results, context);
    for (int i = 0; i < op->info->nargs; i++) tp_release(dense[i]);
    return status;
}

static int add_structured(tp_library *l, const char *name, tensorpy_structured meta, tensorpy_structured kernel) {
    tp_op *op = own_operator(l, name);
    if (!op) return -1;
    if (op->info->nreturns > TP_MAX_OUTPUTS)
        return tp_fail(TP_RuntimeError, "%s: a structured kernel has at most %d outputs", name, TP_MAX_OUTPUTS);
    structured_kernel k = {meta, kernel};
    return add(l, name, run_structured, &k, sizeof k, kernel ? "structured" : "structured: its outputs");
}

static tp_tensor *meta_out(tp_meta *m, int i) { return m->out[i]; }

/* ---- variants ---- */

typedef struct {
    tp_op *of;
    bool of_inplace, recorded; /* it writes self; what it does is recorded, part by part */
} variant_kernel;

/* The arguments of `of` from those of another variant; a factory's options from the tensor that is written. */
static void arguments_for(const tp_op *of, const tp_op *op, const tp_value *args, tp_value *out) {
    int target = target_of(op);
    const tp_tensor *t = target < 0 ? NULL : args[target].tensor;
    for (int i = 0; i < of->info->nargs; i++) {
        const char *name = of->info->args[i].name;
        int at = tp_argument_named(op, name);
        const tp_value *fallback = tp_default_of(of, i);
        if (at >= 0) out[i] = args[at];
        else if (t && strcmp(name, "dtype") == 0) out[i] = (tp_value){.tag = TP_DTYPE, .i = t->dtype};
        else if (t && strcmp(name, "device") == 0) out[i] = (tp_value){.tag = TP_DEVICE, .device = t->device};
        else out[i] = fallback ? *fallback : (tp_value){.tag = TP_NONE};
    }
}

/* Refuses an out= that shares memory with what is read, where the entry says so. */
static int check_apart(const tp_op *op, const tp_value *args, tp_tensor *out, const tp_tensor *made) {
    int status = tp_fit_out(out, made);
    for (int i = 0; i < op->info->nargs && status == 0; i++) {
        if (op->info->args[i].is_write) continue;
        if (args[i].tag == TP_TENSOR && args[i].tensor) status = tp_check_out_apart(out, args[i].tensor);
        if (args[i].tag == TP_TENSORS) status = tp_check_out_apart_of(out, args[i].tensors);
    }
    return status;
}

static int copy_results(const tp_op *op, const tp_value *args, tp_value *made, const variant_kernel *k) {
    int n = 0, status = 0;
    for (int i = 0; i < op->info->nargs && status == 0; i++) {
        if (!op->info->args[i].is_write) continue;
        tp_tensor *to = args[i].tensor, *from = made[n++].tensor;
        if (op->info->args[i].is_out && tp_out_is_apart(op) && check_apart(op, args, to, from) < 0) return -1;
        if (op->info->args[i].is_out && tp_out_dtype_of(op) == TENSORPY_OUT_CASTABLE)
            status = tp_cast_into_out(to, from);
        else if (op->info->args[i].is_out) status = tp_copy_into_out(to, from);
        else status = k->recorded ? tp_copy_into_self_recorded(to, from) : tp_copy_into_self(to, from);
    }
    return status;
}

static bool is_recorded_inplace(const tp_op *op, const tp_value *args) {
    const tp_tensor *base = args[target_of(op)].tensor->base;
    return tp_is_recorded(op, args) || (tp_grad_enabled() && base && tp_requires_grad(base));
}

/* By the functional variant. */
static int run_from_functional(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const variant_kernel *k = context;
    tp_value given[TP_MAX_ARGUMENTS], made[TP_MAX_RESULTS] = {{.tag = TP_NONE}};
    if (check_targets(op, args) < 0 || tp_check_outs(op, args) < 0) return -1;
    arguments_for(k->of, op, args, given);
    int self = variant_of(op) == TP_VARIANT_INPLACE ? tp_argument_named(k->of, "self") : -1;
    tp_autoref *before = NULL; /* which its parts may save: self changes */
    if (self >= 0 && k->recorded && is_recorded_inplace(op, args)) {
        if (!(before = tp_clone(given[self].tensor, TP_NO_FORMAT))) return -1;
        given[self].tensor = before;
    }
    if (tp_call_boxed(k->of, given, made) < 0) return -1;
    int status = copy_results(op, args, made, k);
    for (int i = 0; i < k->of->info->nreturns; i++) tp_value_release(&made[i]);
    return status;
}

/* By the in-place variant, on a copy of self. */
static int run_from_inplace(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const variant_kernel *k = context;
    tp_value given[TP_MAX_ARGUMENTS], made[TP_MAX_RESULTS] = {{.tag = TP_NONE}};
    int target = target_of(op), self = tp_argument_named(k->of, "self");
    if (check_targets(op, args) < 0) return -1;
    arguments_for(k->of, op, args, given);
    tp_autoref *copy = target < 0 ? tp_clone(args[tp_argument_named(op, "self")].tensor, TP_NO_FORMAT) : NULL;
    if (target < 0 ? !copy : tp_copy_into_out(args[target].tensor, given[self].tensor) < 0) return -1;
    given[self].tensor = copy ? copy : args[target].tensor;
    if (tp_call_boxed(k->of, given, made) < 0) return -1;
    return copy ? give(tp_take(copy), results) : 0;
}

static int add_variant(tp_library *l, const char *name, const char *of) {
    tp_op *found = own_operator(l, of);
    if (!found) return -1;
    bool inplace = variant_of(found) == TP_VARIANT_INPLACE;
    variant_kernel k = {found, inplace, strcmp(l->part->key, "CompositeImplicitAutograd") == 0};
    return add(l, name, inplace ? run_from_inplace : run_from_functional, &k, sizeof k, of);
}

static int below_autograd(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results) {
    tp_exclude_guard guard = tp_exclude(TP_AUTOGRAD_KEYS);
    return tp_redispatch_boxed(op, ks & TP_BELOW_AUTOGRAD, args, results);
}

/* In place as the functional variant and a copy, each with its gradient and its tangent. */
static int run_by_parts(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const variant_kernel *k = context;
    tp_tensor *self = args[target_of(op)].tensor;
    tp_value given[TP_MAX_ARGUMENTS], made = {.tag = TP_NONE};
    tp_autoref *before = tp_clone(self, TP_NO_FORMAT); /* which the record may keep: self changes */
    if (!before) return -1;
    arguments_for(k->of, op, args, given);
    given[tp_argument_named(k->of, "self")].tensor = before;
    if (tp_call_boxed(k->of, given, &made) < 0) return -1;
    tp_autoref *result = made.tensor;
    return tp_copy_into_self_recorded(self, result);
}

static int record_inplace(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    if (!is_recorded_inplace(op, args)) return below_autograd(op, ks, args, results);
    if (tp_check_inplace(args[target_of(op)].tensor, op->info->name, true) < 0) return -1;
    return run_by_parts(op, ks, args, results, context);
}

static int refuse_record(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    char name[128];
    if (tp_is_recorded(op, args)) return tp_out_no_grad(tp_op_name(op, name));
    return below_autograd(op, ks, args, results);
}

static int add_record_variant(tp_library *l, const char *name, const char *of) {
    tp_op *op = own_operator(l, name), *found = op ? own_operator(l, of) : NULL;
    if (!found) return -1;
    variant_kernel k = {found, false, true};
    if (strcmp(l->part->key, "ForwardAD") == 0) return add(l, name, run_by_parts, &k, sizeof k, "tangents");
    bool inplace = variant_of(op) == TP_VARIANT_INPLACE;
    return add(l, name, inplace ? record_inplace : refuse_record, &k, sizeof k, "autograd");
}

/* ---- tensors that are not strided memory ---- */

typedef struct {
    tp_op *of;
    bool merged, made; /* it has one value for each place; `of` makes it in the layout that is written */
} layout_kernel;

static int run_layout_variant(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const layout_kernel *k = context;
    tp_tensor *self = args[target_of(op)].tensor;
    tp_value given[TP_MAX_ARGUMENTS], made = {.tag = TP_NONE};
    char name[128];
    if (k->merged && tp_refuse_unmerged(self, tp_op_name(op, name)) < 0) return -1;
    arguments_for(k->of, op, args, given);
    int layout = k->made ? tp_argument_named(k->of, "layout") : -1;
    if (layout >= 0) given[layout] = (tp_value){.tag = TP_LAYOUT, .i = tp_layout_of(self)};
    if (tp_call_boxed(k->of, given, &made) < 0) return -1;
    tp_autoref *result = made.tensor;
    return tp_write_layout(self, result, tp_op_name(op, name));
}

static int add_layout_variant(tp_library *l, const char *name, const char *of, int merged, int made) {
    tp_op *op = own_operator(l, name), *found = op ? own_operator(l, of) : NULL;
    if (!found) return -1;
    layout_kernel k = {found, merged, made};
    return add(l, name, run_layout_variant, &k, sizeof k, "writing");
}

static int refuse_layout(const char *op, const tp_tensor *t) {
    const tp_op *found = tp_find_op_qualified(op);
    return found ? tp_refuse_layout(found, t) : tp_fail(TP_RuntimeError, "there is no operator %s", op);
}

/* ---- what the YAML says beside the kernels ---- */

static bool needs_other(int kind) {
    return kind == TP_BATCH_WHOLE || kind == TP_BATCH_INPLACE || kind == TP_BATCH_GEOMETRY;
}

/* Whether there is a role of the right sort for each argument. */
static bool roles_fit(const tp_op *op, const char *roles) {
    if (strlen(roles) != op->info->nargs) return false;
    for (int i = 0; i < op->info->nargs; i++) {
        bool is_tensor = op->info->args[i].tag == TP_TENSOR || op->info->args[i].tag == TP_TENSORS;
        if (!strchr(is_tensor ? TP_BATCH_ROLES_OF_TENSORS : TP_BATCH_ROLES_OF_NUMBERS, roles[i])) return false;
    }
    return true;
}

static int describe_batching(tp_library *l, tp_op *op, const tensorpy_entry_info *info) {
    if (info->batching < 0 || info->batching > TP_BATCH_OUT || !roles_fit(op, info->roles) ||
        needs_other(info->batching) != (info->batching_with != NULL))
        return tp_fail(TP_RuntimeError, "%s: the rule for vmap, %d with '%s', is not one of this tensorpy: %s",
                       op->info->name, (int)info->batching, info->roles, op->info->schema);
    tp_op *other = info->batching_with ? own_operator(l, info->batching_with) : NULL;
    if (info->batching_with && !other) return -1;
    tp_batch_rule *rule = malloc(sizeof *rule); /* stays: a call may read it while the library is unloaded */
    if (!rule) return tp_fail_memory(sizeof *rule);
    *rule = (tp_batch_rule){(uint8_t)info->batching, info->random, info->roles, other};
    tp_describe_batching(op, rule);
    return 0;
}

/* The list stays, as a call may read it while the library is unloaded. */
static int describe_prims(tp_op *op, const char *const *names) {
    int64_t n = 0;
    while (names[n]) n++;
    tp_op **prims = calloc((size_t)n + 1, sizeof *prims);
    if (!prims) return tp_fail_memory(n * (int64_t)sizeof *prims);
    for (int64_t i = 0; i < n; i++) {
        char name[128];
        snprintf(name, sizeof name, "prim::%s", names[i]);
        if ((prims[i] = tp_find_op_qualified(name))) continue;
        free(prims);
        return tp_fail(TP_RuntimeError, "%s: this tensorpy has no primitive '%s'", op->info->name, names[i]);
    }
    tp_describe_prims(op, prims);
    return 0;
}

static int describe_tangents(tp_op *op, const tensorpy_tangents *t) {
    if (t->kind < 0 || t->kind > TP_FORWARD_TERMS || t->nterms < 0 || t->nterms > UINT8_MAX ||
        strlen(t->roles) != op->info->nargs)
        return tp_fail(TP_RuntimeError, "%s: the rule for tangents, %d with '%s', is not one of this tensorpy: %s",
                       op->info->name, (int)t->kind, t->roles, op->info->schema);
    tp_forward_rule *rule = malloc(sizeof *rule); /* stays, as above */
    if (!rule) return tp_fail_memory(sizeof *rule);
    *rule = (tp_forward_rule){(uint8_t)t->kind, (uint8_t)t->nterms, t->roles, t->terms, NULL};
    tp_describe_forward(op, rule);
    return 0;
}

/* Whether a library knows a member: one that was built before it came has a shorter struct. */
#define SAYS(info, member) \
    ((info)->size >= offsetof(tensorpy_entry_info, member) + sizeof((info)->member) && (info)->member)

static int describe(tp_library *l, const char *name, const tensorpy_entry_info *info) {
    tp_op *op = own_operator(l, name);
    if (!op) return -1;
    if (info->tags) tp_describe_tags(op, info->tags);
    if (info->is_method) tp_describe_method(op);
    if (SAYS(info, out_dtype)) tp_describe_out_dtype(op, info->out_dtype);
    if (SAYS(info, prims) && describe_prims(op, info->prims) < 0) return -1;
    if (SAYS(info, tangents) && describe_tangents(op, info->tangents) < 0) return -1;
    if (SAYS(info, out_apart)) tp_describe_out_apart(op);
    if (SAYS(info, empty_list)) tp_describe_empty_list(op, (tp_error_class)info->empty_list);
    if (SAYS(info, registered_by)) tp_describe_registered_by(op, info->registered_by);
    if (SAYS(info, warns)) tp_describe_warning(op, info->warns);
    return info->roles ? describe_batching(l, op, info) : 0;
}

/* ---- the rest ---- */

static bool requires_grad(const tp_tensor *t) { return tp_requires_grad(t); }
static bool is_differentiated(void) { return tp_is_differentiated(); }
static bool grad_enabled(void) { return tp_grad_enabled(); }
static int64_t storage_offset(const tp_tensor *t) { return tp_storage_offset(t); }
static tp_tensors seq_borrow(const tp_tensor_seq *s) { return tp_tensor_seq_borrow(s); }
static tp_tensor_seq *seq_of(tp_tensors list) { return tp_tensor_seq_of(list); }
static tp_tensor_seq *gradients_of_list(const tp_record *r, tp_tensor *const *grads) {
    return tp_gradients_of_list((tp_node *)r, grads);
}

const tensorpy_generated tp_generated_api = {
    .size = sizeof(tensorpy_generated),
    .autograd_keys = TP_AUTOGRAD_KEYS,
    .autocast_keys = TP_AUTOCAST_KEYS,
    .scalar_add = tp_scalar_add,
    .scalar_sub = tp_scalar_sub,
    .scalar_mul = tp_scalar_mul,
    .scalar_div = tp_scalar_div,
    .scalar_pow = tp_scalar_pow,
    .scalar_neg = tp_scalar_neg,
    .scalar_conj = tp_scalar_conj,
    .scalar_exp = tp_scalar_exp,
    .scalar_log = tp_scalar_log,
    .scalar_sqrt = tp_scalar_sqrt,
    .scalar_equal = tp_scalar_equal,
    .scalar_less = tp_scalar_less,
    .scalar_less_equal = tp_scalar_less_equal,
    .scalar_bool = tp_scalar_bool,
    .scalar_uint = tp_scalar_uint,
    .list_index = tp_list_index,
    .ints_slice = tp_ints_slice,
    .ints_join = tp_ints_join,
    .ints_text = tp_ints_text,
    .wrap_dim = tp_wrap_dim,
    .storage_offset = storage_offset,
    .requires_grad = requires_grad,
    .grad_enabled = grad_enabled,
    .seq_borrow = seq_borrow,
    .seq_of = seq_of,
    .capability = tp_cpu_capability,
    .pointwise = add_pointwise,
    .pointwise_checked = add_pointwise_checked,
    .reduction = add_reduction,
    .structured = add_structured,
    .meta_output = tp_meta_output,
    .meta_out = meta_out,
    .variant = add_variant,
    .record_variant = add_record_variant,
    .zeros_for_output = tp_zeros_for_input,
    .gradients_of_list = gradients_of_list,
    .describe = describe,
    .autocast_takes = tp_autocast_takes,
    .autocast_promote_list = tp_autocast_promote_list,
    .cached_cast_list = tp_cached_cast_list,
    .has_reduced = tp_has_reduced,
    .rounded_dtype = tp_rounded_dtype,
    .widened = tp_widened,
    .widened_steal = tp_widened_steal,
    .widened_list = tp_widened_list,
    .widen_list = tp_widen_list,
    .rounded_steal = tp_rounded_steal,
    .rounded_list_steal = tp_rounded_list_steal,
    .round_all = tp_round_all,
    .round_into = tp_round_into,
    .check_determinism = tp_check_determinism,
    .warn_first = tp_warn_first,
    .refuse_meta = tp_refuse_meta,
    .contiguous = tp_contiguous,
    .check_devices = tp_check_devices,
    .each_new = tp_each_new,
    .each_into = tp_each_into,
    .is_differentiated = is_differentiated,
    .copy_of_view_steal = tp_copy_of_view_steal,
    .copies_of_views_steal = tp_copies_of_views_steal,
    .scalar_check_fits = tp_scalar_check_fits,
    .scalar_type_name = tp_scalar_type_name,
    .layout_variant = add_layout_variant,
    .refuse_layout = refuse_layout,
};
