/* fft_of.h: Fourier transforms of one precision; included by fft_loops.c with
 *   T      float or double
 *   N(x)   a name of that precision
 *
 * Lines are transformed V at a time, real and imaginary parts apart: element i of line v is at [i * V + v]. Each pass
 * of Stockham's algorithm takes one factor p of n: with s sums done so far it makes, of the p parts of the line, p sums
 * of lines s times as long, from one buffer into the other. Bluestein's algorithm makes a transform of a length with a
 * large prime factor a convolution of a length that is a power of two. */

typedef struct {
    T *re, *im;
} N(parts);

/* A pass: y[q + s (p j + k)] = w^(jk) times the sum over r of x[q + s (j + m r)] exp(-2 pi i r k / p), for j in m and q
 * in s. */
static void N(pass2)(N(parts) x, N(parts) y, int64_t m, int64_t s, const T *w) {
    for (int64_t j = 0; j < m; j++) {
        const T c = w[2 * j], d = w[2 * j + 1];
        const T *r0 = x.re + s * j, *i0 = x.im + s * j, *r1 = r0 + s * m, *i1 = i0 + s * m;
        T *R0 = y.re + s * 2 * j, *I0 = y.im + s * 2 * j, *R1 = R0 + s, *I1 = I0 + s;
#pragma GCC ivdep
        for (int64_t q = 0; q < s; q++) {
            const T u = r0[q] - r1[q], v = i0[q] - i1[q];
            R0[q] = r0[q] + r1[q], I0[q] = i0[q] + i1[q];
            R1[q] = u * c - v * d, I1[q] = u * d + v * c;
        }
    }
}
static void N(pass3)(N(parts) x, N(parts) y, int64_t m, int64_t s, const T *w) {
    const T half = (T)0.5, h = (T)0.86602540378443864676;
    for (int64_t j = 0; j < m; j++) {
        const T *t = w + 4 * j;
        const T *r0 = x.re + s * j, *i0 = x.im + s * j;
        T *R0 = y.re + s * 3 * j, *I0 = y.im + s * 3 * j;
        const int64_t f = s * m;
#pragma GCC ivdep
        for (int64_t q = 0; q < s; q++) {
            const T ar = r0[q + f] + r0[q + 2 * f], ai = i0[q + f] + i0[q + 2 * f];
            const T br = h * (r0[q + f] - r0[q + 2 * f]), bi = h * (i0[q + f] - i0[q + 2 * f]);
            const T cr = r0[q] - half * ar, ci = i0[q] - half * ai;
            const T ur = cr + bi, ui = ci - br, vr = cr - bi, vi = ci + br;
            R0[q] = r0[q] + ar, I0[q] = i0[q] + ai;
            R0[q + s] = ur * t[0] - ui * t[1], I0[q + s] = ur * t[1] + ui * t[0];
            R0[q + 2 * s] = vr * t[2] - vi * t[3], I0[q + 2 * s] = vr * t[3] + vi * t[2];
        }
    }
}
#define FOUR                                                                                                   \
    const T ar = r0[q] + r0[q + 2 * f], ai = i0[q] + i0[q + 2 * f];                                            \
    const T br = r0[q] - r0[q + 2 * f], bi = i0[q] - i0[q + 2 * f];                                            \
    const T cr = r0[q + f] + r0[q + 3 * f], ci = i0[q + f] + i0[q + 3 * f];                                    \
    const T dr = i0[q + f] - i0[q + 3 * f], di = r0[q + 3 * f] - r0[q + f];                                    \
    const T ur = br + dr, ui = bi + di, vr = ar - cr, vi = ai - ci, zr = br - dr, zi = bi - di;
static void N(pass4)(N(parts) x, N(parts) y, int64_t m, int64_t s, const T *w) {
    const int64_t f = s * m;
    if (s == 1) { /* along the line: neighbours in j have each their own factors */
        const T *r0 = x.re, *i0 = x.im;
        T *restrict R0 = y.re, *restrict I0 = y.im;
#pragma GCC ivdep
        for (int64_t q = 0; q < m; q++) {
            FOUR
            const T *t = w + 6 * q;
            R0[4 * q] = ar + cr, I0[4 * q] = ai + ci;
            R0[4 * q + 1] = ur * t[0] - ui * t[1], I0[4 * q + 1] = ur * t[1] + ui * t[0];
            R0[4 * q + 2] = vr * t[2] - vi * t[3], I0[4 * q + 2] = vr * t[3] + vi * t[2];
            R0[4 * q + 3] = zr * t[4] - zi * t[5], I0[4 * q + 3] = zr * t[5] + zi * t[4];
        }
        return;
    }
    for (int64_t j = 0; j < m; j++) {
        const T *t = w + 6 * j;
        const T *r0 = x.re + s * j, *i0 = x.im + s * j;
        T *restrict R0 = y.re + s * 4 * j, *restrict I0 = y.im + s * 4 * j;
#pragma GCC ivdep
        for (int64_t q = 0; q < s; q++) {
            FOUR
            R0[q] = ar + cr, I0[q] = ai + ci;
            R0[q + s] = ur * t[0] - ui * t[1], I0[q + s] = ur * t[1] + ui * t[0];
            R0[q + 2 * s] = vr * t[2] - vi * t[3], I0[q + 2 * s] = vr * t[3] + vi * t[2];
            R0[q + 3 * s] = zr * t[4] - zi * t[5], I0[q + 3 * s] = zr * t[5] + zi * t[4];
        }
    }
}
/* Any factor, by the definition; `roots` are the p-th ones. */
static void N(pass_any)(N(parts) x, N(parts) y, int64_t p, int64_t m, int64_t s, const T *w, const T *roots) {
    for (int64_t j = 0; j < m; j++)
        for (int64_t k = 0; k < p; k++) {
            const T c = k ? w[2 * ((p - 1) * j + k - 1)] : 1, d = k ? w[2 * ((p - 1) * j + k - 1) + 1] : 0;
            T *restrict re = y.re + s * (p * j + k), *restrict im = y.im + s * (p * j + k);
            for (int64_t q = 0; q < s; q++) re[q] = 0, im[q] = 0;
            for (int64_t r = 0; r < p; r++) {
                const T *restrict xr = x.re + s * (j + m * r), *restrict xi = x.im + s * (j + m * r);
                const T e = roots[2 * (r * k % p)], g = roots[2 * (r * k % p) + 1];
                const T wr = e * c - g * d, wi = e * d + g * c;
                for (int64_t q = 0; q < s; q++) {
                    re[q] += xr[q] * wr - xi[q] * wi;
                    im[q] += xr[q] * wi + xi[q] * wr;
                }
            }
        }
}
/* exp(-2 pi i x / n), exact in its quadrant. */
static void N(root)(int64_t x, int64_t n, T *out) {
    double angle = -2 * 3.14159265358979323846 * (double)(x % n) / (double)n;
    out[0] = (T)cos(angle), out[1] = (T)sin(angle);
}
/* The factors of the passes, one behind the other; as many numbers as tp_fft_numbers says. */
static void N(make_factors)(const tp_fft_plan *plan, void *to) {
    T *w = to;
    int64_t rest = plan->length;
    for (int f = 0; f < plan->count; f++) {
        int64_t p = plan->factors[f], m = rest / p;
        for (int64_t j = 0; j < m; j++)
            for (int64_t k = 1; k < p; k++, w += 2) N(root)(j * k, rest, w);
        for (int64_t k = 0; p > 4 && k < p; k++, w += 2) N(root)(k, p, w);
        rest = m;
    }
}
/* All passes; x and y are both written, and the result is in what is returned. */
static N(parts) N(passes)(const tp_fft_plan *plan, const T *w, N(parts) x, N(parts) y, int64_t lines) {
    int64_t rest = plan->length, s = lines;
    for (int f = 0; f < plan->count; f++) {
        int64_t p = plan->factors[f], m = rest / p;
        if (p == 4) N(pass4)(x, y, m, s, w);
        else if (p == 2) N(pass2)(x, y, m, s, w);
        else if (p == 3) N(pass3)(x, y, m, s, w);
        else N(pass_any)(x, y, p, m, s, w, w + 2 * (p - 1) * m);
        w += 2 * (p - 1) * m + (p > 4 ? 2 * p : 0);
        N(parts) other = x;
        x = y, y = other;
        rest = m, s *= p;
    }
    return x;
}

/* By Bluestein: x[k] chirp[k] convolved with the chirp's conjugate, whose transform the plan has, times chirp. */
static N(parts) N(chirped)(const tp_fft_plan *plan, N(parts) x, N(parts) y, int64_t lines) {
    const int64_t n = plan->n, all = plan->length;
    const T *w = (const T *)plan->numbers, *chirp = w + 2 * plan->roots, *kernel = chirp + 2 * n;
    for (int64_t k = 0; k < all; k++)
        for (int64_t v = 0; v < lines; v++) {
            T *re = x.re + k * lines + v, *im = x.im + k * lines + v;
            const T a = k < n ? *re : 0, b = k < n ? *im : 0;
            const T c = k < n ? chirp[2 * k] : 0, d = k < n ? chirp[2 * k + 1] : 0;
            *re = a * c - b * d, *im = a * d + b * c;
        }
    N(parts) z = N(passes)(plan, w, x, y, lines), other = z.re == x.re ? y : x;
    for (int64_t k = 0; k < all; k++)
        for (int64_t v = 0; v < lines; v++) { /* real and imaginary part change places: the way back */
            T *re = z.re + k * lines + v, *im = z.im + k * lines + v;
            const T a = *re, b = *im;
            *im = a * kernel[2 * k] - b * kernel[2 * k + 1], *re = a * kernel[2 * k + 1] + b * kernel[2 * k];
        }
    z = N(passes)(plan, w, z, other, lines);
    for (int64_t k = 0; k < n; k++)
        for (int64_t v = 0; v < lines; v++) {
            T *re = z.re + k * lines + v, *im = z.im + k * lines + v;
            const T a = *im, b = *re;
            *re = a * chirp[2 * k] - b * chirp[2 * k + 1], *im = a * chirp[2 * k + 1] + b * chirp[2 * k];
        }
    return z;
}
static N(parts) N(transform)(const tp_fft_plan *plan, N(parts) x, N(parts) y, int64_t lines) {
    if (plan->length != plan->n) return N(chirped)(plan, x, y, lines);
    return N(passes)(plan, (const T *)plan->numbers, x, y, lines);
}
static void N(make_numbers)(tp_fft_plan *plan, void *spare) {
    const int64_t n = plan->n, all = plan->length;
    T *chirp = (T *)plan->numbers + 2 * plan->roots, *kernel = chirp + 2 * n, *room = spare;
    N(make_factors)(plan, plan->numbers);
    if (all == n) return;
    N(parts) x = {room, room + all}, y = {room + 2 * all, room + 3 * all};
    for (int64_t k = 0; k < n; k++) N(root)((int64_t)((__int128)k * k % (2 * n)), 2 * n, chirp + 2 * k);
    for (int64_t k = 0; k < 4 * all; k++) room[k] = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t other = k ? all - k : 0;
        x.re[k] = x.re[other] = chirp[2 * k] / (T)all;
        x.im[k] = x.im[other] = -chirp[2 * k + 1] / (T)all;
    }
    N(parts) z = N(passes)(plan, (const T *)plan->numbers, x, y, 1);
    for (int64_t k = 0; k < all; k++) kernel[2 * k] = z.re[k], kernel[2 * k + 1] = z.im[k];
}

/* ---- lines of tensors ---- */

/* Of a complex line; backward transforms change the parts' places on both ways. */
static void N(complex_lines)(const tp_fft_lines *l, int64_t lines, void *work) {
    const int64_t n = l->plan->n, all = l->plan->length, swap = l->backward;
    T *room = work;
    N(parts) x = {room, room + all * lines}, y = {room + 2 * all * lines, room + 3 * all * lines};
    for (int64_t i = 0; i < n; i++)
        for (int64_t v = 0; v < lines; v++) {
            const T *in = (const T *)l->in[v] + 2 * i * l->step;
            x.re[i * lines + v] = in[swap], x.im[i * lines + v] = in[1 - swap];
        }
    N(parts) z = N(transform)(l->plan, x, y, lines);
    const T scale = (T)l->scale;
    for (int64_t i = 0; i < n; i++)
        for (int64_t v = 0; v < lines; v++) {
            T *out = (T *)l->out[v] + 2 * i * l->step;
            out[swap] = z.re[i * lines + v] * scale, out[1 - swap] = z.im[i * lines + v] * scale;
        }
}
/* Of a real line to its first half: an even one is one complex line of half the length. */
static void N(real_lines)(const tp_fft_lines *l, int64_t lines, void *work) {
    const int64_t h = l->plan->n, all = l->plan->length, step = l->step;
    const bool even = l->n % 2 == 0;
    T *room = work;
    N(parts) x = {room, room + all * lines}, y = {room + 2 * all * lines, room + 3 * all * lines};
    for (int64_t i = 0; i < h; i++)
        for (int64_t v = 0; v < lines; v++) {
            const T *in = (const T *)l->in[v];
            x.re[i * lines + v] = even ? in[2 * i * step] : in[i * step];
            x.im[i * lines + v] = even ? in[(2 * i + 1) * step] : 0;
        }
    N(parts) z = N(transform)(l->plan, x, y, lines);
    const T scale = (T)l->scale, *roots = l->roots;
    for (int64_t k = 0; k <= l->n / 2; k++)
        for (int64_t v = 0; v < lines; v++) {
            T *out = (T *)l->out[v] + 2 * k * step;
            const int64_t at = k % h * lines + v, mirror = (h - k) % h * lines + v;
            if (!even) {
                out[0] = z.re[at] * scale, out[1] = z.im[at] * scale;
                continue;
            }
            const T er = z.re[at] + z.re[mirror], ei = z.im[at] - z.im[mirror];
            const T dr = z.im[at] + z.im[mirror], di = z.re[mirror] - z.re[at];
            const T c = roots[2 * k], d = roots[2 * k + 1], half = scale / 2;
            out[0] = (er + dr * c - di * d) * half, out[1] = (ei + dr * d + di * c) * half;
        }
}
/* And back, from the first half. */
static void N(hermitian_lines)(const tp_fft_lines *l, int64_t lines, void *work) {
    const int64_t h = l->plan->n, all = l->plan->length, step = l->step;
    const bool even = l->n % 2 == 0;
    const T *roots = l->roots;
    T *room = work;
    N(parts) x = {room, room + all * lines}, y = {room + 2 * all * lines, room + 3 * all * lines};
    for (int64_t k = 0; k < h; k++)
        for (int64_t v = 0; v < lines; v++) {
            const bool low = k <= l->n / 2;
            const int64_t mirror = even ? h - k : l->n - k;
            const T *a = (const T *)l->in[v] + 2 * (low ? k : mirror) * step;
            T ar = a[0], ai = low ? a[1] : -a[1];
            if (k == 0) ai = 0;
            if (even) {
                const T *b = (const T *)l->in[v] + 2 * mirror * step, br = b[0], bi = k == 0 ? 0 : -b[1];
                const T sr = ar + br, si = ai + bi, tr = ar - br, ti = ai - bi;
                const T c = roots[2 * k], d = -roots[2 * k + 1]; /* i exp(2 pi i k / n) (tr + i ti) is added */
                const T ur = tr * c - ti * d, ui = tr * d + ti * c;
                ar = sr - ui, ai = si + ur;
            }
            x.im[k * lines + v] = ar, x.re[k * lines + v] = ai;
        }
    N(parts) z = N(transform)(l->plan, x, y, lines);
    const T scale = (T)l->scale;
    for (int64_t i = 0; i < h; i++)
        for (int64_t v = 0; v < lines; v++) {
            T *out = (T *)l->out[v];
            if (even) {
                out[2 * i * step] = z.im[i * lines + v] * scale;
                out[(2 * i + 1) * step] = z.re[i * lines + v] * scale;
            } else out[i * step] = z.im[i * lines + v] * scale;
        }
}
