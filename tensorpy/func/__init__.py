"""Transforms of functions: vmap, gradients and Jacobians of functions, modules as functions of their state."""

from __future__ import annotations

from tensorpy._functionalize import functionalize
from tensorpy.func.gradients import grad, grad_and_value, linearize, vjp
from tensorpy.func.jacobians import hessian, jacfwd, jacrev, jvp
from tensorpy.func.stateless import functional_call, stack_module_state
from tensorpy.func.vmap import vmap

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
