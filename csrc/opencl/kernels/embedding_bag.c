/* embedding_bag.c: bags of rows of a table; the kernels are in embedding_bag.cl.
 *
 * The gradient of a row of the table is the sum over the places that name the row, in the order of the places. */
#include "PrimitiveKernels.h"
#include "opencl/runtime/launch.h"
#include "prim/fault.h"
#include "prim/transfer.h"

enum { SUM, MEAN, MAX };

static void define(tp_text *s, const tp_cl_device *d, const void *dtype) {
    tp_text_add(s, "#define T %s\n#define WHOLE %d\n", *(const uint8_t *)dtype == TP_FLOAT64 ? "double" : "float",
                d->is_cpu);
}

static const tp_cl_family family = {"embedding_bag.cl", define, .size = TP_CL_SIZE(uint8_t)};

typedef struct {
    tp_cl_device *device;
    const tp_tensor *any;                    /* stands for tensors that are not there */
    int64_t bags, n, rows, columns, padding; /* n: of the places */
} job;

static tp_cl_call begin(job *j, const char *kernel, tp_tensor *any) {
    j->device = tp_cl_device_of(&any, 1);
    j->any = any;
    tp_cl_built *built = j->device ? tp_cl_plan(j->device, &family, kernel, &any->dtype) : NULL;
    return tp_cl_begin(j->device, built);
}

static void pass_optional(tp_cl_call *c, const job *j, const tp_tensor *t) {
    tp_cl_pass_tensor(c, t ? t : j->any);
    tp_cl_pass_int(c, t != NULL);
}

static void pass_sizes(tp_cl_call *c, const job *j) {
    const int64_t sizes[] = {j->bags, j->n, j->rows, j->columns, j->padding};
    for (int i = 0; i < 5; i++) tp_cl_pass_long(c, sizes[i]);
}

static int run_rows(tp_cl_call *c, const job *j, int64_t rows) {
    return tp_cl_run_checked(c, j->device && j->device->is_cpu ? rows : rows * j->columns,
                             j->device && j->device->is_cpu ? 4 : 64);
}

#define BAD_PLACE TP_INDEX_FAULT(TP_RuntimeError, "embedding_bag")
#define BAD_BAG TP_FAULT(TP_RuntimeError, "embedding_bag", "a place is of no bag")
#define BAD_BEGINS                                                                \
    TP_FAULT(TP_RuntimeError, "embedding_bag",                                    \
             "offsets have to begin with 0, not to descend, and not to be above " \
             "the number of indices")

int bag_forward_opencl(tp_tensor *table, tp_tensor *places, tp_tensor *begins, tp_tensor *each, int64_t mode, bool ends,
                       int64_t padding, tp_tensor *out, tp_tensor *bag, tp_tensor *size, tp_tensor *at) {
    job j = {.bags = out->sizes[0],
             .n = places->numel,
             .rows = table->sizes[0],
             .columns = table->sizes[1],
             .padding = padding};
    tp_cl_call c = begin(&j, "forward", table);
    tp_cl_pass_tensor(&c, table);
    tp_cl_pass_tensor(&c, places);
    tp_cl_pass_tensor(&c, begins);
    pass_optional(&c, &j, each);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_tensor(&c, bag);
    tp_cl_pass_tensor(&c, size);
    tp_cl_pass_tensor(&c, at);
    pass_sizes(&c, &j);
    tp_cl_pass_int(&c, (int32_t)mode);
    tp_cl_pass_int(&c, ends);
    tp_cl_pass_int(&c, BAD_BEGINS + 1);
    tp_cl_pass_fault(&c, BAD_PLACE);
    return run_rows(&c, &j, j.bags);
}

/* How often each row of a table is named; new. */
static tp_tensor *count_rows(tp_tensor *places, int64_t rows) {
    tp_autoref *counts = tp_new_empty(TP_INTS(rows), TP_INT64, places->device);
    tp_autoref *ones = counts ? tp_new_empty(tp_sizes(places), TP_INT64, places->device) : NULL;
    if (!ones || tp_fill_data(counts, TP_SCALAR_I(0)) < 0 || tp_fill_data(ones, TP_SCALAR_I(1)) < 0) return NULL;
    return put_add_opencl(counts, 0, places, ones, BAD_PLACE, false) < 0 ? NULL : tp_take(counts);
}

int bag_backward_opencl(tp_tensor *grad, tp_tensor *places, tp_tensor *bag, tp_tensor *size, tp_tensor *at,
                        tp_tensor *each, int64_t mode, bool by_frequency, int64_t padding, tp_tensor *out) {
    const int64_t columns = grad->sizes[1], n = mode == MAX ? grad->sizes[0] : places->numel;
    tp_autoref *counts = by_frequency && mode != MAX ? count_rows(places, out->sizes[0]) : NULL;
    tp_autoref *shares = tp_new_empty(TP_INTS(n, columns), (tp_dtype)grad->dtype, grad->device);
    tp_autoref *rows =
        mode == MAX ? tp_retain(at) : tp_new_alias(places, TP_INTS(n, columns), TP_INTS(1, 0), places->byte_offset);
    if (!shares || !rows || (by_frequency && mode != MAX && !counts)) return -1;
    job j = {.bags = grad->sizes[0], .n = n, .rows = out->sizes[0], .columns = columns, .padding = padding};
    tp_cl_call c = begin(&j, "shares", grad);
    tp_cl_pass_tensor(&c, grad);
    tp_cl_pass_tensor(&c, places);
    tp_cl_pass_tensor(&c, bag);
    tp_cl_pass_tensor(&c, size);
    pass_optional(&c, &j, mode == MAX ? NULL : each);
    pass_optional(&c, &j, counts);
    tp_cl_pass_tensor(&c, shares);
    pass_sizes(&c, &j);
    tp_cl_pass_int(&c, (int32_t)mode);
    tp_cl_pass_fault(&c, BAD_BAG);
    return run_rows(&c, &j, n) < 0 ? -1 : put_add_opencl(out, 0, rows, shares, BAD_PLACE, false);
}

int bag_weights_opencl(tp_tensor *grad, tp_tensor *table, tp_tensor *places, tp_tensor *bag, int64_t padding,
                       tp_tensor *out) {
    job j = {.bags = grad->sizes[0],
             .n = places->numel,
             .rows = table->sizes[0],
             .columns = table->sizes[1],
             .padding = padding};
    tp_cl_call c = begin(&j, "weights", grad);
    tp_cl_pass_tensor(&c, grad);
    tp_cl_pass_tensor(&c, table);
    tp_cl_pass_tensor(&c, places);
    tp_cl_pass_tensor(&c, bag);
    tp_cl_pass_tensor(&c, out);
    pass_sizes(&c, &j);
    tp_cl_pass_int(&c, BAD_BAG + 1);
    tp_cl_pass_fault(&c, BAD_PLACE);
    return tp_cl_run_checked(&c, j.n, 16);
}
