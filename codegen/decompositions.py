"""Decompositions: what the operators that are written as formulas come down to.

A composite is replaced by the operators that its formula calls, these by theirs, until operators with kernels of
their own are left. Checked when generating: no operator comes back to itself, and every operator tagged `core` is one
that decompositions can end in, or a formula over such: a composite in C would hide what it comes down to.
"""

from __future__ import annotations

from .catalog import Catalog, Operator
from .emit_formula import operators_called
from .errors import ErrorCollector


class Decompositions:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.parts: dict[str, tuple[Operator, ...]] = {
            str(op.schema.name): operators_called(op, catalog)
            for op in catalog
            if any(k.kind == "formula" for k in op.kernels)
        }

    def leaves(self, op: Operator) -> dict[str, Operator]:
        """The operators without a formula that a call of `op` comes down to."""
        found: dict[str, Operator] = {}
        seen: set[str] = set()
        waiting = [op]
        while waiting:
            name = str((each := waiting.pop()).schema.name)
            if name in seen:
                continue
            seen.add(name)
            if name in self.parts:
                waiting.extend(self.parts[name])
            else:
                found[name] = each
        return found

    def cycle(self, op: Operator) -> list[str] | None:
        """Names from the operator back to itself."""
        start = str(op.schema.name)
        paths = [[start]]
        seen: set[str] = set()
        while paths:
            path = paths.pop()
            for part in self.parts.get(path[-1], ()):
                name = str(part.schema.name)
                if name == start:
                    return [*path, start]
                if name not in seen:
                    seen.add(name)
                    paths.append([*path, name])
        return None


def check_decompositions(catalog: Catalog) -> None:
    errors = ErrorCollector()
    decompositions = Decompositions(catalog)
    for name in decompositions.parts:
        op = catalog.by_name[name]
        origin = op.function.origin
        cycle = decompositions.cycle(op)
        if cycle is not None:
            what = f"the decomposition of {name} comes back to it: {' -> '.join(cycle)}"
            errors.add(origin.at("composite"), what, "give one of these operators a kernel")
    for op in catalog:
        if "core" in op.function.tags and str(op.schema.name) not in decompositions.parts and op.is_implicit:
            hidden = "what it comes down to is hidden in the C function of a composite"
            what = f"{op.schema.name} is tagged 'core', and {hidden}"
            fix = "write it as a formula, or give it a kernel (CompositeExplicitAutograd) and a derivative"
            errors.add(op.function.at("tags"), what, fix)
    errors.raise_if_any()
