/* layout.c: see layout.h. */
#include "opencl/kernels/layout.h"

#include "opencl/kernels/element.h"

#include <stdlib.h>

#define PIECE 16384    /* elements of a row that one work-item of a CPU device takes, */
#define SHORT_PIECE 64 /* and where an operand lies across: neighbouring rows then share its cache lines */
#define LINE 64
#define MOST_WORDS 256 /* of a geometry */

/* ---- text ---- */

void tp_cl_add_types(tp_text *s, const tp_cl_layout *l) {
    tp_text_add(s, "typedef %s index;\n", l->small ? "uint" : "ulong");
    if (l->ndim)
        tp_text_add(s, "typedef struct { long strides[%d]; index shape[%d]; } geometry;\n", l->n * l->ndim,
                    l->ndim + (l->ndim & 1));
}

void tp_cl_add_memory(tp_text *s, int i) { tp_text_add(s, ", __global char *m%d, long o%d", i, i); }

void tp_cl_add_geometry(tp_text *s, const tp_cl_layout *l) {
    if (l->ndim) tp_text_add(s, ", geometry g");
    if (l->rows) tp_text_add(s, ", index piece");
}

/* The address of each operand's element, in bytes from the buffer's start: a<i> for the element `i` of all; on a CPU
 * device base<i> for the row `row`, whose elements a loop walks along. */
static void add_addresses(tp_text *s, const tp_cl_layout *l) {
    const char *name = l->rows ? "base" : "a";
    tp_text_add(s, "    index rest = %s, at;\n", l->rows ? "row" : "i");
    for (int i = 0; i < l->n; i++)
        if (l->class[i] != TP_CL_NUMBER) tp_text_add(s, "    long %s%d = o%d;\n", name, i, i);
    for (int d = l->rows ? 1 : 0; d < l->ndim; d++) {
        if (d + 1 < l->ndim) tp_text_add(s, "    at = rest %% g.shape[%d]; rest /= g.shape[%d];\n", d, d);
        else tp_text_add(s, "    at = rest;\n");
        for (int i = 0; i < l->n; i++)
            if (l->class[i] != TP_CL_NUMBER)
                tp_text_add(s, "    %s%d += (long)at * g.strides[%d];\n", name, i, i * l->ndim + d);
    }
}

void tp_cl_add_element(tp_text *s, const tp_cl_layout *l) {
    if (l->ndim) add_addresses(s, l);
}

/* The addresses of a CPU device's row, and elements that are one for all of it. */
static void add_row(tp_text *s, const tp_cl_layout *l) {
    if (l->ndim) add_addresses(s, l);
    for (int i = l->noutputs; i < l->n; i++) {
        const char *type = tp_cl_storage((tp_dtype)l->stored[i]);
        if (l->class[i] == TP_CL_ONE)
            tp_text_add(s, "    const %s one%d = *(__global %s *)(m%d + %s%d);\n", type, i, type, i,
                        l->ndim ? "base" : "o", i);
    }
}

/* What one work-item does around the element: itself on a GPU; on a CPU device a loop over a piece of a row, which the
 * compiler turns into vectors. Elements are read where they are written or apart, so no iteration waits for another. */
void tp_cl_add_head(tp_text *s, const tp_cl_layout *l) {
    if (!l->rows) {
        tp_text_add(s, "    const index i = get_global_id(0);\n    if (i >= n) return;\n");
        tp_cl_add_element(s, l);
        return;
    }
    tp_text_add(s, "    const index length = %s, rows = n / length, unit = get_global_id(0);\n",
                l->ndim ? "g.shape[0]" : "n");
    tp_text_add(s, "    const index row = unit %% rows;\n    index first = unit / rows * piece;\n"
                   "    if (first >= length) return;\n"
                   "    const index last = length - first < piece ? length : first + piece;\n");
    add_row(s, l);
}

void tp_cl_add_turns(tp_text *s, const tp_cl_layout *l) {
    if (!l->ndim) {
        tp_text_add(s, "    index row = 0, first = begin;\n    while (begin < stop) {\n    const index last = stop;\n");
    } else {
        tp_text_add(s,
                    "    const index length = g.shape[0];\n    index row = begin / length, first = begin %% length;\n"
                    "    for (; begin < stop; row++, first = 0) {\n"
                    "    const index last = length - first < stop - begin ? length : first + (stop - begin);\n");
    }
    tp_text_add(s, "    const index start = first;\n    begin += last - first;\n");
    add_row(s, l);
}

void tp_cl_add_loop(tp_text *s, const tp_cl_layout *l, const char *how, const char *loop, const char *at) {
    tp_text_add(s, "%s\n    for (%s) {\n    const index i = %s;\n", how, loop, at);
    for (int i = 0; l->ndim && i < l->n; i++)
        if (l->class[i] == TP_CL_ELEMENTS)
            tp_text_add(s, "    const long a%d = base%d + (long)i * g.strides[%d];\n", i, i, i * l->ndim);
        else if (l->class[i] == TP_CL_NEXT)
            tp_text_add(s, "    const long a%d = base%d + (long)i * %d;\n", i, i,
                        (int)tp_itemsize((tp_dtype)l->stored[i]));
}

void tp_cl_add_place(tp_text *s, const tp_cl_layout *l, int i) {
    const char *type = tp_cl_storage((tp_dtype)l->stored[i]);
    if (l->rows && i >= l->noutputs && l->class[i] == TP_CL_ONE) tp_text_add(s, "one%d", i);
    else if (l->ndim) tp_text_add(s, "(*(__global %s *)(m%d + a%d))", type, i, i);
    else tp_text_add(s, "((__global %s *)(m%d + o%d))[%s]", type, i, i, l->class[i] == TP_CL_ONE ? "0" : "i");
}

/* ---- arguments ---- */

void tp_cl_pass_index(tp_cl_call *c, const tp_cl_layout *l, int64_t value) {
    uint32_t small = (uint32_t)value;
    if (l->small) tp_cl_pass(c, sizeof small, &small);
    else tp_cl_pass_long(c, value);
}

static int64_t piece_of(const tp_cl_layout *l, const int64_t *const *strides) {
    for (int i = 0; l->ndim > 1 && i < l->n; i++)
        if (l->class[i] == TP_CL_ELEMENTS && llabs(strides[i][0]) >= LINE && llabs(strides[i][1]) < LINE &&
            strides[i][1])
            return SHORT_PIECE;
    return PIECE;
}

void tp_cl_pass_geometry(tp_cl_call *c, const tp_cl_layout *l, const int64_t *const *strides, const int64_t *shape) {
    int64_t words[MOST_WORDS];
    size_t n = 0;
    for (int i = 0; i < l->n; i++)
        for (int d = 0; d < l->ndim; d++) words[n++] = strides[i][d];
    if (!l->small) {
        for (int d = 0; d < l->ndim + (l->ndim & 1); d++) words[n++] = d < l->ndim ? shape[d] : 1;
    } else {
        uint32_t *small = (uint32_t *)(words + n);
        for (int d = 0; d < l->ndim + (l->ndim & 1); d++) small[d] = d < l->ndim ? (uint32_t)shape[d] : 1;
        n += (size_t)(l->ndim + 1) / 2;
    }
    if (l->ndim) tp_cl_pass(c, n * sizeof *words, words);
    if (l->rows) tp_cl_pass_index(c, l, piece_of(l, strides));
}

int tp_cl_run_elements(tp_cl_call *c, const tp_cl_layout *l, int64_t numel, const int64_t *const *strides,
                       const int64_t *shape) {
    if (!l->rows) return tp_cl_run(c, numel, 0);
    int64_t length = l->ndim ? shape[0] : numel, pieces = tp_divide_up(length, piece_of(l, strides));
    return tp_cl_run(c, numel / length * pieces, l->ndim ? 16 : 1);
}
