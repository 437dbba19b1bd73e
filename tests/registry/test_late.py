"""Lazily declared operators are found by every lookup."""

import subprocess
import sys

import pytest
import tandem as td
from tandem.backends.cpu import fastpath
from tandem.eager.tensor.functions import MODULES_OF_METHODS
from tandem.eager.tensor.methods import PROPERTIES
from tandem.operators.declare.declaration import declared_operators
from tandem.operators.declare.lazy_modules import LAZY_OPERATORS
from tandem.registry import lazy_operators
from tandem.registry.operator import operators

# What is asked of one fresh interpreter, each of a family that nobody has touched before, and what it prints.
QUESTIONS = {
    "{'tanh', 'random', 'arctan2'} <= {*dir(td)} & {*td.__all__}": "True",
    "td.cross_entropy.__name__": "cross_entropy",
    "td.unsqueeze(td.tensor(1.0), 0).mean().item()": "1.0",
    "td.arctan2.__name__, td.atan2 is td.arctan2": "atan2 True",
    "td.ops.td.linalg_det.schema.name": "linalg_det",
    "td.ops.td.tril.default": "<function td.tril>",
    "str(td.dispatch_table('td::fft_fft')).split()[0]": "td::fft_fft(Tensor",
    "td.Tensor.sort, 'sort' in dir(td.Tensor)": "<function td.sort> True",
    "td.tensor([0.0, 2.0]).relu_().tolist()": "[0.0, 2.0]",
    "pickle.loads(pickle.dumps(td.softmax)) is td.softmax": "True",
    "pickle.loads(b'ctandem.registry.function\\nfunction_of\\n(Vtd::kron\\ntR.') is td.kron": "True",
    "td.vmap(td.ops.td.stack, in_axes=([0, 0],))([td.ones((2, 3)), td.ones((2, 3))]).shape": "(2, 2, 3)",
    "__import__('tandem', fromlist=['dropout']).dropout.__name__": "dropout",
    "replaced('special_gamma', lambda self: self + 40), td.ops.td.special_gamma(td.tensor(2.0)).item()": "42.0 1.0",
}
PREPARED = """
import pickle
import tandem as td
def replaced(name, kernel):
    with td.Library('td', 'IMPL') as lib:
        lib.impl(name, kernel, 'CPU')
        return getattr(td.ops.td, name)(td.tensor(2.0)).item()
"""
# Each question about all operators comes first in its interpreter.
ABOUT_ALL = {
    "td.registrations('CPU', 'special_j0')[0].operator": "td::special_j0",
    "td.dangling_impls()": "[]",
    "{'sort', 'linalg_qr'} <= {*dir(td.ops.td)}, dir(td.ops.sparse)": "True ['sddmm', 'spmm']",
    "seen('td::sort', 'td::linalg_qr', 'sparse::spmm', 'quantized::add')": "True",
}
SEEN = """
def seen(*names):
    events = []
    with td.on_registration(events.append):
        return {*names} <= {event.operator for event in events}
"""


def fresh(code):
    """The lines that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def names(family):
    return {name.removeprefix(".") for name in LAZY_OPERATORS[family].split()}


def test_families_hold_what_their_modules_declare():
    found = fresh(f"""
import importlib, tandem
from tandem.registry.lazy_operators import materialize
from tandem.registry.operator import operators
known = set(operators)
imported = {{f"{{full.partition('::')[2].partition('.')[0]}}_" for full in known}}
for family in {list(LAZY_OPERATORS)}:
    importlib.import_module("tandem" + family)
    for name in set(operators) - known:
        materialize(f"{{name.partition('.')[0]}}_")
    declared = {{full.partition("::")[2].partition(".")[0] for full in set(operators) - known}}
    print(*sorted(declared - imported))  # an overload's in-place operator has that of an imported module
    known = set(operators)
""")
    every = set().union(*map(names, LAZY_OPERATORS))
    assert sum(len(names(family)) for family in LAZY_OPERATORS) == len(every)
    assert set(" ".join(found).split()) == every
    left = set(every)
    for family, declared_by_it in zip(LAZY_OPERATORS, found, strict=True):
        left -= {*declared_by_it.split()}  # and those of the families that it imports
        assert not names(family) & left, family


def test_methods_are_those_of_the_families():
    promised = {name for text in LAZY_OPERATORS.values() for name in text.split() if name.startswith(".")}
    every = {name for text in LAZY_OPERATORS.values() for name in text.split()}
    declared_operators()
    written = {
        *" ".join(MODULES_OF_METHODS.values()).split(),
        *PROPERTIES,
    }  # x.select(axis, index) is not td.select
    assert promised == {name for name in every - written if hasattr(td.Tensor, name.removeprefix("."))}


def test_who_asks_for_one_finds_it():
    code = PREPARED + "".join(f"print({question})\n" for question in QUESTIONS)
    assert dict(zip(QUESTIONS, fresh(code), strict=True)) == QUESTIONS


@pytest.mark.parametrize("question", ABOUT_ALL)
def test_who_asks_for_all_finds_them(question):
    assert fresh(f"{PREPARED}{SEEN}print({question})") == [ABOUT_ALL[question]]


@pytest.mark.skipif(bool(fastpath.why_off()), reason="native code is off")
def test_their_stubs_stand_for_their_kernels():
    code = """
import tandem as td
from tandem.backends.cpu import fastpath as native
from tandem.operators.declare.declaration import declared_operators
native.install()
early = len(native.stubs().by_operator)
declared_operators()
stubs = native.stubs().by_operator
print(len(stubs) > early, [op.name for op, stub in stubs.items() if not stub.usable])
"""
    assert fresh(code) == ["True []"]


def test_lazy_names_are_suggested():
    code = "try: td.ops.td.linalg_dett\nexcept td.errors.UnknownOperatorError as fault: print(fault)"
    assert "linalg_det" in fresh(f"import tandem as td\n{code}")[0].partition("near names are")[2]


def test_lazy_operator_never_defined_is_unknown():
    lazy_operators.register_lazy("doc_late", ["never"], lambda: None)
    with pytest.raises(td.errors.UnknownOperatorError, match="doc_late::never"):
        td.ops.doc_late.never  # noqa: B018
    assert not lazy_operators.lazy_names("doc_late")
    td.ops.__dict__.pop("doc_late", None)


def test_nothing_waits_after_a_look_at_all():
    declared_operators()
    assert not lazy_operators.lazy_namespaces()
    assert {f"td::{name}" for family in LAZY_OPERATORS for name in names(family)} <= {
        full.partition(".")[0] for full in operators
    }
