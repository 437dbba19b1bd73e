"""Random programs of indexing, ``.at`` and assignments, run by tandem and, statement by statement, by NumPy.

A program is a start array and a list of statements. Values are small powers of two, so that most results are exact.
"""

import operator
from typing import Any, NamedTuple

import numpy as np
import tandem as td

DTYPES = ["float32"] * 3 + ["float64", "float16", "bfloat16", "complex64", "complex128"]
DTYPES += ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-6, "float64": 1e-13, "complex64": 4e-6}
UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
IN_PLACE = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "%": operator.imod, "**": operator.ipow, "&": operator.iand, "|": operator.ior, "^": operator.ixor,
    "<<": operator.ilshift, ">>": operator.irshift,
}  # fmt: skip


class Slot(NamedTuple):
    """A tensor that a program takes as an argument: its number."""

    number: int


class Statement(NamedTuple):
    """One statement.

    Attributes:
        kind: ``"read"``, ``"assign"``, ``"at"``, or an operator of ``IN_PLACE``.
        method: of ``.at``.
        key, value: with slots for tensors.
    """

    kind: str
    method: str
    key: Any
    value: Any = None


class Program(NamedTuple):
    """Statements on a tensor ``x``; ``arrays`` are the contents of the slots."""

    x: Any
    statements: list[Statement]
    arrays: list[Any]


# --- drawing ----------------------------------------------------------------------------------------------


def numbers_of(dtype, purpose=""):
    """The numbers that elements are drawn from."""
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind == "u" or purpose in ("**", "power", "<<", ">>"):
        return [0, 1, 2] if dtype.kind in "iu" else [0.0, 0.5, 1.0, 2.0]
    if dtype.kind == "i":
        return [-2, -1, 0, 1, 2, 3]
    found = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]
    if purpose in ("/", "//", "%", "divide"):
        return [*found, 1j, -2j] if dtype.kind == "c" else found
    return [*found, 0.0, 1j, 1 - 2j] if dtype.kind == "c" else [*found, 0.0]


def laid_out(array, rng):
    """The array, with its elements at odd places in memory."""
    way = rng.integers(5)
    if way == 0 and array.ndim:
        return np.ascontiguousarray(array.T).T
    if way == 1 and array.ndim:
        axis = rng.integers(array.ndim)
        return np.flip(np.flip(array, axis).copy(), axis)
    if way == 2 and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., 1::2] = array
        return wide[..., 1::2]
    return array


def elements(rng, shape, dtype, purpose=""):
    """An array of drawn numbers."""
    table = np.array(numbers_of(dtype.np, purpose)).astype(dtype.np)
    return laid_out(np.asarray(table[rng.integers(len(table), size=shape)]), rng)


def positions(rng, size, shape):
    """Positions along an axis, some counted from the end, repeated as it comes."""
    dtype = rng.choice(["int64", "int64", "int32", "int8", "uint8"])
    low = 0 if dtype == "uint8" else -size
    found = np.asarray(rng.integers(low, max(size, 1), shape))
    if rng.random() < 0.5:
        found = found.ravel()[: 1 + found.size // 3][
            rng.integers(1 + found.size // 3, size=shape) % max(found.size, 1)
        ]
    return laid_out(np.asarray(found).astype(dtype), rng)


def draw_slice(rng, size):
    """A slice with any step; seldom of nothing."""
    while True:
        start, end = (None if rng.random() < 0.4 else int(rng.integers(-size - 1, size + 2)) for _ in "ab")
        found = slice(start, end, int(rng.choice([1, 1, 2, -1, -2, 3])))
        if range(size)[found] or rng.random() < 0.2:
            return found


def draw_key(rng, shape, masks):
    """A tuple of parts for the axes of a shape, as NumPy takes it."""
    parts, axis = [], 0
    common = tuple(rng.integers(1, 5, rng.integers(0, 3)))
    advanced = rng.random() < 0.75
    stop = rng.integers(len(shape) + 1) if rng.random() < 0.4 else len(shape)
    while axis < stop:
        size, choice = shape[axis], rng.random()
        if choice < 0.1:
            parts.append(None)
            continue
        if advanced and choice < 0.55 and size:
            own = tuple(n if rng.random() < 0.7 else 1 for n in common[rng.integers(len(common) + 1) :])
            parts.append(positions(rng, size, own))
        elif advanced and masks and choice < 0.62:
            count = int(rng.integers(1, min(2, stop - axis) + 1))
            parts.append(rng.random(shape[axis : axis + count]) < 0.5)
            axis += count - 1
        elif choice < 0.75 and size:
            parts.append(int(rng.integers(-size, size)))
        else:
            parts.append(draw_slice(rng, size))
        axis += 1
    if rng.random() < 0.3:
        first = last = int(rng.integers(len(parts) + 1)) if axis == len(shape) else len(parts)
        while axis == len(shape) and last < len(parts) and rng.random() < 0.5:
            last += 1
        parts[first:last] = [...]
    if masks and rng.random() < 0.03:
        parts.append(bool(rng.integers(2)))
    return tuple(parts)


def draw_value(rng, selected, x_dtype, kind, purpose):
    """A value that broadcasts to what is selected: an array, or a Python number."""
    if rng.random() < 0.2:
        return rng.choice(np.array(numbers_of(x_dtype.np, purpose), object))
    shape = [n if rng.random() < 0.75 else 1 for n in selected]
    shape = shape[rng.integers(len(shape) + 1) if rng.random() < 0.35 else 0 :]
    dtype = x_dtype
    if kind in ("assign", "at") and purpose not in ("divide", "power") and rng.random() < 0.25:
        lower = {"c": ["float32", "complex64"], "f": ["float64", "int8", "bool"], "i": ["int8", "bool"]}
        dtype = td.registry.dtypes.as_dtype(str(rng.choice(lower.get(x_dtype.np.kind, [x_dtype.name]))))
    if kind == "assign" and rng.random() < 0.1:
        shape = [1, *([1] * (len(selected) - len(shape))), *shape]
    return elements(rng, tuple(shape), dtype, purpose)


def choose(rng, dtype):
    """A kind of statement, and the method or the operator."""
    kind = rng.choice(["read", "assign", "in place", "at", "at"])
    numeric = dtype.np.kind != "b"
    if kind == "at":
        names = ["set", "get", "add"] + ["subtract", "multiply", "divide", "power"] * numeric
        names += ["min", "max"] * (dtype.np.kind != "c")
        if dtype.np.kind in "iu":
            names.remove("divide")
        return "at", str(rng.choice(names))
    if kind == "in place":
        known = {
            "b": "& | ^",
            "i": "+ - * // % ** & | ^ << >>",
            "u": "+ - * // % ** & | ^ << >>",
            "c": "+ - * /",
        }
        return str(rng.choice(known.get(dtype.np.kind, "+ - * / // % **").split())), ""
    return str(kind), ""


def true_axis(x, key):
    """The axis of the true elements in what a key with one mask and no positions selects; None for another key."""
    parts = [part for part in key if isinstance(part, np.ndarray | bool)]
    if len(parts) != 1 or isinstance(parts[0], bool) or parts[0].dtype.kind != "b" or not parts[0].size:
        return None
    shapes = [
        x[tuple(np.full(part.shape, fill) if part is parts[0] else part for part in key)].shape
        for fill in (True, False)
    ]
    return next(axis for axis, (full, empty) in enumerate(zip(*shapes, strict=True)) if full != empty)


class Drawer:
    """Draws one program.

    Args:
        seed: of the program.
        masks: whether masks may be tensors, whose positions a trace does not know; if not, they are lists, except where
            a value that does not depend on the number of true elements is written.
        dtype: of the array; None: any.
    """

    def __init__(self, seed, masks=True, dtype=None):
        self.rng = np.random.default_rng(seed)
        self.masks, self.arrays = masks, []
        self.dtype = td.registry.dtypes.as_dtype(dtype or str(self.rng.choice(DTYPES)))

    def program(self, most=3):
        rng = self.rng
        sizes = [1, 2, 3, 4, 5] if rng.random() < 0.93 else [0, 1, 2]
        shape = tuple(int(n) for n in rng.choice(sizes, rng.integers(0, 5)))
        x = elements(rng, shape, self.dtype)
        return Program(x, [self.statement(x) for _ in range(rng.integers(1, most + 1))], self.arrays)

    def statement(self, x, kind="", method=""):
        rng = self.rng
        if not kind:
            kind, method = choose(rng, self.dtype)
        is_write = kind == "assign" or (kind == "at" and method != "get")
        while True:
            key = draw_key(rng, x.shape, self.masks or is_write)
            try:
                selected = np.arange(x.size).reshape(x.shape)[key].shape
                break
            except (
                IndexError
            ):  # masks with different numbers of true elements, or of an axis without elements
                continue
        axis = None if self.masks or not is_write else true_axis(x, key)
        if axis is not None:  # a value for each true element or one for all
            selected = (*selected[:axis], 1, *selected[axis + 1 :])
        key = tuple(self.shown(part, axis is not None) for part in key)
        if len(key) == 1 and rng.random() < 0.5:
            key = key[0]
        if kind == "read" or method == "get":
            return Statement(kind, method, key)
        value = draw_value(rng, selected, self.dtype, kind, method or kind)
        return Statement(kind, method, key, self.spelled(value))

    def spelled(self, value):
        """A value as tandem gets it: a tensor, an array of NumPy or one of its scalars, or a Python number."""
        if not isinstance(value, np.ndarray):
            return value
        if self.rng.random() < 0.8:
            return self.slot(value)
        return value if value.size != 1 or self.rng.random() < 0.5 else value.reshape(-1)[0]

    def shown(self, part, masks=False):
        """A part of a key as tandem gets it."""
        if not isinstance(part, np.ndarray):
            return part
        choice, is_mask = self.rng.random(), part.dtype.kind == "b"
        is_constant = is_mask and not (self.masks or masks)
        if part.size and part.ndim and (is_constant or choice < (0.3 if is_mask else 0.1)):
            return part.tolist()
        if is_constant:
            return part
        return part if choice < 0.2 and not is_mask else self.slot(part)

    def slot(self, array):
        self.arrays.append(array)
        return Slot(len(self.arrays) - 1)


# --- running ----------------------------------------------------------------------------------------------


def filled(part, given):
    """A key or a value with the tensors, or the arrays, for its slots."""
    if isinstance(part, Slot):
        return given[part.number]
    return tuple(filled(item, given) for item in part) if type(part) is tuple else part


def run(program, x, tensors):
    """The program by tandem: ``(x, everything that was read)``."""
    found = []
    for one in program.statements:
        key, value = filled(one.key, tensors), filled(one.value, tensors)
        if one.kind == "read":
            found.append(x[key] * 1 if x.dtype.kind != "b" else x[key] | False)
        elif one.method == "get":
            found.append(x.at[key].get() * 1 if x.dtype.kind != "b" else x.at[key].get() | False)
        elif one.kind == "assign":
            x[key] = value
        elif one.kind == "at":
            x = getattr(x.at[key], one.method)(value)
        else:
            x[key] = IN_PLACE[one.kind](x[key], value)
    return x, found


def expected(program, x, arrays):
    """The program by NumPy, on an array and on what the slots stand for."""
    x, found = x.copy(), []
    with np.errstate(all="ignore"):
        for one in program.statements:
            key, value = filled(one.key, arrays), filled(one.value, arrays)
            if one.kind == "read" or one.method == "get":
                found.append(np.array(x[key]))
            elif one.kind == "assign" or one.method == "set":
                x = written(x, key, value)
            elif one.kind == "at":
                x = updated(x, key, value, one.method)
            else:
                changed = IN_PLACE[one.kind](np.array(x[key]), np.asarray(value).astype(x.dtype))
                x = written(x, key, changed)
    return x, found


def places_of(x, key, value):
    """The flat positions that a key selects, and the value for each."""
    places = np.arange(x.size).reshape(x.shape)[key]
    value = np.asarray(value).astype(x.dtype)
    while value.ndim > np.ndim(places):
        value = value[0]
    return np.ravel(places), np.broadcast_to(value, np.shape(places)).ravel()


def written(x, key, value):
    """What an assignment gives: the last of several values in row-major order, which NumPy does not promise."""
    out = x.copy().reshape(-1)
    places, values = places_of(x, key, value)
    for place, item in zip(places, values, strict=True):
        out[place] = item
    return out.reshape(x.shape)


def updated(x, key, value, method):
    """What a method of ``.at`` gives: every occurrence of a position counts."""
    out = x.copy().reshape(-1)
    places, values = places_of(x, key, value)
    if method in UFUNCS:
        UFUNCS[method].at(out, places, values)
    else:
        product = np.ones_like(out)
        np.multiply.at(product, places, values)
        combine = np.divide if method == "divide" else power
        out[places] = combine(out[places], product[places])
    return out.reshape(x.shape)


def power(base, exponents):
    """NumPy's powers. To a negative exponent, as a product that overflowed is, an integer gives its truncated power."""
    if base.dtype.kind != "i":
        return np.power(base, exponents)
    truncated = np.where(exponents % 2 == 1, base, base * base) * (abs(base) == 1)
    return np.where(exponents < 0, truncated, np.power(base, np.maximum(exponents, 0)))


def same(found, want, dtype):
    """Whether results are those of NumPy: equal, or within a few units in the last place."""
    if found.dtype.np != want.dtype or found.shape != want.shape:
        return False
    if want.dtype.kind in "biu":
        return np.array_equal(found.numpy(), want)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = found.numpy().astype(wide), want.astype(wide)
    rtol = TOLERANCE.get(dtype, 1e-13)
    with np.errstate(all="ignore"):
        close = np.abs(got - want) <= rtol * np.abs(want)
    return bool(np.all(close | (got == want) | (np.isnan(got) & np.isnan(want))))
