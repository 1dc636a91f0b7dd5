"""Draws by keys: the same key gives the same numbers, keys that are split from one give others."""

from __future__ import annotations

from typing import Any

import pytest

import tensorpy as tp

SEEDS = [(42, 0), (42, 1), (2**63 + 5, 2**40), (0, 0)]


def key(*pairs: tuple[int, int], device: str = "cpu") -> tp.Tensor:
    made = tp.tensor([list(pair) for pair in pairs], dtype=tp.uint64, device=device)
    return made[0] if len(pairs) == 1 else made


def draws(device: str) -> list[Any]:
    return [tp._philox_uniform_, tp._philox_normal_]


def test_a_split_is_what_is_folded_in(device: str) -> None:
    keys = key(*SEEDS, device=device)
    for one in (keys, keys[0], keys.reshape(2, 2, 2)):
        split = tp._philox_key_split(one, 5)
        assert split.shape == (5, *one.shape) and split.dtype is tp.uint64 and split.device == one.device
        for i in range(5):
            assert split[i].tolist() == tp._philox_key_fold_in(one, i).tolist()
    flat = {tuple(pair) for pair in tp._philox_key_split(keys, 1000).reshape(-1, 2).tolist()}
    assert len(flat) == 4000
    assert tp._philox_key_split(keys.cpu(), 2).tolist() == tp._philox_key_split(keys, 2).tolist()
    assert tp._philox_key_split(key((1, 0)).to("meta"), 3).shape == (3, 2)


def test_a_key_says_the_numbers(device: str) -> None:
    for draw in draws(device):
        x, y = (draw(tp.empty(1000, device=device), key((42, 0), device=device)) for _ in range(2))
        assert x.tolist() == y.tolist()
        here = draw(tp.empty(1000), key((42, 0)))
        assert tp.allclose(x.cpu(), here, atol=1e-6), "on every device"
        assert all(draw(tp.empty(1000), key(pair)).tolist() != here.tolist() for pair in SEEDS[1:])
        turned = tp.empty(40, 25, device=device).t()
        assert draw(turned, key((42, 0), device=device)).flatten().tolist() == x.tolist(), "in row-major order"
    uniform = tp._philox_uniform_(tp.empty(100_000), key((7, 3)), -2.0, 6.0)
    assert uniform.min() >= -2 and uniform.max() < 6
    assert abs(uniform.mean() - 2) < 0.05 and abs(uniform.std() - 8 / 12**0.5) < 0.05
    normal = tp._philox_normal_(tp.empty(100_000, dtype=tp.float64), key((7, 3)), 5.0, 2.0)
    assert abs(normal.mean() - 5) < 0.05 and abs(normal.std() - 2) < 0.05
    generator = tp.Generator().manual_seed(7)
    before = generator.get_state()
    assert generator.get_state().tolist() == before.tolist(), "no generator is drawn from"


def test_a_batch_of_keys_draws_a_part_each(device: str) -> None:
    keys = key(*SEEDS, device=device)
    for draw in draws(device):
        whole = draw(tp.empty(4, 6, device=device), keys.reshape(4, 1, 2))
        for row, one in zip(whole, keys, strict=True):
            assert row.tolist() == draw(tp.empty(6, device=device), one).tolist()
        columns = draw(tp.empty(6, 4, device=device), keys.reshape(1, 4, 2))
        assert columns.t().tolist() == whole.tolist()
        each = draw(tp.empty(2, 2, device=device), keys.reshape(2, 2, 2))
        assert each.flatten().tolist() == whole[:, 0].tolist()


def test_variants_and_dtypes(device: str) -> None:
    one = key((42, 0), device=device)
    for name in ("_philox_uniform", "_philox_normal"):
        inplace, functional = getattr(tp, f"{name}_"), getattr(tp.ops.aten, name)
        for dtype in (tp.float16, tp.bfloat16, tp.float32):
            x = tp.zeros(5, dtype=dtype, device=device)
            made = functional(x, one)
            assert not x.any() and made.dtype is dtype
            out = tp.empty(0, dtype=dtype, device=device)
            assert functional.out(x, one, out=out) is out
            version = x._version
            assert inplace(x, one) is x and x._version == version + 1
            assert x.tolist() == made.tolist() == out.tolist()


def test_masks_of_a_seed(device: str) -> None:
    mask = tp._fill_mem_eff_dropout_mask_(tp.empty(20, device=device), 0.3, 42, 1)
    assert mask.tolist() == tp._philox_uniform_(tp.empty(20, device=device), key((42, 1), device=device)).tolist()


def refused(t: Any) -> list[Any]:
    """What a library's Meta device says of arguments that do not fit; PyTorch has no kernel for the CPU."""
    said = list[Any]()
    one = t.zeros(2, dtype=t.uint64, device="meta")
    x, ints = t.zeros(3, device="meta"), t.zeros(3, dtype=t.int64, device="meta")
    for call in (
        lambda: t._philox_key_split(one, 0), lambda: t._philox_key_split(one[:1], 2),
        lambda: t._philox_key_split(ints[:2], 2), lambda: t._philox_key_fold_in(one.reshape(2, 1), 1),
        lambda: t._philox_uniform_(ints, one), lambda: t._philox_normal_(x, ints[:2]),
        lambda: t._philox_normal_(x, one[:1]), lambda: t._philox_normal_(x, t.stack([t.stack([one])])),
        lambda: t._philox_normal_(x, t.stack([one, one])),
    ):  # fmt: skip
        with pytest.raises(RuntimeError) as caught:
            call()
        said.append(str(caught.value).partition(" shape ")[0].partition(", got")[0])
    return said


def test_refusals_are_torchs() -> None:
    assert refused(tp) == refused(pytest.importorskip("torch"))
