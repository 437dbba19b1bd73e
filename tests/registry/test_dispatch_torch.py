"""Dispatch tables compared with PyTorch's, over random histories of registrations and removals."""

import random
import re

import pytest
import tandem as td

torch = pytest.importorskip("torch")

HISTORIES = 2000
KEYS = (
    "CPU CUDA Meta PrivateUse1 SparseCPU SparseCUDA SparseMeta QuantizedCPU QuantizedCUDA QuantizedMeta "
    "AutogradCPU AutogradCUDA AutogradMeta AutogradOther AutogradPrivateUse1 ADInplaceOrView Functionalize "
    "AutocastCPU AutocastCUDA"
).split()
REGISTRABLE = [key for key in KEYS if key not in ("SparseMeta", "QuantizedMeta")]  # by PyTorch
ALIASES = {
    "Autograd": "Autograd",
    "CompositeImplicit": "CompositeImplicitAutograd",
    "CompositeExplicit": "CompositeExplicitAutograd",
    "CompositeExplicitNonFunctional": "CompositeExplicitAutogradNonFunctional",
}
# PyTorch has no fallbacks of its own here, and takes one at a time.
FALLBACK_KEYS = ["CPU", "CUDA", "SparseCPU", "SparseCUDA", "QuantizedCPU", "PrivateUse1"]
KINDS = {
    "kernel": "kernel",
    "autograd kernel": "kernel",
    "default backend kernel": "composite_explicit",
    "math kernel": "composite_implicit",
    "backend fallback": "fallback",
    "ambiguous autogradother": "ambiguous",
}
LINE = re.compile(r"^(\w+): (fallthrough )?(?:registered at (\S+)|\S+) \[([\w ]+)\]$")


def at_line(number, text, **names):
    """Evaluate an expression as if it stood in line ``number`` of a file."""
    return eval(compile("\n" * (number - 1) + text, "/history", "eval"), names)


class Torch:
    """PyTorch's side of a history: a library for each registration, for the line that it is made at is what shows."""

    def __init__(self, name):
        self.name, self.libraries = name, {}

    def impl(self, number, key, passes):
        library = at_line(number, "Library('tandemdiff', 'IMPL')", Library=torch.library.Library)
        kernel = torch.library.fallthrough_kernel if passes else lambda x: x
        # Past the checks of torch.library: Meta kernels beside CompositeImplicit ones are a matter of the table, too.
        library.m.impl(self.name, ALIASES.get(key, key), kernel, False)
        self.libraries[number] = library

    def fallback(self, number, key, passes):
        library = at_line(number, "Library('_', 'IMPL')", Library=torch.library.Library)
        library.fallback(torch.library.fallthrough_kernel if passes else lambda op, *args: args, key)
        self.libraries[number] = library

    def remove(self, number):
        self.libraries.pop(number)._destroy()

    def table(self):
        rows = {}
        for line in torch._C._dispatch_dump_table(f"tandemdiff::{self.name}").splitlines():
            key, _, origin, kind = LINE.match(line).groups()
            ours = origin is not None and origin.startswith("/history:")
            rows[key] = (KINDS[kind], origin if ours else "")
        return {key: rows.get(key, ("missing", "")) for key in KEYS}


class Tandem:
    """tandem's side of a history."""

    def __init__(self, name, library):
        self.name, self.library, self.handles = name, library, {}

    def impl(self, number, key, passes):
        call = "impl(name, kernel, key, allow_override=True)"
        kernel = td.fallthrough if passes else lambda x: x
        self.handles[number] = at_line(
            number, call, impl=self.library.impl, name=self.name, kernel=kernel, key=key
        )

    def fallback(self, number, key, passes):
        call = "fallback(kernel, key, allow_override=True)"
        kernel = td.fallthrough if passes else lambda op, keyset, args, kwargs: args
        self.handles[number] = at_line(number, call, fallback=self.library.fallback, kernel=kernel, key=key)

    def remove(self, number):
        self.handles.pop(number).remove()

    def table(self):
        table = td.dispatch_table(f"tandemdiff::{self.name}")
        return {key: self._row(key, table[key]) for key in KEYS}

    def _row(self, key, entry):
        registration = entry.registration
        if (
            registration is None or registration.site.own
        ):  # what tandem has of its own is not what is compared
            both = key.startswith(("Autograd", "Autocast")) or key in (
                "ADInplaceOrView",
                "Functionalize",
                "Meta",
            )
            return (entry.kind if entry.kind == "ambiguous" else "fallback" if both else "missing", "")
        kind = entry.kind
        if kind == "fallthrough":
            kind = self._kind_of_fallthrough(registration)
        return kind, registration.origin

    def _kind_of_fallthrough(self, registration):
        """PyTorch shows by what right a fallthrough is there, as of any kernel."""
        if registration.operator == "*":
            return "fallback"
        kinds = {
            "CompositeImplicit": "composite_implicit",
            "CompositeExplicit": "composite_explicit",
            "CompositeExplicitNonFunctional": "composite_explicit",
        }
        return kinds.get(registration.key, "kernel")


def play(rng, name, library):
    """One history on both; the tables are compared on the way and at its end."""
    sides = (Torch(name), Tandem(name, library))
    present, fallbacks = [], {}
    steps = rng.randrange(1, 14)
    for number in range(1, steps + 1):
        what = rng.random()
        key = None
        if what < 0.25 and (present or fallbacks):
            victim = rng.choice([*present, *fallbacks])
            for side in sides:
                side.remove(victim)
            present = [n for n in present if n != victim]
            fallbacks.pop(victim, None)
        elif what < 0.35 and (free := [k for k in FALLBACK_KEYS if k not in fallbacks.values()]):
            key = rng.choice(free)
            passes = rng.random() < 0.3
            for side in sides:
                side.fallback(number, key, passes)
            fallbacks[number] = key
        else:
            key = rng.choice([*REGISTRABLE, *list(ALIASES) * 4])
            passes = rng.random() < 0.15
            for side in sides:
                side.impl(number, key, passes)
            present.append(number)
        if rng.random() < 0.3 or number == steps:
            theirs, ours = (side.table() for side in sides)
            assert ours == theirs, (name, number)
    for number in (*present, *fallbacks):
        for side in sides:
            side.remove(number)
    assert not sides[0].libraries and not sides[1].handles


@pytest.mark.filterwarnings("ignore:Warning only once")
@pytest.mark.parametrize("part", range(4))
def test_tables_after_random_histories(part):
    rng = random.Random(part)
    theirs = torch.library.Library("tandemdiff", "FRAGMENT")
    with td.Library("tandemdiff", "FRAGMENT") as library:
        for number in range(HISTORIES // 4):
            name = f"f{part}_{number}"
            theirs.define(f"{name}(Tensor x) -> Tensor")
            library.define(f"{name}(Tensor x) -> Tensor")
            play(rng, name, library)
    theirs._destroy()


# What PyTorch's own model of its dispatcher says, too. It has XLA where the histories above have CUDA.
MODEL = {**ALIASES, "CUDA": "XLA", "AutogradCUDA": "AutogradXLA"}


@pytest.mark.parametrize(
    "keys",
    [
        ("CompositeImplicit",),
        ("CompositeExplicit",),
        ("CPU", "CompositeImplicit"),
        ("CPU", "CompositeExplicit", "Autograd"),
        ("CPU", "CompositeImplicit", "Autograd"),
        ("CUDA", "AutogradCPU", "CompositeImplicit"),
        ("CompositeExplicit", "CPU", "AutogradCUDA"),
    ],
    ids="+".join,
)
def test_tables_against_the_python_dispatcher(keys):
    from torch._python_dispatcher import PythonDispatcher

    model = PythonDispatcher()
    model.register([MODEL.get(key, key) for key in keys])
    rows = dict(
        re.match(r"(\w+)\s+(.*)", line).groups()
        for line in model.dispatchTable().splitlines()
        if re.match(r"\w+\s+\S", line)
    )
    with td.Library("tandemdiff", "FRAGMENT") as library:
        library.define("model(Tensor x) -> Tensor")
        for key in keys:
            library.impl("model", lambda x: x, key)
        table = td.dispatch_table("tandemdiff::model")
        for key in ("CPU", "CUDA", "AutogradCPU", "AutogradCUDA"):
            registration = table[key].registration
            mine = "" if registration is None or registration.site.own else registration.key_name
            theirs = rows.get(MODEL.get(key, key), "missing")
            assert theirs.startswith(f"fn_{MODEL.get(mine, mine)} ") if mine else "fn_" not in theirs, key
