/* elements.c: copy, fill, map. */
#include "interpret.h"

#include <string.h>

/* copy(Tensor src, *, Tensor(a!) out) -> () */
static void copy(const argument *a) {
    const view *out = a[1].tensors, src = broadcast(a[0].tensors, out);
    for (int64_t i = 0; i < out->numel; i++) {
        if (src.dtype == out->dtype) memmove(at(out, i), at(&src, i), (size_t)out->item);
        else put(out, i, converted(get(&src, i), src.dtype, out->dtype));
    }
}

/* fill(Scalar value, *, Tensor(a!) out) -> () */
static void fill(const argument *a) {
    const view *out = a[1].tensors;
    number value = number_of(a[0].scalars[0], out->dtype);
    for (int64_t i = 0; i < out->numel; i++) put(out, i, value);
}

/* map(int program, Tensor?[] inputs, Scalar[] numbers, ScalarType compute, *, Tensor(a!) out) -> () */
static void map(const argument *a) {
    const view *out = a[4].tensors;
    tp_map_program m;
    tp_dtype wanted[TP_PROGRAM_INPUTS];
    view inputs[TP_PROGRAM_INPUTS];
    element e = {.compute = compute_of((tp_dtype)a[3].i), .map = &m, .params = a[2].scalars};
    if (tp_map_program_at(a[0].i, (tp_dtype)a[3].i, &m) < 0) return tp_error_clear();
    for (int k = 0; k < m.ninputs; k++) {
        wanted[k] = compute_of(m.inputs[k]);
        if (a[1].tensors[k].ndim < 0) e.inputs[k] = number_of(*e.params++, wanted[k]); /* a number in its place */
        else inputs[k] = broadcast(&a[1].tensors[k], out);
    }
    tp_dtype made = tp_program_result(m.program, e.compute);
    for (int64_t i = 0; i < out->numel; i++) {
        for (int k = 0; k < m.ninputs; k++)
            if (a[1].tensors[k].ndim >= 0) e.inputs[k] = converted(get(&inputs[k], i), inputs[k].dtype, wanted[k]);
        put(out, i, converted(interpret(m.program, &e), made, out->dtype));
    }
}

PRIMITIVES({"copy", copy}, {"fill", fill}, {"map", map})
