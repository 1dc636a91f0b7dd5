"""An operator of the table in forward mode against the gradient of its gradient: for autograd/test_forward_ad.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorpy as tp
from tensorpy import func
from tensorpy.testing import assert_close
from tensorpy.testing.harness import arguments, call, function_of, inputs_of
from tensorpy.testing.samples import OpInfo, OpSample

DTYPES = ("float64", "complex128")


def direction(t: tp.Tensor, seed: int) -> tp.Tensor:
    """Fixed numbers of both signs."""
    count = t.numel()
    wave = [0.3 + ((i * 7 + 3 + seed) % 11) / 11 * (-1) ** (i + seed) for i in range(2 * count)]
    values: list[Any] = [complex(*wave[2 * i : 2 * i + 2]) for i in range(count)] if t.is_complex() else wave[:count]
    return tp.tensor(values, dtype=t.dtype, device=t.device).reshape(t.shape)


class Case:
    """The operator as a function of its floating tensors, on one sample."""

    def __init__(self, info: OpInfo, sample: OpSample, device: str, inplace: bool = False) -> None:
        self.info, self.what = info, f"{info.name}{sample}{' in place' if inplace else ''}"
        args, kwargs = arguments(sample, device, info)
        inputs, self.fill = inputs_of(info, args, kwargs)
        self.inputs = tuple(t.detach() for t in inputs)
        self.function = function_of(info, inplace)
        self.inplace = inplace or info.op.kind == "inplace"

    def __call__(self, *given: tp.Tensor) -> list[tp.Tensor]:
        args, kwargs = self.fill(given)
        if self.inplace:
            args = [args[0].clone(), *args[1:]]
        return [r for r in call(self.function, args, kwargs) if r.is_floating_point() or r.is_complex()]

    def choices(self) -> Iterator[tuple[int, ...]]:
        """Each input alone, and all of them."""
        n = len(self.inputs)
        yield from ((i,) for i in range(n))
        if n > 1:
            yield tuple(range(n))

    def of(self, places: tuple[int, ...]) -> tuple[Callable[..., list[tp.Tensor]], tuple[tp.Tensor, ...]]:
        """The function of some of the inputs, and these."""

        def f(*some: tp.Tensor) -> list[tp.Tensor]:
            given = list(self.inputs)
            for i, t in zip(places, some, strict=True):
                given[i] = t
            return self(*given)

        return f, tuple(self.inputs[i] for i in places)


def cases(info: OpInfo, device: str, limit: int, inplace: bool = False) -> Iterator[Case]:
    for dtype in DTYPES:
        for sample in info.samples(dtype, limit) if dtype in info.dtypes else ():
            case = Case(info, sample, device, inplace)
            if any(t.numel() for t in case.inputs):
                yield case


def by_reverse(f: Callable[..., Any], given: tuple[tp.Tensor, ...], along: tuple[tp.Tensor, ...]) -> Any:
    """Outputs and tangents by a gradient's gradient; None where reverse mode cannot, as in place on what it saved."""
    try:
        if not any(o.requires_grad for o in f(*(t.detach().requires_grad_() for t in given))):
            return None
        outputs, forward = func.linearize(f, *given)
        return outputs, forward(*along)
    except (RuntimeError, NotImplementedError):
        return None


def check(case: Case, places: tuple[int, ...]) -> bool:
    """The tangents of forward mode are those of a gradient's gradient."""
    f, given = case.of(places)
    along = tuple(direction(t, i) for i, t in enumerate(given))
    expected = by_reverse(f, given, along)
    if expected is None:
        return False
    try:
        values, tangents = func.jvp(f, given, along)
    except Exception as error:
        raise AssertionError(f"{case.what}, along {places}: {type(error).__name__}: {error}") from error
    for i, (got, wanted) in enumerate(zip(values, expected[0], strict=True)):
        assert_close(got, wanted, equal_nan=True, msg=lambda text, i=i: f"{case.what}: value {i}: {text}")
    for i, (got, wanted) in enumerate(zip(tangents, expected[1], strict=True)):
        assert_close(
            got,
            wanted,
            equal_nan=True,
            rtol=1e-7,
            atol=1e-9,
            msg=lambda text, i=i: f"{case.what}, along {places}: tangent {i}: {text}",
        )
    return True


def check_gradient(case: Case, places: tuple[int, ...]) -> bool:
    """Forward over reverse: the tangents of gradients are those of a gradient's gradient."""
    f, given = case.of(places)
    try:
        outputs = f(*(t.detach().requires_grad_() for t in given))
        seeds = tuple(direction(o.detach(), 5) for o in outputs)
    except (RuntimeError, NotImplementedError):
        return False
    if not outputs or not any(o.requires_grad for o in outputs):
        return False

    def gradient(*some: tp.Tensor) -> tuple[tp.Tensor, ...]:
        return func.vjp(lambda *a: tuple(f(*a)), *some)[1](seeds)

    along = tuple(direction(t, i) for i, t in enumerate(given))
    expected = by_reverse(lambda *some: list(gradient(*some)), given, along)
    if expected is None:
        return False
    try:
        _, tangents = func.jvp(gradient, given, along)
    except Exception as error:
        raise AssertionError(f"{case.what}, along {places}: {type(error).__name__}: {error}") from error
    for i, (got, wanted) in enumerate(zip(tangents, expected[1], strict=True)):
        assert_close(
            got,
            wanted,
            equal_nan=True,
            rtol=1e-7,
            atol=1e-9,
            msg=lambda text, i=i: f"{case.what}, gradient along {places}: tangent {i}: {text}",
        )
    return True


def check_columns(case: Case, places: tuple[int, ...]) -> bool:
    """Several directions at once, at values that these share (Note [Batched tangents]): each as it is alone. Once
    more with each of the other inputs different in each sample, where they are not written to what is shared.
    """
    f, given = case.of(places)
    columns = [tuple(direction(t, seed + i) for i, t in enumerate(given)) for seed in (0, 3)]
    try:
        alone = [func.jvp(f, given, along)[1] for along in columns]
    except (RuntimeError, NotImplementedError):
        return False
    stacked = tuple(tp.stack(parts) for parts in zip(*columns, strict=True))
    before = [t.clone() for t in stacked]

    def compare(together: list[tp.Tensor], one_by_one: list[list[tp.Tensor]], what: str) -> None:
        for i, (got, wanted) in enumerate(zip(together, zip(*one_by_one, strict=True), strict=True)):
            assert_close(
                got,
                tp.stack(wanted),
                equal_nan=True,
                rtol=1e-7,
                atol=1e-9,
                msg=lambda text, i=i: f"{case.what}, columns along {places}{what}: tangent {i}: {text}",
            )

    try:
        compare(func.vmap(lambda *along: func.jvp(f, given, along)[1], randomness="same")(*stacked), alone, "")
        for other in range(len(case.inputs)):
            if case.inplace or other in places:
                continue
            at = case.inputs[other]
            both = tp.stack([at, at.flip(0) if at.ndim else at])
            g, _ = case.of((*places, other))

            def beside(value: tp.Tensor, *along: tp.Tensor, g: Any = g) -> Any:
                return func.jvp(lambda *some: g(*some, value), given, along)[1]

            try:
                one_by_one = [beside(both[b], *columns[b]) for b in range(2)]
            except (RuntimeError, NotImplementedError, ValueError):
                continue
            mapped = func.vmap(beside, randomness="same")(both, *stacked)
            compare(mapped, one_by_one, f" beside input {other}")
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{case.what}, columns along {places}: {type(error).__name__}: {error}") from error
    for got, wanted in zip(stacked, before, strict=True):
        assert_close(got, wanted, msg=lambda text: f"{case.what}, columns along {places}: a direction: {text}")
    return True
