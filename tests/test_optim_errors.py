"""Optimizers refuse what PyTorch's refuse: the bad inputs that come with an installed torch."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")
common = pytest.importorskip("torch.testing._internal.common_optimizers")


def _cases() -> list[Any]:
    found = []
    for info in common.optim_db:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = info.optim_error_inputs_func("cpu", torch.float32)
        for error in errors:
            given = error.optimizer_error_input
            found.append(pytest.param(info.optim_cls.__name__, error, id=f"{info.name}-{given.desc}"))
    return found


def converted(value: Any, memo: dict[int, Any]) -> Any:
    """torch's tensors as tensorpy's, one for one."""
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            dense = value.detach().to_dense() if value.is_sparse else value.detach()
            made = tp.tensor(dense.tolist())
            memo[id(value)] = made.to_sparse() if value.is_sparse else made
        return memo[id(value)]
    if isinstance(value, (list, tuple)):
        return type(value)(converted(v, memo) for v in value)
    if isinstance(value, dict):
        return {k: converted(v, memo) for k, v in value.items()}
    return value


@pytest.mark.parametrize(("name", "error"), _cases())
@pytest.mark.filterwarnings("error::UserWarning")
def test_bad_settings(name: str, error: Any) -> None:
    given, memo = error.optimizer_error_input, {}
    with pytest.raises(error.error_type) as raised:
        optimizer = getattr(tp.optim, name)(converted(given.params, memo), **converted(given.kwargs, memo))
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = tp.ones_like(p)
        optimizer.step(lambda: 1)
    assert re.search(error.error_regex, str(raised.value).replace("tensorpy.", "torch.")), str(raised.value)
