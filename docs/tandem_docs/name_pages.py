"""Pages of the names of other libraries, and what each is called in tandem.

The names are those of the libraries that are installed where the site is built; NumPy and SciPy always are.
"""

from __future__ import annotations

import importlib.util
import inspect
import warnings
from collections.abc import Iterator
from operator import attrgetter

import tandem as td
from tandem.registry.operator import Operator
from tandem.spellings.synonyms import SYNONYMS

from .inventory import entries
from .operator_page import table

LIBRARIES = {
    "numpy": "numpy",
    "numpy.linalg": "linalg",
    "numpy.fft": "fft",
    "scipy.special": "special",
    "jax.numpy": "jax.numpy",
    "jax.lax": "jax.lax",
    "jax.random": "random",
    "torch": "torch",
    "torch.nn": "nn",
    "torch.nn.functional": "nn.functional",
    "torch.optim": "optim",
    "torch.optim.lr_scheduler": "optim.lr_scheduler",
    "torch.utils.data": "torch.utils.data",
    "torch.distributions": "torch.distributions",
}
"""Module of another library -> the module of tandem that has its names."""


def installed_libraries() -> list[str]:
    """The modules of :data:`LIBRARIES` that can be imported here."""
    return [name for name in LIBRARIES if importlib.util.find_spec(name.partition(".")[0])]


def public_names(library: str) -> list[str]:
    """The public functions and classes of a module."""
    module = importlib.import_module(library)
    result = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in getattr(module, "__all__", None) or dir(module):
            value = None if name.startswith("_") else getattr(module, name, None)
            is_error = inspect.isclass(value) and issubclass(value, (BaseException, Warning))
            if callable(value) and not is_error and not inspect.ismodule(value):
                result.append(name)
    return sorted(result, key=str.lower)


def name_page(library: str) -> str:
    """The text of a page: one row for each name."""
    rows = list(_rows(library))
    count = sum(bool(there) for _, there, _ in rows)
    head = f"# Names of {library}\n\ntandem has {count} of the {len(rows)} public names of {library}."
    return f"{head}\n\n{table((library, 'tandem', 'note'), rows)}\n"


def _rows(library: str) -> Iterator[tuple[str, str, str]]:
    namespace = LIBRARIES[library]
    module = attrgetter(namespace)(td)
    for name in public_names(library):
        if hasattr(module, name):
            yield f"`{name}`", f"`td.{namespace}.{name}`", _page_link(getattr(module, name))
        else:
            yield f"`{name}`", "", f"write `{SYNONYMS[name]}`" if name in SYNONYMS else ""


def _page_link(value: object) -> str:
    operator = getattr(value, "operator", None)
    key = operator.name.removeprefix("td::").partition(".")[0] if isinstance(operator, Operator) else ""
    return f"[`{entries()[key].title}`](../operators/{entries()[key].page}.md)" if key in entries() else ""
