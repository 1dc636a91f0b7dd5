"""utils.data: epochs of pipes, batches that fail, and what collation declines."""

from __future__ import annotations

import pytest

import tensorpy as tp
from tensorpy._utils import ExceptionWrapper
from tensorpy.utils import data
from tensorpy.utils.data import datapipes


def test_an_epoch_goes_on_behind_a_batch_that_failed() -> None:
    loader = data.DataLoader(_Odd(), batch_size=1, num_workers=2)
    iterator, seen = iter(loader), []
    while True:
        try:
            seen.append(next(iterator).item())
        except StopIteration:
            break
        except ValueError:
            seen.append("failed")
    assert seen == [0, "failed", 2, "failed", 4]


class _Odd(data.Dataset):
    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> int:
        if index % 2:
            raise ValueError(index)
        return index


def _epochs(workers: int) -> list[list[int]]:
    pipe = datapipes.iter.IterableWrapper(range(12)).shuffle(buffer_size=5).sharding_filter()
    loader = data.DataLoader(pipe, num_workers=workers, shuffle=True, persistent_workers=workers > 0)
    epochs = []
    for seed in (1, 1, 2):
        tp.manual_seed(seed)
        epochs.append([int(x) for x in loader])
    return epochs


def test_pipes_shuffle_by_the_epoch_s_seed_whoever_reads_them() -> None:
    here, workers = _epochs(0), _epochs(2)
    assert here == workers and here[0] == here[1] != here[2]
    assert sorted(here[0]) == list(range(12))


def test_a_pipe_without_a_shuffler_gets_one() -> None:
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = data.DataLoader(datapipes.iter.IterableWrapper(range(50)), shuffle=True)
    got = [int(x) for x in loader]
    assert got != list(range(50)) and sorted(got) == list(range(50))


class _AtOnce(list):
    def __getitems__(self, indices: list[int]) -> list[int]:
        return [self[i] for i in indices][:2]


def test_stacked_datasets_are_asked_for_several_samples_at_once() -> None:
    assert data.StackDataset(_AtOnce([5, 6, 7]), [1, 2, 3]).__getitems__([2, 0]) == [(7, 3), (5, 1)]
    assert data.StackDataset(a=[5, 6]).__getitems__([1]) == [{"a": 6}]
    with pytest.raises(ValueError, match=r"size mismatch. Expected 3, got 2"):
        data.StackDataset(_AtOnce([5, 6, 7])).__getitems__([0, 1, 2])


def test_batches_of_sparse_and_nested_tensors_are_for_a_collate_fn_to_make() -> None:
    for sample in (tp.eye(2).to_sparse(), tp.eye(2).to_sparse_csr(), tp.nested.nested_tensor([tp.ones(1)])):
        with pytest.raises(RuntimeError, match="the default collate_fn makes no batches of"):
            data.default_collate([sample])


def test_an_exception_travels_with_its_traceback() -> None:
    for error, kind in ((KeyError("k"), KeyError), (UnicodeDecodeError("utf8", b"a", 0, 1, "why"), RuntimeError)):
        try:
            raise error
        except Exception:
            wrapped = ExceptionWrapper(where="in a thread")
        with pytest.raises(kind, match=f"Caught {type(error).__name__} in a thread.\nOriginal Traceback"):
            wrapped.reraise()
