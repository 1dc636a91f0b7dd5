/* generated.c: the generated operators, primitives and kernels are declared and registered. */
#include "dispatch/generated.h"

static int register_kernels(const tp_family *family) {
    for (int64_t i = 0; i < family->nkernels; i++) {
        const tp_kernel_list *list = &family->kernels[i];
        if (tp_register_kernels(list->key, list->entries, list->n) < 0) return -1;
    }
    return 0;
}

int tp_register_generated(void) {
    const tp_family *const *family;
    for (family = tp_families; *family; family++)
        if (tp_declare_ops((*family)->ops, (*family)->infos, (*family)->nops) < 0) return -1;
    if (tp_register_primitives() < 0) return -1;
    for (family = tp_families; *family; family++)
        if (register_kernels(*family) < 0) return -1;
    return 0;
}
