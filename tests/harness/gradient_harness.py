"""Differentiable operators of the op table, their samples, and directional derivatives by differences."""

import numpy as np
import tandem as td
from optable import arrays_of, depends_on_data, generator, samples_of, table, to_tensors
from tandem.eager.tensor.tensor import wrap
from tandem.operators.declare.declaration import TensorSample
from tandem.operators.declare.derivatives import NotDifferentiable, Rule
from tandem.registry.dtypes import DType, float64
from tandem.registry.function import functions

BOUND = 1e-6


STEP = 2e-5


MOST = 6  # samples of an operator


OPS = table()


def flat(args):
    for arg in args:
        if type(arg) in (tuple, list):
            yield from flat(arg)
        else:
            yield arg


def is_differentiable(op):
    if isinstance(op.decl.derivative, NotDifferentiable) or op.decl.effects or op.decl.samples is None:
        return False
    if isinstance(op.decl.derivative, Rule) and not op.decl.derivative.vjp:
        return False  # a constant by its own word: stop_gradient
    if op.decl.kind == "collective":
        return False  # all examples of a vmap together; tested with it
    if op.decl.kind == "composite" and op.decl.shape_rule is not None:
        calls = (arrays_of(s, float64, generator(op, float64)) for s in samples_of(op, float64))
        if all(depends_on_data(op, *to_tensors(call)) for call in calls):
            return False  # no trace of it; its parts are tested
    drawn = (a for sample in samples_of(op, float64) for a in flat(sample.args))
    return float64 in op.decl.dtypes and any(
        isinstance(a, TensorSample) and a.dtype in (None, float64) for a in drawn
    )


DIFFERENTIABLE = [name for name, op in OPS.items() if is_differentiable(op)]


def smooth_samples(op):
    """The first samples without special values, not empty, with a float64 tensor, of different forms."""
    found = {}
    for sample in samples_of(op, float64):
        args, kwargs = arrays_of(sample, float64, generator(op, float64))
        tensors = [a for a in flat(args) if isinstance(a, np.ndarray) and a.dtype == np.float64]
        special = any(
            (isinstance(a, TensorSample) and a.values is not None and a.dtype is None)
            or (isinstance(a, DType) and a is not float64)
            for a in flat((sample.args, *sample.kwargs.values()))
        )
        if tensors and not special and all(0 < t.size <= 64 for t in tensors):
            form = (
                tuple(np.shape(a) if isinstance(a, np.ndarray) else str(a) for a in flat(args)),
                str(kwargs),
            )
            found.setdefault(form, (args, kwargs))
    chosen = list(found.values())
    return chosen[:: max(1, len(chosen) // MOST)][:MOST]


def holes(args, values):
    """``args`` with its float64 arrays replaced by ``values``, in order."""
    values = iter(values)

    def fill(arg):
        if type(arg) in (tuple, list):
            return type(arg)(map(fill, arg))
        if isinstance(arg, np.ndarray):
            return next(values) if arg.dtype == np.float64 else wrap(arg)
        return arg

    return tuple(map(fill, args))


def drawn_like(item, rng):
    """Random numbers, complex for a complex result."""
    parts = [np.asarray(rng.normal(size=item.shape)) for _ in range(2 if item.dtype.kind == "c" else 1)]
    return parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]


def weighted(item, weights):
    """A real number that depends on all of a result."""
    found = (item * weights).sum()
    return td.real(found) if found.dtype.kind == "c" else found


def projected(op, args, kwargs, rng):
    """(f, points): ``f`` of float64 tensors gives ``sum(w * op(...))``, over all results of inexact dtype."""
    function = functions[op.name]
    points = [a for a in flat(args) if isinstance(a, np.ndarray) and a.dtype == np.float64]
    options = to_tensors(kwargs)
    weights = {}

    def f(*values):
        out = function(*holes(args, values), **options)
        total = 0.0
        for index, item in enumerate(out if isinstance(out, tuple) else (out,)):
            if item.dtype.is_inexact:
                if index not in weights:
                    weights[index] = wrap(drawn_like(item, rng))
                total = total + weighted(item, weights[index])
        return total

    return f, points


def directional(f, points, directions):
    """The central difference of ``f``, extrapolated."""

    def slope(step):
        ahead = f(*[wrap(np.asarray(p + step * d)) for p, d in zip(points, directions, strict=True)])
        behind = f(*[wrap(np.asarray(p - step * d)) for p, d in zip(points, directions, strict=True)])
        return (float(ahead) - float(behind)) / (2 * step)

    return (4 * slope(STEP / 2) - slope(STEP)) / 3
