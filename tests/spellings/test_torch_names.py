"""The names of functions and methods that PyTorch documents: how many there are, and what calls of them return.

``names/torch_functions.txt`` and ``torch_methods.txt`` are the names of PyTorch's pages ``torch`` and ``torch.Tensor``
that exist on the CPU, without those about quantized tensors, symbolic shapes and ``compile``, and deprecated
constructors. ``*_calls.txt`` has a call of each that tandem has; ``docs/other_libraries.md`` says why others lack.
"""

import re
import warnings

import pytest
import tandem.torch
from source_tree import ROOT
from torch_calls import assert_alike, evaluate, read_calls, read_names

PAGE = ROOT / "docs" / "other_libraries.md"
KINDS = ("function", "method")


def names_with_reasons(kind):
    """The names in the page's table of missing functions or methods."""
    section = PAGE.read_text().partition(f"### Missing {kind}s\n")[2].partition("\n##")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


@pytest.mark.parametrize("kind", KINDS)
def test_most_documented_names_have_calls(kind):
    names, calls = read_names(kind), read_calls(kind)
    assert set(calls) <= set(names) and len(names) == len(set(names))
    assert len(calls) >= 0.85 * len(names)


@pytest.mark.parametrize("kind", KINDS)
def test_each_missing_name_has_a_reason(kind):
    missing = set(read_names(kind)) - set(read_calls(kind))
    assert sorted(missing) == sorted(names_with_reasons(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_calls_run(kind, tmp_path):
    for expression in read_calls(kind).values():
        evaluate(expression, tandem.torch, f"{tmp_path}/x.npz")


@pytest.mark.parametrize("kind", KINDS)
def test_calls_return_what_pytorch_returns(kind, tmp_path):
    torch = pytest.importorskip("torch")
    differing = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, expression in read_calls(kind).items():
            theirs = evaluate(expression, torch, f"{tmp_path}/x.pt")
            try:
                assert_alike(evaluate(expression, tandem.torch, f"{tmp_path}/x.npz"), theirs)
            except AssertionError as fault:
                differing.append((name, str(fault)[:200]))
    assert not differing
