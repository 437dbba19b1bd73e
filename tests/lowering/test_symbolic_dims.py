"""Lowering over symbolic sizes: kernels equal the specialised ones once numbers replace the symbols."""

import pytest
import tandem as td
from tandem.backends.cpu.executable import CallingConvention, CpuExecutable, Parameter
from tandem.errors import UndecidedError
from tandem.jit.arguments import Arguments
from tandem.jit.native_record import GuardBuilder
from tandem.jit.specialize import specialize
from tandem.lowering.fusion.loop_ir import collapse, structure_of
from tandem.lowering.kernel_selection import Target
from tandem.lowering.layout import Layout, contiguous, map_axes
from tandem.lowering.lower import STAGES, Backend, Lowered
from tandem.lowering.thunks import KernelThunk
from tandem.registry.dims import substitute, symbol
from tandem.registry.dispatch.keys import CPU_KEYS
from tandem.registry.dtypes import float32, int64
from tandem.registry.values import TensorSpec
from tandem.tracer.tensor import make_tracer
from tandem.tracer.trace import tracing

N, M = symbol("n", minimum=4), symbol("m", minimum=4)
ROW = symbol("row", minimum=4, maximum=1000)
NUMBERS = [{"n": 5, "m": 7, "row": 6}, {"n": 12, "m": 4, "row": 4}, {"n": 4, "m": 33, "row": 1000}]

OFFSET = 1.5

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


def lower_with_dims(function, shapes, stages=STAGES[:-1]):
    """The graph's steps for specs with these shapes; without the memory plan, by default."""
    with tracing("f") as trace:
        leaves = [
            make_tracer(trace, trace.graph.add_input(TensorSpec(shape, dtype_of(function, position))))
            for position, shape in enumerate(shapes)
        ]
        trace.graph.outputs = [function(*leaves)._value]
    target = Target(lambda dtype: True, lambda node: None, loops=True, indexes=True, updates=True)
    lowered = Lowered(trace.graph, Backend(lambda: target, None, None))
    for stage in stages:
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


# -- loops and the memory plan -----------------------------------------------------------------------------------------
ROWS, COLUMNS = symbol("rows", minimum=16), symbol("columns", minimum=33)
LARGER = [{"rows": 16, "columns": 33}, {"rows": 100, "columns": 47}, {"rows": 17, "columns": 1024}]
MATRIX = (ROWS, COLUMNS)
LARGE = (1100 + ROWS, 1100 + COLUMNS)  # ranges of known sizes up to 1,024 are constants
WITH_MEMORY = {
    "sums": (lambda x: x.sum(1).sum() + (x * 2).sum(), MATRIX),
    "sorted twice": (lambda x: td.sort(td.sort(x, axis=1) + 1, axis=1) * 2, LARGE),
    "sorted vectors": (lambda x: td.sort(td.sort(x.sum(1)) + td.sort(x.sum(1) * 2) + 1), MATRIX),
    "scan": (lambda x: td.scan(lambda c, row: (c + row, c * 2), x[0], x)[1], MATRIX),
    "stencil": (lambda x: td.fori_loop(0, 10, lambda i, a: a + td.roll(a, 1, 0), x), MATRIX),
    "rows": (lambda x: td.fori_loop(1, 9, lambda i, a: a.at[i].set(a[i - 1] * 0.5), x), MATRIX),
    "all rows": (
        lambda x: td.fori_loop(1, x.shape[0], lambda i, a: a.at[i].set(a[i - 1] * 0.5), x),
        LARGE,
    ),
    "nested": (
        lambda x: td.fori_loop(0, 3, lambda i, a: td.scan(lambda c, r: (c + r, c), a[0], a)[1], x),
        MATRIX,
    ),
    "while": (lambda x: td.while_loop(lambda a: a.sum() < 10, lambda a: td.roll(a, 1, 1) + 1, x), MATRIX),
    "branches": (lambda x: td.cond(x.sum() > 0, lambda a: a * 2, lambda a: a[::-1], x), MATRIX),
}


def describe_memory(lowered, numbers):
    """The steps and the memory plan of a graph, then those of its bodies, with numbers in the place of symbols."""
    steps = [
        with_numbers(step.kernel, numbers) if isinstance(step, KernelThunk) else step.node.op.name
        for step in lowered.steps
    ]
    memory = [interval[1:] for interval in lowered.memory.intervals]
    yield steps, substitute((tuple(memory), lowered.memory.workspace), numbers)
    for step in lowered.steps:
        for body in getattr(step, "bodies", ()):
            yield body.sources, step.in_place, step.owned, substitute(tuple(step.counted.items()), numbers)
            if body.lowered is not None:
                yield from describe_memory(body.lowered, numbers)


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_bodies_and_memory_equal_the_specialised_ones(name):
    function, *shapes = WITH_MEMORY[name]
    symbolic = lower_with_dims(function, shapes, STAGES)
    for numbers in LARGER:
        specialised = lower_with_dims(function, substitute(tuple(shapes), numbers), STAGES)
        assert list(describe_memory(symbolic, numbers)) == list(describe_memory(specialised, {}))


def test_workspace_is_a_linear_form():
    function, *shapes = WITH_MEMORY["stencil"]
    nbytes = lower_with_dims(function, shapes, STAGES).memory.workspace
    assert str(nbytes) == "4*columns*rows + (-4*columns*rows) % 64"


def test_undecided_overlap_of_memory_is_named():
    with pytest.raises(UndecidedError, match=r"4\*[mn] == 4\*[mn]"):
        lower_with_dims(
            lambda x, y: td.sort(td.sort(x)).sum() + td.sort(td.sort(y)).sum(), [(N,), (M,)], STAGES
        )


# -- guards ------------------------------------------------------------------------------------------------------------
def tensor_key(shape):
    return (td.Tensor, float32.np, shape, None, CPU_KEYS)


def build_guard_program(function, shapes):
    """The specialization of a function for tensors of these shapes, and the words of its guard program."""
    arguments = Arguments(function, (), ())
    bound = arguments.bind(tuple(td.zeros((2,) * len(shape)) for shape in shapes), {})
    specialization = specialize(function, arguments, bound, [tensor_key(shape) for shape in shapes])
    parameters = [
        Parameter(value.spec, None, slot, ()) for slot, value in enumerate(specialization.graph.parameters)
    ]
    convention = CallingConvention(0, tuple(parameters), (), 0, (), (), 0)
    specialization.executable = object.__new__(CpuExecutable)  # the guard program does not depend on its code
    builder = GuardBuilder(specialization, arguments, convention)
    builder.add_argument_guards(len(shapes), ())
    builder.add_external_guards()
    return specialization, builder.guards


def test_guard_program_equals_the_specialised_one():
    def function(x, y):
        return td.softmax(x @ y + OFFSET)

    shapes = ((ROWS, 32), (32, COLUMNS))
    symbolic, program = build_guard_program(function, shapes)
    assert [str(guard) for guard in symbolic.guards] == [
        "Tensor float32[rows,32]",
        "Tensor float32[32,columns]",
    ]
    for numbers in LARGER:
        specialised, other = build_guard_program(function, substitute(shapes, numbers))
        assert substitute(symbolic.guards, numbers) == specialised.guards
        assert substitute(tuple(program.words), numbers) == tuple(other.words)


def test_symbolic_guards_name_the_condition():
    specialization, program = build_guard_program(lambda x, y: x + y, [(ROWS,), (ROWS,)])
    with pytest.raises(UndecidedError, match="rows == 20"):
        specialization.guards[0].check(tensor_key((20,)))
    assert not specialization.guards[0].check(tensor_key((2,)))
    with pytest.raises(UndecidedError, match="rows == a number"):
        program.record()
