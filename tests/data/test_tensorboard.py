"""utils.tensorboard: what is logged is read back by tensorboard itself, and is what PyTorch's writer logs."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorpy as tp

pytest.importorskip("tensorboard")
accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

from tensorpy.utils.tensorboard import FileWriter, SummaryWriter  # noqa: E402
from tensorpy.utils.tensorboard.summary import png  # noqa: E402

NUMBERS = np.sin(np.arange(200.0)) * 3


def read(folder: Path) -> Any:
    events = accumulator.EventAccumulator(
        str(folder), size_guidance=dict.fromkeys(("tensors", "histograms", "images"), 0)
    )
    events.Reload()
    return events


def numbers(log: Any, t: Any) -> None:
    for step in range(5):
        log.add_scalar("loss", 1 / (step + 1), step, walltime=step)
        log.add_scalar("of a tensor", t.tensor(0.5 + step), step, walltime=step)
        log.add_scalar("new", step, step, walltime=step, new_style=True)
        log.add_scalar("double", step / 3, step, walltime=step, new_style=True, double_precision=True)
    log.add_tensor("all of it", t.arange(6.0).reshape(2, 3), 1)
    log.add_histogram_raw("counted", 0, 3, 4, 6.0, 14.0, [1.0, 2.0, 3.0], [1, 2, 1], 7)


def histograms(log: Any, t: Any) -> None:
    log.add_histogram("growing", t.tensor(NUMBERS.tolist()), 0)
    log.add_histogram("ten", NUMBERS, 1, bins=10)
    log.add_histogram("some", NUMBERS, 1, bins=[-4.0, -1.0, 0.0, 0.5, 4.0])
    log.add_histogram("a rule", NUMBERS, 1, bins="auto")
    log.add_histogram("few", NUMBERS, 1, max_bins=50)
    log.add_histogram("one value", t.ones(3), 1)
    log.add_histogram("16 bits", t.ones(3, dtype=t.bfloat16), 1)


def pictures(log: Any, t: Any) -> None:
    picture = np.abs(np.sin(np.arange(3 * 4 * 5.0))).reshape(3, 4, 5).astype(np.float32)
    log.add_image("floats", t.tensor(picture.tolist()), 0)
    log.add_image("bytes", (picture * 255).astype(np.uint8), 0)
    log.add_image("gray", picture[0], 0, dataformats="HW")
    log.add_image("behind", np.moveaxis(picture, 0, -1), 0, dataformats="HWC")
    log.add_images("several", np.stack([picture, 1 - picture, picture / 2]), 0)


def others(log: Any, t: Any) -> None:
    log.add_text("words", "**bold** ö", 3)
    log.add_audio("tone", t.tensor(np.sin(np.arange(50.0)).tolist()), 0, sample_rate=8000)
    labels, scores = np.arange(40) % 3 == 0, np.abs(np.sin(np.arange(40.0)))
    log.add_pr_curve("curve", labels, t.tensor(scores.tolist()), 0, num_thresholds=20)
    log.add_pr_curve_raw("raw", *([np.arange(5.0)] * 6), global_step=0, num_thresholds=5)
    log.add_custom_scalars({"group": {"both": ["Multiline", ["a", "b"]], "band": ["Margin", ["v", "l", "u"]]}})
    log.add_mesh("shape", t.arange(12.0).reshape(1, 4, 3), faces=t.tensor([[[0, 1, 2]]]), config_dict={"a": 1})


def written(library: str, tell: Callable[[Any, Any], None], folder: Path) -> Any:
    torch = pytest.importorskip("torch") if library == "torch" else None
    if torch is None:
        with SummaryWriter(folder) as log:
            tell(log, tp)
    else:
        from torch.utils.tensorboard import SummaryWriter as Theirs

        with Theirs(str(folder)) as log:
            tell(log, torch)
    return read(folder)


def pixels_of(image: Any) -> Any:
    pil = pytest.importorskip("PIL.Image")
    return np.array(pil.open(io.BytesIO(image.encoded_image_string)))


def same_tensors(got: Any, expected: Any) -> None:
    """Messages hold their elements in one of two ways."""
    from tensorboard.util import tensor_util

    assert got.dtype == expected.dtype
    np.testing.assert_allclose(*map(tensor_util.make_ndarray, (got, expected)), atol=1e-6) if got.dtype != 7 else None
    assert list(got.string_val) == list(expected.string_val)


@pytest.mark.parametrize("tell", [numbers, histograms, pictures, others], ids=lambda f: f.__name__)
def test_as_torch_logs_it(tell: Any, tmp_path: Path) -> None:
    ours, theirs = (written(library, tell, tmp_path / library) for library in ("tensorpy", "torch"))
    assert ours.Tags() == theirs.Tags()
    for tag in ours.Tags()["scalars"]:
        assert ours.Scalars(tag) == theirs.Scalars(tag)
    for tag in ours.Tags()["histograms"]:
        for g, e in zip(ours.Histograms(tag), theirs.Histograms(tag), strict=True):
            assert g.step == e.step
            for name in ("min", "max", "num", "sum", "sum_squares", "bucket_limit", "bucket"):
                np.testing.assert_allclose(getattr(g.histogram_value, name), getattr(e.histogram_value, name), 1e-6)
    for tag in ours.Tags()["images"]:
        for g, e in zip(ours.Images(tag), theirs.Images(tag), strict=True):
            assert (g.width, g.height, g.step) == (e.width, e.height, e.step)
            assert np.array_equal(pixels_of(g), pixels_of(e))
    for tag in ours.Tags()["audio"]:
        for g, e in zip(ours.Audio(tag), theirs.Audio(tag), strict=True):
            sounds = [wave.open(io.BytesIO(a.encoded_audio_string)).readframes(100) for a in (g, e)]
            assert sounds[0] == sounds[1] and g.content_type == e.content_type and g.sample_rate == e.sample_rate
    for tag in ours.Tags()["tensors"]:
        assert ours.SummaryMetadata(tag).plugin_data.plugin_name == theirs.SummaryMetadata(tag).plugin_data.plugin_name
        for g, e in zip(ours.Tensors(tag), theirs.Tensors(tag), strict=True):
            assert g.step == e.step
            same_tensors(g.tensor_proto, e.tensor_proto)


def test_settings_of_a_run(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as log:
        log.add_hparams(
            {"lr": 0.1, "name": "a", "deep": True, "seed": tp.tensor(3)}, {"accuracy": 0.9}, {"lr": [0.1, 0.2]}, "run"
        )
        with pytest.raises(ValueError, match="should be one of"):
            log.add_hparams({"x": []}, {})
    events = read(tmp_path / "run")
    assert [s.value for s in events.Scalars("accuracy")] == [pytest.approx(0.9)]
    from tensorboard.plugins.hparams import metadata

    content = events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    settings = metadata.parse_session_start_info_plugin_data(content).hparams
    assert settings["lr"].number_value == 0.1 and settings["name"].string_value == "a"
    assert settings["deep"].bool_value is True and settings["seed"].number_value == 3
    experiment = metadata.parse_experiment_plugin_data(
        events.SummaryMetadata(metadata.EXPERIMENT_TAG).plugin_data.content
    )
    assert [m.name.tag for m in experiment.metric_infos] == ["accuracy"]
    assert [v.number_value for v in experiment.hparam_infos[0].domain_discrete.values] == [0.1, 0.2]


def test_lines_of_one_plot_have_folders(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as log:
        for step in range(3):
            log.add_scalars("both/of them", {"a": step, "b": -step}, step)
    for name, sign in (("a", 1), ("b", -1)):
        assert [s.value for s in read(tmp_path / f"both_of them_{name}").Scalars("both/of them")] == [0, sign, 2 * sign]


class Branching(tp.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = tp.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.first(x) if x.sum() > 0 else x


@pytest.mark.parametrize(
    "model", [tp.nn.Sequential(tp.nn.Linear(3, 4), tp.nn.ReLU()), Branching()], ids=["plain", "not"]
)
def test_a_model(model: Any, tmp_path: Path) -> None:
    """Its calls, with shapes; a model that cannot be traced, and one without inputs, by its modules."""
    with SummaryWriter(tmp_path) as log:
        log.add_graph(model, tp.ones(2, 3))
    graph = read(tmp_path).Graph()
    names = {node.name for node in graph.node}
    if isinstance(model, Branching):
        assert "model/first/Linear" in names
        return
    by_op = {node.op: node for node in graph.node}
    assert by_op["ReLU"].input == [by_op["Linear"].name] and by_op["Linear"].attr["shape"].s == b"[2, 4]"
    assert all(i in names for node in graph.node for i in node.input)


def test_points(tmp_path: Path) -> None:
    points = tp.arange(6.0).reshape(3, 2)
    with SummaryWriter(tmp_path) as log:
        log.add_embedding(points, ["a", "b", "c"], tp.ones(3, 1, 4, 4), 2, "my/points")
        log.add_embedding(points, [["a", 1], ["b", 2], ["c", 3]], metadata_header=["name", "n"])
        with pytest.raises(AssertionError, match="labels should equal"):
            log.add_embedding(points, ["a"])
    config = (tmp_path / "projector_config.pbtxt").read_text()
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    first, second = text_format.Parse(config, ProjectorConfig()).embeddings
    assert (tmp_path / first.tensor_path).read_text() == "0.0\t1.0\n2.0\t3.0\n4.0\t5.0\n"
    assert (tmp_path / first.metadata_path).read_text() == "a\nb\nc\n" and list(first.sprite.single_image_dim) == [4, 4]
    assert (tmp_path / second.metadata_path).read_text().splitlines()[:2] == ["name\tn", "a\t1"]
    assert (tmp_path / first.sprite.image_path).read_bytes()[:4] == b"\x89PNG"


def test_figures_and_boxes(tmp_path: Path) -> None:
    plots = pytest.importorskip("matplotlib.figure")
    figure = plots.Figure(figsize=(2, 1), dpi=50)
    figure.add_subplot().plot([1, 2])
    with SummaryWriter(tmp_path) as log:
        log.add_figure("figure", figure, 0, close=False)
        log.add_image_with_boxes("boxes", np.zeros((3, 8, 9)), [[1, 2, 5, 20]], 0)
    events = read(tmp_path)
    assert (events.Images("figure")[0].width, events.Images("figure")[0].height) == (100, 50)
    drawn = pixels_of(events.Images("boxes")[0])[..., 0] > 0
    assert drawn[2, 1:6].all() and drawn[2:, 1].all() and drawn[2:, 5].all() and drawn.sum() == 5 + 2 * 5


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png(channels: int) -> None:
    pil = pytest.importorskip("PIL.Image")
    pixels = (np.arange(6 * 7 * channels) * 5 % 256).astype(np.uint8).reshape(6, 7, channels)
    assert np.array_equal(np.array(pil.open(io.BytesIO(png(pixels)))).reshape(pixels.shape), pixels)


def test_a_writer_goes_on(tmp_path: Path) -> None:
    """After close() with another file, and from a step on, which takes away what a broken run left behind it."""
    log = SummaryWriter(tmp_path)
    for step in range(4):
        log.add_scalar("a", step, step)
    log.close()
    log.add_scalar("a", 4, 4)
    log.close()
    assert len(list(tmp_path.iterdir())) == 2 and log.get_logdir() == log.log_dir == str(tmp_path)
    with SummaryWriter(tmp_path, purge_step=2, filename_suffix=".again") as log:
        log.add_scalar("a", 9, 2)
    assert any(p.name.endswith(".again") for p in tmp_path.iterdir())
    writer = FileWriter(tmp_path / "other")
    writer.reopen()
    writer.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda log: log.add_scalar("a", tp.ones(2)),
        lambda log: log.add_histogram("a", tp.zeros(0)),
        lambda log: log.add_image("a", tp.ones(3)),
        lambda log: log.add_histogram_raw("a", 0, 1, 1, 1, 1, [1.0], [1, 2]),
        lambda log: log.add_video("a", tp.ones(1, 2, 3, 4, 4)),
        lambda log: log.add_onnx_graph("a"),
    ],
)
def test_what_is_refused(call: Any, tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as log, pytest.raises((AssertionError, ValueError, NotImplementedError)):
        call(log)


def test_without_the_package() -> None:
    """The error says what to install."""
    code = (
        "import sys, importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'tensorboard' else find(name, *a)\n"
        "try:\n    import tensorpy.utils.tensorboard\n"
        "except ImportError as error:\n    assert 'pip install tensorboard' in str(error)\n"
        "else:\n    sys.exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("sizes", [(), (0,), (2, 3)])
def test_tensors_are_read_back(dtype: str, sizes: tuple[int, ...]) -> None:
    from tensorboard.util.tensor_util import make_ndarray

    from tensorpy.utils.tensorboard import summary

    values = (tp.arange(6)[: math.prod(sizes)].reshape(sizes) % 2).to(getattr(tp, dtype))
    (value,) = summary.tensor_proto("x", values).value
    assert value.tag == "x" and value.metadata.plugin_data.plugin_name == "tensor"
    got = make_ndarray(value.tensor)
    assert got.shape == sizes and np.array_equal(got.astype(float), values.double().numpy())


def test_pairs_of_tensors_of_complex_numbers_and_bits_of_halves() -> None:
    from tensorpy.utils.tensorboard import summary

    (value,) = summary.tensor_proto("x", tp.tensor([1 + 2j, 3 - 4j])).value
    assert list(value.tensor.scomplex_val) == [1, 2, 3, -4]
    (value,) = summary.tensor_proto("x", tp.tensor([1.5, -2.0], dtype=tp.bfloat16)).value
    assert list(value.tensor.half_val) == [0x3FC0, 0xC000] and value.tensor.dtype == 14  # DT_BFLOAT16
    assert [summary.int_to_half(summary.half_to_int(x)) for x in (0.0, -1.5, 6e4)] == [0.0, -1.5, 60000.0]


def test_a_graph_is_of_a_call_that_works_and_changes_nothing() -> None:
    from tensorpy.utils.tensorboard._pytorch_graph import graph

    class Named(tp.nn.Module):
        def forward(self, x: tp.Tensor) -> Any:
            return {"y": x + 1}

    model = tp.nn.Sequential(tp.nn.Linear(3, 3), tp.nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    made, about = graph(model, tp.ones(2, 3))
    assert [node.op for node in made.node][1:3] == ["Linear", "BatchNorm1d"] and model.training and model[1].training
    assert all(tp.equal(value, before[name]) for name, value in model.state_dict().items())
    assert about.step_stats.dev_stats[0].device == "/device:CPU:0"
    with pytest.raises(RuntimeError, match="use_strict_trace"):
        graph(Named(), tp.ones(2))
    graph(Named(), tp.ones(2), use_strict_trace=False)
    with pytest.raises(RuntimeError):
        graph(tp.nn.Linear(3, 5), tp.ones(1, 9))


def test_pictures_of_any_order_of_letters_and_videos_side_by_side() -> None:
    from tensorpy.utils.tensorboard._convert_np import make_np
    from tensorpy.utils.tensorboard._utils import _prepare_video, convert_to_HWC

    picture = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    assert np.array_equal(convert_to_HWC(picture, "HCW"), picture.transpose(0, 2, 1))
    assert convert_to_HWC(picture[0], "hw").shape == (3, 4, 3) and convert_to_HWC(picture, "nhw").dtype == np.uint8
    frames = np.random.rand(3, 5, 3, 4, 2)
    assert np.allclose(_prepare_video(frames).sum((1, 2, 3)), frames.sum((0, 2, 3, 4)))
    assert make_np(3).shape == (1,) and make_np(tp.tensor(3)).shape == ()
    with pytest.raises(NotImplementedError, match="dict"):
        make_np({})
