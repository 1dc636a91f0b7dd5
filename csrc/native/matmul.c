/* matmul.c: matrix products: shapes and checks, and matmul on top of mm. */
#include "NativeFunctions.h"
#include "cpu/gemm.h"

static int shapes_differ(const char *op, const tp_tensor *a, const tp_tensor *b) {
    return tp_fail(TP_RuntimeError, "%s: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", op, (long long)a->sizes[0],
                   (long long)a->sizes[1], (long long)b->sizes[0], (long long)b->sizes[1]);
}

static int check_same_dtype(const char *op, const tp_tensor *a, const tp_tensor *b) {
    if (a->dtype == b->dtype) return 0;
    return tp_fail(TP_RuntimeError, "%s: expected m1 and m2 to have the same dtype, but got: %s != %s", op, tp_dtype_names[a->dtype],
                   tp_dtype_names[b->dtype]);
}

int mm_meta(tp_meta *m, tp_tensor *self, tp_tensor *mat2) {
    if (self->ndim != 2) return tp_fail(TP_RuntimeError, "mm: self must be a matrix, got %dD", self->ndim);
    if (mat2->ndim != 2) return tp_fail(TP_RuntimeError, "mm: mat2 must be a matrix, got %dD", mat2->ndim);
    if (self->sizes[1] != mat2->sizes[0]) return shapes_differ("mm", self, mat2);
    if (check_same_dtype("mm", self, mat2) < 0) return -1;
    return tp_meta_output(m, 0, TP_INTS(self->sizes[0], mat2->sizes[1]), TP_NO_INTS, (tp_dtype)self->dtype, self->device);
}

int mm_cpu(tp_tensor *self, tp_tensor *mat2, tp_tensor *out) { return tp_gemm(self, mat2, out, TP_SCALAR_I(1), TP_SCALAR_I(0)); }

tp_tensor *matmul_composite(tp_tensor *self, tp_tensor *other) {
    if (self->ndim == 2 && other->ndim == 2) return tp_mm(self, other);
    return tp_fail_null(TP_NotImplementedError, "matmul: %dD @ %dD", self->ndim, other->ndim);
}
