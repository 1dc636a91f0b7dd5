"""Tables of integers: rows and sums of rows as PyTorch's, bad input, and the modules."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import nn

Q: Any = tp.ops.quantized
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.backends.quantized.engine = "fbgemm"
    return found


def numbers(seed: int, rows: int = 13, columns: int = 6) -> Any:
    return (np.random.default_rng(seed).standard_normal((rows, columns)) * 3).astype("float32")


def table(library: Any, seed: int, dtype: str) -> Any:
    draw, most = np.random.default_rng(seed), 255 if dtype == "quint8" else 15
    scales, zero_points = (draw.random((2, 13)).astype("float32") + 0.1) * np.array([[6 / most], [most / 2]], "float32")
    parts = (library.from_numpy(part) for part in (numbers(seed), scales, zero_points))
    return library.quantize_per_channel(*parts, 0, getattr(library, dtype))


def bag(library: Any, seed: int) -> tuple[Any, Any, Any, Any]:
    """Indices, offsets, weights, and which rows are left."""
    draw = np.random.default_rng(seed)
    mapping = np.where(draw.random(20) < 0.3, -1, draw.integers(0, 13, 20)).astype("int32")
    indices, offsets = draw.integers(0, 13, 17), np.array([0, 3, 3, 9])
    return tuple(library.from_numpy(p) for p in (indices, offsets, draw.random(17).astype("float32"), mapping))  # type: ignore[return-value]


@pytest.mark.parametrize("bits", ["byte", "4bit", "2bit"])
def test_packed_bytes_are_pytorchs(torch: Any, bits: str) -> None:
    for seed in range(10):
        w = numbers(seed, 7, 4 + 4 * seed)
        if seed == 3:
            w[:] = 1.5
        found = []
        for library, ops in ((torch, torch.ops.quantized), (tp, Q)):
            packed = getattr(ops, f"embedding_bag_{bits}_prepack")(library.from_numpy(w))
            found.append((packed.tolist(), np.array(getattr(ops, f"embedding_bag_{bits}_unpack")(packed).tolist())))
        assert found[0][0] == found[1][0] and np.allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bits", [4, 2])
def test_ranges_with_less_error_are_pytorchs(torch: Any, bits: int) -> None:
    for seed in range(12):
        w = numbers(seed, 5, 8 * (1 + seed % 3)) * 10.0 ** (seed % 4 - 2)
        if seed == 3:
            w[0] = 1.5
        for steps in ((), (37, 0.5), (100, 0.9)):
            theirs, ours = (
                getattr(ops, f"embedding_bag_{bits}bit_prepack")(library.from_numpy(w), True, *steps).tolist()
                for library, ops in ((torch, torch.ops.quantized), (tp, Q))
            )
            assert theirs == ours


@pytest.mark.parametrize("bits", ["byte", "4bit", "2bit"])
def test_ranges_that_are_given_are_pytorchs(torch: Any, bits: str) -> None:
    w = numbers(0, 5, 8)
    ends = np.stack([w.min(1) - 0.1, w.max(1) + 0.2], 1)
    theirs, ours = (
        getattr(ops, f"embedding_bag_{bits}_prepack_with_rowwise_min_max")(*map(library.from_numpy, (w, ends))).tolist()
        for library, ops in ((torch, torch.ops.quantized), (tp, Q))
    )
    assert theirs == ours
    with pytest.raises(RuntimeError, match="rowwise_min_max"):
        getattr(Q, f"embedding_bag_{bits}_prepack_with_rowwise_min_max")(tp.from_numpy(w), tp.from_numpy(ends[:2]))


def test_numbers_outside_of_given_ranges_are_pytorchs(torch: Any) -> None:
    ends = [[0.2, 0.3], [0.25, 0.25], [1.0, -1.0], [float("nan"), 1.0], [0.0, float("inf")]]

    def packed(library: Any, table: str, of: str) -> Any:
        weight = library.tensor(numbers(0, len(ends)).tolist()).to(getattr(library, table))
        given = library.tensor(ends).to(getattr(library, of))
        return library.ops.quantized.embedding_bag_byte_prepack_with_rowwise_min_max(weight, given).tolist()

    assert packed(tp, "float32", "float32") == packed(torch, "float32", "float32")
    for table, of in (("float32", "float64"), ("float32", "float16"), ("float16", "float32")):
        with pytest.raises(RuntimeError, match="rowwise_min_max is of"):
            packed(tp, table, of)


def test_sums_of_rows_of_two_bits_are_pytorchs(torch: Any) -> None:
    found = []
    for library, ops in ((torch, torch.ops.quantized), (tp, Q)):
        packed = ops.embedding_bag_2bit_prepack(library.from_numpy(numbers(0, 13, 8)))
        indices, offsets, weights, mapping = bag(library, 0)
        sums = ops.embedding_bag_2bit_rowwise_offsets
        found.append([
            sums(packed, indices, offsets), sums(packed, indices, offsets, False, 0, False, weights),
            sums(packed, indices, offsets, False, 0, True, weights, mapping),
        ])  # fmt: skip
    for ours, theirs in zip(found[1], found[0], strict=True):
        assert np.allclose(np.array(ours.tolist()), np.array(theirs.tolist()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["quint8", "quint4x2"])
def test_rows_and_sums_are_pytorchs(torch: Any, dtype: str) -> None:
    bits = "byte" if dtype == "quint8" else "4bit"
    for seed in range(5):
        found = []
        for library, ops in ((torch, torch.ops.quantized), (tp, Q)):
            packed = ops.embedding_bag_prepack(table(library, seed, dtype))
            plain = getattr(ops, f"embedding_bag_{bits}_prepack")(library.from_numpy(numbers(seed)))
            indices, offsets, weights, mapping = bag(library, seed)
            sums, rows = getattr(ops, f"embedding_bag_{bits}"), getattr(ops, f"embedding_{bits}")
            by_rows = getattr(ops, f"embedding_bag_{bits}_rowwise_offsets")
            whole = library.cat([offsets, library.tensor([17])])
            square, by = indices[:16].reshape(4, 4), (False, 0, False, weights)
            found.append([
                rows(packed, indices), rows(packed, square).flatten(0, 1), sums(packed, indices, offsets),
                sums(packed, indices.int(), offsets.int()), sums(packed, square), sums(packed, indices, offsets, *by),
                sums(packed, indices, whole, include_last_offset=True),
                sums(packed, indices, offsets, False, 0, True, weights, mapping), by_rows(plain, indices, offsets),
                by_rows(plain, indices, offsets, *by),
            ])  # fmt: skip
        for ours, theirs in zip(found[1], found[0], strict=True):
            assert np.allclose(np.array(ours.tolist()), np.array(theirs.tolist()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["quint8", "quint4x2"])
def test_rows_and_sums_are_those_of_the_numbers(dtype: str) -> None:
    bits, w = ("byte" if dtype == "quint8" else "4bit"), table(tp, 0, dtype)
    packed, exact = Q.embedding_bag_prepack(w), w.dequantize()
    indices, offsets, weights, _ = bag(tp, 0)
    near = 1e-5 if dtype == "quint8" else 5e-3  # scales of float16
    rows, sums = getattr(Q, f"embedding_{bits}"), getattr(Q, f"embedding_bag_{bits}")
    assert np.allclose(rows(packed, indices).numpy(), exact[indices].numpy(), atol=near)
    by = nn.functional.embedding_bag(indices, exact, offsets, mode="sum", per_sample_weights=weights)
    assert np.allclose(sums(packed, indices, offsets, False, 0, False, weights).numpy(), by.numpy(), atol=5 * near)
    assert sums(packed, indices[:0], tp.tensor([0, 0])).tolist() == [[0.0] * 6] * 2
    for same in (pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):
        assert rows(same, indices).equal(rows(packed, indices))
    assert Q.embedding_bag_unpack(packed).int_repr().equal(w.int_repr())


def test_bad_input() -> None:
    packed, w = Q.embedding_bag_prepack(table(tp, 0, "quint8")), tp.from_numpy(numbers(0))
    small, one, start = Q.embedding_bag_4bit_prepack(w), tp.tensor([0]), tp.tensor([0])
    for call in (
        lambda: Q.embedding_byte(packed, tp.tensor([13])),
        lambda: Q.embedding_byte(packed, tp.tensor([-1])),
        lambda: Q.embedding_byte(packed, tp.tensor([0.0])),
        lambda: Q.embedding_4bit(packed, one),
        lambda: Q.embedding_byte(w, one),
        lambda: Q.embedding_bag_byte(packed, one),
        lambda: Q.embedding_bag_byte(packed, one.reshape(1, 1, 1), start),
        lambda: Q.embedding_bag_byte(packed, tp.tensor([0, 99]), start),
        lambda: Q.embedding_bag_byte(packed, tp.tensor([5]), start, False, 0, True, None, tp.tensor([0, 99])),
        lambda: Q.embedding_bag_byte(packed, tp.tensor([1]), start, False, 0, True, None, tp.tensor([0, 99])),
        lambda: Q.embedding_bag_prepack(tp.quantize_per_tensor(w, 0.1, 0, tp.quint8)),
        lambda: Q.embedding_bag_prepack(w),
        lambda: Q.embedding_bag_byte_prepack(w[0]),
        lambda: Q.embedding_bag_4bit_prepack(w[:, :3]),
        lambda: Q.embedding_bag_4bit_prepack(w, True, 0),
        lambda: Q.embedding_bag_2bit_prepack(w),
        lambda: Q.embedding_bag_2bit_unpack(small[:, :3]),
        lambda: Q.embedding_bag_2bit_rowwise_offsets(w, one, start),
        lambda: Q.embedding_bag_prepack(table(tp, 0, "quint2x4")),
        lambda: Q.embedding_bag_byte_unpack(small[:, :3]),
        lambda: Q.embedding_bag_4bit_rowwise_offsets(w, one, start),
        lambda: Q.embedding_bag_4bit_rowwise_offsets(small, tp.tensor([13]), start),
    ):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(AssertionError):
        tp.ao.quantization.quantize_dynamic(nn.Sequential(nn.Embedding(3, 4)), {nn.Embedding}, dtype=tp.qint8)


@pytest.mark.parametrize("dtype", ["quint8", "quint4x2"])
def test_models_with_tables(dtype: str) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.sums = nn.Embedding(13, 6), nn.EmbeddingBag(13, 6, mode="sum", include_last_offset=True)

        def forward(self, x: Any, offsets: Any) -> Any:
            return self.rows(x), self.sums(x, offsets)

    plain = Model()
    made = tp.ao.quantization.quantize_dynamic(plain, dtype=getattr(tp, dtype))
    assert type(made.rows) is tp.ao.nn.quantized.Embedding and type(made.sums) is tp.ao.nn.quantized.EmbeddingBag
    x, offsets = tp.tensor([1, 5, 12, 0]), tp.tensor([0, 2, 4])
    step = 8 / (255 if dtype == "quint8" else 15)
    for ours, exact in zip(made(x, offsets), plain(x, offsets), strict=True):
        assert (ours - exact).abs().max() < 2 * step
    file = io.BytesIO()
    tp.save(made.state_dict(), file)
    other = tp.ao.quantization.quantize_dynamic(Model(), dtype=getattr(tp, dtype))
    other.load_state_dict(tp.load(io.BytesIO(file.getvalue())))
    assert other(x, offsets)[1].equal(made(x, offsets)[1])


def test_a_state_is_pytorchs(torch: Any) -> None:
    theirs = torch.ao.nn.quantized.Embedding(13, 6)
    theirs.set_weight(table(torch, 1, "quint8"))
    file = io.BytesIO()
    torch.save(theirs.state_dict(), file)
    ours = tp.ao.nn.quantized.Embedding(13, 6)
    ours.load_state_dict(tp.load(io.BytesIO(file.getvalue())))
    x = [1, 12, 3]
    assert np.allclose(ours(tp.tensor(x)).numpy(), theirs(torch.tensor(x)).numpy(), atol=1e-6)
    assert str(ours).replace("tensorpy", "torch") == str(theirs)


@pytest.mark.parametrize("columns", [0, 1, 4, 5])
def test_packed_tables_have_two_numbers_in_a_byte(columns: int) -> None:
    weight = tp.quantize_per_channel(tp.rand(3, columns) * 3, tp.rand(3) + 0.1, tp.rand(3), 0, tp.quint4x2)
    packed = tp.ops.quantized.embedding_bag_prepack(weight)
    assert packed.rows_of_bytes.shape == (3, (columns + 1) // 2)
    assert packed.unpack().equal(weight) and pickle.loads(pickle.dumps(packed)).unpack().equal(weight)
    before = weight.dequantize()
    weight.fill_(0.0)  # the table has bytes of its own
    assert packed.unpack().dequantize().equal(before)


def _tables(library: Any, ao: Any) -> Any:
    class Tables(library.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.bags = library.nn.Embedding(13, 6), library.nn.EmbeddingBag(13, 6, mode="sum")
            self.quant, self.linear, self.dequant = ao.QuantStub(), library.nn.Linear(6, 3), ao.DeQuantStub()
            with library.no_grad():
                self.rows.weight.copy_(library.from_numpy(numbers(1)))
                self.bags.weight.copy_(library.from_numpy(numbers(2)))
                self.linear.weight.copy_(library.from_numpy(numbers(3, 3, 6)))
                self.linear.bias.zero_()

        def forward(self, indices: Any, offsets: Any) -> Any:
            found = self.rows(indices).sum(1) + self.bags(indices.flatten(), offsets)
            return self.dequant(self.linear(self.quant(found)))

    return Tables()


def _trained(library: Any, ao: Any) -> tuple[Any, Any]:
    model = _tables(library, ao).train()
    model.linear.qconfig = model.quant.qconfig = model.dequant.qconfig = ao.get_default_qat_qconfig("fbgemm")
    model.rows.qconfig = model.bags.qconfig = ao.default_embedding_qat_qconfig
    ao.prepare_qat(model, mapping=ao.get_embedding_qat_module_mappings(), inplace=True)
    indices, offsets = library.tensor([[1, 2], [3, 12]]), library.tensor([0, 2])
    steps = library.optim.SGD(model.parameters(), lr=1e-4)
    losses = []
    for _ in range(4):
        steps.zero_grad()
        loss = model(indices, offsets).square().sum()
        loss.backward()
        steps.step()
        losses.append(loss.item())
    made = ao.convert(model.eval(), mapping=ao.get_embedding_static_quant_module_mappings())
    return losses, (made, made(indices, offsets))


def test_tables_that_trained_for_integers_become_such() -> None:
    losses, (made, found) = _trained(tp, tp.ao.quantization)
    assert losses[-1] < losses[0] and found.shape == (2, 3)
    assert type(made.rows) is tp.ao.nn.quantized.Embedding and type(made.bags) is tp.ao.nn.quantized.EmbeddingBag
    assert made.rows.weight().dtype is tp.quint8
    with pytest.raises(AssertionError, match="from_float"):
        tp.ao.nn.quantized.Embedding.from_float(nn.Linear(2, 2))


def test_tables_that_trained_for_integers_are_pytorchs(torch: Any) -> None:
    from torch.ao import quantization as theirs

    expected, (_, there) = _trained(torch, theirs)
    losses, (_, found) = _trained(tp, tp.ao.quantization)
    assert np.allclose(losses, expected, rtol=1e-4)
    assert np.allclose(found.numpy(), there.numpy(), rtol=1e-5, atol=1e-5)
