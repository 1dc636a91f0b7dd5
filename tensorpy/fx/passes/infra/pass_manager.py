"""Runs passes that give PassResults: in an order that constraints allow, several times, with checks in between."""

from __future__ import annotations

import contextlib
import functools
import graphlib
import inspect
import logging
from collections.abc import Callable
from typing import Any

from tensorpy.fx.passes.infra.pass_base import PassResult
from tensorpy.fx.passes.pass_manager import _validate_pass_schedule_constraint, this_before_that_pass_constraint
from tensorpy.nn import Module

__all__ = ["PassManager", "inplace_wrapper", "pass_result_wrapper", "this_before_that_pass_constraint"]

logger: logging.Logger = logging.getLogger(__name__)


def _name_of(function: Any) -> str:
    return function.__name__ if inspect.isfunction(function) else type(function).__name__


def pass_result_wrapper(fn: Callable[..., Any]) -> Any:
    """A function that changes its module in place as a pass: what gives no PassResult is taken to have changed it."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def run(gm: Any) -> PassResult:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        return result if isinstance(result, PassResult) else PassResult(result, True)

    if not inspect.isfunction(fn):
        run.__name__ = type(fn).__name__
    return run


inplace_wrapper = pass_result_wrapper


def _topological_sort_passes(passes: list[Any], constraints: list[Any]) -> list[Any]:
    """The passes in the first order that agrees with all constraints; RuntimeError if there is none."""
    if not constraints:
        return passes
    before = {
        i: [j for j, b in enumerate(passes) if i != j and not all(agrees(a, b) for agrees in constraints)]
        for i, a in enumerate(passes)
    }
    sorter = graphlib.TopologicalSorter(before)
    with contextlib.suppress(graphlib.CycleError):  # which leaves it usable for those that are in no circle
        sorter.prepare()
    order: list[int] = []
    ready: list[int] = []
    while sorter.is_active() and (ready := sorted([*ready, *sorter.get_ready()])):
        sorter.done(first := ready.pop(0))
        order.append(first)
    if len(order) < len(passes):
        left = [each for i, each in enumerate(passes) if i not in order]
        raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
    return [passes[i] for i in order]


class PassManager:
    """`PassManager(passes)(module)` runs the passes one after another, `steps` times or until none changes anything."""

    steps: int

    def __init__(
        self,
        passes: list[Any] | None = None,
        constraints: list[Any] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes: list[Any] = list(passes or [])
        self.constraints: list[Any] = list(constraints or [])
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable[..., Any]) -> None:
        """One more pass, at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[..., bool]) -> None:
        """One more constraint: called with two passes, says whether the first may run before the second."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError unless the passes stand in an order that all constraints allow."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True

    def solve_constraints(self) -> None:
        """Puts the passes in an order that all constraints allow."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[..., Any]) -> None:
        """Another `check`: a function of a module, that raises where something is wrong."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign]

    def check(self, module: Any) -> None:
        """What is asked after the passes."""

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            module, modified = self._once(module)
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)

    def _once(self, module: Any) -> tuple[Any, bool]:
        modified = False
        done: list[str] = []
        for fn in self.passes:
            name = _name_of(fn)
            try:
                result = fn(module)
                if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                    raise TypeError(
                        f"The result of the pass {name} should be type PassResult; pass_result_wrapper() helps"
                    )
                module = result.graph_module
                modified = modified or result.modified
                if isinstance(module, Module) and hasattr(module, "recompile"):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            except Exception as error:
                if self.suppress_check_failures and not isinstance(error, TypeError):
                    logger.warning("the pass %s failed: %s", name, error)
                    continue
                message = f"An error occurred when running the '{name}' pass after the following passes: {done}"
                raise type(error)(message) from error
            done.append(name)
        if not self.run_checks_after_each_pass:
            self.check(module)
        return module, modified
