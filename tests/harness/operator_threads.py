"""A program: eight threads call operators of the table that become hot meanwhile; all must get the same bits.

They call them eagerly, or also jitted, batched, and with gradients, eager and jitted.

Usage: operator_threads.py SEED [eager|transformed]
"""

import random
import sys
import threading
import warnings

import numpy as np
import optable
import tandem as td
from tandem import config, errors
from tandem.registry.function import functions

OPERATORS, ROUNDS, THREADS = 8, 8, 8


def draw_calls(seed):
    """Calls of some operators: (operator, arguments, keywords)."""
    chosen, table = random.Random(seed), optable.table()
    calls = []
    for name in chosen.sample(sorted(table), OPERATORS):
        op = table[name]
        for dtype in chosen.sample(list(op.decl.dtypes), min(2, len(op.decl.dtypes))):
            samples = list(optable.samples_of(op, dtype))
            for sample in chosen.sample(samples, min(2, len(samples))):
                calls.append((op, *optable.arrays_of(sample, dtype, optable.generator(op, dtype))))
    return calls


def bits_of(result):
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [np.asarray(x.numpy()).tobytes() if hasattr(x, "numpy") else repr(x) for x in results]


def find_gradients(function, tensors):
    """The gradients of the sum of all real results of a function."""
    is_real = [x.dtype.is_inexact and x.dtype.kind != "c" for x in tensors]
    given = [x.detach().requires_grad_() if real else x for x, real in zip(tensors, is_real)]
    result = function(*given)
    results = result if isinstance(result, (tuple, list)) else (result,)
    recorded = [x.sum() for x in results if isinstance(x, td.Tensor) and x.requires_grad]
    if recorded:
        sum(recorded).backward()
    return [x.grad for x, real in zip(given, is_real) if real and x.grad is not None]


def eager_call(op, args, kwargs):
    def run():
        tensors, options = optable.to_tensors((args, kwargs))
        return functions[op.name](*tensors, **options)

    return run


def transformed_calls(op, args, kwargs):
    """Functions that run the same call under transforms."""
    function, tensors = optable.as_function(op, *optable.to_tensors((args, kwargs)))
    jitted = td.jit(function)
    yield lambda: jitted(*tensors)
    yield lambda: td.vmap(jitted)(*[td.stack([x, x]) for x in tensors])
    yield lambda: find_gradients(function, tensors)
    yield lambda: find_gradients(jitted, tensors)


def run_call(call):
    """The bits of the results of a call, or the name of its error."""
    try:
        return bits_of(call())
    except (errors.TandemError, FloatingPointError) as error:
        return type(error).__name__


def main(seed, is_transformed=False):
    """Run the program; returns the names of the operators whose results differed, and exceptions."""
    calls, results, faults, barrier = [], {}, [], threading.Barrier(THREADS)
    for op, args, kwargs in draw_calls(seed)[:: 4 if is_transformed else 1]:
        made = transformed_calls(op, args, kwargs) if is_transformed else [eager_call(op, args, kwargs)]
        calls += [(op.name, call) for call in made]

    def run():
        try:
            barrier.wait()
            for _ in range(ROUNDS):
                for number, (name, call) in enumerate(calls):
                    bits = run_call(call)
                    if results.setdefault(number, bits) != bits:
                        faults.append(name)
        except BaseException as fault:
            faults.append(repr(fault))

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    warnings.simplefilter("ignore")  # NumPy's, of invalid values
    with config.override(hot_calls=2, hot_composites=8, specializations=3):
        print(main(int(sys.argv[1]), "transformed" in sys.argv))
