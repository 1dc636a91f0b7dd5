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
