/* random_keys.c: draws by keys: tensors that hold seeds and offsets in the place of a generator. The keys are read on
 * the host; each is one draw by counters (Note [Words of an element] in philox.h), whose elements are numbered in the
 * order of its part of the output. A key that is made of another is a block of the words of that one, under a seed that
 * no draw has. */
#include "NativeFunctions.h"
#include "Functions.h"
#include "Primitives.h"
#include "core/text.h"
#include "iter/iter.h"
#include "native/common/host_ints.h"
#include "prim/table.h"
#include "prim/transfer.h"
#include "tensorpy/philox.h"

#include <string.h>

#define SEED_OF_KEYS UINT64_C(0x9E3779B97F4A7C15)

static int fail_shape(const char *op, const char *expected, const tp_tensor *key) {
    tp_autotext shape = {0};
    tp_text_ints(&shape, tp_sizes(key));
    return tp_fail(TP_RuntimeError, "%s: key must have shape %s, got shape %s", op, expected, shape.text);
}

static int check_dtype(const char *op, const tp_tensor *key) {
    if (key->dtype == TP_UINT64) return 0;
    return tp_fail(TP_RuntimeError, "%s: key must have dtype uint64, got %s", op,
                   tp_scalar_type_name((tp_dtype)key->dtype));
}

static bool are_pairs(const tp_tensor *key) { return key->ndim >= 1 && key->sizes[key->ndim - 1] == 2; }

static int check_key(const char *op, const tp_tensor *key) {
    if (!are_pairs(key)) return fail_shape(op, "(*batch, 2)", key);
    return check_dtype(op, key);
}

/* The bits of the keys on the host, contiguous. New. */
static tp_tensor *read_keys(tp_tensor *key) {
    tp_autoref *bits = tp_view_dtype(key, TP_INT64);
    return bits ? tp_host_ints(bits) : NULL;
}

/* ---- keys of keys ---- */

static void derive(const int64_t key[2], uint64_t number, int64_t made[2]) {
    uint32_t words[4];
    tp_philox((uint64_t)key[0] ^ SEED_OF_KEYS, (uint64_t)key[1], number, words);
    made[0] = (int64_t)tp_random_u64(words[0], words[1]);
    made[1] = (int64_t)tp_random_u64(words[2], words[3]);
}

/* The keys with the numbers [first, first + n) of each key, in the sizes. */
static tp_tensor *derived(tp_tensor *key, uint64_t first, int64_t n, tp_ints sizes) {
    int64_t *room, pairs = key->numel / 2;
    if (!tp_has_values(key)) return tp_new_empty(sizes, TP_UINT64, key->device);
    tp_autoref *from = read_keys(key), *table = from ? tp_table_int64(sizes, &room) : NULL;
    const int64_t *seeds = table ? tp_table_values(from) : NULL;
    if (!table || (key->numel && !seeds)) return NULL;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < pairs; k++) derive(seeds + 2 * k, first + (uint64_t)i, room + 2 * (i * pairs + k));
    tp_autoref *bits = tp_view_dtype(table, TP_UINT64);
    return bits ? tp_to_device(bits, key->device, TP_UINT64, false, false, TP_NO_FORMAT) : NULL;
}

/* _philox_key_split(Tensor key, int num_splits) -> Tensor */
tp_tensor *_philox_key_split_composite(tp_tensor *key, int64_t num_splits) {
    int64_t sizes[TP_MAX_DIMS + 1] = {num_splits};
    if (check_key("_philox_key_split", key) < 0) return NULL;
    if (num_splits <= 0)
        return tp_fail_null(TP_RuntimeError, "_philox_key_split: num_splits must be positive, got %lld",
                            (long long)num_splits);
    memcpy(sizes + 1, key->sizes, (size_t)key->ndim * sizeof *sizes);
    tp_ints whole = {sizes, key->ndim + 1};
    return tp_checked_numel(whole) < 0 ? NULL : derived(key, 0, num_splits, whole);
}

/* _philox_key_fold_in(Tensor key, int data) -> Tensor */
tp_tensor *_philox_key_fold_in_composite(tp_tensor *key, int64_t data) {
    return check_key("_philox_key_fold_in", key) < 0 ? NULL : derived(key, (uint64_t)data, 1, tp_sizes(key));
}

/* ---- draws ---- */

typedef int (*draw_fn)(double a, double b, int64_t seed, int64_t offset, tp_tensor *out);
typedef struct {
    draw_fn draw;
    double a, b;
} distribution;

static int check_batch(const char *op, const tp_tensor *self, const tp_tensor *key) {
    if (key->ndim == 1) return 0;
    tp_autotext keys = {0}, shape = {0};
    tp_text_ints(&keys, tp_sizes(key));
    tp_text_ints(&shape, tp_sizes(self));
    if (key->ndim != self->ndim + 1)
        return tp_fail(TP_RuntimeError,
                       "%s: batched key must have ndim == output ndim + 1, got key shape %s with output shape %s", op,
                       keys.text, shape.text);
    for (int d = 0; d < self->ndim; d++)
        if (key->sizes[d] != 1 && key->sizes[d] != self->sizes[d])
            return tp_fail(TP_RuntimeError, "%s: key batch shape %s is not broadcastable with output shape %s", op,
                           keys.text, shape.text);
    return 0;
}

static int check_draw(const char *op, tp_tensor *self, const tp_tensor *key) {
    if (!tp_is_floating(self))
        return tp_fail(TP_RuntimeError, "%s: self must be a floating point tensor, got %s", op,
                       tp_scalar_type_name((tp_dtype)self->dtype));
    if (check_dtype(op, key) < 0) return -1;
    if (!are_pairs(key)) return fail_shape(op, "(2,) or (*batch, 2)", key);
    return check_batch(op, self, key) < 0 ? -1 : tp_check_internal_overlap(self);
}

static int draw_into(tp_tensor *part, const distribution *d, const int64_t key[2]) {
    if (part->numel == 0) return 0;
    if (tp_is_contiguous(part)) return d->draw(d->a, d->b, key[0], key[1], part);
    tp_autoref *plain = tp_new_empty(tp_sizes(part), (tp_dtype)part->dtype, part->device);
    return plain && d->draw(d->a, d->b, key[0], key[1], plain) == 0 ? tp_copy_data(part, plain) : -1;
}

/* The part of self that key number `i` of the batch draws: a dimension where the batch has one key belongs to all. */
static tp_tensor *part_of_key(tp_tensor *self, const tp_tensor *key, int64_t i) {
    int64_t sizes[TP_MAX_DIMS], offset = self->byte_offset;
    for (int d = self->ndim - 1; d >= 0; d--) {
        const int64_t keys = key->ndim == 1 ? 1 : key->sizes[d];
        sizes[d] = keys == 1 ? self->sizes[d] : 1;
        if (keys > 1) offset += i % keys * self->strides[d] * tp_itemsize((tp_dtype)self->dtype);
        i /= keys ? keys : 1;
    }
    return tp_new_alias(self, (tp_ints){sizes, self->ndim}, tp_strides(self), offset);
}

static int draw_by_keys(const char *op, tp_tensor *self, tp_tensor *key, const distribution *d) {
    if (check_draw(op, self, key) < 0) return -1;
    if (!tp_has_values(self) || self->numel == 0) return 0;
    tp_autoref *keys = read_keys(key);
    const int64_t *pairs = keys ? tp_table_values(keys) : NULL;
    if (!pairs) return -1;
    for (int64_t i = 0; i < keys->numel / 2; i++) {
        tp_autoref *part = part_of_key(self, key, i);
        if (!part || draw_into(part, d, pairs + 2 * i) < 0) return -1;
    }
    return 0;
}

/* _philox_normal_(Tensor(a!) self, Tensor key, float mean=0, float std=1) -> Tensor(a!) */
int _philox_normal__dense(tp_tensor *self, tp_tensor *key, double mean, double std) {
    return draw_by_keys("_philox_normal_", self, key, &(distribution){tp_prim_draw_normal, mean, std});
}
/* _philox_uniform_(Tensor(a!) self, Tensor key, float low=0, float high=1) -> Tensor(a!) */
int _philox_uniform__dense(tp_tensor *self, tp_tensor *key, double low, double high) {
    return draw_by_keys("_philox_uniform_", self, key, &(distribution){tp_prim_draw_uniform, low, high});
}

/* _fill_mem_eff_dropout_mask_(Tensor(a!) self, float dropout_p, int seed, int offset) -> Tensor(a!) */
int _fill_mem_eff_dropout_mask__dense(tp_tensor *self, double dropout_p TP_UNUSED, int64_t seed, int64_t offset) {
    const int64_t key[] = {seed, offset};
    if (!tp_is_floating(self))
        return tp_fail(TP_RuntimeError, "_fill_mem_eff_dropout_mask_: expected a tensor of floats, got %s",
                       tp_scalar_type_name((tp_dtype)self->dtype));
    if (tp_check_internal_overlap(self) < 0) return -1;
    return tp_has_values(self) ? draw_into(self, &(distribution){tp_prim_draw_uniform, 0, 1}, key) : 0;
}
