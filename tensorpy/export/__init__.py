"""A module's call as a graph of operators, for tools that look at programs.

Parameters, buffers and constants are inputs of the graph, before the program's own. Nothing is computed for it; sizes
that are said to vary are symbols. `ExportedProgram.module()` runs the graph.
"""

from __future__ import annotations

from dataclasses import is_dataclass as _is_dataclass
from typing import Any

from tensorpy._dynamo.exc import UserError, UserErrorType
from tensorpy._package import proposing as _proposing
from tensorpy.export import exported_program as exported_program
from tensorpy.export import graph_signature as graph_signature
from tensorpy.export._file import load, save
from tensorpy.export._trace import trace as _trace
from tensorpy.export.dynamic_shapes import Dim, dims
from tensorpy.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
    default_decompositions,
)
from tensorpy.export.graph_signature import ExportGraphSignature
from tensorpy.export.unflatten import FlatArgsAdapter, UnflattenedModule, unflatten
from tensorpy.nn import Module as _Module
from tensorpy.utils._pytree import register_dataclass as _register

__all__ = [
    "Dim", "ExportGraphSignature", "ExportedProgram", "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature",
    "UnflattenedModule", "default_decompositions", "dims", "export", "load", "register_dataclass", "save", "unflatten",
]  # fmt: skip


def export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The graph of a module's call.

    The module is called once, with tensors without elements; what it does in Python (loops, branches on sizes) is done
    then. A branch on a value of a tensor is an error.

    Arguments:
        mod: the module
        args: its positional arguments, an example
        kwargs: its named ones
        dynamic_shapes: for each argument, by name or in order, what is said of its sizes: a dict or tuple with a Dim, a
            Dim.AUTO, Dim.DYNAMIC or Dim.STATIC for dimensions, nested as the argument is; None: sizes are numbers
        strict: whether nodes have `source_fn_stack` beside `torch_fn`; the module is called either way
        preserve_module_call_signature: is taken: graphs are flat
        prefer_deferred_runtime_asserts_over_guards: is taken

    Returns: an ExportedProgram.

    Raises: ValueError for what is no module; UserError for sizes that do not vary as was said;
    GuardOnDataDependentSymNode for a branch on a value.

    Example:
        >>> program = tp.export.export(nn.ReLU(), (tp.ones(4, 3),), dynamic_shapes=({0: tp.export.Dim("batch")},))
        >>> program.module()(tp.ones(7, 3)).shape
        tensorpy.Size([7, 3])
        >>> program.module()(tp.ones(7, 5))
        Traceback (most recent call last):
            ...
        AssertionError: Guard failed: input.size()[1] == 3
    """
    if not isinstance(mod, _Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(UserErrorType.INVALID_INPUT, f"export(): args is a tuple of arguments, not {type(args)}")
    return ExportedProgram(*_trace(mod, args, dict(kwargs or {}), dynamic_shapes, strict))


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Makes a dataclass something that arguments and results of programs may be nested in.

    Arguments:
        cls: the dataclass
        serialized_type_name: what files call it; None: by its module and name

    Raises: AssertionError for what is no dataclass; ValueError for one that is known.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Pair:
        ...     a: tp.Tensor
        ...     b: tp.Tensor
        >>> tp.export.register_dataclass(Pair)
        >>> class Sum(nn.Module):
        ...     def forward(self, pair):
        ...         return pair.a + pair.b
        >>> program = tp.export.export(Sum(), (Pair(tp.ones(2), tp.ones(2)),))
        >>> program.module()(Pair(tp.ones(2), tp.zeros(2)))
        tensor([1., 1.])
    """
    if not _is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    name = f"{cls.__module__}.{cls.__qualname__}" if serialized_type_name is None else serialized_type_name
    _register(cls, serialized_type_name=name)


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("export", globals())
