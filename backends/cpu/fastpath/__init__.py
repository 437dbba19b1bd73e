"""The native call path: machine code runs eager calls. `install()` turns it on, `why_off()` says why it is off.

compiler/: the compiler of the native language: lang.py to LLVM IR, engine.py to machine code
runtime/: native functions and structs that all entries share
entries/: native entries, one module for each kind of operator
glue/: Python side: structs that entries read, stubs that install entries, loops of variants
installation.py: gives stubs to what has native entries; compiled graphs alone do not need it, so it is imported later
"""

from .... import lazy

__getattr__, __dir__ = lazy.attach(
    __name__, {".backends.cpu.fastpath.installation": "failures install serves stubs why_off"}
)
