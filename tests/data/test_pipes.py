"""utils.data.datapipes: several pipes of one, iterators, shares, groups, graphs and snapshots; beside PyTorch's."""

from __future__ import annotations

import importlib
import io
import json
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.utils.data import DataLoader, IterDataPipe, graph_settings
from tensorpy.utils.data.datapipes import iter as pipes
from tensorpy.utils.data.datapipes import map as places
from tensorpy.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from tensorpy.utils.data.datapipes.utils.common import StreamWrapper
from tensorpy.utils.data.datapipes.utils.decoder import basichandlers
from tensorpy.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration as go_on
from tensorpy.utils.data.graph import traverse_dps

pytestmark = pytest.mark.filterwarnings("ignore:(Lambda|Local) function is not supported by pickle")
OTHER = "This iterator has been invalidated because another"
AGAIN = "Some child DataPipes are not exhausted"


def tens() -> Any:
    return pipes.IterableWrapper(range(10))


def tenfold(x: int) -> int:
    return x * 10


def odd(x: int) -> int:
    return x % 2


class Noted(IterDataPipe[int]):
    """A pipe whose iterator is kept by the pipe."""

    def __init__(self) -> None:
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1
        self.left = iter(range(10))

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return next(self.left)


# ---- one iterator ----


@pytest.mark.parametrize("make", [tens, Noted, lambda: tens().map(int).filter(bool)], ids=["written", "own", "chain"])
def test_a_new_iterator_ends_the_one_before(make: Callable[[], Any]) -> None:
    pipe = make()
    whole = list(pipe)
    assert list(pipe) == whole and pipe._number_of_samples_yielded == len(whole)
    first = iter(pipe)
    assert next(first) == whole[0]
    second = iter(pipe)
    assert next(second) == whole[0]
    with pytest.raises(RuntimeError, match=OTHER):
        next(first)
    assert list(second) == whole[1:]
    with pytest.raises(RuntimeError, match=OTHER):
        list(zip(pipe, pipe, strict=False))


def test_a_subclass_calls_what_it_overrides() -> None:
    class Doubled(pipes.IterableWrapper):
        def __iter__(self) -> Iterator[Any]:
            for sample in super().__iter__():
                yield 2 * sample

    assert list(Doubled(range(3))) == [0, 2, 4]


def test_samples_are_counted_up_to_an_error() -> None:
    class Broken(IterDataPipe[int]):
        def __iter__(self) -> Iterator[int]:
            yield 1
            yield 2
            raise ZeroDivisionError

    pipe = Broken()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            list(pipe)
        assert pipe._number_of_samples_yielded == 2
    noted = Noted()
    assert list(noted) == list(noted) and noted.resets == 2


# ---- several pipes of one ----


def test_forks_read_the_same_samples() -> None:
    one, two, three = tens().map(lambda x: [x]).fork(3)
    samples = list(one)
    assert [a is b is c for a, b, c in zip(samples, two, three, strict=True)] == [True] * 10 and len(two) == 10
    assert samples == [[x] for x in range(10)]
    for how, alike in (("shallow", True), ("deep", False)):
        one, two = tens().map(lambda x: [[x]]).fork(2, copy=how)
        assert all(a is not b and (a[0] is b[0]) == alike for a, b in zip(one, two, strict=True))
    source = tens()
    assert source.fork(1) is source


def test_forks_are_read_in_rounds() -> None:
    one, two = tens().fork(2)
    first, second = iter(one), iter(two)
    assert next(first) == next(second) == 0
    with pytest.warns(UserWarning, match=AGAIN):
        again = iter(one)
    for ended in (first, second):
        with pytest.raises(RuntimeError, match=OTHER):
            next(ended)
    assert list(again) == list(two) == list(range(10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(zip(one, two, strict=True)) == [(x, x) for x in range(10)]


def test_what_waits_for_a_fork_is_bounded() -> None:
    one, two = tens().fork(2, buffer_size=1)
    assert list(zip(one, two, strict=True)) == [(x, x) for x in range(10)]
    one, two = tens().fork(2, buffer_size=4)
    reader = iter(one)
    assert [next(reader) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(BufferError, match="buffer size 4"):
        next(reader)
    one, two = tens().demux(2, lambda x: x // 5, buffer_size=4)
    with pytest.raises(BufferError, match="buffer size 4"):
        list(two)
    with pytest.warns(UserWarning, match="Unlimited buffer size"):
        one, two = tens().demux(2, lambda x: x // 5, buffer_size=-1)
    assert list(two) == [5, 6, 7, 8, 9] and list(one) == [0, 1, 2, 3, 4]


def test_demux_asks_where_samples_go() -> None:
    even, uneven = tens().demux(2, odd)
    assert list(even.mux(uneven)) == list(range(10))
    some, others = tens().demux(2, lambda x: None if x % 5 == 0 else x % 2, drop_none=True)
    assert list(some) == [2, 4, 6, 8] and list(others) == [1, 3, 7, 9]
    for answer in (None, 2, -1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            list(tens().demux(2, lambda x, answer=answer: answer)[0])
    with pytest.raises(TypeError, match="valid length"):
        len(even)


@pytest.mark.parametrize("call", ["fork(0)", "fork(2, copy='x')", "demux(0, int)"])
def test_refused_forks(call: str) -> None:
    with pytest.raises(ValueError, match=r"num_instances|copy method"):
        eval(f"pipe.{call}", {"pipe": tens()})


# ---- groups, shares and orders ----

GROUPS: list[dict[str, Any]] = [
    {},
    {"group_size": 2},
    {"group_size": 2, "keep_key": True},
    {"buffer_size": 3},
    {"buffer_size": 3, "group_size": 2},
    {"buffer_size": 3, "group_size": 3, "guaranteed_group_size": 2},
    {"buffer_size": 3, "group_size": 3, "guaranteed_group_size": 2, "drop_remaining": True},
    {"buffer_size": 3, "group_size": 3, "drop_remaining": True},
    {"group_size": 0},
    {"group_size": 5, "buffer_size": 4},
    {"guaranteed_group_size": 2},
    {"buffer_size": 0},
]


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("options", GROUPS, ids=str)
def test_groups_are_pytorchs(options: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    found = []
    for package in ("tensorpy", "torch"):
        wrapper = importlib.import_module(f"{package}.utils.data.datapipes.iter").IterableWrapper
        samples = [*range(10), 0, 3, 6]
        found.append(outcome(lambda: list(wrapper(samples).groupby(lambda x: x % 4, **options))))  # noqa: B023
    assert found[0] == found[1]


def test_groups() -> None:
    words = pipes.IterableWrapper(["a1", "b1", "a2", "c1", "b2"])
    assert list(words.groupby(lambda w: w[0], group_size=2)) == [["a1", "a2"], ["b1", "b2"], ["c1"]]
    with pytest.raises(RuntimeError, match="Failed to group items"):
        list(words.groupby(lambda w: w[0], group_size=2, buffer_size=2))


def test_shares_of_groups() -> None:
    pipe = pipes.IterableWrapper(range(90))
    stages = []
    for group in (SHARDING_PRIORITIES.DISTRIBUTED, SHARDING_PRIORITIES.MULTIPROCESSING, 300):
        pipe = pipe.sharding_filter(sharding_group_filter=group)
        stages.append(pipe)
    for stage in stages:
        stage.apply_sharding(2, 1, sharding_group=SHARDING_PRIORITIES.DISTRIBUTED)
        stage.apply_sharding(5, 3, sharding_group=SHARDING_PRIORITIES.MULTIPROCESSING)
        stage.apply_sharding(3, 1, sharding_group=300)
    assert list(pipe) == [17, 47, 77] and len(pipe) == 3
    with pytest.raises(RuntimeError, match="cannot mix DEFAULT"):
        pipe.apply_sharding(2, 1)
    with pytest.raises(ValueError, match="should be smaller"):
        tens().sharding_filter().apply_sharding(2, 2)
    shares = [pipes.IterableWrapper(range(7)).sharding_filter() for _ in range(3)]
    for number, share in enumerate(shares):
        share.apply_sharding(3, number)
    assert [len(share) for share in shares] == [len(list(share)) for share in shares] == [3, 2, 2]


def test_a_pipe_is_shared_once() -> None:
    one, two = tens().sharding_filter().fork(2)
    assert list(graph_settings.apply_sharding(one.zip(two), 3, 0)) == [(x, x) for x in (0, 3, 6, 9)]
    for twice in (tens().sharding_filter().sharding_filter(), two.zip(one.sharding_filter())):
        with pytest.raises(RuntimeError, match="Sharding twice"):
            graph_settings.apply_sharding(twice, 3, 0)


class OwnShare(IterDataPipe[int]):
    def __init__(self, source: Any) -> None:
        self.source, self.share = source, (1, 0)

    def apply_sharding(self, num_of_instances: int, instance_id: int) -> None:
        self.share = num_of_instances, instance_id

    def __iter__(self) -> Iterator[int]:
        of, mine = self.share
        return (sample for place, sample in enumerate(self.source) if place % of == mine)


@pytest.mark.parametrize("shared", [lambda pipe: pipe.sharding_filter(), OwnShare], ids=["filter", "own"])
def test_workers_read_a_share_each(shared: Callable[[Any], Any]) -> None:
    loader = DataLoader(shared(tens().map(tenfold)), batch_size=None, num_workers=2)
    assert sorted(loader) == list(range(0, 100, 10))


def test_orders_are_pytorchs() -> None:
    pytest.importorskip("torch")
    orders = []
    for package in ("tensorpy", "torch"):
        theirs = [importlib.import_module(f"{package}.utils.data.datapipes.{kind}") for kind in ("iter", "map")]
        pipe, place = theirs[0].IterableWrapper(range(9)), theirs[1].SequenceWrapper(range(9))
        orders.append([list(made.shuffle(**kw).set_seed(5)) for made, kw in ((pipe, {"buffer_size": 4}), (place, {}))])
    assert orders[0] == orders[1]


def test_places_in_a_random_order() -> None:
    named = places.SequenceWrapper({"a": 1, "b": 2, "c": 3}).shuffle(indices=["a", "b", "c"])
    assert sorted(named) == [1, 2, 3] and len(named) == 3 and list(named.set_shuffle(False)) == [1, 2, 3]
    with pytest.raises(TypeError, match="MapDataPipe"):
        places.Zipper(places.SequenceWrapper([1]), [2])
    with pytest.raises(IndexError, match="out of range"):
        places.Zipper(places.SequenceWrapper([1]))[1]


# ---- functions ----


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        (lambda a, b: a, None),
        (lambda a, b: a, 0),
        (lambda a: a, [0, 1]),
        (lambda *, a: a, 0),
        (lambda a, *rest, b: a, [0, 1]),
    ],
    ids="two none one named both".split(),
)
@pytest.mark.parametrize("method", ["map", "filter"])
def test_functions_take_the_columns(function: Any, columns: Any, method: str) -> None:
    with pytest.raises(ValueError, match="positional argument"):
        getattr(pipes.IterableWrapper([(1, 2)]), method)(function, input_col=columns)


def test_functions_that_other_processes_cannot_have_are_told() -> None:
    def local(x: int) -> int:
        return x

    for function, kind in ((lambda x: x, "Lambda"), (local, "Local")):
        for call in (tens().map, tens().groupby, places.SequenceWrapper([1]).map):
            with pytest.warns(UserWarning, match=f"^{kind} function is not supported by pickle"):
                call(function)
    with pytest.raises(TypeError, match="callable function is expected"):
        tens().map(3)
    with pytest.raises(ValueError, match="Boolean output is required"):
        list(tens().filter(int))


# ---- files ----


class Stream:
    def __init__(self) -> None:
        self.closed = 0

    def read(self) -> str:
        return "text"

    def close(self) -> None:
        self.closed += 1


def test_streams_are_closed_when_nobody_has_them() -> None:
    stream = Stream()
    wrapped = StreamWrapper(stream)
    assert wrapped.read() == "text" and {"read", "closed"} <= set(dir(wrapped)) and repr(stream) in repr(wrapped)
    assert isinstance(pickle.loads(pickle.dumps(wrapped)), StreamWrapper)
    StreamWrapper.close_streams([{"a": StreamWrapper(other := Stream())}])
    del wrapped
    assert stream.closed == other.closed == 1


def test_files_are_decoded_by_their_names(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("grün", encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps({"x": [1]}))
    (tmp_path / "c.cls").write_text("7")
    (tmp_path / "d.pyd").write_bytes(pickle.dumps(1))
    tp.save(tp.ones(2), tmp_path / "e.pt")
    opened = list(pipes.FileLister(str(tmp_path)).open_files(mode="b"))
    found = [value for _, value in pipes.IterableWrapper(opened, deepcopy=False).routed_decode(basichandlers)]
    assert found[:4] == ["grün", {"x": [1]}, 7, pickle.dumps(1)] and found[4].equal(tp.ones(2))
    assert all(stream.closed for _, stream in opened)
    decoded = pipes.RoutedDecoder([("a.png", io.BytesIO(b"12"))])
    decoded.add_handler(lambda extension, data: len(data) if extension == "png" else None)
    assert list(decoded) == [("a.png", 2)]


# ---- graphs and snapshots ----


def test_graphs_hold_what_pipes_are_made_of() -> None:
    source = tens()
    one, two = source.fork(2)
    last = one.map(tenfold).mux(two)
    graph = traverse_dps(last)
    reader = one.main_datapipe
    beneath = {id(reader): (reader, {id(source): (source, {})})}
    mapped = last.datapipes[0]
    assert graph == {id(last): (last, {id(mapped): (mapped, {id(one): (one, beneath)}), id(two): (two, beneath)})}
    assert len(graph_settings.get_all_graph_pipes(graph)) == 6
    assert traverse_dps(pipes.IterableWrapper(places.SequenceWrapper([1])))


class Circular(IterDataPipe[int]):
    """A pipe whose source calls a method of it."""

    def __init__(self) -> None:
        self.inner, self.more = tens().map(self.plus), 1

    def plus(self, x: int) -> int:
        return x + self.more

    def __iter__(self) -> Iterator[int]:
        yield from self.inner


def test_a_pipe_may_refer_to_itself() -> None:
    pipe = Circular()
    assert len(graph_settings.get_all_graph_pipes(traverse_dps(pipe))) == 3
    assert list(pickle.loads(pickle.dumps(pipe))) == list(range(1, 11))


def chained() -> Any:
    one, two = tens().map(tenfold).shuffle().batch(2).fork(2)
    return one.zip(two)


CHAINS = {"plain": tens, "own": Noted, "shuffled": lambda: tens().shuffle(buffer_size=4), "forked": chained}


@pytest.mark.parametrize("make", CHAINS.values(), ids=CHAINS)
def test_pipes_go_on_where_they_were(make: Callable[[], Any]) -> None:
    pipe = graph_settings.apply_random_seed(make(), tp.Generator().manual_seed(0))
    whole = list(pipe)
    go_on(pipe, 3, tp.Generator().manual_seed(0))
    with pytest.raises(RuntimeError, match="Snapshot restoration cannot be applied"):
        go_on(pipe, 3)
    assert list(pipe) == whole[3:] and pipe._number_of_samples_yielded == len(whole)
    if isinstance(pipe, Noted):
        return
    graph_settings.apply_random_seed(pipe, tp.Generator().manual_seed(0))
    reader = iter(pipe)
    assert [next(reader) for _ in range(3)] == whole[:3]
    sent = pickle.loads(pickle.dumps(pipe))
    assert sent._number_of_samples_yielded == 3
    go_on(sent, 3, tp.Generator().manual_seed(0))
    assert list(sent) == list(reader) == whole[3:]
    with pytest.raises(RuntimeError, match="exceeds the number of samples available: 10"):
        go_on(tens(), 11)


def test_hooks_see_what_is_pickled() -> None:
    IterDataPipe.set_getstate_hook(lambda state: {**state, "iterable": [7]})
    try:
        with pytest.raises(RuntimeError, match="override existing"):
            IterDataPipe.set_getstate_hook(dict)
        assert list(pickle.loads(pickle.dumps(tens()))) == [7]
    finally:
        IterDataPipe.set_getstate_hook(None)
    assert {"fork", "batch", "groupby"} <= set(dir(tens())) and tens().fork.__doc__ == pipes.Forker.__doc__
