"""What the YAML counts on in the tree's C files: that each kernel, meta function and composite it names is there."""

from __future__ import annotations

from pathlib import Path

from .catalog import Catalog, Operator, structured_name
from .emit_seen import Names
from .errors import ErrorCollector, Location, suggest
from .support import kernels_here


def _needed(op: Operator) -> dict[str, Location]:
    """C function -> the line that asks for it."""
    lines = {k.name: k.location for k in kernels_here(op.function.origin)}
    found = {}
    for source in op.kernels:
        if source.kind in ("direct", "structured") and source.name:
            found[source.name] = lines.get(source.name, op.function.at("func"))
        if source.kind == "structured":
            found[f"{structured_name(op.group)}_meta"] = op.function.origin.at("structured")
    return found


def check_sources(catalog: Catalog, csrc: Path) -> None:
    """YamlErrors for what no C file of the tree names, before a compiler runs for minutes to say so."""
    texts = [Names(path.read_text()) for path in sorted(csrc.glob("*/*.[ch]"))]
    words = set().union(*(text.words for text in texts))
    errors = ErrorCollector()
    for op in catalog:
        for name, where in _needed(op).items():
            if name in words or any(text.patterns and name in text for text in texts):
                continue
            like = [word for word in words if word.endswith(name[-4:])]
            fix = suggest(name, like, "write it, as NativeFunctions.h declares it, or mend the name")
            errors.add(where, f"no C file of {csrc.name}/ has the function {name}, which {op.schema.name} needs", fix)
    errors.raise_if_any()
