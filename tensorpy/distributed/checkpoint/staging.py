"""Copies of a state dictionary that are written while the program goes on."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from tensorpy._C import Tensor
from tensorpy.distributed.checkpoint.metadata import STATE_DICT_TYPE


@runtime_checkable
class AsyncStager(Protocol):
    """What copies for async_save."""

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether async_save waits for the copy before it returns."""
        ...

    def stage(self, state_dict: STATE_DICT_TYPE) -> Any:
        """A copy.

        Arguments:
            state_dict: what is to be saved
        """
        ...

    def synchronize_staging(self) -> None:
        """Waits for the copy."""
        ...

    def close(self) -> None:
        """Lets memory go."""
        ...


def _copied(value: Any, old: Any) -> Any:
    """A copy on the host; into the tensors of an older one where they fit."""
    if isinstance(value, Tensor):
        plain = value.detach()
        if isinstance(old, Tensor) and (old.shape, old.dtype) == (plain.shape, plain.dtype):
            return old.copy_(plain)
        return plain.cpu() if plain.device.type != "cpu" else plain.clone()
    if isinstance(value, Mapping):
        known = old if isinstance(old, dict) else {}
        return {key: _copied(each, known.get(key)) for key, each in value.items()}
    if type(value) in (list, tuple):
        several = old if isinstance(old, (list, tuple)) and len(old) == len(value) else [None] * len(value)
        return type(value)(_copied(each, before) for each, before in zip(value, several, strict=True))
    return copy.deepcopy(value)


class BlockingAsyncStager:
    """Copies to the host's memory at once.

    Arguments:
        cache_staged_state_dict: whether the copy's memory is kept for the next one
        type_check: is taken; other kinds of values are copied as they are
    """

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict = cache_staged_state_dict
        self.state_dict_cache: STATE_DICT_TYPE | None = None

    @property
    def should_synchronize_after_execute(self) -> bool:
        """False: the copy is whole when `stage` returns."""
        return False

    def stage(self, state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
        """A copy.

        Arguments:
            state_dict: what is to be saved
        """
        made: STATE_DICT_TYPE = _copied(state_dict, self.state_dict_cache)
        if self.cache_staged_state_dict:
            self.state_dict_cache = made
        return made

    def synchronize_staging(self) -> None:
        """Nothing is left to wait for."""

    def close(self) -> None:
        """Lets the copy's memory go."""
        self.state_dict_cache = None
