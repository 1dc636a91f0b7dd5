/* conj.h: conjugates that are computed at once, for kernels that read memory. */
#pragma once

#include "Functions.h"

/* The conjugate in memory of its own; a real tensor itself. NULL stays NULL. New. */
TP_INLINE tp_tensor *tp_conj_values(tp_tensor *t) { return t && tp_is_complex(t) ? tp_conj_physical(t) : tp_retain(t); }
