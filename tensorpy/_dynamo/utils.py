"""Counts of what became of functions that have a backend of the program's; comparing and copying of their results."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._logging._internal import LazyString as LazyString
from tensorpy.nn import Parameter
from tensorpy.random import get_rng_state, set_rng_state

# "stats" has unique_graphs, "frames" how many calls were recorded (total) and are graphs (ok), "graph_break" reasons.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


def is_compile_supported(device_type: str) -> bool:
    """Whether functions of tensors on a device can be compiled: on each that is there.

    Arguments:
        device_type: the device's name, as "cpu"

    Returns: bool.

    Example:
        >>> tp._dynamo.utils.is_compile_supported("cpu")
        True
    """
    try:
        return bool(_C._device_count(device_type) > 0)
    except (AssertionError, RuntimeError):  # no device has this name
        return False


def same(
    ref: Any, res: Any, fp64_ref: Any = None, cos_similarity: bool = False, tol: float = 1e-4, equal_nan: bool = False
) -> bool:
    """Whether two results are close, tensor by tensor, in containers and attributes too.

    Arguments:
        ref: one of them
        res: the other
        fp64_ref: nobody reads it
        cos_similarity: nobody reads it
        tol: how far elements may be from each other, relative and absolute
        equal_nan: whether NaN is NaN

    Example:
        >>> tp._dynamo.utils.same([tp.ones(2), 1], (tp.ones(2), 1))
        True
    """

    def each(a: Any, b: Any) -> bool:
        return same(a, b, tol=tol, equal_nan=equal_nan)

    if isinstance(ref, (list, tuple)) and isinstance(res, (list, tuple)):
        return len(ref) == len(res) and all(map(each, ref, res))
    if isinstance(ref, dict) and isinstance(res, dict):
        return ref.keys() == res.keys() and all(each(ref[key], res[key]) for key in ref)
    if isinstance(ref, Tensor) and isinstance(res, Tensor):
        if ref.dtype != res.dtype or ref.shape != res.shape:
            return False
        if not (ref.is_floating_point() or ref.is_complex()):
            return bool(_C.equal(ref, res))
        return bool(_C.allclose(ref, res, rtol=tol, atol=tol, equal_nan=equal_nan))
    if isinstance(ref, float) and isinstance(res, float):
        return math.isclose(ref, res, rel_tol=tol, abs_tol=tol) or (equal_nan and math.isnan(ref) and math.isnan(res))
    return type(ref) is type(res) and bool(ref == res or (hasattr(ref, "__dict__") and each(vars(ref), vars(res))))


def clone_input(x: Tensor) -> Tensor:
    """A leaf with the same elements, strides, gradient and `requires_grad`.

    Arguments:
        x: the tensor

    Example:
        >>> tp._dynamo.utils.clone_input(tp.ones(1, requires_grad=True))
        tensor([1.], requires_grad=True)
    """
    made = _C.empty_strided(tuple(x.shape), x.stride(), dtype=x.dtype, device=x.device).copy_(x.detach())
    made.requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        made.grad = clone_input(x.grad)
    return made


def clone_inputs(example_inputs: Any) -> Any:
    """A list or dict of tensors with clones in their place, in which other things are themselves.

    Arguments:
        example_inputs: the list or dict

    Example:
        >>> tp._dynamo.utils.clone_inputs([tp.ones(1), 2])
        [tensor([1.]), 2]
    """

    def clone(value: Any) -> Any:
        return clone_input(value) if isinstance(value, Tensor) else value

    if isinstance(example_inputs, dict):
        return {k: clone_inputs(v) if isinstance(v, (tuple, list)) else clone(v) for k, v in example_inputs.items()}
    return [clone(value) for value in example_inputs]


def rmse(ref: Tensor, res: Tensor) -> Tensor:
    """The root of the mean squared difference of two tensors.

    Arguments:
        ref: a tensor
        res: another one

    Example:
        >>> tp._dynamo.utils.rmse(tp.zeros(2), tp.full((2,), 3.0))
        tensor(3.)
    """
    return (ref - res).square().mean().sqrt()


def clone_tensor(x: Tensor) -> Tensor:
    """A copy in the same history, which requires grad as the tensor does.

    Arguments:
        x: the tensor

    Example:
        >>> tp._dynamo.utils.clone_tensor(tp.ones(1))
        tensor([1.])
    """
    return x.clone().requires_grad_(x.requires_grad)


def istensor(obj: object) -> bool:
    """Whether an object is a tensor or a parameter, and of no class of the program's.

    Example:
        >>> tp._dynamo.utils.istensor(tp.ones(1)), tp._dynamo.utils.istensor(1)
        (True, False)
    """
    return istype(obj, (Tensor, Parameter))


def count_calls(g: Any) -> int:
    """How many calls a graph has.

    Arguments:
        g: the Graph

    Example:
        >>> tp._dynamo.utils.count_calls(tp.fx.symbolic_trace(lambda x: x + 1).graph)
        1
    """
    return sum("call" in node.op for node in g.nodes)


@contextmanager
def preserve_rng_state() -> Iterator[None]:
    """The default generator is afterwards where it was before.

    Returns: a context.

    Example:
        >>> with tp._dynamo.utils.preserve_rng_state():
        ...     one = tp.rand(1)
        >>> bool(one == tp.rand(1))
        True
    """
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


@contextmanager
def dynamo_timed(key: str, *given: Any, **options: Any) -> Iterator[None]:
    """Nothing: no time is measured.

    Arguments:
        key: what would be measured

    Returns: a context.

    Example:
        >>> with tp._dynamo.utils.dynamo_timed("mine"):
        ...     pass
    """
    yield


def reset_frame_count() -> None:
    """counters begin anew.

    Example:
        >>> tp._dynamo.utils.reset_frame_count()
    """
    counters.clear()


def istype(obj: object, allowed_types: Any) -> bool:
    """Whether an object is of a class, or one of several, itself and not by inheritance.

    Example:
        >>> tp._dynamo.utils.istype(True, int)
        False
    """
    return type(obj) in (allowed_types if isinstance(allowed_types, (tuple, list, set)) else (allowed_types,))


def ifdynstaticdefault(count1: Any, count2: Any) -> Any:
    """The first: sizes are static where graphs are counted."""
    return count1


def compile_times(repr: str = "str", aggregate: bool = False) -> Any:
    """How long compiling took: nothing is measured.

    Example:
        >>> tp._dynamo.utils.compile_times()
        ''
    """
    return "" if repr == "str" else ([], [])


__all__ = ["clone_input", "clone_inputs", "compile_times", "counters", "ifdynstaticdefault", "is_compile_supported"]
__all__ += ["clone_tensor", "count_calls", "dynamo_timed", "istensor", "istype", "preserve_rng_state"]
__all__ += ["reset_frame_count", "rmse", "same"]
