"""The classes of PyTorch's ``torch.nn``, and its functions: those that tandem lacks are listed with what to write."""

import re

import pytest
import tandem.torch.nn.functional
from source_tree import ROOT

LISTS = ROOT / "tests" / "spellings" / "names"
NAMESPACES = {"torch_nn": tandem.torch.nn, "torch_nn_functional": tandem.torch.nn.functional}


def find_missing(name):
    names = (LISTS / f"{name}.txt").read_text().split()
    return names, [one for one in names if not hasattr(NAMESPACES[name], one)]


@pytest.mark.parametrize("name", NAMESPACES)
def test_most_names_exist(name):
    names, missing = find_missing(name)
    assert len(missing) <= 0.1 * len(names), missing


def test_missing_names_are_listed():
    section = (ROOT / "docs" / "nn.md").read_text().partition("### Missing modules and functions\n")[2]
    cells = [
        line.split("|")[1] for line in section.partition("\n\nA **")[0].splitlines() if line.startswith("| `")
    ]
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    missing = {one for name in NAMESPACES for one in find_missing(name)[1]}
    assert listed == missing
