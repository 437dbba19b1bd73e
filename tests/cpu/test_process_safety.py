"""Interrupts during compilation, forks during compilation, and the locks that a fork acquires."""

import ast
import gc
import os
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
import tandem as td
from tandem import background, locks
from tandem.jit.derivatives import partition

ROOT = Path(__file__).resolve().parents[2]
SEED = os.environ.get("TANDEM_TEST_SEED", "0")
IDIOMS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier", "allocate_lock"}
MODULES = {"threading", "_thread", "multiprocessing"}


def run(*arguments, **variables):
    program = [sys.executable, str(ROOT / "tests" / "harness" / "disturbed.py"), *map(str, arguments), SEED]
    done = subprocess.run(
        program, capture_output=True, text=True, timeout=3000, env={**os.environ, **variables}, check=False
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    assert done.stdout.endswith("done\n"), done.stdout
    assert "double free" not in done.stderr


@pytest.mark.parametrize("count", [15, pytest.param(1000, marks=pytest.mark.full)])
def test_interrupted_compilations_leave_nothing_behind(count):
    run("interrupts", count, TANDEM_CACHE="0")


@pytest.mark.parametrize("count", [40, pytest.param(4000, marks=pytest.mark.full)])
def test_interrupt_at_any_point_leaves_nothing_behind(count):
    run("faults", count)


@pytest.mark.parametrize("count", [10, pytest.param(1000, marks=pytest.mark.full)])
def test_interrupted_eager_transforms_leave_nothing_behind(count):
    run("transforms", count)


def test_special_methods_lose_no_interrupt():
    run("methods", 1)
    run("methods", 1, TANDEM_NATIVE="0")


def test_interrupt_while_storing_leaves_one_specialization():
    run("stores", 5)


@pytest.mark.parametrize("count", [3, pytest.param(100, marks=pytest.mark.full)])
def test_forked_children_work_while_threads_compile(count):
    run("forks", count, TANDEM_CACHE="0")


@pytest.mark.parametrize("count", [1, pytest.param(10, marks=pytest.mark.full)])
def test_forked_pools_work_while_threads_compile(count):
    run("pools", count, TANDEM_CACHE="0")


def test_process_ends_while_a_thread_waits_for_a_job():
    program = """
import threading, time
from tandem import background
threading.Thread(target=background.run, args=(time.sleep, 0.5), daemon=True).start()
time.sleep(0.1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_fork_waits_for_lazy_imports_of_other_threads(tmp_path):
    """A child could never import a module whose import another thread of its parent had begun."""
    for name, seconds in (("unrelated", 1.5), ("wanted", 0.5)):
        (tmp_path / f"{name}.py").write_text(f"import time\ntime.sleep({seconds})\n")
    program = f"""
import os, signal, sys, threading, time
from tandem import lazy
sys.path.insert(0, {str(tmp_path)!r})
threading.Thread(target=__import__, args=("unrelated",)).start()
time.sleep(0.1)
importer = threading.Thread(target=lazy.module, args=("wanted",))  # imports by itself: another import is under way
importer.start()
time.sleep(0.1)
child = os.fork()
if not child:
    signal.alarm(20)
    lazy.module("wanted")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_fork_lets_an_import_take_the_lock_of_logging(tmp_path):
    """The hook of ``logging``, which was imported later, has run before, and holds the lock."""
    (tmp_path / "slow.py").write_text("import logging, time\ntime.sleep(0.3)\nlogging.getLogger('slow')\n")
    program = f"""
import os, sys, threading, time
import tandem
import logging
from tandem import lazy
sys.path.insert(0, {str(tmp_path)!r})
importer = threading.Thread(target=lazy.module, args=("slow",))
importer.start()
time.sleep(0.1)
child = os.fork()
if not child:
    assert not importer.is_alive() and not logging._lock._is_owned()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0 and not logging._lock._is_owned()
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_fork_waits_for_minimum_cuts(monkeypatch):
    """On Python 3.11 they hold the locks of cached properties."""
    steps = []

    def find_cut(network, source, target):
        begun.set()
        time.sleep(0.2)
        steps.append("cut")
        return minimum_cut(network, source, target)

    minimum_cut, begun = partition.networkx.minimum_cut, threading.Event()
    monkeypatch.setattr(partition.networkx, "minimum_cut", find_cut)
    gradient = td.grad(td.jit(lambda x: (td.sin(x) * x).sum()))
    thread = threading.Thread(target=gradient, args=(td.ones(3),))
    thread.start()
    assert begun.wait(20)
    child = os.fork()
    if not child:
        os._exit(0)
    steps.append("forks")
    os.waitpid(child, 0)
    thread.join()
    assert steps == ["cut", "forks"]


# --- locks ------------------------------------------------------------------------------------------------


def sources():
    outside = {"tests", "benchmarks", "examples", "docs", "build", "dist", "venv"}
    for path in ROOT.rglob("*.py"):
        top = path.relative_to(ROOT).parts[0]
        if top not in outside and not top.startswith(".") and not (ROOT / top / "pyvenv.cfg").exists():
            yield path


def made_locks(path):
    """The calls in a file that make something to wait for, as ``file: call``."""
    tree = ast.parse(path.read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in MODULES]
    bare = {alias.asname or alias.name for node in imports for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            module, _, name = ast.unparse(node.func).rpartition(".")
            if name in IDIOMS and (module in MODULES if module else name in bare):
                yield f"{path.relative_to(ROOT)}: {ast.unparse(node)}"


def test_locks_are_made_where_forks_know_them():
    known = {
        "background.py: _thread.allocate_lock()",  # a fork waits for the job that releases it
        "registry/lock.py: _thread.RLock()",  # given to locks.make_lock
    }
    assert {found for path in sources() for found in made_locks(path)} == known


def test_locks_that_live_are_known_to_forks():
    known, kinds = locks.all_locks(), (type(threading.Lock()), type(threading.RLock()))
    for name, module in list(sys.modules.items()):
        if not name.startswith("tandem.") or name.startswith("tandem.tests"):
            continue
        for attribute, value in list(vars(module).items()):
            inside = {} if isinstance(value, (type, types.ModuleType)) else getattr(value, "__dict__", {})
            for item in (value, *inside.values()):
                assert not isinstance(item, kinds) or item in known, f"{name}.{attribute}"


def test_forks_know_the_lock_of_llvmlite():
    ffi = pytest.importorskip("llvmlite.binding.ffi")
    assert ffi.lib._lock._lock in locks.all_locks()


def test_locks_have_a_place_in_the_order():
    with pytest.raises(ValueError, match="ORDER"):
        locks.make_lock("no such lock")
    assert [lock for lock in locks.all_locks() if lock in map(locks.make_lock, locks.ORDER)]


def test_fork_waits_for_lock_of_another_thread():
    entered, steps = threading.Event(), []

    def hold():
        with locks.make_lock("registry"):
            entered.set()
            time.sleep(0.2)
            steps.append("released")

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    locks._acquire_all()
    steps.append("forks")
    locks._release_all()
    thread.join()
    assert steps == ["released", "forks"]


def test_fork_waits_for_jobs_that_need_locks():
    steps = []

    def job():
        time.sleep(0.1)
        with locks.make_lock("registry"):
            steps.append("worked")

    background.start(job)
    while background.is_idle() and not steps:
        time.sleep(0.001)
    locks._acquire_all()
    steps.append("forks")
    locks._release_all()
    assert steps == ["worked", "forks"]


# --- work on other threads ----------------------------------------------------------------------------------


def test_background_returns_and_raises_what_the_work_does():
    assert background.run(lambda a, b: a + b, 1, 2) == 3
    with pytest.raises(KeyError, match="missing"):
        background.run({}.__getitem__, "missing")
    assert background.run(lambda: background.run(threading.get_ident)) != threading.get_ident()


def test_background_keeps_no_results_alive():
    class Thing:
        pass

    gc.collect()
    before = sum(isinstance(found, Thing) for found in gc.get_objects())
    background.run(Thing)
    gc.collect()
    assert sum(isinstance(found, Thing) for found in gc.get_objects()) == before


def test_work_runs_inline_without_new_threads(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background._thread, "start_new_thread", refuse)
    assert background.run(lambda: 5) == 5


def test_small_stacks_are_enough_to_compile():
    before = threading.stack_size(128 << 10)
    try:
        results = []
        x = td.asarray([1.0, 2.0])

        def work():
            results.append(td.jit(lambda x: td.softmax(td.sin(x) * 3.5))(x).tolist())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert results


class Full(set):
    def add(self, item):
        raise MemoryError


def test_a_job_without_memory_raises_instead_of_waiting(monkeypatch):
    monkeypatch.setattr(background, "_running", Full())
    with pytest.raises(MemoryError):
        background.run(lambda: 1)
