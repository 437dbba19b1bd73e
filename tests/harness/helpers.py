"""Checks that tests of every package share."""

import gc
import sys


def smallest_block_growth(work, rounds=4):
    """Return the smallest growth of Python's allocated blocks over several calls of ``work``.

    A leak grows in every round. Threads that compile what earlier tests made hot allocate too, but not in every
    round.
    """
    growths = []
    for _ in range(rounds):
        gc.collect()
        before = sys.getallocatedblocks()
        work()
        gc.collect()
        growths.append(sys.getallocatedblocks() - before)
    return min(growths)
