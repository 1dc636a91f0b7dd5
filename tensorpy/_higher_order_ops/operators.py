"""The operators of control flow: `ops.higher_order.cond` and its kin, which nodes of graphs call.

They take functions of tensors, or GraphModules, that give tuples of tensors. Called while make_fx records, one becomes
a node: what differs among them is in OPERATORS, the rest is in fx/experimental/control_flow.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor, stack, where
from tensorpy._compile import TorchRuntimeError, UncapturedHigherOrderOpError
from tensorpy._higher_order_ops.higher_order import HigherOrderOperator
from tensorpy.func import vjp
from tensorpy.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

__all__ = ["OPERATORS", "ControlFlow", "Flat", "chosen", "is_batched", "is_recorded", "recorder", "stacked"]

Tensors = Sequence[Tensor]
Function = Callable[..., Any]


def recorder() -> Any:
    """What records this thread's calls and takes functions as graphs; None if there is none."""
    now = _C._tracer.current()
    return now if getattr(now, "takes_functions", False) else None


def is_batched(tensor: Tensor) -> bool:
    """Whether it is one of vmap's, which has no value of its own and is in no graph."""
    return _C._is_wrapper(tensor) and not _C._functionalize.is_of(tensor, 0)


def is_recorded(*trees: Any) -> bool:
    """Whether a call with these arguments becomes a node: none of them is one of vmap's, which no graph has."""
    tensors = [leaf for leaf in tree_flatten(trees)[0] if isinstance(leaf, Tensor)]
    return recorder() is not None and not any(map(is_batched, tensors))


class Flat:
    """A function of trees as one of the tensors in them, which gives the leaves of its result.

    Arguments:
        function: the function
        trees: its arguments; what is no tensor in them stays what it is
    """

    def __init__(self, function: Function, trees: tuple[Any, ...]) -> None:
        self.function = function
        self.result_spec: TreeSpec | None = None
        self._leaves, self._spec = tree_flatten(trees)
        self.tensors = [leaf for leaf in self._leaves if isinstance(leaf, Tensor)]

    def __call__(self, *tensors: Tensor) -> list[Any]:
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, Tensor) else leaf for leaf in self._leaves]
        made, self.result_spec = tree_flatten(self.function(*tree_unflatten(leaves, self._spec)))
        return made

    def result(self, made: Tensors) -> Any:
        """The result's tree, of its leaves, after a call."""
        assert self.result_spec is not None
        return tree_unflatten(list(made), self.result_spec)


@dataclass(eq=False, repr=False)
class ControlFlow(HigherOrderOperator):
    """An operator of control flow.

    Arguments:
        opname: its name
        prefixes: names of the attributes that its functions become, with a number
        run: what a call does
        inputs: the tensors that each function takes first, of the operator's arguments
        alike: refuses results of the functions that do not go together
        lead: how many arguments are before the functions
        like: the function whose results look like the operator's; None: run says it
        gives: what each function gives: tuple, list, or None for one tensor
        backward: gradients of the inputs: of the arguments, which of the tensors are wanted, the results' gradients
    """

    opname: str
    prefixes: tuple[str, ...]
    run: Callable[..., tuple[Tensor, ...]]
    inputs: Callable[..., Tensors]
    alike: Callable[..., None]
    lead: int = 0
    like: int | None = None
    gives: tuple[type | None, ...] = (tuple,)
    backward: Callable[..., list[Tensor]] | None = None

    def __post_init__(self) -> None:
        super().__init__(self.opname, cacheable=True)

    def split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
        """The arguments before the functions, the functions, and the tensors after them."""
        end = self.lead + len(self.prefixes)
        return args[: self.lead], args[self.lead : end], args[end:]

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        to = recorder()
        return self.run(*args) if to is None else to.control(self, args)


# ---- what the operators do ----


def slices(xs: Tensors, dim: int = 0, reverse: bool = False) -> list[list[Tensor]]:
    """The slices along a dimension, in the order in which they are taken."""
    count = xs[0].shape[dim]
    places = range(count - 1, -1, -1) if reverse else range(count)
    return [[x.select(dim, i) for x in xs] for i in places]


def stacked(rows: list[Any]) -> tuple[Tensor, ...]:
    """What each row gives, along a new first dimension."""
    return tuple(stack(list(column)) for column in zip(*rows, strict=True))


def _cond(pred: Any, true_fn: Function, false_fn: Function, operands: Tensors) -> tuple[Tensor, ...]:
    return tuple((true_fn if bool(pred) else false_fn)(*operands))


def _map(f: Function, xs: Tensors, args: Tensors) -> tuple[Tensor, ...]:
    return stacked([f(*row, *args) for row in slices(xs)])


def _while_loop(cond: Function, body: Function, carried: Tensors, additional: Tensors = ()) -> tuple[Tensor, ...]:
    now = tuple(carried)
    while bool(cond(*now, *additional)):
        now = tuple(body(*now, *additional))
    return now


def _scan(combine: Function, init: Tensors, xs: Tensors, additional: Tensors = ()) -> tuple[Tensor, ...]:
    carry, rows = list(init), []
    for row in slices(xs):
        made = combine(*carry, *row, *additional)
        carry = list(made[: len(init)])
        rows.append(made[len(init) :])
    return (*carry, *stacked(rows))


def _associative_scan(combine: Function, xs: Tensors, additional: Tensors = ()) -> tuple[Tensor, ...]:
    rows: list[Any] = []
    for row in slices(xs):
        rows.append(combine(*rows[-1], *row, *additional) if rows else row)
    return stacked(rows)


# ---- what goes together ----


def _looks(tensor: Tensor) -> str:
    return f"{list(tensor.shape)} of {str(tensor.dtype).rpartition('.')[2]}"


def _agree(what: str, wanted: Tensors, given: Tensors) -> None:
    if len(wanted) != len(given):
        raise UncapturedHigherOrderOpError(f"{what}: {len(wanted)} tensors and {len(given)}")
    for a, b in zip(wanted, given, strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise TorchRuntimeError(f"{what}: {_looks(a)} and {_looks(b)}")


def _branches_agree(args: Any, made: Sequence[Tensors]) -> None:
    _agree("cond: the branches give other tensors", *made)
    specs = [getattr(function, "result_spec", None) for function in args[1:3]]
    if specs[0] != specs[1]:
        raise UncapturedHigherOrderOpError(f"cond: the branches give other trees: {specs[0]} and {specs[1]}")


def _loop_agrees(args: Any, made: list[Tensors]) -> None:
    (pred, *rest), body = made
    if rest or pred.numel() != 1:
        raise UncapturedHigherOrderOpError("while_loop: cond_fn gives one tensor of one element")
    _agree("while_loop: body_fn gives other tensors than it takes", args[2], body)


def chosen(pred: Tensor, true_fn: Flat, false_fn: Flat) -> list[Tensor]:
    """The results of each sample's own branch, of both branches' results."""
    made = [true_fn(*true_fn.tensors), false_fn(*false_fn.tensors)]
    _branches_agree((pred, true_fn, false_fn), made)
    one = pred.reshape(()).to(_C.bool)
    return [where(one, a, b) for a, b in zip(*made, strict=True)]


# ---- gradients, where what is recorded calls backward ----


def _vjp(function: Function, count: int, wanted: list[int]) -> Function:
    """A function of the operands and of the results' gradients: gradients of the operands that are wanted."""

    def run(*given: Tensor) -> list[Tensor]:
        def of_wanted(*leaves: Tensor) -> tuple[Tensor, ...]:
            operands = list(given[:count])
            for i, leaf in zip(wanted, leaves, strict=True):
                operands[i] = leaf
            return tuple(made for made in function(*operands) if made.is_floating_point() or made.is_complex())

        made, pull = vjp(of_wanted, *(given[i] for i in wanted))
        seeds = (seed for seed in given[count:] if seed.is_floating_point() or seed.is_complex())
        found = pull(tuple(seeds)) if made else [given[i].new_zeros(given[i].shape) for i in wanted]
        outside = set(map(_C._tracer.memory, given))
        return [g.clone() if _C._tracer.memory(g) in outside else g for g in found]

    return run


def _cond_backward(args: Any, wanted: list[int], grads: Tensors) -> list[Tensor]:
    pred, true_fn, false_fn, operands = args
    branches = (_vjp(branch, len(operands), wanted) for branch in (true_fn, false_fn))
    return list(OPERATORS["cond"](pred, *branches, (*operands, *grads)))


def _map_backward(args: Any, wanted: list[int], grads: Tensors) -> list[Tensor]:
    f, xs, rest = args
    n, k = len(xs), len(grads)

    def run(*given: Tensor) -> list[Tensor]:
        row, seeds, others = given[:n], given[n : n + k], given[n + k :]
        return _vjp(f, n + len(others), wanted)(*row, *others, *seeds)

    made = OPERATORS["map_impl"](run, [*xs, *grads], list(rest))
    return [g if i < n else g.sum(0) for i, g in zip(wanted, made, strict=True)]


OPERATORS = {
    op.opname: op
    for op in (
        ControlFlow(
            "cond",
            ("true_graph", "false_graph"),
            _cond,
            lambda pred, t, f, operands: operands,
            _branches_agree,
            lead=1,
            like=0,
            gives=(tuple, tuple),
            backward=_cond_backward,
        ),
        ControlFlow(
            "map_impl",
            ("body_graph",),
            _map,
            lambda f, xs, args: [*(x[0] for x in xs), *args],
            lambda args, made: None,
            backward=_map_backward,
        ),
        ControlFlow(
            "while_loop",
            ("while_loop_cond_graph", "while_loop_body_graph"),
            _while_loop,
            lambda cond, body, carried, additional=(): [*carried, *additional],
            _loop_agrees,
            like=1,
            gives=(None, tuple),
        ),
        ControlFlow(
            "scan",
            ("scan_combine_graph",),
            _scan,
            lambda combine, init, xs, additional=(): [*init, *(x[0] for x in xs), *additional],
            lambda args, made: _agree(
                "scan: combine_fn gives another carry than it takes", args[1], made[0][: len(args[1])]
            ),
            gives=(list,),
        ),
        ControlFlow(
            "associative_scan",
            ("associative_scan_combine_graph",),
            _associative_scan,
            lambda combine, xs, additional=(): [*(x[0] for x in xs), *(x[0] for x in xs), *additional],
            lambda args, made: _agree(
                "associative_scan: combine_fn gives other tensors than slices", [x[0] for x in args[1]], made[0]
            ),
            gives=(list,),
        ),
    )
}
