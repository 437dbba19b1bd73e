"""A tensor whose private slots were replaced or deleted is refused; the process lives."""

import numpy as np
import pytest
import tandem as td
from tandem import config

CALLS = [
    lambda x: x.add_(1.0),
    lambda x: td.reshape(x, (2, 3)),
    lambda x: x[1:3],
    lambda x: x + x,
    lambda x: x.sum(),
    lambda x: x.__setitem__(0, 1.0),
    lambda x: x @ x,
    lambda x: x.clone(),
    lambda x: td.concat([x, x]),
]
JUNK = [5, "x", object(), None]


def fresh():
    return td.asarray(np.arange(6.0))


@pytest.mark.parametrize("slot", ["_storage", "_meta", "_array", "_keys"])
def test_replaced_and_deleted_slots(slot):
    with config.override(hot_calls=1):
        for call in CALLS:
            for _ in range(4):
                call(fresh())
            for junk in [*JUNK, "deleted"]:
                x = fresh()
                if junk == "deleted":
                    delattr(x, slot)
                else:
                    setattr(x, slot, junk)
                try:
                    call(x)
                except Exception as fault:
                    assert str(fault)


@pytest.mark.parametrize("junk", [5, "x"])
def test_foreign_storage_is_an_error(junk):
    with config.override(hot_calls=1):
        for _ in range(4):
            fresh().add_(1.0)
        x = fresh()
        x._storage = junk
        with pytest.raises((TypeError, AttributeError)):
            x.add_(1.0)
    assert fresh().add_(1.0).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
