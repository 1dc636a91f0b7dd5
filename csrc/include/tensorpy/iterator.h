/* iterator.h: walking over several tensors at once, as tensorpy's own pointwise kernels do.
 *
 * A plan has the broadcast shape of its operands, its dimensions in the order in which memory is walked forward, merged
 * where that can be. A kernel for the CPU has tp_walk() run an inner loop over it, split over threads; a kernel for a
 * device of its own reads the plan and launches. Dimension 0 is the fastest, operands are numbered outputs first. A
 * loop uses the n elements that it is called for and none beside them: inputs may lie in a copy then.
 *
 *     static void add(char *const *data, const int64_t *strides, int64_t n, const void *params) {
 *         for (int64_t i = 0; i < n; i++)
 *             *(float *)(data[0] + i * strides[0]) =
 *                 *(const float *)(data[1] + i * strides[1]) + *(const float *)(data[2] + i * strides[2]);
 *     }
 *     TENSORPY_KERNEL(tp_tensor *, add_cpu, (tp_tensor *, a), (tp_tensor *, b)) {
 *         const tp_operand inputs[] = {{a, NULL}, {b, NULL}};
 *         tp_dtype dtype = tp_result_type(inputs, 2);
 *         tp_tensor *out = dtype == TP_NO_DTYPE ? NULL : tp_new_output(inputs, 2, dtype);
 *         tp_tensor *tensors[] = {out, a, b};
 *         tp_plan plan;
 *         if (!out) return NULL;
 *         if (tp_plan_of(tensors, 1, 3, &plan) < 0) return tp_release(out), NULL;
 *         for (int i = 0; i < 3; i++) plan.loop_dtype[i] = TP_FLOAT32;
 *         if (tp_walk(&plan, add, NULL, 0) < 0) return tp_release(out), NULL;
 *         return out;
 *     }
 *
 * Since 1.6. */
#ifndef TENSORPY_ITERATOR_H
#define TENSORPY_ITERATOR_H

#include "tensorpy/expressions.h"
#include "tensorpy/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many tensors a plan may be of. */
#define TENSORPY_MAX_OPERANDS 8
/* How many dimensions they may have. */
#define TENSORPY_PLAN_DIMS 64

/* A plan. The caller may change loop_dtype before it is walked. */
typedef struct tp_plan {
    size_t size;                                                /* of the struct; tp_plan_of fills it in */
    int32_t noperands, noutputs;                                /* tensors, and how many of them are written */
    int32_t ndim;                                               /* what is left of the dimensions: at least 1 */
    int64_t numel;                                              /* elements of the broadcast shape */
    int64_t shape[TENSORPY_PLAN_DIMS];                          /* fastest first */
    int64_t strides[TENSORPY_MAX_OPERANDS][TENSORPY_PLAN_DIMS]; /* in bytes; 0 where an operand is broadcast */
    char *data[TENSORPY_MAX_OPERANDS];                          /* of the first element, on the operands' device */
    tp_dtype dtype[TENSORPY_MAX_OPERANDS];                      /* as stored */
    tp_dtype loop_dtype[TENSORPY_MAX_OPERANDS]; /* as the loop wants it: converted in blocks where that is another */
} tp_plan;

#ifdef __cplusplus
}
#endif
#endif
