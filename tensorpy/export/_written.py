"""An exported program as the text of a file: lists, numbers and words, which _read.py makes a program of."""

from __future__ import annotations

import operator
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._higher_order_ops.operators import OPERATORS
from tensorpy._package.sizes import sym_float, sym_max, sym_min, sym_sqrt
from tensorpy._package.symbols import COMPARISONS, OPERATIONS, Expr, SymBool, SymFloat, SymInt
from tensorpy._subclasses.fake_tensor import FakeTensor
from tensorpy.export.exported_program import ExportedProgram
from tensorpy.export.graph_signature import (
    ConstantArgument,
    SymIntArgument,
)
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.immutable_collections import immutable_dict
from tensorpy.fx.node import Node
from tensorpy.utils._pytree import treespec_dumps

FORMAT, VERSION = "tensorpy exported program", 1
FUNCTIONS: dict[str, Any] = {
    **{name: f for name, f in {**OPERATIONS, **COMPARISONS}.items() if isinstance(name, str)},
    **{f.__name__: f for f in (sym_float, sym_max, sym_min, sym_sqrt)},
    **{f.__name__: f for f in (operator.getitem, operator.and_, operator.or_)},
    "set_grad_enabled": _C._set_grad_enabled,
}
WORDS: dict[str, dict[str, Any]] = {
    kind: {str(value).rpartition(".")[2]: value for value in vars(_C).values() if isinstance(value, cls)}
    for kind, cls in (
        ("dtype", _C.dtype), ("layout", type(_C.strided)), ("memory_format", type(_C.preserve_format))
    )
}  # fmt: skip


def _expr(expr: Expr) -> list[Any]:
    """The terms of an expression: coefficients and atoms."""
    return [
        [factor, [[atom.op, *(_expr(a) if isinstance(a, Expr) else a for a in atom.args)] for atom in monomial]]
        for monomial, factor in expr.terms.items()
    ]


def _condition(value: SymBool) -> list[Any]:
    side: Any = _condition if value.op in ("and", "or") else _expr
    return [value.op, side(value.a), side(value.b)]


def _value(value: Any) -> Any:
    """An argument of a node as JSON: what is no list and no plain value is an object of one item, keyed by its kind."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, list):
        return [_value(v) for v in value]
    if type(value) in (tuple, _C.Size):
        return {"tuple": [_value(v) for v in value]}
    if type(value) in (dict, immutable_dict):
        return {"dict": [[_value(k), _value(v)] for k, v in value.items()]}
    if isinstance(value, slice):
        return {"slice": [_value(v) for v in (value.start, value.stop, value.step)]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, _C.device):
        return {"device": str(value)}
    if value is ...:
        return {"ellipsis": None}
    for kind, words in WORDS.items():
        for word, known in words.items():
            if known is value:
                return {kind: word}
    raise TypeError(f"save(): a program has {value!r}, which files of programs cannot hold")


def _target(node: Node) -> Any:
    target: Any = node.target
    if isinstance(target, str):
        return target
    if isinstance(target, _C.OpOverload):
        name = str(target._own_name)
        return {"operator": name if "::" in name else f"aten::{name}"}
    if target in OPERATORS.values():
        return {"control": target.opname}
    found = next((name for name, function in FUNCTIONS.items() if function is target), None)
    if found is None:
        raise TypeError(f"save(): a program calls {target!r}, which is no operator")
    return {"function": found}


def _kind(env: Any, value: Any) -> Any:
    """What a node gives, without elements; None where that is not known."""
    if isinstance(value, FakeTensor) and value.layout is _C.strided:
        numbers = [*Tensor.size(value), *Tensor.stride(value)]
        read = [env.read(n) for n in numbers]
        if any(expr is None for expr in read):
            return None
        half, dtype = value.dim(), str(value.dtype).rpartition(".")[2]
        exprs = [_expr(expr) for expr in read]
        return {"tensor": [dtype, str(value.device), value.requires_grad, exprs[:half], exprs[half:]]}
    if isinstance(value, (SymInt, SymFloat)):
        return {"number": [type(value) is SymFloat, _expr(value.expr)]}
    if type(value) in (list, tuple):
        return {"several": [_kind(env, v) for v in value]}
    return {"value": value} if value is None or type(value) in (bool, int, float, str) else None


def _graph(env: Any, graph: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    nodes = [
        {
            "op": node.op,
            "name": node.name,
            "target": _target(node),
            "args": [_value(a) for a in node.args],
            "kwargs": {name: _value(v) for name, v in node.kwargs.items()},
            "gives": _kind(env, node.meta.get("val")),
            "modules": [[key, *where] for key, where in node.meta.get("nn_module_stack", {}).items()],
        }
        for node in graph.nodes
    ]
    functions = {}
    for name, function in attributes.items():
        if not isinstance(function, GraphModule):
            raise TypeError(f"save(): a program has {function!r}, which files of programs cannot hold")
        inner = {n.target: getattr(function, n.target) for n in function.graph.nodes if n.op == "get_attr"}
        functions[name] = _graph(env, function.graph, inner)
    return {"nodes": nodes, "functions": functions}


# ---- programs ----


def _argument(arg: Any) -> list[Any]:
    if isinstance(arg, ConstantArgument):
        return ["constant", arg.name, _value(arg.value)]
    return ["size" if isinstance(arg, SymIntArgument) else "tensor", arg.name]


def _environment(env: Any) -> dict[str, Any]:
    symbols = [[s.name, s.hint, s.source, s.low, s.high, sorted(s.parents)] for s in env.symbols.values()]
    return {
        "symbols": symbols,
        "guards": [[_condition(guard.condition), guard.line] for guard in env.guards],
        "names": dict(env._sources),
    }


def described(program: ExportedProgram) -> dict[str, Any]:
    """A program without its tensors, as JSON has it.

    Arguments:
        program: the program

    Returns: a dict.

    Raises: TypeError where it calls or holds what files cannot.
    """
    t, signature = program._traced, program.graph_signature
    return {
        "format": FORMAT,
        "version": VERSION,
        "dialect": program.dialect,
        "graph": _graph(t.env, program.graph, t.attributes),
        "inputs": [[s.kind.name, _argument(s.arg), s.target, s.persistent] for s in signature.input_specs],
        "outputs": [[s.kind.name, _argument(s.arg), s.target] for s in signature.output_specs],
        "in_spec": treespec_dumps(t.in_spec),
        "out_spec": treespec_dumps(t.out_spec),
        "argument_names": t.argument_names,
        "leaf_names": t.leaf_names,
        "sizes": [[size.leaf, size.dim, size.source, _expr(size.expr)] for size in t.sizes],
        "values": [[place, _value(value)] for place, value in t.values.items()],
        "modules": t.module_names,
        "environment": _environment(t.env),
    }
