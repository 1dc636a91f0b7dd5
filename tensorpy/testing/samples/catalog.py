"""The operators that the YAML declares: those of the checkout that this package lies in, or of the installed copy."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codegen.catalog import Catalog

PACKAGE = Path(__file__).resolve().parents[2]


def _generator() -> str:
    """The generator's package: a checkout has it beside tensorpy, an installation inside."""
    spec = importlib.util.find_spec("codegen")
    places = [Path(place).resolve() for place in spec.submodule_search_locations or ()] if spec else []
    return "codegen" if PACKAGE.parent / "codegen" in places else "tensorpy.codegen"


def _load() -> Catalog:
    catalog: Catalog = importlib.import_module(f"{_generator()}.__main__").load_catalog(YAML)
    return catalog


YAML = next(path for path in (PACKAGE / "yaml", PACKAGE.parent / "yaml") if path.is_dir())
CATALOG = _load()
