"""Guards of the dispatch state, each with a function that says whether it is on."""

import contextlib

import numpy as np
import tandem as td
from tandem.registry.dispatch import state as states

X = td.asarray(np.ones(3, np.float32), requires_grad=True)


PLAIN = td.asarray(np.ones((2, 2), np.float32))


def records():
    return (X * 2.0).requires_grad


def keys():
    return states.current().include, states.current().exclude


class Note(td.DispatchMode):
    def __init__(self, **options):
        super().__init__(**options)
        self.seen = []

    def __tandem_dispatch__(self, op, types, args, kwargs):
        self.seen.append(op.schema.name)
        return op(*args, **kwargs)


NOTE, NOTE_EXP = Note(), Note(ops=[td.exp])


def is_noted(mode):
    before = len(mode.seen)
    td.exp(PLAIN)
    return len(mode.seen) > before


with td.no_grad():
    SNAPSHOT = td.dispatch_state()


GUARDS = {
    "no_grad": (td.no_grad, lambda: not records()),
    "exclude_keys": (lambda: td.exclude_keys("Autograd"), lambda: not records()),
    "include_keys": (lambda: td.include_keys("Profiler"), lambda: keys()[0] != 0),
    "force_keys": (lambda: td.force_keys(exclude=["Autograd"]), lambda: not records()),
    "snapshot": (lambda: SNAPSHOT, lambda: not records()),
    "autocast": (lambda: td.autocast("cpu"), lambda: (PLAIN @ PLAIN).dtype is td.bfloat16),
    "mode": (lambda: NOTE, lambda: is_noted(NOTE)),
    "mode with ops": (lambda: NOTE_EXP, lambda: is_noted(NOTE_EXP)),
}


INSIDE_OF = {"enable_grad": td.no_grad, "no_dispatch": lambda: NOTE}


REVERSED = {
    "enable_grad": (td.enable_grad, records),
    "no_dispatch": (td.no_dispatch, lambda: not is_noted(NOTE)),
}


@contextlib.contextmanager
def around(name):
    """A guard, and a function that says whether it is on; around it it is off."""
    if name in REVERSED:
        with INSIDE_OF[name]():
            yield REVERSED[name]
    else:
        yield GUARDS[name]


@contextlib.contextmanager
def unchanged_state():
    """Check that a block leaves the dispatch state as it was."""
    before = states.current()
    yield
    assert states.current() is before or keys() == (before.include, before.exclude)
