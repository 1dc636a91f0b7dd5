/* reduce.h: a reduction as far as its kernel depends on it, for kernels whose elements another text makes (fused.c). */
#pragma once

#include "iter/dims.h"
#include "opencl/runtime/launch.h"
#include "prim/reduce.h"

/* What is folded. */
typedef struct {
    const char *name;               /* OP_<name> of reduce.cl, or NULL: */
    const tp_reduction_op *program; /* what the YAML gives as expressions */
    tp_dtype in, made;              /* what elements are converted to, and what the result is before it is stored */
    double correction;              /* of a variance, */
    bool root;                      /* and whether it is to be the deviation */
} tp_cl_fold;

/* How the work is cut (reduce.c). */
typedef struct {
    tp_dims kept, reduced;
    int64_t outputs, count, parts, part;
    bool group;
    int lanes, columns;
} tp_cl_cut;

/* All that a kernel's text depends on. */
typedef struct {
    const char *name;
    const tp_reduction_op *program;
    uint16_t lanes, columns, group;               /* group 0: no work-groups */
    uint8_t self, out, in, made, nkept, nreduced; /* dtypes stored, dtypes computed in, dimensions */
    bool joins; /* the kernel that joins parts, in a program of its own: few calls have any */
    bool takes; /* the kernel that takes elements by their places */
    uint8_t rest[2];
} tp_cl_fold_variant;

/* A fold as the primitives reduce.* have it: of x into out. -1 and the error set where there is none. */
int tp_cl_fold_of(tp_cl_fold *o, tp_fold fold, int64_t program, tp_dtype compute, const tp_tensor *x,
                  const tp_tensor *out);
/* -1 and the error set: there are too many dimensions. */
int tp_cl_cut_of(tp_cl_cut *c, const tp_cl_device *d, const tp_tensor *x, tp_ints dim, const tp_tensor *out);
tp_cl_fold_variant tp_cl_fold_variant_of(const tp_cl_fold *o, const tp_cl_cut *c, const tp_tensor *x,
                                         const tp_tensor *out);
/* The kernel `reduce` of a variant, whose elements are what `made` makes: with MADE, PARAMETERS, ARGUMENTS, and the
 * functions that reduce.cl calls then. */
void tp_cl_add_fold(tp_text *s, const tp_cl_fold_variant *v, const char *made);
/* What tells the variant from others. */
void tp_cl_add_fold_key(tp_text *s, const tp_cl_fold_variant *v);
/* What the arguments take. */
int64_t tp_cl_fold_bytes(const tp_cl_cut *c);

/* A kernel of which the elements are made; `pass` passes what they are made of, -1 and the error set on failure. */
typedef struct {
    tp_cl_built *kernel;
    int (*pass)(tp_cl_call *call, const void *context);
    const void *context;
} tp_cl_made;
/* Reduces x, or where `made` is not NULL, what that makes in its place. */
int tp_cl_fold_run(tp_cl_device *d, const tp_cl_fold *o, const tp_cl_cut *c, const tp_tensor *x, tp_tensor *out,
                   const tp_cl_made *made);
