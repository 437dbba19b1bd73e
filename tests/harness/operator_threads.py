"""A program: eight threads call operators of the table that become hot meanwhile; all must get the same bits.

Usage: operator_threads.py SEED
"""

import random
import sys
import threading
import warnings

import numpy as np
import optable
from tandem import config, errors
from tandem.registry.function import functions

OPERATORS, ROUNDS, THREADS = 10, 12, 8


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


def run_call(op, args, kwargs):
    """The bits of the results of a call, or the name of its error."""
    tensors, options = optable.to_tensors((args, kwargs))
    try:
        result = functions[op.name](*tensors, **options)
    except errors.TandemError as error:
        return type(error).__name__
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [np.asarray(x.numpy()).tobytes() if hasattr(x, "numpy") else repr(x) for x in results]


def main(seed):
    """Run the program; returns the names of the operators whose results differed, and exceptions."""
    calls, results, faults, barrier = draw_calls(seed), {}, [], threading.Barrier(THREADS)

    def run():
        try:
            barrier.wait()
            for _ in range(ROUNDS):
                for number, call in enumerate(calls):
                    bits = run_call(*call)
                    if results.setdefault(number, bits) != bits:
                        faults.append(call[0].name)
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
    with config.override(hot_calls=2, hot_composites=8):
        print(main(int(sys.argv[1])))
