/* op.c: the operator list, registration, and the computation of dispatch tables.
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
 * All of it is written under the lock Operators. Calls read tables, cells and the operator list without: Note
 * [Registration lifetime] in cell.h. */
#include "dispatch/op.h"

#include "core/alloc.h"
#include "core/layout.h"
#include "core/lock.h"
#include "dispatch/cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NUM_SLOTS (TP_NUM_KEYS + TP_NUM_ALIAS)
#define NUM_BUCKETS 4096

typedef struct registration_node {
    tp_registration r;
    tp_op *op; /* NULL: a fallback */
    struct registration_node *older;
} registration_node;

/* An operator's registrations by slot (runtime key or alias), newest first, and the cells that calls look into, of an
 * operator that has boxed kernels. Allocated with the first registration of each kind, and kept. */
typedef struct tp_op_registrations {
    registration_node *slot[NUM_SLOTS];
    tp_cell *_Atomic *cells; /* by key; NULL: none was registered */
} tp_op_registrations;

static tp_op *buckets[NUM_BUCKETS];
static tp_op **all_ops; /* a list that has grown leaves the shorter one to its readers */
static int64_t op_count, op_capacity;
static registration_node *fallbacks[TP_NUM_KEYS];
static tp_cell *_Atomic fallback_cells[TP_NUM_KEYS];
static int64_t last_handle, last_at_load; /* what is registered up to then stays */
static _Atomic int64_t kernel_changes;    /* kernels that came or went since */

int64_t tp_kernel_changes(void) { return atomic_load_explicit(&kernel_changes, memory_order_relaxed); }

static const char *const alias_names[TP_NUM_ALIAS] = {
    [TP_ALIAS_Dense] = "Dense",
    [TP_ALIAS_Autograd] = "Autograd",
    [TP_ALIAS_Autocast] = "Autocast",
    [TP_ALIAS_CompositeImplicitAutograd] = "CompositeImplicitAutograd",
    [TP_ALIAS_CompositeExplicitAutograd] = "CompositeExplicitAutograd",
    [TP_ALIAS_CompositeExplicitAutogradNonFunctional] = "CompositeExplicitAutogradNonFunctional",
};

const char *tp_slot_name(tp_key key) { return key < TP_NUM_KEYS ? tp_key_name(key) : alias_names[key - TP_NUM_KEYS]; }

tp_key tp_slot_parse(const char *name) {
    for (int a = 0; a < TP_NUM_ALIAS; a++)
        if (strcmp(alias_names[a], name) == 0) return (tp_key)(TP_NUM_KEYS + a);
    return tp_key_parse(name);
}

/* ---- the operator list ---- */

static uint64_t hash_name(const char *name, const char *overload) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    h = (h ^ '.') * 0x100000001b3u;
    for (; *overload; overload++) h = (h ^ (uint8_t)*overload) * 0x100000001b3u;
    return h % NUM_BUCKETS;
}

tp_op *tp_find_op(const char *name, const char *overload) {
    tp_op *op = __atomic_load_n(&buckets[hash_name(name, overload)], __ATOMIC_ACQUIRE);
    for (; op; op = op->next)
        if (strcmp(op->info->name, name) == 0 && strcmp(op->info->overload, overload) == 0) return op;
    return NULL;
}

tp_op *tp_find_op_qualified(const char *qualified) {
    char name[128];
    if (strncmp(qualified, "aten::", 6) == 0) qualified += 6;
    const char *dot = strrchr(qualified, '.');
    size_t n = dot ? (size_t)(dot - qualified) : strlen(qualified);
    if (n >= sizeof name) return NULL;
    memcpy(name, qualified, n);
    name[n] = 0;
    return tp_find_op(name, dot ? dot + 1 : "");
}

int64_t tp_op_count(void) { return __atomic_load_n(&op_count, __ATOMIC_ACQUIRE); }
tp_op *tp_op_at(int64_t i) { return __atomic_load_n(&all_ops, __ATOMIC_ACQUIRE)[i]; }

const char *tp_op_name(const tp_op *op, char *buffer) {
    snprintf(buffer, 128, op->info->overload[0] ? "%s.%s" : "%s", op->info->name, op->info->overload);
    return buffer;
}

int tp_argument_named(const tp_op *op, const char *name) {
    for (int i = 0; i < op->info->nargs; i++)
        if (strcmp(op->info->args[i].name, name) == 0) return i;
    return -1;
}

static int reserve_ops(int64_t n) {
    if (op_count + n <= op_capacity) return 0;
    int64_t capacity = op_capacity * 2 > op_count + n ? op_capacity * 2 : op_count + n + 64;
    tp_op **grown = malloc((size_t)capacity * sizeof *grown);
    if (!grown) return tp_fail_memory(capacity * (int64_t)sizeof *grown);
    if (op_count) memcpy(grown, all_ops, (size_t)op_count * sizeof *grown);
    __atomic_store_n(&all_ops, grown, __ATOMIC_RELEASE);
    op_capacity = capacity;
    return 0;
}

static void compute_table(tp_op *op);

int tp_declare_ops(tp_op *ops, const tp_op_info *infos, int64_t n) {
    tp_lock(TP_LOCK_Operators);
    int status = reserve_ops(n);
    for (int64_t i = 0; status == 0 && i < n; i++) {
        const tp_op *twin = tp_find_op(infos[i].name, infos[i].overload);
        if (twin) {
            status = tp_fail(TP_RuntimeError, "operator %s.%s is declared twice: at %s and at %s", infos[i].name,
                             infos[i].overload, twin->info->declared_at, infos[i].declared_at);
            break;
        }
        uint64_t h = hash_name(infos[i].name, infos[i].overload);
        ops[i].info = &infos[i];
        ops[i].next = buckets[h];
        all_ops[op_count] = &ops[i];
        __atomic_store_n(&buckets[h], &ops[i], __ATOMIC_RELEASE);
        __atomic_store_n(&op_count, op_count + 1, __ATOMIC_RELEASE);
        if (last_at_load) compute_table(&ops[i]);
    }
    tp_unlock(TP_LOCK_Operators);
    return status;
}

void tp_withdraw_op(tp_op *op) {
    tp_lock(TP_LOCK_Operators);
    tp_op **at = &buckets[hash_name(op->info->name, op->info->overload)];
    while (*at && *at != op) at = &(*at)->next;
    if (*at) __atomic_store_n(at, op->next, __ATOMIC_RELEASE);
    int64_t i = 0;
    while (i < op_count && all_ops[i] != op) i++;
    if (i < op_count) { /* a reader of the old count finds an operator in the last place, too */
        for (; i + 1 < op_count; i++) __atomic_store_n(&all_ops[i], all_ops[i + 1], __ATOMIC_RELAXED);
        __atomic_store_n(&op_count, op_count - 1, __ATOMIC_RELEASE);
    }
    tp_unlock(TP_LOCK_Operators);
}

/* ---- tables ---- */

static registration_node *slot_of(const tp_op *op, int slot) {
    return op->registrations ? op->registrations->slot[slot] : NULL;
}

static bool is_backend(tp_key key) { return (TP_BACKEND_KEYS | TP_LAYOUT_KEYS) >> key & 1; }
static bool is_autograd(tp_key key) { return key != TP_KEY_ForwardAD && TP_AUTOGRAD_KEYS >> key & 1; }
/* Layers that never meet a composite: they see its parts. */
static bool is_above_parts(tp_key key) { return key == TP_KEY_Batched || key == TP_KEY_ForwardAD; }

/* Whether the backend that an Autograd key stands above has a kernel that is not made of differentiable parts. */
static bool backend_needs_formula(const tp_op *op, tp_key autograd) {
    if (slot_of(op, TP_ALIAS_KEY(Dense)) || slot_of(op, TP_ALIAS_KEY(CompositeExplicitAutograd)) ||
        slot_of(op, TP_ALIAS_KEY(CompositeExplicitAutogradNonFunctional)))
        return true;
    if (autograd == TP_KEY_AutogradOther) {
        for (int k = TP_KEY_Mkldnn; k <= TP_KEY_ZeroTensor; k++)
            if (slot_of(op, k)) return true;
        return false;
    }
    return slot_of(op, TP_KEY_CPU + (autograd - TP_KEY_AutogradCPU)) != NULL;
}

/* What a result's sizes follow from, or what is read as a number: Meta tensors have none. */
static bool needs_values(const tp_op *op) {
    return op->info->tag_bits & (TP_TAG_DYNAMIC_OUTPUT_SHAPE | TP_TAG_DATA_DEPENDENT_OUTPUT);
}

/* The type of the one thing that an operator gives which reads values; TP_NONE: it reads none, or gives something else.
 */
static tp_tag tag_of_reading(const tp_op *op) {
    const tp_op_info *info = op->info;
    return info->tag_bits & TP_TAG_DATA_DEPENDENT_OUTPUT && info->nreturns == 1 ? (tp_tag)info->returns[0].tag
                                                                                : TP_NONE;
}

bool tp_reads_number(const tp_op *op) {
    tp_tag tag = tag_of_reading(op);
    return tag == TP_SCALAR || tag == TP_NUMBER || tag == TP_INT || tag == TP_FLOAT;
}

bool tp_reads_bool(const tp_op *op) { return tag_of_reading(op) == TP_BOOL_; }

static bool has_primitives(const tp_op *op, tp_key backend) {
    if (backend == TP_KEY_Meta && needs_values(op)) return false;
    for (tp_op *const *p = op->info->prims; p && *p; p++)
        if (!(*p)->info->is_optional && !slot_of(*p, backend)) return false;
    return true;
}

bool tp_can_wait(const tp_op *primitive) {
    const tp_op_info *info = primitive->info;
    if (info->nreturns) return false;
    for (int i = 0; i < info->nargs; i++)
        if (info->args[i].tag == TP_GENERATOR || info->args[i].tag == TP_STORAGE || info->args[i].tag == TP_STREAM ||
            strcmp(info->args[i].name, "fault") == 0)
            return false;
    return true;
}

static tp_keyset whole_keys; /* of devices that show no memory, and their autograd keys */

bool tp_gives_views(const tp_op *op) {
    for (const char *const *tag = op->info->tags; *tag; tag++)
        if (strcmp(*tag, "inplace_view") == 0) return true;
    const char *results = strstr(op->info->schema, ") -> ");
    return results && strstr(results, "Tensor(") && !strchr(results, '!');
}

int tp_viewed_argument(const tp_op *op) {
    const char *text = op->info->schema, *arrow = strstr(text, ") ->"), *open = strchr(text, '(');
    if (!arrow || !open || strchr(text, '!') || !strstr(arrow, "Tensor(a")) return -1;
    int argument = 0, depth = 0;
    for (const char *p = open + 1; p < arrow; p++) {
        if (strncmp(p, "Tensor(a", 8) == 0) return argument;
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        argument += *p == ',' && depth == 0;
    }
    return -1;
}

static bool takes(const tp_op *op, tp_tag tag) {
    for (int i = 0; i < op->info->nargs; i++)
        if (op->info->args[i].tag == tag) return true;
    return false;
}

/* A composite of these has an answer, or words of its own, for no tensors. */
static bool gives_list_for_list(const tp_op *op) {
    return op->info->nreturns && op->info->returns[0].tag == TP_TENSOR_SEQ && !takes(op, TP_TENSOR);
}

/* Whether nothing but a kernel for all of the operator, or the host's, computes it at a key; not of one that takes a
 * tensor to another device, or makes one like it. */
static bool is_taken_whole(const tp_op *op, tp_key key) {
    if (tp_likely(!(whole_keys >> key & 1)) || op->info->is_primitive || tp_gives_views(op)) return false;
    return !(takes(op, TP_DEVICE) && takes(op, TP_TENSOR));
}

/* Note [Kernel precedence]: the alias keys' slots that serve a key which has no kernel of its own, in order. */
static int slots_behind(const tp_op *op, tp_key key, tp_key slots[4]) {
    int n = 0;
    bool whole = is_taken_whole(op, key);
    if (!whole && (is_backend(key) || (key == TP_KEY_Undefined && !takes(op, TP_TENSOR) && !takes(op, TP_TENSORS)))) {
        if (TP_BACKEND_KEYS >> key & 1 && slot_of(op, TP_ALIAS_KEY(Dense)) && has_primitives(op, key))
            slots[n++] = TP_ALIAS_KEY(Dense);
        if (!(TP_LAYOUT_KEYS >> key & 1)) {
            slots[n++] = TP_ALIAS_KEY(CompositeExplicitAutogradNonFunctional);
            slots[n++] = TP_ALIAS_KEY(CompositeExplicitAutograd);
        }
        slots[n++] = TP_ALIAS_KEY(CompositeImplicitAutograd);
    }
    bool ruled = key == TP_KEY_Batched && op->info->batching;
    if ((is_above_parts(key) && !ruled) || (key == TP_KEY_Undefined && gives_list_for_list(op)))
        slots[n++] = TP_ALIAS_KEY(CompositeImplicitAutograd);
    if (is_autograd(key)) {
        if (slot_of(op, TP_ALIAS_KEY(CompositeImplicitAutograd)) && !whole && !backend_needs_formula(op, key))
            slots[n++] = TP_ALIAS_KEY(CompositeImplicitAutograd);
        slots[n++] = TP_ALIAS_KEY(Autograd);
    }
    if (TP_AUTOCAST_KEYS >> key & 1) slots[n++] = TP_ALIAS_KEY(Autocast);
    return n;
}

/* Whether a composite is one for every backend: what it is made of comes back to ForwardAD, from whichever key below it
 * the composite runs at, and a layout's key is among those. */
static bool is_made_of_parts(const tp_op *op) {
    if (!slot_of(op, TP_ALIAS_KEY(CompositeImplicitAutograd))) return false;
    for (int key = TP_KEY_AutogradOther; key <= TP_KEY_AutogradPrivateUse3; key++)
        if (slot_of(op, key) || backend_needs_formula(op, (tp_key)key)) return false;
    return true;
}

/* NULL: nothing. */
static registration_node *resolve(const tp_op *op, tp_key key) {
    registration_node *r = slot_of(op, key);
    if (r || (key == TP_KEY_ForwardAD && is_made_of_parts(op))) return r;
    tp_key slots[4];
    int n = slots_behind(op, key, slots);
    for (int i = 0; i < n; i++)
        if ((r = slot_of(op, slots[i]))) return r;
    return fallbacks[key];
}

static bool is_kernel(const registration_node *r, tp_fn fn, const void *context) {
    return fn ? r->r.fn == fn : r->r.cell && r->r.cell->context == context;
}

/* What resolve gave without the kernel that declined, and those before it. */
static registration_node *resolve_after(const tp_op *op, tp_key key, tp_fn fn, const void *context) {
    tp_key slots[5] = {key};
    int n = 1 + slots_behind(op, key, slots + 1);
    bool past = false;
    for (int i = 0; i < n; i++)
        for (registration_node *r = slot_of(op, slots[i]); r; r = r->older) {
            if (past) return r;
            past = is_kernel(r, fn, context);
        }
    return past ? fallbacks[key] : NULL;
}

static void put_bit(tp_keyset *set, tp_keyset bit, bool on) {
    __atomic_store_n(set, on ? *set | bit : *set & ~bit, __ATOMIC_RELEASE);
}

/* The cell comes before the entry that leads to it, and the entry before the live bit. */
static void compute_entry(tp_op *op, tp_key key) {
    registration_node *r = resolve(op, key);
    tp_keyset bit = (tp_keyset)1 << key;
    bool fallthrough = r ? !r->r.fn && !r->r.cell : !is_backend(key);
    tp_cell *cell = r ? r->r.cell : NULL;
    tp_fn entry = cell ? op->info->box : r ? r->r.fn : NULL;
    if (op->shortcuts) __atomic_store_n(&op->shortcuts[key], r ? r->r.shortcut : NULL, __ATOMIC_RELEASE);
    if (op->registrations && op->registrations->cells)
        atomic_store(&op->registrations->cells[key], r && r->op ? cell : NULL);
    put_bit(&op->boxed_keys, bit, cell != NULL);
    put_bit(&op->shared_keys, bit, TP_BACKEND_KEYS & bit && entry && !cell && r->r.key >= TP_NUM_KEYS);
    if (entry || is_backend(key) || key == TP_KEY_Undefined) __atomic_store_n(&op->table[key], entry, __ATOMIC_RELEASE);
    put_bit(&op->live, bit, !fallthrough);
}

/* Computes the entries of a key whose fallback has changed. */
static void compute_key(tp_key key) {
    atomic_store(&fallback_cells[key], fallbacks[key] ? fallbacks[key]->r.cell : NULL);
    for (int64_t i = 0; i < op_count; i++) compute_entry(all_ops[i], key);
}

void tp_take_whole(tp_keyset keys) {
    tp_lock(TP_LOCK_Operators);
    whole_keys |= keys;
    for (int k = 0; k < TP_NUM_KEYS; k++)
        if (keys >> k & 1) compute_key((tp_key)k);
    tp_unlock(TP_LOCK_Operators);
}

static void compute_table(tp_op *op) {
    for (int k = TP_KEY_Undefined; k < TP_NUM_KEYS; k++) compute_entry(op, (tp_key)k);
}

/* A primitive that came or went also decides which operators a backend runs itself. */
static void compute_after_registration(tp_op *op, tp_key key) {
    atomic_fetch_add_explicit(&kernel_changes, 1, memory_order_relaxed);
    compute_table(op);
    for (int64_t i = 0; op->info->is_primitive && key < TP_NUM_KEYS && i < op_count; i++)
        if (all_ops[i]->info->prims) compute_entry(all_ops[i], key);
}

bool tp_has_kernel(const tp_op *op, tp_key key) {
    const tp_op_registrations *r = __atomic_load_n(&op->registrations, __ATOMIC_ACQUIRE);
    return r && __atomic_load_n(&r->slot[key], __ATOMIC_ACQUIRE);
}

bool tp_find_origin(const tp_op *op, tp_key key, tp_origin *origin) {
    tp_lock(TP_LOCK_Operators);
    const registration_node *r = resolve(op, key);
    if (r) {
        *origin = (tp_origin){r->r.key, !r->op, r->r.cell != NULL, !r->r.cell && !r->r.fn, "", ""};
        snprintf(origin->source, sizeof origin->source, "%s", r->r.source);
        snprintf(origin->file, sizeof origin->file, "%s", r->r.file ? r->r.file : "");
    }
    tp_unlock(TP_LOCK_Operators);
    return r != NULL;
}

/* ---- registration ---- */

static int64_t put_registration(tp_op *op, registration_node **slot, registration_node *node,
                                const tp_registration *r) {
    node->r = *r;
    node->r.handle = ++last_handle;
    node->op = op;
    node->older = *slot;
    __atomic_store_n(slot, node, __ATOMIC_RELEASE);
    return node->r.handle;
}

static int64_t add_registration(tp_op *op, registration_node **slot, const tp_registration *r) {
    registration_node *node = malloc(sizeof *node);
    return node ? put_registration(op, slot, node, r) : tp_fail_memory(sizeof *node);
}

static int ensure_registrations(tp_op *op) {
    if (op->registrations) return 0;
    tp_op_registrations *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return tp_fail_memory(sizeof *fresh);
    __atomic_store_n(&op->registrations, fresh, __ATOMIC_RELEASE);
    return 0;
}

static int ensure_cells(tp_op_registrations *registrations) {
    if (registrations->cells) return 0;
    tp_cell *_Atomic *fresh = calloc(TP_NUM_KEYS, sizeof *fresh);
    if (!fresh) return tp_fail_memory(TP_NUM_KEYS * (int64_t)sizeof *fresh);
    __atomic_store_n(&registrations->cells, fresh, __ATOMIC_RELEASE);
    return 0;
}

/* With a cell for the boxed kernel, if there is one. After a failure the context is still the caller's. */
static int64_t add_boxed(tp_op *op, registration_node **slot, tp_registration *r, tp_boxed_fn boxed, void *context,
                         void (*free_context)(void *)) {
    if (boxed && op && ensure_cells(op->registrations) < 0) return -1;
    if (boxed && !(r->cell = tp_cell_new(boxed, context, free_context))) return -1;
    int64_t handle = add_registration(op, slot, r);
    if (handle < 0 && r->cell) tp_cell_drop(r->cell);
    return handle;
}

/* What is registered here stays as long as the library: its nodes are one piece of memory. */
int tp_register_kernels(tp_key key, const tp_kernel_entry *entries, int64_t n) {
    registration_node *nodes = malloc((size_t)n * sizeof *nodes);
    if (n && !nodes) return tp_fail_memory(n * (int64_t)sizeof *nodes);
    tp_lock(TP_LOCK_Operators);
    int status = 0;
    for (int64_t i = 0; status == 0 && i < n; i++) {
        tp_op *op = entries[i].op;
        tp_registration r = {.key = key, .fn = entries[i].fn, .source = entries[i].source, .file = entries[i].file};
        status = ensure_registrations(op);
        if (status == 0) put_registration(op, &op->registrations->slot[key], &nodes[i], &r);
    }
    tp_unlock(TP_LOCK_Operators);
    return status;
}

int tp_give_shortcut(tp_op *op, tp_key key, const void *shortcut) {
    tp_lock(TP_LOCK_Operators);
    const void **shortcuts = op->shortcuts ? op->shortcuts : calloc(TP_NUM_KEYS, sizeof *shortcuts);
    if (shortcuts) {
        op->registrations->slot[key]->r.shortcut = shortcut;
        __atomic_store_n(&op->shortcuts, shortcuts, __ATOMIC_RELEASE);
    }
    tp_unlock(TP_LOCK_Operators);
    return shortcuts ? 0 : tp_fail_memory(TP_NUM_KEYS * (int64_t)sizeof *shortcuts);
}

int tp_register_for_all(tp_key key, tp_op *ops, int64_t n, tp_boxed_fn boxed, const char *source) {
    tp_lock(TP_LOCK_Operators);
    int status = 0;
    for (int64_t i = 0; status == 0 && i < n; i++) {
        tp_registration r = {.key = key, .source = source};
        if (ensure_registrations(&ops[i]) < 0) status = -1;
        else if (add_boxed(&ops[i], &ops[i].registrations->slot[key], &r, boxed, NULL, NULL) < 0) status = -1;
    }
    tp_unlock(TP_LOCK_Operators);
    return status;
}

void tp_compute_all_tables(void) {
    tp_lock(TP_LOCK_Operators);
    for (int64_t i = 0; i < op_count; i++) compute_table(all_ops[i]);
    last_at_load = last_handle;
    tp_unlock(TP_LOCK_Operators);
}

static int64_t register_one(tp_op *op, tp_registration *r, tp_boxed_fn boxed, void *context,
                            void (*free_context)(void *), bool allow_override) {
    tp_lock(TP_LOCK_Operators);
    int64_t handle = -1;
    char name[128];
    char *kept = strdup(r->source);
    registration_node *there = slot_of(op, r->key);
    bool is_held = there && !there->r.is_default && there->r.handle > last_at_load;
    if (!kept) tp_fail_memory((int64_t)strlen(r->source));
    else if (is_held && !allow_override)
        tp_fail(TP_RuntimeError, "%s already has a kernel for %s, registered from %s; this one comes from %s",
                tp_op_name(op, name), tp_slot_name(r->key), there->r.source, r->source);
    else if (ensure_registrations(op) == 0) {
        r->source = kept;
        handle = add_boxed(op, &op->registrations->slot[r->key], r, boxed, context, free_context);
    }
    if (handle > 0) compute_after_registration(op, r->key);
    else free(kept);
    tp_unlock(TP_LOCK_Operators);
    return handle;
}

int64_t tp_register(tp_op *op, tp_key key, tp_fn fn, tp_boxed_fn boxed, void *context, void (*free_context)(void *),
                    const char *source, bool allow_override) {
    tp_registration r = {.key = key, .fn = fn, .source = source};
    return register_one(op, &r, boxed, context, free_context, allow_override);
}

/* The kernel that a key falls back to. An operator that was taken out and declared again still has it. */
static int64_t default_of(const tp_op *op, tp_key key) {
    tp_lock(TP_LOCK_Operators);
    const registration_node *node = slot_of(op, key);
    while (node && !node->r.is_default) node = node->older;
    tp_unlock(TP_LOCK_Operators);
    return node ? node->r.handle : 0;
}

int64_t tp_register_default(tp_op *op, tp_key key, tp_boxed_fn boxed, const char *source) {
    int64_t there = default_of(op, key);
    if (there) return there;
    tp_registration r = {.key = key, .source = source, .is_default = true};
    return register_one(op, &r, boxed, NULL, NULL, false);
}

int64_t tp_register_fallback(tp_key key, tp_boxed_fn boxed, void *context, void (*free_context)(void *),
                             const char *source) {
    tp_lock(TP_LOCK_Operators);
    int64_t handle = -1;
    char *kept = strdup(source);
    if (!kept) tp_fail_memory((int64_t)strlen(source));
    else if (fallbacks[key])
        tp_fail(TP_RuntimeError, "the key %s already has a fallback, registered from %s; this one comes from %s",
                tp_key_name(key), fallbacks[key]->r.source, source);
    else {
        tp_registration r = {.key = key, .source = kept};
        handle = add_boxed(NULL, &fallbacks[key], &r, boxed, context, free_context);
    }
    if (handle > 0) compute_key(key);
    else free(kept);
    tp_unlock(TP_LOCK_Operators);
    return handle;
}

/* Unlinks the node with this handle from a list; the caller holds the lock. */
static registration_node *unlink_handle(registration_node **list, int64_t handle) {
    for (; *list; list = &(*list)->older)
        if ((*list)->r.handle == handle) {
            registration_node *found = *list;
            *list = found->older;
            return found;
        }
    return NULL;
}

static registration_node *unlink_anywhere(int64_t handle, tp_op **op, int *key) {
    registration_node *node;
    for (*key = 0; *key < TP_NUM_KEYS; ++*key)
        if ((node = unlink_handle(&fallbacks[*key], handle))) return node;
    for (int64_t i = 0; i < op_count; i++) {
        *op = all_ops[i];
        for (int s = 0; (*op)->registrations && s < NUM_SLOTS; s++)
            if ((node = unlink_handle(&(*op)->registrations->slot[s], handle))) return node;
    }
    return NULL;
}

int tp_deregister(int64_t handle) {
    tp_lock(TP_LOCK_Operators);
    tp_op *op = NULL;
    int key = 0;
    registration_node *node = handle > last_at_load ? unlink_anywhere(handle, &op, &key) : NULL;
    if (node && node->op) compute_after_registration(node->op, node->r.key);
    else if (node) compute_key((tp_key)key);
    tp_unlock(TP_LOCK_Operators);
    if (!node) return tp_fail(TP_RuntimeError, "no registration has the handle %lld", (long long)handle);
    if (node->r.cell) tp_cell_retire(node->r.cell);
    free((char *)node->r.source);
    free(node);
    return 0;
}

/* ---- boxed calls ---- */

void tp_value_release(tp_value *v) {
    if (v->tag == TP_TENSOR) tp_release(v->tensor);
    if (v->tag == TP_TENSOR_SEQ) tp_tensor_seq_free(v->seq);
    v->tag = TP_NONE;
}

tp_keyset tp_keys_of_values(const tp_value *args, int n) {
    tp_keyset ks = 0;
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (args[i].tag == TP_TENSOR) {
            ks |= args[i].tensor->keys;
            any = true;
        } else if (args[i].tag == TP_TENSORS) {
            for (int64_t j = 0; j < args[i].tensors.size; j++)
                if (args[i].tensors.data[j]) ks |= args[i].tensors.data[j]->keys, any = true;
        }
    }
    return any ? ks : TP_BIT(BackendSelect);
}

/* The boxed kernel that the operator has at a key, counted in; NULL if it has none any more. */
static tp_cell *enter_at(const tp_op *op, tp_key key) {
    tp_op_registrations *r = __atomic_load_n(&op->registrations, __ATOMIC_ACQUIRE);
    tp_cell *_Atomic *cells = r ? __atomic_load_n(&r->cells, __ATOMIC_ACQUIRE) : NULL;
    tp_cell *own = cells ? tp_cell_enter(&cells[key]) : NULL;
    return own ? own : tp_cell_enter(&fallback_cells[key]);
}

int tp_call_kernel_at(const tp_op *op, tp_key key, tp_keyset ks, const tp_value *args, tp_value *results) {
    tp_cell *cell = tp_is_boxed_at(op, key) ? enter_at(op, key) : NULL;
    if (cell) {
        int status = cell->boxed(op, ks, (tp_value *)args, results, cell->context);
        tp_cell_leave(cell);
        return status;
    }
    tp_fn kernel = tp_kernel_at(op, key);
    if (!kernel) return tp_missing_kernel(op, ks, args);
    if (kernel == op->info->box) return tp_redispatch_boxed(op, ks, args, results); /* it is being taken out */
    return op->info->signature->call(kernel, ks, args, results);
}

bool tp_hold_kernel(const tp_op *op, tp_key key, tp_held_kernel *held) {
    *held = (tp_held_kernel){.cell = tp_is_boxed_at(op, key) ? enter_at(op, key) : NULL};
    tp_fn kernel = held->cell ? NULL : tp_kernel_at(op, key);
    if (kernel != op->info->box) held->fn = kernel;
    return held->fn || held->cell;
}

void tp_let_go(const tp_held_kernel *held) {
    if (held->cell) tp_cell_leave(held->cell);
}

int tp_call_held(const tp_op *op, const tp_held_kernel *held, tp_keyset ks, const tp_value *args, tp_value *results) {
    if (held->cell) return held->cell->boxed(op, ks, (tp_value *)args, results, held->cell->context);
    return op->info->signature->call(held->fn, ks, args, results);
}

int tp_redispatch_boxed(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results) {
    return tp_call_kernel_at(op, tp_live_key(op, ks), ks, args, results);
}

static int call_after(const tp_op *op, tp_fn fn, const void *context, tp_keyset ks, const tp_value *args,
                      tp_value *results) {
    tp_lock(TP_LOCK_Operators);
    const registration_node *next = resolve_after(op, tp_live_key(op, ks & ~TP_BIT(Trace)), fn, context);
    tp_fn kernel = next ? next->r.fn : NULL;
    tp_cell *_Atomic place = next ? next->r.cell : NULL; /* not retired yet: that needs the lock */
    tp_cell *cell = tp_cell_enter(&place);
    tp_unlock(TP_LOCK_Operators);
    if (cell) {
        int status = cell->boxed(op, ks, (tp_value *)args, results, cell->context);
        tp_cell_leave(cell);
        return status;
    }
    return kernel ? op->info->signature->call(kernel, ks, args, results) : tp_missing_kernel(op, ks, args);
}

int tp_call_next(const tp_op *op, tp_fn declined, tp_keyset ks, const tp_value *args, tp_value *results) {
    return call_after(op, declined, NULL, ks, args, results);
}

int tp_call_next_boxed(const tp_op *op, const void *declined, tp_keyset ks, const tp_value *args, tp_value *results) {
    return call_after(op, NULL, declined, ks, args, results);
}

/* The tensor by which a primitive is entered; NULL and the error set if the others are not beside it. */
static const tp_tensor *guide_of(const tp_op *op, const tp_value *args) {
    const tp_value *v = &args[op->info->guide];
    const tp_tensor *guide = v->tag == TP_TENSOR                           ? v->tensor
                             : v->tag == TP_TENSORS && v->tensors.size > 0 ? v->tensors.data[0]
                                                                           : NULL;
    char name[128];
    if (!guide)
        return tp_fail_null(TP_RuntimeError, "%s: %s is missing", tp_op_name(op, name),
                            op->info->args[op->info->guide].name);
    for (int i = 0; i < op->info->nargs; i++) {
        bool list = args[i].tag == TP_TENSORS;
        int64_t n = list ? args[i].tensors.size : args[i].tag == TP_TENSOR;
        for (int64_t k = 0; k < n; k++) {
            const tp_tensor *t = list ? args[i].tensors.data[k] : args[i].tensor;
            if (t && !tp_device_equal(t->device, guide->device))
                return tp_fail_null(TP_RuntimeError, "%s: %s is on another device", tp_op_name(op, name),
                                    op->info->args[i].name);
        }
    }
    return guide;
}

int tp_call_boxed(const tp_op *op, const tp_value *args, tp_value *results) {
    if (op->info->is_primitive) {
        const tp_tensor *guide = guide_of(op, args);
        return guide ? tp_redispatch_boxed(op, tp_primitive_keys(guide), args, results) : -1;
    }
    return tp_redispatch_boxed(op, tp_effective_keys(tp_keys_of_values(args, op->info->nargs)), args, results);
}

/* ---- a missing kernel ---- */

static void describe_tensor_arguments(const tp_op *op, const tp_value *args, tp_text *text) {
    const char *comma = "";
    for (int i = 0; i < op->info->nargs; i++) {
        if (args[i].tag != TP_TENSOR) continue;
        char device[40];
        tp_text_add(text, "%s%s: %s on %s", comma, op->info->args[i].name, tp_dtype_names[args[i].tensor->dtype],
                    tp_device_print(args[i].tensor->device, device));
        comma = ", ";
    }
    if (!*comma) tp_text_add(text, "no tensors");
}

static void list_backends(const tp_op *op, tp_text *text) {
    const char *comma = "";
    for (int k = TP_KEY_CPU; k <= TP_KEY_ZeroTensor; k++) {
        tp_origin origin; /* a fallback has just refused, or would ask another backend's kernel */
        if (tp_find_origin(op, (tp_key)k, &origin) && !origin.is_fallback && !origin.is_fallthrough) {
            tp_text_add(text, "%s%s", comma, tp_key_name((tp_key)k));
            comma = ", ";
        }
    }
    if (!*comma) tp_text_add(text, "none");
}

/* A tensor of another layout among the arguments, or NULL. */
static const tp_tensor *of_a_layout(const tp_op *op, const tp_value *args) {
    for (int i = 0; i < op->info->nargs; i++) {
        int64_t n = args[i].tag == TP_TENSORS ? args[i].tensors.size : args[i].tag == TP_TENSOR;
        for (int64_t k = 0; k < n; k++) {
            const tp_tensor *t = args[i].tag == TP_TENSORS ? args[i].tensors.data[k] : args[i].tensor;
            if (t && t->keys & TP_LAYOUT_KEYS) return t;
        }
    }
    return NULL;
}

int tp_refuse_layout(const tp_op *op, const tp_tensor *t) {
    char name[128];
    return tp_fail(TP_NotImplementedError,
                   "%s: there is no kernel for tensors of the layout %s. %s gives a dense one, whose "
                   "operators all others are",
                   tp_op_name(op, name), tp_layouts[tp_layout_of(t)].name,
                   tp_is_quantized(t) ? "Tensor.dequantize()" : "Tensor.to_dense()");
}

int tp_missing_kernel(const tp_op *op, tp_keyset ks, const tp_value *args) {
    char name[128];
    tp_key key = tp_live_key(op, ks);
    tp_autotext arguments = {0}, backends = {0};
    if ((ks & TP_BIT(Meta)) && needs_values(op))
        return tp_fail(
            TP_NotImplementedError, "%s: not possible on Meta tensors, which have no values: the operator is tagged %s",
            tp_op_name(op, name),
            op->info->tag_bits & TP_TAG_DYNAMIC_OUTPUT_SHAPE ? "dynamic_output_shape" : "data_dependent_output");
    for (int i = 0; key == TP_KEY_Undefined && i < op->info->nargs; i++)
        if (args[i].tag == TP_TENSORS && args[i].tensors.size == 0)
            return op->info->empty_list == TP_RuntimeError
                       ? tp_fail(TP_RuntimeError, "%s expects a non-empty input tensor list", op->info->name)
                   : op->info->empty_list == TP_ValueError
                       ? tp_fail(TP_ValueError, "torch.%s(): expected a non-empty list of Tensors, %s is empty",
                                 op->info->name, op->info->args[i].name)
                   : op->info->empty_list == TP_IndexError
                       ? tp_fail(TP_RuntimeError, "Tensor list must have at least one tensor.")
                       : tp_fail(TP_RuntimeError,
                                 "%s expects a non-empty TensorList: expected a non-empty list of Tensors, %s is empty",
                                 op->info->name, op->info->args[i].name);
    const tp_tensor *other = TP_LAYOUT_KEYS >> key & 1 ? of_a_layout(op, args) : NULL;
    if (other) return tp_refuse_layout(op, other);
    if (op->info->registered_by)
        return tp_fail(TP_NotImplementedError, "Could not run '%s': its kernels come with %s. next step: import %s",
                       tp_op_name(op, name), op->info->registered_by, op->info->registered_by);
    describe_tensor_arguments(op, args, &arguments);
    list_backends(op, &backends);
    return tp_fail(TP_NotImplementedError,
                   "Could not run '%s' on %s: it has no kernel for that backend.\n"
                   "  arguments: %s\n"
                   "  backends that have one: %s\n"
                   "  next step: move the tensors to one of these devices, or register a kernel "
                   "(tensorpy.dispatch.table(\"%s\") shows what is there)",
                   tp_op_name(op, name), key == TP_KEY_Undefined ? "no backend" : tp_key_name(key),
                   arguments.text ? arguments.text : "", backends.text ? backends.text : "", tp_op_name(op, name));
}
