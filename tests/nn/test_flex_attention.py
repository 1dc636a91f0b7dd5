"""flex_attention and its masks, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from tensorpy.nn.attention import flex_attention as flex
from tensorpy.utils._python_dispatch import TorchDispatchMode

LISTS = [f"{full}{of}_{what}" for full in ("", "full_") for of in ("kv", "q") for what in ("num_blocks", "indices")]
MASKS: dict[str, tuple[Any, ...]] = {
    "causal": (lambda b, h, i, j: i >= j, 1, 1, 256, 256, 128),
    "a window": (lambda b, h, i, j: (i >= j) & (i - j < 40), 2, 3, 300, 260, (64, 32)),
    "by batch and head": (lambda b, h, i, j: (i + h) % 2 == b, 2, 2, 16, 32, 16),
    "nothing": (lambda b, h, i, j: i < 0, None, None, 100, 64, 32),
}


@pytest.mark.parametrize("name", MASKS)
def test_blocks_are_pytorchs(name: str) -> None:
    pytest.importorskip("torch")
    from torch.nn.attention import flex_attention as theirs

    *arguments, size = MASKS[name]
    ours, others = (m.create_block_mask(*arguments, device="cpu", BLOCK_SIZE=size) for m in (flex, theirs))
    for listed in [*LISTS, "to_dense"]:
        found, wanted = (getattr(mask, listed) for mask in (ours, others))
        if listed == "to_dense":
            found, wanted = found(), wanted()
        assert found.tolist() == wanted.tolist() and str(found.dtype)[9:] == str(wanted.dtype)[6:], listed
    assert ours.shape == others.shape and ours.sparsity() == pytest.approx(others.sparsity(), rel=1e-5)


@pytest.mark.parametrize("name", MASKS)
def test_attention_is_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    from torch.nn.attention import flex_attention as theirs

    *arguments, size = MASKS[name]
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((2, arguments[2] or 2, n, 8), dtype=np.float32) for n in arguments[3:])
    results = []
    for library, m in ((tp, flex), (torch, theirs)):
        mask = m.create_block_mask(*arguments, device="cpu", BLOCK_SIZE=size)
        query, key = library.from_numpy(q), library.from_numpy(k)
        results.append(m.flex_attention(query, key, key, score_mod=lambda s, b, h, i, j: s + h, block_mask=mask))
    np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=1e-4, atol=1e-5)


def test_a_mask_of_other_lengths_is_refused() -> None:
    mask = flex.create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 64, 64, BLOCK_SIZE=16)
    q = tp.ones(1, 1, 64, 8)
    for query, key in ((q[:, :, :32], q), (q, q[:, :, :32]), (tp.cat([q, q], 2), q)):
        with pytest.raises(ValueError, match=r"block_mask was created for block_mask\.shape=\(1, 1, 64, 64\) but got"):
            flex.flex_attention(query, key, key, block_mask=mask)
    with pytest.raises(NotImplementedError, match="must be 4D tensors"):
        flex.flex_attention(q[0], q[0], q[0])


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16, tp.float32, tp.float64])
def test_numbers_beside_the_result(dtype: tp.dtype) -> None:
    q, k, v = (tp.randn(1, 2, 8, 4, generator=tp.Generator().manual_seed(n)).to(dtype) for n in range(3))
    scores = q.double() @ k.double().transpose(-2, -1) / 2
    near = 1e-12 if dtype is tp.float64 else 1e-5
    result, aux = flex.flex_attention(q, k, v, return_aux=flex.AuxRequest(lse=True, max_scores=True))
    assert aux.lse is not None and aux.max_scores is not None
    assert aux.lse.dtype == aux.max_scores.dtype == (tp.float64 if dtype is tp.float64 else tp.float32)
    tp.testing.assert_close(aux.lse.double(), scores.logsumexp(-1), rtol=near, atol=near)
    tp.testing.assert_close(aux.max_scores.double(), scores.amax(-1), rtol=near, atol=near)
    tp.testing.assert_close(result, (scores.softmax(-1) @ v.double()).to(dtype))
    assert flex.flex_attention(q, k, v, return_lse=True)[1].equal(aux.lse)
    assert flex.flex_attention(q, k, v, return_aux=flex.AuxRequest())[1] == (None, None)
    with pytest.raises(ValueError, match="return_aux"):
        flex.flex_attention(q, k, v, return_lse=True, return_aux=flex.AuxRequest())


def test_masks_look_up_by_numbers_that_nobody_reads() -> None:
    documents = tp.tensor([0, 0, 1, 1, 1])
    seen = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with TransformGetItemToIndex():
        same = tp.vmap(tp.vmap(lambda i, j: documents[i] == documents[j], (None, 0)), (0, None))
        assert same(tp.arange(5), tp.arange(5)).equal(documents[:, None] == documents)
        with Seen():
            assert documents[tp.tensor(3)].item() == 1
        assert documents[[0, 2]].tolist() == [0, 1] and documents[1:, None].shape == (4, 1)
    assert "aten.index.Tensor" in seen and "aten.select.int" not in seen
