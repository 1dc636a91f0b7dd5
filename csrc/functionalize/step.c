/* step.c: steps, which are the views that lead from a memory to a stand-in: taken again, and undone. */
#include "core/alloc.h"
#include "dispatch/schema.h"
#include "functionalize/internal.h"

#include <stdio.h>
#include <string.h>

/* ---- elements that share a place ---- */

bool tp_overlaps(const tp_tensor *t) {
    for (int i = 0; i < t->ndim; i++)
        if (t->strides[i] == 0 && t->sizes[i] > 1) return true;
    return false;
}

int tp_refuse_overlap(void) {
    return tp_fail(TP_RuntimeError, "functionalize: more than one element of the written tensor lies at one place; "
                                    "clone() it first");
}

/* ---- arguments that stay ---- */

static int save_bytes(const void **data, size_t bytes) {
    if (bytes == 0) return *data = NULL, 0;
    void *copy = tp_alloc(bytes);
    if (!copy) return -1;
    memcpy(copy, *data, bytes);
    *data = copy;
    return 0;
}

static size_t list_bytes(int64_t size, size_t each) { return size > 0 ? (size_t)size * each : 0; }

/* The lists among the values: where their bytes are, and how many. */
static const void **bytes_of(tp_value *v, size_t *bytes) {
    switch (v->tag) {
    case TP_TENSORS: *bytes = list_bytes(v->tensors.size, sizeof(tp_tensor *)); return (const void **)&v->tensors.data;
    case TP_SCALAR: *bytes = sizeof(tp_scalar); return (const void **)&v->scalar;
    case TP_STR: *bytes = strlen(v->str) + 1; return (const void **)&v->str;
    case TP_INTS_: *bytes = list_bytes(v->ints.size, sizeof(int64_t)); return (const void **)&v->ints.data;
    case TP_FLOATS: *bytes = list_bytes(v->floats.size, sizeof(double)); return (const void **)&v->floats.data;
    case TP_BOOLS: *bytes = list_bytes(v->bools.size, sizeof(*v->bools.data)); return (const void **)&v->bools.data;
    case TP_SCALARS: *bytes = list_bytes(v->scalars.size, sizeof(tp_scalar)); return (const void **)&v->scalars.data;
    default: return NULL;
    }
}

/* A value that fails is NONE afterwards. */
static int save_value(tp_value *v) {
    size_t bytes;
    const void **data = bytes_of(v, &bytes);
    if (data && save_bytes(data, bytes) < 0) return *v = (tp_value){.tag = TP_NONE}, -1;
    if (v->tag == TP_TENSOR) tp_retain(v->tensor);
    for (int64_t i = 0; v->tag == TP_TENSORS && i < v->tensors.size; i++) tp_retain(v->tensors.data[i]);
    return 0;
}

static void free_value(tp_value *v) {
    size_t bytes;
    if (v->tag == TP_TENSOR) tp_release(v->tensor);
    for (int64_t i = 0; v->tag == TP_TENSORS && i < v->tensors.size; i++) tp_release(v->tensors.data[i]);
    const void **data = bytes_of(v, &bytes);
    if (data && bytes) tp_free((void *)*data, bytes);
}

/* ---- steps ---- */

static size_t step_bytes(const tp_op *op) { return sizeof(tp_step) + (size_t)op->info->nargs * sizeof(tp_value); }

tp_step *tp_step_new(tp_step *before, const tp_op *view, const tp_op *run, const tp_value *args, int viewed) {
    tp_step *s = tp_alloc(step_bytes(view));
    if (!s) return NULL;
    *s = (tp_step){
        .refcount = 1, .before = tp_step_retain(before), .view = view, .run = run, .viewed = viewed, .which = -1};
    int n = view->info->nargs, status = 0;
    for (int i = 0; i < n; i++) {
        s->args[i] = status == 0 && i != viewed ? args[i] : (tp_value){.tag = TP_NONE};
        if (status == 0) status = save_value(&s->args[i]);
    }
    if (status == 0) return s;
    tp_step_release(s);
    return NULL;
}

void tp_step_release(tp_step *s) {
    while (s && atomic_fetch_sub_explicit(&s->refcount, 1, memory_order_acq_rel) == 1) {
        tp_step *before = s->before;
        for (int i = 0; i < s->view->info->nargs; i++) free_value(&s->args[i]);
        tp_free(s, step_bytes(s->view));
        s = before;
    }
}

tp_tensor *tp_step_take(const tp_step *s, tp_tensor *base) {
    tp_value args[s->view->info->nargs + 1], made[1] = {{TP_NONE}};
    memcpy(args, s->args, (size_t)s->view->info->nargs * sizeof *args);
    args[s->viewed] = (tp_value){.tag = TP_TENSOR, .tensor = base};
    if (tp_call_boxed(s->run, args, made) < 0) return NULL;
    if (s->which < 0) return made[0].tensor;
    tp_tensor *t = s->which < made[0].seq->size ? tp_retain(made[0].seq->items[s->which]) : NULL;
    tp_value_release(&made[0]);
    return t ? t : tp_fail_null(TP_RuntimeError, "functionalize: a view that was one of several is no more");
}

tp_tensor *tp_steps_follow(const tp_step *last, const tp_step *from, tp_tensor *base) {
    if (!last || last == from) return tp_retain(base);
    tp_autoref *before = tp_steps_follow(last->before, from, base);
    return before ? tp_step_take(last, before) : NULL;
}

/* A library's view is undone by an operator of the library: `turn_inverse(Tensor base, Tensor view, int dim)` of
 * the view `turn(Tensor(a) self, int dim) -> Tensor(a)`. */
static const tp_op *inverse_of(const tp_op *view) {
    char name[160];
    const tp_op_info *info = view->info;
    int n = snprintf(name, sizeof name, "%s_inverse%s%s", info->name, info->overload[0] ? "." : "", info->overload);
    return n < (int)sizeof name && tp_is_definition(view) ? tp_find_op_qualified(name) : NULL;
}

static tp_tensor *undo_by(const tp_op *inverse, const tp_step *s, tp_tensor *base, tp_tensor *value) {
    char name[128];
    int n = inverse->info->nargs;
    tp_value args[n + 1], made[1] = {{TP_NONE}};
    for (int i = 0; i < n; i++) {
        const char *wanted = inverse->info->args[i].name;
        int from = tp_argument_named(s->view, wanted);
        if (strcmp(wanted, "base") == 0) args[i] = (tp_value){.tag = TP_TENSOR, .tensor = base};
        else if (strcmp(wanted, "view") == 0) args[i] = (tp_value){.tag = TP_TENSOR, .tensor = value};
        else if (strcmp(wanted, "which") == 0) args[i] = (tp_value){.tag = TP_INT, .i = s->which};
        else if (from >= 0 && from != s->viewed) args[i] = s->args[from];
        else
            return tp_fail_null(TP_RuntimeError,
                                "functionalize: %s undoes a view, so it takes 'base', 'view', 'which' and the view's "
                                "other arguments, not '%s'",
                                tp_op_name(inverse, name), wanted);
    }
    if (tp_call_boxed(inverse, args, made) < 0) return NULL;
    if (made[0].tag == TP_TENSOR) return made[0].tensor;
    tp_value_release(&made[0]);
    return tp_fail_null(TP_RuntimeError, "functionalize: %s undoes a view, so it gives a tensor",
                        tp_op_name(inverse, name));
}

static tp_tensor *undo(const tp_step *s, tp_tensor *base, tp_tensor *value) {
    char name[128];
    const tp_functional_rule *rule = s->view->info->functional;
    const tp_op *inverse = rule ? NULL : inverse_of(s->view);
    if (inverse) return undo_by(inverse, s, base, value);
    if (!rule || !rule->inverse)
        return tp_fail_null(
            TP_RuntimeError,
            "functionalize: a tensor is written through the view %s, and nothing says how that is undone: "
            "give its entry an 'inverse', a formula of 'base' and 'view', or define the operator "
            "%s_inverse(Tensor base, Tensor view, ...) -> Tensor",
            tp_op_name(s->view, name), s->view->info->name);
    return rule->inverse(s->args, base, value, s->which);
}

tp_tensor *tp_steps_put(const tp_step *last, tp_tensor *base, tp_tensor *value) {
    if (!last) return tp_retain(value);
    int n = 0, shown = 1, left;
    for (const tp_step *s = last; s; s = s->before, n++)
        if (s->before && s->before->overlaps) return tp_refuse_overlap(), NULL;
    const tp_step *steps[n];
    tp_tensor *bases[n]; /* what each step takes: each view is taken once */
    left = n;
    for (const tp_step *s = last; s; s = s->before) steps[--left] = s;
    bases[0] = tp_retain(base);
    while (shown < n && (bases[shown] = tp_step_take(steps[shown - 1], bases[shown - 1]))) shown++;
    tp_tensor *changed = shown == n ? tp_retain(value) : NULL;
    while (shown-- > 0) {
        tp_autoref *taken = bases[shown], *written = changed;
        changed = written ? undo(steps[shown], taken, written) : NULL;
    }
    return changed;
}
