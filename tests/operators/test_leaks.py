"""No operator leaks: what is live after a call, its variants, its gradient and its failures is what was live before.

Also with every allocation failing in turn: the call raises, leaks nothing, and its inputs stay as they were.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from batching import Call, same
from fuzz_operators import Ended, at_most, end_call
from growth import check_no_growth, live

import tensorpy as tp
from tensorpy.testing.checks import takes_out
from tensorpy.testing.harness import arguments, call, each_argument, fresh, function_of, inputs_of, over
from tensorpy.testing.samples import OpInfo

CLASSES = ("bool", "int64", "float32", "complex64")
EXPECTED = (RuntimeError, TypeError, ValueError, IndexError, MemoryError)
MOST_ALLOCATIONS = 400


def some_dtypes(info: OpInfo) -> list[str]:
    """One dtype of each class that the operator takes."""
    return [d for d in CLASSES if d in info.dtypes] or [info.dtypes[-1]]


@pytest.fixture(autouse=True)
def a_signal_ends_calls() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, end_call)
    yield
    signal.signal(signal.SIGALRM, before)


def quietly(action: Callable[[], Any]) -> None:
    try:
        with at_most():  # a degree of 2**62 takes years
            action()
    except (*EXPECTED, Ended):
        pass


def refused(action: Callable[[], Any]) -> bool:
    """Whether the call raises, whatever is allocated."""
    try:
        action()
    except EXPECTED:
        return True
    return False


@over()
def test_call(info: OpInfo) -> None:
    function = function_of(info)
    for dtype in some_dtypes(info):
        for sample in info.samples(dtype, 2):
            args, kwargs = arguments(sample, "cpu", info)
            check_no_growth(lambda: quietly(lambda: function(*fresh(info, args), **kwargs)), f"{info.name}{sample}")  # noqa: B023


@over()
def test_variants(info: OpInfo) -> None:
    function = function_of(info)
    dtype = some_dtypes(info)[-1]
    for sample in info.samples(dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        if info.variant("inplace") is not None:
            inplace = function_of(info, inplace=True)
            check_no_growth(
                lambda: quietly(lambda: inplace(args[0].clone(), *args[1:], **kwargs)),  # noqa: B023
                f"{info.name}{sample}, in place",
            )
        out_op = info.variant("out")
        if out_op is None or not info.op.function.is_function:
            continue
        single = len(out_op.schema.out) == 1 and str(out_op.schema.out[0].type) == "Tensor"
        expected = call(function, args, kwargs)
        for wrong in (False, True):  # out= of a dtype that may not hold the result

            def into() -> None:
                outs = [tp.empty((0,), dtype=tp.bool if wrong else e.dtype) for e in expected]  # noqa: B023
                function(*args, **kwargs, out=outs[0] if single else tuple(outs))  # noqa: B023

            check_no_growth(lambda: quietly(into), f"{info.name}{sample}, out=")


@over(lambda info: info.differentiable and {"float64", "complex128"} & set(info.dtypes))
def test_backward(info: OpInfo) -> None:
    dtypes = [d for d in ("float64", "complex128") if d in info.dtypes]
    function = function_of(info)
    for sample in info.samples(dtypes[0], 2):
        args, kwargs = arguments(sample, "cpu", info)
        inputs, fill = inputs_of(info, args, kwargs)
        if not inputs:
            continue

        def backward() -> None:
            leaves = [i.detach().requires_grad_() for i in inputs]  # noqa: B023
            args, kwargs = fill(tuple(leaves))  # noqa: B023
            results = [r for r in call(function, fresh(info, args), kwargs) if r.requires_grad]
            if results:
                tp.autograd.backward(results, [tp.ones_like(r) for r in results])

        check_no_growth(lambda: quietly(backward), f"{info.name}{sample}, backward")


@over()
def test_wrong_calls(info: OpInfo) -> None:
    """Calls that raise, at the parser and in the operator."""
    function = function_of(info)
    dtype = some_dtypes(info)[-1]
    for sample in info.samples(dtype, 1):
        args, kwargs = arguments(sample, "cpu", info)
        wrong: list[tuple[list[Any], dict[str, Any]]] = [
            ([*args, object()], kwargs),
            (args, kwargs | {"nonsense": 1}),
            (args[:-1], kwargs),
        ]
        for at in range(len(args)):
            for value in ("text", None, [1, [2]], 2**62, tp.ones(2, 3, 1, 1, 7), tp.ones(2, device="meta")):
                wrong.append(([*args[:at], value, *args[at + 1 :]], kwargs))
        for a, k in wrong:
            check_no_growth(lambda: quietly(lambda: function(*a, **k)), f"{info.name} with wrong arguments")  # noqa: B023


# ---- failing allocations ----


def fail_each(action: Callable[[], Any], what: str, check: Callable[[], None]) -> None:
    """Runs `action` with its first, second, ... allocation failing until it succeeds."""
    quietly(action)
    for n in range(MOST_ALLOCATIONS):
        gc.disable()
        before = live()
        tp._C._fail_allocation_after(n)
        raised: BaseException | None = None
        try:
            action()
        except (MemoryError, RuntimeError) as error:
            raised = error
        finally:
            reached = not tp._C._fail_allocation_after(-1)
            gc.enable()
        failed = raised is not None
        if raised is not None:
            raised = raised.with_traceback(None)
        check()
        del raised
        assert live() == before, f"{what}: allocation {n} failed, and {live()[0] - before[0]} blocks stay"
        if not reached:
            return
        assert failed, f"{what}: allocation {n} failed, and the call did not"


@over()
def test_failing_allocations(info: OpInfo) -> None:
    """Of every sample, so along every dimension and by every way through the operator."""
    function = function_of(info)
    for dtype in some_dtypes(info):
        for sample in info.samples(dtype):
            args, kwargs = arguments(sample, "cpu", info)
            tensors = each_argument([*args, *kwargs.values()])
            copies = [repr(t.tolist()) for t in tensors]

            def unchanged() -> None:
                for t, c in zip(tensors, copies, strict=True):  # noqa: B023
                    assert repr(t.tolist()) == c, f"{info.name}: an input was changed"

            action = lambda: function(*fresh(info, args), **kwargs)  # noqa: B023, E731
            if not refused(action):
                fail_each(action, f"{info.name}{sample}", unchanged)


@over(lambda info: info.variant("inplace") or takes_out(info))
def test_failing_allocations_of_variants(info: OpInfo) -> None:
    """What is written to may be written in part."""
    function = function_of(info)
    for dtype in some_dtypes(info):
        for sample in info.some(dtype):
            args, kwargs = arguments(sample, "cpu", info)
            if info.variant("inplace"):
                inplace = function_of(info, inplace=True)
                action = lambda: inplace(args[0].clone(), *args[1:], **kwargs)  # noqa: B023, E731
                if not refused(action):
                    fail_each(action, f"{info.name}{sample}, in place", lambda: None)
            if takes_out(info):
                names = {a.name for a in info.variant("out").schema.arguments}
                given = {k: v for k, v in kwargs.items() if k in names}
                into = [tp.empty(0, dtype=e.dtype) for e in call(function, fresh(info, args), kwargs)]
                out = into[0] if str(info.op.schema.returns[0].type) == "Tensor" and len(into) == 1 else tuple(into)
                action = lambda: function(*fresh(info, args), **given, out=out)  # noqa: B023, E731
                if not refused(action):  # and from now on `into` has the shapes that it needs
                    fail_each(action, f"{info.name}{sample}, out=", lambda: None)


@over(lambda info: info.differentiable and {"float64", "complex128"} & set(info.dtypes))
def test_failing_allocations_in_backward(info: OpInfo) -> None:
    function = function_of(info)
    dtype = next(d for d in ("float64", "complex128") if d in info.dtypes)
    for sample in info.some(dtype):
        args, kwargs = arguments(sample, "cpu", info)
        inputs, fill = inputs_of(info, args, kwargs)

        def backward() -> None:
            leaves = tuple(i.detach().requires_grad_() for i in inputs)  # noqa: B023
            given, named = fill(leaves)  # noqa: B023
            kept = [r for r in call(function, fresh(info, given), named) if r.requires_grad]
            if kept:
                tp.autograd.grad(kept, leaves, [tp.ones_like(r) for r in kept], allow_unused=True)

        if inputs and not refused(backward):
            fail_each(backward, f"{info.name}{sample}, backward", lambda: None)


@over(lambda info: info.op.tensor_arguments)
def test_failing_allocations_of_batches(info: OpInfo) -> None:
    """Under vmap, with everything batched; no level is left open."""
    for sample in info.samples(info.main_dtype, 2):
        batch = Call(info, sample, "cpu")
        if not batch.at:
            continue
        places = tuple(batch.at)
        tensors = [same(batch.leaves[i]) for i in places]
        action = lambda: batch.vmapped(places, tensors)  # noqa: B023, E731
        if not refused(action):
            fail_each(action, f"{info.name}{sample}, batched", lambda: None)
        assert tp._C._vmap_levels() == ()
