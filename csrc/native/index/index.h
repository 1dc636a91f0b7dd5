/* index.h: what an index by tensors means. */
#pragma once

#include "core/tensor.h"

/* Indexed dimensions become one row of n places, given by the broadcast indices. The result has the dimensions of self
 * before the first index, those of the indices, and the others; where indices are not neighbours, theirs come first. */
typedef struct {
    int nindices;
    tp_tensor *indices[TP_MAX_DIMS]; /* int64, as given or expanded from masks; owned */
    int dims[TP_MAX_DIMS];           /* the dimension of self that each index speaks of */
    int nrest, before;               /* dimensions without an index, and how many of them lead */
    int rest[TP_MAX_DIMS];
    int nplaces; /* the indices' broadcast shape */
    int64_t places[TP_MAX_DIMS];
    int ndim; /* of the result */
    int64_t sizes[TP_MAX_DIMS];
} tp_index_plan;

/* Checks and resolves; masks need data, so a plan with masks fails on Meta. 0, or -1 with an IndexError. */
int tp_index_plan_make(tp_index_plan *p, tp_tensor *self, tp_tensors indices);
/* The strides (elements) of values broadcast to the result; -1 and the error set where they do not fit. */
int tp_index_fit_values(const tp_index_plan *p, const tp_tensor *values, int64_t *strides);
void tp_index_plan_free(tp_index_plan *p);
#define tp_auto_index_plan TP_CLEANUP(tp_index_plan_free) tp_index_plan
