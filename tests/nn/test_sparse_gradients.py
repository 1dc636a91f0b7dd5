"""Sparse gradients of embeddings and bags, beside torch; sums of sparse gradients and dense ones."""

import itertools

import pytest

import tensorpy as tp
from tensorpy import nn

torch = pytest.importorskip("torch")

INDEX = [0, 1, 1, 3, 4, 2, 1]


def bag(package, mode, padding_idx, last, weighted):
    weight = package.arange(15.0).reshape(5, 3).requires_grad_()
    each = package.arange(1.0, 8.0).requires_grad_() if weighted else None
    result = package.nn.functional.embedding_bag(
        package.tensor(INDEX),
        weight,
        package.tensor([0, 2, 2, 5, 7] if last else [0, 2, 2, 5]),
        mode=mode,
        sparse=True,
        padding_idx=padding_idx,
        include_last_offset=last,
        per_sample_weights=each,
    )
    (result * package.arange(1.0, 13.0).reshape(4, 3)).sum().backward()
    assert weight.grad.is_sparse
    return result.tolist(), weight.grad.to_dense().tolist(), each.grad.tolist() if weighted else None


@pytest.mark.parametrize("padding_idx", [None, 1, -1])
@pytest.mark.parametrize(
    "mode, last, weighted",
    [("sum", *c) for c in itertools.product((False, True), repeat=2)] + [("mean", False, False), ("mean", True, False)],
)
def test_gradients_of_bags_are_pytorchs(mode, last, weighted, padding_idx):
    assert bag(tp, mode, padding_idx, last, weighted) == bag(torch, mode, padding_idx, last, weighted)


@pytest.mark.parametrize("options", [{"sparse": True}, {"scale_grad_by_freq": True}])
def test_maxima_have_no_such_gradient(options):
    for package in (tp, torch):
        with pytest.raises(ValueError, match="max mode does not support"):
            package.nn.functional.embedding_bag(
                package.tensor([0, 1]), package.ones(3, 2), package.tensor([0]), mode="max", **options
            )


@pytest.mark.parametrize("function", ["embedding", "embedding_bag"])
def test_sparse_gradients_are_not_scaled_by_frequency(function):
    for package in (tp, torch):
        weight = package.ones(3, 2, requires_grad=True)
        with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
            result = getattr(package.nn.functional, function)(
                package.tensor([[0, 1]]),
                weight,
                sparse=True,
                scale_grad_by_freq=True,
                **({"mode": "sum"} if "bag" in function else {}),
            )
            result.sum().backward()


@pytest.mark.parametrize("order", ["sparse first", "dense first", "one pass"])
def test_a_sparse_gradient_and_a_dense_one_add_up(order):
    def grad(package):
        weight = package.ones(3, 2, requires_grad=True)
        taken = lambda: package.nn.functional.embedding(package.tensor([[0, 1], [2, 2]]), weight, sparse=True).sum()  # noqa: E731
        steps = [taken, lambda: (weight * 2).sum()]
        if order == "one pass":
            (steps[1]() + steps[0]()).backward()
        else:
            for step in steps if order == "sparse first" else steps[::-1]:
                step().backward()
        return weight.grad.tolist()

    assert grad(tp) == grad(torch) == [[3, 3], [3, 3], [4, 4]]


def test_optimizers_step_by_the_gradient_of_bags():
    def stepped(package):
        module = package.nn.EmbeddingBag(4, 2, sparse=True, mode="sum")
        with package.no_grad():
            module.weight.copy_(package.arange(8.0).reshape(4, 2))
        optimizer = package.optim.SGD(module.parameters(), lr=0.5)
        module(package.tensor([[0, 1], [1, 3]])).sum().backward()
        optimizer.step()
        return module.weight.tolist()

    assert stepped(tp) == stepped(torch)


def test_gradients_that_are_expanded_are_kept_one_after_the_other() -> None:
    """As in PyTorch: where values lie in a row, those of one place are added."""
    layer, rows = nn.Embedding(10, 3, sparse=True), tp.tensor([7, 1, 3])
    for _ in range(2):
        layer(rows).sum().backward()
    grad = layer.weight.grad
    assert grad is not None and grad._indices().tolist() == [[7, 1, 3, 7, 1, 3]] and not grad.is_coalesced()
    assert grad.to_dense()[[7, 1, 3]].equal(tp.full((3, 3), 2.0)) and grad.to_dense().sum() == 18.0
    layer.zero_grad()
    for _ in range(2):
        (layer(rows) * tp.arange(1.0, 4.0)).sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad._indices().tolist() == [[7, 1, 3]]
