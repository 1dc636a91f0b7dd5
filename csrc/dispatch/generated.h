/* generated.h: what the generated files hand to the library, and how it is registered while the library loads. */
#pragma once

#include "dispatch/op.h"

/* Kernels for one key. */
typedef struct {
    tp_key key;
    const tp_kernel_entry *entries;
    int64_t n;
} tp_kernel_list;

/* The operators of one family, from ops/<family>.c; infos[i] is what ops[i] is. */
typedef struct {
    tp_op *ops;
    const tp_op_info *infos;
    int64_t nops;
    const tp_kernel_list *kernels;
    int64_t nkernels;
} tp_family;
extern const tp_family *const tp_families[]; /* NULL-terminated */

/* Declares every operator and primitive and registers the kernels of the tree; tp_compute_all_tables comes after. */
int tp_register_generated(void);
int tp_register_primitives(void); /* generated */
