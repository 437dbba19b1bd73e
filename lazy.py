"""The one mechanism of lazy imports: of heavy packages, and of the package's own modules.

``import tandem`` loads NumPy and nothing heavier. A module that is needed later is declared where an import statement
would be, and is imported at the first use:

- :class:`Module`: the module itself
- :class:`Functions`: its functions as values, for tables
- :class:`Attribute`: a method or property of a class
- :func:`attach`: public names that other modules define, by a module's ``__getattr__`` (PEP 562)
- :func:`refuse_unknown`: the error for a name that a module lacks
- :func:`loaders`: functions that import the modules of a table
- :func:`module`: import now
- :func:`when_imported`: what another package needs of this one, once that is imported

A name that begins with a dot is that of a module of this package. Names are literals, because a test reads them
(``tests/harness/lazy_imports.py``): it checks that the modules exist, and knows each import of a higher part.

>>> import tandem.lazy
>>> tandem.lazy.is_installed("numpy"), tandem.lazy.is_installed("no_such_package")
(True, False)
"""

import gc
import importlib
import sys
from _thread import get_ident
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from types import ModuleType
from typing import Any, NoReturn

from . import background, locks
from .errors import UnknownNameError

_gate = locks.make_lock("imports")  # held for a moment only, by threads that begin an import, and by a fork
_import_lock = locks.make_lock("lazy imports")
_imported: dict[str, ModuleType] = {}  # complete modules by the names given to `module`
_importing: list[int] = []  # the threads that import by themselves, once for each import


def module(name: str) -> ModuleType:
    """The module called ``name``, imported at the first call; raises ImportError when it is missing.

    The import is not interrupted by signals, so that what it declares is declared as a whole, and a fork waits for it.
    Other threads wait until the module is complete; the thread that imports it gets it as it is.
    """
    imported = _imported.get(name)
    if imported is None:
        imported = _find_or_import(__package__ + name if name.startswith(".") else name)
        if not is_loading(imported):
            _imported[name] = imported
    return imported


def _find_or_import(full_name: str) -> ModuleType:
    """Import a module without garbage collection: what an import creates stays alive, and would be traversed often."""
    known = sys.modules.get(full_name)
    if known is not None and not is_loading(known):
        return known
    collects = gc.isenabled()
    gc.disable()
    try:
        if locks.is_any_owned() or _is_importing():
            return _import_here(full_name)
        return background.run(_import_alone, full_name)
    except BaseException:
        _forget_orphans()
        raise
    finally:
        if collects:
            gc.enable()


def _forget_orphans() -> None:
    """Forget the subpackages of packages whose import has failed, so that the next import begins with the package.

    Python forgets only the package. It would not import it again before a module of a complete subpackage, and imports
    in another order may be circular. Complete modules stay, since what they declare is declared.
    """
    for name in sorted(sys.modules):
        is_orphan = name.startswith(f"{__package__}.") and name.rpartition(".")[0] not in sys.modules
        if is_orphan and hasattr(sys.modules.get(name), "__path__"):
            sys.modules.pop(name, None)


def _import_alone(name: str) -> ModuleType:
    """Import a module while no other thread imports one here: Python raises _DeadlockError if their imports cross."""
    with _import_lock:
        return importlib.import_module(name)


def wait_for_imports() -> None:
    """Wait until other threads have imported what they import here; a thread that imports a module does not wait."""
    if not (locks.is_any_owned() or _is_importing()):
        with _import_lock:
            pass


def _import_here(name: str) -> ModuleType:
    """Import a module in this thread; a fork in another one waits, because the child could never import it."""
    thread = get_ident()
    try:
        with _gate:
            _importing.append(thread)
        return importlib.import_module(name)
    finally:
        if thread in _importing:
            _importing.remove(thread)


def _is_fork_possible() -> bool:
    return all(thread == get_ident() for thread in _importing)


locks.fork_conditions.append(_is_fork_possible)


def is_loading(known: ModuleType) -> bool:
    """Whether a module is still being imported."""
    return bool(getattr(vars(known).get("__spec__"), "_initializing", False))


def _is_importing() -> bool:
    """Whether some module is being imported, perhaps by this thread, for which another thread would wait."""
    if not background.is_idle():
        return False
    modules = [value for value in list(sys.modules.values()) if isinstance(value, ModuleType)]
    return any(map(is_loading, modules))


class Module:
    """A module that is imported when one of its attributes is first used.

    The global variable that refers to this object refers to the imported module from then on: later uses cost what they
    cost after an import statement. Names such as ``__file__`` are those of this object.

    >>> from tandem import lazy
    >>> units = lazy.Module(".units")
    >>> units.format_size(2048)
    '2 KiB'
    """

    def __init__(self, name: str):
        self._name = name
        self._globals = sys._getframe(1).f_globals

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        imported = module(self._name)
        variables = self._globals.copy()
        variable = dict(zip(map(id, variables.values()), variables)).get(id(self))
        if variable is not None:
            self._globals[variable] = imported
        return getattr(imported, name)


MODULE_TYPES = (type(sys), Module)  # of modules, imported or not yet


class Functions:
    """The functions of a module, each a stand-in that imports the module when it is called.

    >>> from tandem import lazy
    >>> format_size = lazy.Functions(".units").format_size
    >>> format_size(2048)
    '2 KiB'
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(module(self._name), name)(*args, **kwargs)

        call.__name__ = call.__qualname__ = name
        return call


class Attribute:
    """Descriptor for a method or property of a class whose module is imported at its first use.

    ``attach`` replaces the descriptor by the method or property.
    """

    def __init__(self, name: str, attach: Callable[[], object]):
        self.name, self.attach = name, attach

    def __get__(self, instance: object, owner: type | None = None) -> object:
        self.attach()
        return getattr(owner if instance is None else instance, self.name)

    def __set__(self, instance: object, value: object) -> None:
        self.attach()
        setattr(instance, self.name, value)


def attach(
    owner: str, attributes: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module, for names that are imported at their first use.

    Args:
        owner: the module's ``__name__``.
        attributes: module -> the names that it defines, separated by spaces.
        modules: name -> module, for names of modules.
    """
    namespace, named_modules = vars(sys.modules[owner]), modules or {}
    sources: dict[str, str] = {}
    for source, names in attributes.items():
        sources.update(dict.fromkeys(names.split(), source))

    def get_attribute(name: str) -> Any:
        result: Any
        if name in named_modules:
            result = module(named_modules[name])
        elif name in sources:
            result = getattr(module(sources[name]), name)
        else:
            raise AttributeError(f"module {owner!r} has no attribute {name!r}")
        namespace[name] = result
        return result

    return get_attribute, lambda: sorted({*namespace, *named_modules, *sources})


_synonyms = Module(".spellings.synonyms")


def refuse_unknown(owner: str, prefix: str) -> None:
    """Give a module a ``__getattr__`` whose error for an unknown name tells the spelling of tandem.

    Args:
        owner: the module's ``__name__``.
        prefix: what users write before its names, such as ``"td.linalg."``.
    """
    namespace = vars(sys.modules[owner])

    def get_attribute(name: str) -> NoReturn:
        def find() -> str:
            return str(_synonyms.suggest(name, namespace.get("__all__", namespace), prefix))

        message = f"module {owner!r} has no attribute {name!r}"
        raise UnknownNameError(message, None if name.startswith("_") else find)

    namespace["__getattr__"] = get_attribute


def loaders(table: Mapping[str, str]) -> Iterator[tuple[Callable[[], ModuleType], str]]:
    """For each module of a table, a function that imports it, and the module's text."""
    return ((partial(module, name), text) for name, text in table.items())


class _ImportWatcher:
    """A finder that runs an action after the import of a module of another package."""

    def __init__(self, name: str, action: Callable[[], object]):
        self.name, self.action = name, action

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find the watched module as Python does, and run the action when it has been executed."""
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = module("importlib.util").find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(loaded: ModuleType) -> None:
                execute(loaded)
                self.action()

            spec.loader.exec_module = execute_and_act
        return spec


def when_imported(name: str, action: Callable[[], object]) -> None:
    """Run an action after the import of a module of another package, or now if it has been imported.

    Args:
        name: the module's full name.
        action: called without arguments.
    """
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _ImportWatcher(name, action))


@cache
def is_installed(name: str) -> bool:
    """Whether a package called ``name`` could be imported; nothing is imported to find out."""
    return module("importlib.util").find_spec(name) is not None


@cache
def version(distribution: str) -> str | None:
    """The installed version of a distribution, or None; nothing is imported to find out."""
    metadata = module("importlib.metadata")  # it brings the email package along
    try:
        return str(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return None
