"""The device of mirror.c under tensorpy's table of operators: `MIRROR=./mirror.so pytest test_mirror.py`."""

import os

import tensorpy
from tensorpy.testing.device import Device, DeviceTests, Refusal


class TestMirror(DeviceTests):
    device = Device(
        "mirror",
        set_up=lambda: tensorpy.backends.load(os.environ["MIRROR"]),
        refusals=[Refusal("lgamma", "not written yet"), Refusal("special_gammaln", "made of lgamma")],
    )
