/* pool.cl: pooling over contiguous planes (prim/pool.h).
 *
 * Defined in front: KERNEL_<name>, for the one that is wanted, since each takes its time to compile; T, LOWEST,
 * IS_NAN(v); EIGHT, SIXTEEN and MASK (vectors of T, and what they compare to) on CPU devices; ADAPTIVE; WHOLE, 1 where a
 * work-item does a row of what is made (CPU devices), 0 where one element. Gradients gather: an element adds up the
 * shares of the windows that contain it, in their order. */
typedef struct {
    long planes;
    long in[3], out[3], window[3], stride[3], padding[3], dilation[3];
    long count_border, divisor;
} geometry;

typedef struct {
    long begin, end, step, padded;
} range;

/* What window o covers along dimension d (tp_pool_range_at). */
static inline range range_of(const geometry *g, int d, long o) {
    range r;
#ifdef ADAPTIVE
    r.begin = o * g->in[d] / g->out[d], r.end = ((o + 1) * g->in[d] + g->out[d] - 1) / g->out[d];
    r.step = 1, r.padded = r.end - r.begin;
#else
    r.step = g->dilation[d];
    r.begin = o * g->stride[d] - g->padding[d];
    r.end = r.begin + (g->window[d] - 1) * r.step + 1;
    if (r.end > g->in[d] + g->padding[d]) r.end = g->in[d] + g->padding[d];
    r.padded = r.end - r.begin;
    if (r.begin < 0) r.begin += (r.step - 1 - r.begin) / r.step * r.step;
    if (r.end > g->in[d]) r.end = g->in[d];
#endif
    return r;
}

/* The windows that element i may be in along dimension d: [begin, end). */
static inline range windows_of(const geometry *g, int d, long i) {
    range r;
    r.step = 1, r.padded = 0;
#ifdef ADAPTIVE
    r.begin = i * g->out[d] / g->in[d], r.end = ((i + 1) * g->out[d] + g->in[d] - 1) / g->in[d];
#else
    long first = i + g->padding[d] - (g->window[d] - 1) * g->dilation[d];
    r.begin = first > 0 ? (first + g->stride[d] - 1) / g->stride[d] : 0;
    r.end = (i + g->padding[d]) / g->stride[d] + 1;
#endif
    if (r.end > g->out[d]) r.end = g->out[d];
    return r;
}

static inline T divisor_of(const geometry *g, range z, range y, range x) {
    if (g->divisor) return (T)g->divisor;
    long n = g->count_border ? z.padded * y.padded * x.padded
                             : (z.end - z.begin) * (y.end - y.begin) * (x.end - x.begin);
    return (T)(n ? n : 1);
}

/* z, y and the plane of a work-item, and the columns [first, last) that it makes of a plane of `size`. */
#define PLACE(size)                                                         \
    long unit = get_global_id(0), first = 0, last = (size)[2];              \
    if (!WHOLE) first = unit % last, unit /= last, last = first + 1;        \
    long y = unit % (size)[1], z = unit / (size)[1] % (size)[0];            \
    long plane = unit / (size)[1] / (size)[0];                              \
    if (plane >= g.planes) return;                                          \
    long n_in = g.in[0] * g.in[1] * g.in[2], n_out = g.out[0] * g.out[1] * g.out[2]; \
    in += in_offset + plane * n_in, out += out_offset + plane * n_out;      \
    long row = (z * (size)[1] + y) * (size)[2];

#ifdef KERNEL_largest
__kernel void largest(geometry g, __global const T *in, long in_offset, __global T *out, long out_offset,
                      __global long *at, long at_offset) {
    PLACE(g.out)
    at += at_offset + plane * n_out;
    range rz = range_of(&g, 0, z), ry = range_of(&g, 1, y);
    for (long x = first; x < last; x++) {
        range rx = range_of(&g, 2, x);
        T best = LOWEST;
        long where = (rz.begin * g.in[1] + ry.begin) * g.in[2] + rx.begin;
        for (long k = rz.begin; k < rz.end; k += rz.step)
            for (long j = ry.begin; j < ry.end; j += ry.step) {
                long line = (k * g.in[1] + j) * g.in[2];
                for (long i = rx.begin; i < rx.end; i += rx.step) {
                    T v = in[line + i];
                    bool better = v > best || IS_NAN(v);
                    best = better ? v : best;
                    where = better ? line + i : where;
                }
            }
        out[row + x] = best;
        at[row + x] = where;
    }
}
#endif

#ifdef KERNEL_fractional
typedef struct {
    T of[3];
} paces;

/* Where window o of dimension d begins; u has a number for each of the dims (tp_pool_pace, TP_POOL_BEGIN). */
static inline long begin_of(const geometry *g, const paces *pace, __global const T *u, long dims, int d, long o) {
    long room = g->in[d] - g->window[d];
    if (d < 3 - dims) return 0;
    if (o == g->out[d] - 1) return room;
    T number = u[dims == 3 ? d : 2 - d]; /* tp_pool_number */
    T begin = trunc(((T)o + number) * pace->of[d]) - trunc(number * pace->of[d]);
    return !(begin > 0) ? 0 : begin < (T)room ? (long)begin : room;
}

__kernel void fractional(geometry g, __global const T *in, long in_offset, __global T *out, long out_offset,
                         __global long *at, long at_offset, __global const T *u, long u_offset, paces pace, long dims) {
    PLACE(g.out)
    at += at_offset + plane * n_out, u += u_offset + plane * dims;
    long k0 = begin_of(&g, &pace, u, dims, 0, z), j0 = begin_of(&g, &pace, u, dims, 1, y);
    for (long x = first; x < last; x++) {
        long i0 = begin_of(&g, &pace, u, dims, 2, x);
        T best = LOWEST;
        long where = (k0 * g.in[1] + j0) * g.in[2] + i0;
        for (long k = k0; k < k0 + g.window[0]; k++)
            for (long j = j0; j < j0 + g.window[1]; j++) {
                long line = (k * g.in[1] + j) * g.in[2];
                for (long i = i0; i < i0 + g.window[2]; i++) {
                    T v = in[line + i];
                    bool better = v > best || IS_NAN(v);
                    best = better ? v : best;
                    where = better ? line + i : where;
                }
            }
        out[row + x] = best;
        at[row + x] = where;
    }
}
#endif

#define LARGER_OF(a, pa, b, pb)             \
    {                                       \
        bool better = b > a || IS_NAN(b);   \
        a = better ? b : a;                 \
        pa = better ? pb : pa;              \
    }
/* A row of windows of 2x2 side by side, all inside, that sees the elements from `start` on. */
static inline void row_by_two(__global const T *in, __global T *out, __global long *at, int first, int last, int width,
                              long start) {
    int x = first;
    in += start;
#ifdef MASK
    /* Eight windows in a vector. */
    const MASK from = (MASK)(0, 2, 4, 6, 8, 10, 12, 14);
    for (; x + 8 <= last; x += 8) {
        SIXTEEN upper = vload16(0, in + 2 * x), lower = vload16(0, in + width + 2 * x);
        EIGHT a = upper.even, b = upper.odd, c = lower.even, d = lower.odd;
        MASK right = (b > a) | IS_NAN(b), right_below = (d > c) | IS_NAN(d);
        a = right ? b : a, c = right_below ? d : c;
        MASK below = (c > a) | IS_NAN(c), place = from + (below ? width - right_below : -right);
        vstore8(below ? c : a, 0, out + x);
        vstore8(convert_long8(place) + start + 2 * x, 0, at + x);
    }
    FEW_TURNS
#endif
    for (; x < last; x++) {
        T a = in[2 * x], b = in[2 * x + 1], c = in[width + 2 * x], d = in[width + 2 * x + 1];
        int pa = 2 * x, pb = pa + 1, pc = pa + width, pd = pc + 1;
        LARGER_OF(a, pa, b, pb)
        LARGER_OF(c, pc, d, pd)
        LARGER_OF(a, pa, c, pc)
        out[x] = a;
        at[x] = start + pa;
    }
}

#define BAND 16 /* rows of a work-item of a CPU device */
#ifdef KERNEL_largest_by_two
__kernel void largest_by_two(geometry g, __global const T *in, long in_offset, __global T *out, long out_offset,
                             __global long *at, long at_offset) {
#if WHOLE
    long bands = (g.out[1] + BAND - 1) / BAND, unit = get_global_id(0), plane = unit / bands, from = unit % bands * BAND;
    if (plane >= g.planes) return;
    long n = g.out[2], width = g.in[2], end = min(from + BAND, g.out[1]);
    in += in_offset + plane * g.in[1] * width;
    out += out_offset + plane * g.out[1] * n, at += at_offset + plane * g.out[1] * n;
    for (long y = from; y < end; y++) row_by_two(in, out + y * n, at + y * n, 0, n, width, 2 * y * width);
#else
    PLACE(g.out)
    row_by_two(in, out + row, at + at_offset + plane * n_out + row, first, last, g.in[2], 2 * y * g.in[2]);
#endif
}
#endif

/* out holds the gradient, in is made. */
#ifdef KERNEL_to_largest
__kernel void to_largest(geometry g, __global T *in, long in_offset, __global const T *out, long out_offset,
                         __global const long *at, long at_offset) {
    PLACE(g.in)
    at += at_offset + plane * n_out;
    range wz = windows_of(&g, 0, z), wy = windows_of(&g, 1, y);
    for (long x = first; x < last; x++) {
        range wx = windows_of(&g, 2, x);
        T sum = 0;
        for (long k = wz.begin; k < wz.end; k++)
            for (long j = wy.begin; j < wy.end; j++)
                for (long i = wx.begin; i < wx.end; i++) {
                    long o = (k * g.out[1] + j) * g.out[2] + i;
                    if (at[o] == row + x) sum += out[o];
                }
        in[row + x] = sum;
    }
}
#endif

/* The same on a CPU device: a work-item walks through a plane's gradient, whose places may be any. */
#ifdef KERNEL_scatter_largest
__kernel void scatter_largest(geometry g, __global T *in, long in_offset, __global const T *out, long out_offset,
                              __global const long *at, long at_offset) {
    long plane = get_global_id(0), n_in = g.in[0] * g.in[1] * g.in[2], n_out = g.out[0] * g.out[1] * g.out[2];
    if (plane >= g.planes) return;
    in += in_offset + plane * n_in, out += out_offset + plane * n_out, at += at_offset + plane * n_out;
    for (long i = 0; i < n_in; i++) in[i] = 0;
    for (long i = 0; i < n_out; i++)
        if (at[i] >= 0 && at[i] < n_in) in[at[i]] += out[i];
}
#endif

#ifdef KERNEL_average
__kernel void average(geometry g, __global const T *in, long in_offset, __global T *out, long out_offset) {
    PLACE(g.out)
    range rz = range_of(&g, 0, z), ry = range_of(&g, 1, y);
    for (long x = first; x < last; x++) {
        range rx = range_of(&g, 2, x);
        T sum = 0;
        for (long k = rz.begin; k < rz.end; k++)
            for (long j = ry.begin; j < ry.end; j++)
                for (long i = rx.begin; i < rx.end; i++) sum += in[(k * g.in[1] + j) * g.in[2] + i];
        out[row + x] = sum / divisor_of(&g, rz, ry, rx);
    }
}
#endif

#ifdef KERNEL_to_average
__kernel void to_average(geometry g, __global T *in, long in_offset, __global const T *out, long out_offset) {
    PLACE(g.in)
    range wz = windows_of(&g, 0, z), wy = windows_of(&g, 1, y);
    for (long x = first; x < last; x++) {
        range wx = windows_of(&g, 2, x);
        T sum = 0;
        for (long k = wz.begin; k < wz.end; k++) {
            range rz = range_of(&g, 0, k);
            for (long j = wy.begin; j < wy.end; j++) {
                range ry = range_of(&g, 1, j);
                for (long i = wx.begin; i < wx.end; i++)
                    sum += out[(k * g.out[1] + j) * g.out[2] + i] / divisor_of(&g, rz, ry, range_of(&g, 2, i));
            }
        }
        in[row + x] = sum;
    }
}
#endif
