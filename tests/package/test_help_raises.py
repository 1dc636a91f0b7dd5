"""What help() says is raised, is raised: a call for what each function or class says that it refuses.

A line below is a call and the class of its error, which help() of what is called names.
"""

from __future__ import annotations

import inspect
import re
import types
import warnings
from io import BytesIO
from operator import attrgetter
from typing import Any

import pytest

import tensorpy as tp
import tensorpy.ao.nn.qat
import tensorpy.ao.nn.quantized
import tensorpy.distributed.algorithms.join
import tensorpy.distributed.checkpoint
import tensorpy.distributed.optim
import tensorpy.fx.experimental.proxy_tensor
import tensorpy.utils.extension
from tensorpy.autograd.gradcheck import GradcheckError
from tensorpy.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from tensorpy.fx.proxy import TraceError

CALLS = r"""
tp.broadcast_shapes((2,), (3,)) RuntimeError
tp.broadcast_tensors(tp.ones(2), tp.ones(3)) RuntimeError
tp.cartesian_prod() RuntimeError
tp.cartesian_prod(tp.ones(2, 2), tp.ones(2)) RuntimeError
tp.cdist(tp.ones(2, 3), tp.ones(2, 4)) RuntimeError
tp.cdist(tp.ones(2, 3), tp.ones(2, 3), compute_mode="x") ValueError
tp.chain_matmul(tp.ones(2, 3), tp.ones(2, 3)) RuntimeError
tp.compile(3) AssertionError
tp.cond(True, 1, 2, ()) RuntimeError
tp.cond(True, abs, abs, 3) RuntimeError
tp.eig(tp.ones(2, 2)) RuntimeError
tp.einsum("ij") ValueError
tp.einsum("ij,jk", tp.ones(2), tp.ones(2)) RuntimeError
tp.get_autocast_dtype("nothing") RuntimeError
tp.get_device_module("nothing") RuntimeError
tp.load(BytesIO(b"x"), mmap=True) ValueError
tp.meshgrid() RuntimeError
tp.meshgrid(tp.ones(2, 2)) RuntimeError
tp.nonzero(tp.ones(2), out=tp.ones(2), as_tuple=True) RuntimeError
tp.norm(tp.ones(2, 2), "x") RuntimeError
tp.norm(tp.ones(2, 2), "nuc", dim=0) RuntimeError
tp.norm(tp.ones(2, 2, 2), "nuc", dim=(0,1,2)) RuntimeError
tp.pca_lowrank(tp.ones(2, 2), q=5) ValueError
tp.pca_lowrank(tp.ones(2, 2), q=2, niter=-1) ValueError
tp.sparse_csr_tensor([0, 1], [5], [1.0], size=(1, 2)) RuntimeError
tp.sparse_bsr_tensor([0, 1], [5], [[[1.0]]], size=(1, 2)) RuntimeError
tp.sparse_csc_tensor([0, 1], [5], [1.0], size=(1, 2)) RuntimeError
tp.sparse_compressed_tensor([0, 1], [0], [1.0], layout=tp.strided) RuntimeError
tp.sparse_coo_tensor([0, 1], [1.0, 2.0]) RuntimeError
tp.sparse_coo_tensor([[0, 9]], [1.0, 2.0], (3,)) RuntimeError
tp.stft(tp.ones(2, 2, 8), 4, return_complex=True) RuntimeError
tp.stft(tp.ones(8), 4, window=tp.ones(8), return_complex=True) RuntimeError
tp.sym_ite(1, 1, 1) AssertionError
tp.sym_ite(True, 1, 1.0) AssertionError
tp.tensordot(tp.ones(2), tp.ones(2), -1) RuntimeError
tp.tensordot(tp.ones(2), tp.ones(2), 2) RuntimeError
tp.tensordot(tp.ones(2), tp.ones(3), 1) RuntimeError
tp.unravel_index(tp.tensor(1), "a") TypeError
tp.unravel_index(tp.tensor(1), (-1,)) ValueError
tp.vmap(lambda x: x, in_dims=(0, 0))(tp.ones(2)) ValueError
tp.vmap(lambda x: x, chunk_size=0) ValueError
tp.vmap(lambda x: x, randomness="x")(tp.ones(2)) RuntimeError
tp.Tensor.apply_(META, abs) TypeError
tp.Tensor.map_(META, META, max) TypeError
tp.Tensor.map2_(META, META, META, max) TypeError
tp.Tensor.xpu(tp.ones(2)) AssertionError
tp.Tensor.dim_order(tp.ones(2, 2), ambiguity_check=1) TypeError
tp.Tensor.dim_order(tp.ones(1, 1), ambiguity_check=True) RuntimeError
tp.Tensor.new(tp.ones(2), 2, device="meta") RuntimeError
tp.Tensor.register_hook(tp.ones(2), print) RuntimeError
tp.Tensor.register_post_accumulate_grad_hook(tp.ones(2), print) RuntimeError
tp.Tensor.set_(tp.ones(2), tp.ones(2, dtype=tp.int64).storage()) RuntimeError
tp.signal.windows.exponential(3, tau=0) ValueError
tp.signal.windows.exponential(-3) ValueError
tp.signal.windows.exponential(3, center=1.0) ValueError
tp.signal.windows.gaussian(3, std=0) ValueError
tp.signal.windows.general_cosine(3, a=[]) ValueError
tp.signal.windows.general_cosine(3, a=1) TypeError
tp.signal.windows.kaiser(3, beta=-1) ValueError
tp.signal.windows.hann(-1) ValueError
tp.signal.windows.bartlett(-1) ValueError
tp.sparse.spdiags(tp.ones(2, 2), tp.tensor([0, 0]), (2, 2)) RuntimeError
tp.sparse.spdiags(tp.ones(2, 2), tp.tensor([0]), (2, 2)) RuntimeError
tp.nested.as_nested_tensor(3) TypeError
tp.nested.nested_tensor(3) TypeError
tp.nested.masked_select(tp.ones(2, 2).to_sparse(), tp.ones(2, 2, dtype=tp.bool)) RuntimeError
tp.nested.narrow(tp.ones(2, 2, 2), 2, 0, 1, layout=tp.jagged) RuntimeError
tp.nested.narrow(tp.ones(2, 2), 1, tp.tensor([0, 1]), 5, layout=tp.jagged) RuntimeError
tp.nested.nested_tensor_from_jagged(tp.ones(2, 2)) RuntimeError
nn.factory_kwargs({"size": 1}) TypeError
nn.factory_kwargs({"device": 1, "factory_kwargs": {"device": 2}}) TypeError
F.affine_grid(tp.ones(1, 2, 3, dtype=tp.int64), (1, 1, 2, 2)) ValueError
F.affine_grid(tp.ones(1, 2, 2), (1, 1, 2, 2)) ValueError
F.affine_grid(tp.ones(1, 2, 3), (1, 2, 2)) NotImplementedError
F.dropout(tp.ones(2), 2.0) ValueError
F.alpha_dropout(tp.ones(2), 2.0) ValueError
F.feature_alpha_dropout(tp.ones(2, 2), 2.0) ValueError
F.dropout2d(tp.ones(2, 2, 2), 2.0) ValueError
F.dropout1d(tp.ones(2, 2), -1) ValueError
F.batch_norm(tp.ones(1, 2), None, None, training=True) ValueError
F.batch_norm(tp.ones(3, 2), None, None, training=True, eps=-1.0) ValueError
F.group_norm(tp.ones(2, 3), 2) RuntimeError
F.group_norm(tp.ones(1, 2), 2) ValueError
F.instance_norm(tp.ones(1, 2, 1)) ValueError
F.layer_norm(tp.ones(2, 3), (2,)) RuntimeError
F.local_response_norm(tp.ones(2, 2), 2) ValueError
F.binary_cross_entropy(tp.ones(2), tp.ones(3)) ValueError
F.binary_cross_entropy(tp.ones(2) * 2, tp.ones(2)) RuntimeError
F.binary_cross_entropy_with_logits(tp.ones(2), tp.ones(3)) ValueError
F.cross_entropy(tp.ones(2, 3), tp.tensor([0])) ValueError
F.cross_entropy(tp.ones(2, 3), tp.tensor([0, 7])) IndexError
F.cross_entropy(tp.ones(2, 3, 4), tp.ones(2, 5, dtype=tp.int64)) RuntimeError
F.ctc_loss(tp.ones(4, 1, 3), tp.tensor([[1]]), (9,), (1,)) RuntimeError
F.ctc_loss(tp.ones(4, 1, 3), tp.tensor([[1]]), (4,), (1,), blank=8) RuntimeError
F.gaussian_nll_loss(tp.ones(2), tp.ones(2), tp.ones(3)) ValueError
F.gaussian_nll_loss(tp.ones(2), tp.ones(2), -tp.ones(2)) ValueError
F.huber_loss(tp.ones(2), tp.ones(2), weight=tp.ones(3)) ValueError
F.mse_loss(tp.ones(2), tp.ones(2), weight=tp.ones(3)) ValueError
F.smooth_l1_loss(tp.ones(2), tp.ones(2), beta=-1.0) RuntimeError
F.poisson_nll_loss(tp.ones(2), tp.ones(2), reduction="x") ValueError
F.margin_ranking_loss(tp.ones(2), tp.ones(2, 2), tp.ones(2)) RuntimeError
F.multi_margin_loss(tp.ones(2, 2), tp.tensor([0, 1]), p=3) ValueError
F.multi_margin_loss(tp.ones(2, 2), tp.tensor([0, 1]), weight=tp.ones(2, 2)) ValueError
F.nll_loss(tp.ones(2, 3), tp.tensor([0, 7])) IndexError
F.nll_loss(tp.ones(2, 3), tp.tensor([0])) ValueError
F.triplet_margin_loss(tp.ones(2, 2), tp.ones(2, 2), tp.ones(2, 2), margin=0) ValueError
F.triplet_margin_with_distance_loss(tp.ones(2, 2), tp.ones(2, 2), tp.ones(2, 2), margin=0) ValueError
F.triplet_margin_with_distance_loss(tp.ones(2, 2), tp.ones(2), tp.ones(2, 2)) RuntimeError
F.embedding(tp.tensor([5]), tp.ones(2, 2)) IndexError
F.embedding(tp.tensor([0]), tp.ones(2, 2), padding_idx=5) AssertionError
F.embedding_bag(tp.tensor([[0]]), tp.ones(2, 2), mode="x") ValueError
F.embedding_bag(tp.tensor([[0]]), tp.ones(2, 2), mode="mean", per_sample_weights=tp.ones(1, 1)) NotImplementedError
F.embedding_bag(tp.tensor([0]), tp.ones(2, 2)) ValueError
F.fold(tp.ones(1, 4, 2), (3, 3), 2) RuntimeError
F.glu(tp.ones(3)) RuntimeError
F.glu(tp.tensor(1.0)) RuntimeError
F.grid_sample(tp.ones(1, 1, 2, 2), tp.ones(1, 2, 2, 2), mode="x") ValueError
F.grid_sample(tp.ones(1, 1, 2, 2), tp.ones(1, 2, 2, 2), padding_mode="x") ValueError
F.interpolate(tp.ones(1, 1, 2)) ValueError
F.interpolate(tp.ones(1, 1, 2), 2, 2) ValueError
F.interpolate(tp.ones(1, 1, 2), 2, align_corners=True) ValueError
F.interpolate(tp.ones(1, 1, 2), 2, mode="x") NotImplementedError
F.softmax(tp.ones(2), dim=4) IndexError
F.hardtanh(tp.ones(2), 2.0, 1.0) ValueError
F.max_unpool1d(tp.ones(1, 1, 2), tp.tensor([[[0, 2]]]), 2, output_size=(99,)) ValueError
F.multi_head_attention_forward(*[META] * 3, 8, 2, META, META, None, None, False, 0.0, META, META) AssertionError
F.one_hot(tp.tensor([-1])) RuntimeError
F.one_hot(tp.tensor([5]), 2) RuntimeError
F.pad(tp.ones(2), (1,)) RuntimeError
F.pad(tp.ones(2), (1, 1, 1, 1)) RuntimeError
F.pad(tp.ones(2), (1, 1), "reflect") NotImplementedError
nn.init.calculate_gain("x") ValueError
nn.init.calculate_gain("leaky_relu", "a") ValueError
nn.init.dirac_(tp.ones(2)) ValueError
nn.init.dirac_(tp.ones(3, 2, 2), groups=2) ValueError
nn.init.eye_(tp.ones(2)) ValueError
nn.init.sparse_(tp.ones(2), 0.1) ValueError
nn.init.orthogonal_(tp.ones(2)) ValueError
nn.init.xavier_uniform_(tp.ones(2)) ValueError
nn.init.kaiming_normal_(tp.ones(2)) ValueError
nn.init.kaiming_uniform_(tp.ones(2, 2), mode="x") ValueError
nn.init.kaiming_uniform_(tp.ones(2, 2), nonlinearity="x") ValueError
nn.attention.sdpa_kernel("x").__enter__() AssertionError
nn.parallel.parallel_apply([nn.Identity()], []) AssertionError
nn.utils.get_total_norm([tp.tensor([float("nan")])], error_if_nonfinite=True) RuntimeError
nn.utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1)) AssertionError
nn.utils.fuse_linear_bn_eval(nn.Linear(1, 1), nn.BatchNorm1d(1)) AssertionError
nn.utils.fuse_linear_bn_eval(nn.Linear(1, 2).eval(), nn.BatchNorm1d(3).eval()) AssertionError
nn.utils.remove_spectral_norm(nn.Linear(1, 1)) ValueError
nn.utils.remove_weight_norm(nn.Linear(1, 1)) ValueError
nn.utils.skip_init(int) RuntimeError
nn.utils.skip_init(nn.ReLU) RuntimeError
nn.utils.spectral_norm(nn.utils.spectral_norm(nn.Linear(1, 1))) RuntimeError
nn.utils.spectral_norm(nn.Linear(1, 1, False), "bias") ValueError
nn.utils.weight_norm(nn.utils.weight_norm(nn.Linear(1, 1))) RuntimeError
nn.utils.parametrize.register_parametrization(nn.Linear(1, 1), "x", nn.Identity()) ValueError
nn.utils.parametrize.register_parametrization(nn.Linear(1, 1), "weight", nn.Flatten(0)) ValueError
nn.utils.parametrize.remove_parametrizations(nn.Linear(1, 1), "weight") ValueError
nn.utils.parametrizations.orthogonal(nn.Linear(1, 1), "bias") ValueError
nn.utils.parametrizations.orthogonal(nn.Linear(1, 1), orthogonal_map="x") ValueError
nn.utils.parametrizations.spectral_norm(nn.Linear(1, 1), "x") ValueError
nn.utils.parametrizations.weight_norm(nn.Linear(1, 1), "x") ValueError
nn.utils.prune.random_unstructured(nn.Linear(1, 1), "weight", 2.0) ValueError
nn.utils.prune.l1_unstructured(nn.Linear(1, 1), "weight", 2) ValueError
nn.utils.prune.ln_structured(nn.Linear(1, 1), "weight", 2.0, 2, 0) ValueError
nn.utils.prune.random_structured(nn.Linear(1, 1), "weight", 2, 0) ValueError
nn.utils.prune.remove(nn.Linear(1, 1), "weight") ValueError
nn.utils.rnn.pack_padded_sequence(tp.ones(2, 2), [1, 2]) RuntimeError
nn.utils.rnn.pack_padded_sequence(tp.ones(2, 2), [0, 0]) RuntimeError
nn.utils.rnn.pack_padded_sequence(tp.ones(2, 2), [5, 1]) RuntimeError
nn.utils.rnn.pack_padded_sequence(tp.ones(2, 2), [5]) RuntimeError
nn.utils.rnn.pack_sequence([tp.ones(1), tp.ones(2)]) RuntimeError
nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence([tp.ones(2)]), total_length=1) ValueError
nn.utils.rnn.pad_sequence([]) RuntimeError
nn.utils.rnn.pad_sequence([tp.ones(1)], padding_side="x") RuntimeError
tp.ao.quantization.fuse_conv_bn(True, nn.ConvTranspose1d(1, 1, 1), nn.BatchNorm1d(1)) NotImplementedError
tp.ao.quantization.fuse_conv_bn_relu(True, nn.Linear(1, 1), nn.BatchNorm1d(1), nn.ReLU()) NotImplementedError
tp.ao.quantization.fuse_convtranspose_bn(True, nn.ConvTranspose1d(1, 1, 1), nn.BatchNorm1d(1)) Exception
tp.ao.quantization.fuse_modules(nn.Sequential(nn.Tanh(), nn.ReLU()).eval(), [["0", "1"]]) AssertionError
tp.ao.quantization.fuse_modules_qat(nn.Sequential(nn.Tanh(), nn.ReLU()), [["0", "1"]]) AssertionError
tp.ao.quantization.get_dynamic_quant_module_class(nn.Tanh) AssertionError
tp.ao.quantization.get_static_quant_module_class(nn.Tanh) AssertionError
tp.ao.quantization.get_fuser_method((nn.Tanh, nn.ReLU)) AssertionError
tp.ao.quantization.prepare_qat(nn.Linear(1, 1).eval()) AssertionError
tp.ao.quantization.quantize_dynamic(nn.Linear(1, 1), dtype=tp.int64) ValueError
tp.optim.swap_in_optimizer_params_and_state(SGD, {}, {}).__enter__() ValueError
tp.utils.data.default_collate([object()]) TypeError
tp.utils.data.default_collate([[1], [1, 2]]) RuntimeError
tp.utils.data.non_deterministic(3) TypeError
tp.utils.data.random_split([1, 2], [5]) ValueError
tp.utils.data.random_split([1, 2], [0.5, -0.5, 1.0]) ValueError
tp.utils.data.random_split([1, 2], [1.5, -0.5]) ValueError
tp.utils.checkpoint.checkpoint(abs, tp.ones(1), use_reentrant=True, debug=True) ValueError
tp.utils.checkpoint.checkpoint(abs, tp.ones(1), use_reentrant=True, other=True) ValueError
tp.utils.checkpoint.checkpoint_sequential([abs], 1, tp.ones(1), use_reentrant=True, other=True) ValueError
tp.utils.checkpoint.create_selective_checkpoint_contexts(3) TypeError
tp.utils.checkpoint.create_selective_checkpoint_contexts([3]) ValueError
tp.utils.checkpoint.detach_variable([tp.ones(1)]) RuntimeError
tp.distributions.kl_divergence(tp.distributions.Normal(0.0, 1.0), tp.distributions.Bernoulli(0.5)) NotImplementedError
tp.distributions.register_kl(3, int) TypeError
tp.autograd.grad(tp.ones(1, requires_grad=True).sum(), []) RuntimeError
tp.autograd.grad(tp.ones(1).sum(), [tp.ones(1, requires_grad=True)]) RuntimeError
tp.autograd.grad(tp.ones(1, requires_grad=True).sum(), [tp.ones(1, requires_grad=True)]) RuntimeError
tp.autograd.gradcheck(lambda x: x.detach() + x * 0, DOUBLE) GradcheckError
tp.autograd.gradcheck(lambda x: x, DOUBLE.detach()) ValueError
tp.autograd.forward_ad.make_dual(tp.ones(1), tp.ones(1)) RuntimeError
tp.autograd.functional.hessian(lambda x: x, tp.ones(2)) RuntimeError
tp.autograd.functional.hvp(lambda x: x.sum(), tp.ones(2), tp.ones(3)) RuntimeError
tp.autograd.functional.vhp(lambda x: x.sum(), tp.ones(2), tp.ones(3)) RuntimeError
tp.autograd.functional.jvp(lambda x: x, tp.ones(2), tp.ones(3)) RuntimeError
tp.autograd.functional.vjp(lambda x: x, tp.ones(2), tp.ones(3)) RuntimeError
tp.autograd.functional.vjp(lambda x: tp.ones(1), tp.ones(2), tp.ones(1), strict=True) RuntimeError
tp.autograd.functional.jacobian(lambda x: x, tp.ones(2), strict=True, vectorize=True) RuntimeError
tp.autograd.functional.jacobian(lambda x: tp.ones(1), tp.ones(2), strict=True) RuntimeError
tp.autograd.graph.get_gradient_edge(tp.ones(1)) RuntimeError
tp.autograd.graph.register_multi_grad_hook([tp.ones(1, requires_grad=True)], print, mode="x") ValueError
tp.func.functional_call(nn.Linear(1, 1), [{"weight": tp.ones(1, 1)}, {"weight": tp.ones(1, 1)}], tp.ones(1)) ValueError
tp.func.functionalize(abs, remove="x") RuntimeError
tp.func.jacrev(abs, chunk_size=0) ValueError
tp.func.jvp(abs, (tp.ones(2),), (tp.ones(3),)) RuntimeError
tp.func.jvp(abs, (tp.ones(2),), ()) RuntimeError
tp.func.rearrange(tp.ones(2), "a b -> b a") ValueError
tp.func.stack_module_state([]) RuntimeError
tp.func.stack_module_state([nn.Linear(1, 1), nn.ReLU()]) RuntimeError
tp.func.vjp(abs, 3) ValueError
tp.func.vjp(abs, tp.ones(1, dtype=tp.int64)) RuntimeError
tp.fx.symbolic_trace(lambda x: 1 if x.sum() > 0 else 2) TraceError
tp.fx.wrap(3) RuntimeError
tp.fx.experimental.proxy_tensor.make_fx(abs, tracing_mode="x") AssertionError
tp.dispatch.overloads("nothing") ValueError
tp.dispatch.table("nothing") ValueError
tp.dispatch.needs("nothing") ValueError
tp.dispatch.program("sort", tp.float32) ValueError
tp.dispatch.program("sin", tp.bool) NotImplementedError
tp.dispatch.schema("nothing") ValueError
tp.dispatch.tags("nothing") ValueError
tp.dispatch.below("nothing") ValueError
tp.dispatch.exclude("nothing") ValueError
tp.dispatch.include("nothing") ValueError
tp.profiler.schedule(wait=0, warmup=0, active=0) AssertionError
tp.utils.viz.graph(tp.ones(1)) ValueError
tp.testing.make_tensor(2, dtype=tp.int64, device="cpu", requires_grad=True) ValueError
tp.testing.make_tensor(2, dtype=tp.int64, device="cpu", low=3, high=2) ValueError
tp.testing.make_tensor(2, dtype="x", device="cpu") TypeError
tp.overrides.handle_torch_function(abs, (), 3) TypeError
tp.opencl.get_device_properties(77) RuntimeError
tp.library.custom_op("x", abs, mutates_args=()) ValueError
tp.library.custom_op("my::op", lambda x: x, mutates_args=()) ValueError
tp.library.define("x", "() -> ()") ValueError
tp.library.infer_schema(lambda x: x, mutates_args=()) ValueError
tp.library.opcheck("aten::add.Tensor", (), test_utils="x") ValueError
tp.library.opcheck(tp.ops.aten.abs.default, (tp.ones(1),), test_utils="x") ValueError
tp.library.register_torch_dispatch("aten::abs", int, abs) TypeError
tp.utils.extension.load("x", []) ValueError
tp.utils.extension.load_inline("x", "", language="rust") ValueError
tp.cuda.utilization() AssertionError
tp.distributed.get_node_local_rank() RuntimeError
tp.distributed.init_device_mesh("cpu:0", (1,)) RuntimeError
tp.distributed.init_device_mesh("cpu", (1,), mesh_dim_names=("a", "b")) RuntimeError
tp.distributed.checkpoint.async_save({}, async_checkpointer_type=PROCESS) ValueError
tp.distributed.optim.as_functional_optim(int) ValueError
tp.distributed.batch_isend_irecv([3]) ValueError
tp.serialization.default_restore_location(tp.ones(1).untyped_storage(), "cuda:0") RuntimeError
tp.serialization.get_unsafe_globals_in_checkpoint(BytesIO(b"x")) ValueError
tp.serialization.validate_cuda_device("cuda:0") RuntimeError
tp.serialization.check_module_version_greater_or_equal(UNKNOWN, (1, 0)) RuntimeError
tp.utils.dlpack.to_dlpack(tp.ones(1, requires_grad=True)) BufferError
tp.jit.script(nn.LazyLinear(1)) RuntimeError
tp.compiler.disable(3) AssertionError
nn.Conv1d(3, 2, 1, groups=2) ValueError
nn.Conv2d(1, 1, 1, padding="x") ValueError
nn.Conv2d(1, 1, 1, padding="same", stride=2) ValueError
nn.Conv3d(1, 1, 1, padding_mode="x") ValueError
nn.LazyConv2d(3, 1, groups=0) ValueError
nn.ConvTranspose2d(1, 1, 1, padding_mode="circular") ValueError
nn.FractionalMaxPool2d(2) ValueError
nn.FractionalMaxPool3d(2, output_ratio=2.0) ValueError
nn.Bilinear(0, 1, 1) ValueError
nn.Hardtanh(1.0, -1.0) AssertionError
nn.MultiheadAttention(5, 2) AssertionError
nn.MultiheadAttention(0, 2) ValueError
nn.GroupNorm(2, 3) ValueError
nn.Dropout(2.0) ValueError
nn.AlphaDropout(-1.0) ValueError
nn.Dropout2d(2.0) ValueError
nn.LSTM(2, 0) ValueError
nn.LSTM(2, 3, dropout=2.0) ValueError
nn.LSTM(2, 3, proj_size=3) ValueError
nn.GRU(2, 3, proj_size=1) ValueError
nn.RNN(2, 3, nonlinearity="x") ValueError
nn.Transformer(5, 2) AssertionError
nn.TransformerEncoderLayer(4, 2, activation="x") RuntimeError
nn.TransformerDecoderLayer(4, 2, activation="x") RuntimeError
nn.Embedding(2, 2, padding_idx=5) AssertionError
nn.MultiMarginLoss(3) ValueError
nn.MultiMarginLoss(weight=tp.ones(2, 2)) ValueError
nn.TripletMarginLoss(0) ValueError
nn.TripletMarginWithDistanceLoss(margin=0) ValueError
nn.HuberLoss(delta="x") TypeError
nn.LinearCrossEntropyLoss(4, 3, label_smoothing=2.0) RuntimeError
nn.Unflatten(1, 2.0) TypeError
nn.Unflatten(1.0, (2,)) TypeError
nn.AdaptiveLogSoftmaxWithLoss(4, 4, []) ValueError
nn.AdaptiveLogSoftmaxWithLoss(4, 4, [5]) ValueError
nn.Sequential(3) TypeError
nn.ModuleList([3]) TypeError
nn.ModuleDict({"a": 3}) TypeError
tp.GradScaler(growth_factor=0.5) AssertionError
tp.autocast(3) ValueError
tp.finfo(tp.int64) TypeError
tp.iinfo(tp.float32) TypeError
tp.masked.MaskedTensor(3, 3) TypeError
tp.quasirandom.SobolEngine(0) ValueError
tp.optim.ASGD([]) ValueError
tp.optim.Adadelta([ONE], lr=-1.0) ValueError
tp.optim.Adagrad([ONE], lr=-1.0) ValueError
tp.optim.Adam([ONE * 1]) ValueError
tp.optim.AdamW(tp.ones(1)) TypeError
tp.optim.Adamax([3]) TypeError
tp.optim.NAdam([ONE], betas=(2.0, 0.9)) ValueError
tp.optim.RAdam([ONE], eps=-1.0) ValueError
tp.optim.RMSprop([ONE], momentum=-1.0) ValueError
tp.optim.Rprop([ONE], etas=(2.0, 1.0)) ValueError
tp.optim.Adafactor([ONE], d=0.5) ValueError
tp.optim.SGD([ONE], nesterov=True) ValueError
tp.optim.LBFGS([]) ValueError
tp.optim.Muon([ONE]) ValueError
tp.optim.SparseAdam([tp.ones(2, 2).to_sparse()]) ValueError
tp.optim.lr_scheduler.ChainedScheduler([]) ValueError
tp.optim.lr_scheduler.SequentialLR(SGD, [], []) ValueError
tp.optim.lr_scheduler.ConstantLR(SGD, factor=2.0) ValueError
tp.optim.lr_scheduler.LinearLR(SGD, start_factor=0) ValueError
tp.optim.lr_scheduler.CosineAnnealingWarmRestarts(SGD, 0) ValueError
tp.optim.lr_scheduler.CyclicLR(SGD, 0.1, 1.0, mode="x") ValueError
tp.optim.lr_scheduler.StepLR(3, 1) TypeError
tp.optim.lr_scheduler.ExponentialLR(SGD, 0.5, last_epoch=3) KeyError
tp.optim.lr_scheduler.LambdaLR(SGD, [abs, abs]) ValueError
tp.optim.lr_scheduler.MultiplicativeLR(SGD, 3) TypeError
tp.optim.lr_scheduler.OneCycleLR(SGD, 1.0) ValueError
tp.optim.lr_scheduler.OneCycleLR(SGD, 1.0, 3, pct_start=2.0) ValueError
tp.optim.lr_scheduler.ReduceLROnPlateau(SGD, factor=1.0) ValueError
tp.optim.swa_utils.SWALR(SGD, 0.1, anneal_strategy="x") ValueError
tp.optim.swa_utils.AveragedModel(nn.Linear(1, 1), avg_fn=abs, multi_avg_fn=abs) AssertionError
tp.utils.data.BatchSampler([1], 0, False) ValueError
tp.utils.data.BatchSampler([1], 1, 3) ValueError
tp.utils.data.ConcatDataset([]) AssertionError
tp.utils.data.DataLoader([1], sampler=[0], shuffle=True) ValueError
tp.utils.data.DataLoader([1], timeout=-1) ValueError
tp.utils.data.DataLoader([1], prefetch_factor=2) ValueError
tp.utils.data.DistributedSampler([1], 2, 5) ValueError
tp.utils.data.RandomSampler([1], 3) TypeError
tp.utils.data.RandomSampler([1], num_samples=0) ValueError
tp.utils.data.WeightedRandomSampler([[1.0]], 1) ValueError
tp.utils.data.WeightedRandomSampler([1.0], 0) ValueError
tp.utils.data.StackDataset() ValueError
tp.utils.data.StackDataset([1], [1, 2]) ValueError
tp.utils.data.TensorDataset(tp.ones(1), tp.ones(2)) AssertionError
tp.library.Library("aten", "DEF") ValueError
tp.library.Library("mine", "X") ValueError
tp.ao.quantization.FakeQuantize(quant_min=-999, quant_max=0) AssertionError
tp.ao.quantization.MinMaxObserver(qscheme=tp.per_channel_affine) NotImplementedError
tp.ao.quantization.PerChannelMinMaxObserver(qscheme=tp.per_tensor_affine) NotImplementedError
tp.ao.quantization.HistogramObserver(dtype=tp.float32) AssertionError
tp.ao.quantization.FixedQParamsObserver(1.0, 0, is_dynamic=True) NotImplementedError
tp.ao.quantization.QConfig(tp.ao.quantization.MinMaxObserver(), tp.ao.quantization.MinMaxObserver()) ValueError
tp.ao.nn.quantized.Conv2d(3, 2, 1, groups=2) ValueError
tp.ao.nn.quantized.ConvTranspose1d(1, 1, 1, padding_mode="x") ValueError
tp.ao.nn.quantized.Linear(1, 1, dtype=tp.float32) RuntimeError
tp.ao.nn.quantized.LSTM(1, 1, dropout=2.0) ValueError
tp.ao.nn.qat.Linear(1, 1) AssertionError
tp.ao.nn.qat.Embedding(1, 1) AssertionError
tp.distributions.Bernoulli() ValueError
tp.distributions.Categorical(probs=tp.ones(2), logits=tp.ones(2)) ValueError
tp.distributions.Normal(0.0, -1.0) ValueError
tp.distributions.Beta(-1.0, 1.0) ValueError
tp.distributions.StudentT(-1.0) ValueError
tp.distributions.Uniform(1.0, 0.0) ValueError
tp.distributions.LKJCholesky(1) ValueError
tp.distributions.Dirichlet(tp.tensor(1.0)) ValueError
tp.distributions.Independent(tp.distributions.Normal(0.0, 1.0), 1) ValueError
tp.distributions.MultivariateNormal(tp.zeros(2)) ValueError
tp.distributions.Wishart(3.0) AssertionError
tp.distributions.Wishart(0.5, tp.eye(2)) ValueError
tp.distributions.LowRankMultivariateNormal(tp.zeros(2), tp.ones(3, 1), tp.ones(2)) ValueError
tp.distributions.MixtureSameFamily(3, 3) ValueError
tp.distributions.TransformedDistribution(tp.distributions.Normal(0.0, 1.0), 3) ValueError
tp.distributions.ReshapeTransform((2,), (3,)) ValueError
tp.distributed.BackendConfig("cpu:gloo,cpu:mpi") ValueError
tp.distributed.P2POp(abs, tp.ones(1), 0) ValueError
tp.distributed.checkpoint.FileSystemWriter("x", thread_count=0) ValueError
tp.distributed.algorithms.join.Join([]) ValueError
tp.serialization.set_default_mmap_options(99) ValueError
tp.compiler.set_stance("x") RuntimeError
"""


def names() -> dict[str, Any]:
    one = tp.nn.Parameter(tp.ones(1))
    return {
        "tp": tp,
        "nn": tp.nn,
        "F": tp.nn.functional,
        "BytesIO": BytesIO,
        "GradcheckError": GradcheckError,
        "TraceError": TraceError,
        "ONE": one,
        "SGD": tp.optim.SGD([one], lr=0.1),
        "META": tp.ones(2, device="meta"),
        "DOUBLE": tp.ones(1, dtype=tp.float64, requires_grad=True),
        "PROCESS": AsyncCheckpointerType.PROCESS,
        "UNKNOWN": types.SimpleNamespace(__name__="m", __version__="x"),
    }


@pytest.mark.parametrize("line", CALLS.strip().splitlines())
def test_what_is_said_to_be_raised_is_raised(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    call, _, error = line.rpartition(" ")
    given = names()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(BaseException) as raised:
            eval(call, given)
    assert type(raised.value) is eval(error, given), raised.value
    asked, _, path = call.partition("(")[0].partition(".")
    text = " ".join((inspect.getdoc(attrgetter(path)(given[asked])) or "").split())
    said = re.search(r"\bRaises: .*", text)
    assert said is not None
    assert re.search(rf"\b{error}\b", said.group()), said.group()
