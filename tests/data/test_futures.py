"""Futures: completed once, what callbacks raise, what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp

NOTHING: Any = None


def _of_a_callback() -> Any:
    def fails(_: Any) -> None:
        raise ValueError("of the program")

    future: Any = tp.futures.Future()
    after = future.then(fails)
    future.set_result(1)
    return after.wait()


def _again() -> None:
    future: Any = tp.futures.Future()
    future.set_result(1)
    future.set_result(2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (_of_a_callback, "Got the following error when running the callback: ValueError: of the program"),
        (_again, "Future can only be marked completed once"),
        (lambda: pickle.dumps(tp.futures.Future()), "Can not pickle tensorpy.futures.Future"),
        (lambda: tp.futures.wait_all([NOTHING]), "Future can't be None"),
        (lambda: tp.futures.collect_all([tp.futures.Future(), NOTHING]), "Future can't be None"),
        (lambda: tp.jit.wait(None), "Future can't be None"),
    ],
)
def test_what_is_no_result_is_an_error(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        call()
