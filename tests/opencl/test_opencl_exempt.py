"""yaml/opencl_exempt.yaml names each kernel of the CPU that has none on OpenCL, with its reason, and no other."""

from __future__ import annotations

from opencl_programs import ROOT

import yaml
from codegen.__main__ import load_catalog


def test_every_cpu_kernel_has_an_opencl_kernel_or_a_reason() -> None:
    groups = yaml.safe_load((ROOT / "yaml/opencl_exempt.yaml").read_text())
    catalog, without = load_catalog(ROOT / "yaml"), []
    for op in catalog:
        keys = {k.key for k in op.kernels}
        if "CPU" in keys and not {"OpenCL", "Dense"} & keys:
            without.append(("operators", str(op.schema.name)))
    without += [("primitives", p.name) for p in catalog.primitives if "OpenCL" not in p.backends and not p.optional]
    exempt = [(kind, name) for g in groups for kind in ("operators", "primitives") for name in g.get(kind, ())]
    assert sorted(without) == sorted(exempt) and all(group["reason"] for group in groups)
