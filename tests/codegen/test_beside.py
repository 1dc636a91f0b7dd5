"""A task in a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codegen import beside

ROOT = Path(__file__).parent.parent.parent

TASKS = """
import os, sys
from codegen import beside
from codegen.errors import Location, YamlError, YamlErrors

def mistakes():
    raise YamlErrors([YamlError(Location("a.yaml", 3), "what", "fix")])

tasks = {"value": lambda: {"file": "text" * 100_000}, "mistakes": mistakes, "killed": lambda: os.kill(os.getpid(), 9)}
result = beside.begin(tasks[sys.argv[1]])
try:
    value = result()
    print(len(value["file"]))
except (YamlErrors, RuntimeError) as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("value", "400000"),
        ("mistakes", "YamlErrors a.yaml:3: what\n    fix: fix\n1 mistake"),
        ("killed", "RuntimeError the generator's second process ended with exit code -9"),
    ],
)
def test_result_or_error(task: str, said: str) -> None:
    if not beside.can_fork():
        pytest.skip("one core, or no fork")
    done = subprocess.run([sys.executable, "-c", TASKS, task], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == said, done.stderr


def test_a_mistake_that_the_second_process_finds(tmp_path: Path) -> None:
    """A derivative's formula is lowered by the second process; the first one says what is wrong, and writes nothing."""
    shutil.copytree(ROOT / "yaml", tmp_path / "yaml")
    file = tmp_path / "yaml" / "derivatives" / "pointwise_unary.yaml"
    text = file.read_text()
    assert "grad * self.cos().conj()" in text
    file.write_text(text.replace("grad * self.cos().conj()", "grad * self.coss()"))
    command = [sys.executable, "-m", "codegen", "--yaml", str(tmp_path / "yaml"), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "coss" in done.stderr and done.stderr.rstrip().endswith("1 mistake"), done.stderr
    assert not (tmp_path / "out").exists()
