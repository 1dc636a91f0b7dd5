"""`out_dtype`: which dtypes an out= may have.

`same` is the result's own dtype, `castable` any that the result can be cast to. PyTorch has both, and which one
follows from how its kernel of the operator came about. An entry without the key takes what most of its kind do:
`castable` where an expression computes it (`pointwise`), what its parts take where it is a formula, else `same`; and
`same` where the out= variant is one that only tensorpy.ops has (`ops_only`), into which PyTorch copies the result. A
reduction or a factory whose caller may choose the dtype is asked for that of its out=, which then is the result's own.
"""

from __future__ import annotations

from .catalog import Catalog, Operator
from .emit_formula import operators_called
from .errors import ErrorCollector
from .model import TENSOR


def takes_castable(op: Operator, catalog: Catalog) -> bool:
    """Whether the operator's out= (or that of its group) takes any dtype that the result can be cast to."""
    key = op.function.origin.out_dtype
    return key == "castable" if key is not None else _by_default(op, catalog)


def _by_default(op: Operator, catalog: Catalog) -> bool:
    out = op.group.out
    return (out is None or bool(out.variants)) and _by_kind(op, catalog)


def _by_kind(op: Operator, catalog: Catalog) -> bool:
    """As what computes it, whether or not only tensorpy.ops has its out=: a part is asked for its kind."""
    if op.pointwise is not None:
        return True
    if len(op.schema.returns) > 1:
        return False
    origin = catalog.by_name[str(op.function.origin.name)]
    if origin.function.composite is None:
        return False
    parts = [part for part in operators_called(origin, catalog) if part.schema.returns[:1]]
    tensors = [part for part in parts if part.schema.returns[0].type == TENSOR]
    return all(key == "castable" if (key := p.function.origin.out_dtype) else _by_kind(p, catalog) for p in tensors)


def check_out_dtypes(catalog: Catalog, collector: ErrorCollector | None = None) -> None:
    """The key stands where there is an out=, and says what does not hold anyway."""
    errors = ErrorCollector() if collector is None else collector
    for op in catalog:
        key = op.function.out_dtype
        if key is None:
            continue
        where = op.function.at("out_dtype")
        if op.group.out is None:
            what = f"{op.schema.name} has 'out_dtype', and no out= variant"
            errors.add(where, what, f"name '{op.schema.name.base}.out' in 'autogen', or take it out")
        elif (key == "castable") == _by_default(op, catalog):
            errors.add(where, f"{op.schema.name} would be '{key}' without 'out_dtype'", "take it out")
    if collector is None:
        errors.raise_if_any()
