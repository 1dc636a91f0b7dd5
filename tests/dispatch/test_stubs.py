"""The operators that PyTorch's tests of its generator and dispatcher call, beside torch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "check_tensor": lambda t, n: t._test_check_tensor(t.ones(3) > 0),
    "check_tensor, false": lambda t, n: t._test_check_tensor(t.arange(3) > 0),
    "check_tensor, numbers": lambda t, n: t._test_check_tensor(t.ones(3)),
    "functorch_fallback": lambda t, n: t._test_functorch_fallback(t.arange(3.0), t.ones(3)),
    "functorch_fallback.out": lambda t, n: t.ops.aten._test_functorch_fallback.out(
        t.arange(3.0), t.ones(3), out=t.empty(0)
    ),
    "serialization_subcmul": lambda t, n: t._test_serialization_subcmul(t.arange(3.0), t.ones(3), 2),
    "serialization_subcmul, by default": lambda t, n: t._test_serialization_subcmul(t.arange(3.0), t.ones(3)),
    "parallel_materialize": lambda t, n: (x := t.arange(3.0)) is t._test_parallel_materialize(x, 3),
    "parallel_materialize, skip": lambda t, n: t._test_parallel_materialize(t.arange(3.0), -3, True),
    "intlist": lambda t, n: n._test_optional_intlist(t.arange(3).int(), [1, 2, 3, 4]),
    "intlist, none": lambda t, n: n._test_optional_intlist(t.arange(3.0), None),
    "intlist, short": lambda t, n: n._test_optional_intlist(t.arange(3).int(), [1, 2]),
    "intlist, floats": lambda t, n: n._test_optional_intlist(t.arange(3.0), [1, 2, 3]),
    "intlist, a matrix": lambda t, n: n._test_optional_intlist(t.ones(3, 1).int(), [1, 2, 3]),
    "intlist.out": lambda t, n: t.ops.aten._test_optional_intlist.out(
        t.arange(3).int(), [1, 2, 3], out=t.empty(0).int()
    ),
    "filled_intlist": lambda t, n: n._test_optional_filled_intlist(t.arange(2).int(), 5),
    "filled_intlist, none": lambda t, n: n._test_optional_filled_intlist(t.arange(2).int(), None),
    "floatlist": lambda t, n: n._test_optional_floatlist(t.arange(3.0), [1.5, 2, 3]),
    "floatlist, doubles": lambda t, n: n._test_optional_floatlist(t.arange(3.0).double(), [1.5, 2, 3]),
    "floatlist, short": lambda t, n: n._test_optional_floatlist(t.arange(3.0), [1.5]),
    "string_default": lambda t, n: (x := t.arange(3.0)) is n._test_string_default(x),
    "string_default, a": lambda t, n: n._test_string_default(t.arange(3.0), "a"),
    "string_default, b": lambda t, n: n._test_string_default(t.arange(3.0), b="a"),
    "ambiguous_defaults": lambda t, n: n._test_ambiguous_defaults(t.arange(3.0)),
    "ambiguous_defaults, a": lambda t, n: n._test_ambiguous_defaults(t.arange(3.0), 2),
    "ambiguous_defaults, both": lambda t, n: n._test_ambiguous_defaults(t.arange(3.0), 2, "2"),
    "ambiguous_defaults, a and text": lambda t, n: n._test_ambiguous_defaults(t.arange(3.0), 1, "2"),
    "ambiguous_defaults, b": lambda t, n: n._test_ambiguous_defaults(t.arange(3.0), 1, 2),
    "warn_in_autograd": lambda t, n: n._test_warn_in_autograd(t.arange(3.0)),
    "warn_in_autograd.out": lambda t, n: t.ops.aten._test_warn_in_autograd.out(t.arange(3.0), out=t.empty(0)),
    "multiple_dispatch": lambda t, n: t._test_autograd_multiple_dispatch(t.arange(3.0)),
    "multiple_dispatch, b": lambda t, n: t._test_autograd_multiple_dispatch(t.arange(3.0), True),
    "multiple_dispatch_view": lambda t, n: t._test_autograd_multiple_dispatch_view(t.ones(3, 2)),
    "multiple_dispatch_view, of itself": lambda t, n: (
        t._test_autograd_multiple_dispatch_view(x := t.ones(3, 2)).data_ptr() == x.data_ptr()
    ),
    "multiple_dispatch_view_copy": lambda t, n: t._test_autograd_multiple_dispatch_view_copy(t.ones(3, 2)),
    "foobar": lambda t, n: (x := t.arange(3.0)) is t._foobar(x, arg2=False, arg3=False),
}

GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "warn_in_autograd": lambda t, n: n._test_warn_in_autograd,
    "multiple_dispatch": lambda t, n: t._test_autograd_multiple_dispatch,
    "multiple_dispatch, b": lambda t, n: lambda x: t._test_autograd_multiple_dispatch(x, True),
    "multiple_dispatch_view": lambda t, n: t._test_autograd_multiple_dispatch_view,
    "multiple_dispatch_view_copy": lambda t, n: t._test_autograd_multiple_dispatch_view_copy,
}


def told(t: Any, call: Callable[[Any, Any], Any]) -> Any:
    """A call's result as plain data; the class of what it raises and how that begins."""
    try:
        made = call(t, t._C._nn)
    except RuntimeError as error:
        return type(error).__name__, str(error)[:22]
    return (made.tolist(), str(made.dtype).partition(".")[2]) if isinstance(made, t.Tensor) else made


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_torchs(name: str) -> None:
    ours, theirs = told(tp, CALLS[name]), told(torch, CALLS[name])
    if name == "check_tensor, numbers":  # torch's words are those of an internal assertion
        ours, theirs = ours[0], theirs[0]
    assert ours == theirs


def gradient(t: Any, of: Callable[[Any, Any], Any]) -> Any:
    x = t.ones(3, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        of(t, t._C._nn)(x).backward(t.arange(3.0))
    return x.grad.tolist(), [(w.category, str(w.message)[:18]) for w in caught]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_torchs(name: str) -> None:
    assert gradient(tp, GRADIENTS[name]) == gradient(torch, GRADIENTS[name])


@pytest.mark.parametrize("name", GRADIENTS)
def test_batches_are_of_samples(name: str) -> None:
    of = GRADIENTS[name](tp, tp._C._nn)
    x = tp.arange(6.0).reshape(2, 3)
    assert tp.vmap(of)(x).tolist() == [of(row).tolist() for row in x]


def test_tangents_and_lists_on_devices(device: str) -> None:
    x = tp.ones(3, device=device)
    made, tangent = tp.func.jvp(tp._test_autograd_multiple_dispatch, (x,), (x * 2,))
    assert made.tolist() == [1.0] * 3 and tangent.tolist() == [2.0] * 3
    assert tp._C._nn._test_optional_floatlist(x, [1.5, 2, 3]).tolist() == [2.5, 3.0, 4.0]
    assert tp._C._nn._test_optional_intlist(x.int(), [1, 2, 3]).tolist() == [2, 3, 4]
