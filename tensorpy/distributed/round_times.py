"""RoundTimes: how long the parts of a training step of DistributedDataParallel took, in nanoseconds."""

from __future__ import annotations

_ALWAYS = 10  # so many rounds are noted whatever the rate


class RoundTimes:
    """The times of the last round that was noted, and means over all that were. A round in each `rate` is noted."""

    rate: int
    forward: int
    iteration: int

    def __init__(self) -> None:
        self.rate = 100
        self.forward = 0  # when the forward that comes before began
        self.iteration = 0  # the number of the round that was noted last
        self._noted = 0
        self._last: dict[str, int] = {}
        self._sums: dict[str, int] = {}

    def note(self, number: int, first_gradient: int, first_bucket: int, backward: int, end: int) -> None:
        """Round `number` is over: gradients came, buckets went, backward was done, and all buckets were back."""
        if not self.forward or not first_gradient or not (number < _ALWAYS or number % self.rate == 0):
            return
        lengths = {
            "forward_compute_time": first_gradient - self.forward,
            "backward_compute_time": backward - first_gradient,
            "backward_comm_time": end - first_bucket,
            "backward_compute_comm_overlap_time": backward - first_bucket,
        }
        self.iteration = number
        self._noted += 1
        self._last = {
            **lengths,
            "forward_compute_time_start": self.forward,
            "backward_compute_time_start": first_gradient,
            "backward_compute_time_end": backward,
            "backward_comm_time_start": first_bucket,
            "backward_comm_time_end": end,
        }
        self._sums = {name: self._sums.get(name, 0) + length for name, length in lengths.items()}

    def said(self) -> dict[str, int]:
        """The times by PyTorch's names."""
        return {**self._last, **{f"avg_{name}": total // self._noted for name, total in self._sums.items()}}
