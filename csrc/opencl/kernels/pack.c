/* pack.c: masked_select, masked_scatter, nonzero, and the numbering of groups; the kernels are in pack.cl. An operator
 * whose result has a size that depends on the mask waits once, for the count. */
#include "opencl/kernels/pack.h"

#include "NativeFunctions.h"
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"

#define GROUP 256
#define MAX_DIMS 16

/* A mask and where each part's true bytes begin; the total is after them. */
typedef struct {
    tp_cl_device *d;
    const tp_tensor *mask;
    tp_tensor *offsets; /* owned */
    int64_t part, parts;
    int group;
} numbering;

static void free_numbering(numbering *m) { tp_release(m->offsets); }
#define auto_numbering TP_CLEANUP(free_numbering) numbering

/* What is done at the true bytes. */
enum { NOTHING, PACK, UNPACK, NONZERO, GROUPS };
static const char *const walks[] = {"NOTHING", "PACK", "UNPACK", "NONZERO", "GROUPS"};

typedef struct {
    uint8_t walk, itemsize, ndim; /* itemsize of what is moved, ndim of NONZERO */
} variant;

static int group_on(const tp_cl_device *d) { return d->is_cpu ? 1 : GROUP; }

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    const char *element = v->itemsize == 1   ? "uchar"
                          : v->itemsize == 2 ? "ushort"
                          : v->itemsize == 4 ? "uint"
                          : v->itemsize == 8 ? "ulong"
                                             : "ulong2";
    tp_text_add(s, "#define GROUP %d\n#define OP_%s\n", group_on(d), walks[v->walk]);
    if (v->itemsize) tp_text_add(s, "#define E %s\n", element);
    if (v->walk == NONZERO) tp_text_add(s, "#define NDIM %d\n", v->ndim);
}

static const tp_cl_family family = {"pack.cl", define, .size = TP_CL_SIZE(variant)};

static tp_cl_built *kernel_of(const numbering *m, const char *kernel) {
    const variant nothing = {0};
    return tp_cl_plan(m->d, &family, kernel, &nothing);
}

static int64_t items_of(const numbering *m) { return m->parts * m->group; }
static size_t group_of(const numbering *m) { return (size_t)m->group; }

static int number(numbering *m, const tp_tensor *mask) {
    *m = (numbering){.d = tp_cl_device_of((tp_tensor *const[]){(tp_tensor *)mask}, 1), .mask = mask};
    if (!m->d) return -1;
    m->group = group_on(m->d);
    m->part = m->d->is_cpu ? 16384 : 16 * GROUP;
    m->parts = (mask->numel + m->part - 1) / m->part;
    m->offsets = tp_new_empty(TP_INTS(m->parts + 1), TP_INT64, mask->device);
    if (!m->offsets) return -1;
    tp_cl_call c = tp_cl_begin(m->d, kernel_of(m, "count_parts"));
    tp_cl_pass_tensor(&c, mask);
    tp_cl_pass_tensor(&c, m->offsets);
    tp_cl_pass_long(&c, mask->numel);
    tp_cl_pass_long(&c, m->part);
    tp_cl_pass_long(&c, m->parts);
    if (tp_cl_run(&c, items_of(m), group_of(m)) < 0) return -1;
    c = tp_cl_begin(m->d, kernel_of(m, "offsets"));
    tp_cl_pass_tensor(&c, m->offsets);
    tp_cl_pass_long(&c, m->parts);
    return tp_cl_run(&c, m->group, group_of(m));
}

/* How many there are; waits. */
static int64_t total_of(const numbering *m) {
    tp_scalar total;
    tp_autoref *last = tp_select_int(m->offsets, 0, m->parts);
    return last && tp__local_scalar_dense(last, &total) == 0 ? total.i : -1;
}

static tp_cl_call begin_walk(const numbering *m, variant v) {
    tp_cl_call c = tp_cl_begin(m->d, tp_cl_plan(m->d, &family, "walk_parts", &v));
    tp_cl_pass_tensor(&c, m->mask);
    tp_cl_pass_tensor(&c, m->offsets);
    tp_cl_pass_long(&c, m->mask->numel);
    tp_cl_pass_long(&c, m->part);
    tp_cl_pass_long(&c, m->parts);
    return c;
}

/* Elements are moved as what has their size. */
static variant moving(uint8_t walk, const tp_tensor *t) {
    return (variant){.walk = walk, .itemsize = (uint8_t)tp_itemsize((tp_dtype)t->dtype)};
}

tp_tensor *pack_opencl(tp_tensor *from, tp_tensor *mask) {
    auto_numbering m = {.offsets = NULL};
    int64_t total = number(&m, mask) < 0 ? -1 : total_of(&m);
    tp_autoref *out = total < 0 ? NULL : tp_new_empty(TP_INTS(total), (tp_dtype)from->dtype, from->device);
    if (!out || total == 0) return tp_take(out);
    tp_cl_call c = begin_walk(&m, moving(PACK, from));
    tp_cl_pass_tensor(&c, from);
    tp_cl_pass_tensor(&c, out);
    return tp_cl_run(&c, items_of(&m), group_of(&m)) == 0 ? tp_take(out) : NULL;
}

int unpack_opencl(tp_tensor *from, tp_tensor *mask, int64_t fault, tp_tensor *out) {
    auto_numbering m = {.offsets = NULL};
    if (number(&m, mask) < 0) return -1;
    tp_cl_call c = begin_walk(&m, moving(UNPACK, out));
    tp_cl_pass_tensor(&c, from->numel ? from : out);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, from->numel);
    tp_cl_pass_fault(&c, (int)fault);
    return tp_cl_run_checked(&c, items_of(&m), group_of(&m));
}

tp_tensor *nonzero_opencl(tp_tensor *mask) {
    auto_numbering m = {.offsets = NULL};
    int ndim = mask->ndim;
    if (ndim > MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "OpenCL: nonzero takes at most %d dimensions, not %d", MAX_DIMS, ndim);
    int64_t total = number(&m, mask) < 0 ? -1 : total_of(&m);
    if (total < 0) return NULL;
    tp_autoref *out =
        tp_new_empty_strided(TP_INTS(total, ndim), TP_INTS(1, total > 0 ? total : 1), TP_INT64, mask->device);
    if (!out || total == 0 || ndim == 0) return tp_take(out);
    tp_cl_call c = begin_walk(&m, (variant){.walk = NONZERO, .ndim = (uint8_t)ndim});
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, total);
    tp_cl_pass(&c, (size_t)ndim * sizeof(int64_t), mask->sizes);
    return tp_cl_run(&c, items_of(&m), group_of(&m)) == 0 ? tp_take(out) : NULL;
}

tp_tensor3 tp_cl_number_groups(const tp_tensor *begins, const tp_tensor *order) {
    const tp_tensor3 failed = {{NULL, NULL, NULL}};
    auto_numbering m = {.offsets = NULL};
    int64_t n = begins->numel, total = number(&m, begins) < 0 ? -1 : total_of(&m);
    tp_autoref *firsts = total < 0 ? NULL : tp_new_empty(TP_INTS(total), TP_INT64, begins->device),
               *starts = firsts ? tp_new_empty(TP_INTS(total + 1), TP_INT64, begins->device) : NULL,
               *inverse = starts ? tp_new_empty(TP_INTS(n), TP_INT64, begins->device) : NULL;
    if (!inverse) return failed;
    tp_cl_call c = begin_walk(&m, (variant){.walk = GROUPS});
    tp_cl_pass_tensor(&c, order ? order : inverse);
    tp_cl_pass_tensor(&c, firsts);
    tp_cl_pass_tensor(&c, starts);
    tp_cl_pass_tensor(&c, inverse);
    tp_cl_pass_int(&c, order != NULL);
    tp_cl_pass_long(&c, total);
    if (tp_cl_run(&c, items_of(&m), group_of(&m)) < 0) return failed;
    tp_autoref *counts = tp_diff(starts, 1, 0, NULL, NULL);
    return counts ? (tp_tensor3){{tp_take(firsts), tp_take(counts), tp_take(inverse)}} : failed;
}
