"""LSTM as linear maps, products and sums, each of which has an observer."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn import steps

__all__ = ["LSTM", "LSTMCell"]

_GATES = ("input", "forget", "cell", "output")


def _zeros(sizes: Any, quantized: bool, qparams: Any = (1.0, 0, _C.quint8), device: Any = None) -> Tensor:
    zeros = _C.zeros(sizes, device=device)
    return _C.quantize_per_tensor(zeros, *qparams) if quantized else zeros


class LSTMCell(nn.Module):
    """A step of an LSTM whose linear maps, products and sums are modules.

    Arguments:
        input_dim: how many features the input has
        hidden_dim: how many features the state has
        bias: whether the maps have biases
        device: where the parameters are
        dtype: the dtype of the parameters
        split_gates: whether each gate has maps of its own, with scales of their own

    Example:
        >>> h, c = tp.ao.nn.quantizable.LSTMCell(2, 3)(tp.ones(5, 2))
        >>> h.shape
        tensorpy.Size([5, 3])
    """

    _FLOAT_MODULE = nn.LSTMCell
    __constants__: ClassVar[list[str]] = ["split_gates"]

    input_size: int
    hidden_size: int
    bias: bool
    split_gates: bool
    igates: Any
    hgates: Any
    gates: Any
    input_gate: Any
    forget_gate: Any
    cell_gate: Any
    output_gate: Any
    fgate_cx: Any
    igate_cgate: Any
    fgate_cx_igate_cgate: Any
    ogate_cy: Any
    hidden_state_dtype: _C.dtype
    cell_state_dtype: _C.dtype

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.split_gates = input_dim, hidden_dim, bias, split_gates
        placed = {"device": device, "dtype": dtype}
        if split_gates:
            self.igates = nn.ModuleDict({g: nn.Linear(input_dim, hidden_dim, bias, **placed) for g in _GATES})
            self.hgates = nn.ModuleDict({g: nn.Linear(hidden_dim, hidden_dim, bias, **placed) for g in _GATES})
            self.gates = nn.ModuleDict({g: steps.FloatFunctional() for g in _GATES})
        else:
            self.igates = nn.Linear(input_dim, 4 * hidden_dim, bias, **placed)
            self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, bias, **placed)
            self.gates = steps.FloatFunctional()
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = steps.FloatFunctional(), steps.FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = steps.FloatFunctional(), steps.FloatFunctional()
        self.initial_hidden_state_qparams: Any = (1.0, 0, _C.quint8)
        self.initial_cell_state_qparams: Any = (1.0, 0, _C.quint8)
        self.hidden_state_dtype = self.cell_state_dtype = _C.quint8

    def _gates(self, x: Tensor, hx: Tensor) -> Any:
        if not self.split_gates:
            return self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        return [self.gates[g].add(self.igates[g](x), self.hgates[g](hx)) for g in _GATES]

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Tensor]:
        """The next state (h, c) after an input [N, input_dim] and a state, of zeros where there is none."""
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        into, forget, cell, out = self._gates(x, hx)
        kept = self.fgate_cx.mul(self.forget_gate(forget), cx)
        new = self.igate_cgate.mul(self.input_gate(into), self.cell_gate(cell))
        cy = self.fgate_cx_igate_cgate.add(kept, new)
        return self.ogate_cy.mul(self.output_gate(out), _C.tanh(cy)), cy

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> tuple[Tensor, Tensor]:
        """A state (h, c) of zeros."""
        sizes = batch_size, self.hidden_size
        return (
            _zeros(sizes, is_quantized, self.initial_hidden_state_qparams),
            _zeros(sizes, is_quantized, self.initial_cell_state_qparams),
        )

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(cls, wi: Any, wh: Any, bi: Any = None, bh: Any = None, split_gates: bool = False) -> LSTMCell:
        """Makes one of weights [4 * hidden, input] and [4 * hidden, hidden], and biases, as nn.LSTM has them."""
        if (bi is None) != (bh is None):
            raise AssertionError("an LSTM's cell has both biases or none")
        made = cls(wi.shape[1], wh.shape[1], bi is not None, split_gates=split_gates)
        for maps, weight, bias in ((made.igates, wi, bi), (made.hgates, wh, bh)):
            layers = [maps[g] for g in _GATES] if split_gates else [maps]
            biases = [None] * len(layers) if bias is None else bias.chunk(len(layers))
            for layer, w, b in zip(layers, weight.chunk(len(layers)), biases, strict=True):
                layer.weight = nn.Parameter(w)
                layer.bias = None if b is None else nn.Parameter(b)
        return made

    @classmethod
    def from_float(cls, other: Any, use_precomputed_fake_quant: bool = False, split_gates: bool = False) -> LSTMCell:
        """Makes one of an nn.LSTMCell."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"{cls.__name__}.from_float is of nn.LSTMCell, not of {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls.from_params(other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates)
        made.qconfig = other.qconfig
        made.fgate_cx.qconfig = made.igate_cgate.qconfig = made.fgate_cx_igate_cgate.qconfig = other.qconfig
        made.ogate_cy.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """A layer of an LSTM in one direction."""

    def __init__(self, input_dim: int, hidden_dim: int, bias: bool = True, **more: Any) -> None:
        super().__init__()
        self.cell = LSTMCell(input_dim, hidden_dim, bias, **more)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Any]:
        """The states h after each step of an input [L, N, features], and the last state (h, c)."""
        results = []
        for step in x.unbind(0):
            hidden = self.cell(step, hidden)
            results.append(hidden[0])
        return _C.stack(results, 0), hidden

    @classmethod
    def from_params(cls, *parameters: Any, **more: Any) -> _LSTMSingleLayer:
        """Makes one of weights and biases, as LSTMCell.from_params takes them."""
        cell = LSTMCell.from_params(*parameters, **more)
        made = cls(cell.input_size, cell.hidden_size, cell.bias, split_gates=cell.split_gates)
        made.cell = cell
        return made


class _LSTMLayer(nn.Module):
    """A layer of an LSTM in one direction or both."""

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, batch_first: bool = False,
        bidirectional: bool = False, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        self.layer_fw = _LSTMSingleLayer(input_dim, hidden_dim, bias, **more)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(input_dim, hidden_dim, bias, **more)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Any]:
        """The states after each step, those of the other direction beside them, and the last state (h, c)."""
        x = x.transpose(0, 1) if self.batch_first else x
        if self.bidirectional:
            result, last = self._both(x, (None, None) if hidden is None else list(zip(*hidden, strict=True)))
        else:
            result, last = self.layer_fw(x, None if hidden is None else tuple(map(_only, hidden)))
        return result.transpose(0, 1) if self.batch_first else result, last

    def _both(self, x: Tensor, hidden: Any) -> tuple[Tensor, Any]:
        there, last = self.layer_fw(x, hidden[0])
        back, first = self.layer_bw(x.flip(0), hidden[1])
        return _C.cat([there, back.flip(0)], 2), tuple(_C.stack(pair, 0) for pair in zip(last, first, strict=True))

    @classmethod
    def from_float(cls, other: Any, layer_idx: int = 0, qconfig: Any = None, **more: Any) -> _LSTMLayer:
        """Makes one of a layer of an nn.LSTM with a qconfig."""
        if not hasattr(other, "qconfig") and qconfig is None:
            raise AssertionError("an LSTM that is observed has a qconfig")

        def one(suffix: str) -> _LSTMSingleLayer:
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            found = [getattr(other, f"{name}_l{layer_idx}{suffix}", None) for name in names]
            return _LSTMSingleLayer.from_params(*found, split_gates=more.get("split_gates", False))

        forth = one("")
        made = cls(
            forth.cell.input_size, forth.cell.hidden_size, forth.cell.bias, more.get("batch_first", other.batch_first),
            other.bidirectional, split_gates=more.get("split_gates", False),
        )  # fmt: skip
        made.qconfig = getattr(other, "qconfig", qconfig)
        made.layer_fw = forth
        if other.bidirectional:
            made.layer_bw = one("_reverse")
        return made


def _only(state: Tensor) -> Tensor:
    """The state of one direction."""
    return state.squeeze(0) if state.dim() == 3 else state


class LSTM(nn.Module):
    """An LSTM whose linear maps, products and sums are modules, so that each is observed and quantized by its range.

    Arguments:
        input_size: how many features the input has
        hidden_size: how many features the state has
        num_layers: how many layers there are
        bias: whether the maps have biases
        batch_first: whether the input is [N, L, features]
        dropout: not read
        bidirectional: whether there is a second direction
        device: where the parameters are
        dtype: the dtype of the parameters
        split_gates: whether each gate has maps of its own, with scales of their own

    Example:
        >>> y, (h, c) = tp.ao.nn.quantizable.LSTM(2, 3, num_layers=2)(tp.ones(7, 5, 2))
        >>> y.shape, h.shape
        (tensorpy.Size([7, 5, 3]), tensorpy.Size([2, 5, 3]))
    """

    _FLOAT_MODULE: Any = nn.LSTM

    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    layers: Any

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self.train(False)  # until somebody says otherwise
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"dropout is a number from 0 to 1, the chance of an element to become 0, not {dropout!r}")
        if dropout > 0:
            warnings.warn("a quantizable LSTM has no dropout: train an nn.LSTM, then prepare() it", stacklevel=2)
        both = 2 if bidirectional else 1
        sizes = [input_size] + [hidden_size * both] * (num_layers - 1)
        more = {"device": device, "dtype": dtype, "split_gates": split_gates}
        self.layers = nn.ModuleList(_LSTMLayer(n, hidden_size, bias, False, bidirectional, **more) for n in sizes)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The states after each step, and the last states (h, c) of all layers and directions."""
        x = x.transpose(0, 1) if self.batch_first else x
        both = 2 if self.bidirectional else 1
        sizes = (self.num_layers, both, x.shape[1], self.hidden_size)
        if hidden is None:
            zeros = _zeros(sizes[1:], x.is_quantized, device=x.device)
            states: Any = [(zeros, zeros)] * self.num_layers
        else:
            states = zip(*(state.reshape(sizes).unbind(0) for state in hidden), strict=True)
        last = []
        for layer, state in zip(self.layers, states, strict=True):
            x, reached = layer(x, state)
            last.append(reached)
        h, c = (_C.stack(each, 0).reshape(-1, *sizes[2:]) for each in zip(*last, strict=True))
        return x.transpose(0, 1) if self.batch_first else x, (h, c)

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: Any, qconfig: Any = None, split_gates: bool = False) -> LSTM:
        """Makes one of an nn.LSTM with a qconfig: observed, or in training with fake quantization."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"{cls.__name__}.from_float is of nn.LSTM, not of {type(other)}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("an LSTM that is observed has a qconfig")
        made = cls(
            other.input_size, other.hidden_size, other.num_layers, other.bias, other.batch_first, other.dropout,
            other.bidirectional, split_gates=split_gates,
        )  # fmt: skip
        made.qconfig = getattr(other, "qconfig", qconfig)
        for i in range(other.num_layers):
            made.layers[i] = _LSTMLayer.from_float(other, i, qconfig, batch_first=False, split_gates=split_gates)
        return steps.prepared(made, other.training)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Nothing: ao.nn.quantized.LSTM is what an observed one becomes."""
        raise NotImplementedError("an observed LSTM becomes an ao.nn.quantized.LSTM: convert() makes it")
