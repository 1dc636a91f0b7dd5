/* dispatch_tests.c: operators that PyTorch's tests of its generator and of its dispatcher call; see the YAML. */
#include "NativeFunctions.h"
#include "Functions.h"
#include "core/determinism.h"
#include "native/common/checks.h"
#include "prim/table.h"

#include <string.h>

/* The kernel of several: _test_warn_in_autograd(Tensor self) -> Tensor and its kin */
tp_tensor *_test_clone_composite(tp_tensor *self) { return tp_clone(self, TP_NO_FORMAT); }

/* _test_warning_backward(Tensor grad) -> Tensor */
tp_tensor *_test_warning_backward_composite(tp_tensor *grad) {
    return tp_warn("Warn from backward") < 0 ? NULL : tp_clone(grad, TP_NO_FORMAT);
}

/* _test_autograd_multiple_dispatch_view(Tensor(a) self) -> Tensor(a) */
tp_tensor *_test_autograd_multiple_dispatch_view_composite(tp_tensor *self) { return tp_view(self, TP_INTS(-1)); }

/* _test_string_default(Tensor dummy, str a="\"'\\", str b='"\'\\') -> Tensor */
tp_tensor *_test_string_default_composite(tp_tensor *dummy, const char *a, const char *b) {
    static const char expected[] = "\"'\\";
    if (strcmp(a, expected) != 0) return tp_fail_null(TP_RuntimeError, "Default A failed");
    if (strcmp(b, expected) != 0) return tp_fail_null(TP_RuntimeError, "Default B failed");
    return tp_retain(dummy);
}

/* ---- lists that may be absent ---- */

static int check_addends(const tp_tensor *values, tp_dtype wanted, int64_t given) {
    if (values->ndim != 1) return tp_fail(TP_RuntimeError, "Expected values.dim() == 1 to be true, but got false.");
    if ((tp_dtype)values->dtype != wanted)
        return tp_fail(TP_RuntimeError, "expected scalar type %s but found %s", tp_scalar_type_name(wanted),
                       tp_scalar_type_name((tp_dtype)values->dtype));
    if (given >= values->numel) return 0;
    return tp_fail(TP_RuntimeError, "ArrayRef: invalid index Index = %lld; Length = %lld", (long long)given,
                   (long long)given);
}

static tp_tensor *with_addends(tp_tensor *values, tp_tensor *addends) {
    tp_autoref *there = tp_to_device(addends, values->device, (tp_dtype)values->dtype, false, false, TP_NO_FORMAT);
    return there ? tp_add_Tensor(values, there, TP_SCALAR_I(1)) : NULL;
}

/* _test_optional_intlist(Tensor values, int[]? addends) -> Tensor */
tp_tensor *_test_optional_intlist_composite(tp_tensor *values, tp_ints addends) {
    int64_t *room;
    if (addends.size < 0) return tp_retain(values);
    if (check_addends(values, TP_INT32, addends.size) < 0) return NULL;
    tp_autoref *table = tp_table_int64(tp_sizes(values), &room);
    if (!table) return NULL;
    for (int64_t i = 0; i < values->numel; i++) room[i] = addends.data[i];
    return with_addends(values, table);
}

/* _test_optional_floatlist(Tensor values, float[]? addends) -> Tensor */
tp_tensor *_test_optional_floatlist_composite(tp_tensor *values, tp_floats addends) {
    double *room;
    if (addends.size < 0) return tp_retain(values);
    if (check_addends(values, TP_FLOAT32, addends.size) < 0) return NULL;
    tp_autoref *table = tp_table_float64(tp_sizes(values), &room);
    if (!table) return NULL;
    for (int64_t i = 0; i < values->numel; i++) room[i] = addends.data[i];
    return with_addends(values, table);
}
