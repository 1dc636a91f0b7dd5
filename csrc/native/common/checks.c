/* checks.c: see checks.h. */
#include "native/common/checks.h"

#include "Functions.h"
#include "core/error.h"
#include "core/scalar.h"
#include "native/common/out.h"

int tp_holds(tp_tensor *t, bool *holds) {
    tp_scalar value;
    if (tp_item(t, &value) < 0) return -1;
    *holds = tp_scalar_bool(&value);
    return 0;
}

int64_t tp_wrap_own_dim(int64_t dim, const tp_tensor *t) {
    int64_t own = tp_wrap_dim(dim, t->ndim);
    if (own < 0 || t->ndim) return own;
    return tp_fail(TP_IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
}

int tp_check_dtype(const char *op, const char *name, const tp_tensor *t, tp_dtype wanted) {
    if (!t || (tp_dtype)t->dtype == wanted) return 0;
    return tp_fail(TP_RuntimeError, "%s: expected %s to have dtype %s, but got %s", op, name, tp_dtype_names[wanted],
                   tp_dtype_names[t->dtype]);
}

int tp_check_norm_dtypes(const char *op, const tp_tensor *input, tp_tensor *const *params, const char *const *names,
                         int n) {
    tp_dtype wanted = (tp_dtype)input->dtype;
    for (int i = 0; i < n && tp_is_reduced_dtype(wanted); i++)
        if (params[i] && params[i]->dtype == TP_FLOAT32) wanted = TP_FLOAT32;
    for (int i = 0; i < n; i++)
        if (tp_check_dtype(op, names[i], params[i], wanted) < 0) return -1;
    return 0;
}

int tp_check_same_dtype(const char *names, const tp_tensor *a, const tp_tensor *b) {
    if (a->dtype == b->dtype) return 0;
    return tp_fail(TP_RuntimeError, "expected %s to have the same dtype, but got: %s != %s", names,
                   tp_c_type_name((tp_dtype)a->dtype), tp_c_type_name((tp_dtype)b->dtype));
}
