"""Recurrent networks whose weights are integers, and whose inputs and states are quantized by their range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn.quantized import packed
from tensorpy.ao.nn.quantized.modules.utils import _quantize_weight
from tensorpy.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "PackedParameter", "RNNBase", "RNNCell", "RNNCellBase"]

State = tuple[Tensor, ...]
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}

# ---- one step ----


def _step(mode: str, by_input: Tensor, by_state: Tensor, state: State) -> State:
    """The next state, from what the input and the state are mapped to."""
    if mode == "LSTM":
        return _C._thnn_fused_lstm_cell(by_input, by_state, state[1])[:2]
    if mode == "GRU":
        return (_C._thnn_fused_gru_cell(by_input, by_state, state[0])[0],)
    return ((by_input + by_state).tanh() if mode == "RNN_TANH" else (by_input + by_state).relu(),)


def _mapped(x: Tensor, weight: packed.LinearPackedParamsBase) -> Tensor:
    return packed.linear_dynamic(x, weight, reduce_range=True)


def _random(gates: int, inputs: int, dtype: Any, bias: bool = True) -> packed.LinearPackedParamsBase:
    """A weight that is drawn, as PyTorch's modules have until they get one."""
    if dtype not in (_C.qint8, _C.float16):
        raise RuntimeError(f"weights of recurrent networks are of qint8 or float16, not of {dtype}")
    weight = _C.randn(gates, inputs)
    if dtype == _C.qint8:
        weight = _C.quantize_per_tensor(weight, 0.1, 0, _C.qint8)
    return packed.laid_out(weight, _C.randn(gates) if bias else None)


def _instead(
    name: str, before: packed.LinearPackedParamsBase, weight: Tensor, bias: Any
) -> packed.LinearPackedParamsBase:
    """What a state has in the place of a weight."""
    after = packed.laid_out(weight, bias)
    if (before.features, before.columns) != (after.features, after.columns):
        raise RuntimeError(f"{name}: a weight of another size")
    return after


def _observed(mod: Any) -> Callable[[Any, Any], packed.LinearPackedParamsBase]:
    """What makes integers of a module's weights, as its qconfig says."""
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.bias:
        raise AssertionError("mod.bias must be True")

    def integers(weight: Any, bias: Any) -> packed.LinearPackedParamsBase:
        watching = mod.qconfig.weight()
        if watching.dtype not in (_C.qint8, _C.float16):
            raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {watching.dtype}")
        if watching.dtype == _C.float16:
            return packed.linear_prepack_fp16(weight.detach().float(), bias.detach().float())
        watching(weight)
        return packed.linear_prepack(_quantize_weight(weight.detach().float(), watching), bias.detach().float())

    return integers


# ---- layers ----


class PackedParameter(nn.Module):
    """The weights of one direction of one layer: those of the input and of the state.

    A state dict has them as PyTorch's: an object whose state is the weights and the biases.

    Arguments:
        param: the two, from linear_prepack

    Example:
        >>> pair = [tp.ops.quantized.linear_prepack(tp.quantize_per_tensor(tp.ones(4, 2), 1.0, 0, tp.qint8))] * 2
        >>> tp.ao.nn.quantized.dynamic.PackedParameter(tuple(pair)).state_dict()["param"]
        <ScriptObject of __torch__.torch.classes.rnn.CellParamsBase>
    """

    param: tuple[packed.LinearPackedParamsBase, packed.LinearPackedParamsBase]

    def __init__(self, param: Any) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = packed.cell_for_state(*self.param)

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *rest: Any
    ) -> None:
        name = prefix + "param"
        of_input, of_state = packed.cell_of_state(name, state_dict.pop(name))
        self.param = (_instead(name, self.param[0], *of_input), _instead(name, self.param[1], *of_state))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)


class RNNBase(nn.Module):
    """What LSTM and GRU are. Weights are drawn until the module gets some.

    Arguments:
        mode: 'LSTM' or 'GRU'
        input_size: how many features each step of the input has
        hidden_size: how many features the state has
        num_layers: how many layers lie on each other
        bias: True
        batch_first: whether the batch is the first dimension of input and output
        dropout: not computed: the module is not trained
        bidirectional: whether each layer goes both ways
        dtype: qint8, or float16, whose products are those of float32

    Example:
        >>> tp.ao.nn.quantized.dynamic.RNNBase("GRU", 2, 3)(tp.ones(4, 1, 2))[0].shape
        tensorpy.Size([4, 1, 3])
    """

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    dtype: Any

    _FLOAT_MODULE: Any = nn.RNNBase
    _version = 2

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = _C.qint8,
    ) -> None:
        super().__init__()
        if mode not in ("LSTM", "GRU"):
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.dtype = dtype
        self.train(False)
        ways, gates = 2 if bidirectional else 1, _GATES[mode] * hidden_size
        inputs = [input_size if layer == 0 else hidden_size * ways for layer in range(num_layers) for _ in range(ways)]
        self._all_weight_values = nn.ModuleList(
            [PackedParameter((_random(gates, n, dtype), _random(gates, hidden_size, dtype))) for n in inputs]
        )

    def _get_name(self) -> str:
        return f"DynamicQuantized{self.mode}"

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        shown = [f"{name}={getattr(self, name)}" for name, plain in usual.items() if getattr(self, name) != plain]
        return ", ".join([str(self.input_size), str(self.hidden_size), *shown])

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"  # without the packed weights

    # ---- the steps of a layer, one way ----

    def _along(self, x: Tensor, sizes: Sequence[int], backwards: bool, state: State, weights: Any) -> tuple[Any, State]:
        """The states of all steps, [rows, hidden], and the last. Step t has sizes[t] rows, fewer and fewer."""
        by_input = _mapped(x, weights.param[0]).split(list(sizes))
        made: list[Any] = [None] * len(sizes)
        ended: list[State] = []  # states of sequences that ended before others, shortest last
        now = tuple(part[: sizes[-1] if backwards else sizes[0]] for part in state)
        for t in reversed(range(len(sizes))) if backwards else range(len(sizes)):
            size, have = sizes[t], now[0].shape[0]
            if size < have:
                ended.append(tuple(part[size:] for part in now))
                now = tuple(part[:size] for part in now)
            elif size > have:
                now = tuple(_C.cat([part, first[have:size]]) for part, first in zip(now, state, strict=True))
            now = _step(self.mode, by_input[t], _mapped(now[0], weights.param[1]), now)
            made[t] = now[0]
        whole = [now, *reversed(ended)]
        return _C.cat(made), tuple(_C.cat(list(parts)) for parts in zip(*whole, strict=True))

    def _layers(self, x: Tensor, sizes: Sequence[int], state: State) -> tuple[Tensor, State]:
        ways, last = 2 if self.bidirectional else 1, []
        for first in range(0, len(self._all_weight_values), ways):
            made = []
            for way in range(ways):
                weights = self._all_weight_values[first + way]
                output, end = self._along(x, sizes, way == 1, tuple(part[first + way] for part in state), weights)
                made.append(output)
                last.append(end)
            x = _C.cat(made, 1)
        return x, tuple(_C.stack(list(parts)) for parts in zip(*last, strict=True))

    # ---- calls ----

    def _started(self, x: Tensor, batch: int, hx: Any) -> State:
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            )
        expected = (self.num_layers * (2 if self.bidirectional else 1), batch, self.hidden_size)
        count = 2 if self.mode == "LSTM" else 1
        if hx is None:
            return (_C.zeros(*expected, device=x.device),) * count
        state = tuple(hx) if self.mode == "LSTM" else (hx,)
        for part in state:
            if tuple(part.shape) != expected or len(state) != count:
                raise RuntimeError(f"Expected hidden size {expected}, got {list(part.shape)}")
        return state

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The output of all steps, and the last state.

        Returns: a tensor (L, N, H), or with batch_first (N, L, H), and the state or states (layers, N, H).
        """
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            sizes = batch_sizes.tolist()
            state = self._started(data, sizes[0], hx)
            if hx is not None and order is not None:
                state = tuple(part.index_select(1, order) for part in state)
            output, last = self._layers(data, sizes, state)
            last = last if back is None else tuple(part.index_select(1, back) for part in last)
            return PackedSequence(output, batch_sizes, order, back), last if self.mode == "LSTM" else last[0]
        if input.dim() != 3:
            raise RuntimeError(f"input must have 3 dimensions, got {input.dim()}")
        x = input.transpose(0, 1) if self.batch_first else input
        steps, batch = x.shape[:2]
        if steps == 0 or batch == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        state = self._started(x, batch, hx)
        output, last = self._layers(x.reshape(-1, self.input_size), [batch] * steps, state)
        output = output.reshape(steps, batch, -1)
        return output.transpose(0, 1) if self.batch_first else output, last if self.mode == "LSTM" else last[0]

    # ---- weights ----

    def _take(self, found: Callable[[str], packed.LinearPackedParamsBase]) -> None:
        ends = ("", "_reverse") if self.bidirectional else ("",)
        names = [f"l{layer}{end}" for layer in range(self.num_layers) for end in ends]
        for holder, name in zip(self._all_weight_values, names, strict=True):
            holder.param = (found(f"ih_{name}"), found(f"hh_{name}"))

    def set_weight_bias(self, weight_bias_dict: Any) -> None:
        """Takes quantized weights and biases, by the names that they have in nn.LSTM and nn.GRU."""
        self._take(lambda n: packed.laid_out(weight_bias_dict[f"weight_{n}"], weight_bias_dict[f"bias_{n}"]))

    def get_weight(self) -> dict[str, Tensor]:
        """The quantized weights by name."""
        return {f"weight_{name}": weight for name, (weight, _) in self._named()}

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return {f"bias_{name}": bias for name, (_, bias) in self._named()}

    def _named(self) -> list[Any]:
        found: list[Any] = []
        ends = ("", "_reverse") if self.bidirectional else ("",)
        for at, holder in enumerate(self._all_weight_values):
            name = f"l{at // len(ends)}{ends[at % len(ends)]}"
            found += [(f"{of}_{name}", part.unpack()) for of, part in zip(("ih", "hh"), holder.param, strict=True)]
        return found

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> RNNBase:
        """Makes one of an LSTM or a GRU with a qconfig."""
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        integers = _observed(mod)
        kind = LSTM if mod.mode == "LSTM" else GRU
        made = kind(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional,
            mod.qconfig.weight().dtype,
        )  # fmt: skip
        made._take(lambda name: integers(getattr(mod, f"weight_{name}"), getattr(mod, f"bias_{name}")))
        return made


class LSTM(RNNBase):
    """nn.LSTM with weights of integers.

    Arguments:
        args: those of RNNBase after the mode
        kwargs: likewise

    Example:
        >>> y, (h, c) = tp.ao.nn.quantized.dynamic.LSTM(2, 3)(tp.ones(4, 1, 2))
        >>> y.shape, h.shape
        (tensorpy.Size([4, 1, 3]), tensorpy.Size([1, 1, 3]))
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """nn.GRU with weights of integers.

    Arguments:
        args: those of RNNBase after the mode
        kwargs: likewise

    Example:
        >>> y, h = tp.ao.nn.quantized.dynamic.GRU(2, 3)(tp.ones(4, 1, 2))
        >>> y.shape, h.shape
        (tensorpy.Size([4, 1, 3]), tensorpy.Size([1, 1, 3]))
    """

    _FLOAT_MODULE = nn.GRU

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


# ---- cells ----


class RNNCellBase(nn.Module):
    """What the cells are: one step, with weights of integers.

    Arguments:
        input_size: how many features the input has
        hidden_size: how many features the state has
        bias: whether there is a bias
        num_chunks: how many gates the cell has
        dtype: qint8, or float16, whose products are those of float32

    Example:
        >>> tp.ao.nn.quantized.dynamic.RNNCellBase(2, 3, num_chunks=1)
        DynamicQuantizedRNNCellBase(2, 3)
    """

    input_size: int
    hidden_size: int
    bias: bool
    weight_dtype: Any

    _version = 1
    _packed_weight_ih: packed.LinearPackedParamsBase
    _packed_weight_hh: packed.LinearPackedParamsBase

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4, dtype: Any = _C.qint8
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        self._packed_weight_ih = _random(num_chunks * hidden_size, input_size, dtype, bias)
        self._packed_weight_hh = _random(num_chunks * hidden_size, hidden_size, dtype, bias)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        shown = f"{self.input_size}, {self.hidden_size}"
        shown += ", bias=False" if not self.bias else ""
        return shown + (
            f", nonlinearity={self.nonlinearity}" if getattr(self, "nonlinearity", "tanh") != "tanh" else ""
        )

    def _stepped(self, mode: str, x: Tensor, state: State | None) -> State:
        if x.dim() != 2 or x.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {tuple(x.shape)}, expected {self.input_size}")
        if state is None:
            state = (_C.zeros(x.shape[0], self.hidden_size, device=x.device),) * (2 if mode == "LSTM" else 1)
        for part in state:
            if tuple(part.shape) != (x.shape[0], self.hidden_size):
                raise RuntimeError(
                    f"a state of {tuple(part.shape)} for an input of {x.shape[0]} rows and {self.hidden_size} features"
                )
        return _step(mode, _mapped(x, self._packed_weight_ih), _mapped(state[0], self._packed_weight_hh), state)

    def set_weight_bias(self, weight_bias_dict: Any) -> None:
        """Takes quantized weights and biases by the names that they have in nn.LSTMCell and its kin."""
        self._packed_weight_ih = packed.laid_out(weight_bias_dict["weight_ih"], weight_bias_dict["bias_ih"])
        self._packed_weight_hh = packed.laid_out(weight_bias_dict["weight_hh"], weight_bias_dict["bias_hh"])

    def get_weight(self) -> dict[str, Tensor]:
        """The quantized weights by name."""
        return {"weight_ih": self._packed_weight_ih.unpack()[0], "weight_hh": self._packed_weight_hh.unpack()[0]}

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return {"bias_ih": self._packed_weight_ih.unpack()[1], "bias_hh": self._packed_weight_hh.unpack()[1]}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "_packed_weight_ih"] = packed.for_state(self._packed_weight_ih)
        destination[prefix + "_packed_weight_hh"] = packed.for_state(self._packed_weight_hh)

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *rest: Any
    ) -> None:
        by_input, by_state = prefix + "_packed_weight_ih", prefix + "_packed_weight_hh"
        made = (
            _instead(by_input, self._packed_weight_ih, *packed.of_state(by_input, state_dict.pop(by_input))),
            _instead(by_state, self._packed_weight_hh, *packed.of_state(by_state, state_dict.pop(by_state))),
        )
        self._packed_weight_ih, self._packed_weight_hh = made
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> RNNCellBase:
        """Makes one of a cell with a qconfig."""
        kinds: dict[Any, Any] = {nn.LSTMCell: LSTMCell, nn.GRUCell: GRUCell, nn.RNNCell: RNNCell}
        if type(mod) not in kinds:
            raise AssertionError("nn.quantized.dynamic.RNNCellBase.from_float is of LSTMCell, GRUCell and RNNCell")
        integers = _observed(mod)
        more = {"nonlinearity": mod.nonlinearity} if isinstance(mod, nn.RNNCell) else {}
        made = kinds[type(mod)](mod.input_size, mod.hidden_size, dtype=mod.qconfig.weight().dtype, **more)
        made._packed_weight_ih = integers(mod.weight_ih, mod.bias_ih)
        made._packed_weight_hh = integers(mod.weight_hh, mod.bias_hh)
        return made


class RNNCell(RNNCellBase):
    """nn.RNNCell with weights of integers.

    Arguments:
        input_size: how many features the input has
        hidden_size: how many features the state has
        bias: whether there is a bias
        nonlinearity: 'tanh' or 'relu'
        dtype: qint8, or float16, whose products are those of float32

    Example:
        >>> tp.ao.nn.quantized.dynamic.RNNCell(2, 3)(tp.ones(5, 2)).shape
        tensorpy.Size([5, 3])
    """

    nonlinearity: str

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = _C.qint8
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._stepped(f"RNN_{self.nonlinearity.upper()}", input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """nn.LSTMCell with weights of integers.

    Arguments:
        input_size: how many features the input has
        hidden_size: how many features the state has
        bias: whether there is a bias
        dtype: qint8, or float16, whose products are those of float32

    Example:
        >>> h, c = tp.ao.nn.quantized.dynamic.LSTMCell(2, 3)(tp.ones(5, 2))
        >>> h.shape, c.shape
        (tensorpy.Size([5, 3]), tensorpy.Size([5, 3]))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = _C.qint8) -> None:
        super().__init__(input_size, hidden_size, bias, 4, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> State:
        """The next state (h, c)."""
        return self._stepped("LSTM", input, None if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """nn.GRUCell with weights of integers.

    Arguments:
        input_size: how many features the input has
        hidden_size: how many features the state has
        bias: whether there is a bias
        dtype: qint8, or float16, whose products are those of float32

    Example:
        >>> tp.ao.nn.quantized.dynamic.GRUCell(2, 3)(tp.ones(5, 2)).shape
        tensorpy.Size([5, 3])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = _C.qint8) -> None:
        super().__init__(input_size, hidden_size, bias, 3, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        return self._stepped("GRU", input, None if hx is None else (hx,))[0]
