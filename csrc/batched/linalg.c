/* linalg.c: matrices of all samples at once: the error of a batch of factorizations, tolerances of pseudo-inverses. */
#include "NativeFunctions.h"
#include "batched/batched.h"

/* _linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> () */
int _linalg_check_errors_batched(tp_tensor *info, const char *api_name, bool is_matrix TP_UNUSED) {
    tp_autobatch s;
    tp_tensor *given[] = {info};
    if (tp_batch_enter(&s, (tp_tensors){given, 1}) < 0) return -1;
    return tp__linalg_check_errors(tp_batch_inner_borrow(info), api_name, false);
}

/* What stands beside the `dims` dimensions in which a sample's matrices lie. */
static tp_tensor *beside_matrices(const tp_batch_scope *s, tp_tensor *t, int dims) {
    tp_tensor *wide = t ? tp_batch_one(s, t) : NULL;
    while (wide && wide->ndim < dims + 1) {
        tp_autoref *narrow = wide;
        wide = tp_unsqueeze(narrow, 1);
    }
    return wide;
}

/* linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor */
tp_tensor *linalg_pinv_atol_rtol_tensor_batched(tp_tensor *self, tp_tensor *atol, tp_tensor *rtol, bool hermitian) {
    tp_autobatch s;
    tp_tensor *given[] = {self, atol, rtol};
    if (tp_batch_enter(&s, (tp_tensors){given, 3}) < 0) return NULL;
    tp_autoref *all = tp_batch_all(&s, self), *least = beside_matrices(&s, atol, self->ndim - 2),
               *share = beside_matrices(&s, rtol, self->ndim - 2);
    if (!all || (atol && !least) || (rtol && !share)) return NULL;
    return tp_batch_wrap_steal(tp_linalg_pinv_atol_rtol_tensor(all, least, share, hermitian), s.number);
}
