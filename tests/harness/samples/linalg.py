"""Sample inputs and error inputs of the operators of linalg."""

import math

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import int64


def eigen_samples(dtype):
    return [  # positive numbers: with two rows they have real eigenvalues, whose vectors have no phase
        SampleInput((well_conditioned(2),)),
        SampleInput((TensorSample((2, 2), values=(3.0, 1.0, 0.5, 2.0), layout="transposed"),)),
        SampleInput((TensorSample((2, 2, 2), values=(3.0, 1.0, 0.5, 2.0, 1.0, 0.5, 0.75, -2.0)),)),
        SampleInput((TensorSample((3, 3), values=(1.0, 0.5, 0.0, 0.25, 2.0, 0.5, 0.0, 0.25, 4.0)),)),
        SampleInput((TensorSample((0, 0)),)),
    ]


def cholesky_errors():
    return [
        *square_errors(),
        ErrorInput((TensorSample((2, 2), values=(1, 2, 2, 1)),), ValueError, "positive definite"),
    ]


def definite_samples(dtype):
    return [
        SampleInput((TensorSample((1, 1), 0.5, 2.0),)),
        SampleInput((TensorSample((2, 1, 1), 0.5, 2.0),), {"upper": True}),
        SampleInput((TensorSample((3, 1, 1), 0.5, 2.0),)),
        SampleInput((TensorSample((0, 0)),)),
    ]


def definite_matrices(dtype):
    """The matrices of `definite_samples`, without options."""
    return [SampleInput(sample.args) for sample in definite_samples(dtype)]


def minor_samples(dtype):
    """Matrices and NaN in the place of the factors of those that are not positive definite."""
    indefinite = (1.0, 2.0, 2.0, 1.0)
    nan, one = (math.nan,) * 4, (1.0, 0.0, 0.0, 1.0)
    return [
        SampleInput((TensorSample((2, 2), values=one), TensorSample((2, 2), values=one))),
        SampleInput((TensorSample((2, 2), values=indefinite), TensorSample((2, 2), values=nan))),
        SampleInput(
            (
                TensorSample((3, 2, 2), values=one + indefinite + (-1.0, 0.0, 0.0, 1.0)),
                TensorSample((3, 2, 2), values=one + nan + nan),
            )
        ),
        SampleInput((TensorSample((0, 0)), TensorSample((0, 0)))),
    ]


def svd_samples(dtype):
    return [
        *(SampleInput(sample.args, {"full_matrices": False}) for sample in rectangular_samples(dtype)),
        SampleInput((well_conditioned(3),)),
        SampleInput((TensorSample((3, 2), values=(3.0, 1.0, -1.0, 2.0, 0.5, 0.0)),)),
    ]


def qr_samples(dtype):
    return [
        *rectangular_samples(dtype),
        SampleInput((TensorSample((3, 2), values=(3.0, 1.0, -1.0, 2.0, 0.5, 0.0)),), {"mode": "complete"}),
    ]


def qr_errors():
    return [
        *rectangular_errors(),
        ErrorInput((TensorSample((2, 2)),), ValueError, "mode", {"mode": "full"}),
    ]


def vector_samples(dtype):
    return [
        *(SampleInput((TensorSample((3, 4), layout=layout),), {"axis": 1}) for layout in LAYOUTS),
        *(
            SampleInput((TensorSample((5,), 0.1, 3.0),), {"ord": ord})
            for ord in (1, 3, 0.5, -2, math.inf, -math.inf, 0)
        ),
        SampleInput((TensorSample((2, 3)),), {"keepdims": True}),
        SampleInput((TensorSample((2, 3, 2)),), {"axis": (0, 2)}),
    ]


def matrix_norm_samples(dtype):
    return [
        *(
            SampleInput((TensorSample((3, 2), 0.1, 2.0),), {"ord": o})
            for o in ("nuc", 1, -1, 2, -2, math.inf, -math.inf)
        ),
        *rectangular_samples(dtype),
        SampleInput((TensorSample((2, 3, 2)),), {"keepdims": True}),
    ]


def matrix_norm_errors():
    return [
        *rectangular_errors(),
        ErrorInput((TensorSample((2, 2)),), ValueError, "ord", {"ord": 3}),
    ]


def square_samples(dtype):
    """Square matrices, well conditioned, in each memory layout, stacked and empty."""
    yield SampleInput((well_conditioned(3),))
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((2, 2), values=(3.0, 1.0, -1.0, 2.0), layout=layout),))
    yield SampleInput((TensorSample((2, 2, 2), values=(3.0, 1.0, -1.0, 2.0, 1.0, 0.5, 0.75, -2.0)),))
    yield SampleInput((TensorSample((0, 0)),))


def symmetric_samples(dtype):
    """The samples of square matrices, and with one triangle that is read."""
    yield from square_samples(dtype)
    for triangle in ("L", "U"):
        yield SampleInput(
            (TensorSample((2, 2, 2), values=(3.0, 1.0, -1.0, 2.0, 1.0, 0.5, 0.75, -2.0)), triangle)
        )


def rank_samples(dtype):
    """The samples of rectangular matrices, and with limits of their own."""
    yield from rectangular_samples(dtype)
    for limits in ({"rtol": 0.5}, {"atol": 2.5}, {"rtol": 0.01, "atol": 2.5}, {"rtol": 0.9, "atol": 0.1}):
        yield SampleInput((well_conditioned(4, 3),), limits)


def rectangular_samples(dtype):
    """Square, tall and wide matrices, stacked and empty."""
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((2, 3), values=(3.0, 1.0, -1.0, 2.0, 0.5, -0.25), layout=layout),))
    yield SampleInput((well_conditioned(3),))
    yield SampleInput((well_conditioned(4, 2),))
    yield SampleInput((well_conditioned(2, 3),))
    yield SampleInput(
        (TensorSample((2, 3, 2), values=(3.0, 1.0, -1.0, 2.0, 0.5, 0.0, 1.0, 0.5, 0.25, -2.0, 1.0, 0.0)),)
    )


def well_conditioned(size, columns=None):
    """A matrix of numbers between 0.1 and 1; random ones of this size are regular."""
    return TensorSample((size, columns or size), 0.1, 1.0)


def square_errors():
    """A vector, a rectangular matrix, integers."""
    yield ErrorInput((TensorSample((3,)),), ValueError, "two axes")
    yield ErrorInput((TensorSample((2, 3)),), ValueError, "square")
    yield ErrorInput((TensorSample((2, 2), dtype=int64),), TypeError, "does not take int64")


def rectangular_errors():
    """A vector, integers."""
    yield ErrorInput((TensorSample((3,)),), ValueError, "two axes")
    yield ErrorInput((TensorSample((2, 2), dtype=int64),), TypeError, "does not take int64")


def solve_stack_samples(dtype):
    yield SampleInput((well_conditioned(3), TensorSample((3, 2))))
    yield SampleInput((TensorSample((2, 2), values=(3.0, 1.0, -1.0, 2.0)), TensorSample((4, 2, 1))))
    yield SampleInput(
        (TensorSample((2, 2, 2), values=(3.0, 1.0, -1.0, 2.0, 1.0, 0.5, 0.75, -2.0)), TensorSample((2, 3)))
    )
    yield SampleInput((TensorSample((0, 0)), TensorSample((0, 2))))


def solve_triangular_samples(dtype):
    for lower in (True, False):
        for sample in solve_stack_samples(dtype):
            yield SampleInput((*sample.args, lower))


def solve_samples(dtype):
    return [
        SampleInput((well_conditioned(3), TensorSample((3,)))),
        SampleInput((well_conditioned(3), TensorSample((2, 3, 1)))),
        SampleInput(
            (TensorSample((2, 2, 2), values=(3.0, 1.0, -1.0, 2.0, 1.0, 0.5, 0.75, -2.0)), TensorSample((2,)))
        ),
    ]


def inv_errors():
    return [
        *square_errors(),
        ErrorInput((TensorSample((2, 2), values=(1, 2, 2, 4)),), ValueError, "Singular"),
    ]


def matrix_power_samples(dtype):
    return [SampleInput((well_conditioned(3), n)) for n in (0, 1, 2, 5, -1, -3)]


def _regular(*shape):
    """A matrix, as a tensor of some shape, with a dominant diagonal."""
    size = math.isqrt(math.prod(shape))
    pairs = [(row, column) for row in range(size) for column in range(size)]
    values = [4.0 + row if row == column else (row * 7 + column * 3) % 5 / 4 for row, column in pairs]
    return TensorSample(shape, values=tuple(values))


def cond_samples(dtype):
    for p in (None, -2, "fro", 1, math.inf):
        yield SampleInput((_regular(3, 3), p))
    yield SampleInput((TensorSample((2, 3)),))
    yield SampleInput((TensorSample((2, 2)), "fro"))


def lstsq_samples(dtype):
    tall = TensorSample((4, 2), values=(1, 2, 0, 1, 3, 1, 2, 5))
    yield SampleInput((tall, TensorSample((4,))))
    yield SampleInput((tall, TensorSample((4, 3))))
    yield SampleInput((_regular(3, 3), TensorSample((3,)), 1e-3))
    yield SampleInput((TensorSample((4, 2)), TensorSample((4,))))


def multi_dot_samples(dtype):
    yield SampleInput(((TensorSample((2, 5)), TensorSample((5, 1)), TensorSample((1, 4))),))
    yield SampleInput(((TensorSample((3,)), TensorSample((3, 2)), TensorSample((2, 3)), TensorSample((3,))),))
    yield SampleInput(((TensorSample((2, 3)), TensorSample((3,))),))


def tensorinv_samples(dtype):
    yield SampleInput((_regular(4, 2, 2), 1))
    yield SampleInput((_regular(2, 2, 2, 2),))
    yield SampleInput((TensorSample((2, 2, 1)), 1))


def tensorsolve_samples(dtype):
    yield SampleInput((_regular(4, 2, 2), TensorSample((4,))))
    yield SampleInput((_regular(2, 4, 2), TensorSample((4,)), (0,)))
    yield SampleInput((TensorSample((2, 2, 1)), TensorSample((2,))))
