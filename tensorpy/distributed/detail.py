"""What TORCH_DISTRIBUTED_DEBUG=DETAIL adds: before a message of all, its processes compare what they are about to do.

They do so over the store, which is slow, and so names the ranks that differ or did not come.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

from tensorpy._C import Tensor
from tensorpy.distributed.errors import DistBackendError, DistStoreError
from tensorpy.distributed.groups import ProcessGroup


class DebugLevel(Enum):
    """How much is checked and told.

    Example:
        >>> tp.distributed.DebugLevel.OFF.name
        'OFF'
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


_debug_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """What was set: with DETAIL, processes compare each message before it begins.

    Returns: a DebugLevel.

    Example:
        >>> tp.distributed.get_debug_level().name
        'OFF'
    """
    return _debug_level


def set_debug_level(level: DebugLevel) -> None:
    """Sets it.

    Arguments:
        level: the level

    Example:
        >>> tp.distributed.set_debug_level(tp.distributed.DebugLevel.OFF)
    """
    global _debug_level
    _debug_level = level


def set_debug_level_from_env() -> None:
    """Sets it to what TORCH_DISTRIBUTED_DEBUG says.

    Example:
        >>> tp.distributed.set_debug_level_from_env()
    """
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, not {name}")
    set_debug_level(DebugLevel[name])


def compare(
    group: ProcessGroup,
    name: str,
    tensor: Tensor | None = None,
    op: Any = None,
    root: int = 0,
    given: list[int] | None = None,
    gotten: list[int] | None = None,
) -> None:
    """DistBackendError where the processes of a group do not begin the same message, which names who does what."""
    if _debug_level is not DebugLevel.DETAIL:
        return
    group._checks += 1
    what = name if tensor is None else f"{name} of {tensor.dtype}{list(tensor.shape)}"
    if op is not None:
        what += f" by {getattr(op, 'name', 'PREMUL_SUM')}"
    if root:
        what += f" with root {root}"
    store, number = group._store, group._checks
    splits = ";".join(",".join(map(str, sizes or [])) for sizes in (given, gotten))
    store.set(f"detail/{number}/{group.rank()}", f"{what}|{splits}")
    keys = [f"detail/{number}/{r}" for r in range(group.size())]
    try:
        said = [text.decode() for text in store.multi_get(keys)]
    except DistStoreError:
        late = [str(group._ranks[r]) for r, key in enumerate(keys) if not store.check([key])]
        raise DistBackendError(f"{what}: rank{'s' * (len(late) > 1)} {', '.join(late)} did not begin it") from None
    whats = [text.rpartition("|")[0] for text in said]
    if len(set(whats)) > 1:
        each = "; ".join(f"rank {group._ranks[r]}: {text}" for r, text in enumerate(whats))
        raise DistBackendError(f"the processes of group {group.group_name} begin different messages: {each}")
    if given is not None and gotten is not None:
        _compare_splits(group, name, [text.rpartition("|")[2] for text in said], gotten)
    if number > 1:
        store.delete_key(f"detail/{number - 1}/{group.rank()}")  # all have read it: all are here


def _compare_splits(group: ProcessGroup, name: str, said: list[str], gotten: list[int]) -> None:
    for r, text in enumerate(said):
        sent = [int(n) for n in text.partition(";")[0].split(",")][group.rank()]
        if sent != gotten[r]:
            raise DistBackendError(
                f"{name}: rank {group._ranks[r]} sends {sent} elements, where this rank expects {gotten[r]}"
            )
