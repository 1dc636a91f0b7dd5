"""Wrappers around modules that keep little between forward and backward: states have the plain modules' names."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any

from tensorpy.autograd.graph import save_on_cpu
from tensorpy.distributed.fsdp._states import CHECKPOINTED, Wrapper
from tensorpy.distributed.fsdp.wrap import lambda_auto_wrap_policy, wrap_inside
from tensorpy.nn import Module
from tensorpy.utils.checkpoint import checkpoint

_CHECKPOINT_WRAPPED_MODULE = CHECKPOINTED
_CHECKPOINT_PREFIX = f"{CHECKPOINTED}."


class CheckpointImpl(Enum):
    """How a forward is run again: inside of backward's walk, or by hooks of what is kept."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Wrapper):
    """A module around another, which decides what of its forward is kept.

    Arguments:
        mod: the module
    """

    inside = CHECKPOINTED

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._modules[CHECKPOINTED] = mod
        self._register_state_dict_hook(_without_prefix)
        self._register_load_state_dict_pre_hook(_with_prefix, with_module=True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's, in classes below."""
        raise ValueError("a class below ActivationWrapper says how the module inside is called")


class OffloadWrapper(ActivationWrapper):
    """A module whose forward's values for backward lie on the host."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module whose forward keeps its inputs alone, and runs again in backward.

    Arguments:
        mod: the module
        checkpoint_impl: how
        checkpoint_fn: a function in the place of utils.checkpoint.checkpoint: it takes the module and its arguments
        checkpoint_fn_kwargs: options of the function
    """

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        self._packs = checkpoint_fn is None and checkpoint_impl is CheckpointImpl.REENTRANT
        if checkpoint_fn is None:
            checkpoint_fn, checkpoint_fn_kwargs["use_reentrant"] = checkpoint, self._packs
        self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's."""
        module, count, keys = self._checkpoint_wrapped_module, len(args), tuple(kwargs)
        if not self._packs or not keys:
            return self.checkpoint_fn(module, *args, **kwargs)

        def by_place(*given: Any) -> Any:  # a reentrant checkpoint knows arguments by their places alone
            return module(*given[:count], **dict(zip(keys, given[count:], strict=True)))

        return self.checkpoint_fn(by_place, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """A module whose forward's values for backward lie on the host.

    Arguments:
        module: the module

    Example:
        >>> from tensorpy.distributed.algorithms._checkpoint.checkpoint_wrapper import offload_wrapper
        >>> offload_wrapper(nn.Linear(2, 2))(tp.ones(1, 2)).sum().backward()
    """
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """A module whose forward keeps its inputs alone, and runs again in backward.

    Arguments:
        module: the module
        checkpoint_impl: how
        checkpoint_fn: a function in the place of utils.checkpoint.checkpoint: it takes the module and its arguments
        checkpoint_fn_kwargs: options of the function

    Example:
        >>> from tensorpy.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
        >>> list(checkpoint_wrapper(nn.Linear(2, 2)).state_dict())
        ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Wraps modules inside of a model, the innermost first; the model itself stays.

    Arguments:
        model: the model, which is changed in place
        checkpoint_wrapper_fn: what wraps
        check_fn: which modules are wrapped
        auto_wrap_policy: a policy of tensorpy.distributed.fsdp.wrap, in its place

    Example:
        >>> from tensorpy.distributed.algorithms._checkpoint import checkpoint_wrapper as ac
        >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> ac.apply_activation_checkpointing(net, check_fn=lambda m: isinstance(m, nn.Linear))
        >>> [type(m).__name__ for m in net]
        ['CheckpointWrapper', 'ReLU']
    """
    policy = auto_wrap_policy or partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap_inside(model, policy, checkpoint_wrapper_fn, set())


def _without_prefix(module: Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """A state gets the plain module's names."""
    _rename(state_dict, f"{prefix}{_CHECKPOINT_PREFIX}", prefix)


def _with_prefix(module: Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Names of a state get the wrapper's."""
    _rename(state_dict, prefix, f"{prefix}{_CHECKPOINT_PREFIX}")


def _rename(state_dict: dict[str, Any], old: str, new: str) -> None:
    for name in [name for name in state_dict if name.startswith(old)]:
        state_dict[new + name[len(old) :]] = state_dict.pop(name)
