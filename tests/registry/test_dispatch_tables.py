"""Dispatch tables compared with a model of the published rules, over random histories."""

import itertools

import pytest
import tandem as td
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tandem.errors import NoKernelError, RegistrationError

DENSE = ["CPU", "CUDA", "Meta", "PrivateUse1", "PrivateUse2"]
SPARSE = ["SparseCPU", "SparseCUDA", "SparseMeta"]
QUANTIZED = ["QuantizedCPU", "QuantizedCUDA", "QuantizedMeta"]
BACKENDS = DENSE + SPARSE + QUANTIZED
AUTOGRAD = ["AutogradOther", "AutogradCPU", "AutogradCUDA", "AutogradMeta", "AutogradPrivateUse1"]
GROUPS = {"Dense": DENSE, "Sparse": SPARSE, "Quantized": QUANTIZED}
COMPOSITES = ["CompositeImplicit", "CompositeExplicit", "CompositeExplicitNonFunctional"]
BEHIND = {
    "AutogradCPU": ["CPU"],
    "AutogradCUDA": ["CUDA"],
    "AutogradMeta": ["Meta"],
    "AutogradPrivateUse1": ["PrivateUse1"],
    "AutogradOther": ["PrivateUse2", *SPARSE, *QUANTIZED],
}
LAYERS = ["Tracer", "Functionalize", "Mode", "Profiler"]
KEYS = BACKENDS + AUTOGRAD + LAYERS
DTYPES = ["float32", "float64", "int32"]


class Model:
    """The rules, each slot for itself. A registration is (number, key, dtype or None, whether it falls through)."""

    def __init__(self):
        self.kernels, self.fallbacks = [], []

    def newest(self, key, dtype=None):
        exact = [r for r in self.kernels if r[1] == key and r[2] == dtype]
        plain = [r for r in self.kernels if r[1] == key and r[2] is None]
        return (exact or plain or [None])[-1]

    def own(self, key, dtype):
        group = next((name for name, keys in GROUPS.items() if key in keys), None)
        return self.newest(key, dtype) or (self.newest(group) if group else None)

    def slot(self, key, dtype=None):
        own = self.own(key, dtype)
        if own:
            return "kernel", own
        if key in BACKENDS and key not in SPARSE and self.newest("CompositeExplicitNonFunctional"):
            return "composite_explicit", self.newest("CompositeExplicitNonFunctional")
        if key in BACKENDS and self.newest("CompositeExplicit"):
            return "composite_explicit", self.newest("CompositeExplicit")
        behind = any(self.own(backend, dtype) for backend in BEHIND.get(key, ()))
        implicit = self.newest("CompositeImplicit")
        if implicit and key in [*BACKENDS, *AUTOGRAD, "Tracer"]:
            if key == "AutogradOther" and behind:
                return "ambiguous", None
            if not behind and not self.newest("CompositeExplicit"):
                return "composite_implicit", implicit
        if key in AUTOGRAD and self.newest("Autograd"):
            return "kernel", self.newest("Autograd")
        fallback = [r for r in self.fallbacks if r[1] == key]
        return ("fallback", fallback[-1]) if fallback else ("none", None)


class Histories(RuleBasedStateMachine):
    """Registrations and removals in any order, on one operator, with fallbacks for all."""

    def __init__(self):
        super().__init__()
        self.library = td.Library("tables", "DEF")
        self.library.define("f(Tensor x) -> Any")
        self.model, self.handles, self.fns = Model(), {}, {}
        self.numbers = itertools.count()

    def teardown(self):
        self.library.close()

    def kernel(self, number, passes):
        return td.fallthrough if passes else lambda *args: number

    @rule(key=st.sampled_from([*KEYS, "Autograd", *COMPOSITES, *GROUPS]), passes=st.booleans())
    def impl(self, key, passes):
        number = next(self.numbers)
        fn = self.kernel(number, passes)
        self.handles[number] = self.library.impl("f", fn, key, allow_override=True)
        self.fns[number] = fn
        self.model.kernels.append((number, key, None, passes))

    @rule(key=st.sampled_from(BACKENDS), dtype=st.sampled_from(DTYPES), passes=st.booleans())
    def impl_for_dtype(self, key, dtype, passes):
        number = next(self.numbers)
        fn = self.kernel(number, passes)
        self.handles[number] = self.library.impl("f", fn, key, dtypes=[dtype], allow_override=True)
        self.fns[number] = fn
        self.model.kernels.append((number, key, dtype, passes))

    @rule(key=st.sampled_from(["SparseCPU", "QuantizedCPU", "PrivateUse2", "Profiler"]), passes=st.booleans())
    def fallback(self, key, passes):
        number = next(self.numbers)
        fn = self.kernel(number, passes)
        self.handles[number] = self.library.fallback(fn, key, allow_override=True)
        self.fns[number] = fn
        self.model.fallbacks.append((number, key, None, passes))

    @rule(data=st.data())
    def remove(self, data):
        if self.handles:
            number = data.draw(st.sampled_from(sorted(self.handles)))
            self.handles.pop(number).remove()
            self.model.kernels = [r for r in self.model.kernels if r[0] != number]
            self.model.fallbacks = [r for r in self.model.fallbacks if r[0] != number]

    @invariant()
    def table_is_the_model(self):
        table = td.dispatch_table("tables::f")
        for key in KEYS:
            self.compare(key, table[key], None)
            for dtype in DTYPES:
                self.compare(key, table[key], dtype)

    def compare(self, key, entry, dtype):
        kind, wanted = self.model.slot(key, dtype)
        if dtype is None and entry.dtypes:
            entry = entry.fn.base
        entry = entry.dtypes.get(dtype, entry if not entry.dtypes else entry.fn.base)
        registration = entry.registration
        if wanted is None:
            assert registration is None or registration.site.own
            assert entry.kind == "ambiguous" if kind == "ambiguous" else entry.kind != "kernel"
            return
        assert registration.fn is self.fns[wanted[0]]
        assert entry.kind == ("fallthrough" if wanted[3] else kind)


Histories.TestCase.settings = settings(
    max_examples=15, stateful_step_count=30, suppress_health_check=list(HealthCheck)
)
TestHistories = Histories.TestCase


@pytest.fixture
def lib():
    with td.Library("slots", "DEF") as library:
        library.define("f(Tensor x) -> Any")
        yield library


X = td.asarray([1.0, 2.0])


def shown():
    """The operator's table, as data."""
    table = td.dispatch_table("slots::f")
    return {key: (entry.kind, entry.registration and entry.registration.name) for key, entry in table.items()}


def test_the_order_of_registration_does_not_matter(lib):
    parts = [("CPU", len), ("CompositeImplicit", max), ("Autograd", min), ("Sparse", sum)]
    tables = []
    for order in itertools.permutations(parts):
        handles = [lib.impl("f", fn, key) for key, fn in order]
        tables.append(shown())
        for handle in handles:
            handle.remove()
    assert all(table == tables[0] for table in tables)


def test_own_key_precedes_group_of_layouts(lib):
    lib.impl("f", len, "Sparse")
    lib.impl("f", max, "SparseCPU")
    lib.impl("f", sum, "CompositeExplicit")
    now = shown()
    assert now["SparseCPU"] == ("kernel", "max") and now["SparseCUDA"] == ("kernel", "len")
    assert now["QuantizedCPU"] == ("composite_explicit", "sum")


def test_pytorchs_names_of_the_aliases(lib):
    lib.impl("f", len, "CompositeImplicitAutograd")
    assert shown()["CPU"] == ("composite_implicit", "len")
    lib.impl("f", max, "CompositeExplicitAutograd")
    assert shown()["CPU"] == ("composite_explicit", "max")


def test_ambiguous_autograd_says_whom_it_would_bypass(lib):
    lib.impl("f", lambda x: x, "CompositeImplicit")
    with lib.impl("f", len, "SparseCPU"):
        assert td.dispatch_table("slots::f")["AutogradOther"].kind == "ambiguous"
        op = td.ops.slots.f.default
        with pytest.raises(
            NoKernelError, match=r"(?s)ambiguous at .*AutogradOther.*SparseCPU: len.*\"AutogradOther\""
        ):
            op.redispatch(td.DispatchKeySet("AutogradOther", "PrivateUse2"), X)
        assert op(X) is X  # the other keys are as clear as before
        with lib.impl("f", max, "AutogradOther"):
            assert shown()["AutogradOther"] == ("kernel", "max")
    assert shown()["AutogradOther"][0] == "composite_implicit"


def test_handles_are_removed_in_any_order(lib):
    fns = [len, max, min, sum]
    for order in itertools.permutations(range(4)):
        handles = [lib.impl("f", fn, "CPU", allow_override=True) for fn in fns]
        left = list(range(4))
        for number in order:
            handles[number].remove()
            left.remove(number)
            assert shown()["CPU"] == (("kernel", fns[left[-1]].__name__) if left else ("missing", None))


def test_fallthrough_masks_are_per_operator_and_per_key(lib):
    lib.define("g(Tensor x) -> Any")
    for name in "fg":
        lib.impl(name, lambda x: "cpu", "CPU")
        lib.impl(name, lambda x: "mode", "Mode")
    f, g = td.ops.slots.f.default, td.ops.slots.g.default
    with td.include_keys("Mode"), lib.impl("f", td.fallthrough, "Mode", allow_override=True):
        assert (f(X), g(X)) == ("cpu", "mode")
    with lib.impl("f", td.fallthrough, "CPU", allow_override=True):
        with pytest.raises(NoKernelError, match=r"(?s)no key left.*all of them fall through.*lib\.impl\("):
            f(X)
        assert g(X) == "cpu"


def test_a_fallback_that_falls_through(lib):
    lib.impl("f", lambda x: "cpu", "CPU")
    f = td.ops.slots.f.default
    seen = []

    def layer(op, keyset, args, kwargs):
        seen.append(op.name)
        return op.redispatch(keyset & ~td.DispatchKeySet("Profiler").bits, *args, **kwargs)

    with td.include_keys("Profiler"), lib.fallback(layer, "Profiler", allow_override=True):
        assert f(X) == "cpu" and seen == ["slots::f"]
        with lib.fallback(td.fallthrough, "Profiler", allow_override=True):
            assert f(X) == "cpu" and seen == ["slots::f"]
        f(X)
    assert seen == ["slots::f"] * 2


# -- kernels for some dtypes -------------------------------------------------------------------------------------------
def test_kernels_by_dtype(lib):
    lib.define("pair(Tensor a, Tensor b) -> str")
    lib.impl("pair", lambda a, b: "any", "CPU")
    pair = td.ops.slots.pair.default

    def ask(*dtypes):
        return pair(*(td.asarray([1, 0], dtype=dtype) for dtype in dtypes))

    with lib.impl("pair", lambda a, b: "single", "CPU", dtypes=[td.float32]):
        assert ask("float32", "float32") == "single"
        assert ask("float32", "int64") == "single", "what is not floating-point does not count beside what is"
        assert ask("float32", "float64") == ask("int32", "int32") == "any"
        with lib.impl("pair", lambda a, b: "newer", "CPU", dtypes=["float32", "int32"], allow_override=True):
            assert ask("float32", "float32") == ask("int32", "int32") == "newer"
        assert ask("int32", "int32") == "any"
        entry = td.dispatch_table("slots::pair")["CPU"]
        assert entry.kind == "kernel" and list(entry.dtypes) == ["float32"]
        assert "float32" in repr(td.dispatch_table("slots::pair"))
    assert not td.dispatch_table("slots::pair")["CPU"].dtypes
    assert ask("float32", "float32") == "any"


def test_kernels_by_dtype_alone(lib):
    lib.impl("f", lambda x: "mine", "CPU", dtypes=[td.float32])
    f = td.ops.slots.f.default
    assert f(X) == "mine"
    with pytest.raises(NoKernelError, match="it has one for float32"):
        f(td.asarray([1]))
    with lib.impl("f", lambda x: "composite", "CompositeImplicit"):
        assert f(X) == "mine" and f(td.asarray([1])) == "composite"
        table = td.dispatch_table("slots::f")
        assert table["AutogradCPU"].kind == "composite_implicit"  # but not for float32, which has a kernel
        assert table["AutogradCPU"].dtypes["float32"].kind == "fallback"
    with (
        lib.impl("f", td.fallthrough, "CPU", dtypes=[td.float32], allow_override=True),
        pytest.raises(NoKernelError),
    ):
        f(X)
    assert f.call_for_key("CPU", X) == f.get_kernel("CPU")(X) == "mine"


@pytest.mark.parametrize("key", ["AutogradCPU", "CompositeImplicit", "Mode", "Dense"])
def test_kernels_by_dtype_are_for_backends(lib, key):
    with pytest.raises(RegistrationError, match="backend"):
        lib.impl("f", len, key, dtypes=[td.float32])


def test_dtypes_are_dtypes(lib):
    for wrong in ("float32", td.float32, [], ["nothing"], [3]):
        with pytest.raises(td.errors.TandemError, match="dtype"):
            lib.impl("f", len, "CPU", dtypes=wrong)
    assert not td.registrations(op="slots::f")


# -- what is printed ---------------------------------------------------------------------------------------------------
def test_the_table_prints_where_everything_comes_from(lib):
    lib.impl("f", len, "CompositeImplicit")
    lib.impl("f", max, "CPU")
    lib.impl("f", min, "CPU", allow_override=True)
    lib.impl("f", sum, "CPU", dtypes=["int8"])
    table = td.dispatch_table("slots::f")
    text = repr(table)
    assert text.startswith("slots::f(Tensor x) -> Any\ndefined at ") and __file__ in text
    rows = [line.split() for line in text.splitlines()]
    assert ["CPU", "kernel", "min"] in [row[:3] for row in rows]
    assert ["int8", "kernel", "sum"] in [row[:3] for row in rows]
    assert [r.name for r in table.registrations] == ["sum", "min", "max", "len"]
    below = text.partition("registrations:")[2].splitlines()[1:]
    assert "for int8" in below[0] and "shadowed" in below[2] and "alias" in below[3]
    assert "shadowed" not in below[1] and "[DEF slots]" in below[1]


def test_no_kernel_error_shows_arguments_keys_and_line(lib):
    lib.impl("f", len, "SparseCPU")
    with pytest.raises(NoKernelError) as caught:
        td.ops.slots.f(X)
    text = str(caught.value)
    assert "float32[2] on cpu (CPU)" in text and "key set:     CPU" in text
    assert f"SparseCPU: len, {__file__}:" in text
    line = text.splitlines()[-1].partition("to add one:  ")[2]
    names = {"td": td, "kernel": lambda x: "fixed"}
    exec(line, names)
    assert td.ops.slots.f(X) == "fixed"
    names.clear()
    with pytest.raises(NoKernelError):
        td.ops.slots.f(X)
