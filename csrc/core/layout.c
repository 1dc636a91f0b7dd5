/* layout.c: see layout.h. */
#include "core/layout.h"

#include "core/alloc.h"
#include "core/host.h"

const tp_layout_info tp_layouts[TP_NUM_LAYOUTS] = {
    [TP_STRIDED] = {"strided", "Strided", TP_KEY_Undefined, 0, 0, false, {NULL}},
    [TP_SPARSE_COO] = {"sparse_coo", "Sparse", TP_KEY_Sparse, 2, 1, false, {"indices", "values"}},
    [TP_SPARSE_CSR] =
        {"sparse_csr", "SparseCsr", TP_KEY_SparseCsr, 3, 2, false, {"crow_indices", "col_indices", "values"}},
    [TP_SPARSE_CSC] =
        {"sparse_csc", "SparseCsc", TP_KEY_SparseCsr, 3, 2, false, {"ccol_indices", "row_indices", "values"}},
    [TP_SPARSE_BSR] =
        {"sparse_bsr", "SparseBsr", TP_KEY_SparseCsr, 3, 2, false, {"crow_indices", "col_indices", "values"}},
    [TP_SPARSE_BSC] =
        {"sparse_bsc", "SparseBsc", TP_KEY_SparseCsr, 3, 2, false, {"ccol_indices", "row_indices", "values"}},
    [TP_QUANTIZED] = {"quantized", "Quantized", TP_KEY_Quantized, 1, 0, true, {"integers"}},
    [TP_QUANTIZED_CHANNELS] =
        {"quantized_channels", "Quantized", TP_KEY_Quantized, 3, 0, true, {"integers", "scales", "zero_points"}},
    [TP_NESTED] = {"nested", "Nested", TP_KEY_NestedTensor, 4, 0, false, {"values", "offsets", "lengths", "shapes"}},
    [TP_JAGGED] = {"jagged", "Jagged", TP_KEY_NestedTensor, 4, 0, false, {"values", "offsets", "lengths", "shapes"}},
};

tp_parts *tp_parts_new(tp_layout layout, tp_tensor *const *parts, const int64_t *facts) {
    tp_parts *p = tp_alloc(sizeof *p);
    if (!p) return NULL;
    *p = (tp_parts){.layout = layout};
    atomic_init(&p->refcount, 1);
    for (int i = 0; i < tp_layouts[layout].count; i++) p->part[i] = tp_retain(parts[i]);
    for (int i = 0; facts && i < TP_MAX_FACTS; i++) p->fact[i] = facts[i];
    return p;
}

void tp_parts_release(tp_parts *p) {
    if (!p || atomic_fetch_sub_explicit(&p->refcount, 1, memory_order_acq_rel) != 1) return;
    for (int i = 0; i < TP_MAX_PARTS; i++) tp_release(p->part[i]);
    tp_free(p, sizeof *p);
}

static void end_parts(void *context, void *data TP_UNUSED) { tp_parts_release(context); }

/* Strides of 0 in what is sparse: no code that looks for contiguous memory finds some. */
tp_tensor *tp_new_of_parts_steal(tp_parts *parts, tp_ints sizes) {
    const tp_layout_info *info = &tp_layouts[parts->layout];
    const tp_tensor *values = parts->part[info->values];
    static const int64_t none[TP_MAX_DIMS];
    tp_storage *storage = tp_storage_from_blob(values->device, NULL, 0, end_parts, parts);
    if (!storage) return tp_parts_release(parts), NULL;
    tp_ints strides = info->quantized ? tp_strides(values) : (tp_ints){none, sizes.size};
    tp_dtype dtype = info->quantized ? (tp_dtype)parts->fact[TP_FACT_DTYPE] : (tp_dtype)values->dtype;
    tp_tensor *t = tp_new_on_storage(storage, sizes, strides, 0, dtype);
    tp_storage_release(storage);
    if (!t) return NULL;
    if (!info->quantized) t->flags &= (uint16_t)~TP_FLAG_CONTIGUOUS;
    t->keys = (tp_device_keys[values->device.type] & ~TP_DENSE_KEYS) | (tp_keyset)1 << info->key |
              (info->quantized                    ? 0
               : info->key == TP_KEY_NestedTensor ? TP_BIT(LayoutNested)
                                                  : TP_BIT(Layout));
    return t;
}

static bool has_parts(const tp_tensor *t) {
    return t->keys & (TP_BIT(Layout) | TP_BIT(Quantized) | TP_BIT(NestedTensor));
}

tp_parts *tp_parts_of(const tp_tensor *t) {
    if (!has_parts(t)) return tp_fail_null(TP_RuntimeError, "expected a tensor of another layout, but got Strided");
    tp_parts *p = __atomic_load_n(&t->storage->context, __ATOMIC_ACQUIRE);
    atomic_fetch_add_explicit(&p->refcount, 1, memory_order_relaxed);
    return p;
}

tp_tensor *tp_memory_of(tp_tensor *t) {
    if (!tp_is_quantized(t)) return tp_retain(t);
    tp_autoparts *parts = tp_parts_of(t);
    return parts ? tp_retain(parts->part[tp_layouts[parts->layout].values]) : NULL;
}

static void release_parts(void *parts, size_t unused TP_UNUSED) { tp_parts_release(parts); }

int tp_put_parts_steal(tp_tensor *t, tp_parts *parts) {
    if (!has_parts(t) || tp_layout_of(t) != parts->layout) {
        tp_parts_release(parts);
        return tp_fail(TP_RuntimeError, "a tensor of the layout %s takes no parts of another layout",
                       tp_layouts[tp_layout_of(t)].name);
    }
    tp_parts *old = __atomic_exchange_n(&t->storage->context, (void *)parts, __ATOMIC_ACQ_REL);
    tp_host_park(release_parts, old, 0);
    return 0;
}

tp_layout tp_layout_of(const tp_tensor *t) {
    if (!has_parts(t)) return TP_STRIDED;
    const tp_parts *p = __atomic_load_n(&t->storage->context, __ATOMIC_ACQUIRE);
    return p->layout;
}
