"""What the YAML counts on in the tree's C files: that each kernel, meta function and composite it names is there, and
in which file.
"""

from __future__ import annotations

import re
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
    texts = [Names(path.read_text()) for path in sorted(csrc.rglob("*.[ch]"))]
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


_DEFINED = re.compile(r"^[A-Za-z_][\w \t*]*?(\w+)\((?:[^;(){}]|\([^()]*\))*\)\s*\{", re.M)


def files_of_kernels(catalog: Catalog, csrc: Path) -> dict[str, str]:
    """C function -> "csrc/native/index/sort.c", of the kernels of operators and primitives; one that a macro
    makes is in the file whose words its name is made of.
    """
    texts = {f"{csrc.name}/{path.relative_to(csrc)}": path.read_text() for path in sorted(csrc.rglob("*.c"))}
    found = {name: file for file, text in texts.items() for name in _DEFINED.findall(text)}
    wanted = {name for op in catalog for name in _needed(op)}
    wanted |= {primitive.kernel(key) for primitive in catalog.primitives for key in primitive.backends}
    made = {file: Names(text) for file, text in texts.items()}
    for name in sorted(wanted - set(found)):
        file = next((file for file, names in made.items() if names.patterns and name in names), None)
        if file is not None:
            found[name] = file
    return {name: found[name] for name in sorted(wanted & set(found))}
