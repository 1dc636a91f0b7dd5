/* parts.h: what the files of csrc/embed/ share. */
#pragma once

#include "core/device.h"
#include "tensorpy/plan.h"

/* Loads what plans are run by, once. -1 and the error set on failure. */
int tp_embed_load(void);
/* A plan for a device that is there; NULL and the error set. */
tp_plan *tp_embed_read(const void *bytes, size_t size, tp_device device);
tp_plan *tp_embed_open(const char *path, tp_device device);

/* products.c: has cpu/blas.h use plain loops where it finds no library: right, and as fast as these are. */
void tp_embed_products(void);
