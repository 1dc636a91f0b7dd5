"""Parameters that wait for their shape: what they refuse, on every way to an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn


@pytest.mark.parametrize(
    "call",
    [
        lambda p: p + 1,
        lambda p: 1 + p,
        lambda p: p == p,
        lambda p: p[0],
        lambda p: p.numel(),
        lambda p: p.dim(),
        lambda p: p.zero_(),
        lambda p: tp.empty_like(p),
        lambda p: tp.cat([p, p]),
        lambda p: nn.functional.linear(tp.ones(1, 2), p),
        lambda p: nn.init.zeros_(p),
        lambda p: nn.utils.clip_grad_norm_([tp.ones(2), p], 1.0) if p.grad is not None else p.sum(),
    ],
)
@pytest.mark.parametrize("kind", [nn.UninitializedParameter, nn.UninitializedBuffer])
def test_operators(kind: Any, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
        call(kind())


def test_shape() -> None:
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        nn.UninitializedParameter().shape  # noqa: B018
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized parameter or buffer"):
        nn.LazyLinear(3).share_memory()


@pytest.mark.parametrize("optimizer", [tp.optim.SGD, tp.optim.Adam, tp.optim.AdamW, tp.optim.RMSprop])
def test_optimizers(optimizer: Any) -> None:
    module = nn.LazyLinear(3, bias=False)
    module.weight.grad = tp.empty(0)
    with pytest.raises(ValueError, match="uninitialized parameter"):
        optimizer(module.parameters(), lr=0.1).step()


@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_norms_of_weights(norm: Any) -> None:
    with pytest.raises(ValueError, match="can't have uninitialized parameters"):
        norm(nn.LazyLinear(3))


def test_script() -> None:
    with pytest.raises(RuntimeError, match="has uninitialized parameters in '0'"):
        tp.jit.script(nn.Sequential(nn.LazyLinear(3)))


def test_what_may_be_asked() -> None:
    module = nn.LazyLinear(3)
    weight = module.weight
    assert weight.requires_grad and weight.is_leaf and weight.grad is None and weight.device == tp.device("cpu")
    assert module.double().weight.dtype is tp.float64 and not weight.is_complex()
    assert module(tp.ones(1, 2, dtype=tp.float64)).shape == (1, 3)
    assert type(module.weight) is nn.Parameter and module.weight.shape == (3, 2)


def test_forward_may_take_words() -> None:
    layer = nn.LazyConvTranspose1d(2, 3, stride=2)
    assert layer(tp.ones(1, 4, 5), output_size=[12]).shape == (1, 2, 12) and layer.in_channels == 4
