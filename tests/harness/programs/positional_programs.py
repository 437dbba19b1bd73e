"""Random programs of slices, pads, joins, gathers, updates, loops and branches, and their gradients.

Elements are small integers, and values are clipped after products, so that almost all results are exact whatever the
order of their operations: ways of running a program are compared bit for bit.
"""

import numpy as np
import tandem as td

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17)
METHODS = ("set", "add", "subtract", "multiply", "min", "max")
LARGEST = 600
DEPTH = 2


def shaped(value, like):
    """A value of the shape and dtype of another one."""
    if value.shape != like.shape:
        value = td.broadcast_to(td.sum(value), like.shape)
    return value if value.dtype == like.dtype else td.astype(value, like.dtype)


def bounded(value):
    return td.clip(value, -8, 8)


class Drawer:
    """Draws the steps of a program from a seed: each is a name, the numbers of its operands, and parameters."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def steps(self, most, depth=0):
        names = list(STEPS)
        if depth >= DEPTH:
            names = [name for name in names if name not in NESTED]
        weights = np.array([WEIGHTS.get(name, 1.0) for name in names])
        count = int(self.rng.integers(1, most + 1))
        return [
            self.step(str(self.rng.choice(names, p=weights / weights.sum())), depth) for _ in range(count)
        ]

    def step(self, name, depth):
        rng = self.rng
        picks = [-1 - int(n) for n in rng.integers(0, 3, 3)]
        if rng.random() < 0.3:
            picks[0] = int(rng.integers(0, 9))
        numbers = [int(n) for n in rng.integers(-20, 21, 8)]
        bodies = [self.steps(4, depth + 1) for _ in range(NESTED.get(name, 0))]
        return name, picks, numbers, bodies

    def program(self, most=7):
        rng = self.rng
        arrays = []
        for dtype in ("float64", "float32", "int32"):
            shape = tuple(int(n) for n in rng.choice(SIZES, rng.integers(1, 4)))
            shape = shape if np.prod(shape) <= LARGEST else shape[:2]
            if rng.random() < (0.9 if dtype == "float64" else 0.4):
                arrays.append(rng.integers(-3, 4, shape).astype(dtype))
        arrays = arrays or [rng.integers(-3, 4, (4, 3)).astype("float32")]
        arrays.append(
            rng.integers(0, 100, int(rng.choice(SIZES))).astype(str(rng.choice(["int64", "int32"])))
        )
        kind = str(rng.choice(["value", "value", "gradient", "jvp", "vmapped"]))
        return Program(self.steps(most), kind), arrays


class Program:
    """A program over its arrays; the last one holds numbers from which positions are made."""

    def __init__(self, steps, kind):
        self.program_steps, self.kind = steps, kind

    def __repr__(self):
        return f"Program({self.program_steps!r}, {self.kind!r})"

    def values(self, *arrays):
        *values, numbers = arrays
        first = len(values)
        run(self.program_steps, values, numbers)
        return values[first:] or [values[0] + 1]

    def loss(self, *arrays):
        return sum(td.sum(td.astype(value, td.float64)) for value in self.values(*arrays)[-3:])

    def __call__(self, *arrays):
        floats = [n for n, array in enumerate(arrays[:-1]) if array.dtype.is_inexact]
        if self.kind == "gradient" and floats:
            return td.grad(self.loss, tuple(floats))(*arrays)
        if self.kind == "jvp" and floats:
            n = floats[0]
            return td.jvp(
                lambda x: self.values(*arrays[:n], x, *arrays[n + 1 :])[-1], (arrays[n],), (arrays[n] * 2,)
            )
        if self.kind == "vmapped":
            stacked = td.stack([arrays[0], td.flip(arrays[0], 0), arrays[0] * 2])
            return td.vmap(lambda x: tuple(self.values(x, *arrays[1:])[-3:]))(stacked)
        return tuple(self.values(*arrays)[-4:])


def run(steps, values, numbers):
    """Append the results of steps to ``values``; a step that does not fit the shapes is left out."""
    for name, picks, parameters, bodies in steps:
        operands = [values[p % len(values)] for p in picks]
        result = STEPS[name](operands, numbers, parameters, bodies)
        if result is not None and 0 < result.spec.size <= LARGEST:
            values.append(result)


# --- steps: of operands, numbers for positions, parameters and the steps of bodies; None if they do not fit
def positions(numbers, size, k):
    """Positions below ``size``, as a tensor; some counted from the end."""
    found = numbers % size
    return found - size if k % 3 == 0 else found


def draw_slices(shape, ns):
    found = []
    for size, n in zip(shape, ns, strict=False):
        step = (1, 1, 1, 2, -1, -2, 3)[n % 7]
        start = n % (size // 2 + 1) if step > 0 else None
        found.append(
            slice(start, None if n % 2 else max((start or 0) + 1, size - 1) if step > 0 else None, step)
        )
    return tuple(found[: 1 + ns[3] % len(shape)]) if shape else ()


def take_slice(xs, numbers, ns, bodies):
    return xs[0][draw_slices(xs[0].shape, ns)] + 0 if xs[0].shape else None


def unary(xs, numbers, ns, bodies):
    x = xs[0]
    return (x + ns[0], -x, td.abs(x), td.maximum(x, ns[1] % 4), x * 2 - 1, td.where(x > 0, x, ns[0]))[
        ns[2] % 6
    ]


def binary(xs, numbers, ns, bodies):
    x, y = xs[:2]
    y = shaped(y, x)
    return (x + y, x - y, bounded(x * y), td.maximum(x, y), td.minimum(x, y), td.where(x > y, x, y + 1))[
        ns[2] % 6
    ]


def flip(xs, numbers, ns, bodies):
    return td.flip(xs[0], ns[0] % len(xs[0].shape)) if xs[0].shape else None


def roll(xs, numbers, ns, bodies):
    if not xs[0].shape:
        return None
    return td.roll(xs[0], ns[1], ns[0] % len(xs[0].shape) if ns[2] % 4 else None)


def pad(xs, numbers, ns, bodies):
    x = xs[0]
    if not x.shape or ns[3] % 4 == 0:
        return None
    widths = [(ns[d] % 3, ns[(d + 3) % len(ns)] % 3) for d in range(len(x.shape))]
    return (
        td.numpy.pad(x, widths, constant_values=ns[7]) if ns[6] % 2 else td.numpy.pad(x, widths, mode="edge")
    )


def concat(xs, numbers, ns, bodies):
    x, y, z = xs
    if not x.shape:
        return None
    return td.concat([shaped(y, x) * 2, x, shaped(z, x)][: 2 + ns[0] % 2], ns[1] % len(x.shape))


def stack(xs, numbers, ns, bodies):
    x, y = xs[:2]
    return td.stack([x, shaped(y, x) + 1], ns[1] % (len(x.shape) + 1)) if len(x.shape) < 4 else None


def permute(xs, numbers, ns, bodies):
    rank = len(xs[0].shape)
    return td.permute(xs[0], tuple((d + ns[0]) % rank for d in range(rank))) if rank else None


def reshape(xs, numbers, ns, bodies):
    x = xs[0]
    return x.reshape((*x.shape[1:], *x.shape[:1])) if ns[0] % 3 else x.reshape((-1,))


def repeat(xs, numbers, ns, bodies):
    x = xs[0]
    if not x.shape:
        return None
    return td.numpy.repeat(x, 2, ns[1] % len(x.shape)) if ns[0] % 2 else td.numpy.tile(x, 2)


def triangle(xs, numbers, ns, bodies):
    return (td.tril, td.triu)[ns[0] % 2](xs[0], ns[1] % 3 - 1) if len(xs[0].shape) > 1 else None


def diagonal(xs, numbers, ns, bodies):
    return td.diagonal(xs[0]) + 1 if len(xs[0].shape) > 1 else None


def reduction(xs, numbers, ns, bodies):
    x = xs[0]
    axis = ns[0] % len(x.shape) if x.shape and ns[1] % 3 else None
    found = (td.sum, td.max, td.min)[ns[2] % 3](x, axis, keepdims=bool(ns[3] % 2))
    return bounded(found)


def cumulative(xs, numbers, ns, bodies):
    return bounded(td.cumsum(xs[0], ns[0] % len(xs[0].shape))) if xs[0].shape else None


def take(xs, numbers, ns, bodies):
    """Elements at positions along one axis, before or behind others."""
    x = xs[0]
    if not x.shape:
        return None
    axis = ns[0] % len(x.shape)
    key = [slice(None)] * len(x.shape)
    key[axis] = positions(numbers, x.shape[axis], ns[1])
    if ns[2] % 3 == 0 and axis + 1 < len(x.shape):
        key[axis + 1] = positions(numbers + ns[3] % 5, x.shape[axis + 1], ns[4])
    return x[tuple(key)]


def take_computed(xs, numbers, ns, bodies):
    """Elements at positions that are computed from other elements."""
    x, y = xs[:2]
    if not x.shape:
        return None
    picked = td.astype(td.abs(y), td.int64) % x.shape[0]
    return x[picked] if np.prod(y.shape) * np.prod(x.shape[1:]) <= LARGEST else None


def take_along(xs, numbers, ns, bodies):
    x, y = xs[:2]
    if not x.shape:
        return None
    axis = ns[0] % len(x.shape)
    picked = td.astype(td.abs(shaped(y, x)), td.int64) % x.shape[axis]
    return td.take_along_axis(x, picked, axis)


def one_position(xs, numbers, ns, bodies):
    x = xs[0]
    return x[numbers[ns[0] % numbers.shape[0]] % x.shape[0]] if x.shape else None


def update_slice(xs, numbers, ns, bodies):
    x, y = xs[:2]
    if not x.shape:
        return None
    key = draw_slices(x.shape, ns)
    part = x[key]
    value = td.astype(y, x.dtype) if y.shape == part.shape else shaped(y, part)
    return bounded(getattr(x.at[key], METHODS[ns[7] % 6])(value if ns[6] % 4 else ns[5] % 5))


def update_positions(xs, numbers, ns, bodies):
    x, y = xs[:2]
    if not x.shape:
        return None
    axis = ns[0] % len(x.shape)
    key = [slice(None)] * len(x.shape)
    key[axis] = positions(numbers, x.shape[axis], ns[1])
    if ns[2] % 4 == 0 and axis + 1 < len(x.shape):
        key[axis + 1] = positions(numbers + 1, x.shape[axis + 1], ns[4])
    part = x[tuple(key)]
    value = shaped(y, part) if ns[6] % 4 else ns[5] % 5
    return bounded(getattr(x.at[tuple(key)], METHODS[ns[7] % 6])(value))


def update_one(xs, numbers, ns, bodies):
    x, y = xs[:2]
    if not x.shape:
        return None
    at = numbers[ns[0] % numbers.shape[0]] % x.shape[0]
    return bounded(getattr(x.at[at], METHODS[ns[7] % 6])(shaped(y, x[0]) if ns[6] % 3 else ns[5] % 5))


def assign(xs, numbers, ns, bodies):
    """Assignments to slices and views of a copy."""
    x = xs[0].clone()
    if not x.shape:
        return None
    key = draw_slices(x.shape, ns)
    x[key] = shaped(xs[1], x[key])
    x[0] += 1
    if ns[0] % 2:
        x[numbers[0] % x.shape[0]] = ns[1] % 5
    return x


def body_of(steps, numbers, like, captured):
    def body(index, value):
        values = [captured, value]
        shifted = numbers if index is None else numbers + index
        run(steps, values, shifted)
        return bounded(shaped(values[-1], like))

    return body


def fori(xs, numbers, ns, bodies):
    x = xs[0]
    body = body_of(bodies[0], numbers, x, xs[1])
    return td.fori_loop(ns[0] % 2, 2 + ns[1] % 5, body, x)


def rows(xs, numbers, ns, bodies):
    """A recurrence over rows with a traced index."""
    x = xs[0]
    if not x.shape or x.shape[0] < 2:
        return None
    inner = body_of(bodies[0], numbers, x[0], xs[1])
    method = METHODS[ns[0] % 6]
    return td.fori_loop(
        1, x.shape[0], lambda k, v: bounded(getattr(v.at[k], method)(inner(k, v[k - 1] + v[k]))), x
    )


def nested(xs, numbers, ns, bodies):
    x = xs[0]
    if len(x.shape) < 2:
        return None
    inner = body_of(bodies[0], numbers, x[0, 0], xs[1])

    def cell(i, j, v):
        return v.at[i, j].set(inner(j, v[i - 1, j] + v[i, j - 1]))

    m, n = x.shape[:2]
    return td.fori_loop(
        1, min(m, 4), lambda i, v: td.fori_loop(1, min(n, 4), lambda j, v: cell(i, j, v), v), x
    )


def scan(xs, numbers, ns, bodies):
    x, items = xs[:2]
    if not items.shape:
        return None
    first = body_of(bodies[0], numbers, x, xs[2])
    second = body_of(bodies[1], numbers, x, x)

    def step(carry, item):
        carry = first(None, carry + shaped(item, carry))
        return carry, second(None, carry)

    last, found = td.scan(step, x, items, reverse=bool(ns[0] % 2))
    return last if ns[1] % 2 else found


def while_(xs, numbers, ns, bodies):
    x = xs[0]
    body = body_of(bodies[0], numbers, x, xs[1])
    limit = 2 + ns[0] % 3
    return (
        td.fori_loop(0, limit, body, x)
        if x.spec.size > 64
        else td.scan(lambda state, _: ((state[0] + 1, body(state[0], state[1])), None), (0, x), length=limit)[
            0
        ][1]
    )


def branch(xs, numbers, ns, bodies):
    x = xs[0]
    one, other = (body_of(steps, numbers, x, xs[1]) for steps in bodies)
    where = td.sum(xs[1]) > ns[0] if ns[1] % 2 else numbers[0] % 2 == 0
    return td.cond(where, lambda v: one(None, v), lambda v: other(None, v), x)


def mapped(xs, numbers, ns, bodies):
    x = xs[0]
    if not x.shape or x.shape[0] > 9:
        return None
    inner = body_of(bodies[0], numbers, x[0], xs[1])
    at = positions(td.arange(x.shape[0], device=x.device), x.shape[0], ns[0])
    return td.vmap(lambda row, k: inner(k, row))(x, at)


STEPS = {
    "slice": take_slice, "unary": unary, "binary": binary, "flip": flip, "roll": roll, "pad": pad, "concat": concat,
    "stack": stack, "permute": permute, "reshape": reshape, "repeat": repeat, "triangle": triangle,
    "diagonal": diagonal, "reduction": reduction, "cumulative": cumulative, "take": take,
    "take_computed": take_computed, "take_along": take_along, "one": one_position, "update_slice": update_slice,
    "update_positions": update_positions, "update_one": update_one, "assign": assign, "fori": fori, "rows": rows,
    "nested": nested, "scan": scan, "while": while_, "branch": branch, "mapped": mapped,
}  # fmt: skip
NESTED = {"fori": 1, "rows": 1, "nested": 1, "scan": 2, "while": 1, "branch": 2, "mapped": 1}
WEIGHTS = {
    "binary": 2.0,
    "update_slice": 2.0,
    "update_positions": 2.0,
    "take": 2.0,
    "slice": 2.0,
    "fori": 0.7,
}


def drawn(seed, count=1):
    """Programs and their arrays, others for each seed."""
    return [Drawer([seed, n]).program() for n in range(count)]


def difference(got, want):
    """What differs between two trees of results: an empty string if they are equal bit for bit."""
    for one, other in zip(leaves(got), leaves(want), strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{one.dtype}{one.shape} and not {other.dtype}{other.shape}"
        if not np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
            close = np.allclose(one, other, 1e-5, 1e-5, equal_nan=True)
            return f"{'rounding' if close else 'values'}: {one.ravel()[:8]} and not {other.ravel()[:8]}"
        if one.dtype.kind == "f" and not np.array_equal(np.signbit(one), np.signbit(other)):
            return "signs of zeros"
    return ""


def leaves(tree):
    return [leaf.to("cpu").numpy() for leaf in td.pytree.flatten(tree)[0]]
