/* im2col.c: windows of images as columns (im2col) and their adjoint (col2im).
 *
 * The columns are a view of the image with its border, as_strided with overlapping windows; col2im adds them up. Each
 * is the other's gradient. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "prim/transfer.h"
#include "prim/plain.h"
#include "iter/iter.h"

typedef struct {
    int64_t batch, channels, in[2], out[2], padded[2];
    int64_t sizes[6], strides[6]; /* of the windows in the padded image: [batch, channels, kernel, kernel, out, out] */
} windows;

static int check_pair(const char *op, const char *name, tp_ints v, int64_t low) {
    if (v.size != 2)
        return tp_fail(TP_RuntimeError, "%s: It is expected %s equals to 2, but got size %lld", op, name,
                       (long long)v.size);
    for (int i = 0; i < 2; i++)
        if (v.data[i] < low)
            return tp_fail(TP_RuntimeError, "%s: %s should be %s, but got %lld", op, name,
                           low ? "greater than zero" : "non negative", (long long)v.data[i]);
    for (int64_t i = 0; i < v.size; i++)
        if (v.data[i] > INT32_MAX)
            return tp_fail(TP_RuntimeError, "%s: %s of %lld is too large", op, name, (long long)v.data[i]);
    return 0;
}

static int make_windows(windows *w, const char *op, int64_t batch, int64_t channels, const int64_t image[2],
                        tp_ints kernel, tp_ints dilation, tp_ints padding, tp_ints stride) {
    if (check_pair(op, "kernel_size", kernel, 1) < 0 || check_pair(op, "dilation", dilation, 1) < 0 ||
        check_pair(op, "padding", padding, 0) < 0 || check_pair(op, "stride", stride, 1) < 0)
        return -1;
    w->batch = batch, w->channels = channels;
    int64_t counts[2];
    for (int i = 0; i < 2; i++) {
        w->in[i] = image[i];
        w->padded[i] = image[i] + 2 * padding.data[i];
        int64_t room = w->padded[i] - dilation.data[i] * (kernel.data[i] - 1) - 1;
        counts[i] = (room < 0 ? -((-room + stride.data[i] - 1) / stride.data[i]) : room / stride.data[i]) + 1;
        w->out[i] = counts[i];
    }
    if (counts[0] < 1 || counts[1] < 1)
        return tp_fail(TP_RuntimeError,
                       "%s: there are (%lld, %lld) sliding blocks in an image of (%lld, %lld) with kernel_size=(%lld, "
                       "%lld), dilation=(%lld, %lld), padding=(%lld, %lld): there has to be one along both",
                       op, (long long)counts[0], (long long)counts[1], (long long)image[0], (long long)image[1],
                       (long long)kernel.data[0], (long long)kernel.data[1], (long long)dilation.data[0],
                       (long long)dilation.data[1], (long long)padding.data[0], (long long)padding.data[1]);
    int64_t plane = w->padded[0] * w->padded[1], row[2] = {w->padded[1], 1};
    w->sizes[0] = batch, w->sizes[1] = channels;
    w->strides[0] = channels * plane, w->strides[1] = plane;
    for (int i = 0; i < 2; i++) {
        w->sizes[2 + i] = kernel.data[i], w->strides[2 + i] = row[i] * dilation.data[i];
        w->sizes[4 + i] = w->out[i], w->strides[4 + i] = row[i] * stride.data[i];
    }
    return 0;
}

static tp_tensor *with_batch(const char *op, tp_tensor *t, int n, bool *added) {
    *added = t->ndim == n;
    if (*added) return tp_unsqueeze(t, 0);
    if (t->ndim == n + 1) return tp_retain(t);
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(t));
    return tp_fail_null(TP_RuntimeError,
                        "%s: Expected %dD or %dD (batch mode) tensor for input, but got input of size %s", op, n, n + 1,
                        text.text);
}

/* im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor */
tp_tensor *im2col_composite(tp_tensor *self, tp_ints kernel_size, tp_ints dilation, tp_ints padding, tp_ints stride) {
    windows w;
    bool added;
    tp_autoref *x = with_batch("im2col", self, 3, &added);
    if (!x ||
        make_windows(&w, "im2col", x->sizes[0], x->sizes[1], x->sizes + 2, kernel_size, dilation, padding, stride) < 0)
        return NULL;
    tp_ints border = TP_INTS(padding.data[1], padding.data[1], padding.data[0], padding.data[0]);
    tp_autoref *padded = tp_constant_pad_nd(x, border, TP_SCALAR_I(0)),
               *plain = padded ? tp_contiguous(padded, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *view =
        plain ? tp_as_strided(plain, (tp_ints){w.sizes, 6}, (tp_ints){w.strides, 6}, TP_SOME_INT(0)) : NULL;
    int64_t rows = w.channels * w.sizes[2] * w.sizes[3], columns = w.out[0] * w.out[1];
    tp_autoref *shaped = view ? tp_reshape(view, TP_INTS(w.batch, rows, columns)) : NULL;
    tp_autoref *out = shaped ? tp_contiguous(shaped, TP_CONTIGUOUS_FORMAT) : NULL; /* windows of one row overlap */
    return out && added ? tp_squeeze_dim(out, 0) : tp_take(out);
}

/* ---- and back ---- */

/* The sizes of the images, and the windows in them. */
static int col2im_windows(windows *w, tp_tensor *x, tp_ints output_size, tp_ints kernel, tp_ints dilation,
                          tp_ints padding, tp_ints stride) {
    if (check_pair("col2im", "output_size", output_size, 1) < 0 || check_pair("col2im", "kernel_size", kernel, 1) < 0)
        return -1;
    int64_t area = kernel.data[0] * kernel.data[1];
    if (x->sizes[1] % area)
        return tp_fail(TP_RuntimeError,
                       "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
                       "input.size(1)=%lld and kernel_size=(%lld, %lld).",
                       (long long)x->sizes[1], (long long)kernel.data[0], (long long)kernel.data[1]);
    if (make_windows(w, "col2im", x->sizes[0], x->sizes[1] / area, output_size.data, kernel, dilation, padding,
                     stride) < 0)
        return -1;
    if (x->sizes[2] == w->out[0] * w->out[1]) return 0;
    return tp_fail(
        TP_RuntimeError,
        "Expected size of input's dimension 2 to match the calculated number of sliding blocks %lld * %lld = "
        "%lld, but got input.size(2)=%lld.",
        (long long)w->out[0], (long long)w->out[1], (long long)(w->out[0] * w->out[1]), (long long)x->sizes[2]);
}

/* col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) ->
 * Tensor */
tp_tensor *col2im_dense(tp_tensor *self, tp_ints output_size, tp_ints kernel_size, tp_ints dilation, tp_ints padding,
                        tp_ints stride) {
    windows w;
    bool added;
    tp_dtype given = (tp_dtype)self->dtype, dtype = tp_compute_dtype(given);
    tp_autoref *x = with_batch("col2im", self, 2, &added);
    if (!x || col2im_windows(&w, x, output_size, kernel_size, dilation, padding, stride) < 0) return NULL;
    if (!tp_is_floating(self) && !tp_is_complex(self))
        return tp_fail_null(TP_NotImplementedError, "\"col2im\" not implemented for '%s'", tp_scalar_type_name(given));
    tp_autoref *plain = tp_plain(x, dtype);
    tp_autoref *images =
        plain ? tp_new_empty(TP_INTS(w.batch, w.channels, w.in[0], w.in[1]), dtype, self->device) : NULL;
    if (!images) return NULL;
    if (images->numel && tp_prim_fold(plain, kernel_size, dilation, padding, stride, images) < 0) return NULL;
    tp_autoref *out = tp_narrow_steal(tp_take(images), given);
    return out && added ? tp_squeeze_dim(out, 0) : tp_take(out);
}
