/* shuffle.c: pixel_shuffle and its kin: a reshape, a permutation, a reshape. */
#include "NativeFunctions.h"

static tp_tensor *shuffle(tp_tensor *self, tp_ints split, tp_ints order, tp_ints sizes) {
    tp_autoref *parts = tp_reshape(self, split), *moved = parts ? tp_permute(parts, order) : NULL;
    tp_autoref *plain = moved ? tp_clone(moved, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *out = plain ? tp_view(plain, sizes) : NULL;
    return out ? tp_contiguous(out, tp_suggest_memory_format(self)) : NULL;
}

/* The sizes in front of the last three dimensions, which become one. */
static int64_t leading(const tp_tensor *t, int64_t sizes[TP_MAX_DIMS]) {
    int64_t n = 1;
    for (int i = 0; i < t->ndim - 3; i++) n *= sizes[i] = t->sizes[i];
    return n;
}

static int check_factor(const char *op, const char *name, const tp_tensor *self, int64_t factor) {
    if (self->ndim < 3)
        return tp_fail(TP_RuntimeError,
                       "%s expects input to have at least 3 dimensions, but got input with %d dimension(s)", op,
                       self->ndim);
    if (factor <= 0 || factor > INT32_MAX)
        return tp_fail(TP_RuntimeError, "%s expects a positive %s, but got %lld%s", op, name, (long long)factor,
                       factor > 0 ? ", which is too large" : "");
    return 0;
}

/* pixel_shuffle(Tensor self, int upscale_factor) -> Tensor */
tp_tensor *pixel_shuffle_composite(tp_tensor *self, int64_t upscale_factor) {
    int64_t r = upscale_factor, sizes[TP_MAX_DIMS], d = self->ndim - 3;
    if (check_factor("pixel_shuffle", "upscale_factor", self, r) < 0) return NULL;
    int64_t n = leading(self, sizes), c = self->sizes[d], h = self->sizes[d + 1], w = self->sizes[d + 2];
    if (c % (r * r))
        return tp_fail_null(TP_RuntimeError,
                            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                            "upscale_factor, but input.size(-3)=%lld is not divisible by %lld",
                            (long long)c, (long long)(r * r));
    sizes[d] = c / (r * r), sizes[d + 1] = h * r, sizes[d + 2] = w * r;
    return shuffle(self, TP_INTS(n, c / (r * r), r, r, h, w), TP_INTS(0, 1, 4, 2, 5, 3), (tp_ints){sizes, self->ndim});
}

/* pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor */
tp_tensor *pixel_unshuffle_composite(tp_tensor *self, int64_t downscale_factor) {
    int64_t r = downscale_factor, sizes[TP_MAX_DIMS], d = self->ndim - 3;
    if (check_factor("pixel_unshuffle", "downscale_factor", self, r) < 0) return NULL;
    int64_t n = leading(self, sizes), c = self->sizes[d], h = self->sizes[d + 1], w = self->sizes[d + 2];
    if (h % r || w % r)
        return tp_fail_null(TP_RuntimeError,
                            "pixel_unshuffle expects height and width to be divisible by downscale_factor, but "
                            "%lld x %lld is not divisible by %lld",
                            (long long)h, (long long)w, (long long)r);
    sizes[d] = c * r * r, sizes[d + 1] = h / r, sizes[d + 2] = w / r;
    return shuffle(self, TP_INTS(n, c, h / r, r, w / r, r), TP_INTS(0, 1, 3, 5, 2, 4), (tp_ints){sizes, self->ndim});
}

/* channel_shuffle(Tensor self, SymInt groups) -> Tensor */
tp_tensor *channel_shuffle_composite(tp_tensor *self, int64_t groups) {
    if (self->ndim < 3)
        return tp_fail_null(TP_RuntimeError, "channel_shuffle expects input with > 2 dims, but got %d", self->ndim);
    if (groups <= 0 || self->sizes[1] % groups)
        return tp_fail_null(TP_RuntimeError,
                            "Number of groups to divide channels in must be positive, and the number of channels must "
                            "be divisible by it; got %lld groups of %lld channels",
                            (long long)groups, (long long)self->sizes[1]);
    int64_t n = self->sizes[0], c = self->sizes[1], rest = 1;
    for (int i = 2; i < self->ndim; i++) rest *= self->sizes[i];
    return shuffle(self, TP_INTS(n, groups, c / groups, rest), TP_INTS(0, 2, 1, 3), tp_sizes(self));
}
