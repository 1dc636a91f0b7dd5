/* kernels.c: four primitives on the device: copy, fill, product, softmax. For what one of them does not take (a
 * conversion, a 16-bit float) it asks the host, as the rest of the primitives do that are not here. */
#include "driver.h"

#include <string.h>

#define DIMS 8

/* One source for all types: T is the type of an element. */
static const char source[] =
    "#ifdef DOUBLE\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "#endif\n"
    "typedef struct { long n, ndim, sizes[8], from[8], to[8]; } geometry;\n"
    "kernel void copy(global const T *from, global T *to, geometry g) {\n"
    "    long left = get_global_id(0), a = 0, b = 0;\n"
    "    if (left >= g.n) return;\n"
    "    for (long d = g.ndim; d-- > 0;) {\n"
    "        long i = left % g.sizes[d];\n"
    "        left /= g.sizes[d];\n"
    "        a += i * g.from[d];\n"
    "        b += i * g.to[d];\n"
    "    }\n"
    "    to[b] = from[a];\n"
    "}\n"
    "typedef struct { long rows, columns, inner, a[3], b[3], out[3]; } product_of;\n"
    "kernel void product(global const T *a, global const T *b, global T *out, product_of p, T alpha, T beta) {\n"
    "    long column = get_global_id(0), row = get_global_id(1), batch = get_global_id(2);\n"
    "    T sum = 0;\n"
    "    if (row >= p.rows || column >= p.columns) return;\n"
    "    a += batch * p.a[0] + row * p.a[1];\n"
    "    b += batch * p.b[0] + column * p.b[2];\n"
    "    for (long i = 0; i < p.inner; i++) sum += a[i * p.a[2]] * b[i * p.b[1]];\n"
    "    out += batch * p.out[0] + row * p.out[1] + column * p.out[2];\n"
    "    *out = beta == 0 ? alpha * sum : alpha * sum + beta * *out;\n"
    "}\n"
    "#ifdef FLOATING\n"
    "kernel void softmax(global const T *x, global T *out, long rows, long n, long inner) {\n"
    "    long row = get_global_id(0), at = row / inner * n * inner + row % inner;\n"
    "    if (row >= rows) return;\n"
    "    T largest = x[at], sum = 0;\n"
    "    for (long i = 1; i < n; i++) largest = fmax(largest, x[at + i * inner]);\n"
    "    for (long i = 0; i < n; i++) sum += exp(x[at + i * inner] - largest);\n"
    "    for (long i = 0; i < n; i++) out[at + i * inner] = exp(x[at + i * inner] - largest) / sum;\n"
    "}\n"
    "#endif\n";

/* ---- a launch ---- */

/* The argument of a kernel: a pointer of the device's (size 0), or a value. */
typedef struct {
    size_t size;
    const void *value;
} argument;

/* A grid of at least so many items in each dimension, in groups: the kernels leave out what is beyond. */
static int launch(int device, const char *name, const char *type, const size_t *items, int nargs,
                  const argument *args) {
    const size_t group[] = {items[1] > 1 ? 8 : 64, items[1] > 1 ? 8 : 1, 1};
    size_t grid[3];
    gpu *g = gpu_at(device);
    for (int d = 0; d < 3; d++) grid[d] = (items[d] + group[d] - 1) / group[d] * group[d];
    pthread_mutex_lock(&g->lock);
    cl_kernel kernel = gpu_kernel(g, source, name, type);
    int status = kernel ? 0 : -1;
    for (int i = 0; kernel && status == 0 && i < nargs; i++)
        status = args[i].size ? cl.clSetKernelArg(kernel, (uint32_t)i, args[i].size, args[i].value)
                              : cl.clSetKernelArgSVMPointer(kernel, (uint32_t)i, args[i].value);
    if (kernel && status == 0)
        status = cl.clEnqueueNDRangeKernel(g->queue, kernel, 3, NULL, grid, group, 0, NULL, NULL);
    if (kernel && status == 0) status = cl.clFlush(g->queue);
    pthread_mutex_unlock(&g->lock);
    return kernel ? gpu_fail(status, name) : -1;
}

/* What numbers of a dtype are computed in on the device; NULL: the host computes them. */
static const char *computed_in(int device, tp_dtype dtype) {
    if (dtype == TP_FLOAT32) return "float";
    return dtype == TP_FLOAT64 && gpu_at(device)->has_double ? "double" : NULL;
}

/* ---- copy(Tensor src, *, Tensor(a!) out) -> () ---- */

typedef struct {
    int64_t n, ndim, sizes[DIMS], from[DIMS], to[DIMS];
} geometry;

static int copy(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    static const char *const moved[] = {[1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "ulong", [16] = "ulong2"};
    tp_view from = tp_view_of(args[0].tensor), to = tp_view_of(args[1].tensor);
    (void)context;
    if (from.dtype != to.dtype || to.ndim > DIMS || from.device.index != to.device.index)
        return tp_call_on_host(op, ks, args, results);
    geometry g = {to.numel, to.ndim, {0}, {0}, {0}};
    for (int d = 0, behind = to.ndim - from.ndim; d < to.ndim; d++) { /* src broadcasts */
        g.sizes[d] = to.sizes[d];
        g.to[d] = to.strides[d];
        g.from[d] = d < behind || from.sizes[d - behind] == 1 ? 0 : from.strides[d - behind];
    }
    const size_t items[] = {(size_t)to.numel, 1, 1};
    const argument given[] = {{0, from.data}, {0, to.data}, {sizeof g, &g}};
    return launch(to.device.index, "copy", moved[tp_itemsize(to.dtype)], items, 3, given);
}

/* ---- fill(Scalar value, *, Tensor(a!) out) -> () ---- */

static int fill(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const tp_scalar *value = args[0].scalar;
    tp_view out = tp_view_of(args[1].tensor);
    (void)context;
    double number = tp_scalar_double(value);
    float single = (float)number;
    int64_t integer = tp_scalar_int(value);
    bool is_integer = out.dtype >= TP_UINT8 && out.dtype <= TP_INT64 && value->kind != TP_SCALAR_FLOAT;
    if (!out.is_contiguous || value->kind == TP_SCALAR_COMPLEX ||
        !(is_integer || out.dtype == TP_FLOAT32 || out.dtype == TP_FLOAT64))
        return tp_call_on_host(op, ks, args, results);
    const void *element = is_integer                ? (const void *)&integer /* its lower bytes */
                          : out.dtype == TP_FLOAT32 ? (const void *)&single
                                                    : (const void *)&number;
    size_t size = (size_t)tp_itemsize(out.dtype);
    return gpu_fail(cl.clEnqueueSVMMemFill(gpu_at(out.device.index)->queue, out.data, element, size,
                                           (size_t)out.numel * size, 0, NULL, NULL),
                    "clEnqueueSVMMemFill");
}

/* ---- product(Tensor a, Tensor b, Scalar alpha, Scalar beta, *, Tensor(a!) out) -> () ---- */

typedef struct {
    int64_t rows, columns, inner, a[3], b[3], out[3];
} product_of;

/* Strides of batch, row and column. */
static void set_strides(const tp_view *v, int64_t *strides) {
    strides[0] = v->ndim == 3 ? v->strides[0] : 0;
    strides[1] = v->strides[v->ndim - 2];
    strides[2] = v->strides[v->ndim - 1];
}

static int product(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    tp_view a = tp_view_of(args[0].tensor), b = tp_view_of(args[1].tensor), out = tp_view_of(args[4].tensor);
    const char *type = computed_in(out.device.index, out.dtype);
    (void)context;
    if (!type || out.ndim < 2 || out.ndim > 3) return tp_call_on_host(op, ks, args, results);
    product_of p;
    p.rows = out.sizes[out.ndim - 2];
    p.columns = out.sizes[out.ndim - 1];
    p.inner = a.sizes[a.ndim - 1];
    set_strides(&a, p.a);
    set_strides(&b, p.b);
    set_strides(&out, p.out);
    double alpha = tp_scalar_double(args[2].scalar), beta = tp_scalar_double(args[3].scalar);
    float alpha32 = (float)alpha, beta32 = (float)beta;
    bool wide = out.dtype == TP_FLOAT64;
    size_t size = wide ? sizeof alpha : sizeof alpha32;
    const argument given[] = {{0, a.data},
                              {0, b.data},
                              {0, out.data},
                              {sizeof p, &p},
                              {size, wide ? (const void *)&alpha : &alpha32},
                              {size, wide ? (const void *)&beta : &beta32}};
    const size_t items[] = {(size_t)p.columns, (size_t)p.rows, out.ndim == 3 ? (size_t)out.sizes[0] : 1};
    return launch(out.device.index, "product", type, items, 6, given);
}

/* ---- softmax.forward(Tensor x, int dim, *, Tensor(a!) out) -> () ---- */

static int softmax(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    tp_view x = tp_view_of(args[0].tensor), out = tp_view_of(args[2].tensor);
    const char *type = x.dtype == out.dtype ? computed_in(out.device.index, out.dtype) : NULL;
    (void)context;
    if (!type) return tp_call_on_host(op, ks, args, results);
    int64_t dim = args[1].i, n = x.ndim ? x.sizes[dim] : 1, inner = 1;
    for (int64_t d = dim + 1; d < x.ndim; d++) inner *= x.sizes[d];
    int64_t rows = x.numel / n;
    const size_t items[] = {(size_t)rows, 1, 1};
    const argument given[] = {{0, x.data}, {0, out.data}, {sizeof rows, &rows}, {sizeof n, &n}, {sizeof inner, &inner}};
    return launch(out.device.index, "softmax", type, items, 5, given);
}

TENSORPY_LIBRARY_IMPL(prim, ocl, m) {
    return tp_impl_boxed(m, "copy", copy, NULL, NULL) < 0 || tp_impl_boxed(m, "fill", fill, NULL, NULL) < 0 ||
                   tp_impl_boxed(m, "product", product, NULL, NULL) < 0 ||
                   tp_impl_boxed(m, "softmax.forward", softmax, NULL, NULL) < 0
               ? -1
               : 0;
}
