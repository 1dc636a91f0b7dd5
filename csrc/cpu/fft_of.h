/* fft_of.h: Fourier transforms of one precision; included by fft_loops.c with
 *   T      float or double
 *   N(x)   a name of that precision
 *   TURNS  lines that N(turn) turns at a time; not defined: there is none
 *
 * Lines are transformed V at a time, real and imaginary parts apart: element i of line v is at [i * V + v]. Each pass
 * of Stockham's algorithm takes one factor p of n: with s sums done so far it makes, of the p parts of the line, p sums
 * of lines s times as long, from one buffer into the other. Bluestein's algorithm makes a transform of a length with a
 * large prime factor a convolution of a length that is a power of two. */

typedef struct {
    T *re, *im;
} N(parts);

TP_INLINE N(parts) N(swapped)(N(parts) x, bool swap) { return swap ? (N(parts)){x.im, x.re} : x; }

/* A pass: y[q + s (p j + k)] = w^(jk) times the sum over r of x[q + s (j + m r)] exp(-2 pi i r k / p), for j in m and q
 * in s. */
#define LOOP(count) \
    PRAGMA_IVDEP    \
    for (int64_t q = 0; q < count; q++)
#define TURNED(R, I, u, v, c, d) R = (u) * (c) - (v) * (d), I = (u) * (d) + (v) * (c)

/* A pass of few sums so far: s is a constant of the caller's, so that the loop over them is unrolled. */
TP_INLINE void N(pass2_of)(N(parts) x, N(parts) y, int64_t m, int64_t s, const T *w) {
    const int64_t f = s * m;
    for (int64_t j = 0; j < m; j++) {
        const T c = w[j], d = w[m + j];
        const T *restrict r = x.re + s * j, *restrict i = x.im + s * j;
        T *restrict to_r = y.re + s * 2 * j, *restrict to_i = y.im + s * 2 * j;
        LOOP(s) {
            const T u = r[q] - r[q + f], v = i[q] - i[q + f];
            to_r[q] = r[q] + r[q + f], to_i[q] = i[q] + i[q + f];
            TURNED(to_r[q + s], to_i[q + s], u, v, c, d);
        }
    }
}
TP_INLINE void N(pass3_of)(N(parts) x, N(parts) y, int64_t m, int64_t s, const T *w) {
    const T h = (T)0.86602540378443864676;
    const int64_t f = s * m;
    for (int64_t j = 0; j < m; j++) {
        const T *restrict r = x.re + s * j, *restrict i = x.im + s * j;
        T *restrict to_r = y.re + s * 3 * j, *restrict to_i = y.im + s * 3 * j;
        const T c1 = w[j], d1 = w[m + j], c2 = w[2 * m + j], d2 = w[3 * m + j];
        LOOP(s) {
            const T ar = r[q + f] + r[q + 2 * f], ai = i[q + f] + i[q + 2 * f];
            const T br = h * (r[q + f] - r[q + 2 * f]), bi = h * (i[q + f] - i[q + 2 * f]);
            const T cr = r[q] - ar / 2, ci = i[q] - ai / 2;
            to_r[q] = r[q] + ar, to_i[q] = i[q] + ai;
            TURNED(to_r[q + s], to_i[q + s], cr + bi, ci - br, c1, d1);
            TURNED(to_r[q + 2 * s], to_i[q + 2 * s], cr - bi, ci + br, c2, d2);
        }
    }
}
#define FOUR                                                            \
    const T ar = r[q] + r[q + 2 * f], ai = i[q] + i[q + 2 * f];         \
    const T br = r[q] - r[q + 2 * f], bi = i[q] - i[q + 2 * f];         \
    const T cr = r[q + f] + r[q + 3 * f], ci = i[q + f] + i[q + 3 * f]; \
    const T dr = i[q + f] - i[q + 3 * f], di = r[q + 3 * f] - r[q + f];
TP_INLINE void N(pass4_of)(N(parts) x, N(parts) y, int64_t m, int64_t s, const T *w) {
    const int64_t f = s * m;
    for (int64_t j = 0; j < m; j++) {
        const T *restrict r = x.re + s * j, *restrict i = x.im + s * j;
        T *restrict to_r = y.re + s * 4 * j, *restrict to_i = y.im + s * 4 * j;
        const T c1 = w[j], d1 = w[m + j], c2 = w[2 * m + j], d2 = w[3 * m + j], c3 = w[4 * m + j], d3 = w[5 * m + j];
        LOOP(s) {
            FOUR to_r[q] = ar + cr, to_i[q] = ai + ci;
            TURNED(to_r[q + s], to_i[q + s], br + dr, bi + di, c1, d1);
            TURNED(to_r[q + 2 * s], to_i[q + 2 * s], ar - cr, ai - ci, c2, d2);
            TURNED(to_r[q + 3 * s], to_i[q + 3 * s], br - dr, bi - di, c3, d3);
        }
    }
}
/* The first pass of a single line: neighbours have each their own factors. */
static void N(pass4_first)(N(parts) x, N(parts) y, int64_t m, const T *w) {
    const int64_t f = m;
    const T *restrict r = x.re, *restrict i = x.im;
    T *restrict to_r = y.re, *restrict to_i = y.im;
    LOOP(m) {
        FOUR to_r[4 * q] = ar + cr, to_i[4 * q] = ai + ci;
        TURNED(to_r[4 * q + 1], to_i[4 * q + 1], br + dr, bi + di, w[q], w[m + q]);
        TURNED(to_r[4 * q + 2], to_i[4 * q + 2], ar - cr, ai - ci, w[2 * m + q], w[3 * m + q]);
        TURNED(to_r[4 * q + 3], to_i[4 * q + 3], br - dr, bi - di, w[4 * m + q], w[5 * m + q]);
    }
}
TP_INLINE void N(pass5_of)(N(parts) x, N(parts) y, int64_t m, int64_t s, const T *w) {
    const T p1 = (T)0.30901699437494742410, p2 = (T)-0.80901699437494742410;
    const T h1 = (T)0.95105651629515357212, h2 = (T)0.58778525229247312917;
    const int64_t f = s * m;
    for (int64_t j = 0; j < m; j++) {
        const T *restrict r = x.re + s * j, *restrict i = x.im + s * j;
        T *restrict to_r = y.re + s * 5 * j, *restrict to_i = y.im + s * 5 * j;
        const T c1 = w[j], d1 = w[m + j], c2 = w[2 * m + j], d2 = w[3 * m + j];
        const T c3 = w[4 * m + j], d3 = w[5 * m + j], c4 = w[6 * m + j], d4 = w[7 * m + j];
        LOOP(s) {
            const T ar = r[q + f] + r[q + 4 * f], ai = i[q + f] + i[q + 4 * f];
            const T br = r[q + f] - r[q + 4 * f], bi = i[q + f] - i[q + 4 * f];
            const T cr = r[q + 2 * f] + r[q + 3 * f], ci = i[q + 2 * f] + i[q + 3 * f];
            const T dr = r[q + 2 * f] - r[q + 3 * f], di = i[q + 2 * f] - i[q + 3 * f];
            const T er = r[q] + p1 * ar + p2 * cr, ei = i[q] + p1 * ai + p2 * ci;
            const T gr = h1 * bi + h2 * di, gi = -(h1 * br + h2 * dr);
            const T kr = r[q] + p2 * ar + p1 * cr, ki = i[q] + p2 * ai + p1 * ci;
            const T lr = h2 * bi - h1 * di, li = -(h2 * br - h1 * dr);
            to_r[q] = r[q] + ar + cr, to_i[q] = i[q] + ai + ci;
            TURNED(to_r[q + s], to_i[q + s], er + gr, ei + gi, c1, d1);
            TURNED(to_r[q + 2 * s], to_i[q + 2 * s], kr + lr, ki + li, c2, d2);
            TURNED(to_r[q + 3 * s], to_i[q + 3 * s], kr - lr, ki - li, c3, d3);
            TURNED(to_r[q + 4 * s], to_i[q + 4 * s], er - gr, ei - gi, c4, d4);
        }
    }
}
#define PASS(p)                                                                        \
    static void N(pass##p)(N(parts) x, N(parts) y, int64_t m, int64_t s, const T *w) { \
        if (s == 4) N(pass##p##_of)(x, y, m, 4, w);                                    \
        else if (s == 8) N(pass##p##_of)(x, y, m, 8, w);                               \
        else if (s == 16) N(pass##p##_of)(x, y, m, 16, w);                             \
        else N(pass##p##_of)(x, y, m, s, w);                                           \
    }
PASS(2)
PASS(3)
PASS(4)
PASS(5)
#undef PASS
#undef FOUR
#undef LOOP
#undef TURNED
/* Any factor, by the definition; `roots` are the p-th ones. */
static void N(pass_any)(N(parts) x, N(parts) y, int64_t p, int64_t m, int64_t s, const T *w, const T *roots) {
    for (int64_t j = 0; j < m; j++)
        for (int64_t k = 0; k < p; k++) {
            const T c = k ? w[2 * (k - 1) * m + j] : 1, d = k ? w[(2 * k - 1) * m + j] : 0;
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
/* exp(-2 pi i x / n), from an angle of an eighth of the circle at most, so that the axes are met exactly. */
static void N(root)(int64_t x, int64_t n, T *re, T *im) {
    x %= n;
    const int64_t eighth = 8 * x / n;
    const bool turned = (eighth + 1) & 2;     /* nearer to the imaginary axis */
    const int64_t quarter = (eighth + 1) / 2; /* the nearest axis */
    const double angle = 2 * 3.14159265358979323846 * ((double)(4 * x - quarter * n) / 4 / (double)n);
    const double c = cos(angle), s = sin(angle);
    const double real = turned ? (quarter == 1 ? -s : s) : quarter == 2 ? -c : c;
    const double imag = turned ? (quarter == 1 ? c : -c) : quarter == 2 ? -s : s;
    *re = (T)real, *im = (T)-imag;
}
/* The factors of the passes, one pass after the other: for each k the real parts of all j, then the imaginary ones. */
static void N(make_factors)(const tp_fft_plan *plan, void *to) {
    T *w = to;
    int64_t rest = plan->length;
    for (int f = 0; f < plan->count; f++) {
        int64_t p = plan->factors[f], m = rest / p;
        for (int64_t k = 1; k < p; k++, w += 2 * m)
            for (int64_t j = 0; j < m; j++) N(root)(j * k, rest, w + j, w + m + j);
        for (int64_t k = 0; p > 5 && k < p; k++, w += 2) N(root)(k, p, w, w + 1);
        rest = m;
    }
}
static const T *N(half_roots)(const tp_fft_plan *plan) {
    const int64_t chirp = plan->length == plan->n ? 0 : plan->n + plan->length;
    return (const T *)plan->numbers + 2 * (plan->roots + chirp);
}
/* All passes; x and y are both written, and the result is in what is returned. */
static N(parts) N(passes)(const tp_fft_plan *plan, const T *w, N(parts) x, N(parts) y, int64_t lines) {
    int64_t rest = plan->length, s = lines;
    for (int f = 0; f < plan->count; f++) {
        int64_t p = plan->factors[f], m = rest / p;
        if (p == 4 && s == 1) N(pass4_first)(x, y, m, w);
        else if (p == 4) N(pass4)(x, y, m, s, w);
        else if (p == 2) N(pass2)(x, y, m, s, w);
        else if (p == 3) N(pass3)(x, y, m, s, w);
        else if (p == 5) N(pass5)(x, y, m, s, w);
        else N(pass_any)(x, y, p, m, s, w, w + 2 * (p - 1) * m);
        w += 2 * (p - 1) * m + (p > 5 ? 2 * p : 0);
        N(parts) other = x;
        x = y, y = other;
        rest = m, s *= p;
    }
    return x;
}

/* Elements [0, n) of z times numbers, element by element. */
TP_INLINE void N(multiply)(N(parts) z, int64_t n, const int64_t lines, const T *numbers) {
    for (int64_t k = 0; k < n; k++) {
        T *restrict re = z.re + k * lines, *restrict im = z.im + k * lines;
        const T c = numbers[2 * k], d = numbers[2 * k + 1];
        VECTORISED PRAGMA_IVDEP for (int64_t v = 0; v < lines; v++) {
            const T a = re[v], b = im[v];
            re[v] = a * c - b * d, im[v] = a * d + b * c;
        }
    }
}
/* By Bluestein: x[k] chirp[k] convolved with the chirp's conjugate, whose transform the plan has, times chirp. The way
 * back is one there of what has its real and imaginary parts in each other's places. */
static N(parts) N(chirped)(const tp_fft_plan *plan, N(parts) x, N(parts) y, int64_t lines) {
    const int64_t n = plan->n, all = plan->length;
    const T *w = (const T *)plan->numbers, *chirp = w + 2 * plan->roots, *kernel = chirp + 2 * n;
    OF_LINES(N(multiply)(x, n, L, chirp));
    memset(x.re + n * lines, 0, (size_t)((all - n) * lines) * sizeof(T));
    memset(x.im + n * lines, 0, (size_t)((all - n) * lines) * sizeof(T));
    N(parts) z = N(passes)(plan, w, x, y, lines), other = z.re == x.re ? y : x;
    OF_LINES(N(multiply)(z, all, L, kernel));
    z = N(swapped)(N(passes)(plan, w, N(swapped)(z, true), other, lines), true);
    OF_LINES(N(multiply)(z, n, L, chirp));
    return z;
}
static N(parts) N(transform)(const tp_fft_plan *plan, N(parts) x, N(parts) y, int64_t lines) {
    if (plan->length != plan->n) return N(chirped)(plan, x, y, lines);
    return N(passes)(plan, (const T *)plan->numbers, x, y, lines);
}
static void N(make_numbers)(tp_fft_plan *plan, void *spare) {
    const int64_t n = plan->n, all = plan->length;
    T *chirp = (T *)plan->numbers + 2 * plan->roots, *kernel = chirp + 2 * n, *room = spare;
    T *halves = (T *)N(half_roots)(plan);
    N(make_factors)(plan, plan->numbers);
    for (int64_t k = 0; plan->halves && k <= n; k++) N(root)(k, 2 * n, halves + 2 * k, halves + 2 * k + 1);
    if (all == n) return;
    N(parts) x = {room, room + all}, y = {room + 2 * all, room + 3 * all};
    for (int64_t k = 0; k < n; k++)
        N(root)((int64_t)((__int128)k * k % (2 * n)), 2 * n, chirp + 2 * k, chirp + 2 * k + 1);
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

/* The buffers of some lines. The gaps keep them from falling on the same places of the cache. */
static N(parts) N(buffer)(void *work, int64_t all, int64_t lines, int number) {
    T *room = work;
    const int64_t size = all * lines + TP_FFT_GAP;
    return (N(parts)){room + 2 * number * size, room + (2 * number + 1) * size};
}
/* Elements of several lines, of each of which the parts lie `b` apart, and elements `a`. */
typedef struct {
    T *const *lines;
    int64_t a, b;
} N(places);
/* How far the lines lie apart, if that is one number; 0: it is not. */
static int64_t N(apart)(const N(places) * p, int64_t lines) {
    const int64_t c = lines > 1 ? p->lines[1] - p->lines[0] : 0;
    for (int64_t v = 2; v < lines; v++)
        if (p->lines[v] - p->lines[v - 1] != c) return 0;
    return c;
}
/* Rows of lines that are neighbours: those of a dimension that is not the last. */
TP_INLINE void N(take_rows)(const N(places) * p, int64_t n, N(parts) x, const int64_t c, const int64_t lines) {
    for (int64_t i = 0; i < n; i++, x.re += lines, x.im += lines) {
        const T *restrict in = p->lines[0] + i * p->a;
        T *restrict re = x.re, *restrict im = x.im;
        const int64_t b = p->b;
        VECTORISED for (int64_t v = 0; v < lines; v++) re[v] = in[v * c], im[v] = in[v * c + b];
    }
}
TP_INLINE void N(give_rows)(const N(places) * p, int64_t n, N(parts) x, const int64_t c, const int64_t lines, T scale) {
    for (int64_t i = 0; i < n; i++, x.re += lines, x.im += lines) {
        T *restrict out = p->lines[0] + i * p->a;
        const T *restrict re = x.re, *restrict im = x.im;
        const int64_t b = p->b;
        VECTORISED PRAGMA_IVDEP for (int64_t v = 0; v < lines; v++) {
            out[v * c] = re[v] * scale;
            out[v * c + b] = im[v] * scale;
        }
    }
}
/* One line, or several in blocks. */
static void N(take_each)(const N(places) * p, int64_t from, int64_t n, N(parts) x, int64_t lines) {
    const int64_t a = p->a, b = p->b;
    for (int64_t first = from; first < n; first += BLOCK)
        for (int64_t v = 0; v < lines; v++) {
            const T *restrict in = p->lines[v] + first * a;
            T *restrict re = x.re + first * lines + v, *restrict im = x.im + first * lines + v;
            const int64_t count = n - first < BLOCK ? n - first : BLOCK;
            for (int64_t i = 0; i < count; i++) re[i * lines] = in[i * a], im[i * lines] = in[i * a + b];
        }
}
static void N(give_each)(const N(places) * p, int64_t from, int64_t n, N(parts) x, int64_t lines, T scale) {
    const int64_t a = p->a, b = p->b;
    for (int64_t first = from; first < n; first += BLOCK)
        for (int64_t v = 0; v < lines; v++) {
            T *restrict out = p->lines[v] + first * a;
            const T *restrict re = x.re + first * lines + v, *restrict im = x.im + first * lines + v;
            const int64_t count = n - first < BLOCK ? n - first : BLOCK;
            for (int64_t i = 0; i < count; i++)
                out[i * a] = re[i * lines] * scale, out[i * a + b] = im[i * lines] * scale;
        }
}
#ifdef TURNS
/* Lines along memory, of which squares are turned, one way or the other: the first elements, as many as it says. */
TP_INLINE int64_t N(turn_squares)(const N(places) * p, int64_t n, N(parts) x, int64_t lines, const bool gives,
                                  T scale) {
    int64_t i = 0;
    for (; i + TURNS <= n; i += TURNS)
        for (int64_t v = 0; v < lines; v += TURNS)
            for (int64_t at = i; at < i + TURNS; at += TURNS / 2) { /* whole cache lines, which may share a set */
                T *outside[TURNS], *inside[TURNS];
                for (int k = 0; k < TURNS; k++) {
                    outside[k] = p->lines[v + k] + 2 * at;
                    inside[k] = (k % 2 ? x.im : x.re) + (at + k / 2) * lines + v;
                }
                N(turn)(gives ? inside : outside, gives ? outside : inside, scale);
            }
    return i;
}
#endif
/* Takes the elements at 0, a, 2 a, ... of each line, and those at b after them, to x; or back, times a scale. */
static void N(take)(const void *const *lines_in, int64_t a, int64_t b, int64_t n, N(parts) x, int64_t lines) {
    const N(places) p = {(T *const *)lines_in, a, b};
    const int64_t c = N(apart)(&p, lines);
    int64_t done = 0;
    if (lines == 1 && a == 2 && b == 1) {
        const T *restrict in = lines_in[0];
        for (int64_t i = 0; i < n; i++) x.re[i] = in[2 * i], x.im[i] = in[2 * i + 1];
        return;
    }
    if (c == 2) {
        OF_LINES(N(take_rows)(&p, n, x, 2, L));
        return;
    }
    if (c == 1) {
        OF_LINES(N(take_rows)(&p, n, x, 1, L));
        return;
    }
#ifdef TURNS
    if (a == 2 && b == 1 && lines % TURNS == 0) done = N(turn_squares)(&p, n, x, lines, false, 1);
#endif
    N(take_each)(&p, done, n, x, lines);
}
static void N(give)(void *const *lines_out, int64_t a, int64_t b, int64_t n, N(parts) x, int64_t lines, T scale) {
    const N(places) p = {(T *const *)lines_out, a, b};
    const int64_t c = N(apart)(&p, lines);
    int64_t done = 0;
    if (lines == 1 && a == 2 && b == 1) {
        T *restrict out = lines_out[0];
        for (int64_t i = 0; i < n; i++) out[2 * i] = x.re[i] * scale, out[2 * i + 1] = x.im[i] * scale;
        return;
    }
    if (c == 2) {
        OF_LINES(N(give_rows)(&p, n, x, 2, L, scale));
        return;
    }
    if (c == 1) {
        OF_LINES(N(give_rows)(&p, n, x, 1, L, scale));
        return;
    }
#ifdef TURNS
    if (a == 2 && b == 1 && lines % TURNS == 0) done = N(turn_squares)(&p, n, x, lines, true, scale);
#endif
    N(give_each)(&p, done, n, x, lines, scale);
}

/* Transforms complex lines; backward transforms change the parts' places on both ways. */
static void N(complex_lines)(const tp_fft_lines *l, int64_t lines, void *work) {
    const int64_t n = l->plan->n, all = l->plan->length;
    N(parts) x = N(buffer)(work, all, lines, 0), y = N(buffer)(work, all, lines, 1);
    N(take)(l->in, 2 * l->step, 1, n, N(swapped)(x, l->backward), lines);
    N(parts) z = N(transform)(l->plan, x, y, lines);
    N(give)(l->out, 2 * l->step, 1, n, N(swapped)(z, l->backward), lines, (T)l->scale);
}
/* The first half of the transform of real lines of 2 h, from that of complex lines of h. */
TP_INLINE void N(to_halves)(N(parts) z, N(parts) to, int64_t h, const T *roots, T half, const int64_t lines) {
    for (int64_t k = 0; k <= h; k++, to.re += lines, to.im += lines) {
        const int64_t at = (k == h ? 0 : k) * lines, mirror = (k == 0 ? 0 : h - k) * lines;
        const T *restrict ar = z.re + at, *restrict ai = z.im + at, *restrict br = z.re + mirror;
        const T *restrict bi = z.im + mirror, c = roots[2 * k], d = roots[2 * k + 1];
        T *restrict re = to.re, *restrict im = to.im;
        VECTORISED PRAGMA_IVDEP for (int64_t v = 0; v < lines; v++) {
            const T er = ar[v] + br[v], ei = ai[v] - bi[v], dr = ai[v] + bi[v], di = br[v] - ar[v];
            re[v] = (er + dr * c - di * d) * half, im[v] = (ei + dr * d + di * c) * half;
        }
    }
}
/* Transforms real lines to their first halves: an even one is one complex line of half the length. */
static void N(real_lines)(const tp_fft_lines *l, int64_t lines, void *work) {
    const int64_t h = l->plan->n, all = l->plan->length, step = l->step;
    N(parts) x = N(buffer)(work, all, lines, 0), y = N(buffer)(work, all, lines, 1);
    if (l->n % 2) {
        N(take)(l->in, step, 0, h, x, lines);
        memset(x.im, 0, (size_t)(h * lines) * sizeof(T));
        N(give)(l->out, 2 * step, 1, l->n / 2 + 1, N(transform)(l->plan, x, y, lines), lines, (T)l->scale);
        return;
    }
    N(take)(l->in, 2 * step, step, h, x, lines);
    N(parts) z = N(transform)(l->plan, x, y, lines);
    N(parts) to = z.re == x.re || z.re == x.im ? y : x; /* a convolution may give the parts in each other's places */
    OF_LINES(N(to_halves)(z, to, h, N(half_roots)(l->plan), (T)l->scale / 2, L));
    N(give)(l->out, 2 * step, 1, h + 1, to, lines, 1);
}
/* From the first half of a transform to the complex lines that make the real ones, with their parts exchanged. */
TP_INLINE void N(of_halves)(N(parts) in, N(parts) to, int64_t h, const T *roots, const int64_t lines) {
    for (int64_t k = 0; k < h; k++, to.re += lines, to.im += lines) {
        const T *restrict ar = in.re + k * lines, *restrict ai = in.im + k * lines;
        const T *restrict br = in.re + (h - k) * lines, *restrict bi = in.im + (h - k) * lines;
        const T c = roots[2 * k], d = -roots[2 * k + 1];
        T *restrict re = to.re, *restrict im = to.im;
        VECTORISED PRAGMA_IVDEP for (int64_t v = 0; v < lines; v++) {
            const T p = k ? ai[v] : 0, q = k ? -bi[v] : 0; /* the ends are real, whatever they say */
            const T sr = ar[v] + br[v], si = p + q, tr = ar[v] - br[v], ti = p - q;
            im[v] = sr - (tr * d + ti * c), re[v] = si + (tr * c - ti * d);
        }
    }
}
/* And back, from the first half. */
static void N(hermitian_lines)(const tp_fft_lines *l, int64_t lines, void *work) {
    const int64_t h = l->plan->n, all = l->plan->length, step = l->step;
    N(parts) x = N(buffer)(work, all, lines, 0), y = N(buffer)(work, all, lines, 1);
    N(take)(l->in, 2 * step, 1, l->n / 2 + 1, y, lines);
    if (l->n % 2) {
        for (int64_t k = 0; k < h; k++)
            for (int64_t v = 0; v < lines; v++) {
                const int64_t at = (k <= l->n / 2 ? k : l->n - k) * lines + v;
                x.im[k * lines + v] = y.re[at];
                x.re[k * lines + v] = k == 0 ? 0 : k <= l->n / 2 ? y.im[at] : -y.im[at];
            }
        const N(parts) z = N(transform)(l->plan, x, y, lines);
        N(give)(l->out, step, 0, h, (N(parts)){z.im, z.im}, lines, (T)l->scale);
        return;
    }
    OF_LINES(N(of_halves)(y, x, h, N(half_roots)(l->plan), L));
    N(parts) z = N(transform)(l->plan, x, y, lines);
    N(give)(l->out, 2 * step, step, h, N(swapped)(z, true), lines, (T)l->scale);
}
