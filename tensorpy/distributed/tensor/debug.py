"""What a program sends while it runs: CommDebugMode counts the messages between processes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tensorpy._ops import ops
from tensorpy.distributed.tensor._api import DTensor
from tensorpy.utils._python_dispatch import TorchDispatchMode

__all__ = ["CommDebugMode"]


class CommDebugMode(TorchDispatchMode):
    """A context that counts messages: those of distributed tensors, and of functional collectives.

    A count is that of an operator, `ops.c10d_functional.all_reduce`; waits are none.

    Example:
        >>> from tensorpy.distributed.tensor.debug import CommDebugMode
        >>> with CommDebugMode() as mode:
        ...     x = tp.ones(2) * 2  # sends nothing
        >>> mode.get_total_counts()
        0
    """

    comm_counts: Counter[Any]

    def __init__(self) -> None:
        super().__init__()
        self.comm_counts = Counter()

    def __enter__(self) -> Any:
        self.comm_counts.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(issubclass(each, DTensor) for each in types):
            return NotImplemented  # what it does with parts comes by here
        if "collective" in func.tags and func is not ops._c10d_functional.wait_tensor.default:
            self.comm_counts[func.overloadpacket] += 1
        return func(*args, **(kwargs or {}))

    def get_comm_counts(self) -> dict[Any, int]:
        """How often each operator sent something."""
        return dict(self.comm_counts)

    def get_total_counts(self) -> int:
        """How many messages there were."""
        return self.comm_counts.total()

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """The counts as text.

        Arguments:
            noise_level: is taken
        """
        return "\n".join(["Global", *(f"  *{op._qualified_op_name}: {n}" for op, n in self.comm_counts.items())])

    def log_comm_debug_tracing_table_to_file(self, file_name: str = "comm_mode_log.txt", noise_level: int = 3) -> None:
        """Writes the counts into a file.

        Arguments:
            file_name: the file
            noise_level: is taken
        """
        with open(file_name, "w") as file:
            file.write(self.generate_comm_debug_tracing_table(noise_level) + "\n")
