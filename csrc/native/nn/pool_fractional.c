/* pool_fractional.c: pooling over windows at random places as operators: shapes and checks.
 *
 * Inputs are (C, ...) or (N, C, ...); the numbers that place the windows are (N, C, dims), N at least that of the
 * input. The primitive sees contiguous planes in their compute dtype. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "prim/plain.h"
#include "prim/transfer.h"
#include "iter/iter.h"

#include <string.h>

static int check_input(const char *name, int dims, const tp_tensor *self) {
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(self));
    if (self->ndim != dims + 1 && self->ndim != dims + 2)
        return tp_fail(TP_RuntimeError, "%s: Expected %dD or %dD tensor, but got: %s", name, dims + 1, dims + 2,
                       text.text);
    for (int i = self->ndim - dims - 1; i < self->ndim; i++)
        if (self->sizes[i] == 0)
            return tp_fail(TP_RuntimeError,
                           "%s: Expected input to have non-zero size for non-batch dimensions, but got %s with "
                           "dimension %d being empty",
                           name, text.text, i);
    if (tp_is_floating(self)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", name,
                   tp_scalar_type_name((tp_dtype)self->dtype));
}

static int check_samples(const char *name, int dims, const tp_tensor *self, const tp_tensor *samples) {
    if (samples->dtype != self->dtype)
        return tp_fail(TP_RuntimeError, "%s: Expect _random_samples to have the same dtype as input", name);
    if (samples->ndim != 3)
        return tp_fail(TP_RuntimeError, "%s: Expect _random_samples to have 3 dimensions, got %d", name, samples->ndim);
    int64_t batch = self->ndim == dims + 2 ? self->sizes[0] : 1;
    if (samples->sizes[0] < batch)
        return tp_fail(TP_RuntimeError, "%s: Expect _random_samples.size(0) no less then input batch size", name);
    if (samples->sizes[1] != self->sizes[self->ndim - dims - 1])
        return tp_fail(TP_RuntimeError, "%s: Expect _random_samples.size(1) equals to input channel size", name);
    if (samples->sizes[2] != dims)
        return tp_fail(TP_RuntimeError, "%s: Expect _random_samples.size(2) equals to %d; got %lld", name, dims,
                       (long long)samples->sizes[2]);
    return 0;
}

/* Whether so many windows of this size fit into each dimension; they begin at places of their own. */
static int check_windows(const char *name, int dims, const tp_tensor *self, tp_ints kernel, tp_ints output) {
    if (kernel.size != dims || output.size != dims)
        return tp_fail(TP_RuntimeError, "%s: %s must either be a single int or a tuple of %d ints", name,
                       kernel.size != dims ? "kernel_size" : "output_size", dims);
    static const char *const sides[] = {"time", "height", "width"};
    for (int i = 0; i < dims; i++) {
        const char *side = sides[3 - dims + i];
        int64_t size = self->sizes[self->ndim - dims + i], window = kernel.data[i], n = output.data[i];
        if (window < 1 || n < 0)
            return tp_fail(TP_RuntimeError, "%s: kernel_size must be positive and output_size not negative", name);
        if (window > size || n - 1 > size - window)
            return tp_fail(TP_RuntimeError, "%s(): pool %s %lld too large relative to input %s %lld, for %lld of them",
                           name, side, (long long)window, side, (long long)size, (long long)n);
    }
    return 0;
}

static int meta(tp_meta *m, const char *name, int dims, tp_tensor *self, tp_ints kernel, tp_ints output,
                tp_tensor *samples) {
    if (check_input(name, dims, self) < 0 || check_windows(name, dims, self, kernel, output) < 0 ||
        check_samples(name, dims, self, samples) < 0)
        return -1;
    int64_t sizes[5], strides[5];
    memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
    memcpy(sizes + self->ndim - dims, output.data, (size_t)dims * sizeof *sizes);
    tp_ints shape = {sizes, self->ndim};
    tp_contiguous_strides(shape, strides);
    if (tp_meta_output(m, 0, shape, (tp_ints){strides, self->ndim}, (tp_dtype)self->dtype, self->device) < 0) return -1;
    return tp_meta_output(m, 1, shape, (tp_ints){strides, self->ndim}, TP_INT64, self->device);
}

/* The result itself where it is plain, else what is copied to it. */
static tp_tensor *plain_room(tp_tensor *out, tp_dtype dtype) {
    if ((tp_dtype)out->dtype == dtype && tp_is_contiguous(out)) return tp_retain(out);
    return tp_new_empty(tp_sizes(out), dtype, out->device);
}

static int dense(tp_tensor *self, tp_ints kernel, tp_tensor *samples, tp_tensor *output, tp_tensor *indices) {
    if (output->numel == 0) return 0;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)self->dtype);
    tp_autoref *from = tp_plain(self, dtype), *u = tp_plain(samples, dtype);
    tp_autoref *to = plain_room(output, dtype), *at = plain_room(indices, TP_INT64);
    if (!from || !u || !to || !at || tp_prim_pool_fractional(from, u, kernel, to, at) < 0) return -1;
    if (to != output && tp_copy_data(output, to) < 0) return -1;
    return at != indices ? tp_copy_data(indices, at) : 0;
}

/* fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor,
 * Tensor), and the same in three dimensions. */
#define FRACTIONAL(n)                                                                                         \
    int fractional_max_pool##n##d_meta(tp_meta *m, tp_tensor *self, tp_ints kernel_size, tp_ints output_size, \
                                       tp_tensor *random_samples) {                                           \
        return meta(m, "fractional_max_pool" #n "d", n, self, kernel_size, output_size, random_samples);      \
    }                                                                                                         \
    int fractional_max_pool##n##d_dense(tp_tensor *self, tp_ints kernel_size, tp_ints output_size TP_UNUSED,  \
                                        tp_tensor *random_samples, tp_tensor *output, tp_tensor *indices) {   \
        return dense(self, kernel_size, random_samples, output, indices);                                     \
    }
FRACTIONAL(2)
FRACTIONAL(3)
