"""The errors of compiled functions."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from tensorpy._compile import InvalidBackend, TorchDynamoException, TorchRuntimeError, UncapturedHigherOrderOpError


class Unsupported(TorchDynamoException):
    """A function that was to be one graph (`fullgraph=True`) is none."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """A function that was to be one graph needed more graphs than it may have."""


class RecompileError(TorchDynamoException):
    """A call needed another graph, and `config.error_on_recompile` is set."""


class UserErrorType(Enum):
    """What a program did that an export cannot have."""

    DYNAMIC_CONTROL_FLOW = auto()
    ANTI_PATTERN = auto()
    STANDARD_LIBRARY = auto()
    CONSTRAINT_VIOLATION = auto()
    DYNAMIC_DIM = auto()
    INVALID_INPUT = auto()
    INVALID_OUTPUT = auto()
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = auto()


class InternalTorchDynamoError(TorchDynamoException):
    """PyTorch's, for programs that catch it: errors of the library are what they are."""


class ResetRequired(TorchDynamoException):
    """PyTorch's, for programs that catch it: nothing here needs a reset."""


class UserError(Unsupported):
    """A program cannot be exported as it was said.

    Arguments:
        error_type: of which kind the error is
        msg: what is wrong
        case_name: is taken
    """

    def __init__(self, error_type: UserErrorType, msg: str, case_name: str | None = None) -> None:
        self.error_type, self.message, self.case_name = error_type, msg, case_name
        super().__init__(msg)


class RecompileLimitExceeded(Unsupported):
    """PyTorch's, for programs that catch it: FailOnRecompileLimitHit is what is raised."""


class SkipFrame(TorchDynamoException):
    """PyTorch's, for programs that catch it: every function runs."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised, or gave what cannot be called."""

    def __init__(self, backend: Any, inner_exception: Exception) -> None:
        self.backend_name = getattr(backend, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(f"backend={self.backend_name!r} raised:\n{type(inner_exception).__name__}: {inner_exception}")


class ObservedException(TorchDynamoException):
    """PyTorch's, for programs that catch it and its kin: an exception of the program's own is what it is."""


class ObservedLookupError(ObservedException):
    """PyTorch's, like ObservedException."""


class ObservedKeyError(ObservedLookupError):
    """PyTorch's, like ObservedException."""


class ObservedIndexError(ObservedLookupError):
    """PyTorch's, like ObservedException."""


class ObservedAttributeError(ObservedException):
    """PyTorch's, like ObservedException."""


class ObservedRuntimeError(ObservedException):
    """PyTorch's, like ObservedException."""


class ObservedTypeError(ObservedException):
    """PyTorch's, like ObservedException."""


class ObservedNotImplementedError(ObservedException):
    """PyTorch's, like ObservedException."""


class ObservedUserStopIteration(ObservedException):
    """PyTorch's, like ObservedException."""


class RestartAnalysis(TorchDynamoException):
    """PyTorch's, for programs that catch it: nothing is analysed."""


class InfiniteGeneratorError(TorchDynamoException):
    """PyTorch's, for programs that catch it: generators run as they are."""


class CondOpArgsMismatchError(TorchDynamoException):
    """PyTorch's, for programs that catch it: UncapturedHigherOrderOpError is what is raised."""


class PackageError(TorchDynamoException):
    """PyTorch's, for programs that catch it: no code is packed."""


__all__ = ["BackendCompilerFailed", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "InvalidBackend"]
__all__ += ["RecompileError", "RecompileLimitExceeded", "ResetRequired", "SkipFrame", "TorchDynamoException"]
__all__ += ["CondOpArgsMismatchError", "InfiniteGeneratorError", "ObservedAttributeError", "ObservedException"]
__all__ += ["ObservedIndexError", "ObservedKeyError", "ObservedLookupError", "ObservedNotImplementedError"]
__all__ += ["ObservedRuntimeError", "ObservedTypeError", "ObservedUserStopIteration", "PackageError", "RestartAnalysis"]
__all__ += ["TorchRuntimeError", "UncapturedHigherOrderOpError", "Unsupported", "UserError", "UserErrorType"]
