/* tags.h: what generated wrappers call for the tags of an operator (codegen/tag_rules.py). */
#pragma once

#include "core/tensor.h"

/* nondeterministic_bitwise: RuntimeError, or a warning, under use_deterministic_algorithms. */
int tp_check_determinism(const char *op);
/* The key `warns` of an entry: a warning at the first call of the process. */
int tp_warn_first(bool *warned, const char *text);
/* dynamic_output_shape, data_dependent_output: NotImplementedError that names the tag, for a Meta tensor (NULL: none).
 */
int tp_refuse_meta(const tp_tensor *t, const char *op, const char *tag);
/* view_copy: a contiguous copy of a view, of each of several; the views are released. */
tp_tensor *tp_copy_of_view_steal(tp_tensor *view);
tp_tensor_seq *tp_copies_of_views_steal(tp_tensor_seq *views);
