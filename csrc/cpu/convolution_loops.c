/* convolution_loops.c: convolutions as matrix products of unfolded windows; what keeps float32 sums in registers
 * instead is in convolution_direct.h, convolution_winograd.h and convolution_weight.h.
 *
 * A block of images is padded once; its windows become the columns of a matrix [channels * kernel, images * pixels] (no
 * border to look for any more), and BLAS does the rest. The adjoints go the same way back. A block is as many images as
 * keep that matrix in the L2 cache, so small images share one product; a 1x1 kernel reads large images where they lie.
 *
 * Invariant: blocks and partial sums depend on the shapes only, so results do not depend on the number of threads. */
#include "cpu/convolution.h"

#include "core/alloc.h"
#include "core/host.h"
#include "core/parallel.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "cpu/lanes.h"

#include <string.h>

#define BLOCK_BYTES (384 << 10)
#define PARTS 8 /* partial sums of a weight gradient */
#define MANY_WEIGHTS (1 << 20)
#define MANY_COLUMNS 192

typedef struct {
    const tp_conv_plan *plan;
    int64_t item, window, pixels, in_pixels, padded[3], padded_pixels;
    int64_t images, blocks; /* images in a block, and how many blocks */
    bool in_place;          /* the columns are the input itself */
    const char *in, *weight, *bias;
    char *out, *partial;
    int64_t parts;
} job;

/* Weights that no cache next to the CPU keeps: each time that they are read should serve many columns. */
static bool has_many_weights(const job *j) { return j->window * j->plan->out_channels * j->item > MANY_WEIGHTS; }

static job make_job(const tp_conv_plan *p) {
    job j = {.plan = p,
             .item = tp_itemsize(p->dtype),
             .window = p->in_channels,
             .pixels = 1,
             .in_pixels = 1,
             .padded_pixels = 1};
    bool unit = true;
    for (int d = 0; d < 3; d++) {
        j.window *= p->kernel[d];
        j.pixels *= p->out[d];
        j.in_pixels *= p->in[d];
        j.padded[d] = p->in[d] + 2 * p->padding[d];
        j.padded_pixels *= j.padded[d];
        unit = unit && p->kernel[d] == 1 && p->stride[d] == 1 && p->padding[d] == 0;
    }
    bool few = p->batch * j.pixels < MANY_COLUMNS; /* for which no other way serves a weight better */
    j.in_place = unit && j.pixels >= (few ? 16 : 128);
    int64_t bytes = j.window * j.pixels * j.item;
    j.images = j.in_place || bytes <= 0 ? 1 : BLOCK_BYTES / bytes;
    if (!j.in_place && has_many_weights(&j) && j.images * j.pixels < MANY_COLUMNS)
        j.images = (MANY_COLUMNS + j.pixels - 1) / j.pixels;
    if (j.images > p->batch) j.images = p->batch;
    if (j.images < 1) j.images = 1;
    j.blocks = (p->batch + j.images - 1) / j.images;
    if (j.blocks > 0) j.images = (p->batch + j.blocks - 1) / j.blocks;
    return j;
}

/* ---- moving rows ---- */

TP_INLINE void copy_bytes(char *to, const char *from, int64_t bytes) {
    switch (bytes) {
    case 16: memcpy(to, from, 16); break;
    case 32: memcpy(to, from, 32); break;
    case 64: memcpy(to, from, 64); break;
    case 128: memcpy(to, from, 128); break;
    default: memcpy(to, from, (size_t)bytes);
    }
}

static const char *image_of(const job *j, const char *in, int64_t n, int64_t group, int64_t channel) {
    const tp_conv_plan *p = j->plan;
    return in + ((n * p->groups + group) * p->in_channels + channel) * j->in_pixels * j->item;
}

/* The images of a block with a border of zeros: [channels][images][padded]. */
static void pad(const job *j, char *padded, int64_t first, int64_t images, int64_t group) {
    const tp_conv_plan *p = j->plan;
    int64_t row = p->in[2] * j->item, padded_row = j->padded[2] * j->item;
    memset(padded, 0, (size_t)(p->in_channels * images * j->padded_pixels * j->item));
    for (int64_t c = 0; c < p->in_channels; c++)
        for (int64_t n = 0; n < images; n++, padded += j->padded_pixels * j->item) {
            const char *from = image_of(j, j->in, first + n, group, c);
            for (int64_t z = 0; z < p->in[0]; z++) {
                char *to =
                    padded +
                    (((z + p->padding[0]) * j->padded[1] + p->padding[1]) * j->padded[2] + p->padding[2]) * j->item;
                for (int64_t y = 0; y < p->in[1]; y++, from += row, to += padded_row) copy_bytes(to, from, row);
            }
        }
}

/* What is done with one row of n output pixels of one kernel element, and the pixels that it sees, `step` apart. */
typedef void (*row_fn)(char *column, char *window, int64_t n, int64_t step);

/* Walks the windows. `row`, and n or step where the caller knows them, become part of the loop: a call of an inline
 * function with a constant function. */
TP_INLINE void for_each_row(const job *j, int64_t images, char *padded, char *column, int64_t n, int64_t step,
                            row_fn row) {
    const tp_conv_plan *p = j->plan;
    int64_t bytes = n * j->item, line = j->padded[2] * j->item, plane = j->padded[1] * line;
    for (int64_t c = 0; c < p->in_channels; c++, padded += images * j->padded_pixels * j->item)
        for (int64_t kz = 0; kz < p->kernel[0]; kz++)
            for (int64_t ky = 0; ky < p->kernel[1]; ky++)
                for (int64_t kx = 0; kx < p->kernel[2]; kx++) {
                    char *at = padded + kz * p->dilation[0] * plane + ky * p->dilation[1] * line +
                               kx * p->dilation[2] * j->item;
                    for (int64_t i = 0; i < images; i++, at += j->padded_pixels * j->item)
                        for (int64_t z = 0; z < p->out[0]; z++)
                            for (int64_t y = 0; y < p->out[1]; y++, column += bytes)
                                row(column, at + z * p->stride[0] * plane + y * p->stride[1] * line, n, step);
                }
}

/* The usual rows are contiguous, and short ones of a known length. */
TP_INLINE void walk(const job *j, char *padded, char *columns, int64_t images, row_fn row) {
    int64_t n = j->plan->out[2], step = j->plan->stride[2];
    if (step == 1 && n == 8) for_each_row(j, images, padded, columns, 8, 1, row);
    else if (step == 1) for_each_row(j, images, padded, columns, n, 1, row);
    else for_each_row(j, images, padded, columns, n, step, row);
}

/* Rows of one item size copied to the columns, and of one dtype added from them; all that depends on the dtype. */
#define ROWS(T, s)                                                                            \
    TP_INLINE void copy_##s(char *column, char *window, int64_t n, int64_t step) {            \
        if (step == 1) copy_bytes(column, window, n * (int64_t)sizeof(T));                    \
        else                                                                                  \
            for (int64_t i = 0; i < n; i++) ((T *)column)[i] = ((const T *)window)[i * step]; \
    }                                                                                         \
    TP_INLINE void add_##s(char *column, char *window, int64_t n, int64_t step) {             \
        T *restrict to = (T *)window;                                                         \
        const T *restrict from = (const T *)column;                                           \
        for (int64_t i = 0; i < n; i++) to[i * step] += from[i];                              \
    }                                                                                         \
    static void put_##s(char *to, const char *from, int64_t n, const char *bias) {            \
        T add = *(const T *)bias;                                                             \
        for (int64_t i = 0; i < n; i++) ((T *)to)[i] = ((const T *)from)[i] + add;            \
    }                                                                                         \
    static void unfold_##s(const job *j, char *padded, char *columns, int64_t images) {       \
        walk(j, padded, columns, images, copy_##s);                                           \
    }                                                                                         \
    static void fold_##s(const job *j, char *padded, char *columns, int64_t images) {         \
        walk(j, padded, columns, images, add_##s);                                            \
    }

ROWS(float, f32)
ROWS(double, f64)
ROWS(uint64_t, i64)
ROWS(tp_complex64, c64)
ROWS(tp_complex128, c128)

typedef struct {
    row_fn add;
    void (*put)(char *to, const char *from, int64_t n, const char *bias); /* to = from + *bias */
    void (*unfold)(const job *j, char *padded, char *columns, int64_t images);
    void (*fold)(const job *j, char *padded, char *columns, int64_t images);
} rows_of_dtype;

static const rows_of_dtype *rows_of(tp_dtype dtype) {
    static const rows_of_dtype f32 = {add_f32, put_f32, unfold_f32, fold_f32},
                               f64 = {add_f64, put_f64, unfold_f64, fold_f64},
                               i64 = {add_i64, put_i64, unfold_i64, fold_i64},
                               c64 = {add_c64, put_c64, unfold_c64, fold_c64},
                               c128 = {add_c128, put_c128, unfold_c128, fold_c128};
    switch (dtype) {
    case TP_FLOAT32: return &f32;
    case TP_FLOAT64: return &f64;
    case TP_COMPLEX64: return &c64;
    case TP_COMPLEX128: return &c128;
    default: return &i64;
    }
}

static void unfold(const job *j, char *padded, char *columns, int64_t images) {
    rows_of(j->plan->dtype)->unfold(j, padded, columns, images);
}

static void fold(const job *j, char *padded, char *columns, int64_t images) {
    memset(padded, 0, (size_t)(j->plan->in_channels * images * j->padded_pixels * j->item));
    rows_of(j->plan->dtype)->fold(j, padded, columns, images);
}

/* Adds one number to n elements, from `from` to `to`; a NULL bias only copies. */
static void put_row(tp_dtype dtype, char *to, const char *from, int64_t n, const char *bias) {
    if (bias) rows_of(dtype)->put(to, from, n, bias);
    else if (to != from) copy_bytes(to, from, n * tp_itemsize(dtype));
}

static char *output_of(const job *j, char *out, int64_t n, int64_t group) {
    return out + (n * j->plan->groups + group) * j->plan->out_channels * j->pixels * j->item;
}

/* The output side of a block as a matrix [out_channels, images * pixels], gathered. */
static void gather(const job *j, char *matrix, int64_t first, int64_t images, int64_t group) {
    int64_t bytes = j->pixels * j->item;
    for (int64_t n = 0; n < images; n++) {
        const char *from = output_of(j, (char *)j->out, first + n, group);
        for (int64_t o = 0; o < j->plan->out_channels; o++)
            copy_bytes(matrix + (o * images + n) * bytes, from + o * bytes, bytes);
    }
}

/* ---- scratch: the padded images, their columns and the output side of one block ---- */

typedef struct {
    char *memory, *padded, *columns, *outputs;
    size_t size;
} scratch;

static size_t rounded(int64_t bytes) { return ((size_t)bytes + 63) & ~(size_t)63; }

static int scratch_new(scratch *s, const job *j) {
    size_t padded = rounded(j->plan->in_channels * j->images * j->padded_pixels * j->item);
    size_t columns = rounded(j->window * j->images * j->pixels * j->item);
    size_t outputs = rounded(j->plan->out_channels * j->images * j->pixels * j->item);
    if (j->in_place) padded = columns = 0;
    s->size = padded + columns + outputs;
    s->memory = tp_alloc(s->size);
    if (!s->memory) return -1;
    s->padded = s->memory;
    s->columns = s->memory + padded;
    s->outputs = s->columns + columns;
    return 0;
}

static int64_t images_of(const job *j, int64_t block) {
    int64_t left = j->plan->batch - block * j->images;
    return left < j->images ? left : j->images;
}

static const char *columns_of(const job *j, scratch *s, int64_t first, int64_t images, int64_t group) {
    if (j->in_place) return image_of(j, j->in, first, group, 0);
    pad(j, s->padded, first, images, group);
    unfold(j, s->padded, s->columns, images);
    return s->columns;
}

static const char *weight_of(const job *j, int64_t group) {
    return j->weight + group * j->plan->out_channels * j->window * j->item;
}

/* ---- the three products ---- */

static int forward_block(const job *j, scratch *s, int64_t block, int64_t group) {
    const tp_conv_plan *p = j->plan;
    int64_t first = block * j->images, images = images_of(j, block), n = images * j->pixels;
    const char *columns = columns_of(j, s, first, images, group);
    char *out = output_of(j, j->out, first, group), *product = images == 1 ? out : s->outputs;
    if (tp_gemm_raw(p->dtype, false, false, p->out_channels, n, j->window, weight_of(j, group), j->window, columns, n,
                    0, product, n) < 0)
        return -1;
    if (images == 1 && !j->bias) return 0;
    int64_t bytes = j->pixels * j->item, next = p->groups * p->out_channels * bytes;
    for (int64_t o = 0; o < p->out_channels; o++) {
        const char *bias = j->bias ? j->bias + (group * p->out_channels + o) * j->item : NULL;
        for (int64_t i = 0; i < images; i++)
            put_row(p->dtype, out + i * next + o * bytes, product + (o * images + i) * bytes, j->pixels, bias);
    }
    return 0;
}

static void unpad(const job *j, const char *padded, int64_t first, int64_t images, int64_t group) {
    const tp_conv_plan *p = j->plan;
    int64_t row = p->in[2] * j->item, padded_row = j->padded[2] * j->item;
    for (int64_t c = 0; c < p->in_channels; c++) {
        const char *bias = j->bias ? j->bias + (group * p->in_channels + c) * j->item : NULL;
        for (int64_t n = 0; n < images; n++, padded += j->padded_pixels * j->item) {
            char *to = (char *)image_of(j, j->in, first + n, group, c);
            for (int64_t z = 0; z < p->in[0]; z++) {
                const char *from =
                    padded +
                    (((z + p->padding[0]) * j->padded[1] + p->padding[1]) * j->padded[2] + p->padding[2]) * j->item;
                for (int64_t y = 0; y < p->in[1]; y++, from += padded_row, to += row)
                    put_row(p->dtype, to, from, p->in[2], bias);
            }
        }
    }
}

static const char *outputs_of(const job *j, scratch *s, int64_t first, int64_t images, int64_t group) {
    if (images == 1) return output_of(j, j->out, first, group);
    gather(j, s->outputs, first, images, group);
    return s->outputs;
}

static int data_block(const job *j, scratch *s, int64_t block, int64_t group) {
    const tp_conv_plan *p = j->plan;
    int64_t first = block * j->images, images = images_of(j, block), n = images * j->pixels;
    const char *outputs = outputs_of(j, s, first, images, group);
    char *columns = j->in_place ? (char *)image_of(j, j->in, first, group, 0) : s->columns;
    if (tp_gemm_raw(p->dtype, true, false, j->window, n, p->out_channels, weight_of(j, group), j->window, outputs, n, 0,
                    columns, n) < 0)
        return -1;
    if (!j->in_place) {
        fold(j, s->padded, columns, images);
        unpad(j, s->padded, first, images, group);
    } else if (j->bias) {
        for (int64_t c = 0; c < p->in_channels; c++)
            put_row(p->dtype, columns + c * n * j->item, columns + c * n * j->item, n,
                    j->bias + (group * p->in_channels + c) * j->item);
    }
    return 0;
}

static int weight_block(const job *j, scratch *s, int64_t block, int64_t group, char *sum, bool first_of_part) {
    const tp_conv_plan *p = j->plan;
    int64_t first = block * j->images, images = images_of(j, block), n = images * j->pixels;
    const char *columns = columns_of(j, s, first, images, group), *outputs = outputs_of(j, s, first, images, group);
    return tp_gemm_raw(p->dtype, false, true, p->out_channels, j->window, n, outputs, n, columns, n,
                       first_of_part ? 0 : 1, sum, j->window);
}

/* ---- over blocks, groups and threads ---- */

static void run_forward(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    scratch s;
    if (scratch_new(&s, j) < 0) return;
    for (int64_t i = begin; i < end; i++)
        if (forward_block(j, &s, i / j->plan->groups, i % j->plan->groups) < 0 || tp_host_look() < 0) break;
    tp_free(s.memory, s.size);
}

static void run_data(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    scratch s;
    if (scratch_new(&s, j) < 0) return;
    for (int64_t i = begin; i < end; i++)
        if (data_block(j, &s, i / j->plan->groups, i % j->plan->groups) < 0 || tp_host_look() < 0) break;
    tp_free(s.memory, s.size);
}

/* Part t of a group sums blocks t, t + parts, ... */
static void run_weight(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    int64_t bytes = j->plan->out_channels * j->window * j->item;
    scratch s;
    if (scratch_new(&s, j) < 0) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i / j->parts, part = i % j->parts;
        for (int64_t block = part; block < j->blocks; block += j->parts)
            if (weight_block(j, &s, block, group, j->partial + i * bytes, block == part) < 0 || tp_host_look() < 0)
                goto done;
    }
done:
    tp_free(s.memory, s.size);
}

static int run(const job *j, void *context, int64_t n, tp_range_fn fn) {
    double work =
        (double)j->plan->batch * (double)j->plan->groups * (double)(j->window * j->plan->out_channels * j->pixels);
    bool threads = n > 1 && work > 2e6 && tp_get_num_threads() > 1 && !tp_in_parallel();
    return tp_parallel_unlocked(work > 1e5, n, threads ? 1 : n, fn, context);
}

/* ---- in registers: float32, with the vectors that the CPU has ---- */

#define REFUSED 1 /* a status: nothing is done, another way must do it */
/* Sums side by side, as many as there are registers for: CHANNELS times GROUP vectors; where there are half as many
 * channels, or one, HALF_VECTORS and MOST_VECTORS. */
#define GROUP 3
#define MOST_VECTORS 8
#define CHANNELS (LANES == 16 ? 8 : 4)
#define HALF_VECTORS (LANES == 16 ? 6 : 4)

#include "cpu/convolution_direct.h"
#include "cpu/convolution_weight.h"
#include "cpu/convolution_winograd.h"

#ifdef LANES
/* turned: the border's zeros, of which the data gradient knows nothing, would make NaN of an infinite weight. */
static int forward_in_registers(const tp_conv_plan *p, const void *in, const void *weight, const void *bias, void *out,
                                bool turned) {
    int status = REFUSED;
    if (p->dtype != TP_FLOAT32) return REFUSED;
    if (turned && too_large(largest_bits(weight, p->groups * p->out_channels * make_job(p).window, 0))) return REFUSED;
    if (winograd_fits(p)) status = winograd_forward(p, in, weight, bias, out, turned);
    if (status == REFUSED && direct_fits(p)) status = direct_forward(p, in, weight, bias, out, turned);
    return status;
}
#endif

static int forward(const tp_conv_plan *p, const void *in, const void *weight, const void *bias, void *out) {
#ifdef LANES
    int status = forward_in_registers(p, in, weight, bias, out, false);
    if (status != REFUSED) return status;
#endif
    job j = make_job(p);
    j.in = in, j.weight = weight, j.bias = bias, j.out = out;
    return run(&j, &j, j.blocks * p->groups, run_forward);
}

static int data(const tp_conv_plan *p, const void *out, const void *weight, const void *bias, void *in) {
#ifdef LANES
    tp_conv_plan turned;
    if (turned_plan(p, &turned)) {
        int status = forward_in_registers(&turned, out, weight, bias, in, true);
        if (status != REFUSED) return status;
    }
#endif
    job j = make_job(p);
    j.in = in, j.weight = weight, j.bias = bias, j.out = (char *)out;
    return run(&j, &j, j.blocks * p->groups, run_data);
}

/* Runs fn over the parts of each group's sum and adds them up in their order. */
static int sum_parts(job *j, void *context, tp_range_fn fn, char *weight) {
    int64_t groups = j->plan->groups, n = j->plan->out_channels * j->window, bytes = n * j->item;
    if (j->parts == 1) {
        j->partial = weight;
        return run(j, context, groups, fn);
    }
    size_t size = (size_t)(groups * j->parts * bytes);
    j->partial = tp_alloc(size);
    int status = j->partial ? run(j, context, groups * j->parts, fn) : -1;
    for (int64_t g = 0; status == 0 && g < groups; g++) {
        char *sum = weight + g * bytes, *part = j->partial + g * j->parts * bytes;
        memcpy(sum, part, (size_t)bytes);
        for (int64_t i = 1; i < j->parts; i++) rows_of(j->plan->dtype)->add(part + i * bytes, sum, n, 1);
    }
    if (j->partial) tp_free(j->partial, size);
    return status;
}

static int weight_gradient(const tp_conv_plan *p, const void *out, const void *in, void *weight) {
#ifdef LANES
    if (weight_fits(p)) return weight_in_registers(p, out, in, weight);
#endif
    job j = make_job(p);
    j.in = in, j.out = (char *)out;
    j.parts = j.blocks < PARTS ? j.blocks : PARTS;
    return sum_parts(&j, &j, run_weight, weight);
}

const tp_convolution_kernels TP_CAP(tp_convolution) = {.forward = forward, .data = data, .weight = weight_gradient};
