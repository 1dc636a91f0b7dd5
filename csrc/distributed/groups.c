/* groups.c: see groups.h. */
#include "distributed/groups.h"

#include "core/error.h"
#include "distributed/errand.h"
#include "distributed/state.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    void *made;
    int n;
    char *name;
    int ranks[];
} plan;

static int run_group(void *context) {
    plan *p = context;
    p->made = tp_world.engine->group(p->ranks, p->n, p->name);
    return p->made ? 0 : -1;
}

/* A group's own memory; the engine's part comes later. */
static bool allocate_group(tp_group *g, const char *name, const int *ranks, int n) {
    *g = (tp_group){.name = strdup(name), .ranks = malloc(sizeof(int) * (size_t)n), .n = n, .used = true};
    if (g->name && g->ranks) return memcpy(g->ranks, ranks, sizeof(int) * (size_t)n), true;
    free(g->name);
    free(g->ranks);
    return false;
}

int tp_world_group(const char *name, const int *ranks, int n, double seconds) {
    tp_group made;
    if (tp_world_check("new_group") < 0) return -1;
    plan *p = malloc(sizeof *p + sizeof(int) * (size_t)n);
    if (!p || !allocate_group(&made, name, ranks, n)) return free(p), tp_fail_memory(n);
    *p = (plan){.n = n, .name = made.name};
    memcpy(p->ranks, ranks, sizeof(int) * (size_t)n);
    tp_errand_of members = {made.ranks, n};
    if (tp_errand_send(run_group, p, "new_group", members, seconds) < 0) return -1; /* the plan may still be used */
    made.of_engine = p->made;
    free(p);
    tp_world_lock();
    tp_group *grown = realloc(tp_world.groups, sizeof(tp_group) * (size_t)(tp_world.group_count + 1));
    if (grown) (tp_world.groups = grown)[tp_world.group_count++] = made;
    tp_world_unlock();
    return grown ? tp_world.group_count - 1 : tp_fail_memory(n);
}

void tp_world_group_free(int number) {
    tp_world_lock();
    if (tp_world.started && number >= 0 && number < tp_world.group_count && tp_world.groups[number].used) {
        tp_world.groups[number].used = false;
        if (!atomic_load(&tp_world.faulty)) tp_world.engine->group_free(tp_world.groups[number].of_engine);
    }
    tp_world_unlock();
}

bool tp_world_reduces(tp_dtype dtype, tp_reduce_op op) { return tp_world.engine->reduces(dtype, op); }

void tp_groups_forget(bool free_them) {
    for (int i = 0; i < tp_world.group_count; i++) {
        tp_group *g = &tp_world.groups[i];
        if (g->used && g->of_engine && free_them) tp_world.engine->group_free(g->of_engine);
        free(g->name);
        free(g->ranks);
    }
    free(tp_world.groups);
    tp_world.groups = NULL;
    tp_world.group_count = 0;
}
