"""The CPU's serial generator: PyTorch's numbers for the same seed, which programs get that run as PyTorch's."""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import _C

SEEDS = (0, 1, 42, 2**31 + 5, 2**40 + 3)


@pytest.fixture(autouse=True)
def serial() -> Iterator[None]:
    _C._draw_serially(True)
    yield
    _C._draw_serially(False)


def test_known_numbers() -> None:
    """As every PyTorch gives them."""
    tp.manual_seed(0)
    assert [round(x, 4) for x in tp.rand(3).tolist()] == [0.4963, 0.7682, 0.0885]
    tp.manual_seed(0)
    assert [round(x, 4) for x in tp.randn(3).tolist()] == [1.5410, -0.2934, -2.1788]
    tp.manual_seed(42)
    assert tp.randint(0, 10, (5,)).tolist() == [2, 7, 6, 4, 6]
    tp.manual_seed(0)
    assert tp.randperm(5).tolist() == [4, 0, 1, 3, 2]


DRAWS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda t: t.rand(7),
    "rand double": lambda t: t.rand(7, dtype=t.float64),
    "rand half": lambda t: t.rand(7, dtype=t.float16),
    "rand bfloat16": lambda t: t.rand(7, dtype=t.bfloat16),
    "uniform": lambda t: t.empty(3, 4).uniform_(-2, 5),
    "uniform of a turned one": lambda t: t.empty(3, 4).t().uniform_(),
    "uniform of every other": lambda t: t.zeros(3, 8)[:, ::2].uniform_(),
    "rand complex": lambda t: t.rand(4, dtype=t.complex64),
    "randn of few": lambda t: t.randn(15),
    "randn of pairs": lambda t: t.stack([t.randn(()), t.randn(()), t.rand(()), t.randn(())]),
    "randn of 16": lambda t: t.randn(16),
    "randn of more": lambda t: t.randn(5, 7),
    "randn of many": lambda t: t.randn(1000),
    "randn double": lambda t: t.randn(37, dtype=t.float64),
    "randn complex": lambda t: t.randn(20, dtype=t.complex128),
    "randn of a turned one": lambda t: t.empty(6, 5).t().normal_(),
    "normal": lambda t: t.empty(40).normal_(3, 0.5),
    "normal of tensors": lambda t: t.normal(t.arange(20.0), t.full((20,), 0.1)),
    "randint": lambda t: t.randint(-3, 100, (9,)),
    "randint of floats": lambda t: t.randint(0, 5, (9,), dtype=t.float32),
    "randint far": lambda t: t.randint(0, 2**40, (9,)),
    "randint near the border": lambda t: t.stack([t.randint(0, 2**28 - 1, (3,)), t.randint(0, 2**28, (3,))]),
    **{
        f"random {name}": lambda t, name=name: t.empty(9, dtype=getattr(t, name)).random_()
        for name in ("int64", "int32", "int16", "int8", "uint8", "bool", "float32", "float64", "float16")
    },
    "random from": lambda t: t.empty(9, dtype=t.int64).random_(-(2**63), None),
    "bernoulli": lambda t: t.empty(50).bernoulli_(0.3),
    "bernoulli of a tensor": lambda t: t.bernoulli(t.linspace(0, 1, 30)),
    "bernoulli of doubles": lambda t: t.bernoulli(t.linspace(0, 1, 30, dtype=t.float64)),
    "exponential": lambda t: t.empty(9).exponential_(2.0),
    "cauchy": lambda t: t.empty(9, dtype=t.float64).cauchy_(1, 2),
    "log_normal": lambda t: t.empty(20).log_normal_(0.5, 0.25),
    "geometric": lambda t: t.empty(20).geometric_(0.2),
    "randperm": lambda t: t.randperm(100),
    "multinomial": lambda t: t.multinomial(t.tensor([[0.1, 0.4, 0.5], [3.0, 0, 1]]), 20, replacement=True),
    "multinomial of one": lambda t: t.multinomial(t.tensor([0.1, 0.4, 0.5]), 1, replacement=True),
    "multinomial without": lambda t: t.multinomial(t.tensor([[0.1, 0.4, 0.5, 0.2], [3.0, 1, 1, 2]]), 3),
    "poisson": lambda t: t.poisson(t.tensor([0.0, 0.5, 3.0, 9.9, 10.0, 50.0, 1e4])),
    "gamma": lambda t: t._standard_gamma(t.tensor([0.1, 0.5, 1.0, 3.0, 50.0], dtype=t.float64)),
    "dirichlet": lambda t: t._sample_dirichlet(t.tensor([[0.5, 1.0, 3.0]], dtype=t.float64)),
    "dropout": lambda t: t.nn.functional.dropout(t.ones(40), 0.4),
    "alpha_dropout": lambda t: t.nn.functional.alpha_dropout(t.ones(40), 0.4, training=True),
    "dropout2d": lambda t: t.nn.functional.dropout2d(t.ones(2, 9, 2, 2), 0.4),
    "gumbel_softmax": lambda t: t.nn.functional.gumbel_softmax(t.zeros(3, 4)),
    "linear": lambda t: t.nn.Linear(5, 3)(t.ones(1, 5)),
    "conv": lambda t: t.nn.Conv2d(2, 3, 3)(t.ones(1, 2, 3, 3)),
    "embedding": lambda t: t.nn.Embedding(5, 4).weight,
    "lstm": lambda t: t.nn.LSTM(3, 4, 2)(t.ones(2, 1, 3))[0],
    "attention": lambda t: t.nn.MultiheadAttention(8, 2).in_proj_weight,
    "transformer": lambda t: t.nn.TransformerEncoderLayer(8, 2, 16)(t.ones(3, 1, 8)),
    **{
        f"init.{name}": lambda t, name=name: getattr(t.nn.init, name)(t.empty(6, 5))
        for name in ("xavier_normal_", "kaiming_uniform_", "orthogonal_", "trunc_normal_")
    },
    "trunc_normal of little": lambda t: t.nn.init.trunc_normal_(t.empty(50), 0.0, 1.0, 1.5, 4.0),
    "random_split": lambda t: t.tensor([i for part in t.utils.data.random_split(range(9), [4, 5]) for i in part]),
    "loader": lambda t: t.cat(list(t.utils.data.DataLoader(t.arange(20), batch_size=3, shuffle=True))),
    **{
        f"distributions.{name}": lambda t, name=name, arguments=arguments: getattr(t.distributions, name)(
            *(t.tensor(a) for a in arguments)
        ).sample((9,))
        for name, arguments in {
            "Normal": ([0.0, 1.0], [1.0, 2.0]),
            "Uniform": ([0.0, 1.0], [1.0, 2.0]),
            "Categorical": ([0.1, 0.2, 0.7],),
            "Bernoulli": ([0.1, 0.8],),
            "Exponential": ([0.5, 2.0],),
            "Gamma": ([0.5, 2.0], [1.0, 3.0]),
            "Beta": ([0.5, 2.0], [1.0, 3.0]),
            "Laplace": ([0.5, 2.0], [1.0, 3.0]),
            "Gumbel": ([0.5, 2.0], [1.0, 3.0]),
            "Poisson": ([0.5, 20.0],),
            "Dirichlet": ([0.5, 2.0],),
            "LogNormal": ([0.0, 1.0], [1.0, 2.0]),
            "StudentT": ([3.0, 5.0],),
        }.items()
    },
}


SAMPLERS = """
    Normal(t.zeros(5), t.ones(5))
    LogNormal(t.zeros(5), t.ones(5))
    Gamma(t.full((5,), 2.0), 3.0)
    Beta(t.full((5,), 2.0), 3.0)
    Dirichlet(t.tensor([1.0, 2.0, 3.0]))
    StudentT(t.full((5,), 3.0))
    Cauchy(t.zeros(5), 1.0)
    Laplace(t.zeros(5), 2.0)
    Gumbel(t.zeros(5), 1.0)
    Weibull(t.ones(5), 2.0)
    Pareto(t.ones(5), 3.0)
    HalfNormal(t.ones(5))
    HalfCauchy(t.ones(5))
    Uniform(t.zeros(5), 2.0)
    Exponential(t.full((5,), 2.0))
    Chi2(t.full((5,), 3.0))
    FisherSnedecor(t.full((5,), 3.0), 4.0)
    Kumaraswamy(t.full((5,), 2.0), 3.0)
    Geometric(t.full((5,), 0.3))
    Poisson(t.full((5,), 3.0))
    NegativeBinomial(3.0, t.full((5,), 0.4))
    ContinuousBernoulli(t.full((5,), 0.3))
    Bernoulli(t.full((5,), 0.3))
    RelaxedBernoulli(t.tensor(0.5), t.full((5,), 0.4))
    RelaxedOneHotCategorical(t.tensor(0.5), t.tensor([0.4, 0.6]))
    OneHotCategorical(t.tensor([0.4, 0.6]))
    Multinomial(4, t.tensor([0.4, 0.6]))
    Categorical(t.tensor([0.4, 0.6]))
    LogisticNormal(t.zeros(2), t.ones(2))
    LowRankMultivariateNormal(t.zeros(2), t.ones(2, 1), t.ones(2))
    MultivariateNormal(t.zeros(2), t.eye(2))
    InverseGamma(t.full((5,), 2.0), 3.0)
    GeneralizedPareto(t.zeros(5), 1.0, 0.1)
"""


def epoch(t: Any, **words: Any) -> Any:
    """Two orders by one generator, and what it gives then."""
    g = t.Generator().manual_seed(t.initial_seed() & 1023)
    sampler = t.utils.data.RandomSampler(range(6), generator=g, **words)
    return t.cat([t.tensor([*sampler, *sampler]), t.rand(2, generator=g)])


DRAWS |= {d: lambda t, d=d: eval(f"t.distributions.{d}.sample((4,))") for d in SAMPLERS.strip().split("\n    ")}
DRAWS |= {
    "RandomSampler": epoch,
    "RandomSampler of more": lambda t: epoch(t, num_samples=12),
    "RandomSampler of other": lambda t: epoch(t, num_samples=8),
    "RandomSampler with replacement": lambda t: epoch(t, replacement=True, num_samples=64),
}


def state_of(library: Any) -> bytes:
    return library.get_rng_state().numpy().tobytes()


@pytest.mark.parametrize("name", DRAWS)
def test_as_pytorch(name: str) -> None:
    """The numbers to rounding, and the state afterwards to the last byte."""
    torch = pytest.importorskip("torch")
    for seed in SEEDS:
        found = []
        for library in (tp, torch):
            library.manual_seed(seed)
            drawn = DRAWS[name](library).detach()
            wide = library.complex128 if drawn.is_complex() else library.float64
            found.append((drawn.to(wide).numpy(), state_of(library)))
        (ours, state), (theirs, expected) = found
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6, err_msg=f"seed {seed}")
        assert state == expected, f"seed {seed}"


def test_generators() -> None:
    """One of a program's own, its copies and states."""
    torch = pytest.importorskip("torch")
    for library in (tp, torch):
        g = library.Generator().manual_seed(5)
        first = library.randn(3, generator=g)
        other = library.Generator()
        other.set_state(g.get_state())
        copy = g.clone_state()
        drawn = [library.randn(3, generator=x).tolist() for x in (g, other, copy)]
        assert drawn[0] == drawn[1] == drawn[2] and g.initial_seed() == 5
        if library is tp:
            ours, again = first, pickle.loads(pickle.dumps(other))
            assert library.randn(3, generator=again).equal(library.randn(3, generator=other))
    np.testing.assert_allclose(ours.numpy(), first.numpy(), rtol=1e-6)


def test_a_state_from_elsewhere() -> None:
    """PyTorch's goes on here; bytes that are none are refused, and none reads outside of the words."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(9)
    torch.randn(5)
    tp.set_rng_state(tp.from_numpy(torch.get_rng_state().numpy().copy()))
    np.testing.assert_allclose(tp.randn(9).numpy(), torch.randn(9).numpy(), rtol=1e-5)
    sound = bytearray(state_of(tp))
    for place, kind, value in ((8, ctypes.c_int32, 0), (8, ctypes.c_int32, 700), (16, ctypes.c_uint64, 625)):
        bad = bytearray(sound)
        bad[place : place + ctypes.sizeof(kind)] = bytes(kind(value))
        with pytest.raises(RuntimeError, match="state is invalid"):
            tp.set_rng_state(tp.tensor(list(bad), dtype=tp.uint8))
    rng = np.random.default_rng(0)
    for _ in range(200):
        wild = rng.integers(0, 256, 5056, np.uint8)
        wild[8:24] = np.frombuffer(bytes(sound[8:24]), np.uint8)
        tp.set_rng_state(tp.from_numpy(wild))
        tp.rand(700)
    with pytest.raises(RuntimeError, match="expected 5056 bytes, got 17"):
        tp.set_rng_state(tp.zeros(17, dtype=tp.uint8))
    tp.manual_seed(0)


def test_only_the_programs_of_pytorch() -> None:
    """The numbers of tensorpy's own programs are the same on every device."""
    _C._draw_serially(False)
    tp.manual_seed(0)
    assert len(tp.get_rng_state()) == 16
    assert [round(x, 4) for x in tp.rand(3).tolist()] != [0.4963, 0.7682, 0.0885]


def test_run() -> None:
    program = "import torch; torch.manual_seed(0); print(torch.rand(3))"
    command = [sys.executable, "-m", "tensorpy.run", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip() == "tensor([0.4963, 0.7682, 0.0885])", done.stderr


# ---- in compiled functions ----

LARGE = 5000  # a draw of so many waits, and one of three does not


def _states(x: tp.Tensor) -> list[tp.Tensor]:
    first, state, second = tp.rand(LARGE), tp.get_rng_state(), tp.rand(3)
    return [first, state, second, tp.default_generator.clone_state().get_state()]


def _seeds(x: tp.Tensor) -> list[tp.Tensor]:
    first = tp.rand(LARGE)
    tp.manual_seed(7)
    return [first, tp.rand(LARGE), tp.rand(3)]


def _sets(x: tp.Tensor) -> list[tp.Tensor]:
    state, first = tp.get_rng_state(), tp.rand(LARGE)
    tp.set_rng_state(state)
    return [first, tp.rand(LARGE)]


def _forks(x: tp.Tensor) -> list[tp.Tensor]:
    with tp.random.fork_rng(devices=[]):
        first = tp.rand(LARGE)
    return [first, tp.rand(3)]


def _draws_of_two_sizes(x: tp.Tensor) -> list[tp.Tensor]:
    made = [tp.rand(LARGE), tp.randperm(9), tp.rand(LARGE), tp.multinomial(tp.ones(9), 3), tp.randint(5, (3,))]
    made += [tp.dropout(x, 0.5, True), tp.dropout(x[:3], 0.5, True), tp.poisson(x), tp.bernoulli(x[:3])]
    made += [tp.randn(3), tp.randn(LARGE)]
    return made


def _generators(x: tp.Tensor) -> list[tp.Tensor]:
    own = tp.Generator()  # its state is made where it is drawn from first
    made = [tp.rand(LARGE, generator=own), tp.rand(3, generator=own), own.get_state(), tp.rand(LARGE, generator=own)]
    return [*made, own.manual_seed(4).get_state(), tp.rand(LARGE, generator=own)]


@pytest.mark.parametrize("function", [_states, _seeds, _sets, _forks, _draws_of_two_sizes, _generators])
@pytest.mark.parametrize(
    "how", [{}, {"fullgraph": True}, {"backend": "aot_eager"}, {"mode": "reduce-overhead"}], ids=str
)
def test_compiled_functions_draw_in_their_order(function: Any, how: Any) -> None:
    x = tp.full((LARGE,), 0.5)
    tp.manual_seed(1)
    expected = function(x)
    compiled = tp.compile(function, **how) if "mode" in how else tp.compile(function, options={"smallest": 1000}, **how)
    for _ in range(5):
        tp.manual_seed(1)
        assert all(a.equal(b) for a, b in zip(compiled(x), expected, strict=True))
