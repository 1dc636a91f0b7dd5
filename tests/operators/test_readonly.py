"""Memory that may not be written: tensors over it are read, and whatever would write is refused before it begins."""

from __future__ import annotations

import mmap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_out_dtype import outs, overload

import tensorpy as tp
from tensorpy.testing.harness import arguments, over
from tensorpy.testing.samples import TABLE, OpInfo


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given")
        yield


def over_readonly(like: tp.Tensor) -> tuple[tp.Tensor, np.ndarray]:
    """A tensor of the same elements over an array that may not be written, and that array."""
    array = like.detach().resolve_conj().numpy().copy()
    array.flags.writeable = False
    return tp.from_numpy(array), array


def refused(call: Callable[[], Any], array: np.ndarray) -> None:
    before = array.copy()
    for mode in (tp.enable_grad, tp.no_grad, tp.inference_mode):
        with mode(), pytest.raises(RuntimeError, match="read-only"):
            call()
    np.testing.assert_array_equal(array, before)


def has_sample(info: OpInfo) -> bool:
    return info.main_dtype != "bfloat16" and not info.unset


def writes_self(info: OpInfo) -> bool:
    op = info.op if info.op.kind == "inplace" else info.variant("inplace")
    return op is not None and "inplace_view" not in op.function.tags and has_sample(info)


@over(writes_self)
def test_in_place(info: OpInfo) -> None:
    name = info.name if info.op.kind == "inplace" else str(info.variant("inplace").schema.name)  # type: ignore[union-attr]
    for sample in info.samples(info.main_dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        if not isinstance(args[0], tp.Tensor):
            continue  # a list of them
        try:
            overload(tp, name)(args[0].clone(), *args[1:], **kwargs)
        except RuntimeError:
            continue  # self cannot hold the result
        args[0], array = over_readonly(args[0])
        refused(lambda: overload(tp, name)(*args, **kwargs), array)  # noqa: B023


@over(lambda info: info.variant("out") is not None and info.op.kind != "inplace" and has_sample(info))
def test_out(info: OpInfo) -> None:
    name = str(info.variant("out").schema.name)  # type: ignore[union-attr]
    taken = {a.name for a in info.variant("out").schema.arguments}  # type: ignore[union-attr]
    for sample in info.samples(info.main_dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        made = overload(tp, info.name)(*args, **kwargs)
        results = [made] if isinstance(made, tp.Tensor) else list(made)
        kwargs = {k: v for k, v in kwargs.items() if k in taken}
        for i, result in enumerate(results):
            if result.dtype == tp.bfloat16:
                continue
            first, array = over_readonly(result)
            given = [first if i == j else tp.empty_like(r) for j, r in enumerate(results)]
            listed = any(str(o.type) == "Tensor[]" for o in info.variant("out").schema.out)  # type: ignore[union-attr]
            out = {outs(info)[0]: given} if listed else dict(zip(outs(info), given, strict=True))
            refused(lambda: overload(tp, name)(*args, **kwargs, **out), array)  # noqa: B023


def test_running_statistics() -> None:
    x, (mean, array) = tp.rand(4, 3), over_readonly(tp.zeros(3))
    for statistics in ((mean, tp.ones(3)), (tp.zeros(3), mean)):
        refused(lambda: tp.nn.functional.batch_norm(x, *statistics, training=True), array)  # noqa: B023
    assert tp.nn.functional.batch_norm(x, mean, tp.ones(3)).shape == (4, 3)


VIEWS: dict[str, Callable[[tp.Tensor], tp.Tensor]] = {
    "a part": lambda t: t[1:3],
    "a view": lambda t: t.view(2, -1),
    ".data": lambda t: t.data,
    "detach": lambda t: t.detach(),
    "another dtype": lambda t: t.view(tp.int32),
    "set_": lambda t: tp.empty(0).set_(t),
    "as_strided": lambda t: t.as_strided((2,), (1,)),
    "asarray": lambda t: tp.asarray(t.numpy()),
    "as_tensor": lambda t: tp.as_tensor(t.numpy()),
    "frombuffer": lambda t: tp.frombuffer(memoryview(t), dtype=tp.float32),
}


@pytest.mark.parametrize("way", VIEWS)
def test_what_shares_the_memory(way: str) -> None:
    t, array = over_readonly(tp.arange(4.0))
    refused(lambda: VIEWS[way](t).zero_(), array)
    refused(lambda: VIEWS[way](t).__setitem__(0, 1), array)
    assert VIEWS[way](t).clone().zero_().sum().item() == 0


def test_a_file_that_is_mapped_for_reading(tmp_path: Path) -> None:
    """A store into it would end the process."""
    path = tmp_path / "numbers"
    np.arange(1024, dtype=np.float32).tofile(path)
    mapped = tp.from_numpy(np.memmap(path, dtype=np.float32, mode="r"))
    with path.open("rb") as file:
        m = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for t in (mapped, tp.frombuffer(m, dtype=tp.float32)):
        for write in (t.zero_, lambda t=t: tp.add(t, 1, out=t), lambda t=t: t.__setitem__(slice(3), 1.0)):
            with pytest.raises(RuntimeError, match="read-only"):
                write()
        assert t.sum().item() == 1023 * 512


def test_who_takes_the_memory_from_the_tensor_learns_of_it() -> None:
    t, _ = over_readonly(tp.arange(4.0))
    assert not t.numpy().flags.writeable and not np.asarray(t).flags.writeable
    assert memoryview(t).readonly and t.__array_interface__["data"][1]
    assert not np.from_dlpack(t).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    with pytest.raises((BufferError, ValueError, TypeError)):
        (memoryview(t).cast("B"))[0] = 1
    own = tp.arange(4.0)
    assert own.numpy().flags.writeable and not memoryview(own).readonly and not own.__array_interface__["data"][1]


def test_a_copy_is_ones_own() -> None:
    t, _ = over_readonly(tp.arange(4.0))
    for made in (t.clone(), tp.tensor(t.numpy()), t + 0, t.to(tp.float64), t[[0, 1]]):
        made.zero_()
    assert TABLE and t.tolist() == [0.0, 1.0, 2.0, 3.0]
