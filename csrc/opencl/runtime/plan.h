/* plan.h: launch plans: the kernel of a call that was made before, found without making any text.
 *
 * The kernels of a family are written from a variant: a small struct of the family's own, which holds all that their
 * source depends on (dtypes, layout class, widths), and nothing else. The table has a fixed size, and a new plan takes
 * the place of the one among four that was used longest ago; a plan is compared in whole, so that costs time, never a
 * wrong kernel.
 *
 * Invariant: a variant is at most TP_CL_VARIANT bytes and has no padding, which would make every call look new. */
#pragma once

#include "opencl/runtime/program.h"

#define TP_CL_VARIANT 64
/* The size of a variant; one that is too large does not compile. */
#define TP_CL_SIZE(variant) (sizeof(variant) / (sizeof(variant) <= TP_CL_VARIANT))

typedef struct {
    const char *file;                                                       /* of csrc/opencl, */
    void (*define)(tp_text *s, const tp_cl_device *d, const void *variant); /* and what stands in front of it; */
    tp_cl_built *(*make)(tp_cl_device *d, const char *kernel, const void *variant); /* or, instead, both in one */
    size_t size;                                                                    /* TP_CL_SIZE of a variant */
} tp_cl_family;

/* A kernel of the family, borrowed, built if need be; `kernel` is a literal. NULL: it does not compile; the error is
 * set. */
tp_cl_built *tp_cl_plan(tp_cl_device *d, const tp_cl_family *family, const char *kernel, const void *variant);

typedef struct {
    int64_t hits, misses;
} tp_cl_plan_stats;
tp_cl_plan_stats tp_cl_plans(void);
