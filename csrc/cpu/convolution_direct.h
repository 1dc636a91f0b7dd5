/* convolution_direct.h: float32 convolutions in registers, without unfolding; part of convolution_loops.c.
 *
 * The input with its border is split by strides: what output pixels see through one kernel element, every stride-th
 * pixel, lies side by side in one of the phases. So rows of output pixels are sums of shifted rows, whatever the stride
 * and dilation. CHANNELS output channels times GROUP vectors of pixels stay in registers; a step of the innermost loop
 * is one kernel element: GROUP loads, CHANNELS broadcasts, CHANNELS * GROUP multiply-adds.
 *
 * A vector of pixels is a spot. Spots lie in rows, the last of a row over the one before; or, where fewer of them do
 * so, the rows are taken as one, each followed by a few pixels that are none, and the sums are copied without these. An
 * image is worked on in pieces of rows that fit the L2 cache. The data gradient with stride 1 is the same convolution
 * with the kernel turned around. */
#pragma once

#ifdef LANES
#define DIRECT_BYTES (256 << 10) /* of the split image of a piece */
#define COPY_STEPS 5

typedef struct {
    job base;
    int axis;                       /* cut into pieces along this dimension */
    int64_t piece, pieces;          /* output rows of a piece (planes in 3 dimensions), and how many pieces */
    int64_t phases[3];              /* that kernel elements lie in */
    int64_t extent[3], plane;       /* of a phase of a piece, with what the kernel sees beyond it */
    int64_t channel, taps;          /* numbers of a channel in all phases, kernel elements */
    bool by_rows;                   /* else rows are taken as one */
    int64_t rows, spots, row_spots; /* of a whole piece, and of one row of it */
    int64_t packed_group;           /* numbers of packed weights in a group */
    int32_t *tap, *from, *to;       /* where each kernel element's phase begins, and each spot in a phase and in out */
    float *packed;                  /* [groups][out_channels / CHANNELS][in_channels][taps][CHANNELS] */
    size_t places_size, packed_size;
} direct_job;

/* Spots in rows are written where they belong, others are copied, which takes as long as a few steps. */
static void direct_plan_spots(direct_job *d) {
    const tp_conv_plan *p = d->base.plan;
    int64_t steps = d->base.window, rows = d->axis ? 1 : d->piece, columns = d->axis ? d->piece : p->out[1];
    int64_t last = ((rows - 1) * d->extent[1] + columns - 1) * d->extent[2] + p->out[2];
    d->rows = rows * columns;
    d->row_spots = (p->out[2] + LANES - 1) / LANES;
    d->spots = (last + LANES - 1) / LANES;
    d->by_rows = p->out[2] >= LANES && d->rows * d->row_spots * steps <= d->spots * (steps + COPY_STEPS);
    if (d->by_rows) d->spots = d->rows * d->row_spots;
}

static direct_job direct_plan(const tp_conv_plan *p, int64_t most) {
    direct_job d = {.base = make_job(p), .axis = p->out[0] > 1 ? 0 : 1, .taps = 1};
    int64_t phases = 1, row = p->in_channels * d.base.item;
    for (int a = 0; a < 3; a++) {
        int64_t last = (p->kernel[a] - 1) * p->dilation[a]; /* the kernel's last element */
        d.extent[a] = p->out[a] + last / p->stride[a];
        d.phases[a] = last < p->stride[a] ? last + 1 : p->stride[a];
        d.taps *= p->kernel[a];
        phases *= d.phases[a];
        if (a != d.axis) row *= d.extent[a];
    }
    int64_t beyond = d.extent[d.axis] - p->out[d.axis], fits = most / (row * phases) - beyond;
    fits = fits < 1 ? 1 : fits > p->out[d.axis] ? p->out[d.axis] : fits;
    d.pieces = (p->out[d.axis] + fits - 1) / fits;
    d.piece = (p->out[d.axis] + d.pieces - 1) / d.pieces;
    d.pieces = (p->out[d.axis] + d.piece - 1) / d.piece;
    d.extent[d.axis] = d.piece + beyond;
    d.plane = d.extent[0] * d.extent[1] * d.extent[2];
    d.channel = phases * d.plane;
    direct_plan_spots(&d);
    return d;
}

/* Whether lanes are filled well enough. */
static bool direct_fits(const tp_conv_plan *p) {
    job j = make_job(p);
    if (p->dtype != TP_FLOAT32 || j.in_place || j.window == 0 || p->batch == 0 || j.pixels == 0) return false;
    if (has_many_weights(&j) && p->batch * j.pixels >= MANY_COLUMNS) return false; /* they are read for each piece */
    direct_job d = direct_plan(p, DIRECT_BYTES);
    return 2 * j.pixels >= d.spots * LANES * d.pieces && d.channel < INT32_MAX && j.pixels < INT32_MAX;
}

static void direct_place_spots(direct_job *d) {
    const tp_conv_plan *p = d->base.plan;
    for (int64_t i = 0; i < d->spots; i++) {
        if (!d->by_rows) {
            d->from[i] = d->to[i] = (int32_t)(i * LANES);
            continue;
        }
        int64_t row = i / d->row_spots, x = i % d->row_spots * LANES;
        if (x + LANES > p->out[2]) x = p->out[2] - LANES;
        d->from[i] = (int32_t)((row / p->out[1] * d->extent[1] + row % p->out[1]) * d->extent[2] + x);
        d->to[i] = (int32_t)(row * p->out[2] + x);
    }
}

static int direct_start(direct_job *d, const tp_conv_plan *p, int64_t most) {
    *d = direct_plan(p, most);
    d->places_size = (size_t)(d->taps + 2 * d->spots) * sizeof *d->tap;
    int32_t *tap = d->tap = tp_alloc(d->places_size);
    if (!tap) return -1;
    d->from = d->tap + d->taps;
    d->to = d->from + d->spots;
    direct_place_spots(d);
    for (int64_t z = 0; z < p->kernel[0] * p->dilation[0]; z += p->dilation[0])
        for (int64_t y = 0; y < p->kernel[1] * p->dilation[1]; y += p->dilation[1])
            for (int64_t x = 0; x < p->kernel[2] * p->dilation[2]; x += p->dilation[2]) {
                int64_t phase = (z % p->stride[0] * d->phases[1] + y % p->stride[1]) * d->phases[2] + x % p->stride[2];
                int64_t row = z / p->stride[0] * d->extent[1] + y / p->stride[1];
                *tap++ = (int32_t)(phase * d->plane + row * d->extent[2] + x / p->stride[2]);
            }
    return 0;
}

/* ---- the split image ---- */

/* Where a row of output pixels of a piece begins in a phase. */
TP_INLINE int64_t start_of_row(const direct_job *d, int64_t row) {
    int64_t columns = d->base.plan->out[1];
    return (d->axis ? row : row / columns * d->extent[1] + row % columns) * d->extent[2];
}

/* A row of numbers; a short one is not worth a call. */
TP_INLINE void copy_row(float *to, const float *from, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(to + i, load(from + i));
#ifdef store_first
    if (i < n) store_first(to + i, n - i, load_first(from + i, n - i));
#else
    if (i < n && n >= LANES) store(to + n - LANES, load(from + n - LANES));
    else
        for (; i < n; i++) to[i] = from[i];
#endif
}

/* n numbers, every second one. */
TP_INLINE void copy_even(float *to, const float *from, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(to + i, load_even(from + 2 * i));
    if (i < n && n >= LANES) store(to + n - LANES, load_even(from + 2 * (n - LANES)));
    else
        for (; i < n; i++) to[i] = from[2 * i];
}

TP_INLINE void zero_row(float *to, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(to + i, (lanes){0});
#ifdef store_first
    if (i < n) store_first(to + i, n - i, (lanes){0});
#else
    for (; i < n; i++) *(volatile float *)(to + i) = 0; /* borders are narrow: no call of memset */
#endif
}

#ifdef load_between
/* A phase of neighbouring pixels whose rows are a vector each, border and all. */
static void split_narrow(const direct_job *d, const float *image, const int64_t origin[3], int64_t begin, int64_t end,
                         float *to) {
    const tp_conv_plan *p = d->base.plan;
    int64_t n = d->extent[2], rows = d->extent[1];
    for (int64_t a = 0, z = origin[0]; a < d->extent[0]; a++, z += p->stride[0]) {
        bool inside = z >= 0 && z < p->in[0];
        const float *plane = image + z * p->in[1] * p->in[2] + origin[2];
        for (int64_t b = 0, y = origin[1]; b < rows; b++, y += p->stride[1], to += n) {
            bool row = inside && y >= 0 && y < p->in[1];
            store_first(to, n, row ? load_between(plane + y * p->in[2], begin, end) : (lanes){0});
        }
    }
}
#endif

/* One phase of one channel's image: every stride-th pixel from `origin` on, of which some lie outside and are 0. */
TP_INLINE void split_phase(const direct_job *d, const float *image, const int64_t origin[3], float *to,
                           const int64_t step) {
    const tp_conv_plan *p = d->base.plan;
    int64_t n = d->extent[2], first = origin[2];
    int64_t begin = first < 0 ? (step - 1 - first) / step : 0,
            end = p->in[2] > first ? (p->in[2] - first + step - 1) / step : 0;
    if (begin > n) begin = n;
    if (end > n) end = n;
    if (end < begin) end = begin;
#ifdef load_between
    if (step == 1 && n <= LANES) {
        split_narrow(d, image, origin, begin, end, to);
        return;
    }
#endif
    for (int64_t a = 0, z = origin[0]; a < d->extent[0]; a++, z += p->stride[0])
        for (int64_t b = 0, y = origin[1]; b < d->extent[1]; b++, y += p->stride[1], to += n) {
            if (z < 0 || z >= p->in[0] || y < 0 || y >= p->in[1]) {
                zero_row(to, n);
                continue;
            }
            const float *row = image + (z * p->in[1] + y) * p->in[2] + first;
            zero_row(to, begin);
            if (step == 1) copy_row(to + begin, row + begin, end - begin);
            else if (step == 2) copy_even(to + begin, row + 2 * begin, end - begin);
            else
                for (int64_t i = begin; i < end; i++) to[i] = row[i * step];
            zero_row(to + end, n - end);
        }
}

static void split_image(const direct_job *d, int64_t image, int64_t group, int64_t piece, float *to) {
    const tp_conv_plan *p = d->base.plan;
    for (int64_t c = 0; c < p->in_channels; c++) {
        const float *from = (const float *)image_of(&d->base, d->base.in, image, group, c);
        for (int64_t z = 0; z < d->phases[0]; z++)
            for (int64_t y = 0; y < d->phases[1]; y++)
                for (int64_t x = 0; x < d->phases[2]; x++, to += d->plane) {
                    int64_t origin[3] = {z - p->padding[0], y - p->padding[1], x - p->padding[2]};
                    origin[d->axis] += piece * d->piece * p->stride[d->axis];
                    if (p->stride[2] == 1) split_phase(d, from, origin, to, 1);
                    else if (p->stride[2] == 2) split_phase(d, from, origin, to, 2);
                    else split_phase(d, from, origin, to, p->stride[2]);
                }
    }
}

static int64_t rows_of_piece(const direct_job *d, int64_t piece) {
    int64_t left = d->base.pixels / d->base.plan->out[2] - piece * d->rows;
    return left < d->rows ? left : d->rows;
}

/* ---- forward ---- */

/* turned: weight belongs to the convolution whose data gradient this is, [in_channels][out_channels][taps] with the
 * elements in reverse. */
static void direct_pack(direct_job *d, const float *weight, bool turned) {
    const tp_conv_plan *p = d->base.plan;
    int64_t in = p->in_channels, out = p->out_channels, taps = d->taps, window = in * taps;
    float *to = d->packed;
    for (int64_t g = 0; g < p->groups; g++, weight += out * window)
        for (int64_t first = 0; first < out; first += CHANNELS, to += window * CHANNELS) {
            int64_t channels = out - first < CHANNELS ? out - first : CHANNELS;
            if (channels < CHANNELS) memset(to, 0, (size_t)(window * CHANNELS) * sizeof *to);
            if (!turned) turn(weight + first * window, window, channels, window, to, CHANNELS);
            for (int64_t i = 0; turned && i < window; i++)
                for (int64_t o = 0; o < channels; o++)
                    to[i * CHANNELS + o] = weight[(i / taps * out + first + o) * taps + taps - 1 - i % taps];
        }
}

#define STRETCH 128 /* terms in a row: the error of a longer sum grows with its length */
#define BAND 64     /* output channels that use what the L1 cache has of the image */

/* n spots of m channels in each of `blocks`, m and n known where this is called, so that the sums stay in registers for
 * a stretch of input channels. The stretches' sums are added up; a stretch is summed for all blocks before the next,
 * since the L1 cache holds what it reads of the image. */
TP_INLINE void direct_sums(const direct_job *d, const float *in, const float *w, const float *bias, int64_t blocks,
                           int64_t spot, float *out, int64_t step, const int m, const int n) {
    const float *at[MOST_VECTORS];
    lanes total[BAND / CHANNELS][CHANNELS * GROUP];
    const int64_t all = d->base.plan->in_channels, stretch = d->taps < STRETCH ? STRETCH / d->taps : 1;
    UNROLL for (int v = 0; v < n; v++) at[v] = in + d->from[spot + v];
    for (int64_t begin = 0, end; begin < all; begin = end) {
        end = all - begin < stretch ? all : begin + stretch;
        for (int64_t b = 0; b < blocks; b++) {
            lanes sum[CHANNELS][MOST_VECTORS];
            const float *one_w = w + (b * all + begin) * d->taps * CHANNELS;
            UNROLL for (int o = 0; o < m; o++) UNROLL for (int v = 0; v < n; v++) sum[o][v] = (lanes){0};
            for (int64_t c = begin, first = begin * d->channel; c < end; c++, first += d->channel)
                for (int64_t t = 0; t < d->taps; t++, one_w += CHANNELS) {
                    lanes x[MOST_VECTORS];
                    UNROLL for (int v = 0; v < n; v++) x[v] = load(at[v] + first + d->tap[t]);
                    UNROLL for (int o = 0; o < m; o++) {
                        lanes one = all_lanes(one_w[o]);
                        UNROLL for (int v = 0; v < n; v++) sum[o][v] = multiply_add(one, x[v], sum[o][v]);
                    }
                }
            if (begin > 0)
                UNROLL for (int o = 0; o < m; o++) UNROLL for (int v = 0; v < n; v++) sum[o][v] += total[b][o * n + v];
            if (end < all) {
                UNROLL for (int o = 0; o < m; o++) UNROLL for (int v = 0; v < n; v++) total[b][o * n + v] = sum[o][v];
                continue;
            }
            float *to = out + b * CHANNELS * step;
            UNROLL for (int o = 0; o < m; o++) UNROLL for (int v = 0; v < n; v++)
                store(to + o * step + d->to[spot + v], sum[o][v] + all_lanes(bias[b * CHANNELS + o]));
        }
    }
}

/* The first `spots` of a piece in m channels of each of `blocks`, `most` at a time. */
TP_INLINE void direct_channels(const direct_job *d, const float *in, const float *w, const float *bias, int64_t blocks,
                               int64_t spots, float *out, int64_t step, const int m, const int most) {
    int64_t s = 0;
    for (; s + most <= spots; s += most) direct_sums(d, in, w, bias, blocks, s, out, step, m, most);
    if (most > 4 && s + 4 <= spots) direct_sums(d, in, w, bias, blocks, s, out, step, m, 4), s += 4;
    if (most > 2 && s + 2 <= spots) direct_sums(d, in, w, bias, blocks, s, out, step, m, 2), s += 2;
    for (; s < spots; s++) direct_sums(d, in, w, bias, blocks, s, out, step, m, 1);
}

/* `count` channels: whole blocks, at most BAND, or fewer than a block. */
static void direct_band(const direct_job *d, const float *in, const float *w, const float *biases, int64_t count,
                        int64_t spots, float *out, int64_t step) {
    float bias[BAND] = {0};
    if (biases) memcpy(bias, biases, (size_t)count * sizeof *bias);
    if (count == 1) direct_channels(d, in, w, bias, 1, spots, out, step, 1, MOST_VECTORS);
    else if (count <= CHANNELS / 2) direct_channels(d, in, w, bias, 1, spots, out, step, CHANNELS / 2, HALF_VECTORS);
    else direct_channels(d, in, w, bias, (count + CHANNELS - 1) / CHANNELS, spots, out, step, CHANNELS, GROUP);
}

/* Some rows of one channel, out of sums that lie as spots do. */
static void copy_rows(const direct_job *d, const float *sums, int64_t rows, float *out) {
    const tp_conv_plan *p = d->base.plan;
    if (d->by_rows) {
        copy_row(out, sums, rows * p->out[2]);
        return;
    }
    for (int64_t row = 0; row < rows; row++, out += p->out[2]) copy_row(out, sums + start_of_row(d, row), p->out[2]);
}

static void direct_piece(const direct_job *d, const float *in, float *sums, int64_t image, int64_t group,
                         int64_t piece) {
    const tp_conv_plan *p = d->base.plan;
    const float *w = d->packed + group * d->packed_group, *bias = (const float *)d->base.bias;
    int64_t rows = rows_of_piece(d, piece), spots = d->by_rows ? rows * d->row_spots : d->spots,
            room = d->spots * LANES;
    float *out = (float *)output_of(&d->base, d->base.out, image, group) + piece * d->rows * p->out[2];
    if (bias) bias += group * p->out_channels;
    for (int64_t o = 0, count; o < p->out_channels; o += count, w += count * d->base.window) {
        const int64_t left = p->out_channels - o;
        count = left >= BAND ? BAND : left >= CHANNELS ? left / CHANNELS * CHANNELS : left;
        float *to = out + o * d->base.pixels;
        if (d->by_rows && (count == 1 || count == CHANNELS / 2 || count % CHANNELS == 0)) {
            direct_band(d, in, w, bias ? bias + o : NULL, count, spots, to, d->base.pixels);
            continue;
        }
        direct_band(d, in, w, bias ? bias + o : NULL, count, spots, sums, room);
        for (int64_t i = 0; i < count; i++) copy_rows(d, sums + i * room, rows, to + i * d->base.pixels);
    }
}

static void run_direct(int64_t begin, int64_t end, void *context) {
    const direct_job *d = context;
    const tp_conv_plan *p = d->base.plan;
    int64_t split = p->in_channels * d->channel, behind = d->spots * LANES;
    int64_t most = p->out_channels < BAND ? p->out_channels + CHANNELS - 1 : BAND, sums = most * d->spots * LANES;
    size_t size = (size_t)(split + behind + sums) * sizeof(float);
    float *memory = tp_alloc(size);
    if (!memory) return;
    memset(memory + split, 0, (size_t)behind * sizeof(float)); /* what spots after the last row read */
    for (int64_t i = begin; i < end && tp_host_look() == 0; i++) {
        int64_t piece = i % d->pieces, group = i / d->pieces % p->groups, image = i / d->pieces / p->groups;
        split_image(d, image, group, piece, memory);
        direct_piece(d, memory, memory + split + behind, image, group, piece);
    }
    tp_free(memory, size);
}

static int direct_forward(const tp_conv_plan *p, const void *in, const void *weight, const void *bias, void *out,
                          bool turned) {
    direct_job d;
    if (direct_start(&d, p, DIRECT_BYTES) < 0) return -1;
    d.packed_group = (p->out_channels + CHANNELS - 1) / CHANNELS * CHANNELS * d.base.window;
    d.packed_size = (size_t)(p->groups * d.packed_group) * sizeof(float);
    d.base.in = in, d.base.bias = bias, d.base.out = out;
    d.packed = tp_alloc(d.packed_size);
    if (d.packed) direct_pack(&d, weight, turned);
    int status = d.packed ? run(&d.base, &d, p->batch * p->groups * d.pieces, run_direct) : -1;
    tp_free(d.packed, d.packed_size);
    tp_free(d.tap, d.places_size);
    return status;
}

/* The convolution that computes a plan's data gradient; false if none does. */
static bool turned_plan(const tp_conv_plan *p, tp_conv_plan *q) {
    *q = *p;
    q->in_channels = p->out_channels;
    q->out_channels = p->in_channels;
    for (int i = 0; i < 3; i++) {
        q->in[i] = p->out[i];
        q->out[i] = p->in[i];
        q->padding[i] = p->dilation[i] * (p->kernel[i] - 1) - p->padding[i];
        if (p->stride[i] != 1 || q->padding[i] < 0) return false;
    }
    return true;
}
#endif
