/* linalg.c: the error of a batch of factorizations: the info codes of all samples are checked at once. */
#include "NativeFunctions.h"
#include "batched/batched.h"

/* _linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> () */
int _linalg_check_errors_batched(tp_tensor *info, const char *api_name, bool is_matrix TP_UNUSED) {
    tp_autobatch s;
    tp_tensor *given[] = {info};
    if (tp_batch_enter(&s, (tp_tensors){given, 1}) < 0) return -1;
    return tp__linalg_check_errors(tp_batch_inner_borrow(info), api_name, false);
}
