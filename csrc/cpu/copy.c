/* copy.c: the primitives copy and fill: any strides and dtypes.
 *
 * Where both sides are laid out alike a copy is memcpy; where their dimensions lie in another order it goes by tiles
 * (permuted.c); all else is a plan that runs a conversion loop. */
#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "cpu/loop.h"
#include "cpu/permuted.h"
#include "cpu/run.h"
#include "core/memory.h"

#include <string.h>

#define SHORT_LINE 16                 /* elements */
#define COPY_GRAIN ((int64_t)1 << 20) /* bytes of memcpy or memset worth a thread */

/* ---- bytes ---- */

typedef struct {
    char *to;
    const char *from;
    int value;
} byte_range;

static void copy_range(int64_t begin, int64_t end, void *context) {
    const byte_range *r = context;
    tp_copy_bytes(r->to + begin, r->from + begin, (size_t)(end - begin));
}

static void set_range(int64_t begin, int64_t end, void *context) {
    const byte_range *r = context;
    memset(r->to + begin, r->value, (size_t)(end - begin));
}

static int over_bytes(tp_range_fn fn, byte_range *r, int64_t nbytes) {
    if (nbytes < COPY_GRAIN) {
        fn(0, nbytes, r);
        return 0;
    }
    return tp_parallel_unlocked(true, nbytes, COPY_GRAIN, fn, r);
}

/* ---- one element to many ---- */

/* Operand 0 becomes the element that operand 1 points at: its stride is 0, but for tiles, which may run across rows. */
#define SPREAD(name, type)                                                                                 \
    static void name(char *const *data, const int64_t *strides, int64_t n, const void *params TP_UNUSED) { \
        const type value = *(const type *)data[1];                                                         \
        TP_OPERAND(data, strides, 0)                                                                       \
        TP_OPERAND(data, strides, 1)                                                                       \
        if (strides[1]) {                                                                                  \
            for (int64_t i = 0; i < n; i++) *TP_TO(type, 0) = TP_AT(type, 1);                              \
        } else if (strides[0] == sizeof(type)) {                                                           \
            for (int64_t i = 0; i < n; i++) ((type *)data_0)[i] = value;                                   \
        } else {                                                                                           \
            for (int64_t i = 0; i < n; i++) *TP_TO(type, 0) = value;                                       \
        }                                                                                                  \
    }
SPREAD(spread_1, uint8_t)
SPREAD(spread_2, uint16_t)
SPREAD(spread_4, uint32_t)
SPREAD(spread_8, uint64_t)
SPREAD(spread_16, tp_complex128)

static tp_loop_fn spread_loop(int64_t itemsize) {
    switch (itemsize) {
    case 1: return spread_1;
    case 2: return spread_2;
    case 4: return spread_4;
    case 8: return spread_8;
    default: return spread_16;
    }
}

/* ---- turned round ---- */

#define PIECE 65536 /* elements of a long line that are turned round together */

/* Lines without gaps whose source runs backwards; a unit is a piece of one. */
static void reverse_pieces(int64_t begin, int64_t end, void *context) {
    const tp_iter *it = context;
    int64_t size = tp_itemsize(it->dtype[0]), pieces = (it->shape[0] + PIECE - 1) / PIECE;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t first = unit % pieces * PIECE, rest = unit / pieces;
        char *to = it->data[0] + first * size, *from = it->data[1] - first * size;
        for (int d = 1; d < it->ndim; rest /= it->shape[d++]) {
            to += rest % it->shape[d] * it->strides[0][d];
            from += rest % it->shape[d] * it->strides[1][d];
        }
        int64_t n = it->shape[0] - first < PIECE ? it->shape[0] - first : PIECE;
        tp_cpu.order->reverse[__builtin_ctzll((unsigned long long)size)](to, from, n);
    }
}

static bool is_reversed(const tp_iter *it, int64_t itemsize) {
    return it->ndim && it->strides[0][0] == itemsize && it->strides[1][0] == -itemsize && it->shape[0] >= SHORT_LINE;
}

static int copy_reversed(tp_iter *it) {
    int64_t n = it->shape[0], pieces = (n + PIECE - 1) / PIECE;
    return tp_parallel_unlocked(it->numel >= TP_GRAIN, it->numel / n * pieces, TP_GRAIN / n + 1, reverse_pieces, it);
}

/* ---- copy ---- */

static int64_t nbytes_of(const tp_tensor *t) { return t->numel * tp_itemsize((tp_dtype)t->dtype); }

/* A broadcast copy reads one element for many: with a conversion, the fewer elements are converted first. */
static int copy_converted(tp_tensor *dst, tp_tensor *src) {
    tp_autoref *converted = tp_new_empty(tp_sizes(src), (tp_dtype)dst->dtype, TP_CPU);
    return converted && copy_cpu(src, converted) == 0 ? copy_cpu(converted, dst) : -1;
}

static int copy_by_plan(tp_tensor *dst, tp_tensor *src) {
    tp_tensor *tensors[] = {dst, src};
    int64_t itemsize = tp_itemsize((tp_dtype)dst->dtype);
    tp_iter it;
    if (tp_iter_plan(&it, tensors, 1, 2, tp_sizes(dst)) < 0) return -1;
    int status;
    if (dst->dtype == src->dtype && tp_copy_permuted(&it, itemsize, &status)) return status;
    if (dst->dtype == src->dtype && is_reversed(&it, itemsize)) return copy_reversed(&it);
    tp_loop_fn loop = tp_cast_loop((tp_dtype)src->dtype, (tp_dtype)dst->dtype); /* dtypes are those of the tensors */
    if (dst->dtype == src->dtype && it.strides[1][0] == 0) loop = spread_loop(itemsize);
    return tp_iter_run(&it, loop, NULL, TP_GRAIN);
}

/* copy(Tensor src, *, Tensor(a!) out) -> () */
int copy_cpu(tp_tensor *src, tp_tensor *out) {
    if (tp_laid_out_alike(out, src)) {
        byte_range r = {.to = tp_data(out), .from = tp_data(src)};
        return over_bytes(copy_range, &r, nbytes_of(out));
    }
    if (out->dtype != src->dtype && src->numel < out->numel) return copy_converted(out, src);
    return copy_by_plan(out, src);
}

/* ---- filling ---- */

static bool all_bytes_equal(const unsigned char *p, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (p[i] != p[0]) return false;
    return true;
}

/* fill(Scalar value, *, Tensor(a!) out) -> () */
int fill_cpu(const tp_scalar *value, tp_tensor *out) {
    tp_complex128 element[1];
    int64_t itemsize = tp_itemsize((tp_dtype)out->dtype);
    tp_scalar_store(value, (tp_dtype)out->dtype, element);
    if (all_bytes_equal((const unsigned char *)element, itemsize) && tp_is_dense(out)) {
        byte_range r = {.to = tp_data(out), .value = *(const unsigned char *)element};
        return over_bytes(set_range, &r, nbytes_of(out));
    }
    tp_tensor *tensors[] = {out, NULL};
    tp_iter it;
    if (tp_iter_plan(&it, tensors, 1, 2, tp_sizes(out)) < 0) return -1;
    it.data[1] = (char *)element;
    it.dtype[1] = it.loop_dtype[1] = it.dtype[0];
    return tp_iter_run(&it, spread_loop(itemsize), NULL, TP_GRAIN);
}
