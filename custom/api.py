"""The public functions for custom operators; their implementation is imported at the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, overload

from .. import lazy

if TYPE_CHECKING:
    from ..errors import OpCheckError
    from ..registry.library import Handle
    from ..registry.types import DTypeLike, Function
    from .kernels import CKernel, CudaKernel, KernelLike, LlvmKernel, NumpyKernel
    from .op import CustomOp

    F = TypeVar("F", bound=Function)
    K = TypeVar("K", bound=KernelLike)

define = lazy.Module(".custom.define")
extend = lazy.Module(".custom.extend")
kernels = lazy.Module(".custom.kernels")
checks = lazy.Module(".custom.opcheck")


@overload
def custom_op(
    name: str,
    fn: None = None,
    *,
    mutates_args: str | Iterable[str] = (),
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
) -> Callable[[Callable[..., object]], CustomOp]: ...
@overload
def custom_op(
    name: str,
    fn: Callable[..., object],
    *,
    mutates_args: str | Iterable[str] = (),
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
) -> CustomOp: ...
def custom_op(
    name: str,
    fn: Callable[..., object] | None = None,
    *,
    mutates_args: str | Iterable[str] = (),
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
) -> CustomOp | Callable[[Callable[..., object]], CustomOp]:
    """Make an operator of a Python function.

    The operator supports eager calls. ``register_fake`` adds ``jit`` and meta tensors, ``register_autograd`` adds
    ``backward`` and ``grad``, and ``register_vmap`` replaces the loop that ``vmap`` runs otherwise. The function is
    opaque to tandem: it may call NumPy, C or any other library. Its results must be new tensors, neither arguments nor
    views of them.

    Args:
        name: ``"namespace::name"``. A second definition replaces the first one.
        fn: the function; None to use ``custom_op`` as a decorator.
        mutates_args: the names of the tensor arguments that the function writes to, or one name; ``"unknown"`` for all.
        device_types: the device types that the function supports, such as ``"cpu"``; None for all.
        schema: the schema, such as ``"(Tensor x, int n) -> Tensor"``; None to infer it from the annotations.

    Returns:
        A :class:`CustomOp`, which has the signature of ``fn``.

    Raises:
        ArgumentError: the name is not a string, or ``fn`` is not a function.
        ValueArgumentError: the name has no namespace, or the namespace is ``td``.
        SchemaError: the annotations or the schema are not valid for an operator.

    Source: ``torch.library.custom_op``.

    >>> import numpy as np
    >>> import tandem as td
    >>> @td.custom_op("docs::np_sin")
    ... def np_sin(x: td.Tensor) -> td.Tensor:
    ...     return td.asarray(np.sin(x.numpy()))
    >>> @np_sin.register_fake
    ... def _(x):
    ...     return td.empty_like(x)
    >>> np_sin(td.zeros(2)).tolist(), td.jit(lambda x: np_sin(x) + 1)(td.zeros(2)).tolist()
    ([0.0, 0.0], [1.0, 1.0])
    >>> np_sin.remove()
    """
    operator: CustomOp | Callable[[Callable[..., object]], CustomOp] = define.define(
        name, fn, mutates_args, device_types, schema
    )
    return operator


@overload
def elementwise_op(
    name: str,
    body: None = None,
    *,
    derivative: Mapping[str, Function | float] | None = None,
    dtypes: Sequence[DTypeLike] | None = None,
    result: str = "same",
    doc: str = "",
) -> Callable[[Function], CustomOp]: ...
@overload
def elementwise_op(
    name: str,
    body: Function,
    *,
    derivative: Mapping[str, Function | float] | None = None,
    dtypes: Sequence[DTypeLike] | None = None,
    result: str = "same",
    doc: str = "",
) -> CustomOp: ...
def elementwise_op(
    name: str,
    body: Function | None = None,
    *,
    derivative: Mapping[str, Function | float] | None = None,
    dtypes: Sequence[DTypeLike] | None = None,
    result: str = "same",
    doc: str = "",
) -> CustomOp | Callable[[Function], CustomOp]:
    """Declare an elementwise operator by its scalar body, for eager calls, ``jit``, ``grad`` and ``vmap``.

    The body is written with Python's operators and the functions of ``td.scalar``. Machine code is emitted from it, and
    the operator fuses with others as built-in operators do.

    Args:
        name: ``"namespace::name"``.
        body: a function of one to three scalars; None to use ``elementwise_op`` as a decorator.
        derivative: the partial derivative for each argument: a number, or a function written with tensor operators.
            Its parameters are named after the arguments, ``out`` for the result, or ``g`` for the cotangent; a function
            with a parameter ``g`` returns the product with the cotangent.
        dtypes: the supported dtypes; None for the real floating-point dtypes.
        result: the dtype of the result: ``"same"``, ``"float"`` (integers become the default float) or ``"bool"``.
        doc: the documentation; the docstring of the body by default.

    Returns:
        A :class:`CustomOp`.

    Raises:
        ValueArgumentError: the name has no namespace, or ``derivative`` does not have an entry for each argument.

    >>> import tandem as td
    >>> @td.elementwise_op("docs::softsign", derivative={"x": lambda x: 1 / td.square(1 + abs(x))})
    ... def softsign(x):
    ...     return x / (1 + abs(x))
    >>> softsign(td.asarray([1.0, -3.0])).tolist()
    [0.5, -0.75]
    >>> td.grad(lambda x: softsign(x).sum())(td.asarray([1.0])).tolist()
    [0.25]
    >>> softsign.remove()
    """
    operator: CustomOp | Callable[[Function], CustomOp] = define.define_elementwise(
        name, body, derivative, dtypes, result, doc
    )
    return operator


@overload
def composite_op(schema: str, body: None = None, *, doc: str = "") -> Callable[[Function], CustomOp]: ...
@overload
def composite_op(schema: str, body: Function, *, doc: str = "") -> CustomOp: ...
def composite_op(
    schema: str, body: Function | None = None, *, doc: str = ""
) -> CustomOp | Callable[[Function], CustomOp]:
    """Declare an operator that decomposes into the operators that its body calls.

    Args:
        schema: the full schema with a namespace: ``"myns::scale(Tensor x, Scalar by=2) -> Tensor"``.
        body: the function; None to use ``composite_op`` as a decorator.
        doc: the documentation; the docstring of the body by default.

    Returns:
        A :class:`CustomOp`.

    Raises:
        SchemaError: the schema does not parse.
        ValueArgumentError: the schema has no namespace.

    >>> import tandem as td
    >>> @td.composite_op("docs::halve(Tensor x) -> Tensor")
    ... def halve(x):
    ...     return x * 0.5
    >>> halve(td.asarray([4.0])).tolist()
    [2.0]
    >>> halve.remove()
    """
    operator: CustomOp | Callable[[Function], CustomOp] = define.define_composite(schema, body, doc)
    return operator


def numpy_kernel(fn: Function) -> NumpyKernel:
    """Make a kernel from a function of NumPy arrays: ``register_kernel("cpu", td.numpy_kernel(np.sin))``.

    Args:
        fn: the function. It receives an ndarray for each tensor argument and returns an ndarray for each result.

    Returns:
        A kernel for :meth:`CustomOp.register_kernel`.

    Raises:
        ArgumentError: ``fn`` is not callable.
    """
    kernel: NumpyKernel = kernels.NumpyKernel(fn)
    return kernel


def c_kernel(function: object, signature: str | None = None) -> CKernel:
    """Make a kernel from a C function, which Python calls with ctypes and compiled code calls directly.

    The signature is a C prototype. A function without pointers, ``"double(double, double)"``, is a *scalar function*
    that is applied to each element; under ``jit`` the fused loop calls it, so it must be pure and total. With pointers
    it is a *buffer function*, whose parameters are bound by name::

        void(const float *x, const float *y, float *out, int64_t out.size, double alpha)

    ``x``: the contiguous data of the argument ``x``; ``out`` (``out0``, ``out1``, ...): the data of a result, which is
    allocated with the shape and dtype that the fake returns; ``x.size``, ``x.ndim``, ``x.shape[0]``: sizes of ``x``;
    ``alpha``: a number among the arguments.

    Args:
        function: a ctypes function, a cffi function pointer, a ``numba.cfunc``, or an address. The kernel keeps the
            function alive; for an address the caller must keep it alive.
        signature: the prototype; None to read that of a scalar function from ctypes or numba.

    Returns:
        A kernel for :meth:`CustomOp.register_kernel`.

    Raises:
        ArgumentError: ``function`` has no address.
        SchemaError: the signature does not parse; the message has the column.
    """
    kernel: CKernel = kernels.c_kernel(function, signature)
    return kernel


def llvm_kernel(source: str | Function, signature: str | None = None) -> LlvmKernel:
    """Make a kernel from a scalar function in LLVM IR, which is inlined into the loops of compiled code.

    Args:
        source: the text of a module that defines one function, ``define double @f(double %x)``; or a function of an
            ``llvmlite.ir.IRBuilder`` and the arguments that builds the code and returns the result.
        signature: the prototype, such as ``"double(double)"``; required if ``source`` is a function.

    Returns:
        A kernel for :meth:`CustomOp.register_kernel`.

    Raises:
        ValueArgumentError: LLVM rejects the code; the message is that of LLVM.
        BackendUnavailableError: native code is off.
    """
    kernel: LlvmKernel = kernels.llvm_kernel(source, signature)
    return kernel


def cuda_kernel(source: str, name: str, signature: str | None = None) -> CudaKernel:
    """Make a kernel from a CUDA C function, to register for ``"cuda"``.

    The source is compiled at once if NVRTC is installed. The kernel is launched in blocks of 256 threads, with at least
    one thread for each element of the largest result; the function must check its index. A call raises
    BackendUnavailableError if CUDA is not available.

    Args:
        source: the source text.
        name: the name of the ``__global__`` function.
        signature: the prototype, as for :func:`c_kernel`.

    Returns:
        A kernel for :meth:`CustomOp.register_kernel`.

    Raises:
        ValueArgumentError: the source defines no such function, or does not compile.
    """
    kernel: CudaKernel = kernels.CudaKernel(source, name, signature)
    return kernel


@overload
def register_kernel(
    op: Function | str,
    device_types: str | Iterable[str] | None = None,
    fn: None = None,
    *,
    dtypes: Sequence[DTypeLike] | None = None,
) -> Callable[[K], K]: ...
@overload
def register_kernel(
    op: Function | str,
    device_types: str | Iterable[str] | None,
    fn: KernelLike,
    *,
    dtypes: Sequence[DTypeLike] | None = None,
) -> Handle: ...
def register_kernel(
    op: Function | str,
    device_types: str | Iterable[str] | None = None,
    fn: K | None = None,
    *,
    dtypes: Sequence[DTypeLike] | None = None,
) -> Handle | Callable[[K], K]:
    """Register a kernel for any operator: built-in, defined by a Library, or made by ``custom_op``.

    Args:
        op: the operator, its function, or its full name, such as ``"td::exp"``.
        device_types: a device type, a dispatch key, or a sequence of these; None for all devices without a kernel.
        fn: a function of tensors, or the result of :func:`numpy_kernel`, :func:`c_kernel`, :func:`llvm_kernel` or
            :func:`cuda_kernel`; None to use ``register_kernel`` as a decorator.
        dtypes: the dtypes that the kernel supports; None for all.

    Returns:
        A handle whose ``remove()`` restores the earlier registration; as a decorator, the function.

    Raises:
        RegistrationError: ``op`` is not an operator.

    >>> import numpy as np, tandem as td
    >>> with td.register_kernel("td::cos", "cpu", td.numpy_kernel(np.sin)):
    ...     td.cos(td.zeros(1)).tolist()
    [0.0]
    """
    handle: Handle | Callable[[K], K] = extend.register_kernel(op, device_types, fn, dtypes)
    return handle


@overload
def register_fake(op: Function | str, fn: None = None) -> Callable[[F], F]: ...
@overload
def register_fake(op: Function | str, fn: Function) -> Handle: ...
def register_fake(op: Function | str, fn: F | None = None) -> Handle | Callable[[F], F]:
    """Register the shape rule of any operator; see :meth:`CustomOp.register_fake`.

    Args:
        op: the operator, its function, or its full name.
        fn: a function of tensors without data that returns such tensors; None to use ``register_fake`` as a decorator.

    Returns:
        A handle; as a decorator, the function.
    """
    handle: Handle | Callable[[F], F] = extend.register_fake(op, fn)
    return handle


@overload
def register_autograd(
    op: Function | str, backward: None = None, setup_context: Function | None = None
) -> Callable[[F], F]: ...
@overload
def register_autograd(
    op: Function | str, backward: Function, setup_context: Function | None = None
) -> Handle: ...
def register_autograd(
    op: Function | str, backward: F | None = None, setup_context: Function | None = None
) -> Handle | Callable[[F], F]:
    """Register the derivative of any operator; see :meth:`CustomOp.register_autograd`.

    Args:
        op: the operator, its function, or its full name.
        backward: ``backward(ctx, *grads)``; None to use ``register_autograd`` as a decorator.
        setup_context: ``setup_context(ctx, inputs, output)``.

    Returns:
        A handle; as a decorator, the function.

    Raises:
        UnsupportedError: the operator writes to an argument.

    >>> import tandem as td
    >>> with td.register_autograd("td::sin", lambda ctx, g: 3 * g):
    ...     td.grad(td.sin)(0.0).item()
    3.0
    """
    handle: Handle | Callable[[F], F] = extend.register_autograd(op, backward, setup_context)
    return handle


def register_autocast(op: Function | str, device_type: str, dtype: DTypeLike) -> Handle:
    """Let autocast cast the floating-point arguments of any operator on a device.

    Args:
        op: the operator, its function, or its full name.
        device_type: the device, such as ``"cpu"``.
        dtype: the floating-point dtype to cast to.

    Returns:
        A handle.
    """
    handle: Handle = extend.register_autocast(op, device_type, dtype)
    return handle


def opcheck(
    op: Function,
    args: Sequence[object],
    kwargs: Mapping[str, object] | None = None,
    *,
    tests: str | Sequence[str] | None = None,
    raise_exception: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
) -> dict[str, str | OpCheckError]:
    """Test that one call of an operator agrees with its registrations.

    ``schema``: the call writes and aliases exactly what the schema declares; ``fake``: shapes and dtypes are those that
    the fake returns; ``determinism``: a second call returns equal results; ``strided``: so do non-contiguous arguments;
    ``empty``: arguments without elements work, or raise an error of tandem; ``autograd``: the gradient is registered
    and equals finite differences (in float64 if the operator supports it); ``vmap``: a batch equals a loop; ``jit``:
    the compiled call equals the eager one; ``dtypes``: the operator runs for its declared dtypes.

    Args:
        op: an operator: a :class:`CustomOp`, an operator of ``td.ops``, or a function such as ``td.add``.
        args, kwargs: the arguments of the call. They are not modified.
        tests: the names of the tests to run, or one name; None for all.
        raise_exception: whether to raise at the end if a test failed.
        rtol, atol: tolerances for comparing results; None for the defaults of the dtype.

    Returns:
        A dict from the name of each test to ``"SUCCESS"``, ``"SKIPPED: reason"`` or the :class:`OpCheckError`.

    Raises:
        OpCheckError: a test failed; the message explains how to fix it.
        ValueArgumentError: a test name is unknown.

    Source: ``torch.library.opcheck``.

    >>> import tandem as td
    >>> td.opcheck(td.exp, (td.asarray([1.0, 2.0]),))["jit"]
    'SUCCESS'
    """
    result: dict[str, str | OpCheckError] = checks.opcheck(
        op, args, kwargs, tests, raise_exception, rtol, atol
    )
    return result
