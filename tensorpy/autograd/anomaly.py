"""Anomaly detection: where the forward call of a failing backward was."""

from __future__ import annotations

import warnings
from typing import Any

from tensorpy import _C


class detect_anomaly:
    """Inside, an error in backward shows the forward call that made its node, and a NaN gradient is an error;
    in all threads.

    Arguments:
        check_nan: whether NaN in a gradient is an error

    Example:
        >>> with tp.autograd.detect_anomaly(check_nan=False):
        ...     print(tp.is_anomaly_enabled())
        True
    """

    previous: Any

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled: calls are slower, use it for debugging only", stacklevel=2)

    def __enter__(self) -> None:
        self.previous = _C._get_anomaly()
        _C._set_anomaly(True, self.check_nan)

    def __exit__(self, *unused: Any) -> None:
        _C._set_anomaly(*self.previous)


class set_detect_anomaly:
    """Switches anomaly detection on or off; back again if used as a context.

    Arguments:
        mode: whether it is on
        check_nan: whether NaN in a gradient is an error

    Example:
        >>> with tp.autograd.set_detect_anomaly(True):
        ...     print(tp.is_anomaly_enabled())
        True
    """

    previous: Any

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.previous = _C._get_anomaly()
        _C._set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: Any) -> None:
        _C._set_anomaly(*self.previous)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on.

    Returns: bool.

    Example:
        >>> tp.is_anomaly_enabled()
        False
    """
    return _C._get_anomaly()[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN gradients.

    Returns: bool.

    Example:
        >>> tp.is_anomaly_check_nan_enabled() in (True, False)
        True
    """
    return _C._get_anomaly()[1]


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switches anomaly detection on or off.

    Arguments:
        enabled: whether it is on
        check_nan: whether NaN in a gradient is an error

    Example:
        >>> tp.set_anomaly_enabled(False)
    """
    _C._set_anomaly(enabled, check_nan)
