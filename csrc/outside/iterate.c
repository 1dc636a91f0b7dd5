/* iterate.c: see iterate.h. */
#include "outside/iterate.h"

#include "core/error.h"
#include "core/parallel.h"
#include "cpu/run.h"

#include <string.h>

_Static_assert(TENSORPY_MAX_OPERANDS == TP_MAX_OPERANDS && TENSORPY_PLAN_DIMS == TP_MAX_DIMS, "a plan holds a tp_iter");

static const tp_tensor *first_tensor(const tp_operand *inputs, int n) {
    for (int i = 0; i < n; i++)
        if (inputs[i].tensor) return inputs[i].tensor;
    return NULL;
}

tp_tensor *tp_outside_new_output(const tp_operand *inputs, int n, tp_dtype dtype) {
    int64_t shape[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    const tp_tensor *first = first_tensor(inputs, n);
    if (!first) return tp_fail_null(TP_ValueError, "tp_new_output(): none of %d operands is a tensor", n);
    if (dtype < 0 || dtype >= TP_NUM_DTYPES) return tp_fail_null(TP_ValueError, "tp_new_output(): no dtype is given");
    int ndim = tp_iter_broadcast(inputs, n, shape);
    if (ndim < 0) return NULL;
    tp_ints sizes = {shape, ndim};
    if (tp_iter_output_strides(inputs, n, sizes, strides)) return tp_new_empty(sizes, dtype, first->device);
    return tp_new_empty_strided(sizes, (tp_ints){strides, ndim}, dtype, first->device);
}

/* The broadcast shape of all; outputs have it already, and all tensors are there, on one device. */
static int check_operands(tp_tensor *const *tensors, int noutputs, int n, int64_t *shape) {
    tp_operand operands[TP_MAX_OPERANDS];
    for (int i = 0; i < n; i++) {
        if (!tensors[i]) return tp_fail(TP_ValueError, "tp_plan_of(): operand %d is NULL", i);
        if (!tp_device_equal(tensors[i]->device, tensors[0]->device))
            return tp_fail(TP_RuntimeError, "tp_plan_of(): operand %d is on another device", i);
        operands[i] = (tp_operand){tensors[i], NULL};
    }
    int ndim = tp_iter_broadcast(operands, n, shape);
    for (int i = 0; i < noutputs && ndim >= 0; i++)
        if (tensors[i]->ndim != ndim || memcmp(tensors[i]->sizes, shape, sizeof *shape * (size_t)ndim) != 0)
            return tp_fail(TP_RuntimeError, "tp_plan_of(): output %d has not the broadcast shape of the operands", i);
    return ndim;
}

int tp_outside_plan(tp_tensor *const *tensors, int noutputs, int n, tp_plan *out) {
    int64_t shape[TP_MAX_DIMS];
    if (n < 1 || n > TP_MAX_OPERANDS || noutputs < 0 || noutputs > n)
        return tp_fail(TP_ValueError, "tp_plan_of(): %d operands with %d outputs; there may be 1 to %d", n, noutputs,
                       TP_MAX_OPERANDS);
    int ndim = check_operands(tensors, noutputs, n, shape);
    if (ndim < 0 || tp_iter_check_overlap(tensors, noutputs, n) < 0) return -1;
    for (int i = 0; i < n; i++) /* addresses are handed out */
        if (tp_settle(tensors[i]->storage) < 0) return -1;
    tp_iter it;
    if (tp_iter_plan(&it, tensors, noutputs, n, (tp_ints){shape, ndim}) < 0) return -1;
    if (it.ndim == 0) { /* an element */
        it.ndim = 1;
        it.shape[0] = 1;
        for (int i = 0; i < n; i++) it.strides[i][0] = 0;
    }
    out->noperands = n;
    out->noutputs = noutputs;
    out->ndim = it.ndim;
    out->numel = it.numel;
    memcpy(out->shape, it.shape, sizeof *it.shape * (size_t)it.ndim);
    for (int i = 0; i < n; i++) {
        memcpy(out->strides[i], it.strides[i], sizeof *it.strides[i] * (size_t)it.ndim);
        out->data[i] = it.data[i];
        out->dtype[i] = out->loop_dtype[i] = it.dtype[i];
    }
    return 0;
}

int tp_outside_walk(const tp_plan *plan, tp_loop_fn loop, const void *params, int64_t grain) {
    tp_iter it;
    it.noperands = plan->noperands;
    it.noutputs = plan->noutputs;
    it.ndim = plan->ndim;
    it.numel = plan->numel;
    memcpy(it.shape, plan->shape, sizeof *it.shape * (size_t)it.ndim);
    for (int i = 0; i < it.noperands; i++) {
        tp_dtype wanted = plan->loop_dtype[i];
        if (wanted < 0 || wanted >= TP_NUM_DTYPES || !tp_cast_loop(wanted, plan->dtype[i]))
            return tp_fail(TP_ValueError, "tp_walk(): operand %d has no dtype that a loop can take", i);
        if (!plan->data[i] && plan->numel)
            return tp_fail(TP_RuntimeError, "tp_walk(): operand %d has no memory that the host can read", i);
        memcpy(it.strides[i], plan->strides[i], sizeof *it.strides[i] * (size_t)it.ndim);
        it.data[i] = plan->data[i];
        it.dtype[i] = plan->dtype[i];
        it.loop_dtype[i] = wanted;
    }
    return tp_iter_run(&it, loop, params, grain > 0 ? grain : TP_GRAIN);
}
