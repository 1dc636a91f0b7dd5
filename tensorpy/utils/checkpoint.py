"""Checkpointing: parts of a network whose values are not kept for backward but computed again.

Without reentrant backward, what the part's operators save is replaced by places in a list; the first place that
backward asks for runs the part again, whose operators fill the list. With it, the part is a Function whose backward
runs the part again and goes backward through it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from enum import Enum
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.amp import autocast
from tensorpy.autograd import backward as run_backward
from tensorpy.autograd.function import Function
from tensorpy.autograd.grad_mode import enable_grad, no_grad
from tensorpy.autograd.graph import saved_tensors_hooks
from tensorpy.utils._python_dispatch import TorchDispatchMode
from tensorpy.utils._pytree import tree_leaves, tree_map_only

__all__ = [
    "SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
    "SelectiveCheckpointContext", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


class CheckpointError(RuntimeError):
    """What was computed again is not what was computed first."""


def noop_context_fn() -> tuple[Any, Any]:
    """Nothing around the first run, and nothing around the second.

    Returns: two context managers.

    Example:
        >>> first, second = tp.utils.checkpoint.noop_context_fn()
    """
    return nullcontext(), nullcontext()


class _Surroundings:
    """The random generator's state and autocast's, as they were, to run under again."""

    def __init__(self, keep_random: bool, tensors: Sequence[Any]) -> None:
        self.random = _C.default_generator.get_state() if keep_random else None
        devices = {"cpu", *(t.device.type for t in tensors if isinstance(t, Tensor))} - {"meta"}
        self.casting = {device: _C._autocast_get(device) for device in devices}

    @contextmanager
    def again(self) -> Any:
        """Inside, they are as they were; afterwards as they are now."""
        with ExitStack() as stack:
            for device, (enabled, dtype, cache) in self.casting.items():
                stack.enter_context(autocast(device, dtype, enabled, cache))
            now = _C.default_generator.get_state() if self.random is not None else None
            if self.random is not None:
                _C.default_generator.set_state(self.random)
            try:
                yield
            finally:
                if now is not None:
                    _C.default_generator.set_state(now)


# ---- by what operators save ----


class _Stop(Exception):
    """All that backward needs has been computed again."""


class _PlacesOfValues(saved_tensors_hooks):
    _keeps_values = True


class _Saved:
    """What a run of a part saves, by the order of saving."""

    def __init__(self, again: Callable[[], Any], early_stop: bool) -> None:
        self.again, self.early_stop = again, early_stop
        self.kinds: list[Any] = []  # shape, dtype and device of what the first run saved
        self.values: dict[int, Tensor] | None = None
        self.left = 0

    def first_hooks(self) -> saved_tensors_hooks:
        """The hooks of the first run: places instead of values."""

        def pack(t: Tensor) -> int:
            self.kinds.append((t.shape, t.dtype, t.device))
            self.left += 1
            return len(self.kinds) - 1

        return _PlacesOfValues(pack, self._value)

    def _value(self, place: int) -> Tensor:
        if self.values is None:
            self._compute()
        assert self.values is not None
        value = self.values.pop(place, None)
        if value is None:  # backward for another time
            self.values = None
            return self._value(place)
        if not self.values:
            self.values = None
        return value

    def _compute(self) -> None:
        values: list[Tensor] = []

        def pack(t: Tensor) -> Tensor:
            values.append(t.detach())
            if self.early_stop and len(values) == len(self.kinds):
                raise _Stop
            return t

        try:
            with saved_tensors_hooks(pack, lambda t: t), enable_grad():
                self.again()
        except _Stop:
            pass
        if len(values) > len(self.kinds):
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                f"forward pass: {len(values)}, not {len(self.kinds)}"
            )
        if len(values) != len(self.kinds):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.kinds)}\n"
                f"Number of tensors saved during recomputation: {len(values)}"
            )
        for i, (value, kind) in enumerate(zip(values, self.kinds, strict=True)):
            if (value.shape, value.dtype, value.device) != kind:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                    f"during the forward pass: tensor {i} was {kind}, is {(value.shape, value.dtype, value.device)}"
                )
        self.values = dict(enumerate(values))


def _checkpoint_by_hooks(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    keep_random: bool,
    context_fn: Callable[[], tuple[Any, Any]],
    early_stop: bool,
) -> Any:
    first, second = context_fn()
    surroundings = _Surroundings(keep_random, args)

    def again() -> Any:
        with surroundings.again(), second:
            return function(*args, **kwargs)

    if not _C.is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    saved = _Saved(again, early_stop)
    with saved.first_hooks(), first:
        return function(*args, **kwargs)


# ---- by backward inside of backward ----


class CheckpointFunction(Function):
    """A part as one operator, whose backward runs the part again.

    Example:
        >>> issubclass(tp.utils.checkpoint.CheckpointFunction, tp.autograd.Function)
        True
    """

    _takes_transforms = True

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], keep_random: bool, *args: Any) -> Any:
        ctx.function, ctx.surroundings = function, _Surroundings(keep_random, args)
        ctx.args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        args = list(ctx.args)
        for i, t in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = _C._want_gradient(t.detach(), t.requires_grad)
        with enable_grad(), ctx.surroundings.again():
            results = ctx.function(*args)
        results = (results,) if isinstance(results, Tensor) else results
        pairs = [(r, g) for r, g in zip(results, grads, strict=True) if isinstance(r, Tensor) and r.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([r for r, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in args))


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls a function without keeping what its backward needs: that is computed again then.

    use_reentrant=False is the way to take: it knows keyword arguments, autograd.grad, and needs no input with a
    gradient. preserve_rng_state=False does not draw the same random numbers again.

    Arguments:
        function: the function
        use_reentrant: whether the older way is taken, which needs an input that requires a gradient
        context_fn: gives two contexts, for the first and the second run
        determinism_check: 'default' compares shapes and dtypes of both runs, 'none' nothing
        debug: whether a mismatch shows the calls of both runs
        early_stop: whether the second run ends when it has what backward needs

    Returns: what the function gives.

    Raises: ValueError for context_fn or debug with use_reentrant=True, for unknown keyword arguments, and for another
    determinism_check.

    Example:
        >>> x = tp.ones(2, requires_grad=True)
        >>> tp.utils.checkpoint.checkpoint(tp.exp, x, use_reentrant=False).sum().backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """
    keep_random = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: the use_reentrant parameter should be passed explicitly; use_reentrant=False is recommended",
            stacklevel=2,
        )
        use_reentrant = True
    if not use_reentrant:
        if determinism_check not in ("default", "none"):
            raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
        early_stop = early_stop if _settings["early_stop"] is None else _settings["early_stop"]
        return _checkpoint_by_hooks(function, args, kwargs, keep_random, context_fn, early_stop)
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
    return CheckpointFunction.apply(function, keep_random, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Calls modules one after the other, in segments that are checkpointed, all but the last.

    Arguments:
        functions: the modules, in order, or a Sequential
        input: the tensor
        use_reentrant: whether the older way is taken, which needs an input that requires a gradient

    Returns: what the last module gives.

    Raises: ValueError for unknown keyword arguments.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> tp.utils.checkpoint.checkpoint_sequential(model, 2, tp.ones(1, 2), use_reentrant=False).shape
        tensorpy.Size([1, 2])
    """
    keep_random = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    parts = list(functions)
    size = len(parts) // segments

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for part in parts[start:end]:
                value = part(value)
            return value

        return forward

    start = 0
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=keep_random)
    return run(size * (segments - 1), len(parts))(input)


# ---- what is saved and what is computed again, operator by operator ----


class CheckpointPolicy(Enum):
    """What becomes of an operator's result inside a checkpoint.

    Example:
        >>> tp.utils.checkpoint.CheckpointPolicy.MUST_SAVE.name
        'MUST_SAVE'
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOADED = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)
SAC_IGNORED_OPS = frozenset({"detach"})  # what autograd calls by itself, not always twice alike


class SelectiveCheckpointContext:
    """What a policy is told of a call: whether it is the second.

    Arguments:
        is_recompute: whether it is backward's second run

    Example:
        >>> tp.utils.checkpoint.SelectiveCheckpointContext(is_recompute=False).is_recompute
        False
    """

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


class _Kept:
    """A result that is kept: on which device and of which version it was, and the tensor."""

    __slots__ = ("device", "value", "version")

    def __init__(self, device: Any, version: int, value: Tensor) -> None:
        self.device, self.version, self.value = device, version, value


class _Selective(TorchDispatchMode):
    """Keeps results that the policy keeps in the first run, and gives them in the second, in the order of the calls."""

    def __init__(self, policy: Callable[..., Any], kept: dict[Any, list[Any]], again: bool, mutable: bool) -> None:
        super().__init__()
        self.policy, self.kept, self.again, self.mutable = policy, kept, again, mutable

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._opname in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        policy = self.policy(SelectiveCheckpointContext(is_recompute=self.again), func, *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        if policy not in (*_KEPT, *_OFFLOADED):
            return func(*args, **kwargs)
        if self.again:
            return self._take(func)
        made = func(*args, **kwargs)
        move = policy in _OFFLOADED
        keep = tree_map_only(Tensor, lambda t: _Kept(t.device, t._version, t.cpu() if move else t.detach()), made)
        self.kept.setdefault(func, []).append(keep)
        return made

    def _take(self, func: Any) -> Any:
        if not self.kept.get(func):
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                f"selective activation checkpoint: {func} was called more often than at first"
            )

        def give(kept: _Kept) -> Tensor:
            there = kept.value.device == kept.device
            if not self.mutable and there and kept.value._version != kept.version:
                raise RuntimeError(
                    "Tensor cached during selective activation checkpoint has been mutated; "
                    "allow_cache_entry_mutation=True allows it"
                )
            return kept.value if there else kept.value.to(kept.device)

        return tree_map_only(_Kept, give, self.kept[func].pop(0))


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> Any:
    """The two contexts of a checkpoint (`context_fn`) that keeps some results: those of a list of operators, or those
    for which `policy(ctx, op, *args, **kwargs)` says so.

    Arguments:
        policy_fn_or_list: a function of the operator, or the operators whose results are kept
        allow_cache_entry_mutation: whether kept results may be written

    Returns: two context managers.

    Raises: TypeError for what is neither a function nor a list, ValueError for one that does not hold operators.

    Example:
        >>> first, second = tp.utils.checkpoint.create_selective_checkpoint_contexts([tp.ops.aten.mm.default])
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, _C.OpOverload):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}: one is "
                    "ops.aten.mm.default"
                )
        saved = frozenset(policy_fn_or_list)

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            return CheckpointPolicy.MUST_SAVE if op in saved else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("create_selective_checkpoint_contexts: a function or a list of operators is wanted")
    kept: dict[Any, list[Any]] = {}
    return tuple(_Selective(policy, kept, again, allow_cache_entry_mutation) for again in (False, True))


# ---- settings, and parts that programs call ----

_settings: dict[str, Any] = {"early_stop": None, "debug": None}


@contextmanager
def _set_while(name: str, value: Any) -> Iterator[None]:
    before = _settings[name]
    _settings[name] = value
    try:
        yield
    finally:
        _settings[name] = before


def set_checkpoint_early_stop(enable: bool) -> Any:
    """Inside, computing again stops as soon as backward has what it needs, or never does so early.

    Arguments:
        enable: whether it is on

    Returns: a context manager.

    Example:
        >>> with tp.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     pass
    """
    return _set_while("early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> Any:
    """Inside, `debug` of checkpoint() is taken as this; it changes nothing here.

    Arguments:
        enabled: whether it is on

    Returns: a context manager.

    Example:
        >>> with tp.utils.checkpoint.set_checkpoint_debug_enabled(False):
        ...     pass
    """
    return _set_while("debug", enabled)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors without their history, that require a gradient as they did.

    Arguments:
        inputs: the inputs

    Returns: a tuple.

    Raises: RuntimeError for what is no tuple.

    Example:
        >>> tp.utils.checkpoint.detach_variable((tp.ones(2, requires_grad=True),))[0].requires_grad
        True
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: a tuple of tensors is wanted, not a {type(inputs).__name__}")
    return tuple(_C._want_gradient(x.detach(), x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Any) -> None:
    """Warns where none of them requires a gradient.

    Arguments:
        inputs: the inputs

    Example:
        >>> tp.utils.checkpoint.check_backward_validity([tp.ones(2, requires_grad=True)])
    """
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class DefaultDeviceType:
    """The device type whose generator is kept where the arguments are on the CPU.

    Example:
        >>> tp.utils.checkpoint.DefaultDeviceType.get_device_type() is not None
        True
    """

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """What it is."""
        return DefaultDeviceType._default_device_type


def _infer_device_type(*args: Any) -> str:
    """The kind of the first device that is not the CPU among those of tensors in trees; "cpu" of tensors of the CPU.

    A warning says that there are several other kinds.
    """
    kinds = [leaf.device.type for leaf in tree_leaves(args) if isinstance(leaf, Tensor)]
    others = sorted({kind for kind in kinds if kind != "cpu"})
    first = next((kind for kind in kinds if kind != "cpu"), "cpu")
    if len(others) > 1:
        warnings.warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two types of devices. The first one's "
            f"random state alone is kept. Device types: {others} first device type: {first}",
            stacklevel=2,
        )
    return first


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The generators' states of the devices of tensors: there is one generator, which checkpoint() keeps itself.

    Returns: two empty lists.

    Example:
        >>> tp.utils.checkpoint.get_device_states(tp.ones(2))
        ([], [])
    """
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Sets them back: there are none.

    Arguments:
        devices: the devices
        states: the states, as get_device_states gives them
        device_type: the type of device: 'cpu', 'opencl', ...

    Example:
        >>> tp.utils.checkpoint.set_device_states([], [])
    """
