"""What programs state of their own values: `_check` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp

CHECKS: list[tuple[Callable[..., None], type[Exception]]] = [
    (tp._check, RuntimeError),
    (tp._check_index, IndexError),
    (tp._check_value, ValueError),
    (tp._check_type, TypeError),
    (tp._check_not_implemented, NotImplementedError),
]


@pytest.mark.parametrize(("check", "kind"), CHECKS)
def test_each_has_its_class_of_error(check: Callable[..., None], kind: type[Exception]) -> None:
    check(True)
    check(True, lambda: 1 / 0)  # words are made only for an error
    with pytest.raises(kind, match="Expected cond to be True"):
        check(False)
    with pytest.raises(kind, match=r"tensor\(\[0, 1\]\)"):
        check(False, lambda: tp.arange(2))
    wrong: list[Any] = [1, tp.tensor(True), None]
    for cond in wrong:
        with pytest.raises(TypeError, match="cond must be a bool"):
            check(cond)
    with pytest.raises(TypeError, match="callable"):
        check(False, "words")


def test_all_elements_of_a_tensor() -> None:
    tp._check_tensor_all(tp.ones(3, 2, dtype=tp.bool))
    tp._check_tensor_all(tp.ones(0, dtype=tp.bool))
    with pytest.raises(RuntimeError, match="no"):
        tp._check_tensor_all(tp.tensor([True, False]), lambda: "no")
    with pytest.raises(TypeError, match="must be a tensor"):
        tp._check_tensor_all(True)
    with pytest.raises(TypeError, match=r"dtype torch\.bool"):
        tp._check_tensor_all(tp.ones(1))
    with pytest.raises(ValueError, match="Expected"):
        tp._check_tensor_all_with(ValueError, tp.tensor(False))


def test_sizes() -> None:
    tp._check_is_size(0)
    tp._check_is_size(3, max=3)
    for size, most in ((-1, None), (4, 3)):
        with pytest.raises(RuntimeError):
            tp._check_is_size(size, max=most)


def test_settings_of_determinism_are_checked_and_kept() -> None:
    wrong: Any = 1
    with pytest.raises(TypeError, match="'warn_only' must be bool"):
        tp.use_deterministic_algorithms(False, warn_only=wrong)
    try:
        for mode in (True, False):
            for warn_only in (True, False):
                tp.use_deterministic_algorithms(mode, warn_only=warn_only)
                assert tp.are_deterministic_algorithms_enabled() is mode
                assert tp.is_deterministic_algorithms_warn_only_enabled() is warn_only
    finally:
        tp.use_deterministic_algorithms(False)
