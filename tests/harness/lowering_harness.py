"""Trace a function of arrays, lower it, and compare the ways of running it."""

import numpy as np
from tandem import config
from tandem.backends.cpu import compile as _registers_the_backend  # noqa: F401
from tandem.eager.tensor.tensor import Tensor, dtype_of, wrap
from tandem.lowering import lower
from tandem.registry.values import TensorSpec
from tandem.tracer.graph import Graph, compute_derived, scalar_spec
from tandem.tracer.scalar import TracerScalar
from tandem.tracer.tensor import TracerTensor, make_tracer
from tandem.tracer.trace import tracing

SCALARS = (bool, int, float)


def graph_of(function, *args) -> Graph:
    """The graph of ``function`` on arrays and Python scalars; its results are a tensor or a tuple of them."""
    with tracing(getattr(function, "__name__", "f")) as trace:
        found = function(*[_leaf(trace, a) for a in args])
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        trace.graph.outputs = [
            o._value if isinstance(o, (TracerTensor, TracerScalar)) else o for o in outputs
        ]
    return trace.graph


def _leaf(trace, arg):
    if type(arg) in SCALARS:
        return TracerScalar(trace, trace.graph.add_input(scalar_spec(type(arg)), type(arg)), arg)
    return make_tracer(trace, trace.graph.add_input(TensorSpec(arg.shape, dtype_of(arg))))


def given(graph, args):
    """What a run of the graph is given for its parameters."""
    return [*args, *compute_derived(graph, args), *(t._array for t in graph.constants)]


def lowered(function, *args, native=True):
    """``function`` traced on ``args`` and lowered."""
    with config.override(native=native, verify=True):
        return lower(graph_of(function, *args))


def run(function, *args, native=True):
    """The results of the compiled (or interpreted) function, as arrays."""
    found = lowered(function, *args, native=native)
    with config.override(native=native):
        return found.compile().run(given(found.graph, list(args)))


def eager(function, *args):
    """The results of the function run eagerly, as arrays."""
    found = function(*[a if type(a) in SCALARS else wrap(a) for a in args])
    outputs = found if isinstance(found, (tuple, list)) else (found,)
    return [o._array if isinstance(o, Tensor) else np.asarray(o) for o in outputs]


def kernels(function, *args):
    """The steps that run, as text."""
    return lowered(function, *args).kernels().steps


def close(one, two, rtol=None):
    """Integers and bools are equal; floats within a tolerance by dtype."""
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            wide = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (a, b)]
            tolerance = rtol or {2: 2e-2, 4: 2e-5, 8: 1e-11}[a.real.dtype.itemsize]
            np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)


def agree(function, *args, rtol=None):
    """Eager, interpreted and compiled results agree; returns the compiled ones."""
    wanted = eager(function, *args)
    compiled = run(function, *args)
    close(compiled, wanted, rtol)
    close(run(function, *args, native=False), wanted, rtol)
    return compiled
