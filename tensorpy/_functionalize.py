"""func.functionalize: a function without writes, from one that writes.

The tensors of the function are stand-ins (`FunctionalTensor`): a memory, which is a value and how often it was
replaced, and the views that lead from the memory to the tensor. A mode at the key Functionalize, below autograd and
above all that computes, gets every operator. A view adds a step; an operator that writes runs as the one that does not,
and its result becomes the value of the memory, through the views backwards; who looks at another view of that memory
later takes its steps again. At the end what was written to an argument is copied to it, once.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tensorpy import _C, ops
from tensorpy._C import Tensor
from tensorpy.overrides import enable_reentrant_dispatch
from tensorpy.utils._python_dispatch import TorchDispatchMode, get_alias_info

aten = ops.aten

Step = tuple[Any, tuple[Any, ...], dict[str, Any], int]  # a view: operator, arguments after self, which of its results


class _Memory:
    """What views share: the value, how often it was replaced, and how its elements lie, which as_strided goes by."""

    def __init__(self, value: Tensor) -> None:
        self.value, self.generation = value, 0
        self.layout = (value.stride(), value.storage_offset())
        self.is_strided = False

    def replace(self, value: Tensor) -> None:
        self.value = self.laid_out(value) if self.is_strided else value
        self.generation += 1

    def laid_out(self, value: Tensor) -> Tensor:
        """The value with its elements where those of the memory lie."""
        for laid in (value, value.clone(memory_format=_C.contiguous_format)):
            if (laid.stride(), laid.storage_offset()) == self.layout:
                return laid
        raise RuntimeError("functionalize: as_strided on memory that is written and not contiguous is not possible")

    def stride(self) -> None:
        """A view goes by places in memory from now on."""
        if not self.is_strided and self.generation:
            self.replace(self.laid_out(self.value))
        self.is_strided = True


class FunctionalTensor(Tensor):
    """Stands for a tensor inside a function that is functionalised."""

    __torch_function__ = _C._disabled_torch_function_impl
    memory: _Memory
    steps: tuple[Step, ...]
    value: Tensor
    generation: int
    owner: _Functionalize
    changed_views: list[Step]

    @staticmethod
    def make(mode: _Functionalize, value: Tensor, memory: _Memory, steps: tuple[Step, ...]) -> FunctionalTensor:
        self: FunctionalTensor = Tensor._make_wrapper_subclass(
            FunctionalTensor,
            value.shape,
            value.stride(),
            storage_offset=value.storage_offset(),
            dtype=value.dtype,
            device=value.device,
        )
        _C._mark_pending(self, value.is_conj(), value.is_neg())
        self.owner, self.memory, self.steps, self.changed_views = mode, memory, steps, []
        self.value, self.generation = value, memory.generation
        return self

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func}: a tensor of func.functionalize is used outside the function that it was made for")

    def __repr__(self) -> str:
        return f"FunctionalTensor({current(self)})"

    def tolist(self) -> Any:
        return current(self).tolist()


def current(t: FunctionalTensor) -> Tensor:
    """The tensor's value, with what was written to its memory since."""
    if t.generation != t.memory.generation:
        t.value, t.generation = _follow(t.memory.value, t.steps), t.memory.generation
    return t.value


# ---- views ----


def _take(base: Tensor, step: Step) -> Tensor:
    func, args, kwargs, which = step
    result = func(base, *args, **kwargs)
    return result if which < 0 else result[which]


def _follow(base: Tensor, steps: tuple[Step, ...]) -> Tensor:
    for step in steps:
        base = _take(base, step)
    return base


def _put_back(base: Tensor, step: Step, part: Tensor) -> Tensor:
    """`base` with `part` in place of what the step leads to."""
    func, args, kwargs, which = step
    name = func._opname
    if which < 0 and name in _SCATTERED:
        return _SCATTERED[name](base, part, *args, **kwargs)
    if part.dtype != base.dtype:
        raise RuntimeError(f"functionalize: a write through {func} is not possible")
    if part.numel() == base.numel() and name in _SAME_ORDER:
        return part.reshape(base.shape)
    places = _take(_C.arange(base.numel(), device=base.device).reshape(base.shape), step)
    return base.reshape(-1).scatter(0, places.reshape(-1), part.reshape(-1)).reshape(base.shape)


_SAME_ORDER = frozenset(
    "view reshape _unsafe_view flatten unflatten unsqueeze squeeze alias detach ravel view_as".split()
)
_SCATTERED: dict[str, Callable[..., Tensor]] = {
    "slice": _C.slice_scatter,
    "select": _C.select_scatter,
    "diagonal": _C.diagonal_scatter,
    "as_strided": _C.as_strided_scatter,
    "_conj": lambda base, part: part.conj(),
    "_neg_view": lambda base, part: part.neg(),
    "t": lambda base, part: part.t(),
    "transpose": lambda base, part, dim0, dim1: part.transpose(dim0, dim1),
    "view_as_real": lambda base, part: _C.view_as_complex(part.contiguous()),
    "view_as_complex": lambda base, part: _C.view_as_real(part),
    "real": lambda base, part: _C.complex(part, base.imag) if base.is_complex() else part,
    "imag": lambda base, part: _C.complex(base.real, part),
}


def _write_through(base: Tensor, steps: tuple[Step, ...], value: Tensor) -> Tensor:
    if not steps:
        return value
    if steps[0][0]._schema.startswith("view.dtype"):
        return _write_through(_take(base, steps[0]), steps[1:], value).contiguous().view(base.dtype)
    return _put_back(base, steps[0], _write_through(_take(base, steps[0]), steps[1:], value))


# ---- operators without writes, by those with ----


def _filled(self: Tensor, value: Tensor) -> Tensor:
    return value.to(device=self.device, dtype=self.dtype).expand(self.shape).clone()


def _renormed(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    norms = _C._linalg.linalg_vector_norm(self, norm_type, [1])
    asked = _C.zeros_like(norms, dtype=_C.bool).index_fill(0, indices.reshape(-1), True)
    scale = _C.where(asked & (norms > max_norm), max_norm / (norms + 1e-7), _C.ones_like(norms))
    return self * scale.unsqueeze(1)


def _index_put(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    places = aten.index.Tensor(_C.arange(self.numel(), device=self.device).reshape(self.shape), indices)
    values = values.to(device=self.device).expand(places.shape).reshape(-1)
    put = self.reshape(-1).scatter_add if accumulate else self.reshape(-1).scatter
    return put(0, places.reshape(-1), values).reshape(self.shape)


def _diagonal_filled(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    places = _C.arange(self.numel(), device=self.device).reshape(self.shape)
    sizes = self.shape
    step = sum(functools.reduce(lambda a, b: a * b, sizes[i + 1 :], 1) for i in range(len(sizes)))
    end = self.numel() if wrap or len(sizes) > 2 else sizes[1] * sizes[1]
    return self.masked_fill((places % step == 0) & (places < end), fill_value)


_BY_HAND: dict[str, Callable[..., Tensor]] = {
    "copy_": lambda self, src, non_blocking=False: _filled(self, src),
    "fill_.Tensor": _filled,
    "zero_": _C.zeros_like,
    "bernoulli_.float": lambda self, p=0.5, generator=None: _C.bernoulli(self, p, generator=generator),
    "normal_": lambda self, mean=0.0, std=1.0, generator=None: _C.normal(
        mean, std, self.shape, generator=generator, dtype=self.dtype, device=self.device
    ),
    "fill_diagonal_": _diagonal_filled,
    "embedding_renorm_": _renormed,
    "index_put_": _index_put,  # index_put is a clone that is written to
    "index_put.out": _index_put,
}
_FACTORY = frozenset(("dtype", "layout", "device", "pin_memory", "requires_grad"))


def _signature(func: Any) -> list[tuple[str, str]]:
    outs = _outs(func)
    return [(a.name, a.type) for a in get_alias_info(func).args if a.name not in _FACTORY and a.name not in outs]


@functools.cache
def _functional(func: Any) -> Any:
    """The operator that gives what `func` writes, or None: of the same namespace, name, arguments and, if it has one,
    overload."""
    name = func._opname.rpartition("::")[2]
    packet = getattr(getattr(ops, func.namespace), name if _outs(func) else name.removesuffix("_"), None)
    candidates = [] if packet is None else [getattr(packet, overload) for overload in packet.overloads()]
    candidates.sort(key=lambda c: c._overloadname != func._overloadname)
    for candidate in candidates:
        quiet = not any(a.is_write for a in get_alias_info(candidate).args)
        if quiet and _signature(candidate) == _signature(func):
            return candidate
    return None


def _outs(func: Any) -> list[str]:
    """The names of what an out= operator writes; empty for one in place."""
    written = [a.name for a in get_alias_info(func).args if a.is_write]
    return [] if "self" in written or func._opname.endswith("_") else written


def _run_without_write(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], written: list[Tensor]) -> list[Tensor]:
    """The values that `func` would write, in the order of `written`."""
    outs = _outs(func)
    kwargs = {name: value for name, value in kwargs.items() if name not in outs}
    by_hand = _BY_HAND.get(func.__name__)
    if by_hand is not None:
        return [by_hand(*args, **kwargs)]
    functional = _functional(func)
    if functional is None:
        raise NotImplementedError(f"functionalize: there is no operator that does what {func} does without a write")
    names = {a.name for a in get_alias_info(functional).args}
    if outs and "device" in names:
        kwargs |= {"dtype": written[0].dtype, "device": written[0].device}
    result = functional(*args, **kwargs)
    return [result] if isinstance(result, Tensor) else list(result)


# ---- the mode ----


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_map(item, change) for item in value]
        named = hasattr(value, "_fields") and isinstance(value, tuple)
        return type(value)(*items) if named else type(value)(items)
    return value


class _Functionalize(TorchDispatchMode):
    def __init__(self, copies_views: bool) -> None:
        super().__init__("Functionalize")
        self.copies_views = copies_views

    def wrap(self, value: Tensor) -> FunctionalTensor:
        """A new tensor of the function."""
        return FunctionalTensor.make(self, value, _Memory(value), ())

    def owns(self, t: Any) -> bool:
        return isinstance(t, FunctionalTensor) and t.owner is self

    def unwrap(self, value: Any) -> Any:
        return _map(value, lambda t: current(t) if self.owns(t) else t)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        info = get_alias_info(func)
        with enable_reentrant_dispatch():
            if any(a.is_write for a in info.args):
                return self.write(func, args, kwargs)
            if args and self.owns(args[0]) and info.args[0].alias and any(out.alias for out in info.outs):
                return self.view(func, args, kwargs)
            return _map(func(*self.unwrap(args), **self.unwrap(kwargs)), self.wrap)

    def view(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        source: FunctionalTensor = args[0]
        rest, named = self.unwrap(args[1:]), self.unwrap(kwargs)
        if func._opname == "as_strided":
            source.memory.stride()
        step_func = self.copying(func) if self.copies_views else func
        result = step_func(current(source), *rest, **named)
        single = isinstance(result, Tensor)
        made = [
            self.viewed(source, part, (step_func, rest, named, -1 if single else i))
            for i, part in enumerate([result] if single else result)
        ]
        return made[0] if single else made

    def viewed(self, source: FunctionalTensor, part: Tensor, step: Step) -> FunctionalTensor:
        """contiguous, reshape and their like give views, or new tensors, or the tensor itself."""
        value = current(source)
        if part is value:
            return source
        if not self.copies_views and not _shares(part, value):
            return self.wrap(part)
        return FunctionalTensor.make(self, part, source.memory, (*source.steps, step))

    @staticmethod
    def copying(func: Any) -> Any:
        """The operator that copies what `func` would view."""
        packet = getattr(aten, f"{func._opname}_copy", None)
        return func if packet is None else getattr(packet, func._overloadname, func)

    def write(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        info = get_alias_info(func)
        given = dict(zip([a.name for a in info.args], args, strict=False)) | kwargs
        targets: list[Any] = []
        for a in info.args:
            if a.is_write and given.get(a.name) is not None:
                value = given[a.name]
                targets += value if isinstance(value, list) else [value]
        if "inplace_view" in func.tags:
            return self.change_view(func, targets[0], args, kwargs)
        if not all(self.owns(t) for t in targets):
            raise RuntimeError(
                f"functionalize: {func} writes to a tensor that is neither an argument of the function nor made in it"
            )
        values = _run_without_write(func, self.unwrap(args), self.unwrap(kwargs), targets)
        for target, value in zip(targets, values, strict=False):
            self.assign(func, target, value)
        return targets[0] if len(targets) == 1 else tuple(targets)

    def assign(self, func: Any, target: FunctionalTensor, value: Tensor) -> None:
        if value.shape != target.shape:
            if not _outs(func):
                raise RuntimeError(
                    f"functionalize: {func} gives {list(value.shape)}, which is not the shape {list(target.shape)} of "
                    "the tensor that it writes"
                )
            if target.steps:
                raise RuntimeError("functionalize: out= that is a view cannot take on another shape")
            fresh = FunctionalTensor.make(self, value, target.memory, ())
            _set_geometry(target, fresh)
        if any(stride == 0 and size > 1 for stride, size in zip(target.stride(), target.shape, strict=True)):
            raise RuntimeError(
                "functionalize: more than one element of the written tensor lies at one place; clone() it first"
            )
        if value.dtype != target.dtype:
            value = value.to(target.dtype)
        memory = target.memory
        memory.replace(_write_through(memory.value, target.steps, value))

    def change_view(self, func: Any, target: FunctionalTensor, args: Any, kwargs: Any) -> Any:
        """t_ and its like: the tensor becomes a view of what it was."""
        functional = _functional(func)
        if functional is None:
            raise NotImplementedError(f"functionalize: {func} gives a tensor other memory")
        step = (self.copying(functional) if self.copies_views else functional, tuple(args[1:]), kwargs, -1)
        made = FunctionalTensor.make(self, _take(current(target), step), target.memory, (*target.steps, step))
        _set_geometry(target, made)
        target.steps, target.value, target.generation = made.steps, made.value, made.generation
        target.changed_views.append((func, tuple(args[1:]), kwargs, -1))
        return target


def _set_geometry(target: FunctionalTensor, made: FunctionalTensor) -> None:
    target.data = made


def _shares(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors share memory; of stand-ins of another function, whether that says so."""
    if isinstance(a, FunctionalTensor) and isinstance(b, FunctionalTensor):
        return a.memory is b.memory
    if _C._is_wrapper(a) or _C._is_wrapper(b) or a.device.type == "meta":
        return a._base is not None
    return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())


# ---- the function ----


def _place(t: Tensor) -> int:
    """Of the memory; 0 for a tensor without."""
    if _C._is_wrapper(t) or t.device.type == "meta" or t.numel() == 0:
        return 0
    return t.untyped_storage().data_ptr()


def _gather(value: Any) -> list[Tensor]:
    found: list[Tensor] = []
    _map(value, found.append)
    return found


class _Arguments:
    """Stand-ins for the tensors among the arguments; those that share memory do so here too."""

    def __init__(self, mode: _Functionalize, tensors: Iterable[Tensor]) -> None:
        self.mode = mode
        self.made: dict[int, tuple[Tensor, FunctionalTensor]] = {}
        self.memories: dict[int, _Memory] = {}
        self.uses = Counter(_place(t) for t in {id(t): t for t in tensors}.values())

    def stand_in(self, t: Tensor) -> FunctionalTensor:
        if id(t) not in self.made:
            self.made[id(t)] = (t, self._make(t))
        return self.made[id(t)][1]

    def _make(self, t: Tensor) -> FunctionalTensor:
        place = _place(t)
        if place == 0 or self.uses[place] == 1:
            return self.mode.wrap(t)
        if place not in self.memories:
            whole = t.as_strided((t.untyped_storage().nbytes() // t.itemsize,), (1,), 0)
            self.memories[place] = _Memory(whole)
        memory = self.memories[place]
        memory.stride()
        if t.dtype != memory.value.dtype:
            raise RuntimeError("functionalize: two arguments share memory and have different dtypes")
        step: Step = (aten.as_strided.default, (list(t.shape), list(t.stride()), t.storage_offset()), {}, -1)
        return FunctionalTensor.make(self.mode, t, memory, (step,))

    def write_back(self) -> None:
        """What was written to an argument's memory is copied to it; what was turned is turned."""
        for t, made in self.made.values():
            fresh = _follow(made.memory.value, made.steps[: len(made.steps) - len(made.changed_views)])
            if made.memory.generation and fresh is not t:
                t.copy_(fresh)
            for func, args, kwargs, _ in made.changed_views:
                func(t, *args, **kwargs)

    def result(self, value: Any) -> Any:
        """What the function returns: an argument, a view of one, or a value."""
        if not self.mode.owns(value):
            return value
        for t, made in self.made.values():
            if made is value:
                return t
        for t, made in self.made.values():
            own = len(made.steps)
            if made.memory is value.memory and value.steps[:own] == made.steps:
                return _follow(t, value.steps[own:])
        return current(value)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function without writes: what it runs are operators that give new tensors, and views.

    Its results are those of `func`. A tensor among its arguments that `func` writes gets its new value by one `copy_`
    at the end. With `remove="mutations_and_views"` views run as the operators that copy.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize: remove is 'mutations' or 'mutations_and_views', not {remove!r}")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        mode = _Functionalize(remove == "mutations_and_views")
        arguments = _Arguments(mode, _gather((args, kwargs)))
        inner_args, inner_kwargs = _map(args, arguments.stand_in), _map(kwargs, arguments.stand_in)
        with mode:
            returned = func(*inner_args, **inner_kwargs)
        arguments.write_back()
        return _map(returned, arguments.result)

    return wrapped
