/* detach.c: tensors without their history. */
#include "autograd/tangent.h"

#include "core/layout.h"

static int forget_tangents(tp_tensor *t) {
    for (int i = 0; i < tp_forward_count(); i++)
        if (tp_put_tangent(t, tp_forward_number(i), NULL) < 0) return -1;
    return 0;
}

int tp_detach_in_place(tp_tensor *t) {
    if (t->base && (tp_requires_grad(t) || tp_requires_grad(t->base)))
        return tp_fail(TP_RuntimeError,
                       "Can't detach views in-place. Use detach() instead: the tensor shares the history of its base");
    if (forget_tangents(t) < 0) return -1;
    if (!t->autograd) return 0;
    tp_node *node = t->autograd->grad_fn;
    t->autograd->grad_fn = NULL;
    t->autograd->output_nr = 0;
    t->autograd->requires_grad = false;
    t->flags = (uint16_t)(t->flags & ~(TP_FLAG_REQUIRES_GRAD | TP_FLAG_RETAINS_GRAD));
    tp_node_release(node);
    return 0;
}

tp_tensor *tp_detached_data(tp_tensor *t) {
    tp_tensor *alias = tp_detached_alias(t);
    if (alias) alias->flags |= TP_FLAG_UNVERSIONED;
    return alias;
}

int tp_put_data(tp_tensor *t, const tp_tensor *data) {
    if (tp_requires_grad(t) && !tp_is_floating(data) && !tp_is_complex(data))
        return tp_fail(TP_RuntimeError,
                       "data set to a tensor that requires gradients must be floating point or complex dtype, not %s",
                       tp_dtype_names[data->dtype]);
    if (tp_layout_of(t) != tp_layout_of(data))
        return tp_fail(TP_RuntimeError,
                       "set_data: incompatible tensor type: a tensor of the layout %s is not one of %s",
                       tp_layouts[tp_layout_of(t)].name, tp_layouts[tp_layout_of(data)].name);
    return tp_tensor_assign(t, data);
}
