from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def torch_yaml() -> Callable[[str], Path]:
    """Gives a YAML file of the installed torch, by its name; torch itself is not imported."""

    def find(name: str) -> Path:
        spec = importlib.util.find_spec("torchgen")
        folders = spec.submodule_search_locations if spec is not None else None
        path = Path(folders[0], "packaged", name) if folders else None
        if path is None or not path.exists():
            pytest.skip("torch is not installed")
        return path

    return find
