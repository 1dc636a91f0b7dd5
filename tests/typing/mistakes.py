"""Typical mistakes: mypy and pyright say something of each line that is marked. tests/package/test_editors.py."""

# ruff: noqa: B015, B018
from __future__ import annotations

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import Tensor, nn


def mistakes(x: Tensor, y: Tensor, model: nn.Linear) -> None:
    tp.foo_bar(x)  # wrong: no such function
    tp.nn.Liner(2, 3)  # wrong: no such layer
    tp.optim.Sgd(model.parameters())  # wrong: no such optimizer
    tp.linalg.svdd(x)  # wrong: no such function of a module
    tp.fft.rft(x)  # wrong: no such function of a module
    tp.special.errf(x)  # wrong: no such function of a module
    F.relue(x)  # wrong: no such function of nn.functional
    tp.func.vmapp(x)  # wrong: no such function of func
    tp.float23  # wrong: no such dtype
    x.summ()  # wrong: no such method
    x.max(0).value  # wrong: no such field of a result
    x.shapes  # wrong: no such attribute
    x.shape = (2, 3)  # wrong: cannot be set
    x.dtype = tp.float64  # wrong: cannot be set
    x.numpy().astype(3).nothing if x.nothing else None  # wrong: no such attribute
    tp.zeros(2, dtype="float32")  # wrong: a string for a dtype
    tp.zeros("2")  # wrong: a string for a size
    tp.add(x, "1")  # wrong: a string for a tensor
    tp.cat(x, y)  # wrong: tensors that are not in a list
    tp.stack(x, 0, 1)  # wrong: one argument too many
    tp.softmax(x)  # wrong: no dim
    tp.softmax(x, dim="0")  # wrong: a string for a dim
    tp.sum(x, axes=0)  # wrong: no such argument
    tp.exp([1.0])  # wrong: a list for a tensor
    tp.arange(0, 3, step="1")  # wrong: a string for a number
    x.view("a")  # wrong: a string for a size
    x.sum(keepdims=True).foo  # wrong: no such attribute
    x.to(tp.float32, devices="cpu")  # wrong: no such argument
    x.requires_grad = "yes"  # wrong: a string for a bool
    x["a"]  # wrong: a string for an index
    x[0] = "a"  # wrong: a string for a value
    x + "a"  # wrong: a string for a tensor
    x @ 2  # wrong: a number for a matrix
    x < "a"  # wrong: a string for a tensor
    x.grad.sum()  # wrong: grad may be None
    x.item().foo  # wrong: a number has no such attribute
    tp.equal(x, y).sum()  # wrong: a bool
    tp.set_grad_enabled()  # wrong: no mode
    tp.manual_seed()  # wrong: no seed
    tp.save(x)  # wrong: no file
    nn.Linear(2)  # wrong: one argument too few
    nn.Linear(2, "3")  # wrong: a string for a size
    nn.Conv2d(1, 2, kernel=3)  # wrong: no such argument
    nn.Dropout(prob=0.5)  # wrong: no such argument
    nn.Sequential([nn.ReLU()])  # wrong: a list for modules
    nn.CrossEntropyLoss(reductions="mean")  # wrong: no such argument
    F.cross_entropy(x)  # wrong: no target
    F.dropout(x, "0.5")  # wrong: a string for a probability
    F.mse_loss(x, y, reduction=1.5)  # wrong: a number for a word
    F.pad(x, pads=(1, 1))  # wrong: no such argument
    tp.optim.SGD(lr=0.1)  # wrong: no parameters
    tp.optim.Adam(model.parameters(), learning_rate=0.1)  # wrong: no such argument
    tp.optim.lr_scheduler.StepLR(model, 3)  # wrong: a module for an optimizer
    tp.utils.data.DataLoader()  # wrong: no data
    tp.utils.data.DataLoader([1], batchsize=2)  # wrong: no such argument
    tp.distributions.Normal(0.0)  # wrong: one argument too few
    tp.linalg.norm(x, axis=[0])  # wrong: no such argument
    tp.linalg.eigh(x).values  # wrong: no such field of a result
    tp.fft.fft(x, "8")  # wrong: a string for a size
    tp.autograd.backward()  # wrong: no tensors
    tp.device()  # wrong: no type
    tp.Generator().seed(3)  # wrong: takes nothing
    tp.finfo(tp.float32).epsilon  # wrong: no such attribute

    F.linear(x)  # wrong: no weight
    F.conv2d(x, x, strides=2)  # wrong: the name is stride
    F.max_pool2d(x, 2).relus()  # wrong: no such method of a tensor
    F.max_pool2d(x, kernel=2)  # wrong: the name is kernel_size
    F.scaled_dot_product_attention(x, x)  # wrong: no value
    F.cosine_similarity(x, x, axis=1)  # wrong: the name is dim
    nn.utils.clip_grad_value_(model.parameters(), "1")  # wrong: a string for a number
    tp.einsum(x)  # wrong: no equation
    tp.utils.data.DataLoader(3)  # wrong: no dataset
