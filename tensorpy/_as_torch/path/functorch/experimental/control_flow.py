"""Control flow under its first name."""

import tensorpy

tensorpy.as_torch()

from tensorpy._higher_order_ops import cond, map  # noqa: E402, F401
