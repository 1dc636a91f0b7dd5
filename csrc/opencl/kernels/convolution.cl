/* convolution.cl: the products of convolutions on contiguous memory (prim/convolution.h).
 *
 * Forward and data gradient are one kernel: a pixel q of what is made sees, through element k of the window, the pixel
 * s = (q * step + shift + k * turn) / part of what is read, where the division leaves no remainder and s lies inside.
 * Both gather, so nothing is atomic and results are the same in every run.
 *
 * Defined in front: which product is wanted, [WEIGHT_]BY_ELEMENT, _PANELS, _ROWS or _TILES; PARTS where a weight gradient
 * comes in some; T; index, an integer that holds every position; MUL_ADD(x, y, z), x * y + z; COMPLEX_T; on CPU
 * devices PANEL, VECTOR, VLOAD, VSTORE; for tiles what tile.inc wants. */
typedef struct {
    index batch, groups, inputs, outputs;            /* channels that are read and made, of a group */
    index read[3], made[3], window[3];               /* sizes */
    index step[3], shift[3], turn[3], part[3];
    index weight_group, weight_input, weight_output; /* strides of the weight; its window is contiguous */
    index low[3], padded[3];                         /* of what is read with a border of zeros */
    index parts;                                     /* of a weight gradient's sum */
} geometry;

#define PRODUCT(v) ((v)[0] * (v)[1] * (v)[2])

/* The pixel at position t along dimension d; below 0: none. */
static inline index pixel_at(const geometry *g, int d, index t) {
    if (g->part[d] > 1 && t % g->part[d]) return -1;
    index s = g->part[d] > 1 ? t / g->part[d] : t;
    return t < 0 || s >= g->read[d] ? -1 : s;
}
/* The pixel that q sees through element k along dimension d; below 0: none. */
static inline index seen(const geometry *g, int d, index q, index k) {
    return pixel_at(g, d, q * g->step[d] + g->shift[d] + k * g->turn[d]);
}

/* ---- every dtype: a work-item for each element ---- */

#ifdef BY_ELEMENT
__kernel void direct(geometry g, __global const T *read, long ro, __global const T *weight, long wo,
                     __global const T *bias, long bo, int biased, __global T *made, long mo) {
    index i = get_global_id(0), pixels = PRODUCT(g.made);
    if (i >= g.batch * g.groups * g.outputs * pixels) return;
    index x = i % g.made[2], y = i / g.made[2] % g.made[1], z = i / g.made[2] / g.made[1] % g.made[0];
    index plane = i / pixels, channel = plane % g.outputs, group = plane / g.outputs % g.groups;
    index image = plane / g.outputs / g.groups, area = PRODUCT(g.read);
    read += ro + (image * g.groups + group) * g.inputs * area;
    weight += wo + group * g.weight_group + channel * g.weight_output;
    T sum = biased ? bias[bo + group * g.outputs + channel] : (T)(0);
    for (index kz = 0; kz < g.window[0]; kz++) {
        index sz = seen(&g, 0, z, kz);
        if (sz < 0) continue;
        for (index ky = 0; ky < g.window[1]; ky++) {
            index sy = seen(&g, 1, y, ky);
            if (sy < 0) continue;
            for (index kx = 0; kx < g.window[2]; kx++) {
                index sx = seen(&g, 2, x, kx);
                if (sx < 0) continue;
                __global const T *from = read + (sz * g.read[1] + sy) * g.read[2] + sx;
                __global const T *by = weight + (kz * g.window[1] + ky) * g.window[2] + kx;
                for (index c = 0; c < g.inputs; c++) sum = MUL_ADD(from[c * area], by[c * g.weight_input], sum);
            }
        }
    }
    made[mo + i] = sum;
}
#endif

/* made[g, o, c, k] from `out` (what the forward product makes) and `read`. */
#ifdef WEIGHT_BY_ELEMENT
__kernel void direct_weight(geometry g, __global const T *out, long oo, __global const T *read, long ro,
                            __global T *made, long mo) {
    index i = get_global_id(0), extent = PRODUCT(g.window), area = PRODUCT(g.read), pixels = PRODUCT(g.made);
    if (i >= g.groups * g.outputs * g.inputs * extent) return;
    index kx = i % g.window[2], ky = i / g.window[2] % g.window[1], kz = i / g.window[2] / g.window[1] % g.window[0];
    index c = i / extent % g.inputs, o = i / extent / g.inputs;
    index group = o / g.outputs;
    T sum = (T)(0);
    for (index n = 0; n < g.batch; n++) {
        __global const T *line = out + oo + (n * g.groups * g.outputs + o) * pixels;
        __global const T *from = read + ro + ((n * g.groups + group) * g.inputs + c) * area;
        for (index z = 0; z < g.made[0]; z++) {
            index sz = seen(&g, 0, z, kz);
            if (sz < 0) continue;
            for (index y = 0; y < g.made[1]; y++) {
                index sy = seen(&g, 1, y, ky);
                if (sy < 0) continue;
                __global const T *a = line + (z * g.made[1] + y) * g.made[2];
                __global const T *b = from + (sz * g.read[1] + sy) * g.read[2];
                for (index x = 0; x < g.made[2]; x++) {
                    index sx = seen(&g, 2, x, kx);
                    if (sx >= 0) sum = MUL_ADD(a[x], b[sx], sum);
                }
            }
        }
    }
    made[mo + i] = sum;
}
#endif

/* The parts of a weight gradient, added up in their order. */
#ifdef PARTS
__kernel void join(__global const T *partial, long po, __global T *made, long mo, long n, long parts) {
    long i = get_global_id(0);
    if (i >= n) return;
    T sum = partial[po + i];
    for (long p = 1; p < parts; p++) sum += partial[po + p * n + i];
    made[mo + i] = sum;
}
#endif

#ifdef PANEL
#define PIXELS 4
#define ROWS 6
/* ---- CPU devices: PANEL channels are a vector, a work-item makes a row of pixels, PIXELS at a time ---- */

/* A row of what is read, with its border. */
__kernel void pad(geometry g, __global const T *read, long ro, __global T *padded, long po) {
    index i = get_global_id(0), y = i % g.padded[1], z = i / g.padded[1] % g.padded[0];
    index plane = i / g.padded[1] / g.padded[0];
    if (plane >= g.batch * g.groups * g.inputs) return;
    padded += po + i * g.padded[2];
    y -= g.low[1], z -= g.low[0];
    bool inside = y >= 0 && y < g.read[1] && z >= 0 && z < g.read[0];
    index begin = inside ? g.low[2] : g.padded[2], end = inside ? g.low[2] + g.read[2] : g.padded[2];
    if (inside) read += ro + ((plane * g.read[0] + z) * g.read[1] + y) * g.read[2];
    FEW_TURNS
    for (index x = 0; x < begin; x++) padded[x] = 0;
    for (index x = begin; x < end; x++) padded[x] = read[x - begin];
    FEW_TURNS
    for (index x = end; x < g.padded[2]; x++) padded[x] = 0;
}

/* The weight as [group][panel][window][input][PANEL], filled up with zeros. */
#ifdef BY_PANELS
__kernel void pack(geometry g, __global const T *weight, long wo, __global T *packed, long po) {
    index i = get_global_id(0), panels = (g.outputs + PANEL - 1) / PANEL, extent = PRODUCT(g.window);
    index c = i % g.inputs, k = i / g.inputs % extent, panel = i / g.inputs / extent % panels;
    index group = i / g.inputs / extent / panels;
    if (group >= g.groups) return;
    weight += wo + group * g.weight_group + c * g.weight_input + k;
    packed += po + i * PANEL;
    for (int j = 0; j < PANEL; j++) {
        index o = panel * PANEL + j;
        packed[j] = o < g.outputs ? weight[o * g.weight_output] : 0;
    }
}
#endif

/* Vectors stand in variables of their own and not in an array: not every compiler would keep that in registers. */
#define EACH_1(X) X(0)
#define EACH_4(X) X(0) X(1) X(2) X(3)
#define EACH_6(X) EACH_4(X) X(4) X(5)
#define DECLARE(j) VECTOR sum##j = start;
#define KEEP(j) VSTORE(sum##j, 0, line[j]);
#define ADD_PIXEL(j) sum##j = fma((VECTOR)(from[j * along]), v, sum##j);
#define ADD_ROW(j) sum##j = fma((VECTOR)(from[at[j]]), v, sum##j);

/* The elements k of the window that pixel x of the row counts for, and `from`, what it sees of the first channel. */
#define FOR_WINDOW(x, body)                                                                           \
    for (index kz = 0; kz < g.window[0]; kz++) {                                                      \
        index tz = z * g.step[0] + g.shift[0] + kz * g.turn[0];                                       \
        if (g.part[0] > 1 && tz % g.part[0]) continue;                                                \
        index sz = (g.part[0] > 1 ? tz / g.part[0] : tz) + g.low[0];                                  \
        for (index ky = 0; ky < g.window[1]; ky++) {                                                  \
            index ty = y * g.step[1] + g.shift[1] + ky * g.turn[1];                                   \
            if (g.part[1] > 1 && ty % g.part[1]) continue;                                            \
            index sy = (g.part[1] > 1 ? ty / g.part[1] : ty) + g.low[1];                              \
            for (index kx = 0; kx < g.window[2]; kx++) {                                              \
                index tx = x * g.step[2] + g.shift[2] + kx * g.turn[2];                               \
                if (g.part[2] > 1 && tx % g.part[2]) continue;                                        \
                index sx = (g.part[2] > 1 ? tx / g.part[2] : tx) + g.low[2];                          \
                __global const T *from = padded + (sz * g.padded[1] + sy) * g.padded[2] + sx;         \
                index k = (kz * g.window[1] + ky) * g.window[2] + kx;                                 \
                body                                                                                  \
            }                                                                                         \
        }                                                                                             \
    }

/* Some pixels, `along` apart in `padded`. */
#define ADD_WINDOW(EACH)                                              \
    FOR_WINDOW(x, __global const T *w = packed + k * g.inputs * PANEL; \
               for (index c = 0; c < g.inputs; c++, from += area, w += PANEL) { \
                   VECTOR v = VLOAD(0, w);                            \
                   EACH(ADD_PIXEL)                                    \
               })

#define MAKE_PIXELS(P, EACH)                                                                                     \
    {                                                                                                            \
        EACH(DECLARE)                                                                                            \
        ADD_WINDOW(EACH)                                                                                         \
        T line[P][PANEL];                                                                                        \
        EACH(KEEP)                                                                                               \
        FEW_TURNS                                                                                                \
        for (int j = 0; j < lanes; j++)                                                                          \
            for (int p = 0; p < P; p++) made[j * pixels + x + p * g.part[2]] = line[p][j];                       \
    }

/* A row of pixels that are `part` apart, so that the same elements of the window count for all of them. */
#ifdef BY_PANELS
__kernel void windows(geometry g, __global const T *padded, long po, __global const T *packed, long wo,
                      __global const T *bias, long bo, int biased, __global T *made, long mo) {
    index i = get_global_id(0), y = i % g.made[1], z = i / g.made[1] % g.made[0], rest = i / g.made[1] / g.made[0];
    index phase = rest % g.part[2], image = rest / g.part[2] % g.batch, panels = (g.outputs + PANEL - 1) / PANEL;
    index panel = rest / g.part[2] / g.batch % panels, group = rest / g.part[2] / g.batch / panels;
    if (group >= g.groups) return;
    index pixels = PRODUCT(g.made), area = PRODUCT(g.padded), along = g.step[2], skip = g.part[2];
    index first = panel * PANEL;
    int lanes = g.outputs - first < PANEL ? g.outputs - first : PANEL;
    padded += po + (image * g.groups + group) * g.inputs * area;
    packed += wo + (group * panels + panel) * PRODUCT(g.window) * g.inputs * PANEL;
    made += mo + ((image * g.groups + group) * g.outputs + first) * pixels + (z * g.made[1] + y) * g.made[2];
    T given[PANEL];
    for (int j = 0; j < PANEL; j++) given[j] = biased && j < lanes ? bias[bo + group * g.outputs + first + j] : 0;
    VECTOR start = VLOAD(0, given);
    index count = phase < g.made[2] ? (g.made[2] - phase + skip - 1) / skip : 0, q = 0;
    for (; count >= PIXELS && q < count; q += PIXELS) {
        if (q + PIXELS > count) q = count - PIXELS; /* some are made once more */
        index x = phase + q * skip;
        MAKE_PIXELS(PIXELS, EACH_4)
    }
    FEW_TURNS
    for (; q < count; q++) {
        index x = phase + q * skip;
        MAKE_PIXELS(1, EACH_1)
    }
}
#endif

/* Groups that make one channel: a row of pixels, PANEL of them at a time where neighbours see neighbours. */
#ifdef BY_ROWS
__kernel void single(geometry g, __global const T *padded, long po, __global const T *weight, long wo,
                     __global const T *bias, long bo, int biased, __global T *made, long mo) {
    index i = get_global_id(0), y = i % g.made[1], z = i / g.made[1] % g.made[0], plane = i / g.made[1] / g.made[0];
    index group = plane % g.groups, area = PRODUCT(g.padded), x = 0;
    if (plane >= g.batch * g.groups) return;
    padded += po + plane * g.inputs * area;
    weight += wo + group * g.weight_group;
    made += mo + i * g.made[2];
    const T start = biased ? bias[bo + group] : 0;
    for (; g.step[2] == 1 && g.part[2] == 1 && g.made[2] >= PANEL && x < g.made[2]; x += PANEL) {
        if (x + PANEL > g.made[2]) x = g.made[2] - PANEL;
        VECTOR sum = (VECTOR)(start);
        FOR_WINDOW(x, for (index c = 0; c < g.inputs; c++) sum =
                          fma(VLOAD(0, from + c * area), (VECTOR)(weight[k + c * g.weight_input]), sum);)
        VSTORE(sum, 0, made + x);
    }
    FEW_TURNS
    for (; x < g.made[2]; x++) {
        T sum = start;
        FOR_WINDOW(x, for (index c = 0; c < g.inputs; c++) sum =
                          fma(from[c * area], weight[k + c * g.weight_input], sum);)
        made[x] = sum;
    }
}
#endif

/* The weight gradient of such groups: an element over a part of the rows of pixels. */
#ifdef WEIGHT_BY_ROWS
__kernel void single_weight(geometry g, __global const T *out, long oo, __global const T *padded, long po,
                            __global T *made, long mo) {
    index rows = g.inputs * PRODUCT(g.window), i = get_global_id(0), row = i % rows, part = i / rows % g.parts;
    index group = i / rows / g.parts, k = row % PRODUCT(g.window), c = row / PRODUCT(g.window);
    if (group >= g.groups) return;
    index area = PRODUCT(g.padded), lines = g.made[0] * g.made[1], all = g.batch * lines, along = g.step[2];
    index begin = all / g.parts * part, end = part + 1 == g.parts ? all : begin + all / g.parts;
    index kx = k % g.window[2], ky = k / g.window[2] % g.window[1], kz = k / g.window[2] / g.window[1];
    VECTOR sums = (VECTOR)(0);
    T sum = 0, lane[PANEL];
    out += oo, padded += po + c * area + kx * g.turn[2] + g.shift[2] + g.low[2];
    for (index line = begin; line < end; line++) {
        index y = line % g.made[1], z = line / g.made[1] % g.made[0], plane = line / lines * g.groups + group, x = 0;
        index sz = z * g.step[0] + g.shift[0] + g.low[0] + kz * g.turn[0];
        index sy = y * g.step[1] + g.shift[1] + g.low[1] + ky * g.turn[1];
        __global const T *a = out + (plane * lines + line % lines) * g.made[2];
        __global const T *b = padded + plane * g.inputs * area + (sz * g.padded[1] + sy) * g.padded[2];
        for (; along == 1 && x + PANEL <= g.made[2]; x += PANEL) sums = fma(VLOAD(0, a + x), VLOAD(0, b + x), sums);
        FEW_TURNS
        for (; x < g.made[2]; x++) sum = fma(a[x], b[x * along], sum);
    }
    VSTORE(sums, 0, lane);
    for (int j = 0; j < PANEL; j++) sum += lane[j];
    made[mo + (part * g.groups + group) * rows + row] = sum;
}
#endif

/* What the forward product makes as [group][panel][image][pixel][PANEL]. */
#ifdef WEIGHT_BY_PANELS
__kernel void turn(geometry g, __global const T *out, long oo, __global T *turned, long to) {
    index i = get_global_id(0), rows = g.made[0] * g.made[1], row = i % rows, image = i / rows % g.batch;
    index panels = (g.outputs + PANEL - 1) / PANEL, panel = i / rows / g.batch % panels;
    index group = i / rows / g.batch / panels, pixels = PRODUCT(g.made), first = panel * PANEL;
    if (group >= g.groups) return;
    int lanes = g.outputs - first < PANEL ? g.outputs - first : PANEL;
    out += oo + ((image * g.groups + group) * g.outputs + first) * pixels + row * g.made[2];
    turned += to + i * g.made[2] * PANEL;
    for (index x = 0; x < g.made[2]; x++, turned += PANEL) {
        FEW_TURNS
        for (int j = 0; j < lanes; j++) turned[j] = out[j * pixels + x];
        FEW_TURNS
        for (int j = lanes; j < PANEL; j++) turned[j] = 0;
    }
}
#endif

/* ROWS elements (c, k) of the gradient of PANEL channels, over one part of the rows of pixels of all images. */
#ifdef WEIGHT_BY_PANELS
__kernel void weights(geometry g, __global const T *turned, long to, __global const T *padded, long po,
                      __global T *made, long mo) {
    index extent = PRODUCT(g.window), rows = g.inputs * extent, blocks = (rows + ROWS - 1) / ROWS;
    index panels = (g.outputs + PANEL - 1) / PANEL, i = get_global_id(0), block = i % blocks;
    index panel = i / blocks % panels, part = i / blocks / panels % g.parts, group = i / blocks / panels / g.parts;
    if (group >= g.groups) return;
    index area = PRODUCT(g.padded), lines = g.made[0] * g.made[1], all = g.batch * lines, along = g.step[2];
    index begin = all / g.parts * part, end = part + 1 == g.parts ? all : begin + all / g.parts;
    turned += to + ((group * panels + panel) * all + begin) * g.made[2] * PANEL;
    padded += po + group * g.inputs * area;
    index at[ROWS];
    for (int j = 0; j < ROWS; j++) {
        index row = block * ROWS + j < rows ? block * ROWS + j : rows - 1, c = row / extent, k = row % extent;
        index kx = k % g.window[2], ky = k / g.window[2] % g.window[1], kz = k / g.window[2] / g.window[1];
        at[j] = c * area + (kz * g.turn[0] * g.padded[1] + ky * g.turn[1]) * g.padded[2] + kx * g.turn[2];
    }
    const VECTOR start = (VECTOR)(0);
    EACH_6(DECLARE)
    for (index line = begin; line < end; line++) {
        index y = line % g.made[1], z = line / g.made[1] % g.made[0], image = line / lines;
        index sz = z * g.step[0] + g.shift[0] + g.low[0], sy = y * g.step[1] + g.shift[1] + g.low[1];
        __global const T *from = padded + image * g.groups * g.inputs * area + (sz * g.padded[1] + sy) * g.padded[2] +
                                 g.shift[2] + g.low[2];
        for (index x = 0; x < g.made[2]; x++, turned += PANEL, from += along) {
            VECTOR v = VLOAD(0, turned);
            EACH_6(ADD_ROW)
        }
    }
    T line[ROWS][PANEL];
    EACH_6(KEEP)
    made += mo + (part * g.groups + group) * g.outputs * rows;
    FEW_TURNS
    for (int k = 0; k < PANEL && panel * PANEL + k < g.outputs; k++)
        FEW_TURNS
        for (int j = 0; j < ROWS && block * ROWS + j < rows; j++)
            made[(panel * PANEL + k) * rows + block * ROWS + j] = line[j][k];
}
#endif
#endif

#ifdef DOWN
/* ---- GPUs: tiles of a matrix product whose right factor is looked up ---- */

#define LEFT_S T
#define LEFT_LOAD(v) (v)
#define RIGHT_S T
#define RIGHT_LOAD(v) (v)
#include "opencl/kernels/tile.inc"

/* A place in what is read is the sum of three: where a plane begins, and along each dimension where a pixel looks at and
 * how far from there an element of the window lies. Of one of the two a work-item has its own; the DEPTH others of the
 * next slice stand in a table, in the half of it that the slice before did not use. */
typedef struct {
    index plane, at[3];
} site;
#define TABLE(first) table[(first) / DEPTH % 2]

static inline void set_pixel(const geometry *g, site *s, index q) {
    s->at[0] = q / g->made[2] / g->made[1] * g->step[0];
    s->at[1] = q / g->made[2] % g->made[1] * g->step[1];
    s->at[2] = q % g->made[2] * g->step[2];
}
static inline void set_element(const geometry *g, site *s, index w) {
    s->at[0] = w / g->window[2] / g->window[1] * g->turn[0] + g->shift[0];
    s->at[1] = w / g->window[2] % g->window[1] * g->turn[1] + g->shift[1];
    s->at[2] = w % g->window[2] * g->turn[2] + g->shift[2];
}
static inline T look(const geometry *g, __global const T *read, const site *mine, __local const site *other) {
    index z = pixel_at(g, 0, mine->at[0] + other->at[0]), y = pixel_at(g, 1, mine->at[1] + other->at[1]);
    index x = pixel_at(g, 2, mine->at[2] + other->at[2]);
    if (z < 0 || y < 0 || x < 0 || mine->plane < 0 || other->plane < 0) return 0;
    return read[mine->plane + other->plane + (z * g->read[1] + y) * g->read[2] + x];
}
#define LOOK(first)                                             \
    for (int s = 0; s < EACH_ACROSS; s++)                       \
        next_right[s] = look(&g, read, &mine, &TABLE(first)[DEPTH_AT(false, s, ACROSS)]);

/* [outputs] x [images * pixels], summed over inputs and window. */
#ifdef BY_TILES
static inline void note_window(const geometry *g, __local site *to, index k) {
    site s;
    index extent = PRODUCT(g->window);
    s.plane = k < g->inputs * extent ? k / extent * PRODUCT(g->read) : -1;
    set_element(g, &s, k % extent);
    *to = s;
}

TILE_KERNEL void tiled(geometry g, __global const T *read, long ro, __global const T *weight, long wo,
                       __global const T *bias, long bo, int biased, __global T *made, long mo) {
    TILE_BEGIN
    __local site table[2][DEPTH];
    const index column = get_group_id(0) * ACROSS, row = get_group_id(1) * DOWN, group = get_group_id(2);
    const index pixels = PRODUCT(g.made), extent = PRODUCT(g.window), depth = g.inputs * extent;
    const index pixel = column + id % ACROSS, image = pixel / pixels;
    site mine;
    mine.plane = image < g.batch ? (image * g.groups + group) * g.inputs * PRODUCT(g.read) : -1;
    set_pixel(&g, &mine, pixel % pixels);
    weight += wo + group * g.weight_group;
    read += ro;
#define FETCH(first)                                                                                        \
    {                                                                                                       \
        const index k = (first) + id % DEPTH;                                                               \
        __global const T *from = weight + k / extent * g.weight_input + k % extent;                         \
        for (int s = 0; s < EACH_DOWN; s++) {                                                               \
            const index o = row + EDGE_AT(true, s, DOWN);                                                   \
            next_left[s] = k < depth && o < g.outputs ? from[o * g.weight_output] : (T)0;                   \
        }                                                                                                   \
        LOOK(first)                                                                                         \
    }
    if (id < DEPTH) note_window(&g, &TABLE(0)[id], id);
    barrier(CLK_LOCAL_MEM_FENCE);
    FETCH(0)
    for (index first = 0; first < depth; first += DEPTH) {
        KEEP_SLICES(true, false)
        if (id < DEPTH) note_window(&g, &TABLE(first + DEPTH)[id], first + DEPTH + id);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (first + DEPTH < depth) FETCH(first + DEPTH)
        MULTIPLY_TILE
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int j = 0; j < EACH_ACROSS; j++) {
        const index c = column + COLUMN_OF(j), n = c / pixels;
        if (n >= g.batch) continue;
        for (int i = 0; i < EACH_DOWN; i++) {
            const index o = row + ROW_OF(i);
            if (o >= g.outputs) continue;
            const T start = biased ? bias[bo + group * g.outputs + o] : 0;
            made[mo + ((n * g.groups + group) * g.outputs + o) * pixels + c % pixels] = start + sum[i][j];
        }
    }
}
#endif

/* [outputs] x [inputs * window], summed over a part of images and pixels. */
#ifdef WEIGHT_BY_TILES
static inline void note_pixel(const geometry *g, __local site *to, index k, index end, index group) {
    site s;
    index pixels = PRODUCT(g->made);
    s.plane = k < end ? (k / pixels * g->groups + group) * g->inputs * PRODUCT(g->read) : -1;
    set_pixel(g, &s, k % pixels);
    *to = s;
}

TILE_KERNEL void tiled_weight(geometry g, __global const T *out, long oo, __global const T *read, long ro,
                              __global T *made, long mo) {
    TILE_BEGIN
    __local site table[2][DEPTH];
    const index column = get_group_id(0) * ACROSS, row = get_group_id(1) * DOWN;
    const index group = get_group_id(2) / g.parts, part = get_group_id(2) % g.parts;
    const index pixels = PRODUCT(g.made), extent = PRODUCT(g.window), rows = g.inputs * extent, all = g.batch * pixels;
    const index begin = all / g.parts * part, end = part + 1 == g.parts ? all : begin + all / g.parts;
    const index element = column + id % ACROSS;
    site mine;
    mine.plane = element < rows ? element / extent * PRODUCT(g.read) : -1;
    set_element(&g, &mine, element % extent);
    out += oo, read += ro;
#define FETCH_WEIGHT(first)                                                                                 \
    {                                                                                                       \
        const index k = begin + (first) + id % DEPTH;                                                       \
        __global const T *from = out + (k / pixels * g.groups + group) * g.outputs * pixels + k % pixels;   \
        for (int s = 0; s < EACH_DOWN; s++) {                                                               \
            const index o = row + EDGE_AT(true, s, DOWN);                                                   \
            next_left[s] = k < end && o < g.outputs ? from[o * pixels] : (T)0;                              \
        }                                                                                                   \
        LOOK(first)                                                                                         \
    }
    if (id < DEPTH) note_pixel(&g, &TABLE(0)[id], begin + id, end, group);
    barrier(CLK_LOCAL_MEM_FENCE);
    FETCH_WEIGHT(0)
    for (index first = 0; begin + first < end; first += DEPTH) {
        KEEP_SLICES(true, false)
        if (id < DEPTH) note_pixel(&g, &TABLE(first + DEPTH)[id], begin + first + DEPTH + id, end, group);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (begin + first + DEPTH < end) FETCH_WEIGHT(first + DEPTH)
        MULTIPLY_TILE
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    made += mo + (part * g.groups + group) * g.outputs * rows;
    for (int i = 0; i < EACH_DOWN; i++)
        for (int j = 0; j < EACH_ACROSS; j++) {
            const index o = row + ROW_OF(i), at = column + COLUMN_OF(j);
            if (o < g.outputs && at < rows) made[o * rows + at] = sum[i][j];
        }
}
#endif
#endif
