/* formula.h: what the generated backward nodes call besides node.h: copies of list arguments, gradients of lists. */
#pragma once

#include "autograd/node.h"
#include "dispatch/key.h"

/* `is_grad_enabled()` of a formula: whether what it calls is differentiated, in reverse or forward. */
TP_INLINE bool tp_is_differentiated(void) { return tp_grad_enabled() || tp_tls.include & TP_BIT(ForwardAD); }

/* Copies; data is NULL and the error set on failure (as with tp_save_ints). */
tp_floats tp_save_floats(tp_floats v);
tp_bools tp_save_bools(tp_bools v);
void tp_saved_floats_free(tp_floats *v);
void tp_saved_bools_free(tp_bools *v);
void tp_saved_str_free(char **s); /* of tp_save_str */
/* The size along dim of each tensor of a list; 0 for a legacy empty tensor of shape [0], which cat skips. Freed with
 * tp_saved_ints_free. */
tp_ints tp_save_sizes_along(tp_tensors list, int64_t dim);
/* Stores references to the gradients of a list argument into out[0 .. count-1]; RuntimeError if there are not so many.
 */
int tp_put_gradients(tp_tensor **out, int count, tp_tensors gradients);
bool tp_any_gradient(tp_tensor *const *grads, int count);
/* The gradients of an operator that returns a list, with zeros for those that have not arrived. New. */
tp_tensor_seq *tp_gradients_of_list(tp_node *n, tp_tensor *const *grads);
