"""The default generator's functions: manual_seed, seed, get/set state."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Generator, Tensor, default_generator
from tensorpy._package import proposing as _proposing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def manual_seed(seed: int) -> Generator:
    """Starts the default generators' sequence that belongs to `seed`, on every device; returns the CPU's generator.

    Returns: the CPU's generator.

    Example:
        >>> generator = tp.manual_seed(5)
        >>> x = tp.rand(2)
        >>> generator = tp.manual_seed(5)
        >>> tp.equal(x, tp.rand(2))
        True
    """
    generator = default_generator.manual_seed(int(seed))
    _C._seed_all(generator.initial_seed())
    return generator


def seed() -> int:
    """Starts the default generator from a seed that the system gives, and returns that seed.

    Returns: int.

    Example:
        >>> isinstance(tp.seed(), int)
        True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The default generator's seed.

    Returns: int.

    Example:
        >>> _ = tp.manual_seed(5)
        >>> tp.initial_seed()
        5
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's seed and position, 16 bytes.

    Returns: a tensor of uint8, (16,).

    Example:
        >>> state = tp.get_rng_state()
        >>> x = tp.rand(2)
        >>> tp.set_rng_state(state)
        >>> tp.equal(x, tp.rand(2))
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Takes the default generator back to a state.

    Arguments:
        new_state: a state, as get_rng_state gives it

    Example:
        >>> state = tp.get_rng_state()
        >>> x = tp.rand(2)
        >>> tp.set_rng_state(state)
        >>> tp.equal(x, tp.rand(2))
        True
    """
    default_generator.set_state(new_state)


class fork_rng:
    """Inside, random numbers are drawn as usual; afterwards the default generator is where it was before.

    Arguments:
        devices: the devices
        enabled: whether it is on
        device_type: the type of device: 'cpu', 'opencl', ...

    Example:
        >>> _ = tp.manual_seed(5)
        >>> with tp.random.fork_rng():
        ...     x = tp.rand(2)
        >>> tp.equal(x, tp.rand(2))
        True
    """

    state: Any

    def __init__(self, devices: object = None, enabled: bool = True, *, device_type: str | None = None) -> None:
        self.enabled = enabled

    def __enter__(self) -> None:
        self.state = default_generator.get_state()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, where: TracebackType | None
    ) -> None:
        if self.enabled:
            default_generator.set_state(self.state)


if not TYPE_CHECKING:
    __getattr__ = _proposing("random", globals())
