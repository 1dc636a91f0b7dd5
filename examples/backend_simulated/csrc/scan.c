/* scan.c: the primitives scan.*: running results along a dimension. */
#include "device.h"

#include <math.h>

typedef struct {
    view x_lines, x_line, out_lines, out_line;
    tp_dtype d;
} lines;

static lines lines_of(const view *x, const view *out, const int64_t *dim) {
    int64_t n = x->ndim > 0;
    return (lines){across(x, dim, n), along(x, dim, n), across(out, dim, n), along(out, dim, n), x->dtype};
}
static number read(const lines *l, int64_t line, int64_t i) {
    return number_at(at(&l->x_lines, line) + (at(&l->x_line, i) - l->x_line.data), l->d);
}
static void write(const lines *l, int64_t line, int64_t i, number x) {
    number_to(at(&l->out_lines, line) + (at(&l->out_line, i) - l->out_line.data), l->d, x);
}

typedef number (*step)(number acc, number x, tp_dtype d);

/* scan.sum(Tensor x, int dim, *, Tensor(a!) out) -> (), and those shaped like it */
static void scan(const argument *a, step next) {
    lines l = lines_of(a[0].tensors, a[2].tensors, &a[1].i);
    for (int64_t line = 0; line < l.x_lines.numel; line++) {
        number acc = read(&l, line, 0);
        write(&l, line, 0, acc);
        for (int64_t i = 1; i < l.x_line.numel; i++) write(&l, line, i, acc = next(acc, read(&l, line, i), l.d));
    }
}

static number log_of_sum(number a, number b, tp_dtype d) {
    (void)d;
    double high = a.f > b.f ? a.f : b.f, low = a.f > b.f ? b.f : a.f;
    if (isnan(a.f) || isnan(b.f)) return (number){.f = NAN};
    return (number){.f = isinf(high) ? high : high + log1p(exp(low - high))};
}

static void scan_sum(const argument *a) { scan(a, plus); }
static void scan_prod(const argument *a) { scan(a, times); }
static void scan_logsumexp(const argument *a) { scan(a, log_of_sum); }

/* scan.max(Tensor x, int dim, *, Tensor(a!) out, Tensor(b!) at) -> () */
static void extreme(const argument *a, int sign) {
    lines l = lines_of(a[0].tensors, a[2].tensors, &a[1].i), places = lines_of(a[0].tensors, a[3].tensors, &a[1].i);
    places.d = TP_INT64;
    for (int64_t line = 0; line < l.x_lines.numel; line++) {
        number best = read(&l, line, 0);
        int64_t place_of_best = 0;
        for (int64_t i = 0; i < l.x_line.numel; i++) {
            number x = read(&l, line, i);
            bool better = is_nan(x, l.d) || (!is_nan(best, l.d) && compared(x, best, l.d) * sign >= 0);
            if (better) best = x, place_of_best = i;
            write(&l, line, i, best);
            write(&places, line, i, (number){.i = place_of_best});
        }
    }
}
static void scan_max(const argument *a) { extreme(a, 1); }
static void scan_min(const argument *a) { extreme(a, -1); }

PRIMITIVES({"scan.sum", scan_sum}, {"scan.prod", scan_prod}, {"scan.logsumexp", scan_logsumexp}, {"scan.max", scan_max},
           {"scan.min", scan_min})
