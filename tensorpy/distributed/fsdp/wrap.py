"""Policies that say which modules of a model FullyShardedDataParallel wraps: functions of module, recurse,
nonwrapped_numel. With recurse they say whether to look inside, without it whether to wrap the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorpy.nn import Module, ModuleDict, ModuleList, MultiheadAttention

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip

_MOST_UNWRAPPED = 10**8


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module is wrapped.

    Example:
        >>> tp.distributed.fsdp.wrap.always_wrap_policy()
        True
    """
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """What a function of the module says.

    Arguments:
        module: the module
        recurse: whether it is asked if to look inside
        nonwrapped_numel: how many elements its parameters have that nothing inside wraps
        lambda_fn: whether a module is wrapped

    Example:
        >>> tp.distributed.fsdp.wrap.lambda_auto_wrap_policy(nn.ReLU(), False, 0, lambda m: isinstance(m, nn.Linear))
        False
    """
    return recurse or bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type[Module]]
) -> bool:
    """Modules of some classes.

    Arguments:
        module: the module
        recurse: whether it is asked if to look inside
        nonwrapped_numel: how many elements its parameters have that nothing inside wraps
        transformer_layer_cls: the classes

    Example:
        >>> tp.distributed.fsdp.wrap.transformer_auto_wrap_policy(nn.Linear(1, 1), False, 2, {nn.Linear})
        True
    """
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = _MOST_UNWRAPPED,
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Modules with many elements that nothing inside them wraps.

    Arguments:
        module: the module
        recurse: whether it is asked if to look inside
        nonwrapped_numel: how many elements its parameters have that nothing inside wraps
        min_num_params: how many are many
        force_leaf_modules: classes that are not looked into; MultiheadAttention if nothing is said
        exclude_wrap_modules: classes that are not wrapped; ModuleList and ModuleDict if nothing is said

    Example:
        >>> tp.distributed.fsdp.wrap.size_based_auto_wrap_policy(nn.Linear(9, 9), False, 90, min_num_params=50)
        True
    """
    leaves = (MultiheadAttention,) if force_leaf_modules is None else tuple(force_leaf_modules)
    excluded = (ModuleList, ModuleDict) if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    many = nonwrapped_numel >= min_num_params
    if recurse:
        return many and not isinstance(module, leaves)
    return many and not isinstance(module, excluded)


class ModuleWrapPolicy:
    """Modules of some classes.

    Arguments:
        module_classes: they

    Example:
        >>> policy = tp.distributed.fsdp.wrap.ModuleWrapPolicy({nn.Linear})
        >>> policy(nn.ReLU(), recurse=False)
        False
    """

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._classes)

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({set(self._classes)})"


class CustomPolicy:
    """What a function of the module says: whether, or keyword arguments that its FullyShardedDataParallel gets.

    Arguments:
        lambda_fn: the function

    Example:
        >>> policy = tp.distributed.fsdp.wrap.CustomPolicy(lambda module: {"forward_prefetch": True})
        >>> policy(nn.ReLU(), recurse=False)
        {'forward_prefetch': True}
    """

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._says = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool | dict[str, Any]:
        return True if recurse else self._says(module)


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Sequence[Callable[..., bool]]) -> bool:
    """What any of several policies says."""
    return any(p(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for p in policies)


_enabled: list[tuple[Callable[..., Module], dict[str, Any]]] = []  # the scopes of enable_wrap, the innermost last


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """A context in which wrap wraps.

    Arguments:
        wrapper_cls: in what
        wrapper_kwargs: its options

    Example:
        >>> from tensorpy.distributed.fsdp.wrap import enable_wrap, wrap
        >>> with enable_wrap(wrapper_cls=nn.Sequential):
        ...     print(wrap(nn.ReLU()))
        Sequential(
          (0): ReLU()
        )
    """
    _enabled.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _enabled.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """A module in the wrapper that the scope of enable_wrap around this says; the module itself if there is none.

    Arguments:
        module: the module
        wrap_overrides: options in the place of the scope's

    Example:
        >>> tp.distributed.fsdp.wrap.wrap(nn.ReLU())
        ReLU()
    """
    if not _enabled:
        return module
    wrapper, options = _enabled[-1]
    return wrapper(module, **{**options, **wrap_overrides})


def wrap_inside(module: Module, policy: Callable[..., Any], make: Callable[..., Module], ignored: set[Any]) -> int:
    """Wraps the modules inside a module that the policy names, the innermost first; the elements left unwrapped."""
    count = sum(p.numel() for p in module.parameters() if p not in ignored)
    if policy(module=module, recurse=True, nonwrapped_numel=count):
        for name, child in list(module._modules.items()):
            if child is None:
                continue
            left = wrap_inside(child, policy, make, ignored)
            whole = sum(p.numel() for p in child.parameters() if p not in ignored)
            said = policy(module=child, recurse=False, nonwrapped_numel=left)
            if said:
                module._modules[name] = make(child, **(said if isinstance(said, dict) else {}))
                left = 0
            count -= whole - left
    return count
