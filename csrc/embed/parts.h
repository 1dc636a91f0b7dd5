/* parts.h: what the files of csrc/embed/ share. */
#pragma once

#include "core/device.h"
#include "tensorpy/plan.h"

/* opencl.c: the device of a name, if it is there; else -1 and the error set. */
int tp_embed_find(const char *name, tp_device *device);
/* products.c: has cpu/blas.h use plain loops where it finds no library: right, and as fast as these are. */
void tp_embed_products(void);
