/* gather.c: the primitives take and put on the CPU, below gather, scatter and the index_* family.
 *
 * The walk has two inner loops, over the indexed dimension and over the last one, whichever is nearer in memory inside.
 * Elements that may go to one place are always in one thread and in order, so sums do not depend on the threads. */
#include "PrimitiveKernels.h"
#include "tensorpy/half.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "prim/plain.h"
#include "prim/fault.h"
#include "core/memory.h"

#include <string.h>

typedef enum { GET, SET, ADD, MUL, MIN, MAX } places_op;

/* Strides in elements: of the outer and the inner loop. */
typedef struct {
    int64_t outer, inner, self_outer, self_inner, self_dim, index_outer, index_inner, other_outer, other_inner;
} walk;
typedef void (*walk_fn)(const walk *w, void *self, const int64_t *index, void *other);

/* The numbers of a walk, read once: a store of bytes may be to anything. */
#define OWN_WALK(given) const walk own = *(given), *const w = &own;

#define EACH_PLACE                         \
    for (int64_t a = 0; a < w->outer; a++) \
        for (int64_t b = 0; b < w->inner; b++)
#define HERE \
    (self[a * w->self_outer + b * w->self_inner + index[a * w->index_outer + b * w->index_inner] * w->self_dim])
#define OTHER (other[a * w->other_outer + b * w->other_inner])

/* Shapes of a walk that are worth loops of their own: along one line without gaps, and whole rows that share an index,
 * which come from rows or from an element each. */
#define ALONG_LINE (w->outer == 1 && w->index_inner == 1 && w->other_inner == 1 && w->self_dim == 1 && !w->self_inner)
#define BY_ROWS (w->index_inner == 0 && w->self_inner == 1 && w->other_inner == 1)
#define FILLS_ROWS (w->index_inner == 0 && w->self_inner == 1 && w->other_inner == 0)
#define EACH_ROW for (int64_t a = 0; a < w->outer; a++)
#define ROW (self + a * w->self_outer + index[a * w->index_outer] * w->self_dim)

#define MOVE(bits, T)                                                                                            \
    static void get_##bits(const walk *given, void *self_, const int64_t *index, void *other_) {                 \
        OWN_WALK(given)                                                                                          \
        T *self = self_, *restrict other = other_;                                                               \
        if (ALONG_LINE)                                                                                          \
            for (int64_t b = 0; b < w->inner; b++) other[b] = self[index[b]];                                    \
        else if (BY_ROWS) EACH_ROW tp_copy_bytes(other + a * w->other_outer, ROW, (size_t)w->inner * sizeof(T)); \
        else EACH_PLACE OTHER = HERE;                                                                            \
    }                                                                                                            \
    static void set_##bits(const walk *given, void *self_, const int64_t *index, void *other_) {                 \
        OWN_WALK(given)                                                                                          \
        T *restrict self = self_, *other = other_;                                                               \
        if (ALONG_LINE)                                                                                          \
            for (int64_t b = 0; b < w->inner; b++) self[index[b]] = other[b];                                    \
        else if (BY_ROWS) EACH_ROW tp_copy_bytes(ROW, other + a * w->other_outer, (size_t)w->inner * sizeof(T)); \
        else if (FILLS_ROWS) EACH_ROW {                                                                          \
                T *restrict row = ROW;                                                                           \
                const T v = other[a * w->other_outer];                                                           \
                for (int64_t b = 0; b < w->inner; b++) row[b] = v;                                               \
            }                                                                                                    \
        else EACH_PLACE HERE = OTHER;                                                                            \
    }
MOVE(8, uint8_t)
MOVE(16, uint16_t)
MOVE(32, uint32_t)
MOVE(64, uint64_t)
MOVE(128, tp_complex128)

#define FOLD(name, id, T, expression)                                                             \
    static void name##_##id(const walk *given, void *self_, const int64_t *index, void *other_) { \
        OWN_WALK(given)                                                                           \
        T *self = self_, *restrict other = other_;                                                \
        if (ALONG_LINE) {                                                                         \
            for (int64_t b = 0; b < w->inner; b++) {                                              \
                const READ_TYPE_##id x = READ_##id(self[index[b]]), y = READ_##id(other[b]);      \
                self[index[b]] = WRITE_##id(expression);                                          \
            }                                                                                     \
        } else if (BY_ROWS) {                                                                     \
            EACH_ROW {                                                                            \
                T *restrict row = ROW;                                                            \
                const T *restrict from = other + a * w->other_outer;                              \
                for (int64_t b = 0; b < w->inner; b++) {                                          \
                    const READ_TYPE_##id x = READ_##id(row[b]), y = READ_##id(from[b]);           \
                    row[b] = WRITE_##id(expression);                                              \
                }                                                                                 \
            }                                                                                     \
        } else EACH_PLACE {                                                                       \
                const READ_TYPE_##id x = READ_##id(HERE), y = READ_##id(OTHER);                   \
                HERE = WRITE_##id(expression);                                                    \
            }                                                                                     \
    }

#define PLAIN(v) (v)
/* Integers are added and multiplied as unsigned, where overflow is defined. */
#define INTEGER_TYPES(X) \
    X(UINT8, uint8_t)    \
    X(UINT16, uint16_t)  \
    X(UINT32, uint32_t) X(UINT64, uint64_t) X(INT8, int8_t) X(INT16, int16_t) X(INT32, int32_t) X(INT64, int64_t)
#define READ_TYPE_UINT8 uint8_t
#define READ_TYPE_UINT16 uint16_t
#define READ_TYPE_UINT32 uint32_t
#define READ_TYPE_UINT64 uint64_t
#define READ_TYPE_INT8 int8_t
#define READ_TYPE_INT16 int16_t
#define READ_TYPE_INT32 int32_t
#define READ_TYPE_INT64 int64_t
#define READ_TYPE_BOOL bool
#define READ_TYPE_FLOAT16 float
#define READ_TYPE_BFLOAT16 float
#define READ_TYPE_FLOAT32 float
#define READ_TYPE_FLOAT64 double
#define READ_TYPE_COMPLEX64 tp_complex64
#define READ_TYPE_COMPLEX128 tp_complex128
#define READ_UINT8 PLAIN
#define READ_UINT16 PLAIN
#define READ_UINT32 PLAIN
#define READ_UINT64 PLAIN
#define READ_INT8 PLAIN
#define READ_INT16 PLAIN
#define READ_INT32 PLAIN
#define READ_INT64 PLAIN
#define READ_BOOL(v) ((v) != 0)
#define READ_FLOAT32 PLAIN
#define READ_FLOAT64 PLAIN
#define READ_COMPLEX64 PLAIN
#define READ_COMPLEX128 PLAIN
#define READ_FLOAT16 tp_half_to_float
#define READ_BFLOAT16 tp_bfloat_to_float
#define WRITE_UINT8 (uint8_t)
#define WRITE_UINT16 (uint16_t)
#define WRITE_UINT32 (uint32_t)
#define WRITE_UINT64 (uint64_t)
#define WRITE_INT8 (int8_t)
#define WRITE_INT16 (int16_t)
#define WRITE_INT32 (int32_t)
#define WRITE_INT64 (int64_t)
#define WRITE_BOOL PLAIN
#define WRITE_FLOAT32 PLAIN
#define WRITE_FLOAT64 PLAIN
#define WRITE_COMPLEX64 PLAIN
#define WRITE_COMPLEX128 PLAIN
#define WRITE_FLOAT16 tp_float_to_half
#define WRITE_BFLOAT16 tp_float_to_bfloat

#define FOLD_INTEGER(id, T)                       \
    FOLD(add, id, T, ((uint64_t)x + (uint64_t)y)) \
    FOLD(mul, id, T, ((uint64_t)x * (uint64_t)y)) \
    FOLD(min, id, T, (y < x ? y : x))             \
    FOLD(max, id, T, (y > x ? y : x))
INTEGER_TYPES(FOLD_INTEGER)
#define FLOAT_TYPES(X) X(FLOAT16, tp_half) X(BFLOAT16, tp_bfloat) X(FLOAT32, float) X(FLOAT64, double)
#define FOLD_FLOAT(id, T)                       \
    FOLD(add, id, T, (x + y))                   \
    FOLD(mul, id, T, (x * y))                   \
    FOLD(min, id, T, (y < x || y != y ? y : x)) \
    FOLD(max, id, T, (y > x || y != y ? y : x))
FLOAT_TYPES(FOLD_FLOAT)
FOLD(add, COMPLEX64, tp_complex64, (x + y))
FOLD(mul, COMPLEX64, tp_complex64, (x * y))
FOLD(add, COMPLEX128, tp_complex128, (x + y))
FOLD(mul, COMPLEX128, tp_complex128, (x * y))
FOLD(add, BOOL, uint8_t, (x | y))
FOLD(mul, BOOL, uint8_t, (x & y))
FOLD(min, BOOL, uint8_t, (x & y))
FOLD(max, BOOL, uint8_t, (x | y))

#define FOLDS(id, T) [TP_##id] = {add_##id, mul_##id, min_##id, max_##id},
static const walk_fn folds[TP_NUM_DTYPES][4] = {
    INTEGER_TYPES(FOLDS) FLOAT_TYPES(FOLDS) FOLDS(BOOL, uint8_t)[TP_COMPLEX64] = {add_COMPLEX64, mul_COMPLEX64},
    [TP_COMPLEX128] = {add_COMPLEX128, mul_COMPLEX128},
};

static walk_fn choose(places_op op, tp_dtype d) {
    static const walk_fn moves[2][5] = {{get_8, get_16, get_32, get_64, get_128},
                                        {set_8, set_16, set_32, set_64, set_128}};
    if (op > SET) return folds[d][op - ADD];
    return moves[op][__builtin_ctzll((unsigned long long)tp_itemsize(d))];
}

typedef struct {
    walk w;
    walk_fn fn;
    int64_t itemsize;
    char *self, *other;
    const int64_t *index;
    int ndim; /* of the blocks */
    int64_t sizes[TP_MAX_DIMS], self_strides[TP_MAX_DIMS], index_strides[TP_MAX_DIMS], other_strides[TP_MAX_DIMS];
    enum { BLOCKS, INNER, OUTER } split; /* what threads share: blocks, or a loop of the only one */
} places_run;

static void run_part(int64_t begin, int64_t end, void *context) {
    const places_run *p = context;
    if (p->split != BLOCKS) {
        walk w = p->w;
        bool inner = p->split == INNER;
        *(inner ? &w.inner : &w.outer) = end - begin;
        p->fn(&w, p->self + begin * (inner ? w.self_inner : w.self_outer) * p->itemsize,
              p->index + begin * (inner ? w.index_inner : w.index_outer),
              p->other + begin * (inner ? w.other_inner : w.other_outer) * p->itemsize);
        return;
    }
    int64_t rest = begin, self = 0, index = 0, other = 0, at[TP_MAX_DIMS];
    for (int d = p->ndim - 1; d >= 0; d--) {
        at[d] = rest % p->sizes[d];
        rest /= p->sizes[d];
        self += at[d] * p->self_strides[d];
        index += at[d] * p->index_strides[d];
        other += at[d] * p->other_strides[d];
    }
    for (int64_t block = begin; block < end; block++) {
        p->fn(&p->w, p->self + self * p->itemsize, p->index + index, p->other + other * p->itemsize);
        for (int d = p->ndim - 1; d >= 0; d--) { /* on to the next block */
            int64_t by = ++at[d] < p->sizes[d] ? 1 : 1 - p->sizes[d];
            self += by * p->self_strides[d];
            index += by * p->index_strides[d];
            other += by * p->other_strides[d];
            if (by == 1) break;
            at[d] = 0;
        }
    }
}

#define SHORT_LINE 16

/* The dimension that is walked along beside the indexed one: the last, or the longest where that is the indexed one and
 * short; -1: none. */
static int beside(const tp_tensor *index, int dim) {
    int last = index->ndim - 1, longest = -1;
    while (last > 0 && index->sizes[last] == 1) last--;
    if (last > dim) return last;
    if (index->sizes[dim] >= SHORT_LINE) return -1;
    for (int d = index->ndim - 1; d >= 0; d--)
        if (d != dim && (longest < 0 || index->sizes[d] > index->sizes[longest])) longest = d;
    return longest;
}

/* The loop over a later dimension than the indexed one is the inner one, and so is one beside a single element. */
static void plan_walk(places_run *p, places_op op, const tp_tensor *self, int dim, const tp_tensor *index,
                      const tp_tensor *other) {
    int near = beside(index, dim);
    bool inside = near > dim || (near >= 0 && index->sizes[dim] == 1);
    walk w = {.outer = 1, .inner = index->sizes[dim], .self_dim = self->ndim ? self->strides[dim] : 1};
    w.index_inner = index->strides[dim];
    w.other_inner = other->ndim ? other->strides[dim] : 0;
    if (inside) {
        w.outer = w.inner, w.index_outer = w.index_inner, w.other_outer = w.other_inner;
        w.inner = index->sizes[near];
        w.self_inner = self->strides[near];
        w.index_inner = index->strides[near];
        w.other_inner = other->strides[near];
    } else if (near >= 0) {
        w.outer = index->sizes[near];
        w.self_outer = self->strides[near];
        w.index_outer = index->strides[near];
        w.other_outer = other->strides[near];
    }
    p->w = w;
    int64_t blocks = 1;
    for (int d = 0; d < index->ndim; d++) {
        if (d == dim || d == near) continue;
        p->sizes[p->ndim] = index->sizes[d];
        p->self_strides[p->ndim] = self->strides[d];
        p->index_strides[p->ndim] = index->strides[d];
        p->other_strides[p->ndim++] = other->strides[d];
        blocks *= index->sizes[d];
    }
    if (blocks == 1) p->split = inside || (near < 0 && op == GET) ? INNER : near < 0 ? BLOCKS : OUTER;
}

/* For every element of index, which is in range: self at that place along `dim` against other at its coordinates. */
static int run(places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other) {
    places_run p = {.fn = choose(op, (tp_dtype)self->dtype),
                    .itemsize = tp_itemsize((tp_dtype)self->dtype),
                    .self = tp_data(self),
                    .other = tp_data(other),
                    .index = tp_data(index),
                    .w = {.outer = 1, .inner = 1}};
    if (!p.fn)
        return tp_fail(TP_NotImplementedError, "scatter_reduce: not implemented for %s", tp_dtype_names[self->dtype]);
    if (index->ndim) plan_walk(&p, op, self, (int)dim, index, other);
    int64_t n = p.split == INNER ? p.w.inner : p.split == OUTER ? p.w.outer : index->numel / (p.w.inner * p.w.outer);
    int64_t cost = index->numel / n;
    return tp_parallel_unlocked(index->numel > TP_GRAIN, n, cost < TP_GRAIN / 4 ? TP_GRAIN / 4 / (cost + 1) + 1 : 1,
                                run_part, &p);
}

/* ---- checks ---- */

/* The index without the dimensions that it is expanded over. */
static tp_tensor *core_of(const tp_tensor *index) {
    int64_t sizes[TP_MAX_DIMS];
    for (int i = 0; i < index->ndim; i++) sizes[i] = index->strides[i] == 0 ? 1 : index->sizes[i];
    return tp_new_alias(index, (tp_ints){sizes, index->ndim}, tp_strides(index), index->byte_offset);
}

/* The same values as if they had the index's shape. */
static tp_tensor *spread(const tp_tensor *core, const tp_tensor *index) {
    int64_t strides[TP_MAX_DIMS];
    for (int i = 0; i < index->ndim; i++) strides[i] = index->strides[i] == 0 ? 0 : core->strides[i];
    return tp_new_alias(core, tp_sizes(index), (tp_ints){strides, index->ndim}, core->byte_offset);
}

/* 0: all are in [0, size); 1: some are negative, to be wrapped; -1 and the error set: one is out of range. */
static int look_at(const int64_t *v, int64_t n, int64_t dim, int64_t size, int fault, bool wrap) {
    int64_t bad = -1, signs = 0; /* negative once an index is below 0 or above size - 1 */
    for (int64_t i = 0; i < n; i++) signs |= v[i] | (int64_t)((uint64_t)size - 1 - (uint64_t)v[i]);
    if (signs >= 0) return 0;
    for (int64_t i = 0; i < n; i++)
        if (wrap ? v[i] < -size || v[i] >= size : (uint64_t)v[i] >= (uint64_t)size) bad = i;
    return bad < 0 ? 1 : tp_raise_fault(fault, v[bad], dim, size, "");
}

/* How many numbers lie one after another in an index that is one line, expanded over the other dimensions; -1: it is
 * not, or it has gaps. */
static int64_t line_of(const tp_tensor *index) {
    int64_t n = 1, lines = 0;
    for (int i = 0; i < index->ndim; i++) {
        if (index->strides[i] == 0 || index->sizes[i] == 1) continue;
        if (index->strides[i] != 1 || lines++) return -1;
        n = index->sizes[i];
    }
    return n;
}

/* The index with all values in [0, size), itself where they are so; new. */
static tp_tensor *checked(const tp_tensor *self, int64_t dim, tp_tensor *index, int fault, bool wrap) {
    int64_t size = tp_size_at(tp_sizes(self), dim);
    if (fault == TP_TRUSTED) return tp_retain(index);
    int64_t line = line_of(index);
    int seen = line < 0 ? 1 : look_at(tp_data(index), line, dim, size, fault, wrap);
    if (seen <= 0) return seen < 0 ? NULL : tp_retain(index);
    tp_autoref *core = tp_is_contiguous(index) ? tp_retain(index) : core_of(index);
    tp_autoref *plain = core ? tp_plain(core, TP_INT64) : NULL;
    int negative = plain ? look_at(tp_data(plain), plain->numel, dim, size, fault, wrap) : -1;
    if (negative < 0) return NULL;
    if (!negative) return tp_retain(index);
    tp_autoref *own = tp_new_empty(tp_sizes(core), TP_INT64, TP_CPU);
    if (!own) return NULL;
    const int64_t *v = tp_data(plain);
    int64_t *w = tp_data(own);
    for (int64_t i = 0; i < own->numel; i++) w[i] = v[i] < 0 ? v[i] + size : v[i];
    return spread(own, index);
}

/* ---- the primitives ---- */

typedef struct {
    const char *from;
    char *to;
    const int64_t *index;
    int64_t step, n, size, bytes; /* from index to index; rows chosen, rows there, bytes of a row */
} rows;

static void copy_rows(int64_t begin, int64_t end, void *context) {
    const rows *r = context;
    int64_t at = begin % r->n;
    const char *block = r->from + begin / r->n * r->size * r->bytes;
    for (int64_t i = begin; i < end; i++) {
        tp_copy_bytes(r->to + i * r->bytes, block + r->index[at * r->step] * r->bytes, (size_t)r->bytes);
        if (++at < r->n) continue;
        at = 0;
        block += r->size * r->bytes;
    }
}

/* Whole rows of contiguous memory, chosen by one line of indices. */
static bool is_of_rows(const tp_tensor *self, int64_t dim, const tp_tensor *index, const tp_tensor *out, rows *r) {
    if (!self->ndim || !tp_is_contiguous(self) || !tp_is_contiguous(out)) return false;
    *r = (rows){tp_data(self),
                tp_data(out),
                tp_data(index),
                index->strides[dim],
                index->sizes[dim],
                self->sizes[dim],
                tp_itemsize((tp_dtype)self->dtype)};
    for (int i = 0; i < self->ndim; i++) {
        if (i != dim && (index->sizes[i] != self->sizes[i] || (index->sizes[i] > 1 && index->strides[i]))) return false;
        if (i > dim) r->bytes *= self->sizes[i];
    }
    return r->bytes >= 64;
}

int take_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, int64_t fault, bool wrap, tp_tensor *out) {
    rows r;
    tp_autoref *places = checked(self, dim, index, (int)fault, wrap);
    if (!places) return -1;
    if (!is_of_rows(self, dim, places, out, &r)) return run(GET, self, dim, places, out);
    int64_t n = out->numel * tp_itemsize((tp_dtype)self->dtype) / r.bytes;
    return tp_parallel_for(n, TP_GRAIN / r.bytes + 1, copy_rows, &r);
}

static int put(places_op op, tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    tp_autoref *places = checked(self, dim, index, (int)fault, wrap);
    return places ? run(op, self, dim, places, src) : -1;
}
int put_set_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return put(SET, self, dim, index, src, fault, wrap);
}
int put_add_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return put(ADD, self, dim, index, src, fault, wrap);
}
int put_mul_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return put(MUL, self, dim, index, src, fault, wrap);
}
int put_min_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return put(MIN, self, dim, index, src, fault, wrap);
}
int put_max_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return put(MAX, self, dim, index, src, fault, wrap);
}
