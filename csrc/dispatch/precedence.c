/* precedence.c: which registration serves a key of an operator, and the dispatch tables that follow from it.
 *
 * Note [Kernel precedence]
 * For an operator and a key, the first of these that exists is the table's entry:
 *   1. the kernel registered for the key itself (the newest one, if it was overridden);
 *   2. for a dense backend that has the primitives it calls: Dense; for a backend or layout key, and for Undefined
 *      (a call without tensors) of an operator that takes none: CompositeExplicitAutogradNonFunctional, then
 *      CompositeExplicitAutograd;
 *      A layout's key takes none of these: what may compute on memory is not reached with a tensor that has none
 *      (Note [Layouts] in core/layout.h);
 *   3. CompositeImplicitAutograd, for the same, for Batched, and for an Autograd key; there only if the operator has no
 *      kernel of its own for the backend (that backend then wants the derivative formula, or none); for ForwardAD only
 *      if some backend has one: else it passes composites by, as the keys of layouts are below it; for Batched only if
 *      the operator has no rule, which composites have that do something else with a layout;
 *   4. for an Autograd key: the alias Autograd; for an Autocast key: the alias Autocast;
 *   5. the key's fallback: boxed, or fallthrough.
 * For a device that shows no memory (Note [Opaque tensors] in core/storage.h) 2 and 3 serve only operators that give
 * views or take a tensor to a device; all other operators are taken whole, from the backend or from the fallback.
 * Backends without any of these have no kernel (NULL). Layer keys (autocast, autograd, tracing, ...) without any are
 * skipped: they are not `live`.
 *
 * The rules are sets of keys: what an alias serves is one set per operator. */
#include "dispatch/registrations.h"

#define BACKENDS (TP_BACKEND_KEYS | TP_LAYOUT_KEYS)
#define AUTOGRADS (TP_AUTOGRAD_KEYS & ~TP_BIT(ForwardAD))

tp_keyset tp_whole_keys;
tp_registration_node *tp_fallbacks[TP_NUM_KEYS];

static bool has_alias(const tp_op *op, tp_alias_key alias) { return op->slots_taken >> (TP_NUM_KEYS + alias) & 1; }

static bool takes(const tp_op *op, tp_tag tag) {
    for (int i = 0; i < op->info->nargs; i++)
        if (op->info->args[i].tag == tag) return true;
    return false;
}

/* A composite of these has an answer, or words of its own, for no tensors. */
static bool gives_list_for_list(const tp_op *op) {
    return op->info->nreturns && op->info->returns[0].tag == TP_TENSOR_SEQ && !takes(op, TP_TENSOR);
}

/* The keys at which nothing but a kernel for all of the operator, or the host's, computes it; none for one that takes
 * a tensor to another device, or makes one like it. */
static tp_keyset taken_whole(const tp_op *op) {
    if (tp_likely(!tp_whole_keys) || op->info->is_primitive || tp_gives_views(op)) return 0;
    return takes(op, TP_DEVICE) && takes(op, TP_TENSOR) ? 0 : tp_whole_keys;
}

/* The dense backends that have the primitives which a Dense kernel calls. */
static tp_keyset with_primitives(const tp_op *op) {
    tp_keyset backends = TP_BACKEND_KEYS;
    if (tp_needs_values(op)) backends &= ~TP_BIT(Meta);
    for (tp_op *const *p = op->info->prims; p && *p; p++)
        if (!(*p)->info->is_optional) backends &= (*p)->slots_taken;
    return backends;
}

/* The keys of backends, and Undefined (a call without tensors) of an operator that takes none. */
static tp_keyset where_composites_run(const tp_op *op) {
    bool takes_none = !takes(op, TP_TENSOR) && !takes(op, TP_TENSORS);
    return (BACKENDS | (takes_none ? TP_BIT(Undefined) : 0)) & ~taken_whole(op);
}

/* The Autograd keys above a backend whose kernel is not made of differentiable parts. */
static tp_keyset needing_formula(const tp_op *op) {
    if (has_alias(op, TP_ALIAS_Dense) || has_alias(op, TP_ALIAS_CompositeExplicitAutograd) ||
        has_alias(op, TP_ALIAS_CompositeExplicitAutogradNonFunctional))
        return AUTOGRADS;
    tp_keyset own = op->slots_taken;
    tp_keyset dense = (own & TP_BACKEND_KEYS) << (TP_KEY_AutogradCPU - TP_KEY_CPU);
    return dense | (own & TP_LAYOUT_KEYS ? TP_BIT(AutogradOther) : 0);
}

/* Whether a composite is one for every backend: what it is made of comes back to ForwardAD, from whichever key below it
 * the composite runs at, and a layout's key is among those. */
static bool is_made_of_parts(const tp_op *op) {
    return has_alias(op, TP_ALIAS_CompositeImplicitAutograd) && !(op->slots_taken & AUTOGRADS) && !needing_formula(op);
}

/* Where CompositeImplicitAutograd serves: the layers that never meet a composite, for they see its parts, are among
 * these. */
static tp_keyset served_by_implicit(const tp_op *op) {
    tp_keyset keys = where_composites_run(op) | TP_BIT(ForwardAD);
    if (!op->info->batching) keys |= TP_BIT(Batched);
    if (gives_list_for_list(op)) keys |= TP_BIT(Undefined);
    return keys | (AUTOGRADS & ~taken_whole(op) & ~needing_formula(op));
}

/* The keys that an alias serves where nothing before it does. */
static tp_keyset served_by(const tp_op *op, tp_alias_key alias) {
    switch (alias) {
    case TP_ALIAS_Dense: return with_primitives(op) & ~taken_whole(op);
    case TP_ALIAS_CompositeExplicitAutogradNonFunctional:
    case TP_ALIAS_CompositeExplicitAutograd: return where_composites_run(op) & ~TP_LAYOUT_KEYS;
    case TP_ALIAS_CompositeImplicitAutograd: return served_by_implicit(op);
    case TP_ALIAS_Autograd: return AUTOGRADS;
    case TP_ALIAS_Autocast: return TP_AUTOCAST_KEYS;
    case TP_NUM_ALIAS: break;
    }
    return 0;
}

static tp_key lowest_key(tp_keyset keys) { return (tp_key)__builtin_ctzll(keys); }

/* What serves each of these keys, or NULL, into its place of `serving`. */
static void find_serving(const tp_op *op, tp_keyset keys, tp_registration_node *serving[TP_NUM_KEYS]) {
    for (tp_registration_node *r = op->registrations; r; r = r->next)
        if (r->r.key < TP_NUM_KEYS) serving[r->r.key] = r;
    keys &= ~op->slots_taken;
    if (keys & TP_BIT(ForwardAD) && is_made_of_parts(op)) {
        serving[TP_KEY_ForwardAD] = NULL;
        keys &= ~TP_BIT(ForwardAD);
    }
    for (int a = 0; a < TP_NUM_ALIAS; a++) {
        if (!has_alias(op, (tp_alias_key)a)) continue;
        tp_keyset served = served_by(op, (tp_alias_key)a) & keys;
        tp_registration_node *r = tp_slot_of(op, (tp_key)(TP_NUM_KEYS + a));
        for (tp_keyset left = served; left; left &= left - 1) serving[lowest_key(left)] = r;
        keys &= ~served;
    }
    for (; keys; keys &= keys - 1) serving[lowest_key(keys)] = tp_fallbacks[lowest_key(keys)];
}

tp_registration_node *tp_resolve(const tp_op *op, tp_key key) {
    tp_registration_node *serving[TP_NUM_KEYS];
    find_serving(op, (tp_keyset)1 << key, serving);
    return serving[key];
}

/* Note [Kernel precedence]: the slots of aliases that serve a key, in order. */
static int aliases_of(const tp_op *op, tp_key key, tp_key slots[TP_NUM_ALIAS]) {
    int n = 0;
    for (int a = 0; a < TP_NUM_ALIAS; a++)
        if (has_alias(op, (tp_alias_key)a) && served_by(op, (tp_alias_key)a) >> key & 1)
            slots[n++] = (tp_key)(TP_NUM_KEYS + a);
    return n;
}

static bool is_kernel(const tp_registration_node *r, tp_fn fn, const void *context) {
    return fn ? r->r.fn == fn : r->r.cell && r->r.cell->context == context;
}

tp_registration_node *tp_resolve_after(const tp_op *op, tp_key key, tp_fn fn, const void *context) {
    tp_key slots[1 + TP_NUM_ALIAS] = {key};
    int n = 1 + aliases_of(op, key, slots + 1);
    bool past = false;
    for (int i = 0; i < n; i++)
        for (tp_registration_node *r = tp_slot_of(op, slots[i]); r; r = r->older) {
            if (past) return r;
            past = is_kernel(r, fn, context);
        }
    return past ? tp_fallbacks[key] : NULL;
}

/* ---- tables ---- */

static void put_bits(tp_keyset *set, tp_keyset bits, tp_keyset of) {
    __atomic_store_n(set, (*set & ~of) | bits, __ATOMIC_RELEASE);
}

/* A kernel's function as it stands in the table: of a boxed one the stub that packs its arguments. */
static tp_fn entry_of(const tp_op *op, const tp_registration_node *r) { return r->r.cell ? op->info->box : r->r.fn; }

static void put_cells(tp_op *op, tp_keyset keys, tp_registration_node *const serving[TP_NUM_KEYS]) {
    for (tp_keyset left = keys; op->cells && left; left &= left - 1) {
        const tp_registration_node *r = serving[lowest_key(left)];
        atomic_store(&op->cells[lowest_key(left)], r && r->op ? r->r.cell : NULL);
    }
}

static void put_shortcuts(tp_op *op, tp_keyset keys, tp_registration_node *const serving[TP_NUM_KEYS]) {
    for (tp_keyset left = keys; op->shortcuts && left; left &= left - 1) {
        const tp_registration_node *r = serving[lowest_key(left)];
        __atomic_store_n(&op->shortcuts[lowest_key(left)], r ? r->r.shortcut : NULL, __ATOMIC_RELEASE);
    }
}

/* The cells and their bits come before the entries that lead to them, and the entries before the live bits. A backend
 * without a kernel is live: its call says so. A layer without one is skipped, and its old entry stays for the calls
 * that are on the way to it. */
void tp_compute_entries(tp_op *op, tp_keyset keys) {
    tp_registration_node *serving[TP_NUM_KEYS];
    tp_keyset boxed = 0, shared = 0, live = keys & BACKENDS;
    find_serving(op, keys, serving);
    put_cells(op, keys, serving);
    put_shortcuts(op, keys, serving);
    for (tp_keyset left = keys; left; left &= left - 1) {
        tp_key key = lowest_key(left);
        const tp_registration_node *r = serving[key];
        tp_keyset bit = (tp_keyset)1 << key;
        tp_fn entry = r ? entry_of(op, r) : NULL;
        if (r && r->r.cell) {
            boxed |= bit;
            put_bits(&op->boxed_keys, bit, bit);
        }
        if (entry || (BACKENDS | TP_BIT(Undefined)) & bit) __atomic_store_n(&op->table[key], entry, __ATOMIC_RELEASE);
        if (r && !r->r.cell && entry && r->r.key >= TP_NUM_KEYS) shared |= bit;
        if (r) live = r->r.cell || entry ? live | bit : live & ~bit;
    }
    put_bits(&op->boxed_keys, boxed, keys);
    put_bits(&op->shared_keys, shared & TP_BACKEND_KEYS, keys);
    put_bits(&op->live, live, keys);
}
