"""Samples of what reads images at places, tables by bags, and labels along time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import FLOATS, LOOSE, Array, Make, samples

ROUGH = {**LOOSE, "float16": (1e-2, 2e-2), "bfloat16": (8e-2, 1e-1), "float32": (1e-4, 1e-5)}
ONCE: dict[str, Any] = {"gradgradcheck": False, "tolerances": ROUGH}  # the gradient has none, as in PyTorch


# ---- grids ----


def _mirrored(x: Any, low: float, span: float) -> Any:
    """By turning back at both ends, one after the other."""
    if span == 0:
        return np.zeros_like(x)
    x = (x - low) % (2 * span)
    return np.where(x > span, 2 * span - x, x) + low


def _brought(x: Any, size: int, border: int, corners: bool) -> Any:
    if border == 2:
        x = _mirrored(x, 0 if corners else -0.5, size - 1 if corners else size)
    return x if border == 0 else np.clip(x, 0, size - 1)


def _keys(x: Any) -> Any:
    x, a = np.abs(x), -0.75
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    return np.where(x <= 1, near, np.where(x < 2, a * (x**3 - 5 * x**2 + 8 * x - 4), 0))


def grid_sampler(x: Any, grid: Any, mode: int, border: int, corners: bool) -> Any:
    """Each element of the input times a weight that falls with its distance from the place."""
    result = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))
    dims, sizes = x.ndim - 2, x.shape[2:]
    lines = []
    for d, n in enumerate(sizes):
        c = grid[..., dims - 1 - d]
        at = (c + 1) / 2 * (n - 1) if corners else ((c + 1) * n - 1) / 2
        at = at if mode == 2 else _brought(at, n, border, corners)
        first = np.rint(at) if mode == 1 else np.floor(at)
        taps = {0: (0, 1), 1: (0,), 2: (-1, 0, 1, 2)}[mode]
        line = []
        for k in taps:
            there = first + k
            weight = np.ones_like(at) if mode == 1 else (1 - np.abs(at - there) if mode == 0 else _keys(at - there))
            there = _brought(there, n, border, corners) if mode == 2 else there
            inside = (there >= 0) & (there < n)
            line.append((np.where(inside, there, 0).astype(int), weight * inside))
        lines.append(line)
    for taps_at in itertools.product(*lines):
        weight = np.prod([w for _, w in taps_at], axis=0)
        for n in range(x.shape[0]):
            result[n] += x[n][(slice(None), *(i[n] for i, _ in taps_at))] * weight[n]
    return result


def _grids(make: Make, dims: int, modes: tuple[int, ...]) -> Iterator[Any]:
    for mode, border, corners in itertools.product(modes, (0, 1, 2), (False, True)):
        for sizes in ((4, 3, 2), (2, 1, 3)):
            # no place close to where a weight has a corner
            steps = make.rng.randint(-9, 10, (2, 3, *(2,) * (dims - 1), dims)) * 0.1530 + 0.0171
            yield make(2, 3, *sizes[:dims]), make.own(steps), mode, border, corners


@samples("grid_sampler_2d", dtypes=FLOATS, reference=grid_sampler, **ONCE)
def grids_2d(make: Make) -> Iterator[Any]:
    yield from _grids(make, 2, (0, 1, 2) if make.dtype in ("float32", "float64") else (0,))


@samples("grid_sampler_3d", dtypes=FLOATS, reference=grid_sampler, **ONCE)
def grids_3d(make: Make) -> Iterator[Any]:
    yield from _grids(make, 3, (0, 1) if make.dtype in ("float32", "float64") else (0,))


@samples("grid_sampler", dtypes=FLOATS[2:], reference=grid_sampler, **ONCE)
def grids(make: Make) -> Iterator[Any]:
    yield from itertools.islice(_grids(make, 2, (0, 2)), 6)
    yield from itertools.islice(_grids(make, 3, (0,)), 6)


def affine_grid(theta: Any, size: Any, corners: bool) -> Any:
    axes = [np.linspace(-1, 1, n) * (1 if corners else (n - 1) / n) if n > 1 else np.zeros(1) for n in size[2:]]
    places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(size[2:])], -1)
    return np.einsum("...k,njk->n...j", places, theta)


@samples("affine_grid_generator", dtypes=FLOATS[2:], reference=affine_grid, tolerances=ROUGH)
def affine_grids(make: Make) -> Iterator[Any]:
    for size, corners in itertools.product(((2, 3, 4, 5), (1, 1, 1, 3), (2, 1, 2, 3, 4)), (False, True)):
        yield make(size[0], len(size) - 2, len(size) - 1), list(size), corners


# ---- bags of rows ----


def embedding_bag(
    weight: Any, indices: Any, offsets: Any, by_frequency: bool = False, mode: int = 0, sparse: bool = False,
    each: Any = None, ends: bool = False, padding: int | None = None,
) -> Any:  # fmt: skip
    bounds = [*offsets] if ends else [*offsets, indices.size]
    flat = indices.reshape(-1)
    padding = padding % weight.shape[0] if padding is not None else -1
    bags, size, at = np.zeros(flat.shape, int), [], []
    result = []
    for i, (begin, end) in enumerate(itertools.pairwise(bounds)):
        bags[begin:end] = i
        places = [j for j in range(begin, end) if flat[j] != padding]
        rows = weight[flat[places]] * (1 if each is None else each[places][:, None])
        none = np.zeros(weight.shape[1])
        how = {0: lambda r: r.sum(0), 1: lambda r: r.mean(0), 2: lambda r: r.max(0)}[mode]
        result.append(how(rows) if places else none)
        size.append(len(places))
        at.append(flat[places][rows.argmax(0)] if places else none.astype(int))
    return np.array(result), bags, np.array(size), np.array(at) if mode == 2 else np.zeros(len(size), int)


def _bags(make: Make, padding: bool) -> Iterator[Any]:
    for mode, ends in itertools.product((0, 1, 2), (False, True)):
        offsets = make.array([0, 2, 2, 7, 9] if ends else [0, 2, 2, 7])
        each = make(9) if mode == 0 and ends else None
        rest = (2,) if padding else ()
        yield make.distinct(5, 3), make.index(5, 9), offsets, False, mode, False, each, ends, *rest
    if not padding:
        yield make(5, 3), make.index(5, 4), make.array([0, 1])


BAGS: dict[str, Any] = {"dtypes": FLOATS, "reference": embedding_bag, **ONCE}


@samples("embedding_bag", **BAGS)
def bags(make: Make) -> Iterator[Any]:
    yield from _bags(make, False)


@samples("embedding_bag.padding_idx", **BAGS)
def bags_with_padding(make: Make) -> Iterator[Any]:
    yield from _bags(make, True)


# ---- connectionist temporal classification ----


def ctc_loss(
    log_probs: Any, targets: Any, times: Any, lengths: Any, blank: int = 0, reduction: int = 1, finite: bool = False
) -> Any:
    """The probability of the labels by adding up all paths one time after the other."""
    losses, begin = [], 0
    for n, (time, length) in enumerate(zip(times, lengths, strict=True)):
        labels = targets[n][:length] if targets.ndim == 2 else targets[begin : begin + length]
        begin += length
        chain = [blank]
        for label in labels:
            chain += [int(label), blank]
        paths = {-1: 1.0}
        for t in range(time):
            new: dict[int, float] = {}
            for state, p in paths.items():
                steps = [state, state + 1, state + 2] if state >= 0 else [0, 1]
                for to in steps:
                    if to >= len(chain) or (state >= 0 and to == state + 2 and chain[to] in (blank, chain[state])):
                        continue
                    new[to] = new.get(to, 0.0) + p * np.exp(log_probs[t, n, chain[to]])
            paths = new
        total = sum(p for s, p in paths.items() if s >= len(chain) - 2 and (s >= 0 or not len(labels)))
        losses.append(-np.log(total) if total > 0 else 0.0 if finite else np.inf)
    every = np.array(losses)
    if reduction == 1:
        return np.mean(every / np.maximum(np.array(lengths), 1))
    return every.sum() if reduction == 2 else every


def _scores(make: Make, *shape: int) -> Array:
    x = make(*shape).values.astype(np.float64)
    return make.own(x - np.log(np.exp(x).sum(-1, keepdims=True)))


# The gradient is that of the scores before a log_softmax: tests/operators/test_loss.py looks at it.
CTC: dict[str, Any] = {
    "dtypes": FLOATS[2:], "reference": ctc_loss, "gradcheck": False, "tolerances": {"float32": (1e-4, 1e-4)},
}  # fmt: skip


@samples("ctc_loss.IntList", **CTC)
def ctc_with_lists(make: Make) -> Iterator[Any]:
    for rows, blank, reduction in itertools.product((True, False), (0, 2), (0, 1, 2)):
        labels = [n for n in range(4) if n != blank]
        targets = make.rng.choice(labels, (3, 3) if rows else (6,))
        yield _scores(make, 6, 3, 4), make.array(targets), [6, 5, 4], [2, 3, 1], blank, reduction
    yield _scores(make, 2, 1, 4), make.array([[1, 1, 1]]), [2], [3], 0, 2, True
    yield _scores(make, 2, 2, 4), make.array([[1], [2]]), [2, 1], [0, 1]


@samples("ctc_loss.Tensor", needs_values=True, **CTC)
def ctc_with_tensors(make: Make) -> Iterator[Any]:
    for reduction in (0, 1, 2):
        targets = make.array(make.rng.randint(1, 4, (3, 3)))
        yield _scores(make, 6, 3, 4), targets, make.array([6, 5, 6]), make.array([2, 3, 0]), 0, reduction
