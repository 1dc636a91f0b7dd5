"""What a build compiles in full: loops of this CPU, and AVX2's; all of them where it is to leave the machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codegen import ninja_file
from codegen.ninja_file import Options

ROOT = Path(__file__).resolve().parents[2]
CPUS = {"sse4_2": {"avx512"}, "sse4_2 avx2": {"baseline", "avx512"}, "avx2 avx512f avx512bw": {"baseline"}}


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
    assert ninja_file._spare_capabilities(options) == CPUS[flags]
    assert not ninja_file._spare_capabilities(replace(options, glibc="2.28"))
    monkeypatch.setenv("TENSORPY_CAPABILITIES", "all")
    assert not ninja_file._spare_capabilities(options)


def test_each_capability_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full or spare, under another name, so that builds of both kinds lie beside each other."""
    options = Options(root=ROOT, build=ROOT / "build" / "release")
    spare = ninja_file._units(options)[0]
    monkeypatch.setenv("TENSORPY_CAPABILITIES", "all")
    full = ninja_file._units(options)[0]
    assert len(spare) == len(full)
    for one, other in zip(spare, full, strict=True):
        assert one.object.replace(".spare", "") == other.object
        assert (one.flags == other.flags) == (one.object == other.object)
