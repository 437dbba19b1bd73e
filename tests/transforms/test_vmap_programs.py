"""Random programs under ``vmap`` equal a loop over the examples: eager, jitted and nested."""

import numpy as np
import pytest
import tandem as td
from closeness import close_enough
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import COMMON, PYTHON, inputs, programs
from tandem.eager.tensor.tensor import wrap

SIZE = 3


@st.composite
def batches(draw):
    """(arrays, in_axes): inputs of a program, some with a batch axis somewhere; integers and bools stay small."""
    arrays, axes = [], []
    for value in draw(inputs()):
        axis = None
        if not isinstance(value, PYTHON) and draw(st.booleans()):
            axis = draw(st.integers(0, value.ndim))
            value = np.stack([np.roll(value, shift) for shift in range(SIZE)], axis)
        arrays.append(value)
        axes.append(axis)
    if all(axis is None for axis in axes):
        at = next(i for i, value in enumerate(arrays) if not isinstance(value, PYTHON))
        arrays[at], axes[at] = np.stack([arrays[at]] * SIZE, 0), 0
    return arrays, tuple(axes)


def tensors(arrays):
    return [value if isinstance(value, PYTHON) else wrap(value) for value in arrays]


def loop(program, arrays, axes):
    examples = [
        [a if axis is None else np.array(np.take(a, e, axis)) for a, axis in zip(arrays, axes, strict=True)]
        for e in range(SIZE)
    ]
    results = [program(*tensors(example)) for example in examples]
    return [np.stack([r[i]._array for r in results]) for i in range(len(results[0]))]


def agree(found, wanted):
    close_enough([x._array for x in found], wanted)


@settings(max_examples=80, **COMMON)
@given(programs(30), batches())
def test_vmap_of_programs(program, case):
    arrays, axes = case
    with np.errstate(all="ignore"):
        wanted = loop(program, arrays, axes)
        agree(td.vmap(program, axes)(*tensors(arrays)), wanted)


@settings(max_examples=15, **COMMON)
@given(programs(20), batches())
def test_vmap_of_programs_under_jit(program, case):
    arrays, axes = case
    with np.errstate(all="ignore"):
        wanted = loop(program, arrays, axes)
        numbers = [a for a in arrays if isinstance(a, PYTHON)]
        data = [a for a in arrays if not isinstance(a, PYTHON)]
        mapped = td.vmap(lambda *xs: program(*xs, *numbers), axes[: len(data)])
        agree(td.jit(mapped)(*tensors(data)), wanted)


@settings(max_examples=25, **COMMON)
@given(programs(20), batches())
def test_nested_vmap_of_programs(program, case):
    """An outer batch of batches, of which only the first argument differs."""
    arrays, axes = case
    first = next(i for i, value in enumerate(arrays) if not isinstance(value, PYTHON))
    with np.errstate(all="ignore"):
        others = [arrays[first], arrays[first][..., ::-1]]
        wanted = [loop(program, [*arrays[:first], o, *arrays[first + 1 :]], axes) for o in others]
        both = [*arrays[:first], np.stack(others, -1), *arrays[first + 1 :]]
        outer = tuple(-1 if at == first else None for at in range(len(arrays)))
        found = td.vmap(td.vmap(program, axes), outer)(*tensors(both))
        agree(found, [np.stack(pair) for pair in zip(*wanted, strict=True)])


@pytest.mark.full
@settings(max_examples=1000, **COMMON)
@given(programs(60), batches())
def test_vmap_of_many_programs(program, case):
    arrays, axes = case
    with np.errstate(all="ignore"):
        agree(td.vmap(program, axes)(*tensors(arrays)), loop(program, arrays, axes))
