/* sound.h: what a driver has to get right before a device is used at all.
 *
 * Mesa's llvmpipe (22.3) ends a kernel's loops after 65,535 turns in all, and says nothing: results over many elements
 * are wrong there. A CPU device that computes as a GPU does (runtime.h) is therefore tried with one long loop before
 * its first use; one that does not end it is refused, unless TENSORPY_OPENCL_DEVICE names it. What came out is kept
 * with the programs (disk.h). */
#pragma once

#include "opencl/runtime/runtime.h"

/* For a device that has its context and no queue yet, under the runtime's lock; -1 and the error set: it is refused. */
int tp_cl_check_sound(tp_cl_device *d);
