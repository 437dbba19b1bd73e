"""Native kernels: the C functions and emitted loops that compute an operator, as its declaration names them.

Every native kernel has the calling convention of the inner loops of NumPy's generalized ufuncs, see
:class:`NativeLoop`. A backend finds the loops (``backends/cpu/native_kernels/providers.py``) and verifies them; where
none can be used, the operator's Python kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import LinearAlgebraError
from ...named_tuple import NamedTuple
from ...registry.dtypes import DType, complex64, complex128, float32, float64

DOUBLES = {float32: float64, complex64: complex128}
"""Computing in double precision: NumPy's ``linalg`` converts operands so, and rounds its results once."""


EMITTED = frozenset(("tandem", "convolution"))
"""The providers of loops in the native language."""


class NativeLoop(NamedTuple):
    """One inner loop, ``void loop(char **args, npy_intp *dims, npy_intp *steps, void *data)``.

    It runs without the GIL, on any number of threads at once, on operands of any strides that are aligned to their
    elements, and allocates its own scratch memory. ``dims`` holds the number of items, then the core sizes; ``steps``
    holds the bytes from item to item of each operand, then the strides of the core axes.

    Attributes:
        provider: who has it: ``"numpy"``, ``"numpy.linalg"``, ``"numpy.fft"``, ``"scipy.special"``, or ``"tandem"``
            and ``"convolution"`` for emitted code.
        name: its name there.
        when: whether it computes a call, from the operator's arguments with specs in place of tensors.
        extra: numbers that follow the tensors as operands, in the real dtype of the first tensor.
    """

    provider: str
    name: str
    when: Callable[..., bool] = lambda *args, **kwargs: True
    extra: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"{self.provider}.{self.name}"


class Decomposition(NamedTuple):
    """An operator in terms of others, which compiled code contains where it would call Python.

    Attributes:
        body: a function of the operator's arguments, whose results have the bits of the operator's eager calls.
        when: whether it computes a call, from the operator's arguments with specs in place of tensors.
        is_eager: whether it also computes eager calls while native code is on, because the kernel's results have other
            bits; from the operator's arguments.
    """

    body: Callable[..., Any]
    when: Callable[..., bool] = lambda *args, **kwargs: True
    is_eager: Callable[..., bool] = lambda *args, **kwargs: False


class NativeKernel(NamedTuple):
    """The native kernel of an operator.

    Attributes:
        loops: the loops, the best first; the operands of a loop are the operator's tensors, its results the results.
        failure: the message of the error where a loop reports that it failed; empty if it cannot.
        widen: the dtypes that operands and results of these dtypes are computed in by loops that lack their own.
        error: the class of that error.
        promotes: whether operands of several dtypes are converted to the promoted one.
        is_exact: whether all correct algorithms return the same bits, so that calls need not agree on the loop.
        is_finite: whether the elements of the first operand, square matrices in double precision, must be finite: for
            others the loop is not called, and the call fails.
        make: returns further loops, which depend on the arguments, from the operator's arguments; None: there are none.
        dtypes: the dtypes of operands that loops compute; None: all.
        axis: the core axis, of all operands and results, from the operator's arguments; None: their last axes.
    """

    loops: tuple[NativeLoop, ...]
    failure: str = ""
    widen: Mapping[DType, DType] = {}
    error: type[Exception] = LinearAlgebraError
    promotes: bool = False
    is_exact: bool = False
    is_finite: bool = False
    axis: Callable[..., int] | None = None
    dtypes: tuple[DType, ...] | None = None
    make: Callable[..., tuple[NativeLoop, ...]] | None = None

    @property
    def may_be_emitted(self) -> bool:
        """Whether a loop may be one of this package, which then also computes the calls of the Python kernel."""
        return self.make is not None or any(loop.provider in EMITTED for loop in self.loops)

    def candidates(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[NativeLoop]:
        """The loops that compute a call, given the operator's arguments with specs in place of tensors."""
        made = () if self.make is None else self.make(*args, **kwargs)
        return [loop for loop in (*self.loops, *made) if loop.when(*args, **kwargs)]
