"""What states of wrapped modules have: names of the plain model, and in a scope the parts that lie here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy.nn import Module

INSIDE = "_fsdp_wrapped_module"
CHECKPOINTED = "_checkpoint_wrapped_module"
_scopes = 0


class Wrapper(Module):
    """A module around another, which its state does not name; what it does not have itself is the other's."""

    inside: str  # what the other is called in it

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if type(self).inside not in self.__dict__.get("_modules", ()):
                raise
            return getattr(self._modules[type(self).inside], name)

    def __getitem__(self, key: Any) -> Any:
        inside: Any = self._modules[type(self).inside]
        return inside[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters, under the plain module's names."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(f"{type(self).inside}.", ""), parameter


def clean_name(name: str) -> str:
    """A parameter's name without what wrappers add."""
    return name.replace(f"{INSIDE}.", "").replace(f"{CHECKPOINTED}.", "")


@contextmanager
def in_parts() -> Iterator[None]:
    """States have the parts in this scope, whatever a model says."""
    global _scopes
    _scopes += 1
    try:
        yield
    finally:
        _scopes -= 1


def are_parts() -> bool:
    """Whether a scope of in_parts is open."""
    return _scopes > 0
