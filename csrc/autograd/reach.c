/* reach.c: which nodes a backward pass would come to, without running it. */
#include "autograd/engine.h"

#include <stdlib.h>

/* Nodes that were met: a table with open addressing, and those among them whose edges were not followed yet. */
typedef struct {
    const tp_node **table, **waiting;
    int64_t capacity, count, depth;
} walk;

static const tp_node **slot_of(const walk *w, const tp_node *n) {
    uint64_t mask = (uint64_t)w->capacity - 1, i = (((uintptr_t)n >> 5) * 0x9E3779B97F4A7C15u) >> 20 & mask;
    while (w->table[i] && w->table[i] != n) i = (i + 1) & mask;
    return &w->table[i];
}

/* The stack has room for every node that the table has room for. */
static int grow(walk *w) {
    walk bigger = {.capacity = w->capacity ? w->capacity * 2 : 256, .count = w->count, .depth = w->depth};
    bigger.table = calloc((size_t)bigger.capacity, sizeof *bigger.table);
    bigger.waiting = realloc((void *)w->waiting, (size_t)bigger.capacity * sizeof *bigger.waiting);
    if (bigger.waiting) w->waiting = bigger.waiting;
    if (!bigger.table || !bigger.waiting) {
        free((void *)bigger.table);
        return tp_fail_memory(bigger.capacity * (int64_t)sizeof *bigger.table);
    }
    for (int64_t i = 0; i < w->capacity; i++)
        if (w->table[i]) *slot_of(&bigger, w->table[i]) = w->table[i];
    free((void *)w->table);
    *w = bigger;
    return 0;
}

static int meet(walk *w, const tp_node *n) {
    if (!n) return 0;
    if (w->count * 2 >= w->capacity && grow(w) < 0) return -1;
    const tp_node **slot = slot_of(w, n);
    if (*slot) return 0;
    *slot = w->waiting[w->depth++] = n;
    w->count++;
    return 0;
}

/* A leaf among the roots is reached by itself. */
static bool is_root(tp_tensors roots, const tp_node *n) {
    const tp_tensor *leaf = tp_accumulator_variable_borrow(n);
    for (int64_t i = 0; leaf && i < roots.size; i++)
        if (roots.data[i] == leaf) return true;
    return false;
}

int tp_find_reached(tp_tensors roots, tp_node *const *nodes, int n, bool *reached) {
    walk w = {0};
    int status = grow(&w);
    for (int64_t i = 0; status == 0 && i < roots.size; i++) status = meet(&w, tp_grad_fn_borrow(roots.data[i]));
    while (status == 0 && w.depth > 0) {
        const tp_node *next = w.waiting[--w.depth];
        for (uint32_t k = 0; status == 0 && k < next->nedges; k++) status = meet(&w, next->edges[k].node);
    }
    for (int i = 0; status == 0 && i < n; i++) reached[i] = *slot_of(&w, nodes[i]) || is_root(roots, nodes[i]);
    free((void *)w.table);
    free((void *)w.waiting);
    return status;
}

static void forget_kept(tp_node *n, const tp_tensor *root) {
    tp_saved *saved = (tp_saved *)(n + 1);
    tp_saved_list *const *lists = (tp_saved_list *const *)(saved + n->type->nsaved);
    for (int i = 0; i < n->type->nsaved; i++) tp_saved_forget_history(&saved[i], root);
    for (int i = 0; i < n->type->nlists; i++)
        for (int64_t k = 0; lists[i] && k < lists[i]->size; k++) tp_saved_forget_history(&lists[i]->items[k], root);
}

/* What is below `before` is older than it, and was looked through when it became root's history. */
void tp_forget_saved(tp_tensor *root, const tp_node *before) {
    walk w = {0};
    int status = meet(&w, tp_grad_fn_borrow(root));
    while (status == 0 && w.depth > 0) {
        tp_node *next = (tp_node *)w.waiting[--w.depth];
        tp_node *inner = tp_copy_slices_function_borrow(next);
        forget_kept(next, root);
        if (inner) forget_kept(inner, root);
        for (uint32_t k = 0; status == 0 && k < next->nedges; k++)
            if (next->edges[k].node != before) status = meet(&w, next->edges[k].node);
    }
    if (status < 0) tp_error_clear();
    free((void *)w.table);
    free((void *)w.waiting);
}
