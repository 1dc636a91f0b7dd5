"""docs/torch.md is what the package has today: a name of PyTorch's that comes or goes changes the page."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from tensorpy._as_torch import names, page

PAGE = Path(__file__).parents[2] / "docs" / "torch.md"


def test_the_page_is_fresh(tmp_path: Path) -> None:
    """In a process of its own: `as_torch()`, which other tests call, gives tensorpy names."""
    written = tmp_path / "torch.md"
    subprocess.run([sys.executable, "-m", "tensorpy._as_torch.page", str(written)], check=True)
    assert PAGE.read_text() == written.read_text(), "docs/torch.md is stale: run `make torch-names`"


@cache
def missing_by_reason() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name in page.missing():
        names.setdefault(page.reason(name), []).append(name)
    return names


@pytest.mark.parametrize("patterns", page.reasons(), ids=lambda patterns: patterns[0])
def test_a_reason_is_of_names_that_are_missing(patterns: tuple[str, ...]) -> None:
    ours = missing_by_reason().get(page.reasons()[patterns], [])
    assert not [p for p in patterns if not any(fnmatchcase(name, p) for name in ours)], "nothing is missing there"


def test_a_name_is_there_or_missing() -> None:
    assert page.is_there("torch.nn", "Linear") and not page.is_there("torch.nn", "Linar")
    assert page.is_there("torch.Tensor", "exp") and not page.is_there("torch.nowhere", "exp")
    assert page.is_name_only("torch.onnx", "export") and not page.is_name_only("torch.nn", "Linear")


# the modules that programs are written with
WHOLE = (
    "torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.optim torch.optim.lr_scheduler torch.utils.data "
    "torch.distributions torch.autograd torch.func torch.amp torch.linalg torch.fft torch.special"
).split()


@pytest.mark.parametrize("module", WHOLE)
def test_at_least_95_percent_are_there(module: str) -> None:
    known = names.modules()[module]
    there = [name for name in known if page.is_there(module, name) and not page.is_name_only(module, name)]
    assert len(there) >= 0.95 * len(known), sorted(known - set(there))
