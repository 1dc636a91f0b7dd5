"""Arguments for build/generated/test_ops.py where likely ones do not do."""

import tensorpy as tp


def samples():
    def frames():
        return tp.rand(2, 5, 3, dtype=tp.float64, requires_grad=True)

    def mode(name):
        a, b = (tp.rand(3, 4, dtype=tp.float64) + 0.25 for _ in range(2))
        return lambda: ((a.requires_grad_(), b.requires_grad_(), 0.3), {"mode": name})

    return {
        "frames": lambda: ((tp.rand(2, 9, dtype=tp.float64, requires_grad=True), 3, 2), {}),
        "frames_backward": lambda: ((frames(), 12, 2), {}),
        "blend": mode("root"),
        "blend_": mode("linear"),
    }
