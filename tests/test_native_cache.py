"""The disk cache of machine code: what is kept, and that nothing foreign or damaged is ever run."""

import ctypes
import os
import stat

import pytest
from tandem import config
from tandem.backends.cpu import native as native_layer
from tandem.backends.cpu.native import cache, engine

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
    return next(p for p in where.iterdir() if p.name != "key")


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


def test_a_cut_entry_and_one_under_another_name_are_built_again(where):
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


def test_a_directory_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    with config.override(cache_dir=str(tmp_path / "file" / "below")):
        assert answer(engine.compile_ir(IR, ["f"])) == 42
        assert cache.reason()


def test_the_cache_can_be_off(where):
    with config.override(cache=False):
        assert not engine.compile_ir(IR, ["f"]).from_cache
        assert cache.reason() == "TANDEM_CACHE=0"
    assert not where.exists()
