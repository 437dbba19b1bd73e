"""Fixtures that several test files share, and hooks that keep the collection of 20,000 tests fast."""

import collections
import contextlib
import gc
import os
import re
import signal
import sys
import warnings
import zlib

import pytest
import tandem as td
from _pytest.assertion.rewrite import AssertionRewritingHook
from tandem.errors import FallbackWarning
from tandem.registry.dispatch import state

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and Python keeps that: tests of Ctrl-C would never end.
    signal.signal(signal.SIGINT, signal.default_int_handler)

with contextlib.suppress(ImportError):  # the tests of a GPU run without Hypothesis
    from hypothesis import settings

    # The time that an example takes says nothing on a machine that runs other tests.
    settings.register_profile("untimed", settings(), deadline=None)
    settings.load_profile("untimed")

# Without the cache each block comes from the driver and freed memory is poisoned; with it memory is reused.
CACHING = os.environ.get("TANDEM_HOST_CACHING") == "1"


@pytest.fixture
def cuda():
    """The test double of the CUDA driver as the toolkit; fails if a kernel accessed memory out of bounds."""
    from cuda_host.host import host_library, host_toolkit, missing
    from tandem.backends.cuda.runtime import toolkit

    reason = missing()
    if reason:
        pytest.skip(reason)
    library = host_library()
    library.host_faults()
    library.host_lazy(1)
    with toolkit.install(host_toolkit(library)), td.config.override(cuda_caching=CACHING):
        yield library
        library.host_break(0)
        library.host_limit(1 << 30)
        library.host_fail_allocation(-1)
    assert not library.host_faults(), library.host_fault_text().decode()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Unload the CUDA backend after its last test, and fail a test that leaves the dispatch state changed."""
    yield
    load = sys.modules.get("tandem.backends.cuda.load")
    # To register the kernels again takes 0.1 s, so the backend stays loaded if the next test uses it too.
    if "cuda" in getattr(item, "fixturenames", ()) and "cuda" not in getattr(nextitem, "fixturenames", ()):
        load and load.unload()
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()  # what is left stays until the end, and no later collection has to walk it
    left = state.current()
    if left is not state.DEFAULT:
        state.install(state.DEFAULT)
        pytest.fail(f"the dispatch state was left with include={left.include:#x}, exclude={left.exclude:#x}")


@pytest.fixture
def caching(cuda):
    """The test double with the caching allocator: freed memory is reused by the next result."""
    from tandem.backends.cuda.runtime import memory

    with td.config.override(cuda_caching=True):
        memory._forget()
        yield cuda
        gc.collect()
        memory.empty_cache()


@pytest.fixture
def define():
    """A function that defines custom operators, which are removed after the test."""
    operators = []

    def define(schema, fake=None, device_types="cuda"):
        op = td.custom_op(
            f"kernels::op{len(operators)}", lambda *a: None, schema=schema, device_types=device_types
        )
        operators.append(op)
        if fake is not None:
            op.register_fake(fake)
        return op

    yield define
    for op in operators:
        op.remove()


@pytest.fixture
def no_fallback():
    """A sparse operator that falls back to dense raises."""
    from tandem.eager.sparse import kernels

    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        kernels._warned.clear()
        yield


ROTATION = 8  # commits after which each row of a rotating test has run
MANY_ROWS = (12, 48)  # rows of one test from which two, and three, commits share them
NATIVE_OFF = os.environ.get("TANDEM_NATIVE") == "0"


# --- collection -------------------------------------------------------------------------------------------
gc.disable()  # until all tests are collected: the collector would traverse their objects again and again


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Give Hypothesis the seed of the sample; import test modules as they are if no test will run.

    To rewrite their asserts takes two thirds of a collection.
    """
    seed = os.environ.get("TANDEM_TEST_SEED")
    if seed and getattr(config.option, "hypothesis_seed", "") is None:
        config.option.hypothesis_seed = seed
    if config.option.collectonly:
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder) is not AssertionRewritingHook]


def pytest_collection_finish():
    """Take the collected tests out of the garbage collector, so that ``gc.collect()`` in a test is fast."""
    gc.freeze()
    gc.enable()


def pytest_pycollect_makeitem(collector, name, obj):
    """Skip functions marked ``full`` where the run deselects them anyway."""
    marks = getattr(obj, "pytestmark", ())
    is_full = collector.istestfunction(obj, name) and any(mark.name == "full" for mark in marks)
    return [] if is_full and collector.config.option.markexpr == "not full" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the tests outside this commit's sample of rotating tests as ``full``, unless ``-k`` selects tests."""
    if config.option.keyword:
        return
    part = int(os.environ.get("TANDEM_TEST_SEED", "0")) + NATIVE_OFF
    rows = collections.Counter(_function_of(item) for item in items if not item.get_closest_marker("full"))
    for item in items:
        share = ROTATION if _rotates(item) else _find_share(rows[_function_of(item)])
        if (zlib.crc32(item.name.encode()) + part) % share:
            item.add_marker(pytest.mark.full)


def _function_of(item):
    return item.path, getattr(item, "originalname", item.name)


def _find_share(rows):
    """The commits after which each row of a test with that many rows has run: more without native code."""
    return sum(rows > limit for limit in MANY_ROWS) * (1 + NATIVE_OFF) + 1


def _rotates(item):
    """Whether a test is one of many that the sample is drawn from.

    These are the rows of composites in ``rotating`` tests. Without native code they are all rows, because those tests
    are of layers above the kernels, and the tests of CUDA code, in which it has no part.
    """
    if NATIVE_OFF and item.get_closest_marker("once"):
        return True
    marker = item.get_closest_marker("rotating")
    if marker is None:
        return NATIVE_OFF and item.path.parent.match("cuda/codegen")
    values = item.callspec.params.values()
    return NATIVE_OFF or any(type(value) is str and value in marker.args[0] for value in values)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc):
    """With ``-k WORD`` make only the tests of a parametrized function that the word can select.

    pytest makes all of them, up to several thousand for a function over the op table, and deselects them afterwards.
    """
    node, word = metafunc.definition, metafunc.config.option.keyword.lower()
    marks = list(node.iter_markers("parametrize"))
    if (
        not re.fullmatch(r"(?!and$|or$|not$)[a-z]\w*", word)
        or not marks
        or any(mark not in node.own_markers for mark in marks)
        or any(word in name.lower() for name in (*_names_of(node), *_ids_of_fixtures(metafunc)))
    ):
        return
    selected = [[value for value, texts in _values_of(mark) if word in texts] for mark in marks]
    if sum(map(bool, selected)) > 1:
        return
    for mark, values in zip(marks, selected, strict=True):
        if values or not any(selected):
            kwargs = {name: value for name, value in mark.kwargs.items() if name != "ids"}
            new = pytest.mark.parametrize(mark.args[0], values, **kwargs).mark
            node.own_markers[node.own_markers.index(mark)] = new


def _ids_of_fixtures(metafunc):
    """The ids of the parameters of a test's fixtures, or the names of what they are."""
    for name in metafunc.fixturenames:
        for fixture in metafunc._arg2fixturedefs.get(name, ())[-1:]:
            yield from (str(getattr(value, "__name__", value)) for value in fixture.params or ())
            yield from map(str, fixture.ids if isinstance(fixture.ids, list | tuple) else ())


def _values_of(mark):
    """Each value of a ``parametrize`` with its id, and the texts that ``-k`` searches, in one line."""
    names, ids = mark.args[0], mark.kwargs.get("ids")
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    for number, value in enumerate(mark.args[1]):
        if not hasattr(value, "marks"):
            value = pytest.param(value) if len(names) == 1 else pytest.param(*value)
        if value.id is None and isinstance(ids, list | tuple):
            value = value._replace(id=str(ids[number]))
        if value.id is None:
            parts = [
                _id_of(part, f"{name}{number}", ids) for name, part in zip(names, value.values, strict=True)
            ]
            value = value._replace(id="-".join(parts))
        yield value, "\n".join((value.id, *(each.name for each in value.marks))).lower()


def _id_of(value, default, ids):
    """What pytest calls a value; ``ids`` may be a function."""
    text = ids(value) if callable(ids) else None
    if text is None and (value is None or isinstance(value, str | int | float | complex)):
        text = str(value)
    return str(getattr(value, "__name__", default) if text is None else text)


def _names_of(node):
    """The names that ``-k`` matches, apart from those of parameters."""
    for parent in node.listchain():
        yield from (parent.name, *parent.extra_keyword_matches, *(mark.name for mark in parent.own_markers))
    yield from node.obj.__dict__
