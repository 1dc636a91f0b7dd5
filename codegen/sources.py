"""What the YAML counts on in the tree's C files: that each kernel, meta function and composite it names is there, and
in which file.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from pathlib import Path

from .catalog import Catalog, Operator, structured_name
from .emit_backend import native_declarations
from .emit_seen import Names
from .errors import ErrorCollector, Location
from .pointwise import check_declaration
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
    if op.pointwise is not None and op.pointwise.check is not None:
        found[f"tp_check_{op.pointwise.check}"] = op.function.origin.at("pointwise")
    return found


class _Advice:
    """What to write for a C function that is not there: its declaration, and the file of its family's other kernels."""

    def __init__(self, catalog: Catalog, csrc: Path) -> None:
        self.declarations = native_declarations(catalog)
        self.files = files_of_kernels(catalog, csrc)
        self.family = {name: family for family, ops in catalog.families().items() for op in ops for name in _needed(op)}
        texts = (path.read_text() for path in csrc.rglob("*.c"))
        self.unused = {name for text in texts for name in _DEFINED.findall(text)} - set(self.family)
        self.folder = csrc.name

    def file(self, name: str) -> str:
        family = self.family[name]
        beside = Counter(file for other, file in self.files.items() if self.family.get(other) == family)
        return beside.most_common(1)[0][0] if beside else f"a file of {self.folder}/native"

    def fix(self, name: str) -> str:
        meant = difflib.get_close_matches(name, self.unused, n=1, cutoff=0.8)
        lines = self.declarations.get(name, check_declaration(name)).strip().splitlines()
        write = f"write in {self.file(name)}:\n" + "\n".join(f"        {line}" for line in lines)
        return f"did you mean '{meant[0]}'? If not, {write}" if meant else write


def check_sources(catalog: Catalog, csrc: Path) -> None:
    """YamlErrors for what no C file of the tree names, before a compiler runs for minutes to say so."""
    texts = [Names(path.read_text()) for path in sorted(csrc.rglob("*.[ch]"))]
    words = set().union(*(text.words for text in texts))
    missing: dict[str, tuple[Location, Operator]] = {}  # of a group, by the variant that names it, which comes last
    for op in catalog:
        for name, where in _needed(op).items():
            if name not in words and not any(text.patterns and name in text for text in texts):
                missing[name] = where, op
    if not missing:
        return
    errors, advice = ErrorCollector(), _Advice(catalog, csrc)
    for name, (where, op) in missing.items():
        what = f"no C file of {csrc.name}/ has the function {name}, which {op.schema.name} needs"
        errors.add(where, what, advice.fix(name))
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
