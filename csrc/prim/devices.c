/* devices.c: the error for tensors on two devices. */
#include "prim/devices.h"

#include "core/error.h"

/* Whether t is elsewhere than the first tensor seen. */
static bool elsewhere(const tp_tensor *t, const tp_tensor **first) {
    if (!t) return false;
    if (!*first) *first = t;
    return tp_other_device(*first, t);
}

static void describe(tp_text *text, const char *name, int64_t place, const tp_tensor *t) {
    char device[40];
    if (!t) return;
    tp_text_add(text, "%s%s", text->length ? ", " : "", name);
    if (place >= 0) tp_text_add(text, "[%lld]", (long long)place);
    tp_text_add(text, " on %s", tp_device_print(t->device, device));
}

int tp_check_devices(const char *op, const tp_device_argument *given, int64_t n) {
    const tp_tensor *first = NULL;
    bool differ = false;
    for (int64_t i = 0; i < n; i++) {
        differ |= elsewhere(given[i].tensor, &first);
        for (int64_t k = 0; k < given[i].list.size; k++) differ |= elsewhere(given[i].list.data[k], &first);
    }
    if (!differ) return 0;
    tp_autotext text = {0};
    for (int64_t i = 0; i < n; i++) {
        describe(&text, given[i].name, -1, given[i].tensor);
        for (int64_t k = 0; k < given[i].list.size; k++) describe(&text, given[i].name, k, given[i].list.data[k]);
    }
    return tp_fail(TP_RuntimeError, "%s: Expected all tensors to be on the same device, got %s", op,
                   text.text ? text.text : "");
}
