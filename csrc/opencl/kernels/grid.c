/* grid.c: images sampled at the places of a grid; the kernels are in grid.cl.
 *
 * The gradient of an element of the input is the sum over the places that read the element, in the order of the places.
 * */
#include "PrimitiveKernels.h"
#include "opencl/runtime/launch.h"
#include "prim/fault.h"

#define MOST_SHARES (1 << 22) /* of several images at once */

typedef struct {
    uint8_t dtype, dims, mode;
} variant;

static const int taps[] = {2, 1, 4}; /* along a dimension, by mode */

static void define(tp_text *s, const tp_cl_device *d TP_UNUSED, const void *given) {
    const variant *v = given;
    tp_text_add(s, "#define T %s\n#define DIMS %d\n#define TAPS %d\n", v->dtype == TP_FLOAT64 ? "double" : "float",
                v->dims, taps[v->mode]);
}

static const tp_cl_family family = {"grid.cl", define, .size = TP_CL_SIZE(variant)};

typedef struct {
    tp_cl_device *device;
    variant variant;
    int64_t plan[8]; /* the kernel's: images, channels, places, sizes, border, corners */
    int64_t plane;
} job;

enum { IMAGES, CHANNELS, PLACES, SIZES, BORDER = 6, CORNERS };

static int start(job *j, tp_tensor *planes, tp_tensor *grid, int64_t mode, int64_t border, bool corners) {
    int dims = planes->ndim - 2;
    *j = (job){.device = tp_cl_device_of(&grid, 1),
               .variant = {grid->dtype, (uint8_t)dims, (uint8_t)mode},
               .plan = {planes->sizes[0], planes->sizes[1], grid->numel / grid->sizes[0] / dims},
               .plane = 1};
    for (int d = 0; d < dims; d++) j->plane *= j->plan[SIZES + d] = planes->sizes[d + 2];
    j->plan[BORDER] = border, j->plan[CORNERS] = corners;
    return j->device ? 0 : -1;
}

/* `grid` begins with the first of plan's images. */
static tp_cl_call begin(const job *j, const char *kernel, const tp_tensor *grid) {
    tp_cl_call c = tp_cl_begin(j->device, tp_cl_plan(j->device, &family, kernel, &j->variant));
    tp_cl_pass(&c, sizeof j->plan, j->plan);
    tp_cl_pass_tensor(&c, grid);
    return c;
}
static int run(tp_cl_call *c, const job *j) { return tp_cl_run(c, j->plan[IMAGES] * j->plan[PLACES], 64); }

int grid_forward_opencl(tp_tensor *x, tp_tensor *grid, int64_t mode, int64_t border, bool corners, tp_tensor *out) {
    job j;
    if (start(&j, x, grid, mode, border, corners) < 0) return -1;
    tp_cl_call c = begin(&j, "forward", grid);
    tp_cl_pass_tensor(&c, x);
    tp_cl_pass_tensor(&c, out);
    return run(&c, &j);
}

/* A contiguous tensor's images from `first` on; new. */
static tp_tensor *images_of(tp_tensor *t, int64_t first) {
    int64_t offset = t->byte_offset + first * t->strides[0] * tp_itemsize((tp_dtype)t->dtype);
    return tp_new_alias(t, tp_sizes(t), tp_strides(t), offset);
}

/* Images [first, first + count), with room for their shares and indices. */
static int add_shares(job *j, int64_t first, int64_t count, tp_tensor *grad, tp_tensor *grid, tp_tensor *shares,
                      tp_tensor *index, tp_tensor *to_input) {
    const int64_t channels = j->plan[CHANNELS], each = index->numel / index->sizes[0];
    tp_autoref *places = images_of(grid, first), *slopes = images_of(grad, first), *planes = images_of(to_input, first);
    if (!places || !slopes || !planes) return -1;
    j->plan[IMAGES] = count;
    tp_cl_call c = begin(j, "shares", places);
    tp_cl_pass_tensor(&c, slopes);
    tp_cl_pass_tensor(&c, index);
    tp_cl_pass_tensor(&c, shares);
    if (run(&c, j) < 0) return -1;
    tp_autoref *to = tp_new_alias(planes, TP_INTS(count, channels, j->plane), TP_INTS(channels * j->plane, j->plane, 1),
                                  planes->byte_offset);
    const tp_ints shape = TP_INTS(count, channels, each);
    tp_autoref *at = tp_new_alias(index, shape, TP_INTS(each, 0, 1), index->byte_offset),
               *from = tp_new_alias(shares, shape, TP_INTS(channels * each, each, 1), shares->byte_offset);
    return to && at && from ? put_add_opencl(to, 2, at, from, TP_TRUSTED, false) : -1;
}

static int add_to_input(job *j, tp_tensor *grad, tp_tensor *grid, tp_tensor *to_input) {
    const int64_t images = grid->sizes[0], channels = j->plan[CHANNELS];
    int64_t each = j->plan[PLACES], some = 1;
    for (int d = 0; d < j->variant.dims; d++) each *= taps[j->variant.mode];
    /* A GPU sorts the indices of one image for all of its channels. */
    if (j->device->is_cpu) some = MOST_SHARES / (channels * each) + 1;
    if (some > images) some = images;
    tp_autoref *index = tp_new_empty(TP_INTS(some, each), TP_INT64, grid->device);
    tp_autoref *shares = tp_new_empty(TP_INTS(some, channels, each), (tp_dtype)grid->dtype, grid->device);
    if (!index || !shares) return -1;
    for (int64_t first = 0; first < images; first += some) {
        int64_t count = images - first < some ? images - first : some;
        if (add_shares(j, first, count, grad, grid, shares, index, to_input) < 0) return -1;
    }
    return 0;
}

int grid_backward_opencl(tp_tensor *grad, tp_tensor *x, tp_tensor *grid, int64_t mode, int64_t border, bool corners,
                         tp_tensor *to_input, tp_tensor *to_grid) {
    job j;
    if (start(&j, x, grid, mode, border, corners) < 0) return -1;
    if (to_grid) {
        tp_cl_call c = begin(&j, "to_grid", grid);
        tp_cl_pass_tensor(&c, x);
        tp_cl_pass_tensor(&c, grad);
        tp_cl_pass_tensor(&c, to_grid);
        if (run(&c, &j) < 0) return -1;
    }
    return to_input ? add_to_input(&j, grad, grid, to_input) : 0;
}
