"""From the table's plain data to tensors and back: what every test over the table needs.

A random operator is seeded before each call, so that it too gives the same again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import _C
from tensorpy.testing.samples import TABLE, Array, OpInfo, OpSample
from tensorpy.testing.samples.table import Device, Dtype, Seed

NUMPY_DTYPE = {"bfloat16": "float32"}
SEED = 11


def over(condition: Callable[[OpInfo], Any] = lambda info: True) -> pytest.MarkDecorator:
    """A test of the operators that a condition holds for, one by one."""
    chosen = [TABLE[name] for name in sorted(TABLE) if condition(TABLE[name])]
    return pytest.mark.parametrize("info", chosen, ids=[info.name for info in chosen])


def name_of(dtype: Any) -> str:
    """ "float32" of tensorpy.float32."""
    return str(dtype).rpartition(".")[2]


def to_tensor(a: Array, device: str, noncontiguous: bool = False) -> tp.Tensor:
    dtype = getattr(tp, a.dtype)
    if not a.values.size:
        return tp.empty(a.values.shape, dtype=dtype, device=device)
    if noncontiguous and a.values.ndim:
        return _C.tensor(np.repeat(a.values, 2, -1).tolist(), dtype=dtype).to(device=device)[..., ::2]
    return _C.tensor(a.values.tolist(), dtype=dtype).to(device=device)


def to_numpy(t: tp.Tensor) -> np.ndarray:
    t = t.detach().to(device="cpu")
    return np.array(t.tolist(), dtype=NUMPY_DTYPE.get(name_of(t.dtype), name_of(t.dtype))).reshape(t.shape)


def arguments(
    sample: OpSample, device: str, info: OpInfo | None = None, make: Callable[[Array, str], tp.Tensor] = to_tensor
) -> tuple[list[Any], dict[str, Any]]:
    """The sample's arguments on a device; an operator that makes a tensor from none is told of the device."""

    def converter(place: str) -> Callable[[Any], Any]:
        def convert(value: Any) -> Any:
            match value:
                case Array():
                    return make(value, place)
                case Dtype(name):
                    return getattr(tp, name)
                case Seed(n):
                    return _C.Generator("cpu" if place == "meta" else place).manual_seed(n)
                case Device():
                    return place

        return convert

    args, kwargs = sample.map(converter(device))
    if info is not None and info.on_host and device not in ("cpu", "meta"):
        names = [a.name for a in info.op.schema.arguments]
        host_args, host_kwargs = sample.map(converter("cpu"))
        for i, name in enumerate(names[: len(args)]):
            args[i] = host_args[i] if name in info.on_host else args[i]
        kwargs = {k: host_kwargs[k] if k in info.on_host else v for k, v in kwargs.items()}
    if info is not None and "device" not in kwargs and device != "cpu" and not info.op.tensor_arguments:
        kwargs["device"] = device
    return args, kwargs


def same_place(t: tp.Tensor, device: str) -> bool:
    """Whether a tensor is on the device of that name, with or without an index."""
    return str(t.device) == device or t.device.type == device


def strided(a: Array, device: str) -> tp.Tensor:
    return to_tensor(a, device, noncontiguous=True)


def function_of(info: OpInfo, inplace: bool = False) -> Callable[..., Any]:
    """The operator as a user calls it: a function, or the method where there is none."""
    op = info.variant("inplace") if inplace else info.op
    assert op is not None
    name = str(op.schema.name).partition(".")[0]
    module: Any = tp._C
    if op.function.python_module:
        module = getattr(tp._C, "_" + op.function.python_module)
        name = name if hasattr(module, name) else name.removeprefix(op.function.python_module + "_")
    if op.function.variants:
        found = getattr(module if op.function.is_function else tp.Tensor, name)
    else:  # `ops_only`
        found = getattr(getattr(tp.ops.aten, name), str(op.schema.name).partition(".")[2] or "default")
    if not callable(found):  # a property
        return lambda t: found.__get__(t)
    if not info.random:
        return found

    @functools.wraps(found)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        seed(kwargs)
        return found(*args, **kwargs)

    return seeded


def seed(kwargs: dict[str, Any]) -> None:
    """The state of before the first call: of the library's generator and of those among the arguments."""
    tp.manual_seed(SEED)
    for value in kwargs.values():
        if isinstance(value, tp.Generator):
            value.manual_seed(SEED)


def tensors(result: Any) -> list[tp.Tensor]:
    """The tensors of a result; a number as a tensor without dimensions."""
    if isinstance(result, tp.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [r for r in result if isinstance(r, tp.Tensor)]
    return [_C.tensor(result)]


def call(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> list[tp.Tensor]:
    return tensors(function(*args, **kwargs))


def fresh(info: OpInfo, args: list[Any]) -> list[Any]:
    """Arguments for one more call: an operator in place gets a copy of what it writes to."""
    return [args[0].clone(), *args[1:]] if info.op.kind == "inplace" else args


class Input:
    """Stands for the n-th floating tensor among arguments."""

    def __init__(self, n: int) -> None:
        self.n = n


def inputs_of(
    info: OpInfo, args: list[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], Callable[..., tuple[list[Any], dict[str, Any]]]]:
    """The floating tensors among the arguments, and how to put others in their place."""
    found: list[tp.Tensor] = []

    def collect(value: Any) -> Any:
        if isinstance(value, tp.Tensor) and (value.is_floating_point() or value.is_complex()):
            found.append(value.detach().clone().requires_grad_())
            return Input(len(found) - 1)
        return type(value)(collect(v) for v in value) if isinstance(value, (list, tuple)) else value

    names = [a.name for a in info.op.schema.arguments]
    fixed = info.constant
    shape = (
        [a if name in fixed else collect(a) for a, name in zip(args, names, strict=False)],
        {k: v if k in fixed else collect(v) for k, v in kwargs.items()},
    )

    def fill(value: Any, inputs: tuple[Any, ...]) -> Any:
        if isinstance(value, Input):
            return inputs[value.n]
        return type(value)(fill(v, inputs) for v in value) if isinstance(value, (list, tuple)) else value

    return tuple(found), lambda inputs: (
        [fill(a, inputs) for a in shape[0]],
        {k: fill(v, inputs) for k, v in shape[1].items()},
    )


def check_equal(got: tp.Tensor, expected: np.ndarray, tolerance: tuple[float, float], what: str) -> None:
    assert tuple(got.shape) == expected.shape, f"{what}: shape {tuple(got.shape)}, expected {expected.shape}"
    actual = to_numpy(got)
    rtol, atol = tolerance
    wide = np.complex128 if np.iscomplexobj(actual) or np.iscomplexobj(expected) else np.float64
    if actual.dtype.kind in "biu" and expected.dtype.kind in "biu":
        good = actual == expected
    else:
        good = np.isclose(actual.astype(wide), expected.astype(wide), rtol=rtol, atol=atol, equal_nan=True)
    if not good.all():
        at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(good))[0])
        a, e = np.atleast_1d(actual)[at], np.atleast_1d(expected)[at]
        raise AssertionError(
            f"{what}: {np.count_nonzero(~good)} of {good.size} differ, first at {at}: {a!r}, expected {e!r}"
        )


def check_same(
    info: OpInfo, got: tp.Tensor, expected: tp.Tensor, what: str, exact: bool = True, strides: bool = False
) -> None:
    """Equal in everything, or to a few last places; of elements that are not set only what they are."""
    assert got.dtype == expected.dtype, f"{what}: {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"{what}: {got.shape}, expected {expected.shape}"
    if strides and tp._C._has_storage(got):  # what shows no memory has those of its sizes
        assert got.stride() == expected.stride(), f"{what}: {got.stride()}, expected {expected.stride()}"
    if info.unset:
        return
    rough = info.tolerance(name_of(expected.dtype)) if not exact else (0.0, 0.0)
    check_equal(got, to_numpy(expected), rough, what)


def each_argument(values: Iterable[Any]) -> list[tp.Tensor]:
    """The tensors among arguments, those in lists too."""
    return [t for v in values for t in (v if isinstance(v, (list, tuple)) else [v]) if isinstance(t, tp.Tensor)]
