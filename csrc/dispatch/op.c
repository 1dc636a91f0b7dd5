/* op.c: the operator list and registrations. Which registration serves a key is precedence.c's; boxed calls are
 * call.c's.
 *
 * All of it is written under the lock Operators. Calls read tables, cells and the operator list without: Note
 * [Registration lifetime] in cell.h. */
#include "dispatch/op.h"

#include "core/alloc.h"
#include "core/lock.h"
#include "dispatch/registrations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_BUCKETS 4096

static tp_op *buckets[NUM_BUCKETS];
static tp_op **all_ops; /* a list that has grown leaves the shorter one to its readers */
static int64_t op_count, op_capacity;
tp_cell *_Atomic tp_fallback_cells[TP_NUM_KEYS];
static int64_t last_handle, last_at_load; /* what is registered up to then stays */
static bool loaded;                       /* tables are computed as registrations come and go */
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
        if (loaded) tp_compute_entries(&ops[i], TP_ALL_KEYS);
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

/* ---- registration ---- */

/* Computes the entries of a key whose fallback has changed. */
static void compute_key(tp_key key) {
    atomic_store(&tp_fallback_cells[key], tp_fallbacks[key] ? tp_fallbacks[key]->r.cell : NULL);
    for (int64_t i = 0; loaded && i < op_count; i++) tp_compute_entries(all_ops[i], (tp_keyset)1 << key);
}

/* A primitive that came or went also decides which operators a backend runs itself. */
static void compute_after_registration(tp_op *op, tp_key key) {
    atomic_fetch_add_explicit(&kernel_changes, 1, memory_order_relaxed);
    tp_compute_entries(op, TP_ALL_KEYS);
    for (int64_t i = 0; op->info->is_primitive && key < TP_NUM_KEYS && i < op_count; i++)
        if (all_ops[i]->info->prims) tp_compute_entries(all_ops[i], (tp_keyset)1 << key);
}

bool tp_has_kernel(const tp_op *op, tp_key key) {
    return __atomic_load_n(&op->slots_taken, __ATOMIC_ACQUIRE) >> key & 1;
}

bool tp_find_origin(const tp_op *op, tp_key key, tp_origin *origin) {
    tp_lock(TP_LOCK_Operators);
    const tp_registration_node *r = tp_resolve(op, key);
    if (r) {
        *origin = (tp_origin){r->r.key, !r->op, r->r.cell != NULL, !r->r.cell && !r->r.fn, "", ""};
        snprintf(origin->source, sizeof origin->source, "%s", r->r.source);
        snprintf(origin->file, sizeof origin->file, "%s", r->r.file ? r->r.file : "");
    }
    tp_unlock(TP_LOCK_Operators);
    return r != NULL;
}

/* A registration of `op`, or, op NULL, the key's fallback. */
static int64_t put_registration(tp_op *op, tp_registration_node *node, const tp_registration *r) {
    tp_registration_node **newest = op ? &op->registrations : &tp_fallbacks[r->key];
    while (*newest && (*newest)->r.key != r->key) newest = &(*newest)->next;
    *node = (tp_registration_node){.r = *r, .op = op, .older = *newest, .next = *newest ? (*newest)->next : NULL};
    node->r.handle = ++last_handle;
    *newest = node;
    if (op) __atomic_store_n(&op->slots_taken, op->slots_taken | (uint64_t)1 << r->key, __ATOMIC_RELEASE);
    return node->r.handle;
}

static int ensure_cells(tp_op *op) {
    if (op->cells) return 0;
    tp_cell *_Atomic *fresh = calloc(TP_NUM_KEYS, sizeof *fresh);
    if (!fresh) return tp_fail_memory(TP_NUM_KEYS * (int64_t)sizeof *fresh);
    __atomic_store_n(&op->cells, fresh, __ATOMIC_RELEASE);
    return 0;
}

/* With a cell for the boxed kernel, if there is one. After a failure the context is still the caller's. */
static int64_t add_boxed(tp_op *op, tp_registration *r, tp_boxed_fn boxed, void *context,
                         void (*free_context)(void *)) {
    if (boxed && op && ensure_cells(op) < 0) return -1;
    if (boxed && !(r->cell = tp_cell_new(boxed, context, free_context))) return -1;
    tp_registration_node *node = malloc(sizeof *node);
    if (node) return put_registration(op, node, r);
    if (r->cell) tp_cell_drop(r->cell);
    return tp_fail_memory(sizeof *node);
}

/* What is registered here stays as long as the library: its nodes are one piece of memory. */
int tp_register_kernels(tp_key key, const tp_kernel_entry *entries, int64_t n) {
    tp_registration_node *nodes = malloc((size_t)n * sizeof *nodes);
    if (n && !nodes) return tp_fail_memory(n * (int64_t)sizeof *nodes);
    tp_lock(TP_LOCK_Operators);
    for (int64_t i = 0; i < n; i++) {
        tp_registration r = {.key = key, .fn = entries[i].fn, .source = entries[i].source, .file = entries[i].file};
        put_registration(entries[i].op, &nodes[i], &r);
    }
    tp_unlock(TP_LOCK_Operators);
    return 0;
}

int tp_give_shortcut(tp_op *op, tp_key key, const void *shortcut) {
    tp_lock(TP_LOCK_Operators);
    const void **shortcuts = op->shortcuts ? op->shortcuts : calloc(TP_NUM_KEYS, sizeof *shortcuts);
    if (shortcuts) {
        tp_slot_of(op, key)->r.shortcut = shortcut;
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
        if (add_boxed(&ops[i], &r, boxed, NULL, NULL) < 0) status = -1;
    }
    tp_unlock(TP_LOCK_Operators);
    return status;
}

void tp_compute_all_tables(void) {
    tp_lock(TP_LOCK_Operators);
    for (int64_t i = 0; i < op_count; i++) tp_compute_entries(all_ops[i], TP_ALL_KEYS);
    last_at_load = last_handle;
    loaded = true;
    tp_unlock(TP_LOCK_Operators);
}

void tp_take_whole(tp_keyset keys) {
    tp_lock(TP_LOCK_Operators);
    tp_whole_keys |= keys;
    for (int64_t i = 0; i < op_count; i++) tp_compute_entries(all_ops[i], keys);
    tp_unlock(TP_LOCK_Operators);
}

static int64_t register_one(tp_op *op, tp_registration *r, tp_boxed_fn boxed, void *context,
                            void (*free_context)(void *), bool allow_override) {
    tp_lock(TP_LOCK_Operators);
    int64_t handle = -1;
    char name[128];
    char *kept = strdup(r->source);
    tp_registration_node *there = tp_slot_of(op, r->key);
    bool is_held = there && !there->r.is_default && there->r.handle > last_at_load;
    if (!kept) tp_fail_memory((int64_t)strlen(r->source));
    else if (is_held && !allow_override)
        tp_fail(TP_RuntimeError, "%s already has a kernel for %s, registered from %s; this one comes from %s",
                tp_op_name(op, name), tp_slot_name(r->key), there->r.source, r->source);
    else {
        r->source = kept;
        handle = add_boxed(op, r, boxed, context, free_context);
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
    const tp_registration_node *node = tp_slot_of(op, key);
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
    else if (tp_fallbacks[key])
        tp_fail(TP_RuntimeError, "the key %s already has a fallback, registered from %s; this one comes from %s",
                tp_key_name(key), tp_fallbacks[key]->r.source, source);
    else {
        tp_registration r = {.key = key, .source = kept};
        handle = add_boxed(NULL, &r, boxed, context, free_context);
    }
    if (handle > 0) compute_key(key);
    else free(kept);
    tp_unlock(TP_LOCK_Operators);
    return handle;
}

/* Takes the registration with this handle out of its slot: of one slot's, or of a key's fallbacks. */
static tp_registration_node *unlink_of(tp_registration_node **newest, int64_t handle) {
    for (tp_registration_node **at = newest; *at; at = &(*at)->older)
        if ((*at)->r.handle == handle) {
            tp_registration_node *found = *at;
            if (at == newest && found->older) found->older->next = found->next;
            *at = at == newest && !found->older ? found->next : found->older;
            return found;
        }
    return NULL;
}

static tp_registration_node *unlink_anywhere(int64_t handle, tp_op **op, int *key) {
    tp_registration_node *node;
    for (*key = 0; *key < TP_NUM_KEYS; ++*key)
        if ((node = unlink_of(&tp_fallbacks[*key], handle))) return node;
    for (int64_t i = 0; i < op_count; i++) {
        *op = all_ops[i];
        for (tp_registration_node **newest = &(*op)->registrations; *newest; newest = &(*newest)->next)
            if ((node = unlink_of(newest, handle))) {
                if (!tp_slot_of(*op, node->r.key)) (*op)->slots_taken &= ~((uint64_t)1 << node->r.key);
                return node;
            }
    }
    return NULL;
}

int tp_deregister(int64_t handle) {
    tp_lock(TP_LOCK_Operators);
    tp_op *op = NULL;
    int key = 0;
    tp_registration_node *node = handle > last_at_load ? unlink_anywhere(handle, &op, &key) : NULL;
    if (node && node->op) compute_after_registration(node->op, node->r.key);
    else if (node) compute_key((tp_key)key);
    tp_unlock(TP_LOCK_Operators);
    if (!node) return tp_fail(TP_RuntimeError, "no registration has the handle %lld", (long long)handle);
    if (node->r.cell) tp_cell_retire(node->r.cell);
    free((char *)node->r.source);
    free(node);
    return 0;
}
