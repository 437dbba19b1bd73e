"""Random programs of movement operators (slices, flips, rolls, pads, concatenations, transposes) and arithmetic."""

import numpy as np
import tandem as td


def draw_program(seed):
    """A function of two matrices of one shape, drawn by a seed; each step reads the values of earlier steps."""
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(1, 9, 2))
    steps = [_draw_step(rng) for _ in range(int(rng.integers(2, 8)))]
    dtype = rng.choice(["f4", "f8", "i4", "f2", "c8"], p=[0.5, 0.2, 0.1, 0.1, 0.1])
    arrays = [
        (rng.normal(size=(rows, columns)) * 4 + (1j if dtype == "c8" else 0)).astype(dtype) for _ in range(2)
    ]

    def program(x, y):
        values = [x, y]
        for step in steps:
            values.append(step(values))
        return values[-1] if len(steps) % 2 else (values[-1], values[-2])

    return program, arrays


def _draw_step(rng):
    pick = [int(n) for n in rng.integers(0, 100, 4)]
    kind = rng.choice(["move"] * 5 + ["join"] * 2 + ["arithmetic"] * 4 + ["set"])
    return lambda values: _KINDS[kind](values, pick)


def _operand(values, number):
    """A value, more often a late one."""
    return values[max(len(values) - 1 - number % 3, 0)]


def _move(values, pick):
    x = _operand(values, pick[0])
    axis = pick[1] % 2
    size = x.shape[axis]
    amount = pick[2] % 5 - 2
    moves = [
        lambda: td.roll(x, amount, axis),
        lambda: td.flip(x, (axis,)),
        lambda: x.T,
        lambda: td.pad(x, ((pick[2] % 3, pick[3] % 3), (pick[3] % 2, 1))),
        lambda: x[:: 1 + pick[2] % 3] if axis == 0 else x[:, :: 1 + pick[2] % 3],
        lambda: x[min(1, size - 1) :] if axis == 0 else x[:, min(1, size - 1) :],
        lambda: td.reshape(x, (-1, x.shape[0])),
        lambda: td.broadcast_to(x[:1], x.shape),
    ]
    return moves[pick[0] % len(moves)]()


def _join(values, pick):
    x = _operand(values, pick[0])
    other = _arithmetic([*values, x], pick)
    axis = pick[1] % 2
    parts = [part for part in (x, other) if part.shape[1 - axis] == x.shape[1 - axis]]
    joined = td.concat([*parts, x * 2], axis=axis)
    return joined if joined.shape[axis] < 40 else joined[:7, :7]


def _arithmetic(values, pick):
    x, y = _operand(values, pick[0]), _operand(values, pick[1])
    rows, columns = (min(a, b) for a, b in zip(x.shape, y.shape))
    x, y = x[:rows, :columns], y[y.shape[0] - rows :, y.shape[1] - columns :]
    calls = [
        lambda: x + y,
        lambda: x * y - x,
        lambda: td.exp(-td.abs(x)).astype(x.dtype) + y,
        lambda: (x - y)[::-1],
    ]
    return calls[pick[2] % len(calls)]()


def _set(values, pick):
    x = _operand(values, pick[0])
    part = x[pick[2] % 2 :: 2]
    return x.at[pick[2] % 2 :: 2].set(part[::-1] + 1)


_KINDS = {"move": _move, "join": _join, "arithmetic": _arithmetic, "set": _set}
