/* trial.c: see trial.h. */
#include "opencl/runtime/trial.h"

#include "opencl/runtime/copy.h"
#include "opencl/runtime/launch.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL 100

static const double ordinary[] = {0.18, 1.5, 2, 3.7, 0.9, 42, 7e-3, 1, -0.5, -3};
static const double special[] = {0,    -0.0,  5e-324, 1e-310, 1e-45, 1e-40, 1e-300, 1e-30,    1e300,     3e38, 710,
                                 -745, 100.5, 1e5,    1e10,   -1e10, 1e22,  NAN,    INFINITY, -INFINITY, 89,   -104};
enum { ORDINARY = TP_COUNTOF(ordinary), SPECIAL = TP_COUNTOF(special) };

typedef struct {
    const char *function;
    tp_dtype dtype;
    int arguments, width;
    int64_t n; /* numbers */
} trial;

/* ---- the numbers ---- */

/* Vector v of argument a: one special number among ordinary ones, for each number, lane and argument; then vectors of
 * which the first lanes are filled, and the others are 0 or 1. */
static double number_of(const trial *t, int a, int64_t v, int lane) {
    double usual = ordinary[(v + lane * (a ? 3 : 1)) % ORDINARY];
    int64_t with_special = (int64_t)SPECIAL * t->width;
    if (v < with_special * t->arguments) {
        bool here = v / with_special == a && v % t->width == lane;
        return here ? special[v % with_special / t->width] : usual;
    }
    int64_t filled = (v - with_special * t->arguments) / 2 + 1;
    return lane < filled ? usual : (double)(v % 2);
}
static int64_t count_vectors(const trial *t) {
    return (int64_t)SPECIAL * t->width * t->arguments + 2 * (int64_t)t->width;
}
static void put(const trial *t, void *numbers, int64_t i, double value) {
    if (t->dtype == TP_FLOAT64) ((double *)numbers)[i] = value;
    else ((float *)numbers)[i] = (float)value;
}
static double get(const trial *t, const void *numbers, int64_t i) {
    return t->dtype == TP_FLOAT64 ? ((const double *)numbers)[i] : (double)((const float *)numbers)[i];
}
static bool is_subnormal_or_zero(const trial *t, double x) {
    return fabs(x) < (t->dtype == TP_FLOAT64 ? 0x1p-1022 : 0x1p-126);
}

/* ---- what came out ---- */

/* To a few last places; a result that is subnormal may be 0. */
static bool agree(const trial *t, double a, double b) {
    bool wide = t->dtype == TP_FLOAT64;
    if (a == b || (isnan(a) && isnan(b))) return true;
    return fabs(a - b) <= (wide ? 0x1p-46 : 0x1p-18) * fabs(b) + (wide ? 0x1p-1022 : 0x1p-126);
}

static tp_cl_lanes judge(const trial *t, const void *first, const void *vectors, const void *alone) {
    bool good[] = {true, true, true};
    for (int64_t v = 0; v < t->n / t->width; v++) {
        bool same = true, small = true, normal = true;
        for (int64_t i = v * t->width; i < (v + 1) * t->width; i++) {
            double x = get(t, first, i);
            same &= agree(t, get(t, vectors, i), get(t, alone, i));
            small &= fabs(x) < SMALL;
            normal &= isfinite(x) && !is_subnormal_or_zero(t, x);
        }
        if (same) continue;
        good[TP_CL_ANY_LANES] = false;
        if (small) good[TP_CL_SMALL_LANES] = false;
        if (normal) good[TP_CL_NORMAL_LANES] = false;
    }
    for (int level = TP_CL_ANY_LANES; level < TP_CL_NO_LANES; level++)
        if (good[level]) return (tp_cl_lanes)level;
    return TP_CL_NO_LANES;
}

/* ---- on the device ---- */

static void write_source(tp_text *s, const void *context) {
    const trial *t = context;
    const char *type = t->dtype == TP_FLOAT64 ? "double" : "float", *y = t->arguments > 1 ? ", y[i + k]" : "";
    char other[64] = "";
    if (t->arguments > 1) snprintf(other, sizeof other, ", vload%d(0, y + i)", t->width);
    tp_text_add(s, "%s%s", tp_cl_source("built_ins.cl"), tp_cl_source("types.cl"));
    tp_text_add(s,
                "__kernel void trial(__global const %s *x, long xo, __global const %s *y, long yo, __global %s *out, "
                "long oo, __global %s *alone, long ao) {\n    long i = get_global_id(0) * %d;\n"
                "    x += xo, y += yo, out += oo, alone += ao;\n"
                "    vstore%d(%s(vload%d(0, x + i)%s), 0, out + i);\n",
                type, type, type, type, t->width, t->width, t->function, t->width, other);
    tp_text_add(s, "    for (int k = 0; k < %d; k++) alone[i + k] = %s(x[i + k]%s);\n}\n", t->width, t->function, y);
}

/* The vectors' results and the lone numbers' into `results`, n of each; from n numbers for each argument. */
static int run(tp_cl_device *d, const trial *t, const void *numbers, void *results) {
    char key[96];
    size_t bytes = (size_t)(t->n * tp_itemsize(t->dtype));
    tp_device device = {TP_DEVICE_OPENCL, (int8_t)d->index};
    snprintf(key, sizeof key, "trial %s %d %d", t->function, (int)t->dtype, t->width);
    tp_autoref *in = tp_new_empty(TP_INTS(2, t->n), t->dtype, device),
               *out = in ? tp_new_empty(TP_INTS(2, t->n), t->dtype, device) : NULL;
    if (!out || tp_cl_copy_from_host(device, tp_data(in), numbers, 2 * bytes) < 0) return -1;
    tp_cl_call call = tp_cl_begin(d, tp_cl_kernel(d, key, "trial", write_source, t));
    if (!call.kernel) return -1;
    tp_cl_place from = tp_cl_place_of(in, tp_data(in)), to = tp_cl_place_of(out, tp_data(out));
    from.offset /= tp_itemsize(t->dtype), to.offset /= tp_itemsize(t->dtype);
    for (int i = 0; i < 2; i++, from.offset += t->n) tp_cl_pass_place(&call, from);
    for (int i = 0; i < 2; i++, to.offset += t->n) tp_cl_pass_place(&call, to);
    if (tp_cl_run(&call, t->n / t->width, 1) < 0) return -1;
    return tp_cl_copy_to_host(device, results, tp_data(out), 2 * bytes);
}

/* NO_LANES where the trial itself fails. */
static tp_cl_lanes try_out(tp_cl_device *d, trial *t) {
    t->n = count_vectors(t) * t->width;
    size_t bytes = (size_t)(2 * t->n * tp_itemsize(t->dtype));
    char *numbers = malloc(bytes), *results = malloc(bytes);
    tp_cl_lanes found = TP_CL_NO_LANES;
    for (int64_t i = 0; numbers && i < t->n; i++)
        for (int a = 0; a < 2; a++) put(t, numbers, a * t->n + i, number_of(t, a, i / t->width, (int)(i % t->width)));
    if (numbers && results && run(d, t, numbers, results) == 0) found = judge(t, numbers, results, results + bytes / 2);
    else tp_error_clear();
    free(numbers);
    free(results);
    return found;
}

/* ---- what is known ---- */

typedef struct known {
    struct known *next;
    tp_cl_hash key;
    tp_cl_lanes lanes;
} known;

static _Atomic(known *) all; /* never removed */

static const known *find(tp_cl_hash key) {
    for (const known *k = all; k; k = k->next)
        if (memcmp(&k->key, &key, sizeof key) == 0) return k;
    return NULL;
}
static void remember(tp_cl_hash key, tp_cl_lanes lanes) {
    known *k = malloc(sizeof *k);
    if (!k) return;
    *k = (known){all, key, lanes};
    while (!atomic_compare_exchange_weak(&all, &k->next, k)) {
    }
}

tp_cl_lanes tp_cl_trusted_lanes(tp_cl_device *d, const char *function, tp_dtype dtype, int arguments, int width) {
    trial t = {function, dtype, arguments, width, 0};
    char text[96];
    size_t size = 0;
    snprintf(text, sizeof text, "lanes of %s, dtype %d, width %d", function, (int)dtype, width);
    tp_cl_hash key = tp_cl_hash_text(tp_cl_hash_device(d), text);
    const known *before = find(key);
    if (before) return before->lanes;
    unsigned char *kept = tp_cl_disk_read(key, &size);
    tp_cl_lanes lanes = kept && size == 1 && *kept <= TP_CL_NO_LANES ? (tp_cl_lanes)*kept : try_out(d, &t);
    if (!kept) tp_cl_disk_write(key, &(unsigned char){(unsigned char)lanes}, 1);
    free(kept);
    remember(key, lanes);
    return lanes;
}
