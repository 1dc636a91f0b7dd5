/* custom.h: kernels whose source comes from outside. */
#pragma once

#include "core/list.h"
#include "dispatch/value.h"

/* Builds the kernel `name` of a source (kept in memory and on disk as tensorpy's own are) and enqueues it on the device
 * of `on`, over `items` work-items in one to three dimensions, in groups of `group` (no list: the device's choice in
 * one dimension, one item each in more). The arguments: a tensor is a buffer and, after it, the offset of its first
 * element as a long; an int is a long, a float a float, a bool an int. -1 and the error set; the compiler's log is in
 * it. */
int tp_cl_run_source(const char *name, const char *source, tp_tensor *on, tp_ints items, tp_ints group,
                     const tp_value *args, int nargs);
