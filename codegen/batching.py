"""How an operator is batched (csrc/batched/rule.h): deduced from its schema and tags, or said by its `batching`.

An entry says it where it cannot be deduced:

    lines      each tensor gets the batch as one dimension more in front; `lines, shared: index` but for those
               arguments, which all samples share
    samples    dimension 0 counts what does not meet (samples, planes): the batch becomes a part of it; `shared` too
    aligned    as lines, and the tensors broadcast: what is pointwise is so without saying
    parts      the kernel for all backends calls operators only
    loop       sample by sample
    a formula  over other operators, which then are batched

A kernel for the key `Batched` in the entry's `dispatch` goes before all that. Composites need nothing: their parts are
batched. What is neither deduced nor said loops.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .c_types import c_arguments
from .catalog import Catalog, Operator
from .errors import YamlError
from .model import Argument, FunctionSchema, base_of, is_tensor_like
from .tag_rules import NEEDS_VALUES

_SAID = re.compile(r"(lines|samples|aligned|parts|loop)(?:, shared: (\w+(?: \w+)*))?")

# What an argument of the name means where it is a number, or several.
DIMS = frozenset("dim dim0 dim1 dim2 dims dimension".split())
SIZES = frozenset(("size", "input_sizes"))
COUNTS = frozenset(("N", "input_size"))
# Numbers that are about one line or one element: the same for a batch.
PLAIN = frozenset(
    "index start end step length k offset diagonal split_sizes correction num_samples stable from to low high".split()
)


@dataclass(frozen=True)
class Batching:
    """A kind of rule.h, a role for each argument, another operator that the kind calls; or a formula."""

    kind: str
    roles: str
    other: Operator | None = None
    formula: str | None = None
    random: bool = False


def said(op: Operator) -> tuple[str, frozenset[str]] | None:
    """What the entry says, unless it is a formula: the word, and the arguments that all samples share."""
    text = op.function.origin.batching
    match = _SAID.fullmatch(text.strip()) if text is not None else None
    if match is None:
        return None
    shared = frozenset((match[2] or "").split())
    names = {a.name for a in op.function.origin.func.arguments}
    if not shared <= names:
        what = f"'{', '.join(sorted(shared - names))}' is no argument of {op.schema.name}"
        raise YamlError(op.function.origin.at("batching"), what, f"name some of {', '.join(sorted(names))}")
    return match[1], shared


def formula_of(op: Operator) -> str | None:
    """Of the entry itself; its variants go through the functional one."""
    text = op.function.batching
    return text if text is not None and _SAID.fullmatch(text.strip()) is None else None


def has_kernel(op: Operator) -> bool:
    return any(k.key == "Batched" for k in op.kernels)


def is_pointwise(op: Operator) -> bool:
    return op.pointwise is not None or "pointwise" in op.function.tags


def _is_reduction(op: Operator) -> bool:
    return op.reduction is not None or "reduction" in op.function.tags


def _role_of_number(op: Operator, a: Argument) -> str:
    type_, base = str(a.type), str(base_of(a.type))
    if base == "MemoryFormat":
        return "f"
    if base not in ("int", "SymInt"):
        return "."
    if op.schema.name.base == "permute":
        return "p"
    if a.name in DIMS:
        if op.schema.name.base in ("unsqueeze", "diag_embed", "stack"):
            return "e"
        if type_ == "int?":
            return "w"
        return "a" if _is_reduction(op) and "[" in type_ else "d"
    if a.name in SIZES and "[" in type_:
        return "x" if op.schema.name.base == "expand" else "s"
    if a.name == "repeats":
        return "r"
    return "m" if a.name in COUNTS else "."


def _roles(op: Operator, shared: frozenset[str]) -> str:
    """One character for each argument."""
    widened = any(_role_of_number(op, a) in "xr" for a in op.schema.arguments)
    word = said(op)
    tensor = "A" if is_pointwise(op) or widened or (word is not None and word[0] == "aligned") else "T"
    out = []
    for argument in c_arguments(op.schema):
        a = argument.argument
        if is_tensor_like(a.type):
            out.append("U" if a.name in shared else tensor)
        else:
            out.append(_role_of_number(op, a))
    return "".join(out)


def _is_known(a: Argument) -> bool:
    """A number whose meaning is known, or that can mean no dimension."""
    if is_tensor_like(a.type) or str(base_of(a.type)) not in ("int", "SymInt"):
        return True
    return a.name in DIMS | SIZES | PLAIN or a.name in ("repeats",)


def _tensors(schema: FunctionSchema) -> list[Argument]:
    return [a for a in schema.arguments if is_tensor_like(a.type)]


def _along_dim(op: Operator, catalog: Catalog) -> Operator | None:
    """The overload of a reduction of everything that reduces along dimensions."""
    names = {a.name for a in op.schema.arguments}
    if len(_tensors(op.schema)) != 1 or names & DIMS:
        return None
    for other in catalog.overloads(op.schema.name.unqualified):
        others = {a.name for a in other.schema.arguments}
        if names | {"dim", "keepdim"} == others and other.kind == op.kind:
            return other
    return None


def _gives_tensors(schema: FunctionSchema) -> bool:
    return bool(schema.returns) and all(is_tensor_like(r.type) for r in schema.returns)


def batching_of(op: Operator, catalog: Catalog) -> Batching | None:
    """None for an operator that is never met at the key: a composite, or one with a kernel there."""
    if has_kernel(op):
        return None
    formula = formula_of(op)
    if formula is not None:
        return Batching("formula", "", formula=formula)
    if op.is_implicit:
        return None
    random = "nondeterministic_seeded" in op.function.tags
    if not _tensors(op.schema) and not random:
        return None
    kind, shared, other = _kind(op, catalog, random)
    return Batching(kind, _roles(op, shared), other, random=random)


def _kind(op: Operator, catalog: Catalog, random: bool) -> tuple[str, frozenset[str], Operator | None]:
    schema, none = op.schema, frozenset[str]()
    if op.kind == "out":
        return "OUT", none, None
    if any(tag in op.function.tags for tag in NEEDS_VALUES) or (_tensors(schema) and not _gives_tensors(schema)):
        return "VALUES", none, None
    functional = op.group.functional
    source = catalog.by_name[str(functional.name)] if functional is not None else None
    if "inplace_view" in op.function.tags:
        view = catalog.by_name.get(str(schema.name).replace("_", "", 1)) or _without_underscore(op, catalog)
        return ("GEOMETRY", none, view) if view is not None else ("VALUES", none, None)
    word = said(op)
    if op.kind == "inplace" and source is not None and (has_kernel(source) or formula_of(source) is not None):
        return "INPLACE", none, source
    if word is not None:
        return "LINES" if word[0] == "aligned" else word[0].upper(), word[1], None
    along = _along_dim(op, catalog)
    if along is not None:
        return "WHOLE", none, along
    one = len(_tensors(schema)) <= 1 and all(map(_is_known, schema.arguments))
    sized = any(_role_of_number(op, a) == "s" for a in schema.arguments)
    if is_pointwise(op) or (one and (_tensors(schema) or sized)):
        return "LINES", none, None
    return "LOOP", none, None


def _without_underscore(op: Operator, catalog: Catalog) -> Operator | None:
    """The view `transpose.int` of `transpose_`: the overload of the name with the same arguments."""
    types = [str(a.type) for a in op.schema.arguments]
    for other in catalog.overloads(op.schema.name.base):
        if [str(a.type) for a in other.schema.arguments] == types and other.is_view:
            return other
    return None
