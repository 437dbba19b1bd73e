"""Mistakes that type checkers report, one per line; the comment is mypy's error code."""

import tandem as td

x = td.ones((2, 3))

td.zeros("a", 3, 4, 5)  # call-overload
td.zeros(2, dtype=3)  # call-overload
td.atan2(x)  # call-arg
td.sum(x, axis="rows")  # arg-type
td.conv2d(x, x, stride="same")  # arg-type
td.no_such_function(x)  # attr-defined
td.asarray([1.0], copy="yes")  # arg-type
x.reshape(2, "3")  # call-overload
x.sun()  # attr-defined
x.at[0].add(1.0, mod="drop")  # call-arg
x.shape.append(3)  # attr-defined
td.optim.Adam([x], lr="small")  # arg-type
td.optim.SGD([x], 0.1, 0.9, beta=0.5)  # arg-type
x.grad + 1  # operator
x + object()  # operator


@td.jit
def double(value: td.Tensor) -> td.Tensor:
    """A jitted function keeps its signature."""
    return value * 2


double("a")  # arg-type
double(x, x)  # call-arg
double(x).sun()  # attr-defined
td.cond(x.sum() > 0, 1, 2, x)  # arg-type
td.scan(double)  # call-arg
td.random.key("seed")  # arg-type
