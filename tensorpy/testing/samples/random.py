"""Samples of operators that draw random numbers.

There is nothing to compare a number with: the shared tests check that the same seed gives the same, whatever the layout
or the variant, and tests/random/test_random.py ranges, moments and independence.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from .table import FLOATING, FLOATS, LEAVES, Array, Make, Seed, samples

SIZES = ((2, 3), (), (0, 3), (5,), (2, 1, 3), (3, 3), (40,))
DRAWN = (*LEAVES["sint"], "uint8", *FLOATS)
WHY = {"gradcheck": False, "without_reference": "random"}


# ---- by size ----


@samples("rand", "randn", dtypes=FLOATING, **WHY)
def by_size(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield size, {"dtype": make.given}


@samples("rand.generator", "randn.generator", dtypes=FLOATING, **WHY)
def by_size_with_generator(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield size, {"generator": Seed(3), "dtype": make.given}


@samples("randint", dtypes=DRAWN, **WHY)
def randint(make: Make) -> Iterator[Any]:
    for size, high in itertools.product(SIZES, (1, 9)):
        yield high, size, {"dtype": make.given}


@samples("randint.generator", dtypes=DRAWN, **WHY)
def randint_with_generator(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield 9, size, {"generator": Seed(3), "dtype": make.given}


@samples("randint.low", dtypes=DRAWN, **WHY)
def randint_low(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield 3, 9, size, {"dtype": make.given}
    if make.dtype != "uint8":
        yield -5, 5, (20,), {"dtype": make.given}


@samples("randint.low_generator", dtypes=DRAWN, **WHY)
def randint_low_with_generator(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield 3, 9, size, {"generator": Seed(3), "dtype": make.given}


@samples("randperm", dtypes=DRAWN, **WHY)
def randperm(make: Make) -> Iterator[Any]:
    for n in (0, 1, 5, 100):
        yield n, {"dtype": make.given}


@samples("randperm.generator", dtypes=DRAWN, **WHY)
def randperm_with_generator(make: Make) -> Iterator[Any]:
    for n in (0, 1, 5, 100):
        yield n, {"generator": Seed(3), "dtype": make.given}


@samples("normal.float_float", dtypes=FLOATING, **WHY)
def normal_numbers(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield 1.0, 2.0, size, {"dtype": make.given}
    yield 0.0, 0.0, (3,), {"generator": Seed(3), "dtype": make.given}


# ---- in the likeness ----


@samples("rand_like", "randn_like", dtypes=FLOATING, **WHY)
def like(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield (make(size),)
    yield make(2, 3), {"dtype": make.given}


@samples("rand_like.generator", "randn_like.generator", dtypes=FLOATING, **WHY)
def like_with_generator(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), {"generator": Seed(3)}


@samples("randint_like", dtypes=DRAWN, **WHY)
def randint_like(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 7
        yield make(size), 2, {"dtype": make.given}


@samples("randint_like.generator", dtypes=DRAWN, **WHY)
def randint_like_with_generator(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 7, {"generator": Seed(3)}


@samples("randint_like.low_dtype", dtypes=DRAWN, **WHY)
def randint_like_low(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 3, 7


@samples("randint_like.low_generator_dtype", dtypes=DRAWN, **WHY)
def randint_like_low_with_generator(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 3, 7, {"generator": Seed(3)}


@samples("randint_like.Tensor", dtypes=DRAWN, needs_values=True, **WHY)
def randint_like_tensor(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), make.array(7)


@samples("randint_like.Tensor_generator", dtypes=DRAWN, needs_values=True, **WHY)
def randint_like_tensor_with_generator(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), make.array(7), {"generator": Seed(3)}


# ---- distributions ----


@samples("uniform", dtypes=FLOATS, **WHY)
@samples("normal_", "normal_functional", dtypes=FLOATING, **WHY)
def two_numbers(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 0.5, 2.0
    yield (make(4),)
    yield make(4), {"generator": Seed(3)}


@samples("exponential", dtypes=FLOATS, **WHY)
def exponential(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield (make(size),)
    yield make(4), 2.0
    yield make(4), 0.5, {"generator": Seed(3)}


@samples("random", dtypes=DRAWN, **WHY)
def whole(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield (make(size),)
    yield make(4), {"generator": Seed(3)}


@samples("random.from", dtypes=DRAWN, **WHY)
def whole_from(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 3, 9
    yield make(4), 3, 9, {"generator": Seed(3)}


@samples("random.to", dtypes=DRAWN, **WHY)
def whole_to(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 9


def chances(make: Make, *size: int) -> Array:
    return make(*size, low=0.05, high=0.95)


@samples("bernoulli", dtypes=FLOATS, **WHY)
def bernoulli(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield (chances(make, *size),)
    yield chances(make, 4), {"generator": Seed(3)}
    yield (make(3, low=0, high=0),)


@samples("bernoulli.p", dtypes=DRAWN, **WHY)
def bernoulli_p(make: Make) -> Iterator[Any]:
    for size, p in zip(SIZES, (0.5, 0.2, 0.3, 0.0, 1.0, 0.9, 0.5), strict=True):
        yield make(size), p


@samples("bernoulli.Tensor", dtypes=FLOATS, **WHY)
def bernoulli_tensor(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), chances(make, *size)
    yield make(2, 3), chances(make, 3)


@samples("normal.Tensor_float", dtypes=FLOATS, **WHY)
def normal_mean(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 2.0
    yield (make(4),)


@samples("normal.float_Tensor", dtypes=FLOATS, **WHY)
def normal_spread(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield 1.5, make(size, low=0.1)


@samples("normal.Tensor_Tensor", dtypes=FLOATS, **WHY)
def normal_both(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), make(size, low=0.1)
    yield make(2, 3), make(3, low=0.1)


@samples("multinomial", dtypes=FLOATS, **WHY)
def multinomial(make: Make) -> Iterator[Any]:
    for size in ((5,), (3, 5)):
        weights = make(*size, low=0.1)
        yield weights, 1
        yield weights, 5
        yield weights, 3, False
        yield weights, 9, True
        yield weights, 2, {"generator": Seed(3)}


@samples("cauchy", "log_normal", dtypes=FLOATS, **WHY)
def skewed(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 0.5, 0.25
    yield (make(4),)
    yield make(4), {"generator": Seed(3)}


@samples("geometric", dtypes=DRAWN, **WHY)
def geometric(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield make(size), 0.25
    yield make(4), 0.9, {"generator": Seed(3)}


@samples("poisson", "_standard_gamma", dtypes=FLOATS, **WHY)
def of_rates(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield (make(size, low=0.1, high=30),)
    yield make(4, low=0.1, high=30), {"generator": Seed(3)}


@samples("_sample_dirichlet", dtypes=FLOATS, **WHY)
def of_weights(make: Make) -> Iterator[Any]:
    for size in SIZES:
        yield (make(size, low=0.1, high=5),)
    yield make(2, 4, low=0.1, high=5), {"generator": Seed(3)}


@samples("binomial", dtypes=FLOATS, **WHY)
def of_trials(make: Make) -> Iterator[Any]:
    for size in SIZES:
        counts = make.own(make.rng.randint(0, 60, size))
        yield counts, make(size, low=0.05, high=0.95)
    yield make.own([[3], [40]]), make(4, low=0.05, high=0.95)
    yield make.own([3, 40]), make(2, low=0.05, high=0.95), {"generator": Seed(3)}


# ---- dropout: differentiable, the seed fixes what is dropped ----


@samples("dropout", "dropout_", dtypes=FLOATING, without_reference="random")
def dropout(make: Make) -> Iterator[Any]:
    for size, p, train in itertools.product(SIZES[:4], (0.0, 0.5, 1.0), (True, False)):
        yield make(size), p, train


@samples("native_dropout", dtypes=FLOATS, without_reference="random")
def native_dropout(make: Make) -> Iterator[Any]:
    for size, p, train in itertools.product(SIZES[:4], (0.0, 0.5, 1.0), (True, False, None)):
        yield make(size), p, train


@samples("alpha_dropout_", "feature_alpha_dropout_", "feature_dropout_", dtypes=FLOATS, **WHY)
def other_dropouts(make: Make) -> Iterator[Any]:
    for size, p, train in itertools.product(((4, 5, 2), (2, 6)), (0.0, 0.5), (True, False)):
        yield make(size), p, train
