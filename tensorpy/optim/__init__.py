"""tensorpy.optim: optimizers and schedules of their learning rates."""

from __future__ import annotations

from tensorpy.optim import (
    _adafactor,
    _muon,
    adadelta,
    adagrad,
    adamax,
    adamw,
    asgd,
    lr_scheduler,
    nadam,
    radam,
    rmsprop,
    rprop,
    sparse_adam,
    swa_utils,
)
from tensorpy.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam, SparseAdam
from tensorpy.optim.adaptive import Adadelta, Adafactor, Adagrad, RMSprop, Rprop
from tensorpy.optim.averaging import ASGD, Muon
from tensorpy.optim.lbfgs import LBFGS
from tensorpy.optim.optimizer import Optimizer
from tensorpy.optim.sgd import SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]
