/* quantized_conv.c: convolutions of integers by a weight that lies in panels (Note [Quantized kernels]). */
#include "native/layout/quantized.h"

#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/scalar.h"
#include "iter/iter.h"
#include "prim/plain.h"

#define OP "quantized::conv"
#define PANEL 16
#define MOST (INT64_C(1) << 40) /* numbers that a line of windows reaches */

typedef struct {
    tp_ints window, stride, padding, dilation;
    int64_t groups;
} settings;

static int check_three(const char *name, tp_ints v, int64_t least) {
    for (int d = 0; d < 3; d++)
        if (v.size != 3 || v.data[d] < least || v.data[d] > INT32_MAX)
            return tp_fail(TP_RuntimeError, OP ": %s is three numbers from %lld on", name, (long long)least);
    return 0;
}

/* The places of the windows; -1: there are none, or a line of them reaches too far. */
static int find_places(const tp_tensor *x, const settings *s, int64_t *places) {
    double reached = (double)x->sizes[4] + (double)s->groups;
    for (int d = 0; d < 3; d++) {
        int64_t reach = s->dilation.data[d] * (s->window.data[d] - 1) + 1;
        int64_t room = x->sizes[d + 1] + 2 * s->padding.data[d] - reach;
        if (room < 0)
            return tp_fail(TP_RuntimeError, OP ": a window of %lld is larger than an input of %lld with its padding",
                           (long long)reach, (long long)(room + reach));
        places[d] = room / s->stride.data[d] + 1;
        reached *= (double)(d < 2 ? reach : (places[2] - 1) * s->stride.data[2] + reach);
    }
    if (reached > (double)MOST) return tp_fail(TP_RuntimeError, OP ": windows of such a size take too much memory");
    return 0;
}

static int check_panels(const tp_tensor *x, const tp_tensor *panels, const settings *s, int64_t features) {
    int64_t groups = s->groups, each = x->sizes[4] / groups;
    bool apart = panels->ndim == 5 && panels->sizes[4] == 1;
    int64_t line = apart                                     ? s->window.data[2]
                   : groups == 1 && s->dilation.data[2] == 1 ? (s->window.data[2] * each + 3) / 4
                                                             : s->window.data[2] * ((each + 3) / 4);
    double runs = (double)s->window.data[0] * (double)s->window.data[1] * (double)line;
    int64_t rows = apart ? features : features / groups, kept = apart ? 1 : groups;
    bool fits = panels->dtype == TP_INT8 && panels->ndim == 5 && panels->sizes[0] == kept &&
                panels->sizes[1] == (rows + PANEL - 1) / PANEL && (double)panels->sizes[2] == runs &&
                panels->sizes[3] == PANEL && panels->sizes[4] == (apart ? 1 : 4);
    if (fits && (!apart || (each == 1 && features == groups))) return 0;
    return tp_fail(TP_RuntimeError, OP ": the weight lies in no panels of %lld features for %lld channels",
                   (long long)features, (long long)x->sizes[4]);
}

/* _convolution_int8(Tensor self, Tensor panels, Tensor scales, Tensor zero_points, Tensor? bias, int[] window, int[]
 * stride, int[] padding, int[] dilation, int groups, int features, float scale, int zero_point, float out_scale, int
 * out_zero_point, bool relu) -> Tensor */
tp_tensor *_convolution_int8_dense(tp_tensor *self, tp_tensor *panels, tp_tensor *scales, tp_tensor *zero_points,
                                   tp_tensor *bias, tp_ints window, tp_ints stride, tp_ints padding, tp_ints dilation,
                                   int64_t groups, int64_t features, double scale, int64_t zero_point, double out_scale,
                                   int64_t out_zero_point, bool relu) {
    const settings s = {window, stride, padding, dilation, groups};
    int64_t places[3];
    if (self->ndim != 5 || (self->dtype != TP_UINT8 && self->dtype != TP_INT8))
        return tp_fail_null(TP_RuntimeError, OP ": the input is a tensor of bytes in 5 dimensions");
    if (groups < 1 || features < 1 || features % groups || self->sizes[4] % groups || self->sizes[4] < 1)
        return tp_fail_null(TP_RuntimeError, OP ": %lld channels and %lld features are not %lld groups",
                            (long long)self->sizes[4], (long long)features, (long long)groups);
    if (check_three("the window", window, 1) < 0 || check_three("stride", stride, 1) < 0 ||
        check_three("padding", padding, 0) < 0 || check_three("dilation", dilation, 1) < 0 ||
        find_places(self, &s, places) < 0 || check_panels(self, panels, &s, features) < 0 ||
        tp_check_int8_numbers(OP, scales, zero_points, bias, features) < 0 ||
        tp_check_int8_range(OP, (tp_dtype)self->dtype, out_scale, out_zero_point) < 0)
        return NULL;
    tp_autoref *a = tp_contiguous(self, TP_CONTIGUOUS_FORMAT), *p = tp_contiguous(panels, TP_CONTIGUOUS_FORMAT);
    tp_autoref *sc = tp_contiguous(scales, TP_CONTIGUOUS_FORMAT), *z = tp_contiguous(zero_points, TP_CONTIGUOUS_FORMAT);
    tp_autoref *b = bias ? tp_contiguous(bias, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *out = tp_new_empty(TP_INTS(self->sizes[0], places[0], places[1], places[2], features),
                                   (tp_dtype)self->dtype, self->device);
    if (!a || !p || !sc || !z || !out || (bias && !b)) return NULL;
    if (out->numel && tp_prim_convolution_int8(a, p, sc, z, b, window, stride, padding, dilation, groups, scale,
                                               zero_point, out_scale, out_zero_point, relu, out) < 0)
        return NULL;
    return tp_take(out);
}
