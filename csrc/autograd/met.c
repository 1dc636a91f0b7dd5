/* met.c: see met.h. */
#include "autograd/met.h"

#include <stdlib.h>

static tp_node **slot_of(const tp_met *m, const tp_node *n) {
    uint64_t mask = (uint64_t)m->capacity - 1, i = (((uintptr_t)n >> 5) * 0x9E3779B97F4A7C15u) >> 20 & mask;
    while (m->table[i] && m->table[i] != n) i = (i + 1) & mask;
    return &m->table[i];
}

/* The stack has room for every node that the table has room for. */
static int grow(tp_met *m) {
    tp_met bigger = {.capacity = m->capacity ? m->capacity * 2 : 256, .count = m->count, .depth = m->depth};
    bigger.table = calloc((size_t)bigger.capacity, sizeof *bigger.table);
    bigger.waiting = realloc((void *)m->waiting, (size_t)bigger.capacity * sizeof *bigger.waiting);
    if (bigger.waiting) m->waiting = bigger.waiting;
    if (!bigger.table || !bigger.waiting) {
        free((void *)bigger.table);
        return tp_fail_memory(bigger.capacity * (int64_t)sizeof *bigger.table);
    }
    for (int64_t i = 0; i < m->capacity; i++)
        if (m->table[i]) *slot_of(&bigger, m->table[i]) = m->table[i];
    free((void *)m->table);
    *m = bigger;
    return 0;
}

int tp_met_add(tp_met *m, tp_node *n) {
    if (!n) return 0;
    if (m->count * 2 >= m->capacity && grow(m) < 0) return -1;
    tp_node **slot = slot_of(m, n);
    if (*slot) return 0;
    *slot = m->waiting[m->depth++] = n;
    m->count++;
    return 0;
}

bool tp_met_has(const tp_met *m, const tp_node *n) { return m->count && *slot_of(m, n); }

void tp_met_free(tp_met *m) {
    free((void *)m->table);
    free((void *)m->waiting);
}
