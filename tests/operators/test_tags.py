"""What the tags `pointwise` and `reduction` promise, asked of every operator that carries one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.testing.harness import arguments, call, check_same, function_of, over, to_tensor
from tensorpy.testing.samples import Array, OpInfo, OpSample


def first(info: OpInfo, wanted: Any) -> list[OpSample]:
    return [s for s in info.samples(info.main_dtype) if wanted(s)][:4]


# ---- pointwise ----


def is_pointwise(info: OpInfo) -> bool:
    tensors = {str(a.type) for a in info.op.schema.arguments if "Tensor" in str(a.type)}
    gives = {str(r.type) for r in info.op.schema.returns}
    return (info.op.pointwise is not None or "pointwise" in info.tags) and tensors <= {"Tensor", "Tensor?"} and (
        gives == {"Tensor"}) and info.op.kind != "inplace"  # fmt: skip


@over(is_pointwise)
def test_pointwise(info: OpInfo, device: str) -> None:
    """An element depends on those at its place only: the operator commutes with broadcasting and with any order."""
    function = function_of(info)
    for sample in first(info, lambda s: True):
        given = [a for a in (*sample.args, *sample.kwargs.values()) if isinstance(a, Array)]
        shape = np.broadcast_shapes(*(a.values.shape for a in given))
        order = np.random.RandomState(0).permutation(int(np.prod(shape, dtype=int)))

        def flat(a: Array, device: str, shape: Any = shape) -> tp.Tensor:
            return to_tensor(Array(np.broadcast_to(a.values, shape).ravel(), a.dtype), device)

        def shuffled(a: Array, device: str, shape: Any = shape, order: Any = order) -> tp.Tensor:
            return to_tensor(Array(np.broadcast_to(a.values, shape).ravel()[order], a.dtype), device)

        (whole,) = call(function, *arguments(sample, device, info))
        (line,) = call(function, *arguments(sample, device, info, flat))
        (mixed,) = call(function, *arguments(sample, device, info, shuffled))
        if whole.dtype != line.dtype:
            continue  # a tensor without dimensions counts less for the dtype
        what = f"{info.name}{sample}"
        check_same(info, line, whole.reshape(-1), f"{what}, broadcast before", exact=False)
        check_same(info, mixed, line[tp.tensor(order.tolist(), dtype=tp.int64)], f"{what}, shuffled", exact=False)


# ---- reductions ----


def names(info: OpInfo) -> dict[str, str]:
    return {a.name: str(a.type) for a in info.op.schema.arguments}


def reduces(info: OpInfo) -> bool:
    return "reduction" in info.tags and "dim" in names(info) and not info.op.kind == "inplace"


def with_dim(sample: OpSample, info: OpInfo, dim: Any, **more: Any) -> OpSample:
    """The sample's first argument with a dimension of ours; other arguments that must be given stay."""
    args = list(info.op.schema.arguments)
    given = dict(zip((a.name for a in args), sample.args, strict=False)) | dict(sample.kwargs)
    kept = {a.name: given[a.name] for a in args[1:] if a.name in given and a.name not in ("dim", "keepdim")}
    must = {a.name: False for a in args if a.name == "keepdim" and a.default is None}
    kept |= {"dim": dim, **must, **more}
    return OpSample((sample.args[0],), kept)


def results(info: OpInfo, sample: OpSample, device: str) -> list[tp.Tensor]:
    return call(function_of(info), *arguments(sample, device, info))


@over(reduces)
def test_keepdim(info: OpInfo, device: str) -> None:
    """Kept dimensions have one element; nothing else changes."""
    if "keepdim" not in names(info):
        return
    for sample in first(info, lambda s: s.args[0].values.ndim > 1 and s.args[0].values.size):
        dim = [0, -1] if "[" in names(info)["dim"] else 0
        kept = results(info, with_dim(sample, info, dim, keepdim=True), device)
        gone = results(info, with_dim(sample, info, dim, keepdim=False), device)
        for k, g in zip(kept, gone, strict=True):
            assert k.shape[0] == 1 and k.ndim == sample.args[0].values.ndim
            check_same(info, k.reshape(g.shape), g, f"{info.name}{sample}, keepdim", exact=False)


@over(lambda info: reduces(info) and "[" in names(info)["dim"])
def test_all_dimensions(info: OpInfo, device: str) -> None:
    """Over all dimensions is over the flattened tensor, and over none of them is over all."""
    for sample in first(info, lambda s: s.args[0].values.ndim > 1 and s.args[0].values.size):
        x = sample.args[0]
        line = OpSample((Array(x.values.ravel(), x.dtype), *sample.args[1:]), sample.kwargs)
        every = results(info, with_dim(sample, info, list(range(x.values.ndim))), device)
        for a, b in zip(every, results(info, with_dim(line, info, [0]), device), strict=True):
            check_same(info, a, b, f"{info.name}{sample}, all dimensions", exact=False)
        if info.base in ("all", "any"):
            continue  # PyTorch's leave the elements as they are
        for a, b in zip(results(info, with_dim(sample, info, []), device), every, strict=True):
            check_same(info, a, b, f"{info.name}{sample}, no dimensions", exact=False)


@over(reduces)
def test_order_does_not_matter(info: OpInfo, device: str) -> None:
    """But for rounding, and for places, which go with their elements."""
    if info.base.startswith(("arg", "cum")) or len(info.op.schema.returns) > 1:
        return
    for sample in first(info, lambda s: s.args[0].values.ndim > 1 and s.args[0].values.size):
        x = sample.args[0]
        back = OpSample((Array(np.ascontiguousarray(x.values[::-1]), x.dtype), *sample.args[1:]), sample.kwargs)
        dim = [0] if "[" in names(info)["dim"] else 0
        for a, b in zip(results(info, with_dim(sample, info, dim), device),
                        results(info, with_dim(back, info, dim), device), strict=True):  # fmt: skip
            check_same(info, a, b, f"{info.name}{sample}, in another order", exact=False)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float16", "float32", "complex64"])
def test_unset_memory_is_filled_while_it_is_deterministic(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for m in (tp, torch):
        d = getattr(m, dtype)
        m.use_deterministic_algorithms(True)
        try:
            made = [
                m.empty(2, dtype=d),
                m.empty_strided((2, 2), (1, 2), dtype=d),
                m.empty_like(m.ones(2, dtype=d)),
                m.ones(1, dtype=d).new_empty(2),
                m.ones(1, dtype=d).resize_(3),
                m.ones(4, dtype=d).resize_(2).resize_(4),
                m.empty(3, out=m.ones(1, dtype=d)),
            ]
            found.append(str([t.tolist() for t in made]))
            m.utils.deterministic.fill_uninitialized_memory = False
            assert not m.utils.deterministic.fill_uninitialized_memory
            assert m.ones(1).resize_(2)[0] == 1
            with pytest.raises(RuntimeError, match="expected a bool, but got int"):
                m.utils.deterministic.fill_uninitialized_memory = 1
        finally:
            m.utils.deterministic.fill_uninitialized_memory = True
            m.use_deterministic_algorithms(False)
    assert found[0] == found[1]
