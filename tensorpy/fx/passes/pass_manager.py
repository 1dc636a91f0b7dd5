"""Runs passes that give what they are given: the older kind, without PassResults."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

__all__ = [
    "PassManager", "inplace_wrapper", "log_hook", "loop_pass", "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]  # fmt: skip

logger: logging.Logger = logging.getLogger(__name__)


def inplace_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that changes its argument, as one that gives it as well."""

    @functools.wraps(fn)
    def run(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return run


def log_hook(fn: Callable[..., Any], level: int = logging.INFO) -> Callable[..., Any]:
    """A pass that logs its result."""

    @functools.wraps(fn)
    def run(gm: Any) -> Any:
        result = fn(gm)
        logger.log(level, "Ran pass %s\n Return value: %s", fn, result)
        return result

    return run


def loop_pass(
    base_pass: Callable[..., Any], n_iter: int | None = None, predicate: Callable[..., bool] | None = None
) -> Callable[..., Any]:
    """A pass that runs another a number of times, or as long as a predicate of its result is true."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @functools.wraps(base_pass)
    def run(source: Any) -> Any:
        if predicate is None:
            for _ in range(n_iter or 0):
                source = base_pass(source)
            return source
        while predicate(source):
            source = base_pass(source)
        return source

    return run


def _validate_pass_schedule_constraint(constraint: Callable[..., bool], passes: list[Any]) -> None:
    for i, a in enumerate(passes):
        for j in range(i + 1, len(passes)):
            if not constraint(a, passes[j]):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {a} before {passes[j]}"
                    f" but found {a} at index {i} and {passes[j]} at index{j} in pass list."
                )


def this_before_that_pass_constraint(this: Any, that: Any) -> Callable[..., bool]:
    """A constraint: `this` runs before `that`."""
    return lambda a, b: not (a == that and b == this)


def these_before_those_pass_constraint(these: Any, those: Any) -> Callable[..., bool]:
    """The same for passes that are made from functions: the functions are compared."""
    return lambda a, b: not (inspect.unwrap(a) == those and inspect.unwrap(b) == these)


class PassManager:
    """`PassManager(passes)(source)` gives each pass what the one before it gave."""

    def __init__(self, passes: list[Any] | None = None, constraints: list[Any] | None = None) -> None:
        self.passes: list[Any] = list(passes or [])
        self.constraints: list[Any] = list(constraints or [])
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: list[Any]) -> PassManager:
        """Makes one of a list of passes."""
        return cls(passes)

    def add_pass(self, _pass: Any) -> None:
        """One more pass, at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[..., bool]) -> None:
        """One more constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Takes the passes of these names away."""
        self.passes = [each for each in self.passes if each.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Any, _replacement: Any) -> None:
        """Another pass in the place of one of the same name."""
        self.passes = [_replacement if each.__name__ == _target.__name__ else each for each in self.passes]
        self._validated = False

    def validate(self) -> None:
        """RuntimeError unless the order of the passes agrees with all constraints."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for each in self.passes:
            source = each(source)
        return source
