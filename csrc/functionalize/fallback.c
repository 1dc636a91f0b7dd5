/* fallback.c: what runs at Functionalize for every operator: see functionalize.h. */
#include "Functions.h"
#include "batched/batched.h"
#include "core/alloc.h"
#include "dispatch/exchange.h"
#include "dispatch/schema.h"
#include "functionalize/internal.h"

#include <string.h>

/* ---- operators that belong together ---- */

static bool writes(const tp_op *op) {
    for (int i = 0; i < op->info->nargs; i++)
        if (op->info->args[i].is_write) return true;
    return false;
}

/* How many results are no arguments; those come first. */
static int own_results(const tp_op *op) {
    int n = 0;
    for (int i = 0; i < op->info->nreturns; i++) n += !op->info->returns[i].is_write;
    return n;
}

/* Whether a candidate gives what `op` writes, from the arguments that `op` has. */
static bool gives_what(const tp_op *candidate, const tp_op *op) {
    if (!candidate || writes(candidate)) return false;
    int written = 0;
    for (int i = 0; i < op->info->nargs; i++) written += op->info->args[i].is_write;
    for (int i = 0; i < candidate->info->nargs; i++)
        if (tp_argument_named(op, candidate->info->args[i].name) < 0) return false;
    return candidate->info->nreturns == own_results(op) + written;
}

/* The functional variant of a library's operator that writes: without the underscore, of the overload or of none; for
 * out=, of the name. */
static const tp_op *functional_by_name(const tp_op *op) {
    char name[128];
    const tp_op_info *info = op->info;
    size_t n = strlen(info->name);
    if (n >= sizeof name || !writes(op)) return NULL;
    memcpy(name, info->name, n + 1);
    if (name[n - 1] == '_') name[n - 1] = 0;
    const tp_op *found = tp_find_op(name, info->overload);
    if (!gives_what(found, op)) found = tp_find_op(name, "");
    return gives_what(found, op) ? found : NULL;
}

/* The other operator of the rule, or NULL. */
static const tp_op *other_of(const tp_op *op) {
    const tp_functional_rule *rule = op->info->functional;
    if (!rule) return tp_is_definition(op) ? functional_by_name(op) : NULL;
    return rule->other ? tp_find_op_qualified(rule->other) : NULL;
}

/* ---- a call ---- */

typedef struct {
    const tp_op *op;
    tp_functional_level *level;
    const tp_value *given;
    tp_value *args;    /* with values for stand-ins */
    tp_tensor **owned; /* what the arguments hold, in the order of all tensors */
    int64_t n;
} call;

static int refuse_left(const tp_op *op) {
    char name[128];
    return tp_fail(TP_RuntimeError,
                   "%s: a tensor of func.functionalize is used outside the function that it was made for",
                   tp_op_name(op, name));
}

/* What stands for a tensor below. New. */
static tp_tensor *value_of(void *context, tp_tensor *t) {
    const call *c = context;
    if (!tp_is_functional(t)) return tp_retain(t);
    if (tp_functional_is_of(t, c->level->number)) {
        tp_stand_in_of(t)->memory->copies_views = c->level->copies_views;
        return tp_stand_in_value(t);
    }
    if (tp_functional_level_of(tp_stand_in_of(t)->memory->level)) return tp_retain(t);
    refuse_left(c->op);
    return NULL;
}

static int take_values(call *c) {
    memcpy(c->args, c->given, (size_t)c->op->info->nargs * sizeof *c->args);
    return tp_exchange_tensors(c->op, c->given, c->args, c->owned, &c->n, value_of, c);
}

/* ---- results ---- */

static int wrap_in_place(tp_tensor **t) {
    tp_autoref *value = tp_take(*t);
    if (value && !(*t = tp_functional_wrap(value))) return -1;
    return 0;
}

/* Values, which are new, as stand-ins with memories of their own. */
static int wrap_results(tp_value *results, int n) {
    int status = 0;
    for (int i = 0; i < n && status == 0; i++) {
        if (results[i].tag == TP_TENSOR) status = wrap_in_place(&results[i].tensor);
        for (int64_t k = 0; status == 0 && results[i].tag == TP_TENSOR_SEQ && k < results[i].seq->size; k++)
            status = wrap_in_place(&results[i].seq->items[k]);
    }
    for (int i = 0; status < 0 && i < n; i++)
        if (results[i].tag == TP_TENSOR && !results[i].tensor) results[i].tag = TP_NONE;
    if (status < 0) tp_release_values(results, n);
    return status;
}

static int run_outside(call *c, const tp_op *op, const tp_value *args, tp_value *results) {
    tp_auto_outside outside = tp_functional_step_out(c->level);
    return tp_call_boxed(op, args, results);
}

static int run_pure(call *c, tp_value *results) {
    if (run_outside(c, c->op, c->args, results) < 0) return -1;
    return wrap_results(results, c->op->info->nreturns);
}

/* ---- views ---- */

/* Whether a result lies in the memory of what it was made from; of wrappers, whether what they hold does. */
static bool shares(const tp_tensor *a, const tp_tensor *b) {
    if (tp_is_functional(a) && tp_is_functional(b)) return tp_stand_in_of(a)->memory == tp_stand_in_of(b)->memory;
    if (tp_is_batched(a) && tp_is_batched(b)) return shares(tp_batch_inner_borrow(a), tp_batch_inner_borrow(b));
    return a->storage == b->storage;
}

/* A view of the storage begins at the memory itself, wherever the tensor lies in it. */
typedef struct {
    tp_step *steps;  /* borrowed */
    tp_tensor *base; /* owned */
} start;
static void free_start(start *s) { tp_release(s->base); }

static int begin(call *c, const tp_op *view, tp_tensor *source, int viewed, start *s) {
    tp_stand_in *p = tp_stand_in_of(source);
    tp_functional_memory *m = p->memory;
    *s = (start){p->steps, tp_retain(c->args[viewed].tensor)};
    const tp_functional_rule *rule = view->info->functional;
    if (!rule || !rule->by_places || source->dtype != m->value->dtype || tp_reads_conj(source) || tp_reads_neg(source))
        return 0;
    int offset = tp_argument_named(view, "storage_offset");
    if (offset >= 0 && c->args[offset].tag == TP_NONE)
        c->args[offset] = (tp_value){.tag = TP_INT, .i = tp_storage_offset(source)};
    tp_auto_outside outside = tp_functional_step_out(c->level);
    tp_tensor *laid = tp_memory_laid_out(m);
    if (!laid) return -1;
    if (laid != m->value) {
        tp_release(m->value);
        m->value = tp_retain(laid);
        m->generation++;
    }
    m->by_places = true;
    tp_release(s->base);
    *s = (start){NULL, laid};
    return 0;
}

static const tp_op *run_for(const call *c, const tp_op *view) {
    const tp_op *copying = c->level->copies_views ? other_of(view) : NULL;
    return copying ? copying : view;
}

/* What the view of the stand-in itself lies like, as a Meta tensor, or several: `results` are NONE where that is what
 * the value's view shows. A value that replaced another, or is a copy, may lie otherwise. */
static void run_on_geometry(const call *c, const tp_op *view, const tp_tensor *source, int viewed, tp_value *results) {
    if (!c->level->copies_views && tp_memory_lies_as_first(tp_stand_in_of(source)->memory)) return;
    tp_device meta = {TP_DEVICE_META, 0};
    tp_storage *s = tp_storage_from_blob(meta, NULL, INT64_MAX / 2, NULL, NULL);
    if (!s) return tp_error_clear();
    tp_autoref *t = tp_new_on_storage(s, tp_sizes(source), tp_strides(source), source->byte_offset, source->dtype);
    tp_storage_release(s);
    if (!t) return tp_error_clear();
    tp_value args[view->info->nargs + 1];
    memcpy(args, c->args, (size_t)view->info->nargs * sizeof *args);
    args[viewed] = (tp_value){.tag = TP_TENSOR, .tensor = t};
    tp_keyset include = tp_tls.include;
    tp_exclude_guard guard = tp_exclude(TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView));
    tp_tls.include = 0; /* nobody is told */
    if (tp_redispatch_boxed(view, t->keys & TP_BIT(Meta), args, results) < 0) tp_error_clear();
    tp_tls.include = include;
}

static const tp_tensor *shown_in(const tp_value *shown, int64_t which, const tp_tensor *otherwise) {
    if (shown->tag == TP_TENSOR && which < 0) return shown->tensor;
    return shown->tag == TP_TENSOR_SEQ && which < shown->seq->size ? shown->seq->items[which] : otherwise;
}

typedef struct {
    call *c;
    tp_tensor *source;
    int viewed;
    start start;
    tp_value shown[1]; /* run_on_geometry */
} view_call;

static void free_view(view_call *v) {
    tp_release(v->start.base);
    tp_value_release(&v->shown[0]);
}

static tp_tensor *viewed_as(const view_call *v, tp_tensor *part, int64_t which) {
    call *c = v->c;
    if (part == c->args[v->viewed].tensor) return tp_retain(v->source);
    if (!c->level->copies_views && !shares(part, v->start.base)) return tp_functional_wrap(part);
    tp_step *step = tp_step_new(v->start.steps, c->op, run_for(c, c->op), c->args, v->viewed);
    if (!step) return NULL;
    const tp_tensor *shown = shown_in(v->shown, which, part);
    step->which = which;
    step->overlaps = tp_overlaps(shown);
    tp_tensor *t = tp_stand_in_new(tp_stand_in_of(v->source)->memory, step, part, shown);
    tp_step_release(step);
    return t;
}

static int replace_result(const view_call *v, tp_tensor **t, int64_t which) {
    tp_autoref *part = tp_take(*t);
    *t = viewed_as(v, part, which);
    return *t ? 0 : -1;
}

static int run_view(call *c, int viewed, tp_value *results) {
    TP_CLEANUP(free_view) view_call v = {c, c->given[viewed].tensor, viewed, {0}, {{TP_NONE}}};
    if (begin(c, c->op, v.source, viewed, &v.start) < 0) return -1;
    tp_value args[c->op->info->nargs + 1];
    memcpy(args, c->args, (size_t)c->op->info->nargs * sizeof *args);
    args[viewed].tensor = v.start.base;
    if (run_outside(c, run_for(c, c->op), args, results) < 0) return -1;
    run_on_geometry(c, c->op, v.source, viewed, v.shown);
    int status = 0;
    if (results[0].tag == TP_TENSOR) status = replace_result(&v, &results[0].tensor, -1);
    for (int64_t k = 0; status == 0 && results[0].tag == TP_TENSOR_SEQ && k < results[0].seq->size; k++)
        status = replace_result(&v, &results[0].seq->items[k], k);
    if (status == 0) return 0;
    if (results[0].tag == TP_TENSOR) results[0].tag = TP_NONE; /* it is released */
    tp_value_release(&results[0]);
    results[0].tag = TP_NONE;
    return -1;
}

/* ---- writes ---- */

static int check_targets(const call *c) {
    char name[128];
    for (int i = 0; i < c->op->info->nargs; i++) {
        if (!c->op->info->args[i].is_write) continue;
        tp_tensors list = tp_value_tensors(&c->given[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && !tp_functional_is_of(list.data[k], c->level->number))
                return tp_refuse_target(tp_op_name(c->op, name));
    }
    return 0;
}

static int refuse_shape(const tp_op *op, const tp_tensor *target, const tp_tensor *value) {
    char name[128];
    tp_autotext got = {0}, wanted = {0};
    tp_text_ints(&got, tp_sizes(value));
    tp_text_ints(&wanted, tp_sizes(target));
    return tp_fail(TP_RuntimeError,
                   "functionalize: %s gives %s, which is not the shape %s of the tensor that it writes",
                   tp_op_name(op, name), got.text ? got.text : "", wanted.text ? wanted.text : "");
}

/* `value` is what the operator would have written; the thread is outside of the level. */
static int assign(const call *c, const tp_argument *a, tp_tensor *target, tp_tensor *value) {
    tp_stand_in *p = tp_stand_in_of(target);
    if (!tp_same_sizes(target, value)) {
        if (!a->is_out) return refuse_shape(c->op, target, value);
        if (p->steps)
            return tp_fail(TP_RuntimeError, "functionalize: out= that is a view cannot take on another shape");
        if (tp_tensor_set_geometry(target, tp_sizes(value), tp_strides(value)) < 0) return -1;
    }
    if (tp_overlaps(target)) return tp_refuse_overlap();
    if (!tp_can_cast(tp_dtype_of(value), tp_dtype_of(target)))
        return tp_fail(TP_RuntimeError, "result type %s can't be cast to the desired output type %s",
                       tp_dtype_names[value->dtype], tp_dtype_names[target->dtype]);
    tp_autoref *same = value->dtype == target->dtype
                           ? tp_retain(value)
                           : tp_to_dtype(value, tp_dtype_of(target), false, false, TP_NO_FORMAT);
    return same ? tp_stand_in_write(target, same) : -1;
}

/* Each tensor of a written argument gets what its place in `made` says. */
static int assign_all(const call *c, const tp_argument *a, const tp_value *given, const tp_value *made) {
    tp_tensors to = tp_value_tensors(given);
    tp_tensors from = made->tag == TP_TENSOR_SEQ ? tp_tensor_seq_borrow(made->seq) : tp_value_tensors(made);
    for (int64_t k = 0; k < to.size; k++)
        if (to.data[k] && k < from.size && from.data[k] && assign(c, a, to.data[k], from.data[k]) < 0) return -1;
    return 0;
}

/* What a factory makes is as what it would have been written to. */
static tp_value option_of(const tp_argument *a, const tp_tensor *like) {
    if (like && strcmp(a->name, "dtype") == 0) return (tp_value){.tag = TP_DTYPE, .i = like->dtype};
    if (like && strcmp(a->name, "device") == 0) return (tp_value){.tag = TP_DEVICE, .device = like->device};
    return (tp_value){.tag = TP_NONE};
}

static const tp_tensor *first_written(const call *c) {
    for (int i = 0; i < c->op->info->nargs; i++) {
        if (!c->op->info->args[i].is_write) continue;
        tp_tensors list = tp_value_tensors(&c->given[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k]) return list.data[k];
    }
    return NULL;
}

static int by_functional(call *c, const tp_op *other, tp_value *results) {
    int n = other->info->nargs, nmade = other->info->nreturns, own = own_results(c->op);
    tp_value args[n + 1], made[nmade + 1];
    const tp_tensor *like = first_written(c);
    for (int i = 0; i < n; i++) {
        int from = tp_argument_named(c->op, other->info->args[i].name);
        args[i] = from >= 0 ? c->args[from] : option_of(&other->info->args[i], like);
    }
    for (int i = 0; i <= nmade; i++) made[i] = (tp_value){.tag = TP_NONE};
    int status = run_outside(c, other, args, made), next = own;
    if (status == 0) {
        tp_auto_outside outside = tp_functional_step_out(c->level);
        for (int i = 0; status == 0 && i < c->op->info->nargs; i++)
            if (c->op->info->args[i].is_write)
                status = assign_all(c, &c->op->info->args[i], &c->given[i], &made[next++]);
    }
    if (status == 0) {
        memcpy(results, made, (size_t)own * sizeof *made);
        tp_release_values(made + own, nmade - own);
        return wrap_results(results, own);
    }
    tp_release_values(made, nmade);
    return -1;
}

/* What is written becomes a copy; the thread is outside of the level. */
static int copy_targets(call *c) {
    int64_t place = 0;
    for (int i = 0; i < c->op->info->nargs; i++) {
        int64_t n = tp_value_tensors(&c->args[i]).size;
        for (int64_t k = 0; k < n; k++, place++) {
            if (!c->op->info->args[i].is_write || !c->owned[place]) continue;
            tp_tensor *copy = tp_clone(c->owned[place], TP_NO_FORMAT);
            if (!copy) return -1;
            tp_release(c->owned[place]);
            c->owned[place] = copy; /* lists of arguments lie there */
            if (c->args[i].tag == TP_TENSOR) c->args[i].tensor = copy;
        }
    }
    return 0;
}

static int assign_copies(const call *c) {
    for (int i = 0; i < c->op->info->nargs; i++)
        if (c->op->info->args[i].is_write && assign_all(c, &c->op->info->args[i], &c->given[i], &c->args[i]) < 0)
            return -1;
    return 0;
}

/* The operator itself, on copies of what it writes. */
static int by_copies(call *c, tp_value *results) {
    int own = own_results(c->op), n = c->op->info->nreturns, status;
    {
        tp_auto_outside outside = tp_functional_step_out(c->level);
        if (copy_targets(c) < 0 || tp_call_boxed(c->op, c->args, results) < 0) return -1;
        status = assign_copies(c);
    }
    tp_release_values(results + own, n - own);
    if (status == 0) return wrap_results(results, own);
    tp_release_values(results, own);
    return -1;
}

/* An operator that was declared while the program runs gives its arguments itself. */
static void give_arguments(const call *c, tp_value *results) {
    int argument = 0;
    for (int i = own_results(c->op); i < c->op->info->nreturns && tp_is_definition(c->op); i++) {
        while (argument < c->op->info->nargs && !c->op->info->args[argument].is_write) argument++;
        if (argument == c->op->info->nargs) return;
        const tp_value *v = &c->given[argument++];
        if (v->tag == TP_TENSOR) results[i] = (tp_value){.tag = TP_TENSOR, .tensor = tp_retain(v->tensor)};
    }
}

/* The stand-in becomes a view of what it was. */
static int run_turn(call *c) {
    char name[128];
    const tp_op *view = other_of(c->op);
    if (!view)
        return tp_fail(TP_NotImplementedError, "functionalize: %s gives a tensor other memory",
                       tp_op_name(c->op, name));
    tp_tensor *target = c->given[0].tensor;
    TP_CLEANUP(free_start) start s = {0};
    if (begin(c, view, target, 0, &s) < 0) return -1;
    tp_step *step = tp_step_new(s.steps, view, run_for(c, view), c->args, 0);
    if (!step) return -1;
    step->inplace = c->op;
    tp_value shown[1] = {{TP_NONE}};
    run_on_geometry(c, view, target, 0, shown);
    int status = -1;
    {
        tp_auto_outside outside = tp_functional_step_out(c->level);
        tp_autoref *value = tp_step_take(step, s.base);
        const tp_tensor *as = value ? shown_in(shown, -1, value) : NULL;
        if (value) step->overlaps = tp_overlaps(as);
        if (value) status = tp_stand_in_turn(target, step, value, as);
    }
    tp_value_release(&shown[0]);
    tp_step_release(step);
    return status;
}

static bool turns(const tp_op *op) {
    for (const char *const *tag = op->info->tags; tag && *tag; tag++)
        if (strcmp(*tag, "inplace_view") == 0) return true;
    return false;
}

static int run_write(call *c, tp_value *results) {
    if (check_targets(c) < 0) return -1;
    if (turns(c->op)) return run_turn(c);
    const tp_op *other = other_of(c->op);
    int status = other ? by_functional(c, other, results) : by_copies(c, results);
    if (status == 0) give_arguments(c, results);
    return status;
}

/* ---- the fallback ---- */

/* A composite whose parts autograd has not asked for. */
static bool is_composite(const tp_op *op, tp_key backend) {
    tp_origin o;
    return tp_find_origin(op, backend, &o) && o.key == TP_ALIAS_KEY(CompositeImplicitAutograd);
}

static tp_device device_of(const tp_op *op, const tp_value *args) {
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k]) return list.data[k]->device;
    }
    return tp_default_device();
}

static int run(call *c, tp_value *results) {
    {
        tp_auto_outside outside = tp_functional_step_out(c->level);
        if (take_values(c) < 0) return -1;
    }
    if (writes(c->op)) return run_write(c, results);
    int viewed = tp_viewed_argument(c->op);
    if (viewed < 0 || c->given[viewed].tag != TP_TENSOR) return run_pure(c, results);
    if (tp_functional_is_of(c->given[viewed].tensor, c->level->number)) return run_view(c, viewed, results);
    return run_outside(c, c->op, c->args, results); /* a view of a tensor of the outside is one */
}

static int run_bare(const tp_op *op, tp_functional_level *level, tp_value *args, tp_value *results) {
    const tp_op *copying = tp_viewed_argument(op) >= 0 ? other_of(op) : NULL;
    tp_auto_outside outside = tp_functional_step_out(level);
    return tp_call_boxed(copying ? copying : op, args, results);
}

static int fall_back(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context TP_UNUSED) {
    tp_functional_level *level = tp_tls.functional;
    if (!level) {
        if (tp_keys_of_values(args, op->info->nargs) & TP_BIT(Functionalize)) return refuse_left(op);
        return tp_redispatch_boxed(op, ks & TP_BELOW(Functionalize), args, results);
    }
    tp_key backend = tp_backend_key(device_of(op, args).type);
    if (is_composite(op, backend)) return tp_call_kernel_at(op, backend, ks & TP_BELOW(Functionalize), args, results);
    if (level->bare) return run_bare(op, level, args, results);
    int64_t n = tp_count_tensors(args, op->info->nargs);
    size_t bytes = (size_t)(n + 1) * sizeof(tp_tensor *);
    tp_value room[op->info->nargs + 1];
    call c = {op, level, args, room, tp_alloc(bytes), 0};
    int status = c.owned ? run(&c, results) : -1;
    for (int64_t i = 0; i < c.n; i++) tp_release(c.owned[i]);
    tp_free(c.owned, bytes);
    return status;
}

int tp_functionalize_load(void) {
    return tp_register_fallback(TP_KEY_Functionalize, fall_back, NULL, NULL, "functionalize/fallback.c") < 0 ? -1 : 0;
}
