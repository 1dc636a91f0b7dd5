/* trial.h: for which numbers a driver's vector functions give what its scalar ones give.
 *
 * A CPU device is only fast where the functions of OpenCL C are called with vectors, and drivers have these wrong now
 * and then: with AVX-512, PoCL 3.1 loses every lane of a double8 pow beside a lane that is 0, and everywhere the small
 * lanes of sin beside huge ones. So a vector form is tried on the device before it is first used: ordinary numbers
 * beside each special one, in every lane, and vectors of which only the first lanes are filled. What came out is kept
 * with the programs (disk.h). */
#pragma once

#include "core/dtype.h"
#include "opencl/runtime/runtime.h"

/* The vectors that may be given to a function, by the first argument's lanes. */
typedef enum {
    TP_CL_ANY_LANES,
    TP_CL_SMALL_LANES,  /* all of them less than 100 */
    TP_CL_NORMAL_LANES, /* none 0, subnormal, infinite or NaN */
    TP_CL_NO_LANES,     /* the scalar function serves */
} tp_cl_lanes;

/* A function of OpenCL C with one or two arguments, in vectors of `width` floats or doubles. */
tp_cl_lanes tp_cl_trusted_lanes(tp_cl_device *d, const char *function, tp_dtype dtype, int arguments, int width);
