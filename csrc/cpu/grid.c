/* grid.c: the primitive grid on the CPU. Threads share the places, and in the gradient by the input the planes, so that
 * one thread adds up each plane. The loops are in grid_loops.c. */
#include "cpu/grid.h"

#include "PrimitiveKernels.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/kernels.h"

typedef struct {
    tp_grid_plan plan;
    const tp_grid_loops *loops;
    const char *in, *grid, *grad;
    char *out;
    int64_t item, blocks, groups, group; /* of channels, in the gradient by the input */
} job;

static job job_of(tp_tensor *planes, tp_tensor *grid, int64_t mode, int64_t border, bool corners) {
    int dims = planes->ndim - 2;
    bool narrow = grid->dtype == TP_FLOAT32;
    job j = {.plan = {.dims = dims,
                      .channels = planes->sizes[1],
                      .in_plane = 1,
                      .places = grid->numel / grid->sizes[0] / dims,
                      .mode = (int)mode,
                      .border = (int)border,
                      .corners = corners},
             .loops = narrow ? &tp_cpu.grid->f32 : &tp_cpu.grid->f64,
             .grid = tp_data(grid),
             .item = narrow ? 4 : 8};
    for (int d = 0; d < dims; d++) j.plan.in_plane *= j.plan.size[d] = planes->sizes[d + 2];
    j.blocks = (j.plan.places + TP_GRID_BLOCK - 1) / TP_GRID_BLOCK;
    return j;
}

static int64_t read_by_a_place(const tp_grid_plan *p) {
    return p->channels * (p->mode == TP_GRID_NEAREST ? 1 : p->mode == TP_GRID_LINEAR ? 2 << p->dims : 20);
}

static int run(job *j, int64_t units, int64_t work, tp_range_fn fn) {
    return tp_parallel_unlocked(units * work > TP_GRAIN, units, 1 + TP_GRAIN / 4 / work, fn, j);
}

/* Block u % blocks of image u / blocks. */
static void run_blocks(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const tp_grid_plan *p = &j->plan;
    for (int64_t u = begin; u < end; u++) {
        const int64_t n = u / j->blocks, first = u % j->blocks * TP_GRID_BLOCK;
        const int64_t count = p->places - first < TP_GRID_BLOCK ? p->places - first : TP_GRID_BLOCK;
        const char *in = j->in + n * p->channels * p->in_plane * j->item;
        const char *grid = j->grid + (n * p->places + first) * p->dims * j->item;
        const int64_t there = (n * p->channels * p->places + first) * j->item;
        if (!j->grad) j->loops->forward(p, in, grid, count, j->out + there);
        else
            j->loops->to_grid(p, in, grid, j->grad + there, count,
                              j->out + (n * p->places + first) * p->dims * j->item);
    }
}

/* Some of the channels of image u / groups. */
static void run_planes(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const tp_grid_plan *p = &j->plan;
    for (int64_t u = begin; u < end; u++) {
        const int64_t n = u / j->groups, first = u % j->groups * j->group;
        const int64_t count = p->channels - first < j->group ? p->channels - first : j->group;
        const int64_t plane = n * p->channels + first;
        j->loops->to_input(p, j->grid + n * p->places * p->dims * j->item, j->grad + plane * p->places * j->item, count,
                           j->out + plane * p->in_plane * j->item);
    }
}

int grid_forward_cpu(tp_tensor *x, tp_tensor *grid, int64_t mode, int64_t border, bool corners, tp_tensor *out) {
    job j = job_of(x, grid, mode, border, corners);
    j.in = tp_data(x);
    j.out = tp_data(out);
    return run(&j, grid->sizes[0] * j.blocks, read_by_a_place(&j.plan) * TP_GRID_BLOCK, run_blocks);
}

int grid_backward_cpu(tp_tensor *grad, tp_tensor *x, tp_tensor *grid, int64_t mode, int64_t border, bool corners,
                      tp_tensor *to_input, tp_tensor *to_grid) {
    job j = job_of(x, grid, mode, border, corners);
    int64_t images = grid->sizes[0], work = read_by_a_place(&j.plan) * TP_GRID_BLOCK;
    j.grad = tp_data(grad);
    if (to_grid) {
        j.in = tp_data(x);
        j.out = tp_data(to_grid);
        if (run(&j, images * j.blocks, work, run_blocks) < 0) return -1;
    }
    if (!to_input) return 0;
    j.out = tp_data(to_input);
    j.group = j.plan.channels < 8 ? (j.plan.channels + 1) / 2 : (j.plan.channels + 3) / 4;
    j.groups = (j.plan.channels + j.group - 1) / j.group;
    return run(&j, images * j.groups, 1 + work * j.blocks / j.groups, run_planes);
}
