"""Errors for names of NumPy, JAX and PyTorch that a namespace lacks: they name the tandem spelling."""

import inspect
import itertools
import pickle
import random
import re
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
import tandem as td
import tandem.jax
import tandem.numpy
import tandem.torch.nn.functional  # the namespaces that messages name
from tandem.eager.tensor.functions import FOREIGN_ATTRIBUTES
from tandem.registry.schemas.spellings import FOREIGN_ARGUMENTS
from tandem.spellings.foreign_names import ABSENT, ABSENT_PATTERNS, SYNONYM_PATTERNS, SYNONYMS
from tandem.spellings.synonyms import _derive, _fold

NAMES = Path(__file__).parent / "names"
FUNCTIONS = "numpy jax_numpy jax_lax jax_nn jax_random torch_functions torch_nn_functional".split()
METHODS = "torch_methods numpy_methods".split()
PATH = re.compile(r"\b(?:td|x)(?:\.[A-Za-z]\w*)+")


def read(lists):
    names = [
        line.rpartition(".")[2] for name in lists for line in (NAMES / f"{name}.txt").read_text().split()
    ]
    return sorted({*names})


def find_missing():
    """(owner, name, message) for each name of the lists that tandem, or a tensor, lacks."""
    x, result = td.zeros((2, 2)), []
    for owner, prefix, names in ((td, "td", read(FUNCTIONS)), (x, "x", read(METHODS))):
        for name in names:
            try:
                getattr(owner, name)
            except AttributeError as error:
                result.append((prefix, name, str(error)))
    return result


def resolve(path):
    root, _, rest = path.partition(".")
    attrgetter(rest)({"td": td, "x": td.zeros((2, 2))}[root])


def is_right(name, message):
    """Whether a message has a reason, a spelling that exists, or a function that the name is made from."""
    if f"tandem lacks it: {ABSENT.get(name)}" in message or SYNONYMS.get(name, "-") in message:
        return True
    near = re.search(r"did you mean (?:td|x)(?:\.\w+)*?\.(\w+)\?", message)
    if near:
        return _fold(near[1]) == _fold(name) or near[1] in _derive(name)
    return bool(re.search(r"; (it is|with tandem write|tandem lacks it)", message))


def test_names_of_other_libraries_are_answered():
    missing = find_missing()
    drawn = random.Random(0).sample(missing, min(400, len(missing)))
    wrong = [f"{prefix}.{name}: {message}" for prefix, name, message in drawn if not is_right(name, message)]
    assert len(drawn) >= 400 and len(wrong) <= 0.1 * len(drawn), "\n".join(wrong)


def list_names(library):
    names = [name for name in dir(library) if not name.startswith("_")]
    return [name for name in names if not inspect.ismodule(getattr(library, name, None))]


@pytest.mark.parametrize("seed", range(3))
def test_names_of_installed_libraries_are_answered(seed):
    """The namespace that spells a library, and tandem itself, answer each public name that they lack."""
    jax, torch = pytest.importorskip("jax"), pytest.importorskip("torch")
    functional, x = td.nn.functional, td.zeros((2, 2))
    libraries = [
        (np, (td, td.numpy)),
        (jax.numpy, (td, td.jax.numpy)),
        (jax.lax, (td, td.jax.lax)),
        (jax.nn, (td, td.jax.nn)),
        (torch, (td, td.torch)),
        (torch.Tensor, (x,)),
        (torch.nn.functional, (td, functional)),
    ]
    missing = {}
    for library, owners in libraries:
        for name, owner in itertools.product(list_names(library), owners):
            try:
                getattr(owner, name)
            except AttributeError as error:
                missing[name] = error
    drawn = random.Random(seed).sample(sorted(missing), 400)
    wrong = [f"{name}: {missing[name]}" for name in drawn if not is_right(name, str(missing[name]))]
    assert len(wrong) <= 0.1 * len(drawn), "\n".join(wrong)


def test_patterns_do_not_answer_misspelled_names():
    for name in ("concatnate", "Lineer", "zeross", "reshpae", "argmaxx", "is_grad_enabld", "no_gradd"):
        for owner in (td, td.nn):
            with pytest.raises(AttributeError) as caught:
                getattr(owner, name)
            assert "did you mean" in str(caught.value) or owner is not (td.nn if name == "Lineer" else td)


def test_paths_in_messages_exist():
    for _, _, message in find_missing():
        for path in PATH.findall(message.partition(";")[2]):
            resolve(path)


def test_tables_are_disjoint_and_needed():
    assert not SYNONYMS.keys() & ABSENT.keys()
    patterns = [text for _, text in (*SYNONYM_PATTERNS, *ABSENT_PATTERNS) if "\\1" not in text]
    for texts in (SYNONYMS.values(), ABSENT.values(), FOREIGN_ARGUMENTS.values(), patterns):
        for text in texts:
            for path in PATH.findall(text):
                resolve(path)
    assert not [name for name in ABSENT if hasattr(td, name)]


def test_foreign_attributes_of_tensors_raise():
    x = td.zeros((2, 2))
    for name in FOREIGN_ATTRIBUTES:
        assert not hasattr(x, name) and not hasattr(td.Tensor, name) and name not in dir(x)
        with pytest.raises(AttributeError, match=f"'Tensor' object has no attribute '{name}'; "):
            getattr(x, name)
    assert "sum" in dir(x) and "shape" in dir(x)
    assert td.asarray([0, 1]).to_sparse().indices is not None


def test_suggestion_is_computed_when_read():
    with pytest.raises(td.errors.UnknownNameError) as caught:
        td.concatnate  # noqa: B018
    assert caught.value.args == ("module 'tandem' has no attribute 'concatnate'",)
    assert str(caught.value).endswith("did you mean td.concatenate?")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "owner, name, text",
    [
        (td, "huber_loss", "td.nn.functional.huber_loss"),
        (td, "relu_", "the method x.relu_()"),
        (td, "sin_p", "td.sin"),
        (td, "PRNGKey", "td.jax.random.PRNGKey"),
        (td.torch, "lax", "td."),
        (tandem.torch.nn.functional, "argmax", "td.argmax"),
    ],
)
def test_other_namespaces_are_searched(owner, name, text):
    with pytest.raises(AttributeError, match=re.escape(text)):
        getattr(owner, name)


# -- arguments ---------------------------------------------------------------------------------------------------------
X = td.asarray([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    "call, same",
    [
        (lambda: X.tril(diagonal=-1), lambda: X.tril(k=-1)),
        (lambda: td.triu(input=X, diagonal=1), lambda: td.triu(X, k=1)),
        (lambda: td.tile(A=X, reps=(2, 1)), lambda: td.tile(X, (2, 1))),
        (lambda: td.pad(array=X, pad_width=1), lambda: td.pad(X, 1)),
        (lambda: td.arange(start=1, end=3), lambda: td.arange(1, 3)),
        (lambda: td.linspace(start=0, end=1, steps=3), lambda: td.linspace(0, 1, 3)),
        (lambda: td.pow(input=X, exponent=2), lambda: X**2),
        (lambda: td.exp(operand=X), lambda: td.exp(X)),
        (lambda: td.eye(N=2, M=3), lambda: td.eye(2, 3)),
        (lambda: td.eye(n=2, m=3), lambda: td.eye(2, 3)),
        (lambda: td.array_equal(a1=X, a2=X), lambda: td.array_equal(X, X)),
        (lambda: td.clip(X, a_min=2, a_max=3), lambda: td.clip(X, 2, 3)),
        (lambda: td.diagonal(X, dim1=1, dim2=0), lambda: td.diagonal(X, axis1=1, axis2=0)),
        (lambda: td.split(X, indices_or_sections=2)[1], lambda: td.split(X, 2)[1]),
        (lambda: td.concatenate(operands=[X, X], dimension=1), lambda: td.concat([X, X], axis=1)),
        (lambda: td.resize(X, new_shape=(4,)), lambda: td.resize(X, (4,))),
    ],
)
def test_arguments_have_names_of_other_libraries(call, same):
    for _ in range(3):
        assert call().tolist() == same().tolist()


@pytest.mark.parametrize(
    "name", ["where", "dtype", "initial", "order", "inplace", "requires_grad", "precision"]
)
def test_foreign_arguments_are_answered(name):
    with pytest.raises(TypeError, match=re.escape(f"'{name}'; {FOREIGN_ARGUMENTS[name]}")):
        td.relu(X, **{name: None})


# -- methods of NumPy's arrays -----------------------------------------------------------------------------------------
def test_methods_of_numpy_arrays():
    x = td.asarray([[3.0, 1.0], [2.0, 4.0]])
    array = x.numpy().copy()
    for call in (
        lambda x: x.argpartition(0, 0).tolist(),
        lambda x: x.compress([False, True], 0).tolist(),
        lambda x: x.tobytes(),
        lambda x: x.tobytes("F"),
        lambda x: (x.put([3, 0], [7.0, 8.0]), x.tolist())[1],
        lambda x: (x.fill(5), x.tolist())[1],
    ):
        assert call(x) == call(array)


def test_tofile_writes_elements(tmp_path):
    td.arange(3, dtype=td.int8).tofile(tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == b"\0\1\2"


# -- positions with a number of their own, as in jax.numpy -------------------------------------------------------------
@pytest.mark.parametrize("transform", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_jax_positions_take_size(transform):
    jnp, x = tandem.jax.numpy, td.asarray([0, 2, 0, 3])
    assert transform(lambda x: jnp.where(x > 0, size=3, fill_value=9))(x)[0].tolist() == [1, 3, 9]
    assert transform(lambda x: jnp.argwhere(x, size=3))(x).tolist() == [[1], [3], [0]]
    assert transform(lambda x: jnp.flatnonzero(x, size=1))(x).tolist() == [1]
    assert transform(lambda x: jnp.where(x > 0, x, 7))(x).tolist() == [7, 2, 7, 3]
    with pytest.raises(TypeError, match="two values"):
        jnp.where(x > 0, x)
    with pytest.raises(TypeError, match="two values"):
        jnp.where(x > 0, x, x, size=3)


def test_range_is_index():
    x = td.arange(6).reshape(2, 3)
    array = x.numpy().copy()
    for f in (lambda x: x[range(2), [0, 2]], lambda x: x[:, range(1, 3)], lambda x: x[range(0)]):
        assert f(x).tolist() == td.jit(f)(x).tolist() == f(array).tolist()
    x[range(2), [0, 1]] = 9
    array[range(2), [0, 1]] = 9
    assert x.tolist() == array.tolist()
