"""Loops over a range of integers, as they are being written."""

from __future__ import annotations


def is_one_iteration(start: str, stop: str, step: str) -> bool:
    """Return whether a loop's bounds are constants between which there is one step."""
    if not (start.isdecimal() and stop.isdecimal() and step.isdecimal()):
        return False
    return int(start) < int(stop) <= int(start) + int(step)


class Loop:
    """A loop being written: its index, the values carried around it, and (set before its end) their next values."""

    def __init__(self, index: str, carried: list[str]):
        self.index = index
        self.carried = carried
        self.next = list(carried)
