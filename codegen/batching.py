"""How an operator is batched (csrc/batched/rule.h): deduced from its schema and tags, or said by its `batching`.

The one function that decides, for the tree and for libraries from outside (library.py). It deduces only what an entry
proves: a pointwise operator, a reduction along dimensions, a variant of another. What a kernel in C does with one
dimension more cannot be seen, so its entry says it:

    lines      each tensor gets the batch as one dimension more in front
    samples    dimension 0 counts what does not meet (samples, planes): the batch becomes a part of it
    aligned    as lines, and the tensors broadcast: what is pointwise is so without saying
    parts      the kernel for all backends calls operators only
    loop       sample by sample, and what depends on values has to have one shape for all
    a formula  over other operators, which then are batched

and, after the word, what arguments mean where their names do not tell (`lines, shared: index; dims: axis`):

    shared     tensors that all samples share
    dims       numbers of dimensions, as `dim` is
    new        numbers of dimensions, counted as unsqueeze counts: of a tensor with one more
    order      all dimensions in another order
    wide       sizes that tensors are widened to, as expand does

A kernel for the key `Batched` in the entry's `dispatch` goes before all that. Composites need nothing: their parts are
batched, and where nothing is, one whose entry says what it does with a layout goes on to that. What is neither deduced
nor said loops.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from . import layouts
from .c_types import c_arguments
from .catalog import Catalog, Operator
from .errors import YamlError, suggest
from .model import Argument, FunctionSchema, base_of, is_tensor_like
from .tag_rules import NEEDS_VALUES

_SAID = re.compile(r"(lines|samples|aligned|parts|loop)(?:,((?: \w+: \w+(?: \w+)*;?)+))?")
_MEANINGS = ("shared", "dims", "new", "order", "wide")

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


@dataclass(frozen=True)
class Said:
    """What an entry says, unless it is a formula: the word, and what it says of arguments, by their names."""

    word: str
    meanings: Mapping[str, str]

    def means(self, argument: str, meaning: str) -> bool:
        return self.meanings.get(argument) == meaning


def said(op: Operator) -> Said | None:
    origin = op.function.origin
    match = _SAID.fullmatch(origin.batching.strip()) if origin.batching is not None else None
    if match is None:
        return None
    where, meanings = origin.at("batching"), dict[str, str]()
    arguments = {a.name: a for a in origin.func.arguments}
    for part in (match[2] or "").split(";"):
        meaning, _, names = part.strip().partition(": ")
        if meaning and meaning not in _MEANINGS:
            raise YamlError(
                where, f"'{meaning}' says nothing of an argument", suggest(meaning, _MEANINGS, "write dims")
            )
        for name in names.split():
            if name not in arguments:
                what = f"'{name}' is no argument of {op.schema.name}"
                raise YamlError(where, what, f"name some of {', '.join(sorted(arguments))}")
            if is_tensor_like(arguments[name].type) != (meaning == "shared"):
                what = f"'{name}' of {op.schema.name} is {arguments[name].type}, which cannot be '{meaning}'"
                raise YamlError(where, what, "name tensors as shared, and numbers as the rest")
            meanings[name] = meaning
    return Said(match[1], meanings)


def formula_of(op: Operator) -> str | None:
    """The formula of the entry itself; its variants go through the functional one."""
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
    word = said(op)
    meaning = word.meanings.get(a.name) if word is not None else None
    if meaning in ("order", "new", "wide"):
        return {"order": "p", "new": "e", "wide": "x"}[meaning]
    if a.name in DIMS or meaning == "dims":
        if type_ == "int?":
            return "w"
        return "a" if _is_reduction(op) and "[" in type_ else "d"
    if a.name in SIZES and "[" in type_:
        return "s"
    if a.name == "repeats":
        return "r"
    return "m" if a.name in COUNTS else "."


def _roles(op: Operator) -> str:
    """One character for each argument."""
    widened = any(_role_of_number(op, a) in "xr" for a in op.schema.arguments)
    word = said(op)
    tensor = "A" if is_pointwise(op) or widened or (word is not None and word.word == "aligned") else "T"
    # The functional form of an operator that writes: its first tensor stands for what is written.
    written = 0 if op.function.autogenerated and op.kind == "functional" and not is_pointwise(op) else -1
    out = []
    for i, argument in enumerate(c_arguments(op.schema)):
        a = argument.argument
        if is_tensor_like(a.type):
            out.append("U" if word is not None and word.means(a.name, "shared") else "T" if i == written else tensor)
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
    for other in catalog.overloads(op.schema.name.qualified):
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
    if formula is not None and _gives_tensors(op.schema):
        return Batching("formula", "", formula=formula)
    if op.is_implicit and said(op) is None:
        return _of_composite(op, catalog)
    random = "nondeterministic_seeded" in op.function.tags
    if not _tensors(op.schema) and not random:
        return None
    kind, other = _kind(op, catalog)
    roles = _roles(op)
    if kind not in ("LINES", "SAMPLES", "LOOP", "PARTS"):  # another variant is called, or none
        roles = roles.replace("U", "T")
    return Batching(kind, roles, other, random=random)


def _of_composite(op: Operator, catalog: Catalog) -> Batching | None:
    """Where nothing is batched, one that knows layouts goes on to them."""
    group = [op, *(catalog.by_name[str(schema.name)] for schema in (op.group.functional,) if schema is not None)]
    knows = any(layouts.said(one, place) is not None for one in group for place in layouts.PLACES)
    return Batching("PARTS", _roles(op)) if knows and _tensors(op.schema) else None


def _kind(op: Operator, catalog: Catalog) -> tuple[str, Operator | None]:
    schema = op.schema
    if op.kind == "out":
        return "OUT", None
    word, gives = said(op), _gives_tensors(schema)
    looped = word is not None and word.word == "loop" and gives
    if (any(tag in op.function.tags for tag in NEEDS_VALUES) and not looped) or (_tensors(schema) and not gives):
        return "VALUES", None
    functional = op.group.functional
    source = catalog.by_name[str(functional.name)] if functional is not None else None
    if "inplace_view" in op.function.tags:
        view = catalog.by_name.get(str(schema.name).replace("_", "", 1)) or _without_underscore(op, catalog)
        return ("GEOMETRY", view) if view is not None and view.is_view else ("VALUES", None)
    if "view_copy" in op.function.tags and op.function.origin.batching is None:
        return "PARTS", None  # the view and its copy, which know what a batch is
    if op.kind == "inplace" and source is not None and (has_kernel(source) or formula_of(source) is not None):
        return "INPLACE", source
    if word is not None:
        return "LINES" if word.word == "aligned" else word.word.upper(), None
    along = _along_dim(op, catalog)
    if along is not None:
        return "WHOLE", along
    return "LINES" if is_pointwise(op) or _is_along_dims(op) else "LOOP", None


def _is_along_dims(op: Operator) -> bool:
    """A reduction that is told its dimensions, of one tensor, and whose other numbers are about one line."""
    arguments = op.schema.arguments
    told = any(a.name in DIMS for a in arguments)
    return _is_reduction(op) and told and len(_tensors(op.schema)) == 1 and all(map(_is_known, arguments))


def _without_underscore(op: Operator, catalog: Catalog) -> Operator | None:
    """The view `transpose.int` of `transpose_`: the overload of the name with the same arguments."""
    types = [str(a.type) for a in op.schema.arguments]
    for other in catalog.overloads(op.schema.name.base):
        if [str(a.type) for a in other.schema.arguments] == types and other.is_view:
            return other
    return None
