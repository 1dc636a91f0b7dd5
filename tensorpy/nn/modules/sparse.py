"""Tables of rows that are looked up by index."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.nn import functional as F
from tensorpy.nn import init
from tensorpy.nn.modules.module import Module
from tensorpy.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    weight: Tensor
    padding_idx: int | None

    def _make_weight(self, rows: int, columns: int, given: Tensor | None, trained: bool, how: dict[str, Any]) -> None:
        if given is None:
            self.weight = Parameter(_C.empty((rows, columns), **how), requires_grad=trained)
            self.reset_parameters()
            return
        if list(given.shape) != [rows, columns]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(given, requires_grad=trained)

    def _checked_padding(self, padding_idx: int | None, rows: int, name: str = "Padding_idx") -> int | None:
        if padding_idx is None:
            return None
        if not -rows <= padding_idx < rows:
            raise AssertionError(f"{name} must be within num_embeddings")
        return padding_idx % rows

    def reset_parameters(self) -> None:
        """Draws the rows anew; the padding's row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """Rows of a weight by index.

    Input of int64 or int32 of any shape (*), output (*, embedding_dim).

    Arguments:
        num_embeddings: how many rows the table has
        embedding_dim: how many features each row has
        padding_idx: a row that stays as it is, zeros at first
        max_norm: the largest norm of a row; longer ones are shortened in place
        norm_type: which norm: 2 the Euclidean one
        scale_grad_by_freq: whether gradients are divided by how often an index occurs
        sparse: whether the gradient is sparse
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Raises: AssertionError for a padding_idx out of range.

    Example:
        >>> nn.Embedding(10, 3)(tp.tensor([[1, 2], [4, 9]])).shape
        tensorpy.Size([2, 2, 3])
    """

    embedding_dim: int
    max_norm: float | None
    norm_type: float
    num_embeddings: int
    padding_idx: Any
    scale_grad_by_freq: bool
    sparse: bool

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = self._checked_padding(padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        how = {"device": device, "dtype": dtype}
        self._make_weight(num_embeddings, embedding_dim, _weight, not _freeze, how)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return f"{text}, sparse=True" if self.sparse is not False else text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding of the given rows, which are not trained unless freeze=False."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows.

    Input of int64 or int32, (B, N), or (N,) with offsets (B,); output (B, embedding_dim).

    Arguments:
        num_embeddings: how many rows the table has
        embedding_dim: how many features each row has
        max_norm: the largest norm of a row; longer ones are shortened in place
        norm_type: which norm: 2 the Euclidean one
        scale_grad_by_freq: whether gradients are divided by how often an index occurs
        mode: 'sum', 'mean' or 'max'
        sparse: whether the gradient is sparse
        include_last_offset: whether offsets ends with the number of indices
        padding_idx: a row that stays as it is, zeros at first
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> nn.EmbeddingBag(10, 3)(tp.tensor([[1, 2], [4, 9]])).shape
        tensorpy.Size([2, 3])
    """

    embedding_dim: int
    include_last_offset: bool
    max_norm: float | None
    mode: str
    norm_type: float
    num_embeddings: int
    padding_idx: Any
    sparse: bool

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = self._checked_padding(padding_idx, num_embeddings, "padding_idx")
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self._make_weight(num_embeddings, embedding_dim, _weight, True, {"device": device, "dtype": dtype})

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag of the given rows, which are not trained unless freeze=False."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made
