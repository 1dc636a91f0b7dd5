"""Transforms of functions: vmap, gradients and Jacobians of functions, modules as functions of their state."""

from __future__ import annotations

from tensorpy._package import proposing as _proposing
from tensorpy.func.batch_norm import replace_all_batch_norm_modules_
from tensorpy.func.functionalize import functionalize
from tensorpy.func.gradients import grad, grad_and_value, linearize, vjp
from tensorpy.func.jacobians import hessian, jacfwd, jacrev, jvp
from tensorpy.func.rearrange import rearrange
from tensorpy.func.stateless import functional_call, stack_module_state
from tensorpy.func.vmap import debug_unwrap, vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("func", globals())
