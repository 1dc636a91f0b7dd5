"""Counts and events of a program (tensorpy.monitor), and what utils says of modules, devices and the machine."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.monitor import Aggregation, Event, Stat, log_event, register_event_handler, unregister_event_handler


@pytest.fixture
def heard() -> Any:
    events: list[Event] = []
    handle = register_event_handler(events.append)
    yield events
    unregister_event_handler(handle)


def test_events_reach_who_listens(heard: list[Event]) -> None:
    event = Event("saved", datetime(2026, 1, 1), {"bytes": 12, "path": "model.pt"})
    log_event(event)
    assert heard == [event]


def test_a_window_ends_by_its_samples(heard: list[Event]) -> None:
    kinds = [Aggregation.SUM, Aggregation.MEAN, Aggregation.COUNT, Aggregation.MIN, Aggregation.MAX, Aggregation.VALUE]
    stat = Stat("loss", kinds, timedelta(days=1), 2)
    stat.add(1.0)
    assert stat.count == 1 and stat.get()[Aggregation.VALUE] == 0.0 and not heard
    stat.add(3.0)
    (event,) = heard
    assert event.name == "torch.monitor.Stat" and stat.count == 0
    assert event.data == {
        "loss.sum": 4.0, "loss.mean": 2.0, "loss.count": 2, "loss.min": 1.0, "loss.max": 3.0, "loss.value": 3.0,
    }  # fmt: skip
    stat.add(9.0)  # until the window's time is over it takes no more
    assert stat.count == 0 and stat.get()[Aggregation.SUM] == 4.0 and len(heard) == 1


def test_a_window_ends_by_its_time(heard: list[Event]) -> None:
    stat = Stat("loss", [Aggregation.COUNT], timedelta(0))
    stat.add(1.0)
    stat.add(1.0)
    assert [event.data for event in heard] == [{"loss.count": 1}]
    assert stat.count == 1 and stat.get() == {Aggregation.COUNT: 1.0}


def test_numbers_of_stats_go_to_a_writer() -> None:
    written: list[Any] = []

    class Writer:
        def add_scalar(self, name: str, value: float, walltime: float) -> None:
            written.append((name, value, walltime))

    handler = tp.monitor.TensorboardEventHandler(Writer())
    handler(Event("other", datetime.now(), {"a": 1}))
    handler(Event("torch.monitor.Stat", datetime.fromtimestamp(5), {"a.sum": 1.5}))
    assert written == [("a.sum", 1.5, 5.0)]
    with pytest.raises(TypeError):
        handler(Event("torch.monitor.Stat", datetime.now(), {"a.sum": "x"}))


def test_modules_that_are_called() -> None:
    from tensorpy.utils.module_tracker import ModuleTracker

    seen: list[set[str]] = []

    class Model(tp.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = tp.nn.Linear(2, 2)
            self.inner.register_forward_pre_hook(lambda *unused: seen.append(set(tracker.parents)))

        def forward(self, x: tp.Tensor) -> Any:
            return self.inner(x)

    with ModuleTracker() as tracker:
        Model()(tp.ones(1, 2))
    assert seen == [{"Global", "Model", "Model.inner"}] and tracker.parents == {"Global"}


@pytest.mark.parametrize("checkpointed", [False, True])
def test_modules_whose_gradients_are_computed(checkpointed: bool) -> None:
    from tensorpy.utils.checkpoint import checkpoint
    from tensorpy.utils.module_tracker import ModuleTracker

    seen: list[tuple[set[str], bool]] = []

    class Inner(tp.nn.Module):
        def forward(self, x: tp.Tensor) -> tp.Tensor:
            y = x.sin()
            y.register_hook(lambda grad: seen.append((set(tracker.parents), tracker.is_bw)))
            return y.cos()

    class Model(tp.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Inner(), Inner()

        def forward(self, x: dict[str, tp.Tensor]) -> list[tp.Tensor]:
            return [self.b(self.a(x["x"]))]

    model = Model()
    for times in (1, 2):
        with ModuleTracker() as tracker:
            x = {"x": tp.ones(2, requires_grad=True)}
            (y,) = checkpoint(model, x, use_reentrant=False) if checkpointed else model(x)
            y.sum().backward()
            assert tracker.parents == {"Global"} and not tracker.is_bw
        assert seen[-2:] == [({"Global", "Model", f"Model.{n}"}, True) for n in "ba"] and len(seen) == 2 * times


def test_functions_on_a_device() -> None:
    from tensorpy.utils._device import DeviceContext, set_device

    assert set_device("meta")(tp.zeros)(2).device.type == "meta"
    with DeviceContext("meta"):
        assert tp.ones(2).device.type == "meta"


def test_facts_about_the_machine() -> None:
    from tensorpy.utils.collect_env import get_env_info, get_pretty_env_info

    assert get_env_info().torch_version == str(tp.__version__)
    assert get_pretty_env_info().startswith(f"PyTorch version: {tp.__version__}\n")
