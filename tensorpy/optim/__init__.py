"""tensorpy.optim: optimizers and schedules of their learning rates."""

from __future__ import annotations

from tensorpy._package import proposing as _proposing
from tensorpy.optim import _adafactor as _adafactor
from tensorpy.optim import _muon as _muon
from tensorpy.optim import adadelta as adadelta
from tensorpy.optim import adagrad as adagrad
from tensorpy.optim import adamax as adamax
from tensorpy.optim import adamw as adamw
from tensorpy.optim import asgd as asgd
from tensorpy.optim import lr_scheduler, swa_utils
from tensorpy.optim import nadam as nadam
from tensorpy.optim import radam as radam
from tensorpy.optim import rmsprop as rmsprop
from tensorpy.optim import rprop as rprop
from tensorpy.optim import sparse_adam as sparse_adam
from tensorpy.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam, SparseAdam
from tensorpy.optim.adaptive import Adadelta, Adafactor, Adagrad, RMSprop, Rprop
from tensorpy.optim.averaging import ASGD, Muon
from tensorpy.optim.lbfgs import LBFGS
from tensorpy.optim.optimizer import Optimizer
from tensorpy.optim.sgd import SGD
from tensorpy.optim.swapping import swap_in_optimizer_params_and_state

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
    "swap_in_optimizer_params_and_state",
]


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("optim", globals())
