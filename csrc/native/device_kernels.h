/* device_kernels.h: kernels that a device other than the CPU brings for the families whose host half is shared.
 *
 * The operators' checks, dtypes and outputs are in native/ once for all devices; where the CPU's loop would run, a
 * tensor of another device goes to that device's entry here. */
#pragma once

#include "cpu/convolution.h"
#include "core/generator.h"
#include "cpu/gather.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "cpu/pool.h"
#include "native/range.h"

/* What an index is checked against: `size` places of dimension `dim`; `wrap`: negative ones count from the end. The CPU
 * checks before anything runs; another device's kernel checks what it reads, leaves out what is out of range, and
 * raises cls when the host looks (opencl/fault.h). */
typedef struct {
    tp_error_class cls;
    const char *op;
    int64_t dim, size;
    bool wrap;
} tp_index_check;

/* What is made of each line of elements: the places of the k smallest in order (of all of them, k is the length: a
 * stable sort), the place of the k-th (from 0), of the lower median, of the mode. The order is that of native/order.h.
 */
typedef enum { TP_ORDER_FIRST, TP_ORDER_PLACE, TP_ORDER_MEDIAN, TP_ORDER_MODE } tp_order_kind;
typedef struct {
    tp_order_kind kind;
    int64_t k;
    bool descending, skip_nan; /* MEDIAN: of the numbers; MODE: no NaN equals another */
} tp_order_spec;

/* Items along dimension 0 and what is found of them: for each group of equal ones its first item and its size, and for
 * each item its group; new. */
typedef struct {
    tp_tensor *firsts, *counts, *inverse;
} tp_distinct;
/* Windows of images of `planes` planes of `in` pixels (native/im2col.c); only int64_t, since kernels take it whole. */
typedef struct {
    int64_t planes, in[2], out[2], kernel[2], dilation[2], padding[2], stride[2];
} tp_fold;

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
    int (*range)(tp_tensor *t, const tp_range *r); /* t is contiguous */
    /* Self and out are contiguous and alike. */
    int (*triangle)(const tp_tensor *self, tp_tensor *out, int64_t diagonal, bool lower);
    /* n elements of dtype from the start of a contiguous tensor; `made` is what the kind of draw gives. */
    int (*draw)(tp_tensor *into, tp_draw_kind kind, const tp_draw *d, tp_dtype made, tp_dtype dtype, int64_t n);
    /* tp_gemm for two dimensions, tp_gemm_batched for three. */
    int (*gemm)(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta);
    /* in: self, or the gradient with `output` the forward's result; dim is wrapped. */
    int (*softmax)(tp_tensor *in, tp_tensor *output, int64_t dim, tp_tensor *out, bool log);
    /* check NULL: the index is the library's own, and in range. */
    int (*places)(tp_places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other,
                  const tp_index_check *check);
    /* lines: contiguous, n elements each, neither complex nor a 16-bit float; out: int64, contiguous. */
    int (*order)(const tp_order_spec *spec, const tp_tensor *lines, int64_t n, tp_tensor *out);
    /* Where values go in sequences of n elements; `each` values belong to one sequence (0: there is only one). All are
     * contiguous, sequence and values of one dtype; out: int64. */
    int (*search)(const tp_tensor *sequence, int64_t n, const tp_tensor *values, int64_t each, bool right,
                  tp_tensor *out);
    /* Masks are bool and contiguous like what they speak of. The elements behind true, new; the same back into place
     * (RuntimeError where `from` has too few); and the coordinates of true, one row for each, columns behind each
     * other. */
    tp_tensor *(*pack)(const tp_tensor *from, const tp_tensor *mask);
    int (*unpack)(tp_tensor *into, const tp_tensor *from, const tp_tensor *mask);
    tp_tensor *(*nonzero)(const tp_tensor *mask);
    /* items: contiguous, neither complex nor a 16-bit float. `sorted`: groups are in the items' order, else of
     * neighbours. */
    int (*distinct)(const tp_tensor *items, bool sorted, tp_distinct *out);
    /* Rows and columns of the elements on and below (above) a diagonal: int64, 2 by n. */
    int (*triangle_indices)(tp_tensor *out, int64_t rows, int64_t columns, int64_t diagonal, bool lower);
    /* Samples of each row of weights (any real dtype, two dimensions, contiguous), which are checked. */
    int (*multinomial)(const tp_tensor *weights, bool replacement, tp_philox_state state, tp_tensor *out);
    /* The product of tp_cpu.convolution with its operands in their order, contiguous and of the plan's dtype. */
    int (*convolution)(tp_conv_product which, const tp_conv_plan *p, const tp_tensor *a, const tp_tensor *b,
                       const tp_tensor *bias, tp_tensor *made);
    /* Over contiguous planes of float32, float64 or int64; index: the places of maxima, or NULL. by_two: windows of
     * 2x2 side by side. */
    int (*pool)(const tp_pool_plan *p, tp_pool_what what, tp_tensor *in, tp_tensor *out, tp_tensor *index, bool by_two);
    /* columns are contiguous and have elements, as images are. */
    int (*col2im)(const tp_fold *f, const tp_tensor *columns, tp_tensor *images);
    int (*norm)(tp_norm_what what, const tp_norm_job *j);
} tp_device_kernels;

void tp_set_device_kernels(tp_device_type type, const tp_device_kernels *kernels);
/* Those of a device that is not the CPU; NULL and the error set if it has none. */
const tp_device_kernels *tp_device_kernels_of(tp_device d);

TP_INLINE bool tp_elsewhere(const tp_tensor *t) { return tp_unlikely(t->device.type != TP_DEVICE_CPU); }

/* The CPU's function, or the device's. */
int tp_run_gemm(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta);
int tp_run_places(tp_places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other,
                  const tp_index_check *check);
