"""`make coverage`: the rules name what is there, everything has a reason, and the page is fresh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.catalog import Catalog, build_catalog
from codegen.check import Registry, load_registry
from codegen.coverage import (
    MISSING,
    PAGE,
    YAML,
    Family,
    Theirs,
    by_family,
    gradients,
    left_of,
    mistakes,
    page,
    read_families,
    read_theirs,
)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(YAML)


@pytest.fixture(scope="module")
def catalog(registry: Registry) -> Catalog:
    return build_catalog(registry.functions, registry.derivatives, registry.autocast, registry.tags)


@pytest.fixture
def theirs(torch_yaml: Callable[[str], Path]) -> Theirs:
    return read_theirs(torch_yaml("ATen/native/native_functions.yaml").parents[2])


def test_every_operator_that_is_not_here_has_a_reason(theirs: Theirs, catalog: Catalog) -> None:
    """And the rules name PyTorch's operators only, and no family that is empty."""
    left = left_of(theirs, catalog)
    assert list(mistakes(theirs, read_families(), left)) == []
    assert len(left) < 0.3 * len(theirs.schemas)


def test_no_gradient_is_missing(theirs: Theirs, registry: Registry, catalog: Catalog) -> None:
    found = gradients(theirs, registry, catalog)
    assert len(found) > 100
    assert [name for name, way in found if way == MISSING] == []


def test_the_page_is_fresh(theirs: Theirs, registry: Registry) -> None:
    assert PAGE.read_text() == page(theirs, read_families(), registry), "docs/coverage.md is stale: run `make coverage`"


def test_mistakes_are_seen(theirs: Theirs) -> None:
    """An operator without a reason, a pattern for nothing, a family that is empty."""
    families = [Family("a", ("relu", "no_such_.*"), "why"), Family("b", (r"add\.out",), "why")]
    found = list(mistakes(theirs, families, ["relu", "relu.out", "sin"]))
    assert found == [
        "sin is not here, and no family says why",
        "a: PyTorch has no operator 'no_such_.*'",
        "b: all of it is here; take the family out",
    ]
    assert by_family(["relu", "relu.out", "sin"], families) == ({"a": ["relu", "relu.out"], "b": []}, ["sin"])
