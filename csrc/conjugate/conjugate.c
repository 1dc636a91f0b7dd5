/* conjugate.c: see conjugate.h. */
#include "conjugate/conjugate.h"

#include "Functions.h"
#include "core/alloc.h"
#include "core/scalar.h"
#include "dispatch/op.h"

#include <string.h>

/* Layers that have seen the call already. */
#define SEEN (TP_AUTOGRAD_KEYS | TP_AUTOCAST_KEYS | TP_BIT(ADInplaceOrView))

/* What is pending is taken off by the views that toggle it, so that a class that is asked (FakeTensor) makes its own.
 */
static tp_tensor *plain_of_asked(tp_tensor *t) {
    tp_autoref *other = t->keys & TP_BIT(Conjugate) ? tp__conj(t) : tp_retain(t);
    return !other ? NULL : t->keys & TP_BIT(Negative) ? tp__neg_view(other) : tp_take(other);
}

/* The memory as it is. New. */
static tp_tensor *plain_of(tp_tensor *t) {
    if (tp_unlikely(t->keys & TP_BIT(Python))) return plain_of_asked(t);
    tp_tensor *plain = tp_new_alias(t, tp_sizes(t), tp_strides(t), t->byte_offset);
    if (plain) plain->keys &= ~TP_PENDING_MATH;
    return plain;
}

static int take_again(tp_tensor *plain, tp_keyset pending) {
    if (pending & TP_BIT(Conjugate) && tp_conj_physical_(plain) < 0) return -1;
    return pending & TP_BIT(Negative) ? tp_neg_(plain) : 0;
}

tp_tensor *tp_resolved(tp_tensor *t) {
    tp_exclude_guard guard = tp_exclude(SEEN);
    tp_autoref *plain = plain_of(t);
    if (tp_is_zero_tensor(t)) return tp_take(plain);
    tp_autoref *copy = !plain ? NULL : t->keys & TP_BIT(Conjugate) ? tp_conj_physical(plain) : tp_neg(plain);
    bool both = (t->keys & TP_PENDING_MATH) == TP_PENDING_MATH;
    return copy && !(both && tp_neg_(copy) < 0) ? tp_take(copy) : NULL;
}

/* One zero in all places. */
static tp_tensor *one_zero(tp_tensor *t) {
    tp_exclude_guard guard = tp_exclude(SEEN);
    tp_autoref *zero = tp_zeros((tp_ints){NULL, 0}, (tp_dtype)t->dtype, TP_STRIDED, t->device, -1);
    return zero ? tp_expand(zero, tp_sizes(t), false) : NULL;
}

/* ---- a call ---- */

/* Tensors with something pending, and what stands for them; `written` goes back. */
typedef struct {
    tp_tensor *given, *copy; /* borrowed; owned */
    bool written;
} stand_in;

typedef struct {
    stand_in *made;
    int64_t count;
    tp_keyset replaced; /* the keys of what needs one */
} stand_ins;

/* One tensor twice among the arguments is one stand-in. */
static tp_tensor *stand_in_for(stand_ins *s, tp_tensor *t, bool written) {
    for (int64_t i = 0; i < s->count; i++)
        if (s->made[i].given == t) {
            s->made[i].written |= written;
            return s->made[i].copy;
        }
    bool zero = s->replaced & TP_BIT(ZeroTensor);
    if (zero && written)
        return tp_fail_null(TP_RuntimeError, "ZeroTensors are immutable. Please use the materialized zero tensor "
                                             "obtained using .clone() if you want a mutable tensor.");
    tp_tensor *copy = zero ? one_zero(t) : tp_resolved(t);
    if (copy) s->made[s->count++] = (stand_in){t, copy, written};
    return copy;
}

static int write_back(const stand_in *s) {
    tp_exclude_guard guard = tp_exclude(SEEN);
    tp_tensor *t = s->given;
    if (!tp_same_sizes(t, s->copy) && tp_resize_(t, tp_sizes(s->copy), TP_NO_FORMAT) < 0) return -1;
    tp_autoref *plain = plain_of(t);
    return plain && take_again(s->copy, t->keys) == 0 ? tp_copy_(plain, s->copy, false) : -1;
}

static int64_t count_tensors(const tp_op *op, const tp_value *args) {
    int64_t n = 0;
    for (int i = 0; i < op->info->nargs; i++)
        n += args[i].tag == TP_TENSORS ? args[i].tensors.size : args[i].tag == TP_TENSOR;
    return n;
}

static int replace_tensor(stand_ins *s, tp_tensor **t, bool written) {
    if (!*t || !((*t)->keys & s->replaced)) return 0;
    *t = stand_in_for(s, *t, written);
    return *t ? 0 : -1;
}

/* `room`: for the items of lists, as many as there are. */
static int replace_all(const tp_op *op, tp_value *args, stand_ins *s, tp_tensor **room) {
    for (int i = 0; i < op->info->nargs; i++) {
        bool written = op->info->args[i].is_write;
        if (args[i].tag == TP_TENSOR && replace_tensor(s, &args[i].tensor, written) < 0) return -1;
        if (args[i].tag != TP_TENSORS) continue;
        int64_t n = args[i].tensors.size;
        for (int64_t k = 0; k < n; k++) {
            room[k] = args[i].tensors.data[k];
            if (replace_tensor(s, &room[k], written) < 0) return -1;
        }
        if (n > 0) args[i].tensors.data = room, room += n;
    }
    return 0;
}

static int with_stand_ins(const tp_op *op, tp_keyset below, const tp_value *args, tp_value *results, stand_ins *s,
                          tp_tensor **room) {
    tp_value changed[op->info->nargs + 1];
    memcpy(changed, args, (size_t)op->info->nargs * sizeof *args);
    if (replace_all(op, changed, s, room) < 0) return -1;
    if (tp_redispatch_boxed(op, below, changed, results) < 0) return -1;
    int status = 0;
    for (int64_t i = 0; status == 0 && i < s->count; i++)
        if (s->made[i].written) status = write_back(&s->made[i]);
    for (int i = 0; status < 0 && i < op->info->nreturns; i++) tp_value_release(&results[i]);
    return status;
}

static int fall_back(const tp_op *op, tp_keyset below, tp_value *args, tp_value *results, tp_keyset replaced) {
    int64_t n = count_tensors(op, args);
    size_t bytes = (size_t)n * (sizeof(stand_in) + sizeof(tp_tensor *));
    stand_ins s = {tp_alloc(bytes), 0, replaced};
    int status = s.made ? with_stand_ins(op, below, args, results, &s, (tp_tensor **)(s.made + n)) : -1;
    for (int64_t i = 0; i < s.count; i++) tp_release(s.made[i].copy);
    tp_free(s.made, bytes);
    return status;
}

static int compute_pending(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context TP_UNUSED) {
    tp_keyset below = ks & TP_BELOW(Conjugate);
    return tp_gives_views(op) ? tp_redispatch_boxed(op, below, args, results)
                              : fall_back(op, below, args, results, TP_PENDING_MATH);
}

/* The backends of zero tensors among the arguments, which their keys do not have. */
static tp_keyset backends_of(const tp_op *op, const tp_value *args) {
    tp_keyset found = 0;
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = args[i].tag == TP_TENSOR    ? (tp_tensors){&args[i].tensor, 1}
                          : args[i].tag == TP_TENSORS ? args[i].tensors
                                                      : (tp_tensors){NULL, 0};
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && tp_is_zero_tensor(list.data[k]))
                found |= (tp_keyset)1 << tp_backend_key(list.data[k]->device.type);
    }
    return found;
}

static int compute_zeros(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context TP_UNUSED) {
    tp_keyset below = (ks & TP_BELOW(ZeroTensor)) | backends_of(op, args);
    return tp_gives_views(op) ? tp_redispatch_boxed(op, below, args, results)
                              : fall_back(op, below, args, results, TP_BIT(ZeroTensor));
}

int tp_conjugate_load(void) {
    static const char file[] = "conjugate/conjugate.c";
    return tp_register_fallback(TP_KEY_Negative, compute_pending, NULL, NULL, file) > 0 &&
                   tp_register_fallback(TP_KEY_Conjugate, compute_pending, NULL, NULL, file) > 0 &&
                   tp_register_fallback(TP_KEY_ZeroTensor, compute_zeros, NULL, NULL, file) > 0
               ? 0
               : -1;
}
