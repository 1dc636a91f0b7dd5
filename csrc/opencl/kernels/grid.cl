/* grid.cl: images and volumes sampled at the places of a grid, by the steps of cpu/grid_taps.h: a work-item for each
 * place, for all channels.
 *
 * Defined in front: T; DIMS; TAPS, the elements that a place reads along a dimension (1: the nearest, 2: linear,
 * 4: cubic). */
#define UNROLLED _Pragma("unroll")
#define ALL (DIMS == 2 ? TAPS * TAPS : TAPS * TAPS * TAPS)
enum { ZEROS, BORDER, REFLECTION };

typedef struct {
    long images, channels, places, size[3];
    long border, corners;
} plan;

/* Along one dimension: where, how much, and how that changes with the grid's coordinate. */
typedef struct {
    int at[TAPS];
    T weight[TAPS], slope[TAPS];
} line;

/* Outside places mirrored at low and low + span, until inside; *slope becomes 1 or -1. */
static inline T mirrored(T x, T low, T span, T *slope) {
    const T away = fabs(x - low), turns = floor(away / span), rest = away - turns * span;
    const bool odd = turns - 2 * floor(turns / 2) != 0, left = x < low;
    *slope = odd != left ? -1 : 1;
    return (odd ? span - rest : rest) + low;
}

/* Brought into the plane as the border says; a place that is no number counts as 0. */
static inline T bordered(const plan *p, T x, int size, T *slope) {
    const T last = (T)(size - 1), low = (T)-0.5;
    T turn = 1;
    if (p->border == REFLECTION) {
        if (p->corners && size == 1) x = 0;
        else x = mirrored(x, p->corners ? (T)0 : low, p->corners ? last : (T)size, &turn);
    }
    *slope = x > 0 && x < last ? turn : 0;
    x = x > 0 ? x : 0;
    return x < last ? x : last;
}

/* W. Keys, "Cubic convolution interpolation", 1981, with A = -0.75. */
static inline T near(T x) { return ((T)1.25 * x - (T)2.25) * x * x + 1; }
static inline T far(T x) { return (((T)-0.75 * x + (T)3.75) * x - 6) * x + 3; }
static inline T near_slope(T x) { return ((T)3.75 * x - (T)4.5) * x; }
static inline T far_slope(T x) { return ((T)-2.25 * x + (T)7.5) * x - 6; }

static inline void weigh(T t, T slope, line *l) {
#if TAPS == 1
    l->weight[0] = 1, l->slope[0] = 0;
#elif TAPS == 2
    l->weight[0] = 1 - t, l->slope[0] = -slope;
    l->weight[1] = t, l->slope[1] = slope;
#else
    l->weight[0] = far(t + 1), l->slope[0] = far_slope(t + 1) * slope;
    l->weight[1] = near(t), l->slope[1] = near_slope(t) * slope;
    l->weight[2] = near(1 - t), l->slope[2] = -near_slope(1 - t) * slope;
    l->weight[3] = far(2 - t), l->slope[3] = -far_slope(2 - t) * slope;
#endif
}

static inline void along(const plan *p, int d, T coordinate, line *l) {
    const int size = p->size[d];
    const T shift = (T)-0.5, scale = (T)(p->corners ? size - 1 : size) / 2, most = 1e8;
    T x = (coordinate + 1) * scale + (p->corners ? (T)0 : shift), slope = scale;
    /* A cubic's places are brought into the plane one by one. */
    const bool brought = TAPS == 4 && p->border != ZEROS;
    if (p->border != ZEROS && TAPS != 4) {
        T turn;
        x = bordered(p, x, size, &turn);
        slope = turn == 0 ? 0 : turn * scale;
    }
    const T rest = DIMS == 2 && TAPS > 1 ? x - x : 0; /* what is not finite spreads to what is read */
    const T least = brought ? -most : (T)-3, top = brought ? most : (T)(size + 3); /* what an index holds; no NaN */
    x = x > least ? x : least;
    x = x < top ? x : top;
    const T low = TAPS == 1 ? rint(x) : floor(x);
    weigh(x - low + rest, slope, l);
    UNROLLED
    for (int k = 0; k < TAPS; k++) {
        T at = low + (TAPS == 4 ? k - 1 : k), unused;
        if (brought) at = bordered(p, at, size, &unused);
        const bool inside = at >= 0 && at < (T)size;
        l->at[k] = inside ? (int)at : 0;
        l->weight[k] -= inside ? 0 : l->weight[k];
        l->slope[k] = inside ? l->slope[k] : 0;
    }
}

/* Tap k of all dimensions together: its place in a plane and its weight; `by`: with that dimension's slope. */
static inline int tap(const plan *p, const line *lines, int k, int by, T *weight) {
    int at = 0;
    *weight = 1;
    UNROLLED
    for (int d = 0, part = ALL / TAPS; d < DIMS; d++, k %= part, part /= TAPS) {
        const int i = k / part;
        at = at * (int)p->size[d] + lines[d].at[i];
        *weight *= d == by ? lines[d].slope[i] : lines[d].weight[i];
    }
    return at;
}

/* The place of a work-item, its image, its lines, and the elements of a plane. */
#define PLACE                                                                           \
    const long id = get_global_id(0), image = id / p.places, i = id - image * p.places; \
    if (image >= p.images) return;                                                      \
    line lines[DIMS];                                                                   \
    long plane = 1;                                                                     \
    UNROLLED for (int d = 0; d < DIMS; d++) {                                           \
        along(&p, d, grid[go + id * DIMS + DIMS - 1 - d], &lines[d]);                   \
        plane *= p.size[d];                                                             \
    }

#define TAKE_TAPS(by) \
    UNROLLED for (int k = 0; k < ALL; k++) at[k] = tap(&p, lines, k, by, &weight[k]);

__kernel void forward(plan p, __global const T *grid, long go, __global const T *x, long xo, __global T *out, long oo) {
    PLACE
    int at[ALL];
    T weight[ALL];
    TAKE_TAPS(-1)
    x += xo + image * p.channels * plane, out += oo + image * p.channels * p.places + i;
    for (long c = 0; c < p.channels; c++, x += plane, out += p.places) {
        T sum = 0;
        UNROLLED
        for (int k = 0; k < ALL; k++) sum += weight[k] != 0 ? weight[k] * x[at[k]] : 0;
        *out = sum;
    }
}

__kernel void to_grid(plan p, __global const T *grid, long go, __global const T *x, long xo, __global const T *grad,
                      long gradient_offset, __global T *out, long oo) {
    PLACE
    int at[ALL];
    T weight[ALL], sums[ALL]; /* over the channels, of each tap's element times the gradient */
    TAKE_TAPS(-1)
    for (int k = 0; k < ALL; k++) sums[k] = 0;
    x += xo + image * p.channels * plane, grad += gradient_offset + image * p.channels * p.places + i;
    for (long c = 0; c < p.channels; c++, x += plane, grad += p.places)
        for (int k = 0; k < ALL; k++) sums[k] += *grad * x[at[k]];
    for (int d = 0; d < DIMS; d++) {
        T sum = 0;
        TAKE_TAPS(d)
        UNROLLED
        for (int k = 0; k < ALL; k++) sum += weight[k] != 0 ? weight[k] * sums[k] : 0;
        out[oo + id * DIMS + DIMS - 1 - d] = sum;
    }
}

/* What the places have for the elements that they read: shares [images, channels, places * ALL], and which elements. */
__kernel void shares(plan p, __global const T *grid, long go, __global const T *grad, long gradient_offset,
                     __global long *index, long io, __global T *out, long oo) {
    PLACE
    T weight[ALL];
    for (int k = 0; k < ALL; k++) index[io + id * ALL + k] = tap(&p, lines, k, -1, &weight[k]);
    grad += gradient_offset + image * p.channels * p.places + i;
    out += oo + (image * p.channels * p.places + i) * ALL;
    for (long c = 0; c < p.channels; c++, grad += p.places, out += p.places * ALL)
        for (int k = 0; k < ALL; k++) out[k] = weight[k] != 0 && weight[k] == weight[k] ? weight[k] * *grad : 0;
}
