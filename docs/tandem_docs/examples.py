"""Run the examples of docstrings, and keep what they print."""

from __future__ import annotations

import doctest
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tandem as td

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class _Recorder(doctest.DocTestRunner):
    """A runner that keeps the session as a terminal shows it, and raises for an example that fails."""

    def __init__(self) -> None:
        super().__init__(optionflags=FLAGS)
        self.session: list[str] = []

    def report_start(
        self, out: Callable[[str], object], test: doctest.DocTest, example: doctest.Example
    ) -> None:
        first, *rest = example.source.rstrip("\n").split("\n")
        self.session += [f">>> {first}", *(f"... {line}".rstrip() for line in rest)]

    def report_success(
        self, out: Callable[[str], object], test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        # The documented text where it leaves something out on purpose, such as an address
        shown = example.want if "..." in example.want else got
        self.session += shown.rstrip("\n").split("\n") if shown.strip() else []

    def report_failure(
        self, out: Callable[[str], object], test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        raise RuntimeError(
            f"{test.name}: {example.source.strip()} prints {got!r}, documented is {example.want!r}"
        )

    def report_unexpected_exception(
        self,
        out: Callable[[str], object],
        test: doctest.DocTest,
        example: doctest.Example,
        exc_info: tuple[Any, ...],
    ) -> None:
        raise RuntimeError(f"{test.name}: {example.source.strip()} raises {exc_info[1]!r}") from exc_info[1]


def run_example(name: str, example: str, module: str = "") -> str:
    """Run a doctest; return it as a session with what was printed.

    Args:
        name: the documented object, for messages.
        example: the lines of the doctest.
        module: a module whose names the example may use.

    Raises:
        RuntimeError: an example raises, or prints something other than the docstring says.
    """
    source: ModuleType | None = importlib.import_module(module) if module else None
    names = {**(vars(source) if source else {}), "td": td, "__name__": "example"}
    test = doctest.DocTestParser().get_doctest(example, names, name, None, 0)
    runner = _Recorder()
    before = sys.displayhook
    try:
        runner.run(test)
    finally:
        sys.displayhook = before
    return "\n".join(runner.session)
