"""Primitives: how they are entered, seen and found, and that every operator says which ones it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tensorpy as tp
from tensorpy.testing.harness import arguments, call, fresh, function_of, over
from tensorpy.testing.samples import OpInfo


def names(trace: tp.dispatch.trace) -> list[str]:
    return [event.op for event in trace]


def test_a_trace_shows_primitives_only_if_it_is_asked_to() -> None:
    x = tp.ones(3, 4)
    with tp.dispatch.trace() as layers:
        x.cumsum(1)
    with tp.dispatch.trace(primitives=True) as all_of_it:
        x.cumsum(1)
    assert not [name for name in names(layers) if name.startswith("prim::")]
    inner = all_of_it.events[-1]
    assert (inner.op, inner.key) == ("prim::scan.sum", "CPU") and inner.passed_by == ()
    assert inner.depth == 2 and [dtype for dtype, _, _ in inner.arguments[:1]] == [tp.float32]
    assert names(layers) == [name for name in names(all_of_it) if not name.startswith("prim::")]


def test_primitives_are_entered_below_every_layer() -> None:
    """Whatever the thread includes: a guard that would send an operator through autograd reaches no primitive."""
    x = tp.ones(3, 4, requires_grad=True)
    with tp.dispatch.include("AutogradCPU"), tp.dispatch.trace(primitives=True) as trace:
        x.softmax(1)
    assert {e.key for e in trace if e.op.startswith("prim::")} == {"CPU"}


def test_primitives_are_listed_apart_from_operators() -> None:
    primitives = tp.dispatch.primitives()
    assert "prim::scan.sum" in primitives and "prim::take" in primitives
    assert not set(primitives) & set(tp.dispatch.operators())
    table = {entry.key: entry.source for entry in tp.dispatch.table("prim::take")}
    assert table["CPU"] == "take_cpu" and table["OpenCL"] == "take_opencl" and table["Meta"] == "prim/meta.c"
    assert tp.dispatch.schema("prim::kth") == "prim::kth(Tensor lines, int k, *, Tensor(a!) out) -> ()"


def test_an_operator_of_primitives_runs_on_meta_without_a_function_of_its_own() -> None:
    x = tp.empty(2, 3, 8, 8, device="meta")
    sources = {e.key: e.source for e in tp.dispatch.table("max_pool2d_with_indices")}
    assert sources["CPU"] == sources["Meta"] == sources["OpenCL"]
    with tp.dispatch.trace(primitives=True) as trace:
        out = tp.nn.functional.max_pool2d(x, 2)
    assert out.shape == (2, 3, 4, 4) and out.device.type == "meta"
    assert [(e.op, e.key) for e in trace if e.op.startswith("prim::")] == [("prim::pool.max", "Meta")]


def test_what_needs_values_is_refused_on_meta() -> None:
    with pytest.raises(NotImplementedError, match=r"nonzero: not possible on Meta tensors.*dynamic_output_shape"):
        tp.empty(3, device="meta").nonzero()


# Where a backend has none, its memory functions and the host do it (csrc/prim/transfer.h); permutations are the host's,
# and serial draws are made for its tensors alone.
SERIAL = ("prim::serial.fill", "prim::serial.fill_of", "prim::serial.integers", "prim::serial.permutation")
# What calls of others are joined to: compiled functions call them, no operator.
JOINED = {"prim::fused.map", "prim::fused.reduce"}
EVERYWHERE = ("prim::copy", "prim::fill", "prim::permutation", *SERIAL)


def called_by_dense_kernels(trace: tp.dispatch.trace) -> Iterator[tuple[str, str]]:
    """(operator, primitive) wherever the kernel registered for Dense called the primitive itself."""
    above: list[tuple[str, str]] = []
    for event in trace:
        del above[event.depth :]
        if event.op.startswith("prim::") and above:
            op, key = above[-1]
            entry = next((e for e in tp.dispatch.table(op) if e.key == key), None)
            if entry is not None and entry.registered_as == "Dense":
                yield op, event.op
        above.append((event.op, event.key))


@over()
def test_operators_name_the_primitives_they_call(info: OpInfo) -> None:
    """A device that lacks one would run into it in the middle of the operator, instead of leaving it to the host."""
    function = function_of(info)
    for dtype in info.some_dtypes:
        for sample in info.some(dtype):
            args, kwargs = arguments(sample, "cpu", info)
            with tp.dispatch.trace(primitives=True) as trace:
                call(function, fresh(info, args), kwargs)
            for op, primitive in called_by_dense_kernels(trace):
                assert primitive in EVERYWHERE or primitive.removeprefix("prim::") in [
                    n.removeprefix("prim::") for n in tp.dispatch.needs(op)
                ], f"{op} calls {primitive}: name it in the 'prims' of its entry"


def test_every_primitive_is_named_by_an_operator() -> None:
    """So each one that a device adds may take operators off the host."""
    named = {name for op in tp.dispatch.operators() for name in tp.dispatch.needs(op)}
    assert set(tp.dispatch.primitives()) - set(EVERYWHERE) - JOINED == named


def test_kernels_of_one_device_serve_no_other() -> None:
    """What is made for the CPU is registered for the CPU."""
    for op in (*tp.dispatch.operators(), *tp.dispatch.primitives()):
        for entry in tp.dispatch.table(op):
            for device in ("CPU", "OpenCL"):
                if entry.source.endswith("_" + device.lower()):
                    assert entry.key == device, f"{op}: {entry.source} for {entry.key}"


def test_calls_of_primitives_are_seen() -> None:
    x = tp.ones(3)
    with tp.dispatch.trace(primitives=True) as trace:
        x.cumsum(0)
    assert list(called_by_dense_kernels(trace)) == [("cumsum", "prim::scan.sum")]


def test_what_primitives_write_in_its_place() -> None:
    """A tape takes what is written, and given by keyword, for a result, except what is named so in csrc/plan/tape.c."""
    tree = Path(__file__).resolve().parents[2]
    by_keyword = re.findall(r"^- func: [^*]*\*, (.*)\) ->", (tree / "yaml/primitives.yaml").read_text(), re.M)
    written = {name for text in by_keyword for name in re.findall(r"Tensor\(\w!\)[?\[\]]* (\w+)", text)}
    source = (tree / "csrc/plan/tape.c").read_text()
    found = re.search(r"read_too\[\] = \{(.*?)\}", source)
    assert found is not None
    in_place = set(re.findall(r'"(\w+)"', found[1]))
    results = (
        "at bag info log_alpha logsumexp mean order out pivots rank result rstd s saved size tau total_weight u values "
        "vectors vh"
    )
    gradients = "to_bias to_grid to_hidden to_input to_key to_query to_value to_weight"
    assert written == in_place | {
        *results.split(),
        *gradients.split(),
    }  # a new name: does the primitive read what is there?
