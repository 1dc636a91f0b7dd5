"""An exported program of the text of a file, which nobody trusts: what does not fit is refused before it is used."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._higher_order_ops.operators import OPERATORS
from tensorpy._package.symbols import COMPARISONS, OPERATIONS, Atom, Expr, SymBool, SymFloat, number
from tensorpy._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from tensorpy.export._trace import Size, Traced
from tensorpy.export._written import FORMAT, FUNCTIONS, VERSION, WORDS
from tensorpy.export.exported_program import ExportedProgram
from tensorpy.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from tensorpy.fx.experimental.symbolic_shapes import Guard, ShapeEnv
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.node import Node
from tensorpy.nn import Module, Parameter
from tensorpy.utils._python_dispatch import no_dispatch
from tensorpy.utils._pytree import TreeSpec, tree_unflatten, treespec_loads

_OPERATOR = re.compile(r"[A-Za-z]\w*::[A-Za-z_]\w*(\.\w+)?", re.ASCII)
_PART = re.compile(r"\w+", re.ASCII)
_NO_POWERS = "pow"  # of powers: an expression is worked out in the time that it takes to read
_MOST = 2**63


class _Refused(ValueError):
    """What a file says is no part of a program."""


def _check(is_right: Any, what: str) -> None:
    if not is_right:
        raise _Refused(what)


def _text(value: Any) -> str:
    _check(type(value) is str, f"{value!r} is no text")
    return str(value)


def _whole(value: Any) -> int:
    _check(type(value) is int and -_MOST <= value < _MOST, f"{value!r} is no whole number of 64 bits")
    return int(value)


def _list(value: Any, length: int | None = None) -> list[Any]:
    _check(type(value) is list and length in (None, len(value)), f"{value!r} is no list of {length} items")
    return list(value)


def _name(value: Any) -> str:
    text = _text(value)
    _check(_PART.fullmatch(text) and text.isidentifier() and not keyword.iskeyword(text), f"{text!r} is no name")
    return text


def _path(value: Any) -> str:
    """The name of a part of a module. A part that every module has is none of these."""
    for part in _text(value).split("."):
        _check(_PART.fullmatch(part) and not hasattr(_PLAIN, part), f"{value!r} names no part of a module")
    return str(value)


_PLAIN = Module()


class _Read:
    """What is made of a file's text."""

    def __init__(self) -> None:
        self.env: Any = ShapeEnv(duck_shape=False)
        self.mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=self.env)

    # ---- sizes ----

    def environment(self, said: Any) -> None:
        for row in _list(said["symbols"]):
            name, hint, source, low, high, parents = _list(row, 6)
            _check(_name(name) not in self.env.symbols, f"the symbol {name!r} is there twice")
            numbers = all(type(n) in (int, float) and n >= 0 for n in (low, high))
            _check(numbers and 0 <= _whole(hint), f"{row!r} is no symbol")
            self.env._new(name, hint, _text(source), low=low, high=high, parents=frozenset(map(_text, _list(parents))))
        self.env._count = len(self.env.symbols)
        self.env._sources.update({_name(name): _text(source) for name, source in said["names"].items()})
        for row in _list(said["guards"]):
            condition, line = _list(row, 2)
            self.env.guards.append(Guard(self.condition(condition), _text(line)))

    def expr(self, said: Any, powers: bool = True) -> Expr:
        terms = {}
        for row in _list(said):
            factor, atoms = _list(row, 2)
            _check(_whole(factor) != 0, "a term is zero")
            monomial = tuple(sorted((self._atom(atom, powers) for atom in _list(atoms)), key=str))
            _check(monomial not in terms, "a term is there twice")
            terms[monomial] = factor
        one = next(iter(terms)) if len(terms) == 1 else ()
        is_float = len(one) == 1 and Expr.of(one[0]).is_float
        return Expr(terms, is_float)

    def _atom(self, said: Any, powers: bool) -> Atom:
        op, *args = _list(said)
        if _text(op) == "symbol":
            _check(len(args) == 1 and _text(args[0]) in self.env.symbols, f"{args!r} is no symbol of the program")
            return Atom("symbol", (args[0],))
        _check(op in OPERATIONS and args and (powers or op != _NO_POWERS), f"{op!r} is no operation on sizes")
        powers = powers and op != _NO_POWERS
        return Atom(op, tuple(self._operand(arg, powers) for arg in args))

    def _operand(self, said: Any, powers: bool) -> Any:
        return self.expr(said, powers) if type(said) is list else said if type(said) is float else _whole(said)

    def condition(self, said: Any) -> SymBool:
        op, a, b = _list(said, 3)
        _check(_text(op) in ("and", "or") or op in COMPARISONS, f"{op!r} is no comparison")
        side: Any = self.condition if op in ("and", "or") else self.expr
        return SymBool(self.env, op, side(a), side(b))

    def _number(self, said: Any) -> int:
        """What operators compute with for a size."""
        return _whole(self.env.pass_on(self.expr(said)))

    # ---- values ----

    def value(self, said: Any, nodes: dict[str, Node]) -> Any:
        if said is None or type(said) in (bool, int, float, str):
            return said
        if type(said) is list:
            return [self.value(v, nodes) for v in said]
        ((kind, inner),) = said.items()
        if kind == "node":
            return nodes[_text(inner)]
        if kind in ("tuple", "slice"):
            items = [self.value(v, nodes) for v in _list(inner, 3 if kind == "slice" else None)]
            return slice(*items) if kind == "slice" else tuple(items)
        if kind == "dict":
            return {self.value(k, nodes): self.value(v, nodes) for k, v in (_list(row, 2) for row in _list(inner))}
        if kind == "complex":
            _check(all(type(part) is float for part in _list(inner, 2)), "a complex number is two floats")
            return complex(*inner)
        if kind == "device":
            return _C.device(_text(inner))
        if kind == "ellipsis":
            return ...
        return WORDS[kind][_text(inner)]

    def kind(self, said: Any) -> Any:
        """What a node gives."""
        if said is None:
            return None
        ((kind, inner),) = said.items()
        if kind == "value":
            _check(inner is None or type(inner) in (bool, int, float, str), f"{inner!r} is no value")
            return inner
        if kind == "several":
            return tuple(map(self.kind, _list(inner)))
        if kind == "number":
            is_float, expr = _list(inner, 2)
            made = number(self.env, self.expr(expr))
            _check(
                type(is_float) is bool and is_float == isinstance(made, (float, SymFloat)), "a number is of its kind"
            )
            return made
        _check(kind == "tensor", f"{kind!r} is no kind of result")
        dtype, device, requires_grad, size, stride = _list(inner, 5)
        _check(type(requires_grad) is bool, "requires_grad is a bool")
        sizes, strides = ([self._number(n) for n in _list(row)] for row in (size, stride))
        with no_dispatch():
            elem = _C.empty_strided(sizes, strides, dtype=WORDS["dtype"][_text(dtype)], device="meta")
        made = FakeTensor(self.mode, elem, _C.device(_text(device)))
        return made.requires_grad_() if requires_grad else made

    # ---- graphs ----

    def graph(self, said: Any) -> tuple[Graph, dict[str, Any]]:
        """A graph, and the graphs of its functions by name."""
        functions = {
            _path(name): GraphModule(inner, graph) for name, graph, inner in self._functions(said["functions"])
        }
        graph = Graph()
        nodes: dict[str, Node] = {}
        rows = _list(said["nodes"])
        for place, row in enumerate(rows):
            name, op, target = _name(row["name"]), _text(row["op"]), row["target"]
            _check(name not in nodes, f"the node {name!r} is there twice")
            _check((op == "output") == (place == len(rows) - 1), "the output is the last node, and no other is")
            called = self._called(op, name, target, functions)
            args = tuple(self.value(v, nodes) for v in _list(row["args"]))
            kwargs = {_name(key): self.value(v, nodes) for key, v in row["kwargs"].items()}
            _check(op == "call_function" or not (kwargs or (args and op != "output")), f"{op!r} has no arguments")
            if op == "call_function" and "function" in target:
                _check_numbers(target["function"], args, kwargs)
            made = nodes[name] = graph.create_node(op, called, args, kwargs, name)
            made.name = name
            if (val := self.kind(row["gives"])) is not None or op == "placeholder":
                made.meta["val"] = val
            stack = {_text(key): (_text(fqn), _text(cls)) for key, fqn, cls in map(_list, _list(row["modules"]))}
            if stack:
                made.meta["nn_module_stack"] = stack
        _check(rows and len(graph.output_node().args) == 1, "a graph has one output")
        return graph, functions

    def _functions(self, said: Any) -> Iterator[tuple[str, Graph, dict[str, Any]]]:
        for name, function in said.items():
            graph, inner = self.graph(function)
            yield name, graph, inner

    def _called(self, op: str, name: str, said: Any, functions: dict[str, Any]) -> Any:
        """What a node calls or names."""
        if op != "call_function":
            right = {"placeholder": (name,), "output": ("output",), "get_attr": functions}
            _check(type(said) is str and said in right.get(op, ()), f"{op!r} has no target {said!r}")
            return said
        ((kind, which),) = said.items()
        if kind == "operator":
            return _operator(_text(which))
        _check(kind in ("control", "function"), f"{kind!r} is nothing that a node calls")
        return (OPERATORS if kind == "control" else FUNCTIONS)[_text(which)]


def _check_numbers(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What is computed of sizes, and parts of results, is of nodes and numbers."""
    right = all(isinstance(arg, Node) or type(arg) in (bool, int, float) for arg in args)
    _check(right and not kwargs, f"{name!r} takes nodes and numbers")
    _check(
        name == "set_grad_enabled" or isinstance(args[0], Node) or isinstance(args[-1], Node), f"{name!r} of numbers"
    )
    _check(
        name != "getitem" or (isinstance(args[0], Node) and type(args[1]) is int), "getitem takes a node and a place"
    )


def _operator(name: str) -> Any:
    """An operator of the dispatcher's table: no primitive, which trusts what it is given, and none that opens files."""
    _check(_OPERATOR.fullmatch(name) and not name.startswith("prim::"), f"{name!r} is no operator's name")
    found: Any = _C._op_overload(name)
    _check("str filename" not in found._schema, f"{name!r} opens files")
    return found


# ---- programs ----


def _input(read: _Read, said: Any, kinds: Any, with_target: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    kind, arg, target = said
    which, name, *rest = _list(arg)
    if which == "constant":
        made: Any = ConstantArgument(_text(name), read.value(_list(rest, 1)[0], {}))
    else:
        _check(not rest and which in ("tensor", "size"), f"{arg!r} is no argument")
        made = (TensorArgument if which == "tensor" else SymIntArgument)(_name(name))
    return kinds[_text(kind)], made, with_target(target)


def _signature(read: _Read, said: Any, tensors: dict[str, Any]) -> ExportGraphSignature:
    """The signature: lifted inputs name the file's tensors, of their kind."""
    specs = []
    for row in _list(said["inputs"]):
        *first, persistent = _list(row, 4)
        kind, arg, target = _input(read, first, InputKind, lambda t: None if t is None else _path(t))
        is_own = kind is InputKind.USER_INPUT
        _check(is_own or kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR), f"{kind}?")
        _check(persistent in (None, True, False), f"persistent={persistent!r}")
        _check((target is None) if is_own else (target in tensors), f"{target!r} is no tensor of the file")
        _check(kind is not InputKind.PARAMETER or isinstance(tensors[target], Parameter), f"{target!r}: no parameter")
        specs.append(InputSpec(kind, arg, target, persistent))
    written = {spec.target or spec.arg.name for spec in specs}
    ends = []
    for row in _list(said["outputs"]):
        kind, arg, target = _input(read, _list(row, 3), OutputKind, lambda t: t)
        is_own = kind is OutputKind.USER_OUTPUT
        _check((target is None) if is_own else (target in written), f"{target!r} is nothing that is written")
        ends.append(OutputSpec(kind, arg, target))
    return ExportGraphSignature(specs, ends)


def _spec(said: Any, leaves: int) -> TreeSpec:
    found = treespec_loads(_text(said))
    _check(found.num_leaves == leaves, f"a tree has {found.num_leaves} leaves, not {leaves}")
    return found


def _named_tensors(said: Any) -> dict[str, Tensor]:
    _check(isinstance(said, dict) and all(isinstance(value, Tensor) for value in said.values()), "tensors by name")
    return {_path(name): value for name, value in said.items()}


def _sizes(read: _Read, said: Any, leaves: list[Any]) -> list[Size]:
    found = []
    for row in _list(said):
        leaf, dim, source, expr = _list(row, 4)
        _check(0 <= _whole(leaf) < len(leaves) and isinstance(leaves[leaf], Tensor), f"there is no input {leaf}")
        _check(0 <= _whole(dim) < leaves[leaf].dim(), f"the input {leaf} has no dimension {dim}")
        found.append(Size(leaf, dim, None, _text(source), read.expr(expr)))
    return found


def made_of(said: Any, tensors: Any) -> ExportedProgram:
    """The program of a file's records.

    Arguments:
        said: what describes it, of JSON
        tensors: its tensors, by the kind of part

    Returns: an ExportedProgram.

    Raises: an exception of any class for what is no program.
    """
    _check(isinstance(said, dict) and said.get("format") == FORMAT, "it is no file of a program")
    _check(said["version"] == VERSION, f"it is of the version {said['version']!r}, which is not known")
    _check(type(tensors) is dict, "tensors by name")
    state, constants = _named_tensors(tensors["state"]), _named_tensors(tensors["constants"])
    _check(not state.keys() & constants.keys(), "a tensor is there twice")
    leaves = _list(tensors["example"])
    read = _Read()
    read.environment(said["environment"])
    signature = _signature(read, said, {**state, **constants})
    graph, attributes = read.graph(said["graph"])
    in_spec = _spec(said["in_spec"], len(leaves))
    own = [spec for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT]
    leaf_names = [_text(name) for name in _list(said["leaf_names"], len(leaves))]
    _check(len(own) == len(leaves), "there is an example for each input")
    ends = sum(spec.kind is OutputKind.USER_OUTPUT for spec in signature.output_specs)
    values = {_whole(place): read.value(value, {}) for place, value in (_list(row, 2) for row in _list(said["values"]))}
    plain = {place for place, leaf in enumerate(leaves) if not isinstance(leaf, Tensor)}
    _check(values.keys() == plain, "values are those of inputs that are no tensors")
    example = tree_unflatten(leaves, in_spec)
    _check(type(example) is tuple and [type(part) for part in example] == [tuple, dict], "inputs are (args, kwargs)")
    traced = Traced(
        graph, read.env, in_spec, _spec(said["out_spec"], ends), [_text(n) for n in _list(said["argument_names"])],
        leaf_names, _sizes(read, said["sizes"], leaves), values, state, constants, example,
        [_path(name) for name in _list(said["modules"])], attributes,
    )  # fmt: skip
    _check(said["dialect"] in ("TRAINING", "ATEN"), f"dialect={said['dialect']!r}")
    program = ExportedProgram(traced, signature, said["dialect"])
    program.validate()
    names = [getattr(value, "name", "") for value in graph.output_node().args[0]]
    _check(names == [spec.arg.name for spec in signature.output_specs], "outputs are those of the signature")
    return program
