"""Kernels that take only some calls, and primitives that some backends lack (Note [Declining] in dispatch/op.h); those
that fail because of some values."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import tensorpy as tp
from codegen.__main__ import load_catalog

ROOT = Path(__file__).resolve().parents[2]
FLASH = "_scaled_dot_product_flash_attention_for_cpu"


def declining() -> set[str]:
    """The C functions that the entries allow to decline."""
    catalog = load_catalog(ROOT / "yaml")
    primitives = {p.kernel(key) for p in catalog.primitives for key in p.declines}
    return primitives | {k.name for op in catalog for k in op.kernels if k.declines}


def functions_of(text: str) -> dict[str, str]:
    """By its name: the body of each C function."""
    parts = re.split(r"^(?=\w[^\n;]*\()", text, flags=re.M)
    return {found[1]: part for part in parts if (found := re.match(r"[^(]*?\b(\w+)\(", part))}


def test_an_entry_says_of_every_kernel_that_declines() -> None:
    found = set()
    for path in sorted((ROOT / "csrc").rglob("*.c")):
        if path.parent.name in ("core", "dispatch", "outside"):
            continue
        found |= {name for name, body in functions_of(path.read_text()).items() if "tp_decline" in body}
    assert found == declining() and found


def reaching(functions: dict[str, str], found: set[str]) -> set[str]:
    """Those that call one of the found, or one that does."""
    while more := {n for n, body in functions.items() if n not in found and found & set(re.findall(r"\w+", body))}:
        found = found | more
    return found


def test_an_entry_says_of_every_kernel_that_fails_because_of_values() -> None:
    """A loop that looks at elements, and an error in it: calls of such primitives do not wait in compiled functions."""
    primitives = load_catalog(ROOT / "yaml").primitives
    refusing = {p.kernel("CPU") for p in primitives if p.refuses_values}
    found = set()
    for path in sorted((ROOT / "csrc" / "cpu").glob("*.c")):
        functions = functions_of(path.read_text())
        look = {n for n, body in functions.items() if re.search(r"tp_fail\(", body) and re.search(r"\w\[i\]", body)}
        found |= reaching(functions, look) & {p.kernel("CPU") for p in primitives}
    assert found and found <= refusing
    assert {p.name for p in primitives if any(a.name == "fault" for a in p.schema.arguments)} < {
        p.name for p in primitives if p.refuses_values
    }


def heads(*sizes: int, dtype: tp.dtype) -> tp.Tensor:
    return tp.linspace(-1, 1, 3 * 2 * 4 * 5, dtype=tp.float64).reshape(*sizes).to(dtype)


def calls(f: Callable[[], object]) -> set[str]:
    with tp.dispatch.trace(primitives=True) as trace:
        f()
    return {event.op for event in trace}


@pytest.mark.parametrize("dtype", [tp.float64, tp.bfloat16, tp.float16])
def test_the_next_kernel_computes_what_was_declined(dtype: tp.dtype) -> None:
    q = heads(3, 2, 4, 5, dtype=dtype)
    out, logsumexp = getattr(tp.ops.aten, FLASH)(q, q, q)
    by_parts, _ = tp.ops.aten._attention_math(q, q, q, False, None, None)
    assert out.dtype == dtype and tp.equal(out, by_parts)
    assert logsumexp.shape == (3, 2, 4)


def test_as_a_whole_or_in_parts() -> None:
    flash = getattr(tp.ops.aten, FLASH)
    q = tp.linspace(-1, 1, 2 * 130 * 8).reshape(1, 2, 130, 8)
    whole, lse = flash(q, q, q)
    parts, by_parts = tp.ops.aten._attention_math(q, q, q, False, None, None)
    assert tp.allclose(whole, parts) and tp.allclose(lse, by_parts)
    for given, takes in ((q, True), (q[:, :, :9], False), (q.double(), False)):
        made = calls(lambda given=given: flash(given, given, given))  # type: ignore[misc]
        assert ("prim::attention.forward" in made, "_attention_math" in made) == (takes, not takes)


def test_a_declined_call_leaves_no_error_behind() -> None:
    q = heads(3, 2, 4, 5, dtype=tp.float64)
    for _ in range(3):
        getattr(tp.ops.aten, FLASH)(q, q, q)
    with pytest.raises(RuntimeError) as error:
        getattr(tp.ops.aten, FLASH)(q, q[:, :, :, :2], q)
    assert "declined" not in str(error.value)


def test_gradients_of_a_declined_call() -> None:
    q = heads(3, 2, 4, 5, dtype=tp.float64).requires_grad_()
    assert tp.autograd.gradcheck(lambda x: getattr(tp.ops.aten, FLASH)(x, x, x)[0], (q,))


def test_with_a_kernel_that_was_put_above_and_taken_away_again() -> None:
    q = heads(3, 2, 4, 5, dtype=tp.float64)
    before, _ = getattr(tp.ops.aten, FLASH)(q, q, q)
    lib = tp.library.Library("aten", "IMPL")
    lib.impl(FLASH, lambda *args, **named: (q.clone(), q.clone()), "CPU", allow_override=True)
    assert tp.equal(getattr(tp.ops.aten, FLASH)(q, q, q)[0], q)
    lib._destroy()
    assert tp.equal(getattr(tp.ops.aten, FLASH)(q, q, q)[0], before)
