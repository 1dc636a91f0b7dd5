"""What a build compiles: loops of this CPU, of older ones where it may be moved, all where it leaves the machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codegen import ninja_file
from codegen.ninja_file import Capabilities, Options

ROOT = Path(__file__).resolve().parents[2]
EVERY = Capabilities(("baseline", "avx2", "avx512"))
CPUS = {
    "sse4_2": Capabilities(("baseline", "avx2")),
    "sse4_2 avx2": Capabilities(("avx2",)),
    "avx2 avx512f avx512bw": Capabilities(("avx2", "avx512")),
}


class OnCpu(type(Path())):  # type: ignore[misc]
    """A path whose file says the flags of a CPU."""

    flags = ""

    def read_text(self, *_: object, **__: object) -> str:
        return f"flags\t\t: fpu {OnCpu.flags} rdrand"


@pytest.mark.parametrize("flags", CPUS)
def test_loops_of_other_cpus(flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(root=ROOT, build=ROOT / "build" / "release")
    if options.machine != "x86_64":
        pytest.skip("there is one capability here")
    monkeypatch.setattr(ninja_file, "Path", OnCpu)
    monkeypatch.setattr(OnCpu, "flags", flags)
    monkeypatch.delenv("TENSORPY_CAPABILITIES", raising=False)
    assert ninja_file.capabilities(options) == CPUS[flags]
    in_place = replace(options, in_place=True)
    alone = Capabilities(CPUS[flags].compiled[-1:]) if "avx512bw" in flags else CPUS[flags]
    assert ninja_file.capabilities(in_place) == alone
    assert ninja_file.capabilities(replace(options, glibc="2.28")) == EVERY
    monkeypatch.setenv("TENSORPY_CAPABILITIES", "avx2")
    assert ninja_file.capabilities(in_place) == CPUS[flags]
    monkeypatch.setenv("TENSORPY_CAPABILITIES", "all")
    assert ninja_file.capabilities(options) == EVERY
    monkeypatch.setenv("TENSORPY_CAPABILITIES", "baseline")
    here = CPUS[flags].compiled
    asked = Capabilities(("baseline", *here), frozenset({"baseline"})) if "baseline" not in here else CPUS[flags]
    assert ninja_file.capabilities(options) == asked == ninja_file.capabilities(in_place)


def test_other_flags_are_another_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that builds for this CPU and for all lie beside each other."""
    options = Options(root=ROOT, build=ROOT / "build" / "release")
    if options.machine != "x86_64":
        pytest.skip("there is one capability here")
    here_only = Capabilities(("baseline", "avx2"), frozenset({"baseline"}))
    monkeypatch.setattr(ninja_file, "capabilities", lambda options: here_only)
    here = {unit.object: unit for unit in ninja_file._units(options)[0]}
    monkeypatch.setattr(ninja_file, "capabilities", lambda options: EVERY)
    every = {unit.object: unit for unit in ninja_file._units(options)[0]}
    for name, unit in here.items():
        plain = name.replace(".spare", "").replace(".without_avx512", "")
        assert plain in every and (unit.flags == every[plain].flags) == (name == plain)
    missing = {name for name in every if ".avx512." in name}
    assert len(every) - len(here) == len(missing) and not any(".avx512" in name for name in here)


def test_a_release_does_not_end_where_python_asserts(tmp_path: Path) -> None:
    """The asserts of Python's headers are for debug builds, as all are: a release raises, and never aborts."""
    for mode, quiet in (("release", True), ("debug", False)):
        _, module = ninja_file._units(Options(ROOT, tmp_path, mode=mode))
        assert module and all(("-DNDEBUG" in unit.flags) is quiet for unit in module)
