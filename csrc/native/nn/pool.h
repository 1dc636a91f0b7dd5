/* pool.h: what pools of one dimension and of more check alike. */
#pragma once

#include "core/tensor.h"

/* Refuses a size of 0 from dimension `first` on. */
int tp_check_no_empty(const char *op, const tp_tensor *self, int first);
