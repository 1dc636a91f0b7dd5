/* index.c: index and index_put_ on the CPU.
 *
 * The places that the indices name become byte offsets, checked once. Then every place is a block of elements (the
 * dimensions behind the indices), which is read, written or added to. Reads are split over threads; writes are not, so
 * that of several writes to one place the last one wins, and sums do not depend on the number of threads. */
#include "native/index.h"

#include "NativeFunctions.h"
#include "core/alloc.h"
#include "core/parallel.h"
#include "cpu/masked.h"
#include "iter/iter.h"
#include "prim/transfer.h"

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
        memcpy(to, from, (size_t)(n * j->itemsize));
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
        group_offset(&j->before, at / j->nplaces, &self_offset, &value_offset);
        char *self = j->self + self_offset, *values = j->values + value_offset;
        if (j->one_element) j->places(values + place * j->itemsize, self, j->self_places + place, n);
        else
            for (int64_t i = place; i < place + n; i++)
                run_block(j, self + j->self_places[i], values + j->value_places[i]);
        at += n;
    }
}

/* ---- places ---- */

static int out_of_bounds(int64_t i, int dim, int64_t size) {
    return tp_fail(TP_IndexError, "index %lld is out of bounds for dimension %d with size %lld", (long long)i, dim,
                   (long long)size);
}

/* Adds what one index contributes to each place. */
static int add_places(const tp_index_plan *p, int k, const tp_tensor *self, int64_t n, int64_t *places) {
    const tp_tensor *index = p->indices[k];
    int64_t size = self->sizes[p->dims[k]], step = self->strides[p->dims[k]] * tp_itemsize((tp_dtype)self->dtype);
    const int64_t *data = tp_data(index);
    int lead = p->nplaces - index->ndim;
    bool flat = index->numel == n && tp_is_contiguous(index);
    int64_t at[TP_MAX_DIMS] = {0}, offset = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t value = data[flat ? i : offset], wrapped = value < 0 ? value + size : value;
        if (tp_unlikely((uint64_t)wrapped >= (uint64_t)size)) return out_of_bounds(value, p->dims[k], size);
        places[i] += wrapped * step;
        for (int d = p->nplaces - 1; !flat && d >= 0; d--) {
            int64_t stride = d < lead || index->sizes[d - lead] == 1 ? 0 : index->strides[d - lead];
            offset += stride;
            if (++at[d] < p->places[d]) break;
            offset -= stride * at[d];
            at[d] = 0;
        }
    }
    return 0;
}

static void value_places(const tp_index_plan *p, const int64_t *strides, int64_t itemsize, int64_t n, int64_t *places) {
    group g = {.numel = 1};
    for (int d = 0; d < p->nplaces; d++) group_add(&g, p->places[d], 0, strides[p->before + d] * itemsize);
    if (g.ndim <= 1) {
        for (int64_t i = 0; i < n; i++) places[i] = i * (g.ndim ? g.value_steps[0] : 0);
        return;
    }
    int64_t unused;
    for (int64_t i = 0; i < n; i++) group_offset(&g, i, &unused, &places[i]);
}

/* Indexes between self and values (already of the result's shape through `strides`). `add` NULL: copies. */
static int run_index(const tp_index_plan *p, tp_tensor *self, tp_tensor *values, const int64_t *strides, bool writes,
                     row_fn add) {
    int64_t itemsize = tp_itemsize((tp_dtype)self->dtype), n = tp_checked_numel((tp_ints){p->places, p->nplaces});
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
    for (int i = 0; i < p->nrest; i++) {
        int d = p->rest[i], at = i < p->before ? i : i + p->nplaces;
        group_add(i < p->before ? &j.before : &j.after, self->sizes[d], self->strides[d] * itemsize,
                  strides[at] * itemsize);
    }
    if (n == 0 || j.before.numel == 0 || j.after.numel == 0) return 0;
    size_t bytes = (size_t)n * 2 * sizeof(int64_t);
    j.self_places = tp_alloc(bytes);
    if (!j.self_places) return -1;
    j.value_places = j.self_places + n;
    memset(j.self_places, 0, (size_t)n * sizeof(int64_t));
    int status = 0;
    for (int k = 0; status == 0 && k < p->nindices; k++) status = add_places(p, k, self, n, j.self_places);
    j.one_element = !writes && !add && j.after.numel == 1 && (p->nplaces == 0 || tp_is_contiguous(values));
    if (status == 0 && !j.one_element) value_places(p, strides, itemsize, n, j.value_places);
    int64_t grain = 16384 / (j.after.numel < 16384 ? j.after.numel : 16384);
    if (status == 0 && writes) run_places(0, n * j.before.numel, &j);
    else if (status == 0) status = tp_parallel_for(n * j.before.numel, grain, run_places, &j);
    tp_free(j.self_places, bytes);
    return status;
}

/* self[mask] with a mask of self's shape, both contiguous. */
static bool is_plain_mask(const tp_tensor *self, tp_tensors indices) {
    const tp_tensor *mask = indices.size == 1 ? indices.data[0] : NULL;
    return mask && mask->dtype == TP_BOOL && mask->ndim > 0 && tp_same_sizes(self, mask) && tp_is_contiguous(self) &&
           tp_is_contiguous(mask) && mask->device.type == TP_DEVICE_CPU;
}

static tp_tensor *select_masked(const tp_tensor *self, const tp_tensor *mask) {
    int64_t n = tp_mask_count(tp_data(mask), mask->numel), itemsize = tp_itemsize((tp_dtype)self->dtype);
    tp_autoref *out = tp_new_empty(TP_INTS(n), (tp_dtype)self->dtype, self->device);
    if (!out) return NULL;
    tp_mask_pack(tp_data(out), n, tp_data(self), tp_data(mask), mask->numel, itemsize);
    return tp_take(out);
}

/* index.Tensor(Tensor self, Tensor?[] indices) -> Tensor */
tp_tensor *index_Tensor_cpu(tp_tensor *self, tp_tensors indices) {
    if (is_plain_mask(self, indices)) return select_masked(self, indices.data[0]);
    tp_auto_index_plan p;
    if (tp_index_plan_make(&p, self, indices) < 0) return NULL;
    tp_autoref *out = tp_new_empty((tp_ints){p.sizes, p.ndim}, (tp_dtype)self->dtype, self->device);
    return out && run_index(&p, self, out, out->strides, false, NULL) == 0 ? tp_take(out) : NULL;
}

/* ---- index_put_ ---- */

/* One value written through masks alone may have any dtype: PyTorch takes it for masked_fill_. */
static bool fills_masks(tp_tensors indices, const tp_tensor *values, bool accumulate) {
    if (accumulate || values->numel != 1) return false;
    for (int64_t i = 0; i < indices.size; i++) {
        const tp_tensor *index = indices.data[i];
        if (index && index->dtype != TP_BOOL && index->dtype != TP_UINT8) return false;
    }
    return true;
}

/* index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!) */
int index_put__cpu(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    tp_autoref *cast = NULL;
    if (values->dtype != self->dtype && fills_masks(indices, values, accumulate)) {
        cast = tp_new_empty_like(values, (tp_dtype)self->dtype);
        if (!cast || tp_copy_data(cast, values) < 0) return -1;
        values = cast;
    }
    if (values->dtype != self->dtype)
        return tp_fail(TP_RuntimeError,
                       "Index put requires the source and destination dtypes match, got %s for the destination and %s "
                       "for the source.",
                       tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)values->dtype));
    tp_auto_index_plan p;
    int64_t strides[TP_MAX_DIMS];
    if (tp_index_plan_make(&p, self, indices) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    tp_autoref *copy = NULL;
    if (tp_overlap_of(self, values) != TP_OVERLAP_NONE) {
        copy = tp_new_empty_like(values, (tp_dtype)values->dtype);
        if (!copy || tp_copy_data(copy, values) < 0) return -1;
        values = copy;
    }
    if (tp_index_fit_values(&p, values, strides) < 0) return -1;
    return run_index(&p, self, values, strides, true, accumulate ? add_rows[self->dtype] : NULL);
}
