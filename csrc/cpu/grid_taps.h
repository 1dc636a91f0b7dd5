/* grid_taps.h: the loops over a block of a grid's places for one dtype T, named by OF.
 *
 * A place's taps are the elements that it reads in a plane and their weights, the products of those along each
 * dimension. They are the same for all channels, so a block makes them once; what lies outside has weight 0, and is not
 * read from. At a place of an image that is not finite, all weights are NaN, and no gradient goes to the image. */

/* Along one dimension: where, how much, and how that changes with the grid's coordinate. */
typedef struct {
    int32_t at[4][B];
    T weight[4][B], slope[4][B];
} OF(line);

typedef struct {
    int32_t at[TP_GRID_TAPS][B];
    T weight[TP_GRID_TAPS][B];
} OF(taps);

/* Outside places mirrored at low and low + span, until inside; *slope becomes 1 or -1. */
TP_INLINE T OF(mirrored)(T x, T low, T span, T *slope) {
    const T away = ABS(x - low), turns = FLOOR(away / span), rest = away - turns * span;
    const bool odd = turns - 2 * FLOOR(turns / 2) != 0, left = x < low;
    *slope = odd != left ? -1 : 1;
    return (odd ? span - rest : rest) + low;
}
/* Brought into the plane as the border says; a place that is no number counts as 0. */
TP_INLINE T OF(bordered)(const tp_grid_plan *p, T x, int64_t size, T *slope) {
    T turn = 1;
    const T last = (T)(size - 1);
    if (p->border == TP_GRID_REFLECTION) {
        if (p->corners && size == 1) x = 0;
        else x = OF(mirrored)(x, p->corners ? 0 : (T)-0.5, p->corners ? last : (T)size, &turn);
    }
    const bool inside = x > 0 && x < last;
    *slope = inside ? turn : 0;
    x = x > 0 ? x : 0;
    return x < last ? x : last;
}
/* As an index; what is far outside stays outside, a NaN too. */
TP_INLINE T OF(kept)(T x, int64_t size) {
    x = x > -3 ? x : -3;
    return x < (T)size + 3 ? x : (T)size + 3;
}

/* W. Keys, "Cubic convolution interpolation", 1981, with A = -0.75: the weights of the four elements around, and their
 * slopes. */
TP_INLINE T OF(near)(T x) { return ((T)1.25 * x - (T)2.25) * x * x + 1; }
TP_INLINE T OF(far)(T x) { return (((T)-0.75 * x + (T)3.75) * x - 6) * x + 3; }
TP_INLINE T OF(near_slope)(T x) { return ((T)3.75 * x - (T)4.5) * x; }
TP_INLINE T OF(far_slope)(T x) { return ((T)-2.25 * x + (T)7.5) * x - 6; }

/* The weights of the taps of a place that lies at `part` between two elements. */
static void OF(weigh_nearest)(int64_t count, OF(line) * l) {
    for (int64_t i = 0; i < count; i++) l->weight[0][i] = 1, l->slope[0][i] = 0;
}
static void OF(weigh_linear)(const T *restrict part, const T *restrict slope, int64_t count, OF(line) *restrict l) {
    for (int64_t i = 0; i < count; i++) {
        l->weight[0][i] = 1 - part[i], l->slope[0][i] = -slope[i];
        l->weight[1][i] = part[i], l->slope[1][i] = slope[i];
    }
}
static void OF(weigh_cubic)(const T *restrict part, const T *restrict slope, int64_t count, OF(line) *restrict l) {
    for (int64_t i = 0; i < count; i++) {
        const T t = part[i];
        l->weight[0][i] = OF(far)(t + 1), l->slope[0][i] = OF(far_slope)(t + 1) * slope[i];
        l->weight[1][i] = OF(near)(t), l->slope[1][i] = OF(near_slope)(t) * slope[i];
        l->weight[2][i] = OF(near)(1 - t), l->slope[2][i] = -OF(near_slope)(1 - t) * slope[i];
        l->weight[3][i] = OF(far)(2 - t), l->slope[3][i] = -OF(far_slope)(2 - t) * slope[i];
    }
}

static void OF(along)(const tp_grid_plan *p, int d, const T *grid, int64_t count, OF(line) * l) {
    const int64_t size = p->size[d];
    const T scale = p->corners ? (T)(size - 1) / 2 : (T)size / 2, shift = p->corners ? 0 : (T)-0.5;
    T x[B], slope[B], low[B], part[B];
    for (int64_t i = 0; i < count; i++) x[i] = (grid[i * p->dims] + 1) * scale + shift, slope[i] = scale;
    if (p->border != TP_GRID_ZEROS && p->mode != TP_GRID_CUBIC) {
        for (int64_t i = 0; i < count; i++) {
            T turn;
            x[i] = OF(bordered)(p, x[i], size, &turn);
            slope[i] = turn == 0 ? 0 : turn * scale;
        }
    }
    const bool spreads = p->dims == 2 && p->mode != TP_GRID_NEAREST; /* a place that is not finite, to what is read */
    for (int64_t i = 0; i < count; i++) {
        const T rest = spreads ? x[i] - x[i] : 0;
        /* A cubic's places are brought into the plane one by one: they stay as they are, but for what no index holds.
         */
        x[i] = p->mode == TP_GRID_CUBIC && p->border != TP_GRID_ZEROS
                   ? (x[i] > (T)-1e8 ? (x[i] < (T)1e8 ? x[i] : (T)1e8) : (T)-1e8)
                   : OF(kept)(x[i], size);
        low[i] = p->mode == TP_GRID_NEAREST ? ROUND(x[i]) : FLOOR(x[i]);
        part[i] = x[i] - low[i] + rest;
    }
    const int taps = taps_along(p);
    if (taps == 1) OF(weigh_nearest)(count, l);
    else if (taps == 2) OF(weigh_linear)(part, slope, count, l);
    else OF(weigh_cubic)(part, slope, count, l);
    for (int k = 0; k < taps; k++) {
        const T step = taps == 4 ? (T)(k - 1) : (T)k;
        const bool brought = taps == 4 && p->border != TP_GRID_ZEROS;
        for (int64_t i = 0; i < count; i++) {
            T at = low[i] + step, unused;
            if (brought) at = OF(bordered)(p, at, size, &unused);
            const bool inside = at >= 0 && at < (T)size;
            l->at[k][i] = inside ? (int32_t)at : 0;
            l->weight[k][i] -= inside ? 0 : l->weight[k][i];
            l->slope[k][i] = inside ? l->slope[k][i] : 0;
        }
    }
}

/* The taps of all dimensions together; `by`: that dimension's slopes are in the place of its weights. */
static void OF(combine)(const tp_grid_plan *p, const OF(line) * lines, int64_t count, int by, OF(taps) * all) {
    const int n = taps_along(p), total = taps_of(p);
    for (int k = 0; k < total; k++) {
        int rest = k, of[3];
        for (int d = p->dims - 1; d >= 0; d--, rest /= n) of[d] = rest % n;
        for (int d = 0; d < p->dims; d++) {
            const T *weight = d == by ? lines[d].slope[of[d]] : lines[d].weight[of[d]];
            const int32_t *at = lines[d].at[of[d]], size = (int32_t)p->size[d];
            if (d == 0) {
                for (int64_t i = 0; i < count; i++) all->at[k][i] = at[i], all->weight[k][i] = weight[i];
                continue;
            }
            for (int64_t i = 0; i < count; i++) {
                all->at[k][i] = all->at[k][i] * size + at[i];
                all->weight[k][i] *= weight[i];
            }
        }
    }
}
static void OF(taps_at)(const tp_grid_plan *p, const T *grid, int64_t count, OF(line) * lines, OF(taps) * all) {
    for (int d = 0; d < p->dims; d++) OF(along)(p, d, grid + p->dims - 1 - d, count, &lines[d]);
    OF(combine)(p, lines, count, -1, all);
}

/* out = the sum over n taps; n is a constant where this is called. */
TP_INLINE void OF(read)(const OF(taps) * t, int n, const T *restrict plane, int64_t count, T *restrict out) {
    for (int64_t i = 0; i < count; i++) {
        T sum = 0;
        for (int k = 0; k < n; k++) {
            const T weight = t->weight[k][i], value = plane[t->at[k][i]];
            sum += weight != 0 ? weight * value : 0;
        }
        out[i] = sum;
    }
}

static void OF(forward)(const tp_grid_plan *p, const void *in, const void *grid, int64_t count, void *out) {
    OF(line) lines[3];
    OF(taps) t;
    OF(taps_at)(p, grid, count, lines, &t);
    const int n = taps_of(p);
    for (int64_t c = 0; c < p->channels; c++) {
        const T *plane = (const T *)in + c * p->in_plane;
        T *to = (T *)out + c * p->places;
        if (n == 1) OF(read)(&t, 1, plane, count, to);
        else if (n == 4) OF(read)(&t, 4, plane, count, to);
        else if (n == 8) OF(read)(&t, 8, plane, count, to);
        else OF(read)(&t, 16, plane, count, to);
    }
}

static void OF(to_grid)(const tp_grid_plan *p, const void *in, const void *grid, const void *grad, int64_t count,
                        void *out) {
    OF(line) lines[3];
    OF(taps) t;
    T sums[TP_GRID_TAPS][B]; /* over the channels, of each tap's element times the gradient */
    const int n = taps_of(p);
    OF(taps_at)(p, grid, count, lines, &t);
    for (int k = 0; k < n; k++) {
        for (int64_t i = 0; i < count; i++) sums[k][i] = 0;
        for (int64_t c = 0; c < p->channels; c++) {
            const T *restrict plane = (const T *)in + c * p->in_plane, *restrict g = (const T *)grad + c * p->places;
            for (int64_t i = 0; i < count; i++) sums[k][i] += g[i] * plane[t.at[k][i]];
        }
    }
    for (int d = 0; d < p->dims; d++) {
        OF(combine)(p, lines, count, d, &t);
        T *to = (T *)out + p->dims - 1 - d;
        for (int64_t i = 0; i < count; i++) {
            T sum = 0;
            for (int k = 0; k < n; k++) sum += t.weight[k][i] != 0 ? t.weight[k][i] * sums[k][i] : 0;
            to[i * p->dims] = sum;
        }
    }
}

static void OF(to_input)(const tp_grid_plan *p, const void *grid, const void *grad, int64_t channels, void *out) {
    OF(line) lines[3];
    OF(taps) t;
    const int n = taps_of(p);
    for (int64_t first = 0; first < p->places; first += B) {
        const int64_t count = p->places - first < B ? p->places - first : B;
        OF(taps_at)(p, (const T *)grid + first * p->dims, count, lines, &t);
        for (int64_t c = 0; c < channels; c++) {
            const T *g = (const T *)grad + c * p->places + first;
            T *plane = (T *)out + c * p->in_plane;
            for (int64_t i = 0; i < count; i++)
                for (int k = 0; k < n; k++)
                    if (t.weight[k][i] != 0 && t.weight[k][i] == t.weight[k][i])
                        plane[t.at[k][i]] += t.weight[k][i] * g[i];
        }
    }
}
