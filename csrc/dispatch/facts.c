/* facts.c: what an operator's schema and tags say of it. */
#include "dispatch/op.h"

#include <string.h>

bool tp_needs_values(const tp_op *op) {
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

bool tp_can_wait(const tp_op *primitive) {
    const tp_op_info *info = primitive->info;
    if (info->nreturns || info->tag_bits & TP_TAG_REFUSES_VALUES) return false;
    for (int i = 0; i < info->nargs; i++)
        if (info->args[i].tag == TP_GENERATOR || info->args[i].tag == TP_STORAGE || info->args[i].tag == TP_STREAM)
            return false;
    return true;
}

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
