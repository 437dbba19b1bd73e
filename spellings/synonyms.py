"""Suggestions for unknown names: the tandem spelling of a name of NumPy, JAX or PyTorch, or the nearest name."""

from __future__ import annotations

from collections.abc import Iterable

from .. import lazy

_difflib = lazy.Module("difflib")

# A name of another library -> what to write with tandem, where the names are not alike.
SYNONYMS: dict[str, str] = {
    "Variable": "td.asarray(x, requires_grad=True)",
    "as_tensor": "td.asarray",
    "baddbmm": "c + a @ b",
    "bernoulli": "td.random.bernoulli(key, p)",
    "compile": "td.jit",
    "cuda_is_available": "td.cuda.is_available()",
    "default_rng": "td.random.key(seed), or td.Generator(seed)",
    "device_get": "x.numpy()",
    "device_put": "x.to(device)",
    "empty_cache": "td.cuda",
    "frombuffer": "td.asarray(memoryview)",
    "make_jaxpr": "td.jit(f).lower(...)",
    "manual_seed": "td.Generator(seed), or td.random.key(seed)",
    "matrix": "td.asarray",
    "multinomial": "td.random.categorical(key, logits)",
    "named_parameters": "td.tree.flatten_with_path",
    "ndarray": "td.Tensor",
    "ndenumerate": "enumerate(x.flatten())",
    "nditer": "iteration over x, or td.vmap",
    "pmap": "td.vmap with axis_name",
    "rand": "td.random.uniform(key, shape)",
    "randint": "td.random.integers(key, shape, low, high)",
    "randn": "td.random.normal(key, shape)",
    "randperm": "td.random.permutation(key, n)",
    "save": "np.savez of x.numpy()",
}


def suggest(name: str, names: Iterable[str], prefix: str = "td.") -> str:
    """Words about the tandem spelling of an unknown name; empty if nothing is near.

    Args:
        name: the unknown name.
        names: the names that exist.
        prefix: what is written before a name that exists.

    >>> from tandem.spellings.synonyms import suggest
    >>> suggest("concatnate", ["concatenate", "sum"])
    '; did you mean td.concatenate?'
    """
    known = SYNONYMS.get(name)
    if known is not None:
        return f"; with tandem write {known}"
    public = [other for other in names if not other.startswith("_")]
    folded = {other.lower().replace("_", ""): other for other in public}
    same = folded.get(name.lower().replace("_", ""))
    near = [same] if same else _difflib.get_close_matches(name, public, 1)
    return f"; did you mean {prefix}{near[0]}?" if near else ""
