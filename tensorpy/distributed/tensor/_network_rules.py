"""Rules of what networks compute for each sample: convolutions, norms, pools, attention, matrices one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed.tensor._rules import SUM, Call, Part, Way
from tensorpy.distributed.tensor.placement_types import Placement, Replicate, Shard, part_sizes

_R = Replicate()


def _wanted(call: Call, *gradients: Placement) -> tuple[Placement, ...]:
    """The placements of those gradients that a backward operator is asked for."""
    return tuple(p for p, is_wanted in zip(gradients, call.given["output_mask"], strict=True) if is_wanted)


def _placed(call: Call, placement: Placement, **others: Placement) -> tuple[Placement, ...]:
    """One placement for all arguments that are tensors, others by their names."""
    names = {call.place(name): other for name, other in others.items()}
    return tuple(names.get(i, placement) for i in range(len(call.ins)))


# ---- convolutions ----


def _has_some(size: int, call: Call, dim: int = 1) -> bool:
    """Whether each process has some of them."""
    return part_sizes(size, call.count * call.known["others"].get(dim, 1))[-1] > 0


def _convolved_here(part: Part) -> Any:
    """The groups of these channels."""
    g = dict(part.given)
    if g["groups"] > 1:
        g["groups"] = g["groups"] * g["input"].shape[1] // part.shape("input")[1]
    if "grad_output" not in g:
        return tp.ops.aten.convolution.default(*g.values())
    if g["bias_sizes"] is not None:
        g["bias_sizes"] = [g["grad_output"].shape[1]]
    return tp.ops.aten.convolution_backward.default(*g.values())


def convolutions(call: Call) -> Iterator[Way]:
    """Samples; channels that go out, that come in (whose results are added up), and groups of both."""
    inputs, weight, groups = call.given["input"], call.given["weight"], call.given["groups"]
    outputs = call.given.get("grad_output", call.outs[0] if call.outs else inputs)
    if inputs.ndim != weight.ndim or not call.outs:
        return
    of_out, of_in = (1, 0) if call.given["transposed"] else (0, 1)
    ways: list[tuple[Placement, Placement, Placement, Placement]] = [(Shard(0), Shard(0), _R, _R)]
    if groups == 1 and _has_some(outputs.shape[1], call):
        ways.append((Shard(1), _R, Shard(of_out), Shard(0)))
    if groups == 1 and _has_some(inputs.shape[1], call):
        ways.append((SUM, Shard(1), Shard(of_in), SUM))
    if groups > 1 and groups % (call.count * call.known["others"].get(1, 1)) == 0:
        ways.append((Shard(1), Shard(1), Shard(0), Shard(0)))
    for out, given, w, bias in ways:
        if "output_mask" not in call.given:
            yield Way((out,), (given, w, bias)[: len(call.ins)], _convolved_here)
            continue
        cut = isinstance(out, Shard)
        to_given = SUM if cut and given == _R else given
        to_weight = SUM if cut and w == _R else w
        to_bias: Placement = bias if isinstance(bias, Shard) else (SUM if cut else _R)
        yield Way(_wanted(call, to_given, to_weight, to_bias), (out if cut else _R, given, w), _convolved_here)


# ---- norms ----


def layer_norms(call: Call) -> Iterator[Way]:
    """Places that are not normalized together; parameters' gradients are added up."""
    for place in range(call.ins[0].ndim - len(call.given["normalized_shape"])):
        outs: tuple[Placement, ...] = (Shard(place),) * 3
        if "output_mask" in call.given:
            outs = _wanted(call, Shard(place), SUM, SUM)
        yield Way(outs, _placed(call, Shard(place), weight=_R, bias=_R))


def _grouped_here(part: Part) -> Any:
    g = dict(part.given)
    g["N"] = g["input"].shape[0]
    named = "native_group_norm_backward" if "grad_out" in g else "native_group_norm"
    return getattr(tp.ops.aten, named).default(*g.values())


def group_norms(call: Call) -> Iterator[Way]:
    """Samples."""
    outs: tuple[Placement, ...] = (Shard(0),) * 3
    if "output_mask" in call.given:
        outs = _wanted(call, Shard(0), SUM, SUM)
    yield Way(outs, _placed(call, Shard(0), weight=_R, bias=_R), _grouped_here)


def batch_norms(call: Call) -> Iterator[Way]:
    """Channels; samples where they are not normalized together."""
    inputs = call.given["input"]
    if inputs.ndim < 2:
        return
    own = {name: Shard(1) for name in ("input", "grad_out")}
    outs = [Shard(1) if t.ndim > 1 else Shard(0) if t.dtype.is_floating_point else _R for t in call.outs]
    yield Way(tuple(outs), _placed(call, Shard(0), **own))
    if not call.given.get("training", call.given.get("train", True)) and "output_mask" not in call.given:
        yield Way(tuple(Shard(0) if t.ndim > 1 else _R for t in call.outs), _placed(call, _R, input=Shard(0)))


# ---- attention ----


def _of_mask(mask: Any, whole: Tensor, place: int) -> Placement:
    """A dimension of the scores in a mask, which is broadcast."""
    if mask is None or mask.ndim + place < 4:
        return _R
    own = place - 4 + mask.ndim
    return Shard(own) if mask.shape[own] > 1 or whole.shape[place] == 1 else _R


def attention(call: Call) -> Iterator[Way]:
    """Samples, heads, and queries where each sees all keys; dropout is drawn for all at once."""
    if call.given.get("dropout_p"):
        return
    query, mask = call.given["query"], call.given.get("attn_mask")
    for place in (0, 1):
        outs = tuple(Shard(place) for _ in call.outs)
        yield Way(outs, _placed(call, Shard(place), attn_mask=_of_mask(mask, query, place)))
    if not call.given.get("is_causal"):
        ins = _placed(call, Shard(2), key=_R, value=_R, attn_mask=_of_mask(mask, query, 2))
        is_backward = "grad_out" in call.given
        yield Way((Shard(2), SUM, SUM) if is_backward else (Shard(2),) * len(call.outs), ins)


# ---- what is computed for each of some leading dimensions ----


def _by_leading(call: Call, inner: int, vectors: Sequence[str] = ()) -> Iterator[Way]:
    """The ways that cut a dimension before the last `inner`; arguments named in `vectors` have one dimension less."""
    ndim, shape = call.ins[0].ndim, call.ins[0].shape
    short = [call.given.get(name) for name in vectors]
    cut = [t for t in call.ins if t.ndim]  # numbers are the same in all processes
    if any(t.ndim != ndim - any(t is each for each in short) for t in cut):
        return
    for place in range(ndim - inner):
        alike = all(t.ndim > place and t.shape[place] == shape[place] for t in (*cut, *call.outs))
        if alike and _has_some(shape[place], call, place):
            yield call.same(Shard(place), *[Shard(place) if t.ndim else _R for t in call.ins])


def lines_of_samples(call: Call) -> Iterator[Way]:
    """The dimensions before that of a pool or a picture."""
    return _by_leading(call, 1)


def planes(call: Call) -> Iterator[Way]:
    """The same of two dimensions."""
    return _by_leading(call, 2)


def volumes(call: Call) -> Iterator[Way]:
    """The same of three dimensions."""
    return _by_leading(call, 3)


def matrices(call: Call) -> Iterator[Way]:
    """The dimensions that count the matrices of an operator."""
    return _by_leading(call, 2, ("pivots", "LU_pivots", "tau", "input2"))


def samples(call: Call) -> Iterator[Way]:
    """The first dimension alone."""
    return _by_leading(call, call.ins[0].ndim - 1) if call.ins[0].ndim > 1 else iter(())


def padded(call: Call) -> Iterator[Way]:
    """Dimensions to which nothing is added."""
    ndim = call.ins[0].ndim
    pad: Sequence[int] = call.given["pad"] if "pad" in call.given else call.given["padding"]
    for place in range(ndim):
        behind = 2 * (ndim - 1 - place)
        is_kept = behind >= len(pad) or not any(pad[behind : behind + 2])
        if is_kept and _has_some(call.ins[0].shape[place], call, place):
            yield call.same(Shard(place), *[Shard(place)] * len(call.ins))


def repeated(call: Call) -> Iterator[Way]:
    """Dimensions that are there once."""
    more = call.outs[0].ndim - call.ins[0].ndim
    for place in range(call.ins[0].ndim):
        if call.given["repeats"][place + more] == 1:
            yield call.same(Shard(place + more), Shard(place))


def together(call: Call) -> Iterator[Way]:
    """Only on whole tensors: each process does all of it."""
    return iter(())
