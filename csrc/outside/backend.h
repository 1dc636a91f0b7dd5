/* backend.h: a device from outside, between the files of this folder. */
#pragma once

#include "outside/notes.h"
#include "outside/slots.h"

/* stream.c: what a backend may leave out. */
int tp_check_backend_groups(const tensorpy_backend *b); /* of each group all functions or none */
void tp_backend_optional(int i, tp_device_ops *ops);    /* those that it has */

/* Begins a device: its type is taken and its fallback registered, but no tensor is on it yet; then either
 * all that were begun appear, or all are taken back. */
int tp_begin_backend(tp_library *l, void (*fill)(tensorpy_backend *), const char *name);
int tp_publish_backends(void);
void tp_forget_backends(void);
/* opaque.c: the device shows no memory. */
int tp_make_opaque(tp_device_type type);
/* The key or alias key of a name, also of one of a device from outside: "mirror", "Autograd_mirror"; TP_KEY_Undefined
 * for others. */
tp_key tp_find_slot(const char *name);
