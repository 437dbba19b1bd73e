"""The cases of ``tandem overhead`` as pytest benchmarks: ``pytest benchmarks/test_overhead.py``."""

import pytest
from tandem.cli.overhead.compare import make_call_case, warm_up
from tandem.cli.overhead.peers import contenders, list_installed
from tandem.cli.overhead.workloads import LENGTHS, SIZES, chain, chain_arrays

CONTENDERS = contenders(list_installed())


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda one: one.name)
@pytest.mark.parametrize("elements", SIZES)
@pytest.mark.parametrize("length", LENGTHS)
def test_chain(benchmark, length, elements, contender):
    benchmark.group = f"chain of {length} on {elements}"
    arrays = tuple(map(contender.array, chain_arrays(elements)))
    function = contender.prepare(chain(length))
    warm_up(make_call_case(function, arrays, contender.finish))
    if contender.finish:
        benchmark(lambda: function(*arrays).block_until_ready())
    else:
        benchmark(function, *arrays)
