/* reach.c: which nodes a backward pass would come to, without running it. */
#include "autograd/engine.h"
#include "autograd/met.h"

/* A leaf among the roots is reached by itself. */
static bool is_root(tp_tensors roots, const tp_node *n) {
    const tp_tensor *leaf = tp_accumulator_variable_borrow(n);
    for (int64_t i = 0; leaf && i < roots.size; i++)
        if (roots.data[i] == leaf) return true;
    return false;
}

int tp_find_reached(tp_tensors roots, tp_node *const *nodes, int n, bool *reached) {
    tp_autowalk walk = {0};
    for (int64_t i = 0; i < roots.size; i++)
        if (tp_met_add(&walk, tp_grad_fn_borrow(roots.data[i])) < 0) return -1;
    for (const tp_node *next; (next = tp_met_next(&walk));)
        for (uint32_t k = 0; k < next->nedges; k++)
            if (tp_met_add(&walk, next->edges[k].node) < 0) return -1;
    for (int i = 0; i < n; i++) reached[i] = tp_met_has(&walk, nodes[i]) || is_root(roots, nodes[i]);
    return 0;
}
