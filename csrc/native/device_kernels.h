/* device_kernels.h: kernels that a device other than the CPU brings for the families whose host half is shared.
 *
 * The operators' checks, dtypes and outputs are in native/ once for all devices; where the CPU's loop would run, a
 * tensor of another device goes to that device's entry here. */
#pragma once

#include "cpu/gather.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "core/generator.h"
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
    /* fn: the CPU's entry for the scan; in, out and at (NULL: none) are contiguous, of the dtype that is computed in.
     */
    int (*scan)(tp_scan_fn fn, const tp_tensor *in, int64_t dim, tp_tensor *out, tp_tensor *at);
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
} tp_device_kernels;

void tp_set_device_kernels(tp_device_type type, const tp_device_kernels *kernels);
/* Those of a device that is not the CPU; NULL and the error set if it has none. */
const tp_device_kernels *tp_device_kernels_of(tp_device d);

TP_INLINE bool tp_elsewhere(const tp_tensor *t) { return tp_unlikely(t->device.type != TP_DEVICE_CPU); }

/* The CPU's function, or the device's. */
int tp_run_gemm(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta);
int tp_run_places(tp_places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other,
                  const tp_index_check *check);
