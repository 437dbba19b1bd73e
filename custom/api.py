"""The public functions for custom operators; their implementation is imported at the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from .. import lazy

if TYPE_CHECKING:
    from ..errors import OpCheckError
    from ..registry.library import Handle
    from ..registry.types import DTypeLike, Function
    from .kernels import CKernel, CudaKernel, LlvmKernel, NumpyKernel
    from .op import CustomOp


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

    The operator is at once usable eagerly; with ``register_fake`` under ``jit`` and on meta tensors, with
    ``register_autograd`` in ``backward`` and ``grad``, with ``register_vmap`` batched (else by a loop). To the rest of
    tandem the function is opaque: it may call NumPy, C or anything else. Its results are new tensors, never its
    arguments or views of them.

    Args:
        name: ``"namespace::name"``. A definition that is run again replaces the former one.
        fn: the function, of tensors and other values by the schema; None to use ``custom_op`` as a decorator.
        mutates_args: names of the tensor arguments that the function writes into, or one; ``"unknown"`` for all.
        device_types: device types that the function serves, such as ``"cpu"``; None: all.
        schema: the arguments and results, ``"(Tensor x, int n) -> Tensor"``; None reads them off the annotations.

    Returns:
        A :class:`CustomOp`, which is called like ``fn``.

    Raises:
        ArgumentError: the name is not a string, or ``fn`` is not a function.
        ValueArgumentError: the name has no namespace, or tandem's own.
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
    operator: CustomOp | Callable[[Callable[..., object]], CustomOp] = lazy.custom_machinery().define(
        name, fn, mutates_args, device_types, schema
    )
    return operator


def elementwise_op(
    name: str,
    body: Function | None = None,
    *,
    derivative: Mapping[str, Function | float] | None = None,
    dtypes: Sequence[DTypeLike] | None = None,
    result: str = "same",
    doc: str = "",
) -> Any:
    """Declare an elementwise operator by its scalar body: one declaration for eager calls, ``jit``, ``grad``, ``vmap``.

    The body is written with Python's operators and the functions of ``td.scalar``; it
    is emitted as machine code and fuses with its neighbours, exactly as tandem's own operators do.

    Args:
        name: ``"namespace::name"``.
        body: a function of one to three scalars; None to use ``elementwise_op`` as a decorator.
        derivative: for each argument its partial derivative: a number, or a function written with tensor operators of
            the arguments, by name, ``out`` (the result) or ``g`` (then it is the product with the gradient).
        dtypes: the dtypes that it takes; None: the real floating-point ones.
        result: ``"same"``, ``"float"`` (integers become the default float) or ``"bool"``.
        doc: its documentation; by default the body's.

    Returns:
        A :class:`CustomOp`.

    Raises:
        ValueArgumentError: the name has no namespace, or the derivative names no argument.

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
    return lazy.custom_machinery().define_elementwise(name, body, derivative, dtypes, result, doc)


def composite_op(schema: str, body: Function | None = None, *, doc: str = "") -> Any:
    """Declare an operator by a body written with other operators, which it decomposes into everywhere.

    Args:
        schema: the whole schema, with a namespace: ``"myns::scale(Tensor x, Scalar by=2) -> Tensor"``.
        body: the function; None to use ``composite_op`` as a decorator.
        doc: its documentation; by default the body's.

    Returns:
        A :class:`CustomOp`.

    Raises:
        SchemaError: the schema does not parse.
        ValueArgumentError: it has no namespace.

    >>> import tandem as td
    >>> @td.composite_op("docs::halve(Tensor x) -> Tensor")
    ... def halve(x):
    ...     return x * 0.5
    >>> halve(td.asarray([4.0])).tolist()
    [2.0]
    >>> halve.remove()
    """
    return lazy.custom_machinery().define_composite(schema, body, doc)


def numpy_kernel(fn: Function) -> NumpyKernel:
    """A kernel that works on NumPy arrays: ``register_kernel("cpu", td.numpy_kernel(np.sin))``.

    Args:
        fn: takes an ndarray where the schema says Tensor, and returns an ndarray for each result.

    Returns:
        A kernel for :meth:`CustomOp.register_kernel`.

    Raises:
        ArgumentError: ``fn`` is not callable.
    """
    kernel: NumpyKernel = lazy.user_kernels().NumpyKernel(fn)
    return kernel


def c_kernel(function: object, signature: str | None = None) -> CKernel:
    """A kernel in C, called through its address: from Python by ctypes, from compiled code directly.

    The signature is a C prototype. Without pointers, ``"double(double, double)"``, it is a *scalar function*, applied
    to each element; under ``jit`` it is called from within the fused loop, so it must be pure and total. With pointers
    it is a *buffer function*, and the parameters' names say what is passed::

        void(const float *x, const float *y, float *out, int64_t out.size, double alpha)

    ``x``: the data of the argument ``x``, contiguous; ``out`` (``out0``, ``out1``, ...): the data of a result, which is
    allocated as the fake says; ``x.size``, ``x.ndim``, ``x.shape[0]``: its sizes; ``alpha``: a number that the
    operator is called with.

    Args:
        function: a ctypes function, a cffi function pointer, a ``numba.cfunc``, or an address. The function is kept
            alive as long as the kernel is; of an address the caller has to see to it.
        signature: the prototype; None reads that of a scalar function off ctypes or numba.

    Returns:
        A kernel for :meth:`CustomOp.register_kernel`.

    Raises:
        ArgumentError: ``function`` has no address.
        SchemaError: the signature does not parse; says at which column.
    """
    kernel: CKernel = lazy.user_kernels().c_kernel(function, signature)
    return kernel


def llvm_kernel(source: str | Function, signature: str | None = None) -> LlvmKernel:
    """A scalar function in LLVM IR, applied to each element and inlined into the loops of compiled code.

    Args:
        source: the text of a module that defines one function, ``define double @f(double %x)``; or a function of an
            ``llvmlite.ir.IRBuilder`` and the arguments, which builds the code and returns the result.
        signature: ``"double(double)"``; needed with a function, read off a text.

    Returns:
        A kernel for :meth:`CustomOp.register_kernel`.

    Raises:
        ValueArgumentError: LLVM refuses the code; the message is LLVM's.
        BackendUnavailableError: native code is off.
    """
    kernel: LlvmKernel = lazy.user_kernels().llvm_kernel(source, signature)
    return kernel


def cuda_kernel(source: str, name: str, signature: str | None = None) -> CudaKernel:
    """A kernel in CUDA C, to be registered for ``"cuda"``.

    Args:
        source: the text of the source file.
        name: the ``__global__`` function in it.
        signature: what is passed, as for :func:`c_kernel`.

    Returns:
        A kernel for :meth:`CustomOp.register_kernel`. It is checked as far as the machine can (compiled where NVRTC is
        installed); a call raises BackendUnavailableError where CUDA cannot be used. It is launched in blocks of 256
        threads, at least one for each element of the largest result; the function itself checks its index.

    Raises:
        ValueArgumentError: the source defines no such function, or does not compile.
    """
    kernel: CudaKernel = lazy.user_kernels().CudaKernel(source, name, signature)
    return kernel


def register_kernel(
    op: Function | str,
    device_types: str | Iterable[str] | None = None,
    fn: object = None,
    *,
    dtypes: Sequence[DTypeLike] | None = None,
) -> Any:
    """Register a kernel for any operator: one of tandem's own, of a Library, or of ``custom_op``.

    Args:
        op: the operator, its function, or its full name, such as ``"td::exp"``.
        device_types: a device type, a dispatch key, or a sequence of these; None: every device without a kernel.
        fn: a function of tensors, or what :func:`numpy_kernel`, :func:`c_kernel`, :func:`llvm_kernel`
            :func:`cuda_kernel` return; None to use this as a decorator.
        dtypes: the dtypes that the kernel serves; None: all.

    Returns:
        A handle whose ``remove()`` restores the earlier registration; as a decorator, the function.

    Raises:
        RegistrationError: ``op`` is not an operator.

    >>> import numpy as np, tandem as td
    >>> with td.register_kernel("td::cos", "cpu", td.numpy_kernel(np.sin)):
    ...     td.cos(td.zeros(1)).tolist()
    [0.0]
    """
    return lazy.op_extensions().register_kernel(op, device_types, fn, dtypes)


def register_fake(op: Function | str, fn: Function | None = None) -> Any:
    """Register the shape rule of any operator; see :meth:`CustomOp.register_fake`.

    Args:
        op: the operator, its function, or its full name.
        fn: takes and returns tensors without data; None to use this as a decorator.

    Returns:
        A handle; as a decorator, the function.
    """
    return lazy.op_extensions().register_fake(op, fn)


def register_autograd(
    op: Function | str, backward: Function | None = None, setup_context: Function | None = None
) -> Any:
    """Register the derivative of any operator; see :meth:`CustomOp.register_autograd`.

    Args:
        op: the operator, its function, or its full name.
        backward: ``backward(ctx, *grads)``; None to use this as a decorator.
        setup_context: ``setup_context(ctx, inputs, output)``.

    Returns:
        A handle; as a decorator, the function.

    Raises:
        UnsupportedError: the operator writes into an argument.

    >>> import tandem as td
    >>> with td.register_autograd("td::sin", lambda ctx, g: 3 * g):
    ...     td.grad(td.sin)(0.0).item()
    3.0
    """
    return lazy.op_extensions().register_autograd(op, backward, setup_context)


def register_autocast(op: Function | str, device_type: str, dtype: DTypeLike) -> Handle:
    """Let autocast cast the floating-point arguments of any operator on a device.

    Args:
        op: the operator, its function, or its full name.
        device_type: the device, such as ``"cpu"``.
        dtype: the floating-point dtype that they are cast to.

    Returns:
        A handle.
    """
    handle: Handle = lazy.op_extensions().register_autocast(op, device_type, dtype)
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
    """Check that an operator does what its registrations promise, on one call.

    ``schema``: it writes and aliases what the schema says, and nothing else; ``fake``: shapes and dtypes are those that
    the fake returns; ``determinism``: a second call returns the same; ``strided``: so do non-contiguous arguments;
    ``empty``: arguments without elements work, or are refused with an error of tandem's; ``autograd``: the gradient is
    registered as it should be, and right (numerically, in float64 where the operator takes it); ``vmap``: batched is
    the same as a loop; ``jit``: compiled is the same as eager; ``dtypes``: it runs for the dtypes that it declares.

    Args:
        op: an operator: a :class:`CustomOp`, an operator of ``td.ops``, or a function such as ``td.add``.
        args, kwargs: a call of it. Nothing in them is changed.
        tests: the tests to run, or one; None: all.
        raise_exception: whether to raise at the end if a test has failed.
        rtol, atol: tolerances where results are compared, other than the usual ones of the dtype.

    Returns:
        For each test ``"SUCCESS"``, ``"SKIPPED: why"`` or the :class:`OpCheckError`.

    Raises:
        OpCheckError: a test has failed; says what to fix, and how.
        ValueArgumentError: there is no such test.

    Source: ``torch.library.opcheck``.

    >>> import tandem as td
    >>> td.opcheck(td.exp, (td.asarray([1.0, 2.0]),))["jit"]
    'SUCCESS'
    """
    result: dict[str, str | OpCheckError] = lazy.op_checker().opcheck(
        op, args, kwargs, tests, raise_exception, rtol, atol
    )
    return result
