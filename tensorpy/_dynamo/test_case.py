"""A TestCase that forgets between tests what was compiled."""

from __future__ import annotations

import importlib
import logging
import sys
from typing import Any

from tensorpy import _C, _dynamo
from tensorpy._dynamo import utils
from tensorpy._logging._internal import trace_log
from tensorpy.autograd.grad_mode import set_grad_enabled
from tensorpy.testing._internal import common_utils


def _tools() -> Any:
    """The test tools of the program: those that it imported as PyTorch's, if there are some."""
    return sys.modules.get("torch.testing._internal.common_utils", common_utils)


class TestCase(_tools().TestCase):  # type: ignore[misc]
    """Each test begins without compiled functions, counts of them, and with a gradient mode that is as it was."""

    def setUp(self) -> None:
        """Forgets."""
        self._grad_before = _C.is_grad_enabled()
        super().setUp()
        _dynamo.reset()
        utils.counters.clear()
        self.handler = logging.NullHandler()
        trace_log.addHandler(self.handler)

    def tearDown(self) -> None:
        """Forgets."""
        trace_log.removeHandler(self.handler)
        _dynamo.reset()
        utils.counters.clear()
        super().tearDown()
        set_grad_enabled(self._grad_before)


def run_tests(needs: str | tuple[str, ...] = ()) -> None:
    """Runs the tests of the program, unless a module or a device ("cuda") that they need is not there."""
    for need in (needs,) if isinstance(needs, str) else needs:
        if need == "cuda":
            return
        try:
            importlib.import_module(need)
        except ImportError:
            return
    _tools().run_tests()
