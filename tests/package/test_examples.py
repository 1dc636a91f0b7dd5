"""The programs in examples/ run in a short form and learn something; the notebook runs from top to bottom."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from opencl_programs import needs_device

from tensorpy import distributed

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TENSORPY_TORCH_DEVICE")}
SHORT = {  # program -> its options, what it needs beside tensorpy
    "gpt": (["--steps", "20", "--batch", "8", "--characters", "40"], ["tqdm"]),
    "resnet": (["--steps", "44"], ["tqdm", "sklearn", "matplotlib"]),
    "lstm": (["--steps", "40"], ["tqdm", "matplotlib"]),
    "vae": (["--steps", "100"], ["tqdm", "sklearn", "matplotlib"]),
    "reinforce": (["--steps", "20"], ["tqdm", "matplotlib"]),
    "gaussian_process": (["--steps", "100"], ["tqdm", "matplotlib"]),
}
needs_mpi = pytest.mark.skipif(not distributed.is_mpi_available(), reason="no library of MPI: pip install mpich")


def run(*arguments: str) -> str:
    """What a program prints, which has to end well."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=ENVIRONMENT, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def learn(name: str, tmp_path: Path, *options: str, program: tuple[str, ...] = ()) -> None:
    """Runs a program's short form: what it prints gets better, and its result is there."""
    short, needed = SHORT[name]
    for module in needed:
        pytest.importorskip(module)
    result = tmp_path / ("gpt.txt" if name == "gpt" else f"{name}.png")
    printed = run(*(program or (str(EXAMPLES / f"{name}.py"),)), *short, "--out", str(result), *options)
    found = re.search(r"([\d.]+) before, ([\d.]+) after", printed)
    assert found, printed
    before, after = float(found[1]), float(found[2])
    assert after > 2 * before if name == "reinforce" else after < before, printed
    assert str(result) in printed and result.stat().st_size > 0


def test_every_program_is_here() -> None:
    """Those of one process."""
    texts = {path.stem: path.read_text() for path in EXAMPLES.glob("*.py")}
    assert set(SHORT) == {name for name, text in texts.items() if "--steps" in text and "distributed.run" not in text}


@pytest.mark.parametrize("name", SHORT)
def test_programs(name: str, tmp_path: Path) -> None:
    learn(name, tmp_path)


@needs_device
@pytest.mark.parametrize("name", ["gpt", "vae", "reinforce"])
def test_programs_on_opencl(name: str, tmp_path: Path) -> None:
    learn(name, tmp_path, "--device", "opencl")


def test_a_program_for_pytorch(tmp_path: Path) -> None:
    """The GPT with PyTorch's name in its imports is what `python -m tensorpy.run` runs."""
    for folder in ("docs", "README.md"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "examples").mkdir()
    text = re.sub(r"^(import|from) tensorpy( as torch)?", r"\1 torch", (EXAMPLES / "gpt.py").read_text(), flags=re.M)
    assert not re.search(r"^(import|from) tensorpy", text, re.M)
    (tmp_path / "examples" / "gpt.py").write_text(text)
    learn("gpt", tmp_path, program=("-m", "tensorpy.run", str(tmp_path / "examples" / "gpt.py")))


@needs_mpi
def test_the_demo_in_several_processes() -> None:
    """Each has a part of every batch, and the losses are those of one with the whole batch."""
    pytest.importorskip("sklearn")
    program, short = str(EXAMPLES / "digits_ddp.py"), ("--epochs", "3")
    alone = re.findall(r"loss ([\d.]+)", run(program, *short))
    for count in ("2", "4"):
        launcher = ("-m", "tensorpy.distributed.run", "--nproc-per-node", count)
        shared = re.findall(r"loss ([\d.]+)", run(*launcher, program, *short))
        assert len(shared) == 3 and float(shared[2]) < 0.3
        assert [float(x) for x in shared] == pytest.approx([float(x) for x in alone], abs=2e-5)


@needs_mpi
def test_a_gpt_that_no_process_has_whole(tmp_path: Path) -> None:
    """Two processes have the losses of one; what four wrote two go on with."""
    pytest.importorskip("tqdm")
    program, parts = str(EXAMPLES / "gpt_fully_shard.py"), str(tmp_path / "parts")

    def losses(count: int, *args: str) -> list[float]:
        launcher = ("-m", "tensorpy.distributed.run", "--nproc-per-node", str(count)) if count > 1 else ()
        return [float(x) for x in re.findall(r"loss ([\d.]+)", run(*launcher, program, *args))]

    alone = losses(1, "--steps", "4")
    assert len(alone) == 4 and alone[3] < alone[0]
    assert losses(4, "--steps", "2", "--save", parts) == pytest.approx(alone[:2], abs=2e-3)
    assert losses(2, "--steps", "4", "--load", parts) == pytest.approx(alone[2:], abs=2e-3)


def test_the_demo(tmp_path: Path) -> None:
    for module in ("tqdm", "sklearn", "matplotlib"):
        pytest.importorskip(module)
    picture = tmp_path / "digits.png"
    printed = run(str(EXAMPLES / "digits.py"), "--epochs", "3", "--picture", str(picture))
    found = re.search(r"([\d.]+)% of the held-out digits right", printed)
    assert found and float(found[1]) > 80, printed
    assert picture.stat().st_size > 0


# ---- the notebook ----

NOTEBOOK = EXAMPLES / "tour.ipynb"


def test_the_notebook_has_no_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)


def test_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    for module in ("ipykernel", "tqdm"):
        pytest.importorskip(module)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.output_type == "error"]
    shown = [output.data for output in outputs if "data" in output]
    assert any(data["text/plain"].startswith("tensor([[") for data in shown)
    assert any(data["text/plain"].startswith("Sequential(\n") for data in shown)
    pictures = [data["image/svg+xml"] for data in shown if "image/svg+xml" in data]
    assert pictures and all(picture.startswith("<svg") for picture in pictures)
    printed = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    found = re.search(r"([\d.]+) before, ([\d.]+) after", printed)
    assert found and float(found[2]) < float(found[1]) / 5, printed
    assert "torch is tensorpy: True" in printed
