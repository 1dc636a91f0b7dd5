/* grid.c: images and volumes sampled at the places of a grid, and the grids of affine maps. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "iter/iter.h"
#include "prim/plain.h"
#include "prim/transfer.h"

#include <string.h>

enum { LINEAR, NEAREST, CUBIC };

static int check_shapes(const tp_tensor *input, const tp_tensor *grid, int64_t mode) {
    tp_autotext a = {0}, b = {0};
    tp_text_ints(&a, tp_sizes(input));
    tp_text_ints(&b, tp_sizes(grid));
    if (input->ndim < 1 || grid->ndim < 1 || input->sizes[0] != grid->sizes[0])
        return tp_fail(
            TP_RuntimeError,
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes %s and "
            "grid with sizes %s",
            a.text, b.text);
    if (grid->sizes[grid->ndim - 1] != input->ndim - 2)
        return tp_fail(TP_RuntimeError,
                       "grid_sampler(): expected grid to have size %d in last dimension, but got grid with sizes %s",
                       input->ndim - 2, b.text);
    for (int d = 2; d < input->ndim; d++)
        if (input->sizes[d] <= 0)
            return tp_fail(
                TP_RuntimeError,
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes %s with "
                "dimension %d being empty",
                a.text, d);
    if (mode == CUBIC && input->ndim == 5)
        return tp_fail(TP_RuntimeError, "grid_sampler(): bicubic interpolation only supports 4D input");
    return 0;
}

static int check(const tp_tensor *input, const tp_tensor *grid, int ndim, int64_t mode, int64_t border) {
    int64_t plane = 1;
    if (check_shapes(input, grid, mode) < 0) return -1;
    if (input->ndim != ndim || grid->ndim != ndim) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(input));
        tp_text_ints(&b, tp_sizes(grid));
        return tp_fail(
            TP_RuntimeError,
            "grid_sampler(): expected %dD input and grid with same number of dimensions, but got input with sizes "
            "%s and grid with sizes %s",
            ndim, a.text, b.text);
    }
    if (mode < LINEAR || mode > CUBIC || border < 0 || border > 2)
        return tp_fail(TP_RuntimeError, "grid_sampler(): there is no mode %lld or no padding mode %lld",
                       (long long)mode, (long long)border);
    for (int d = 2; d < ndim; d++) plane *= input->sizes[d];
    if (plane > INT32_MAX) return tp_fail(TP_RuntimeError, "grid_sampler(): a plane has more than 2**31 - 1 elements");
    if (!tp_is_floating(input))
        return tp_fail(TP_NotImplementedError, "\"grid_sampler\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)input->dtype));
    if (grid->dtype != input->dtype)
        return tp_fail(TP_RuntimeError, "expected scalar type %s but found %s",
                       tp_scalar_type_name((tp_dtype)input->dtype), tp_scalar_type_name((tp_dtype)grid->dtype));
    return 0;
}

static tp_tensor *sample(tp_tensor *input, tp_tensor *grid, int ndim, int64_t mode, int64_t border, bool corners) {
    if (check(input, grid, ndim, mode, border) < 0) return NULL;
    int64_t sizes[5] = {input->sizes[0], input->sizes[1]};
    memcpy(sizes + 2, grid->sizes + 1, (size_t)(ndim - 2) * sizeof *sizes);
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    tp_autoref *out = tp_new_empty((tp_ints){sizes, ndim}, dtype, input->device);
    tp_autoref *x = out ? tp_plain(input, dtype) : NULL, *g = x ? tp_plain(grid, dtype) : NULL;
    if (!g || (out->numel && tp_prim_grid_forward(x, g, mode, border, corners, out) < 0)) return NULL;
    return tp_narrow_steal(tp_take(out), (tp_dtype)input->dtype);
}

/* The gradient by the grid is made in any case, as PyTorch does. */
static tp_tensor2 sample_backward(tp_tensor *grad_output, tp_tensor *input, tp_tensor *grid, int ndim, int64_t mode,
                                  int64_t border, bool corners, tp_bools mask) {
    tp_tensor2 none = {{NULL}};
    if (check(input, grid, ndim, mode, border) < 0) return none;
    bool wanted = mask.size > 0 && mask.data[0], fits = grad_output->ndim == ndim;
    for (int d = 0; fits && d < ndim; d++)
        fits = grad_output->sizes[d] == (d < 2 ? input->sizes[d] : grid->sizes[d - 1]);
    if (!fits || grad_output->dtype != input->dtype)
        return tp_fail(TP_RuntimeError, "grid_sampler(): the gradient does not fit the input and the grid"), none;
    tp_dtype given = (tp_dtype)input->dtype, dtype = tp_compute_dtype(given);
    tp_autoref *x = tp_plain(input, dtype), *g = tp_plain(grid, dtype), *grad = tp_plain(grad_output, dtype);
    tp_autoref *to_grid = tp_new_empty(tp_sizes(grid), dtype, input->device);
    tp_autoref *to_input = wanted ? tp_new_empty(tp_sizes(input), dtype, input->device) : NULL;
    if (!x || !g || !grad || !to_grid || (wanted && !to_input)) return none;
    if (to_input && to_input->numel && tp_fill_data(to_input, TP_SCALAR_I(0)) < 0) return none;
    bool work = grad->numel > 0;
    if (!work && to_grid->numel && tp_fill_data(to_grid, TP_SCALAR_I(0)) < 0) return none;
    if (work && tp_prim_grid_backward(grad, x, g, mode, border, corners, to_input, to_grid) < 0) return none;
    tp_tensor2 r = {
        {wanted ? tp_narrow_steal(tp_take(to_input), given) : NULL, tp_narrow_steal(tp_take(to_grid), given)}};
    if (r.v[1] && (r.v[0] || !wanted)) return r;
    tp_release(r.v[0]);
    tp_release(r.v[1]);
    return none;
}

tp_tensor *grid_sampler_2d_dense(tp_tensor *input, tp_tensor *grid, int64_t mode, int64_t border, bool corners) {
    return sample(input, grid, 4, mode, border, corners);
}
tp_tensor *grid_sampler_3d_dense(tp_tensor *input, tp_tensor *grid, int64_t mode, int64_t border, bool corners) {
    return sample(input, grid, 5, mode, border, corners);
}
/* grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode,
 * bool align_corners, bool[2] output_mask) -> (Tensor, Tensor) */
tp_tensor2 grid_sampler_2d_backward_dense(tp_tensor *grad_output, tp_tensor *input, tp_tensor *grid, int64_t mode,
                                          int64_t border, bool corners, tp_bools mask) {
    return sample_backward(grad_output, input, grid, 4, mode, border, corners, mask);
}
tp_tensor2 grid_sampler_3d_backward_dense(tp_tensor *grad_output, tp_tensor *input, tp_tensor *grid, int64_t mode,
                                          int64_t border, bool corners, tp_bools mask) {
    return sample_backward(grad_output, input, grid, 5, mode, border, corners, mask);
}

/* How the result moves with the grid: every channel as an image of its own, whose gradient by the grid is its slope.
 * _grid_sampler_tangent(Tensor input, Tensor grid, Tensor tangent, int interpolation_mode, int padding_mode, bool
 * align_corners) -> Tensor */
tp_tensor *_grid_sampler_tangent_composite(tp_tensor *input, tp_tensor *grid, tp_tensor *tangent, int64_t mode,
                                           int64_t border, bool corners) {
    static const bool grid_alone[] = {false, true};
    if (check(input, grid, input->ndim, mode, border) < 0) return NULL;
    int64_t images = input->sizes[0], channels = input->sizes[1], planes[5] = {images * channels, 1};
    memcpy(planes + 2, input->sizes + 2, (size_t)(input->ndim - 2) * sizeof *planes);
    tp_autoref *x = tp_reshape(input, (tp_ints){planes, input->ndim});
    tp_autoref *each = x ? tp_repeat_interleave_self_int(grid, channels, TP_SOME_INT(0), TP_NO_INT) : NULL;
    int64_t sizes[5] = {images * channels, 1}, shape[6] = {images, channels};
    memcpy(sizes + 2, grid->sizes + 1, (size_t)(grid->ndim - 2) * sizeof *sizes);
    memcpy(shape + 2, grid->sizes + 1, (size_t)(grid->ndim - 1) * sizeof *shape);
    tp_autoref *one =
        each ? tp_ones((tp_ints){sizes, grid->ndim}, (tp_dtype)input->dtype, TP_STRIDED, input->device, -1) : NULL;
    if (!one) return NULL;
    tp_tensor2 r = (input->ndim == 5 ? tp_grid_sampler_3d_backward : tp_grid_sampler_2d_backward)(
        one, x, each, mode, border, corners, (tp_bools){grid_alone, 2});
    tp_autoref *unused = r.v[0], *slope = r.v[1];
    (void)unused;
    tp_autoref *by_channel = slope ? tp_reshape(slope, (tp_ints){shape, grid->ndim + 1}) : NULL;
    tp_autoref *moved = by_channel ? tp_unsqueeze(tangent, 1) : NULL;
    tp_autoref *product = moved ? tp_mul_Tensor(by_channel, moved) : NULL;
    return product ? tp_sum_dim_IntList(product, TP_INTS(-1), false, TP_NO_DTYPE) : NULL;
}

/* grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor */
tp_tensor *grid_sampler_composite(tp_tensor *input, tp_tensor *grid, int64_t mode, int64_t border, bool corners) {
    if (check_shapes(input, grid, mode) < 0) return NULL;
    return input->ndim == 5 ? tp_grid_sampler_3d(input, grid, mode, border, corners)
                            : tp_grid_sampler_2d(input, grid, mode, border, corners);
}

/* ---- the grids of affine maps ---- */

/* The places from -1 to 1 along a dimension of n, at the ends or in the middle of its elements. */
static tp_tensor *axis(int64_t n, bool corners, const tp_tensor *like) {
    double last = corners || n < 1 ? 1 : (double)(n - 1) / (double)n;
    if (n <= 1) last = 0;
    return tp_linspace(TP_SCALAR_F(-last), TP_SCALAR_F(last), n, (tp_dtype)like->dtype, TP_NO_LAYOUT, like->device, -1);
}

/* All places of a grid as rows (x, y, 1) or (x, y, z, 1). */
static tp_tensor *places(tp_ints size, bool corners, tp_tensor *like) {
    int dims = (int)size.size - 2;
    tp_autoseq *parts = tp_tensor_seq_new(dims + 1);
    for (int d = 0; parts && d < dims; d++) {
        int64_t along[4] = {1, 1, 1, 1};
        tp_autoref *line = axis(size.data[d + 2], corners, like);
        along[d] = size.data[d + 2];
        tp_autoref *shaped = line ? tp_reshape(line, (tp_ints){along, dims}) : NULL;
        parts->items[dims - 1 - d] = shaped ? tp_expand(shaped, (tp_ints){size.data + 2, dims}, false) : NULL;
        if (!parts->items[dims - 1 - d]) return NULL;
    }
    if (!parts) return NULL;
    parts->items[dims] = tp_ones((tp_ints){size.data + 2, dims}, (tp_dtype)like->dtype, TP_STRIDED, like->device, -1);
    if (!parts->items[dims]) return NULL;
    tp_autoref *all = tp_stack(tp_tensor_seq_borrow(parts), -1);
    int64_t count = 1;
    for (int d = 0; d < dims; d++) count *= size.data[d + 2];
    return all ? tp_reshape(all, TP_INTS(count, dims + 1)) : NULL;
}

static int check_volume(tp_ints size) {
    if (size.size == 4 || size.size == 5) return 0;
    return tp_fail(TP_RuntimeError, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
}

/* affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor */
tp_tensor *affine_grid_generator_composite(tp_tensor *theta, tp_ints size, bool corners) {
    if (check_volume(size) < 0) return NULL;
    tp_autoref *all = places(size, corners, theta), *turned = all ? tp_transpose_int(theta, 1, 2) : NULL;
    tp_autoref *rows = turned ? tp_matmul(all, turned) : NULL;
    int64_t sizes[5] = {size.data[0]}, dims = size.size - 2;
    for (int64_t d = 0; d < dims; d++) sizes[d + 1] = size.data[d + 2];
    sizes[dims + 1] = dims;
    return rows ? tp_reshape(rows, (tp_ints){sizes, dims + 2}) : NULL;
}

/* affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor */
tp_tensor *affine_grid_generator_backward_composite(tp_tensor *grad, tp_ints size, bool corners) {
    if (check_volume(size) < 0) return NULL;
    tp_autoref *all = places(size, corners, grad);
    int64_t dims = size.size - 2;
    tp_autoref *rows = all ? tp_reshape(grad, TP_INTS(size.data[0], all->sizes[0], dims)) : NULL;
    tp_autoref *turned = rows ? tp_transpose_int(rows, 1, 2) : NULL;
    return turned ? tp_matmul(turned, all) : NULL;
}
