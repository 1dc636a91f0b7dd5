"""What Python hands over: whatever has __index__ is an int, and a message says which element and what it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import _C
from tensorpy.testing.harness import arguments, call, check_same, fresh, function_of, over, seed
from tensorpy.testing.samples import TABLE, OpInfo


class Index:
    """Nothing but __index__."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def ints(value: Any, make: Callable[[int], Any]) -> Any:
    if type(value) is int:
        return make(value)
    return type(value)(ints(v, make) for v in value) if type(value) in (list, tuple) else value


@over()
def test_whatever_has_an_index_is_an_int(info: OpInfo) -> None:
    function = function_of(info)
    for sample in info.samples(info.main_dtype, 4):
        args, kwargs = arguments(sample, "cpu", info)
        if ints([args, kwargs], Index) == [args, kwargs] or any(type(a) is int and abs(a) >= 2**63 for a in args):
            continue
        expected = call(function, fresh(info, args), kwargs)
        for make in (Index, np.int64, lambda n: tp.tensor(n)):
            if make not in (Index, np.int64) and not takes_ints_only(info, args):
                continue
            other = [ints(a, make) for a in args]
            if info.random:
                seed(kwargs)
            named = {k: ints(v, make) for k, v in kwargs.items()}
            got = call(function, fresh(info, other), named)
            for a, b in zip(got, expected, strict=True):
                check_same(info, a, b, f"{info.name}{sample} with {make}")


@over(lambda info: any(str(a.type).rstrip("?") in ("Scalar", "float") for a in info.op.schema.arguments))
def test_a_tensor_that_requires_grad_is_no_number(info: OpInfo) -> None:
    """As a number it would lose its gradient: what takes one has an overload for tensors, or refuses it."""
    function, names = function_of(info), [a.name for a in info.op.schema.arguments]
    overloads = [a for other in TABLE.values() if other.base == info.base for a in other.op.schema.arguments]
    takes_tensors = {a.name for a in overloads if str(a.type).startswith("Tensor")}
    for sample in info.samples(info.main_dtype, 4):
        args, kwargs = arguments(sample, "cpu", info)
        places: list[tuple[Any, Any]] = [(args, i) for i in range(len(args))] + [(kwargs, k) for k in kwargs]
        for where, at in places:
            if type(where[at]) is not float or (at if where is kwargs else names[at]) in takes_tensors:
                continue
            number = tp.tensor(where[at], requires_grad=True)
            given_args, given = fresh(info, args), dict(kwargs)
            (given_args if where is args else given)[at] = number
            with pytest.raises(TypeError):
                call(function, given_args, given)


def takes_ints_only(info: OpInfo, args: list[Any]) -> bool:
    """Where a tensor stands for an int and not for itself."""
    return all(str(a.type).startswith(("int", "SymInt", "bool")) for a in info.op.schema.arguments[1:])


@pytest.mark.parametrize(
    "call_",
    [
        lambda n: tp.zeros(n(2)).shape,
        lambda n: tp.ones(6).reshape(n(6)).shape,
        lambda n: tp.ones(2, 3).permute(n(1), n(0)).shape,
        lambda n: tp.nn.functional.interpolate(tp.ones(1, 1, 4, 4), size=n(2)).shape,
        lambda n: tp.nn.functional.max_pool2d(tp.ones(1, 1, 4, 4), n(2)).shape,
        lambda n: tp.nn.functional.adaptive_avg_pool2d(tp.ones(1, 1, 4, 4), n(2)).shape,
        lambda n: tp.nn.LayerNorm(n(3))(tp.ones(2, 3)).shape,
        lambda n: tp.tensordot(tp.ones(2, 3), tp.ones(3, 2), n(1)).shape,
        lambda n: tp.broadcast_shapes(n(2), (3, 1)),
        lambda n: tp.ones(3)[n(1)].shape,
        lambda n: tp.ones(3)[: n(2)].shape,
        lambda n: tp.ones(3).size(n(0)),
    ],
)
def test_ints_of_hand_written_functions(call_: Callable[[Any], Any]) -> None:
    for make in (Index, np.int32, np.uint8):
        assert call_(make) == call_(int)


# ---- messages ----


def message(call_: Callable[[], Any]) -> str:
    with pytest.raises(TypeError) as caught:
        call_()
    return str(caught.value)


@over(lambda info: any(str(a.type) in ("Tensor[]", "int[]", "SymInt[]") for a in info.op.schema.arguments))
def test_the_element_that_does_not_fit_is_named(info: OpInfo) -> None:
    function = function_of(info)
    seen = False
    for sample in info.samples(info.main_dtype, 4):
        args, kwargs = arguments(sample, "cpu", info)
        for i, value in enumerate(args):
            if type(value) not in (list, tuple) or not value:
                continue
            wrong = [*args[:i], [*value[:-1], object()], *args[i + 1 :]]
            text = message(lambda wrong=wrong, kwargs=kwargs: function(*fresh(info, wrong), **kwargs))
            at = len(value) - 1
            named = f"as element {at} in argument ", f"but found element of type object at pos {at}"
            assert any(words in text for words in named), text
            seen = True
    if not seen:
        pytest.skip("no sample has such a list by position")


def test_unknown_keywords_of_every_function_are_named() -> None:
    """With another name only where that is close."""
    for space, method in ((_C, False), (tp.Tensor, True)):
        for name in vars(space):
            if not _C._signatures(name, method) or "Schemas:" not in (getattr(space, name).__doc__ or ""):
                continue
            for keyword in ("foo", "zqxjkwv", "zqxjkwvzqxjkwvzqxjkwv" * 9):
                given = [tp.ones(2)] if method else []
                text = message(lambda s=space, n=name, k=keyword, g=given: getattr(s, n)(*g, **{k: 1}))
                assert f"unexpected keyword argument '{keyword}'" in text and "Did you mean" not in text
            for _, _, _, parameters in _C._signatures(name, method):
                for parameter, *_ in parameters:
                    slip = parameter[:2] + parameter[3:4] + parameter[2:3] + parameter[4:]
                    if slip == parameter or (method and parameter == "self"):
                        continue
                    text = message(lambda s=space, n=name, k=slip, g=given: getattr(s, n)(*g, **{k: 1}))
                    assert "Did you mean" in text, text


def test_types_in_messages_are_words() -> None:
    for call_, expected in (
        (lambda: tp.zeros(2, dtype="float32"), "argument 'dtype' must be dtype, not str"),
        (lambda: tp.zeros(2, device=3.5), "argument 'device' must be device, not float"),
        (lambda: tp.sum(tp.ones(2), dim="a"), "argument 'dim' must be tuple of ints, not str"),
        (lambda: tp.arange("a"), "arange(): argument 'end' (position 1) must be Number, not str"),
        (lambda: tp.cat(tp.ones(2)), "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
        (lambda: tp.sum(tp.ones(2), keepdim=True), 'missing 1 required positional arguments: "dim"'),
        (lambda: tp.sum(tp.ones(2), 0, dim=1), "an argument is given twice"),
        (lambda: tp.add(tp.ones(2)), 'missing 1 required positional arguments: "other"'),
        (lambda: tp.ones(2).view(1, "a"), "must be tuple of ints, but found element of type str at pos 1"),
        (lambda: tp.cat([tp.ones(1), 3]), "expected Tensor as element 1 in argument 0, but got int"),
        (lambda: tp.tensor(1, dtyp=tp.int8), "Did you mean 'dtype'?"),
    ):
        text = message(call_)
        assert expected in text and "?" not in text.replace("'?", ""), text


def test_a_device_that_is_not_here_says_which_are() -> None:
    with pytest.raises(RuntimeError, match="cpu, meta, opencl device type at start of device string: nonsense; a GPU"):
        tp.zeros(2, device="nonsense")


def test_what_is_no_name_of_a_device_is_no_device_string() -> None:
    for text in ("not a device", "cpu ", ":0", "1cpu", "cpu:", "cpu:01"):
        with pytest.raises(RuntimeError, match=f"^Invalid device string: '{text}'$"):
            tp.device(text)
        with pytest.raises(RuntimeError, match=f"^Invalid device string: '{text}'$"):
            tp.autocast(text)


# ---- NumPy's functions ----


ORDERED = ("max", "amax", "min", "amin")  # complex numbers have no order


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in ("sum", "prod", *ORDERED, "any", "all", "mean", "std", "var")
        for dtype in ("float32", "float64", "int32", "bool", "complex64")
        if dtype != "complex64" or name not in ORDERED
    ],
)
def test_numpys_reductions_of_a_tensor(name: str, dtype: str) -> None:
    values = np.array([[3, 0, 2], [1, 5, 4]]).astype(dtype)
    t, function = tp.from_numpy(values.copy()), getattr(np, name)
    cases: list[dict[str, Any]] = [
        {},
        {"axis": 0},
        {"axis": -1, "keepdims": True},
        {"axis": (0, 1)},
        {"keepdims": True},
    ]
    cases += [{"ddof": 1, "axis": 1}] if name in ("std", "var") else []
    cases += [{"dtype": np.float64, "axis": 1}] if name in ("sum", "prod", "mean") and dtype != "complex64" else []
    for how in cases:
        got, expected = function(t, **how), np.asarray(function(values, **how))
        assert isinstance(got, tp.Tensor) and tuple(got.shape) == expected.shape, how
        if got.dtype.name != "float32" or expected.dtype == np.float32:
            assert got.dtype.name == expected.dtype.name or (name in ("sum", "prod") and dtype == "int32")
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    assert function(t, 0).tolist() == function(t, axis=0).tolist()
    out = tp.empty(3, dtype=function(t, 0).dtype)
    assert function(t, axis=0, out=out) is out and out.tolist() == function(t, 0).tolist()


def test_numpys_reductions_keep_the_gradient_and_the_device() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    np.sum(x * x).backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert np.mean(tp.ones(2, 3, device="meta"), axis=1).shape == (2,)
    assert np.sum(tp.ones(3), where=np.array([True, False, True])) == 2.0
    with pytest.raises(IndexError, match="axis 2 is out of bounds"):
        np.sum(tp.ones(2), axis=2)


@pytest.mark.parametrize(
    "call",
    [
        lambda none: tp.roll(tp.arange(4).reshape(2, 2), 1, none),
        lambda none: tp.max_pool2d(tp.arange(16.0).reshape(1, 1, 4, 4), 2, none),
        lambda none: tp.nn.functional.max_pool1d(tp.arange(4.0).reshape(1, 1, 4), 2, none),
        lambda none: tp.nn.functional.avg_pool3d(tp.arange(64.0).reshape(1, 1, 4, 4, 4), 2, none),
    ],
)
def test_none_stands_for_an_empty_list_that_is_the_default(call: Any) -> None:
    assert call(None).equal(call([]))


def test_a_size_that_has_to_be_given_is_not_none() -> None:
    with pytest.raises(TypeError):
        tp.ones(2, 2).reshape(None)
    with pytest.raises(TypeError):
        tp.nn.functional.max_pool2d(tp.ones(1, 1, 4, 4), None)


def test_tensor_stands_for_the_default_type() -> None:
    assert tp.ones(2, dtype=tp.int64).type(tp.Tensor).dtype == tp.float32


def test_an_int_for_a_float_may_be_of_any_size_that_a_double_holds():
    x = tp.ones(3)
    assert tp.allclose(x, x + 1, rtol=2**64) and tp.allclose(x, x + 1, atol=10**300)
    assert tp.nn.functional.layer_norm(x, [3], eps=2**64).tolist() == [0.0] * 3
    with pytest.raises(OverflowError):
        tp.allclose(x, x, rtol=10**400)
    with pytest.raises(OverflowError, match="too large for 64 bits"):
        x + 2**64
