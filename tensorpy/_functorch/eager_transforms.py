"""See tensorpy.func."""

from typing import Any

from tensorpy.func import functionalize as functionalize
from tensorpy.func import grad as grad
from tensorpy.func import grad_and_value as grad_and_value
from tensorpy.func import hessian as hessian
from tensorpy.func import jacfwd as jacfwd
from tensorpy.func import jacrev as jacrev
from tensorpy.func import jvp as jvp
from tensorpy.func import linearize as linearize
from tensorpy.func import vjp as vjp
from tensorpy.func.gradients import chosen


def _slice_argnums(args: tuple[Any, ...], argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments that argnums names; of an int a tuple of one unless as_tuple is False."""
    _, found = chosen("_slice_argnums", args, argnums)
    return (found,) if isinstance(argnums, int) and as_tuple else found


def _as_tuple(val: Any) -> tuple[Any, ...]:
    """A tuple as it is, and another value as one of one."""
    return val if isinstance(val, tuple) else (val,)
