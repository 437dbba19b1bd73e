"""Printing and host callbacks: eagerly, jitted, batched, differentiated."""

import dataclasses

import numpy as np
import pytest
import tandem as td
from tandem import errors

X = td.asarray([1.0, 2.0, 3.0])
ROWS = td.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def plain(fn):
    return fn


WAYS = {"eager": plain, "jit": td.jit}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


# -- print -------------------------------------------------------------------------------------------------------------
def test_print(way, capsys):
    def f(x, k):
        y = x * k
        td.debug.print("first {} {k}", y, k=k)
        td.debug.print("nothing to wait for")
        td.debug.print("{0[a]:.2f} {1!r} {{}}", {"a": y.sum()}, "text")
        return y

    compiled = way(f)
    for k in (2, 3):
        compiled(X, k)
        first = [2.0 * k / 2, 4.0 * k / 2, 6.0 * k / 2]
        assert capsys.readouterr().out.splitlines() == [
            f"first {np.asarray(first, np.float32)} {k}",
            "nothing to wait for",
            f"{6 * k:.2f} 'text' {{}}",
        ]


def test_print_comes_in_the_order_of_the_program(way, capsys):
    def f(x):
        for n in range(5):
            x = x * 2
            td.debug.print("a{}", n)
            td.debug.print("b{}", x.sum())
        td.debug.print("end")
        return x

    compiled = way(f)
    for _ in range(2):
        compiled(td.ones(2))
        want = [line for n in range(5) for line in (f"a{n}", f"b{2.0 ** (n + 2)}")]
        assert capsys.readouterr().out.splitlines() == [*want, "end"]


def test_print_in_a_batch(way, capsys):
    def f(x):
        td.debug.print("x {x} shared {s}", x=x, s=X[0])
        td.debug.print("once")
        return x

    way(td.vmap(f))(td.asarray([1.0, 2.0]))
    assert capsys.readouterr().out.splitlines() == ["x 1.0 shared 1.0", "x 2.0 shared 1.0", "once"]
    td.vmap(way(f))(td.asarray([1.0, 2.0]))
    assert capsys.readouterr().out.splitlines() == ["x 1.0 shared 1.0", "x 2.0 shared 1.0", "once"]
    way(td.vmap(td.vmap(lambda x: (td.debug.print("{}", x), x)[1])))(td.asarray([[1.0, 2.0], [3.0, 4.0]]))
    assert sorted(capsys.readouterr().out.split()) == ["1.0", "2.0", "3.0", "4.0"]


def test_print_where_gradients_flow(way, capsys):
    def f(x):
        td.debug.print("{}", x)
        return (x * x).sum()

    assert way(td.grad(f))(td.asarray([3.0])).tolist() == [6.0]
    assert capsys.readouterr().out == "[3.]\n"
    assert way(td.grad(td.grad(lambda x: f(x))))(td.asarray(3.0)).item() == 2.0
    assert capsys.readouterr().out == "3.0\n"
    assert way(td.vmap(td.grad(f)))(td.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert capsys.readouterr().out == "1.0\n2.0\n"
    assert way(td.grad(lambda xs: td.vmap(f)(xs).sum()))(td.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert capsys.readouterr().out == "1.0\n2.0\n"


def test_print_of_what_backward_records(capsys):
    x = td.asarray([3.0], requires_grad=True)
    y = x * x
    td.debug.print("{}", y)
    y.sum().backward()
    assert x.grad.tolist() == [6.0]
    assert capsys.readouterr().out == "[9.]\n"


def test_formats_are_checked_at_once(way):
    for bad, args, kwargs, message in (
        ("{x} {y}", (), {"x": 1}, "asks for the value y"),
        ("{}", (), {}, "asks for the value 0"),
        ("{0} {1}", (1,), {}, "asks for the value 1"),
        ("{x}", (), {"x": 1, "y": 2}, "no place for the value 'y'"),
        ("{x:{w}}", (), {"x": 1}, "asks for the value w"),
        ("", (1,), {}, "no place for the value 0"),
        (3, (), {}, "takes a format first"),
    ):
        with pytest.raises(errors.ArgumentError, match=message):
            way(lambda x, b=bad, a=args, k=kwargs: td.debug.print(b, *a, **k))(X)
    with pytest.raises(errors.ValueArgumentError, match="is no format"):
        td.debug.print("{", 1)


# -- callback ----------------------------------------------------------------------------------------------------------
def test_callback_gets_arrays_of_its_own(way):
    seen = []

    def f(tree, n):
        td.debug.callback(lambda tree, n, *, name: seen.append((tree, n, name)), tree, n, name="s")
        return tree["x"] + n

    x = td.asarray([1.0, 2.0])
    compiled = way(f)
    for n in (1, 2):
        compiled({"x": x, "y": (None, "k", 2.5)}, n)
    x.add_(1.0)
    for n, (tree, number, name) in zip((1, 2), seen, strict=True):
        assert (number, name, tree["y"]) == (n, "s", (None, "k", 2.5))
        assert type(tree["x"]) is np.ndarray
        assert tree["x"].tolist() == [1.0, 2.0]
        tree["x"][0] = 7.0  # it is the callback's
    assert x.tolist() == [2.0, 3.0]


def test_callbacks_are_neither_merged_nor_dropped(way):
    seen = []
    f = way(lambda x: [td.debug.callback(seen.append, x) for _ in range(3)] and None)
    f(td.asarray(1.0))
    f(td.asarray(2.0))
    assert [float(x) for x in seen] == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]


def test_a_callback_may_use_tandem(way):
    seen = []

    def look(x):
        t = td.asarray(x)
        seen.append(
            (td.grad(lambda y: (y * y).sum())(t).tolist(), td.jit(td.vmap(lambda y: y + 1))(t).tolist())
        )

    for _ in range(2):
        way(lambda x: td.debug.callback(look, x))(X)
        td.vmap(way(lambda x: td.debug.callback(look, x)))(ROWS)
    assert seen[0] == seen[4] == ([2.0, 4.0, 6.0], [2.0, 3.0, 4.0])
    assert seen[1] == ([2.0, 4.0], [2.0, 3.0])
    assert len(seen) == 8


def test_what_a_callback_raises_comes_out(way):
    def fail(x):
        raise KeyError(float(x))

    f = way(lambda x: (td.debug.callback(fail, x), x + 1)[1])
    for n in (1.0, 2.0):
        with pytest.raises(KeyError, match=str(n)):
            f(td.asarray(n))
    with pytest.raises(errors.ArgumentError, match="takes a function"):
        td.debug.callback(3, X)


def test_a_captured_tensor_is_read_at_each_call():
    seen, held = [], td.asarray([1.0])
    f = td.jit(lambda: td.debug.callback(lambda x: seen.append(x.tolist()), held))
    f()
    held.add_(1.0)
    f()
    assert seen == [[1.0], [2.0]]


# -- pure_callback -----------------------------------------------------------------------------------------------------
def test_pure_callback(way):
    def f(x):
        y = td.pure_callback(np.sin, td.TensorSpec((3,), "float32"), x)
        a, (b,) = td.pure_callback(
            lambda x, k: (x.sum(), [np.int64(k)]), (td.zeros(()), [td.TensorSpec((), td.int64)]), x, k=2
        )
        return y * 2, a, b

    y, a, b = way(f)(X)
    np.testing.assert_allclose(y.numpy(), 2 * np.sin(X.numpy()), rtol=1e-6)
    assert (a.item(), b.item(), b.dtype) == (6.0, 2, td.int64)


def test_pure_callback_is_dropped_if_unused():
    calls = []

    def count(x):
        calls.append(1)
        return x

    td.jit(lambda x: (td.pure_callback(count, x, x), x + 1)[1])(X)
    assert not calls


def test_results_are_checked(way):
    spec = td.TensorSpec((3,), td.float32)
    cases = (
        (lambda x: x[:2], errors.ShapeError, r"float32\[2\], and result_spec promises float32\[3\]"),
        (
            lambda x: x.astype(np.float64),
            errors.DTypeError,
            r"float64\[3\], and result_spec promises float32",
        ),
        (lambda x: (x, x), errors.ArgumentError, "gave float32|cannot convert|promises"),
        (lambda x: "no", errors.ArgumentError, "cannot be converted to a tensor: asarray: str 'no' is text"),
    )
    for fn, error, message in cases:
        with pytest.raises((error, errors.ShapeError), match=message):
            way(lambda x, fn=fn: td.pure_callback(fn, spec, x))(X)
    with pytest.raises(errors.ArgumentError, match="is a leaf, a ndarray, not a tuple"):
        way(lambda x: td.pure_callback(lambda x: x, (spec, spec), x))(X)
    with pytest.raises(errors.ArgumentError, match=r"result_spec\['a'\] is int 3"):
        way(lambda x: td.pure_callback(lambda x: x, {"a": 3}, x))(X)
    with pytest.raises(errors.ValueArgumentError, match="'expand_dims'"):
        td.pure_callback(np.sin, spec, X, vmap_method="fast")
    assert way(lambda x: td.pure_callback(lambda x: 3, td.TensorSpec((), td.float32), x))(X).item() == 3.0


def test_results_are_tensors_of_their_own(way):
    kept = np.ones(2, np.float32)
    out = way(lambda: td.pure_callback(lambda: kept, td.TensorSpec((2,), "float32")))()
    out.add_(1.0)
    assert kept.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_pure_callback_in_a_batch(method, way):
    shapes = []

    def host(x, y):
        shapes.append((x.shape, y.shape))
        return x * y

    def f(x, y):
        return td.pure_callback(host, td.TensorSpec((2,), td.float32), x, y, vmap_method=method)

    y = td.asarray([10.0, 100.0])
    want = (ROWS * y).tolist()
    assert way(td.vmap(f, (0, None)))(ROWS, y).tolist() == want
    assert (
        set(shapes)
        == {
            "sequential": {((2,), (2,))},
            "expand_dims": {((3, 2), (1, 2))},
            "broadcast_all": {((3, 2), (3, 2))},
        }[method]
    )
    assert td.vmap(way(f), (0, None))(ROWS, y).tolist() == want
    both = way(td.vmap(td.vmap(f, (0, None)), (None, 0)))(ROWS, td.stack([y, y + 1]))
    assert both.tolist() == [want, (ROWS * (y + 1)).tolist()]
    assert td.vmap(f, (0, None))(td.zeros((0, 2)), y).shape == (0, 2)


def test_pure_callback_in_a_batch_needs_a_method(way):
    with pytest.raises(errors.UnsupportedError, match="pass vmap_method, which says"):
        way(td.vmap(lambda x: td.pure_callback(np.sin, x, x)))(ROWS)


def test_pure_callback_has_no_gradient(way):
    with pytest.raises(errors.NotDifferentiableError, match="it calls a Python function"):
        way(td.grad(lambda x: td.pure_callback(np.sin, x, x).sum()))(X)
    stopped = way(td.grad(lambda x: (x * td.pure_callback(np.sin, x, td.stop_gradient(x))).sum()))
    np.testing.assert_allclose(stopped(X).numpy(), np.sin(X.numpy()), rtol=1e-6)


# -- io_callback -------------------------------------------------------------------------------------------------------
def test_io_callback(way):
    log = []

    def take(x):
        log.append(float(x))
        return np.float32(len(log))

    def f(x):
        for place in range(3):
            td.io_callback(take, td.TensorSpec((), "float32"), x[place])
        return td.io_callback(lambda: None, None), td.io_callback(take, x[0], x.sum())

    compiled = way(f)
    assert compiled(X)[0] is None
    assert compiled(X)[1].item() == 8.0
    assert log == [1.0, 2.0, 3.0, 6.0] * 2
    log.clear()
    assert way(td.vmap(lambda x: td.io_callback(take, x, x)))(X).tolist() == [1.0, 2.0, 3.0]
    assert log == [1.0, 2.0, 3.0]
    with pytest.raises(errors.NotDifferentiableError):
        way(td.grad(lambda x: td.io_callback(take, x, x)))(td.asarray(1.0))


# -- as operators ------------------------------------------------------------------------------------------------------
def test_they_are_in_the_graph():
    @dataclasses.dataclass
    class Seen:
        count: int = 0

        def look(self, x):
            self.count += 1

    seen = Seen()
    f = td.jit(lambda x: (td.debug.callback(seen.look, x), td.pure_callback(np.sin, x, x))[1])
    text = str(f.trace(X))
    assert "debug::callback" in text
    assert "debug::pure_callback" in text
    assert seen.count == 0
    assert "debug::callback" in str(f.lower(X).kernels())
    with td.config.override(verify=True):
        td.jit(lambda x: (td.debug.callback(seen.look, x), x * 2)[1])(X)
    assert seen.count == 1


def test_a_mode_sees_them():
    names = []

    class Log(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            names.append(op.name)
            return op(*args, **kwargs)

    with Log():
        td.debug.print("{}", X)
    assert "debug::callback" in names


def test_an_operator_of_the_users_without_results(way, capsys):
    @td.custom_op("debugtests::log_it")
    def log_it(x: td.Tensor) -> None:
        print("log", x.tolist())

    try:
        assert way(td.grad(lambda x: (log_it(x), (x * x).sum())[1]))(X).tolist() == [2.0, 4.0, 6.0]
        assert capsys.readouterr().out == "log [1.0, 2.0, 3.0]\n"
    finally:
        log_it.remove()


def test_a_jitted_function_that_is_differentiated_prints_once(capsys):
    @td.jit
    def f(x):
        td.debug.print("{}", x)
        return (x * x).sum()

    for _ in range(2):
        assert td.grad(f)(X).tolist() == [2.0, 4.0, 6.0]
        assert capsys.readouterr().out == "[1. 2. 3.]\n"
        x = td.asarray([1.0, 2.0, 3.0], requires_grad=True)
        f(x).backward()
        assert x.grad.tolist() == [2.0, 4.0, 6.0]
        assert capsys.readouterr().out == "[1. 2. 3.]\n"
    _, tangent = td.jvp(f, (X,), (td.ones(3),))
    assert tangent.item() == 12.0
    assert capsys.readouterr().out == "[1. 2. 3.]\n"
