/* variants.c: out= and in-place variants that copy a functional variant's result.
 *
 * They run below autograd: the layers above have recorded the variant itself, so the copy must not be seen by them. */
#include "native/variants.h"

#include "Functions.h"
#include "dispatch/key.h"
#include "iter/iter.h"

#define LAYERS (TP_AUTOCAST_KEYS | TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView))

static int copy_below_layers(tp_tensor *self, tp_tensor *made) {
    tp_exclude_guard guard = tp_exclude(LAYERS);
    return tp_copy_(self, made, false);
}

static int check_cast(const tp_tensor *from, const tp_tensor *to) {
    return tp_check_castable((tp_dtype)from->dtype, (tp_dtype)to->dtype);
}

static int check_device(const tp_tensor *out, const tp_tensor *made) {
    char wanted[40], found[40];
    if (tp_device_equal(out->device, made->device)) return 0;
    return tp_fail(TP_RuntimeError, "Expected out tensor to have device %s, but got %s instead",
                   tp_device_print(made->device, wanted), tp_device_print(out->device, found));
}

static int check_out(const tp_tensor *out, const tp_tensor *made) {
    return check_cast(made, out) < 0 ? -1 : check_device(out, made);
}

int tp_copy_into_out(tp_tensor *out, tp_tensor *made) {
    if (check_out(out, made) < 0) return -1;
    if (!tp_same_sizes(out, made) && tp_tensor_resize(out, tp_sizes(made), TP_NO_INTS) < 0) return -1;
    return copy_below_layers(out, made);
}

int tp_copy_into_out_of_its_dtype(tp_tensor *out, tp_tensor *made) {
    if (out->dtype == made->dtype) return tp_copy_into_out(out, made);
    return tp_fail(TP_RuntimeError, "Expected out tensor to have dtype %s, but got %s instead",
                   tp_dtype_names[made->dtype], tp_dtype_names[out->dtype]);
}

static int check_fits_self(const tp_tensor *self, const tp_tensor *made) {
    if (check_cast(made, self) < 0) return -1;
    if (tp_same_sizes(self, made)) return 0;
    tp_autotext text = {0};
    tp_text_ints(&text, tp_sizes(self));
    tp_text_add(&text, " doesn't match the broadcast shape ");
    tp_text_ints(&text, tp_sizes(made));
    return tp_fail(TP_RuntimeError, "output with shape %s", text.text ? text.text : "");
}

int tp_copy_into_self(tp_tensor *self, tp_tensor *made) {
    return check_fits_self(self, made) < 0 ? -1 : copy_below_layers(self, made);
}

int tp_copy_into_self_recorded(tp_tensor *self, tp_tensor *made) {
    return check_fits_self(self, made) < 0 ? -1 : tp_copy_(self, made, false);
}

int tp_copy_into_out_list(tp_tensors outs, const tp_tensor_seq *made) {
    if (outs.size != made->size)
        return tp_fail(TP_RuntimeError, "expected an out= list of %lld tensors, got %lld", (long long)made->size,
                       (long long)outs.size);
    for (int64_t i = 0; i < made->size; i++)
        if (check_out(outs.data[i], made->items[i]) < 0) return -1; /* before the first is written */
    for (int64_t i = 0; i < made->size; i++)
        if (tp_copy_into_out(outs.data[i], made->items[i]) < 0) return -1;
    return 0;
}

/* Places go into int64 only. */
static int check_one_of_outs(const tp_tensor *out, const tp_tensor *made) {
    if (made->dtype == TP_INT64 && out->dtype != TP_INT64)
        return tp_fail(TP_RuntimeError, "Expected out tensor to have dtype int64, but got %s instead",
                       tp_dtype_names[out->dtype]);
    return check_out(out, made);
}

int tp_copy_into_outs_steal(tp_tensor *const *outs, tp_tensor *const *made, int n) {
    int status = 0;
    for (int i = 0; i < n && status == 0; i++)
        status = check_one_of_outs(outs[i], made[i]); /* before the first is written */
    for (int i = 0; i < n; i++) {
        if (status == 0) status = tp_copy_into_out(outs[i], made[i]);
        tp_release(made[i]);
    }
    return status;
}
