/* pool_windows.h: the loops of pooling in one dtype; part of pool_loops.c, which includes it per dtype with T (the
 * dtype), OF(name) (name with the dtype's suffix), LOWEST and IS_NAN(v) defined. */

TP_INLINE void OF(max_at)(const tp_pool_plan *p, const T *in, tp_pool_range z, tp_pool_range y, tp_pool_range x, T *out,
                          int64_t *index) {
    T best = LOWEST;
    int64_t where = (z.begin * p->in[1] + y.begin) * p->in[2] + x.begin;
    for (int64_t k = z.begin; k < z.end; k += z.step)
        for (int64_t j = y.begin; j < y.end; j += y.step) {
            int64_t row = (k * p->in[1] + j) * p->in[2];
            for (int64_t i = x.begin; i < x.end; i += x.step) {
                T v = in[row + i];
                bool better = v > best || IS_NAN(v);
                best = better ? v : best;
                where = better ? row + i : where;
            }
        }
    *out = best;
    *index = where;
}

/* One element of each of n windows `step` apart, whose place in the plane is `at` in the first. */
TP_INLINE void OF(tap_by)(const T *in, int64_t step, int64_t n, int64_t at, T *best, SIDE *where) {
    TP_IVDEP
    for (int64_t x = 0; x < n; x++) {
        T v = in[x * step];
        bool better = (v > best[x]) | IS_NAN(v);
        best[x] = better ? v : best[x];
        where[x] = better ? (SIDE)(at + x * step) : where[x];
    }
}
static void OF(tap)(const T *in, int64_t step, int64_t n, int64_t at, T *best, SIDE *where) {
    switch (step) { /* known to the compiler, which makes vectors of it */
    case 1: OF(tap_by)(in + at, 1, n, at, best, where); break;
    case 2: OF(tap_by)(in + at, 2, n, at, best, where); break;
    default: OF(tap_by)(in + at, step, n, at, best, where);
    }
}

/* n windows of a row from the x-th on, an element of each at a time. */
static void OF(max_run)(const tp_pool_plan *p, const T *in, tp_pool_range z, tp_pool_range y, int64_t x, int64_t n,
                        T *best, int64_t *index) {
    SIDE where[BAND];
    int64_t step = p->stride[2], width = p->in[2], start = x * step - p->padding[2];
    int64_t first = (z.begin * p->in[1] + y.begin) * width + start;
    for (int64_t i = 0; i < n; i++) best[i] = LOWEST, where[i] = (SIDE)(first + i * step);
    for (int64_t i = 0, at; i < n && (at = start + i * step) < 0; i++)
        where[i] = (SIDE)(first - start + tp_pool_range_at(p, 2, x + i).begin);
    for (int64_t k = z.begin; k < z.end; k += z.step)
        for (int64_t j = y.begin; j < y.end; j += y.step)
            for (int64_t i = 0, at = start; i < p->kernel[2]; i++, at += p->dilation[2]) {
                int64_t lo = at < 0 ? (step - 1 - at) / step : 0, hi = at < width ? (width - 1 - at) / step + 1 : 0;
                if (hi > n) hi = n;
                if (lo < hi)
                    OF(tap)(in, step, hi - lo, (k * p->in[1] + j) * width + at + lo * step, best + lo, where + lo);
            }
    for (int64_t i = 0; i < n; i++) index[i] = where[i];
}

static void OF(max)(const tp_pool_plan *p, const void *in, void *out_, int64_t *index) {
    T *out = out_;
    int64_t work = tp_pool_row_work(p), done = 0, n = p->out[2];
    bool by_run = !p->adaptive && n >= 4 && p->in[0] * p->in[1] * p->in[2] < INT32_MAX;
    for (int64_t k = 0; k < p->out[0]; k++) {
        tp_pool_range z = tp_pool_range_at(p, 0, k);
        for (int64_t j = 0; j < p->out[1]; j++, out += n, index += n) {
            if (tp_pool_ends(&done, work)) return;
            tp_pool_range y = tp_pool_range_at(p, 1, j);
            for (int64_t i = 0; by_run && i < n; i += BAND)
                OF(max_run)(p, in, z, y, i, n - i < BAND ? n - i : BAND, out + i, index + i);
            for (int64_t i = 0; !by_run && i < n; i++)
                OF(max_at)(p, in, z, y, tp_pool_range_at(p, 2, i), out + i, index + i);
        }
    }
}

/* The larger of neighbours in the rows, and whether it is the right one: n of them, without a gap between rows. */
TP_INLINE void OF(pairs)(const T *in, T *best, SIDE *right, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        T a = in[2 * i], b = in[2 * i + 1];
        bool r = (b > a) | IS_NAN(b);
        best[i] = r ? b : a;
        right[i] = r;
    }
}

typedef T OF(four) __attribute__((vector_size(4 * sizeof(T))));
typedef SIDE OF(four_sides) __attribute__((vector_size(4 * sizeof(T))));

/* The larger of neighbouring rows of such, n windows each, and where it is: `at` is the first window's first place.
 * Rows are often shorter than the CPU's vectors. */
TP_INLINE void OF(lower)(const T *best, const SIDE *right, int64_t n, int64_t width, int64_t at, T *out,
                         int64_t *index) {
    int64_t x = 0;
    for (; n < SHORT_ROW && x + 4 <= n; x += 4) {
        OF(four) a, b;
        OF(four_sides) at_a, at_b, place = {0, 2, 4, 6};
        memcpy(&a, best + x, sizeof a), memcpy(&b, best + n + x, sizeof b);
        memcpy(&at_a, right + x, sizeof at_a), memcpy(&at_b, right + n + x, sizeof at_b);
        OF(four_sides) r = (b > a) | IS_NAN(b), larger = (r & (OF(four_sides))b) | (~r & (OF(four_sides))a);
        place += (r & (at_b + (SIDE)width)) | (~r & at_a);
        memcpy(out + x, &larger, sizeof larger);
        four_places places = __builtin_convertvector(place, four_places) + (at + 2 * x);
        memcpy(index + x, &places, sizeof places);
    }
    for (; x < n; x++) {
        bool r = (best[n + x] > best[x]) | IS_NAN(best[n + x]);
        out[x] = r ? best[n + x] : best[x];
        index[x] = at + 2 * x + (r ? width + right[n + x] : (int64_t)right[x]);
    }
}

/* A band of rows at a time: first the larger of neighbours in a row, then of neighbouring rows. Where elements are
 * equal the first of the four wins, as anywhere else; a row that is longer than the windows has a last element to leave
 * out. */
static void OF(max22)(const tp_pool_plan *p, const void *in_, void *out_, int64_t *index) {
    T *out = out_, best[BAND];
    SIDE right[BAND];
    int64_t width = p->in[2], n = p->out[2], rows = BAND / (2 * n) < p->out[1] ? BAND / (2 * n) : p->out[1];
    int64_t done = 0;
    for (int64_t first = 0; first < p->out[1]; first += rows) {
        if (first && tp_pool_ends(&done, BAND)) return;
        int64_t count = p->out[1] - first < rows ? p->out[1] - first : rows;
        const T *in = (const T *)in_ + 2 * first * width;
        if (width == 2 * n) OF(pairs)(in, best, right, 2 * count * n);
        else
            for (int64_t y = 0; y < 2 * count; y++) OF(pairs)(in + y * width, best + y * n, right + y * n, n);
        for (int64_t y = 0; y < count; y++, out += n, index += n) {
            OF(lower)(best + 2 * y * n, right + 2 * y * n, n, width, 2 * (first + y) * width, out, index);
        }
    }
}

/* The indices are within the plane: pool_max_backward_cpu has looked. */
static void OF(max_backward)(const tp_pool_plan *p, const void *grad_, const int64_t *index, void *in_) {
    const T *grad = grad_;
    T *in = in_;
    int64_t n = p->out[0] * p->out[1] * p->out[2];
    memset(in, 0, (size_t)(p->in[0] * p->in[1] * p->in[2]) * sizeof(T));
    for (int64_t i = 0; i < n && !tp_ends_at(i); i++) in[index[i]] += grad[i];
}

TP_INLINE T OF(sum_at)(const tp_pool_plan *p, const T *in, tp_pool_range z, tp_pool_range y, tp_pool_range x) {
    T sum = 0;
    for (int64_t k = z.begin; k < z.end; k++)
        for (int64_t j = y.begin; j < y.end; j++)
            for (int64_t i = x.begin; i < x.end; i++) sum += in[(k * p->in[1] + j) * p->in[2] + i];
    return sum;
}

TP_INLINE void OF(add_at)(const tp_pool_plan *p, T *in, tp_pool_range z, tp_pool_range y, tp_pool_range x, T share) {
    for (int64_t k = z.begin; k < z.end; k++)
        for (int64_t j = y.begin; j < y.end; j++)
            for (int64_t i = x.begin; i < x.end; i++) in[(k * p->in[1] + j) * p->in[2] + i] += share;
}

/* forward: `out` gets averages of `in`; else each of `out` is shared out over its window of `in`. */
TP_INLINE void OF(averages)(const tp_pool_plan *p, T *in, T *out, bool forward) {
    int64_t work = tp_pool_row_work(p), done = 0;
    for (int64_t k = 0; k < p->out[0]; k++) {
        tp_pool_range z = tp_pool_range_at(p, 0, k);
        for (int64_t j = 0; j < p->out[1]; j++) {
            if (tp_pool_ends(&done, work)) return;
            tp_pool_range y = tp_pool_range_at(p, 1, j);
            for (int64_t i = 0; i < p->out[2]; i++, out++) {
                tp_pool_range x = tp_pool_range_at(p, 2, i);
                T divisor = (T)tp_pool_divisor(p, z, y, x);
                if (forward) *out = OF(sum_at)(p, in, z, y, x) / divisor;
                else OF(add_at)(p, in, z, y, x, *out / divisor);
            }
        }
    }
}

static void OF(average)(const tp_pool_plan *p, const void *in, void *out) { OF(averages)(p, (T *)in, out, true); }

static void OF(average_backward)(const tp_pool_plan *p, const void *grad, void *in) {
    int64_t n = p->in[0] * p->in[1] * p->in[2];
    for (int64_t i = 0; i < n; i++) ((T *)in)[i] = 0;
    OF(averages)(p, in, (T *)grad, false);
}
