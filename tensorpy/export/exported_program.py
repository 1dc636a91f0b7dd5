"""A program as a graph of operators whose parameters and buffers are inputs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorpy as tp
from tensorpy._decomp import core_aten_decompositions
from tensorpy._export.verifier import TrainingIRVerifier, Verifier
from tensorpy.export._trace import Traced, argument_of, functional
from tensorpy.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.nn import Module
from tensorpy.nn.parameter import Parameter

__all__ = ["CallSpec", "ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


@dataclass
class CallSpec:
    """How arguments and results are nested.

    Arguments:
        in_spec: of (args, kwargs)
        out_spec: of the result

    Example:
        >>> tp.export.export(nn.ReLU(), (tp.ones(2),)).call_spec.out_spec.is_leaf()
        True
    """

    in_spec: Any
    out_spec: Any


@dataclass
class ModuleCallSignature:
    """What a module is called with.

    Arguments:
        inputs: the inputs
        outputs: the outputs
        in_spec: how arguments are nested
        out_spec: how results are
        forward_arg_names: the arguments' names

    Example:
        >>> program = tp.export.export(nn.ReLU(), (tp.ones(2),))
        >>> program.module_call_graph[0].signature.forward_arg_names
        ['input']
    """

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module of the program.

    Arguments:
        fqn: its name, "" of the program itself
        signature: what it is called with, of the program itself

    Example:
        >>> program = tp.export.export(nn.Sequential(nn.ReLU()), (tp.ones(2),))
        >>> [entry.fqn for entry in program.module_call_graph]
        ['', '0']
    """

    fqn: str
    signature: ModuleCallSignature | None = None


def default_decompositions() -> dict[Any, Any]:
    """The decompositions that `run_decompositions()` takes where none are given.

    Returns: a dict of functions by overload.

    Example:
        >>> tp.ops.aten.silu.default in tp.export.default_decompositions()
        False
    """
    table = core_aten_decompositions()
    return {
        op: f for op, f in table.items() if "Tensor" in op._schema.partition("->")[0]
    }  # factories fill what they make


class _Guards:
    """A hook: AssertionError where a module is called with what its program was not exported for."""

    def __init__(self, program: ExportedProgram) -> None:
        self.traced = program._traced

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.traced.check(args, kwargs)


class _Unlifted(GraphModule):
    """The module of a program: it has the program's parameters and buffers, and no switch for training."""

    def train(self, mode: bool = True) -> Any:
        raise NotImplementedError("an exported module does what was exported: export the program in the other mode")

    def eval(self) -> Any:
        return self.train(False)


class ExportedProgram:
    """What export() gives.

    Its graph takes parameters, buffers and constants before the program's own inputs, as `graph_signature` says, and is
    run by the module that `module()` makes.

    Arguments:
        traced: what a call has become
        signature: what the graph's inputs and outputs are
        kind: "TRAINING", or "ATEN" of a program without writes

    Example:
        >>> program = tp.export.export(nn.Linear(2, 2), (tp.ones(1, 2),))
        >>> print(program.graph_module.code.strip())
        def forward(self, p_weight, p_bias, input):
            linear = tensorpy.ops.aten.linear.default(input, p_weight, p_bias);  input = p_weight = p_bias = None
            return (linear,)
        >>> program.module()(tp.ones(1, 2)).shape
        tensorpy.Size([1, 2])
    """

    def __init__(self, traced: Traced, signature: ExportGraphSignature, kind: str = "TRAINING") -> None:
        self._traced, self._graph_signature, self.dialect = traced, signature, kind
        self.graph_module = GraphModule(traced.attributes, traced.graph, "GraphModule")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    # ---- what it is made of ----

    @property
    def graph(self) -> Any:
        """The graph."""
        return self.graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the graph's inputs and outputs are."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """The parameters and persistent buffers by name."""
        return self._traced.state

    @property
    def constants(self) -> dict[str, Any]:
        """The tensors that are neither, by name."""
        return self._traced.constants

    tensor_constants = constants

    @property
    def example_inputs(self) -> Any:
        """The arguments (args, kwargs) that the program was exported with."""
        return self._traced.example_inputs

    @property
    def call_spec(self) -> CallSpec:
        """How arguments and results are nested."""
        return CallSpec(self._traced.in_spec, self._traced.out_spec)

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """Between which numbers sizes lie that vary, by symbol."""
        return self._traced.ranges()

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The program and its modules."""
        t = self._traced
        own = ModuleCallSignature([], [], t.in_spec, t.out_spec, list(t.argument_names))
        return [ModuleCallEntry("", own), *(ModuleCallEntry(name) for name in t.module_names)]

    def _kept(self) -> Iterator[InputSpec]:
        """What the program keeps, under each of its names."""
        specs = [s for s in self.graph_signature.input_specs if s.kind is not InputKind.USER_INPUT and s.target]
        yield from specs
        named = {spec.target for spec in specs}
        for name, value in self.state_dict.items():
            if name not in named:
                kind = InputKind.PARAMETER if isinstance(value, Parameter) else InputKind.BUFFER
                yield InputSpec(kind, TensorArgument(name), name, True)

    def _value_of(self, name: str) -> Any:
        """What the program keeps under a name."""
        return (self.state_dict if name in self.state_dict else self.constants)[name]

    def _tensors(self, kind: InputKind) -> Iterator[tuple[str, Any]]:
        for spec in self.graph_signature.input_specs:
            if spec.kind is kind and spec.target is not None:
                yield spec.target, self._value_of(spec.target)

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """The parameters and their names.

        Returns: an iterator of (name, parameter).
        """
        return self._tensors(InputKind.PARAMETER)

    def parameters(self) -> Iterator[Any]:
        """The parameters.

        Returns: an iterator.
        """
        return (value for _, value in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """The buffers and their names.

        Returns: an iterator of (name, tensor).
        """
        return self._tensors(InputKind.BUFFER)

    def buffers(self) -> Iterator[Any]:
        """The buffers.

        Returns: an iterator.
        """
        return (value for _, value in self.named_buffers())

    # ---- what is done with it ----

    def module(self, check_guards: bool = True) -> Any:
        """A module that runs the program, with its parameters and buffers.

        Arguments:
            check_guards: whether it looks at sizes, and at what is no tensor among the arguments

        Returns: a GraphModule.
        """
        made = self._unlifted()
        if check_guards:
            made.register_forward_pre_hook(_Guards(self), with_kwargs=True)
        return made

    def _unlifted(self) -> Any:
        root, graph = Module(), Graph()
        for name, function in self._traced.attributes.items():
            setattr(root, name, function)
        kinds = {spec.arg.name: spec for spec in self.graph_signature.input_specs}
        values: dict[Any, Any] = {}
        for node in self.graph.nodes:
            spec = kinds.get(node.name) if node.op == "placeholder" else None
            if spec is None or spec.target is None:
                values[node] = graph.node_copy(node, lambda n: values[n]) if node.op != "output" else None
                continue
            _put(root, spec, self._value_of(spec.target))
            values[node] = graph.get_attr(spec.target)
            values[node].meta = dict(node.meta)
        inputs = {
            (spec.kind is InputKind.USER_INPUT, spec.target or node.name): values[node]
            for node in self.graph.nodes
            if node.op == "placeholder" and (spec := kinds[node.name])
        }
        own = []
        for output, value in zip(self.graph_signature.output_specs, self.graph.output_node().args[0], strict=True):
            if output.kind is OutputKind.USER_OUTPUT:
                own.append(values.get(value, value) if not isinstance(value, list) else value)
                continue
            written = inputs[output.kind is OutputKind.USER_INPUT_MUTATION, str(output.target)]
            graph.call_function(tp.ops.aten.copy_.default, (written, values[value]))
        graph.in_spec, graph.out_spec = self._traced.in_spec, self._traced.out_spec
        graph.output(own)
        made = _Unlifted(root, graph, "GraphModule")
        for spec in self._kept():  # a GraphModule has what its graph names, and keeps every tensor as a buffer
            _put(made, spec, self._value_of(str(spec.target)))
        return made

    def run_decompositions(
        self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The program with other operators, none of which writes: what buffers and inputs become are outputs.

        Arguments:
            decomp_table: functions that run in operators' places, by overload; None: default_decompositions()
            decompose_custom_triton_ops: is taken

        Returns: an ExportedProgram.
        """
        table = default_decompositions() if decomp_table is None else dict(decomp_table)
        traced, written = functional(self, table)
        inputs = [copy.copy(spec) for spec in self.graph_signature.input_specs]
        by_name = {spec.arg.name: spec for spec in inputs}
        outputs = [
            OutputSpec(_WRITTEN[by_name[name].kind], TensorArgument(node.name), by_name[name].target or name)
            for name, node in written
        ]
        own = traced.graph.output_node().args[0][len(written) :]
        outputs += [OutputSpec(OutputKind.USER_OUTPUT, argument_of(value), None) for value in own]
        return ExportedProgram(traced, ExportGraphSignature(inputs, outputs), "ATEN")

    def validate(self) -> None:
        """Checks that the graph calls operators, and has the inputs and outputs of the signature.

        Raises: RuntimeError (_export.verifier.SpecViolationError).
        """
        (Verifier if self.dialect == "ATEN" else TrainingIRVerifier)().check(self)

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False)
        body = "\n".join(f"    {line}" if line else "" for line in code.strip("\n").split("\n"))
        ranges = f"Range constraints: {self.range_constraints}\n"
        return f"ExportedProgram:\n{body}\n    \nGraph signature: {self.graph_signature}\n{ranges}"

    __repr__ = __str__


_WRITTEN = {
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.CONSTANT_TENSOR: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


def _put(root: Any, spec: InputSpec, value: Any) -> None:
    """A parameter, buffer or constant under its name."""
    *above, name = str(spec.target).split(".")
    for part in above:
        if not isinstance(root._modules.get(part), Module):
            root.add_module(part, Module())
        root = root._modules[part]
    root._buffers.pop(name, None)
    if spec.kind is InputKind.PARAMETER:
        root.register_parameter(name, value)
    elif spec.kind is InputKind.BUFFER:
        root.register_buffer(name, value, persistent=spec.persistent is not False)
    else:
        setattr(root, name, value)
