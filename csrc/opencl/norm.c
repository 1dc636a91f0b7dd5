/* norm.c: normalisations; the kernels are in norm.cl. On a CPU device a work-item takes a row, on a GPU a work-group
 * where rows are long enough.
 */
#include "opencl/kernels.h"

#include "opencl/element.h"
#include "opencl/launch.h"

#define GROUP 128
#define COLUMNS 64
#define VECTOR_BYTES 64

static const char *const kernels[] = {[TP_NORM_FORWARD] = "forward",
                                      [TP_NORM_BACKWARD] = "backward",
                                      [TP_NORM_COLUMNS] = "columns",
                                      [TP_NORM_CHANNELS] = "channels"};

typedef struct {
    uint8_t dtype, what, group;
    bool each;
} variant;

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype dtype = (tp_dtype)v->dtype;
    const char *type = tp_cl_type(dtype), *sum = d->has_fp64 ? "double" : type;
    int w = VECTOR_BYTES / (int)tp_itemsize(dtype);
    tp_text_add(s, "#define KERNEL_%s\n", kernels[v->what]);
    tp_text_add(s, "#define T %s\n#define S %s\n#define GROUP %d\n%s", type, sum, v->group,
                v->each ? "#define EACH\n" : "");
    if (v->group > 1) return;
    tp_text_add(s, "#define W %d\n#define V %s%d\n#define VS %s%d\n#define VLOAD vload%d\n#define VSTORE vstore%d\n", w,
                dtype == TP_FLOAT64 ? "double" : "float", w, d->has_fp64 ? "double" : "float", w, w, w);
    tp_text_add(s, "#define VSTORE_S vstore%d\n#define WIDEN(v) convert_%s%d(v)\n", w, d->has_fp64 ? "double" : "float",
                w);
}

static const tp_cl_family family = {"norm.cl", define, .size = TP_CL_SIZE(variant)};

static void pass_geometry(tp_cl_call *c, const tp_norm_job *j) {
    const int64_t words[] = {j->rows,   j->runs,    j->length,  j->first,  j->next,
                             j->groups, j->per_row, j->per_run, j->frozen, j->parts};
    tp_cl_pass(c, sizeof words, words);
}

static void pass_number(tp_cl_call *c, double value) {
    if (c->device->has_fp64) tp_cl_pass(c, sizeof value, &value);
    else tp_cl_pass_float(c, (float)value);
}

/* A buffer that the kernel does not look at stands for a tensor that is not there. */
static void pass_or(tp_cl_call *c, const tp_tensor *t, const tp_norm_job *j) {
    tp_cl_pass_tensor(c, t && t->numel ? t : j->input);
}

static void pass_tensors(tp_cl_call *c, tp_norm_what what, const tp_norm_job *j) {
    bool forward = what == TP_NORM_FORWARD, backward = what == TP_NORM_BACKWARD;
    if (!forward) tp_cl_pass_tensor(c, j->grad);
    tp_cl_pass_tensor(c, j->input);
    if (forward || backward) pass_or(c, j->weight, j);
    if (forward) pass_or(c, j->bias, j);
    pass_or(c, j->mean, j);
    pass_or(c, j->rstd, j);
    if (forward) pass_or(c, j->running_mean, j);
    if (forward) pass_or(c, j->running_var, j);
    if (forward || backward) pass_or(c, j->out, j);
    if (!forward) pass_or(c, j->to_weight, j);
    if (!forward) pass_or(c, j->to_bias, j);
    if (forward || backward) pass_number(c, j->eps);
    if (forward) pass_number(c, j->momentum);
    const tp_tensor *const there[] = {j->weight,  j->bias,         j->out,        j->to_weight,
                                      j->to_bias, j->running_mean, j->running_var};
    int has = 0;
    for (int i = 0; i < TP_COUNTOF(there); i++) has |= (there[i] != NULL) << i;
    tp_cl_pass_int(c, has);
}

int tp_cl_norm(tp_norm_what what, const tp_norm_job *j) {
    tp_tensor *const tensors[] = {(tp_tensor *)j->input};
    tp_cl_device *d = tp_cl_device_of(tensors, 1);
    if (!d) return -1;
    int group = d->is_cpu || j->runs * j->length < GROUP / 4 ? 1 : GROUP;
    const variant v = {j->input->dtype, (uint8_t)what, (uint8_t)group, j->each};
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, kernels[what], &v));
    pass_geometry(&c, j);
    pass_tensors(&c, what, j);
    if (what == TP_NORM_COLUMNS) {
        int64_t columns = group > 1 ? 1 : COLUMNS;
        return tp_cl_run(&c, (j->length + columns - 1) / columns * j->parts, group > 1 ? 64 : 1);
    }
    return tp_cl_run(&c, j->rows * group, group > 1 ? (size_t)group : j->rows < 64 ? 1 : 4);
}
