/* kernels.h: the hand-written CPU kernels that are compiled once per capability: one table per family.
 *
 * `tp_cpu.<family>` is the table in use, chosen when the library is loaded. A family's file ends with
 *     const tp_<family>_kernels TP_CAP(tp_<family>) = {...};
 * and has a line in TP_FORALL_CPU_FAMILIES. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_dispatch) || defined(TP_FOLDER_iter) || defined(TP_FOLDER_prim) || \
    defined(TP_FOLDER_native) || defined(TP_FOLDER_opencl) || defined(TP_FOLDER_autograd) ||                        \
    defined(TP_FOLDER_autocast)
#error "the CPU's kernels are its own: call a primitive"
#endif

#include "core/generator.h"
#include "cpu/attention.h"
#include "cpu/capability.h"
#include "cpu/chain.h"
#include "cpu/convolution.h"
#include "cpu/ctc.h"
#include "cpu/fft.h"
#include "cpu/grid.h"
#include "cpu/norm.h"
#include "cpu/optimizer.h"
#include "cpu/panels.h"
#include "cpu/pool.h"
#include "cpu/product_int8.h"
#include "cpu/recurrent.h"
#include "cpu/sgemm.h"
#include "cpu/softmax.h"
#include "cpu/sparse.h"
#include "prim/draw.h"
#include "iter/iter.h"
#include "cpu/reduction.h"

/* For loops that read a long run once, at every 64 bytes: asks for what is read eight cache lines later. The hardware
 * foresees these reads, but not far enough: a tenth faster from memory, a third from the L2 cache. */
#define TP_FETCH_AHEAD(p) __builtin_prefetch((const char *)(p) + 512)

#define TP_FORALL_CPU_FAMILIES(X) \
    X(attention)                  \
    X(cast)                       \
    X(chain)                      \
    X(convolution)                \
    X(ctc)                        \
    X(extreme)                    \
    X(fft)                        \
    X(fold)                       \
    X(grid)                       \
    X(moments)                    \
    X(norm)                       \
    X(optimizer)                  \
    X(order)                      \
    X(panels)                     \
    X(pool)                       \
    X(product_int8)               \
    X(random)                     \
    X(recurrent)                  \
    X(reduce)                     \
    X(scan)                       \
    X(sgemm)                      \
    X(softmax)                    \
    X(sort)                       \
    X(sparse)

typedef const tp_loop_fn *tp_cast_kernels[TP_NUM_DTYPES]; /* [to][from] */

#define TP_DRAW_BLOCK 1024 /* the elements that a kernel makes at once; it begins at a multiple of it */

typedef struct {
    /* Elements first .. first + TP_DRAW_BLOCK - 1 of a draw. */
    void (*make[TP_NUM_DRAWS])(const tp_draw *d, int64_t first, void *out);
} tp_random_kernels;

typedef struct {
    tp_reduction sum[TP_NUM_DTYPES];  /* by the dtype of the accumulator; bool: any */
    tp_reduction mean[TP_NUM_DTYPES]; /* floating and complex ones */
} tp_reduce_kernels;

/* By the input's dtype, the 16-bit floats and complex ones absent; `_at` gives places, as int64. */
typedef struct {
    tp_reduction largest[TP_NUM_DTYPES], smallest[TP_NUM_DTYPES];
    tp_reduction largest_at[TP_NUM_DTYPES], smallest_at[TP_NUM_DTYPES];
} tp_extreme_kernels;

typedef struct {
    tp_reduction nansum[TP_NUM_DTYPES];                                          /* float32 and float64 */
    tp_reduction any[TP_NUM_DTYPES], all[TP_NUM_DTYPES], nonzero[TP_NUM_DTYPES]; /* by the input's dtype */
} tp_fold_kernels;

/* By the input's dtype: floating and complex ones but the 16-bit floats. variance takes tp_moments_params. */
typedef struct {
    tp_reduction variance[TP_NUM_DTYPES];
    tp_reduction length[TP_NUM_DTYPES]; /* the Euclidean one */
} tp_moments_kernels;
typedef struct {
    double correction; /* taken from the count */
    bool root;         /* the standard deviation */
} tp_moments_params;

/* By the dtype, the 16-bit floats and complex ones absent. */
typedef struct {
    /* Keys in the order of the elements (lines.h), each combined with `flip` by exclusive or. */
    void (*keys[TP_NUM_DTYPES])(const void *in, int64_t n, uint64_t flip, uint64_t *keys);
    /* n elements of 2**i bytes in reverse; `last` is the one that comes first. */
    void (*reverse[5])(void *to, const void *last, int64_t n);
    bool (*any_below)(const uint64_t *keys, int64_t n, uint64_t bound);
    /* The places of values in a sorted sequence of less than 2**32 elements, before or after equal ones; of float32,
     * float64, int32, int64 and uint64. */
    void (*left[TP_NUM_DTYPES])(const void *sequence, int64_t n, const void *values, int64_t count, int64_t *out);
    void (*right[TP_NUM_DTYPES])(const void *sequence, int64_t n, const void *values, int64_t count, int64_t *out);
} tp_order_kernels;

#define TP_SORT_SHORT 1024 /* lines of up to so many words may lie side by side, */
#define TP_SORT_ROW 128    /* in rows of so many bytes */
typedef struct {
    /* Puts `count` lines of n words in order; the lowest `low` bits of each line's words are in order already. `spare`
     * has room for as many words, and for n rows where n is at most TP_SORT_SHORT. -1 if a signal ends it. */
    int (*lines_32)(int32_t *lines, int32_t *spare, int64_t n, int64_t count, int low);
    int (*lines_64)(int64_t *lines, int64_t *spare, int64_t n, int64_t count, int low);
    /* By dtype: words of 32 bits for elements of up to as many, else of 64, in the elements' order; and back. */
    void (*to_words[TP_NUM_DTYPES])(const void *in, int64_t n, bool descending, void *words);
    void (*from_words[TP_NUM_DTYPES])(const void *words, int64_t n, bool descending, void *out);
} tp_sort_kernels;

/* A scan of `width` columns, at most TP_SCAN_COLUMNS, over n steps of `stride` elements; `at` gets places. A stride of
 * 1 means a single column. */
#define TP_SCAN_COLUMNS 512
typedef void (*tp_scan_fn)(void *out, void *at, const void *in, int64_t n, int64_t stride, int64_t width);
typedef struct {
    tp_scan_fn cumsum[TP_NUM_DTYPES], cumprod[TP_NUM_DTYPES]; /* int64, floating and complex ones */
    tp_scan_fn cummax[TP_NUM_DTYPES], cummin[TP_NUM_DTYPES], logcumsumexp[TP_NUM_DTYPES];
} tp_scan_kernels;

typedef struct {
#define TP_FAMILY_MEMBER(family) const tp_##family##_kernels *family;
    TP_FORALL_CPU_FAMILIES(TP_FAMILY_MEMBER)
#undef TP_FAMILY_MEMBER
} tp_cpu_kernels;
extern tp_cpu_kernels tp_cpu;

/* Points tp_cpu at the kernels of a capability: at load, and by tests. */
void tp_cpu_select(tp_capability capability);
