/* range.c: sequences and triangles. */
#include "device.h"

#include <math.h>
#include <string.h>

/* range.int(int first, int step, *, Tensor(a!) out) -> () */
static void range_int(const argument *a) {
    const view *out = a[2].tensors;
    for (int64_t i = 0; i < out->numel; i++) {
        number x = {.u = (uint64_t)a[0].i + (uint64_t)i * (uint64_t)a[1].i};
        put(out, i, converted(x, TP_INT64, out->dtype));
    }
}

/* range.float(float a, float b, float last, float base, int half, bool single, *, Tensor(a!) out) -> () */
static void range_float(const argument *a) {
    const view *out = a[6].tensors;
    double first = a[0].f, step = a[1].f, last = a[2].f;
    for (int64_t i = 0, n = out->numel; i < n; i++) {
        bool lower = i < a[4].i;
        double x = lower ? first + step * (double)i : last - step * (double)(n - 1 - i);
        if (a[5].b) x = (float)(lower ? first : last) + (float)(lower ? i : i + 1 - n) * (float)step;
        if (a[3].f != 0) x = pow(a[3].f, x);
        put(out, i, converted((number){.f = x}, TP_FLOAT64, out->dtype));
    }
}

/* triangle.lower(Tensor x, int diagonal, *, Tensor(a!) out) -> () */
static void triangle(const argument *a, bool lower) {
    const view *x = a[0].tensors, *out = a[2].tensors;
    int64_t rows = x->sizes[x->ndim - 2], columns = x->sizes[x->ndim - 1];
    for (int64_t i = 0; i < out->numel; i++) {
        int64_t r = i / columns % rows, c = i % columns;
        bool kept = lower ? c - r <= a[1].i : c - r >= a[1].i;
        if (kept) memcpy(at(out, i), at(x, i), (size_t)x->item);
        else memset(at(out, i), 0, (size_t)x->item);
    }
}
static void triangle_lower(const argument *a) { triangle(a, true); }
static void triangle_upper(const argument *a) { triangle(a, false); }

/* triangle_indices.lower(int rows, int columns, int diagonal, *, Tensor(a!) out) -> () */
static void indices(const argument *a, bool lower) {
    const view *out = a[3].tensors;
    int64_t next = 0, n = out->sizes[1];
    for (int64_t r = 0; r < a[0].i; r++)
        for (int64_t c = 0; c < a[1].i; c++) {
            if (lower ? c - r > a[2].i : c - r < a[2].i) continue;
            put(out, next, (number){.i = r});
            put(out, n + next++, (number){.i = c});
        }
}
static void indices_lower(const argument *a) { indices(a, true); }
static void indices_upper(const argument *a) { indices(a, false); }

PRIMITIVES({"range.int", range_int}, {"range.float", range_float}, {"triangle.lower", triangle_lower},
           {"triangle.upper", triangle_upper}, {"triangle_indices.lower", indices_lower},
           {"triangle_indices.upper", indices_upper})
