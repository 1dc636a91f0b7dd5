"""A graph as Python: the function `forward` that runs it, and the globals that the function needs."""

from __future__ import annotations

import enum
import keyword
import math
import operator
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorpy
from tensorpy import _C
from tensorpy.fx import _pytree as fx_pytree
from tensorpy.fx.node import Node, OpOverload, at_path, called, container_text, target_name
from tensorpy.utils import _pytree
from tensorpy.utils._pytree import TreeSpec

if TYPE_CHECKING:
    from tensorpy.fx._namespace import Namespace
    from tensorpy.fx.graph import Graph

TransformCodeFunc = Callable[[list[str]], list[str]]

_BINARY = {
    "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "add": "+", "sub": "-", "mul": "*",
    "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**", "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|",
    "xor": "^", "matmul": "@",
}  # fmt: skip
_UNARY = {"pos": "+", "neg": "-", "invert": "~"}
_WRITING = (
    "add",
    "and_",
    "floordiv",
    "lshift",
    "mod",
    "mul",
    "matmul",
    "or_",
    "pow",
    "rshift",
    "sub",
    "truediv",
    "xor",
)
BINARY = {getattr(operator, name): sign for name, sign in _BINARY.items()}
UNARY = {getattr(operator, name): sign for name, sign in _UNARY.items()}
INPLACE = {getattr(operator, f"i{name.rstrip('_')}"): f"{_BINARY[name]}=" for name in _WRITING}


@dataclass
class PythonCode:
    """The text of a function, and the globals that it needs."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None  # of lines of the function to places of nodes, if one was made
    _prologue_start: int = 0


def _standard_globals() -> dict[str, Any]:
    plain = {"inf": math.inf, "nan": math.nan, "NoneType": type(None)}
    trees = {"fx_pytree": fx_pytree, "pytree": _pytree}
    return {**plain, **trees, "tensorpy": tensorpy, "torch": tensorpy, "device": _C.device}


# ---- constants ----

_WRITTEN = (
    bool, int, float, complex, str, bytes, type(None), type(...), range, _C.dtype, type(_C.strided),
    type(_C.preserve_format), _C.device, _C.Size,
)  # fmt: skip


_FAMILIES = {"bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i", "bool": "b8"}


def short_dtype(dtype: _C.dtype) -> str:
    """A dtype as readable code says it: "f32" of float32."""
    name = str(dtype).rpartition(".")[2]
    family = next((f for f in _FAMILIES if name.startswith(f)), "")
    return name.replace(family, _FAMILIES.get(family, ""), 1).replace("_", "", 1)


def is_written(argument: Any) -> bool:
    """Whether code can hold a constant."""
    return type(argument) in _WRITTEN


class _Writer:
    """Writes the statements of one graph, and notes the globals that they name."""

    def __init__(self, graph: Graph, root: str, namespace: Namespace, verbose: bool = False) -> None:
        self.graph, self.root, self.namespace, self.verbose = graph, root, namespace, verbose
        self.globals = _standard_globals()
        self.wrapped: dict[str, None] = {}
        self.trace: str | None = None  # where the last commented node came from

    def name_global(self, hint: str, obj: Any) -> str:
        """The name of an object: where tensorpy has it, or a global's."""
        parts = hint.split(".")
        if parts[0] in ("tensorpy", "torch") and not any(map(keyword.iskeyword, parts)) and self._is_at(hint, obj):
            return hint
        name = self.namespace.create_name(hint.replace("<locals>", "_locals_"), obj)
        self.globals[name] = obj
        return name

    def _is_at(self, path: str, obj: Any) -> bool:
        return isinstance(obj, OpOverload) or at_path(path) is obj

    # ---- expressions ----

    def code(self, argument: Any) -> str:
        """An argument as an expression; what Python cannot write has been made an attribute (GraphModule)."""
        if isinstance(argument, Node):
            return argument.name
        if isinstance(argument, tuple) and hasattr(argument, "_fields"):
            return f"{self.code(type(argument))}({', '.join(map(self.code, argument))})"
        if isinstance(argument, _C.Size):
            return self.code(tuple(argument))
        if (nested := container_text(argument, self.code, repr)) is not None:
            return nested
        if isinstance(argument, slice):
            return f"slice({', '.join(map(self.code, (argument.start, argument.stop, argument.step)))})"
        if isinstance(argument, complex) and not (math.isfinite(argument.real) and math.isfinite(argument.imag)):
            return f"complex({argument.real!r}, {argument.imag!r})"
        if isinstance(argument, enum.Enum):
            return f"{self.code(type(argument))}.{argument.name}"
        if is_written(argument):
            return repr(argument)
        if callable(argument):
            return self.name_global(target_name(argument), argument)
        raise TypeError(f"a graph's code cannot hold {type(argument).__name__}; make it an attribute of the module")

    def annotation(self, kind: Any) -> str:
        """A type as an expression."""
        if isinstance(kind, str):
            return self.name_global(repr(kind), kind)
        if kind is None or kind is type(None):
            return "None" if kind is None else "NoneType"
        if kind is ...:
            return "..."
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if origin is not None and args and origin is not typing.Literal and not isinstance(args[0], list):
            name = "Union" if origin is typing.Union else getattr(kind, "_name", None)
            base = getattr(typing, name, origin) if name and kind.__module__ == "typing" else origin
            inner = ",".join(map(self.annotation, args))
            return f"{self.annotation(base)}[{inner}]"
        if isinstance(kind, type) and kind.__module__ == "builtins":
            return kind.__qualname__
        if isinstance(kind, type) and at_path(f"tensorpy.{kind.__name__}") is kind:
            return f"{called()}.{kind.__name__}"
        module = getattr(kind, "__module__", "")
        name = getattr(kind, "__qualname__", None) or getattr(kind, "_name", None) or repr(kind)
        return self.name_global(f"{module}.{name}", kind)

    def attribute(self, path: str) -> str:
        """The module's attribute; what is no identifier, by getattr."""
        text = self.root
        for part in path.split("."):
            plain = part.isidentifier() and not keyword.iskeyword(part)
            text = f"{text}.{part}" if plain else f'getattr({text}, "{part}")'
        return text

    def kind(self, node: Node) -> str:
        """The annotation of a node's value: its type, or where a person reads the code, the tensor that it was."""
        value: Any = node.meta.get("val", node.meta.get("tensor_meta")) if self.verbose else None
        if isinstance(dtype := getattr(value, "dtype", None), _C.dtype):  # a tensor, or what ShapeProp notes of one
            return f': "{short_dtype(dtype)}[{", ".join(map(str, value.shape))}]"'
        return f" : {self.annotation(node.type)}" if node.type is not None else ""

    # ---- statements ----

    def parameter(self, node: Node) -> str:
        """A placeholder in the signature. Its target is the parameter's name."""
        kind = self.kind(node)
        default = f" = {self.code(node.args[0])}" if node.args else ""
        return f"{node.target}{kind}{default}"

    def origin(self, node: Node) -> list[str]:
        """A comment that says which line of the program a node came from, where that changes."""
        trace = node.stack_trace or ""
        if trace == self.trace:
            return []
        self.trace = trace
        last = [line for line in trace.strip().split("\n") if line.strip()][-2:]
        place = re.match(r'\s*File "(.*)", line (\d+), in (.*)', last[0]) if last else None
        if place is None:
            return [] if trace else ["\n# No stacktrace found for following nodes\n"]
        path, line, function = place.groups()
        return [f"\n# File: {path}:{line} in {function}, code: {last[-1].strip()}\n"]

    def _call(self, callee: str, args: list[str], node: Node) -> str:
        return f"{callee}({', '.join([*args, *(f'{k} = {self.code(v)}' for k, v in node.kwargs.items())])})"

    def statement(self, node: Node) -> str:
        """What a node is in the code; empty for a placeholder that is called as it is named."""
        if node.op == "placeholder":
            given = node.target.lstrip("*")
            return "" if given == node.name else f"{node.name} = {given}"
        kind = self.kind(node)
        if node.op == "get_attr":
            return f"{node.name}{kind} = {self.attribute(node.target)}"
        args = [self.code(a) for a in node.args]
        if node.op == "call_method":
            value = self._call(f"{args[0]}.{node.target}", args[1:], node)
        elif node.op == "call_module":
            value = self._call(self.attribute(node.target), args, node)
        else:
            return self.function_call(node, args, kind)
        return f"{node.name}{kind} = {value}"

    def function_call(self, node: Node, args: list[str], kind: str) -> str:
        target, plain = node.target, not node.kwargs
        left = f"{node.name}{kind} = "
        if plain and target in BINARY and len(args) == 2:
            return f"{left}{args[0]} {BINARY[target]} {args[1]}"
        if plain and target in UNARY and len(args) == 1:
            return f"{left}{UNARY[target]}{args[0]}"
        if plain and target in INPLACE and len(args) == 2 and isinstance(node.args[0], Node):
            return f"{args[0]} {INPLACE[target]} {args[1]};  {left}{args[0]}"
        if plain and target is operator.getitem and len(args) == 2:
            return f"{left}{args[0]}[{args[1]}]"
        if plain and target is getattr and len(args) == 2 and _is_name(node.args[1]) and isinstance(node.args[0], Node):
            return f"{left}{args[0]}.{node.args[1]}"
        name = self.name_global(target_name(target), target)
        if node.meta.get("is_wrapped"):
            self.wrapped[name] = None
        return left + self._call(name, args, node)


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and text.isidentifier() and not keyword.iskeyword(text)


# ---- the function ----


class CodeGen:
    """Writes the function of a graph. Subclasses change its first line, what it returns, what is done to its
    arguments and result by who runs the graph without the code (Interpreter).

    Example:
        >>> module = tp.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> type(module.graph._codegen).__name__
        'CodeGen'
    """

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The first line (or lines), without what stands below it."""
        names = free_vars if free_vars[:1] == ["self"] else ["self", *free_vars]
        return f"def forward({', '.join(names)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The last line; an argument's repr is its expression."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The placeholders' values.

        Returns: a tuple of values.
        """
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result, of what the output node holds.

        Returns: what a call of the code gives.
        """
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the lines above need."""
        return []

    def _first_line(self, graph: Graph, parameters: list[str], annotation: str) -> str:
        if graph.in_spec is None:
            return self.gen_fn_def(parameters, annotation)
        unpacked = "".join(f"{n.name}, " for n in graph.nodes if n.op == "placeholder")
        if graph.in_names is not None:
            given = "".join(f"{name}, " for name in graph.in_names)
            taken = f"fx_pytree.tree_flatten_spec((({given}), {{}}), self._in_spec)"
            return f"{self.gen_fn_def(graph.in_names, annotation)}\n    {unpacked or '_ '}= {taken}"
        return f"def forward(self, *args, **kwargs){annotation}:\n    {unpacked or '_ '}= self._take(args, kwargs)"

    def _gen_python_code(
        self, graph: Graph, root_module: str, namespace: Namespace, *, verbose: bool = False
    ) -> PythonCode:
        writer = _Writer(graph, root_module, namespace, verbose)
        writer.globals.update(self.additional_globals())
        parameters, body, annotation = [], [], ""
        last = {given: node for node in graph.nodes for given in node.all_input_nodes}
        for node in graph.nodes:
            if node.op == "placeholder" and graph.in_spec is None:
                parameters.append(writer.parameter(node))
            if node.op == "output":
                if node.type is not None:
                    annotation = f" -> {writer.annotation(node.type)}"
                body.append(f"{self._last_line(writer, node, graph.out_spec)}\n")
            elif node.op != "placeholder":
                if verbose:
                    body += writer.origin(node)
                gone = [n.name for n in node.all_input_nodes if last[n] is node]
                gone += [] if node.users else [node.name]
                tail = f";  {' = '.join([*gone, 'None'])}" if gone else ""
                body.append(f"{writer.statement(node)}{tail}\n")
            elif graph.in_spec is None and (line := writer.statement(node)):
                body.append(f"{line}\n")
        if self._body_transformer is not None:
            body = self._body_transformer(body or ["pass\n"])
        wraps = "".join(f'{called()}.fx._symbolic_trace.wrap("{name}")\n' for name in writer.wrapped)
        head = self._first_line(graph, parameters, annotation)
        text = "".join(body).lstrip("\n") or "pass\n"
        lines = "\n".join(f"    {line}" for line in text.split("\n"))
        return PythonCode(f"\n{wraps if wraps else chr(10)}\n{head}\n{lines}", writer.globals)

    def _last_line(self, writer: _Writer, node: Node, out_spec: TreeSpec | None) -> str:
        value = _Expression(writer.code(node.args[0] if node.args else None))
        if out_spec is not None:
            return f"return self._give({value})"
        return self.generate_output(value)


class _Expression(str):
    """Code whose repr is itself."""

    def __repr__(self) -> str:
        return str(self)
