/* onednn.c: tensors as oneDNN lays them out, and its operators on them.
 *
 * What is packed is a line of float32: an image (N, C, H, W) in blocks of 16 channels (8 where vectors are shorter),
 * one of fewer than FEW channels and a matrix as they are. The line says nothing of itself: each operator is given the
 * sizes, makes the description of them anew, and refuses a line that is not as long as the description needs. So no
 * bytes of a tensor are ever a pointer or a stride. */
#include "tensorpy/library.h"

#include <dnnl.h>

TENSORPY_HANDLE(tp_tensor *, contiguous, "aten::contiguous", (tp_tensor *, self), (tp_memory_format, format))

#define MOST 8 /* arguments of a primitive */
#define FEW 4  /* channels, which make no block */

static const tp_device CPU = {TP_DEVICE_CPU, 0};

static dnnl_engine_t engine;

static int fail(const char *what, dnnl_status_t status) {
    return tp_fail(TP_RuntimeError, "onednn: %s (status %d)", what, (int)status);
}

static int start(void) {
    dnnl_status_t status = engine ? dnnl_success : dnnl_engine_create(&engine, dnnl_cpu, 0);
    return status == dnnl_success ? 0 : fail("there is no engine", status);
}

/* ---- descriptions ---- */

static bool wide(void) { return dnnl_get_effective_cpu_isa() >= dnnl_cpu_isa_avx512_core; }

/* Of a packed tensor of the sizes. */
static int describe(tp_ints sizes, dnnl_memory_desc_t *md) {
    dnnl_format_tag_t blocks = wide() ? dnnl_aBcd16b : dnnl_aBcd8b;
    dnnl_format_tag_t tag = sizes.size == 2 ? dnnl_ab : sizes.size == 4 && sizes.data[1] < FEW ? dnnl_abcd : blocks;
    if (sizes.size != 2 && sizes.size != 4)
        return tp_fail(TP_RuntimeError, "onednn: tensors of 2 or 4 dimensions, not %lld", (long long)sizes.size);
    for (int64_t d = 0; d < sizes.size; d++)
        if (sizes.data[d] < 1 || sizes.data[d] > INT32_MAX)
            return tp_fail(TP_RuntimeError, "onednn: a size of %lld", (long long)sizes.data[d]);
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(md, (int)sizes.size, sizes.data, dnnl_f32, tag);
    return status == dnnl_success ? start() : fail("no such tensor", status);
}

/* Of a packed weight (out, in, height, width). */
static int describe_weight(tp_ints sizes, dnnl_memory_desc_t *md) {
    if (sizes.size != 4) return tp_fail(TP_RuntimeError, "onednn: a weight of 4 dimensions");
    if (describe(sizes, md) < 0) return -1;
    dnnl_format_tag_t few = wide() ? dnnl_Acdb16a : dnnl_Acdb8a, more = wide() ? dnnl_ABcd16b16a : dnnl_ABcd8b8a;
    dnnl_format_tag_t tag = sizes.data[1] < FEW ? few : more;
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(md, 4, sizes.data, dnnl_f32, tag);
    return status == dnnl_success ? 0 : fail("no such weight", status);
}

static int describe_plain(tp_ints sizes, dnnl_memory_desc_t *md) {
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(md, (int)sizes.size, sizes.data, dnnl_f32,
                                                        sizes.size == 1   ? dnnl_a
                                                        : sizes.size == 2 ? dnnl_ab
                                                                          : dnnl_abcd);
    return status == dnnl_success ? start() : fail("no such tensor", status);
}

/* The memory of a line that is as long as `md` needs, or of a contiguous tensor of n elements (md NULL). */
static float *memory_of(const tp_tensor *t, const dnnl_memory_desc_t *md, int64_t n) {
    tp_view v = tp_view_of(t);
    int64_t needed = md ? (int64_t)(dnnl_memory_desc_get_size(md) / sizeof(float)) : n, step = 1;
    bool fits = v.dtype == TP_FLOAT32 && v.device.type == TP_DEVICE_CPU && v.numel == needed && v.data;
    for (int d = (int)v.ndim - 1; d >= 0; d--) {
        fits &= v.sizes[d] == 1 || v.strides[d] == step;
        step *= v.sizes[d];
    }
    if (fits) return v.data;
    tp_fail(TP_RuntimeError, "onednn: %lld elements of float32 in a line on the CPU are needed, not %lld of %s",
            (long long)needed, (long long)v.numel, tp_dtype_name(v.dtype));
    return NULL;
}

static tp_tensor *new_line(const dnnl_memory_desc_t *md) {
    int64_t n = (int64_t)(dnnl_memory_desc_get_size(md) / sizeof(float));
    tp_ints sizes = {&n, 1};
    return tp_new_empty(sizes, TP_FLOAT32, CPU);
}

/* ---- running ---- */

typedef struct {
    int name;
    const dnnl_memory_desc_t *md;
    void *data;
} argument;

/* Runs a primitive, whose description is taken over. */
static int run_steal(dnnl_primitive_desc_t pd, const argument *given, int count) {
    dnnl_primitive_t primitive = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_exec_arg_t args[MOST] = {0};
    dnnl_status_t status = dnnl_primitive_create(&primitive, pd);
    if (status == dnnl_success) status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    for (int i = 0; status == dnnl_success && i < count; i++) {
        args[i].arg = given[i].name;
        status = dnnl_memory_create(&args[i].memory, given[i].md, engine, given[i].data);
    }
    if (status == dnnl_success) status = dnnl_primitive_execute(primitive, stream, count, args);
    if (status == dnnl_success) status = dnnl_stream_wait(stream);
    for (int i = 0; i < count; i++)
        if (args[i].memory) dnnl_memory_destroy(args[i].memory);
    if (stream) dnnl_stream_destroy(stream);
    if (primitive) dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
    return status == dnnl_success ? 0 : fail("a primitive failed", status);
}

/* The line that the operation of the description gives; `given` are its other arguments. */
static tp_tensor *result_of(const_dnnl_op_desc_t description, const dnnl_memory_desc_t *to, argument *given,
                            int count) {
    dnnl_primitive_desc_t pd;
    dnnl_status_t status = dnnl_primitive_desc_create(&pd, description, NULL, engine, NULL);
    if (status != dnnl_success) return fail("no such primitive", status), (tp_tensor *)NULL;
    tp_tensor *out = new_line(to);
    if (!out) return dnnl_primitive_desc_destroy(pd), (tp_tensor *)NULL;
    given[count] = (argument){DNNL_ARG_DST, to, tp_view_of(out).data};
    if (run_steal(pd, given, count + 1) == 0) return out;
    tp_release(out);
    return NULL;
}

static int reorder(const dnnl_memory_desc_t *from, void *source, const dnnl_memory_desc_t *to, void *target) {
    dnnl_primitive_desc_t pd;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL);
    if (status != dnnl_success) return fail("no such order", status);
    argument given[] = {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, target}};
    return run_steal(pd, given, 2);
}

/* ---- packing ---- */

static tp_tensor *packed(tp_tensor *x, int (*describing)(tp_ints, dnnl_memory_desc_t *)) {
    dnnl_memory_desc_t plain, blocked;
    tp_view v = tp_view_of(x);
    tp_ints sizes = {v.sizes, v.ndim};
    if (describing(sizes, &blocked) < 0 || describe_plain(sizes, &plain) < 0) return NULL;
    tp_tensor *whole = contiguous(x, TP_CONTIGUOUS_FORMAT), *out = whole ? new_line(&blocked) : NULL;
    float *data = out ? memory_of(whole, &plain, 0) : NULL;
    if (!data || reorder(&plain, data, &blocked, tp_view_of(out).data) < 0) {
        tp_release(out);
        out = NULL;
    }
    tp_release(whole);
    return out;
}

TENSORPY_KERNEL(tp_tensor *, pack, (tp_tensor *, x)) { return packed(x, describe); }
TENSORPY_KERNEL(tp_tensor *, pack_weight, (tp_tensor *, x)) { return packed(x, describe_weight); }

TENSORPY_KERNEL(tp_tensor *, unpack, (tp_tensor *, data), (tp_ints, size)) {
    dnnl_memory_desc_t plain, blocked;
    if (describe(size, &blocked) < 0 || describe_plain(size, &plain) < 0) return NULL;
    float *from = memory_of(data, &blocked, 0);
    tp_tensor *out = from ? tp_new_empty(size, TP_FLOAT32, CPU) : NULL;
    if (out && reorder(&blocked, from, &plain, tp_view_of(out).data) == 0) return out;
    tp_release(out);
    return NULL;
}

/* ---- operators ---- */

/* How far a window reaches over `size`; below 1 where it does not fit. */
static int64_t moves(int64_t size, int64_t window, int64_t stride, int64_t padding, int64_t dilation) {
    return (size + 2 * padding - dilation * (window - 1) - 1) / stride + 1;
}

static int check_window(tp_ints stride, tp_ints padding, tp_ints other, int64_t least) {
    bool fits = stride.size == 2 && padding.size == 2 && other.size == 2;
    for (int d = 0; fits && d < 2; d++)
        fits = stride.data[d] > 0 && padding.data[d] >= 0 && padding.data[d] < INT16_MAX && other.data[d] >= least &&
               stride.data[d] < INT16_MAX && other.data[d] < INT16_MAX;
    return fits ? 0 : tp_fail(TP_RuntimeError, "onednn: stride, padding and the window are pairs of numbers from 0 on");
}

TENSORPY_KERNEL(tp_tensor *, conv2d, (tp_tensor *, data), (tp_ints, size), (tp_tensor *, weight), (tp_ints, window),
                (tp_tensor *, bias), (tp_ints, stride), (tp_ints, padding), (tp_ints, dilation)) {
    dnnl_memory_desc_t from, kernel, line, to;
    if (describe(size, &from) < 0 || describe_weight(window, &kernel) < 0) return NULL;
    if (size.size != 4 || size.data[1] != window.data[1])
        return tp_fail_null(TP_RuntimeError, "onednn: a weight of %lld channels, and images of other ones",
                            (long long)window.data[1]);
    if (check_window(stride, padding, dilation, 1) < 0) return NULL;
    int64_t found[4] = {size.data[0], window.data[0]}, gaps[2] = {dilation.data[0] - 1, dilation.data[1] - 1};
    for (int d = 0; d < 2; d++)
        found[d + 2] = moves(size.data[d + 2], window.data[d + 2], stride.data[d], padding.data[d], dilation.data[d]);
    tp_ints sizes = {found, 4}, outputs = {window.data, 1};
    float *x = memory_of(data, &from, 0), *w = x ? memory_of(weight, &kernel, 0) : NULL;
    float *b = w && bias ? memory_of(bias, NULL, window.data[0]) : NULL;
    if (!w || (bias && !b) || describe(sizes, &to) < 0 || describe_plain(outputs, &line) < 0) return NULL;
    dnnl_convolution_desc_t description;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &description, dnnl_forward_inference, dnnl_convolution_direct, &from, &kernel, bias ? &line : NULL, &to,
        stride.data, gaps, padding.data, padding.data);
    if (status != dnnl_success) return fail("no such convolution", status), (tp_tensor *)NULL;
    argument given[MOST] = {{DNNL_ARG_SRC, &from, x}, {DNNL_ARG_WEIGHTS, &kernel, w}, {DNNL_ARG_BIAS, &line, b}};
    return result_of(&description, &to, given, bias ? 3 : 2);
}

TENSORPY_KERNEL(tp_tensor *, pool2d, (tp_tensor *, data), (tp_ints, size), (tp_ints, window), (tp_ints, stride),
                (tp_ints, padding), (bool, largest), (bool, counts_border)) {
    dnnl_memory_desc_t from, to;
    dnnl_alg_kind_t mean = counts_border ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
    if (describe(size, &from) < 0 || check_window(stride, padding, window, 1) < 0) return NULL;
    if (size.size != 4) return tp_fail_null(TP_RuntimeError, "onednn: images of 4 dimensions");
    int64_t found[4] = {size.data[0], size.data[1]};
    for (int d = 0; d < 2; d++)
        found[d + 2] = moves(size.data[d + 2], window.data[d], stride.data[d], padding.data[d], 1);
    tp_ints sizes = {found, 4};
    float *x = memory_of(data, &from, 0);
    if (!x || describe(sizes, &to) < 0) return NULL;
    dnnl_pooling_desc_t description;
    dnnl_status_t status =
        dnnl_pooling_forward_desc_init(&description, dnnl_forward_inference, largest ? dnnl_pooling_max : mean, &from,
                                       &to, stride.data, window.data, padding.data, padding.data);
    if (status != dnnl_success) return fail("no such pooling", status), (tp_tensor *)NULL;
    argument given[MOST] = {{DNNL_ARG_SRC, &from, x}};
    return result_of(&description, &to, given, 1);
}

TENSORPY_KERNEL(tp_tensor *, relu, (tp_tensor *, data), (tp_ints, size)) {
    dnnl_memory_desc_t md;
    float *x = describe(size, &md) < 0 ? NULL : memory_of(data, &md, 0);
    if (!x) return NULL;
    dnnl_eltwise_desc_t description;
    dnnl_status_t status =
        dnnl_eltwise_forward_desc_init(&description, dnnl_forward_inference, dnnl_eltwise_relu, &md, 0, 0);
    if (status != dnnl_success) return fail("no relu", status), (tp_tensor *)NULL;
    argument given[MOST] = {{DNNL_ARG_SRC, &md, x}};
    return result_of(&description, &md, given, 1);
}

TENSORPY_KERNEL(tp_tensor *, add, (tp_tensor *, a), (tp_tensor *, b), (tp_ints, size)) {
    dnnl_memory_desc_t md;
    float *x = describe(size, &md) < 0 ? NULL : memory_of(a, &md, 0), *y = x ? memory_of(b, &md, 0) : NULL;
    if (!y) return NULL;
    dnnl_binary_desc_t description;
    dnnl_status_t status = dnnl_binary_desc_init(&description, dnnl_binary_add, &md, &md, &md);
    if (status != dnnl_success) return fail("no sum", status), (tp_tensor *)NULL;
    argument given[MOST] = {{DNNL_ARG_SRC_0, &md, x}, {DNNL_ARG_SRC_1, &md, y}};
    return result_of(&description, &md, given, 2);
}

TENSORPY_KERNEL(tp_tensor *, batch_norm, (tp_tensor *, data), (tp_ints, size), (tp_tensor *, weight),
                (tp_tensor *, bias), (tp_tensor *, mean), (tp_tensor *, variance), (double, eps)) {
    dnnl_memory_desc_t md, line;
    if (describe(size, &md) < 0) return NULL;
    tp_ints channels = {size.data + 1, 1};
    tp_tensor *lines[] = {weight, bias, mean, variance};
    argument given[MOST] = {{DNNL_ARG_SRC, &md, memory_of(data, &md, 0)},
                            {DNNL_ARG_SCALE, &line, NULL},
                            {DNNL_ARG_SHIFT, &line, NULL},
                            {DNNL_ARG_MEAN, &line, NULL},
                            {DNNL_ARG_VARIANCE, &line, NULL}};
    if (!given[0].data || describe_plain(channels, &line) < 0) return NULL;
    for (int i = 0; i < 4; i++)
        if (!(given[i + 1].data = memory_of(lines[i], NULL, channels.data[0]))) return NULL;
    dnnl_batch_normalization_desc_t description;
    dnnl_status_t status = dnnl_batch_normalization_forward_desc_init(
        &description, dnnl_forward_inference, &md, (float)eps, dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift);
    if (status != dnnl_success) return fail("no such norm", status), (tp_tensor *)NULL;
    return result_of(&description, &md, given, 5);
}

TENSORPY_KERNEL(tp_tensor *, linear, (tp_tensor *, data), (tp_ints, size), (tp_tensor *, weight), (tp_tensor *, bias)) {
    dnnl_memory_desc_t from, matrix, line, to;
    tp_view v = tp_view_of(weight);
    if (describe(size, &from) < 0) return NULL;
    if (size.size != 2 || v.ndim != 2 || v.sizes[1] != size.data[1])
        return tp_fail_null(TP_RuntimeError, "onednn: linear of a matrix and a weight of as many columns");
    int64_t found[] = {size.data[0], v.sizes[0]};
    tp_ints sizes = {found, 2}, outputs = {v.sizes, 1}, own = {v.sizes, 2};
    float *x = memory_of(data, &from, 0), *w = x ? memory_of(weight, NULL, v.sizes[0] * v.sizes[1]) : NULL;
    float *b = w && bias ? memory_of(bias, NULL, v.sizes[0]) : NULL;
    if (!w || (bias && !b) || describe(sizes, &to) < 0 || describe_plain(own, &matrix) < 0 ||
        describe_plain(outputs, &line) < 0)
        return NULL;
    dnnl_inner_product_desc_t description;
    dnnl_status_t status = dnnl_inner_product_forward_desc_init(&description, dnnl_forward_inference, &from, &matrix,
                                                                bias ? &line : NULL, &to);
    if (status != dnnl_success) return fail("no such product", status), (tp_tensor *)NULL;
    argument given[MOST] = {{DNNL_ARG_SRC, &from, x}, {DNNL_ARG_WEIGHTS, &matrix, w}, {DNNL_ARG_BIAS, &line, b}};
    return result_of(&description, &to, given, bias ? 3 : 2);
}

TENSORPY_LIBRARY(onednn, m) {
    static const char *const schemas[] = {
        "pack(Tensor x) -> Tensor",
        "pack_weight(Tensor x) -> Tensor",
        "unpack(Tensor data, int[] size) -> Tensor",
        "conv2d(Tensor data, int[] size, Tensor weight, int[] window, Tensor? bias, int[] stride, int[] padding, int[] "
        "dilation) -> Tensor",
        "pool2d(Tensor data, int[] size, int[] window, int[] stride, int[] padding, bool largest, bool counts_border) "
        "-> Tensor",
        "relu(Tensor data, int[] size) -> Tensor",
        "add(Tensor a, Tensor b, int[] size) -> Tensor",
        "batch_norm(Tensor data, int[] size, Tensor weight, Tensor bias, Tensor mean, Tensor variance, float eps) -> "
        "Tensor",
        "linear(Tensor data, int[] size, Tensor weight, Tensor? bias) -> Tensor"};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
        if (tp_def(m, schemas[i]) < 0) return -1;
    return 0;
}

TENSORPY_LIBRARY_IMPL(onednn, CPU, m) {
    bool failed = tp_impl(m, "pack", pack) < 0 || tp_impl(m, "pack_weight", pack_weight) < 0 ||
                  tp_impl(m, "unpack", unpack) < 0 || tp_impl(m, "conv2d", conv2d) < 0 ||
                  tp_impl(m, "pool2d", pool2d) < 0 || tp_impl(m, "relu", relu) < 0 || tp_impl(m, "add", add) < 0 ||
                  tp_impl(m, "batch_norm", batch_norm) < 0 || tp_impl(m, "linear", linear) < 0;
    return failed ? -1 : 0;
}
