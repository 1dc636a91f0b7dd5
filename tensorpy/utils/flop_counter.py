"""Counting floating-point operations: those of products, convolutions and attention, forward and backward.

    with FlopCounterMode() as counter:
        model(x).sum().backward()
    counter.get_total_flops()

A multiplication with its addition counts as two. What is counted is each operator that a formula is registered for, by
the modules that are running, a gradient by those that its function was recorded in; other operators count as nothing.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from tensorpy import _C, ops
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import enable_grad
from tensorpy.nn import Module
from tensorpy.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from tensorpy.utils._flop_formulas import addmm_flop, baddbmm_flop, bmm_flop, conv_flop_count, mm_flop
from tensorpy.utils._python_dispatch import TorchDispatchMode
from tensorpy.utils._pytree import tree_leaves, tree_map

__all__ = ["FlopCounterMode", "register_flop_formula"]

_SUFFIXES = ("", "K", "M", "B", "T")

flop_registry: dict[Any, Callable[..., int]] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: the function says how many operations a call of these operators (`ops.aten.mm`) takes, from the
    arguments with shapes in place of tensors, and `out_shape`; with `get_raw` from the tensors, and `out_val`.

    Arguments:
        targets: one or several operators

    Returns: a decorator.

    Raises: ValueError for an overload in place of its packet, RuntimeError for one that has a formula.

    Example:
        >>> @tp.utils.flop_counter.register_flop_formula(tp.ops.aten.sin)
        ... def _(shape, *args, out_shape=None, **kwargs):
        ...     return 10
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if isinstance(target, _C.OpOverload):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    f"{_C._package()}.ops.mylib.foo), got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    if getattr(formula, "_get_raw", False):
        return formula

    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, shape = tree_map(lambda t: t.shape if isinstance(t, Tensor) else t, (args, kwargs, out_val))
        return formula(*args, out_shape=shape, **kwargs)

    return of_tensors


for _operator, _formula in (
    (ops.aten.mm, mm_flop),
    (ops.aten.addmm, addmm_flop),
    (ops.aten.bmm, bmm_flop),
    (ops.aten.baddbmm, baddbmm_flop),
):
    register_flop_formula(_operator)(_formula)


@register_flop_formula(ops.aten.convolution)
def conv_flop(
    x: Sequence[int],
    w: Sequence[int],
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The operations of a convolution."""
    return conv_flop_count(x, w, out_shape, transposed)


@register_flop_formula(ops.aten.convolution_backward)
def conv_backward_flop(
    grad: Sequence[int],
    x: Sequence[int],
    w: Sequence[int],
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
    out_shape: Any = None,
) -> int:
    """The operations of a convolution's gradients, as many as are asked for."""
    return (bool(output_mask[0]) + bool(output_mask[1])) * conv_flop_count(x, w, grad, transposed)


def sdpa_flop_count(q: Sequence[int], k: Sequence[int], v: Sequence[int]) -> int:
    """The operations of attention: the products of queries and keys, and of their weights and the values."""
    b, h, n, d = q
    return 2 * b * h * n * k[-2] * (d + v[-1])


@register_flop_formula(ops.aten._scaled_dot_product_flash_attention_for_cpu)
def sdpa_flop(
    q: Sequence[int], k: Sequence[int], v: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of attention by tiles."""
    return sdpa_flop_count(q, k, v)


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """ "1.500M" of 1500000 and "M"."""
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}"


def get_suffix_str(number: int) -> str:
    """The largest suffix that leaves some digits in front of the point."""
    return _SUFFIXES[min(max((len(str(number)) - 2) // 3, 0), len(_SUFFIXES) - 1)]


def convert_to_percent_str(num: int, denom: int) -> str:
    """ "50.00%" of 1 and 2."""
    return f"{num / denom:.2%}" if denom else "0%"


class _Running:
    """Hooks of a node of the graph: while its gradient is computed, the modules run that it was recorded in."""

    def __init__(self, counter: FlopCounterMode, names: list[str]) -> None:
        self.counter, self.names = counter, names

    def __call__(self, grads: Any) -> None:
        self.counter._running[:] = self.names

    def after(self, grads: Any, inputs: Any) -> None:
        self.counter._running.clear()


class FlopCounterMode:
    """Counts the operations of what runs inside, in total and by module; `depth` levels of them are printed at the end.
    `custom_mapping` has formulas of further operators.

    Arguments:
        mods: is taken; modules are found by themselves
        display: whether the table is printed at the end

    Example:
        >>> from tensorpy.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = tp.ones(2, 3) @ tp.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    depth: int
    display: bool
    flop_registry: Any

    def __init__(
        self,
        mods: Module | list[Module] | None = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.depth, self.display = depth, display
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.flop_registry = flop_registry | {op: _of_shapes(f) for op, f in (custom_mapping or {}).items()}
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._running: list[str] = []
        self._begun: list[int] = []  # for each, the number that the next node of the graph had
        self._probe: Any = _C.zeros(0, requires_grad=True)
        self._names: dict[int, str] = {}
        self._handles: list[Any] = []
        self.mode: TorchDispatchMode | None = None

    def get_total_flops(self) -> int:
        """The sum over all modules."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By the modules' names (`Net.layers.0`; "Global" is all), by operator."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, down to a depth."""
        depth, total = self.depth if depth is None else depth, self.get_total_flops()
        rows = []
        for name in ["Global", *sorted(n for n in self.flop_counts if n != "Global")]:
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            for title, flops in [(name, sum(self.flop_counts[name].values())), *self.flop_counts[name].items()]:
                shown = f"{'  ' * level} {'- ' if title is not name else ''}{title}"
                suffix = get_suffix_str(flops)
                rows.append((shown, convert_num_with_suffix(flops, suffix), convert_to_percent_str(flops, total)))
        widths = [max(len(row[i]) for row in [("Module", "FLOP", "% Total"), *rows]) for i in range(3)]
        lines = [("Module", "FLOP", "% Total"), tuple("-" * w for w in widths), *rows]
        return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines)

    # ---- which modules run ----

    def _enter(self, module: Module, args: Any) -> None:
        if id(module) not in self._names:
            top = f"{self._running[-1]}.?" if self._running else type(module).__name__
            for name, child in module.named_modules(prefix=top):
                self._names.setdefault(id(child), name)
        self._running.append(self._names[id(module)])
        with enable_grad():
            self._begun.append(self._probe.view_as(self._probe).grad_fn._sequence_nr())

    def _leave(self, module: Module, args: Any, out: Any) -> None:
        self._watch(out)
        self._running.pop()

    def _watch(self, out: Any) -> None:
        """The nodes that lead to a module's results, up to those of modules inside of it, and of what it was given."""
        begun = self._begun.pop()
        waiting = [t.grad_fn for t in tree_leaves(out) if isinstance(t, Tensor) and t.grad_fn is not None]
        while waiting:
            node: Any = waiting.pop()
            if node._sequence_nr() < begun or hasattr(node, "variable"):
                continue
            if any(isinstance(hook, _Running) and hook.counter is self for hook in node._pre_hooks().values()):
                continue
            hook = _Running(self, list(self._running))
            node.register_prehook(hook)
            node.register_hook(hook.after)
            waiting += [following for following, _ in node.next_functions if following is not None]

    def _count(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        packet = func.overloadpacket
        formula = self.flop_registry.get(packet)
        if formula is None:
            return
        flops = formula(*args, **kwargs, out_val=out)
        for name in {"Global", *self._running}:
            self.flop_counts[name][packet] += flops

    def __enter__(self) -> FlopCounterMode:
        counter = self
        self.flop_counts.clear()

        class Counting(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                out = func(*args, **(kwargs or {}))
                counter._count(func, args, kwargs or {}, out)
                return out

        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        self.mode = Counting()
        self.mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        assert self.mode is not None
        self.mode.__exit__(*error)
        for handle in self._handles:
            handle.remove()
        self._running.clear()
        self._begun.clear()
        if self.display:
            print(self.get_table(self.depth))
