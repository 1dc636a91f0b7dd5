/* schema.c: reads a schema into what the generator writes for the operators of the YAML (tp_op_info). */
#include "dispatch/schema.h"

#include "core/error.h"
#include "core/lock.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_NAME 120 /* what tp_op_name has room for */

/* A declared operator with all that its info points to. */
typedef struct definition {
    tp_op op; /* first: an operator of `dynamic` is one of these */
    tp_op_info info;
    tp_value *defaults; /* one per argument; those without a default are not read */
    struct definition *next_undefined;
    bool is_method, warned;
    const char *warns; /* at its first call; NULL: nothing */
    uint8_t out_dtype;
    bool out_apart;
} definition;

/* Taken out; who found one before calls it again when it is declared again. Under the lock Operators. */
static definition *undefined;

typedef struct {
    const char *text, *at;
    const char *problem;   /* the first; NULL while there is none */
    char *room, *room_end; /* the names, as C strings */
} reader;

/* ---- words ---- */

static bool complain(reader *r, const char *problem) {
    if (!r->problem) r->problem = problem;
    return false;
}

static void skip_spaces(reader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
}

static bool take(reader *r, const char *token) {
    skip_spaces(r);
    size_t n = strlen(token);
    if (strncmp(r->at, token, n) != 0) return false;
    r->at += n;
    return true;
}

static bool expect(reader *r, const char *token, const char *problem) { return take(r, token) || complain(r, problem); }

static char *keep(reader *r, const char *from, size_t n) {
    if ((size_t)(r->room_end - r->room) <= n) return complain(r, "the schema is too long"), (char *)"";
    char *kept = r->room;
    memcpy(kept, from, n);
    kept[n] = 0;
    r->room += n + 1;
    return kept;
}

static size_t word_length(const char *at) {
    size_t n = 0;
    if (isdigit((unsigned char)*at)) return 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_') n++;
    return n;
}

static const char *word(reader *r, const char *problem) {
    skip_spaces(r);
    size_t n = word_length(r->at);
    if (!n) return complain(r, problem), "";
    const char *kept = keep(r, r->at, n);
    r->at += n;
    return kept;
}

/* ---- types ---- */

static const struct {
    const char *name;
    uint8_t tag, list; /* of one, and of a list of them; TP_NONE: there is no such list */
} types[] = {
    {"Tensor", TP_TENSOR, TP_TENSORS}, {"Scalar", TP_SCALAR, TP_SCALARS},
    {"int", TP_INT, TP_INTS_},         {"SymInt", TP_INT, TP_INTS_},
    {"float", TP_FLOAT, TP_FLOATS},    {"bool", TP_BOOL_, TP_BOOLS},
    {"str", TP_STR, TP_NONE},          {"ScalarType", TP_DTYPE, TP_NONE},
    {"Layout", TP_LAYOUT, TP_NONE},    {"MemoryFormat", TP_MEMORY_FORMAT, TP_NONE},
    {"Device", TP_DEVICE, TP_NONE},    {"Generator", TP_GENERATOR, TP_NONE},
    {"SymBool", TP_BOOL_, TP_BOOLS},   {"Storage", TP_STORAGE, TP_NONE},
    {"Stream", TP_STREAM, TP_NONE},    {"DeviceIndex", TP_INT, TP_NONE},
};

/* `(a!)`, `(a -> *)`: whether it writes. */
static bool take_annotation(reader *r, bool *writes) {
    if (*r->at != '(') return true;
    const char *end = strchr(r->at, ')');
    if (!end) return complain(r, "the annotation of an alias has no ')'");
    *writes = memchr(r->at, '!', (size_t)(end - r->at)) != NULL;
    r->at = end + 1;
    return true;
}

/* `Tensor(a!)? `, `int[2]`, `Tensor?[]`: the type without its annotation, and what values of it are. */
static bool read_type(reader *r, tp_argument *a) {
    const char *name = word(r, "a type is missing");
    size_t k = 0;
    while (k < TP_COUNTOF(types) && strcmp(types[k].name, name) != 0) k++;
    if (k == TP_COUNTOF(types))
        return complain(r, strcmp(name, "int64_t") == 0 || strcmp(name, "int32_t") == 0
                               ? "int64_t and int32_t are C's types. Use `SymInt` or `int`"
                           : strcmp(name, "double") == 0 ? "double is a type of C's. Use `float`"
                                                         : "unknown type specifier: there is no such type");
    char suffix[32] = "";
    size_t n = 0;
    a->tag = types[k].tag;
    if (!take_annotation(r, &a->is_write)) return false;
    while (*r->at == '[' || *r->at == '?') {
        const char *end = *r->at == '[' ? strchr(r->at, ']') : r->at;
        size_t length = end ? (size_t)(end - r->at) + 1 : sizeof suffix;
        if (n + length >= sizeof suffix) return complain(r, "the list's size has no ']'");
        a->optional = *r->at == '?';
        if (*r->at == '[') {
            if (a->tag != types[k].tag || types[k].list == TP_NONE) return complain(r, "there are no such lists");
            a->tag = types[k].list;
        }
        memcpy(suffix + n, r->at, length);
        n += length;
        r->at += length;
        if (!take_annotation(r, &a->is_write)) return false;
    }
    char whole[64];
    int size = snprintf(whole, sizeof whole, "%s%.*s", name, (int)n, suffix);
    a->type = keep(r, whole, (size_t)size);
    return !r->problem;
}

int tp_list_size_of(const char *type) {
    const char *open = strchr(type, '[');
    return open ? atoi(open + 1) : 0;
}

/* ---- defaults ---- */

/* The text of a default: up to the comma or parenthesis that ends the argument. */
static const char *default_text(reader *r) {
    skip_spaces(r);
    const char *from = r->at;
    int depth = 0;
    char quote = 0;
    for (; *r->at; r->at++) {
        if (quote) {
            if (*r->at == '\\' && r->at[1]) r->at++;
            else if (*r->at == quote) quote = 0;
        } else if (*r->at == '"' || *r->at == '\'') quote = *r->at;
        else if (*r->at == '[') depth++;
        else if (*r->at == ']') depth--;
        else if (depth == 0 && (*r->at == ',' || *r->at == ')')) break;
    }
    const char *end = r->at;
    while (end > from && isspace((unsigned char)end[-1])) end--;
    if (end == from) return complain(r, "a default is missing after '='"), "";
    return keep(r, from, (size_t)(end - from));
}

static bool number_of(const char *text, tp_scalar *out) {
    char *end;
    long long i = strtoll(text, &end, 0);
    if (end != text && !*end) return *out = (tp_scalar){.kind = TP_SCALAR_INT, .i = i}, true;
    double d = strtod(text, &end);
    if (end != text && !*end) return *out = (tp_scalar){.kind = TP_SCALAR_FLOAT, .f = d}, true;
    bool yes = strcmp(text, "True") == 0;
    if (yes || strcmp(text, "False") == 0) return *out = (tp_scalar){.kind = TP_SCALAR_BOOL, .b = yes}, true;
    return false;
}

/* `[0, 1]`, or `0` for so many as the type says. */
static bool list_default(const tp_argument *a, tp_value *v) {
    tp_scalar numbers[TP_MAX_DIMS];
    char text[1024];
    int n = 0;
    if (strlen(a->default_value) >= sizeof text || strchr(a->default_value, '[') != strrchr(a->default_value, '['))
        return false;
    snprintf(text, sizeof text, "%s", a->default_value);
    bool whole = text[0] != '[';
    for (char *rest = text, *item; (item = strtok_r(rest, "[], ", &rest)); n++)
        if (n == TP_MAX_DIMS || !number_of(item, &numbers[n])) return false;
    for (int size = tp_list_size_of(a->type); whole && n < size && n < TP_MAX_DIMS; n++) numbers[n] = numbers[0];
    v->tag = a->tag;
    void *room = calloc((size_t)n + 1, sizeof(tp_scalar));
    if (!room) return false;
    for (int i = 0; i < n; i++) {
        if (a->tag == TP_INTS_) ((int64_t *)room)[i] = tp_scalar_int(&numbers[i]);
        else if (a->tag == TP_FLOATS) ((double *)room)[i] = tp_scalar_double(&numbers[i]);
        else if (a->tag == TP_BOOLS) ((bool *)room)[i] = tp_scalar_bool(&numbers[i]);
        else ((tp_scalar *)room)[i] = numbers[i];
    }
    if (a->tag == TP_INTS_) v->ints = (tp_ints){room, n};
    else if (a->tag == TP_FLOATS) v->floats = (tp_floats){room, n};
    else if (a->tag == TP_BOOLS) v->bools = (tp_bools){room, n};
    else if (a->tag == TP_SCALARS) v->scalars = (tp_scalars){room, n};
    else return free(room), false;
    return true;
}

static bool str_default(const char *text, tp_value *v) {
    size_t n = strlen(text);
    if (n < 2 || (*text != '"' && *text != '\'') || text[n - 1] != *text) return false;
    char *kept = malloc(n), *to = kept;
    if (!kept) return false;
    for (const char *from = text + 1; from < text + n - 1; from++) { /* a backslash: the character after it */
        if (*from == '\\' && from + 1 < text + n - 1) from++;
        *to++ = *from;
    }
    *to = 0;
    *v = (tp_value){.tag = TP_STR, .str = kept};
    return true;
}

/* "cuda:0", cpu: with quotation marks or without. */
static bool device_default(const char *text, tp_value *v) {
    tp_value quoted = {.tag = TP_NONE};
    bool in_quotes = str_default(text, &quoted);
    tp_device device;
    bool known = tp_device_parse(in_quotes ? quoted.str : text, &device) >= 0;
    if (in_quotes) free((char *)quoted.str);
    if (known) *v = (tp_value){.tag = TP_DEVICE, .device = device};
    else tp_error_clear();
    return known;
}

static bool dtype_default(const char *text, tp_value *v) {
    static const char *const others[][2] = {
        {"float", "float32"}, {"double", "float64"}, {"long", "int64"}, {"int", "int32"}};
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        if (strcmp(text, others[i][0]) == 0) text = others[i][1];
    for (int d = 0; d < TP_NUM_DTYPES; d++)
        if (strcmp(text, tp_dtype_names[d]) == 0) return *v = (tp_value){.tag = TP_DTYPE, .i = d}, true;
    return false;
}

/* What schemas write by name: memory formats, and the reductions of losses. */
static bool named_default(const tp_argument *a, tp_value *v) {
    static const struct {
        const char *name;
        uint8_t tag;
        int value;
    } names[] = {
        {"contiguous_format", TP_MEMORY_FORMAT, TP_CONTIGUOUS_FORMAT},
        {"preserve_format", TP_MEMORY_FORMAT, TP_PRESERVE_FORMAT},
        {"channels_last", TP_MEMORY_FORMAT, TP_CHANNELS_LAST},
        {"channels_last_3d", TP_MEMORY_FORMAT, TP_CHANNELS_LAST_3D},
        {"Mean", TP_INT, 1},
        {"Sum", TP_INT, 2},
    };
    for (size_t i = 0; i < TP_COUNTOF(names); i++)
        if (names[i].tag == a->tag && strcmp(names[i].name, a->default_value) == 0)
            return *v = (tp_value){.tag = a->tag, .i = names[i].value}, true;
    return false;
}

bool tp_read_default(const tp_argument *a, tp_value *v) {
    tp_scalar number;
    if (named_default(a, v)) return true;
    *v = (tp_value){.tag = TP_NONE};
    if (strcmp(a->default_value, "None") == 0) return a->optional;
    switch (a->tag) {
    case TP_STR: return str_default(a->default_value, v);
    case TP_DTYPE: return dtype_default(a->default_value, v);
    case TP_DEVICE: return device_default(a->default_value, v);
    case TP_INTS_:
    case TP_FLOATS:
    case TP_BOOLS:
    case TP_SCALARS: return list_default(a, v);
    case TP_INT:
    case TP_FLOAT:
    case TP_BOOL_:
    case TP_SCALAR: break;
    default: return false;
    }
    if (!number_of(a->default_value, &number)) return false;
    if ((a->tag == TP_INT && number.kind != TP_SCALAR_INT) || (a->tag == TP_BOOL_ && number.kind != TP_SCALAR_BOOL))
        return false;
    v->tag = a->tag;
    if (a->tag == TP_INT) v->i = tp_scalar_int(&number);
    if (a->tag == TP_FLOAT) v->f = tp_scalar_double(&number);
    if (a->tag == TP_BOOL_) v->b = tp_scalar_bool(&number);
    if (a->tag != TP_SCALAR) return true;
    tp_scalar *kept = malloc(sizeof *kept);
    if (kept) *kept = number;
    v->scalar = kept;
    return kept != NULL;
}

/* ---- a schema ---- */

static bool is_taken(const tp_argument *arguments, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(arguments[i].name, name) == 0) return true;
    return false;
}

static bool read_arguments(reader *r, tp_argument *arguments, tp_value *defaults, int *n) {
    bool keyword = false, has_default = false;
    if (!expect(r, "(", "'(' is missing after the name")) return false;
    if (take(r, ")")) return true;
    do {
        if (take(r, "*")) {
            if (keyword) return complain(r, "'*' stands twice");
            keyword = true;
            continue;
        }
        tp_argument *a = &arguments[*n];
        if (*n == TP_MAX_ARGUMENTS) return complain(r, "there are too many arguments");
        if (!read_type(r, a)) return false;
        a->name = word(r, "an argument has no name");
        if (r->problem) return false;
        if (is_taken(arguments, *n, a->name)) return complain(r, "two arguments have this name");
        a->kwarg_only = keyword;
        a->is_out = keyword && a->is_write;
        if (take(r, "=")) {
            a->default_value = default_text(r);
            if (r->problem || !tp_read_default(a, &defaults[*n])) return complain(r, "this is no default for its type");
            has_default = true;
        } else if (has_default && !keyword)
            return complain(r, "an argument without a default stands after one with it");
        ++*n;
    } while (take(r, ","));
    return expect(r, ")", "',' or ')' is missing after an argument");
}

/* `((Tensor))`: the one result is given as a tuple of one part. Its type keeps the parentheses. */
static bool read_one_tuple(reader *r, tp_argument *a) {
    char type[80];
    if (!read_type(r, a) || !expect(r, ")", "a tuple among the results has one part")) return false;
    int n = snprintf(type, sizeof type, "(%s)", a->type);
    a->type = keep(r, type, (size_t)n);
    return !r->problem;
}

static bool read_return(reader *r, tp_argument *a) {
    if (!(take(r, "(") ? read_one_tuple(r, a) : read_type(r, a))) return false;
    skip_spaces(r);
    a->name = word_length(r->at) ? word(r, "") : "";
    if (a->tag == TP_TENSORS) a->tag = TP_TENSOR_SEQ;
    else if (a->tag == TP_SCALAR) a->tag = TP_NUMBER;
    return true;
}

static bool read_returns(reader *r, tp_argument *returns, int *n) {
    if (!expect(r, "->", "'->' and what it returns are missing")) return false;
    if (!take(r, "(")) {
        if (!read_return(r, &returns[0])) return false;
        *n = 1;
    } else if (!take(r, ")")) {
        do {
            if (*n == TP_MAX_RESULTS) return complain(r, "there are too many results");
            if (!read_return(r, &returns[*n])) return false;
            ++*n;
        } while (take(r, ","));
        if (!expect(r, ")", "',' or ')' is missing after a result")) return false;
        for (int i = 0; *n > 1 && i < *n; i++)
            if (*returns[i].type == '(') return complain(r, "a tuple stands among several results");
    }
    skip_spaces(r);
    return !*r->at || complain(r, "something stands after the schema");
}

/* "myops::scale" and "overload", or "". */
static bool read_name(reader *r, tp_op_info *info) {
    skip_spaces(r);
    const char *from = r->at, *space = word(r, "a schema begins with 'namespace::name'");
    if (r->problem) return false;
    if (!take(r, "::")) return complain(r, "the namespace is missing: write 'namespace::name'");
    if (strcmp(space, "aten") == 0 || strcmp(space, "prim") == 0)
        return complain(r, "this namespace is tensorpy's own: declare operators in one of yours");
    word(r, "a name is missing after '::'");
    info->name = keep(r, from, (size_t)(r->at - from));
    info->overload = take(r, ".") ? word(r, "the overload's name is missing after '.'") : "";
    if (strlen(info->name) + strlen(info->overload) > LONGEST_NAME) return complain(r, "the name is too long");
    return !r->problem;
}

static bool read_schema(reader *r, definition *d, tp_argument *arguments, tp_argument *returns) {
    int nargs = 0, nreturns = 0;
    bool ok = read_name(r, &d->info) && read_arguments(r, arguments, d->defaults, &nargs) &&
              read_returns(r, returns, &nreturns);
    d->info.args = arguments;
    d->info.returns = returns;
    d->info.nargs = (uint16_t)nargs;
    d->info.nreturns = (uint16_t)nreturns;
    return ok && !r->problem;
}

/* ---- declaring ---- */

static const char *const no_tags[] = {NULL};

/* What stands in the tables for kernels in cells; without a C signature nobody calls it. */
static int boxed_only(void) {
    return tp_fail(TP_RuntimeError, "an operator that was declared at run time is called boxed");
}

static int fail_schema(const reader *r) {
    return tp_fail(TP_RuntimeError, "%s, at \"%.40s\" in the schema %s", r->problem, r->at, r->text);
}

/* Room for `items` arguments and results, and for the words of the schema, which are as many characters at most. */
static definition *new_definition(const char *schema, const char *source, size_t items, reader *r) {
    size_t words = 4 * strlen(schema) + 64;
    definition *d = calloc(1, sizeof *d + 2 * items * sizeof(tp_argument) + items * sizeof(tp_value));
    char *room = malloc(words + strlen(schema) + strlen(source) + 2);
    if (!d || !room) {
        free(d);
        free(room);
        return tp_fail_memory((int64_t)words), NULL;
    }
    d->info.schema = strcpy(room, schema);
    d->info.declared_at = strcpy(room + strlen(schema) + 1, source);
    d->info.tags = no_tags;
    d->info.box = (tp_fn)boxed_only;
    d->defaults = (tp_value *)((tp_argument *)(d + 1) + 2 * items);
    *r = (reader){.text = d->info.schema, .at = d->info.schema};
    r->room = room + strlen(schema) + strlen(source) + 2;
    r->room_end = r->room + words;
    return d;
}

/* Frees a definition that failed. What its defaults hold besides is little, and stays. */
static tp_op *give_up(definition *d) {
    free((char *)d->info.schema);
    free(d);
    return NULL;
}

void tp_undefine(tp_op *op) {
    tp_withdraw_op(op);
    tp_lock(TP_LOCK_Operators);
    ((definition *)op)->next_undefined = undefined;
    undefined = (definition *)op;
    tp_unlock(TP_LOCK_Operators);
}

static definition *take_undefined(const char *schema) {
    tp_lock(TP_LOCK_Operators);
    definition **at = &undefined, *found;
    while (*at && strcmp((*at)->info.schema, schema) != 0) at = &(*at)->next_undefined;
    found = *at;
    if (found) *at = found->next_undefined;
    tp_unlock(TP_LOCK_Operators);
    return found;
}

/* The operator that had this schema before, in place of `d`. */
static tp_op *define_again(definition *again, definition *d) {
    again->info.declared_at = d->info.declared_at; /* the texts of d stay for it */
    again->info.prims = NULL;
    again->info.batching = NULL;
    again->info.forward = NULL;
    again->info.empty_list = 0;
    again->info.registered_by = NULL;
    again->out_dtype = 0;
    again->out_apart = false;
    again->is_method = false;
    again->warns = NULL;
    again->warned = false;
    again->op.told_of_loop = false;
    tp_describe_tags(&again->op, no_tags);
    free(d);
    if (tp_declare_ops(&again->op, &again->info, 1) == 0) return &again->op;
    return NULL;
}

bool tp_is_definition(const tp_op *op) { return strstr(op->info->name, "::") && !op->info->is_primitive; }

tp_op *tp_define(const char *schema, const char *source) {
    size_t items = 2;
    reader r;
    for (const char *c = schema; *c; c++) items += *c == ',';
    definition *d = new_definition(schema, source, items, &r);
    if (!d) return NULL;
    tp_argument *arguments = (tp_argument *)(d + 1);
    if (!read_schema(&r, d, arguments, arguments + items)) return fail_schema(&r), give_up(d);
    tp_op *there = tp_find_op(d->info.name, d->info.overload);
    if (there && strcmp(there->info->schema, schema) == 0) return give_up(d), there;
    if (there) {
        tp_fail(TP_RuntimeError, "%s is declared already, at %s, as %s; at %s it is %s", d->info.name,
                there->info->declared_at, there->info->schema, source, schema);
        return give_up(d);
    }
    definition *again = take_undefined(schema);
    if (again) return define_again(again, d);
    return tp_declare_ops(&d->op, &d->info, 1) < 0 ? give_up(d) : &d->op;
}

void tp_describe_prims(tp_op *op, tp_op *const *prims) { ((definition *)op)->info.prims = prims; }
void tp_describe_batching(tp_op *op, const struct tp_batch_rule *batching) {
    ((definition *)op)->info.batching = batching;
}
void tp_describe_forward(tp_op *op, const struct tp_forward_rule *forward) {
    ((definition *)op)->info.forward = forward;
}
void tp_describe_out_dtype(tp_op *op, int out_dtype) { ((definition *)op)->out_dtype = (uint8_t)out_dtype; }
int tp_out_dtype_of(const tp_op *op) { return ((const definition *)op)->out_dtype; }
void tp_describe_out_apart(tp_op *op) { ((definition *)op)->out_apart = true; }
bool tp_out_is_apart(const tp_op *op) { return ((const definition *)op)->out_apart; }
void tp_describe_empty_list(tp_op *op, tp_error_class cls) { ((definition *)op)->info.empty_list = (uint8_t)cls; }
void tp_describe_registered_by(tp_op *op, const char *module) { ((definition *)op)->info.registered_by = module; }
void tp_describe_warning(tp_op *op, const char *text) { ((definition *)op)->warns = text; }
const char *tp_warning_of(const tp_op *op, bool **warned) {
    definition *d = (definition *)op;
    *warned = &d->warned;
    return d->warns;
}
void tp_describe_method(tp_op *op) { ((definition *)op)->is_method = true; }
bool tp_is_defined_method(const tp_op *op) { return ((const definition *)op)->is_method; }

void tp_describe_tags(tp_op *op, const char *const *tags) {
    static const struct {
        const char *tag;
        uint32_t bit;
    } known[] = {
        {"nondeterministic_bitwise", TP_TAG_NONDETERMINISTIC_BITWISE},
        {"dynamic_output_shape", TP_TAG_DYNAMIC_OUTPUT_SHAPE},
        {"data_dependent_output", TP_TAG_DATA_DEPENDENT_OUTPUT},
        {"needs_contiguous_strides", TP_TAG_NEEDS_CONTIGUOUS_STRIDES},
    };
    definition *d = (definition *)op;
    d->info.tags = tags;
    d->info.tag_bits = 0;
    for (; *tags; tags++)
        for (size_t i = 0; i < TP_COUNTOF(known); i++)
            if (strcmp(known[i].tag, *tags) == 0) d->info.tag_bits |= known[i].bit;
}

const tp_value *tp_default_of(const tp_op *op, int argument) {
    if (!tp_is_definition(op) || !op->info->args[argument].default_value) return NULL;
    return &((const definition *)op)->defaults[argument];
}
