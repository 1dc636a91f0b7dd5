"""A package with a device: `pip install --no-build-isolation .` beside an installed tensorpy."""

from pathlib import Path

from setuptools import setup

from tensorpy.utils.extension import Extension

sources = sorted(str(path) for path in Path("csrc").glob("*.c"))

setup(
    name="tensorpy-simulated",
    version="1.0",
    packages=["simulated"],
    ext_modules=[Extension("simulated._device", sources, libraries=["m", "pthread"])],
    entry_points={"tensorpy.backends": ["simulated = simulated"]},
)
