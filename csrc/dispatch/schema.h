/* schema.h: operators that are declared while the program runs, from a schema in PyTorch's grammar.
 *
 *     myops::scale(Tensor self, float by=2.0, *, int[]? dim=None) -> Tensor
 *
 * An operator, once declared, stays: handles and calls may know it for ever. Taken out, it has no kernels; declared
 * again with the same schema, it is the same. */
#pragma once

#include "dispatch/op.h"

#define TP_MAX_ARGUMENTS 24 /* of a declared operator */
#define TP_MAX_RESULTS 16

/* Declares an operator; its schema names a namespace of its own ("aten" and "prim" are taken). `source` is where it
 * was declared: "file:line". Declared again with the same schema it is the operator that is there; with another one a
 * RuntimeError with both places. NULL and the error set: ValueError with the place in the text if it does not parse. */
tp_op *tp_define(const char *schema, const char *source);

/* Takes a definition out of the list, so that its name is free. */
void tp_undefine(tp_op *op);
/* Whether an operator was declared here, not by the YAML. */
bool tp_is_definition(const tp_op *op);
/* The default of an argument, which has one, as a value; false: it is none for its type, or memory is out. What it
 * holds besides stays. */
bool tp_read_default(const tp_argument *a, tp_value *v);
/* The default of a definition's argument as a value that lives as long as the operator; NULL if it has none. */
const tp_value *tp_default_of(const tp_op *op, int argument);
/* The primitives that a definition's kernel for Dense calls, as in tp_op_info; they stay. Comes before that kernel is
 * registered. */
void tp_describe_prims(tp_op *op, tp_op *const *prims);
/* How the tangent of a definition is computed, as in tp_op_info; it stays. */
void tp_describe_forward(tp_op *op, const struct tp_forward_rule *forward);
/* How a definition is batched, as in tp_op_info; it stays. */
void tp_describe_batching(tp_op *op, const struct tp_batch_rule *batching);
/* Which dtypes the out= of a definition may have: tensorpy_out_dtype. */
void tp_describe_out_dtype(tp_op *op, int out_dtype);
int tp_out_dtype_of(const tp_op *op);
/* A definition refuses an out= that shares memory with an input. */
void tp_describe_out_apart(tp_op *op);
bool tp_out_is_apart(const tp_op *op);
/* The class of a definition's error where a list has no tensors, as in tp_op_info. */
void tp_describe_empty_list(tp_op *op, tp_error_class cls);
/* The module whose import registers a definition's kernels, as in tp_op_info; it stays. */
void tp_describe_registered_by(tp_op *op, const char *module);
/* The warning of a definition's first call, which stays; and whether it has been given. */
void tp_describe_warning(tp_op *op, const char *text);
const char *tp_warning_of(const tp_op *op, bool **warned);
/* A definition is a method of Tensor too. */
void tp_describe_method(tp_op *op);
bool tp_is_defined_method(const tp_op *op);
/* The tags of a definition, NULL-terminated; they stay. Comes before its kernels. */
void tp_describe_tags(tp_op *op, const char *const *tags);
/* The number in `int[2] x`, where a single number stands for so many; 0 where there is none. */
int tp_list_size_of(const char *type);
