"""What is asked of sparse tensors, by tensorpy and by PyTorch: expressions of a library `t`."""

from __future__ import annotations

from typing import Any

INDICES = [[0, 1, 1, 0], [2, 0, 2, 2]]


def tensors(t: Any, coalesced: bool = False, dtype: str = "float64") -> dict[str, Any]:
    """`v` has the values of `s`; `h` has a dense dimension; `d` is dense."""
    v = t.tensor([3.0, 4.0, 5.0, 0.5], dtype=getattr(t, dtype))
    s = t.sparse_coo_tensor(INDICES, v, (2, 3))
    h = t.sparse_coo_tensor([[2, 0]], t.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=v.dtype), (3, 2))
    d = t.linspace(-1.0, 2.0, 6, dtype=v.dtype).reshape(3, 2)
    other = t.sparse_coo_tensor([[1, 0], [1, 2]], t.tensor([7.0, 8.0], dtype=v.dtype), (2, 3))
    s = s.coalesce() if coalesced else s
    return {"t": t, "v": v, "s": s, "h": h, "d": d, "o": other, "c": s.to_sparse_csr()}


# what gives a sparse tensor, with the pattern and order of PyTorch's
SPARSE = (
    "s", "h", "c", "s.coalesce()", "h.coalesce()", "s * 2", "2 * s", "s / 2", "-s", "s.neg()", "s.t()", "s.T",
    "h * h", "s.transpose(0, 1)", "s.permute(1, 0)", "s + s", "s - s", "s + o", "o - s", "s * s", "s * d.t()",
    "d.t() * s", "s.sum(0)", "s.sum(1)", "h.sum(1)", "t.sparse.sum(s, 0)", "t.sparse.sum(h, 1)",
    "s.index_select(0, t.tensor([1, 0, 1]))", "s.index_select(1, t.tensor([2]))", "h.index_select(1, t.tensor([1]))",
    "s.select(0, 1)", "s[0]", "s[:, 2]", "s[-1]", "t.cat([s, o])", "t.cat([s, o], 1)", "t.cat([h, h], 1)",
    "t.stack([s, o])", "s.unsqueeze(0)", "s.unsqueeze(2)", "h.unsqueeze(1)", "s.clone()", "s.detach()", "s.float()",
    "s.to(t.float32)", "s.to('cpu')", "s.half()", "s.bool()", "s.abs()", "s.sqrt()", "s ** 2", "s.pow(3)", "s.sin()",
    "s.relu()", "t.log1p(s)", "t.expm1(s)", "t.tanh(s)", "s.isnan()", "s.sign()", "s.zero_()", "s.mul_(2)",
    "s.div_(2)", "s.add_(o)", "t.zeros_like(s)", "t.empty_like(s)", "s.new_zeros(2)", "s @ s.t()",
    "t.sparse.mm(s, o.t())", "t.sparse.softmax(s, 1)", "t.sparse.softmax(s, 0)", "t.sparse.log_softmax(s, 1)",
    "t.sparse.softmax(h, 1)", "s.sparse_mask(o.coalesce())", "d.t().sparse_mask(s.coalesce())", "d.to_sparse()",
    "d.to_sparse(1)", "d.to_sparse_csr()", "s.to_sparse_csr()", "c.to_sparse()", "c * 2", "-c", "c.clone()",
    "c.float()", "t.hspmm(s, d)", "t.smm(s, d)",
    "t.sparse.spdiags(t.arange(6.0).reshape(2, 3), t.tensor([0, 1]), (3, 3))", "t.sparse_coo_tensor((2, 3))",
    "t.sparse_coo_tensor([[0, 1]], [1.0, 2.0])", "t.sparse.FloatTensor(2, 3)",
    "t.sparse_coo_tensor([[0, 1]], t.ones(2, 3))", "t.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0])",
    "t.sparse_coo_tensor(t.tensor([[0, 1]]), t.tensor([1, 2]), (4,), dtype=t.float64)",
    "t.sparse.sampled_addmm(c, d.t()[:, :2], d[:2].t().contiguous().t() @ t.ones(2, 3, dtype=v.dtype))",
)  # fmt: skip
# of these the places and values are PyTorch's, but not their order
MERGED = ("s + o", "o - s", "s * s", "h * h", "h.sum(1)", "t.sparse.sum(h, 1)", "s.add_(o)")
# what gives something else
DENSE = (
    "t.sparse_csr_tensor(t.tensor([[0, 1, 2]] * 2), t.tensor([[1, 0], [0, 1]]), d[:2]).to_dense()",
    "(s * o).to_dense()", "s.to_dense()", "h.to_dense()", "c.to_dense()", "d.to_dense()", "s.sum()",
    "t.sparse.sum(s)", "t.sparse.sum(s, (0, 1))", "h.sum(0)", "t.sparse.sum(h, 0)", "s @ d", "s.mm(d)", "s.matmul(d)",
    "t.sparse.mm(s, d)", "t.mm(s, d)", "d @ s", "t.spmm(s, d)", "t.dsmm(s, d)", "s @ d[:, 0]", "t.mv(s, d[:, 1])",
    "t.addmm(d[:2], s, d)", "c @ d", "c @ d[:, 0]", "t.sparse.addmm(d[:2], s, d, beta=2, alpha=3)",
    "t.bmm(t.stack([s, o]), t.stack([d, d]))", "d.t() + s", "d.t() - s", "t.add(d.t(), s, alpha=2)",
    "d.t().clone().add_(s)", "s.norm()", "s.any()", "s[1, 2]", "s[0][1]", "s.coalesce().values()",
    "s.coalesce().indices()", "s._indices()", "s._values()", "s._nnz()", "s.coalesce()._nnz()", "c._nnz()",
    "c.values()", "c.crow_indices()", "c.col_indices()", "s.is_coalesced()", "s.coalesce().is_coalesced()",
    "s.sparse_dim()", "h.dense_dim()", "d.sparse_dim()", "d.dense_dim()", "s.is_sparse", "c.is_sparse",
    "c.is_sparse_csr", "d.is_sparse", "s.shape", "s.dim()", "s.numel()", "len(s)", "str(s.dtype)", "s.requires_grad",
    "t.is_tensor(s)", "s.is_contiguous()", "h.size(1)", "s.is_leaf",
)  # fmt: skip
# what is refused by both
ERRORS = (
    "s.numpy()", "s.tolist()", "s.indices()", "s.values()", "d.coalesce()", "d.indices()", "d.values()",
    "d.is_coalesced()", "c.indices()", "s.crow_indices()", "s + 1", "s + d.t()", "s / s", "s.exp()", "s.mean()",
    "s.max()", "s == s", "s.view(3, 2)", "t.ones_like(s)", "s.cumsum(0)", "s @ d.t()", "s + h",
    "t.cat([s, d])", "s.select(0, 5)", "t.argmax(s)", "s.transpose(0, 5)",
    "t.sparse_coo_tensor([0, 1], [1.0, 2.0], (2, 2))", "bool(s)", "s.item()", "d.sparse_mask(s)",
    "t.sparse_coo_tensor([[0, 1], [1, 1]], [1.0, 2.0, 3.0], (2, 2))",
    "t.sparse_coo_tensor([[0, 1], [1, 1]], [1.0, 2.0], (2,))",
    "t.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0], (2, 2), check_invariants=True)",
    "t.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (2,), check_invariants=True)",
    "t.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (2,), check_invariants=True)", "h.transpose(0, 1)", "s.copy_(d.t())",
)  # fmt: skip
# scalars of `v`, the values, and `d`, for gradients
SCALARS = (
    "(s @ d).pow(2).sum()", "t.sparse.mm(s, d).pow(2).sum()", "(s + s).to_dense().pow(2).sum()",
    "s.to_dense().pow(2).sum()", "(s * s).to_dense().sum()", "t.sparse.sum(s, 0).to_dense().pow(2).sum()",
    "s.coalesce().values().pow(2).sum()", "(d.t() @ s.t()).pow(2).sum()", "(-s / 2).to_dense().pow(3).sum()",
    "t.sparse.softmax(s, 1).to_dense().pow(2).sum()", "t.sparse.log_softmax(s, 1).to_dense().pow(2).sum()",
    "(s @ s.t()).to_dense().pow(2).sum()", "(s @ d[:, 0]).pow(2).sum()",
    "t.sparse.addmm(t.ones(2, 2, dtype=d.dtype), s, d).pow(2).sum()", "(d.t() + s).pow(2).sum()", "s.sum().pow(2)",
    "(s.to_sparse_csr() @ d).pow(2).sum()", "s.transpose(0, 1).to_dense().pow(2).sum()",
    "(s * 3).clone().to_dense().sum()",
)  # fmt: skip
