"""The device "simulated": `tensorpy.ones(2, device="simulated")` loads it by its entry point; `import simulated` too."""

from tensorpy.utils.extension import load_installed

load_installed("simulated._device")
