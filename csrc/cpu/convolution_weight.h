/* convolution_weight.h: the weight gradient of float32 convolutions in registers; part of convolution_loops.c.
 *
 * The input is split as in convolution_direct.h, and each kernel element is a sum over pixels. With many output
 * channels these lie in the lanes: the gradient is turned to [pixels][channels], and a pixel of some channels times one
 * of the input goes to some kernel elements at once. With few, pixels lie in the lanes, which are added up at the end
 * of a piece. */
#pragma once

#ifdef LANES
#define WEIGHT_BYTES (192 << 10) /* of the split image of a piece */
#define BLOCK_VECTORS (CHANNELS / 2)
#define BLOCK_CHANNELS (BLOCK_VECTORS * LANES)
#define ELEMENTS 6      /* of the kernel, worked on together */
#define MOST_ELEMENTS 8 /* where one vector has all channels */
/* Adding up the pieces' sums costs as much as making them, if there are so many or a piece has so few pixels. */
#define SUMS_BYTES (1 << 20)
#define FEW_PIXELS 48

typedef struct {
    const direct_job *d;
    float *split, *turned; /* a piece of the input; of the gradient, whose lanes after the last channel stay 0 */
    float *sums;           /* [in_channels][taps][channels] */
    int64_t *element;      /* where each kernel element begins in split */
    int64_t channels;      /* in whole vectors */
} weight_worker;

static bool weight_fits(const tp_conv_plan *p) {
    job j = make_job(p);
    if (p->dtype != TP_FLOAT32 || j.in_place || j.window == 0 || p->batch == 0 || j.pixels == 0) return false;
    direct_job d = direct_plan(p, WEIGHT_BYTES);
    if (p->out_channels * j.window * j.item > SUMS_BYTES || d.rows * p->out[2] < FEW_PIXELS) return false;
    return p->out[2] >= 4 && d.channel < INT32_MAX;
}

/* n vectors of channels and m kernel elements, both known where this is called. */
TP_INLINE void weight_sums(const direct_job *d, const float *const x[], const float *grad, int64_t rows, float *to,
                           int64_t step, int64_t elements, const int n, const int m) {
    const tp_conv_plan *p = d->base.plan;
    lanes sum[MOST_ELEMENTS][BLOCK_VECTORS];
    UNROLL for (int e = 0; e < m; e++) UNROLL for (int v = 0; v < n; v++) sum[e][v] = (lanes){0};
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = start_of_row(d, row), end = at + p->out[2];
        for (; at < end; at++, grad += n * LANES) {
            lanes g[BLOCK_VECTORS];
            UNROLL for (int v = 0; v < n; v++) g[v] = load(grad + v * LANES);
            UNROLL for (int e = 0; e < m; e++) {
                lanes one = all_lanes(x[e][at]);
                UNROLL for (int v = 0; v < n; v++) sum[e][v] = multiply_add(one, g[v], sum[e][v]);
            }
        }
    }
    UNROLL for (int e = 0; e < m; e++) UNROLL for (int v = 0; v < n; v++) if (e < elements)
        store(to + e * step + v * LANES, load(to + e * step + v * LANES) + sum[e][v]);
}

/* All kernel elements of n vectors of channels. */
TP_INLINE void weight_channels(const weight_worker *w, const float *grad, int64_t rows, float *sums, const int n,
                               const int m) {
    const direct_job *d = w->d;
    int64_t window = d->base.window;
    for (int64_t e = 0; e < window; e += m) {
        const float *x[MOST_ELEMENTS];
        for (int64_t i = 0; i < m; i++) x[i] = w->split + w->element[e + i < window ? e + i : window - 1];
        weight_sums(d, x, grad, rows, sums + e * w->channels, w->channels, window - e, n, m);
    }
}

static void weight_piece(const weight_worker *w, const float *grad, int64_t rows) {
    const direct_job *d = w->d;
    const tp_conv_plan *p = d->base.plan;
    int64_t pixels = rows * p->out[2];
    for (int64_t o = 0; o < w->channels; o += BLOCK_CHANNELS) {
        int64_t vectors = w->channels - o < BLOCK_CHANNELS ? (w->channels - o) / LANES : BLOCK_VECTORS;
        int64_t count = p->out_channels - o < BLOCK_CHANNELS ? p->out_channels - o : BLOCK_CHANNELS;
        float *turned = w->turned + o * d->rows * p->out[2];
        turn(grad + o * d->base.pixels, d->base.pixels, count, pixels, turned, vectors * LANES);
        if (vectors == 1) weight_channels(w, turned, rows, w->sums + o, 1, MOST_ELEMENTS);
        else if (vectors == 2) weight_channels(w, turned, rows, w->sums + o, 2, ELEMENTS);
#if BLOCK_VECTORS > 2
        else if (vectors == 3) weight_channels(w, turned, rows, w->sums + o, 3, ELEMENTS);
        else weight_channels(w, turned, rows, w->sums + o, 4, ELEMENTS);
#endif
    }
}

/* ---- few channels ---- */

TP_INLINE float sum_of_lanes(lanes v) {
    float each[LANES];
    store(each, v);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) each[i] += each[i + half];
    return each[0];
}

/* One channel and three kernel elements; a row's last lanes may be empty. */
static void few_sums(const direct_job *d, const float *const x[3], const float *grad, int64_t rows, float sums[3]) {
    const tp_conv_plan *p = d->base.plan;
    lanes sum[3][2] = {{{0}}};
    int64_t whole = p->out[2] / LANES * LANES, rest = p->out[2] - whole;
    for (int64_t row = 0; row < rows; row++, grad += p->out[2]) {
        int64_t at = start_of_row(d, row), i = 0;
        for (; i < whole; i += LANES) {
            lanes g = load(grad + i);
            UNROLL for (int e = 0; e < 3; e++) sum[e][0] = multiply_add(g, load(x[e] + at + i), sum[e][0]);
        }
        if (!rest) continue;
        lanes g = load_first(grad + i, rest);
        UNROLL for (int e = 0; e < 3; e++) sum[e][1] = multiply_add(g, load_first(x[e] + at + i, rest), sum[e][1]);
    }
    for (int e = 0; e < 3; e++) sums[e] = sum_of_lanes(sum[e][0] + sum[e][1]);
}

static void few_piece(const weight_worker *w, const float *grad, int64_t rows) {
    const direct_job *d = w->d;
    int64_t window = d->base.window;
    for (int64_t o = 0; o < d->base.plan->out_channels; o++)
        for (int64_t e = 0; e < window; e += 3) {
            const float *x[3];
            float sums[3];
            for (int64_t i = 0; i < 3; i++) x[i] = w->split + w->element[e + i < window ? e + i : window - 1];
            few_sums(d, x, grad + o * d->base.pixels, rows, sums);
            for (int64_t i = 0; i < 3 && e + i < window; i++) w->sums[(e + i) * w->channels + o] += sums[i];
        }
}

/* ---- over parts ---- */

static void weight_part(const weight_worker *w, int64_t group, int64_t part, float *weight) {
    const direct_job *d = w->d;
    const tp_conv_plan *p = d->base.plan;
    bool few = p->out_channels < LANES / 2;
    memset(w->sums, 0, (size_t)(d->base.window * w->channels) * sizeof(float));
    for (int64_t i = part; i < d->base.blocks && tp_host_look() == 0; i += d->base.parts) {
        int64_t image = i / d->pieces, piece = i % d->pieces;
        const float *grad = (const float *)output_of(&d->base, d->base.out, image, group);
        split_image(d, image, group, piece, w->split);
        (few ? few_piece : weight_piece)(w, grad + piece * d->rows * p->out[2], rows_of_piece(d, piece));
    }
    turn(w->sums, w->channels, d->base.window, p->out_channels, weight, d->base.window);
}

static void run_weight_in_registers(int64_t begin, int64_t end, void *context) {
    const direct_job *d = context;
    const tp_conv_plan *p = d->base.plan;
    weight_worker w = {.d = d, .channels = (p->out_channels + LANES - 1) / LANES * LANES};
    int64_t split = p->in_channels * d->channel, turned = w.channels * d->rows * p->out[2];
    size_t numbers = (size_t)(split + turned + d->base.window * w.channels) * sizeof(float);
    size_t size = numbers + (size_t)d->base.window * sizeof(int64_t);
    w.element = tp_alloc(size);
    if (!w.element) return;
    for (int64_t e = 0; e < d->base.window; e++) w.element[e] = e / d->taps * d->channel + d->tap[e % d->taps];
    w.split = (float *)(w.element + d->base.window);
    w.turned = w.split + split;
    w.sums = w.turned + turned;
    memset(w.turned, 0, (size_t)turned * sizeof(float));
    int64_t weights = p->out_channels * d->base.window;
    for (int64_t i = begin; i < end; i++)
        weight_part(&w, i / d->base.parts, i % d->base.parts, (float *)d->base.partial + i * weights);
    tp_free(w.element, size);
}

static int sum_parts(job *j, void *context, tp_range_fn fn, char *weight);

static int weight_in_registers(const tp_conv_plan *p, const void *out, const void *in, void *weight) {
    direct_job d;
    if (direct_start(&d, p, WEIGHT_BYTES) < 0) return -1;
    d.base.in = in, d.base.out = (char *)out;
    d.base.blocks = p->batch * d.pieces;
    d.base.parts = d.base.blocks < PARTS ? d.base.blocks : PARTS;
    int status = sum_parts(&d.base, &d, run_weight_in_registers, weight);
    tp_free(d.tap, d.places_size);
    return status;
}
#endif
