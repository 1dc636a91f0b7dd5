"""Whether operators write, and share the memory of, just what their schemas say: a mode that looks at every call."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor, strided
from tensorpy._library.function_schema import Argument
from tensorpy.testing.opcheck import _is_same
from tensorpy.utils._python_dispatch import TorchDispatchMode
from tensorpy.utils._pytree import tree_flatten


class SchemaCheckMode(TorchDispatchMode):
    """In its scope an operator that does not do what its schema says is a RuntimeError.

    `ops` are the names of the operators that ran, `mutated` the (operator, argument) pairs that changed, and
    `aliasing` the (operator, argument, "output_0") triples that share memory; `self` is called "input".

    Example:
        >>> from tensorpy._subclasses.schema_check_mode import SchemaCheckMode
        >>> x = tp.ones(2)
        >>> with SchemaCheckMode() as check:
        ...     y = x.sinh_()
        >>> check.mutated, check.aliasing
        ([('aten::sinh_', 'input')], [('aten::sinh_', 'input', 'output_0')])
    """

    def __init__(self) -> None:
        super().__init__()
        self.reset_cache()

    def reset_cache(self) -> None:
        """Forgets what was seen."""
        self.ops: list[str] = []
        self.mutated: list[tuple[str, str]] = []
        self.aliasing: list[tuple[str, str, str]] = []

    def display_ops(self) -> None:
        """Prints the operators that ran."""
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema, kwargs = func._schema, dict(kwargs or {})
        self.ops.append(schema.name)
        by_name = dict(zip([a.name for a in schema.arguments], args, strict=False)) | kwargs
        given = [(a, _tensors(by_name.get(a.name))) for a in schema.arguments]
        given = [(a, tensors) for a, tensors in given if tensors]
        before = [[_state(t) for t in tensors] for _, tensors in given]
        made = func(*args, **kwargs)
        results = list(made) if isinstance(made, tuple) else [made]
        outputs = [_tensors(result) for result in results]
        self._check_outputs(schema, outputs)
        written = _memory([t for a, tensors in given if a.is_write for t in tensors])
        for (argument, tensors), states in zip(given, before, strict=True):
            self._check_shared(schema, argument, tensors, outputs)
            self._check_written(schema, argument, tensors, states, written)
        return made

    def _check_outputs(self, schema: Any, outputs: list[list[Tensor]]) -> None:
        """Two results share memory only where one alias set has them."""
        for at, one in enumerate(outputs):
            for other in range(at + 1, len(outputs)):
                if _share(one, outputs[other]) and not any(r.alias_info for r in schema.returns):
                    raise RuntimeError(f"Outputs {at} and {other} alias unexpectedly: {schema}")

    def _check_written(
        self, schema: Any, argument: Argument, tensors: list[Tensor], states: list[Any], written: list[Any]
    ) -> None:
        if all(map(_unchanged, tensors, states)):
            return
        self.mutated.append((schema.name, _name(argument)))
        if argument.name.startswith("running_"):
            return  # statistics of a batch norm in training, which PyTorch's schemas do not annotate
        if not argument.is_write and not any(s is w for s in _memory(tensors) for w in written):
            raise RuntimeError(f"Argument {_name(argument)} is not defined as mutable but was mutated: {schema}")

    def _check_shared(
        self, schema: Any, argument: Argument, tensors: list[Tensor], outputs: list[list[Tensor]]
    ) -> None:
        for at, output in enumerate(outputs):
            if not _share(tensors, output):
                continue
            self.aliasing.append((schema.name, _name(argument), f"output_{at}"))
            said = schema.returns[min(at, len(schema.returns) - 1)].alias_info
            # An operator that is unsafe by name shares memory that its schema keeps from autograd.
            unsafe = schema.name.split("::")[-1].lstrip("_").startswith("unsafe_")
            if argument.alias_info is None and said is None and not unsafe:
                raise RuntimeError(
                    f"Argument {_name(argument)} is not defined to alias output but was aliasing: {schema}"
                )


def _name(argument: Argument) -> str:
    return "input" if argument.name == "self" else argument.name


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, Tensor)]


def _elements(t: Tensor) -> Tensor:
    """What holds a wrapper's elements, where it says so in `elem`; else the tensor."""
    inner = getattr(t, "elem", None)
    return (inner if isinstance(inner, Tensor) else t).detach()


def _memory(tensors: list[Tensor]) -> list[Any]:
    """The storages of those that have one."""
    plain = [_elements(t) for t in tensors]
    return [t.untyped_storage() for t in plain if t.layout is strided and t.numel()]


def _share(some: list[Tensor], others: list[Tensor]) -> bool:
    theirs = _memory(others)
    return any(one is other for one in _memory(some) for other in theirs)


def _state(t: Tensor) -> Any:
    """The elements, and where they lie; Meta tensors have the second alone."""
    plain = _elements(t)
    place = (plain.stride(), plain.storage_offset()) if plain.layout is strided else None
    return place, plain.clone(), plain.shape


def _unchanged(t: Tensor, state: Any) -> bool:
    place, elements, shape = state
    now = _state(t)
    if (place, shape) != (now[0], now[2]):
        return False
    return bool(t.device.type == "meta" or place is None or _is_same(now[1], elements))
