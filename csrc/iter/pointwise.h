/* pointwise.h: everything between a pointwise operator's registration and its inner loops.
 *
 * The generator describes each pointwise operator of the YAML by one tp_pointwise; one function serves its functional,
 * in-place and out= variants on the CPU and on Meta. Operands that are contiguous, of one dtype and one shape take a
 * short path that never builds an iterator. */
#pragma once

#include "dispatch/value.h"
#include "iter/iter.h"

struct tp_pointwise_case;
typedef struct {
    const char *name;      /* "add.Tensor", for messages */
    const char *inputs[4]; /* the inputs' names */
    uint16_t number;       /* its place among all pointwise operators */
    uint8_t ninputs, nparams;
    uint8_t promotion;       /* tp_promotion */
    int8_t input_dtype[4];   /* a dtype that input i is converted to, outside promotion; TP_NO_DTYPE: takes part */
    uint16_t loop_mask;      /* bit d: dtype d has a loop (16-bit floats use float32's) */
    uint16_t grain_shift;    /* cost: the grain is TP_GRAIN >> grain_shift */
    const tp_loop_fn *loops; /* by dtype; chosen for this CPU at load */
    int64_t ncases;          /* operators that take its place for some numbers: x ** 2 */
    const struct tp_pointwise_case *cases;
} tp_pointwise;

typedef struct tp_pointwise_case {
    const tp_pointwise *op;
    double value;
    int input; /* which is this number */
} tp_pointwise_case;

/* The operator itself, or the one that takes its place for these inputs. */
const tp_pointwise *tp_pointwise_case_of(const tp_pointwise *p, const tp_operand *inputs);

/* How a device other than the CPU runs a plan of the operator on tensors of its own (outputs first): `dtype` is what
 * the expression computes in, the plan's loop dtypes follow from it. A tensor that is NULL, or one of the CPU without
 * dimensions, is a number that lies at it->data. */
typedef int (*tp_pointwise_runner)(const tp_pointwise *p, const tp_iter *it, tp_dtype dtype, tp_tensor *const *tensors,
                                   const tp_value *params);
void tp_set_pointwise_runner(tp_device_type type, tp_pointwise_runner runner);

/* The functional variant, and the in-place and out= variants. `params` are boxed, in schema order. */
tp_tensor *tp_pointwise_new(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
int tp_pointwise_into(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor *out,
                      bool inplace);
