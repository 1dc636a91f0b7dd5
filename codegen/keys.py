"""The dispatch keys and devices, as the public header lists them (include/tensorpy/types.h), and PyTorch's others.

The header numbers the keys for libraries; csrc/core/key_list.h puts the same names in the order of priority, and the C
compiler compares the two.
"""

from __future__ import annotations

import re
from pathlib import Path

_HERE = Path(__file__).resolve().parent.parent
# In the tree, and beside the generator in the package.
_FOLDERS = (_HERE / "csrc" / "include", _HERE / "include")
_TYPES = next(f for folder in _FOLDERS if (f := folder / "tensorpy" / "types.h").exists()).read_text()


def _rows(macro: str) -> list[list[str]]:
    """The arguments of each X(...) of an X-macro."""
    body = re.search(rf"^#define {macro}\(X\)((?:.*\\\n)*.*)", _TYPES, re.M)
    assert body is not None, macro
    return [row.split(", ") for row in re.findall(r"\bX\(([^)]*)\)", body[1])]


KEYS = tuple(name for (name,) in _rows("TENSORPY_FORALL_KEYS"))
DEVICES = tuple(key for _, _, key in _rows("TP_FORALL_DEVICES"))
DEVICE_IDS = tuple(name for name, _, _ in _rows("TP_FORALL_DEVICES"))
LAYOUTS = KEYS[KEYS.index("Mkldnn") : KEYS.index("ZeroTensor") + 1]
PER_DEVICE = ("Autograd", "Autocast")
# Compared with the dispatcher's own by tests/dispatch/test_keys.py.
ALIASES = (
    "Dense",
    "CompositeExplicitAutogradNonFunctional",
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
    "Autograd",
    "Autocast",
)

# Layers that take no entry's kernel: rules and modes stand there.
RULED = ("ForwardAD", "PythonMode", "Trace")
# What an entry's 'dispatch' may name and something comes of.
OF_ENTRIES = frozenset(KEYS).difference(RULED).union(ALIASES)

# PyTorch's, which tensorpy reads and makes nothing of.
ABSENT = "CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA FPGA Vulkan Metal".split()
_ABSENT_LAYERS = (
    "AutogradFunctionality AutogradNestedTensor BatchedNestedTensor CompositeImplicitAutogradNestedTensor "
    "CustomRNGKeyId FuncTorchBatched FuncTorchBatchedDecomposition FuncTorchVmapMode FuncTorchGradWrapper "
    "FuncTorchDynamicLayerBackMode FuncTorchDynamicLayerFrontMode Named PreDispatch PythonDispatcher "
    "PythonTLSSnapshot VmapMode"
).split()
# What PyTorch's grammar takes.
GRAMMAR = frozenset(
    [*OF_ENTRIES, *_ABSENT_LAYERS]
    + [layout + device for layout in ("", *LAYOUTS) for device in (*DEVICES, *ABSENT)]
    + [layer + device for layer in PER_DEVICE for device in ABSENT]
)
