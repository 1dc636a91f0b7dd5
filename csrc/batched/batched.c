/* batched.c: batched tensors and the levels of a thread; see batched.h. */
#include "batched/batched.h"

#include "Functions.h"
#include "autograd/tangent.h"
#include "core/alloc.h"
#include "dispatch/level_number.h"

#include <stdlib.h>
#include <string.h>

/* ---- levels ---- */

typedef struct tp_batch_state {
    int depth, visible; /* open levels; how many of them the rule that runs leaves visible */
    tp_batch_level at[TP_MAX_BATCH_LEVELS];
} tp_batch_state;

/* Batched is included while a level is visible. */
static void show(tp_batch_state *s, int visible) {
    s->visible = visible;
    if (visible) tp_tls.include |= TP_BIT(Batched);
    else tp_tls.include &= ~TP_BIT(Batched);
}

uint32_t tp_batch_open(int64_t size, tp_randomness randomness) {
    tp_batch_state *s = tp_tls.batched;
    if (!s && !(s = tp_tls.batched = calloc(1, sizeof *s))) return tp_fail_memory(sizeof *s), 0;
    if (s->depth == TP_MAX_BATCH_LEVELS)
        return tp_fail(TP_RuntimeError, "vmap: more than %d are nested", TP_MAX_BATCH_LEVELS), 0;
    uint32_t number = tp_next_level_number();
    s->at[s->depth++] = (tp_batch_level){number, size, randomness, tp_tls.new_flags & TP_FLAG_DEPTH};
    show(s, s->depth);
    return number;
}

int tp_batch_close(uint32_t number) {
    tp_batch_state *s = tp_tls.batched;
    if (!s || s->at[s->depth - 1].number != number)
        return tp_fail(TP_RuntimeError, "vmap: level %u is not the innermost", number);
    show(s, --s->depth);
    if (s->depth == 0) free(tp_take(tp_tls.batched));
    return 0;
}

int tp_batch_count(void) { return tp_tls.batched ? tp_tls.batched->depth : 0; }
const tp_batch_level *tp_batch_level_at(int i) { return &tp_tls.batched->at[i]; }

const tp_batch_level *tp_batch_find_level(int64_t number) {
    int at = tp_batch_count() - 1;
    while (at >= 0 && tp_batch_level_at(at)->number != number) at--;
    return at < 0 ? NULL : tp_batch_level_at(at);
}

int tp_batch_show(int n) {
    tp_batch_state *s = tp_tls.batched;
    int before = s ? s->visible : 0;
    if (s) show(s, n);
    return before;
}

/* ---- tensors ---- */

typedef struct {
    tp_tensor *inner; /* owned */
    uint32_t number;
} payload;

static payload *payload_of(const tp_tensor *t) { return t->storage->context; }

static void free_payload(void *context, void *data TP_UNUSED) {
    payload *p = context;
    tp_release(p->inner);
    tp_free(p, sizeof *p);
}

uint32_t tp_batch_number(const tp_tensor *t) { return tp_is_batched(t) ? payload_of(t)->number : 0; }
tp_tensor *tp_batch_inner_borrow(const tp_tensor *t) { return payload_of(t)->inner; }

tp_tensor *tp_batch_innermost_borrow(const tp_tensor *t) {
    while (tp_is_batched(t)) t = tp_batch_inner_borrow(t);
    return (tp_tensor *)t;
}

bool tp_batch_requires_grad(const tp_tensor *t) {
    const tp_batch_level *level = tp_batch_find_level(tp_batch_number(t));
    uint16_t flags = tp_batch_innermost_borrow(t)->flags;
    return level && flags & TP_FLAG_REQUIRES_GRAD && (flags & TP_FLAG_DEPTH) > level->depth;
}

/* What a batched tensor shows: the first sample's place. */
static tp_ints sample_sizes(const tp_tensor *inner) { return (tp_ints){inner->sizes + 1, inner->ndim - 1}; }
static tp_ints sample_strides(const tp_tensor *inner) { return (tp_ints){inner->strides + 1, inner->ndim - 1}; }

static tp_storage *new_payload(tp_tensor *inner, uint32_t number) {
    payload *p = tp_alloc(sizeof *p);
    if (!p) return NULL;
    *p = (payload){inner, number};
    tp_storage *s = tp_storage_from_blob(inner->device, NULL, 0, free_payload, p);
    if (s) tp_retain(inner);
    else tp_free(p, sizeof *p);
    return s;
}

tp_tensor *tp_batch_wrap_steal(tp_tensor *inner, uint32_t number) {
    if (!inner) return NULL;
    tp_tensor *t = NULL;
    tp_storage *s = new_payload(inner, number);
    if (s) t = tp_new_on_storage(s, sample_sizes(inner), sample_strides(inner), inner->byte_offset, inner->dtype);
    tp_storage_release(s);
    if (t) t->keys = TP_BIT(Batched);
    tp_release(inner);
    return t;
}

int tp_batch_assign(tp_tensor *t, tp_tensor *inner) {
    if (tp_tensor_set_geometry(t, sample_sizes(inner), sample_strides(inner)) < 0) return -1;
    t->byte_offset = inner->byte_offset;
    payload *p = payload_of(t);
    tp_tensor *old = p->inner;
    p->inner = tp_retain(inner);
    tp_release(old);
    return 0;
}

static tp_tensor *to_front(tp_tensor *t, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, t->ndim), order[TP_MAX_DIMS];
    if (d < 0) return NULL;
    if (d == 0) return tp_retain(t);
    order[0] = d;
    for (int i = 0, at = 1; i < t->ndim; i++)
        if (i != d) order[at++] = i;
    return tp_permute(t, (tp_ints){order, t->ndim});
}

tp_tensor *tp_batch_add(tp_tensor *t, int64_t dim, uint32_t number) {
    int64_t d = tp_wrap_dim(dim, t->ndim);
    if (d < 0) return NULL;
    uint32_t above = tp_batch_number(t);
    if (above < number) return tp_batch_wrap_steal(to_front(t, d), number);
    tp_autoref *lower = tp_batch_add(tp_batch_inner_borrow(t), d + 1, number);
    return lower ? tp_batch_wrap_steal(tp_retain(lower), above) : NULL;
}

/* A dimension of `size` at `dim`, in which all are the same. */
static tp_tensor *repeated(tp_tensor *t, int64_t dim, int64_t size) {
    int64_t sizes[TP_MAX_DIMS + 1];
    for (int d = 0; d <= t->ndim; d++) sizes[d] = d < dim ? t->sizes[d] : d == dim ? size : t->sizes[d - 1];
    tp_autoref *one = dim ? tp_unsqueeze(t, dim) : tp_retain(t);
    return one ? tp_expand(one, (tp_ints){sizes, t->ndim + 1}, false) : NULL;
}

/* t, without a batch at a level, with `size` samples along `dim`: its tangents lose the batch that they have there.
 * Tangents are those of the physical tensor, so lower levels are passed through first. */
static tp_tensor *expanded(tp_tensor *t, int64_t dim, uint32_t number, int64_t size) {
    if (tp_is_batched(t)) {
        tp_autoref *lower = expanded(tp_batch_inner_borrow(t), dim + 1, number, size);
        return lower ? tp_batch_wrap_steal(tp_retain(lower), tp_batch_number(t)) : NULL;
    }
    if (tp_likely(!tp_forward_visible())) return repeated(t, dim, size);
    int visible = tp_forward_show(0);
    tp_autoref *all = repeated(t, dim, size);
    tp_forward_show(visible);
    for (int i = 0; all && i < visible; i++) {
        tp_tangent_of found;
        if (tp_find_tangent(t, tp_forward_number(i), &found) < 0) return NULL;
        tp_autoref *one = found.tangent, *first = one ? tp_batch_remove(one, number, size) : NULL,
                   *each = first ? tp_movedim_int(first, 0, dim) : NULL;
        if ((one && !each) || (found.known && tp_put_tangent(all, tp_forward_number(i), each) < 0)) return NULL;
    }
    return tp_take(all);
}

tp_tensor *tp_batch_remove(tp_tensor *t, uint32_t number, int64_t size) {
    uint32_t above = tp_batch_number(t);
    if (above == number) return tp_retain(tp_batch_inner_borrow(t));
    if (above > number) {
        tp_autoref *lower = tp_batch_remove(tp_batch_inner_borrow(t), number, size);
        tp_autoref *turned = lower ? to_front(lower, 1) : NULL;
        return turned ? tp_batch_wrap_steal(tp_retain(turned), above) : NULL;
    }
    return expanded(t, 0, number, size);
}

int tp_batch_refuse(const tp_tensor *t, const char *what) {
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(t));
    return tp_fail(
        TP_RuntimeError,
        "vmap: %s needs the values of one sample, but a tensor of shape %s inside vmap stands for all samples "
        "at once. Choose between values with where(), and take numbers out after vmap",
        what, text.text ? text.text : "");
}

/* ---- inside a rule ---- */

static int fail_left(void) {
    return tp_fail(TP_RuntimeError,
                   "vmap: a tensor from inside of a vmap is used after that has ended, or in another thread. Return it "
                   "from the function instead");
}

int tp_batch_enter(tp_batch_scope *s, tp_tensors tensors) {
    tp_batch_state *state = tp_tls.batched;
    uint32_t number = 0;
    s->visible = -1;
    for (int64_t i = 0; i < tensors.size; i++) {
        uint32_t n = tensors.data[i] ? tp_batch_number(tensors.data[i]) : 0;
        number = n > number ? n : number;
    }
    int at = state ? state->visible - 1 : -1;
    while (number && at >= 0 && state->at[at].number != number) at--;
    if (at < 0) return fail_left();
    const tp_batch_level *level = &state->at[at];
    *s = (tp_batch_scope){level->number, level->size, level->randomness, state->visible, tp_tls.include};
    show(state, at);
    return 0;
}

void tp_batch_leave(tp_batch_scope *s) {
    if (s->visible < 0) return;
    tp_tls.batched->visible = s->visible;
    tp_tls.include = s->include;
}

tp_tensor *tp_batch_one(const tp_batch_scope *s, tp_tensor *t) {
    return tp_batch_has(s, t) ? tp_retain(tp_batch_inner_borrow(t)) : tp_unsqueeze(t, 0);
}

tp_tensor *tp_batch_all(const tp_batch_scope *s, tp_tensor *t) { return tp_batch_remove(t, s->number, s->size); }
