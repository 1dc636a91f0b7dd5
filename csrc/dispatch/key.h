/* key.h: dispatch keys and key sets.
 *
 * A key is a layer that a call may pass; a key set is a 64-bit word with one bit per key. TP_FORALL_KEYS (in
 * core/key_list.h) has them from low to high priority: a call goes to the highest key of its set. Every
 * tensor carries its backend's key, the autograd and autocast keys that belong to it, and ADInplaceOrView; bit 0
 * (Undefined) is in no set and stands for "no key left".
 *
 * Note [Trace bit]
 * The highest key, Trace, is never a tensor's. While a trace runs it is in the thread's include set, and the masks that
 * redispatch applies (TP_BELOW_*) keep it, so every layer's redispatch comes back to the trace fallback, which records
 * the next layer and jumps to it. Without a trace no instruction is spent on it. */
#pragma once

#include "core/device.h"
#include "core/lock.h"
#include "core/tensor.h"
#include "core/tls.h"

_Static_assert(TP_NUM_KEYS <= 64, "a key set is one word");

/* The keys from First to Last, which are adjacent in the list. */
#define TP_KEY_RANGE(First, Last) ((((tp_keyset)2 << TP_KEY_##Last) - 1) & ~(TP_BIT(First) - 1))

#define TP_BACKEND_KEYS TP_KEY_RANGE(CPU, PrivateUse3)
#define TP_LAYOUT_KEYS TP_KEY_RANGE(Mkldnn, ZeroTensor)
/* The keys of both modes: who runs without one has neither. */
#define TP_AUTOGRAD_KEYS (TP_KEY_RANGE(AutogradOther, AutogradPrivateUse3) | TP_BIT(ForwardAD))
#define TP_AUTOCAST_KEYS TP_KEY_RANGE(AutocastCPU, AutocastPrivateUse3)

/* Excluded on a fresh thread; tp_tls.exclude is stored relative to it, so that zeroed state is the default. */
#define TP_DEFAULT_EXCLUDED TP_AUTOCAST_KEYS

TP_INLINE tp_key tp_highest_key(tp_keyset ks) { return (tp_key)(63 - __builtin_clzll(ks | 1)); }
TP_INLINE tp_keyset tp_excluded_keys(void) { return tp_tls.exclude ^ TP_DEFAULT_EXCLUDED; }
/* Where every call of an operator begins. */
TP_INLINE tp_keyset tp_effective_keys(tp_keyset ks) {
    tp_assert_no_lock();
    return (ks | tp_tls.include) & ~tp_excluded_keys();
}

/* What a primitive is entered with (Note [Primitives] in op.h): the backend of the tensor that it writes. */
TP_INLINE tp_keyset tp_primitive_keys(const tp_tensor *t) { return (t->keys & TP_BACKEND_KEYS) | tp_tls.observe; }

const char *tp_key_name(tp_key key);   /* "AutogradCPU" */
tp_key tp_key_parse(const char *name); /* TP_KEY_Undefined for an unknown name, without an error */
/* The backend key of a device type, its autograd and its autocast key. */
TP_INLINE tp_key tp_backend_key(int type) { return (tp_key)(TP_KEY_CPU + type); }
TP_INLINE tp_key tp_autograd_key(int type) { return (tp_key)(TP_KEY_AutogradCPU + type); }
TP_INLINE tp_key tp_autocast_key(int type) { return (tp_key)(TP_KEY_AutocastCPU + type); }

/* Whether the tensor has no elements of its own: Note [Wrappers] in python/python_key.h. */
TP_INLINE bool tp_is_wrapper(const tp_tensor *t) { return !(t->keys & (TP_BACKEND_KEYS | TP_LAYOUT_KEYS)); }

/* Whether the tensor is strided memory of its device: no wrapper, and of no other layout (Note [Layouts] in
 * core/layout.h). Whoever reads memory by hand above the kernels asks. */
TP_INLINE bool tp_has_memory(const tp_tensor *t) { return t->keys & TP_BACKEND_KEYS; }

/* Tensors with one of these keys are made by operators that their layer answers, never as plain memory: a class's, a
 * stand-in of func.functionalize. */
#define TP_ANSWERED (TP_BIT(Python) | TP_BIT(Functionalize))
/* These, and tensors of layouts: what is not just strided memory. */
#define TP_NO_MEMORY (TP_ANSWERED | TP_LAYOUT_KEYS)

/* Layers that pass a read of a tensor's elements on as it is, or only watch; who reads asks tp_settle for Deferred. */
#define TP_PASSES_READS                                                                                   \
    (TP_BACKEND_KEYS | TP_AUTOGRAD_KEYS | TP_AUTOCAST_KEYS | TP_BIT(ADInplaceOrView) | TP_BIT(Profiler) | \
     TP_BIT(Trace) | TP_BIT(Deferred))
/* Whether another layer would see it: a mode, a recorder, a batch, a wrapper's class, a layout. Elements are then had
 * by
 * `_local_scalar_dense` alone, the operator that reads, so that the layer answers or refuses; and who looks at elements
 * only to do less does not look, since what it saw would be true of these elements alone. */
TP_INLINE bool tp_read_is_seen(const tp_tensor *t) { return tp_effective_keys(t->keys) & ~TP_PASSES_READS; }

/* What a tensor's elements are still to be computed by: Note [Pending math] in conjugate/conjugate.h. */
#define TP_PENDING_MATH (TP_BIT(Conjugate) | TP_BIT(Negative))
TP_INLINE bool tp_is_pending(const tp_tensor *t) { return t->keys & TP_PENDING_MATH; }
/* Whether the elements are to be read as their conjugates, or negatives: Note [Pending math] in conjugate/conjugate.h.
 */
TP_INLINE bool tp_reads_conj(const tp_tensor *t) { return t->keys & TP_BIT(Conjugate) || t->flags & TP_FLAG_AS_CONJ; }
TP_INLINE bool tp_reads_neg(const tp_tensor *t) { return t->keys & TP_BIT(Negative) || t->flags & TP_FLAG_AS_NEG; }

/* Guards: change one of the thread's sets for a scope.
 *     tp_exclude_guard guard = tp_exclude(TP_AUTOGRAD_KEYS);   restored at the end of the scope
 * A guard keeps the one word that it changes: layers nest, and a load of both words would wait for the store of one. */
TP_INLINE void tp_exclude_restore(const tp_keyset *old) { tp_tls.exclude = *old; }
TP_INLINE void tp_include_restore(const tp_keyset *old) { tp_tls.include = *old; }
TP_INLINE tp_keyset tp_exclude(tp_keyset ks) {
    tp_keyset old = tp_tls.exclude;
    tp_tls.exclude = (old & ~ks) | (ks & ~TP_DEFAULT_EXCLUDED);
    return old;
}
TP_INLINE tp_keyset tp_include(tp_keyset ks) {
    tp_keyset old = tp_tls.include;
    tp_tls.include |= ks;
    return old;
}
#define tp_exclude_guard TP_CLEANUP(tp_exclude_restore) TP_UNUSED tp_keyset
#define tp_include_guard TP_CLEANUP(tp_include_restore) TP_UNUSED tp_keyset
