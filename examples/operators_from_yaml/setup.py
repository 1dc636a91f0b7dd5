"""A package whose operators are declared in YAML: `pip install --no-build-isolation .` beside an installed tensorpy."""

import shutil

from setuptools import setup

from tensorpy.utils.extension import Extension, generate

GENERATED = "build/generated"

sources = generate("signals", "yaml", GENERATED)
for name in ("ops.py", "ops.pyi"):
    shutil.copyfile(f"{GENERATED}/{name}", f"signals/{name}")

setup(
    name="signals",
    version="1.0",
    packages=["signals"],
    package_data={"signals": ["*.pyi"]},
    ext_modules=[Extension("signals._ops", [*sources, "csrc/kernels.c"], include_dirs=[GENERATED])],
)
