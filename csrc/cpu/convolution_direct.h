/* convolution_direct.h: convolutions of small float32 images in registers, without unfolding; part of
 * convolution_loops.c.
 *
 * Twelve vectors of 8 sums stay in registers: 4 channels by 3 spots, a spot being 8 neighbours in a row of output
 * pixels. An image with its border is small enough for the L2 cache, and a step of the innermost loop is one kernel
 * element: 3 loads, 4 broadcasts, 12 multiply-adds. A row that is no multiple of 8 ends with a spot that overlaps the
 * one before. The data gradient with stride 1 is the same convolution with the kernel turned around. The weight
 * gradient holds 4 output channels by 3 kernel elements instead and sums over pixels. */
#pragma once

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#define DIRECT_BYTES (192 << 10) /* of an image with its border */

typedef struct {
    job base;
    float *packed; /* [groups][out_channels / 4][in_channels][taps][4] */
    int64_t packed_group;
    int32_t *tap, *from, *to; /* offsets of the kernel's elements, and of the spots in and out */
    int64_t taps, spots;
    void *memory;
    size_t size;
} direct_job;

static bool direct_fits(const job *j) {
    const tp_conv_plan *p = j->plan;
    return p->dtype == TP_FLOAT32 && p->stride[2] == 1 && p->out[2] >= 8 && !j->in_place && j->window > 0 &&
           p->batch > 0 && p->in_channels * j->padded_pixels * j->item <= DIRECT_BYTES;
}

static int direct_start(direct_job *d, const tp_conv_plan *p) {
    d->base = make_job(p);
    const job *j = &d->base;
    d->taps = p->kernel[0] * p->kernel[1] * p->kernel[2];
    d->spots = p->out[0] * p->out[1] * ((p->out[2] + 7) / 8);
    d->packed_group = (p->out_channels + 3) / 4 * 4 * j->window;
    size_t packed = rounded(p->groups * d->packed_group * 4), places = rounded((d->taps + 2 * d->spots) * 4);
    d->size = packed + places;
    if (!(d->memory = tp_alloc(d->size))) return -1;
    d->packed = d->memory;
    d->tap = (int32_t *)((char *)d->memory + packed);
    d->from = d->tap + d->taps;
    d->to = d->from + d->spots;
    int32_t *tap = d->tap;
    for (int64_t z = 0; z < p->kernel[0]; z++)
        for (int64_t y = 0; y < p->kernel[1]; y++)
            for (int64_t x = 0; x < p->kernel[2]; x++)
                *tap++ = (int32_t)((z * p->dilation[0] * j->padded[1] + y * p->dilation[1]) * j->padded[2] +
                                   x * p->dilation[2]);
    int64_t n = 0;
    for (int64_t z = 0; z < p->out[0]; z++)
        for (int64_t y = 0; y < p->out[1]; y++)
            for (int64_t x = 0; x < p->out[2]; x += 8, n++) {
                int64_t at = x + 8 <= p->out[2] ? x : p->out[2] - 8;
                d->from[n] = (int32_t)((z * p->stride[0] * j->padded[1] + y * p->stride[1]) * j->padded[2] + at);
                d->to[n] = (int32_t)((z * p->out[1] + y) * p->out[2] + at);
            }
    return 0;
}

/* The weights of one kernel element of four output channels side by side. turned: weight belongs to the convolution
 * whose data gradient this is, [in_channels][out_channels][taps] with the elements in reverse. */
static void direct_pack(direct_job *d, const float *weight, bool turned) {
    const tp_conv_plan *p = d->base.plan;
    int64_t in = p->in_channels, out = p->out_channels, taps = d->taps;
    for (int64_t g = 0; g < p->groups; g++, weight += in * out * taps) {
        float *to = d->packed + g * d->packed_group;
        for (int64_t first = 0; first < out; first += 4)
            for (int64_t c = 0; c < in; c++)
                for (int64_t t = 0; t < taps; t++)
                    for (int64_t o = first; o < first + 4; o++)
                        *to++ = o >= out ? 0
                                : turned ? weight[(c * out + o) * taps + taps - 1 - t]
                                         : weight[(o * in + c) * taps + t];
    }
}

/* n spots of four channels; n is known where this is called, so that the sums stay in registers. */
TP_INLINE void direct_tile(const direct_job *d, const float *in, const float *w, int64_t spot, int n, const float *bias,
                           float *out, int64_t channels) {
    const job *j = &d->base;
    __m256 sum[4][3];
    for (int o = 0; o < 4; o++)
        for (int s = 0; s < n; s++) sum[o][s] = _mm256_set1_ps(bias && o < channels ? bias[o] : 0);
    for (int64_t c = 0; c < j->plan->in_channels; c++, in += j->padded_pixels)
        for (int64_t t = 0; t < d->taps; t++, w += 4) {
            __m256 x[3];
            for (int s = 0; s < n; s++) x[s] = _mm256_loadu_ps(in + d->tap[t] + d->from[spot + s]);
            for (int o = 0; o < 4; o++) {
                __m256 one = _mm256_broadcast_ss(w + o);
                for (int s = 0; s < n; s++) sum[o][s] = _mm256_fmadd_ps(one, x[s], sum[o][s]);
            }
        }
    for (int o = 0; o < 4; o++)
        for (int s = 0; s < n && o < channels; s++) _mm256_storeu_ps(out + o * j->pixels + d->to[spot + s], sum[o][s]);
}

static int direct_image(const direct_job *d, const float *padded, int64_t image, int64_t group) {
    const job *j = &d->base;
    const tp_conv_plan *p = j->plan;
    const float *w = d->packed + group * d->packed_group;
    float *out = (float *)output_of(j, j->out, image, group);
    for (int64_t o = 0; o < p->out_channels; o += 4, w += 4 * j->window, out += 4 * j->pixels) {
        const float *bias = j->bias ? (const float *)j->bias + group * p->out_channels + o : NULL;
        int64_t left = p->out_channels - o, s = 0;
        for (; s + 3 <= d->spots; s += 3) direct_tile(d, padded, w, s, 3, bias, out, left);
        if (d->spots - s == 2) direct_tile(d, padded, w, s, 2, bias, out, left);
        if (d->spots - s == 1) direct_tile(d, padded, w, s, 1, bias, out, left);
        if (tp_host_look() < 0) return -1;
    }
    return 0;
}

static void run_direct(int64_t begin, int64_t end, void *context) {
    const direct_job *d = context;
    const job *j = &d->base;
    size_t size = rounded(j->plan->in_channels * j->padded_pixels * 4);
    char *padded = tp_alloc(size);
    if (!padded) return;
    for (int64_t i = begin; i < end; i++) {
        pad(j, padded, i / j->plan->groups, 1, i % j->plan->groups);
        if (direct_image(d, (float *)padded, i / j->plan->groups, i % j->plan->groups) < 0) break;
    }
    tp_free(padded, size);
}

static int direct_forward(const tp_conv_plan *p, const void *in, const void *weight, const void *bias, void *out,
                          bool turned) {
    direct_job d;
    if (direct_start(&d, p) < 0) return -1;
    direct_pack(&d, weight, turned);
    d.base.in = in, d.base.bias = bias, d.base.out = out;
    int status = run(&d.base, &d, p->batch * p->groups, run_direct);
    tp_free(d.memory, d.size);
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

/* ---- the weight gradient ---- */

static bool direct_weight_fits(const job *j) { return direct_fits(j) && j->plan->out[2] % 8 == 0; }

/* The sums of four vectors' elements. */
TP_INLINE __m128 sums_of_4(const __m256 v[4]) {
    __m256 all = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    return _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
}

/* Adds to sum[4][window] what three kernel elements of four channels get from some images. */
static void direct_weight_tile(const direct_job *d, const float *in, const float *out, int64_t images,
                               const int64_t element[3], const int64_t channel[4], float sums[3][4]) {
    const job *j = &d->base;
    const tp_conv_plan *p = j->plan;
    int64_t next_in = p->in_channels * j->padded_pixels, next_out = p->groups * p->out_channels * j->pixels;
    __m256 sum[3][4];
    for (int e = 0; e < 3; e++)
        for (int o = 0; o < 4; o++) sum[e][o] = _mm256_setzero_ps();
    for (int64_t n = 0; n < images; n++, in += next_in, out += next_out)
        for (int64_t s = 0; s < d->spots; s++) {
            const float *x = in + d->from[s], *y = out + d->to[s];
            __m256 a = _mm256_loadu_ps(x + element[0]), b = _mm256_loadu_ps(x + element[1]),
                   c = _mm256_loadu_ps(x + element[2]);
            for (int o = 0; o < 4; o++) {
                __m256 g = _mm256_loadu_ps(y + channel[o]);
                sum[0][o] = _mm256_fmadd_ps(g, a, sum[0][o]);
                sum[1][o] = _mm256_fmadd_ps(g, b, sum[1][o]);
                sum[2][o] = _mm256_fmadd_ps(g, c, sum[2][o]);
            }
        }
    for (int e = 0; e < 3; e++) _mm_storeu_ps(sums[e], sums_of_4(sum[e]));
}

static void direct_weight_block(const direct_job *d, const char *padded, int64_t first, int64_t images, int64_t group,
                                float *total) {
    const job *j = &d->base;
    const float *out = (const float *)output_of(j, j->out, first, group);
    int64_t channels = j->plan->out_channels;
    for (int64_t o = 0; o < channels; o += 4) {
        int64_t channel[4];
        for (int i = 0; i < 4; i++) channel[i] = (o + i < channels ? o + i : channels - 1) * j->pixels;
        for (int64_t e = 0; e < j->window; e += 3) {
            int64_t element[3];
            float sums[3][4];
            for (int i = 0; i < 3; i++) {
                int64_t at = e + i < j->window ? e + i : j->window - 1;
                element[i] = at / d->taps * j->padded_pixels + d->tap[at % d->taps];
            }
            direct_weight_tile(d, (const float *)padded, out, images, element, channel, sums);
            for (int64_t i = 0; i < 3 && e + i < j->window; i++)
                for (int64_t k = 0; k < 4 && o + k < channels; k++) total[(o + k) * j->window + e + i] += sums[i][k];
        }
    }
}

/* Part t of a group sums blocks t, t + parts, ... */
static void run_weight_direct(int64_t begin, int64_t end, void *context) {
    const direct_job *d = context;
    const job *j = &d->base;
    int64_t image = j->plan->in_channels * j->padded_pixels * 4, bytes = j->plan->out_channels * j->window * 4;
    size_t size = rounded(j->images * image);
    char *padded = tp_alloc(size);
    if (!padded) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i / j->parts;
        memset(j->partial + i * bytes, 0, (size_t)bytes);
        for (int64_t block = i % j->parts; block < j->blocks && tp_host_look() == 0; block += j->parts) {
            int64_t first = block * j->images, images = images_of(j, block);
            for (int64_t n = 0; n < images; n++) pad(j, padded + n * image, first + n, 1, group);
            direct_weight_block(d, padded, first, images, group, (float *)(j->partial + i * bytes));
        }
    }
    tp_free(padded, size);
}

#define DIRECT_BLOCK_IMAGES 4
#endif
