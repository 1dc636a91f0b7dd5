"""Whether an exported program is one: its graph calls operators, and has the inputs and outputs of its signature."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._higher_order_ops.higher_order import HigherOrderOperator
from tensorpy.fx.graph_module import GraphModule
from tensorpy.nn.parameter import Parameter

__all__ = ["SpecViolationError", "TrainingIRVerifier", "Verifier"]

# What is computed of sizes, and what takes an operator's results apart.
_OF_NUMBERS = {
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.neg, operator.pos, operator.abs, operator.and_, operator.or_, operator.not_, operator.getitem),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    *(builtins.round, builtins.min, builtins.max, math.ceil, math.floor, math.trunc, math.sqrt),
}


class SpecViolationError(RuntimeError):
    """A program's graph has what no exported program has, or another signature than it says."""


def _whole(said: int, is_there: int, what: str) -> None:
    if said != is_there:
        raise SpecViolationError(f"Number of {what} nodes {is_there} is not that of the graph signature, {said}")


class Verifier:
    """Checks programs without writes.

    Example:
        >>> from tensorpy._export.verifier import Verifier
        >>> program = tp.export.export(nn.ReLU(), (tp.ones(2),)).run_decompositions()
        >>> Verifier().check(program)
    """

    dialect = "ATEN"

    def allowed_builtin_ops(self) -> list[Any]:
        """Functions of Python's that a graph may call.

        Returns: a list.
        """
        return list(_OF_NUMBERS)

    def allowed_op_types(self) -> tuple[type, ...]:
        """The types of other functions that it may call.

        Returns: a tuple.
        """
        return (_C.OpOverload, HigherOrderOperator)

    def check_valid_op(self, op: Any) -> None:
        """Whether a graph of the dialect may call an operator.

        Raises: SpecViolationError.
        """
        if isinstance(op, _C.OpOverload) and op._schema.is_mutable:
            raise SpecViolationError(f"operator '{op}' is not functional")

    def check_additional(self, gm: GraphModule) -> None:
        """What a subclass looks at besides."""

    def check(self, ep: Any) -> None:
        """Looks at a program's graph, those of its functions, and its signature.

        Arguments:
            ep: the ExportedProgram

        Raises: SpecViolationError.
        """
        self._check_graph_module(ep.graph_module)
        _check_signature(ep)

    def check_valid(self, gm: GraphModule) -> None:
        """Looks at a graph and those of its functions, as _check_graph_module does.

        Raises: SpecViolationError.
        """
        self._check_graph_module(gm)

    def _check_graph_module(self, gm: GraphModule) -> None:
        for module in gm.modules():
            if isinstance(module, GraphModule):
                module.graph.lint()
                for node in module.graph.nodes:
                    self._check_node(module, node)
        self.check_additional(gm)

    def _check_node(self, module: GraphModule, node: Any) -> None:
        if node.op in ("call_module", "call_method"):
            raise SpecViolationError(f"{node.op} is not valid: got {node.target!r}, where a graph calls operators")
        if node.op == "get_attr":
            found = operator.attrgetter(node.target)(module)
            if not isinstance(found, (Tensor, GraphModule)):
                raise SpecViolationError(f"get_attr: {node.target} is of the type {type(found).__name__}")
        elif node.op == "call_function":
            if node.target not in self.allowed_builtin_ops() and not isinstance(node.target, self.allowed_op_types()):
                raise SpecViolationError(f"Operator '{node.target}' is not an allowed operator type")
            self.check_valid_op(node.target)


class TrainingIRVerifier(Verifier):
    """Checks programs as export() gives them, whose operators may write."""

    dialect = "TRAINING"

    def check_valid_op(self, op: Any) -> None:
        """Every operator is allowed."""


def _check_signature(ep: Any) -> None:
    names = [node.name for node in ep.graph.nodes if node.op == "placeholder"]
    said, outputs = ep.graph_signature.input_specs, ep.graph.output_node().args[0]
    _whole(len(said), len(names), "input")
    for spec, name in zip(said, names, strict=True):
        kept, kind = ep.state_dict.get(spec.target), spec.kind.name
        if spec.arg.name != name:
            raise SpecViolationError(f"the graph's input is {name}, where its signature has {spec.arg.name}")
        if kind == "PARAMETER" and not isinstance(kept, Parameter):
            if spec.target not in ep.state_dict:
                raise SpecViolationError(f"Parameter {spec.target} is not in the state dict.")
            raise SpecViolationError(f"{spec.target} of the state dict is not an instance of torch.nn.Parameter.")
        if kind == "BUFFER":
            if spec.persistent and kept is None:
                raise SpecViolationError(f"Buffer {spec.target} is not in the state dict.")
            if not spec.persistent and kept is not None:
                raise SpecViolationError(f"Non-persistent buffer {spec.target} is in the state dict.")
        if kind == "CONSTANT_TENSOR" and spec.target not in ep.constants:
            raise SpecViolationError(f"Constant tensor {spec.target} is not in the constants dictionary.")
    _whole(len(ep.graph_signature.output_specs), len(outputs), "output")
