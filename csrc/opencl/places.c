/* places.c: gather and the scatters; the kernel is places.cl. */
#include "opencl/kernels.h"

#include "opencl/element.h"
#include "opencl/launch.h"

#define MAX_DIMS 16

static int64_t stride_at(const tp_tensor *t, int64_t dim) { return t->ndim ? t->strides[dim] : 0; }

static void pass_geometry(tp_cl_call *c, int64_t dim, const tp_tensor *self, const tp_tensor *index,
                          const tp_tensor *other) {
    int64_t words[4 * MAX_DIMS + 5], n = index->ndim ? index->sizes[dim] : 1;
    size_t at = 0;
    int kept = index->ndim > 1 ? index->ndim - 1 : 1;
    const int64_t *const arrays[] = {index->sizes, self->strides, index->strides, other->strides};
    for (int k = 0; k < 4; k++) {
        if (index->ndim < 2) words[at++] = k == 0 ? 1 : 0;
        for (int i = index->ndim - 1; i >= 0 && index->ndim > 1; i--)
            if (i != dim) words[at++] = arrays[k][i];
    }
    TP_ASSERT(at == (size_t)(4 * kept));
    words[at++] = n;
    words[at++] = index->numel / n;
    words[at++] = stride_at(self, dim);
    words[at++] = stride_at(index, dim);
    words[at++] = stride_at(other, dim);
    (void)kept;
    tp_cl_pass(c, at * sizeof *words, words);
}

int tp_cl_places(tp_places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other) {
    static const char *const names[TP_NUM_PLACES] = {"GET", "SET", "ADD", "MUL", "MIN", "MAX"};
    tp_tensor *const tensors[] = {self, other};
    tp_cl_device *d = tp_cl_device_of(tensors, 2);
    if (!d || index->numel == 0) return d ? 0 : -1;
    if (index->ndim > MAX_DIMS)
        return tp_fail(TP_RuntimeError, "OpenCL: an index has at most %d dimensions, not %d", MAX_DIMS, index->ndim);
    tp_autotext s = {0};
    tp_dtype dtype = (tp_dtype)self->dtype, compute = tp_compute_dtype(dtype);
    tp_cl_define(&s, "X", dtype, compute);
    tp_text_add(&s, "#define OP_%s\n#define NDIM %d\n#define T %s\n", names[op], index->ndim > 1 ? index->ndim - 1 : 1,
                tp_cl_type(compute));
    if (compute == TP_BOOL) tp_text_add(&s, "#define T_BOOL\n");
    if (tp_is_complex_dtype(compute)) tp_text_add(&s, "#define MUL(x, y) tp_mul_%s(x, y)\n", tp_cl_suffix(compute));
    else tp_text_add(&s, "#define MUL(x, y) ((x) * (y))\n");
    tp_cl_call c = tp_cl_begin(d, tp_cl_file_kernel(d, "places.cl", "places", s.text));
    pass_geometry(&c, dim, self, index, other);
    tp_cl_pass_tensor(&c, self);
    tp_cl_pass_tensor(&c, index);
    tp_cl_pass_tensor(&c, other);
    int64_t n = index->ndim ? index->sizes[dim] : 1;
    return tp_cl_run(&c, op == TP_PLACES_GET ? index->numel : index->numel / n, 64);
}
