/* reduce.c: the primitives reduce.*: an output's elements one after another, in blocks whose results are joined, so
 * that errors of sums do not grow with their number. */
#include "interpret.h"

#include <complex.h>
#include <math.h>

#define BLOCK 128

/* A walk over what is reduced to each element of an output. */
typedef struct {
    view kept, reduced;
} walk;

static walk walk_over(const view *x, const argument *dim) {
    return (walk){across(x, dim->ints, dim->n), along(x, dim->ints, dim->n)};
}
static number element_at(const walk *w, int64_t output, int64_t i, tp_dtype d) {
    const char *p = at(&w->kept, output) + (at(&w->reduced, i) - w->reduced.data);
    return converted(number_at(p, w->kept.dtype), w->kept.dtype, d);
}

/* The sum of what is wanted of the elements begin to end. */
typedef number (*part)(number x, tp_dtype d);
static number sum_of(const walk *w, int64_t output, int64_t begin, int64_t end, tp_dtype d, part wanted) {
    number sum = {.c = 0};
    if (end - begin > BLOCK) {
        int64_t middle = begin + (end - begin) / 2;
        return plus(sum_of(w, output, begin, middle, d, wanted), sum_of(w, output, middle, end, d, wanted), d);
    }
    for (int64_t i = begin; i < end; i++) sum = plus(sum, wanted(element_at(w, output, i, d), d), d);
    return sum;
}

static number itself(number x, tp_dtype d) { return (void)d, x; }
static number unless_nan(number x, tp_dtype d) { return is_nan(x, d) ? (number){.c = 0} : x; }

static tp_dtype sum_dtype(tp_dtype out) { return is_floating(out) || is_complex(out) ? compute_of(out) : TP_INT64; }

static void sum_into(const argument *a, part wanted, bool mean) {
    const view *out = a[2].tensors;
    walk w = walk_over(a[0].tensors, &a[1]);
    tp_dtype d = sum_dtype(out->dtype);
    for (int64_t k = 0; k < out->numel; k++) {
        number sum = sum_of(&w, k, 0, w.reduced.numel, d, wanted);
        if (mean && is_complex(d)) sum.c /= (double)w.reduced.numel;
        else if (mean) sum.f /= (double)w.reduced.numel;
        put(out, k, converted(narrowed(sum, d), d, out->dtype));
    }
}

/* reduce.sum(Tensor x, int[] dim, *, Tensor(a!) out) -> (), and those shaped like it */
static void sum(const argument *a) { sum_into(a, itself, false); }
static void mean(const argument *a) { sum_into(a, itself, true); }
static void nansum(const argument *a) { sum_into(a, unless_nan, false); }

static void count_into(const argument *a, int64_t (*result)(int64_t nonzero, int64_t n)) {
    const view *out = a[2].tensors;
    walk w = walk_over(a[0].tensors, &a[1]);
    tp_dtype d = w.kept.dtype;
    for (int64_t k = 0; k < out->numel; k++) {
        int64_t nonzero = 0;
        for (int64_t i = 0; i < w.reduced.numel; i++) nonzero += !is_zero(element_at(&w, k, i, d), d);
        put(out, k, converted((number){.i = result(nonzero, w.reduced.numel)}, TP_INT64, out->dtype));
    }
}
static int64_t is_any(int64_t nonzero, int64_t n) { return (void)n, nonzero > 0; }
static int64_t is_all(int64_t nonzero, int64_t n) { return nonzero == n; }
static int64_t how_many(int64_t nonzero, int64_t n) { return (void)n, nonzero; }
static void any(const argument *a) { count_into(a, is_any); }
static void all(const argument *a) { count_into(a, is_all); }
static void count(const argument *a) { count_into(a, how_many); }

/* reduce.max(Tensor x, int[] dim, *, Tensor(a!)? out, Tensor(b!)? at) -> () */
static void extreme(const argument *a, int sign) {
    const view *out = a[2].tensors, *places = a[3].tensors, *first = a[2].n ? out : places;
    walk w = walk_over(a[0].tensors, &a[1]);
    tp_dtype d = w.kept.dtype;
    for (int64_t k = 0; first && k < first->numel; k++) {
        number best = element_at(&w, k, 0, d);
        int64_t place_of_best = 0;
        for (int64_t i = 1; i < w.reduced.numel && !is_nan(best, d); i++) {
            number x = element_at(&w, k, i, d);
            if (is_nan(x, d) || compared(x, best, d) * sign > 0) best = x, place_of_best = i;
        }
        if (a[2].n) put(out, k, best);
        if (a[3].n) put(places, k, (number){.i = place_of_best});
    }
}
static void max(const argument *a) { extreme(a, 1); }
static void min(const argument *a) { extreme(a, -1); }

/* reduce.variance(Tensor x, int[] dim, float correction, bool root, *, Tensor(a!) out) -> () */
static void variance(const argument *a) {
    const view *out = a[4].tensors;
    walk w = walk_over(a[0].tensors, &a[1]);
    int64_t n = w.reduced.numel;
    double by = (double)n - a[2].f;
    for (int64_t k = 0; k < out->numel; k++) {
        double _Complex center = sum_of(&w, k, 0, n, TP_COMPLEX128, itself).c / (double)n;
        double squares = 0;
        for (int64_t i = 0; i < n; i++) {
            double _Complex x = element_at(&w, k, i, TP_COMPLEX128).c - center;
            squares += creal(x) * creal(x) + cimag(x) * cimag(x);
        }
        double found = squares / (by > 0 ? by : 0);
        put(out, k, (number){.f = a[3].b ? sqrt(found) : found});
    }
}

/* reduce.length(Tensor x, int[] dim, *, Tensor(a!) out) -> () */
static void length(const argument *a) {
    const view *out = a[2].tensors;
    walk w = walk_over(a[0].tensors, &a[1]);
    tp_dtype d = compute_of(out->dtype);
    if (is_complex(w.kept.dtype)) d = d == TP_FLOAT64 ? TP_COMPLEX128 : TP_COMPLEX64;
    for (int64_t k = 0; k < out->numel; k++) {
        double squares = 0;
        for (int64_t i = 0; i < w.reduced.numel; i++) {
            double _Complex x = converted(element_at(&w, k, i, d), d, TP_COMPLEX128).c;
            squares += creal(x) * creal(x) + cimag(x) * cimag(x);
        }
        put(out, k, (number){.f = sqrt(squares)});
    }
}

/* reduce.program(int program, Tensor x, int[] dim, ScalarType compute, *, Tensor(a!) out) -> () */
static void program(const argument *a) {
    const view *out = a[4].tensors;
    walk w = walk_over(a[1].tensors, &a[2]);
    tp_dtype d = (tp_dtype)a[3].i;
    tp_reduce_program r;
    if (tp_reduce_program_at(a[0].i, d, &r) < 0) return tp_error_clear();
    for (int64_t k = 0; k < out->numel; k++) {
        element e = {.compute = d};
        number whole = interpret(&r.parts[TP_REDUCTION_START], &e);
        for (int64_t begin = 0; begin < w.reduced.numel; begin += BLOCK) {
            number block = interpret(&r.parts[TP_REDUCTION_START], &e);
            for (int64_t i = begin; i < w.reduced.numel && i < begin + BLOCK; i++) {
                e.inputs[0] = block, e.inputs[1] = element_at(&w, k, i, d);
                block = interpret(&r.parts[TP_REDUCTION_STEP], &e);
            }
            e.inputs[0] = whole, e.inputs[1] = block;
            whole = interpret(&r.parts[TP_REDUCTION_JOIN], &e);
        }
        e.inputs[0] = whole, e.inputs[1] = converted((number){.i = w.reduced.numel}, TP_INT64, d);
        put(out, k, converted(interpret(&r.parts[TP_REDUCTION_FINISH], &e), r.result, out->dtype));
    }
}

PRIMITIVES({"reduce.sum", sum}, {"reduce.mean", mean}, {"reduce.nansum", nansum}, {"reduce.any", any},
           {"reduce.all", all}, {"reduce.count", count}, {"reduce.max", max}, {"reduce.min", min},
           {"reduce.variance", variance}, {"reduce.length", length}, {"reduce.program", program})
