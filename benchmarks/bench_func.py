"""Functions of functions and torch's: gradients of each sample of a batch by vmap, next to a loop over grad(loss); a
tangent of the loss, next to its gradient; a Hessian times a vector, forward over reverse and reverse twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorpy as tp

from .bench_training import BATCH, demo, torch_cnn
from .harness import Case
from .libraries import torch


def of_each_sample(m: Any, model: Any, images: Any, labels: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    """For tensorpy or torch as `m`: by vmap, and by a loop that stacks."""
    state = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters: Any, image: Any, label: Any) -> Any:
        scores = m.func.functional_call(model, parameters, (image[None],))
        return m.nn.functional.cross_entropy(scores, label[None])

    gradient = m.func.grad(loss)
    mapped = m.func.vmap(gradient, in_dims=(None, 0, 0))

    def loop() -> object:
        each = [gradient(state, image, label) for image, label in zip(images, labels, strict=True)]
        return {name: m.stack([g[name] for g in each]) for name in state}

    return lambda: mapped(state, images, labels), loop


def along(m: Any, model: Any, images: Any, labels: Any) -> dict[str, Callable[[], object]]:
    """For tensorpy or torch as `m`: derivatives of the loss of a batch by all parameters, along one direction."""
    state = {name: p.detach() for name, p in model.named_parameters()}
    direction = {name: m.ones_like(p) for name, p in state.items()}

    def loss(parameters: Any) -> Any:
        return m.nn.functional.cross_entropy(m.func.functional_call(model, parameters, (images,)), labels)

    gradient = m.func.grad(loss)
    return {
        "jvp": lambda: m.func.jvp(loss, (state,), (direction,)),
        "grad": lambda: gradient(state),
        "forward over reverse": lambda: m.func.jvp(gradient, (state,), (direction,)),
        "reverse twice": lambda: m.func.vjp(gradient, state)[1](direction),
    }


def directional(
    name: str, ours: dict[str, Callable[[], object]], theirs: dict[str, Callable[[], object]]
) -> Iterator[Case]:
    for what, other, bound in (("jvp", "grad", 1.5), ("forward over reverse", "reverse twice", 1.4)):
        calls = {"tensorpy": ours[what], other: ours[other]}
        if theirs:
            calls["torch"] = theirs[what]
        yield Case(f"{what} of {name}, {BATCH} digits", calls, {other: bound, "torch": 1.0})


def torch_mlp() -> Any:
    n = torch.nn
    return n.Sequential(n.Flatten(), n.Linear(64, 128), n.ReLU(), n.Linear(128, 10))


def cases(device: str) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    images, labels = rng.random((BATCH, 1, 8, 8), np.float32), rng.integers(0, 10, BATCH)
    digits = demo()
    for name, kind, other in (("mlp", digits.Mlp, torch_mlp), ("cnn", digits.Cnn, torch_cnn)):
        model = kind().eval().to(device)
        mapped, loop = of_each_sample(tp, model, tp.tensor(images).to(device), tp.tensor(labels).to(device))
        calls: dict[str, Callable[[], object]] = {"tensorpy": mapped, "loop": loop}
        if torch is not None:
            calls["torch"] = of_each_sample(torch, other().eval(), torch.tensor(images), torch.tensor(labels))[0]
        yield Case(f"gradients of each of {BATCH} digits, {name}", calls, {"loop": 0.2, "torch": 1.0})
        theirs = {} if torch is None else along(torch, other().eval(), torch.tensor(images), torch.tensor(labels))
        ours = along(tp, model, tp.tensor(images).to(device), tp.tensor(labels).to(device))
        yield from directional(name, ours, theirs)
