"""Fills the table: an entry for each operator that has samples of its own, or whose family has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import families
from .catalog import CATALOG
from .table import (
    ALL_DTYPES,
    DOMAINS,
    GIVEN,
    LEAVES,
    MORE,
    NO_GRADCHECK,
    OPTIONS,
    REFERENCES,
    TABLE,
    Make,
    OpInfo,
    Samples,
)

if TYPE_CHECKING:
    from codegen.catalog import Operator


def _dtypes(op: Operator) -> tuple[str, ...]:
    if op.pointwise is not None:
        return tuple(d for leaf in op.pointwise.expressions for d in LEAVES[leaf])
    return ALL_DTYPES


def _chained(*functions: Samples) -> Samples:
    def generate(make: Make) -> Iterator[Any]:
        for function in functions:
            yield from function(make)

    return generate


def build() -> None:
    """Fills the table: what was registered, and families of samples for pointwise operators and reductions."""
    for op in CATALOG:
        name = str(op.schema.name)
        random = "nondeterministic_seeded" in {str(t) for t in op.function.tags}
        if op.kind == "out" or (op.kind == "inplace" and op.group.shown is not None) or name in TABLE:
            continue
        source = name.replace("_copy", "", 1) if "view_copy" in op.function.tags else name
        function, options = GIVEN.get(source, (families.family_of(op), {}))
        if function is None:
            continue
        module = function.__module__.rpartition(".")[2]
        if name in MORE:
            function = _chained(function, *MORE[name])
        fields = {
            "dtypes": _dtypes(op),
            "reference": REFERENCES.get(source, REFERENCES.get(source.partition(".")[0])),
            "random": random,
            "family": "pointwise" if op.pointwise else "reduction" if op.reduction else module,
            "domain": DOMAINS.get(name, DOMAINS.get(op.schema.name.base, (None, None))),
            **OPTIONS.get(name, OPTIONS.get(op.schema.name.base, {})),
            **options,
        }
        if op.schema.name.base in NO_GRADCHECK or name in NO_GRADCHECK:
            fields["gradcheck"] = False
        TABLE[name] = OpInfo(name, op, function, **fields)
