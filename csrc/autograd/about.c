/* about.c: what a tensor knows of its gradient, as operators. Python's attributes and methods ask the same functions.
 */
#include "NativeFunctions.h"
#include "autograd/engine.h"

/* is_leaf(Tensor self) -> bool */
int op_is_leaf_composite(tp_tensor *self, bool *result) {
    *result = tp_is_leaf(self);
    return 0;
}
/* output_nr(Tensor self) -> int */
int output_nr_composite(tp_tensor *self, int64_t *result) {
    *result = self->autograd ? (int64_t)self->autograd->output_nr : 0;
    return 0;
}
/* _version(Tensor self) -> int */
int _version_composite(tp_tensor *self, int64_t *result) {
    if (self->flags & TP_FLAG_INFERENCE)
        return tp_fail(TP_RuntimeError, "Inference tensors do not track version counter.");
    *result = tp_version(self);
    return 0;
}
/* retains_grad(Tensor self) -> bool */
int retains_grad_composite(tp_tensor *self, bool *result) {
    *result = self->flags & TP_FLAG_RETAINS_GRAD;
    return 0;
}
/* retain_grad(Tensor(a!) self) -> () */
int op_retain_grad_composite(tp_tensor *self) { return tp_retain_grad(self); }
/* requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!) */
int requires_grad__composite(tp_tensor *self, bool requires_grad) { return tp_set_requires_grad(self, requires_grad); }
/* detach_(Tensor(a!) self) -> Tensor(a!) */
int detach__composite(tp_tensor *self) { return tp_detach_in_place(self); }
/* data(Tensor self) -> Tensor */
tp_tensor *op_data_composite(tp_tensor *self) { return tp_detached_data(self); }

/* set_data(Tensor(a!) self, Tensor new_data) -> () */
int set_data_composite(tp_tensor *self, tp_tensor *new_data) { return tp_put_data(self, new_data); }

/* _backward(Tensor self, Tensor[] inputs, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) ->
 * () */
int _backward_composite(tp_tensor *self, tp_tensors inputs, tp_tensor *gradient, tp_opt_bool retain_graph,
                        bool create_graph) {
    bool retain = retain_graph < 0 ? create_graph : retain_graph;
    tp_tensors all = {NULL, -1};
    return tp_backward((tp_tensors){&self, 1}, (tp_tensors){&gradient, 1}, retain, create_graph,
                       inputs.size > 0 ? inputs : all, NULL);
}
