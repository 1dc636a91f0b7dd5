/* product_int8_dots.c: products of bytes by instructions that newer CPUs with AVX-512 have: sums of four products
 * (VNNI), and products of tiles (AMX). Both take any byte and are exact: the bits are those of product_int8_loops.c.
 *
 * A quad of a panel is what VNNI takes at once, and sixteen of them, as they lie, are a tile of AMX. The tiles' shape
 * is a thread's state, for which a process asks the system once; a thread keeps it until it is done with its part of a
 * product and no longer, since other libraries of the process have shapes of their own. */
#include "cpu/product_int8.h"

#include "tensorpy/expressions.h"

#include <stddef.h>

#if defined(__x86_64__) && defined(__linux__) && defined(TP_HAVE_X86_CAPABILITIES) && __GNUC__ >= 11 && \
    !defined(__clang__) && !defined(TP_WITHOUT_AVX512)

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WIDTH (4 * TP_INT8_COLUMNS) /* bytes of a quad of a panel, and of a row of a tile */
#define UNROLL _Pragma("GCC unroll 16")

/* ---- VNNI ---- */

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

/* A sum waits four cycles for the one before: of few rows neighbouring quads have sums of their own. */
#define WAYS(rows) ((rows) == 1 ? 4 : (rows) <= 3 ? 2 : 1)

static inline VNNI __attribute__((always_inline)) void dots(const tp_int8_rows *a, const int8_t *panel, bool more,
                                                            int32_t *sums, const int rows) {
    __m512i sum[12], others[3];
    const int ways = WAYS(rows), n = rows * (ways - 1);
    UNROLL for (int r = 0; r < rows; r++) sum[r] =
        more ? _mm512_loadu_si512(sums + r * TP_INT8_COLUMNS) : _mm512_setzero_si512();
    UNROLL for (int r = 0; r < n; r++) others[r] = _mm512_setzero_si512();
#define ADD_QUAD(to, i)                                                                             \
    UNROLL for (int r = 0; r < rows; r++) {                                                         \
        int32_t quad;                                                                               \
        memcpy(&quad, at + r * a->apart + 4 * (i), sizeof quad);                                    \
        (to)[r] = _mm512_dpbusd_epi32((to)[r], _mm512_set1_epi32(quad), _mm512_loadu_si512(panel)); \
    }                                                                                               \
    panel += WIDTH;
    for (int64_t p = 0; p < a->pieces; p++) {
        const char *at = a->at + a->offsets[p];
        int64_t i = 0;
        for (; ways > 1 && i + ways <= a->quads; i += ways) {
            ADD_QUAD(sum, i)
            UNROLL for (int way = 1; way < ways; way++) { ADD_QUAD(others + (way - 1) * rows, i + way) }
        }
        for (; i < a->quads; i++) {
            ADD_QUAD(sum, i)
        }
    }
#undef ADD_QUAD
    UNROLL for (int r = 0; r < n; r++) sum[r % rows] = _mm512_add_epi32(sum[r % rows], others[r]);
    UNROLL for (int r = 0; r < rows; r++) _mm512_storeu_si512(sums + r * TP_INT8_COLUMNS, sum[r]);
}

static VNNI void multiply_dots(tp_int8_part *part, const tp_int8_rows *a, int64_t rows, const int8_t *panel, bool more,
                               int32_t *sums) {
    switch (rows) { /* at most 12, a number that the compiler knows */
#define ROWS(n) \
    case n: dots(a, panel, more, sums, n); break;
        ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#undef ROWS
    }
}

/* ---- AMX ---- */

#define AMX __attribute__((target("avx512f,amx-tile,amx-int8")))
#define TILE 16  /* rows of a tile */
#define GROUP 64 /* rows at once: four tiles of sums */

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} shapes;

/* gcc's functions of tiles do not say which memory they read: what was written before must be there. */
#define WRITTEN(p) __asm__ volatile("" ::"r"(p) : "memory")

/* The shape that this thread's tiles have, as a number; 0: none. */
static _Thread_local int64_t shape;

/* Tiles 0 to 3 are sums, 4 and 5 rows of a, the second those of the last tile, 6 the panel's quads. */
static AMX void shape_tiles(int64_t rows, int64_t quads) {
    if (shape == rows * (TILE + 1) + quads) return;
    shape = rows * (TILE + 1) + quads;
    shapes s = {.palette = 1};
    int64_t tiles = (rows + TILE - 1) / TILE, last = rows - (tiles - 1) * TILE;
    for (int64_t t = 0; t < tiles; t++) {
        s.bytes[t] = WIDTH;
        s.rows[t] = (uint8_t)(t == tiles - 1 ? last : TILE);
    }
    s.bytes[4] = s.bytes[5] = (uint16_t)(4 * quads);
    s.rows[4] = TILE, s.rows[5] = (uint8_t)last;
    s.bytes[6] = WIDTH, s.rows[6] = (uint8_t)quads;
    WRITTEN(&s);
    _tile_loadconfig(&s);
}

/* What a tile's instruction stores is not read well at once: the last sums become numbers while the tiles are at work.
 *
 * The products with `quads` of each of `times` tiles' runs of every piece, from quad `from` on: all of one shape. */
static inline AMX __attribute__((always_inline)) void tiles(tp_int8_part *part, const tp_int8_rows *a,
                                                            const int8_t *panel, bool more, int32_t *sums, int64_t from,
                                                            int64_t times, const int count) {
    const int64_t apart = a->apart, steps = a->pieces * times;
    const int64_t share = (part->waiting.rows - part->waiting.done + steps - 1) / steps;
#define LOAD(t)                                                             \
    if (count > t) {                                                        \
        if (more) _tile_loadd(t, sums + t * TILE * TP_INT8_COLUMNS, WIDTH); \
        else _tile_zero(t);                                                 \
    }
#define STORE(t) \
    if (count > t) _tile_stored(t, sums + t * TILE * TP_INT8_COLUMNS, WIDTH);
#define STEP_OF(t, rows)                             \
    _tile_loadd(rows, at + t * TILE * apart, apart); \
    _tile_dpbusd(t, rows, 6);
#define STEP(t)             \
    if (count == t + 1) {   \
        STEP_OF(t, 5)       \
    } else if (count > t) { \
        STEP_OF(t, 4)       \
    }
    LOAD(0) LOAD(1) LOAD(2) LOAD(3);
    for (int64_t p = 0; p < a->pieces; p++)
        for (int64_t i = 0; i < times; i++) {
            const char *at = a->at + a->offsets[p] + 4 * (from + TILE * i);
            _tile_loadd(6, panel + (p * a->quads + from + TILE * i) * WIDTH, WIDTH);
            STEP(0) STEP(1) STEP(2) STEP(3) if (share) tp_int8_finish(part, share);
        }
    STORE(0) STORE(1) STORE(2) STORE(3)
#undef LOAD
#undef STORE
#undef STEP_OF
#undef STEP
}

static AMX void multiply_tiles(tp_int8_part *part, const tp_int8_rows *a, int64_t rows, const int8_t *panel, bool more,
                               int32_t *sums) {
    int64_t whole = a->quads / TILE, left = a->quads % TILE;
    for (int last = 0; last < 2; last++, more = more || whole) {
        int64_t quads = last ? left : TILE, times = last ? left > 0 : whole, from = last ? whole * TILE : 0;
        tp_int8_rows some = *a;
        int32_t *to = sums;
        for (int64_t rest = rows, n; times && rest; rest -= n, some.at += n * some.apart, to += n * TP_INT8_COLUMNS) {
            n = rest < GROUP ? rest : GROUP;
            shape_tiles(n, quads);
            switch ((n + TILE - 1) / TILE) {
            case 1: tiles(part, &some, panel, more, to, from, times, 1); break;
            case 2: tiles(part, &some, panel, more, to, from, times, 2); break;
            case 3: tiles(part, &some, panel, more, to, from, times, 3); break;
            default: tiles(part, &some, panel, more, to, from, times, 4);
            }
        }
    }
}

static AMX void release_tiles(void) {
    if (shape) _tile_release();
    shape = 0;
}

/* ---- which of them ---- */

static const tp_int8_bytes vnni = {12, 128, 0, UINT8_MAX, false, multiply_dots, NULL, NULL};
static const tp_int8_bytes amx = {GROUP, 512, 40 << 10, UINT8_MAX, true, multiply_tiles, release_tiles, NULL};

/* Whether the system lets this process use the tiles' numbers: asked once for all its threads. */
static bool may_use_tiles(void) {
    enum { ASK_FOR_STATE = 0x1023, TILE_NUMBERS = 18 }; /* ARCH_REQ_XCOMP_PERM of Linux 5.16 */
    return syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_NUMBERS) == 0;
}

static const tp_int8_bytes *choose(void) {
    unsigned eax, ebx, ecx = 0, edx = 0;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(ecx & 1u << 11)) return NULL;
    const char *most = getenv("TENSORPY_CPU_INT8");
    if (most && !strcmp(most, "avx512")) return NULL;
    bool has_tiles = edx >> 24 & edx >> 25 & 1;
    return has_tiles && !(most && !strcmp(most, "vnni")) && may_use_tiles() ? &amx : &vnni;
}

const tp_int8_bytes *tp_int8_dots(void) {
    static const tp_int8_bytes unknown;
    static _Atomic(const tp_int8_bytes *) chosen = &unknown; /* every thread that finds this finds the same answer */
    const tp_int8_bytes *found = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (found == &unknown) atomic_store_explicit(&chosen, found = choose(), memory_order_relaxed);
    return found;
}

#else
const tp_int8_bytes *tp_int8_dots(void) { return NULL; }
#endif
