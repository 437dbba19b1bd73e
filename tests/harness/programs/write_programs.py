"""Random programs of views and writes that run on NumPy arrays and on tensors."""

import numpy as np
import tandem as td
from hypothesis import strategies as st


class Program:
    """Draws a program over NumPy arrays or tensors: the same calls for both."""

    def __init__(self, draw):
        self.draw = draw
        self.steps = [self.step() for _ in range(draw(st.integers(2, 9)))]

    def step(self):
        kind = self.draw(
            st.sampled_from("index slice transpose reshape ravel row add mul fill setitem fresh copy".split())
        )
        return kind, self.draw(st.integers(0, 99)), self.draw(st.integers(0, 99))

    def run(self, lib, *start):
        values = list(start)
        for kind, which, number in self.steps:
            x = values[which % len(values)]
            made = getattr(self, kind)(lib, x, number)
            if made is not None:
                values.append(made)
        return values

    def index(self, lib, x, number):
        return x[number % x.shape[0] : number % x.shape[0] + 1] if x.ndim and x.shape[0] else None

    def slice(self, lib, x, number):
        return x[(slice(None, None, -1 if number % 2 else 2),)] if x.ndim else x[None]

    def transpose(self, lib, x, number):
        axes = tuple(np.roll(range(x.ndim), number))
        return x.permute([int(a) for a in axes]) if lib is td else x.transpose(axes)

    def reshape(self, lib, x, number):
        size = int(np.prod(x.shape, dtype=int))
        shape = [s for s in ((size,), (1, size), (2, size // 2), (size // 2, 2)) if np.prod(s) == size]
        return x.reshape(shape[number % len(shape)])

    def ravel(self, lib, x, number):
        return x.reshape((-1,)) if x.ndim else None

    def row(self, lib, x, number):
        return x[number % x.shape[0]] if x.ndim > 1 and x.shape[0] else None

    def add(self, lib, x, number):
        x += number

    def mul(self, lib, x, number):
        x *= x

    def fill(self, lib, x, number):
        x[...] = number

    def setitem(self, lib, x, number):
        if x.ndim and x.shape[0]:
            x[number % x.shape[0]] = number

    def fresh(self, lib, x, number):
        return x + 1

    def copy(self, lib, x, number):
        return x.clone() if lib is td else x.copy()
