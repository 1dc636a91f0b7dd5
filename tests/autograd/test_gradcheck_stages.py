"""What gradcheck asks beside the numbers, by functions that are wrong at one stage, and in which words it says so."""

from __future__ import annotations

from typing import Any

import pytest

import tensorpy as tp
from tensorpy.autograd import Function, GradcheckError, forward_ad, gradcheck, gradgradcheck

REAL = tp.tensor([0.5, -1.5], dtype=tp.float64, requires_grad=True)
COMPLEX = tp.tensor([0.5 + 1j, -1.5 + 2j], dtype=tp.complex128, requires_grad=True)


class Double(Function):
    """Twice the tensor; what each of its derivatives does is a subclass's."""

    @staticmethod
    def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * 2

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return tangents[0] * 2


class WrongTangent(Double):
    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return tangents[0] * 2.1


class Sparse(Double):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (grads[0] * 2).to_sparse()


class ReadsNumbers(Double):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * (2 + 0 * float(grads[0].detach().sum()))


class TakesAll(Function):
    """Two outputs, whose gradients are expected to be there."""

    @staticmethod
    def forward(ctx: Any, x: tp.Tensor) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * 2 + (grads[1] * 3 if grads[1] is not None else 0)


def shifted(x: tp.Tensor) -> tp.Tensor:
    y = x.clone()
    y.register_hook(lambda grad: grad + 1e-2)
    return y


def refuses_none(x: tp.Tensor) -> tp.Tensor:
    def hook(grad: Any) -> None:
        if grad is None:
            raise RuntimeError("where is it?")

    y = x.clone()
    y.register_hook(hook)
    return y


def bends_tangents(x: tp.Tensor) -> tp.Tensor:
    """Knows by forward_ad that forward mode runs."""
    if forward_ad._current_level < 0:
        return x.clone()
    primal, tangent = forward_ad.unpack_dual(x)
    return forward_ad.make_dual(primal, tangent * 1.5) + 0


IMAGINARY = "^While considering the imaginary part of complex outputs only, Jacobian mismatch for output 0 with respect"
FORWARD = "Jacobian computed with forward mode mismatch for output 0 with respect to input 0,\n"
BATCHED = (
    "While computing batched gradients, got: [^$]*gradcheck or gradgradcheck failed while testing batched gradient"
)
FOUND: dict[str, tuple[Any, tp.Tensor, dict[str, Any], str]] = {
    "real": (shifted, REAL, {}, "^Jacobian mismatch for output 0 with respect to input 0,\n"),
    "complex": (shifted, COMPLEX, {}, IMAGINARY),
    "zeros": (shifted, REAL, {"atol": 0.1}, "^backward not multiplied by grad_output"),
    "layout": (Sparse.apply, REAL, {}, "^grad is incorrect layout"),
    "batch": (ReadsNumbers.apply, REAL, {"check_batched_grad": True}, BATCHED),
    "none": (refuses_none, REAL, {}, "^Expected backward function to handle undefined output grads"),
    "forward": (WrongTangent.apply, REAL, {"check_forward_ad": True}, "^" + FORWARD),
    "complex forward": (
        WrongTangent.apply,
        COMPLEX,
        {"check_forward_ad": True},
        "^While considering the imaginary part of complex inputs only, " + FORWARD,
    ),
    "forward by level": (bends_tangents, REAL, {"check_forward_ad": True}, "^" + FORWARD),
}


@pytest.mark.filterwarnings("ignore:Backwards compatibility")
@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("fast", [False, True])
def test_each_stage_finds_what_is_wrong_there(name: str, fast: bool) -> None:
    function, x, words, message = FOUND[name]
    with pytest.raises(GradcheckError, match=message):
        gradcheck(function, x, fast_mode=fast, **words)
    assert not gradcheck(function, x, fast_mode=fast, raise_exception=False, **words)


def test_what_is_right_passes_each_stage() -> None:
    stages = {"check_forward_ad": True, "check_batched_grad": True}
    for x in (REAL, COMPLEX):
        for fast in (False, True):
            assert gradcheck(Double.apply, x, fast_mode=fast, **stages)
            assert gradcheck(lambda t: (t.sin(), t * 3), x, check_batched_forward_grad=True, fast_mode=fast, **stages)
            assert gradgradcheck(lambda t: t.clone().mul_(t), x, check_batched_grad=True, fast_mode=fast)


def test_stages_that_are_switched_off_are_not_run() -> None:
    assert gradcheck(refuses_none, REAL, check_undefined_grad=False)
    assert gradcheck(ReadsNumbers.apply, REAL)
    assert gradcheck(WrongTangent.apply, REAL)
    assert gradcheck(Double.apply, REAL, check_forward_ad=True, check_backward_ad=False)
    for words in ({"check_backward_ad": False}, {"check_batched_forward_grad": True}):
        with pytest.raises(AssertionError, match="to be True"):
            gradcheck(Double.apply, REAL, **words)


def test_undefined_gradients_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="New undefined gradient support checking feature"):
        assert not gradcheck(refuses_none, REAL, raise_exception=False)


def test_one_of_two_gradients_is_missing() -> None:
    with pytest.raises(TypeError):
        gradcheck(TakesAll.apply, REAL)
    assert gradcheck(lambda t: TakesAll.apply(t)[0] * 1, REAL, check_undefined_grad=False)


def test_an_input_without_a_tangent_is_as_one_with_zeros() -> None:
    class Asks(Double):
        @staticmethod
        def forward(ctx: Any, x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:  # type: ignore[override]
            return x * 2 + y

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2, grads[0]

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            calls.append(len(tangents))
            return tangents[0] * 2 + tangents[1]

    calls: list[int] = []
    one, two = (tp.ones(1, dtype=tp.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(Asks.apply, (one, two), check_forward_ad=True, check_undefined_grad=False)
    assert len(calls) == 2
    assert gradcheck(Asks.apply, (one, two), check_forward_ad=True)
    assert len(calls) == 2 + 2 + 4
