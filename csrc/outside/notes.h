/* notes.h: what a library has declared and registered, so that it can be taken out. */
#pragma once

#include "dispatch/op.h"
#include "tensorpy/api.h"

/* A library while its parts run, and afterwards what unloading takes out. */
struct tensorpy_library {
    struct tensorpy_library *next;
    char *path;
    const tensorpy_part *part; /* the one that runs */
    int64_t nhandles, handle_capacity, *handles;
    int64_t nops, op_capacity;
    tp_op **ops;
    int nbackends; /* that it brings */
};
/* Room for one more handle comes before the registration, so that nothing is registered that could not be undone. */
int tp_library_reserve(tp_library *l);
int tp_library_note(tp_library *l, int64_t handle);
int tp_library_keep(tp_library *l, tp_op *op);
