/* library.h: loads libraries from outside, at run time. Their half of the interface is include/tensorpy/library.h.
 *
 * A load is a transaction: what a library declares and registers is there when its last part has run, or none of it is;
 * a device that it brings appears at the end. The code of a library is never unmapped. Unloading takes out its kernels
 * (a call that is inside ends as it began) and frees the names of its operators; a device stays. */
#pragma once

#include "outside/notes.h"

/* The table that a library is given. */
extern const tensorpy_api tp_api;
/* generated.c: the part of it that generated files call. */
extern const struct tensorpy_generated tp_generated_api;

/* Opens a shared object and runs its parts; one that is loaded already is left as it is. */
int tp_load_library(const char *path);
/* RuntimeError if none is loaded from there, or if it brought a device. */
int tp_unload_library(const char *path);
/* The operators that it declares, and how many; NULL if it is not loaded. Good until the library is unloaded. */
tp_op *const *tp_library_operators(const char *path, int64_t *n);

/* ---- between the files of this folder ---- */

int tp_library_define(tp_library *l, const char *schema);
int tp_library_implement(tp_library *l, const char *op, const tp_kernel *kernel);
int tp_library_implement_boxed(tp_library *l, const char *op, tp_boxed_fn boxed, void *context,
                               void (*free_context)(void *), const char *name);
/* "scale" of the part's namespace; NULL and the error set. */
tp_op *tp_library_find(const tp_library *l, const char *op);
/* Whether a C function of these codes (include/tensorpy/library.h) fits an operator: 0, or -1 with a TypeError that
 * says where not. */
int tp_check_codes(const tp_op *op, const char *codes, const char *where);

/* stream.c: the number of this thread's current stream of a device from outside; 0 for one that is not there. */
int64_t tp_backend_stream(const char *name, int device);

/* record.c: nodes of backward for kernels from outside. */
tp_record *tp_record_new(const char *name, tp_backward backward, tp_tensors inputs, const void *data, size_t nbytes);
int tp_record_save(tp_record *r, tp_tensor *t, int output); /* output -1: no result */
int tp_record_output(tp_record *r, tp_tensor *t);
void *tp_record_data(tp_record *r);
tp_tensor *tp_record_saved(tp_record *r, int i);
