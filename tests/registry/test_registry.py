"""Libraries, tables and dispatch: registered kernels run, removed ones do not, tables name the kernel of a key."""

import threading

import pytest
import tandem as td
from tandem.errors import (
    ArgumentError,
    NoKernelError,
    RegistrationError,
    UnknownOperatorError,
    ValueArgumentError,
)
from tandem.registry.dispatch import keys, state
from tandem.registry.operator import fallthrough


@pytest.fixture
def lib():
    with td.Library("tests", "DEF") as library:
        yield library


X = [1.0, 2.0]


def test_define_implement_call_remove(lib):
    definition = lib.define("twice(Tensor x) -> Any")
    kernel = lib.impl("twice", lambda x: td.add(x, x), "CPU")
    assert td.ops.tests.twice(td.asarray(X)).tolist() == [2.0, 4.0]
    kernel.remove()
    with pytest.raises(NoKernelError, match="no kernel for the dispatch key CPU") as caught:
        td.ops.tests.twice(td.asarray(X))
    assert "float32[2]" in str(caught.value) and ".impl(" in str(caught.value)
    definition.remove()
    with pytest.raises(UnknownOperatorError):
        td.ops.tests.twice  # noqa: B018


def test_implementation_may_precede_definition(lib):
    lib.impl("later", lambda x: x, "CPU")
    lib.define("later(Tensor x) -> Any")
    x = td.asarray(X)
    assert td.ops.tests.later(x) is x


def test_newest_kernel_wins_and_the_older_returns(lib):
    lib.define("which(Tensor x) -> Any")
    lib.impl("which", lambda x: 1, "CPU")
    with lib.impl("which", lambda x: 2, "CPU", allow_override=True):
        assert td.ops.tests.which(td.asarray(X)) == 2
    assert td.ops.tests.which(td.asarray(X)) == 1


def test_second_definition_shows_both_schemas(lib):
    lib.define("f(Tensor x) -> Any")
    with pytest.raises(RegistrationError, match=r"(?s)first: .*f\(Tensor x\).*new: .*f\(Tensor y\)"):
        lib.define("f(Tensor y) -> Any")


def test_impl_library_defines_nothing():
    with pytest.raises(RegistrationError, match="IMPL"):
        td.Library("tests2", "IMPL").define("f(Tensor x) -> Any")
    with pytest.raises(RegistrationError, match="kind"):
        td.Library("tests2", "WHAT")


def test_precedence_in_a_slot(lib):
    lib.define("p(Tensor x) -> str")

    def kinds(*names):
        table = td.dispatch_table("tests::p")
        return tuple(table[name].kind for name in names)

    lib.impl("p", lambda x: "implicit", "CompositeImplicit")
    assert kinds("CPU", "AutogradCPU", "Tracer") == ("composite_implicit",) * 3
    explicit = lib.impl("p", lambda x: "explicit", "CompositeExplicit")
    assert kinds("CPU") == ("composite_explicit",)
    assert kinds("AutogradCPU") != ("composite_implicit",)
    own = lib.impl("p", lambda x: "own", "CPU")
    assert kinds("CPU", "CUDA") == ("kernel", "composite_explicit")
    assert td.ops.tests.p(td.asarray(X)) == "own"
    own.remove()
    explicit.remove()
    assert td.ops.tests.p(td.asarray(X)) == "implicit"


def test_fallthrough_passes_on(lib):
    lib.define("f(Tensor x) -> str")
    lib.impl("f", lambda x: "cpu", "CPU")
    lib.impl("f", lambda x: "mode", "Mode")
    x = td.asarray(X)
    with td.include_keys("Mode"):
        assert td.ops.tests.f(x) == "mode"
        with lib.impl("f", fallthrough, "Mode", allow_override=True):
            assert td.ops.tests.f(x) == "cpu"
        with td.exclude_keys("Mode"):
            assert td.ops.tests.f(x) == "cpu"


def test_fallback_serves_every_operator(lib):
    seen = []

    def count(op, keyset, args, kwargs):
        seen.append(op.schema.name)
        return op.redispatch(keyset & keys.below(keys.DispatchKey.Mode), *args, **kwargs)

    with lib.fallback(count, "Mode"), td.include_keys("Mode"):
        td.exp(td.asarray(X))
    td.exp(td.asarray(X))
    assert seen == ["exp"]


def test_guards_are_thread_local_and_restored_after_exception():
    before = (state.state.include, state.state.exclude)
    with pytest.raises(ZeroDivisionError), td.include_keys("Mode"):
        other = []
        thread = threading.Thread(target=lambda: other.append(state.state.include))
        thread.start()
        thread.join()
        assert other == [0]
        raise ZeroDivisionError
    assert (state.state.include, state.state.exclude) == before


def test_unknown_key_and_operator():
    with pytest.raises(ValueArgumentError, match="AutogradCPU"):
        td.Library("tests3").impl("f", lambda: None, "Nope")
    with pytest.raises(AttributeError, match="no operator td::ad"):
        td.ops.td.ad  # noqa: B018
    with pytest.raises(UnknownOperatorError):
        td.dispatch_table("nothing_of_that_name")


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "needs argument 'x'"),
        ((X,), {}, "'x' must be a Tensor"),
        ((td.asarray(X), 1, 2), {}, "positional arguments"),
        ((td.asarray(X),), {"z": 1}, "no argument 'z'"),
        ((td.asarray(X),), {"x": td.asarray(X)}, "twice"),
        ((td.asarray(X), 1.5), {}, "'n' must be an int"),
        ((td.asarray(X), True), {}, "'n' must be an int"),
        ((td.asarray(X),), {"b": 1}, "'b' must be a bool"),
    ],
)
def test_calls_are_checked_against_the_schema(lib, args, kwargs, message):
    lib.define("f(Tensor x, int n=0, *, bool b=False) -> Any")
    lib.impl("f", lambda x, n, *, b: x, "CPU")
    with pytest.raises(ArgumentError, match=message):
        td.ops.tests.f(*args, **kwargs)


def test_defaults_and_lists_are_filled_in(lib):
    lib.define("f(Tensor x, int[2] k=1, *, ScalarType? dtype=None) -> Any")
    lib.impl("f", lambda x, k, *, dtype: (k, dtype), "CPU")
    x = td.asarray(X)
    assert td.ops.tests.f(x) == ((1, 1), None)
    assert td.ops.tests.f(x, 3, dtype="int8") == ((3, 3), td.int8)
    assert td.ops.tests.f(x, [1, 2])[0] == (1, 2)


def test_dispatch_trace_nests():
    lines = []
    with td.show_dispatch_trace(lines.append):
        td.softmax(td.asarray(X))
    assert "td::softmax" in lines[0] and "composite_implicit" in lines[0]
    assert all(line.startswith("  ") for line in lines[1:])
    assert any("td::exp" in line and "key=CPU" in line for line in lines)


def test_table_prints_keys_and_origins():
    text = repr(td.dispatch_table("add"))
    assert "add.Tensor(Tensor self, Tensor other)" in text and "CPU" in text and ".py:" in text


def test_key_sets():
    both = td.DispatchKeySet("CPU") | td.DispatchKeySet("Autograd")
    assert both.highest.name == "AutogradPrivateUse1" and "AutogradCPU" in both
    assert (both - td.DispatchKeySet("Autograd")) == td.DispatchKeySet("CPU")
    with pytest.raises(ValueArgumentError, match="empty"):
        td.DispatchKeySet().highest  # noqa: B018
