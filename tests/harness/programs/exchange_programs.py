"""Random programs that read parts of an array, write others, and use what they read before: exchanges and the like.

Elements are small integers and halves of them, so that results are exact whatever the order of the operations.
"""

import numpy as np
import tandem as td


class Program:
    """A program over an array and an integer, drawn from a seed: called once, in a ``fori_loop`` or in a ``scan``."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.shape = tuple(int(n) for n in self.rng.integers(1, 6, self.rng.integers(1, 4)))
        self.array = self.rng.integers(-9, 9, self.shape).astype(float)
        self.steps = [self._draw_step() for _ in range(self.rng.integers(2, 8))]
        self.form = str(self.rng.choice(["call", "fori_loop", "scan"]))

    def __call__(self, x, k):
        if self.form == "call":
            return self._run(k, x)
        if self.form == "fori_loop":
            return td.fori_loop(0, 5, self._run, x)
        return td.scan(lambda c, i: (self._run(i, c), c.sum()), x, td.arange(4, device=x.device) + k)

    def _draw_step(self):
        kind = "read" if self.rng.random() < 0.4 else "write"
        numbers = [int(n) for n in self.rng.integers(8, size=2)]
        return kind, self._draw_key(), self._draw_key(), *numbers

    def _draw_key(self):
        rng, key = self.rng, []
        for size in self.shape:
            number = int(rng.integers(20))
            choice = rng.integers(6)
            if choice < 2:
                key.append(number % size)
            elif choice < 4:
                key.append(("counted", number, size))
            elif choice == 4:
                key.append(slice(None))
            else:
                key.append(
                    (slice(number % size, None, number % 2 + 1), slice(None, None, -1))[number % 3 == 0]
                )
            if rng.random() < 0.2:
                break
        return key

    def _run(self, k, x):
        saved = []
        for kind, key, other, n, m in self.steps:
            if kind == "read":
                saved.append(x[_positions(key, k)] * (n % 2 + 1))
                continue
            at, part = x.at[_positions(key, k)], x[_positions(key, k)]
            value = saved[n % len(saved)] if saved and n < 5 else x[_positions(other, k)]
            if value.shape != part.shape:
                value = value.reshape(-1)[0] if m < 6 else value.sum()
            x = (at.set(value) if m % 4 else at.add(value)) % 1000
        for value in saved:
            x = x + (value if value.shape == x.shape else value.sum()) * 0.5
        return td.floor(x) % 997


def _positions(key, k):
    return tuple((k + one[1]) % one[2] if type(one) is tuple else one for one in key)
