/* assert.c: conditions that hold of values: an error where they do not, and nothing where there are no values. */
#include "NativeFunctions.h"

/* _assert_async.msg(Tensor self, str assert_msg) -> () */
int _assert_async_msg_dense(tp_tensor *self, const char *assert_msg) {
    bool holds = true;
    if (tp_has_values(self) && tp_is_nonzero(self, &holds) < 0) return -1;
    return holds ? 0 : tp_fail(TP_RuntimeError, "%s", assert_msg);
}
/* _assert_async(Tensor self) -> () */
int _assert_async_dense(tp_tensor *self) {
    return _assert_async_msg_dense(self, "Expected Tensor with single nonzero value, but got zero");
}
