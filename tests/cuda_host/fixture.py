"""The fixture that lets a test run on the CUDA backend's test double."""

import os

import pytest
import tandem as td
from tandem.backends.cuda import load, toolkit

from .host import host_library, host_toolkit, missing

# Without a cache each block is the driver's, and what is freed is poisoned at once; with one memory is used again.
CACHING = os.environ.get("TANDEM_HOST_CACHING") == "1"


@pytest.fixture
def cuda():
    """The double's library, in force; at the end no kernel may have written outside of its memory."""
    why = missing()
    if why:
        pytest.skip(why)
    library = host_library()
    library.host_faults()
    library.host_lazy(1)
    with toolkit.use(host_toolkit(library)), td.config.override(cuda_caching=CACHING):
        yield library
        load.unload()
        library.host_limit(1 << 30)
        library.host_fail_allocation(-1)
    assert not library.host_faults(), library.host_fault_text().decode()
