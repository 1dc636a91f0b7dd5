/* copies.c: copies of the arguments that are no tensors and that a node keeps. */
#include "autograd/node.h"

#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

tp_ints tp_save_ints(tp_ints v) {
    if (v.size <= 0) return (tp_ints){NULL, v.size};
    int64_t *copy = malloc((size_t)v.size * sizeof *copy);
    if (!copy) return tp_fail_memory(v.size * (int64_t)sizeof *copy), TP_NO_INTS;
    memcpy(copy, v.data, (size_t)v.size * sizeof *copy);
    return (tp_ints){copy, v.size};
}

void tp_saved_ints_free(tp_ints *v) {
    free((void *)v->data);
    *v = TP_NO_INTS;
}

char *tp_save_str(const char *s) { return s ? strdup(s) : NULL; }

tp_scalar *tp_save_scalar(const tp_scalar *s) {
    tp_scalar *copy = s ? malloc(sizeof *copy) : NULL;
    if (copy) *copy = *s;
    return copy;
}
