"""Sweeps over the parameters of networks' operators: every combination of a few values of each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .references_nn import tuple_of
from .table import Make, also

WAYS = (0, 1, 2)  # none, mean, sum

# ---- pooling ----


def _fits(space: tuple[int, ...], kernel: Any, padding: Any, dilation: Any) -> bool:
    n = len(space)
    reach = [(k - 1) * d + 1 for k, d in zip(tuple_of(kernel, n), tuple_of(dilation, n), strict=True)]
    room = [s + 2 * p for s, p in zip(space, tuple_of(padding, n), strict=True)]
    return all(r <= m for r, m in zip(reach, room, strict=True))


def _max_sweep(dims: int, spaces: Any, choices: Any) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        for space, lead in itertools.product(spaces, ((2, 3), (2,), (0, 2))):
            for kernel, stride, padding, dilation, ceil_mode in itertools.product(*choices):
                if _fits(space, kernel, padding, dilation):
                    yield make.distinct(*lead, *space), kernel, stride, padding, dilation, ceil_mode

    return generate


also("max_pool1d")(
    _max_sweep(1, ((9,), (6,), (12,), (7,), (15,)),
               ((2, 3, 4), ((), 1, 2, 3), (0, 1), (1, 2), (False, True)))
)  # fmt: skip
also("max_pool3d")(
    _max_sweep(3, ((4, 5, 3), (3, 3, 4), (5, 4, 4)),
               ((2, (2, 3, 1)), ((), 1, (2, 1, 2), 2), (0, (1, 0, 0)), (1, (1, 1, 2), (2, 1, 1)), (False, True)))
)  # fmt: skip


def _avg_sweep(space: tuple[int, ...]) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        for kernel, stride, padding, ceil_mode, counted in itertools.product(
            (2, 3), ((), 1, 2), (0, 1), (False, True), (False, True)
        ):
            yield make(2, 3, *space), kernel, stride, padding, ceil_mode, counted

    return generate


also("avg_pool1d")(_avg_sweep((9,)))
also("avg_pool3d")(_avg_sweep((4, 5, 3)))


def _adaptive_sweep(spaces: tuple[tuple[int, ...], ...]) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        for space, lead in itertools.product(spaces, ((2, 3), (2,))):
            for wanted in ([1] * len(space), [2] * len(space), list(space), [2, 3, 1][: len(space)],
                           [3, 1, 2][: len(space)], [5] * len(space)):  # fmt: skip
                yield make.distinct(*lead, *space), wanted

    return generate


for _spaces, _n in (((9,), (4,)), 1), (((6, 5), (4, 7)), 2), (((4, 5, 3), (3, 2, 6)), 3):
    also(f"adaptive_max_pool{_n}d", f"adaptive_avg_pool{_n}d")(_adaptive_sweep(_spaces))


@also("im2col")
def im2col(make: Make) -> Iterator[Any]:
    for lead, kernel, dilation, padding, stride in itertools.product(
        ((2, 3), (2,)), ([2, 2], [1, 3], [3, 2]), ([1, 1], [2, 1]), ([0, 0], [1, 2], [1, 1]), ([1, 1], [2, 1], [3, 2])
    ):
        for space in ((6, 5), (7, 4)):
            yield make(*lead, *space), kernel, dilation, padding, stride


# ---- norms ----


@also("native_group_norm")
def native_group_norm(make: Make) -> Iterator[Any]:
    for space, groups, weighted, eps in itertools.product(((5,), (2, 3)), (1, 2, 6), (False, True), (1e-5, 0.5)):
        weight = (make(6), make(6)) if weighted else (None, None)
        yield make(2, 6, *space), *weight, 2, 6, int(np.prod(space)), groups, eps


@also("native_batch_norm")
def native_batch_norm(make: Make) -> Iterator[Any]:
    for space, weighted, training in itertools.product(((), (5,), (2, 3)), (False, True), (False, True)):
        weight = (make(3), make(3)) if weighted else (None, None)
        kept = (None, None) if training else (make(3), make(3, low=0.5, high=2))
        yield make(4, 3, *space), *weight, *kept, training, 0.1, 1e-3


@also("instance_norm")
def instance_norm(make: Make) -> Iterator[Any]:
    for space, weighted, eps in itertools.product(((5,), (2, 3), (2, 2, 2)), (False, True), (1e-5, 0.5)):
        weight = (make(3), make(3)) if weighted else (None, None)
        yield make(2, 3, *space), *weight, None, None, True, 0.1, eps, False


# ---- losses ----


def signs(make: Make, *shape: int) -> Any:
    return make.own(make.rng.randint(0, 2, shape) * 2 - 1)


@also("soft_margin_loss")
def soft_margin_loss(make: Make) -> Iterator[Any]:
    for shape, reduction in itertools.product(((5,), (2, 3, 2), ()), WAYS):
        yield make(shape), signs(make, *shape), reduction


@also("hinge_embedding_loss")
def hinge_embedding_loss(make: Make) -> Iterator[Any]:
    for shape, margin, reduction in itertools.product(((5,), (2, 3, 2)), (1.0, 0.3), WAYS):
        yield make(shape), signs(make, *shape), margin, reduction


@also("margin_ranking_loss")
def margin_ranking_loss(make: Make) -> Iterator[Any]:
    for shape, margin, reduction in itertools.product(((5,), (2, 3), (2, 3, 2), ()), (0.0, 0.5), WAYS):
        yield make(shape), make(shape), signs(make, *shape), margin, reduction


@also("cosine_embedding_loss")
def cosine_embedding_loss(make: Make) -> Iterator[Any]:
    for rows, margin, reduction in itertools.product((1, 5), (0.0, 0.4), WAYS):
        yield make(rows, 4), make(rows, 4), signs(make, rows), margin, reduction


@also("pairwise_distance")
def pairwise_distance(make: Make) -> Iterator[Any]:
    for p, keepdim in itertools.product((1.0, 2.0, 3.5), (False, True)):
        yield make(3, 4), make(3, 4), p, 1e-6, keepdim
        yield make(2, 1, 4), make(3, 4), p, 1e-3, keepdim


@also("triplet_margin_loss")
def triplet_margin_loss(make: Make) -> Iterator[Any]:
    for shape, reduction in itertools.product(((4,), (2, 5)), WAYS):
        yield make(shape), make(shape), make(shape), {"margin": 6.0, "reduction": reduction}


@also("poisson_nll_loss")
def poisson_nll_loss(make: Make) -> Iterator[Any]:
    for shape, log_input, full, eps, reduction in itertools.product(
        ((2, 3), (5,), (2, 1, 4)), (True, False), (True, False), (1e-8, 1e-3), WAYS
    ):
        counts = make.own(make.rng.randint(0, 6, shape))
        yield make(shape, low=0.5, high=3), counts, log_input, full, eps, reduction


# ---- activations, images ----


@also("glu")
def glu(make: Make) -> Iterator[Any]:
    for shape in ((6,), (2, 4), (4, 3, 2), (2, 2, 2, 2), (1, 10), (8, 1), (0, 4), (4, 0)):
        for dim in range(-len(shape), len(shape)):
            if shape[dim] % 2 == 0:
                yield make(shape), dim
                yield make(shape, low=-9, high=9), dim


@also("prelu")
def prelu(make: Make) -> Iterator[Any]:
    for shape in ((), (4,), (3, 4), (2, 3, 2), (2, 3, 1, 2), (0, 3), (5, 1)):
        for weights in {1, shape[1] if len(shape) > 1 else 1}:
            yield make(shape), make(weights)
            yield make(shape), make(weights, low=0, high=1)
    for shape in ((3,), (2, 5)):
        yield make(shape), make(1, low=-2, high=-1)


@also("pixel_shuffle")
def pixel_shuffle(make: Make) -> Iterator[Any]:
    for lead, r in itertools.product(((), (2,), (2, 1)), (1, 2, 3)):
        yield make(*lead, r * r * 2, 2, 3), r


@also("pixel_unshuffle")
def pixel_unshuffle(make: Make) -> Iterator[Any]:
    for lead, r in itertools.product(((), (2,), (2, 1)), (1, 2, 3)):
        yield make(*lead, 2, 2 * r, 3 * r), r


@also("channel_shuffle")
def channel_shuffle(make: Make) -> Iterator[Any]:
    for space, groups in itertools.product(((), (3,), (2, 2)), (1, 2, 3, 6)):
        if space:
            yield make(2, 6, *space), groups


@also("rrelu")
def rrelu(make: Make) -> Iterator[Any]:
    for shape in ((), (5,), (2, 3, 2), (0, 3)):
        yield make(shape), 0.1, 0.3


@also("alpha_dropout", "feature_alpha_dropout", "feature_dropout")
def certain_dropout(make: Make) -> Iterator[Any]:
    for shape, p in itertools.product(((3, 4), (2, 3, 2), (1, 1), (0, 4)), (0.0, 0.5, 1.0)):
        yield make(shape), p, False
