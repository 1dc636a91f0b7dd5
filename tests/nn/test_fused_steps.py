"""Fused steps of optimizers: against torch's, and against the same step in operators over lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from side_by_side import Scenarios, filled

import tensorpy as tp
from tensorpy import nn, optim

scenario = Scenarios()

SIZES = ((3, 4), (5,), (), (70, 33))
DTYPES = ["float32", "float64", "float16", "bfloat16"]


def lists(t: Any, n: int, dtype: str = "float32") -> list[list[Any]]:
    """Parameters, gradients and n - 2 lists of states, which are positive. Those of 16 bits are short: the vectors of
    PyTorch 2.13's SGD leave such parameters as they are.
    """
    sizes = SIZES if dtype in ("float32", "float64") else SIZES[:3]
    made = []
    for k in range(n):
        raw = [(filled(t, *(size or (1,))) * (3 + k)).sin().reshape(size) for size in sizes]
        made.append([(x.abs() if k > 1 else x).to(dtype=getattr(t, dtype)) for x in raw])
    return made


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, (list, tuple)):
        return [array for part in value for array in flat(part)]
    return [value.detach().double().numpy()]


def compare(tell: Callable[[Any], Any], dtype: str = "float32") -> None:
    """What a scenario gives with tensorpy and with torch, equal to rounding."""
    torch = pytest.importorskip("torch")
    ours, theirs = flat(tell(tp)), flat(tell(torch))
    tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2}.get(dtype, 1e-5)
    assert len(ours) == len(theirs)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got, want, tolerance, tolerance)


def adam_step(t: Any, *given: Any, name: str = "_fused_adam_", **options: Any) -> None:
    settings = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-3}
    getattr(t, name)(*given, **{**settings, "amsgrad": False, "maximize": False, **options})


def adam(t: Any, name: str, dtype: str, tensor_lr: bool = False, **options: Any) -> Any:
    given = lists(t, 5, dtype)
    steps = [t.tensor(float(i + 1)) for i in range(len(given[0]))]
    settings = {
        "lr": 0.1,
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0.0,
        "eps": 1e-3,
        "amsgrad": False,
        "maximize": False,
    }
    settings |= options
    if tensor_lr:
        settings["lr"] = t.tensor(settings["lr"])
    given = given if settings["amsgrad"] else [*given[:4], []]
    getattr(t, name)(*given, steps, **settings)
    return given


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["_fused_adam_", "_fused_adamw_"])
def test_adam(name: str, dtype: str) -> None:
    options: list[dict[str, Any]] = [{}, {"weight_decay": 0.1}, {"amsgrad": True, "maximize": True}]
    compare(lambda t: [adam(t, name, dtype, **o) for o in options], dtype)


@scenario
def adam_with_tensors(t: Any) -> Any:
    scale = {"grad_scale": t.tensor(4.0), "found_inf": t.tensor(0.0)}
    left_out = {"grad_scale": t.tensor(4.0), "found_inf": t.tensor(1.0)}
    return [adam(t, "_fused_adamw_", "float32", tensor_lr=True, **extra) for extra in ({}, scale, left_out)]


SGD = {
    "weight_decay": 0.0,
    "momentum": 0.0,
    "lr": 0.1,
    "dampening": 0.0,
    "nesterov": False,
    "maximize": False,
    "is_first_step": False,
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_sgd(dtype: str) -> None:
    options = [
        {},
        {"weight_decay": 0.1, "maximize": True},
        {"momentum": 0.9, "dampening": 0.25},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"momentum": 0.9, "is_first_step": True},
    ]

    def tell(t: Any) -> Any:
        seen = []
        for o in options:
            params, grads, momenta = lists(t, 3, dtype)
            t._fused_sgd_(params, grads, momenta if "momentum" in o else [], **{**SGD, **o})
            seen.append([params, momenta])
        return seen

    compare(tell, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adagrad(dtype: str) -> None:
    def tell(t: Any) -> Any:
        seen = []
        for decay, maximize in ((0.0, False), (0.1, True)):
            params, grads, sums = lists(t, 3, dtype)
            steps = [t.tensor(3.0) for _ in params]
            t._fused_adagrad_(
                params, grads, sums, steps, lr=0.1, lr_decay=0.1, weight_decay=decay, eps=1e-3, maximize=maximize
            )
            seen.append([params, sums])
        return seen

    compare(tell)


@pytest.mark.parametrize("tell", scenario, ids=lambda s: s.__name__)
def test_scenario(tell: Any) -> None:
    compare(tell)


def test_errors() -> None:
    p, g = [tp.ones(2)], [tp.ones(2)]
    for grads in ([], [tp.ones(2).double()], [tp.ones(3)], [tp.ones(2, device="meta")]):
        with pytest.raises(RuntimeError, match=r"_fused_sgd_"):
            tp._fused_sgd_(p, grads, [], **SGD)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        tp._fused_sgd_([tp.tensor([1])], [tp.tensor([1])], [], **SGD)
    for states in ([[], p, [], [tp.tensor(1.0)]], [p, p, [], []]):
        with pytest.raises(RuntimeError, match=r"missing|same number"):
            adam_step(tp, p, g, *states)


def test_strided_parameters() -> None:
    """In another order than rows, with gaps, and each list in an order of its own."""
    whole = tp.arange(24.0).reshape(4, 6).sin()
    kept = whole.clone()
    params = [whole[:, ::2], tp.ones(4, 6).t(), tp.ones(2, 3, 4, 5).to(memory_format=tp.channels_last)]
    grads = [p.clone().contiguous().cos() for p in params]
    expected = [p.numpy() - np.float32(0.1) * g.numpy() for p, g in zip(params, grads, strict=True)]
    tp._fused_sgd_(params, grads, [], **SGD)
    for got, want in zip(params, expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, 1e-6)
    np.testing.assert_array_equal(whole[:, 1::2].numpy(), kept[:, 1::2].numpy())


def test_writes_are_counted() -> None:
    wanting = [tp.ones(2, requires_grad=True)]
    with tp.no_grad():
        tp._fused_sgd_(wanting, [tp.ones(2)], [], **SGD)
    assert wanting[0]._version == 1 and wanting[0].requires_grad


def test_16_bits_are_32_rounded() -> None:
    """Over more elements than a block has."""
    narrow = [[x.bfloat16() for x in part] for part in ([tp.arange(1500.0).sin()], [tp.arange(1500.0).cos()])]
    wide = [[x.float() for x in part] for part in narrow]
    for given in (narrow, wide):
        tp._fused_sgd_(*given, [], **SGD)
    np.testing.assert_array_equal(narrow[0][0].float().numpy(), wide[0][0].bfloat16().float().numpy())


def test_no_gradient_of_a_step() -> None:
    with pytest.raises(RuntimeError, match="no_grad"):
        tp._fused_sgd_([tp.ones(2, requires_grad=True)], [tp.ones(2)], [], **SGD)


def test_nothing_on_meta() -> None:
    params = [tp.ones(2, device="meta")]
    tp._fused_sgd_(params, params, [], **SGD)


WAYS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"momentum": 0.9, "dampening": 0.1}),
    ("SGD", {"weight_decay": 0.1}),
    ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True}),
    ("AdamW", {}),
    ("AdamW", {"amsgrad": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1}),
]


@pytest.mark.parametrize(("name", "options"), WAYS, ids=str)
def test_ways_are_equal(name: str, options: dict[str, Any]) -> None:
    """Fused or in operators over lists, with parameters of two dtypes, and one whose gradient comes later."""
    results = []
    for way in ({"fused": True}, {"foreach": True}, {"foreach": False}, {"fused": False}, {}):
        params = [nn.Parameter(x) for x in [*lists(tp, 1)[0], *lists(tp, 1, "float64")[0]]]
        optimizer = getattr(optim, name)(params, lr=0.05, **options, **way)
        for step in range(6):
            for i, p in enumerate(params):
                p.grad = (p.detach() * (step + 2)).cos() if i or step > 2 else None
            optimizer.step()
        results.append([p.detach().numpy() for p in params])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_allclose(a, b, 2e-5, 2e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_lengths(threads: int) -> None:
    """Borders of threads and vectors fall anywhere; a step by hand is the reference."""
    before = tp.get_num_threads()
    tp.set_num_threads(threads)
    try:
        sizes = [0, 1, 31, 5000, 20011, 0, 40000, 7]
        params = [tp.arange(float(n)).sin() for n in sizes]
        grads = [(p * 3).cos() for p in params]
        expected = [p.numpy() - np.float32(0.1) * g.numpy() for p, g in zip(params, grads, strict=True)]
        tp._fused_sgd_(params, grads, [], **SGD)
        for got, want in zip(params, expected, strict=True):
            np.testing.assert_allclose(got.numpy(), want, 1e-6, 1e-7)
    finally:
        tp.set_num_threads(before)


def test_adam_at_the_edges() -> None:
    """Squares that are zero, tiny, huge or infinite, and gradients that are not numbers."""
    edges = np.array([0.0, 1e-44, 1e-38, 1e-30, 1e-10, 1.0, 1e10, 1e38, np.inf, np.nan] * 7, dtype=np.float32)
    p, m, v = np.ones_like(edges), np.zeros_like(edges), np.abs(edges)
    grad = np.where(np.isnan(edges), edges, 0).astype(np.float32)
    given = [[tp.from_numpy(x.copy())] for x in (p, grad, m, v)]
    tp._fused_adam_(
        *given,
        [],
        [tp.tensor(2.0)],
        lr=0.1,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0.0,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
    )
    moved = given[0][0].numpy()
    assert np.array_equal(np.isnan(moved), np.isnan(edges))
    assert np.all(moved[~np.isnan(edges)] == 1)
    m[:] = 1e-5
    given = [[tp.from_numpy(x.copy())] for x in (p, np.zeros_like(p), m, v)]
    tp._fused_adam_(
        *given,
        [],
        [tp.tensor(2.0)],
        lr=0.1,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0.0,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
    )
    with np.errstate(all="ignore"):
        spread = np.sqrt(v.astype(float) * 0.99) / np.sqrt(1 - 0.99**2) + 1e-8
        want = 1 - 0.1 / (1 - 0.9**2) * 9e-6 / spread
    np.testing.assert_allclose(given[0][0].numpy(), want, 1e-5, 1e-5)
