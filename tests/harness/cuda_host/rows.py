"""Rows of the op table on CUDA tensors, on the test double of the driver or a GPU."""

import numpy as np
import tandem as td
from optable import arrays_of, check, expected, generator, replace, tolerance
from tandem.backends.cuda.kernels.tensor import CudaTensor
from tandem.registry.function import functions


def to_cuda(tree):
    """Nested arguments with the arrays on the device."""
    return replace(tree, np.ndarray, lambda array: td.asarray(array).to("cuda"))


def back(result):
    """The results of an operator, which lie on the device, on the host."""
    found = result if isinstance(result, tuple) else (result,)
    for item in found:
        assert type(item) is CudaTensor
        assert item.device == "cuda:0"
    return tuple(item.to("cpu") for item in found)


def run_row(op, dtype, sample):
    """An operator's results on the device are those of its reference."""
    args, kwargs = arrays_of(sample, dtype, generator(op, dtype))
    tensors, options = to_cuda((args, kwargs))
    found = []
    replace((tensors, options), td.Tensor, found.append)
    if not found:
        if not op.binder.device_argument:
            return
        options["device"] = "cuda"
    got = back(functions[op.name](*tensors, **options))
    want = expected(op, args, kwargs)
    want = want if isinstance(want, tuple) else (want,)
    settle = SETTLED.get(op.schema.name)
    if settle is None:
        check(op, got, want, args, f"cuda {op.name} {dtype} {sample}")
        return
    limit = tolerance(op, got[0].dtype)
    for one, other in zip(settle(*(x._array for x in got)), settle(*map(np.asarray, want)), strict=True):
        np.testing.assert_allclose(one, other, rtol=limit, atol=limit, err_msg=f"{op.name} {dtype} {sample}")


# -- what does not depend on the routine that was called ---------------------------------------------------------------
def _adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def _sorted(values):
    return np.take_along_axis(values, np.lexsort((values.imag.round(3), values.real.round(3)), axis=-1), -1)


def _eig(values, vectors):
    """The matrix, its eigenvalues in an order, and that vectors have length 1."""
    matrix = (vectors * values[..., None, :]) @ np.linalg.inv(vectors)
    return matrix, _sorted(values), np.linalg.norm(vectors, axis=-2)


def _eigh(values, vectors):
    return values, (vectors * values[..., None, :]) @ _adjoint(vectors), _adjoint(vectors) @ vectors


def _svd(u, s, vh):
    few = s.shape[-1]
    return s, (u[..., :few] * s[..., None, :]) @ vh[..., :few, :], _adjoint(u) @ u, vh @ _adjoint(vh)


def _qr(q, r):
    return q @ r, _adjoint(q) @ q, np.tril(r, -1)


SETTLED = {
    "linalg_eig": _eig,
    "linalg_eigvals": lambda values: (_sorted(values),),
    "linalg_eigh": _eigh,
    "linalg_eigh_lower": _eigh,
    "linalg_svd": _svd,
    "linalg_qr": _qr,
}
"""Vectors are known up to a factor, eigenvalues up to their order; libraries choose differently."""
