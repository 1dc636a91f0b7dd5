/* op.h: the operator table and the computed dispatch tables.
 *
 * Every operator has one tp_op: its schema, its registrations (which key, which kernel, from where) and the table that
 * is computed from them at registration: one kernel per key, or NULL. A call takes the highest key of (keys of its
 * tensors, after the thread's include and exclude sets) & op->live and jumps: no lock, no lookup, no allocation. Note
 * [Kernel precedence] in precedence.c says how the table is computed.
 *
 * Two calling conventions. A declared operator has an unboxed C signature `R kernel(tp_keyset ks, args...)`, where ks
 * is the set that led to this kernel; a layer passes `ks & TP_BELOW_...` on. The boxed convention `int kernel(op, ks,
 * args, results, context)` serves custom operators and fallbacks. The generator makes the adaptors, one pair per C
 * signature (tp_signature): a boxed kernel is called from unboxed code through `info->box`, an entry stub per operator;
 * an unboxed one from boxed code through `signature->call`.
 *
 * Note [Primitives]
 * What a device implements is declared in yaml/primitives.yaml: operators of the namespace `prim`, in this list and
 * with tables like these, but entered another way: at the backend key of the tensor that is written, whatever the
 * thread's include and exclude sets say. So no layer can be met by one, and a tensor without a dense backend (a
 * layout's, a payload's) finds no kernel. Their C functions take no key set. An operator made of primitives is
 * registered once, under the alias key Dense; a backend takes that kernel as soon as it has all that `prims` names.
 *
 * Note [Declining]
 * A kernel that takes only some calls (a dtype, a size, strides) says so by returning tp_decline() before it has done
 * anything, and the kernel that would stand in the table without it takes the call: Note [Kernel precedence]. Its entry
 * names its key in `declines`, so the generator asks after its wrapper alone; a boxed kernel from outside is asked
 * after every failure. No composite chooses by device. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_iter)
#error "the core and the iterator do not know the dispatcher"
#endif

#include "dispatch/key.h"
#include "dispatch/value.h"

typedef void (*tp_fn)(void); /* any unboxed kernel; cast to the operator's own type before a call */

typedef struct tp_cell tp_cell; /* a boxed kernel (tp_boxed_fn) with its context: dispatch/cell.h */

typedef struct {
    int (*call)(tp_fn kernel, tp_keyset ks, const tp_value *args, tp_value *results);
} tp_signature;

typedef struct {
    const char *name;          /* argument's or return's name ("" if unnamed) */
    const char *type;          /* as in the schema: "Tensor?", "int[2]" */
    const char *default_value; /* as in the schema, or NULL */
    uint8_t tag;               /* tp_tag of the value */
    bool optional;
    bool kwarg_only, is_out, is_write;
} tp_argument;

typedef struct {
    int64_t handle;
    tp_key key; /* as registered: a runtime key, or TP_NUM_KEYS + tp_alias_key */
    tp_fn fn;   /* one of fn and cell; both NULL: fallthrough */
    tp_cell *cell;
    const char *source;   /* the kernel's name, or file:line of a Python registration */
    const char *file;     /* of the tree, that the kernel is written in; NULL where nothing says so */
    bool is_default;      /* stands back for what is registered after it */
    const void *shortcut; /* of a primitive that has one; it stays */
} tp_registration;

/* Alias keys: a registration for many runtime keys at once, in the order of Note [Kernel precedence]. */
typedef enum {
    TP_ALIAS_Dense, /* every backend of dense tensors: a kernel made of primitives (Note [Primitives]) */
    TP_ALIAS_CompositeExplicitAutogradNonFunctional,
    TP_ALIAS_CompositeExplicitAutograd,
    TP_ALIAS_CompositeImplicitAutograd,
    TP_ALIAS_Autograd,
    TP_ALIAS_Autocast, /* every device's autocast layer */
    TP_NUM_ALIAS
} tp_alias_key;
#define TP_ALIAS_KEY(name) ((tp_key)(TP_NUM_KEYS + TP_ALIAS_##name))

/* Tags that C code asks for (the rest is known to the generator and to Python only). */
#define TP_TAG_NONDETERMINISTIC_BITWISE (1u << 0)
#define TP_TAG_DYNAMIC_OUTPUT_SHAPE (1u << 1)
#define TP_TAG_DATA_DEPENDENT_OUTPUT (1u << 2)
#define TP_TAG_NEEDS_CONTIGUOUS_STRIDES (1u << 3)
#define TP_TAG_REFUSES_VALUES (1u << 4) /* of a primitive: `refuses_values`, or an argument `fault` */

#define TP_MOST_ARGUMENTS 64 /* of any operator */

/* What the YAML says of an operator: constant. */
typedef struct {
    const char *name;     /* "add" */
    const char *overload; /* "Tensor", or "" */
    const char *schema;
    const char *const *tags; /* NULL-terminated */
    const char *declared_at; /* "yaml/native_functions/pool.yaml:12" */
    const tp_argument *args, *returns;
    uint16_t nargs, nreturns;
    uint32_t tag_bits;
    const tp_signature *signature;        /* NULL for a custom operator: boxed only */
    tp_fn box;                            /* unboxed entry that packs its arguments: tp_box_and_call */
    tp_op *const *prims;                  /* the primitives that its Dense kernel calls, NULL-terminated; NULL: none */
    bool is_primitive;                    /* Note [Primitives] */
    bool is_optional;                     /* a primitive that a backend may lack: operators have parts for it */
    uint8_t guide;                        /* of a primitive: the argument whose backend runs it */
    uint8_t empty_list;                   /* the error where a list has no tensors: which of three, by its class */
    const char *registered_by;            /* the module whose import registers its kernels; NULL: they are there */
    const char *asked_as;                 /* the overload as which __torch_dispatch__ is asked ("Tensor"); NULL: this */
    const struct tp_batch_rule *batching; /* batched/rule.h; NULL: nothing is known */
    const struct tp_forward_rule *forward;       /* forward/rule.h; NULL: nothing is known */
    const struct tp_functional_rule *functional; /* functionalize/rule.h; NULL: nothing is known */
} tp_op_info;

/* Note [Registration lifetime] in cell.h says in which order these change under a call, which reads them without a
 * lock: through tp_live_key and tp_kernel_at. */
struct tp_op {
    tp_fn table[TP_NUM_KEYS]; /* the computed kernel per key; NULL: none */
    tp_keyset live;           /* keys that do something: the others are skipped */
    tp_keyset boxed_keys;     /* keys whose table entry is info->box: a boxed kernel lies behind it */
    tp_keyset shared_keys;    /* backends whose entry is an unboxed kernel of an alias key: operators and primitives do
                               * what it does, it reads and writes no memory itself */
    const tp_op_info *info;
    uint64_t slots_taken;                       /* keys and aliases that something is registered for */
    struct tp_registration_node *registrations; /* registrations.h */
    tp_cell *_Atomic *cells;                    /* of boxed kernels, by key; NULL: none was registered */
    tp_op *next;                                /* in its hash bucket */
    const void **shortcuts;                     /* per key, beside table; NULL: no backend gives one */
    bool told_of_loop; /* batched/fallback.c has warned that vmap calls it for each sample; atomic */
};

/* The key that a call with this set goes to, and the kernel there. */
TP_INLINE tp_key tp_live_key(const tp_op *op, tp_keyset ks) {
    return tp_highest_key(ks & __atomic_load_n(&op->live, __ATOMIC_ACQUIRE));
}
TP_INLINE tp_fn tp_kernel_at(const tp_op *op, tp_key key) { return __atomic_load_n(&op->table[key], __ATOMIC_RELAXED); }
TP_INLINE bool tp_is_boxed_at(const tp_op *op, tp_key key) {
    return __atomic_load_n(&op->boxed_keys, __ATOMIC_RELAXED) >> key & 1;
}

/* What a backend gives beside its kernel of a primitive, for calls that need no plan: the primitive's header says of
 * which type it is. It belongs to the table entry, so another kernel at the key takes it away. NULL: none. */
TP_INLINE const void *tp_shortcut_at(const tp_op *op, tp_key key) {
    const void **shortcuts = __atomic_load_n(&op->shortcuts, __ATOMIC_ACQUIRE);
    return shortcuts ? __atomic_load_n(&shortcuts[key], __ATOMIC_RELAXED) : NULL;
}

/* ---- the operator list ---- */
/* Declares `n` operators; both arrays stay. */
int tp_declare_ops(tp_op *ops, const tp_op_info *infos, int64_t n);
/* Takes an operator that was declared at run time out of the list, so that its name is free; it stays where it is, for
 * who has found it before. */
void tp_withdraw_op(tp_op *op);
tp_op *tp_find_op(const char *name, const char *overload); /* NULL if there is none, without an error */
tp_op *tp_find_op_qualified(const char *qualified);        /* "add.Tensor", "aten::add.Tensor" */
int64_t tp_op_count(void);
tp_op *tp_op_at(int64_t i);
/* "add.Tensor", or "relu", into a buffer of 128 bytes. */
const char *tp_op_name(const tp_op *op, char *buffer);
/* The number of an operator's argument; -1: it has none of the name. */
int tp_argument_named(const tp_op *op, const char *name);

/* ---- registration ---- */
typedef struct {
    tp_op *op;
    tp_fn fn;
    const char *source, *file; /* what tables show as the kernel's origin */
} tp_kernel_entry;
/* Registers the generator's kernels of one key. */
int tp_register_kernels(tp_key key, const tp_kernel_entry *entries, int64_t n);
/* Gives the kernel that was registered last for a key its shortcut, which stays (tp_shortcut_at). */
int tp_give_shortcut(tp_op *op, tp_key key, const void *shortcut);
/* The same boxed kernel for n operators in a row. */
int tp_register_for_all(tp_key key, tp_op *ops, int64_t n, tp_boxed_fn boxed, const char *source);
/* Registers one kernel at run time. With `allow_override` false, a kernel that was registered at run time for the key
 * is a RuntimeError that names both sources; tensorpy's own, and a default, stand back. Returns a handle > 0 for
 * tp_deregister, or -1. */
int64_t tp_register(tp_op *op, tp_key key, tp_fn fn, tp_boxed_fn boxed, void *context, void (*free_context)(void *),
                    const char *source, bool allow_override);
/* What an operator has at a key until somebody registers a kernel there. */
int64_t tp_register_default(tp_op *op, tp_key key, tp_boxed_fn boxed, const char *source);
/* A boxed kernel for every operator of a key that has none of its own (boxed NULL: fallthrough). */
int64_t tp_register_fallback(tp_key key, tp_boxed_fn boxed, void *context, void (*free_context)(void *),
                             const char *source);
int tp_deregister(int64_t handle);
/* How many kernels have come or gone since the library was loaded: who keeps what a call did asks whether they are the
 * same. */
int64_t tp_kernel_changes(void);
/* From now on operators are taken whole at these keys: Note [Kernel precedence]. */
void tp_take_whole(tp_keyset keys);
/* Computes every operator's table; called once at load, after the generated registrations. */
void tp_compute_all_tables(void);
/* The name of a runtime or alias key, and back (TP_KEY_Undefined for an unknown one). */
const char *tp_slot_name(tp_key key);
tp_key tp_slot_parse(const char *name);

/* ---- calling ---- */
/* Why there is no kernel: operator, arguments, backends that have it, the next step. Always returns -1. */
int tp_missing_kernel(const tp_op *op, tp_keyset ks, const tp_value *args) TP_COLD;
/* The same of an argument of a layout that `op` takes no such tensor of. */
int tp_refuse_layout(const tp_op *op, const tp_tensor *t) TP_COLD;
/* Calls op with boxed arguments from the top (computes the key set), or with a key set given. */
int tp_call_boxed(const tp_op *op, const tp_value *args, tp_value *results);
int tp_redispatch_boxed(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results);
/* The kernel at `key`, boxed or not, given the set `ks`: for layers that pass on another set than the rest below them.
 */
int tp_call_kernel_at(const tp_op *op, tp_key key, tp_keyset ks, const tp_value *args, tp_value *results);
/* The kernel that stands at a key now, for calls later, whatever stands there then: an unboxed function, or a boxed
 * kernel whose cell counts its holder as a call that is inside. */
typedef struct {
    tp_fn fn;
    tp_cell *cell;
} tp_held_kernel;
/* False, without an error: there is none at the key. */
bool tp_hold_kernel(const tp_op *op, tp_key key, tp_held_kernel *held);
void tp_let_go(const tp_held_kernel *held);
int tp_call_held(const tp_op *op, const tp_held_kernel *held, tp_keyset ks, const tp_value *args, tp_value *results);
/* The kernel that is next at the key of `ks` after the unboxed one that declined. */
int tp_call_next(const tp_op *op, tp_fn declined, tp_keyset ks, const tp_value *args, tp_value *results);
/* The same after a boxed kernel, which its context names. */
int tp_call_next_boxed(const tp_op *op, const void *declined, tp_keyset ks, const tp_value *args, tp_value *results);
/* The union of the tensors' key sets in boxed arguments. */
tp_keyset tp_keys_of_values(const tp_value *args, int n);

/* ---- looking ---- */
/* Whether a primitive's call may wait: it has no results but what it is given to write, and all that can go wrong with
 * values is checked by whoever calls it, so that no error of the user's comes later than its line. */
bool tp_can_wait(const tp_op *primitive);
/* Whether a result's sizes follow from values, or a value is read as a number: Meta tensors have none. */
bool tp_needs_values(const tp_op *op);
/* What an operator tagged data_dependent_output gives by its schema: one number, with which the program computes, or
 * one bool, by which it decides something. */
bool tp_reads_number(const tp_op *op);
bool tp_reads_bool(const tp_op *op);
/* Whether results are views of arguments, or only an argument's geometry changes. */
bool tp_gives_views(const tp_op *op);
/* The argument that the results are views of, or -1: the first whose type in the schema names an alias, where the
 * results' do and nothing is written. */
int tp_viewed_argument(const tp_op *op);
/* Where table[key] came from: as which key and from where it was registered; false if nothing is there. */
typedef struct {
    tp_key key;
    bool is_fallback, is_boxed, is_fallthrough;
    char source[160], file[160]; /* shortened where they are longer */
} tp_origin;
bool tp_find_origin(const tp_op *op, tp_key key, tp_origin *origin);
/* Whether a kernel was registered for the key itself: no alias key's, no fallback. Without a lock. */
bool tp_has_kernel(const tp_op *op, tp_key key);
/* The trace fallback's sink: called once per layer with the kernel's key, before and after; NULL switches tracing off
 * for this thread. */
typedef struct tp_tracer {
    void (*enter)(struct tp_tracer *t, const tp_op *op, tp_key key, const tp_value *args);
    void (*leave)(struct tp_tracer *t, const tp_op *op, tp_key key, double seconds, int status);
    bool primitives; /* it is told of them too */
} tp_tracer;
tp_tracer *tp_set_tracer(tp_tracer *t); /* returns the previous one; adds or removes Trace from the include set */
