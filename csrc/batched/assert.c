/* assert.c: a condition holds of a batch where it holds of each sample. */
#include "NativeFunctions.h"
#include "batched/batched.h"

int _assert_async_msg_batched(tp_tensor *self, const char *assert_msg) {
    tp_autobatch s;
    tp_tensor *given[] = {self};
    if (tp_batch_enter(&s, (tp_tensors){given, 1}) < 0) return -1;
    tp_autoref *all = tp_all(tp_batch_inner_borrow(self));
    return all ? tp__assert_async_msg(all, assert_msg) : -1;
}
int _assert_async_batched(tp_tensor *self) {
    return _assert_async_msg_batched(self, "Expected Tensor with single nonzero value, but got zero");
}
int _assert_finite_range_batched(tp_tensor *low, tp_tensor *high, const char *what) {
    tp_autobatch s;
    tp_tensor *given[] = {low, high};
    if (tp_batch_enter(&s, (tp_tensors){given, 2}) < 0) return -1;
    tp_autoref *least = tp_amin(tp_batch_inner_borrow(low), TP_NO_INTS, false);
    tp_autoref *most = least ? tp_amax(tp_batch_inner_borrow(high), TP_NO_INTS, false) : NULL;
    return most ? tp__assert_finite_range(least, most, what) : -1;
}
