"""SummaryWriter: what is added is made a message and appended to a file of events."""

from __future__ import annotations

import importlib
import os
import re
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorpy.utils.tensorboard import _pytorch_graph, embedding, summary

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Appends events to a file in a folder.

    Arguments:
        log_dir: the folder
        max_queue: how many events wait at most before they are written
        flush_secs: how many seconds they wait at most
        filename_suffix: the end of the files' names

    Example:
        >>> writer = tp.utils.tensorboard.FileWriter("log")
        >>> writer.get_logdir()
        'log'
        >>> writer.close()
    """

    event_writer: Any

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self._given = (str(log_dir), max_queue, flush_secs, filename_suffix)
        self.reopen()
        self._proto = importlib.import_module("tensorboard.compat.proto.event_pb2")

    def get_logdir(self) -> str:
        """The folder."""
        return str(self.event_writer.get_logdir())

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """The event with a time, now if none is given, and a step."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """An event with a summary."""
        self.add_event(self._proto.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """A graph's message, or a pair of it and what was measured, which is left out."""
        made = graph_profile[0] if isinstance(graph_profile, tuple) else graph_profile
        self.add_event(self._proto.Event(graph_def=made.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Writes what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begins another file in the folder."""
        module = importlib.import_module("tensorboard.summary.writer.event_file_writer")
        self.event_writer = module.EventFileWriter(*self._given)


def _figure_pixels(figure: Any, close: bool) -> Any:
    canvas = importlib.import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.array(canvas.buffer_rgba())
    if close:
        importlib.import_module("matplotlib.pyplot").close(figure)
    return pixels


class SummaryWriter:
    """Logs to a folder, `runs/<time>_<host><comment>` unless one is named; TensorBoard shows what is in it.

    Arguments:
        log_dir: the folder; None makes a name of the time and the host
        comment: the end of that name
        purge_step: a run that was broken off goes on here, and what is in the folder from this step on does not count
        max_queue: how many events wait at most before they are written
        flush_secs: how many seconds they wait at most
        filename_suffix: the end of the files' names

    Example:
        >>> with tp.utils.tensorboard.SummaryWriter("log") as writer:
        ...     writer.add_scalar("loss", 0.5, global_step=1)
    """

    default_bins: Any
    flush_secs: int
    log_dir: str
    max_queue: int

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S_") + socket.gethostname() + comment)
        self.log_dir = str(log_dir)
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.default_bins = summary.growing_bins()
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._writer_of(self.log_dir)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                proto = self.file_writer._proto
                self.file_writer.add_event(proto.Event(step=self.purge_step, file_version="brain.Event:2"))
                start = proto.SessionLog(status=proto.SessionLog.START)
                self.file_writer.add_event(proto.Event(step=self.purge_step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def _writer_of(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _add(self, made: Any, step: int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(made, step, walltime)

    # ---- numbers ----

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number."""
        self._add(summary.scalar(tag, scalar_value, None, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Numbers that are shown in one plot: each has a folder of its own."""
        self._get_file_writer()
        writers = self.all_writers or {}
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in writers:
                writers[folder] = self._writer_of(folder)
            writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """All elements of a tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How often values are; `bins` are bounds, a rule of numpy.histogram, or "tensorflow": bounds that grow."""
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that is counted already."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(made, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """The settings of a run and what came of it, in a folder of its own."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        made = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as inner:
            for part in made:
                inner._add(part, None, None)
            for tag, value in metric_dict.items():
                inner.add_scalar(tag, value, global_step)

    # ---- pictures, sounds, texts ----

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture of bytes, or of floats from 0 to 1."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several as one, side by side."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """A picture with the outlines of boxes (left, top, right, bottom); labels and another size are not drawn."""
        made = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(made, global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of matplotlib, or several."""
        if isinstance(figure, list):
            pictures = np.stack([_figure_pixels(f, close) for f in figure])
            self.add_images(tag, pictures, global_step, walltime, "NHWC")
        else:
            self.add_image(tag, _figure_pixels(figure, close), global_step, walltime, "HWC")

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """Not there: it takes an encoder of videos."""
        raise NotImplementedError("add_video: no encoder of videos is there; add_images shows frames side by side")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """A sound of numbers from -1 to 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text, shown as Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    # ---- graphs and points ----

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """A model: its calls for these inputs, or its modules where no trace can be made of it."""
        made = _pytorch_graph.graph(model, input_to_model, verbose, use_strict_trace)
        self._get_file_writer().add_graph(made)

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Not there: tensorpy reads no ONNX."""
        raise NotImplementedError("add_onnx_graph: tensorpy reads no ONNX; add_graph takes the model itself")

    @staticmethod
    def _encode(rawstr: str) -> str:
        """A name that a folder can have."""
        return re.sub(r"[^A-Za-z0-9/_.~-]", lambda m: "".join(f"%{b:02x}" for b in m[0].encode()), rawstr).replace(
            "/", "%%2f"
        )

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Points for the projector, a row each, with labels and pictures."""
        name = f"{0 if global_step is None else global_step:05d}/{self._encode(tag)}"
        folder = Path(self._get_file_writer().get_logdir())
        about = embedding.write_embedding(folder, name, tag, mat, metadata, label_img, metadata_header)
        with open(folder / "projector_config.pbtxt", "a") as config:
            config.write(about)

    # ---- for plugins ----

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision and recall of probabilities, for thresholds from 0 to 1."""
        made = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._add(made, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """The same, counted already."""
        rows = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        made = summary.pr_curve_raw(tag, *rows, precision, recall, num_thresholds, weights)
        self._add(made, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A plot of several tags."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A plot of a tag between two others: value, lower, upper."""
        if len(tags) != 3:
            raise AssertionError("a chart with margins is of three tags: value, lower, upper")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: dict[str, dict[str, Sequence[Any]]]) -> None:
        """Plots by category and title: ["Multiline", tags] or ["Margin", [value, lower, upper]]."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: dict[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Points or surfaces in space."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    # ---- the end ----

    def flush(self) -> None:
        """Writes what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the files; what is added later opens one again."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
