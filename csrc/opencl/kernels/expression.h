/* expression.h: a pointwise operator's program as a function of OpenCL C, for kernels that call it for each element. */
#pragma once

#include "opencl/runtime/launch.h"
#include "opencl/runtime/trial.h"
#include "prim/pointwise.h"

typedef struct {
    const tp_pointwise *op;
    const tp_program *program; /* NULL: a copy, which has no function */
    tp_dtype dtype;            /* that it computes in */
    const char *built_in;      /* the function of OpenCL C that the program is, or NULL */
    bool quick;                /* it has a quick form */
    tp_program_use uses[TP_PROGRAM_PARAMS];
} tp_cl_expression;

tp_cl_expression tp_cl_expression_of(const tp_pointwise *op, tp_dtype d);
/* The function, by a name. `quick`: in its quick form. */
void tp_cl_add_function(tp_text *s, const tp_cl_expression *e, const char *name, bool quick);

/* What the operator's parameters are to a kernel: parameters p<next> and on, the same passed on to the function, and
 * the arguments of a launch. The first two give the number of the next one. */
int tp_cl_add_parameters(tp_text *s, const tp_cl_expression *e, int next);
int tp_cl_pass_on(tp_text *s, const tp_cl_expression *e, int next);
void tp_cl_pass_params(tp_cl_call *c, const tp_cl_expression *e, const tp_value *params);

/* A CPU device computes what a built-in function is of in vectors of so many numbers, */
TP_INLINE int tp_cl_width(tp_dtype d) { return d == TP_FLOAT64 ? 8 : 16; }
/* of which it is trusted with these. */
tp_cl_lanes tp_cl_expression_lanes(tp_cl_device *d, const tp_cl_expression *e, tp_dtype result);
/* Whether all of v1[k], ... may be given to it: a condition; NULL: they may. */
const char *tp_cl_trust(tp_cl_lanes lanes);
