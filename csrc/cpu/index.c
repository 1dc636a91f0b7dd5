/* index.c: the primitives index and index_put.
 *
 * The places that the indices name become byte offsets, checked once. Then every place is a block of elements (the
 * dimensions after the first index), which is read, written or added to. Reads are split over threads; writes are not,
 * so that of several writes to one place the last one wins, and sums do not depend on the number of threads. */
#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "tensorpy/half.h"
#include "core/host.h"
#include "core/parallel.h"
#include "prim/fault.h"
#include "core/memory.h"

#include <string.h>

/* ---- a row of elements ---- */

typedef void (*row_fn)(char *to, const char *from, int64_t n, int64_t to_step, int64_t from_step);

typedef struct {
    uint64_t half[2];
} bytes16;
#define COPY_ROW(name, type)                                                                                 \
    static void name(char *to, const char *from, int64_t n, int64_t to_step, int64_t from_step) {            \
        for (int64_t i = 0; i < n; i++) *(type *)(to + i * to_step) = *(const type *)(from + i * from_step); \
    }                                                                                                        \
    /* One element from each place. */                                                                       \
    static void name##_places(char *to, const char *from, const int64_t *places, int64_t n) {                \
        for (int64_t i = 0; i < n; i++) ((type *)to)[i] = *(const type *)(from + places[i]);                 \
    }
COPY_ROW(copy1, uint8_t)
COPY_ROW(copy2, uint16_t)
COPY_ROW(copy4, uint32_t)
COPY_ROW(copy8, uint64_t)
COPY_ROW(copy16, bytes16)

typedef struct {
    row_fn row;
    void (*places)(char *to, const char *from, const int64_t *places, int64_t n);
} copiers;
static copiers copiers_of(int64_t itemsize) {
    switch (itemsize) {
    case 1: return (copiers){copy1, copy1_places};
    case 2: return (copiers){copy2, copy2_places};
    case 4: return (copiers){copy4, copy4_places};
    case 8: return (copiers){copy8, copy8_places};
    default: return (copiers){copy16, copy16_places};
    }
}

#define PLUS(a, b) ((a) + (b))
#define OR(a, b) ((a) || (b))
#define HALF_PLUS(a, b) tp_float_to_half(tp_half_to_float(a) + tp_half_to_float(b))
#define BFLOAT_PLUS(a, b) tp_float_to_bfloat(tp_bfloat_to_float(a) + tp_bfloat_to_float(b))
#define E4M3FN_PLUS(a, b) tp_float_to_e4m3fn(tp_e4m3fn_to_float(a) + tp_e4m3fn_to_float(b))
#define E5M2_PLUS(a, b) tp_float_to_e5m2(tp_e5m2_to_float(a) + tp_e5m2_to_float(b))
#define E4M3FNUZ_PLUS(a, b) tp_float_to_e4m3fnuz(tp_e4m3fnuz_to_float(a) + tp_e4m3fnuz_to_float(b))
#define E5M2FNUZ_PLUS(a, b) tp_float_to_e5m2fnuz(tp_e5m2fnuz_to_float(a) + tp_e5m2fnuz_to_float(b))
#define E8M0FNU_PLUS(a, b) tp_float_to_e8m0fnu(tp_e8m0fnu_to_float(a) + tp_e8m0fnu_to_float(b))
static tp_complex32 complex32_plus(tp_complex32 a, tp_complex32 b) {
    return (tp_complex32){HALF_PLUS(a.real, b.real), HALF_PLUS(a.imag, b.imag)};
}
/* Signed sums wrap. */
#define WRAP_PLUS(a, b) ((__typeof__(a))((uint64_t)(a) + (uint64_t)(b)))
#define ADD_ROW(id, type, plus)                                                                       \
    static void add_##id(char *to, const char *from, int64_t n, int64_t to_step, int64_t from_step) { \
        for (int64_t i = 0; i < n; i++) {                                                             \
            type *place = (type *)(to + i * to_step);                                                 \
            *place = plus(*place, *(const type *)(from + i * from_step));                             \
        }                                                                                             \
    }
ADD_ROW(BOOL, uint8_t, OR)
ADD_ROW(UINT8, uint8_t, WRAP_PLUS)
ADD_ROW(UINT16, uint16_t, WRAP_PLUS)
ADD_ROW(UINT32, uint32_t, WRAP_PLUS)
ADD_ROW(UINT64, uint64_t, WRAP_PLUS)
ADD_ROW(INT8, int8_t, WRAP_PLUS)
ADD_ROW(INT16, int16_t, WRAP_PLUS)
ADD_ROW(INT32, int32_t, WRAP_PLUS)
ADD_ROW(INT64, int64_t, WRAP_PLUS)
ADD_ROW(FLOAT16, tp_half, HALF_PLUS)
ADD_ROW(BFLOAT16, tp_bfloat, BFLOAT_PLUS)
ADD_ROW(FLOAT32, float, PLUS)
ADD_ROW(FLOAT64, double, PLUS)
ADD_ROW(COMPLEX64, tp_complex64, PLUS)
ADD_ROW(COMPLEX128, tp_complex128, PLUS)
ADD_ROW(COMPLEX32, tp_complex32, complex32_plus)
ADD_ROW(FLOAT8_E4M3FN, tp_e4m3fn, E4M3FN_PLUS)
ADD_ROW(FLOAT8_E5M2, tp_e5m2, E5M2_PLUS)
ADD_ROW(FLOAT8_E4M3FNUZ, tp_e4m3fnuz, E4M3FNUZ_PLUS)
ADD_ROW(FLOAT8_E5M2FNUZ, tp_e5m2fnuz, E5M2FNUZ_PLUS)
ADD_ROW(FLOAT8_E8M0FNU, tp_e8m0fnu, E8M0FNU_PLUS)
#define ADD_ENTRY(id, name, ctype, category) [TP_##id] = add_##id,
static const row_fn add_rows[TP_NUM_DTYPES] = {TP_FORALL_DTYPES(ADD_ENTRY)};

/* ---- the walk ---- */

/* A run of dimensions with the steps of both sides, in bytes. */
typedef struct {
    int ndim;
    int64_t numel, sizes[TP_MAX_DIMS], self_steps[TP_MAX_DIMS], value_steps[TP_MAX_DIMS];
} group;

typedef struct {
    char *self, *values;
    group before, after;
    int64_t nplaces, itemsize;
    int64_t *self_places, *value_places; /* bytes */
    bool writes, one_element;
    row_fn row;
    void (*places)(char *to, const char *from, const int64_t *places, int64_t n);
} job;

static void group_add(group *g, int64_t size, int64_t self_step, int64_t value_step) {
    g->numel *= size;
    if (size == 1) return;
    int last = g->ndim - 1;
    if (last >= 0 && g->self_steps[last] == size * self_step && g->value_steps[last] == size * value_step) {
        g->sizes[last] *= size;
        g->self_steps[last] = self_step;
        g->value_steps[last] = value_step;
        return;
    }
    g->sizes[g->ndim] = size;
    g->self_steps[g->ndim] = self_step;
    g->value_steps[g->ndim++] = value_step;
}

static void group_offset(const group *g, int64_t flat, int64_t *self_offset, int64_t *value_offset) {
    *self_offset = *value_offset = 0;
    for (int d = g->ndim - 1; d >= 0; d--) {
        int64_t at = flat % g->sizes[d];
        flat /= g->sizes[d];
        *self_offset += at * g->self_steps[d];
        *value_offset += at * g->value_steps[d];
    }
}

static void run_row(const job *j, char *self, char *values, int64_t n, int64_t self_step, int64_t value_step) {
    char *to = j->writes ? self : values, *from = j->writes ? values : self;
    if (n > 1 && self_step == j->itemsize && value_step == j->itemsize && j->places)
        tp_copy_bytes(to, from, (size_t)(n * j->itemsize));
    else j->row(to, from, n, j->writes ? self_step : value_step, j->writes ? value_step : self_step);
}

static void run_block(const job *j, char *self, char *values) {
    const group *g = &j->after;
    if (g->ndim <= 1) {
        run_row(j, self, values, g->ndim ? g->sizes[0] : 1, g->ndim ? g->self_steps[0] : 0,
                g->ndim ? g->value_steps[0] : 0);
        return;
    }
    int last = g->ndim - 1;
    group outer = *g;
    outer.ndim = last;
    for (int64_t i = 0; i < g->numel / g->sizes[last]; i++) {
        int64_t self_offset, value_offset;
        group_offset(&outer, i, &self_offset, &value_offset);
        run_row(j, self + self_offset, values + value_offset, g->sizes[last], g->self_steps[last],
                g->value_steps[last]);
    }
}

/* Places [begin, end) of the flattened (before, place) space. */
static void run_places(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    int64_t self_offset = 0, value_offset = 0;
    for (int64_t at = begin; at < end;) {
        int64_t place = at % j->nplaces, n = j->nplaces - place;
        if (n > end - at) n = end - at;
        if (n > TP_STRETCH) n = TP_STRETCH;
        group_offset(&j->before, at / j->nplaces, &self_offset, &value_offset);
        char *self = j->self + self_offset, *values = j->values + value_offset;
        if (j->one_element) j->places(values + place * j->itemsize, self, j->self_places + place, n);
        else
            for (int64_t i = place; i < place + n; i++)
                run_block(j, self + j->self_places[i], values + j->value_places[i]);
        if (n >= TP_STRETCH && tp_host_look() < 0) return;
        at += n;
    }
}

/* All of them, one after the other; an error that was pending before is not this walk's. */
static int write_places(int64_t n, job *j) { return tp_parallel_for(n, n, run_places, j); }

/* ---- places ---- */

/* Adds what the index of dimension `dim` contributes to each place. */
static int add_places(const tp_tensor *index, const tp_tensor *self, int64_t dim, int64_t fault, int64_t *places) {
    int64_t size = self->sizes[dim], step = self->strides[dim] * tp_itemsize((tp_dtype)self->dtype), n = index->numel;
    const int64_t *data = tp_data(index);
    bool flat = tp_is_contiguous(index);
    int64_t at[TP_MAX_DIMS] = {0}, offset = 0;
    for (int64_t first = 0, last; first < n; first = last) {
        if (tp_ends_at(first)) return -1;
        last = n - first < TP_STRETCH ? n : first + TP_STRETCH;
        for (int64_t i = first; i < last; i++) {
            int64_t value = data[flat ? i : offset], wrapped = value < 0 ? value + size : value;
            if (tp_unlikely((uint64_t)wrapped >= (uint64_t)size))
                return tp_raise_fault((int)fault, value, dim, size, "");
            places[i] += wrapped * step;
            for (int d = index->ndim - 1; !flat && d >= 0; d--) {
                offset += index->strides[d];
                if (++at[d] < index->sizes[d]) break;
                offset -= index->strides[d] * at[d];
                at[d] = 0;
            }
        }
    }
    return 0;
}

/* The places in the values; returns the bytes from one to the next, 0 where there is no one number of them. */
static int64_t value_places(const tp_tensor *values, int nplaces, int64_t n, int64_t *places) {
    int64_t itemsize = tp_itemsize((tp_dtype)values->dtype);
    group g = {.numel = 1};
    for (int d = 0; d < nplaces; d++) group_add(&g, values->sizes[d], 0, values->strides[d] * itemsize);
    if (g.ndim <= 1) {
        for (int64_t i = 0; i < n; i++) places[i] = i * (g.ndim ? g.value_steps[0] : 0);
        return g.ndim ? g.value_steps[0] : itemsize;
    }
    int64_t unused;
    for (int64_t i = 0; i < n; i++) group_offset(&g, i, &unused, &places[i]);
    return 0;
}

/* The dimensions of self that have no index, with those of the values after the places. */
static void add_rest(job *j, const tp_tensor *self, const tp_tensor *values, tp_ints dims, int nplaces) {
    int at = nplaces;
    for (int d = 0, k = 0; d < self->ndim; d++) {
        if (k < dims.size && dims.data[k] == d) k++;
        else {
            group_add(k ? &j->after : &j->before, self->sizes[d], self->strides[d] * j->itemsize,
                      values->strides[at] * j->itemsize);
            at++;
        }
    }
}

/* Indexes between self and values: [places..., rest...]. `add` NULL: copies. */
static int run_index(tp_tensor *self, tp_tensors index, tp_ints dims, int64_t fault, tp_tensor *values, bool writes,
                     row_fn add) {
    int64_t itemsize = tp_itemsize((tp_dtype)self->dtype), n = index.data[0]->numel;
    int nplaces = index.data[0]->ndim;
    copiers copy = copiers_of(itemsize);
    job j = {.self = tp_data(self),
             .values = tp_data(values),
             .nplaces = n,
             .itemsize = itemsize,
             .writes = writes,
             .before = {.numel = 1},
             .after = {.numel = 1},
             .row = add ? add : copy.row,
             .places = add ? NULL : copy.places};
    add_rest(&j, self, values, dims, nplaces);
    size_t bytes = (size_t)n * 2 * sizeof(int64_t);
    j.self_places = tp_alloc(bytes);
    if (!j.self_places) return -1;
    j.value_places = j.self_places + n;
    memset(j.self_places, 0, (size_t)n * sizeof(int64_t));
    int status = 0;
    for (int64_t k = 0; status == 0 && k < index.size; k++)
        status = add_places(index.data[k], self, dims.data[k], fault, j.self_places);
    int64_t step = status == 0 ? value_places(values, nplaces, n, j.value_places) : 0;
    j.one_element = !writes && j.after.numel == 1 && step == itemsize;
    int64_t grain = 16384 / (j.after.numel < 16384 ? j.after.numel : 16384);
    if (status == 0 && writes) status = write_places(n * j.before.numel, &j);
    else if (status == 0) status = tp_parallel_for(n * j.before.numel, grain, run_places, &j);
    tp_free(j.self_places, bytes);
    return status;
}

/* ---- the primitives ---- */

/* index(Tensor self, Tensor[] index, int[] dims, int fault, *, Tensor(a!) out) -> () */
int index_cpu(tp_tensor *self, tp_tensors index, tp_ints dims, int64_t fault, tp_tensor *out) {
    return run_index(self, index, dims, fault, out, false, NULL);
}

/* index_put.set(Tensor(a!) self, Tensor[] index, int[] dims, Tensor values, int fault) -> () */
int index_put_set_cpu(tp_tensor *self, tp_tensors index, tp_ints dims, tp_tensor *values, int64_t fault) {
    return run_index(self, index, dims, fault, values, true, NULL);
}

int index_put_add_cpu(tp_tensor *self, tp_tensors index, tp_ints dims, tp_tensor *values, int64_t fault) {
    return run_index(self, index, dims, fault, values, true, add_rows[self->dtype]);
}
