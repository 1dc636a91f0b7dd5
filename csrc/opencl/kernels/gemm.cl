/* gemm.cl: matrix products: c = alpha * a @ b + beta * c for a batch of matrices of any strides.
 *
 * Defined in front: A_*, B_*, C_* (element.h), all computing in T; TILE, the edge of a square of c that a work-group
 * makes from squares of a and b in local memory (for GPUs); PANEL and ROWS (6), the columns and rows of c that a
 * work-item of a CPU device keeps in registers.
 *
 * Every element of c is summed over k in order, by one work-item, so results do not depend on the device's load. */
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

#ifdef TILE
/* A work-group of 16 x 16 makes TILE x TILE elements, each work-item EACH x EACH of them, 16 apart. */
#define EACH (TILE / 16)
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void tiled(geometry g, __global const A_S *a, long ao,
                                                                     __global const B_S *b, long bo, __global C_S *c,
                                                                     long co, T_ARGUMENT alpha, T_ARGUMENT beta,
                                                                     int add) {
    __local T left[16][TILE + 1], right[16][TILE + 1];
    int x = get_local_id(0), y = get_local_id(1), id = y * 16 + x;
    long column = get_group_id(0) * TILE, row = get_group_id(1) * TILE, batch = get_group_id(2);
    a += ao + batch * g.a[0];
    b += bo + batch * g.b[0];
    T sum[EACH][EACH];
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) sum[i][j] = (T)(0);
    for (long k = 0; k < g.k; k += 16) {
        /* Neighbours read along whichever dimension lies closest in memory. */
        for (int e = id; e < 16 * TILE; e += 256) {
            int ka = g.a[2] == 1 ? e % 16 : e / TILE, ra = g.a[2] == 1 ? e / 16 : e % TILE;
            int kb = g.b[1] == 1 ? e % 16 : e / TILE, cb = g.b[1] == 1 ? e / 16 : e % TILE;
            bool in_a = k + ka < g.k && row + ra < g.m, in_b = k + kb < g.k && column + cb < g.n;
            left[ka][ra] = in_a ? (T)A_LOAD(a[(row + ra) * g.a[1] + (k + ka) * g.a[2]]) : (T)(0);
            right[kb][cb] = in_b ? (T)B_LOAD(b[(k + kb) * g.b[1] + (column + cb) * g.b[2]]) : (T)(0);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int kk = 0; kk < 16; kk++) {
            T l[EACH], r[EACH];
            for (int i = 0; i < EACH; i++) l[i] = left[kk][y + 16 * i];
            for (int j = 0; j < EACH; j++) r[j] = right[kk][x + 16 * j];
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) sum[i][j] = MUL_ADD(l[i], r[j], sum[i][j]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            long rr = row + y + 16 * i, cc = column + x + 16 * j;
            if (rr < g.m && cc < g.n)
                put(c, co + batch * g.c[0] + rr * g.c[1] + cc * g.c[2], sum[i][j], (T)alpha, (T)beta, add);
        }
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
