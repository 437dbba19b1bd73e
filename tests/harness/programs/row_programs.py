"""Random loops over the rows of a batch: each step computes vectors, numbers and integers of a row."""

from typing import Any, NamedTuple

import tandem as td

UNARY = ("neg", "abs", "tanh", "square", "floor", "sign", "exp2")
BINARY = ("add", "sub", "mul", "maximum", "minimum")


class Operands(NamedTuple):
    """What an operator of a program may read, and a number that chooses among its forms."""

    v: Any
    w: Any
    a: Any
    b: Any
    j: Any
    row: Any
    form: int


def reduce(o):
    return ((o.v.sum(), o.v.max(), o.v.min(), (o.v * o.w).sum(), o.v @ o.w))[o.form % 5]


def move(o):
    shifted = td.concat([o.v[1:], o.v[:1]])
    return (o.v[::-1], td.roll(o.v, 1), shifted, td.stack([o.a, o.b, o.v[0], o.w[3]]))[o.form % 4]


def write(o):
    return o.v.at[o.j].set(o.a) if o.form % 2 else o.v.at[o.j].add(o.b)


def read_table(o):
    return (td.arange(12).reshape(3, 4).astype(o.v.dtype) * 0.25)[o.j % 3] + o.v


VECTORS = (
    lambda o: getattr(td, UNARY[o.form % len(UNARY)])(o.v),
    lambda o: getattr(td, BINARY[o.form % len(BINARY)])(o.v, o.w),
    lambda o: o.v * o.a + o.b,
    lambda o: td.where(o.v > o.a, o.v, o.w),
    lambda o: o.v.reshape(2, 2).T.reshape(4) + (o.v[:, None] * o.w).max(1),
    lambda o: td.concat([o.v.reshape(2, 2) @ o.w[:2], o.w[2:]]),
    move,
    write,
    read_table,
)
NUMBERS = (
    lambda o: getattr(td, BINARY[o.form % len(BINARY)])(o.a, o.b),
    lambda o: o.v[o.j],
    lambda o: td.cond(o.a > o.b, lambda p, q: p * 0.5 + q, lambda p, q: q - p, o.a, o.b),
    lambda o: td.fori_loop(0, 3, lambda n, s: s * 0.5 + o.v[n] * o.w[(n + 1) % 4], o.a),
    lambda o: o.row[o.j * 2] + (o.row > o.a).sum().astype(o.row.dtype),
    reduce,
)
INTEGERS = (lambda o: (td.argmax(o.v), td.argmin(o.v), o.j + 1, (o.j * 3 + 1) % 4)[o.form % 4] % 4,)


class RowProgram:
    """A loop whose carry is a vector, a number and an integer of each row.

    Args:
        random: a NumPy generator, which chooses the operators.
        size: the number of operators of a step.
    """

    def __init__(self, random, size):
        operators = [(kind, f) for kind, fs in enumerate((VECTORS, NUMBERS, INTEGERS)) for f in fs]
        self.choices = [
            (*operators[int(random.integers(len(operators)))], *map(int, random.integers(0, 1 << 16, 6)))
            for _ in range(size)
        ]
        self.kind = int(random.integers(3))

    def __call__(self, row, ints):
        carry = row[:4] * 0.5, row[0], ints[0] % 4
        if self.kind == 0:
            return td.fori_loop(0, 5, lambda i, c: self.step(c, row, ints, i, row[i])[0], carry)

        def step(c, item):
            return self.step(c, row, ints, item[1] % 8, item[0])

        return td.scan(step, carry, (row, ints), reverse=self.kind == 2)

    def step(self, carry, row, ints, i, x):
        pools = [carry[0], row[4:]], [carry[1], x], [carry[2], i % 4, ints[1] % 4]
        for kind, operator, *picks, form in self.choices:
            vectors, numbers, integers = pools
            v, w = (vectors[n % len(vectors)] for n in picks[:2])
            a, b = (numbers[n % len(numbers)] for n in picks[2:4])
            operands = Operands(v, w, a, b, integers[picks[4] % len(integers)], row, form)
            pools[kind].append(operator(operands))
        vector, number, integer = (pool[-1] for pool in pools)
        bounded = (td.clip(td.nan_to_num(one), -8.0, 8.0) for one in (vector, number))
        return (*bounded, integer % 4), (vector, number, integer)
