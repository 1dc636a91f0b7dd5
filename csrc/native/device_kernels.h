/* device_kernels.h: kernels that a device other than the CPU brings for the families whose host half is shared.
 *
 * The operators' checks, dtypes and outputs are in native/ once for all devices; where the CPU's loop would run, a
 * tensor of another device goes to that device's entry here. */
#pragma once

#include "core/generator.h"
#include "cpu/kernels.h"
#include "native/range.h"

/* A normalisation on contiguous tensors of one floating dtype. A row is `runs` runs of `length` neighbours, `next`
 * elements apart; row r begins at r * first. */
typedef enum {
    TP_NORM_FORWARD,  /* out, mean, rstd; frozen: out from running_mean and running_var */
    TP_NORM_BACKWARD, /* out; to_weight and to_bias of rows with one weight. frozen: rstd is the variance */
    TP_NORM_COLUMNS,  /* to_weight and to_bias, [parts, length], for weights of elements (each) */
    TP_NORM_CHANNELS  /* the same for rows that are channels in all images, each run with the statistics of image *
                         groups + channel / per_row */
} tp_norm_what;

typedef struct {
    int64_t rows, runs, length, first, next;
    int64_t groups, per_row, per_run; /* run k of row r has weight and bias r % groups * per_row + k * per_run, */
    bool each;                        /* or element i of a row has those of i */
    bool frozen;
    int64_t parts;
    double eps, momentum;                          /* of the running statistics, which the forward brings up to date */
    const tp_tensor *input, *grad, *weight, *bias; /* NULL: none */
    const tp_tensor *mean, *rstd, *running_mean, *running_var, *out, *to_weight, *to_bias; /* the same */
} tp_norm_job;

typedef struct {
    int (*norm)(tp_norm_what what, const tp_norm_job *j);
} tp_device_kernels;

void tp_set_device_kernels(tp_device_type type, const tp_device_kernels *kernels);
/* Those of a device that is not the CPU; NULL and the error set if it has none. */
const tp_device_kernels *tp_device_kernels_of(tp_device d);

TP_INLINE bool tp_elsewhere(const tp_tensor *t) { return tp_unlikely(t->device.type != TP_DEVICE_CPU); }
