/* plan.c: saved plans for programs without Python (tensorpy/plan.h): the library is loaded, a file is read and run. */
#include "tensorpy/plan.h"

#include "PointwiseTable.h"
#include "ReductionTable.h"
#include "core/alloc.h"
#include "cpu/capability.h"
#include "dispatch/generated.h"
#include "dispatch/op.h"
#include "embed/parts.h"
#include "plan/saved.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct tp_plan {
    tp_saved_tape saved;
};

/* Primitives are what a plan calls; operators stay unregistered. */
static int load_once(void) {
    static bool loaded;
    if (loaded) return 0;
    const char *refusal = tp_capability_refusal();
    if (refusal) return tp_fail(TP_RuntimeError, "%s", refusal);
    tp_embed_products();
    tp_pointwise_select(tp_cpu_capability());
    tp_reduction_select(tp_cpu_capability());
    if (tp_register_primitives() < 0) return -1;
    tp_compute_all_tables();
    loaded = true;
    return 0;
}

static tp_plan *read_plan(const void *bytes, size_t size, tp_device device) {
    tp_plan *plan = tp_alloc(sizeof *plan);
    if (plan && tp_tape_load(&plan->saved, device, bytes, size) == 0) return plan;
    tp_free(plan, sizeof *plan);
    return NULL;
}

static tp_plan *read_file(FILE *file, const char *path, tp_device device) {
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0)
        return tp_fail_null(TP_RuntimeError, "%.200s cannot be read: %s", path, strerror(errno));
    void *bytes = tp_alloc((size_t)size + 1);
    if (!bytes) return NULL;
    tp_plan *plan = NULL;
    if (fread(bytes, 1, (size_t)size, file) != (size_t)size)
        tp_fail(TP_RuntimeError, "%.200s cannot be read: %s", path, strerror(errno));
    else plan = read_plan(bytes, (size_t)size, device);
    tp_free(bytes, (size_t)size + 1);
    return plan;
}

static tp_plan *open_plan(const char *path, tp_device device) {
    FILE *file = fopen(path, "rb");
    if (!file) return tp_fail_null(TP_RuntimeError, "%.200s cannot be opened: %s", path, strerror(errno));
    tp_plan *plan = read_file(file, path, device);
    fclose(file);
    return plan;
}

tp_plan *tp_plan_open(const char *path) { return load_once() < 0 ? NULL : open_plan(path, TP_CPU); }
tp_plan *tp_plan_read(const void *bytes, size_t size) {
    return load_once() < 0 ? NULL : read_plan(bytes, size, TP_CPU);
}
tp_plan *tp_plan_open_on(const char *path, const char *device) {
    tp_device d;
    return load_once() < 0 || tp_embed_find(device, &d) < 0 ? NULL : open_plan(path, d);
}
tp_plan *tp_plan_read_on(const void *bytes, size_t size, const char *device) {
    tp_device d;
    return load_once() < 0 || tp_embed_find(device, &d) < 0 ? NULL : read_plan(bytes, size, d);
}

void tp_plan_close(tp_plan *plan) {
    if (!plan) return;
    tp_saved_tape_free(&plan->saved);
    tp_free(plan, sizeof *plan);
}

int tp_plan_inputs(const tp_plan *plan) { return (int)plan->saved.narguments; }
int tp_plan_outputs(const tp_plan *plan) { return (int)plan->saved.nresults; }

static tp_plan_tensor described(const tp_saved_tensor *t) {
    return (tp_plan_tensor){(tp_dtype)t->dtype, (int)t->ndim, t->sizes, (size_t)tp_saved_bytes(t)};
}
tp_plan_tensor tp_plan_input(const tp_plan *plan, int i) { return described(&plan->saved.arguments[i]); }
tp_plan_tensor tp_plan_output(const tp_plan *plan, int i) { return described(&plan->saved.results[i]); }

int tp_plan_run(tp_plan *plan, const void *const *inputs, void *const *outputs) {
    tp_saved_memory from[plan->saved.narguments + 1], to[plan->saved.nresults + 1];
    for (int64_t i = 0; i < plan->saved.narguments; i++) from[i] = (tp_saved_memory){TP_CPU, inputs[i], NULL};
    for (int64_t i = 0; i < plan->saved.nresults; i++) to[i] = (tp_saved_memory){TP_CPU, outputs[i], NULL};
    return tp_saved_tape_run(&plan->saved, from, to);
}

const char *tp_plan_error(void) { return tp_error_message(); }
