/* device_kernels.h: kernels that a device other than the CPU brings for the families whose host half is shared.
 *
 * The operators' checks, dtypes and outputs are in native/ once for all devices; where the CPU's loop would run, a
 * tensor of another device goes to that device's entry here. */
#pragma once

#include "cpu/gather.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "native/range.h"

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
    int (*places)(tp_places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other);
    /* fn: the CPU's entry for the scan; in, out and at (NULL: none) are contiguous, of the dtype that is computed in.
     */
    int (*scan)(tp_scan_fn fn, const tp_tensor *in, int64_t dim, tp_tensor *out, tp_tensor *at);
} tp_device_kernels;

void tp_set_device_kernels(tp_device_type type, const tp_device_kernels *kernels);
/* Those of a device that is not the CPU; NULL and the error set if it has none. */
const tp_device_kernels *tp_device_kernels_of(tp_device d);

TP_INLINE bool tp_elsewhere(const tp_tensor *t) { return tp_unlikely(t->device.type != TP_DEVICE_CPU); }

/* The CPU's function, or the device's. */
int tp_run_gemm(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta);
int tp_run_places(tp_places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other);
