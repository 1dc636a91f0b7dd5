/* optimizer.h: the loops of optimizers' steps, over n neighbouring elements of a parameter and what belongs to it. */
#pragma once

#include "core/base.h"

#define TP_STEP_TENSORS 5 /* at most: parameter, gradient, mean, square, largest square */

/* What is the same for all elements of a parameter. */
typedef struct {
    double scale;        /* gradients times this are kept, unless it is 1 */
    double sign;         /* -1: against the gradient */
    double shrink;       /* parameters times this, first */
    double decay;        /* of the parameter, to the gradient */
    double size;         /* of the step */
    double first;        /* Adam: 1 - beta1; SGD: 1 - dampening */
    double beta, second; /* Adam: beta2, 1 - beta2; SGD: beta is the momentum */
    double correction;   /* Adam: of the root */
    double eps;
    bool nesterov, starts; /* SGD */
} tp_step_numbers;

/* data: the tensors in the order of the primitive's lists; NULL for one that is not there. */
typedef void (*tp_step_fn)(void *const data[TP_STEP_TENSORS], int64_t n, const tp_step_numbers *c);

typedef enum { TP_STEP_SGD, TP_STEP_ADAM, TP_STEP_ADAGRAD, TP_STEP_RULES } tp_step_rule;

typedef struct {
    tp_step_fn f32[TP_STEP_RULES], f64[TP_STEP_RULES];
} tp_optimizer_kernels;
