"""The disk cache of machine code: contents, eviction, and rejection of damaged or foreign files."""

import ctypes
import errno
import os
import shutil
import socket
import stat

import pytest
from tandem import config, lazy
from tandem.backends.cpu import cache, target
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.compiler import engine

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)

IR = "define i64 @f() { ret i64 42 }"


@pytest.fixture
def where(tmp_path):
    with config.override(cache_dir=str(tmp_path), cache=True):
        yield tmp_path / "native"


def answer(code):
    return ctypes.CFUNCTYPE(ctypes.c_int64)(code["f"])()


def entry(where):
    return next(p for p in where.iterdir() if p.name != "key" and not p.name.startswith("target-"))


def test_target_is_read_from_the_cache(where, monkeypatch):
    target.find_target.cache_clear()
    asked = target.find_target()
    target.find_target.cache_clear()
    monkeypatch.setattr(target, "_ask_llvm", None)
    assert target.find_target() == asked
    monkeypatch.undo()
    changed = {"_read_processor": lambda: b"another", "_numpy_features": lambda: {"SSE": True}}
    for name, found in changed.items():  # another processor, and the same one under an emulator
        monkeypatch.setattr(target, name, found)
        monkeypatch.setattr(target, "_ask_llvm", lambda name=name: asked._replace(cpu=name))
        target.find_target.cache_clear()
        assert target.find_target().cpu == name
    target.find_target.cache_clear()


def test_target_is_llvms_own():
    binding = lazy.module("llvmlite.binding")
    found = target.find_target()
    assert (found.triple, found.cpu) == (binding.get_process_triple(), binding.get_host_cpu_name())
    for feature, present in binding.get_host_cpu_features().items():
        assert found.has(feature) == present


def test_the_second_time_comes_from_disk(where):
    first = engine.compile_ir(IR, ["f"])
    second = engine.compile_ir(IR, ["f"])
    assert (first.from_cache, second.from_cache) == (False, True)
    assert answer(first) == answer(second) == 42


def test_modes_are_private(where):
    engine.compile_ir(IR, ["f"])
    assert stat.S_IMODE(where.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in where.iterdir()} == {0o600}
    assert not [p for p in where.iterdir() if p.name.startswith(".new")]


@pytest.mark.parametrize("place", [0, 20, 60, -1])
def test_a_damaged_entry_is_built_again(where, place):
    engine.compile_ir(IR, ["f"])
    raw = bytearray(entry(where).read_bytes())
    raw[place] ^= 1
    entry(where).write_bytes(raw)
    code = engine.compile_ir(IR, ["f"])
    assert not code.from_cache
    assert answer(code) == 42
    assert engine.compile_ir(IR, ["f"]).from_cache


def test_truncated_or_renamed_entries_are_rebuilt(where):
    engine.compile_ir(IR, ["f"])
    original = entry(where)
    other = IR.replace("42", "7")
    name = engine.fingerprint(other, "3", "f")
    (where / name).write_bytes(original.read_bytes())
    os.chmod(where / name, 0o600)
    code = engine.compile_ir(other, ["f"])
    assert (code.from_cache, answer(code)) == (False, 7)
    original.write_bytes(original.read_bytes()[:30])
    assert not engine.compile_ir(IR, ["f"]).from_cache


def test_a_link_and_a_readable_entry_are_refused(where, tmp_path):
    engine.compile_ir(IR, ["f"])
    real = entry(where)
    moved = tmp_path / "moved"
    real.rename(moved)
    real.symlink_to(moved)
    assert not engine.compile_ir(IR, ["f"]).from_cache
    os.chmod(real, 0o644)
    assert not engine.compile_ir(IR, ["f"]).from_cache


def directory(path):
    path.mkdir(mode=0o700)
    (path / "inside").write_text("not empty")


def fifo(path):
    os.mkfifo(path, 0o600)


def unix_socket(path):
    handle = os.open(path.parent, os.O_RDONLY)  # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{handle}/{path.name}")
    os.close(handle)
    os.chmod(path, 0o600)


def device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root makes devices")


def dangling_link(path):
    path.symlink_to(path.parent / "nowhere")


def own_link(path):
    path.symlink_to(path)


def link_to_device(path):
    path.symlink_to("/dev/zero")


def unreadable(path):
    path.touch(mode=0o000)


def empty(path):
    path.touch(mode=0o600)


def cut(path):
    path.write_bytes(cache._MAGIC)
    os.chmod(path, 0o600)


def huge(path):
    with open(path, "wb") as file:
        file.write(cache._MAGIC)
        file.truncate(1 << 40)
    os.chmod(path, 0o600)


INTRUDERS = (
    *(directory, fifo, unix_socket, device, dangling_link, own_link, link_to_device),
    *(unreadable, empty, cut, huge),
)


def put(intruder, path):
    """Put something in the place of a file or directory of the cache."""
    if path.is_dir():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
    intruder(path)


@pytest.mark.parametrize("intruder", INTRUDERS)
@pytest.mark.parametrize("place", ["entry", "key", "native", "root"])
def test_code_is_built_whatever_is_in_the_cache(tmp_path, intruder, place):
    root = tmp_path / "cache"
    with config.override(cache_dir=str(root), cache=True):
        engine.compile_ir(IR, ["f"])
        key = entry(root / "native").name
        paths = {"entry": f"native/{key}", "key": "native/key", "native": "native", "root": "."}
        put(intruder, root / paths[place])
        cache._state.clear()  # as in another process
        code = engine.compile_ir(IR, ["f"])
        assert (code.from_cache, answer(code)) == (False, 42)
        assert answer(engine.compile_ir(IR, ["f"])) == 42
        assert isinstance(cache.reason(), str)
    cache._state.clear()


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("function", ["open", "replace", "fdopen"])
def test_code_runs_where_the_disk_refuses(where, monkeypatch, fault, function):
    def refuse(*_, **__):
        raise OSError(fault, os.strerror(fault))

    with monkeypatch.context() as patch:
        patch.setattr(cache.os, function, refuse)
        code = engine.compile_ir(IR, ["f"])
        assert (code.from_cache, answer(code)) == (False, 42)
    assert os.strerror(fault) in cache.reason()
    cache._state.clear()


def test_a_name_that_no_directory_has_is_refused():
    for name in ("a\0b", "x" * 5000, "/dev/null/cache"):
        with config.override(cache_dir=name, cache=True):
            assert answer(engine.compile_ir(IR, ["f"])) == 42
            assert cache.reason()
    cache._state.clear()


def test_another_key_makes_all_entries_foreign(where):
    engine.compile_ir(IR, ["f"])
    (where / "key").write_bytes(bytes(32))
    cache._state.clear()
    assert not engine.compile_ir(IR, ["f"]).from_cache


def test_an_open_directory_is_not_used(tmp_path):
    shared = tmp_path / "native"
    shared.mkdir()
    os.chmod(shared, 0o777)
    with config.override(cache_dir=str(tmp_path)):
        assert answer(engine.compile_ir(IR, ["f"])) == 42
        assert "0700" in cache.reason()
    assert not list(shared.iterdir())


def test_cache_directory_failure_is_ignored(tmp_path):
    (tmp_path / "file").write_text("")
    with config.override(cache_dir=str(tmp_path / "file" / "below")):
        assert answer(engine.compile_ir(IR, ["f"])) == 42
        assert cache.reason()


def test_the_cache_can_be_off(where):
    with config.override(cache=False):
        assert not engine.compile_ir(IR, ["f"]).from_cache
        assert cache.reason() == "TANDEM_CACHE=0"
    assert not where.exists()
