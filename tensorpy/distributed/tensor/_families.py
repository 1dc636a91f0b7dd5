"""Which operator has which rule.

Pointwise operators, reductions and views are known by what their entries say: the tags `pointwise` and `reduction`, the
schema's aliases. For the others the family is named here. An operator that is in none has no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorpy.distributed.tensor import _index_rules as index
from tensorpy.distributed.tensor import _loss_rules as loss
from tensorpy.distributed.tensor import _network_rules as network
from tensorpy.distributed.tensor import _rules as rules
from tensorpy.distributed.tensor._rules import Call, Way, has_tag, is_view

Rule = Callable[[Call], Iterator[Way]]
VIEWS: Rule = rules._views


def _sizes(*names: str) -> tuple[str, ...]:
    """Operators and their gradients."""
    return tuple(each for name in names for each in (name, f"{name}_backward"))


_FAMILIES: dict[Rule, Sequence[str]] = {
    rules._elements: (*rules._COPIES, "contiguous", "alias_copy", "complex", "polar"),
    rules._new_like: tuple(rules._FILLS),
    rules._new: ("new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"),
    rules._views: ("_unsafe_view",),
    rules._back_to_whole: ("select_backward", "slice_backward"),
    rules._joined: ("cat", "stack"),
    rules._lines: (
        "_softmax", "_safe_softmax", "_softmax_backward_data", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin",
        "sort", "argsort", "topk", "flip", "_fft_c2c", "_fft_c2r", "_fft_r2c",
    ),
    rules._along: ("kthvalue", "median", "nanmedian", "mode"),
    rules._products: (*rules._PRODUCTS, *rules._ADDED),
    index.tables: ("embedding",),
    index.table_gradients: ("embedding_dense_backward",),
    index.bags: ("_embedding_bag", "_embedding_bag_dense_backward"),
    index.selections: ("index_select",),
    index.slots: ("index_add", "index_copy", "index_fill"),
    index.written_along: ("slice_scatter", "select_scatter"),
    index.gathers: ("gather",),
    index.scatters: ("scatter", "scatter_add", "scatter_reduce"),
    index.indexed: ("index",),
    index.index_gradients: ("_index_backward",),
    index.placed: ("index_put",),
    loss.log_softmax: ("_log_softmax", "_log_softmax_backward_data"),
    loss.losses: ("nll_loss_forward",),
    loss.loss_gradients: ("nll_loss_backward",),
    loss.mean_losses: (
        "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy",
    ),
    network.convolutions: ("convolution", "convolution_backward"),
    network.layer_norms: ("native_layer_norm", "native_layer_norm_backward"),
    network.group_norms: ("native_group_norm", "native_group_norm_backward"),
    network.batch_norms: (
        "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit", "_batch_norm_with_update",
        "_native_batch_norm_legit_no_training",
    ),
    network.attention: (
        "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
        "_scaled_dot_product_attention_backward",
    ),
    network.lines_of_samples: _sizes(
        "avg_pool1d", "adaptive_avg_pool1d", "max_pool1d_with_indices", "upsample_linear1d", "upsample_nearest1d",
        "_upsample_nearest_exact1d",
    ),
    network.planes: (
        *_sizes(
            "avg_pool2d", "_adaptive_avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "max_unpool2d",
            "upsample_bilinear2d", "_upsample_bilinear2d_aa", "upsample_bicubic2d", "_upsample_bicubic2d_aa",
            "upsample_nearest2d", "_upsample_nearest_exact2d", "max_pool2d_with_indices",
        ),
        "triu", "tril",
    ),
    network.volumes: _sizes(
        "avg_pool3d", "_adaptive_avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d", "max_unpool3d",
        "upsample_trilinear3d", "upsample_nearest3d", "_upsample_nearest_exact3d", "max_pool3d_with_indices",
    ),
    network.matrices: (
        "linalg_cholesky_ex", "linalg_lu_factor_ex", "linalg_lu", "linalg_lu_solve", "lu_unpack", "_lu_permutation",
        "linalg_matrix_exp", "linalg_qr", "linalg_inv_ex", "_linalg_svd", "_linalg_eigh", "linalg_eig", "_linalg_det",
        "_linalg_slogdet", "_linalg_solve_ex", "linalg_solve_triangular", "triangular_solve", "cholesky_solve",
        "cholesky_inverse", "geqrf", "linalg_householder_product", "linalg_pinv", "linalg_ldl_factor_ex",
        "linalg_ldl_solve", "_linalg_eigvals", "ormqr",
    ),
    network.samples: ("grid_sampler_2d", "grid_sampler_3d", "im2col", "col2im", "fractional_max_pool2d"),
    network.padded: (
        "constant_pad_nd", "_pad_circular", *_sizes("reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
        *_sizes("replication_pad1d", "replication_pad2d", "replication_pad3d"),
    ),
    network.repeated: ("repeat",),
    network.together: ("_assert_async", "_linalg_check_errors", "diag_embed", "diagonal_scatter", "diagonal_backward",
        "unfold_backward", "masked_scatter", "msort", "multinomial",
        "bernoulli", "isin",),
}  # fmt: skip
_BY_NAME = {name: rule for rule, names in _FAMILIES.items() for name in names}


def rule_of(func: Any, name: str) -> Rule | None:
    """The rule of an operator; None without one."""
    if func.namespace != "aten" or has_tag(func, "out") or "out" in func._overloadname.split("_"):
        return None
    if name in _BY_NAME:
        return _BY_NAME[name]
    if has_tag(func, "pointwise") and not has_tag(func, "data_dependent_output"):
        return rules._elements
    if has_tag(func, "reduction"):
        return rules._reductions
    return rules._views if is_view(func) or has_tag(func, "view_copy") else None
