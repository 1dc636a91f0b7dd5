/* pool_1d.c: pooling of signals, which is that of images of height one. */
#include "NativeFunctions.h"
#include "native/nn/pool.h"

#include <string.h>

/* The list of two that a list of one stands for; an empty one stays empty. */
typedef struct {
    int64_t data[2];
    tp_ints ints;
} pair;

static int make_pair(pair *p, const char *op, const char *name, tp_ints v, int64_t first) {
    if (v.size > 1)
        return tp_fail(TP_RuntimeError, "%s() argument '%s' should contain one int (got %lld)", op, name,
                       (long long)v.size);
    p->data[0] = first;
    p->data[1] = v.size ? v.data[0] : 0;
    p->ints = (tp_ints){p->data, v.size ? 2 : 0};
    return 0;
}

static int make_size(pair *p, const char *op, tp_ints v) {
    if (v.size == 0) return tp_fail(TP_RuntimeError, "%s() argument 'output_size' should contain one int (got 0)", op);
    return make_pair(p, op, "output_size", v, 1);
}

/* self with a dimension of height in front of its last; new. */
static tp_tensor *as_image(const char *op, tp_tensor *self) {
    bool fits = self->ndim == 2 || self->ndim == 3;
    if (fits && self->sizes[self->ndim - 1] && self->sizes[self->ndim - 2]) return tp_unsqueeze(self, -2);
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(self));
    return tp_fail_null(TP_RuntimeError,
                        "%s: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got: "
                        "%s",
                        op, text.text);
}

/* The same for what has a size to come to, where less may be empty. */
static tp_tensor *as_adaptive_image(const char *op, tp_tensor *self) {
    if (self->ndim == 2 || self->ndim == 3) return tp_unsqueeze(self, -2);
    return tp_fail_null(TP_RuntimeError,
                        "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 'self' (while "
                        "checking arguments for %s)",
                        self->ndim, op);
}

static tp_tensor *as_signal(tp_tensor *image) {
    tp_autoref *t = image;
    return t ? tp_squeeze_dim(t, -2) : NULL;
}

/* The same for an image that nobody else has, by an operator that is differentiated as a whole: no view of anything. */
static tp_tensor *as_own_signal(tp_tensor *image) {
    tp_autoref *owned = image, *t = owned ? tp_contiguous(owned, TP_CONTIGUOUS_FORMAT) : NULL;
    if (!t) return NULL;
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    int n = t->ndim - 1;
    memcpy(sizes, t->sizes, (size_t)n * sizeof *sizes);
    sizes[n - 1] = t->sizes[n];
    tp_contiguous_strides((tp_ints){sizes, n}, strides);
    return tp_new_alias(t, (tp_ints){sizes, n}, (tp_ints){strides, n}, t->byte_offset);
}

static tp_tensor2 as_signals(tp_tensor2 images) {
    tp_tensor2 r = {{as_signal(images.v[0]), as_signal(images.v[1])}};
    if (r.v[0] && r.v[1]) return r;
    tp_release(r.v[0]);
    tp_release(r.v[1]);
    return (tp_tensor2){{NULL}};
}

/* max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool
 * ceil_mode=False) -> (Tensor, Tensor) */
tp_tensor2 max_pool1d_with_indices_composite(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding,
                                             tp_ints dilation, bool ceil_mode) {
    pair k, s, p, d;
    if (make_pair(&k, "max_pool1d", "kernel_size", kernel_size, 1) < 0 ||
        make_pair(&s, "max_pool1d", "stride", stride, 1) < 0 ||
        make_pair(&p, "max_pool1d", "padding", padding, 0) < 0 ||
        make_pair(&d, "max_pool1d", "dilation", dilation, 1) < 0)
        return (tp_tensor2){{NULL}};
    tp_autoref *image = as_image("max_pool1d", self);
    if (!image) return (tp_tensor2){{NULL}};
    return as_signals(tp_max_pool2d_with_indices(image, k.ints, s.ints, p.ints, d.ints, ceil_mode));
}

/* max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool
 * ceil_mode=False) -> Tensor */
tp_tensor *max_pool1d_composite(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding, tp_ints dilation,
                                bool ceil_mode) {
    tp_tensor2 both = tp_max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode);
    tp_release(both.v[1]);
    return both.v[0];
}

/* avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool
 * count_include_pad=True) -> Tensor */
tp_tensor *avg_pool1d_composite(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding, bool ceil_mode,
                                bool count_include_pad) {
    pair k, s, p;
    if (make_pair(&k, "avg_pool1d", "kernel_size", kernel_size, 1) < 0 ||
        make_pair(&s, "avg_pool1d", "stride", stride, 1) < 0 || make_pair(&p, "avg_pool1d", "padding", padding, 0) < 0)
        return NULL;
    tp_autoref *image = as_image("avg_pool1d", self);
    if (!image) return NULL;
    return as_own_signal(tp_avg_pool2d(image, k.ints, s.ints, p.ints, ceil_mode, count_include_pad, TP_NO_INT));
}

/* adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor */
tp_tensor *adaptive_avg_pool1d_composite(tp_tensor *self, tp_ints output_size) {
    pair n;
    if (make_size(&n, "adaptive_avg_pool1d", output_size) < 0) return NULL;
    tp_autoref *image = as_adaptive_image("adaptive_avg_pool1d", self);
    return image ? as_own_signal(tp_adaptive_avg_pool2d(image, n.ints)) : NULL;
}

/* adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor) */
tp_tensor2 adaptive_max_pool1d_composite(tp_tensor *self, tp_ints output_size) {
    pair n;
    if (make_size(&n, "adaptive_max_pool1d", output_size) < 0) return (tp_tensor2){{NULL}};
    tp_autoref *image = as_adaptive_image("adaptive_max_pool1d", self);
    if (image && tp_check_no_empty("adaptive_max_pool1d", self, 1) < 0) return (tp_tensor2){{NULL}};
    return image ? as_signals(tp_adaptive_max_pool2d(image, n.ints)) : (tp_tensor2){{NULL}};
}
