"""The errors of tensorpy.distributed, for it and for the stores."""

from __future__ import annotations


class DistError(RuntimeError):
    """An error of torch.distributed."""

    __module__ = "tensorpy.distributed"


class DistBackendError(DistError):
    """What would carry messages has failed."""

    __module__ = "tensorpy.distributed"


class DistNetworkError(DistError):
    """Another process cannot be reached."""

    __module__ = "tensorpy.distributed"


class DistStoreError(DistError):
    """A store has no answer, or not in time."""

    __module__ = "tensorpy.distributed"


class QueueEmptyError(DistStoreError):
    """A queue of a store has no value, and nobody wants to wait for one."""

    __module__ = "tensorpy.distributed"
