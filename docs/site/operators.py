"""The reference of operators: a page for each file of yaml/native_functions/, an entry for each name."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from codegen.catalog import Catalog, Operator
from codegen.help_text import markdown
from codegen.python_api import PythonFunction, make_signature, python_functions, text_signature, told_by
from tensorpy.testing.samples import TABLE
from tensorpy.testing.samples.catalog import CATALOG, YAML
from tensorpy.testing.support import DEVICES, dtypes_text, kernel_of

from .names import Names, Page, escaped, mentioned

FOLDER = "reference/operators"
PLACES = {"": ("", "_C"), "nn": ("nn.functional", "_C._nn")}  # where Python has the functions of a python_module


def _place(function: PythonFunction) -> str | None:
    """The public name of a function, below `tensorpy`; None: only `ops` has it, or Python has another there."""
    for module in PLACES.get(function.module, (function.module,)):
        name = function.name.removeprefix(f"{function.module}_") if function.module else function.name
        try:
            owner = importlib.import_module(f"tensorpy.{module}".rstrip("."))
        except ModuleNotFoundError:
            continue
        value = getattr(owner, name, None)
        if value is not None:
            return f"{module}.{name}".lstrip(".") if type(value).__module__ != "builtins" or _is_c(value) else None
    return None


def _is_c(value: object) -> bool:
    return type(value).__name__ in ("builtin_function_or_method", "_overridable")


def _signature(function: PythonFunction) -> str:
    head = text_signature(function)
    return re.sub(r"\((\$module|\$self)(, )?", "(", head[head.index("(") :])


def _base(name: str) -> str:
    """The name whose entry a function's stands in: an in-place one's is the functional one's."""
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def _facts(op: Operator) -> Iterator[str]:
    info = TABLE.get(str(op.schema.name))
    if info:
        yield f"- Dtypes: {dtypes_text(info.dtypes)}"
    ways = {device: kernel_of(op, device) or "host" for device in DEVICES}
    if len(set(ways.values())) == 1:
        yield f"- {' and '.join(ways)}: {ways[DEVICES[0]]}"
    else:
        yield "- " + ", ".join(f"{device}: {way}" for device, way in ways.items())
    for formula in op.derivative.formulas if op.derivative else ():
        text = formula.text.strip()
        shown = f"`{text}`" if len(text) < 110 and "\n" not in text else f"at `{formula.location.in_tree}`"
        yield f"- Gradient of {', '.join(f'`{n}`' for n in formula.names)}: {shown}"
    policies = sorted({f"`{e.policy}`" + (f" on {e.device}" if e.device else "") for e in op.autocast})
    if policies:
        yield f"- Under autocast: {', '.join(policies)}"


def _entry(base: str, functions: list[PythonFunction], names: Names, depth: int) -> str:
    lines = [f"{'#' * depth} {escaped(base)}\n"]
    known: list[str] = []
    for f in sorted(functions, key=lambda f: (f.name != base, f.method)):
        place = f"Tensor.{f.name}" if f.method else _place(f)
        space = f.signatures[0].op.schema.name.namespace
        full = f"tensorpy.ops.{space or 'aten'}.{f.name}" if space or not place else f"tensorpy.{place}"
        if names.add(full):
            known.append(full)
            lines.append(f":::{{py:{'method' if f.method else 'function'}}} {full}{_signature(f)}\n:::\n")
    told = next((f for f in functions if f.told.example), next((f for f in functions if f.doc), functions[0]))
    lines.append(markdown(told, escaped) + "\n")
    signatures = {str(s.op.schema): s.op for f in functions for s in f.signatures}
    outs = {str(s.out.schema): s.out for f in functions for s in f.signatures if s.out}
    lines.append("```text\n" + "\n".join([*signatures, *outs]) + "\n```\n")
    first = next(iter(signatures.values()))
    lines += _facts(first)
    tags = sorted({t for op in signatures.values() for t in op.function.tags})
    where = first.function.origin.location.in_tree
    lines.append(f"- Declared at `{where}`" + (f"; tags: {', '.join(f'`{t}`' for t in tags)}" if tags else ""))
    lines.append(mentioned(*known))
    return "\n".join(lines) + "\n"


def _about(family: str) -> tuple[str, str]:
    """A title, and what the file says at its top."""
    path = next(p for p in (YAML / "native_functions").glob("*.yaml") if re.sub(r"\W", "_", p.stem) == family)
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    about = " ".join(lines)
    title = re.split(r"\.( |$)", about)[0]
    for mark in (":", ",", " that "):
        title = title if len(title) < 60 else title.split(mark)[0]
    return title, about


def _family(name: str, functions: list[PythonFunction], names: Names) -> Page:
    title, about = _about(name)
    parts = [f"# {escaped(title)}\n", escaped(about) + "\n" if about.rstrip(".") != title else ""]
    by_base = {
        base: list(found)
        for base, found in groupby(sorted(functions, key=lambda f: _base(f.name)), key=lambda f: _base(f.name))
    }
    parts += [_entry(base, own, names, 2) for base, own in by_base.items() if not base.startswith("_")]
    private = [_entry(base, own, names, 3) for base, own in by_base.items() if base.startswith("_")]
    parts += ["## By private names\n", *private] if private else []
    return Page(f"{FOLDER}/{name}.md", "\n".join(parts))


def _index(pages: list[Page], catalog: Catalog, functions: int) -> Page:
    rows = sorted((page.title, Path(page.path).stem) for page in pages)
    tree = "\n".join(f"/{FOLDER}/{stem}" for _, stem in rows)
    text = f"""# Operators

{sum(1 for _ in catalog)} operators under {functions} names, by the files of `yaml/native_functions/` that declare them.
An entry has the calls from Python, the schemas (each is `tensorpy.ops.aten.<name>.<overload>` too), the dtypes that
its samples are tested in, how the CPU and OpenCL compute it ([the words](../support.md)), the formulas of its
[gradient](../autograd.md), what [autocast](../autocast.md) does with it, and its [tags](../adding_an_operator.md).

```{{toctree}}
:maxdepth: 1

{tree}
```
"""
    return Page(f"{FOLDER}.md", text)


def _bound_by_hand() -> Iterator[PythonFunction]:
    """Operators whose calls from Python are written in C or Python, and those of other namespaces."""
    for op in CATALOG:
        elsewhere = op.function.manual_cpp_binding or op.schema.name.namespace
        if elsewhere and op.function.variants and op.kind != "out":
            name, told = op.schema.name.unqualified, told_by(op.function.origin)
            yield PythonFunction(name, "", False, (make_signature(op, None, False),), told)


def pages(names: Names) -> list[Page]:
    functions = [*python_functions(CATALOG), *_bound_by_hand()]
    families: dict[str, list[PythonFunction]] = {}
    for f in functions:
        families.setdefault(f.signatures[0].op.family, []).append(f)
    found = [_family(name, own, names) for name, own in sorted(families.items())]
    return [*found, _index(found, CATALOG, len(functions))]
