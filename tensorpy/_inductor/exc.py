"""Errors of PyTorch's code generator, for programs that catch them: no code is generated, so nothing raises them."""

from __future__ import annotations

from tensorpy._dynamo.exc import BackendCompilerFailed, TorchDynamoException


class OperatorIssue(RuntimeError):
    """PyTorch's, for programs that catch it: an operator that has no code."""


class MissingOperatorWithDecomp(OperatorIssue):
    """PyTorch's, like OperatorIssue."""


class MissingOperatorWithoutDecomp(OperatorIssue):
    """PyTorch's, like OperatorIssue."""


class LoweringException(OperatorIssue):
    """PyTorch's, like OperatorIssue."""


class SubgraphLoweringException(RuntimeError):
    """PyTorch's, for programs that catch it: a graph within one that has no code."""


class InvalidCxxCompiler(RuntimeError):
    """PyTorch's, for programs that catch it: nothing is compiled while a program runs."""


class CppWrapperCodegenError(RuntimeError):
    """PyTorch's, like InvalidCxxCompiler."""


class CppCompileError(RuntimeError):
    """PyTorch's, like InvalidCxxCompiler."""


class CUDACompileError(CppCompileError):
    """PyTorch's, like InvalidCxxCompiler."""


class TritonMissing(TorchDynamoException):
    """PyTorch's, for programs that catch it: there is no use for Triton."""


class GPUTooOldForTriton(TorchDynamoException):
    """PyTorch's, like TritonMissing."""


class InductorError(BackendCompilerFailed):
    """PyTorch's, for programs that catch it: BackendCompilerFailed is what a backend of the program's raises."""


__all__ = [
    "BackendCompilerFailed",
    "CUDACompileError",
    "CppCompileError",
    "CppWrapperCodegenError",
    "GPUTooOldForTriton",
    "InductorError",
    "InvalidCxxCompiler",
    "LoweringException",
    "MissingOperatorWithDecomp",
    "MissingOperatorWithoutDecomp",
    "OperatorIssue",
    "SubgraphLoweringException",
    "TritonMissing",
]
