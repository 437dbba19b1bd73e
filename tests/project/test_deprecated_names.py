"""Deprecated aliases: the old name works, warns once per use at the caller's line, and names the new one."""

import sys
import types

import pytest
from tandem.deprecated_names import deprecated_attribute, module_getattr, renamed_argument
from tandem.errors import ArgumentError


@pytest.fixture
def module():
    made = types.ModuleType("renamed_module")
    made.current = object()
    made.__getattr__ = module_getattr("renamed_module", {"former": "current"}, removed_in="9.0")
    sys.modules["renamed_module"] = made
    yield made
    del sys.modules["renamed_module"]


def test_module_alias_warns_at_the_caller(module):
    with pytest.warns(DeprecationWarning, match=r"use renamed_module\.current; version 9\.0") as caught:
        assert module.former is module.current
    assert caught[0].filename == __file__


def test_unknown_name_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        module.other  # noqa: B018


def test_attribute_alias_reads_the_new_attribute():
    class Box:
        size = 3
        length = deprecated_attribute("length", "size", removed_in="9.0")

    with pytest.warns(DeprecationWarning, match=r"Box\.length is deprecated: use Box\.size"):
        assert Box().length == 3


def test_old_keyword_is_passed_under_the_new_name():
    @renamed_argument("dim", "axis", removed_in="9.0")
    def total(x, *, axis=0):
        return x, axis

    assert total(1, axis=2) == (1, 2)
    with pytest.warns(DeprecationWarning, match=r"total\(dim=\) is deprecated: use axis="):
        assert total(1, dim=2) == (1, 2)
    with pytest.raises(ArgumentError, match="dim= is the old name of axis="):
        total(1, dim=2, axis=2)
