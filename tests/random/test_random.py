"""Random numbers: the same seed gives the same numbers, whatever the layout, the number of threads or the generator."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import tensorpy as tp

FLOATS = [tp.float16, tp.bfloat16, tp.float32, tp.float64]


def values(t):
    return np.asarray(t.to(tp.float64))


def test_seed_reproduces():
    tp.manual_seed(7)
    first = [values(tp.rand(1000)), values(tp.randn(10)), values(tp.randint(9, (5,))), values(tp.randperm(20))]
    tp.manual_seed(7)
    again = [values(tp.rand(1000)), values(tp.randn(10)), values(tp.randint(9, (5,))), values(tp.randperm(20))]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], values(tp.rand(1000)))


@pytest.mark.parametrize("draw", [tp.rand, tp.randn])
@pytest.mark.parametrize("dtype", FLOATS)
def test_prefix_of_a_longer_draw(draw, dtype):
    """An element depends on its number only."""
    tp.manual_seed(1)
    short = values(draw(1025, dtype=dtype))
    tp.manual_seed(1)
    np.testing.assert_array_equal(short, values(draw(300_001, dtype=dtype))[:1025])


def test_threads_do_not_matter():
    before = tp.get_num_threads()
    drawn = []
    for n in (1, 3):
        tp.set_num_threads(n)
        tp.manual_seed(5)
        drawn.append(values(tp.randn(500_000)))
    tp.set_num_threads(before)
    np.testing.assert_array_equal(*drawn)


def test_layout_does_not_matter():
    tp.manual_seed(2)
    plain = values(tp.empty(3, 4).uniform_())
    tp.manual_seed(2)
    np.testing.assert_array_equal(plain, values(tp.empty(4, 3).t().uniform_()))


@pytest.mark.parametrize("dtype", FLOATS)
def test_moments(dtype):
    tp.manual_seed(11)
    n = 200_000
    u, z = values(tp.rand(n, dtype=dtype)), values(tp.randn(n, dtype=dtype))
    e = values(tp.empty(n, dtype=dtype).exponential_(2.0))
    assert u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.01
    assert abs(z.mean()) < 0.01 and abs(z.var() - 1) < 0.02
    assert abs((z**3).mean()) < 0.05 and abs((z**4).mean() - 3) < 0.15
    assert e.min() > 0 and abs(e.mean() - 0.5) < 0.01 and abs(e.var() - 0.25) < 0.02


def test_normal_is_normal():
    """The empirical distribution against the exact one (Kolmogorov)."""
    tp.manual_seed(3)
    for dtype in (tp.float32, tp.float64):
        z = np.sort(values(tp.randn(100_000, dtype=dtype)))
        exact = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in z[::100]])
        assert np.abs(exact - np.arange(0, z.size, 100) / z.size).max() < 0.006


def test_complex_normal_has_unit_variance():
    tp.manual_seed(4)
    z = np.asarray(tp.randn(100_000, dtype=tp.complex64))
    assert abs((np.abs(z) ** 2).mean() - 1) < 0.02 and abs(z.real.var() - 0.5) < 0.02


def test_integers():
    tp.manual_seed(5)
    x = values(tp.randint(-3, 4, (70_000,)))
    assert set(x) == set(range(-3, 4))
    counts = np.bincount((x + 3).astype(int))
    assert np.abs(counts - 10_000).max() < 500
    assert values(tp.empty(1000, dtype=tp.uint8).random_()).max() > 250
    assert values(tp.empty(1000, dtype=tp.int64).random_()).min() >= 0
    with pytest.raises(RuntimeError, match="from"):
        tp.randint(5, 5, (1,))
    with pytest.raises(RuntimeError, match="out of bounds"):
        tp.empty(3, dtype=tp.int8).random_(0, 1000)


def test_generator_objects():
    g, h = tp.Generator(), tp.Generator()
    g.manual_seed(9)
    h.manual_seed(9)
    state = tp.default_generator.get_state()
    for draw in (
        lambda g: tp.rand(5, generator=g),
        lambda g: tp.randn(5, generator=g),
        lambda g: tp.randint(50, (5,), generator=g),
        lambda g: tp.randint(10, 50, (5,), generator=g),
        lambda g: tp.randperm(9, generator=g),
        lambda g: tp.bernoulli(tp.full((9,), 0.5), generator=g),
        lambda g: tp.multinomial(tp.ones(9), 4, generator=g),
        lambda g: tp.normal(0.0, tp.ones(4), generator=g),
        lambda g: tp.empty(4).exponential_(generator=g),
    ):
        np.testing.assert_array_equal(values(draw(g)), values(draw(h)))
    np.testing.assert_array_equal(np.asarray(state), np.asarray(tp.default_generator.get_state()))


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_generators_pickle_and_copy(device):
    """Seed, position and device come along, and the copy goes on by itself."""
    g = tp.Generator(device).manual_seed(5)
    tp.rand(3, generator=g, device=device)
    twins = [pickle.loads(pickle.dumps(g)), copy.deepcopy(g), copy.copy(g)]
    expected = tp.rand(4, generator=g, device=device).tolist()
    for twin in twins:
        assert (twin.device, twin.initial_seed()) == (g.device, 5)
        assert tp.rand(4, generator=twin, device=device).tolist() == expected


def test_module():
    """tensorpy.random has the default generator's functions, as torch.random."""
    assert tp.random.manual_seed is tp.manual_seed and tp.random.default_generator is tp.default_generator
    tp.manual_seed("7")
    assert tp.random.initial_seed() == 7
    with tp.random.fork_rng():
        inside = tp.rand(3)
    assert tp.rand(3).tolist() == inside.tolist()
    with tp.random.fork_rng(enabled=False):
        inside = tp.rand(3)
    assert tp.rand(3).tolist() != inside.tolist()


def test_randperm_is_a_permutation():
    assert sorted(values(tp.randperm(1000))) == list(range(1000))
    with pytest.raises(RuntimeError, match="non-negative"):
        tp.randperm(-1)


def test_bernoulli_and_dropout():
    tp.manual_seed(6)
    assert abs(values(tp.empty(100_000).bernoulli_(0.3)).mean() - 0.3) < 0.01
    assert values(tp.empty(100).bernoulli_(1.0)).all() and not values(tp.empty(100).bernoulli_(0.0)).any()
    p = tp.linspace(0, 1, 5) if hasattr(tp, "linspace") else tp.full((5,), 0.5)
    assert set(values(tp.bernoulli(p))) <= {0.0, 1.0}
    x = tp.ones(100_000, requires_grad=True)
    y = tp.dropout(x, 0.25, True)
    y.sum().backward()
    np.testing.assert_array_equal(values(x.grad), values(y.detach()))
    assert abs(values(y.detach()).mean() - 1) < 0.02
    assert tp.dropout(x, 0.25, False) is x
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        tp.dropout(x, 1.5, True)


def test_multinomial():
    tp.manual_seed(8)
    weights = tp.tensor([0.0, 1.0, 3.0, 0.0])
    drawn = values(tp.multinomial(weights, 40_000, replacement=True))
    assert set(drawn) == {1.0, 2.0} and abs((drawn == 2).mean() - 0.75) < 0.01
    assert set(values(tp.multinomial(weights, 2))) == {1.0, 2.0}
    assert sorted(values(tp.multinomial(weights, 4))[2:]) == [0.0, 3.0]  # weights of 0 come last, as in PyTorch
    few = tp.tensor([[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    assert {tuple(sorted(row)) for row in tp.multinomial(few, 3).tolist()} == {(0, 1, 2)}
    assert tuple(tp.multinomial(tp.ones(3, 5), 4).shape) == (3, 4)
    for bad, message in ((tp.tensor([-1.0, 2.0]), "inf"), (tp.zeros(2), "sum of probabilities")):
        with pytest.raises(RuntimeError, match=message):
            tp.multinomial(bad, 1)
    with pytest.raises(RuntimeError, match="without replacement"):
        tp.multinomial(weights, 5)


def test_dropouts_of_channels() -> None:
    x = tp.ones(20, 30, 5)
    y = tp.feature_dropout(x, 0.25, True)
    assert bool(((y == 0) | ((y - 1 / 0.75).abs() < 1e-6)).all())
    assert bool((y == y[..., :1]).all())
    assert 0.6 < float((y != 0).float().mean()) < 0.9
    assert tp.equal(tp.feature_dropout(x, 0.5, False), x)
    tp.feature_dropout_(x, 1.0, True)
    assert not x.any()


def test_alpha_dropout_keeps_mean_and_deviation() -> None:
    x = tp.randn(300, 300)
    for function in (tp.alpha_dropout, tp.feature_alpha_dropout):
        y = function(x, 0.3, True)
        assert abs(float(y.mean())) < 0.03 and abs(float(y.std()) - 1) < 0.03
    kept = x.clone()
    tp.alpha_dropout_(kept, 0.3, True)
    assert not tp.equal(kept, x)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        tp.alpha_dropout(x, 1.5, True)


def test_attention_drops_weights() -> None:
    q = tp.randn(1, 2, 4, 8)
    v = tp.ones(1, 2, 6, 8)
    k = tp.randn(1, 2, 6, 8)
    F = tp.nn.functional
    assert F.scaled_dot_product_attention(q, k, v, dropout_p=0.0).allclose(tp.ones(1, 2, 4, 8))
    assert not F.scaled_dot_product_attention(q, k, v, dropout_p=0.5).allclose(tp.ones(1, 2, 4, 8))


def test_rrelu_and_gumbel() -> None:
    x = -tp.ones(1000)
    y = tp.nn.functional.rrelu(x, 0.1, 0.3, training=True)
    assert float(y.min()) >= -0.3 and float(y.max()) <= -0.1 and float(y.std()) > 0.01
    hard = tp.nn.functional.gumbel_softmax(tp.zeros(50, 4), hard=True)
    assert hard.sum(1).allclose(tp.ones(50)) and bool(((hard - hard.round()).abs() < 1e-6).all())


def test_cauchy_geometric_log_normal() -> None:
    n = 200_000
    tp.manual_seed(5)
    cauchy = values(tp.empty(n, dtype=tp.float64).cauchy_(1.0, 2.0))
    assert abs(np.median(cauchy) - 1) < 0.03 and abs(np.quantile(cauchy, 0.75) - 3) < 0.06
    trials = values(tp.empty(n, dtype=tp.int64).geometric_(0.25))
    assert trials.min() == 1 and abs(trials.mean() - 4) < 0.05 and abs((trials == 1).mean() - 0.25) < 0.01
    logs = np.log(values(tp.empty(n).log_normal_(0.5, 0.25)).astype(float))
    assert abs(logs.mean() - 0.5) < 0.01 and abs(logs.std() - 0.25) < 0.01
    x = tp.ones(2)
    for attempt, phrase in (
        (lambda: x.cauchy_(0, -1), "sigma > 0.0"),
        (lambda: x.geometric_(1), r"p to be in \(0, 1\)"),
        (lambda: x.log_normal_(0, 0), "std > 0.0"),
        (lambda: tp.ones(2, dtype=tp.int64).cauchy_(), "dtype must be a floating point"),
    ):
        with pytest.raises(RuntimeError, match=phrase):
            attempt()
    with pytest.raises(NotImplementedError, match=r"geometric_cpu.*Bool"):
        tp.tensor([True]).geometric_(0.5)


def test_draws_on_meta_leave_the_generator_alone() -> None:
    g = tp.Generator()
    before = g.get_state().tolist()
    x = tp.empty(3, device="meta")
    x.uniform_(generator=g), x.normal_(generator=g), x.random_(0, 5, generator=g), x.bernoulli_(0.5, generator=g)
    tp.multinomial(tp.ones(3, device="meta"), 2, generator=g)
    assert g.get_state().tolist() == before


REFUSED = {
    "multinomial of negative weights": lambda g: tp.multinomial(-tp.ones(3), 1, generator=g),
    "multinomial of NaN": lambda g: tp.multinomial(tp.tensor([1.0, float("nan")]), 1, generator=g),
    "multinomial of nothing": lambda g: tp.multinomial(tp.zeros(2, 3), 1, generator=g),
    "multinomial of one empty row": lambda g: tp.multinomial(tp.tensor([[1.0, 1], [0, 0]]), 1, generator=g),
    "multinomial into floats": lambda g: tp.multinomial(tp.ones(3), 1, generator=g, out=tp.empty(1)),
    "bernoulli of no probabilities": lambda g: tp.bernoulli(tp.full((3,), 2.0), generator=g),
    "bernoulli of integers": lambda g: tp.bernoulli(tp.ones(3, dtype=tp.int64), generator=g),
    "bernoulli_": lambda g: tp.ones(3).bernoulli_(2.0, generator=g),
    "normal_": lambda g: tp.ones(3).normal_(0, -1, generator=g),
    "normal": lambda g: tp.normal(tp.ones(3), -tp.ones(3), generator=g),
    "uniform_": lambda g: tp.ones(3).uniform_(1, 0, generator=g),
    "exponential_": lambda g: tp.ones(3).exponential_(-1, generator=g),
    "geometric_": lambda g: tp.ones(3).geometric_(2, generator=g),
    "cauchy_": lambda g: tp.ones(3).cauchy_(0, -1, generator=g),
    "log_normal_": lambda g: tp.ones(3).log_normal_(0, -1, generator=g),
    "random_": lambda g: tp.ones(3).random_(5, 5, generator=g),
    "randint": lambda g: tp.randint(5, 5, (2,), generator=g),
    "randperm": lambda g: tp.randperm(-1, generator=g),
    "overlapping": lambda g: tp.ones(1).expand(3).uniform_(generator=g),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_draw_leaves_the_generator_alone(what):
    g = tp.Generator().manual_seed(3)
    before = g.get_state().tolist()
    with pytest.raises((RuntimeError, ValueError)):
        REFUSED[what](g)
    assert g.get_state().tolist() == before


@pytest.mark.parametrize("bad", (-1.0, math.inf, math.nan))
def test_multinomial_says_what_is_wrong_with_the_weights(bad: float) -> None:
    weights = tp.tensor([1.0, bad, 1.0])
    for count, replacement in ((1, True), (2, False)):
        with pytest.raises(RuntimeError, match="probability tensor contains either"):
            tp.multinomial(weights, count, replacement)
    with pytest.raises(RuntimeError, match="invalid multinomial distribution"):
        tp.multinomial(weights, 2, True)
    with pytest.raises(RuntimeError, match="multinomial expects Long tensor out, got: Double"):
        tp.multinomial(tp.ones(3), 1, out=tp.empty(1, dtype=tp.float64))


@pytest.mark.parametrize(("dtype", "most"), [("float16", 2**11 + 1), ("float32", 2**24 + 1), ("float64", 2**53 + 1)])
def test_randperm_refuses_more_numbers_than_a_float_tells_apart(dtype, most):
    with pytest.raises(RuntimeError, match=rf"n cannot be greater than .* for {'Half' if most < 1e5 else ''}"):
        tp.randperm(most + 1, dtype=getattr(tp, dtype))
    if most < 1e5:
        assert tp.randperm(most, dtype=tp.float16).shape == (most,)
