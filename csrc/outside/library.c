/* library.c: what the parts of a library declare and implement. */
#include "outside/library.h"

#include "outside/backend.h"
#include "autograd/undifferentiated.h"
#include "core/error.h"
#include "dispatch/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE 256

/* ---- kernels ---- */

typedef struct {
    tp_boxed_fn boxed;
    void *context;
    void (*free_context)(void *);
    char where[]; /* "scale_cpu at scale.c:12" */
} outside_kernel;

static void free_kernel(void *context) {
    outside_kernel *k = context;
    if (k->free_context) k->free_context(k->context);
    free(k);
}

/* An operator that returns its arguments alone gives no results (op.h); every other gives all of them. */
static bool has_results(const tp_op *op, const tp_value *results) {
    for (int i = 0; i < op->info->nreturns; i++) {
        const tp_argument *wanted = &op->info->returns[i];
        if (wanted->is_write && results[i].tag == TP_NONE) continue;
        if (results[i].tag != wanted->tag || (wanted->tag == TP_TENSOR && !results[i].tensor)) return false;
    }
    return true;
}

static int run_kernel(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const outside_kernel *k = context;
    char name[128];
    int status = k->boxed(op, ks, args, results, k->context);
    if (tp_likely(status == 0 && !tp_error_pending() && has_results(op, results))) return 0;
    for (int i = 0; i < op->info->nreturns; i++) tp_value_release(&results[i]);
    if (tp_take_decline()) return tp_call_next_boxed(op, context, ks, args, results);
    if (tp_error_pending()) return -1;
    return tp_fail(TP_RuntimeError, "%s: its kernel %s %s: %s", tp_op_name(op, name), k->where,
                   status ? "failed and set no error" : "gave no results", op->info->schema);
}

/* ---- what a part does ---- */

static void print_part(const tp_library *l, char *out) { snprintf(out, PLACE, "%s:%d", l->part->file, l->part->line); }

int tp_library_define(tp_library *l, const char *schema) {
    char whole[1024], place[PLACE];
    if (!schema) return tp_fail(TP_ValueError, "tp_def(): the schema is NULL");
    if (l->part->kind == TENSORPY_PART_IMPL)
        return tp_fail(TP_RuntimeError, "tp_def() in an IMPL part, which registers kernels: %s", schema);
    if (snprintf(whole, sizeof whole, "%s::%s", l->part->ns, schema) >= (int)sizeof whole)
        return tp_fail(TP_ValueError, "tp_def(): the schema is too long: %.80s...", schema);
    print_part(l, place);
    int64_t before = tp_op_count();
    tp_op *op = tp_define(whole, place);
    if (!op) return -1;
    if (tp_op_count() == before)
        return tp_fail(TP_RuntimeError, "%s is declared already, at %s; now at %s", op->info->name,
                       op->info->declared_at, place);
    if (tp_library_keep(l, op) < 0) return tp_undefine(op), -1;
    return tp_register_defaults(op);
}

tp_op *tp_library_find(const tp_library *l, const char *op) {
    char name[160];
    const char *ns = l->part->ns;
    bool own = strcmp(ns, "aten") == 0;
    const char *colons = op ? strstr(op, "::") : NULL;
    if (!op) return tp_fail(TP_ValueError, "tp_impl(): the operator is NULL"), NULL;
    if (colons && strncmp(op, ns, (size_t)(colons - op)) != 0)
        return tp_fail(TP_ValueError, "tp_impl(): %s is not of the namespace '%s' of this part", op, ns), NULL;
    snprintf(name, sizeof name, own || colons ? "%s%s" : "%s::%s", own || colons ? "" : ns, op);
    tp_op *found = tp_find_op_qualified(name);
    if (!found)
        tp_fail(TP_RuntimeError, "tp_impl(): there is no operator %s: load the library that declares it first", name);
    return found;
}

/* `op` NULL: the key's fallback. */
static int add_kernel(tp_library *l, tp_key key, tp_op *op, tp_boxed_fn boxed, void *context,
                      void (*free_context)(void *), const char *name) {
    char place[PLACE];
    if (tp_library_reserve(l) < 0) return -1;
    snprintf(place, sizeof place, "%s at %s:%d", name ? name : "a kernel", l->part->file, l->part->line);
    outside_kernel *k = boxed ? malloc(sizeof *k + strlen(place) + 1) : NULL;
    if (boxed && !k) return tp_fail_memory((int64_t)sizeof *k);
    if (k) {
        *k = (outside_kernel){boxed, context, free_context};
        strcpy(k->where, place);
    }
    tp_boxed_fn run = k ? run_kernel : NULL;
    void (*end)(void *) = k ? free_kernel : NULL;
    int64_t handle =
        op ? tp_register(op, key, NULL, run, k, end, place, false) : tp_register_fallback(key, run, k, end, place);
    if (handle <= 0) free(k);
    return tp_library_note(l, handle);
}

/* Whether the part at hand may register a kernel for `op`, and for which key; -1 and the error set. */
static int check_part(const tp_library *l, const char *op, tp_key *key) {
    bool everything = op && !*op;
    if (l->part->kind != TENSORPY_PART_IMPL)
        return tp_fail(TP_RuntimeError, "tp_impl(%s) belongs in a TENSORPY_LIBRARY_IMPL", op ? op : "NULL");
    if (everything != (strcmp(l->part->ns, "_") == 0))
        return tp_fail(TP_RuntimeError, "a fallback is for all namespaces: TENSORPY_LIBRARY_IMPL(_, %s, m)",
                       l->part->key);
    *key = tp_find_slot(l->part->key);
    if (*key == TP_KEY_Undefined || (everything && *key >= TP_NUM_KEYS))
        return tp_fail(TP_RuntimeError, "there is no dispatch key '%s'%s", l->part->key,
                       *key == TP_KEY_Undefined ? "" : " that a fallback can be for");
    return 0;
}

int tp_library_implement_boxed(tp_library *l, const char *op, tp_boxed_fn boxed, void *context,
                               void (*free_context)(void *), const char *name) {
    tp_key key = TP_KEY_Undefined;
    if (check_part(l, op, &key) < 0) return -1;
    bool everything = op && !*op;
    tp_op *found = everything ? NULL : tp_library_find(l, op);
    return found || everything ? add_kernel(l, key, found, boxed, context, free_context, name) : -1;
}

int tp_library_implement(tp_library *l, const char *op, const tp_kernel *kernel) {
    char where[PLACE];
    tp_key key = TP_KEY_Undefined;
    if (!kernel || !kernel->boxed) return tp_fail(TP_ValueError, "tp_impl(%s): the kernel is NULL", op ? op : "NULL");
    tp_op *found = tp_library_find(l, op);
    snprintf(where, sizeof where, "%s at %s:%d", kernel->name, kernel->file, kernel->line);
    if (!found || tp_check_codes(found, kernel->codes, where) < 0 || check_part(l, op, &key) < 0) return -1;
    return add_kernel(l, key, found, kernel->boxed, NULL, NULL, kernel->name);
}

/* ---- types ---- */

static char code_of_argument(const tp_argument *a) {
    switch (a->tag) {
    case TP_TENSOR: return 'T';
    case TP_TENSORS: return 't';
    case TP_SCALAR: return 'S';
    case TP_SCALARS: return 's';
    case TP_INT: return a->optional ? 'j' : 'J';
    case TP_FLOAT: return a->optional ? 'f' : 'F';
    case TP_BOOL_: return a->optional ? 'b' : 'B';
    case TP_STR: return 'Z';
    case TP_DTYPE: return 'D';
    case TP_LAYOUT: return 'L';
    case TP_MEMORY_FORMAT: return 'M';
    case TP_DEVICE: return 'V';
    case TP_GENERATOR: return 'G';
    case TP_STORAGE: return 'O';
    case TP_STREAM: return 'Q';
    case TP_INTS_: return 'I';
    case TP_FLOATS: return 'R';
    case TP_BOOLS: return 'K';
    default: return '?';
    }
}

/* The C type that a letter stands for. */
static const char *type_of(char code) {
    static const struct {
        char code;
        const char *type;
    } types[] = {
        {'T', "tp_tensor *"},    {'t', "tp_tensors"},       {'S', "const tp_scalar *"},
        {'s', "tp_scalars"},     {'J', "int64_t"},          {'j', "tp_opt_int"},
        {'F', "double"},         {'f', "tp_opt_float"},     {'B', "bool"},
        {'b', "tp_opt_bool"},    {'Z', "const char *"},     {'D', "tp_dtype"},
        {'L', "tp_layout"},      {'M', "tp_memory_format"}, {'V', "tp_device"},
        {'G', "tp_generator *"}, {'O', "tp_storage *"},     {'Q', "tp_stream"},
        {'I', "tp_ints"},        {'R', "tp_floats"},        {'K', "tp_bools"},
        {'i', "int64_t *"},      {'d', "double *"},         {'o', "bool *"},
        {'v', "tp_value *"},     {'2', "tp_tensor2"},       {'3', "tp_tensor3"},
        {'4', "tp_tensor4"},     {'5', "tp_tensor5"},       {'0', "int"},
    };
    for (size_t i = 0; i < TP_COUNTOF(types); i++)
        if (types[i].code == code) return types[i].type;
    return "nothing";
}

/* What a kernel returns, and in `outs` what it stores through pointers: numbers, or all its results, boxed ('v'). */
static char code_of_results(const tp_op_info *info, char *outs) {
    bool all_written = true, all_tensors = true;
    for (int i = 0; i < info->nreturns; i++) {
        all_written &= info->returns[i].is_write;
        all_tensors &= info->returns[i].tag == TP_TENSOR;
    }
    *outs = 0;
    if (all_written) return '0';
    if (info->nreturns == 1 && info->returns[0].tag == TP_TENSOR_SEQ) return 't';
    if (all_tensors && info->nreturns <= 5) return info->nreturns == 1 ? 'T' : (char)('0' + info->nreturns);
    for (int i = 0; i < info->nreturns; i++) {
        const uint8_t tag = info->returns[i].tag;
        outs[i] = tag == TP_INT ? 'i' : tag == TP_FLOAT ? 'd' : tag == TP_BOOL_ ? 'o' : 0;
        outs[i + 1] = 0;
    }
    if ((int)strlen(outs) < info->nreturns) strcpy(outs, "v");
    return '0';
}

static int wrong_type(const tp_op *op, const char *where, const char *what, char wanted, char given) {
    char name[128];
    return tp_fail(TP_TypeError, "%s: %s of %s is %s in C, not %s: %s", where, what, tp_op_name(op, name),
                   wanted == 't' && !*what ? "tp_tensor_seq *" : type_of(wanted), type_of(given), op->info->schema);
}

int tp_check_codes(const tp_op *op, const char *codes, const char *where) {
    const tp_op_info *info = op->info;
    char outs[TP_MAX_RESULTS + 1], result = code_of_results(info, outs), what[160];
    if (codes[0] != result) return wrong_type(op, where, "what it returns", result, codes[0]);
    const char *at = codes + 1 + (codes[1] == 'k');
    for (int i = 0; i < info->nargs; i++, at += *at != 0) {
        char wanted = code_of_argument(&info->args[i]);
        snprintf(what, sizeof what, "argument '%s'", info->args[i].name);
        if (*at != wanted) return wrong_type(op, where, what, wanted, *at);
    }
    bool boxed = *outs && strcmp(at, "v") == 0;
    if (!boxed && strcmp(at, outs) != 0) return wrong_type(op, where, "what follows the arguments", *outs, *at);
    return 0;
}
