/* convolution_winograd.h: 3x3 convolutions of float32 with stride 1 by Winograd's minimal filtering, F(2x2, 3x3) (Lavin
 * and Gray, Fast Algorithms for Convolutional Neural Networks, 2015, arXiv:1509.09308); part of convolution_loops.c.
 *
 * A tile of 2x2 output pixels sees 4x4 input pixels. Both are changed into 16 spots, in each of which the convolution
 * is one product: 16 multiplications where the definition has 36. F(4x4, 3x3) would have 36 for 144, and some ten times
 * the rounding; here it is that of the plain sum (test_convolution.py bounds both alike), though of the largest pixels
 * of the tile instead of those of the window. A number too large to be subtracted from another, an infinity or a NaN
 * would spread to its neighbours: an input or weight with such a number is refused and goes another way.
 *
 * Rows and columns are split into even and odd ones, so that each of the 16 pixels of tile after tile lies side by
 * side, and every step runs along the tiles. The rows of tiles follow each other with one tile between them that is
 * none, images with a row of such tiles: their sums are not stored. A block is as many tiles as keep the spots of all
 * channels in the L2 cache. */
#pragma once

#ifdef LANES
#define SPOTS 16
#define TOO_LARGE 0x1p60f
#define WINOGRAD_BYTES (768 << 10)
#define CHUNK 64
#define MIN_CHANNELS 24 /* with fewer, the changes cost more than the products save */

typedef struct {
    job base;
    float *weight;                 /* [groups][SPOTS][in_channels / CHUNK][out_channels / CHANNELS][CHUNK][CHANNELS] */
    int64_t spot_weights, in, out; /* floats of a spot: its weights in a group, its tiles on either side */
    int64_t rows, pitch;           /* tiles in a column and in a row, the one that is none included */
    int64_t tiles, pieces;         /* tiles of a block, blocks of a lot of images */
    size_t size;
    _Atomic bool refused;
} winograd_job;

static bool winograd_fits(const tp_conv_plan *p) {
    bool flat = p->kernel[0] == 1 && p->in[0] == 1 && p->padding[0] == 0;
    for (int d = 1; d < 3; d++) flat = flat && p->kernel[d] == 3 && p->stride[d] == 1 && p->dilation[d] == 1;
    return flat && p->dtype == TP_FLOAT32 && p->in_channels >= MIN_CHANNELS && p->out_channels >= MIN_CHANNELS &&
           p->out[1] >= 8 && p->out[2] >= 8 && p->batch > 0;
}

static int winograd_start(winograd_job *w, const tp_conv_plan *p) {
    *w = (winograd_job){.base = make_job(p)};
    w->rows = (p->out[1] + 1) / 2;
    w->pitch = (p->out[2] + 1) / 2 + 1;
    int64_t image = (w->rows + 1) * w->pitch, most = WINOGRAD_BYTES / 4 / SPOTS / (p->in_channels + p->out_channels);
    most = most < GROUP * LANES ? GROUP * LANES : most / (GROUP * LANES) * (GROUP * LANES);
    w->base.images = image < most && p->batch > 1 ? most / image : 1;
    if (w->base.images > p->batch) w->base.images = p->batch;
    w->base.blocks = (p->batch + w->base.images - 1) / w->base.images;
    int64_t all = (w->base.images * (w->rows + 1) - 1) * w->pitch;
    w->pieces = (all + most - 1) / most;
    w->tiles = ((all + w->pieces - 1) / w->pieces + LANES - 1) / LANES * LANES;
    w->in = p->in_channels * w->tiles;
    int64_t out_channels = (p->out_channels + CHANNELS - 1) / CHANNELS * CHANNELS;
    w->out = out_channels * w->tiles;
    w->spot_weights = out_channels * p->in_channels;
    w->size = (size_t)(p->groups * SPOTS * w->spot_weights) * sizeof(float);
    return (w->weight = tp_alloc(w->size)) ? 0 : -1;
}

/* The largest of `largest` and the magnitudes of n numbers; a NaN is larger than all. */
TP_INLINE uint32_t largest_bits(const float *x, int64_t n, uint32_t largest) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}
static bool too_large(uint32_t bits) {
    const float limit = TOO_LARGE;
    uint32_t limit_bits;
    memcpy(&limit_bits, &limit, sizeof limit_bits);
    return bits >= limit_bits;
}

/* ---- weights: G g G' with G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1] ---- */

TP_INLINE void change_weights(const float (*g)[CHANNELS], float *to, int64_t step) {
    float h[4][3][CHANNELS];
    for (int x = 0; x < 3; x++)
        for (int o = 0; o < CHANNELS; o++) {
            float a = g[x][o], b = g[3 + x][o], c = g[6 + x][o];
            h[0][x][o] = a;
            h[1][x][o] = 0.5f * ((a + c) + b);
            h[2][x][o] = 0.5f * ((a + c) - b);
            h[3][x][o] = c;
        }
    for (int y = 0; y < 4; y++, to += 4 * step)
        for (int o = 0; o < CHANNELS; o++) {
            float a = h[y][0][o], b = h[y][1][o], c = h[y][2][o];
            to[o] = a;
            to[step + o] = 0.5f * ((a + c) + b);
            to[2 * step + o] = 0.5f * ((a + c) - b);
            to[3 * step + o] = c;
        }
}

static int64_t chunk_of(const tp_conv_plan *p, int64_t first) {
    return p->in_channels - first < CHUNK ? p->in_channels - first : CHUNK;
}

/* Transforms the weight of CHANNELS output channels and a chunk of input channels; turned: as for direct_pack. */
static void change_chunk(const winograd_job *w, const float *weight, bool turned, int64_t o, int64_t first, float *to) {
    const tp_conv_plan *p = w->base.plan;
    for (int64_t c = first; c < first + chunk_of(p, first); c++, to += CHANNELS) {
        float taps[9][CHANNELS];
        for (int64_t i = 0; i < CHANNELS; i++) {
            int64_t k = o + i < p->out_channels ? o + i : p->out_channels - 1;
            const float *from = weight + (turned ? c * p->out_channels + k : k * p->in_channels + c) * 9;
            for (int t = 0; t < 9; t++) taps[t][i] = from[turned ? 8 - t : t];
        }
        change_weights(taps, to, w->spot_weights);
    }
}

static void winograd_weights(winograd_job *w, const float *weight, bool turned) {
    const tp_conv_plan *p = w->base.plan;
    int64_t size = p->in_channels * p->out_channels * 9;
    if (too_large(largest_bits(weight, p->groups * size, 0))) w->refused = true;
    for (int64_t g = 0; g < p->groups && !w->refused; g++) {
        float *to = w->weight + g * SPOTS * w->spot_weights;
        for (int64_t c = 0; c < p->in_channels; c += CHUNK)
            for (int64_t o = 0; o < p->out_channels; o += CHANNELS, to += CHANNELS * chunk_of(p, c))
                change_chunk(w, weight + g * size, turned, o, c, to);
    }
}

/* ---- input: B' d B with B' = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1] ---- */

typedef struct {
    const winograd_job *w;
    int64_t first, images, group, begin, end; /* the images, and which of their tiles */
    int64_t row, rows;                        /* the rows of tiles that they lie in */
    float *spots, *sums;                      /* [SPOTS][channels][tiles] */
    float *line, *phase[2][2];                /* phase[y % 2][x % 2] of rows + 1 rows of one channel */
    float *pixel[2][2];                       /* the same of the output's */
    uint32_t largest;
} winograd_block;

/* Row y of an image, split into its even and odd columns. */
static void split_tile_row(winograd_block *b, const float *image, int64_t y, float *even, float *odd) {
    const tp_conv_plan *p = b->w->base.plan;
    int64_t pitch = b->w->pitch, left = p->padding[2], n = p->in[2];
    if (y < 0 || y >= p->in[1]) {
        memset(even, 0, (size_t)pitch * sizeof(float));
        memset(odd, 0, (size_t)pitch * sizeof(float));
        return;
    }
    if (n > 2 * pitch - left) n = 2 * pitch - left;
    memcpy(b->line + left, image + y * p->in[2], (size_t)n * sizeof(float));
    b->largest = largest_bits(b->line, 2 * pitch, b->largest);
    for (int64_t i = 0; i < pitch; i++) {
        even[i] = b->line[2 * i];
        odd[i] = b->line[2 * i + 1];
    }
}

static void split_channel(winograd_block *b, int64_t channel) {
    const winograd_job *w = b->w;
    for (int64_t i = 0; i <= b->rows; i++) {
        int64_t image = (b->row + i) / (w->rows + 1), y = 2 * ((b->row + i) % (w->rows + 1)) - w->base.plan->padding[1];
        const float *from = (const float *)image_of(&w->base, w->base.in, b->first + image, b->group, channel);
        for (int half = 0; half < 2; half++)
            split_tile_row(b, from, y + half, b->phase[half][0] + i * w->pitch, b->phase[half][1] + i * w->pitch);
    }
}

static void change_input(winograd_block *b, int64_t channel) {
    const winograd_job *w = b->w;
    float *to = b->spots + channel * w->tiles;
    const float *from[4][4];
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++)
            from[y][x] = b->phase[y % 2][x % 2] + (b->begin - b->row * w->pitch) + y / 2 * w->pitch + x / 2;
    for (int64_t i = 0; i < b->end - b->begin; i += LANES) {
        lanes d[4][4];
        for (int x = 0; x < 4; x++) {
            lanes a = load(from[0][x] + i), e = load(from[1][x] + i), f = load(from[2][x] + i),
                  g = load(from[3][x] + i);
            d[0][x] = a - f;
            d[1][x] = e + f;
            d[2][x] = f - e;
            d[3][x] = e - g;
        }
        for (int y = 0; y < 4; y++) {
            float *at = to + 4 * y * w->in + i;
            store(at, d[y][0] - d[y][2]);
            store(at + w->in, d[y][1] + d[y][2]);
            store(at + 2 * w->in, d[y][2] - d[y][1]);
            store(at + 3 * w->in, d[y][1] - d[y][3]);
        }
    }
}

/* ---- the products of one spot, some input channels at a time, whose sums are added up: less rounding, and these
 * channels' tiles stay in the L1 cache ---- */

/* CHANNELS sums of n vectors; n is known where this is called, so that they stay in registers. `more`: onto `out`. */
TP_INLINE void winograd_sums(const float *weight, const float *in, int64_t channels, int64_t step, float *out,
                             bool more, const int n) {
    lanes sum[CHANNELS][GROUP];
    UNROLL for (int o = 0; o < CHANNELS; o++) UNROLL for (int v = 0; v < n; v++) sum[o][v] = (lanes){0};
    for (int64_t c = 0; c < channels; c++, in += step, weight += CHANNELS) {
        lanes x[GROUP];
        UNROLL for (int v = 0; v < n; v++) x[v] = load(in + v * LANES);
        UNROLL for (int o = 0; o < CHANNELS; o++) {
            lanes one = all_lanes(weight[o]);
            UNROLL for (int v = 0; v < n; v++) sum[o][v] = multiply_add(one, x[v], sum[o][v]);
        }
    }
    UNROLL for (int o = 0; o < CHANNELS; o++) UNROLL for (int v = 0; v < n; v++) {
        float *at = out + o * step + v * LANES;
        if (more) sum[o][v] += load(at);
        store(at, sum[o][v]);
    }
}

static void multiply_spot(const winograd_block *b, int64_t spot) {
    const winograd_job *w = b->w;
    const tp_conv_plan *p = w->base.plan;
    int64_t vectors = (b->end - b->begin + LANES - 1) / LANES;
    const float *weight = w->weight + (b->group * SPOTS + spot) * w->spot_weights;
    for (int64_t c = 0; c < p->in_channels; c += CHUNK) {
        const float *in = b->spots + spot * w->in + c * w->tiles;
        float *out = b->sums + spot * w->out;
        int64_t n = chunk_of(p, c);
        for (int64_t o = 0; o < p->out_channels; o += CHANNELS) {
            int64_t v = 0;
            for (; v + GROUP <= vectors; v += GROUP)
                winograd_sums(weight, in + v * LANES, n, w->tiles, out + v * LANES, c > 0, GROUP);
            if (vectors - v == 2) winograd_sums(weight, in + v * LANES, n, w->tiles, out + v * LANES, c > 0, 2);
            if (vectors - v == 1) winograd_sums(weight, in + v * LANES, n, w->tiles, out + v * LANES, c > 0, 1);
            weight += CHANNELS * n;
            out += CHANNELS * w->tiles;
        }
    }
}

/* ---- output: A' m A with A' = [1 1 1 0; 0 1 -1 -1] ---- */

static void change_sums(winograd_block *b, int64_t channel, float bias) {
    const winograd_job *w = b->w;
    const float *from = b->sums + channel * w->tiles;
    const lanes add = all_lanes(bias);
    for (int64_t i = 0; i < b->end - b->begin; i += LANES) {
        lanes m[2][4];
        for (int x = 0; x < 4; x++) {
            const float *at = from + x * w->out + i;
            lanes a = load(at + 4 * w->out), e = load(at + 8 * w->out);
            m[0][x] = load(at) + (a + e);
            m[1][x] = (a - e) - load(at + 12 * w->out);
        }
        for (int y = 0; y < 2; y++) {
            store(b->pixel[y][0] + i, (m[y][0] + (m[y][1] + m[y][2])) + add);
            store(b->pixel[y][1] + i, ((m[y][1] - m[y][2]) - m[y][3]) + add);
        }
    }
}

/* n pixels of a row, from its even and odd columns. */
static void join_row(float *to, int64_t n, const float *even, const float *odd) {
    for (int64_t i = 0; i < n / 2; i++) {
        to[2 * i] = even[i];
        to[2 * i + 1] = odd[i];
    }
    if (n % 2) to[n - 1] = even[n / 2];
}

static void join_channel(const winograd_block *b, int64_t channel) {
    const winograd_job *w = b->w;
    const tp_conv_plan *p = w->base.plan;
    for (int64_t row = b->row; row < b->row + b->rows; row++) {
        int64_t image = row / (w->rows + 1), y = row % (w->rows + 1) * 2;
        int64_t begin = row == b->row ? b->begin - row * w->pitch : 0, end = b->end - row * w->pitch;
        int64_t from = row * w->pitch + begin - b->begin, n = (end < w->pitch ? end : w->pitch) * 2;
        float *to = (float *)output_of(&w->base, w->base.out, b->first + image, b->group);
        to += (channel * p->out[1] + y) * p->out[2] + 2 * begin;
        n = (n < p->out[2] ? n : p->out[2]) - 2 * begin;
        if (n <= 0) continue;
        for (int half = 0; half < 2 && y + half < p->out[1]; half++, to += p->out[2])
            join_row(to, n, b->pixel[half][0] + from, b->pixel[half][1] + from);
    }
}

/* ---- over blocks ---- */

static void winograd_unit(const winograd_job *w, winograd_block *b, int64_t unit) {
    const tp_conv_plan *p = w->base.plan;
    int64_t lot = unit / w->pieces / p->groups;
    b->group = unit / w->pieces % p->groups;
    b->first = lot * w->base.images;
    b->images = images_of(&w->base, lot);
    int64_t all = (b->images * (w->rows + 1) - 1) * w->pitch;
    b->begin = unit % w->pieces * w->tiles;
    b->end = all - b->begin < w->tiles ? all : b->begin + w->tiles;
    if (b->begin >= b->end) return;
    b->row = b->begin / w->pitch;
    b->rows = (b->end - 1) / w->pitch - b->row + 1;
    for (int64_t c = 0; c < p->in_channels; c++) {
        split_channel(b, c);
        change_input(b, c);
    }
    for (int spot = 0; spot < SPOTS; spot++) multiply_spot(b, spot);
    for (int64_t o = 0; o < p->out_channels; o++) {
        change_sums(b, o, w->base.bias ? ((const float *)w->base.bias)[b->group * p->out_channels + o] : 0);
        join_channel(b, o);
    }
}

static void run_winograd(int64_t begin, int64_t end, void *context) {
    winograd_job *w = context;
    winograd_block b = {.w = w};
    int64_t line = w->tiles + 3 * w->pitch + 2 * LANES, spots = SPOTS * w->in, sums = SPOTS * w->out;
    size_t size = (size_t)(spots + sums + 9 * line) * sizeof(float);
    float *memory = tp_alloc(size);
    if (!memory) return;
    b.spots = memory;
    b.sums = b.spots + spots;
    b.line = b.sums + sums;
    for (int i = 0; i < 4; i++) {
        b.phase[i / 2][i % 2] = b.line + (1 + i) * line;
        b.pixel[i / 2][i % 2] = b.line + (5 + i) * line;
    }
    memset(b.line, 0, (size_t)(5 * line) * sizeof(float)); /* the border, and what vectors read after the ends */
    for (int64_t i = begin; i < end && !w->refused && tp_host_look() == 0; i++) winograd_unit(w, &b, i);
    if (too_large(b.largest)) w->refused = true;
    tp_free(memory, size);
}

static int winograd_forward(const tp_conv_plan *p, const void *in, const void *weight, const void *bias, void *out,
                            bool turned) {
    winograd_job w;
    if (winograd_start(&w, p) < 0) return -1;
    winograd_weights(&w, weight, turned);
    w.base.in = in, w.base.bias = bias, w.base.out = out;
    int status = w.refused ? 0 : run(&w.base, &w, w.base.blocks * p->groups * w.pieces, run_winograd);
    tp_free(w.weight, w.size);
    return status == 0 && w.refused ? REFUSED : status;
}
#endif
