"""Operators of this package: `myops.ops.scale(x, 2.0)`, or tensorpy.ops.myops.scale."""

import tensorpy
from tensorpy.utils.extension import load_installed

load_installed("myops._ops")
ops = tensorpy.ops.myops
