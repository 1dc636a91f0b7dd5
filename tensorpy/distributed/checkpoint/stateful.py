"""Objects that have a state dictionary."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """What `save` takes in the place of a dictionary, and `load` gives its dictionary back to.

    Example:
        >>> from tensorpy.distributed.checkpoint.stateful import Stateful
        >>> isinstance(tp.nn.Linear(2, 2), Stateful)
        True
    """

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved, and where what is loaded goes."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what was loaded.

        Arguments:
            state_dict: what `state_dict` gave, filled
        """
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
