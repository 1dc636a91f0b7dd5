"""A program as modules again: one for each module of the program that was exported, with that one's part of the graph.

A module's part is what was called while it was. It takes the values that it uses of others, and gives those that
others use of it; parameters and buffers below its own name are its own. What is called on behalf of a module that is
not below the caller by its name stays in the caller's graph.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.export.exported_program import ExportedProgram, _Guards, _put
from tensorpy.export.graph_signature import InputKind, OutputKind
from tensorpy.fx.graph import Graph
from tensorpy.fx.interpreter import Interpreter
from tensorpy.fx.node import Node, map_arg
from tensorpy.nn import Module
from tensorpy.nn.parameter import Parameter
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter:
    """Makes arguments that are nested in another way into what the program takes: a subclass has `adapt`.

    Example:
        >>> class Reversed(tp.export.FlatArgsAdapter):
        ...     def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        ...         return input_args[::-1]
        >>> len(Reversed().adapt(None, None, [1, 2]))
        2
    """

    def adapt(
        self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: Any = None, obj: Any = None
    ) -> list[Any]:
        """The leaves that the program takes.

        Arguments:
            target_spec: how the program's arguments are nested
            input_spec: how those of the call are
            input_args: the call's leaves
            metadata: of the program
            obj: the module that was called

        Returns: a list.
        """
        raise NotImplementedError("FlatArgsAdapter: a subclass says what adapt() gives")


class InterpreterModule(Module):
    """A module that runs a graph, node by node, with its own parameters, buffers and modules.

    Arguments:
        graph: the graph
        owner: the module whose attributes the graph names; None: this one

    Example:
        >>> program = tp.export.export(nn.Sequential(nn.ReLU()), (tp.ones(2),))
        >>> tp.export.unflatten(program).get_submodule("0")(tp.tensor([-1.0]))
        tensor([0.])
    """

    def __init__(self, graph: Any = None, owner: Module | None = None) -> None:
        super().__init__()
        self.graph: Any = graph
        self._owner = (owner,)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the graph gives.

        Arguments:
            args: the values of its placeholders
            kwargs: those of the last of them, by name

        Returns: what its output is.
        """
        if self.graph is None:
            raise RuntimeError("the program never called this module, so there is no graph of it")
        names = [node.name for node in self.graph.nodes if node.op == "placeholder"][len(args) :]
        given = (*args, *(kwargs[name] for name in names if name in kwargs))
        return Interpreter(self._owner[0] or self, graph=self.graph).run(*given, enable_io_processing=False)


class UnflattenedModule(InterpreterModule):
    """What unflatten() gives: it takes what the program takes, and its modules have the names of the program's.

    Arguments:
        program: the program
        adapter: makes arguments that are nested in another way into the program's

    Example:
        >>> program = tp.export.export(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), (tp.ones(1, 2),))
        >>> made = tp.export.unflatten(program)
        >>> [name for name, _ in made.named_modules()]
        ['', '0', '1']
        >>> made.graph.output_node().args[0][0].target
        '1'
    """

    def __init__(self, program: ExportedProgram, adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        self._program = (program,)
        self.flat_args_adapter = adapter
        self.graph_signature, self.module_call_graph = program.graph_signature, program.module_call_graph
        self.range_constraints = program.range_constraints
        _Builder(program, self).build()
        self._guards = _Guards(program)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the program gives.

        Arguments:
            args: its positional arguments
            kwargs: its named ones

        Returns: what the program's module returned.

        Raises: TypeError for arguments that are nested in another way, unless an adapter takes them.
        """
        traced = self._program[0]._traced
        leaves, spec = tree_flatten((args, kwargs))
        if spec != traced.in_spec:
            if self.flat_args_adapter is None:
                raise TypeError(
                    f"There is no flat args adapter specified. Are you sure you are calling this with the right "
                    f"arguments? They are nested as {spec}, the program's as {traced.in_spec}"
                )
            leaves = self.flat_args_adapter.adapt(traced.in_spec, spec, leaves, None, self)
            if len(leaves) != traced.in_spec.num_leaves:
                raise TypeError(f"the adapter gave {len(leaves)} values, the program takes {traced.in_spec.num_leaves}")
        given, named = tree_unflatten(leaves, traced.in_spec)
        self._guards(self, given, named)
        results = super().forward(*leaves)
        return tree_unflatten(list(results), traced.out_spec)


class _Call:
    """One call of a module: nodes and calls, in order."""

    def __init__(self, key: str, name: str) -> None:
        self.key, self.name = key, name
        self.parts: list[Node | _Call] = []

    def nodes(self) -> Iterator[Node]:
        """The nodes of it and of the calls in it."""
        for part in self.parts:
            if isinstance(part, _Call):
                yield from part.nodes()
            else:
                yield part


def _is_below(name: str, above: str) -> bool:
    return not above or name.startswith(f"{above}.")


def _text(graph: Graph) -> str:
    """What a graph does, with numbers for names: of two that do the same it is alike."""
    places: dict[Node, str] = {}
    lines = []
    for node in graph.nodes:
        args = map_arg((node.args, node.kwargs), lambda given: places[given])
        places[node] = f"%{len(places)}"
        lines.append(f"{node.op} {'' if node.op == 'placeholder' else node.target} {args}")
    return "\n".join(lines)


class _Builder:
    """Makes the modules and their graphs."""

    def __init__(self, program: ExportedProgram, root: Module) -> None:
        self.program, self.root = program, root
        self.order = {node: place for place, node in enumerate(program.graph.nodes)}
        self.lifted = {}
        for spec in program.graph_signature.input_specs:
            if spec.kind is not InputKind.USER_INPUT:
                self.lifted[spec.arg.name] = str(spec.target)
        self.own: dict[int, Any] = {}  # by what the program has
        self.texts: dict[str, list[tuple[str, str]]] = {}  # of a module: its graphs' texts, and what they are called

    def build(self) -> None:
        """Gives the root its modules, parameters and graph."""
        program = self.program
        for name in program._traced.module_names:
            self._module(name)
        for spec in program._kept():
            above = str(spec.target).rpartition(".")[0]
            if above:
                self._module(above)
            _put(self.root, spec, self._own(program._value_of(str(spec.target))))
        for name, first in program._traced.module_aliases.items():
            above, _, last = name.rpartition(".")
            (self._module(above) if above else self.root).add_module(last, self._module(first))
        for name, function in program._traced.attributes.items():
            setattr(self.root, name, function)
        self.root.graph = self._of_program()

    def _own(self, value: Any) -> Any:
        """The modules' own tensor for one of the program's: what they write the program does not see."""
        if not isinstance(value, Tensor):
            return value
        if id(value) not in self.own:
            made: Any = value.detach().clone()
            if isinstance(value, Parameter):
                made = Parameter(made, value.requires_grad)
            self.own[id(value)] = made
        return self.own[id(value)]

    def _module(self, name: str) -> Module:
        found: Any = self.root
        for part in name.split("."):
            if not isinstance(found._modules.get(part), Module):
                found.add_module(part, InterpreterModule())
            found = found._modules[part]
        return found

    # ---- calls ----

    def _calls(self) -> _Call:
        """The program's call, and in it those of its modules, by what nodes have noted."""
        top = _Call("", "")
        open_calls = [top]
        for node in self.program.graph.nodes:
            if node.op in ("placeholder", "output") or (node.op == "get_attr" and "." not in node.target):
                continue  # functions of control flow are attributes of the program
            wanted = self._below(list(node.meta.get("nn_module_stack", {}).items()))
            same = 0
            while same < min(len(wanted), len(open_calls) - 1) and open_calls[same + 1].key == wanted[same][0]:
                same += 1
            del open_calls[same + 1 :]
            for key, name in wanted[same:]:
                call = _Call(key, name)
                open_calls[-1].parts.append(call)
                open_calls.append(call)
            open_calls[-1].parts.append(node)
        return top

    def _below(self, stack: list[tuple[str, Any]]) -> list[tuple[str, str]]:
        """The calls that are of their own: each below the one before it."""
        found: list[tuple[str, str]] = []
        for key, (name, _) in stack:
            if name and name in self.program._traced.module_names and _is_below(name, found[-1][1] if found else ""):
                found.append((key, name))
        return found

    # ---- graphs ----

    def _of_program(self) -> Graph:
        graph, values = Graph(), {}
        inputs: dict[Any, Node] = {}
        for node in self.program.graph.nodes:
            if node.op == "placeholder" and node.name not in self.lifted:
                inputs[node.name] = values[node] = graph.placeholder(node.name)
                values[node].meta = dict(node.meta)
        self._fill(graph, values, self._calls(), "")
        own = []
        signature = self.program.graph_signature
        for spec, value in zip(signature.output_specs, self.program.graph.output_node().args[0], strict=True):
            if spec.kind is OutputKind.USER_OUTPUT:
                own.append(self._inside(graph, values, value, "") if isinstance(value, Node) else value)
                continue
            new = self._inside(graph, values, value, "")
            is_input = spec.kind is OutputKind.USER_INPUT_MUTATION
            target: Any = inputs[spec.target] if is_input else graph.get_attr(str(spec.target))
            graph.call_function(tp.ops.aten.copy_.default, (target, new))
        graph.output(tuple(own))
        return graph

    def _inside(self, graph: Graph, values: dict[Node, Node], node: Node, above: str) -> Node:
        """A node's value in the graph of a module."""
        if node not in values:
            name = self.lifted[node.name] if node.name in self.lifted else str(node.target)
            values[node] = graph.get_attr(name[len(above) + 1 :] if above else name)
            values[node].meta = dict(node.meta)
        return values[node]

    def _fill(self, graph: Graph, values: dict[Node, Node], call: _Call, above: str) -> None:
        """Writes a call's parts to a graph."""
        for part in call.parts:
            if isinstance(part, _Call):
                self._write_call(graph, values, part, above)
            else:
                values[part] = graph.node_copy(part, lambda node: self._inside(graph, values, node, above))

    def _taken(self, call: _Call) -> list[Node]:
        """What a call uses of others: no parameters of its own."""
        own = set(call.nodes())
        used = {given for node in own for given in node.all_input_nodes if given not in own}
        taken = [node for node in used if not _is_below(self.lifted.get(node.name, ""), call.name)]
        return sorted(taken, key=self.order.__getitem__)

    def _given(self, call: _Call) -> list[Node]:
        """What others use of a call."""
        own = set(call.nodes())
        return [node for node in call.nodes() if any(user not in own for user in node.users)]

    def _write_call(self, graph: Graph, values: dict[Node, Node], call: _Call, above: str) -> None:
        """A call of a module is a node; the module's graph is made."""
        taken, given = self._taken(call), self._given(call)
        inner, inside = Graph(), {}
        for node in taken:
            inside[node] = inner.placeholder(node.name)
            inside[node].meta = dict(node.meta)
        self._fill(inner, inside, call, call.name)
        results = tuple(inside[node] for node in given)
        inner.output(results[0] if len(results) == 1 else results)
        target = self._placed(inner, call.name)
        args = tuple(self._inside(graph, values, node, above) for node in taken)
        made = graph.call_module(target[len(above) + 1 :] if above else target, args)
        made.meta["val"] = tuple(node.meta.get("val") for node in given)
        if len(given) == 1:
            (made.meta["val"],) = made.meta["val"]
        for place, node in enumerate(given):
            values[node] = made if len(given) == 1 else graph.call_function(operator.getitem, (made, place))
            values[node].meta = dict(node.meta)

    def _placed(self, graph: Graph, name: str) -> str:
        """The name of the module that has a graph: the module of the name, or a second one for a call that does
        something else."""
        text = _text(graph)
        known = self.texts.setdefault(name, [])
        for other, called in known:
            if other == text:
                return called
        owner: Any = self._module(name)
        if not known:
            owner.graph, called = graph, name
        else:
            called = f"{name}@{len(known)}"
            above, _, last = called.rpartition(".")
            holder = self._module(above) if above else self.root
            holder.add_module(last, InterpreterModule(graph, owner))
        known.append((text, called))
        return called


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """The modules of a program, each with its part of the graph: any may be called by itself, or be another.

    Arguments:
        module: the program
        flat_args_adapter: makes arguments that are nested in another way into what the program takes

    Returns: UnflattenedModule.

    Raises: TypeError for what is no program.

    Example:
        >>> program = tp.export.export(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), (tp.ones(1, 2),))
        >>> made = tp.export.unflatten(program)
        >>> made.add_module("1", nn.Tanh())
        >>> bool((made(tp.ones(1, 2)).abs() <= 1).all())
        True
    """
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"unflatten(): an ExportedProgram is wanted, not {type(module).__name__}")
    return UnflattenedModule(module, flat_args_adapter)
