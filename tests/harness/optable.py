"""The op table as tests: generate the declared samples, run the references, and compare results.

A row is an operator, a dtype and a sample. References are the NumPy and SciPy functions that declarations name; those
of elementwise operators get arrays of the promoted dtype (float32 for float16 and bfloat16), and their results are
rounded once.

Tolerances, relative, unless a declaration states its own: a few units in the last place (`TOLERANCE`). Elementwise
operators are held to them with no absolute slack; what sums has slack of the tolerance times the largest input.
"""

import importlib
import zlib

import numpy as np
import tandem as td
import tandem.fft  # declares its operators
import tandem.linalg  # likewise
import tandem.special  # likewise
from tandem.eager.tensor.tensor import Tensor, wrap
from tandem.errors import UnsupportedError
from tandem.operators.declare.declaration import TensorSample, declared_operators
from tandem.operators.declare.shape_rules import compute_dtype, operand_dtypes
from tandem.registry.dtypes import DType, bfloat16, float16
from tandem.registry.function import functions
from tandem.registry.values import TensorSpec

TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 2e-6,
    "float64": 2e-14,
    "complex64": 4e-6,
    "complex128": 4e-14,
}
HALVES = (float16, bfloat16)
SUMMING = ("reduction", "scan", "composite", "contraction", "convolution", "scatter")


def table():
    """Every declared operator by a name to show."""
    return {op.name.partition("::")[2].removesuffix(".Tensor"): op for op in declared_operators()}


def _generated(source, *first):
    """The calls of a declaration's ``samples`` or ``errors``."""
    name, *rest = source if isinstance(source, tuple) else (source,)
    return [] if name is None else list(resolve(name)(*first, *rest))


def samples_of(op, dtype):
    """The sample inputs of an operator for a dtype."""
    return _generated(op.decl.samples, dtype)


def errors_of(op):
    """The error inputs of an operator."""
    return _generated(op.decl.errors)


def rows(op):
    """(dtype, sample) of every row, in order."""
    for dtype in op.decl.dtypes:
        for sample in samples_of(op, dtype):
            yield dtype, sample


def generator(op, dtype):
    """Random numbers that are the same in every run and on every machine."""
    return np.random.default_rng(zlib.crc32(f"{op.name} {dtype.name}".encode()))


# --- drawing ----------------------------------------------------------------------------------------------


def _flat(draw, dtype, count, rng):
    if draw.values is not None:
        with np.errstate(all="ignore"):
            return np.asarray(draw.values).astype(dtype.np)
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_integer:
        info = np.iinfo(dtype.np)
        low, high = max(int(draw.low), info.min), min(int(draw.high), info.max)
        if draw.distinct:
            return (np.clip(low, -count, 0) + rng.permutation(count)).astype(dtype.np)
        return rng.integers(low, high, count, endpoint=True).astype(dtype.np)
    values = rng.uniform(draw.low, draw.high, count)
    if draw.distinct:
        values = rng.permutation(np.linspace(draw.low, draw.high, count))
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(draw.low, draw.high, count)
    return values.astype(dtype.np)


def _lay_out(array, layout):
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    if layout == "reversed":
        flip = (slice(None, None, -1),) * array.ndim
        return np.ascontiguousarray(array[flip])[flip]
    if layout == "strided" and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return array


def make(draw, dtype, rng):
    """The array of a TensorSample."""
    dtype = draw.dtype or dtype
    count = int(np.prod(draw.shape, dtype=int))
    return _lay_out(_flat(draw, dtype, count, rng).reshape(draw.shape), draw.layout)


def replace(tree, kind, fn):
    """Nested tuples and lists with every instance of ``kind`` replaced."""
    if isinstance(tree, kind):
        return fn(tree)
    if type(tree) in (tuple, list):
        return type(tree)(replace(item, kind, fn) for item in tree)
    if isinstance(tree, dict):
        return {key: replace(item, kind, fn) for key, item in tree.items()}
    return tree


def arrays_of(sample, dtype, rng):
    """(args, kwargs) of a sample with arrays for Draws."""
    return replace((sample.args, dict(sample.kwargs)), TensorSample, lambda draw: make(draw, dtype, rng))


def to_tensors(tree):
    """Arrays to plain tensors, which share their memory."""
    return replace(tree, np.ndarray, wrap)


def to_specs(tree):
    """Tensors to specs."""
    return replace(tree, Tensor, lambda t: TensorSpec(t.shape, t.dtype, t.device))


# --- references -------------------------------------------------------------------------------------------


def resolve(reference):
    """The function of a dotted name; a function as it is."""
    if callable(reference):
        return reference
    module, _, name = reference.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _widened(array):
    return array.astype(np.float32) if array.dtype in (float16.np, bfloat16.np) else array


def _operands(op, args):
    """The arguments of an elementwise operator as arrays of the dtypes that its body takes."""
    specs = to_specs(to_tensors(args))
    computed = compute_dtype(op.schema.name, op.decl.result, op.decl.dtypes, specs)
    dtypes = operand_dtypes(op.decl, computed, len(args))
    return [_widened(np.asarray(arg).astype(dtype.np)) for arg, dtype in zip(args, dtypes, strict=True)]


def expected(op, args, kwargs):
    """What the reference gives, before it is rounded to the result's dtype."""
    decl = op.decl
    function = resolve(decl.reference)
    with np.errstate(all="ignore"):
        if decl.is_elementwise:
            return function(*_operands(op, args))
        if decl.kind in SUMMING:
            args, kwargs = replace((args, kwargs), np.ndarray, _widened)
        if isinstance(decl.reference, str) and not decl.reference.startswith("references."):
            args, kwargs = replace((args, kwargs), DType, lambda dtype: dtype.np)
        return function(*args, **kwargs)


# --- equality ---------------------------------------------------------------------------------------------


def tolerance(op, dtype):
    return op.decl.tolerance.get(dtype.name, TOLERANCE.get(dtype.name, 0.0))


def _scale(args):
    """The largest finite magnitude among the inputs."""
    found = 1.0
    for array in args:
        if isinstance(array, np.ndarray) and array.size and array.dtype.kind not in "b":
            wide = np.abs(array.astype(complex))
            found = max(found, wide[np.isfinite(wide)].max(initial=0.0))
    return found


def same(got, want, rtol, atol=0.0):
    """Whether two arrays are equal within a tolerance, NaN equal to NaN."""
    if got.dtype.kind in "biu":
        return np.array_equal(got, want)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        got, want = got.astype(wide), want.astype(wide)
        close = np.abs(got - want) <= rtol * np.abs(want) + atol
    if wide is np.complex128 and not close.all():  # the finite part of an infinite number may be rounded too
        rest = ~close
        pairs = [(part(got)[rest], part(want)[rest]) for part in (np.real, np.imag)]
        if all(same(one, two, rtol, atol) for one, two in pairs):
            return True
    return bool(np.all(close | (got == want) | (np.isnan(got) & np.isnan(want))))


def check(op, got, want, args, what):
    """Assert that results, tensors or tuples of them, are what the reference gives."""
    got = got if isinstance(got, tuple) else (got,)
    want = want if isinstance(want, tuple) else (want,)
    assert len(got) == len(want), what
    for tensor, array in zip(got, want, strict=True):
        with np.errstate(all="ignore"):
            array = np.asarray(array).astype(tensor.dtype.np)
        found = tensor._array
        assert found.shape == array.shape, f"{what}: shape {found.shape}, the reference has {array.shape}"
        rtol = tolerance(op, tensor.dtype)
        atol = rtol * _scale(args) if op.decl.kind in SUMMING else 0.0
        assert same(found, array, rtol, atol), f"{what}\n got: {found!r}\nwant: {array!r}\nargs: {args!r}"


def depends_on_data(op, args, kwargs):
    """Whether the shape of the result does: then the rule refuses, and jit with it."""
    if op.decl.shape_rule is None:
        return False
    args, kwargs = op.binder.bind(args, kwargs)
    try:
        op.decl.shape_rule(*to_specs(args), **to_specs(kwargs))
    except UnsupportedError:
        return True
    return False


class Hole:
    """Where a tensor goes."""

    def __init__(self, index):
        self.index = index


def as_function(op, args, kwargs):
    """(f, tensors): the call as a function of its tensors alone."""
    tensors = []
    holes = replace(
        (args, kwargs), td.Tensor, lambda tensor: tensors.append(tensor) or Hole(len(tensors) - 1)
    )

    def call(*values):
        args, kwargs = replace(holes, Hole, lambda hole: values[hole.index])
        return functions[op.name](*args, **kwargs)

    return call, tensors
