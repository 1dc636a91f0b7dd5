/* sparse_kernels.c: what is computed of a sparse matrix's parts by primitives (prim sparse.*): products, which values
 * are the largest, places in order. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/scalar.h"
#include "prim/fault.h"
#include "prim/plain.h"
#include "prim/transfer.h"

#define BAD_INDEX TP_INDEX_FAULT(TP_IndexError, "sparse matrix")

/* What a primitive computes in: whole numbers in int64, which keeps the lowest bits of sums as they are. */
static tp_dtype computed_in(const tp_tensor *dense) {
    return tp_is_floating(dense) || tp_is_complex(dense) ? tp_compute_dtype((tp_dtype)dense->dtype) : TP_INT64;
}

/* The operands as the primitives take them. */
typedef struct {
    tp_tensor *lines, *columns, *values, *dense, *out; /* owned */
} operands;

static void release(operands *o) {
    tp_tensor *all[] = {o->lines, o->columns, o->values, o->dense, o->out};
    for (int i = 0; i < 5; i++) tp_release(all[i]);
}
#define auto_operands TP_CLEANUP(release) operands

static int check_shapes(const char *op, const tp_tensor *lines, const tp_tensor *columns, const tp_tensor *values,
                        const tp_tensor *dense) {
    if (lines->ndim == 1 && columns->ndim == 1 && dense->ndim == 2 &&
        (!values || (values->ndim == 1 && values->numel == columns->numel && values->dtype == dense->dtype)))
        return 0;
    return tp_fail(TP_RuntimeError, "%s: the parts of a sparse matrix do not fit each other, or a matrix", op);
}

static int prepare(operands *o, tp_tensor *lines, tp_tensor *columns, tp_tensor *values, tp_tensor *dense,
                   int64_t rows) {
    tp_dtype dtype = computed_in(dense);
    o->lines = tp_plain(lines, TP_INT64), o->columns = tp_plain(columns, TP_INT64);
    o->values = tp_plain(values, dtype), o->dense = tp_plain(dense, dtype);
    if (!o->lines || !o->columns || !o->dense || (values && !o->values)) return -1;
    o->out = tp_new_empty(TP_INTS(rows, dense->sizes[1]), dtype, dense->device);
    return !o->out || (o->out->numel && tp_fill_data(o->out, TP_SCALAR_I(0)) < 0) ? -1 : 0;
}

static bool has_work(const operands *o) { return o->columns->numel && o->dense->numel && o->out->numel; }

/* The indices of a matrix with nothing in it are not read, but without anything to multiply there is no place either.
 */
static int check_nothing(const operands *o) {
    if (!o->columns->numel || o->dense->sizes[0]) return 0;
    return tp_fail(TP_IndexError, "sparse matrix: it has values, but no columns");
}

/* _csr_mm(Tensor begins, Tensor columns, Tensor? values, Tensor dense) -> Tensor */
tp_tensor *_csr_mm_dense(tp_tensor *begins, tp_tensor *columns, tp_tensor *values, tp_tensor *dense) {
    auto_operands o = {NULL};
    if (check_shapes("_csr_mm", begins, columns, values, dense) < 0) return NULL;
    if (begins->numel < 1) return tp_fail_null(TP_RuntimeError, "_csr_mm: lines have an end at least");
    if (prepare(&o, begins, columns, values, dense, begins->numel - 1) < 0 || check_nothing(&o) < 0) return NULL;
    if (has_work(&o) && tp_prim_sparse_rows(o.lines, o.columns, o.values, o.dense, BAD_INDEX, o.out) < 0) return NULL;
    return tp_narrow_steal(tp_take(o.out), (tp_dtype)dense->dtype);
}

/* _coo_mm(Tensor rows, Tensor columns, Tensor? values, Tensor dense, int size) -> Tensor */
tp_tensor *_coo_mm_dense(tp_tensor *rows, tp_tensor *columns, tp_tensor *values, tp_tensor *dense, int64_t size) {
    auto_operands o = {NULL};
    if (check_shapes("_coo_mm", rows, columns, values, dense) < 0) return NULL;
    if (rows->numel != columns->numel || size < 0)
        return tp_fail_null(TP_RuntimeError, "_coo_mm: a value has a row and a column");
    if (prepare(&o, rows, columns, values, dense, size) < 0 || check_nothing(&o) < 0) return NULL;
    if (has_work(&o) && tp_prim_sparse_places(o.lines, o.columns, o.values, o.dense, BAD_INDEX, o.out) < 0) return NULL;
    return tp_narrow_steal(tp_take(o.out), (tp_dtype)dense->dtype);
}

/* _coo_dot(Tensor rows, Tensor columns, Tensor a, Tensor b) -> Tensor */
tp_tensor *_coo_dot_dense(tp_tensor *rows, tp_tensor *columns, tp_tensor *a, tp_tensor *b) {
    if (rows->ndim != 1 || columns->ndim != 1 || rows->numel != columns->numel || a->ndim != 2 || b->ndim != 2 ||
        a->sizes[1] != b->sizes[1] || a->dtype != b->dtype)
        return tp_fail_null(TP_RuntimeError, "_coo_dot: rows of two matrices of one dtype, as long as each other");
    tp_dtype dtype = computed_in(a);
    tp_autoref *lines = tp_plain(rows, TP_INT64), *places = tp_plain(columns, TP_INT64), *left = tp_plain(a, dtype),
               *right = tp_plain(b, dtype);
    tp_autoref *out = lines && places && left && right ? tp_new_empty(TP_INTS(rows->numel), dtype, a->device) : NULL;
    if (!out) return NULL;
    if (a->sizes[1] == 0 || rows->numel == 0) {
        if (out->numel && tp_fill_data(out, TP_SCALAR_I(0)) < 0) return NULL;
    } else if (!a->numel || !b->numel) {
        return tp_fail_null(TP_IndexError, "sparse matrix: it has values, but no rows or no columns");
    } else if (tp_prim_sparse_dots(lines, places, left, right, BAD_INDEX, out) < 0) return NULL;
    return tp_narrow_steal(tp_take(out), (tp_dtype)a->dtype);
}

/* _csr_extreme(Tensor begins, Tensor columns, Tensor? values, Tensor dense, bool largest) -> Tensor: which value gives
 * the largest or smallest product of each element; -1 where there is none. */
tp_tensor *_csr_extreme_dense(tp_tensor *begins, tp_tensor *columns, tp_tensor *values, tp_tensor *dense,
                              bool largest) {
    auto_operands o = {NULL};
    if (check_shapes("_csr_extreme", begins, columns, values, dense) < 0) return NULL;
    if (!tp_is_floating(dense) || begins->numel < 1)
        return tp_fail_null(TP_RuntimeError, "_csr_extreme: lines with an end at least, and floating numbers");
    if (prepare(&o, begins, columns, values, dense, begins->numel - 1) < 0 || check_nothing(&o) < 0) return NULL;
    tp_autoref *at = tp_new_empty(tp_sizes(o.out), TP_INT64, dense->device);
    if (!at || (at->numel && tp_fill_data(at, TP_SCALAR_I(-1)) < 0)) return NULL;
    if (has_work(&o) && tp_prim_sparse_extremes(o.lines, o.columns, o.values, o.dense, largest, BAD_INDEX, at) < 0)
        return NULL;
    return tp_take(at);
}

/* _coo_order(Tensor keys, int bound) -> (Tensor, Tensor, Tensor): keys in order and each once, where each begins among
 * all in order and their number, and that order. */
tp_tensor3 _coo_order_dense(tp_tensor *keys, int64_t bound) {
    const tp_tensor3 failed = {{NULL, NULL, NULL}};
    if (keys->ndim != 1) return tp_fail(TP_RuntimeError, "_coo_order: keys are of one dimension"), failed;
    tp_autoref *own = tp_plain(keys, TP_INT64);
    if (!own) return failed;
    if (own->numel) return tp_prim_sparse_merge(own, bound, TP_INDEX_FAULT(TP_IndexError, "coalesce"));
    tp_autoref *none = tp_new_empty(TP_INTS(0), TP_INT64, keys->device),
               *end = none ? tp_new_empty(TP_INTS(1), TP_INT64, keys->device) : NULL;
    if (!end || tp_fill_data(end, TP_SCALAR_I(0)) < 0) return failed;
    return (tp_tensor3){{tp_retain(none), tp_take(end), tp_retain(none)}};
}
