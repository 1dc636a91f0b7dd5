"""What the inputs and outputs of an exported graph are: parameters, buffers, constants, the program's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

__all__ = [
    "ConstantArgument", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec",
    "SymIntArgument", "TensorArgument",
]  # fmt: skip


@dataclass
class TensorArgument:
    """A tensor among the inputs or outputs.

    Arguments:
        name: the node's name

    Example:
        >>> tp.export.graph_signature.TensorArgument("x").name
        'x'
    """

    name: str


@dataclass
class SymIntArgument:
    """A size among the inputs or outputs.

    Arguments:
        name: the node's name

    Example:
        >>> tp.export.graph_signature.SymIntArgument("sym_size_int").name
        'sym_size_int'
    """

    name: str


@dataclass
class ConstantArgument:
    """A value that is no tensor, and a part of the graph.

    Arguments:
        name: the node's name; of an output that of no node
        value: the value

    Example:
        >>> tp.export.graph_signature.ConstantArgument("k", 2).value
        2
    """

    name: str
    value: Any


class InputKind(Enum):
    """Where an input of the graph comes from.

    Example:
        >>> tp.export.graph_signature.InputKind.BUFFER.name
        'BUFFER'
    """

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output of the graph is for.

    Example:
        >>> tp.export.graph_signature.OutputKind.USER_OUTPUT.name
        'USER_OUTPUT'
    """

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass
class InputSpec:
    """An input of the graph.

    Arguments:
        kind: where it comes from
        arg: what it is
        target: the name of the parameter, buffer or constant; None of the program's own
        persistent: whether a buffer is in the module's state_dict

    Example:
        >>> s = tp.export.graph_signature
        >>> str(s.InputSpec(s.InputKind.PARAMETER, s.TensorArgument("p_weight"), "weight"))
        "p_weight: PARAMETER target='weight'"
    """

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target={self.target!r}"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclass
class OutputSpec:
    """An output of the graph.

    Arguments:
        kind: what it is for
        arg: what it is
        target: the name of the buffer or input that it is the new value of; None for the program's own

    Example:
        >>> s = tp.export.graph_signature
        >>> str(s.OutputSpec(s.OutputKind.USER_OUTPUT, s.TensorArgument("add"), None))
        'add: USER_OUTPUT'
    """

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        return f"{self.arg.name}: {self.kind.name}" + ("" if self.target is None else f" target={self.target!r}")


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph, in order.

    Arguments:
        input_specs: the inputs
        output_specs: the outputs

    Example:
        >>> program = tp.export.export(nn.Linear(2, 3), (tp.ones(1, 2),))
        >>> program.graph_signature.inputs_to_parameters
        {'p_weight': 'weight', 'p_bias': 'bias'}
    """

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, kind: InputKind, persistent: bool | None = None) -> dict[str, str]:
        return {
            spec.arg.name: str(spec.target)
            for spec in self.input_specs
            if spec.kind is kind and (persistent is None or spec.persistent is persistent)
        }

    def _written(self, kind: OutputKind) -> dict[str, str]:
        return {spec.arg.name: str(spec.target) for spec in self.output_specs if spec.kind is kind}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers."""
        return tuple(self.inputs_to_buffers.values())

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of the buffers that are not in the state_dict."""
        return tuple(self._targets(InputKind.BUFFER, False).values())

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of the constants."""
        return tuple(self.inputs_to_lifted_tensor_constants.values())

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The program's inputs: nodes' names, and values of what is no tensor."""
        own = [spec.arg for spec in self.input_specs if spec.kind is InputKind.USER_INPUT]
        return tuple(arg.value if isinstance(arg, ConstantArgument) else arg.name for arg in own)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The program's outputs: nodes' names, and values of what is no tensor."""
        own = [spec.arg for spec in self.output_specs if spec.kind is OutputKind.USER_OUTPUT]
        return tuple(arg.value if isinstance(arg, ConstantArgument) else arg.name for arg in own)

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """The names of parameters by nodes' names."""
        return self._targets(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """The names of buffers by nodes' names."""
        return self._targets(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """The names of constants by nodes' names."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """The names of buffers that the program writes, by the names of the nodes that give their new values."""
        return self._written(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> dict[str, str]:
        """The names of parameters that the program writes, by the names of the nodes that give their new values."""
        return self._written(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """The names of inputs that the program writes, by the names of the nodes that give their new values."""
        return self._written(OutputKind.USER_INPUT_MUTATION)

    def __str__(self) -> str:
        inputs = "".join(f"{spec}\n" for spec in self.input_specs)
        outputs = "".join(f"{spec}\n" for spec in self.output_specs)
        return f"\n# inputs\n{inputs}\n# outputs\n{outputs}"
