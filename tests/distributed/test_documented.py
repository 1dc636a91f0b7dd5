"""The program of docs/distributed.md does what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from ranks import free_port, needs_mpi

ROOT = Path(__file__).resolve().parents[2]


@needs_mpi
def test_the_program_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "distributed.md").read_text()
    (program,) = re.findall(r"```python\n(# two\.py\n.*?)```", page, re.S)
    (expected,) = re.findall(r"# prints (.*)", program)
    path = tmp_path / "two.py"
    path.write_text(program.replace("29511", str(free_port())))
    variables = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**variables, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == expected + "\n", done.stderr
