"""A package with operators in C: `pip install --no-build-isolation .` beside an installed tensorpy."""

from setuptools import setup

from tensorpy.utils.extension import Extension

setup(
    name="myops",
    version="1.0",
    packages=["myops"],
    ext_modules=[Extension("myops._ops", ["csrc/scale.c", "csrc/layers.c", "csrc/opencl.c"])],
)
