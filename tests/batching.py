"""An operator of the table under vmap against a loop in Python: what tests/autograd/test_vmap.py asks of each.

A batch is made of one sample: the elements of each batched argument in other orders, so that they stay in range. Where
the operator refuses such an argument the batch repeats the sample as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorpy as tp
from tensorpy.testing.harness import arguments, check_same, function_of, seed
from tensorpy.testing.samples import OpInfo, OpSample
from tensorpy.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

SIZE = 3


def others(t: tp.Tensor) -> list[tp.Tensor]:
    """The sample in SIZE variants."""
    if t.numel() == 1 and t.is_floating_point():
        return [t * (1 - 0.125 * b) for b in range(SIZE)]
    return [t.flatten().roll(b).reshape(t.shape) for b in range(SIZE)]


def same(t: tp.Tensor) -> list[tp.Tensor]:
    return [t.clone() for _ in range(SIZE)]


class Call:
    """The operator on one sample, with some of its tensors batched."""

    def __init__(self, info: OpInfo, sample: OpSample, device: str) -> None:
        self.info, self.sample, self.device = info, sample, device
        self.function = function_of(info)
        self.leaves, self.spec = tree_flatten(arguments(sample, device, info))
        self.at = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, tp.Tensor)]

    def run(self, leaves: list[Any]) -> Any:
        args, kwargs = tree_unflatten(leaves, self.spec)
        if self.info.random:
            seed(kwargs)
        return self.function(*args, **kwargs)

    def replaced(self, places: tuple[int, ...], values: tuple[tp.Tensor, ...]) -> list[Any]:
        leaves = [v.clone() if isinstance(v, tp.Tensor) else v for v in self.leaves]
        for i, value in zip(places, values, strict=True):
            leaves[i] = value
        return leaves

    def choices(self) -> Iterator[tuple[int, ...]]:
        """Each tensor alone, and all of them."""
        yield from ((i,) for i in self.at)
        if len(self.at) > 1:
            yield tuple(self.at)

    def loop(self, places: tuple[int, ...], batch: list[list[tp.Tensor]]) -> list[Any]:
        """One result a sample."""
        return [self.run(self.replaced(places, tuple(t[b].clone() for t in batch))) for b in range(SIZE)]

    def vmapped(self, places: tuple[int, ...], batch: list[list[tp.Tensor]]) -> tuple[list[Any], TreeSpec]:
        """The leaves of what comes out; numbers as they are."""
        kept: list[Any] = []

        def one(*values: tp.Tensor) -> list[tp.Tensor]:
            leaves, spec = tree_flatten(self.run(self.replaced(places, values)))
            kept.append((leaves, spec))
            return [leaf for leaf in leaves if isinstance(leaf, tp.Tensor)]

        stacked = [tp.stack(t).movedim(0, -1) if t[0].ndim % 2 else tp.stack(t) for t in batch]
        dims = tuple(-1 if t[0].ndim % 2 else 0 for t in batch)
        found = iter(tp.vmap(one, in_dims=dims, randomness="same")(*stacked))
        leaves, spec = kept[0]
        return [next(found) if isinstance(leaf, tp.Tensor) else leaf for leaf in leaves], spec


def expected(call: Call, places: tuple[int, ...]) -> tuple[list[list[tp.Tensor]], list[Any]] | None:
    """A batch that the operator takes, and what it gives for each sample of it; None if it takes none."""
    makers: tuple[Callable[[tp.Tensor], list[tp.Tensor]], ...] = (others, same)
    for make in makers:
        batch = [make(call.leaves[i]) for i in places]
        try:
            return batch, call.loop(places, batch)
        except (RuntimeError, IndexError, ValueError):
            continue
    return None


def fits(results: list[Any]) -> bool:
    """Whether the samples' results are of one shape, so that there is a batch of them."""
    flat = [tree_flatten(r)[0] for r in results]
    shapes = [[x.shape if isinstance(x, tp.Tensor) else None for x in leaves] for leaves in flat]
    return all(s == shapes[0] for s in shapes)


def writes_unbatched(call: Call, places: tuple[int, ...]) -> bool:
    """An operator in place whose self all samples share."""
    return call.info.op.kind == "inplace" and call.at[0] not in places


def may_refuse(call: Call, places: tuple[int, ...], results: list[Any]) -> bool:
    """What has no batch: results of other shapes or no tensors, what depends on values, writing to what is shared."""
    depends = call.info.tags & {"dynamic_output_shape", "data_dependent_output"}
    numbers = not all(isinstance(x, tp.Tensor) for x in tree_flatten(results[0])[0])
    return bool(depends) or numbers or not fits(results) or writes_unbatched(call, places)


def check(call: Call, places: tuple[int, ...], refused: bool) -> bool:
    """vmap gives what the loop gives: True. What has no batch, or is said to be `refused`, it may refuse: False."""
    found = expected(call, places)
    if found is None:
        return False
    batch, results = found
    what = f"{call.info.name}{call.sample}, batched: {places}"
    try:
        got, _ = call.vmapped(places, batch)
    except RuntimeError as error:
        if "vmap" in str(error) and (refused or may_refuse(call, places, results)):
            return False
        raise AssertionError(f"{what}: {error}") from error
    assert fits(results), f"{what}: not refused"
    flat = [tree_flatten(r)[0] for r in results]
    for i, value in enumerate(got):
        for b in range(SIZE):
            if isinstance(value, tp.Tensor):
                check_same(call.info, value[b], flat[b][i], f"{what}, result {i}, sample {b}", exact=False)
            else:
                assert value == flat[b][i], f"{what}: {value}, expected {flat[b][i]}"
    return True


def nested_ways(call: Call) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """What the outer of two vmaps batches and what the inner one does: all twice (no inner ones), or a part each."""
    yield tuple(call.at), ()
    if len(call.at) > 1:
        yield (call.at[0],), tuple(call.at[1:])
        yield tuple(call.at[1:]), (call.at[0],)


def check_nested(call: Call, outer: tuple[int, ...], inner: tuple[int, ...]) -> bool:
    """Whether two vmaps give what two loops give; False where one may refuse, or the operator takes no such batch."""
    places, k = outer + inner, len(outer)
    found = expected(call, places)
    if found is None:
        return False
    if inner:
        stacks = [tp.stack(t) for t in found[0]]
        dims = ((0,) * k + (None,) * len(inner), (None,) * k + (0,) * len(inner))
    else:
        stacks = [tp.stack([tp.stack(t), tp.stack(t).flip(0)]) for t in found[0]]
        dims = ((0,) * k, (0,) * k)

    def at(o: int, i: int) -> tuple[tp.Tensor, ...]:
        parts = [(t[o] if n < k else t[i]) if inner else t[o][i] for n, t in enumerate(stacks)]
        return tuple(p.clone() for p in parts)

    def one(*values: tp.Tensor) -> list[tp.Tensor]:
        leaves = tree_flatten(call.run(call.replaced(places, values)))[0]
        return [leaf for leaf in leaves if isinstance(leaf, tp.Tensor)]

    pairs = [(o, i) for o in range(SIZE if inner else 2) for i in range(SIZE)]
    try:
        wanted = {pair: one(*at(*pair)) for pair in pairs}
    except (RuntimeError, IndexError, ValueError):
        return False
    mapped = tp.vmap(tp.vmap(one, dims[1], randomness="same"), dims[0], randomness="same")
    try:
        got = mapped(*(t.clone() for t in stacks))
    except RuntimeError as error:
        if "vmap" in str(error):
            return False
        raise
    for pair in pairs:
        for value, want in zip(got, wanted[pair], strict=True):
            what = f"{call.info.name}{call.sample}, nested {outer} in {inner}, sample {pair}"
            check_same(call.info, value[pair], want, what, exact=False)
    return True
