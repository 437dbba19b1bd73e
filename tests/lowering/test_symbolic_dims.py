"""Lowering over symbolic sizes: kernels equal the specialised ones once numbers replace the symbols."""

import pytest
import tandem as td
from tandem.errors import UndecidedError
from tandem.lowering.fusion.loop_ir import collapse, structure_of
from tandem.lowering.kernel_selection import Target
from tandem.lowering.layout import Layout, contiguous, map_axes
from tandem.lowering.lower import STAGES, Backend, Lowered, assign_memory
from tandem.registry.dims import substitute, symbol
from tandem.registry.dtypes import float32, int64
from tandem.registry.values import TensorSpec
from tandem.tracer.tensor import make_tracer
from tandem.tracer.trace import tracing

N, M = symbol("n", minimum=4), symbol("m", minimum=4)
ROW = symbol("row", minimum=4, maximum=1000)
NUMBERS = [{"n": 5, "m": 7, "row": 6}, {"n": 12, "m": 4, "row": 4}, {"n": 4, "m": 33, "row": 1000}]

PROGRAMS = {
    "elementwise": (lambda x, y: td.exp(x + y) * 2, (N, M), (N, M)),
    "broadcast": (lambda x, y: x * y + 1, (N, M), (M,)),
    "broadcast both": (lambda x, y: x[:, None] * y, (N,), (M,)),
    "sum": (lambda x, y: (x * y).sum(1), (N, M), (N, M)),
    "sum of rows": (lambda x: x.sum(0, keepdims=True), (N, M)),
    "softmax": (lambda x: td.softmax(x, axis=-1), (N, ROW)),
    "differences": (lambda x: x[1:] - x[:-1], (N, M)),
    "stencil": (lambda x: x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 2:], (N, M)),
    "transposed": (lambda x: x.T + 1, (N, M)),
    "flipped": (lambda x: x[::-1] - x, (N, M)),
    "row": (lambda x: x[-1] + x[2], (N, M)),
    "flattened": (lambda x: x.reshape((-1,)) + 1, (N, M)),
    "split": (lambda x: x.reshape((x.shape[0], -1, 2)).sum(-1), (N, 2 * M)),
    "joined": (lambda x, y: td.concat([x, y + 1]), (N, M), (N, M)),
    "stacked": (lambda x, y: td.stack([x, y], axis=1), (N, M), (N, M)),
    "padded": (lambda x: td.pad(x * 2, ((1, 1), (0, 2))), (N, M)),
    "row set": (lambda x: x.at[1].set(0.0), (N, M)),
    "inner set": (lambda x: x.at[1:-1].set(x[2:] - x[:-2]), (N, M)),
    "gathered": (lambda x, k: x[k] * 2, (N, M), (M,)),
    "scattered": (lambda x, k: x.at[k].add(1.0), (N, M), (M,)),
    "mean of a bilinear form": (lambda x, y: ((x * y).sum(1) / 3).sum(), (N, M), (N, M)),
}


def dtype_of(function, position):
    return int64 if position and function.__code__.co_varnames[position] == "k" else float32


def lower_with_dims(function, shapes):
    """The graph's steps for specs with these shapes, without the memory plan."""
    with tracing("f") as trace:
        leaves = [
            make_tracer(trace, trace.graph.add_input(TensorSpec(shape, dtype_of(function, position))))
            for position, shape in enumerate(shapes)
        ]
        trace.graph.outputs = [function(*leaves)._value]
    target = Target(lambda dtype: True, lambda node: None, indexes=True)
    lowered = Lowered(trace.graph, Backend(lambda: target, None, None))
    for stage in STAGES:
        if stage is not assign_memory:
            stage(lowered)
    return lowered


def with_numbers(kernel, numbers):
    """The structure of a kernel, with numbers in the place of symbols."""
    return substitute(structure_of(kernel), numbers)


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_equal_the_specialised_ones(name):
    function, *shapes = PROGRAMS[name]
    symbolic = lower_with_dims(function, shapes)
    for numbers in NUMBERS:
        specialised = lower_with_dims(function, substitute(tuple(shapes), numbers))
        for one, other in zip(symbolic.steps, specialised.steps, strict=True):
            assert with_numbers(one.kernel, numbers) == structure_of(other.kernel)
        (result,), (want,) = symbolic.outputs, specialised.outputs
        assert substitute(result.layout, numbers) == want.layout


@pytest.mark.parametrize(
    ("function", "shapes", "guard"),
    [
        (lambda x, y: x + y, [(N,), (M,)], "m == n"),
        (lambda x: x[1:] + x[:1], [(symbol("k"),)], "k - 1 == 1"),
        (lambda x: x[:, 5], [(N, M)], "m > 5"),
        (lambda x: x.reshape((-1, 3)), [(N, M)], r"m\*n % 3 == 0"),
        (lambda x: td.softmax(x, axis=-1), [(N, M)], r"4\*m > 65536"),
    ],
)
def test_missing_guards_are_named(function, shapes, guard):
    with pytest.raises(UndecidedError, match=guard):
        lower_with_dims(function, shapes)


def test_dimensions_merge_where_every_size_allows_it():
    shape, strides = (N, M, 3), [(3 * M, 3, 1), (6 * M, 3, 1), (0, 3, 1)]
    sizes, merged = collapse(shape, strides[:1])
    assert (sizes, merged) == ((3 * M * N,), [(1,)])
    sizes, merged = collapse(shape, strides[1:])
    assert (sizes, merged) == ((N, 3 * M), [(6 * M, 1), (0, 1)])


def test_layouts_with_symbols():
    layout = Layout((N, 1, M), (M, 7, 1))
    assert layout.canonical() == Layout((N, 1, M), (M, 0, 1))
    assert layout.is_contiguous
    assert layout.size == N * M
    assert not Layout((N, M), (2 * M, 1)).is_contiguous
    assert map_axes(Layout((M, N), (1, M)), contiguous((N, M))) == (1, 0)
    assert str(TensorSpec((N, 2 * M), float32)) == "float32[n,2*m]"
