"""Regressions of the dispatcher: invalid input, guards closed out of order, modules run again."""

import asyncio
import importlib
import pickle
import subprocess
import sys
import threading

import pytest
import tandem as td

HUGE = 10**5000
HOLDS_ITSELF: list = []
HOLDS_ITSELF.append(HOLDS_ITSELF)
SCHEMA = td.parse_schema("f(Tensor(a) x) -> Tensor(a)")


def annotated(x: td.Tensor) -> td.Tensor:
    return x


BAD = {
    "table of a list in itself": lambda: td.dispatch_table(HOLDS_ITSELF),
    "table of a huge int": lambda: td.dispatch_table(HUGE),
    "row of a huge int": lambda: td.dispatch_table("add")[HUGE],
    "kernel of a huge int": lambda: td.ops.td.exp.default.get_kernel(HUGE),
    "redispatch of a list in itself": lambda: td.exp.redispatch(HOLDS_ITSELF, 1.0),
    "key set of a huge int": lambda: td.DispatchKeySet(HUGE),
    "include a huge int": lambda: td.include_keys(HUGE),
    "force an int": lambda: td.force_keys(include=3),
    "force None": lambda: td.force_keys(exclude=None),
    "registrations of a huge int": lambda: td.registrations(HUGE),
    "listener that is a huge int": lambda: td.on_registration(HUGE),
    "schema of a huge int": lambda: td.infer_schema(HUGE),
    "mutates nothing iterable": lambda: td.infer_schema(annotated, mutates_args=None),
    "mutates a list": lambda: td.infer_schema(annotated, mutates_args=[[]]),
    "library of a huge int": lambda: td.Library(HUGE),
    "library without a name": lambda: td.Library("", "DEF"),
    "library of two names": lambda: td.Library("a::b", "DEF"),
    "alias of an int": lambda: SCHEMA.may_alias(1, "x"),
    "alias of a schema": lambda: SCHEMA.may_alias(SCHEMA, "x"),
    "compatible with a text": lambda: SCHEMA.is_backward_compatible_with("f(Tensor x) -> Any"),
    "incompatible with None": lambda: SCHEMA.incompatibilities(None),
    "many lists": lambda: td.parse_schema(f"f(Tensor{'[]' * 5000} x) -> ()"),
    "many optionals": lambda: td.parse_schema(f"f(Tensor{'?' * 5000} x) -> ()"),
    "many brackets": lambda: td.parse_schema(f"f(int[] x={'[' * 5000}1{']' * 5000}) -> ()"),
    "list size of many digits": lambda: td.parse_schema(f"f(int[{'9' * 5000}] x) -> ()"),
    "list size in other digits": lambda: td.parse_schema("f(int[\u0661] x) -> ()"),
    "default in other digits": lambda: td.parse_schema("f(int x=\u0661) -> ()"),
    "exp of a list in itself": lambda: td.exp(HOLDS_ITSELF),
    "asarray of a list in itself": lambda: td.asarray(HOLDS_ITSELF),
    "axis that is a huge int": lambda: td.sum(td.zeros(2), axis=HUGE),
    "shape that is a huge int": lambda: td.zeros(HUGE),
    "unknown operator unpickled": lambda: pickle.loads(
        pickle.dumps(td.ops.td.add.Tensor).replace(b"td::add.Tensor", b"td::adq.Tensor")
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_explained(what):
    with pytest.raises(td.errors.TandemError) as caught:
        BAD[what]()
    assert 20 < len(str(caught.value)) < 25_000


@pytest.mark.parametrize("name", ["", "a b", "f.", "f..o", "f.default", ".x", "other::f", "\u00e9"])
def test_kernels_of_impossible_names_are_refused(name):
    with td.Library("regress", "DEF") as lib:
        lib.define("f(Tensor x) -> Any")
        with pytest.raises((td.errors.SchemaError, td.errors.RegistrationError)):
            lib.impl(name, lambda x: x, "CPU")
        assert not [r for r in td.dangling_impls() if r.operator.startswith("regress")]


def test_kernels_for_overload_name_and_operator_name():
    with td.Library("regress", "DEF") as lib:
        lib.define("f(Tensor x) -> Any")
        with lib.impl("regress::f", lambda x: 1, "CPU"):
            assert td.ops.regress.f(2.0) == 1
        with lib.impl(td.ops.regress.f.default, lambda x: 3, "CPU"):
            assert td.ops.regress.f(2.0) == 3


def test_dtypes_must_be_a_sequence():
    with td.Library("regress", "DEF") as lib:
        lib.define("f(Tensor x) -> Any")
        for dtypes in (1, 1.5, int, HUGE):
            with pytest.raises(td.errors.ArgumentError, match="dtypes is a sequence"):
                lib.impl("f", lambda x: x, "CPU", dtypes=dtypes)


# -- guards ------------------------------------------------------------------------------------------------------------
def state():
    snapshot = td.dispatch_state()
    return snapshot.include.bits, snapshot.exclude.bits


@pytest.mark.parametrize(
    "make",
    [td.exclude_keys, td.include_keys, lambda key: td.force_keys(include=key)],
    ids=["exclude", "include", "force"],
)
def test_a_guard_may_be_entered_again(make):
    guard = make("Mode")
    with guard:
        once = state()
        with guard:
            assert state() == once
        assert state() == once
    assert state() == (0, 0) != once
    seen = []

    def work():
        with guard:
            seen.append(state())
        seen.append(state())

    with guard:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [once, (0, 0)]
    assert guard(state)() == once


@pytest.mark.parametrize(
    "make",
    [lambda: td.exclude_keys("Autograd"), lambda: td.include_keys("Mode"), td.no_grad],
    ids=["ex", "in", "no_grad"],
)
def test_blocks_of_generators_end_in_any_order(make):
    def generator():
        with make():
            yield

    running = generator()
    next(running)
    with td.exclude_keys("Profiler"):
        inside = state()
        running.close()
        assert state() != inside
        assert state() == (0, td.DispatchKeySet("Profiler").bits)
    assert state() == (0, 0)


def test_key_sets_are_taken_where_keys_are():
    keys = td.DispatchKeySet("Mode", "Profiler")
    assert td.DispatchKeySet(keys, "CPU") == td.DispatchKeySet("CPU", "Mode", "Profiler")
    with td.exclude_keys(keys):
        assert state() == (0, keys.bits)
    with pytest.raises(TypeError):
        keys | "CPU"


# -- definitions that go and come --------------------------------------------------------------------------------------
def test_operator_removed_before_first_call():
    code = (
        "import tandem as td\n"
        "lib = td.Library('gone', 'DEF')\n"
        "with lib.define('f(Tensor x) -> Tensor'):\n"
        "    f = td.ops.gone.f.default\n"
        "try: f(1.0)\n"
        "except td.errors.UnknownOperatorError as fault: print('no longer defined' in str(fault))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "True", done.stderr[-500:]


MODULE = """
import tandem as td
lib = td.Library("reloaded", "DEF")
lib.define("f(Tensor x) -> Any")

@lib.impl("f", "CPU")
def f(x):
    return {}
"""


def test_a_module_that_was_edited_is_run_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "edited_module.py"
    file.write_text(MODULE.format(1))
    import edited_module

    packet, function = td.ops.reloaded.f, td.ops.reloaded.f.default
    try:
        for number, before in enumerate(["", "# other\n# lines\n", "\n" * 9], 11):
            file.write_text(before + MODULE.format(number))
            importlib.invalidate_caches()
            importlib.reload(edited_module)
            assert packet(1.0) == function(1.0) == td.ops.reloaded.f(1.0) == number
            assert len(td.registrations(op="reloaded::f")) == 1
    finally:
        edited_module.lib.close()
    with pytest.raises(td.errors.UnknownOperatorError):
        function(1.0)


def test_suggested_fix_works_where_all_keys_fall_through():
    x = td.asarray([1.0, 2.0])
    with td.Library("regress", "DEF") as lib:
        lib.define("f(Tensor x) -> Any")
        lib.impl("f", td.fallthrough, "CPU")
        with pytest.raises(td.errors.NoKernelError) as caught:
            td.ops.regress.f(x)
        text = str(caught.value)
        assert "float32[2] on cpu (CPU)" in text
        line = next(line for line in text.splitlines() if "to add one" in line).partition(":")[2]
        scope = {"td": td, "kernel": lambda x: 5}
        exec(line.strip(), scope)
        assert td.ops.regress.f(x) == 5
        scope["lib"].close()


def test_a_trace_may_be_shown_again():
    lines: list[str] = []
    shown = td.show_dispatch_trace(lines.append)
    for _ in range(2):
        with shown:
            td.exp(td.asarray([1.0]))
    assert len(lines) == 2


def test_missing_kernel_error_lists_existing_ones():
    with td.Library("regress", "DEF") as lib:
        lib.define("f(Tensor x) -> Any")
        lib.impl("f", len, "SparseCPU")
        for key in ("CPU", "Autograd", "CompositeExplicit"):
            with pytest.raises(td.errors.NoKernelError, match="SparseCPU: len") as caught:
                td.ops.regress.f.default.get_kernel(key)
            assert f'lib.impl("f", kernel, "{key}")' in str(caught.value)


# -- the profiler ------------------------------------------------------------------------------------------------------
def test_only_the_profiler_that_runs_ends():
    x = td.asarray([1.0])
    other = td.profiler.profile()
    with td.profiler.profile() as running:
        other.__exit__(None, None, None)
        td.exp(x)
    running.__exit__(None, None, None)
    assert [event.name for event in running.events()] == ["td::exp"]
    assert state() == (0, 0)


def test_wrong_arguments_of_the_profiler():
    with td.profiler.profile() as prof:
        td.exp(td.asarray([1.0]))
    averages = prof.key_averages()
    for wrong in (
        lambda: averages.table(sort_by=[]),
        lambda: averages.table(row_limit="x"),
        lambda: averages.table(row_limit=-1),
        lambda: prof.key_averages(group_by_stack_n=1.5),
        lambda: prof.export_chrome_trace(3),
        lambda: prof.export_chrome_trace(None),
        lambda: td.profiler.record_function(HUGE).__enter__(),
    ):
        with pytest.raises(td.errors.TandemError):
            wrong()


def test_error_names_exclusions_when_no_key_is_left():
    x = td.asarray([1.0, 2.0])
    with td.Library("regress", "DEF") as lib:
        lib.define("f(Tensor x) -> Any")
        lib.impl("f", lambda x: 5, "CPU")
        with td.exclude_keys("CPU"), pytest.raises(td.errors.NoKernelError) as caught:
            td.ops.regress.f(x)
        text = str(caught.value)
        assert "this thread excludes CPU" in text and "to add one" not in text
        line = next(line for line in text.splitlines() if "to call it" in line).partition(":")[2]
        assert eval(line.strip().replace("...", "x"), {"td": td, "x": x}) == 5
        with pytest.raises(td.errors.NoKernelError, match=r"called with: float32\[2\] on cpu"):
            td.ops.regress.f.call_for_key("PrivateUse1", x)


def test_blocks_of_coroutines_leave_nothing_behind():
    async def work(enter, leave, guard):
        for _ in range(enter):
            await asyncio.sleep(0)
        with guard:
            for _ in range(leave):
                await asyncio.sleep(0)

    async def everything():
        makes = (td.no_grad, lambda: td.exclude_keys("Autograd"), lambda: td.include_keys("Mode"))
        await asyncio.gather(*(work(i % 5, 1 + i % 7, makes[i % 3]()) for i in range(60)))

    asyncio.run(everything())
    assert state() == (0, 0)


def test_tables_of_operators_and_of_the_default_overload():
    assert td.dispatch_table(td.add).operator is td.dispatch_table("add.Tensor").operator
    assert td.dispatch_table("exp.default").operator is td.dispatch_table(td.ops.td.exp.default).operator


@pytest.mark.filterwarnings("ignore::tandem.errors.FallbackWarning")
@pytest.mark.parametrize("key", ["SparseCPU", "SparseMeta", "QuantizedCPU", "Sparse"])
def test_included_sparse_key_refuses_plain_tensors(key):
    x = td.ones(1)
    calls = [lambda: td.cos(x), lambda: x + 1, lambda: td.sum(x), lambda: td.sqrt(2.0)]
    with td.include_keys(key):
        for call in calls * 20:
            with pytest.raises(td.errors.NoKernelError, match=f"includes .*{key}.*no argument"):
                call()
    sparse = td.ones((2, 2)).to_sparse()
    with td.include_keys("SparseCPU"):
        doubled = sparse * 2.0
        with td.Library("td", "IMPL") as lib:  # a kernel from outside may take what it likes
            lib.impl("cos", lambda x: x, "SparseCPU", allow_override=True)
            assert td.cos(x) is x
    assert doubled.to_dense().tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_two_kernels_registered_on_one_line_conflict():
    with td.Library("regress", "DEF") as lib:
        lib.define("f(Tensor x) -> Any")

        def register(kernel, **options):
            return lib.impl("f", kernel, "CPU", **options)

        register(lambda x: 1)
        with pytest.raises(td.errors.RegistrationError, match="allow_override"):
            register(lambda x: 2)
        assert td.ops.regress.f(0.0) == 1
        with register(lambda x: 3, allow_override=True):
            assert td.ops.regress.f(0.0) == 3
        assert td.ops.regress.f(0.0) == 1


@pytest.mark.parametrize("hot", [False, True])
def test_arguments_may_be_called_self_keyset_and_key(hot):
    x = td.asarray([1.0, 2.0])
    with td.Library("regress", "DEF") as lib:
        lib.define("f(Tensor self, int keyset, int key) -> Any")
        lib.impl("f", lambda self, keyset, key: keyset + key, "CPU")
        packet, given = td.ops.regress.f, {"self": x, "keyset": 2, "key": 3}
        for _ in range(100 if hot else 1):
            assert packet(**given) == packet.default(**given) == packet.default.operator(**given) == 5
            assert packet.redispatch(td.DispatchKeySet("CPU"), **given) == 5
            assert packet.call_for_key("CPU", **given) == packet.get_kernel("CPU")(**given) == 5
            assert (
                td.exp(self=x).shape
                == td.add(self=x, other=x).shape
                == td.ops.td.add(self=x, other=1).shape
                == (2,)
            )
            assert td.vmap(lambda row: td.sum(self=row))(td.zeros((2, 3))).tolist() == [0.0, 0.0]


def test_a_kernel_that_cannot_be_printed():
    class Unprintable:
        def __repr__(self):
            raise ValueError("not me")

        def __call__(self, x):
            return 1

    with td.Library("regress", "DEF") as lib:
        lib.define("f(Tensor x) -> Any")
        lib.impl("f", Unprintable(), "CPU")
        assert "Unprintable that cannot be printed" in str(td.dispatch_table("regress::f"))
        with td.show_dispatch_trace(lambda line: None):
            assert td.ops.regress.f(0.0) == 1


def test_a_declaration_is_one():
    with td.Library("declares", "DEF") as lib, pytest.raises(td.errors.ArgumentError, match="Declaration"):
        lib.define("f(Tensor x) -> Any", decl=3)


def test_a_jitted_function_takes_an_argument_called_self():
    f = td.jit(lambda self: self + 1)
    assert f(self=td.asarray([1.0])).tolist() == [2.0]
