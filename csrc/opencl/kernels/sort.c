/* sort.c: lines in order: sort, topk, kthvalue, median, mode, and the groups of equal items behind unique; the kernels
 * are in sort.cl.
 *
 * A line is sorted in blocks, which are then merged, two and two, between two arrays. On a CPU device there are as many
 * blocks as compute units, so that lines are whole where there are enough of them; on a GPU a block is what a
 * work-group sorts in local memory. A few of many are not sorted out of all: the k-th is found by counting. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/sort.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"
#include "opencl/kernels/pack.h"
#include "prim/fault.h"

#define LONG_LINE 16384
#define GROUP 256         /* of a GPU's work-groups that share a line or a block of twice as many elements */
#define SERIAL_CHUNK 8192 /* elements that a work-item merges on a CPU device */

typedef struct {
    tp_cl_device *d;
    const tp_tensor *in;
    int64_t n, lines;
    uint64_t flip;
    int group, chunk;
    tp_dtype key, index; /* of the entries */
} lines_plan;

/* Keys and places of lines, and as much room again. */
typedef struct {
    tp_tensor *keys, *places, *more_keys, *more_places;
} entries;

static void free_entries(entries *e) {
    tp_release(e->keys);
    tp_release(e->places);
    tp_release(e->more_keys);
    tp_release(e->more_places);
}
#define auto_entries TP_CLEANUP(free_entries) entries

static lines_plan plan_of(tp_cl_device *d, const tp_tensor *in, int64_t n, bool descending) {
    lines_plan p = {.d = d, .in = in, .n = n, .lines = n ? in->numel / n : 0, .flip = descending ? UINT64_MAX : 0};
    p.key = tp_itemsize((tp_dtype)in->dtype) == 8 ? TP_UINT64 : TP_UINT32;
    p.index = n > UINT32_MAX - 1 ? TP_UINT64 : TP_UINT32;
    p.group = 1;
    p.chunk = SERIAL_CHUNK;
    if (d->is_cpu || p.index == TP_UINT64) return p; /* local memory has no 64-bit counters */
    p.chunk = 8;
    p.group = 16;
    while (p.group < GROUP && 2 * p.group < n && (size_t)p.group < d->max_group) p.group *= 2;
    return p;
}

typedef struct {
    uint8_t dtype, key, index;
    bool pairs; /* the lines are entries already */
    uint16_t group, chunk;
} variant;

/* How many entries a work-item keeps in order for itself. */
static int few_of(const tp_cl_device *d) { return d->is_cpu ? 256 : 32; }

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype dtype = (tp_dtype)v->dtype;
    int bits = 8 * (int)tp_itemsize(dtype);
    bool is_signed = tp_dtype_categories[dtype] == TP_SIGNED;
    tp_cl_define(s, "X", dtype, dtype);
    tp_text_add(s, "#define FEW %d\n", few_of(d));
    tp_text_add(s, "#define KEY %s\n#define KEY_BITS %d\n#define INDEX %s\n#define GROUP %d\n#define CHUNK %d\n%s",
                v->key == TP_UINT64 ? "ulong" : "uint", v->key == TP_UINT64 ? 64 : 32,
                v->index == TP_UINT64 ? "ulong" : "uint", v->group, v->chunk, v->pairs ? "#define PAIRS\n" : "");
    if (tp_is_floating_dtype(dtype))
        tp_text_add(s, "#define KEY_FLOAT\n#define AS_KEY %s\n", bits == 64 ? "as_ulong" : "as_uint");
    else
        tp_text_add(s, "#define KEY_WHOLE %s\n#define KEY_SIGN %s\n",
                    bits == 64   ? "ulong"
                    : bits == 32 ? "uint"
                    : bits == 16 ? "ushort"
                                 : "uchar",
                    !is_signed   ? "0"
                    : bits == 64 ? "0x8000000000000000UL"
                    : bits == 32 ? "0x80000000U"
                    : bits == 16 ? "0x8000"
                                 : "0x80");
}

static const tp_cl_family family = {"sort.cl", define, .size = TP_CL_SIZE(variant)};

static tp_cl_call begin_variant(const lines_plan *p, const char *kernel, bool pairs) {
    const variant v = {p->in->dtype, (uint8_t)p->key, (uint8_t)p->index, pairs, (uint16_t)p->group, (uint16_t)p->chunk};
    return tp_cl_begin(p->d, tp_cl_plan(p->d, &family, kernel, &v));
}
static tp_cl_call begin(const lines_plan *p, const char *kernel) { return begin_variant(p, kernel, false); }

static void pass_flip(tp_cl_call *c, const lines_plan *p) { tp_cl_pass(c, (size_t)tp_itemsize(p->key), &p->flip); }

static int make_entries(const lines_plan *p, int64_t count, entries *e) {
    e->keys = tp_new_empty(TP_INTS(count), p->key, p->in->device);
    e->places = e->keys ? tp_new_empty(TP_INTS(count), p->index, p->in->device) : NULL;
    e->more_keys = e->places ? tp_new_empty(TP_INTS(count), p->key, p->in->device) : NULL;
    e->more_places = e->more_keys ? tp_new_empty(TP_INTS(count), p->index, p->in->device) : NULL;
    return e->more_places ? 0 : -1;
}

static void pass_entries(tp_cl_call *c, const entries *e) {
    tp_cl_pass_tensor(c, e->keys);
    tp_cl_pass_tensor(c, e->places);
    tp_cl_pass_tensor(c, e->more_keys);
    tp_cl_pass_tensor(c, e->more_places);
}

static size_t small_group(const lines_plan *p, int64_t items) { return p->d->is_cpu ? (items < 1024 ? 1 : 16) : 64; }

/* ---- sorting ---- */

/* The elements of a block, a multiple of the chunk where there are several. */
static int64_t block_of(const lines_plan *p) {
    int64_t blocks = 1;
    if (p->group > 1) return 2 * p->group;
    while (blocks * p->lines < p->d->compute_units && p->n / (2 * blocks) >= p->chunk) blocks *= 2;
    return tp_divide_up(tp_divide_up(p->n, blocks), p->chunk) * p->chunk;
}

/* Lines of n become sorted entries; `pairs`: they are entries already. */
static int sort_entries(const lines_plan *p, entries *e, bool pairs) {
    int64_t block = block_of(p), blocks = tp_divide_up(p->n, block), units = p->lines * blocks;
    tp_cl_call c = begin_variant(p, "sort_blocks", pairs);
    tp_cl_pass_tensor(&c, p->in);
    pass_entries(&c, e);
    tp_cl_pass_long(&c, p->n);
    tp_cl_pass_long(&c, block);
    tp_cl_pass_long(&c, blocks);
    tp_cl_pass_long(&c, p->lines);
    pass_flip(&c, p);
    if (tp_cl_run(&c, units * p->group, p->group > 1 ? (size_t)p->group : small_group(p, units)) < 0) return -1;
    int64_t chunks = tp_divide_up(p->n, p->chunk), items = chunks * p->lines;
    for (int64_t run = block; run < p->n; run *= 2) {
        c = begin(p, "merge_runs");
        pass_entries(&c, e);
        tp_cl_pass_long(&c, p->n);
        tp_cl_pass_long(&c, run);
        tp_cl_pass_long(&c, chunks);
        tp_cl_pass_long(&c, p->lines);
        if (tp_cl_run(&c, items, small_group(p, items)) < 0) return -1;
        *e = (entries){e->more_keys, e->more_places, e->keys, e->places};
    }
    return 0;
}

static int take_places(const lines_plan *p, const entries *e, int64_t k, tp_tensor *out) {
    tp_cl_call c = begin(p, "take_places");
    tp_cl_pass_tensor(&c, e->places);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, p->n);
    tp_cl_pass_long(&c, k);
    tp_cl_pass_long(&c, p->lines);
    return tp_cl_run(&c, p->lines * k, 0);
}

static int sort_lines(const lines_plan *p, int64_t k, tp_tensor *out) {
    auto_entries e = {NULL, NULL, NULL, NULL};
    if (make_entries(p, p->n * p->lines, &e) < 0 || sort_entries(p, &e, false) < 0) return -1;
    return take_places(p, &e, k, out);
}

/* A call of a kernel with the lines in order, as far as the arguments of all such kernels are the same. */
static int begin_sorted(const lines_plan *p, const char *kernel, entries *e, tp_tensor *out, tp_cl_call *c) {
    if (make_entries(p, p->n * p->lines, e) < 0 || sort_entries(p, e, false) < 0) return -1;
    *c = begin(p, kernel);
    tp_cl_pass_tensor(c, e->keys);
    tp_cl_pass_tensor(c, e->places);
    tp_cl_pass_tensor(c, out);
    tp_cl_pass_long(c, p->n);
    tp_cl_pass_long(c, p->lines);
    return 0;
}

static int mode_of_lines(const lines_plan *p, bool nan_apart, tp_tensor *out) {
    auto_entries e = {NULL, NULL, NULL, NULL};
    tp_cl_call c;
    if (begin_sorted(p, "mode", &e, out, &c) < 0) return -1;
    tp_cl_pass_int(&c, nan_apart);
    return tp_cl_run(&c, p->lines, small_group(p, p->lines));
}

/* ---- selection ---- */

/* Place k (or the median) of each line: its key and the number of those before it, and where it is. */
static int select_place(const lines_plan *p, int64_t k, bool median, bool skip_nan, tp_tensor *bounds, tp_tensor *less,
                        tp_tensor *out) {
    tp_cl_call c = begin(p, "select_place");
    tp_cl_pass_tensor(&c, p->in);
    tp_cl_pass_tensor(&c, bounds);
    tp_cl_pass_tensor(&c, less);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, p->n);
    tp_cl_pass_long(&c, p->lines);
    tp_cl_pass_long(&c, k);
    pass_flip(&c, p);
    tp_cl_pass_int(&c, median);
    tp_cl_pass_int(&c, skip_nan);
    return tp_cl_run(&c, p->lines * p->group, p->group > 1 ? (size_t)p->group : small_group(p, p->lines));
}

/* A selection has a group for each line, which for few long lines leaves a GPU idle: they are sorted instead. */
static bool are_few_and_long(const lines_plan *p) {
    bool few = p->lines == 1 || 8 * p->lines <= p->d->compute_units;
    return p->group > 1 && few && p->n > LONG_LINE;
}

static int place_of_sorted(const lines_plan *p, int64_t k, bool median, bool skip_nan, tp_tensor *out) {
    auto_entries e = {NULL, NULL, NULL, NULL};
    tp_cl_call c;
    if (begin_sorted(p, "place_in_order", &e, out, &c) < 0) return -1;
    tp_cl_pass_long(&c, k);
    tp_cl_pass_int(&c, median);
    tp_cl_pass_int(&c, skip_nan);
    return tp_cl_run(&c, p->lines, small_group(p, p->lines));
}

static int place_of_lines(const lines_plan *p, int64_t k, bool median, bool skip_nan, tp_tensor *out) {
    if (are_few_and_long(p)) return place_of_sorted(p, k, median, skip_nan, out);
    tp_autoref *bounds = tp_new_empty(TP_INTS(p->lines), p->key, p->in->device),
               *less = bounds ? tp_new_empty(TP_INTS(p->lines), TP_INT64, p->in->device) : NULL;
    return less ? select_place(p, k, median, skip_nan, bounds, less, out) : -1;
}

/* Entries of `width` to a line, which hold the first k, in order. */
static int order_few(const lines_plan *p, entries *e, int64_t width, int64_t k, tp_tensor *out) {
    lines_plan few = *p;
    few.n = width;
    if (few.group > 1)
        for (few.group = 16; few.group < GROUP && few.group < p->group && 2 * few.group < width;) few.group *= 2;
    if (sort_entries(&few, e, true) < 0) return -1;
    return take_places(&few, e, k, out);
}

/* Among how many work-items first_few deals out a line. */
static int64_t parts_of_line(const lines_plan *p) {
    int64_t parts = p->lines >= p->d->compute_units ? 1 : 2 * (int64_t)p->d->compute_units;
    while (parts > 1 && p->n / parts < 4096) parts /= 2;
    return parts;
}

/* Most of a line has to be passed over, or a selection is faster. */
static bool are_few(const lines_plan *p, int64_t k) {
    return p->group == 1 && k <= few_of(p->d) && (k <= 32 || p->n / parts_of_line(p) >= 32 * k);
}

static int first_few(const lines_plan *p, int64_t k, tp_tensor *out) {
    auto_entries e = {NULL, NULL, NULL, NULL};
    int64_t parts = parts_of_line(p);
    if (make_entries(p, p->lines * parts * k, &e) < 0) return -1;
    tp_cl_call c = begin(p, "take_few");
    tp_cl_pass_tensor(&c, p->in);
    tp_cl_pass_tensor(&c, e.keys);
    tp_cl_pass_tensor(&c, e.places);
    tp_cl_pass_long(&c, p->n);
    tp_cl_pass_long(&c, tp_divide_up(p->n, parts));
    tp_cl_pass_long(&c, parts);
    tp_cl_pass_long(&c, p->lines);
    tp_cl_pass_int(&c, (int)k);
    pass_flip(&c, p);
    if (tp_cl_run(&c, p->lines * parts, small_group(p, p->lines * parts)) < 0) return -1;
    if (parts > 1) return order_few(p, &e, parts * k, k, out);
    lines_plan whole = *p;
    whole.n = k;
    return take_places(&whole, &e, k, out);
}

static int first_many(const lines_plan *p, int64_t k, tp_tensor *out) {
    auto_entries e = {NULL, NULL, NULL, NULL};
    tp_autoref *bounds = tp_new_empty(TP_INTS(p->lines), p->key, p->in->device),
               *less = bounds ? tp_new_empty(TP_INTS(p->lines), TP_INT64, p->in->device) : NULL,
               *last = less ? tp_new_empty(TP_INTS(p->lines), TP_INT64, p->in->device) : NULL;
    if (!last || make_entries(p, p->lines * k, &e) < 0) return -1;
    if (select_place(p, k - 1, false, false, bounds, less, last) < 0) return -1;
    tp_cl_call c = begin(p, "collect");
    tp_cl_pass_tensor(&c, p->in);
    tp_cl_pass_tensor(&c, bounds);
    tp_cl_pass_tensor(&c, less);
    tp_cl_pass_tensor(&c, e.keys);
    tp_cl_pass_tensor(&c, e.places);
    tp_cl_pass_long(&c, p->n);
    tp_cl_pass_long(&c, p->lines);
    tp_cl_pass_long(&c, k);
    pass_flip(&c, p);
    if (tp_cl_run(&c, p->lines * p->group, p->group > 1 ? (size_t)p->group : small_group(p, p->lines)) < 0) return -1;
    return order_few(p, &e, k, k, out);
}

/* The device of the lines and how they are dealt out; false and the error set if there is none. */
static bool plan_lines(lines_plan *p, tp_tensor *lines, bool descending) {
    tp_cl_device *d = tp_cl_device_of(&lines, 1);
    if (d) *p = plan_of(d, lines, lines->ndim ? lines->sizes[lines->ndim - 1] : 1, descending);
    return d;
}

int tp_cl_sort_places(tp_tensor *lines, bool descending, tp_tensor *places) {
    lines_plan p;
    return plan_lines(&p, lines, descending) ? sort_lines(&p, p.n, places) : -1;
}

int topk_opencl(tp_tensor *lines, int64_t k, bool largest, tp_tensor *out) {
    lines_plan p;
    if (!plan_lines(&p, lines, largest)) return -1;
    if (k > p.n / 8 || are_few_and_long(&p)) return sort_lines(&p, k, out);
    return are_few(&p, k) ? first_few(&p, k, out) : first_many(&p, k, out);
}

int kth_opencl(tp_tensor *lines, int64_t k, tp_tensor *out) {
    lines_plan p;
    return plan_lines(&p, lines, false) ? place_of_lines(&p, k, false, false, out) : -1;
}

int median_opencl(tp_tensor *lines, bool skip_nan, tp_tensor *out) {
    lines_plan p;
    if (!plan_lines(&p, lines, false)) return -1;
    if (!tp_is_floating(lines)) return place_of_lines(&p, (p.n - 1) / 2, false, false, out);
    return place_of_lines(&p, 0, true, skip_nan, out);
}

int mode_opencl(tp_tensor *lines, tp_tensor *out) {
    lines_plan p;
    return plan_lines(&p, lines, false) ? mode_of_lines(&p, tp_is_floating(lines), out) : -1;
}

/* ---- groups of equal items ---- */

/* The order of the items, new. */
static tp_tensor *order_items(const lines_plan *p, int64_t n, int64_t width) {
    lines_plan serial = *p;
    serial.group = 1;
    serial.chunk = p->d->is_cpu ? 64 : 16;
    tp_autoref *order = tp_new_empty(TP_INTS(n), TP_INT64, p->in->device);
    if (!order || width == 1) return order && sort_lines(p, n, order) == 0 ? tp_take(order) : NULL;
    tp_autoref *more = tp_new_empty(TP_INTS(n), TP_INT64, p->in->device);
    if (!more) return NULL;
    int64_t items = tp_divide_up(n, serial.chunk);
    tp_cl_call c = begin(&serial, "sort_items");
    tp_cl_pass_tensor(&c, p->in->numel ? p->in : order);
    tp_cl_pass_tensor(&c, order);
    tp_cl_pass_long(&c, n);
    tp_cl_pass_long(&c, width);
    if (tp_cl_run(&c, items, small_group(p, items)) < 0) return NULL;
    for (int64_t run = serial.chunk; run < n; run *= 2) {
        c = begin(&serial, "merge_items");
        tp_cl_pass_tensor(&c, p->in->numel ? p->in : order);
        tp_cl_pass_tensor(&c, order);
        tp_cl_pass_tensor(&c, more);
        tp_cl_pass_long(&c, n);
        tp_cl_pass_long(&c, width);
        tp_cl_pass_long(&c, run);
        if (tp_cl_run(&c, items, small_group(p, items)) < 0) return NULL;
        tp_tensor *t = order;
        order = more;
        more = t;
    }
    return tp_take(order);
}

tp_tensor3 distinct_opencl(tp_tensor *items, bool sorted) {
    const tp_tensor3 failed = {{NULL, NULL, NULL}};
    tp_cl_device *d = tp_cl_device_of(&items, 1);
    int64_t n = items->sizes[0], width = items->numel / n;
    if (!d) return failed;
    lines_plan p = plan_of(d, items, n, false);
    p.lines = 1;
    tp_autoref *begins = tp_new_empty(TP_INTS(n), TP_BOOL, items->device),
               *order = begins && sorted ? order_items(&p, n, width) : NULL;
    if (!begins || (sorted && !order)) return failed;
    tp_cl_call c = begin(&p, "begin_groups");
    tp_cl_pass_tensor(&c, items);
    tp_cl_pass_tensor(&c, order ? order : begins);
    tp_cl_pass_tensor(&c, begins);
    tp_cl_pass_long(&c, n);
    tp_cl_pass_long(&c, width);
    tp_cl_pass_int(&c, sorted);
    if (tp_cl_run(&c, n, 0) < 0) return failed;
    return tp_cl_number_groups(begins, order);
}
