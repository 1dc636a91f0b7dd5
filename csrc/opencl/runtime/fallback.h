/* fallback.h: operators that have no OpenCL kernel, computed on the CPU with copies there and back.
 *
 * tensorpy.opencl.fallback says whether that is an error, warns once per operator, or is done in silence; it is counted
 * in any case. A result of a factory goes to the device that it was told. */
#pragma once

#include "dispatch/op.h"

typedef enum { TP_CL_FALLBACK_ERROR, TP_CL_FALLBACK_WARN, TP_CL_FALLBACK_ALLOW } tp_cl_fallback_mode;

void tp_cl_set_fallback(tp_cl_fallback_mode mode);
tp_cl_fallback_mode tp_cl_fallback(void);

int tp_cl_register_fallback(void);
/* The fallback in place of an operator's kernel, until tp_deregister takes the handle back; -1 and the error set. */
int64_t tp_cl_fall_back_for(tp_op *op);
