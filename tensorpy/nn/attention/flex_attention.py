"""Attention whose scores a function of the user's changes, or hides, by batch, head and position."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.nn import functional

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

MaskMod = Callable[..., Any]  # (batch, head, query's place, key's place) -> whether the query sees the key
ScoreMod = Callable[..., Any]  # (score, batch, head, query's place, key's place) -> score

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """Which numbers flex_attention() gives beside the result.

    Arguments:
        lse: the logarithms of the sums of the exponentials
        max_scores: the largest scores

    Example:
        >>> from tensorpy.nn.attention.flex_attention import AuxRequest, flex_attention
        >>> q = tp.ones(1, 1, 4, 8)
        >>> flex_attention(q, q, q, return_aux=AuxRequest(max_scores=True))[1].max_scores
        tensor([[[2.8284, 2.8284, 2.8284, 2.8284]]])
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The numbers that an AuxRequest asked for, each (B, H, Q) or None; of 16-bit floats they are float32.

    Arguments:
        lse: the logarithms of the sums of the exponentials
        max_scores: the largest scores

    Example:
        >>> from tensorpy.nn.attention.flex_attention import AuxRequest, flex_attention
        >>> q = tp.zeros(1, 1, 2, 8)
        >>> flex_attention(q, q, q, return_aux=AuxRequest(lse=True))[1].lse
        tensor([[[0.6931, 0.6931]]])
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(TypedDict, total=False):
    """Sizes of blocks, for kernels that have some: they are taken, and change nothing here.

    Example:
        >>> from tensorpy.nn.attention.flex_attention import FlexKernelOptions
        >>> FlexKernelOptions(BLOCK_M=64)
        {'BLOCK_M': 64}
    """

    BACKEND: str
    BLOCK_M: int
    BLOCK_N: int
    num_stages: int
    num_warps: int


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Hides nothing.

    Arguments:
        batch: the batch
        head: the head
        token_q: the query's place
        token_kv: the key's place

    Returns: a tensor of bool.

    Example:
        >>> from tensorpy.nn.attention.flex_attention import create_mask, noop_mask
        >>> create_mask(noop_mask, 1, 1, 1, 2)
        tensor([[[[True, True]]]])
    """
    return batch.new_ones((), dtype=tp.bool)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """Shows what one of the masks shows.

    Returns: a function of batch, head, query's and key's place.

    Example:
        >>> from tensorpy.nn.attention.flex_attention import or_masks, create_mask
        >>> both = or_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
        >>> create_mask(both, 1, 1, 3, 3)[0, 0]
        tensor([[True, True, True],
                [True, True, True],
                [True, True, True]])
    """
    _check_functions(mask_mods)

    def shown(b: Any, h: Any, q: Any, kv: Any) -> Any:
        result = b.new_zeros((), dtype=tp.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q, kv)
        return result

    return shown


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """Shows what all of the masks show.

    Returns: a function of batch, head, query's and key's place.

    Example:
        >>> from tensorpy.nn.attention.flex_attention import and_masks, create_mask
        >>> both = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
        >>> create_mask(both, 1, 1, 3, 3)[0, 0]
        tensor([[ True, False, False],
                [ True,  True, False],
                [False,  True,  True]])
    """
    _check_functions(mask_mods)

    def shown(b: Any, h: Any, q: Any, kv: Any) -> Any:
        result = b.new_ones((), dtype=tp.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q, kv)
        return result

    return shown


def _check_functions(mask_mods: tuple[MaskMod, ...]) -> None:
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def _over_places(function: Callable[..., Any], with_score: bool) -> Callable[..., Any]:
    """The function over whole axes: batch, head, queries, keys; the score, if there is one, has all four."""
    for axis in range(4):
        places = tuple(0 if argument == 3 - axis else None for argument in range(4))
        function = tp.vmap(function, in_dims=(0, *places) if with_score else places)
    return function


def create_mask(mod_fn: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """The mask as a tensor of truth values, (B, H, Q_LEN, KV_LEN); None stands for one batch, one head.

    Arguments:
        mod_fn: the function
        B: how many batches there are; None for any
        H: how many heads there are; None for any
        Q_LEN: how many queries there are
        KV_LEN: how many keys there are
        device: where the elements are: a device or its name; None takes the default

    Returns: a tensor of bool.

    Example:
        >>> from tensorpy.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, k: q >= k, 1, 1, 2, 2)
        tensor([[[[ True, False],
                  [ True,  True]]]])
    """
    places = [tp.arange(n, device=device) for n in (B or 1, H or 1, Q_LEN, KV_LEN)]
    mask: Tensor = _over_places(mod_fn, False)(*places)
    return mask.expand(*(place.numel() for place in places)).to(tp.bool)


class BlockMask:
    """Which queries see which keys: the function that says so, and its truth values.

    Arguments:
        mask: bool: which elements count
        mask_mod: a function (batch, head, query, key) that says whether a query sees a key
        block_size: how many queries and keys a block has
        seq_lengths: how many queries and keys there are

    The blocks of which a part is seen are `kv_num_blocks`, how many for each block of queries, and `kv_indices`, which
    ones, these first; those that are seen as a whole are `full_kv_num_blocks` and `full_kv_indices`. With `q` for `kv`
    they are those of each block of keys.

    Example:
        >>> from tensorpy.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256)
        >>> mask.shape, mask.kv_num_blocks.tolist(), mask.full_kv_num_blocks.tolist()
        ((1, 1, 256, 256), [[[1, 1]]], [[[0, 1]]])
    """

    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor
    full_kv_indices: Tensor
    q_num_blocks: Tensor
    q_indices: Tensor
    full_q_num_blocks: Tensor
    full_q_indices: Tensor
    mask: Tensor
    mask_mod: MaskMod
    seq_lengths: tuple[int, int]

    def __init__(self, mask: Tensor, mask_mod: MaskMod, block_size: tuple[int, int], seq_lengths: tuple[int, int]):
        self.mask, self.mask_mod, self.BLOCK_SIZE, self.seq_lengths = mask, mask_mod, block_size, seq_lengths

    @property
    def shape(self) -> tuple[int, ...]:
        """(batches, heads, queries, keys)"""
        return tuple(self.mask.shape)

    def numel(self) -> int:
        """How many pairs of a query and a key there are."""
        return self.mask.numel()

    def _blocks(self, whole: bool) -> Tensor:
        """Whether a block is seen as a whole, or at all: (batches, heads, blocks of queries, blocks of keys)."""
        rows, columns = self.BLOCK_SIZE
        b, h, q, kv = self.mask.shape
        padded = functional.pad(self.mask, (0, -kv % columns, 0, -q % rows))
        blocks = padded.view(b, h, padded.shape[2] // rows, rows, padded.shape[3] // columns, columns)
        return blocks.all(dim=5).all(dim=3) if whole else blocks.any(dim=5).any(dim=3)

    def to_dense(self) -> Tensor:
        """1 for each block of which something is seen: (batches, heads, blocks of queries, blocks of keys)."""
        return self._blocks(False).to(tp.int32)

    def _listed(self, whole: bool, by_query: bool) -> tuple[Tensor, Tensor]:
        """For each block of queries, or of keys, how many of the other kind it meets, and all of those, these first."""
        blocks = self._blocks(True) if whole else self._blocks(False) & ~self._blocks(True)
        met = (blocks if by_query else blocks.mT).to(tp.int32)
        return met.sum(-1).to(tp.int32), met.argsort(dim=-1, descending=True, stable=True).to(tp.int32)

    def sparsity(self) -> float:
        """The percentage of pairs of which no block is computed."""
        rows, columns = self.BLOCK_SIZE
        return 100.0 * (1.0 - int(self.to_dense().sum()) * rows * columns / self.numel())

    def to(self, device: Any) -> BlockMask:
        """The same mask on a device."""
        return BlockMask(self.mask.to(device), self.mask_mod, self.BLOCK_SIZE, self.seq_lengths)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _list_of(whole: bool, by_query: bool, place: int) -> property:
    return property(lambda mask: mask._listed(whole, by_query)[place])


for _whole in (False, True):
    for _by_query in (True, False):
        _name = f"{'full_' if _whole else ''}{'kv' if _by_query else 'q'}"
        setattr(BlockMask, f"{_name}_num_blocks", _list_of(_whole, _by_query, 0))
        setattr(BlockMask, f"{_name}_indices", _list_of(_whole, _by_query, 1))


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    **blocks: Any,
) -> BlockMask:
    """A mask for flex_attention of a function of batch, head, query's and key's place.

    Arguments:
        mask_mod: a function (batch, head, query, key) that says whether a query sees a key
        B: how many batches there are; None for any
        H: how many heads there are; None for any
        Q_LEN: how many queries there are
        KV_LEN: how many keys there are
        device: where the elements are: a device or its name; None takes the default
        BLOCK_SIZE: how many queries and keys a block has

    Returns: a BlockMask.

    Example:
        >>> from tensorpy.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256)
        >>> mask.shape
        (1, 1, 256, 256)
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), mask_mod, size, (Q_LEN, KV_LEN))


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None) -> None:
    if any(t.dim() != 4 for t in (query, key, value)):
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if block_mask is not None and block_mask.seq_lengths != (query.shape[2], key.shape[2]):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.shape[2]} and "
            f"kv_len={key.shape[2]}: create_block_mask() makes one of these lengths"
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Values (B, H, KV, Ev) weighted by the softmax of changed scores: queries (B, H, Q, E) with keys (B, H, KV, E).

    enable_gqa: there are fewer heads of keys and values, each serves several of queries. return_lse: the logarithms of
    the sums of the exponentials too, (B, H, Q). A query that sees no key gets zeros.

    Arguments:
        query: the queries, (B, H, Q, E)
        key: the keys, (B, H, KV, E)
        value: the values, (B, H, KV, Ev)
        score_mod: a function (score, batch, head, query, key) that gives another score
        block_mask: which blocks are computed
        scale: what scores are multiplied by; None takes 1 / sqrt(E)
        kernel_options: is taken, and changes nothing here
        return_aux: which numbers are given beside the result, in an AuxOutput

    Returns: a tensor (B, H, Q, Ev), with return_lse also the logarithms of the sums, (B, H, Q).

    Raises: NotImplementedError for tensors of other dimensions; ValueError for a block_mask of other lengths, and where
        both return_lse and return_aux ask.

    Example:
        >>> from tensorpy.nn.attention.flex_attention import flex_attention
        >>> q = tp.ones(1, 2, 4, 8)
        >>> flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score - (i - j).abs()).shape
        tensorpy.Size([1, 2, 4, 8])
    """
    _check(query, key, value, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError("return_lse and return_aux ask for the same: give return_aux alone")
    if enable_gqa:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    wide = tp.promote_types(query.dtype, tp.float32)
    scores = query.to(wide) @ key.to(wide).transpose(-2, -1)
    scores = scores * (1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        places = [tp.arange(n, device=query.device) for n in scores.shape]
        scores = _over_places(score_mod, True)(scores, *places)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.mask, -math.inf)
    weights = scores.softmax(-1) if block_mask is None else scores.softmax(-1).nan_to_num(0.0)
    result = (weights @ value.to(wide)).to(value.dtype)
    aux = _reduced(scores, return_aux or AuxRequest(lse=return_lse))
    return (result, aux) if return_aux is not None else (result, aux.lse) if return_lse else result


def _reduced(scores: Tensor, wanted: AuxRequest) -> AuxOutput:
    return AuxOutput(
        scores.logsumexp(-1) if wanted.lse else None, scores.detach().amax(-1) if wanted.max_scores else None
    )
