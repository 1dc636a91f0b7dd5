/* view.c: views and in-place operators in the graph.
 *
 * A view knows its base. When a view is changed in place, the change is recorded on the base (CopySlices: the gradient
 * of the base passes the operator's node in the view's region), and each view's grad_fn is made anew from the base's
 * when it is next asked for (the storage's version tells that something was written since).
 *
 * Note [Views and layouts]
 * A tensor of a layout that has parts (Note [Layouts] in core/layout.h) is a view of the tensor that its values were
 * made of, and its values, taken out of it, are another view of that one. So whoever writes to any of them writes to
 * that base, and the others have their histories made anew: through the values where they lie in the base's memory, and
 * through the pattern where one side is in parts. A tensor in parts that was made where nothing is recorded is its own
 * base; what is recorded writes to the whole of it, not to values that were taken out. */
#include "autograd/node.h"

#include "Functions.h"
#include "autograd/internal.h"
#include "autograd/parts.h"
#include "autograd/region.h"
#include "core/layout.h"
#include "dispatch/schema.h"

#include <stdlib.h>
#include <string.h>

/* What a view has of what it is a view of. */
#define HANDED_ON (TP_FLAG_UNVERSIONED | TP_FLAG_VIEW_NO_GRAD | TP_FLAG_VIEW_MULTI | TP_FLAG_VIEW_INFERENCE)

tp_tensor *tp_as_view(tp_tensor *base, tp_tensor *view) {
    if (!view || view == base || view->base || (tp_tls.grad_disabled && tp_is_in_parts(view))) return view;
    if (tp_unlikely(base->flags & TP_FLAG_INFERENCE)) { /* nothing follows what is made of it */
        view->flags |= TP_FLAG_INFERENCE | (base->flags & TP_FLAG_UNVERSIONED);
        return view;
    }
    tp_tensor *root = base->base ? base->base : base;
    view->base = tp_retain(root);
    view->view_version = tp_version_seen(view);
    uint16_t flags = view->flags & (uint16_t)~TP_FLAG_INFERENCE;
    flags |= base->flags & HANDED_ON;
    if (tp_tls.grad_disabled) flags |= TP_FLAG_VIEW_NO_GRAD;
    if (tp_tls.inference_mode) flags |= TP_FLAG_VIEW_INFERENCE;
    view->flags = flags;
    return view;
}

tp_tensor_seq *tp_as_views(tp_tensor *base, tp_tensor_seq *views) {
    for (int64_t i = 0; views && i < views->size; i++) {
        tp_as_view(base, views->items[i]);
        views->items[i]->flags |= TP_FLAG_VIEW_MULTI;
    }
    return views;
}

tp_tensor *tp_show_base(tp_tensor *base, tp_tensor *view) {
    if (!view || view == base || !(view->keys & base->keys & TP_BIT(Layout))) return view;
    tp_autograd_meta *m = tp_autograd_meta_ensure(view);
    if (!m) return tp_release(view), NULL;
    tp_tensor *root = base->autograd && base->autograd->shown_base ? base->autograd->shown_base : base;
    if (!m->shown_base) m->shown_base = tp_retain(root);
    return view;
}

tp_tensor_seq *tp_show_bases(tp_tensor *base, tp_tensor_seq *views) {
    for (int64_t i = 0; views && i < views->size; i++)
        if (!(views->items[i] = tp_show_base(base, views->items[i]))) return tp_tensor_seq_free(views), NULL;
    return views;
}

/* The other tensors in parts are made of values, of which PyTorch says nothing; but for jagged ones. */
tp_tensor *tp_shown_base(const tp_tensor *t) {
    if (t->autograd && t->autograd->shown_base) return t->autograd->shown_base;
    tp_layout layout = tp_layout_of(t);
    return layout == TP_STRIDED || layout == TP_JAGGED || tp_is_quantized(t) ? t->base : NULL;
}

/* ---- the gradient of a strided view ---- */

/* The region is that of memory; a view in parts, or a base in parts, has a pattern around it. */
typedef struct {
    tp_node base;
    tp_region region;
    tp_tensor *view_pattern, *base_pattern; /* owned; NULL: strided */
} as_strided_node;

static int strided_apply(const tp_region *r, tp_tensor *given, tp_tensor **out) {
    tp_autoref *read = tp_read_as_view(r, given), *solved = read ? tp_resolve_conj(read) : NULL;
    tp_autoref *grad = solved && r->complex_view ? tp_view_as_real(solved) : tp_retain(solved);
    if (!grad) return -1;
    tp_autoref *whole = tp__as_strided_backward(grad, r->base_sizes, r->base_strides, r->sizes, r->strides, r->offset);
    if (!whole) return -1;
    if (!r->complex_base) {
        out[0] = tp_take(whole);
        return 0;
    }
    tp_autoref *dense = tp_contiguous(whole, TP_CONTIGUOUS_FORMAT);
    out[0] = dense ? tp_view_as_complex(dense) : NULL;
    return out[0] ? 0 : -1;
}

static int as_strided_apply(tp_node *n, tp_tensor *const *grads, tp_tensor **out) {
    const as_strided_node *self = (as_strided_node *)n;
    if (!grads[0] || !tp_node_wants(n, 0)) return 0;
    tp_autoref *values = self->view_pattern ? tp__layout_at(grads[0], self->view_pattern) : tp_retain(grads[0]);
    if (!values || strided_apply(&self->region, values, out) < 0) return -1;
    if (!self->base_pattern) return 0;
    tp_autoref *whole = out[0];
    out[0] = tp__layout_like(self->base_pattern, whole);
    return out[0] ? 0 : -1;
}

static void keeps_nothing(tp_node *n) { (void)n; }

static void as_strided_free_copies(tp_node *n) {
    as_strided_node *self = (as_strided_node *)n;
    tp_region_free(&self->region);
    tp_release(self->view_pattern);
    tp_release(self->base_pattern);
}

static const tp_node_type as_strided_type = {
    .name = "AsStridedBackward0",
    .op = "as_strided",
    .size = sizeof(as_strided_node),
    .apply = as_strided_apply,
    .release = keeps_nothing,
    .free_copies = as_strided_free_copies,
};

/* A base is no view: what it knows of its history is up to date. */
static int point_to_base(tp_node *n, tp_tensor *base) {
    return tp_requires_grad(base) ? tp_node_point_to(n, 0, base) : 0;
}

/* A node that computes the gradient of a base from that of a strided view of it. New. */
static tp_node *as_strided_node_new(tp_tensor *base, const tp_tensor *view) {
    tp_autonode *n = tp_node_new(&as_strided_type, 1);
    as_strided_node *self = (as_strided_node *)n;
    tp_autoref *from = n ? tp_strided_part(base) : NULL, *to = from ? tp_strided_part(view) : NULL;
    if (!to || point_to_base(n, base) < 0 || tp_region_save(&self->region, from, to) < 0) return NULL;
    if (tp_is_in_parts(view) && !(self->view_pattern = tp_pattern_of(view))) return NULL;
    if (tp_is_in_parts(base) && !(self->base_pattern = tp_pattern_of(base))) return NULL;
    return tp_take(n);
}

/* ---- a view's history ---- */

/* What made a tensor, without the word for its backward. */
static const char *maker_of(const tp_tensor *t, int *length) {
    const char *name = t->autograd && t->autograd->grad_fn ? t->autograd->grad_fn->type->name : "a function";
    const char *end = strstr(name, "Backward");
    *length = (int)(end ? (size_t)(end - name) : strlen(name));
    return name;
}
static int output_of(const tp_tensor *t) { return t->autograd && t->autograd->grad_fn ? t->autograd->output_nr : 0; }

static int fail_custom_view(const tp_tensor *view) {
    int length;
    const char *name = maker_of(view, &length);
    return tp_fail(
        TP_RuntimeError,
        "Output %d of %.*s is a view and is being modified inplace. This view was created inside a custom Function "
        "(or an input was returned as it is), and it, or its base, is changed: the gradient of the view would bypass "
        "the Function's backward. Return a clone() from forward(), or change it out of place",
        output_of(view), length, name);
}

/* The words for where a view was made that records nothing, and where it should have been used. */
#define MADE_IN(view) ((view)->flags & TP_FLAG_VIEW_INFERENCE ? "inference" : "no_grad")
#define USED_IN(view) ((view)->flags & TP_FLAG_VIEW_INFERENCE ? "in normal mode" : "with grad mode enabled")

static int renew_history(tp_tensor *view) {
    if (view->flags & TP_FLAG_VIEW_NO_GRAD) {
        if (view->view_version == tp_version_seen(view)) return tp_autograd_meta_ensure(view) ? 0 : -1; /* a leaf */
        return tp_fail(TP_RuntimeError,
                       "A view was created in %s mode and its base or another view of its base has been modified "
                       "inplace %s. Make the view and the change both inside of it, or both outside",
                       MADE_IN(view), USED_IN(view));
    }
    if (view->flags & TP_FLAG_VIEW_CUSTOM) return fail_custom_view(view);
    tp_autonode *n = as_strided_node_new(view->base, view);
    return n ? tp_node_set_output(n, view) : -1;
}

tp_node *tp_grad_fn_borrow(tp_tensor *t) {
    if (t->base && tp_view_gained_grad(t) && renew_history(t) < 0) return NULL;
    return t->autograd ? t->autograd->grad_fn : NULL;
}

/* ---- in place ---- */

/* How a view was made decides first, before what it is a view of. */
static int check_view_inplace(const tp_tensor *self, const char *op) {
    if (self->flags & TP_FLAG_VIEW_CUSTOM) return fail_custom_view(self);
    int length;
    const char *name = maker_of(self, &length);
    if (self->flags & TP_FLAG_VIEW_NO_GRAD && self->autograd && self->autograd->grad_fn)
        return tp_fail(
            TP_RuntimeError,
            "Output %d of %.*s is a view of a view which was created in %s mode and is being modified inplace %s. Make "
            "all of them and the change (%s) inside the %s block, or outside of it",
            output_of(self), length, name, MADE_IN(self), USED_IN(self), op,
            self->flags & TP_FLAG_VIEW_INFERENCE ? "inference_mode" : "no_grad");
    if (self->flags & TP_FLAG_VIEW_NO_GRAD)
        return tp_fail(
            TP_RuntimeError,
            "A view was created in %s mode and is being modified inplace %s. Make the view and the change (%s) both "
            "inside of it, or both outside",
            MADE_IN(self), USED_IN(self), op);
    if (self->flags & TP_FLAG_VIEW_MULTI)
        return tp_fail(TP_RuntimeError,
                       "Output %d of %.*s is a view and is being modified inplace. This view is the output of a "
                       "function that returns multiple views. Such functions do not allow the output views to be "
                       "modified inplace (%s); clone it first, or index the base",
                       output_of(self), length, name, op);
    return 0;
}

/* Such a base has no memory that a gradient could be put together in. */
static int fail_values(const tp_tensor *base, const char *op) {
    return tp_fail(TP_RuntimeError,
                   "%s: values of a tensor of the layout %s are changed in place where that is recorded, and the "
                   "tensor is not made of values that are known: clone() them, or change them under no_grad",
                   op, tp_layouts[tp_layout_of(base)].name);
}

int tp_check_not_captured(const tp_tensor *self, const char *op) {
    if (tp_likely((self->flags & TP_FLAG_DEPTH) >= (tp_tls.new_flags & TP_FLAG_DEPTH))) return 0;
    return tp_fail(TP_RuntimeError,
                   "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                   "operation (aten::%s) that would mutate a captured Tensor. This is not supported; make the tensor "
                   "an argument of the function",
                   op);
}

int tp_check_inplace(tp_tensor *self, const char *op, bool records) {
    if (!tp_grad_enabled()) return 0;
    if (records && tp_check_not_captured(self, op) < 0) return -1;
    bool tracked = records || tp_requires_grad(self) || (self->base && tp_requires_grad(self->base));
    if (self->base && tracked && check_view_inplace(self, op) < 0) return -1;
    if (tp_requires_grad(self) && tp_is_leaf(self))
        return tp_fail(TP_RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation: %s",
                       op);
    /* The leaf may be a view itself, of a base that wants no gradient. */
    if (self->base && (tp_requires_grad(self->base) || tp_requires_grad(self)) && tp_is_leaf(self->base))
        return tp_fail(TP_RuntimeError,
                       "a view of a leaf Variable that requires grad is being used in an in-place operation: %s", op);
    if (self->base && tracked && tp_is_in_parts(self->base)) return fail_values(self->base, op);
    return 0;
}

typedef struct {
    tp_node base;
    tp_node *fn; /* owned: the in-place operator's node; its edges were moved here */
    tp_region region;
} copy_slices_node;

/* For the base's gradient: of the layer that answers for it, where one does. */
static tp_tensor *new_for_base(tp_tensor *grad, const tp_region *r) {
    tp_dtype dtype = r->complex_base ? tp_to_real_dtype((tp_dtype)grad->dtype) : (tp_dtype)grad->dtype;
    if (tp_unlikely(grad->keys & (TP_ANSWERED | TP_BIT(Batched))))
        return tp_op_new_empty_strided(grad, r->base_sizes, r->base_strides, dtype, TP_NO_LAYOUT, TP_NO_DEVICE, -1);
    return tp_new_empty_strided(r->base_sizes, r->base_strides, dtype, grad->device);
}

/* fn decides what to compute by its edges, so they stay set on it too. */
static int copy_slices_apply(tp_node *n, tp_tensor *const *grads, tp_tensor **out) {
    copy_slices_node *self = (copy_slices_node *)n;
    const tp_region *r = &self->region;
    if (!grads[0]) return 0;
    tp_autoref *plain = new_for_base(grads[0], r);
    tp_autoref *grad = plain && r->complex_base ? tp_view_as_complex(plain) : tp_retain(plain);
    if (!grad || tp_copy_(grad, grads[0], false) < 0) return -1;
    tp_autoref *slice = tp_region_of(r, plain);
    tp_autoref *slice_grad = slice ? tp_clone(slice, TP_NO_FORMAT) : NULL;
    if (!slice_grad) return -1;
    tp_tensor *inner[self->fn->nedges + 1];
    memset(inner, 0, sizeof inner);
    tp_tensor *const fn_grads[] = {slice_grad};
    if (self->fn->type->apply(self->fn, fn_grads, inner) < 0) return -1;
    int status = inner[0] ? tp_copy_(slice, inner[0], false) : tp_zero_(slice);
    tp_release(inner[0]);
    out[0] = tp_take(grad);
    for (uint32_t i = 1; i < self->fn->nedges; i++) out[i] = inner[i];
    return status;
}

static void copy_slices_release(tp_node *n) {
    copy_slices_node *self = (copy_slices_node *)n;
    if (!self->fn) return; /* the node was not finished */
    self->fn->type->release(self->fn);
    self->fn->released = true;
}

static void copy_slices_free_copies(tp_node *n) {
    copy_slices_node *self = (copy_slices_node *)n;
    tp_node_release(self->fn);
    tp_region_free(&self->region);
}

static tp_node *copy_slices_inner(const tp_node *n) { return ((const copy_slices_node *)n)->fn; }

static const tp_node_type copy_slices_type = {
    .inner = copy_slices_inner,
    .name = "CopySlices",
    .of_engine = true,
    .op = "copy_slices",
    .size = sizeof(copy_slices_node),
    .apply = copy_slices_apply,
    .release = copy_slices_release,
    .free_copies = copy_slices_free_copies,
};

static int rebase_view(tp_tensor *view, tp_node *fn) {
    tp_tensor *base = view->base;
    if (tp_is_in_parts(base)) return fail_values(base, "an operator");
    if (tp_is_in_parts(view))
        return tp_fail(TP_RuntimeError, "a function that marks a tensor of the layout %s as dirty: return a new one",
                       tp_layouts[tp_layout_of(view)].name);
    tp_autonode *n = tp_node_new(&copy_slices_type, fn->nedges > 0 ? (int)fn->nedges : 1);
    if (!n || point_to_base(n, base) < 0) return -1;
    copy_slices_node *self = (copy_slices_node *)n;
    for (uint32_t i = 1; i < fn->nedges; i++)
        n->edges[i] = (tp_edge){tp_node_retain(fn->edges[i].node), fn->edges[i].input_nr};
    self->fn = tp_node_retain(fn);
    if (tp_region_save(&self->region, base, view) < 0) return -1;
    if (tp_node_add_input(fn, view) < 0 || tp_node_set_output(n, base) < 0) return -1;
    return renew_history(view);
}

/* The node of a tensor that is no view. */
static tp_node *history_of(const tp_tensor *t) { return t->autograd ? t->autograd->grad_fn : NULL; }

int tp_rebase_history(tp_tensor *self, tp_node *node) {
    if (tp_unlikely(tp_tls.region != NULL)) tp_pending_hooks.reshaped(self->storage, "a tensor gets a history");
    tp_tensor *root = self->base ? self->base : self;
    const tp_node *before = history_of(root);
    int status = self->base ? rebase_view(self, node) : tp_node_set_output(node, self);
    if (status == 0 && tp_unlikely(self->storage->traits & TP_STORAGE_SAVED))
        tp_forget_saved(root, history_of(root), before);
    return status;
}

int tp_take_history(tp_tensor *self, const tp_tensor *made) {
    const tp_node *before = history_of(self);
    if (!history_of(made)) return 0;
    if (self->base) return tp_fail(TP_RuntimeError, "a view is changed in place by something that records");
    if (tp_put_history(self, made) < 0) return -1;
    if (self->storage->traits & TP_STORAGE_SAVED) tp_forget_saved(self, history_of(self), before);
    return 0;
}

/* Nothing happened to the base of a view: it is another view of it now. */
int tp_restride_history(tp_tensor *self, tp_node *node) {
    return self->base ? renew_history(self) : tp_node_set_output(node, self);
}

int tp_out_no_grad(const char *op) {
    return tp_fail(TP_RuntimeError,
                   "%s(): functions with out=... arguments don't support automatic differentiation, but one of the "
                   "arguments requires grad.",
                   op);
}

int tp_list_no_grad(const char *op) {
    return tp_fail(TP_RuntimeError, "%s: there is no gradient of this step; call it under tensorpy.no_grad()", op);
}

int tp_refuse_grad(const char *op, const char *argument) {
    return tp_fail(TP_RuntimeError,
                   "the function '%s' is not differentiable with respect to argument '%s', which requires grad: "
                   "detach() it, or call under tensorpy.no_grad()",
                   op, argument);
}

/* ---- operators without a formula ---- */

typedef struct {
    tp_node base;
    const char *op;
} missing_formula_node;

static int missing_formula_apply(tp_node *n, tp_tensor *const *grads, tp_tensor **out) {
    (void)grads;
    (void)out;
    const char *name = ((missing_formula_node *)n)->op;
    const tp_op *op = tp_find_op_qualified(name);
    if (op && tp_is_definition(op))
        return tp_fail(TP_RuntimeError,
                       "derivative for %s is not implemented: it was declared at %s; give it one with "
                       "tensorpy.library.register_autograd(\"%s\", backward)",
                       name, op->info->declared_at, name);
    return tp_fail(TP_RuntimeError, "derivative for %s is not implemented", name);
}
static const tp_node_type missing_formula_type = {
    .name = "NotImplemented",
    .of_engine = true,
    .op = "not implemented",
    .size = sizeof(missing_formula_node),
    .apply = missing_formula_apply,
    .release = keeps_nothing,
};

tp_node *tp_not_differentiable_node(const char *op, int nedges) {
    tp_node *n = tp_node_new(&missing_formula_type, nedges);
    if (n) ((missing_formula_node *)n)->op = op;
    return n;
}

tp_tensor *tp_sum_to_sizes(tp_tensor *grad, tp_ints sizes) {
    int64_t dims[TP_MAX_DIMS];
    int n = 0, lead = grad->ndim - (int)sizes.size;
    for (int d = 0; d < grad->ndim; d++)
        if (d < lead || (sizes.data[d - lead] == 1 && grad->sizes[d] != 1)) dims[n++] = d;
    if (n == 0) return tp_retain(grad);
    tp_autoref *sum = tp_sum_dim_IntList(grad, (tp_ints){dims, n}, true, TP_NO_DTYPE);
    if (!sum || lead == 0) return tp_take(sum);
    return tp_view(sum, sizes);
}
