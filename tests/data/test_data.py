"""utils.data: datasets, samplers, collation, and DataLoader with and without worker processes."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from side_by_side import Scenarios, compare, error_of, filled

import tensorpy as tp
from tensorpy.utils import data
from tensorpy.utils.data import DataLoader

scenario = Scenarios()
ROOT = Path(__file__).parents[2]


def library(t: Any) -> Any:
    import importlib

    return importlib.import_module(f"{t.__name__}.utils.data")


# ---- against torch ----

Pair = namedtuple("Pair", "left right")


@scenario
def files(t: Any) -> Any:
    pipes = importlib.import_module(f"{t.__name__}.utils.data.datapipes.iter")
    with tempfile.TemporaryDirectory() as top:
        (Path(top) / "below").mkdir()
        for name in ("b.txt", "a.bin", "below/c.txt"):
            (Path(top) / name).write_text(name * 2)

        def listed(*args: Any, **kwargs: Any) -> Any:
            return [os.path.relpath(path, top) for path in pipes.FileLister(top, *args, **kwargs)]

        opened = [f.read() for _, f in pipes.FileLister(top).open_files()]
        read = [piece for _, piece in pipes.FileLister(top, "*.txt").open_files(mode="b").read_from_stream(3)]
        return {
            "all": listed(),
            "below": listed(recursive=True),
            "masks": listed("*.txt", recursive=True) + listed(["*.bin", "c*"], recursive=True),
            "of a file": len(list(pipes.FileLister(f"{top}/b.txt"))),
            "opened": opened,
            "read": read,
            "length": (error_of(lambda: len(pipes.FileLister(top))), len(pipes.FileLister(top, length=2))),
            "modes": error_of(lambda: pipes.FileOpener([], mode="w")),
            "encoding": error_of(lambda: pipes.FileOpener([], mode="b", encoding="utf8")),
        }


@scenario
def collation(t: Any) -> Any:
    d = library(t)
    batches: list[Any] = [
        [1, 2], [1.5, 2.5], [True, False], ["a", "b"], [b"a", b"b"], [filled(t, 2), filled(t, 2)],
        [np.ones(2), np.zeros(2)], [np.float32(1), np.float32(2)], [(1, "x"), (2, "y")], [[1, 2.0], [3, 4.0]],
        [{"a": 1, "b": (1.0, "x")}, {"a": 2, "b": (2.0, "y")}], [Pair(1, 2), Pair(3, 4)],
    ]  # fmt: skip
    told = [d.default_collate(batch) for batch in batches]
    told += [type(d.default_collate([Pair(1, 2), Pair(3, 4)])).__name__]
    told += [str(d.default_collate(batch).dtype) for batch in batches[:3]]
    told += [d.default_convert({"a": np.ones(2), "b": [1, "x"], "c": (np.zeros(1),)})]
    calls = [lambda: d.default_collate([[1], [1, 2]]), lambda: d.default_collate([object()])]
    return [*told, *(error_of(call) for call in calls)]


@scenario
def datasets(t: Any) -> Any:
    d = library(t)
    told = [list(d.TensorDataset(filled(t, 3, 2), t.arange(3))), len(d.TensorDataset(filled(t, 3)))]
    both = d.ConcatDataset([[1, 2, 3], [4, 5]])
    told += [list(both), len(both), both[-1], list(d.Subset(both, [4, 0])), d.Subset(both, [4, 0]).__getitems__([0, 1])]
    told += [d.StackDataset([1, 2], [3, 4])[1], d.StackDataset(a=[1, 2], b=[3, 4])[0]]

    class Numbers(d.IterableDataset):
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Any:
            return iter(range(self.n))

    told += [list(d.ChainDataset([Numbers(2), Numbers(3)])), list(Numbers(1) + Numbers(2))]
    told += [[len(p) for p in d.random_split(range(10), shares)] for shares in ([7, 3], [0.33, 0.33, 0.34], [0.5, 0.5])]
    calls = [
        lambda: d.TensorDataset(filled(t, 2), filled(t, 3)), lambda: d.ConcatDataset([]), lambda: both[9],
        lambda: both[-9], lambda: d.StackDataset([1], [1, 2]), lambda: d.random_split(range(10), [0.5, 0.4]),
        lambda: d.random_split(range(10), [5, 4]), lambda: d.Dataset()[0],
    ]  # fmt: skip
    return [*told, *(error_of(call) for call in calls)]


@scenario
def samplers(t: Any) -> Any:
    d = library(t)
    told = [list(d.SequentialSampler(range(4))), list(d.BatchSampler(range(7), 3, False))]
    told += [list(d.BatchSampler(range(7), 3, True)), len(d.BatchSampler(range(7), 3, True))]
    told += [sorted(d.RandomSampler(range(5))), len(list(d.RandomSampler(range(3), num_samples=7)))]
    told += [len(list(d.RandomSampler(range(3), replacement=True, num_samples=40)))]
    told += [sorted(d.SubsetRandomSampler([3, 5, 9])), list(d.WeightedRandomSampler([0.0, 1.0, 0.0], 4))]
    for shuffle in (False, True):
        parts = [list(d.DistributedSampler(range(7), 3, rank, shuffle=shuffle)) for rank in range(3)]
        told += [parts if not shuffle else sorted({i for part in parts for i in part})]
    told += [list(d.DistributedSampler(range(7), 3, 1, shuffle=False, drop_last=True))]
    calls = [
        lambda: d.RandomSampler([]), lambda: d.RandomSampler([1], num_samples=0), lambda: d.BatchSampler([1], 0, True),
        lambda: d.WeightedRandomSampler([1.0], 0), lambda: d.DistributedSampler(range(3), 2, 5),
    ]  # fmt: skip
    return [*told, *(error_of(call) for call in calls)]


@scenario
def loaders(t: Any) -> Any:
    d = library(t)
    pairs = d.TensorDataset(filled(t, 7, 2), t.arange(7))
    told = [list(d.DataLoader(pairs, 3)), len(d.DataLoader(pairs, 3)), list(d.DataLoader(pairs, 3, drop_last=True))]
    told += [list(d.DataLoader(pairs, batch_size=None)), list(d.DataLoader(pairs, batch_sampler=[[3, 1], [0]]))]
    told += [list(d.DataLoader(range(4), 2, sampler=[3, 1, 2])), list(d.DataLoader(range(4), 2, collate_fn=sum))]
    loader = d.DataLoader(range(5), 2)
    told += [loader.batch_size, loader.drop_last, loader.num_workers, loader.prefetch_factor]
    told += [type(loader.sampler).__name__, type(d.DataLoader(range(5), shuffle=True).sampler).__name__]
    options: list[dict[str, Any]] = [
        {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True},
        {"sampler": [1], "shuffle": True}, {"batch_sampler": [[1]], "batch_size": 2}, {"batch_size": 0},
        {"batch_size": None, "drop_last": True}, {"num_workers": 1, "prefetch_factor": -1},
        {"multiprocessing_context": "x", "num_workers": 1}, {"multiprocessing_context": "fork"},
    ]  # fmt: skip
    told += [error_of(lambda given=given: d.DataLoader([1, 2, 3], **given)) for given in options]
    return [*told, error_of(lambda: setattr(loader, "batch_size", 3))]


@pytest.mark.parametrize("tell", scenario, ids=lambda s: s.__name__)
def test_scenario(tell: Any) -> None:
    compare(tell)


def test_batches_in_one_piece_are_those_of_the_samples() -> None:
    """A TensorDataset's batch is read at once: as its samples collated, and with their errors."""

    class ByOne(data.TensorDataset):
        pass

    tensors = (tp.rand(9, 2), tp.arange(9), tp.rand(9, 1, requires_grad=True))
    part = [8, 0, 3, 3, 7]
    for quick, slow in zip(
        DataLoader(data.Subset(data.TensorDataset(*tensors), part), 3),
        DataLoader(data.Subset(ByOne(*tensors), part), 3),
        strict=True,
    ):
        assert [type(quick), len(quick)] == [type(slow), len(slow)] == [list, 3]
        assert all(tp.equal(a, b) and a.requires_grad == b.requires_grad for a, b in zip(quick, slow, strict=True))
    for dataset in (data.TensorDataset(*tensors), ByOne(*tensors)):
        with pytest.raises(IndexError):
            list(DataLoader(dataset, 2, sampler=[0, 9]))


# ---- order ----


class Squares(data.Dataset[Any]):
    """Squares as tensors; some samples are trouble."""

    def __init__(self, n: int = 20, trouble: dict[int, Any] | None = None) -> None:
        self.n, self.trouble = n, trouble or {}

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        if i in self.trouble:
            self.trouble[i]()
        return tp.tensor([i * i]), i


def epochs(workers: int, **options: Any) -> list[Any]:
    tp.manual_seed(3)
    loader = DataLoader(Squares(), 3, shuffle=True, num_workers=workers, **options)
    seen = [[b[1].tolist() for b in loader] for _ in range(2)]
    return [*seen, tp.rand(1).item()]


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"prefetch_factor": 5}], ids=str)
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_order_does_not_depend_on_the_workers(workers: int, options: Any) -> None:
    alone = epochs(0)
    assert epochs(workers, **options) == alone
    assert sorted(i for batch in alone[0] for i in batch) == list(range(20)) and alone[0] != alone[1]


def test_a_generator_of_its_own() -> None:
    def order() -> Any:
        loader = DataLoader(Squares(), 4, shuffle=True, generator=tp.Generator().manual_seed(5), num_workers=1)
        return [b[1].tolist() for b in loader]

    tp.manual_seed(0)
    first = order()
    tp.manual_seed(1)
    assert order() == first


def test_order_as_they_come() -> None:
    slow = {0: lambda: time.sleep(0.5)}
    loader = DataLoader(Squares(6, slow), 1, num_workers=2, in_order=False)
    seen = [b[1].item() for b in loader]
    assert sorted(seen) == list(range(6)) and seen[0] != 0


# ---- workers ----


class About(data.IterableDataset[Any]):
    """What each worker knows of itself, some times."""

    def __init__(self, times: int = 2) -> None:
        self.times = times

    def __iter__(self) -> Any:
        info = data.get_worker_info()
        assert info is not None and info.num_workers == 2 and info.dataset is not None
        for _ in range(self.times + info.id):
            yield info.id, os.getpid(), tp.rand(1).item(), info.seed


def test_iterable_dataset_in_workers() -> None:
    seen = list(DataLoader(About(), batch_size=None, num_workers=2))
    assert sorted(s[0] for s in seen) == [0, 0, 1, 1, 1]
    assert len({s[1] for s in seen}) == 2 and len({s[2] for s in seen}) == 5 and len({s[3] for s in seen}) == 2
    batches = list(DataLoader(About(3), batch_size=2, num_workers=2))
    assert sorted(b[0].tolist() for b in batches) == [[0], [0, 0], [1, 1], [1, 1]]
    assert data.get_worker_info() is None


def test_persistent_workers_stay() -> None:
    loader = DataLoader(About(), batch_size=None, num_workers=2, persistent_workers=True)
    first, second = ({s[1] for s in loader} for _ in range(2))
    assert first == second
    fresh = DataLoader(About(), batch_size=None, num_workers=2)
    assert {s[1] for s in fresh} != {s[1] for s in fresh}


def test_an_epoch_that_was_left_is_dropped() -> None:
    loader = DataLoader(Squares(), 2, num_workers=2, persistent_workers=True)
    next(iter(loader))
    assert [b[1].tolist()[0] for b in loader] == list(range(0, 20, 2))


def _mark(number: int) -> None:
    os.environ["TENSORPY_TEST_WORKER"] = str(number)


class Marks(data.Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> str:
        return os.environ["TENSORPY_TEST_WORKER"]


def test_worker_init_fn() -> None:
    assert [b[0] for b in DataLoader(Marks(), num_workers=2, worker_init_fn=_mark)] == ["0", "1", "0", "1"]


def _fail(kind: type[Exception]) -> Any:
    def function() -> Any:
        raise kind("the sample is bad")

    return function


class Picky(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} {b}")


@pytest.mark.parametrize("kind", [ValueError, KeyError, IndexError])
def test_exceptions_come_with_their_traceback(kind: type[Exception]) -> None:
    loader = DataLoader(Squares(8, {5: _fail(kind)}), 2, num_workers=2)
    seen = []
    with pytest.raises(kind) as caught:
        for batch in loader:
            seen.append(batch[1].tolist())
    assert seen == [[0, 1], [2, 3]]
    text = str(caught.value)
    assert f"Caught {kind.__name__} in DataLoader worker process 0" in text
    assert "self.trouble[i]()" in text and "the sample is bad" in text


def test_exceptions_that_cannot_be_made_again() -> None:
    def trouble() -> None:
        raise Picky(1, 2)

    with pytest.raises(RuntimeError, match="Caught Picky"):
        list(DataLoader(Squares(2, {0: trouble}), num_workers=1))


def test_a_failing_start() -> None:
    def start(number: int) -> None:
        raise OSError("no start")

    with pytest.raises(OSError, match="no start"):
        list(DataLoader(Squares(2), num_workers=1, worker_init_fn=start))


@pytest.mark.parametrize("persistent", [False, True])
def test_a_result_that_cannot_be_sent(persistent: bool) -> None:
    class Functions(Squares):
        def __getitem__(self, index: int) -> Any:
            return (lambda: index) if index == 1 else index

    loader = DataLoader(Functions(3), None, num_workers=1, persistent_workers=persistent)
    batches = iter(loader)
    assert next(batches) == 0
    with pytest.raises(Exception, match=r"(?s)worker process 0, whose result cannot be sent.*lambda"):
        next(batches)


def test_a_class_of_errors_that_cannot_be_sent() -> None:
    class Local(Exception):
        pass

    class Failing(Squares):
        def __getitem__(self, index: int) -> Any:
            raise Local("of a function")

    with pytest.raises(RuntimeError, match=r"(?s)Caught Local.*of a function"):
        list(DataLoader(Failing(3), None, num_workers=1))


def test_a_worker_that_dies_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock is asked: the main process waits for the workers' ends themselves."""
    waited: list[Any] = []
    module = sys.modules["tensorpy.utils.data.dataloader"]
    wait = module.wait
    monkeypatch.setattr(module, "wait", lambda things, timeout: waited.append((len(things), timeout)) or wait(things))
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Squares(6, {0: lambda: os._exit(0)}), num_workers=2))
    assert waited and set(waited) == {(3, None)}


def test_a_worker_that_dies() -> None:
    loader = DataLoader(Squares(6, {3: lambda: os.kill(os.getpid(), signal.SIGKILL)}), num_workers=2)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(loader)


def test_a_worker_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["tensorpy.utils.data.dataloader"], "JOIN_WAIT", 0.1)
    loader = DataLoader(Squares(2, {0: lambda: time.sleep(60)}), num_workers=1, timeout=0.3)
    with pytest.raises(RuntimeError, match=r"timed out after 0\.3 seconds"):
        list(loader)


def test_spawned_workers() -> None:
    loader = DataLoader(Squares(), 5, num_workers=1, multiprocessing_context="spawn")
    assert [b[1].tolist() for b in loader] == [list(range(i, i + 5)) for i in (0, 5, 10, 15)]


# ---- no process stays behind ----

SCRIPT = """
import os, sys, time
import tensorpy as tp
import tensorpy.utils.data._utils.worker as worker
from tensorpy.utils.data import DataLoader, Dataset

worker.PARENT_CHECK = 0.2

class Slow(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, i):
        time.sleep({sleep})
        return tp.zeros({size})

iterator = iter(DataLoader(Slow(), num_workers=2))
next(iterator)
print(*(w.pid for w in iterator._workers), flush=True)
{end}
"""


# In short steps: a signal between Python's look for one and the system call does not wake the sleep that begins.
SLEEP = "for _ in range(600): time.sleep(0.1)"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pids: list[int]) -> bool:
    for _ in range(200):
        if not any(map(is_running, pids)):
            return True
        time.sleep(0.05)
    return False


def started(sleep: float, size: int, end: str) -> tuple[Any, list[int]]:
    code = SCRIPT.format(sleep=sleep, size=size, end=end)
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, [int(pid) for pid in process.stdout.readline().split()]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked for in /proc")
@pytest.mark.parametrize(
    ("end", "signal_of", "everyone"),
    [
        ("", None, False),
        ("del iterator; print('deleted', flush=True)", None, False),
        (SLEEP, signal.SIGINT, False),
        (SLEEP, signal.SIGINT, True),
        ("list(iterator)", signal.SIGINT, True),
        (SLEEP, signal.SIGKILL, False),
    ],
)
@pytest.mark.parametrize(("sleep", "size"), [(0.01, 1), (0.0, 200_000)])
def test_no_process_stays_behind(sleep: float, size: int, end: str, signal_of: Any, everyone: bool) -> None:
    """At the end, on Ctrl-C to the process or to all, and when the process is killed; also if batches fill the pipe."""
    process, workers = started(sleep, size, end)
    assert len(workers) == 2
    if signal_of is not None:
        (os.killpg if everyone else os.kill)(process.pid, signal_of)
    _, errors = process.communicate(timeout=20)
    assert wait_for_end(workers), "a worker is still there"
    assert ("KeyboardInterrupt" in errors) == (signal_of == signal.SIGINT)
    # Python prints, and goes on, where the signal falls into a callback of the garbage collector's.
    ignored = errors.count("Exception ignored in")
    assert errors.count("Traceback") - ignored == (signal_of == signal.SIGINT)


def test_pipes_are_made_of_pipes():
    from tensorpy.utils.data.datapipes.iter import IterableWrapper
    from tensorpy.utils.data.datapipes.map import SequenceWrapper

    tens = IterableWrapper(range(10))
    assert list(tens.map(lambda x: x * x).filter(lambda x: x % 2 == 1)) == [1, 9, 25, 49, 81]
    batches = tens.batch(4)
    assert list(batches) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] and len(batches) == 3
    assert list(tens.batch(4, drop_last=True).unbatch()) == list(range(8))
    assert list(tens.batch(2).batch(2).unbatch(-1)) == list(range(10))
    shuffled = tens.shuffle(buffer_size=4).set_seed(3)
    once = list(shuffled)
    assert sorted(once) == list(range(10)) and once != list(range(10)) and list(shuffled.set_seed(3)) == once
    assert list(shuffled.set_shuffle(False)) == list(range(10))
    shard = tens.sharding_filter()
    shard.apply_sharding(3, 1)
    assert list(shard) == [1, 4, 7] and len(shard) == 3
    pairs = tens.zip(IterableWrapper("abc"))
    assert list(pairs) == [(0, "a"), (1, "b"), (2, "c")] and len(pairs) == 3
    assert list(pairs.map(str.upper, input_col=1)) == [(0, "A"), (1, "B"), (2, "C")]
    assert list(pairs.map(lambda n, s: s * n, input_col=[0, 1], output_col=-1)) == [
        (0, "a", ""),
        (1, "b", "b"),
        (2, "c", "cc"),
    ]
    assert list(IterableWrapper("ab").mux(IterableWrapper("xyz"))) == list("axby")
    assert list(IterableWrapper("ab").concat(IterableWrapper("xyz"))) == list("abxyz")
    assert [b.tolist() for b in tens.batch(5).collate()] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    words = SequenceWrapper(["a", "b", "c"])
    assert list(words.map(str.upper).batch(2)) == [["A", "B"], ["C"]] and words.concat(words)[4] == "b"
    assert list(words.zip(words)) == [("a", "a"), ("b", "b"), ("c", "c")]
    loaded = DataLoader(tens.map(float), batch_size=5)
    assert [batch.tolist() for batch in loaded] == [[0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0, 9.0]]


def test_a_class_of_pipes_becomes_a_method():
    from tensorpy.utils.data import (
        IterDataPipe,
        functional_datapipe,
        guaranteed_datapipes_determinism,
        non_deterministic,
    )
    from tensorpy.utils.data.datapipes.iter import IterableWrapper

    @functional_datapipe("twice_for_a_test")
    class Twice(IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for x in self.source:
                yield from (x, x)

    assert list(IterableWrapper("ab").twice_for_a_test()) == list("aabb")
    with pytest.raises(Exception, match="already taken"):
        functional_datapipe("twice_for_a_test")(Twice)
    marked = non_deterministic(Twice)
    assert list(marked("a")) == ["a", "a"]
    with guaranteed_datapipes_determinism(), pytest.raises(TypeError):
        marked("a")
    del IterDataPipe.functions["twice_for_a_test"]


def test_a_library_may_change_a_loader() -> None:
    class Once(DataLoader):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._DataLoader__initialized = False
            self.batch_sampler = [[1, 0]]
            self._DataLoader__initialized = True

    loader = Once(tp.arange(4), batch_size=2)
    assert [b.tolist() for b in loader] == [[1, 0]]
    with pytest.raises(ValueError, match="batch_sampler"):
        loader.batch_sampler = []


def test_more_workers_than_processors() -> None:
    with pytest.warns(UserWarning, match="excessive|suggested max number of worker"):
        DataLoader(Squares(2), num_workers=10_000)


class Longer(data.IterableDataset[int]):
    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        return iter(range(5))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_iterable_dataset_that_is_longer_than_it_says(workers: int) -> None:
    loader = DataLoader(Longer(), None, num_workers=workers)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match=r"was reported to be 3.*but 4 samples have been fetched"):
        assert list(loader) == list(range(5))


def test_a_loader_has_a_type_of_its_batches() -> None:
    assert DataLoader[int].__origin__ is DataLoader


def test_seeds_of_numpy_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    from tensorpy.utils.data._utils.worker import _generate_state

    for seed, number in ((0, 0), (5, 1), (2**40 + 3, 7), (2**63 - 1, 100)):
        assert _generate_state(seed, number) == torch.utils.data._utils.worker._generate_state(seed, number)


def test_what_ended_a_process_can_be_sent_on() -> None:
    from tensorpy.multiprocessing import ProcessExitedException, ProcessRaisedException

    raised = pickle.loads(pickle.dumps(ProcessRaisedException("why", 1, 20)))
    assert (raised.msg, raised.error_index, raised.error_pid, raised.pid) == ("why", 1, 20, 20)
    ended = pickle.loads(pickle.dumps(ProcessExitedException("why", 1, 20, -6, "SIGABRT")))
    assert (ended.error_index, ended.exit_code, ended.signal_name) == (1, -6, "SIGABRT")


def _end(index: int, how: str) -> None:
    if index == 0:
        os.kill(os.getpid(), signal.SIGKILL) if how == "signal" else sys.exit(7)
    time.sleep(5)


@pytest.mark.parametrize("how, words", [("signal", "signal SIGKILL"), ("code", "exit code 7")])
def test_how_a_process_ended_is_said(how: str, words: str) -> None:
    from tensorpy import multiprocessing

    with pytest.raises(multiprocessing.ProcessExitedException, match=f"process 0 terminated with {words}") as error:
        multiprocessing.start_processes(_end, args=(how,), nprocs=2, start_method="fork")
    assert error.value.signal_name == ("SIGKILL" if how == "signal" else None)


def _end_or_sleep(index: int, seconds: float) -> None:
    if index == 0:
        sys.exit(7)
    time.sleep(seconds)


@pytest.mark.parametrize("grace_period", [None, 5])
def test_the_others_end_by_themselves_or_are_ended(grace_period: float | None, caplog: Any) -> None:
    from tensorpy import multiprocessing

    seconds = 30.0 if grace_period is None else 0.2
    started = multiprocessing.start_processes(_end_or_sleep, (seconds,), 2, join=False, start_method="fork")
    assert started is not None
    with pytest.raises(multiprocessing.ProcessExitedException):
        while not started.join(grace_period=grace_period):
            pass
    told = [f"Terminating process {started.processes[1].pid} via signal SIGTERM"] if grace_period is None else []
    assert caplog.messages == told and not any(process.is_alive() for process in started.processes)


class _Slow:
    def __call__(self, index: int) -> None:
        pass

    def __getstate__(self) -> dict[str, Any]:
        time.sleep(0.5)
        return {}


def test_a_server_starts_processes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorpy import multiprocessing

    monkeypatch.setenv(multiprocessing.ENV_VAR_PARALLEL_START, "1")
    begin = time.monotonic()
    started = multiprocessing.start_processes(_Slow(), nprocs=6, join=False, start_method="forkserver")
    assert started is not None and time.monotonic() - begin < 0.5 * 6
    while not started.join():
        pass


def test_programs_say_how_samples_of_their_types_are_put_together() -> None:
    from tensorpy.utils.data._utils.collate import collate, default_collate, default_collate_fn_map

    class Own:
        pass

    def counted(batch, *, collate_fn_map=None):
        assert collate_fn_map is not None
        return len(batch)

    with pytest.raises(TypeError):
        default_collate([Own()])
    default_collate_fn_map[Own] = counted
    try:
        assert default_collate([(Own(), 1), (Own(), 2)])[0] == 2
        assert list(tp.utils.data.DataLoader([Own(), Own(), Own()], batch_size=2)) == [2, 1]
    finally:
        del default_collate_fn_map[Own]
    mine = {Own: counted, int: lambda batch, *, collate_fn_map: sum(batch)}
    assert collate([{"a": 1, "b": [Own()]}, {"a": 2, "b": [Own()]}], collate_fn_map=mine) == {"a": 3, "b": [2]}
    for alone in (1, tp.ones(1), "a", {"a": 1}):
        with pytest.raises(TypeError):
            collate([alone])


def test_pipes_are_generic() -> None:
    class Numbers(data.IterDataPipe[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    assert Numbers.__orig_bases__ == (data.IterDataPipe[int],)
    assert list(Numbers().map(str)) == ["0", "1", "2"]
    for pipe in (Numbers().batch(2), Numbers().concat(Numbers()), Numbers().zip(Numbers())):
        with pytest.raises(TypeError, match=r"instance doesn't have valid length$"):
            len(pipe)
    for name, words in (("concat", "Expected all inputs to be"), ("zip", "All inputs are required to be")):
        with pytest.raises(TypeError, match=f"{words} `IterDataPipe`"):
            getattr(Numbers(), name)(5)
    assert data.MapDataPipe[int].__args__ == (int,)


def test_pipes_have_their_methods_at_once() -> None:
    """In a process that has not imported them."""
    code = """
import tensorpy.utils.data as data
class Numbers(data.IterDataPipe):
    def __iter__(self):
        return iter(range(3))
class Places(data.MapDataPipe):
    def __getitem__(self, index):
        return index
    def __len__(self):
        return 2
print(list(Numbers().map(str).batch(2)), list(Places().map(str)), hasattr(Numbers(), "nothing"))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[['0', '1'], ['2']] ['0', '1'] False\n"
