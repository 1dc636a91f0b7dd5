/* ctc.c: connectionist temporal classification; the kernels are in ctc.cl. */
#include "PrimitiveKernels.h"
#include "opencl/runtime/launch.h"
#include "prim/fault.h"
#include "prim/table.h"
#include "prim/transfer.h"

#include <string.h>

#define GROUP 128

static int group_on(const tp_cl_device *d) { return d->is_cpu ? 1 : GROUP; }

static void define(tp_text *s, const tp_cl_device *d, const void *dtype) {
    bool wide = *(const uint8_t *)dtype == TP_FLOAT64;
    tp_text_add(s, "#define T %s\n#define GROUP %d\n%s", wide ? "double" : "float", group_on(d),
                wide ? "" : "#define T_SINGLE\n");
}

static const tp_cl_family family = {"ctc.cl", define, .size = TP_CL_SIZE(uint8_t)};

/* Times, lengths and starts on the device; new. */
static tp_tensor *lengths_on(tp_device device, tp_ints times, tp_ints lengths, tp_ints starts) {
    const tp_ints all[] = {times, lengths, starts};
    int64_t *values, n = times.size;
    tp_autoref *table = tp_table_int64(TP_INTS(3, n), &values);
    for (int i = 0; table && i < 3; i++) memcpy(values + i * n, all[i].data, (size_t)n * sizeof *values);
    tp_autoref *there = table ? tp_new_empty(tp_sizes(table), TP_INT64, device) : NULL;
    return there && tp_copy_data(there, table) == 0 ? tp_take(there) : NULL;
}

static void pass(tp_cl_call *c, const tp_tensor *t, const tp_tensor *any) { tp_cl_pass_tensor(c, t->numel ? t : any); }

/* `lengths`: lengths_on; passes the arguments that both kernels begin with. Without a step or a label there may be
 * tensors without elements, which are not touched. */
static tp_cl_call begin(tp_cl_device *d, const char *kernel, tp_tensor *log_probs, tp_tensor *labels,
                        const tp_tensor *lengths, tp_tensor *log_alpha, int64_t blank, tp_tensor *losses) {
    const int64_t *sizes = log_probs->sizes, plan[] = {sizes[0], sizes[1], sizes[2], log_alpha->sizes[2], blank};
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, kernel, &log_probs->dtype));
    tp_cl_pass(&c, sizeof plan, plan);
    pass(&c, log_probs, lengths);
    pass(&c, labels, lengths);
    tp_cl_pass_tensor(&c, lengths);
    pass(&c, log_alpha, lengths);
    tp_cl_pass_tensor(&c, losses);
    return c;
}

int ctc_forward_opencl(tp_tensor *log_probs, tp_tensor *labels, tp_ints times, tp_ints lengths, tp_ints starts,
                       int64_t blank, tp_tensor *out, tp_tensor *log_alpha) {
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    tp_autoref *table = d ? lengths_on(out->device, times, lengths, starts) : NULL;
    if (!table) return -1;
    tp_cl_call c = begin(d, "forward", log_probs, labels, table, log_alpha, blank, out);
    tp_cl_pass_fault(&c, TP_INDEX_FAULT(TP_RuntimeError, "ctc_loss"));
    return tp_cl_run_checked(&c, times.size * group_on(d), (size_t)group_on(d));
}

int ctc_backward_opencl(tp_tensor *grad, tp_tensor *log_probs, tp_tensor *labels, tp_ints times, tp_ints lengths,
                        tp_ints starts, tp_tensor *losses, tp_tensor *log_alpha, int64_t blank, bool zero_infinity,
                        tp_tensor *out) {
    const int64_t states = log_alpha->sizes[2];
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    tp_autoref *table = d ? lengths_on(out->device, times, lengths, starts) : NULL;
    tp_autoref *room = tp_new_empty(TP_INTS(times.size, 2, states), (tp_dtype)out->dtype, out->device);
    tp_autoref *links = tp_new_empty(TP_INTS(times.size, states), TP_INT64, out->device);
    if (!table || !room || !links) return -1;
    tp_cl_call c = begin(d, "backward", log_probs, labels, table, log_alpha, blank, losses);
    tp_cl_pass_tensor(&c, grad);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_tensor(&c, room);
    tp_cl_pass_tensor(&c, links);
    tp_cl_pass_int(&c, zero_infinity);
    return tp_cl_run(&c, times.size * group_on(d), (size_t)group_on(d));
}
