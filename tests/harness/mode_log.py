"""A dispatch mode that lists calls."""

import tandem as td
from tandem.eager.layers import dispatch_mode as layer
from tandem.operators.declare.declaration import declared_operators


class Log(td.DispatchMode):
    """Notes the names of the operators called."""

    def __init__(self, **options):
        super().__init__(**options)
        self.names = []

    def __tandem_dispatch__(self, op, types, args, kwargs):
        self.names.append(op.schema.name)
        return op(*args, **kwargs)


def check_no_mode():
    """Check that no mode is open, and that no operator has been left marked for one."""
    assert not layer.active() and not layer.watching()
    assert not any(op.extra_keys for op in declared_operators())
