"""Random programs of 5 to 60 operators: eager, interpreted and compiled results are the same."""

import numpy as np
from closeness import close_enough
from hypothesis import given, settings
from lowering_harness import eager, graph_of
from lowering_harness import given as parameters
from random_programs import COMMON, inputs, programs
from tandem import config
from tandem.lowering import lower


def check(program, arrays):
    wanted = eager(program, *arrays)
    graph = graph_of(program, *arrays)
    for native in (False, True):
        with config.override(native=native, verify=True):
            found = lower(graph).compile().run(parameters(graph, list(arrays)))
        close_enough(found, wanted)


@settings(max_examples=60, **COMMON)
@given(programs(), inputs())
def test_programs_agree(program, arrays):
    with np.errstate(all="ignore"):
        check(program, arrays)
