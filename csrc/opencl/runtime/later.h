/* later.h: kernels that are not waited for: a thread of their own builds them, one after the other, while the program
 * does without.
 *
 * Invariant: the thread is there only while something is to be built, and holds no lock of the host. */
#pragma once

#include "opencl/runtime/program.h"

typedef enum { TP_CL_NOT_ASKED, TP_CL_UNDER_WAY, TP_CL_BUILT, TP_CL_NOT_TO_BE_HAD } tp_cl_later_state;

typedef struct tp_cl_later {
    _Atomic int state; /* a tp_cl_later_state */
    struct tp_cl_later *next;
    tp_cl_built *(*build)(struct tp_cl_later *l); /* on whichever thread; NULL and the error set, which nobody sees */
    tp_cl_built *kernel;                          /* once it is built */
} tp_cl_later;

/* Asks for a kernel, which stays asked for; `l` lives for good. With the host lock. */
void tp_cl_build_later(tp_cl_later *l);
/* Whether tp_cl_build_later waits. The first value is TENSORPY_OPENCL_FUSED_KERNELS's: "background" (the default),
 * "wait". */
bool tp_cl_builds_wait(void);
void tp_cl_set_builds_wait(bool wait);
/* Waits until nothing is being built. `ends`: what has not been begun is left. */
void tp_cl_await_builds(bool ends);
