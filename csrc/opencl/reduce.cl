/* reduce.cl: one kernel for every reduction.
 *
 * Defined in front: IN_* and OUT_* (element.h), OP_<name> or the functions of_start, of_step, of_join and of_finish, NK and NR
 * (how many kept and reduced dimensions there are), LANES, COLUMNS, and GROUP where a work-group shares one output.
 *
 * An output's elements are dealt out in `parts`; a part is folded by one work-item, or by a group in local memory. With
 * one part the result is finished at once, else accumulators go to `partial` and the kernel `join_parts` ends it. A
 * work-item folds in LANES lanes, and begins anew every BLOCK steps: a sum's error grows with the length of neither.
 *
 * Invariant: which elements are folded together depends on shapes only, so results are the same in every run. */
#define BLOCK 256

#if defined(OP_SUM) || defined(OP_MEAN) || defined(OP_NANSUM)
typedef IN_T acc_t;
static inline acc_t start_acc(void) { return (acc_t)(0); }
#ifdef OP_NANSUM
static inline acc_t step_acc(acc_t a, IN_T x, long i) { return x != x ? a : a + x; }
#else
static inline acc_t step_acc(acc_t a, IN_T x, long i) { return a + x; }
#endif
static inline acc_t join_acc(acc_t a, acc_t b) { return a + b; }
#ifdef OP_MEAN
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a / (REAL_T)n; }
#else
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a; }
#endif

#elif defined(OP_ANY) || defined(OP_ALL) || defined(OP_NONZERO)
#ifdef IN_COMPLEX
#define IS_NONZERO(x) ((x).x != 0 || (x).y != 0)
#else
#define IS_NONZERO(x) ((x) != 0)
#endif
typedef long acc_t;
static inline acc_t start_acc(void) { return 0; }
#ifdef OP_ALL
static inline acc_t step_acc(acc_t a, IN_T x, long i) { return a + !IS_NONZERO(x); }
#else
static inline acc_t step_acc(acc_t a, IN_T x, long i) { return a + IS_NONZERO(x); }
#endif
static inline acc_t join_acc(acc_t a, acc_t b) { return a + b; }
#if defined(OP_NONZERO)
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a; }
#elif defined(OP_ANY)
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a != 0; }
#else
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a == 0; }
#endif

#elif defined(OP_LARGEST) || defined(OP_SMALLEST) || defined(OP_LARGEST_AT) || defined(OP_SMALLEST_AT)
/* x replaces the best so far unless it is no better; a NaN replaces any number and nothing replaces a NaN. */
typedef struct {
    IN_T best;
    long at; /* -1: nothing yet */
} acc_t;
#if defined(OP_LARGEST) || defined(OP_LARGEST_AT)
static inline bool beats(IN_T x, IN_T best) { return !(x <= best) && best == best; }
#else
static inline bool beats(IN_T x, IN_T best) { return !(x >= best) && best == best; }
#endif
static inline acc_t start_acc(void) {
    acc_t a = {0, -1};
    return a;
}
static inline acc_t step_acc(acc_t a, IN_T x, long i) {
    if (a.at < 0 || beats(x, a.best)) {
        a.best = x;
        a.at = i;
    }
    return a;
}
static inline acc_t join_acc(acc_t a, acc_t b) {
    if (a.at < 0) return b;
    if (b.at < 0 || beats(a.best, b.best)) return a;
    return beats(b.best, a.best) || b.at < a.at ? b : a;
}
#if defined(OP_LARGEST) || defined(OP_SMALLEST)
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a.best; }
#else
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a.at; }
#endif

#elif defined(OP_VARIANCE)
typedef struct {
    WIDEST mean[2], distance;
    long n;
} acc_t;
static inline acc_t start_acc(void) {
    acc_t a = {{0, 0}, 0, 0};
    return a;
}
/* Chan's formula. */
static inline acc_t join_acc(acc_t a, acc_t b) {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    WIDEST share = (WIDEST)b.n / (WIDEST)(a.n + b.n), gap = 0;
    for (int c = 0; c < 2; c++) {
        WIDEST d = b.mean[c] - a.mean[c];
        gap += d * d;
        a.mean[c] += d * share;
    }
    a.distance += b.distance + gap * (WIDEST)a.n * share;
    a.n += b.n;
    return a;
}
static inline acc_t step_acc(acc_t a, IN_T x, long i) {
#ifdef IN_COMPLEX
    acc_t b = {{x.x, x.y}, 0, 1};
#else
    acc_t b = {{x, 0}, 0, 1};
#endif
    return join_acc(a, b);
}
static inline OUT_T finish_acc(acc_t a, long n, WIDEST correction, int root) {
    WIDEST by = (WIDEST)n - correction, v = a.distance / (by > 0 ? by : 0);
    return root ? sqrt(v) : v;
}

#elif defined(OP_LENGTH)
typedef WIDEST acc_t;
static inline acc_t start_acc(void) { return 0; }
#ifdef IN_COMPLEX
static inline acc_t step_acc(acc_t a, IN_T x, long i) { return a + (WIDEST)x.x * x.x + (WIDEST)x.y * x.y; }
#else
static inline acc_t step_acc(acc_t a, IN_T x, long i) { return a + (WIDEST)x * x; }
#endif
static inline acc_t join_acc(acc_t a, acc_t b) { return a + b; }
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return sqrt(a); }

#else /* from the YAML's expressions */
typedef OUT_T acc_t;
static inline acc_t start_acc(void) { return of_start(); }
static inline acc_t step_acc(acc_t a, IN_T x, long i) { return of_step(a, x); }
static inline acc_t join_acc(acc_t a, acc_t b) { return of_join(a, b); }
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return of_finish(a, FROM_COUNT(n)); }
#endif

typedef struct {
    long size[NK], in[NK], out[NK];       /* kept, fastest first; strides in elements */
    long reduced_size[NR], reduced_in[NR];
    long outputs, count, parts, part;     /* part: elements in one */
} geometry;

static inline long place_of_input(const geometry *g, long output) {
    long at = 0;
    for (int d = 0; d < NK; d++) {
        at += (d + 1 < NK ? output % g->size[d] : output) * g->in[d];
        output /= g->size[d];
    }
    return at;
}
static inline long place_of_output(const geometry *g, long output) {
    long at = 0;
    for (int d = 0; d < NK; d++) {
        at += (d + 1 < NK ? output % g->size[d] : output) * g->out[d];
        output /= g->size[d];
    }
    return at;
}
static inline long place_along(const geometry *g, long i) {
    if (NR == 1) return i * g->reduced_in[0];
    long at = 0;
    for (int d = 0; d < NR; d++) {
        at += (d + 1 < NR ? i % g->reduced_size[d] : i) * g->reduced_in[d];
        i /= g->reduced_size[d];
    }
    return at;
}

/* Elements begin, begin + step, ... below end. */
static inline acc_t fold(const geometry *g, __global const IN_S *in, long begin, long end, long step) {
    acc_t whole = start_acc();
    long i = begin;
#if LANES > 1 && NR > 1
    /* Runs of neighbours, one after the other. */
    while (step == 1 && g->reduced_in[0] == 1 && i < end) {
        acc_t lane[LANES];
        for (int k = 0; k < LANES; k++) lane[k] = start_acc();
        for (long steps = 0; i < end && steps < BLOCK;) {
            long n = min(g->reduced_size[0] - i % g->reduced_size[0], min(end - i, (long)BLOCK * LANES)), s = 0;
            __global const IN_S *p = in + place_along(g, i);
            for (; s + LANES <= n; s += LANES, steps++) {
                __attribute__((opencl_unroll_hint(LANES))) for (int k = 0; k < LANES; k++) lane[k] =
                    step_acc(lane[k], IN_LOAD(p[s + k]), i + s + k);
            }
            for (int k = 0; s < n; s++, k++) lane[k] = step_acc(lane[k], IN_LOAD(p[s]), i + s);
            i += n, steps++;
        }
        for (int width = LANES / 2; width; width /= 2)
            for (int k = 0; k < width; k++) lane[k] = join_acc(lane[k], lane[k + width]);
        whole = join_acc(whole, lane[0]);
    }
#endif
    while (i < end) {
        acc_t lane[LANES];
        for (int k = 0; k < LANES; k++) lane[k] = start_acc();
        long left = (end - i + step * LANES - 1) / (step * LANES), full = (end - i) / (step * LANES);
        long n = full < BLOCK ? full : BLOCK;
#if LANES > 1
        if (NR == 1 && g->reduced_in[0] == 1 && step == 1) {
            __global const IN_S *p = in + i;
            for (long s = 0; s < n; s++, p += LANES) {
                __attribute__((opencl_unroll_hint(LANES))) for (int k = 0; k < LANES; k++) lane[k] =
                    step_acc(lane[k], IN_LOAD(p[k]), i + s * LANES + k);
            }
            i += n * LANES;
        } else
#endif
            for (long s = 0; s < n; s++)
                for (int k = 0; k < LANES; k++, i += step)
                    lane[k] = step_acc(lane[k], IN_LOAD(in[place_along(g, i)]), i);
        if (n < BLOCK && left > n)
            for (int k = 0; i < end; k++, i += step) lane[k] = step_acc(lane[k], IN_LOAD(in[place_along(g, i)]), i);
        for (int width = LANES / 2; width; width /= 2)
            for (int k = 0; k < width; k++) lane[k] = join_acc(lane[k], lane[k + width]);
        whole = join_acc(whole, lane[0]);
    }
    return whole;
}

static inline void put(const geometry *g, acc_t acc, long output, long part, __global OUT_S *out,
                       __global acc_t *partial, WIDEST p, int q) {
    if (g->parts > 1) partial[output * g->parts + part] = acc;
    else out[place_of_output(g, output)] = OUT_STORE(finish_acc(acc, g->count, p, q));
}

#ifdef GROUP
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#else
__kernel
#endif
void reduce(geometry g, __global const IN_S *in, long in_offset, __global OUT_S *out, long out_offset,
            __global acc_t *partial, long partial_offset, WIDEST p, int q) {
    in += in_offset;
    out += out_offset;
    partial = (__global acc_t *)((__global char *)partial + partial_offset);
#ifdef GROUP
    long unit = get_group_id(0), output = unit / g.parts, part = unit % g.parts;
    int id = get_local_id(0);
    __local acc_t shared[GROUP];
    long begin = part * g.part, end = begin + g.part < g.count ? begin + g.part : g.count;
    shared[id] = fold(&g, in + place_of_input(&g, output), begin + id, end, GROUP);
    for (int width = GROUP / 2; width; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < width) shared[id] = join_acc(shared[id], shared[id + width]);
    }
    if (id == 0) put(&g, shared[0], output, part, out, partial, p, q);
#elif COLUMNS > 1
    /* On a CPU device: neighbouring outputs whose elements lie side by side, row after row. */
    long across = (g.size[0] + COLUMNS - 1) / COLUMNS, blocks = g.outputs / g.size[0] * across;
    long unit = get_global_id(0), block = unit % blocks, part = unit / blocks;
    if (part >= g.parts) return;
    long from = block % across * COLUMNS, output = block / across * g.size[0] + from;
    long begin = part * g.part, end = begin + g.part < g.count ? begin + g.part : g.count;
    int width = g.size[0] - from < COLUMNS ? g.size[0] - from : COLUMNS;
    acc_t acc[COLUMNS];
    for (int k = 0; k < COLUMNS; k++) acc[k] = start_acc();
    in += place_of_input(&g, output);
    for (long i = begin; i < end; i++) {
        __global const IN_S *line = in + place_along(&g, i);
        if (width == COLUMNS) {
            for (int k = 0; k < COLUMNS; k++) acc[k] = step_acc(acc[k], IN_LOAD(line[k]), i);
        } else {
            for (int k = 0; k < width; k++) acc[k] = step_acc(acc[k], IN_LOAD(line[k]), i);
        }
    }
    for (int k = 0; k < width; k++) put(&g, acc[k], output + k, part, out, partial, p, q);
#else
    /* Neighbours take neighbouring outputs, which lie closest in memory where this kernel is chosen for a GPU. */
    long unit = get_global_id(0), output = unit % g.outputs, part = unit / g.outputs;
    if (part >= g.parts) return;
    long begin = part * g.part, end = begin + g.part < g.count ? begin + g.part : g.count;
    acc_t acc = fold(&g, in + place_of_input(&g, output), begin, end, 1);
    put(&g, acc, output, part, out, partial, p, q);
#endif
}

__kernel void join_parts(geometry g, __global OUT_S *out, long out_offset, __global const acc_t *partial,
                         long partial_offset, WIDEST p, int q) {
    long output = get_global_id(0);
    if (output >= g.outputs) return;
    out += out_offset;
    partial = (__global const acc_t *)((__global const char *)partial + partial_offset) + output * g.parts;
    acc_t acc = partial[0];
    for (long i = 1; i < g.parts; i++) acc = join_acc(acc, partial[i]);
    out[place_of_output(&g, output)] = OUT_STORE(finish_acc(acc, g.count, p, q));
}
