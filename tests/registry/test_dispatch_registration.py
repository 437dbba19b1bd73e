"""Libraries: permissions, replacement, removal and notification of registrations."""

import gc
import sys
import types

import pytest
import tandem as td
from helpers import smallest_block_growth
from tandem.errors import ArgumentError, NoKernelError, RegistrationError, UnknownOperatorError
from tandem.registry import inventory
from tandem.registry.operator import lock, operators

X = td.asarray([1.0, 2.0])


@pytest.fixture
def lib():
    with td.Library("rules", "DEF") as library:
        library.define("f(Tensor x) -> Any")
        yield library


def f(x=X):
    return td.ops.rules.f.default(x)


def run_cell(text, name, **names):
    """Run a notebook's cell: its file name is another one at each execution of IPython."""
    names["__name__"] = "__main__"
    exec(compile(text, name, "exec"), names)
    return names


# -- duplicates --------------------------------------------------------------------------------------------------------
def test_a_duplicate_names_both_places(lib):
    lib.impl("f", lambda x: 1, "CPU")
    with pytest.raises(
        RegistrationError, match=r"(?s)rules::f has a kernel for CPU already.*first: .*new: "
    ) as caught:
        lib.impl("f", len, "CPU")
    assert str(caught.value).count(__file__) == 2 and "allow_override=True" in str(caught.value)
    assert f() == 1, "the failed registration has changed nothing"
    lib.impl("f", lambda x: 2, "AutogradCPU")
    lib.impl("f", lambda x: 3, "CompositeImplicit")
    lib.impl("f", lambda x: 4, "CPU", dtypes=["int8"])
    with pytest.raises(RegistrationError, match="int8"):
        lib.impl("f", len, "CPU", dtypes=["int8", "int16"])
    lib.impl("f", len, "CPU", dtypes=["int16"])


def test_a_duplicate_fallback(lib):
    with lib.fallback(lambda op, keyset, args, kwargs: 1, "QuantizedMeta"):
        with pytest.raises(RegistrationError, match="fallback for QuantizedMeta already"):
            lib.fallback(print, "QuantizedMeta")
        lib.fallback(print, "QuantizedMeta", allow_override=True).remove()
    lib.fallback(print, "QuantizedMeta").remove()


def test_tandems_own_kernels_may_be_shadowed():
    with td.Library("td", "IMPL") as library:
        mine = td.ones(1)
        library.impl("exp", lambda self: mine, "CPU")
        assert td.exp(X) is mine
        with pytest.raises(RegistrationError):
            library.impl("exp", lambda self: X, "CPU")
    assert td.exp(X) is not mine


def test_a_second_definition_says_in_what_it_differs(lib):
    with pytest.raises(
        RegistrationError, match=r"argument 1 is `Tensor x` there and `Tensor\? x` in the new"
    ) as caught:
        lib.define("f(Tensor? x) -> Any")
    assert str(caught.value).count(__file__) == 2
    with pytest.raises(
        RegistrationError, match="argument 2 is `nothing` there and `int n=1` in the new one; return 1"
    ):
        lib.define("f(Tensor x, int n=1) -> float")
    with pytest.raises(RegistrationError, match="the same"):
        lib.define("f(Tensor x) -> Any")


def test_one_library_defines_a_namespace():
    with td.Library("sole", "DEF"):
        words = r"has a 'DEF' library, created at .*test_dispatch_registration.*FRAGMENT"
        with pytest.raises(RegistrationError, match=words):
            td.Library("sole", "DEF")
        with td.Library("sole", "FRAGMENT") as more:
            more.define("g(Tensor x) -> Any")
    with td.Library("sole", "DEF"):
        pass
    kept = td.Library("sole", "DEF")
    del kept
    gc.collect()
    td.Library("sole", "DEF").close()
    with pytest.raises(ArgumentError, match="namespace"):
        td.Library(3)


# -- run again ---------------------------------------------------------------------------------------------------------
CELL = """
lib = td.Library("cell", "DEF")
lib.define("f(Tensor x) -> Any")
@lib.impl("f", "CPU")
def kernel(x):
    return {value}
handle = lib.impl("f", lambda x: 0, "CUDA")
"""


@pytest.mark.parametrize(
    "name", ["<ipython-input-{}-abc>", "/tmp/ipykernel_77/{}.py", "<stdin>", "/some/module.py"]
)
def test_a_cell_run_again_replaces_what_it_registered(name):
    names = run_cell(CELL.format(value=0), name.format(0), td=td)
    for value in range(1, 5):
        former = names["handle"]
        names = run_cell(CELL.format(value=value), name.format(value), td=td, before=names["lib"])
        assert td.ops.cell.f(X) == value
        assert len(td.registrations(op="cell::f")) == 2
        former.remove()
        names["before"].close()
        assert len(td.registrations(op="cell::f")) == 2, "what was replaced takes nothing with it"
    names["lib"].close()
    assert not td.registrations(op="cell::f") and "cell::f" not in operators


def test_a_cell_that_only_registers_a_kernel(lib):
    cell = "def kernel(x):\n    return {}\nlib.impl('f', kernel, 'CPU')"
    for value in range(4):
        run_cell("\n" * value + cell.format(value), f"<ipython-input-{value}>", lib=lib)
        assert f() == value and len(td.registrations(op="rules::f")) == 1
    run_cell(
        cell.format(9) + "\nlib.impl('f', len, 'CPU', allow_override=True)", "<ipython-input-9>", lib=lib
    )
    assert [r.name for r in td.registrations(op="rules::f")] == ["kernel", "len"]
    with pytest.raises(RegistrationError):
        run_cell("lib.impl('f', max, 'CPU')", "<ipython-input-10>", lib=lib)
    run_cell(
        cell.format(5) + "\nlib.impl('f', len, 'CPU', allow_override=True)", "<ipython-input-11>", lib=lib
    )
    assert [r.name for r in td.registrations(op="rules::f")] == ["kernel", "len"]


def test_rerun_cell_redefines_operator(lib):
    define = "lib.define('g(Tensor x{}) -> int')"
    run_cell(define.format(""), "<ipython-input-1>", lib=lib)
    lib.impl("g", lambda x, n=0: n, "CPU")
    held = td.ops.rules.g.default
    run_cell(define.format(""), "<ipython-input-2>", lib=lib)
    assert td.ops.rules.g.default is held and held(X) == 0
    run_cell(define.format(", int n=7"), "<ipython-input-3>", lib=lib)
    assert td.ops.rules.g(X) == 7
    with pytest.raises(UnknownOperatorError, match=r"no longer defined.*td\.ops\.rules\.g\.default"):
        held(X)


def test_the_same_lines_of_a_function_replace(lib):
    def install(value):
        return lib.impl("f", lambda x: value, "CPU")

    handles = [install(1), install(2)]
    assert f() == 2 and len(td.registrations(op="rules::f")) == 1
    handles[0].remove()
    assert f() == 2
    handles[1].remove()
    with pytest.raises(NoKernelError):
        f()


# -- what is taken back ------------------------------------------------------------------------------------------------
def test_a_collected_library_takes_back_what_it_registered():
    library = td.Library("gone", "DEF")
    library.define("f(Tensor x) -> Any")
    handle = library.impl("f", lambda x: 1, "CPU")
    held = td.ops.gone.f.default
    assert held(X) == 1
    del library
    gc.collect()
    with pytest.raises(UnknownOperatorError):
        held(X)
    assert not td.registrations(op="gone::f")
    handle.remove()


def test_a_dropped_handle_takes_back_nothing(lib):
    lib.impl("f", lambda x: 1, "CPU")
    gc.collect()
    assert f() == 1


def test_library_collected_during_registration(lib):
    other = td.Library("rules", "IMPL")
    other.impl("f", lambda x: 1, "CPU")
    cycle = [other]
    cycle.append(cycle)
    del other
    with lock:
        del cycle
        gc.collect()
        assert len(td.registrations(op="rules::f")) == 1, "not while somebody registers"
    assert not td.registrations(op="rules::f")


def test_registering_does_not_pile_up(lib):
    def cycle(times):
        for _ in range(times):
            lib.impl("f", lambda x: 1, "CPU").remove()
            lib.define("h(Tensor x) -> Any").remove()
            td.Library("rules", "IMPL").impl("f", lambda x: 1, "CUDA")

    cycle(20)
    growth = smallest_block_growth(lambda: cycle(40))
    assert growth < 40, "one block that is kept in each cycle is too much"
    assert len(lib._handles) == 1, "the definition of the fixture"


def test_registering_fallbacks_does_not_pile_up(lib):
    def cycle():
        for _ in range(3):  # each computes the tables of all operators
            lib.fallback(print, "QuantizedMeta").remove()

    cycle()
    growth = smallest_block_growth(cycle)
    assert growth < 3, "one block that is kept in each cycle is too much"


def test_operator_whose_definition_is_removed(lib):
    definition = lib.define("late(Tensor x) -> Any")
    lib.impl("late", lambda x: 1, "CPU")
    held = td.ops.rules.late.default
    assert held(X) == 1
    definition.remove()
    with pytest.raises(UnknownOperatorError, match="no longer defined"):
        held(X)
    with pytest.raises(UnknownOperatorError):
        held.redispatch(td.DispatchKeySet("CPU"), X)
    lib.define("late(Tensor x) -> Any")
    assert td.ops.rules.late(X) == 1


def test_kernel_handle_is_invalid_after_deregistration(lib):
    handle = lib.impl("f", lambda x: 1, "CPU")
    kernel = td.ops.rules.f.default.get_kernel("CPU")
    with lib.impl("f", lambda x: 2, "CPU", allow_override=True):
        assert (kernel(X), f()) == (1, 2), "what is shadowed can still be called"
    handle.remove()
    with pytest.raises(NoKernelError, match="has been removed"):
        kernel(X)


# -- ways to call ------------------------------------------------------------------------------------------------------
def test_kernels_that_take_the_key_set(lib):
    lib.define("g(Tensor x, int n=1, *, bool b=False) -> Any")

    @lib.impl("g", "Mode", with_keyset=True)
    def mode(keyset, x, n, *, b):
        below = td.DispatchKeySet("CPU", "AutogradCPU").bits & keyset
        return "mode", td.ops.rules.g.default.redispatch(below, x, n=n, b=b)

    lib.impl("g", lambda x, n, *, b: (n, b), "CPU")
    with td.include_keys("Mode"):
        assert td.ops.rules.g(X, 3, b=True) == ("mode", (3, True))
    with pytest.raises(ArgumentError, match="with_keyset"):
        lib.impl("g", len, "CUDA", boxed=True, with_keyset=True)
    assert td.ops.rules.g.default.call_for_key("Mode", X) == ("mode", (1, False))


def test_redispatch_checks_its_arguments(lib):
    lib.impl("f", lambda x: 1, "CPU")
    op = td.ops.rules.f.default
    with pytest.raises(ArgumentError, match="argument 'x'"):
        op.redispatch(td.DispatchKeySet("CPU"))
    for wrong in ("CPU", -1, 1 << 60, True, None):
        with pytest.raises(ArgumentError, match="key set"):
            op.redispatch(wrong, X)
    with pytest.raises(NoKernelError, match="no key left"):
        op.redispatch(0, X)
    with pytest.raises(NoKernelError, match="missing"):
        op.get_kernel("SparseCUDA")
    with pytest.raises(NoKernelError):
        op.call_for_key("CompositeImplicit", X)


# -- who is told -------------------------------------------------------------------------------------------------------
def test_listeners_receive_existing_and_new_registrations(lib):
    lib.impl("f", len, "CPU")
    heard = []

    def listen(event):
        if event.operator.startswith("rules::") or (event.operator == "*" and event.registration.fn is print):
            heard.append((event.action, event.operator, event.registration and event.registration.key_name))

    handle = td.on_registration(listen)
    assert heard == [("define", "rules::f", None), ("impl", "rules::f", "CPU")]
    heard.clear()
    with lib.define("g(Tensor x) -> Any"), lib.impl("g", max, "CUDA"), lib.fallback(print, "QuantizedMeta"):
        pass
    assert heard == [
        ("define", "rules::g", None),
        ("impl", "rules::g", "CUDA"),
        ("impl", "*", "QuantizedMeta"),
        ("remove", "*", "QuantizedMeta"),
        ("remove", "rules::g", "CUDA"),
        ("undefine", "rules::g", None),
    ]
    handle.remove()
    handle.remove()
    lib.impl("f", max, "CUDA")
    assert len(heard) == 6
    with pytest.raises(ArgumentError, match="function"):
        td.on_registration(3)


def test_failing_listener_does_not_stop_registration(lib):
    def listen(event):
        if event.operator == "rules::f" and event.action == "impl":
            raise ZeroDivisionError("no")

    with (
        td.on_registration(listen),
        pytest.warns(RuntimeWarning, match="ZeroDivisionError: no at impl of rules::f"),
    ):
        lib.impl("f", lambda x: 1, "CPU")
    assert f() == 1


def test_dangling_implementations(lib):
    def dangling():  # programs in the docs may have left some of other namespaces
        return [r for r in td.dangling_impls() if r.operator.startswith("rules::")]

    with lib.impl("nowhere", len, "CPU"):
        assert [r.operator for r in dangling()] == ["rules::nowhere"]
        with lib.define("nowhere(Tensor x) -> Any"):
            assert not dangling()
        assert dangling()[0].origin.startswith(__file__)
    assert not dangling()


def test_registrations_of_a_key(lib):
    lib.impl("f", len, "SparseCUDA")
    with lib.fallback(print, "SparseMeta"):
        assert [r.name for r in td.registrations("SparseMeta")] == ["print"]
        assert [r.operator for r in td.registrations("SparseMeta", "*")] == ["*"]
    (only,) = td.registrations("SparseCUDA", "rules::f")
    assert only.fn is len and only.library == "DEF rules" and f"{__file__}:" in repr(only)
    assert {r.operator for r in td.registrations("CPU", "add")} == {"td::add.Tensor"}
    with pytest.raises(ArgumentError):
        td.registrations("CPU", 3)


def test_names_without_kernels_are_forgotten(lib):
    lib.impl("unheard_of", len, "CPU").remove()
    assert "rules::unheard_of" not in inventory.implementations


def test_a_module_that_is_reloaded(tmp_path, monkeypatch):
    (tmp_path / "some_ops.py").write_text(
        "import tandem as td\n"
        "lib = td.Library('reloaded', 'DEF')\n"
        "lib.define('f(Tensor x) -> int')\n"
        "lib.impl('f', lambda x: 1, 'CPU', allow_override=True)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import importlib

    module = importlib.import_module("some_ops")
    assert isinstance(module, types.ModuleType)
    for _ in range(3):
        importlib.reload(module)
        assert td.ops.reloaded.f(X) == 1 and len(td.registrations(op="reloaded::f")) == 1
    module.lib.close()
    del sys.modules["some_ops"]
