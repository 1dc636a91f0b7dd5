"""grad, grad_and_value and vjp: gradients of functions.

What is differentiated is physical (Note [Batched tensors] in csrc/batched/batched.h): an argument is expanded to every
vmap that the call is inside of, so that each sample has a gradient of its own, and becomes a leaf of the graph, or an
alias of a tensor that wants a gradient already: an outer transform's, or the user's. A graph of the gradient itself is
made where what the function gives hangs on any such tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.batches import Levels, batched, physical
from tensorpy.autograd.grad_mode import enable_grad, set_grad_enabled
from tensorpy.autograd.graph import _innermost_hooks, disable_saved_tensors_hooks
from tensorpy.func.vmap import plain, recording, transforming
from tensorpy.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

if TYPE_CHECKING:
    from tensorpy.func.signatures import OfTensors


def _leaf(t: Tensor, levels: Levels) -> Tensor:
    whole = physical(t, levels)
    if whole.is_inference():
        whole = whole.clone()
    return _C.alias(whole) if whole.requires_grad else _C._want_gradient(_C._detached_dual(whole))


class Inputs:
    """What is differentiated by: a tree of tensors, and the leaves of the graph that stand for them."""

    leaves: Any
    outer: Any
    spec: Any

    def __init__(self, what: str, tree: Any) -> None:
        self.levels: Levels = _C._vmap_levels()
        given, self.spec = tree_flatten(tree)
        for value in given:
            if not isinstance(value, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}: {what}")
        self.outer = _C.is_grad_enabled()
        with enable_grad(), transforming():  # the leaves are the function's own, which it may write to
            self.leaves = [_leaf(value, self.levels) for value in given]

    def tree(self) -> Any:
        """The arguments for the function."""
        return tree_unflatten([batched(leaf, self.levels) for leaf in self.leaves], self.spec)

    def hangs_on_others(self, outputs: Sequence[Tensor], more: Sequence[Tensor] = ()) -> bool:
        """Whether a gradient of the outputs has a gradient with respect to anything but the leaves, and `more`."""
        return self.outer and _C._hangs_on_others(tuple(outputs), (*self.leaves, *more))

    def settled(self, outputs: Sequence[Tensor]) -> bool:
        """Whether they hang on others, once the function is done: from now on no other transform's gradient is by
        these leaves."""
        hangs = _C._hangs_on_others(tuple(outputs), tuple(self.leaves))
        _C._settle(tuple(self.leaves))
        return hangs

    def gradients(self, outputs: Sequence[Tensor], grads: Sequence[Tensor], keep: bool, create: bool) -> list[Tensor]:
        """The leaves' gradients by physical outputs; zeros where there is none."""
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad]
        if not pairs:
            return [_C.zeros_like(leaf) for leaf in self.leaves]
        roots, given = zip(*pairs, strict=True)
        found = _C._run_backward(roots, given, keep or create, create, tuple(self.leaves), False)
        return [_C.zeros_like(x) if g is None else g for g, x in zip(found, self.leaves, strict=True)]

    def released(self, tree: Any) -> Any:
        """What the function gave beside: cut from the leaves where it hangs on nothing else."""
        values, spec = tree_flatten(tree)
        return tree_unflatten([self._released(v) if isinstance(v, Tensor) else v for v in values], spec)

    def _released(self, t: Tensor) -> Tensor:
        whole = physical(t, self.levels) if _C._is_batched(t) else t
        if whole.requires_grad and self.hangs_on_others([whole]):
            return t
        return batched(_C._detached_dual(whole), self.levels) if whole is not t else _C._detached_dual(t)


_NO_HOOKS = "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Call it outside of them."


@contextmanager
def differentiating(leaves: Sequence[Tensor]) -> Iterator[None]:
    """The function of a transform that goes backward runs: see `transforming`. What it saves goes through no hooks."""
    if _innermost_hooks() is not None:
        raise RuntimeError(_NO_HOOKS)
    with disable_saved_tensors_hooks(_NO_HOOKS), transforming(leaves):
        yield


def with_aux(what: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """The result of a function that may give something beside, which is tensors too."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True, got {type(result)}"
        )
    for value in tree_leaves(result[1]):
        if not isinstance(value, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(value)}: {what} gives it as aux")
    return result


def checked_outputs(what: str, output: Any) -> tuple[list[Tensor], TreeSpec]:
    """The tensors of a function's output, and their structure."""
    outputs, spec = tree_flatten(output)
    if not outputs or outputs == [None]:
        raise RuntimeError(f"{what}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for value in outputs:
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(value)}"
            )
    return outputs, spec


# ---- grad ----


def chosen(what: str, args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[list[int], Any]:
    """The places of the arguments, and the arguments there."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}: {what}")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError(f"argnums must be non-empty: {what}")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}: {what}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs: {what}")
    places = [n % len(args) for n in numbers]
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(places)}: {what}")
    return places, tuple(args[n] for n in places) if isinstance(argnums, tuple) else args[places[0]]


def _replaced(args: tuple[Any, ...], places: list[int], single: bool, tree: Any) -> list[Any]:
    full = list(args)
    for at, n in enumerate(places):
        full[n] = tree if single else tree[at]
    return full


def grad_and_value(
    func: OfTensors[Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives the gradient of `func`, and its value: (gradient, value), or (gradient, (value, aux)).

    Arguments:
        func: the function
        argnums: which arguments, by position, are differentiated: an int or a tuple
        has_aux: whether func returns (output, aux), and aux is handed on

    Returns: a function of the same arguments.

    Example:
        >>> tp.func.grad_and_value(lambda x: (x**2).sum())(tp.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """
    what = "grad_and_value(f)(*args)"

    @functools.wraps(plain(func))
    @recording()
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places, tree = chosen(what, args, argnums)
        inputs = Inputs(what, tree)
        with differentiating(inputs.leaves), enable_grad():
            full = _replaced(args, places, isinstance(argnums, int), inputs.tree())
            output, aux = with_aux(what, func(*full, **kwargs), has_aux)
            if not isinstance(output, Tensor):
                raise RuntimeError(f"{what}: Expected f(*args) to return a Tensor, got {type(output)}")
            if output.ndim:
                raise RuntimeError(
                    f"{what}: Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} dims. Maybe "
                    "you wanted to use the vjp or jacrev APIs instead?"
                )
            whole = physical(output, inputs.levels)
            if whole.is_complex() and whole.requires_grad:
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {whole.dtype}")
            again = inputs.settled([whole]) and inputs.outer
        found = inputs.gradients([whole], [_C.ones_like(whole)], False, again)
        with set_grad_enabled(inputs.outer):
            gradient = tree_unflatten([batched(g, inputs.levels) for g in found], inputs.spec)
            value = inputs.released((output, aux) if has_aux else output)
        return gradient, value

    return wrapper


def grad(func: OfTensors[Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that gives the gradient of `func`, which returns one number, by the arguments `argnums`.

    With `has_aux` the function returns (output, aux), and this gives (gradient, aux).

    Returns: a function of the same arguments that gives a tensor, or a tuple for a tuple of argnums.

    Example:
        >>> tp.func.grad(lambda x: (x**2).sum())(tp.tensor([1.0, 2.0]))
        tensor([2., 4.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(plain(func))
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


# ---- vjp ----


def _has_gradient(t: Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def _check_cotangents(what: str, given: TreeSpec, wanted: TreeSpec) -> None:
    if given != wanted:
        raise RuntimeError(
            "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
            f"cotangents: {given}, primal output: {wanted}: {what}"
        )


@recording()
def vjp(func: OfTensors[Any], *primals: Any, has_aux: bool = False) -> Any:
    """The outputs of `func` and the function that takes cotangents of them back to the arguments: (output, vjp_fn), or
    (output, vjp_fn, aux).

    Arguments:
        func: the function
        has_aux: whether func returns (output, aux), and aux is handed on

    Returns: a tuple.

    Raises: ValueError for what is no tensor, RuntimeError where no argument is one of floats, or an output is not.

    Example:
        >>> value, pull = tp.func.vjp(lambda x: x**2, tp.tensor([1.0, 2.0]))
        >>> pull(tp.ones(2))
        (tensor([2., 4.]),)
    """
    what = "vjp(f, *primals)"
    if not primals:
        raise RuntimeError(f"{what}: there is nothing to differentiate by")
    inputs = Inputs(what, primals)
    with differentiating(inputs.leaves), enable_grad():
        output, aux = with_aux(what, func(*inputs.tree()), has_aux)
        outputs, out_spec = checked_outputs(what, output)
        for o in outputs:
            if not _has_gradient(o):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{o.dtype}"
                )
        wholes = [physical(o, inputs.levels) for o in outputs]
    again = inputs.settled(wholes)

    @recording()
    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, spec = tree_flatten(cotangents)
        _check_cotangents(what, spec, out_spec)
        grads = [physical(g, inputs.levels) for g in given]
        create = _C.is_grad_enabled() if create_graph is None else create_graph
        create = create and (again or any(_wants_gradient(g) for g in given))
        found = inputs.gradients(wholes, grads, retain_graph, create)
        return tree_unflatten([batched(g, inputs.levels) for g in found], inputs.spec)

    with set_grad_enabled(inputs.outer):
        result = inputs.released(output), vjp_fn
        return (*result, inputs.released(aux)) if has_aux else result


# ---- forward, by a gradient of the gradient ----


def _check_like(place: int, tangent: Any, primal: Tensor) -> None:
    for what in ("shape", "device", "dtype"):
        given, wanted = getattr(tangent, what, None), getattr(primal, what)
        if given != wanted:
            raise RuntimeError(
                f"{what.capitalize()} {given} of the tangent at {place} in flattened pytree doesn't match the {what} "
                f"{wanted} of the primal"
            )


@recording()
def linearize(func: OfTensors[Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The outputs of `func`, and the function that takes tangents of the arguments to tangents of the outputs.

    The gradient of the arguments is linear in that of the outputs, so its own gradient does not depend on where it is
    taken, and is the map in the other direction.

    Returns: what func gives, and a function of tangents.

    Example:
        >>> value, push = tp.func.linearize(lambda x: x**2, tp.tensor([1.0, 2.0]))
        >>> push(tp.ones(2))
        tensor([2., 4.])
    """
    what = "jvp(f, primals, tangents)"
    if not primals:
        raise RuntimeError(f"{what}: there is nothing to differentiate by")
    inputs = Inputs(what, primals)
    with enable_grad():
        with transforming(inputs.leaves):
            outputs, out_spec = checked_outputs(what, func(*inputs.tree()))
        wholes = [physical(o, inputs.levels) for o in outputs]
        ones = [_C.ones_like(w.detach()) for w in wholes]
        cotangents = [_C._want_gradient(c) if _has_gradient(c) else c for c in ones]
        back = inputs.gradients(wholes, cotangents, True, True)
    again = inputs.settled(wholes)

    @recording()
    def jvp_fn(*tangents: Any) -> Any:
        given, spec = tree_flatten(tangents)
        if spec != inputs.spec:
            raise RuntimeError(
                f"{what}: expected the tangents to have the same argspec as the primals: {spec}, not {inputs.spec}"
            )
        for place, (t, leaf) in enumerate(zip(given, inputs.leaves, strict=True)):
            _check_like(place, t, batched(leaf, inputs.levels))
        rows = [(b, physical(t, inputs.levels)) for b, t in zip(back, given, strict=True) if b.requires_grad]
        create = _C.is_grad_enabled() and (again or any(_wants_gradient(t) for t in given))
        found: list[Tensor | None] = [None] * len(cotangents)
        if rows:
            roots, grads = zip(*rows, strict=True)
            wanted = [(i, c) for i, c in enumerate(cotangents) if c.requires_grad]
            given = _C._run_backward(roots, grads, True, create, tuple(c for _, c in wanted), False)
            for (i, _), tangent in zip(wanted, given, strict=True):
                found[i] = tangent
        moved = [_C.zeros_like(c.detach()) if g is None else g for g, c in zip(found, cotangents, strict=True)]
        return tree_unflatten([batched(g, inputs.levels) for g in moved], out_spec)

    with set_grad_enabled(inputs.outer):
        return inputs.released(tree_unflatten(outputs, out_spec)), jvp_fn


def _wants_gradient(t: Tensor) -> bool:
    return physical(t, _C._vmap_levels()).requires_grad
