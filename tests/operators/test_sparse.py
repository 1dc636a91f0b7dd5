"""Sparse tensors: PyTorch's values, patterns, printed forms and classes of errors; gradients through values; files;
optimizers. Values against dense tensors and SciPy's where PyTorch is not installed."""

from __future__ import annotations

import copy
import io
import pickle
import re
from typing import Any

import numpy as np
import pytest
from sparse_programs import DENSE, ERRORS, INDICES, MERGED, SCALARS, SPARSE, tensors

import tensorpy as tp


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def value_of(expression: str, library: Any, coalesced: bool = False) -> Any:
    return eval(expression, tensors(library, coalesced))


def close(ours: Any, theirs: Any) -> None:
    if not isinstance(ours, tp.Tensor):
        assert str(ours).replace("tensorpy", "torch") == str(theirs)
        return
    assert str(ours.dtype) == str(theirs.dtype).replace("torch", "tensorpy") and tuple(ours.shape) == tuple(
        theirs.shape
    )
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6, atol=1e-7)


def squeezed(text: str) -> str:
    """Without the breaks of lines, which fall where a longer name needs them."""
    return re.sub(r"\s+", " ", text)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("coalesced", [False, True])
@pytest.mark.parametrize("expression", SPARSE)
def test_sparse_results_are_pytorchs(expression: str, coalesced: bool, torch: Any) -> None:
    ours, theirs = value_of(expression, tp, coalesced), value_of(expression, torch, coalesced)
    assert str(ours.layout) == str(theirs.layout).replace("torch", "tensorpy")
    if expression in MERGED:
        ours, theirs = ours.coalesce(), theirs.coalesce()
    assert (ours.sparse_dim(), ours.dense_dim(), ours._nnz()) == (
        theirs.sparse_dim(),
        theirs.dense_dim(),
        theirs._nnz(),
    )
    close(ours.to_dense(), theirs.to_dense())
    if ours.is_sparse:
        assert ours._indices().tolist() == theirs._indices().tolist()
        close(ours._values(), theirs._values())
        assert ours.is_coalesced() <= theirs.is_coalesced() or ours.coalesce()._nnz() == ours._nnz()
    if "softmax" not in expression:
        assert squeezed(repr(ours)) == squeezed(repr(theirs).replace("torch", "tensorpy"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("coalesced", [False, True])
@pytest.mark.parametrize("expression", DENSE)
def test_dense_results_are_pytorchs(expression: str, coalesced: bool, torch: Any) -> None:
    close(value_of(expression, tp, coalesced), value_of(expression, torch, coalesced))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", ERRORS)
def test_what_is_refused(expression: str, torch: Any) -> None:
    with pytest.raises(Exception) as theirs:
        value_of(expression, torch)
    with pytest.raises((RuntimeError, TypeError, IndexError)) as ours:
        value_of(expression, tp)
    assert issubclass(ours.type, (theirs.type, NotImplementedError)) or theirs.type is NotImplementedError


def test_an_operator_without_a_kernel_is_named() -> None:
    s = tensors(tp)["s"]
    with pytest.raises(NotImplementedError, match="exp: there is no kernel for tensors of the layout sparse_coo"):
        s.exp()
    with pytest.raises(NotImplementedError, match="mean: there is no kernel for tensors of the layout sparse_csr"):
        s.to_sparse_csr().mean()


@pytest.mark.parametrize("expression", [e for e in DENSE if "bmm" not in e and ("@" in e or "mm(" in e or "+" in e)])
def test_products_and_sums_are_those_of_dense_tensors(expression: str) -> None:
    names = tensors(tp)
    dense = {k: v.to_dense() if isinstance(v, tp.Tensor) else v for k, v in names.items()}
    plain = re.sub(r"t\.(sparse\.mm|spmm|dsmm)", "t.mm", expression).replace("t.sparse.addmm", "t.addmm")
    np.testing.assert_allclose(eval(expression, names).numpy(), eval(plain, dense).numpy(), rtol=1e-12)


def test_products_are_scipys() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    generator = np.random.default_rng(0)
    a, b = (sparse.random(40, 40, 0.1, format="coo", random_state=generator) for _ in range(2))
    ours = [tp.sparse_coo_tensor(np.stack([m.row, m.col]).tolist(), tp.tensor(m.data), m.shape) for m in (a, b)]
    np.testing.assert_allclose((ours[0] @ ours[1]).to_dense().numpy(), (a @ b).toarray(), rtol=1e-12)
    np.testing.assert_allclose((ours[0] * ours[1]).to_dense().numpy(), a.multiply(b).toarray(), rtol=1e-12)
    np.testing.assert_allclose((ours[0] + ours[1]).to_dense().numpy(), (a + b).toarray(), rtol=1e-12)
    csr, rows = a.tocsr(), ours[0].to_sparse_csr()
    assert rows.crow_indices().tolist() == csr.indptr.tolist() and rows.col_indices().tolist() == csr.indices.tolist()


# ---- compressed layouts ----

COMPRESSED = ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def matrix(library: Any) -> Any:
    rows = [[0, 1, 2, 0], [0, 0, 0, 0], [3, 0, 0, 4], [0, 5, 0, 0]]
    return library.tensor(rows, dtype=library.float64)


@pytest.mark.parametrize("other", ["strided", "sparse_coo", *COMPRESSED])
@pytest.mark.parametrize("layout", COMPRESSED)
def test_layouts_into_each_other_are_pytorchs(layout: str, other: str, torch: Any) -> None:
    def converted(library: Any) -> Any:
        first, second = getattr(library, other), getattr(library, layout)
        block = {"blocksize": (2, 2)}
        made = matrix(library)
        if other != "strided":
            made = made.to_sparse(layout=first, **(block if "_bs" in other else {}))
        return made.to_sparse(layout=second, **(block if "_bs" in layout else {}))

    ours = converted(tp)
    assert ours.layout is getattr(tp, layout) and ours.to_dense().equal(matrix(tp))
    try:
        theirs = converted(torch)
    except (RuntimeError, NotImplementedError):
        return  # of some pairs only
    assert squeezed(repr(ours)) == squeezed(repr(theirs).replace("torch", "tensorpy"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", COMPRESSED)
def test_compressed_tensors_are_made_as_pytorchs(layout: str, torch: Any) -> None:
    values = [[[1.0, 2.0]], [[3.0, 4.0]]] if "_bs" in layout else [1.0, 2.0]
    for size in (None, (4, 6)) if layout == "sparse_csr" else (None,):
        found = []
        for library in (tp, torch):
            borders = [0, 1, 2] if size is None else [0, 1, 2, 2, 2]
            sizes = () if size is None else (size,)
            made = getattr(library, f"{layout}_tensor")(borders, [1, 0], values, *sizes)
            found.append(squeezed(repr(made)).replace("torch", "tensorpy"))
            by_layout = library.sparse_compressed_tensor(
                *(library.tensor(p) for p in ([0, 1, 2], [1, 0], values)), layout=getattr(library, layout)
            )
            found.append(squeezed(repr(by_layout)).replace("torch", "tensorpy"))
        assert found[:2] == found[2:]


@pytest.mark.parametrize("layout", COMPRESSED)
def test_parts_of_compressed_tensors_are_checked(layout: str) -> None:
    make = getattr(tp, f"{layout}_tensor")
    values = tp.ones(2, 1, 1) if "_bs" in layout else tp.ones(2)
    for first, second, size in (
        ([0, 3], [0, 1], None), ([0, 2, 1], [0, 1], None), ([1, 2], [0, 1], None), ([0, 1, 2], [0, -1], None),
        ([0, 1, 2], [0, 5], (2, 2)), ([0, 1, 2], [0, 1], (3, 3)), ([0, 1, 2], [[0, 1]], None), ([0], [0, 1], None),
        ([0, 1, 2], [0], None), ([0, 1, 2], [0, 1], (2, 2, 2)), ([0.0, 1.0, 2.0], [0, 1], None),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            make(tp.tensor(first), tp.tensor(second), values, size)
    with pytest.raises(RuntimeError, match="blocksize"):
        matrix(tp).to_sparse(layout=tp.sparse_bsr)
    with pytest.raises(RuntimeError, match="divisible"):
        matrix(tp).to_sparse_bsr((3, 2))


@pytest.mark.parametrize("layout", COMPRESSED)
def test_compressed_tensors_compute(layout: str) -> None:
    dense = matrix(tp)
    made = dense.to_sparse(layout=getattr(tp, layout), blocksize=(2, 2) if "_bs" in layout else None)
    other = tp.linspace(-1.0, 1.0, 8, dtype=tp.float64).reshape(4, 2)
    np.testing.assert_allclose((made @ other).numpy(), (dense @ other).numpy())
    for function in (lambda t: t * 3, lambda t: -t, tp.sin, lambda t: t.to(tp.float32), lambda t: t.clone()):
        assert function(made).layout is made.layout
        np.testing.assert_allclose(function(made).to_dense().numpy(), function(dense).numpy())
    weight = made.detach().clone().requires_grad_()
    (weight @ other).pow(2).sum().backward()
    assert weight.grad.layout is made.layout
    again = pickle.loads(pickle.dumps(made))
    assert repr(again) == repr(made)
    file = io.BytesIO()
    tp.save(made, file)
    file.seek(0)
    assert repr(tp.load(file)) == repr(made)


# ---- what a tensor without memory refuses, and indices that nobody trusts ----


@pytest.mark.parametrize("layout", [tp.sparse_coo, tp.sparse_csr])
def test_memory_is_not_shown(layout: Any) -> None:
    s = tensors(tp)["s"].to_sparse(layout=layout)
    for call in (lambda: s.stride(), lambda: s.data_ptr(), lambda: s.untyped_storage(), lambda: s.tolist()):
        with pytest.raises(RuntimeError):
            call()
    for call in (lambda: s.numpy(), lambda: np.asarray(s)):
        with pytest.raises(TypeError, match="to_dense"):
            call()
    with pytest.raises(BufferError, match="layout"):
        s.__dlpack__()
    with pytest.raises(BufferError):
        memoryview(s)
    with pytest.raises(NotImplementedError, match="not set by index"):
        s[0, 1] = 1.0
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        s.data = tp.ones(2, 3)
    with pytest.raises(NotImplementedError, match="layout"):
        s.set_(tp.ones(2, dtype=s.dtype))


CALLS = {
    "to_dense": lambda s: s.to_dense(),
    "coalesce": lambda s: s.coalesce().to_dense(),
    "mm": lambda s: s @ tp.ones(3, 2),
    "sum": lambda s: tp.sparse.sum(s, 0).to_dense(),
    "add": lambda s: tp.ones(2, 3) + s,
    "mul": lambda s: (s * s).to_dense(),
    "mul with dense": lambda s: (s * tp.ones(2, 3)).to_dense(),
    "select": lambda s: s[1].to_dense(),
    "csr": lambda s: s.to_sparse_csr(),
    "index_select": lambda s: s.index_select(0, tp.tensor([1, 0])).to_dense(),
    "softmax": lambda s: tp.sparse.softmax(s, 1),
    "cat": lambda s: tp.cat([s, s]).to_dense(),
    "mask": lambda s: tp.ones(2, 3).sparse_mask(s),
    "t": lambda s: s.t().to_dense(),
    "spgemm": lambda s: (s @ s.t()).to_dense(),
    "hspmm": lambda s: tp.hspmm(s, tp.ones(3, 2)),
    "repr": repr,
}


@pytest.mark.parametrize("wild", [99, -1, -(2**62), 2**62])
@pytest.mark.parametrize("name", CALLS)
def test_indices_that_were_written_later_are_not_followed(name: str, wild: int) -> None:
    """A result or an error, and no access out of bounds, which the sanitizers would see."""
    for coalesced in (False, True):
        s = tp.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], tp.ones(3), (2, 3), is_coalesced=coalesced)
        s._indices()[0, 1] = wild
        try:
            CALLS[name](s)
        except (IndexError, RuntimeError):
            pass
        c = tp.sparse_csr_tensor(tp.tensor([0, 1, 3]), tp.tensor([2, 0, 2]), tp.ones(3), (2, 3))
        (c.crow_indices() if coalesced else c.col_indices())[1] = wild % 2**20 if coalesced else wild
        if name in ("to_dense", "mm", "sum", "add", "t", "spgemm", "repr", "mul with dense"):
            try:
                CALLS[name](c)
            except (IndexError, RuntimeError):
                pass


def test_parts_that_were_resized_are_no_way_out() -> None:
    for change in (
        lambda s: s._values().resize_(1),
        lambda s: s._indices().resize_(1, 3),
        lambda s: s._indices().resize_(2, 1),
    ):
        for call in CALLS.values():
            s = tp.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], tp.ones(3), (2, 3))
            change(s)
            try:
                call(s)
            except (IndexError, RuntimeError, ValueError):
                pass


def test_aliases_see_what_is_written() -> None:
    s = tensors(tp)["s"].coalesce()
    other = s.detach()
    s.mul_(2)
    assert other.to_dense().equal(s.to_dense()) and s._version == other._version == 1
    s.zero_()
    assert other._nnz() == 0


# ---- gradients ----


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", SCALARS)
def test_gradients_of_values_are_pytorchs(expression: str, torch: Any) -> None:
    found = []
    for library in (tp, torch):
        names = tensors(library)
        v, d = names["v"].requires_grad_(), names["d"].clone().requires_grad_()
        s = library.sparse_coo_tensor(INDICES, v, (2, 3))
        eval(expression, {"t": library, "s": s, "d": d}).backward()
        found.append((v.grad, d.grad))
    for ours, theirs in zip(*found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            close(ours.to_dense(), theirs.to_dense())


@pytest.mark.parametrize("expression", SCALARS)
def test_gradients_of_values_are_right(expression: str) -> None:
    names = tensors(tp)

    def of_values(v: Any, d: Any) -> Any:
        return eval(expression, {"t": tp, "s": tp.sparse_coo_tensor(INDICES, v, (2, 3)), "d": d})

    v, d = names["v"].requires_grad_(), names["d"].clone().requires_grad_()
    assert tp.autograd.gradcheck(of_values, (v, d))
    assert tp.autograd.gradgradcheck(of_values, (v, d))


@pytest.mark.parametrize("layout", [tp.sparse_coo, tp.sparse_csr])
def test_a_sparse_leaf_has_a_sparse_gradient(layout: Any) -> None:
    s = tensors(tp)["s"].coalesce().to_sparse(layout=layout).requires_grad_()
    d = tp.linspace(-1.0, 2.0, 6, dtype=tp.float64).reshape(3, 2)
    for times in (1, 2):
        (s @ d).sum().backward()
        assert s.grad.layout is layout and s.grad._nnz() == s._nnz()
        expected = d.sum(1).expand(2, 3) * (s.detach().to_dense() != 0) * times
        np.testing.assert_allclose(s.grad.to_dense().numpy(), expected.numpy())
    with pytest.raises(RuntimeError, match="in place"):
        s.mul_(2)
    with tp.no_grad():
        s.mul_(2)
    assert s._values().tolist() == [7.0, 8.0, 10.0]
    dense = tp.eye(3, dtype=tp.float64).requires_grad_()
    (dense.to_sparse() * 3).to_dense().pow(2).sum().backward()
    assert dense.grad.tolist() == (tp.eye(3) * 18).tolist()


# ---- files and copies ----


@pytest.mark.parametrize("name", ["s", "h", "c"])
@pytest.mark.parametrize("how", ["pickle", "save", "deepcopy"])
def test_copies(how: str, name: str) -> None:
    made = tensors(tp)[name]
    if how == "save":
        file = io.BytesIO()
        tp.save({"x": made}, file)
        file.seek(0)
        other = tp.load(file)["x"]  # weights_only
    else:
        other = pickle.loads(pickle.dumps(made)) if how == "pickle" else copy.deepcopy(made)
    assert repr(other) == repr(made) and other._values().data_ptr() != made._values().data_ptr()
    if other.is_sparse:
        assert other.is_coalesced() == made.is_coalesced()


@pytest.mark.parametrize("name", ["s", "h", "c"])
def test_files_go_both_ways(name: str, torch: Any) -> None:
    for save, load in ((tp, torch), (torch, tp)):
        file = io.BytesIO()
        save.save(tensors(save)[name], file)
        file.seek(0)
        read = load.load(file)
        assert squeezed(repr(read).replace("torch", "tensorpy")) == squeezed(repr(tensors(tp)[name]))


def test_a_file_of_anybody_is_checked() -> None:
    from tensorpy.serialization.names import rebuild_sparse_tensor

    indices, values = tp.tensor([[0, 9]]), tp.ones(2)
    for parts in (
        (indices, values, (3,), False), (tp.tensor([[0, -1]]), values, (3,), False), (indices, "x", (3,), False),
        ("x",), (tp.tensor([[1, 0]]), values, (3,), True), (indices, values, "12", False),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, TypeError)):
            rebuild_sparse_tensor(tp.sparse_coo, parts)
    for crow in ([0, 3], [0, 1, 1], [0, 2, 1, 2], [1, 2]):
        with pytest.raises(RuntimeError):
            rebuild_sparse_tensor(tp.sparse_csr, (tp.tensor(crow), tp.tensor([0, 1]), values, (len(crow) - 1, 2)))


# ---- gradients of embeddings, optimizers ----


@pytest.mark.parametrize("padding_idx", [None, 1])
def test_the_gradient_of_an_embedding(padding_idx: int | None) -> None:
    weights = []
    for sparse in (True, False):
        tp.manual_seed(0)
        layer = tp.nn.Embedding(5, 3, padding_idx=padding_idx, sparse=sparse)
        for _ in range(2):
            (layer(tp.tensor([[1, 2], [2, 4]])) ** 2).sum().backward()
        assert layer.weight.grad.is_sparse == sparse
        weights.append(layer.weight.grad.to_dense())
    np.testing.assert_allclose(weights[0].numpy(), weights[1].numpy(), rtol=1e-6)


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adagrad", {"lr": 0.1}), ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}), ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "maximize": True}),
]  # fmt: skip


@pytest.mark.parametrize("name, options", OPTIMIZERS)
def test_optimizers_take_sparse_gradients(name: str, options: Any, torch: Any) -> None:
    moved = []
    for library in (tp, torch):
        weight = library.linspace(-1.0, 1.0, 12, dtype=library.float64).reshape(4, 3).requires_grad_()
        optimizer = getattr(library.optim, name)([weight], **options)
        for rows in ([0, 2, 2], [1, 2], [3]):
            optimizer.zero_grad()
            looked = library.nn.functional.embedding(library.tensor(rows), weight, sparse=True)
            (looked**2).sum().backward()
            optimizer.step()
        moved.append(weight.detach().numpy())
    np.testing.assert_allclose(*moved, rtol=1e-9, atol=1e-12)


def test_other_optimizers_refuse_them() -> None:
    weight = tp.ones(3, 2, requires_grad=True)
    tp.nn.functional.embedding(tp.tensor([1]), weight, sparse=True).sum().backward()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        tp.optim.Adam([weight]).step()
    with pytest.raises(RuntimeError, match="weight_decay"):
        tp.optim.SGD([weight], 0.1, weight_decay=0.1).step()
    weight.grad = tp.ones(3, 2)
    with pytest.raises(RuntimeError, match="dense gradients"):
        tp.optim.SparseAdam([weight]).step()


def test_nothing_is_imported_before() -> None:
    import subprocess
    import sys

    code = (
        "import sys, tensorpy as tp\ntp.nn.Embedding(3, 2)(tp.tensor([1])).sum().backward()\n"
        "tp.optim.SGD([tp.ones(1)], 0.1)\nassert not any(m.startswith('tensorpy.sparse') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_sum_with_a_tensor_of_no_values_keeps_the_others() -> None:
    twice = tp.sparse_coo_tensor(tp.tensor([[0, 0], [1, 1]]), tp.tensor([1.0, 2.0]), (2, 3))
    hybrid = tp.sparse_coo_tensor(tp.tensor([[1]]), tp.ones(1, 3), (2, 3))
    none = tp.sparse_coo_tensor((2, 3))
    for given in (twice, twice.coalesce(), hybrid, hybrid.coalesce()):
        for sum_ in (given + none, none + given):
            assert tp.equal(sum_._indices(), given._indices()) and tp.equal(sum_._values(), given._values())
            assert sum_.is_coalesced() == given.is_coalesced() and sum_.sparse_dim() == given.sparse_dim()
    assert tp.equal((none - 2 * hybrid).to_dense(), -2 * hybrid.to_dense())
    assert (none.to(tp.float64) + hybrid).dtype == tp.float64


def test_a_tensor_with_values_does_not_shrink_where_it_is_written() -> None:
    small, large = tp.ones(2, 3).to_sparse(), tp.ones(4, 3).to_sparse()
    assert small.clone().copy_(large).shape == (4, 3)
    with pytest.raises(RuntimeError, match="shrinking the size"):
        large.copy_(small)
    assert tp.sparse_coo_tensor((4, 3)).copy_(small).shape == (2, 3)
    with pytest.raises(RuntimeError, match="copy_"):
        tp.ones(4, 3).to_sparse_csr().copy_(tp.ones(2, 3).to_sparse_csr())


def test_which_permutations_keep_a_tensor_merged() -> None:
    t = tp.ones(2, 3).to_sparse().coalesce()
    assert t.permute(0, 1).is_coalesced() and not t.permute(1, 0).is_coalesced()
    assert not t.t().is_coalesced() and t.transpose(0, 0).is_coalesced()
    assert tp.sparse_coo_tensor((2, 3)).coalesce().t().is_coalesced()
    with pytest.raises(RuntimeError, match="transpositions between sparse and dense dimensions"):
        tp.ones(2, 3, 4).to_sparse(2).permute(0, 2, 1)
    with pytest.raises(RuntimeError, match=r"same shape: \[2, 3\].*\[4, 3\]"):
        tp.cat([t, tp.ones(4, 3).to_sparse()], 1)


def test_the_layers_below() -> None:
    """`_to_sparse` and its kin are what the names without "_" are; a sparse tensor gets another's sizes or elements."""
    x = tp.tensor([[0.0, 5.0, 0.0], [6.0, 0.0, 0.0]])
    s = x.to_sparse()
    assert (s._dimI(), s._dimV(), x._to_sparse(1)._dimI()) == (2, 0, 1) and s._to_dense().tolist() == x.tolist()
    made = [
        x._to_sparse(), x._to_sparse(layout=tp.sparse_csr), x._to_sparse_csr(), x._to_sparse_csc(),
        x._to_sparse_bsr((2, 3)), x._to_sparse_bsc((1, 1)),
    ]  # fmt: skip
    layouts = [tp.sparse_coo, tp.sparse_csr, tp.sparse_csr, tp.sparse_csc, tp.sparse_bsr, tp.sparse_bsc]
    assert [t.layout for t in made] == layouts and all(t.to_dense().tolist() == x.tolist() for t in made)

    empty = tp.sparse_coo_tensor(size=(1, 1))
    assert empty.resize_as_sparse_(s) is empty and empty.shape == (2, 3) and empty._nnz() == 0
    assert tp.copy_sparse_to_sparse_(empty, s) is empty and empty.to_dense().tolist() == x.tolist()
    with pytest.raises(RuntimeError):
        x.resize_as_sparse_(s)
    with pytest.raises(RuntimeError):
        tp.copy_sparse_to_sparse_(x, s)

    out = tp.sparse_coo_tensor(size=(2, 3))
    assert tp.ops.aten.hspmm.out(s, tp.eye(3), out=out) is out and out.to_dense().tolist() == x.tolist()
    csr = x.to_sparse_csr()
    made = [tp.ops.aten.sparse_sampled_addmm.out(csr, tp.ones(2, 2), tp.ones(2, 3), out=x.to_sparse_csr())]
    assert made[0].to_dense().tolist() == [[0, 7, 0], [8, 0, 0]]


@pytest.mark.parametrize("alpha", [1, 2, True, 2.5])
@pytest.mark.parametrize("second", [tp.bool, tp.int64, tp.float32])
@pytest.mark.parametrize("first", [tp.bool, tp.int64, tp.float32])
def test_a_sum_has_the_dtype_of_its_terms_whatever_multiplies_one(first: Any, second: Any, alpha: Any) -> None:
    """As of dense tensors: the factor is one of the sum's dtype, or is refused."""
    a, b = tp.tensor([1, 0, 1, 0]).to(first), tp.tensor([0, 0, 1, 1]).to(second)
    pairs = [(a, b.to_sparse()), (a.to_sparse(), b.to_sparse())]
    try:
        wanted = tp.add(a, b, alpha=alpha)
    except RuntimeError:
        for x, y in pairs:
            with pytest.raises(RuntimeError):
                tp.add(x, y, alpha=alpha)
        return
    for x, y in pairs:
        made = tp.add(x, y, alpha=alpha)
        assert made.dtype is wanted.dtype and made.to_dense().equal(wanted)


@pytest.mark.parametrize("layout", [tp.sparse_coo, tp.sparse_csr, tp.sparse_csc, tp.sparse_bsr, tp.sparse_bsc])
def test_a_number_of_a_sparse_tensor(layout: Any) -> None:
    block = (1, 1) if layout in (tp.sparse_bsr, tp.sparse_bsc) else None
    one, many = (t.to_sparse(layout=layout, blocksize=block) for t in (tp.tensor([[2.5]]), tp.eye(2)))
    assert one.item() == float(one) == 2.5 and bool(one) and tp.is_nonzero(one)
    with pytest.raises(RuntimeError):
        many.item()


def test_a_number_of_several_values() -> None:
    assert tp.sparse_coo_tensor([[0, 0]], [1.0, -1.0], (1,)).item() == 0 and tp.sparse_coo_tensor((1,)).item() == 0
    assert tp.sparse_coo_tensor(tp.zeros(0, 2, dtype=tp.int64), tp.tensor([1.0, 2.0]), ()).item() == 3


@pytest.mark.parametrize("name", ["sin_", "abs_", "sqrt_", "floor_", "relu_", "nan_to_num_", "log1p_"])
def test_values_that_are_to_be_merged_are_not_written(name: str) -> None:
    """As in PyTorch; what goes value by value is."""
    several = tp.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,))
    with pytest.raises(RuntimeError, match="coalesced"):
        getattr(several.clone(), name)()
    getattr(several.coalesce(), name)()
    assert several.clone().neg_().mul_(2).to_dense().tolist() == [-6, 0, 0]


@pytest.mark.parametrize("layout", [tp.sparse_csr, tp.sparse_csc, tp.sparse_bsr, tp.sparse_bsc])
@pytest.mark.parametrize("places, right", [([0, 0, 2], True), ([0, 2, 0], False), ([0, 1, 1], False)])
def test_places_of_a_line_are_asked_to_rise(layout: Any, places: list[int], right: bool) -> None:
    blocks = layout in (tp.sparse_bsr, tp.sparse_bsc)
    size = (2, 3) if layout in (tp.sparse_csr, tp.sparse_bsr) else (3, 2)
    values = tp.ones(3, 1, 1) if blocks else tp.ones(3)

    def make(**words: Any) -> tp.Tensor:
        return tp.sparse_compressed_tensor([0, 1, 3], places, values, size, layout=layout, **words)

    asked = tp.sparse.check_sparse_tensor_invariants
    assert make().to_dense().sum() == 3 and not asked.is_enabled()
    for call in (lambda: make(check_invariants=True), asked()(make)):
        if right:
            call()
        else:
            with pytest.raises(RuntimeError, match="sorted and distinct"):
                call()
    with asked(), asked(False):
        make()


def test_sizes_as_those_of_another_layout() -> None:
    a = tp.eye(3).to_sparse_csr()
    b = tp.zeros(1, 1).to_sparse_csr()
    assert b.resize_as_sparse_(a) is b and b.shape == (3, 3) and b.col_indices().equal(a.col_indices())
    assert b.to_dense().tolist() == tp.zeros(3, 3).tolist()
    with pytest.raises(RuntimeError, match="sparse_csc"):
        b.resize_as_sparse_(tp.eye(3).to_sparse_csc())
    assert tp.sparse_coo_tensor((1,)).resize_as_(tp.eye(2).to_sparse()).shape == (2, 2)
    with pytest.raises(NotImplementedError):
        tp.sparse_coo_tensor((1,)).resize_as_(tp.eye(2))
    with pytest.raises(RuntimeError, match="blocksize"):
        tp.eye(2).to_sparse(layout=tp.sparse_csr, blocksize=(1, 1))


ROWS = {
    "rise": "f(t([0, 0, 2]), 4)", "int32": "f(t([0, 0, 2], dtype=i), 4, out_int32=True)",
    "wider": "f(t([1, 2], dtype=i), 3)",
    "none": "f(t([], dtype=l), 3)", "no rows": "f(t([], dtype=l), 0)",
    "places": "g(t([0, 2, 2, 3]), t([1, 0, 2]))", "transposed": "g(t([0, 2, 2, 3]), t([1, 0, 2]), transpose=True)",
    "places int32": "g(t([0, 2, 2, 3], dtype=i), t([1, 0, 2], dtype=i), out_int32=True)",
    "a batch": "g(t([[0, 2, 3], [0, 0, 3]]), t([[1, 0, 2], [0, 1, 2]]))",
    "a batch transposed": "g(t([[0, 2, 3], [0, 0, 3]]), t([[1, 0, 2], [0, 1, 2]]), transpose=True)",
    "no places": "g(t([0, 0]), t([], dtype=l))",
    "a matrix": "f(t([[0, 1]]), 2)", "no numbers of rows": "f(t([0.0]), 2)",
}  # fmt: skip


@pytest.mark.parametrize("expression", ROWS.values(), ids=list(ROWS))
def test_rows_into_where_they_begin_and_back_are_pytorchs(expression: str, torch: Any) -> None:
    def result(library: Any) -> Any:
        f, g = library._convert_indices_from_coo_to_csr, library._convert_indices_from_csr_to_coo
        names = {"f": f, "g": g, "t": library.tensor, "i": library.int32, "l": library.int64}
        try:
            made = eval(expression, names)
        except (RuntimeError, NotImplementedError) as error:
            return type(error)
        return made.tolist(), tuple(made.shape), str(made.dtype).rpartition(".")[2]

    assert result(tp) == result(torch)


def test_rows_and_where_they_begin_are_those_of_layouts() -> None:
    x = (tp.rand(9, 7) > 0.6).float()
    coo, csr = x.to_sparse(), x.to_sparse_csr()
    assert tp._convert_indices_from_coo_to_csr(coo.indices()[0], 9).equal(csr.crow_indices())
    assert tp._convert_indices_from_csr_to_coo(csr.crow_indices(), csr.col_indices()).equal(coo.indices())


def test_types_of_sparse_tensors() -> None:
    s = tp.eye(2).to_sparse()
    assert s.type() == "tensorpy.sparse.FloatTensor" and s.long().type() == "tensorpy.sparse.LongTensor"
    assert isinstance(s, tp.sparse.FloatTensor) and not isinstance(s, tp.sparse.DoubleTensor)
    assert not isinstance(tp.eye(2), tp.sparse.FloatTensor) and s.type(tp.float64).dtype is tp.float64
