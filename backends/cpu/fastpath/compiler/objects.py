"""Code that is built once per machine and version, and that cold calls need too: products and folds.

Its cache key is a digest of its sources, so a process that finds it in the disk cache writes no IR.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping

from ... import codegen, target
from . import engine


def build_once(
    name: str, make_ir: Callable[[], str], exports: Iterable[str], imports: Mapping[str, int] | None = None
) -> engine.Code | None:
    """Return the code of a module called ``name``; None, with a warning, if it cannot be built.

    Args:
        name: identifies the module, together with the digest of the sources of emitted code.
        make_ir: returns the module's text; called only when the code is not in the disk cache.
        exports: functions whose addresses are wanted.
        imports: addresses of symbols that are not found by name in the process.
    """
    try:
        sources = engine.source_digest(os.path.dirname(str(codegen.__file__)), str(target.__file__))
        key = engine.fingerprint(name, sources)
        return engine.build(key, make_ir, exports, imports)
    except (RuntimeError, OSError, ImportError) as error:
        text = f"{name}: NumPy's code is used, whose last bits may differ from compiled code's: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return None
