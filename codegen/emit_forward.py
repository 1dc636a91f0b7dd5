"""The tangents of a family's operators: a rule for each (csrc/forward/rule.h), and a C function for each term of those
that are sums.
"""

from __future__ import annotations

from collections.abc import Callable

from .autograd_nodes import Node, node_of, refused_of
from .c_types import c_arguments
from .catalog import Catalog, Operator
from .emit_functions import op_of
from .formula import Result, Variable, kind_of, used
from .formula_lower import lower_function
from .forward import Forward, Term, forward_of
from .text import Rules, c_string

_PARAMETERS = "const tp_value *args, const tp_value *results, tp_tensor *const *tangents"
_RESULT = Result("tensor", "tp_tensor *", "NULL", ("Tensor?",))


def forwards_of(catalog: Catalog) -> dict[str, Forward]:
    """By the operator's C name."""
    found = ((op, forward_of(op, catalog)) for op in catalog)
    return {op.c: forward for op, forward in found if forward is not None}


# How a term gets at an argument: its type's code and its number -> C.
Taken = Callable[[str, int], str]


def _unboxed(code: str, i: int) -> str:
    return f"tp_unbox_{code}(&args[{i}])"


def _argument_variables(
    op: Operator, term: Term, names: set[str], taken: Taken
) -> tuple[dict[str, Variable], list[str]]:
    variables: dict[str, Variable] = {}
    prologue = []
    for i, a in enumerate(c_arguments(op.schema)):
        kind = kind_of(a.type)
        shown = (a.name, f"{a.name}_p") if kind.startswith("Tensor") else (a.name,)
        for name in shown:
            variables[name] = Variable(kind, a.name_in_c)
        if names.intersection(shown):
            prologue.append(f"{a.c.declare(a.name_in_c)} = {taken(a.c.code, i)};")
        if a.name in term.uses:
            variables["grad" if term.pointwise else f"{a.name}_t"] = Variable("Tensor", f"tangents[{i}]")
    return variables, prologue


def _result_variables(node: Node) -> dict[str, Variable]:
    return {
        name: Variable("Tensor", f"results[{i}].tensor")
        for i in range(len(node.schema.returns))
        for name in node.output_names(i)
    }


def _function(op: Operator, node: Node, term: Term, name: str, catalog: Catalog, taken: Taken) -> str:
    names = set(used(term.text, term.formula.location))
    variables, prologue = _argument_variables(op, term, names, taken)
    results = _result_variables(node)
    unused = [] if names.intersection(results) else ["(void)results;"]
    unused += [] if prologue else ["(void)args;"]
    text = lower_function(
        name,
        _PARAMETERS,
        {**results, **variables},
        term.text,
        _RESULT,
        catalog,
        term.formula.location,
        prologue=[*prologue, *unused],
    )
    comment = "".join(f" * {line}\n" for line in term.text.strip().splitlines())
    return f"/* {op.schema.name}, by {', '.join(term.uses)}:\n{comment} */\n{text}"


def emit_terms(op: Operator, forward: Forward, catalog: Catalog, taken: Taken = _unboxed) -> tuple[str, str]:
    """The functions, and the table of them."""
    node = node_of(op, catalog)
    assert node is not None
    places = {a.name: i for i, a in enumerate(c_arguments(op.schema))}
    functions, rows = [], []
    for k, term in enumerate(forward.terms):
        name = f"forward_{op.c}_{k}"
        functions.append(_function(op, node, term, name, catalog, taken))
        uses = sum(1 << places[used_name] for used_name in term.uses)
        rows.append(f"    {{{term.output}, {str(term.pointwise).lower()}, {uses:#x}, {name}}},\n")
    table = f"static const tp_forward_term forward_terms_{op.c}[] = {{\n{''.join(rows)}}};\n"
    return "".join(functions), table


def roles_of(op: Operator, forward: Forward) -> str:
    refused = {a.name for a in refused_of(op)}
    return "".join(
        "x" if a.name in refused else "t" if a.name in forward.counts else "." for a in c_arguments(op.schema)
    )


def emit_forward(catalog: Catalog) -> Rules:
    rules = Rules("tp_forward_rule", "forward_rule")
    operators = {op.c: op for op in catalog}
    for name, forward in forwards_of(catalog).items():
        op = operators[name]
        roles = roles_of(op, forward)
        terms = "NULL"
        if forward.terms:
            rules.functions += emit_terms(op, forward, catalog)
            terms = f"forward_terms_{name}"
        other = op_of(forward.other) if forward.other is not None else "NULL"
        rules.add(name, f"TP_FORWARD_{forward.kind}, {len(forward.terms)}, {c_string(roles)}, {terms}, {other}")
    return rules
