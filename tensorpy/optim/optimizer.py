"""The base of optimizers: parameter groups, states, hooks, state dictionaries.

`ListOptimizer` is the base of those whose step is one update of a list of tensors: `update` is the one place where that
happens.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._modes import enable_grad, set_grad_enabled
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
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
            args, kwargs = changed
        self._opt_called = True
        result = step(self, *args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    return hooked


class Optimizer:
    """Parameters in groups, each with its settings, and a state for each parameter."""

    state: dict[Any, Any]
    param_groups: list[dict[str, Any]]
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
                f"{type(params).__name__}"
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
            kind.step = self.profile_hook_step(kind.step)

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
            raise ValueError("all optimizer param groups should be with/without names.")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the parameters' gradients, or sets them to zero."""
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
                p.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves the parameters once."""
        raise NotImplementedError

    # ---- hooks ----

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before step; it may return others."""
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


# ---- optimizers whose step is one update of a list ----


def number(value: Any) -> Any:
    """A setting that may be a tensor of one element, as a number."""
    return value.item() if isinstance(value, Tensor) else value


def count(steps: State) -> float:
    """Counts a parameter's step and returns how many there were."""
    steps["step"] += 1
    return number(steps["step"])


def decayed(params: Sequence[Tensor], grads: Sequence[Tensor], weight_decay: Any) -> Sequence[Tensor]:
    """The gradients with that of a square penalty on the parameters."""
    if not weight_decay:
        return grads
    rate = number(weight_decay)
    return [g.add(p, alpha=rate) for p, g in zip(params, grads, strict=True)]


def shrink(params: Sequence[Tensor], by: float) -> None:
    """Decoupled weight decay: the parameters themselves, in place."""
    if by:
        for p in params:
            p.mul_(1 - by)


class ListOptimizer(Optimizer):
    """A subclass says what a parameter's state is at first, and how a list of parameters is updated."""

    complex_as_real = True  # complex tensors reach `update` as real ones with a last dimension of 2

    def start(self, p: Tensor, group: dict[str, Any]) -> State:
        """A parameter's first state."""
        return {}

    def update(
        self, group: dict[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], states: Sequence[State]
    ) -> None:
        """Moves the parameters, and their states, in place."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves the parameters once; a closure that computes the loss is called before."""
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
                grads = [p.grad for p in params]
                if group.get("maximize"):
                    grads = [-g for g in grads]
                self._update(group, params, grads, [self.state.get(p, {}) for p in params])
        return loss

    def _update(self, group: Any, params: Any, grads: Any, states: Any) -> None:
        if self.complex_as_real and any(p.is_complex() for p in params):
            params, grads = [_real(p) for p in params], [_real(g) for g in grads]
            states = [{k: _real(v) for k, v in s.items()} for s in states]
        self.update(group, params, grads, states)


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


def zero_step() -> Tensor:
    """No step yet."""
    return _C.tensor(0.0)
