"""What tests call beside TestCase: the running test and its sample, retries, skips, well posed matrices."""

from __future__ import annotations

import functools
import hashlib
import sys
import unittest
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from tensorpy import _C, __future__, linalg
from tensorpy._C import Tensor
from tensorpy._package.settings import is_warn_always_enabled, set_warn_always
from tensorpy.random import manual_seed
from tensorpy.utils._pytree import tree_leaves

Function = Callable[..., Any]

# ---- the test that runs ----


def extract_test_fn() -> Any:
    """The function of the TestCase's test that is running; None outside of one."""
    frame = sys._getframe(1)
    while frame is not None:
        case = frame.f_locals.get("self")
        if isinstance(case, unittest.TestCase):
            method = getattr(type(case), case.id().rpartition(".")[2], None)
            if method is not None:
                return method
        frame = frame.f_back  # type: ignore[assignment]
    return None


@dataclass(frozen=True)
class TrackedInput:
    """The sample that a test is at."""

    index: int
    val: Any
    type_desc: str


def get_tracked_input() -> TrackedInput | None:
    """The sample that the running test is at."""
    return getattr(extract_test_fn(), "tracked_input", None)


def clear_tracked_input() -> None:
    """Forgets it."""
    test = extract_test_fn()
    if getattr(test, "tracked_input", None) is not None:
        test.tracked_input = None


class TrackedInputIter:
    """Samples one by one, each after a seed of the test's own, and noted on the test.

    child_iter: the samples. input_type_desc: what they are called. item_callback: makes of a sample and its number
    what is given. track_callback: makes of it what is noted. restrict_to_index: the only one that is given.
    """

    def __init__(
        self,
        child_iter: Iterable[Any],
        input_type_desc: str,
        item_callback: Function | None = None,
        track_callback: Function | None = None,
        set_seed: bool = True,
        restrict_to_index: int | None = None,
    ) -> None:
        self._samples, self._kind, self._only = iter(child_iter), input_type_desc, restrict_to_index
        self._given = item_callback or (lambda item, number: item)
        self._noted = track_callback or (lambda item: item)
        self._test = extract_test_fn()
        name = getattr(self._test, "__qualname__", "")
        self._seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little") if set_seed else None
        self._number = -1

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while True:
            if self._seed is not None:
                manual_seed(self._seed)
            item = next(self._samples)
            self._number += 1
            if self._only in (None, self._number):
                break
        if self._test is not None:
            self._test.tracked_input = TrackedInput(self._number, self._noted(item), self._kind)
        return self._given(item, self._number)


def first_sample(self: unittest.TestCase, samples: Iterable[Any]) -> Any:
    """The first of some samples; skips the test if there is none."""
    for sample in samples:
        return sample
    raise unittest.SkipTest("there is no sample")


# ---- values that are made late, and compiled programs ----


class LazyVal:
    """A condition that is asked for when it is needed."""

    def __init__(self, cb: Callable[[], Any]) -> None:
        self._made = functools.cache(cb)

    def __bool__(self) -> bool:
        return bool(self._made())

    def __eq__(self, other: object) -> bool:
        return bool(self._made() == other)

    def __hash__(self) -> int:
        return hash(self._made())


class ProfilingMode(Enum):
    """How a program's compiler learns shapes: there is none."""

    LEGACY = 1
    SIMPLE = 2
    PROFILING = 3


@contextmanager
def enable_profiling_mode() -> Iterator[None]:
    """Nothing: there is no compiler that it is for."""
    yield


enable_profiling_mode_for_profiling_tests = enable_profiling_mode


@contextmanager
def set_warn_always_context(new_val: bool) -> Iterator[None]:
    """A context in which each warning comes again, or once."""
    before = is_warn_always_enabled()
    set_warn_always(new_val)
    try:
        yield
    finally:
        set_warn_always(before)


@contextmanager
def SwapTensorsGuard(use_swap_tensors: bool | None) -> Iterator[None]:
    """A context in which modules keep their parameters' identity when they are converted, or not; None: as before."""
    before = __future__.get_swap_module_params_on_conversion()
    __future__.set_swap_module_params_on_conversion(before if use_swap_tensors is None else use_swap_tensors)
    try:
        yield
    finally:
        __future__.set_swap_module_params_on_conversion(before)


def wrapSwapTensorsTest(swap: bool | None = None) -> Function:
    """Runs a test in a SwapTensorsGuard."""

    def decorate(test: Function) -> Function:
        @functools.wraps(test)
        def run(*args: Any, **options: Any) -> Any:
            with SwapTensorsGuard(swap):
                return test(*args, **options)

        return run

    return decorate


def mock_wrapper(method: Function) -> Function:
    """A function that calls a method and counts on a mock what it was called with: `function.mock`."""
    mock = MagicMock()

    @functools.wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        mock(*args, **options)
        return method(self, *args, **options)

    vars(call)["mock"] = mock
    return call


# ---- tests that may be tried again, or not at all ----


def retry_on_connect_failures(func: Function | None = None, connect_errors: Any = "Address already in use") -> Function:
    """Runs a test again, ten times at most, where a port was taken.

    func: the test; None gives a decorator. connect_errors: words of the error, or several.
    """
    if func is None:
        return functools.partial(retry_on_connect_failures, connect_errors=connect_errors)
    words = (connect_errors,) if isinstance(connect_errors, str) else tuple(connect_errors)

    @functools.wraps(func)
    def run(*args: Any, **options: Any) -> Any:
        for left in range(9, -1, -1):
            try:
                return func(*args, **options)
            except RuntimeError as error:
                if not left or not any(text in str(error) for text in words):
                    raise

    return run


def skip_but_pass_in_sandcastle(reason: str) -> Function:
    """Skips a test."""
    return unittest.skip(reason)


def skip_but_pass_in_sandcastle_if(condition: Any, reason: str) -> Function:
    """Skips a test where a condition holds."""
    return unittest.skipIf(condition, reason)


skipIfNoTritonDSL = skipIfNoCuteDSL = unittest.skip("no compiler of kernels for GPUs")


def find_library_location(lib_name: str) -> Path:
    """Where a library of PyTorch's tests would be, beside the package."""
    return Path(__file__).resolve().parents[2] / "lib" / lib_name


# ---- tensors ----


def to_gpu(obj: Any, type_map: dict[Any, Any] | None = None) -> Any:
    """Copies on the device "cuda" of tensors, in lists and tuples too; leaves of the graph.

    type_map: dtypes that are replaced.
    """
    if isinstance(obj, (list, tuple)):
        return type(obj)(to_gpu(each, type_map) for each in obj)
    if not isinstance(obj, Tensor):
        return obj
    made = obj.detach().to(device="cuda", dtype=(type_map or {}).get(obj.dtype, obj.dtype), copy=True)
    return made.requires_grad_(obj.requires_grad)


def get_tensors_from(args: Iterable[Any], kwargs: dict[str, Any]) -> set[Tensor]:
    """The tensors among arguments."""
    return {value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)}


def make_fullrank_matrices_with_distinct_singular_values(
    *shape: int, device: Any, dtype: _C.dtype, requires_grad: bool = False
) -> Tensor:
    """Random matrices whose singular values lie between 1.5 and 0.5, and differ."""
    real = _C.float64 if dtype in (_C.float64, _C.complex128) else _C.float32
    wide = _C.complex128 if dtype.is_complex and real is _C.float64 else _C.complex64 if dtype.is_complex else real
    u, _, vh = linalg.svd(_C.randn(shape, dtype=wide, device=device), full_matrices=False)
    count = min(shape[-2:])
    values = (
        _C.linspace(1.5, 0.5, count, dtype=real, device=device) if count else _C.empty(0, dtype=real, device=device)
    )
    return (u * values.to(wide) @ vh).to(dtype).requires_grad_(requires_grad)


def random_well_conditioned_matrix(
    *shape: int, dtype: _C.dtype, device: Any, mean: float = 1.0, sigma: float = 0.001
) -> Tensor:
    """Random matrices whose singular values are drawn close to `mean`."""
    u, _, vh = linalg.svd(_C.randn(shape, dtype=dtype, device=device), full_matrices=False)
    real = _C.empty(0, dtype=dtype).abs().dtype
    values = _C.randn((*shape[:-2], min(shape[-2:])), dtype=real, device=device) * sigma + mean
    return u * values.unsqueeze(-2).to(dtype) @ vh


def outs_and_grads(fn: Function, graph_inps: Any, inps: Any) -> tuple[Any, list[Tensor | None]]:
    """What a function gives, and the gradients of the sum of all of it by the inputs, which keep none."""
    results = fn(*graph_inps)
    for result in tree_leaves(results):
        if isinstance(result, Tensor) and result.requires_grad:
            result.sum().backward(retain_graph=True)
    tensors = [leaf for leaf in tree_leaves(inps) if isinstance(leaf, Tensor)]
    grads = [leaf.grad for leaf in tensors]
    for leaf in tensors:
        leaf.grad = None
    return results, grads


def compare_equal_outs_and_grads(test: Any, m1: Function, m2: Function, inps: Any) -> None:
    """Two functions give the same, and the same gradients."""
    test.assertEqual(*(outs_and_grads(m, inps, inps) for m in (m1, m2)))
