"""What ``tandem overhead`` measures, one benchmark for each contender: ``pytest benchmarks/test_overhead.py``."""

import pytest
from tandem.overhead.compare import call, warm
from tandem.overhead.peers import contenders, installed
from tandem.overhead.workloads import LENGTHS, SIZES, chain, chain_arrays

CONTENDERS = contenders(installed())


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda one: one.name)
@pytest.mark.parametrize("elements", SIZES)
@pytest.mark.parametrize("length", LENGTHS)
def test_chain(benchmark, length, elements, contender):
    benchmark.group = f"chain of {length} on {elements}"
    arrays = tuple(map(contender.array, chain_arrays(elements)))
    function = contender.prepare(chain(length))
    warm(call(function, arrays, contender.finish))
    if contender.finish:
        benchmark(lambda: function(*arrays).block_until_ready())
    else:
        benchmark(function, *arrays)
