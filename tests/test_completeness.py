"""What the YAML promises: PyTorch's schemas to the letter, and a doc, samples and a gradient for every operator."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from samples import TABLE
from samples.table import CATALOG, is_ours

# Operators that users call and that lack something, each with the reason; a new one is not to be added lightly.
NO_SAMPLE_REASONS: dict[str, str] = {
    "empty.memory_format": "elements are not set",
    "empty_strided": "elements are not set",
    "empty_like": "elements are not set",
    "item": "tests/test_tensor_new.py; gives a number",
    "is_nonzero": "gives a bool",
    **dict.fromkeys(
        ("alpha_dropout_", "feature_alpha_dropout_", "feature_dropout_"), "changes its argument: tests/test_random.py"
    ),
    "embedding_renorm_": "changes its argument: tests/test_norm.py",
    "as_strided_scatter": "tests/test_order.py; depends on the strides of its argument",
    "fill_diagonal_": "tests/test_order.py; there is no functional form",
    "unique_consecutive": "tests/test_order.py; its Python form gives what is asked for",
    **dict.fromkeys(("cauchy", "geometric", "log_normal"), "tests/test_random.py; random"),
    **dict.fromkeys(("is_complex", "is_conj", "is_floating_point", "is_inference", "is_neg"), "gives a bool"),
    **dict.fromkeys(("is_set_to", "is_signed"), "gives a bool"),
    **{f"result_type.{pair}": "tests/test_order.py; gives a dtype" for pair in ("Tensor", "Scalar")},
    **{f"result_type.Scalar_{last}": "tests/test_order.py; gives a dtype" for last in ("Tensor", "Scalar")},
}
# Results that are no floating numbers, by the operator's base name.
WITHOUT_GRADIENT: dict[str, str] = {
    **dict.fromkeys(("all", "any", "isin"), "gives bools"),
    **dict.fromkeys(("argmax", "argmin", "argsort", "bucketize", "searchsorted"), "gives places"),
    "embedding_renorm": "changes a table outside of autograd",
    **dict.fromkeys(("count_nonzero", "bincount"), "gives counts"),
}
HERE = Path(__file__).parent


def users() -> list:
    """The functional operators (or in-place ones that have no functional variant) that users call."""
    return [
        op
        for op in CATALOG
        if not is_ours(op) and op.kind != "out" and not (op.kind == "inplace" and op.group.functional is not None)
    ]


def known(name: str) -> set[str]:
    """A list of operators that lack something, one a line with '#' comments; it may only become shorter."""
    lines = (HERE / "samples" / name).read_text().splitlines() if (HERE / "samples" / name).exists() else []
    return {line.split("#")[0].strip() for line in lines} - {""}


def check(missing: set[str], file: str, what: str) -> None:
    new, mended = sorted(missing - known(file)), sorted(known(file) - missing)
    assert not new, f"{len(new)} operators without {what}: {', '.join(new)}"
    assert not mended, f"take these out of samples/{file}, they have {what}: {', '.join(mended)}"


def test_every_operator_has_samples():
    missing = {str(op.schema.name) for op in users()} - set(TABLE) - set(NO_SAMPLE_REASONS)
    check(missing, "without_samples.txt", "a sample")


def test_every_operator_has_a_doc():
    """One overload of each name says what it does."""
    told = {op.schema.name.base for op in CATALOG if op.function.doc}
    check({op.schema.name.base for op in users()} - told, "without_doc.txt", "a doc line")


def test_every_differentiable_operator_has_a_derivative():
    missing = set()
    for op in users():
        integers_only = op.pointwise is not None and not {"float", "complex"} & set(op.pointwise.expressions)
        flags = op.pointwise is not None and op.pointwise.promotion == "always_bool"
        if op.is_implicit or op.derivative or integers_only or flags or not op.tensor_arguments or not op.kernels:
            continue
        if not any(str(r.type).startswith("Tensor") for r in op.schema.returns):
            continue
        if op.schema.name.base not in WITHOUT_GRADIENT:
            missing.add(str(op.schema.name))
    check(missing, "without_derivative.txt", "a derivative")


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
