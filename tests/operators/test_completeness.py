"""What the YAML promises: PyTorch's schemas to the letter, and a doc, samples and a gradient for every operator."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import pytest

import tensorpy as tp
from tensorpy.testing.harness import over
from tensorpy.testing.samples import TABLE
from tensorpy.testing.samples.table import CATALOG, is_ours


def users() -> list:
    """The functional operators (or in-place ones that have no functional variant) that users call."""
    return [
        op
        for op in CATALOG
        if not is_ours(op) and op.kind != "out" and not (op.kind == "inplace" and op.group.shown is not None)
    ]


def check(missing: set[str], what: str) -> None:
    assert not missing, f"{len(missing)} operators without {what}: {', '.join(sorted(missing))}"


def test_every_operator_has_samples():
    """Or its entry says what tests it instead."""
    settled = {str(op.schema.name) for op in CATALOG if op.function.no_sample}
    check({str(op.schema.name) for op in users()} - set(TABLE) - settled, "a sample")
    check(settled & set(TABLE), "a need for 'no_sample'")


@over()
def test_an_operator_has_samples_in_its_dtypes(info):
    """At least one in every dtype that it is tested in."""
    assert not [dtype for dtype in info.dtypes if not info.samples(dtype)]


def test_every_operator_has_a_reference():
    """Or a reason why there is nothing that its values could be compared with."""
    settled = {n for n, i in TABLE.items() if i.reference or i.unset or i.without_reference}
    check(set(TABLE) - settled, "a reference")


def test_every_operator_has_a_doc():
    """One overload of each name says what it does."""
    told = {op.schema.name.base for op in CATALOG if op.function.doc}
    check({op.schema.name.base for op in users()} - told, "a doc line")


def test_every_differentiable_operator_has_a_derivative():
    """Or its entry says why it has none."""
    missing = set()
    for op in users():
        integers_only = op.pointwise is not None and not {"float", "complex"} & set(op.pointwise.expressions)
        flags = op.pointwise is not None and op.pointwise.promotion == "always_bool"
        if op.is_implicit or op.derivative or integers_only or flags or not op.tensor_arguments or not op.kernels:
            continue
        if not any(str(r.type).startswith("Tensor") for r in op.schema.returns):
            continue
        if op.function.no_gradient is None:
            missing.add(str(op.schema.name))
    check(missing, "a derivative")


def test_schemas_equal_pytorchs():
    spec = importlib.util.find_spec("torchgen")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed")
    import yaml

    path = Path(spec.origin).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    theirs = {e["func"].split("(")[0]: e["func"] for e in yaml.load(path.read_text(), Loader=loader)}
    differing = []
    for op in CATALOG:
        name = str(op.schema.name)
        if name in theirs and str(op.schema) != theirs[name]:
            differing.append(f"{op.schema}\n  PyTorch: {theirs[name]}")
    assert not differing, "\n".join(differing)


def test_every_function_shows_its_signature_and_what_it_does():
    """What `help()` and a notebook's `?` read; `*_backward` functions are for formulas, not for users."""
    silent = set()
    for space in (tp, tp.Tensor, tp.nn.functional, tp.fft, tp.linalg, tp.special):
        for name in dir(space):
            value = getattr(space, name, None)
            if name.startswith("_") or name.endswith("_backward") or inspect.isclass(value) or not callable(value):
                continue
            inspect.signature(value)
            text = (value.__doc__ or "").strip()
            if not text or text.startswith("Schemas:"):
                silent.add(f"{space.__name__}.{name}")
    check(silent, "a sentence that says what it does")
    assert list(inspect.signature(tp.sum).parameters) == ["input", "dim", "keepdim", "dtype", "out"]
    assert inspect.signature(tp.Tensor.add).parameters["alpha"].default == 1
