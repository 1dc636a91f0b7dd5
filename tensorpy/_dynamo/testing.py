"""Backends that count and keep what they are given; what tests of compiled functions need."""

from __future__ import annotations

import contextlib
import functools
import random
import sys
import unittest
from collections.abc import Callable
from typing import Any, cast

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._compile import compile
from tensorpy.random import manual_seed
from tensorpy.utils._pytree import tree_flatten

from .backends.registry import lookup_backend
from .eval_frame import unsupported
from .utils import same


def _ops(graph: Any) -> int:
    return sum(node.op.startswith("call_") for node in graph.graph.nodes)


class CompileCounter:
    """Runs graphs as they are; counts them and their operators.

    Example:
        >>> counter = tp._dynamo.testing.CompileCounter()
        >>> _ = tp.compile(lambda x: (x * 2).sin(), backend=counter)(tp.ones(2))
        >>> counter.frame_count, counter.op_count
        (1, 2)
    """

    def __init__(self) -> None:
        self.__name__ = type(self).__name__
        self.clear()

    def clear(self) -> None:
        self.frame_count = self.op_count = 0
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += _ops(gm)
        self.graphs.append(gm)
        return gm.forward


class EagerAndRecordGraphs(CompileCounter):
    """The same, for its graphs."""


class CompileCounterWithBackend(CompileCounter):
    """The same, with another backend behind it.

    Arguments:
        backend: a function, or a name
    """

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self.backend = backend

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        super().__call__(gm, example_inputs)
        made: Callable[..., Any] = lookup_backend(self.backend)(gm, example_inputs)
        return made


class AotEagerAndRecordGraphs(CompileCounter):
    """The same; a graph has forward only, backward is followed."""


class InductorAndRecordGraphs(CompileCounter):
    """The same, with the graphs' calls fused."""

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        made: Callable[..., Any] = compile(super().__call__(gm, example_inputs))
        return made


def reduce_to_scalar_loss(out: Any) -> Any:
    """One number of any result, for backward: means of tensors, and sums of those.

    Arguments:
        out: a tensor, or a list, tuple or dict of results

    Raises: NotImplementedError for another object.

    Example:
        >>> tp._dynamo.testing.reduce_to_scalar_loss([tp.ones(2), tp.ones(3)])
        tensor(1.)
    """
    if isinstance(out, Tensor):
        return out.sum() / out.numel()
    if isinstance(out, (list, tuple)):
        return sum(map(reduce_to_scalar_loss, out)) / len(out)
    if isinstance(out, dict):
        return reduce_to_scalar_loss(list(out.values()))
    raise NotImplementedError(f"a loss of an object of class {type(out).__name__}")


def requires_bwd_pass(out: Any) -> bool:
    """Whether a tensor among results requires grad.

    Arguments:
        out: the results

    Example:
        >>> tp._dynamo.testing.requires_bwd_pass([tp.ones(1), {"a": tp.ones(1, requires_grad=True)}])
        True
    """
    return any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in tree_flatten(out)[0])


def _patched(fn: Callable[..., Any], patches: tuple[Any, ...]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as stack:
            for config, name, value in patches:
                stack.enter_context(config.patch(name, value))
            return fn(*args, **kwargs)

    return run


def make_test_cls_with_patches(
    cls: type,
    cls_prefix: str,
    fn_suffix: str,
    *patches: Any,
    xfail_prop: str | None = None,
    decorator: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda x: x,
) -> type:
    """The class of a test's methods with settings changed while they run.

    Arguments:
        cls: the class
        cls_prefix: what its name begins with then
        fn_suffix: what the names of its tests end with then
        *patches: (module of settings, name, value) each
        xfail_prop: an attribute of the methods that fail then, by design
        decorator: what each method goes through

    Returns: the class.

    Example:
        >>> class Tests:
        ...     def test_debug(self):
        ...         return tp._functorch.config.debug_assert
        >>> changed = (tp._functorch.config, "debug_assert", True)
        >>> tp._dynamo.testing.make_test_cls_with_patches(Tests, "Debug", "_debug", changed)().test_debug_debug()
        True
    """
    made: Any = type(f"{cls_prefix}{cls.__name__}", cls.__bases__, {})
    made.__qualname__ = made.__name__
    for name in dir(cls):
        method = getattr(cls, name)
        if not (name.startswith("test_") and callable(method)):
            if not hasattr(made, name):
                setattr(made, name, method)
            continue
        changed: Any = _patched(method, patches)
        changed.__name__ = f"{name}{fn_suffix}"
        fails = xfail_prop is not None and hasattr(method, xfail_prop)
        setattr(made, changed.__name__, decorator(unittest.expectedFailure(changed) if fails else changed))
    return cast(type, made)


def rand_strided(size: Any, stride: Any, dtype: Any = None, device: Any = "cpu", extra_size: int = 0) -> Tensor:
    """A tensor of random numbers with these sizes and strides.

    Arguments:
        size: its sizes
        stride: its strides
        dtype: float32 unless said; integers are 0
        device: where it lies
        extra_size: elements that its memory has more

    Example:
        >>> tp._dynamo.testing.rand_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    needed = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1 if all(size) else 0
    dtype = _C.float32 if dtype is None else dtype
    is_random = dtype.is_floating_point or dtype.is_complex
    memory = (_C.randn if is_random else _C.zeros)(needed + extra_size, dtype=dtype, device=device)
    return memory.as_strided(size, stride)


def remove_optimized_module_prefix(name: str) -> str:
    """A parameter's name without what compiled modules put before it.

    Example:
        >>> tp._dynamo.testing.remove_optimized_module_prefix("_orig_mod.weight")
        'weight'
    """
    return name.removeprefix("_orig_mod.")


def reset_rng_state(use_xla: bool = False) -> None:
    """The same random numbers from here on, of Python and of the default generator: seed 1337."""
    manual_seed(1337)
    random.seed(1337)


def expectedFailureDynamic(fn: Any) -> Any:
    """The test itself."""
    return fn


def _skipped(when: bool, why: str) -> Callable[[Any], Any]:
    return unittest.skip(why) if when else lambda fn: fn


_VERSION = sys.version_info[:2]
skipIfNotPy311 = _skipped(_VERSION < (3, 11), "Requires Python 3.11+")
skipIfNotPy312 = _skipped(_VERSION < (3, 12), "Requires Python 3.12+")
skipIfOnlyNotPy312 = _skipped(_VERSION != (3, 12), "Requires Python 3.12")
skipIfPy312 = _skipped(_VERSION >= (3, 12), "Not supported in Python 3.12+")


def normalize_gm(gm_str: str) -> str:
    """A graph's code without lines of comments, which say where files are, and with one empty line for several.

    Arguments:
        gm_str: the code

    Example:
        >>> tp._dynamo.testing.normalize_gm("x = 1\\n# file.py:3\\n\\n\\ny = 2")
        'x = 1\\n\\ny = 2'
    """
    lines = [line.rstrip() for line in gm_str.split("\n") if not line.lstrip().startswith("#")]
    return "\n".join(line for i, line in enumerate(lines) if line or i == 0 or lines[i - 1])


def standard_test(
    self: Any,
    fn: Callable[..., Any],
    nargs: int,
    expected_ops: int | None = None,
    expected_ops_dynamic: int | None = None,
    expected_frame_count: int = 1,
) -> None:
    """Asserts that a function, compiled to one graph, gives for two sets of random tensors what it gives itself.

    Arguments:
        self: the unittest.TestCase that asserts
        fn: the function
        nargs: how many tensors it takes, of 10 x 10
        expected_ops: how many operators its graphs have; None: any number
        expected_ops_dynamic: is taken; graphs are of the sizes that are given
        expected_frame_count: how many graphs there are

    Example:
        >>> import unittest
        >>> tp._dynamo.testing.standard_test(unittest.TestCase(), lambda a, b: (a + b).sin(), 2, expected_ops=2)
    """
    inputs = [[_C.randn(10, 10) for _ in range(nargs)] for _ in range(2)]
    expected = [fn(*given) for given in inputs]
    counter = CompileCounter()
    compiled = compile(fn, backend=counter, fullgraph=True)
    for given, result in [*zip(inputs, expected, strict=True)] * 2:
        self.assertTrue(same(compiled(*given), result))
    self.assertEqual(counter.frame_count, expected_frame_count)
    if expected_ops is not None:
        self.assertEqual(counter.op_count, expected_ops)


__all__ = ["AotEagerAndRecordGraphs", "CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs"]
__all__ += ["InductorAndRecordGraphs", "expectedFailureDynamic", "rand_strided", "reduce_to_scalar_loss"]
__all__ += ["remove_optimized_module_prefix", "requires_bwd_pass", "reset_rng_state", "same"]
__all__ += ["normalize_gm", "skipIfNotPy311", "skipIfNotPy312", "skipIfOnlyNotPy312", "skipIfPy312"]
__all__ += ["standard_test", "unsupported"]
