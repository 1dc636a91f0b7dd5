"""The steps of Sobol' sequences as operators, beside torch's; engines that are made of them."""

from __future__ import annotations

from typing import Any

import pytest

import tensorpy as tp

pytest.importorskip("scipy")


def state(t: Any, dimension: int) -> Any:
    made = t.zeros(dimension, 30, dtype=t.int64)
    return t._sobol_engine_initialize_state_(made, dimension)


def matrices(t: Any, dimension: int) -> Any:
    bits = [(i * i + i // 7) % 3 % 2 for i in range(dimension * 900)]
    return t.tensor(bits, dtype=t.int64).reshape(dimension, 30, 30).tril()


def steps(t: Any) -> list[Any]:
    made = list[Any]()
    whole, three = state(t, 40), state(t, 3)
    digits = t.tensor([5, 2**29, 2**30 - 1])
    for n, after in ((1, 0), (5, 0), (7, 12), (3, 1023), (0, 4)):
        for dtype in (t.float32, t.float64, None):
            points, last = t._sobol_engine_draw(digits, n, three, 3, after, dtype)
            made.append((points.tolist(), str(points.dtype).partition(".")[2], last.tolist()))
        made.append(t._sobol_engine_ff_(digits.clone(), n, three, 3, after).tolist())
    made.append(t._sobol_engine_ff_(digits.clone(), -1, three, 3, 0).tolist())
    scrambled = t._sobol_engine_scramble_(whole.clone(), matrices(t, 40), 40)
    return [*made, whole.tolist(), scrambled.tolist(), digits.tolist()]


def test_steps_are_torchs() -> None:
    assert steps(tp) == steps(pytest.importorskip("torch"))


def refused(t: Any) -> list[str]:
    three, digits, said = state(t, 3), t.zeros(3, dtype=t.int64), list[str]()
    for call in (
        lambda: t._sobol_engine_draw(digits.int(), 3, three, 3, 0, None),
        lambda: t._sobol_engine_draw(digits, 3, three.float(), 3, 0, None),
        lambda: t._sobol_engine_ff_(digits.float(), 3, three, 3, 0),
        lambda: t._sobol_engine_initialize_state_(three.float(), 3),
        lambda: t._sobol_engine_scramble_(three.float(), matrices(t, 3), 3),
    ):
        with pytest.raises(RuntimeError) as caught:
            call()
        said.append(str(caught.value))
    return said


def test_refusals_are_torchs() -> None:
    assert refused(tp) == refused(pytest.importorskip("torch"))


def test_what_would_leave_the_table_is_refused() -> None:
    three, digits = state(tp, 3), tp.zeros(3, dtype=tp.int64)
    for call in (
        lambda: tp._sobol_engine_draw(digits, 3, three, 4, 0, None),
        lambda: tp._sobol_engine_draw(digits[:2], 3, three, 3, 0, None),
        lambda: tp._sobol_engine_draw(digits, 3, three, 3, 2**30, None),
        lambda: tp._sobol_engine_draw(digits, -3, three, 3, 0, None),
        lambda: tp._sobol_engine_draw(digits, 3, three, 3, -1, None),
        lambda: tp._sobol_engine_ff_(digits, 2**62, three, 3, 1),
        lambda: tp._sobol_engine_scramble_(three, matrices(tp, 2), 3),
        lambda: tp._sobol_engine_initialize_state_(three, 4),
        lambda: tp._sobol_engine_initialize_state_(three[:, :29], 3),
    ):
        with pytest.raises(RuntimeError):
            call()


def test_steps_on_devices(device: str) -> None:
    three, digits = state(tp, 3), tp.tensor([5, 2**29, 7])
    points, last = tp._sobol_engine_draw(digits.to(device), 9, three.to(device), 3, 4, tp.float32)
    expected = tp._sobol_engine_draw(digits, 9, three, 3, 4, tp.float32)
    assert points.tolist() == expected[0].tolist() and last.tolist() == expected[1].tolist()
    there = tp._sobol_engine_scramble_(three.clone().to(device), matrices(tp, 3).to(device), 3)
    assert there.tolist() == tp._sobol_engine_scramble_(three.clone(), matrices(tp, 3), 3).tolist()
    assert (
        state(tp, 3).to(device).tolist()
        == tp._sobol_engine_initialize_state_(tp.zeros(3, 30, dtype=tp.int64, device=device), 3).tolist()
    )


def engines(t: Any) -> list[Any]:
    made = list[Any]()
    for engine in (t.quasirandom.SobolEngine(5), t.quasirandom.SobolEngine(1)):
        made += [engine.draw(3).tolist(), engine.fast_forward(4).draw(1).tolist(), engine.draw_base2(3).tolist()]
        made += [engine.num_generated, engine.reset().draw(2, dtype=t.float64).tolist(), engine.quasi.tolist()]
        made += [engine.reset().fast_forward(3).draw(2).tolist(), engine.reset().draw(1).tolist(), repr(engine)]
    return made


def test_engines_are_torchs() -> None:
    assert engines(tp) == engines(pytest.importorskip("torch"))
