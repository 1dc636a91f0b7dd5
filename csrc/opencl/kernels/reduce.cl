/* reduce.cl: one kernel for every reduction.
 *
 * Defined in front: IN_* and OUT_* (element.h), OP_<name> or the functions of_start, of_step, of_join and of_finish, NK and NR
 * (how many kept and reduced dimensions there are), LANES, COLUMNS, IN_LEAST and IN_MOST (no element of IN_T is beyond
 * them), and GROUP where a work-group shares one output.
 *
 * An output's elements are dealt out in `parts`; a part is folded by one work-item, or by a group in local memory. With
 * one part the result is finished at once, else accumulators go to `partial` and the kernel `join_parts` ends it. A
 * work-item folds in LANES lanes, and begins anew every BLOCK steps: a sum's error grows with the length of neither.
 * Where an accumulator has several members, lanes of it do not become vectors: such a reduction has a loop of its own
 * over a block (BLOCKWISE): places look for the best value first and for its place then, variances take two passes.
 *
 * With MADE elements are not read but made, each once, by the functions and with the PARAMETERS that fused_text.c writes
 * in front: a stretch of them in private memory where a work-item folds blocks, else one after the other.
 *
 * Invariant: which elements are folded together depends on shapes only, so results are the same in every run. */
#define BLOCK 256

#ifdef MADE
typedef long source; /* the place of an element */
typedef const IN_S *stretch;
#define INPUT
#else
typedef __global const IN_S *source, *stretch;
#define INPUT source in, long in_offset,
#define PARAMETERS
#define ARGUMENTS
#endif

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
#define OWN_LANES
typedef int lane_t; /* lanes are closed long before it is full */
static inline acc_t start_acc(void) { return 0; }
static inline lane_t start_lane(void) { return 0; }
static inline acc_t close_lane(lane_t a) { return a; }
#ifdef OP_ALL
static inline lane_t step_lane(lane_t a, IN_T x) { return a + !IS_NONZERO(x); }
#else
static inline lane_t step_lane(lane_t a, IN_T x) { return a + IS_NONZERO(x); }
#endif
static inline acc_t step_acc(acc_t a, IN_T x, long i) { return a + step_lane(0, x); }
static inline acc_t join_acc(acc_t a, acc_t b) { return a + b; }
#if defined(OP_NONZERO)
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a; }
#elif defined(OP_ANY)
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a != 0; }
#else
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a == 0; }
#endif

#elif defined(OP_LARGEST) || defined(OP_SMALLEST)
/* A NaN replaces any number and nothing replaces a NaN. */
typedef IN_T acc_t;
#ifdef OP_LARGEST
static inline acc_t start_acc(void) { return IN_LEAST; }
static inline acc_t join_acc(acc_t a, acc_t b) { return b > a || b != b ? b : a; }
#else
static inline acc_t start_acc(void) { return IN_MOST; }
static inline acc_t join_acc(acc_t a, acc_t b) { return b < a || b != b ? b : a; }
#endif
static inline acc_t step_acc(acc_t a, IN_T x, long i) { return join_acc(a, x); }
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a; }

#elif defined(OP_LARGEST_AT) || defined(OP_SMALLEST_AT)
/* x replaces the best so far unless it is no better; a NaN replaces any number and nothing replaces a NaN. */
#define BLOCKWISE
typedef struct {
    IN_T best;
    long at; /* -1: nothing yet */
} acc_t;
#ifdef OP_LARGEST_AT
static inline bool beats(IN_T x, IN_T best) { return !(x <= best) && best == best; }
static inline IN_T better(IN_T a, IN_T x) { return x > a || x != x ? x : a; }
#define WORST IN_LEAST
#else
static inline bool beats(IN_T x, IN_T best) { return !(x >= best) && best == best; }
static inline IN_T better(IN_T a, IN_T x) { return x < a || x != x ? x : a; }
#define WORST IN_MOST
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
static inline OUT_T finish_acc(acc_t a, long n, WIDEST p, int q) { return a.at; }

#if LANES > 1
/* n elements side by side from the i-th on. Most blocks do not beat the best so far, and their places do not matter. */
static inline acc_t add_block(acc_t acc, stretch p, long n, long i) {
    IN_T lane[LANES], best = WORST;
    long whole = n / LANES * LANES;
    for (int k = 0; k < LANES; k++) lane[k] = WORST;
    for (long s = 0; s < whole; s += LANES)
        for (int k = 0; k < LANES; k++) lane[k] = better(lane[k], IN_LOAD(p[s + k]));
    for (long s = whole; s < n; s++) lane[0] = better(lane[0], IN_LOAD(p[s]));
    for (int k = 0; k < LANES; k++) best = better(best, lane[k]);
    if (acc.at >= 0 && !beats(best, acc.best)) return acc;
    long at = 0;
    while (at < n - 1 && IN_LOAD(p[at]) != best && IN_LOAD(p[at]) == IN_LOAD(p[at])) at++;
    acc.best = best;
    acc.at = i + at;
    return acc;
}
#endif
#if COLUMNS > 1
#define ROWS_AT_ONCE 1024
typedef struct {
    IN_T best[COLUMNS];
    int at[COLUMNS];
} rows_t;
static inline void start_rows(rows_t *r) {
    for (int k = 0; k < COLUMNS; k++) r->best[k] = WORST, r->at[k] = 0;
}
static inline void step_rows(rows_t *r, stretch line, int width, int row) {
    for (int k = 0; k < width; k++) {
        IN_T x = IN_LOAD(line[k]);
        bool take = beats(x, r->best[k]);
        r->best[k] = take ? x : r->best[k];
        r->at[k] = take ? row : r->at[k];
    }
}
static inline acc_t close_rows(const rows_t *r, int k, int rows, long i) {
    acc_t a = {r->best[k], i + r->at[k]};
    return a;
}
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
#define BLOCKWISE
#ifdef IN_COMPLEX
#define RE(v) ((v).x)
#define IM(v) ((v).y)
#else
#define RE(v) (v)
#define IM(v) 0
#endif
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
    acc_t b = {{RE(x), IM(x)}, 0, 1};
    return join_acc(a, b);
}
static inline OUT_T finish_acc(acc_t a, long n, WIDEST correction, int root) {
    WIDEST by = (WIDEST)n - correction, v = a.distance / (by > 0 ? by : 0);
    return root ? sqrt(v) : v;
}

/* Sums of the distances of a block from its first element, and of their squares. A block is short, and this is one of
 * its elements, so little is lost where the two are taken from each other. */
#define OWN_BLOCKS
typedef struct {
    WIDEST from[2], sum[2], square;
    int n;
} block_t;
static inline block_t start_block(void) {
    block_t b = {{0, 0}, {0, 0}, 0, 0};
    return b;
}
static inline block_t step_block(block_t b, IN_T x, long i) {
    if (b.n++ == 0) b.from[0] = RE(x), b.from[1] = IM(x);
    WIDEST re = RE(x) - b.from[0], im = IM(x) - b.from[1];
    b.sum[0] += re;
    b.sum[1] += im;
    b.square += re * re + im * im;
    return b;
}
static inline acc_t close_block(block_t b) {
    if (b.n == 0) return start_acc();
    WIDEST re = b.sum[0] / b.n, im = b.sum[1] / b.n, far = b.square - (re * re + im * im) * b.n;
    acc_t acc = {{b.from[0] + re, b.from[1] + im}, far > 0 || far != far ? far : 0, b.n};
    return acc;
}

#if LANES > 1
static inline WIDEST sum_lanes(WIDEST *lane) {
    for (int width = LANES / 2; width; width /= 2)
        for (int k = 0; k < width; k++) lane[k] += lane[k + width];
    return lane[0];
}
/* The mean first, then the squared distances from it. */
static inline acc_t add_block(acc_t acc, stretch p, long n, long i) {
    WIDEST re[LANES], im[LANES], far[LANES];
    long whole = n / LANES * LANES;
    for (int k = 0; k < LANES; k++) re[k] = im[k] = far[k] = 0;
    for (long s = 0; s < whole; s += LANES)
        for (int k = 0; k < LANES; k++) {
            IN_T x = IN_LOAD(p[s + k]);
            re[k] += RE(x);
            im[k] += IM(x);
        }
    for (long s = whole; s < n; s++) re[0] += RE(IN_LOAD(p[s])), im[0] += IM(IN_LOAD(p[s]));
    acc_t block = {{sum_lanes(re) / n, sum_lanes(im) / n}, 0, n};
    for (long s = 0; s < whole; s += LANES)
        for (int k = 0; k < LANES; k++) {
            IN_T x = IN_LOAD(p[s + k]);
            WIDEST a = RE(x) - block.mean[0], b = IM(x) - block.mean[1];
            far[k] += a * a + b * b;
        }
    for (long s = whole; s < n; s++) {
        IN_T x = IN_LOAD(p[s]);
        WIDEST a = RE(x) - block.mean[0], b = IM(x) - block.mean[1];
        far[0] += a * a + b * b;
    }
    block.distance = sum_lanes(far);
    return join_acc(acc, block);
}
#endif
#if COLUMNS > 1
/* One pass, from the first row. */
#define ROWS_AT_ONCE 64
typedef struct {
    WIDEST from[2][COLUMNS], sum[2][COLUMNS], square[COLUMNS];
} rows_t;
static inline void start_rows(rows_t *r) {
    for (int k = 0; k < COLUMNS; k++) r->sum[0][k] = r->sum[1][k] = r->square[k] = 0;
}
static inline void step_rows(rows_t *r, stretch line, int width, int row) {
    if (row == 0)
        for (int k = 0; k < width; k++) {
            IN_T x = IN_LOAD(line[k]);
            r->from[0][k] = RE(x);
            r->from[1][k] = IM(x);
        }
    for (int k = 0; k < width; k++) {
        IN_T x = IN_LOAD(line[k]);
        WIDEST a = RE(x) - r->from[0][k], b = IM(x) - r->from[1][k];
        r->sum[0][k] += a;
        r->sum[1][k] += b;
        r->square[k] += a * a + b * b;
    }
}
static inline acc_t close_rows(const rows_t *r, int k, int rows, long i) {
    block_t b = {{r->from[0][k], r->from[1][k]}, {r->sum[0][k], r->sum[1][k]}, r->square[k], rows};
    return close_block(b);
}
#endif

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
} cut;

static inline long place_of_input(const cut *c, long output) {
    long at = 0;
    for (int d = 0; d < NK; d++) {
        at += (d + 1 < NK ? output % c->size[d] : output) * c->in[d];
        output /= c->size[d];
    }
    return at;
}
static inline long place_of_output(const cut *c, long output) {
    long at = 0;
    for (int d = 0; d < NK; d++) {
        at += (d + 1 < NK ? output % c->size[d] : output) * c->out[d];
        output /= c->size[d];
    }
    return at;
}
static inline long place_along(const cut *c, long i) {
    if (NR == 1) return i * c->reduced_in[0];
    long at = 0;
    for (int d = 0; d < NR; d++) {
        at += (d + 1 < NR ? i % c->reduced_size[d] : i) * c->reduced_in[d];
        i /= c->reduced_size[d];
    }
    return at;
}

#ifndef OWN_BLOCKS
typedef acc_t block_t;
static inline block_t start_block(void) { return start_acc(); }
static inline block_t step_block(block_t b, IN_T x, long i) { return step_acc(b, x, i); }
static inline acc_t close_block(block_t b) { return b; }
#endif

#ifndef OWN_LANES
typedef acc_t lane_t;
static inline lane_t start_lane(void) { return start_acc(); }
static inline lane_t step_lane(lane_t a, IN_T x) { return step_acc(a, x, 0); }
static inline acc_t close_lane(lane_t a) { return a; }
#endif

#if LANES > 1 && !defined(BLOCKWISE)
/* n elements side by side. */
static inline acc_t add_block(acc_t acc, stretch p, long n, long i) {
    lane_t lane[LANES], rest = start_lane();
    acc_t closed[LANES];
    long whole = n / LANES * LANES;
    for (int k = 0; k < LANES; k++) lane[k] = start_lane();
    for (long s = 0; s < whole; s += LANES)
        for (int k = 0; k < LANES; k++) lane[k] = step_lane(lane[k], IN_LOAD(p[s + k]));
    for (long s = whole; s < n; s++) rest = step_lane(rest, IN_LOAD(p[s]));
    for (int k = 0; k < LANES; k++) closed[k] = close_lane(lane[k]);
    for (int width = LANES / 2; width; width /= 2)
        for (int k = 0; k < width; k++) closed[k] = join_acc(closed[k], closed[k + width]);
    return join_acc(acc, join_acc(closed[0], close_lane(rest)));
}
#endif

#if COLUMNS > 1 && !defined(BLOCKWISE)
#define ROWS_AT_ONCE 256
typedef struct {
    lane_t lane[COLUMNS];
} rows_t;
static inline void start_rows(rows_t *r) {
    for (int k = 0; k < COLUMNS; k++) r->lane[k] = start_lane();
}
static inline void step_rows(rows_t *r, stretch line, int width, int row) {
    if (width == COLUMNS) {
        for (int k = 0; k < COLUMNS; k++) r->lane[k] = step_lane(r->lane[k], IN_LOAD(line[k]));
    } else {
        for (int k = 0; k < width; k++) r->lane[k] = step_lane(r->lane[k], IN_LOAD(line[k]));
    }
}
static inline acc_t close_rows(const rows_t *r, int k, int rows, long i) { return close_lane(r->lane[k]); }
#endif

/* Elements begin, begin + step, ... below end. */
static inline acc_t fold(const cut *c, source in, long begin, long end, long step PARAMETERS) {
    acc_t whole = start_acc();
#if LANES > 1
    if (c->reduced_in[0] == 1 && step == 1) {
        for (long i = begin, n; i < end; i += n) {
            n = min(end - i, (long)BLOCK * LANES);
            if (NR > 1) n = min(n, c->reduced_size[0] - i % c->reduced_size[0]);
#ifdef MADE
            IN_S made[BLOCK * LANES];
            make(in + place_along(c, i), n, made ARGUMENTS);
            whole = add_block(whole, made, n, i);
#else
            whole = add_block(whole, in + place_along(c, i), n, i);
#endif
        }
        return whole;
    }
#endif
#if defined(MADE) && (LANES > 1 || COLUMNS > 1)
    return whole; /* elements follow each other */
#elif defined(MADE)
#define ELEMENT(i) make_one(in + place_along(c, i) ARGUMENTS)
#else
#define ELEMENT(i) in[place_along(c, i)]
#endif
#ifdef ELEMENT
    for (long i = begin; i < end;) {
        int n = (int)min((long)BLOCK, (end - i + step - 1) / step);
        block_t block = start_block();
        for (int s = 0; s < n; s++, i += step) block = step_block(block, IN_LOAD(ELEMENT(i)), i);
        whole = join_acc(whole, close_block(block));
    }
    return whole;
#endif
}

static inline void put(const cut *c, acc_t acc, long output, long part, __global OUT_S *out,
                       __global acc_t *partial, WIDEST p, int q) {
    if (c->parts > 1) partial[output * c->parts + part] = acc;
    else out[place_of_output(c, output)] = OUT_STORE(finish_acc(acc, c->count, p, q));
}

#ifdef GROUP
/* The first of what the group's work-items have becomes all of it. */
static inline void join_group(__local acc_t *shared, int id) {
    for (int width = GROUP / 2; width; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < width) shared[id] = join_acc(shared[id], shared[id + width]);
    }
}
#endif

#if !defined(JOINS) && !defined(TAKES)
#ifdef GROUP
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#else
__kernel
#endif
void reduce(cut c, INPUT __global OUT_S *out, long out_offset, __global acc_t *partial, long partial_offset, WIDEST p,
            int q PARAMETERS) {
#ifdef MADE
    source in = 0;
#else
    in += in_offset;
#endif
    out += out_offset;
    partial = (__global acc_t *)((__global char *)partial + partial_offset);
#ifdef GROUP
    long unit = get_group_id(0), output = unit / c.parts, part = unit % c.parts;
    int id = get_local_id(0);
    __local acc_t shared[GROUP];
    long begin = part * c.part, end = begin + c.part < c.count ? begin + c.part : c.count;
    shared[id] = fold(&c, in + place_of_input(&c, output), begin + id, end, GROUP ARGUMENTS);
    join_group(shared, id);
    if (id == 0) put(&c, shared[0], output, part, out, partial, p, q);
#elif COLUMNS > 1
    /* On a CPU device: neighbouring outputs whose elements lie side by side, row after row. */
    long across = (c.size[0] + COLUMNS - 1) / COLUMNS, blocks = c.outputs / c.size[0] * across;
    long unit = get_global_id(0), block = unit % blocks, part = unit / blocks;
    if (part >= c.parts) return;
    long from = block % across * COLUMNS, output = block / across * c.size[0] + from;
    long begin = part * c.part, end = begin + c.part < c.count ? begin + c.part : c.count;
    int width = c.size[0] - from < COLUMNS ? c.size[0] - from : COLUMNS;
    acc_t acc[COLUMNS];
    in += place_of_input(&c, output);
    for (int k = 0; k < COLUMNS; k++) acc[k] = start_acc();
    for (long i = begin; i < end; i += ROWS_AT_ONCE) {
        int rows = end - i < ROWS_AT_ONCE ? end - i : ROWS_AT_ONCE;
        rows_t block;
        start_rows(&block);
#ifdef MADE
        for (int row = 0; row < rows; row++) {
            IN_S line[COLUMNS];
            make(in + place_along(&c, i + row), width, line ARGUMENTS);
            step_rows(&block, line, width, row);
        }
#else
        for (int row = 0; row < rows; row++) step_rows(&block, in + place_along(&c, i + row), width, row);
#endif
        for (int k = 0; k < width; k++) acc[k] = join_acc(acc[k], close_rows(&block, k, rows, i));
    }
    for (int k = 0; k < width; k++) put(&c, acc[k], output + k, part, out, partial, p, q);
#else
    /* Neighbours take neighbouring outputs, which lie closest in memory where this kernel is chosen for a GPU. */
    long unit = get_global_id(0), output = unit % c.outputs, part = unit / c.outputs;
    if (part >= c.parts) return;
    long begin = part * c.part, end = begin + c.part < c.count ? begin + c.part : c.count;
    acc_t acc = fold(&c, in + place_of_input(&c, output), begin, end, 1 ARGUMENTS);
    put(&c, acc, output, part, out, partial, p, q);
#endif
}
#elif defined(TAKES)

__kernel void take(cut c, __global const IN_S *in, long in_offset, __global OUT_S *out, long out_offset,
                   __global const long *at, long at_offset) {
    long output = get_global_id(0);
    if (output >= c.outputs) return;
    long to = place_of_output(&c, output);
    out[out_offset + to] = in[in_offset + place_of_input(&c, output) + place_along(&c, at[at_offset + to])];
}

#else

#ifdef GROUP
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#else
__kernel
#endif
void join_parts(cut c, __global OUT_S *out, long out_offset, __global const acc_t *partial, long partial_offset,
                WIDEST p, int q) {
    out += out_offset;
    partial = (__global const acc_t *)((__global const char *)partial + partial_offset);
#ifdef GROUP
    __local acc_t shared[GROUP];
    long output = get_group_id(0);
    int id = get_local_id(0);
    partial += output * c.parts;
    acc_t acc = start_acc();
    for (long i = id; i < c.parts; i += GROUP) acc = join_acc(acc, partial[i]);
    shared[id] = acc;
    join_group(shared, id);
    if (id) return;
    acc = shared[0];
#else
    long output = get_global_id(0);
    if (output >= c.outputs) return;
    partial += output * c.parts;
    acc_t acc = partial[0];
    for (long i = 1; i < c.parts; i++) acc = join_acc(acc, partial[i]);
#endif
    out[place_of_output(&c, output)] = OUT_STORE(finish_acc(acc, c.count, p, q));
}
#endif
