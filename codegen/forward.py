"""How an operator's tangent is computed (csrc/forward/rule.h): said by its entry in derivatives/, or deduced from it.

    result: auto_linear         the operator itself, of the tangents
    result: auto_element_wise   the backward formulas, of the tangents in the gradient's place
    result: expression          `self_p` is the argument, `self_t` its tangent; `values: expression` by a result's name

An expression is a sum of terms; each is computed where a tangent that it uses is there, with zeros for the others.

Without a word an operator is
    element-wise    if it is pointwise
    linear          if no gradient depends on the value of anything that has one, and none refuses a call
    multilinear     if each gradient depends on the other arguments, and not on its own
and else its tangent is the gradient of its gradient, which is exact and slower.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .autograd_nodes import Node, node_of
from .batching import is_pointwise
from .catalog import Catalog, Operator
from .errors import YamlError
from .formula import kind_of, parse, used
from .model import DerivativeEntry, Formula, FunctionSchema, is_tensor_like


@dataclass(frozen=True)
class Term:
    """A part of output number `output`; the arguments whose tangents it uses."""

    output: int
    uses: tuple[str, ...]
    text: str
    formula: Formula
    pointwise: bool = False


@dataclass(frozen=True)
class Forward:
    """A kind of rule.h, the arguments whose tangents count, and what the kind works with."""

    kind: str
    counts: frozenset[str] = frozenset()
    terms: tuple[Term, ...] = ()
    other: Operator | None = None


def _raises(formula: Formula) -> bool:
    return any(isinstance(node, ast.Raise) for s in parse(formula.text, formula.location) for node in ast.walk(s))


def _is_zero(formula: Formula) -> bool:
    """Whether a gradient is zero: it is linear in that of the results, and reads nothing but shapes."""
    return not _raises(formula) and not _values_used(formula)


def _smooth(entry: DerivativeEntry) -> tuple[Formula, ...]:
    """The gradients that are not zero."""
    return tuple(f for f in entry.formulas if not f.non_differentiable and not _is_zero(f))


class _WithoutLikes(ast.NodeTransformer):
    """Takes out what reads of a tensor its shape alone."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node.func:
            case ast.Name(id="zeros_like" | "ones_like") | ast.Attribute(attr="new_zeros"):
                return ast.Constant(0)
        return self.generic_visit(node)


def _values_used(formula: Formula) -> frozenset[str]:
    """The names whose values, not shapes, a formula reads."""
    body = [_WithoutLikes().visit(statement) for statement in parse(formula.text, formula.location)]
    uses = used("\n".join(map(ast.unparse, body)), formula.location)
    return frozenset(name for name, use in uses.items() if use.whole or use.indices)


def _results(schema: FunctionSchema) -> frozenset[str]:
    names = {f"result{i}" for i in range(len(schema.returns))} | {"result"}
    return frozenset(names | {r.name for r in schema.returns if r.name is not None})


def _multilinear(formulas: tuple[Formula, ...], counts: frozenset[str], results: frozenset[str]) -> bool:
    for formula in formulas:
        values = _values_used(formula)
        if len(formula.names) > 1 or values & results or values & counts != counts - set(formula.names):
            return False
    return True


# ---- terms ----


def _tangents_in(text: str, formula: Formula, schema: FunctionSchema) -> tuple[str, ...]:
    names = used(text, formula.location)
    return tuple(a.name for a in schema.arguments if f"{a.name}_t" in names)


def _summands(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_summands(left), *_summands(right)]
        case _:
            return [node]


def _texts(formula: Formula) -> list[str]:
    """A formula that is one expression, by its summands."""
    match parse(formula.text, formula.location):
        case [ast.Expr(value=value)]:
            return [ast.unparse(part) for part in _summands(value)]
        case _:
            return [formula.text]


def _output(node: Node, name: str, formula: Formula) -> int:
    for i in range(len(node.schema.returns)):
        if name in node.output_names(i):
            return i
    raise YamlError(formula.location, f"{node.schema.name} has no result '{name}'", "name a result of its schema")


def _terms(node: Node, formula: Formula) -> list[Term]:
    if len(formula.names) > 1:
        raise YamlError(formula.location, "a tangent of several results at once", "write a line for each")
    output = _output(node, formula.names[0], formula)
    terms = []
    for text in _texts(formula):
        uses = _tangents_in(text, formula, node.schema)
        if not uses:
            fix = "use the tangent of an argument, as `self_t`, in each summand"
            raise YamlError(formula.location, f"`{text}` is not linear in the tangents", fix)
        terms.append(Term(output, uses, text, formula))
    return terms


def _pointwise_terms(node: Node) -> tuple[Term, ...]:
    for formula in _smooth(node.entry):
        if len(formula.names) > 1:
            fix = "write 'result: expression' with `self_p` and `self_t`"
            raise YamlError(formula.location, f"{node.schema.name} is pointwise, and two gradients are one call", fix)
    return tuple(Term(0, f.names, f.text, f, pointwise=True) for f in _smooth(node.entry))


def _said(node: Node, counts: frozenset[str]) -> Forward | None:
    forward = node.entry.forward
    if not forward:
        return None
    match forward[0].text.strip():
        case "auto_linear":
            return Forward("LINEAR", counts)
        case "auto_element_wise":
            return Forward("TERMS", counts, _pointwise_terms(node))
        case _:
            terms = tuple(term for formula in forward for term in _terms(node, formula))
            return Forward("TERMS", frozenset(name for term in terms for name in term.uses), terms)


# ---- an operator ----


def _of_entry(op: Operator, node: Node) -> Forward:
    formulas = _smooth(node.entry)
    counts = frozenset(name for f in formulas for name in f.names)
    results = _results(node.schema)
    said = _said(node, counts)
    if said is not None:
        return said
    if not counts:
        return Forward("NONE")
    if is_pointwise(op):
        return Forward("TERMS", counts, _pointwise_terms(node))
    if any(map(_raises, formulas)):
        return Forward("TWICE")
    if not any(_values_used(f) & (counts | results) for f in formulas):
        return Forward("LINEAR", counts)
    if _multilinear(formulas, counts, results):
        return Forward("MULTILINEAR", counts)
    return Forward("TWICE")


def forward_of(op: Operator, catalog: Catalog) -> Forward | None:
    """None: nothing is known, as of an operator without a derivative."""
    if op.derivative is None or op.is_implicit or op.kind == "out":
        return None
    if "inplace_view" in op.function.tags:
        return Forward("GEOMETRY")
    if op.kind == "inplace" and op.schema != op.derivative.function.func:
        functional = op.group.functional
        source = catalog.by_name[str(functional.name)] if functional is not None else None
        return Forward("INPLACE", other=source) if source is not None else None
    node = node_of(op, catalog)
    return _of_entry(op, node) if node is not None else Forward("NONE")


def tensor_names(schema: FunctionSchema) -> tuple[str, ...]:
    return tuple(a.name for a in schema.arguments if is_tensor_like(a.type) and kind_of(a.type) != "Tensor[]")
