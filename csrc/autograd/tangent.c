/* tangent.c: the tangents of tensors; see tangent.h. */
#include "autograd/tangent.h"

#include "Functions.h"
#include "autograd/level.h"
#include "core/alloc.h"
#include "core/lock.h"
#include "dispatch/key.h"

#include <stdatomic.h>
#include <stdlib.h>

static struct tp_tangents *cell_of(const tp_tensor *t) {
    tp_autograd_meta *m = __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
    return m ? __atomic_load_n(&m->tangents, __ATOMIC_ACQUIRE) : NULL;
}

static struct tp_tangents *ensure_cell(tp_tensor *t) {
    struct tp_tangents *there = cell_of(t);
    if (there) return there;
    tp_autograd_meta *m = tp_autograd_meta_ensure(t);
    struct tp_tangents *fresh = m ? tp_alloc(sizeof *fresh) : NULL;
    if (!fresh) return NULL;
    *fresh = (struct tp_tangents){.refcount = 1};
    if (__atomic_compare_exchange_n(&m->tangents, &there, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    tp_free(fresh, sizeof *fresh); /* another thread was faster */
    return there;
}

int tp_share_tangents(tp_tensor *alias, tp_tensor *output) {
    if (!tp_tls.forward) return 0;
    struct tp_tangents *cell = ensure_cell(output);
    tp_autograd_meta *m = cell ? tp_autograd_meta_ensure(alias) : NULL;
    if (!m) return -1;
    atomic_fetch_add_explicit(&cell->refcount, 1, memory_order_relaxed);
    tp_tangents_release(tp_take(m->tangents));
    m->tangents = cell;
    return 0;
}

/* The entry of a level that is open; under the lock. */
static tp_tangent_entry *find_entry(struct tp_tangents *cell, uint32_t number) {
    tp_tangent_entry *e = cell ? cell->first : NULL;
    while (e && (e->number != number || !e->slot)) e = e->next;
    return e;
}

static void link_entry(struct tp_tangents *cell, tp_level *l, tp_tangent_entry *e) {
    e->next = cell->first;
    cell->first = e;
    e->after = l->first;
    e->slot = &l->first;
    if (e->after) e->after->slot = &e->after;
    l->first = e;
}

/* Without any fitting; NULL: a constant. */
static int put(tp_tensor *t, uint32_t number, tp_tensor *tangent) {
    tp_level *l = tp_find_level(number);
    if (!l) return tp_fail(TP_RuntimeError, "forward mode: the level has ended, or is another thread's");
    struct tp_tangents *cell = ensure_cell(t);
    tp_tangent_entry *fresh = cell ? tp_alloc(sizeof *fresh) : NULL;
    if (!fresh) return -1;
    *fresh = (tp_tangent_entry){.number = number};
    tp_lock(TP_LOCK_Autograd);
    tp_tangent_entry *e = find_entry(cell, number);
    if (!e) link_entry(cell, l, e = tp_take(fresh));
    tp_tensor *old = e->tangent;
    e->tangent = tp_retain(tangent);
    tp_unlock(TP_LOCK_Autograd);
    if (fresh) tp_free(fresh, sizeof *fresh);
    tp_release(old);
    return 0;
}

static tp_tangent_of own_tangent(const tp_tensor *t, uint32_t number) {
    struct tp_tangents *cell = cell_of(t);
    if (!cell) return (tp_tangent_of){0};
    tp_lock(TP_LOCK_Autograd);
    tp_tangent_entry *e = find_entry(cell, number);
    tp_tangent_of found = {e ? tp_retain(e->tangent) : NULL, e != NULL};
    tp_unlock(TP_LOCK_Autograd);
    return found;
}

/* ---- tangents ---- */

int tp_find_tangent(tp_tensor *t, uint32_t number, tp_tangent_of *found) {
    *found = own_tangent(t, number);
    if (found->known || !t->base) return 0;
    tp_tangent_of base = own_tangent(t->base, number);
    tp_autoref *whole = base.tangent;
    if (!whole) return 0;
    *found = (tp_tangent_of){tp_same_view(t, whole), true};
    return found->tangent ? 0 : -1;
}

static bool same_strides(const tp_tensor *a, const tp_tensor *b) {
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] > 1 && a->strides[i] != b->strides[i]) return false;
    return true;
}

static tp_tensor *conj_pending(tp_tensor *t) {
    tp_autoref *bits = tp_conj_physical(t);
    return bits ? tp__conj(bits) : NULL;
}

/* What t leaves pending, the tangent leaves pending too: views of bits (view_as_real) are taken of both. */
static tp_tensor *read_as(const tp_tensor *t, tp_tensor *tangent) {
    tp_autoref *conj = tp_reads_conj(t) == tp_reads_conj(tangent) ? tp_retain(tangent)
                       : tp_reads_conj(t)                         ? conj_pending(tangent)
                                                                  : tp_resolve_conj(tangent);
    if (!conj || tp_reads_neg(t) == tp_reads_neg(conj)) return tp_take(conj);
    if (!tp_reads_neg(t)) return tp_resolve_neg(conj);
    tp_autoref *minus = tp_neg(conj);
    return minus ? tp__neg_view(minus) : NULL;
}

/* In memory of its own that is laid out as t. */
static tp_tensor *laid_out_as(const tp_tensor *t, tp_tensor *tangent) {
    tp_autoref *own = tp_op_new_empty_strided(tangent, tp_sizes(t), tp_strides(t), (tp_dtype)t->dtype, TP_NO_LAYOUT,
                                              TP_NO_DEVICE, -1);
    return own && tp_copy_(own, tangent, false) == 0 ? read_as(t, own) : NULL;
}

tp_tensor *tp_fit_tangent(const tp_tensor *t, tp_tensor *tangent) {
    tp_autoref *fit = tp_retain(tangent);
    if (tp_is_complex(fit) && !tp_is_complex(t)) {
        tp_autoref *whole = fit;
        if (!(fit = tp_real(whole))) return NULL;
    }
    if (fit->dtype != t->dtype) {
        tp_autoref *other = fit;
        if (!(fit = tp_to_dtype(other, (tp_dtype)t->dtype, false, false, TP_NO_FORMAT))) return NULL;
    }
    if (!tp_same_sizes(t, fit)) {
        tp_autoref *smaller = fit;
        if (!(fit = tp_expand(smaller, tp_sizes(t), false))) return NULL;
    }
    if (same_strides(t, fit) || !tp_is_dense(t)) return read_as(t, fit);
    return laid_out_as(t, fit);
}

/* A tangent may be written later: one of zeros without memory gets some. */
int tp_put_tangent(tp_tensor *t, uint32_t number, tp_tensor *tangent) {
    if (!tangent || !(tangent->keys & TP_BIT(ZeroTensor))) return put(t, number, tangent);
    tp_autoref *own = tp_clone(tangent, TP_NO_FORMAT);
    return own ? put(t, number, own) : -1;
}

tp_tensor *tp_zeros_for_tangent(const tp_tensor *t, tp_tensor *kind) {
    tp_autoref *zeros =
        tp_op_new_empty_strided(kind, tp_sizes(t), tp_strides(t), (tp_dtype)t->dtype, TP_NO_LAYOUT, TP_NO_DEVICE, -1);
    return zeros && tp_zero_(zeros) == 0 ? tp_take(zeros) : NULL;
}

/* The base of a view has been a constant so far. */
static int write_first(tp_tensor *view, uint32_t number, tp_tensor *tangent) {
    if (!tp_has_memory(view->base) && view->base->keys & TP_LAYOUT_KEYS)
        return tp_fail(TP_RuntimeError, "forward mode: values of a tensor of another layout are not changed in place");
    tp_autoref *whole = tp_zeros_for_tangent(view->base, tangent);
    if (!whole || put(view->base, number, whole) < 0) return -1;
    tp_autoref *part = tp_same_view(view, whole);
    return part && tp_copy_(part, tangent, false) == 0 ? put(view, number, part) : -1;
}

int tp_write_tangent(tp_tensor *t, uint32_t number, tp_tensor *tangent) {
    tp_tangent_of found;
    if (tp_find_tangent(t, number, &found) < 0) return -1;
    tp_autoref *there = found.tangent;
    if (there) return tangent ? tp_copy_(there, tangent, false) : tp_zero_(there);
    if (!tangent) return 0;
    if (t->base && !found.known) return write_first(t, number, tangent);
    tp_autoref *own = tp_is_dense(t) ? laid_out_as(t, tangent) : tp_clone(tangent, TP_NO_FORMAT);
    return own ? put(t, number, own) : -1;
}

tp_tensor *tp_detached_dual(tp_tensor *t) {
    tp_autoref *alias = tp_detached_alias(t);
    for (int i = 0; alias && i < tp_forward_count(); i++) {
        tp_tangent_of found;
        if (tp_find_tangent(t, tp_forward_number(i), &found) < 0) return NULL;
        tp_autoref *tangent = found.tangent;
        if (tangent && put(alias, tp_forward_number(i), tangent) < 0) return NULL;
    }
    return tp_take(alias);
}
