"""The error of a checkpoint: what failed, on which ranks."""

from __future__ import annotations

import traceback
from typing import TypeAlias

WRAPPED_EXCEPTION: TypeAlias = "tuple[BaseException, traceback.StackSummary]"


def wrap(error: BaseException) -> WRAPPED_EXCEPTION:
    """An error, and where it was raised: what other processes may hear of it."""
    return error, traceback.extract_tb(error.__traceback__)


class CheckpointException(BaseException):
    """A step of saving or loading that failed on some ranks; all ranks raise it.

    Arguments:
        msg: the step
        failures: the error of each rank that failed, and where it was raised

    Example:
        >>> from tensorpy.distributed import checkpoint
        >>> try:
        ...     checkpoint.load({"x": tp.zeros(2)}, checkpoint_id="nowhere")
        ... except checkpoint.CheckpointException as error:
        ...     print(sorted(error.failures))  # by the rank
        [0]
    """

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """By rank: the error, and where it was raised."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks:{sorted(self._failures)}: {self.args[0]} failed"]
        for rank, (error, stack) in sorted(self._failures.items()):
            lines.append("".join(traceback.format_list(stack[-3:])).rstrip())
            lines.append(f"rank {rank}: {type(error).__name__}: {error}")
        return "\n".join(line for line in lines if line)
