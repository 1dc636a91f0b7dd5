/* gemm.cl: matrix products: c = alpha * a @ b + beta * c for a batch of matrices of any strides.
 *
 * Defined in front: A_*, B_*, C_* (element.h), all computing in T; for GPUs what tile.inc wants, and DOTS, the
 * work-items of a group that sums few rows or columns; PANEL and ROWS (6), the columns and rows of c that a work-item of
 * a CPU device keeps in registers.
 *
 * How an element of c is summed depends on shapes only, so results are the same in every run. */
typedef struct {
    long m, n, k;
    long a[3], b[3], c[3]; /* strides of batch, row, column, in elements */
} geometry;

#ifdef T_COMPLEX
#define MUL_ADD(x, y, z) ((z) + MUL(x, y))
#else
#define MUL(x, y) ((x) * (y))
#ifdef T_FLOATING
#define MUL_ADD(x, y, z) fma(x, y, z)
#else
#define MUL_ADD(x, y, z) ((z) + (x) * (y))
#endif
#endif
#ifdef T_BOOL
#undef MUL
#undef MUL_ADD
#define MUL(x, y) ((x) && (y))
#define MUL_ADD(x, y, z) ((z) || ((x) && (y)))
#define ADD(x, y) ((x) || (y))
#else
#define ADD(x, y) ((x) + (y))
#endif

static inline void put(__global C_S *c, long at, T sum, T alpha, T beta, int add) {
    T value = MUL(alpha, sum);
    if (add) value = ADD(value, MUL(beta, C_LOAD(c[at])));
    c[at] = C_STORE(value);
}

/* One work-item for each element. */
__kernel void simple(geometry g, __global const A_S *a, long ao, __global const B_S *b, long bo, __global C_S *c,
                     long co, T_ARGUMENT alpha, T_ARGUMENT beta, int add, long batches) {
    long i = get_global_id(0), column = i % g.n, row = i / g.n % g.m, batch = i / g.n / g.m;
    if (batch >= batches) return;
    a += ao + batch * g.a[0] + row * g.a[1];
    b += bo + batch * g.b[0] + column * g.b[2];
    T sum = (T)(0);
    for (long k = 0; k < g.k; k++) sum = MUL_ADD((T)A_LOAD(a[k * g.a[2]]), (T)B_LOAD(b[k * g.b[1]]), sum);
    put(c, co + batch * g.c[0] + row * g.c[1] + column * g.c[2], sum, (T)alpha, (T)beta, add);
}

#ifdef DOWN
#define LEFT_S A_S
#define LEFT_LOAD(v) ((T)A_LOAD(v))
#define RIGHT_S B_S
#define RIGHT_LOAD(v) ((T)B_LOAD(v))
#include "opencl/kernels/tile.inc"

/* How many of `most` elements, `step` apart, there are before `left` is used up. */
static inline int steps(long left, int step, int most) {
    return left <= 0 ? 0 : left >= (long)step * most ? most : ((int)left + step - 1) / step;
}
/* How many elements of a slice a work-item has: of the matrix `edge` lines are left from its first on, and `depth` of
 * the dimension that is summed. */
#define ELEMENTS(along, edge, depth, side)                                         \
    ((along) ? (depth) > 0 ? steps(edge, ITEMS / DEPTH, side / 16) : 0 \
             : (edge) > 0 ? steps(depth, ITEMS / side, side / 16) : 0)
#define FETCH(first)                                                                                      \
    {                                                                                                     \
        const int n = ELEMENTS(a_along, a_edge, end - (first) - a_depth, DOWN);                           \
        for (int s = 0; s < EACH_DOWN; s++) next_left[s] = s < n ? a[s * a_step] : (A_S)0;                \
        const int m = ELEMENTS(b_along, b_edge, end - (first) - b_depth, ACROSS);                         \
        for (int s = 0; s < EACH_ACROSS; s++) next_right[s] = s < m ? b[s * b_step] : (B_S)0;             \
        a += DEPTH * g.a[2];                                                                              \
        b += DEPTH * g.b[1];                                                                              \
    }

/* A group has DOWN x ACROSS elements of one matrix, or where there are parts, of one of them: they are joined later.
 * Neighbours read along whichever dimension lies closest in memory. */
TILE_KERNEL void tiled(geometry g, __global const A_S *a, long ao, __global const B_S *b, long bo, __global C_S *c,
                       long co, T_ARGUMENT alpha, T_ARGUMENT beta, int add, __global T *partial, long po, long part,
                       long parts) {
    TILE_BEGIN
    const long column = get_group_id(0) * ACROSS, row = get_group_id(1) * DOWN;
    const long batch = get_group_id(2) / parts, which = get_group_id(2) % parts;
    const long begin = which * part, end = min(g.k, begin + part);
    const bool a_along = g.a[2] == 1, b_along = g.b[1] == 1;
    const int a_line = EDGE_AT(a_along, 0, DOWN), a_depth = DEPTH_AT(a_along, 0, DOWN);
    const int b_line = EDGE_AT(b_along, 0, ACROSS), b_depth = DEPTH_AT(b_along, 0, ACROSS);
    const long a_edge = g.m - row - a_line, b_edge = g.n - column - b_line;
    const long a_step = a_along ? ITEMS / DEPTH * g.a[1] : ITEMS / DOWN * g.a[2];
    const long b_step = b_along ? ITEMS / DEPTH * g.b[2] : ITEMS / ACROSS * g.b[1];
    a += ao + batch * g.a[0] + (row + a_line) * g.a[1] + (begin + a_depth) * g.a[2];
    b += bo + batch * g.b[0] + (column + b_line) * g.b[2] + (begin + b_depth) * g.b[1];
    FETCH(begin)
    for (long first = begin; first < end; first += DEPTH) {
        KEEP_SLICES(a_along, b_along)
        barrier(CLK_LOCAL_MEM_FENCE);
        if (first + DEPTH < end) FETCH(first + DEPTH)
        MULTIPLY_TILE
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c += co + batch * g.c[0];
    partial += po + get_group_id(2) * g.m * g.n;
    for (int i = 0; i < EACH_DOWN; i++)
        for (int j = 0; j < EACH_ACROSS; j++) {
            const long r = row + ROW_OF(i), q = column + COLUMN_OF(j);
            if (r >= g.m || q >= g.n) continue;
            if (parts > 1) partial[r * g.n + q] = sum[i][j];
            else put(c, r * g.c[1] + q * g.c[2], sum[i][j], (T)alpha, (T)beta, add);
        }
}

__kernel void join(geometry g, __global const T *partial, long po, __global C_S *c, long co, T_ARGUMENT alpha,
                   T_ARGUMENT beta, int add, long batches, long parts) {
    long i = get_global_id(0), column = i % g.n, row = i / g.n % g.m, batch = i / g.n / g.m;
    if (batch >= batches) return;
    partial += po + batch * parts * g.m * g.n + row * g.n + column;
    T sum = partial[0];
    for (long p = 1; p < parts; p++) sum += partial[p * g.m * g.n];
    put(c, co + batch * g.c[0] + row * g.c[1] + column * g.c[2], sum, (T)alpha, (T)beta, add);
}
#endif

#ifdef DOTS
/* `lanes` work-items for each element, every lanes-th of k for one of them. across: neighbours have neighbouring
 * elements of c, else neighbours of k; by_rows: elements of c are neighbours in its columns. */
__kernel __attribute__((reqd_work_group_size(DOTS, 1, 1))) void dots(geometry g, __global const A_S *a, long ao,
                                                                     __global const B_S *b, long bo, __global C_S *c,
                                                                     long co, T_ARGUMENT alpha, T_ARGUMENT beta,
                                                                     int add, long batches, int lanes, int across,
                                                                     int by_rows) {
    __local T shared[DOTS];
    int place = get_local_id(0), slots = DOTS / lanes, step = across ? slots : 1;
    int id = across ? place / slots : place % lanes, slot = across ? place % slots : place / lanes;
    long element = get_group_id(0) * slots + slot, batch = element / (g.m * g.n), rest = element % (g.m * g.n);
    long row = by_rows ? rest % g.m : rest / g.n, column = by_rows ? rest / g.m : rest % g.n;
    bool there = batch < batches;
    T sum = (T)(0);
    if (there) {
        a += ao + batch * g.a[0] + row * g.a[1];
        b += bo + batch * g.b[0] + column * g.b[2];
        for (long k = id; k < g.k; k += lanes) sum = MUL_ADD((T)A_LOAD(a[k * g.a[2]]), (T)B_LOAD(b[k * g.b[1]]), sum);
    }
    shared[place] = sum;
    for (int width = lanes / 2; width; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < width) shared[place] += shared[place + width * step];
    }
    if (there && id == 0)
        put(c, co + batch * g.c[0] + row * g.c[1] + column * g.c[2], shared[place], (T)alpha, (T)beta, add);
}
#endif

#ifdef PANEL
/* b as panels of PANEL columns, row after row, filled up with zeros: [batch][panel][k][PANEL]. */
__kernel void pack(geometry g, __global const B_S *b, long bo, __global T *packed, long po, long batches) {
    long i = get_global_id(0), panels = (g.n + PANEL - 1) / PANEL;
    long k = i % g.k, panel = i / g.k % panels, batch = i / g.k / panels;
    if (batch >= batches) return;
    b += bo + batch * g.b[0] + k * g.b[1];
    packed += po + i * PANEL;
    for (int j = 0; j < PANEL; j++) {
        long column = panel * PANEL + j;
        packed[j] = column < g.n ? (T)B_LOAD(b[column * g.b[2]]) : (T)(0);
    }
}

/* Vectors stand in variables of their own and not in an array: not every compiler would keep that in registers. */
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define START(j)                                                                               \
    __global const A_S *r##j = a + (first + j < g.m ? first + j : g.m - 1) * g.a[1];           \
    VECTOR sum##j = (VECTOR)(0);
#define ADD_ROW(j) sum##j = fma((VECTOR)((T)A_LOAD(r##j[k * g.a[2]])), v, sum##j);
#define KEEP(j) VSTORE(sum##j, 0, line[j]);

/* A work-item makes ROWS x PANEL elements. Neighbouring work-items share a panel, which so stays in the cache. */
__kernel void panels(geometry g, __global const A_S *a, long ao, __global const T *packed, long po, __global C_S *c,
                     long co, T_ARGUMENT alpha, T_ARGUMENT beta, int add, long batches) {
    long blocks = (g.m + ROWS - 1) / ROWS, panels_in_n = (g.n + PANEL - 1) / PANEL;
    long i = get_global_id(0), block = i % blocks, panel = i / blocks % panels_in_n, batch = i / blocks / panels_in_n;
    if (batch >= batches) return;
    a += ao + batch * g.a[0];
    __global const T *p = packed + po + (g.b[0] ? batch : 0) * panels_in_n * g.k * PANEL + panel * g.k * PANEL;
    long first = block * ROWS;
    EACH_ROW(START)
    for (long k = 0; k < g.k; k++, p += PANEL) {
        VECTOR v = VLOAD(0, p);
        EACH_ROW(ADD_ROW)
    }
    T line[ROWS][PANEL];
    EACH_ROW(KEEP)
    FEW_TURNS
    for (int j = 0; j < ROWS && first + j < g.m; j++)
        FEW_TURNS
        for (int x = 0; x < PANEL && panel * PANEL + x < g.n; x++)
            put(c, co + batch * g.c[0] + (first + j) * g.c[1] + (panel * PANEL + x) * g.c[2], line[j][x], (T)alpha,
                (T)beta, add);
}
#endif
