"""The base of optimizers: parameter groups, states, hooks, state dictionaries.

`ListOptimizer` is the base of those whose step is one update of a list of tensors: `update` says it in operators over
lists, `fused_update` in one operator, where there is one.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import enable_grad, set_grad_enabled
from tensorpy.nn.parameter import Parameter
from tensorpy.utils.hooks import RemovableHandle

__all__ = [
    "ListOptimizer",
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

ParamsT = Iterable[Any]  # of tensors, of dictionaries, or of pairs of a name and a tensor
State = dict[str, Any]
StateDict = dict[str, Any]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()

_global_pre_hooks: dict[int, Callable[..., Any]] = OrderedDict()
_global_post_hooks: dict[int, Callable[..., Any]] = OrderedDict()


def _entered(table: dict[int, Any], hook: Callable[..., Any], first: bool = False) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if first:
        entries: Any = table
        entries.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` before the step of any optimizer; it may return others."""
    return _entered(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` after the step of any optimizer."""
    return _entered(_global_post_hooks, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that calls the hooks around it."""

    @functools.wraps(step)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        self = args[0]  # which hooks see among the arguments, and may exchange there
        own = self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
        _C._met_optimizer(self, bool(own or _global_pre_hooks or _global_post_hooks))
        for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
            args, kwargs = changed
        self._opt_called = True
        result = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    return hooked


# ---- settings ----
# Note [Settings of optimizers]
# An optimizer's settings, in their order and with their defaults, stand once: in the signature of its __init__. The
# defaults of its groups, what a group of an older file lacks, and those of its step as a function are read there.


def chosen(variables: dict[str, Any]) -> dict[str, Any]:
    """The settings among the local variables of an __init__ that has no others yet."""
    return {name: value for name, value in variables.items() if name not in ("self", "params", "__class__")}


_HOMES = ("tensorpy.optim.", "torch.optim.")  # the second where the library is called torch: _as_torch/owners.py


def settings_of(kind: type) -> dict[str, Any]:
    """The settings of an optimizer of this library that have defaults, or of the one that a class is derived from."""
    own = next((base for base in kind.__mro__ if base.__module__.startswith(_HOMES)), Optimizer)
    if own in (Optimizer, ListOptimizer):
        return {}
    parameters = inspect.signature(own).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


class Optimizer:
    """Parameters in groups, each with its settings, and a state for each parameter.

    Arguments:
        params: the parameters, (name, parameter) pairs, or dicts of groups with settings of their own
        defaults: the settings of groups that do not say their own

    Raises: ValueError for no parameters, one that is no leaf, or a setting out of range; TypeError for what is no
        tensor.

    Example:
        >>> optimizer = tp.optim.SGD([nn.Parameter(tp.ones(2))], lr=0.1)
        >>> isinstance(optimizer, tp.optim.Optimizer), optimizer.param_groups[0]["lr"]
        (True, 0.1)
    """

    state: dict[Any, Any]
    param_groups: list[dict[str, Any]]
    _scheduled_step: Any  # the function of step() when a schedule was made for it
    _optimizer_step_pre_hooks: dict[int, Any]
    _optimizer_step_post_hooks: dict[int, Any]
    _optimizer_state_dict_pre_hooks: dict[int, Any]
    _optimizer_state_dict_post_hooks: dict[int, Any]
    _optimizer_load_state_dict_pre_hooks: dict[int, Any]
    _optimizer_load_state_dict_post_hooks: dict[int, Any]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOK_TABLES:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{params.type()}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _patch_step_function(self) -> None:
        """Has the class's step call the hooks: what is no Optimizer by its __init__ keeps a step as it wrote it."""
        kind: Any = type(self)
        if not getattr(kind.step, "hooked", False):
            steps = (vars(cls).get("step") for cls in kind.__mro__)
            kind.step = self.profile_hook_step(kind.step)
            kind.step.__doc__ = next((step.__doc__ for step in steps if step is not None and step.__doc__), None)

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """A step that calls the hooks around it."""
        hooked = _with_hooks(func)
        vars(hooked)["hooked"] = True
        return hooked

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)
        for name, default in settings_of(type(self)).items():
            for group in self.param_groups:
                group.setdefault(name, default)

    def __repr__(self) -> str:
        parts = []
        for i, group in enumerate(self.param_groups):
            settings = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            parts.append(f"Parameter Group {i}\n" + "".join(settings))
        return f"{type(self).__name__} (\n" + "\n".join(parts) + ")"

    # ---- groups ----

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters, {"params": ...}, with settings of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, (set, frozenset)):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        listed = [params] if isinstance(params, Tensor) else list(params)
        if names := [p[0] for p in listed if isinstance(p, tuple)]:
            if len(names) != len(listed):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = names
            listed = [p[1] for p in listed]
        param_group["params"] = listed
        for p in listed:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(set(map(id, listed))) != len(listed):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in listed):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            there, given = ("without", "with") if "param_names" in param_group else ("with", "without")
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{given} names to the optimizer, whose groups are {there}"
            )
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the parameters' gradients, or sets them to zero."""
        zeroed: list[Tensor] = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                    continue
                if p.grad.grad_fn is not None:
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                zeroed.append(p.grad)
        if zeroed:
            _C._foreach_zero_(zeroed)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves the parameters once.

        Returns: what closure gives; None without one.
        """
        raise NotImplementedError

    # ---- hooks ----

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before step; it may return others. args begin with the optimizer."""
        return _entered(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after step."""
        return _entered(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` before state_dict."""
        return _entered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` after state_dict; it may return another."""
        return _entered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before load_state_dict; it may return another."""
        return _entered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` after load_state_dict."""
        return _entered(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """{"state": ..., "param_groups": ...}, with parameters by their number."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            groups.append({**packed, "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes settings and states; floating states become of their parameter's dtype and device."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(self.param_groups, saved, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        numbers = [n for group in saved for n in group["params"]]
        owners = [(p, group) for group in self.param_groups for p in group["params"]]
        by_number = dict(zip(numbers, owners, strict=True))
        state: dict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                p, group = by_number[key]
                state[p] = _converted(value, p, group)
            else:
                state[key] = value
        groups = []
        for own, new in zip(self.param_groups, saved, strict=True):
            new["params"] = own["params"]
            if "param_names" in own:
                new["param_names"] = own["param_names"]
            groups.append(new)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def _converted(value: Any, p: Tensor, group: dict[str, Any], key: Any = None) -> Any:
    """A state as its parameter needs it; the count of steps stays where it is."""
    if isinstance(value, Tensor):
        if key == "step":
            moved = group.get("capturable") or group.get("fused")
            return value.to(dtype=_C.float32, device=p.device) if moved else value
        return value.to(dtype=p.dtype if p.is_floating_point() else value.dtype, device=p.device)
    if isinstance(value, dict):
        return {k: _converted(v, p, group, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_converted(v, p, group) for v in value)
    return value


_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


# ---- names of PyTorch's that optimizers written for it call ----


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step that records a graph where the optimizer's default `differentiable` says so, and none elsewhere."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return func(self, *args, **kwargs)

    return step


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cpu", _C.device("opencl").type]  # which programs may call otherwise


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cpu", _C.device("opencl").type]


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """None: there are no graphs of calls that a device captures."""
    return []


def _default_to_fused_or_foreach(
    params: Sequence[Tensor | None], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Which of fused and foreach goes with these parameters where nobody says; never both."""
    if differentiable:
        return False, False
    there = [p for p in params if p is not None]
    plain = all(type(p) in _PLAIN for p in there)
    ours = {p.device.type for p in there} <= set(_get_fused_kernels_supported_devices())
    fused = use_fused and plain and ours and all(p.is_floating_point() for p in there)
    return fused, not fused and plain and ours


def _get_value(x: Any) -> Any:
    return number(x)


# ---- optimizers whose step is one update of a list ----

_PLAIN = (Tensor, Parameter)


def number(value: Any) -> Any:
    """A setting that may be a tensor of one element, as a number."""
    return value.item() if isinstance(value, Tensor) else value


def one_number(value: Any, name: str) -> Any:
    """A setting as a number. Raises ValueError for a tensor of several elements."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"Tensor {name} must be 1-element")
    return number(value)


def kept(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """What a graph saves of tensors that are written next: copies, where a step is differentiated."""
    return _C._foreach_clone(tensors) if _C.is_grad_enabled() else tensors


def listed(states: Sequence[State], name: str) -> list[Tensor]:
    """A state of each parameter."""
    return [state[name] for state in states]


def counted(states: Sequence[State]) -> list[float]:
    """Counts each parameter's step and returns how many there were."""
    steps = listed(states, "step")
    _C._foreach_add_(steps, 1)
    return [number(step) for step in steps]


def differentiated(*settings: Any) -> bool:
    """Whether a gradient by one of the settings is asked for."""
    return _C.is_grad_enabled() and any(isinstance(s, Tensor) and s.requires_grad for s in settings)


def decayed(params: Sequence[Tensor], grads: Sequence[Tensor], weight_decay: Any) -> Sequence[Tensor]:
    """The gradients with that of a square penalty on the parameters."""
    if differentiated(weight_decay):
        return [grad.addcmul(p.clone(), weight_decay) for p, grad in zip(params, grads, strict=True)]
    if not weight_decay:
        return grads
    return _C._foreach_add(grads, params, alpha=number(weight_decay))


def shrink(params: Sequence[Tensor], by: float) -> None:
    """Decoupled weight decay: the parameters themselves, in place."""
    if by:
        _C._foreach_mul_(params, 1 - by)


class ListOptimizer(Optimizer):
    """A subclass says what a parameter's state is at first, and how a list of parameters is updated."""

    complex_as_real = True  # complex tensors reach `update` as real ones with a last dimension of 2
    counters: tuple[str, ...] = ("step",)  # of a state, that older files have as numbers

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for held in self.state.values():
            for name in self.counters:
                if isinstance(held, dict) and isinstance(held.get(name), (int, float)):
                    held[name] = counter(float(held[name]))

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        """A parameter's first state."""
        return {}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        """Moves the parameters, and their states, in place."""
        raise NotImplementedError

    def sparse_update(self, group: dict[str, Any], p: Tensor, grad: Any, state: State) -> None:
        """Moves one parameter whose gradient is sparse; the gradient's sign is right already."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def fused_update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        """The same by one operator, for parameters of one dtype on one device; maximize is left to it."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves the parameters once; a closure that computes the loss is called before.

        Returns: what closure gives; None without one.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if not params:
                    continue
                for p in params:
                    if not self.state.get(p) and (first := self.start(p, group)):
                        self.state[p] = first
                self._update(group, params, [p.grad for p in params], [self.state.get(p, {}) for p in params])
        return loss

    def _update(self, group: Any, params: Any, grads: Any, states: Any) -> None:
        if any(g.layout is not _C.strided for g in grads):
            params, grads, states = self._without_sparse(group, params, grads, states)
        if self.complex_as_real and any(p.is_complex() for p in params):
            params, grads = [_real(p) for p in params], [_real(g) for g in grads]
            states = [{k: _real(v) for k, v in s.items()} for s in states]
        if self._is_fused(group, params, grads):
            for part in _alike(params, grads, states):
                self.fused_update(group, *part)
            return
        for some, some_grads, some_states in _portions(params, grads, states):
            ascent = _C._foreach_neg(some_grads) if group.get("maximize") else some_grads
            self.update(group, some, ascent, some_states)

    def _without_sparse(self, group: Any, params: Any, grads: Any, states: Any) -> Any:
        """What is left when the parameters with sparse gradients have moved."""
        dense = []
        for item in zip(params, grads, states, strict=True):
            p, grad, state = item
            if grad.layout is _C.strided:
                dense.append(item)
            else:
                self.sparse_update(group, p, -grad if group.get("maximize") else grad, state)
        return tuple(map(list, zip(*dense, strict=True))) if dense else ([], [], [])

    def _is_fused(self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor]) -> bool:
        """Unless the group says otherwise, where the tensors are of floats on a device that has the kernel."""
        fused, foreach = group.get("fused", False), group.get("foreach")
        if fused is False or (fused is None and foreach is False) or group.get("differentiable"):
            return False
        return all(
            (p.is_cpu or p.device.type in _get_fused_kernels_supported_devices())
            and p.is_floating_point()
            and type(p) in _PLAIN
            and p.dtype is g.dtype
            for p, g in zip(params, grads, strict=True)
        )

    def scaling(self) -> dict[str, Any]:
        """What a GradScaler left for an operator that takes it."""
        return {name: getattr(self, name, None) for name in ("grad_scale", "found_inf")}

    def counted_steps(self, states: Sequence[State]) -> list[Tensor]:
        """The counts of steps, with this one, which does not count where the gradients are not finite."""
        steps = listed(states, "step")
        found = getattr(self, "found_inf", None)
        if found is None or number(found) != 1:
            _C._foreach_add_(steps, 1)
        return steps


PORTION = 1 << 15  # elements of parameters: what one operator over lists leaves in the cache, the next finds there


def _portions(*lists: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    """The lists in parts, so that the tensors of the first have not many more elements than PORTION together."""
    begin, room = 0, PORTION
    for i, p in enumerate(lists[0]):
        room -= p.numel()
        if room <= 0:
            yield tuple(items[begin : i + 1] for items in lists)
            begin, room = i + 1, PORTION
    if begin < len(lists[0]):
        yield lists if begin == 0 else tuple(items[begin:] for items in lists)


def _alike(*lists: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    """The lists by dtype and device of the tensors in the first."""
    if len({p.dtype for p in lists[0]}) == 1 and len({p.device for p in lists[0]}) == 1:
        return [tuple(map(list, lists))]
    parts: dict[Any, tuple[list[Any], ...]] = {}
    for items in zip(*lists, strict=True):
        part = parts.setdefault((items[0].dtype, items[0].device), tuple([] for _ in lists))
        for kept, item in zip(part, items, strict=True):
            kept.append(item)
    return parts.values()


def _real(value: Any) -> Any:
    return _C.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


def check(condition: bool, what: str, value: Any) -> None:
    """A setting that is out of its range."""
    if not condition:
        raise ValueError(f"Invalid {what}: {value}")


def check_ways(foreach: bool | None, fused: bool | None, differentiable: bool) -> None:
    """Ways to compute a step that do not go together; here there is one way."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def counter(value: float = 0.0) -> Tensor:
    """A number of a parameter's state, such as how many steps there were: never of 16 bits, which count to 2048."""
    return _C.tensor(value, dtype=_C.float64 if _C.get_default_dtype() is _C.float64 else _C.float32)
