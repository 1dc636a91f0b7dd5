"""What functionalisation knows of a family's operators: a rule for each (csrc/functionalize/rule.h), and a C function
for each inverse of a view.
"""

from __future__ import annotations

from .c_types import c_arguments
from .catalog import Catalog, Operator
from .formula import Result, Variable, kind_of, used
from .formula_lower import lower_function
from .functional import Functional, functional_of
from .text import Rules, c_string

_PARAMETERS = "const tp_value *args, tp_tensor *base, tp_tensor *view, int64_t which"
_RESULT = Result("tensor", "tp_tensor *", "NULL", ("Tensor",))


def functionals_of(catalog: Catalog) -> dict[str, Functional]:
    """By the operator's C name."""
    found = ((op, functional_of(op, catalog)) for op in catalog)
    return {op.c: functional for op, functional in found if functional is not None}


def inverse_function(op: Operator, text: str, name: str, catalog: Catalog) -> str:
    location = op.function.at("inverse")
    names = set(used(text, location))
    variables = {
        "base": Variable("Tensor", "base"),
        "stored": Variable("Tensor", "base"),
        "view": Variable("Tensor", "view"),
        "which": Variable("int", "which"),
    }
    prologue = []
    for i, a in enumerate(c_arguments(op.schema)):
        if a.argument.annotation is not None:
            continue
        variables[a.name] = Variable(kind_of(a.type), a.name_in_c)
        if a.name in names:
            prologue.append(f"{a.c.declare(a.name_in_c)} = tp_unbox_{a.c.code}(&args[{i}]);")
    unused = [n for n in ("base", "view", "which") if n not in names and not (n == "base" and "stored" in names)]
    unused += [] if prologue else ["args"]
    return lower_function(
        name,
        _PARAMETERS,
        variables,
        text,
        _RESULT,
        catalog,
        location,
        prologue=[*prologue, *(f"(void){n};" for n in unused)],
    )


def emit_functional(catalog: Catalog) -> Rules:
    rules = Rules("tp_functional_rule", "functional_rule")
    operators = {op.c: op for op in catalog}
    for c, functional in functionals_of(catalog).items():
        op, inverse = operators[c], "NULL"
        if functional.inverse is not None:
            inverse = f"inverse_{c}"
            rules.functions.append(inverse_function(op, functional.inverse, inverse, catalog))
        other = c_string(str(functional.other.schema.name)) if functional.other is not None else "NULL"
        rules.add(c, f"{other}, {inverse}, {str(functional.by_places).lower()}")
    return rules
