"""The dispatcher as Python sees it: traces, tables, explanations, guards, missing kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

import tensorpy as tp


def test_trace_shows_every_layer() -> None:
    a, b = tp.ones(3), tp.ones(3)
    with tp.dispatch.trace() as t:
        a + b
    assert [(e.op, e.key, e.depth) for e in t] == [("add.Tensor", "AutogradCPU", 0), ("add.Tensor", "CPU", 1)]
    assert t.events[0].passed_by == ("AutocastCPU",)
    assert t.events[1].passed_by == ("ADInplaceOrView",)
    dtype, shape, device = t.events[0].arguments[0]
    assert (dtype, tuple(shape), str(device)) == (tp.float32, (3,), "cpu")
    assert all(e.seconds > 0 for e in t)


def test_a_trace_shows_itself_in_a_notebook() -> None:
    a = tp.ones(2, 3)
    with tp.dispatch.trace(primitives=True) as t:
        tp.cat([a, a])
    table = t._repr_html_()
    assert table.count("<tr") == 1 + len(t)
    assert "[float32[2, 3], float32[2, 3]]" in table and "&emsp;&emsp;prim::copy" in table and "passed by: " in table


def test_trace_with_autocast_and_in_place() -> None:
    a = tp.ones(2, 2)
    with tp.autocast("cpu"), tp.dispatch.trace() as t:
        a.mm(a)
    assert ("mm", "AutocastCPU") in [(e.op, e.key) for e in t]
    with tp.dispatch.trace() as t:
        a.add_(1)
    assert [e.key for e in t if e.op == "add_.Scalar"] == ["AutogradCPU", "ADInplaceOrView", "CPU"]


def test_trace_of_a_factory_and_of_meta() -> None:
    with tp.dispatch.trace() as t:
        tp.empty(2)
    assert [e.key for e in t] == ["BackendSelect", "CPU"]
    with tp.dispatch.trace() as t:
        tp.empty(2, device="meta")
    assert [e.key for e in t] == ["BackendSelect", "Meta"]


def test_traces_nest_and_end() -> None:
    a = tp.ones(1)
    with tp.dispatch.trace() as outer:
        a + a
        with tp.dispatch.trace() as inner:
            a * a
        a - a
    a / a
    assert {e.op for e in inner} == {"mul.Tensor"}
    assert {e.op for e in outer} == {"add.Tensor", "sub.Tensor"}


def test_a_trace_gives_back_the_one_that_it_found() -> None:
    """With its primitives, and at its depth: a hook may trace within a backward that is traced."""
    x, inner = tp.ones(3), tp.dispatch.trace()
    with tp.dispatch.trace(primitives=True) as outer:
        with inner:
            x.cumsum(0)
        x.cumsum(0)
    assert [e.op for e in inner] == ["cumsum", "cumsum"]
    assert [(e.op, e.depth) for e in outer] == [("cumsum", 0), ("cumsum", 1), ("prim::scan.sum", 2)]

    def pack(t: tp.Tensor) -> tp.Tensor:  # called by autograd's layer of the operator
        with inner:
            return t + 0

    y = tp.ones(2, requires_grad=True)
    with tp.dispatch.trace() as outer, tp.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        (y.exp() * y.sin()).sum()
    assert {e.op for e in outer} == {"exp", "sin", "mul.Tensor", "sum"}
    assert {e.depth for e in outer} == {0, 1} and all(e.seconds > 0 for e in outer)


def test_a_trace_that_begins_inside_a_call_and_ends_outside() -> None:
    y, inner = tp.ones(2, requires_grad=True), tp.dispatch.trace()

    def pack(t: tp.Tensor) -> tp.Tensor:
        inner.__enter__()
        return t

    with tp.dispatch.trace() as outer, tp.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y.exp()
        y.detach() + 1
        inner.__exit__()
        y.detach() * 2
    assert [e.depth for e in inner][:2] == [0, 1]
    assert [e.op for e in outer][-2:] == ["mul.Scalar", "mul.Scalar"]


def test_results_are_the_same_while_tracing() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    with tp.dispatch.trace():
        y = (x * x).sum()
        y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_print_dispatcher(capsys: pytest.CaptureFixture[str]) -> None:
    a = tp.ones(1)
    tp._C._set_print_dispatcher(True)
    a + a
    tp._C._set_print_dispatcher(False)
    a + a
    printed = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in printed] == [
        "[call] op=[add.Tensor], key=[AutogradCPU]",
        "[call] op=[add.Tensor], key=[CPU]",
    ]


def test_table_names_the_origin_of_each_kernel() -> None:
    table = {e.key: e for e in tp.dispatch.table("mm")}
    assert table["CPU"].source == "mm_dense" and table["CPU"].kind == "kernel"
    assert table["CPU"].file == "csrc/native/linalg/matmul.c"
    assert table["AutogradCPU"].registered_as == "Autograd"
    assert table["OpenCL"].kind == "kernel" and "PrivateUse1" not in table


def test_explain() -> None:
    a = tp.ones(1)
    text = tp.dispatch.explain("add", a, a)
    assert "AutocastCPU            excluded: autocast is off" in text
    assert "CPU                    kernel pointwise" in text
    with pytest.raises(ValueError, match="no operator 'nothing'"):
        tp.dispatch.explain("nothing", a)


def test_exclude_guard() -> None:
    a = tp.ones(1, requires_grad=True)
    with tp.dispatch.exclude("AutogradCPU"):
        assert not (a * 2).requires_grad
    assert (a * 2).requires_grad
    with pytest.raises(ValueError, match="unknown dispatch key"):
        with tp.dispatch.exclude("Nowhere"):
            pass


def test_missing_kernel_is_explained_in_six_lines() -> None:
    a = tp.ones(2)
    with pytest.raises(NotImplementedError) as caught, tp.dispatch.exclude("CPU"):
        tp.add(a, a)
    lines = str(caught.value).splitlines()
    assert len(lines) <= 6
    assert "'add.Tensor'" in lines[0]
    assert "self: float32 on cpu, other: float32 on cpu" in lines[1]
    assert "CPU" in lines[2]


@pytest.mark.parametrize(
    "call, tag",
    [
        (lambda m: m.nonzero(), "nonzero: .* dynamic_output_shape"),
        (lambda m: m[m > 0], "nonzero: .* dynamic_output_shape"),
        (lambda m: m.sum().item(), "_local_scalar_dense: .* data_dependent_output"),
        (lambda m: tp.equal(m, m), "equal: .* data_dependent_output"),
        (lambda m: tp.nn.functional.one_hot(m.long()), "one_hot: .* dynamic_output_shape"),
    ],
)
def test_meta_tensors_have_no_values_and_the_error_names_the_tag(call, tag) -> None:
    with pytest.raises(NotImplementedError, match=tag):
        call(tp.ones(2, device="meta"))


def test_deterministic_algorithms_is_a_switch() -> None:
    assert not tp.are_deterministic_algorithms_enabled()
    try:
        tp.use_deterministic_algorithms(True, warn_only=True)
        assert tp.are_deterministic_algorithms_enabled() and tp.is_deterministic_algorithms_warn_only_enabled()
        tp.use_deterministic_algorithms(True)
        assert tp.are_deterministic_algorithms_enabled() and not tp.is_deterministic_algorithms_warn_only_enabled()
    finally:
        tp.use_deterministic_algorithms(False)


def test_keys_of_tensors() -> None:
    assert tp.dispatch.keys(tp.ones(1)) == ["AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU"]


@pytest.mark.parametrize("type_", ["cpu", "opencl"])
def test_a_missing_kernel_lists_no_fallback(type_: str) -> None:
    """A device whose fallback asks the host for what the host has not is none that has a kernel."""
    if type_ == "opencl" and not tp.opencl.is_available():
        pytest.skip("there is no OpenCL device")
    lib = tp.library.Library("missing_kernels", "DEF")
    lib.define("on_meta_alone(Tensor x) -> Tensor")
    lib.impl("on_meta_alone", lambda x: x.clone(), "Meta")
    with pytest.raises(NotImplementedError, match="backends that have one: Meta\n"):
        tp.ops.missing_kernels.on_meta_alone(tp.ones(2, device=type_))
    lib._destroy()


def test_unknown_keyword_names_the_nearest() -> None:
    a = tp.ones(1)
    with pytest.raises(TypeError, match=r"add\(\) got an unexpected keyword argument 'alhpa'. Did you mean 'alpha'\?"):
        tp.add(a, a, alhpa=2)
    with pytest.raises(TypeError, match="argument 'other' \\(position 2\\) must be Tensor, not str"):
        tp.add(a, "x")


def test_every_kernel_has_its_file() -> None:
    """What a table shows as a kernel's file is in the tree, and has the kernel's words where it is a C file."""
    root = Path(__file__).parents[2]
    words: dict[str, str] = {}
    for name in tp.dispatch.operators() + tp.dispatch.primitives():
        for entry in tp.dispatch.table(name):
            if entry.kind != "kernel":
                continue
            assert entry.file, f"{name} {entry.key}: {entry.source}"
            text = words.setdefault(entry.file, (root / entry.file).read_text())
            if entry.file.endswith(".c") and entry.source not in text:
                assert "##" in text, f"{entry.file} has no {entry.source}"
