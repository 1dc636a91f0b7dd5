/* notes.c: see notes.h. */
#include "outside/notes.h"

#include "core/error.h"

#include <stdlib.h>

static void *grown(void *items, int64_t n, int64_t *capacity, size_t size) {
    if (n < *capacity) return items;
    int64_t wanted = 2 * n + 16;
    void *more = realloc(items, (size_t)wanted * size);
    if (!more) return tp_fail_memory(wanted * (int64_t)size), NULL;
    *capacity = wanted;
    return more;
}

int tp_library_reserve(tp_library *l) {
    int64_t *handles = grown(l->handles, l->nhandles + 1, &l->handle_capacity, sizeof *handles);
    if (!handles) return -1;
    l->handles = handles;
    return 0;
}
int tp_library_note(tp_library *l, int64_t handle) {
    if (handle > 0) l->handles[l->nhandles++] = handle;
    return handle < 0 ? -1 : 0;
}

int tp_library_keep(tp_library *l, tp_op *op) {
    tp_op **ops = grown(l->ops, l->nops, &l->op_capacity, sizeof *ops);
    if (!ops) return -1;
    l->ops = ops;
    l->ops[l->nops++] = op;
    return 0;
}
