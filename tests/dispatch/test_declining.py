"""Kernels that take only some calls: the next in the table takes the others (Note [Declining] in dispatch/op.h)."""

from __future__ import annotations

import re
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
    assert found == declining() and len(found) >= 2


def heads(*sizes: int, dtype: tp.dtype) -> tp.Tensor:
    return tp.linspace(-1, 1, 3 * 2 * 4 * 5, dtype=tp.float64).reshape(*sizes).to(dtype)


@pytest.mark.parametrize("dtype", [tp.float64, tp.bfloat16, tp.float16])
def test_the_next_kernel_computes_what_was_declined(dtype: tp.dtype) -> None:
    q = heads(3, 2, 4, 5, dtype=dtype)
    out, logsumexp = getattr(tp.ops.aten, FLASH)(q, q, q)
    by_parts, _ = tp.ops.aten._attention_math(q, q, q, False, None, None)
    assert out.dtype == dtype and tp.equal(out, by_parts)
    assert logsumexp.shape == (3, 2, 4)


def test_one_that_is_taken_is_not_passed_on() -> None:
    q = heads(3, 2, 4, 5, dtype=tp.float32)
    with tp.dispatch.trace() as t:
        getattr(tp.ops.aten, FLASH)(q, q, q)
    assert "_attention_math" not in {e.op for e in t}
    with tp.dispatch.trace() as t:
        getattr(tp.ops.aten, FLASH)(q.double(), q.double(), q.double())
    assert "_attention_math" in {e.op for e in t}


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
