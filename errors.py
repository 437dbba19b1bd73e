"""Every exception that tandem raises on purpose.

Messages name the call, its shapes, dtypes or keys, and a fix. Where NumPy, the Array API standard or JAX raises another
type for the same mistake, the class derives from that type too, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy.linalg import LinAlgError


class TandemError(Exception):
    """Base class of every exception raised by tandem."""


class ArgumentError(TandemError, TypeError):
    """An argument is missing, unexpected, or of a type that the operator does not take."""


class AmbiguousNameError(ArgumentError):
    """A call means different things in different libraries; :func:`tandem.debug.strict_names` raises it."""


class BodyDTypeError(ArgumentError):
    """The body of a loop returns another dtype than its carry has, or the branches of a condition return several."""


class KernelResultError(ArgumentError):
    """A kernel, a mode or a tensor subclass returned what the operator's schema does not have."""


class ValueArgumentError(TandemError, ValueError):
    """An argument has the right type and a value that the operator does not take."""


class LinearAlgebraError(ValueArgumentError, LinAlgError):
    """A matrix has no such factorization, or a system of equations no solution."""


class TreeError(ArgumentError, ValueArgumentError):
    """Pytrees differ where they must not; the message names the key path."""


class ShapeError(TandemError, TypeError, ValueError):
    """Shapes do not fit each other, or do not fit the operator."""


class StateError(ArgumentError, ShapeError, RuntimeError):
    """A state to load whose names or shapes are not those of the module; a RuntimeError too, as in PyTorch."""


class DTypeError(TandemError, TypeError):
    """A dtype is unknown, not accepted by the operator, or cannot be promoted with another."""


class ScalarOverflowError(TandemError, OverflowError):
    """A Python scalar does not fit the dtype of the other operand."""


class OutOfBoundsError(TandemError, IndexError):
    """An index or an axis is out of bounds."""


class AxisError(OutOfBoundsError, ValueArgumentError):
    """An array has no such axis to map over."""


class IndexArgumentError(TandemError, IndexError, TypeError):
    """An index is of a type that indexing does not take."""


class DeletedTensorError(TandemError, RuntimeError):
    """A tensor is used whose memory was deleted, or donated to a jitted function."""


class AllocationError(TandemError, MemoryError):
    """There is not enough memory for a result."""


class DeviceError(TandemError, ValueError):
    """A device is unknown, or the arguments are on different devices."""


class BackendUnavailableError(DeviceError, RuntimeError):
    """The backend is known, and cannot be used on this machine."""


class CudaError(TandemError, RuntimeError):
    """The CUDA driver or compiler refuses a call; the message has its own name for the fault, and its text."""


class OutOfMemoryError(AllocationError, CudaError):
    """A device has no memory for a result; the message says how much was asked for, is free, and there is."""


class ProfilerError(TandemError, RuntimeError):
    """A profiler was started while another one runs."""


class SchemaError(TandemError, ValueError):
    """A schema does not parse, or does not allow what was asked of it.

    Attributes:
        column: 0-based column of the fault in the schema's text, or None.
    """

    def __init__(self, message: str, column: int | None = None):
        super().__init__(message)
        self.column = column


class RegistrationError(TandemError, RuntimeError):
    """A definition or an implementation conflicts with one that is already there."""


class TreeRegistrationError(RegistrationError, ValueError):
    """A class is registered as a pytree node a second time."""


class UnknownKeyError(TandemError, KeyError):
    """A dispatch table has no row of that name."""

    __str__ = Exception.__str__  # KeyError's prints the message as a literal


class UnknownNameError(TandemError, AttributeError):
    """A namespace or a tensor has no attribute of a name; the message names the tandem spelling.

    Args:
        message: the text without the suggestion.
        suggest: returns the suggestion, which is computed when the message is read: ``hasattr`` does not need it.
    """

    def __init__(self, message: str, suggest: Callable[[], str] | None = None):
        super().__init__(message)
        self._suggest = suggest

    def __str__(self) -> str:
        """The message with the suggestion."""
        if self._suggest is not None:
            self.args, self._suggest = (self.args[0] + self._suggest(),), None
        return str(self.args[0])

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str]]:
        """Pickle the complete message."""
        return UnknownNameError, (str(self),)


class UnknownOperatorError(TandemError, AttributeError):
    """No operator of that name is registered."""


class AxisNameError(TandemError, NameError):
    """No ``vmap`` around the call has an axis of that name."""


class NoKernelError(TandemError, NotImplementedError):
    """The operator has no kernel for the dispatch key that was reached."""


class AutogradError(TandemError, RuntimeError):
    """A derivative was asked for that cannot be given."""


class RuleError(TreeError, ShapeError, AutogradError):
    """A derivative written by hand returns values of a wrong structure, shape or number."""


class TangentError(ShapeError, DTypeError):
    """A tangent or a cotangent has another shape or dtype than its value."""


class NotDifferentiableError(AutogradError, TypeError):
    """The operator, or the dtype, has no derivative; the message says why."""


class LeafWriteError(AutogradError, TypeError):
    """The tensor that a derivative is taken by, or a view of it, is written in place."""


class VersionError(AutogradError):
    """A tensor saved for the backward pass was changed in place after it was saved."""


class TracerError(TandemError, TypeError):
    """A traced value was used in a way that a trace cannot record."""


class ConcretizationError(TracerError):
    """Python code asked a traced value for its data (``if``, ``float(x)``, ``.item()``, NumPy conversion)."""


class UndecidedError(ConcretizationError):
    """A question about symbolic sizes whose answer depends on their numbers.

    Attributes:
        guard: the condition on the sizes that would decide it, as text.
    """

    def __init__(self, guard: str):
        super().__init__(guard)
        self.guard = guard

    def __str__(self) -> str:
        return f"this depends on the numbers of symbolic sizes; it needs a guard on {self.guard}"


class LeakedTracerError(TracerError):
    """A traced or level-wrapped value was used after its trace or transform had ended."""


class GraphError(TandemError, ValueError):
    """A graph is not well formed; the message prints the part around the fault."""


class LoweringError(TandemError, RuntimeError):
    """A graph cannot be lowered to an executable."""


class GradientCheckError(TandemError, AssertionError):
    """A derivative is not what differences of the function's values say."""


class OpCheckError(TandemError, AssertionError):
    """An operator does not do what its registrations promise; says which test has failed, and what to fix.

    Attributes:
        failures: the message of each test that has failed.
    """

    def __init__(self, message: str, failures: dict[str, str] | None = None):
        super().__init__(message)
        self.failures = failures or {}


class NanError(TandemError, FloatingPointError):
    """An operator gave a NaN inside ``td.debug.nans()``; names the operator, the line and the inputs."""


class CheckError(TandemError, ValueError):
    """The condition of a ``td.check`` is false, or ``td.checkify`` has found another error."""


class UnsupportedError(TandemError, NotImplementedError):
    """Something that tandem does not do yet; the message says what does work."""


# What properties raise is an AttributeError too, so that ``hasattr`` and ``getattr`` with a default understand it.
class ShapeAttributeError(ShapeError, AttributeError):
    """A property that a tensor of this shape does not have."""


class ConcretizationAttributeError(ConcretizationError, AttributeError):
    """A property that a traced tensor does not have."""


class UnsupportedAttributeError(UnsupportedError, AttributeError):
    """A property that a tensor of this layout does not have."""


class FallbackWarning(UserWarning):
    """A call without a kernel runs by a slower general path; warned once per operator."""
